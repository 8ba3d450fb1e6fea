//! Hyperparameters of iterative methods: given, found before an interruption, or searched for: which search follows which, and where hyperparameters come from in words.

use super::Fitting;
use super::all_rows::{Begin, by_steps, on_all_rows, worse};
use super::judge::HeldBack;
use super::stages::{Stages, on_neighbourhoods};
use crate::hyperparameter::FunctionUnits;
use crate::method::large::refinement;
use crate::method::training::{Found, Saved, Stage, Wanted, set};
use crate::options::{EvidenceOptions, HyperparameterSearch, IterativeOptions};
use crate::prepare::targets;
use crate::text::number;
use crate::{FitRequest, Hyperparameter, ModelError, Prepared, SolverPrecision};
use faer::Mat;
use posterior_gp::exact::{self, ExactGp};
use posterior_gp::iterative::{BlockFit, PathwiseModel};
use posterior_gp::{Hyperprior, RowSource};
use posterior_optim::{Constraint, Parameters};

/// Kernel, mean and noise as the request has them, before anything is learned.
pub(crate) fn initial<D: RowSource>(
    prepared: &Prepared<D>,
    request: &FitRequest,
) -> Result<ExactGp, ModelError> {
    /// Rows that a kernel may look at, evenly spaced, to begin.
    const LOOKED_AT: usize = 4000;
    let mut kernel = request.prior.kernel.build(&prepared.schema.feature_names())?;
    let n = prepared.data.rows();
    let count = n.min(LOOKED_AT);
    let some: Vec<usize> = (0..count).map(|i| (i as u128 * n as u128 / count as u128) as usize).collect();
    let some = prepared.data.gather(&some)?;
    kernel.begin(some.inputs(), &targets(&some));
    Ok(request.process(kernel, prepared.data.widths()[0], 1))
}

/// Gives a model the values that one of the same kernel had.
fn set_known(model: &mut ExactGp, known: &[Hyperparameter]) {
    model.set_values(&known.iter().flat_map(|own| own.values.iter().copied()).collect::<Vec<f64>>());
}

/// Hyperparameters, where they come from, and what was found on the way.
pub(crate) struct Searched<T: SolverPrecision> {
    /// With the noise that iterative solvers can follow.
    pub(crate) model: ExactGp,
    pub(crate) found: Found,
    pub(crate) source: String,
    pub(crate) hyperpriors: Vec<Hyperprior>,
    /// Solutions for the targets and the first posterior samples near these hyperparameters, if the search left some (n x (1 + probes)).
    pub(crate) solutions: Option<Mat<T>>,
}

impl<T: SolverPrecision> Searched<T> {
    /// With the noise that its search wanted, for solvers in any precision.
    pub(crate) fn unraised(&self) -> ExactGp {
        let mut model = self.model.clone();
        if let Some(noise) = self.found.noise_raised_from {
            set_noise(&mut model, noise);
        }
        model
    }

    /// The function's variance over the noise's, before that was raised.
    pub(crate) fn ratio(&self, prepared: &Prepared) -> f64 {
        let model = self.unraised();
        signal(&model, prepared) / model.noise().noise_variance()
    }

    /// As the evidence wants it, for methods that solve no large system.
    pub(crate) fn as_found(&self) -> ExactGp {
        let mut model = self.unraised();
        if let Some(wanted) = &self.found.wanted {
            set_known(&mut model, &wanted.hyperparameters);
        }
        model
    }

    /// Where hyperparameters come from as they were found, whatever was done to them for solvers.
    pub(crate) fn source_as_found(&self, prepared: &Prepared, options: &IterativeOptions) -> String {
        match (self.found.noise_raised_from, &self.found.wanted) {
            (None, None) => self.source.clone(),
            _ => {
                let found = Found { noise_raised_from: None, wanted: None, ..self.found.clone() };
                source(prepared, options, &found, &self.model)
            }
        }
    }

    /// For a solver in another precision, which can follow another noise.
    pub(crate) fn in_precision<U: SolverPrecision>(
        self,
        prepared: &Prepared,
        options: &IterativeOptions,
    ) -> Searched<U> {
        let mut model = self.unraised();
        let Self { mut found, source: given, hyperpriors, solutions, .. } = self;
        // What is given stays what it is, and so does what a search on all rows ended with.
        let raised = found.noise_raised_from.take().is_some();
        found.noise_raised_from =
            raised.then(|| solvable::<U>(&mut model, prepared, &options.evidence)).flatten();
        found.hyperparameters = Hyperparameter::of(&model);
        let source = if raised { source(prepared, options, &found, &model) } else { given };
        Searched { model, found, source, hyperpriors, solutions: solutions.map(in_precision::<T, U>) }
    }
}

