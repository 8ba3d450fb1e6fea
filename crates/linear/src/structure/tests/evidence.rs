use super::*;
use crate::evidence::{DataFit, EvidenceOptions, LaplaceEvidence, Maximiser};
use posterior_optim::check;

fn gaussian() -> DataFit {
    DataFit::Gaussian { residual_sum: 31.0, values: 60, log_relative_precision: 0.4 }
}

#[test]
fn slopes_are_the_derivatives() {
    let (structure, _) = mixed();
    let mode = normal(27, 1, 30);
    for structure in [structure.clone(), structure.normalised().unwrap()] {
        let evidence =
            LaplaceEvidence::new(&structure, grouped_prior(), mode.col_as_slice(0), gaussian()).unwrap();
        let at = |t: &[f64]| {
            let precisions: Vec<f64> = t[..3].iter().map(|t| t.exp()).collect();
            evidence.at(&precisions, t[3].exp()).unwrap()
        };
        let theta = [0.3, -0.5, 1.1, -0.7];
        let value = at(&theta);
        let numeric = check::gradient(|t| at(t).log_evidence, &theta);
        let analytic: Vec<f64> = value.slopes.iter().copied().chain([value.noise_slope]).collect();
        check::assert_close(&analytic, &numeric, 1e-8, 1e-8);
    }
}

/// For a linear model with Gaussian noise the Laplace evidence at the mode is the marginal likelihood `N(y; 0, Phi A^-1 Phi^T + sigma^2)`.
#[test]
fn at_the_mode_of_a_gaussian_model_it_is_the_marginal_likelihood() {
    let (n, d, noise, a) = (12, 5, 0.3, 0.8);
    let (phi, y) = (normal(n, d, 40), normal(n, 1, 41));
    let m = phi.transpose() * &phi;
    let block = Block { name: "all".into(), range: 0..d, matrix: BlockMatrix::Dense(Dense::new(m)) };
    let structure = Structure::new(vec![block]).unwrap();
    let prior = Prior::scalar(d, a).unwrap();
    let posterior = structure.condition(&prior, 1.0 / noise).unwrap();
    let projected = phi.transpose() * &y * faer::Scale(1.0 / noise);
    let mode = posterior.solve(projected.col_as_slice(0));
    let residual = &y - &phi * Mat::from_fn(d, 1, |i, _| mode[i]);
    let fit = DataFit::Gaussian {
        residual_sum: residual.squared_norm_l2(),
        values: n,
        log_relative_precision: 0.0,
    };
    let value = LaplaceEvidence::new(&structure, prior, &mode, fit).unwrap().at(&[a], noise).unwrap();

    let mut c = &phi * phi.transpose() * faer::Scale(1.0 / a);
    (0..n).for_each(|i| c[(i, i)] += noise);
    use faer::linalg::solvers::Solve;
    let solved = c.partial_piv_lu().solve(&y);
    let quadratic = (y.transpose() * solved)[(0, 0)];
    let expected = -0.5 * (quadratic + c.determinant().ln() + n as f64 * (2.0 * std::f64::consts::PI).ln());
    check::assert_close(&[value.log_evidence], &[expected], 1e-11, 1e-11);
}

#[test]
fn both_searches_end_where_the_slopes_vanish() {
    let (structure, _) = mixed();
    let mode = normal(27, 1, 31);
    let evidence =
        LaplaceEvidence::new(&structure, grouped_prior(), mode.col_as_slice(0), gaussian()).unwrap();
    let options = EvidenceOptions { tolerance: 1e-9, steps: 2000, ..EvidenceOptions::default() };
    let a = evidence.maximise(1.0, true, Maximiser::Gradient, &options).unwrap();
    let b = evidence.maximise(1.0, true, Maximiser::Mackay, &options).unwrap();
    for result in [&a, &b] {
        assert!(result.converged && result.at_bounds.is_empty(), "{result:?}");
        let largest = result
            .value
            .slopes
            .iter()
            .chain([&result.value.noise_slope])
            .fold(0.0, |m: f64, s| m.max(s.abs()));
        assert!(largest < 1e-5, "{largest}");
    }
    check::assert_close(a.prior.precisions(), b.prior.precisions(), 1e-5, 0.0);
    check::assert_close(&[a.noise_variance], &[b.noise_variance], 1e-5, 0.0);
    assert!(a.value.log_evidence >= evidence.at(grouped_prior().precisions(), 1.0).unwrap().log_evidence);
}

#[test]
fn weights_that_are_all_zero_send_the_precision_to_its_bound_and_say_so() {
    let (structure, _) = mixed();
    let fit = DataFit::LogLikelihood { value: -3.0 };
    let evidence = LaplaceEvidence::new(&structure, grouped_prior(), &[0.0; 27], fit).unwrap();
    let options = EvidenceOptions::default();
    let result = evidence.maximise(1.0, true, Maximiser::Mackay, &options).unwrap();
    assert_eq!(result.at_bounds, ["a", "b", "c"]);
    assert_eq!(result.noise_variance, 1.0);
}

#[test]
fn bad_weights_are_refused() {
    let (structure, _) = mixed();
    let fit = DataFit::LogLikelihood { value: -3.0 };
    let with = |mode: &[f64], fit| {
        LaplaceEvidence::new(&structure, grouped_prior(), mode, fit).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(&[0.0; 3], fit).contains("3 weights"));
    let mut mode = [0.0; 27];
    mode[4] = f64::INFINITY;
    assert!(with(&mode, fit).contains("inf as weight 4"));
    assert!(with(&[0.0; 27], DataFit::LogLikelihood { value: f64::NAN }).contains("NaN"));
}

/// A diagonal of many weights counts more effective dimensions than there are targets. Full updates then send noise and precision away from the maximum; shortened ones climb to it.
#[test]
fn fixed_points_do_not_run_away_where_effective_dimensions_exceed_the_targets() {
    let d = 300;
    let matrix = BlockMatrix::Diagonal(Diagonal::new((0..d).map(|i| 2.0 + (i % 7) as f64 * 5.0).collect()));
    let structure = Structure::new(vec![Block { name: "all".into(), range: 0..d, matrix }]).unwrap();
    let mode: Vec<f64> = (0..d).map(|i| 0.6 * (i as f64 * 0.7).sin()).collect();
    let fit = DataFit::Gaussian { residual_sum: 0.5, values: 60, log_relative_precision: 0.0 };
    let options = EvidenceOptions { steps: 2000, tolerance: 1e-8, ..EvidenceOptions::default() };
    for (precision, noise) in [(1.0, 1.0), (1e-3, 1e-3), (100.0, 0.01)] {
        let prior = Prior::scalar(d, precision).unwrap();
        let evidence = LaplaceEvidence::new(&structure, prior, &mode, fit).unwrap();
        let start = evidence.at(&[precision], noise).unwrap();
        assert!(precision > 0.5 || start.effective_dimensions[0] > 60.0, "{start:?}");
        let best = evidence.maximise(noise, true, Maximiser::Gradient, &options).unwrap();
        let found = evidence.maximise(noise, true, Maximiser::Mackay, &options).unwrap();
        let (a, b) = (best.value.log_evidence, found.value.log_evidence);
        assert!(found.converged, "{precision} {noise}: {:?}", found.steps.last());
        assert!(b >= start.log_evidence && (a - b).abs() < 1e-5 * a.abs().max(1.0), "{precision}: {a} {b}");
        // Never downhill on the way.
        for pair in found.steps.windows(2) {
            assert!(pair[1].log_evidence >= pair[0].log_evidence - 1e-9 * pair[0].log_evidence.abs());
        }
    }
}
