//! Which solver is at its end first, foretold by what each of them takes on few rows.
//!
//! Systems of 1,000 and of 2,000 uniform rows with the hyperparameters that were found are solved by each solver until predictions of the held-back rows are those of the exact posterior of the same rows, which is known. A block of
//! sketch-and-project is as large a share of them as of the table, a batch of dual descent as many rows: what one step does then is alike, and how many it takes grows by a power of the rows that the two
//! sizes tell. The work of a step is counted ([`ScalablePlan`]), so that which solver is taken depends on no clock; one measurement makes seconds of it.

use super::Fitting;
use super::hyperparameters::{Searched, pathwise_model};
use super::judge::HeldBack;
use crate::method::large::plan::ScalablePlan;
use crate::method::training::{Forecast, PREDICTED, SIZES, trial_sizes};
use crate::options::{AutoOptions, KernelPrecision};
use crate::record::CONVERGED;
use crate::speed::seconds_of_batch;
use crate::{FitRequest, FitStage, Method, ModelError, Prepared, Solver, SolverPrecision};
use faer::{Mat, MatRef};
use posterior_gp::Observations;
use posterior_gp::exact::ExactGp;
use posterior_gp::iterative::{
    Blocks, Budget, Method as SolveMethod, PathwiseSettings, SketchAndProjectOptions, Start, Support,
};
use posterior_kernels::cross;
use posterior_optim::{Progress, Signal};

/// Steps between two looks at predictions grow by this factor.
const FACTOR: f64 = 1.1;

/// Most passes of sketch-and-project, batches of dual descent and iterations of conjugate gradients on few rows.
const PASSES: usize = 60;
const BATCHES: usize = 2000;
const ITERATIONS: usize = 200;

/// Double precision costs so much more than single.
const DOUBLE: f64 = 2.0;

/// The solvers that could be taken: descent, and the others that fit the memory beside `kept` bytes.
pub(crate) fn candidates(
    (request, options): (&FitRequest, &AutoOptions),
    (rows, inputs): (usize, usize),
    kept: u64,
) -> Vec<Method> {
    let fits = |method: &Method| {
        let plan = ScalablePlan::new(request, method, rows, inputs);
        plan.peak_bytes.saturating_add(kept) <= request.limits.memory
    };
    let others = options.instead_of_descent().into_iter().filter(fits);
    std::iter::once(options.descending()).chain(others).collect()
}

/// A forecast for each method, the one that is expected to be the first at its end first, descent before others that are as good; none where there are not rows or memory enough to try them. The observer is told each step and may end it ([`ModelError::Interrupted`]).
pub(crate) fn forecasts<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    (options, held): (&AutoOptions, &HeldBack),
    searched: &Searched<T>,
    methods: &[Method],
) -> Result<Vec<Forecast>, ModelError> {
    let Fitting { prepared, request, .. } = *fitting;
    let (n, d) = prepared.data.inputs().shape();
    let held = &held.first(PREDICTED);
    let tables = trial_sizes(n, d, request.limits.memory)
        .map(|size| SmallTable::draw(prepared, request, held, searched, size))
        .collect::<Result<Vec<_>, _>>()?;
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let step = seconds_of_step::<T>(prepared, (request, options), &searched.model)?;
    let descent = ScalablePlan::new(request, &options.descending(), n, d).flops_per_step;
    let own = if size_of::<T>() > 4 { DOUBLE } else { 1.0 };
    let mut all = Vec::new();
    for (part, method) in methods.iter().enumerate() {
        let mut watch = |progress: &Progress| {
            let shown = Progress { part, parts: methods.len(), ..*progress };
            (fitting.observer)(&shown, &FitStage::Forecast)
        };
        let double = method.precision() == KernelPrecision::Double;
        let steps = tables.iter().map(|table| match double {
            true => table.steps::<f64>((prepared, request), method, n, &mut watch),
            false => table.steps::<f32>((prepared, request), method, n, &mut watch),
        });
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let steps = match steps[..] {
            [few, more] => [few, more],
            // Where memory has room for one size, the other is what it leads to at most.
            [few] => [few, few.map(|few| few * SIZES[1] as f64 / SIZES[0] as f64)],
            [..] => [None, None],
        };
        let work = ScalablePlan::new(request, method, n, d).flops_per_step;
        let of_step = work / descent * if double { DOUBLE } else { 1.0 } / own;
        let cost = on_all_rows(steps, n).map(|steps| steps * of_step);
        let seconds = cost.map(|steps| steps * step);
        all.push((cost.unwrap_or(f64::INFINITY), Forecast { method: method.name(), steps, seconds }));
    }
    Ok(in_order(all))
}

