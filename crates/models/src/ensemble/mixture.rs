//! Predictive distributions of all members as one.

use super::EnsembleModel;
use crate::laplace::LaplaceModel;
use crate::{ModelData, ModelError, Predicted, Predictive, Question};
use posterior_likelihoods::predictive::{average, log_average_exp, mixture_moments};

impl EnsembleModel {
    /// What one member predicts, its latent values in the first member's units.
    pub(super) fn member(
        &self,
        member: &LaplaceModel,
        data: &ModelData,
        question: &Question,
    ) -> Result<Predictive, ModelError> {
        let mut predictive = match self.plain {
            true => member.predict_plain(data)?,
            // What rows say of a member alone, they do not say of the mixture.
            false => member.predict_as_fitted(data, question.integration)?,
        };
        let (own, first) = (member.header().data.target_scale(), self.first().header().data.target_scale());
        if own != first && predictive.outputs == predictive.width {
            let ((centre, scale), (first_centre, first_scale)) = (own, first);
            let moved = |m: &mut f64| *m = (centre + scale * *m - first_centre) / first_scale;
            predictive.latent_mean.iter_mut().for_each(moved);
            predictive.latent_deviation.iter_mut().for_each(|s| *s *= scale / first_scale);
        }
        Ok(predictive)
    }

    /// The mixture of all members' predictions.
    pub(super) fn mixed(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let members = self.members.iter().map(|member| self.member(member, data, question));
        mixture(members.collect::<Result<_, _>>()?)
    }
}

/// The mixture, with equal weights, of predictions of the same examples by members that predict the same.
pub(super) fn mixture(members: Vec<Predictive>) -> Result<Predictive, ModelError> {
    let Some(first) = members.first() else {
        return Err(ModelError::Request("a mixture needs members".into()));
    };
    let probabilities = || members.iter().filter_map(Predictive::probabilities).collect::<Vec<_>>();
    let latent: Vec<(&[f64], Vec<f64>)> = members
        .iter()
        .map(|m| (&m.latent_mean[..], m.latent_deviation.iter().map(|s| s * s).collect()))
        .collect();
    let (means, variances): (Vec<&[f64]>, Vec<&[f64]>) = latent.iter().map(|(m, v)| (*m, &v[..])).unzip();
    let (latent_mean, latent_variances) = mixture_moments(&means, &variances);
    let predicted = match &first.predicted {
        Predicted::Classes(_) => Predicted::Classes(average(&probabilities())),
        Predicted::Events(_) => Predicted::Events(average(&probabilities())),
        Predicted::Moments { .. } => {
            let (mut means, mut variances, mut latents) = (Vec::new(), Vec::new(), Vec::new());
            for member in &members {
                if let Predicted::Moments { mean, variance, latent_variance } = &member.predicted {
                    means.push(&mean[..]);
                    variances.push(&variance[..]);
                    latents.push(&latent_variance[..]);
                }
            }
            let (mean, variance) = mixture_moments(&means, &variances);
            // Under additive noise the mean of the function is that of the observation; else the latent values tell it.
            let latent_variance = match first.gaussian {
                true => mixture_moments(&means, &latents).1,
                false => latent_variances.clone(),
            };
            Predicted::Moments { mean, variance, latent_variance }
        }
    };
    let densities: Option<Vec<&[f64]>> = members.iter().map(|m| m.log_density.as_deref()).collect();
    Ok(Predictive {
        // A mixture of Gaussians has no simple quantiles.
        gaussian: false,
        log_gaussian: false,
        latent_mean,
        latent_deviation: latent_variances.into_iter().map(f64::sqrt).collect(),
        log_density: densities.map(|d| log_average_exp(&d)),
        clipped: members.iter().map(|m| m.clipped).sum(),
        ..Predictive::empty(predicted, false, first.width, first.outputs)
    })
}
