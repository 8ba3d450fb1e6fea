//! **Intervals that hold what they say** on rows that had no part in a fit.
//!
//! A model that is wrong about its own error is wrong by much the same factor on new rows. Rows that a fit was judged on tell that factor ([`SplitConformal`]): standard deviations of observations are multiplied with the one of
//! [`LEVEL`], and other levels have their own. What a model says of the noiseless function, and joint draws, stay as they are.

mod classes;
mod observed;

pub use classes::{ClassRecalibration, PredictedSets, SET_LEVELS, Tempering};
pub(crate) use classes::{JudgedClasses, too_few_for};
pub(crate) use observed::JudgedObservations;
pub use observed::{IntervalScores, ObservedRecalibration, ObservedTails};

use crate::options::CalibrateName;
use crate::predictive::standard_quantile;
use crate::process::CheckedOn;
use crate::process::FitCheck;
use crate::process::explained_by_chance;
use crate::{FitRequest, Method, ModelError};
use posterior_metrics::{SplitConformal, half_width_factor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The level whose intervals are normal ones after recalibration.
const LEVEL: f64 = 0.95;

/// Nats by which normal rows become likelier under another width, 99 times in 100 at most: half of a χ² variable of one degree of freedom.
const SURE_GAIN: f64 = 3.32;

/// The same of rows that are not normal: standard errors by which a gain is beyond doubt.
const SURE_DEVIATIONS: f64 = 2.33;

/// Parts that take turns in telling what recalibrated intervals are worth.
const PARTS: usize = 10;

/// How a model was recalibrated, and what that did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// Which rows told it.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// What standard deviations of observations are multiplied with.
    pub factor: f64,
    /// Share of these rows inside 95 % intervals of the model as it was.
    pub coverage_before: f64,
    /// The same of recalibrated intervals, each tenth of the rows by what the other nine tell; none where these are too few.
    pub coverage_after: Option<f64>,
    /// Whether 95 % intervals are as wide as the furthest of these rows asks for, more than one in twenty: of few rows, all of them far inside.
    pub by_furthest: bool,
    /// Mean negative log density of these rows before, of the standardised target (of a network's numbers, in its own units).
    pub nll_before: f64,
    /// And after.
    pub nll_after: f64,
    /// Standard deviation, over sets of as many rows, of the share of new rows that 95 % intervals hold.
    pub spread: f64,
    /// Whether the finite-sample guarantee of split-conformal intervals holds.
    pub guarantee: Guarantee,
}

/// Whether new rows like those that tell it lie inside 95 % intervals with a probability of 95 % at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// It holds: rows were held back by chance, and nothing was chosen by them.
    Holds,
    /// Hyperparameters have seen the rows, each of which is predicted from the others.
    LeaveOneOut,
    /// A method was chosen by them.
    Chosen,
    /// Hyperparameters were given, and may have seen them.
    Given,
    /// Rows with equals among those that are learned from were not held back.
    Twins,
    /// That intervals become narrower was chosen by them: where that is chance, they are too narrow by as much.
    Narrowed,
    /// Each row is predicted from the others, under hyperparameters that half of them chose; what was tried may have been chosen by them.
    LeftOut,
    /// Some of them stand among the rows learned from.
    Repeated,
    /// The training of a network kept the weights, or ended, by them.
    Kept,
    /// Fewer points carry the functions than when these rows were predicted.
    Compressed,
}

impl Guarantee {
    /// Of a fit that was judged so.
    fn of(request: &FitRequest, check: &FitCheck, factor: f64) -> Self {
        let automatic = matches!(request.method, Method::Auto(_));
        if check.on == CheckedOn::LeaveOneOut {
            Self::LeaveOneOut
        } else if automatic && !check.tried.is_empty() {
            Self::Chosen
        } else if request.hyperparameters.is_some() {
            Self::Given
        } else if check.twins > 0 {
            Self::Twins
        } else if request.calibrate == CalibrateName::Auto && factor < 1.0 {
            Self::Narrowed
        } else {
            Self::Holds
        }
    }

