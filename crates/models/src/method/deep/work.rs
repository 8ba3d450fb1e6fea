//! What training takes, for plans.

use super::basis::{Sizes, sizes};
use super::targets::{Scatter, settings};
use crate::method::training::PLAIN_ROWS;
use crate::options::{DbkOptions, DeepKind, GO_ON, Setting};
use crate::prepare::{CANDIDATES, saved_plan};
use crate::{FitRequest, Method};
use posterior_gp::exact;
use posterior_linear::low_rank::Training;

/// Tiles, features of blocks, buffers of threads.
pub(crate) const WORKING_BYTES: u64 = 64 << 20;

/// What training takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Work {
    /// At the peak.
    pub(crate) bytes: u64,
    /// Operations of a step, as an average over all ways to train.
    pub(crate) flops_per_step: f64,
    /// Steps of all ways at most.
    pub(crate) steps: usize,
    /// Expected log densities of rows that all steps together take at most, on a bound.
    pub(crate) expectations: f64,
    /// Operations of learning a prior and choosing points.
    pub(crate) prior_flops: f64,
}

/// What training features of targets takes that scatter so; None for other methods.
pub(crate) fn work(
    (request, method): (&FitRequest, &Method),
    scatter: Scatter,
    rows: usize,
    inputs: usize,
) -> Option<Work> {
    let (options, kind, embedding) = method.deep()?;
    // Of the network that is named: how many features there are is said by its outputs.
    let sizes = sizes((options, kind, embedding), inputs);
    if kind.dense {
        return Some(dense((options, kind), sizes, rows, inputs));
    }
    let Sizes { activations, weights, features: m, .. } = sizes;
    let latents = scatter.functions();
    // Looks at the rows set aside pass as many of them at a time as predictions do.
    let looks = rows.min(4096) as u64;
    let row = (4 * activations + 24 * m) as u64;
    let settings = settings((options, kind), scatter, (rows, m), request);
    let (mut flops, mut steps, mut bytes) = (0.0, 0.0, 0);
    let (mut roots, mut expectations) = (1, 0.0);
    for setting in &settings {
        let options = &setting.options;
        let batches = options.training.on_batches();
        let (b, full) = (batches.map_or(rows, |batches| batches.size), batches.is_none());
        let own = match options.training {
            Training::Batches { .. } if !options.shared_root => latents,
            _ => 1,
        };
        roots = roots.max(own);
        let (b64, m64) = (b as f64, m as f64);
        let dense = if full { 6.0 } else { 8.0 } * b64 * m64 * m64 + 4.0 * m64.powi(3);
        flops += options.steps as f64 * (6.0 * b64 * weights as f64 + own as f64 * dense);
        steps += options.steps as f64;
        let kept = if full { options.kept_bytes as u64 } else { u64::MAX };
        // Each root multiplies the batch's features.
        let products = (8 * m * (own - 1)) as u64;
        bytes = bytes.max((b as u64).saturating_mul(row.saturating_add(products)).min(kept));
        if matches!(options.training, Training::Batches { power, .. } if power == 0.0) {
            expectations += options.steps as f64 * b64;
        }
    }
    let mut most: Vec<usize> = settings.iter().map(|setting| setting.options.steps).collect();
    if settings.len() > GO_ON {
        // All begin, and some go on.
        let begun = settings.iter().map(Setting::first_steps).sum();
        most.sort_by(|a, b| b.cmp(a));
        most.truncate(GO_ON);
        most.push(begun);
    }
    // Weights with their moments and the best of them; factors.
    let fixed = (weights as u64 + (roots * m * m) as u64).saturating_mul(8 * 12);
    let training = bytes.saturating_add(looks.saturating_mul(row)).saturating_add(fixed);
    // Rows that inducing points are chosen among, where these are not all.
    let among = if kind.inducing && rows > CANDIDATES { 8 * CANDIDATES * (inputs + 1) } else { 0 };
    let training = training.max(among as u64);
    // A plain process is fitted to some rows afterwards.
    let bytes = training.max(exact::Plan::evidence(PLAIN_ROWS.min(rows), inputs, 1).peak_bytes);
    Some(Work {
        bytes: bytes.saturating_add(WORKING_BYTES),
        flops_per_step: flops / f64::max(steps, 1.0),
        steps: most.into_iter().sum(),
        expectations,
        prior_flops: 0.0,
    })
}

/// The same of the process itself behind a network: the matrix of all rows, which is in the file as a triangle; what rows keep on their way through the network; a block of rows to look at.
fn dense(
    (options, kind): (&DbkOptions, DeepKind),
    Sizes { activations, weights, outputs: width, .. }: Sizes,
    rows: usize,
    inputs: usize,
) -> Work {
    let own = saved_plan(rows, width);
    let told = options.settings(kind, rows, 0).into_iter().next().map(|setting| setting.options);
    let kept = told.as_ref().map_or(0, |told| told.kept_bytes as u64);
    let row = (4 * activations + 8 * width) as u64;
    let looks = (2 * 8 * 512_u64).saturating_mul(rows as u64);
    let bytes = (rows as u64).saturating_mul(row).min(kept).saturating_add(looks);
    let training =
        own.peak_bytes.saturating_add(bytes).saturating_add((weights as u64).saturating_mul(8 * 12));
    // The plain process is fitted beside the factor.
    let plain = exact::Plan::evidence(PLAIN_ROWS.min(rows), inputs, 1).peak_bytes;
    Work {
        bytes: training.saturating_add(plain).saturating_add(WORKING_BYTES),
        flops_per_step: own.flops_per_evaluation + 6.0 * rows as f64 * weights as f64,
        steps: told.map_or(0, |told| told.steps),
        expectations: 0.0,
        prior_flops: 0.0,
    }
}
