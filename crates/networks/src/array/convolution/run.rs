//! Convolutions of batches: which example and which channels each thread takes.

use super::geometry::{Geometry, coordinates};
use super::kernel::{INNER_ROWS, INNER_SHIFTS, Inner, Product, SLACK, block_rows};
use super::patches::{correlate_stacked, gradients_by_row, stacked_gradients};
use super::plan::{Lattice, Plan, backward, forward};
use crate::Precision;
use crate::array::batch::zeros;
use crate::array::{Sets, add_to};
use posterior_linalg::parallel;
use std::ops::Range;

/// Grids and cotangents of the images that a weight gradient sums at once stay below this many bytes (a part of the second-level cache).
pub(super) const CACHE: usize = 384 << 10;

/// Kernel weights, `[sets, channels_out, channels_in / groups, kernel...]`, and the rows that use each set.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) sets: Sets,
}

/// Which way the weights are read: from input to output channels or back.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

/// Grid positions of a band of outputs: what is written of it stays in the second-level cache until it is copied to its place.
const BAND: usize = 4096;

/// A plan with the number of channels on both of its sides and its weights laid out for the product.
pub(super) struct Map<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) plan: Plan,
    direction: Direction,
}

impl<'a> Map<'a> {
    fn new(geometry: &'a Geometry, direction: Direction) -> Self {
        let plan = match direction {
            Direction::Forward => forward(geometry),
            Direction::Backward => backward(geometry),
        };
        Self { geometry, plan, direction }
    }

    /// Channels of one group: read, written.
    fn channels(&self) -> (usize, usize) {
        let (a, b) = (
            self.geometry.channels_in / self.geometry.groups,
            self.geometry.channels_out / self.geometry.groups,
        );
        if self.direction == Direction::Forward { (a, b) } else { (b, a) }
    }

    /// Values of one channel: read, written.
    fn channel_lens(&self) -> (usize, usize) {
        let (source, target): (usize, usize) =
            (self.geometry.source.iter().product(), self.geometry.target.iter().product());
        if self.direction == Direction::Forward { (source, target) } else { (target, source) }
    }

    /// Rows of the target for each of the source.
    fn width<T>(&self, source: &[T], target: &[T]) -> usize {
        let examples = source.len() / self.geometry.source_len().max(1);
        target.len() / (examples * self.geometry.target_len()).max(1)
    }

    /// Values of the grid of one example, with room to read past the end.
    pub(super) fn grid_len(&self) -> usize {
        let channel = self.plan.grid.channel_len();
        let beyond = self
            .plan
            .lattices
            .iter()
            .flat_map(|l| l.taps.iter().map(|tap| tap.offset + l.span() + SLACK))
            .max()
            .unwrap_or(0);
        self.channels().0 * self.geometry.groups * channel + beyond.saturating_sub(channel)
    }

    /// Blocks of output channels: (group, first, rows of the block).
    fn blocks(&self) -> Vec<(usize, usize, usize)> {
        let largest = block_rows();
        let (_, to) = self.channels();
        (0..self.geometry.groups)
            .flat_map(|group| {
                let mut first = 0;
                std::iter::from_fn(move || {
                    (first < to).then(|| {
                        let rows = if to - first > 4 { largest } else { 4 };
                        let block = (group, first, rows);
                        first += rows;
                        block
                    })
                })
            })
            .collect()
    }

    /// The weights of one block, `[lattices][read channels, taps][rows]`.
    fn pack<T: Precision>(
        &self,
        weights: &[T],
        (group, first, rows): (usize, usize, usize),
        out: &mut Vec<T>,
    ) {
        out.clear();
        let (from, to) = self.channels();
        let taps = self.geometry.taps();
        for lattice in &self.plan.lattices {
            for c in 0..from {
                for tap in &lattice.taps {
                    for m in first..first + rows {
                        let index = match self.direction {
                            Direction::Forward => ((group * to + m) * from + c) * taps + tap.kernel,
                            Direction::Backward => ((group * from + c) * to + m) * taps + tap.kernel,
                        };
                        out.push(if m < to { weights[index] } else { T::ZERO });
                    }
                }
            }
        }
    }

    /// Where the rows of the unfolded matrix of one group begin in the grid.
    pub(super) fn offsets(&self, lattice: &Lattice, group: usize) -> Vec<usize> {
        let (from, _) = self.channels();
        let channel = self.plan.grid.channel_len();
        (group * from..(group + 1) * from)
            .flat_map(|c| lattice.taps.iter().map(move |tap| c * channel + tap.offset))
            .collect()
    }

