//! The Laplace approximation: the curvature at the posterior's mode, hyperparameters by its evidence.

use super::check::{Judged, crossed};
use super::journal::Journal;
use super::observed::Observed;
use super::outcome::Inferred;
use super::search::{SearchRecord, give};
use crate::latent::by_rows;
use crate::method::training::FoundSearch;
use crate::options::{ExactOptions, InferenceName};
use crate::output::marginal;
use crate::rows::Prints;
use crate::{CheckedOn, FitRequest, FitStage, Hyperparameter, Latent, ModeSummary, ModelError, Target};
use faer::Mat;
use posterior_gp::Observations;
use posterior_gp::exact::FitOptions;
use posterior_gp::laplace::{
    LaplaceEvaluation, LaplaceGp, LaplacePosterior, LatentPrediction, fit_laplace, laplace_evidence,
};
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Parameters};
use rand::seq::index;
use std::sync::Arc;

/// Fits.
pub(crate) fn fit(
    observed: &Observed,
    (request, asked): (&FitRequest, &ExactOptions),
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    let mut model = begun(observed, request)?;
    let learned = request.start.hyperparameters().is_none();
    give(request, &mut model)?;
    let mut options = request.search(
        &asked.evidence,
        &model,
        (observed.data.inputs().ncols(), observed.target.function_units()),
    );
    if request.validation.of_candidate {
        options.steps.steps = options.steps.steps.min(STEPS_OF_CANDIDATE);
    }
    let mut few = None;
    if request.validation.of_candidate && observed.rows() > ROWS_OF_CANDIDATE {
        let mut rng = Streams::new(request.seed).stream("model/laplace-candidate");
        let mut drawn = index::sample(&mut rng, observed.rows(), ROWS_OF_CANDIDATE).into_vec();
        drawn.sort_unstable();
        few = Some(observed.data.select(&drawn)?);
    }
    let data = few.as_ref().unwrap_or(&observed.data);
    let hyperpriors = options.hyperpriors.clone();
    let found = searched("all rows", &mut model, data, &options, (&mut *journal, &mut *observer))?;
    let LaplaceEvaluation { value, mode, .. } = laplace_evidence(&model, &observed.data, None)?;
    let (log_evidence, newton_steps) = (value, mode.newton_steps);
    let posterior = LaplacePosterior::new(model, &observed.data, Some(&mode.coefficients))?;
    let hyperparameters = Hyperparameter::of(posterior.model());
    let mut likelihood = observed.likelihood.clone();
    Hyperparameter::give(&hyperparameters, &mut likelihood);
    let judged = match observed.rows() {
        1 => None,
        _ => Some(left_out(observed, &posterior, &options, request, (journal, observer))?),
    };
    let told = SearchRecord {
        hyperparameters,
        hyperpriors,
        source: if learned { "Laplace's approximation of the evidence".into() } else { "given".into() },
        ended: found,
    };
    let summary = ModeSummary { log_evidence, newton_steps };
    let inferred = Inferred::new(InferenceName::Laplace, Arc::new(posterior), likelihood, told);
    Ok(Inferred { judged, mode: Some(summary), ..inferred })
}

/// The process of some rows before anything is learned of it.
fn begun(observed: &Observed, request: &FitRequest) -> Result<LaplaceGp, ModelError> {
    let mut kernel = request.prior.kernel.build(&observed.feature_names())?;
    observed.begin(&mut *kernel);
    let inputs = observed.data.inputs().ncols();
    Ok(LaplaceGp::new(kernel, request.prior.mean, observed.likelihood.clone_box(), inputs))
}

