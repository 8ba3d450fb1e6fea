//! Phantoms by chance.

use super::shapes::{Shape, sum_of};
use posterior_linalg::random::Streams;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Normal, Poisson};
use std::f64::consts::{PI, TAU};

/// Most ellipses of a picture.
const MOST: usize = 70;

/// Ellipses for pretraining: about forty of them, of values from -0.4 to 1, in a disk that nearly fills the picture; the whole is scaled to between 0 and 1.
///
/// Source: Barbano et al. (2022); spec `tomography`, section 4.3.
pub fn ellipses(height: usize, width: usize, seed: u64) -> Vec<f64> {
    let mut rng = Streams::new(seed).stream("tomography/ellipses");
    let count = Poisson::new(40.0).map_or(40.0, |p| p.sample(&mut rng)) as usize;
    // The published diameter is a share of the whole side: the square here has sides of 2.
    let reach = 2.0 * 0.4745;
    let shapes: Vec<Shape> = (0..count.clamp(1, MOST))
        .map(|_| {
            // The larger of two uniform numbers has the triangular density of a radius in a disk.
            let radius = reach * rng.random::<f64>().max(rng.random::<f64>());
            let around = TAU * rng.random::<f64>();
            let mut half = || -> f64 {
                let own: f64 = Exp1.sample(&mut rng);
                (0.2 * reach * own).max(0.01)
            };
            let half = [half(), half()];
            Shape {
                rectangle: false,
                centre: [radius * around.cos(), radius * around.sin()],
                half,
                angle: TAU * rng.random::<f64>(),
                value: rng.random_range(-0.4..1.0),
            }
        })
        .collect();
    let mut picture: Vec<f64> = sum_of(height, width, 2, &shapes).into_iter().map(|v| v.max(0.0)).collect();
    scale(&mut picture);
    picture
}

/// Rectangles upon one another, all turned nearly the same way: a picture of which some angles say more than others. Scaled to between 0 and 1.
///
/// Each picture has a direction of its own, from which its rectangles differ by normal angles of 0.05 radians: with a mean of zero for all pictures, as the thesis says, all would have the same. Source: spec `tomography`, E7.
pub fn rectangles(height: usize, width: usize, count: usize, seed: u64) -> Vec<f64> {
    let mut rng = Streams::new(seed).stream("tomography/rectangles");
    let direction = PI * rng.random::<f64>();
    let scatter = Normal::new(0.0, 0.05);
    let shapes: Vec<Shape> = (0..count)
        .map(|_| Shape {
            rectangle: true,
            value: rng.random_range(0.5..1.0),
            half: [rng.random_range(0.1..0.8), rng.random_range(0.1..0.8)],
            centre: [rng.random_range(-0.75..0.75), rng.random_range(-0.75..0.75)],
            angle: direction + scatter.map_or(0.0, |s| s.sample(&mut rng)),
        })
        .collect();
    let mut picture = sum_of(height, width, 8, &shapes);
    scale(&mut picture);
    picture
}

/// To between 0 and 1.
fn scale(picture: &mut [f64]) {
    let largest = picture.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        picture.iter_mut().for_each(|v| *v /= largest);
    }
}
