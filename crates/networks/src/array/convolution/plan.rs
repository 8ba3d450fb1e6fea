//! Where things lie: the grid that one example is copied into, and the shifts that a kernel reads it at.

use super::geometry::{Geometry, coordinates};
use std::ops::Range;

/// How one channel of the source is laid out, with padding and by phase.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    phases: [usize; 3],
    begin: [usize; 3],
    /// Rows of the grid along each axis, within one phase.
    extent: [usize; 3],
    source: [usize; 3],
}

impl Grid {
    /// Values of one channel.
    pub(super) fn channel_len(&self) -> usize {
        self.phases.iter().product::<usize>() * self.phase_len()
    }

    fn phase_len(&self) -> usize {
        self.extent.iter().product()
    }

    /// Where the shift `shift` of phase `phase` begins, within a channel.
    fn offset(&self, phase: [usize; 3], shift: [usize; 3]) -> usize {
        let phase = (phase[0] * self.phases[1] + phase[1]) * self.phases[2] + phase[2];
        phase * self.phase_len() + (shift[0] * self.extent[1] + shift[1]) * self.extent[2] + shift[2]
    }

    /// Copies one channel `[source...]` into its (zeroed) place.
    #[inline(always)]
    pub(super) fn fill<T: Copy>(&self, source: &[T], out: &mut [T]) {
        let [_, height, width] = self.source;
        let (step, extent) = (self.phases, self.extent);
        for z in 0..self.source[0] {
            let (pz, qz) = ((z + self.begin[0]) % step[0], (z + self.begin[0]) / step[0]);
            if qz >= extent[0] {
                continue;
            }
            for y in 0..height {
                let (py, qy) = ((y + self.begin[1]) % step[1], (y + self.begin[1]) / step[1]);
                if qy >= extent[1] {
                    continue;
                }
                let row = &source[(z * height + y) * width..][..width];
                if step[2] == 1 {
                    let count = width.min(extent[2].saturating_sub(self.begin[2]));
                    if count > 0 {
                        let start = self.offset([pz, py, 0], [qz, qy, 0]) + self.begin[2];
                        out[start..start + count].copy_from_slice(&row[..count]);
                    }
                } else {
                    for (x, &value) in row.iter().enumerate() {
                        let (px, qx) = ((x + self.begin[2]) % step[2], (x + self.begin[2]) / step[2]);
                        if qx < extent[2] {
                            out[self.offset([pz, py, px], [qz, qy, qx])] = value;
                        }
                    }
                }
            }
        }
    }
}

/// One shift of the grid and the kernel position whose weight multiplies it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub(super) offset: usize,
    pub(super) kernel: usize,
}

/// Positions of the output that share one list of taps: `origin + step * i` for `i < count`, all of which lie on one grid.
#[derive(Clone, Debug)]
pub(super) struct Lattice {
    pub(super) count: [usize; 3],
    origin: [usize; 3],
    step: [usize; 3],
    target: [usize; 3],
    extent: [usize; 3],
    pub(super) taps: Vec<Tap>,
}

impl Lattice {
    /// Grid positions from the first to the last output, those in between rows included.
    pub(super) fn span(&self) -> usize {
        let last = |axis: usize| self.count[axis] - 1;
        if self.count.contains(&0) {
            return 0;
        }
        (last(0) * self.extent[1] + last(1)) * self.extent[2] + self.count[2]
    }

    /// Where a row of outputs begins in the grid.
    fn row_start(&self, row: usize) -> usize {
        (row / self.count[1] * self.extent[1] + row % self.count[1]) * self.extent[2]
    }

    /// All rows of outputs in bands that reach over about so many grid positions, but over one row at least.
    pub(super) fn bands(&self, longest: usize) -> impl Iterator<Item = Band> + '_ {
        let rows = self.count[0] * self.count[1];
        let each = (longest * rows / self.span().max(1)).max(1);
        (0..rows).step_by(each).map(move |first| {
            let rows = first..(first + each).min(rows);
            let grid = self.row_start(first);
            Band { grid, span: self.row_start(rows.end - 1) + self.count[2] - grid, rows }
        })
    }

    /// Calls `row(grid position within the band, target position, count, step)` for each row of a band.
    #[inline(always)]
    pub(super) fn rows_of(&self, band: &Band, mut row: impl FnMut(usize, usize, usize, usize)) {
        for index in band.rows.clone() {
            let (z, y) = (index / self.count[1], index % self.count[1]);
            let (tz, ty) = (self.origin[0] + z * self.step[0], self.origin[1] + y * self.step[1]);
            let target = (tz * self.target[1] + ty) * self.target[2] + self.origin[2];
            row(self.row_start(index) - band.grid, target, self.count[2], self.step[2]);
        }
    }

    /// The same for all rows, from the beginning of the grid.
    #[inline(always)]
    pub(super) fn rows(&self, row: impl FnMut(usize, usize, usize, usize)) {
        let band = Band { grid: 0, span: self.span(), rows: 0..self.count[0] * self.count[1] };
        self.rows_of(&band, row);
    }
}

