//! **Networks and ensembles**, by rows that none of them has seen: a temperature and sets of classes; factors of the standard deviations of numbers.

use super::applied::{Calibration, JudgedRows, Learned, NumbersBy};
use super::classes::ClassRecalibration;
use super::file::Records;
use super::numbers::Recalibration;
use super::predictive::Predictive;
use super::rows::{CalibrationRequest, Guarantee, LEAST_ROWS};
use crate::options::CalibrateName;
use crate::{CheckedOn, ModelError};
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::{CALIBRATE_NONE, MEMORY, TRAIN_VALIDATION, VALIDATION_DATA};
use serde::{Deserialize, Serialize};

/// How a network's predictions were recalibrated, by what it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkRecalibration {
    /// Class probabilities, and sets of classes.
    Classes(ClassRecalibration),
    /// Intervals of each number of an example; none where they stay as the model has them.
    Numbers(Vec<Option<Recalibration>>),
}

/// Outputs whose recalibration is told one by one.
const MOST_SAID: usize = 4;

/// Whether a likelihood is recalibrated: that of classes, and of numbers with additive noise.
fn is_for(likelihood: &OutputLikelihood) -> bool {
    use OutputLikelihood::{Categorical, FullGaussian, Gaussian, HeteroscedasticGaussian};
    matches!(likelihood, Categorical(_) | Gaussian(_) | FullGaussian(_) | HeteroscedasticGaussian(_))
}

/// Whether such rows, of which there are so many (none where there are none), are to tell something; refuses what was asked for and cannot be had.
pub(crate) fn is_wanted(
    calibrate: CalibrateName,
    likelihood: &OutputLikelihood,
    unseen: Option<usize>,
) -> Result<bool, ModelError> {
    let refuse = |problem: String| Err(ModelError::Request(problem));
    match (calibrate, unseen) {
        (CalibrateName::None, _) => Ok(false),
        (CalibrateName::Conformal, _) if !is_for(likelihood) => refuse(format!(
            "--calibrate conformal is for classes and for numbers with additive noise, not for {}; leave it out",
            likelihood.name()
        )),
        (CalibrateName::Conformal, None) => refuse(format!(
            "--calibrate conformal goes by rows that the network has not seen: give {VALIDATION_DATA}, or train with `{TRAIN_VALIDATION:#}`, which records the rows that it sets aside"
        )),
        (CalibrateName::Conformal, Some(rows)) if rows < LEAST_ROWS => refuse(format!(
            "--calibrate conformal tells what 95 % intervals and sets have to hold by {LEAST_ROWS} rows or more, and {rows} are there: give more ({VALIDATION_DATA})"
        )),
        (_, unseen) => Ok(unseen.is_some() && is_for(likelihood)),
    }
}

/// What predicting so many rows once more takes, in words; each keeps its moments or probabilities until all are looked at.
pub(crate) fn plan(rows: usize, likelihood: &OutputLikelihood, memory: u64) -> Result<String, ModelError> {
    let width = likelihood.outputs().max(likelihood.target_width()) as u64;
    let bytes = (rows as u64).saturating_mul(width.saturating_mul(32).saturating_add(96));
    if bytes > memory {
        return Err(ModelError::Request(format!(
            "predictions of {rows} rows that recalibrate take {:.3} GB, above the limit of {:.3} GB: allow more ({MEMORY}), give fewer such rows, or {CALIBRATE_NONE}",
            bytes as f64 / 1e9,
            memory as f64 / 1e9
        )));
    }
    Ok(format!(
        "{rows} rows that the network has not seen are predicted once more to recalibrate by, with {:.1} MB of memory",
        bytes as f64 / 1e6
    ))
}

impl NetworkRecalibration {
    /// From predictions of rows that no network has seen and what came true, as the likelihood takes targets. Numbers may be in any units, in which the NLL of the record is.
    ///
    /// # Errors
    /// As [`Calibration::learn`].
    pub(crate) fn learn(
        (calibrate, guarantee): (CalibrateName, Guarantee),
        unseen: Predictive,
        truths: Vec<f64>,
    ) -> Result<(Option<Self>, Calibration), ModelError> {
        let rows =
            JudgedRows { predicted: unseen.predicted, width: unseen.width, truths, shares: Vec::new() };
        let asked = CalibrationRequest { calibrate, on: CheckedOn::HeldBack, guarantee, weighted: false };
        let Learned { calibration, numbers, classes, .. } =
            Calibration::learn(asked, &rows, NumbersBy::Factors)?;
        let numbers = (!numbers.is_empty()).then_some(Self::Numbers(numbers));
        Ok((classes.map(Self::Classes).or(numbers), calibration))
    }

    /// The records of a model that was recalibrated so, or not at all.
    pub(crate) fn records(own: Option<&Self>) -> Records<'_> {
        match own {
            None => Records::default(),
            Some(Self::Classes(own)) => Records { classes: Some(own), ..Records::default() },
            Some(Self::Numbers(all)) => Records { numbers: all, ..Records::default() },
        }
    }

    /// What was done, in sentences, to outputs of these names; of many to the first and to how many more.
    pub fn sentences(&self, names: &[String]) -> Vec<String> {
        match self {
            Self::Classes(own) => own.sentence().into_iter().collect(),
            Self::Numbers(all) if all.len() == 1 => all[0].iter().map(Recalibration::sentence).collect(),
            Self::Numbers(all) => {
                let each = names.iter().zip(all).filter_map(|(name, own)| Some((name, own.as_ref()?)));
                let mut out: Vec<String> =
                    each.map(|(name, own)| format!("{name}: {}", own.sentence())).collect();
                let more = out.len().saturating_sub(MOST_SAID);
                out.truncate(MOST_SAID);
                out.extend((more > 0).then(|| format!("{more} more outputs are recalibrated likewise")));
                out
            }
        }
    }
}

