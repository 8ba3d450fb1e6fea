//! A process as a [`Model`].

use super::{PredictOptions, Predictions, ProcessModel, describe, panel};
use crate::{
    Answer, Comparison, Family, Files, Model, ModelData, ModelError, Portrait, PredictedInto, PredictedKind,
    PredictionPlan, Predictive, Question, TrainedOn, Truth,
};
use posterior_data::stream::{StreamOptions, TableParts};
use posterior_data::{
    ArrayValues, Column, DataError, Departure, Feature, InputMoments, NumericArray, ReadOptions, Table,
    read_table, table_fingerprints,
};
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The one table that a process is asked about.
fn one(files: &[PathBuf]) -> Result<&Path, ModelError> {
    match files {
        [path] => Ok(path),
        _ => Err(ModelError::Usage("a Gaussian process takes one table".into())),
    }
}

/// The table of data, with the rows that were asked about.
fn table(data: &ModelData) -> Result<(&Table, &[usize]), ModelError> {
    let table = data.table.as_ref().map(|(table, rows)| (&**table, &rows[..]));
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
}

/// Draws `[draws, rows, 1]`.
fn array(draws: Vec<Vec<f64>>) -> Result<NumericArray, ModelError> {
    let shape = vec![draws.len(), draws.first().map_or(0, Vec::len), 1];
    Ok(NumericArray::new(shape, ArrayValues::F64(draws.concat()))?)
}

impl Model for ProcessModel {
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

    fn described(&self) -> String {
        describe::described(&self.header)
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(json!({ "kind": "model", "header": serde_json::to_value(&self.header)? }))
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        Ok(Portrait {
            title: "A Gaussian process",
            method: "Gaussian process",
            target: self.header.schema.target.clone(),
            hyperparameters: describe::hyperparameters(&self.header),
            lengthscales: describe::lengthscales(&self.header),
            posterior: panel::one_dimensional(self)?,
            ..Portrait::default()
        })
    }

    fn check(&self, question: &Question) -> Result<(), ModelError> {
        self.family().without(&[
            (question.latent, "latent"),
            (question.top.is_some(), "top"),
            (question.joint, "joint"),
            (question.integration.is_some(), "predictive"),
        ])?;
        if question.into == PredictedInto::Array {
            let problem = "a Gaussian process writes columns of a table: name a .csv or .parquet file";
            return Err(ModelError::Usage(problem.into()));
        }
        Ok(())
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        self.family().without(&[(!files.labels.is_empty(), "labels")])?;
        ModelData::of_table(read_table(one(files.data)?, &ReadOptions { memory_limit: files.memory })?)
    }

    fn check_inputs(&self, _: &ModelData, _: bool) -> Result<Vec<String>, ModelError> {
        // Where inputs lie is known once they are extracted: [`Self::departures`].
        Ok(Vec::new())
    }

    fn plan(&self, data: &ModelData, question: &Question) -> Result<PredictionPlan, ModelError> {
        self.plan_of((data.len(), table(data)?.0.memory()), question, 0)
    }

    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        self.check(question)?;
        let options = PredictOptions { truth: false, variances: question.variances.unwrap_or_default() };
        let predictions = self.predict_part(data, options)?;
        let (rows, places) = (&predictions.rows[..], data.places(&predictions.rows));
        let target = &self.header.schema.target;
        let spread = |name: &str, values: Vec<f64>| data.numeric(format!("{target}_{name}"), &places, values);
        let mut columns: Vec<Column> = vec![
            spread("mean", predictions.mean.clone()),
            spread("std", predictions.deviation.clone()),
            spread("latent_std", predictions.latent_deviation.clone()),
        ];
        for &level in &question.quantiles {
            columns.push(spread(&format!("q{level}"), predictions.quantile(level)));
        }
        let mut apart = None;
        if question.samples > 0 && !rows.is_empty() {
            let draws =
                self.sample(table(data)?.0, rows, question.samples, question.seed, question.memory)?;
            if question.draws_apart {
                apart = Some(array(draws)?);
            } else {
                let named = draws.into_iter().enumerate();
                columns.extend(named.map(|(k, draw)| spread(&format!("sample_{}", k + 1), draw)));
            }
        }
        Ok(Answer {
            count: rows.len(),
            columns,
            draws: apart,
            clipped: predictions.clipped,
            filled: predictions.filled_cells,
            solves: predictions.solves,
            inputs: predictions.inputs,
            ..Answer::default()
        })
    }

    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let (table, rows) = table(data)?;
        array(self.sample(table, rows, question.samples, question.seed, question.memory)?)
    }

    /// The competitor always predicts mean and deviation of the training targets.
    fn comparison(&self, data: &ModelData, question: &Question) -> Result<Comparison, ModelError> {
        let (table, rows) = table(data)?;
        let options =
            PredictOptions { truth: question.truth, variances: question.variances.unwrap_or_default() };
        let Predictions { mean, deviation, latent_deviation, truth, clipped, solves, inputs, .. } =
            self.predict_with(table, Some(rows), options)?;
        let (n, standard, truths) = (mean.len(), &self.header.standardisation, truth.as_deref());
        let constant = |value: f64| vec![value; n];
        Ok(Comparison {
            model: Predictive { clipped, ..Predictive::gaussian(mean, &deviation, latent_deviation, truths) },
            baseline: Predictive::gaussian(
                constant(standard.target_mean),
                &constant(standard.target_scale),
                constant(0.0),
                truths,
            ),
            baseline_name: "always the training mean",
            truth: truth.map(|values| Truth::Values { values, width: 1 }),
            scale: standard.target_scale,
            solves,
            inputs,
        })
    }

    fn plan_scores(
        &self,
        data: &ModelData,
        models: usize,
        question: &Question,
    ) -> Result<PredictionPlan, ModelError> {
        self.plan_of((data.len(), table(data)?.0.memory()), question, models)
    }

    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        let Some(known) = self.fingerprints() else { return Ok(None) };
        let (table, rows) = table(data)?;
        let extracted = self.extract(table, rows, true)?;
        let fingerprints =
            table_fingerprints(extracted.x.as_ref(), extracted.y.as_deref().unwrap_or_default());
        let seen = fingerprints.into_iter().map(|f| known.contains(f));
        Ok(Some(TrainedOn::new(data.examples_of(&extracted.rows).into_iter().zip(seen))))
    }

    fn split_seed(&self) -> Result<u64, ModelError> {
        Ok(self.header.seed)
    }

    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        Some(self.header.input_ranges.as_ref()?.departures(inputs))
    }

    /// Cells that the model does not look at pass through as text, whatever they look like in which part, and a part's inputs and draws take no more than its cells would.
    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        let path = one(files)?;
        if !self.answers_parts(question) {
            let problem = "--samples of this model, and --samples-out of any, are drawn for all rows together, which --stream never has; leave one out";
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

    /// Not where draws are joint over rows, all of which must be there, or are one array.
    fn answers_parts(&self, question: &Question) -> bool {
        question.samples == 0 || (self.posterior.stored_samples().is_some() && !question.draws_apart)
    }
}
