//! **Prediction sets**: which classes a row may be of, so that the true one is among them as often as is said.

use crate::{Classes, MetricsError, SplitConformal};
use serde::{Deserialize, Serialize};

/// Conformal sets of classes: those whose probability is not less than what the true classes of rows had that a model has not learned from.
///
/// The score of a row is `1 - p` of its true class. With `q` the `⌈(n + 1) a⌉`-th smallest of n scores, the set of a new row is all classes with `1 - p <= q`. It holds the row's class with probability a at least if that row and the n are
/// exchangeable, whatever the model; above `n / (n + 1)` only the set of all classes is guaranteed, and that is what is given. Of all sets that hold so many labels on average, those above one threshold have the fewest members if the
/// probabilities are right, and nothing is drawn at random (sets that add up probabilities are larger, or need draws to be exact). Their price: where the model is right more often than a, some rows would have none. The most probable
/// class is always a member, which only adds to the coverage.
///
/// The guarantee is on average over sets of n rows; given one, the share of new rows whose class is in `1 - p <= q` is a Beta variable ([`Self::spread`]), if no scores are equal. It is no guarantee for each class or each region of the inputs.
///
/// Source: Sadinle, Lei and Wasserman, *Least ambiguous set-valued classifiers with bounded error levels* (2019): thresholds, and what is to be done about empty sets; Lei et al. (2018) for the rank.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelSets {
    scores: SplitConformal,
}

/// What sets of a level are worth on rows whose classes are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetScores {
    /// The level that was asked for.
    pub level: f64,
    /// Share of rows whose class is in their set.
    pub coverage: f64,
    /// Mean number of classes in a set.
    pub mean_size: f64,
}

impl LabelSets {
    /// From rows that a model has not learned from. Cost: n log n.
    ///
    /// # Errors
    /// [`MetricsError::Empty`].
    pub fn new(classes: &Classes<'_>) -> Result<Self, MetricsError> {
        Self::of(classes, |_| true)
    }

    /// From scores that are known, such as those of a file.
    ///
    /// # Errors
    /// [`MetricsError::Empty`]; [`MetricsError::NotFinite`], or `Probability` for what is no `1 - p`, naming the row.
    pub fn from_scores(scores: &[f64]) -> Result<Self, MetricsError> {
        let own = Self { scores: SplitConformal::new(scores)? };
        match scores.iter().position(|score| !(0.0..=1.0).contains(score)) {
            Some(row) => Err(MetricsError::Probability { row, class: 0, value: 1.0 - scores[row] }),
            None => Ok(own),
        }
    }

    /// From those rows, by their numbers, for which `taken` holds.
    fn of(classes: &Classes<'_>, taken: impl Fn(usize) -> bool) -> Result<Self, MetricsError> {
        let rows = classes.probabilities().rows().zip(classes.labels()).enumerate();
        let scores: Vec<f64> =
            rows.filter(|(i, _)| taken(*i)).map(|(_, (row, label))| score(row[*label])).collect();
        Ok(Self { scores: SplitConformal::new(&scores)? })
    }

    /// The scores, ascending.
    pub fn scores(&self) -> &[f64] {
        self.scores.magnitudes()
    }

    /// The largest score of a member of sets of `level` in [0, 1); None above `n / (n + 1)`, where sets are of all classes.
    pub fn threshold(&self, level: f64) -> Option<f64> {
        self.scores.half_width(level)
    }

    /// The standard deviation over sets of n rows of the share of new rows whose class is within the threshold.
    pub fn spread(&self, level: f64) -> Option<f64> {
        self.scores.spread(level)
    }

    /// The set of a row of probabilities at `level` in [0, 1): classes counted from 0, most probable first, equally probable ones in their order. Cost: C log C.
    pub fn members(&self, row: &[f64], level: f64) -> Vec<usize> {
        members(row, self.threshold(level))
    }

    /// Sets of `level` on rows whose classes are known.
    pub fn scored(&self, classes: &Classes<'_>, level: f64) -> SetScores {
        let mut tally = Tally::default();
        let rows = classes.probabilities().rows().zip(classes.labels());
        rows.for_each(|(row, label)| tally.add(&self.members(row, level), *label));
        tally.scores(level)
    }

