//! **Ten curves with blocks cut out**: a thousand equispaced inputs on [-2, 2], `y = f(x) + 0.5 ε` with the same ε for all curves. Inputs fall into twenty blocks of fifty; five or ten of them are the test rows, never the two outermost on each side, so that tests
//! ask for what lies between. Of the other rows four in five are trained on, the others held back.
//!
//! Source: spec `generalised_variational_inference`, section 16.1. Functions stand here; which blocks are cut out is in the files.

use crate::kinds::prelude::*;
use posterior_gp::Observations;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Curves.
pub(crate) const CURVES: usize = 10;
/// Blocks of consecutive inputs.
pub(crate) const BLOCKS: usize = 20;
/// Blocks on each side that are never cut out.
const OUTER: usize = 2;

/// The curve of a number from 1.
pub(crate) fn curve(number: usize, x: f64) -> f64 {
    match number {
        1 => 2.0 * (0.35 * PI * (x - 3.0).powi(2)).sin() + x * x,
        2 => 2.0 * (2.0 * PI * x).sin(),
        3 => 1.2 * (2.0 * PI * x).cos() + x * x,
        4 => 2.0 * (1.5 * PI * x).sin() + 0.6 * (4.5 * PI * x).cos() + (3.5 * PI * x).sin(),
        5 => 2.0 * (2.0 * PI * x).sin() + x,
        6 => 2.0 * (PI * x).sin() + 0.5 * x.powi(3),
        7 => 4.0 * (PI * x).sin() + 2.0 * (3.0 * PI * x).sin() - 2.0 * x,
        8 => 2.0 * (PI * x).cos() + (3.0 * PI * x).sin() - x * x,
        9 => (0.5 * PI * (x - 2.0).powi(2)).sin(),
        // Rounding may leave the interval.
        10 => 3.0 * (4.0 - x * x).max(0.0).sqrt() + (PI * x).sin(),
        _ => f64::NAN,
    }
}

/// Which blocks are cut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Split {
    /// Those of the published figure: five for seven curves, ten for three (erratum E22).
    Published,
    /// Five.
    Five,
    /// Ten.
    Ten,
}

/// The table `[data]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataSettings {
    /// Inputs.
    pub(crate) points: usize,
    /// Standard deviation of the noise.
    pub(crate) noise: f64,
    /// The share of rows outside the blocks that is trained on.
    pub(crate) train: f64,
    /// Which blocks are cut out.
    pub(crate) split: Split,
}

/// Test blocks of a curve, from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blocks {
    /// Five.
    pub(crate) five: Vec<usize>,
    /// Ten.
    pub(crate) ten: Vec<usize>,
    /// How many the published figure cuts out.
    pub(crate) shown: usize,
}

impl Blocks {
    /// Refuses blocks that the rule does not allow.
    pub(crate) fn check(&self) -> Result<()> {
        for (blocks, count) in [(&self.five, 5), (&self.ten, 10)] {
            let allowed = blocks.iter().all(|b| (OUTER..BLOCKS - OUTER).contains(b));
            if blocks.len() != count || !allowed || blocks.windows(2).any(|w| w[0] >= w[1]) {
                return refused(format!(
                    "test blocks are {count} different ones from {OUTER} to {}, ascending, not {blocks:?}",
                    BLOCKS - OUTER - 1
                ));
            }
        }
        match self.shown {
            5 | 10 => Ok(()),
            other => refused(format!("a figure cuts out `shown` = 5 or 10 blocks, not {other}")),
        }
    }

    /// Those of a split.
    pub(crate) fn of(&self, split: Split) -> &[usize] {
        match split {
            Split::Published if self.shown == 10 => &self.ten,
            Split::Ten => &self.ten,
            Split::Published | Split::Five => &self.five,
        }
    }
}

