//! What solves over the measurements are preconditioned with: the leading directions of the prior's covariance.

use crate::TomographyError;
use crate::error::same_count;
use crate::measured::ObservedPrior;
use faer::{Mat, MatRef};
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::{
    DrawnPreconditioner, LowRankPlusDiagonal, NoPreconditioner, Nystrom, SolveError,
};
use posterior_optim::Signal;

/// Directions that go through the network between two looks at what was asked.
const AT_ONCE: usize = 64;

/// `T K T' ~ U diag(lambda) U'` of some rank, found once: another variance of the prior multiplies the eigenvalues and leaves the directions as they are.
///
/// The randomised Nyström approximation needs one product for each direction, half of what a randomised SVD does, and its preconditioner `U (L - lambda_q) U' + (lambda_q + noise) I` never has more than the condition of the system,
/// so that nothing needs to fall back where the spectrum is flat; the published preconditioner is [`crate::randomised`]. Source: Frangella, Tropp and Udell (2023); spec `tomography`, section 6.
#[derive(Clone, Debug)]
pub struct LeadingDirections {
    found: Option<Nystrom<f64>>,
    /// The smallest eigenvalue, which stands for all that are not here.
    last: f64,
}

impl LeadingDirections {
    /// Of the covariance of the measurements' prior, without its noise. Cost: `rank` products, `14 c rank²` flops; memory `5 c rank` doubles while it is found, one of which stays.
    ///
    /// # Errors
    /// [`TomographyError::Solve`] where the covariance is not finite.
    pub fn new(observed: &ObservedPrior<'_>, rank: usize, seed: u64) -> Result<Self, TomographyError> {
        Self::resumed(observed, rank, seed, None, &mut |_| Signal::Continue)
    }

    /// The same with somebody who sees the products that are made (c x as many), and may stop it. Those that an earlier run saw are where this one goes on, to the same bits.
    ///
    /// # Errors
    /// As [`Self::new`]; [`TomographyError::Shape`] for products of something else, [`TomographyError::Interrupted`].
    pub fn resumed(
        observed: &ObservedPrior<'_>,
        rank: usize,
        seed: u64,
        made: Option<MatRef<'_, f64>>,
        watch: &mut dyn FnMut(MatRef<'_, f64>) -> Signal,
    ) -> Result<Self, TomographyError> {
        let c = observed.rows();
        let width = rank.min(c);
        if width == 0 {
            return Ok(Self { found: None, last: 0.0 });
        }
        let test = Nystrom::<f64>::test_vectors(c, width, seed);
        let (signal, mut products) = (observed.signal(), Mat::zeros(c, width));
        let mut done = 0;
        if let Some(made) = made {
            done = made.ncols();
            same_count("measurements of directions", c, made.nrows())?;
            same_count("directions", width.min(done), done)?;
            products.as_mut().subcols_mut(0, done).copy_from(made);
        }
        loop {
            if watch(products.subcols(0, done)) == Signal::Stop {
                return Err(TomographyError::Interrupted);
            }
            if done == width {
                break;
            }
            let own = AT_ONCE.min(width - done);
            signal.apply(test.subcols(done, own), products.as_mut().subcols_mut(done, own));
            done += own;
        }
        let found = Nystrom::of_products(test.as_ref(), products, f64::EPSILON)?;
        // Directions of everything leave nothing for the last to stand for.
        let last = if rank >= c { 0.0 } else { found.eigenvalues().last().copied().unwrap_or(0.0).max(0.0) };
        Ok(Self { found: Some(found), last })
    }

    /// Eigenvalues, descending.
    pub fn eigenvalues(&self) -> &[f64] {
        self.found.as_ref().map_or(&[], |found| found.eigenvalues())
    }

    /// The preconditioner of `share K + noise I`.
    ///
    /// # Errors
    /// [`SolveError`] for numbers that are not finite.
    pub fn preconditioner(
        &self,
        share: f64,
        noise_variance: f64,
    ) -> Result<Box<dyn DrawnPreconditioner<f64>>, SolveError> {
        let Some(found) = &self.found else { return Ok(Box::new(NoPreconditioner)) };
        let (vectors, values) = (found.vectors(), found.eigenvalues());
        let roots: Vec<f64> = values.iter().map(|e| (share * (e - self.last)).max(0.0).sqrt()).collect();
        let factor = Mat::from_fn(vectors.nrows(), roots.len(), |i, j| vectors[(i, j)] * roots[j]);
        let diagonal = vec![noise_variance + share * self.last; vectors.nrows()];
        Ok(Box::new(LowRankPlusDiagonal::new(factor, &diagonal)?))
    }
}
