//! Several networks as one predictor: a mixture with equal weights.

use crate::latent::Beyond;
use crate::{Batch, Cost, Latent, ModelError, NetworkPosterior, Predictor, Want};
use posterior_likelihoods::predictive::mixture_moments;
use posterior_store::{StoreError, Tensors};
use serde_json::Value;
use std::sync::Arc;

/// Predictors of networks that predict the same.
#[derive(Debug)]
pub(crate) struct Mixture {
    pub(crate) members: Vec<Arc<dyn Predictor>>,
    /// Whether their error bars are left out.
    pub(crate) plain: bool,
}

impl Predictor for Mixture {
    /// Latent values of each member, in units of its own; with the moments of their mixture as if these units were the same.
    fn latent(&self, x: Batch<'_>, want: &Want) -> Result<Latent, ModelError> {
        let want = Want { plain: want.plain || self.plain, ..*want };
        let members: Vec<Latent> =
            self.members.iter().map(|member| member.latent(x, &want)).collect::<Result<_, _>>()?;
        let variances: Vec<Vec<f64>> = members.iter().map(Latent::all_variances).collect();
        let means: Vec<&[f64]> = members.iter().map(|own| &own.mean[..]).collect();
        let (mean, variance) =
            mixture_moments(&means, &variances.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let functions = members.first().map_or(0, |own| own.functions);
        Ok(Latent { beyond: Beyond::Mixture(members), ..Latent::new(mean, variance, functions) })
    }

    /// Members predict one after the other.
    fn cost(&self, rows: usize) -> Cost {
        let all = self.members.iter().map(|member| member.cost(rows));
        all.fold(Cost::default(), |a, b| Cost { bytes: a.bytes.max(b.bytes), flops: a.flops + b.flops })
    }

    fn kind(&self) -> &'static str {
        "networks"
    }

    /// Nothing: its members are models of their own in a file, of which it is made again.
    fn write(&self, _: &mut Tensors) -> Result<Value, StoreError> {
        Ok(Value::Null)
    }

    fn latents(&self) -> usize {
        self.members.first().map_or(0, |first| first.latents())
    }

    fn is_coupled(&self) -> bool {
        true
    }

    fn network(&self) -> Option<&dyn NetworkPosterior> {
        self.members.first()?.network()
    }
}
