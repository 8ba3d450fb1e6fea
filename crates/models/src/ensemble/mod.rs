//! **Ensembles**: several networks that were trained apart (other seeds, other splits) as one model, whose predictions are mixtures with equal weights (Lakshminarayanan et al. 2017, *Simple and scalable predictive
//! uncertainty estimation using deep ensembles*; spec `linearised_laplace`, section 6).
//!
//! Members are networks with error bars; a *plain* ensemble leaves their error bars out and mixes the networks alone, each with its best constant noise, which is the published deep ensemble. Probabilities
//! are averaged; means and variances are those of the mixture; densities are averaged, not their logarithms; functions are drawn from the members in turn, so that joint densities are averages over members of
//! products over examples.
//!
//! ```no_run
//! use posterior_models::ensemble;
//! use posterior_models::laplace::{LaplaceRequest, LikelihoodKind};
//! // Every network file of the folder, in the order of their names.
//! let request = LaplaceRequest::new("networks", ["images.gz"], ["labels.gz"], LikelihoodKind::Categorical);
//! let model = ensemble::fit(&request, true, &mut |line| eprintln!("{line}"), &mut |_, _, _| posterior_optim::Signal::Continue)?;
//! model.save("five.posterior".as_ref())?;
//! # Ok::<(), posterior_models::ModelError>(())
//! ```
//!
//! | file | does |
//! |---|---|
//! | `fit` | a folder of networks -> an ensemble, gone on from after an interruption |
//! | `alike` | refuses members that predict different things |
//! | `recalibration` | what rows that no member has seen say of the mixture |
//!
//! What it can be asked is the same as of one network: [`Model`].

mod alike;
mod fit;
mod recalibration;
#[cfg(test)]
mod tests;

pub use fit::{fit, has_checkpoint, is_asked};

use crate::calibration::Calibration;
use crate::method::Mixture;
use crate::model::{Ensemble, NetworkOutput, NetworkSource, Networks, Source};
use crate::record::NetworkHeader;
use crate::{Model, ModelError, TrainingRows};
use std::sync::Arc;

impl Model {
    /// Networks with names as one model, in this order. `plain` leaves their error bars out.
    ///
    /// # Errors
    /// [`ModelError::Request`] for fewer than two members, names that are not as many, or members that predict different things or from different inputs: it names the first that differs and in what.
    pub fn ensemble(members: Vec<Self>, names: Vec<String>, plain: bool) -> Result<Self, ModelError> {
        if members.len() < 2 {
            return Err(ModelError::Request(format!(
                "an ensemble needs at least two networks, there {}",
                if members.is_empty() { "is none" } else { "is one" }
            )));
        }
        if names.len() != members.len() {
            let problem = format!("{} names are given for {} members", names.len(), members.len());
            return Err(ModelError::Request(problem));
        }
        let own: Vec<Networks<'_>> = members.iter().filter_map(Model::networks).collect();
        if own.len() != members.len() {
            return Err(ModelError::Request("an ensemble is made of networks".into()));
        }
        alike::check(&own, &names)?;
        let first = own[0];
        let predictors = own.iter().map(|member| member.predictor.clone()).collect();
        let outputs = own.iter().map(|member| member.output.clone()).collect();
        let source = NetworkSource {
            inputs: first.inputs.clone(),
            output: NetworkOutput { members: outputs, ..first.output.clone() },
            record: NetworkHeader { recalibration: None, ..first.record.clone() },
            ensemble: Some(Ensemble { names, members, plain }),
        };
        Ok(Self {
            source: Source::Network(Box::new(source)),
            predictor: Arc::new(Mixture { members: predictors, plain }),
            calibration: Calibration::default(),
            training: TrainingRows::default(),
        })
    }
}
