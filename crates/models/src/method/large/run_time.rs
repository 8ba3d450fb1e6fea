//! What this machine does in a second, measured in some hundredths of one, so that plans can say how long they take.

use super::plan::ScalablePlan;
use crate::options::{HyperparameterSearch, IterativeOptions, KernelPrecision, MethodName};
use crate::speed::{ROWS, seconds_of_batch};
use crate::text::time;
use crate::{FitRequest, Method};
use faer::{Mat, MatRef};
use posterior_gp::exact::{ExactGp, Plan, log_evidence_and_gradient};
use posterior_gp::iterative::Method as SolveMethod;
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::{Request, pullback_quadratic};
use posterior_likelihoods::Gaussian;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// Evaluations that a search for hyperparameters by exact evidence is taken to need: between a fifth and twice of it in our runs.
const EVALUATIONS: f64 = 60.0;

/// Seconds that a fit is expected to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Expected {
    /// The search for hyperparameters.
    pub(crate) search: f64,
    /// The solver or bound, all its steps; none where the search is all there is.
    pub(crate) solver: Option<f64>,
}

impl Expected {
    /// In words.
    pub(crate) fn describe(&self, method: MethodName, budget: Option<f64>) -> String {
        let mut text = match (self.solver, self.search > 0.0) {
            (None, _) => format!("about {} on this machine", time(self.search)),
            (Some(solver), true) => format!(
                "about {} for hyperparameters and at most {} for {} on this machine",
                time(self.search),
                time(solver),
                method
            ),
            (Some(solver), false) => format!("at most {} on this machine", time(solver)),
        };
        if let Some(budget) = budget {
            text += &format!(", ended after {} (--time-budget)", budget_time(budget));
        }
        text
    }
}

