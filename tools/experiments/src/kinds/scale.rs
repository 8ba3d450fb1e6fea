//! What becomes of error bars when normalised weights are multiplied by a number, which changes no output; and the scales of the Jacobian with and without the g-prior.
//!
//! Serves figures 5.5 and 5.6 of the thesis.

use crate::kinds::prelude::*;
use crate::numbers::shown;
use crate::tangent::{Tangent, TrainedToy};
use crate::toy::ToySettings;
use crate::training::TrainingSettings;
use posterior_laplace::normalisation::scale_invariant_layers;
use posterior_laplace::{LaplaceError, PriorKind};
use posterior_linear::evidence::{DataFit, EvidenceOptions, LaplaceEvidence, Maximiser};
use posterior_linear::structure::Structure;
use posterior_linear::{LinearError, Prior};
use posterior_networks::{Network, Selection};
use posterior_report::{Distribution, Distributions, PosteriorPanels, TitledPosterior};
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// Numbers by which normalised weights are multiplied; 1 is added if absent.
    factors: Vec<f64>,
    /// Basis functions that are drawn.
    #[serde(default = "eight")]
    basis: usize,
    /// Steps of the evidence's updates at most.
    #[serde(default = "steps")]
    steps: usize,
}

impl Checked for Settings {}

fn eight() -> usize {
    8
}

fn steps() -> usize {
    500
}

/// How prior precisions are shared.
const PRIORS: [&str; 3] = ["isotropic", "layerwise", "g-prior"];

/// A prior with a group for each layer. Precisions begin in units of the layer's own weights, as fits do it: evidences of several
/// precisions have several maxima, and a start in other units would choose among them by the scale.
fn layerwise(selection: &Selection, network: &Network<f64>) -> Result<Prior> {
    let prior = PriorKind::Layerwise.prior(network.graph(), selection, 1.0)?;
    let norms = prior.squared_norms(&selection.flatten(network.parameters()));
    let start: Vec<f64> =
        prior.group_sizes().iter().zip(norms).map(|(&size, norm)| size as f64 / norm).collect();
    Ok(prior.with_precisions(&start)?)
}

/// The prior precisions of the largest evidence, by MacKay's updates at the linear model's mode.
fn learned(tangent: &Tangent, curvature: &Structure, mut prior: Prior, steps: usize) -> Result<Prior> {
    let fit = DataFit::LogLikelihood { value: 0.0 };
    let options = EvidenceOptions { steps: 1, ..EvidenceOptions::default() };
    for _ in 0..steps {
        let mode = tangent.mode(&curvature.condition(&prior, 1.0).map_err(LinearError::from)?);
        let found = LaplaceEvidence::new(curvature, prior.clone(), &mode, fit)
            .and_then(|evidence| evidence.maximise(1.0, false, Maximiser::Mackay, &options))
            .map_err(LaplaceError::from)?;
        let pairs = prior.precisions().iter().zip(found.prior.precisions());
        let change = pairs.map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
        prior = found.prior;
        if change <= 1e-6 {
            break;
        }
    }
    Ok(prior)
}

/// Standard deviations on the grid with precisions learned by the evidence at the linear model's mode; the precisions too.
fn deviations(
    tangent: &Tangent,
    network: &Network<f64>,
    selection: &Selection,
    prior: &str,
    steps: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut curvature = tangent.curvature()?;
    if prior == "g-prior" {
        curvature = curvature.normalised().map_err(LinearError::from)?;
    }
    let start = match prior {
        "layerwise" => layerwise(selection, network)?,
        _ => Prior::scalar(tangent.dimension(), 1.0)?,
    };
    let prior = learned(tangent, &curvature, start, steps)?;
    Ok((tangent.deviations(&curvature, &prior)?, prior.precisions().to_vec()))
}

