//! Phantoms of ellipses.

use super::{Pixel, by_pixel};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson, Triangular};
use std::f64::consts::TAU;

/// Samples along each side of a pixel.
const SAMPLES: usize = 8;

/// An ellipse of constant intensity, in units in which the image's shorter side is 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// What it adds to what it covers.
    pub intensity: f64,
    /// Semi-axes.
    pub axes: [f64; 2],
    /// Centre.
    pub centre: [f64; 2],
    /// The direction of the first axis, in radians from X.
    pub angle: f64,
}

impl Ellipse {
    /// The share of a pixel that it covers, by samples where its edge may run through.
    fn share(&self, pixel: Pixel, (sin, cos): (f64, f64)) -> f64 {
        // The distance from the centre in units of the ellipse's own at that direction: 1 on the edge.
        let reach = |x: f64, y: f64| {
            let (x, y) = (x - self.centre[0], y - self.centre[1]);
            let (along, across) = ((x * cos + y * sin) / self.axes[0], (y * cos - x * sin) / self.axes[1]);
            along.hypot(across)
        };
        // It changes by no more than this within the pixel, whose corners are half a diagonal away.
        let change = pixel.side * 0.5f64.sqrt() / self.axes[0].min(self.axes[1]);
        let middle = reach(pixel.x, pixel.y);
        if middle > 1.0 + change {
            return 0.0;
        }
        if middle < 1.0 - change {
            return 1.0;
        }
        let place = |i: usize| pixel.side * ((i as f64 + 0.5) / SAMPLES as f64 - 0.5);
        let covered =
            |i: usize| (0..SAMPLES).filter(move |j| reach(pixel.x + place(*j), pixel.y + place(i)) <= 1.0);
        (0..SAMPLES).map(|i| covered(i).count()).sum::<usize>() as f64 / (SAMPLES * SAMPLES) as f64
    }
}

/// The sum of some ellipses, 64 samples for each pixel that an edge runs through. Cost: one distance for each ellipse and pixel, and 64 for each pixel of an edge.
pub fn ellipses(height: usize, width: usize, some: &[Ellipse]) -> Vec<f64> {
    let turned: Vec<(&Ellipse, (f64, f64))> = some.iter().map(|e| (e, e.angle.sin_cos())).collect();
    by_pixel(height, width, |pixel| turned.iter().map(|(e, turn)| e.intensity * e.share(pixel, *turn)).sum())
}

/// A disk of intensity 1 and `radius` pixels at the centre.
pub fn disk(height: usize, width: usize, radius: f64) -> Vec<f64> {
    let radius = 2.0 * radius / height.min(width) as f64;
    ellipses(height, width, &[Ellipse { intensity: 1.0, axes: [radius; 2], centre: [0.0; 2], angle: 0.0 }])
}

/// The head phantom of Shepp and Logan (1974) with the intensities of Toft (1996), which leave contrast to see: values in [0, 1].
pub fn shepp_logan(height: usize, width: usize) -> Vec<f64> {
    // Intensity, semi-axes, centre, degrees.
    const HEAD: [[f64; 6]; 10] = [
        [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
        [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
        [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
        [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
        [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
        [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
        [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
        [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
        [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
        [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
    ];
    let head = HEAD.map(|[intensity, a, b, x, y, degrees]| Ellipse {
        intensity,
        axes: [a, b],
        centre: [x, y],
        angle: degrees.to_radians(),
    });
    // Sums of tenths leave rounding errors below 0.
    ellipses(height, width, &head).into_iter().map(|v| v.clamp(0.0, 1.0)).collect()
}

/// Random ellipses to pretrain networks on: `min(Poisson(40), 70)` of them with centres uniform in a disk whose diameter is `diameter` times the image's side (0.4745 for the
/// walnut), intensities in (-0.4, 1), semi-axes of `0.2 diameter` times exponential numbers, any orientation; what is not empty is then shifted and scaled to [0, 1].
///
/// The image of number `index` under a seed is the same whatever others are drawn. Source: Barbano et al. (2022); spec `tomography`, section 4.3.
pub fn random_ellipses(height: usize, width: usize, diameter: f64, streams: Streams, index: u64) -> Vec<f64> {
    let mut stream = streams.child("tomography/ellipses", index).stream("tomography/ellipses");
    // A positive constant mean, and a triangle between ordered ends: neither can be refused.
    let many = Poisson::new(40.0f64).map_or(40.0, |p| p.sample(&mut stream)).min(70.0) as usize;
    let distance = Triangular::new(0.0, 1.0, 1.0);
    let mut some = Vec::with_capacity(many);
    for _ in 0..many {
        let intensity = stream.random_range(-0.4..1.0);
        let axes = [(); 2].map(|()| {
            let length: f64 = Exp1.sample(&mut stream);
            0.2 * diameter * length
        });
        let radius = diameter * distance.as_ref().map_or(0.0, |d| d.sample(&mut stream));
        let (sin, cos) = stream.random_range(0.0..TAU).sin_cos();
        let angle = stream.random_range(0.0..TAU);
        some.push(Ellipse { intensity, axes, centre: [radius * cos, radius * sin], angle });
    }
    let mut image = ellipses(height, width, &some);
    let smallest = image.iter().copied().fold(f64::INFINITY, f64::min);
    image.iter_mut().filter(|v| **v != 0.0).for_each(|v| *v -= smallest);
    let largest = image.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        image.iter_mut().for_each(|v| *v /= largest);
    }
    image
}