/// Rows of outputs that follow one another.
pub(super) struct Band {
    /// Where the first begins in the grid.
    pub(super) grid: usize,
    /// Grid positions from there to the last output.
    pub(super) span: usize,
    rows: Range<usize>,
}

/// A grid and the lattices of outputs that are computed from it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) grid: Grid,
    pub(super) lattices: Vec<Lattice>,
}

/// `target[o] = sum_k w[k] source[o * stride + k * dilation - padding]`.
pub(super) fn forward(geometry: &Geometry) -> Plan {
    let Geometry { source, kernel, stride, dilation, padding, target, .. } = *geometry;
    let reach: [usize; 3] = std::array::from_fn(|i| (kernel[i] - 1) * dilation[i] / stride[i]);
    let mut extent: [usize; 3] = std::array::from_fn(|i| target[i] + reach[i]);
    // Zeros behind a row also serve as zeros before the next one, if a row has at least as many before as behind.
    for axis in 1..3 {
        let behind = extent[axis].saturating_sub(source[axis] + padding[axis]);
        if stride[axis] == 1 && behind <= padding[axis] {
            extent[axis] -= behind;
        }
    }
    let grid = Grid { phases: stride, begin: padding, extent, source };
    let taps = (0..geometry.taps())
        .map(|index| {
            let reached: [usize; 3] = std::array::from_fn(|i| coordinates(index, kernel)[i] * dilation[i]);
            let offset = grid.offset(
                std::array::from_fn(|i| reached[i] % stride[i]),
                std::array::from_fn(|i| reached[i] / stride[i]),
            );
            Tap { offset, kernel: index }
        })
        .collect();
    let lattice = Lattice { count: target, origin: [0; 3], step: [1; 3], target, extent, taps };
    Plan { grid, lattices: vec![lattice] }
}

/// The transposed map: `source[u] = sum over (o, k) with u = o * stride + k * dilation - padding of w[k] target[o]`, one lattice for
/// each remainder of `u + padding` by the stride.
pub(super) fn backward(geometry: &Geometry) -> Plan {
    let Geometry { source, kernel, stride, dilation, padding, target, .. } = *geometry;
    // The largest shift, less what the padding already gives.
    let reach: [usize; 3] = std::array::from_fn(|i| (kernel[i] - 1) * dilation[i] / stride[i]);
    // Largest value of (u + padding) / stride, plus one.
    let steps: [usize; 3] = std::array::from_fn(|i| (source[i] + padding[i] - 1) / stride[i] + 1);
    // Zeros before the first value: shifts reach back `reach`, but no output begins before padding / stride.
    let begin: [usize; 3] = std::array::from_fn(|i| reach[i] - reach[i].min(padding[i] / stride[i]));
    let mut extent: [usize; 3] = std::array::from_fn(|i| steps[i].max(target[i]) + begin[i]);
    for axis in 1..3 {
        let behind = extent[axis] - (target[axis] + begin[axis]);
        if behind <= begin[axis] {
            extent[axis] -= behind;
        }
    }
    let grid = Grid { phases: [1; 3], begin, extent, source: target };
    let phases: usize = stride.iter().product();
    let lattices = (0..phases)
        .filter_map(|index| {
            let phase = coordinates(index, stride);
            // First u >= 0 with (u + padding) % stride == phase, and how many follow.
            let origin: [usize; 3] =
                std::array::from_fn(|i| (phase[i] + stride[i] - padding[i] % stride[i]) % stride[i]);
            let count: [usize; 3] =
                std::array::from_fn(|i| source[i].saturating_sub(origin[i]).div_ceil(stride[i]));
            if count.contains(&0) {
                return None;
            }
            let first: [usize; 3] = std::array::from_fn(|i| (origin[i] + padding[i]) / stride[i]);
            let taps = (0..geometry.taps())
                .filter_map(|index| {
                    let reached: [usize; 3] =
                        std::array::from_fn(|i| coordinates(index, kernel)[i] * dilation[i]);
                    let aligned = (0..3).all(|i| reached[i] % stride[i] == phase[i]);
                    // In the grid, target value o stands at o + begin; u reads o = first - reached / stride.
                    aligned.then(|| Tap {
                        offset: grid.offset(
                            [0; 3],
                            std::array::from_fn(|i| first[i] + begin[i] - reached[i] / stride[i]),
                        ),
                        kernel: index,
                    })
                })
                .collect();
            Some(Lattice { count, origin, step: stride, target: source, extent, taps })
        })
        .collect();
    Plan { grid, lattices }
}
