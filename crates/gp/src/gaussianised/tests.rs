//! Against dense algebra, the evidence of Gaussian noise, finite differences, integrals, and rows that occur twice.

use super::*;
use crate::exact::{ExactGp, FitOptions, log_evidence_and_gradient};
use crate::{MeanForm, Observations, Posterior};
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression, gram};
use posterior_likelihoods::gaussianised::Matching;
use posterior_likelihoods::{
    Bernoulli, Categorical, GaussHermite, Gaussian, Likelihood, Link, OutputLikelihood, Poisson,
};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Signal, check};
use rand_distr::{Distribution, StandardNormal};

fn normal(n: usize, m: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(17).stream(name);
    Mat::from_fn(n, m, |_, _| StandardNormal.sample(&mut rng))
}

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["x0".into(), "x1".into()]).unwrap()
}

fn events() -> OutputLikelihood {
    OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit).unwrap())
}

fn counts() -> OutputLikelihood {
    OutputLikelihood::Poisson(Poisson::new(1).unwrap())
}

fn classes(c: usize) -> OutputLikelihood {
    OutputLikelihood::Categorical(Categorical::new(c).unwrap())
}

/// Every likelihood that has pseudo-targets, with targets for n rows that depend on the inputs.
fn cases(n: usize) -> Vec<(OutputLikelihood, Observations)> {
    let (x, z) = (normal(n, 2, "x"), normal(n, 2, "noise"));
    let signal = |i: usize| 1.5 * (1.7 * x[(i, 0)]).sin();
    let observe = |y: &dyn Fn(usize) -> f64| {
        Observations::new(x.clone(), Mat::from_fn(n, 1, |i, _| y(i)), None).unwrap()
    };
    let event = |i: usize| f64::from(signal(i) + 0.8 * z[(i, 0)] > 0.0);
    vec![
        (events(), observe(&event)),
        (counts(), observe(&|i| (0.7 * signal(i) + 0.3 * z[(i, 0)]).exp().round())),
        (classes(3), observe(&|i| event(i) + f64::from(x[(i, 1)] + 0.3 * z[(i, 1)] > 0.3))),
    ]
}

fn matchings(likelihood: &OutputLikelihood) -> Vec<Matching> {
    let mut out = vec![Matching::Moment, Matching::Laplace, Matching::Variational];
    out.extend((!matches!(likelihood, OutputLikelihood::Bernoulli(_))).then_some(Matching::MomentOriginal));
    out
}

fn model(
    text: &str,
    mean: MeanForm,
    likelihood: &OutputLikelihood,
    gaussian_labels: (Matching, f64),
) -> GaussianisedGp {
    let mut model = GaussianisedGp::new(kernel(text), mean, likelihood.clone(), gaussian_labels, 2).unwrap();
    let values: Vec<f64> = (0..model.mean().values().len()).map(|i| 0.2 - 0.1 * i as f64).collect();
    model.mean_mut().set_values(&values);
    model
}

#[test]
fn posteriors_and_divergences_are_those_of_dense_algebra() {
    for (likelihood, data) in cases(12) {
        for matching in matchings(&likelihood) {
            // Noise variances from a half to a million.
            for pseudo_count in [0.001, 0.1, 2.0] {
                let model = model("matern12", MeanForm::Constant, &likelihood, (matching, pseudo_count))
                    .with_scale(1.7);
                let found = model.evaluate(&data, false).unwrap().bound;
                let gaussian_labels =
                    GaussianLabels::of(&likelihood, &model.gaussianised().unwrap(), &data).unwrap();
                let k = 1.7 * 1.7 * gram(model.kernel(), data.inputs());
                let prior = model.mean().evaluate(data.inputs());
                for c in 0..likelihood.outputs() {
                    let noise =
                        Mat::from_fn(
                            12,
                            12,
                            |i, j| if i == j { gaussian_labels.variances[(i, c)] } else { 0.0 },
                        );
                    let all = (&k + noise).partial_piv_lu();
                    let e = Mat::from_fn(12, 1, |i, _| gaussian_labels.targets[(i, c)] - prior[(i, c)]);
                    let moved = &k * all.solve(&e);
                    let covariance = &k - &k * all.solve(&k);
                    let inverse = k.partial_piv_lu();
                    let trace: f64 = inverse.solve(&covariance).diagonal().column_vector().iter().sum();
                    let quadratic = (moved.transpose() * inverse.solve(&moved))[(0, 0)];
                    let log = |m: &Mat<f64>| m.determinant().ln();
                    let divergence = 0.5 * (trace - 12.0 + quadratic + log(&k) - log(&covariance));
                    let name = likelihood.name();
                    for i in 0..12 {
                        let expected = (prior[(i, c)] + moved[(i, 0)], covariance[(i, i)]);
                        let own = (found.mean[(i, c)], found.variance[(i, c)]);
                        let near = |a: f64, b: f64| (a - b).abs() < 1e-8 * (1.0 + b.abs());
                        assert!(
                            near(own.0, expected.0) && near(own.1, expected.1),
                            "{name} {matching:?} {pseudo_count} {i}: {own:?} {expected:?}"
                        );
                    }
                    let own = found.divergences[c];
                    assert!(
                        (own - divergence).abs() < 1e-7 * (1.0 + own),
                        "{name} {matching:?} {pseudo_count}: {own} {divergence}"
                    );
                }
            }
        }
    }
}

