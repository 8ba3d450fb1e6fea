//! Draws of the image under all measurements so far, of which every angle's covariance is estimated at once (Antorán 2024, equation 7.17).
//!
//! A new angle does not redraw them. With `D = K_{x|y} T_⋆ᵀ = K (T_⋆ᵀ - Tᵀ C⁻¹ T K T_⋆ᵀ)` and `S = T_⋆ D + σ² I`, Matheron's rule for the posterior as the new prior gives
//!
//! ```text
//! x <- x - D S⁻¹ (ε + T_⋆ x)
//! ```
//!
//! which has the distribution of a fresh draw (7.18) for two products with K of `per_angle` columns in place of m. `S = L₂₂ L₂₂ᵀ` is the new corner of the growing factor of C, whose append is equation 7.18
//! (with the rows of the angles so far in its cross block; fix F9).

use super::{Acquisition, DesignError, Scanner};
use crate::measured::{ObservedPrior, SampleSolver, covariance_times, white};
use faer::{Accum, Mat};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo, JitterPolicy};
use posterior_linalg::dense::multiply_into;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::pieces;

/// Draws, and the factor that conditions them.
pub(super) struct PosteriorImages {
    /// p x m.
    images: Mat<f64>,
    /// Of `C = T K Tᵀ + σ² I`, the angles so far in the order they were added.
    factor: Cholesky,
}

impl PosteriorImages {
    /// Draws of the posterior under some angles, and the noise variance with its stabiliser: `share` of the mean variance of these angles' measurements.
    pub(super) fn of(
        scanner: &dyn Scanner,
        root: &dyn LinearOperator<f64>,
        angles: &[usize],
        (noise, share): (f64, f64),
        (samples, streams): (usize, Streams),
    ) -> Result<(Self, f64), DesignError> {
        let operator = scanner.at(angles);
        let observed = ObservedPrior::new(root, &*operator, noise)?;
        if angles.is_empty() {
            let images = observed.prior_samples(samples, streams);
            return Ok((Self { images, factor: Cholesky::empty() }, noise));
        }
        let mut matrix = observed.signal_matrix();
        let rows = matrix.nrows();
        let mean = (0..rows).map(|i| matrix[(i, i)]).sum::<f64>() / rows as f64;
        let noise = noise + share * mean;
        (0..rows).for_each(|i| matrix[(i, i)] += noise);
        let angle = angles[0];
        let factor = Cholesky::of(matrix.as_ref(), JitterPolicy::NONE)
            .map_err(|source| DesignError::Cholesky { angle, source })?;
        drop(matrix);
        let observed = ObservedPrior::new(root, &*operator, noise)?;
        let drawn = observed.posterior_samples(0..samples, streams, SampleSolver::Factor(&factor))?;
        Ok((Self { images: drawn.images, factor }, noise))
    }

    /// Conditions the draws on the measurements of another angle.
    ///
    /// Cost: `2 per_angle` products with K, `2c² per_angle` flops, `4 p per_angle m` flops.
    pub(super) fn add(
        &mut self,
        scanner: &dyn Scanner,
        root: &dyn LinearOperator<f64>,
        (chosen, angle): (&[usize], usize),
        noise: f64,
        streams: Streams,
    ) -> Result<(), DesignError> {
        let (per_angle, rows) = (scanner.per_angle(), self.factor.dimension());
        let (before, own) = (scanner.at(chosen), scanner.at(&[angle]));
        let unit = Mat::identity(per_angle, per_angle);
        let mut direction = own.multiply_transpose(unit.as_ref());
        let images = covariance_times(root, direction.as_ref());
        let mut corner = own.multiply(images.as_ref());
        mirror_lower(corner.as_mut());
        (0..per_angle).for_each(|i| corner[(i, i)] += noise);
        let cross = before.multiply(images.as_ref());
        drop(images);
        if rows > 0 {
            let solved = self.factor.solve(cross.as_ref());
            direction -= before.multiply_transpose(solved.as_ref());
        }
        self.factor
            .append(cross.transpose(), corner.as_ref())
            .map_err(|source| DesignError::Cholesky { angle, source })?;
        let corner = self.factor.factor().submatrix(rows, rows, per_angle, per_angle).to_owned();
        let small = Cholesky::from_factor(corner, CholeskyInfo::default());
        let gain = covariance_times(root, direction.as_ref());
        for draws in pieces(self.images.ncols(), 4 * crate::measured::BLOCK) {
            let mut seen = white(per_angle, draws.clone(), streams, "tomography/design/noise");
            seen *= faer::Scale(noise.sqrt());
            let mut images = self.images.as_mut().subcols_mut(draws.start, draws.len());
            seen += own.multiply(images.as_ref());
            small.solve_in_place(seen.as_mut());
            multiply_into(images.as_mut(), Accum::Add, gain.as_ref(), seen.as_ref(), -1.0);
        }
        Ok(())
    }

    /// The scores of some angles. Cost: `angles x m` projections, `per_angle² m` flops an angle for the information; `8 m` bytes for each of 2,048 rows.
    pub(super) fn scores(
        &self,
        scanner: &dyn Scanner,
        angles: &[usize],
        acquisition: Acquisition,
        noise: f64,
    ) -> Result<Vec<f64>, DesignError> {
        let (per_angle, mut all) = (scanner.per_angle(), Vec::with_capacity(angles.len()));
        for group in angles.chunks((2048 / per_angle).max(1)) {
            let seen = scanner.at(group).multiply(self.images.as_ref());
            let score = |index: usize| {
                let angle = group[index];
                let own = seen.as_ref().subrows(index * per_angle, per_angle);
                acquisition.of_samples(own, noise).map_err(|source| DesignError::Cholesky { angle, source })
            };
            for value in parallel::map(group.len(), 1, score) {
                all.push(value?);
            }
        }
        Ok(all)
    }

    /// The draws, p x m.
    pub(super) fn images(&self) -> &Mat<f64> {
        &self.images
    }
}
