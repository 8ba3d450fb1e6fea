//! The engine as a stochastic method.

use super::engine::{BLOCKS, Engine, EngineSettings};
use crate::GpError;
use crate::iterative::solver::Start;
use crate::iterative::state::StateHeader;
use crate::iterative::stochastic::StochasticMethod;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;

/// The gradient (m x s) at a point on the batch of a step, and the batch's residuals (r x s).
pub(in crate::iterative) type BatchGradient<'a, T> =
    dyn FnMut(usize, MatRef<'_, T>) -> Result<(Mat<T>, Mat<T>), GpError> + 'a;

/// Descent along gradients that a function computes.
pub(in crate::iterative) struct EngineMethod<'a, T: Real> {
    name: &'static str,
    settings: EngineSettings,
    shape: (usize, usize),
    engine: Engine<T>,
    /// Where it begins, if not at zero.
    origin: Option<Mat<T>>,
    on_batch: Box<BatchGradient<'a, T>>,
    gradient: Mat<T>,
    residuals: Mat<T>,
}

impl<'a, T: Real> EngineMethod<'a, T> {
    /// Weights of `shape` from `start`, with the small part of a saved one.
    ///
    /// # Errors
    /// Settings out of range, a start of another shape, a state of another solve.
    pub(in crate::iterative) fn new(
        name: &'static str,
        settings: EngineSettings,
        shape: (usize, usize),
        start: Start<T>,
        on_batch: Box<BatchGradient<'a, T>>,
    ) -> Result<(Self, Option<StateHeader>), GpError> {
        settings.check()?;
        let (mut origin, mut restored) = (None, None);
        let engine = match start {
            Start::Zero => Engine::new(settings, shape, None),
            Start::Weights(weights) => {
                crate::data::same_width("rows of the start", shape.0, weights.nrows())?;
                crate::data::same_width("columns of the start", shape.1, weights.ncols())?;
                Engine::new(settings, shape, Some(origin.insert(weights).as_ref()))
            }
            Start::Resume(saved) => {
                let (header, blocks) = saved.open(name, BLOCKS, shape)?;
                let [from_zero] = header.integers[..] else {
                    return Err(GpError::State { problem: "it does not say where it began".into() });
                };
                let engine = Engine::resumed(settings, blocks, header.step, from_zero != 0);
                restored = Some(header);
                engine
            }
        };
        let (gradient, residuals) = (Mat::zeros(0, 0), Mat::zeros(0, 0));
        Ok((Self { name, settings, shape, engine, origin, on_batch, gradient, residuals }, restored))
    }
}

impl<T: Real> StochasticMethod<T> for EngineMethod<'_, T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn steps(&self) -> usize {
        self.engine.step
    }

    fn gradient(&mut self) -> Result<&Mat<T>, GpError> {
        (self.gradient, self.residuals) = (self.on_batch)(self.engine.step, self.engine.point().as_ref())?;
        Ok(&self.residuals)
    }

    fn descend(&mut self, times_rows: f64) -> Result<(), GpError> {
        self.engine.step_along(&self.gradient, times_rows);
        Ok(())
    }

    fn reset(&mut self) {
        self.engine = Engine::new(self.settings, self.shape, self.origin.as_ref().map(Mat::as_ref));
    }

    fn weights(&self) -> Mat<T> {
        self.engine.average()
    }

    fn save(&self) -> (Vec<(String, Mat<T>)>, Vec<u64>) {
        let blocks = BLOCKS.into_iter().zip(&self.engine.blocks);
        let blocks = blocks.map(|(name, block)| (name.into(), block.clone())).collect();
        (blocks, vec![u64::from(self.engine.from_zero)])
    }
}

/// Refuses batches without rows.
pub(in crate::iterative) fn check_batch(batch: usize) -> Result<(), GpError> {
    if batch == 0 {
        return Err(SolveError::Setting { what: "the batch size", value: 0.0, needed: "at least 1" }.into());
    }
    Ok(())
}
