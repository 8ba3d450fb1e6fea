//! A Gaussian that stands for an observation, and its slopes.

use crate::LikelihoodError;

/// One observation as if a latent value had been seen through Gaussian noise: `N(f; target, variance)` in the place of `p(y | f)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoObservation {
    /// The pseudo-target `m`, in units of the latent value: nats of a logit or of a logarithm.
    pub target: f64,
    /// The pseudo-noise variance `v`, in squared units of the latent value; positive.
    pub variance: f64,
}

impl PseudoObservation {
    /// `1 / v`, the weight of the squared residual `(f - m)² / 2`.
    pub fn precision(&self) -> f64 {
        1.0 / self.variance
    }
}

/// How a pseudo-observation changes with one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoSlopes {
    /// `dm / d parameter`.
    pub target: f64,
    /// `dv / d parameter`.
    pub variance: f64,
}

/// The Gaussian of a density with N parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit<const N: usize> {
    /// Mean and variance.
    pub observation: PseudoObservation,
    /// Their slopes in each parameter, in the order of the arguments.
    pub slopes: [PseudoSlopes; N],
    /// How many steps Newton's method took; 0 where there is a closed form.
    pub newton_steps: usize,
}

impl<const N: usize> Fit<N> {
    /// In closed form; `target` and `variance` have their values first, then their slopes.
    pub(super) fn closed(target: (f64, [f64; N]), variance: (f64, [f64; N])) -> Self {
        Self {
            observation: PseudoObservation { target: target.0, variance: variance.0 },
            slopes: std::array::from_fn(|i| PseudoSlopes { target: target.1[i], variance: variance.1[i] }),
            newton_steps: 0,
        }
    }

    /// The fit, unless one of its numbers is none of the machine.
    ///
    /// # Errors
    /// Names the most extreme of the parameters (with their values).
    pub(super) fn checked(
        self,
        owner: &'static str,
        parameters: [(&str, f64); N],
    ) -> Result<Self, LikelihoodError> {
        let PseudoObservation { target, variance } = self.observation;
        let slopes = self.slopes.iter().all(|s| s.target.is_finite() && s.variance.is_finite());
        if slopes && target.is_finite() && variance > 0.0 && variance.is_finite() {
            return Ok(self);
        }
        let extreme = |value: f64| value.ln().abs();
        let (parameter, value) = parameters
            .into_iter()
            .reduce(|a, b| if extreme(b.1) > extreme(a.1) { b } else { a })
            .unwrap_or(("parameters", f64::NAN));
        Err(LikelihoodError::Parameter {
            owner,
            parameter: parameter.into(),
            value: format!("{value:e}"),
            remedy: "its Gaussian or the slopes of that are beyond the numbers of the machine; give a less extreme number",
        })
    }
}

/// The error of a parameter that is not a positive number.
pub(super) fn check_positive(
    owner: &'static str,
    parameter: &str,
    value: f64,
) -> Result<(), LikelihoodError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    let (parameter, value) = (parameter.into(), value.to_string());
    Err(LikelihoodError::Parameter { owner, parameter, value, remedy: "give a positive, finite number" })
}

/// The error of a matching that is not defined for a density.
pub(super) fn moments_of_a_gamma_only<T>(owner: &'static str) -> Result<T, LikelihoodError> {
    Err(LikelihoodError::Parameter {
        owner,
        parameter: "matching".into(),
        value: super::Matching::MomentOriginal.name().into(),
        remedy: "it is defined for Gamma distributions only; choose moment, laplace or variational",
    })
}
