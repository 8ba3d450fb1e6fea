//! Every family and matching against its definition: modes, moments, and the least divergence.

use super::*;
use std::f64::consts::PI;

/// Mean and variance, and the slopes of both in each argument.
type Flat = (Vec<f64>, Vec<f64>);

/// A family with its arguments and the log density of `ψ` up to a constant.
struct Family {
    name: &'static str,
    arguments: Vec<f64>,
    fit: fn(Matching, &[f64]) -> Flat,
    log_density: fn(&[f64], f64) -> f64,
}

fn flat<const N: usize>(fit: Fit<N>) -> Flat {
    let slopes = fit.slopes.iter().flat_map(|s| [s.target, s.variance]).collect();
    (pair(&fit).to_vec(), slopes)
}

fn families() -> Vec<Family> {
    let mut out = Vec::new();
    for (a, b) in [(0.4, 1.0), (1.3, 0.2), (6.0, 3.0), (45.0, 7.5)] {
        out.push(Family {
            name: "gamma",
            arguments: vec![a, b],
            fit: |m, p| flat(gamma(m, p[0], p[1]).unwrap()),
            log_density: |p, x| p[0] * x - p[1] * x.exp(),
        });
        out.push(Family {
            name: "inverse gamma",
            arguments: vec![a, b],
            fit: |m, p| flat(inverse_gamma(m, p[0], p[1]).unwrap()),
            log_density: |p, x| -p[0] * x - p[1] * (-x).exp(),
        });
        out.push(Family {
            name: "exponential",
            arguments: vec![b],
            fit: |m, p| flat(exponential(m, p[0]).unwrap()),
            log_density: |p, x| x - p[0] * x.exp(),
        });
        out.push(Family {
            name: "chi-squared",
            arguments: vec![2.0 * a],
            fit: |m, p| flat(chi_squared(m, p[0]).unwrap()),
            log_density: |p, x| 0.5 * (p[0] * x - x.exp()),
        });
        for (a, b) in [(a, b), (b, a)] {
            out.push(Family {
                name: "beta",
                arguments: vec![a, b],
                fit: |m, p| flat(beta(m, p[0], p[1]).unwrap()),
                log_density: |p, x| -p[0] * (-x).exp().ln_1p() - p[1] * (x + (-x).exp().ln_1p()),
            });
        }
    }
    out
}

#[test]
fn laplace_is_the_mode_with_its_curvature() {
    for family in families() {
        let (fit, _) = (family.fit)(Matching::Laplace, &family.arguments);
        let log_density = |x: &[f64]| (family.log_density)(&family.arguments, x[0]);
        let slope = |x: &[f64]| gradient(log_density, x)[0];
        let scale = 1.0 / fit[1];
        assert_close(&[slope(&fit[..1])], &[0.0], 0.0, 1e-8 * scale);
        assert_close(&[-gradient(slope, &fit[..1])[0]], &[scale], 1e-6, 0.0);
    }
}

#[test]
fn moments_are_those_of_the_density() {
    for family in families() {
        let (fit, _) = (family.fit)(Matching::Moment, &family.arguments);
        // The tails fall as exp(-0.2 |ψ|) at least.
        let (centre, step) = (fit[0], 0.01 * fit[1].sqrt().min(1.0));
        let side = (200.0 / step) as i64;
        let nodes = |k: i64| centre + step * k as f64;
        let density = |x: f64| ((family.log_density)(&family.arguments, x)).exp();
        let sum =
            |g: &dyn Fn(f64) -> f64| -> f64 { (-side..=side).map(nodes).map(|x| density(x) * g(x)).sum() };
        let total = sum(&|_| 1.0);
        let mean = sum(&|x| x) / total;
        let variance = sum(&|x| (x - mean) * (x - mean)) / total;
        assert_close(&fit, &[mean, variance], 1e-10, 1e-10);
    }
}

#[test]
fn original_moments_are_those_of_the_positive_variable() {
    for (shape, rate) in [(0.01, 1.0), (1.3, 0.2), (45.0, 7.5)] {
        let [m, v] = pair(&gamma(Matching::MomentOriginal, shape, rate).unwrap());
        let (mean, variance) = ((m + 0.5 * v).exp(), v.exp_m1() * (2.0 * m + v).exp());
        assert_close(&[mean, variance], &[shape / rate, shape / (rate * rate)], 1e-12, 0.0);
        // The variance log(1 + rate / shape), as it is printed in the source, is that of no other rate than 1.
        let misprint = (rate / shape).ln_1p();
        let spread = misprint.exp_m1() * (shape / rate).powi(2);
        assert_eq!(rate == 1.0, (spread / variance - 1.0).abs() < 1e-12);
    }
}

/// `KL(q ‖ p)` up to a constant by dense quadrature, as a function of the mean and the logarithm of the deviation.
fn divergence(family: &Family, at: [f64; 2]) -> f64 {
    let deviation = at[1].exp();
    let step = 0.02;
    -at[1] - average(step, |x| (family.log_density)(&family.arguments, at[0] + deviation * x))
}

