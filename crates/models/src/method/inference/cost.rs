//! What a fit of classes, counts or outliers takes: bytes, operations, seconds.

use super::plan::{SEARCH_WORK, TRIAL_WORK};
use crate::method::deep::Scatter;
use crate::method::large;
use crate::options::{InferenceName, PseudoCount, Start, SvgpOptions};
use crate::{FitRequest, Method, ScalablePlan};
use posterior_gp::exact::Plan;
use posterior_gp::inducing;
use posterior_gp::inducing::collapsed;

/// Evaluations that a search is taken to need.
const EVALUATIONS: f64 = 40.0;

/// All trials of matchings and pseudo-counts, in cubes of the rows that they are made on: eight of two searches on half of the rows (twenty evaluations each) and two posteriors with every row left out.
const TRIALS: f64 = 8.0 * (2.0 * 20.0 / 8.0 + 2.0);

/// Seconds of the expected log density of one row, for each class: integrals over latent values, whose nodes grow with their spread; so many are measured where classes separate well.
const EXPECTATION: f64 = 1e-4;

/// The same on batches of learned features, whose latent values spread little.
const SOFTMAX: f64 = 5e-6;

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) inputs: usize,
    pub(crate) functions: usize,
    /// What learned features are told of the targets.
    pub(crate) scatter: Scatter,
    /// Rows that a pseudo-count is chosen on.
    pub(crate) trial_rows: usize,
}

/// What a fit takes.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    /// Memory, and the work of one evaluation.
    pub(crate) plan: Plan,
    /// Operations of all of it.
    pub(crate) flops: f64,
    /// What is done in other ways than a factorisation is: the solver of each function, with its operations.
    solver: Option<(Box<FitRequest>, f64)>,
    /// Seconds that are not operations of matrices.
    integrals: f64,
}

impl Cost {
    /// Of an inference by a method that it has.
    pub(crate) fn of(inference: InferenceName, method: &Method, request: &FitRequest, size: Size) -> Self {
        let Size { rows: n, inputs: d, functions, scatter, .. } = size;
        if inference == InferenceName::Laplace {
            let plan = Plan::laplace(n, d, functions, functions > 1);
            return Self::new(plan, plan.flops_per_evaluation * EVALUATIONS);
        }
        let (asked, settings) = ((request, method), method.settings());
        let Some(own) = settings.training(asked, scatter, (n, d)) else {
            return settings.cost_of_labels(asked, size);
        };
        let bytes = own.bytes.saturating_add(8 * (n as u64).saturating_mul(4 * d as u64 + 8));
        let each = if functions > 1 { SOFTMAX * functions as f64 } else { 0.0 };
        let flops = own.prior_flops + own.flops_per_step * own.steps as f64;
        Self {
            integrals: each * own.expectations,
            ..Self::stepping(size, (bytes, own.flops_per_step), flops)
        }
    }

    fn new(plan: Plan, flops: f64) -> Self {
        Self { plan, flops, solver: None, integrals: 0.0 }
    }

    /// Of steps of so many bytes and operations each.
    fn stepping(size: Size, (peak_bytes, flops_per_evaluation): (u64, f64), flops: f64) -> Self {
        let plan = Plan::evidence(size.rows, size.inputs, 1);
        Self::new(Plan { peak_bytes, flops_per_evaluation, ..plan }, flops)
    }

    /// The stochastic bound of inducing points.
    pub(crate) fn of_bound(options: &SvgpOptions, size: Size) -> Self {
        let Size { rows: n, inputs: d, functions, .. } = size;
        let (m, batch) = (options.inducing.points().min(n), options.batch());
        let own = inducing::Plan::stochastic(n, d, 1, m, functions, functions, batch);
        let bytes = own.peak_bytes.saturating_add(8 * (n * d) as u64);
        let steps = options.steps() as f64;
        let each = if functions > 1 { EXPECTATION * (batch.min(n) * functions) as f64 } else { 0.0 };
        let flops = own.flops_per_step * steps;
        Self { integrals: each * steps, ..Self::stepping(size, (bytes, own.flops_per_step), flops) }
    }

    /// Exact processes: every function keeps its factor, and the search has three matrices: kernel, factor, adjoint.
    pub(crate) fn of_functions((request, method): (&FitRequest, &Method), size: Size) -> Self {
        let Size { rows: n, inputs: d, functions, .. } = size;
        let evaluation = Plan::evidence(n, d, 1);
        let matrix = 8 * (n as u64) * (n as u64);
        let kept = matrix.saturating_mul(functions as u64 + 2);
        let plan = Plan {
            peak_bytes: evaluation.peak_bytes.saturating_add(kept),
            flops_per_evaluation: functions as f64 * evaluation.flops_per_evaluation,
            ..evaluation
        };
        let conditioned = functions as f64 * (n as f64).powi(3) / 3.0;
        match request.output.pseudo_count {
            Some(PseudoCount::Learned) => Self::learned(plan, conditioned, request, size),
            _ => Self::new(plan, searches(method, request, size) + conditioned),
        }
    }

