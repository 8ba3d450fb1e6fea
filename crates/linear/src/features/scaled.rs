//! Features whose parameters are rescaled, and the scaling of the g-prior.

use super::{BatchSource, FeatureMap, chunks};
use crate::noise::Noise;
use crate::{LinearError, check};
use faer::{Mat, MatRef};

/// `phi(x) diag(s)`: the weights of this map are those of the inner one divided by `s`.
///
/// With `s = diag(M)^{-1/2}` ([`curvature_diagonal`], [`unit_curvature_scaling`]) an isotropic prior on the scaled weights is the
/// diagonal g-prior `A = a diag(M)`, whose predictions do not depend on the scale of normalised weights.
///
/// Source: Antorán (2024), equation 6.12; spec `linearised_laplace`, sections 4.5 and 5.5.
#[derive(Clone, Debug)]
pub struct ScaledFeatures<F> {
    inner: F,
    scaling: Vec<f64>,
}

impl<F: FeatureMap> ScaledFeatures<F> {
    /// Rescales the columns of `inner` by `scaling` (d). An entry of 0 removes a parameter from the model.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn new(inner: F, scaling: Vec<f64>) -> Result<Self, LinearError> {
        check::same("scales of the parameters", inner.dimension(), scaling.len())?;
        check::finite("scale of parameter", &scaling)?;
        Ok(Self { inner, scaling })
    }

    /// The map inside.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The scales `s` (d).
    pub fn scaling(&self) -> &[f64] {
        &self.scaling
    }

    /// Weights of the inner map from those of this one: `diag(s) W`, d x k.
    ///
    /// # Errors
    /// [`LinearError::Shape`].
    pub fn unscaled(&self, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the weights", self.scaling.len(), weights.nrows())?;
        Ok(Mat::from_fn(weights.nrows(), weights.ncols(), |i, j| self.scaling[i] * weights[(i, j)]))
    }
}

impl<F: FeatureMap> FeatureMap for ScaledFeatures<F> {
    type Batch = F::Batch;

    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn outputs(&self) -> usize {
        self.inner.outputs()
    }

    fn examples(&self, batch: &Self::Batch) -> usize {
        self.inner.examples(batch)
    }

    fn apply(&self, batch: &Self::Batch, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.inner.apply(batch, self.unscaled(weights)?.as_ref())
    }

    fn apply_transpose(&self, batch: &Self::Batch, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.unscaled(self.inner.apply_transpose(batch, u)?.as_ref())
    }

    fn matrix(&self, batch: &Self::Batch) -> Result<Option<Mat<f64>>, LinearError> {
        Ok(self.inner.matrix(batch)?.map(|mut matrix| {
            for (j, s) in self.scaling.iter().enumerate() {
                matrix.as_mut().col_mut(j).iter_mut().for_each(|v| *v *= s);
            }
            matrix
        }))
    }
}

/// The diagonal of `M = Phi' B Phi` (d), exactly, in pieces of `chunk` examples.
///
/// Reads the matrix where the map gives it, and otherwise sends the columns of each root `R_i` backwards, C products per example, so that
/// its memory is `8 d C chunk` bytes.
///
/// # Errors
/// [`LinearError::Shape`] when the noise has another number of examples or outputs; those of the map.
pub fn curvature_diagonal<F: FeatureMap>(
    features: &F,
    source: &dyn BatchSource<F::Batch>,
    noise: &Noise,
    chunk: usize,
) -> Result<Vec<f64>, LinearError> {
    noise.check(source.examples(), features.outputs())?;
    let mut diagonal = vec![0.0; features.dimension()];
    for indices in chunks(source.examples(), chunk) {
        source.with_batch(&indices, &mut |batch| {
            if let Some(matrix) = features.matrix(batch)? {
                let rows = noise.whiten(&indices, matrix.as_ref());
                for (j, total) in diagonal.iter_mut().enumerate() {
                    *total += rows.col(j).squared_norm_l2();
                }
                return Ok(());
            }
            // Column `i C + c` holds column c of the root of example i and zeros elsewhere.
            let size = indices.len() * features.outputs();
            let roots = noise.color(&indices, Mat::<f64>::identity(size, size).as_ref());
            let back = features.apply_transpose(batch, roots.as_ref())?;
            for j in 0..back.ncols() {
                diagonal.iter_mut().zip(back.col(j).iter()).for_each(|(total, v)| *total += v * v);
            }
            Ok(())
        })?;
    }
    Ok(diagonal)
}

/// `s = diag(M)^{-1/2}`, and 0 where the curvature is 0: a parameter that never influenced a training output leaves the model.
///
/// With it the scaled curvature has trace d (less the parameters that left).
///
/// # Errors
/// [`LinearError::NotFinite`]; [`LinearError::NotPositive`] for a negative entry.
pub fn unit_curvature_scaling(diagonal: &[f64]) -> Result<Vec<f64>, LinearError> {
    check::finite("curvature of parameter", diagonal)?;
    if let Some(index) = diagonal.iter().position(|&m| m < 0.0) {
        return Err(LinearError::NotPositive {
            what: "curvature of parameter",
            index,
            value: diagonal[index],
        });
    }
    Ok(diagonal.iter().map(|&m| if m > 0.0 { m.sqrt().recip() } else { 0.0 }).collect())
}
