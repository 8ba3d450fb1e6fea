//! The **Laplace bridge**: a Dirichlet distribution for the softmax of Gaussian latent values, and the way back.
//!
//! Laplace's method for `Dirichlet(α)` in the basis of the softmax, on the plane where latent values sum to zero, gives
//!
//! `μ_k = log α_k - (1/K) Σ_l log α_l`,
//! `Σ_kl = δ_kl/α_k - (1/K) [1/α_k + 1/α_l - (1/K) Σ_u 1/α_u]`.
//!
//! On its diagonal `Σ_kk = (1 - 2/K)/α_k + (1/K²) Σ_u 1/α_u`, and with `g` the geometric mean of `α`, `e^{μ_k} = α_k/g` and
//! `Σ_l e^{-μ_l} = g Σ_l 1/α_l`. Their product is `α_k Σ_l 1/α_l`, so that
//!
//! `α_k = (1/Σ_kk) (1 - 2/K + e^{μ_k}/K² Σ_l e^{-μ_l})`,
//!
//! which is exact for a Gaussian that came from a Dirichlet and otherwise uses only means and variances.
//!
//! A model's latent values do not sum to zero. The softmax is blind to a constant added to all, so the distribution of
//! `P f`, `P = I - 11ᵀ/K`, is all that matters: mean `P m` and covariance `P V P`, with
//! `(PVP)_kk = V_kk - (2/K) Σ_l V_kl + (1/K²) Σ_lu V_lu`. (Conditioning on a zero sum, as some programs do, agrees only where the sum is
//! independent of the differences.) The formula for `α` does not change when a constant is added to `m`.
//!
//! **When to trust it.** A Dirichlet has K numbers, a mean and K variances are 2K - 1: the bridge is right where the variances are those
//! that the means imply (about `1/α_k`), and not otherwise. With K equal variances its mean does not depend on them at all, so that
//! as they go to zero it does not go to `softmax(m)`. Probability of the first of three classes with means (2, 0, -1) and equal
//! variances v, by Monte Carlo, probit, the bridge and the normalised bridge:
//!
//! | v | sampled | probit | bridge | normalised |
//! |---|---|---|---|---|
//! | 0.1 | 0.834 | 0.838 | 0.736 | 0.736 |
//! | 1 | 0.762 | 0.792 | 0.736 | 0.736 |
//! | 5 | 0.619 | 0.672 | 0.736 | 0.555 |
//! | 20 | 0.493 | 0.533 | 0.736 | 0.430 |
//!
//! Source: Hobbhahn, Kristiadi and Hennig (2022), *Fast predictive uncertainty for classification with Bayesian deep
//! networks*, after MacKay (1998), *Choice of basis for Laplace approximation*.

use super::LatentGaussian;
use crate::LikelihoodError;
use crate::special::softmax::log_sum_exp;

/// The Gaussian latent values of a Dirichlet distribution with the given K concentrations (module text): writes their means (K, in nats),
/// which sum to zero, and their covariance (K x K, row-major), which is singular along `(1, ..., 1)`. [`laplace_bridge`] leads back.
/// Cost O(K²).
///
/// # Errors
/// [`LikelihoodError::Parameter`] unless concentrations are positive, finite, and so large that their inverses have a finite sum.
///
/// # Panics
/// When lengths differ.
pub fn dirichlet_bridge(
    concentrations: &[f64],
    mean: &mut [f64],
    covariance: &mut [f64],
) -> Result<(), LikelihoodError> {
    let classes = concentrations.len();
    assert_eq!((mean.len(), covariance.len()), (classes, classes * classes), "K means and K x K covariances");
    let count = classes as f64;
    let inverses: f64 = concentrations.iter().map(|a| 1.0 / a).sum();
    let usable = |a: f64| a > 0.0 && a.is_finite() && (1.0 / a).is_finite();
    let bad = concentrations.iter().position(|&a| !usable(a));
    if let Some(k) = bad.or((!inverses.is_finite()).then_some(0)) {
        return Err(LikelihoodError::Parameter {
            owner: "dirichlet_bridge",
            parameter: format!("concentrations[{k}]"),
            value: concentrations[k].to_string(),
            remedy: "give positive, finite numbers above 1e-300",
        });
    }
    let centre = concentrations.iter().map(|a| a.ln()).sum::<f64>() / count;
    for (i, a) in concentrations.iter().enumerate() {
        mean[i] = a.ln() - centre;
        for (j, b) in concentrations.iter().enumerate() {
            let own = if i == j { 1.0 / a } else { 0.0 };
            covariance[i * classes + j] = own - (1.0 / a + 1.0 / b - inverses / count) / count;
        }
    }
    Ok(())
}

