//! Hyperparameters of iterative methods: given, from neighbourhoods, or by stochastic gradients of the evidence of all rows.

use crate::FitRequest;
use crate::options::{HyperparameterSearch, IterativeOptions, LengthscalePrior};
use crate::process::fit::{FitStage, Prepared, add_weak_priors};
use crate::process::scalable::budget::Allowance;
use crate::process::scalable::checkpoint::{CheckpointWriter, Found, Saved, Stage};
use crate::process::scalable::following::{self, REFINING_EVALUATIONS, refining_memory};
use crate::process::scalable::{EvidenceSearchSummary, SolverPrecision};
use crate::process::{Hyperparameter, ModelError};
use crate::text::number;
use faer::Mat;
use posterior_gp::exact::{self, ExactGp, FitOptions};
use posterior_gp::iterative::{
    BlockFit, Blocks, PathwiseModel, ProbeKind, fit_on_blocks, fit_on_neighbourhoods, search_evidence,
};
use posterior_gp::{Hyperprior, Observations, RowSource};
use posterior_likelihoods::Gaussian;
use posterior_optim::{Observer, Parameters, Reason, Signal};
use std::time::Instant;

/// What is asked for: of the fit, and of the method that follows.
type Asked<'a> = (&'a FitRequest, &'a IterativeOptions);

/// Kernel, mean and noise as the request has them, before anything is learned.
pub(super) fn initial<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
) -> Result<ExactGp, ModelError> {
    let kernel = request.kernel.build(&prepared.schema.feature_names())?;
    let noise = Gaussian::new(request.first_noise(), request.noise_floor);
    Ok(ExactGp::new(kernel, request.mean, noise, prepared.data.widths()[0], 1))
}

/// Gives a model values by their names.
pub(in crate::process) fn set(model: &mut ExactGp, given: &[Hyperparameter]) -> Result<(), ModelError> {
    let segments = model.segments();
    let listed = || segments.iter().map(|s| format!("{} ({})", s.name, s.len())).collect::<Vec<String>>();
    if let Some(other) = given.iter().find(|h| !segments.iter().any(|s| s.name == h.name)) {
        return Err(ModelError::UnknownHyperparameter { name: other.name.clone(), known: listed() });
    }
    let mut values = Vec::new();
    for segment in &segments {
        let found = given.iter().find(|h| h.name == segment.name && h.values.len() == segment.len());
        let Some(found) = found else {
            return Err(ModelError::Hyperparameters {
                missing: segment.name.clone(),
                length: segment.len(),
                known: listed(),
            });
        };
        if let Some((value, expected)) = found.out_of_range(segment) {
            return Err(ModelError::Setting { what: "a given hyperparameter", value, expected });
        }
        values.extend_from_slice(&found.values);
    }
    model.set_values(&values);
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        return Err(ModelError::GivenNoise { noise, floor });
    }
    Ok(())
}

/// What the search for hyperparameters believes: what was stated, and the weak prior of lengthscales that nothing was said about.
pub(super) fn beliefs<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
    model: &ExactGp,
) -> Vec<Hyperprior> {
    let mut hyperpriors = request.hyperpriors.clone();
    if request.lengthscale_prior == LengthscalePrior::Weak {
        add_weak_priors(&mut hyperpriors, model, prepared.data.widths()[0]);
    }
    hyperpriors
}

/// Hyperparameters, where they come from, and what was found on the way.
pub(super) struct Searched<T: SolverPrecision> {
    /// With the noise that iterative solvers can follow.
    pub(super) model: ExactGp,
    pub(super) found: Found,
    pub(super) source: String,
    pub(super) hyperpriors: Vec<Hyperprior>,
    /// Solutions for the targets and the first posterior samples near these hyperparameters, if the search left some (n x (1 + probes)).
    pub(super) solutions: Option<Mat<T>>,
}

