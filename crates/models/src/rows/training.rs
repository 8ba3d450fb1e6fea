//! Which rows a model has learned from: a fingerprint of each, so that scoring them again is not taken for a test.

use crate::ModelData;
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
        Some(TrainedOn::of(&[self.fingerprints()?], examples))
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

/// Examples by whether a model has learned from rows with the same numbers; examples that it cannot use are in neither list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainedOn {
    /// Those of which it has learned from none.
    pub unseen: Vec<usize>,
    /// Those of which its training had one with the same numbers.
    pub seen: Vec<usize>,
    /// Whether they are the training rows, as often as these, in any order.
    whole: bool,
    /// The share of seen ones that is no surprise among fresh rows, with its standard error.
    by_chance: [f64; 2],
}

/// Standard errors by which examples have to be seen more often than by chance.
const SURE: f64 = 3.0;

impl TrainedOn {
    /// Of examples by number and fingerprint; rows that any of `known` has learned from are seen.
    ///
    /// A fresh row equals one of n training rows with the probability that a training row equals another, of which k of n do: their share is the estimate. Its standard error, beside that of m examples, is `(q (1 - q) (1/n + 1/m))^(1/2)` with q = (k + 1)/(n + 2), which is not 0 where k is.
    pub(crate) fn of(known: &[&RowFingerprints], examples: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let (mut unseen, mut seen, mut prints) = (Vec::new(), Vec::new(), Vec::new());
        for (example, print) in examples {
            let list = if known.iter().any(|own| own.contains(print)) { &mut seen } else { &mut unseen };
            list.push(example);
            prints.push(print);
        }
        let examples = prints.len().max(1) as f64;
        let expected = known.iter().map(|own| {
            let (rows, repeated) = (own.rows() as f64, own.repeated() as f64);
            let q = (repeated + 1.0) / (rows + 2.0);
            [repeated / rows.max(1.0), (q * (1.0 - q) * (rows.max(1.0).recip() + examples.recip())).sqrt()]
        });
        let by_chance = expected.fold([0.0f64; 2], |[q, error], [own, its]| [q.max(own), error.max(its)]);
        let prints = RowFingerprints::new(prints);
        Self { whole: known.iter().any(|own| **own == prints), unseen, seen, by_chance }
    }

    /// What the examples are to the model: training rows where they are the table of the training, row for row, or have more of its rows than chance explains.
    pub fn rows(&self) -> ScoredRows {
        let (seen, all) = (self.seen.len(), self.seen.len() + self.unseen.len());
        let [share, error] = self.by_chance;
        match () {
            () if seen == 0 => ScoredRows::HeldOut,
            () if self.whole => ScoredRows::Training,
            () if seen as f64 / all as f64 <= share + SURE * error => ScoredRows::HeldOut,
            () if seen == all => ScoredRows::Training,
            () => ScoredRows::PartlyTraining,
        }
    }
}
