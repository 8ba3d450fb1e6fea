//! **Phantoms**: images whose truth is known, to scan in silico.
//!
//! Each is drawn as a function of the place and averaged over a grid of points in each pixel, so that edges are as smooth as a pixel makes them. Images are flattened by rows.
//! Places are in units in which the shorter side of the image is 2, from the centre, X to the right, Y up, Z with the slices.
//!
//! | file | what |
//! |---|---|
//! | `digits` | [`random_digit`]: made up, in many hands |
//! | `ellipses` | [`shepp_logan`], [`disk`], [`random_ellipses`] |
//! | `rectangles` | [`random_rectangles`]: three of them along one direction |
//! | `walnut` | [`walnut_slice`], [`walnut_volume`]: shell, folded kernel with bright rims, dark gaps |

mod digits;
mod ellipses;
mod rectangles;
#[cfg(test)]
mod tests;
mod walnut;

pub use digits::random_digit;
pub use ellipses::{Ellipse, disk, ellipses, random_ellipses, shepp_logan};
pub use rectangles::random_rectangles;
pub use walnut::{walnut_slice, walnut_volume};

use posterior_linalg::parallel;

/// A pixel of a flat image: its middle and its side.
#[derive(Clone, Copy)]
struct Pixel {
    x: f64,
    y: f64,
    side: f64,
}

/// An image of what each pixel is worth.
fn by_pixel(height: usize, width: usize, value: impl Fn(Pixel) -> f64 + Sync) -> Vec<f64> {
    let side = 2.0 / height.min(width) as f64;
    let place = |i: usize, size: usize| side * (i as f64 + 0.5 - 0.5 * size as f64);
    let mut out = vec![0.0; height * width];
    parallel::chunks(&mut out, width.max(1), 2, |i, line| {
        for (j, pixel) in line.iter_mut().enumerate() {
            *pixel = value(Pixel { x: place(j, width), y: -place(i, height), side });
        }
    });
    out
}

/// The mean of `value(x, y)` over a grid of `samples` x `samples` points in each pixel of an image of `height` x `width`.
fn drawn(height: usize, width: usize, samples: usize, value: impl Fn(f64, f64) -> f64 + Sync) -> Vec<f64> {
    volume([1, height, width], samples, 1, |x, y, _| value(x, y))
}

/// The same for volumes (depth, height, width), with `deep` samples along the depth.
fn volume(
    [depth, height, width]: [usize; 3],
    samples: usize,
    deep: usize,
    value: impl Fn(f64, f64, f64) -> f64 + Sync,
) -> Vec<f64> {
    let unit = 2.0 / height.min(width) as f64;
    // The place of sample s of n in pixel i of `size`, in pixels from the middle.
    let place = |i: usize, size: usize, s: usize, n: usize| {
        i as f64 + (s as f64 + 0.5) / n as f64 - 0.5 * size as f64
    };
    let mut out = vec![0.0; depth * height * width];
    parallel::chunks(&mut out, width.max(1), 2, |line, out| {
        let (k, i) = (line / height, line % height);
        for (j, pixel) in out.iter_mut().enumerate() {
            let mut sum = 0.0;
            for c in 0..deep {
                let z = unit * place(k, depth, c, deep);
                for a in 0..samples {
                    let y = -unit * place(i, height, a, samples);
                    for b in 0..samples {
                        sum += value(unit * place(j, width, b, samples), y, z);
                    }
                }
            }
            *pixel = sum / (samples * samples * deep) as f64;
        }
    });
    out
}