    /// Why it does not hold, if it does not.
    fn but(self) -> Option<&'static str> {
        Some(match self {
            Self::Holds => return None,
            Self::LeaveOneOut => "the hyperparameters have seen these rows",
            Self::Chosen => "something of the fit was chosen by these rows",
            Self::Given => "the hyperparameters were given, and may have seen these rows",
            Self::Twins => "rows with equals among those that are learned from are not among them",
            Self::Narrowed => "these rows also decided that intervals become narrower",
            Self::LeftOut => "each of these rows is predicted from the others, by what half of them chose",
            Self::Repeated => "some of these rows stand among those that are learned from",
            Self::Kept => "the network's training kept the weights that were best on these rows",
            Self::Compressed => "fewer points carry the functions since these rows were predicted",
        })
    }

    /// In words.
    fn sentence(self) -> String {
        match self.but() {
            None => format!(
                "new rows like these lie inside with a probability of {:.0} % at least",
                100.0 * LEVEL
            ),
            Some(but) => format!("{but}, so that no guarantee is exact"),
        }
    }
}

impl Recalibration {
    /// Of one number of several, whose rows have these standardised residuals and the mean negative log density `nll` (in any units); the guarantee is that for a factor.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(crate) fn of_output(
        asked: CalibrateName,
        on: CheckedOn,
        (residuals, nll): (&[f64], f64),
        guarantee: impl Fn(f64) -> Guarantee,
    ) -> Result<Option<(Self, SplitConformal)>, ModelError> {
        if residuals.is_empty() {
            return Ok(None);
        }
        let inside = residuals.iter().filter(|z| z.abs() <= half_width_factor(LEVEL)).count();
        let coverage = inside as f64 / residuals.len() as f64;
        let chance = explained_by_chance(residuals.len());
        match asked {
            CalibrateName::None => return Ok(None),
            // Networks may have been kept by these rows: how far inside they lie says little.
            CalibrateName::Auto if (chance[0]..=chance[1]).contains(&coverage) => return Ok(None),
            _ => {}
        }
        Self::by(asked, on, (coverage, nll, chance), residuals, guarantee)
    }

    /// Whether a fit that was judged so may have to be recalibrated, so that its residuals are worth their predictions.
    pub(crate) fn may_be_wanted(asked: CalibrateName, check: &FitCheck) -> bool {
        match asked {
            CalibrateName::None => false,
            CalibrateName::Conformal => true,
            CalibrateName::Auto => {
                let [low, high] = check.chance;
                let share = check.scores.coverage_95;
                // Enough are inside, and may be far inside.
                !(low..=high).contains(&share) || share >= LEVEL && tells_of_width(check.on)
            }
        }
    }

    /// What was asked for, of a fit that was judged on rows with these standardised residuals `(y - m) / s`. By itself (`auto`) only where coverage is off by more than chance explains, or held-back rows lie so far inside that narrower intervals make them likelier by more than that does (of so few rows that all may be inside, coverage says nothing, and intervals become as wide as the furthest of them asks for); and intervals become narrower only where that
    /// makes the rows likelier: where few rows are far away, what is wide is wide for them.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for residuals that are no numbers.
    pub(crate) fn of(
        request: &FitRequest,
        check: &FitCheck,
        residuals: &[f64],
    ) -> Result<Option<(Self, SplitConformal)>, ModelError> {
        let asked = request.calibrate;
        if residuals.is_empty() || !Self::may_be_wanted(asked, check) {
            return Ok(None);
        }
        let before = (check.scores.coverage_95, check.scores.nll, check.chance);
        Self::by(asked, check.on, before, residuals, |factor| Guarantee::of(request, check, factor))
    }

    /// From coverage, score and what chance explains before.
    fn by(
        asked: CalibrateName,
        on: CheckedOn,
        (coverage_before, nll_before, chance): (f64, f64, [f64; 2]),
        residuals: &[f64],
        guarantee: impl Fn(f64) -> Guarantee,
    ) -> Result<Option<(Self, SplitConformal)>, ModelError> {
        let mut conformal = SplitConformal::new(residuals)?;
        let unexplained = !(chance[0]..=chance[1]).contains(&coverage_before);
        let few = chance[1] >= 1.0;
        let cautious = asked == CalibrateName::Auto && !unexplained && few;
        if let Some(width) = conformal.half_width(LEVEL).filter(|width| cautious && *width > 0.0) {
            // The furthest row asks for more than the quantile, as rows do that are not among so few.
            let furthest = residuals.iter().fold(0.0f64, |most, z| most.max(z.abs()));
            let wider: Vec<f64> = residuals.iter().map(|z| z * furthest / width).collect();
            conformal = SplitConformal::new(&wider)?;
        }
        let (Some(factor), Some(spread)) = (conformal.factor(LEVEL), conformal.spread(LEVEL)) else {
            return Ok(None);
        };
        // Of ½ log 2πs²f² + z² / 2f².
        let gains: Vec<f64> =
            residuals.iter().map(|z| -factor.ln() - 0.5 * z * z * (1.0 / (factor * factor) - 1.0)).collect();
        let gain = gains.iter().sum::<f64>();
        let nll_after = nll_before - gain / residuals.len() as f64;
        let wanted = match asked {
            CalibrateName::Auto if coverage_before < chance[0] => true,
            CalibrateName::Auto if coverage_before > chance[1] => gain > 0.0,
            CalibrateName::Auto => {
                tells_of_width(on) && factor < 1.0 && gain > SURE_GAIN.max(SURE_DEVIATIONS * scatter(&gains))
            }
            _ => true,
        };
        if !wanted {
            return Ok(None);
        }
        let coverage_after =
            if cautious { None } else { SplitConformal::coverage_apart(residuals, LEVEL, PARTS)? };
        let own = Self {
            on,
            rows: residuals.len(),
            factor,
            coverage_before,
            coverage_after,
            by_furthest: cautious,
            nll_before,
            nll_after,
            spread,
            guarantee: guarantee(factor),
        };
        Ok(Some((own, conformal)))
    }

    /// What was done, what it was for and what it is worth.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| 100.0 * share;
        let rows = rows_in_words(self.on);
        let after = self.coverage_after.map_or_else(String::new, |after| {
            format!(", now {:.1} % (each tenth of them by what the others tell)", percent(after))
        });
        let furthest = if self.by_furthest {
            ", and they are as wide now as the furthest of these asks for"
        } else {
            ""
        };
        let (wider, latent) = match self.factor >= 1.0 {
            true => ("wider", ""),
            false => ("as wide", " The noiseless function's stay the model's, and may be larger."),
        };
        let worth = self.guarantee.sentence();
        format!(
            "intervals are recalibrated: standard deviations of observations are {:.3} times {wider}. Inside 95 % intervals were {:.1} % of {} {rows}{after}{furthest}; {worth} (+- {:.1} % for so many rows). --calibrate none leaves them as the \
             model has them.{latent}",
            self.factor,
            percent(self.coverage_before),
            self.rows,
            percent(self.spread)
        )
    }
}

