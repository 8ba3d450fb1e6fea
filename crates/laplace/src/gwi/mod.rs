//! **Gaussian Wasserstein inference around a trained network** ([`posterior_gp::generalised`]): its error bars are a covariance r that is learned beside a mean that stays the network's.
//!
//! ```text
//! Q = GP(network, r),   P = GP(network, a k),   r* = argmin (1/n) Σ_n -log E_Q p(y_n | f(x_n)) + λ W²[Q, P]
//! ```
//!
//! Both processes have the network as their mean, so that all that the distance between them sees is their covariances. It is finite whatever r is; the Kullback-Leibler divergence is so for weights of inducing points only. Away from the data covariances of such weights go back to a k, so that what P says there is
//! what is predicted there: its scale is learned on rows that the network has not seen.
//!
//! | file | what |
//! |---|---|
//! | `options` | [`GwiOptions`]: what a fit is asked for |
//! | `pseudo_targets` | what is left of targets around the network, in units of its outputs |
//! | `curvature` | what rows say of weights of inducing points: where training begins, and what a prior variance would predict |
//! | `prior` | hyperparameters of P, and inducing points |
//! | `search` | [`fit()`]: all of it in order |
//! | `posterior` | [`Gwi`]: predictions, files |
//! | `report` | [`GwiReport`]: how it went |
//! | `saved` | what is kept on the way |
//! | `plan` | [`plan()`]: memory and work before the start |
//!
//! Source: J. Wu, *Generalised Variational Inference for Gaussian Processes* (2023), section 5; V. D. Wild, R. Hu and D. Sejdinovic, *Generalized Variational Inference in Function Spaces* (2022), whose network is trained along; spec `generalised_variational_inference`, sections 5 and 9.

mod curvature;
mod options;
mod plan;
mod posterior;
mod prior;
mod pseudo_targets;
mod report;
mod saved;
mod search;

pub use options::{GwiNoise, GwiOptions};
pub use plan::plan;
pub use posterior::Gwi;
pub use report::{GwiPrior, GwiReport, PriorRows};
pub use search::{GwiFit, fit};
