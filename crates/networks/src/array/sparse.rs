//! **Sparse linear maps** of an example's values: slices, pads, transposes, means, average pooling and interpolation are all
//! `y[i] = sum_j w[i, j] x[j]` with few `j` for each `i`, and share their derivatives.

use super::{Array, Precision, batch_shape, piece};
use posterior_linalg::parallel;

/// Rows of (source, weight), compressed, and the transpose of the same matrix.
#[derive(Clone, Debug)]
pub(crate) struct SparseMap {
    forward: Compressed,
    backward: Compressed,
}

#[derive(Clone, Debug)]
struct Compressed {
    starts: Vec<u32>,
    sources: Vec<u32>,
    /// None where all weights are 1.
    weights: Option<Vec<f64>>,
}

impl Compressed {
    fn new(rows: usize, entries: &mut [(u32, u32, f64)]) -> Self {
        entries.sort_by_key(|&(row, source, _)| (row, source));
        let mut starts = vec![0u32; rows + 1];
        for &(row, ..) in entries.iter() {
            starts[row as usize + 1] += 1;
        }
        for i in 0..rows {
            starts[i + 1] += starts[i];
        }
        let weights = entries.iter().any(|e| e.2 != 1.0).then(|| entries.iter().map(|e| e.2).collect());
        Self { starts, sources: entries.iter().map(|e| e.1).collect(), weights }
    }

    fn apply<T: Precision>(&self, x: &Array<T>, blocks: usize, example: &[usize], empty: T) -> Array<T> {
        let mut out = Array::any(batch_shape(x.rows(), example));
        if out.is_empty() {
            return out;
        }
        let (length, from) = (out.row_len() / blocks, x.row_len() / blocks);
        let weights: Option<Vec<T>> =
            self.weights.as_ref().map(|w| w.iter().map(|&w| T::from_f64(w)).collect());
        let rows_each =
            (piece(out.len().max(x.len())) * length / out.len().max(x.len())).div_ceil(length).max(1);
        parallel::chunks(out.values_mut(), rows_each * length, 1, |part, rows| {
            for (r, out) in rows.chunks_exact_mut(length).enumerate() {
                let x = &x.values()[(part * rows_each + r) * from..][..from];
                for (o, range) in out.iter_mut().zip(self.starts.windows(2)) {
                    let range = range[0] as usize..range[1] as usize;
                    let sources = &self.sources[range.clone()];
                    let mut sum = T::ZERO;
                    match &weights {
                        Some(weights) => {
                            for (&j, &w) in sources.iter().zip(&weights[range]) {
                                sum += w * x[j as usize];
                            }
                        }
                        None => sources.iter().for_each(|&j| sum += x[j as usize]),
                    }
                    *o = if sources.is_empty() { empty } else { sum };
                }
            }
        });
        out
    }
}

impl SparseMap {
    /// From entries `(output, input, weight)`.
    pub(crate) fn new(inputs: usize, outputs: usize, mut entries: Vec<(u32, u32, f64)>) -> Self {
        let forward = Compressed::new(outputs, &mut entries);
        let mut flipped: Vec<(u32, u32, f64)> = entries.into_iter().map(|(o, i, w)| (i, o, w)).collect();
        Self { forward, backward: Compressed::new(inputs, &mut flipped) }
    }

    /// `y[r] = M x[r]` for each of the `blocks` equal parts of every row, and `empty` where a row of `M` has no entry; rows of the result are shaped
    /// `example`.
    pub(crate) fn apply<T: Precision>(
        &self,
        x: &Array<T>,
        blocks: usize,
        example: &[usize],
        empty: T,
    ) -> Array<T> {
        self.forward.apply(x, blocks, example, empty)
    }

    /// `x[r] = M^T y[r]` for each of the `blocks` equal parts of every row.
    pub(crate) fn apply_transposed<T: Precision>(
        &self,
        y: &Array<T>,
        blocks: usize,
        example: &[usize],
    ) -> Array<T> {
        self.backward.apply(y, blocks, example, T::ZERO)
    }
}
