//! What is trained under the likelihood itself: features, or means and covariances that are free of each other.

use super::events::{self, Nodes};
use super::journal::Journal;
use super::observed::Observed;
use super::outcome::Inferred;
use super::search::SearchRecord;
use crate::method::deep::{self, Columns, Targets, Trained};
use crate::method::large::check_numbers;
use crate::method::training::FoundSearch;
use crate::method::{LowRank, gvi};
use crate::options::{GviOptions, InferenceName};
use crate::output::marginal;
use crate::rows::Split;
use crate::{
    FeatureSummary, FitRequest, FitStage, Hyperparameter, Method, ModelError, Target, VariationSummary,
};
use faer::Mat;
use posterior_gp::Observations;
use posterior_gp::gaussianised::GaussianLabels as RawGaussianLabels;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_optim::{Observer, Parameters as _};
use std::sync::Arc;

/// Added to counts before their logarithm is taken, and the pseudo-count of pseudo-targets.
const PSEUDO_COUNT: f64 = 0.1;

/// Learns features: one network for all functions, which differ in their weights.
///
/// Training is that of numbers (`deep`), with the likelihood's expectations in the place of Gaussian noise: several ways, of which rows that are set aside choose one by their log predictive density. Two things are
/// other. The posterior of the weights has no closed form, and a Gaussian that the bound of all rows prefers stands for it. And beside the model stands, where rows were held back to judge it by, a plain process of few rows without learned features.
pub(crate) fn features(
    observed: &Observed,
    (request, method): (&FitRequest, &Method),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    check_numbers(request, method)?;
    let level = level(observed);
    let Split { train, validation, training_duplicates, .. } =
        observed.set_aside("deep kernels need", request.seed)?;
    let rows = |rows: &[usize], nodes: Nodes| -> Result<Observations, ModelError> {
        let own = observed.data.select(rows)?;
        match observed.target {
            Target::Events { .. } => Ok(events::rows(&own, nodes, request.seed)?),
            _ => raised(own, level),
        }
    };
    let (train, aside) = (rows(&train, Nodes::Train)?, rows(&validation, Nodes::Aside)?);
    let names = observed.feature_names();
    let targets = match observed.target {
        Target::Events { .. } => Targets::Events,
        _ => Targets::Labels(&*observed.likelihood),
    };
    let columns = Columns { names: &names, standardisation: &observed.standardisation };
    let task = deep::Task { request, method, columns, rows: (&train, &aside), training_duplicates, targets };
    let left = left_for_training(journal);
    let trained = task.train(left, (&mut journal.keeping(), observer))?;
    ModelError::heed(trained.reason)?;
    let mut likelihood = observed.likelihood.clone();
    likelihood.set_values(&trained.posterior.likelihood().values());
    let source = format!("{} rows that were set aside", trained.summary.validation_rows);
    let told = told(&trained, source, Hyperparameter::of(&likelihood), Vec::new());
    let Trained { posterior, summary: mut learned, objective, resumed_from, .. } = trained;
    let predictor = Arc::new(LowRank { posterior, level: Some(level) });
    let mut expected_events = None;
    if matches!(observed.target, Target::Events { .. }) {
        expected_events = Some(events::expected(&*predictor, observed, request.seed)?);
        // Nodes are no rows of anybody's: what is told is told for each event.
        let (rows, events) = (aside.rows(), validation.len());
        learned.validation_rows = events;
        for tried in &mut learned.tried {
            let validation_scores = tried.validation_scores.iter_mut().map(|look| &mut look.nll);
            let again = tried.refitted_nll.as_mut();
            for nll in validation_scores
                .chain([&mut tried.nll, &mut tried.first_nll])
                .chain(again)
                .filter(|nll| **nll < f64::MAX)
            {
                *nll = events::nats_for_each_event(*nll, rows, events);
            }
        }
    }
    let summary = FeatureSummary { learned, level, objective, resumed_from, expected_events, plain: None };
    let inferred = Inferred::new(InferenceName::Variational, predictor, likelihood, told);
    Ok(Inferred { features: Some(summary), ..inferred })
}

/// What is to be told of training.
fn told<P, S>(
    trained: &Trained<P, S>,
    source: String,
    hyperparameters: Vec<Hyperparameter>,
    at_bounds: Vec<(String, f64)>,
) -> SearchRecord {
    let Trained { hyperpriors, steps, reason, jitter, .. } = trained;
    let ended = FoundSearch::new(Vec::new(), (*reason, *steps, *steps), *jitter, at_bounds);
    SearchRecord { hyperparameters, hyperpriors: hyperpriors.clone(), source, ended }
}

