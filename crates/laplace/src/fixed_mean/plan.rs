//! Memory and work of a fit before its start.

use super::learn::BLOCK;
use super::options::FixedMeanOptions;
use super::start::clustered;
use crate::LaplaceError;
use crate::kernel_inputs::{KernelInputs, SAMPLED};
use crate::plan::needs::Needs;
use crate::problem::Size;
use crate::rows::AMPLITUDES_TRIED;
use posterior_kernels::BlockKernel;
use posterior_networks::derivatives::{ALIVE, connected_feature_size, tangent_feature_size};
use posterior_networks::{Network, Precision, Selection};
use posterior_tangent::TangentKernel;

/// What [`fit`](super::fit()) needs.
///
/// # Errors
/// A kernel on features of a network that has none.
#[inline(never)]
pub fn plan<T: Precision>(size: &Size<'_, T>, options: &FixedMeanOptions) -> Result<Needs, LaplaceError> {
    let &Size { network, selection, examples, unseen, likelihood } = size;
    let graph = network.graph();
    let kernel_inputs = KernelInputs::of(&options.kernel, graph)?;
    let (c, width) = (likelihood.outputs() as f64, kernel_inputs.width(graph) as f64);
    let (n, m, b) = (
        examples as f64,
        options.inducing(examples, likelihood.outputs()) as f64,
        options.batch.min(examples) as f64,
    );
    let tangent = kernel_inputs == KernelInputs::Tangent;
    // Inputs of the tangent are read a batch at a time, those of unseen rows at once.
    let kept = if tangent { unseen as f64 } else { n + unseen as f64 } * width;
    let rows = (n + unseen as f64) * (c + likelihood.target_width() as f64) + kept;
    // What is learned: twice for Adam, once for the best, once for the gradient. Matrices of M x M: some twelve at the peak, and a root for each prior variance that is tried.
    let learned = 0.5 * m * (m + 1.0) + m * (1.0 + width);
    let tried = if options.tries_amplitudes(likelihood.outputs(), unseen) { AMPLITUDES_TRIED } else { 0 };
    // The tangent's own network is of doubles.
    let wide = if tangent { network.graph().parameters().iter().map(|p| p.len()).sum() } else { 0 };
    let curvature = 8.0 * (5.0 * learned + (12 + tried) as f64 * m * m + rows + wide as f64);
    let (mut batch, mut of_kernel);
    if tangent {
        let of = Tangents { network, selection, inducing: m, outputs: c };
        // Observations of a piece have as many rows as the root of their curvature, held-out rows as many as there are outputs.
        let first =
            |width: usize, most: usize| of.pass(of.kernel().points_at_once(2 * width).min(most), width);
        let held = first(likelihood.outputs(), unseen);
        let first = first(likelihood.root_width(), BLOCK.min(examples)).max(held);
        let (bytes, made) = if options.closed_form {
            (first, 1.0)
        } else {
            let (bytes, made) = of.step(options.batch.min(examples));
            (if options.closed_form_start || unseen > 0 { bytes.max(first) } else { bytes }, made)
        };
        batch = bytes;
        of_kernel = 4.0 * (made * b * c + m) * graph.flops() as f64 + 6.0 * (b * c + m) * m * of.size();
    } else {
        batch = 8.0 * 3.0 * (b + m) * width;
        of_kernel = 8.0 * (b + m) * m * (width + 10.0);
    }
    batch += 8.0 * (8.0 * m * b * c + 2.0 * b * c * c);
    of_kernel += 6.0 * b * c * m * m + 14.0 * m.powi(3);
    // Clusters are looked for before, of rows in the network's precision and in doubles, and a lengthscale among rows.
    let clustered = clustered(examples, options.inducing(examples, likelihood.outputs())) as f64;
    let sampled = if tangent { 0.0 } else { 8.0 * SAMPLED.min(examples) as f64 };
    batch = batch.max(width * sampled.max(clustered * (8 + size_of::<T>()) as f64));
    let passes = (n + unseen as f64) * graph.flops() as f64;
    let steps = if options.closed_form { n / b } else { options.steps as f64 };
    Ok(Needs {
        curvature_bytes: curvature as u64,
        batch_bytes: batch as u64,
        flops: passes + steps * of_kernel,
    })
}

/// What kernels of a network's tangent take.
struct Tangents<'a, T> {
    network: &'a Network<T>,
    selection: &'a Selection,
    /// Inducing points and outputs.
    inducing: f64,
    outputs: f64,
}

impl<T: Precision> Tangents<'_, T> {
    fn kernel(&self) -> TangentKernel<'_, T> {
        TangentKernel::new(self.network, self.selection)
    }

    fn size(&self) -> f64 {
        tangent_feature_size(self.network.graph(), self.selection) as f64
    }

    /// Numbers of so many points with `width` rows each on the way to their features: inputs as they were read and gathered, activations, and what comes back.
    fn features(&self, points: usize, width: usize) -> f64 {
        let (at_once, graph) = (self.network.featured_at_once(width).min(points), self.network.graph());
        let input: usize = graph.input_shape().iter().product();
        (at_once * ((1 + width) * graph.activations() + 3 * input)) as f64
    }

    /// Bytes of a pass over rows, `points` at a time with `width` rows each: their features beside those of the inducing points, and a copy of the smaller set for a tile.
    fn pass(&self, points: usize, width: usize) -> f64 {
        let (rows, m) = ((points * width) as f64, self.inducing);
        let passes = self.features(points, width).max(self.features(m as usize, 1));
        8.0 * ((rows + m + rows.min(m)) * self.size() + passes)
    }

    /// Bytes of a step that learns inducing points by so many rows, and how often the rows' features are made.
    fn step(&self, rows: usize) -> (f64, f64) {
        let (c, m, graph) = (self.outputs as usize, self.inducing, self.network.graph());
        let points = self.kernel().pulled_at_once(c).min(rows);
        let back = self.network.pulled_back_at_once(1).min(m as usize) as f64;
        let back = back * (self.size() + (ALIVE * graph.activations()) as f64);
        let connected = ((rows * c) * connected_feature_size(graph, self.selection)) as f64;
        // Of all rows what fully connected layers have stays, and of everything else the directions of the inducing points.
        let stays = 8.0 * (m * self.size() + connected + back);
        (stays + self.pass(points, c), if points < rows { 2.0 } else { 1.0 })
    }
}
