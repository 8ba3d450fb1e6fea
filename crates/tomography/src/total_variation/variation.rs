//! The anisotropic total variation.

use crate::TomographyError;
use posterior_linalg::parallel;

/// `Σ_axes w_a Σ_pairs |x_p - x_q|` over all pairs of neighbours along each axis of an image or a volume, without wrap-around.
///
/// Differences have three lists of n numbers, one an axis (depth, height, width); the last pixel of an axis has the difference 0. Every function is one pass; sums have a fixed order.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalVariation {
    shape: [usize; 3],
    weights: [f64; 3],
}

impl TotalVariation {
    /// The sum over all pairs, for images of `[h, w]` or volumes of `[d, h, w]`.
    ///
    /// # Errors
    /// [`TomographyError::ImageShape`] for other numbers of axes, and axes without pixels.
    pub fn sum(shape: &[usize]) -> Result<Self, TomographyError> {
        let shape = match *shape {
            [h, w] => [1, h, w],
            [d, h, w] => [d, h, w],
            _ => [0; 3],
        };
        if shape.contains(&0) {
            let found = shape.to_vec();
            return Err(TomographyError::ImageShape { found, expected: vec![1, 1, 1] });
        }
        Ok(Self { shape, weights: [1.0; 3] })
    }

    /// The sum over axes of the mean over the axis's pairs, as published for volumes.
    ///
    /// # Errors
    /// As [`Self::sum`].
    pub fn mean(shape: &[usize]) -> Result<Self, TomographyError> {
        let mut variation = Self::sum(shape)?;
        let size = variation.shape;
        variation.weights = [0, 1, 2].map(|axis| {
            let pairs = variation.pixels() / size[axis] * (size[axis] - 1);
            1.0 / pairs.max(1) as f64
        });
        Ok(variation)
    }

    /// Pixels, n.
    pub fn pixels(&self) -> usize {
        self.shape.iter().product()
    }

    /// The weight of each axis.
    pub fn weights(&self) -> [f64; 3] {
        self.weights
    }

    /// Axes that have pairs.
    pub(super) fn axes(&self) -> usize {
        self.shape.iter().filter(|size| **size > 1).count()
    }

    /// From a pixel to the next along each axis, and whether the pixel of line `line` (a row of a slice) and column j has one.
    fn steps(&self) -> [usize; 3] {
        [self.shape[1] * self.shape[2], self.shape[2], 1]
    }

    /// Whether a line of pixels has a line before it and after it along the depth and the height.
    fn neighbours(&self, line: usize) -> [(bool, bool); 2] {
        let (k, i) = (line / self.shape[1], line % self.shape[1]);
        [(k > 0, k + 1 < self.shape[0]), (i > 0, i + 1 < self.shape[1])]
    }

    /// The total variation of an image.
    ///
    /// # Panics
    /// As all functions here, when lengths do not fit.
    pub fn value(&self, image: &[f64]) -> f64 {
        assert_eq!(image.len(), self.pixels(), "an image of the shape");
        let (width, steps) = (self.shape[2], self.steps());
        let of_line = |line: usize| {
            let here = &image[line * width..(line + 1) * width];
            let along: f64 = here.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
            let mut sum = self.weights[2] * along;
            for axis in 0..2 {
                if self.neighbours(line)[axis].1 {
                    let next = &image[line * width + steps[axis]..][..width];
                    let across: f64 = here.iter().zip(next).map(|(a, b)| (b - a).abs()).sum();
                    sum += self.weights[axis] * across;
                }
            }
            sum
        };
        let lines: Vec<f64> = parallel::map(self.pixels() / width, 2, of_line);
        lines.iter().sum()
    }

    /// `gradient += factor ∂TV`, with 0 for the sign of 0: the sum over neighbours of `w_a sign(x - neighbour)`.
    pub fn add_subgradient(&self, image: &[f64], factor: f64, gradient: &mut [f64]) {
        let sign = |v: f64| {
            if v > 0.0 {
                1.0
            } else if v < 0.0 {
                -1.0
            } else {
                0.0
            }
        };
        self.add_transposed(|axis, p, q| factor * self.weights[axis] * sign(image[q] - image[p]), gradient);
    }

    /// `out[axis n + p] = x[next of p along axis] - x[p]`, 0 where there is no next.
    pub fn differences(&self, image: &[f64], out: &mut [f64]) {
        assert_eq!(
            (image.len(), out.len()),
            (self.pixels(), 3 * self.pixels()),
            "an image and its differences"
        );
        let (width, steps) = (self.shape[2], self.steps());
        for (axis, out) in out.chunks_exact_mut(image.len()).enumerate() {
            parallel::chunks(out, width, 2, |line, out| {
                let first = line * width;
                let there =
                    if axis == 2 { width - 1 } else { usize::from(self.neighbours(line)[axis].1) * width };
                for j in 0..there {
                    out[j] = image[first + j + steps[axis]] - image[first + j];
                }
                out[there..].fill(0.0);
            });
        }
    }

    /// `image += Dᵀ differences`, the transpose of [`Self::differences`].
    pub fn add_transpose(&self, differences: &[f64], image: &mut [f64]) {
        assert_eq!(differences.len(), 3 * self.pixels(), "differences of an image");
        let n = self.pixels();
        self.add_transposed(|axis, p, _| differences[axis * n + p], image);
    }

    /// `image[p] += Σ_axes edge(from the pixel before p to p) - edge(from p to the next)`, `edge(axis, from, to)`.
    fn add_transposed(&self, edge: impl Fn(usize, usize, usize) -> f64 + Sync, image: &mut [f64]) {
        assert_eq!(image.len(), self.pixels(), "an image of the shape");
        let (width, steps) = (self.shape[2], self.steps());
        parallel::chunks(image, width, 2, |line, out| {
            let first = line * width;
            for (axis, (before, after)) in self.neighbours(line).into_iter().enumerate() {
                for (j, value) in out.iter_mut().enumerate() {
                    let p = first + j;
                    if before {
                        *value += edge(axis, p - steps[axis], p);
                    }
                    if after {
                        *value -= edge(axis, p, p + steps[axis]);
                    }
                }
            }
            for j in 1..width {
                let between = edge(2, first + j - 1, first + j);
                out[j] += between;
                out[j - 1] -= between;
            }
        });
    }
}
