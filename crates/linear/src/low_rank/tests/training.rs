//! Training: rows in blocks, weight decay, what a fit says of its features, and how it ends where an intensity explodes.

use super::maps::{BYTES, Squashed, own_rows};
use super::*;
use crate::LinearError;
use posterior_likelihoods::Gaussian;
use posterior_optim::{Adaptive, Signal, check};

const ROWS: usize = 40;
const RANK: usize = 3;

/// Rows with everything that a row may have.
struct Table {
    x: Mat<f64>,
    y: Mat<f64>,
    noise: Vec<f64>,
    weights: Vec<f64>,
    offsets: Vec<f64>,
}

impl Table {
    fn new() -> Self {
        let x = normal(ROWS, 2, "inputs");
        // Row 2 of these has the largest features: it changes places with one that is in the middle of a block.
        let numbers = |scale: f64| (0..ROWS).map(|i| scale * (1.0 + (i % 5) as f64)).collect();
        Self {
            x: Mat::from_fn(ROWS, 2, |i, j| {
                x[(
                    match i {
                        2 => 23,
                        23 => 2,
                        i => i,
                    },
                    j,
                )]
            }),
            y: normal(ROWS, 1, "targets"),
            noise: numbers(0.05),
            weights: numbers(0.4),
            offsets: numbers(-0.1),
        }
    }

    fn data(&self) -> LowRankData<'_> {
        let (noise, weights) = (Some(&self.noise[..]), Some(&self.weights[..]));
        let offsets = Some(&self.offsets[..]);
        let observed = ObservedRows { targets: self.y.as_ref(), noise, weights, offsets };
        LowRankData { inputs: self.x.as_ref(), observed }
    }
}

fn fit(features: &dyn LearnedFeatures, data: &dyn LowRankRows, options: &LowRankOptions) -> LowRankFit {
    let likelihood = Box::new(Gaussian::new(0.3, 1e-6));
    fit_low_rank(features.clone_box(), likelihood, data, None, options, None, &mut |_, _| Signal::Continue)
        .unwrap()
}

/// All corrections, with their rests as a penalty and as noise.
fn corrections() -> Vec<LowRankOptions> {
    let each = [(Correction::None, false), (Correction::Uniform, false), (Correction::Uniform, true)];
    let own = [(Correction::Own, false), (Correction::Own, true)];
    let options = |(correction, rest_as_noise)| LowRankOptions {
        correction,
        rest_as_noise,
        trace_weight: 0.7,
        corrected: true,
        ..LowRankOptions::default()
    };
    each.into_iter().chain(own).map(options).collect()
}

/// The row with the largest `|a|²`, and that number.
fn largest(features: &dyn LearnedFeatures, x: &Mat<f64>) -> (usize, f64) {
    let k = squares(&features.values(x.as_ref()).unwrap().features);
    k.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

/// Rows that stand elsewhere, from the last to the first.
#[derive(Debug)]
struct ReversedRows {
    backwards: OwnedRows,
    fails: bool,
}

impl LowRankRows for ReversedRows {
    fn row_count(&self) -> usize {
        self.backwards.inputs.nrows()
    }

    fn rows_in(&self, rows: std::ops::Range<usize>) -> Result<RowBlock<'_>, LinearError> {
        self.rows_at(&rows.collect::<Vec<_>>())
    }

    fn rows_at(&self, rows: &[usize]) -> Result<RowBlock<'_>, LinearError> {
        if self.fails {
            return Err(LinearError::Rows { reason: "the disk is gone".into() });
        }
        let last = self.row_count() - 1;
        let all = RowBlock::Copy(self.backwards.clone());
        Ok(RowBlock::Copy(all.data().owned(&rows.iter().map(|i| last - i).collect::<Vec<_>>())))
    }
}

