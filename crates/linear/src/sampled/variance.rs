//! Which of the two objectives has the noisier gradients.

use super::model::{Observer, SampledModel, curve};
use super::noise::Noise;
use crate::features::FeatureMap;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};

/// What two criteria say about the variance of single-example gradients at the solution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientVariances {
    /// `Tr(s M)`, estimated.
    pub trace: f64,
    /// `2 a gamma`, estimated: the published criterion calls the low-variance objective better where this is larger than the trace (Antorán 2024, equation 4.28). It puts terms of all data for those of single examples, and so
    /// is far stricter than it need be.
    pub published: f64,
    /// The variance of the standard objective's gradient minus that of the low-variance one's, both summed over weights: `n (Tr M - 2 sum_i Tr(M_i H^-1 M_i)) - (Tr M - 2 Tr(M H^-1 M))` (spec `linearised_laplace`,
    /// section 5.6). Positive where the low-variance objective is better.
    pub difference: f64,
}

/// Estimates both from samples (d x K, scaled coordinates) and the noise they came from. Cost: two passes; of `examples` (ascending), by which sums over single examples are estimated, one product back each and sample.
///
/// # Errors
/// [`LinearError::Empty`] without examples; sizes; those of the features and of reading the data.
pub fn gradient_variances<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    noise: &Noise,
    samples: MatRef<'_, f64>,
    (precision, strength): (f64, f64),
    examples: &[usize],
    observer: Observer<'_>,
) -> Result<GradientVariances, LinearError> {
    check::same("rows of the samples", model.dimension(), samples.nrows())?;
    check::same("samples of the noise", noise.pulled.ncols(), samples.ncols())?;
    if examples.is_empty() {
        return Err(LinearError::Empty { what: "examples" });
    }
    let (n, k) = (model.examples() as f64, samples.ncols() as f64);
    let norm = |m: &Mat<f64>| (0..m.ncols()).map(|j| m.col(j).squared_norm_l2()).sum::<f64>();
    let mut squares = vec![0.0; samples.ncols()];
    let product = model.curvature_product(samples, None, &mut squares, observer)?;
    // E|M zeta|² = Tr(M H^-1 M), E|u|² = Tr M.
    let whole = strength * strength * norm(&product) / k;
    let trace = strength * norm(&noise.pulled) / k;
    let gamma = strength * squares.iter().sum::<f64>() / k;
    let (z, mut single) = (model.rounded(samples), 0.0);
    for example in examples {
        model.pass(1, Some(&[*example]), &mut *observer, &mut |_, features, observed| {
            let back = features.apply_through(z.as_ref(), &mut |examples, tangents| {
                curve(observed, examples, tangents, &mut squares);
            })?;
            let mut own = Mat::from_fn(back.nrows(), back.ncols(), |i, j| back[(i, j)].to_f64());
            model.scale(&mut own);
            single += norm(&own);
            Ok(())
        })?;
    }
    let single = strength * strength * single / k * n / examples.len() as f64;
    let difference = n * (trace - 2.0 * single) - (trace - 2.0 * whole);
    Ok(GradientVariances { trace, published: 2.0 * precision * gamma, difference })
}
