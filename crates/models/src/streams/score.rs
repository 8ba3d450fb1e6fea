//! How good predictions were that were made before their rows were learned.

use crate::{Comparison, ModelError, Predicted, Truth};
use serde::{Deserialize, Serialize};

/// The running score says how good the latest of so many rows were, older ones counting less and less.
const LATEST: f64 = 1000.0;

/// A score of one row that can be added up. One target that is beyond the range of numbers, or one prediction that is, must not make the sums of all rows unreadable: the largest number
/// stands for what is larger, or is none.
fn saturated(score: f64) -> f64 {
    if score.is_nan() { f64::MAX } else { score.clamp(-f64::MAX, f64::MAX) }
}

/// Sums over rows, of all or with weights that fade. Sums beyond the range of numbers stay at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreSums {
    /// Weight of the rows.
    pub weight: f64,
    /// Sum of minus log predictive densities or probabilities, nats.
    pub nll: f64,
    /// The same of the target's distribution at the fit, which knows nothing of the features.
    pub baseline_nll: f64,
    /// Classes: rows whose most probable class came true. Numbers: rows inside the central 90 % interval (Gaussian noise).
    pub hits: f64,
    /// Classes: sums of squared differences of probabilities and what came true (Brier). Numbers: squared errors of the mean.
    pub squares: f64,
    /// Squared errors of the baseline's mean; Brier of its shares.
    pub baseline_squares: f64,
}

impl ScoreSums {
    fn add(&mut self, row: &Self, fade: f64) {
        let sums = [
            (&mut self.weight, row.weight),
            (&mut self.nll, row.nll),
            (&mut self.baseline_nll, row.baseline_nll),
            (&mut self.hits, row.hits),
            (&mut self.squares, row.squares),
            (&mut self.baseline_squares, row.baseline_squares),
        ];
        sums.into_iter().for_each(|(sum, one)| *sum = saturated(fade * *sum + saturated(one)));
    }

    /// Averages over rows; None without any.
    pub fn averages(&self) -> Option<Self> {
        let w = self.weight;
        (w > 0.0).then(|| Self {
            weight: w,
            nll: self.nll / w,
            baseline_nll: self.baseline_nll / w,
            hits: self.hits / w,
            squares: self.squares / w,
            baseline_squares: self.baseline_squares / w,
        })
    }
}

/// Scores of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningScore {
    /// Over all rows.
    pub all: ScoreSums,
    /// Over the latest ones: a row's weight falls by a factor e in a thousand rows.
    pub latest: ScoreSums,
}

impl RunningScore {
    /// Adds rows that were predicted before they were learned, in their order.
    ///
    /// # Errors
    /// [`ModelError::Request`] where truths and predictions are of different kinds.
    pub fn add(&mut self, rows: &Comparison) -> Result<(), ModelError> {
        let wrong = || ModelError::Request("truths and predictions are of different kinds".into());
        let (own, other) = (&rows.model, &rows.baseline);
        let truth = own.truth.as_ref().ok_or_else(wrong)?;
        for i in 0..truth.len() {
            let mut row = ScoreSums { weight: 1.0, ..ScoreSums::default() };
            match (&own.predicted, &other.predicted, truth) {
                (Predicted::Classes(p), Predicted::Classes(q), Truth::Classes(classes)) => {
                    let (class, width) = (classes[i], own.width);
                    let (p, q) = (&p[i * width..][..width], &q[i * width..][..width]);
                    // A probability that underflows is a bounded surprise, as everywhere here.
                    let surprise = |p: &[f64]| -p[class].max(f64::MIN_POSITIVE).ln();
                    let brier = |p: &[f64]| -> f64 {
                        p.iter().enumerate().map(|(c, p)| (p - f64::from(u8::from(c == class))).powi(2)).sum()
                    };
                    let best = (0..width).max_by(|a, b| p[*a].total_cmp(&p[*b]).then(b.cmp(a)));
                    (row.nll, row.baseline_nll) = (surprise(p), surprise(q));
                    (row.squares, row.baseline_squares) = (brier(p), brier(q));
                    row.hits = f64::from(u8::from(best == Some(class)));
                }
                (
                    Predicted::Moments { mean, variance, .. },
                    Predicted::Moments { mean: other_mean, .. },
                    Truth::Values { values, width: 1 },
                ) => {
                    let density = |of: &crate::Predictive| of.log_density.as_ref().map(|all| -all[i]);
                    row.nll = density(own).ok_or_else(wrong)?;
                    row.baseline_nll = density(other).ok_or_else(wrong)?;
                    row.squares = (values[i] - mean[i]).powi(2);
                    row.baseline_squares = (values[i] - other_mean[i]).powi(2);
                    let reach = posterior_metrics::half_width_factor(0.9) * variance[i].sqrt();
                    row.hits = f64::from(u8::from((values[i] - mean[i]).abs() <= reach));
                }
                _ => return Err(wrong()),
            }
            self.all.add(&row, 1.0);
            self.latest.add(&row, (-1.0 / LATEST).exp());
        }
        Ok(())
    }
}
