//! Models of several targets as one [`Model`]: predictions side by side; what is of one target is asked of its own model ([`Model::targets`]).

use super::{TargetsModel, column_name, same_column};
use crate::text::table;
use crate::{
    Answer, Family, Files, Model, ModelData, ModelError, Portrait, PredictedInto, PredictedKind,
    PredictionPlan, Predictive, ProcessModel, Question, TrainedOn, VarianceSolves,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{Departure, InputMoments, NumericArray, Schema, TimeForm};
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use posterior_store::json;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What seeds of targets are apart, so that their draws are independent.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Whether a question has something.
type Has = fn(&Question) -> bool;

impl TargetsModel {
    /// Each target's model, and what of a question is for it: quantiles are of numbers, the most probable classes and sets of them of classes, where there are both.
    fn asked(&self, question: &Question) -> Vec<(&dyn Model, Question)> {
        let numbers = |model: &dyn Model| model.predicts() == PredictedKind::Values;
        let both = |wanted: bool| self.models.iter().any(|model| numbers(model) == wanted);
        let mixed = both(true) && both(false);
        let mut out = Vec::with_capacity(self.models.len());
        for (k, model) in self.targets().into_iter().enumerate() {
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

impl Model for TargetsModel {
    fn as_model(&self) -> &dyn Model {
        self
    }

    fn family(&self) -> Family {
        Family::Process
    }

    /// Of the first target; others may be of another kind.
    fn predicts(&self) -> PredictedKind {
        self.models[0].predicts()
    }

    fn targets(&self) -> Vec<&dyn Model> {
        self.models.iter().map(ProcessModel::as_model).collect()
    }

    fn seconds(&self) -> f64 {
        let search = self.shared.as_ref().map_or(0.0, |shared| shared.seconds);
        search + self.models.iter().map(|model| model.seconds()).sum::<f64>()
    }

    fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.write(path)
    }

    fn summary(&self) -> Vec<SummaryRow> {
        let shared = match &self.shared {
            Some(shared) => shared.describe(),
            None => "of each target its own (--share-kernel has one for all numeric ones)".into(),
        };
        vec![
            SummaryRow::new("targets", self.names().join(", ")),
            SummaryRow::new("kernel and noise", shared),
            SummaryRow::new("seconds", format!("{:.2}", self.seconds())),
        ]
    }

    fn notes(&self) -> Vec<Note> {
        let own = |model: &dyn Model| -> Vec<Note> {
            let target = model.target();
            model.notes().into_iter().map(|note| note.about(target.as_str())).collect()
        };
        self.targets().into_iter().flat_map(own).collect()
    }

    fn tables(&self) -> Vec<String> {
        self.targets().into_iter().flat_map(|model| model.tables()).collect()
    }

    /// What is of all targets, then each as it would be alone.
    fn described(&self) -> String {
        let facts = self.summary().into_iter().map(|row| vec![format!("{}: {}", row.label, row.value)]);
        let facts = table(&facts.collect::<Vec<_>>());
        let each = self.targets().into_iter().map(|model| {
            let heading = format!("Target {}", model.target());
            format!("{heading}\n{}\n{}", "=".repeat(heading.chars().count()), model.described())
        });
        std::iter::once(facts).chain(each).collect::<Vec<_>>().join("\n\n")
    }

    fn report(&self) -> Result<Value, StoreError> {
        let each = self.targets().into_iter().map(|model| {
            let mut own = model.report()?;
            own["target"] = model.target().into();
            Ok(own)
        });
        let each = each.collect::<Result<Vec<Value>, StoreError>>()?;
        Ok(
            json!({ "kind": "targets", "shared_kernel": self.shared, "seconds": self.seconds(), "targets": each }),
        )
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        Ok(Portrait { title: "Gaussian processes", method: "Gaussian processes", ..Portrait::default() })
    }

    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        self.models.iter_mut().flat_map(Model::schemas_mut).collect()
    }

    /// All of them.
    fn target(&self) -> String {
        self.names().join(", ")
    }

    fn check_family(&self, question: &Question) -> Result<(), ModelError> {
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
        let mut each = self.asked(question).into_iter();
        each.try_for_each(|(model, own)| model.check_family(&own).map_err(|e| of_target(e, &model.target())))
    }

    fn check(&self, question: &Question) -> Result<(), ModelError> {
        self.check_family(question)?;
        let mut each = self.asked(question).into_iter();
        each.try_for_each(|(model, own)| model.check(&own).map_err(|e| of_target(e, &model.target())))
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        self.models[0].read(files)
    }

    fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        self.models[0].check_inputs(data, allowed)
    }

    /// Targets are predicted one after the other; the columns of each stay until all are there.
    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
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
    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
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

    fn predictive(&self, _: &ModelData, _: &Question) -> Result<Predictive, ModelError> {
        several("predictive distribution")
    }

    fn baseline(&self, _: &ModelData, _: &Predictive) -> Result<(&'static str, Predictive), ModelError> {
        several("baseline")
    }

    /// Of the first target.
    fn target_scale(&self) -> f64 {
        self.models[0].target_scale()
    }

    fn sample(&self, _: &ModelData, _: &Question) -> Result<NumericArray, ModelError> {
        several("draws")
    }

    fn trained_on(&self, _: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        several("rows of training")
    }

    fn split_seed(&self) -> Result<u64, ModelError> {
        self.models[0].split_seed()
    }

    fn date_order(&self) -> Option<TimeForm> {
        self.models[0].date_order()
    }

    /// Of each target's model; what several say of a column is said once.
    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
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
    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
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

    fn answers_parts(&self, question: &Question) -> bool {
        self.asked(question).into_iter().all(|(model, own)| model.answers_parts(&own))
    }
}
