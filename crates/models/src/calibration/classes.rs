//! **Class probabilities and sets that hold what they say** on rows that had no part in a fit.
//!
//! One temperature makes probabilities sharper or flatter ([`Temperature`]). Sets of classes hold the true one as often as they say ([`LabelSets`]). Sets go by the probabilities as the model has them, before any temperature, so that
//! the rows that chose the temperature have chosen nothing about the sets, whose guarantee they give.

use super::rare::SharesMixture;
use super::rows::{CalibrationRequest, Guarantee, LEFT_OUT, PARTS};
use crate::facts::count;
use crate::options::CalibrateName;
use crate::{CheckedOn, Fact, Facts, ModelError, Question};
use posterior_metrics::{Classes, LabelSets, SetScores, Temperature};
use posterior_notes::fixes::CALIBRATE_NONE;
use serde::{Deserialize, Serialize};

/// Levels of sets that are told where none are asked for.
pub const SET_LEVELS: [f64; 3] = [0.8, 0.9, 0.95];

/// Standard errors by which rows that have not chosen a temperature must be likelier under it.
const ERRORS: f64 = 2.0;

/// What one temperature does to probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tempering {
    /// The one that the rows choose; above 1 it makes probabilities flatter.
    pub temperature: f64,
    /// Mean negative log-likelihood of these rows as the model has them.
    pub nll_before: f64,
    /// The same, each tenth of the rows under the temperature that the other nine choose.
    pub nll_after: f64,
    /// Standard error of the difference, row by row.
    pub difference_error: Option<f64>,
    /// Whether the search ended at 0.05 or 20, where it stops looking.
    pub at_bound: bool,
    /// Whether predictions are changed by it.
    pub applied: bool,
}

/// How class probabilities were recalibrated, and what sets of classes are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassRecalibration {
    /// Which rows told it.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// The temperature.
    pub tempering: Tempering,
    /// Sets at some levels: each tenth of the rows by what the other nine tell.
    pub sets: Vec<SetScores>,
    /// Whether the finite-sample guarantee of conformal sets holds.
    pub guarantee: Guarantee,
    /// What the model counts beside the shares of the classes, where its probabilities are averaged with these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<SharesMixture>,
}

impl ClassRecalibration {
    /// What was asked for, of a fit that was judged on such rows. By itself (`auto`) a temperature changes predictions only where rows that have not chosen it are likelier under it by two standard errors, where the search for it found an end (rows
    /// that are all right do not tell how sure to be), and where rows count the same. Sets change nothing, and are kept in any case but `none`. Probabilities are `width` for each row.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for what are no probabilities.
    pub(super) fn learn(
        asked: CalibrationRequest,
        (probabilities, width): (&[f64], usize),
        labels: &[usize],
        shares: &[f64],
    ) -> Result<Option<(Self, LabelSets)>, ModelError> {
        let CalibrationRequest { calibrate, on, guarantee, weighted } = asked;
        let rows = labels.len();
        if calibrate == CalibrateName::None || rows < 2 {
            return Ok(None);
        }
        let classes = Classes::new(probabilities, width, labels)?;
        let gains = Temperature::gains_apart(&classes, PARTS)?;
        let own = Temperature::of(&classes)?;
        let nll_before = -classes.log_likelihoods().iter().sum::<f64>() / rows as f64;
        let by_chance = gains.standard_error.is_none_or(|error| -gains.mean <= ERRORS * error);
        let applied = match calibrate {
            CalibrateName::Conformal => true,
            _ => !(by_chance || own.at_bound() || weighted),
        };
        let tempering = Tempering {
            temperature: own.value(),
            nll_before,
            nll_after: nll_before + gains.mean,
            difference_error: gains.standard_error,
            at_bound: own.at_bound(),
            applied,
        };
        let sets = SET_LEVELS.iter().map(|level| LabelSets::scored_apart(&classes, *level, PARTS));
        let sets = sets.collect::<Result<_, _>>()?;
        let mut own = Self { on, rows, tempering, sets, guarantee, shares: None };
        if !weighted {
            let mut predicted = probabilities.to_vec();
            if let Some(temperature) = own.temperature() {
                predicted.chunks_exact_mut(width).for_each(|row| {
                    temperature.apply(row);
                });
            }
            own.shares = SharesMixture::learn((&predicted, width), labels, shares);
        }
        Ok(Some((own, LabelSets::new(&classes)?)))
    }

    /// The temperature that predictions have.
    pub(super) fn temperature(&self) -> Option<Temperature> {
        Temperature::new(self.tempering.temperature).filter(|_| self.tempering.applied)
    }

