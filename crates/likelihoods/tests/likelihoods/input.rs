//! What is refused, what is said about it, and how likelihoods are written to files.

use posterior_likelihoods::{
    Bernoulli, Categorical, Covariance, FullGaussian, Gaussian, HeteroscedasticGaussian, Likelihood,
    LikelihoodError, Link, NegativeBinomial, NoiseStatistics, OutputLikelihood, Poisson,
};
use posterior_optim::check;

#[test]
fn impossible_targets_are_named_with_a_remedy() {
    let classes = Categorical::new(10).unwrap();
    for (y, words) in [
        (vec![10.0], "target 0 is 10, which the categorical likelihood cannot produce"),
        (vec![-1.0], "whole numbers from 0 to 9"),
        (vec![2.5], "renumber the labels"),
        (vec![f64::NAN], "target 0 is NaN"),
        (vec![1e300], "whole numbers from 0 to 9"),
        (vec![0.0; 10], "rather than one-hot"),
    ] {
        let message = classes.check_target(&y).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        if y.len() == 1 {
            // Unchecked, it is not a number and no panic.
            assert!(classes.log_density(&y, &[0.0; 10]).is_nan());
            let mut out = [0.0; 10];
            classes.gradient(&y, &[0.0; 10], &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
        }
    }
    let message = |l: &dyn Likelihood, y: &[f64]| l.check_target(y).unwrap_err().to_string();
    let events = Bernoulli::new(2, Link::Probit).unwrap();
    assert!(message(&events, &[1.0, 0.5]).contains("target 1 is 0.5"));
    let counts = Poisson::new(2).unwrap();
    for bad in [-1.0, 0.5, f64::INFINITY, f64::NAN] {
        assert!(message(&counts, &[3.0, bad]).contains("counts are whole numbers from 0"));
    }
    let counts = NegativeBinomial::new(1.0).unwrap();
    for bad in [-1.0, 0.5, f64::INFINITY, f64::NAN] {
        assert!(message(&counts, &[bad]).contains("counts are whole numbers from 0"));
    }
    let noise = Gaussian::independent(vec![1.0; 2]).unwrap();
    assert!(message(&noise, &[f64::NAN, 0.0]).contains("drop the row"));
    assert!(message(&noise, &[0.0]).contains("has 1 numbers where the gaussian likelihood needs 2"));
    assert!(message(&HeteroscedasticGaussian::new(2).unwrap(), &[0.0; 4]).contains("needs 2"));
}

#[test]
fn unusable_parameters_are_refused_also_in_files() {
    for bad in [
        r#"{"kind":"gaussian","noise_variances":[]}"#,
        r#"{"kind":"gaussian","noise_variances":[1.0,0.0]}"#,
        r#"{"kind":"gaussian","noise_variances":[1.0],"floor":0.1}"#,
        r#"{"kind":"gaussian","noise_variance":0.1,"floor":0.2}"#,
        r#"{"kind":"gaussian","noise_variance":0.1,"floor":-1.0}"#,
        r#"{"kind":"gaussian","noise_variance":0.1,"floor":0.0,"outputs":0}"#,
        r#"{"kind":"student_t","scale":1.0,"degrees_of_freedom":2.0}"#,
        r#"{"kind":"full_gaussian","covariance":[[1.0,0.2],[0.3,1.0]]}"#,
        r#"{"kind":"full_gaussian","covariance":[[1.0,2.0],[2.0,1.0]]}"#,
        r#"{"kind":"full_gaussian","covariance":[[1.0],[2.0,1.0]]}"#,
        r#"{"kind":"full_gaussian","covariance":[]}"#,
        r#"{"kind":"categorical","classes":1}"#,
        r#"{"kind":"categorical","classes":18446744073709551615}"#,
        r#"{"kind":"robust_max","classes":1}"#,
        r#"{"kind":"robust_max"}"#,
        r#"{"kind":"robust_max","classes":3,"error_rate":0.0}"#,
        r#"{"kind":"robust_max","classes":3,"error_rate":1.0}"#,
        r#"{"kind":"robust_max","classes":3,"delta":0.1}"#,
        r#"{"kind":"bernoulli","outputs":0}"#,
        r#"{"kind":"bernoulli","outputs":1,"link":"cloglog"}"#,
        r#"{"kind":"poisson","outputs":0}"#,
        r#"{"kind":"negative_binomial"}"#,
        r#"{"kind":"negative_binomial","dispersion":0.0}"#,
        r#"{"kind":"negative_binomial","dispersion":1.0,"outputs":0}"#,
        r#"{"kind":"heteroscedastic_gaussian","targets":18446744073709551615}"#,
        r#"{"kind":"laplace"}"#,
    ] {
        assert!(serde_json::from_str::<OutputLikelihood>(bad).is_err(), "{bad}");
    }
    let error = FullGaussian::new(2, vec![1.0, 0.2, f64::NAN, 1.0]).unwrap_err();
    assert!(matches!(error, LikelihoodError::Parameter { .. }), "{error}");
    assert!(matches!(FullGaussian::new(2, vec![f64::NAN; 4]), Err(LikelihoodError::Parameter { .. })));
    assert!(matches!(FullGaussian::new(1, vec![f64::NAN]), Err(LikelihoodError::Covariance(_))));
    assert!(matches!(FullGaussian::new(1, vec![f64::INFINITY]), Err(LikelihoodError::Covariance(_))));
}

#[test]
fn files_bring_back_the_same_likelihood() {
    for text in [
        r#"{"kind":"gaussian","noise_variances":[1.0,0.25]}"#,
        r#"{"kind":"gaussian","noise_variance":0.3,"floor":0.0}"#,
        r#"{"kind":"gaussian","noise_variance":0.3,"floor":1e-6,"outputs":2}"#,
        r#"{"kind":"student_t","scale":0.2,"degrees_of_freedom":3.0}"#,
        r#"{"kind":"student_t","scale":0.2,"degrees_of_freedom":3.0,"outputs":2}"#,
        r#"{"kind":"full_gaussian","covariance":[[1.0,0.2],[0.2,0.5]]}"#,
        r#"{"kind":"categorical","classes":10}"#,
        r#"{"kind":"robust_max","classes":10,"error_rate":0.03}"#,
        r#"{"kind":"bernoulli","outputs":3,"link":"probit"}"#,
        r#"{"kind":"poisson","outputs":2}"#,
        r#"{"kind":"negative_binomial","dispersion":0.7}"#,
        r#"{"kind":"negative_binomial","dispersion":0.7,"outputs":2}"#,
        r#"{"kind":"heteroscedastic_gaussian","targets":2}"#,
    ] {
        let likelihood: OutputLikelihood = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&likelihood).unwrap(), text);
        assert!(text.contains(likelihood.name()));
        let settings = toml::to_string(&likelihood).unwrap();
        assert_eq!(toml::from_str::<OutputLikelihood>(&settings).unwrap(), likelihood);
    }
}

