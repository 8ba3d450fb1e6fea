//! **Calibration**: what rows that a model was judged on say of its predictions.
//!
//! A [`Calibration`] changes predictions in this order:
//!
//! 1. Standard deviations of numbers are multiplied by *factors*.
//! 2. *Sets* of classes are found by the probabilities as the model has them.
//! 3. Probabilities go through a *temperature*.
//! 4. Quantiles go by *tails* (counts, numbers with outliers) or by *residuals* (numbers with additive noise).
//!
//! Every model has one; it is empty where nothing was learned. It is learned once, after the fit, and forgotten when a model learns from further rows.
//!
//! What was done, and how good it is, is a record in the model's header, which no prediction reads. A file is damaged where record and calibration differ.
//!
//! | file | does |
//! |---|---|
//! | `rare` | probabilities of rare classes: [`SharesMixture`] |
//! | `rows` | which rows, and what is against their guarantee |
//! | `numbers` | a factor and residuals of numbers: [`Recalibration`], [`Intervals`] |
//! | `classes` | a temperature and sets of classes: [`ClassRecalibration`], [`PredictedSets`] |
//! | `observed` | tails of counts and of numbers with outliers: [`ObservedRecalibration`], [`ObservedTails`] |
//! | `applied` | [`Calibration`]: learned, and applied to predictions |
//! | `network` | what networks and ensembles learn: [`NetworkRecalibration`] |
//! | `file` | to the tensors of a file and back |
//! | `predictive` | predictive distributions of a set of examples, of every family |

mod applied;
mod classes;
mod file;
mod network;
pub(crate) mod numbers;
mod observed;
mod predictive;
mod rare;
mod rows;

pub(crate) use applied::{Calibration, JudgedRows, Learned, NumbersBy};
pub(crate) use classes::too_few_for;
pub use classes::{ClassRecalibration, PredictedSets, SET_LEVELS, Tempering};
pub(crate) use file::Records;
pub use network::NetworkRecalibration;
pub(crate) use network::{is_wanted, plan, shrink};
pub(crate) use numbers::{Before, quantile};
pub use numbers::{Intervals, Recalibration};
pub use observed::{IntervalScores, ObservedRecalibration, ObservedTails};
pub use predictive::{Predicted, PredictedKind, Predictive};
pub use rare::SharesMixture;
pub use rows::Guarantee;
pub(crate) use rows::{CalibrationRequest, check, explained_by_chance, independent_rows, standard_error};
