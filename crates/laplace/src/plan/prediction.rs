//! Memory and work of predictions, known before they are made.

use super::workspace::Workspace;
use crate::fit::Laplace;
use crate::predict::{Latent, Wanted};
use posterior_networks::{Network, Precision};

impl<T: Precision> Laplace<T> {
    /// Most bytes of [`Self::latent`] for so many inputs, beside the model and the inputs: the result, and what one batch of them takes.
    pub fn latent_bytes(&self, network: &Network<T>, examples: usize, wanted: Wanted) -> u64 {
        let outputs: usize = network.graph().output_shape().iter().product();
        let numbers = outputs + Latent::size(outputs, wanted);
        // Results grow by doubling, and a batch's own is copied into them.
        let result = 3 * 8 * (examples as u64).saturating_mul(numbers as u64);
        let working = self.posterior.latent_bytes(network, examples);
        // One pass after the other.
        let moved = self.displacement.as_ref().map_or(0, |_| {
            Workspace::at(network, self.selection(), examples).tangents(1) + 8 * (examples * outputs) as u64
        });
        result.saturating_add(working.max(moved))
    }

    /// Multiplications and additions of the same, about.
    pub fn latent_flops(&self, network: &Network<T>, examples: usize) -> f64 {
        let each = self.posterior.latent_flops(network);
        let moved = if self.displacement.is_some() { 3.0 * network.graph().flops() as f64 } else { 0.0 };
        examples as f64 * (each + moved)
    }
}
