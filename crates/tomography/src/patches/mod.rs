//! **The density of a true image under a posterior, patch by patch**: correlations within patches count, those between them do not, so that a few thousand draws say enough about each.
//!
//! ```text
//! Σ_P log N(x_P; x̃_P, K_P + ε I) / pixels
//! ```
//!
//! over the patches P of a [`Tiling`]; 1 x 1 is the score of marginals, 10 x 10 the published one. K_P comes from draws ([`PatchCovariance::Samples`]) or from a stored covariance. Images are row-major.
//! Source: Antorán (2024), section 7.3.5 and the authors' evaluation.
//!
//! | file | what |
//! |---|---|
//! | `tiling` | [`Tiling`], [`Patch`]: patches that cover every pixel once |
//! | `mod` | [`patch_log_density`], [`pseudo_inverse_stabiliser`] |
//!
//! ```
//! use faer::Mat;
//! use posterior_tomography::patches::{PatchCovariance, Tiling, patch_log_density};
//! // Sixteen pixels, each standard normal about the mean, and a truth that is the mean.
//! let covariance = Mat::<f64>::identity(16, 16);
//! let tiling = Tiling::new(4, 4, 2)?;
//! let image = [0.5; 16];
//! let score = patch_log_density(&image, &image, PatchCovariance::Exact(covariance.as_ref()), &tiling, 0.0)?;
//! assert_eq!(score.patches, 4);
//! assert!((score.per_pixel() + 0.5 * std::f64::consts::TAU.ln()).abs() < 1e-14);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod tiling;

#[cfg(test)]
mod tests;

pub use tiling::{Patch, Tiling, TilingError};

use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::dense::eigenvalues;
use posterior_linalg::parallel;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// How draws become a covariance. Both are of draws of zero mean: no sample mean is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// `Σ x xᵀ / m`: unbiased, and of rank m.
    Plain,
    /// `Σ (diag(x²) + x xᵀ) / 2m`: as published; half of every correlation is given up for less variance. Better up to some hundred draws of a 10 x 10 patch, worse from a thousand.
    Inflated,
}

/// Where the covariance of a patch comes from.
#[derive(Clone, Copy)]
pub enum PatchCovariance<'a> {
    /// Draws of the posterior, zero in the mean.
    Samples {
        /// One image a column, p x m.
        images: MatRef<'a, f64>,
        /// The estimator.
        estimator: Estimator,
    },
    /// The covariance of all pixels, p x p, lower triangle.
    Exact(MatRef<'a, f64>),
}

/// What a posterior says about the true image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchScore {
    /// The sum of log densities of patches, in nats.
    pub total: f64,
    /// Pixels in patches.
    pub pixels: usize,
    /// Patches.
    pub patches: usize,
    /// What was added to every variance, ε.
    pub stabiliser: f64,
}

impl PatchScore {
    /// Nats a pixel.
    pub fn per_pixel(&self) -> f64 {
        self.total / self.pixels as f64
    }
}

/// Why a patch has no density.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// Which sizes.
        what: &'static str,
        /// What was needed.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// A stabiliser or a noise variance outside its range.
    #[error("{what} is {value}, but must be {needed}")]
    Setting {
        /// Which.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The range it must be in.
        needed: &'static str,
    },
    /// A covariance without density.
    #[error("the patch of rows {}..{} and columns {}..{}: {source}; add a stabiliser, or draw more samples", .patch.rows.start, .patch.rows.end, .patch.columns.start, .patch.columns.end)]
    Cholesky {
        /// Which patch.
        patch: Patch,
        /// Why.
        source: CholeskyError,
    },
    /// The spectrum of the projector could not be had.
    #[error("the eigenvalues of the projector's normal matrix could not be computed: an entry is not finite")]
    Eigenvalues,
}

