//! Curvatures of a classifier's training images, in every form.

use super::Classifier;
use crate::context::Context;
use crate::error::Result;
use posterior_laplace::{FisherEstimate, Form};
use posterior_linear::FeatureMap;
use posterior_linear::curvature::Accumulator;
use posterior_linear::features::OutputsAt;
use posterior_linear::structure::Structure;
use posterior_networks::Array;
use posterior_tangent::{Observed, Tangent, segments};
use serde::Deserialize;
use std::rc::Rc;

/// A form of the curvature, with where its rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Curvature {
    /// All of it.
    Full,
    /// A block for each layer.
    Block,
    /// Kronecker factors.
    Kronecker,
    /// Kronecker factors from one target drawn for each example.
    KroneckerSampled,
    /// Kronecker factors from the observed targets.
    KroneckerEmpirical,
    /// The diagonal.
    Diagonal,
}

impl Curvature {
    /// As in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Block => "block",
            Self::Kronecker => "kronecker",
            Self::KroneckerSampled => "kronecker-sampled",
            Self::KroneckerEmpirical => "kronecker-empirical",
            Self::Diagonal => "diagonal",
        }
    }

    fn form(self, seed: u64) -> (Form, FisherEstimate) {
        match self {
            Self::Full => (Form::Full, FisherEstimate::Exact),
            Self::Block => (Form::Block, FisherEstimate::Exact),
            Self::Kronecker => (Form::Kronecker, FisherEstimate::Exact),
            Self::KroneckerSampled => (Form::Kronecker, FisherEstimate::MonteCarlo { samples: 1, seed }),
            Self::KroneckerEmpirical => (Form::Kronecker, FisherEstimate::Empirical),
            Self::Diagonal => (Form::Diagonal, FisherEstimate::Exact),
        }
    }
}

impl Classifier {
    /// The curvature of the training images, summed once.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn curvature(
        &mut self,
        curvature: Curvature,
        context: &mut Context<'_>,
    ) -> Result<Rc<Structure>> {
        if let Some((_, found)) = self.structures.iter().find(|s| s.0 == curvature) {
            return Ok(found.clone());
        }
        let tangent = Tangent::new(&self.network, &self.selection);
        let structure = Rc::new(self.summed(curvature, &tangent, context)?);
        self.structures.push((curvature, structure.clone()));
        Ok(structure)
    }

    /// The same with the likelihood's curvature at the linear model's outputs for some weights in place of the network's own.
    ///
    /// # Errors
    /// As [`Self::curvature`].
    pub(crate) fn curvature_at(
        &self,
        curvature: Curvature,
        weights: &[f64],
        context: &mut Context<'_>,
    ) -> Result<Structure> {
        let tangent = Tangent::new(&self.network, &self.selection);
        self.summed(curvature, &OutputsAt::new(&tangent, weights)?, context)
    }

    fn summed<F: FeatureMap<f32, Inputs = Array<f32>>>(
        &self,
        curvature: Curvature,
        features: &F,
        context: &mut Context<'_>,
    ) -> Result<Structure> {
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let (form, estimate) = curvature.form(self.seed);
        let mut sums = Accumulator::new(&segments(self.network.graph(), &self.selection), form, estimate)?;
        let stage = format!("{}: {} curvature", self.name, curvature.name());
        let mut tell = |done, all| context.tell(&stage, done, all);
        sums.extend(features, &observed, &self.likelihood, 0, &mut tell)?;
        Ok(sums.finish()?)
    }
}