/// Hyperparameters of some rows, in an earlier run or now; the model has them afterwards.
fn searched(
    rows: &str,
    model: &mut LaplaceGp,
    data: &Observations,
    options: &FitOptions,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<FoundSearch, ModelError> {
    let start = model.clone();
    let found = journal.once(&format!("laplace, {rows}"), || {
        let found =
            fit_laplace(start, data, options, &mut |progress, _| observer(progress, &FitStage::Search))?;
        ModelError::heed(found.reason)?;
        let (values, ended) =
            (found.posterior.model().values(), (found.reason, found.steps, found.evaluations));
        Ok(FoundSearch::new(values, ended, found.largest_jitter, found.at_bounds))
    })?;
    model.set_values(&found.values);
    Ok(found)
}

/// Steps at most of a search that nobody asked for, and rows that it looks at.
const STEPS_OF_CANDIDATE: usize = 60;
const ROWS_OF_CANDIDATE: usize = 700;

/// Steps at most of a search on half of the rows.
const STEPS_OF_HALF: usize = 15;

/// Parts of the rows that are left out together, and rows from which there are such parts.
const FOLDS: u64 = 10;
const LEAST_OF_FOLDS: usize = 20;

/// Every row as a process of all rows but a tenth of them predicts it; equal rows (by their prints) are in one part. Where a likelihood is not log-concave, as Student's t is not, the closed form for rows that are left out thinks too well of them:
/// rows near to them would lie elsewhere without them. And where intervals go by the scores of these rows, the deviations that measure them have to be those of the same hyperparameters. Cost: a mode for each part.
fn by_folds(own: &LaplacePosterior, observed: &Observed, prints: &[u64]) -> Result<Latent, ModelError> {
    let n = observed.rows();
    let coefficients = own.coefficients();
    let (mut mean, mut variance) = (vec![0.0; n], vec![0.0; n]);
    for fold in 0..FOLDS {
        let (out, rest): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| prints[i] % FOLDS == fold);
        if out.is_empty() || rest.is_empty() {
            continue;
        }
        let start = Mat::from_fn(rest.len(), 1, |i, _| coefficients[(rest[i], 0)]);
        let others = LaplacePosterior::new(own.model().clone(), &observed.data.select(&rest)?, Some(&start))?;
        let found = others.predict(observed.data.select(&out)?.inputs())?;
        for (k, &i) in out.iter().enumerate() {
            (mean[i], variance[i]) = (found.mean[(k, 0)], found.covariance[k]);
        }
    }
    Ok(Latent::new(mean, variance, 1))
}

/// Scores of every row as the others predict it, about, under hyperparameters that its half had no part in.
fn left_out(
    observed: &Observed,
    posterior: &LaplacePosterior,
    options: &FitOptions,
    request: &FitRequest,
    (journal, observer): (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Judged, ModelError> {
    let truths = observed.targets();
    let rows: Vec<usize> = (0..observed.rows()).collect();
    let learned = request.start.hyperparameters().is_none();
    // Events may come twice at one place, and rows with a weight or an offset of their own are alike in more than these prints.
    let plain = observed.data.weights().is_none() && observed.data.offsets().is_none();
    let prints = Prints::of(&observed.data)?;
    let multiplicities = match observed.target {
        Target::Events { .. } => vec![1; rows.len()],
        _ if plain => prints.multiplicities(),
        _ => vec![1; rows.len()],
    };
    let folds = matches!(observed.target, Target::Numbers { .. }) && rows.len() >= LEAST_OF_FOLDS;
    let mut likelihood = observed.likelihood.clone();
    Hyperparameter::give(&Hyperparameter::of(posterior.model()), &mut likelihood);
    let closed_form = |half: &[usize]| {
        let mut model = posterior.model().clone();
        if learned && half.len() < rows.len() {
            // From the beginning: what all rows chose has seen the other half.
            let (name, half) = (format!("a part with row {}", half[0] + 1), observed.select(half)?);
            model = begun(&half, request)?;
            let mut options = FitOptions { restarts: 1, ..options.clone() };
            options.steps.steps = options.steps.steps.min(STEPS_OF_HALF);
            let kept = (&mut *journal, &mut *observer);
            searched(&name, &mut model, &half.data, &options, kept)?;
        }
        Hyperparameter::give(&Hyperparameter::of(&model), &mut likelihood);
        let own = LaplacePosterior::new(model, &observed.data, None)?;
        let LatentPrediction { mean, covariance, .. } =
            own.left_out(&observed.data, Some(&multiplicities))?;
        Ok(Latent::new(by_rows(&mean), covariance, mean.ncols()))
    };
    let latents = match folds {
        true => by_folds(posterior, observed, &prints.rows)?,
        false => crossed(observed, &rows, (learned, request.seed), closed_form)?,
    };
    let kind = (&observed.target, &likelihood);
    let offsets = observed.data.offsets();
    let known = marginal(&observed.target, &truths, offsets);
    Judged::of(CheckedOn::LeaveOneOut, latents, kind, &truths, (&known, offsets))
}
