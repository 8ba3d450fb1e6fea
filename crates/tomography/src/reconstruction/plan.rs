//! Bytes and operations of a reconstruction.

use super::held_back::Trials;
use super::options::{Method, TotalVariationSolver};
use crate::image_prior::EllipseExamples;
use crate::running::{Plan, meant, projection_flops, times};
use crate::{Projector, TomographyError};
use posterior_networks::Architecture;
use posterior_networks::architecture::Unet;

/// What a reconstruction will take.
///
/// # Errors
/// Those of the network's graph.
pub fn plan(projector: &Projector, method: &Method) -> Result<Plan, TomographyError> {
    /// Channels of a layer that anyone can have meant.
    const MOST_CHANNELS: usize = 1 << 16;
    let geometry = projector.geometry();
    let (c, pixels) = (geometry.measurements() as u64, geometry.pixels() as u64);
    let mut blocks = vec![("sinograms", 8 * 6 * c), ("pictures", 8 * 12 * pixels)];
    let each = projection_flops(projector);
    let trials = |weight: Option<f64>| if weight.is_none() { Trials::STEPS } else { 0 };
    // The state of total variation is text for a moment before it is arrays.
    let written = ("the state while it is written", times(&[40, 6 * pixels + 3 * c]));
    Ok(match method {
        Method::Filtered(_) => {
            Plan::new(blocks, (0, 0), (1, each), (20 * pixels).saturating_mul(geometry.angles().len() as u64))
        }
        Method::TotalVariation(own) => {
            blocks.push(written);
            let steps = match &own.solver {
                TotalVariationSolver::PrimalDual(solver) => solver.steps,
                TotalVariationSolver::Adam(solver) => solver.steps,
            };
            let steps = (steps as u64).saturating_add(trials(own.weight));
            Plan::new(blocks, (0, 0), (times(&[2, steps]), each), 0)
        }
        Method::DeepImagePrior(own) => {
            meant("the number of iterations", own.training.iterations)?;
            if let Some(channels) =
                own.network.channels.iter().chain(&own.network.skips).find(|c| **c > MOST_CHANNELS)
            {
                let expected = "a layer has at most 65,536";
                return Err(TomographyError::Option {
                    name: "the number of channels",
                    value: *channels as f64,
                    expected,
                });
            }
            let graph =
                Architecture::Unet(architecture(&own.network, projector)).graph().map_err(network_error)?;
            blocks.push(("activations of the network", 8 * graph.activations() as u64));
            blocks.push(("weights and their moments", 4 * 6 * graph.trainable() as u64));
            let (mut passes, mut projections) =
                (3 * own.training.iterations as u64, times(&[2, trials(own.weight)]));
            if let Some(pretraining) = &own.pretraining {
                meant("the number of pictures to pretrain on", pretraining.pictures)?;
                EllipseExamples::new(projector, 1, pretraining.noise, pretraining.seed)?;
                let all = times(&[8, graph.activations() as u64, pretraining.batch as u64]);
                blocks.push(("activations of pretraining", all));
                let epochs = pretraining.epochs as u64;
                let (learned, judged) = (
                    times(&[pretraining.pictures as u64, epochs]),
                    times(&[pretraining.validation as u64, epochs]),
                );
                passes = passes.saturating_add(times(&[3, learned])).saturating_add(judged);
                projections = projections.saturating_add(times(&[2, learned.saturating_add(judged)]));
            }
            projections += 2 * own.training.iterations as u64;
            Plan::new(blocks, (passes, graph.flops()), (projections, each), 0)
        }
    })
}

pub(super) fn network_error(error: posterior_networks::GraphError) -> TomographyError {
    TomographyError::Network(error.into())
}

/// The network for the scan's pictures.
pub fn architecture(network: &Unet, projector: &Projector) -> Unet {
    let input = [1].into_iter().chain(projector.geometry().image_shape()).collect();
    Unet { input, outputs: 1, ..network.clone() }
}
