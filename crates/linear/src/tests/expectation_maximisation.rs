//! The conjugate model: bounds, monotone evidence, fixed points, the published ordering of the updates.

use super::{Problem, assert_near, inverse, normal, normals};
use crate::dense::column;
use crate::exact::{ExactOptions, ExactPosterior};
use crate::hyperparameters::{
    Evidence, EvidenceCurvature, EvidenceModel, GaussianModel, LearnOptions, Learned, MStep, RootCurvature,
    bound, learn, maximise_bound,
};
use crate::mode::Predictor;
use crate::{Noise, Prior};
use faer::Mat;
use posterior_optim::check;

fn run(model: &mut GaussianModel<'_>, start: &Prior, m_step: MStep, steps: usize, tolerance: f64) -> Learned {
    let options = LearnOptions { m_step, steps, tolerance, ..Default::default() };
    learn(model, &Evidence::Mode, start, &options).unwrap()
}

#[test]
fn the_bounds_are_ordered_and_touch() {
    let problem = Problem::new(6, 4);
    let (m, y) = (problem.m(), column(&problem.targets));
    let count = 12.0;
    let constant = 0.5 * (problem.b().determinant().ln() - count * std::f64::consts::TAU.ln());
    let squares = |w: &Mat<f64>| {
        let residual = y - &problem.phi * w;
        (residual.transpose() * problem.b() * residual)[(0, 0)]
    };
    let solve = |a: f64| {
        let mut h = m.clone();
        (0..4).for_each(|i| h[(i, i)] += a);
        let covariance = inverse(&h);
        let mean = &covariance * problem.phi.transpose() * problem.b() * y;
        (covariance, mean)
    };
    let evidence = |a: f64| {
        let options = ExactOptions::default();
        ExactPosterior::new(problem.phi.as_ref(), &problem.targets, &problem.noise, &[a; 4], options)
            .unwrap()
            .log_evidence()
            .unwrap()
    };
    let eigenvalues = m.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    let here = 0.8;
    let (covariance, mean) = solve(here);
    let norm = mean.squared_norm_l2();
    // M(w, a) with the likelihood term restored, and the Gaussian evidence lower bound with mean and covariance held, from its definition.
    let coupled = |a: f64| constant - 0.5 * squares(&mean) + bound(&eigenvalues, norm, a);
    let decoupled = |a: f64| {
        let trace = |p: Mat<f64>| (0..4).map(|i| p[(i, i)]).sum::<f64>();
        let fit = constant - 0.5 * (squares(&mean) + trace(&m * &covariance));
        let divergence = 0.5
            * (a * (norm + trace(covariance.clone())) - 4.0 - (4.0 * a.ln() + covariance.determinant().ln()));
        fit - divergence
    };
    for a in [0.01, 0.3, 0.8, 2.0, 50.0] {
        assert!(decoupled(a) <= coupled(a) + 1e-12 && coupled(a) <= evidence(a) + 1e-12, "{a}");
        if a != here {
            assert!(decoupled(a) < coupled(a) && coupled(a) < evidence(a), "{a}");
        }
    }
    assert_near(coupled(here), evidence(here), 1e-10);
    assert_near(decoupled(here), evidence(here), 1e-10);
    let slopes: Vec<f64> = [&coupled as &dyn Fn(f64) -> f64, &decoupled, &evidence]
        .iter()
        .map(|f| check::gradient(|t| f(t[0].exp()), &[here.ln()])[0])
        .collect();
    assert_near(slopes[0], slopes[2], 1e-7);
    assert_near(slopes[1], slopes[2], 1e-7);
    // The maximum of each bound is where its update leads.
    let best = maximise_bound(&eigenvalues, norm, (1e-8, 1e10)).unwrap();
    assert_near(check::gradient(|t| coupled(t[0].exp()), &[best.ln()])[0], 0.0, 1e-8);
    let trace = (0..4).map(|i| covariance[(i, i)]).sum();
    let classical = crate::hyperparameters::decoupled_elbo(4, norm, trace);
    assert_near(check::gradient(|t| decoupled(t[0].exp()), &[classical.ln()])[0], 0.0, 1e-8);
}

