//! A process as a [`Model`].

use super::{Effects, PredictOptions, Predictions, ProcessModel, describe, panel};
use crate::{
    Family, Model, ModelData, ModelError, Portrait, PredictedKind, PredictionPlan, Predictive, Question,
    TrainedOn, Truth,
};
use faer::Mat;
use posterior_data::stream::{StreamOptions, TableParts};
use posterior_data::{
    ArrayValues, DataError, Departure, Feature, InputMoments, NumericArray, Schema, Table, TimeForm,
};
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use posterior_store::json;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The table of data, with the rows that were asked about.
pub(super) fn table(data: &ModelData) -> Result<(&Table, &[usize]), ModelError> {
    let table = data.table.as_ref().map(|(table, rows)| (&**table, &rows[..]));
    table.ok_or_else(|| ModelError::Request("a Gaussian process is asked about the rows of a table".into()))
}

impl ProcessModel {
    /// Predictions of rows of a table: of a part of a large one there may be no row with one, and errors name rows of the file.
    fn predict_part(&self, data: &ModelData, question: &Question) -> Result<Predictions, ModelError> {
        let options =
            PredictOptions { truth: question.truth, variances: question.variances.unwrap_or_default() };
        let (table, rows) = table(data)?;
        if question.leave_one_out {
            return self.leave_one_out(table, rows, question.truth);
        }
        match (data.part, self.predict_with(table, Some(rows), options)) {
            (Some(_), Err(ModelError::Data(DataError::NothingLeft { .. }))) => Ok(Predictions::default()),
            (Some(first), Err(ModelError::Data(error))) => Err(error.in_part(first).into()),
            (_, other) => other,
        }
    }
}

/// Draws `[draws, rows, 1]`.
fn array(draws: Vec<Vec<f64>>) -> Result<NumericArray, ModelError> {
    let shape = vec![draws.len(), draws.first().map_or(0, Vec::len), 1];
    Ok(NumericArray::new(shape, ArrayValues::F64(draws.concat()))?)
}

/// Parts of a table whose rows take so many numbers each while they are predicted.
pub(super) fn cut_of(
    schema: &Schema,
    files: &[PathBuf],
    question: &Question,
    numbers: usize,
) -> Result<StreamOptions, ModelError> {
    let sources: BTreeSet<&str> = schema.features.iter().map(Feature::column).collect();
    let text_columns = schema.text_columns();
    let mut options = StreamOptions { text_columns, text: question.text, ..StreamOptions::default() };
    let most = usize::try_from(question.memory / 8).unwrap_or(usize::MAX);
    options.part_bytes = options.part_bytes.min(most).max(1 << 16);
    options.part_bytes =
        (options.part_bytes * sources.len() / numbers.max(1)).clamp(1 << 16, options.part_bytes);
    // Parquet says which columns are numbers.
    let parquet = |path: &PathBuf| {
        path.extension().is_some_and(|e| ["parquet", "pq"].iter().any(|p| e.eq_ignore_ascii_case(p)))
    };
    if !files.iter().all(parquet)
        && let Some(first) = TableParts::open(files, &options)?.next()
    {
        let numeric = |name: &String| sources.contains(name.as_str()) || schema.noise.as_ref() == Some(name);
        options.text_columns.extend(first?.table.names().into_iter().filter(|name| !numeric(name)));
    }
    Ok(options)
}

/// A model's description for programs, with what its kernel is made of where that is something.
pub(super) fn described(header: Value, parts: Value) -> Value {
    match parts.as_object().is_some_and(serde_json::Map::is_empty) {
        true => json!({ "kind": "model", "header": header }),
        false => json!({ "kind": "model", "header": header, "parts": parts }),
    }
}

impl Model for ProcessModel {
    fn as_model(&self) -> &dyn Model {
        self
    }

    fn family(&self) -> Family {
        Family::Process
    }

    fn predicts(&self) -> PredictedKind {
        PredictedKind::Values
    }

    fn seconds(&self) -> f64 {
        self.header.fit.seconds
    }

    fn save(&self, path: &Path) -> Result<(), StoreError> {
        ProcessModel::save(self, path)
    }

    fn summary(&self) -> Vec<SummaryRow> {
        describe::summary(&self.header)
    }

    fn notes(&self) -> Vec<Note> {
        describe::notes(&self.header)
    }

    fn tables(&self) -> Vec<String> {
        let learned = describe::table_of(describe::hyperparameters(&self.header));
        std::iter::once(learned).chain(self.parts().tables()).collect()
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(described(
            posterior_store::to_shown_value(&self.header)?,
            posterior_store::to_shown_value(&self.parts())?,
        ))
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        let posterior = panel::one_dimensional(self)?;
        let parts = self.parts();
        Ok(Portrait {
            tables: parts.report_tables(),
            warps: parts.curves(),
            maps: self.maps(posterior.as_ref())?,
            title: "A Gaussian process",
            method: "Gaussian process",
            hyperparameters: describe::hyperparameters(&self.header),
            lengthscales: describe::lengthscales(&self.header),
            posterior,
            ..Portrait::default()
        })
    }

