//! **Generalised variational inference**: a process `Q = GP(m_Q, r)` whose mean and covariance are free of each other, found by minimising a risk of the data plus a regulariser that keeps it near a process P.
//!
//! ```text
//! Q* = argmin  (1/n) Σ_n loss(Q(x_n), y_n)  +  λ D[Q, P]
//! ```
//!
//! The bound on the evidence is one choice (expected negative log-likelihood, Kullback-Leibler divergence); Gaussian Wasserstein inference takes a distance that is finite between any two processes, so that a mean may be a
//! network and a covariance any kernel; projected regularisers look at marginals alone, at a cost that is linear in the rows.
//!
//! | file | what |
//! |---|---|
//! | `reference` | [`ReferenceProcess`]: P, a prior or its posterior given the inducing points |
//! | `learning`, `pointwise` | its hyperparameters and inducing points, in turns ([`learn_reference`]); those of processes of classes ([`learn_class_references`]) |
//! | `class_posterior` | [`ClassPosterior`]: exact processes of classes by their one-hot columns |
//! | [`variational`] | kernels r: six families, with the way back to their parameters |
//! | `mean` | [`VariationalMean`]: the prior's, constants, weights of inducing points, a network |
//! | `risk` | [`Risk`]: expected or predictive |
//! | `regulariser` | [`Regulariser`]: what goes with what |
//! | [`divergence`] | their formulas, and slopes |
//! | `model` | [`GeneralisedGp`]: Q |
//! | `objective` | what is minimised, with its gradient |
//! | `orders` | which orders of Rényi's divergence kernels admit |
//! | `fit` | training, judged by rows held back |
//! | `irregularities` | what training did to numbers that is no part of the formulas, in sentences |
//! | `tempering` | variances that suit rows which were not trained on |
//! | `posterior` | marginals, covariances, draws |
//! | `work` | what a step takes, for plans |
//!
//! Source: J. Wu, *Generalised Variational Inference for Gaussian Processes* (2023); spec `generalised_variational_inference`.

mod class_posterior;
pub mod divergence;
mod error;
mod fit;
mod irregularities;
mod learning;
mod mean;
mod model;
mod objective;
mod orders;
mod pointwise;
mod posterior;
mod reference;
mod regulariser;
mod risk;
mod tempering;
pub mod variational;
mod work;

pub use class_posterior::ClassPosterior;
pub use error::GeneralisedError;
pub use fit::{
    Breakdown, GeneralisedFit, GeneralisedOptions, GeneralisedState, GeneralisedTraining, fit_generalised,
};
pub use irregularities::Irregularities;
pub use learning::{
    Alternation, ClassAlternation, ClassLearningOptions, LearnedClasses, LearnedReference, LearningOptions,
    RegulariserRisk, Selector, learn_class_references, learn_reference, select_rows,
};
pub use mean::VariationalMean;
pub use model::{GeneralisedData, GeneralisedGp, KnownRows};
pub use objective::{GeneralisedEvaluation, GeneralisedObjective, generalised_objective, objective_on};
pub use pointwise::{pointwise_class_risk, pointwise_predictive_risk};
pub use reference::{JITTER, Mode, ReferenceMarginals, ReferenceProcess};
pub use regulariser::{Regulariser, UnknownRegulariser};
pub use risk::{Reduction, Risk};
pub use tempering::{Tempered, TemperingMethod};
pub use variational::{Coordinates, Family, VariationalKernel};
pub use work::StepSize;

#[cfg(test)]
mod tests;
