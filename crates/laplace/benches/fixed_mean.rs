//! Seconds of what the book's speed page compares with PyTorch: steps of fixed-mean processes and of variational linearised Laplace with learned inducing inputs, gradients of posterior samples, and predictions of fixed-mean processes beside those of the
//! plain network. Random weights and inputs: times do not depend on them.
//!
//! `cargo bench -p posterior-laplace --bench fixed_mean [-- THREADS [PART OF A NAME]]`

use faer::Mat;
use posterior_gp::inducing::fixed_mean::{
    FixedMeanData, FixedMeanFitOptions, FixedMeanModel, fit_fixed_mean,
};
use posterior_kernels::{KernelExpression, LearnedBlockKernel, Separable};
use posterior_laplace::fixed_mean::{FixedMeanKernel, FixedMeanOptions, fit, plan};
use posterior_laplace::{Data, Learned, Problem, Run, Size, Wanted};
use posterior_likelihoods::{Categorical, Gaussian, Likelihood, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_linear::FeatureMap;
use posterior_networks::architecture::{Perceptron, Resnet};
use posterior_networks::train::{Tabular, Targets};
use posterior_networks::{Activation, Architecture, Array, Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Tangent, TangentKernel, ranges};
use rand_distr::{Distribution, StandardNormal};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Columns of the tables.
const INPUTS: usize = 9;

/// What was asked for; `cargo bench` adds a flag of its own.
fn argument(place: usize) -> Option<String> {
    std::env::args().filter(|a| a != "--bench").nth(place)
}

/// Whether the command line asks for this measurement.
fn wanted(name: &str) -> bool {
    argument(2).is_none_or(|part| name.contains(&part))
}

/// Least and middle of some times.
fn quantiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    (1e3 * times[0].as_secs_f64(), 1e3 * times[times.len() / 2].as_secs_f64())
}

fn normals<T: Precision>(shape: &[usize], name: &str) -> Array<T> {
    let mut rng = Streams::new(1).stream(name);
    let draw = |_| T::from_f64(StandardNormal.sample(&mut rng));
    Array::new(shape.to_vec(), (0..shape.iter().product()).map(draw).collect())
}

fn perceptron<T: Precision>(hidden: usize) -> Result<Network<T>, Failure> {
    let layers = Perceptron::new(INPUTS, &[hidden; 3], 1, Activation::Tanh);
    Ok(Network::initialised(Architecture::Perceptron(layers).graph()?, Streams::new(0))?)
}

/// Times of the steps of a fit: 100 inducing points, batches of 100.
fn timed<K: LearnedBlockKernel>(
    name: &str,
    model: FixedMeanModel<K>,
    data: FixedMeanData<'_, K::Points>,
    steps: usize,
) -> Result<(), Failure> {
    let options = FixedMeanFitOptions { steps: steps + 10, ..FixedMeanFitOptions::default() };
    let (mut times, mut last) = (Vec::new(), Instant::now());
    fit_fixed_mean(model, data, &options, None, None, &mut |progress, _| {
        // The first steps pay for the check of all rows and for the order of the first pass.
        if progress.step > 10 {
            times.push(last.elapsed());
        }
        last = Instant::now();
        Signal::Continue
    })?;
    let (least, median) = quantiles(times);
    println!("{name}: least {least:.3} ms, median {median:.3} ms");
    Ok(())
}

/// Steps of a fixed-mean process: squared exponential with a lengthscale for each column, companion, everything learned, doubles.
fn process_steps(rows: usize) -> Result<(), Failure> {
    let name = format!("fixed-mean step, {rows} rows");
    if !wanted(&name) {
        return Ok(());
    }
    let x = normals::<f64>(&[rows, INPUTS], "inputs");
    let x = Mat::from_fn(rows, INPUTS, |i, j| x.row(i)[j]);
    let means = Mat::from_fn(rows, 1, |i, _| x[(i, 1)].sin());
    let targets = Mat::from_fn(rows, 1, |i, _| x[(i, 0)]);
    let columns: Vec<String> = (0..INPUTS).map(|i| format!("x{i}")).collect();
    let kernel = "rbf(ard)".parse::<KernelExpression>()?.build(&columns)?;
    let model = FixedMeanModel::new(
        Separable::independent(kernel, 1),
        Box::new(Gaussian::new(0.1, 0.0)),
        x.as_ref().subrows(0, 100).to_owned(),
        vec![0; 100],
        1.0,
        true,
    )?;
    let points = |rows: &[usize]| Mat::from_fn(rows.len(), INPUTS, |i, j| x[(rows[i], j)]);
    let data = FixedMeanData { points: &points, means: means.as_ref(), targets: targets.as_ref() };
    timed(&name, model, data, 2000)
}