impl<T: SolverPrecision> Searched<T> {
    /// With the noise that the evidence wants, for methods that solve no large system.
    pub(super) fn as_found(&self) -> ExactGp {
        let mut model = self.model.clone();
        if let Some(noise) = self.found.noise_raised_from {
            set_noise(&mut model, noise);
        }
        model
    }

    /// For a solver in another precision, which can follow another noise.
    pub(super) fn in_precision<U: SolverPrecision>(
        self,
        prepared: &Prepared,
        options: &IterativeOptions,
    ) -> Searched<U> {
        let mut model = self.as_found();
        let Self { mut found, source: given, hyperpriors, solutions, .. } = self;
        // What is given stays what it is, and so does what a search on all rows ended with.
        let raised = found.noise_raised_from.take().is_some();
        found.noise_raised_from = raised.then(|| solvable::<U>(&mut model, prepared)).flatten();
        found.hyperparameters = Hyperparameter::of(&model);
        let source = if raised { source(prepared, options, &found) } else { given };
        Searched { model, found, source, hyperpriors, solutions: solutions.map(in_precision::<T, U>) }
    }
}

/// The same numbers in another precision.
fn in_precision<T: SolverPrecision, U: SolverPrecision>(known: Mat<T>) -> Mat<U> {
    Mat::from_fn(known.nrows(), known.ncols(), |i, j| U::from_f64(known[(i, j)].to_f64()))
}

