//! Exact posteriors against dense brute force, in both forms.

use super::{Problem, assert_matrix, assert_near, inverse, normal, normals};
use crate::LinearError;
use crate::exact::{ExactOptions, ExactPosterior, Form};
use crate::noise::Noise;
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::check::assert_close;

const FORMS: [Form; 2] = [Form::Primal, Form::Dual];
/// More rows than weights, fewer, and equal.
const SIZES: [(usize, usize); 3] = [(12, 7), (4, 15), (4, 8)];

fn solve(problem: &Problem, form: Form) -> ExactPosterior {
    let options = ExactOptions { form: Some(form), ..Default::default() };
    ExactPosterior::new(
        problem.phi.as_ref(),
        &problem.targets,
        &problem.noise,
        &problem.precisions(),
        options,
    )
    .unwrap()
}

#[test]
fn mean_and_covariance_are_those_of_the_normal_equations() {
    for (examples, dimension) in SIZES {
        let problem = Problem::new(examples, dimension);
        let covariance = problem.covariance();
        let right = problem.phi.transpose() * problem.b() * crate::dense::column(&problem.targets);
        let mean = crate::dense::to_vec(&(&covariance * right));
        let test = normal(6, dimension, "test");
        let joint = &test * &covariance * test.transpose();
        for form in FORMS {
            let posterior = solve(&problem, form);
            assert_eq!(posterior.form(), form);
            assert_close(posterior.mean(), &mean, 1e-10, 1e-11);
            let predicted = posterior.joint(test.as_ref()).unwrap();
            assert_matrix(predicted.covariance.as_ref(), joint.as_ref(), 1e-11);
            let expected_mean = crate::dense::to_vec(&(&test * crate::dense::column(&mean)));
            assert_close(&predicted.mean, &expected_mean, 1e-10, 1e-11);
            let marginal = posterior.predict(test.as_ref()).unwrap();
            assert_eq!((marginal.mean.as_slice(), marginal.clipped), (predicted.mean.as_slice(), 0));
            for (k, value) in marginal.covariance.iter().enumerate() {
                let (example, i, j) = (k / 4, k % 4 / 2, k % 2);
                assert_near(*value, joint[(2 * example + i, 2 * example + j)], 1e-11);
            }
            let variances: Vec<f64> = (0..dimension).map(|i| covariance[(i, i)]).collect();
            assert_close(&posterior.weight_variances(), &variances, 1e-10, 1e-12);
            let block = normal(dimension, 3, "block");
            assert_matrix(
                posterior.solve(block.as_ref()).unwrap().as_ref(),
                (&covariance * &block).as_ref(),
                1e-11,
            );
        }
    }
}

#[test]
fn the_smaller_form_is_chosen() {
    for (examples, dimension, form) in [(12, 7, Form::Primal), (4, 15, Form::Dual), (4, 8, Form::Primal)] {
        let problem = Problem::new(examples, dimension);
        let posterior = ExactPosterior::new(
            problem.phi.as_ref(),
            &problem.targets,
            &problem.noise,
            &problem.precisions(),
            ExactOptions::default(),
        );
        assert_eq!(posterior.unwrap().form(), form);
    }
}

#[test]
fn three_forms_of_the_effective_dimension_agree() {
    for (examples, dimension) in SIZES {
        let problem = Problem::new(examples, dimension);
        let (covariance, a) = (problem.covariance(), problem.precisions());
        let trace = |m: Mat<f64>| (0..m.nrows()).map(|i| m[(i, i)]).sum::<f64>();
        let direct = trace(&covariance * problem.m());
        let complement = dimension as f64 - (0..dimension).map(|i| a[i] * covariance[(i, i)]).sum::<f64>();
        let prior = Mat::from_fn(dimension, dimension, |i, j| if i == j { 1.0 / a[i] } else { 0.0 });
        let k = &problem.phi * prior * problem.phi.transpose();
        let dual = trace(&k * inverse(&(&k + inverse(&problem.b()))));
        assert_near(complement, direct, 1e-10);
        assert_near(dual, direct, 1e-9);
        for form in FORMS {
            let posterior = solve(&problem, form);
            assert_near(posterior.effective_dimension(), direct, 1e-10);
            let each = posterior.parameter_dimensions();
            assert_near(each.iter().sum(), direct, 1e-10);
            (0..dimension).for_each(|i| assert_near(each[i], 1.0 - a[i] * covariance[(i, i)], 1e-11));
            let groups = posterior.group_dimensions(&problem.prior).unwrap();
            assert_near(groups[0], each[..dimension / 2].iter().sum(), 1e-12);
            assert_near(groups[1], each[dimension / 2..].iter().sum(), 1e-12);
        }
    }
}

