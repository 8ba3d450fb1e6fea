//! **Counts of which mean and variance are known**, as a distribution whose tails can be told.

use crate::MetricsError;
use crate::interval::standard_normal_cdf;
use statrs::function::beta::beta_reg;
use statrs::function::gamma::{gamma_lr, gamma_ur};

/// A gamma mixture of Poisson distributions (negative binomial) of this mean and variance, the Poisson distribution where the variance is no larger than the mean.
///
/// Conformal intervals go by its tails: their guarantee does not need it to be right, but widths follow the skewness of small counts so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountDistribution {
    mean: f64,
    variance: f64,
}

/// From this mean on, the cube root of a gamma distribution is taken as normal.
const LARGE: f64 = 1000.0;

/// From this shape on, the mixture is taken as a Poisson distribution: its tails are within a thousandth of theirs.
const PURE: f64 = 1e6;

/// Where logarithms of tail probabilities would end.
const DEEPEST: f64 = 745.0;

impl CountDistribution {
    /// # Errors
    /// [`MetricsError::Rate`] (of row 0) for a mean that is not positive and finite or a variance that is not.
    pub fn new(mean: f64, variance: f64) -> Result<Self, MetricsError> {
        match [mean, variance].into_iter().find(|v| !(*v > 0.0 && v.is_finite())) {
            Some(value) => Err(MetricsError::Rate { row: 0, value }),
            None => Ok(Self { mean, variance }),
        }
    }

    /// `P(Y <= y)` and `P(Y > y)`, both without loss where they are small.
    pub fn tails(&self, count: f64) -> (f64, f64) {
        if count < 0.0 {
            return (0.0, 1.0);
        }
        let (m, end) = (self.mean, count.floor() + 1.0);
        let found = if m > LARGE {
            // Wilson and Hilferty's cube root (1931) of the shifted gamma distribution of the same three moments; half a count beyond the last.
            let variance = self.variance.max(m);
            let skewness = (2.0 * variance / m - 1.0) / variance.sqrt();
            let apart = (end - 0.5 - m) / variance.sqrt();
            let z =
                ((1.0 + 0.5 * skewness * apart).cbrt() - 1.0 + skewness * skewness / 36.0) * 6.0 / skewness;
            (standard_normal_cdf(z), standard_normal_cdf(-z))
        } else {
            let shape = m * m / (self.variance - m);
            if shape > 0.0 && shape < PURE {
                let stay = shape / (shape + m);
                (beta_reg(shape, end, stay), beta_reg(end, shape, m / (shape + m)))
            } else {
                (gamma_ur(end, m), gamma_lr(end, m))
            }
        };
        (found.0.clamp(0.0, 1.0), found.1.clamp(0.0, 1.0))
    }

    /// How far out a count lies, one side negative and the other positive: the logarithm of twice the smaller tail, half of the count's own probability on either side (the mid-distribution). Grows with the count.
    pub fn score(&self, count: f64) -> f64 {
        let (last, own) = (self.tails(count - 1.0), self.tails(count));
        let (below, above) = (0.5 * (last.0 + own.0), 0.5 * (last.1 + own.1));
        // Where a tail underflows, what it has at least.
        let deep = || DEEPEST.max(0.5 * (count - self.mean).powi(2) / self.variance).min(f64::MAX);
        match below < above {
            true if below > 0.0 => (2.0 * below).ln(),
            true => -deep(),
            false if above > 0.0 => -(2.0 * above).ln(),
            false => deep(),
        }
    }

    /// The largest count whose [`Self::score`] is at most this; -1 if none is. Cost: some dozens of tails.
    pub fn last_up_to(&self, score: f64) -> f64 {
        if self.score(0.0) > score {
            return -1.0;
        }
        let (mut low, mut high) = (0.0, (self.mean + self.variance.sqrt()).ceil().max(1.0));
        // The largest whole numbers that are told apart.
        const LAST: f64 = 9_007_199_254_740_992.0;
        while self.score(high) <= score {
            if high >= LAST {
                return LAST;
            }
            (low, high) = (high, (2.0 * high).min(LAST));
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            if self.score(middle) <= score { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Discrete, NegativeBinomial, Poisson};

    /// Sums of probabilities.
    fn summed(mean: f64, variance: f64, count: u64) -> (f64, f64) {
        let mass: Vec<f64> = if variance > mean {
            let r = mean * mean / (variance - mean);
            let own = NegativeBinomial::new(r, r / (r + mean)).unwrap();
            (0..count + 4000).map(|y| own.pmf(y)).collect()
        } else {
            let own = Poisson::new(mean).unwrap();
            (0..count + 4000).map(|y| own.pmf(y)).collect()
        };
        let (below, above) = mass.split_at(count as usize + 1);
        (below.iter().sum(), above.iter().rev().sum())
    }

    #[test]
    fn tails_are_sums_of_probabilities() {
        for (mean, variance) in
            [(0.02, 0.02), (0.3, 0.5), (4.0, 4.0), (4.0, 40.0), (90.0, 95.0), (90.0, 3000.0), (900.0, 902.0)]
        {
            let own = CountDistribution::new(mean, variance).unwrap();
            for z in [-3.0f64, -1.0, 0.0, 1.0, 3.0, 8.0] {
                let count = (mean + z * variance.sqrt()).floor().max(0.0);
                let ((below, above), (b, a)) = (own.tails(count), summed(mean, variance, count as u64));
                assert!(
                    (below - b).abs() < 1e-8 * b.max(1e-300) + 1e-300,
                    "{mean} {variance} {count}: {below} {b}"
                );
                assert!((above - a).abs() < 1e-6 * a, "{mean} {variance} {count}: {above} {a}");
            }
        }
        // Beyond a thousand by another way, which meets sums to a ten-thousandth.
        for variance in [2000.0, 9000.0] {
            let own = CountDistribution::new(2000.0, variance).unwrap();
            for count in [1700u64, 1900, 1980, 2000, 2050, 2100, 2300] {
                let ((below, _), (b, _)) = (own.tails(count as f64), summed(2000.0, variance, count));
                assert!((below - b).abs() < 1e-4, "{variance} {count}: {below} {b}");
            }
        }
    }

    #[test]
    fn scores_grow_and_are_turned_round() {
        for (mean, variance) in [(1e-6, 1e-6), (0.3, 0.5), (4.0, 4.0), (90.0, 3000.0), (5e3, 6e3), (1e9, 2e9)]
        {
            let own = CountDistribution::new(mean, variance).unwrap();
            let counts: Vec<f64> =
                (0..60).map(|k| (mean + (f64::from(k) - 10.0) * variance.sqrt()).floor().max(0.0)).collect();
            for pair in counts.windows(2) {
                let (a, b) = (own.score(pair[0]), own.score(pair[1]));
                assert!(a.is_finite() && a <= b && (pair[0] == pair[1] || a < b), "{mean}: {pair:?} {a} {b}");
            }
            for &count in &counts {
                let found = own.last_up_to(own.score(count));
                assert_eq!(found, count, "{mean} {variance}");
            }
            assert_eq!(own.last_up_to(-f64::MAX), -1.0);
            let middle = own.last_up_to(0.0);
            assert!(own.tails(middle - 1.0).0 < 0.5 && own.tails(middle + 1.0).0 > 0.5, "{mean}: {middle}");
        }
        assert!(
            CountDistribution::new(0.0, 1.0).is_err() && CountDistribution::new(1.0, f64::INFINITY).is_err()
        );
    }
}
