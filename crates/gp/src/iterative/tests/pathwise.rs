//! Pathwise posteriors against exact ones (spec, tests 4, 10 and 12).

use super::*;
use crate::exact::ExactGp;
use crate::{GpError, Mean, MeanForm, Observations, Posterior};
use posterior_kernels::features::{FeatureSettings, FrequencyDraw, PriorDrawGroups};
use posterior_kernels::{Kernel, KernelExpression, cross, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::solve::{PreconditionerChoice, System};
use posterior_optim::{Parameters, check};

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

/// A prior with a linear mean that is not zero.
fn model(text: &str) -> PathwiseModel<f64> {
    let mut mean = Mean::new(MeanForm::Linear, 2, 2);
    mean.set_values(&[0.3, -0.2, 0.5, 0.1, -0.4, 0.2]);
    PathwiseModel { kernel: kernel(text), mean, noise: Gaussian::new(0.1, 0.0) }
}

fn exact(text: &str, data: &Observations) -> crate::exact::ExactPosterior {
    let prior = model(text);
    let mut exact = ExactGp::new(prior.kernel, MeanForm::Linear, prior.noise, 2, 2);
    let values = [exact.kernel().values(), prior.mean.values(), vec![0.1]].concat();
    exact.set_values(&values);
    exact.condition(data.clone()).unwrap()
}

fn data(n: usize) -> Observations {
    let noise = (0..n).map(|i| 0.01 + 0.001 * i as f64).collect();
    Observations::new(normal(n, 2, "inputs"), normal(n, 2, "targets"), Some(noise)).unwrap()
}

fn conjugate() -> Method {
    Method::ConjugateGradients(ConjugateGradientOptions {
        preconditioner: PreconditionerChoice::None,
        absolute_tolerance: 0.0,
    })
}

fn settings(samples: usize, count: usize) -> PathwiseSettings {
    PathwiseSettings {
        budget: Budget { tolerance: 1e-12, ..Budget::steps(500) },
        samples,
        features: FeatureSettings { count, ..FeatureSettings::default() },
        samples_per_features: None,
        seed: 3,
        cache_bytes: 1 << 20,
    }
}

#[test]
fn samples_have_the_moments_of_the_exact_posterior() {
    // Features of a linear kernel are exact, so prior draws have the right law and only Monte-Carlo error remains.
    let (text, s) = ("linear", 6000);
    let data = data(25);
    let found = model(text)
        .condition(data.clone(), Support::Rows(conjugate()), settings(s, 10), Start::Zero, &mut watch)
        .unwrap();
    let exact = exact(text, &data);
    let x = normal(6, 2, "test");
    let (expected, joint) = (exact.predict(x.as_ref()).unwrap(), exact.joint(x.as_ref()).unwrap());
    let prediction = found.predict(x.as_ref()).unwrap();
    assert!((&prediction.mean - &expected.mean).norm_max() < 1e-9);
    assert!((found.mean(x.as_ref()).unwrap() - &expected.mean).norm_max() < 1e-9);
    let covariance = found.joint(x.as_ref()).unwrap().covariance;
    for i in 0..6 {
        // A mean of s squares of normals of variance v has variance 2v²/s.
        let v = expected.latent_variance[i];
        let tolerance = 4.5 * v * (2.0 / s as f64).sqrt();
        assert!((prediction.latent_variance[i] - v).abs() < tolerance);
        for j in 0..6 {
            let c = joint.covariance[(i, j)];
            let error = ((c * c + v * expected.latent_variance[j]) / s as f64).sqrt();
            assert!((covariance[(i, j)] - c).abs() < 4.5 * error, "{i} {j}");
        }
    }
    let exact_variance = found.exact_variance(x.as_ref(), &Budget { tolerance: 1e-10, ..Budget::steps(200) });
    let exact_variance = exact_variance.unwrap();
    check::assert_close(&exact_variance.latent_variance, &expected.latent_variance, 1e-7, 1e-9);
    assert!(exact_variance.residual <= 1e-10 && exact_variance.clipped == 0, "{exact_variance:?}");
    assert!(exact_variance.iterations > 0);
    // Nothing solved, nothing explained.
    let none = found.exact_variance(x.as_ref(), &Budget { tolerance: 1e-10, ..Budget::steps(0) }).unwrap();
    let prior = posterior_kernels::diagonal(found.kernel(), x.as_ref());
    assert_eq!((none.residual, none.iterations, none.latent_variance), (1.0, 0, prior));
}

#[test]
fn random_features_come_close_for_other_kernels() {
    let text = "matern32";
    let data = data(40);
    let found = model(text)
        .condition(data.clone(), Support::Rows(conjugate()), settings(2000, 4000), Start::Zero, &mut watch)
        .unwrap();
    let exact = exact(text, &data).predict(normal(20, 2, "test").as_ref()).unwrap();
    let prediction = found.predict(normal(20, 2, "test").as_ref()).unwrap();
    for (found, exact) in prediction.latent_variance.iter().zip(&exact.latent_variance) {
        // 4.5 standard errors of 2,000 samples are 14 per cent; 4,000 features leave up to 1/√4000 = 1.6 per cent of the prior variance.
        assert!((found - exact).abs() < 0.142 * exact + 4.5 * 0.016, "{found} {exact}");
    }
}

#[test]
fn features_of_their_own_for_groups_of_samples_average_the_error_of_features_out() {
    let text = "matern32";
    let data = data(40);
    let x = normal(30, 2, "test");
    let exact = exact(text, &data).predict(x.as_ref()).unwrap().latent_variance;
    let found = |samples_per_features| {
        let settings = PathwiseSettings { samples_per_features, ..settings(800, 60) };
        model(text)
            .condition(data.clone(), Support::Rows(conjugate()), settings, Start::Zero, &mut watch)
            .unwrap()
    };
    let error = |variances: &[f64]| {
        let squares: f64 = variances.iter().zip(&exact).map(|(v, e)| (v / e - 1.0).powi(2)).sum();
        (squares / exact.len() as f64).sqrt()
    };
    let (shared, none) = found(None).variance_and_error(x.as_ref()).unwrap();
    let (grouped, stated) = found(Some(8)).variance_and_error(x.as_ref()).unwrap();
    // Sixty features for 800 samples: what they share is many times the error of 800 samples, √(2/800) = 0.05.
    assert!(none.is_none() && error(&shared) > 0.15, "{}", error(&shared));
    assert!(error(&grouped) < 0.5 * error(&shared), "{} {}", error(&grouped), error(&shared));
    // The stated error has that of samples and of features, and is of the size of what is found: a root mean square of 30 correlated errors lies within
    // a factor of two and a half of its expectation.
    let stated = stated.unwrap();
    assert!(stated > 0.05, "{stated}");
    let ratio = error(&grouped) / stated;
    assert!((0.4..2.5).contains(&ratio), "found {}, stated {stated}", error(&grouped));
    // Predictions use the same variances.
    let predicted = found(Some(8)).predict(x.as_ref()).unwrap().latent_variance;
    check::assert_close(&predicted, &grouped, 1e-10, 1e-12);
}

/// A smooth function and a noise of a part in 10⁸ of its variance: what data leave open near them are waves of which sixteen thousand independent ones hold hardly any. Variances by solves are exact there, too.
#[test]
fn little_noise_is_seen_through_wider_laws() {
    let data = Observations::new(normal(200, 2, "inputs"), normal(200, 1, "targets"), None).unwrap();
    // With what independent frequencies have of the variance at most.
    for (text, most) in [
        ("matern32(variance=10000, lengthscale=30)", 0.7),
        ("rq(variance=10000, lengthscale=10, alpha=0.1)", 0.9),
        ("matern32(a, variance=10000, lengthscale=30) * matern52(b, lengthscale=30)", 0.7),
        ("additive(matern32, order=1, variance=10000, lengthscale=30)", 0.7),
    ] {
        little_noise(text, most, &data);
    }
}

fn little_noise(text: &str, most: f64, data: &Observations) {
    let prior = || {
        let mean = Mean::new(MeanForm::Zero, 2, 1);
        PathwiseModel { kernel: kernel(text), mean, noise: Gaussian::new(1e-4, 0.0) }
    };
    let model = prior();
    let exact =
        ExactGp::new(model.kernel, MeanForm::Zero, model.noise, 2, 1).condition(data.clone()).unwrap();
    let x = Mat::from_fn(20, 2, |i, d| 0.7 * normal(20, 2, "test")[(i, d)]);
    let expected = exact.predict(x.as_ref()).unwrap().latent_variance;
    let found = |frequencies| {
        let features = FeatureSettings { count: 500, frequencies, ..FeatureSettings::default() };
        let settings = PathwiseSettings { features, samples_per_features: Some(8), ..settings(512, 0) };
        prior()
            .condition(data.clone(), Support::Rows(Method::Direct), settings, Start::Zero, &mut watch)
            .unwrap()
    };
    let ratio = |frequencies| {
        let own = found(frequencies).predict(x.as_ref()).unwrap().latent_variance;
        own.iter().zip(&expected).map(|(a, b)| a / b).sum::<f64>() / 20.0
    };
    let (widened, independent) = (ratio(FrequencyDraw::Widened), ratio(FrequencyDraw::Independent));
    // 64 groups of features and 512 samples: their errors at 20 points that have much in common are some 15 per cent together.
    assert!((widened - 1.0).abs() < 0.3, "{text}: {widened}");
    assert!(independent < most, "{text}: {independent}");
    let budget = Budget { tolerance: 1e-4, ..Budget::steps(2000) };
    let solved = found(FrequencyDraw::Widened).exact_variance(x.as_ref(), &budget).unwrap();
    for (own, exact) in solved.latent_variance.iter().zip(&expected) {
        // Within two hundredths of a new observation's variance.
        assert!((own - exact).abs() < 0.02 * (exact + 1e-4), "{own} {exact}");
    }
    assert!(solved.excess <= 0.01 && solved.residual <= 1e-4, "{solved:?}");
    // Ended too early, it says so.
    let early =
        found(FrequencyDraw::Widened).exact_variance(x.as_ref(), &Budget { steps: 10, ..budget }).unwrap();
    assert!(early.excess > 0.05, "{early:?}");
}

#[test]
fn samples_are_functions_with_gradients() {
    let data = data(30);
    // Three samples in two groups.
    let settings = PathwiseSettings { samples_per_features: Some(2), ..settings(3, 50) };
    let found = model("matern52 + linear")
        .condition(data, Support::Rows(conjugate()), settings, Start::Zero, &mut watch)
        .unwrap();
    let x = normal(4, 2, "test");
    let which = [2, 0, 2, 1];
    let all = found.samples(x.as_ref(), 1).unwrap();
    let some = found.samples_of(x.as_ref(), 1, &which).unwrap();
    let picked: Vec<f64> = which.iter().enumerate().map(|(i, &w)| all[(i, w)]).collect();
    check::assert_close(&some, &picked, 1e-11, 1e-12);
    let gradients = found.sample_gradients(x.as_ref(), 1, &which).unwrap();
    for i in 0..4 {
        let value = |p: &[f64]| {
            let point = Mat::from_fn(1, 2, |_, d| p[d]);
            found.samples_of(point.as_ref(), 1, &which[i..=i]).unwrap()[0]
        };
        let numeric = check::gradient(value, &[x[(i, 0)], x[(i, 1)]]);
        check::assert_close(&[gradients[(i, 0)], gradients[(i, 1)]], &numeric, 1e-6, 1e-8);
    }
    let streams = Streams::new(1);
    let (drawn, jitter) = found.sample(x.as_ref(), 1, 3, &mut streams.stream("choose")).unwrap();
    assert_eq!((drawn.shape(), jitter), ((4, 3), 0.0));
    assert!(found.sample(x.as_ref(), 1, 4, &mut streams.stream("choose")).is_err());
    assert!(found.samples(x.as_ref(), 2).is_err());
    assert!(found.samples_of(x.as_ref(), 0, &[3, 0, 0, 0]).is_err());
}

#[test]
fn appended_data_give_what_all_data_give_in_fewer_steps_and_parts_give_the_same() {
    let (all, n) = (data(60), 55);
    let part = |range: std::ops::Range<usize>| {
        let rows = |m: faer::MatRef<'_, f64>| m.subrows(range.start, range.len()).to_owned();
        let noise = all.noise_variances().unwrap()[range.clone()].to_vec();
        Observations::new(rows(all.inputs()), rows(all.targets()), Some(noise)).unwrap()
    };
    let condition = |data| {
        model("matern32")
            .condition(data, Support::Rows(conjugate()), settings(4, 100), Start::Zero, &mut watch)
            .unwrap()
    };
    let whole = condition(all.clone());
    let appended = condition(part(0..n)).append(&part(n..60), None, &mut watch).unwrap();
    let x = normal(7, 2, "test");
    let (a, b) = (whole.samples(x.as_ref(), 0).unwrap(), appended.samples(x.as_ref(), 0).unwrap());
    assert!((&a - &b).norm_max() < 1e-9);
    let rebuilt = PathwisePosterior::from_parts(
        whole.model().clone(),
        whole.data().clone(),
        whole.support().clone(),
        whole.settings().clone(),
        whole.solution().clone(),
    )
    .unwrap();
    assert_eq!(rebuilt.samples(x.as_ref(), 0).unwrap(), a);
    // With a loose tolerance the warm start pays.
    let loose =
        PathwiseSettings { budget: Budget { tolerance: 0.05, ..Budget::steps(500) }, ..settings(4, 100) };
    let cold = condition(all.clone()).append(&part(0..1), Some(loose.clone()), &mut watch).unwrap();
    let fresh = {
        let mut more = all.clone();
        more.extend(&part(0..1)).unwrap();
        model("matern32").condition(more, Support::Rows(conjugate()), loose, Start::Zero, &mut watch).unwrap()
    };
    assert!(cold.solution().progress.step < fresh.solution().progress.step);
}

#[test]
fn early_stopped_dual_descent_never_understates_covariances() {
    // The map from targets to weights is linear for a start at zero; its matrix is the solution for the identity.
    let (n, noise) = (40, 0.1);
    let x = normal(n, 2, "inputs");
    let kernel = kernel("matern32");
    let k = gram(&*kernel, x.as_ref());
    let stored = dense(&k);
    let system = System::uniform(&stored, noise).unwrap();
    let identity = Mat::<f64>::identity(n, n);
    let problem = Problem::new(&system, identity.as_ref(), None).unwrap();
    let test = normal(15, 2, "test");
    let cross = cross(&*kernel, test.as_ref(), x.as_ref());
    let k_tilde = shifted(&k, &vec![noise; n]);
    let exact = &cross * exact_solution(&k, &vec![noise; n], &identity);
    let mut inflation = Vec::new();
    for steps in [5, 50, 500] {
        let method = Method::DualDescent(DualDescentOptions { batch: 8, ..DualDescentOptions::default() });
        let found = solve(&method, &problem, Start::Zero, &Budget::steps(steps), &mut watch).unwrap();
        let p = &cross * &found.weights;
        // Cov(f(x) - P (f(X) + ε)) - exact covariance.
        let prior = -(&p * cross.transpose()) - &cross * p.transpose() + &p * &k_tilde * p.transpose();
        let difference = prior + &exact * cross.transpose();
        let eigenvalues = difference.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        assert!(eigenvalues[0] > -1e-10, "{eigenvalues:?}");
        inflation.push(eigenvalues[14]);
    }
    assert!(inflation[0] > inflation[1] && inflation[1] > inflation[2], "{inflation:?}");
}

#[test]
fn mean_and_samples_in_single_precision() {
    let prior = PathwiseModel::<f32> {
        kernel: "matern32".parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap(),
        mean: model("matern32").mean,
        noise: Gaussian::new(0.1, 0.0),
    };
    let data = data(50);
    let method = Method::DualDescent(DualDescentOptions { batch: 16, ..DualDescentOptions::default() });
    let settings = PathwiseSettings { budget: Budget::steps(6000), ..settings(8, 200) };
    let narrow = prior.condition(
        data.clone(),
        Support::Rows(method.clone()),
        settings.clone(),
        Start::Zero,
        &mut watch,
    );
    let wide = model("matern32").condition(data, Support::Rows(method), settings, Start::Zero, &mut watch);
    let x = normal(5, 2, "test");
    let (narrow, wide) = (narrow.unwrap(), wide.unwrap());
    // The frequencies and weights are the same draws rounded; phases of up to some tens of radians round to 1e-5.
    let difference = narrow.samples(x.as_ref(), 0).unwrap() - wide.samples(x.as_ref(), 0).unwrap();
    assert!(difference.norm_max() < 1e-3, "{}", difference.norm_max());
    assert!(narrow.cross(x.as_ref()).unwrap().shape() == (5, 50));
    assert!(narrow.samples(normal(5, 3, "wide").as_ref(), 0).is_err());
}

#[test]
fn prior_draws_are_the_same_functions_for_the_same_seed() {
    let posterior = |samples| {
        model("matern32")
            .condition(data(10), Support::Rows(conjugate()), settings(samples, 20), Start::Zero, &mut watch)
            .unwrap()
    };
    let x = normal(3, 2, "test");
    let (few, many) =
        (posterior(2).samples(x.as_ref(), 0).unwrap(), posterior(5).samples(x.as_ref(), 0).unwrap());
    assert!((few - many.get(.., ..2)).norm_max() < 1e-9);
    assert_eq!(posterior(2).draws().map(PriorDrawGroups::count), Some(2));
    let none = posterior(0);
    assert!(none.mean(x.as_ref()).is_ok() && none.predict(x.as_ref()).is_err());
}

#[test]
fn compressed_functions_are_projections() {
    let data = data(60);
    let found = model("matern52")
        .condition(data.clone(), Support::Rows(conjugate()), settings(3, 50), Start::Zero, &mut watch)
        .unwrap();
    let few = normal(9, 2, "inducing");
    let CompressedPosterior { posterior, jitter } = found.compressed(few.clone()).unwrap();
    assert!(jitter > 0.0 && jitter < 1e-14, "{jitter}");
    // At the points they are what they were.
    let at = |p: &PathwisePosterior<f64>, x: &Mat<f64>| p.mean_and_deviations(x.as_ref()).unwrap();
    let ((mean, parts), (kept_mean, kept_parts)) = (at(&found, &few), at(&posterior, &few));
    assert!((&mean - &kept_mean).norm_max() < 1e-8 && (&parts - &kept_parts).norm_max() < 1e-8);
    // The projection onto them: no other weights are as near in the norm of the space. `‖k(., X) w - k(., Z) v‖²` in brute force.
    let k = kernel("matern52");
    let (all, own) = (gram(&*k, data.inputs()), gram(&*k, few.as_ref()));
    let between = cross(&*k, few.as_ref(), data.inputs());
    let w = found.solution().weights.col(0).to_owned();
    let v = posterior.solution().weights.col(0).to_owned();
    let distance = |v: &faer::Col<f64>| {
        let square =
            w.transpose() * &all * &w - 2.0 * (v.transpose() * &between * &w) + v.transpose() * &own * v;
        square.max(0.0).sqrt()
    };
    let best = distance(&v);
    assert!(best > 1e-3, "{best}");
    for (i, step) in [(0, 1e-3), (3, -1e-3), (8, 1e-2)] {
        let mut other = v.clone();
        other[i] += step;
        // `best² + step² k(z, z)`, by the theorem of Pythagoras.
        let expected = (best * best + step * step * own[(i, i)]).sqrt();
        assert!((distance(&other) / expected - 1.0).abs() < 1e-6, "{} {expected}", distance(&other));
    }
    // All rows carry what they carried.
    let x = normal(20, 2, "test");
    let CompressedPosterior { posterior, .. } = found.compressed(data.inputs().to_owned()).unwrap();
    let ((mean, parts), (same_mean, same_parts)) = (at(&found, &x), at(&posterior, &x));
    assert!((&mean - &same_mean).norm_max() < 1e-6 && (&parts - &same_parts).norm_max() < 1e-6);
    let error = found.compressed(Mat::zeros(3, 1)).unwrap_err();
    assert!(matches!(error, GpError::Shape { .. }), "{error}");
    assert!(matches!(found.compressed(Mat::zeros(0, 2)), Err(GpError::Empty { .. })));
    assert!(matches!(found.compressed(Mat::full(1, 2, f64::NAN)), Err(GpError::NotFinite { .. })));
}
