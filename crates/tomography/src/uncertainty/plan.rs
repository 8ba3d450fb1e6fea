//! Bytes and operations of an inference.

use super::options::{ImagePriorChoice, UncertaintyOptions, scale_products};
use crate::linearised::{ConvolutionWeights, DistanceGrams, GPriorSolver};
use crate::work::{Plan, projection_flops};
use crate::{Projector, TomographyError};
use posterior_networks::Graph;

/// Steps that conjugate gradients are counted with: with a preconditioner they need about ten.
const USUAL_STEPS: usize = 15;

/// Products at a time: activations of so many vectors.
const AT_ONCE: u64 = 4;

/// What [`super::infer`] will take.
///
/// # Errors
/// [`TomographyError::NoConvolutions`].
pub fn plan(
    projector: &Projector,
    graph: &Graph,
    options: &UncertaintyOptions,
) -> Result<Plan, TomographyError> {
    let weights = ConvolutionWeights::of(graph)?;
    let (d, c) = (weights.len() as u64, projector.geometry().measurements() as u64);
    let (pixels, m) = (projector.geometry().pixels() as u64, options.samples as u64);
    let activations = 4 * AT_ONCE.saturating_mul(graph.activations() as u64).max(1 << 26);
    let mut blocks = vec![
        ("activations of the network", activations),
        ("draws", 8 * pixels * m),
        ("vectors of solves", 8 * 5 * c * m.min(16)),
        ("directions of the preconditioner", 8 * 6 * c * options.rank as u64),
        ("weights of draws", 8 * 3 * d * m.min(16)),
    ];
    let solves = m * USUAL_STEPS as u64 + options.rank as u64;
    let (products, others) = match &options.prior {
        ImagePriorChoice::GPrior(own) => {
            blocks.push(("samples of the turns", 8 * 4 * d * own.samples as u64));
            let turns = match &own.solver {
                GPriorSolver::Measurements(_) => (own.samples as u64 + 1) * USUAL_STEPS as u64,
                GPriorSolver::Weights(descent) => (own.samples as u64 + 1) * descent.epochs as u64,
            };
            (
                solves
                    + own.turns as u64 * turns
                    + scale_products(c as usize) as u64 / 2
                    + options.rank as u64,
                0,
            )
        }
        ImagePriorChoice::Filters(own) => {
            let rows = if own.roughness > 0.0 { c + pixels } else { c };
            blocks.push(("rows of the Jacobian", 4 * d * c.max(rows - c)));
            blocks.push(("kernels of blocks", DistanceGrams::bytes(&weights, c as usize)));
            blocks.push(("matrices of measurements", 8 * 4 * c * c));
            let grams = (12 * c).saturating_mul(c).saturating_mul(d);
            let search = (own.steps as u64).saturating_mul(c.saturating_pow(3).saturating_add(70 * c * c));
            (solves + rows / 2, grams.saturating_add(search))
        }
    };
    // One product forward and one back, each about two passes.
    Ok(Plan::new(blocks, (4 * products, graph.flops()), (2 * products, projection_flops(projector)), others))
}
