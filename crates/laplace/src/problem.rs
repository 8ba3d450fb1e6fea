//! What a posterior is fitted to.

use crate::LaplaceError;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::ChaCha8Rng;
use posterior_networks::train::{Examples, Targets};
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_tangent::{Observed, check_outputs};
use std::ops::Deref;

/// A trained network with its data.
#[derive(Clone, Copy)]
pub struct Data<'a, T> {
    /// The trained network.
    pub network: &'a Network<T>,
    /// Examples that the posterior is fitted to: those that the network was trained on.
    pub examples: &'a dyn Examples<T>,
    /// Examples that the network was not trained on, for choices that need some.
    pub validation: Option<&'a dyn Examples<T>>,
    /// Of the outputs, with its noise.
    pub likelihood: &'a OutputLikelihood,
}

impl<'a, T> Data<'a, T> {
    /// Without validation examples.
    pub fn new(
        network: &'a Network<T>,
        examples: &'a dyn Examples<T>,
        likelihood: &'a OutputLikelihood,
    ) -> Self {
        Self { network, examples, validation: None, likelihood }
    }

    /// The examples as likelihoods want them.
    pub(crate) fn observed(&self) -> Observed<'a, T> {
        Observed { examples: self.examples, likelihood: self.likelihood }
    }

    /// What plans look at, where these weights are uncertain.
    pub(crate) fn size<'s>(&'s self, selection: &'s Selection) -> Size<'s, T> {
        let Self { network, likelihood, .. } = *self;
        let (examples, unseen) = (self.examples.len(), self.validation.map_or(0, |unseen| unseen.len()));
        Size { network, selection, examples, unseen, likelihood }
    }
}

impl<T: Precision> Data<'_, T> {
    /// The number of outputs, where network and likelihood agree about it and the likelihood has a curvature.
    pub(crate) fn check(&self) -> Result<usize, LaplaceError> {
        let outputs = check_outputs(self.network, self.likelihood)?;
        self.likelihood.check_curvature()?;
        Ok(outputs)
    }
}

/// All that a search for a posterior is given beside its options.
#[derive(Clone, Copy)]
pub struct Problem<'a, T> {
    /// Network, examples and likelihood.
    pub data: Data<'a, T>,
    /// The uncertain weights; posteriors that are not about weights do not look at them.
    pub selection: &'a Selection,
    /// Seed of every random choice.
    pub seed: u64,
    /// Memory that the search may take, bytes.
    pub memory: u64,
}

impl<'a, T> Deref for Problem<'a, T> {
    type Target = Data<'a, T>;

    fn deref(&self) -> &Data<'a, T> {
        &self.data
    }
}

/// All that a plan looks at beside options.
#[derive(Clone, Copy)]
pub struct Size<'a, T> {
    /// The network.
    pub network: &'a Network<T>,
    /// The uncertain weights.
    pub selection: &'a Selection,
    /// How many examples the posterior is fitted to.
    pub examples: usize,
    /// How many validation examples there are.
    pub unseen: usize,
    /// Of the outputs.
    pub likelihood: &'a OutputLikelihood,
}

/// Some of the examples.
pub(crate) struct Part<'a, T> {
    pub(crate) whole: &'a dyn Examples<T>,
    pub(crate) indices: Vec<usize>,
}

impl<T: Precision> Examples<T> for Part<'_, T> {
    fn len(&self) -> usize {
        self.indices.len()
    }
    fn input_shape(&self) -> &[usize] {
        self.whole.input_shape()
    }
    fn batch(&self, indices: &[usize], augment: Option<&mut ChaCha8Rng>) -> (Array<T>, Targets<T>) {
        let own: Vec<usize> = indices.iter().map(|&i| self.indices[i]).collect();
        self.whole.batch(&own, augment)
    }
}