#[test]
fn the_evidence_is_the_density_of_the_targets() {
    for (examples, dimension) in SIZES {
        let problem = Problem::new(examples, dimension);
        let a = problem.precisions();
        let prior = Mat::from_fn(dimension, dimension, |i, j| if i == j { 1.0 / a[i] } else { 0.0 });
        let total = &problem.phi * prior * problem.phi.transpose() + inverse(&problem.b());
        let y = crate::dense::column(&problem.targets);
        let quadratic = (y.transpose() * inverse(&total) * y)[(0, 0)];
        let count = 2.0 * examples as f64;
        let expected = -0.5 * (quadratic + total.determinant().ln() + count * std::f64::consts::TAU.ln());
        for form in FORMS {
            let posterior = solve(&problem, form);
            assert_near(posterior.log_evidence().unwrap(), expected, 1e-9);
            // The Laplace form is exact at the mean of a Gaussian model.
            let residual = y - &problem.phi * crate::dense::column(posterior.mean());
            let squares = (residual.transpose() * problem.b() * &residual)[(0, 0)];
            let log_likelihood =
                0.5 * (problem.b().determinant().ln() - count * std::f64::consts::TAU.ln() - squares);
            let laplace = posterior.laplace_evidence(posterior.mean(), log_likelihood).unwrap();
            assert_near(laplace, expected, 1e-9);
            let elsewhere = normals(dimension, "elsewhere");
            let norm: f64 = (0..dimension).map(|i| a[i] * elsewhere[i] * elsewhere[i]).sum();
            let log_det = (problem.covariance().determinant() * a.iter().product::<f64>()).ln();
            let expected = -3.0 - 0.5 * norm + 0.5 * log_det;
            assert_near(posterior.laplace_evidence(&elsewhere, -3.0).unwrap(), expected, 1e-9);
        }
    }
}

#[test]
fn pathwise_samples_are_the_same_in_both_forms_and_have_the_posterior_covariance() {
    for (examples, dimension) in SIZES {
        let problem = Problem::new(examples, dimension);
        let rows = 2 * examples;
        // Unit noise vectors, one per column, reveal the linear map from noise to samples: its square is the covariance, without any sampling error.
        let prior_noise = Mat::from_fn(dimension, dimension + rows, |i, j| if i == j { 1.0 } else { 0.0 });
        let data_noise =
            Mat::from_fn(rows, dimension + rows, |i, j| if i + dimension == j { 1.0 } else { 0.0 });
        let maps = FORMS.map(|form| {
            let posterior = solve(&problem, form);
            posterior
                .pathwise(problem.phi.as_ref(), &problem.noise, prior_noise.as_ref(), data_noise.as_ref())
                .unwrap()
        });
        assert_matrix(maps[0].as_ref(), maps[1].as_ref(), 1e-11);
        assert_matrix((&maps[1] * maps[1].transpose()).as_ref(), problem.covariance().as_ref(), 1e-11);
    }
}

#[test]
fn random_samples_have_the_posterior_moments() {
    for (examples, dimension) in [(6, 4), (1, 5)] {
        let problem = Problem::new(examples, dimension);
        let covariance = problem.covariance();
        let count = 40_000;
        for form in FORMS {
            let posterior = solve(&problem, form);
            let mut draws = posterior.samples(count, &mut Streams::new(3).stream("samples")).unwrap();
            for i in 0..dimension {
                let mean = draws.row(i).iter().sum::<f64>() / count as f64;
                let error = (covariance[(i, i)] / count as f64).sqrt();
                assert_near(mean, posterior.mean()[i], 5.0 * error);
                draws.as_mut().row_mut(i).iter_mut().for_each(|v| *v -= posterior.mean()[i]);
            }
            for (i, j) in (0..dimension).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                let sample = (draws.row(i) * draws.row(j).transpose()) / count as f64;
                // The variance of a product of two normals of zero mean.
                let variance = covariance[(i, i)] * covariance[(j, j)] + covariance[(i, j)].powi(2);
                assert_near(sample, covariance[(i, j)], 5.0 * (variance / count as f64).sqrt());
            }
        }
    }
}

#[test]
fn a_singular_noise_precision_has_a_posterior_but_no_exact_evidence() {
    let (phi, noise) = super::reference();
    let y = [1.0, -1.0, 0.5, 0.2];
    let posteriors = FORMS.map(|form| {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        ExactPosterior::new(phi.as_ref(), &y, &noise, &[0.5; 3], options).unwrap()
    });
    assert_close(posteriors[0].mean(), posteriors[1].mean(), 1e-12, 1e-13);
    for posterior in posteriors {
        assert!(matches!(posterior.log_evidence(), Err(LinearError::SingularNoise { example: 0, .. })));
    }
}

#[test]
fn no_data_leave_the_prior() {
    let noise = Noise::uniform(2.0, 1).unwrap();
    let phi = Mat::<f64>::zeros(0, 3);
    for form in FORMS {
        let options = ExactOptions { form: Some(form), ..Default::default() };
        let posterior = ExactPosterior::new(phi.as_ref(), &[], &noise, &[1.0, 2.0, 4.0], options).unwrap();
        assert_eq!(posterior.mean(), [0.0; 3]);
        assert_close(&posterior.weight_variances(), &[1.0, 0.5, 0.25], 1e-15, 0.0);
        assert_eq!(posterior.effective_dimension(), 0.0);
        assert_eq!(posterior.log_evidence().unwrap(), 0.0);
        let draws = posterior.deviations(2, &mut Streams::new(0).stream("x")).unwrap();
        assert_eq!((draws.nrows(), draws.ncols()), (3, 2));
    }
}
