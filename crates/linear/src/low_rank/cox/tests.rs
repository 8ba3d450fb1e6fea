//! Rows of events and nodes against the process: the closed forms of section 4.6, draws, finite differences.

use super::*;
use crate::low_rank::{DataTerm, DataTermBuffers, ObservedRows, WeightDistribution, natural_step};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::check;
use rand_distr::{Distribution, StandardNormal};

const RANK: usize = 3;
const EVENTS: usize = 4;
const ROWS: usize = 9;
/// What an event counts, and a node.
const WEIGHTS: (f64, f64) = (1.7, 0.4);
/// Prior means of the log intensity at events and nodes.
const MEANS: [f64; ROWS] = [0.1, -0.2, 0.3, 0.0, 0.2, 0.1, -0.3, 0.4, 0.0];

/// Of events, then of nodes.
fn features() -> Mat<f64> {
    let mut rng = Streams::new(9).stream("features");
    Mat::from_fn(RANK, ROWS, |_, _| {
        let e: f64 = StandardNormal.sample(&mut rng);
        0.5 * e
    })
}

fn distribution(numbers: &[f64]) -> WeightDistribution {
    let mut q = WeightDistribution::prior(RANK, 1, true);
    q.set_unconstrained(numbers);
    q
}

fn start() -> Vec<f64> {
    (0..WeightDistribution::prior(RANK, 1, true).unconstrained_len()).map(|i| 0.2 - 0.05 * i as f64).collect()
}

/// Targets, weights and offsets of the rows: events count by their weights, nodes by their offsets.
struct Table {
    targets: Mat<f64>,
    weights: Vec<f64>,
    offsets: Vec<f64>,
}

impl Table {
    fn new() -> Self {
        let event = |i: usize| i < EVENTS;
        Self {
            targets: Mat::from_fn(ROWS, 1, |i, _| f64::from(u8::from(event(i)))),
            weights: (0..ROWS).map(|i| if event(i) { WEIGHTS.0 } else { 1.0 }).collect(),
            offsets: (0..ROWS).map(|i| MEANS[i] + if event(i) { 0.0 } else { WEIGHTS.1.ln() }).collect(),
        }
    }

    fn rows(&self) -> ObservedRows<'_> {
        let (weights, offsets) = (Some(&self.weights[..]), Some(&self.offsets[..]));
        ObservedRows { targets: self.targets.as_ref(), noise: None, weights, offsets }
    }
}

