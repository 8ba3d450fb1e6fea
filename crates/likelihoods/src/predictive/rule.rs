//! A likelihood with a way to average over its latent values, prepared for many inputs.

use super::draws::{CommonDraws, DrawsWorkspace};
use super::{Clipping, Integration, LatentGaussian, Prediction, laplace_bridge, log_density};
use crate::special::softmax::{largest, log_softmax, log_sum_exp, softmax};
use crate::{LikelihoodError, Link, OutputLikelihood, RobustMax};
use posterior_linalg::vectorised;
use std::f64::consts::PI;

/// Turns latent Gaussians into predictions.
///
/// ```
/// use posterior_likelihoods::{Categorical, Covariance, LatentGaussian, OutputLikelihood};
/// use posterior_likelihoods::predictive::{Integration, Prediction, PredictiveRule};
/// let classes = OutputLikelihood::Categorical(Categorical::new(2)?);
/// let rule = PredictiveRule::new(classes, Integration::Probit)?;
/// let (mean, variances) = ([0.2, -0.4], [1.5160792509, 1.8314100139]);
/// let latent = LatentGaussian { mean: &mean, covariance: Covariance::Diagonal(&variances) };
/// let Prediction::Classes(p) = rule.predict(latent)? else { unreachable!() };
/// assert!((p[0] - 0.6138233358).abs() < 1e-9);
/// assert!((rule.log_predictive_density(&[0.0], latent)? - p[0].ln()).abs() < 1e-12);
/// # Ok::<(), posterior_likelihoods::LikelihoodError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PredictiveRule {
    likelihood: OutputLikelihood,
    integration: Integration,
    draws: Option<CommonDraws>,
}

/// Buffers that one thread reuses between inputs.
#[derive(Clone, Debug, Default)]
pub struct PredictiveWorkspace {
    draws: DrawsWorkspace,
    /// Exponentials of a block of functions.
    exponentials: Vec<f64>,
    /// Concentrations, log densities or variances.
    list: Vec<f64>,
}

impl PredictiveRule {
    /// Prepares the rule; for Monte Carlo it draws and keeps `4 samples C` bytes.
    ///
    /// # Errors
    /// [`LikelihoodError::Integration`] when the rule has no meaning for the likelihood (the table of [`Integration`]), or
    /// [`LikelihoodError::Parameter`] for an unusable number of samples.
    pub fn new(likelihood: OutputLikelihood, integration: Integration) -> Result<Self, LikelihoodError> {
        use OutputLikelihood::{Categorical, FullGaussian, Gaussian};
        let remedy = match (integration, &likelihood) {
            (Integration::LaplaceBridge | Integration::NormalisedLaplaceBridge, Categorical(_)) => None,
            (Integration::LaplaceBridge | Integration::NormalisedLaplaceBridge, _) => {
                Some("it is for classes by softmax; use `probit`")
            }
            (Integration::MonteCarlo { .. }, Gaussian(_) | FullGaussian(_)) => {
                Some("the answer is exact without samples; use `probit`")
            }
            _ => None,
        };
        if let Some(remedy) = remedy {
            let (integration, owner) = (integration.name(), likelihood.name());
            return Err(LikelihoodError::Integration { integration, owner, remedy });
        }
        let draws = match integration {
            Integration::MonteCarlo { samples, seed } => {
                Some(CommonDraws::new(samples, likelihood.outputs(), seed)?)
            }
            _ => None,
        };
        Ok(Self { likelihood, integration, draws })
    }

    /// The likelihood.
    pub fn likelihood(&self) -> &OutputLikelihood {
        &self.likelihood
    }

    /// How latent values are averaged over.
    pub fn integration(&self) -> Integration {
        self.integration
    }

    /// A prediction of the right shape, filled with zeros, for [`predict_into`](Self::predict_into).
    pub fn empty_prediction(&self) -> Prediction {
        let zeros = || vec![0.0; self.likelihood.target_width()];
        match &self.likelihood {
            OutputLikelihood::Categorical(c) => Prediction::Classes(vec![0.0; c.classes()]),
            OutputLikelihood::RobustMax(r) => Prediction::Classes(vec![0.0; r.classes()]),
            OutputLikelihood::Bernoulli(_) => Prediction::Events(zeros()),
            _ => Prediction::Moments { mean: zeros(), variance: zeros(), latent_variance: zeros() },
        }
    }

    /// The predictive distribution at one input. Allocates; for many inputs there is [`predict_into`](Self::predict_into).
    ///
    /// # Errors
    /// As [`predict_into`](Self::predict_into).
    pub fn predict(&self, latent: LatentGaussian<'_>) -> Result<Prediction, LikelihoodError> {
        let mut out = self.empty_prediction();
        self.predict_into(latent, &mut PredictiveWorkspace::default(), &mut out)?;
        Ok(out)
    }

