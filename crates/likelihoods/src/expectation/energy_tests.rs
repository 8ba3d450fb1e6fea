//! α-energies of every likelihood against quadrature on a fine grid, finite differences, their limit and Monte Carlo.

use super::tests::{MEAN, VARIANCE, cases, expect};
use super::{CorrelatedSlopes, Slopes, product, sampled_alpha_energy};
use crate::{Categorical, Likelihood, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_optim::check;

const ALPHAS: [f64; 3] = [0.3, 0.5, 1.0];

fn energy(
    likelihood: &dyn Likelihood,
    alpha: f64,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
) -> (f64, Vec<f64>) {
    let (mut means, mut variances) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
    let mut parameters = vec![0.0; likelihood.values().len()];
    let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut parameters };
    let value = likelihood.alpha_energy(alpha, y, mean, variance, slopes);
    (value, [means, variances, parameters].concat())
}

/// `-(1/α) log E[p^α]` by midpoints on a grid of `steps^C` cells within eight deviations.
fn by_grid(
    likelihood: &dyn Likelihood,
    alpha: f64,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
    steps: usize,
) -> f64 {
    let c = mean.len();
    let width = 16.0 / steps as f64;
    let mut total = 0.0;
    for cell in 0..steps.pow(c as u32) {
        let (mut f, mut weight, mut rest) = (vec![0.0; c], 1.0, cell);
        for i in 0..c {
            let x = -8.0 + width * ((rest % steps) as f64 + 0.5);
            rest /= steps;
            f[i] = mean[i] + variance[i].sqrt() * x;
            weight *= width * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        }
        total += weight * (alpha * likelihood.log_density(y, &f)).exp();
    }
    -total.ln() / alpha
}

#[test]
fn energies_are_those_of_a_fine_grid() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
        for alpha in ALPHAS {
            // The probit approximation has a test of its own, and jumps are not for a grid.
            let probit = matches!(likelihood, OutputLikelihood::Categorical(_)) && alpha == 1.0;
            if probit || likelihood.is_flat() {
                continue;
            }
            let steps = [4000, 400, 0, 28][latents - 1];
            let (mean, variance) = (&MEAN[..latents], &VARIANCE[..latents]);
            let expected = by_grid(&*likelihood, alpha, &y, mean, variance, steps);
            let (found, _) = energy(&*likelihood, alpha, &y, mean, variance);
            assert!(
                (found - expected).abs() < 1e-8 * (1.0 + expected.abs()),
                "{} {alpha}: {found} for {expected}",
                likelihood.name()
            );
        }
    }
}

#[test]
fn slopes_of_energies_equal_finite_differences() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
        for alpha in [0.0, 0.3, 0.5, 1.0] {
            let arguments = [&MEAN[..latents], &VARIANCE[..latents], &likelihood.values()].concat();
            let at = |a: &[f64]| {
                let mut moved = likelihood.clone_box();
                moved.set_values(&a[2 * latents..]);
                energy(&*moved, alpha, &y, &a[..latents], &a[latents..2 * latents])
            };
            check::assert_close(&at(&arguments).1, &check::gradient(|a| at(a).0, &arguments), 1e-7, 1e-8);
        }
    }
}

#[test]
fn energies_tend_to_the_bound_and_end_at_the_predictive_density() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
        let (mean, variance) = (&MEAN[..latents], &VARIANCE[..latents]);
        let (expected, slopes) = expect(&*likelihood, &y, mean, variance);
        let (zero, zero_slopes) = energy(&*likelihood, 0.0, &y, mean, variance);
        assert!((zero + expected).abs() < 1e-13 * expected.abs());
        let turned: Vec<f64> = slopes.iter().map(|s| -s).collect();
        check::assert_close(&zero_slopes, &turned, 1e-13, 1e-13);
        // The derivative in α at 0 is minus half the variance of the log density.
        let (near, _) = energy(&*likelihood, 1e-4, &y, mean, variance);
        assert!((near - zero).abs() < 2e-3 && near < zero, "{}: {near} {zero}", likelihood.name());
        if !matches!(likelihood, OutputLikelihood::Categorical(_)) {
            let (one, _) = energy(&*likelihood, 1.0, &y, mean, variance);
            let density = -likelihood.log_predictive_density(&y, mean, variance);
            assert!((one - density).abs() < 1e-9, "{}: {one} {density}", likelihood.name());
        }
    }
}

