//! **One pass of gradient descent** on the softmax model itself: weights, and nothing of how sure they are.
//!
//! For each mini-batch B of rows in their order, with `p = softmax(W^T phi)`,
//!
//! ```text
//! g = (1/|B|) sum_n phi_n (p_n - e_y)^T        v <- rho v + g        W <- W - beta v
//! ```
//!
//! Cost: `4 P K` flops a row. Source: spec `likelihood_approximations`, section 6.7.

use super::labels::check_labels;
use crate::kinds::prelude::*;
use posterior_likelihoods::{Categorical, Likelihood};
use posterior_linalg::dense::product;
use posterior_linear::LinearError;
use posterior_linear::check::{finite_matrix, same};
use posterior_linear::streaming::StreamLatents;
use posterior_optim::Rule;

/// Step size, momentum and rows of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DescentOptions {
    /// Step size beta.
    pub(super) step_size: f64,
    /// Momentum rho in [0, 1).
    pub(super) momentum: f64,
    /// Rows of a mini-batch; the last of a call of [`SoftmaxDescent::learn`] may be smaller.
    pub(super) batch: usize,
}

/// Weights on their way.
#[derive(Clone, Debug)]
pub(super) struct SoftmaxDescent {
    likelihood: Categorical,
    options: DescentOptions,
    features: usize,
    /// Of each class after the other, P numbers each.
    weights: Vec<f64>,
    velocity: Vec<f64>,
    steps: usize,
}

impl SoftmaxDescent {
    /// Begins at zero weights for so many features and classes.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without features or with fewer than two classes; [`LinearError::Option`].
    pub(super) fn new(features: usize, classes: usize, options: DescentOptions) -> Result<Self, LinearError> {
        if features == 0 {
            return Err(LinearError::Empty { what: "features" });
        }
        check_labels(&[], classes)?;
        let DescentOptions { step_size, momentum, batch } = options;
        let wrong = |name, value, expected| Err(LinearError::Option { name, value, expected });
        if !positive(step_size) {
            return wrong("step_size", step_size, "a positive, finite number");
        }
        if !(0.0..1.0).contains(&momentum) {
            return wrong("momentum", momentum, "from 0 to below 1");
        }
        if batch == 0 {
            return wrong("batch", 0.0, "at least one row");
        }
        let likelihood =
            Categorical::new(classes).map_err(|error| LinearError::Target { example: 0, error })?;
        let zeros = vec![0.0; features * classes];
        Ok(Self { likelihood, options, features, velocity: zeros.clone(), weights: zeros, steps: 0 })
    }

    /// Weights, P x K.
    #[cfg(test)]
    fn weights(&self) -> Mat<f64> {
        Mat::from_fn(self.features, self.likelihood.classes(), |j, k| self.weights[k * self.features + j])
    }

    /// Goes once over rows by their features (B x P) and classes (B, from 0), in their order. Nothing is learned where something is wrong.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`]; [`LinearError::Option`] for a label that is no class.
    pub(super) fn learn(&mut self, features: MatRef<'_, f64>, labels: &[usize]) -> Result<(), LinearError> {
        let (p, classes) = (self.features, self.likelihood.classes());
        same("features", p, features.ncols())?;
        same("labels", features.nrows(), labels.len())?;
        finite_matrix("feature", features)?;
        check_labels(labels, classes)?;
        let DescentOptions { step_size, momentum, batch } = self.options;
        let rule = Rule::Sgd { momentum, nesterov: false, weight_decay: 0.0 };
        let (mut gradient, mut residual) = (vec![0.0; p * classes], vec![0.0; classes]);
        let mut start = 0;
        for own in labels.chunks(batch) {
            let rows = features.subrows(start, own.len());
            start += own.len();
            let latents = product(rows, MatRef::from_column_major_slice(&self.weights, p, classes));
            gradient.fill(0.0);
            for (i, label) in own.iter().enumerate() {
                let f: Vec<f64> = latents.row(i).iter().copied().collect();
                // Of the log density: `e_y - p`.
                self.likelihood.gradient(&[*label as f64], &f, &mut residual);
                for (sums, residual) in gradient.chunks_mut(p).zip(&residual) {
                    let scale = residual / own.len() as f64;
                    sums.iter_mut().enumerate().for_each(|(j, sum)| *sum -= scale * rows[(i, j)]);
                }
            }
            self.steps += 1;
            let (weights, velocity) = (&mut self.weights, &mut self.velocity);
            rule.step(weights, &gradient, velocity, &mut [], step_size, self.steps);
        }
        Ok(())
    }

