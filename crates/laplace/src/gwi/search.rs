//! All of a fit in order.

use super::options::{GwiNoise, GwiOptions};
use super::plan::plan;
use super::posterior::Gwi;
use super::prior::{FoundPrior, PriorTask, candidates, precisions};
use super::report::{GwiPrior, GwiReport, PriorRows};
use super::saved::{GwiState, earlier, saved};
use crate::LaplaceError;
use crate::error::check_memory;
use crate::fixed_mean::named;
use crate::kernel_inputs::KernelInputs;
use crate::learned::Found;
use crate::problem::{Data, Problem};
use crate::rows::Rows;
use crate::run::{Run, Stage};
use crate::scores::{LEAST_HELD_OUT, no_better, scaled_noise, with_values};
use faer::Mat;
use posterior_gp::Observations;
use posterior_gp::generalised::{
    Coordinates, GeneralisedData, GeneralisedFit, GeneralisedGp, ReferenceProcess, TemperingMethod,
    VariationalKernel, VariationalMean, fit_generalised,
};
use posterior_kernels::diagonal;
use posterior_kernels::inducing::random_rows;
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_networks::{Graph, Precision};
use posterior_notes::fixes::VALIDATION_DATA;
use posterior_optim::Reason;
use posterior_tangent::check_outputs;
use rand::seq::SliceRandom;
use std::time::Instant;

/// Unseen rows from which on they are parted into those that the prior is learned from and those that judge.
const LEAST_APART: usize = 4 * LEAST_HELD_OUT;

/// Share of prior variance in the variance of residuals below which the evidence has found nothing but noise.
const NOTHING: f64 = 1e-3;

/// A fitted covariance; its likelihood has all of the noise, tempering included.
pub type GwiFit = Found<Gwi, GwiReport>;

/// Learns a covariance around a trained network. Validation examples say when steps end and how much variances are multiplied by. Of 200 or more, one half is for this and the prior is learned from the other half.
/// Without validation examples all steps are taken and nothing is judged.
///
/// # Errors
/// [`LaplaceError`]: bad inputs or targets, options that do not fit data or each other, a plan above the memory, an objective that is no number (at which step), interruption.
pub fn fit<T: Precision>(
    problem: &Problem<'_, T>,
    options: &GwiOptions,
    run: &mut Run<'_>,
) -> Result<GwiFit, LaplaceError> {
    let &Problem { data: Data { network, examples, validation, likelihood }, seed, memory, .. } = problem;
    let started = Instant::now();
    check_outputs(network, likelihood)?;
    let n = examples.len();
    options.check(n, likelihood)?;
    let validation = validation.filter(|v| !v.is_empty());
    let needed = plan(&problem.size(problem.selection), options)?;
    let remedy =
        "take fewer inducing points, a smaller batch or fewer rows for the prior, or allow more memory";
    check_memory(needed.bytes(), memory, format_args!("the process around the network"), remedy)?;
    let Some(text) = options.kernel.text() else {
        return Err(LaplaceError::Request("gwi has no tangent kernel".into()));
    };
    let kernel_inputs = KernelInputs::of(&options.kernel, network.graph())?;
    let data = Data { validation, ..problem.data };
    let rows = (Rows::new(&data, &kernel_inputs, run)?, Rows::held(&data, &kernel_inputs, run)?);
    let (posterior, likelihood, mut report) =
        learned(rows, network.graph(), likelihood, (options, text), (seed, memory), run)?;
    report.seconds = started.elapsed().as_secs_f64();
    let notes = notes(options, matches!(likelihood, OutputLikelihood::Gaussian(_)), &report);
    let precision = 1.0 / report.prior.amplitude;
    Ok(Found::new(posterior, likelihood, precision, report, notes))
}

