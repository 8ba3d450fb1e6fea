//! Memory and work of a fit before its start.

use super::curvature::BLOCK;
use super::options::{GwiOptions, KEPT};
use super::prior::{BEGINNING, candidates};
use crate::LaplaceError;
use crate::kernel_inputs::{KernelInputs, SAMPLED};
use crate::plan::needs::Needs;
use crate::problem::Size;
use crate::rows::AMPLITUDES_TRIED;
use posterior_gp::exact;
use posterior_gp::generalised::StepSize;
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Precision;

/// Evaluations of the evidence that are planned for.
const EVALUATIONS: f64 = 100.0;

/// What threads keep in products and decompositions: measured, of two threads a megabyte and more.
const WORKSPACE: f64 = 1.5e6;

/// What [`fit`](super::fit()) needs.
///
/// # Errors
/// A kernel on features of a network that has none.
#[inline(never)]
pub fn plan<T: Precision>(size: &Size<'_, T>, options: &GwiOptions) -> Result<Needs, LaplaceError> {
    let &Size { network, examples, unseen, likelihood, .. } = size;
    let graph = network.graph();
    let width = KernelInputs::of(&options.kernel, graph)?.width(graph);
    let points = options.inducing(examples).min(examples);
    let (c, d, m) = (likelihood.outputs() as f64, width as f64, points as f64);
    let (n, u, b) = (examples as f64, unseen as f64, options.batch.min(examples) as f64);
    let together = (options.objective.rows_together as f64).min(b);
    let numbers = matches!(likelihood, OutputLikelihood::Gaussian(_));

    // Outputs, targets and points of all rows, of those that judge twice.
    let rows = (n + 2.0 * u) * (c + likelihood.target_width() as f64 + d);
    // Where they are few enough, their features, and what the reference says of them.
    let of_row = m + 3.0 + 2.0 * c;
    let fits = |rows: f64| 8.0 * rows * (m + 2.0) <= KEPT as f64;
    let known = if fits(n) { n } else { 0.0 } + if fits(n + u) { u } else { 0.0 };
    let own = options.family.parameters(points, width) as f64;
    // Parameters with moments, the best of them and their gradient; the reference's matrices, and one for each function where training begins.
    let learned = 10.0 * c * own + (10.0 + 2.0 * c) * m * m;
    let curvature = 8.0 * (rows + known * of_row + learned);

    let search = if numbers && options.prior_rows > 0 {
        let available = if unseen > 0 { unseen.max(1) } else { examples };
        Some(exact::Plan::evidence(
            options.prior_rows.min(examples.max(available)),
            width,
            likelihood.outputs(),
        ))
    } else {
        None
    };
    let among = candidates(examples, points) as f64;
    let beginning = BEGINNING.min(examples) as f64;
    let block = (BLOCK as f64).min(n.max(u));
    let phases = [
        // The first lengthscale.
        8.0 * d * SAMPLED.min(examples) as f64,
        search.as_ref().map_or(0.0, |search| search.peak_bytes as f64),
        // Inducing points: candidates, the same in another order and as the kernel has them, and their factor.
        8.0 * among * (3.0 * d + m),
        // Curvatures, and features along their eigenvectors.
        8.0 * (block * (2.0 * d + (3.0 + c) * m) + 4.0 * m * m),
        // Features of all rows at once, as the kernel has them.
        8.0 * known.min(n) * d,
        // A batch: rows, features, roots of all functions there, their slopes and what a regulariser looks at together.
        8.0 * (b * (2.0 * d + (2.0 * c + 3.0) * m + 12.0 * c)
            + (c + 12.0) * together * together
            + 3.0 * together * (m + d)
            + 3.0 * m * m),
    ];
    let batch = phases.into_iter().fold(0.0, f64::max) + WORKSPACE;

    let size = StepSize {
        rows: options.batch.min(examples),
        inducing_points: points,
        inputs: width,
        functions: likelihood.outputs(),
    };
    let step = size.flops(options.family, &options.objective) + if fits(n) { 0.0 } else { b * m * (m + d) };
    let tried = if numbers { 0.0 } else { u * c * (m * m + AMPLITUDES_TRIED as f64 * m) };
    let flops = (n + u) * graph.flops() as f64
        + search.map_or(0.0, |search| EVALUATIONS * search.flops_per_evaluation)
        + among * m * (m + d)
        + beginning * m * (d + 2.0 * m * c)
        + tried
        + (known + u) * m * (m + d)
        + options.steps as f64 * step;
    Ok(Needs { curvature_bytes: curvature as u64, batch_bytes: batch as u64, flops })
}