    /// The same of sets that the *other* rows of `folds` parts (two at least) give: what sets are worth on rows that they have not seen. Every `folds`-th row is of one part.
    ///
    /// # Errors
    /// [`MetricsError::Empty`] for fewer rows than two.
    pub fn scored_apart(classes: &Classes<'_>, level: f64, folds: usize) -> Result<SetScores, MetricsError> {
        let (folds, mut tally) = (folds.max(2), Tally::default());
        for fold in 0..folds.min(classes.labels().len()) {
            let threshold = Self::of(classes, |i| i % folds != fold)?.threshold(level);
            let rows = classes.probabilities().rows().zip(classes.labels());
            for (row, label) in rows.skip(fold).step_by(folds) {
                tally.add(&members(row, threshold), *label);
            }
        }
        Ok(tally.scores(level))
    }
}

/// Of a class with this probability.
fn score(probability: f64) -> f64 {
    (1.0 - probability).max(0.0)
}

/// Classes within a threshold, or all; never none.
fn members(row: &[f64], threshold: Option<f64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    if let Some(threshold) = threshold {
        let within = order.iter().take_while(|&&class| score(row[class]) <= threshold).count();
        order.truncate(within.max(1));
    }
    order
}

/// Rows that were looked at.
#[derive(Default)]
struct Tally {
    rows: usize,
    inside: usize,
    members: usize,
}

impl Tally {
    fn add(&mut self, set: &[usize], label: usize) {
        self.rows += 1;
        self.members += set.len();
        self.inside += usize::from(set.contains(&label));
    }

    fn scores(&self, level: f64) -> SetScores {
        let share = |count: usize| count as f64 / self.rows.max(1) as f64;
        SetScores { level, coverage: share(self.inside), mean_size: share(self.members) }
    }
}

