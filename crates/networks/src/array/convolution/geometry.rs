//! Sizes of a convolution along its (up to) three spatial axes.

/// A correlation of `[channels_in, source...]` to `[channels_out, target...]`; axes are depth, height, width, unused ones of length 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) channels_in: usize,
    pub(crate) channels_out: usize,
    pub(crate) groups: usize,
    pub(crate) source: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) dilation: [usize; 3],
    /// Zeros before the first value on each axis; what is needed behind follows from the target's size.
    pub(crate) padding: [usize; 3],
    pub(crate) target: [usize; 3],
}

impl Geometry {
    pub(crate) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    pub(crate) fn source_len(&self) -> usize {
        self.channels_in * self.source.iter().product::<usize>()
    }

    pub(crate) fn target_len(&self) -> usize {
        self.channels_out * self.positions()
    }

    /// Output positions of one channel.
    pub(crate) fn positions(&self) -> usize {
        self.target.iter().product()
    }

    /// Weights: `[channels_out, channels_in / groups, kernel...]`.
    pub(crate) fn weights(&self) -> usize {
        self.channels_out * (self.channels_in / self.groups) * self.taps()
    }
}

/// The coordinate `(i0, i1, i2)` of a flat index in a box.
pub(super) fn coordinates(index: usize, size: [usize; 3]) -> [usize; 3] {
    [index / (size[1] * size[2]), (index / size[2]) % size[1], index % size[2]]
}
