//! **Derivatives** of networks, batched, without examples x outputs x weights in memory unless asked for.
//!
//! Everything is one of two sweeps over a [`Trace`](crate::Trace): tangents go forward, cotangents go back, in blocks with any number of
//! rows for each example. What happens to a cotangent at a layer with parameters makes the difference:
//!
//! | file | gives |
//! |---|---|
//! | `products` | `J v` for several `v`; `J^T u`, summed over the batch or by example |
//! | `jacobian` | rows of the Jacobian, in full |
//! | `curvature` | the output curvatures `L_n` that Gauss-Newton matrices are made with |
//! | `through` | `sum_n J_n^T m_n(J_n v)` for several `v` and any map `m` of the outputs, by products or by features, whichever costs less |
//! | `gauss_newton` | `sum_n J_n^T L_n J_n v` for several `v`, and the diagonal of the matrix |
//! | `taps` | layer inputs and output sensitivities, for Kronecker factors; squared norms by layer and output |
//! | `shared` | uses of weights that several nodes share, joined as positions of one layer |
//! | `features` | the Jacobian of a few points in the form that costs least, layer by layer |
//! | `tangent_kernel` | blocks `J(x) J(z)^T` |
//! | `normal_range` | vectors of these products at a scale that arithmetic is fast and exact at |
//! | `pullback` | the gradient of a function of such blocks in the inputs `z` |
//!
//! Batch-norm statistics are constants here; a network in training mode is refused.

mod curvature;
mod features;
mod gauss_newton;
mod jacobian;
mod normal_range;
mod outputs;
mod products;
mod pullback;
mod shared;
mod tangent_kernel;
mod taps;
#[cfg(test)]
mod tests;
mod through;

pub use curvature::Curvature;
pub use features::{TangentFeatures, connected_feature_size, tangent_feature_size};
pub use gauss_newton::GRADIENTS;
pub use outputs::Outputs;
pub use pullback::{ALIVE, KernelAdjoints};
pub use tangent_kernel::{FEATURES, TurnedFeatures};
pub use taps::{OuterTap, Tap, TapAt};
pub use through::{HELD, OutputMap, ProductsThrough, widest_connected};
