//! Memory and work of a fit to a large table.

use super::following::{Blocks, refining_memory};
use super::sizes::{
    EVIDENCE_PROBES, EXACT_POSTERIOR_ROWS, EXACT_ROWS, few_rows_memory, may_search_again, table_bytes,
    trial_bytes,
};
use super::solver::Solver;
use crate::options::{
    BatchOptions, HyperparameterSearch, InducingChoiceName, InducingOptions, IterativeOptions,
    KernelPrecision, MethodName, PreconditionerName, SvgpOptions,
};
use crate::process::deep::{self, WORKING_BYTES};
use crate::process::file_rows::CANDIDATES;
use crate::process::gvi;
use crate::process::prepared::saved_plan;
use crate::rows::MOST_SET_ASIDE;
use crate::text::work;
use crate::{FitRequest, Method};
use posterior_gp::exact;
use posterior_gp::inducing::Plan as BoundPlan;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a fit needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalablePlan {
    /// The method.
    pub method: MethodName,
    /// Training rows.
    pub rows: usize,
    /// Inputs.
    pub inputs: usize,
    /// Bytes at the peak.
    pub peak_bytes: u64,
    /// Operations of one step.
    pub flops_per_step: f64,
    /// Steps at most.
    pub steps: usize,
    /// Passes over the rows (products with the matrix of all of them) of all steps; none for methods that have no such matrix.
    pub passes: Option<f64>,
    /// Steps of a stochastic search for hyperparameters times the passes of each; 0 without one.
    pub search_passes: usize,
    /// Operations of the search for hyperparameters: fits at 100 evaluations each, or steps whose solves use up their budgets.
    pub hyperparameter_flops: f64,
    /// Whether up to as much again follows where the evidence wants less noise than a solver can follow, which only the search tells.
    pub may_search_again: bool,
}

/// Bytes for each row of a fit from disk.
const DISK_ROW_BYTES: u64 = 96;

/// A part of a table that is read into a file, of so much memory: it is there as text, as cells, as numbers and as columns.
pub(in crate::process) fn disk_part_bytes(memory: u64) -> usize {
    usize::try_from(memory / 32).unwrap_or(usize::MAX).clamp(1 << 20, 32 << 20)
}