    pub(super) fn fill<T: Precision>(&self, source: &[T], grid: &mut [T]) {
        let (from, _) = self.channel_lens();
        let channel = self.plan.grid.channel_len();
        for (source, grid) in source.chunks_exact(from).zip(grid.chunks_mut(channel)) {
            self.plan.grid.fill(source, grid);
        }
    }

    /// One block of output channels of one example.
    fn run<T: Precision>(
        &self,
        grid: &[T],
        (group, first, rows): (usize, usize, usize),
        packed: &[T],
        offsets: &[Vec<Vec<usize>>],
        bias: Option<&[T]>,
        scratch: &mut Vec<T>,
        out: &mut [T],
    ) {
        let (_, to) = self.channels();
        let (_, out_channel) = self.channel_lens();
        let mut used = 0;
        for (lattice, offsets) in self.plan.lattices.iter().zip(offsets) {
            let offsets = &offsets[group];
            for band in lattice.bands(BAND) {
                let stride = (band.span + SLACK).next_multiple_of(SLACK);
                scratch.resize(scratch.len().max(rows * stride), T::ZERO);
                T::product(Product {
                    weights: &packed[used..used + offsets.len() * rows],
                    rows,
                    offsets,
                    grid: &grid[band.grid..],
                    span: band.span,
                    out: scratch,
                    stride,
                });
                for m in 0..rows.min(to - first) {
                    let bias = bias.map_or(T::ZERO, |b| b[group * to + first + m]);
                    let (row, out) =
                        (&scratch[m * stride..(m + 1) * stride], &mut out[m * out_channel..][..out_channel]);
                    lattice.rows_of(&band, |grid, target, count, step| {
                        let row = &row[grid..grid + count];
                        if step == 1 {
                            for (o, &v) in out[target..target + count].iter_mut().zip(row) {
                                *o = v + bias;
                            }
                        } else {
                            for (i, &v) in row.iter().enumerate() {
                                out[target + i * step] = v + bias;
                            }
                        }
                    });
                }
            }
            used += offsets.len() * rows;
        }
    }

    fn all_offsets(&self) -> Vec<Vec<Vec<usize>>> {
        self.plan
            .lattices
            .iter()
            .map(|lattice| (0..self.geometry.groups).map(|group| self.offsets(lattice, group)).collect())
            .collect()
    }

    /// Every row `r` of `out` from row `r / width` of `source` and its set of the weights.
    fn apply<T: Precision>(&self, source: &[T], weights: Weights<'_, T>, bias: Option<&[T]>, out: &mut [T]) {
        let (from, to) = self.channels();
        let groups = self.geometry.groups;
        let (in_channel, out_channel) = self.channel_lens();
        let (in_row, out_row) = (groups * from * in_channel, groups * to * out_channel);
        if out.is_empty() {
            return;
        }
        let rows = out.len() / out_row;
        let width = rows / (source.len() / in_row);
        let blocks = self.blocks();
        let offsets = self.all_offsets();
        let grid_len = self.grid_len();
        let set_len = self.geometry.weights();
        let pack_set = |set: usize| -> Vec<Vec<T>> {
            let weights = &weights.values[set * set_len..(set + 1) * set_len];
            let pack = |&block: &(usize, usize, usize)| {
                let mut packed = Vec::new();
                self.pack(weights, block, &mut packed);
                packed
            };
            if rows < 4 {
                parallel::map(blocks.len(), 1, |block| pack(&blocks[block]))
            } else {
                blocks.iter().map(pack).collect()
            }
        };
        let shared = (weights.sets == Sets::One).then(|| pack_set(0));
        let start = |&(group, first, _): &(usize, usize, usize)| (group * to + first) * out_channel;
        if rows >= rayon::current_num_threads() {
            let room = || (zeros::<T>(grid_len), Vec::new());
            parallel::chunks_with(out, out_row, 1, room, |(grid, scratch), row, out| {
                self.fill(&source[row / width * in_row..][..in_row], grid);
                let own;
                let packed = match &shared {
                    Some(packed) => packed,
                    None => {
                        own = pack_set(weights.sets.of(row));
                        &own
                    }
                };
                for (block, packed) in blocks.iter().zip(packed) {
                    self.run(grid, *block, packed, &offsets, bias, scratch, &mut out[start(block)..]);
                }
            });
        } else {
            // Few examples, perhaps large ones: the threads share the channels of each.
            let mut grid = zeros::<T>(grid_len);
            let channel = self.plan.grid.channel_len();
            for (row, mut out) in out.chunks_exact_mut(out_row).enumerate() {
                let source = &source[row / width * in_row..][..in_row];
                let pieces = grid.chunks_mut(channel).zip(source.chunks_exact(in_channel)).collect();
                parallel::consume(pieces, |(grid, source): (&mut [T], &[T])| {
                    self.plan.grid.fill(source, grid);
                });
                let own;
                let packed = match &shared {
                    Some(packed) => packed,
                    None => {
                        own = pack_set(weights.sets.of(row));
                        &own
                    }
                };
                let mut work = Vec::with_capacity(blocks.len());
                for (&(group, first, rows), packed) in blocks.iter().zip(packed) {
                    let (mine, rest) = out.split_at_mut(rows.min(to - first) * out_channel);
                    work.push(((group, first, rows), packed, mine));
                    out = rest;
                }
                let grid = &grid;
                parallel::consume_with(work, Vec::new, |scratch, (block, packed, out)| {
                    self.run(grid, block, packed, &offsets, bias, scratch, out);
                });
            }
        }
    }
}

