//! The reference: a dense factorisation.

use super::problem::Problem;
use super::solver::{Iterate, Solution, SolveObserver};
use super::state::{SolverState, StateHeader};
use crate::GpError;
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_optim::{Clock, Progress, Reason};

/// Columns of K that are gathered at a time.
const GROUP: usize = 64;

/// Factors `K̃` in f64, whatever the precision of K: `n³/3` flops, `8n²` bytes. There is one step, so nothing to resume or to start from.
pub(super) fn solve_directly<T: Real>(
    problem: &Problem<'_, T>,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let clock = Clock::start();
    let system = problem.system;
    let (n, s) = problem.shape();
    let mut columns = Mat::<T>::zeros(n, GROUP.min(n));
    let cholesky = Cholesky::factor_with(Mat::zeros(n, n), JitterPolicy::default(), |mut out| {
        for start in (0..n).step_by(GROUP) {
            let group: Vec<usize> = (start..(start + GROUP).min(n)).collect();
            let mut block = columns.get_mut(.., ..group.len());
            system.matrix().columns_into(&group, block.as_mut());
            for (b, &j) in group.iter().enumerate() {
                for i in j..n {
                    out[(i, j)] = block[(i, b)].to_f64();
                }
                out[(j, j)] += system.noise()[j].to_f64();
            }
        }
    })?;
    let mut right = Mat::<f64>::from_fn(n, s, |i, j| problem.target(i, j).to_f64());
    cholesky.solve_in_place(right.as_mut());
    let weights = Mat::from_fn(n, s, |i, j| T::from_f64(right[(i, j)]));
    let progress = Progress {
        step: 1,
        steps_planned: 1,
        elapsed: clock.elapsed(),
        residual: Some(f64::EPSILON),
        ..Progress::default()
    };
    // The answer is there already: whether the observer would rather stop makes no difference.
    let solved = Solved(weights);
    observer(&progress, &solved);
    Ok(Solution { weights: solved.0, reason: Reason::Precision, progress })
}

/// The weights of a solve that is over.
struct Solved<T: Real>(Mat<T>);

impl<T: Real> Iterate<T> for Solved<T> {
    fn weights(&self) -> Mat<T> {
        self.0.clone()
    }

    fn state(&self, progress: &Progress) -> SolverState<T> {
        let header = StateHeader { method: "direct".into(), step: progress.step, ..StateHeader::default() };
        SolverState { header, blocks: vec![("weights".into(), self.0.clone())] }
    }
}
