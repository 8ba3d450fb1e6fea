//! What a fit returns.

use crate::LaplaceError;
use crate::function_space::{finite_eigenvalues, spectrum};
use crate::learned::Learned;
use crate::plan::workspace::Workspace;
use crate::predict::{Latent, Wanted, check_joint, latents};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use posterior_linear::features::Projected;
use posterior_linear::latent::Posteriors;
use posterior_linear::structure::{Block, BlockMatrix, Conditioned, Dense, Structure};
use posterior_linear::{FeatureMap, Prior};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_store::{StoreError, Tensors};
use posterior_tangent::Tangent;
use std::sync::Arc;

/// A basis of the weights and the curvature within it, before a prior is chosen.
#[derive(Clone, Debug)]
pub struct Ella<T> {
    pub(super) selection: Selection,
    /// `V`, d x K.
    pub(super) basis: Arc<Mat<T>>,
    /// `G`, K x K.
    pub(super) gram: Mat<f64>,
}

/// Posteriors for some prior precisions and strengths.
pub struct ConditionedElla<T> {
    selection: Selection,
    basis: Arc<Mat<T>>,
    posteriors: Posteriors<T>,
    /// The first of them, to draw from.
    first: Conditioned,
}

impl<T: Precision> Ella<T> {
    /// The weights of the tangent.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The directions `V`, d x K, orthonormal.
    pub fn basis(&self) -> &Mat<T> {
        &self.basis
    }

    /// The curvature `G` along them.
    ///
    /// # Errors
    /// When it is not finite.
    pub fn structure(&self) -> Result<Structure, LaplaceError> {
        let matrix = BlockMatrix::Dense(Dense::new(self.gram.clone()));
        let block = Block { name: "all features".into(), range: 0..self.gram.nrows(), matrix };
        Ok(Structure::new(vec![block])?)
    }

    /// The spectrum of `V G V'` as a diagonal structure of as many entries as there are weights: what the evidence needs. Weights across the features have the evidence of the prior alone.
    ///
    /// # Errors
    /// When the curvature is not finite.
    pub fn spectrum(&self) -> Result<Structure, LaplaceError> {
        let mut values = finite_eigenvalues(&self.gram, "the curvature of the features")?;
        values.iter_mut().for_each(|v| *v = v.max(0.0));
        values.reverse();
        spectrum(values, self.selection.len())
    }

    /// Posteriors under some prior precisions and strengths of the data, whose features are made once.
    ///
    /// # Errors
    /// When there are none, they are not positive, or a factorisation fails.
    pub fn condition(&self, settings: &[(f64, f64)]) -> Result<ConditionedElla<T>, LaplaceError> {
        let structure = self.structure()?;
        let condition = |(precision, strength): &(f64, f64)| {
            Ok(structure.condition(&Prior::scalar(self.gram.nrows(), *precision)?, *strength)?)
        };
        let conditioned = settings.iter().map(condition).collect::<Result<Vec<_>, LaplaceError>>()?;
        let Some(first) = conditioned.first().cloned() else {
            return Err(LaplaceError::Request("there is no prior precision to condition on".into()));
        };
        let segments = vec![posterior_linear::curvature::Segment {
            name: "all weights".into(),
            layer: String::new(),
            range: 0..self.gram.nrows(),
            whole: true,
            matrix: None,
        }];
        let posteriors = Posteriors::new(&segments, conditioned)?;
        Ok(ConditionedElla {
            selection: self.selection.clone(),
            basis: self.basis.clone(),
            posteriors,
            first,
        })
    }

    /// Adds it to the arrays of a file.
    pub fn write(&self, tensors: &mut Tensors) {
        tensors.insert_columns("ella.basis", self.basis.as_ref().as_ref());
        tensors.insert_matrix("ella.curvature", self.gram.as_ref());
    }

    /// Takes it from the arrays of a file.
    ///
    /// # Errors
    /// When arrays are missing, of another network's size or not finite.
    pub fn read(selection: &Selection, tensors: &mut Tensors) -> Result<Self, StoreError> {
        let basis = tensors.columns::<T>("ella.basis", None)?;
        let k = basis.ncols();
        if basis.nrows() != selection.len() || k == 0 {
            return Err(tensors.corrupt(format!(
                "the basis is of {} weights, the network has {}",
                basis.nrows(),
                selection.len()
            )));
        }
        let gram = tensors.matrix("ella.curvature", k, k)?;
        if !(gram.is_all_finite() && basis.is_all_finite()) {
            return Err(tensors.corrupt("the features or their curvature are not finite"));
        }
        Ok(Self { selection: selection.clone(), basis: Arc::new(basis), gram })
    }
}

impl<T: Precision> Learned<T> for ConditionedElla<T> {
    /// Means are the network's own outputs. Cost: a forward pass with K tangents for each input.
    fn latents(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Vec<Latent>, LaplaceError> {
        let tangent = Tangent::new(network, &self.selection);
        let projected = Projected::new(&tangent, &self.basis)?;
        let at_once = projected.examples_at_once(self.basis.ncols());
        latents(&projected, &self.posteriors, (x, at_once), wanted)
    }

    /// Functions `g(x) + psi(x) u_k` drawn from the first posterior. Cost: a forward pass with K tangents for each input. The joint covariance has rank K only, and no factor that could be trusted.
    fn function_samples(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        samples: usize,
        seed: u64,
    ) -> Result<Option<Vec<f64>>, LaplaceError> {
        let tangent = Tangent::new(network, &self.selection);
        let projected = Projected::new(&tangent, &self.basis)?;
        let draw = |k: usize| self.first.sample(Streams::new(seed).child("laplace/sample", k as u64));
        let draws: Vec<Vec<f64>> = (0..samples).map(draw).collect();
        let u = Mat::from_fn(self.first.dimension(), samples, |i, k| T::from_f64(draws[k][i]));
        let each = x.rows() * projected.outputs();
        let mut out = vec![0.0; samples * each];
        for range in pieces(x.rows(), projected.examples_at_once(self.basis.ncols())) {
            let features = projected.at(x.slice_rows(range.clone()))?;
            let (outputs, moved) = (features.outputs(), features.apply(u.as_ref())?);
            let start = range.start * projected.outputs();
            for k in 0..samples {
                let place = &mut out[k * each + start..][..outputs.len()];
                for (i, (value, output)) in place.iter_mut().zip(&outputs).enumerate() {
                    *value = output + moved[(i, k)].to_f64();
                }
            }
        }
        Ok(Some(out))
    }

    /// Under the first posterior.
    fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let tangent = Tangent::new(network, &self.selection);
        let projected = Projected::new(&tangent, &self.basis)?;
        check_joint(x.rows(), projected.outputs(), self.basis.ncols(), memory)?;
        Ok(self.posteriors.joint(&*projected.at(x.clone())?)?.swap_remove(0))
    }

    fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        Workspace::at(network, &self.selection, examples).tangents(self.basis.ncols() as u64)
    }

    fn latent_flops(&self, network: &Network<T>) -> f64 {
        network.graph().flops() as f64 * (1.0 + 2.0 * self.basis.ncols() as f64)
    }
}
