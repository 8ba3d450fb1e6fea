//! **Phantoms**: pictures whose truth is known.
//!
//! Values lie between 0 and 1, or near it where shapes lie upon one another; edges are anti-aliased by samples within each pixel.
//!
//! | file | what |
//! |---|---|
//! | `shapes` | ellipses and rectangles, sampled within pixels |
//! | `classic` | [`disk`], [`shepp_logan`] |
//! | `random` | [`ellipses`] for pretraining, [`rectangles`] with a preferred direction |
//! | `walnut` | [`walnut`], [`walnut_volume`]: a shell, a folded kernel, gaps |

mod classic;
mod random;
mod shapes;
mod walnut;

pub use classic::{disk, shepp_logan};
pub use random::{ellipses, rectangles};
pub use walnut::{walnut, walnut_volume};

#[cfg(test)]
mod tests;