    /// What was done to probabilities and why; None where they stay as the model has them.
    pub fn sentence(&self) -> Option<String> {
        let Tempering { temperature, nll_before, nll_after, at_bound, applied, .. } = self.tempering;
        let way = if temperature >= 1.0 { "flatter" } else { "sharper" };
        let end = match at_bound {
            true => ", the last that was tried: these rows do not tell it",
            false => "",
        };
        applied.then(|| {
            format!(
                "probabilities are recalibrated, {way} by a temperature of {temperature:.3}{end}: the NLL of {} {} is {nll_after:.4} (each tenth of them under what the others choose) and was {nll_before:.4}. {CALIBRATE_NONE} leaves them as \
                 the model has them",
                self.rows,
                self.on.in_words(LEFT_OUT),
            )
        })
    }

    /// What the model's probabilities are averaged with.
    pub fn sentence_of_shares(&self) -> Option<String> {
        self.shares.as_ref().map(|own| {
            format!(
                "only {} of {} rows are of another class than the most frequent one, too few to tell how sure to be: probabilities count {:.0} %, the shares of the classes the rest. {CALIBRATE_NONE} leaves them as the model has them",
                own.rare,
                self.rows,
                100.0 * own.weight
            )
        })
    }

    /// What sets are worth.
    pub fn of_sets(&self) -> Fact {
        let each = self
            .sets
            .iter()
            .map(|own| format!("{}: {:.1} %, {:.2} classes", own.level, 100.0 * own.coverage, own.mean_size));
        let worth = self.guarantee.sentence(
            "the set of a new row like these holds its class with the level's probability at least, on average over such sets of rows",
        );
        let each = each.collect::<Vec<_>>().join("; ");
        let on = count(self.rows, format!("{} ({each})", self.on.in_words(LEFT_OUT)));
        let facts = Facts::apart("; ").fact("coverage and mean size on", on).and(worth);
        Fact::new("sets of classes (predict --sets)", facts)
    }
}

/// What is to be said of sets of these levels: which of them are of all classes.
pub(crate) fn too_few_for(known: &LabelSets, levels: &[f64]) -> Vec<String> {
    let rows = known.scores().len();
    let without = levels.iter().filter(|level| known.threshold(**level).is_none());
    let each = without.map(|level| {
        format!(
            "sets of level {level} are of all classes: the {rows} rows that tell them guarantee nothing above {:.4}",
            rows as f64 / (rows as f64 + 1.0)
        )
    });
    each.collect()
}

