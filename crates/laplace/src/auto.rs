//! **A default that can be trusted**: posteriors tuned by the evidence, the best of which is kept.
//!
//! With examples that the network has not seen, everything that fits the budget is compared on them, with the predictive that will be used, and with the plain network: the best score wins, and where it does not
//! beat the network by more than the standard error of the difference, predictions stay its own (the posterior remains for latent variances and samples) and the report says so. Where there are enough of them ([`LEAST_APART`]), one half is for choosing (when a
//! search ends, a temperature) and the other compares; with fewer, posteriors that choose by such examples are left out.
//!
//! Without, the evidence decides, which learns from the training data and needs no others. It ranks *structures of the same weights*: by Fischer's inequality the determinant of a block-diagonal, Kronecker or
//! diagonal curvature is an upper bound of the exact one's, so that the exact structure has the largest evidence of them. It does not rank *sets of weights*: a posterior of the last layer is charged for no
//! other weights, which were chosen by the same data, and always looks better. Which weights are uncertain therefore follows from the likelihood:
//!
//! - **numbers with additive noise**: all weights, as exactly as the budget allows. Weights that are left out of the effective dimensions make the noise too small and intervals too narrow.
//! - **classes, events and counts**: the last layer. There is no noise to estimate, and the tangents of all layers flatten probabilities more than data ask for.
//!
//! The book, chapter "Error bars for a trained network", has the measurements behind both.

use crate::fit::{Approximation, FitOptions, LARGEST, Laplace, NoiseModel, fit};
use crate::fixed_mean::FixedMeanOptions;
use crate::gwi::GwiNoise;
use crate::problem::{Data, Part, Size};
use crate::run::{Run, Stage};
use crate::scores::{LEAST_HELD_OUT, UnseenScores, has_noise};
use crate::unseen::unseen_scores;
use crate::{EllaOptions, FisherEstimate, LaplaceError, Plan, PriorKind, SampledOptions, Weights};
use posterior_likelihoods::{Integration, OutputLikelihood};
use posterior_linalg::compiled_here;
use posterior_linalg::random::Streams;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::train::Examples;
use posterior_networks::{Network, PerNetworkPrecision, Precision, Selection};
use posterior_notes::fixes::{MEMORY, SECONDS, VALIDATION_DATA};
use posterior_optim::Signal;
use posterior_tangent::Head;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What became of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, as `last-layer-kronecker`.
    pub name: String,
    /// What it needs.
    pub plan: Plan,
    /// Why it was not tried; None if it was.
    pub skipped: Option<String>,
    /// Its score on the unseen examples, where there are some.
    pub nll: Option<f64>,
    /// Its log evidence.
    pub log_evidence: Option<f64>,
    /// Seconds it took.
    pub seconds: f64,
}

/// What candidates are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedBy {
    /// Scores on examples that the network has not seen.
    UnseenExamples,
    /// The evidence.
    Evidence,
}

/// The choice and its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoReport {
    /// Every candidate, cheapest first.
    pub candidates: Vec<Candidate>,
    /// The one that was chosen.
    pub chosen: String,
    /// What by.
    pub compared_by: ComparedBy,
    /// Its score on the unseen examples, where there are some.
    pub nll: Option<f64>,
    /// The plain network's score on the same examples.
    pub plain_nll: Option<f64>,
    /// Whether the choice beats the network, by more than the standard error of their difference; None where there was nothing to find that out on.
    pub beats_plain: Option<bool>,
}

/// Something to try.
struct Proposal {
    name: &'static str,
    weights: Weights,
    approximation: Approximation,
    /// Only where nothing before it could be had.
    fallback: bool,
}

/// Unseen examples from which on they are parted into those that choose and those that compare.
pub const LEAST_APART: usize = 4 * LEAST_HELD_OUT;

/// Steps of searches that a comparison can wait for.
const STEPS: usize = 20_000;