    /// The predictive distribution at one input, written to `out` (replaced if it has another shape). Returns what was
    /// negative in the covariance and taken as zero.
    ///
    /// Cost O(C), for Monte Carlo `O(samples C)` with a diagonal covariance and `O(samples C² + C³)` with a full one.
    ///
    /// # Errors
    /// When the latent Gaussian has the wrong size, is not finite, or its covariance is clearly not positive semi-definite.
    pub fn predict_into(
        &self,
        latent: LatentGaussian<'_>,
        workspace: &mut PredictiveWorkspace,
        out: &mut Prediction,
    ) -> Result<Clipping, LikelihoodError> {
        let outputs = self.likelihood.outputs();
        let clipping = latent.check(outputs)?;
        let width = self.likelihood.target_width();
        let shaped = match (&self.likelihood, &*out) {
            (OutputLikelihood::Categorical(_) | OutputLikelihood::RobustMax(_), Prediction::Classes(p)) => {
                p.len() == outputs
            }
            (OutputLikelihood::Bernoulli(_), Prediction::Events(p)) => p.len() == width,
            (
                OutputLikelihood::Categorical(_)
                | OutputLikelihood::RobustMax(_)
                | OutputLikelihood::Bernoulli(_),
                _,
            ) => false,
            (_, Prediction::Moments { mean, variance, latent_variance }) => {
                [mean, variance, latent_variance].iter().all(|list| list.len() == width)
            }
            _ => false,
        };
        if !shaped {
            *out = self.empty_prediction();
        }
        match out {
            Prediction::Classes(p) => {
                let own = match &self.likelihood {
                    OutputLikelihood::RobustMax(robust) => self.ranked(robust, latent, workspace, p)?,
                    _ => self.classes(latent, workspace, p)?,
                };
                Ok(clipping.merge(own))
            }
            Prediction::Events(p) => Ok(clipping.merge(self.events(latent, workspace, p)?)),
            // They have closed forms, so Monte Carlo uses those.
            Prediction::Moments { mean, variance, latent_variance } => {
                let variances = &mut workspace.list;
                variances.clear();
                variances.extend((0..outputs).map(|i| latent.covariance.variance(i, outputs)));
                latent_variance.copy_from_slice(&variances[..width]);
                if self.integration == Integration::PlugIn {
                    variances.fill(0.0);
                }
                self.likelihood.predictive_moments(latent.mean, variances, (mean, variance));
                Ok(clipping)
            }
        }
    }

