use super::*;
use crate::total_variation::{Penalised, TotalVariation};
use faer::{Mat, MatRef};
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Unet;
use posterior_networks::{Architecture, Network, Selection};
use posterior_optim::{Clock, Signal};

const SIDE: usize = 8;

fn wave(k: usize) -> f64 {
    ((k * k) as f64 * 0.7391 + k as f64 * 0.317).sin()
}

fn network() -> Network<f32> {
    let unet = Unet { input: vec![1, SIDE, SIDE], channels: vec![4, 4], skips: vec![2], ..Unet::small(true) };
    Network::initialised(Architecture::Unet(unet).graph().unwrap(), Streams::new(1)).unwrap()
}

fn problem() -> (Dense<f64>, Vec<f64>, Vec<f64>) {
    let truth: Vec<f64> = (0..SIDE * SIDE).map(|k| if (k % SIDE) / 3 == 1 { 0.9 } else { 0.1 }).collect();
    let projector = Dense::new(Mat::from_fn(40, SIDE * SIDE, |i, j| wave(17 * i + 5 * j).max(0.0) / 8.0));
    let sinogram = projector.multiply(MatRef::from_column_major_slice(&truth, SIDE * SIDE, 1));
    let sinogram = sinogram.col_as_slice(0).to_vec();
    (projector, sinogram, truth)
}

#[test]
fn the_gradient_of_a_picture_is_that_of_finite_differences() {
    let (projector, sinogram, _) = problem();
    let variation = TotalVariation::sum(&[SIDE, SIDE]).unwrap();
    let objective = Penalised::new(&projector, &sinogram, &variation, 0.03).unwrap();
    let image: Vec<f64> = (0..SIDE * SIDE).map(|k| 0.5 + 0.3 * wave(k)).collect();
    let (_, gradient) = objective.value_and_gradient(&image);
    for i in [0, 9, 37, 63] {
        let value = |step: f64| {
            let mut moved = image.clone();
            moved[i] += step;
            objective.value_and_gradient(&moved).0
        };
        let slope = (value(1e-6) - value(-1e-6)) / 2e-6;
        assert!((slope - gradient[i]).abs() < 1e-7, "{slope} {}", gradient[i]);
    }
}

fn run(
    options: &DeepImagePriorOptions,
    saved: Option<DeepImagePriorState>,
    stop: usize,
) -> (Vec<f64>, DeepImagePriorState) {
    let (projector, sinogram, truth) = problem();
    let variation = TotalVariation::sum(&[SIDE, SIDE]).unwrap();
    let objective = Penalised::new(&projector, &sinogram, &variation, 1e-4).unwrap();
    let input = network_input(&[SIDE, SIDE], &vec![0.5; SIDE * SIDE]);
    let mut training =
        DeepImagePrior::new(network(), input, &objective, options, Some(&truth), saved).unwrap();
    training
        .run(Clock::start(), &mut |p, _| if p.step >= stop { Signal::Stop } else { Signal::Continue })
        .unwrap();
    let (_, picture, state) = training.finish().unwrap();
    (picture, state)
}

#[test]
fn training_explains_the_sinogram_keeps_its_best_and_resumes() {
    let options = DeepImagePriorOptions { learning_rate: 5e-3, iterations: 150, ..Default::default() };
    let (picture, state) = run(&options, None, usize::MAX);
    let (first, best) = (state.losses[0].1, state.best_loss);
    assert!(best < 0.05 * first, "{first} {best}");
    // The picture that comes back is the one with the lowest loss that was seen.
    let (projector, sinogram, truth) = problem();
    let variation = TotalVariation::sum(&[SIDE, SIDE]).unwrap();
    let objective = Penalised::new(&projector, &sinogram, &variation, 1e-4).unwrap();
    assert!((objective.value_and_gradient(&picture).0 / best - 1.0).abs() < 1e-5);
    assert!(state.losses.iter().all(|(_, loss)| *loss >= best));
    let quality = crate::psnr(&picture, &truth);
    assert!(state.best_quality.unwrap().0 >= quality - 1e-9);
    // What is stopped and goes on is the same run.
    let (_, half) = run(&options, None, 60);
    assert_eq!(half.step, 60);
    let (again, resumed) = run(&options, Some(half), usize::MAX);
    assert_eq!((again, resumed), (picture, state));
}

#[test]
fn settings_without_meaning_are_refused() {
    let (projector, sinogram, _) = problem();
    let variation = TotalVariation::sum(&[SIDE, SIDE]).unwrap();
    let objective = Penalised::new(&projector, &sinogram, &variation, 0.0).unwrap();
    let input = || network_input(&[SIDE, SIDE], &vec![0.5; SIDE * SIDE]);
    for options in [
        DeepImagePriorOptions { learning_rate: 0.0, ..Default::default() },
        DeepImagePriorOptions { clip: f64::NAN, ..Default::default() },
        DeepImagePriorOptions { bound: -1.0, ..Default::default() },
        DeepImagePriorOptions { dropout: Some(1.0), ..Default::default() },
    ] {
        assert!(DeepImagePrior::new(network(), input(), &objective, &options, None, None).is_err());
    }
    let options = DeepImagePriorOptions::default();
    assert!(DeepImagePrior::new(network(), input(), &objective, &options, Some(&[0.0]), None).is_err());
}

#[test]
fn dropped_channels_are_masks_of_their_convolutions_and_keep_the_mean() {
    let network = network();
    let dropout = ChannelDropout::new(network.graph(), 0.25);
    let graph = network.graph();
    let (mut sum, rounds) = (vec![0.0f64; Selection::all(graph).len()], 400);
    for number in 0..rounds {
        let mut parameters = network.parameters().to_vec();
        dropout.mask(&mut parameters, 7, number);
        for (position, slot) in graph.parameters().iter().enumerate() {
            let wide =
                slot.name.contains("conv") && !slot.name.starts_with("skip") && !slot.name.starts_with("out");
            let (old, new) = (&network.parameters()[position], &parameters[position]);
            if !wide {
                assert_eq!(old.values(), new.values(), "{}", slot.name);
                continue;
            }
            // Whole channels, weight and bias alike.
            for channel in 0..old.rows() {
                let ratio = |i: usize| new.row(channel)[i] / old.row(channel)[i];
                let first = ratio(0);
                assert!(first == 0.0 || (first - 1.0 / 0.75).abs() < 1e-5);
                assert!((0..old.row_len()).all(|i| (ratio(i) - first).abs() < 1e-4));
            }
        }
        let flat = Selection::all(graph).flatten(&parameters);
        sum.iter_mut().zip(flat).for_each(|(s, v)| *s += f64::from(v));
    }
    // A kept channel's factor has mean 1 and variance rate / (1 - rate); five standard errors.
    let tolerance = 5.0 * (0.25f64 / 0.75 / rounds as f64).sqrt();
    for (sum, own) in sum.iter().zip(Selection::all(graph).flatten(network.parameters())) {
        let own = f64::from(own);
        assert!((sum / rounds as f64 - own).abs() < tolerance * own.abs() + 1e-9);
    }
    // Gradients under a mask are those of the masked network: training lowers the loss.
    let options = DeepImagePriorOptions {
        learning_rate: 5e-3,
        iterations: 200,
        dropout: Some(0.05),
        ..Default::default()
    };
    let (_, state) = run(&options, None, usize::MAX);
    let mean = |part: &[(usize, f64)]| part.iter().map(|l| l.1).sum::<f64>() / part.len() as f64;
    assert!(mean(&state.losses[180..]) < 0.5 * mean(&state.losses[..10]));
}
