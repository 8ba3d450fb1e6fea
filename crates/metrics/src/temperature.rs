//! **One temperature for class probabilities**: sharper or flatter by one number, which rows that a model has not seen choose.

use crate::{Average, Classes, MetricsError};

/// A temperature T: probabilities `p_c` become `p_c^(1/T) / Σ_k p_k^(1/T)`. Above 1 they are flatter, below sharper; the order of the classes stays. Of a network's softmax that is the division of all logits by T; of averages over a
/// posterior it is the same done to the logarithms of what is predicted.
///
/// Source: Guo, Pleiss, Sun and Weinberger, *On calibration of modern neural networks* (2017), section 4.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temperature(f64);

/// The ends of the search.
const LEAST: f64 = 0.05;
const MOST: f64 = 20.0;

/// Newton's method in a bracket; each step that leaves it halves it.
const STEPS: usize = 60;

/// The logarithm of a probability; those below the smallest normal double count as that number, as in [`Classes::log_likelihoods`].
fn logarithm(p: f64) -> f64 {
    p.max(f64::MIN_POSITIVE).ln()
}

impl Temperature {
    /// One that is given; None unless it is positive and finite.
    pub fn new(value: f64) -> Option<Self> {
        (value > 0.0 && value.is_finite()).then_some(Self(value))
    }

    /// The number.
    pub fn value(&self) -> f64 {
        self.0
    }

    /// Whether a search ended at 0.05 or 20, beyond which it does not look: rows that are all right, or labels that the probabilities say nothing of.
    pub fn at_bound(&self) -> bool {
        self.0 <= LEAST || self.0 >= MOST
    }

