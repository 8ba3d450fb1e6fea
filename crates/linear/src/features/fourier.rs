//! Random Fourier features of stationary kernels.

use super::FeatureMap;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// Examples whose features are held at a time: bounds the memory of a product to `8 · 1024 d` bytes.
const BLOCK: usize = 1024;

/// Which frequencies a kernel is made of, for unit lengthscales.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spectrum {
    /// `exp(-r²/2)`: standard normal frequencies.
    SquaredExponential,
    /// Matérn of the given smoothness (0.5, 1.5, 2.5 or any positive number): Student t with `2 smoothness` degrees of freedom.
    Matern {
        /// The smoothness, positive.
        smoothness: f64,
    },
}

/// `phi(x) = sqrt(v/m) [cos(w_j' x), sin(w_j' x)]`, j = 1..m: `phi(x) phi(z)'` is an unbiased estimate of the kernel `v k(x - z)`.
///
/// There are d = 2m parameters with unit prior precision and one output. The error of one entry of the kernel matrix has
/// standard deviation `v sqrt(((1 + k(2r)) / 2 - k(r)²) / m)` with `k` of unit variance at the difference `r = x - z`. Pairs of cosines
/// and sines are exact on the diagonal, unlike random phases.
///
/// Source: Rahimi and Recht (2007), algorithm 1; Sutherland and Schneider (2015), proposition 1, for the variance; Rasmussen and
/// Williams (2006), equation 4.15, for the Matérn density.
///
/// ```
/// use faer::mat;
/// use posterior_linalg::random::Streams;
/// use posterior_linear::features::{FeatureMap, RandomFourier, Spectrum};
/// let map = RandomFourier::draw(Spectrum::SquaredExponential, &[1.0, 2.0], 1.0, 500, Streams::new(1)).unwrap();
/// let phi = map.matrix(&mat![[0.0, 0.0], [0.5, 1.0]]).unwrap().unwrap();
/// let estimate = phi.row(0) * phi.row(1).transpose();
/// assert!((estimate - (-0.25f64).exp()).abs() < 4.0 / 1000f64.sqrt());
/// ```
#[derive(Clone, Debug)]
pub struct RandomFourier {
    /// D x m.
    frequencies: Mat<f64>,
    amplitude: f64,
}

impl RandomFourier {
    /// Features with the given frequencies (D x m, in radians per unit of the input) for a kernel of variance `variance`.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without frequencies or inputs, [`LinearError::NotFinite`], [`LinearError::NotPositive`].
    pub fn new(frequencies: Mat<f64>, variance: f64) -> Result<Self, LinearError> {
        if frequencies.nrows() == 0 {
            return Err(LinearError::Empty { what: "inputs" });
        }
        if frequencies.ncols() == 0 {
            return Err(LinearError::Empty { what: "frequencies" });
        }
        check::finite_matrix("frequency", frequencies.as_ref())?;
        check::positive("variance", &[variance])?;
        let amplitude = (variance / frequencies.ncols() as f64).sqrt();
        Ok(Self { frequencies, amplitude })
    }

    /// Draws `count` frequencies for a kernel with one lengthscale per input, from the stream `linear/fourier`.
    ///
    /// # Errors
    /// As [`RandomFourier::new`]; [`LinearError::NotPositive`] for lengthscales and the smoothness, [`LinearError::TooLarge`].
    pub fn draw(
        spectrum: Spectrum,
        lengthscales: &[f64],
        variance: f64,
        count: usize,
        streams: Streams,
    ) -> Result<Self, LinearError> {
        check::positive("lengthscale", lengthscales)?;
        check::size("the matrix of frequencies", lengthscales.len(), count, check::BUFFER_LIMIT)?;
        let chi_squared = match spectrum {
            Spectrum::SquaredExponential => None,
            Spectrum::Matern { smoothness } => {
                check::positive("smoothness", &[smoothness])?;
                let degrees = 2.0 * smoothness;
                let law = ChiSquared::new(degrees).map_err(|_| LinearError::NotPositive {
                    what: "smoothness",
                    index: 0,
                    value: smoothness,
                })?;
                Some((law, degrees))
            }
        };
        let mut rng = streams.stream("linear/fourier");
        let mut frequencies = Mat::zeros(lengthscales.len(), count);
        for j in 0..count {
            // One scale for all inputs: the kernel is a function of the distance, so its spectrum is a multivariate t.
            let scale = match &chi_squared {
                Some((law, degrees)) => (degrees / law.sample(&mut rng)).sqrt(),
                None => 1.0,
            };
            for (i, lengthscale) in lengthscales.iter().enumerate() {
                let normal: f64 = StandardNormal.sample(&mut rng);
                frequencies[(i, j)] = normal * scale / lengthscale;
            }
        }
        Self::new(frequencies, variance)
    }

    /// The frequencies, D x m.
    pub fn frequencies(&self) -> MatRef<'_, f64> {
        self.frequencies.as_ref()
    }

    /// The variance of the kernel, `phi(x) phi(x)'`, the same at every `x`.
    pub fn variance(&self) -> f64 {
        self.amplitude * self.amplitude * self.frequencies.ncols() as f64
    }

    fn block(&self, inputs: MatRef<'_, f64>) -> Mat<f64> {
        let m = self.frequencies.ncols();
        let phase = inputs * &self.frequencies;
        Mat::from_fn(inputs.nrows(), 2 * m, |i, j| {
            self.amplitude * if j < m { phase[(i, j)].cos() } else { phase[(i, j - m)].sin() }
        })
    }

    fn check(&self, inputs: MatRef<'_, f64>) -> Result<(), LinearError> {
        check::same("columns of the inputs", self.frequencies.nrows(), inputs.ncols())?;
        check::finite_matrix("input", inputs)
    }
}

impl FeatureMap for RandomFourier {
    type Batch = Mat<f64>;

    fn dimension(&self) -> usize {
        2 * self.frequencies.ncols()
    }

    fn outputs(&self) -> usize {
        1
    }

    fn examples(&self, batch: &Mat<f64>) -> usize {
        batch.nrows()
    }

    /// Cost `nd(D + 2k)` flops and `nd/2` cosines and sines each, in blocks of 1024 examples.
    fn apply(&self, batch: &Mat<f64>, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.check(batch.as_ref())?;
        check::same("rows of the weights", self.dimension(), weights.nrows())?;
        let mut out = Mat::zeros(batch.nrows(), weights.ncols());
        for start in (0..batch.nrows()).step_by(BLOCK) {
            let width = BLOCK.min(batch.nrows() - start);
            let values = self.block(batch.as_ref().subrows(start, width)) * weights;
            out.as_mut().subrows_mut(start, width).copy_from(&values);
        }
        Ok(out)
    }

    /// Cost as [`RandomFourier::apply`].
    fn apply_transpose(&self, batch: &Mat<f64>, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.check(batch.as_ref())?;
        check::same("rows of the cotangents", batch.nrows(), u.nrows())?;
        let mut out = Mat::zeros(self.dimension(), u.ncols());
        for start in (0..batch.nrows()).step_by(BLOCK) {
            let width = BLOCK.min(batch.nrows() - start);
            out += self.block(batch.as_ref().subrows(start, width)).transpose() * u.subrows(start, width);
        }
        Ok(out)
    }

    fn matrix(&self, batch: &Mat<f64>) -> Result<Option<Mat<f64>>, LinearError> {
        self.check(batch.as_ref())?;
        let small = batch.nrows().saturating_mul(self.dimension()) <= super::MATRIX_ENTRIES;
        Ok(small.then(|| self.block(batch.as_ref())))
    }
}
