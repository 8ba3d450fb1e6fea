//! **Matérn-1/2**: `K = σ² exp(-‖p - p'‖ / ℓ)` between the centres of pixels, through a [`Torus`].

use super::PriorError;
use super::error::positive;
use super::torus::{Side, Torus};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use serde::{Deserialize, Serialize};

/// Eigenvalues this far below zero, relative to the largest, are rounding.
const ROUNDING: f64 = 1e-13;

/// The covariance of an image of `height x width` pixels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matern {
    /// Rows of the image.
    pub height: usize,
    /// Columns of the image.
    pub width: usize,
    /// ℓ in pixels; not its logarithm. The published comparison handed an exponentiated lengthscale to a routine that exponentiated it again, and so had a constant image as prior.
    pub lengthscale: f64,
    /// σ², of a pixel.
    pub variance: f64,
}

impl Matern {
    fn check(&self) -> Result<(), PriorError> {
        positive("the lengthscale", self.lengthscale)?;
        positive("the variance of a pixel", self.variance)?;
        positive("the height of the image", self.height as f64)?;
        positive("the width of the image", self.width as f64)
    }

    /// The covariance at a distance in pixels.
    pub fn at(&self, distance: f64) -> f64 {
        self.variance * (-distance / self.lengthscale).exp()
    }

    /// K, stored: p x p (`8p²` bytes), for small images and tests.
    pub fn dense(&self) -> Mat<f64> {
        let place = |pixel: usize| ((pixel / self.width) as f64, (pixel % self.width) as f64);
        let pixels = self.height * self.width;
        Mat::from_fn(pixels, pixels, |a, b| {
            let ((i, j), (k, l)) = (place(a), place(b));
            self.at((i - k).hypot(j - l))
        })
    }

    /// K as an operator (p x p), exact on the smallest torus, whose eigenvalues may be of any sign.
    ///
    /// # Errors
    /// [`PriorError::Setting`] unless size, lengthscale and variance are positive and finite.
    pub fn product(&self) -> Result<MaternProduct, PriorError> {
        self.check()?;
        let torus = Torus::around(self.height, self.width, 1.0);
        let eigenvalues = torus.eigenvalues(|distance| self.at(distance));
        Ok(MaternProduct { torus, eigenvalues })
    }

    /// `∂K / ∂ log ℓ = K ⊙ r / ℓ` as an operator (p x p).
    ///
    /// # Errors
    /// As [`Self::product`].
    pub fn slope(&self) -> Result<MaternProduct, PriorError> {
        self.check()?;
        let torus = Torus::around(self.height, self.width, 1.0);
        let slope = |distance: f64| self.at(distance) * distance / self.lengthscale;
        let eigenvalues = torus.eigenvalues(slope);
        Ok(MaternProduct { torus, eigenvalues })
    }

    /// The root F (p x PQ) on the first torus without negative eigenvalues, up to `largest_growth` (4 is customary) times as long in each direction as displacements need; there, what is negative is clipped and [reported](MaternRoot::embedding).
    ///
    /// Cost: one transform of each torus tried, growing by halves. A lengthscale of the order of the image's side or more needs a torus of several of its lengths.
    ///
    /// # Errors
    /// As [`Self::product`].
    pub fn root(&self, largest_growth: f64) -> Result<MaternRoot, PriorError> {
        self.check()?;
        let mut growth = 1.0;
        loop {
            let torus = Torus::around(self.height, self.width, growth);
            let mut eigenvalues = torus.eigenvalues(|distance| self.at(distance));
            let largest = eigenvalues.iter().fold(0.0f64, |largest, value| largest.max(*value));
            let least = eigenvalues.iter().fold(0.0f64, |least, value| least.min(*value));
            let exact = least >= -ROUNDING * largest * eigenvalues.len() as f64;
            if !exact && growth * 1.5 <= largest_growth {
                growth *= 1.5;
                continue;
            }
            let negative: Vec<f64> = eigenvalues.iter().copied().filter(|value| *value < 0.0).collect();
            let total: f64 = eigenvalues.iter().sum();
            let share = if exact { 0.0 } else { -negative.iter().sum::<f64>() / total };
            let clipped = if exact { 0 } else { negative.len() };
            eigenvalues.iter_mut().for_each(|value| *value = value.max(0.0).sqrt());
            let (rows, columns) = torus.shape();
            let embedding = Embedding { rows, columns, clipped, clipped_share: share };
            return Ok(MaternRoot { torus, roots: eigenvalues, embedding });
        }
    }
}

/// What torus a root lives on, and how exact it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    /// Rows of the torus.
    pub rows: usize,
    /// Columns of the torus.
    pub columns: usize,
    /// Negative eigenvalues that became zero; 0 where `F Fᵀ` is K to rounding.
    pub clipped: usize,
    /// Their sum relative to that of all: no entry of `F Fᵀ` is further from K than this times the variance.
    pub clipped_share: f64,
}

/// F of [`Matern::root`]: p x PQ.
#[derive(Clone, Debug)]
pub struct MaternRoot {
    torus: Torus,
    /// Roots of the eigenvalues.
    roots: Vec<f64>,
    embedding: Embedding,
}

impl MaternRoot {
    /// The torus, and what was clipped.
    pub fn embedding(&self) -> Embedding {
        self.embedding
    }
}

impl LinearOperator<f64> for MaternRoot {
    fn shape(&self) -> (usize, usize) {
        (self.torus.pixels(Side::Image), self.torus.pixels(Side::Torus))
    }

    fn apply(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        self.torus.filter(&self.roots, (input, Side::Torus), (output, Side::Image));
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply_transpose(self.shape(), input, &output);
        self.torus.filter(&self.roots, (input, Side::Image), (output, Side::Torus));
    }
}

/// K of [`Matern::product`] or its derivative: p x p, symmetric.
#[derive(Clone, Debug)]
pub struct MaternProduct {
    torus: Torus,
    eigenvalues: Vec<f64>,
}

impl LinearOperator<f64> for MaternProduct {
    fn shape(&self) -> (usize, usize) {
        (self.torus.pixels(Side::Image), self.torus.pixels(Side::Image))
    }

    fn apply(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        self.torus.filter(&self.eigenvalues, (input, Side::Image), (output, Side::Image));
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}