/// Moves targets as near to the means as deviations that are multiplied make them: the density of `m + f (y - m)` at y is that of y at `m + (y - m) / f`, less the logarithms of the factors. Whatever is correlated stays so.
pub(crate) fn shrink(mean: &[f64], target: &mut [f64], factors: &[f64]) {
    target.iter_mut().zip(mean).zip(factors.iter().cycle()).for_each(|((y, m), f)| *y = m + (*y - m) / f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::numbers::standard_quantile;
    use crate::calibration::numbers::tests::uniform;
    use crate::calibration::predictive::Predicted;
    use posterior_likelihoods::{Bernoulli, Gaussian, Link};
    use std::f64::consts::PI;

    /// What 400 rows tell of two numbers an example, with the deviations 1 and 3 that are said and those of `told` times as much.
    fn learned(
        calibrate: CalibrateName,
        told: [f64; 2],
        guarantee: Guarantee,
    ) -> Option<NetworkRecalibration> {
        let mut state = 4u64;
        let (mut mean, mut truths) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let own = [uniform(&mut state), -uniform(&mut state)];
            for k in 0..2 {
                let z = standard_quantile(uniform(&mut state));
                truths.push(own[k] + told[k] * [1.0, 3.0][k] * z);
            }
            mean.extend(own);
        }
        let (variance, latent_variance) = ([1.0, 9.0].repeat(400), vec![0.1; 800]);
        let predicted = Predicted::Moments { mean, variance, latent_variance };
        let unseen = Predictive::empty(predicted, true, 2, 2);
        NetworkRecalibration::learn((calibrate, guarantee), unseen, truths).unwrap().0
    }

    #[test]
    fn each_number_has_a_factor_of_its_own() {
        let own = learned(CalibrateName::Auto, [1.0, 2.0], Guarantee::Holds);
        let Some(NetworkRecalibration::Numbers(all)) = own else { panic!("{own:?}") };
        assert!(all[0].is_none() && (all[1].as_ref().unwrap().factor / 2.0).ln().abs() < 0.2, "{all:?}");
        assert_eq!(all[1].as_ref().unwrap().guarantee, Guarantee::Holds);
        let own = NetworkRecalibration::Numbers(all);
        let said = own.sentences(&["y_1".into(), "y_2".into()]);
        assert!(said.len() == 1 && said[0].starts_with("y_2: intervals are recalibrated"), "{said:?}");
        // Narrower by itself: the rows decided that.
        let own = learned(CalibrateName::Auto, [0.3, 1.0], Guarantee::Holds);
        let Some(NetworkRecalibration::Numbers(all)) = own else { panic!("{own:?}") };
        assert_eq!(all[0].as_ref().unwrap().guarantee, Guarantee::Narrowed);
        // Asked for, both have one; what holds is left alone.
        let asked = learned(CalibrateName::Conformal, [1.0; 2], Guarantee::Chosen);
        let Some(NetworkRecalibration::Numbers(all)) = asked else { panic!() };
        assert!(all.iter().all(|own| own.as_ref().unwrap().guarantee == Guarantee::Chosen));
        assert_eq!(learned(CalibrateName::Auto, [1.0; 2], Guarantee::Holds), None);
    }

    #[test]
    fn densities_of_moved_targets_are_those_of_wider_ones() {
        let (factors, mut y) = ([1.5, 0.7], [1.8, -1.0]);
        let direct: f64 = [(1.8, 1.0, 0.5, 1.5f64), (-1.0, -2.0, 2.0, 0.7)]
            .iter()
            .map(|(y, m, v, f): &(f64, f64, f64, f64)| {
                let wide = v * f * f;
                -0.5 * ((2.0 * PI * wide).ln() + (y - m).powi(2) / wide)
            })
            .sum();
        shrink(&[1.0, -2.0], &mut y, &factors);
        let moved = [(1.0, 0.5), (-2.0, 2.0)]
            .iter()
            .zip(y)
            .map(|((m, v), y): (&(f64, f64), f64)| -0.5 * ((2.0 * PI * v).ln() + (y - m).powi(2) / v));
        let own = moved.sum::<f64>() - factors.iter().map(|f: &f64| f.ln()).sum::<f64>();
        assert!((own - direct).abs() < 1e-13, "{own} {direct}");
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let gaussian = OutputLikelihood::Gaussian(Gaussian::independent(vec![1.0]).unwrap());
        let events = OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit).unwrap());
        let asked = CalibrateName::Conformal;
        for (likelihood, rows, what) in [
            (&events, Some(100), "not for"),
            (&gaussian, None, "--validation-data"),
            (&gaussian, Some(18), "19 rows"),
        ] {
            let error = is_wanted(asked, likelihood, rows).unwrap_err().to_string();
            assert!(error.contains(what) && error.len() < 300, "{error}");
        }
        assert!(is_wanted(asked, &gaussian, Some(19)).unwrap());
        assert!(!is_wanted(CalibrateName::Auto, &gaussian, None).unwrap());
        assert!(!is_wanted(CalibrateName::Auto, &events, Some(100)).unwrap());
        assert!(!is_wanted(CalibrateName::None, &gaussian, Some(100)).unwrap());
        let told = plan(1000, &gaussian, 128_000).unwrap();
        assert!(told.contains("1000 rows") && told.contains("0.1 MB"), "{told}");
        assert!(plan(1000, &gaussian, 127_999).unwrap_err().to_string().contains("--calibrate none"));
    }
}
