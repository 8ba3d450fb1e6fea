//! **Intervals of counts and of numbers with outliers**, by rows that had no part in a fit.
//!
//! Such observations are not Gaussian, and a factor for their standard deviations would say nothing of them. Each end of an interval goes by the scores of the rows that a fit was judged on instead ([`ConformalTails`]): standardised residuals of
//! numbers, tail probabilities of counts under the predicted mixture over the latent function ([`CountMixture`]). Means, deviations and densities stay the model's.

use super::classes::SET_LEVELS;
use super::numbers::standard_quantile;
use super::rows::{CalibrationRequest, Guarantee, LEFT_OUT, LEVEL, PARTS};
use crate::options::CalibrateName;
use crate::{CheckedOn, ModelError};
use posterior_likelihoods::CountMixture;
use posterior_metrics::ConformalTails;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Fewest rows of which 80 % intervals have both ends guaranteed.
const FEWEST: usize = 9;

/// What intervals of observations go by.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTails {
    pub(super) tails: Arc<ConformalTails>,
    /// Whether they are whole numbers from 0 on.
    pub(super) counts: bool,
    /// The square of the noise's scale, where residuals are measured by it: the variance of Student's t grows without bound as its degrees of freedom come near two, and those that half of the rows chose are no others to the eye.
    pub(super) noise: Option<f64>,
}

/// How well such intervals hold what they say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedRecalibration {
    /// Which rows told them.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// Share of these rows inside 95 % intervals, each tenth of them by what the other nine tell; none where these are too few.
    pub coverage: Option<f64>,
    /// Standard deviation, over sets of as many rows, of the share of new rows that 95 % intervals hold; none where they have no guaranteed ends.
    pub spread: Option<f64>,
    /// Whether the finite-sample guarantee of split-conformal intervals holds.
    pub guarantee: Guarantee,
    /// Whether residuals were measured by the function's deviation and the noise's scale, not by the deviation of the observation.
    pub of_scale: bool,
}

/// Mean and variance of an observation, and the variance of its function (of counts: of the rate).
pub(crate) type Moments<T> = (T, T, T);

/// The score of a truth, none where a prediction is no number or has no width.
fn score(counts: bool, (mean, variance, latent): Moments<f64>, truth: f64) -> Option<f64> {
    if counts {
        return CountMixture::from_moments(mean, variance, latent).map(|own| own.score(truth));
    }
    Some((truth - mean) / variance.sqrt()).filter(|z| z.is_finite())
}

impl ObservedRecalibration {
    /// From rows that a fit was judged on, in the target's units; none where nothing was asked for, or where they are too few. Variances are the squares of what residuals are measured by: those of observations or, where noise has one that says nothing
    /// of nearly all of it (`of_scale`), those of the function and the square of the noise's scale.
    ///
    /// # Errors
    /// [`ModelError::Metrics`] for scores that are no numbers.
    pub(super) fn learn(
        asked: CalibrationRequest,
        (counts, of_scale): (bool, bool),
        (mean, variance, latent): Moments<&[f64]>,
        truths: &[f64],
    ) -> Result<Option<(Self, ConformalTails)>, ModelError> {
        let CalibrationRequest { calibrate, on, guarantee, .. } = asked;
        let rows = truths.len();
        if calibrate == CalibrateName::None || rows < FEWEST {
            return Ok(None);
        }
        let each = (0..rows).into_par_iter();
        let each = each.map(|i| score(counts, (mean[i], variance[i], latent[i]), truths[i]));
        let Some(scores) = each.collect::<Option<Vec<f64>>>() else { return Ok(None) };
        let tails = ConformalTails::new(&scores)?;
        let own = Self {
            on,
            rows,
            coverage: ConformalTails::coverage_apart(&scores, LEVEL, PARTS)?,
            spread: tails.spread(LEVEL),
            guarantee,
            of_scale,
        };
        Ok(Some((own, tails)))
    }

    /// What it is worth, in words.
    pub fn in_words(&self) -> String {
        let told = self.coverage.map_or_else(String::new, |share| {
            format!(
                ", of whom 95 % intervals hold {:.1} % (each tenth by what the others tell)",
                100.0 * share
            )
        });
        let spread = self
            .spread
            .map_or_else(String::new, |spread| format!(" (+- {:.1} % for so many rows)", 100.0 * spread));
        let (rows, worth) = (self.on.in_words(LEFT_OUT), self.guarantee.of_intervals());
        format!("by {} {rows}{told}; {worth}{spread}", self.rows)
    }
}

