//! Learned features, and what a plain process says beside them.
//!
//! Features that are learned can fit anything, and on few rows an exact process under a kernel from a book is often better: whoever asks for the first is told of the second.

use super::ScalableFit;
use super::bounds::Bounding;
use super::hyperparameters::{beliefs, initial};
use super::judge::HeldBack;
use crate::options::{EvidenceOptions, MethodName};
use crate::process::check::TriedMethod;
use crate::process::prepared::{FitStage, Prepared};
use crate::process::scalable::budget::Allowance;
use crate::process::scalable::checkpoint::CheckpointWriter;
use crate::process::scalable::sizes::PLAIN_ROWS;
use crate::rows::worse_by;
use crate::{FitRequest, Method, ModelError};
use posterior_gp::iterative::Blocks;
use posterior_gp::{RowSource, exact};
use posterior_optim::{Observer, Reason};
use std::time::Instant;

/// The share of a run's time that is kept for it.
const PLAIN_SHARE: f64 = 0.1;

/// What trains, within so many seconds where there is a limit.
pub(super) type Train<D> = fn(
    &Prepared<D>,
    (&FitRequest, &Method),
    Option<f64>,
    &mut CheckpointWriter,
    &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError>;

/// Features that `train` learns; judged on the rows held back, beside an exact process of some rows.
pub(super) fn fit<D: RowSource>(
    prepared: &Prepared<D>,
    (request, method): (&FitRequest, &Method),
    train: Train<D>,
    bounding: &Bounding<'_>,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ScalableFit, ModelError> {
    let Bounding { held, allowance, .. } = *bounding;
    // What is left over is for the plain process, or nobody could say that training was not worth its while.
    let seconds = allowance.left().map(|left| if held.is_some() { (1.0 - PLAIN_SHARE) * left } else { left });
    let fit = train(prepared, (request, method), seconds, checkpoints, observer)?;
    let Some(held) = held.filter(|_| fit.reason != Reason::Interrupted) else { return Ok(fit) };
    let predictions = held.predictions(&*fit.predictor)?;
    let mut check = held.check(&predictions, None)?;
    let worth = allowance.left().is_none_or(|left| left > 0.0);
    if worth && let Some((tried, surprises)) = plain(prepared, request, held, allowance, observer) {
        if let Some((mean, error)) = worse_by(&held.surprises(&predictions), &surprises) {
            check.warnings.push(format!(
                "an exact process of {} predicts the rows held back better, by {mean:.3} +- {error:.3} nats a row: {} not worth their while here, leave --method out",
                tried.outcome,
                if method.gvi().is_some() { "this mean and covariance are" } else { "these features are" }
            ));
        }
        check.tried.push(tried);
    } else if !worth {
        check.warnings.push("no plain process was fitted to compare with, since the time was used up: whether this was worth its while is not known".into());
    }
    Ok(ScalableFit { check: Some(check), ..fit })
}

/// An exact process of some rows, and how surprised it is by each row held back; None where it cannot be had (no memory, an interruption, a kernel that does not fit the columns): it is a comparison and no part of the fit.
fn plain<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
    held: &HeldBack,
    allowance: &Allowance,
    observer: &mut Observer<'_, FitStage>,
) -> Option<(TriedMethod, Vec<f64>)> {
    let started = Instant::now();
    let size = PLAIN_ROWS.min(prepared.data.rows());
    let rows = Blocks { uniform: 1, neighbourhoods: 0, size, seed: request.seed }
        .uniform_rows(prepared.data.rows(), 0);
    // Under what it would be without anything said.
    let request = FitRequest {
        noise_floor: request.noise_floor,
        memory: request.memory,
        seed: request.seed,
        ..FitRequest::default()
    };
    let model = initial(prepared, &request).ok()?;
    let mut options = request.fit_options(&EvidenceOptions::default());
    options.hyperpriors = beliefs(prepared, &request, &model);
    options.steps.time = Allowance::duration(allowance.left());
    let data = prepared.data.gather(&rows).ok()?;
    let fitted =
        exact::fit(model, data, &options, &mut |progress, _| observer(progress, &FitStage::Search)).ok()?;
    if fitted.reason == Reason::Interrupted {
        return None;
    }
    let predictions = held.predictions(&fitted.posterior).ok()?;
    let tried = TriedMethod {
        method: MethodName::Exact.to_string(),
        scores: held.scores(&predictions).ok(),
        recalibrated_nll: None,
        seconds: started.elapsed().as_secs_f64(),
        predicted_seconds: None,
        reached_seconds: None,
        outcome: format!("{size} rows"),
    };
    Some((tried, held.surprises(&predictions)))
}
