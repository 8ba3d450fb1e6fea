//! Products with the patches of an example, where several blocks of weights or of cotangents meet the same one: each value of a patch, which costs a copy, is then used a hundred times and
//! more by a matrix product, the quickest kernel there is.

use super::run::{CACHE, Map, in_parts};
use crate::Precision;
use crate::array::add_to;
use crate::array::batch::zeros;
use crate::array::pool::Buffer;
use crate::array::products::{Matrix, product_in_columns};
use posterior_linalg::parallel;
use std::ops::Range;

/// Positions that a product is worth its call for.
const FEWEST: usize = 128;

/// What the weights multiply at each output position of one example, a band of positions at a time; of convolutions in one group.
struct Patches<'a, 'g, T> {
    map: &'a Map<'g>,
    offsets: Vec<usize>,
    grid: Buffer<T>,
    /// `[channels_in * taps, positions of a band]`.
    values: Vec<T>,
}

impl<'a, 'g, T: Precision> Patches<'a, 'g, T> {
    fn new(map: &'a Map<'g>) -> Self {
        let offsets = map.offsets(&map.plan.lattices[0], 0);
        Self { map, grid: zeros(map.grid_len()), offsets, values: Vec::new() }
    }

    /// Shows the patches of one example, `[channels_in * taps, positions]` of some positions after others: as many as stay in the cache while a product meets them. Rows of positions are copied whole: a
    /// fraction of the product's time, where it has a dozen rows.
    fn of(&mut self, source: &[T], mut show: impl FnMut(Range<usize>, Matrix<'_, T>)) {
        self.map.fill(source, &mut self.grid);
        let (grid, lattice) = (&self.grid, &self.map.plan.lattices[0]);
        let longest = (CACHE / (self.offsets.len() * size_of::<T>())).max(FEWEST);
        let mut begin = 0;
        for band in lattice.bands(longest) {
            let mut end = begin;
            lattice.rows_of(&band, |_, _, count, _| end += count);
            let positions = end - begin;
            self.values.resize(self.values.len().max(self.offsets.len() * positions), T::ZERO);
            for (row, &offset) in self.values.chunks_exact_mut(positions).zip(&self.offsets) {
                lattice.rows_of(&band, |at, target, count, _| {
                    row[target - begin..][..count].copy_from_slice(&grid[band.grid + offset + at..][..count]);
                });
            }
            let values = &self.values[..self.offsets.len() * positions];
            show(begin..end, Matrix::new(values, self.offsets.len(), positions));
            begin = end;
        }
    }
}

/// `out[n, k] = weights[k] * source[n]` for a stack of weights that every example meets: one matrix product of the stack with each example's patches, which are laid out once for all of the stack.
pub(super) fn correlate_stacked<T: Precision>(
    map: &Map<'_>,
    source: &[T],
    stack: &[T],
    width: usize,
    out: &mut [T],
) {
    let geometry = map.geometry;
    let (columns, positions) = (geometry.channels_in * geometry.taps(), geometry.positions());
    let rows = width * geometry.channels_out;
    let each = together(source.len() / geometry.source_len(), rows, 1);
    let examples = out.chunks_exact_mut(rows * positions).zip(source.chunks_exact(geometry.source_len()));
    let shares = examples.flat_map(|(out, source)| {
        let shares = out.chunks_mut(each * positions).zip(stack.chunks(each * columns));
        shares.map(move |(out, stack)| (source, stack, out))
    });
    parallel::consume_with(
        shares.collect(),
        || Patches::new(map),
        |patches, (source, stack, out)| {
            let weights = Matrix::new(stack, stack.len() / columns, columns);
            patches.of(source, |at, patches| {
                product_in_columns((&mut *out, positions, at), false, weights, patches);
            });
        },
    );
}

/// How many of `count` blocks with so many rows make one product: all, except that those of few examples are cut, for threads to share. Depends on sizes only.
fn together(examples: usize, count: usize, rows: usize) -> usize {
    if examples < 8 { ((count * rows / 8).clamp(64, 256) / rows).clamp(1, count) } else { count }
}

/// `out[r * stride..] =` the gradient of row `r`: products of its channels, and where they follow one another those of all `width` rows of its example, with the example's patches.
pub(super) fn gradients_by_row<T: Precision>(
    map: &Map<'_>,
    source: &[T],
    cotangent: &[T],
    width: usize,
    stride: usize,
    out: &mut [T],
) {
    let geometry = map.geometry;
    let (in_row, out_row, set_len) = (geometry.source_len(), geometry.target_len(), geometry.weights());
    let (columns, positions, channels) =
        (geometry.channels_in * geometry.taps(), geometry.positions(), geometry.channels_out);
    let each = together(source.len() / in_row, width, channels);
    let share = |patches: &mut Patches<'_, '_, T>, example: usize, cotangent: &[T], out: &mut [T]| {
        patches.of(&source[example * in_row..][..in_row], |at, patches| {
            let (add, patches) = (at.start > 0, patches.transposed());
            if stride == set_len {
                let rows = Matrix::new(cotangent, cotangent.len() / positions, positions).columns(at);
                return product_in_columns((&mut *out, columns, 0..columns), add, rows, patches);
            }
            for (cotangent, out) in cotangent.chunks_exact(out_row).zip(out.chunks_mut(stride)) {
                let rows = Matrix::new(cotangent, channels, positions).columns(at.clone());
                product_in_columns((&mut out[..set_len], columns, 0..columns), add, rows, patches);
            }
        });
    };
    let examples = out.chunks_mut(width * stride).zip(cotangent.chunks_exact(width * out_row));
    let shares = examples.enumerate().flat_map(|(example, (out, cotangent))| {
        let shares = out.chunks_mut(each * stride).zip(cotangent.chunks(each * out_row));
        shares.map(move |(out, cotangent)| (example, cotangent, out))
    });
    parallel::consume_with(
        shares.collect(),
        || Patches::new(map),
        |patches, (example, cotangent, out)| share(patches, example, cotangent, out),
    );
}

/// `out[k * stride..] += sum_n` of the gradients of tangent `k`: for each example one product of all tangents' channels with its patches.
pub(super) fn stacked_gradients<T: Precision>(
    map: &Map<'_>,
    source: &[T],
    cotangent: &[T],
    width: usize,
    stride: usize,
    out: &mut [T],
) {
    let geometry = map.geometry;
    let (in_row, out_row, set_len) =
        (geometry.source_len(), width * geometry.target_len(), geometry.weights());
    let (columns, positions) = (geometry.channels_in * geometry.taps(), geometry.positions());
    let part = |examples: Range<usize>| {
        let (mut own, mut patches) = (vec![T::ZERO; width * set_len], Patches::new(map));
        for example in examples {
            let cotangent = &cotangent[example * out_row..][..out_row];
            let rows = Matrix::new(cotangent, width * geometry.channels_out, positions);
            patches.of(&source[example * in_row..][..in_row], |at, patches| {
                let own = (&mut own[..], columns, 0..columns);
                product_in_columns(own, true, rows.columns(at), patches.transposed());
            });
        }
        own
    };
    in_parts(source.len() / in_row, part, |own| {
        for (own, out) in own.chunks_exact(set_len).zip(out.chunks_mut(stride)) {
            add_to(&mut out[..set_len], own);
        }
    });
}