#[test]
fn maximising_the_bound_reports_the_ends_of_its_range() {
    assert_eq!(maximise_bound(&[1.0], 0.0, (1e-3, 1e3)).unwrap(), 1e3);
    assert_eq!(maximise_bound(&[0.0], 1.0, (1e-3, 1e3)).unwrap(), 1e-3);
    // One eigenvalue: a n = l / (l + a), a quadratic.
    let (l, n) = (3.0f64, 0.7f64);
    let expected = 0.5 * (-l + (l * l + 4.0 * l / n).sqrt());
    assert_near(maximise_bound(&[l], n, (1e-8, 1e10)).unwrap(), expected, 1e-13);
    assert!(maximise_bound(&[f64::NAN], 1.0, (1.0, 2.0)).is_err());
    assert!(maximise_bound(&[1.0], f64::NAN, (1.0, 2.0)).is_err());
    assert!(maximise_bound(&[1.0], 1.0, (0.0, 2.0)).is_err());
}

#[test]
fn expectation_maximisation_never_lowers_the_evidence() {
    for (examples, dimension) in [(12, 7), (4, 15)] {
        let problem = Problem::new(examples, dimension);
        let mut model =
            GaussianModel::new(problem.phi.as_ref(), &problem.targets, None, &problem.noise).unwrap();
        for start in [
            Prior::scalar(dimension, 1e-3).unwrap(),
            Prior::scalar(dimension, 1e3).unwrap(),
            problem.prior.with_precisions(&[1e-3, 1e2]).unwrap(),
        ] {
            for m_step in [MStep::MaximiseBound, MStep::DecoupledElbo] {
                let learned = run(&mut model, &start, m_step, 60, 0.0);
                // All steps, unless nothing moves any more to the last bit.
                assert!(learned.trace.len() == 61 || learned.converged);
                let end = learned.trace.len() - 1;
                let values: Vec<f64> = learned.trace.iter().map(|s| s.evidence).collect();
                for pair in values.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-10, "{m_step:?}: {values:?}");
                }
                assert!(values[end] > values[0] + 0.1);
                // The evidence of the trace is that of the exact posterior.
                let last = learned.prior.precision_of_each(0..dimension);
                let exact = ExactPosterior::new(
                    problem.phi.as_ref(),
                    &problem.targets,
                    &problem.noise,
                    &last,
                    ExactOptions::default(),
                )
                .unwrap();
                assert_near(values[end], exact.log_evidence().unwrap(), 1e-9);
                check::assert_close(&learned.weights, exact.mean(), 1e-9, 1e-10);
                let gamma = exact.group_dimensions(&learned.prior).unwrap();
                check::assert_close(&learned.trace[end].effective_dimensions, &gamma, 1e-9, 1e-10);
            }
        }
    }
}

#[test]
fn every_update_rests_where_the_evidence_is_stationary() {
    let problem = Problem::new(12, 7);
    let evidence = |t: &[f64]| {
        let prior = problem.prior.with_precisions(&[t[0].exp(), t[1].exp()]).unwrap();
        let a = prior.precision_of_each(0..7);
        let options = ExactOptions::default();
        ExactPosterior::new(problem.phi.as_ref(), &problem.targets, &problem.noise, &a, options)
            .unwrap()
            .log_evidence()
            .unwrap()
    };
    let mut model = GaussianModel::new(problem.phi.as_ref(), &problem.targets, None, &problem.noise).unwrap();
    for m_step in [MStep::MacKay, MStep::MaximiseBound, MStep::DecoupledElbo, MStep::Gradient { rate: 0.5 }] {
        let learned = run(&mut model, &problem.prior, m_step, 5_000, 1e-11);
        assert!(learned.converged, "{m_step:?}");
        let last = learned.trace.last().unwrap();
        for l in 0..2 {
            // MacKay's fixed point: a |w|² = gamma.
            assert_near(last.precisions[l] * last.squared_norms[l], last.effective_dimensions[l], 1e-7);
        }
        let logs: Vec<f64> = last.precisions.iter().map(|a| a.ln()).collect();
        check::assert_close(&check::gradient(evidence, &logs), &[0.0; 2], 0.0, 1e-7);
    }
}

