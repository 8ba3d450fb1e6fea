//! How good a fit is on rows that had no part in it, and what is to be said about that.

use crate::calibration::{Before, CalibrationRequest, explained_by_chance, standard_error};
use crate::facts::{STANDARDISED, figure, fixed};
use crate::options::MethodName;
use crate::rows::{equals, scored};
use crate::text::time;
use crate::{CheckedOn, Fact, Facts, FitRequest, Guarantee, ModelError};
use posterior_metrics::Gaussians;
use posterior_notes::fixes::{ITERATIONS, KERNEL, LIKELIHOOD_STUDENT_T, PRECISION_F64, SVGP, TIME_BUDGET};
use serde::{Deserialize, Serialize};

/// Scores in units of the target's standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckScores {
    /// Root mean square error.
    pub rmse: f64,
    /// Mean negative log predictive density.
    pub nll: f64,
    /// Share of truths inside their central 95 % intervals.
    pub coverage_95: f64,
}

impl CheckScores {
    /// Of standardised predictions with variances of new observations.
    pub(crate) fn of(mean: &[f64], variance: &[f64], truth: &[f64]) -> Result<Self, ModelError> {
        let scores = Gaussians::new(mean, variance, truth)?.scores(1.0)?;
        Ok(Self { rmse: scores.rmse, nll: scores.nll, coverage_95: scores.coverage_95 })
    }

    /// In words, with the standard error of the share inside, where it is said.
    fn facts(&self, error: &str) -> Facts {
        let inside = format!("{:.1} % inside 95 % intervals {error}", 100.0 * self.coverage_95);
        Facts::new()
            .and(inside.trim_end())
            .fact("RMSE", fixed(self.rmse, 4, ""))
            .fact("NLL", fixed(self.nll, 4, STANDARDISED))
    }
}

/// A posterior that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedMethod {
    /// What it was.
    pub method: String,
    /// Its scores on the held-back rows; none where it was not tried.
    pub scores: Option<CheckScores>,
    /// Mean negative log density of these rows once intervals are recalibrated, where they would be: what it is compared by.
    pub recalibrated_nll: Option<f64>,
    /// Seconds it took.
    pub seconds: f64,
    /// Seconds that were foretold for it by what it took on few rows; none where nothing was.
    pub predicted_seconds: Option<f64>,
    /// Seconds of a solver's steps after which it was where the forecast is of ([`FitCheck::reached_seconds`]).
    pub reached_seconds: Option<f64>,
    /// What became of it.
    pub outcome: String,
}

impl TriedMethod {
    /// One that nothing else is said of.
    pub(crate) fn untried(method: MethodName, outcome: impl Into<String>) -> Self {
        Self {
            method: method.to_string(),
            scores: None,
            recalibrated_nll: None,
            seconds: 0.0,
            predicted_seconds: None,
            reached_seconds: None,
            outcome: outcome.into(),
        }
    }

    fn fact(&self) -> Fact {
        let scores = self.scores.map_or_else(Facts::new, |scores| scores.facts(""));
        let reached = self.reached_seconds.map_or_else(String::new, |own| {
            format!(" to a tenth of its deviations, where it was after {}", time(own))
        });
        let predicted = self.predicted_seconds.map(|own| format!("(predicted: {}{reached})", time(own)));
        let facts = Facts::apart("; ")
            .and(self.outcome.as_str())
            .and(scores.maybe("recalibrated", self.recalibrated_nll.map(|nll| fixed(nll, 4, ""))))
            .and(Facts::apart(" ").and(fixed(self.seconds, 1, "s")).maybe("", predicted));
        Fact::new(format!("tried {}", self.method), facts)
    }
}

/// What a user must know of training beside which there was no time for a plain process.
pub(crate) const NOT_COMPARED: &str = "no plain process was fitted to compare with, since the time was used up: whether this was worth its while is not known";

