//! Numbers of rows and bytes that plans and fits share.

use crate::FitRequest;
use crate::options::{HyperparameterSearch, IterativeOptions};
use crate::prepare::saved_plan;
use posterior_optim::Constraint;

/// Up to so many rows the exact method is chosen, if it fits: its cubic cost is then minutes on two cores.
pub const EXACT_ROWS: usize = 6000;

/// Up to so many rows `auto` makes the exact posterior of all of them with hyperparameters of some, where memory and time allow: two minutes on two cores. Its file has four bytes for each pair of rows, 1.6 gigabytes here, and every
/// prediction reads it.
pub const EXACT_POSTERIOR_ROWS: usize = 20_000;

/// Probes of the log evidence that fits by conjugate gradients state.
pub(crate) const EVIDENCE_PROBES: usize = 16;

/// Rows of the plain process: seconds.
pub(crate) const PLAIN_ROWS: usize = 800;

/// What of the memory the posterior of few rows may take: it is kept while others are tried.
pub(crate) fn few_rows_memory(limit: u64) -> u64 {
    limit / 4
}

/// Rows that solvers are tried on: few enough for a factor of them, and for a second or two in all.
pub(crate) const SIZES: [usize; 2] = [1000, 2000];

/// Held-back rows that are predicted, at most.
pub(crate) const PREDICTED: usize = 512;

/// Bytes that trying solvers on so many rows takes: their exact posterior, and beside it their matrix and that between them and what is predicted.
fn bytes_of(size: usize, inputs: usize) -> u64 {
    saved_plan(size, inputs).peak_bytes.saturating_add(8 * size as u64 * (size + PREDICTED) as u64)
}

/// The sizes that a table of so many rows is tried on, within the memory that is left to few rows.
pub(crate) fn trial_sizes(rows: usize, inputs: usize, memory: u64) -> impl Iterator<Item = usize> {
    let most = few_rows_memory(memory);
    SIZES.into_iter().filter(move |&size| size < rows && bytes_of(size, inputs) <= most)
}

/// Bytes that trying solvers takes at the peak.
pub(crate) fn trial_bytes(rows: usize, inputs: usize, memory: u64) -> u64 {
    trial_sizes(rows, inputs, memory).map(|size| bytes_of(size, inputs)).fold(0, u64::max)
}

/// Whether there may be a second search at all, whatever the first one finds.
pub(crate) fn may_search_again(request: &FitRequest, options: &IterativeOptions) -> bool {
    let free = |own: &Constraint| {
        let name = own.parameter();
        name.starts_with("noise_variance") || !name.contains("variance")
    };
    request.start.hyperparameters().is_none()
        && options.search.hyperparameter_search == HyperparameterSearch::Blocks
        && options.evidence.steps != Some(0)
        && options.evidence.constraints.all().iter().all(free)
}

/// The table's numbers as read, as standardised, and in the kernel's precision.
pub(crate) fn table_bytes(rows: usize, inputs: usize, number: u64) -> u64 {
    (rows as u64).saturating_mul((2 * inputs as u64 + 4) * 8 + inputs as u64 * number)
}
