//! Scales and the one precision of the g-prior.

use super::infer::{PriorReport, Saved};
#[cfg(doc)]
use super::options::ImagePriorChoice;
use super::options::{UncertaintyOptions, scale_estimate};
use crate::TomographyError;
use crate::linearised::{
    GPrior, GPriorFit, GPriorOptions, GPriorSolver, LeadingDirections, MeasuredTangent, PriorRoot, Scales,
    WeightPrior, scales,
};
use crate::measured::ObservedPrior;
use crate::running::{Keeper, SavedTurns, Stage, Watch};
use posterior_linalg::solve::{Preconditioner, SolveError};
use posterior_linear::LinearError;
use posterior_linear::sampled::SampledError;
use posterior_optim::Signal;
use posterior_store::Tensors;

/// Interruptions by their own name.
fn named(error: TomographyError) -> TomographyError {
    match error {
        TomographyError::Sampled(SampledError::Linear(LinearError::Interrupted))
        | TomographyError::Linear(LinearError::Interrupted) => TomographyError::Interrupted,
        other => other,
    }
}

/// What was found.
pub(super) struct Found {
    pub(super) fit: GPriorFit,
    pub(super) scales: Scales,
    pub(super) report: PriorReport,
    /// Directions for a precision of 1, where they were needed on the way.
    pub(super) leading: Option<LeadingDirections>,
}

/// Directions of the preconditioner for a precision of 1, of which those for others are multiples.
pub(super) fn leading(
    measured: &MeasuredTangent<'_, f32>,
    scales: &Scales,
    options: &UncertaintyOptions,
    watch: &mut Watch<'_>,
) -> Result<LeadingDirections, TomographyError> {
    if watch(Stage::Directions, 0, options.rank, None) == Signal::Stop {
        return Err(TomographyError::Interrupted);
    }
    let root = PriorRoot::new(measured.tangent(), WeightPrior::Independent(scales.values.clone()))?;
    let observed = ObservedPrior::new(&root, measured.projector(), 1.0)?;
    Ok(LeadingDirections::new(&observed, options.rank, options.seed)?)
}

/// Scales, precision and noise alone, of [`ImagePriorChoice::GPrior`] with `own`: for who wants the prior and no draws. What it takes is [`super::plan`] of no samples.
///
/// # Errors
/// [`TomographyError`]; [`TomographyError::Interrupted`].
pub fn fit_g_prior(
    measured: &MeasuredTangent<'_, f32>,
    sinogram: &[f64],
    own: &GPriorOptions,
    options: &UncertaintyOptions,
    watch: &mut Watch<'_>,
) -> Result<(GPriorFit, Scales), TomographyError> {
    let nothing = (Saved::begin(), &mut Tensors::default());
    let found = find(measured, sinogram, own, options, nothing, None, &mut Keeper::none(), watch)?;
    Ok((found.fit, found.scales))
}

/// Finds scales, precision and noise, from what was kept on.
pub(super) fn find(
    measured: &MeasuredTangent<'_, f32>,
    sinogram: &[f64],
    own: &GPriorOptions,
    options: &UncertaintyOptions,
    (saved, tensors): (Saved, &mut Tensors),
    known: Option<PriorReport>,
    keeper: &mut Keeper,
    watch: &mut Watch<'_>,
) -> Result<Found, TomographyError> {
    let (c, d) = (measured.measurements(), measured.tangent().selection().len());
    let found = match saved.raised {
        Some(raised) => Scales { values: tensors.vector("scales", d)?, raised },
        None => {
            let estimate = scale_estimate(c, options.seed);
            let found = scales(measured, estimate, &mut |done, all| watch(Stage::Scales, done, all, None))?;
            keeper.keep(|| {
                let mut tensors = Tensors::default();
                tensors.insert_vector("scales", &found.values);
                (Saved { raised: Some(found.raised), ..Saved::begin() }, tensors)
            })?;
            found
        }
    };
    let raised = found.raised;
    if let Some(PriorReport::GPrior { fit, raised }) = known {
        let report = PriorReport::GPrior { fit: fit.clone(), raised };
        return Ok(Found { fit, scales: found, report, leading: None });
    }
    let prior = GPrior::new(measured, &found, sinogram, own)?;
    let turns = own.turns;
    let mut leading_of = None;
    let fit = match &own.solver {
        GPriorSolver::Weights(descent) => {
            let mut last = 0;
            prior
                .over_weights(descent, prior.begin()?, &mut |progress, state| match progress {
                    Some(p) => watch(Stage::Hyperparameters, last, turns, p.value),
                    None => {
                        last = state().turns.len();
                        watch(Stage::Hyperparameters, last, turns, None)
                    }
                })
                .map_err(named)?
                .0
        }
        GPriorSolver::Measurements(conjugate) => {
            let leading = leading_of.insert(self::leading(measured, &found, options, watch)?);
            let preconditioner = |a: f64, noise: f64| -> Result<Box<dyn Preconditioner<f64>>, SolveError> {
                Ok(leading.preconditioner(1.0 / a, noise)? as Box<dyn Preconditioner<f64>>)
            };
            let state = match saved.turns {
                Some(turns) => turns.restore(&mut tensors.take_under("turns"))?,
                None => prior.begin()?,
            };
            let (mut last, mut failed) = (state.turns.len(), None);
            let outcome =
                prior.over_measurements(conjugate, &preconditioner, state, &mut |progress, state| {
                    let signal =
                        watch(Stage::Hyperparameters, last, turns, progress.and_then(|p| p.residual));
                    let write = || {
                        let own = state();
                        last = own.turns.len();
                        let (facts, blocks) = SavedTurns::of(&own, d);
                        let mut tensors = Tensors::default();
                        tensors.insert_vector("scales", &found.values);
                        tensors.extend_under("turns", blocks);
                        (Saved { raised: Some(raised), turns: Some(facts), ..Saved::begin() }, tensors)
                    };
                    keeper.offer_or_keep(signal, write, &mut failed)
                });
            if let Some(error) = failed {
                return Err(error);
            }
            outcome.map_err(named)?.0
        }
    };
    let report = PriorReport::GPrior { fit: fit.clone(), raised };
    Ok(Found { fit, scales: found, report, leading: leading_of })
}
