//! From a request, or a network in memory, to a model.

use super::automatic::{announced, choose};
use super::conditions::{check, check_trajectory, chosen_by_rows, settled};
use super::memory::InMemory;
use super::noise::{
    check_positive, likelihood, looks_like_probabilities, plain_likelihood, range_of_targets,
};
use super::request::{CurvatureChoice, LaplaceRequest, LikelihoodKind, NumberFormat};
use super::source::{Source, architecture};
use super::training_set::{Reading, TrainingSet};
use super::validation::held_out;
use super::{checkpoint, decay};
use crate::calibration::{self, Calibration, NetworkRecalibration};
use crate::method::{Fitted, predictor as network_predictor};
use crate::network::{Preparation, Preprocess, TrainingRecord, digests, file_name, predicted_shape};
use crate::options::CalibrateName;
use crate::record::{DataRecord, InputKind, NetworkHeader, NetworkRecord};
use crate::{Guarantee, Model, ModelError, Predictive, TrainingRows};
use posterior_data::{ReadOptions, require_targets};
use posterior_laplace::auto::{LEAST_APART, planned};
use posterior_laplace::{
    Approximation, Checkpointer, Data, FitOptions, Laplace, LaplaceError, Plan, Run, SavedState, Size, Stage,
    Weights, unseen_predictions, unseen_scores,
};
use posterior_likelihoods::{Integration, OutputLikelihood, PredictiveRule};
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision, Selection};
use posterior_notes::fixes::VALIDATION_DATA;
use posterior_optim::Signal;
use std::time::Instant;

/// Told the stage, what is done of it and how much there is; may say stop.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(Stage, usize, usize) -> Signal;

/// What a model should know of a network and data in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkDescription {
    /// What is done to data before the network sees them; examples are prepared already.
    pub preparation: Preparation,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// How the network was trained.
    pub training: Option<TrainingRecord>,
}

impl Model {
    /// Fits what is asked for. `announce` hears the plan before work starts; the observer sees the work and may stop it: the sums so far then go to the
    /// checkpoint, if there is a place for one.
    ///
    /// # Errors
    /// When files, network, likelihood and settings do not fit together, memory does not suffice, or the observer stopped the fit.
    pub fn fit_laplace(
        request: &LaplaceRequest,
        announce: &mut dyn FnMut(&str),
        observer: Observer<'_>,
    ) -> Result<Self, ModelError> {
        Self::fit_laplace_with(request, &InMemory::default(), announce, observer)
    }