#[test]
fn rows_from_elsewhere_train_as_rows_in_memory_do() {
    let table = Table::new();
    let data = table.data();
    let backwards = data.owned(&(0..ROWS).rev().collect::<Vec<_>>());
    let mut source = ReversedRows { backwards, fails: false };
    let features = Squashed::new(RANK, 2, 7);
    let batches = Training::Batches { size: 7, power: 0.0, divergence_weight: 1.0 };
    for training in [Training::Evidence, batches] {
        for options in corrections() {
            let rest_as_noise = options.rest_as_noise && training == Training::Evidence;
            let options = LowRankOptions { training, steps: 6, rest_as_noise, ..options };
            let [own, other] =
                [&data as &dyn LowRankRows, &source].map(|rows| fit(&features, rows, &options));
            assert_eq!(own.objective.to_bits(), other.objective.to_bits());
            let [a, b] = [&own, &other].map(|fit| fit.posterior.distribution());
            assert_eq!((a.mean(), a.roots()), (b.mean(), b.roots()));
            assert_eq!(own.diagnostics, other.diagnostics);
        }
    }
    source.fails = true;
    let likelihood = || Box::new(Gaussian::new(0.3, 1e-6));
    let refused = refit(features.clone_box(), likelihood(), &source, &LowRankOptions::default());
    assert!(refused.unwrap_err().to_string().contains("the disk is gone"));
    // Sizes that do not agree, in memory.
    let short = ObservedRows { noise: Some(&table.noise[1..]), ..data.observed };
    let short = LowRankData { observed: short, ..data };
    let refused = refit(features.clone_box(), likelihood(), &short, &LowRankOptions::default());
    assert!(matches!(refused, Err(LinearError::Shape { .. })));
}

#[test]
fn blocks_of_rows_do_not_show() {
    let table = Table::new();
    let data = table.data();
    let (whole, parts) = (Squashed::new(RANK, 2, ROWS), Squashed::new(RANK, 2, 7));
    // The row that the uniform correction looks for is neither in the first block nor at the beginning of another.
    let (row, most) = largest(&whole, &table.x);
    assert!(row > 7 && row % 7 != 0, "{row}");
    let likelihood = || Gaussian::new(0.3, 1e-6);
    for options in corrections() {
        let (value, gradient, theta) = objective(&whole, &likelihood(), &data, &options, &[]).unwrap();
        let at = |theta: &[f64]| objective(&whole, &likelihood(), &data, &options, theta).unwrap().0;
        check::assert_close(&gradient, &check::gradient(at, &theta), 2e-6, 2e-6);
        let scale = gradient.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        // Nothing is kept between the passes, the first two blocks and half of the third (which is not kept, then), or all.
        let each = BYTES + 8 * RANK;
        for kept_bytes in [0, 18 * each, ROWS * each] {
            let options = LowRankOptions { kept_bytes, ..options.clone() };
            let (again, slopes, _) = objective(&parts, &likelihood(), &data, &options, &[]).unwrap();
            assert_near(again, value, 1e-13 * value.abs());
            for (found, expected) in slopes.iter().zip(&gradient) {
                assert_near(*found, *expected, 1e-12 * scale);
            }
        }
        let refitted =
            |map: &Squashed| refit(map.clone_box(), Box::new(likelihood()), &data, &options).unwrap();
        let (one, other) = (refitted(&whole), refitted(&parts));
        assert!((one.distribution().mean() - other.distribution().mean()).norm_max() < 1e-12);
        let roots = [&one, &other].map(|posterior| posterior.distribution().roots()[0].clone());
        assert!((&roots[0] - &roots[1]).norm_max() < 1e-12);
        if let ResidualVariance::Uniform { largest } = other.residual_variance() {
            assert_eq!(largest, most);
        }
    }
}

