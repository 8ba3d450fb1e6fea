//! Predictions against references, quadrature and simulation.

use posterior_likelihoods::predictive::dirichlet_bridge;
use posterior_likelihoods::{
    Bernoulli, Categorical, Clipping, Covariance, FullGaussian, GaussHermite, Gaussian,
    HeteroscedasticGaussian, Integration, LatentGaussian, Likelihood, LikelihoodError, Link,
    NegativeBinomial, OutputLikelihood, Poisson, Prediction, PredictiveRule, PredictiveWorkspace, RobustMax,
};
use posterior_linalg::random::Streams;
use posterior_optim::check::assert_close;
use rand_distr::{Distribution, StandardNormal};

fn categorical(n: usize) -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(n).unwrap())
}
fn bernoulli(n: usize, link: Link) -> OutputLikelihood {
    OutputLikelihood::Bernoulli(Bernoulli::new(n, link).unwrap())
}
fn full<'a>(mean: &'a [f64], covariance: &'a [f64]) -> LatentGaussian<'a> {
    LatentGaussian { mean, covariance: Covariance::Full(covariance) }
}
fn diagonal<'a>(mean: &'a [f64], variances: &'a [f64]) -> LatentGaussian<'a> {
    LatentGaussian { mean, covariance: Covariance::Diagonal(variances) }
}
fn probabilities(l: &OutputLikelihood, integration: Integration, latent: LatentGaussian<'_>) -> Vec<f64> {
    match PredictiveRule::new(l.clone(), integration).unwrap().predict(latent).unwrap() {
        Prediction::Classes(p) | Prediction::Events(p) => p,
        Prediction::Moments { .. } => panic!("moments"),
    }
}
fn sampled(samples: usize) -> Integration {
    Integration::MonteCarlo { samples, seed: 4 }
}
/// `E[g(m + √v z)]` by a trapezoid rule of step 0.01, exact to rounding for the smooth functions here.
fn average(mean: f64, variance: f64, g: impl Fn(f64) -> f64) -> f64 {
    (-1000..=1000)
        .map(|k| f64::from(k) * 0.01)
        .map(|z| {
            0.01 * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * g(mean + variance.sqrt() * z)
        })
        .sum()
}
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn the_probit_reference_case() {
    let covariance = [1.5160792509, 0.6013559770, 0.6013559770, 1.8314100139];
    let p = probabilities(&categorical(2), Integration::Probit, full(&[0.2, -0.4], &covariance));
    assert_close(&p, &[0.6138233358, 0.3861766642], 0.0, 1e-10);
}

#[test]
fn without_variance_all_rules_agree() {
    let (mean, zero) = ([0.5, -1.0, 2.0, 0.0], [0.0; 4]);
    let exact = probabilities(&categorical(4), Integration::PlugIn, diagonal(&mean, &[3.0; 4]));
    for rule in
        [Integration::Probit, Integration::LaplaceBridge, Integration::NormalisedLaplaceBridge, sampled(7)]
    {
        assert_close(&probabilities(&categorical(4), rule, diagonal(&mean, &zero)), &exact, 1e-14, 0.0);
        assert_close(&probabilities(&categorical(4), rule, full(&mean, &[0.0; 16])), &exact, 1e-14, 0.0);
    }
}

#[test]
fn two_classes_by_sampling_against_the_integral_over_their_difference() {
    let (mean, covariance) = ([0.8, -0.3], [2.0, 1.1, 1.1, 1.5]);
    let exact = average(1.1, 2.0 + 1.5 - 2.2, logistic);
    let samples = 100_000;
    let p = probabilities(&categorical(2), sampled(samples), full(&mean, &covariance));
    // Antithetic pairs of a monotone function have less variance than as many independent draws, below 1/4 each.
    assert!((p[0] - exact).abs() < 5.0 * 0.5 / (samples as f64).sqrt(), "{} for {exact}", p[0]);
    assert_close(&[p.iter().sum()], &[1.0], 1e-15, 0.0);
}

