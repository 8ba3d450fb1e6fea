//! Draws of the image, before and after the measurements.
//!
//! ```text
//! x = F w - K Tᵀ C⁻¹ (ε + T F w),   w ~ N(0, I),  ε ~ N(0, σ² I)
//! ```
//!
//! has covariance `K - K Tᵀ C⁻¹ T K` (Antorán 2024, section 7.3.5; Matheron's rule): a draw of the prior, and what the measurements say about it taken away. The mean is zero; add that of the
//! reconstruction.

use super::{MeasuredError, ObservedPrior};
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::{ConjugateGradients, Preconditioner};
use posterior_linalg::tiles::pieces;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;

/// How `C⁻¹` is applied.
#[derive(Clone, Copy)]
pub enum SampleSolver<'s> {
    /// By a factor of C: `2c²` flops a draw.
    Factor(&'s Cholesky),
    /// By conjugate gradients: a product with C for each step.
    Iterative {
        /// Of C; [`NoPreconditioner`](posterior_linalg::solve::NoPreconditioner) for none.
        preconditioner: &'s dyn Preconditioner<f64>,
        /// Relative residual at which a draw is finished; the authors' code uses 0.1, which shows in the samples.
        tolerance: f64,
        /// Most steps.
        steps: usize,
    },
}

/// Draws of the posterior, zero in the mean.
#[derive(Clone, Debug)]
pub struct PosteriorSamples {
    /// One image a column, p x m.
    pub images: Mat<f64>,
    /// Relative residual of each draw's solve (true ones where the solver converged, by recursion where it ran out of steps); empty of a factor.
    pub residuals: Vec<f64>,
    /// Most steps that a block of draws took; 0 of a factor.
    pub steps: usize,
}

impl PosteriorSamples {
    /// The largest relative residual; 0 of a factor.
    pub fn largest_residual(&self) -> f64 {
        self.residuals.iter().fold(0.0, |largest, r| largest.max(*r))
    }
}

/// Standard normal numbers, `rows` for each draw of `range`: every draw has a stream of its own, so that more draws do not change the first ones.
pub(crate) fn white(rows: usize, range: Range<usize>, streams: Streams, name: &str) -> Mat<f64> {
    let mut out = Mat::zeros(rows, range.len());
    for (j, draw) in range.enumerate() {
        let mut rng = streams.child(name, draw as u64).stream("normal");
        out.col_as_slice_mut(j).iter_mut().for_each(|v| *v = StandardNormal.sample(&mut rng));
    }
    out
}

/// Draws `F w` of the prior number `range`, p x k.
pub(crate) fn prior_draws(root: &dyn LinearOperator<f64>, range: Range<usize>, streams: Streams) -> Mat<f64> {
    root.multiply(white(root.shape().1, range, streams, "tomography/weights").as_ref())
}

impl ObservedPrior<'_> {
    /// `count` images from the prior, one a column (p x count); draw i is a function of the streams and i. Cost: as many columns through F.
    pub fn prior_samples(&self, count: usize, streams: Streams) -> Mat<f64> {
        let mut out = Mat::zeros(self.pixels(), count);
        for draws in pieces(count, super::BLOCK) {
            let images = prior_draws(self.root(), draws.clone(), streams);
            out.as_mut().subcols_mut(draws.start, draws.len()).copy_from(&images);
        }
        out
    }

    /// Zero-mean draws of the posterior with some numbers (section 7.3.5); draw i is a function of the streams and i, and begins with prior draw i of [`Self::prior_samples`].
    ///
    /// Cost a draw: F, T, Tᵀ, Fᵀ and F again, and the solve. Memory: the draws (`8pm` bytes), and 128 sets of weights.
    ///
    /// # Errors
    /// [`MeasuredError::Shape`] when the factor is of another dimension; [`MeasuredError::Solve`] when conjugate gradients fail.
    pub fn posterior_samples(
        &self,
        numbers: Range<usize>,
        streams: Streams,
        solver: SampleSolver<'_>,
    ) -> Result<PosteriorSamples, MeasuredError> {
        if let SampleSolver::Factor(factor) = solver {
            super::same_size("rows of the factor", self.rows(), factor.dimension())?;
        }
        let mut all = PosteriorSamples {
            images: Mat::zeros(self.pixels(), numbers.len()),
            residuals: Vec::new(),
            steps: 0,
        };
        for piece in pieces(numbers.len(), super::BLOCK) {
            let draws = numbers.start + piece.start..numbers.start + piece.end;
            let mut images = prior_draws(self.root(), draws.clone(), streams);
            let mut data = self.operator.multiply(images.as_ref());
            let noise = white(self.rows(), draws.clone(), streams, "tomography/noise");
            data += noise * faer::Scale(self.noise_variance().sqrt());
            let solved = match solver {
                SampleSolver::Factor(factor) => factor.solve(data.as_ref()),
                SampleSolver::Iterative { preconditioner, tolerance, steps } => {
                    self.iterate(data.as_ref(), preconditioner, tolerance, steps, &mut all)?
                }
            };
            images -= self.cross(solved.as_ref());
            all.images.as_mut().subcols_mut(piece.start, piece.len()).copy_from(&images);
        }
        Ok(all)
    }

    fn iterate(
        &self,
        data: MatRef<'_, f64>,
        preconditioner: &dyn Preconditioner<f64>,
        tolerance: f64,
        steps: usize,
        report: &mut PosteriorSamples,
    ) -> Result<Mat<f64>, MeasuredError> {
        let mut solver = ConjugateGradients::new(self, preconditioner, data, None, tolerance, 0.0)?;
        let mut converged = false;
        while solver.state().iteration < steps && !converged {
            converged = !solver.step()?;
        }
        let relative = solver.relative_residuals();
        let state = solver.into_state();
        report.steps = report.steps.max(state.iteration);
        for (j, recursive) in relative.into_iter().enumerate() {
            let (norm, checked) = (data.col(j).norm_l2(), state.checked[j]);
            report.residuals.push(if converged && norm > 0.0 { checked / norm } else { recursive });
        }
        Ok(state.solution)
    }
}
