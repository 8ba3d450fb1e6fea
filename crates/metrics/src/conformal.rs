//! **Split-conformal intervals**: how wide intervals have to be so that they hold what they say, whatever the distribution.

use crate::MetricsError;
use crate::interval::half_width_factor;

/// Magnitudes of standardised residuals `|y - m| / s` of rows that a model has not learned from.
///
/// The interval `m ± q s` with `q` the `⌈(n + 1) a⌉`-th smallest of n magnitudes holds a new row with probability at least a, and at most `a + 1/(n + 1)` where no two are equal, if that row and these are exchangeable: nothing
/// is assumed of the model or of the noise. That is on average over sets of such rows; given this one, the share of new rows inside is a Beta variable ([`Self::spread`]). Widths still vary from row to row as `s` does.
///
/// Source: Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, *Distribution-free predictive inference for regression* (2018), section 2.2 and, for residuals that are standardised, 5.2; Vovk (2012), for the Beta distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitConformal {
    /// Ascending.
    magnitudes: Vec<f64>,
}

impl SplitConformal {
    /// From standardised residuals of either sign. Cost: n log n.
    ///
    /// # Errors
    /// [`MetricsError::Empty`]; [`MetricsError::NotFinite`] naming the row.
    pub fn new(residuals: &[f64]) -> Result<Self, MetricsError> {
        let magnitudes: Vec<f64> = residuals.iter().map(|z| z.abs()).collect();
        Ok(Self { magnitudes: ascending(&magnitudes)? })
    }

    /// The magnitudes, ascending.
    pub fn magnitudes(&self) -> &[f64] {
        &self.magnitudes
    }

    /// The rank of the magnitude that ends intervals of `level`.
    fn rank(&self, level: f64) -> usize {
        rank(self.magnitudes.len(), level)
    }

    /// Half the width of intervals of `level` in [0, 1), in predicted standard deviations; None above `n / (n + 1)`, where no finite interval is guaranteed.
    pub fn half_width(&self, level: f64) -> Option<f64> {
        self.magnitudes.get(self.rank(level) - 1).copied()
    }

    /// The same at any level: beyond `n / (n + 1)` as much wider than the largest magnitude as the normal distribution widens from there, without a guarantee.
    pub fn extended_half_width(&self, level: f64) -> f64 {
        self.half_width(level).unwrap_or_else(|| {
            let n = self.magnitudes.len() as f64;
            let largest = self.magnitudes.last().copied().unwrap_or_default();
            largest * half_width_factor(level) / half_width_factor(n / (n + 1.0))
        })
    }

    /// What predicted standard deviations are multiplied with so that normal intervals of `level` are the conformal ones; None where these are not finite or without width.
    pub fn factor(&self, level: f64) -> Option<f64> {
        self.half_width(level).map(|own| own / half_width_factor(level)).filter(|f| *f > 0.0 && f.is_finite())
    }

    /// The standard deviation over sets of n rows of the share of new rows inside intervals of `level`: that of a Beta(k, n + 1 - k) variable of rank k.
    pub fn spread(&self, level: f64) -> Option<f64> {
        let (rank, rows) = (self.rank(level), self.magnitudes.len());
        (rank <= rows).then(|| spread(rank, rows))
    }

    /// The share of rows inside intervals of `level` that the *other* rows of `folds` parts (two at least) give: what such intervals are worth on rows that they have not seen. Every `folds`-th row is of one part; None where the others are
    /// too few for the level.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn coverage_apart(residuals: &[f64], level: f64, folds: usize) -> Result<Option<f64>, MetricsError> {
        judged_apart(residuals.len(), folds, |others, own| {
            let pick = |rows: &[usize]| rows.iter().map(|&i| residuals[i]).collect::<Vec<_>>();
            let Some(width) = Self::new(&pick(others))?.half_width(level) else { return Ok(None) };
            Ok(Some(pick(own).iter().filter(|z| z.abs() <= width).count()))
        })
    }
}

/// In ascending order, if all are numbers.
pub(crate) fn ascending(scores: &[f64]) -> Result<Vec<f64>, MetricsError> {
    if scores.is_empty() {
        return Err(MetricsError::Empty);
    }
    if let Some((row, &value)) = scores.iter().enumerate().find(|(_, z)| !z.is_finite()) {
        return Err(MetricsError::NotFinite { what: "standardised residual", row, value });
    }
    let mut scores = scores.to_vec();
    scores.sort_by(f64::total_cmp);
    Ok(scores)
}

/// `⌈(n + 1) a⌉`, at least 1: the rank, counted from 1, of the score that a new one is below with a probability of `level` a at least; n + 1 where so few rows guarantee none.
pub(crate) fn rank(rows: usize, level: f64) -> usize {
    let wanted = (rows + 1) as f64 * level;
    // A level such as 0.95 of 19 rows is the 19th, though 20 * 0.95 is rounded up.
    (wanted * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0) as usize
}

