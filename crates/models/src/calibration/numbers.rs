//! **Intervals of numbers** that hold what they say on rows that had no part in a fit.
//!
//! A model that is wrong about its own error is wrong by much the same factor on new rows. Rows that a fit was judged on tell that factor ([`SplitConformal`]). Standard deviations of observations are multiplied by the one of [`LEVEL`], and other levels
//! have their own. What a model says of the noiseless function, and joint draws, stay as they are.

use super::rows::{CalibrationRequest, Guarantee, LEFT_OUT, LEVEL, PARTS, explained_by_chance};
use crate::facts::{count, fixed};
use crate::options::CalibrateName;
use crate::{CheckedOn, Facts, ModelError};
use posterior_metrics::{ConformalTails, MetricsError, SplitConformal, half_width_factor};
use posterior_notes::fixes::CALIBRATE_NONE;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Nats by which normal rows become likelier under another width, 99 times in 100 at most: half of a χ² variable of one degree of freedom.
const SURE_GAIN: f64 = 3.32;

/// The same of rows that are not normal: standard errors by which a gain is beyond doubt.
const SURE_DEVIATIONS: f64 = 2.33;

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
    /// Whether each end of an interval goes by the rows on its side, because far more of the large residuals have one sign than the other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_side: bool,
    /// Mean negative log density of these rows before, of the standardised target (of a network's numbers, in its own units).
    pub nll_before: f64,
    /// And after.
    pub nll_after: f64,
    /// Standard deviation, over sets of as many rows, of the share of new rows that 95 % intervals hold.
    pub spread: f64,
    /// Whether the finite-sample guarantee of split-conformal intervals holds.
    pub guarantee: Guarantee,
}

/// How good intervals are, as the model has them, on the rows that it was judged on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Share of these rows inside 95 % intervals.
    pub(crate) coverage: f64,
    /// Shares that chance explains.
    pub(crate) chance: [f64; 2],
    /// Mean negative log density, in any units.
    pub(crate) nll: f64,
    /// Whether how far inside they lie says that intervals are too wide: of rows that a fit has seen, it says that they have been seen.
    pub(crate) tells_of_width: bool,
}

impl Before {
    /// Of rows with these standardised residuals, by which the training of a network may have kept its weights, or of which nothing else is known.
    pub(crate) fn of_network(residuals: &[f64], nll: f64) -> Self {
        let inside = residuals.iter().filter(|z| z.abs() <= half_width_factor(LEVEL)).count();
        let rows = residuals.len().max(1);
        let coverage = inside as f64 / rows as f64;
        Self { coverage, chance: explained_by_chance(rows), nll, tells_of_width: false }
    }

    /// Whether coverage is off by more than chance explains.
    fn is_unexplained(&self) -> bool {
        !(self.chance[0]..=self.chance[1]).contains(&self.coverage)
    }

    /// Whether intervals may have to be recalibrated, so that residuals are worth their predictions.
    pub(crate) fn may_ask_for(&self, calibrate: CalibrateName) -> bool {
        match calibrate {
            CalibrateName::None => false,
            CalibrateName::Conformal => true,
            // Enough are inside, and may be far inside.
            CalibrateName::Auto => self.is_unexplained() || self.coverage >= LEVEL && self.tells_of_width,
        }
    }
}

