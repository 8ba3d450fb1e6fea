//! Seconds that each solver takes to bring posterior samples within a given error, measured on the outputs of test inputs: what the default solver was chosen by.
//!
//! `cargo bench -p posterior-laplace --bench sampled_solvers -- NETWORK.onnx EXAMPLES PRECISION MEAN DEVIATION TRAIN TEST`, files as for `image_classifier`. Conjugate gradients are preconditioned with the diagonal of the curvature and some of its leading directions.

use faer::Mat;
use posterior_data::{ImageSet, ReadOptions};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_linear::FeatureMap;
use posterior_linear::sampled::{
    Averaging, ConjugateOptions, DescentOptions, FunctionSpace, Noise, Objective, SampleObjective,
    SampledModel, Sampler, Solve, Span, descend, solve_exactly,
};
use posterior_linear::structure::Structure;
use posterior_networks::train::{Augmentation, Examples, Images, Targets};
use posterior_networks::{Network, Selection};
use posterior_onnx::read_onnx;
use posterior_optim::Signal;
use posterior_tangent::{Observed, Tangent, tangent_gram};
use std::path::PathBuf;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// Samples that are solved for together.
const SAMPLES: usize = 8;

/// Leading directions that conjugate gradients are preconditioned with.
const RANKS: [usize; 4] = [0, 32, 64, 128];

/// Test inputs on whose outputs errors are measured.
const TESTED: usize = 500;

