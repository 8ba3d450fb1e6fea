//! A calibration to the tensors of a model's file and back.

use super::applied::Calibration;
use super::classes::ClassRecalibration;
use super::numbers::{Recalibration, Residuals};
use super::observed::{ObservedRecalibration, ObservedTails};
use super::rare::SharesMixture;
use posterior_metrics::{ConformalTails, LabelSets, Temperature};
use posterior_store::{StoreError, Tensors};
use std::sync::Arc;

const FACTORS: &str = "calibration.factors";
const TEMPERATURE: &str = "calibration.temperature";
const SHARES: &str = "calibration.shares";
const SETS: &str = "calibration.sets";
const NOISE: &str = "calibration.tails.noise";

/// The tensor of tails of counts or of other numbers.
fn tails_of(counts: bool) -> &'static str {
    if counts { "calibration.tails.counts" } else { "calibration.tails.numbers" }
}

/// The tensor of residuals of number k of an example.
fn residuals_of(k: usize) -> String {
    format!("calibration.residuals.{k}")
}

/// Records of what was learned, as a model's header has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Records<'a> {
    /// Of each number of an example; empty where all stay as they are.
    pub(crate) numbers: &'a [Option<Recalibration>],
    pub(crate) classes: Option<&'a ClassRecalibration>,
    /// Of counts and of numbers with outliers.
    pub(crate) tails: Option<&'a ObservedRecalibration>,
}

impl Calibration {
    /// Adds its tensors; of an empty one there are none.
    pub(crate) fn write(&self, tensors: &mut Tensors) {
        if !self.factors.is_empty() {
            tensors.insert_vector(FACTORS, &self.factors);
        }
        if let Some(temperature) = self.temperature {
            tensors.insert_vector(TEMPERATURE, &[temperature.value()]);
        }
        if let Some(own) = &self.shares {
            tensors.insert_vector(SHARES, &[&[own.weight], &own.shares[..]].concat());
        }
        if let Some(sets) = &self.sets {
            tensors.insert_vector(SETS, sets.scores());
        }
        if let Some(ObservedTails { tails, counts, noise }) = &self.tails {
            tensors.insert_vector(tails_of(*counts), tails.scores());
            noise.iter().for_each(|noise| tensors.insert_vector(NOISE, &[*noise]));
        }
        for (k, own) in self.residuals.iter().enumerate() {
            own.iter().for_each(|own| tensors.insert_vector(residuals_of(k), own.numbers()));
        }
    }