/// Gives the model its hyperparameters: those of the request, those that were found before an interruption, or those of a search, which goes on behind what
/// was finished before.
pub(super) fn hyperparameters<T: SolverPrecision>(
    prepared: &Prepared,
    (request, options, held_back): (&FitRequest, &IterativeOptions, usize),
    saved: Option<&mut Saved>,
    allowance: &Allowance,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Searched<T>, ModelError> {
    let asked = (request, options);
    let mut model = initial(prepared, request)?;
    if let Some(given) = &request.hyperparameters {
        set(&mut model, given)?;
        // An earlier run may have chosen a solver.
        let forecasts = saved.map_or_else(Vec::new, |saved| saved.found.forecasts.clone());
        let found = Found { hyperparameters: Hyperparameter::of(&model), forecasts, ..Found::default() };
        let (source, hyperpriors) = ("given".into(), Vec::new());
        return Ok(Searched { model, found, source, hyperpriors, solutions: None });
    }
    let hyperpriors = beliefs(prepared, request, &model);
    let search = options.search.hyperparameter_search;
    let (mut found, mut solutions, state, following) = match saved {
        Some(saved) => {
            let (known, solutions) = (saved.found.clone(), saved.solutions::<T>()?);
            match search {
                HyperparameterSearch::Blocks => (known, solutions, None, saved.search::<f64>()?),
                _ => (known, solutions, saved.search::<T>()?, None),
            }
        }
        None => (Found::default(), None, None, None),
    };
    if !found.hyperparameters.is_empty() {
        set(&mut model, &found.hyperparameters)?;
        let source = source(prepared, options, &found);
        return Ok(Searched { model, found, source, hyperpriors, solutions });
    }
    let within = (allowance, &hyperpriors[..]);
    let blocks = match search {
        HyperparameterSearch::Blocks => true,
        HyperparameterSearch::Refined => state.is_none(),
        HyperparameterSearch::Neighbourhoods | HyperparameterSearch::Stochastic => false,
    };
    if blocks {
        model =
            Stages { prepared, asked, within, checkpoints, observer }.on_blocks::<T>(model, &mut found)?;
    }
    if search == HyperparameterSearch::Neighbourhoods {
        model = on_neighbourhoods::<T>(
            model,
            prepared,
            asked,
            (&mut found, &hyperpriors),
            checkpoints,
            observer,
        )?;
    }
    if search.is_stochastic() {
        let begin = Begin { model, state, hyperpriors: &hyperpriors, allowance };
        (model, solutions) = on_all_rows::<T>(begin, prepared, asked, &mut found, checkpoints, observer)?;
    } else if search == HyperparameterSearch::Blocks {
        let (n, d) = prepared.data.inputs().shape();
        // As it was planned: with the rows that are held back.
        let blocks = following::Blocks { request, options, rows: n + held_back, inputs: d };
        let rate = rate(&found, d);
        let largest = found.blocks.iter().flat_map(|(fit, _)| fit.sizes.iter().copied()).max().unwrap_or(0);
        let in_time = |own: following::Following, share| own.is_in_time(allowance.until(share), rate);
        // What was under way goes on; hardly more rows tell hardly more.
        let exactly = following.is_none() && n > largest + largest / 4;
        if exactly && blocks.exactly().is_some_and(|own| in_time(own, EXACT_SHARE)) {
            let mut stages = Stages { prepared, asked, within, checkpoints, observer };
            model = stages.on_all_rows::<T>(model, &mut found)?;
        } else if following.is_some()
            || largest < n && blocks.by_steps().is_some_and(|own| in_time(own, STOCHASTIC_SHARE))
        {
            let begin =
                Begin { model: model.clone(), state: following, hyperpriors: &hyperpriors, allowance };
            let ended = by_steps(begin, prepared, asked, &mut found, checkpoints, observer)?;
            if let Some((ended, last)) = ended {
                (model, solutions) = (ended, last.map(in_precision::<f64, T>));
                found.noise_raised_from = solvable::<T>(&mut model, prepared);
            }
        }
    }
    let source = source(prepared, options, &found);
    found.hyperparameters = Hyperparameter::of(&model);
    checkpoints.save::<T>(&found, solutions.clone().map_or(Stage::Between, Stage::Solved))?;
    Ok(Searched { model, found, source, hyperpriors, solutions })
}

/// Where hyperparameters come from, in words.
fn source(prepared: &Prepared, options: &IterativeOptions, found: &Found) -> String {
    let search = &options.search;
    let averages = || match search.neighbourhood_size >= prepared.data.rows() {
        true => "the evidence of all rows".into(),
        false => format!(
            "averages over the evidence on {} neighbourhoods of {} rows",
            search.neighbourhoods, search.neighbourhood_size
        ),
    };
    let blocks = || {
        let stages = found.blocks.iter().map(|(fit, _)| match fit.sizes[..] {
            [one] => format!("{one} rows"),
            [first, .., last] if first == last => format!("{} blocks of {first} rows", fit.sizes.len()),
            [first, ..] => format!("blocks of {first} rows and fewer"),
            [] => "no rows".into(),
        });
        format!("the joint evidence of {}", stages.collect::<Vec<String>>().join(", then of "))
    };
    let stochastic =
        || format!("stochastic gradients of the evidence of all rows with {} probes", search.probes);
    let mut text = match search.hyperparameter_search {
        HyperparameterSearch::Neighbourhoods => averages(),
        HyperparameterSearch::Blocks if found.search.is_none() => blocks(),
        HyperparameterSearch::Stochastic => stochastic(),
        HyperparameterSearch::Refined | HyperparameterSearch::Blocks => {
            format!("{}, from {}", stochastic(), blocks())
        }
    };
    if let Some(why) = &found.following_failed {
        text += &format!("; a search on all rows that was to follow failed ({why})");
    }
    if let Some(noise) = found.noise_raised_from {
        text += &format!("; the noise variance was raised from {noise:.1e} so that the system can be solved");
    }
    text
}

/// Shares of the budget by whose end the stages of a search on blocks are over.
const FIRST_SHARE: f64 = 0.15;
const SECOND_SHARE: f64 = 0.4;

/// Share of the budget by whose end the exact evidence of all rows is: what is left is for their posterior; and the same of the stochastic search.
const EXACT_SHARE: f64 = 0.8;
const STOCHASTIC_SHARE: f64 = 0.5;

/// Operations a second that evidences of blocks reached.
fn rate(found: &Found, inputs: usize) -> f64 {
    let done = |(fit, _): &(BlockFit, Vec<f64>)| {
        let evaluations: usize = fit.attempts.iter().map(|a| a.evaluations).sum();
        let of = |&size: &usize| exact::Plan::evidence(size, inputs, 1).flops_per_evaluation;
        evaluations as f64 * fit.sizes.iter().map(of).sum::<f64>()
    };
    found.blocks.iter().map(done).sum::<f64>() / found.seconds.max(1e-9)
}

/// A search by exact evidences, one stage after the other.
struct Stages<'a, 'o> {
    prepared: &'a Prepared,
    asked: Asked<'a>,
    /// The budget, and what is believed of hyperparameters.
    within: (&'a Allowance, &'a [Hyperprior]),
    checkpoints: &'a mut CheckpointWriter,
    observer: &'a mut Observer<'o, FitStage>,
}

impl Stages<'_, '_> {
    /// The joint evidence on many small blocks, then on few larger ones from where that led.
    fn on_blocks<T: SolverPrecision>(
        &mut self,
        mut model: ExactGp,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let Self { prepared, asked: (request, asked), within: (allowance, hyperpriors), .. } = *self;
        let first = asked.search.blocks(request.seed);
        let (n, d) = (prepared.data.rows(), prepared.data.inputs().ncols());
        let base = FitOptions { hyperpriors: hyperpriors.to_vec(), ..request.fit_options(&asked.evidence) };
        if found.blocks.is_empty() {
            let mut options = base.clone();
            options.steps.time = Allowance::duration(allowance.until(FIRST_SHARE));
            let rows = first.rows(&prepared.data)?;
            model = self.stage::<T>(model, &rows, &options, found)?;
        } else if let Some((_, values)) = found.blocks.last() {
            model.set_values(values);
        }
        if found.blocks.len() < 2 && first.size < n {
            let seconds = allowance.until(SECOND_SHARE);
            let evaluations: usize = found.blocks[0].0.attempts.iter().map(|a| a.evaluations).sum();
            let each = found.seconds / evaluations.max(1) as f64;
            let rate = first.plan(n, d).flops_per_evaluation / each.max(1e-9);
            let size = refining_size(
                asked.search.refining_rows.min(n),
                first.size,
                refining_memory(request.memory),
                d,
                |flops| seconds.is_none_or(|left| REFINING_EVALUATIONS * flops / rate <= left),
            );
            if let Some(size) = size {
                let uniform = Blocks { uniform: 1, neighbourhoods: 0, size, ..first };
                let near = Blocks { uniform: 0, neighbourhoods: 1, size: size / 2, ..first };
                let mut rows = uniform.rows(&prepared.data)?;
                if size < n {
                    rows.extend(near.rows(&prepared.data)?);
                }
                let mut options = FitOptions { restarts: 1, ..base.clone() };
                options.steps.time = Allowance::duration(seconds);
                model = self.stage::<T>(model, &rows, &options, found)?;
            }
        }
        found.noise_raised_from = solvable::<T>(&mut model, prepared);
        Ok(model)
    }

    /// The exact evidence of all rows, from where blocks led.
    fn on_all_rows<T: SolverPrecision>(
        &mut self,
        mut model: ExactGp,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let Self { prepared, asked: (request, asked), within: (allowance, hyperpriors), .. } = *self;
        if let Some(noise) = found.noise_raised_from.take() {
            set_noise(&mut model, noise);
        }
        let hyperpriors = hyperpriors.to_vec();
        let mut options = FitOptions { restarts: 1, hyperpriors, ..request.fit_options(&asked.evidence) };
        options.steps.time = Allowance::duration(allowance.until(EXACT_SHARE));
        let rows = vec![(0..prepared.data.rows()).collect()];
        let mut model = self.stage::<T>(model, &rows, &options, found)?;
        found.noise_raised_from = solvable::<T>(&mut model, prepared);
        Ok(model)
    }

    /// One stage, kept when it is finished.
    fn stage<T: SolverPrecision>(
        &mut self,
        model: ExactGp,
        rows: &[Vec<usize>],
        options: &FitOptions,
        found: &mut Found,
    ) -> Result<ExactGp, ModelError> {
        let (started, number) = (Instant::now(), found.blocks.len());
        let (model, fit): (ExactGp, BlockFit) =
            fit_on_blocks(model, &self.prepared.data, rows, options, &mut |progress, _| {
                (self.observer)(progress, &FitStage::Blocks { stage: number })
            })?;
        if fit.reason == Reason::Interrupted {
            return Err(ModelError::Interrupted);
        }
        found.largest_jitter = found.largest_jitter.max(fit.largest_jitter);
        found.seconds += started.elapsed().as_secs_f64();
        found.blocks.push((fit, model.values()));
        self.checkpoints.save::<T>(found, Stage::Between)?;
        Ok(model)
    }
}

/// Some steps of the stochastic search on all rows, from where blocks led; none where they failed, which nobody asked for: the reason is noted, and what blocks found stays.
fn by_steps(
    mut begin: Begin<'_, f64>,
    prepared: &Prepared,
    (request, asked): Asked<'_>,
    found: &mut Found,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Option<Ended<f64>>, ModelError> {
    let before = found.clone();
    // It may want the noise that blocks wanted.
    if let Some(noise) = found.noise_raised_from.take() {
        set_noise(&mut begin.model, noise);
    }
    let own = asked.following_blocks();
    let (started, blocks) = (Instant::now(), begin.model.clone());
    let failed = match on_all_rows::<f64>(begin, prepared, (request, &own), found, checkpoints, observer) {
        Ok(ended) => match worse(&blocks, &ended.0, &prepared.data, request.seed) {
            None => return Ok(Some(ended)),
            Some(why) => why,
        },
        Err(error @ (ModelError::Interrupted | ModelError::Store(_))) => return Err(error),
        Err(error) => error.to_string(),
    };
    // The time is gone, whatever came of it.
    let seconds = before.seconds + started.elapsed().as_secs_f64();
    *found = Found { following_failed: Some(failed), seconds, ..before };
    Ok(None)
}

/// Rows on which a search is judged that nobody asked for, and nats of each by which their evidence may fall: what all rows prefer is not quite what these do.
const JUDGING_ROWS: usize = 2000;
const MOST_FALL: f64 = 0.1;

/// Why what a search on all rows ended with is not taken: the exact evidence of some rows, drawn anew, under it and under what it began with.
fn worse(before: &ExactGp, after: &ExactGp, data: &Observations, seed: u64) -> Option<String> {
    let rows = Blocks { uniform: 1, neighbourhoods: 0, size: JUDGING_ROWS, seed }
        .uniform_rows(data.rows(), JUDGED_BLOCK);
    let few = data.select(&rows).ok()?;
    let of_row =
        |model: &ExactGp| exact::log_evidence(model, &few, None).map(|found| found.value / rows.len() as f64);
    let before = of_row(before).ok()?;
    match of_row(after) {
        Ok(after) if after >= before - MOST_FALL => None,
        Ok(after) => {
            let (from, to) = (number(before), number(after));
            Some(format!(
                "the evidence of {} rows would have fallen from {from} to {to} nats each",
                rows.len()
            ))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// The uniform block that is none of those that searches see.
const JUDGED_BLOCK: usize = 1 << 20;

/// Most rows of a second stage that fit memory and time; none where that is hardly more than the first had.
fn refining_size(
    most: usize,
    first: usize,
    memory: u64,
    inputs: usize,
    in_time: impl Fn(f64) -> bool,
) -> Option<usize> {
    let fits = |size: usize| {
        let plan = exact::Plan::evidence(size, inputs, 1);
        plan.peak_bytes <= memory && in_time(1.2 * plan.flops_per_evaluation)
    };
    (0..=20)
        .map(|k| (most as f64 * 0.9f64.powi(k)) as usize)
        .find(|&size| fits(size))
        .filter(|&size| size > first + first / 2)
}

/// The largest ratio of the function's variance to the noise's that iterative solvers in single and in double precision are given: beyond it, systems of tens of
/// thousands of rows take tens of thousands of iterations, and rounding keeps them from their solution.
const MOST_SIGNAL: [f64; 2] = [1e5, 1e8];

/// Raises the noise where the system would be hopeless, and returns what it was.
pub(super) fn solvable<T: SolverPrecision>(model: &mut ExactGp, prepared: &Prepared) -> Option<f64> {
    let few = prepared.data.inputs().subrows(0, prepared.data.rows().min(100));
    let signal = posterior_kernels::diagonal(model.kernel(), few).into_iter().fold(0.0, f64::max);
    let least = signal / MOST_SIGNAL[usize::from(size_of::<T>() > 4)];
    let noise = model.noise().noise_variance();
    (noise < least).then(|| {
        set_noise(model, least);
        noise
    })
}

/// Another noise variance, which is the last of a model's values.
fn set_noise(model: &mut ExactGp, noise: f64) {
    let mut values = model.values();
    if let Some(last) = values.last_mut() {
        *last = noise;
    }
    model.set_values(&values);
}

fn on_neighbourhoods<T: SolverPrecision>(
    model: ExactGp,
    prepared: &Prepared,
    (request, asked): Asked<'_>,
    (found, hyperpriors): (&mut Found, &[Hyperprior]),
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<ExactGp, ModelError> {
    let started = Instant::now();
    let before = found.seconds;
    let hyperpriors = hyperpriors.to_vec();
    let options = FitOptions { restarts: 1, hyperpriors, ..request.fit_options(&asked.evidence) };
    let earlier = found.neighbourhoods.clone();
    let mut failed = None;
    let (averaged, fits) = fit_on_neighbourhoods(
        &model,
        &prepared.data,
        asked.search.neighbourhoods(request.seed),
        &options,
        earlier,
        &mut |progress, done| {
            if done.len() > found.neighbourhoods.len() {
                found.neighbourhoods = done.to_vec();
                found.seconds = before + started.elapsed().as_secs_f64();
                if let Err(error) = checkpoints.save::<T>(found, Stage::Between) {
                    failed = Some(error);
                    return Signal::Stop;
                }
            }
            observer(progress, &FitStage::Neighbourhoods)
        },
    )?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if fits.iter().any(|f| f.reason == Reason::Interrupted) {
        return Err(ModelError::Interrupted);
    }
    found.largest_jitter = fits.iter().map(|f| f.largest_jitter).fold(0.0, f64::max);
    found.neighbourhoods = fits;
    found.seconds = before + started.elapsed().as_secs_f64();
    Ok(averaged)
}

/// Where a search on all rows ends: a model, and the solutions that it left.
type Ended<T> = (ExactGp, Option<Mat<T>>);

/// Where a search on all rows begins.
struct Begin<'a, T: SolverPrecision> {
    model: ExactGp,
    state: Option<posterior_gp::iterative::SearchState<T>>,
    hyperpriors: &'a [Hyperprior],
    allowance: &'a Allowance,
}

/// Refuses parameters that steps of a search have driven to where no model is.
fn check_found(model: &ExactGp) -> Result<(), ModelError> {
    let what = "a hyperparameter that the stochastic search ended at";
    for (found, segment) in Hyperparameter::of(model).iter().zip(model.segments()) {
        if let Some((value, _)) = found.out_of_range(&segment) {
            let expected = "finite, and positive where its parameter is: take a smaller --learning-rate";
            return Err(ModelError::Setting { what, value, expected });
        }
    }
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        let expected = "above the noise floor: take a smaller --learning-rate or a lower --noise-floor";
        return Err(ModelError::Setting { what, value: noise, expected });
    }
    Ok(())
}

fn on_all_rows<T: SolverPrecision>(
    Begin { mut model, state, hyperpriors, allowance }: Begin<'_, T>,
    prepared: &Prepared,
    (request, asked): Asked<'_>,
    found: &mut Found,
    checkpoints: &mut CheckpointWriter,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Ended<T>, ModelError> {
    let mut seconds = 0.0;
    let mut kernel = request.kernel.build::<T>(&prepared.schema.feature_names())?;
    kernel.set_values(&model.kernel().values());
    let process = PathwiseModel { kernel, mean: model.mean().clone(), noise: model.noise().clone() };
    let mut options = asked.stochastic_search(request.seed, prepared.data.rows(), request.memory);
    options.hyperpriors = hyperpriors.to_vec();
    options.memory_limit = request.memory;
    // What is left up to half of the budget, and what earlier runs of this search had of it.
    options.time = Allowance::duration(
        allowance.until(STOCHASTIC_SHARE).map(|s| s + state.as_ref().map_or(0.0, |s| s.header.seconds())),
    );
    let tolerance = options.solves.budget.tolerance;
    let saw = found.clone();
    let result = search_evidence(process, &prepared.data, &options, state, &mut |progress, search| {
        seconds = progress.elapsed.as_secs_f64();
        let signal = observer(progress, &FitStage::EvidenceSearch { solve: search.solve() });
        checkpoints.observe(signal, &saw, || Ok(Stage::Search(search.state(progress))))
    })?;
    checkpoints.finish()?;
    if result.reason == Reason::Interrupted {
        return Err(ModelError::Interrupted);
    }
    model.set_values(&result.model.values());
    check_found(&model)?;
    let last = result.trace.last();
    // Random signs are no samples.
    let handed_on = options.probes == ProbeKind::Pathwise && result.solution.is_some();
    let solutions = result.solution.map(|solution| {
        let columns = if handed_on { solution.weights.ncols() } else { 1 };
        solution.weights.subcols(0, columns).to_owned()
    });
    let rows = prepared.data.rows();
    let rows_of_step = options.method.rows_of_a_step(rows, asked.search.probes + 1);
    let recent = &result.trace[result.trace.len() - result.trace.len().div_ceil(4)..];
    found.search = Some(EvidenceSearchSummary {
        steps: result.steps,
        solver_steps: result.solver_steps,
        passes: Some(result.solver_steps as f64 * rows_of_step as f64 / rows as f64),
        last_gain: Some(recent.iter().map(|step| step.gain).sum()),
        gradient_norm: last.map(|s| s.gradient_norm),
        residual: last.and_then(|s| s.residual),
        unsolved: result.trace.iter().filter(|s| s.residual.is_none_or(|r| r > tolerance)).count(),
        ended: result.reason,
        handed_on,
        at_bounds: result.at_bounds,
    });
    found.seconds += seconds;
    Ok((model, solutions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_gp::MeanForm;
    use posterior_kernels::KernelExpression;

    /// Values of a smooth function, seen with a little noise.
    fn wave(rows: usize) -> Observations {
        let x = Mat::from_fn(rows, 1, |i, _| (i as f64 * 0.618_034) % 1.0);
        let noise = |i: usize| 0.05 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
        let y = Mat::from_fn(rows, 1, |i, _| (9.0 * x[(i, 0)]).sin() + noise(i));
        Observations::new(x, y, None).unwrap()
    }

    #[test]
    fn searches_that_run_away_are_not_taken() {
        let model = |lengthscale: f64, noise: f64| {
            let kernel: KernelExpression = format!("matern32(lengthscale={lengthscale})").parse().unwrap();
            let noise = Gaussian::new(noise, 1e-8);
            ExactGp::new(kernel.build(&["x".into()]).unwrap(), MeanForm::Zero, noise, 1, 1)
        };
        let data = wave(2_500);
        let blocks = model(0.3, 1e-3);
        // A little further, or back, is no reason; so short a lengthscale that rows know nothing of each other is.
        for (lengthscale, noise) in [(0.3, 1e-3), (0.35, 9e-4), (0.28, 1.1e-3)] {
            assert_eq!(worse(&blocks, &model(lengthscale, noise), &data, 0), None, "{lengthscale}");
        }
        let why = worse(&blocks, &model(1e-4, 1e-4), &data, 0).unwrap();
        assert!(why.contains("the evidence of 2000 rows would have fallen from "), "{why}");
    }
}
