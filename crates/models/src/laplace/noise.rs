//! The likelihood of a request, and that of the plain network: noise to begin with comes from the residuals.

use super::fit::Observer;
use super::request::{LaplaceRequest, LikelihoodKind};
use crate::ModelError;
use crate::network::TrainingRecord;
use posterior_laplace::{FitOptions, LaplaceError, NoiseModel, Stage};
use posterior_likelihoods::{
    Bernoulli, Categorical, Gaussian, HeteroscedasticGaussian, Link, OutputLikelihood, Poisson,
};
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Network, Precision};
use posterior_optim::Signal;

/// Refuses what is no (positive) number.
pub(crate) fn check_positive(what: &str, value: f64, zero: bool) -> Result<(), ModelError> {
    if value.is_finite() && (value > 0.0 || (zero && value == 0.0)) {
        return Ok(());
    }
    Err(ModelError::Request(format!(
        "{what} is {value}; it must be a {}number",
        if zero { "" } else { "positive " }
    )))
}

/// The likelihood of a request.
pub(crate) fn likelihood<T: Precision>(
    request: &LaplaceRequest,
    network: &Network<T>,
    examples: &dyn Examples<T>,
    training: Option<&TrainingRecord>,
    observer: Observer<'_>,
) -> Result<OutputLikelihood, ModelError> {
    let outputs: usize = network.graph().output_shape().iter().product();
    if request.initial_noise.is_some() && request.likelihood != LikelihoodKind::Gaussian {
        return Err(ModelError::Request("only Gaussian noise has a variance to begin with".into()));
    }
    if request.link != Link::Logit && request.likelihood != LikelihoodKind::Bernoulli {
        return Err(ModelError::Request("only events have a link to choose".into()));
    }
    Ok(match request.likelihood {
        LikelihoodKind::Categorical => {
            if outputs < 2 {
                let problem = "the network has one output: two classes by one logit are `bernoulli` events";
                return Err(ModelError::Request(problem.into()));
            }
            OutputLikelihood::Categorical(Categorical::new(outputs)?)
        }
        LikelihoodKind::Bernoulli => OutputLikelihood::Bernoulli(Bernoulli::new(outputs, request.link)?),
        LikelihoodKind::Poisson => OutputLikelihood::Poisson(Poisson::new(outputs)?),
        LikelihoodKind::Heteroscedastic => {
            if !outputs.is_multiple_of(2) {
                let problem = format!(
                    "the network has {outputs} outputs; heteroscedastic noise needs a mean and a log variance for each target"
                );
                return Err(ModelError::Request(problem));
            }
            OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(outputs / 2)?)
        }
        LikelihoodKind::Gaussian => {
            let variances = match (request.initial_noise, training.map(|t| &t.noise_variance)) {
                (Some(v), _) => {
                    check_positive("the noise variance", v, false)?;
                    vec![v; outputs]
                }
                (None, Some(own))
                    if own.len() == outputs && own.iter().all(|v| v.is_finite() && *v > 0.0) =>
                {
                    own.clone()
                }
                _ => mean_squares(network, examples, outputs, observer)?,
            };
            OutputLikelihood::Gaussian(Gaussian::independent(variances)?)
        }
    })
}

/// Mean squared residuals of each output.
fn mean_squares<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    outputs: usize,
    observer: Observer<'_>,
) -> Result<Vec<f64>, ModelError> {
    let mut sums = vec![0.0; outputs];
    let count = examples.len();
    for range in posterior_linalg::tiles::pieces(count, 512) {
        let end = range.end;
        let (x, targets) = examples.batch(&range.collect::<Vec<_>>(), None);
        let f = network.forward(&x)?;
        let Targets::Values(y) = targets else {
            return Err(ModelError::Request(
                "Gaussian noise needs numbers as targets, these are classes".into(),
            ));
        };
        if y.len() != f.len() {
            let problem =
                format!("each example has {} target values, the network {outputs} outputs", y.row_len());
            return Err(ModelError::Request(problem));
        }
        for (i, (y, f)) in y.values().iter().zip(f.values()).enumerate() {
            sums[i % outputs] += (y.to_f64() - f.to_f64()).powi(2);
        }
        if observer(Stage::Noise, end, count) == Signal::Stop {
            return Err(LaplaceError::Interrupted.into());
        }
    }
    Ok(sums.into_iter().map(|s| (s / count.max(1) as f64).max(1e-12)).collect())
}

/// The least and the largest target of examples with one number each, in the network's units; None where there are several, or classes.
pub(crate) fn range_of_targets<T: Precision>(examples: &dyn Examples<T>) -> Option<[f64; 2]> {
    let mut range = [f64::INFINITY, f64::NEG_INFINITY];
    for rows in posterior_linalg::tiles::pieces(examples.len(), 4096) {
        let (_, targets) = examples.batch(&rows.collect::<Vec<_>>(), None);
        let Targets::Values(y) = targets else { return None };
        if y.row_len() != 1 {
            return None;
        }
        let numbers = y.values().iter().map(|v| v.to_f64());
        range = numbers.fold(range, |[least, largest], v| [least.min(v), largest.max(v)]);
    }
    Some(range)
}

/// The likelihood by which the plain network is judged: its best noise on the training data, unless noise is given.
pub(crate) fn plain_likelihood<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    observer: Observer<'_>,
) -> Result<OutputLikelihood, ModelError> {
    let gaussian = matches!(likelihood, OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_));
    if !gaussian || options.noise == NoiseModel::Fixed {
        return Ok(likelihood.clone());
    }
    let variances = mean_squares(network, examples, likelihood.outputs(), observer)?;
    Ok(OutputLikelihood::Gaussian(Gaussian::independent(variances)?))
}

/// A warning where outputs that should be logits look like probabilities: rows within [0, 1], which for classes sum to 1. A network may end in an operation that no graph shows as a softmax.
pub(crate) fn looks_like_probabilities<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
) -> Result<Vec<String>, ModelError> {
    let (classes, remedy) = match likelihood {
        OutputLikelihood::Categorical(_) => (true, "logarithms of them would do"),
        OutputLikelihood::Bernoulli(_) => (false, "log(p / (1 - p)) would do"),
        _ => return Ok(Vec::new()),
    };
    let count = examples.len().min(LOOKED_AT);
    let (x, _) = examples.batch(&(0..count).collect::<Vec<_>>(), None);
    let f = network.forward(&x)?;
    let within = f.values().iter().all(|v| (-1e-6..=1.0 + 1e-6).contains(&v.to_f64()));
    let one = |row: usize| (f.row(row).iter().map(|v| v.to_f64()).sum::<f64>() - 1.0).abs() < 1e-3;
    if count == 0 || !within || (classes && !(0..count).all(one)) {
        return Ok(Vec::new());
    }
    let what = if classes { "are between 0 and 1 and sum to 1" } else { "are between 0 and 1" };
    Ok(vec![format!(
        "WARNING: the outputs of the first {count} examples {what}: they look like probabilities, but are taken for logits, which flattens everything twice; export the network without what makes them \
         ({remedy})"
    )])
}

/// Examples whose outputs are looked at.
const LOOKED_AT: usize = 200;
