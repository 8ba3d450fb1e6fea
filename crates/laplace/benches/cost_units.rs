//! What everything costs, in units of **one gradient** over the same batch (forward, loss, backward): the targets are at most 2.5 for a Gauss-Newton product and at most 3 for Kronecker
//! factors from one pass back. Random weights and inputs: times do not depend on them.
//!
//! `cargo bench -p posterior-laplace --bench cost_units [-- THREADS [REPETITIONS]]`

use posterior_laplace::{
    Accumulator, Approximation, Data, FisherEstimate, FitOptions, Form, Laplace, Mode, PriorKind, Run, Tune,
    Wanted, fit,
};
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior_networks::{Architecture, Array, Curvature, Network, Selection};
use posterior_optim::{Rule, Schedule, Signal};
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

fn numbers(shape: Vec<usize>) -> Array<f32> {
    let count: usize = shape.iter().product();
    Array::new(shape, (0..count).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 1000.0 - 0.5).collect())
}

/// The least of several times, in milliseconds: what the work costs when nothing else is in the way.
fn least(repetitions: usize, mut work: impl FnMut()) -> f64 {
    work();
    let mut times: Vec<f64> = (0..repetitions)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[0]
}

/// Cotangents of the cross-entropy at class `i % 10`.
fn loss_gradient(outputs: &Array<f32>) -> Array<f32> {
    let mut out = outputs.clone();
    for (i, row) in out.values_mut().chunks_exact_mut(10).enumerate() {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|v| *v = (*v - largest).exp());
        let total: f32 = row.iter().sum();
        row.iter_mut().for_each(|v| *v /= total);
        row[i % 10] -= 1.0;
    }
    out
}