/// Forecasts by their costs, the cheapest first; those that cost the same stay in their order.
fn in_order(mut all: Vec<(f64, Forecast)>) -> Vec<Forecast> {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, forecast)| forecast).collect()
}

/// Steps on n rows from those on few: what grows from one size to the next goes on growing, by no more than as the rows do.
fn on_all_rows([few, more]: [Option<f64>; 2], rows: usize) -> Option<f64> {
    let more = more?;
    let [first, last] = SIZES.map(|size| size as f64);
    let power = few.map_or(1.0, |few| (more / few).ln() / (last / first).ln()).clamp(0.0, 1.0);
    Some(more * (rows as f64 / last).max(1.0).powf(power))
}

/// Few rows of a table, and what is known of them.
struct SmallTable {
    data: Observations,
    model: ExactGp,
    /// Inputs of the held-back rows.
    inputs: Mat<f64>,
    /// What the prior mean leaves to the rows (h), and deviations of new observations.
    from_rows: Vec<f64>,
    deviations: Vec<f64>,
    seed: u64,
}

impl SmallTable {
    fn draw<T: SolverPrecision>(
        prepared: &Prepared,
        request: &FitRequest,
        held: &HeldBack,
        searched: &Searched<T>,
        size: usize,
    ) -> Result<Self, ModelError> {
        let blocks = Blocks { uniform: 1, neighbourhoods: 0, size, seed: request.seed };
        let data = prepared.data.select(&blocks.rows(&prepared.data)?[0])?;
        let model = searched.unraised();
        let exact = model.clone().condition(data.clone())?;
        let found = held.predictions(&exact)?;
        let prior = model.mean().evaluate(held.inputs().as_ref());
        Ok(Self {
            from_rows: found.mean.iter().enumerate().map(|(i, mean)| mean - prior[(i, 0)]).collect(),
            deviations: found.variance.iter().map(|v| v.sqrt()).collect(),
            inputs: held.inputs().clone(),
            data,
            model,
            seed: request.seed,
        })
    }