/// The network with its normalised weights multiplied.
fn multiplied(network: &Network<f64>, parameters: &[usize], factor: f64) -> Network<f64> {
    let mut moved = network.clone();
    for &p in parameters {
        moved.parameters_mut()[p].values_mut().iter_mut().for_each(|v| *v *= factor);
    }
    moved
}

/// Trains the network, rescales it, compares.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    if settings.factors.iter().any(|c| !positive(*c)) {
        return refused("`factors` must be positive");
    }
    let mut factors = settings.factors.clone();
    if !factors.contains(&1.0) {
        factors.push(1.0);
    }
    factors.sort_by(f64::total_cmp);
    let trained = TrainedToy::new(&settings.data, &settings.network, &settings.training, context)?;
    let layers = scale_invariant_layers(trained.network.graph());
    let parameters: Vec<usize> = layers.iter().flat_map(|l| l.parameters.iter().copied()).collect();
    if parameters.is_empty() {
        return refused(
            "[network] has no layer whose scale a normalisation removes: give it `layer_norm = true`",
        );
    }
    let toy = &trained.toy;
    let unit = trained.tangent(&trained.network)?;
    let (mut out, mut rows) = (Measured::default(), Vec::new());
    let mut panels = Vec::new();
    let mut output_change = 0.0f64;
    for prior in PRIORS {
        context.step(prior, 0, factors.len())?;
        let (reference, _) = deviations(&unit, &trained.network, &trained.selection, prior, settings.steps)?;
        let mut worst = 0.0f64;
        for (done, &factor) in factors.iter().enumerate() {
            context.step(prior, done, factors.len())?;
            let network = multiplied(&trained.network, &parameters, factor);
            let tangent = trained.tangent(&network)?;
            let pairs = tangent.network_mean.iter().zip(&unit.network_mean);
            output_change = pairs.map(|(a, b)| (a - b).abs()).fold(output_change, f64::max);
            let (own, precisions) =
                deviations(&tangent, &network, &trained.selection, prior, settings.steps)?;
            let change = own.iter().zip(&reference).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            worst = worst.max(change);
            let key = format!("{prior}, c = {}", shown(factor)).replace('.', "_");
            out.numbers["scaling"][&key] = json!({
                "prior": prior,
                "factor": factor,
                "first_precision": precisions[0],
                "last_precision": precisions[precisions.len() - 1],
                "gap_deviation": toy.mean_in_gaps(&own),
                "mean_deviation": mean(own.iter().copied()),
                "largest_change": change,
            });
            out.series[&key] = json!(own);
            rows.push(key);
            // The extremes and the middle tell the story.
            let drawn = done == 0 || factor == 1.0 || done + 1 == factors.len();
            if drawn {
                panels.push(TitledPosterior::new(
                    format!("{prior}, c = {factor}"),
                    toy.panel(&tangent.network_mean, &own, toy.noise * toy.noise),
                ));
            }
        }
        out.numbers["scaling"][format!("{prior} worst")] = json!({"largest_change": worst});
    }
    out.series["grid"] = json!(toy.grid);
    let scales = unit.curvature()?.normalised().map_err(LinearError::from)?.scales();
    let scale = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * scales[j]);
    let (features, grid) = (scale(&unit.features), scale(&unit.grid));
    out.numbers["output_change"] = json!(output_change);
    out.numbers["jacobian"] = json!({
        "spread": column_spread(&unit.features), "spread_scaled": column_spread(&features),
        "largest_over_median": range(&unit.features), "largest_over_median_scaled": range(&features),
    });
    out.numbers["offset"] = json!(unit.offset);
    out.numbers["dimension"] = json!(unit.dimension());
    let columns = [
        ("first_precision", "first precision"),
        ("last_precision", "last precision"),
        ("mean_deviation", "σ on grid"),
        ("gap_deviation", "σ in gaps"),
        ("largest_change", "largest relative change of σ"),
    ];
    out.tables = vec![
        NumberTable::by_name(
            "Error bars after multiplying normalised weights",
            "prior",
            "scaling",
            rows.iter().map(String::as_str),
            &columns,
            "Precisions are learned anew for every factor c. The outputs of the network do not change, so error bars should not.",
        ),
        NumberTable {
            title: "Scales of the Jacobian".into(),
            head: ["features", "spread of column norms (decades)", "largest over median entry"]
                .map(String::from)
                .to_vec(),
            rows: vec![
                (
                    "as they are".into(),
                    ["jacobian.spread", "jacobian.largest_over_median"].map(String::from).to_vec(),
                ),
                (
                    "g-prior".into(),
                    ["jacobian.spread_scaled", "jacobian.largest_over_median_scaled"]
                        .map(String::from)
                        .to_vec(),
                ),
            ],
            caption: "Spread: standard deviation of the decimal logarithm.".into(),
        },
    ];
    let caption = "One row of panels would be alike if the scale of normalised weights did not matter.";
    out.figures.push(PosteriorPanels::new("Error bars", "y", panels, caption).into());
    out.figures.extend(jacobian_figures(
        &trained,
        [(&unit.features, &unit.grid), (&features, &grid)],
        settings.basis,
    ));
    out.facts = trained.facts;
    Ok(out)
}