/// A budget, or what is left of it, with two digits where it is short: less than a second is no second.
fn budget_time(seconds: f64) -> String {
    if seconds >= 10.0 {
        return time(seconds);
    }
    let digits = 1 - seconds.max(1e-9).log10().floor() as i32;
    let text = format!("{seconds:.*}", digits.max(0) as usize);
    format!("{} s", if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

/// [`expected`], as a plan says it behind the rest; nothing where nothing is known.
pub(crate) fn in_words(request: &FitRequest, method: &Method, rows: usize, names: &[String]) -> String {
    expected(request, method, rows, names)
        .map_or_else(String::new, |own| format!("; {}", own.describe(method.name(), request.limits.time)))
}

/// [`expected`], all of it.
pub(crate) fn expected_seconds(
    request: &FitRequest,
    method: &Method,
    rows: usize,
    names: &[String],
) -> Option<f64> {
    expected(request, method, rows, names).map(|own| own.search + own.solver.unwrap_or(0.0))
}

/// Seconds for a method on `rows` rows; none where its kernel cannot be evaluated on such columns. Takes some hundredths of a second.
pub(crate) fn expected(
    request: &FitRequest,
    method: &Method,
    rows: usize,
    names: &[String],
) -> Option<Expected> {
    let inputs = names.len();
    let x = points(request, ROWS.max(rows.min(4096)), names);
    let rate = rate(request, names)?;
    let given = request.start.hyperparameters().is_some();
    let settings = method.settings();
    if settings.leaves_one_out() {
        let flops = Plan::evidence(rows, inputs, 1).flops_per_evaluation;
        let evaluations = if given { 1.0 } else { EVALUATIONS * request.restarts() as f64 };
        return Some(Expected { search: evaluations * flops / rate, solver: None });
    }
    let plan = ScalablePlan::new(request, method, rows, inputs);
    let step = match method.iterative() {
        None => plan.flops_per_step / rate,
        Some(options) => {
            let (batch, pairs, second) = settings.products(method, rows);
            let (samples, x) = (options.sampling.samples, x.as_ref());
            let pair = |samples: usize| match options.system.precision() {
                KernelPrecision::Single => seconds_of_pair::<f32>(request, names, x, samples, batch),
                KernelPrecision::Double => seconds_of_pair::<f64>(request, names, x, samples, batch),
            };
            let seconds = pair(samples)?;
            let seconds = seconds + second.map_or(Some(0.0), pair)?;
            let of = method.inducing().map_or(1.0, |o| o.points().min(rows) as f64 / rows as f64);
            pairs * of * seconds
        }
    };
    let stochastic = method.iterative().filter(|o| !given && o.search.hyperparameter_search.is_stochastic());
    let search = match stochastic {
        // The plan's operations are those of 100 evaluations.
        None => EVALUATIONS / 100.0 * plan.hyperparameter_flops / rate,
        Some(options) => {
            let own = match options.system.precision() {
                KernelPrecision::Single => {
                    seconds_of_search::<f32>(request, options, rows, names, x.as_ref())?
                }
                KernelPrecision::Double => {
                    seconds_of_search::<f64>(request, options, rows, names, x.as_ref())?
                }
            };
            let mut first = method.clone();
            if let Some(options) = first.iterative_mut()
                && options.search.hyperparameter_search == HyperparameterSearch::Refined
            {
                options.search.hyperparameter_search = HyperparameterSearch::Blocks;
                let blocks = ScalablePlan::new(request, &first, rows, inputs);
                own + EVALUATIONS / 100.0 * blocks.hyperparameter_flops / rate
            } else {
                own
            }
        }
    };
    let closing = settings.closing_flops(rows, inputs) / rate;
    Some(Expected { search, solver: Some(step * plan.steps as f64 + closing) })
}

/// Rows that a pass of gradients is measured on.
const PULLED_ROWS: usize = 1024;

/// Seconds of a stochastic search on all rows: the passes of its solves, and a pullback through the matrix for each step.
fn seconds_of_search<T: Real>(
    request: &FitRequest,
    options: &IterativeOptions,
    rows: usize,
    names: &[String],
    x: MatRef<'_, f64>,
) -> Option<f64> {
    let search = options.stochastic_search(request.seed, rows, request.limits.memory);
    let columns = search.solves.samples + 1;
    let batch = search.method.rows_of_a_step(rows, columns);
    let own = match &search.method {
        SolveMethod::SketchAndProject(own) => own.block_share(rows, columns),
        _ => 0.0,
    };
    let pair = seconds_of_pair::<T>(request, names, x, search.solves.samples, batch)?;
    let kernel = request.prior.kernel.build::<T>(names).ok()?;
    let m = x.nrows().min(PULLED_ROWS);
    let x = Mat::from_fn(m, x.ncols(), |i, d| T::from_f64(x[(i, d)]));
    let weights = Mat::<T>::from_fn(m, columns, |_, _| T::ONE);
    let started = Instant::now();
    black_box(pullback_quadratic(
        &*kernel,
        x.as_ref(),
        (weights.as_ref(), weights.as_ref()),
        Request::PARAMETERS,
    ));
    let pulled = started.elapsed().as_secs_f64() / (m * m) as f64;
    let passes = options.search.search_passes as f64;
    Some(search.steps as f64 * (rows as f64).powi(2) * (passes * (1.0 + own) * pair + pulled))
}

/// Operations a second of an evidence with its gradient under the kernel that is asked for; none where it cannot be evaluated on such columns.
pub(crate) fn rate(request: &FitRequest, names: &[String]) -> Option<f64> {
    // Counts are not normal.
    if !request.prior.kernel.count_columns(names).is_empty() {
        return None;
    }
    let kernel = request.prior.kernel.build::<f64>(names).ok()?;
    let data = Observations::new(points(request, ROWS, names), normal(ROWS, 1), None).ok()?;
    let model = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(0.1, 0.0), names.len(), 1);
    let flops = Plan::evidence(ROWS, names.len(), 1).flops_per_evaluation;
    let buffer = Some(Mat::zeros(ROWS, ROWS));
    let started = Instant::now();
    black_box(log_evidence_and_gradient(&model, &data, buffer).ok()?);
    Some(flops / started.elapsed().as_secs_f64().max(1e-9))
}

/// Standard normal numbers, but for columns of categories, in which each row has one.
fn points(request: &FitRequest, rows: usize, names: &[String]) -> Mat<f64> {
    let mut x = normal(rows, names.len());
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for column in request.prior.kernel.category_columns(names) {
        let of = names[column].split_once('=').map_or("", |(of, _)| of);
        groups.entry(of).or_default().push(column);
    }
    for columns in groups.values() {
        for (place, &column) in columns.iter().enumerate() {
            let own = x.col_as_slice_mut(column).iter_mut().enumerate();
            own.for_each(|(i, v)| *v = f64::from(u8::from(i % columns.len() == place)));
        }
    }
    x
}

fn normal(rows: usize, columns: usize) -> Mat<f64> {
    let mut rng = Streams::new(0).stream("model/rates");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

/// Seconds of one entry of the kernel matrix, evaluated and multiplied with all columns.
fn seconds_of_pair<T: Real>(
    request: &FitRequest,
    names: &[String],
    x: MatRef<'_, f64>,
    samples: usize,
    batch: usize,
) -> Option<f64> {
    let kernel = request.prior.kernel.build::<T>(names).ok()?;
    let x = Mat::from_fn(x.nrows(), x.ncols(), |i, d| T::from_f64(x[(i, d)]));
    let columns = samples.saturating_add(1).min(1000);
    let batch = batch.min(x.nrows());
    let seconds = seconds_of_batch(&*kernel, x.as_ref(), batch, columns);
    let scale = samples.saturating_add(1) as f64 / columns as f64;
    Some(scale * seconds / (batch * x.nrows()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Start;

    #[test]
    fn budgets_are_short() {
        let texts = [4.951106696, 0.5, 0.0123456, 1.25, 12.6, 300.0].map(budget_time);
        assert_eq!(texts, ["5 s", "0.5 s", "0.012 s", "1.2 s", "13 s", "5 min"]);
    }

    #[test]
    fn expectations_grow_with_rows_and_steps() {
        let names: Vec<String> = vec!["a".into(), "b".into()];
        let mut request = FitRequest::default();
        let of = |request: &FitRequest, rows| expected(request, &request.method, rows, &names).unwrap();
        request.method = MethodName::Exact.into();
        // Measured times vary; a hundred times the work is more than they do.
        assert!(of(&request, 4000).search > 10.0 * of(&request, 400).search);
        request.method = MethodName::Sdd.into();
        let few = of(&request, 10_000).solver.unwrap();
        request.method.large_mut().unwrap().iterations = Some(1_000_000);
        assert!(of(&request, 10_000).solver.unwrap() > 10.0 * few);
        request.start = Start::given(Vec::new());
        assert_eq!(of(&request, 10_000).search, 0.0);
        let text = Expected { search: 12.3, solver: Some(4000.0) }.describe(MethodName::Sdd, Some(60.0));
        assert_eq!(
            text,
            "about 12 s for hyperparameters and at most 67 min for sdd on this machine, ended after 60 s (--time-budget)"
        );
    }
}
