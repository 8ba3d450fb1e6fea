//! Losses against differences, rules by hand, and runs that stop, resume, improve and fail as they should.

use super::*;
use crate::operation::{BatchNorm, Convolution, Mean};
use crate::{Activation, Array, GraphBuilder, Network, Operation};
use posterior_linalg::random::Streams;
use posterior_optim::{Progress, Reason, Rule, Schedule, Signal};

fn wave(count: usize) -> Tabular<f64> {
    let x: Vec<f64> = (0..count).map(|i| i as f64 / count as f64 * 4.0 - 2.0).collect();
    let y = x.iter().map(|x| (2.0 * x).sin()).collect();
    Tabular::new(Array::new(vec![count, 1], x), Targets::Values(Array::new(vec![count, 1], y)))
}

fn perceptron(outputs: usize) -> Network<f64> {
    let mut b = GraphBuilder::new(&[1]).unwrap();
    let x = b.linear("0", 16, b.input()).unwrap();
    let x = b.activation("1", Activation::Tanh, x).unwrap();
    let x = b.linear("2", outputs, x).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(5)).unwrap()
}

fn options(loss: Loss) -> TrainOptions {
    TrainOptions {
        loss,
        epochs: 60,
        batch: 8,
        rule: Rule::adam(),
        learning_rate: 1e-2,
        schedule: Schedule::Cosine,
        clip: None,
        patience: None,
        seed: 1,
    }
}

