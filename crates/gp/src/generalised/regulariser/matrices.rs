//! Regularisers that look at covariances of rows together.

use super::{Regularisation, RegularisedRows, Regulariser};
use crate::GpError;
use crate::generalised::divergence::{
    self, BatchDistance, JointNormal, Normals, SameBatch, SquaredDifference,
};
use crate::generalised::model::GeneralisedGp;
use crate::generalised::reference::ReferenceProcess;
use crate::generalised::variational::residual_covariance;
use faer::{Mat, MatRef};

impl Regulariser {
    /// Regularisers of matrices, at some rows of a batch with these means (b x C).
    pub(super) fn together(
        &self,
        model: &GeneralisedGp,
        means: &Mat<f64>,
        together: &RegularisedRows<'_>,
    ) -> Result<Regularisation, GpError> {
        let (b, functions) = means.shape();
        let rows = together.x.nrows();
        if matches!(self, Self::WassersteinOfTwo) && rows < 2 {
            return Ok(Regularisation { left_out: true, ..Regularisation::default() });
        }
        let place = |i: usize| together.rows.map_or(i, |rows| rows[i]);
        let share = 1.0 / functions as f64;
        let mut out = Regularisation { means: Some(Mat::zeros(b, functions)), ..Regularisation::default() };
        let references: Vec<Mat<f64>> = model
            .references()
            .iter()
            .map(|reference| reference.covariance(together.x))
            .collect::<Result<_, _>>()?;
        // What does not depend on a function is there once for each reference.
        let residual = |(place, reference): (usize, &ReferenceProcess)| {
            let is_needed = |c: usize| model.place(c) == place && together.kernels[c].has_residual();
            (0..functions).any(is_needed).then(|| residual_covariance(reference, together.x))
        };
        let residuals: Vec<Option<Mat<f64>>> = model.references().iter().enumerate().map(residual).collect();
        for c in 0..functions {
            let residual = residuals[model.place(c)].as_ref().filter(|_| together.kernels[c].has_residual());
            let covariance = together.kernels[c].covariance_beside(residual);
            let marginals = &together.known.marginals[model.place(c)].means;
            let prior_means: Vec<f64> = (0..rows).map(|i| marginals[(i, model.column(c))]).collect();
            let own: Vec<f64> = (0..rows).map(|i| means[(place(i), c)]).collect();
            let prior = JointNormal { means: &prior_means, covariance: references[model.place(c)].as_ref() };
            let posterior = JointNormal { means: &own, covariance: covariance.as_ref() };
            let found = self.of_matrices(prior, posterior)?;
            out.value += share * found.value;
            if let Some(of_means) = &mut out.means {
                (0..found.means.len()).for_each(|i| of_means[(place(i), c)] = share * found.means[i]);
            }
            out.covariances.push(found.covariance * faer::Scale(share));
            out.clipped += found.clipped;
            out.unresolved += found.unresolved;
            out.relative_jitter = out.relative_jitter.max(found.relative_jitter);
        }
        Ok(out)
    }
}

/// A distance of matrices with its slopes, those in the diagonal within the matrix.
struct OfMatrices {
    value: f64,
    means: Vec<f64>,
    covariance: Mat<f64>,
    clipped: usize,
    unresolved: usize,
    relative_jitter: f64,
}

impl Regulariser {
    fn of_matrices(&self, prior: JointNormal<'_>, posterior: JointNormal<'_>) -> Result<OfMatrices, GpError> {
        let rows = posterior.means.len();
        if let Self::Wasserstein(form) = self {
            let options = SameBatch { form: *form, ..SameBatch::default() };
            let found = divergence::same_batch(prior, posterior, options)?;
            let BatchDistance { value, means, variances, mut covariance, clipped, unresolved, .. } = found;
            let relative = |jitter: f64, of: MatRef<'_, f64>| match jitter {
                0.0 => 0.0,
                jitter => jitter * rows as f64 / (0..rows).map(|i| of[(i, i)]).sum::<f64>(),
            };
            let relative_jitter = relative(found.prior_jitter, prior.covariance)
                .max(relative(found.posterior_jitter, posterior.covariance));
            variances.iter().enumerate().for_each(|(i, v)| covariance[(i, i)] += v);
            return Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter });
        }
        if matches!(self, Self::SquaredDifference) {
            let SquaredDifference { value, means, covariance } =
                divergence::squared_difference(prior, posterior)?;
            let (clipped, unresolved, relative_jitter) = (0, 0, 0.0);
            return Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter });
        }
        // Rows of the first batch, then those of the second.
        let first = rows.div_ceil(2);
        let diagonal = |matrix: MatRef<'_, f64>| (0..first).map(|i| matrix[(i, i)]).collect::<Vec<_>>();
        let (k, r) = (diagonal(prior.covariance), diagonal(posterior.covariance));
        let BatchDistance {
            value, means, variances, covariance: between, clipped, complex, unresolved, ..
        } = divergence::two_batches(
            Normals { means: &prior.means[..first], variances: &k },
            Normals { means: &posterior.means[..first], variances: &r },
            prior.covariance.submatrix(0, first, first, rows - first),
            posterior.covariance.submatrix(first, 0, rows - first, first),
        )?;
        let mut covariance = Mat::zeros(rows, rows);
        variances.iter().enumerate().for_each(|(i, v)| covariance[(i, i)] = *v);
        for s in first..rows {
            for b in 0..first {
                // The block and its mirror image are one argument.
                let half = 0.5 * between[(s - first, b)];
                (covariance[(s, b)], covariance[(b, s)]) = (half, half);
            }
        }
        let clipped = clipped + complex;
        Ok(OfMatrices { value, means, covariance, clipped, unresolved, relative_jitter: 0.0 })
    }
}