    /// The bound of all matchings that are compared on all rows, twice on half of them, and functions that are `conditioned` in the end as `regression` says.
    fn learned(regression: Plan, conditioned: f64, request: &FitRequest, size: Size) -> Self {
        let Size { rows: n, inputs: d, functions, .. } = size;
        let bound = Plan::gaussianised(n, d, functions);
        let matchings = if request.output.matching.is_some() || functions == 1 { 1.0 } else { 2.0 };
        // Of halves: an eighth of the work, and half of the evaluations; then rows left out, twice.
        let evaluations = EVALUATIONS * matchings;
        let whole = (evaluations + EVALUATIONS / 8.0) * bound.flops_per_evaluation;
        let each = if functions > 1 { EXPECTATION } else { EXPECTATION / 10.0 };
        let integrals = each * (n * functions) as f64 * (evaluations + EVALUATIONS / 2.0);
        let plan = Plan { peak_bytes: bound.peak_bytes.max(regression.peak_bytes), ..bound };
        Self { plan, flops: whole + 5.0 * conditioned, solver: None, integrals }
    }

    /// Functions one after the other, by a method for large tables.
    pub(crate) fn by_parts((request, method): (&FitRequest, &Method), size: Size) -> Self {
        let Size { rows: n, inputs: d, functions, trial_rows, .. } = size;
        let c = functions as u64;
        let own = ScalablePlan::new(request, method, n, d);
        let points = method.settings().shared_bound().map(|options| options.inducing.points().min(n));
        // Functions that are done keep what their predictions need.
        let kept = match points {
            // As much as the matrices of a search of all functions at once, which comes before.
            Some(m) => 24 * (m as u64).pow(2),
            None => 8 * (n as u64).saturating_mul(d as u64 + 70),
        };
        // Targets and noises of all functions, and the search's own copies of them with the inputs.
        let pseudo = 8 * (n as u64).saturating_mul(4 * c + 2 * d as u64 + 2 * c);
        let peak_bytes = own.peak_bytes.saturating_add(kept.saturating_mul(c)).saturating_add(pseudo);
        // What is tried comes before.
        let trial = Plan::several(trial_rows, d, functions, functions).peak_bytes;
        let matrices = 8 * (trial_rows as u64).pow(2).saturating_mul(c);
        let tried = trial.saturating_add(matrices).saturating_add(pseudo);
        let plan = Plan { peak_bytes: peak_bytes.max(tried), ..own.as_exact() };
        let searched = searches(method, request, size);
        match points {
            // Under hyperparameters of the search above: one pass over all rows for each function.
            Some(m) => {
                let m = m as f64;
                let kernel = n as f64 * m * (4.0 * d as f64 + 40.0);
                Self::new(plan, searched + functions as f64 * (2.0 * n as f64 * m * m + kernel))
            }
            None => {
                let solved = own.flops_per_step * own.steps as f64 * functions as f64;
                let mut request = request.clone();
                request.method = method.clone();
                request.start = Start::given(Vec::new());
                let solver = Some((Box::new(request), solved));
                Self { solver, ..Self::new(plan, searched + solved) }
            }
        }
    }

    /// Seconds on this machine, by what it does in some hundredths of one; None where the kernel cannot be measured on numbers that are made up.
    pub(crate) fn seconds(&self, request: &FitRequest, names: &[String], size: Size) -> Option<f64> {
        let (solved, solving) = match &self.solver {
            Some((own, flops)) => {
                let expected = large::expected(own, &own.method, size.rows, names)?;
                (*flops, expected.solver.unwrap_or(0.0) * size.functions as f64)
            }
            None => (0.0, 0.0),
        };
        let rate = large::rate(request, names)?;
        Some((self.flops - solved) / rate + solving + self.integrals)
    }
}

/// Operations of one evaluation of all functions' collapsed bounds of m inducing points on n rows; None where these are so many that hyperparameters are searched for on blocks of rows.
pub(crate) fn collapsed_search(functions: usize, n: usize, m: usize) -> Option<f64> {
    let passes = collapsed::passes_of_classes(functions, m);
    let operations = 6.0 * (passes * n) as f64 * (m * m) as f64 + 5.0 * functions as f64 * (m as f64).powi(3);
    (operations <= 10.0 * SEARCH_WORK).then_some(operations)
}

/// Operations of one evaluation of the search for hyperparameters.
fn evaluation(method: &Method, size: Size) -> f64 {
    let Size { rows: n, inputs: d, functions, .. } = size;
    if let Some(options) = method.settings().shared_bound() {
        // Rows that are held back are searched on by nobody.
        let n = n - options.large.held_back_of(n).min(n);
        let m = options.inducing.points().min(n);
        if let Some(operations) = collapsed_search(functions, n, m) {
            return operations + (n * m) as f64 * (10.0 * d as f64 + 40.0);
        }
    }
    SEARCH_WORK.min(functions as f64 * (n as f64).powi(3))
}

/// Operations of the searches for a pseudo-count and for hyperparameters.
fn searches(method: &Method, request: &FitRequest, size: Size) -> f64 {
    if request.start.hyperparameters().is_some() && request.output.pseudo_count.is_some() {
        return 0.0;
    }
    let cubes = |rows: usize| size.functions as f64 * (rows as f64).powi(3);
    let trials = match request.output.pseudo_count {
        Some(_) => 0.0,
        None => TRIALS * TRIAL_WORK.min(cubes(size.trial_rows)),
    };
    let learned = match request.start.hyperparameters() {
        Some(_) => 0.0,
        None => EVALUATIONS * evaluation(method, size),
    };
    trials + learned
}