/// What is known of a fit's quality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitCheck {
    /// Which rows.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// Rows that were held back as well and equal rows that are learned from, to which they were given back: they tell how well a fit remembers.
    pub training_duplicates: usize,
    /// Duplicates of these rows that were left out with them: of a table that holds its rows several times.
    pub duplicates: usize,
    /// Their scores.
    pub scores: CheckScores,
    /// Shares inside 95 % intervals that chance explains, 99 times in 100, of so many rows.
    pub chance: [f64; 2],
    /// Whether an iterative solver had converged; none for methods in closed form.
    pub converged: Option<bool>,
    /// By how much predictions still moved over the last third of the solver's steps: root mean square, in predicted standard deviations.
    pub drift: Option<f64>,
    /// Seconds of the solver's steps after which predictions of these rows stayed within a tenth of their standard deviations of where they ended, those of an earlier run included: by the first look at them from which on they did, so at most so many. None where no look was near the end, and for methods in closed form.
    pub reached_seconds: Option<f64>,
    /// The relative standard error of variances that come from samples, that of their random features included.
    pub variance_error: Option<f64>,
    /// The largest relative residual that the solver ended with, where it is of a system on all rows.
    pub residual: Option<f64>,
    /// What `auto` tried, in order.
    pub tried: Vec<TriedMethod>,
    /// What a user must know of the model as it is, before intervals are recalibrated.
    pub warnings: Vec<String>,
}

/// Predictions that move by less than this over the last third of the steps, in predicted standard deviations, have converged: added to a deviation of 1
/// it widens intervals by half a per cent.
pub(crate) const CONVERGED: f64 = 0.1;

/// What every warning about their coverage begins with.
const INTERVALS_ARE: &str = "intervals are";

/// How the warning of outliers begins.
pub(crate) const OUTLIERS: &str = "outliers or heavy tails";

/// What a user must know of a system of which more is left than `harmless`.
pub(crate) fn unsolved_in_words(residual: f64, harmless: f64, single: bool) -> String {
    let precision = match single {
        true => {
            format!(", solve in double precision ({PRECISION_F64}) where the residual stays or grows")
        }
        false => String::new(),
    };
    format!(
        "the solver has not converged: a relative residual of {residual:.2} is left, where {harmless:.2} would be harmless. The mean is not yet that of the model, \
         and its own error bars do not know of that error: give more time ({TIME_BUDGET}, {ITERATIONS}){precision}, or take {SVGP}"
    )
}

/// Deviations beyond which a row is far away, the share of a normal distribution there, and how many are told of: of few rows three, of many one in five hundred.
const FAR: f64 = 4.0;
const FAR_SHARE: f64 = 6.33e-5;
const FEWEST_FAR: usize = 3;
const FAR_EACH: usize = 500;

impl FitCheck {
    /// A check with its warnings. `intervals` is what a user can do about intervals that do not fit.
    pub(crate) fn new(on: CheckedOn, rows: usize, scores: CheckScores, drift: Option<f64>) -> Self {
        Self::of(on, (rows, rows), scores, drift)
    }

