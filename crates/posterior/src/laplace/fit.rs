//! From a request, or a network in memory, to a model.

use super::checkpoint::{self, Identity};
use super::file::describe;
use super::noise::{check_positive, likelihood, plain_likelihood};
use super::source::{Source, architecture, file_name};
use super::training::{Reading, TrainingSet};
use super::{
    CurvatureChoice, DataRecord, Fitted, InputKind, LaplaceHeader, LaplaceModel, LaplaceModelError,
    LaplaceRequest, NetworkRecord, NumberFormat, Preprocess, SavedPrecision, decay,
};
use crate::network::{Preparation, TrainingRecord};
use posterior_data::Split;
use posterior_laplace::{
    Accumulator, Approximation, AutoReport, FisherEstimate, FitOptions, FitSummary, Laplace, LaplaceError,
    Plan, Stage, Tune, Weights, auto,
};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::random::Streams;
use posterior_networks::train::{Examples, Subset};
use posterior_networks::{Network, Selection};
use posterior_optim::Signal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Share of the examples that `Auto` sets aside where no others are given.
const SET_ASIDE: f64 = 0.1;

/// Told the stage, what is done of it and how much there is; may say stop.
pub(super) type Observer<'a> = &'a mut dyn FnMut(Stage, usize, usize) -> Signal;

/// What a model should know of a network and data in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What is done to data before the network sees them; examples are prepared already.
    pub preparation: Preparation,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// How the network was trained.
    pub training: Option<TrainingRecord>,
}

impl LaplaceModel {
    /// Fits what is asked for. `announce` hears the plan before work starts; the observer sees the work and may stop it: the sums so far then go to the
    /// checkpoint, if there is a place for one.
    ///
    /// # Errors
    /// When files, network, likelihood and settings do not fit together, memory does not suffice, or the observer stopped the fit.
    pub fn fit(
        request: &LaplaceRequest,
        announce: &mut dyn FnMut(&str),
        observer: Observer<'_>,
    ) -> Result<Self, LaplaceModelError> {
        let mut source = Source::open(&request.network)?;
        if let Some(weight_decay) = request.weight_decay {
            check_positive("the weight decay", weight_decay, true)?;
            let loss = posterior_networks::train::Loss::CrossEntropy;
            let record = TrainingRecord {
                loss,
                weight_decay,
                decoupled: false,
                examples: 0,
                noise_variance: Vec::new(),
                online: None,
            };
            source.record.training.get_or_insert(record).weight_decay = weight_decay;
        }
        let single = match request.numbers {
            NumberFormat::AsFile => source.is_single(),
            NumberFormat::Single => true,
            NumberFormat::Double => false,
        };
        if single {
            fit_in::<f32>(source.network.cast()?, source, request, announce, observer)
        } else {
            fit_in::<f64>(source.network.clone(), source, request, announce, observer)
        }
    }

    /// As [`Self::fit`] for a network and examples in memory.
    ///
    /// # Errors
    /// As [`posterior_laplace::fit()`].
    pub fn fit_network<T: SavedPrecision>(
        network: Network<T>,
        examples: &dyn Examples<T>,
        validation: Option<&dyn Examples<T>>,
        likelihood: &OutputLikelihood,
        options: &FitOptions,
        about: About,
        observer: Observer<'_>,
    ) -> Result<Self, LaplaceModelError> {
        let started = Instant::now();
        let record = NetworkRecord {
            architecture: architecture(network.graph())?,
            file: String::new(),
            format: "memory".into(),
            sha256: None,
            training: about.training,
            notes: Vec::new(),
        };
        let data = DataRecord {
            files: Vec::new(),
            examples: examples.len(),
            inputs: InputKind::Prepared { preparation: about.preparation },
            preprocess: Preprocess::Auto,
            class_names: about.class_names,
            notes: Vec::new(),
        };
        let plain = plain_likelihood(&network, examples, likelihood, options, observer)?;
        let laplace =
            posterior_laplace::fit(&network, examples, validation, likelihood, options, &mut None, observer)?;
        Ok(assemble(
            network,
            laplace,
            Parts { record, data, options: options.clone(), plain, notes: Vec::new(), started, auto: None },
        ))
    }
}