    /// Latent values of B rows by their features (B x P), whose variances are zero.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub(super) fn latents(&self, features: MatRef<'_, f64>) -> Result<StreamLatents, LinearError> {
        same("features", self.features, features.ncols())?;
        finite_matrix("feature", features)?;
        let classes = self.likelihood.classes();
        let weights = MatRef::from_column_major_slice(&self.weights, self.features, classes);
        let means = product(features, weights);
        Ok(StreamLatents { means, variances: Mat::zeros(features.nrows(), classes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 60;
    const OPTIONS: DescentOptions = DescentOptions { step_size: 0.3, momentum: 0.8, batch: 1 };

    fn rows() -> (Mat<f64>, Vec<usize>) {
        let wave = |k: usize| (k as f64 * 12.9898).sin();
        let x = Mat::from_fn(ROWS, 3, |i, j| if j == 0 { 1.0 } else { wave(3 * i + j) });
        let labels = (0..ROWS).map(|i| i * 7 % 11 % 3);
        (x, labels.collect())
    }

    /// The loop by hand, with softmax and momentum written out.
    fn by_hand(batch: usize) -> Mat<f64> {
        let (x, labels) = rows();
        let (mut w, mut v) = ([[0.0f64; 3]; 3], [[0.0f64; 3]; 3]);
        for start in (0..ROWS).step_by(batch) {
            let end = (start + batch).min(ROWS);
            let mut g = [[0.0f64; 3]; 3];
            for i in start..end {
                let e: [f64; 3] =
                    std::array::from_fn(|k| (0..3).map(|j| x[(i, j)] * w[j][k]).sum::<f64>().exp());
                let total: f64 = e.iter().sum();
                for (j, g) in g.iter_mut().enumerate() {
                    for (k, g) in g.iter_mut().enumerate() {
                        let wanted = f64::from(u8::from(labels[i] == k));
                        *g += x[(i, j)] * (e[k] / total - wanted) / (end - start) as f64;
                    }
                }
            }
            for j in 0..3 {
                for k in 0..3 {
                    v[j][k] = 0.8 * v[j][k] + g[j][k];
                    w[j][k] -= 0.3 * v[j][k];
                }
            }
        }
        Mat::from_fn(3, 3, |j, k| w[j][k])
    }

    #[test]
    fn a_pass_is_the_loop_by_hand() {
        let (x, labels) = rows();
        for batch in [1, 7, 100] {
            let mut model = SoftmaxDescent::new(3, 3, DescentOptions { batch, ..OPTIONS }).unwrap();
            model.learn(x.as_ref(), &labels).unwrap();
            assert!((model.weights() - by_hand(batch)).norm_max() < 1e-12, "{batch}");
            assert_eq!(model.steps, ROWS.div_ceil(batch));
            let latents = model.latents(x.as_ref()).unwrap();
            assert!((latents.means - &x * by_hand(batch)).norm_max() < 1e-12);
            assert_eq!(latents.variances, Mat::<f64>::zeros(ROWS, 3));
        }
    }

    /// The loss is convex: many passes over all rows at once end where its gradient is zero.
    #[test]
    fn many_passes_end_at_the_optimum() {
        let (x, labels) = rows();
        let all = DescentOptions { step_size: 2.0, momentum: 0.9, batch: ROWS };
        let mut model = SoftmaxDescent::new(3, 3, all).unwrap();
        for _ in 0..3000 {
            model.learn(x.as_ref(), &labels).unwrap();
        }
        let latents = model.latents(x.as_ref()).unwrap().means;
        for k in 0..3 {
            for j in 0..3 {
                let slope: f64 = (0..ROWS)
                    .map(|i| {
                        let total: f64 = (0..3).map(|c| latents[(i, c)].exp()).sum();
                        let wanted = f64::from(u8::from(labels[i] == k));
                        x[(i, j)] * (latents[(i, k)].exp() / total - wanted)
                    })
                    .sum();
                assert!(slope.abs() < 1e-9, "{j} {k}: {slope}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_learned() {
        let (x, labels) = rows();
        let mut model = SoftmaxDescent::new(3, 3, OPTIONS).unwrap();
        let mut bad = x.clone();
        bad[(5, 2)] = f64::NAN;
        let error = model.learn(bad.as_ref(), &labels).unwrap_err().to_string();
        assert!(error.contains("feature 17 is NaN"), "{error}");
        let error = model.learn(x.as_ref(), &labels[1..]).unwrap_err().to_string();
        assert!(error.contains("labels: expected 60, found 59"), "{error}");
        let error = model.learn(x.as_ref().subrows(0, 1), &[3]).unwrap_err().to_string();
        assert!(error.contains("label is 3"), "{error}");
        assert_eq!((model.steps, model.weights()), (0, Mat::zeros(3, 3)));
        for (options, named) in [
            (DescentOptions { step_size: f64::NAN, ..OPTIONS }, "step_size"),
            (DescentOptions { momentum: 1.0, ..OPTIONS }, "momentum"),
            (DescentOptions { batch: 0, ..OPTIONS }, "batch"),
        ] {
            let error = SoftmaxDescent::new(3, 3, options).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        assert!(SoftmaxDescent::new(0, 3, OPTIONS).is_err() && SoftmaxDescent::new(3, 1, OPTIONS).is_err());
    }
}
