//! Rows that score a fit: given in files of their own, recorded by `posterior train`, or, where insisted upon, rows that the network was trained on.

use super::memory::InMemory;
use super::request::{CurvatureChoice, LaplaceRequest};
use super::training_set::Reading;
use crate::network::{TrainingRecord, digests, file_name, is_part};
use crate::record::{HeldOutRecord, InputKind, InputRecord};
use crate::{ModelError, TrainingRows};
use posterior_data::Split;
use posterior_laplace::FitOptions;
use posterior_laplace::scores::{LEAST_HELD_OUT, check_enough};
use posterior_linalg::random::Streams;
use posterior_networks::Precision;
use posterior_networks::train::{Examples, Subset};
use posterior_notes::fixes::{CURVATURE_AUTO, SEEN_ROWS, TRAIN_VALIDATION, TUNE_EVIDENCE, VALIDATION_DATA};
use std::sync::Arc;

/// Rows that are no part of the curvature.
pub(crate) struct HeldOut<T> {
    pub(crate) examples: Arc<dyn Examples<T> + Send>,
    /// Whether the network was trained on them (or may have been).
    pub(crate) seen: bool,
    /// Whether the network's training kept the weights that were best on them.
    pub(crate) kept_weights: bool,
    /// Of those that stand in files of their own.
    pub(crate) fingerprints: Vec<u64>,
    /// What the model's file says of them.
    pub(crate) record: HeldOutRecord,
}

impl<T> HeldOut<T> {
    /// Some of the rows that were read for the fit.
    fn of(examples: Arc<dyn Examples<T> + Send>, seen: bool) -> Self {
        let (files, sha256) = (Vec::new(), Vec::new());
        let record = HeldOutRecord { files, sha256, examples: examples.len(), repeated: 0 };
        Self { examples, seen, kept_weights: false, fingerprints: Vec::new(), record }
    }
}

/// Rows that score a fit, if there are any, and what is to be said of them.
type Found<T> = (Option<HeldOut<T>>, Vec<String>);