#[test]
fn the_updates_take_the_published_numbers_of_steps() {
    // Spec `linearised_laplace`, section 5.1: about 2 / 5 / 100 steps published, 3 / 4 / 144-164 on synthetic data with d = 2700 and an
    // effective dimension near 100, to one per cent. Here: 200 rows with curvatures from 1e3 to 1e-3, d = 2700, from a tenth of the true precision.
    let (examples, dimension) = (200, 2700);
    let phi = {
        let raw = normal(examples, dimension, "phi");
        let scale = |i: usize| 10f64.powf(1.5 - 3.0 * i as f64 / examples as f64) / (dimension as f64).sqrt();
        Mat::from_fn(examples, dimension, |i, j| raw[(i, j)] * scale(i))
    };
    let w = normals(dimension, "w");
    let clean = &phi * column(&w);
    let targets: Vec<f64> =
        normals(examples, "noise").iter().enumerate().map(|(i, e)| clean[(i, 0)] + e).collect();
    let noise = Noise::uniform(1.0, 1).unwrap();
    let mut model = GaussianModel::new(phi.as_ref(), &targets, None, &noise).unwrap();
    let start = Prior::scalar(dimension, 0.1).unwrap();
    let best = run(&mut model, &start, MStep::MacKay, 1_000, 1e-12).prior.precisions()[0];
    let gamma = model.curvature().terms(&Prior::scalar(dimension, best).unwrap(), 1.0).unwrap();
    assert!((gamma.effective_dimensions[0] - 100.0).abs() < 15.0, "{gamma:?}");
    let steps = [MStep::MacKay, MStep::MaximiseBound, MStep::DecoupledElbo].map(|m_step| {
        let learned = run(&mut model, &start, m_step, 1_000, 1e-6);
        assert!(learned.converged);
        learned.trace.iter().position(|s| (s.precisions[0] / best - 1.0).abs() < 0.01).unwrap()
    });
    assert!(steps[0] <= steps[1] && steps[0] <= 4 && steps[1] <= 6, "{steps:?}");
    // Classical updates need of the order of d / gamma times a logarithm, 27 x 5.
    assert!((70..=270).contains(&steps[2]), "{steps:?}");
}

#[test]
fn the_learned_noise_maximises_the_evidence_with_the_prior() {
    let (examples, dimension) = (30, 4);
    let phi = normal(examples, dimension, "phi");
    let clean = &phi * column(&normals(dimension, "w"));
    let targets: Vec<f64> =
        normals(examples, "noise").iter().enumerate().map(|(i, e)| clean[(i, 0)] + 0.3 * e).collect();
    let unit = Noise::uniform(1.0, 1).unwrap();
    let evidence = |t: &[f64]| {
        let noise = Noise::uniform(t[1].exp(), 1).unwrap();
        ExactPosterior::new(phi.as_ref(), &targets, &noise, &[t[0].exp(); 4], ExactOptions::default())
            .unwrap()
            .log_evidence()
            .unwrap()
    };
    // The factor is relative: any base precision leads to the same noise.
    for base in [1.0, 7.0] {
        let noise = Noise::uniform(base, 1).unwrap();
        let mut model = GaussianModel::new(phi.as_ref(), &targets, None, &noise).unwrap().learning_noise();
        let learned = run(&mut model, &Prior::scalar(4, 1.0).unwrap(), MStep::MacKay, 200, 1e-11);
        assert!(learned.converged);
        let precision = base * learned.noise_factor;
        let logs = [learned.prior.precisions()[0].ln(), precision.ln()];
        check::assert_close(&check::gradient(evidence, &logs), &[0.0; 2], 0.0, 1e-6);
        let last = learned.trace.last().unwrap();
        assert_near(last.evidence, evidence(&logs), 1e-9);
        let residual = column(&targets) - &phi * column(&learned.weights);
        let variance = residual.squared_norm_l2() / (30.0 - last.effective_dimensions[0]);
        assert_near(1.0 / precision, variance, 1e-8);
        // True variance 0.09; a variance estimated from 26 free numbers has a relative deviation of sqrt(2/26) = 0.28.
        assert!((variance / 0.09 - 1.0).abs() < 3.5 * 0.28, "{variance}");
    }
    let mut fixed = GaussianModel::new(phi.as_ref(), &targets, None, &unit).unwrap();
    assert_eq!(run(&mut fixed, &Prior::scalar(4, 1.0).unwrap(), MStep::MacKay, 9, 0.0).noise_factor, 1.0);
}

