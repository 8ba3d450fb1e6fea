//! The stochastic bound against the collapsed one, finite differences, integrals and itself.

mod bounds;
mod fits;

use super::*;
use crate::inducing::InducingDistribution;
use crate::inducing::collapsed::CollapsedGp;
use crate::{MeanForm, Observations};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::{Bernoulli, Categorical, Gaussian, Likelihood, Link, Poisson, StudentT};
use posterior_linalg::random::Streams;
use posterior_optim::Parameters;
use rand_distr::{Distribution, StandardNormal};

fn normal(n: usize, m: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(21).stream(name);
    Mat::from_fn(n, m, |_, _| StandardNormal.sample(&mut rng))
}

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["x0".into(), "x1".into()]).unwrap()
}

/// Every likelihood, with targets for n rows that depend on the first input.
fn cases(n: usize) -> Vec<(Box<dyn Likelihood>, Observations)> {
    let (x, z) = (normal(n, 2, "x"), normal(n, 2, "noise"));
    let signal = |i: usize| (1.7 * x[(i, 0)]).sin();
    let observe = |width: usize, y: &dyn Fn(usize, usize) -> f64, noise: Option<Vec<f64>>| {
        Observations::new(x.clone(), Mat::from_fn(n, width, y), noise).unwrap()
    };
    let noise = (0..n).map(|i| 0.05 + 0.01 * (i % 5) as f64).collect();
    let event = |i: usize| f64::from(signal(i) + 0.5 * z[(i, 0)] > 0.0);
    vec![
        (
            Box::new(Gaussian::new(0.2, 1e-6).with_outputs(2)),
            observe(2, &|i, j| signal(i) * (1.0 + j as f64) + 0.3 * z[(i, j)], Some(noise)),
        ),
        (Box::new(Bernoulli::new(1, Link::Logit).unwrap()), observe(1, &|i, _| event(i), None)),
        (
            Box::new(Bernoulli::new(2, Link::Probit).unwrap()),
            observe(2, &|i, j| if j == 0 { event(i) } else { 1.0 - event(i) }, None),
        ),
        (
            Box::new(Poisson::new(1).unwrap()),
            observe(1, &|i, _| (signal(i) + 0.3 * z[(i, 0)]).exp().round(), None),
        ),
        (
            Box::new(StudentT::new(0.2, 3.0).unwrap()),
            observe(1, &|i, _| signal(i) + if i % 9 == 0 { 5.0 } else { 0.2 * z[(i, 0)] }, None),
        ),
        (
            Box::new(Categorical::new(3).unwrap()),
            observe(1, &|i, _| event(i) + f64::from(x[(i, 1)] > 0.5), None),
        ),
    ]
}

fn model(text: &str, mean: MeanForm, likelihood: Box<dyn Likelihood>, inducing: usize) -> StochasticGp {
    let mut model = StochasticGp::new(kernel(text), mean, likelihood, normal(inducing, 2, "z")).unwrap();
    let values: Vec<f64> = (0..model.mean.values().len()).map(|i| 0.2 - 0.1 * i as f64).collect();
    model.mean.set_values(&values);
    model
}

/// Some distribution that is nobody's optimum.
fn arbitrary(model: &StochasticGp) -> InducingDistribution {
    let (m, prior) = (model.inducing.nrows(), model.prior());
    let root = |k: usize| {
        Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5 + 0.1 * ((i + k) as f64).cos(),
            std::cmp::Ordering::Greater => 0.1 * ((3 * i + 5 * j + k) as f64).sin(),
        })
    };
    let roots = (0..prior.roots().len()).map(root).collect();
    InducingDistribution::new(normal(m, prior.latents(), "q"), roots).unwrap()
}

fn whole(data: &Observations) -> Batch<'_> {
    Batch {
        inputs: data.inputs(),
        targets: data.targets(),
        noise: data.noise_variances(),
        weights: data.weights(),
        offsets: data.offsets(),
        rows: data.rows(),
    }
}

/// The same model with its inducing values integrated out, for Gaussian noise.
fn collapsed(model: &StochasticGp) -> CollapsedGp {
    let noise = Gaussian::new(model.likelihood.shared_noise_variance().expect("Gaussian noise only"), 1e-6);
    let (form, z) = (model.mean.form(), model.inducing.clone());
    let mut out = CollapsedGp::new(model.kernel.clone_box(), form, noise, z, model.latents()).unwrap();
    out.set_values(&model.values());
    (out.jitter, out.policy) = (model.jitter, model.policy);
    out
}
