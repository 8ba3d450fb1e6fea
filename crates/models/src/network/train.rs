//! From an architecture and data to a trained network in a file.

use super::digest::digests;
use super::examples::{DataRequest, TrainingData};
use super::open::TrainingRecord;
use super::preparation::Preparation;
use super::reading::file_name;
use super::{NetworkFileError, metadata, refuse};
use posterior_data::{ReadOptions, Selection};
use posterior_laplace::{OnlineOptions, OnlineReport, Stage, train_online};
use posterior_linalg::random::Streams;
use posterior_networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior_networks::train::{EpochRecord, Loss, TrainOptions, TrainState, train};
use posterior_networks::{Architecture, Network, Precision};
use posterior_notes::fixes::MEMORY;
use posterior_optim::{Observer, Progress, Reason, Signal};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What `posterior train` does.
#[derive(Clone, Debug)]
pub struct TrainRequest {
    /// The network.
    pub architecture: Architecture,
    /// The data.
    pub data: DataRequest,
    /// How it learns.
    pub options: TrainOptions,
    /// How weight decay and noise are learned beside the weights, if they are.
    pub online: Option<OnlineOptions>,
    /// Where the network goes.
    pub out: PathBuf,
    /// Where and how often the state is saved.
    pub checkpoint: Option<CheckpointRequest>,
    /// Memory that may be used, in bytes.
    pub memory: u64,
}

/// Checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointRequest {
    /// The file.
    pub path: PathBuf,
    /// Steps between two.
    pub every: usize,
    /// Whether to go on from it if it exists.
    pub resume: bool,
}

/// What a run will need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrainPlan {
    /// Examples to learn from.
    pub examples: usize,
    /// Examples to validate on.
    pub validation: usize,
    /// Trainable numbers.
    pub parameters: usize,
    /// Steps in all.
    pub steps: usize,
    /// Multiplications and additions of a step.
    pub flops_per_step: u64,
    /// Bytes of weights, gradient, moments and the activations of a step, data aside.
    pub memory: u64,
}

/// What became of a run.
#[derive(Clone, Debug, Serialize)]
pub struct TrainReport {
    /// What it needed.
    pub plan: TrainPlan,
    /// Steps taken in all, those before a resumption included.
    pub steps: usize,
    /// Steps taken before this run began.
    pub resumed_from: usize,
    /// The epochs.
    pub history: Vec<EpochRecord>,
    /// The epoch whose weights were kept, where validation chose.
    pub best_epoch: Option<usize>,
    /// Noise variances of the Gaussian loss, on the scale of the standardised targets.
    pub noise_variance: Vec<f64>,
    /// Prior precisions and noise that were learned beside the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineReport>,
    /// Steps whose gradient was shortened.
    pub clipped: usize,
    /// Why the run ended; where the observer stopped it, no network was written.
    pub ended: Reason,
    /// Wall time of this run.
    pub seconds: f64,
    /// What was dropped or filled in the data.
    pub notes: Vec<String>,
}

fn plan<T: Precision>(network: &Network<T>, data: &TrainingData<T>, options: &TrainOptions) -> TrainPlan {
    let graph = network.graph();
    let (examples, parameters) = (data.examples.len(), graph.trainable());
    let batch = options.batch.min(examples);
    // Values, their cotangents and one more copy on the way; weights, gradient, two moments, the best weights.
    let numbers = (3 * graph.activations()).saturating_mul(batch).saturating_add(6 * parameters);
    TrainPlan {
        examples,
        validation: data.validation.as_ref().map_or(0, |v| v.len()),
        parameters,
        steps: examples.div_ceil(options.batch.max(1)).saturating_mul(options.epochs),
        flops_per_step: graph.flops().saturating_mul(3).saturating_mul(batch as u64),
        memory: (numbers as u64).saturating_mul(size_of::<T>() as u64),
    }
}