#[test]
fn the_largest_variance_is_that_of_all_rows_at_the_end() {
    let table = Table::new();
    let data = table.data();
    let batches = Training::Batches { size: 6, power: 0.0, divergence_weight: 1.0 };
    for training in [Training::Evidence, batches, Training::Point { size: 6 }] {
        let options = LowRankOptions {
            training,
            correction: Correction::Uniform,
            trace_weight: 0.1,
            corrected: true,
            steps: 3,
            learning_rate: 0.05,
            ..LowRankOptions::default()
        };
        let start = Squashed::new(RANK, 2, 7);
        let fit = fit(&start, &data, &options);
        let values = fit.posterior.features().values(table.x.as_ref()).unwrap();
        let k = squares(&values.features);
        let (least, most) =
            (k.iter().copied().fold(f64::MAX, f64::min), k.iter().copied().fold(0.0, f64::max));
        assert!((most - largest(&start, &table.x).1).abs() > 1e-3, "features have moved");
        let ResidualVariance::Uniform { largest } = fit.posterior.residual_variance() else {
            panic!("{:?}", fit.posterior.residual_variance())
        };
        assert_near(largest, most, 1e-14 * most);
        assert_near(fit.diagnostics.smallest_variance, least, 1e-14 * most);
        assert_near(fit.diagnostics.largest_variance, most, 1e-14 * most);
    }
}

#[test]
fn weight_decay_pulls_at_the_weights_of_a_network_alone() {
    let table = Table::new();
    let data = table.data();
    let features = Squashed::new(RANK, 2, 7);
    let decays = features.decays();
    let rate = 0.01;
    for training in [Training::Evidence, Training::Batches { size: ROWS, power: 0.0, divergence_weight: 1.0 }]
    {
        let after = |steps: usize, weight_decay: f64| {
            let options = LowRankOptions {
                training,
                steps,
                settles: false,
                learning_rate: rate,
                weight_decay,
                ..LowRankOptions::default()
            };
            fit(&features, &data, &options).state.theta
        };
        // Descended is minus the objective for each row, and of the weights the decay.
        let expected = |steps: usize, weight_decay: f64| {
            let options = LowRankOptions { training, ..LowRankOptions::default() };
            let likelihood = Gaussian::new(0.3, 1e-6);
            let of = |theta: &[f64]| objective(&features, &likelihood, &data, &options, theta).unwrap();
            let (mut theta, mut adam) = (of(&[]).2, Adaptive::adam(rate));
            for _ in 0..steps {
                let mut gradient: Vec<f64> = of(&theta).1.iter().map(|slope| -slope).collect();
                let weights = decays.iter().enumerate().filter(|(_, decays)| **decays);
                weights.for_each(|(k, _)| gradient[k] += weight_decay * theta[k]);
                adam.step_times(&mut theta, &gradient, 1.0);
            }
            theta
        };
        let mut found = Vec::new();
        for decay in [0.0, 3.0] {
            let theta = after(4, decay);
            let reference = expected(4, decay);
            assert_eq!(theta.len(), reference.len());
            // Batches are the rows in another order, whose sums differ by their rounding.
            theta.iter().zip(&reference).for_each(|(found, expected)| assert_near(*found, *expected, 1e-9));
            found.push(theta);
        }
        let moved = |k: usize| (found[0][k] - found[1][k]).abs();
        assert!((0..decays.len()).any(|k| decays[k] && moved(k) > 1e-3 * rate));
        // One step from the same place: what does not decay takes the same one.
        let (without, with) = (after(1, 0.0), after(1, 3.0));
        let others = (0..without.len()).filter(|&k| decays.get(k) != Some(&true));
        others.for_each(|k| assert_eq!(without[k].to_bits(), with[k].to_bits(), "{k}"));
    }
}

