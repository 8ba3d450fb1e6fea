//! Making the picture.

use super::held_back::{HeldBack, choose_weight};
use super::options::{DeepImagePriorRequest, Method, TotalVariationRequest, TotalVariationSolver};
use super::scale::Scaled;
use crate::image_prior::{DeepImagePrior, DeepImagePriorState, network_input, pretrain};
use crate::running::{Keeper, Plan, SavedTraining, Stage, Watch, meant, projection_flops, times};
use crate::total_variation::{self, Penalised, PrimalDualState, TotalVariation};
use crate::{Filter, Projector, TomographyError, filtered_back_projection};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Unet;
use posterior_networks::{Architecture, Array, Network};
use posterior_optim::{Clock, Progress, Reason, State};
use posterior_store::{Tensors, numbers_from_tensors, numbers_to_tensors};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// What a reconstruction will take.
///
/// # Errors
/// Those of the network's graph.
pub fn plan(projector: &Projector, method: &Method) -> Result<Plan, TomographyError> {
    /// Steps of the seven trials of a weight.
    const TRIALS: u64 = 7 * 300;
    /// Channels of a layer that anyone can have meant.
    const MOST_CHANNELS: usize = 1 << 16;
    let geometry = projector.geometry();
    let (c, pixels) = (geometry.measurements() as u64, geometry.pixels() as u64);
    let mut blocks = vec![("sinograms", 8 * 6 * c), ("pictures", 8 * 12 * pixels)];
    let each = projection_flops(projector);
    let trials = |weight: Option<f64>| if weight.is_none() { TRIALS } else { 0 };
    Ok(match method {
        Method::Filtered(_) => {
            Plan::new(blocks, (0, 0), (1, each), (20 * pixels).saturating_mul(geometry.angles().len() as u64))
        }
        Method::TotalVariation(own) => {
            let steps = match &own.solver {
                TotalVariationSolver::PrimalDual(solver) => solver.steps,
                TotalVariationSolver::Adam(solver) => solver.steps,
            };
            let steps = (steps as u64).saturating_add(trials(own.weight));
            Plan::new(blocks, (0, 0), (times(&[2, steps]), each), 0)
        }
        Method::DeepImagePrior(own) => {
            meant("the number of iterations", own.training.iterations)?;
            if let Some(channels) =
                own.network.channels.iter().chain(&own.network.skips).find(|c| **c > MOST_CHANNELS)
            {
                let expected = "a layer has at most 65,536";
                return Err(TomographyError::Option {
                    name: "the number of channels",
                    value: *channels as f64,
                    expected,
                });
            }
            let graph = Architecture::Unet(fitted(&own.network, projector)).graph().map_err(network_error)?;
            blocks.push(("activations of the network", 8 * graph.activations() as u64));
            blocks.push(("weights and their moments", 4 * 6 * graph.trainable() as u64));
            let (mut passes, mut projections) = (3 * own.training.iterations as u64, trials(own.weight));
            if let Some(pretraining) = &own.pretraining {
                meant("the number of pictures to pretrain on", pretraining.pictures)?;
                let all = times(&[8, graph.activations() as u64, pretraining.batch as u64]);
                blocks.push(("activations of pretraining", all));
                let pictures = times(&[pretraining.pictures as u64, pretraining.epochs as u64]);
                passes = passes.saturating_add(times(&[3, pictures]));
                projections = projections.saturating_add(pictures);
            }
            projections += 2 * own.training.iterations as u64;
            Plan::new(blocks, (passes, graph.flops()), (projections, each), 0)
        }
    })
}

fn network_error(error: posterior_networks::GraphError) -> TomographyError {
    TomographyError::Network(error.into())
}

/// The network for the scan's pictures.
fn fitted(network: &Unet, projector: &Projector) -> Unet {
    let input = [1].into_iter().chain(projector.geometry().image_shape()).collect();
    Unet { input, outputs: 1, ..network.clone() }
}

/// Makes the picture; `start` is a network to begin with (pretrained, say), `truth` only for comparison. What is under way is kept by `keeper`, and the same request goes on from it.
///
/// # Errors
/// [`TomographyError`]: what does not fit, [`TomographyError::Interrupted`].
pub fn reconstruct(
    projector: &Projector,
    sinogram: &[f64],
    method: &Method,
    start: Option<Network<f32>>,
    truth: Option<&[f64]>,
    keeper: &mut Keeper,
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
    let found = match method {
        Method::TotalVariation(own) => {
            let weight = weight_of(projector, &scaled, own.weight, own.seed, &mut report, watch)?;
            (smoothest(projector, &scaled, own, weight, &mut report, keeper, watch)?, None)
        }
        Method::DeepImagePrior(own) => {
            let weight = weight_of(projector, &scaled, own.weight, own.seed, &mut report, watch)?;
            let truth = truth.as_deref();
            trained(projector, &scaled, input, own, weight, start, truth, &mut report, keeper, watch)?
        }
        Method::Filtered(_) => unreachable!("it was made above"),
    };
    let (picture, network) = found;
    Ok(Reconstruction { picture: picture.into_iter().map(|v| v * scaled.unit).collect(), network, report })
}

