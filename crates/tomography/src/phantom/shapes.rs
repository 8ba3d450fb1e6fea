//! Shapes in the square from -1 to 1, and pictures of their sums.

use rayon::prelude::*;

/// A shape with a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rectangle: bool,
    /// Centre; y points up.
    pub(super) centre: [f64; 2],
    /// Half axes, or half sides.
    pub(super) half: [f64; 2],
    /// Turned against the clock, radians.
    pub(super) angle: f64,
    pub(super) value: f64,
}

impl Shape {
    fn holds(&self, x: f64, y: f64) -> bool {
        let (sin, cos) = self.angle.sin_cos();
        let (dx, dy) = (x - self.centre[0], y - self.centre[1]);
        let (u, v) = ((dx * cos + dy * sin) / self.half[0], (dy * cos - dx * sin) / self.half[1]);
        if self.rectangle { u.abs() <= 1.0 && v.abs() <= 1.0 } else { u * u + v * v <= 1.0 }
    }
}

/// The picture of a function on the square, the mean of samples x samples points in each pixel. A picture that is not square shows the middle of it, its longer side whole.
pub(super) fn painted(
    height: usize,
    width: usize,
    samples: usize,
    value: impl Fn(f64, f64) -> f64 + Sync,
) -> Vec<f64> {
    let scale = 2.0 / height.max(width).max(1) as f64;
    let mut out = vec![0.0; height * width];
    out.par_chunks_exact_mut(width.max(1)).enumerate().for_each(|(i, row)| {
        for (j, pixel) in row.iter_mut().enumerate() {
            let mut sum = 0.0;
            for a in 0..samples {
                for b in 0..samples {
                    let within = |k: usize| (k as f64 + 0.5) / samples as f64;
                    let x = (j as f64 + within(b) - 0.5 * width as f64) * scale;
                    let y = (0.5 * height as f64 - i as f64 - within(a)) * scale;
                    sum += value(x, y);
                }
            }
            *pixel = sum / (samples * samples) as f64;
        }
    });
    out
}

/// The sum of all shapes.
pub(super) fn sum_of(height: usize, width: usize, samples: usize, shapes: &[Shape]) -> Vec<f64> {
    painted(height, width, samples, |x, y| shapes.iter().filter(|s| s.holds(x, y)).map(|s| s.value).sum())
}
