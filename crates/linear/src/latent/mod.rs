//! **Latent predictions** `f(x) ~ N(g(x), Phi(x) H^-1 Phi(x)^T)` (thesis eq. 3.39): the mean is the model at its expansion point, the covariance comes from the posterior's blocks.
//!
//! [`Posteriors`] are several posteriors that differ in prior and noise only: everything but the last step is shared between them, so that trying twenty priors on validation data costs little more
//! than trying one. [`Linearised::add_covariances`] adds what they say about a batch: by whitened rows of the features unless a map knows better.

mod posteriors;

pub use posteriors::{Posteriors, PreparedBlock, row_major};

use crate::curvature::by_rows::wide;
use crate::structure::ConditionedBlock;
use crate::{LinearError, Linearised};
use faer::MatRef;
use posterior_likelihoods::{Covariance, LatentGaussian};
use posterior_linalg::Real;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which entries of a latent covariance are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Variances only: memory `C` for each example.
    Diagonal,
    /// All of `[C, C]`.
    Full,
}

/// Gaussian latent outputs of some inputs, `C` for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Number of outputs.
    pub outputs: usize,
    /// `[examples, C]`.
    pub mean: Vec<f64>,
    /// `[examples, C]` or `[examples, C, C]`.
    pub covariance: Vec<f64>,
    /// Which of the two.
    pub wanted: Wanted,
    /// Variances that rounding had made negative and that were taken as zero.
    pub clipped: usize,
}

impl Latent {
    /// Outputs without any variance.
    pub fn certain(outputs: usize, mean: Vec<f64>) -> Self {
        Self { outputs, covariance: vec![0.0; mean.len()], mean, wanted: Wanted::Diagonal, clipped: 0 }
    }

    /// Adds the products of `[examples, C]` numbers with each other to the covariances.
    pub fn add_squares(&mut self, numbers: &[f64]) {
        let (c, wanted) = (self.outputs, self.wanted);
        for (own, place) in
            numbers.chunks_exact(c).zip(self.covariance.chunks_exact_mut(Self::size(c, wanted)))
        {
            match wanted {
                Wanted::Diagonal => place.iter_mut().zip(own).for_each(|(v, d)| *v += d * d),
                Wanted::Full => place.iter_mut().enumerate().for_each(|(k, v)| *v += own[k / c] * own[k % c]),
            }
        }
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.mean.len() / self.outputs.max(1)
    }

    /// Numbers of covariance for each example.
    pub fn size(outputs: usize, wanted: Wanted) -> usize {
        if wanted == Wanted::Full { outputs * outputs } else { outputs }
    }

    /// Mean and covariance of one example, as likelihoods take them.
    pub fn example(&self, i: usize) -> LatentGaussian<'_> {
        let (c, size) = (self.outputs, Self::size(self.outputs, self.wanted));
        let own = &self.covariance[i * size..(i + 1) * size];
        LatentGaussian {
            mean: &self.mean[i * c..(i + 1) * c],
            covariance: match self.wanted {
                Wanted::Full => Covariance::Full(own),
                Wanted::Diagonal => Covariance::Diagonal(own),
            },
        }
    }

    /// The variances of one example.
    pub fn variances(&self, i: usize) -> impl Iterator<Item = f64> + '_ {
        let step = if self.wanted == Wanted::Full { self.outputs + 1 } else { 1 };
        let size = Self::size(self.outputs, self.wanted);
        self.covariance[i * size..(i + 1) * size].iter().step_by(step).copied()
    }
}

/// Adds `rows rows^T` of each example's `C` rows (or its diagonal) to the covariances.
pub fn add_inner_products(rows: MatRef<'_, f64>, outputs: usize, wanted: Wanted, out: &mut [f64]) {
    // A product of one number would be cut by threads.
    let wanted = if outputs == 1 { Wanted::Diagonal } else { wanted };
    let size = Latent::size(outputs, wanted);
    for (n, place) in out.chunks_exact_mut(size).enumerate() {
        let own = rows.subrows(n * outputs, outputs);
        match wanted {
            Wanted::Diagonal => {
                (0..outputs).for_each(|c| place[c] += own.row(c).squared_norm_l2());
            }
            Wanted::Full => {
                let product = own * own.transpose();
                (0..outputs * outputs).for_each(|k| place[k] += product[(k / outputs, k % outputs)]);
            }
        }
    }
}

/// Adds `Phi H^-1 Phi^T` of each example of a batch, over one block of weights, under each posterior: by whitened rows.
///
/// # Errors
/// Those of the features.
pub fn add_rows<T: Real, L: Linearised<T> + ?Sized>(
    features: &L,
    weights: Range<usize>,
    posteriors: &[ConditionedBlock],
    wanted: Wanted,
    out: &mut [Vec<f64>],
) -> Result<(), LinearError> {
    let outputs = features.shape().1;
    let size = Latent::size(outputs, wanted);
    features.rows(None, weights, &mut |examples, rows| {
        let rows = wide(rows);
        for (block, out) in posteriors.iter().zip(out.iter_mut()) {
            let white = block.whiten(rows.as_ref());
            let place = &mut out[examples.start * size..examples.end * size];
            add_inner_products(white.as_ref(), outputs, wanted, place);
        }
    })
}