fn fit_in<T: SavedPrecision>(
    network: Network<T>,
    source: Source,
    request: &LaplaceRequest,
    announce: &mut dyn FnMut(&str),
    observer: Observer<'_>,
) -> Result<LaplaceModel, LaplaceModelError> {
    let started = Instant::now();
    let known = InputKind::Prepared { preparation: source.preparation.clone() };
    let reading = Reading {
        source: &request.data,
        input: network.graph().input_shape(),
        likelihood: request.likelihood,
        head: source.head,
        known: Some(&known),
        from_network: true,
    };
    let TrainingSet { mut examples, inputs, class_names, notes: data_notes } =
        reading.read::<T>(&request.data.data, &request.data.labels)?;
    let validation = validation(request, &reading, &inputs, &mut examples)?;
    let training = source.record.training.clone();
    let likelihood = likelihood(request, &network, &*examples, training.as_ref(), observer)?;
    let mut options = request.options.clone();
    for line in source.record.notes.iter().chain(&data_notes) {
        announce(&format!("note: {line}"));
    }
    let automatic = request.curvature == CurvatureChoice::Auto;
    if automatic {
        let held_out = validation.as_ref().map_or(0, |v| v.len());
        announce(&format!(
            "plan: several curvatures of {} examples, compared on {held_out} others; the best is kept",
            examples.len()
        ));
    } else {
        let selection = planned_selection(&network, &options)?;
        let plan = Plan::new(&network, &selection, examples.len(), &likelihood, &options.approximation);
        announce(&format!("plan: {plan}"));
        plan.check(&options)?;
    }
    let data = DataRecord {
        files: request.data.data.iter().map(|p| file_name(p)).collect(),
        examples: examples.len(),
        inputs,
        preprocess: request.data.preprocess,
        class_names,
        notes: data_notes,
    };
    let identity = Identity {
        network: &source.record,
        files: &data.files,
        examples: examples.len(),
        likelihood: &likelihood,
    };
    let mut saved: Option<Accumulator> = None;
    if let Some(path) = request.checkpoint.as_deref().filter(|p| request.resume && p.exists()) {
        let sums = checkpoint::load(path, &identity, &network)?;
        announce(&format!("going on after example {} of {}", sums.fit().examples, examples.len()));
        saved = Some(sums);
    }
    let plain = plain_likelihood(&network, &*examples, &likelihood, &options, observer)?;
    let validation = validation.as_deref().map(|v| v as &dyn Examples<T>);
    if automatic {
        let (laplace, report) =
            choose(&network, &*examples, validation, &likelihood, request, &mut options, observer)?;
        let record = source.record;
        let parts = Parts { record, data, options, plain, notes: Vec::new(), started, auto: Some(report) };
        return Ok(assemble(network, laplace, parts));
    }
    let laplace =
        posterior_laplace::fit(&network, &*examples, validation, &likelihood, &options, &mut saved, observer);
    let laplace = match laplace {
        Err(LaplaceError::Interrupted) => {
            if let (Some(path), Some(sums)) = (&request.checkpoint, &saved) {
                checkpoint::save(path, &identity, sums)?;
            }
            return Err(LaplaceError::Interrupted.into());
        }
        other => other?,
    };
    remove_checkpoint(request);
    Ok(assemble(
        network,
        laplace,
        Parts { record: source.record, data, options, plain, notes: Vec::new(), started, auto: None },
    ))
}

/// A finished fit needs no checkpoint; one that cannot be removed does no harm.
fn remove_checkpoint(request: &LaplaceRequest) {
    if let Some(path) = request.checkpoint.as_deref().filter(|p| request.resume && p.exists()) {
        let _ = std::fs::remove_file::<&Path>(path);
    }
}

/// Validation examples: their own files, or a share of the others, which are then no longer learned from.
fn validation<T: SavedPrecision>(
    request: &LaplaceRequest,
    reading: &Reading<'_>,
    inputs: &InputKind,
    examples: &mut Arc<dyn Examples<T> + Send>,
) -> Result<Option<Arc<dyn Examples<T> + Send>>, LaplaceModelError> {
    let source = &request.validation;
    let refuse = |problem: &str| Err(LaplaceModelError::Request(problem.into()));
    if !source.data.is_empty() {
        let reading = Reading { known: Some(inputs), from_network: false, ..*reading };
        return Ok(Some(reading.read::<T>(&source.data, &source.labels)?.examples));
    }
    if !(0.0..1.0).contains(&source.fraction) {
        return refuse("the validation share must lie in [0, 1)");
    }
    let auto = request.curvature == CurvatureChoice::Auto;
    let fraction = if auto && source.fraction == 0.0 { SET_ASIDE } else { source.fraction };
    if fraction == 0.0 || (auto && examples.len() < 2) {
        return Ok(None);
    }
    if request.options.tune != Tune::Validation && !auto {
        return refuse(
            "a validation share is used by --tune validation only: choose that, or learn from all examples",
        );
    }
    let split = Split::random(examples.len(), fraction, Streams::new(request.options.seed));
    if split.train.is_empty() || split.test.is_empty() {
        return refuse("the validation share leaves no examples on one side: change it or add data");
    }
    let whole = examples.clone();
    *examples = Arc::new(Subset::new(whole.clone(), split.train));
    Ok(Some(Arc::new(Subset::new(whole, split.test))))
}

