//! Settings, and the gradient on random rows.

use super::state::{Decay, DualState};
use crate::GpError;
use crate::iterative::problem::Problem;
use crate::iterative::solver::{Budget, Solution, SolveObserver, Start};
use crate::iterative::state::{SolverState, StateHeader};
use crate::iterative::step_size::{Curvature, StepSize};
use crate::iterative::stochastic::{StochasticMethod, Terms, descend, row_batches};
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::solve::SolveError;
use posterior_optim::{Batches, Sampling};
use serde::{Deserialize, Serialize};

/// Which iterate is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DualAveraging {
    /// A geometric average of weight `100 / steps` (at most 1): a window of the last hundredth of the run.
    #[default]
    Planned,
    /// A geometric average of the given weight in (0, 1]; 1 is the last iterate.
    Weight(f64),
}

/// Settings of stochastic dual descent; the defaults are the published ones with the automatic step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DualDescentOptions {
    /// Rows of a batch, r.
    pub batch: usize,
    /// Nesterov momentum ρ in [0, 1).
    pub momentum: f64,
    /// The step size.
    pub step_size: StepSize,
    /// The average.
    pub averaging: DualAveraging,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Seed of the batches.
    pub seed: u64,
    /// Times that a diverging run may begin anew with half the step.
    pub restarts: usize,
}

impl Default for DualDescentOptions {
    fn default() -> Self {
        Self {
            batch: 512,
            momentum: 0.9,
            step_size: StepSize::Automatic,
            averaging: DualAveraging::Planned,
            sampling: Sampling::Permutation,
            seed: 0,
            restarts: 20,
        }
    }
}

const METHOD: &str = "dual-descent";
const BLOCKS: [&str; 3] = ["lookahead", "velocity", "average"];

impl DualDescentOptions {
    fn decay<T: Real>(&self, budget: &Budget) -> Result<Decay, GpError> {
        let range = |what, value, needed, holds: bool| {
            if holds { Ok(()) } else { Err(SolveError::Setting { what, value, needed }) }
        };
        let momentum = self.momentum;
        range("the momentum", momentum, "at least 0 and below 1", (0.0..1.0).contains(&momentum))?;
        let weight = match self.averaging {
            DualAveraging::Planned => (100.0 / budget.steps.max(1) as f64).min(1.0),
            DualAveraging::Weight(weight) => weight,
        };
        range("the averaging weight", weight, "above 0 and at most 1", weight > 0.0 && weight <= 1.0)?;
        range("the batch size", self.batch as f64, "at least 1", self.batch > 0)?;
        Ok(Decay::new::<T>(momentum, weight))
    }
}

pub(in crate::iterative) fn solve_by_dual_descent<T: Real>(
    options: &DualDescentOptions,
    problem: &Problem<'_, T>,
    start: Start<T>,
    budget: &Budget,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let (rows, columns) = problem.shape();
    let decay = options.decay::<T>(budget)?;
    let batches = row_batches(rows, options.batch, options.sampling, options.seed);
    let size = batches.size();
    let (mut origin, mut saved) = (None, None);
    let state = match start {
        Start::Zero => DualState::new((rows, columns), None),
        Start::Weights(weights) => DualState::new((rows, columns), Some(origin.insert(weights).as_ref())),
        Start::Resume(from) => {
            let (header, state) = restore(from, (rows, columns))?;
            saved = Some(header);
            state
        }
    };
    let residuals = Mat::zeros(size, columns);
    let mut method = DualMethod { problem, decay, batches, state, origin, batch: Vec::new(), residuals };
    let terms = Terms { rows, norms: problem.target_norms(), restarts: options.restarts, saved };
    let step_size = || match options.step_size.fixed()? {
        Some(value) => Ok(value),
        None => Ok(rows as f64 * Curvature::of(problem, options.seed)?.dual_step(size, options.momentum)),
    };
    descend(&mut method, terms, step_size, budget, observer)
}

/// Descent on the dual, whose gradient is the residual on random rows.
struct DualMethod<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    decay: Decay,
    batches: Batches,
    state: DualState<T>,
    /// Where it begins, if not at zero.
    origin: Option<Mat<T>>,
    batch: Vec<usize>,
    /// r x s.
    residuals: Mat<T>,
}

impl<T: Real> StochasticMethod<T> for DualMethod<'_, T> {
    fn name(&self) -> &'static str {
        METHOD
    }

    fn steps(&self) -> usize {
        self.state.step()
    }

    fn gradient(&mut self) -> Result<&Mat<T>, GpError> {
        self.batch = self.batches.batch(self.state.step());
        let (system, ahead) = (self.problem.system, self.state.lookahead());
        system.matrix().apply_rows(&self.batch, ahead, self.residuals.as_mut());
        self.problem.add_rest(&self.batch, ahead, |column| column, &mut self.residuals);
        Ok(&self.residuals)
    }

    fn descend(&mut self, times_rows: f64) -> Result<(), GpError> {
        // β (n/r) with β = times_rows / n.
        let step = times_rows / self.batch.len() as f64;
        self.state.step_along(&self.decay, &self.batch, &self.residuals, step);
        Ok(())
    }

    fn reset(&mut self) {
        self.state = DualState::new(self.problem.shape(), self.origin.as_ref().map(Mat::as_ref));
    }

    fn weights(&self) -> Mat<T> {
        self.state.average(&self.decay)
    }

    fn save(&self) -> (Vec<(String, Mat<T>)>, Vec<u64>) {
        let (blocks, touched, from_zero) = self.state.parts();
        let blocks = BLOCKS.into_iter().zip(blocks).map(|(name, block)| (name.into(), block)).collect();
        (blocks, touched.iter().map(|&t| t as u64).chain([u64::from(from_zero)]).collect())
    }
}

fn restore<T: Real>(
    saved: SolverState<T>,
    shape: (usize, usize),
) -> Result<(StateHeader, DualState<T>), GpError> {
    let (header, blocks) = saved.open(METHOD, BLOCKS, shape)?;
    let wrong = |problem: &str| Err(GpError::State { problem: problem.into() });
    let Some((&from_zero, touched)) = header.integers.split_last() else {
        return wrong("it has no times at which rows were touched");
    };
    if touched.len() != shape.0 {
        return wrong("its numbers are not those of as many rows");
    }
    if touched.iter().any(|&t| t > header.step as u64) {
        return wrong("a row was touched after the last step");
    }
    let touched = touched.iter().map(|&t| t as usize).collect();
    let state = DualState::from_parts(blocks, touched, header.step, from_zero != 0);
    Ok((header, state))
}
