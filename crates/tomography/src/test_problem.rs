//! A small scan for tests: Joseph's weights as dense rows, after section 3.1 and 3.2 of the spec, and the noise of the tests.

use faer::Mat;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Standard normal numbers.
pub(crate) fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("test/normal");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// Detector elements for an image of that size: `2 ⌈ρ⌉ + 1` with half its diagonal ρ.
pub(crate) fn detectors(height: usize, width: usize) -> usize {
    2 * (0.5 * (height as f64).hypot(width as f64)).ceil() as usize + 1
}

/// Non-zero `(pixel, weight)` of the ray of a detector element at angle `beta`.
pub(crate) fn ray(
    height: usize,
    width: usize,
    per_angle: usize,
    beta: f64,
    element: usize,
) -> Vec<(usize, f64)> {
    let spacing = (height as f64).hypot(width as f64) / per_angle as f64;
    let s = (element as f64 - 0.5 * (per_angle as f64 - 1.0)) * spacing;
    let (sine, cosine) = beta.sin_cos();
    let (half_height, half_width) = (0.5 * (height as f64 - 1.0), 0.5 * (width as f64 - 1.0));
    let mut out = Vec::new();
    let steep = cosine.abs() >= sine.abs();
    let (steps, cells, length) =
        if steep { (height, width, cosine.abs()) } else { (width, height, sine.abs()) };
    for step in 0..steps {
        let at = if steep {
            (s - (half_height - step as f64) * sine) / cosine + half_width
        } else {
            half_height - (s - (step as f64 - half_width) * cosine) / sine
        };
        let (cell, share) = (at.floor(), at - at.floor());
        for (cell, weight) in [(cell, 1.0 - share), (cell + 1.0, share)] {
            if weight > 0.0 && (0.0..cells as f64).contains(&cell) {
                let cell = cell as usize;
                let pixel = if steep { step * width + cell } else { cell * width + step };
                out.push((pixel, weight / length));
            }
        }
    }
    out
}

/// All rows of `angles` equidistant angles in half a turn, angle-major.
pub(crate) fn projector(height: usize, width: usize, per_angle: usize, angles: usize) -> Mat<f64> {
    let mut out = Mat::zeros(per_angle * angles, height * width);
    for angle in 0..angles {
        for element in 0..per_angle {
            let beta = PI * angle as f64 / angles as f64;
            for (pixel, weight) in ray(height, width, per_angle, beta, element) {
                out[(angle * per_angle + element, pixel)] += weight;
            }
        }
    }
    out
}
