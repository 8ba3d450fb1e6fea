//! The log evidence of a Gaussian process for two classes by annealed importance sampling, from the posterior under Gaussian factors in the likelihood's place.
//!
//! Any factors are right, and the nearer their posterior is, the less there is to anneal. Those of Laplace's approximation are hundreds of nats away where the prior is wide and short.

use crate::kinds::prelude::*;
use crate::labels::Labelled;
use posterior_gp::GpError;
use posterior_gp::gaussianised::GaussianLabels;
use posterior_kernels::{Kernel, gram};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// How long it takes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Annealing {
    /// Steps to the posterior.
    steps: usize,
    /// Independent chains.
    chains: usize,
}

/// A log evidence and how sure it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Estimate {
    pub(super) log_evidence: f64,
    /// Of the logarithm of the mean weight, by the scatter of the chains' weights.
    pub(super) standard_error: f64,
}

/// `log 1/(1 + e^-x)`.
fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// Gaussian factors `exp(-½ w (f - z)²)` in place of the likelihood's, and the posterior `N(mean, R Rᵀ)` under them.
struct Start {
    mean: Vec<f64>,
    root: Mat<f64>,
    precisions: Vec<f64>,
    centres: Vec<f64>,
    log_normaliser: f64,
}

impl Annealing {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=1_000_000).contains(&self.steps) || !(2..=10_000).contains(&self.chains) {
            return refused("[annealing]: `steps` from 1 to 1000000, `chains` from 2 to 10000");
        }
        Ok(())
    }

    /// `log p(y)` of events with log-odds `N(prior, K)`, from pseudo-targets (one function). Cost a few `n³` flops, and `2 n²` for each step of each chain.
    pub(super) fn log_evidence(
        &self,
        kernel: &dyn Kernel<f64>,
        table: &Labelled,
        (prior, gaussian_labels): (f64, &GaussianLabels),
        streams: Streams,
    ) -> Result<Estimate> {
        let signs: Vec<f64> = table.y.iter().map(|y| if *y == 1 { 1.0 } else { -1.0 }).collect();
        let start = Start::new(gram(kernel, table.x.as_ref()), prior, gaussian_labels)?;
        let weights: Vec<f64> = (0..self.chains)
            .into_par_iter()
            .map(|chain| self.weight(&start, &signs, streams.child("experiment/chain", chain as u64)))
            .collect();
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scaled: Vec<f64> = weights.iter().map(|w| (w - top).exp()).collect();
        let n = self.chains as f64;
        let mean = scaled.iter().sum::<f64>() / n;
        let scatter = scaled.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let log_evidence = start.log_normaliser + top + mean.ln();
        Ok(Estimate { log_evidence, standard_error: (scatter / n).sqrt() / mean })
    }

    /// The log weight of one chain.
    fn weight(&self, start: &Start, signs: &[f64], streams: Streams) -> f64 {
        let mut rng = streams.stream("experiment/annealing");
        let n = signs.len();
        let draw = |rng: &mut posterior_linalg::random::ChaCha8Rng| -> Vec<f64> {
            let white = Mat::from_fn(n, 1, |_, _| StandardNormal.sample(rng));
            product(start.root.as_ref(), white.as_ref()).col_as_slice(0).to_vec()
        };
        // Deviations from the mean, along which slices are ellipses.
        let mut here = draw(&mut rng);
        let mut ratio = start.log_ratio(&here, signs);
        let mut weight = 0.0;
        for step in 0..self.steps {
            weight += ratio / self.steps as f64;
            let inverse_temperature = (step + 1) as f64 / self.steps as f64;
            let other = draw(&mut rng);
            let level = inverse_temperature * ratio + rng.random::<f64>().ln();
            let mut angle = 2.0 * std::f64::consts::PI * rng.random::<f64>();
            let (mut low, mut high) = (angle - 2.0 * std::f64::consts::PI, angle);
            loop {
                let (sine, cosine) = angle.sin_cos();
                let there: Vec<f64> = here.iter().zip(&other).map(|(a, b)| cosine * a + sine * b).collect();
                let found = start.log_ratio(&there, signs);
                if inverse_temperature * found > level || high - low < 1e-12 {
                    (here, ratio) = (there, found);
                    break;
                }
                if angle < 0.0 {
                    low = angle
                } else {
                    high = angle
                }
                angle = low + (high - low) * rng.random::<f64>();
            }
        }
        weight
    }
}