/// Noise variances of 1e12 leave the variance of the prior, to all its digits.
#[test]
fn nothing_is_lost_where_gaussian_labels_say_nothing() {
    let (likelihood, data) = cases(12).swap_remove(2);
    let data = Observations::new(data.inputs().to_owned(), Mat::from_fn(12, 1, |_, _| 0.0), None).unwrap();
    let model = model("matern32", MeanForm::Zero, &likelihood, (Matching::Moment, 1e-6));
    let found = model.evaluate(&data, true).unwrap();
    for i in 0..12 {
        // The two classes that no row has.
        for c in [1, 2] {
            assert!((found.bound.variance[(i, c)] - 1.0).abs() < 1e-10, "{}", found.bound.variance[(i, c)]);
        }
    }
}

#[test]
fn gaussian_labels_that_are_the_likelihood_give_the_evidence() {
    let (_, data) = cases(20).swap_remove(0);
    let expression = "matern32(ard) + linear";
    let noise = Gaussian::new(0.3, 0.0);
    let mut exact = ExactGp::new(kernel(expression), MeanForm::Constant, noise.clone(), 2, 1);
    let mut values = exact.values();
    let place = values.len() - 2;
    values[place] = 0.4;
    exact.set_values(&values);
    let expected = log_evidence_and_gradient(&exact, &data, None).unwrap();
    let k = gram(exact.kernel(), data.inputs());
    let prior = exact.mean().evaluate(data.inputs());
    let gaussian_labels = GaussianLabels {
        targets: data.targets().to_owned(),
        variances: Mat::from_fn(20, 1, |_, _| noise.noise_variance()),
    };
    let observed = (&noise as &dyn Likelihood, &data);
    let (found, adjoints) =
        bound(k.as_ref(), &prior, &gaussian_labels, observed, (JitterPolicy::default(), true)).unwrap();
    let adjoints = adjoints.unwrap();
    assert!((found.value - expected.value).abs() < 1e-10, "{} {}", found.value, expected.value);
    // Nothing is gained by other pseudo-targets.
    for i in 0..20 {
        assert!(adjoints.gaussian_labels.targets[(i, 0)].abs() < 1e-10);
        assert!(adjoints.gaussian_labels.variances[(i, 0)].abs() < 1e-10);
    }
    let n = expected.gradient.len();
    check::assert_close(&adjoints.likelihood, &expected.gradient[n - 1..], 1e-10, 1e-10);
    let mean: f64 = adjoints.means.col_as_slice(0).iter().sum();
    assert!((mean - expected.gradient[place]).abs() < 1e-10);
    let weights = (&k + Mat::from_fn(20, 20, |i, j| if i == j { 0.3 } else { 0.0 })).partial_piv_lu();
    let a = weights.solve(&(data.targets() - &prior));
    let inverse = weights.solve(&Mat::<f64>::identity(20, 20));
    for j in 0..20 {
        for i in j..20 {
            let expected = 0.5 * (a[(i, 0)] * a[(j, 0)] - inverse[(i, j)]);
            assert!((adjoints.kernel[(i, j)] - expected).abs() < 1e-10, "{i} {j}");
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for (likelihood, data) in cases(9) {
        let mut data = data.with_weights((0..9).map(|i| 0.5 + 0.2 * i as f64).collect()).unwrap();
        if matches!(likelihood, OutputLikelihood::Poisson(_)) {
            data = data.with_offsets((0..9).map(|i| 0.3 * i as f64 - 1.0).collect()).unwrap();
        }
        for matching in matchings(&likelihood) {
            for (mean, pseudo_count) in [(MeanForm::Linear, 0.15), (MeanForm::Zero, 1.1)] {
                let model = model("matern32(ard) + linear", mean, &likelihood, (matching, pseudo_count))
                    .with_scale(1.3);
                let found = model.evaluate(&data, true).unwrap();
                let mut moved = model.clone();
                let mut value = |theta: &[f64]| {
                    moved.set_unconstrained(theta);
                    moved.evaluate(&data, false).unwrap().bound.value
                };
                let theta = model.unconstrained();
                let numeric = check::gradient(&mut value, &theta);
                let own = model.chain(&theta, &found.gradient);
                check::assert_close(&own, &numeric, 1e-6, 1e-6);
            }
        }
    }
}

/// A count of 6 in an exposure of 3: the pseudo-target is that of the exposure, and the likelihood sees the function with its logarithm.
#[test]
fn exposures_reach_gaussian_labels_and_likelihood() {
    let (y, exposure) = (6.0, 3.0f64);
    let one = || Observations::new(Mat::zeros(1, 2), Mat::from_fn(1, 1, |_, _| y), None).unwrap();
    let data = one().with_offsets(vec![exposure.ln()]).unwrap();
    let model = model("se", MeanForm::Zero, &counts(), (Matching::Variational, 0.2));
    let found = model.evaluate(&data, false).unwrap().bound;
    // Prior N(0, 1), one observation at log(6.2) - log(3.2) - 1 / 12.4 with variance 1 / 6.2.
    let (target, precision) = ((6.2f64 / 3.2).ln() - 1.0 / 12.4, 6.2);
    let (mean, variance) = (precision * target / (1.0 + precision), 1.0 / (1.0 + precision));
    assert!((found.mean[(0, 0)] - mean).abs() < 1e-12 && (found.variance[(0, 0)] - variance).abs() < 1e-12);
    let expected = y * (mean + exposure.ln()) - exposure * (mean + 0.5 * variance).exp() - 720f64.ln();
    assert!((found.expected_log_likelihood - expected).abs() < 1e-10);
    let divergence = 0.5 * (variance + mean * mean - 1.0 - variance.ln());
    assert!((found.divergences[0] - divergence).abs() < 1e-10);
}

/// `log ∫ p(y | f) N(f; m̄, K)` of a few latent values by a product of Gauss-Hermite rules.
fn log_evidence(
    likelihood: &OutputLikelihood,
    y: &[f64],
    k: MatRef<'_, f64>,
    prior: MatRef<'_, f64>,
    order: usize,
) -> f64 {
    let (n, c) = prior.shape();
    let root = k.llt(faer::Side::Lower).unwrap().L().to_owned();
    let nodes: Vec<(f64, f64)> = GaussHermite::new(order).nodes(0.0, 1.0).collect();
    let total = order.pow((n * c) as u32);
    let mut sum = 0.0;
    for index in 0..total {
        let (mut rest, mut weight) = (index, 1.0);
        let mut white = Mat::<f64>::zeros(n, c);
        for i in 0..n * c {
            let (node, own) = nodes[rest % order];
            rest /= order;
            weight *= own;
            white[(i / c, i % c)] = node;
        }
        let f = prior + &root * white;
        let log: f64 = (0..n)
            .map(|i| likelihood.log_density(&[y[i]], &f.row(i).iter().copied().collect::<Vec<_>>()))
            .sum();
        sum += weight * log.exp();
    }
    sum.ln()
}

#[test]
fn it_is_a_bound_on_the_evidence_and_highest_at_what_is_learned() {
    let x = faer::mat![[0.0, 0.0], [0.5, 0.3]];
    let quiet = &mut |_: &posterior_optim::Progress, _: &posterior_optim::State| Signal::Continue;
    for (likelihood, y, order) in [
        (events(), [1.0, 0.0], 60),
        (events(), [1.0, 1.0], 60),
        (counts(), [3.0, 0.0], 60),
        (classes(2), [1.0, 0.0], 14),
    ] {
        let data = Observations::new(x.clone(), Mat::from_fn(2, 1, |i, _| y[i]), None).unwrap();
        for matching in matchings(&likelihood) {
            let model = model("se", MeanForm::Constant, &likelihood, (matching, 0.3)).with_scale(1.4);
            let k = 1.4 * 1.4 * gram(model.kernel(), x.as_ref());
            let prior = model.mean().evaluate(x.as_ref());
            let exact = log_evidence(&likelihood, &y, k.as_ref(), prior.as_ref(), order);
            let held = model.segments().into_iter().filter(|s| s.name != "pseudo_count");
            let constraints =
                held.map(|s| posterior_optim::Constraint::Fixed { parameter: s.name, value: None }).collect();
            let options = FitOptions { restarts: 1, constraints, ..FitOptions::default() };
            let before = model.evaluate(&data, false).unwrap().bound.value;
            let fit = fit_gaussianised(model, &data, &options, quiet).unwrap();
            let best = fit.bound.value;
            let name = likelihood.name();
            assert!(before <= best && best <= exact + 1e-9, "{name} {matching:?}: {before} {best} {exact}");
            // No other pseudo-count has a higher bound.
            let mut other = fit.model.clone();
            let mut values = other.values();
            for pseudo_count in [1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.8, 2.0, 10.0] {
                *values.last_mut().unwrap() = pseudo_count;
                other.set_values(&values);
                let there = other.evaluate(&data, false).unwrap().bound.value;
                assert!(there < best + 1e-5, "{name} {matching:?} {pseudo_count}: {there} {best}");
            }
        }
    }
}

#[test]
fn a_weight_is_how_often_a_row_occurs() {
    for (likelihood, data) in cases(10) {
        let model = model("se", MeanForm::Constant, &likelihood, (Matching::Variational, 0.2));
        let weights: Vec<f64> = (0..10).map(|i| 1.0 + f64::from(u8::from(i % 3 == 0))).collect();
        let repeated: Vec<usize> = (0..10).chain((0..10).step_by(3)).collect();
        let repeated = data.select(&repeated).unwrap();
        let weighted = data.with_weights(weights).unwrap();
        let (a, b) = (model.evaluate(&weighted, true).unwrap(), model.evaluate(&repeated, true).unwrap());
        assert!((a.bound.value - b.bound.value).abs() < 1e-9, "{} {}", a.bound.value, b.bound.value);
        check::assert_close(&a.gradient, &b.gradient, 1e-8, 1e-8);
    }
}

#[test]
fn fits_learn_the_pseudo_count_and_are_regression_in_the_end() {
    let quiet = &mut |_: &posterior_optim::Progress, _: &posterior_optim::State| Signal::Continue;
    for (likelihood, data) in cases(40) {
        let name = likelihood.name();
        let start =
            model("se", MeanForm::Constant, &likelihood, (Matching::Variational, 0.1)).with_scale(2.0);
        let options = FitOptions {
            restarts: 1,
            hyperpriors: vec![crate::Hyperprior::weak_lengthscale("se.lengthscale", 2)],
            ..FitOptions::default()
        };
        let before = start.evaluate(&data, false).unwrap().bound.value;
        let fit = fit_gaussianised(start.clone(), &data, &options, quiet).unwrap();
        assert!(fit.bound.value > before + 0.1 && fit.steps > 1, "{name}: {before} {}", fit.bound.value);
        let found = fit.model.gaussianised().unwrap().pseudo_count();
        assert!(found > 1e-6 && found < 10.0 && (found / 0.1).ln().abs() > 1e-2, "{name}: {found}");
        // The posterior at the rows is that of regression on what the pseudo-targets have become.
        let several = fit.model.observations(&data).unwrap();
        for c in 0..several.functions() {
            let exact =
                ExactGp::new(fit.model.kernel().clone_box(), MeanForm::Zero, Gaussian::new(1e-12, 0.0), 2, 1);
            let posterior = exact.condition(several.function(c)).unwrap();
            let there = posterior.predict(data.inputs()).unwrap();
            let prior = fit.model.mean().evaluate(data.inputs());
            for i in 0..40 {
                let mean = prior[(i, c)] + 2.0 * there.mean[(i, 0)];
                let variance = 4.0 * there.latent_variance[i];
                let own = (fit.bound.mean[(i, c)], fit.bound.variance[(i, c)]);
                assert!((own.0 - mean).abs() < 1e-6 && (own.1 - variance).abs() < 1e-6, "{name} {i}");
            }
        }
        let little = FitOptions { memory_limit: 1000, ..options };
        let error = fit_gaussianised(start, &data, &little, quiet).unwrap_err();
        assert!(error.to_string().contains("above the limit"), "{error}");
    }
}

#[test]
fn bad_input_is_named() {
    let new = |likelihood, gaussian_labels| {
        GaussianisedGp::new(kernel("se"), MeanForm::Zero, likelihood, gaussian_labels, 2)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(new(events(), (Matching::MomentOriginal, 0.1)).contains("moment"));
    assert!(new(events(), (Matching::Moment, f64::NAN)).contains("pseudo_count is NaN"));
    assert!(new(classes(2), (Matching::Moment, 1e-9)).contains("between 1e-6 and 1e3"));
    let noise = OutputLikelihood::Gaussian(Gaussian::new(1.0, 0.0));
    assert!(new(noise, (Matching::Moment, 0.1)).contains("no Gaussian label approximation"));
    let (likelihood, data) = cases(6).swap_remove(2);
    let model = model("se", MeanForm::Zero, &likelihood, (Matching::Laplace, 0.1));
    let mut targets = data.targets().to_owned();
    targets[(3, 0)] = 3.0;
    let wrong = Observations::new(data.inputs().to_owned(), targets, None).unwrap();
    assert!(model.evaluate(&wrong, false).is_err());
    let narrow = Observations::new(Mat::zeros(6, 1), data.targets().to_owned(), None).unwrap();
    assert!(model.evaluate(&narrow, false).unwrap_err().to_string().contains("expected 2, got 1"));
    let noisy = Observations::new(data.inputs().to_owned(), data.targets().to_owned(), Some(vec![1.0; 6]));
    assert!(model.evaluate(&noisy.unwrap(), false).is_err());
}
