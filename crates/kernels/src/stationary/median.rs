//! A first lengthscale from the data alone.

use faer::MatRef;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand::RngExt;

/// Pairs that the median is taken of.
const PAIRS: usize = 2000;

/// `√(median squared distance / 2)` of random pairs of rows (n x D), at which a squared exponential is `exp(-1)` for half of them; None where that is no positive number (fewer than two
/// different rows, or values that are not finite).
pub fn median_lengthscale<T: Real>(x: MatRef<'_, T>, streams: Streams) -> Option<f64> {
    if x.nrows() < 2 {
        return None;
    }
    let mut rng = streams.stream("kernels/median-lengthscale");
    let mut squared: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let i = rng.random_range(0..x.nrows());
            // A different row.
            let j = (i + rng.random_range(1..x.nrows())) % x.nrows();
            (0..x.ncols()).map(|d| (x[(i, d)] - x[(j, d)]).to_f64().powi(2)).sum()
        })
        .collect();
    squared.sort_by(f64::total_cmp);
    let lengthscale = (0.5 * squared[PAIRS / 2]).sqrt();
    (lengthscale > 0.0 && lengthscale.is_finite()).then_some(lengthscale)
}