    fn classes(
        &self,
        latent: LatentGaussian<'_>,
        workspace: &mut PredictiveWorkspace,
        out: &mut [f64],
    ) -> Result<Clipping, LikelihoodError> {
        let Some(draws) = &self.draws else {
            self.logits(latent, &mut workspace.list);
            softmax(&workspace.list, out);
            return Ok(Clipping::default());
        };
        out.fill(0.0);
        let exponentials = &mut workspace.exponentials;
        let clipping = draws.visit(latent, &mut workspace.draws, |functions| {
            for f in functions.chunks_mut(out.len()) {
                let peak = f[largest(f)];
                f.iter_mut().for_each(|f| *f -= peak);
            }
            exponentials.resize(functions.len(), 0.0);
            vectorised::exp(functions, exponentials);
            for e in exponentials.chunks(out.len()) {
                let scale = 1.0 / e.iter().sum::<f64>();
                for (out, e) in out.iter_mut().zip(e) {
                    *out += scale * e;
                }
            }
        })?;
        // Not the number of samples: so they sum to one to the last digit.
        let total: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= total);
        Ok(clipping)
    }

    /// Classes of which the largest latent value names one.
    fn ranked(
        &self,
        robust: &RobustMax,
        latent: LatentGaussian<'_>,
        workspace: &mut PredictiveWorkspace,
        out: &mut [f64],
    ) -> Result<Clipping, LikelihoodError> {
        let n = latent.mean.len();
        let Some(draws) = &self.draws else {
            if self.integration == Integration::PlugIn {
                out.fill(0.0);
                out[largest(latent.mean)] = 1.0;
                robust.with_errors(out);
            } else {
                workspace.list.clear();
                workspace.list.extend((0..n).map(|i| latent.covariance.variance(i, n)));
                robust.probabilities(latent.mean, &workspace.list, out);
            }
            return Ok(Clipping::default());
        };
        out.fill(0.0);
        let clipping = draws.visit(latent, &mut workspace.draws, |functions| {
            functions.chunks(n).for_each(|f| out[largest(f)] += 1.0);
        })?;
        robust.with_errors(out);
        Ok(clipping)
    }

    /// Latent values whose softmax is the prediction.
    fn logits(&self, latent: LatentGaussian<'_>, out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(latent.mean);
        match self.integration {
            Integration::LaplaceBridge | Integration::NormalisedLaplaceBridge => {
                let normalised = self.integration == Integration::NormalisedLaplaceBridge;
                laplace_bridge(latent, normalised, out);
            }
            Integration::Probit => {
                for (i, m) in out.iter_mut().enumerate() {
                    *m /= (1.0 + PI / 8.0 * latent.covariance.variance(i, latent.mean.len())).sqrt();
                }
            }
            Integration::PlugIn | Integration::MonteCarlo { .. } => {}
        }
    }

    fn events(
        &self,
        latent: LatentGaussian<'_>,
        workspace: &mut PredictiveWorkspace,
        out: &mut [f64],
    ) -> Result<Clipping, LikelihoodError> {
        let link = self.link();
        let Some(draws) = &self.draws else {
            for (i, p) in out.iter_mut().enumerate() {
                *p = link.probability(self.event_latent(latent, i));
            }
            return Ok(Clipping::default());
        };
        out.fill(0.0);
        let clipping = draws.visit(latent, &mut workspace.draws, |functions| {
            for f in functions.chunks(out.len()) {
                for (p, f) in out.iter_mut().zip(f) {
                    *p += link.probability(*f);
                }
            }
        })?;
        out.iter_mut().for_each(|p| *p /= draws.samples() as f64);
        Ok(clipping)
    }

    fn link(&self) -> Link {
        match &self.likelihood {
            OutputLikelihood::Bernoulli(bernoulli) => bernoulli.link(),
            _ => Link::Logit,
        }
    }

    /// The latent value whose probability is that of event i.
    fn event_latent(&self, latent: LatentGaussian<'_>, i: usize) -> f64 {
        match self.integration {
            Integration::PlugIn => latent.mean[i],
            _ => self.link().shrunk(latent.mean[i], latent.covariance.variance(i, latent.mean.len())),
        }
    }

    /// `log E[p(y | f)]` in nats, for scoring. Allocates; for many targets there is
    /// [`log_predictive_density_with`](Self::log_predictive_density_with).
    ///
    /// # Errors
    /// As [`log_predictive_density_with`](Self::log_predictive_density_with).
    pub fn log_predictive_density(
        &self,
        y: &[f64],
        latent: LatentGaussian<'_>,
    ) -> Result<f64, LikelihoodError> {
        self.log_predictive_density_with(y, latent, &mut PredictiveWorkspace::default())
    }

    /// `log E[p(y | f)]` in nats, computed in log space: finite where the probability itself is zero to rounding.
    ///
    /// Exact, approximate or by quadrature as the table of [`Integration`] says. Cost O(C); for Monte Carlo as
    /// [`predict_into`](Self::predict_into); for counts and heteroscedastic noise about 1,500 densities for each target; for
    /// Gaussian noise `O(C³)` unless all is diagonal.
    ///
    /// # Errors
    /// When `y` is not a valid target, or as [`predict_into`](Self::predict_into).
    pub fn log_predictive_density_with(
        &self,
        y: &[f64],
        latent: LatentGaussian<'_>,
        workspace: &mut PredictiveWorkspace,
    ) -> Result<f64, LikelihoodError> {
        let n = self.likelihood.outputs();
        self.likelihood.check_target(y)?;
        latent.check(n)?;
        if self.integration == Integration::PlugIn {
            return Ok(self.likelihood.log_density(y, latent.mean));
        }
        if let Some(draws) = &self.draws {
            let list = &mut workspace.list;
            list.clear();
            draws.visit(latent, &mut workspace.draws, |functions| {
                list.extend(functions.chunks(n).map(|f| self.likelihood.log_density(y, f)));
            })?;
            return Ok(log_sum_exp(list) - (draws.samples() as f64).ln());
        }
        let variance = |i: usize| latent.covariance.variance(i, n);
        match &self.likelihood {
            OutputLikelihood::Categorical(categorical) => {
                self.logits(latent, &mut workspace.list);
                Ok(categorical.class(y).map_or(f64::NAN, |class| log_softmax(&workspace.list, class)))
            }
            OutputLikelihood::Bernoulli(_) => {
                Ok((0..n).map(|i| self.link().log_density(y[i], self.event_latent(latent, i))).sum())
            }
            OutputLikelihood::Gaussian(g) => {
                log_density::gaussian(
                    y,
                    latent,
                    true,
                    |i, j| {
                        if i == j { g.noise_variances()[i] } else { 0.0 }
                    },
                )
            }
            OutputLikelihood::FullGaussian(g) => {
                log_density::gaussian(y, latent, false, |i, j| g.covariance()[i * n + j])
            }
            OutputLikelihood::Poisson(_)
            | OutputLikelihood::NegativeBinomial(_)
            | OutputLikelihood::StudentT(_)
            | OutputLikelihood::RobustMax(_) => {
                let variances = &mut workspace.list;
                variances.clear();
                variances.extend((0..n).map(variance));
                Ok(self.likelihood.log_predictive_density(y, latent.mean, variances))
            }
            OutputLikelihood::HeteroscedasticGaussian(h) => Ok((0..h.targets())
                .map(|i| {
                    let j = h.targets() + i;
                    let means = (latent.mean[i], latent.mean[j]);
                    let covariance = latent.covariance.entry(i, j, n);
                    log_density::heteroscedastic(y[i], means, (variance(i), variance(j)), covariance)
                })
                .sum()),
        }
    }
}
