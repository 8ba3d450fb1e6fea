//! A curvature in whichever form, and posteriors that are conditioned on it.

use crate::LaplaceError;
use crate::accumulate::Accumulator;
use crate::ella::{ConditionedElla, Ella, EllaReport};
use crate::function_space::{ConditionedFunctionSpace, FunctionSpace};
use crate::learned::Learned;
use crate::predict::{Latent, Predictor, Wanted};
use crate::problem::Problem;
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::structure::{BlockMatrix, Conditioned, Structure};
use posterior_networks::{Array, Network, Precision, Selection};
use std::borrow::Cow;

/// The curvature, in whichever form.
#[derive(Clone, Debug)]
pub(crate) enum Curvature<T> {
    /// In blocks (scaled already, under a g-prior), with the sums it was made of.
    Structure { structure: Structure, sums: Option<Accumulator> },
    /// In function space.
    FunctionSpace(FunctionSpace<T>),
    /// Along a few directions, with how they were found.
    Ella(Ella<T>, EllaReport),
}

/// Conditioned curvature.
pub(crate) enum Posterior<T> {
    Weights { conditioned: Conditioned, predictor: Predictor<T> },
    FunctionSpace(Box<ConditionedFunctionSpace<T>>),
    Ella(Box<ConditionedElla<T>>),
    Learned(Box<dyn Learned<T>>),
}

impl<T: Precision> Posterior<T> {
    pub(crate) fn new(
        network: &Network<T>,
        selection: &Selection,
        curvature: &Curvature<T>,
        prior: &Prior,
        strength: f64,
    ) -> Result<Self, LaplaceError> {
        Ok(match curvature {
            Curvature::Structure { structure, .. } => {
                let conditioned = structure.condition(prior, strength)?;
                let predictor = Predictor::new(network, selection, vec![conditioned.clone()])?;
                Self::Weights { conditioned, predictor }
            }
            Curvature::FunctionSpace(points) => {
                Self::FunctionSpace(Box::new(points.condition(prior.precisions()[0], strength)?))
            }
            Curvature::Ella(ella, _) => {
                Self::Ella(Box::new(ella.condition(prior.precisions()[0], strength)?))
            }
        })
    }
}

/// A function from inputs to latent predictions under several posteriors.
pub(crate) type Predict<'a, T> = Box<dyn FnMut(&Array<T>, Wanted) -> Result<Vec<Latent>, LaplaceError> + 'a>;

impl<T: Precision> Curvature<T> {
    /// Bytes that one conditioned posterior takes.
    pub(crate) fn posterior_bytes(&self) -> u64 {
        match self {
            Self::Structure { structure, .. } => structure
                .blocks()
                .iter()
                .map(|b| {
                    let n = b.range.len() as u64;
                    match b.matrix {
                        BlockMatrix::Dense(_) => n * n * 8,
                        _ => n * 16,
                    }
                })
                .sum(),
            Self::FunctionSpace(points) => {
                let rows = points.rows() as u64;
                rows * rows * 16
            }
            Self::Ella(ella, _) => (ella.basis().ncols() as u64).pow(2) * 16,
        }
    }

    /// Latent predictions under several settings at once.
    pub(crate) fn predictors<'a>(
        &self,
        problem: &Problem<'a, T>,
        settings: &[(Prior, f64)],
    ) -> Result<Predict<'a, T>, LaplaceError> {
        let network = problem.network;
        let strength = |noise: f64| if is_gaussian(problem.likelihood) { 1.0 / noise } else { 1.0 };
        match self {
            Self::Structure { structure, .. } => {
                let posteriors = settings
                    .iter()
                    .map(|(prior, noise)| Ok(structure.condition(prior, strength(*noise))?))
                    .collect::<Result<Vec<_>, LaplaceError>>()?;
                let predictor = Predictor::new(network, problem.selection, posteriors)?;
                Ok(Box::new(move |x, wanted| predictor.latent(network, x, wanted)))
            }
            Self::Ella(ella, _) => {
                let settings: Vec<(f64, f64)> =
                    settings.iter().map(|(prior, noise)| (prior.precisions()[0], strength(*noise))).collect();
                let posteriors = ella.condition_all(&settings)?;
                Ok(Box::new(move |x, wanted| posteriors.latents(network, x, wanted)))
            }
            Self::FunctionSpace(points) => {
                let posteriors = settings
                    .iter()
                    .map(|(prior, noise)| points.condition(prior.precisions()[0], strength(*noise)))
                    .collect::<Result<Vec<_>, LaplaceError>>()?;
                Ok(Box::new(move |x, wanted| {
                    posteriors.iter().map(|p| p.latent(network, x, wanted)).collect()
                }))
            }
        }
    }

    /// The structure that the evidence is computed with: in function space a diagonal one with the same spectrum.
    pub(crate) fn evidence_structure(&self) -> Result<Cow<'_, Structure>, LaplaceError> {
        match self {
            Self::Structure { structure, .. } => Ok(Cow::Borrowed(structure)),
            Self::FunctionSpace(points) => Ok(Cow::Owned(points.spectrum()?)),
            Self::Ella(ella, _) => Ok(Cow::Owned(ella.spectrum()?)),
        }
    }
}
