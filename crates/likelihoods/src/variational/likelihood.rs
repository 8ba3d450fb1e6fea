//! The likelihoods of variational inference as one serialisable type, so that models need no boxes.

use super::nodes;
use super::softmax::{SoftmaxWorkspace, expected_log_sum_exp};
use crate::predictive::{Prediction, log_student_t_mixture, poisson_log_mixture};
use crate::{
    Categorical, Gaussian, Likelihood, LikelihoodError, Poisson, ScalarBernoulli, ScalarPoisson, StudentT,
    VectorLikelihood,
};
use posterior_optim::{Parameters, Segment};
use serde::{Deserialize, Serialize};

/// How observations scatter around independent Gaussian latent values, written as `{ kind = "student_t", scale = 0.1,
/// degrees_of_freedom = 4.0 }`.
///
/// All but softmax have one latent value for each number of a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum VariationalLikelihood {
    /// Additive noise of one variance.
    Gaussian(Gaussian),
    /// Events, by a logit or probit link.
    Bernoulli(ScalarBernoulli),
    /// Counts with rate `exp(f)`.
    Poisson(ScalarPoisson),
    /// Additive noise with outliers.
    StudentT(StudentT),
    /// One class of several: as many latent values as classes for a target that is the class's index.
    Softmax(Categorical),
}

/// Buffers that one thread reuses between observations.
#[derive(Clone, Debug, Default)]
pub struct VariationalWorkspace {
    softmax: SoftmaxWorkspace,
}

/// Calls `$body` with the scalar likelihood, or evaluates `$softmax` with the other.
macro_rules! scalar_or {
    ($self:expr, $scalar:ident => $body:expr, $categorical:ident => $softmax:expr) => {
        match $self {
            Self::Gaussian($scalar) => $body,
            Self::Bernoulli($scalar) => $body,
            Self::Poisson($scalar) => $body,
            Self::StudentT($scalar) => $body,
            Self::Softmax($categorical) => $softmax,
        }
    };
}