fn measure(name: &str, text: &str, batch: usize, images: usize, repetitions: usize) -> Result<(), Failure> {
    let graph = Architecture::from_toml(text)?.graph()?;
    let network = Network::<f32>::initialised(graph, Streams::new(0))?;
    let all = Selection::all(network.graph());
    let mut shape = vec![batch];
    shape.extend_from_slice(network.graph().input_shape());
    let x = numbers(shape.clone());
    let data = Tabular::new(x.clone(), Targets::Classes((0..batch as u32).map(|i| i % 10).collect()));
    let likelihood = OutputLikelihood::Categorical(Categorical::new(10)?);
    let tangent = numbers(vec![1, all.len()]);
    let gradient = || {
        let trace = network.trace(x.clone()).unwrap();
        let cotangent = loss_gradient(trace.output());
        std::hint::black_box(trace.vjp(&all, &cotangent).unwrap());
    };
    let unit = least(repetitions, gradient);
    println!(
        "{name}: {} weights, batch {batch}, {:.2} GFLOP forward; one gradient {unit:.2} ms",
        all.len(),
        network.graph().flops() as f64 * batch as f64 / 1e9
    );
    let report = |what: &str, ms: f64, target: Option<f64>| {
        let verdict = match target {
            Some(t) if ms / unit <= t => format!(" (target {t}: met)"),
            Some(t) => format!(" (target {t}: missed)"),
            None => String::new(),
        };
        println!("  {what:<44} {:>7.2} gradients {ms:>9.2} ms{verdict}", ms / unit);
    };
    report("forward", least(repetitions, || drop(network.forward(&x).unwrap())), None);
    // The parts that share a forward pass, without it.
    let trace = network.trace(x.clone())?;
    let cotangent = loss_gradient(trace.output());
    report("J v, forward pass given", least(repetitions, || drop(trace.jvp(&all, &tangent).unwrap())), None);
    report(
        "J^T u, forward pass given",
        least(repetitions, || drop(trace.vjp(&all, &cotangent).unwrap())),
        None,
    );
    drop(trace);
    let product = || {
        network.gauss_newton_products(&x, &Curvature::Softmax, &all, &tangent).unwrap();
    };
    report("Gauss-Newton product", least(repetitions, product), Some(2.5));
    let eight = numbers(vec![8, all.len()]);
    let products = || {
        network.gauss_newton_products(&x, &Curvature::Softmax, &all, &eight).unwrap();
    };
    report("Gauss-Newton product, one of eight", least(repetitions.min(3), products) / 8.0, None);
    let sums = |form, estimate| {
        let mut sums = Accumulator::new(&network, &all, form, estimate).unwrap();
        sums.extend(&Data::new(&network, &data, &likelihood), 0, &mut Run::default()).unwrap();
        sums
    };
    let sampled = FisherEstimate::MonteCarlo { samples: 1, seed: 0 };
    for (what, estimate, target, repetitions) in [
        ("Kronecker factors, empirical", FisherEstimate::Empirical, Some(3.0), repetitions),
        ("Kronecker factors, one sample", sampled, Some(3.0), repetitions),
        ("Kronecker factors, exact (9 passes back)", FisherEstimate::Exact, None, repetitions.min(3)),
    ] {
        report(what, least(repetitions, || drop(sums(Form::Kronecker, estimate))), target);
    }
    let exact = || drop(sums(Form::Diagonal, FisherEstimate::Exact));
    report("diagonal, exact (9 passes back)", least(repetitions.min(3), exact), None);

    // Predictions, in gradients of one image.
    let per_image = unit / batch as f64;
    let few =
        Tabular::new(x.slice_rows(0..images), Targets::Classes((0..images as u32).map(|i| i % 10).collect()));
    let posterior = |approximation| -> Result<Laplace<f32>, Failure> {
        let options = FitOptions {
            approximation,
            prior: PriorKind::Scalar,
            mode: Mode::Trained,
            tune: Tune::None,
            ..FitOptions::default()
        };
        Ok(fit(&Data::new(&network, &few, &likelihood), &options, &mut Run::default())?)
    };
    let z = x.slice_rows(0..images);
    for approximation in [Approximation::Kronecker(FisherEstimate::Empirical), Approximation::Diagonal] {
        let laplace = posterior(approximation.clone())?;
        let ms = least(repetitions.min(3), || drop(laplace.latent(&network, &z, Wanted::Full).unwrap()))
            / images as f64;
        println!(
            "  {:<44} {:>7.2} gradients {:>9.3} ms an image",
            format!("latent covariance, {}", approximation.name()),
            ms / per_image,
            ms
        );
        if let Approximation::Kronecker(_) = approximation {
            let draws = 10;
            let samples = || drop(laplace.function_samples(&network, &z, draws, 1, 1 << 30).unwrap());
            let ms = least(repetitions.min(3), samples) / (images * draws) as f64;
            println!(
                "  {:<44} {:>7.2} gradients {:>9.3} ms an image and sample",
                "function samples, kronecker",
                ms / per_image,
                ms
            );
        }
    }
    // What the trainer makes of the same batch, optimiser and all.
    let options = TrainOptions {
        loss: Loss::CrossEntropy,
        epochs: repetitions.max(2),
        batch,
        rule: Rule::adam(),
        learning_rate: 1e-5,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    };
    let (mut last, mut times) = (Instant::now(), Vec::new());
    train(network.clone(), &data, None, &options, None, &mut |_, _| {
        times.push(last.elapsed().as_secs_f64() * 1e3);
        last = Instant::now();
        Signal::Continue
    })?;
    report("training step (Adam)", times[1..].iter().copied().fold(f64::INFINITY, f64::min), None);
    Ok(())
}

fn main() -> Result<(), Failure> {
    // `cargo bench` adds a flag of its own.
    let argument =
        |i: usize| std::env::args().filter(|a| a != "--bench").nth(i).map(|t| t.parse::<usize>()).transpose();
    let (threads, repetitions) = (argument(1)?.unwrap_or(2), argument(2)?.unwrap_or(7));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    println!("{threads} threads, least of {repetitions} times");
    let perceptron =
        "kind = \"perceptron\"\ninputs = 784\nhidden = [200, 200]\noutputs = 10\nactivation = \"relu\"";
    measure("MLP 784-200-200-10", perceptron, 512, 100, repetitions)?;
    let resnet = "kind = \"resnet\"\ninput = [3, 32, 32]\nclasses = 10\ndepth = 20";
    measure("ResNet-20", resnet, 64, 16, repetitions)?;
    Ok(())
}