/// Steps of VaLLA: inducing inputs are learned, one output, doubles.
fn tangent_steps(rows: usize, hidden: usize) -> Result<(), Failure> {
    let network = perceptron::<f64>(hidden)?;
    let selection = Selection::all(network.graph());
    let name = format!("VaLLA step, {rows} rows, {} weights", selection.len());
    if !wanted(&name) {
        return Ok(());
    }
    let x = normals::<f64>(&[rows, INPUTS], "inputs");
    // The step does not care whether these are the network's outputs.
    let means = Mat::from_fn(rows, 1, |i, _| x.row(i)[1].sin());
    let targets = Mat::from_fn(rows, 1, |i, _| x.row(i)[0]);
    let model = FixedMeanModel::new(
        TangentKernel::new(&network, &selection),
        Box::new(Gaussian::new(0.1, 0.0)),
        x.slice_rows(0..100),
        vec![0; 100],
        1.0,
        false,
    )?;
    let points = |rows: &[usize]| {
        Array::new(vec![rows.len(), INPUTS], rows.iter().flat_map(|&i| x.row(i).to_vec()).collect())
    };
    let data = FixedMeanData { points: &points, means: means.as_ref(), targets: targets.as_ref() };
    timed(&name, model, data, 200)
}

/// Predictions of some examples in single precision, by the plain network and with variances (of all outputs' covariances where there are classes).
fn predictions(
    name: &str,
    network: &Network<f32>,
    kernel: FixedMeanKernel,
    batch: usize,
    repetitions: usize,
) -> Result<(), Failure> {
    if !wanted(name) {
        return Ok(());
    }
    let classes: usize = network.graph().output_shape().iter().product();
    let shape = |count: usize| [&[count], network.graph().input_shape()].concat();
    let (likelihood, targets) = match classes {
        1 => (OutputLikelihood::Gaussian(Gaussian::new(0.1, 0.0)), Targets::Values(normals(&[200, 1], "y"))),
        _ => (
            OutputLikelihood::Categorical(Categorical::new(classes)?),
            Targets::Classes((0..200).map(|i| i % classes as u32).collect()),
        ),
    };
    let examples = Tabular::new(normals::<f32>(&shape(200), "training"), targets);
    let options = FixedMeanOptions {
        kernel,
        closed_form: true,
        output_covariance: false,
        ..FixedMeanOptions::default()
    };
    let selection = Selection::all(network.graph());
    let data = Data::new(network, &examples, &likelihood);
    let problem = Problem { data, selection: &selection, seed: 0, memory: u64::MAX };
    let found = fit(&problem, &options, &mut Run::default())?;
    let covariances = if classes > 1 { Wanted::Full } else { Wanted::Diagonal };
    let x = normals::<f32>(&shape(batch), "test");
    found.posterior.latent(network, &x, covariances)?;
    let (mut plain, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        let started = Instant::now();
        network.forward(&x)?;
        plain.push(started.elapsed());
        let started = Instant::now();
        found.posterior.latent(network, &x, covariances)?;
        whole.push(started.elapsed());
    }
    let ((plain, middle), (whole, median)) = (quantiles(plain), quantiles(whole));
    println!(
        "{name}: network {plain:.3} ms (median {middle:.3}), with covariances {whole:.3} ms (median {median:.3}), {:.2} times",
        whole / plain
    );
    Ok(())
}

