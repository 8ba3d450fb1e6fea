//! Rows of a table by number, and the order of a matrix's axes.

use super::{Array, Precision, Sets, together};
use posterior_linalg::parallel;

/// The row number that a value stands for; out-of-range values are refused before a network runs, and clamp here.
fn index<T: Precision>(value: T, entries: usize) -> usize {
    (value.to_f64().max(0.0) as usize).min(entries - 1)
}

/// `out[r, i, :] = table[set of r][ids[r / width, i], :]`.
pub(crate) fn look_up<T: Precision>(
    ids: &Array<T>,
    table: &[T],
    entries: usize,
    sets: Sets,
    out: &mut Array<T>,
) {
    let (rows, length) = (out.rows(), out.row_len());
    let width = rows / ids.rows().max(1);
    let columns = length / ids.row_len().max(1);
    let set_len = entries * columns;
    parallel::chunks(out.values_mut(), length.max(1), together(length), |r, out| {
        let table = &table[sets.of(r) * set_len..][..set_len];
        for (out, &id) in out.chunks_exact_mut(columns).zip(ids.row(r / width)) {
            out.copy_from_slice(&table[index(id, entries) * columns..][..columns]);
        }
    });
}

/// The transpose of [`look_up`] in the table: adds the rows of `cotangent` to the entries they came from.
pub(crate) fn add_rows<T: Precision>(
    ids: &Array<T>,
    cotangent: &Array<T>,
    entries: usize,
    sets: Sets,
    stride: usize,
    out: &mut [T],
) {
    let width = cotangent.rows() / ids.rows().max(1);
    let columns = cotangent.row_len() / ids.row_len().max(1);
    for r in 0..cotangent.rows() {
        let out = &mut out[sets.of(r) * stride..][..entries * columns];
        for (c, &id) in cotangent.row(r).chunks_exact(columns).zip(ids.row(r / width)) {
            let entry = index(id, entries) * columns;
            out[entry..entry + columns].iter_mut().zip(c).for_each(|(o, &c)| *o += c);
        }
    }
}

/// `[rows, a, b] -> [rows, b, a]`.
pub(crate) fn transpose_rows<T: Precision>(x: &Array<T>, a: usize, b: usize) -> Array<T> {
    let mut out = Array::zeros(vec![x.rows(), b, a]);
    parallel::chunks(out.values_mut(), (a * b).max(1), together(a * b), |r, out| {
        let x = x.row(r);
        for i in 0..a {
            for j in 0..b {
                out[j * a + i] = x[i * b + j];
            }
        }
    });
    out
}
