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
use crate::running::{Checkpointer, Stage, Watch};
use faer::{Mat, MatRef};
use posterior_linalg::solve::{Preconditioner, SolveError};
use posterior_linear::LinearError;
use posterior_linear::sampled::{EmState, SampledError, SavedEm, SavedSolver, WatchEm};
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

/// As many directions as are asked for. Their products are kept in a file of their own: they are as large as all else together, and do not change.
pub(super) fn directions(
    observed: &ObservedPrior<'_>,
    options: &UncertaintyOptions,
    checkpointer: &Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<LeadingDirections, TomographyError> {
    let (c, rank) = (observed.rows(), options.rank_of(observed.rows()));
    let mut checkpointer = checkpointer.directions();
    let made = match checkpointer.earlier::<usize>()? {
        Some((made, mut tensors)) => Some(tensors.matrix("products", c, made)?),
        None => None,
    };
    let earlier = made.as_ref().map_or(0, Mat::ncols);
    let mut failed = None;
    let mut tell = |products: MatRef<'_, f64>| {
        let made = products.ncols();
        let signal = watch(Stage::Directions, made, rank, None);
        let kept = || {
            let mut tensors = Tensors::default();
            tensors.insert_matrix("products", products);
            (made, tensors)
        };
        if made == rank && made > earlier {
            // The last to be seen of them.
            failed = checkpointer.keep(kept).err();
            return if failed.is_some() { Signal::Stop } else { signal };
        }
        checkpointer.offer_or_keep(signal, kept, &mut failed)
    };
    let made = made.as_ref().map(Mat::as_ref);
    let found = LeadingDirections::resumed(observed, rank, options.seed, made, &mut tell);
    match failed {
        Some(error) => Err(error),
        None => found,
    }
}

/// What was found.
pub(super) struct Found {
    pub(super) fit: GPriorFit,
    pub(super) scales: Scales,
    /// Directions for a precision of 1, where they were needed on the way.
    pub(super) leading: Option<LeadingDirections>,
}