/// `out[r] = weights * source[r / width]` (+ bias): `[rows, channels_out, target...]`.
pub(crate) fn correlate<T: Precision>(
    geometry: &Geometry,
    source: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let map = Map::new(geometry, Direction::Forward);
    match (weights.sets, bias) {
        (Sets::Tangents(width), None) if geometry.groups == 1 && width == map.width(source, out) => {
            correlate_stacked(&map, source, weights.values, width, out);
        }
        _ => map.apply(source, weights, bias, out),
    }
}

/// The transpose of [`correlate`] in its first argument: `[rows, channels_in, source...]` from `[., channels_out, target...]`.
pub(crate) fn correlate_transposed<T: Precision>(
    geometry: &Geometry,
    target: &[T],
    weights: Weights<'_, T>,
    bias: Option<&[T]>,
    out: &mut [T],
) {
    Map::new(geometry, Direction::Backward).apply(target, weights, bias, out);
}

/// In how many parts the sum over examples is made, whatever the number of threads.
const PARTS: usize = 8;

/// `out[s * stride..] += sum over rows r of set s of the gradient of <cotangent[r], weights * source[r / width]>` in the weights; where each row has its own set and channels are in one group, in the place of what was there.
pub(crate) fn weight_gradient<T: Precision>(
    geometry: &Geometry,
    source: &[T],
    cotangent: &[T],
    sets: Sets,
    stride: usize,
    out: &mut [T],
) {
    let map = Map::new(geometry, Direction::Forward);
    let (in_row, out_row, set_len) = (geometry.source_len(), geometry.target_len(), geometry.weights());
    if cotangent.is_empty() {
        return;
    }
    let (rows, width) = (cotangent.len() / out_row, map.width(source, cotangent));
    match sets {
        Sets::Rows if geometry.groups == 1 => {
            return gradients_by_row(&map, source, cotangent, width, stride, out);
        }
        Sets::Tangents(tangents) if geometry.groups == 1 && tangents == width => {
            return stacked_gradients(&map, source, cotangent, width, stride, out);
        }
        _ => {}
    }
    let sum = |(first, step, count): (usize, usize, usize), out: &mut [T]| {
        let rows = (0..count).map(|i| first + i * step);
        let pairs =
            rows.map(|r| (&source[r / width * in_row..][..in_row], &cotangent[r * out_row..][..out_row]));
        accumulate(&map, pairs, out);
    };
    if sets.count(rows) >= PARTS {
        parallel::chunks(out, stride, 1, |set, out| sum(sets.rows(set, rows), &mut out[..set_len]));
        return;
    }
    for (set, out) in out.chunks_mut(stride).enumerate() {
        let (first, step, count) = sets.rows(set, rows);
        let part = |examples: Range<usize>| {
            let mut own = vec![T::ZERO; set_len];
            sum((first + examples.start * step, step, examples.len()), &mut own);
            own
        };
        in_parts(count, part, |own| add_to(&mut out[..set_len], own));
    }
}

