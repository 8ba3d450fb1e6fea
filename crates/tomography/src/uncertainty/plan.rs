//! Bytes and operations of an inference.

use super::options::{ImagePriorChoice, UncertaintyOptions, scale_products};
use crate::linearised::{ConvolutionWeights, DistanceGrams, GPriorOptions, GPriorSolver, ImageTangent};
use crate::running::{Plan, projection_flops, times};
use crate::{Projector, TomographyError};
use posterior_networks::Graph;

/// Steps that conjugate gradients are counted with: with a preconditioner they need about ten.
const USUAL_STEPS: usize = 15;

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
    let rank = options.rank_of(c as usize) as u64;
    let (pixels, m) = (projector.geometry().pixels() as u64, options.samples as u64);
    let mut blocks = vec![
        ("sweeps through the network", ImageTangent::<f32>::bytes(graph)),
        ("draws", times(&[8, pixels, m])),
    ];
    let descent = match &options.prior {
        ImagePriorChoice::GPrior(GPriorOptions { solver: GPriorSolver::Weights(descent), .. }) => {
            Some(descent)
        }
        _ => None,
    };
    let together = m.min(16);
    let solves = match descent {
        // Iterates, velocities, averages, gradients, noise and what is written of them: thirteen numbers for each weight and sample.
        Some(descent) => {
            blocks.push(("weights of draws", times(&[104, d, together])));
            times(&[m, descent.epochs as u64])
        }
        None => {
            blocks.push(("vectors of solves", times(&[40, c, together])));
            blocks.push(("directions of the preconditioner", times(&[48, c, rank])));
            blocks.push(("weights of draws", times(&[24, d, together])));
            times(&[m, USUAL_STEPS as u64]).saturating_add(rank)
        }
    };
    let (products, others) = match &options.prior {
        ImagePriorChoice::GPrior(own) => {
            let each = if descent.is_some() { 104 } else { 32 };
            blocks.push(("samples of the turns", times(&[each, d, own.samples as u64])));
            // The mode goes with the samples.
            let columns = (own.samples as u64).saturating_add(1);
            let (turns, directions) = match descent {
                Some(descent) => (times(&[columns, descent.epochs as u64]), 0),
                None => (times(&[columns, USUAL_STEPS as u64]), rank),
            };
            let before = (scale_products(c as usize) / 2) as u64 + directions;
            let all = solves.saturating_add(times(&[own.turns as u64, turns]));
            (all.saturating_add(before), 0)
        }
        ImagePriorChoice::Filters(own) => {
            let rows = if own.roughness > 0.0 { c + pixels } else { c };
            blocks.push(("rows of the Jacobian", times(&[4, d, c.max(rows - c)])));
            blocks.push(("kernels of blocks", DistanceGrams::bytes(&weights, c as usize)));
            blocks.push(("matrices of measurements", times(&[32, c, c])));
            let grams = times(&[12, c, c, d]);
            let search = times(&[own.steps as u64, c.saturating_pow(3).saturating_add(times(&[70, c, c]))]);
            (solves.saturating_add(rows / 2), grams.saturating_add(search))
        }
    };
    // One product forward and one back, each about two passes.
    let (passes, projections) = (times(&[4, products]), times(&[2, products]));
    Ok(Plan::new(blocks, (passes, graph.flops()), (projections, projection_flops(projector)), others))
}