impl ScalablePlan {
    /// The plan of `method` (not exact, not auto): a bound, which counts buffers of one step as if they were never given back.
    pub fn new(request: &FitRequest, method: &Method, rows: usize, inputs: usize) -> Self {
        let iterative = method.iterative();
        // What bounds copy is in single precision, unlike their own numbers.
        let number = match method.precision_is_open() {
            true => 8,
            false => iterative.map_or(4, |options| options.system.bytes_of_number()),
        };
        let samples = iterative.map_or(0, |options| options.sampling.samples);
        let (n, d, s) = (rows as u64, inputs as u64, samples as u64 + 1);
        let m = method.inducing().map_or(0, InducingOptions::points).min(rows) as u64;
        let product = |a: u64, b: u64| a.saturating_mul(b);
        let data = table_bytes(rows, inputs, number);
        let trained = training_work((request, method), deep::Scatter::Gaussian, rows, inputs);
        let steps = trained.map_or_else(|| method.steps(rows), |own| own.steps);
        let kernel = |pairs: f64| pairs * (2.0 * inputs as f64 + 30.0);
        let batch = method.batches().map_or(512, BatchOptions::solver_batch).min(rows) as f64;
        let columns = 2.0 * s as f64;
        // What is saved is copied twice, in double precision: out of the solver's form, and into tensors.
        let checkpoint = |rows: u64, blocks: u64| {
            let saved = method.large().is_some_and(|large| large.checkpoint.is_some());
            let copies = if saved { 2 } else { 0 };
            product(rows, 8 * copies * blocks * s)
        };
        let (weights, flops_per_step) = match method {
            // Solution, residual, direction, product, targets.
            Method::Cg(options) => {
                let system = &options.iterative.system;
                let rank = match system.preconditioner {
                    PreconditionerName::None => 0,
                    PreconditionerName::PivotedCholesky => system.rank(),
                    // The basis, its image and what is orthonormalised and decomposed, in f64: so much is measured.
                    PreconditionerName::Nystrom => system.rank().saturating_mul(16),
                };
                let rank = rank.min(rows.saturating_mul(16)) as u64;
                // The log evidence has a solve of its own, beside the weights.
                let probes = EVIDENCE_PROBES as u64 + 1;
                let blocks = (6 * s).max(s + 7 * probes);
                (
                    product(n, product(number, blocks + rank)).saturating_add(checkpoint(n, 3)),
                    2.0 * kernel((rows * rows) as f64 / 2.0)
                        + (rows as f64).powi(2) * (columns + 2.0 * probes as f64),
                )
            }
            // Iterate, velocity, average, a spare; the point, two gradients, what noise pulls, the regulariser's draws and its features; targets twice.
            Method::Sgd(_) => (
                product(n, number * (12 * s + 200)).saturating_add(checkpoint(n, 4)),
                kernel(batch * rows as f64) + 2.0 * batch * rows as f64 * columns,
            ),
            // Two iterates, targets and the draws they come from; a block, and its gradients and directions.
            Method::Sap(options) => {
                let b = options.block_of(rows) as u64;
                let own = options.block_bytes(rows).saturating_add(product(b, 4 * s * (number + 8)));
                let pairs = b as f64 * rows as f64;
                (
                    product(n, number * 5 * s).saturating_add(own).saturating_add(checkpoint(n, 2)),
                    (kernel(pairs) + pairs * columns) * (1.0 + options.block_share(rows)),
                )
            }
            Method::InducingSgd(_) => {
                let pairs = batch * m as f64;
                (
                    product(m, number * (12 * s + 200)).saturating_add(checkpoint(m, 4)),
                    kernel(pairs) + 2.0 * pairs * columns,
                )
            }
            Method::Sgpr(_) => {
                let plan = BoundPlan::collapsed(rows, inputs, 1, m as usize);
                (plan.peak_bytes, plan.flops_per_step)
            }
            Method::Svgp(options) => {
                let plan = stochastic_bound(rows, inputs, m as usize, options.batch());
                (plan.peak_bytes, plan.flops_per_step)
            }
            _ => match trained {
                Some(own) => {
                    // Features count theirs.
                    let working = if method.gvi().is_some() { WORKING_BYTES } else { 0 };
                    (own.bytes.saturating_add(working), own.flops_per_step)
                }
                // Look-ahead, velocity, average, targets, and the draws they come from.
                None => (
                    product(n, number * 6 * s).saturating_add(checkpoint(n, 3)),
                    kernel(batch * rows as f64) + batch * rows as f64 * columns,
                ),
            },
        };
        let passes = match method.solver(rows, request.seed) {
            Some(Solver::Rows(solver)) => {
                let share = solver.rows_of_a_step(rows, samples + 1) as f64 / rows.max(1) as f64;
                Some(steps as f64 * share)
            }
            _ => None,
        };
        let mut search_passes = 0;
        let (peak_of_search, hyperparameter_flops) = match iterative {
            Some(options) if request.hyperparameters.is_none() => {
                let (peak, flops) = search(options, rows, inputs, request.memory);
                let blocks = Blocks { request, options, rows, inputs };
                let [exactly, by_steps] = [blocks.exactly(), blocks.by_steps()];
                search_passes = match options.search.hyperparameter_search.is_stochastic() {
                    true => options.passes_of_search(),
                    false if exactly.is_none() && by_steps.is_some() => {
                        options.following_blocks().passes_of_search()
                    }
                    false => 0,
                };
                let bytes = [exactly, by_steps].into_iter().flatten().map(|own| own.bytes);
                // Of a budget they take what that allows. Planned seconds are those of 60 in 100 evaluations, and these are all that there are.
                let first = exactly.or(by_steps).filter(|_| request.time_budget.is_none());
                let own = first.map_or(0.0, |own| EVALUATIONS / 60.0 * own.flops);
                (bytes.fold(peak, u64::max), flops + own)
            }
            _ => (0, trained.map_or(0.0, |own| own.prior_flops)),
        };
        let cache = iterative.map_or(0, |options| options.system.cache as u64);
        // Frequencies and weights of prior functions.
        let prior = iterative.map_or(0, |IterativeOptions { sampling, .. }| {
            let groups = samples.div_ceil(sampling.samples_per_features.max(1)) as u64;
            // Each has its frequencies; weights are one for each sample, whichever group it is in.
            product(sampling.random_features as u64, number * 2 * (s + groups * d))
        });
        // Greedy choices keep the rows of a pivoted factor.
        let greedy = method.inducing().is_some_and(|o| o.inducing_choice == Some(InducingChoiceName::Greedy));
        // Bounds choose among so many at most.
        let bound = matches!(method, Method::Sgpr(_) | Method::Svgp(_));
        let among = if bound { n.min(CANDIDATES as u64) } else { n };
        let chosen = if greedy { product(among, m).saturating_mul(8) } else { 0 };
        let solver = weights
            .saturating_add(prior)
            .max(chosen)
            .saturating_add(cache.min(product(n, n).saturating_mul(number)))
            // Plans of bounds have their own.
            .saturating_add(if iterative.is_some() { WORKING_BYTES } else { 0 });
        // What is tried by `auto` is kept until something is better: the factor of few rows, then the weights of descent beside the bound's work.
        let solver = if let (Method::Auto(auto), Method::Sdd(_)) = (&request.method, method) {
            let most = few_rows_memory(request.memory);
            let search = &auto.descent.iterative.search;
            let m = InducingOptions::default().points().min(rows);
            let exact = |most_rows: usize| saved_plan(most_rows.min(rows), inputs).peak_bytes.min(most);
            let few = exact(search.refining_rows.max(search.block_size));
            let bound = stochastic_bound(rows, inputs, m, SvgpOptions::default().batch());
            let kept = product(n, number * 2 * s).saturating_add(prior);
            // One after the other, beside the best so far: descent, more rows exactly, the bound.
            let more = exact(EXACT_ROWS);
            // Instead of descent, where that fits: what is tried last is left out where it does not fit beside it.
            let whole = whole_posterior(request, rows, inputs);
            let beside = whole.map(|_| product(n, n).saturating_mul(8).saturating_add(bound.peak_bytes));
            let beside = beside.filter(|bytes| data.saturating_add(*bytes) <= request.memory);
            // Solvers that may be taken instead of descent are those that fit.
            let others = auto.instead_of_descent().into_iter().map(|method| {
                let own = Self::new(request, &method, rows, inputs).peak_bytes.saturating_add(few);
                if own <= request.memory { own.saturating_sub(data) } else { 0 }
            });
            let others = others.fold(0, u64::max);
            [
                whole.map_or(0, |bytes| few.saturating_add(bytes)),
                beside.unwrap_or_default(),
                others,
                few.saturating_add(trial_bytes(rows, inputs, request.memory)),
                solver.saturating_add(few),
                kept.max(few).saturating_add(few).saturating_add(more),
                kept.max(few).max(more).saturating_add(bound.peak_bytes),
            ]
            .into_iter()
            .fold(0, u64::max)
        } else {
            solver
        };
        Self {
            method: method.name(),
            rows,
            inputs,
            peak_bytes: data.saturating_add(solver.max(peak_of_search)),
            flops_per_step,
            steps,
            passes,
            search_passes,
            hyperparameter_flops,
            may_search_again: iterative.is_some_and(|options| may_search_again(request, options)),
        }
    }

