//! Kernels of **networks of infinite width** (neural network Gaussian processes): what a network with independent normal weights is before any
//! training, as its hidden layers grow without bound.
//!
//! Layer `l` has weights `~ N(0, w_l² / width)` and biases `~ N(0, b_l²)`; the inputs' width is their number of columns D. Given two points, the sums before
//! an activation are then jointly normal, the same for all units, and three numbers say all about them: their variances `a` and `b` at the
//! two points, and their covariance `c`. A layer maps these three to the next three:
//!
//! ```text
//! inputs           K = x·z / D
//! fully connected  K <- w_l² K + b_l²                          for a, b and c
//! activation φ     K <- E[φ(u) φ(v)]   with (u, v) ~ N(0, [a c; c b])
//! read-out         K <- w² K + b²                              one more layer without activation, unless switched off
//! ```
//!
//! The expectations are known in closed form (*dual maps*, [`Activation`]), with `cos θ = c / √(ab)`:
//!
//! | activation | `E[φ(u) φ(v)]` | at x = z | source |
//! |---|---|---|---|
//! | ReLU | `√(ab) (sin θ + (π - θ) cos θ) / 2π` | `a/2` | Cho and Saul (2009), the arc-cosine kernel of degree 1 |
//! | leaky ReLU of slope s | `s c + (1 - s)² K_relu` | `a (1 + s²)/2` | the same: `φ(u) = s u + (1 - s) relu(u)` |
//! | error function | `(2/π) asin(2c / √((1 + 2a)(1 + 2b)))` | `(2/π) asin(2a / (1 + 2a))` | Williams (1997) |
//! | sine | `exp(-(a + b)/2) sinh c` | `(1 - exp(-2a))/2` | the characteristic function of a normal vector |
//!
//! *Depth* counts hidden layers (Lee and others, 2018). The hyperbolic tangent has no closed form; the error function is close to it.
//!
//! | module | idea |
//! |---|---|
//! | [`Activation`] | dual maps and their derivatives, each in one place |
//! | `angle` | arcs that become vector code: arcsine, arccosine, the arc-cosine kernel's excess |
//! | `inner` | inner products of all first points with one second point |
//! | `scales` | standard deviations of weights and biases, as parameters |
//! | `stack` | fully connected layers behind a first covariance |
//! | [`InfiniteNetwork`] | the kernel of fully connected layers: tiles, prepared points |
//! | `pullback` | the way back through its layers |
//! | [`convolution`] | images: a covariance for each pair of positions, and the same dual maps between the layers |
//!
//! Formulas: spec `generalised_variational_inference`, section 6.3.

mod activation;
mod angle;
pub mod convolution;
mod dense;
mod inner;
mod pullback;
mod scales;
mod stack;
#[cfg(test)]
pub(crate) mod tests;

pub use activation::Activation;
pub use convolution::{ConvolutionalNetwork, ImageLayer, ImageLayerError, Padding};
pub use dense::InfiniteNetwork;
