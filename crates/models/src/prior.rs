//! The covariance of a function under its prior, whatever the method.

use crate::ModelError;
use faer::{Mat, MatRef};
use posterior_gp::exact::EmbeddedPosterior;
use posterior_kernels::{Kernel, cross, diagonal, gram};
use posterior_linalg::Real;
use posterior_linear::low_rank::{LowRankPosterior, ResidualVariance};

/// Where the covariance of a predictor's prior comes from.
#[derive(Clone, Copy, Debug)]
pub enum Prior<'a> {
    /// A kernel.
    Double(&'a dyn Kernel<f64>),
    /// A kernel in single precision.
    Single(&'a dyn Kernel<f32>),
    /// A kernel behind a network.
    Embedded(&'a EmbeddedPosterior),
    /// Learned features with what they leave out.
    Features(&'a LowRankPosterior),
}

fn converted<A: Real, B: Real>(m: MatRef<'_, A>) -> Mat<B> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| B::from_f64(m[(i, j)].to_f64()))
}

impl Prior<'_> {
    /// The prior's covariance of the function at the rows of x (k x D, standardised), k x k, in squares of the target's standard deviation. Of learned features `a` it is `a(x)ᵀ a(z)`, and on
    /// the diagonal what they leave out of the variance as well, which is independent from place to place. Cost `k²` values of the kernel, or `k² m` flops.
    ///
    /// # Errors
    /// [`ModelError::Linear`] for inputs of another width or not finite, where features are learned.
    pub fn gram(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        Ok(match self {
            Self::Double(kernel) => gram(*kernel, x),
            Self::Single(kernel) => converted(gram(*kernel, converted::<f64, f32>(x).as_ref()).as_ref()),
            Self::Embedded(posterior) => {
                gram(posterior.exact().model().kernel(), posterior.embedded(x)?.as_ref())
            }
            Self::Features(posterior) => posterior.prior_gram(x)?,
        })
    }

    /// The prior's covariance between the rows of x (k x D, standardised) and other places z (l x D), k x l: without what is independent from place to place.
    ///
    /// # Errors
    /// As [`Self::gram`].
    pub fn cross(&self, x: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> {
        Ok(match self {
            Self::Double(kernel) => cross(*kernel, x, z),
            Self::Single(kernel) => {
                let (x, z) = (converted::<f64, f32>(x), converted::<f64, f32>(z));
                converted(cross(*kernel, x.as_ref(), z.as_ref()).as_ref())
            }
            Self::Embedded(posterior) => {
                let (x, z) = (posterior.embedded(x)?, posterior.embedded(z)?);
                cross(posterior.exact().model().kernel(), x.as_ref(), z.as_ref())
            }
            Self::Features(posterior) => posterior.prior_cross(x, z)?,
        })
    }

    /// The prior's variances at the rows of x: the diagonal of [`Self::gram`].
    ///
    /// # Errors
    /// As [`Self::gram`].
    pub fn variances(&self, x: MatRef<'_, f64>) -> Result<Vec<f64>, ModelError> {
        Ok(match self {
            Self::Double(kernel) => diagonal(*kernel, x),
            Self::Single(kernel) => {
                let narrow = converted::<f64, f32>(x);
                diagonal(*kernel, narrow.as_ref()).into_iter().map(f64::from).collect()
            }
            Self::Embedded(posterior) => {
                diagonal(posterior.exact().model().kernel(), posterior.embedded(x)?.as_ref())
            }
            Self::Features(posterior) => posterior.prior_variances(x)?,
        })
    }

    /// What a report adds about this covariance.
    pub(crate) fn note(&self) -> &'static str {
        match self {
            Self::Features(posterior) => match posterior.residual_variance() {
                ResidualVariance::None => {
                    " Of learned features it is their product; nothing is added on the diagonal (no correction)."
                }
                _ => {
                    " Of learned features it is their product, and on the diagonal what they leave out of the variance as well, which is independent from place to place."
                }
            },
            _ => "",
        }
    }
}