    /// Steps until predictions are the exact ones, of a table of which these are as many as `rows`; none where that is not in sight.
    fn steps<T: SolverPrecision>(
        &self,
        (prepared, request): (&Prepared, &FitRequest),
        method: &Method,
        rows: usize,
        watch: &mut dyn FnMut(&Progress) -> Signal,
    ) -> Result<Option<f64>, ModelError> {
        let size = self.data.rows();
        let Some(Solver::Rows(mut solver)) = method.solver(rows, self.seed) else { return Ok(None) };
        let most = match &mut solver {
            SolveMethod::SketchAndProject(options) => {
                let share = options.block.map_or(1.0, |block| block as f64 / rows as f64);
                let block = ((share * size as f64).ceil() as usize).clamp(1, size);
                *options = SketchAndProjectOptions { block: Some(block), ..options.clone() };
                PASSES * size.div_ceil(block)
            }
            SolveMethod::ConjugateGradients(_) => ITERATIONS,
            _ => BATCHES,
        };
        // As solvable as all rows are made for it.
        let mut model = self.model.clone();
        let evidence = method.evidence().cloned().unwrap_or_default();
        super::hyperparameters::solvable::<T>(&mut model, prepared, &evidence);
        let process = pathwise_model::<T>(prepared, request, &model)?;
        let (held, rows_seen) = (narrow::<T>(self.inputs.as_ref()), narrow::<T>(self.data.inputs()));
        let across = cross(&*process.kernel, held.as_ref(), rows_seen.as_ref());
        let settings = PathwiseSettings {
            // Averages are laid out for as many as the table's solve may have.
            budget: Budget { steps: method.steps(rows).max(most), time: None, tolerance: 1e-10 },
            samples: 0,
            seed: self.seed,
            cache_bytes: 8 * size * size,
            ..PathwiseSettings::default()
        };
        let (mut looks, mut next, mut interrupted) = (Vec::new(), 1, false);
        let solved = process.condition(
            self.data.clone(),
            Support::Rows(solver),
            settings,
            Start::Zero,
            &mut |progress, iterate| {
                if watch(&Progress { steps_planned: most, ..*progress }) == Signal::Stop {
                    interrupted = true;
                    return Signal::Stop;
                }
                if progress.step < next && progress.step < most {
                    return Signal::Continue;
                }
                next = ((progress.step as f64 * FACTOR).ceil() as usize).max(progress.step + 1);
                let error = self.error(across.as_ref(), iterate.weights().as_ref());
                looks.push((progress.step as f64, error));
                match error <= CONVERGED || progress.step >= most {
                    true => Signal::Stop,
                    false => Signal::Continue,
                }
            },
        );
        if interrupted {
            return Err(ModelError::Interrupted);
        }
        // One that cannot solve so few rows is none.
        Ok(solved.ok().and_then(|_| in_sight(&looks)))
    }

    /// How far predicted means are from the exact ones, in predicted standard deviations (root mean square).
    fn error<T: SolverPrecision>(&self, across: MatRef<'_, T>, weights: MatRef<'_, T>) -> f64 {
        let found = across * weights.col(0);
        let rows = self.from_rows.iter().zip(&self.deviations).enumerate();
        let sum: f64 = rows.map(|(i, (exact, s))| ((found[i].to_f64() - exact) / s).powi(2)).sum();
        (sum / self.from_rows.len().max(1) as f64).sqrt()
    }
}

/// Steps at which the error is small enough: seen, or where it falls by a power of the steps over the last half of them.
fn in_sight(looks: &[(f64, f64)]) -> Option<f64> {
    let &(end, error) = looks.last()?;
    if error <= CONVERGED {
        return Some(end);
    }
    let &(middle, before) = looks.iter().rev().find(|(step, _)| *step <= end / 2.0)?;
    let power = (before / error).ln() / (end / middle).ln();
    // Slower than this is no convergence.
    const SLOWEST: f64 = 0.1;
    // So many times what was seen is no forecast.
    const FARTHEST: f64 = 100.0;
    let steps = end * (error / CONVERGED).powf(1.0 / power);
    (power > SLOWEST && steps <= FARTHEST * end).then_some(steps)
}

fn narrow<T: SolverPrecision>(matrix: MatRef<'_, f64>) -> Mat<T> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| T::from_f64(matrix[(i, j)]))
}

