//! A process as a [`Model`].

use super::{PredictOptions, Predictions, ProcessModel, describe};
use crate::{Answer, Family, Files, Model, ModelData, ModelError, PredictionPlan, Question};
use posterior_data::stream::{StreamOptions, TableParts};
use posterior_data::{Column, DataError, Departure, Feature, InputMoments, ReadOptions, Table, read_table};
use posterior_report::{FeatureLengthscale, Hyperparameter, Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The table of data, with the rows that were asked about.
fn table(data: &ModelData) -> Result<(&Table, &[usize]), ModelError> {
    let table = data.table.as_ref().map(|(table, rows)| (table, &rows[..]));
    table.ok_or_else(|| ModelError::Request("a Gaussian process is asked about the rows of a table".into()))
}

impl ProcessModel {
    /// Predictions of a part of a table: there may be no row with one, and errors name rows of the file.
    fn predict_part(&self, data: &ModelData, options: PredictOptions) -> Result<Predictions, ModelError> {
        let (table, rows) = table(data)?;
        match (data.part, self.predict_with(table, Some(rows), options)) {
            (Some(_), Err(ModelError::Data(DataError::NothingLeft { .. }))) => Ok(Predictions::default()),
            (Some(first), Err(ModelError::Data(error))) => Err(error.in_part(first).into()),
            (_, other) => other,
        }
    }

    /// What scoring so many rows of a table takes.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`].
    pub fn plan_scores(
        &self,
        table: &Table,
        rows: usize,
        question: &Question,
    ) -> Result<PredictionPlan, ModelError> {
        self.plan_of((rows, table.memory()), question, true)
    }

    /// One row for each number that was learned, in units that people use.
    pub fn hyperparameters(&self) -> Vec<Hyperparameter> {
        describe::hyperparameters(&self.header)
    }

    /// The lengthscale of each feature in its first kernel that has one for each.
    pub fn lengthscales(&self) -> Vec<FeatureLengthscale> {
        describe::lengthscales(&self.header)
    }

    /// Whether draws are joint over rows, all of which must be there.
    fn draws_together(&self, question: &Question) -> bool {
        question.samples > 0 && self.posterior.stored_samples().is_none()
    }
}

impl Model for ProcessModel {
    fn family(&self) -> Family {
        Family::Process
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

    fn described(&self) -> String {
        describe::described(&self.header)
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(json!({ "kind": "model", "header": serde_json::to_value(&self.header)? }))
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        let [path] = files.data else {
            return Err(ModelError::Usage("a Gaussian process takes one table".into()));
        };
        ModelData::of_table(read_table(path, &ReadOptions { memory_limit: files.memory })?)
    }

    fn check_inputs(&self, _: &ModelData, _: bool) -> Result<Vec<String>, ModelError> {
        // Where inputs lie is known once they are extracted: [`Self::departures`].
        Ok(Vec::new())
    }

    fn plan(&self, data: &ModelData, question: &Question) -> Result<PredictionPlan, ModelError> {
        self.plan_of((data.len(), table(data)?.0.memory()), question, false)
    }

    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        let options = PredictOptions { truth: false, variances: question.variances };
        let predictions = self.predict_part(data, options)?;
        let rows = &predictions.rows[..];
        let target = &self.header.schema.target;
        let spread = |name: &str, values: Vec<f64>| data.numeric(format!("{target}_{name}"), rows, values);
        let mut columns: Vec<Column> = vec![
            spread("mean", predictions.mean.clone()),
            spread("std", predictions.deviation.clone()),
            spread("latent_std", predictions.latent_deviation.clone()),
        ];
        for &level in &question.quantiles {
            columns.push(spread(&format!("q{level}"), predictions.quantile(level)));
        }
        if question.samples > 0 && !rows.is_empty() {
            let draws =
                self.sample(table(data)?.0, rows, question.samples, question.seed, question.memory)?;
            let named = draws.into_iter().enumerate();
            columns.extend(named.map(|(k, draw)| spread(&format!("sample_{}", k + 1), draw)));
        }
        Ok(Answer {
            count: rows.len(),
            columns,
            clipped: predictions.clipped,
            filled: predictions.filled_cells,
            solves: predictions.solves,
            inputs: predictions.inputs,
            ..Answer::default()
        })
    }

    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        Some(self.header.input_ranges.as_ref()?.departures(inputs))
    }

    /// Cells that the model does not look at pass through as text, whatever they look like in which part, and a part's inputs and draws take no more than its cells would.
    fn cut(&self, path: &Path, question: &Question) -> Result<StreamOptions, ModelError> {
        if self.draws_together(question) {
            let problem = "--samples of this model are drawn jointly for all rows, which --stream never has; leave one out";
            return Err(ModelError::Usage(problem.into()));
        }
        let schema = &self.header.schema;
        let sources: BTreeSet<&str> = schema.features.iter().map(Feature::column).collect();
        let mut options = StreamOptions { text_columns: schema.text_columns(), ..StreamOptions::default() };
        let kept = self.posterior.stored_samples().filter(|_| question.samples > 0);
        let numbers = 3 * schema.features.len() + 2 * kept.unwrap_or(0);
        let most = usize::try_from(question.memory / 8).unwrap_or(usize::MAX);
        options.part_bytes = options.part_bytes.min(most).max(1 << 16);
        options.part_bytes =
            (options.part_bytes * sources.len() / numbers.max(1)).clamp(1 << 16, options.part_bytes);
        // Parquet says which columns are numbers.
        let parquet =
            path.extension().is_some_and(|e| ["parquet", "pq"].iter().any(|p| e.eq_ignore_ascii_case(p)));
        if !parquet && let Some(first) = TableParts::open(path, &options)?.next() {
            let numeric =
                |name: &String| sources.contains(name.as_str()) || schema.noise.as_ref() == Some(name);
            options.text_columns.extend(first?.table.names().into_iter().filter(|name| !numeric(name)));
        }
        Ok(options)
    }

    fn answers_parts(&self, question: &Question) -> bool {
        !self.draws_together(question)
    }
}
