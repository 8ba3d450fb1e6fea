//! Memory and work of predictions, known before they are made.

use super::workspace::Workspace;
use crate::fit::{Laplace, Posterior};
use crate::predict::{Latent, Wanted};
use posterior_networks::{Network, Precision};

impl<T: Precision> Laplace<T> {
    /// Most bytes of [`Self::latent`] for so many inputs, beside the model and the inputs: the result, and what one batch of them takes.
    pub fn latent_bytes(&self, network: &Network<T>, examples: usize, wanted: Wanted) -> u64 {
        let outputs: usize = network.graph().output_shape().iter().product();
        let space = Workspace {
            network,
            selection: self.selection(),
            examples: examples as u64,
            outputs: outputs as u64,
        };
        let numbers = outputs + Latent::size(outputs, wanted);
        // Results grow by doubling, and a batch's own is copied into them.
        let result = 3 * 8 * (examples as u64).saturating_mul(numbers as u64);
        let working = match self.posterior() {
            Posterior::FunctionSpace(posterior) => space.predicted_dually(posterior.rows() as u64),
            Posterior::Ella(_) => space.tangents(self.directions() as u64),
            Posterior::Learned(posterior) => posterior.latent_bytes(network, examples),
            Posterior::Weights { predictor, .. } => match predictor.head(network) {
                Some(head) => space.predicted_head(&head, predictor.largest_dense() as u64),
                None => space.predicted_backwards(predictor.largest_rows() as u64),
            },
        };
        // One pass after the other.
        let moved =
            if self.displacement.is_some() { space.tangents(1) + 8 * (examples * outputs) as u64 } else { 0 };
        result.saturating_add(working.max(moved))
    }

    /// Directions that predictions go along.
    fn directions(&self) -> usize {
        self.ella().map_or(0, |ella| ella.basis().ncols())
    }

    /// Multiplications and additions of the same, about.
    pub fn latent_flops(&self, network: &Network<T>, examples: usize) -> f64 {
        let graph = network.graph();
        let outputs = graph.output_shape().iter().product::<usize>() as f64;
        let (forward, d) = (graph.flops() as f64, self.selection().len() as f64);
        let each = match self.posterior() {
            Posterior::FunctionSpace(posterior) => {
                let rows = posterior.rows() as f64;
                (1.0 + 2.0 * outputs) * forward + rows * outputs * d + rows * rows * outputs
            }
            Posterior::Ella(_) => forward * (1.0 + 2.0 * self.directions() as f64),
            Posterior::Learned(posterior) => posterior.latent_flops(network),
            Posterior::Weights { predictor, .. } => match predictor.head(network) {
                Some(_) => forward + outputs * d,
                None => (1.0 + 2.0 * outputs) * forward + outputs * (2.0 * d + predictor.whitening_flops()),
            },
        };
        let moved = if self.displacement.is_some() { 3.0 * forward } else { 0.0 };
        examples as f64 * (each + moved)
    }
}
