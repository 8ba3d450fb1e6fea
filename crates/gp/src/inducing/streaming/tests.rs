//! Against processes that saw all rows at once.

use super::sites;
use crate::exact::ExactGp;
use crate::inducing::{InducingDistribution, InducingPosterior};
use crate::{Mean, MeanForm, Observations, Posterior};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Bernoulli, Gaussian, Likelihood, Link, Poisson};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};

const NOISE: f64 = 0.07;

fn kernel() -> Box<dyn Kernel<f64>> {
    "matern52(variance=1.3, lengthscale=0.6)"
        .parse::<KernelExpression>()
        .unwrap()
        .build(&["a".into(), "b".into()])
        .unwrap()
}

fn wave(k: f64) -> f64 {
    (k * 12.9898).sin()
}

fn points(n: usize, from: usize) -> Mat<f64> {
    Mat::from_fn(n, 2, |i, j| 1.5 * wave((2 * (i + from) + j) as f64 + 0.4))
}

fn targets(x: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(x.nrows(), 1, |i, _| (2.0 * x[(i, 0)]).sin() + 0.3 * x[(i, 1)] + 0.1 * wave(i as f64))
}

/// The prior with these inducing points.
fn prior(likelihood: Box<dyn Likelihood>, inducing: Mat<f64>) -> InducingPosterior {
    let mut gram = posterior_kernels::gram(&*kernel(), inducing.as_ref());
    (0..gram.nrows()).for_each(|i| gram[(i, i)] += 1e-8 * 1.3);
    let factor = Cholesky::of(gram.as_ref(), JitterPolicy::default()).unwrap();
    let distribution = InducingDistribution::prior(inducing.nrows(), 1, true);
    let mean = Mean::new(MeanForm::Zero, 2, 1);
    InducingPosterior::from_parts(kernel(), mean, likelihood, inducing, factor, distribution).unwrap()
}

/// Learns Gaussian observations.
fn learn(posterior: &InducingPosterior, x: &Mat<f64>, y: &Mat<f64>, precision: f64) -> InducingPosterior {
    let a = posterior.whitened_features(x.as_ref()).unwrap();
    let (mut precisions, mut shifts) = posterior.distribution().natural();
    precisions[0] += precision * (&a * a.transpose());
    shifts += precision * (&a * y);
    let q = InducingDistribution::from_natural(&precisions, shifts.as_ref()).unwrap();
    posterior.with_distribution(q).unwrap()
}

fn exact(x: &Mat<f64>, y: &Mat<f64>, test: &Mat<f64>) -> crate::Prediction {
    let gp = ExactGp::new(kernel(), MeanForm::Zero, Gaussian::new(NOISE, 0.0), 2, 1);
    let data = Observations::new(x.clone(), y.clone(), None).unwrap();
    gp.condition(data).unwrap().predict(test.as_ref()).unwrap()
}

fn gaussian() -> Box<dyn Likelihood> {
    Box::new(Gaussian::new(NOISE, 0.0))
}

/// Where all rows become inducing points on the way, streaming is the exact process.
#[test]
fn with_all_rows_as_inducing_points_it_is_the_exact_process() {
    let (first, second) = (points(14, 0), points(11, 14));
    let all = points(25, 0);
    let (y, test) = (targets(&all), points(20, 200));
    let split = |from: usize, n: usize| y.subrows(from, n).to_owned();
    let begun = learn(&prior(gaussian(), first.clone()), &first, &split(0, 14), 1.0 / NOISE);
    let expected = exact(&all, &y, &test);
    let more = begun.with_more_inducing(second.as_ref()).unwrap();
    // What is known does not change before something is learned.
    let (before, after) = (begun.latent(test.as_ref()).unwrap(), more.latent(test.as_ref()).unwrap());
    assert!((before.mean - after.mean).norm_max() < 1e-6);
    assert!((before.variance - after.variance).norm_max() < 1e-6);
    for grown in [more, begun.carried(all.as_ref()).unwrap()] {
        let found = learn(&grown, &second, &split(14, 11), 1.0 / NOISE).latent(test.as_ref()).unwrap();
        for i in 0..test.nrows() {
            let (m, v) = (found.mean[(i, 0)], found.variance[(i, 0)]);
            assert!((m - expected.mean[(i, 0)]).abs() < 1e-5, "{m} {}", expected.mean[(i, 0)]);
            assert!((v - expected.latent_variance[i]).abs() < 1e-5, "{v} {}", expected.latent_variance[i]);
        }
    }
}