/// Seconds of a step of dual descent, measured: a batch's product with rows of the table, and a pass over its numbers.
fn seconds_of_step<T: SolverPrecision>(
    prepared: &Prepared,
    (request, options): (&FitRequest, &AutoOptions),
    model: &ExactGp,
) -> Result<f64, ModelError> {
    /// Rows that are measured on.
    const MOST: usize = 16_384;
    let n = prepared.data.rows();
    let (m, columns) = (n.min(MOST), options.descent.iterative.sampling.samples + 1);
    let batch = options.descent.batches.solver_batch().min(m);
    let kernel = pathwise_model::<T>(prepared, request, model)?.kernel;
    let x = narrow(prepared.data.inputs().subrows(0, m));
    Ok((seconds_of_batch(&*kernel, x.as_ref(), batch, columns) * n as f64 / m as f64).max(1e-6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Limits, MethodName};

    #[test]
    fn the_cheapest_solver_is_the_first_and_one_without_an_end_the_last() {
        let of = |method, cost: f64| {
            let seconds = cost.is_finite().then_some(cost);
            (cost, Forecast { method, steps: [seconds; 2], seconds })
        };
        let names = |costs: [f64; 3]| {
            let methods = [MethodName::Sdd, MethodName::Cg, MethodName::Sap];
            let all = methods.into_iter().zip(costs).map(|(method, cost)| of(method, cost)).collect();
            in_order(all).into_iter().map(|own| own.method).collect::<Vec<_>>()
        };
        assert_eq!(names([f64::INFINITY, 9.0, 2.0]), [MethodName::Sap, MethodName::Cg, MethodName::Sdd]);
        assert_eq!(names([3.0, 3.0, 1.0]), [MethodName::Sap, MethodName::Sdd, MethodName::Cg]);
    }

    /// Settings of descent are for descent alone, and single precision is not for factored blocks.
    #[test]
    fn solvers_that_could_be_taken_follow_what_is_asked_and_the_memory() {
        let names = |memory: u64, change: &dyn Fn(&mut AutoOptions)| {
            let mut options = AutoOptions::default();
            change(&mut options);
            let request = FitRequest {
                method: Method::Auto(options.clone()),
                limits: Limits { memory, ..Limits::default() },
                ..FitRequest::default()
            };
            let all = candidates((&request, &options), (10_000, 2), 0);
            all.iter().map(Method::name).collect::<Vec<_>>()
        };
        let plenty = 16 << 30;
        assert_eq!(names(plenty, &|_| ()), [MethodName::Sdd, MethodName::Cg, MethodName::Sap]);
        let steps = |own: &mut AutoOptions| own.descent.iterative.large.iterations = Some(30);
        assert_eq!(names(plenty, &steps), [MethodName::Sdd]);
        let single =
            |own: &mut AutoOptions| own.descent.iterative.system.precision = Some(KernelPrecision::Single);
        assert_eq!(names(plenty, &single), [MethodName::Sdd, MethodName::Cg]);
        assert_eq!(names(1 << 20, &|_| ()), [MethodName::Sdd]);
    }

    #[test]
    fn steps_go_on_as_they_grew_and_errors_as_they_fell() {
        // The same on both sizes: the same on all; twice as many: in proportion to the rows; more than that is not believed.
        assert_eq!(on_all_rows([Some(30.0), Some(30.0)], 50_000), Some(30.0));
        assert_eq!(on_all_rows([Some(15.0), Some(30.0)], 50_000), Some(750.0));
        assert_eq!(on_all_rows([Some(1.0), Some(30.0)], 50_000), Some(750.0));
        assert_eq!(on_all_rows([Some(30.0), Some(15.0)], 50_000), Some(15.0));
        assert_eq!(on_all_rows([Some(15.0), None], 50_000), None);
        // 1/k, from 1 at the first step: 0.1 after ten.
        let falling =
            |most: usize| -> Vec<(f64, f64)> { (1..=most).map(|k| (k as f64, 1.0 / k as f64)).collect() };
        assert_eq!(in_sight(&falling(10)), Some(10.0));
        let promised = in_sight(&falling(6)).unwrap();
        assert!((promised - 10.0).abs() < 1e-9, "{promised}");
        // What stands still, or grows, is not in sight, nor what is a thousand times as far.
        let slow: Vec<(f64, f64)> = (1..=8).map(|k| (f64::from(k), f64::from(k).powf(-0.25))).collect();
        assert_eq!(in_sight(&slow), None);
        let still: Vec<(f64, f64)> = (1..=8).map(|k| (k as f64, 0.5)).collect();
        assert_eq!((in_sight(&still), in_sight(&[])), (None, None));
    }
}
