//! Products with the patches of an example, where several blocks of weights or of cotangents meet the same one: each value of a patch, which costs a copy, is then used a hundred times and
//! more by a matrix product, the quickest kernel there is.

use super::run::{Map, in_parts};
use crate::Precision;
use crate::array::add_to;
use crate::array::products::{Matrix, product_here};
use rayon::prelude::*;
use std::ops::Range;

/// What the weights multiply at each output position of one example, as a matrix; of convolutions in one group.
struct Patches<'a, 'g, T> {
    map: &'a Map<'g>,
    offsets: Vec<usize>,
    grid: Vec<T>,
    /// `[channels_in * taps, positions]`.
    values: Vec<T>,
}

impl<'a, 'g, T: Precision> Patches<'a, 'g, T> {
    fn new(map: &'a Map<'g>) -> Self {
        let offsets = map.offsets(&map.plan.lattices[0], 0);
        let values = vec![T::ZERO; offsets.len() * map.geometry.positions()];
        Self { map, grid: vec![T::ZERO; map.grid_len()], offsets, values }
    }

    /// `[channels_in * taps, positions]` of one example. Rows of positions are copied whole: a fraction of the product's time, where it has a dozen rows.
    fn of(&mut self, source: &[T]) -> Matrix<'_, T> {
        self.map.fill(source, &mut self.grid);
        let (grid, lattice, positions) =
            (&self.grid, &self.map.plan.lattices[0], self.map.geometry.positions());
        for (row, &offset) in self.values.chunks_exact_mut(positions).zip(&self.offsets) {
            lattice.rows(|at, target, count, _| {
                row[target..target + count].copy_from_slice(&grid[offset + at..][..count]);
            });
        }
        Matrix::new(&self.values, self.offsets.len(), positions)
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
    out.par_chunks_exact_mut(rows * positions)
        .zip(source.par_chunks_exact(geometry.source_len()))
        .flat_map(|(out, source)| {
            let shares = out.par_chunks_mut(each * positions).zip(stack.par_chunks(each * columns));
            shares.map(move |(out, stack)| (source, stack, out))
        })
        .for_each_init(
            || Patches::new(map),
            |patches, (source, stack, out)| {
                let weights = Matrix::new(stack, stack.len() / columns, columns);
                product_here(out, positions, false, weights, patches.of(source));
            },
        );
}

/// How many of `count` blocks with so many rows make one product: all, except that those of few examples are cut, for threads to share. Depends on sizes only.
fn together(examples: usize, count: usize, rows: usize) -> usize {
    if examples < 8 { (256 / rows).clamp(1, count) } else { count }
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
        let patches = patches.of(&source[example * in_row..][..in_row]).transposed();
        if stride == set_len {
            let rows = Matrix::new(cotangent, cotangent.len() / positions, positions);
            return product_here(out, columns, false, rows, patches);
        }
        for (cotangent, out) in cotangent.chunks_exact(out_row).zip(out.chunks_mut(stride)) {
            let rows = Matrix::new(cotangent, channels, positions);
            product_here(&mut out[..set_len], columns, false, rows, patches);
        }
    };
    out.par_chunks_mut(width * stride)
        .zip(cotangent.par_chunks_exact(width * out_row))
        .enumerate()
        .flat_map(|(example, (out, cotangent))| {
            let shares = out.par_chunks_mut(each * stride).zip(cotangent.par_chunks(each * out_row));
            shares.map(move |(out, cotangent)| (example, cotangent, out))
        })
        .for_each_init(
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
            let patches = patches.of(&source[example * in_row..][..in_row]).transposed();
            product_here(&mut own, columns, true, rows, patches);
        }
        own
    };
    in_parts(source.len() / in_row, part, |own| {
        for (own, out) in own.chunks_exact(set_len).zip(out.chunks_mut(stride)) {
            add_to(&mut out[..set_len], own);
        }
    });
}