/// Writes the logarithms of the K concentrations of the Dirichlet distribution (module text), in nats; their softmax is its mean.
/// Returns false, with the latent means written instead, when the latent values do not vary at all: a point, whose
/// softmax is the mean.
///
/// `normalised` divides the latent values by `√s` and their variances by `s = max(1, v̄ / √(K/2))` first, `v̄` the mean of the K
/// projected variances. For wide Gaussians the `α` of likely classes stay too large beside the others, and this shrinks them. The
/// published correction has no maximum; with small variances it would stretch the means instead, towards certainty.
///
/// Variances below 1e-12 of the largest, which only rounding makes, count as that. All in log space, finite for any finite input.
/// Cost O(K) with a diagonal covariance, O(K²) with a full one.
///
/// # Panics
/// When lengths differ; [`LatentGaussian::check`] the input before.
pub fn laplace_bridge(latent: LatentGaussian<'_>, normalised: bool, log_concentrations: &mut [f64]) -> bool {
    let classes = latent.mean.len();
    assert_eq!(log_concentrations.len(), classes, "one concentration for each class");
    let count = classes as f64;
    let out = log_concentrations;
    // The row sums of V first, then the projected variances in their place.
    let mut total = 0.0;
    for k in 0..classes {
        out[k] = match latent.covariance {
            super::Covariance::Diagonal(_) => latent.covariance.variance(k, classes),
            super::Covariance::Full(v) => v[k * classes..(k + 1) * classes].iter().sum(),
        };
        total += out[k];
    }
    let mut largest = 0.0f64;
    for k in 0..classes {
        out[k] = latent.covariance.variance(k, classes) - 2.0 / count * out[k] + total / (count * count);
        largest = largest.max(out[k]);
    }
    if largest <= 0.0 {
        out.copy_from_slice(latent.mean);
        return false;
    }
    let mut scale = 1.0;
    if normalised {
        let mean = out.iter().map(|v| v.max(1e-12 * largest)).sum::<f64>() / count;
        scale = (mean / (count / 2.0).sqrt()).max(1.0);
    }
    let root = scale.sqrt();
    // log Σ exp(-m/root), without a buffer: the least mean is the largest term.
    let least = latent.mean.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = latent.mean.iter().map(|m| ((least - m) / root).exp()).sum();
    let log_sum = sum.ln() - least / root;
    for (out, m) in out.iter_mut().zip(latent.mean) {
        let variance = out.max(1e-12 * largest) / scale;
        let product = m / root + log_sum - 2.0 * count.ln();
        *out = log_sum_exp(&[(1.0 - 2.0 / count).ln(), product]) - variance.ln();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Covariance;
    use posterior_optim::check::assert_close;

    /// Mean and covariance (row-major) of the Gaussian that the bridge assigns to a Dirichlet distribution.
    fn gaussian_of(alpha: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut mean, mut covariance) = (vec![0.0; alpha.len()], vec![0.0; alpha.len() * alpha.len()]);
        dirichlet_bridge(alpha, &mut mean, &mut covariance).unwrap();
        (mean, covariance)
    }

    fn concentrations(mean: &[f64], covariance: Covariance<'_>, normalised: bool) -> Vec<f64> {
        let mut out = vec![0.0; mean.len()];
        assert!(laplace_bridge(LatentGaussian { mean, covariance }, normalised, &mut out));
        out.iter().map(|log| log.exp()).collect()
    }

    #[test]
    fn a_dirichlet_comes_back_whatever_is_added_to_all_latent_values() {
        for alpha in [vec![2.0, 5.0], vec![0.3, 4.0, 1.7], vec![0.9, 1.0, 25.0, 3.0, 0.2]] {
            let (mut mean, mut covariance) = gaussian_of(&alpha);
            assert_close(&concentrations(&mean, Covariance::Full(&covariance), false), &alpha, 1e-11, 0.0);
            // f + t 1 with t correlated with f: P removes all of it.
            let n = alpha.len();
            let together: Vec<f64> = (0..n).map(|i| 0.3 * i as f64 - 0.2).collect();
            for e in 0..n * n {
                covariance[e] += together[e / n] + together[e % n] + 1.5;
            }
            mean.iter_mut().for_each(|m| *m += 7.0);
            assert_close(&concentrations(&mean, Covariance::Full(&covariance), false), &alpha, 1e-11, 0.0);
        }
    }

    #[test]
    fn a_dirichlet_becomes_the_mode_of_its_softmax_basis_with_its_curvature() {
        let alpha = [0.9, 25.0, 3.0];
        let (mean, covariance) = gaussian_of(&alpha);
        // log density Σ α_k log softmax(f)_k, whose gradient vanishes at the mean and whose Hessian has the covariance as pseudo-inverse.
        let total: f64 = alpha.iter().sum();
        let scale: f64 = mean.iter().map(|m| m.exp()).sum();
        let p: Vec<f64> = mean.iter().map(|m| m.exp() / scale).collect();
        assert_close(&p.iter().map(|p| p * total).collect::<Vec<_>>(), &alpha, 1e-13, 0.0);
        assert!(mean.iter().sum::<f64>().abs() < 1e-14);
        for (i, j) in (0..9).map(|k| (k / 3, k % 3)) {
            let hessian = |i: usize, j: usize| total * (f64::from(u8::from(i == j)) * p[i] - p[i] * p[j]);
            let product: f64 = (0..3).map(|l| hessian(i, l) * covariance[3 * l + j]).sum();
            assert_close(&[product], &[f64::from(u8::from(i == j)) - 1.0 / 3.0], 0.0, 1e-13);
            assert!((0..3).map(|l| covariance[3 * i + l]).sum::<f64>().abs() < 1e-14);
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            let error = dirichlet_bridge(&[1.0, bad], &mut [0.0; 2], &mut [0.0; 4]).unwrap_err().to_string();
            assert!(error.contains("dirichlet_bridge: concentrations[1] is"), "{error}");
        }
    }

    #[test]
    fn a_diagonal_covariance_is_the_full_one_without_correlations() {
        let (mean, variances) = ([0.4, -1.0, 2.0], [0.5, 1.5, 0.1]);
        let full: Vec<f64> = (0..9).map(|e| if e / 3 == e % 3 { variances[e / 3] } else { 0.0 }).collect();
        for normalised in [false, true] {
            let diagonal = concentrations(&mean, Covariance::Diagonal(&variances), normalised);
            let dense = concentrations(&mean, Covariance::Full(&full), normalised);
            assert_close(&diagonal, &dense, 1e-14, 0.0);
        }
    }

    #[test]
    fn the_mean_of_the_bridge_forgets_a_common_scale_of_the_variances() {
        let (mean, share) = ([2.0, 0.0, -1.0], |alpha: Vec<f64>| alpha[0] / alpha.iter().sum::<f64>());
        for (v, normalised) in [(0.1, 0.736), (1.0, 0.736), (5.0, 0.555), (20.0, 0.430)] {
            let plain = share(concentrations(&mean, Covariance::Diagonal(&[v; 3]), false));
            assert_close(&[plain], &[0.736], 0.0, 5e-4);
            let corrected = share(concentrations(&mean, Covariance::Diagonal(&[v; 3]), true));
            assert_close(&[corrected], &[normalised], 0.0, 5e-4);
        }
    }

    #[test]
    fn the_correction_divides_by_the_mean_variance_and_never_stretches() {
        let (mean, variances) = ([0.4, -1.0, 2.0], [9.0, 30.0, 12.0]);
        // Projected variances v (1 - 2/K) + Σv/K².
        let projected: Vec<f64> = variances.iter().map(|v| v / 3.0 + 51.0 / 9.0).collect();
        let s = projected.iter().sum::<f64>() / 3.0 / 1.5f64.sqrt();
        assert!(s > 1.0);
        let shrunk_mean: Vec<f64> = mean.iter().map(|m| m / s.sqrt()).collect();
        let shrunk_variances: Vec<f64> = variances.iter().map(|v| v / s).collect();
        assert_close(
            &concentrations(&mean, Covariance::Diagonal(&variances), true),
            &concentrations(&shrunk_mean, Covariance::Diagonal(&shrunk_variances), false),
            1e-13,
            0.0,
        );
        let small = [0.1, 0.2, 0.1];
        assert_eq!(
            concentrations(&mean, Covariance::Diagonal(&small), true),
            concentrations(&mean, Covariance::Diagonal(&small), false)
        );
    }

    #[test]
    fn extreme_latent_values_stay_finite_and_points_are_points() {
        let mut out = [0.0; 3];
        for mean in [[1e4, -1e4, 0.0], [-1e4, -1e4, 1e4]] {
            for scale in [1e-12, 1.0, 1e8] {
                let variances = [scale, 2.0 * scale, 0.5 * scale];
                let latent = LatentGaussian { mean: &mean, covariance: Covariance::Diagonal(&variances) };
                assert!(laplace_bridge(latent, false, &mut out));
                assert!(out.iter().all(|v| v.is_finite()), "{out:?}");
            }
        }
        let mean = [1.0, 2.0, 3.0];
        let latent = LatentGaussian { mean: &mean, covariance: Covariance::Diagonal(&[0.0; 3]) };
        assert!(!laplace_bridge(latent, false, &mut out));
        assert_eq!(out, mean);
    }
}