/// The formula of the spec for any other points, in the coordinates of the spec and by inverses.
#[test]
fn other_inducing_points_are_told_what_the_old_ones_know() {
    use faer::Side;
    use faer::linalg::solvers::Solve;
    let (old, new, x) = (points(9, 0), points(7, 50), points(30, 100));
    let begun = learn(&prior(gaussian(), old.clone()), &x, &targets(&x), 1.0 / NOISE);
    let found = begun.carried(new.as_ref()).unwrap();
    let inverse =
        |m: &Mat<f64>| m.llt(Side::Lower).unwrap().solve(Mat::<f64>::identity(m.nrows(), m.nrows()));
    let lower = |p: &InducingPosterior| {
        let f = p.factor().factor();
        Mat::from_fn(f.nrows(), f.nrows(), |i, j| if i >= j { f[(i, j)] } else { 0.0 })
    };
    let jittered = |p: &InducingPosterior| lower(p) * lower(p).transpose();
    let (kaa, kbb) = (jittered(&begun), jittered(&found));
    let root = lower(&begun) * &begun.distribution().roots()[0];
    let sa = &root * root.transpose();
    let ma = lower(&begun) * begun.distribution().mean();
    let w = inverse(&kbb) * posterior_kernels::cross(&*kernel(), new.as_ref(), old.as_ref());
    let precision = inverse(&kbb) + &w * (inverse(&sa) - inverse(&kaa)) * w.transpose();
    let sb = inverse(&precision);
    let mb = &sb * &w * inverse(&sa) * ma;
    let own = lower(&found) * &found.distribution().roots()[0];
    assert!((&own * own.transpose() - sb).norm_max() < 1e-6);
    assert!((lower(&found) * found.distribution().mean() - mb).norm_max() < 1e-6);
    // To the points that it has is no way at all.
    let same = begun.carried(old.as_ref()).unwrap();
    let test = points(15, 300);
    let (a, b) = (begun.latent(test.as_ref()).unwrap(), same.latent(test.as_ref()).unwrap());
    assert!((a.mean - b.mean).norm_max() < 1e-6 && (a.variance - b.variance).norm_max() < 1e-6);
}

/// The expected log density of a row has at its latent Gaussian the slopes that the site has.
#[test]
fn sites_act_as_the_likelihood_does() {
    let likelihoods: [Box<dyn Likelihood>; 3] = [
        Box::new(Gaussian::new(NOISE, 0.0)),
        Box::new(Bernoulli::new(1, Link::Logit).unwrap()),
        Box::new(Poisson::new(1).unwrap()),
    ];
    let (mean, variance, step) = (0.4, 0.3, 1e-4);
    for likelihood in &likelihoods {
        let one = |v: f64| Mat::from_fn(1, 1, |_, _| v);
        let found =
            sites(&**likelihood, one(1.0).as_ref(), one(mean).as_ref(), one(variance).as_ref()).unwrap();
        let (target, precision) = (found.targets[(0, 0)], found.precisions[(0, 0)]);
        assert_eq!(found.clipped, 0);
        // By Monte Carlo-free central differences of the expectation itself, on a fine grid.
        let expected = |m: f64, v: f64| {
            let nodes = 4001;
            let each = |i: usize| {
                let z = -9.0 + 18.0 * i as f64 / (nodes - 1) as f64;
                let weight =
                    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * 18.0 / (nodes - 1) as f64;
                weight * likelihood.log_density(&[1.0], &[m + v.sqrt() * z])
            };
            (0..nodes).map(each).sum::<f64>()
        };
        let by_mean = (expected(mean + step, variance) - expected(mean - step, variance)) / (2.0 * step);
        let by_variance = (expected(mean, variance + step) - expected(mean, variance - step)) / (2.0 * step);
        let name = likelihood.name();
        assert!((precision * (target - mean) - by_mean).abs() < 1e-6, "{name}: {by_mean}");
        assert!((-0.5 * precision - by_variance).abs() < 1e-6, "{name}: {by_variance}");
    }
    let one = Mat::<f64>::zeros(1, 1);
    let poisson = &*likelihoods[2];
    let negative = Mat::from_fn(1, 1, |_, _| -1.0);
    assert!(sites(poisson, negative.as_ref(), one.as_ref(), one.as_ref()).is_err());
}

#[test]
fn posteriors_that_share_features_say_what_each_says() {
    let inducing = points(8, 0);
    let x = points(30, 100);
    let (test, base) = (points(40, 400), prior(gaussian(), inducing));
    let a = learn(&base, &x, &targets(&x), 3.0);
    let b = learn(&base, &x, &(-0.5 * targets(&x)), 9.0);
    let other = learn(&prior(gaussian(), points(5, 70)), &x, &targets(&x), 2.0);
    assert!(a.shares_features(&b) && !a.shares_features(&other));
    let all = InducingPosterior::latent_of_all(&[&a, &b, &other], test.as_ref()).unwrap();
    for (own, found) in [&a, &b, &other].into_iter().zip(&all) {
        assert_eq!(*found, own.latent(test.as_ref()).unwrap());
    }
}
