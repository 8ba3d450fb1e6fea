//! The lazy form against the algorithm as printed.

use super::state::{Decay, DualState};
use crate::iterative::stochastic::row_batches;
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::Sampling;
use rand_distr::{Distribution, StandardNormal};

fn normal(rows: usize, columns: usize, name: &str) -> Mat<f64> {
    let mut rng = Streams::new(5).stream(name);
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

#[test]
fn lazy_rows_take_the_printed_steps() {
    let (n, s, r, steps) = (60, 3, 4, 700);
    let root = normal(n, n, "root");
    let matrix = &root * root.transpose();
    let targets = normal(n, s, "targets");
    for sampling in [Sampling::Permutation, Sampling::Independent] {
        // χ = 1 - ρ is where the closed form of the average is a limit; χ = 1 is no average at all.
        for (momentum, chi) in [(0.9, 0.01), (0.9, 0.1), (0.9, 1.0), (0.0, 0.3), (0.5, 0.002)] {
            let start = normal(n, s, "start");
            let scale = 2e-4 * (1.0 - momentum);
            let mut batches = row_batches(n, r, sampling, 8);
            let decay = Decay::new::<f64>(momentum, chi);
            let mut lazy = DualState::new((n, s), Some(start.as_ref()));
            let (mut alpha, mut average) = (start.clone(), start.clone());
            let mut velocity = Mat::<f64>::zeros(n, s);
            for step in 0..steps {
                let batch = batches.batch(step);
                let gradient = |ahead: &Mat<f64>| {
                    Mat::from_fn(r, s, |a, c| {
                        let row = (0..n).map(|k| matrix[(batch[a], k)] * ahead[(k, c)]).sum::<f64>();
                        row + 0.3 * ahead[(batch[a], c)] - targets[(batch[a], c)]
                    })
                };
                let lazy_gradient = gradient(&lazy.lookahead().to_owned());
                lazy.step_along(&decay, &batch, &lazy_gradient, scale);
                let ahead = Mat::from_fn(n, s, |i, j| alpha[(i, j)] + momentum * velocity[(i, j)]);
                let printed = gradient(&ahead);
                velocity *= faer::Scale(momentum);
                for (a, &i) in batch.iter().enumerate() {
                    for c in 0..s {
                        velocity[(i, c)] -= scale * printed[(a, c)];
                    }
                }
                alpha += &velocity;
                average = Mat::from_fn(n, s, |i, j| chi * alpha[(i, j)] + (1.0 - chi) * average[(i, j)]);
            }
            let difference = (lazy.average(&decay) - &average).norm_max();
            assert!(difference < 1e-10 * average.norm_max(), "{sampling:?} {momentum} {chi}: {difference}");
        }
    }
}

#[test]
fn a_momentum_near_one_needs_no_long_table() {
    // One push of row 0, then none for longer than the table of powers is: P is what the printed recursion says.
    for momentum in [0.9999, 0.999_999_999_99] {
        let decay = Decay::new::<f64>(momentum, 1.0);
        let mut state = DualState::new((2, 1), None);
        let (mut place, mut velocity) = (0.0, 0.0);
        for step in 0..6000 {
            let push = if step == 0 { 1.0 } else { 0.0 };
            state.step_along(&decay, &[usize::from(step > 0)], &Mat::from_fn(1, 1, |_, _| push), 1.0);
            velocity = momentum * velocity - push;
            place += velocity;
        }
        let expected: f64 = place + momentum * velocity;
        let found = state.lookahead()[(0, 0)];
        assert!((found - expected).abs() < 1e-10 * expected.abs(), "{momentum}: {found} {expected}");
    }
}

#[test]
fn a_start_at_zero_leaves_the_average() {
    // One coordinate pushed by a constant: after t plain steps α = -c t, and the debiased average is the
    // weighted mean of -c, -2c, ... with weights (1 - χ)^(t - j).
    let decay = Decay::new::<f64>(0.0, 0.25);
    let mut state = DualState::new((1, 1), None);
    for _ in 0..5 {
        state.step_along(&decay, &[0], &Mat::from_fn(1, 1, |_, _| 2.0), 0.5);
    }
    let weights: Vec<f64> = (1..=5).map(|j| 0.75f64.powi(5 - j)).collect();
    let mean =
        -weights.iter().zip(1..).map(|(w, j)| w * f64::from(j)).sum::<f64>() / weights.iter().sum::<f64>();
    assert!((state.average(&decay)[(0, 0)] - mean).abs() < 1e-14);
}