impl DataSettings {
    /// Refuses numbers without a meaning.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.points.is_multiple_of(BLOCKS) || !(60..=100_000).contains(&self.points) {
            return refused(format!("[data]: `points` are from 60 to 100000, a multiple of {BLOCKS}"));
        }
        if !positive(self.noise) {
            return refused("[data]: `noise` is a positive standard deviation");
        }
        if !(self.train > 0.0 && self.train < 1.0) {
            return refused("[data]: `train` is a share, between 0 and 1");
        }
        Ok(())
    }

    /// A curve (its number from 1) without the rows of its test blocks. Noise is one stream for all curves, the split of the other rows one for each.
    pub(crate) fn problem(&self, number: usize, blocks: &[usize], streams: Streams) -> Result<Problem> {
        let n = self.points;
        let mut rng = streams.stream("experiment/generalised-noise");
        let x: Vec<f64> = (0..n).map(|i| -2.0 + 4.0 * i as f64 / (n - 1) as f64).collect();
        let y: Vec<f64> = x
            .iter()
            .map(|x| {
                let e: f64 = StandardNormal.sample(&mut rng);
                curve(number, *x) + self.noise * e
            })
            .collect();
        let size = n / BLOCKS;
        let (test, mut rest): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|row| blocks.contains(&(row / size)));
        rest.shuffle(&mut streams.child("experiment/generalised-split", number as u64).stream("rows"));
        let mut held = rest.split_off((self.train * rest.len() as f64).round() as usize);
        rest.sort_unstable();
        held.sort_unstable();
        let of = |rows: &[usize]| -> Result<Observations> {
            let column = |values: &[f64]| Mat::from_fn(rows.len(), 1, |i, _| values[rows[i]]);
            Ok(Observations::new(column(&x), column(&y), None)?)
        };
        Ok(Problem { number, train: of(&rest)?, validation: of(&held)?, test: of(&test)? })
    }
}

/// One curve's rows.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// From 1.
    pub(crate) number: usize,
    /// Rows to train on.
    pub(crate) train: Observations,
    /// Rows to stop, temper and choose by.
    pub(crate) validation: Observations,
    /// Rows within the blocks.
    pub(crate) test: Observations,
}

/// Inputs and targets of some rows, `every` so many of them.
pub(crate) fn some(rows: &Observations, every: usize) -> (Vec<f64>, Vec<f64>) {
    let own = (0..rows.rows()).step_by(every.max(1));
    own.map(|i| (rows.inputs()[(i, 0)], rows.targets()[(i, 0)])).unzip()
}

impl Problem {
    /// Rows to learn from, held back and to test on.
    pub(crate) fn rows(&self) -> [usize; 3] {
        [&self.train, &self.validation, &self.test].map(|part| part.rows())
    }