/// A sum over examples in [`PARTS`], each on one thread and added in order; as many are held at a time as there are threads.
pub(super) fn in_parts<T: Send>(
    examples: usize,
    part: impl Fn(Range<usize>) -> Vec<T> + Sync,
    mut add: impl FnMut(&[T]),
) {
    let starts: Vec<usize> = (0..examples).step_by(examples.div_ceil(PARTS)).collect();
    for wave in starts.chunks(rayon::current_num_threads()) {
        let end = |start: usize| (start + examples.div_ceil(PARTS)).min(examples);
        let parts = parallel::map(wave.len(), 1, |i| part(wave[i]..end(wave[i])));
        parts.iter().for_each(|own| add(own));
    }
}

/// Adds the weight gradients of some examples to `out`, on one thread.
fn accumulate<'a, T: Precision>(
    map: &Map<'_>,
    rows: impl Iterator<Item = (&'a [T], &'a [T])>,
    out: &mut [T],
) {
    let geometry = map.geometry;
    let lattice = &map.plan.lattices[0];
    let (span, positions) = (lattice.span(), geometry.positions());
    let stride = (span + SLACK).next_multiple_of(SLACK);
    let grid_len = map.grid_len();
    let outs = geometry.channels_out / geometry.groups;
    // Rows of the cotangent are padded to whole blocks, group by group.
    let padded = outs.next_multiple_of(INNER_ROWS);
    let row_len = geometry.groups * padded * stride;
    let together = (CACHE / ((grid_len + row_len) * size_of::<T>())).clamp(1, 32);
    let offsets: Vec<Vec<usize>> = (0..geometry.groups).map(|group| map.offsets(lattice, group)).collect();
    let mut grids = zeros::<T>(together * grid_len);
    let mut cotangents = zeros::<T>(together * row_len);
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let mut images = 0;
        for (source, cotangent) in rows.by_ref().take(together) {
            map.fill(source, &mut grids[images * grid_len..][..grid_len]);
            let place = &mut cotangents[images * row_len..][..row_len];
            for (channel, values) in cotangent.chunks_exact(positions).enumerate() {
                let row = &mut place[(channel / outs * padded + channel % outs) * stride..][..stride];
                lattice.rows(|grid, target, count, _| {
                    row[grid..grid + count].copy_from_slice(&values[target..target + count]);
                });
            }
            images += 1;
        }
        for (group, offsets) in offsets.iter().enumerate() {
            for (block, shifts) in offsets.chunks(INNER_SHIFTS).enumerate() {
                let mut filled = [shifts[0]; INNER_SHIFTS];
                filled[..shifts.len()].copy_from_slice(shifts);
                for first in (0..outs).step_by(INNER_ROWS) {
                    let sums = T::inner(Inner {
                        images,
                        rows: &cotangents[(group * padded + first) * stride..],
                        row_image: row_len,
                        stride,
                        span,
                        grid: &grids,
                        grid_image: grid_len,
                        offsets: filled,
                    });
                    for (m, sums) in sums.iter().enumerate().take(outs - first) {
                        let start = (group * outs + first + m) * offsets.len() + block * INNER_SHIFTS;
                        for (o, &s) in out[start..start + shifts.len()].iter_mut().zip(sums) {
                            *o += s;
                        }
                    }
                }
            }
        }
    }
}

/// The unfolded inputs of one group, `[rows, positions, channels_in / groups * taps]`: what the weights multiply at each output position.
pub(crate) fn unfold<T: Precision>(geometry: &Geometry, source: &[T], group: usize, out: &mut [T]) {
    let Geometry { source: size, kernel, stride, dilation, padding, target, .. } = *geometry;
    let (channels, taps, in_row) =
        (geometry.channels_in / geometry.groups, geometry.taps(), geometry.source_len());
    let plane: usize = size.iter().product();
    parallel::chunks(out, geometry.positions() * channels * taps, 1, |row, out| {
        let source = &source[row * in_row + group * channels * plane..][..channels * plane];
        for (position, out) in out.chunks_exact_mut(channels * taps).enumerate() {
            let at = coordinates(position, target);
            for tap in 0..taps {
                let k = coordinates(tap, kernel);
                let mut inside = true;
                let from: [usize; 3] = std::array::from_fn(|i| {
                    let reached = at[i] * stride[i] + k[i] * dilation[i];
                    inside &= reached >= padding[i] && reached - padding[i] < size[i];
                    reached.saturating_sub(padding[i])
                });
                for c in 0..channels {
                    out[c * taps + tap] = if inside {
                        source[c * plane + (from[0] * size[1] + from[1]) * size[2] + from[2]]
                    } else {
                        T::ZERO
                    };
                }
            }
        }
    });
}