#[test]
fn weights_of_a_single_value_are_a_layer_that_decays() {
    let table = Table::new();
    let data = table.data();
    let features = Squashed::new(RANK, 2, 7);
    let training = Training::Point { size: ROWS };
    // Two steps: the weights begin at 0, where there is nothing to pull at.
    let options = LowRankOptions {
        training,
        steps: 2,
        settles: false,
        learning_rate: 0.1,
        ..LowRankOptions::default()
    };
    let after = |weight_decay: f64| {
        let fit = fit(&features, &data, &LowRankOptions { weight_decay, ..options.clone() });
        fit.state.theta[features.decays().len() + 1..].to_vec()
    };
    let (without, with) = (after(0.0), after(100.0));
    assert_eq!(without.len(), RANK);
    // The first step was of length 0.1 either way; the second goes back.
    assert!(
        without.iter().zip(&with).all(|(without, with)| with.abs() < 0.1 && without.abs() > with.abs()),
        "{without:?} {with:?}"
    );
}

#[test]
fn diagnostics_say_how_many_directions_features_use() {
    // Shares ¼, ½, ¼ have the entropy 3/2 log 2, whatever the directions are.
    let turn = normal(3, 3, "turn").qr().compute_Q();
    let spectrum = Mat::from_fn(3, 3, |i, j| if i == j { [1.0, 2.0, 1.0][i] } else { 0.0 });
    let gram = &turn * spectrum * turn.transpose();
    let found = FeatureDiagnostics::new(gram.as_ref(), (0.5, 2.0)).unwrap();
    assert_near(found.effective_rank, 2f64.powf(1.5), 1e-13);
    assert_eq!((found.smallest_variance, found.largest_variance), (0.5, 2.0));

    // Of a fit: rows along two axes, three of length 1 and one of √3, share ½ and ½.
    let run = |x: &Mat<f64>| {
        let y = Mat::zeros(4, 1);
        let observed = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
        let options = LowRankOptions { steps: 1, ..LowRankOptions::default() };
        fit(&*own_rows(2), &LowRankData { inputs: x.as_ref(), observed }, &options)
    };
    let axes = Mat::from_fn(4, 2, |i, j| match (i, j) {
        (3, 1) => 3f64.sqrt(),
        (0..3, 0) => 1.0,
        _ => 0.0,
    });
    let FeatureDiagnostics { effective_rank, smallest_variance, largest_variance } = run(&axes).diagnostics;
    assert_near(effective_rank, 2.0, 1e-14);
    assert_eq!(smallest_variance, 1.0);
    assert_near(largest_variance, 3.0, 1e-15);
    // One direction, and none.
    assert_near(run(&Mat::from_fn(4, 2, |i, _| i as f64)).diagnostics.effective_rank, 1.0, 1e-14);
    let dead = run(&Mat::zeros(4, 2));
    let nothing = FeatureDiagnostics { effective_rank: 0.0, smallest_variance: 0.0, largest_variance: 0.0 };
    assert_eq!(dead.diagnostics, nothing);
    assert!(dead.objective.is_finite());
}

#[test]
fn an_intensity_that_explodes_ends_training_with_what_to_do() {
    // Two events and two nodes, and a step of 500 in the logarithm of the intensity.
    let x = normal(4, 2, "places");
    let targets = Mat::from_fn(4, 1, |i, _| f64::from(u8::from(i < 2)));
    let observed = ObservedRows { targets: targets.as_ref(), noise: None, weights: None, offsets: None };
    let data = LowRankData { inputs: x.as_ref(), observed };
    let run = |learning_rate: f64| {
        let training = Training::Batches { size: 4, power: 0.0, divergence_weight: 1.0 };
        let options = LowRankOptions { training, learning_rate, steps: 5, ..LowRankOptions::default() };
        let features = Squashed::new(RANK, 2, 7).clone_box();
        fit_low_rank(features, Box::new(CoxRows), &data, None, &options, None, &mut |_, _| Signal::Continue)
    };
    assert!(run(0.01).unwrap().objective.is_finite());
    let error = run(500.0).unwrap_err();
    assert!(
        matches!(error, crate::LinearError::Exploded { likelihood: "cox", steps: 1, row: 0..4 }),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(message.contains("intensity") && message.contains("smaller step size"), "{message}");
}
