//! Rows that can be drawn, and how to draw fewer of them.

use crate::{input::Predictions, plots::Z95, text::count};

/// More points than this are thinned.
pub(crate) const MOST_POINTS: usize = 2_000;

/// One drawable prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) mean: f64,
    pub(crate) truth: f64,
    /// The ends of its 95 % interval.
    pub(crate) interval: [f64; 2],
    residual: f64,
}

impl Point {
    /// Of a Gaussian prediction.
    fn gaussian(mean: f64, deviation: f64, truth: f64) -> Self {
        let interval = [mean - Z95 * deviation, mean + Z95 * deviation];
        Self { mean, truth, interval, residual: (truth - mean) / deviation }
    }

    /// Standardised residual.
    pub(crate) fn z(self) -> f64 {
        self.residual
    }

    fn is_usable(self) -> bool {
        let [low, high] = self.interval;
        [self.mean, self.truth, low, high, self.residual].into_iter().all(f64::is_finite) && low < high
    }
}

/// The drawable rows of some predictions, and how many were not.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    pub(crate) rows: Vec<Point>,
    pub(crate) left_out: usize,
}

impl Points {
    /// Keeps rows whose numbers are finite, with an interval that has a width.
    pub(crate) fn new(predictions: &Predictions) -> Self {
        let Predictions { mean, standard_deviation, truth, distribution } = predictions;
        let total = mean.len().max(standard_deviation.len()).max(truth.len());
        let gaussian = mean
            .iter()
            .zip(standard_deviation)
            .zip(truth)
            .map(|((&mean, &deviation), &truth)| Point::gaussian(mean, deviation, truth));
        let rows: Vec<Point> = match distribution {
            None => gaussian.filter(|p| p.is_usable()).collect(),
            Some(own) => gaussian
                .zip(own.low.iter().zip(&own.high))
                .zip(&own.residual)
                .map(|((p, (&low, &high)), &residual)| Point { interval: [low, high], residual, ..p })
                .filter(|p| p.is_usable())
                .collect(),
        };
        Self { left_out: total - rows.len(), rows }
    }

    /// At most [`MOST_POINTS`] rows, evenly spaced through the file.
    pub(crate) fn thinned(&self) -> Vec<Point> {
        thin(self.rows.len()).map(|i| self.rows[i]).collect()
    }

    /// What a caption must say about rows that a picture of all rows does not show; empty if it shows all.
    pub(crate) fn remark(&self, thinned: bool) -> String {
        let mut remark = String::new();
        if thinned && self.rows.len() > MOST_POINTS {
            remark += &format!(
                " Shown: {} of {} rows, evenly spaced through the file.",
                count(MOST_POINTS),
                count(self.rows.len())
            );
        }
        if self.left_out > 0 {
            remark += &format!(
                " Left out: {} of {} rows without usable numbers.",
                count(self.left_out),
                count(self.rows.len() + self.left_out)
            );
        }
        remark
    }
}

/// Indices of at most [`MOST_POINTS`] of `n` rows, evenly spaced.
pub(crate) fn thin(n: usize) -> impl Iterator<Item = usize> {
    let kept = n.min(MOST_POINTS);
    // n * i could overflow only beyond 2^53 rows.
    (0..kept).map(move |i| (i as u128 * n as u128 / kept as u128) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::PredictedDistribution;

    #[test]
    fn unusable_rows_are_left_out_and_counted() {
        let points = Points::new(&Predictions {
            mean: vec![0.0, f64::NAN, 1.0, 2.0, 0.0, 3.0],
            standard_deviation: vec![1.0, 1.0, 0.0, f64::INFINITY, 1e-300],
            truth: vec![0.5, 1.0, 1.0, 1.0, 1e300],
            distribution: None,
        });
        assert_eq!((points.rows.len(), points.left_out), (1, 5));
        assert!(points.remark(true).contains("5 of 6"));
        // What is not Gaussian brings its own intervals and residuals.
        let points = Points::new(&Predictions {
            mean: vec![2.0, 2.0],
            standard_deviation: vec![1.0; 2],
            truth: vec![5.0; 2],
            distribution: Some(PredictedDistribution {
                low: vec![0.5, 0.5],
                high: vec![9.0, f64::INFINITY],
                residual: vec![1.5, 1.5],
            }),
        });
        assert_eq!((points.rows.len(), points.left_out), (1, 1));
        assert_eq!((points.rows[0].z(), points.rows[0].interval), (1.5, [0.5, 9.0]));
    }

    #[test]
    fn thinning_is_even_and_never_repeats() {
        assert_eq!(thin(7).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(thin(0).count(), 0);
        let kept: Vec<_> = thin(4_999).collect();
        assert!(
            kept.len() == MOST_POINTS
                && kept.windows(2).all(|w| w[0] < w[1])
                && kept[MOST_POINTS - 1] < 4_999
        );
    }
}
