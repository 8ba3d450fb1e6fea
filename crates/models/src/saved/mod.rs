//! **What a file holds**: a model, or several of the targets of one table, whose predictions stand side by side. What is of one target is asked of its own model.
//!
//! | file | what |
//! |---|---|
//! | `file` | header and arrays, written and read |
//! | `noise` | arrays of noise that depends on inputs |
//! | `run` | how the command went that wrote the file |
//! | `screen` | the short form, which a fit prints |

mod file;
mod noise;
mod run;
mod screen;

pub(crate) use file::{FileHeader, STREAM, container, only};
pub use run::RunRecord;

use crate::facts::fixed;
use crate::targets::{SharedKernel, column_name, same_column, usual_columns};
use crate::{
    Answer, Facts, Files, Model, ModelData, ModelError, ModelReport, PredictedInto, PredictedKind,
    PredictionPlan, Question, VarianceSolves,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{Departure, InputMoments, Schema};
use posterior_store::{StoreError, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What seeds of targets are apart, so that their draws are independent.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Whether a question has something.
type Has = fn(&Question) -> bool;

/// Models of one file.
#[derive(Clone, Debug)]
pub struct Saved {
    /// One, or those of several targets in their order.
    pub models: Vec<Model>,
    /// What numeric targets share, where they do.
    pub shared: Option<SharedKernel>,
    /// How the command went that wrote the file; none of models that no command wrote.
    pub run: Option<RunRecord>,
}

impl From<Model> for Saved {
    fn from(model: Model) -> Self {
        Self { models: vec![model], shared: None, run: None }
    }
}

impl Saved {
    /// Of models in the order of their targets, with what some of them share.
    ///
    /// # Errors
    /// [`ModelError::Request`] for none, for several of which one is no process, and for targets whose predictions would stand in columns of the same name.
    pub fn of(models: Vec<Model>, shared: Option<SharedKernel>) -> Result<Self, ModelError> {
        let problem = |problem: &str| Err(ModelError::Request(problem.into()));
        if models.is_empty() {
            return problem("a file holds at least one model");
        }
        if models.len() > 1 && models.iter().any(|model| model.process().is_none()) {
            return problem("models of several targets are processes");
        }
        let mut columns = BTreeSet::new();
        for column in models.iter().filter(|_| models.len() > 1).flat_map(usual_columns) {
            if columns.contains(&column) {
                return Err(ModelError::Request(same_column(&column)));
            }
            columns.insert(column);
        }
        let saved = Self { models, shared, run: None };
        let (names, shares) = (saved.names(), saved.shared.as_ref().map_or(&[][..], |own| &own.targets));
        if let Some(other) = shares.iter().find(|name| !names.contains(name)) {
            return problem(&format!("`{other}` shares a kernel, and is no target of the model"));
        }
        Ok(saved)
    }

    /// The model, where there is one.
    pub fn only(&self) -> Option<&Model> {
        match &self.models[..] {
            [model] => Some(model),
            _ => None,
        }
    }

    /// The same, without the rest of the file.
    pub fn into_only(mut self) -> Option<Model> {
        self.models.pop().filter(|_| self.models.is_empty())
    }

    /// The first model.
    ///
    /// # Errors
    /// [`ModelError::Request`] where there is none.
    pub fn first(&self) -> Result<&Model, ModelError> {
        self.models.first().ok_or_else(|| ModelError::Request("there is no model".into()))
    }

    /// Names of the targets.
    pub fn names(&self) -> Vec<String> {
        self.models.iter().map(Model::target).collect()
    }

    /// The model of a target; None where it is no target.
    pub fn of_target(&self, target: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.target() == target)
    }

    /// What reads the tables of its models.
    pub fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        self.models.iter_mut().filter_map(Model::schema_mut).collect()
    }

    /// What a report shows of all.
    ///
    /// # Errors
    /// As [`Model::model_report`].
    pub fn model_report(&self) -> Result<ModelReport, ModelError> {
        let (title, method) = ("Gaussian processes", "Gaussian processes");
        self.only()
            .map_or_else(|| Ok(ModelReport { title, method, ..ModelReport::default() }), Model::model_report)
    }

    /// Reads files of the kind that all learned from.
    ///
    /// # Errors
    /// As [`Model::read`].
    pub fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        self.first()?.read(files)
    }

    /// Remarks on data beside those of the fit ([`Model::check_inputs`]).
    ///
    /// # Errors
    /// As [`Model::check_inputs`].
    pub fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        self.first()?.check_inputs(data, allowed)
    }

    /// Refuses a question that one of them has no answer to, before anything is read.
    ///
    /// # Errors
    /// As [`Model::check`], with the target; [`ModelError::Usage`] for what is of one target.
    pub fn check(&self, question: &Question) -> Result<(), ModelError> {
        if let Some(model) = self.only() {
            return model.check(question);
        }
        let usage = |problem: &str| Err(ModelError::Usage(problem.into()));
        if question.into == PredictedInto::Array {
            return usage(
                "an array holds the predictions of one target, and this model has several: write .csv or .parquet",
            );
        }
        if question.joint {
            return usage(
                "--joint is the covariance of one target's function, and this model has several: fit the target by itself",
            );
        }
        if question.samples > 0 && question.draws_apart {
            return usage(
                "--samples-out is an array of one target's draws, and this model has several: leave it out for columns of draws",
            );
        }
        let each = self.asked(question);
        let told =
            |model: &Model, found: Result<(), ModelError>| found.map_err(|e| of_target(e, &model.target()));
        each.iter().try_for_each(|(model, own)| told(model, model.check_family(own)))?;
        each.iter().try_for_each(|(model, own)| told(model, model.check(own)))
    }

    /// Each target's model, and what of a question is for it: quantiles are of numbers, the most probable classes and sets of them of classes, where there are both.
    fn asked(&self, question: &Question) -> Vec<(&Model, Question)> {
        let numbers = |model: &Model| model.predicts() == PredictedKind::Values;
        let both = |wanted: bool| self.models.iter().any(|model| numbers(model) == wanted);
        let mixed = both(true) && both(false);
        let mut out = Vec::with_capacity(self.models.len());
        for (k, model) in self.models.iter().enumerate() {
            let mut own = question.clone();
            own.seed = question.seed.wrapping_add((k as u64).wrapping_mul(SEED_STEP));
            if mixed && numbers(model) {
                (own.top, own.sets) = (None, Vec::new());
            } else if mixed {
                (own.quantiles, own.latent, own.samples) = (Vec::new(), false, 0);
            }
            out.push((model, own));
        }
        out
    }

    /// What a part of the question is not about.
    fn not_asked(&self, question: &Question) -> Option<String> {
        let asked = self.asked(question);
        let mut parts = Vec::new();
        let flags: [(&str, Has); 4] = [
            ("--quantiles", |q| !q.quantiles.is_empty()),
            ("--samples", |q| q.samples > 0),
            ("--top", |q| q.top.is_some()),
            ("--sets", |q| !q.sets.is_empty()),
        ];
        for (flag, has) in flags.into_iter().filter(|(_, has)| has(question)) {
            let names = asked.iter().filter(|(_, own)| has(own)).map(|(model, _)| model.target());
            let names: Vec<String> = names.collect();
            if names.len() < asked.len() {
                parts.push(format!("{flag} of {}", names.join(", ")));
            }
        }
        (!parts.is_empty())
            .then(|| format!("{} only: the other targets are of another kind", parts.join(", ")))
    }

    /// Seconds that all fits took.
    pub fn seconds(&self) -> f64 {
        if let Some(model) = self.only() {
            return model.seconds();
        }
        let search = self.shared.as_ref().map_or(0.0, |shared| shared.seconds);
        search + self.models.iter().map(|model| model.seconds()).sum::<f64>()
    }

    /// What is of all targets.
    fn facts(&self) -> Facts {
        let shared = match &self.shared {
            Some(shared) => shared.describe(),
            None => "of each target its own (--share-kernel has one for all numeric ones)".into(),
        };
        Facts::new()
            .headline("targets", self.names().join(", "))
            .headline("kernel and noise", shared)
            .headline("seconds", fixed(self.seconds(), 2, ""))
    }

    /// What is of all targets, then each as it would be alone.
    pub fn described(&self) -> String {
        if let Some(model) = self.only() {
            return model.described();
        }
        let each = self.models.iter().map(|model| {
            let heading = format!("Target {}", model.target());
            format!("{heading}\n{}\n{}", "=".repeat(heading.chars().count()), model.described())
        });
        std::iter::once(self.facts().text()).chain(each).collect::<Vec<_>>().join("\n\n")
    }

    /// The same for programs, with how the command went that wrote the file.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    pub fn report(&self) -> Result<Value, StoreError> {
        let each = self.models.iter().enumerate().map(|(place, model)| {
            let mut own = model.report()?;
            if let Some(run) = &self.run {
                run.add_scores(place, &mut own);
            }
            Ok(own)
        });
        let mut each = each.collect::<Result<Vec<Value>, StoreError>>()?;
        let mut out = match self.only() {
            Some(_) => each.remove(0),
            None => {
                for (own, model) in each.iter_mut().zip(&self.models) {
                    own["target"] = model.target().into();
                }
                let seed = self.models.first().and_then(Model::process).map(|own| own.record.seed);
                // The kernel is null where each has its own.
                json!({ "kind": "targets", "shared_kernel": self.shared, "seed": seed, "targets": each })
            }
        };
        out["seconds"] = json!(self.run.as_ref().map_or_else(|| self.seconds(), |run| run.seconds));
        if let Some(run) = &self.run {
            run.add(&mut out);
        }
        Ok(out)
    }

    /// Targets are predicted one after the other; the columns of each stay until all are there.
    ///
    /// # Errors
    /// As [`Model::plan`].
    pub fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        if let Some(model) = self.only() {
            return model.plan(data, question, scored);
        }
        let mut all: Option<PredictionPlan> = None;
        for (model, own) in self.asked(question) {
            let next = model.plan(data, &Question { memory: u64::MAX, ..own }, scored)?;
            all = Some(match all {
                None => next,
                Some(mut plan) => {
                    // Of what one needs nothing is counted off that may be in its columns; the data are there once.
                    let more = next.peak_bytes.saturating_sub(next.data_bytes);
                    plan.peak_bytes = plan.peak_bytes.saturating_add(more);
                    let kept = next.kept_bytes.saturating_sub(next.data_bytes);
                    plan.kept_bytes = plan.kept_bytes.saturating_add(kept);
                    plan.samples = plan.samples.max(next.samples);
                    plan.flops += next.flops;
                    plan.seconds = plan.seconds.zip(next.seconds).map(|(a, b)| a + b);
                    plan
                }
            });
        }
        let Some(plan) = all else { return several("plan") };
        plan.check(question.memory)?;
        Ok(plan)
    }

    /// Columns of all targets, in their order; rows count where each target has a prediction.
    ///
    /// # Errors
    /// As [`Model::predict`], with the target; [`ModelError::Request`] for two columns of the same name.
    pub fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        if let Some(model) = self.only() {
            return model.predict(data, question);
        }
        self.check(question)?;
        let mut out = Answer::default();
        let mut names = BTreeSet::new();
        for (place, (model, own)) in self.asked(question).into_iter().enumerate() {
            let target = model.target();
            let answer = model.predict(data, &own).map_err(|e| of_target(e, &target))?;
            for mut column in answer.columns {
                column.name = column_name(model, &column.name);
                if names.contains(&column.name) {
                    return Err(ModelError::Request(same_column(&column.name)));
                }
                names.insert(column.name.clone());
                out.columns.push(column);
            }
            out.sets.extend(answer.sets.into_iter().map(|(name, each)| (column_name(model, &name), each)));
            out.notes.extend(answer.notes.into_iter().map(|note| format!("{target}: {note}")));
            out.count = if place == 0 { answer.count } else { out.count.min(answer.count) };
            out.clipped += answer.clipped;
            out.solves = VarianceSolves::of_all([out.solves, answer.solves]);
            if place == 0 {
                (out.data, out.inputs) = (answer.data, answer.inputs);
            } else {
                // The same cells of the same columns, for the most part.
                out.data.filled_cells = out.data.filled_cells.max(answer.data.filled_cells);
                out.data.unseen_categories = out.data.unseen_categories.max(answer.data.unseen_categories);
                out.inputs.add_beside(answer.inputs);
            }
        }
        out.notes.extend(self.not_asked(question));
        Ok(out)
    }

    /// Of each target's model; what several say of a column is said once.
    pub fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        if let Some(model) = self.only() {
            return model.departures(inputs);
        }
        let mut all: Vec<Departure> = Vec::new();
        for (model, own) in self.models.iter().zip(inputs.side_by_side()) {
            for departure in model.departures(own)? {
                if !all.iter().any(|d| d.column == departure.column && d.sign == departure.sign) {
                    all.push(departure);
                }
            }
        }
        Some(all)
    }

    /// Text is what all models read as text, in the smallest part that one of them asks for.
    ///
    /// # Errors
    /// As [`Model::cut`], with the target.
    pub fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        if let Some(model) = self.only() {
            return model.cut(files, question);
        }
        let mut all: Option<StreamOptions> = None;
        for (model, own) in self.asked(question) {
            let next = model.cut(files, &own).map_err(|e| of_target(e, &model.target()))?;
            all = Some(match all {
                None => next,
                Some(mut options) => {
                    options.text_columns.retain(|column| next.text_columns.contains(column));
                    options.part_bytes = options.part_bytes.min(next.part_bytes);
                    options
                }
            });
        }
        match all {
            Some(options) => Ok(options),
            None => several("parts"),
        }
    }

    /// Whether a question can be answered part by part.
    pub fn answers_parts(&self, question: &Question) -> bool {
        self.asked(question).into_iter().all(|(model, own)| model.answers_parts(&own))
    }
}

/// The same error, which says of which target it is.
fn of_target(error: ModelError, target: &str) -> ModelError {
    match error {
        ModelError::Usage(problem) => ModelError::Usage(format!("target `{target}`: {problem}")),
        ModelError::Request(problem) => ModelError::Request(format!("target `{target}`: {problem}")),
        other => other,
    }
}

/// Why there is no single answer.
fn several<T>(what: &str) -> Result<T, ModelError> {
    Err(ModelError::Usage(format!(
        "a model of several targets has no {what} of its own: ask the model of one target"
    )))
}

/// Models may be asked by several threads.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Model>();
    shared::<Saved>();
};
