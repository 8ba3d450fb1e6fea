//! Losses as likelihoods, and prior precisions as weight decay.

use crate::LaplaceError;
use crate::problem::Data;
use crate::run::{Run, Stage};
use posterior_likelihoods::{Categorical, Gaussian, HeteroscedasticGaussian, OutputLikelihood};
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::train::{Examples, Loss, Targets, TrainOptions};
use posterior_networks::{Graph, Network, Precision, Selection};
use posterior_optim::{Rule, Signal};
use posterior_tangent::{Batch, batch_size, doubles, ranges};

/// The likelihood whose negative logarithm a loss is, with noise of these relative variances where the noise is homoscedastic.
pub(super) fn likelihood<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    loss: Loss,
    relative: &[f64],
) -> Result<OutputLikelihood, LaplaceError> {
    let outputs: usize = network.graph().output_shape().iter().product();
    let targets = targets(examples)?;
    Ok(match loss {
        Loss::CrossEntropy if outputs == 1 => {
            let problem = "hyperparameters are learned beside the weights of classifiers with an output for each class: give the network two, or fit it afterwards (likelihood bernoulli)";
            return Err(LaplaceError::Request(problem.into()));
        }
        Loss::CrossEntropy => OutputLikelihood::Categorical(Categorical::new(outputs)?),
        Loss::Gaussianised(_) | Loss::OneHot => {
            return Err(LaplaceError::Request(format!(
                "the loss {} is no likelihood of labels, whose evidence could be learned from while training: use cross-entropy, or fit the network afterwards",
                loss.name()
            )));
        }
        Loss::Gaussian if 2 * targets == outputs => {
            OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(targets)?)
        }
        Loss::Gaussian | Loss::Mse if targets == outputs => {
            OutputLikelihood::Gaussian(Gaussian::independent(relative.to_vec())?)
        }
        Loss::Gaussian | Loss::Mse => {
            return Err(LaplaceError::Request(format!(
                "the network has {outputs} outputs and there are {targets} targets"
            )));
        }
    })
}

/// Numbers of one example's target.
fn targets<T: Precision>(examples: &dyn Examples<T>) -> Result<usize, LaplaceError> {
    if examples.is_empty() {
        return Err(LaplaceError::Request("there are no examples to learn from".into()));
    }
    Ok(match examples.batch(&[0], None).1 {
        Targets::Values(values) => values.row_len(),
        Targets::Classes(_) => 1,
    })
}

/// Variances of the outputs' residuals relative to their geometric mean.
pub(super) fn relative_variances<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
) -> Result<Vec<f64>, LaplaceError> {
    let outputs = likelihood.outputs();
    let mut sums = vec![0.0; outputs];
    for range in ranges(0, examples.len(), batch_size(network, 1)) {
        let batch = Batch::read(examples, range, likelihood)?;
        let f = doubles(network.forward(&batch.x)?.values());
        for (i, (f, y)) in f.iter().zip(&batch.targets).enumerate() {
            sums[i % outputs] += (f - y) * (f - y);
        }
    }
    // A target that is met exactly has some noise all the same.
    let floor = 1e-12 * sums.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let logs: Vec<f64> = sums.iter().map(|s| s.max(floor).ln()).collect();
    let mean = logs.iter().sum::<f64>() / outputs as f64;
    Ok(logs.iter().map(|l| (l - mean).exp()).collect())
}

/// The gradient of the negative log-likelihood in the selected weights; None when it was interrupted.
pub(super) fn gradient<T: Precision>(
    data: &Data<'_, T>,
    selection: &Selection,
    run: &mut Run<'_>,
) -> Result<Option<Vec<f64>>, LaplaceError> {
    let &Data { network, examples, likelihood, .. } = data;
    debug_assert!(is_gaussian(likelihood));
    let mut sum = vec![0.0; selection.len()];
    for range in ranges(0, examples.len(), batch_size(network, 1)) {
        let batch = Batch::read(examples, range, likelihood)?;
        let trace = network.trace(batch.x.clone())?;
        let mut cotangents = trace.output().clone();
        let mut slope = vec![0.0; likelihood.outputs()];
        for (i, place) in cotangents.values_mut().chunks_exact_mut(slope.len()).enumerate() {
            likelihood.gradient(batch.target(i), &doubles(place), &mut slope);
            place.iter_mut().zip(&slope).for_each(|(p, s)| *p = T::from_f64(-s));
        }
        let own = trace.vjp(selection, &cotangents)?;
        sum.iter_mut().zip(own.values()).for_each(|(s, g)| *s += g.to_f64());
        let end = batch.range.end;
        if run.tell(Stage::Mode, end, examples.len()) == Signal::Stop && end < examples.len() {
            return Ok(None);
        }
    }
    Ok(Some(sum))
}

/// Weight decay of each trainable parameter under a prior; parameters without one keep that of the rule.
///
/// Plain steps of size `r` do not follow a decay above `1 / r`: there it ends, which holds the weight at zero as nearly as the rule can.
pub(super) fn decays(
    graph: &Graph,
    selection: &Selection,
    prior: &Prior,
    noise: f64,
    options: &TrainOptions,
    examples: usize,
) -> Vec<f64> {
    let per_precision = decay_of_unit_precision(graph, noise, options.loss, examples);
    let limit = match options.rule {
        Rule::Sgd { .. } => 1.0 / options.learning_rate,
        Rule::Adam { .. } | Rule::AdaBelief { .. } | Rule::RmsProp { .. } => f64::MAX,
    };
    let of = |parameter: usize| {
        let part = selection.parts().iter().find(|p| p.parameter == parameter)?;
        let group = prior.group_of(part.offset..part.offset + part.length)?;
        Some((prior.precisions()[group] * per_precision).min(limit))
    };
    let all = Selection::all(graph);
    all.parts().iter().map(|p| of(p.parameter).unwrap_or(options.rule.weight_decay().0)).collect()
}

/// `1 / n`, or `2 s^2 / (n C)` for the mean square.
pub(super) fn decay_of_unit_precision(graph: &Graph, noise: f64, loss: Loss, examples: usize) -> f64 {
    let outputs: usize = graph.output_shape().iter().product();
    match loss {
        Loss::Mse => 2.0 * noise / (examples * outputs) as f64,
        Loss::Gaussian | Loss::CrossEntropy | Loss::Gaussianised(_) | Loss::OneHot => 1.0 / examples as f64,
    }
}