/// Directions of the preconditioner for a precision of 1, of which those for others are multiples.
pub(super) fn leading(
    measured: &MeasuredTangent<'_, f32>,
    scales: &Scales,
    options: &UncertaintyOptions,
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<LeadingDirections, TomographyError> {
    let root = PriorRoot::new(measured.tangent(), WeightPrior::Independent(scales.values.clone()))?;
    let observed = ObservedPrior::new(&root, measured.projector(), 1.0)?;
    directions(&observed, options, checkpointer, watch)
}

/// Scales, precision and noise alone, of [`ImagePriorChoice::GPrior`] with `own`: for who wants the prior and no draws. What it takes is [`super::plan`] of no samples; what is under way is kept as [`super::infer`] does.
///
/// # Errors
/// [`TomographyError`]; [`TomographyError::Interrupted`].
pub fn fit_g_prior(
    measured: &MeasuredTangent<'_, f32>,
    sinogram: &[f64],
    own: &GPriorOptions,
    options: &UncertaintyOptions,
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<(GPriorFit, Scales), TomographyError> {
    let (saved, mut tensors) = checkpointer.earlier::<Saved>()?.unwrap_or_default();
    let known = saved.prior.is_some();
    let found = find(measured, sinogram, own, options, (saved, &mut tensors), checkpointer, watch)?;
    if !known {
        let prior = Some(found.report());
        checkpointer.keep(|| with_scales(&found.scales, |_| Saved { prior, ..Saved::default() }))?;
    }
    Ok((found.fit, found.scales))
}

impl Found {
    /// For the report.
    pub(super) fn report(&self) -> PriorReport {
        PriorReport::GPrior { fit: self.fit.clone(), raised: self.scales.raised }
    }
}

/// What is kept, with the scales.
fn with_scales(scales: &Scales, rest: impl FnOnce(&mut Tensors) -> Saved) -> (Saved, Tensors) {
    let mut tensors = Tensors::default();
    tensors.insert_vector("scales", &scales.values);
    let saved = rest(&mut tensors);
    (Saved { raised: Some(scales.raised), ..saved }, tensors)
}

/// Finds scales, precision and noise, from what was kept on.
pub(super) fn find(
    measured: &MeasuredTangent<'_, f32>,
    sinogram: &[f64],
    own: &GPriorOptions,
    options: &UncertaintyOptions,
    (mut saved, tensors): (Saved, &mut Tensors),
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<Found, TomographyError> {
    let (c, d) = (measured.measurements(), measured.tangent().selection().len());
    let found = match saved.raised {
        Some(raised) => Scales { values: tensors.vector("scales", d)?, raised },
        None => {
            let estimate = scale_estimate(c, options.seed);
            let found = scales(measured, estimate, &mut |done, all| watch(Stage::Scales, done, all, None))?;
            checkpointer.keep(|| with_scales(&found, |_| Saved::default()))?;
            found
        }
    };
    if let Some(PriorReport::GPrior { fit, .. }) = saved.prior.take() {
        return Ok(Found { fit, scales: found, leading: None });
    }
    let prior = GPrior::new(measured, &found, sinogram, own)?;
    let mut kept = EmRun { scales: &found, tensors, turns: own.turns, checkpointer, watch };
    let (fit, leading) = match &own.solver {
        GPriorSolver::Weights(descent) => {
            let put = |descent| Saved { descent: Some(descent), ..Saved::default() };
            let fit = kept.run(
                saved.descent,
                put,
                || prior.begin(),
                |state, watch| prior.over_weights(descent, state, watch),
            )?;
            (fit, None)
        }
        GPriorSolver::Measurements(conjugate) => {
            let leading = self::leading(measured, &found, options, kept.checkpointer, kept.watch)?;
            let preconditioner = |a: f64, noise: f64| -> Result<Box<dyn Preconditioner<f64>>, SolveError> {
                Ok(leading.preconditioner(1.0 / a, noise)? as Box<dyn Preconditioner<f64>>)
            };
            let put = |turns| Saved { turns: Some(turns), ..Saved::default() };
            let fit = kept.run(
                saved.turns,
                put,
                || prior.begin(),
                |state, watch| prior.over_measurements(conjugate, &preconditioner, state, watch),
            )?;
            (fit, Some(leading))
        }
    };
    Ok(Found { fit, scales: found, leading })
}

/// Turns of whichever solver, with what they are kept beside.
struct EmRun<'a, 'w> {
    scales: &'a Scales,
    tensors: &'a mut Tensors,
    turns: usize,
    checkpointer: &'a mut Checkpointer,
    watch: &'a mut Watch<'w>,
}

impl EmRun<'_, '_> {
    /// Runs them from what was kept on, or from their beginning.
    fn run<S: SavedSolver>(
        &mut self,
        saved: Option<SavedEm<S::Facts>>,
        put: impl Fn(SavedEm<S::Facts>) -> Saved,
        begin: impl FnOnce() -> Result<EmState<S>, TomographyError>,
        turn: impl FnOnce(EmState<S>, &mut WatchEm<'_, S>) -> Result<(GPriorFit, EmState<S>), TomographyError>,
    ) -> Result<GPriorFit, TomographyError> {
        let state = match saved {
            Some(facts) => {
                let mut own = self.tensors.take_under("turns");
                let state: EmState<S> = facts.restored(&mut own)?;
                if let Some(other) = state.other_dimension(self.scales.values.len()) {
                    return Err(own.corrupt(format!("its turns are of {other} weights")).into());
                }
                state
            }
            None => begin()?,
        };
        let (mut taken, mut failed) = (state.turns.len(), None);
        let outcome = turn(state, &mut |progress, state| {
            if progress.is_none() {
                taken = state().turns.len();
            }
            let size = progress.and_then(|p| p.residual.or(p.value));
            let signal = (self.watch)(Stage::Hyperparameters, taken, self.turns, size);
            let write = || {
                with_scales(self.scales, |tensors| {
                    let mut blocks = Tensors::default();
                    let facts = SavedEm::of(&state(), &mut blocks);
                    tensors.extend_under("turns", blocks);
                    put(facts)
                })
            };
            self.checkpointer.offer_or_keep(signal, write, &mut failed)
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(outcome.map_err(named)?.0),
        }
    }
}
