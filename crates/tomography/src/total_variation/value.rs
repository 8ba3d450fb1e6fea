//! Value and subgradient.

/// Pairs of neighbouring pixels of a picture or volume of the given shape, axis by axis: each once, the one that comes first in memory first.
pub fn neighbours(shape: &[usize]) -> Vec<(usize, usize)> {
    let pixels: usize = shape.iter().product();
    let mut out = Vec::new();
    for (axis, length) in shape.iter().enumerate() {
        let step: usize = shape[axis + 1..].iter().product();
        out.extend((0..pixels).filter(|i| i / step % length + 1 < *length).map(|i| (i, i + step)));
    }
    out
}

/// Anisotropic total variation, `sum over neighbours |x_i - x_j|`, without wrapping around, of pictures and volumes.
///
/// Source: Antorán (2024), equation 7.2.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalVariation {
    shape: Vec<usize>,
    /// What the sum is multiplied by.
    share: f64,
}

impl TotalVariation {
    /// Of a shape `[height, width]` or `[depth, height, width]`.
    pub fn new(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), share: 1.0 }
    }

    /// The mean over all pairs in the place of the sum, as the published settings of volumes have it.
    pub fn mean(shape: &[usize]) -> Self {
        let pixels: usize = shape.iter().product();
        let pairs: usize = shape.iter().map(|n| pixels / n * (n - 1)).sum();
        Self { shape: shape.to_vec(), share: 1.0 / pairs.max(1) as f64 }
    }

    /// Pixels.
    pub fn pixels(&self) -> usize {
        self.shape.iter().product()
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What the sum over pairs is multiplied by.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Calls `visit(i, j)` for all pairs of one axis.
    fn pairs(&self, axis: usize, mut visit: impl FnMut(usize, usize)) {
        let (step, length): (usize, usize) = (self.shape[axis + 1..].iter().product(), self.shape[axis]);
        for block in 0..self.pixels() / (step * length).max(1) {
            for i in block * step * length..(block + 1) * step * length - step {
                visit(i, i + step);
            }
        }
    }

    /// The total variation of a picture.
    pub fn value(&self, picture: &[f64]) -> f64 {
        let mut sum = 0.0;
        for axis in 0..self.shape.len() {
            self.pairs(axis, |i, j| sum += (picture[i] - picture[j]).abs());
        }
        self.share * sum
    }

    /// Adds a subgradient to `out`, with `sign(0) = 0`.
    pub fn subgradient(&self, picture: &[f64], out: &mut [f64]) {
        let share = self.share;
        for axis in 0..self.shape.len() {
            self.pairs(axis, |i, j| {
                let difference = picture[i] - picture[j];
                if difference != 0.0 {
                    let sign = share.copysign(difference);
                    out[i] += sign;
                    out[j] -= sign;
                }
            });
        }
    }

    /// `D x` of one axis: `x_j - x_i` for each pair, at the place of i; zero where there is no pair.
    pub(super) fn differences(&self, axis: usize, picture: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.pairs(axis, |i, j| out[i] = picture[j] - picture[i]);
    }

    /// Adds `D' p` of one axis.
    pub(super) fn add_transposed(&self, axis: usize, dual: &[f64], out: &mut [f64]) {
        self.pairs(axis, |i, j| {
            out[i] -= dual[i];
            out[j] += dual[i];
        });
    }
}