/// Posteriors that are found by a search of their own, in the order of their planned seconds: a long one does not take the time of those that need little.
fn searches<T: Precision>(
    network: &Network<T>,
    likelihood: &OutputLikelihood,
    counts: (usize, usize),
    flat: bool,
) -> Vec<Proposal> {
    let proposal = |name, approximation| Proposal::new(name, Weights::All, approximation);
    let process = match flat {
        true => FixedMeanOptions::fixed_mean_table(),
        false => FixedMeanOptions::fixed_mean_images(),
    };
    let shorter = |own: FixedMeanOptions| FixedMeanOptions {
        steps: own.steps.min(STEPS),
        inducing_points: None,
        // The likelihood's own, which is the one asked for where one was.
        initial_noise: None,
        ..own
    };
    let mut all = vec![proposal("temperature", Approximation::Temperature)];
    // A kernel on features needs some.
    if flat || Selection::last_layer(network.graph()).is_ok_and(|l| Head::of(network.graph(), &l).is_some()) {
        all.push(proposal("fixed-mean", Approximation::FixedMean(shorter(process))));
    }
    all.push(proposal("ella", Approximation::Ella(EllaOptions::default())));
    all.push(proposal("sampled", Approximation::Sampled(SampledOptions::default())));
    all.push(proposal("valla", Approximation::FixedMean(shorter(FixedMeanOptions::valla()))));
    let selection = Selection::all(network.graph());
    let seconds = |approximation: &Approximation| {
        let own = FitOptions { approximation: approximation.clone(), ..FitOptions::default() };
        let (examples, unseen) = counts;
        let plan = Plan::new(&Size { network, selection: &selection, examples, unseen, likelihood }, &own);
        plan.map_or(f64::INFINITY, |plan| plan.seconds())
    };
    let mut timed: Vec<_> = all.into_iter().map(|p| (seconds(&p.approximation), p)).collect();
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    timed.into_iter().map(|(_, p)| p).collect()
}

/// Candidates for a network, cheapest first.
fn candidates<T: Precision>(
    network: &Network<T>,
    likelihood: &OutputLikelihood,
    examples: usize,
    unseen: Option<usize>,
) -> Vec<Proposal> {
    let compared = unseen.is_some();
    let kronecker = Approximation::Kronecker(FisherEstimate::Exact);
    let proposal = Proposal::new;
    let last = [
        proposal("last-layer-kronecker", Weights::LastLayer, kronecker.clone()),
        proposal("last-layer", Weights::LastLayer, Approximation::Full),
    ];
    // Exact posteriors where they are small, in whichever space is smaller: then their optimum has a closed form under Gaussian noise.
    let (weights, observed) = (network.graph().trainable(), examples * likelihood.outputs());
    let exact = if weights <= LARGEST && weights <= observed {
        Some(proposal("full", Weights::All, Approximation::Full))
    } else if observed <= LARGEST {
        Some(proposal("function-space", Weights::All, Approximation::FunctionSpace { points: None }))
    } else {
        None
    };
    let all = proposal("kronecker", Weights::All, kronecker);
    match (compared, has_noise(likelihood)) {
        (true, _) => {
            let diagonal = proposal("diagonal", Weights::All, Approximation::Diagonal);
            // Rows of a table are flat; everything else is seen through the network's features.
            let flat = network.graph().input_shape().len() == 1 && has_noise(likelihood);
            let apart = unseen.filter(|count| *count >= LEAST_APART);
            let searches = apart
                .map(|count| searches(network, likelihood, (examples, count / 2), flat))
                .unwrap_or_default();
            last.into_iter().chain([diagonal, all]).chain(exact).chain(searches).collect()
        }
        (false, true) => {
            let fallback = last.into_iter().rev().map(|p| Proposal { fallback: true, ..p });
            std::iter::once(all).chain(exact).chain(fallback).collect()
        }
        (false, false) => last.into(),
    }
}

/// What [`auto`] would try without anything to compare on (or with it): names and plans, cheapest first, fallbacks left out.
///
/// # Errors
/// When a network has no last layer.
pub fn planned<T: Precision>(
    network: &Network<T>,
    likelihood: &OutputLikelihood,
    examples: usize,
    unseen: Option<usize>,
    options: &FitOptions,
) -> Result<Vec<(&'static str, Plan)>, LaplaceError> {
    let graph = network.graph();
    candidates(network, likelihood, examples, unseen)
        .into_iter()
        .filter(|p| !p.fallback)
        .map(|p| {
            let selection = match p.weights {
                Weights::LastLayer => Selection::last_layer(graph)?,
                _ => Selection::all(graph),
            };
            let unseen = unseen.unwrap_or(0);
            let size = Size { network, selection: &selection, examples, unseen, likelihood };
            Ok((p.name, Plan::new(&size, &p.options(options))?))
        })
        .collect()
}

impl Proposal {
    fn new(name: &'static str, weights: Weights, approximation: Approximation) -> Self {
        Self { name, weights, approximation, fallback: false }
    }

    /// The options that it is fitted with. Prior, tuning, noise and mode are those of curvatures: a search of its own decides on these itself, but for noise that is to stay as it is.
    fn options(self, asked: &FitOptions) -> FitOptions {
        let Self { weights, mut approximation, .. } = self;
        if !approximation.is_learned() {
            return FitOptions { weights, approximation, ..asked.clone() };
        }
        if asked.noise == NoiseModel::Fixed {
            match &mut approximation {
                Approximation::FixedMean(own) => own.learn_noise = false,
                Approximation::Gwi(own) => own.noise = GwiNoise::Given,
                Approximation::Sampled(own) => own.learn_noise = Some(false),
                _ => {}
            }
        }
        let FitOptions { prior, initial_precision, tune, noise, mode, .. } = FitOptions::default();
        let own = FitOptions { prior, initial_precision, tune, noise, mode, ..asked.clone() };
        FitOptions { weights, approximation, ..own }
    }
}

