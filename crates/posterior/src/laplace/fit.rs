//! From a request, or a network in memory, to a model.

use super::checkpoint::{self, Identity};
use super::file::describe;
use super::source::{Source, architecture, file_name};
use super::training::{Reading, TrainingSet};
use super::{
    CurvatureChoice, DataRecord, Fitted, InputKind, LaplaceHeader, LaplaceModel, LaplaceModelError,
    LaplaceRequest, LikelihoodKind, NetworkRecord, NumberFormat, Numbers, Preprocess, SavedPrecision, decay,
};
use crate::network::{Preparation, TrainingRecord};
use posterior_data::Split;
use posterior_laplace::{
    Accumulator, Approximation, AutoReport, FisherEstimate, FitOptions, FitSummary, Laplace, LaplaceError,
    NoiseModel, Plan, Stage, Tune, Weights, auto,
};
use posterior_likelihoods::{
    Bernoulli, Categorical, HeteroscedasticGaussian, IndependentGaussian, Link, OutputLikelihood, Poisson,
    VectorLikelihood,
};
use posterior_linalg::random::Streams;
use posterior_networks::train::{Examples, Subset, Targets};
use posterior_networks::{Network, Selection};
use posterior_optim::Signal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Share of the examples that `Auto` sets aside where no others are given.
const SET_ASIDE: f64 = 0.1;

/// Told the stage, what is done of it and how much there is; may say stop.
type Observer<'a> = &'a mut dyn FnMut(Stage, usize, usize) -> Signal;

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
    /// As [`posterior_laplace::fit`].
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

    /// The same model with further data added to its sums. The earlier data are not needed.
    ///
    /// # Errors
    /// For curvatures that are not sums, modes that need all data, and as for a fit.
    pub fn continued(
        &self,
        data: &super::DataSource,
        options: &FitOptions,
        announce: &mut dyn FnMut(&str),
        observer: Observer<'_>,
    ) -> Result<Self, LaplaceModelError> {
        match &self.numbers {
            Numbers::Single(fitted) => continue_in(self, fitted, data, options, announce, observer),
            Numbers::Double(fitted) => continue_in(self, fitted, data, options, announce, observer),
        }
    }
}

fn check_positive(what: &str, value: f64, zero: bool) -> Result<(), LaplaceModelError> {
    if value.is_finite() && (value > 0.0 || (zero && value == 0.0)) {
        return Ok(());
    }
    Err(LaplaceModelError::Request(format!(
        "{what} is {value}; it must be a {}number",
        if zero { "" } else { "positive " }
    )))
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

/// The likelihood of a request.
fn likelihood<T: SavedPrecision>(
    request: &LaplaceRequest,
    network: &Network<T>,
    examples: &dyn Examples<T>,
    training: Option<&TrainingRecord>,
    observer: Observer<'_>,
) -> Result<OutputLikelihood, LaplaceModelError> {
    let outputs: usize = network.graph().output_shape().iter().product();
    if request.initial_noise.is_some() && request.likelihood != LikelihoodKind::Gaussian {
        return Err(LaplaceModelError::Request("only Gaussian noise has a variance to begin with".into()));
    }
    if request.link != Link::Logit && request.likelihood != LikelihoodKind::Bernoulli {
        return Err(LaplaceModelError::Request("only events have a link to choose".into()));
    }
    Ok(match request.likelihood {
        LikelihoodKind::Categorical => {
            if outputs < 2 {
                let problem = "the network has one output: two classes by one logit are `bernoulli` events";
                return Err(LaplaceModelError::Request(problem.into()));
            }
            OutputLikelihood::Categorical(Categorical::new(outputs)?)
        }
        LikelihoodKind::Bernoulli => OutputLikelihood::Bernoulli(Bernoulli::new(outputs, request.link)?),
        LikelihoodKind::Poisson => OutputLikelihood::Poisson(Poisson::new(outputs)?),
        LikelihoodKind::Heteroscedastic => {
            if !outputs.is_multiple_of(2) {
                let problem = format!(
                    "the network has {outputs} outputs; heteroscedastic noise needs a mean and a log variance for each target"
                );
                return Err(LaplaceModelError::Request(problem));
            }
            OutputLikelihood::HeteroscedasticGaussian(HeteroscedasticGaussian::new(outputs / 2)?)
        }
        LikelihoodKind::Gaussian => {
            let variances = match (request.initial_noise, training.map(|t| &t.noise_variance)) {
                (Some(v), _) => {
                    check_positive("the noise variance", v, false)?;
                    vec![v; outputs]
                }
                (None, Some(own))
                    if own.len() == outputs && own.iter().all(|v| v.is_finite() && *v > 0.0) =>
                {
                    own.clone()
                }
                _ => mean_squares(network, examples, outputs, observer)?,
            };
            OutputLikelihood::Gaussian(IndependentGaussian::new(variances)?)
        }
    })
}

/// Mean squared residuals of each output.
fn mean_squares<T: SavedPrecision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    outputs: usize,
    observer: Observer<'_>,
) -> Result<Vec<f64>, LaplaceModelError> {
    let mut sums = vec![0.0; outputs];
    let count = examples.len();
    for range in posterior_linalg::tiles::pieces(count, 512) {
        let end = range.end;
        let (x, targets) = examples.batch(&range.collect::<Vec<_>>(), None);
        let f = network.forward(&x)?;
        let Targets::Values(y) = targets else {
            return Err(LaplaceModelError::Request(
                "Gaussian noise needs numbers as targets, these are classes".into(),
            ));
        };
        if y.len() != f.len() {
            let problem =
                format!("each example has {} target values, the network {outputs} outputs", y.row_len());
            return Err(LaplaceModelError::Request(problem));
        }
        for (i, (y, f)) in y.values().iter().zip(f.values()).enumerate() {
            sums[i % outputs] += (y.to_f64() - f.to_f64()).powi(2);
        }
        if observer(Stage::Noise, end, count) == Signal::Stop {
            return Err(LaplaceError::Interrupted.into());
        }
    }
    Ok(sums.into_iter().map(|s| (s / count.max(1) as f64).max(1e-12)).collect())
}

