//! **Products with the curvature** `M = Phi' B Phi`, never formed: one product with the features, one with each block of the noise
//! precision, one with the features' transpose.
//!
//! Source: spec `linearised_laplace`, section 2.3.

use crate::dense::{column, to_vec, white};
use crate::features::{BatchSource, FeatureMap, chunks};
use crate::noise::Noise;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use serde::{Deserialize, Serialize};

/// `M V` for a block of vectors (d x k), in pieces of `chunk` examples.
///
/// Cost: two products with the features and `nC² k`; memory `8 k (2d + C chunk)` bytes beside what the features need.
///
/// # Errors
/// [`LinearError::Shape`]; those of the feature map and of reading the data.
pub fn gauss_newton_product<F: FeatureMap>(
    features: &F,
    source: &dyn BatchSource<F::Batch>,
    noise: &Noise,
    vectors: MatRef<'_, f64>,
    chunk: usize,
) -> Result<Mat<f64>, LinearError> {
    noise.check(source.examples(), features.outputs())?;
    check::same("rows of the vectors", features.dimension(), vectors.nrows())?;
    let mut out = Mat::zeros(vectors.nrows(), vectors.ncols());
    for indices in chunks(source.examples(), chunk) {
        source.with_batch(&indices, &mut |batch| {
            let outputs = features.apply(batch, vectors)?;
            out += features.apply_transpose(batch, noise.apply(&indices, outputs.as_ref()).as_ref())?;
            Ok(())
        })?;
    }
    Ok(out)
}

/// When power iteration stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerOptions {
    /// Most products.
    pub steps: usize,
    /// Stop when the residual `|M v - l v|` is below this times `l`.
    pub tolerance: f64,
}

impl Default for PowerOptions {
    /// 100 products, residual 1e-3: enough for a step size.
    fn default() -> Self {
        Self { steps: 100, tolerance: 1e-3 }
    }
}

/// What power iteration found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargestEigenvalue {
    /// The Rayleigh quotient of the last vector: never above the largest eigenvalue.
    pub value: f64,
    /// `|M v - value v|`: some eigenvalue lies within this distance of `value`.
    pub residual: f64,
    /// Products taken.
    pub steps: usize,
    /// Whether the residual met the tolerance.
    pub converged: bool,
}

/// The largest eigenvalue of a symmetric positive semi-definite matrix known by its product with vectors of length `dimension`.
///
/// Starts at a random vector (stream `linear/power`). For a step size of gradient descent take less than `2 / (value + residual + a)`.
///
/// # Errors
/// [`LinearError::Empty`] for `dimension` 0, [`LinearError::Diverged`] when a product is not finite, and those of `product`.
pub fn largest_eigenvalue(
    dimension: usize,
    mut product: impl FnMut(MatRef<'_, f64>) -> Result<Mat<f64>, LinearError>,
    options: PowerOptions,
    streams: Streams,
) -> Result<LargestEigenvalue, LinearError> {
    if dimension == 0 {
        return Err(LinearError::Empty { what: "parameters" });
    }
    check::size("a vector of parameters", dimension, 1, check::BUFFER_LIMIT)?;
    let mut vector = to_vec(&white(dimension, 1, &mut streams.stream("linear/power")));
    normalise(&mut vector);
    let mut found = LargestEigenvalue { value: 0.0, residual: f64::INFINITY, steps: 0, converged: false };
    while found.steps < options.steps && !found.converged {
        let image = to_vec(&product(column(&vector))?);
        check::same("length of the product", dimension, image.len())?;
        found.value = vector.iter().zip(&image).map(|(v, m)| v * m).sum();
        found.residual =
            vector.iter().zip(&image).map(|(v, m)| (m - found.value * v).powi(2)).sum::<f64>().sqrt();
        if !(found.value.is_finite() && found.residual.is_finite()) {
            let value = found.value + found.residual;
            return Err(LinearError::Diverged {
                what: "a product with the curvature",
                step: found.steps,
                value,
            });
        }
        found.steps += 1;
        found.converged = found.residual <= options.tolerance * found.value.abs();
        vector = image;
        if normalise(&mut vector) == 0.0 {
            // The random vector is annihilated only by the zero matrix.
            return Ok(LargestEigenvalue { value: 0.0, residual: 0.0, converged: true, ..found });
        }
    }
    Ok(found)
}

fn normalise(vector: &mut [f64]) -> f64 {
    let norm = check::squared_norm(vector).sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|v| *v /= norm);
    }
    norm
}