/// Why a candidate is not tried at all, where `held` says that the noise is to stay as it is.
fn reason(plan: &Plan, own: &FitOptions, held: bool, left: Option<f64>) -> Option<String> {
    if let Err(error) = plan.check(own) {
        return Some(error.to_string());
    }
    if held && own.approximation == Approximation::Temperature {
        return Some(
            "under Gaussian noise it would change nothing but the noise, which is to stay as it is".into(),
        );
    }
    if let Some(left) = left.filter(|left| plan.seconds() > *left) {
        let left = left.max(0.0);
        return Some(format!("it would take about {:.0} s, {left:.0} s are left", plan.seconds().ceil()));
    }
    let prior = &own.prior;
    match own.approximation {
        Approximation::FunctionSpace { .. } | Approximation::Ella(_)
            if !matches!(prior, PriorKind::Auto | PriorKind::Scalar) =>
        {
            Some("it knows the scalar prior only".into())
        }
        Approximation::Kronecker(_) if *prior == PriorKind::Diagonal => {
            Some("Kronecker factors need one prior precision for each layer".into())
        }
        _ => None,
    }
}

/// Fits what fits the budget, each tuned as `options` say, and returns the best with the options it was fitted with (searches that decide on prior, tuning and noise themselves do so). Candidates are compared on validation examples; `plain` is the
/// plain network's likelihood ([`unseen_scores`]). Where `time` is given nothing is begun that would pass it; else all but the first candidate keep to `patience`.
///
/// # Errors
/// When not even the cheapest candidate fits, too few unseen examples, or a fit fails.
pub fn auto<T: Precision>(
    data: &Data<'_, T>,
    plain: &OutputLikelihood,
    options: &FitOptions,
    time: Option<Duration>,
    patience: Duration,
    observer: &mut dyn FnMut(&str, Stage, usize, usize) -> Signal,
) -> Result<(Laplace<T>, AutoReport, FitOptions), LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'b: 'a] compare, (
        data: &'a Data<'a, T> = data,
        plain: &'a OutputLikelihood = plain,
        options: &'a FitOptions = options,
        time: Option<Duration> = time,
        patience: Duration = patience,
        observer: &'a mut (dyn FnMut(&str, Stage, usize, usize) -> Signal + 'b) = observer,
    ) -> Result<(Laplace<T>, AutoReport, FitOptions), LaplaceError>)
}