/// What iterative solvers in precision T take, with the values that were found.
pub(crate) fn pathwise_model<T: SolverPrecision>(
    prepared: &Prepared,
    request: &FitRequest,
    model: &ExactGp,
) -> Result<PathwiseModel<T>, ModelError> {
    let mut kernel = request.prior.kernel.build::<T>(&prepared.schema.feature_names())?;
    kernel.set_values(&model.kernel().values());
    Ok(PathwiseModel { kernel, mean: model.mean().clone(), noise: model.noise().clone() })
}

/// The same numbers in another precision.
fn in_precision<T: SolverPrecision, U: SolverPrecision>(known: Mat<T>) -> Mat<U> {
    Mat::from_fn(known.nrows(), known.ncols(), |i, j| U::from_f64(known[(i, j)].to_f64()))
}

/// Gives the model its hyperparameters: those of the request, those that were found before an interruption, or those of a search, which goes on behind what
/// was finished before.
pub(crate) fn hyperparameters<T: SolverPrecision>(
    fitting: &mut Fitting<'_, '_>,
    options: &IterativeOptions,
    saved: Option<&mut Saved>,
) -> Result<Searched<T>, ModelError> {
    let Fitting { prepared, request, held, allowance, .. } = *fitting;
    let mut model = initial(prepared, request)?;
    if let Some(given) = request.start.hyperparameters() {
        set(&mut model, given)?;
        // An earlier run may have chosen a solver.
        let forecasts = saved.map_or_else(Vec::new, |saved| saved.found().forecasts.clone());
        let found = Found { hyperparameters: Hyperparameter::of(&model), forecasts, ..Found::default() };
        let (source, hyperpriors) = ("given".into(), Vec::new());
        return Ok(Searched { model, found, source, hyperpriors, solutions: None });
    }
    let hyperpriors = request.hyperpriors_of(&model, (prepared.data.inputs().ncols(), FunctionUnits::Target));
    let search = options.search.hyperparameter_search;
    let (mut found, mut solutions, state, following) = match saved {
        Some(saved) => {
            let (known, solutions) = (saved.found().clone(), saved.solutions::<T>()?);
            match search {
                HyperparameterSearch::Blocks => (known, solutions, None, saved.search::<f64>()?),
                _ => (known, solutions, saved.search::<T>()?, None),
            }
        }
        None => (Found::default(), None, None, None),
    };
    if !found.hyperparameters.is_empty() {
        set(&mut model, &found.hyperparameters)?;
        let source = source(prepared, options, &found, &model);
        return Ok(Searched { model, found, source, hyperpriors, solutions });
    }
    let blocks = match search {
        HyperparameterSearch::Blocks => true,
        HyperparameterSearch::Refined => state.is_none(),
        HyperparameterSearch::Neighbourhoods | HyperparameterSearch::Stochastic => false,
    };
    if blocks {
        let mut stages = Stages { fitting, options, hyperpriors: &hyperpriors };
        model = stages.on_blocks::<T>(model, &mut found)?;
    }
    if search == HyperparameterSearch::Neighbourhoods {
        model = on_neighbourhoods::<T>(fitting, options, model, (&mut found, &hyperpriors))?;
    }
    if search.is_stochastic() {
        let before = found.blocks.last().map(|(_, values)| {
            let mut own = model.clone();
            own.set_values(values);
            (own, found.clone())
        });
        let begin = Begin { model, state, hyperpriors: &hyperpriors };
        (model, solutions) = on_all_rows::<T>(fitting, options, begin, &mut found)?;
        if let Some((blocks, kept)) = before
            && let Some(why) = worse(&blocks, &model, &prepared.data, request.seed)
        {
            (model, solutions) = (blocks, None);
            found = Found { following_failed: Some(why), seconds: found.seconds, ..kept };
            found.noise_raised_from = solvable::<T>(&mut model, prepared, &options.evidence);
        }
    } else if search == HyperparameterSearch::Blocks {
        let (n, d) = prepared.data.inputs().shape();
        // As it was planned: with the rows that are held back.
        let rows = n + held.map_or(0, HeldBack::rows);
        let blocks = refinement::Blocks { request, options, rows, inputs: d };
        let rate = rate(&found, d);
        let largest = found.blocks.iter().flat_map(|(fit, _)| fit.sizes.iter().copied()).max().unwrap_or(0);
        let in_time = |own: refinement::Following, share| own.is_in_time(allowance.until(share), rate);
        // What was under way goes on; hardly more rows tell hardly more.
        let exactly = following.is_none() && n > largest + largest / 4;
        if exactly && blocks.exactly().is_some_and(|own| in_time(own, EXACT_SHARE)) {
            let mut stages = Stages { fitting, options, hyperpriors: &hyperpriors };
            model = stages.on_all_rows::<T>(model, &mut found)?;
        } else if following.is_some()
            || largest < n && blocks.by_steps().is_some_and(|own| in_time(own, STOCHASTIC_SHARE))
        {
            let begin = Begin { model: model.clone(), state: following, hyperpriors: &hyperpriors };
            let ended = by_steps(fitting, options, begin, &mut found)?;
            if let Some((ended, last)) = ended {
                (model, solutions) = (ended, last.map(in_precision::<f64, T>));
                found.noise_raised_from = solvable::<T>(&mut model, prepared, &options.evidence);
            }
        }
    }
    let source = source(prepared, options, &found, &model);
    found.hyperparameters = Hyperparameter::of(&model);
    fitting.checkpoints.save::<T>(&found, solutions.clone().map_or(Stage::Between, Stage::Solved))?;
    Ok(Searched { model, found, source, hyperpriors, solutions })
}

