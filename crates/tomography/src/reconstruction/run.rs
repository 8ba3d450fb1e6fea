//! Making the picture.

use super::held_back::{HeldBack, Trials, choose_weight};
use super::options::{DeepImagePriorRequest, Method, TotalVariationRequest, TotalVariationSolver};
use super::plan::{architecture as for_scan, network_error};
use super::scale::Scaled;
use super::standing::{Standing, Under};
use crate::image_prior::{DeepImagePrior, DeepImagePriorState, network_input, pretrain};
use crate::running::{Checkpointer, SavedTraining, Stage, Watch};
use crate::total_variation::{self, Penalised, PrimalDualState, TotalVariation};
use crate::{Filter, Projector, TomographyError, filtered_back_projection};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Unet;
use posterior_networks::train::{TrainFacts, TrainState};
use posterior_networks::{Architecture, Array, Network};
use posterior_optim::{Clock, Progress, Reason, State};
use serde::Serialize;

/// What happened on the way.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReconstructionReport {
    /// What the sinogram was divided by, so that its picture is about 1 bright; weights and losses are in these units.
    pub unit: f64,
    /// The weight of total variation.
    pub weight: Option<f64>,
    /// How it was chosen, where it was not given.
    pub held_back: Option<HeldBack>,
    /// The loss of the picture.
    pub loss: Option<f64>,
    /// How far it is from the minimum at most, relative to the loss: total variation by the primal-dual method.
    pub gap: Option<f64>,
    /// Pixels at the largest value that total variation's search allows: where there are any, it was too low.
    pub at_largest: usize,
    /// Steps taken.
    pub steps: usize,
    /// Why they ended.
    pub reason: Option<Reason>,
    /// The step of the best weights: the deep image prior.
    pub best_step: Option<usize>,
    /// Steps whose gradient was shortened.
    pub clipped: usize,
    /// Steps and losses, thinned.
    pub losses: Vec<(usize, f64)>,
    /// Where the truth is known: the best PSNR of an iterate and its step, chosen by what nobody has.
    pub best_quality: Option<(f64, usize)>,
    /// Weights of the network.
    pub weights: Option<usize>,
    /// Epoch of pretraining that was kept, where there was any.
    pub pretrained_epoch: Option<usize>,
}

