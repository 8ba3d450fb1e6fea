//! **Cox processes**: events in a window, whose intensity is the exponential of a function that is learned.
//!
//! Every row of the table is an event, and its columns say where or when it was; there is nothing to predict but where more of them are. What makes places without events known is the **window**: the box in which events would have
//! been seen. The function is the logarithm of the intensity over that of an even one, `events / volume`. With events e and nodes q of a quadrature of the window, all of the same weight,
//!
//! ```text
//! log p = Σ_e f(x_e) - (events / nodes) Σ_q exp f(x_q) + constants
//! ```
//!
//! is a sum over rows ([`CoxRows`](posterior_linear::low_rank::CoxRows)), which features are trained on like on any others. A share s of the events, drawn at random, are a Cox process of s times the intensity, independent of the others: so rows that are set aside and held back are events with nodes
//! of their own, and judge without having been seen. Source: spec `deep_kernel_decomposition`, section 4.6.

use super::observed::Observed;
use crate::options::{ClassWeights, InferenceName, Window};
use crate::rows::mean_and_error;
use crate::{
    CheckedOn, FitRequest, LabelCheck, LabelScores, Latent, ModelError, Predictor, Target, TrainingRows, Want,
};
use faer::{Mat, MatRef};
use posterior_data::{
    DataError, Feature, InputRanges, Missing, MissingTarget, Schema, Selection, Standardisation, Table,
    Unseen,
};
use posterior_gp::{GpError, Observations};
use posterior_kernels::features::halton;
use posterior_likelihoods::{OutputLikelihood, Poisson};
use posterior_linalg::random::Streams;
use posterior_notes::fixes::WINDOW;

/// What is predicted, in the names of columns.
const NAME: &str = "intensity";

/// Nodes for each event, and how many there are at least and at most: the error of an even sequence falls nearly with their number.
const NODES: (usize, usize, usize) = (2, 2048, 1 << 15);

/// Events below which there is nothing to learn features from.
const FEWEST: usize = 20;

/// Nodes of a quadrature for so many events.
pub(crate) fn nodes_for(events: usize) -> usize {
    NODES.0.saturating_mul(events).clamp(NODES.1, NODES.2)
}

/// The events of some rows of a table, ready to be learned from.
pub(crate) fn observed(table: &Table, rows: &[usize], request: &FitRequest) -> Result<Observed, ModelError> {
    let Some(Window(sides)) = &request.output.window else {
        return Err(ModelError::Usage(format!(
            "--likelihood cox needs the box in which events would have been seen: {WINDOW} (the range of the events themselves would be too small, and the intensity at its ends too high)"
        )));
    };
    refused(request)?;
    let unknown: Vec<String> =
        sides.iter().map(|side| side.column.clone()).filter(|name| table.column(name).is_err()).collect();
    if !unknown.is_empty() {
        let (path, missing, known) = (table.source.clone(), unknown, table.names());
        return Err(DataError::NoSuchColumn { path, missing, known }.into());
    }
    let feature = |side: &crate::options::WindowSide| -> Result<Feature, DataError> {
        Ok(Feature::number(table.column(&side.column)?.name.clone(), side.centre()))
    };
    let features = sides.iter().map(feature).collect::<Result<Vec<_>, _>>()?;
    let missing = request.columns.missing;
    let schema = Schema { missing, ..Schema::of(NAME, features) };
    if let Some(name) = repeated(&schema.feature_names()) {
        return Err(ModelError::Usage(format!("--window names the column `{name}` twice")));
    }
    let extracted = schema.extract(table, rows, false).map_err(|error| error.in_table(table))?;
    let window: Vec<[f64; 2]> = sides.iter().map(|side| [side.low, side.high]).collect();
    let events = extracted.rows.len();
    let target = Target::Events { window: window.clone(), events };
    target.check_places(&schema, (table, 0), &extracted)?;
    if events < FEWEST {
        return Err(ModelError::Request(format!(
            "{events} events are too few to learn an intensity from: {FEWEST} at least"
        )));
    }
    let volume: f64 = window.iter().map(|[low, high]| high - low).product();
    if !(volume.is_normal() && (events as f64 / volume).is_normal()) {
        return Err(ModelError::Usage(format!(
            "the window has a volume of {volume}, which no intensity can be counted in: measure its columns in other units"
        )));
    }
    // Points that are even in the window have mean 0 and variance 1.
    let standardisation = Standardisation {
        feature_means: sides.iter().map(crate::options::WindowSide::centre).collect(),
        feature_scales: window.iter().map(|[low, high]| (high - low) / 12f64.sqrt()).collect(),
        feature_maps: Vec::new(),
        target_mean: 0.0,
        target_scale: 1.0,
        transform: None,
    };
    let ones = vec![1.0; events];
    let inputs = standardisation.features(extracted.x.as_ref());
    let mut odd = Vec::new();
    let twice = extracted.notes.duplicate_rows.max(repeats(extracted.x.as_ref()));
    if twice > 0 {
        odd.push(format!(
            "{twice} event{} where another is to the last digit, which has probability 0 in a Cox process: were places rounded, or the same event written twice?",
            if twice == 1 { " is" } else { "s are" }
        ));
    }
    let shown: Vec<String> = sides.iter().map(ToString::to_string).collect();
    let mut notes = extracted.notes;
    // They are no rows of inputs with a target each.
    (notes.duplicate_rows, notes.fewer_rows_than_features) = (0, false);
    Ok(Observed {
        training: TrainingRows::of_table(extracted.x.as_ref(), &ones),
        input_ranges: InputRanges::learn(&schema, extracted.x.as_ref()),
        schema,
        standardisation,
        data: Observations::new(inputs, Mat::from_fn(events, 1, |_, _| 1.0), None)?,
        target,
        likelihood: OutputLikelihood::Poisson(Poisson::new(1)?),
        why: format!("cox: {events} events in the window {}, a volume of {volume}", shown.join(", ")),
        notes,
        odd,
    })
}