/// The weight that was given, or the one that held-back measurements choose.
fn weight_of(
    projector: &Projector,
    scaled: &Scaled,
    given: Option<f64>,
    seed: u64,
    report: &mut ReconstructionReport,
    watch: &mut Watch<'_>,
) -> Result<f64, TomographyError> {
    let weight = match given {
        Some(weight) => weight,
        None => {
            let shape = projector.geometry().image_shape();
            let found =
                choose_weight(projector, &scaled.sinogram, &shape, &scaled.first, seed, &mut |done, all| {
                    watch(Stage::Reconstruction, done, all, None)
                })?;
            let weight = found.weight;
            report.held_back = Some(found);
            weight
        }
    };
    report.weight = Some(weight);
    Ok(weight)
}

fn smoothest(
    projector: &Projector,
    scaled: &Scaled,
    own: &TotalVariationRequest,
    weight: f64,
    report: &mut ReconstructionReport,
    keeper: &mut Keeper,
    watch: &mut Watch<'_>,
) -> Result<Vec<f64>, TomographyError> {
    let variation = TotalVariation::sum(&projector.geometry().image_shape())?;
    let problem = Penalised::new(projector, &scaled.sinogram, &variation, weight)?;
    let mut failed = None;
    match &own.solver {
        TotalVariationSolver::PrimalDual(options) => {
            let saved: Option<PrimalDualState> = opened(keeper)?;
            let mut tell = |progress: &Progress, state: &PrimalDualState| {
                let signal = watch(Stage::Reconstruction, progress.step, options.steps, progress.residual);
                keeper.offer_or_keep(signal, || closed(state), &mut failed)
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
            let saved: Option<State> = opened(keeper)?;
            let mut tell = |progress: &Progress, state: &State| {
                let signal = watch(Stage::Reconstruction, progress.step, options.steps, progress.value);
                keeper.offer_or_keep(signal, || closed(state), &mut failed)
            };
            let found =
                total_variation::reconstruct_by_adam(&problem, &scaled.first, saved, options, &mut tell)?;
            ended(found.reason, failed)?;
            (report.steps, report.reason, report.loss) = (found.steps, Some(found.reason), Some(found.value));
            Ok(found.theta)
        }
    }
}

/// A state whose long lists of numbers are tensors.
fn closed<S: Serialize>(state: &S) -> (Value, Tensors) {
    let mut facts = serde_json::to_value(state).unwrap_or_else(|e| unreachable!("a state of a search: {e}"));
    let mut tensors = Tensors::default();
    numbers_to_tensors(&mut facts, "state", &mut tensors);
    (facts, tensors)
}

/// The other way round.
fn opened<S: DeserializeOwned>(keeper: &Keeper) -> Result<Option<S>, TomographyError> {
    let Some((mut facts, mut tensors)) = keeper.earlier::<Value>()? else { return Ok(None) };
    numbers_from_tensors(&mut facts, "state", &mut tensors);
    Ok(Some(serde_json::from_value(facts).map_err(|e| tensors.corrupt(e))?))
}

fn ended(reason: Reason, failed: Option<TomographyError>) -> Result<(), TomographyError> {
    match (failed, reason) {
        (Some(error), _) => Err(error),
        (None, Reason::Interrupted) => Err(TomographyError::Interrupted),
        _ => Ok(()),
    }
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
    keeper: &mut Keeper,
    watch: &mut Watch<'_>,
) -> Result<(Vec<f64>, Option<NetworkPicture>), TomographyError> {
    let architecture = fitted(&own.network, projector);
    let graph = Architecture::Unet(architecture.clone()).graph().map_err(network_error)?;
    let saved = match keeper.earlier::<SavedTraining>()? {
        Some((facts, mut tensors)) => Some(facts.restore(&mut tensors)?),
        None => None,
    };
    let network = match start {
        Some(network) => {
            crate::error::same_count(
                "weights of the network to begin with",
                graph.trainable(),
                network.graph().trainable(),
            )?;
            network
        }
        None => {
            let fresh = Network::initialised(graph, Streams::new(own.seed))?;
            match own.pretraining.as_ref().filter(|_| saved.is_none()) {
                None => fresh,
                Some(options) => {
                    let trained = pretrain(fresh, projector, options, None, &mut |progress, _| {
                        watch(Stage::Pretraining, progress.step, progress.steps_planned, progress.value)
                    })?;
                    ended(trained.reason, None)?;
                    report.pretrained_epoch = trained.best_epoch;
                    trained.network
                }
            }
        }
    };
    report.weights = Some(network.graph().trainable());
    let variation = TotalVariation::sum(&projector.geometry().image_shape())?;
    let objective = Penalised::new(projector, &scaled.sinogram, &variation, weight)?;
    let mut training = DeepImagePrior::new(network, input.clone(), &objective, &own.training, truth, saved)?;
    let mut failed = None;
    let iterations = own.training.iterations;
    let reason = training.run(Clock::start(), &mut |progress: &Progress, state: &DeepImagePriorState| {
        let signal = watch(Stage::Training, progress.step, iterations, progress.value);
        keeper.offer_or_keep(signal, || SavedTraining::of(state), &mut failed)
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
