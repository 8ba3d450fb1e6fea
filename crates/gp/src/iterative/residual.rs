//! How stochastic methods see whether they get anywhere: residuals of batches, averaged.

use faer::Mat;
use posterior_linalg::Real;

/// Weight of the newest batch in the running mean.
const NEWEST: f64 = 0.05;

/// Growth of the relative residual, over that of the start or of zero, at which a solve has diverged.
const DIVERGED: f64 = 1e3;

/// A running mean of squared relative residuals, one for each right-hand side.
#[derive(Clone, Debug)]
pub(super) struct ResidualMonitor {
    /// `‖z‖²` for each column.
    squares: Vec<f64>,
    pub(super) means: Vec<f64>,
    /// The largest relative residual of the first batch.
    pub(super) first: Option<f64>,
}

impl ResidualMonitor {
    pub(super) fn new(target_norms: &[f64]) -> Self {
        let squares: Vec<f64> = target_norms.iter().map(|norm| norm * norm).collect();
        Self { means: vec![f64::NAN; squares.len()], squares, first: None }
    }

    /// Takes note of the residuals (r x s) of a batch out of `rows` rows.
    pub(super) fn observe<T: Real>(&mut self, rows: usize, residuals: &Mat<T>) {
        let scale = rows as f64 / residuals.nrows() as f64;
        for (j, mean) in self.means.iter_mut().enumerate() {
            let batch: f64 = residuals.col_as_slice(j).iter().map(|v| v.to_f64() * v.to_f64()).sum();
            // A right-hand side of zeros is solved by zeros; anything else is judged absolutely.
            let relative = scale * batch / if self.squares[j] > 0.0 { self.squares[j] } else { 1.0 };
            *mean = if mean.is_nan() { relative } else { *mean + NEWEST * (relative - *mean) };
            if !relative.is_finite() {
                *mean = f64::INFINITY;
            }
        }
        self.first.get_or_insert(self.largest());
    }

    /// The largest relative residual of the right-hand sides; NaN before the first batch.
    pub(super) fn largest(&self) -> f64 {
        self.means.iter().fold(f64::NAN, |largest, mean| largest.max(mean.sqrt()))
    }

    /// Whether the residuals have grown beyond anything that a stable run shows.
    pub(super) fn diverged(&self) -> bool {
        self.largest() > DIVERGED * self.first.unwrap_or(1.0).max(1.0)
    }
}