impl SetScores {
    /// Of sets that are given with the classes that came true.
    pub fn of_sets<'a>(level: f64, sets: impl IntoIterator<Item = (&'a [usize], usize)>) -> Self {
        let mut tally = Tally::default();
        sets.into_iter().for_each(|(set, label)| tally.add(set, label));
        tally.scores(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{draw, uniform};

    #[test]
    fn sets_are_those_above_the_threshold_of_the_rank() {
        // True classes have the probabilities 0.1, 0.2, ..., 0.9: the scores are 0.1 to 0.9.
        let p: Vec<f64> = (1..=9).flat_map(|k| [f64::from(k) / 10.0, 1.0 - f64::from(k) / 10.0]).collect();
        let sets = LabelSets::new(&Classes::new(&p, 2, &[0; 9]).unwrap()).unwrap();
        assert_eq!(sets.scores().len(), 9);
        // ⌈10 · 0.5⌉ = 5: the fifth smallest of 0.1, ..., 0.9.
        assert!((sets.threshold(0.5).unwrap() - 0.5).abs() < 1e-15);
        assert_eq!(sets.members(&[0.2, 0.51, 0.29], 0.5), [1]);
        // The seventh: members have 0.3 at least, the most probable first.
        assert_eq!(sets.members(&[0.31, 0.2, 0.49], 0.7), [2, 0]);
        // None is within the first threshold: the most probable class is there all the same.
        assert_eq!(sets.members(&[0.3, 0.3, 0.4], 0.1), [2]);
        // Of equal probabilities all are within or none, and the first stands for none.
        assert_eq!(sets.members(&[0.25; 4], 0.8), [0, 1, 2, 3]);
        assert_eq!(sets.members(&[0.25; 4], 0.7), [0]);
        // Nine rows guarantee nothing above 0.9: all classes.
        assert_eq!((sets.threshold(0.91), sets.spread(0.91)), (None, None));
        assert_eq!(sets.members(&[0.0, 1.0], 0.91), [1, 0]);
        assert!((sets.spread(0.9).unwrap() - (9.0f64 / 1100.0).sqrt()).abs() < 1e-15);
        assert_eq!(LabelSets::from_scores(sets.scores()).unwrap(), sets);
    }

    #[test]
    fn coverage_is_the_level_for_a_distribution_that_is_known() {
        // The probability of the true class is uniform in (0, 1) and the model is wrong about it: it says its square. Given n rows, the share of new classes within a threshold q is P(1 - u² <= q) = 1 - √(1 - q) in closed form.
        let (n, draws, mut state) = (49, 4000, 11u64);
        let mut shares = Vec::new();
        for _ in 0..draws {
            let scores: Vec<f64> = (0..n).map(|_| 1.0 - uniform(&mut state).powi(2)).collect();
            let q = LabelSets::from_scores(&scores).unwrap().threshold(0.9).unwrap();
            shares.push(1.0 - (1.0 - q).sqrt());
        }
        // Rank 45 of 49: Beta(45, 5), whose mean is 0.9.
        let spread = LabelSets::from_scores(&[0.5; 49]).unwrap().spread(0.9).unwrap();
        let mean = shares.iter().sum::<f64>() / f64::from(draws);
        let variance = shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / f64::from(draws);
        assert!((mean - 0.9).abs() < 4.0 * spread / f64::from(draws).sqrt(), "{mean}");
        let relative = variance / (spread * spread) - 1.0;
        assert!(relative.abs() < 5.0 * (2.0 / f64::from(draws)).sqrt(), "{variance}");
    }

    #[test]
    fn classes_are_held_as_often_as_is_said_whatever_the_model() {
        // Labels come from one softmax, and the model believes in another that is far too sure and turned by one class.
        let (classes, n, news, repeats, level) = (4, 60, 40, 300, 0.8);
        let mut state = 3u64;
        let mut rows = |count: usize| -> (Vec<f64>, Vec<usize>) {
            let (mut p, mut labels) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let logits: Vec<f64> = (0..classes).map(|_| 2.0 * uniform(&mut state)).collect();
                let softmax = |scale: f64, turn: usize| -> Vec<f64> {
                    let own = (0..classes).map(|c| (scale * logits[(c + turn) % classes]).exp());
                    let own: Vec<f64> = own.collect();
                    let sum: f64 = own.iter().sum();
                    own.iter().map(|v| v / sum).collect()
                };
                labels.push(draw(&softmax(1.0, 0), uniform(&mut state)));
                p.extend(softmax(6.0, 1));
            }
            (p, labels)
        };
        let (mut inside, mut size) = (0.0, 0.0);
        for _ in 0..repeats {
            let ((p, y), (new, truth)) = (rows(n), rows(news));
            let sets = LabelSets::new(&Classes::new(&p, classes, &y).unwrap()).unwrap();
            let found = sets.scored(&Classes::new(&new, classes, &truth).unwrap(), level);
            inside += found.coverage * f64::from(news as u32);
            size += found.mean_size;
        }
        // Each repeat's share has the Beta variable's variance and that of its new rows.
        let sets = LabelSets::from_scores(&vec![0.5; n]).unwrap();
        let variance = sets.spread(level).unwrap().powi(2) + level * (1.0 - level) / news as f64;
        let error = (variance / f64::from(repeats)).sqrt();
        let coverage = inside / f64::from(repeats * news as u32);
        // Rank ⌈61 · 0.8⌉ = 49 of 60: 49/61 within the threshold; the class that is always a member may add to it.
        assert!(coverage > 49.0 / 61.0 - 4.0 * error && coverage < 0.95, "{coverage} +- {error}");
        let size = size / f64::from(repeats);
        assert!(size > 1.5 && size < 4.0, "{size}");
    }

    #[test]
    fn the_same_rows_are_scored_by_the_others() {
        // Forty sure and right rows, two that are sure and wrong: the others' threshold is that of the right ones.
        let (mut p, mut labels) = ([0.9, 0.1].repeat(42), vec![0; 40]);
        labels.extend([1, 1]);
        p[83] = 0.1;
        let classes = Classes::new(&p, 2, &labels).unwrap();
        let apart = LabelSets::scored_apart(&classes, 0.9, 10).unwrap();
        assert_eq!(apart, SetScores { level: 0.9, coverage: 40.0 / 42.0, mean_size: 1.0 });
        // Too few others for the level: sets of all classes, which hold everything.
        let few = Classes::new(&p[..8], 2, &labels[..4]).unwrap();
        let apart = LabelSets::scored_apart(&few, 0.9, 2).unwrap();
        assert_eq!((apart.coverage, apart.mean_size), (1.0, 2.0));
        assert_eq!(
            SetScores::of_sets(0.5, [(&[0usize, 1][..], 1usize), (&[2], 0)]),
            SetScores { level: 0.5, coverage: 0.5, mean_size: 1.5 }
        );
    }

    #[test]
    fn what_are_no_scores_is_refused() {
        assert_eq!(LabelSets::from_scores(&[]), Err(MetricsError::Empty));
        assert!(matches!(
            LabelSets::from_scores(&[0.1, f64::NAN]),
            Err(MetricsError::NotFinite { row: 1, .. })
        ));
        for bad in [-0.1, 1.5] {
            let found = LabelSets::from_scores(&[0.1, 0.2, bad]);
            assert!(matches!(found, Err(MetricsError::Probability { row: 2, .. })), "{found:?}");
        }
        let one = Classes::new(&[0.5, 0.5], 2, &[0]).unwrap();
        assert_eq!(LabelSets::scored_apart(&one, 0.5, 2), Err(MetricsError::Empty));
    }
}
