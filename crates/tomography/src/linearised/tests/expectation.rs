use super::{MEASUREMENTS, Small};
use crate::linearised::*;
use faer::Mat;
use posterior_linalg::dense::product;
use posterior_linalg::solve::{NoPreconditioner, Preconditioner};
use posterior_linear::sampled::{ConjugateOptions, DescentOptions};
use posterior_optim::Signal;

fn go_on(_: usize, _: usize) -> Signal {
    Signal::Continue
}

/// `T phi diag(s)` (c x d).
fn scaled(small: &Small, scales: &Scales) -> Mat<f64> {
    let through = product(small.projector.matrix(), small.jacobian().transpose());
    Mat::from_fn(through.nrows(), through.ncols(), |i, j| through[(i, j)] * scales.values[j])
}

#[test]
fn scaled_columns_have_length_one() {
    let small = Small::new(true);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let exact = scales(&measured, ScaleEstimate::Exact, &mut go_on).unwrap();
    let d = small.weights.len();
    let features = scaled(&small, &exact);
    // tr K = d / a with a = 1, but for weights that move nothing.
    let trace = features.squared_norm_l2();
    assert!((trace - (d - exact.raised) as f64).abs() < 1e-3 * d as f64, "{trace} {d} {}", exact.raised);
    let draws = 4000;
    let sampled = scales(&measured, ScaleEstimate::Sampled { draws, seed: 3 }, &mut go_on).unwrap();
    // The relative error of a sum of squares of normals is at most sqrt(2 / draws), that of its inverse root half of it; five deviations for the worst of a thousand.
    let worst = exact
        .values
        .iter()
        .zip(&sampled.values)
        .filter(|(e, _)| **e < 1e5)
        .map(|(e, s)| (s / e - 1.0).abs())
        .fold(0.0, f64::max);
    assert!(worst < 5.0 * 0.5 * (2.0 / draws as f64).sqrt(), "{worst}");
    assert!(scales(&measured, ScaleEstimate::Sampled { draws: 0, seed: 0 }, &mut go_on).is_err());
}

/// What exact expectation maximisation converges to: MacKay's updates with traces and modes of dense matrices.
fn dense_fixed_point(features: &Mat<f64>, targets: &[f64], noise: f64, mut a: f64) -> f64 {
    let kernel = features * features.transpose();
    let eigen = posterior_linalg::dense::eigen(kernel.as_ref()).unwrap();
    let projected =
        eigen.vectors.transpose() * faer::MatRef::from_column_major_slice(targets, targets.len(), 1);
    for _ in 0..2000 {
        let (mut gamma, mut norm) = (0.0, 0.0);
        for (i, l) in eigen.values.iter().enumerate() {
            let l = l.max(0.0);
            gamma += l / (l + a * noise);
            norm += l * (projected[(i, 0)] / (l + a * noise)).powi(2);
        }
        a = gamma / norm;
    }
    a
}

#[test]
fn turns_over_measurements_and_over_weights_find_the_dense_fixed_point() {
    let small = Small::new(true);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let scales = scales(&measured, ScaleEstimate::Exact, &mut go_on).unwrap();
    let noise = 0.05;
    let options = GPriorOptions {
        samples: 400,
        turns: 40,
        tolerance: 1e-4,
        noise_variance: Some(noise),
        ..GPriorOptions::default()
    };
    let prior = GPrior::new(&measured, &scales, &sinogram, &options).unwrap();
    let conjugate = ConjugateOptions { tolerance: 1e-10, steps: 200 };
    let none = |_: f64, _: f64| Ok(Box::new(NoPreconditioner) as Box<dyn Preconditioner<f64>>);
    let (fit, state) = prior
        .over_measurements(&conjugate, &none, prior.begin().unwrap(), &mut |_, _| Signal::Continue)
        .unwrap();
    let features = scaled(&small, &scales);
    let targets = measured.linear_targets(&sinogram).unwrap();
    let expected = dense_fixed_point(&features, &targets, noise, 1.0);
    // gamma of n samples has a deviation of at most sqrt(2 gamma / n).
    let gamma = fit.turns.last().unwrap().by_prediction.unwrap();
    let tolerance = 4.0 * (2.0 / (gamma * 400.0)).sqrt();
    assert!((fit.precision / expected).ln().abs() < tolerance, "{} {expected} {gamma}", fit.precision);
    assert!(gamma > 0.0 && gamma < MEASUREMENTS as f64);
    // Samples have the posterior's covariance: the mean square of what they predict is gamma / b by construction; against dense algebra, tr(H^-1 M).
    let samples = state.samples.unwrap();
    let outputs = product(features.as_ref(), samples.as_ref());
    let mean = outputs.squared_norm_l2() / (400.0 * noise);
    assert!((mean / gamma - 1.0).abs() < 1e-6, "{mean} {gamma}");

    let few = GPriorOptions { samples: 6, turns: 3, ..options };
    let prior = GPrior::new(&measured, &scales, &sinogram, &few).unwrap();
    let (a, _) = prior
        .over_measurements(&conjugate, &none, prior.begin().unwrap(), &mut |_, _| Signal::Continue)
        .unwrap();
    let descent = DescentOptions { epochs: 2000, ..DescentOptions::default() };
    let (b, _) = prior.over_weights(&descent, prior.begin().unwrap(), &mut |_, _| Signal::Continue).unwrap();
    for (a, b) in a.turns.iter().zip(&b.turns) {
        // The same noise: what differs is how far descent has come.
        let (x, y) = (a.by_prediction.unwrap(), b.by_prediction.unwrap());
        assert!((x / y).ln().abs() < 0.05, "{x} {y}");
        let ratio = b.squared_norms[0] / a.squared_norms[0];
        assert!(ratio > 0.5 && ratio < 1.05, "{ratio}");
    }
}

#[test]
fn an_interrupted_solve_goes_on_with_the_same_numbers() {
    let small = Small::new(false);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let scales = scales(&measured, ScaleEstimate::Exact, &mut go_on).unwrap();
    let options = GPriorOptions { samples: 3, turns: 2, tolerance: 1e-9, ..GPriorOptions::default() };
    let prior = GPrior::new(&measured, &scales, &sinogram, &options).unwrap();
    let conjugate = ConjugateOptions { tolerance: 1e-8, steps: 100 };
    let none = |_: f64, _: f64| Ok(Box::new(NoPreconditioner) as Box<dyn Preconditioner<f64>>);
    let run =
        |state, watch: &mut WatchExpectation<'_>| prior.over_measurements(&conjugate, &none, state, watch);
    let (whole, _) = run(prior.begin().unwrap(), &mut |_, _| Signal::Continue).unwrap();
    let (mut kept, mut seen) = (None, 0);
    let stopped = run(prior.begin().unwrap(), &mut |progress, state| {
        let own = state();
        seen += usize::from(progress.is_some() && own.solving.is_some() && own.turns.len() == 1);
        if seen == 3 && kept.is_none() {
            kept = Some(own);
            return Signal::Stop;
        }
        Signal::Continue
    });
    assert!(stopped.is_err());
    let (resumed, _) = run(kept.unwrap(), &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(whole.precision.to_bits(), resumed.precision.to_bits());
    assert_eq!(whole.noise_variance.to_bits(), resumed.noise_variance.to_bits());
}