#[test]
fn robust_classes_by_every_rule() {
    let robust = RobustMax::new(3, 0.04).unwrap();
    let l = OutputLikelihood::RobustMax(robust);
    let (mean, variances) = ([0.3, -0.1, 0.2], [1.5, 0.8, 0.1]);
    let mut exact = [0.0; 3];
    robust.probabilities(&mean, &variances, &mut exact);
    let found = probabilities(&l, Integration::Probit, diagonal(&mean, &variances));
    assert_close(&found, &exact, 0.0, 1e-15);
    let samples = 100_000;
    let bound = 5.0 * 0.5 / (samples as f64).sqrt();
    assert_close(&probabilities(&l, sampled(samples), diagonal(&mean, &variances)), &exact, 0.0, bound);
    // What all share does not matter, and only draws know that it is shared.
    let shared: Vec<f64> = (0..9).map(|e| 2.0 + if e % 4 == 0 { variances[e / 4] } else { 0.0 }).collect();
    let found = probabilities(&l, sampled(samples), full(&mean, &shared));
    assert_close(&found, &exact, 0.0, bound);
    assert_close(&[found.iter().sum()], &[1.0], 1e-15, 0.0);
    let plain = probabilities(&l, Integration::PlugIn, diagonal(&mean, &variances));
    assert_close(&plain, &[0.96, 0.02, 0.02], 1e-15, 0.0);
    for (integration, p) in
        [(Integration::Probit, &exact[..]), (Integration::PlugIn, &plain), (sampled(samples), &exact)]
    {
        let rule = PredictiveRule::new(l.clone(), integration).unwrap();
        for (class, p) in p.iter().enumerate() {
            let found = rule.log_predictive_density(&[class as f64], diagonal(&mean, &variances)).unwrap();
            assert!((found.exp() - p).abs() < if integration == sampled(samples) { bound } else { 1e-14 });
        }
    }
    for bridge in [Integration::LaplaceBridge, Integration::NormalisedLaplaceBridge] {
        assert!(matches!(PredictiveRule::new(l.clone(), bridge), Err(LikelihoodError::Integration { .. })));
    }
}

#[test]
fn a_covariance_of_rank_one_is_sampled_without_jitter() {
    let (mean, a) = ([0.2, 0.0, -0.5], [1.0, -2.0, 0.7]);
    let covariance: Vec<f64> = (0..9).map(|e| a[e / 3] * a[e % 3]).collect();
    let exact: Vec<f64> = (0..3)
        .map(|k| {
            average(0.0, 1.0, |z| {
                let e: Vec<f64> = (0..3).map(|j| (mean[j] + a[j] * z).exp()).collect();
                e[k] / e.iter().sum::<f64>()
            })
        })
        .collect();
    let samples = 100_000;
    let p = probabilities(&categorical(3), sampled(samples), full(&mean, &covariance));
    assert_close(&p, &exact, 0.0, 5.0 * 0.5 / (samples as f64).sqrt());
}

#[test]
fn the_logit_approximation_is_within_its_stated_error() {
    let mut worst = 0.0f64;
    for m in -40..=40 {
        for v in [0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 100.0, 400.0] {
            let mean = 0.25 * f64::from(m);
            worst = worst.max((Link::Logit.expected_probability(mean, v) - average(mean, v, logistic)).abs());
        }
    }
    assert!(worst < 0.02, "{worst}");
    assert!(worst > 0.01, "the documentation may claim more: {worst}");
}

#[test]
fn the_probit_link_is_exact_and_sampling_agrees() {
    let (mean, variances) = ([0.4, -1.0, 3.0], [0.5, 2.0, 9.0]);
    let l = bernoulli(3, Link::Probit);
    let exact: Vec<f64> =
        (0..3).map(|i| average(mean[i], variances[i], |f| Link::Probit.probability(f))).collect();
    assert_close(&probabilities(&l, Integration::Probit, diagonal(&mean, &variances)), &exact, 1e-12, 0.0);
    let tolerance = 5.0 * 0.5 / 40_000f64.sqrt();
    assert_close(&probabilities(&l, sampled(40_000), diagonal(&mean, &variances)), &exact, 0.0, tolerance);
    let exact: Vec<f64> = (0..3).map(|i| average(mean[i], variances[i], logistic)).collect();
    let p = probabilities(&bernoulli(3, Link::Logit), sampled(40_000), diagonal(&mean, &variances));
    assert_close(&p, &exact, 0.0, tolerance);
}