fn compare<T: Precision>(
    data: &Data<'_, T>,
    plain: &OutputLikelihood,
    options: &FitOptions,
    time: Option<Duration>,
    patience: Duration,
    observer: &mut dyn FnMut(&str, Stage, usize, usize) -> Signal,
) -> Result<(Laplace<T>, AutoReport, FitOptions), LaplaceError> {
    let &Data { network, examples, validation: unseen, likelihood } = data;
    let started = Instant::now();
    let mut reports: Vec<Candidate> = Vec::new();
    // The posterior, its name, options, and what is minimised.
    let mut best: Option<(Laplace<T>, String, FitOptions, f64)> = None;
    // A temperature changes predictions without any posterior: it is kept where it beats the network, and else nothing is left of it.
    let mut temperature = None;
    let parts = unseen.filter(|u| u.len() >= LEAST_APART).map(|unseen| {
        let mut order: Vec<usize> = (0..unseen.len()).collect();
        order.shuffle(&mut Streams::new(options.seed).stream("laplace/auto"));
        let scored = order.split_off(unseen.len() / 2);
        (Part { whole: unseen, indices: order }, Part { whole: unseen, indices: scored })
    });
    let all = unseen.map(|unseen| unseen.len());
    let (choosing, unseen) = match &parts {
        Some((choosing, scored)) => (Some(choosing as &dyn Examples<T>), Some(scored as &dyn Examples<T>)),
        None => (unseen, unseen),
    };
    let held = options.noise == NoiseModel::Fixed && is_gaussian(likelihood);
    for proposal in candidates(network, likelihood, examples.len(), all) {
        let fallback = proposal.fallback;
        if fallback && best.is_some() {
            continue;
        }
        let name = proposal.name;
        let own = proposal.options(options);
        let mut run = Run::new(|stage, done, total| observer(name, stage, done, total));
        let data = Data { validation: choosing, ..*data };
        let selection = own.weights.select(&data, own.affine, own.seed, &mut run)?;
        let plan = Plan::new(&data.size(&selection), &own)?;
        let limit = time.or((best.is_some() && !fallback).then_some(patience));
        let left = limit.map(|t| t.as_secs_f64() - started.elapsed().as_secs_f64());
        let skipped = reason(&plan, &own, held, left);
        let mut report =
            Candidate { name: name.into(), plan, skipped, nll: None, log_evidence: None, seconds: 0.0 };
        if report.skipped.is_none() {
            let clock = Instant::now();
            let tried = fit(&data, &own, &mut run).and_then(|mut laplace| {
                if let Some(unseen) = unseen {
                    let scores = unseen_scores(network, &laplace, plain, unseen, &mut run)?;
                    laplace.summary.unseen = Some(scores);
                }
                Ok(laplace)
            });
            match tried {
                Ok(laplace) => {
                    report.nll = laplace.summary.unseen.map(|s| s.nll);
                    report.log_evidence = laplace.summary.evidence.as_ref().map(|e| e.log_evidence);
                    let cost = if unseen.is_some() { report.nll } else { report.log_evidence.map(|e| -e) };
                    let cost = cost.filter(|c| c.is_finite()).unwrap_or(f64::INFINITY);
                    let tried = (laplace, name.to_string(), own, cost);
                    if tried.2.approximation == Approximation::Temperature {
                        temperature = Some(tried).filter(|t| t.0.summary.unseen.as_ref().is_some_and(beats));
                    } else if best.as_ref().is_none_or(|b| cost < b.3) {
                        best = Some(tried);
                    }
                }
                Err(LaplaceError::Interrupted) => return Err(LaplaceError::Interrupted),
                // One candidate that fails (a curvature that cannot be factored, say) does not end the comparison.
                Err(error) => report.skipped = Some(error.to_string()),
            }
            report.seconds = clock.elapsed().as_secs_f64();
        }
        reports.push(report);
    }
    if let Some(other) = temperature
        && best.as_ref().is_none_or(|b| other.3 < b.3)
    {
        best = Some(other);
    }
    let Some((mut laplace, chosen, mut own, _)) = best else {
        let reasons: Vec<String> = reports
            .iter()
            .map(|r| format!("{}: {}", r.name, r.skipped.clone().unwrap_or_default()))
            .collect();
        return Err(LaplaceError::Request(format!("no posterior fits the budget ({})", reasons.join("; "))));
    };
    let scores = laplace.summary.unseen;
    let beats_plain = scores.map(|s| beats(&s));
    let tried = reports.iter().filter(|r| r.skipped.is_none()).count();
    laplace.summary.notes.push(sentence(&chosen, tried, scores, likelihood));
    if beats_plain == Some(false) {
        laplace.integration = Integration::PlugIn;
        own.integration = Integration::PlugIn;
    }
    let compared_by = if unseen.is_some() { ComparedBy::UnseenExamples } else { ComparedBy::Evidence };
    let (nll, plain_nll) = (scores.map(|s| s.nll), scores.map(|s| s.plain_nll));
    let report = AutoReport { candidates: reports, chosen, compared_by, nll, plain_nll, beats_plain };
    Ok((laplace, report, own))
}

/// Whether the best of several beats the network: by more than the standard error of the difference, since the best of several is good by chance as well.
fn beats(scores: &UnseenScores) -> bool {
    scores.nll + scores.difference_error < scores.plain_nll
}

/// What was chosen, and what that says.
fn sentence(
    chosen: &str,
    tried: usize,
    scores: Option<UnseenScores>,
    likelihood: &OutputLikelihood,
) -> String {
    let Some(scores) = scores else {
        let narrow = if has_noise(likelihood) && chosen.starts_with("last-layer") {
            format!(
                "; the other layers are taken as certain, which makes noise and intervals too small: allow more memory or time ({MEMORY}, {SECONDS}), or name a curvature of all weights"
            )
        } else {
            String::new()
        };
        return format!(
            "`{chosen}` was chosen by the evidence of the training data ({tried} tried); not compared on unseen data: give {VALIDATION_DATA} to learn whether it beats the plain network{narrow}"
        );
    };
    let difference = format!("+- {:.4}", scores.difference_error);
    if beats(&scores) {
        format!(
            "`{chosen}` was chosen of {tried} candidates on {} unseen examples: it beats the plain network by {:.4} {difference} nats each",
            scores.examples,
            scores.plain_nll - scores.nll
        )
    } else {
        format!(
            "no posterior predicts better than the plain network on {} unseen examples, by more than chance would have it (the best, `{chosen}`, differs by {:+.4} {difference} nats each): \
             predictions are the network's own, the posterior gives latent variances and samples",
            scores.examples,
            scores.nll - scores.plain_nll
        )
    }
}