/// Sets of classes at one level, one for each example.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedSets {
    /// Share of examples whose class is to be in its set.
    pub level: f64,
    /// Of all examples, one after the other.
    members: Vec<usize>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl PredictedSets {
    /// By probabilities, `width` for each example.
    pub(super) fn of(known: &LabelSets, (p, width): (&[f64], usize), level: f64) -> Self {
        let (mut members, mut ends) = (Vec::new(), Vec::with_capacity(p.len() / width));
        for row in p.chunks_exact(width) {
            members.extend(known.members(row, level));
            ends.push(members.len());
        }
        Self { level, members, ends }
    }

    /// The sets in the order of the examples: classes counted from 0, most probable first.
    pub fn each(&self) -> impl Iterator<Item = &[usize]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(move |(begin, end)| &self.members[begin..*end])
    }

    /// Coverage and size for classes that came true.
    pub fn scored(&self, labels: &[usize]) -> SetScores {
        SetScores::of_sets(self.level, self.each().zip(labels.iter().copied()))
    }

    /// Bytes that sets of `rows` examples take at most, with their way out as text: at the levels of a question or, where `scored` models have sets and none are named, at the usual ones.
    pub(crate) fn bytes(
        (rows, classes): (u64, u64),
        known: Option<&LabelSets>,
        (question, scored): (&Question, usize),
    ) -> u64 {
        let levels = match question.sets.len() {
            0 if scored > 0 && known.is_some() => SET_LEVELS.len(),
            asked => asked,
        };
        rows.saturating_mul(classes.saturating_mul(32).saturating_add(64)).saturating_mul(levels as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::applied::Calibration;
    use crate::calibration::numbers::tests::uniform;
    use crate::calibration::predictive::{Predicted, Predictive};
    use std::sync::Arc;

    /// Class probabilities of some rows, with what came true.
    struct Judged {
        probabilities: Vec<f64>,
        classes: usize,
        labels: Vec<usize>,
    }

    /// Labels of softmax probabilities of four classes; what is told is sharper by `sharper`.
    fn judged(rows: usize, sharper: f64, mut seed: u64) -> Judged {
        let (mut probabilities, mut labels) = (Vec::new(), Vec::new());
        let numbers: Vec<f64> = (0..5 * rows).map(|_| uniform(&mut seed)).collect();
        for own in numbers.chunks(5) {
            let softmax = |scale: f64| -> Vec<f64> {
                let each: Vec<f64> = own[..4].iter().map(|u| (3.0 * scale * u).exp()).collect();
                let sum: f64 = each.iter().sum();
                each.iter().map(|v| v / sum).collect()
            };
            let mut sum = 0.0;
            let label = softmax(1.0).iter().position(|p| {
                sum += p;
                own[4] < sum
            });
            labels.push(label.unwrap_or(3));
            probabilities.extend(softmax(sharper));
        }
        Judged { probabilities, classes: 4, labels }
    }

    fn learned(
        (calibrate, weighted): (CalibrateName, bool),
        judged: &Judged,
    ) -> Option<(ClassRecalibration, LabelSets)> {
        let asked =
            CalibrationRequest { calibrate, on: CheckedOn::HeldBack, guarantee: Guarantee::Holds, weighted };
        let Judged { probabilities, classes, labels } = judged;
        ClassRecalibration::learn(asked, (probabilities, *classes), labels, &[]).unwrap()
    }

    fn of(calibrate: CalibrateName, judged: &Judged) -> Option<(ClassRecalibration, LabelSets)> {
        learned((calibrate, false), judged)
    }

    #[test]
    fn probabilities_change_where_chance_does_not_explain_them() {
        for (sharper, changed) in [(1.0, false), (2.5, true), (0.3, true)] {
            let judged = judged(600, sharper, 1);
            let (own, _) = of(CalibrateName::Auto, &judged).unwrap();
            assert_eq!(own.tempering.applied, changed, "{own:?}");
            assert_eq!(own.sentence().is_some(), changed);
            if changed {
                assert!((own.tempering.temperature / sharper).ln().abs() < 0.35, "{own:?}");
                assert!(own.tempering.nll_after < own.tempering.nll_before - 0.02, "{own:?}");
                assert!(own.sentence().unwrap().contains("--calibrate none"));
            }
            assert!(of(CalibrateName::Conformal, &judged).unwrap().0.tempering.applied);
            assert!(of(CalibrateName::None, &judged).is_none());
            // Where rows do not count the same, their own likelihood is not what was asked for.
            let own = learned((CalibrateName::Auto, true), &judged).unwrap().0;
            assert!(!own.tempering.applied);
        }
    }

    #[test]
    fn rows_that_are_all_right_do_not_tell_how_sure_to_be() {
        let sure = Judged { probabilities: [0.8, 0.2].repeat(40), classes: 2, labels: vec![0; 40] };
        let (own, _) = of(CalibrateName::Auto, &sure).unwrap();
        assert!(own.tempering.at_bound && !own.tempering.applied);
        let (asked, _) = of(CalibrateName::Conformal, &sure).unwrap();
        assert!(asked.tempering.applied && asked.sentence().unwrap().contains("the last that was tried"));
        let one = Judged { probabilities: vec![0.8, 0.2], classes: 2, labels: vec![0] };
        assert!(of(CalibrateName::Conformal, &one).is_none());
    }

    #[test]
    fn sets_are_of_what_the_model_says_and_probabilities_of_what_is_told() {
        let told = judged(300, 3.0, 2);
        let (own, sets) = of(CalibrateName::Conformal, &told).unwrap();
        let temperature = own.temperature().unwrap();
        let given = [0.7, 0.2, 0.06, 0.04, 0.1, 0.1, 0.1, 0.7];
        let mut predictive = Predictive::empty(Predicted::Classes(given.to_vec()), false, 4, 4);
        predictive.log_density = Some(vec![0.2f64.ln(), 0.7f64.ln()]);
        let known = Calibration {
            temperature: Some(temperature),
            sets: Some(Arc::new(sets.clone())),
            ..Calibration::default()
        };
        known.apply(&[0.5, 0.9, 0.999], &mut predictive);
        let Predicted::Classes(p) = &predictive.predicted else { unreachable!() };
        for (i, (row, given)) in p.chunks(4).zip(given.chunks(4)).enumerate() {
            let direct: Vec<f64> = given.iter().map(|p| p.powf(1.0 / temperature.value())).collect();
            let sum: f64 = direct.iter().sum();
            for (own, direct) in row.iter().zip(&direct) {
                assert!((own - direct / sum).abs() < 1e-14);
            }
            let label = [1, 3][i];
            let density = predictive.log_density.as_ref().unwrap()[i];
            assert!((density - row[label].ln()).abs() < 1e-13);
        }
        assert_eq!(predictive.sets.len(), 3);
        for found in &predictive.sets {
            for (set, row) in found.each().zip(given.chunks(4)) {
                assert_eq!(set, sets.members(row, found.level));
            }
        }
        assert_eq!(predictive.sets[2].each().map(<[usize]>::len).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(predictive.sets[2].scored(&[1, 3]).coverage, 1.0);
        let said = too_few_for(&sets, &[0.5, 0.999]);
        assert!(said.len() == 1 && said[0].contains("all classes") && said[0].contains("0.9967"), "{said:?}");
        // Levels that are told hold about what they say: three deviations of so many rows, with those of the sets.
        for own in &own.sets {
            let error = (2.0 * own.level * (1.0 - own.level) / 300.0).sqrt();
            assert!(own.coverage > own.level - 3.0 * error, "{own:?}");
        }
        assert!(own.of_sets().to_string().contains("probability at least"), "{}", own.of_sets());
    }
}
