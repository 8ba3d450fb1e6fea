//! Seconds of the passes that the book's speed page compares with PyTorch: a training step of a perceptron, a residual network forward and
//! back, Jacobians and tangent kernels. Random weights and inputs: times do not depend on them.
//!
//! `cargo bench -p posterior-networks --bench network_speed [-- THREADS [PART OF A NAME]]`

use posterior_linalg::random::Streams;
use posterior_networks::operation::{BatchNorm, Convolution, Mean, Pad, Slice};
use posterior_networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior_networks::{
    Activation, Array, GraphBuilder, Mode, Network, Operation, Outputs, Selection, Value,
};
use posterior_optim::{Rule, Schedule, Signal};
use std::time::Instant;

fn numbers(shape: &[usize]) -> Array<f32> {
    let count: usize = shape.iter().product();
    Array::new(
        shape.to_vec(),
        (0..count).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 1000.0 - 0.5).collect(),
    )
}

/// What was asked for; `cargo bench` adds a flag of its own.
fn argument(place: usize) -> Option<String> {
    std::env::args().filter(|a| a != "--bench").nth(place)
}

/// Whether the command line asks for this measurement.
fn wanted(name: &str) -> bool {
    argument(2).is_none_or(|part| name.contains(&part))
}

/// Least and middle of the times of `work`, in milliseconds.
fn time(name: &str, repetitions: usize, mut work: impl FnMut()) {
    if !wanted(name) {
        return;
    }
    work();
    let mut times: Vec<f64> = (0..repetitions)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name}: least {:.3} ms, median {:.3} ms", times[0], times[times.len() / 2]);
}

fn perceptron() -> Result<Network<f32>, Box<dyn std::error::Error>> {
    let mut b = GraphBuilder::new(&[784])?;
    let x = b.linear("0", 200, b.input())?;
    let x = b.activation("1", Activation::Tanh, x)?;
    let x = b.linear("2", 200, x)?;
    let x = b.activation("3", Activation::Tanh, x)?;
    let x = b.linear("4", 10, x)?;
    Ok(Network::initialised(b.finish(x)?, Streams::new(0))?)
}

fn residual() -> Result<Network<f32>, Box<dyn std::error::Error>> {
    let mut b = GraphBuilder::new(&[3, 32, 32])?;
    let normed = |b: &mut GraphBuilder, name: &str, channels, stride, x: Value| {
        let x = b.convolution(name, Convolution::square(channels, 3, stride, 1, false), x)?;
        b.add(&format!("{name}.bn"), Operation::BatchNorm(BatchNorm::default()), &[x])
    };
    let input = b.input();
    let x = normed(&mut b, "stem", 16, 1, input)?;
    let mut x = b.activation("stem.relu", Activation::Relu, x)?;
    for (stage, channels) in [16, 32, 64].into_iter().enumerate() {
        for block in 0..3 {
            let name = format!("{stage}.{block}");
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let y = normed(&mut b, &format!("{name}.a"), channels, stride, x)?;
            let y = b.activation(&format!("{name}.relu"), Activation::Relu, y)?;
            let y = normed(&mut b, &format!("{name}.b"), channels, 1, y)?;
            if stride == 2 {
                let length = b.shape(x)[1] / 2;
                for axis in [1, 2] {
                    let slice = Operation::Slice(Slice { axis, start: 0, step: 2, length });
                    x = b.add(&format!("{name}.slice{axis}"), slice, &[x])?;
                }
                let pad = Operation::Pad(Pad::zeros(vec![channels / 4, 0, 0], vec![channels / 4, 0, 0]));
                x = b.add(&format!("{name}.pad"), pad, &[x])?;
            }
            x = b.add(&format!("{name}.add"), Operation::Add, &[y, x])?;
            x = b.activation(&format!("{name}.out"), Activation::Relu, x)?;
        }
    }
    let x = b.add("pool", Operation::Mean(Mean { axes: vec![1, 2], keep: false }), &[x])?;
    let x = b.linear("fc", 10, x)?;
    Ok(Network::initialised(b.finish(x)?, Streams::new(0))?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = argument(1).map_or(Ok(2), |t| t.parse())?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let classes = |count: u32| Targets::Classes((0..count).map(|i| i % 10).collect());

    let network = perceptron()?;
    let data = Tabular::new(numbers(&[12_800, 784]), classes(12_800));
    let options = TrainOptions {
        loss: Loss::CrossEntropy,
        epochs: 10,
        batch: 128,
        rule: Rule::adam(),
        learning_rate: 1e-3,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    };
    let mut last = Instant::now();
    let mut times = Vec::new();
    let name = "training step 784-200-200-10, batch 128, Adam";
    let options = TrainOptions { epochs: if wanted(name) { 10 } else { 1 }, ..options };
    train(network.clone(), &data, None, &options, None, &mut |_, _| {
        times.push(last.elapsed().as_secs_f64() * 1e3);
        last = Instant::now();
        Signal::Continue
    })?;
    times.sort_by(f64::total_cmp);
    println!(
        "training step 784-200-200-10, batch 128, Adam: least {:.3} ms, median {:.3} ms",
        times[0],
        times[times.len() / 2]
    );

    let mut deep = residual()?;
    let images = numbers(&[64, 3, 32, 32]);
    let flops = deep.graph().flops() as f64 * 64.0 / 1e9;
    println!("ResNet-20: {flops:.2} GFLOP forward for 64 images");
    time("ResNet-20 forward, 64 images", 10, || {
        deep.forward(&images).unwrap();
    });
    let all = Selection::all(deep.graph());
    let cotangent = numbers(&[64, 10]);
    time("ResNet-20 forward and backward, evaluation mode", 10, || {
        deep.trace(images.clone()).unwrap().vjp(&all, &cotangent).unwrap();
    });
    let examples = Tabular::new(images.clone(), classes(64));
    deep.set_mode(Mode::Training);
    let options = TrainOptions { batch: 64, epochs: 1, rule: Rule::nesterov(0.9, 5e-4), ..options };
    time("ResNet-20 training step", 10, || {
        train(deep.clone(), &examples, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    });

    let x = numbers(&[500, 784]);
    let all = Selection::all(network.graph());
    time("Jacobian of 10 outputs, 500 images, perceptron", 3, || {
        network.jacobian(&x, &all, &Outputs::All, 1 << 33).unwrap();
    });
    time("Jacobian by pieces, 10 outputs, 500 images, perceptron", 5, || {
        let mut sum = 0.0f32;
        network
            .jacobian_pieces(&x, &all, &Outputs::All, &mut |_, rows: &Array<f32>| sum += rows.values()[0])
            .unwrap();
        assert!(sum.is_finite());
    });
    time("tangent kernel, 500 x 500 blocks of 10 x 10", 5, || {
        network.tangent_kernel(&all, (&x, &Outputs::All), (&x, &Outputs::All), 1 << 33).unwrap();
    });
    Ok(())
}
