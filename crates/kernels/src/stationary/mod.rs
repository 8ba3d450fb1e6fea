//! **Stationary** kernels: functions of the scaled distance `q² = Σ_d (x_d - z_d)² / ℓ_d²`.
//!
//! | kernel | `k(q)` | `c(q) = -2 dk/d(q²)` |
//! |---|---|---|
//! | [`SquaredExponential`] | `exp(-q²/2)` | `exp(-q²/2)` |
//! | [`Matern12`] | `exp(-q)` | `exp(-q) / q` |
//! | [`Matern32`] | `(1 + √3 q) exp(-√3 q)` | `3 exp(-√3 q)` |
//! | [`Matern52`] | `(1 + √5 q + 5q²/3) exp(-√5 q)` | `(5/3)(1 + √5 q) exp(-√5 q)` |
//! | [`RationalQuadratic`] | `(1 + q²/(2α))^(-α)` | `(1 + q²/(2α))^(-α-1)` |
//!
//! All derivatives follow from c: `∂k/∂x_d = -c (x_d - z_d)/ℓ_d²`, `∂k/∂ℓ_d = c (x_d - z_d)²/ℓ_d³`.
//! [`median_lengthscale`] is where a search for lengthscales may begin. Amplitudes are 1; [`crate::composite::Scaled`] multiplies by a variance.

mod base;
mod distances;
mod matern12;
mod matern32;
mod matern52;
mod median;
mod rational_quadratic;
mod squared_exponential;

pub(crate) use base::FormLoops;
pub use base::{Form, Parts, Stationary};
pub use matern12::Matern12;
pub use matern32::Matern32;
pub use matern52::Matern52;
pub use median::median_lengthscale;
pub use rational_quadratic::RationalQuadratic;
pub use squared_exponential::SquaredExponential;
