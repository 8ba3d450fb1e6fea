//! Gaussianised inference: pseudo-targets once, then regression.
//!
//! 1. A pseudo-count, unless one is given or learned (`learned`): on a part of the rows, hyperparameters of each half by the pseudo-targets' evidence, then every row of the other half predicted from all others in closed form and scored by its
//!    label itself (`crossed`). (The evidence cannot choose: its targets change with the pseudo-count.)
//! 2. Hyperparameters that all functions share: the sum of their evidences on all rows, or on blocks of them; of inducing points their collapsed bounds.
//! 3. A process for each function, by any method of regression.
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*; spec `likelihood_approximations`, sections 6.2, 6.3 and 7.

use super::check::{Judged, crossed};
use super::cost::collapsed_search;
use super::gaussian_labels::{GaussianLabels, NO_NOISE};
use super::journal::Journal;
use super::observed::Observed;
use super::outcome::Inferred;
use super::plan::{InferencePlan, SEARCH_WORK};
use super::pseudo_count;
use super::search::Searching;
use crate::method::training::FoundSearch;
use crate::options::{
    CalibrateName, InferenceName, OutputRequest, PriorSettings, PseudoCount, Start, Validation,
};
use crate::output::marginal;
use crate::record::PSEUDO_COUNTS;
use crate::rows::{Prints, without_duplicates};
use crate::{
    BoundedPseudoCount, CheckedOn, FitRequest, FitStage, GaussianLabelSummary, Hyperparameter,
    IndependentFunctions, Latent, Model, ModelError, Target, TriedPseudoCount,
};
use posterior_gp::exact::{ExactGp, ExactPosterior, SeveralObservations};
use posterior_gp::inducing::collapsed::{CollapsedGp, CollapsedOptions, search_collapsed};
use posterior_gp::iterative::Blocks;
use posterior_gp::{GpError, MeanForm};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_likelihoods::{Categorical, Gaussian, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_optim::{Observer, Parameters};
use std::sync::Arc;

/// The place of the first.
pub(crate) const FIRST: usize = 4;

/// The place of the least that is tried with counts: with less, a count of 0 says so little of its rate that predicted variances overflow.
const LEAST_OF_COUNTS: usize = 4;

/// A process with this kernel for pseudo-targets: no mean (that is taken off) and no noise of its own.
pub(crate) fn process(observed: &Observed, request: &FitRequest) -> Result<ExactGp, ModelError> {
    let kernel = request.prior.kernel.build(&observed.feature_names())?;
    let noise = Gaussian::new(NO_NOISE, 0.0);
    Ok(ExactGp::new(kernel, MeanForm::Zero, noise, observed.data.inputs().ncols(), 1))
}

/// Every row's latent values as the others predict them, from what each function's pseudo-targets are predicted as. Cost `n³/3` flops for each function.
pub(crate) fn left_out<'a>(
    data: &SeveralObservations,
    posteriors: impl Iterator<Item = &'a ExactPosterior>,
    gaussian_labels: &GaussianLabels,
) -> Result<Latent, GpError> {
    let (n, c) = (data.rows(), data.functions());
    let (mut mean, mut variance) = (vec![0.0; n * c], vec![0.0; n * c]);
    // Labels are duplicates where those of no function say otherwise.
    let prints = (0..c).map(|k| Prints::of(&data.function(k))).collect::<Result<Vec<_>, _>>()?;
    let copied = prints.iter().all(|own| own.copied);
    for (k, posterior) in posteriors.enumerate() {
        let found = posterior.leave_one_out();
        let multiplicities = if copied { prints[k].multiplicities() } else { vec![1; n] };
        for i in 0..n {
            let noise = NO_NOISE + data.noise(i, k);
            let (own, truth) = ((found.mean[(i, 0)], found.variance[i]), posterior.data().targets()[(i, 0)]);
            let without = match multiplicities[i] {
                1 => own,
                count => without_duplicates(own, truth, (noise, count)).unwrap_or(own),
            };
            mean[i * c + k] = gaussian_labels.offsets[k] + gaussian_labels.scale * without.0;
            // That of a new pseudo-target, less its noise.
            let latent = without.1 - noise;
            variance[i * c + k] = gaussian_labels.scale.powi(2) * latent.max(0.0);
        }
    }
    Ok(Latent::new(mean, variance, c))
}

