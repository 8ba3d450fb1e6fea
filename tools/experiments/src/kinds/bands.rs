//! Error bars of several posteriors on one trained network, side by side.
//!
//! Serves figure 1 of VaLLA (approximations of the curvature), and figures 5.1 and 5.2 of the thesis (whose norm the evidence charges for; means of the linear model).

use crate::fit_options::overlaid;
use crate::kinds::prelude::*;
use crate::toy::{Toy, ToySettings, column};
use crate::training::TrainingSettings;
use posterior_laplace::fit::{LearnedReport, NoiseModel};
use posterior_laplace::{
    Approximation, Data, FisherEstimate, FitOptions, Laplace, Mode, PriorKind, Run, Tune, Wanted, fit,
};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_networks::train::{Examples, Loss};
use posterior_networks::{Array, Network};
use posterior_report::{PosteriorPanels, TitledPosterior};
use std::time::Instant;
use toml::Table;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ToySettings,
    network: Table,
    training: TrainingSettings,
    /// Starting precision of every prior.
    #[serde(default = "crate::claims::one")]
    initial_precision: f64,
    /// The method that others are compared with; the first if absent.
    reference: Option<String>,
    #[serde(rename = "method")]
    methods: Vec<MethodSettings>,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let known = |m: &MethodSettings| overlaid(FitOptions::default(), &m.own, &m.name).map(|_| ());
        self.methods.iter().try_for_each(known)
    }
}

/// A form of the curvature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CurvatureName {
    /// All of it.
    #[default]
    Full,
    /// A block for each layer.
    Block,
    /// Kronecker factors.
    Kronecker,
    /// The diagonal.
    Diagonal,
    /// The dual form.
    FunctionSpace,
}

/// Which mean a method predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MeanName {
    /// The network itself.
    #[default]
    Network,
    /// The linear model at its optimum.
    Linear,
}

/// One `[[method]]`.
#[derive(Deserialize)]
struct MethodSettings {
    name: String,
    #[serde(default)]
    curvature: CurvatureName,
    #[serde(default)]
    mean: MeanName,
    /// Other options of the fit, laid over all others.
    #[serde(default)]
    options: Table,
    /// An earlier method whose prior precision (the first) and noise are taken for good.
    hyperparameters_of: Option<String>,
    /// Whether it sees the problem's validation rows.
    #[serde(default)]
    validation: bool,
    /// Options of the fit: weights, prior, mode, noise.
    #[serde(flatten)]
    own: Table,
}

impl CurvatureName {
    pub(crate) fn approximation(self) -> Approximation {
        match self {
            Self::Full => Approximation::Full,
            Self::Block => Approximation::Block,
            Self::Kronecker => Approximation::Kronecker(FisherEstimate::Exact),
            Self::Diagonal => Approximation::Diagonal,
            Self::FunctionSpace => Approximation::FunctionSpace { points: None },
        }
    }
}

/// What a method says about the grid.
struct Found {
    name: String,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    noise_variance: f64,
    precision: f64,
    /// Where inducing points were, with the step.
    trajectory: Vec<(usize, Vec<f64>)>,
    numbers: Value,
}

/// Mean squared difference of predictions and targets.
fn squared_error(predicted: &[f64], targets: &[f64]) -> f64 {
    mean(predicted.iter().zip(targets).map(|(f, y)| (f - y) * (f - y)))
}

/// `g(x) + J(x) (w - v)` at the optimum of the linear model.
fn linear_mean(network: &Network<f64>, laplace: &Laplace<f64>, x: &Array<f64>) -> Result<Vec<f64>> {
    let selection = laplace.selection();
    let trained = selection.flatten(network.parameters());
    let difference = laplace.mode().iter().zip(trained).map(|(w, v)| w - v).collect();
    let trace = network.trace(x.clone())?;
    let linear = trace.jvp(selection, &Array::new(vec![1, selection.len()], difference))?;
    Ok(trace.output().values().iter().zip(linear.values()).map(|(g, l)| g + l).collect())
}