    /// Takes its tensors, of a model that has these records and predicts so many numbers for each example.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where one that a record tells of is missing, and for numbers that no fit leaves.
    pub(crate) fn read(
        records: Records<'_>,
        width: usize,
        tensors: &mut Tensors,
    ) -> Result<Self, StoreError> {
        let Records { numbers, classes, tails } = records;
        let mut out = Self::default();
        if numbers.iter().any(Option::is_some) {
            if numbers.len() != width {
                return Err(tensors.corrupt("its factors of intervals are not those of its numbers"));
            }
            out.factors = tensors.vector(FACTORS, width)?;
            if !out.factors.iter().all(|factor| *factor > 0.0 && factor.is_finite()) {
                return Err(tensors.corrupt("its factor of intervals is no positive number"));
            }
            for (k, record) in numbers.iter().enumerate() {
                let own = record.as_ref().map(|own| -> Result<_, StoreError> {
                    let numbers = tensors.vector(&residuals_of(k), own.rows)?;
                    Residuals::of_numbers(&numbers, own.by_side).map_err(|e| tensors.corrupt(e))
                });
                out.residuals.push(own.transpose()?.map(Arc::new));
            }
        }
        if let Some(record) = classes {
            let own = LabelSets::from_scores(&tensors.vector(SETS, record.rows)?);
            out.sets = Some(Arc::new(own.map_err(|e| tensors.corrupt(e))?));
            if record.tempering.applied {
                out.temperature = Temperature::new(tensors.vector(TEMPERATURE, 1)?[0]);
                if out.temperature.is_none() {
                    return Err(tensors.corrupt("its temperature is no positive number"));
                }
            }
        }
        if let Some(record) = classes.and_then(|own| own.shares.as_ref()) {
            let own = tensors.vector(SHARES, record.shares.len() + 1)?;
            if !own.iter().all(|share| (0.0..=1.0).contains(share)) {
                return Err(tensors.corrupt("what its probabilities are averaged with are no shares"));
            }
            out.shares = Some(SharesMixture { weight: own[0], shares: own[1..].to_vec(), rare: record.rare });
        }
        if let Some(record) = tails {
            let counts = tensors.shape(tails_of(true)).is_some();
            let own = ConformalTails::new(&tensors.vector(tails_of(counts), record.rows)?);
            let noise = if record.of_scale { Some(tensors.vector(NOISE, 1)?[0]) } else { None };
            out.tails = Some(ObservedTails::new(own.map_err(|e| tensors.corrupt(e))?, counts, noise));
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckedOn;
    use crate::calibration::applied::{JudgedRows, Learned, NumbersBy};
    use crate::calibration::numbers::tests::uniform;
    use crate::calibration::predictive::Predicted;
    use crate::calibration::rows::{CalibrationRequest, Guarantee};
    use crate::options::CalibrateName;

    const ROWS: usize = 40;

    /// What as many rows tell of such predictions, two numbers or probabilities for each.
    fn learned(predicted: Predicted, truths: Vec<f64>, by: NumbersBy) -> Learned {
        let (on, guarantee) = (CheckedOn::HeldBack, Guarantee::Holds);
        let asked =
            CalibrationRequest { calibrate: CalibrateName::Conformal, on, guarantee, weighted: false };
        let width = if matches!(by, NumbersBy::Factors) { 2 } else { 1 };
        Calibration::learn(asked, &JudgedRows { predicted, width, truths, shares: Vec::new() }, by).unwrap()
    }

    /// A calibration that has everything, with records that are those of its parts.
    fn everything() -> Learned {
        let mut state = 3;
        let mut some = |count: usize| (0..count).map(|_| uniform(&mut state) - 0.5).collect::<Vec<f64>>();
        let mut moments = |count: usize| {
            let (variance, latent_variance) = (vec![0.1; count], vec![0.05; count]);
            (Predicted::Moments { mean: some(count), variance, latent_variance }, some(count))
        };
        let (predicted, truths) = moments(2 * ROWS);
        let numbers = learned(predicted, truths, NumbersBy::Factors);
        let (predicted, truths) = moments(ROWS);
        let tails = learned(predicted, truths, NumbersBy::Tails { counts: false, noise: Some(0.3) });
        let labels = (0..ROWS).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
        let classes = learned(Predicted::Classes([0.6, 0.4].repeat(ROWS)), labels, NumbersBy::Factors);
        let calibration = Calibration {
            tails: tails.calibration.tails,
            factors: numbers.calibration.factors,
            residuals: numbers.calibration.residuals,
            ..classes.calibration
        };
        Learned { calibration, numbers: numbers.numbers, classes: classes.classes, tails: tails.tails }
    }

    fn records(of: &Learned) -> Records<'_> {
        Records { numbers: &of.numbers, classes: of.classes.as_ref(), tails: of.tails.as_ref() }
    }

    #[test]
    fn what_is_written_is_read() {
        let own = everything();
        let mut tensors = Tensors::default();
        own.calibration.write(&mut tensors);
        let names: Vec<String> = tensors.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names.len(), 7, "{names:?}");
        // Whatever is missing of what a record tells of is missed.
        for missing in &names {
            let mut left = Tensors::default();
            let kept = tensors.iter().filter(|(name, _)| *name != missing);
            kept.for_each(|(name, own)| {
                left.insert_values(name.clone(), own.shape.clone(), own.values.clone())
            });
            let error = Calibration::read(records(&own), 2, &mut left).unwrap_err().to_string();
            assert!(error.contains(missing.as_str()), "{error}");
        }
        assert!(Calibration::read(records(&own), 3, &mut tensors.clone()).is_err());
        // Without records nothing is taken.
        let mut untouched = tensors.clone();
        Calibration::read(Records::default(), 2, &mut untouched).unwrap();
        assert_eq!(untouched.iter().count(), 7);
        let back = Calibration::read(records(&own), 2, &mut tensors).unwrap();
        assert!(tensors.iter().next().is_none());
        assert_eq!(format!("{back:?}"), format!("{:?}", own.calibration));
        // An empty one has no tensors; numbers that no fit leaves are errors.
        Calibration::default().write(&mut tensors);
        assert!(tensors.iter().next().is_none());
        for (name, value) in
            [(FACTORS, vec![1.0, -1.0]), (TEMPERATURE, vec![f64::NAN]), (SETS, vec![2.0; ROWS])]
        {
            own.calibration.write(&mut tensors);
            tensors.insert_vector(name, &value);
            assert!(Calibration::read(records(&own), 2, &mut tensors).is_err(), "{name}");
            tensors = Tensors::default();
        }
    }
}
