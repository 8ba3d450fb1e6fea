//! Memory and work of a fit before its start.

use super::FixedMeanOptions;
use super::learn::BLOCK;
use super::sight::Sight;
use crate::LaplaceError;
use posterior_kernels::BlockKernel;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::derivatives::tangent_feature_size;
use posterior_networks::{Network, Precision, Selection};
use posterior_tangent::TangentKernel;

/// What a fit will need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedMeanPlan {
    /// Bytes of what is learned with its moments, of matrices between inducing points, and of what all rows are known by.
    pub curvature_bytes: u64,
    /// Bytes of one batch.
    pub batch_bytes: u64,
    /// Multiplications and additions of all steps, or of the pass.
    pub flops: f64,
}

impl FixedMeanPlan {
    /// Bytes at the peak, beside network and data.
    pub fn bytes(&self) -> u64 {
        self.curvature_bytes.saturating_add(self.batch_bytes)
    }
}

/// The plan for so many examples.
///
/// # Errors
/// A kernel on features of a network that has none.
pub fn plan<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: usize,
    likelihood: &OutputLikelihood,
    options: &FixedMeanOptions,
) -> Result<FixedMeanPlan, LaplaceError> {
    let graph = network.graph();
    let sight = Sight::of(&options.kernel, graph)?;
    let (c, width) = (likelihood.outputs() as f64, sight.width(graph) as f64);
    let (n, m, b) = (
        examples as f64,
        options.inducing(examples, likelihood.outputs()) as f64,
        options.batch.min(examples) as f64,
    );
    let tangent = sight == Sight::Tangent;
    let kept = if tangent { 0.0 } else { width };
    // What is learned: twice for Adam, once for the best, once for the gradient. Matrices of M x M: some twelve at the peak.
    let learned = 0.5 * m * (m + 1.0) + m * (1.0 + width);
    let curvature = 8.0 * (5.0 * learned + 12.0 * m * m + n * (c + likelihood.target_width() as f64 + kept));
    let (mut batch, mut of_kernel);
    if tangent {
        let size = tangent_feature_size(graph, selection) as f64;
        let activations = graph.activations() as f64;
        // Rows of the features that stand beside those of the inducing points, and passes of which activations are kept.
        let (rows, copies, passes) = if options.closed_form {
            // Observations of a piece have as many rows as the root of their curvature, held-out rows as many as there are outputs.
            let width = likelihood.root_width().max(likelihood.outputs());
            let points = TangentKernel::new(network, selection).points_at_once(2 * width).min(BLOCK);
            let (points, width) = (points.min(examples) as f64, width as f64);
            (points * width, 1.0, (2.0 * m).max(points * (1.0 + width)))
        } else {
            // On the way back directions of all inducing points and their adjoints join them.
            (b * c, 3.0, 4.0 * (b + 3.0 * m))
        };
        // Of two sets of features a tile copies the smaller.
        batch = 8.0 * ((rows + copies * m + rows.min(m)) * size + passes * activations);
        of_kernel = 4.0 * (b * c + m) * graph.flops() as f64 + 6.0 * (b * c + m) * m * size;
    } else {
        batch = 8.0 * 3.0 * (b + m) * width;
        of_kernel = 8.0 * (b + m) * m * (width + 10.0);
    }
    batch += 8.0 * (8.0 * m * b * c + 2.0 * b * c * c);
    of_kernel += 6.0 * b * c * m * m + 14.0 * m.powi(3);
    let passes = n * graph.flops() as f64;
    let steps = if options.closed_form { n / b } else { options.steps as f64 };
    Ok(FixedMeanPlan {
        curvature_bytes: curvature as u64,
        batch_bytes: batch as u64,
        flops: passes + steps * of_kernel,
    })
}
