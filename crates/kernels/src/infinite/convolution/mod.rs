//! Kernels of **convolutional networks** with infinitely many channels in each layer.
//!
//! Sums before an activation are jointly normal again, now at all positions of an image together: what says all about two images x and z is the covariance
//! `K[p, q]` of any position p of x with any position q of z, and the same of each image with itself.
//!
//! ```text
//! image         K[p, q] = (1/C) Σ_c x[c, p] z[c, q]                        C channels
//! convolution   K[p, q] <- w²/|filter| Σ_{d in filter} K[s p + d, s q + d] + b²       s: its stride; no term from outside
//! activation φ  K[p, q] <- E[φ(u) φ(v)]   with a = K_xx[p, p], c = K[p, q], b = K_zz[q, q]
//! average pool  K[p, q] <- 1/|window|² Σ_{d, e in window} K[s p + d, s q + e]
//! flatten       k = mean_p K[p, p]
//! ```
//!
//! Behind that stand fully connected layers and the read-out layer as in [`crate::infinite`]. Padding (`same`) is zeros, which have no covariance with anything; the filter's
//! size stays in front.
//!
//! **What is computed.** Only pairs of positions that something later needs: those of one position with itself, and with every pool those that share one of its windows. All sums are
//! sums over rows, then over columns; so are the pairs: of two 28 x 28 images with convolutions of 3 x 3 and pools of 2 x 2 (twice, as in the specification), 136 pairs of rows times 136 of columns behind the
//! first convolution, 18,496 of the 457 thousand that there are, and 400 behind the second.
//!
//! **Cost.** For a pair of images: for each such pair of positions, `2 C h + 2 w` flops before the first activation (a filter of h x w; `2 (h + w)` before later ones) and what its dual map
//! takes, 20 to 60. In the example that is 1.2 MFLOP, of which 0.2 are sums; no memory is touched beyond the second-level cache, so arithmetic is the bound. The pullback takes three times that, five to eight
//! times with adjoints of pixels. Sixteen pairs are computed at a time, one in each lane of the vectors: along images vectors would end with their rows, and where a pool skips pairs. Room for
//! a tile: 16 numbers for each pair of positions behind each pool, for each row of them, and for each number of an image.
//!
//! What an image needs alone, its variances at all positions before each activation, takes as long as a pair of images, and is computed once in `prepare`: one number for each pixel and two for
//! each position before an activation, 2,400 in the example.
//!
//! **Precision.** As for networks of rows. An image with itself has its exact values, by the same operations as two equal images; `k(x, z)` and `k(z, x)` differ by rounding. A variance of exactly 0
//! (black pixels without biases) stays 0, and counts as flat where a derivative does not exist.
//!
//! | module | idea |
//! |---|---|
//! | [`ConvolutionalNetwork`] | the kernel: tiles, prepared images |
//! | `layers` | layers, their sizes, and whether they fit |
//! | `pairs` | pairs of positions along one axis, and which of them a sum is made of |
//! | `plan` | from the end back to the image: which pairs are needed |
//! | `lanes` | several images side by side |
//! | `forward`, `backward` | layers with positions, row of pairs by row of pairs, and back |
//! | `pullback` | pullbacks of tiles |
//!
//! Sources: Novak and others, "Bayesian deep convolutional networks with many channels are Gaussian processes" (2019); Garriga-Alonso and others, "Deep convolutional networks as shallow
//! Gaussian processes" (2019); spec `generalised_variational_inference`, section 6.3.

mod backward;
mod forward;
mod kernel;
mod lanes;
mod layers;
mod pairs;
mod plan;
mod pullback;
#[cfg(test)]
pub(crate) mod tests;

pub use kernel::ConvolutionalNetwork;
pub use layers::{ImageLayer, ImageLayerError, Padding};
pub(crate) use layers::{check, fits};
