use super::*;
use crate::expectation::tests::expect;
use posterior_linalg::random::Streams;
use posterior_optim::check;

const MEAN: [f64; 4] = [0.3, -0.2, 0.5, 0.0];
const VARIANCE: [f64; 4] = [0.5, 1.2, 0.3, 2.0];

fn customary(classes: usize) -> RobustMax {
    RobustMax::new(classes, RobustMax::CUSTOMARY_ERROR_RATE).unwrap()
}

fn energy(likelihood: &RobustMax, alpha: f64, y: f64, (mean, variance): (&[f64], &[f64])) -> (f64, Vec<f64>) {
    let (mut means, mut variances) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
    let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
    let value = likelihood.alpha_energy(alpha, &[y], mean, variance, slopes);
    (value, [means, variances].concat())
}

#[test]
fn reference_values_of_the_specification() {
    let likelihood = customary(4);
    let Prediction::Classes(p) = likelihood.predict(&MEAN, &VARIANCE) else { panic!("classes") };
    // By 50 nodes a class, which are off by 4e-10 for the second and by 7e-7 for the fourth.
    let printed = [0.2393300394, 0.1648806268, 0.3214368194, 0.2743518139];
    for ((p, printed), tolerance) in p.iter().zip(printed).zip([6e-11, 5e-10, 6e-11, 7.2e-7]) {
        assert!((p - printed).abs() < tolerance, "{p} for {printed}");
    }
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    // Label 3, from 1. What is printed there, -3.8681108108, is off by 6.4e-10 from adaptive quadrature with 25 digits, which is this.
    let (value, _) = expect(&likelihood, &[2.0], &MEAN, &VARIANCE);
    assert!((value + 3.8681108101592).abs() < 1e-12, "{value}");
    assert!((value + 3.8681108108).abs() < 7e-10, "{value}");
}

#[test]
fn energies_are_the_logarithm_of_a_sum_and_end_where_they_should() {
    for error_rate in [1e-2, 0.3, 0.9, 1e-12, 1e-300] {
        let likelihood = RobustMax::new(4, error_rate).unwrap();
        let (right, wrong): (f64, f64) = (1.0 - error_rate, error_rate / 3.0);
        let mut shares = [0.0; 4];
        likelihood.largest(&MEAN, &VARIANCE, &mut shares);
        for (class, share) in shares.into_iter().enumerate() {
            let y = class as f64;
            let case = (&MEAN[..], &VARIANCE[..]);
            let expected = right.ln() * share + wrong.ln() * (1.0 - share);
            let (bound, bound_slopes) = energy(&likelihood, 0.0, y, case);
            assert!((bound + expected).abs() < 1e-12 * expected.abs());
            let (value, slopes) = expect(&likelihood, &[y], &MEAN, &VARIANCE);
            assert_eq!((value, slopes), (-bound, bound_slopes.iter().map(|s| -s).collect()));
            for alpha in [1e-3, 0.3, 0.5, 0.9, 1.0] {
                let sum = right.powf(alpha) * share + wrong.powf(alpha) * (1.0 - share);
                let (value, slopes) = energy(&likelihood, alpha, y, case);
                assert!(
                    (value + sum.ln() / alpha).abs() < 1e-12 * (1.0 + value.abs()) / alpha,
                    "{error_rate} {alpha}"
                );
                let numeric = check::gradient(
                    |a| energy(&likelihood, alpha, y, (&a[..4], &a[4..])).0,
                    &[MEAN, VARIANCE].concat(),
                );
                // Values have a rounding of 1e-15 of themselves over steps of 1e-4.
                check::assert_close(&slopes, &numeric, 1e-7, 1e-9 * (1.0 + value.abs()) / alpha);
            }
            // A small α is near the bound: half of α times the variance of log p.
            let (near, near_slopes) = energy(&likelihood, 1e-12, y, case);
            let spread = (right.ln() - wrong.ln()).powi(2);
            assert!((near - bound).abs() < 1e-12 * (spread + bound.abs()), "{error_rate}: {near} {bound}");
            check::assert_close(&near_slopes, &bound_slopes, 1e-8, 1e-10);
            let density = likelihood.log_predictive_density(&[y], &MEAN, &VARIANCE);
            assert!((energy(&likelihood, 1.0, y, case).0 + density).abs() < 1e-12 * (1.0 + density.abs()));
        }
    }
}

