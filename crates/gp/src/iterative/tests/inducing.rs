//! Inducing-point descent against the collapsed posterior's formulas (spec, sections 11.1 and 17).

use super::*;
use crate::{Mean, MeanForm, Observations, Posterior};
use posterior_kernels::features::FeatureSettings;
use posterior_kernels::{Kernel, KernelExpression, cross, gram};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Progress, Signal};

fn kernel() -> Box<dyn Kernel<f64>> {
    "matern32".parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

#[test]
fn full_batches_meet_the_collapsed_mean_and_noise_placement_does_not_matter() {
    let (n, m) = (60, 8);
    let kernel = kernel();
    let (x, z) = (normal(n, 2, "x"), normal(m, 2, "z"));
    let noise: Vec<f64> = (0..n).map(|i| 0.2 + 0.005 * i as f64).collect();
    let (function, errors) = (normal(n, 2, "f"), normal(n, 2, "e"));
    let targets = StoredTargets::new(function.as_ref(), Some(errors.as_ref())).unwrap();
    // Λ⁻¹ K_ZX B y with Λ = K_ZZ + K_ZX B K_XZ.
    let k = cross(&*kernel, x.as_ref(), z.as_ref());
    let weighted = Mat::from_fn(n, m, |i, j| k[(i, j)] / noise[i]);
    let lambda = gram(&*kernel, z.as_ref()) + weighted.transpose() * &k;
    let expected = Cholesky::of(lambda.as_ref(), JitterPolicy::NONE)
        .unwrap()
        .solve((weighted.transpose() * (&function + &errors)).as_ref());
    let problem = InducingProblem::new(&*kernel, x.as_ref(), z.as_ref(), &noise, &targets, None).unwrap();
    for placement in [NoisePlacement::Targets, NoisePlacement::Regulariser] {
        let options = InducingDescentOptions {
            batch: n,
            regulariser: InducingRegulariser::Exact,
            noise: placement,
            ..InducingDescentOptions::default()
        };
        let found =
            solve_inducing(&options, &problem, Start::Zero, &Budget::steps(30_000), &mut watch).unwrap();
        assert_eq!(found.progress.restarts, 0);
        let error = (&k * (&found.weights - &expected)).norm_max();
        assert!(error < 1e-7, "{placement:?}: {error}");
        // Interrupted and resumed: the same numbers.
        let budget = Budget::steps(30);
        let whole = solve_inducing(&options, &problem, Start::Zero, &budget, &mut watch).unwrap();
        let mut state = None;
        let mut stop = |progress: &Progress, iterate: &dyn Iterate<f64>| {
            state = Some(iterate.state(progress));
            if progress.step == 11 { Signal::Stop } else { Signal::Continue }
        };
        solve_inducing(&options, &problem, Start::Zero, &budget, &mut stop).unwrap();
        let resumed = Start::Resume(state.unwrap());
        let resumed = solve_inducing(&options, &problem, resumed, &budget, &mut watch).unwrap();
        assert_eq!(resumed.weights, whole.weights);
    }
    let features = InducingDescentOptions::default();
    assert!(solve_inducing(&features, &problem, Start::Zero, &Budget::steps(3), &mut watch).is_err());
}

#[test]
fn the_pathwise_form_comes_near_the_collapsed_posterior_and_generated_targets_are_the_stored_ones() {
    let n = 200;
    let x = normal(n, 2, "x");
    let y = Mat::from_fn(n, 1, |i, _| (x[(i, 0)] * 1.5).sin() + 0.3 * x[(i, 1)]);
    let data = Observations::new(x.clone(), y, None).unwrap();
    let model = || PathwiseModel {
        kernel: kernel(),
        mean: Mean::new(MeanForm::Zero, 2, 1),
        noise: Gaussian::new(0.2, 0.0),
    };
    let z = Mat::from_fn(40, 2, |i, d| x[(5 * i, d)]);
    let condition = |cache_bytes, steps, count| {
        let settings = PathwiseSettings {
            budget: Budget::steps(steps),
            samples: 300,
            features: FeatureSettings { count, ..FeatureSettings::default() },
            samples_per_features: None,
            seed: 5,
            cache_bytes,
        };
        let options = InducingDescentOptions { batch: 50, ..InducingDescentOptions::default() };
        let support = Support::Inducing(z.clone(), options);
        model().condition(data.clone(), support, settings, Start::Zero, &mut watch).unwrap()
    };
    let test = normal(10, 2, "test");
    let (stored, generated) = (condition(1 << 24, 20, 500), condition(0, 20, 500));
    let difference = stored.samples(test.as_ref(), 0).unwrap() - generated.samples(test.as_ref(), 0).unwrap();
    assert!(difference.norm_max() < 1e-10);
    assert!(stored.exact_variance(test.as_ref(), &Budget::steps(3)).is_err());
    // Against the collapsed posterior by its formulas.
    let k = cross(&*kernel(), x.as_ref(), z.as_ref());
    let k_zz = gram(&*kernel(), z.as_ref());
    let lambda = &k_zz + k.transpose() * &k * faer::Scale(5.0);
    let factored = Cholesky::of(lambda.as_ref(), JitterPolicy::NONE).unwrap();
    let k_test = cross(&*kernel(), test.as_ref(), z.as_ref());
    let mean = &k_test * factored.solve((k.transpose() * data.targets() * faer::Scale(5.0)).as_ref());
    let prediction = condition(1 << 24, 4000, 20_000).predict(test.as_ref()).unwrap();
    for i in 0..10 {
        assert!((prediction.mean[(i, 0)] - mean[(i, 0)]).abs() < 0.05, "{i}");
        let column = Mat::from_fn(40, 1, |j, _| k_test[(i, j)]);
        let prior = Cholesky::of(k_zz.as_ref(), JitterPolicy::default()).unwrap().solve(column.as_ref());
        let difference = prior - factored.solve(column.as_ref());
        let variance = 1.0 - (column.transpose() * difference)[(0, 0)];
        let found = prediction.latent_variance[i];
        // 4.5 standard errors of 300 samples are 37 per cent, those of 20,000 features 0.032 of the prior variance; true prior functions
        // instead of their projections can only make the variance larger.
        assert!(found > 0.63 * variance - 0.032, "{i}: {found} {variance}");
        assert!(found < 1.37 * variance + 0.132, "{i}: {found} {variance}");
    }
}