/// Scores of rows that are predicted from the others.
pub(crate) fn score(observed: &Observed, rows: &[usize], latents: Latent) -> Result<Judged, ModelError> {
    let (all, offsets) = (observed.targets(), observed.data.offsets());
    let own: Vec<f64> = rows.iter().map(|&i| all[i]).collect();
    let of_rows: Option<Vec<f64>> = offsets.map(|offsets| rows.iter().map(|&i| offsets[i]).collect());
    let kind = (&observed.target, &observed.likelihood);
    let known = marginal(&observed.target, &all, offsets);
    Judged::of(CheckedOn::LeaveOneOut, latents, kind, &own, (&known, of_rows.as_deref()))
}

/// What is matched where nothing is said, compared with each other. Of classes mean and variance of the positive variable, and the least divergence: the two best as published, and on forty public tables now
/// the one, now the other. Events and counts have no such first form, or none of use.
pub(crate) fn default_matchings(likelihood: &OutputLikelihood) -> &'static [Matching] {
    match likelihood {
        OutputLikelihood::Categorical(_) => &[Matching::MomentOriginal, Matching::Variational],
        _ => &[Matching::Variational],
    }
}

/// What a pseudo-count is worth on a part of the rows.
struct Trial {
    /// Hyperparameters that half of the rows chose.
    model: ExactGp,
    judged: Judged,
}

/// Every row of a part predicted from the others of it, under hyperparameters that its half had no part in.
fn trial(
    observed: &Observed,
    rows: &[usize],
    gaussianised: &Gaussianised,
    model: &ExactGp,
    (request, searching): (&FitRequest, &mut Searching<'_, '_>),
) -> Result<Trial, ModelError> {
    let gaussian_labels = GaussianLabels::of(observed, gaussianised, request.prior.mean)?;
    let data = gaussian_labels.on(observed, rows)?;
    let mut last = model.clone();
    let learned = (request.start.hyperparameters().is_none(), request.seed);
    let functions = gaussian_labels.count();
    let (matching, pseudo_count) = (gaussianised.matching().name(), gaussianised.pseudo_count());
    let tried = format!("{functions} functions, {matching} {pseudo_count}");
    let latents = crossed(observed, rows, learned, |half| {
        let own: Vec<usize> = half.iter().map(|&place| rows[place]).collect();
        let name = format!("{tried}, a part with row {}", own[0] + 1);
        last = searching.evidence(&name, last.clone(), &gaussian_labels.on(observed, &own)?, None, true)?;
        let each = (0..data.functions()).map(|k| last.clone().condition(data.function(k)));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(left_out(&data, each.iter(), &gaussian_labels)?)
    })?;
    Ok(Trial { judged: score(observed, rows, latents)?, model: last })
}

/// A pseudo-count, those that were tried, and the trial of the best.
struct Choice {
    gaussianised: Gaussianised,
    tried: Vec<TriedPseudoCount>,
    best: Option<Trial>,
}

