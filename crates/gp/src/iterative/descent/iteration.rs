//! The engine behind the loop of all stochastic solvers.

use super::engine::{BLOCKS, Engine, EngineSettings};
use crate::GpError;
use crate::iterative::solver::Start;
use crate::iterative::stochastic::{Course, Iteration};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;

/// The gradient (m x s) at a point on the batch of a step, and the batch's residuals (r x s).
pub(in crate::iterative) type Look<'a, T> =
    dyn FnMut(usize, MatRef<'_, T>) -> Result<(Mat<T>, Mat<T>), GpError> + 'a;

/// Descent along gradients that a function computes.
pub(in crate::iterative) struct EngineIteration<'a, T: Real> {
    method: &'static str,
    settings: EngineSettings,
    shape: (usize, usize),
    engine: Engine<T>,
    /// Where it begins, if not at zero.
    origin: Option<Mat<T>>,
    look: Box<Look<'a, T>>,
    gradient: Mat<T>,
    residuals: Mat<T>,
}

impl<'a, T: Real> EngineIteration<'a, T> {
    /// Weights of `shape` from `start`; a saved one is told to the course, too.
    ///
    /// # Errors
    /// Settings out of range, a start of another shape, a state of another solve.
    pub(in crate::iterative) fn new(
        method: &'static str,
        settings: EngineSettings,
        shape: (usize, usize),
        start: Start<T>,
        course: &mut Course,
        look: Box<Look<'a, T>>,
    ) -> Result<Self, GpError> {
        settings.check()?;
        let mut origin = None;
        let engine = match start {
            Start::Zero => Engine::new(settings, shape, None),
            Start::Weights(weights) => {
                crate::data::same_width("rows of the start", shape.0, weights.nrows())?;
                crate::data::same_width("columns of the start", shape.1, weights.ncols())?;
                Engine::new(settings, shape, Some(origin.insert(weights).as_ref()))
            }
            Start::Resume(saved) => {
                let (header, blocks) = saved.open(method, BLOCKS, shape)?;
                course.resume(&header)?;
                let [from_zero] = header.integers[..] else {
                    return Err(GpError::State { problem: "it does not say where it began".into() });
                };
                Engine::resumed(settings, blocks, header.step, from_zero != 0)
            }
        };
        let (gradient, residuals) = (Mat::zeros(0, 0), Mat::zeros(0, 0));
        Ok(Self { method, settings, shape, engine, origin, look, gradient, residuals })
    }
}

impl<T: Real> Iteration<T> for EngineIteration<'_, T> {
    fn method(&self) -> &'static str {
        self.method
    }

    fn step(&self) -> usize {
        self.engine.step
    }

    fn look(&mut self) -> Result<&Mat<T>, GpError> {
        (self.gradient, self.residuals) = (self.look)(self.engine.step, self.engine.point().as_ref())?;
        Ok(&self.residuals)
    }

    fn advance(&mut self, times_rows: f64) {
        self.engine.advance(&self.gradient, times_rows);
    }

    fn restart(&mut self) {
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