    /// Operations of the pass over all rows that ends the stochastic bound of Gaussian noise: of the collapsed bound's evaluation, which has two more for the gradient.
    pub(crate) fn closing_flops(options: &SvgpOptions, rows: usize, inputs: usize) -> f64 {
        BoundPlan::collapsed(rows, inputs, 1, options.inducing.points().min(rows)).flops_per_step / 3.0
    }

    /// The plan of a method on rows that stand in a file, reading the table included: what grows with the rows are numbers of rows, fingerprints, and how repeated rows are found. None for methods that look at all rows at once.
    pub(crate) fn from_disk(
        request: &FitRequest,
        method: &Method,
        rows: usize,
        inputs: usize,
    ) -> Option<Self> {
        if method.disk().is_none() || matches!(method.deep(), Some((_, kind, _)) if kind.dense) {
            return None;
        }
        let m = method.inducing().map_or(0, InducingOptions::points).min(rows);
        let (own, flops_per_step, steps) = match method {
            Method::Sgpr(options) => {
                let plan = BoundPlan::collapsed(rows, inputs, 1, m).elsewhere(inputs, 1);
                (plan.peak_bytes, plan.flops_per_step, options.steps())
            }
            Method::Svgp(options) => {
                let plan = stochastic_bound(rows, inputs, m, options.batch()).elsewhere(inputs, 1);
                (plan.peak_bytes, plan.flops_per_step, options.steps())
            }
            _ => {
                let own = deep::work((request, method), deep::Scatter::Gaussian, rows, inputs)?;
                // The order of an epoch; rows that are set aside.
                let order = (rows as u64).saturating_mul(8);
                let aside = (rows.min(2 * MOST_SET_ASIDE) as u64).saturating_mul(8 * (inputs as u64 + 2));
                (own.bytes.saturating_add(order).saturating_add(aside), own.flops_per_step, own.steps)
            }
        };
        let candidates = rows.min(CANDIDATES) as u64;
        // Gathered, standardised, in units of lengthscales; greedy choices keep the rows of a pivoted factor.
        let greedy =
            method.inducing().is_some_and(|own| own.inducing_choice == Some(InducingChoiceName::Greedy));
        let factor = if greedy { m as u64 } else { 0 };
        let chosen = candidates.saturating_mul(8 * (4 * (inputs as u64 + 2) + factor));
        // The densest place of a plane is looked for among all rows.
        let each = DISK_ROW_BYTES + if inputs == 2 { 40 } else { 0 };
        let part = (disk_part_bytes(request.memory) as u64)
            .min((rows as u64).saturating_mul(64 * (inputs as u64 + 2)));
        let bytes = [own, chosen, (rows as u64).saturating_mul(each), 4 * part];
        Some(Self {
            method: method.name(),
            rows,
            inputs,
            peak_bytes: bytes.into_iter().fold(0, u64::saturating_add),
            flops_per_step,
            steps,
            passes: None,
            search_passes: 0,
            // The bound learns them.
            hyperparameter_flops: 0.0,
            may_search_again: false,
        })
    }

