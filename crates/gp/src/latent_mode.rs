//! **The posterior mode of latent functions observed through any likelihood**, without weights: Newton's method on the kernel matrix of all latent values.
//!
//! With `f = m + K a` and `W = s B(f) = R Rᵀ` (B the likelihood's positive semidefinite curvature, one C x C block for each observation, s the strength of the data) a step leads to
//!
//! ```text
//! b  = W (f - m) + s grad log p(y | f)
//! a' = b - R S⁻¹ Rᵀ K b,    S = I + Rᵀ K R         well conditioned even where B is singular (softmax) or next to nothing
//! ```
//!
//! which minimises the quadratic model of `-s log p(y | f) + aᵀ K a / 2`; steps are halved until they keep a tenth of what they promise. Nothing but K and its factors is held, and the number of weights behind K
//! does not matter.
//!
//! Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithms 3.1 and 3.3, here for any coupling of the outputs; spec `linearised_laplace`, sections 4.4 and 5.11.

use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::parallel;

/// What the mode is sought of: n observations of C latent values each, observation by observation.
pub struct LatentModeProblem<'a> {
    /// Prior covariance of all latent values, nC x nC.
    pub kernel: MatRef<'a, f64>,
    /// Their prior mean, nC.
    pub mean: &'a [f64],
    /// What is observed of each.
    pub likelihood: &'a dyn Likelihood,
    /// n targets of the likelihood's width.
    pub targets: &'a [f64],
    /// Multiplies the log likelihood.
    pub strength: f64,
}

/// Newton steps at most, and the nats below which what a step promises is nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentModeOptions {
    /// Steps at most.
    pub newton_steps: usize,
    /// Nats.
    pub tolerance: f64,
}

impl Default for LatentModeOptions {
    fn default() -> Self {
        Self { newton_steps: 100, tolerance: 1e-10 }
    }
}

/// Where the search has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentMode {
    /// `a`, nC: latent values anywhere are `m + k a`.
    pub coefficients: Vec<f64>,
    /// Latent values at the observations, nC.
    pub latent: Vec<f64>,
    /// `log p(y | f)`, not multiplied by the strength.
    pub log_likelihood: f64,
    /// `-s log p(y | f) + aᵀ K a / 2`.
    pub loss: f64,
    /// Steps taken.
    pub newton_steps: usize,
    /// What the last step promised, nats.
    pub remaining: f64,
    /// Whether that was within the tolerance.
    pub converged: bool,
}