/// A search along both coordinates that halves its steps where it finds nothing less; knows nothing of derivatives.
fn least(objective: impl Fn([f64; 2]) -> f64, start: [f64; 2], scale: f64) -> [f64; 2] {
    let (mut best, mut value) = (start, objective(start));
    let mut step = 1.0;
    while step > 1e-7 {
        let moves = [[scale * step, 0.0], [-scale * step, 0.0], [0.0, step], [0.0, -step]];
        let moves = moves.into_iter().chain([[scale * step, -step], [-scale * step, step]]);
        let before = value;
        for change in moves {
            let candidate = [best[0] + change[0], best[1] + change[1]];
            let found = objective(candidate);
            if found < value {
                (best, value) = (candidate, found);
            }
        }
        if value == before {
            step *= 0.5;
        }
    }
    best
}

#[test]
fn variational_is_the_least_divergence() {
    for family in families() {
        let (start, _) = (family.fit)(Matching::Laplace, &family.arguments);
        let deviation = start[1].sqrt();
        let brute = least(|at| divergence(&family, at), [start[0], deviation.ln()], deviation);
        let (fit, _) = (family.fit)(Matching::Variational, &family.arguments);
        // A minimum is found to the square root of the rounding of the objective.
        let found = [fit[0] / deviation, 0.5 * fit[1].ln()];
        assert_close(&found, &[brute[0] / deviation, brute[1]], 0.0, 2e-6);
    }
}

#[test]
fn divergences_are_the_closed_forms_with_the_signs_of_the_second_derivation() {
    // E ψ = μ, E exp(±ψ) = exp(±μ + s²/2).
    for family in families() {
        let (p, at) = (&family.arguments, [0.3, -0.4f64]);
        let half = 0.5 * (2.0 * at[1]).exp();
        let up = (at[0] + half).exp();
        let closed = match family.name {
            "gamma" => -p[0] * at[0] + p[1] * up,
            "exponential" => -at[0] + p[0] * up,
            "inverse gamma" => p[0] * at[0] + p[1] * (half - at[0]).exp(),
            "chi-squared" => -0.5 * p[0] * at[0] + 0.5 * up,
            _ => continue,
        };
        assert_close(&[divergence(&family, at)], &[closed - at[1]], 1e-12, 1e-12);
    }
}

#[test]
fn slopes_equal_central_differences() {
    for family in families() {
        for matching in COMMON {
            let fit = |p: &[f64]| (family.fit)(matching, p);
            let (_, slopes) = fit(&family.arguments);
            for k in 0..2 {
                let numeric = gradient(|p| fit(p).0[k], &family.arguments);
                let found: Vec<f64> = slopes.iter().skip(k).step_by(2).copied().collect();
                assert_close(&found, &numeric, 1e-8, 1e-9);
            }
        }
    }
    for (shape, rate) in [(0.1, 1.0), (2.0, 0.3)] {
        let at = |p: &[f64]| flat(gamma(Matching::MomentOriginal, p[0], p[1]).unwrap());
        let slopes = at(&[shape, rate]).1;
        for k in 0..2 {
            let numeric = gradient(|p| at(p).0[k], &[shape, rate]);
            assert_close(&[slopes[k], slopes[k + 2]], &numeric, 1e-8, 1e-9);
        }
    }
}

#[test]
fn relatives_and_the_rows_of_the_table() {
    let euler = 0.577_215_664_901_532_9;
    for matching in COMMON {
        for x in [0.01, 0.3, 2.0, 700.0] {
            let exponential = exponential(matching, x).unwrap();
            assert_eq!(pair(&exponential), pair(&gamma(matching, 1.0, x).unwrap()));
            let (shift, variance) = match matching {
                Matching::Moment => (euler, PI * PI / 6.0),
                Matching::Variational => (0.5, 1.0),
                _ => (0.0, 1.0),
            };
            assert_close(&pair(&exponential), &[-x.ln() - shift, variance], 1e-14, 1e-14);
            let chi = chi_squared(matching, x).unwrap();
            assert_eq!(pair(&chi), pair(&gamma(matching, 0.5 * x, 0.5).unwrap()));
            match matching {
                Matching::Laplace => assert_close(&pair(&chi), &[x.ln(), 2.0 / x], 1e-13, 1e-13),
                Matching::Variational => {
                    assert_close(&pair(&chi), &[x.ln() - 1.0 / x, 2.0 / x], 1e-13, 1e-13);
                }
                _ => {}
            }
            let ([m, v], [w, u]) =
                (pair(&gamma(matching, x, 3.0).unwrap()), pair(&inverse_gamma(matching, x, 3.0).unwrap()));
            assert_eq!((m, v), (-w, u));
        }
    }
}