/// Fits the candidates of [`auto`] and keeps the best; the options become those of the choice.
fn choose<T: SavedPrecision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: Option<&dyn Examples<T>>,
    likelihood: &OutputLikelihood,
    request: &LaplaceRequest,
    options: &mut FitOptions,
    observer: Observer<'_>,
) -> Result<(Laplace<T>, AutoReport), LaplaceModelError> {
    let Some(validation) = validation else {
        let problem = "there are too few examples to set some aside: name a curvature";
        return Err(LaplaceModelError::Request(problem.into()));
    };
    let time = request
        .seconds
        .map(|s| check_positive("the time", s, false).map(|()| Duration::from_secs_f64(s.min(1e9))));
    let mut observer = |_: &str, stage, done, total| observer(stage, done, total);
    let (laplace, report) =
        auto(network, examples, validation, likelihood, options, time.transpose()?, &mut observer)?;
    options.tune = Tune::Validation;
    options.integration = laplace.integration();
    options.weights = if report.chosen.starts_with("last-layer") { Weights::LastLayer } else { Weights::All };
    options.approximation = match report.chosen.as_str() {
        "diagonal" => Approximation::Diagonal,
        "kronecker" | "last-layer-kronecker" => Approximation::Kronecker(FisherEstimate::Exact),
        "function-space" => Approximation::FunctionSpace { points: None },
        _ => Approximation::Full,
    };
    Ok((laplace, report))
}

/// The weights, where they are known without data; as many of them, where not.
fn planned_selection<T: SavedPrecision>(
    network: &Network<T>,
    options: &FitOptions,
) -> Result<Selection, LaplaceModelError> {
    let graph = network.graph();
    let all = Selection::all(graph);
    Ok(match &options.weights {
        Weights::All => all,
        Weights::LastLayer => Selection::last_layer(graph)?,
        Weights::Matching(patterns) => {
            Selection::matching(graph, &patterns.iter().map(String::as_str).collect::<Vec<_>>())?
        }
        Weights::Subnetwork { size, .. } => {
            let mask: Vec<bool> = (0..all.len()).map(|i| i < *size).collect();
            all.masked(graph, &mask)
        }
    })
}

/// What a model is put together from, its posterior aside.
pub(super) struct Parts {
    pub(super) record: NetworkRecord,
    pub(super) data: DataRecord,
    pub(super) options: FitOptions,
    pub(super) plain: OutputLikelihood,
    pub(super) notes: Vec<String>,
    pub(super) started: Instant,
    pub(super) auto: Option<AutoReport>,
}

/// Header and posterior as one.
pub(super) fn assemble<T: SavedPrecision>(
    network: Network<T>,
    laplace: Laplace<T>,
    parts: Parts,
) -> LaplaceModel {
    let mut header = LaplaceHeader {
        method: LaplaceHeader::METHOD.into(),
        network: parts.record,
        data: parts.data,
        base_likelihood: laplace.base_likelihood().clone(),
        noise_variance: laplace.noise_variance(),
        plain_likelihood: parts.plain,
        options: parts.options,
        selected: Vec::new(),
        prior_groups: Vec::new(),
        group_count: 0,
        auto: parts.auto,
        summary: FitSummary { notes: Vec::new(), ..laplace.summary.clone() },
        notes: parts.notes,
        seconds: 0.0,
    };
    describe(&laplace, &mut header);
    header.notes.append(&mut header.summary.notes);
    let noise = match laplace.likelihood() {
        OutputLikelihood::Gaussian(g) => {
            g.noise_variances().iter().sum::<f64>() / g.noise_variances().len() as f64
        }
        _ => 1.0,
    };
    let sentence = decay::sentence(&header, laplace.prior().precisions(), noise);
    header.notes.extend(sentence);
    header.seconds = parts.started.elapsed().as_secs_f64();
    LaplaceModel { header, numbers: T::numbers(Fitted { network, laplace }) }
}