#[test]
fn small_variances_make_the_approximations_of_classes_accurate() {
    // A Gaussian that came from a Dirichlet of total concentration a: both approximations are off by O(1/a).
    let mut errors = Vec::new();
    for concentration in [20.0, 200.0] {
        let alpha: Vec<f64> = [0.5, 0.3, 0.2].iter().map(|p| p * concentration).collect();
        let (mut mean, mut covariance) = ([0.0; 3], [0.0; 9]);
        dirichlet_bridge(&alpha, &mut mean, &mut covariance).unwrap();
        let latent = full(&mean, &covariance);
        let exact = probabilities(&categorical(3), sampled(200_000), latent);
        let bridge = probabilities(&categorical(3), Integration::LaplaceBridge, latent);
        let probit = probabilities(&categorical(3), Integration::Probit, latent);
        let error = |p: &[f64]| p.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error(&bridge) < 0.5 / concentration, "bridge {}", error(&bridge));
        assert!(error(&probit) < 0.5 / concentration, "probit {}", error(&probit));
        errors.push(error(&bridge));
    }
    assert!(errors[1] < 0.3 * errors[0], "{errors:?}");
}

#[test]
fn wide_gaussians_make_the_plain_bridge_overconfident_and_the_normalised_one_less_so() {
    let (mean, variances) = ([4.0, 0.0, -1.0], [20.0, 20.0, 20.0]);
    let latent = diagonal(&mean, &variances);
    let exact = probabilities(&categorical(3), sampled(100_000), latent)[0];
    let plain = probabilities(&categorical(3), Integration::LaplaceBridge, latent)[0];
    let normalised = probabilities(&categorical(3), Integration::NormalisedLaplaceBridge, latent)[0];
    assert!(plain > exact + 0.1, "{plain} {exact}");
    assert!((normalised - exact).abs() < 0.5 * (plain - exact).abs(), "{normalised} {plain} {exact}");
}

