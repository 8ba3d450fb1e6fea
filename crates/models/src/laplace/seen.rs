//! Which rows a model has learned from: a fingerprint of each, so that scoring them again is not taken for a test.

use crate::Truth;
use posterior_data::{ArrayValues, NumericArray, row_fingerprint};

/// The fingerprint of each example's numbers as they stand in the file.
pub(super) fn fingerprints(inputs: &NumericArray) -> Vec<u64> {
    fn each<N: Copy>(values: &[N], examples: usize, number: impl Fn(N) -> f64) -> Vec<u64> {
        let width = values.len() / examples.max(1);
        let own = |i: usize| row_fingerprint(values[i * width..(i + 1) * width].iter().map(|v| number(*v)));
        (0..examples).map(own).collect()
    }
    let examples = inputs.examples();
    match inputs.values() {
        ArrayValues::U8(v) => each(v, examples, f64::from),
        ArrayValues::I64(v) => each(v, examples, |v| v as f64),
        ArrayValues::F32(v) => each(v, examples, f64::from),
        ArrayValues::F64(v) => each(v, examples, |v| v),
    }
}

/// The same with each example's truth, in single precision, to which a network may have rounded it. Fingerprints have 53 bits, so that a double holds them.
pub(super) fn with_truths<T: IntoIterator<Item = f64>>(
    inputs: Vec<u64>,
    truth: impl Fn(usize) -> T,
) -> Vec<u64> {
    let both = |(i, own): (usize, u64)| {
        let truth = truth(i).into_iter().map(|v| f64::from(v as f32));
        row_fingerprint(std::iter::once(own as f64).chain(truth))
    };
    inputs.into_iter().enumerate().map(both).collect()
}

impl Truth {
    /// Numbers of an example.
    pub(super) fn of(&self, example: usize) -> Vec<f64> {
        match self {
            Self::Classes(classes) => vec![classes[example] as f64],
            Self::Values { values, width } => values[example * width..(example + 1) * width].to_vec(),
        }
    }
}