#[test]
fn spectrum_and_factor_agree() {
    // The same precision in one group (eigendecomposition) and in two (Cholesky), in both forms and at two strengths.
    for (examples, dimension) in [(12, 7), (4, 15)] {
        let problem = Problem::new(examples, dimension);
        let curvature = RootCurvature::new(problem.phi.as_ref(), &problem.noise).unwrap();
        let (one, two) =
            (Prior::scalar(dimension, 0.6).unwrap(), problem.prior.with_precisions(&[0.6, 0.6]).unwrap());
        let right = normals(dimension, "right");
        for strength in [1.0, 3.5] {
            let (a, b) = (curvature.terms(&one, strength).unwrap(), curvature.terms(&two, strength).unwrap());
            assert_near(a.log_determinant, b.log_determinant, 1e-10);
            assert_near(a.effective_dimensions[0], b.effective_dimensions.iter().sum(), 1e-10);
            let mut h = problem.m() * faer::Scale(strength);
            (0..dimension).for_each(|i| h[(i, i)] += 0.6);
            let expected = crate::dense::to_vec(&(inverse(&h) * column(&right)));
            check::assert_close(&curvature.solve(&one, strength, &right).unwrap(), &expected, 1e-9, 1e-10);
            check::assert_close(&curvature.solve(&two, strength, &right).unwrap(), &expected, 1e-9, 1e-10);
        }
        assert!(curvature.terms(&Prior::scalar(3, 1.0).unwrap(), 1.0).is_err());
        assert!(curvature.terms(&one, 0.0).is_err() && curvature.solve(&one, 1.0, &[1.0]).is_err());
    }
}

#[test]
fn an_offset_is_taken_from_the_targets() {
    let problem = Problem::new(5, 3);
    let offset = normals(10, "offset");
    let shifted: Vec<f64> = problem.targets.iter().zip(&offset).map(|(y, f)| y - f).collect();
    let new = |y: &[f64], f0: Option<&[f64]>| {
        GaussianModel::new(problem.phi.as_ref(), y, f0, &problem.noise).unwrap()
    };
    let mut with = new(&problem.targets, Some(&offset));
    let (mut without, mut plain) = (new(&shifted, None), new(&problem.targets, None));
    let start = [0.0; 3];
    let affine = with.mode(&problem.prior, &start, Predictor::Affine).unwrap();
    assert_eq!(affine, without.mode(&problem.prior, &start, Predictor::Affine).unwrap());
    let linear = with.mode(&problem.prior, &start, Predictor::Linear).unwrap();
    assert_eq!(linear, plain.mode(&problem.prior, &start, Predictor::Affine).unwrap());
    assert_ne!(affine, linear);
    assert_near(
        with.log_likelihood(&affine, Predictor::Affine).unwrap(),
        without.log_likelihood(&affine, Predictor::Linear).unwrap(),
        1e-12,
    );
}