fn squares(features: &Mat<f64>) -> Vec<f64> {
    (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect()
}

fn value(q: &WeightDistribution, features: &Mat<f64>, power: f64) -> f64 {
    let (table, term) = (Table::new(), DataTerm::new(q, &CoxRows, power));
    let zero = Mat::zeros(ROWS, 1);
    let own = squares(features);
    term.value(features.as_ref(), zero, &own, &table.rows(), &mut DataTermBuffers::default())
}

/// Intensities at the rows under one value of the weights.
fn intensities(features: &Mat<f64>, w: &Mat<f64>) -> Vec<f64> {
    let fitted = features.transpose() * w;
    (0..ROWS).map(|i| (MEANS[i] + fitted[(i, 0)]).exp()).collect()
}

#[test]
fn slopes_are_finite_differences_and_the_value_is_the_expectation() {
    let (features, begin) = (features(), start());
    let columns: Vec<f64> = (0..ROWS).flat_map(|i| features.col_as_slice(i).to_vec()).collect();
    let numeric = check::gradient(
        |point| {
            let q = distribution(&point[..begin.len()]);
            let moved = Mat::from_fn(RANK, ROWS, |j, i| point[begin.len() + i * RANK + j]);
            value(&q, &moved, 0.0) - q.divergence()
        },
        &[begin.clone(), columns].concat(),
    );
    let q = distribution(&begin);
    let (table, term, mut buffers) =
        (Table::new(), DataTerm::new(&q, &CoxRows, 0.0), DataTermBuffers::default());
    let (zero, own) = (Mat::zeros(ROWS, 1), squares(&features));
    let slopes = term.slopes(features.as_ref(), zero, &own, &table.rows(), 1.0, &mut buffers);
    let mut exact = Vec::new();
    slopes.of_q.unconstrained_into(&q, 1.0, 1.0, &mut exact);
    let h = slopes.of_prior_variances();
    let adjoint = term.features_adjoint(&slopes, &mut buffers);
    for i in 0..ROWS {
        exact.extend((0..RANK).map(|j| adjoint[(j, i)] + 2.0 * h[i] * features[(j, i)]));
    }
    check::assert_close(&exact, &numeric, 1e-6, 1e-6);

    // The mean over draws of w of the log density, within five of its standard errors.
    let (draws, mut rng) = (200_000, Streams::new(1).stream("draws"));
    let (mut sum, mut of_squares) = (0.0, 0.0);
    for _ in 0..draws {
        let white = Mat::<f64>::from_fn(RANK, 1, |_, _| StandardNormal.sample(&mut rng));
        let rates = intensities(&features, &(q.mean() + &q.roots()[0] * white));
        let (events, nodes) = rates.split_at(EVENTS);
        let density =
            WEIGHTS.0 * events.iter().map(|r| r.ln()).sum::<f64>() - WEIGHTS.1 * nodes.iter().sum::<f64>();
        (sum, of_squares) = (sum + density, of_squares + density * density);
    }
    let mean = sum / draws as f64;
    let error = ((of_squares / draws as f64 - mean * mean) / draws as f64).sqrt();
    assert!((mean - slopes.value).abs() < 5.0 * error, "{mean} {} {error}", slopes.value);
}

#[test]
fn rows_of_events_and_nodes_say_what_the_process_says() {
    let (features, q) = (features(), distribution(&start()));
    let (mean, covariance) = (q.mean().to_owned(), &q.roots()[0] * q.roots()[0].transpose());
    // The closed forms at the top of the module, written out.
    let exponent = |i: usize| {
        let a = features.col(i);
        MEANS[i] + a.transpose() * mean.col(0) + 0.5 * (a.transpose() * &covariance * a)
    };
    let rate = |i: usize| WEIGHTS.1 * exponent(i).exp();
    let (mut of_mean, mut of_covariance) = (Mat::<f64>::zeros(RANK, 1), Mat::<f64>::zeros(RANK, RANK));
    for i in 0..ROWS {
        for j in 0..RANK {
            let a = features[(j, i)];
            of_mean[(j, 0)] += if i < EVENTS { WEIGHTS.0 * a } else { -rate(i) * a };
            if i >= EVENTS {
                (0..RANK).for_each(|k| of_covariance[(j, k)] -= 0.5 * rate(i) * a * features[(k, i)]);
            }
        }
    }
    let turned = &covariance * &features;
    let (table, term, mut buffers) =
        (Table::new(), DataTerm::new(&q, &CoxRows, 0.0), DataTermBuffers::default());
    let (zero, own) = (Mat::zeros(ROWS, 1), squares(&features));
    let slopes = term.slopes(features.as_ref(), zero, &own, &table.rows(), 1.0, &mut buffers);
    assert!((&slopes.of_q.mean - &of_mean).norm_max() < 1e-12);
    assert!((&slopes.of_q.covariances[0] - &of_covariance).norm_max() < 1e-12);
    let h = slopes.of_prior_variances();
    let adjoint = term.features_adjoint(&slopes, &mut buffers);
    for i in 0..ROWS {
        for j in 0..RANK {
            let node = -rate(i) * (mean[(j, 0)] + turned[(j, i)]);
            let expected = if i < EVENTS { WEIGHTS.0 * mean[(j, 0)] } else { node };
            assert!((adjoint[(j, i)] + 2.0 * h[i] * features[(j, i)] - expected).abs() < 1e-12);
        }
    }
    // At power 1 it is the log density under the mean intensity.
    let expected: f64 = (0..ROWS).map(|i| if i < EVENTS { WEIGHTS.0 * exponent(i) } else { -rate(i) }).sum();
    assert!((value(&q, &features, 1.0) - expected).abs() < 1e-12);
    for bad in [&[0.5][..], &[f64::NAN], &[], &[1.0, 0.0]] {
        assert!(CoxRows.check_target(bad).is_err(), "{bad:?}");
    }
}

/// Minus the term of a row, with its slopes in mean and variance.
fn energy(power: f64, y: f64, at: [f64; 2]) -> (f64, [f64; 2]) {
    let (mut means, mut variances) = ([0.0], [0.0]);
    let slopes = Slopes { means: &mut means, variances: &mut variances, parameters: &mut [] };
    let value = CoxRows.alpha_energy(power, &[y], &at[..1], &at[1..], slopes);
    (value, [means[0], variances[0]])
}

#[test]
fn slopes_of_every_power_are_finite_differences() {
    for (y, power) in [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 0.0), (0.0, 0.7), (0.0, 1.0)] {
        let numeric = check::gradient(|at| energy(power, y, [at[0], at[1]]).0, &[0.3, 0.8]);
        check::assert_close(&energy(power, y, [0.3, 0.8]).1, &numeric, 1e-7, 1e-7);
    }
}

