//! **What is left of targets around the network**, as numbers with noise in units of its outputs.
//!
//! With `g = ∂ log p(y | f) / ∂f` and `B`, the Gauss-Newton curvature, both at the network's outputs,
//!
//! ```text
//! u_nc = g_nc / w,   w = mean of B_cc over rows and outputs,   noise variance 1 / w
//! ```
//!
//! Under Gaussian noise (one variance for all outputs) that is the residual `y - f`; of classes it is the one-hot target minus the probabilities, in logits. One Newton step row by row, `g / B_cc`, would say the same where outputs are alike, but at rows of which the network is sure it divides by nearly
//! nothing: one wrong digit of a thousand has a pseudo-target of a thousand logits then, and all that is learned from such numbers is about these few. With one w for all they are as large as their surprise, at most `1 / w`.
//!
//! Numbers with noise of their own units ([`OutputLikelihood::Gaussian`]) have residuals as they are, whatever the variances of outputs.

use crate::LaplaceError;
use crate::rows::Rows;
use faer::Mat;
use posterior_likelihoods::{Likelihood, OutputLikelihood};

/// Numbers that stand for targets.
pub(super) struct PseudoTargets {
    /// Of some rows, b x C.
    pub(super) values: Mat<f64>,
    /// The variance of their noise as the likelihood has it.
    pub(super) noise: f64,
}

/// Of `rows`; w is a mean over `all` of them. Cost `C²` for each row.
///
/// # Errors
/// [`LaplaceError::NotFinite`] where the likelihood has no finite curvature at the network's output, as counts at the exponential of a large one.
pub(super) fn pseudo_targets(
    likelihood: &OutputLikelihood,
    of: &Rows,
    rows: &[usize],
    all: &[usize],
) -> Result<PseudoTargets, LaplaceError> {
    let c = likelihood.outputs();
    if let OutputLikelihood::Gaussian(own) = likelihood {
        let values = Mat::from_fn(rows.len(), c, |i, j| of.targets[(rows[i], j)] - of.means[(rows[i], j)]);
        return Ok(PseudoTargets { values, noise: own.noise_variances().iter().sum::<f64>() / c as f64 });
    }
    let mut at = AtRows::new(&**likelihood, of);
    let mut entries = vec![0.0; c];
    let mut sum = 0.0;
    for &row in all {
        at.curvature_diagonal(row, &mut entries);
        sum += entries.iter().sum::<f64>();
        if !sum.is_finite() {
            return Err(LaplaceError::NotFinite { what: "the likelihood's curvature", example: row });
        }
    }
    // Of a network that is sure of all its rows nothing is left but rounding.
    let w = (sum / (all.len() * c) as f64).clamp(f64::MIN_POSITIVE.sqrt(), f64::MAX.sqrt());
    let mut values = Mat::zeros(rows.len(), c);
    for (i, &row) in rows.iter().enumerate() {
        at.gradient(row, &mut entries);
        entries.iter().enumerate().for_each(|(j, g)| values[(i, j)] = g / w);
    }
    Ok(PseudoTargets { values, noise: 1.0 / w })
}

/// A likelihood at the network's outputs, row by row.
pub(super) struct AtRows<'a> {
    likelihood: &'a dyn Likelihood,
    of: &'a Rows,
    target: Vec<f64>,
    outputs: Vec<f64>,
    matrix: Vec<f64>,
}

impl<'a> AtRows<'a> {
    pub(super) fn new(likelihood: &'a dyn Likelihood, of: &'a Rows) -> Self {
        let c = likelihood.outputs();
        let entries = if likelihood.is_diagonal() { 0 } else { c * c };
        let target = vec![0.0; likelihood.target_width()];
        Self { likelihood, of, target, outputs: vec![0.0; c], matrix: vec![0.0; entries] }
    }

    fn read(&mut self, row: usize) {
        self.target.iter_mut().enumerate().for_each(|(j, y)| *y = self.of.targets[(row, j)]);
        self.outputs.iter_mut().enumerate().for_each(|(j, f)| *f = self.of.means[(row, j)]);
    }

    /// g (C).
    fn gradient(&mut self, row: usize, out: &mut [f64]) {
        self.read(row);
        self.likelihood.gradient(&self.target, &self.outputs, out);
    }

    /// `B_cc` (C).
    pub(super) fn curvature_diagonal(&mut self, row: usize, out: &mut [f64]) {
        self.read(row);
        if self.matrix.is_empty() {
            self.likelihood.curvature_entries(&self.target, &self.outputs, out);
            return;
        }
        self.likelihood.curvature(&self.target, &self.outputs, &mut self.matrix);
        let step = out.len() + 1;
        out.iter_mut().zip(self.matrix.iter().step_by(step)).for_each(|(out, b)| *out = *b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::{Categorical, Gaussian};

    fn rows(targets: Mat<f64>, means: Mat<f64>) -> Rows {
        Rows { points: Mat::zeros(means.nrows(), 1), means, targets }
    }

    #[test]
    fn of_numbers_they_are_residuals_and_of_classes_one_hot_targets_minus_probabilities_in_logits() {
        let means = Mat::from_fn(4, 2, |i, j| 0.3 * i as f64 - 0.7 * j as f64);
        let targets = Mat::from_fn(4, 2, |i, j| (1.3 * (i + 2 * j) as f64).sin());
        let numbers = rows(targets.clone(), means.clone());
        let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.1, 0.3]).unwrap());
        let found = pseudo_targets(&likelihood, &numbers, &[2, 0], &[0, 1, 2, 3]).unwrap();
        assert_eq!(found.values, Mat::from_fn(2, 2, |i, j| (&targets - &means)[(2 - 2 * i, j)]));
        assert!((found.noise - 0.2).abs() < 1e-15);

        let logits = Mat::from_fn(4, 3, |i, j| (1.7 * (3 * i + j) as f64).cos());
        let classes = rows(Mat::from_fn(4, 1, |i, _| (i % 3) as f64), logits.clone());
        let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let found = pseudo_targets(&likelihood, &classes, &[1, 3], &[0, 1, 2, 3]).unwrap();
        let p = |i: usize, j: usize| {
            let total: f64 = (0..3).map(|k| logits[(i, k)].exp()).sum();
            logits[(i, j)].exp() / total
        };
        let w: f64 = (0..12).map(|k| p(k / 3, k % 3) * (1.0 - p(k / 3, k % 3)) / 12.0).sum();
        assert!((found.noise - 1.0 / w).abs() < 1e-12 / w);
        for (k, row) in [1, 3].into_iter().enumerate() {
            for j in 0..3 {
                let expected = (f64::from(u8::from(row % 3 == j)) - p(row, j)) / w;
                assert!((found.values[(k, j)] - expected).abs() < 1e-12, "{row} {j}");
            }
        }
    }
}
