//! Vectors of products in the range of numbers that arithmetic is fast and exact in.
//!
//! A classifier that is certain of an example has next to no slope there: cotangents of 1e-30 beside others of 1, which layer by layer become numbers too small for a full mantissa. Processors take such
//! "subnormal" numbers one at a time, by an exception: a pass backwards through a residual network took 57 times as long with them, and what it made of them had few digits. Products are linear, so vectors may
//! have any scale on the way.

use crate::array::{Array, Precision, Sets};
use std::borrow::Cow;

/// What multiplied each set of rows.
pub(super) struct Scales<T>(Vec<T>);

/// Below this, numbers lose their digits a few layers on: `smallest / epsilon²`, 8e-25 in single precision.
fn floor<T: Precision>() -> T {
    T::MIN_POSITIVE / (T::EPSILON * T::EPSILON)
}

/// Multiplies sets of rows whose largest entry is tiny by a power of two, and takes for zero what even then is less than `epsilon²` of the largest, far below the rounding of any sum with it. Other rows stay as
/// they are, to the bit, and where there are no others, nothing is copied.
#[inline(never)]
pub(super) fn normal_range<T: Precision>(
    rows: Cow<'_, Array<T>>,
    sets: Sets,
) -> (Cow<'_, Array<T>>, Scales<T>) {
    let (count, floor) = (sets.count(rows.rows()), floor::<T>());
    let mut largest = vec![T::ZERO; count];
    let mut tiny = false;
    for row in 0..rows.rows() {
        let own = &mut largest[sets.of(row)];
        for value in rows.row(row).iter().map(|v| v.abs()) {
            *own = own.max(value);
            tiny |= value < floor && value > T::ZERO;
        }
    }
    if !tiny {
        return (rows, Scales(Vec::new()));
    }
    let enough = floor / (T::EPSILON * T::EPSILON);
    let most = (T::ONE / T::MIN_POSITIVE).to_f64();
    let scale = |largest: T| match largest > T::ZERO && largest < enough {
        true => T::from_f64((-largest.to_f64().log2().floor()).exp2().min(most)),
        false => T::ONE,
    };
    let scales: Vec<T> = largest.into_iter().map(scale).collect();
    let (length, mut rows) = (rows.row_len(), rows.into_owned());
    for (row, values) in rows.values_mut().chunks_exact_mut(length.max(1)).enumerate() {
        let scale = scales[sets.of(row)];
        for value in values {
            let scaled = *value * scale;
            *value = if scaled.abs() < floor { T::ZERO } else { scaled };
        }
    }
    (Cow::Owned(rows), Scales(scales))
}

impl<T: Precision> Scales<T> {
    /// Whether there is nothing to take out.
    pub(super) fn are_one(&self) -> bool {
        self.0.iter().all(|s| *s == T::ONE)
    }

    /// Takes the scales back out of products, whose rows belong to so many sets in turn.
    #[inline(never)]
    pub(super) fn undo(&self, products: &mut Array<T>) {
        if self.are_one() {
            return;
        }
        let length = products.row_len().max(1);
        for (products, scale) in products.values_mut().chunks_exact_mut(length).zip(self.0.iter().cycle()) {
            let back = T::ONE / *scale;
            products.iter_mut().for_each(|v| *v *= back);
        }
    }
}