    /// The same in the words of the exact method's plan, for errors and headers.
    pub(crate) fn as_exact(&self) -> exact::Plan {
        exact::Plan {
            rows: self.rows,
            inputs: self.inputs,
            targets: 1,
            peak_bytes: self.peak_bytes,
            flops_per_evaluation: self.flops_per_step,
        }
    }
}

/// What a method takes that trains features, or a mean and a covariance, on targets that scatter so; None for others.
pub(in crate::process) fn training_work(
    (request, method): (&FitRequest, &Method),
    scatter: deep::Scatter,
    rows: usize,
    inputs: usize,
) -> Option<deep::Work> {
    let varied = || Some(gvi::work(method.gvi()?, request, (rows, inputs, scatter.functions())));
    deep::work((request, method), scatter, rows, inputs).or_else(varied)
}

/// The stochastic bound with the pass over all rows that ends it.
fn stochastic_bound(rows: usize, inputs: usize, inducing: usize, batch: usize) -> BoundPlan {
    let plan = BoundPlan::stochastic(rows, inputs, 1, inducing, 1, 1, batch);
    let closing = BoundPlan::collapsed(rows, inputs, 1, inducing);
    BoundPlan { peak_bytes: plan.peak_bytes.max(closing.peak_bytes), ..plan }
}

/// Bytes of the exact posterior of all rows, where `auto` makes it: not of too many, and within the memory beside the posterior of few.
pub(in crate::process) fn whole_posterior(request: &FitRequest, rows: usize, inputs: usize) -> Option<u64> {
    let bytes = saved_plan(rows, inputs).peak_bytes;
    let beside = few_rows_memory(request.memory).saturating_add(table_bytes(rows, inputs, 8));
    (rows <= EXACT_POSTERIOR_ROWS && bytes.saturating_add(beside) <= request.memory).then_some(bytes)
}

/// Evaluations of a search that are planned for.
const EVALUATIONS: f64 = 100.0;

