//! The sums of a curvature in the selected weights of a network.

use crate::{LaplaceError, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature;
use posterior_linear::structure::Structure;
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Observed, Tangent, check_outputs, segments};
use std::ops::Deref;

pub use curvature::{BlockSum, FisherEstimate, FitSums, Form, SumMatrix};

/// The sums of a curvature, while they are being made and after: [`curvature::Accumulator`] of a network's tangent, with the weights.
#[derive(Clone, Debug)]
pub struct Accumulator {
    selection: Selection,
    sums: curvature::Accumulator,
}

impl Deref for Accumulator {
    type Target = curvature::Accumulator;

    fn deref(&self) -> &curvature::Accumulator {
        &self.sums
    }
}

impl Accumulator {
    /// Empty sums for the selected weights of a network.
    ///
    /// # Errors
    /// When nothing is selected, or a Kronecker form is asked for entries of a parameter.
    #[inline(never)]
    pub fn new<T: Precision>(
        network: &Network<T>,
        selection: &Selection,
        form: Form,
        estimate: FisherEstimate,
    ) -> Result<Self, LaplaceError> {
        let sums = curvature::Accumulator::new(&segments(network.graph(), selection), form, estimate)?;
        Ok(Self { selection: selection.clone(), sums })
    }

    /// The weights.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// As [`curvature::Accumulator::restore`].
    ///
    /// # Errors
    /// When the sums are not of this network, selection and form.
    pub fn restore(&mut self, blocks: Vec<BlockSum>, fit: FitSums) -> Result<(), LaplaceError> {
        Ok(self.sums.restore(blocks, fit)?)
    }

    /// As [`curvature::Accumulator::extend`].
    ///
    /// # Errors
    /// Bad targets, outputs that are not finite, [`LaplaceError::Interrupted`].
    pub fn extend<T: Precision>(
        &mut self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
        likelihood: &OutputLikelihood,
        from: usize,
        observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
    ) -> Result<(), LaplaceError> {
        check_outputs(network, likelihood)?;
        likelihood.check_curvature()?;
        let tangent = Tangent::new(network, &self.selection);
        let mut stage = |done, all| observer(Stage::Curvature, done, all);
        Ok(self.sums.extend(&tangent, &Observed { examples, likelihood }, likelihood, from, &mut stage)?)
    }

    /// As [`curvature::Accumulator::finish`].
    ///
    /// # Errors
    /// When no example was seen or a sum is not finite.
    pub fn finish(&self) -> Result<Structure, LaplaceError> {
        Ok(self.sums.finish()?)
    }
}