#[test]
fn moments_against_simulation_through_the_likelihood() {
    let covariance =
        [0.30, 0.10, 0.05, -0.04, 0.10, 0.20, 0.02, 0.03, 0.05, 0.02, 0.25, 0.0, -0.04, 0.03, 0.0, 0.15];
    let mean = [0.5, -0.3, 0.2, -0.8];
    let noise: Vec<f64> = (0..16).map(|e| if e / 4 == e % 4 { 0.5 } else { 0.1 }).collect();
    let mut rng = Streams::new(8).stream("moments");
    for l in [
        OutputLikelihood::Gaussian(Gaussian::independent(vec![0.1, 0.2, 0.3, 0.4]).unwrap()),
        OutputLikelihood::FullGaussian(FullGaussian::new(4, noise).unwrap()),
        OutputLikelihood::Poisson(Poisson::new(4).unwrap()),
        OutputLikelihood::NegativeBinomial(NegativeBinomial::new(2.5).unwrap().with_outputs(4)),
        OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(2).unwrap()),
    ] {
        let width = l.target_width();
        let rule = PredictiveRule::new(l.clone(), Integration::Probit).unwrap();
        let Prediction::Moments { mean: m, variance: v, latent_variance } =
            rule.predict(full(&mean, &covariance)).unwrap()
        else {
            panic!("moments expected")
        };
        assert_close(&latent_variance, &(0..width).map(|i| covariance[i * 5]).collect::<Vec<_>>(), 0.0, 0.0);
        let root = faer::Mat::from_fn(4, 4, |i, j| covariance[i * 4 + j]).llt(faer::Side::Lower).unwrap();
        let count = 100_000;
        let mut y = vec![0.0; width];
        let mut sums = vec![[0.0f64; 4]; width];
        for _ in 0..count {
            let z: [f64; 4] = std::array::from_fn(|_| StandardNormal.sample(&mut rng));
            let f: Vec<f64> =
                (0..4).map(|i| mean[i] + (0..=i).map(|j| root.L()[(i, j)] * z[j]).sum::<f64>()).collect();
            l.sample(&f, &mut rng, &mut y);
            for i in 0..width {
                let d = y[i] - m[i];
                sums[i][0] += d;
                sums[i][1] += d * d;
                sums[i][3] += d.powi(4);
            }
        }
        for i in 0..width {
            let n = f64::from(count);
            let (first, second, fourth) = (sums[i][0] / n, sums[i][1] / n, sums[i][3] / n);
            assert!(first.abs() < 5.0 * (second / n).sqrt(), "{} mean {i}: off by {first}", l.name());
            let error = ((fourth - second * second) / n).sqrt();
            assert!((second - v[i]).abs() < 5.0 * error, "{} variance {i}: {second} for {}", l.name(), v[i]);
        }
        let plug_in = PredictiveRule::new(l.clone(), Integration::PlugIn).unwrap();
        let certain = rule.predict(diagonal(&mean, &[0.0; 4])).unwrap();
        match (plug_in.predict(full(&mean, &covariance)).unwrap(), certain) {
            (
                Prediction::Moments { mean: a, variance: b, .. },
                Prediction::Moments { mean, variance, .. },
            ) => {
                assert_eq!((a, b), (mean, variance));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn log_densities_agree_with_the_predictions_and_stay_finite_where_probabilities_vanish() {
    let (mean, variances) = ([3.0, -1.0, 0.5], [0.5, 1.5, 1.0]);
    for rule in [
        Integration::PlugIn,
        Integration::Probit,
        Integration::LaplaceBridge,
        Integration::NormalisedLaplaceBridge,
        sampled(500),
    ] {
        let l = categorical(3);
        let rule_ = PredictiveRule::new(l.clone(), rule).unwrap();
        let p = probabilities(&l, rule, diagonal(&mean, &variances));
        for (class, p) in p.iter().enumerate() {
            let log = rule_.log_predictive_density(&[class as f64], diagonal(&mean, &variances)).unwrap();
            assert_close(&[log], &[p.ln()], 1e-12, 1e-12);
        }
        let far = [1e4, -1e4, 0.0];
        let log = rule_.log_predictive_density(&[1.0], diagonal(&far, &variances)).unwrap();
        assert!(log.is_finite() && log < -1e3, "{rule:?} {log}");
        let far = probabilities(&l, rule, diagonal(&far, &variances));
        assert!(far.iter().all(|p| p.is_finite()));
        assert_close(&[far.iter().sum()], &[1.0], 1e-14, 0.0);
    }
    for link in [Link::Logit, Link::Probit] {
        for rule in [Integration::PlugIn, Integration::Probit] {
            let l = bernoulli(3, link);
            let p = probabilities(&l, rule, diagonal(&mean, &variances));
            let log = PredictiveRule::new(l, rule).unwrap();
            let log = log.log_predictive_density(&[1.0, 0.0, 1.0], diagonal(&mean, &variances)).unwrap();
            assert_close(&[log], &[(p[0] * (1.0 - p[1]) * p[2]).ln()], 1e-12, 0.0);
        }
    }
}

#[test]
fn gaussian_log_densities_are_those_of_the_summed_covariance() {
    let (mean, y) = ([0.5, -0.3], [1.0, 0.4]);
    let (v, noise) = ([0.5, 0.2, 0.2, 0.3], [0.4, -0.1, -0.1, 0.7]);
    let log = |l: OutputLikelihood, latent| {
        PredictiveRule::new(l, Integration::Probit).unwrap().log_predictive_density(&y, latent).unwrap()
    };
    let correlated = OutputLikelihood::FullGaussian(FullGaussian::new(2, noise.to_vec()).unwrap());
    let independent = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.4, 0.7]).unwrap());
    let exact = |sum: [f64; 4]| FullGaussian::new(2, sum.to_vec()).unwrap().log_density(&y, &mean);
    assert_close(&[log(correlated.clone(), full(&mean, &v))], &[exact([0.9, 0.1, 0.1, 1.0])], 1e-13, 0.0);
    assert_close(
        &[log(correlated, diagonal(&mean, &[0.5, 0.3]))],
        &[exact([0.9, -0.1, -0.1, 1.0])],
        1e-13,
        0.0,
    );
    assert_close(&[log(independent.clone(), full(&mean, &v))], &[exact([0.9, 0.2, 0.2, 1.0])], 1e-13, 0.0);
    assert_close(
        &[log(independent, diagonal(&mean, &[0.5, 0.3]))],
        &[exact([0.9, 0.0, 0.0, 1.0])],
        1e-13,
        0.0,
    );
}

