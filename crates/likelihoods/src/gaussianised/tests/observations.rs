//! Observations of all kinds, their slopes in the pseudo-count, what is refused, and what is written to files.

use super::*;
use crate::LikelihoodError;

#[test]
fn slopes_in_the_pseudo_count_equal_central_differences() {
    for pseudo_count in [0.01, 0.1, 1.5] {
        for matching in ALL {
            let at = |p: &[f64]| Gaussianised::new(matching, p[0]).unwrap();
            let now = at(&[pseudo_count]);
            for yes in [false, true] {
                let numeric = [
                    gradient(|p| at(p).class(yes).target, &[pseudo_count])[0],
                    gradient(|p| at(p).class(yes).variance, &[pseudo_count])[0],
                ];
                let slopes = now.class_slopes(yes);
                // The step of the difference is 1e-4 at least, a share of 1e-2 of the smallest.
                assert_close(&[slopes.target, slopes.variance], &numeric, 1e-6, 1e-9);
                if matching == Matching::MomentOriginal {
                    assert!(now.event(yes).is_err() && now.event_slopes(yes).is_err());
                    continue;
                }
                let numeric = [
                    gradient(|p| at(p).event(yes).unwrap().target, &[pseudo_count])[0],
                    gradient(|p| at(p).event(yes).unwrap().variance, &[pseudo_count])[0],
                ];
                let slopes = now.event_slopes(yes).unwrap();
                assert_close(&[slopes.target, slopes.variance], &numeric, 1e-6, 1e-9);
            }
        }
    }
}

#[test]
fn each_kind_is_its_conjugate_posterior() {
    let close = |a: PseudoObservation, b: PseudoObservation| {
        assert_close(&[a.target, a.variance], &[b.target, b.variance], 1e-14, 1e-14);
    };
    for matching in ALL {
        let made = Gaussianised::new(matching, 0.3).unwrap();
        assert_eq!((made.matching(), made.pseudo_count(), made.prior_rate()), (matching, 0.3, 0.3));
        close(made.count(4.0, 1.0).unwrap(), gamma(matching, 4.3, 1.3).unwrap().observation);
        close(made.count(0.0, 20.0).unwrap(), gamma(matching, 0.3, 20.3).unwrap().observation);
        close(made.waiting_time(2.5).unwrap(), gamma(matching, 1.3, 2.8).unwrap().observation);
        let slow = made.with_prior_rate(60.0).unwrap();
        assert_eq!(slow.prior_rate(), 60.0);
        close(slow.count(4.0, 1.0).unwrap(), gamma(matching, 4.3, 61.0).unwrap().observation);
        assert_eq!(slow.class(true), made.class(true));
        if matching == Matching::MomentOriginal {
            assert!(made.binomial(1.0, 2.0).is_err() && made.residual_variance(1.0).is_err());
            continue;
        }
        close(made.binomial(4.0, 9.0).unwrap(), beta(matching, 4.3, 5.3).unwrap().observation);
        let noise = made.residual_variance(-3.0).unwrap();
        close(noise, inverse_gamma(matching, 0.8, 4.8).unwrap().observation);
        assert_eq!(noise, made.residual_variance(3.0).unwrap());
        // An event is one trial.
        for yes in [false, true] {
            close(made.event(yes).unwrap(), made.binomial(f64::from(u8::from(yes)), 1.0).unwrap());
        }
        assert!(
            (made.event(true).unwrap().precision() * made.event(true).unwrap().variance - 1.0).abs() < 1e-15
        );
    }
    // As printed: log((a + y) / (b + 1)) - 1 / (2 (a + y)).
    let counts = Gaussianised::new(Matching::Variational, 0.1).unwrap();
    let PseudoObservation { target, variance } = counts.count(7.0, 1.0).unwrap();
    assert_close(&[target, variance], &[(7.1f64 / 1.1).ln() - 0.5 / 7.1, 1.0 / 7.1], 1e-14, 0.0);
}

#[test]
fn many_observations_leave_nothing_of_the_matching() {
    // With much data in one observation all Gaussians are those of the likelihood about its maximum.
    for matching in COMMON {
        let made = Gaussianised::new(matching, 0.1).unwrap();
        let found = made.binomial(300_000.0, 1e6).unwrap();
        assert_close(&[found.target], &[(0.3f64 / 0.7).ln()], 0.0, 1e-5);
        assert_close(&[found.variance], &[1.0 / (0.3 * 0.7 * 1e6)], 1e-5, 0.0);
        let found = made.count(5e5, 100.0).unwrap();
        assert_close(&[found.target, found.variance], &[5e3f64.ln(), 2e-6], 1e-5, 2e-3);
    }
}