/// Seconds that training may take: a tenth of what is left is for the plain process beside it.
fn left_for_training(journal: &Journal) -> Option<f64> {
    journal.left().map(|left| (0.9 * left).max(f64::MIN_POSITIVE))
}

/// What the function is where inputs say nothing.
fn level(observed: &Observed) -> f64 {
    if let Some(level) = events::level(&observed.target) {
        return level;
    }
    let marginal = marginal(&observed.target, &observed.targets(), observed.data.offsets());
    match (&observed.target, &observed.likelihood) {
        // Half a row of the other kind is the least that is known of so many.
        (Target::Classes { .. }, OutputLikelihood::Bernoulli(_)) => {
            let least = 0.5 / observed.rows() as f64;
            let yes = marginal[1].clamp(least, 1.0 - least);
            (yes / (1.0 - yes)).ln()
        }
        // Of no counts at all as well.
        (Target::Counts { .. }, _) => marginal[0].max(0.5 / observed.rows() as f64).ln(),
        _ => 0.0,
    }
}

/// Rows whose latent values begin at a level.
fn raised(data: Observations, level: f64) -> Result<Observations, ModelError> {
    let own = data.offsets().map(<[f64]>::to_vec);
    let offsets =
        own.map_or_else(|| vec![level; data.rows()], |own| own.iter().map(|offset| offset + level).collect());
    Ok(data.with_offsets(offsets)?)
}

/// Trains a mean and a covariance of their own for each function.
///
/// What the prior is learned from are numbers that stand for labels: one target for each function, fitted by least squares under a noise that is learned with the kernel (of classes this is one-hot regression by pseudo-targets of
/// each class). Training is that of numbers with Gaussian noise (`gvi`), with the likelihood's energies in the place of squares.
pub(crate) fn variation(
    observed: &Observed,
    (request, options): (&FitRequest, &GviOptions),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    check_numbers(request, &request.method)?;
    let Split { train, validation, training_duplicates, .. } =
        observed.set_aside("--method gvi needs", request.seed)?;
    let (train, aside) = (observed.data.select(&train)?, observed.data.select(&validation)?);
    let numbers = numbers(&observed.likelihood, &train)?;
    let names = observed.feature_names();
    let columns = Columns { names: &names, standardisation: &observed.standardisation };
    let rows = (&train, &aside);
    let likelihood = &*observed.likelihood;
    let task =
        gvi::Task { request, options, columns, rows, training_duplicates, likelihood, numbers: &numbers };
    let left = left_for_training(journal);
    let trained = task.train(left, (&mut journal.keeping(), observer))?;
    ModelError::heed(trained.reason)?;
    let mut likelihood = observed.likelihood.clone();
    likelihood.set_values(&trained.posterior.likelihood().values());
    let prior = trained.posterior.reference(0).posterior().model();
    let mut hyperparameters = Hyperparameter::of(prior);
    let left_out = ["noise_variance", "mean.constant", "map.weights"];
    hyperparameters.retain(|own| !left_out.contains(&own.name.as_str()));
    hyperparameters.extend(Hyperparameter::of(&likelihood));
    let of_prior = &trained.summary.prior;
    let told = told(&trained, gvi::source(of_prior), hyperparameters, of_prior.at_bounds.clone());
    let Trained { posterior, summary, objective, resumed_from, .. } = trained;
    let summary = VariationSummary { learned: summary, objective, resumed_from, plain: None };
    let inferred = Inferred::new(InferenceName::Variational, Arc::new(posterior), likelihood, told);
    Ok(Inferred { variation: Some(summary), ..inferred })
}

/// Rows with a number for each function in the place of labels: pseudo-targets of classes, events and counts; logarithms of overdispersed counts; numbers themselves.
fn numbers(likelihood: &OutputLikelihood, train: &Observations) -> Result<Observations, ModelError> {
    let n = train.rows();
    let offset = |i: usize| train.offsets().map_or(0.0, |offsets| offsets[i]);
    let targets = match likelihood {
        OutputLikelihood::Bernoulli(_) | OutputLikelihood::Categorical(_) | OutputLikelihood::Poisson(_) => {
            let gaussian_labels = Gaussianised::new(Matching::default(), PSEUDO_COUNT)?;
            RawGaussianLabels::of(likelihood, &gaussian_labels, train)?.targets
        }
        OutputLikelihood::RobustMax(robust) => {
            let softmax = OutputLikelihood::Categorical(Categorical::new(robust.classes())?);
            let gaussian_labels = Gaussianised::new(Matching::default(), PSEUDO_COUNT)?;
            RawGaussianLabels::of(&softmax, &gaussian_labels, train)?.targets
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