/// Standard deviation of the decimal logarithms of column norms, columns of zeros left out.
fn column_spread(features: &Mat<f64>) -> f64 {
    let norms = (0..features.ncols()).map(|j| features.col(j).norm_l2());
    let logs: Vec<f64> = norms.filter(|n| *n > 0.0).map(f64::log10).collect();
    let centre = mean(logs.iter().copied());
    mean(logs.iter().map(|l| (l - centre).powi(2))).sqrt()
}

/// Sizes of the Jacobian's entries, at most a hundred thousand of them, zeros left out.
fn sizes(features: &Mat<f64>) -> Vec<f64> {
    let (n, d) = (features.nrows(), features.ncols());
    let every = (n * d).div_ceil(100_000).max(1);
    let entry = |k: usize| features[(k % n, k / n)].abs();
    (0..n * d).step_by(every).map(entry).filter(|v| *v > 0.0).collect()
}

fn range(features: &Mat<f64>) -> f64 {
    let mut sizes = sizes(features);
    sizes.sort_by(f64::total_cmp);
    match sizes.last() {
        Some(largest) => largest / sizes[sizes.len() / 2],
        None => f64::NAN,
    }
}

/// Features at the training inputs and on the grid, as they are and with the g-prior.
fn jacobian_figures(trained: &TrainedToy, features: [(&Mat<f64>, &Mat<f64>); 2], basis: usize) -> Vec<Item> {
    let [(unit, grid), (scaled, scaled_grid)] = features;
    let distribution = |name: &str, features: &Mat<f64>| Distribution {
        name: name.into(),
        values: sizes(features).iter().map(|v| v.log10()).collect(),
    };
    let d = unit.ncols();
    let chosen: Vec<usize> =
        (0..basis.min(d).min(8)).map(|k| (2 * k + 1) * d / (2 * basis.clamp(1, 8))).collect();
    let functions = |title: &str, grid: &Mat<f64>| {
        let line = |&j: &usize| {
            Line::new(
                format!("weight {j}"),
                trained.toy.grid.clone(),
                (0..grid.nrows()).map(|i| grid[(i, j.min(d - 1))]).collect(),
            )
        };
        Curves::new(title, "x", "derivative of the output", chosen.iter().map(line).collect()).into()
    };
    vec![
        Item::Distributions(Distributions {
            title: "Sizes of the Jacobian's entries".into(),
            x: "log10 |J|".into(),
            series: vec![distribution("as they are", unit), distribution("with the g-prior", scaled)],
            ..Distributions::default()
        }),
        functions("Basis functions", grid),
        functions("Basis functions with the g-prior", scaled_grid),
    ]
}
