//! Where a search stands, as plain data.

use super::{SearchOptions, SearchStep};
use crate::{GpError, Observations};
use faer::Mat;
use posterior_linalg::Real;
use posterior_optim::Adaptive;
use serde::{Deserialize, Serialize};

/// The small part of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchHeader {
    /// The unconstrained parameters.
    pub(super) theta: Vec<f64>,
    pub(super) adam: Adaptive,
    /// Parameters after each step, of which the last are averaged.
    pub(super) iterates: Vec<Vec<f64>>,
    pub(super) trace: Vec<SearchStep>,
    pub(super) solver_steps: usize,
    pub(super) seconds: f64,
}

impl SearchHeader {
    /// Steps that are done.
    pub fn step(&self) -> usize {
        self.trace.len()
    }

    /// Seconds spent, earlier runs included.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

/// Everything that a search changes: save it at any time and [`super::search_evidence`] goes on bit for bit behind the last finished step.
#[derive(Clone, Debug)]
pub struct SearchState<T: Real> {
    /// The small part.
    pub header: SearchHeader,
    /// The solutions of the last step, n x (t + p); none before the first.
    pub weights: Option<Mat<T>>,
}

impl<T: Real> SearchState<T> {
    /// Whether it is one of a search like this.
    pub(super) fn check(
        &self,
        parameters: usize,
        data: &Observations,
        options: &SearchOptions,
    ) -> Result<(), GpError> {
        let SearchHeader { theta, iterates, trace, seconds, .. } = &self.header;
        let shape = (data.rows(), data.targets().ncols() + options.solves.samples);
        let wrong = |problem: String| Err(GpError::State { problem });
        if theta.len() != parameters || iterates.iter().any(|i| i.len() != parameters) {
            return wrong(format!("it is one of {} parameters, not {parameters}", theta.len()));
        }
        if let Err(problem) = self.header.adam.check(parameters, trace.len()) {
            return wrong(problem);
        }
        if !theta.iter().chain(iterates.iter().flatten()).all(|v| v.is_finite()) {
            return wrong("a parameter is not finite".into());
        }
        if iterates.len() != trace.len() || (self.weights.is_none() && !trace.is_empty()) {
            return wrong("its steps, iterates and solutions do not belong together".into());
        }
        if let Some(found) = self.weights.as_ref().map(Mat::shape).filter(|found| *found != shape) {
            return wrong(format!("its solutions are {found:?} numbers, not {shape:?}"));
        }
        if !(seconds.is_finite() && *seconds >= 0.0 && *seconds < 1e12) {
            return wrong(format!("{seconds} seconds are no time"));
        }
        Ok(())
    }
}
