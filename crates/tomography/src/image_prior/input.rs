//! What the network looks at.

use posterior_networks::Array;

/// A picture (the filtered back-projection, as published) as the input `[1, 1, height, width]` or `[1, 1, depth, height, width]` of a network.
///
/// # Panics
/// When the picture has not as many pixels as the shape says, which is a mistake of the program.
pub fn network_input(shape: &[usize], picture: &[f64]) -> Array<f32> {
    let shape: Vec<usize> = [1, 1].into_iter().chain(shape.iter().copied()).collect();
    Array::new(shape, picture.iter().map(|v| *v as f32).collect())
}
