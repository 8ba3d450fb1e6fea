//! Classes and counts whose probabilities are smooth functions of the inputs, and known.

use crate::limits::{check_memory, finite_at_least};
use crate::{Column, DataError, Table, Values};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};
use std::f64::consts::PI;

/// Waves that make up each function.
const WAVES: usize = 64;

/// Inputs with what was drawn at them, and the distribution it was drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct SmoothTargets {
    /// Inputs, n x D, row by row, standard normal.
    pub inputs: Vec<f64>,
    /// D.
    pub columns: usize,
    /// What was drawn (n): classes from 0, or counts.
    pub targets: Vec<f64>,
    /// Probabilities of all classes, n x C row by row; or the mean of each count (n).
    pub truth: Vec<f64>,
    /// Whether the targets are classes.
    classes: bool,
}

impl SmoothTargets {
    /// Columns `x1`, `x2`, ... and `class` (of text: `a`, `b`, ...) or `count`.
    pub fn table(&self) -> Table {
        let column = |j: usize| {
            let values = self.inputs.iter().skip(j).step_by(self.columns).copied().collect();
            Column::numeric(format!("x{}", j + 1), values)
        };
        let target = if self.classes {
            let name = |class: &f64| Some(class_name(*class as usize));
            Column { name: "class".into(), values: Values::Text(self.targets.iter().map(name).collect()) }
        } else {
            Column::numeric("count", self.targets.clone())
        };
        let columns = (0..self.columns).map(column).chain([target]).collect();
        Table::new("smooth targets", columns)
    }

    /// Mean of `-log p(target)` under the distribution it was drawn from, nats: no prediction does better on average.
    pub fn least_nll(&self) -> f64 {
        let n = self.targets.len();
        let width = self.truth.len() / n.max(1);
        let own = |i: usize| -self.truth[i * width + self.targets[i] as usize].ln();
        if self.classes { (0..n).map(own).sum::<f64>() / n.max(1) as f64 } else { f64::NAN }
    }
}

/// `a` to `z`, then `class 27` and so on.
fn class_name(class: usize) -> String {
    match u8::try_from(class) {
        Ok(small) if small < 26 => char::from(b'a' + small).to_string(),
        _ => format!("class {}", class + 1),
    }
}

/// `count` functions at the inputs: waves whose frequencies are normal, as functions of a process with a squared exponential kernel are, of variance `amplitude²`.
fn functions(
    inputs: &[f64],
    columns: usize,
    (count, lengthscale, amplitude): (usize, f64, f64),
    streams: Streams,
) -> Vec<f64> {
    let mut rng = streams.stream("data/smooth/functions");
    let mut draw = || <StandardNormal as Distribution<f64>>::sample(&StandardNormal, &mut rng);
    let frequencies: Vec<f64> = (0..count * WAVES * columns).map(|_| draw() / lengthscale).collect();
    let mut rng = streams.stream("data/smooth/phases");
    let phases: Vec<f64> = (0..count * WAVES).map(|_| 2.0 * PI * rng.random::<f64>()).collect();
    let scale = amplitude * (2.0 / WAVES as f64).sqrt();
    let at = |x: &[f64], wave: usize| {
        let inner: f64 = frequencies[wave * columns..][..columns].iter().zip(x).map(|(w, x)| w * x).sum();
        (inner + phases[wave]).cos()
    };
    let value = |x: &[f64], k: usize| scale * (0..WAVES).map(|w| at(x, k * WAVES + w)).sum::<f64>();
    let rows = inputs.chunks_exact(columns.max(1));
    rows.flat_map(|x| (0..count).map(|k| value(x, k)).collect::<Vec<f64>>()).collect()
}

fn inputs(rows: usize, columns: usize, streams: Streams) -> Vec<f64> {
    let mut rng = streams.stream("data/smooth/inputs");
    (0..rows * columns).map(|_| StandardNormal.sample(&mut rng)).collect()
}

fn check(rows: usize, columns: usize, (lengthscale, amplitude): (f64, f64)) -> Result<(), DataError> {
    for (argument, value) in [("rows", rows), ("columns", columns)] {
        if value == 0 {
            let reason = "there must be at least one".into();
            return Err(DataError::Argument { argument, value: "0".into(), reason });
        }
    }
    finite_at_least("lengthscale", lengthscale, 1e-6)?;
    finite_at_least("amplitude", amplitude, 0.0)?;
    check_memory("inputs", &[rows, columns], 8)
}

/// `rows` rows of `columns` standard normal inputs with a class each, drawn from the softmax of as many smooth functions of the given lengthscale (in standard deviations of the inputs) and amplitude
/// (the larger, the less the classes overlap). Cost `rows · classes · columns · 64` operations.
///
/// # Errors
/// [`DataError::Argument`] for no rows, columns, or fewer than two classes; [`DataError::Oversized`] beyond 8 GiB.
pub fn smooth_classes(
    rows: usize,
    columns: usize,
    classes: usize,
    (lengthscale, amplitude): (f64, f64),
    streams: Streams,
) -> Result<SmoothTargets, DataError> {
    check(rows, columns, (lengthscale, amplitude))?;
    if classes < 2 {
        let (value, reason) = (classes.to_string(), "there must be at least two".into());
        return Err(DataError::Argument { argument: "classes", value, reason });
    }
    check_memory("probabilities", &[rows, classes], 8)?;
    let x = inputs(rows, columns, streams);
    let mut truth = functions(&x, columns, (classes, lengthscale, amplitude), streams);
    let mut rng = streams.stream("data/smooth/classes");
    let mut targets = Vec::with_capacity(rows);
    for row in truth.chunks_exact_mut(classes) {
        let peak = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|f| *f = (*f - peak).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= total);
        let mut left: f64 = rng.random();
        let class = row.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        targets.push(class.unwrap_or(classes - 1) as f64);
    }
    Ok(SmoothTargets { inputs: x, columns, targets, truth, classes: true })
}