/// Refuses what means nothing to events.
fn refused(request: &FitRequest) -> Result<(), ModelError> {
    let Selection { target, features, exclude, index, noise, exposure, missing, .. } = &request.columns;
    let Selection { categories, calendar, date_order, missing_target, unseen, .. } = &request.columns;
    let labels = &request.output;
    let strangers = [
        (!target.is_empty(), "--target names what is predicted, and every row here is an event"),
        (features.is_some(), "--window names the columns that say where events were, in place of --features"),
        (noise.is_some(), "--noise is of numbers"),
        (exposure.is_some(), "--exposure is of counts; of events it is the volume of --window"),
        (
            !exclude.is_empty() || index.is_some(),
            "--exclude and --index are of features, which --window names",
        ),
        (!categories.is_empty(), "--categories are of text, and a window has numbers"),
        (
            !calendar.is_empty() || date_order.is_some(),
            "--calendar and --date-order are of dates, and a window has numbers",
        ),
        (
            !matches!(missing, Missing::Error | Missing::Drop),
            "--missing mean and its like would put events where none was seen: take error or drop",
        ),
        (
            *missing_target != MissingTarget::default(),
            "--missing-target is of targets, and every row here is an event",
        ),
        (*unseen != Unseen::default(), "--unseen is of categories, and a window has numbers"),
        (labels.class_weights != ClassWeights::Equal, "--class-weights are for classes"),
        (labels.row_weights.is_some(), "--row-weights are of rows with a target: events count one each"),
        (labels.matching.is_some(), "--matching is for gaussianised inference"),
        (labels.pseudo_count.is_some(), "--pseudo-count is for gaussianised inference"),
        (
            !matches!(labels.inference, InferenceName::Auto | InferenceName::Variational),
            "a Cox process is learned by the bound on its evidence: leave --inference out",
        ),
    ];
    if let Some((_, why)) = strangers.iter().find(|(given, _)| *given) {
        return Err(ModelError::Usage(format!("{why} (--likelihood cox, --window)")));
    }
    if request.method.deep().is_none() {
        let named = match request.method.settings().is_automatic() {
            true => "name it".into(),
            false => format!("{} has no intensities", request.method.name()),
        };
        return Err(ModelError::Usage(format!(
            "a Cox process is learned with features (--method svdbk, svdkl, dbk or dkl): {named}"
        )));
    }
    Ok(())
}

fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|(_, name)| name)
}

/// Rows that repeat an earlier one.
fn repeats(x: MatRef<'_, f64>) -> usize {
    let mut rows: Vec<Vec<u64>> =
        (0..x.nrows()).map(|i| (0..x.ncols()).map(|j| x[(i, j)].to_bits()).collect()).collect();
    rows.sort_unstable();
    rows.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// `count` points that fill the window evenly, in standard units (`count` x D): a randomised Halton sequence. (The lattice of the generalised golden ratio, as even in two dimensions, leaves correlations of 0.02 in three, whatever the number of nodes.)
fn nodes(count: usize, dimensions: usize, streams: Streams) -> Mat<f64> {
    let points = halton(dimensions, count, &mut streams.stream("model/nodes"));
    Mat::from_fn(count, dimensions, |i, j| 12f64.sqrt() * (points[i][j] - 0.5))
}

/// Which rows nodes belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nodes {
    Train = 0,
    Aside = 1,
    Judge = 2,
}

impl Nodes {
    fn of(self, count: usize, dimensions: usize, seed: u64) -> Mat<f64> {
        nodes(count, dimensions, Streams::new(seed).child("model/nodes", self as u64))
    }
}

/// The logarithm of the share that a node has of so many expected events.
fn node_offset(events: usize, nodes: usize) -> f64 {
    (events as f64 / nodes as f64).ln()
}

/// Events, and nodes of a quadrature of the window behind them, as rows of [`CoxRows`](posterior_linear::low_rank::CoxRows).
pub(crate) fn rows(events: &Observations, which: Nodes, seed: u64) -> Result<Observations, GpError> {
    let (x, count) = (events.inputs(), events.rows());
    let nodes = which.of(nodes_for(count), x.ncols(), seed);
    let all = count + nodes.nrows();
    let inputs =
        Mat::from_fn(all, x.ncols(), |i, j| if i < count { x[(i, j)] } else { nodes[(i - count, j)] });
    let targets = Mat::from_fn(all, 1, |i, _| f64::from(u8::from(i < count)));
    let of_node = node_offset(count, nodes.nrows());
    let offsets = (0..all).map(|i| if i < count { 0.0 } else { of_node }).collect();
    Observations::new(inputs, targets, None)?.with_offsets(offsets)
}