#[test]
fn losses_agree_with_differences_and_their_definitions() {
    let outputs = Array::new(vec![2, 4], vec![0.3, -1.2, 0.5, 0.1, 1.1, 0.4, -0.7, 0.2]);
    let values = |width: usize| {
        Targets::Values(Array::new(vec![2, width], (0..2 * width).map(|i| i as f64 * 0.3 - 0.5).collect()))
    };
    let noise = [0.3, -0.2, 0.1, 0.5];
    let cases: [(Loss, Targets<f64>, &[f64]); 4] = [
        (Loss::Mse, values(4), &[]),
        (Loss::Gaussian, values(4), &noise),
        (Loss::Gaussian, values(2), &[]),
        (Loss::CrossEntropy, Targets::Classes(vec![2, 0]), &[]),
    ];
    for (loss, targets, noise) in cases {
        assert_eq!(loss.check(&[4], &targets).unwrap(), noise.len());
        let mean = |o: &Array<f64>, noise: &[f64]| loss.evaluate(o, &targets, noise).sum / 2.0;
        let found = loss.evaluate(&outputs, &targets, noise);
        for i in 0..8 {
            let moved = |h: f64| {
                let mut o = outputs.clone();
                o.values_mut()[i] += h;
                mean(&o, noise)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((found.cotangent.values()[i] - slope).abs() < 1e-9, "{loss:?} {i}");
        }
        for i in 0..noise.len() {
            let moved = |h: f64| {
                let mut noise = noise.to_vec();
                noise[i] += h;
                mean(&outputs, &noise)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((found.noise_gradient[i] - slope).abs() < 1e-9, "{loss:?} noise {i}");
        }
    }
    let cross = Loss::CrossEntropy.evaluate(&outputs, &Targets::Classes(vec![2, 0]), &[]);
    let p = |row: usize, c: usize| {
        let e: Vec<f64> = outputs.row(row).iter().map(|v| v.exp()).collect();
        e[c] / e.iter().sum::<f64>()
    };
    assert!((cross.sum + p(0, 2).ln() + p(1, 0).ln()).abs() < 1e-14);
    assert_eq!(cross.correct, 2);
}

#[test]
fn one_step_follows_the_gradient_of_the_whole_batch() {
    let (data, network) = (wave(8), perceptron(1));
    let options = TrainOptions {
        epochs: 1,
        rule: Rule::Sgd { momentum: 0.0, nesterov: false, weight_decay: 0.0 },
        ..options(Loss::Mse)
    };
    let trained = train(network.clone(), &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    let loss = |network: &Network<f64>| evaluate(network, &data, Loss::Mse, &[]).unwrap().loss;
    let selection = crate::Selection::all(network.graph());
    let theta = selection.flatten(network.parameters());
    let new = selection.flatten(trained.network.parameters());
    for (i, (&t, &n)) in theta.iter().zip(&new).enumerate() {
        let at = |h: f64| {
            let mut moved = network.clone();
            let mut theta = theta.clone();
            theta[i] += h;
            selection.assign(&theta, moved.parameters_mut());
            loss(&moved)
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((n - (t - 1e-2 * slope)).abs() < 1e-10, "{i}");
    }
}

#[test]
fn every_loss_learns() {
    let data = wave(64);
    let run = |loss: Loss, outputs: usize| {
        let options = TrainOptions { epochs: 300, ..options(loss) };
        train(perceptron(outputs), &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap()
    };
    let square = run(Loss::Mse, 1);
    assert!(square.state.history.last().unwrap().train_loss < 1e-3, "{:?}", square.state.history.last());
    let gaussian = run(Loss::Gaussian, 1);
    // The learned noise is the mean squared error that is left.
    let error = evaluate(&gaussian.network, &data, Loss::Mse, &[]).unwrap().loss;
    assert!(gaussian.noise_variance.len() == 1 && gaussian.noise_variance[0] < 0.05);
    assert!(gaussian.noise_variance[0] > 0.5 * error);
    assert!(run(Loss::Gaussian, 2).state.history.last().unwrap().train_loss < 0.0);
}

#[test]
fn stopped_and_resumed_runs_are_the_same_bit_for_bit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.checkpoint");
    let (data, validation) = (wave(50), wave(7));
    let options = TrainOptions { epochs: 9, patience: Some(4), clip: Some(0.5), ..options(Loss::Gaussian) };
    let whole =
        train(perceptron(1), &data, Some(&validation), &options, None, &mut |_, _| Signal::Continue).unwrap();
    assert!(whole.state.clipped > 0);
    for stop in [1, 7, 8, 20, 40] {
        let mut observer = |p: &Progress, _: &_| if p.step == stop { Signal::Stop } else { Signal::Continue };
        let part = train(perceptron(1), &data, Some(&validation), &options, None, &mut observer).unwrap();
        assert!(part.reason == Reason::Interrupted && part.state.step == stop);
        let graph = part.network.graph();
        part.state.save(&path, graph, &options, "wave").unwrap();
        let state = TrainState::load(&path, graph, &options, "wave").unwrap();
        assert_eq!(state, part.state);
        let resumed = train(perceptron(1), &data, Some(&validation), &options, Some(state), &mut |_, _| {
            Signal::Continue
        })
        .unwrap();
        assert_eq!(resumed.state, whole.state, "stopped after {stop}");
        assert_eq!(resumed.network.parameters(), whole.network.parameters());
        assert_eq!(resumed.noise_variance, whole.noise_variance);
    }
    let graph = whole.network.graph();
    let other = TrainOptions { batch: 9, ..options };
    let message = TrainState::<f64>::load(&path, graph, &other, "wave").unwrap_err().to_string();
    assert!(message.contains("other settings"), "{message}");
    let message = TrainState::<f64>::load(&path, graph, &options, "tide").unwrap_err().to_string();
    assert!(message.contains("other data"), "{message}");
    let message = TrainState::<f32>::load(&path, graph, &options, "wave").unwrap_err().to_string();
    assert!(message.contains("precision"), "{message}");
    let bytes = std::fs::read(&path).unwrap();
    for length in [0, 7, 100, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert!(TrainState::<f64>::load(&path, graph, &options, "wave").is_err());
    }
}

/// A validation example beyond the range of squares makes an infinite loss, which is no reason to lose the run.
#[test]
fn an_infinite_validation_loss_goes_through_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.checkpoint");
    let far =
        Tabular::new(Array::new(vec![1, 1], vec![0.5]), Targets::Values(Array::new(vec![1, 1], vec![1e200])));
    let (data, options) = (wave(16), TrainOptions { epochs: 3, ..options(Loss::Mse) });
    let run = |state, stop| {
        train(perceptron(1), &data, Some(&far), &options, state, &mut |p, _| {
            if p.step == stop { Signal::Stop } else { Signal::Continue }
        })
        .unwrap()
    };
    let (whole, part) = (run(None, 100), run(None, 4));
    assert_eq!(part.state.history[0].validation.unwrap().loss, f64::INFINITY);
    let graph = part.network.graph();
    part.state.save(&path, graph, &options, "wave").unwrap();
    let state = TrainState::load(&path, graph, &options, "wave").unwrap();
    assert_eq!(state, part.state);
    assert_eq!(run(Some(state), 100).network.parameters(), whole.network.parameters());
    // What cannot be kept is an error, and leaves what was kept.
    let (before, mut broken) = (std::fs::read(&path).unwrap(), part.state.clone());
    broken.first[0] = f64::NAN;
    let message = broken.save(&path, graph, &options, "wave").unwrap_err().to_string();
    assert!(message.contains("tensor `first_moment` has NaN at position 0"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn patience_keeps_the_best_weights() {
    // Validation examples of another function: sooner or later the loss on them rises.
    let data = wave(32);
    let x: Vec<f64> = (0..8).map(|i| i as f64 / 4.0 - 1.0).collect();
    let y = x.iter().map(|x| -0.3 * x).collect();
    let other = Tabular::new(Array::new(vec![8, 1], x), Targets::Values(Array::new(vec![8, 1], y)));
    let options = TrainOptions { epochs: 400, patience: Some(5), ..options(Loss::Mse) };
    let trained =
        train(perceptron(1), &data, Some(&other), &options, None, &mut |_, _| Signal::Continue).unwrap();
    assert!(trained.reason == Reason::Patience);
    let losses: Vec<f64> = trained.state.history.iter().map(|r| r.validation.unwrap().loss).collect();
    let best = losses.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    assert_eq!(trained.best_epoch, Some(best.0 + 1));
    assert_eq!(losses.len(), best.0 + 1 + 5);
    assert_eq!(evaluate(&trained.network, &other, Loss::Mse, &[]).unwrap().loss, *best.1);
}

#[test]
fn batch_norm_learns_its_statistics() {
    let mut b = GraphBuilder::new(&[2, 4, 4]).unwrap();
    let x = b.convolution("c", Convolution::square(3, 3, 1, 1, false), b.input()).unwrap();
    let x = b.add("n", Operation::BatchNorm(BatchNorm::default()), &[x]).unwrap();
    let x = b.add("m", Operation::Mean(Mean { axes: vec![1, 2], keep: false }), &[x]).unwrap();
    let x = b.linear("f", 2, x).unwrap();
    let network = Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(1)).unwrap();
    let values: Vec<f64> = (0..10 * 32).map(|i| f64::from((i * 37 % 101) as u8) / 50.0).collect();
    let inputs = Array::new(vec![10, 2, 4, 4], values);
    let data = Tabular::new(inputs.clone(), Targets::Classes((0..10).map(|i| i % 2).collect()));
    let options = TrainOptions { epochs: 1, batch: 10, learning_rate: 1e-12, ..options(Loss::CrossEntropy) };
    let trained = train(network.clone(), &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    let hidden = network.trace(inputs).unwrap().value(0).clone();
    for channel in 0..3 {
        let values: Vec<f64> =
            (0..10).flat_map(|n| hidden.row(n)[channel * 16..(channel + 1) * 16].to_vec()).collect();
        let mean = values.iter().sum::<f64>() / 160.0;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 159.0;
        let slots = trained.network.graph().parameters();
        let of = |name: &str| {
            let at = slots.iter().position(|s| s.name == name).unwrap();
            trained.network.parameters()[at].values()[channel]
        };
        assert!((of("n.running_mean") - 0.1 * mean).abs() < 1e-10);
        assert!((of("n.running_var") - (0.9 + 0.1 * variance)).abs() < 1e-10);
    }
}

#[test]
fn variances_that_are_not_positive_are_refused() {
    let mut b = GraphBuilder::new(&[2]).unwrap();
    let x = b.add("n", Operation::BatchNorm(BatchNorm::default()), &[b.input()]).unwrap();
    let network = Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(1)).unwrap();
    let mut parameters = network.parameters().to_vec();
    parameters[3].values_mut()[1] = -0.5;
    let message = Network::new(network.graph().clone(), parameters).unwrap_err().to_string();
    assert!(message.contains("n.running_var") && message.contains("channel 1"), "{message}");
}

#[test]
fn images_are_scaled_flipped_and_shifted() {
    let bytes: Vec<u8> = (0..2 * 2 * 3 * 4).map(|i| i as u8).collect();
    let labels = || Targets::<f64>::Classes(vec![0, 1]);
    let plain = Images::new(
        [2, 3, 4],
        bytes.clone(),
        labels(),
        &[0.5, 0.1],
        &[0.2, 2.0],
        Augmentation::default(),
        vec![2, 3, 4],
    );
    let (x, targets) = plain.batch(&[1, 0], None);
    assert_eq!(targets, Targets::Classes(vec![1, 0]));
    assert!((x.row(0)[5] - (29.0 / 255.0 - 0.5) / 0.2).abs() < 1e-15);
    assert!((x.row(1)[12] - (12.0 / 255.0 - 0.1) / 2.0).abs() < 1e-15);
    let augmentation = Augmentation { flip: true, shift: 1 };
    let moved = Images::new(
        [1, 3, 4],
        (1..13).collect(),
        Targets::<f64>::Classes(vec![0]),
        &[0.0],
        &[1.0 / 255.0],
        augmentation,
        vec![12],
    );
    let mut seen = std::collections::HashSet::new();
    for draw in 0..400 {
        let mut rng = Streams::new(0).child("images", draw).stream("images");
        let (x, _) = moved.batch(&[0], Some(&mut rng));
        let found: Vec<i64> = x.values().iter().map(|v| v.round() as i64).collect();
        let matches: Vec<(bool, i64, i64)> = [false, true]
            .into_iter()
            .flat_map(|f| (-1..2).flat_map(move |d| (-1..2).map(move |r| (f, d, r))))
            .filter(|&(flip, down, right)| {
                (0..12).all(|i| {
                    let (y, x) = (i / 4 - down, if flip { 3 - i % 4 } else { i % 4 } - right);
                    let inside = (0..3).contains(&y) && (0..4).contains(&x);
                    found[i as usize] == if inside { 1 + y * 4 + x } else { 0 }
                })
            })
            .collect();
        assert_eq!(matches.len(), 1, "{found:?}");
        seen.insert(matches[0]);
    }
    assert_eq!(seen.len(), 18, "all flips and shifts occur");
}

#[test]
fn runs_that_cannot_go_on_say_why() {
    let data = wave(16);
    let run = |network: Network<f64>, options: TrainOptions| {
        train(network, &data, None, &options, None, &mut |_, _| Signal::Continue).unwrap_err().to_string()
    };
    // Finite outputs whose squares are not; weights that are not finite themselves.
    for (learning_rate, place) in [(1e200, "the loss itself"), (1e308, "`")] {
        let exploding = TrainOptions { learning_rate, rule: Rule::nesterov(0.9, 0.0), ..options(Loss::Mse) };
        let message = run(perceptron(1), exploding);
        assert!(message.contains("step") && message.contains(place), "{message}");
    }
    let message = run(perceptron(1), options(Loss::CrossEntropy));
    assert!(message.contains("classes"), "{message}");
    let message = run(perceptron(3), options(Loss::Mse));
    assert!(message.contains("3 outputs") && message.contains("1 targets"), "{message}");
    let message = run(perceptron(1), TrainOptions { batch: 0, ..options(Loss::Mse) });
    assert!(message.contains("batch"), "{message}");
    let message = run(perceptron(1), TrainOptions { patience: Some(3), ..options(Loss::Mse) });
    assert!(message.contains("validation"), "{message}");
    let classes = Tabular::new(Array::new(vec![2, 1], vec![0.0, 1.0]), Targets::Classes(vec![0, 5]));
    let message = train(perceptron(2), &classes, None, &options(Loss::CrossEntropy), None, &mut |_, _| {
        Signal::Continue
    });
    let message = message.unwrap_err().to_string();
    assert!(message.contains("class 5"), "{message}");
}