    fn plan_portrait(&self, question: &Question) -> Result<Option<PredictionPlan>, ModelError> {
        let plain = Question { samples: 0, ..question.clone() };
        let maps = self.map_places().map(|places| self.plan_of((places, 0), &plain, 0)).transpose()?;
        Ok(PredictionPlan::both(maps, Effects::plan(self, question)?))
    }

    fn effects(&self, data: Option<&ModelData>) -> Result<Option<Effects>, ModelError> {
        let given = match (self.predictor.training(), data) {
            (None, Some(data)) => {
                let (table, rows) = table(data)?;
                Some(self.header.standardisation.features(self.extract(table, rows, false)?.x.as_ref()))
            }
            _ => None,
        };
        Effects::of(self, given.as_ref().map(Mat::as_ref))
    }

    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        vec![&mut self.header.schema]
    }

    fn target(&self) -> String {
        self.header.schema.target.clone()
    }

    fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        self.family().without(&[
            (question.integration.is_some(), "predictive"),
            (!question.joint_points.is_empty(), "joint-kappa"),
        ])?;
        self.check_joint(question)
    }

    fn leaves_one_out(&self) -> bool {
        self.predictor.leave_one_out().is_some()
    }

    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        self.plan_of((data.len(), table(data)?.0.memory()), question, scored)
    }

    fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let Predictions {
            rows,
            mean,
            deviation,
            latent_deviation,
            truth,
            clipped,
            data: found,
            solves,
            intervals,
            inputs,
            mapped,
        } = self.predict_part(data, question)?;
        // Rows are left out, and stay in their order.
        let mut left = rows.into_iter().peekable();
        let own = table(data)?.1.iter().enumerate();
        let examples = own.filter(|(_, row)| left.next_if_eq(*row).is_some()).map(|(example, _)| example);
        let examples = Some(examples.collect());
        let own = Predictive::gaussian(mean, &deviation, latent_deviation, truth.as_deref());
        let own = match mapped {
            Some(mapped) => own.behind(mapped, truth.as_deref()),
            None => own,
        };
        let truth = truth.map(|values| Truth::Values { values, width: 1 });
        let intervals = intervals.map(Some).into_iter().collect();
        Ok(Predictive { examples, truth, clipped, data: found, solves, intervals, inputs, ..own })
    }

    /// Always mean and deviation of the training targets.
    fn baseline(&self, _: &ModelData, own: &Predictive) -> Result<(&'static str, Predictive), ModelError> {
        let (n, standard) = (own.len(), &self.header.standardisation);
        let constant = |value: f64| vec![value; n];
        let truths = match &own.truth {
            Some(Truth::Values { values, .. }) => Some(&values[..]),
            _ => None,
        };
        let (mean, deviation) = standard.target_in_units();
        let (mean, deviation) = (constant(mean), constant(deviation));
        Ok(("always the training mean", Predictive::gaussian(mean, &deviation, constant(0.0), truths)))
    }

    fn target_scale(&self) -> f64 {
        self.header.standardisation.target_in_units().1
    }

    fn funnel_remedy(&self, grow: bool) -> String {
        describe::funnel_remedy(&self.header, grow)
    }

    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let (table, rows) = table(data)?;
        array(self.sample(table, rows, question.samples, question.seed, question.memory)?)
    }

    fn covariance(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        self.joint_covariance(data, question)
    }

    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        if self.training.fingerprints().is_none() {
            return Ok(None);
        }
        let (table, rows) = table(data)?;
        let extracted = self.extract(table, rows, true)?;
        Ok(self.training.among_rows(data, (&extracted, extracted.y.as_deref())))
    }

    fn date_order(&self) -> Option<TimeForm> {
        self.header.schema.date_order
    }

    fn split_seed(&self) -> Result<u64, ModelError> {
        Ok(self.header.seed)
    }

    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        Some(self.header.input_ranges.departures(inputs))
    }

    /// Cells that the model does not look at pass through as text, whatever they look like in which part, and a part's inputs and draws take no more than its cells would.
    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        if !self.answers_parts(question) {
            let problem = if question.joint {
                "--joint is the covariance of all rows, which --stream never has; leave one out"
            } else if question.leave_one_out {
                "--leave-one-out looks at all training rows at once, which --stream never has; leave one out"
            } else {
                "--samples of this model, and --samples-out of any, are drawn jointly for all rows, which --stream never has; leave one out"
            };
            return Err(ModelError::Usage(problem.into()));
        }
        let kept = self.predictor.stored_samples().filter(|_| question.samples > 0);
        let numbers = 3 * self.header.schema.features.len() + 2 * kept.unwrap_or(0);
        cut_of(&self.header.schema, files, question, numbers)
    }

    /// Not where rows are asked about together, all of which must be there, or draws are one array.
    fn answers_parts(&self, question: &Question) -> bool {
        let together = question.joint || question.leave_one_out;
        !together
            && (question.samples == 0 || (self.predictor.stored_samples().is_some() && !question.draws_apart))
    }
}
