//! Outputs, targets and points of all examples, computed once: what processes around a network are fitted to.

use crate::sight::{Sight, matrix};
use crate::{LaplaceError, Stage};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Precision};
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, ranges};

/// What a process is fitted to.
pub(crate) struct Rows {
    /// Outputs of the network, n x C.
    pub(crate) means: Mat<f64>,
    /// n x width.
    pub(crate) targets: Mat<f64>,
    /// Points of a kernel of rows, n x D; none for the tangent, which is asked for its inputs a batch at a time.
    pub(crate) points: Mat<f64>,
}

impl Rows {
    /// One pass forwards.
    ///
    /// # Errors
    /// Bad inputs or targets, outputs that are not finite, interruption.
    pub(crate) fn new<T: Precision>(
        network: &Network<T>,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        sight: &Sight,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<Self, LaplaceError> {
        let (n, c, width) = (examples.len(), likelihood.outputs(), likelihood.target_width());
        let kept = if *sight == Sight::Tangent { 0 } else { sight.width(network.graph()) };
        let mut out =
            Self { means: Mat::zeros(n, c), targets: Mat::zeros(n, width), points: Mat::zeros(n, kept) };
        let each = batch_size(network, 1).min(network.examples_at_once());
        for range in ranges(0, n, each) {
            let batch = Batch::read(examples, range.clone(), likelihood)?;
            let (outputs, seen) = sight.look(network, batch.x)?;
            for (i, example) in range.clone().enumerate() {
                for (j, value) in outputs.row(i).iter().enumerate() {
                    out.means[(example, j)] = value.to_f64();
                    if !value.to_f64().is_finite() {
                        return Err(LaplaceError::NotFinite { what: "the output", example });
                    }
                }
                for (j, target) in batch.targets[i * width..(i + 1) * width].iter().enumerate() {
                    out.targets[(example, j)] = *target;
                }
                for (j, value) in seen.row(i).iter().take(kept).enumerate() {
                    out.points[(example, j)] = value.to_f64();
                }
            }
            if observer(Stage::Curvature, range.end, n) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(out)
    }

    /// Minus the mean log density of the targets about the outputs themselves, nats.
    pub(crate) fn plain_score(&self, likelihood: &OutputLikelihood) -> f64 {
        let (n, row) = (self.means.nrows(), |m: &Mat<f64>, i| m.row(i).iter().copied().collect::<Vec<f64>>());
        let of = |i| likelihood.log_density(&row(&self.targets, i), &row(&self.means, i));
        -(0..n).map(of).sum::<f64>() / n as f64
    }

    /// Some of the points.
    pub(crate) fn at(&self, rows: &[usize]) -> Mat<f64> {
        Mat::from_fn(rows.len(), self.points.ncols(), |i, j| self.points[(rows[i], j)])
    }
}

/// Inputs of some examples in double precision.
pub(crate) fn inputs<T: Precision>(examples: &dyn Examples<T>, rows: &[usize]) -> Array<f64> {
    examples.batch(rows, None).0.cast()
}

/// The same as a matrix.
pub(crate) fn input_matrix<T: Precision>(examples: &dyn Examples<T>, rows: &[usize]) -> Mat<f64> {
    matrix(&examples.batch(rows, None).0)
}
