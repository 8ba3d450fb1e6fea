//! What minimises.
//!
//! ```
//! use posterior_optim::{Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Signal, minimise};
//!
//! /// Rosenbrock's valley.
//! struct Valley;
//!
//! impl Objective for Valley {
//!     fn dimension(&self) -> usize {
//!         2
//!     }
//!
//!     fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
//!         let (a, b) = (1.0 - at[0], at[1] - at[0] * at[0]);
//!         gradient.copy_from_slice(&[-2.0 * a - 400.0 * b * at[0], 200.0 * b]);
//!         Ok(a * a + 100.0 * b * b)
//!     }
//! }
//!
//! let optimiser = Optimiser::Lbfgs(Lbfgs::default());
//! let outcome = minimise(&mut Valley, &[-1.2, 1.0], optimiser, &LoopOptions::default(), &mut |_, _| Signal::Continue)?;
//! assert!(outcome.theta.iter().all(|v| (v - 1.0).abs() < 1e-3));
//! # Ok::<(), posterior_optim::OptimError>(())
//! ```
//!
//! Whatever takes many steps, a value to minimise or not, is an [`Iteration`] and runs in [`drive`].
//!
//! | module | idea |
//! |---|---|
//! | [`Parameters`], [`Transform`] | natural values and the unconstrained vector that optimisers see |
//! | [`Constraint`], [`Constrained`] | parameters that a user holds or bounds |
//! | [`Objective`] | a value with its gradient; optimisers know nothing else |
//! | [`drive`], [`Iteration`] | the driver of iterative fits: clock, limits, divergence and restarts, observers, interruption |
//! | [`CancelToken`] | ends runs from elsewhere |
//! | [`minimise`] | an objective by that driver: tolerances, patience, a state to resume |
//! | [`Lbfgs`], [`Adaptive`], [`Sgd`] | one step each, as small state machines |
//! | [`Rule`] | what a step of Adam, AdaBelief, RMSProp or gradient descent computes, in any precision and in place |
//! | [`UpdateRule`] | the adaptive ones by name |
//! | [`Schedule`] | step sizes over time |
//! | [`Batches`] | which rows a step looks at |
//! | [`restarts`] | several initial values, the best result, and what became of the others |
//! | [`check`] | finite differences, for everyone's gradient tests |
//!
//! Everything is minimised.

mod adaptive;
mod batches;
mod cancel;
pub mod check;
mod constraint;
mod driver;
mod error;
mod lbfgs;
mod minimise;
mod objective;
mod parameters;
mod restarts;
mod rule;
mod schedule;
mod sgd;
mod transform;
mod update_rule;

pub use adaptive::Adaptive;
pub use batches::{Batches, Sampling};
pub use cancel::CancelToken;
pub use constraint::{Constrained, Constraint};
pub use driver::{
    Clock, Iteration, Limits, Observer, Progress, Reason, Run, Signal, Step, UnknownReason, drive,
};
pub use error::OptimError;
pub use lbfgs::Lbfgs;
pub use minimise::{LoopOptions, Outcome, State, minimise, resume};
pub use objective::{Objective, ObjectiveError, Optimiser};
pub use parameters::{Parameters, Segment};
pub use restarts::{Attempt, Restarted, perturbed, restarts};
pub use rule::Rule;
pub use schedule::Schedule;
pub use sgd::Sgd;
pub use transform::Transform;
pub use update_rule::UpdateRule;