/// Pseudo-counts on a part of the rows. One that is given is tried as well where its score is wanted. Yes and no are tried as two classes as well, where nothing else was asked for, and `observed` is left as what was best.
///
/// The logit of an event has the same noise whatever happened. Where one outcome is rare, that noise is larger than all that the labels vary, and the evidence takes the function for nothing; of two classes with a function each,
/// the rare one's noise is its own.
fn choose_pseudo_count(
    observed: &mut Observed,
    (request, plan): (&FitRequest, &InferencePlan),
    model: &ExactGp,
    searching: &mut Searching<'_, '_>,
) -> Result<Choice, ModelError> {
    let asked = &request.output;
    let named = asked.matching.map(|matching| [matching]);
    let matchings = |of: &Observed| match &named {
        Some(own) => own.to_vec(),
        None => default_matchings(&of.likelihood).to_vec(),
    };
    let blocks = Blocks { uniform: 1, neighbourhoods: 0, size: plan.trial_rows, seed: request.seed };
    let rows = blocks.rows(&observed.data)?.swap_remove(0);
    if let Some(PseudoCount::Given(pseudo_count)) = asked.pseudo_count {
        let gaussianised = Gaussianised::new(matchings(observed)[0], pseudo_count)?;
        let wanted = plan.method.settings().leaves_one_out() && rows.len() > 1;
        let best = match wanted {
            true => Some(trial(observed, &rows, &gaussianised, model, (request, searching))?),
            false => None,
        };
        return Ok(Choice { gaussianised, tried: Vec::new(), best });
    }
    let mut tried: Vec<TriedPseudoCount> = Vec::new();
    let mut best: Option<(Gaussianised, Trial, OutputLikelihood)> = None;
    // Away from the first on either side for as long as it gets better; the other side is not better where one is.
    let least = if matches!(observed.target, Target::Counts { .. }) { LEAST_OF_COUNTS } else { 0 };
    let ways: [Vec<usize>; 3] =
        [vec![FIRST], (least..FIRST).rev().collect(), (FIRST + 1..PSEUDO_COUNTS.len()).collect()];
    let mut likelihoods = vec![observed.likelihood.clone()];
    if plan.tries_two_classes {
        likelihoods.push(OutputLikelihood::Categorical(Categorical::new(2)?));
    }
    for likelihood in likelihoods {
        observed.likelihood = likelihood;
        let as_classes = plan.tries_two_classes && !tried.is_empty();
        let begins = tried.len();
        for matching in matchings(observed) {
            let first = tried.len();
            for way in &ways {
                let own = &tried[first..];
                let mut last = own.first().map_or(f64::INFINITY, |t| t.scores.nll);
                if own.iter().any(|t| t.scores.nll < last) {
                    break;
                }
                for &index in way {
                    if best.is_some() && searching.is_spent() {
                        break;
                    }
                    let pseudo_count = PSEUDO_COUNTS[index];
                    // What one function was taken for is no place to begin with two.
                    let before = best.as_ref().filter(|_| tried.len() > begins);
                    let from = before.map_or(model, |(_, trial, _)| &trial.model);
                    let gaussianised = Gaussianised::new(matching, pseudo_count)?;
                    let found = trial(observed, &rows, &gaussianised, from, (request, searching))?;
                    let scores = found.judged.check.scores;
                    tried.push(TriedPseudoCount { matching, pseudo_count, scores, as_classes });
                    if best.as_ref().is_none_or(|(_, trial, _)| scores.nll < trial.judged.check.scores.nll) {
                        best = Some((gaussianised, found, observed.likelihood.clone()));
                    }
                    if scores.nll >= last {
                        break;
                    }
                    last = scores.nll;
                }
            }
        }
    }
    Ok(match best {
        Some((gaussianised, trial, likelihood)) => {
            observed.likelihood = likelihood;
            Choice { gaussianised, tried, best: Some(trial) }
        }
        None => {
            let gaussianised = Gaussianised::new(matchings(observed)[0], PSEUDO_COUNTS[FIRST])?;
            Choice { gaussianised, tried, best: None }
        }
    })
}

/// The name of the search for hyperparameters of all rows.
const SHARED: &str = "hyperparameters of all functions";

