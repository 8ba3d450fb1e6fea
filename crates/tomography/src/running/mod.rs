//! **Work that takes its time**: what is planned before it starts, what is told on the way, and what is kept so that the same request goes on.
//!
//! | file | what |
//! |---|---|
//! | `stage` | [`Stage`], [`Watch`]: how far it is |
//! | `checkpointer` | [`Checkpointer`]: one checkpoint file, written now and then |
//! | `saved` | the state of a training as facts and arrays |
//! | `plan` | [`Plan`]: bytes and operations, and the refusal of what does not fit |

mod checkpointer;
mod plan;
mod saved;
mod stage;

pub use checkpointer::Checkpointer;
pub use plan::Plan;
pub(crate) use plan::{meant, projection_flops, times};
pub(crate) use saved::SavedTraining;
pub use stage::{Stage, Watch};
