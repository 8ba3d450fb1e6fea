//! Along one positive number, a prior precision most often: where a function of it is largest, and when a trace of it has arrived.

use super::prelude::*;

/// So many numbers from `low` to `high`, evenly in their logarithm.
pub(super) fn logarithmic((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let step = (high / low).ln() / (count - 1) as f64;
    (0..count).map(|i| low * (step * i as f64).exp()).collect()
}

/// The maximum of a function of the logarithm that rises and then falls, by golden section to a relative tolerance.
pub(super) fn maximum(
    (low, high): (f64, f64),
    tolerance: f64,
    mut value: impl FnMut(f64) -> Result<f64>,
) -> Result<f64> {
    let (mut low, mut high) = (low.ln(), high.ln());
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    while high - low > tolerance {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        if value(left.exp())? < value(right.exp())? { low = left } else { high = right }
    }
    Ok((0.5 * (low + high)).exp())
}

/// Steps after which a trace stays within a share of a number; none if it does not.
pub(super) fn arrival(trace: &[f64], target: f64, share: f64) -> Option<usize> {
    match trace.iter().rposition(|value| (value / target - 1.0).abs() > share) {
        None => Some(0),
        Some(last) if last + 1 < trace.len() => Some(last + 1),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_found_and_arrival_counts_the_last_excursion() {
        // d log a - a s has its maximum at d / s.
        let found = maximum((1e-8, 1e10), 1e-6, |a| Ok(7.0 * a.ln() - a * 0.25)).unwrap();
        assert!((found / 28.0 - 1.0).abs() < 1e-5, "{found}");
        assert_eq!(arrival(&[5.0, 1.05, 2.0, 1.01, 1.0], 1.0, 0.1), Some(3));
        assert_eq!(arrival(&[1.0, 1.0], 1.0, 0.1), Some(0));
        assert_eq!(arrival(&[1.0, 2.0], 1.0, 0.1), None);
    }
}