fn fitted(
    method: &MethodSettings,
    (initial_precision, others): (f64, &[Found]),
    network: &Network<f64>,
    toy: &Toy,
    context: &mut Context<'_>,
) -> Result<Found> {
    let clock = Instant::now();
    let given = match &method.hyperparameters_of {
        None => None,
        Some(name) => Some(others.iter().find(|o| o.name == *name).ok_or_else(|| {
            ExperimentError::Setting(format!(
                "`{}` takes hyperparameters of `{name}`, which is no earlier method",
                method.name
            ))
        })?),
    };
    let noise = given.map_or(toy.noise * toy.noise, |g| g.noise_variance);
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![noise])?);
    let options = FitOptions {
        approximation: method.curvature.approximation(),
        prior: PriorKind::Scalar,
        initial_precision,
        tune: Tune::Evidence,
        mode: Mode::Trained,
        seed: context.seed,
        ..FitOptions::default()
    };
    let mut options = overlaid(options, &method.own, &method.name)?;
    if let Some(given) = given {
        options.initial_precision = given.precision;
        (options.tune, options.noise) = (Tune::None, NoiseModel::Fixed);
    }
    let mut options = overlaid(options, &method.options, &method.name)?;
    if options.approximation.is_learned() {
        // What else it would be told it finds itself, or is given here.
        let mut approximation = options.approximation;
        if let (Approximation::FixedMean(own), Some(given)) = (&mut approximation, given) {
            own.initial_amplitude = 1.0 / given.precision;
            own.initial_noise = None;
            (own.learn_amplitude, own.learn_noise) = (false, false);
        }
        options = FitOptions { approximation, seed: context.seed, ..FitOptions::default() };
    }
    let unseen = toy.unseen().filter(|_| method.validation);
    if method.validation && unseen.is_none() {
        return refused(format!("`{}`: this problem has no validation rows", method.name));
    }
    let stage = format!("posterior `{}`", method.name);
    let (examples, likelihood) = (&toy.examples(), &likelihood);
    let validation = unseen.as_ref().map(|rows| rows as &dyn Examples<f64>);
    let data = Data { network, examples, validation, likelihood };
    let laplace = fit(&data, &options, &mut Run::new(|_, done, total| context.tell(&stage, done, total)))?;
    let (grid, data) = (column(&toy.grid), column(&toy.x));
    // Bands about one mean or the other, as in the thesis: what lies between the two is not part of them.
    let latent = laplace.tangent_latent(network, &grid, Wanted::Diagonal)?;
    let at_data = laplace.tangent_latent(network, &data, Wanted::Diagonal)?;
    let means = |x: &Array<f64>, of_network: &[f64]| match method.mean {
        MeanName::Network => Ok(of_network.to_vec()),
        MeanName::Linear => linear_mean(network, &laplace, x),
    };
    let (predicted, fitted) = (means(&grid, &latent.mean)?, means(&data, &at_data.mean)?);
    let root = |v: &f64| v.max(0.0).sqrt();
    let deviation: Vec<f64> = latent.covariance.iter().map(root).collect();
    let noise_variance = match laplace.likelihood() {
        OutputLikelihood::Gaussian(g) => g.noise_variances()[0],
        _ => f64::NAN,
    };
    let precisions = laplace.prior().precisions();
    let evidence = laplace.summary.evidence.as_ref();
    let squares = |w: &[f64]| w.iter().map(|w| w * w).sum::<f64>();
    let numbers = json!({
        "prior_precision": precisions[0],
        "prior_deviation": precisions[0].powf(-0.5),
        "largest_precision": precisions.iter().copied().fold(0.0, f64::max),
        "smallest_precision": precisions.iter().copied().fold(f64::INFINITY, f64::min),
        "noise_variance": noise_variance,
        "log_noise_variance": noise_variance.ln(),
        "log_evidence": evidence.map(|e| e.log_evidence),
        "effective_dimension": evidence.map(|e| e.effective_dimensions.iter().sum::<f64>()),
        "norm": squares(laplace.mode()).sqrt(),
        "trained_norm": squares(&laplace.selection().flatten(network.parameters())).sqrt(),
        "mean_deviation": mean(deviation.iter().copied()),
        "gap_deviation": toy.mean_in_gaps(&deviation),
        "data_deviation": mean(at_data.covariance.iter().map(root)),
        "squared_error": squared_error(&fitted, &toy.y),
        "roughness": roughness(&predicted),
        "seconds": clock.elapsed().as_secs_f64(),
    });
    let notes = laplace.summary.notes.iter().map(|n| Note::information(format!("{}: {n}", method.name)));
    context.notes.extend(notes);
    let trajectory = match &laplace.summary.learned {
        Some(LearnedReport::FixedMean(report)) => report.trajectory.clone(),
        _ => Vec::new(),
    };
    Ok(Found {
        name: method.name.clone(),
        mean: predicted,
        deviation,
        noise_variance,
        precision: precisions[0],
        trajectory,
        numbers,
    })
}

