//! **The largest evidence of a linear model with Gaussian noise and one prior precision**, found in closed form but for one number.
//!
//! With whitened targets `t = R^T (y - f0)`, where `f0 = g - J v` is what the linearised network says without its weights `v`, and `K = R^T J J^T R = U diag(λ) U^T` (thesis eq. 2.44 in its dual form; spec `linearised_laplace`, section 3.3):
//!
//! `log p(t) = -1/2 [ t^T (K / a + s I)^-1 t + log det(K / a + s I) + n log 2π ]`.
//!
//! With `ρ = a s` the best noise for each `ρ` is `s(ρ) = 1/n Σ_j e_j ρ / (λ_j + ρ)` with energies `e_j = (u_j^T t)²`, so that one logarithm is searched, over all of its range: a search that climbs from
//! somewhere finds the nearest maximum, and these have two often enough (all signal, all noise). Cost: O(n) for each of some 250 values.

use super::EvidenceOptions;

/// Values of `ρ` tried in each power of ten.
const EACH_DECADE: usize = 8;
/// Powers of ten below and above the largest eigenvalue that are searched.
const DECADES: (i32, i32) = (-14, 6);

/// What targets and curvature say to the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralEvidence {
    /// Eigenvalues of the curvature, none negative.
    pub eigenvalues: Vec<f64>,
    /// `(u_j^T t)²` for each.
    pub energies: Vec<f64>,
    /// `|t|²` outside of what the eigenvectors span.
    pub rest: f64,
    /// Numbers that were observed.
    pub values: usize,
}

impl SpectralEvidence {
    /// The noise variance that is best for a ratio.
    fn noise(&self, ratio: f64) -> f64 {
        let explained = self.energies.iter().zip(&self.eigenvalues).map(|(e, l)| e * ratio / (l + ratio));
        (explained.sum::<f64>() + self.rest) / self.values as f64
    }

    /// Minus twice the log evidence at the best noise of a ratio, without its constants.
    fn cost(&self, ratio: f64) -> f64 {
        let determinant: f64 = self.eigenvalues.iter().map(|l| (l / ratio).ln_1p()).sum();
        self.values as f64 * self.noise(ratio).ln() + determinant
    }

    /// Effective dimensions at a ratio.
    fn effective_dimensions(&self, ratio: f64) -> f64 {
        self.eigenvalues.iter().map(|l| l / (l + ratio)).sum()
    }

    /// The prior precision and noise variance of the largest evidence within bounds and with at most `most` effective dimensions; None where there is nothing to tell them by.
    pub fn largest(&self, bounds: &EvidenceOptions, most: f64) -> Option<(f64, f64)> {
        let top = self.eigenvalues.iter().copied().fold(0.0, f64::max);
        let total: f64 = self.energies.iter().sum::<f64>() + self.rest;
        if !(top.is_finite() && top > 0.0 && total.is_finite() && total > 0.0) {
            return None;
        }
        let count = EACH_DECADE * (DECADES.1 - DECADES.0) as usize;
        let exponent = |k: f64| f64::from(DECADES.0) + k / EACH_DECADE as f64;
        // Effective dimensions fall with the ratio.
        let cost = |k: f64| {
            let ratio = top * 10f64.powf(exponent(k));
            if self.effective_dimensions(ratio) <= most { self.cost(ratio) } else { f64::INFINITY }
        };
        let best = (0..=count).map(|k| (k as f64, cost(k as f64))).filter(|c| c.1.is_finite());
        let (k, _) = best.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let k = golden_section((k - 1.0).max(0.0), (k + 1.0).min(count as f64), cost);
        let ratio = top * 10f64.powf(exponent(k));
        let (low, high) = bounds.noise_variances;
        let noise = self.noise(ratio).clamp(low, high);
        let (low, high) = bounds.precisions;
        Some(((ratio / noise).clamp(low, high), noise))
    }
}

