//! **Ensembles**: several networks that were trained apart (other seeds, other splits) as one model, whose predictions are mixtures with equal weights (Lakshminarayanan et al. 2017, *Simple and scalable predictive
//! uncertainty estimation using deep ensembles*; spec `linearised_laplace`, section 6).
//!
//! Members are networks with error bars; a *plain* ensemble leaves their error bars out and mixes the networks alone, each with its best constant noise, which is the published deep ensemble. Probabilities
//! are averaged; means and variances are those of the mixture; densities are averaged, not their logarithms; functions are drawn from the members in turn, so that joint densities are averages over members of
//! products over examples.
//!
//! ```no_run
//! use posterior_models::ensemble::EnsembleModel;
//! use posterior_models::laplace::{LaplaceRequest, LikelihoodKind};
//! // Every network file of the folder, in the order of their names.
//! let request = LaplaceRequest::new("networks", ["images.gz"], ["labels.gz"], LikelihoodKind::Categorical);
//! let model = EnsembleModel::fit(&request, true, &mut |line| eprintln!("{line}"), &mut |_, _, _| posterior_optim::Signal::Continue)?;
//! posterior_models::Model::save(&model, "five.posterior".as_ref())?;
//! # Ok::<(), posterior_models::ModelError>(())
//! ```
//!
//! | file | does |
//! |---|---|
//! | `fit` | a folder of networks -> an ensemble, gone on from after an interruption |
//! | `alike` | refuses members that predict different things |
//! | `mixture` | predictive distributions of members -> one |
//! | `recalibration` | what rows that no member has seen say of the mixture |
//! | `joint` | draws, covariances and joint scores |
//! | `asked`, `describe` | what any model can be asked; an ensemble in words |
//! | `file` | one file, with the members' arrays under a prefix each |

mod alike;
mod asked;
mod describe;
mod file;
mod fit;
mod joint;
mod mixture;
mod recalibration;
#[cfg(test)]
mod tests;

pub use file::EnsembleHeader;

use crate::ModelError;
use crate::calibration::{Calibration, NetworkRecalibration};
use crate::laplace::LaplaceModel;

/// Networks as one model.
pub struct EnsembleModel {
    names: Vec<String>,
    members: Vec<LaplaceModel>,
    plain: bool,
    /// How the mixture was recalibrated: a record that no prediction reads.
    recalibration: Option<NetworkRecalibration>,
    /// What rows that no member has seen say of the mixture.
    calibration: Calibration,
}

impl EnsembleModel {
    /// Of members with names, in this order. `plain` leaves their error bars out.
    ///
    /// # Errors
    /// [`ModelError::Request`] for fewer than two members, names that are not as many, or members that predict different things or from different inputs: it names the first that differs and in what.
    pub fn of(members: Vec<LaplaceModel>, names: Vec<String>, plain: bool) -> Result<Self, ModelError> {
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
        alike::check(&members, &names)?;
        Ok(Self { names, members, plain, recalibration: None, calibration: Calibration::default() })
    }

    /// The members, in order.
    pub fn members(&self) -> &[LaplaceModel] {
        &self.members
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the members' error bars are left out.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// How predictions of the mixture were recalibrated; None where they are as the members have them.
    pub fn recalibration(&self) -> Option<&NetworkRecalibration> {
        self.recalibration.as_ref()
    }

    /// The member whose names and units the answers have. There is one: [`Self::of`] sees to that.
    fn first(&self) -> &LaplaceModel {
        &self.members[0]
    }
}