/// Mean absolute second difference along the grid.
fn roughness(values: &[f64]) -> f64 {
    mean(values.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()))
}

/// Trains the network, fits every method, compares.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let reference = match &settings.reference {
        None => 0,
        Some(name) => settings.methods.iter().position(|m| m.name == *name).ok_or_else(|| {
            ExperimentError::Setting(format!("`reference` is `{name}`, but no method has this name"))
        })?,
    };
    if settings.methods.is_empty() {
        return refused("there is no [[method]]");
    }
    let toy = settings.data.make(context.seed)?;
    let (network, facts) = settings.training.train(&settings.network, &toy.examples(), Loss::Mse, context)?;
    let mut found = Vec::new();
    for method in &settings.methods {
        let one = fitted(method, (settings.initial_precision, &found), &network, &toy, context)?;
        found.push(one);
    }
    let (wanted, others) = (found[reference].deviation.clone(), found[reference].mean.clone());
    let mut out = Measured { facts, ..Measured::default() };
    for one in &mut found {
        let ratios: Vec<f64> = one.deviation.iter().zip(&wanted).map(|(a, b)| (a / b) * (a / b)).collect();
        let logs: Vec<f64> = ratios.iter().map(|r| r.ln().abs()).collect();
        one.numbers["gap_ratio"] = toy.mean_in_gaps(&ratios).into();
        one.numbers["log_ratio"] = mean(logs).into();
        one.numbers["mean_distance"] = squared_error(&one.mean, &others).sqrt().into();
        out.numbers["methods"][&one.name] = one.numbers.clone();
        out.series[&one.name] =
            json!({"mean": one.mean, "latent_deviation": one.deviation, "inducing_points": one.trajectory});
    }
    out.series["grid"] = json!(toy.grid);
    let columns = [
        ("prior_deviation", "prior σ (first group)"),
        ("noise_variance", "noise σ²"),
        ("effective_dimension", "effective dimension"),
        ("log_evidence", "log evidence"),
        ("data_deviation", "σ at data"),
        ("gap_deviation", "σ in gaps"),
        ("mean_deviation", "σ on grid"),
        ("gap_ratio", "variance in gaps / reference"),
        ("squared_error", "training squared error"),
        ("seconds", "seconds"),
    ];
    let names = settings.methods.iter().map(|m| m.name.as_str());
    let caption = format!(
        "σ: standard deviation of the function, noise apart. Reference: {}. Gaps: stretches without data between training inputs.",
        settings.methods[reference].name
    );
    let title = "Error bars by method";
    out.tables.push(NumberTable::by_name(title, "method", "methods", names, &columns, &caption));
    out.figures = figures(settings, &toy, &found);
    Ok(out)
}

fn figures(settings: &Settings, toy: &Toy, found: &[Found]) -> Vec<Item> {
    let panels = found
        .iter()
        .map(|one| {
            TitledPosterior::new(one.name.clone(), toy.panel(&one.mean, &one.deviation, one.noise_variance))
        })
        .collect();
    let mut items = vec![
        PosteriorPanels::new(
            "Posteriors",
            "y",
            panels,
            "Mean with two standard deviations: of the function (dark) and of new observations (light).",
        )
        .into(),
    ];
    let lines = |values: &dyn Fn(&Found) -> Vec<f64>| {
        let line = |one: &Found| Line::new(one.name.clone(), toy.grid.clone(), values(one));
        found.iter().map(line).collect::<Vec<Line>>()
    };
    items.push(
        Curves::new(
            "Standard deviation of the function",
            "x",
            "standard deviation",
            lines(&|one| one.deviation.clone()),
        )
        .logarithmic(false, true)
        .into(),
    );
    items.extend(found.iter().filter(|one| one.trajectory.len() > 1).map(|one| {
        let points = one.trajectory[0].1.len();
        let line = |m: usize| {
            let at = |t: &(usize, Vec<f64>)| (t.0 as f64, t.1[m]);
            let (x, y) = one.trajectory.iter().map(at).unzip();
            Line::new(format!("point {}", m + 1), x, y)
        };
        let title = format!("{}: inducing points", one.name);
        Curves::new(title, "step", "x", (0..points).map(line).collect()).into()
    }));
    if settings.methods.iter().any(|m| m.mean == MeanName::Linear) {
        items.push(Curves::new("Predictive means", "x", "mean", lines(&|one| one.mean.clone())).captioned("The linear model's mean interpolates as its Jacobian features do; the network's is smoother.").into());
    }
    items
}
