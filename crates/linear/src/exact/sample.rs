//! Samples of the weights.

use super::ExactPosterior;
use super::fit::Data;
use crate::dense::white;
use crate::noise::Noise;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::dense::product;
use posterior_linalg::random::ChaCha8Rng;

impl ExactPosterior {
    /// `count` draws of the weights around their mean (d x count). See [`ExactPosterior::deviations`].
    ///
    /// # Errors
    /// [`LinearError::TooLarge`].
    pub fn samples(&self, count: usize, rng: &mut ChaCha8Rng) -> Result<Mat<f64>, LinearError> {
        let mut draws = self.deviations(count, rng)?;
        for j in 0..count {
            draws.as_mut().col_mut(j).iter_mut().zip(&self.mean).for_each(|(v, m)| *v += m);
        }
        Ok(draws)
    }

    /// `count` draws of `N(0, H^-1)` (d x count).
    ///
    /// Primal: `A^{-1/2} L^-T e`, `d²` flops a draw. Dual: a prior draw corrected by the data (Matheron's rule), `nC (nC + 2d)` flops
    /// a draw, without anything of size d x d.
    ///
    /// # Errors
    /// [`LinearError::TooLarge`].
    pub fn deviations(&self, count: usize, rng: &mut ChaCha8Rng) -> Result<Mat<f64>, LinearError> {
        check::size("the samples", self.dimension(), count, check::BUFFER_LIMIT)?;
        let mut draws = white(self.dimension(), count, rng);
        match &self.data {
            Data::Primal { .. } => self.cholesky.solve_factor_transpose_in_place(draws.as_mut()),
            Data::Dual { rows, .. } => {
                let correction = self
                    .cholesky
                    .solve((white(self.rows, count, rng) - product(rows.as_ref(), draws.as_ref())).as_ref());
                draws += rows.transpose() * correction;
            }
        }
        self.unwhiten(&mut draws);
        Ok(draws)
    }

    /// The zero-mean sample that given noise leads to: `H^-1 (A w0 + Phi' R e)` with `w0 = A^{-1/2} z`, one per column.
    ///
    /// `prior_noise` is `z` (d x k) and `data_noise` is `e` (nC x k), both standard normal. `features` and `noise` are those of the fit. Both forms give
    /// the same sample, which is also what an iterative solver must find from the same noise; the dual evaluates it as
    /// `w0 + A^-1 Phi' R S^-1 (e - R' Phi w0)`.
    ///
    /// Source: Antorán (2024), equations 2.31 and 4.17; spec `linearised_laplace`, sections 5.6, 5.10 and 5.11.
    ///
    /// # Errors
    /// [`LinearError::Shape`].
    pub fn pathwise(
        &self,
        features: MatRef<'_, f64>,
        noise: &Noise,
        prior_noise: MatRef<'_, f64>,
        data_noise: MatRef<'_, f64>,
    ) -> Result<Mat<f64>, LinearError> {
        self.check_features(features)?;
        check::same("rows of the features of the fit", self.rows, features.nrows())?;
        noise.check(self.examples(), self.outputs)?;
        check::same("rows of the prior noise", self.dimension(), prior_noise.nrows())?;
        check::same("rows of the data noise", self.rows, data_noise.nrows())?;
        check::same("columns of the data noise", prior_noise.ncols(), data_noise.ncols())?;
        let indices: Vec<usize> = (0..self.examples()).collect();
        let back = |u: MatRef<'_, f64>| {
            let mut projected = features.transpose() * noise.color(&indices, u);
            self.unwhiten(&mut projected);
            projected
        };
        let mut draws = match &self.data {
            Data::Primal { .. } => self.cholesky.solve((prior_noise + back(data_noise)).as_ref()),
            Data::Dual { .. } => {
                let mut prior = prior_noise.to_owned();
                self.unwhiten(&mut prior);
                let seen = noise.whiten(&indices, product(features, prior.as_ref()).as_ref());
                prior_noise + back(self.cholesky.solve((data_noise - seen).as_ref()).as_ref())
            }
        };
        self.unwhiten(&mut draws);
        Ok(draws)
    }

    /// Multiplies row `i` by the prior standard deviation of weight `i`.
    fn unwhiten(&self, rows: &mut Mat<f64>) {
        for j in 0..rows.ncols() {
            rows.as_mut().col_mut(j).iter_mut().zip(&self.deviations).for_each(|(v, s)| *v *= s);
        }
    }
}