/// Bytes at the peak and operations of a search for hyperparameters.
fn search(options: &IterativeOptions, rows: usize, inputs: usize, memory: u64) -> (u64, f64) {
    let asked = &options.search;
    let averages = || {
        let own = exact::Plan::evidence(asked.neighbourhood_size.min(rows), inputs, 1);
        let evaluations = EVALUATIONS * asked.neighbourhoods as f64;
        (own.peak_bytes, evaluations * own.flops_per_evaluation)
    };
    // The second stage takes as many rows as fit, from a point that is near its end.
    let blocks = || {
        let first = asked.blocks(0).plan(rows, inputs);
        let second = exact::Plan::evidence(asked.refining_rows.min(rows), inputs, 1);
        let flops =
            EVALUATIONS * first.flops_per_evaluation + 0.25 * EVALUATIONS * 1.2 * second.flops_per_evaluation;
        (first.peak_bytes.max(second.peak_bytes.min(refining_memory(memory))), flops)
    };
    match asked.hyperparameter_search {
        HyperparameterSearch::Neighbourhoods => return averages(),
        HyperparameterSearch::Blocks => return blocks(),
        HyperparameterSearch::Stochastic | HyperparameterSearch::Refined => {}
    }
    let search = options.stochastic_search(0, rows, memory);
    let plan = match options.system.precision() {
        KernelPrecision::Single => search.plan::<f32>(rows, inputs, 1),
        KernelPrecision::Double => search.plan::<f64>(rows, inputs, 1),
    };
    let peak = plan.peak_bytes.saturating_add(options.saved_solutions(rows));
    let flops = search.steps as f64 * plan.flops_per_evaluation;
    match asked.hyperparameter_search {
        HyperparameterSearch::Refined => (peak.max(blocks().0), flops + blocks().1),
        _ => (peak, flops),
    }
}

impl fmt::Display for ScalablePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {} for each of at most {} steps",
            self.method,
            self.as_exact(),
            work(self.flops_per_step),
            self.steps
        )?;
        if let Some(passes) = self.passes {
            let digits = if passes < 10.0 { 1 } else { 0 };
            write!(f, " ({passes:.digits$} passes over the rows)")?;
        }
        if self.hyperparameter_flops > 0.0 {
            write!(f, ", {} for hyperparameters", work(self.hyperparameter_flops))?;
        }
        if self.search_passes > 0 {
            write!(f, " ({} passes among them)", self.search_passes)?;
        }
        if self.may_search_again {
            write!(f, ", up to as much again where the evidence wants less noise than solvers can follow")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LargeTableOptions;
    use posterior_optim::Constraint;

    /// A hundred batches of 512 rows are a pass of 51,200; an iteration of conjugate gradients is one; bounds make none.
    #[test]
    fn plans_say_passes() {
        let planned = |name: MethodName, change: &dyn Fn(&mut IterativeOptions)| {
            let mut request = FitRequest { method: name.into(), ..FitRequest::default() };
            if let Some(options) = request.method.iterative_mut() {
                options.large = LargeTableOptions { iterations: Some(100), ..options.large.clone() };
                options.search.refining_rows = 0;
                change(options);
            }
            ScalablePlan::new(&request, &request.method, 51_200, 3)
        };
        let blocks = &|_: &mut IterativeOptions| ();
        let descent = planned(MethodName::Sdd, blocks);
        assert_eq!((descent.passes, descent.search_passes), (Some(1.0), 0));
        assert!(descent.to_string().contains("as much again where"), "{descent}");
        let bounded = planned(MethodName::Sdd, &|options| {
            let parameter = "matern32.variance".into();
            options.evidence.constraints.fix.push(Constraint::Fixed { parameter, value: Some(1.0) });
        });
        assert!(!bounded.may_search_again && !planned(MethodName::Svgp, blocks).may_search_again);
        assert!(descent.to_string().contains("100 steps (1.0 passes over the rows)"), "{descent}");
        assert_eq!(planned(MethodName::Cg, blocks).passes, Some(100.0));
        assert_eq!(planned(MethodName::Svgp, blocks).passes, None);
        let searched = planned(MethodName::Cg, &|options| {
            options.search.hyperparameter_search = HyperparameterSearch::Stochastic;
            options.search.search_passes = 2;
            options.evidence.steps = Some(40);
        });
        assert_eq!(searched.search_passes, 80);
        assert!(searched.to_string().ends_with("(80 passes among them)"), "{searched}");
    }
}