#[test]
fn one_output_need_not_be_written() {
    for (text, full) in [
        (r#"{"kind":"bernoulli","link":"probit"}"#, r#"{"kind":"bernoulli","outputs":1,"link":"probit"}"#),
        (r#"{"kind":"bernoulli"}"#, r#"{"kind":"bernoulli","outputs":1,"link":"logit"}"#),
        (r#"{"kind":"poisson"}"#, r#"{"kind":"poisson","outputs":1}"#),
        (r#"{"kind":"robust_max","classes":4}"#, r#"{"kind":"robust_max","classes":4,"error_rate":0.01}"#),
    ] {
        let likelihood: OutputLikelihood = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&likelihood).unwrap(), full);
    }
}

#[test]
fn the_noise_update_is_a_stationary_point_of_the_expected_log_density() {
    let residuals = [[0.3, -0.2], [1.1, 0.8], [-0.4, 0.1], [0.2, -0.9]];
    let covariances =
        [[0.2, 0.05, 0.05, 0.1], [0.3, -0.1, -0.1, 0.4], [0.1, 0.0, 0.0, 0.2], [0.5, 0.2, 0.2, 0.3]];
    let mut full = NoiseStatistics::full(2);
    let mut independent = NoiseStatistics::independent(2);
    for (r, v) in residuals.iter().zip(&covariances) {
        full.add(r, Covariance::Full(v)).unwrap();
        independent.add(r, Covariance::Full(v)).unwrap();
    }
    // Σ_n log N(r; 0, Σ) - ½ tr(Σ⁻¹ V)
    let expected = |sigma: [f64; 4]| -> f64 {
        let noise = FullGaussian::new(2, sigma.to_vec()).unwrap();
        let mut precision = [0.0; 4];
        noise.curvature(&[0.0; 2], &[0.0; 2], &mut precision);
        residuals
            .iter()
            .zip(&covariances)
            .map(|(r, v)| {
                let trace: f64 = precision.iter().zip(v).map(|(p, v)| p * v).sum();
                noise.log_density(r, &[0.0; 2]) - 0.5 * trace
            })
            .sum()
    };
    let found = full.to_full(0.0).unwrap();
    let s = found.covariance();
    let slopes = check::gradient(|p| expected([p[0], p[1], p[1], p[2]]), &[s[0], s[1], s[3]]);
    check::assert_close(&slopes, &[0.0; 3], 0.0, 1e-8);
    let found = independent.to_independent(0.0).unwrap();
    let slopes = check::gradient(|p| expected([p[0], 0.0, 0.0, p[1]]), found.noise_variances());
    check::assert_close(&slopes, &[0.0; 2], 0.0, 1e-8);
    assert_eq!(full.to_independent(0.0).unwrap(), found);
    assert_eq!(full.to_independent(10.0).unwrap().noise_variances(), [10.0; 2]);
}

#[test]
fn noise_statistics_refuse_what_they_cannot_use() {
    let mut statistics = NoiseStatistics::full(2);
    assert!(statistics.to_full(0.0).is_err() && statistics.to_independent(0.1).is_err(), "nothing counted");
    let before = statistics.clone();
    assert!(statistics.add(&[0.0], Covariance::Diagonal(&[0.0; 2])).is_err());
    assert!(statistics.add(&[0.0, f64::NAN], Covariance::Diagonal(&[0.0; 2])).is_err());
    assert!(statistics.add(&[0.0; 2], Covariance::Full(&[0.0; 3])).is_err());
    assert_eq!(statistics, before);
    statistics.add(&[1.0, 2.0], Covariance::Diagonal(&[0.0; 2])).unwrap();
    assert!(statistics.to_full(0.0).is_err(), "rank one");
    assert_eq!(statistics.to_full(0.5).unwrap().covariance(), [1.5, 2.0, 2.0, 4.5]);
    assert!(NoiseStatistics::independent(2).to_full(0.0).is_err());
}

#[test]
fn the_constant_of_the_counts() {
    use statrs::distribution::{Discrete, Poisson as Reference};
    let counts = Poisson::new(1).unwrap();
    for (y, rate) in [(0u64, 0.3f64), (7, 4.0), (250, 300.0)] {
        let reference = Reference::new(rate).unwrap().ln_pmf(y);
        check::assert_close(&[counts.log_density(&[y as f64], &[rate.ln()])], &[reference], 1e-12, 1e-12);
    }
    // A rate of zero can produce nothing, and then surely does.
    assert_eq!(counts.log_density(&[0.0], &[f64::NEG_INFINITY]), 0.0);
    assert_eq!(counts.log_density(&[2.0], &[f64::NEG_INFINITY]), f64::NEG_INFINITY);
}