/// The standard deviation over sets of n rows of the share of new rows between scores that are `rank` ranks apart: that of a Beta(k, n + 1 - k) variable.
pub(crate) fn spread(rank: usize, rows: usize) -> f64 {
    let (k, n) = (rank as f64, rows as f64);
    (k * (n + 1.0 - k) / ((n + 1.0).powi(2) * (n + 2.0))).sqrt()
}

/// The share of rows that are inside by what the rows of the other parts tell: `inside` counts among its second rows by its first. Every `folds`-th row is of one part, two parts at least.
pub(crate) fn judged_apart(
    rows: usize,
    folds: usize,
    inside: impl Fn(&[usize], &[usize]) -> Result<Option<usize>, MetricsError>,
) -> Result<Option<f64>, MetricsError> {
    let (folds, mut sum) = (folds.max(2), 0);
    for fold in 0..folds {
        let (own, others): (Vec<usize>, Vec<usize>) = (0..rows).partition(|i| i % folds == fold);
        let Some(count) = inside(&others, &own)? else { return Ok(None) };
        sum += count;
    }
    Ok(Some(sum as f64 / rows as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::uniform;

    #[test]
    fn ranks_are_those_of_the_theorem() {
        let nineteen: Vec<f64> =
            (1..=19).map(|i| if i % 2 == 0 { f64::from(i) } else { -f64::from(i) }).collect();
        let own = SplitConformal::new(&nineteen).unwrap();
        // ⌈20 a⌉: the largest of 19 at 0.95, nothing beyond, the tenth at one half.
        assert_eq!(own.half_width(0.95), Some(19.0));
        assert_eq!(own.half_width(0.951), None);
        assert_eq!(
            (own.half_width(0.5), own.half_width(0.501), own.half_width(0.0)),
            (Some(10.0), Some(11.0), Some(1.0))
        );
        assert!(own.extended_half_width(0.99) > 19.0 && own.extended_half_width(0.5) == 10.0);
        assert!((own.factor(0.95).unwrap() - 19.0 / 1.959_963_984_540_054).abs() < 1e-9);
        // Beta(19, 1): variance 19 / (20² 21).
        assert!((own.spread(0.95).unwrap() - (19.0f64 / 8400.0).sqrt()).abs() < 1e-15);
        assert_eq!(own.spread(0.96), None);
        // Every level k/(n + 1) is the k-th, also where its product is not a whole number in floating point.
        for n in [7usize, 99, 499, 999] {
            let own = SplitConformal::new(&(1..=n).map(|i| i as f64).collect::<Vec<_>>()).unwrap();
            for k in 1..=n {
                assert_eq!(own.half_width(k as f64 / (n + 1) as f64), Some(k as f64), "{k} of {n}");
            }
        }
    }

    #[test]
    fn coverage_is_the_level_whatever_the_distribution() {
        // Cauchy residuals, which have no variance: given n rows, the probability of a new |z| below q is 2 atan(q)/π, in closed form.
        let (n, sets, mut state) = (59, 4000, 7u64);
        let mut shares = Vec::new();
        for _ in 0..sets {
            let z: Vec<f64> =
                (0..n).map(|_| (std::f64::consts::PI * (uniform(&mut state) - 0.5)).tan()).collect();
            let q = SplitConformal::new(&z).unwrap().half_width(0.9).unwrap();
            shares.push(2.0 * q.atan() / std::f64::consts::PI);
        }
        // Rank 54 of 59: Beta(54, 6), mean 0.9, and the spread that is stated.
        let own = SplitConformal::new(&vec![1.0; n]).unwrap();
        let spread = own.spread(0.9).unwrap();
        let mean = shares.iter().sum::<f64>() / f64::from(sets);
        let variance = shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / f64::from(sets);
        assert!((mean - 0.9).abs() < 4.0 * spread / f64::from(sets).sqrt(), "{mean}");
        // The relative error of a sample variance is about √(2/sets).
        assert!(
            (variance / (spread * spread) - 1.0).abs() < 5.0 * (2.0 / f64::from(sets)).sqrt(),
            "{variance}"
        );
    }

    #[test]
    fn rows_apart_are_judged_by_the_others() {
        // Of 40 equal rows and two far ones, which their own part's widths would hold.
        let mut z = vec![1.0; 40];
        z.extend([50.0, -60.0]);
        let share = SplitConformal::coverage_apart(&z, 0.9, 2).unwrap().unwrap();
        assert!((share - 40.0 / 42.0).abs() < 1e-12, "{share}");
        assert_eq!(SplitConformal::coverage_apart(&z[..10], 0.95, 2).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_ranked_is_refused() {
        assert_eq!(SplitConformal::new(&[]), Err(MetricsError::Empty));
        assert!(matches!(SplitConformal::new(&[0.1, f64::NAN]), Err(MetricsError::NotFinite { row: 1, .. })));
        // Without width there is nothing to multiply with.
        assert_eq!(SplitConformal::new(&[0.0; 30]).unwrap().factor(0.95), None);
    }
}