/// Trains and writes the network (in one step, at the end). `announce` hears the plan before work starts; the observer sees every step, `stages` the passes between epochs of
/// [`TrainRequest::online`]. Either may stop the run, which then saves a checkpoint, if there is a place for one, and writes no network.
///
/// # Errors
/// When data, architecture and settings do not fit, memory does not suffice, or the loss becomes NaN.
pub fn train_network<T: Precision>(
    request: &TrainRequest,
    announce: &mut dyn FnMut(&TrainPlan, &[String]),
    observer: &mut Observer<'_, TrainState<T>>,
    stages: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<TrainReport, NetworkFileError> {
    let started = Instant::now();
    let graph = request.architecture.graph()?;
    let options = &request.options;
    let network = Network::<T>::initialised(graph, Streams::new(options.seed))?;
    let graph = network.graph().clone();
    let reading = ReadOptions { text: request.data.text, ..ReadOptions::limited(request.memory) };
    let mut data =
        TrainingData::<T>::read(&request.data, graph.input_shape(), options.loss, options.seed, &reading)?;
    if let Loss::Gaussianised(own) = options.loss {
        let outputs = graph.output_shape().iter().product();
        data.notes.extend(own.remarks(outputs, size_of::<T>() == size_of::<f32>()));
    }
    let plan = plan(&network, &data, options);
    if plan.memory > request.memory {
        return refuse(format!(
            "a step needs {:.1} GB, above the limit of {:.1} GB: use a smaller batch, or allow more ({MEMORY})",
            plan.memory as f64 / 1e9,
            request.memory as f64 / 1e9
        ));
    }
    announce(&plan, &data.notes);
    let description = describe(request, &plan);
    let mut state = None;
    if let Some(checkpoint) = request.checkpoint.as_ref().filter(|c| c.resume && c.path.exists()) {
        state = Some(TrainState::<T>::load(&checkpoint.path, &graph, options, &description)?);
    }
    let resumed_from = state.as_ref().map_or(0, |s| s.step);
    let mut failed = None;
    let save = |state: &TrainState<T>| match &request.checkpoint {
        Some(checkpoint) => state.save(&checkpoint.path, &graph, options, &description),
        None => Ok(()),
    };
    let every = request.checkpoint.as_ref().map_or(usize::MAX, |c| c.every.max(1));
    let validation = data.validation.as_deref().map(|v| v as &dyn posterior_networks::train::Examples<T>);
    let watch = &mut |progress: &Progress, state: &TrainState<T>| {
        let signal = observer(progress, state);
        if (progress.step.is_multiple_of(every) || signal == Signal::Stop)
            && let Err(error) = save(state)
        {
            failed = Some(error);
            return Signal::Stop;
        }
        signal
    };
    let (trained, learned) = match &request.online {
        None => (train(network, &*data.examples, validation, options, state, watch)?, None),
        Some(online) => {
            let (trained, report) =
                train_online(network, &*data.examples, validation, options, online, state, watch, stages)?;
            (trained, Some(report))
        }
    };
    if let Some(error) = failed {
        return Err(error.into());
    }
    if trained.reason != Reason::Interrupted {
        let mut said = BTreeMap::from([(ARCHITECTURE_KEY.to_string(), request.architecture.to_toml()?)]);
        if data.preparation != Preparation::None {
            metadata::add(&mut said, Preparation::KEY, &data.preparation)?;
        }
        let (weight_decay, decoupled) = options.rule.weight_decay();
        let record = TrainingRecord {
            loss: options.loss,
            weight_decay,
            decoupled,
            examples: plan.examples,
            data: digests(request.data.data.iter().chain(&request.data.labels)),
            set_aside: data.set_aside.clone(),
            noise_variance: trained.noise_variance.clone(),
            online: learned.clone(),
        };
        metadata::add(&mut said, TrainingRecord::KEY, &record)?;
        if !trained.noise_variance.is_empty() {
            said.insert("posterior.noise_variance".into(), format!("{:?}", trained.noise_variance));
        }
        save_safetensors(&request.out, &trained.network, &said)?;
    }
    Ok(TrainReport {
        plan,
        steps: trained.state.step,
        resumed_from,
        history: trained.state.history,
        best_epoch: trained.best_epoch,
        noise_variance: trained.noise_variance,
        online: learned,
        clipped: trained.state.clipped,
        ended: trained.reason,
        seconds: started.elapsed().as_secs_f64(),
        notes: data.notes,
    })
}

/// What a resumed run must have in common with the one before.
fn describe(request: &TrainRequest, plan: &TrainPlan) -> String {
    let names = |paths: &[PathBuf]| -> Vec<String> { paths.iter().map(|p| file_name(p)).collect() };
    let data = &request.data;
    // Runs without learned hyperparameters are described as they always were.
    let online = request.online.as_ref().map_or_else(String::new, |o| format!(", {o:?}"));
    // Likewise those that say no more of columns.
    let plain = Selection {
        target: data.selection.target.clone(),
        features: data.selection.features.clone(),
        ..Selection::default()
    };
    let columns = match data.selection == plain {
        true => String::new(),
        false => format!(", {:?}", data.selection),
    };
    format!(
        "{:?} labels {:?}, {} examples, {} for validation, target {:?}, features {:?}, mean {:?}, deviation {:?}, {:?}{columns}{online}",
        names(&data.data),
        names(&data.labels),
        plan.examples,
        plan.validation,
        data.selection.target,
        data.selection.features,
        data.mean,
        data.deviation,
        data.augmentation
    )
}
