//! The same posterior from the other side of the duality: exact Gaussian processes.

use super::{assert_near, column, covariance, normal, structures, to_vec};
use crate::Prior;
use crate::evidence::{DataFit, LaplaceEvidence};
use faer::{Mat, Scale};
use posterior_gp::exact::{ExactGp, log_evidence};
use posterior_gp::{MeanForm, Observations, Posterior};
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_kernels::{Columns, Kernel, KernelExpression, Linear};
use posterior_likelihoods::Gaussian;
use posterior_linalg::random::Streams;
use posterior_optim::check::assert_close;

const NOISE: f64 = 0.2;

fn process(kernel: Box<dyn Kernel<f64>>, inputs: usize) -> ExactGp {
    ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(NOISE, 1e-9), inputs, 1)
}

#[test]
fn a_linear_model_is_a_process_with_the_linear_kernel() {
    let (x, y, test) = (normal(20, 3, "x"), normal(20, 1, "y"), normal(7, 3, "test"));
    let model = process(Box::new(Linear::new("linear", Columns::all(3), false, 1.0)), 3);
    let data = Observations::new(x.clone(), y.clone(), None).unwrap();
    let evidence = log_evidence(&model, &data, None).unwrap().value;
    let posterior = model.condition(data).unwrap();
    let (expected, joint) =
        (posterior.predict(test.as_ref()).unwrap(), posterior.joint(test.as_ref()).unwrap());
    let prior = Prior::scalar(3, 1.0).unwrap();
    for structure in structures(&x) {
        let linear = structure.condition(&prior, 1.0 / NOISE).unwrap();
        let weights = linear.solve(&to_vec(&(x.transpose() * &y * Scale(1.0 / NOISE))));
        let residual_sum = (&y - &x * column(&weights)).squared_norm_l2();
        let fit = DataFit::Gaussian { residual_sum, values: 20, log_relative_precision: 0.0 };
        let value = LaplaceEvidence::new(&structure, prior.clone(), &weights, fit).unwrap().at(&[1.0], NOISE);
        assert_near(value.unwrap().log_evidence, evidence, 1e-9);
        assert_close(&to_vec(&(&test * column(&weights))), &to_vec(&expected.mean), 1e-10, 1e-11);
        let found = covariance(&linear, &test);
        (0..7).for_each(|i| assert_near(found[(i, i)], expected.latent_variance[i], 1e-9));
        assert!((found - &joint.covariance).norm_max() < 1e-11);
    }
}

/// A kernel of unit variance on two inputs, with this lengthscale.
fn kernel(text: &str, lengthscale: f64) -> Box<dyn Kernel<f64>> {
    let expression = text.parse::<KernelExpression>().unwrap();
    let mut kernel = expression.build(&["x0".to_string(), "x1".to_string()]).unwrap();
    let segments = kernel.segments();
    assert!(segments.iter().all(|s| s.shape.iter().product::<usize>() == 1), "{segments:?}");
    let value = |name: &str| if name.ends_with("lengthscale") { lengthscale } else { 1.0 };
    let values: Vec<f64> = segments.iter().map(|s| value(&s.name)).collect();
    assert!(values.contains(&lengthscale), "{segments:?}");
    kernel.set_values(&values);
    kernel
}

/// Mean squared distances of the predictive means and variances of a linear model over random features from the process's, over seeds.
fn distances(count: usize, seeds: u64) -> (f64, f64) {
    let (x, y, test) = (normal(25, 2, "x"), normal(25, 1, "y"), normal(15, 2, "test"));
    let model = process(kernel("matern32", 0.9), 2);
    let posterior = model.condition(Observations::new(x.clone(), y.clone(), None).unwrap()).unwrap();
    let expected = posterior.predict(test.as_ref()).unwrap();
    let (mut means, mut variances) = (0.0, 0.0);
    for seed in 0..seeds {
        let streams = Streams::new(100 + seed);
        let settings = FeatureSettings { count, ..FeatureSettings::default() };
        let map = RandomFeatures::new(&*kernel("matern32", 0.9), 2, settings, streams).unwrap();
        let features = |x: &Mat<f64>| map.evaluate(x.as_ref());
        let (phi, test) = (features(&x), features(&test));
        let [_, low_rank] = structures(&phi);
        let linear = low_rank.condition(&Prior::scalar(map.count(), 1.0).unwrap(), 1.0 / NOISE).unwrap();
        let weights = linear.solve(&to_vec(&(phi.transpose() * &y * Scale(1.0 / NOISE))));
        let (mean, found) = (&test * column(&weights), covariance(&linear, &test));
        let share = (seeds as f64 * 15.0).recip();
        for i in 0..15 {
            means += share * (mean[(i, 0)] - expected.mean[(i, 0)]).powi(2);
            variances += share * (found[(i, i)] - expected.latent_variance[i]).powi(2);
        }
    }
    (means, variances)
}

#[test]
fn random_features_approach_the_process_at_the_rate_of_monte_carlo() {
    // Errors are linear in those of the kernel matrix once these are small beside the noise, so sixteen times the features divide the mean
    // square by 16. Averages over 24 seeds, taking a seed's 15 correlated points for one square of a normal, have a relative deviation of
    // sqrt(2/24) = 0.29; the logarithm of their ratio has one of 0.41, three of which are a factor of 3.4.
    let (few, many) = (distances(200, 24), distances(3200, 24));
    for (name, ratio) in [("means", few.0 / many.0), ("variances", few.1 / many.1)] {
        assert!(ratio > 16.0 / 3.4 && ratio < 16.0 * 3.4, "{name}: {ratio}");
    }
}