/// The standard error of the sum of some terms.
fn scatter(terms: &[f64]) -> f64 {
    let count = terms.len() as f64;
    let mean = terms.iter().sum::<f64>() / count;
    terms.iter().map(|term| (term - mean).powi(2)).sum::<f64>().sqrt()
}

/// Whether how far inside rows lie says that intervals are too wide: of rows that hyperparameters have seen, it says that they have.
fn tells_of_width(on: CheckedOn) -> bool {
    on == CheckedOn::HeldBack
}

/// Rows that told it.
fn rows_in_words(on: CheckedOn) -> &'static str {
    match on {
        CheckedOn::HeldBack => "held-back rows",
        CheckedOn::LeaveOneOut => "rows (each predicted from the others)",
    }
}

/// Rows that tell how wide 95 % intervals have to be, at least.
pub(crate) const LEAST_ROWS: usize = 19;

/// Refuses before a fit what it could not do after it: `rows` are those that it will be judged on.
pub(crate) fn check(request: &FitRequest, rows: usize, exact: bool) -> Result<(), ModelError> {
    if request.calibrate != CalibrateName::Conformal || rows >= LEAST_ROWS {
        return Ok(());
    }
    let remedy = if exact { "" } else { "hold back more (--held-back), or " };
    Err(ModelError::Request(format!(
        "--calibrate conformal tells what intervals and sets have to hold by {LEAST_ROWS} rows or more; the model would be judged on {rows}: {remedy}leave it out"
    )))
}

/// Recalibrated intervals of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    factor: f64,
    conformal: Arc<SplitConformal>,
}

impl Intervals {
    pub(crate) fn new(factor: f64, conformal: Arc<SplitConformal>) -> Self {
        Self { factor, conformal }
    }

