//! **Training** of small networks: mini-batches, Adam or SGD, schedules, early stopping, checkpoints that resume bit for bit.
//!
//! | file | idea |
//! |---|---|
//! | `examples` | where batches come from: numbers in memory, images as bytes with augmentation |
//! | `loss` | mean squares, Gaussian likelihood with learned noise, cross-entropy, classes as numbers |
//! | `gaussianised` | classes as Gaussian numbers: which, and with which weights |
//! | `trainer` | one step, and what comes out of all of them |
//! | `hook` | weight decay by parameter, and what may change it between epochs |
//! | `checkpoint` | its state as a file |
//!
//! Everything random (order of examples, augmentation) is a function of the seed, the epoch and the step, so a run that was stopped and
//! resumed takes the same steps as one that was not.

mod checkpoint;
mod error;
mod examples;
mod gaussianised;
mod hook;
#[cfg(test)]
mod hook_tests;
mod loss;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod tests;
mod trainer;

pub use checkpoint::TrainFacts;
pub use error::TrainError;
pub use examples::{Augmentation, Examples, Images, Subset, Tabular, Targets};
pub use gaussianised::GaussianisedLoss;
pub use hook::{Adjustment, EpochHook, HookState, Keep};
pub use loss::{Loss, LossName};
pub use trainer::{EpochRecord, Evaluation, TrainOptions, TrainState, Trained, evaluate, train, train_with};
