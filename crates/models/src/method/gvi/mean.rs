//! The variational mean: what it is made of, for a table's columns.

use crate::method::deep::{Basis, Columns};
use crate::options::{BasisOptions, DbkOptions, DeepKind, GviOptions, VariationalMeanName};
use crate::{FitRequest, MeanKind, ModelError};
use posterior_gp::Observations;
use posterior_gp::generalised::{GeneralisedGp, ReferenceProcess, VariationalMean};

/// A mean, with what a file says of it.
pub(crate) struct Mean {
    pub(crate) mean: VariationalMean,
    pub(crate) kind: MeanKind,
    /// In words.
    pub(crate) origin: String,
    pub(crate) architecture: Option<String>,
}

/// What learned features of this kind are told, so that one place reads networks.
fn as_basis(options: &GviOptions, functions: usize) -> DbkOptions {
    DbkOptions {
        network: BasisOptions {
            basis: options.mean_network.clone(),
            freeze_basis: options.freeze_mean,
            ..BasisOptions::default()
        },
        // Of a network that is drawn; one from a file says itself.
        rank: options.mean_network.is_none().then_some(functions),
        ..DbkOptions::default()
    }
}

/// A network's outputs themselves.
const KIND: DeepKind = DeepKind { inducing: false, exact: false, dense: false };

/// A mean of some functions, as training begins.
///
/// # Errors
/// Networks that cannot be read, or have other inputs or outputs than are there.
pub(crate) fn begin(
    name: VariationalMeanName,
    (options, request): (&GviOptions, &FitRequest),
    columns: Columns<'_>,
    (reference, least_squares): (&ReferenceProcess, &Observations),
    functions: usize,
) -> Result<Mean, ModelError> {
    let plain = |mean: VariationalMean, kind, origin: &str| {
        Ok(Mean { mean, kind, origin: origin.into(), architecture: None })
    };
    match name {
        VariationalMeanName::Prior => plain(VariationalMean::Prior, MeanKind::Prior, "the prior's"),
        VariationalMeanName::Constant => {
            let constants = vec![0.0; functions];
            plain(VariationalMean::Constant(constants), MeanKind::Constant, "a constant")
        }
        VariationalMeanName::Inducing => {
            let weights =
                GeneralisedGp::least_squares_mean(reference, options.weight_coordinates, least_squares)?;
            plain(VariationalMean::Inducing(weights), MeanKind::Inducing, "weights of inducing points")
        }
        VariationalMeanName::Network => {
            let told = as_basis(options, functions);
            let basis = Basis::new((&told, KIND, None), columns, request.seed)?;
            if basis.rank != functions {
                return Err(ModelError::Request(format!(
                    "{} has {} outputs, and the target has {functions} latent functions: --set mean-network needs one output for each",
                    basis.origin, basis.rank
                )));
            }
            let architecture = basis.architecture(false);
            let mean = VariationalMean::Embedding(Box::new(basis.embedding()?));
            Ok(Mean { mean, kind: MeanKind::Network, origin: basis.origin, architecture })
        }
    }
}

/// Values of all nodes for a row and weights of the network, for plans.
pub(crate) fn sizes(options: &GviOptions, inputs: usize, functions: usize) -> (usize, usize) {
    let told = as_basis(options, functions);
    let sizes = crate::method::deep::sizes((&told, KIND, None), inputs);
    (sizes.activations, sizes.weights)
}
