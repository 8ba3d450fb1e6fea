//! A walnut that never grew: what stands for the scanned ones of Der Sarkissian et al. (2019), which are gigabytes.

use super::shapes::painted;
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::f64::consts::TAU;

/// Points along a side of a pixel.
const SAMPLES: usize = 4;

/// Waves of the outlines and of the folds.
struct Nut {
    /// Of the shell's outline: amplitude, number around, phase.
    shell: Vec<[f64; 3]>,
    /// Of the kernel's folds: direction and length of a wave, phase.
    folds: Vec<[f64; 3]>,
}

impl Nut {
    fn new(seed: u64) -> Self {
        let mut rng = Streams::new(seed).stream("tomography/walnut");
        let shell = (2..7).map(|n| [0.03 / f64::from(n), f64::from(n), TAU * rng.random::<f64>()]).collect();
        let folds = (0..6)
            .map(|_| {
                let (direction, number) = (TAU * rng.random::<f64>(), rng.random_range(7.0..16.0));
                [number * f64::cos(direction), number * f64::sin(direction), TAU * rng.random::<f64>()]
            })
            .collect();
        Self { shell, folds }
    }

    /// Density at a point; `height` from the middle slice, -1 to 1.
    fn at(&self, x: f64, y: f64, height: f64) -> f64 {
        let round = (1.0 - (height / 0.95).powi(2)).max(0.0).sqrt();
        if round == 0.0 {
            return 0.0;
        }
        let (radius, around) = (x.hypot(y / 1.08) / round, y.atan2(x));
        let wave: f64 = self.shell.iter().map(|[a, n, p]| a * (n * around + p + height).sin()).sum();
        let outer = 0.86 + wave;
        if radius > outer {
            return 0.0;
        }
        if radius > outer - 0.1 {
            // Denser towards the outside, with a seam.
            let seam = (around - 0.3).sin().abs() < 0.04;
            return if seam { 0.45 } else { 0.75 + 2.0 * (radius - outer + 0.1) };
        }
        // Two halves, apart from each other and from the shell.
        let gap = outer - 0.17 + 0.04 * (9.0 * around + 5.0 * height).sin();
        let split = (y - 0.12 * (3.0 * x).sin()).abs() < 0.045;
        if radius > gap || split {
            return 0.02;
        }
        let fold: f64 = self.folds.iter().map(|[a, b, p]| (a * x + b * y + p + 4.0 * height).sin()).sum();
        match fold.abs() {
            f if f < 0.22 => 0.03,
            f if f < 0.55 => 0.62,
            f => 0.42 + 0.02 * f,
        }
    }
}

/// A slice of a walnut-like thing: a shell with a seam, two folded halves with bright rims, dark gaps; between 0 and 1.
pub fn walnut(height: usize, width: usize, seed: u64) -> Vec<f64> {
    let nut = Nut::new(seed);
    painted(height, width, SAMPLES, |x, y| nut.at(x, y, 0.0))
}

/// All of it, slice by slice.
pub fn walnut_volume(depth: usize, height: usize, width: usize, seed: u64) -> Vec<f64> {
    let nut = Nut::new(seed);
    (0..depth)
        .flat_map(|k| {
            let at = (2.0 * k as f64 + 1.0) / depth as f64 - 1.0;
            painted(height, width, 2, |x, y| nut.at(x, y, at))
        })
        .collect()
}