impl ObservedTails {
    pub(super) fn new(tails: ConformalTails, counts: bool, noise: Option<f64>) -> Self {
        Self { tails: Arc::new(tails), counts, noise }
    }

    /// The quantile at `level` in (0, 1) of an observation of this predicted mean and variance, whose function has that `latent_variance`; of counts a whole number. NaN where the prediction is none. Cost for counts: about ten tail probabilities.
    pub fn quantile(&self, level: f64, (mean, variance, latent_variance): Moments<f64>) -> f64 {
        if !self.counts {
            let measure = self.noise.map_or(variance, |noise| latent_variance + noise);
            return mean + self.tails.extended_quantile(level, standard_quantile) * measure.sqrt();
        }
        let Some(own) = CountMixture::from_moments(mean, variance, latent_variance) else { return f64::NAN };
        // The scale of the scores.
        let tail = |p: f64| if p < 0.5 { (2.0 * p).ln() } else { -(2.0 * (1.0 - p)).ln() };
        let score = self.tails.extended_quantile(level, tail);
        // No interval is empty: the median, the last count of a score that is not positive, is in all of them.
        if level >= 0.5 {
            return own.last_up_to(score.max(0.0)).max(0.0);
        }
        let first = own.last_up_to(score.next_down()) + 1.0;
        match own.score(first) > 0.0 {
            true => own.last_up_to(0.0).max(0.0),
            false => first,
        }
    }

    /// What is to be said of quantiles at these levels: which of them no rows guarantee.
    pub(crate) fn too_few_for(&self, levels: &[f64]) -> Vec<String> {
        let without = levels.iter().filter(|level| self.tails.quantile(**level).is_none());
        let each = without.map(|level| {
            format!(
                "quantiles at {level} are continued from the last that the {} rows guarantee, which tell them",
                self.tails.scores().len()
            )
        });
        each.collect()
    }
}

/// What intervals of a level are worth on rows whose truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalScores {
    /// The level.
    pub level: f64,
    /// Share of rows inside.
    pub coverage: f64,
    /// Mean distance of both ends, in the target's units.
    pub mean_width: f64,
}

