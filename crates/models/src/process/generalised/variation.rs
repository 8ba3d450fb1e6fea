//! A mean and a covariance of their own for each function, under the likelihood itself.
//!
//! What the prior is learned from are numbers that stand for labels: one target for each function, fitted by least squares under a noise that is learned with the kernel (of classes this is one-hot regression by stand-ins of
//! each class). Training is that of numbers with Gaussian noise (`gvi`), with the likelihood's energies in the place of squares.

use super::features::left_for_training;
use super::header::VariationSummary;
use super::inferred::Inferred;
use super::journal::Journal;
use super::observed::Observed;
use super::searching::Told;
use crate::options::InferenceName;
use crate::process::deep::Columns;
use crate::process::gvi::{Task, Trained, source};
use crate::process::scalable::check_numbers;
use crate::process::{FitStage, Hyperparameter};
use crate::rows::Split;
use crate::{FitRequest, Method, ModelError};
use faer::Mat;
use posterior_gp::Observations;
use posterior_gp::gaussianised::StandIns as RawStandIns;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_optim::{Observer, Parameters as _, Reason};
use std::sync::Arc;

/// Added to counts before their logarithm is taken, and the pseudo-count of stand-ins.
const PSEUDO_COUNT: f64 = 0.1;

/// Fits.
pub(super) fn fit(
    observed: &Observed,
    (request, method): (&FitRequest, &Method),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    check_numbers(request, method)?;
    let Some(options) = method.gvi() else {
        return Err(ModelError::NotIterative { method: method.name().as_str() });
    };
    let Split { train, validation, twins, .. } = observed.set_aside("--method gvi needs", request.seed)?;
    let (train, aside) = (observed.data.select(&train)?, observed.data.select(&validation)?);
    let numbers = numbers(&observed.likelihood, &train)?;
    let names = observed.feature_names();
    let columns = Columns { names: &names, standardisation: &observed.standardisation };
    let rows = (&train, &aside);
    let likelihood = &*observed.likelihood;
    let task = Task { request, options, columns, rows, twins, likelihood, numbers: &numbers };
    let left = left_for_training(request, journal);
    let trained = task.train(left, (journal, observer))?;
    let Trained { posterior, summary, hyperpriors, steps, resumed_from, reason, jitter, objective } = trained;
    if reason == Reason::Interrupted {
        return Err(ModelError::Interrupted);
    }
    let mut likelihood = observed.likelihood.clone();
    likelihood.set_values(&posterior.likelihood().values());
    let prior = posterior.reference(0).posterior().model();
    let mut hyperparameters = Hyperparameter::of(prior);
    let left_out = ["noise_variance", "mean.constant", "map.weights"];
    hyperparameters.retain(|own| !left_out.contains(&own.name.as_str()));
    hyperparameters.extend(Hyperparameter::of(&likelihood));
    let told = Told {
        hyperparameters,
        hyperpriors,
        source: source(&summary.prior),
        reason,
        steps,
        evaluations: steps,
        largest_jitter: jitter,
        at_bounds: summary.prior.at_bounds.clone(),
    };
    let summary = VariationSummary { learned: summary, objective, resumed_from, plain: None };
    let inferred = Inferred::new(InferenceName::Variational, Arc::new(posterior), likelihood, told);
    Ok(Inferred { variation: Some(summary), ..inferred })
}

/// Rows with a number for each function in the place of labels: stand-ins of classes, events and counts; logarithms of overdispersed counts; numbers themselves.
fn numbers(likelihood: &OutputLikelihood, train: &Observations) -> Result<Observations, ModelError> {
    let n = train.rows();
    let offset = |i: usize| train.offsets().map_or(0.0, |offsets| offsets[i]);
    let targets = match likelihood {
        OutputLikelihood::Bernoulli(_) | OutputLikelihood::Categorical(_) | OutputLikelihood::Poisson(_) => {
            let stand_ins = Gaussianised::new(Matching::default(), PSEUDO_COUNT)?;
            RawStandIns::of(likelihood, &stand_ins, train)?.targets
        }
        OutputLikelihood::RobustMax(robust) => {
            let softmax = OutputLikelihood::Categorical(Categorical::new(robust.classes())?);
            let stand_ins = Gaussianised::new(Matching::default(), PSEUDO_COUNT)?;
            RawStandIns::of(&softmax, &stand_ins, train)?.targets
        }
        OutputLikelihood::NegativeBinomial(_) => {
            Mat::from_fn(n, 1, |i, _| (train.targets()[(i, 0)] + PSEUDO_COUNT).ln() - offset(i))
        }
        _ => Mat::from_fn(n, likelihood.outputs(), |i, c| {
            let targets = train.targets();
            if c < targets.ncols() { targets[(i, c)] - offset(i) } else { 0.0 }
        }),
    };
    Ok(Observations::new(train.inputs().to_owned(), targets, None)?)
}