/// Where a function with one minimum between two points is least, to a millionth of their distance.
fn golden_section(mut low: f64, mut high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let shrink = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - shrink * (high - low), low + shrink * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..30 {
        if fa <= fb {
            (high, b, fb) = (b, a, fa);
            a = high - shrink * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + shrink * (high - low);
            fb = f(b);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
    use posterior_linalg::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    /// Minus twice the log evidence by a Cholesky factor of `K / a + s I`.
    fn brute(kernel: &faer::Mat<f64>, t: &faer::Mat<f64>, a: f64, s: f64) -> f64 {
        let n = t.nrows();
        let c = faer::Mat::from_fn(n, n, |i, j| kernel[(i, j)] / a + if i == j { s } else { 0.0 });
        let factor = Cholesky::of(c.as_ref(), JitterPolicy::default()).unwrap();
        let mut white = t.clone();
        factor.solve_factor_in_place(white.as_mut());
        white.squared_norm_l2() + factor.log_determinant()
    }

    #[test]
    fn no_other_precision_and_noise_have_more_evidence() {
        let mut rng = Streams::new(5).stream("optimum");
        let mut normal = |_: usize, _: usize| -> f64 { StandardNormal.sample(&mut rng) };
        let (n, d) = (30, 12);
        let features = faer::Mat::from_fn(n, d, &mut normal);
        let kernel = &features * features.transpose();
        for noise in [0.1, 2.0] {
            let weights = faer::Mat::from_fn(d, 1, |i, j| 0.7 * normal(i, j));
            let t = &features * weights + faer::Mat::from_fn(n, 1, |i, j| noise * normal(i, j));
            let eigen = kernel.self_adjoint_eigen(faer::Side::Lower).unwrap();
            let projected = eigen.U().transpose() * &t;
            let spectral = SpectralEvidence {
                eigenvalues: eigen.S().column_vector().iter().map(|l| l.max(0.0)).collect(),
                energies: (0..n).map(|j| projected[(j, 0)].powi(2)).collect(),
                rest: 0.0,
                values: n,
            };
            // The same model by its weights: as many eigenvalues as weights, the rest of the energy beside them.
            let kept: Vec<usize> = (0..n).filter(|j| spectral.eigenvalues[*j] > 1e-9).collect();
            assert_eq!(kept.len(), d);
            let of = |v: &[f64]| kept.iter().map(|j| v[*j]).collect::<Vec<_>>();
            let energies = of(&spectral.energies);
            let rest = t.squared_norm_l2() - energies.iter().sum::<f64>();
            let by_weights =
                SpectralEvidence { eigenvalues: of(&spectral.eigenvalues), energies, rest, values: n };
            let bounds = EvidenceOptions::default();
            let (a, s) = spectral.largest(&bounds, f64::INFINITY).unwrap();
            let (other_a, other_s) = by_weights.largest(&bounds, f64::INFINITY).unwrap();
            assert!((a / other_a - 1.0).abs() < 1e-5 && (s / other_s - 1.0).abs() < 1e-6);
            let least = brute(&kernel, &t, a, s);
            for i in -20..=20 {
                for j in -20..=20 {
                    let factor = |k: i32| 10f64.powf(f64::from(k) * 0.15);
                    let other = brute(&kernel, &t, a * factor(i), s * factor(j));
                    assert!(other >= least - 1e-8, "{i} {j}: {other} < {least}");
                }
            }
            assert!(s > 0.4 * noise * noise && s < 2.0 * noise * noise, "{s}");
        }
    }

    #[test]
    fn the_larger_of_two_maxima_is_found() {
        // A strong direction that is all signal and many weak ones that are all noise, or the other way round: one maximum calls the weak ones signal, the other noise.
        let of = |strong: f64, weak: f64| {
            let eigenvalues = [vec![1e4; 4], vec![1e-2; 40]].concat();
            let energies = [vec![strong; 4], vec![weak; 40]].concat();
            SpectralEvidence { eigenvalues, energies, rest: 4.0, values: 60 }
        };
        let (mut several, mut differ) = (0, 0);
        for weak in [0.3, 1.0, 3.0, 10.0, 100.0] {
            let spectral = of(2e4, weak);
            let costs: Vec<f64> =
                (-600..=300).map(|k| spectral.cost(10f64.powf(f64::from(k) * 0.02))).collect();
            let minima: Vec<usize> = (1..costs.len() - 1)
                .filter(|&k| costs[k] < costs[k - 1] && costs[k] <= costs[k + 1])
                .collect();
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let (a, s) = spectral.largest(&EvidenceOptions::default(), f64::INFINITY).unwrap();
            assert!(spectral.cost(a * s) <= least + 1e-9, "{weak}");
            // With fewer dimensions than that, the best of those that are left.
            let most = 0.5 * spectral.effective_dimensions(a * s);
            let (b, t) = spectral.largest(&EvidenceOptions::default(), most).unwrap();
            let ratio = |k: usize| 10f64.powf((k as f64 - 600.0) * 0.02);
            let allowed = (0..costs.len()).filter(|&k| spectral.effective_dimensions(ratio(k)) <= most);
            let within = allowed.map(|k| costs[k]).fold(f64::INFINITY, f64::min);
            assert!(spectral.effective_dimensions(b * t) <= most * (1.0 + 1e-6), "{weak}");
            assert!(spectral.cost(b * t) <= within + 1e-9, "{weak}");
            several += usize::from(minima.len() > 1);
            // What climbing from 1 would have found.
            let mut k = 600;
            while k > 0 && costs[k - 1] < costs[k] {
                k -= 1;
            }
            while k + 1 < costs.len() && costs[k + 1] < costs[k] {
                k += 1;
            }
            differ += usize::from(costs[k] > least + 1e-3);
        }
        assert!(several > 0 && differ > 0, "{several}, {differ}: nothing is tested");
    }

    #[test]
    fn nothing_to_tell_by_is_said_to_be_so() {
        let of = |eigenvalues: Vec<f64>, energies: Vec<f64>| {
            let values = energies.len();
            SpectralEvidence { eigenvalues, energies, rest: 0.0, values }
                .largest(&EvidenceOptions::default(), f64::INFINITY)
        };
        assert_eq!(of(vec![1.0, 2.0], vec![0.0, 0.0]), None);
        assert_eq!(of(vec![0.0, 0.0], vec![1.0, 2.0]), None);
        assert_eq!(of(vec![f64::NAN, 1.0], vec![1.0, f64::INFINITY]), None);
        // One observation tells nothing apart, but an answer within the bounds there is.
        let (a, s) = of(vec![3.0], vec![1.0]).unwrap();
        assert!((1e-8..=1e10).contains(&a) && (1e-12..=1e12).contains(&s));
    }
}
