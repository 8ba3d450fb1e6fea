//! Kinds of priors over a network's weights.

use crate::LaplaceError;
use posterior_linear::Prior;
use posterior_linear::curvature::layers;
use posterior_linear::structure::Structure;
use posterior_networks::{Graph, Selection};
use posterior_tangent::segments;
use serde::{Deserialize, Serialize};

/// Which weights share a prior precision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum PriorKind {
    /// Layerwise for networks with normalisation, else scalar
    ///
    /// Normalisation makes weights scale-invariant.
    #[default]
    Auto,
    /// One precision.
    Scalar,
    /// One for each layer
    ///
    /// That is, each node with parameters.
    Layerwise,
    /// One for each parameter tensor.
    Parameter,
    /// One for each weight.
    Diagonal,
    /// One, for features scaled to a unit diagonal of the curvature
    ///
    /// Predictions do not depend on the units of any weight (thesis section 5.4.3).
    GPrior,
}

impl PriorKind {
    /// `Auto` decided.
    pub(crate) fn resolved(&self, normalised: bool) -> Self {
        match self {
            Self::Auto if normalised => Self::Layerwise,
            Self::Auto => Self::Scalar,
            other => other.clone(),
        }
    }

    /// The curvature as this prior sees it: with a unit diagonal under a g-prior.
    ///
    /// # Errors
    /// As [`Structure::normalised`].
    pub(crate) fn scaled(&self, structure: Structure) -> Result<Structure, LaplaceError> {
        Ok(if *self == Self::GPrior { structure.normalised()? } else { structure })
    }

    /// The prior with one precision everywhere.
    ///
    /// # Errors
    /// When there are no weights.
    pub fn prior(&self, graph: &Graph, selection: &Selection, precision: f64) -> Result<Prior, LaplaceError> {
        let parts = selection.parts();
        let named = |groups: Vec<(String, Vec<usize>)>| -> Result<Prior, LaplaceError> {
            // Groups without weights in the selection are left out.
            let groups: Vec<_> = groups.into_iter().filter(|g| !g.1.is_empty()).collect();
            let stretches: Vec<(usize, usize)> = parts
                .iter()
                .enumerate()
                .map(|(i, p)| (p.length, groups.iter().position(|g| g.1.contains(&i)).unwrap_or(0)))
                .collect();
            let names: Vec<String> = groups.into_iter().map(|g| g.0).collect();
            let precisions = vec![precision; names.len()];
            Ok(Prior::grouped(&stretches, names, precisions)?)
        };
        match self {
            Self::Auto | Self::Scalar | Self::GPrior => Ok(Prior::scalar(selection.len(), precision)?),
            Self::Layerwise => {
                let segments = segments(graph, selection);
                named(layers(&segments).into_iter().map(|(n, r)| (n.into(), r.collect())).collect())
            }
            Self::Parameter => {
                named(parts.iter().enumerate().map(|(i, p)| (p.name.clone(), vec![i])).collect())
            }
            Self::Diagonal => Ok(Prior::each(vec![precision; selection.len()])?),
        }
    }
}

/// All precisions times a factor.
pub(crate) fn scaled(prior: &Prior, factor: f64) -> Result<Prior, LaplaceError> {
    let precisions: Vec<f64> = prior.precisions().iter().map(|p| p * factor).collect();
    Ok(prior.with_precisions(&precisions)?)
}