/// The data's part of one gradient of 16 posterior samples on ResNet-20: `J' B J Z` of a batch, all samples together.
fn sampled_gradient(network: &Network<f32>, batch: usize, repetitions: usize) -> Result<(), Failure> {
    const SAMPLES: usize = 16;
    let name = format!("gradient of {SAMPLES} samples, ResNet-20, {batch} images");
    if !wanted(&name) {
        return Ok(());
    }
    let selection = Selection::all(network.graph());
    let tangent = Tangent::new(network, &selection);
    let likelihood = Categorical::new(10)?;
    let x = normals::<f32>(&[&[batch], network.graph().input_shape()].concat(), "training");
    let z = normals::<f32>(&[selection.len(), SAMPLES], "samples");
    let z = Mat::from_fn(selection.len(), SAMPLES, |i, j| z.row(i)[j]);
    let mut times = Vec::new();
    for _ in 0..repetitions {
        let started = Instant::now();
        // In batches of the size in which fits pass over their data.
        for rows in ranges(0, batch, tangent.examples_at_once(SAMPLES)) {
            let features = tangent.at(x.slice_rows(rows))?;
            let outputs = features.outputs();
            let (mut u, mut product) = ([0.0; 10], [0.0; 10]);
            std::hint::black_box(features.apply_through(z.as_ref(), &mut |examples, moved| {
                for (i, image) in examples.enumerate() {
                    for k in 0..SAMPLES {
                        (0..10).for_each(|c| u[c] = f64::from(moved[(10 * i + c, k)]));
                        likelihood.curvature_product(&[0.0], &outputs[10 * image..][..10], &u, &mut product);
                        (0..10).for_each(|c| moved[(10 * i + c, k)] = product[c] as f32);
                    }
                }
            })?);
        }
        times.push(started.elapsed());
    }
    let (least, median) = quantiles(times);
    println!("{name}: least {least:.0} ms, median {median:.0} ms");
    Ok(())
}

/// The most memory that the process has held, in megabytes.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|k| 1.024e-3 * k)
}

/// The closed form of VaLLA for ten classes: seconds, and memory beside the plan. The peak is that of the process: ask for this part alone.
fn closed_form(network: &Network<f32>, images: usize) -> Result<(), Failure> {
    let name = format!("VaLLA in closed form, ResNet-20, {images} images");
    if !wanted(&name) {
        return Ok(());
    }
    let x = normals::<f32>(&[&[images], network.graph().input_shape()].concat(), "training");
    let examples = Tabular::new(x, Targets::Classes((0..images as u32).map(|i| i % 10).collect()));
    let likelihood = OutputLikelihood::Categorical(Categorical::new(10)?);
    let options = FixedMeanOptions { closed_form: true, ..FixedMeanOptions::valla() };
    let selection = Selection::all(network.graph());
    let data = Data::new(network, &examples, &likelihood);
    let problem = Problem { data, selection: &selection, seed: 0, memory: u64::MAX };
    let size = Size { network, selection: &selection, examples: images, unseen: 0, likelihood: &likelihood };
    let planned = plan(&size, &options)?.bytes() as f64 / 1e6;
    let (before, started) = (peak(), Instant::now());
    let found = fit(&problem, &options, &mut Run::default())?;
    let (fitted, seconds) = (peak(), started.elapsed().as_secs_f64());
    let started = Instant::now();
    found.posterior.latent(network, &normals(&[100, 3, 32, 32], "test"), Wanted::Full)?;
    let predicting = started.elapsed().as_secs_f64();
    println!(
        "{name}: {seconds:.1} s, planned {planned:.0} MB, peak {:.0} MB (before {:.0}); 100 predictions {predicting:.1} s, then {:.0} MB",
        fitted.unwrap_or(f64::NAN),
        before.unwrap_or(f64::NAN),
        peak().unwrap_or(f64::NAN)
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    // As the program does.
    posterior_linalg::freed::keep_freed_memory();
    let threads = argument(1).map_or(Ok(2), |t| t.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global()?;
    for rows in [1_000, 1_000_000] {
        process_steps(rows)?;
    }
    for rows in [1_000, 10_000, 100_000, 1_000_000] {
        tangent_steps(rows, 200)?;
    }
    for hidden in [50, 100, 400] {
        tangent_steps(1_000, hidden)?;
    }
    let inputs = || FixedMeanKernel::Inputs("rbf(ard)".into());
    let features = || FixedMeanKernel::Features("rbf * (linear + constant)".into());
    let small = perceptron::<f32>(200)?;
    predictions("perceptron, 1000 rows, kernel on inputs", &small, inputs(), 1000, 200)?;
    predictions("perceptron, 10000 rows, kernel on inputs", &small, inputs(), 10_000, 40)?;
    predictions("perceptron, 1000 rows, tangent kernel", &small, FixedMeanKernel::Tangent, 1000, 20)?;
    let deep = Network::initialised(Architecture::Resnet(Resnet::cifar10(20)).graph()?, Streams::new(0))?;
    predictions("ResNet-20, 100 images, kernel on features", &deep, features(), 100, 20)?;
    predictions("ResNet-20, 100 images, kernel on inputs", &deep, inputs(), 100, 10)?;
    sampled_gradient(&deep, 100, 5)?;
    closed_form(&deep, 1000)?;
    Ok(())
}