    /// How far the quantile at `level` in (0, 1) lies from the mean, in recalibrated standard deviations.
    pub(crate) fn quantile(&self, level: f64) -> f64 {
        let sides = 2.0 * level - 1.0;
        // The centre is the mean, though intervals of no probability may have a width.
        if sides == 0.0 {
            return 0.0;
        }
        self.conformal.extended_half_width(sides.abs()) / self.factor * sides.signum()
    }
}

/// Its quantile, or that of the standard normal distribution where nothing was recalibrated.
pub(crate) fn quantile(intervals: Option<&Intervals>, level: f64) -> f64 {
    intervals.map_or_else(|| standard_quantile(level), |own| own.quantile(level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::CheckScores;

    /// Pseudo-random numbers in (0, 1).
    pub(super) fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn of(
        calibrate: CalibrateName,
        check: &FitCheck,
        residuals: &[f64],
    ) -> Option<(Recalibration, SplitConformal)> {
        let request = FitRequest {
            calibrate,
            method: crate::options::MethodName::Sgpr.into(),
            ..FitRequest::default()
        };
        Recalibration::of(&request, check, residuals).unwrap()
    }

    fn check(residuals: &[f64], nll: f64) -> FitCheck {
        let inside = residuals.iter().filter(|z| z.abs() <= 1.959_963_984_540_054).count();
        let coverage_95 = inside as f64 / residuals.len() as f64;
        let scores = CheckScores { rmse: 0.5, nll, coverage_95 };
        FitCheck::new(CheckedOn::HeldBack, residuals.len(), scores, None)
    }

    /// Normal quantiles in an order that has nothing to do with their size.
    fn residuals(scale: f64) -> Vec<f64> {
        (0..400).map(|i| scale * standard_quantile((f64::from(i * 171 % 400) + 0.5) / 400.0)).collect()
    }

    #[test]
    fn intervals_change_where_chance_does_not_explain_them() {
        let nll = |z: &[f64]| z.iter().map(|z| 0.5 * z * z).sum::<f64>() / z.len() as f64;
        for (scale, changed) in [(1.0, false), (1.8, true), (0.4, true)] {
            let z = residuals(scale);
            let found = of(CalibrateName::Auto, &check(&z, nll(&z)), &z);
            assert_eq!(found.is_some(), changed, "{scale}");
            let asked = of(CalibrateName::Conformal, &check(&z, nll(&z)), &z).unwrap().0;
            // The 381st of 401 ranks of 400 normal quantiles.
            assert!((asked.factor / scale - 1.0).abs() < 0.02, "{asked:?}");
            // The density, of deviations that are multiplied, by definition.
            let direct =
                z.iter().map(|z| 0.5 * (z / asked.factor).powi(2) + asked.factor.ln()).sum::<f64>() / 400.0;
            assert!((asked.nll_after - direct).abs() < 1e-12);
            assert!(
                (asked.coverage_after.unwrap() - 0.95).abs() < 0.02 && asked.guarantee == Guarantee::Holds
            );
            assert!(of(CalibrateName::None, &check(&z, nll(&z)), &z).is_none());
        }
    }

    #[test]
    fn few_rows_far_inside_are_noticed() {
        // All of sixty are inside in any case; how far tells the scale.
        let nll = |z: &[f64]| z.iter().map(|z| 0.5 * z * z).sum::<f64>() / z.len() as f64;
        for (scale, changed) in [(0.95, false), (0.1, true)] {
            let z: Vec<f64> = residuals(scale).into_iter().filter(|z| z.abs() < 1.9).take(60).collect();
            let check = check(&z, nll(&z));
            assert!(check.scores.coverage_95 == 1.0 && check.chance[1] == 1.0);
            let found = of(CalibrateName::Auto, &check, &z);
            assert_eq!(found.is_some(), changed, "{scale}");
            if let Some((own, _)) = found {
                // As wide as the furthest asks for, which is more than one in twenty does.
                let furthest = z.iter().fold(0.0f64, |most, z| most.max(z.abs()));
                assert!((own.factor * 1.959_963_984_540_054 / furthest - 1.0).abs() < 1e-9, "{own:?}");
                assert!(
                    own.factor < 0.2 && own.guarantee == Guarantee::Narrowed && own.by_furthest,
                    "{own:?}"
                );
                assert!(own.sentence().contains("100.0 % of 60 held-back rows, and they are as wide now"));
            }
            let seen = FitCheck { on: CheckedOn::LeaveOneOut, ..check };
            assert!(of(CalibrateName::Auto, &seen, &z).is_none());
        }
    }

    #[test]
    fn what_is_wide_for_a_few_far_rows_stays_wide() {
        // Nearly all of them close to the mean, a hundredth twenty deviations away.
        let mut z: Vec<f64> = residuals(0.3);
        z.iter_mut().step_by(100).for_each(|z| *z = 20.0);
        let nll = z.iter().map(|z| 0.5 * z * z).sum::<f64>() / 400.0;
        let check = check(&z, nll);
        assert!(check.scores.coverage_95 > check.chance[1]);
        assert!(of(CalibrateName::Auto, &check, &z).is_none());
    }

    #[test]
    fn too_few_rows_tell_nothing() {
        let few = residuals(3.0)[..18].to_vec();
        for calibrate in [CalibrateName::Auto, CalibrateName::Conformal] {
            assert!(of(calibrate, &check(&few, 1.0), &few).is_none());
        }
        // What was asked for is refused before the fit.
        let asked = FitRequest { calibrate: CalibrateName::Conformal, ..FitRequest::default() };
        let error = super::check(&asked, 18, false).unwrap_err().to_string();
        assert!(
            error.contains("19 rows or more") && error.contains("judged on 18: hold back more"),
            "{error}"
        );
        assert!(
            super::check(&asked, 19, true).is_ok() && super::check(&FitRequest::default(), 0, true).is_ok()
        );
    }

    #[test]
    fn what_these_rows_had_a_part_in_is_said() {
        let z = residuals(0.4);
        let base = check(&z, 0.0);
        let request = |calibrate, method: crate::options::MethodName| FitRequest {
            calibrate,
            method: method.into(),
            ..FitRequest::default()
        };
        use crate::options::MethodName::{Auto, Dkl, Sgpr};
        let asked = |method| request(CalibrateName::Conformal, method);
        let tried = crate::process::TriedMethod {
            method: "exact".into(),
            scores: None,
            recalibrated_nll: None,
            seconds: 0.0,
            predicted_seconds: None,
            reached_seconds: None,
            outcome: String::new(),
        };
        let beside = FitCheck { tried: vec![tried], ..base.clone() };
        let of = |request: &FitRequest, check: &FitCheck, factor| Guarantee::of(request, check, factor);
        assert_eq!(of(&asked(Sgpr), &base, 0.5), Guarantee::Holds);
        // What is beside the method that was asked for is no choice.
        assert_eq!(of(&asked(Dkl), &beside, 2.0), Guarantee::Holds);
        assert_eq!(of(&asked(Auto), &beside, 2.0), Guarantee::Chosen);
        assert_eq!(of(&request(CalibrateName::Auto, Sgpr), &base, 2.0), Guarantee::Holds);
        assert_eq!(of(&request(CalibrateName::Auto, Sgpr), &base, 0.5), Guarantee::Narrowed);
        let given = FitRequest { hyperparameters: Some(Vec::new()), ..asked(Sgpr) };
        assert_eq!(of(&given, &base, 2.0), Guarantee::Given);
        assert_eq!(of(&asked(Sgpr), &FitCheck { twins: 3, ..base.clone() }, 2.0), Guarantee::Twins);
        let left_out = FitCheck { on: CheckedOn::LeaveOneOut, ..base };
        assert_eq!(of(&asked(Sgpr), &left_out, 2.0), Guarantee::LeaveOneOut);
    }

    #[test]
    fn quantiles_are_those_of_the_rows() {
        let z = residuals(2.0);
        let conformal = Arc::new(SplitConformal::new(&z).unwrap());
        let factor = conformal.factor(LEVEL).unwrap();
        let own = Intervals::new(factor, conformal.clone());
        assert_eq!(own.quantile(0.5), 0.0);
        // At the level itself deviations are normal ones.
        assert!((own.quantile(0.975) - standard_quantile(0.975)).abs() < 1e-12);
        assert!((own.quantile(0.025) + own.quantile(0.975)).abs() < 1e-15);
        assert_eq!(own.quantile(0.9) * factor, conformal.half_width(0.8).unwrap());
        let levels: Vec<f64> = (1..1000).map(|k| own.quantile(f64::from(k) / 1000.0)).collect();
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]) && levels[998].is_finite());
    }
}
