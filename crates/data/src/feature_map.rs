//! **Monotone maps of a skewed feature**, learned from training rows: kernels see differences of what comes of them.
//!
//! | map | of x | beyond the training rows |
//! |---|---|---|
//! | `log` | `ln x` | below the least, the line that touches the logarithm there: it goes on through 0 |
//! | `quantiles` | the standard normal score of its rank, linear between knots | the line through the outer quarter of the rows |
//!
//! Both are strictly increasing everywhere, so that each has a way back.

use serde::{Deserialize, Serialize};

/// Knots of quantiles at most.
const KNOTS: usize = 64;

/// Fewer different values are no skewed distribution.
const LEAST_VALUES: usize = 11;

/// A strictly increasing map of a feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FeatureMap {
    /// The natural logarithm.
    Log {
        /// The least value of training, positive.
        least: f64,
    },
    /// Normal scores of ranks.
    Quantiles {
        /// Values, increasing.
        values: Vec<f64>,
        /// Their scores, increasing.
        scores: Vec<f64>,
    },
}

impl FeatureMap {
    /// The logarithm, of positive values only.
    pub fn log(values: &[f64]) -> Option<Self> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least > 0.0 && least.is_finite()).then_some(Self::Log { least })
    }

    /// Normal scores of the middle rank of each value, by the standard normal quantile function; none of fewer than eleven different values.
    pub fn quantiles(values: &[f64], normal_quantile: impl Fn(f64) -> f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mut knots: Vec<(f64, f64)> = Vec::new();
        let mut below = 0;
        for equal in sorted.chunk_by(|a, b| a == b) {
            knots.push((equal[0], (below as f64 + 0.5 * equal.len() as f64) / n));
            below += equal.len();
        }
        if knots.len() < LEAST_VALUES {
            return None;
        }
        let last = knots.len() - 1;
        let count = KNOTS.min(knots.len());
        let kept = (0..count).map(|k| knots[k * last / (count - 1)]);
        let (values, scores) = kept.map(|(value, share)| (value, normal_quantile(share))).unzip();
        Some(Self::Quantiles { values, scores })
    }

    /// Whether its numbers are such as it can have.
    pub fn is_sound(&self) -> bool {
        let increasing =
            |all: &[f64]| all.iter().all(|v| v.is_finite()) && all.windows(2).all(|w| w[0] < w[1]);
        match self {
            Self::Log { least } => *least > 0.0 && least.is_finite(),
            Self::Quantiles { values, scores } => {
                values.len() == scores.len()
                    && values.len() >= LEAST_VALUES
                    && increasing(values)
                    && increasing(scores)
            }
        }
    }

    /// The map.
    pub fn apply(&self, x: f64) -> f64 {
        match self {
            Self::Log { least } if x < *least => least.ln() + (x - least) / least,
            Self::Log { .. } => x.ln(),
            Self::Quantiles { values, scores } => interpolated(values, scores, x),
        }
    }

    /// The way back.
    pub fn invert(&self, z: f64) -> f64 {
        match self {
            Self::Log { least } if z < least.ln() => least + (z - least.ln()) * least,
            Self::Log { .. } => z.exp(),
            Self::Quantiles { values, scores } => interpolated(scores, values, z),
        }
    }

    /// What it is called in words, before the name of a column.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Log { .. } => "log",
            Self::Quantiles { .. } => "normal score of",
        }
    }
}

/// A line through knots, beyond them as steep as through the outer quarter.
fn interpolated(from: &[f64], to: &[f64], at: f64) -> f64 {
    let last = from.len() - 1;
    let quarter = (last / 4).max(1);
    let line = |a: usize, b: usize, through: usize| {
        to[through] + (at - from[through]) * (to[b] - to[a]) / (from[b] - from[a])
    };
    match from.partition_point(|knot| *knot <= at) {
        0 => line(0, quarter, 0),
        above if above > last => line(last - quarter, last, last),
        above => line(above - 1, above, above - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_increase_everywhere_and_have_a_way_back() {
        let values: Vec<f64> = (0..200).map(|i| (0.05 * f64::from(i)).exp() - 0.5).collect();
        // A rough quantile function is enough to be monotone.
        let logistic = |p: f64| (p / (1.0 - p)).ln();
        for map in [FeatureMap::log(&values).unwrap(), FeatureMap::quantiles(&values, logistic).unwrap()] {
            assert!(map.is_sound());
            let mut before = f64::NEG_INFINITY;
            for k in -400..4000 {
                let x = 10.0 * f64::from(k);
                let z = map.apply(x);
                assert!(z > before, "{map:?} at {x}");
                assert!(
                    (map.invert(z) - x).abs() < 1e-6 * (1.0 + x.abs()),
                    "{map:?}: {x} {z} {}",
                    map.invert(z)
                );
                before = z;
            }
            let text = serde_json::to_string(&map).unwrap();
            assert_eq!(serde_json::from_str::<FeatureMap>(&text).unwrap(), map);
        }
        assert_eq!(FeatureMap::log(&[1.0, 0.0]), None);
        assert_eq!(FeatureMap::quantiles(&[1.0, 2.0, 2.0], logistic), None);
        assert!(!FeatureMap::Log { least: 0.0 }.is_sound());
        let broken =
            FeatureMap::Quantiles { values: vec![1.0; 12], scores: (0..12).map(f64::from).collect() };
        assert!(!broken.is_sound());
    }

    #[test]
    fn scores_are_those_of_middle_ranks() {
        // Ties share a rank: of 20 rows the first ten are 0, and the value 5 is the 15th.
        let values: Vec<f64> = (0..20).map(|i| f64::from((i - 9).max(0))).collect();
        let Some(FeatureMap::Quantiles { values, scores }) = FeatureMap::quantiles(&values, |p| p) else {
            panic!("eleven values")
        };
        assert_eq!((values[0], scores[0]), (0.0, 0.25));
        assert_eq!((values[5], scores[5]), (5.0, 0.725));
    }
}