/// The network behind a picture.
#[derive(Clone, Debug)]
pub struct NetworkPicture {
    /// The trained network.
    pub network: Network<f32>,
    /// How it was built.
    pub architecture: Unet,
    /// What it looks at.
    pub input: Array<f32>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Reconstruction {
    /// Pixels, in the units of the sinogram.
    pub picture: Vec<f64>,
    /// The network, where one made it; in units of [`ReconstructionReport::unit`].
    pub network: Option<NetworkPicture>,
    /// What happened on the way.
    pub report: ReconstructionReport,
}

/// A first picture: filtered back-projection, or what one step of a descent from nothing gives where there is none.
fn first_picture(projector: &Projector, sinogram: &[f64]) -> Result<Vec<f64>, TomographyError> {
    match filtered_back_projection(projector, sinogram, Filter::RamLak, None) {
        Err(TomographyError::Unsupported { .. }) => {
            let back = projector.back_project(sinogram)?;
            let there = projector.project(&back)?;
            let (mut along, mut norm) = (0.0, 0.0);
            there.iter().zip(sinogram).for_each(|(t, y)| (along, norm) = (along + t * y, norm + t * t));
            let step = if norm > 0.0 { along / norm } else { 0.0 };
            Ok(back.into_iter().map(|v| step * v).collect())
        }
        found => found,
    }
}

/// Scaled measurements, and what a network looks at: what a saved network needs to make its picture again.
///
/// # Errors
/// [`TomographyError`]: a sinogram of another scan.
pub fn network_view(
    projector: &Projector,
    sinogram: &[f64],
) -> Result<(Scaled, Array<f32>), TomographyError> {
    let scaled = Scaled::of(sinogram, &first_picture(projector, sinogram)?);
    let input = network_input(&projector.geometry().image_shape(), &scaled.first);
    Ok((scaled, input))
}

/// Makes the picture; `start` is a network to begin with (pretrained, say), `truth` only for comparison. What is under way is kept by `checkpointer`, and the same request goes on from it.
///
/// # Errors
/// [`TomographyError`]: what does not fit, [`TomographyError::Interrupted`].
pub fn reconstruct(
    projector: &Projector,
    sinogram: &[f64],
    method: &Method,
    start: Option<Network<f32>>,
    truth: Option<&[f64]>,
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<Reconstruction, TomographyError> {
    projector.geometry().check_sinogram(&[sinogram.len()], sinogram)?;
    if let Some(truth) = truth {
        projector.geometry().check_image(truth)?;
    }
    if let Method::Filtered(filter) = method {
        let picture = filtered_back_projection(projector, sinogram, *filter, None)?;
        let report = ReconstructionReport { unit: 1.0, ..ReconstructionReport::default() };
        return Ok(Reconstruction { picture, network: None, report });
    }
    let (scaled, input) = network_view(projector, sinogram)?;
    let mut report = ReconstructionReport { unit: scaled.unit, ..ReconstructionReport::default() };
    let truth: Option<Vec<f64>> = truth.map(|t| t.iter().map(|v| v / scaled.unit).collect());
    let mut standing = Standing::open(checkpointer)?;
    let (picture, network) = match method {
        Method::TotalVariation(own) => {
            let weight =
                weight_of(projector, &scaled, own.weight, own.seed, &mut report, &mut standing, watch)?;
            (smoothest(projector, &scaled, own, weight, &mut report, &mut standing, watch)?, None)
        }
        Method::DeepImagePrior(own) => {
            let weight =
                weight_of(projector, &scaled, own.weight, own.seed, &mut report, &mut standing, watch)?;
            let truth = truth.as_deref();
            trained(projector, &scaled, input, own, weight, start, truth, &mut report, &mut standing, watch)?
        }
        Method::Filtered(_) => unreachable!("it was made above"),
    };
    Ok(Reconstruction { picture: picture.into_iter().map(|v| v * scaled.unit).collect(), network, report })
}

/// The weight that was given, or the one that held-back measurements choose.
fn weight_of(
    projector: &Projector,
    scaled: &Scaled,
    given: Option<f64>,
    seed: u64,
    report: &mut ReconstructionReport,
    standing: &mut Standing<'_>,
    watch: &mut Watch<'_>,
) -> Result<f64, TomographyError> {
    if given.is_none() && standing.behind.held_back.is_none() {
        let shape = projector.geometry().image_shape();
        let saved: Option<Trials> = standing.take_plain(Under::Weight)?;
        let mut failed = None;
        let found =
            choose_weight(projector, &scaled.sinogram, &shape, &scaled.first, seed, saved, &mut |trials| {
                let signal = watch(Stage::Weight, trials.made.len(), Trials::ALL, None);
                standing.offer_plain(signal, Under::Weight, trials, &mut failed)
            });
        if let Some(error) = failed {
            return Err(error);
        }
        standing.behind.held_back = Some(found?);
    }
    report.held_back = standing.behind.held_back.clone();
    let chosen = report.held_back.as_ref().map(|found| found.weight);
    let weight = given.or(chosen).unwrap_or_else(|| unreachable!("it was chosen above"));
    report.weight = Some(weight);
    Ok(weight)
}

fn smoothest(
    projector: &Projector,
    scaled: &Scaled,
    own: &TotalVariationRequest,
    weight: f64,
    report: &mut ReconstructionReport,
    standing: &mut Standing<'_>,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, TomographyError> {
    let variation = TotalVariation::sum(&projector.geometry().image_shape())?;
    let problem = Penalised::new(projector, &scaled.sinogram, &variation, weight)?;
    let mut failed = None;
    match &own.solver {
        TotalVariationSolver::PrimalDual(options) => {
            let saved: Option<PrimalDualState> = standing.take_plain(Under::Smoothing)?;
            let mut tell = |progress: &Progress, state: &PrimalDualState| {
                let signal = watch(Stage::Reconstruction, progress.step, options.steps, progress.residual);
                standing.offer_plain(signal, Under::Smoothing, state, &mut failed)
            };
            let found = total_variation::reconstruct(&problem, &scaled.first, saved, options, &mut tell)?;
            ended(found.reason, failed)?;
            (report.steps, report.reason) = (found.steps, Some(found.reason));
            report.gap = Some(found.gap / found.value.max(f64::MIN_POSITIVE));
            report.loss = Some(found.value);
            report.at_largest = found.at_largest;
            Ok(found.image)
        }
        TotalVariationSolver::Adam(options) => {
            let saved: Option<State> = standing.take_plain(Under::Smoothing)?;
            let mut tell = |progress: &Progress, state: &State| {
                let signal = watch(Stage::Reconstruction, progress.step, options.steps, progress.value);
                standing.offer_plain(signal, Under::Smoothing, state, &mut failed)
            };
            let found =
                total_variation::reconstruct_by_adam(&problem, &scaled.first, saved, options, &mut tell)?;
            ended(found.reason, failed)?;
            (report.steps, report.reason, report.loss) = (found.steps, Some(found.reason), Some(found.value));
            Ok(found.theta)
        }
    }
}

fn ended(reason: Reason, failed: Option<TomographyError>) -> Result<(), TomographyError> {
    match (failed, reason) {
        (Some(error), _) => Err(error),
        (None, Reason::Interrupted) => Err(TomographyError::Interrupted),
        _ => Ok(()),
    }
}

/// The network to begin with: a given one, or a fresh one, pretrained where that is asked for.
fn beginning(
    projector: &Projector,
    own: &DeepImagePriorRequest,
    architecture: &Unet,
    start: Option<Network<f32>>,
    standing: &mut Standing<'_>,
    watch: &mut Watch<'_>,
) -> Result<Network<f32>, TomographyError> {
    let graph = Architecture::Unet(architecture.clone()).graph().map_err(network_error)?;
    if let Some(network) = start {
        crate::error::same_count(
            "weights of the network to begin with",
            graph.trainable(),
            network.graph().trainable(),
        )?;
        return Ok(network);
    }
    let fresh = Network::initialised(graph, Streams::new(own.seed))?;
    let Some(options) = own.pretraining.as_ref().filter(|_| !standing.is(Under::Training)) else {
        return Ok(fresh);
    };
    let graph = fresh.graph().clone();
    let saved = match standing.take::<TrainFacts>(Under::Pretraining)? {
        Some((facts, mut tensors)) => Some(TrainState::from_tensors(facts, &mut tensors, &graph)?),
        None => None,
    };
    let mut failed = None;
    let trained = pretrain(fresh, projector, options, saved, &mut |progress, state| {
        let signal = watch(Stage::Pretraining, progress.step, progress.steps_planned, progress.value);
        standing.offer(signal, Under::Pretraining, || state.to_tensors(&graph), &mut failed)
    })?;
    ended(trained.reason, failed)?;
    standing.behind.pretrained_epoch = trained.best_epoch;
    Ok(trained.network)
}

fn trained(
    projector: &Projector,
    scaled: &Scaled,
    input: Array<f32>,
    own: &DeepImagePriorRequest,
    weight: f64,
    start: Option<Network<f32>>,
    truth: Option<&[f64]>,
    report: &mut ReconstructionReport,
    standing: &mut Standing<'_>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, Option<NetworkPicture>), TomographyError> {
    let architecture = for_scan(&own.network, projector);
    let network = beginning(projector, own, &architecture, start, standing, watch)?;
    let saved = match standing.take::<SavedTraining>(Under::Training)? {
        Some((facts, mut tensors)) => Some(facts.restore(&mut tensors)?),
        None => None,
    };
    report.pretrained_epoch = standing.behind.pretrained_epoch;
    report.weights = Some(network.graph().trainable());
    let variation = TotalVariation::sum(&projector.geometry().image_shape())?;
    let objective = Penalised::new(projector, &scaled.sinogram, &variation, weight)?;
    let mut training = DeepImagePrior::new(network, input.clone(), &objective, &own.training, truth, saved)?;
    let mut failed = None;
    let iterations = own.training.iterations;
    let reason = training.run(Clock::start(), &mut |progress: &Progress, state: &DeepImagePriorState| {
        let signal = watch(Stage::Training, progress.step, iterations, progress.value);
        standing.offer(signal, Under::Training, || SavedTraining::of(state), &mut failed)
    })?;
    ended(reason, failed)?;
    let (network, picture, state) = training.finish()?;
    report.steps = state.step;
    report.reason = Some(reason);
    report.loss = Some(state.best_loss);
    report.best_step = Some(state.best_step);
    report.clipped = state.clipped;
    report.losses = state.losses;
    report.best_quality = state.best_quality;
    Ok((picture, Some(NetworkPicture { network, architecture, input })))
}
