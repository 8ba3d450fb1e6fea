//! What posteriors need that are found by a search of their own.

use super::workspace::{Workspace, after};
use crate::LaplaceError;
use crate::fit::Approximation;
use crate::fixed_mean::{FixedMean, FixedMeanKernel};
use crate::gwi::Gwi;
use crate::{MeanField, Temperature};
use posterior_gp::generalised::Family;
use posterior_kernels::BlockKernel;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::derivatives::tangent_feature_size;
use posterior_networks::{Network, Precision, Selection};
use posterior_tangent::TangentKernel;

/// Bytes of what is learned, bytes of one batch, and multiplications and additions; None for curvatures.
///
/// # Errors
/// A kernel on features that are not there.
pub(super) fn searched<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    (examples, unseen): (usize, usize),
    likelihood: &OutputLikelihood,
    approximation: &Approximation,
) -> Result<Option<(u64, u64, f64)>, LaplaceError> {
    let outputs = likelihood.outputs() as u64;
    // The first thing that a search does, by examples that are learned from and others: buffers of the ones wait while the others pass, in other sizes.
    let pass = [examples, unseen].map(|count| count as u64);
    let pass = pass.map(|examples| Workspace { network, selection, examples, outputs }.pass());
    let pass = after(pass[0], pass[1]);
    Ok(Some(match approximation {
        Approximation::Temperature => {
            // How well the network fits what it has learned from is told as well.
            let flops = (examples + unseen) as f64 * network.graph().flops() as f64;
            (0, after(pass, Temperature::bytes(network, unseen, likelihood)), flops)
        }
        Approximation::MeanField(own) => {
            let plan = MeanField::plan(network, selection, examples, own);
            (plan.curvature_bytes, after(pass, plan.batch_bytes), plan.flops)
        }
        Approximation::Ella(own) => super::ella(network, selection, examples, likelihood, own),
        Approximation::Sampled(own) => super::sampled(network, selection, examples, likelihood, own),
        Approximation::FixedMean(own) => {
            let plan = crate::fixed_mean::plan(network, selection, (examples, unseen), likelihood, own)?;
            (plan.curvature_bytes, after(pass, plan.batch_bytes), plan.flops)
        }
        Approximation::Gwi(own) => {
            let plan = crate::gwi::plan(network, (examples, unseen), likelihood, own)?;
            (plan.curvature_bytes, after(pass, plan.batch_bytes), plan.flops)
        }
        _ => return Ok(None),
    }))
}

impl<T: Precision> FixedMean<T> {
    /// Bytes that predictions of so many inputs work in beside their result.
    pub(crate) fn latent_bytes(&self, network: &Network<T>, examples: usize) -> u64 {
        let (graph, (m, width)) = (network.graph(), self.points().shape());
        let c: usize = graph.output_shape().iter().product();
        let batch = network.examples_at_once().min(examples.max(1));
        let forward = batch * graph.activations() * size_of::<T>();
        // Kernel rows, twice.
        let kernel = match self.kernel() {
            FixedMeanKernel::Tangent => {
                let size = tangent_feature_size(graph, self.selection());
                let piece = TangentKernel::new(network, self.selection()).points_at_once(2 * c).min(batch);
                // Features of a piece and a turned copy, those of the inducing points, the passes.
                8 * (piece * c * (2 * size + 2 * m) + m * size + piece * (1 + c) * graph.activations())
            }
            _ => size_of::<T>() * (batch * width + rayon::current_num_threads() * 64 * c * (2 * m + c)),
        };
        (forward + kernel) as u64
    }

    /// Multiplications and additions of one prediction.
    pub(crate) fn latent_flops(&self, network: &Network<T>) -> f64 {
        let (graph, (m, width)) = (network.graph(), self.points().shape());
        let c = graph.output_shape().iter().product::<usize>() as f64;
        let (m, forward) = (m as f64, graph.flops() as f64);
        let kernel = match self.kernel() {
            FixedMeanKernel::Tangent => {
                2.0 * c * forward + 2.0 * c * m * tangent_feature_size(graph, self.selection()) as f64
            }
            _ => 2.0 * m * (width as f64 + 10.0),
        };
        forward + kernel + 2.0 * c * m * m
    }
}

impl Gwi {
    /// Bytes that predictions of so many inputs work in beside their result.
    pub(crate) fn latent_bytes<T: Precision>(&self, network: &Network<T>, examples: usize) -> u64 {
        let (graph, process) = (network.graph(), self.process());
        let (m, width, c) = (process.reference(0).rank(), process.inputs(), process.functions());
        let batch = network.examples_at_once().min(examples.max(1));
        let forward = batch * graph.activations() * size_of::<T>();
        // Points of a batch, those of a piece as the kernel has them, features there and products of roots with them, one function at a time.
        let piece = batch.min(1024);
        (forward + 8 * (batch * (width + 2 * c) + piece * (2 * width + 4 * m + 4 * c) + 2 * m * m)) as u64
    }

    /// Multiplications and additions of one prediction.
    pub(crate) fn latent_flops<T: Precision>(&self, network: &Network<T>) -> f64 {
        let process = self.process();
        let (m, width) = (process.reference(0).rank() as f64, process.inputs() as f64);
        let own = match process.kernels()[0].family() {
            Family::Diagonal | Family::Kernelised => 2.0 * m,
            _ => 2.0 * m * m,
        };
        let kernel = 2.0 * m * (width + 10.0) + m * m;
        network.graph().flops() as f64 + kernel + process.functions() as f64 * own
    }
}
