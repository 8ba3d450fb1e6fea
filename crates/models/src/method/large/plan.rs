//! Memory and work of a fit to a large table.

use super::refinement::{Blocks, refining_memory};
use crate::method::deep::{Scatter, WORKING_BYTES};
use crate::method::training::{few_rows_memory, may_search_again, table_bytes, trial_bytes};
use crate::options::{
    BatchOptions, HyperparameterSearch, InducingChoiceName, InducingOptions, IterativeOptions,
    KernelPrecision, MethodName, SvgpOptions,
};
use crate::prepare::{CANDIDATES, saved_plan};
use crate::text::work;
use crate::{EXACT_POSTERIOR_ROWS, EXACT_ROWS, FitRequest, Method, Solver};
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
pub(crate) fn disk_part_bytes(memory: u64) -> usize {
    usize::try_from(memory / 32).unwrap_or(usize::MAX).clamp(1 << 20, 32 << 20)
}

impl ScalablePlan {
    /// The plan of `method` (not exact, not auto): a bound, which counts buffers of one step as if they were never given back.
    pub fn new(request: &FitRequest, method: &Method, rows: usize, inputs: usize) -> Self {
        let (iterative, settings) = (method.iterative(), method.settings());
        let size = StepSize::new(request, method, rows, inputs);
        let StepSize { number, samples, .. } = size;
        let (n, d, s, m) = (rows as u64, inputs as u64, size.columns(), size.points() as u64);
        let product = |a: u64, b: u64| a.saturating_mul(b);
        let data = table_bytes(rows, inputs, number);
        let trained = settings.training((request, method), Scatter::Gaussian, (rows, inputs));
        let steps = trained.map_or_else(|| method.steps(rows), |own| own.steps);
        let (weights, flops_per_step) = match trained {
            Some(own) => {
                // Features count theirs.
                let working = if method.gvi().is_some() { WORKING_BYTES } else { 0 };
                (own.bytes.saturating_add(working), own.flops_per_step)
            }
            None => settings.step(&size),
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
            Some(options) if request.start.hyperparameters().is_none() => {
                let (peak, flops) = search(options, rows, inputs, request.limits.memory);
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
                let first = exactly.or(by_steps).filter(|_| request.limits.time.is_none());
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
        // Methods that look at some rows at a time choose among so many at most.
        let among = if method.disk().is_some() { n.min(CANDIDATES as u64) } else { n };
        let chosen = if size.is_greedy() { product(among, m).saturating_mul(8) } else { 0 };
        let solver = weights
            .saturating_add(prior)
            .max(chosen)
            .saturating_add(cache.min(product(n, n).saturating_mul(number)))
            // Plans of bounds have their own.
            .saturating_add(if iterative.is_some() { WORKING_BYTES } else { 0 });
        // What is tried by `auto` is kept until something is better: the factor of few rows, then the weights of descent beside the bound's work.
        let solver = if let Some(auto) = request.method.settings().compared_with(method) {
            let most = few_rows_memory(request.limits.memory);
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
            let beside = beside.filter(|bytes| data.saturating_add(*bytes) <= request.limits.memory);
            // Solvers that may be taken instead of descent are those that fit.
            let others = auto.instead_of_descent().into_iter().map(|method| {
                let own = Self::new(request, &method, rows, inputs).peak_bytes.saturating_add(few);
                if own <= request.limits.memory { own.saturating_sub(data) } else { 0 }
            });
            let others = others.fold(0, u64::max);
            [
                whole.map_or(0, |bytes| few.saturating_add(bytes)),
                beside.unwrap_or_default(),
                others,
                few.saturating_add(trial_bytes(rows, inputs, request.limits.memory)),
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

    /// The plan of a method on rows that stand in a file, reading the table included: what grows with the rows are numbers of rows, fingerprints, and how repeated rows are found. None for methods that look at all rows at once.
    pub(crate) fn from_disk(
        request: &FitRequest,
        method: &Method,
        rows: usize,
        inputs: usize,
    ) -> Option<Self> {
        let size = StepSize::new(request, method, rows, inputs);
        let (own, flops_per_step, steps) = method.settings().step_from_disk(&size)?;
        let candidates = rows.min(CANDIDATES) as u64;
        // Gathered, standardised, in units of lengthscales; greedy choices keep the rows of a pivoted factor.
        let factor = if size.is_greedy() { size.points() as u64 } else { 0 };
        let chosen = candidates.saturating_mul(8 * (4 * (inputs as u64 + 2) + factor));
        // The densest place of a plane is looked for among all rows.
        let each = DISK_ROW_BYTES + if inputs == 2 { 40 } else { 0 };
        let part = (disk_part_bytes(request.limits.memory) as u64)
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

/// A table, and what counts for the work of a step on it.
pub(crate) struct StepSize<'a> {
    pub(crate) request: &'a FitRequest,
    pub(crate) method: &'a Method,
    pub(crate) rows: usize,
    pub(crate) inputs: usize,
    /// Bytes of a number of the solver.
    pub(crate) number: u64,
    samples: usize,
}

impl<'a> StepSize<'a> {
    fn new(request: &'a FitRequest, method: &'a Method, rows: usize, inputs: usize) -> Self {
        let iterative = method.iterative();
        // What bounds copy is in single precision, unlike their own numbers.
        let number = match method.precision_is_open() {
            true => 8,
            false => iterative.map_or(4, |options| options.system.bytes_of_number()),
        };
        let samples = iterative.map_or(0, |options| options.sampling.samples);
        Self { request, method, rows, inputs, number, samples }
    }

    /// Columns of weights: those of the mean and of samples.
    pub(crate) fn columns(&self) -> u64 {
        self.samples as u64 + 1
    }

    /// Inducing points.
    pub(crate) fn points(&self) -> usize {
        self.method.inducing().map_or(0, InducingOptions::points).min(self.rows)
    }

    /// Whether they are chosen greedily, which keeps the rows of a pivoted factor.
    fn is_greedy(&self) -> bool {
        self.method.inducing().is_some_and(|own| own.inducing_choice == Some(InducingChoiceName::Greedy))
    }

    /// Rows of a batch.
    pub(crate) fn batch(&self) -> f64 {
        self.method.batches().map_or(512, BatchOptions::solver_batch).min(self.rows) as f64
    }

    /// Operations of so many entries of the kernel matrix.
    pub(crate) fn kernel(&self, pairs: f64) -> f64 {
        pairs * (2.0 * self.inputs as f64 + 30.0)
    }

    /// Bytes of so many blocks of all columns in a checkpoint. What is saved is copied twice, in double precision: out of the solver's form, and into tensors.
    pub(crate) fn checkpoint(&self, rows: u64, blocks: u64) -> u64 {
        let saved = self.method.large().is_some_and(|large| large.checkpoint.is_some());
        let copies = if saved { 2 } else { 0 };
        rows.saturating_mul(8 * copies * blocks * self.columns())
    }
}

/// Operations of the pass over all rows that ends the stochastic bound of Gaussian noise: of the collapsed bound's evaluation, which has two more for the gradient.
pub(crate) fn closing_flops(options: &SvgpOptions, rows: usize, inputs: usize) -> f64 {
    BoundPlan::collapsed(rows, inputs, 1, options.inducing.points().min(rows)).flops_per_step / 3.0
}

/// The stochastic bound with the pass over all rows that ends it.
pub(crate) fn stochastic_bound(rows: usize, inputs: usize, inducing: usize, batch: usize) -> BoundPlan {
    let plan = BoundPlan::stochastic(rows, inputs, 1, inducing, 1, 1, batch);
    let closing = BoundPlan::collapsed(rows, inputs, 1, inducing);
    BoundPlan { peak_bytes: plan.peak_bytes.max(closing.peak_bytes), ..plan }
}

/// Bytes of the exact posterior of all rows, where `auto` makes it: not of too many, and within the memory beside the posterior of few.
pub(crate) fn whole_posterior(request: &FitRequest, rows: usize, inputs: usize) -> Option<u64> {
    let bytes = saved_plan(rows, inputs).peak_bytes;
    let beside = few_rows_memory(request.limits.memory).saturating_add(table_bytes(rows, inputs, 8));
    (rows <= EXACT_POSTERIOR_ROWS && bytes.saturating_add(beside) <= request.limits.memory).then_some(bytes)
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