    /// The same of rows that say as much as so many `independent` ones.
    pub(crate) fn of(
        on: CheckedOn,
        (rows, independent): (usize, usize),
        scores: CheckScores,
        drift: Option<f64>,
    ) -> Self {
        let chance = explained_by_chance(independent);
        let converged = drift.map(|d| d <= CONVERGED);
        let mut warnings = Vec::new();
        if let Some(drift) = drift.filter(|d| *d > CONVERGED) {
            warnings.push(format!(
                "the solver has not converged: over the last third of its steps predictions still moved by {drift:.2} of their standard deviations. The mean is not yet that of the \
                 model, and its own error bars do not know of that error: give more time ({TIME_BUDGET}, {ITERATIONS}), or take {SVGP}"
            ));
        }
        let percent = |share: f64| 100.0 * share;
        let rows_are = on.in_words("rows (leave-one-out)");
        let (low, high) = (percent(chance[0]), percent(chance[1]));
        if scores.coverage_95 < chance[0] {
            warnings.push(format!(
                "{INTERVALS_ARE} too narrow: {:.1} % of {rows} {rows_are} lie inside their 95 % intervals, where chance explains {low:.1} to {high:.1} %. Do not take them at their \
                 word; another kernel ({KERNEL}), another method or more time may fit better",
                percent(scores.coverage_95)
            ));
        } else if scores.coverage_95 > chance[1] {
            warnings.push(format!(
                "{INTERVALS_ARE} wider than they need be: {:.1} % of {rows} {rows_are} lie inside their 95 % intervals, where chance explains {low:.1} to {high:.1} %",
                percent(scores.coverage_95)
            ));
        }
        if scores.rmse >= 1.0 {
            warnings.push(format!(
                "predictions are no better than the mean of the target: the error on {rows} {rows_are} is {:.2} of the target's standard deviation",
                scores.rmse
            ));
        }
        Self {
            on,
            rows,
            training_duplicates: 0,
            duplicates: 0,
            scores,
            chance,
            converged,
            drift,
            reached_seconds: None,
            variance_error: None,
            residual: None,
            tried: Vec::new(),
            warnings,
        }
    }

    /// With a warning where more of the rows, with these standardised residuals, are far away than a normal distribution has.
    pub(crate) fn with_outliers(mut self, residuals: &[f64]) -> Self {
        let rows = residuals.len();
        let far = residuals.iter().filter(|z| z.abs() > FAR).count();
        // Where fewer lie inside than should, intervals are narrow for all.
        if self.scores.coverage_95 >= 0.95 && far >= FEWEST_FAR.max(rows.div_ceil(FAR_EACH)) {
            self.warnings.push(format!(
                "{OUTLIERS}: {far} of {rows} rows lie more than {FAR} predicted standard deviations away, where a normal distribution has {:.2}; the intervals of all rows are wide for their sake. {LIKELIHOOD_STUDENT_T} learns how heavy the tails are",
                rows as f64 * FAR_SHARE
            ));
        }
        self
    }

    /// Without the warning that begins so, where what it advises was tried and predicts no better, or cannot.
    pub(crate) fn drop_warning(&mut self, beginning: &str) {
        self.warnings.retain(|warning| !warning.starts_with(beginning));
    }

    /// With the relative residual that the solver ended with. Predictions of a slow solver hardly move either: where more is left than `harmless`, it has not
    /// converged.
    pub(crate) fn with_residual(mut self, residual: f64, harmless: f64, single: bool) -> Self {
        self.residual = Some(residual);
        if residual > harmless {
            self.converged = Some(false);
            self.warnings.insert(0, unsolved_in_words(residual, harmless, single));
        }
        self
    }

    /// How good intervals are on its rows, before these recalibrate them. How far inside rows lie that hyperparameters have seen says that they have.
    pub(crate) fn before(&self) -> Before {
        let CheckScores { coverage_95: coverage, nll, .. } = self.scores;
        let tells_of_width = self.on != CheckedOn::LeaveOneOut;
        Before { coverage, chance: self.chance, nll, tells_of_width }
    }

    /// What a request asks its rows to tell.
    pub(crate) fn asked(&self, request: &FitRequest) -> CalibrationRequest {
        let chosen = request.method.settings().is_automatic() && !self.tried.is_empty();
        let guarantee = Guarantee::unless([
            (self.on == CheckedOn::LeaveOneOut, Guarantee::LeaveOneOut),
            (self.on == CheckedOn::Folds, Guarantee::Folds),
            (chosen, Guarantee::Chosen),
            (request.start.hyperparameters().is_some(), Guarantee::Given),
            (self.training_duplicates > 0, Guarantee::TrainingDuplicates),
        ]);
        CalibrationRequest {
            calibrate: request.validation.calibrate,
            on: self.on,
            guarantee,
            weighted: false,
        }
    }

