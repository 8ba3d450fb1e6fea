//! **Conformal quantiles, each side by itself**: for distributions that are skewed, whose intervals do not lie about a mean.

use crate::MetricsError;
use crate::conformal::{ascending, judged_apart, rank, spread};

/// Scores of rows that a model has not learned from, such as standardised residuals with their signs: a larger truth has a larger score.
///
/// A new row's score is at most the `⌈(n + 1) p⌉`-th smallest of n with a probability of `p` at least, and at least the `⌈(n + 1) (1 - p)⌉`-th largest with `1 - p` at least, if that row and these are exchangeable; between both ends of a central
/// interval of level a it is with a probability of a at least. Nothing is assumed of model or noise.
///
/// Source: Linusson, Johansson and Löfström, *Signed-error conformal regression* (2014); Romano, Patterson and Candès, *Conformalized quantile regression* (2019), theorem 2.
#[derive(Clone, Debug, PartialEq)]
pub struct ConformalTails {
    /// Ascending.
    scores: Vec<f64>,
}

impl ConformalTails {
    /// From the scores of rows in any order. Cost: n log n.
    ///
    /// # Errors
    /// [`MetricsError::Empty`]; [`MetricsError::NotFinite`] naming the row.
    pub fn new(scores: &[f64]) -> Result<Self, MetricsError> {
        Ok(Self { scores: ascending(scores)? })
    }

    /// The scores, ascending.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The score of the quantile at `level` in (0, 1); None where so few rows guarantee none.
    pub fn quantile(&self, level: f64) -> Option<f64> {
        let n = self.scores.len();
        let from_below = match level < 0.5 {
            true => (n + 1).checked_sub(rank(n, 1.0 - level))?,
            false => rank(n, level),
        };
        from_below.checked_sub(1).and_then(|k| self.scores.get(k)).copied()
    }

    /// The same at any level: beyond what is guaranteed as much farther than the last score as `reference`, a distribution's quantiles in units of the scores, goes on from there; without a guarantee.
    pub fn extended_quantile(&self, level: f64, reference: impl Fn(f64) -> f64) -> f64 {
        self.quantile(level).unwrap_or_else(|| {
            let n = self.scores.len() as f64;
            let (last, at) = match level < 0.5 {
                true => (self.scores[0], 1.0 / (n + 1.0)),
                false => (self.scores[self.scores.len() - 1], n / (n + 1.0)),
            };
            last + reference(level) - reference(at)
        })
    }

    /// The standard deviation over sets of n rows of the share of new rows inside central intervals of `level`; None where these have no guaranteed ends.
    pub fn spread(&self, level: f64) -> Option<f64> {
        let n = self.scores.len();
        let upper = rank(n, 0.5 + 0.5 * level);
        // From the (n + 1 - k)-th to the k-th of n.
        (upper <= n).then(|| spread((2 * upper).saturating_sub(n + 1), n))
    }

    /// The share of rows inside central intervals of `level` that the other rows of `folds` parts give: what such intervals are worth on rows that they have not seen. None where the others are too few for the level.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn coverage_apart(scores: &[f64], level: f64, folds: usize) -> Result<Option<f64>, MetricsError> {
        judged_apart(scores.len(), folds, |others, own| {
            let tails = Self::new(&others.iter().map(|&i| scores[i]).collect::<Vec<_>>())?;
            let ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level].map(|at| tails.quantile(at));
            let [Some(low), Some(high)] = ends else { return Ok(None) };
            Ok(Some(own.iter().filter(|&&i| (low..=high).contains(&scores[i])).count()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::uniform;

    #[test]
    fn ranks_are_those_of_the_theorem() {
        let own: Vec<f64> = (1..=39).rev().map(f64::from).collect();
        let tails = ConformalTails::new(&own).unwrap();
        // 40 times 0.975 is the last of 39, 40 times 0.025 the first.
        assert_eq!((tails.quantile(0.975), tails.quantile(0.025)), (Some(39.0), Some(1.0)));
        assert_eq!((tails.quantile(0.976), tails.quantile(0.024)), (None, None));
        assert_eq!(
            (tails.quantile(0.5), tails.quantile(0.75), tails.quantile(0.25)),
            (Some(20.0), Some(30.0), Some(10.0))
        );
        assert!(tails.spread(0.96).is_none());
        // Beta(38, 2).
        assert!((tails.spread(0.95).unwrap() - (38.0f64 * 2.0 / (1600.0 * 41.0)).sqrt()).abs() < 1e-15);
        let reference = |p: f64| (p / (1.0 - p)).ln();
        let beyond = tails.extended_quantile(0.99, reference);
        assert!((beyond - (39.0 + reference(0.99) - reference(0.975))).abs() < 1e-12);
        assert!((tails.extended_quantile(0.01, reference) + beyond - 40.0).abs() < 1e-9);
    }

    /// Exponential scores, all on one side: each end holds what it says on average, as order statistics of uniform numbers do.
    #[test]
    fn each_end_holds_what_it_says() {
        let (n, sets, mut state) = (79, 4000, 11u64);
        let (mut below, mut above, mut inside) = (0.0, 0.0, Vec::new());
        for _ in 0..sets {
            let own: Vec<f64> = (0..n).map(|_| -uniform(&mut state).ln()).collect();
            let tails = ConformalTails::new(&own).unwrap();
            let [low, high] = [0.05, 0.95].map(|at| (-tails.quantile(at).unwrap()).exp());
            below += 1.0 - high;
            above += low;
            inside.push(low - high);
        }
        let sets = f64::from(sets);
        let spread = ConformalTails::new(&vec![0.0; n]).unwrap().spread(0.9).unwrap();
        // An end alone: Beta(76, 4).
        let one = (76.0f64 * 4.0 / (6400.0 * 81.0)).sqrt();
        for (share, level, deviation) in
            [(below, 0.95, one), (above, 0.95, one), (inside.iter().sum::<f64>(), 0.9, spread)]
        {
            assert!((share / sets - level).abs() < 4.0 * deviation / sets.sqrt(), "{} {level}", share / sets);
        }
        let mean = inside.iter().sum::<f64>() / sets;
        let variance = inside.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / sets;
        assert!((variance / (spread * spread) - 1.0).abs() < 5.0 * (2.0 / sets).sqrt(), "{variance}");
    }

    #[test]
    fn rows_apart_are_judged_by_the_others() {
        let mut z = vec![1.0; 60];
        z.extend([50.0, -60.0]);
        let share = ConformalTails::coverage_apart(&z, 0.9, 2).unwrap().unwrap();
        assert!((share - 60.0 / 62.0).abs() < 1e-12, "{share}");
        assert_eq!(ConformalTails::coverage_apart(&z[..30], 0.95, 2).unwrap(), None);
        assert_eq!(ConformalTails::new(&[]), Err(MetricsError::Empty));
        assert!(matches!(ConformalTails::new(&[f64::NAN]), Err(MetricsError::NotFinite { row: 0, .. })));
    }
}
