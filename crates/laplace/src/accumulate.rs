//! The sums of a curvature in the selected weights of a network.

use crate::LaplaceError;
use crate::problem::Data;
use crate::run::{Run, Stage};
use posterior_linear::curvature;
use posterior_linear::structure::Structure;
use posterior_networks::{Graph, Network, Precision, Selection};
use posterior_tangent::{Tangent, segments};
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
        data: &Data<'_, T>,
        from: usize,
        run: &mut Run<'_>,
    ) -> Result<(), LaplaceError> {
        data.check()?;
        let tangent = Tangent::new(data.network, &self.selection);
        let mut stage = run.stage(Stage::Curvature);
        Ok(self.sums.extend(&tangent, &data.observed(), data.likelihood, from, &mut stage)?)
    }

    /// As [`curvature::Accumulator::finish`].
    ///
    /// # Errors
    /// When no example was seen or a sum is not finite.
    pub fn finish(&self) -> Result<Structure, LaplaceError> {
        Ok(self.sums.finish()?)
    }
}

/// Numbers that the sums of a form hold at least ([`curvature::least_numbers`]).
pub(crate) fn least_numbers(graph: &Graph, selection: &Selection, form: Form) -> u64 {
    curvature::least_numbers(&segments(graph, selection), form)
}
