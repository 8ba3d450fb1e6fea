//! Which rows a model has learned from: a fingerprint of each, so that scoring them again is not taken for a test.

use crate::{ModelData, ModelError};
use faer::MatRef;
use posterior_data::{
    ArrayValues, Extracted, NumericArray, RowFingerprints, row_fingerprint, table_fingerprints,
};
use posterior_report::ScoredRows;
use posterior_store::{StoreError, Tensors};
use std::sync::Arc;

/// The tensor of the fingerprints of training rows.
const FINGERPRINTS: &str = "row_fingerprints";

/// The rows of a fit, those included that it held back to judge and to choose by. None of them is known of fits in memory, and once rows of a stream were learned.
#[derive(Clone, Debug, Default)]
pub struct TrainingRows(Option<Arc<RowFingerprints>>);

impl TrainingRows {
    /// Rows with these fingerprints, in any order.
    pub(crate) fn new(fingerprints: impl IntoIterator<Item = u64>) -> Self {
        Self(Some(Arc::new(RowFingerprints::new(fingerprints))))
    }

    /// Rows of a table: inputs (n x D) with one target each.
    pub(crate) fn of_table(x: MatRef<'_, f64>, y: &[f64]) -> Self {
        Self::new(table_fingerprints(x, y))
    }

    /// Their fingerprints; None where they are not known.
    pub fn fingerprints(&self) -> Option<&RowFingerprints> {
        self.0.as_deref()
    }

    /// These and further ones; not known where these are not.
    pub(crate) fn with(&self, others: impl IntoIterator<Item = u64>) -> Self {
        Self(self.fingerprints().map(|known| Arc::new(known.with(others))))
    }

    /// How many of these rows are among them; None where they are not known.
    pub(crate) fn count(&self, rows: &[u64]) -> Option<usize> {
        let known = self.fingerprints()?;
        Some(rows.iter().filter(|row| known.contains(**row)).count())
    }

    /// Which of some examples, told by number and fingerprint, are among them; None where they are not known.
    pub(crate) fn among(&self, examples: impl IntoIterator<Item = (usize, u64)>) -> Option<TrainedOn> {
        let known = self.fingerprints()?;
        Some(TrainedOn::new(examples.into_iter().map(|(example, own)| (example, known.contains(own)))))
    }

    /// The same of rows that were extracted from the table of `data`, with one truth each.
    pub(crate) fn among_rows(
        &self,
        data: &ModelData,
        (extracted, truths): (&Extracted, Option<&[f64]>),
    ) -> Option<TrainedOn> {
        let own = table_fingerprints(extracted.x.as_ref(), truths.unwrap_or_default());
        self.among(data.examples_of(&extracted.rows).into_iter().zip(own))
    }

    /// Adds their tensor, where they are known.
    pub(crate) fn write(&self, tensors: &mut Tensors) {
        if let Some(known) = self.fingerprints() {
            tensors.insert_vector(FINGERPRINTS, &known.to_numbers());
        }
    }

    /// From a file, which has them where they are known.
    pub(crate) fn read(tensors: &mut Tensors) -> Result<Self, StoreError> {
        let Some(shape) = tensors.shape(FINGERPRINTS) else { return Ok(Self::default()) };
        let numbers = tensors.take::<f64>(FINGERPRINTS, &shape)?;
        match RowFingerprints::from_numbers(&numbers) {
            Some(found) => Ok(Self(Some(Arc::new(found)))),
            None => Err(tensors.corrupt("its fingerprints of training rows are none")),
        }
    }
}

/// The fingerprint of each example's numbers as they stand in the file, with its truth in single precision, to which a network may have rounded it. Fingerprints have 53 bits, so that a double holds them.
pub(crate) fn prints_of_examples(inputs: &NumericArray, truth: impl Fn(usize) -> Vec<f64>) -> Vec<u64> {
    fn each<N: Copy>(values: &[N], examples: usize, number: impl Fn(N) -> f64) -> Vec<u64> {
        let width = values.len() / examples.max(1);
        let own = |i: usize| row_fingerprint(values[i * width..(i + 1) * width].iter().map(|v| number(*v)));
        (0..examples).map(own).collect()
    }
    let examples = inputs.examples();
    let own = match inputs.values() {
        ArrayValues::U8(v) => each(v, examples, f64::from),
        ArrayValues::I64(v) => each(v, examples, |v| v as f64),
        ArrayValues::F32(v) => each(v, examples, f64::from),
        ArrayValues::F64(v) => each(v, examples, |v| v),
    };
    let both = |(i, own): (usize, u64)| {
        let truth = truth(i).into_iter().map(|v| f64::from(v as f32));
        row_fingerprint(std::iter::once(own as f64).chain(truth))
    };
    own.into_iter().enumerate().map(both).collect()
}

/// Examples by whether a model has learned from such; examples that it cannot use are in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainedOn {
    /// Those that it has not learned from.
    pub unseen: Vec<usize>,
    /// Those of which its training had one with the same numbers.
    pub seen: Vec<usize>,
}

impl TrainedOn {
    /// From what is known of each of these examples.
    pub(crate) fn new(examples: impl IntoIterator<Item = (usize, bool)>) -> Self {
        let mut out = Self::default();
        for (example, seen) in examples {
            if seen { out.seen.push(example) } else { out.unseen.push(example) }
        }
        out
    }
}

/// Examples to score, apart from those that a model has learned from: their scores say how well it fits, not how well it predicts.
#[derive(Clone, Debug)]
pub struct EvaluationData {
    /// What the scored examples are to the model.
    pub rows: ScoredRows,
    /// What is scored: examples that the model has not learned from; where it has learned from all that it can use, those; all, where it does not know.
    pub data: ModelData,
    /// Which of the examples given these are, where they are not all.
    pub positions: Option<Vec<usize>>,
    /// The others.
    pub training: Option<ModelData>,
}

impl EvaluationData {
    /// Parts data with truths by what a model says of them ([`crate::Model::trained_on`]).
    ///
    /// # Errors
    /// When they cannot be parted.
    pub fn of(known: Option<TrainedOn>, data: ModelData) -> Result<Self, ModelError> {
        let whole = |rows, data| Ok(Self { rows, data, positions: None, training: None });
        let Some(TrainedOn { unseen, seen }) = known else {
            return whole(ScoredRows::Unknown, data);
        };
        match (unseen.is_empty(), seen.is_empty()) {
            (_, true) => whole(ScoredRows::HeldOut, data),
            (true, false) if seen.len() == data.len() => whole(ScoredRows::Training, data),
            (true, false) => {
                let data = data.selected(&seen)?;
                Ok(Self { rows: ScoredRows::Training, data, positions: Some(seen), training: None })
            }
            (false, false) => {
                let (rest, training) = (data.selected(&unseen)?, Some(data.selected(&seen)?));
                Ok(Self { rows: ScoredRows::HeldOut, data: rest, positions: Some(unseen), training })
            }
        }
    }
}