impl LatentModeProblem<'_> {
    /// The mode, sought from the prior mean.
    ///
    /// Cost: for each step a Cholesky factorisation of nS numbers (S columns of the root, C for softmax) and `4 n² C² S` operations for `Rᵀ K R`; memory two further matrices of that size.
    ///
    /// # Errors
    /// When K is not finite, or so far from positive semidefinite that jitter does not help.
    ///
    /// # Panics
    /// When sizes do not fit.
    pub fn solve(&self, options: &LatentModeOptions) -> Result<LatentMode, CholeskyError> {
        let size = self.kernel.nrows();
        let c = self.likelihood.outputs();
        assert!(self.kernel.ncols() == size && self.mean.len() == size && size.is_multiple_of(c.max(1)));
        assert_eq!(self.targets.len() * c, size * self.likelihood.target_width(), "a target for each block");
        let mut a = vec![0.0; size];
        let mut f = self.mean.to_vec();
        let (mut likelihood, mut loss) = self.loss(&a, &f);
        let (mut steps, mut remaining, mut converged) = (0, f64::INFINITY, false);
        while steps < options.newton_steps {
            let (gradient, next) = self.newton(&f)?;
            let step: Vec<f64> = next.iter().zip(&a).map(|(next, a)| next - a).collect();
            let moved = self.times_kernel(&step);
            // Half the slope along the step: what the quadratic promises.
            let slope = |((a, g), m): ((&f64, &f64), &f64)| (g - a) * m;
            remaining = 0.5 * a.iter().zip(&gradient).zip(&moved).map(slope).sum::<f64>();
            if remaining.is_nan() || remaining <= options.tolerance {
                converged = remaining.is_finite();
                break;
            }
            steps += 1;
            let mut length = 1.0;
            let found = loop {
                let along = |from: &[f64], by: &[f64]| -> Vec<f64> {
                    from.iter().zip(by).map(|(from, by)| from + length * by).collect()
                };
                let (a, f) = (along(&a, &step), along(&f, &moved));
                let (own, value) = self.loss(&a, &f);
                if value <= loss - 0.1 * length * remaining {
                    break Some((a, f, own, value));
                }
                length *= 0.5;
                if length < 1e-6 {
                    break None;
                }
            };
            // No step lowers what rounding hides.
            let Some(found) = found else { break };
            (a, f, likelihood, loss) = found;
        }
        Ok(LatentMode {
            coefficients: a,
            latent: f,
            log_likelihood: likelihood,
            loss,
            newton_steps: steps,
            remaining,
            converged,
        })
    }

    /// Target and latent values of each observation.
    fn observations<'b>(&'b self, f: &'b [f64]) -> impl Iterator<Item = (&'b [f64], &'b [f64])> {
        let (c, width) = (self.likelihood.outputs(), self.likelihood.target_width());
        self.targets.chunks_exact(width.max(1)).zip(f.chunks_exact(c.max(1)))
    }

    /// `log p(y | f)`, and the loss of the coefficients `a` with `f = m + K a`.
    fn loss(&self, a: &[f64], f: &[f64]) -> (f64, f64) {
        let own: f64 = self.observations(f).map(|(y, f)| self.likelihood.log_density(y, f)).sum();
        let prior = |((a, f), m): ((&f64, &f64), &f64)| a * (f - m);
        (own, 0.5 * a.iter().zip(f).zip(self.mean).map(prior).sum::<f64>() - self.strength * own)
    }

    fn times_kernel(&self, v: &[f64]) -> Vec<f64> {
        product(self.kernel, MatRef::from_column_major_slice(v, v.len(), 1)).col_as_slice(0).to_vec()
    }

    /// `s grad log p` at `f`, and the coefficients that a whole step leads to.
    fn newton(&self, f: &[f64]) -> Result<(Vec<f64>, Vec<f64>), CholeskyError> {
        let (c, width, size) = (self.likelihood.outputs(), self.likelihood.root_width(), f.len());
        let mut gradient = vec![0.0; size];
        let mut roots = Vec::with_capacity(size / c * c * width);
        for ((y, f), gradient) in self.observations(f).zip(gradient.chunks_exact_mut(c)) {
            self.likelihood.gradient(y, f, gradient);
            gradient.iter_mut().for_each(|g| *g *= self.strength);
            let mut root = vec![0.0; c * width];
            self.likelihood.root(y, f, &mut root);
            roots.extend(root.into_iter().map(|r| r * self.strength.sqrt()));
        }
        let count = size / c;
        let directions = count * width;
        let root = |n: usize, o: usize, k: usize| roots[(n * c + o) * width + k];
        // `R u` and `Rᵀ u`, block by block.
        let from = |u: &[f64]| -> Vec<f64> {
            (0..size)
                .map(|i| (0..width).map(|k| root(i / c, i % c, k) * u[i / c * width + k]).sum())
                .collect()
        };
        let onto = |u: &[f64], out: &mut [f64]| {
            for (n, (u, out)) in u.chunks_exact(c).zip(out.chunks_exact_mut(width)).enumerate() {
                for (k, out) in out.iter_mut().enumerate() {
                    *out = u.iter().enumerate().map(|(o, u)| root(n, o, k) * u).sum();
                }
            }
        };
        let mut s = vec![0.0; directions * directions];
        parallel::chunks(&mut s, directions.max(1), 1, |j, out| {
            let (n, k) = (j / width, j % width);
            let mut column = vec![0.0; size];
            for o in 0..c {
                let (own, factor) = (self.kernel.col(n * c + o), root(n, o, k));
                column.iter_mut().zip(own.iter()).for_each(|(c, v)| *c += factor * v);
            }
            onto(&column, out);
            out[j] += 1.0;
        });
        let factor = Cholesky::of(
            MatRef::from_column_major_slice(&s, directions, directions),
            JitterPolicy::default(),
        )?;
        drop(s);
        let moved: Vec<f64> = f.iter().zip(self.mean).map(|(f, m)| f - m).collect();
        let mut rest = Mat::zeros(directions, 1);
        onto(&moved, rest.col_as_slice_mut(0));
        let b: Vec<f64> = from(rest.col_as_slice(0)).iter().zip(&gradient).map(|(w, g)| w + g).collect();
        onto(&self.times_kernel(&b), rest.col_as_slice_mut(0));
        factor.solve_in_place(rest.as_mut());
        let next = b.iter().zip(from(rest.col_as_slice(0))).map(|(b, r)| b - r).collect();
        Ok((gradient, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_likelihoods::{Bernoulli, Categorical, Gaussian, Link, Poisson};

    /// A kernel matrix of latent values that depend on each other.
    fn kernel(size: usize, scale: f64) -> Mat<f64> {
        let wave = |i: usize, k: usize| ((i + 1) as f64 * (k as f64 + 0.7) * 0.37).sin();
        let phi = Mat::from_fn(size, size, wave);
        Mat::from_fn(size, size, |i, j| {
            scale * (0..size).map(|k| phi[(i, k)] * phi[(j, k)]).sum::<f64>() / size as f64
                + if i == j { 0.1 * scale } else { 0.0 }
        })
    }

    fn solved(problem: &LatentModeProblem<'_>) -> LatentMode {
        let found = problem.solve(&LatentModeOptions { tolerance: 1e-16, ..Default::default() }).unwrap();
        assert!(found.newton_steps < 40, "{found:?}");
        found
    }

    #[test]
    fn coefficients_are_the_slopes_of_the_likelihood() {
        let mean: Vec<f64> = (0..24).map(|i| 0.3 * (i as f64).cos()).collect();
        let counts: Vec<f64> = (0..24).map(|i| (i % 5) as f64).collect();
        let labels: Vec<f64> = (0..8).map(|i| (i % 3) as f64).collect();
        let events: Vec<f64> = (0..24).map(|i| (i % 2) as f64).collect();
        let cases: [(&dyn Likelihood, &[f64]); 3] = [
            (&Categorical::new(3).unwrap(), &labels),
            (&Bernoulli::new(1, Link::Logit).unwrap(), &events),
            (&Poisson::new(1).unwrap(), &counts),
        ];
        for (likelihood, targets) in cases {
            // From hardly any prior freedom to so much that S is far from the identity.
            for scale in [1e-3, 1.0, 1e4] {
                let (kernel, c) = (kernel(24, scale), likelihood.outputs());
                let problem = LatentModeProblem {
                    kernel: kernel.as_ref(),
                    mean: &mean,
                    likelihood,
                    targets,
                    strength: 0.7,
                };
                let found = solved(&problem);
                let latent: Vec<f64> =
                    problem.times_kernel(&found.coefficients).iter().zip(&mean).map(|(k, m)| k + m).collect();
                // At the mode `a = s grad log p(y | m + K a)`, observation by observation.
                let mut slope = vec![0.0; c];
                for (n, y) in targets.chunks_exact(1).enumerate() {
                    likelihood.gradient(y, &latent[n * c..(n + 1) * c], &mut slope);
                    for (o, slope) in slope.iter().enumerate() {
                        let a = found.coefficients[n * c + o];
                        assert!(
                            (a - 0.7 * slope).abs() < 1e-6,
                            "{}, {scale}: {a} {slope}",
                            likelihood.name()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn gaussian_noise_has_its_closed_form_in_one_step() {
        let (kernel, mean) = (kernel(7, 2.0), [0.5; 7]);
        let targets: Vec<f64> = (0..7).map(|i| (i as f64).sin()).collect();
        let likelihood = Gaussian::new(0.3, 0.0);
        let problem = LatentModeProblem {
            kernel: kernel.as_ref(),
            mean: &mean,
            likelihood: &likelihood,
            targets: &targets,
            strength: 1.0,
        };
        let found = problem.solve(&LatentModeOptions::default()).unwrap();
        assert_eq!((found.newton_steps, found.converged), (1, true));
        let mut noisy = kernel.clone();
        (0..7).for_each(|i| noisy[(i, i)] += 0.3);
        for i in 0..7 {
            let through: f64 = (0..7).map(|j| noisy[(i, j)] * found.coefficients[j]).sum();
            assert!((through - (targets[i] - 0.5)).abs() < 1e-12);
        }
        let own: f64 =
            targets.iter().zip(&found.latent).map(|(y, f)| likelihood.log_density(&[*y], &[*f])).sum();
        assert_eq!(found.log_likelihood, own);
    }
}
