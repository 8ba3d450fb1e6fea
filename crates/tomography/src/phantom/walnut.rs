//! A surrogate for a walnut: what its slices look like, drawn by formulas, for where the real scans are not at hand. Say so in results.

use super::volume;
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::f64::consts::{PI, TAU};

/// A wave along some direction of space.
struct Wave {
    direction: [f64; 3],
    phase: f64,
}

/// What the seed decides.
struct Walnut {
    /// Ripples of the shell: how many around, where they begin, how they turn along the depth.
    ripples: Vec<(f64, f64, f64, f64)>,
    /// What bends the folds of the kernel.
    folds: Vec<Wave>,
    /// The grain of shell and kernel.
    grain: Vec<Wave>,
    /// The direction of the seam between the halves.
    seam: f64,
}

impl Walnut {
    fn new(streams: Streams) -> Self {
        let mut stream = streams.stream("tomography/walnut");
        let mut number = |low: f64, high: f64| stream.random_range(low..high);
        let ripples = [3.0f64, 5.0, 8.0, 13.0, 21.0].map(|around| {
            (around, number(0.3, 1.0) * 0.04 / around.sqrt(), number(0.0, TAU), number(-2.0, 2.0))
        });
        let mut waves = |many: usize, slow: f64, fast: f64| -> Vec<Wave> {
            (0..many)
                .map(|_| {
                    let (around, up) = (number(0.0, TAU), number(-0.6, 0.6));
                    let speed = number(slow, fast);
                    let direction = [around.cos() * speed, around.sin() * speed, up * speed];
                    Wave { direction, phase: number(0.0, TAU) }
                })
                .collect()
        };
        let (folds, grain) = (waves(10, 6.0, 16.0), waves(16, 40.0, 90.0));
        Self { ripples: ripples.into(), folds, grain, seam: number(0.0, PI) }
    }

    /// The intensity at a place; the nut fills 0.9 of the shorter side, and half that again along the depth.
    fn at(&self, x: f64, y: f64, z: f64) -> f64 {
        let z = z / 1.1;
        let around = y.atan2(x);
        let ripple: f64 = self
            .ripples
            .iter()
            .map(|(many, height, phase, turn)| height * (many * around + phase + turn * z).cos())
            .sum();
        // 1 at the outside of the shell.
        let radius = (x * x + y * y + z * z).sqrt() / (0.86 + ripple);
        let grain: f64 = mean(&self.grain, x, y, z);
        if radius > 1.0 {
            return 0.0;
        }
        if radius > 0.9 {
            // Dense, and denser outside.
            return 0.55 + 2.0 * (radius - 0.9) + 0.12 * grain;
        }
        let (sin, cos) = self.seam.sin_cos();
        // The wall between the halves, thin and bent.
        let seam = (y * cos - x * sin + 0.06 * mean(&self.folds[..4], x, y, z)).abs();
        if seam < 0.02 && radius > 0.15 {
            return 0.4 + 0.1 * grain;
        }
        if radius > 0.84 || seam < 0.06 {
            return 0.02;
        }
        // Folds are the level sets of a sum of waves; between them there is air, and their skins are bright.
        let fold = mean(&self.folds, x, y, z) + 0.45 - 0.5 * (radius - 0.35).max(0.0);
        if fold < 0.0 {
            0.02
        } else if fold < 0.22 {
            0.85 + 0.1 * grain
        } else {
            0.5 + 0.08 * grain
        }
    }
}

/// The waves' sum over the root of their number: about a standard normal over √2.
fn mean(waves: &[Wave], x: f64, y: f64, z: f64) -> f64 {
    let sum: f64 = waves
        .iter()
        .map(|w| (w.direction[0] * x + w.direction[1] * y + w.direction[2] * z + w.phase).cos())
        .sum();
    sum / (waves.len() as f64).sqrt()
}

/// A slice through the middle of a walnut-like body: a rippled shell, a kernel in folds with bright skins, dark gaps, grain; values in about [0, 1]. 16 samples a pixel.
pub fn walnut_slice(height: usize, width: usize, streams: Streams) -> Vec<f64> {
    let walnut = Walnut::new(streams);
    volume([1, height, width], 4, 1, |x, y, z| walnut.at(x, y, z).clamp(0.0, 1.0))
}

/// The same body in a volume of `[depth, height, width]`; its middle is [`walnut_slice`]. Eight samples a voxel.
pub fn walnut_volume(shape: [usize; 3], streams: Streams) -> Vec<f64> {
    let walnut = Walnut::new(streams);
    volume(shape, 2, 2, |x, y, z| walnut.at(x, y, z).clamp(0.0, 1.0))
}