/// The rows of a request, which are taken out of `examples` where they are among them.
pub(crate) fn held_out<T: Precision>(
    request: &LaplaceRequest,
    memory: &InMemory,
    reading: &Reading<'_>,
    (inputs, record, learned_from): (&InputKind, &InputRecord, &TrainingRows),
    (training, digests_of_data): (Option<&TrainingRecord>, &[String]),
    examples: &mut Arc<dyn Examples<T> + Send>,
) -> Result<Found<T>, ModelError> {
    let source = &request.validation;
    let refuse = |problem: String| Err(ModelError::Request(problem));
    let ways_out = format!(
        "give {VALIDATION_DATA} that the network has not seen; or train with `{TRAIN_VALIDATION:#}`, which records the rows that it sets aside; \
         or let the evidence choose ({TUNE_EVIDENCE}), which needs none"
    );
    let tuned = request.options.tunes_on_unseen();
    let allow = source.allow_seen;
    if !(0.0..1.0).contains(&source.fraction) {
        return refuse("the validation share must lie in [0, 1)".into());
    }
    if allow && request.curvature == CurvatureChoice::Auto {
        return refuse(format!(
            "--allow-seen-rows is for a named curvature: {CURVATURE_AUTO} compares on rows that the network has not seen, or by the evidence"
        ));
    }
    if memory.unseen.is_some() || !source.data.is_empty() {
        let reading = Reading { known: Some(inputs), from_network: false, ..*reading };
        let set = match &memory.unseen {
            Some(arrays) => reading.in_memory::<T>(arrays)?,
            None => reading.read::<T>(&source.data, &source.labels)?,
        };
        check_enough(set.examples.len())?;
        if set.record.kind != record.kind {
            return refuse("--validation-data hold another kind of numbers than the data (bytes, whole or floating-point numbers): convert them".into());
        }
        // Those in memory have none.
        let files = if memory.unseen.is_some() { &[][..] } else { &source.data };
        let labels = if memory.unseen.is_some() { &[][..] } else { &source.labels };
        let sha256 = digests(files.iter().chain(labels));
        let trained_on = training.and_then(|t| {
            let own = files.iter().zip(&sha256);
            own.filter(|(path, _)| !is_part(path)).find(|(_, digest)| t.data.contains(digest))
        });
        let repeated = learned_from.count(&set.fingerprints).unwrap_or(0);
        let (count, mut notes) = (set.examples.len(), Vec::new());
        let most = 2 * repeated > count;
        let seen = most || trained_on.is_some();
        if most && !(allow && tuned) {
            return refuse(format!(
                "{repeated} of {count} rows of --validation-data stand in the data as well, so the network was trained on them and their score is worthless: {ways_out}"
            ));
        }
        if let Some((path, _)) = trained_on.filter(|_| !(allow && tuned)) {
            return refuse(format!(
                "{} is one of the files that the network was trained on, as its own file says, so the score of these rows is worthless: {ways_out}",
                file_name(path)
            ));
        }
        if repeated > 0 {
            notes.push(format!("{repeated} of {count} validation rows stand in the training data as well"));
        }
        let files = files.iter().map(|p| file_name(p)).collect();
        let record = HeldOutRecord { files, sha256, examples: count, repeated };
        let fingerprints = set.fingerprints;
        return Ok((Some(HeldOut { fingerprints, record, ..HeldOut::of(set.examples, seen) }), notes));
    }
    if source.fraction > 0.0 {
        if !(allow && tuned) {
            let known = match training {
                Some(t) if t.set_aside.is_some() => {
                    " (the network's file records rows that were set aside: they are used without this flag)"
                }
                _ => "",
            };
            return refuse(format!(
                "--validation-fraction would set aside rows of the data, on which the network was trained as far as its file says: their score is worthless{known}; {ways_out}; \
                 or insist with {SEEN_ROWS}"
            ));
        }
        let split = Split::random(examples.len(), source.fraction, Streams::new(request.seed));
        if split.train.is_empty() || split.test.is_empty() {
            return refuse(
                "the validation share leaves no examples on one side: change it or add data".into(),
            );
        }
        return Ok((Some(HeldOut::of(take(examples, split), true)), Vec::new()));
    }
    if let Some(found) = recorded(&request.options, training, digests_of_data, examples) {
        return Ok(found);
    }
    if tuned {
        return refuse(format!("--tune validation needs rows that the network has not seen: {ways_out}"));
    }
    Ok((None, Vec::new()))
}

/// The rows that `posterior train` set aside of the same files; None where nothing is known of any. Where they are too few to score a fit, they are learned from.
fn recorded<T: Precision>(
    options: &FitOptions,
    training: Option<&TrainingRecord>,
    digests: &[String],
    examples: &mut Arc<dyn Examples<T> + Send>,
) -> Option<Found<T>> {
    let (record, set_aside) = training.and_then(|t| Some((t, t.set_aside.as_ref()?)))?;
    let same = !record.data.is_empty() && record.data == digests;
    if !same || set_aside.of != examples.len() {
        return None;
    }
    if set_aside.examples < LEAST_HELD_OUT && !options.tunes_on_unseen() {
        let note = format!(
            "{} rows, which `posterior train` set aside, are too few to score a fit ({LEAST_HELD_OUT} are needed): the curvature learns from them too",
            set_aside.examples
        );
        return Some((None, vec![note]));
    }
    let split = Split::random(examples.len(), set_aside.fraction, Streams::new(set_aside.seed));
    let note = format!(
        "{} of {} rows, which `posterior train` set aside, are no part of the curvature: the fit is scored on them",
        split.test.len(),
        examples.len()
    );
    let held = HeldOut { kept_weights: true, ..HeldOut::of(take(examples, split), false) };
    Some((Some(held), vec![note]))
}

/// Leaves the training rows and returns the others.
fn take<T: Precision>(
    examples: &mut Arc<dyn Examples<T> + Send>,
    split: Split,
) -> Arc<dyn Examples<T> + Send> {
    let whole = examples.clone();
    *examples = Arc::new(Subset::new(whole.clone(), split.train));
    Arc::new(Subset::new(whole, split.test))
}