impl Recalibration {
    /// What was asked for, of a model that was judged on rows with these standardised residuals `(y - m) / s`.
    ///
    /// `auto` recalibrates where coverage is off by more than chance explains. Where far more of the large residuals have one sign than the other, each end of an interval goes by the rows on its side, whatever the coverage. It also does where held-back rows lie so far inside that narrower intervals make them likelier by more than chance: few rows may all
    /// be inside, and then coverage tells nothing. Intervals become narrower only where that makes the rows likelier. Where few rows are far away, the width is due to them.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for residuals that are no numbers.
    pub(crate) fn learn(
        asked: CalibrationRequest,
        before: Before,
        residuals: &[f64],
    ) -> Result<Option<(Self, Residuals)>, ModelError> {
        let automatic = asked.calibrate == CalibrateName::Auto;
        let lopsided = automatic && is_lopsided(residuals);
        if residuals.is_empty() || !(lopsided || before.may_ask_for(asked.calibrate)) {
            return Ok(None);
        }
        let mut conformal = SplitConformal::new(residuals)?;
        let Before { coverage, chance, nll, tells_of_width } = before;
        let few = chance[1] >= 1.0;
        let cautious = automatic && !before.is_unexplained() && few;
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
        let sides = if lopsided { Some(ConformalTails::new(residuals)?) } else { None };
        let wanted = if !automatic || coverage < chance[0] {
            true
        } else if coverage > chance[1] {
            gain > 0.0
        } else {
            tells_of_width && factor < 1.0 && gain > SURE_GAIN.max(SURE_DEVIATIONS * scatter(&gains))
        };
        if !wanted && sides.is_none() {
            return Ok(None);
        }
        let (factor, gain) = if wanted { (factor, gain) } else { (1.0, 0.0) };
        let coverage_after =
            if cautious { None } else { SplitConformal::coverage_apart(residuals, LEVEL, PARTS)? };
        let guarantee = match asked.guarantee {
            Guarantee::Holds if automatic && factor < 1.0 => Guarantee::Narrowed,
            other => other,
        };
        let own = Self {
            on: asked.on,
            rows: residuals.len(),
            factor,
            coverage_before: coverage,
            coverage_after,
            by_furthest: cautious,
            by_side: lopsided,
            nll_before: nll,
            nll_after: nll - gain / residuals.len() as f64,
            spread,
            guarantee,
        };
        Ok(Some((own, sides.map_or(Residuals::Central(conformal), Residuals::Sides))))
    }

    /// What was done.
    pub(crate) fn facts(&self) -> Facts {
        let factor = fixed(self.factor, 3, "");
        Facts::new().fact("standard deviations times", factor).fact("by", count(self.rows, "rows"))
    }

    /// What was done, what it was for and what it is worth.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| 100.0 * share;
        let after = self.coverage_after.map_or_else(String::new, |after| {
            format!(", now {:.1} % (each tenth of them by what the others tell)", percent(after))
        });
        let furthest = if self.by_furthest {
            ", and they are as wide now as the furthest of these asks for"
        } else if self.by_side {
            ", and each end of an interval goes by the rows on its side"
        } else {
            ""
        };
        let (wider, latent) = match self.factor >= 1.0 {
            true => ("wider", ""),
            false => ("as wide", " The noiseless function's stay the model's, and may be larger."),
        };
        format!(
            "intervals are recalibrated: standard deviations of observations are {:.3} times {wider}. Inside 95 % intervals were {:.1} % of {} {}{after}{furthest}; {} (+- {:.1} % for so many rows). {CALIBRATE_NONE} leaves them as the \
             model has them.{latent}",
            self.factor,
            percent(self.coverage_before),
            self.rows,
            self.on.in_words(LEFT_OUT),
            self.guarantee.of_intervals(),
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

/// Standardised residuals that intervals go by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Residuals {
    /// Both ends at the same distance.
    Central(SplitConformal),
    /// Each end by itself, where residuals of one sign are far more often large than those of the other.
    Sides(ConformalTails),
}

impl Residuals {
    /// As they stand in a file: magnitudes or, with their signs, residuals.
    pub(super) fn numbers(&self) -> &[f64] {
        match self {
            Self::Central(own) => own.magnitudes(),
            Self::Sides(own) => own.scores(),
        }
    }

