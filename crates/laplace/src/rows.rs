//! Outputs, targets and points of all examples, computed once: what processes around a network are fitted to.

use crate::LaplaceError;
use crate::kernel_inputs::{KernelInputs, SAMPLED, matrix};
use crate::problem::Data;
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_kernels::Separable;
use posterior_kernels::inducing::random_rows;
use posterior_kernels::stationary::median_lengthscale;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Precision};
use posterior_tangent::{Batch, batch_size, ranges};

/// Powers of ten between which a prior variance is looked for, and steps of each.
const AMPLITUDES: (i32, i32, i32) = (-4, 3, 4);

/// How many that are.
pub(crate) const AMPLITUDES_TRIED: usize = ((AMPLITUDES.1 - AMPLITUDES.0) * AMPLITUDES.2 + 1) as usize;

/// Prior variances that are tried on validation rows, in units of the first one.
pub(crate) fn amplitudes() -> impl Iterator<Item = f64> {
    let (low, high, each) = AMPLITUDES;
    (low * each..=high * each).map(move |k| 10f64.powf(f64::from(k) / f64::from(each)))
}

/// Prior variances with their scores, those that have none left out. A large one may overflow (the mean of a count, say): it is no candidate, and an infinity has no place in a file.
///
/// # Errors
/// Where no variance has a score.
pub(crate) fn scored(tried: impl Iterator<Item = (f64, f64)>) -> Result<Vec<(f64, f64)>, LaplaceError> {
    let tried: Vec<(f64, f64)> = tried.filter(|t| t.1.is_finite()).collect();
    match tried.is_empty() {
        false => Ok(tried),
        true => Err(LaplaceError::Request(
            "no prior variance gives validation rows a finite score: look at the targets".into(),
        )),
    }
}

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
        data: &Data<'_, T>,
        kernel_inputs: &KernelInputs,
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        let &Data { network, examples, likelihood, .. } = data;
        let (n, c, width) = (examples.len(), likelihood.outputs(), likelihood.target_width());
        let kept =
            if *kernel_inputs == KernelInputs::Tangent { 0 } else { kernel_inputs.width(network.graph()) };
        let mut out =
            Self { means: Mat::zeros(n, c), targets: Mat::zeros(n, width), points: Mat::zeros(n, kept) };
        let each = batch_size(network, 1).min(network.examples_at_once());
        for range in ranges(0, n, each) {
            let batch = Batch::read(examples, range.clone(), likelihood)?;
            let (outputs, seen) = kernel_inputs.look(network, batch.x)?;
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
            run.step(Stage::Curvature, range.end, n)?;
        }
        Ok(out)
    }

    /// The same of validation examples, where there are some.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn held<T: Precision>(
        data: &Data<'_, T>,
        kernel_inputs: &KernelInputs,
        run: &mut Run<'_>,
    ) -> Result<Option<Self>, LaplaceError> {
        let held = data.validation.map(|examples| Data { examples, ..*data });
        held.map(|held| Self::new(&held, kernel_inputs, run)).transpose()
    }

    /// Gives the kernel of a text the median distance of these points for its lengthscales, where the text does not say where they begin.
    pub(crate) fn begin_lengthscales(&self, text: &str, kernel: &mut Separable<f64>, streams: Streams) {
        if text.contains("lengthscale") {
            return;
        }
        let sampled = random_rows(self.points.nrows(), SAMPLED, streams);
        if let Some(lengthscale) = median_lengthscale(self.at(&sampled).as_ref(), streams) {
            kernel.set_lengthscales(lengthscale);
        }
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
