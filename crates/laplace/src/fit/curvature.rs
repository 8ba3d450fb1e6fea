//! A curvature in whichever form, and posteriors that are conditioned on it.

use crate::LaplaceError;
use crate::accumulate::Accumulator;
use crate::ella::{Ella, EllaReport};
use crate::function_space::FunctionSpace;
use crate::learned::Learned;
use crate::plan::workspace::Workspace;
use crate::predict::{Latent, Predictor, Wanted};
use crate::scores::strength;
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
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

/// Gaussians of the weights.
struct WeightPosterior<T> {
    /// To draw from, where it is one.
    only: Option<Conditioned>,
    predictor: Predictor<T>,
}

impl<T: Precision> Learned<T> for WeightPosterior<T> {
    fn latents(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Vec<Latent>, LaplaceError> {
        self.predictor.latent(network, x, wanted)
    }

    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        Ok(self.predictor.joint(network, x, memory)?.remove(0))
    }

    fn conditioned(&self) -> Option<&Conditioned> {
        self.only.as_ref()
    }

    fn draws_functions(&self) -> bool {
        true
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let space = Workspace::at(network, self.predictor.selection(), examples);
        match self.predictor.head(network) {
            Some(head) => space.predicted_head(&head, self.predictor.largest_dense() as u64),
            None => space.predicted_backwards(self.predictor.largest_rows() as u64),
        }
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        let (graph, d) = (network.graph(), self.predictor.selection().len() as f64);
        let (forward, c) = (graph.flops() as f64, graph.output_shape().iter().product::<usize>() as f64);
        match self.predictor.head(network) {
            Some(_) => forward + c * d,
            None => (1.0 + 2.0 * c) * forward + c * (2.0 * d + self.predictor.whitening_flops()),
        }
    }
}

impl<T: Precision> Curvature<T> {
    /// The posterior of these weights under some settings, each a prior with a noise variance relative to the likelihood's own. What predictions share is made once for all of them.
    ///
    /// # Errors
    /// When precisions or noise are not positive, or a factorisation fails.
    pub(super) fn conditioned(
        &self,
        (network, selection): (&Network<T>, &Selection),
        likelihood: &OutputLikelihood,
        settings: &[(Prior, f64)],
    ) -> Result<Box<dyn Learned<T>>, LaplaceError> {
        let one = |(prior, noise): &(Prior, f64)| (prior.precisions()[0], strength(likelihood, *noise));
        let posterior: Box<dyn Learned<T>> = match self {
            Self::Structure { structure, .. } => {
                let each = |(prior, noise): &(Prior, f64)| {
                    Ok(structure.condition(prior, strength(likelihood, *noise))?)
                };
                let all = settings.iter().map(each).collect::<Result<Vec<_>, LaplaceError>>()?;
                let only = if let [only] = &all[..] { Some(only.clone()) } else { None };
                Box::new(WeightPosterior { only, predictor: Predictor::new(network, selection, all)? })
            }
            Self::FunctionSpace(points) => {
                Box::new(points.condition(&settings.iter().map(one).collect::<Vec<_>>())?)
            }
            Self::Ella(ella, _) => Box::new(ella.condition(&settings.iter().map(one).collect::<Vec<_>>())?),
        };
        Ok(posterior)
    }

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

    /// The structure that the evidence is computed with: in function space a diagonal one with the same spectrum.
    pub(crate) fn evidence_structure(&self) -> Result<Cow<'_, Structure>, LaplaceError> {
        match self {
            Self::Structure { structure, .. } => Ok(Cow::Borrowed(structure)),
            Self::FunctionSpace(points) => Ok(Cow::Owned(points.spectrum()?)),
            Self::Ella(ella, _) => Ok(Cow::Owned(ella.spectrum()?)),
        }
    }
}