    /// Changes the probabilities of a row. Returns `log Σ_k p_k^(1/T)`, which a log-likelihood loses after its own division by T.
    pub fn apply(&self, row: &mut [f64]) -> f64 {
        let largest = row.iter().copied().fold(0.0, f64::max);
        let top = logarithm(largest) / self.0;
        row.iter_mut().for_each(|p| *p = (logarithm(*p) / self.0 - top).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
        top + sum.ln()
    }

    /// The temperature of the least negative log-likelihood of these rows, between 0.05 and 20. The loss is convex in 1/T, so that there is one. Cost: n C for each of about ten steps.
    ///
    /// # Errors
    /// [`MetricsError::Empty`].
    pub fn of(classes: &Classes<'_>) -> Result<Self, MetricsError> {
        Self::of_rows(classes, |_| true)
    }

    /// From those rows, by their numbers, for which `taken` holds.
    fn of_rows(classes: &Classes<'_>, taken: impl Fn(usize) -> bool) -> Result<Self, MetricsError> {
        let rows = || {
            let all = classes.probabilities().rows().zip(classes.labels()).enumerate();
            all.filter(|(i, _)| taken(*i)).map(|(_, row)| row)
        };
        if rows().next().is_none() {
            return Err(MetricsError::Empty);
        }
        // Slope and curvature of the loss along 1/T: the mean of the logarithms under the changed probabilities less the label's own, and their variance.
        let mut own: Vec<f64> = Vec::new();
        let mut slopes = |inverse: f64| -> (f64, f64) {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for (row, label) in rows() {
                own.clear();
                own.extend_from_slice(row);
                Self(1.0 / inverse).apply(&mut own);
                let mean: f64 = own.iter().zip(row).map(|(w, p)| w * logarithm(*p)).sum();
                slope += mean - logarithm(row[*label]);
                curvature +=
                    own.iter().zip(row).map(|(w, p)| w * (logarithm(*p) - mean).powi(2)).sum::<f64>();
            }
            (slope, curvature)
        };
        let (mut low, mut high) = (1.0 / MOST, 1.0 / LEAST);
        if slopes(low).0 >= 0.0 {
            return Ok(Self(MOST));
        }
        if slopes(high).0 <= 0.0 {
            return Ok(Self(LEAST));
        }
        let mut at: f64 = 1.0;
        for _ in 0..STEPS {
            let (slope, curvature) = slopes(at);
            if slope < 0.0 {
                low = at
            } else {
                high = at
            }
            let newton = at - slope / curvature;
            let next = if newton > low && newton < high { newton } else { (low * high).sqrt() };
            if (next - at).abs() <= 1e-12 * at {
                break;
            }
            at = next;
        }
        Ok(Self(1.0 / at))
    }

    /// Negative log-likelihoods of these rows after less before, each row under the temperature that the *other* rows of `folds` parts (two at least) choose: what it is worth on rows that have not chosen it. Every `folds`-th row is of
    /// one part.
    ///
    /// # Errors
    /// [`MetricsError::Empty`] for fewer rows than two.
    pub fn gains_apart(classes: &Classes<'_>, folds: usize) -> Result<Average, MetricsError> {
        let (folds, mut differences) = (folds.max(2), Vec::new());
        for fold in 0..folds.min(classes.labels().len()) {
            let own = Self::of_rows(classes, |i| i % folds != fold)?;
            let rows = classes.probabilities().rows().zip(classes.labels());
            differences.extend(rows.skip(fold).step_by(folds).map(|(row, label)| {
                let before = logarithm(row[*label]);
                before - (before / own.0 - own.apply(&mut row.to_vec()))
            }));
        }
        Average::of(&differences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{draw, uniform};

    /// Labels of softmax probabilities, and the probabilities of the same logits divided by `told`.
    fn rows(count: usize, classes: usize, told: f64, state: &mut u64) -> (Vec<f64>, Vec<usize>) {
        let (mut p, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let logits: Vec<f64> = (0..classes).map(|_| 6.0 * uniform(state)).collect();
            let softmax = |t: f64| -> Vec<f64> {
                let own: Vec<f64> = logits.iter().map(|l| (l / t).exp()).collect();
                let sum: f64 = own.iter().sum();
                own.iter().map(|v| v / sum).collect()
            };
            labels.push(draw(&softmax(1.0), uniform(state)));
            p.extend(softmax(told));
        }
        (p, labels)
    }

    /// By definition.
    fn loss(p: &[f64], labels: &[usize], classes: usize, t: f64) -> f64 {
        let each = p.chunks(classes).zip(labels).map(|(row, label)| {
            let sum: f64 = row.iter().map(|p| p.powf(1.0 / t)).sum();
            -(row[*label].powf(1.0 / t) / sum).ln()
        });
        each.sum::<f64>() / labels.len() as f64
    }

    #[test]
    fn probabilities_become_what_the_divided_logits_say() {
        let mut state = 5u64;
        let (p, labels) = rows(3, 4, 1.0, &mut state);
        let t = Temperature::new(2.5).unwrap();
        for (row, label) in p.chunks(4).zip(&labels) {
            let mut own = row.to_vec();
            let sum = t.apply(&mut own);
            let direct: f64 = row.iter().map(|p| p.powf(0.4)).sum();
            assert!((sum - direct.ln()).abs() < 1e-13);
            for (own, p) in own.iter().zip(row) {
                assert!((own - p.powf(0.4) / direct).abs() < 1e-14);
            }
            assert!((own[*label].ln() - (row[*label].ln() / 2.5 - sum)).abs() < 1e-13);
        }
        // Certain rows stay certain, and are numbers.
        let mut sure = [0.0, 1.0, 0.0];
        assert_eq!((t.apply(&mut sure), sure[1]), (0.0, 1.0));
        assert!(sure[0] < 1e-100);
        assert!(Temperature::new(0.0).is_none() && Temperature::new(f64::NAN).is_none());
    }

    #[test]
    fn the_temperature_is_that_of_the_least_loss() {
        let mut state = 1u64;
        for told in [0.4, 1.0, 3.0] {
            let (p, labels) = rows(400, 3, told, &mut state);
            let found = Temperature::of(&Classes::new(&p, 3, &labels).unwrap()).unwrap();
            let at = |t: f64| loss(&p, &labels, 3, t);
            let own = found.value();
            // By definition, on both sides of it; its slope by differences is none.
            assert!(at(own) < at(own * 1.001) && at(own) < at(own / 1.001), "{own}");
            let slope = (at(own * 1.0001) - at(own / 1.0001)) / (2e-4 * own);
            assert!(slope.abs() < 1e-6, "{slope}");
            // What was told was divided by `told`: 1/told brings it back. The curvature of the loss in log T is its information; 4.5 of its standard errors.
            let h = 1e-3f64;
            let information = 400.0 * (at(own * h.exp()) + at(own * (-h).exp()) - 2.0 * at(own)) / (h * h);
            assert!((own * told).ln().abs() < 4.5 / information.sqrt(), "{told}: {own}");
            assert!(!found.at_bound());
        }
    }

    #[test]
    fn gains_are_those_of_rows_that_did_not_choose() {
        let mut state = 9u64;
        let (p, labels) = rows(90, 3, 0.3, &mut state);
        let found = Temperature::gains_apart(&Classes::new(&p, 3, &labels).unwrap(), 3).unwrap();
        // Three fits by hand.
        let mut sum = 0.0;
        for fold in 0..3 {
            let part = |own: bool| -> (Vec<f64>, Vec<usize>) {
                let rows = (0..90).filter(|i| (i % 3 == fold) == own);
                rows.map(|i| (&p[3 * i..3 * i + 3], labels[i])).fold((vec![], vec![]), |mut all, (row, y)| {
                    all.0.extend_from_slice(row);
                    all.1.push(y);
                    all
                })
            };
            let ((others, y), (mine, truth)) = (part(false), part(true));
            let t = Temperature::of(&Classes::new(&others, 3, &y).unwrap()).unwrap().value();
            sum += 30.0 * (loss(&mine, &truth, 3, t) - loss(&mine, &truth, 3, 1.0));
        }
        assert!((found.mean - sum / 90.0).abs() < 1e-12, "{found:?}");
        assert!(found.mean < -2.0 * found.standard_error.unwrap(), "{found:?}");
    }

    #[test]
    fn chance_alone_is_rarely_a_gain() {
        // Of probabilities that are right, two standard errors are left behind in few of 200 sets: 1 in 20 at most, and three deviations of such a count.
        let mut state = 21u64;
        let gains = (0..200).filter(|_| {
            let (p, labels) = rows(100, 3, 1.0, &mut state);
            let found = Temperature::gains_apart(&Classes::new(&p, 3, &labels).unwrap(), 10).unwrap();
            found.mean < -2.0 * found.standard_error.unwrap()
        });
        let gains = gains.count();
        assert!(gains <= 10 + 9, "{gains}");
    }

    #[test]
    fn ends_of_the_search_are_told() {
        // All right: ever sharper. All wrong: ever flatter.
        let p = [0.8, 0.2].repeat(5);
        for (label, end) in [(0, LEAST), (1, MOST)] {
            let found = Temperature::of(&Classes::new(&p, 2, &[label; 5]).unwrap()).unwrap();
            assert!(found.value() == end && found.at_bound());
        }
        // Probabilities of zero are numbers, too.
        let found = Temperature::of(&Classes::new(&[0.0, 1.0, 0.3, 0.7], 2, &[0, 1]).unwrap()).unwrap();
        assert!(found.value() > 1.0 && found.value().is_finite());
    }
}