/// The same with a count each: its rate is `mean_count` times the exponential of a smooth function of the given lengthscale and amplitude, and it is drawn from a Poisson distribution or, with a
/// `dispersion` r, from a negative binomial one of variance `m + m²/r`.
///
/// # Errors
/// As [`smooth_classes`]; for rates beyond 1e15.
pub fn smooth_counts(
    rows: usize,
    columns: usize,
    mean_count: f64,
    (lengthscale, amplitude): (f64, f64),
    dispersion: Option<f64>,
    streams: Streams,
) -> Result<SmoothTargets, DataError> {
    check(rows, columns, (lengthscale, amplitude))?;
    finite_at_least("mean_count", mean_count, 1e-9)?;
    if let Some(dispersion) = dispersion {
        finite_at_least("dispersion", dispersion, 1e-6)?;
    }
    let x = inputs(rows, columns, streams);
    let truth: Vec<f64> = functions(&x, columns, (1, lengthscale, amplitude), streams)
        .into_iter()
        .map(|f| mean_count * f.exp())
        .collect();
    let mut rng = streams.stream("data/smooth/counts");
    let refused = |rate: f64| DataError::Argument {
        argument: "mean_count",
        value: mean_count.to_string(),
        reason: format!("the rate {rate} is too large to be drawn from; give less"),
    };
    let mut targets = Vec::with_capacity(rows);
    for &rate in &truth {
        let own = match dispersion {
            // A Poisson rate that is itself Gamma distributed about its mean.
            Some(r) => Gamma::new(r, rate / r).map_err(|_| refused(rate))?.sample(&mut rng),
            None => rate,
        };
        let own = own.max(f64::MIN_POSITIVE);
        if own > 1e15 {
            return Err(refused(rate));
        }
        targets.push(Poisson::new(own).map_err(|_| refused(rate))?.sample(&mut rng));
    }
    Ok(SmoothTargets { inputs: x, columns, targets, truth, classes: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_drawn_from_their_probabilities() {
        let made = smooth_classes(20_000, 3, 4, (1.0, 2.0), Streams::new(5)).unwrap();
        for class in 0..4 {
            let expected: f64 = made.truth.iter().skip(class).step_by(4).sum::<f64>();
            let variance: f64 = made.truth.iter().skip(class).step_by(4).map(|p| p * (1.0 - p)).sum();
            let found = made.targets.iter().filter(|t| **t == class as f64).count() as f64;
            assert!((found - expected).abs() < 5.0 * variance.sqrt(), "{class}: {found} {expected}");
        }
        assert!(made.least_nll() > 0.1 && made.least_nll() < 4f64.ln());
        let table = made.table();
        assert_eq!(table.names(), ["x1", "x2", "x3", "class"]);
        assert_eq!(made, smooth_classes(20_000, 3, 4, (1.0, 2.0), Streams::new(5)).unwrap());
        assert_eq!([class_name(0), class_name(25), class_name(26)], ["a", "z", "class 27"]);
    }

    #[test]
    fn counts_have_the_variance_that_was_asked_for() {
        for dispersion in [None, Some(2.0)] {
            let made = smooth_counts(20_000, 2, 3.0, (1.0, 0.5), dispersion, Streams::new(2)).unwrap();
            let variance = |m: f64| m + dispersion.map_or(0.0, |r| m * m / r);
            // Pearson's statistic: each term has mean one.
            let terms: Vec<f64> =
                made.targets.iter().zip(&made.truth).map(|(y, m)| (y - m).powi(2) / variance(*m)).collect();
            let mean = terms.iter().sum::<f64>() / 20_000.0;
            let spread = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!((mean - 1.0).abs() < 5.0 * (spread / 20_000.0).sqrt(), "{dispersion:?}: {mean}");
            assert!(made.targets.iter().all(|y| *y >= 0.0 && y.fract() == 0.0));
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let streams = Streams::new(0);
        assert!(smooth_classes(0, 1, 2, (1.0, 1.0), streams).is_err());
        assert!(smooth_classes(5, 1, 1, (1.0, 1.0), streams).is_err());
        assert!(smooth_classes(5, 1, 2, (0.0, 1.0), streams).is_err());
        assert!(smooth_classes(usize::MAX, 2, 2, (1.0, 1.0), streams).is_err());
        assert!(smooth_counts(5, 1, 1e20, (1.0, 1.0), None, streams).is_err());
        assert!(smooth_counts(5, 1, f64::NAN, (1.0, 1.0), None, streams).is_err());
    }
}