/// Prior and covariance from the rows that are learned from and others, as the network sees them; a report without seconds.
fn learned(
    (rows, held): (Rows, Option<Rows>),
    graph: &Graph,
    likelihood: &OutputLikelihood,
    (options, text): (&GwiOptions, &str),
    (seed, memory): (u64, u64),
    run: &mut Run<'_>,
) -> Result<(Gwi, OutputLikelihood, GwiReport), LaplaceError> {
    let parts = held.as_ref().map(|held| apart(held.means.nrows(), seed));
    let plain_score = held.as_ref().map(|held| held.plain_score(likelihood));

    let unseen = held.as_ref().zip(parts.as_ref());
    // Under Gaussian noise rows that are too few to be parted judge only.
    let numbers = matches!(likelihood, OutputLikelihood::Gaussian(_));
    let learns = unseen.filter(|(_, parts)| !(numbers && parts.shared));
    let learns = learns.map(|(held, parts)| (held, parts.prior.as_slice()));
    let task = PriorTask { options, text, likelihood, rows: &rows, unseen: learns, seed, memory };
    let (found, state) = match earlier(&mut run.checkpointer)? {
        Some(GwiState { prior, training }) => (prior, Some(training)),
        None => (task.learn(run)?, None),
    };
    let reference = task.reference(&found)?;
    let begun = begin(&task, &reference, likelihood, &found)?;
    let prior = described(&task, &found, &reference);

    let Rows { means, targets, points } = rows;
    let data = Observations::new(points, targets, None)?;
    let judging = match unseen {
        Some((held, parts)) => Some(judges(held, &parts.judge)?),
        None => None,
    };
    let judge = judging
        .as_ref()
        .map(|(observations, given)| GeneralisedData { observations, given: Some(given.as_ref()) });
    let given = GeneralisedData { observations: &data, given: Some(means.as_ref()) };
    let told = options.steps(seed);
    let trained = fit_generalised(begun, given, judge, &told, state, &mut |progress, training| {
        // As it is here: what a fit returns has looked once more than one that goes on.
        let state = || saved(&GwiState { prior: found.clone(), training: training.state().clone() });
        run.save((Stage::Process, progress.step, progress.steps_planned), state)
    });
    let GeneralisedFit { model, reason, steps, best, state } = run.ended(trained)?;
    if reason == Reason::Interrupted {
        return Err(LaplaceError::Interrupted);
    }
    let (model, tempering) = match judge.filter(|_| options.tempering) {
        Some(judge) => {
            let (model, tempered) = model.temper(&judge, &TemperingMethod::Best)?;
            (model, Some(tempered))
        }
        None => (model, None),
    };
    let own = model.likelihood();
    let report = GwiReport {
        prior,
        steps,
        reason,
        judged: judging.as_ref().map_or(0, |(observations, _)| observations.rows()),
        scores: state.training.validation_scores.iter().map(|look| (look.step, look.nll)).collect(),
        best_step: best.map(|look| look.step),
        plain_score,
        tempering,
        irregularities: state.irregularities,
        jitter: state.training.largest_jitter,
        noise: named(own.segments(), own.values()),
        history: state.history,
        seconds: 0.0,
    };
    let likelihood = with_values(&noisy(likelihood, options, &found)?, &own.values());
    Ok((Gwi::new(graph, options, model)?, likelihood, report))
}

/// Unseen rows that the prior is learned from, and those that judge.
struct Parts {
    prior: Vec<usize>,
    judge: Vec<usize>,
    /// Whether they are the same, for there are too few to part.
    shared: bool,
}

fn apart(rows: usize, seed: u64) -> Parts {
    let mut order: Vec<usize> = (0..rows).collect();
    if rows < LEAST_APART {
        return Parts { prior: order.clone(), judge: order, shared: true };
    }
    order.shuffle(&mut Streams::new(seed).stream("laplace/gwi-unseen"));
    let mut judge = order.split_off(rows / 2);
    order.sort_unstable();
    judge.sort_unstable();
    Parts { prior: order, judge, shared: false }
}

/// Rows that judge, with the network's outputs there.
fn judges(held: &Rows, rows: &[usize]) -> Result<(Observations, Mat<f64>), LaplaceError> {
    let pick = |m: &Mat<f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
    Ok((Observations::new(held.at(rows), pick(&held.targets), None)?, pick(&held.means)))
}