    /// As [`Self::fit_laplace`], with what is in memory in the place of files.
    ///
    /// # Errors
    /// As [`Self::fit_laplace`]; with anything in memory, a request for a checkpoint, which could not tell what it belongs to.
    pub fn fit_laplace_with(
        request: &LaplaceRequest,
        memory: &InMemory,
        announce: &mut dyn FnMut(&str),
        observer: Observer<'_>,
    ) -> Result<Self, ModelError> {
        let in_memory = memory.network.is_some() || memory.data.is_some() || memory.unseen.is_some();
        if in_memory && (request.checkpoint.is_some() || request.resume) {
            let problem = "a checkpoint names the files that it belongs to, and these are in memory: save them and fit the files, or leave the checkpoint out";
            return Err(ModelError::Request(problem.into()));
        }
        let mut source = Source::open(request, memory)?;
        if let Some(weight_decay) = request.weight_decay {
            check_positive("the weight decay", weight_decay, true)?;
            let loss = posterior_networks::train::Loss::CrossEntropy;
            let record = TrainingRecord {
                loss,
                weight_decay,
                decoupled: false,
                examples: 0,
                data: Vec::new(),
                set_aside: None,
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
            fit_in::<f32>(source.network.cast()?, source, request, memory, announce, observer)
        } else {
            fit_in::<f64>(source.network.clone(), source, request, memory, announce, observer)
        }
    }

    /// As [`Self::fit_laplace`] for a network and examples in memory.
    ///
    /// # Errors
    /// As [`posterior_laplace::fit()`].
    pub fn fit_network<T: Precision>(
        network: Network<T>,
        examples: &dyn Examples<T>,
        validation: Option<&dyn Examples<T>>,
        likelihood: &OutputLikelihood,
        options: &FitOptions,
        description: NetworkDescription,
        observer: Observer<'_>,
    ) -> Result<Self, ModelError> {
        let started = Instant::now();
        let record = NetworkRecord {
            architecture: architecture(network.graph())?,
            file: String::new(),
            format: "memory".into(),
            inputs: Vec::new(),
            sha256: None,
            training: description.training,
            notes: Vec::new(),
        };
        let data = DataRecord {
            files: Vec::new(),
            sha256: Vec::new(),
            examples: examples.len(),
            held_out: None,
            inputs: InputKind::Prepared { preparation: description.preparation },
            record: None,
            preprocess: Preprocess::Auto,
            class_names: description.class_names,
            notes: Vec::new(),
        };
        let plain = plain_likelihood(&network, examples, likelihood, options, observer)?;
        let fitted = Data { network: &network, examples, validation, likelihood };
        let laplace = posterior_laplace::fit(&fitted, options, &mut Run::new(observer))?;
        let header = NetworkHeader::new((record, data), options.clone(), plain, &laplace);
        Ok(assemble(network, laplace, (header, started), Default::default()))
    }
}

fn fit_in<T: Precision>(
    network: Network<T>,
    source: Source,
    request: &LaplaceRequest,
    memory: &InMemory,
    announce: &mut dyn FnMut(&str),
    observer: Observer<'_>,
) -> Result<Model, ModelError> {
    let started = Instant::now();
    let known = InputKind::Prepared { preparation: source.preparation.clone() };
    let outputs = network.graph().output_shape();
    let halves = if request.likelihood == LikelihoodKind::Heteroscedastic { 2 } else { 1 };
    let predicted = predicted_shape(outputs, outputs.iter().product::<usize>() / halves);
    let reading = Reading {
        source: &request.data,
        limits: ReadOptions { text: request.data.text, ..ReadOptions::limited(request.limits.memory) },
        input: network.graph().input_shape(),
        inputs: &source.record.inputs,
        predicted: &predicted,
        likelihood: request.likelihood,
        head: source.head,
        known: Some(&known),
        from_network: true,
    };
    let TrainingSet { mut examples, inputs, record, fingerprints, class_names, notes: data_notes } =
        match &memory.data {
            Some(arrays) => reading.in_memory::<T>(arrays)?,
            None => reading.read::<T>(&request.data.data, &request.data.labels)?,
        };
    let learned_from = TrainingRows::new(fingerprints);
    let training = source.record.training.clone();
    let sha256 = match &memory.data {
        Some(_) => Vec::new(),
        None => digests(request.data.data.iter().chain(&request.data.labels)),
    };
    let trained = (training.as_ref(), &sha256[..]);
    let (held_out, held_out_notes) =
        held_out(request, memory, &reading, (&inputs, &record, &learned_from), trained, &mut examples)?;
    if let (Some(schema), Some(path)) = (inputs.schema(), request.data.data.first()) {
        let scaled = matches!(request.likelihood, LikelihoodKind::Gaussian | LikelihoodKind::Heteroscedastic);
        let range = if scaled { range_of_targets(&*examples) } else { None };
        let (centre, scale) = inputs.preparation().target_units();
        // Where all are equal, the number as single precision has it, without digits that standardisation added.
        let number = |y: f64| centre + scale * y;
        let range = range.map(|[least, largest]| match least < largest {
            true => [number(least), number(largest)],
            false => [(number(least) as f32).to_string().parse().unwrap_or(number(least)); 2],
        });
        require_targets(path, &schema.target, examples.len(), range)?;
    }
    let likelihood = likelihood(request, &network, &*examples, training.as_ref(), observer)?;
    check_class_names(&class_names, &likelihood)?;
    check(request, likelihood.outputs(), held_out.is_some())?;
    check_trajectory(network.graph(), &request.options, examples.len(), likelihood.outputs())?;
    let (mut options, settled_note) = settled(&request.fit_options());
    options.integration = request.predictive.unwrap_or_else(|| match options.approximation {
        // Nothing to average over.
        Approximation::Temperature => Integration::Probit,
        _ => suited(&likelihood, options.seed),
    });
    options.seen_by_network = request.validation.allow_seen;
    // Pairs that have no meaning are refused before the work, not when the model is asked.
    PredictiveRule::new(likelihood.clone(), options.integration).map_err(LaplaceError::from)?;
    let mut notes = looks_like_probabilities(&network, &*examples, &likelihood)?;
    notes.extend(held_out_notes);
    notes.extend(settled_note.filter(|_| held_out.is_some()));
    // Rows that choose are rows that were seen.
    let learned_from = learned_from.with(held_out.iter().flat_map(|h| h.fingerprints.iter().copied()));
    for line in source.record.notes.iter().chain(&data_notes).chain(&notes) {
        announce(&format!("note: {line}"));
    }
    let automatic = request.curvature == CurvatureChoice::Auto;
    let unseen = held_out.as_ref().filter(|h| !h.seen).map(|h| h.examples.len());
    let calibrates = calibration::is_wanted(request.validation.calibrate, &likelihood, unseen)?;
    if automatic {
        let plans = planned(&network, &likelihood, examples.len(), unseen, &options)?;
        announce(&announced(&plans, examples.len(), unseen));
    } else {
        let selection = planned_selection(&network, &options)?;
        let unseen = held_out.as_ref().map_or(0, |h| h.examples.len());
        let (network, selection, likelihood) = (&network, &selection, &likelihood);
        let size = Size { network, selection, examples: examples.len(), unseen, likelihood };
        let plan = Plan::new(&size, &options)?;
        announce(&format!("plan: {plan}"));
        plan.check(&options)?;
    }
    if let Some(count) = unseen.filter(|_| calibrates) {
        announce(&format!("plan: {}", calibration::plan(count, &likelihood, options.memory)?));
    }
    let data = DataRecord {
        files: request.data.data.iter().map(|p| file_name(p)).collect(),
        sha256,
        examples: examples.len(),
        held_out: held_out.as_ref().map(|h| h.record.clone()),
        inputs,
        record: Some(record),
        preprocess: request.data.preprocess,
        class_names,
        notes: data_notes,
    };
    let identity = checkpoint::identity(&source.record, &data, &likelihood, &options)?;
    let mut earlier = None;
    if let Some(path) = request.checkpoint.as_deref().filter(|p| request.resume && p.exists()) {
        let state = checkpoint::load(path, &identity)?;
        announce(&format!("going on {}", state.progress));
        earlier = Some(state);
    }
    let mut written = request.resume;
    let mut write = |state: &SavedState| {
        written = true;
        match &request.checkpoint {
            Some(path) => Ok(checkpoint::save(path, &identity, state)?),
            None => Ok(()),
        }
    };
    let plain = plain_likelihood(&network, &*examples, &likelihood, &options, observer)?;
    let rows = held_out.as_ref().map(|h| &*h.examples as &dyn Examples<T>);
    let fitted = Data { network: &network, examples: &*examples, validation: rows, likelihood: &likelihood };
    let (mut laplace, auto) = if automatic {
        let (laplace, report) = choose(&fitted, &plain, request, &mut options, observer)?;
        (laplace, Some(report))
    } else {
        let checkpointer = Checkpointer::new(earlier, Some(&mut write));
        let mut run = Run::new(&mut *observer).keeping(checkpointer);
        let mut laplace = posterior_laplace::fit(&fitted, &options, &mut run)?;
        if let (Some(rows), Some(_)) = (rows, unseen) {
            laplace.summary.unseen = Some(unseen_scores(&network, &laplace, &plain, rows, &mut run)?);
        }
        (laplace, None)
    };
    // A comparison of enough rows scores on others than those that choose.
    let apart = automatic && unseen.is_some_and(|count| count >= LEAST_APART);
    if unseen.is_some() && !apart && options.chooses_on_unseen() {
        notes.push(format!(
            "the unseen rows that score this fit also chose {}, which flatters the score a little",
            chosen_by_rows(&options, laplace.summary.learned.as_ref())
        ));
    } else if unseen.is_none() && !automatic && !options.seen_by_network {
        notes.push(format!(
            "not compared on unseen data: give {VALIDATION_DATA} to learn whether it beats the plain network"
        ));
    }
    let calibration = match &held_out {
        Some(held) if calibrates => {
            let chosen = automatic || options.chooses_on_unseen();
            let guarantee = Guarantee::of_unseen(chosen, held.record.repeated, held.kept_weights);
            let mut run = Run::new(observer);
            let unseen = unseen_predictions(&network, &laplace, &*held.examples, &mut run)?;
            let rule = laplace.rule(laplace.integration())?;
            let predictive = Predictive::of_examples(&rule, unseen.predictions);
            let asked = (request.validation.calibrate, guarantee);
            let found = NetworkRecalibration::learn(asked, predictive, unseen.targets)?;
            if found.0.is_none() && request.validation.calibrate == CalibrateName::Conformal {
                notes.push(
                    "predictions could not be recalibrated (--calibrate conformal): the model is certain of the rows that the network has not seen".into(),
                );
            }
            found
        }
        _ => Default::default(),
    };
    notes.extend(laplace.check_predictions(&network, &*examples)?);
    if let Some(path) = request.checkpoint.as_deref().filter(|path| written && path.exists()) {
        // A finished fit needs none; one that cannot be removed does no harm.
        let _ = std::fs::remove_file(path);
    }
    notes.append(&mut laplace.summary.notes);
    let (recalibration, calibration) = calibration;
    let header = NetworkHeader {
        notes,
        auto,
        recalibration,
        ..NetworkHeader::new((source.record, data), options, plain, &laplace)
    };
    Ok(assemble(network, laplace, (header, started), (learned_from, calibration)))
}

/// Refuses names of classes that are not as many as the network's outputs; two name an event and its absence.
fn check_class_names(names: &[String], likelihood: &OutputLikelihood) -> Result<(), ModelError> {
    let (expected, what) = match likelihood {
        OutputLikelihood::Categorical(c) => (c.classes(), "classes"),
        OutputLikelihood::Bernoulli(_) => (2, "sides of an event"),
        _ if !names.is_empty() => {
            let problem = "--class-names belongs to --likelihood categorical and bernoulli";
            return Err(ModelError::Request(problem.into()));
        }
        _ => return Ok(()),
    };
    if names.is_empty() || names.len() == expected {
        return Ok(());
    }
    Err(ModelError::Request(format!(
        "the network has {expected} {what}, but there are {} labels or names: {}",
        names.len(),
        names.iter().take(20).cloned().collect::<Vec<_>>().join(", ")
    )))
}

/// The predictive that suits a likelihood. Logits of classes vary together: a closed form that takes each on its own flattens probabilities where nothing calls for it (the book has the
/// numbers). The covariance of many classes is large, so that beyond 100 the closed form stays.
fn suited(likelihood: &OutputLikelihood, seed: u64) -> Integration {
    match likelihood {
        OutputLikelihood::Categorical(c) if c.classes() <= 100 => {
            Integration::MonteCarlo { samples: 1000, seed }
        }
        _ => Integration::Probit,
    }
}

/// The weights, where they are known without data; as many of them, where not.
pub(super) fn planned_selection<T: Precision>(
    network: &Network<T>,
    options: &FitOptions,
) -> Result<Selection, ModelError> {
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

/// Header and posterior as one, with the rows learned from, which are known where they came from files.
pub(crate) fn assemble<T: Precision>(
    network: Network<T>,
    laplace: Laplace<T>,
    (mut header, started): (NetworkHeader, Instant),
    (training, calibration): (TrainingRows, Calibration),
) -> Model {
    header.notes.append(&mut header.summary.notes);
    let noise = match laplace.likelihood() {
        OutputLikelihood::Gaussian(g) => {
            g.noise_variances().iter().sum::<f64>() / g.noise_variances().len() as f64
        }
        _ => 1.0,
    };
    // A search of its own has no prior over the weights as they are, or none that it was not told.
    if !header.options.approximation.is_learned() {
        let sentence = decay::sentence(&header, laplace.prior().precisions(), noise);
        header.notes.extend(sentence);
    }
    header.seconds = started.elapsed().as_secs_f64();
    let preparation = header.data.inputs.preparation().clone();
    let predictor = network_predictor(Fitted { network, laplace }, preparation);
    Model::of_network(header, predictor, training, calibration)
}