#[test]
fn what_is_not_a_number_of_its_kind_is_refused_with_a_remedy() {
    let refused = |error: LikelihoodError, words: &str| {
        assert!(matches!(error, LikelihoodError::Parameter { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    for matching in ALL {
        for bad in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            refused(Gaussianised::new(matching, bad).unwrap_err(), "gaussianised: pseudo_count is");
            refused(gamma(matching, bad, 1.0).unwrap_err(), "gamma: shape is");
            refused(gamma(matching, 1.0, bad).unwrap_err(), "gamma: rate is");
            if matching == Matching::MomentOriginal {
                continue;
            }
            refused(beta(matching, bad, 1.0).unwrap_err(), "beta: first is");
            refused(beta(matching, 1.0, bad).unwrap_err(), "beta: second is");
            refused(exponential(matching, bad).unwrap_err(), "exponential: rate is");
            refused(chi_squared(matching, bad).unwrap_err(), "chi-squared: degrees_of_freedom is");
            refused(inverse_gamma(matching, bad, 1.0).unwrap_err(), "inverse gamma: shape is");
            refused(inverse_gamma(matching, 1.0, bad).unwrap_err(), "inverse gamma: scale is");
        }
        for tiny in [1e-200, f64::MIN_POSITIVE, 5e-324] {
            // The moments of the positive variable are numbers of the machine for any normal one.
            if matching != Matching::MomentOriginal || tiny < f64::MIN_POSITIVE {
                refused(Gaussianised::new(matching, tiny).unwrap_err(), "0.1 is customary");
                refused(gamma(matching, tiny, 1.0).unwrap_err(), "gamma: shape is");
            }
            refused(gamma(matching, 1.0, 5e-324).unwrap_err(), "gamma: rate is 5e-324; its Gaussian");
            if matching != Matching::MomentOriginal {
                refused(beta(matching, tiny, 1.0).unwrap_err(), "beta: first is");
                refused(beta(matching, 1.0, tiny).unwrap_err(), "beta: second is");
                refused(beta(matching, tiny, tiny).unwrap_err(), "less extreme");
            }
        }
        assert!(gamma(matching, f64::MAX, f64::MAX).is_ok());
    }
    let original = Matching::MomentOriginal;
    refused(
        beta(original, 1.0, 1.0).unwrap_err(),
        "beta: matching is moment-original; it is defined for Gamma",
    );
    refused(exponential(original, 1.0).unwrap_err(), "choose moment, laplace or variational");
    refused(chi_squared(original, 1.0).unwrap_err(), "choose moment, laplace or variational");
    refused(inverse_gamma(original, 1.0, 1.0).unwrap_err(), "choose moment, laplace or variational");
    let made = Gaussianised::new(Matching::Variational, 0.1).unwrap();
    for bad in [-1.0, 0.5, f64::NAN, f64::INFINITY] {
        refused(made.count(bad, 1.0).unwrap_err(), "whole numbers from 0");
        refused(made.binomial(bad, 3.0).unwrap_err(), "successes is");
        refused(made.binomial(1.0, bad).unwrap_err(), "trials is");
    }
    refused(made.binomial(4.0, 3.0).unwrap_err(), "at most as many as trials");
    refused(made.binomial(0.0, 0.0).unwrap_err(), "drop rows in which nothing was tried");
    refused(made.count(1.0, 0.0).unwrap_err(), "exposure is 0");
    refused(made.waiting_time(-1.0).unwrap_err(), "waiting_time is -1");
    refused(made.waiting_time(f64::NAN).unwrap_err(), "waiting_time is NaN");
    refused(made.residual_variance(1e200).unwrap_err(), "residual is");
    refused(made.residual_variance(f64::NAN).unwrap_err(), "residual is NaN");
    refused(made.with_prior_rate(0.0).unwrap_err(), "prior_rate is 0");
}

#[test]
fn names_in_files() {
    for matching in ALL {
        let name = serde_json::to_string(&matching).unwrap();
        assert_eq!(name, format!("\"{}\"", matching.name()));
        let text = format!("{{\"matching\":{name},\"pseudo_count\":0.1}}");
        let made: Gaussianised = serde_json::from_str(&text).unwrap();
        assert_eq!(made, Gaussianised::new(matching, 0.1).unwrap());
        assert_eq!(serde_json::to_string(&made).unwrap(), text);
        let settings = toml::to_string(&made.with_prior_rate(2.0).unwrap()).unwrap();
        assert_eq!(toml::from_str::<Gaussianised>(&settings).unwrap(), made.with_prior_rate(2.0).unwrap());
    }
    let default: Gaussianised = serde_json::from_str(r#"{"pseudo_count":0.2}"#).unwrap();
    assert_eq!(default.matching(), Matching::Variational);
    for bad in [
        r#"{"matching":"variational"}"#,
        r#"{"matching":"moment-ori","pseudo_count":0.1}"#,
        r#"{"pseudo_count":0.0}"#,
        r#"{"pseudo_count":1e-300}"#,
        r#"{"pseudo_count":0.1,"prior_rate":-1.0}"#,
        r#"{"pseudo_count":0.1,"rate":1.0}"#,
    ] {
        assert!(serde_json::from_str::<Gaussianised>(bad).is_err(), "{bad}");
    }
}