    /// What is to be said of a coverage below 0.90 or above 0.99 that so few rows may have by chance; others are as they should be, or have a warning.
    pub(crate) fn by_chance(&self) -> Option<String> {
        let [low, high] = self.chance;
        let share = self.scores.coverage_95;
        let far = !(0.90..=0.99).contains(&share);
        (far && (low..=high).contains(&share)).then(|| {
            let percent = |share: f64| 100.0 * share;
            format!("of so few rows chance explains {:.1} to {:.1} % inside", percent(low), percent(high))
        })
    }

    /// How good the fit is; `before` says what was done to it since.
    pub(crate) fn facts(&self, before: &str) -> Facts {
        let error = format!("(+- {:.1} %)", 100.0 * standard_error(self.chance));
        let own = scored(self.rows, self.scores.facts(&error));
        let own = own.maybe("", self.by_chance()).and(equals(self.training_duplicates, self.duplicates));
        let converged = self.converged.zip(self.drift).map(|(converged, drift)| {
            // What is left of the system may say more than what no longer moves.
            let residual = self.residual.filter(|_| !converged && drift <= CONVERGED);
            let moved = Facts::apart("; ")
                .maybe("a relative residual of", residual.map(|left| figure(left, "is left")))
                .fact(
                    "over the last third of the steps predictions moved by",
                    fixed(drift, 3, "of their standard deviations"),
                );
            Facts::apart(": ").and(if converged { "yes" } else { "NO" }).and(moved)
        });
        let error = "%, of samples and their random features together";
        Facts::new()
            .fact(format!("{}{before}", self.on.in_words("leave-one-out")), own)
            .maybe("converged", converged)
            .maybe("error of variances", self.variance_error.map(|own| fixed(100.0 * own, 0, error)))
            .with(self.tried.iter().map(TriedMethod::fact))
    }

    /// What a user must know of a model whose intervals are as it has them, or are made to fit.
    pub(crate) fn warnings(&self, recalibrated: bool) -> impl Iterator<Item = &String> {
        self.warnings.iter().filter(move |warning| !(recalibrated && warning.starts_with(INTERVALS_ARE)))
    }