/// The likelihood by which the plain network is judged: its best noise on the training data, unless noise is given.
fn plain_likelihood<T: SavedPrecision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    observer: Observer<'_>,
) -> Result<OutputLikelihood, LaplaceModelError> {
    let gaussian = matches!(likelihood, OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_));
    if !gaussian || options.noise == NoiseModel::Fixed {
        return Ok(likelihood.clone());
    }
    let variances = mean_squares(network, examples, likelihood.outputs(), observer)?;
    Ok(OutputLikelihood::Gaussian(IndependentGaussian::new(variances)?))
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

struct Parts {
    record: NetworkRecord,
    data: DataRecord,
    options: FitOptions,
    plain: OutputLikelihood,
    notes: Vec<String>,
    started: Instant,
    auto: Option<AutoReport>,
}

fn assemble<T: SavedPrecision>(network: Network<T>, laplace: Laplace<T>, parts: Parts) -> LaplaceModel {
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

fn continue_in<T: SavedPrecision>(
    model: &LaplaceModel,
    fitted: &Fitted<T>,
    data: &super::DataSource,
    options: &FitOptions,
    announce: &mut dyn FnMut(&str),
    observer: Observer<'_>,
) -> Result<LaplaceModel, LaplaceModelError> {
    let started = Instant::now();
    let header = &model.header;
    let likelihood = match header.base_likelihood {
        OutputLikelihood::Categorical(_) => LikelihoodKind::Categorical,
        OutputLikelihood::Bernoulli(_) => LikelihoodKind::Bernoulli,
        OutputLikelihood::Poisson(_) => LikelihoodKind::Poisson,
        OutputLikelihood::HeteroscedasticGaussian(_) => LikelihoodKind::Heteroscedastic,
        OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_) => LikelihoodKind::Gaussian,
    };
    let mut data = data.clone();
    // Roles and preparation are those of the first fit.
    data.preprocess = header.data.preprocess;
    if let InputKind::Features { columns, label } = &header.data.inputs {
        let named = crate::network::is_table(data.data.first().map_or(Path::new(""), |p| p.as_path()));
        data.selection.features = named.then(|| columns.clone());
        data.selection.target = label.clone().unwrap_or_default();
    }
    let head = matches!(header.data.inputs, InputKind::Features { .. });
    let input = fitted.network.graph().input_shape();
    let reading = Reading {
        source: &data,
        input,
        likelihood,
        head,
        known: Some(&header.data.inputs),
        from_network: false,
    };
    let set = reading.read::<T>(&data.data, &data.labels)?;
    announce(&format!("adding {} examples to {}", set.examples.len(), header.data.examples));
    let plain =
        plain_likelihood(&fitted.network, &*set.examples, &header.base_likelihood, options, observer)?;
    let laplace = fitted.laplace.extended(&fitted.network, &*set.examples, options, observer)?;
    let mut record = header.data.clone();
    record.examples += set.examples.len();
    record.files.extend(data.data.iter().map(|p| file_name(p)));
    record.notes.extend(set.notes);
    let weights = (header.data.examples as f64, set.examples.len() as f64);
    let parts = Parts {
        record: header.network.clone(),
        data: record,
        options: options.clone(),
        plain: pooled(&header.plain_likelihood, &plain, weights)?,
        notes: vec![format!(
            "{} examples were added to the {} of an earlier fit",
            set.examples.len(),
            header.data.examples
        )],
        started,
        auto: None,
    };
    Ok(assemble(fitted.network.clone(), laplace, parts))
}

/// Mean squared residuals over both sets of examples.
fn pooled(
    a: &OutputLikelihood,
    b: &OutputLikelihood,
    weights: (f64, f64),
) -> Result<OutputLikelihood, LaplaceModelError> {
    let (OutputLikelihood::Gaussian(a), OutputLikelihood::Gaussian(b)) = (a, b) else { return Ok(a.clone()) };
    let total = weights.0 + weights.1;
    let pairs = a.noise_variances().iter().zip(b.noise_variances());
    let variances = pairs.map(|(a, b)| (a * weights.0 + b * weights.1) / total).collect();
    Ok(OutputLikelihood::Gaussian(IndependentGaussian::new(variances)?))
}