    /// Reads them again; `by_side` is [`Recalibration::by_side`].
    ///
    /// # Errors
    /// [`MetricsError`] for numbers that are no residuals.
    pub(super) fn of_numbers(numbers: &[f64], by_side: bool) -> Result<Self, MetricsError> {
        match by_side {
            true => Ok(Self::Sides(ConformalTails::new(numbers)?)),
            false => Ok(Self::Central(SplitConformal::new(numbers)?)),
        }
    }
}

/// Level of the intervals outside of which residuals of both signs are counted, and by how many deviations of a fair coin they must differ.
const LOPSIDED: (f64, f64) = (0.9, 5.0);

/// Whether far more of the large residuals have one sign than the other.
fn is_lopsided(residuals: &[f64]) -> bool {
    let mut magnitudes: Vec<f64> = residuals.iter().map(|z| z.abs()).collect();
    magnitudes.sort_by(f64::total_cmp);
    let Some(end) = magnitudes.get((LOPSIDED.0 * magnitudes.len() as f64) as usize) else { return false };
    let [above, below] =
        [1.0, -1.0].map(|sign| residuals.iter().filter(|z| sign * **z >= *end).count() as f64);
    (above - below).abs() > LOPSIDED.1 * (above + below).sqrt()
}

/// Recalibrated intervals of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    factor: f64,
    residuals: Arc<Residuals>,
}

impl Intervals {
    pub(super) fn new(factor: f64, residuals: Arc<Residuals>) -> Self {
        Self { factor, residuals }
    }

    /// How far the quantile at `level` in (0, 1) lies from the mean, in recalibrated standard deviations.
    pub(crate) fn quantile(&self, level: f64) -> f64 {
        let conformal = match &*self.residuals {
            Residuals::Central(own) => own,
            Residuals::Sides(own) => return own.extended_quantile(level, standard_quantile) / self.factor,
        };
        let sides = 2.0 * level - 1.0;
        // The centre is the mean, though intervals of no probability may have a width.
        if sides == 0.0 {
            return 0.0;
        }
        conformal.extended_half_width(sides.abs()) / self.factor * sides.signum()
    }
}

/// Its quantile, or that of the standard normal distribution where nothing was recalibrated.
pub(crate) fn quantile(intervals: Option<&Intervals>, level: f64) -> f64 {
    intervals.map_or_else(|| standard_quantile(level), |own| own.quantile(level))
}