/// The log density of `truth` under `N(mean, K + stabiliser I)` by patches. Patches are shared out among threads and summed in order.
///
/// Cost of a patch of k pixels: `k²m` flops from m draws, `k³/3` for the factor.
///
/// # Errors
/// [`PatchError::Shape`] for images of another size, [`PatchError::Setting`] for a negative stabiliser, [`PatchError::Cholesky`] when a covariance is not positive definite (nothing is added in silence).
pub fn patch_log_density(
    truth: &[f64],
    mean: &[f64],
    covariance: PatchCovariance<'_>,
    tiling: &Tiling,
    stabiliser: f64,
) -> Result<PatchScore, PatchError> {
    let pixels = tiling.image_pixels();
    let rows = match covariance {
        PatchCovariance::Samples { images, .. } => images.nrows(),
        PatchCovariance::Exact(matrix) => matrix.nrows(),
    };
    let sizes = [("pixels of the truth", truth.len()), ("pixels of the mean", mean.len())];
    for (what, actual) in sizes.into_iter().chain([("rows of the covariance or of the draws", rows)]) {
        if actual != pixels {
            return Err(PatchError::Shape { what, expected: pixels, actual });
        }
    }
    if !(stabiliser >= 0.0 && stabiliser.is_finite()) {
        let (what, needed) = ("the stabiliser", "at least 0 and finite");
        return Err(PatchError::Setting { what, value: stabiliser, needed });
    }
    let patches = tiling.patches();
    let density = |patch: &Patch| {
        let own: Vec<usize> = patch.pixels(tiling.width()).collect();
        let mut matrix = of_patch(covariance, &own);
        (0..own.len()).for_each(|i| matrix[(i, i)] += stabiliser);
        let factor = Cholesky::of(matrix.as_ref(), JitterPolicy::NONE)
            .map_err(|source| PatchError::Cholesky { patch: patch.clone(), source })?;
        let mut white = Mat::from_fn(own.len(), 1, |i, _| truth[own[i]] - mean[own[i]]);
        factor.solve_factor_in_place(white.as_mut());
        let value = -0.5 * (white.squared_norm_l2() + factor.log_determinant() + own.len() as f64 * TAU.ln());
        Ok((value, own.len()))
    };
    let densities = parallel::map(patches.len(), 1, |i| density(&patches[i]));
    let densities: Result<Vec<(f64, usize)>, PatchError> = densities.into_iter().collect();
    let (total, pixels) = densities?.iter().fold((0.0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    Ok(PatchScore { total, pixels, patches: patches.len(), stabiliser })
}

/// The covariance of some pixels, without stabiliser.
fn of_patch(covariance: PatchCovariance<'_>, pixels: &[usize]) -> Mat<f64> {
    let k = pixels.len();
    match covariance {
        PatchCovariance::Exact(matrix) => Mat::from_fn(k, k, |i, j| {
            let (a, b) = (pixels[i].max(pixels[j]), pixels[i].min(pixels[j]));
            matrix[(a, b)]
        }),
        PatchCovariance::Samples { images, estimator } => {
            let own = Mat::from_fn(k, images.ncols(), |i, j| images[(pixels[i], j)]);
            let mut out = Mat::zeros(k, k);
            let scale = 1.0 / images.ncols() as f64;
            // Threads have patches of their own.
            faer::linalg::matmul::matmul(
                out.as_mut(),
                faer::Accum::Replace,
                own.as_ref(),
                own.transpose(),
                scale,
                faer::Par::Seq,
            );
            if estimator == Estimator::Inflated {
                for j in 0..k {
                    (0..k).filter(|&i| i != j).for_each(|i| out[(i, j)] *= 0.5);
                }
            }
            out
        }
    }
}

/// The stabiliser that small problems derive from the scan: `σ² mean diag (TᵀT)⁺`, the pseudo-inverse from the `rank` largest eigenvalues (100 as published): `σ² Σ 1/λ_i / p`, since eigenvectors have length 1.
///
/// `normal` is TᵀT (p x p). Cost: `4p³/3` flops.
///
/// # Errors
/// [`PatchError::Setting`] when the noise variance is not positive or no eigenvalue is, [`PatchError::Eigenvalues`] when an entry is not finite.
pub fn pseudo_inverse_stabiliser(
    normal: MatRef<'_, f64>,
    noise_variance: f64,
    rank: usize,
) -> Result<f64, PatchError> {
    let setting = |what, value| PatchError::Setting { what, value, needed: "positive and finite" };
    if !(noise_variance > 0.0 && noise_variance.is_finite()) {
        return Err(setting("the noise variance", noise_variance));
    }
    let pixels = normal.nrows();
    let values = eigenvalues(normal).map_err(|_| PatchError::Eigenvalues)?;
    let largest = values.last().copied().unwrap_or(0.0);
    if !(largest > 0.0 && largest.is_finite()) {
        return Err(setting("the largest eigenvalue of the projector's normal matrix", largest));
    }
    // What rounding left of zeros has no inverse.
    let floor = largest * f64::EPSILON * pixels as f64;
    let kept = values.iter().rev().take(rank).filter(|&&value| value > floor);
    Ok(noise_variance * kept.map(|value| 1.0 / value).sum::<f64>() / pixels as f64)
}