impl Start {
    /// The posterior under pseudo-targets. Cost a few `n³` flops.
    fn new(kernel: Mat<f64>, prior: f64, gaussian_labels: &GaussianLabels) -> Result<Self> {
        let n = kernel.nrows();
        let cholesky = |m: MatRef<'_, f64>| Cholesky::of(m, JitterPolicy::default()).map_err(GpError::from);
        let centres = gaussian_labels.targets.col_as_slice(0).to_vec();
        let w: Vec<f64> = gaussian_labels.variances.col_as_slice(0).iter().map(|v| 1.0 / v).collect();
        let root = cholesky(kernel.as_ref())?;
        let lower = Mat::from_fn(n, n, |i, j| if i >= j { root.factor()[(i, j)] } else { 0.0 });
        let scaled = Mat::from_fn(n, n, |i, j| w[i].sqrt() * lower[(i, j)]);
        let mut information = product(scaled.transpose(), scaled.as_ref());
        (0..n).for_each(|i| information[(i, i)] += 1.0);
        let inner = cholesky(information.as_ref())?;
        // R = L U^-T with U Uᵀ = I + Lᵀ W L; the mean in the same coordinates.
        let mut turned = lower.transpose().to_owned();
        inner.solve_factor_in_place(turned.as_mut());
        let root = turned.transpose().to_owned();
        let pull = Mat::from_fn(n, 1, |i, _| w[i] * (centres[i] - prior));
        let mean = product(root.as_ref(), product(root.transpose(), pull.as_ref()).as_ref());
        let mean: Vec<f64> = (0..n).map(|i| prior + mean[(i, 0)]).collect();
        // log ∫ N(f; prior, K) Π exp(-½ w (f - z)²) df, the quadratic at its highest place.
        let deviation = Mat::from_fn(n, 1, |i, _| mean[i] - prior);
        let white = root_solve(&lower, deviation);
        let prior_part: f64 = white.iter().map(|v| v * v).sum();
        let own: f64 = (0..n).map(|i| w[i] * (mean[i] - centres[i]).powi(2)).sum();
        let log_normaliser = -0.5 * (inner.log_determinant() + prior_part + own);
        Ok(Self { mean, root, precisions: w, centres, log_normaliser })
    }

    /// `Σ log p(y | f) / t(f)` at a deviation from the mean.
    fn log_ratio(&self, deviation: &[f64], signs: &[f64]) -> f64 {
        let each = (0..signs.len()).map(|i| {
            let f = self.mean[i] + deviation[i];
            log_sigmoid(signs[i] * f) + 0.5 * self.precisions[i] * (f - self.centres[i]).powi(2)
        });
        each.sum()
    }
}

/// `L⁻¹ v`.
fn root_solve(lower: &Mat<f64>, mut v: Mat<f64>) -> Vec<f64> {
    posterior_linalg::dense::solve_lower(lower.as_ref(), v.as_mut());
    v.col_as_slice(0).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::squared_exponential;

    /// Two events by a product of trapezoid rules.
    #[test]
    fn it_is_the_integral_of_two_events() {
        let x = faer::mat![[0.0], [0.7]];
        let table = Labelled { x: x.clone(), y: vec![1, 0], classes: 2 };
        let annealing = Annealing { steps: 40, chains: 400 };
        for variance in [0.5, 30.0] {
            let kernel = squared_exponential(variance, 1.1, 1).unwrap();
            let k = gram(&*kernel, x.as_ref());
            let (l00, l10) = (k[(0, 0)].sqrt(), k[(1, 0)] / k[(0, 0)].sqrt());
            let l11 = (k[(1, 1)] - l10 * l10).sqrt();
            let (h, mut expected) = (0.02f64, 0.0);
            for i in -400..=400 {
                for j in -400..=400 {
                    let (a, b) = (h * f64::from(i), h * f64::from(j));
                    let weight = h * h * (-0.5 * (a * a + b * b)).exp() / (2.0 * std::f64::consts::PI);
                    let f = (0.3 + l00 * a, 0.3 + l10 * a + l11 * b);
                    expected += weight * (log_sigmoid(f.0) + log_sigmoid(-f.1)).exp();
                }
            }
            let gaussian_labels =
                GaussianLabels { targets: faer::mat![[1.5], [-1.5]], variances: faer::mat![[4.0], [4.0]] };
            let start = (0.3, &gaussian_labels);
            let found = annealing.log_evidence(&*kernel, &table, start, Streams::new(3)).unwrap();
            let off = found.log_evidence - expected.ln();
            assert!(
                found.standard_error < 0.05 && off.abs() < 4.0 * found.standard_error + 1e-4,
                "{found:?} {expected}"
            );
        }
    }
}