/// The quantile of the standard normal distribution at `level` in (0, 1): the central interval of level |2p - 1| ends there.
pub(crate) fn standard_quantile(level: f64) -> f64 {
    half_width_factor((2.0 * level - 1.0).abs()) * (level - 0.5).signum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Pseudo-random numbers in (0, 1).
    pub(crate) fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn of(calibrate: CalibrateName, before: Before, residuals: &[f64]) -> Option<(Recalibration, Residuals)> {
        let on = CheckedOn::HeldBack;
        let asked = CalibrationRequest { calibrate, on, guarantee: Guarantee::Holds, weighted: false };
        Recalibration::learn(asked, before, residuals).unwrap()
    }

    fn before(residuals: &[f64], nll: f64) -> Before {
        Before { tells_of_width: true, ..Before::of_network(residuals, nll) }
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
            let found = of(CalibrateName::Auto, before(&z, nll(&z)), &z);
            assert_eq!(found.is_some(), changed, "{scale}");
            let asked = of(CalibrateName::Conformal, before(&z, nll(&z)), &z).unwrap().0;
            // The 381st of 401 ranks of 400 normal quantiles.
            assert!((asked.factor / scale - 1.0).abs() < 0.02, "{asked:?}");
            // The density, of deviations that are multiplied, by definition.
            let direct =
                z.iter().map(|z| 0.5 * (z / asked.factor).powi(2) + asked.factor.ln()).sum::<f64>() / 400.0;
            assert!((asked.nll_after - direct).abs() < 1e-12);
            assert!(
                (asked.coverage_after.unwrap() - 0.95).abs() < 0.02 && asked.guarantee == Guarantee::Holds
            );
            assert!(of(CalibrateName::None, before(&z, nll(&z)), &z).is_none());
        }
    }

    #[test]
    fn few_rows_far_inside_are_noticed() {
        // All of sixty are inside in any case; how far tells the scale.
        let nll = |z: &[f64]| z.iter().map(|z| 0.5 * z * z).sum::<f64>() / z.len() as f64;
        for (scale, changed) in [(0.95, false), (0.1, true)] {
            let z: Vec<f64> = residuals(scale).into_iter().filter(|z| z.abs() < 1.9).take(60).collect();
            let before = before(&z, nll(&z));
            assert!(before.coverage == 1.0 && before.chance[1] == 1.0);
            let found = of(CalibrateName::Auto, before, &z);
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
            let seen = Before { tells_of_width: false, ..before };
            assert!(of(CalibrateName::Auto, seen, &z).is_none());
        }
    }

    #[test]
    fn what_is_wide_for_a_few_far_rows_stays_wide() {
        // Nearly all of them close to the mean, a hundredth twenty deviations away.
        let mut z: Vec<f64> = residuals(0.3);
        z.iter_mut().step_by(100).for_each(|z| *z = 20.0);
        let nll = z.iter().map(|z| 0.5 * z * z).sum::<f64>() / 400.0;
        let before = before(&z, nll);
        assert!(before.coverage > before.chance[1]);
        assert!(of(CalibrateName::Auto, before, &z).is_none());
    }

    #[test]
    fn too_few_rows_tell_nothing() {
        let few = residuals(3.0)[..18].to_vec();
        for calibrate in [CalibrateName::Auto, CalibrateName::Conformal] {
            assert!(of(calibrate, before(&few, 1.0), &few).is_none());
        }
    }

    #[test]
    fn quantiles_are_those_of_the_rows() {
        let z = residuals(2.0);
        let conformal = SplitConformal::new(&z).unwrap();
        let factor = conformal.factor(LEVEL).unwrap();
        let own = Intervals::new(factor, Arc::new(Residuals::Central(conformal.clone())));
        assert_eq!(own.quantile(0.5), 0.0);
        // At the level itself deviations are normal ones.
        assert!((own.quantile(0.975) - standard_quantile(0.975)).abs() < 1e-12);
        assert!((own.quantile(0.025) + own.quantile(0.975)).abs() < 1e-15);
        assert_eq!(own.quantile(0.9) * factor, conformal.half_width(0.8).unwrap());
        let levels: Vec<f64> = (1..1000).map(|k| own.quantile(f64::from(k) / 1000.0)).collect();
        assert!(levels.windows(2).all(|pair| pair[0] <= pair[1]) && levels[998].is_finite());
    }

    /// Nine tenths of the rows a little below the mean, the others far above: the ends of intervals are those of each side, and stand so in a file.
    #[test]
    fn residuals_of_one_sign_move_one_end() {
        let mut state = 4;
        let mut z = || if uniform(&mut state) < 0.9 { -0.3 } else { 1.0 - 2.0 * uniform(&mut state).ln() };
        let z: Vec<f64> = (0..2000).map(|_| z()).collect();
        let (record, kept) = of(CalibrateName::Auto, before(&z, 1.4), &z).unwrap();
        let again = Residuals::of_numbers(kept.numbers(), record.by_side).unwrap();
        assert_eq!(again, kept);
        let own = Intervals::new(record.factor, Arc::new(again));
        // P(z > q) = 0.1 exp(-(q - 1) / 2), to three deviations of an order statistic.
        let upper = own.quantile(0.95) * record.factor;
        assert!(
            (upper - (1.0 + 2.0 * 2f64.ln())).abs() < 3.0 * 2.0 * (0.05f64 * 0.95 / 2000.0).sqrt() / 0.05
        );
        assert_eq!(own.quantile(0.05) * record.factor, -0.3);
    }
}
