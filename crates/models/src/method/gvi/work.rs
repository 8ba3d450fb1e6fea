//! What training takes, for plans.

use super::{kernel, mean};
use crate::FitRequest;
use crate::method::deep::Work;
use crate::options::{GviOptions, InducingChoiceName, VariationalMeanName};
use posterior_gp::exact;
use posterior_gp::generalised::StepSize;

/// Evaluations of a search that are planned for.
const EVALUATIONS: f64 = 100.0;

/// What training a mean and a covariance of so many rows, columns and functions takes.
pub(crate) fn work(
    options: &GviOptions,
    request: &FitRequest,
    (rows, inputs, functions): (usize, usize, usize),
) -> Work {
    let m = options.points().min(rows);
    let b = options.batch(rows);
    let (b64, m64) = (b as f64, m as f64);
    let size = StepSize { rows: b, inducing_points: m, inputs, functions };
    let ways = options.candidates();
    let (activations, weights) = match ways.iter().any(|way| way.mean == VariationalMeanName::Network) {
        true => mean::sizes(options, inputs, functions),
        false => (0, 0),
    };
    let (mut flops, mut steps, mut numbers) = (0.0, 0, 0_u64);
    for way in &ways {
        let own = way.family.parameters(m, inputs);
        let network = if way.mean == VariationalMeanName::Network { 6.0 * b64 * weights as f64 } else { 0.0 };
        let each = size.flops(way.family, &way.objective) + network;
        flops += options.steps() as f64 * each;
        steps += options.steps();
        let of_mean = match way.mean {
            VariationalMeanName::Network => weights,
            VariationalMeanName::Inducing => m * functions,
            _ => functions,
        };
        numbers = numbers.max((functions as u64).saturating_mul(own as u64).saturating_add(of_mean as u64));
    }
    // The network before the kernel of the prior: what it makes of the rows, and its passes.
    let before = kernel::network_sizes(&options.kernel_network, inputs);
    let (passed, before_weights) = before.map_or((0, 0), |own| (own.activations, own.weights));
    let embedded = 8 * before.map_or(0, |own| own.outputs as u64);
    flops += steps as f64 * 6.0 * b64 * before_weights as f64;
    let passing = 8 * (passed as u64).saturating_mul(rows.min(4096) as u64);
    // Features of rows where they are kept; a batch on its way; the prior's own search.
    let row = 8 * (m as u64 + 2);
    let kept = (rows as u64).saturating_mul(row).min(request.limits.memory / 8);
    let batch = (b as u64).saturating_mul(4 * activations as u64 + 8 * (4 * m + 4 * functions) as u64);
    // Parameters with their moments, the best of them and their gradient.
    let fixed = numbers.saturating_mul(8 * 10) + 8 * 8 * (m as u64).pow(2);
    let greedy = matches!(options.inducing.inducing_choice, None | Some(InducingChoiceName::Greedy));
    let chosen = if greedy { 8 * (rows as u64).saturating_mul(m as u64 + inputs as u64) } else { 0 };
    let searched = if options.prior_rows > 0 { options.prior_rows.min(rows) } else { m };
    let search = exact::Plan::evidence(searched, inputs, functions);
    let weights = (before_weights as u64).saturating_mul(8 * 24);
    let mapped = (rows as u64).saturating_mul(embedded).saturating_add(passing).saturating_add(weights);
    let training = kept.saturating_add(batch).saturating_add(fixed);
    let turns = if options.prior_rows > 0 { 1.0 } else { options.alternations as f64 };
    let learning = if request.start.hyperparameters().is_some() { 0.0 } else { EVALUATIONS };
    let greedy_flops = if greedy { rows as f64 * m64 * m64 } else { 0.0 };
    Work {
        bytes: training.max(chosen).max(search.peak_bytes).saturating_add(mapped),
        flops_per_step: flops / f64::max(steps as f64, 1.0),
        steps,
        expectations: (b * steps) as f64,
        prior_flops: turns
            * (greedy_flops
                + learning * (search.flops_per_evaluation + 6.0 * searched as f64 * before_weights as f64)),
    }
}