/// The likelihood as training begins. Of one output its noise is one parameter, which tempering multiplies as well.
fn noisy(
    given: &OutputLikelihood,
    options: &GwiOptions,
    found: &FoundPrior,
) -> Result<OutputLikelihood, LaplaceError> {
    let OutputLikelihood::Gaussian(own) = given else { return Ok(given.clone()) };
    let all = own.noise_variances();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let factor = if options.noise == GwiNoise::Given { 1.0 } else { found.noise / mean };
    match all {
        [one] if one * factor > 0.0 => Ok(OutputLikelihood::Gaussian(Gaussian::new(one * factor, 0.0))),
        _ => scaled_noise(given, factor),
    }
}

/// The process as its training begins.
fn begin(
    task: &PriorTask<'_>,
    reference: &ReferenceProcess,
    given: &OutputLikelihood,
    found: &FoundPrior,
) -> Result<GeneralisedGp, LaplaceError> {
    let options = task.options;
    let likelihood = noisy(given, options, found)?;
    let coordinates = Coordinates::Whitened;
    let kernels: Vec<VariationalKernel> = match options.family.is_of_weights() {
        true => precisions(task, reference, &likelihood)
            .iter()
            .map(|own| VariationalKernel::begin(options.family, coordinates, reference, own.as_ref()))
            .collect::<Result<_, _>>()?,
        false => vec![VariationalKernel::blank(options.family, reference); given.outputs()],
    };
    let mean = VariationalMean::Prior;
    let boxed = likelihood.clone_box();
    let mut model = GeneralisedGp::from_parts(vec![reference.clone()], kernels, coordinates, mean, boxed)?;
    model.learn_likelihood = match given {
        OutputLikelihood::Gaussian(_) => options.noise == GwiNoise::Trained,
        _ => options.noise != GwiNoise::Given,
    };
    Ok(model)
}

/// What is to be told of the prior.
fn described(task: &PriorTask<'_>, found: &FoundPrior, reference: &ReferenceProcess) -> GwiPrior {
    let model = reference.posterior().model();
    let n = task.rows.means.nrows();
    let points = candidates(n, found.rows.len());
    let among = random_rows(n, points, Streams::new(task.seed).child("laplace/gwi-variance", 0));
    let own = diagonal(reference.kernel(), task.rows.at(&among).as_ref());
    GwiPrior {
        learned_from: found.from.0,
        rows: found.from.1,
        amplitude: found.amplitude,
        tried: found.tried.clone(),
        kernel: named(model.kernel().segments(), model.kernel().values()),
        variance: own.iter().sum::<f64>() / own.len() as f64,
        noise: found.noise,
        inducing: found.rows.len(),
        jitter: reference.whitening().relative_jitter,
    }
}

/// What a user should know.
fn notes(options: &GwiOptions, numbers: bool, report: &GwiReport) -> Vec<String> {
    let mut out = Vec::new();
    let prior = &report.prior;
    if report.judged == 0 {
        let of_prior = match (numbers, prior.learned_from) {
            (true, PriorRows::Training) => {
                "the prior is that of residuals of rows that the network has learned from, which are too small"
            }
            _ => "the prior variance is what the kernel's text says",
        };
        out.push(format!(
            "no rows that the network has not seen: nothing was judged, so that the fit took all {} steps, variances were not tempered, and {of_prior}; give {VALIDATION_DATA}",
            report.steps
        ));
    } else if prior.learned_from == PriorRows::Training {
        out.push(format!(
            "{} unseen rows are too few to learn the prior from as well ({LEAST_APART} are needed): it is that of residuals of rows that the network has learned from, and tempering makes up for their size",
            report.judged
        ));
    }
    if prior.inducing < options.inducing_points.unwrap_or(0) {
        out.push(format!(
            "{} inducing points were chosen: further rows are known from these under this kernel",
            prior.inducing
        ));
    }
    if numbers && prior.learned_from != PriorRows::Nothing && prior.variance < NOTHING * prior.noise {
        out.push(
            "the evidence finds nothing but noise in what the network leaves: these error bars are that noise everywhere, also away from the data".into(),
        );
    }
    let edges = [prior.tried.first(), prior.tried.last()];
    if edges.iter().flatten().any(|edge| edge.0 == prior.amplitude) {
        out.push(format!(
            "the prior variance {:.1e} stands at the end of what is tried: unseen rows do not determine it",
            prior.amplitude
        ));
    }
    out.extend(report.irregularities.sentences(report.steps));
    out.extend(no_better(report.score(), report.plain_score));
    out
}