/// Where hyperparameters come from, in words.
pub(crate) fn source(
    prepared: &Prepared,
    options: &IterativeOptions,
    found: &Found,
    model: &ExactGp,
) -> String {
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
        HyperparameterSearch::Blocks | HyperparameterSearch::Refined if found.search.is_none() => blocks(),
        HyperparameterSearch::Stochastic => stochastic(),
        HyperparameterSearch::Refined | HyperparameterSearch::Blocks => {
            format!("{}, from {}", stochastic(), blocks())
        }
    };
    if let Some(why) = &found.following_failed {
        text += &format!("; a search on all rows that was to follow failed ({why})");
    }
    if let Some(Wanted { ratio, largest, fall, .. }) = &found.wanted {
        text += &format!(
            ", with the kernel's variances bounded ({largest:.1e} in all): the evidence alone wanted {ratio:.1e} times the noise's (for {} nats a row of it), which cannot be solved",
            number(*fall)
        );
    }
    if let Some(noise) = found.noise_raised_from {
        let raised = model.noise().noise_variance();
        text += &format!(
            "; the noise variance was raised from {noise:.1e} to {raised:.1e} so that the system can be solved"
        );
    }
    text
}

/// Share of the budget by whose end the exact evidence of all rows is: what is left is for their posterior; and the same of the stochastic search.
pub(crate) const EXACT_SHARE: f64 = 0.8;
pub(crate) const STOCHASTIC_SHARE: f64 = 0.5;

/// Operations a second that evidences of blocks reached.
fn rate(found: &Found, inputs: usize) -> f64 {
    let done = |(fit, _): &(BlockFit, Vec<f64>)| {
        let evaluations: usize = fit.attempts.iter().map(|a| a.evaluations).sum();
        let of = |&size: &usize| exact::Plan::evidence(size, inputs, 1).flops_per_evaluation;
        evaluations as f64 * fit.sizes.iter().map(of).sum::<f64>()
    };
    found.blocks.iter().map(done).sum::<f64>() / found.seconds.max(1e-9)
}

/// The largest ratio of the function's variance to the noise's that iterative solvers in single and in double precision are given: beyond it, systems of tens of
/// thousands of rows take tens of thousands of iterations, and rounding keeps them from their solution.
pub(crate) const MOST_SIGNAL: [f64; 2] = [1e5, 1e8];

/// The largest prior variance of the function at some rows.
pub(crate) fn signal(model: &ExactGp, prepared: &Prepared) -> f64 {
    let few = prepared.data.inputs().subrows(0, prepared.data.rows().min(100));
    posterior_kernels::diagonal(model.kernel(), few).into_iter().fold(0.0, f64::max)
}

/// Raises the noise where the system would be hopeless, as far as the user's constraints of it allow, and returns what it was.
pub(crate) fn solvable<T: SolverPrecision>(
    model: &mut ExactGp,
    prepared: &Prepared,
    asked: &EvidenceOptions,
) -> Option<f64> {
    let (signal, noise) = (signal(model, prepared), model.noise().noise_variance());
    let most = asked.constraints.all().iter().find(|own| own.parameter() == "noise_variance").map_or(
        f64::INFINITY,
        |own| match *own {
            Constraint::Fixed { .. } => noise,
            Constraint::Between { upper, .. } => upper,
        },
    );
    let least = (signal / MOST_SIGNAL[usize::from(size_of::<T>() > 4)]).min(most);
    (noise < least).then(|| {
        set_noise(model, least);
        noise
    })
}

/// Another noise variance, which is the last of a model's values.
pub(crate) fn set_noise(model: &mut ExactGp, noise: f64) {
    let mut values = model.values();
    if let Some(last) = values.last_mut() {
        *last = noise;
    }
    model.set_values(&values);
}