/// Hyperparameters that all functions share, and where they come from.
fn hyperparameters(
    observed: &Observed,
    (request, plan): (&FitRequest, &InferencePlan),
    gaussian_labels: &GaussianLabels,
    model: ExactGp,
    searching: &mut Searching<'_, '_>,
) -> Result<(ExactGp, String), ModelError> {
    if request.start.hyperparameters().is_some() {
        return Ok((model, "given".into()));
    }
    let (n, c) = (observed.rows(), gaussian_labels.count());
    let all: Vec<usize> = (0..n).collect();
    if let Some(options) = plan.method.settings().shared_bound() {
        let m = options.inducing.points().min(n);
        if collapsed_search(c, n, m).is_some() {
            let streams = Streams::new(request.seed);
            let chosen = options.inducing.choice();
            let chosen = chosen.choose(model.kernel(), observed.data.inputs(), m, streams)?;
            let noise = model.noise().clone();
            let mut collapsed =
                CollapsedGp::new(model.kernel().clone_box(), MeanForm::Zero, noise, chosen.points, 1)?;
            // The pseudo-targets' noise is theirs; inducing points stay where every function's process will choose them.
            (collapsed.learn_inducing, collapsed.learn_likelihood) = (false, false);
            let settings = CollapsedOptions {
                steps: searching.steps(),
                hyperpriors: searching.hyperpriors(&model),
                constraints: options.constraints.all(),
                memory_limit: request.limits.memory,
            };
            let data = gaussian_labels.on(observed, &all)?;
            let parts: Vec<_> = (0..c).map(|k| data.function(k)).collect();
            let kernel = searching.once(SHARED, |observer| {
                let found = search_collapsed(collapsed, &parts, &settings, None, &mut |progress, _| {
                    observer(progress, &FitStage::Search)
                })?;
                let (values, ended) =
                    (found.model.kernel().values(), (found.reason, found.steps, found.evaluations));
                Ok(FoundSearch::new(values, ended, found.largest_jitter, found.at_bounds))
            })?;
            let mut model = model;
            model.set_values(&[kernel, vec![NO_NOISE]].concat());
            return Ok((
                model,
                format!("the collapsed bounds of all functions together, {m} inducing points"),
            ));
        }
    }
    if c as f64 * (n as f64).powi(3) <= SEARCH_WORK || plan.trial_rows >= n {
        let data = gaussian_labels.on(observed, &all)?;
        let source = "the evidence of all functions' pseudo-targets together".to_string();
        return Ok((searching.evidence(SHARED, model, &data, None, false)?, source));
    }
    let size = ((SEARCH_WORK / (4 * c) as f64).cbrt() as usize).clamp(2, n);
    let blocks = match plan.method.iterative() {
        Some(options) => options.search.blocks(request.seed),
        None => Blocks { uniform: 2, neighbourhoods: 2, size, seed: request.seed },
    };
    let (rows, size) = (blocks.rows(&observed.data)?, blocks.size.min(n));
    let data = gaussian_labels.on(observed, &all)?;
    let source = format!(
        "the evidence of all functions' pseudo-targets together, on {} blocks of {size} rows",
        rows.len()
    );
    Ok((searching.evidence(SHARED, model, &data, Some(&rows), false)?, source))
}

/// What functions will be regressions on, and how that was chosen.
pub(crate) struct Chosen {
    pub(crate) gaussianised: Gaussianised,
    pub(crate) gaussian_labels: GaussianLabels,
    /// With the hyperparameters.
    pub(crate) model: ExactGp,
    /// Where they come from.
    pub(crate) source: String,
    pub(crate) judged: Option<Judged>,
    pub(crate) tried: Vec<TriedPseudoCount>,
    pub(crate) bounds: Vec<BoundedPseudoCount>,
}