/// Targets far from what was expected, narrow and wide latent values, none at all.
#[test]
fn hostile_arguments_keep_their_energies() {
    for (likelihood, y) in cases() {
        let latents = likelihood.outputs();
        for (mean, variance) in [(30.0, 1e-3), (-30.0, 0.01), (5.0, 200.0), (0.4, 1e-14), (0.4, 0.0)] {
            for alpha in ALPHAS {
                let at = |v: f64| energy(&*likelihood, alpha, &y, &vec![mean; latents], &vec![v; latents]);
                let (value, slopes) = at(variance);
                assert!(
                    value.is_finite() && slopes.iter().all(|s| s.is_finite()),
                    "{} {mean} {variance} {alpha}: {value} {slopes:?}",
                    likelihood.name()
                );
                // Of a flat density the limit at equal means is not its value there.
                if variance < 1e-10 && !likelihood.is_flat() {
                    let exact = -likelihood.log_density(&y, &vec![mean; latents]);
                    assert!(
                        (value - exact).abs() < 1e-8 * (1.0 + exact.abs()),
                        "{} {value} {exact}",
                        likelihood.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_count_far_from_its_mean_is_integrated_where_its_mass_is() {
    // The peak of the tilted density lies some sixty deviations away.
    let likelihood = crate::Poisson::new(1).unwrap();
    let (mean, variance) = ([0.0], [0.01]);
    let (found, _) = energy(&likelihood, 1.0, &[1000.0], &mean, &variance);
    let cells = 400_000;
    let terms: Vec<f64> = (0..cells)
        .map(|i| {
            let f = 10.0 * (f64::from(i) + 0.5) / f64::from(cells);
            likelihood.log_density(&[1000.0], &[f]) - 0.5 * f * f / 0.01 + (10.0 / f64::from(cells)).ln()
        })
        .collect();
    let direct =
        crate::special::softmax::log_sum_exp(&terms) - 0.5 * (2.0 * std::f64::consts::PI * 0.01).ln();
    assert!((found + direct).abs() < 1e-9 * direct.abs(), "{found} {direct}");
}

#[test]
fn the_probit_energy_is_its_formula_and_near_the_exact_one() {
    let likelihood = Categorical::new(4).unwrap();
    let (mean, variance) = (&MEAN, &VARIANCE);
    let (found, _) = energy(&likelihood, 1.0, &[2.0], mean, variance);
    let t: Vec<f64> =
        (0..4).map(|c| mean[c] / (1.0 + std::f64::consts::PI / 8.0 * variance[c]).sqrt()).collect();
    let expected = t.iter().map(|t| t.exp()).sum::<f64>().ln() - t[2];
    assert!((found - expected).abs() < 1e-13);
    let exact = -likelihood.log_predictive_density(&[2.0], mean, variance);
    let (almost, _) = energy(&likelihood, 1.0 - 1e-9, &[2.0], mean, variance);
    assert!((almost - exact).abs() < 1e-7, "{almost} {exact}");
    // Two classes of which one is certain are one event, for which the approximation is within 0.02 of the probability.
    let pair = Categorical::new(2).unwrap();
    for (m, v) in [(0.7, 0.4), (-1.5, 2.0), (2.0, 9.0)] {
        let (found, _) = energy(&pair, 1.0, &[1.0], &[0.0, m], &[0.0, v]);
        let exact = pair.log_predictive_density(&[1.0], &[0.0, m], &[0.0, v]);
        assert!(((-found).exp() - exact.exp()).abs() < 0.02, "{found} {exact}");
    }
}

#[test]
fn the_default_by_quadrature_agrees_where_it_resolves_the_density() {
    for (likelihood, y) in cases() {
        let n = likelihood.outputs();
        if n > 2 || !likelihood.values().is_empty() {
            continue;
        }
        for alpha in ALPHAS {
            let (mean, variance) = (&MEAN[..n], &[0.05, 0.1][..n]);
            let (expected, slopes) = energy(&*likelihood, alpha, &y, mean, variance);
            let (mut means, mut variances) = (vec![0.0; n], vec![0.0; n]);
            let inner = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
            let found = product::alpha_energy(&*likelihood, alpha, &y, (mean, variance), inner);
            check::assert_close(&[found], &[expected], 1e-9, 1e-9);
            check::assert_close(&[means, variances].concat(), &slopes, 1e-9, 1e-9);
        }
    }
}

#[test]
fn draws_agree_with_the_exact_energy_and_repeat() {
    let likelihood = Categorical::new(3).unwrap();
    // A rotation of independent latent values has a covariance; the energy of what is rotated back is not that of softmax, so the reference is a grid over a root.
    let root = [0.9, 0.0, 0.0, 0.4, 0.7, 0.0, -0.2, 0.3, 0.8];
    let covariance: Vec<f64> =
        (0..9).map(|k| (0..3).map(|i| root[k / 3 * 3 + i] * root[k % 3 * 3 + i]).sum()).collect();
    let (mean, alpha) = ([0.4, -0.8, 0.3], 0.7);
    let exact = |mean: &[f64], root: &[f64]| {
        let steps = 40usize;
        let width = 16.0 / steps as f64;
        let mut total = 0.0;
        for cell in 0..steps.pow(3) {
            let x: Vec<f64> = [cell % steps, cell / steps % steps, cell / steps / steps]
                .iter()
                .map(|i| width * (*i as f64 + 0.5) - 8.0)
                .collect();
            let weight: f64 = x
                .iter()
                .map(|x| width * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt())
                .product();
            let f: Vec<f64> =
                (0..3).map(|i| mean[i] + (0..3).map(|k| root[3 * i + k] * x[k]).sum::<f64>()).collect();
            total += weight * (alpha * likelihood.log_density(&[1.0], &f)).exp();
        }
        -total.ln() / alpha
    };
    let pairs = 200_000;
    let sampled = || {
        let (mut means, mut slopes) = ([0.0; 3], [0.0; 9]);
        let mut rng = Streams::new(4).stream("test");
        let place = CorrelatedSlopes { means: &mut means, covariance: &mut slopes };
        let value =
            sampled_alpha_energy(&likelihood, alpha, &[1.0], (&mean, &covariance), pairs, &mut rng, place);
        (value.unwrap(), means, slopes)
    };
    let (value, means, slopes) = sampled();
    assert_eq!(sampled(), (value, means, slopes));
    // p^α lies in (0, 1], so that a mean of 2 · pairs draws is off by less than 1 / √(8 · pairs) deviations, relative to a mean of some 0.3.
    let error = 5.0 / (8.0 * pairs as f64).sqrt() / 0.3 / alpha;
    assert!((value - exact(&mean, &root)).abs() < error, "{value} {}", exact(&mean, &root));
    let numeric = check::gradient(|m| exact(m, &root), &mean);
    check::assert_close(&means, &numeric, 0.0, 2.0 * error);
    // Along the root: d E / d R = 2 Ē R.
    let numeric = check::gradient(|r| exact(&mean, r), &root);
    for k in 0..9 {
        let along: f64 = (0..3).map(|i| 2.0 * slopes[k / 3 * 3 + i] * root[3 * i + k % 3]).sum();
        assert!((along - numeric[k]).abs() < 4.0 * error, "{k}: {along} {}", numeric[k]);
    }
}