fn read(
    files: &str,
    mean: &[f64],
    deviation: &[f64],
    input: &[usize],
    count: usize,
) -> Result<Images<f32>, Failure> {
    let (images, labels) = match files.split_once(':') {
        Some((images, labels)) => (PathBuf::from(images), vec![PathBuf::from(labels)]),
        None => (PathBuf::from(files), vec![]),
    };
    let set = ImageSet::read(&[images], &labels, &ReadOptions::for_arrays())?;
    let shape = &set.images.shape()[1..];
    let shape: [usize; 3] =
        if shape.len() == 2 { [1, shape[0], shape[1]] } else { [shape[0], shape[1], shape[2]] };
    let (_, posterior_data::ArrayValues::U8(mut bytes)) = set.images.into_parts() else {
        return Err("images must hold bytes".into());
    };
    let mut labels = set.labels.ok_or("there are no labels")?;
    bytes.truncate(count * shape.iter().product::<usize>());
    labels.truncate(count);
    let targets = Targets::Classes(labels);
    Ok(Images::new(shape, bytes, targets, mean, deviation, Augmentation::default(), input.to_vec()))
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [network, count, precision, mean, deviation, train, test] = &arguments[..] else {
        return Err("arguments: NETWORK.onnx EXAMPLES PRECISION MEAN DEVIATION TRAIN TEST".into());
    };
    let list = |text: &str| text.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>();
    let (mean, deviation, precision) = (list(mean)?, list(deviation)?, precision.parse::<f64>()?);
    let network: Network<f32> = read_onnx(network)?.network()?;
    let input = network.graph().input_shape().to_vec();
    let examples = read(train, &mean, &deviation, &input, count.parse()?)?;
    let test = read(test, &mean, &deviation, &input, TESTED)?;
    let classes: usize = network.graph().output_shape().iter().product();
    let likelihood = OutputLikelihood::Categorical(Categorical::new(classes)?);
    let selection = Selection::all(network.graph());
    let tangent = Tangent::new(&network, &selection);
    let observed = Observed { examples: &examples, likelihood: &likelihood };
    let go = &mut |_, _| Signal::Continue;
    let clock = Instant::now();
    let model = SampledModel::new(&tangent, &observed, &likelihood);
    let noise = Noise::draw(&model, 0..SAMPLES, 0, go)?;
    let seconds = clock.elapsed().as_secs_f64();
    println!("{} weights, {} examples; noise {seconds:.1} s", model.dimension(), examples.len());
    let mut curvatures = Vec::new();
    let (diagonal, _) = model.curvature_diagonal(SAMPLES, 0, go)?;
    println!("diagonal: {:.1} s", clock.elapsed().as_secs_f64() - seconds);
    for rank in RANKS {
        let clock = Instant::now();
        curvatures.push((rank, model.leading_curvature(&diagonal, rank, 0, go)?));
        println!("{rank} directions: {:.1} s", clock.elapsed().as_secs_f64());
    }
    let each = vec![precision; model.dimension()];
    let start = noise.prior_draws(&each)?;
    let (x, _) = test.batch(&(0..test.len()).collect::<Vec<_>>(), None);
    let outputs = |z: &Mat<f64>| -> Result<Mat<f64>, Failure> {
        let own = model.unscaled(z.as_ref());
        let narrow = Mat::from_fn(own.nrows(), own.ncols(), |i, j| own[(i, j)] as f32);
        let moved = tangent.at(x.clone())?.apply(narrow.as_ref())?;
        Ok(Mat::from_fn(moved.nrows(), moved.ncols(), |i, j| f64::from(moved[(i, j)])))
    };
    let exactly = |curvature: &Structure, options: &ConjugateOptions| {
        let mut steps = 0;
        let clock = Instant::now();
        let found = solve_exactly(
            &model,
            &noise,
            (&each, 1.0),
            curvature,
            start.clone(),
            None,
            options,
            &mut |p, _| {
                steps = p.step;
                Signal::Continue
            },
        );
        found.map(|f| (f.0, clock.elapsed().as_secs_f64(), steps))
    };
    let (reference, seconds, steps) =
        exactly(&curvatures[RANKS.len() - 1].1, &ConjugateOptions { tolerance: 1e-5, steps: 500 })?;
    println!("reference: conjugate gradients to 1e-5, {steps} steps, {seconds:.1} s");
    let expected = outputs(&reference)?;
    let error = |z: &Mat<f64>| -> Result<(f64, f64), Failure> {
        let in_outputs = (outputs(z)? - &expected).norm_l2() / expected.norm_l2();
        Ok((in_outputs, (z - &reference).norm_l2() / reference.norm_l2()))
    };
    for (rank, curvature) in &curvatures {
        for tolerance in [0.3, 0.1, 0.03, 0.01, 0.001] {
            let (found, seconds, steps) = exactly(curvature, &ConjugateOptions { tolerance, steps: 500 })?;
            let (own, weights) = error(&found)?;
            println!(
                "conjugate gradients, {rank} directions, to {tolerance}: {steps} steps, {seconds:.2} s, error of outputs {own:.4}, of weights {weights:.4}"
            );
        }
    }
    let clock = Instant::now();
    let kernel = tangent_gram(&network, &selection, &examples, &mut |_, _| Signal::Continue)?;
    println!("kernel of {} rows: {:.1} s", kernel.nrows(), clock.elapsed().as_secs_f64());
    let clock = Instant::now();
    let span = Span::of(&model, kernel, &mut |_, _| Signal::Continue)?;
    println!("{} eigenvectors: {:.1} s", span.rank(), clock.elapsed().as_secs_f64());
    let own = span.model(&likelihood);
    let (diagonal, _) = own.curvature_diagonal(1, 0, &mut |_, _| Signal::Continue)?;
    let curvature = own.leading_curvature(&diagonal, 64, 0, &mut |_, _| Signal::Continue)?;
    for tolerance in [0.03, 0.01, 1e-5] {
        let clock = Instant::now();
        let solve = Solve::ConjugateGradients(ConjugateOptions { tolerance, steps: 500 });
        let (span, own, curvature, solve, model) = (&span, &own, &curvature, &solve, &model);
        let noise = &span.noise(model, 0..SAMPLES, 0, &mut |_, _| Signal::Continue)?;
        let mut sampler = FunctionSpace { model, span, own, noise, curvature, solve };
        let drawn = sampler.samples(&each, 1.0, None, None, &mut |_, _| Signal::Continue)?;
        let seconds = clock.elapsed().as_secs_f64();
        let (of_outputs, of_weights) = error(&drawn.samples)?;
        println!(
            "function space, to {tolerance}: {} steps, {seconds:.2} s, error of outputs {of_outputs:.4}, of weights {of_weights:.4}",
            drawn.steps
        );
    }
    for epochs in [2, 5, 10, 20, 50] {
        let options = DescentOptions { epochs, ..DescentOptions::default() };
        let mut objective = SampleObjective::new(&model, &noise, &each, 1.0, Objective::LowVariance)?;
        let (mut steps, mut size) = (0, 0.0);
        let clock = Instant::now();
        let (found, _) = descend(
            "the samples",
            &mut objective,
            start.clone(),
            None,
            Averaging::Geometric,
            &options,
            &mut |p, s| {
                (steps, size) = (p.step, s.step_size);
                Signal::Continue
            },
        )?;
        let seconds = clock.elapsed().as_secs_f64();
        let (own, weights) = error(&found)?;
        println!(
            "descent, {epochs} epochs: {steps} steps of {size:.2e}, {seconds:.2} s, error of outputs {own:.4}, of weights {weights:.4}"
        );
    }
    Ok(())
}