/// The pseudo-count by rows left out, or as it is given; then hyperparameters by the pseudo-targets' evidence.
fn by_rows_left_out(
    observed: &mut Observed,
    (request, plan): (&FitRequest, &InferencePlan),
    searching: &mut Searching<'_, '_>,
) -> Result<Chosen, ModelError> {
    let begun = searching.begun(process(observed, request)?)?;
    let Choice { gaussianised, tried, best } =
        choose_pseudo_count(observed, (request, plan), &begun, searching)?;
    let (model, judged) = best.map_or((begun, None), |trial| (trial.model, Some(trial.judged)));
    let gaussian_labels = GaussianLabels::of(observed, &gaussianised, request.prior.mean)?;
    let (model, source) = hyperparameters(observed, (request, plan), &gaussian_labels, model, searching)?;
    Ok(Chosen { gaussianised, gaussian_labels, model, source, judged, tried, bounds: Vec::new() })
}

/// Fits. The likelihood of `observed` is afterwards that of the functions. The check is of the rows that the pseudo-count was chosen on. Each is predicted from the others, under hyperparameters of the other half. There is none where that has no closed form.
pub(crate) fn fit(
    observed: &mut Observed,
    request: &FitRequest,
    plan: &InferencePlan,
    kept: (&mut Journal, &mut Observer<'_, FitStage>),
) -> Result<Inferred, ModelError> {
    let mut evidence = plan.method.evidence().cloned().unwrap_or_default();
    if let Some(options) = plan.method.settings().shared_bound() {
        evidence.steps = Some(options.steps());
        evidence.constraints = options.constraints.clone();
    }
    let searching = &mut Searching::new(request, &evidence, observed.data.inputs().ncols(), kept);
    let chosen = match request.output.pseudo_count {
        Some(PseudoCount::Learned) => pseudo_count::choose(observed, request, searching)?,
        _ => by_rows_left_out(observed, (request, plan), searching)?,
    };
    let Chosen { gaussianised, gaussian_labels, model, source, judged, tried, bounds } = chosen;
    let hyperparameters = Hyperparameter::of(&model);
    // What every function's own process is told.
    let mut own = FitRequest {
        start: Start::given(hyperparameters.clone()),
        output: OutputRequest::default(),
        method: plan.method.clone(),
        prior: PriorSettings {
            mean: MeanForm::Zero,
            noise_floor: 0.0,
            initial_noise: None,
            ..request.prior.clone()
        },
        validation: Validation { calibrate: CalibrateName::None, ..request.validation },
        ..request.clone()
    };
    if let Some(large) = own.method.large_mut() {
        // Functions have checkpoints of their own.
        (large.held_back, large.checkpoint, large.fresh) = (Some(0), None, false);
    }
    let (mut members, mut predictors) = (Vec::new(), Vec::new());
    for k in 0..gaussian_labels.count() {
        own.limits.time = searching.left();
        let prepared = gaussian_labels.prepared(observed, k)?;
        let (journal, observer) = searching.kept();
        let fitted = journal.function(k, own.method.iterative().is_some(), |checkpoint| {
            let mut own = own.clone();
            if let Some(large) = own.method.large_mut() {
                large.checkpoint = checkpoint;
            }
            Model::fit_prepared(prepared, &own, observer)
        })?;
        let process =
            fitted.process().filter(|_| !fitted.was_interrupted()).ok_or(ModelError::Interrupted)?;
        members.push(process.header());
        predictors.push(fitted.predictor);
    }
    // What is held back says more where it is.
    let judged = judged.filter(|_| plan.method.settings().leaves_one_out());
    let told = searching.told(source, hyperparameters, &model);
    let GaussianLabels { offsets, scale, .. } = gaussian_labels;
    let predictor = IndependentFunctions { members: predictors, offsets: offsets.clone(), scale };
    let tried_on = if tried.is_empty() { 0 } else { plan.trial_rows };
    let summary = GaussianLabelSummary { gaussianised, tried, tried_on, bounds, offsets, scale, members };
    let likelihood = observed.likelihood.clone();
    let inferred = Inferred::new(InferenceName::Gaussianised, Arc::new(predictor), likelihood, told);
    Ok(Inferred { judged, gaussian_labels: Some(summary), ..inferred })
}