/// 1, cos and sin of some frequencies.
fn waves(at: &[f64]) -> Mat<f64> {
    Mat::from_fn(7, at.len(), |j, i| {
        let frequency = j.div_ceil(2) as f64 * std::f64::consts::PI;
        match (j, j % 2) {
            (0, _) => 1.0,
            (_, 1) => (frequency * at[i]).cos(),
            _ => (frequency * at[i]).sin(),
        }
    })
}

#[test]
fn an_intensity_is_found_from_its_events() {
    // 300 (1 + sin 2πt) events a unit of time, drawn by thinning.
    let truth = |t: f64| 300.0 * (1.0 + (2.0 * std::f64::consts::PI * t).sin());
    let mut rng = Streams::new(3).stream("thinning");
    let uniform = rand_distr::Uniform::new(0.0, 1.0).unwrap();
    let mut places = Vec::new();
    for _ in 0..600 {
        let (t, u): (f64, f64) = (uniform.sample(&mut rng), uniform.sample(&mut rng));
        if 600.0 * u < truth(t) {
            places.push(t);
        }
    }
    // Midpoints of equal parts.
    let (events, nodes) = (places.len(), 200);
    let width = 1.0 / nodes as f64;
    places.extend((0..nodes).map(|i| width * (i as f64 + 0.5)));
    let features = waves(&places);
    let targets = Mat::from_fn(places.len(), 1, |i, _| f64::from(u8::from(i < events)));
    let level = (events as f64).ln();
    let offsets: Vec<f64> =
        (0..places.len()).map(|i| if i < events { level } else { level + width.ln() }).collect();
    let rows =
        ObservedRows { targets: targets.as_ref(), noise: None, weights: None, offsets: Some(&offsets) };
    let (own, mut buffers) = (squares(&features), DataTermBuffers::default());
    let mut q = WeightDistribution::prior(7, 1, true);
    for _ in 0..60 {
        let zero = Mat::zeros(places.len(), 1);
        let slopes =
            DataTerm::new(&q, &CoxRows, 0.0).slopes(features.as_ref(), zero, &own, &rows, 1.0, &mut buffers);
        natural_step(&mut q, &slopes.of_q, 0.3).unwrap();
    }
    let fitted = features.transpose() * q.mean();
    let rooted = q.rooted(0, features.as_ref());
    let found: Vec<f64> = (events..places.len())
        .map(|i| (level + fitted[(i, 0)] + 0.5 * rooted.col(i).squared_norm_l2()).exp())
        .collect();
    let total: f64 = found.iter().map(|r| r * width).sum();
    assert!((total / events as f64 - 1.0).abs() < 0.05, "{total} {events}");
    // Root mean square error over the mean intensity: with some 7 weights and 300 events about √(7/300) = 0.15.
    let square: f64 = places[events..].iter().zip(&found).map(|(t, f)| (f - truth(*t)).powi(2) * width).sum();
    assert!(square.sqrt() / 300.0 < 0.3, "{}", square.sqrt() / 300.0);
}

#[test]
fn intensities_never_overflow_unseen() {
    let limit = LARGEST_EXPONENT;
    // The last exponent that is one, half of it from the variance, and one above.
    for power in [0.0, 0.5, 1.0] {
        let (value, slopes) = energy(power, 0.0, [limit - 1.0, 2.0]);
        assert!((value / limit.exp() - 1.0).abs() < 1e-13 && slopes.iter().all(|s| (s * s).is_finite()));
        let (value, slopes) = energy(power, 0.0, [limit, 2.0]);
        assert_eq!((value, slopes), (f64::INFINITY, [f64::INFINITY; 2]));
        // Events have no exponential.
        assert!(energy(power, 1.0, [1e6, 2.0]).0.is_finite());
    }
    let (mut mean, mut variance) = ([0.0], [0.0]);
    for (m, v) in [(limit, 0.0), (1e5, 0.0), (0.0, 1e5), (1e300, 1e300)] {
        CoxRows.predictive_moments(&[m], &[v], (&mut mean, &mut variance));
        assert!(
            (mean[0] / limit.exp() - 1.0).abs() < 1e-13 && variance[0].is_finite(),
            "{mean:?} {variance:?}"
        );
    }
    CoxRows.predictive_moments(&[f64::NAN], &[0.0], (&mut mean, &mut variance));
    assert!(mean[0].is_nan());
}
