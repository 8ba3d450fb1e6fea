//! **Summing the curvature** `M = sum_n Phi_n^T B_n Phi_n` of any feature map over mini-batches, in the form that was asked for and in memory that does not grow with the data.
//!
//! | form | what is summed |
//! |---|---|
//! | full | `[weights, weights]` |
//! | block | one matrix for each layer |
//! | diagonal | one number for each weight |
//! | Kronecker | `G_l = sum delta delta^T / T` and `Q_l = sum a a^T / n` for each weight matrix; small dense blocks (diagonal ones above 1,024 entries) for other parameters |
//!
//! [`Segment`]s of a feature map say which weights belong together; [`Linearised::add_curvature`](crate::Linearised::add_curvature) adds a batch: by rows `R^T Phi` unless a map knows better (the
//! tangent of a network does). Sums do not depend on the batch size (up to rounding) nor on the number of threads; those of an [`Accumulator`] can be saved, resumed and continued with more data.
//!
//! | file | what |
//! |---|---|
//! | `accumulate` | [`Accumulator`]: passes over data in fixed strips |
//! | `sums` | [`BlockSum`]: what is summed, block by block, and the [`Structure`](crate::structure::Structure) it becomes |
//! | `roots` | [`OutputCurvature`]: `B` as rows, exact, sampled or empirical |
//! | `fit` | [`FitSums`]: how well the model fits |
//! | `by_rows` | the curvature of a map that knows its rows only |
//! | `segment` | [`Segment`] |
//! | `low_rank` | [`low_rank()`]: leading eigenvectors by products alone |

mod accumulate;
pub(crate) mod by_rows;
mod fit;
mod low_rank;
mod roots;
mod segment;
mod sums;

pub use accumulate::{Accumulator, strip_batches, strips_at_once};
pub use fit::{FitSums, is_gaussian};
pub use low_rank::low_rank;
pub use roots::{FisherEstimate, OutputCurvature, Roots};
pub(crate) use roots::{sample_streams, standard_normals};
pub use segment::{MatrixShape, Segment, layers};
pub use sums::{BlockSum, Form, SumMatrix, least_numbers};