    /// The variance of the targets that are trained on.
    pub(crate) fn target_variance(&self) -> f64 {
        let (_, y) = some(&self.train, 1);
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / y.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> DataSettings {
        DataSettings { points: 1000, noise: 0.5, train: 0.8, split: Split::Published }
    }

    #[test]
    fn curves_are_their_formulas() {
        // By hand, at places where sines and cosines are known.
        for (number, x, expected) in [
            (1, 3.0 - f64::sqrt(1.0 / 0.7), 2.0 + (3.0 - f64::sqrt(1.0 / 0.7)).powi(2)),
            (2, 0.25, 2.0),
            (3, 0.5, -1.2 + 0.25),
            (4, 1.0, -2.0 + 0.0 - 1.0),
            (5, -0.25, -2.0 - 0.25),
            (6, 0.5, 2.0 + 0.0625),
            (7, 0.5, 4.0 - 2.0 - 1.0),
            (8, 1.0, -2.0 - 1.0),
            (8, 0.5, -1.0 - 0.25),
            (9, 1.0, 1.0),
            (10, 0.5, 3.0 * f64::sqrt(3.75) + 1.0),
            (10, 2.0, 0.0),
        ] {
            let found = curve(number, x);
            assert!((found - expected).abs() < 1e-12, "{number} at {x}: {found}, not {expected}");
        }
        assert!(curve(0, 0.0).is_nan() && curve(11, 0.0).is_nan());
    }

    #[test]
    fn rows_are_counted_and_lie_where_they_should() {
        let streams = Streams::new(0);
        let (five, ten) = ([3, 8, 10, 13, 17], [2, 3, 4, 5, 7, 8, 10, 11, 13, 17]);
        for (blocks, counts) in [(&five[..], [600, 150, 250]), (&ten, [400, 100, 500])] {
            let found = data().problem(1, blocks, streams).unwrap();
            let parts = [&found.train, &found.validation, &found.test];
            assert_eq!(parts.map(Observations::rows), counts);
            let mut all: Vec<f64> = parts.iter().flat_map(|part| some(part, 1).0).collect();
            all.sort_unstable_by(f64::total_cmp);
            for (i, x) in all.iter().enumerate() {
                assert_eq!(*x, -2.0 + 4.0 * i as f64 / 999.0);
            }
            let (x, _) = some(&found.test, 1);
            let block = |x: f64| ((x + 2.0) * 999.0 / 4.0).round() as usize / 50;
            assert!(x.iter().all(|x| blocks.contains(&block(*x))));
        }
    }

    #[test]
    fn noise_is_shared_and_splits_are_not() {
        let (blocks, streams) = ([5, 9, 10, 11, 13], Streams::new(0));
        let of = |number| data().problem(number, &blocks, streams).unwrap();
        let (one, two) = (of(1), of(2));
        let noise = |problem: &Problem| -> Vec<f64> {
            let (x, y) = some(&problem.test, 1);
            x.iter().zip(y).map(|(x, y)| y - curve(problem.number, *x)).collect()
        };
        let (first, second) = (noise(&one), noise(&two));
        assert!(first.iter().zip(&second).all(|(a, b)| (a - b).abs() < 1e-14));
        let square = first.iter().map(|e| e * e).sum::<f64>() / 250.0;
        // A chi-squared over its mean, 250 degrees: four standard deviations.
        assert!((square / 0.25 - 1.0).abs() < 4.0 * (2.0f64 / 250.0).sqrt(), "{square}");
        assert_ne!(some(&one.train, 1).0, some(&two.train, 1).0);
        assert_eq!(some(&one.train, 1), some(&of(1).train, 1));
        let (x, y) = some(&one.train, 3);
        assert_eq!((x.len(), y.len(), x[1]), (200, 200, one.train.inputs()[(3, 0)]));
        // The variance of 0 and 4 is 4.
        let two = Observations::new(Mat::zeros(2, 1), Mat::from_fn(2, 1, |i, _| 4.0 * i as f64), None);
        let two = Problem { train: two.unwrap(), ..one };
        assert_eq!(two.target_variance(), 4.0);
    }

    #[test]
    fn blocks_and_numbers_that_make_no_sense_are_refused() {
        let good = Blocks { five: vec![3, 8, 10, 13, 17], ten: (2..12).collect(), shown: 5 };
        assert!(good.check().is_ok());
        assert_eq!(good.of(Split::Published), good.five);
        assert_eq!(Blocks { shown: 10, ..good.clone() }.of(Split::Published), good.ten);
        for wrong in [vec![1, 8, 10, 13, 17], vec![3, 8, 10, 13, 18], vec![3, 3, 8, 10, 13], vec![3]] {
            let error = Blocks { five: wrong, ..good.clone() }.check().unwrap_err().to_string();
            assert!(error.contains("from 2 to 17"), "{error}");
        }
        assert!(Blocks { shown: 7, ..good }.check().is_err());
        for wrong in [
            DataSettings { points: 1001, ..data() },
            DataSettings { points: 20, ..data() },
            DataSettings { noise: 0.0, ..data() },
            DataSettings { train: 1.0, ..data() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