/// Nats for each event more than an even intensity has, of a mean over so many rows of events and nodes.
pub(crate) fn nats_for_each_event(surprise: f64, rows: usize, events: usize) -> f64 {
    surprise * rows as f64 / events as f64 - 1.0
}

/// The logarithm of an even intensity; None of other targets.
pub(crate) fn level(target: &Target) -> Option<f64> {
    let Target::Events { window, events } = target else { return None };
    let volume: f64 = window.iter().map(|[low, high]| high - low).product();
    Some((*events as f64 / volume).ln())
}

/// Mean intensities over that of an even one.
fn relative(latents: &Latent, level: f64) -> Vec<f64> {
    (0..latents.points())
        .map(|i| (latents.mean_at(i)[0] - level + 0.5 * latents.variance(i, 0)).exp())
        .collect()
}

/// Events that the mean intensity has in the whole window.
pub(crate) fn expected(predictor: &dyn Predictor, observed: &Observed, seed: u64) -> Result<f64, ModelError> {
    let Target::Events { events, .. } = observed.target else { return Ok(f64::NAN) };
    let points = Nodes::Judge.of(NODES.2, observed.data.inputs().ncols(), seed);
    let level = level(&observed.target).unwrap_or(0.0);
    let rates = relative(&predictor.latent(points.as_ref().into(), &Want::default())?, level);
    Ok(events as f64 * rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Scores of events that were held back: the log density under the mean intensity, beside that of an even one, nats for each.
pub(crate) fn judged(
    predictor: &dyn Predictor,
    held: &Observed,
    seed: u64,
) -> Result<LabelCheck, ModelError> {
    let level = level(&held.target).unwrap_or(0.0);
    let x = held.data.inputs();
    let at_events = relative(&predictor.latent(x.into(), &Want::default())?, level);
    let points = Nodes::Judge.of(nodes_for(held.rows()), x.ncols(), seed);
    let at_nodes = relative(&predictor.latent(points.as_ref().into(), &Want::default())?, level);
    let integral = at_nodes.iter().sum::<f64>() / at_nodes.len() as f64;
    let gains: Vec<f64> = at_events.iter().map(|rate| rate.ln() - integral + 1.0).collect();
    let [gain, error] = mean_and_error(&gains);
    let mut warnings = Vec::new();
    if gain <= error {
        warnings.push(format!(
            "events that were held back are not where this intensity is higher: {gain:.4} nats an event beside an even one"
        ));
    }
    Ok(LabelCheck {
        on: CheckedOn::HeldBack,
        rows: held.rows(),
        training_duplicates: 0,
        duplicates: 0,
        scores: LabelScores { nll: -gain, accuracy: None, ece: None, within_two_deviations: None },
        baseline_nll: 0.0,
        warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::Likelihood;
    use posterior_linear::low_rank::CoxRows;

    #[test]
    fn nodes_fill_the_window_evenly() {
        for dimensions in 1..=3 {
            let all = nodes(4096, dimensions, Streams::new(3));
            let side = 3f64.sqrt();
            assert!((0..4096).all(|i| (0..dimensions).all(|j| all[(i, j)].abs() <= side)));
            // Of an even density: mean 0, variance 1, and no correlation; of the exponential its closed form. Random points would be 1/64 off.
            let mean = |f: &dyn Fn(usize) -> f64| (0..4096).map(f).sum::<f64>() / 4096.0;
            for j in 0..dimensions {
                assert!(mean(&|i| all[(i, j)]).abs() < 2e-3);
                assert!((mean(&|i| all[(i, j)].powi(2)) - 1.0).abs() < 4e-3);
                assert!((mean(&|i| all[(i, j)].exp()) - side.sinh() / side).abs() < 6e-3);
                for k in 0..j {
                    assert!(mean(&|i| all[(i, j)] * all[(i, k)]).abs() < 6e-3, "{dimensions} {j} {k}");
                }
            }
        }
    }

    #[test]
    fn scores_of_even_intensities_are_zero_whatever_the_number_of_nodes() {
        for count in [30, 5000] {
            let events = Observations::new(Mat::zeros(count, 2), Mat::zeros(count, 1), None).unwrap();
            let rows = rows(&events, Nodes::Train, 1).unwrap();
            assert_eq!(rows.rows(), count + nodes_for(count));
            let offsets = rows.offsets().unwrap();
            let surprise: f64 = (0..rows.rows())
                .map(|i| -CoxRows.log_density(&[rows.targets()[(i, 0)]], &[offsets[i]]))
                .sum::<f64>()
                / rows.rows() as f64;
            assert!(nats_for_each_event(surprise, rows.rows(), count).abs() < 1e-10);
        }
    }
}