#[test]
fn certain_latent_values_have_the_density_itself() {
    let likelihood = customary(3);
    for (f, y) in [([0.2, 1.0, -3.0], 1.0), ([0.2, 1.0, -3.0], 0.0)] {
        let exact = likelihood.log_density(&[y], &f);
        assert!((exact - if y == 1.0 { 0.99f64.ln() } else { 0.005f64.ln() }).abs() < 1e-15);
        let (value, slopes) = expect(&likelihood, &[y], &f, &[0.0; 3]);
        assert!((value - exact).abs() < 1e-14 && slopes.iter().all(|s| *s == 0.0));
        let (energy, slopes) = energy(&likelihood, 0.5, y, (&f, &[0.0; 3]));
        assert!((energy + exact).abs() < 1e-14 && slopes.iter().all(|s| *s == 0.0));
        assert!((likelihood.log_predictive_density(&[y], &f, &[0.0; 3]) - exact).abs() < 1e-14);
    }
}

#[test]
fn draws_have_their_probabilities() {
    let likelihood = RobustMax::new(5, 0.4).unwrap();
    let f = [0.1, 0.2, 2.0, -1.0, 0.3];
    let (mut rng, mut y, count) = (Streams::new(5).stream("robust-max"), [0.0], 100_000);
    let mut seen = [0.0; 5];
    for _ in 0..count {
        likelihood.sample(&f, &mut rng, &mut y);
        likelihood.check_target(&y).unwrap();
        seen[y[0] as usize] += 1.0;
    }
    for (class, seen) in seen.into_iter().enumerate() {
        let p = likelihood.log_density(&[class as f64], &f).exp();
        let error = (p * (1.0 - p) / f64::from(count)).sqrt();
        assert!((seen / f64::from(count) - p).abs() < 5.0 * error, "{class}: {seen}");
    }
    let (mut mean, mut variance) = ([0.0], [0.0]);
    likelihood.moments(&f, &mut mean, &mut variance);
    // 0.6 at 2 and 0.1 at each of the others.
    assert!((mean[0] - 2.0).abs() < 1e-15 && (variance[0] - 1.0).abs() < 1e-15);
    likelihood.predictive_moments(&f, &[0.0; 5], (&mut mean, &mut variance));
    assert!((mean[0] - 2.0).abs() < 1e-15 && (variance[0] - 1.0).abs() < 1e-15);
}

#[test]
fn what_needs_a_curvature_is_refused_it() {
    let likelihood = customary(3);
    let message = likelihood.check_curvature().unwrap_err().to_string();
    assert!(message.contains("robust_max") && message.contains("variational"), "{message}");
    assert!(likelihood.is_flat() && !likelihood.is_log_concave());
    crate::Categorical::new(3).unwrap().check_curvature().unwrap();
    let covariance = [1.0, 0.2, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0, 1.0];
    let slopes = crate::CorrelatedSlopes { means: &mut [0.0; 3], covariance: &mut [0.0; 9] };
    let mut rng = Streams::new(1).stream("refused");
    let found =
        crate::sampled_alpha_energy(&likelihood, 0.5, &[1.0], (&[0.0; 3], &covariance), 10, &mut rng, slopes);
    assert_eq!(found, Err(LikelihoodError::Flat { owner: NAME }));
}

#[test]
fn missing_numbers_do_not_panic() {
    let likelihood = customary(3);
    let (nan, fine) = ([0.0, f64::NAN, 1.0], [1.0; 3]);
    for (y, mean, variance) in [(0.0, nan, fine), (0.0, fine, nan), (7.0, fine, fine), (f64::NAN, fine, fine)]
    {
        let (value, slopes) = expect(&likelihood, &[y], &mean, &variance);
        assert!(value.is_nan() && slopes.iter().all(|s| s.is_nan()));
        let (value, slopes) = energy(&likelihood, 0.5, y, (&mean, &variance));
        assert!(value.is_nan() && slopes.iter().all(|s| s.is_nan()));
        assert!(likelihood.log_predictive_density(&[y], &mean, &variance).is_nan());
    }
    assert!(likelihood.log_density(&[0.0], &nan).is_nan() && likelihood.log_density(&[0.5], &fine).is_nan());
    let Prediction::Classes(p) = likelihood.predict(&nan, &fine) else { panic!("classes") };
    assert!(p.iter().all(|p| p.is_nan()));
    let mut out = [0.0];
    likelihood.sample(&nan, &mut Streams::new(1).stream("missing"), &mut out);
    assert!(out[0].is_nan());
    for (classes, error_rate) in [(1, 0.1), (3, 0.0), (3, 1.0), (3, f64::NAN), (3, -0.1)] {
        assert!(matches!(RobustMax::new(classes, error_rate), Err(LikelihoodError::Parameter { .. })));
    }
}
