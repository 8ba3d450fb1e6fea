//! Error bars for a trained network, without training it again.
//!
//! `cargo run --release -p posterior --example network`

use posterior::Laplace;
use posterior::linalg::random::Streams;
use posterior::networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior::networks::{Architecture, Array, Network};
use posterior::optim::{Rule, Schedule, Signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Somebody's network: two classes inside and outside of a ring.
    let wave = |i: usize| (i as f64 * 0.754_877_666).fract() * 4.0 - 2.0;
    let x: Vec<[f64; 2]> =
        (0..400).map(|i| [wave(i), (i as f64 * 0.569_840_29).fract() * 4.0 - 2.0]).collect();
    let classes: Vec<u32> = x.iter().map(|[a, b]| u32::from(a.hypot(*b) > 1.3)).collect();
    let network = trained(&x, &classes)?;

    // The part that is ours. `Laplace::of("net.onnx")` opens a file instead; `.unseen(&x, &y)` compares curvatures on examples that it has not seen.
    let fitted = Laplace::of(&network).categorical().fit(&x, &classes)?;

    let new = [[0.0, 0.0], [1.3, 0.0], [1.9, 1.9], [30.0, -20.0]];
    let predicted = fitted.predict(&new)?;
    let probabilities = predicted.probabilities()?;
    let logits = network.forward(&Array::new(vec![4, 2], new.into_iter().flatten().collect()))?;
    for (row, point) in new.iter().enumerate() {
        let [a, b] = [logits.row(row)[0], logits.row(row)[1]];
        let plain = 1.0 / (1.0 + (a - b).exp());
        println!(
            "{point:?}: outside with {:.3}, the network alone says {plain:.3}",
            probabilities[2 * row + 1]
        );
    }
    Ok(())
}

/// A small network, trained the usual way.
fn trained(x: &[[f64; 2]], classes: &[u32]) -> Result<Network<f64>, Box<dyn std::error::Error>> {
    let text = "kind = 'perceptron'\ninputs = 2\nhidden = [20, 20]\noutputs = 2\nactivation = 'tanh'";
    let network = Network::initialised(Architecture::from_toml(text)?.graph()?, Streams::new(0))?;
    let inputs = Array::new(vec![x.len(), 2], x.iter().flatten().copied().collect());
    let data = Tabular::new(inputs, Targets::Classes(classes.to_vec()));
    let options = TrainOptions {
        loss: Loss::CrossEntropy,
        epochs: 150,
        batch: 50,
        rule: Rule::adam(),
        learning_rate: 0.01,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    };
    Ok(train(network, &data, None, &options, None, &mut |_, _| Signal::Continue)?.network)
}