#[test]
fn sampled_log_densities_see_correlations_and_agree_with_quadrature_without_them() {
    let samples = 200_000;
    let l = OutputLikelihood::Poisson(Poisson::new(2).unwrap());
    let (mean, y) = ([0.5, 1.0], [3.0, 4.0]);
    let log = |rule, latent| {
        PredictiveRule::new(l.clone(), rule).unwrap().log_predictive_density(&y, latent).unwrap()
    };
    let independent = diagonal(&mean, &[0.6, 0.6]);
    let quadrature = log(Integration::Probit, independent);
    // The delta method: error of log p̂ is sd(p)/(p √n), with p(y|f) at most the mode of the Poisson distribution, below 0.225 · 0.196.
    let tolerance = |log: f64| 5.0 * 0.0441 / (log.exp() * (samples as f64).sqrt());
    let by_sampling = log(sampled(samples), independent);
    assert!((by_sampling - quadrature).abs() < tolerance(quadrature), "{by_sampling} {quadrature}");
    // Both latent values equal up to their means: one integral.
    let correlated = full(&mean, &[0.6; 4]);
    let single = Poisson::new(2).unwrap();
    let exact = average(0.0, 0.6, |t| single.log_density(&y, &[0.5 + t, 1.0 + t]).exp()).ln();
    let by_sampling = log(sampled(samples), correlated);
    assert!((by_sampling - exact).abs() < tolerance(exact), "{by_sampling} {exact}");
    assert!((exact - quadrature).abs() > 3.0 * tolerance(exact), "the test must tell them apart");

    let l = OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(1).unwrap());
    let latent_covariance = [0.3, 0.2, 0.2, 0.5];
    let latent = full(&[0.2, -1.0], &latent_covariance);
    let log =
        |rule| PredictiveRule::new(l.clone(), rule).unwrap().log_predictive_density(&[0.7], latent).unwrap();
    // Product quadrature over (s, m | s).
    let rule = GaussHermite::new(60);
    let exact: f64 = rule
        .nodes(-1.0, 0.5)
        .flat_map(|(s, p)| {
            rule.nodes(0.2 + 0.4 * (s + 1.0), 0.3 - 0.08).map(move |(m, q)| (m, s, p * q)).collect::<Vec<_>>()
        })
        .map(|(m, s, w)| w * l.log_density(&[0.7], &[m, s]).exp())
        .sum();
    assert_close(&[log(Integration::Probit)], &[exact.ln()], 0.0, 1e-6);
    // p(y|f) is below (2π e^s)^-½, whose second moment is E[e^-s]/2π.
    let second_moment = (1.0f64 + 0.25).exp() / (2.0 * std::f64::consts::PI);
    let error = second_moment.sqrt() / (exact * (samples as f64).sqrt());
    assert!((log(sampled(samples)) - exact.ln()).abs() < 5.0 * error);
}

#[test]
fn overdispersed_counts_by_sampling_agree_with_quadrature() {
    let samples = 200_000;
    let l = OutputLikelihood::NegativeBinomial(NegativeBinomial::new(1.3).unwrap());
    let latent = diagonal(&[0.5], &[0.6]);
    let log =
        |rule| PredictiveRule::new(l.clone(), rule).unwrap().log_predictive_density(&[3.0], latent).unwrap();
    let exact = average(0.5, 0.6, |f| l.log_density(&[3.0], &[f]).exp()).ln();
    assert_close(&[log(Integration::Probit)], &[exact], 1e-12, 0.0);
    // Densities of a count of 3 are below 1/4.
    let tolerance = 5.0 * 0.25 / (exact.exp() * (samples as f64).sqrt());
    assert_close(&[log(sampled(samples))], &[exact], 0.0, tolerance);
}

#[test]
fn common_random_numbers_and_reused_memory() {
    let l = categorical(3);
    let rule = PredictiveRule::new(l.clone(), sampled(65)).unwrap();
    assert_eq!(rule, PredictiveRule::new(l.clone(), sampled(65)).unwrap());
    let (mut workspace, mut out) = (PredictiveWorkspace::default(), Prediction::Events(vec![1.0]));
    let v = [1.0, 0.2, 0.1, 0.2, 2.0, 0.3, 0.1, 0.3, 1.5];
    for latent in
        [full(&[0.0, 1.0, 2.0], &v), diagonal(&[0.3, 0.1, 0.0], &v[..3]), full(&[0.0, 1.0, 2.0], &v)]
    {
        let clipping = rule.predict_into(latent, &mut workspace, &mut out).unwrap();
        assert_eq!(clipping, Clipping::default());
        assert_eq!(out, rule.predict(latent).unwrap());
    }
    let other = PredictiveRule::new(l, Integration::MonteCarlo { samples: 65, seed: 5 }).unwrap();
    assert_ne!(other.predict(full(&[0.0, 1.0, 2.0], &v)).unwrap(), out);
    // Pairs cancel: an event with mean zero has probability one half exactly.
    let p = probabilities(&bernoulli(1, Link::Logit), sampled(50), diagonal(&[0.0], &[3.0]));
    assert_close(&p, &[0.5], 1e-15, 0.0);
}

