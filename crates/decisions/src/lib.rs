//! What uncertainty is for: **where to look next**.
//!
//! A draw from the posterior is a guess of what the unknown function is. Its maximum is therefore the best place with the probability that
//! this is so: trying the maxima of q draws explores q plausible worlds at once, and needs no trade-off to be tuned (Thompson sampling).
//!
//! ```
//! use posterior_decisions::campaign::{Direction, Outcome, Settings};
//! use posterior_decisions::{Axis, Campaign, Scale, Space};
//! use posterior_optim::Signal;
//!
//! let space = Space::new(vec![Axis::new("temperature", 20.0, 120.0, Scale::Linear)?])?;
//! let settings = Settings { direction: Direction::Maximise, ..Settings::new(space.dimension()) };
//! let mut campaign = Campaign::new(space, settings)?;
//! let proposal = campaign.ask(2, &mut |_, _, _| Signal::Continue)?;
//! for id in proposal.ids {
//!     campaign.tell(id, Outcome::Done { value: id as f64 }, false)?;
//! }
//! assert!(campaign.best().is_some());
//! # Ok::<(), posterior_decisions::DecisionError>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | [`Functions`] | draws that can be evaluated and differentiated anywhere |
//! | [`maximise`] | the maxima of all of them, by many starts and gradient steps |
//! | [`Space`] | what may be chosen: a box of named axes |
//! | [`SharedState`] | a file that several processes change |
//! | [`campaign`] | ask and tell with a state that survives crashes |
//! | [`labelling`] | the same for labels: which rows of a pool to label next |
//!
//! Sources: spec `stochastic_gaussian_processes`, section 19; J. Antorán's thesis (2024), section 4.4; for labels spec `likelihood_approximations`, section 6.8.

pub mod campaign;
mod error;
mod functions;
pub mod labelling;
mod multistart;
mod shared;
mod space;

pub use campaign::Campaign;
pub use error::DecisionError;
pub use functions::Functions;
pub use labelling::Labelling;
pub use multistart::{Known, Maxima, MultistartOptions, maximise};
pub use shared::{SharedState, Waiting};
pub use space::{Axis, Scale, Space};
