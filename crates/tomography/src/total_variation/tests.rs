use super::*;
use crate::image_prior::ImageObjective;
use faer::{Mat, MatRef};
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_optim::{Clock, Limits, Signal, drive};

fn wave(k: usize) -> f64 {
    ((k * k) as f64 * 0.7391 + k as f64 * 0.317).sin()
}

#[test]
fn value_and_subgradient_are_those_of_all_pairs() {
    for shape in [vec![5, 7], vec![3, 4, 5], vec![1, 6], vec![4, 1]] {
        let pixels: usize = shape.iter().product();
        let picture: Vec<f64> = (0..pixels).map(wave).collect();
        let pairs = neighbours(&shape);
        let expected: f64 = pairs.iter().map(|(i, j)| (picture[*i] - picture[*j]).abs()).sum();
        let (sum, mean) = (TotalVariation::new(&shape), TotalVariation::mean(&shape));
        assert!((sum.value(&picture) - expected).abs() < 1e-12);
        assert!((mean.value(&picture) - expected / pairs.len() as f64).abs() < 1e-12);
        let mut slope = vec![0.0; pixels];
        sum.subgradient(&picture, &mut slope);
        for i in 0..pixels {
            let value = |step: f64| {
                let mut moved = picture.clone();
                moved[i] += step;
                sum.value(&moved)
            };
            assert!(((value(1e-7) - value(-1e-7)) / 2e-7 - slope[i]).abs() < 1e-6);
        }
        // sign(0) = 0.
        let mut flat = vec![0.0; pixels];
        sum.subgradient(&vec![0.4; pixels], &mut flat);
        assert!(flat.iter().all(|s| *s == 0.0));
    }
}

fn minimum(
    projector: &dyn LinearOperator<f64>,
    sinogram: &[f64],
    shape: &[usize],
    weight: f64,
    tolerance: f64,
) -> PrimalDualState {
    let start = vec![0.5; shape.iter().product()];
    let options = PrimalDualOptions { tolerance, iterations: 200_000, largest: Some(3.0) };
    let tv = TotalVariation::new(shape);
    let mut search = PrimalDual::new(projector, sinogram, tv, weight, &start, &options, None).unwrap();
    let limits = Limits { steps: options.iterations, time: None };
    drive(&mut search, limits, Clock::start(), &mut |_, _| Signal::Continue).unwrap();
    search.into_state()
}

#[test]
fn two_pixels_are_pulled_together_as_the_closed_form_says() {
    // 1/2 ((a - 1)² + (b - 2)²) + w |a - b|: both move by w towards each other until they meet.
    let identity = Dense::new(Mat::identity(2, 2));
    for (weight, expected) in [(0.2, [1.2, 1.8]), (0.7, [1.5, 1.5])] {
        let found = minimum(&identity, &[1.0, 2.0], &[1, 2], weight, 1e-10);
        for (a, b) in found.picture.iter().zip(expected) {
            assert!((a - b).abs() < 1e-4, "{:?}", found.picture);
        }
    }
    // What wants to be negative is zero.
    let found = minimum(&identity, &[-1.0, 2.0], &[1, 2], 0.1, 1e-10);
    assert!((found.picture[0]).abs() < 1e-4 && (found.picture[1] - 1.9).abs() < 1e-4);
}

fn problem() -> (Dense<f64>, Vec<f64>) {
    let truth: Vec<f64> = (0..36).map(|k| if k % 6 < 3 { 0.2 } else { 1.0 }).collect();
    let projector = Dense::new(Mat::from_fn(20, 36, |i, j| wave(17 * i + 5 * j).max(0.0)));
    let y = projector.multiply(MatRef::from_column_major_slice(&truth, 36, 1));
    (projector, (0..20).map(|i| y[(i, 0)] + 0.1 * wave(i + 400)).collect())
}

#[test]
fn the_gap_bounds_the_loss_and_adam_comes_no_lower() {
    let (projector, sinogram) = problem();
    let found = minimum(&projector, &sinogram, &[6, 6], 0.02, 1e-6);
    assert!(found.gap <= 1e-6, "{}", found.gap);
    let objective = ImageObjective::new(&projector, &sinogram, TotalVariation::new(&[6, 6]), 0.02).unwrap();
    let (loss, _) = objective.value_and_gradient(&found.picture);
    assert!((loss / found.loss - 1.0).abs() < 1e-12);
    let options = AdamOnPixelsOptions { learning_rate: 1e-3, iterations: 20_000 };
    let mut adam = AdamOnPixels::new(&objective, vec![0.5; 36], &options).unwrap();
    let limits = Limits { steps: options.iterations, time: None };
    drive(&mut adam, limits, Clock::start(), &mut |_, _| Signal::Continue).unwrap();
    let (picture, lowest) = adam.best();
    assert!(picture.iter().all(|v| *v >= 0.0));
    // No picture is below what the gap proves, and Adam ends near it.
    assert!(lowest >= loss * (1.0 - found.gap) - 1e-12, "{lowest} {loss}");
    assert!(lowest < loss * 1.02, "{lowest} {loss}");
}

#[test]
fn a_search_that_was_stopped_goes_on_bit_for_bit() {
    let (projector, sinogram) = problem();
    let options = PrimalDualOptions { tolerance: 1e-9, iterations: 90, largest: None };
    let run = |saved, stop: usize| {
        let tv = TotalVariation::new(&[6, 6]);
        let mut search =
            PrimalDual::new(&projector, &sinogram, tv, 0.02, &[0.5; 36], &options, saved).unwrap();
        let limits = Limits { steps: 90, time: None };
        drive(&mut search, limits, Clock::start(), &mut |p, _| {
            if p.step == stop { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        search.into_state()
    };
    let half = run(None, 37);
    assert_eq!(half.step, 37);
    assert_eq!(run(Some(half), 0), run(None, 0));
}

#[test]
fn what_has_no_meaning_is_refused() {
    let (projector, sinogram) = problem();
    let of = |weight, start: &[f64], options: &PrimalDualOptions| {
        PrimalDual::new(&projector, &sinogram, TotalVariation::new(&[6, 6]), weight, start, options, None)
            .is_err()
    };
    let fine = PrimalDualOptions::default();
    assert!(of(-1.0, &[0.5; 36], &fine) && of(0.1, &[0.5; 35], &fine));
    assert!(of(0.1, &[0.5; 36], &PrimalDualOptions { tolerance: 0.0, ..fine.clone() }));
    assert!(of(0.1, &[0.5; 36], &PrimalDualOptions { largest: Some(f64::NAN), ..fine }));
}