#[test]
fn what_does_not_apply_or_is_not_a_covariance_is_refused() {
    let gaussian = OutputLikelihood::Gaussian(Gaussian::independent(vec![1.0]).unwrap());
    for (l, rule, words) in [
        (gaussian.clone(), sampled(10), "monte_carlo does not apply to the gaussian likelihood"),
        (gaussian, Integration::LaplaceBridge, "laplace_bridge does not apply to the gaussian likelihood"),
        (bernoulli(2, Link::Logit), Integration::NormalisedLaplaceBridge, "it is for classes"),
        (categorical(3), sampled(0), "samples (for 3 outputs) is 0"),
        (categorical(3), sampled(usize::MAX), "at most 2^28"),
    ] {
        let message = PredictiveRule::new(l, rule).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    for integration in [Integration::Probit, Integration::LaplaceBridge, sampled(10)] {
        let rule = PredictiveRule::new(categorical(2), integration).unwrap();
        let error = |latent| rule.predict(latent).unwrap_err();
        assert!(matches!(error(diagonal(&[0.0], &[1.0])), LikelihoodError::Length { .. }));
        assert!(matches!(error(diagonal(&[0.0, 1.0], &[1.0])), LikelihoodError::Length { .. }));
        assert!(matches!(error(full(&[0.0, 1.0], &[1.0; 3])), LikelihoodError::Length { .. }));
        assert!(matches!(
            error(diagonal(&[0.0, f64::NAN], &[1.0; 2])),
            LikelihoodError::NotFinite { what: "mean", position: 1, .. }
        ));
        assert!(matches!(error(full(&[0.0, 1.0], &[f64::INFINITY; 4])), LikelihoodError::NotFinite { .. }));
        assert!(matches!(
            error(diagonal(&[0.0, 1.0], &[1.0, -0.1])),
            LikelihoodError::NotPositiveSemidefinite { .. }
        ));
        assert!(rule.log_predictive_density(&[2.0], diagonal(&[0.0, 1.0], &[1.0, 1.0])).is_err());
        // Rounding is reported, not refused.
        let mut out = rule.empty_prediction();
        let latent = diagonal(&[0.0, 1.0], &[1.0, -1e-9]);
        let clipping = rule.predict_into(latent, &mut PredictiveWorkspace::default(), &mut out).unwrap();
        assert_eq!(clipping, Clipping { count: 1, least: -1e-9 });
    }
}

#[test]
fn integrations_are_written_by_name() {
    for (text, rule) in [
        (r#"{"kind":"plug_in"}"#, Integration::PlugIn),
        (r#"{"kind":"probit"}"#, Integration::default()),
        (r#"{"kind":"laplace_bridge"}"#, Integration::LaplaceBridge),
        (r#"{"kind":"normalised_laplace_bridge"}"#, Integration::NormalisedLaplaceBridge),
        (
            r#"{"kind":"monte_carlo","samples":512,"seed":3}"#,
            Integration::MonteCarlo { samples: 512, seed: 3 },
        ),
    ] {
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        assert_eq!(serde_json::from_str::<Integration>(text).unwrap(), rule);
        assert!(text.contains(rule.name()));
    }
    assert!(serde_json::from_str::<Integration>(r#"{"kind":"monte_carlo","sample":512}"#).is_err());
}

/// Sure events have no more than certainty, whatever rounding makes of the sum of the quadrature's weights, and what is no number stays none.
#[test]
fn no_event_is_more_than_certain() {
    for link in [Link::Logit, Link::Probit] {
        let likelihood = bernoulli(1, link);
        for mean in [30.0, 100.0, 1e4] {
            for k in 0..200 {
                let Prediction::Events(p) = likelihood.predict(&[mean], &[0.01 * 1.07f64.powi(k)]) else {
                    panic!("events")
                };
                assert!((0.0..=1.0).contains(&p[0]), "{link:?} {mean} {k}: {:e}", p[0] - 1.0);
            }
        }
        let Prediction::Events(p) = likelihood.predict(&[f64::NAN], &[1.0]) else { panic!("events") };
        assert!(p[0].is_nan());
    }
}