    /// Whether nothing speaks against it. Narrow intervals do not where they are `recalibrated`.
    pub(crate) fn is_sound(&self, recalibrated: bool) -> bool {
        self.converged != Some(false) && (recalibrated || self.scores.coverage_95 >= self.chance[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Start;

    fn check(rows: usize, coverage_95: f64, drift: Option<f64>) -> FitCheck {
        FitCheck::new(CheckedOn::HeldBack, rows, CheckScores { rmse: 0.3, nll: 0.1, coverage_95 }, drift)
    }

    #[test]
    fn what_chance_explains_is_no_warning() {
        // 500 rows: 0.95 ± 2.576 √(0.95 0.05 / 500) = 0.95 ± 0.0251.
        let band = check(500, 0.95, None).chance;
        assert!((band[0] - 0.9249).abs() < 1e-4 && (band[1] - 0.9751).abs() < 1e-4, "{band:?}");
        assert!(check(500, 0.93, None).warnings.is_empty() && check(500, 0.93, None).is_sound(false));
        let narrow = check(500, 0.72, None);
        assert!(narrow.warnings[0].contains("too narrow: 72.0 %"), "{narrow:?}");
        assert!(!narrow.is_sound(false) && narrow.is_sound(true));
        let wide = check(500, 0.998, None);
        assert!(wide.warnings[0].contains("wider than they need be") && wide.is_sound(false));
        // Of 20 rows, 17 inside their intervals are no reason to cry wolf.
        assert!(check(20, 0.85, None).warnings.is_empty());
        // But it is said, as is that all are.
        for share in [0.85, 1.0] {
            assert!(check(20, share, None).by_chance().unwrap().contains("explains 82.4 to 100.0 %"));
        }
        assert!(check(20, 0.95, None).by_chance().is_none() && wide.by_chance().is_none());
        let useless = FitCheck::new(
            CheckedOn::LeaveOneOut,
            500,
            CheckScores { rmse: 1.2, nll: 2.0, coverage_95: 0.95 },
            None,
        );
        assert!(useless.warnings[0].contains("no better than the mean"));
    }

    #[test]
    fn a_solver_whose_predictions_still_move_has_not_converged() {
        let moving = check(500, 0.95, Some(0.4));
        assert_eq!(
            (moving.converged, moving.is_sound(false), moving.is_sound(true)),
            (Some(false), false, false)
        );
        assert!(moving.warnings[0].contains("0.40 of their standard deviations"), "{:?}", moving.warnings);
        assert_eq!(check(500, 0.95, Some(0.02)).converged, Some(true));
        assert_eq!(check(500, 0.95, None).converged, None);
        // A solver that hardly moves has not converged while most of the system is unsolved.
        let slow = check(500, 0.95, Some(0.01)).with_residual(0.65, 0.4, true);
        assert!(slow.converged == Some(false) && slow.warnings[0].contains("0.65 is left"), "{slow:?}");
        assert_eq!(check(500, 0.95, Some(0.01)).with_residual(0.3, 0.4, true).converged, Some(true));
    }

    #[test]
    fn what_these_rows_had_a_part_in_is_said() {
        use crate::options::MethodName::{Auto, Dkl, Sgpr};
        let base = check(400, 1.0, None);
        let asked = |method: crate::options::MethodName| FitRequest {
            method: method.into(),
            ..FitRequest::default()
        };
        let tried = TriedMethod::untried(MethodName::Exact, "");
        let beside = FitCheck { tried: vec![tried], ..base.clone() };
        let of = |request: &FitRequest, check: &FitCheck| check.asked(request).guarantee;
        assert_eq!(of(&asked(Sgpr), &base), Guarantee::Holds);
        // What is beside the method that was asked for is no choice.
        assert_eq!(of(&asked(Dkl), &beside), Guarantee::Holds);
        assert_eq!(of(&asked(Auto), &beside), Guarantee::Chosen);
        let given = FitRequest { start: Start::given(Vec::new()), ..asked(Sgpr) };
        assert_eq!(of(&given, &base), Guarantee::Given);
        assert_eq!(
            of(&asked(Sgpr), &FitCheck { training_duplicates: 3, ..base.clone() }),
            Guarantee::TrainingDuplicates
        );
        let left_out = FitCheck { on: CheckedOn::LeaveOneOut, ..base };
        assert_eq!(of(&asked(Sgpr), &left_out), Guarantee::LeaveOneOut);
        assert!(!left_out.before().tells_of_width);
    }

    #[test]
    fn outliers_are_told_of_where_a_normal_distribution_has_none() {
        let scores = CheckScores { rmse: 0.1, nll: 0.0, coverage_95: 0.96 };
        let told = |far: usize, rows: usize| {
            let residuals: Vec<f64> = (0..rows).map(|i| if i < far { -5.0 } else { 1.0 }).collect();
            let check = FitCheck::new(CheckedOn::LeaveOneOut, rows, scores, None).with_outliers(&residuals);
            check.warnings.iter().any(|text| text.contains("--likelihood student-t"))
        };
        assert_eq!(
            [told(2, 100), told(3, 100), told(19, 10_000), told(20, 10_000)],
            [false, true, false, true]
        );
        let narrow = CheckScores { coverage_95: 0.93, ..scores };
        let check = FitCheck::new(CheckedOn::LeaveOneOut, 100, narrow, None).with_outliers(&[5.0; 100]);
        assert!(!check.warnings.iter().any(|text| text.contains("outliers")));
    }
}