impl IntervalScores {
    /// Of intervals of the usual levels.
    pub(crate) fn of(
        known: &ObservedTails,
        (mean, variance, latent): Moments<&[f64]>,
        truths: &[f64],
    ) -> Vec<Self> {
        let rows = truths.len().max(1) as f64;
        let each = SET_LEVELS.into_iter().map(|level| {
            let ends: Vec<[f64; 2]> = (0..truths.len())
                .into_par_iter()
                .map(|i| {
                    let at = |level: f64| known.quantile(level, (mean[i], variance[i], latent[i]));
                    [at(0.5 - 0.5 * level), at(0.5 + 0.5 * level)]
                })
                .collect();
            let inside = ends.iter().zip(truths).filter(|([low, high], y)| (low..=high).contains(y)).count();
            let width = ends.iter().map(|[low, high]| high - low).sum::<f64>();
            Self { level, coverage: inside as f64 / rows, mean_width: width / rows }
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::numbers::tests::uniform;

    /// Predictions of some rows, with what came true.
    #[derive(Clone)]
    struct Judged {
        mean: Vec<f64>,
        variance: Vec<f64>,
        latent: Vec<f64>,
        truths: Vec<f64>,
        counts: bool,
    }

    impl Judged {
        fn moments(&self) -> Moments<&[f64]> {
            (&self.mean, &self.variance, &self.latent)
        }
    }

    fn of(
        (calibrate, on): (CalibrateName, CheckedOn),
        judged: &Judged,
    ) -> Option<(ObservedRecalibration, ObservedTails)> {
        let asked = CalibrationRequest { calibrate, on, guarantee: Guarantee::Holds, weighted: false };
        let Judged { truths, counts, .. } = judged;
        let found = ObservedRecalibration::learn(asked, (*counts, false), judged.moments(), truths);
        found.unwrap().map(|(own, tails)| (own, ObservedTails::new(tails, *counts, None)))
    }

    /// Counts of a Poisson distribution by sums of exponential waits.
    fn poisson(mean: f64, state: &mut u64) -> f64 {
        let (mut count, mut left) = (0.0, mean);
        loop {
            left += uniform(state).ln();
            if left < 0.0 {
                return count;
            }
            count += 1.0;
        }
    }

    /// Means from a third to a hundred, and counts of `scatter` times the variance that is told.
    fn judged(rows: usize, scatter: f64, state: &mut u64) -> Judged {
        let mean: Vec<f64> = (0..rows).map(|_| (0.3f64.ln() + 5.8 * uniform(state)).exp()).collect();
        let truths: Vec<f64> = mean
            .iter()
            .map(|m| {
                // Rates that are unknown by a factor: a log-normal mixture, whose variance is no negative binomial's either.
                let z = standard_quantile(uniform(state));
                let width = ((scatter - 1.0) / m).ln_1p().sqrt();
                poisson(m * (width * z - 0.5 * width * width).exp(), state)
            })
            .collect();
        Judged { variance: mean.clone(), latent: vec![0.0; rows], mean, truths, counts: true }
    }

    #[test]
    fn intervals_of_counts_hold_what_they_say_whatever_the_model() {
        let mut state = 3;
        for scatter in [1.0, 6.0] {
            let told = judged(999, scatter, &mut state);
            let (own, tails) = of((CalibrateName::Auto, CheckedOn::HeldBack), &told).unwrap();
            let new = judged(4000, scatter, &mut state);
            let scores = IntervalScores::of(&tails, new.moments(), &new.truths);
            for s in &scores {
                // At least the level, but for three deviations of both sets of rows; ties of whole numbers make them hold more.
                let chance = 3.0 * (s.level * (1.0 - s.level) * (1.0 / 999.0 + 1.0 / 4000.0)).sqrt();
                assert!(s.coverage > s.level - chance && s.coverage < s.level + 0.07, "{scatter} {s:?}");
            }
            assert!((own.coverage.unwrap() - 0.96).abs() < 0.03, "{own:?}");
            // Where the model is right they are what its distribution says, each side by itself.
            let few = [0.5 - 0.475, 0.975].map(|level| tails.quantile(level, (0.4, 0.4, 0.0)));
            if scatter == 1.0 {
                assert!(few == [0.0, 2.0], "{few:?}");
            }
        }
    }

    #[test]
    fn ends_are_whole_and_in_order() {
        let mut state = 5;
        let told = judged(60, 2.0, &mut state);
        let on = CheckedOn::LeaveOneOut;
        let (own, tails) = of((CalibrateName::Conformal, on), &told).unwrap();
        assert!(of((CalibrateName::None, on), &told).is_none());
        for mean in [1e-3, 0.2, 0.7, 1.0, 12.3, 400.0, 3e4] {
            let levels = [0.001, 0.025, 0.2, 0.45, 0.5, 0.55, 0.8, 0.975, 0.999];
            let ends = levels.map(|level| tails.quantile(level, (mean, 1.5 * mean, 0.0)));
            assert!(
                ends.is_sorted() && ends.iter().all(|q| *q >= 0.0 && q.fract() == 0.0),
                "{mean} {ends:?}"
            );
        }
        assert_eq!(tails.too_few_for(&[0.025, 0.5, 0.001]).len(), 1);
        assert!(own.in_words().contains("60 rows (leave-one-out)"), "{}", own.in_words());
        // Too few rows, and predictions that are none.
        let few = Judged { truths: vec![1.0; 8], ..told.clone() };
        let none = Judged { mean: vec![f64::NAN; 60], ..told };
        for judged in [few, none] {
            assert!(of((CalibrateName::Auto, on), &judged).is_none());
        }
    }

    /// Residuals that are heavy on one side: each end by itself.
    #[test]
    fn intervals_of_numbers_are_as_skewed_as_their_residuals() {
        let mut state = 9;
        let mut judged = |rows: usize| Judged {
            mean: vec![2.0; rows],
            variance: vec![4.0; rows],
            latent: vec![0.0; rows],
            truths: (0..rows).map(|_| 2.0 - 2.0 * uniform(&mut state).ln()).collect(),
            counts: false,
        };
        let told = judged(1999);
        let (_, tails) = of((CalibrateName::Auto, CheckedOn::HeldBack), &told).unwrap();
        // Quantiles of the exponential distribution, to three deviations of an order statistic.
        for level in [0.05, 0.5, 0.95] {
            let found = (tails.quantile(level, (2.0, 4.0, 0.0)) - 2.0) / 2.0;
            let deviation = (level * (1.0 - level) / 1999.0f64).sqrt() / (1.0 - level);
            assert!((found + (1.0 - level).ln()).abs() < 3.0 * deviation, "{level} {found}");
        }
        let new = judged(4000);
        for s in IntervalScores::of(&tails, new.moments(), &new.truths) {
            assert!((s.coverage - s.level).abs() < 0.025, "{s:?}");
        }
    }
}