impl VariationalLikelihood {
    /// Its name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian(_) => "gaussian",
            Self::Bernoulli(_) => "bernoulli",
            Self::Poisson(_) => "poisson",
            Self::StudentT(_) => "student_t",
            Self::Softmax(_) => "softmax",
        }
    }

    /// Latent values of an observation whose target has `target_width` numbers.
    pub fn latents(&self, target_width: usize) -> usize {
        scalar_or!(self, _scalar => target_width, categorical => categorical.classes())
    }

    /// Whether the optimal covariances of all latent values are equal, so that one is enough: Gaussian noise only.
    pub fn shares_covariance(&self) -> bool {
        matches!(self, Self::Gaussian(_))
    }

    /// Whether the log density is concave in f for every target; then slopes in variances are never positive.
    pub fn is_log_concave(&self) -> bool {
        !matches!(self, Self::StudentT(_))
    }

    /// Whether `y` can be observed at all.
    ///
    /// # Errors
    /// [`LikelihoodError::Target`] or [`LikelihoodError::Length`], which say what would be valid.
    pub fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        match self {
            Self::Softmax(categorical) => categorical.check_target(y),
            Self::Poisson(_) => Poisson::new(y.len())?.check_target(y),
            Self::Bernoulli(b) => crate::Bernoulli::new(y.len(), b.link)?.check_target(y),
            Self::Gaussian(_) | Self::StudentT(_) => match y.iter().position(|v| !v.is_finite()) {
                None => Ok(()),
                Some(position) => Err(LikelihoodError::Target {
                    owner: self.name(),
                    position,
                    value: y[position],
                    remedy: "remove or fill in non-finite values first".into(),
                }),
            },
        }
    }

    /// `E[log p(y | f)]` for independent `f_c ~ N(mean_c, variance_c)`, summed over the numbers of the target. Writes its slopes
    /// in means and variances (C each) and **adds** those in the likelihood's own parameters to `parameter_slopes`.
    /// `row_noise` is a known noise variance of this observation; only Gaussian noise has a use for it.
    ///
    /// Cost: Gaussian and Poisson a few operations, Bernoulli 34 nodes and more where the deviation exceeds one, Student-t 130
    /// terms, softmax some 9,000 exponentials a class.
    ///
    /// # Panics
    /// When the lengths disagree, for `row_noise` with other than Gaussian noise, and for a class that does not exist; targets should
    /// have passed [`check_target`](Self::check_target).
    pub fn expected_log_density(
        &self,
        y: &[f64],
        row_noise: f64,
        mean: &[f64],
        variance: &[f64],
        mean_slopes: &mut [f64],
        variance_slopes: &mut [f64],
        parameter_slopes: &mut [f64],
        workspace: &mut VariationalWorkspace,
    ) -> f64 {
        let latents = self.latents(y.len());
        let lengths = [mean.len(), variance.len(), mean_slopes.len(), variance_slopes.len()];
        assert!(lengths.iter().all(|&l| l == latents), "one number for each latent value");
        assert!(row_noise == 0.0 || matches!(self, Self::Gaussian(_)), "row noise is for Gaussian noise");
        if let Self::Gaussian(gaussian) = self
            && row_noise != 0.0
        {
            let total = Gaussian::new(gaussian.noise_variance() + row_noise, 0.0);
            return scalars(&total, y, mean, variance, mean_slopes, variance_slopes, parameter_slopes);
        }
        scalar_or!(self,
            scalar => scalars(scalar, y, mean, variance, mean_slopes, variance_slopes, parameter_slopes),
            _categorical => {
                let softmax = &mut workspace.softmax;
                let normaliser = expected_log_sum_exp(mean, variance, softmax, mean_slopes, variance_slopes);
                mean_slopes.iter_mut().chain(variance_slopes).for_each(|s| *s = -*s);
                let class = y[0] as usize;
                mean_slopes[class] += 1.0;
                mean[class] - normaliser
            }
        )
    }

    /// The predictive distribution of an observation when `f_c ~ N(mean_c, variance_c)` independently, exact to quadrature for every
    /// likelihood: probabilities of classes or events, or the moments of each number of the target.
    pub fn predict(
        &self,
        mean: &[f64],
        variance: &[f64],
        workspace: &mut VariationalWorkspace,
    ) -> Prediction {
        let moments = |likelihood: &dyn Likelihood| {
            let each = mean.iter().zip(variance).map(|(&m, &v)| likelihood.predictive(m, v));
            let (means, variances) = each.map(|o| (o.mean, o.variance)).unzip();
            Prediction::Moments { mean: means, variance: variances, latent_variance: variance.to_vec() }
        };
        match self {
            Self::Gaussian(likelihood) => moments(likelihood),
            Self::Poisson(likelihood) => moments(likelihood),
            Self::StudentT(likelihood) => moments(likelihood),
            Self::Bernoulli(b) => {
                let p =
                    |(&m, &v): (&f64, &f64)| nodes(m, v, 0.6).map(|(f, w)| w * b.link.probability(f)).sum();
                Prediction::Events(mean.iter().zip(variance).map(p).collect())
            }
            Self::Softmax(_) => {
                let (mut p, mut slopes) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
                expected_log_sum_exp(mean, variance, &mut workspace.softmax, &mut p, &mut slopes);
                // Quadrature leaves the sum at one to 1e-11; probabilities should be there to rounding.
                let total: f64 = p.iter().sum();
                p.iter_mut().for_each(|p| *p /= total);
                Prediction::Classes(p)
            }
        }
    }

    /// `log E[p(y | f)]` for independent `f_c ~ N(mean_c, variance_c)`: the log predictive density of a target, summed over its
    /// numbers; exact to quadrature.
    pub fn log_predictive_density(
        &self,
        y: &[f64],
        row_noise: f64,
        mean: &[f64],
        variance: &[f64],
        workspace: &mut VariationalWorkspace,
    ) -> f64 {
        let sum = |each: &dyn Fn(f64, f64, f64) -> f64| {
            y.iter().zip(mean).zip(variance).map(|((&y, &m), &v)| each(y, m, v)).sum()
        };
        match self {
            Self::Gaussian(g) => sum(&|y, m, v| {
                Gaussian::new(g.noise_variance() + row_noise + v.max(0.0), 0.0).log_density(y, m)
            }),
            Self::Poisson(_) => sum(&poisson_log_mixture),
            Self::StudentT(t) => {
                sum(&|y, m, v| log_student_t_mixture(y - m, v, t.scale(), t.degrees_of_freedom()))
            }
            Self::Bernoulli(b) => sum(&|y, m, v| {
                let terms: Vec<f64> =
                    nodes(m, v, 0.6).map(|(f, w)| w.ln() + b.link.log_density(y, f)).collect();
                crate::vector::softmax::log_sum_exp(&terms)
            }),
            Self::Softmax(_) => match self.predict(mean, variance, workspace) {
                Prediction::Classes(p) => p[y[0] as usize].ln(),
                _ => f64::NAN,
            },
        }
    }
}

fn scalars<L: Likelihood>(
    likelihood: &L,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
    mean_slopes: &mut [f64],
    variance_slopes: &mut [f64],
    parameter_slopes: &mut [f64],
) -> f64 {
    let mut own = [0.0; 2];
    let own = &mut own[..parameter_slopes.len()];
    let mut total = 0.0;
    for (i, &y) in y.iter().enumerate() {
        let expectation = likelihood.expected_log_density(y, mean[i], variance[i]);
        total += expectation.value;
        mean_slopes[i] = expectation.mean_slope;
        variance_slopes[i] = expectation.variance_slope;
        if !own.is_empty() {
            likelihood.expected_parameter_slopes(y, mean[i], variance[i], own);
            parameter_slopes.iter_mut().zip(&*own).for_each(|(sum, slope)| *sum += slope);
        }
    }
    total
}

impl Parameters for VariationalLikelihood {
    fn segments(&self) -> Vec<Segment> {
        scalar_or!(self, scalar => scalar.segments(), _categorical => Vec::new())
    }
    fn values(&self) -> Vec<f64> {
        scalar_or!(self, scalar => scalar.values(), _categorical => Vec::new())
    }
    fn set_values(&mut self, values: &[f64]) {
        scalar_or!(self, scalar => scalar.set_values(values), _categorical => {
            assert!(values.is_empty(), "the softmax likelihood has no parameters");
        });
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
