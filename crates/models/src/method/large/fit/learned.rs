//! Learned features, and what a plain process says beside them.
//!
//! Features that are learned can fit anything, and on few rows an exact process under a kernel from a book is often better: whoever asks for the first is told of the second.

use super::Fitting;
use super::hyperparameters::initial;
use super::judge::HeldBack;
use crate::hyperparameter::FunctionUnits;
use crate::method::training::{Allowance, Found, PLAIN_ROWS, ScalableFit, Watched};
use crate::options::{EvidenceOptions, Limits, MethodName, PriorSettings};
use crate::record::NOT_COMPARED;
use crate::rows::worse_by;
use crate::{FitRequest, FitStage, Method, ModelError, Prepared, TriedMethod};
use posterior_gp::iterative::Blocks;
use posterior_gp::{RowSource, exact};
use posterior_optim::Reason;
use std::time::Instant;

/// The share of a run's time that is kept for it.
const PLAIN_SHARE: f64 = 0.1;

/// What trains, within so many seconds where there is a limit.
pub(crate) type Train<D> = fn(
    &Prepared<D>,
    (&FitRequest, &Method),
    Option<f64>,
    Watched<'_, '_, '_>,
) -> Result<ScalableFit, ModelError>;

/// What `train` learns, which is called `what`; judged on the rows held back, beside an exact process of some rows.
pub(crate) fn fit<D: RowSource>(
    fitting: &mut Fitting<'_, '_, D>,
    method: &Method,
    what: &str,
    train: Train<D>,
) -> Result<ScalableFit, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    // What is left over is for the plain process, or nobody could say that training was not worth its while.
    let seconds = allowance.left().map(|left| if held.is_some() { (1.0 - PLAIN_SHARE) * left } else { left });
    let mut found = Found::default();
    let watched = (&mut fitting.checkpoints.keeping(&mut found), &mut *fitting.observer);
    let fit = train(prepared, (request, method), seconds, watched)?;
    let Some(held) = held.filter(|_| fit.reason != Reason::Interrupted) else { return Ok(fit) };
    let predictions = held.predictions(&*fit.predictor)?;
    let mut check = held.check(&predictions, None)?;
    let worth = allowance.left().is_none_or(|left| left > 0.0);
    if worth && let Some((tried, surprises)) = plain(fitting, held) {
        if let Some((mean, error)) = worse_by(&held.surprises(&predictions), &surprises) {
            check.warnings.push(format!(
                "an exact process of {} predicts the rows held back better, by {mean:.3} +- {error:.3} nats a row: {what} are not worth their while here, leave --method out",
                tried.outcome,
            ));
        }
        check.tried.push(tried);
    } else if !worth {
        check.warnings.push(NOT_COMPARED.into());
    }
    Ok(ScalableFit { check: Some(check), ..fit })
}

/// An exact process of some rows, and how surprised it is by each row held back; None where it cannot be had (no memory, an interruption, a kernel that does not fit the columns): it is a comparison and no part of the fit.
fn plain<D: RowSource>(fitting: &mut Fitting<'_, '_, D>, held: &HeldBack) -> Option<(TriedMethod, Vec<f64>)> {
    let Fitting { prepared, request, allowance, .. } = *fitting;
    let started = Instant::now();
    let size = PLAIN_ROWS.min(prepared.data.rows());
    let rows = Blocks { uniform: 1, neighbourhoods: 0, size, seed: request.seed }
        .uniform_rows(prepared.data.rows(), 0);
    // Under what it would be without anything said.
    let request = FitRequest {
        seed: request.seed,
        prior: PriorSettings { noise_floor: request.prior.noise_floor, ..PriorSettings::default() },
        limits: Limits { memory: request.limits.memory, ..Limits::default() },
        ..FitRequest::default()
    };
    let model = initial(prepared, &request).ok()?;
    let mut options = request.fit_options(&EvidenceOptions::default());
    options.hyperpriors = request.hyperpriors_of(&model, (prepared.data.widths()[0], FunctionUnits::Target));
    options.steps.time = Allowance::duration(allowance.left());
    let data = prepared.data.gather(&rows).ok()?;
    let fitted =
        exact::fit(model, data, &options, &mut |progress, _| (fitting.observer)(progress, &FitStage::Search))
            .ok()?;
    if fitted.reason == Reason::Interrupted {
        return None;
    }
    let predictions = held.predictions(&fitted.posterior).ok()?;
    let tried = TriedMethod {
        scores: held.scores(&predictions).ok(),
        seconds: started.elapsed().as_secs_f64(),
        ..TriedMethod::untried(MethodName::Exact, format!("{size} rows"))
    };
    Some((tried, held.surprises(&predictions)))
}
