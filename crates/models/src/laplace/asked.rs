//! A network with error bars as a [`Model`].

use super::{LaplaceModel, LaplacePredictions, Predicted, describe};
use crate::{Answer, Family, Files, Model, ModelData, ModelError, PredictedInto, PredictionPlan, Question};
use posterior_data::stream::StreamOptions;
use posterior_data::{ArrayValues, Column, Departure, InputMoments, NumericArray, ReadOptions};
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::Path;

/// Classes beyond this are written by --top only, unless the output is an array.
const MOST_CLASS_COLUMNS: usize = 1000;

impl Model for LaplaceModel {
    fn family(&self) -> Family {
        Family::Network
    }

    fn save(&self, path: &Path) -> Result<(), StoreError> {
        LaplaceModel::save(self, path)
    }

    fn summary(&self) -> Vec<SummaryRow> {
        describe::summary(self)
    }

    fn notes(&self) -> Vec<Note> {
        describe::notes(self)
    }

    fn described(&self) -> String {
        describe::described(self)
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(describe::report(self)?)
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        let reading = ReadOptions { memory_limit: files.memory };
        LaplaceModel::read(self, files.data, files.labels, files.truth, &reading)
    }

    fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        LaplaceModel::check_inputs(self, data, allowed)
    }

    fn plan(&self, data: &ModelData, question: &Question) -> Result<PredictionPlan, ModelError> {
        // Named columns; what most models have of them.
        let columns =
            self.likelihood().outputs() * 3 + question.quantiles.len() + 2 * question.top.unwrap_or(0);
        let plan = self.plan_prediction(data, question.integration, 1, (columns, question.into));
        let joint = self.joint_bytes(data.len(), question.samples, question.joint);
        let plan = plan.beside(joint.saturating_add(question.beside));
        plan.check(question.memory)?;
        Ok(plan)
    }

    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        let array = question.into == PredictedInto::Array;
        if array && (!question.quantiles.is_empty() || question.top.is_some() || question.latent) {
            let problem = "--quantiles, --top and --latent need named columns: write .csv or .parquet";
            return Err(ModelError::Usage(problem.into()));
        }
        let predictions = LaplaceModel::predict(self, data, question.integration)?;
        let numbers = |shape: Vec<usize>, values| NumericArray::new(shape, ArrayValues::F64(values));
        let mut answer = Answer { count: data.len(), clipped: predictions.clipped, ..Answer::default() };
        if question.samples > 0 {
            let draws = self.function_samples(data, question.samples, question.seed, question.memory)?;
            let shape = vec![question.samples, data.len(), predictions.outputs];
            answer.draws = Some(numbers(shape, draws)?);
        }
        if question.joint {
            let joint = self.joint_covariance(data, question.memory)?;
            let n = joint.nrows();
            let values = (0..n * n).map(|k| joint[(k / n, k % n)]).collect();
            answer.covariance = Some(numbers(vec![n, n], values)?);
        }
        match array {
            true => answer.array = Some(self::array(&predictions, data.len())?),
            false => answer.columns = columns(self, data, &predictions, question)?,
        }
        Ok(answer)
    }

    fn departures(&self, _: &InputMoments) -> Option<Vec<Departure>> {
        None
    }

    fn cut(&self, _: &Path, _: &Question) -> Result<StreamOptions, ModelError> {
        Err(ModelError::Usage("--stream is for Gaussian processes, this model is a network".into()))
    }

    fn answers_parts(&self, _: &Question) -> bool {
        false
    }
}

/// Probabilities `[examples, classes]`, or `[examples, 3, width]` of mean, standard deviation and latent standard deviation.
fn array(predictions: &LaplacePredictions, count: usize) -> Result<NumericArray, ModelError> {
    let width = predictions.width;
    let (shape, values) = match &predictions.predicted {
        Predicted::Classes(p) | Predicted::Events(p) => (vec![count, width], p.clone()),
        Predicted::Moments { mean, variance, latent_variance } => {
            let mut values = Vec::with_capacity(3 * mean.len());
            for i in 0..count {
                let own = i * width..(i + 1) * width;
                values.extend_from_slice(&mean[own.clone()]);
                values.extend(variance[own.clone()].iter().map(|v| v.sqrt()));
                values.extend(latent_variance[own].iter().map(|v| v.sqrt()));
            }
            (vec![count, 3, width], values)
        }
    };
    Ok(NumericArray::new(shape, ArrayValues::F64(values))?)
}

/// The new columns, as long as the table; empty cells where a row has no prediction.
fn columns(
    model: &LaplaceModel,
    data: &ModelData,
    predictions: &LaplacePredictions,
    a: &Question,
) -> Result<Vec<Column>, ModelError> {
    let whole: Vec<usize> = (0..data.len()).collect();
    let places = match &data.table {
        Some((_, rows)) if !data.picked => rows,
        _ => &whole,
    };
    let numeric = |name: String, values: Vec<f64>| data.numeric(name, places, values);
    let text = |name: &str, values: Vec<String>| data.text(name, places, values);
    let width = predictions.width;
    let target = model.header().data.target().map_or_else(|| "y".to_string(), String::from);
    let each = |k: usize, values: &[f64]| values.iter().skip(k).step_by(width).copied().collect::<Vec<_>>();
    let mut out = Vec::new();
    match &predictions.predicted {
        Predicted::Classes(p) => {
            let names = model.header().class_names(width);
            let best = predictions.top(1);
            out.push(text("predicted", best.iter().map(|top| names[top[0].0].clone()).collect()));
            out.push(numeric("max_probability".into(), best.iter().map(|top| top[0].1).collect()));
            out.push(numeric("entropy".into(), predictions.entropies()));
            let deviation =
                |(i, top): (usize, &Vec<(usize, f64)>)| predictions.latent_deviation[i * width + top[0].0];
            out.push(numeric("latent_std".into(), best.iter().enumerate().map(deviation).collect()));
            match a.top {
                Some(0) => return Err(ModelError::Usage("--top must be at least 1".into())),
                Some(count) => {
                    let tops = predictions.top(count.min(width));
                    for k in 0..count.min(width) {
                        let name = |top: &Vec<(usize, f64)>| names[top[k].0].clone();
                        out.push(text(&format!("class_{}", k + 1), tops.iter().map(name).collect()));
                        out.push(numeric(
                            format!("probability_{}", k + 1),
                            tops.iter().map(|top| top[k].1).collect(),
                        ));
                    }
                }
                None if width > MOST_CLASS_COLUMNS => {
                    return Err(ModelError::Usage(format!(
                        "{width} classes make too many columns: choose --top K, or write .npy"
                    )));
                }
                None => {
                    for (k, name) in names.iter().enumerate() {
                        out.push(numeric(format!("p_{name}"), each(k, p)));
                    }
                }
            }
        }
        Predicted::Events(p) => {
            for k in 0..width {
                let suffix = if width > 1 { format!("_{}", k + 1) } else { String::new() };
                out.push(numeric(format!("probability{suffix}"), each(k, p)));
                out.push(numeric(format!("latent_std{suffix}"), each(k, &predictions.latent_deviation)));
            }
            out.push(numeric("entropy".into(), predictions.entropies()));
        }
        Predicted::Moments { mean, variance, latent_variance } => {
            for k in 0..width {
                let name = |what: &str| {
                    if width > 1 { format!("{target}_{}_{what}", k + 1) } else { format!("{target}_{what}") }
                };
                let root = |v: &[f64]| each(k, v).into_iter().map(f64::sqrt).collect::<Vec<_>>();
                out.push(numeric(name("mean"), each(k, mean)));
                out.push(numeric(name("std"), root(variance)));
                out.push(numeric(name("latent_std"), root(latent_variance)));
                for &level in &a.quantiles {
                    let Some(quantiles) = predictions.quantiles(level, !a.latent) else {
                        return Err(ModelError::Usage("--quantiles are for Gaussian noise; the other predictions have means and standard deviations".into()));
                    };
                    out.push(numeric(name(&format!("q{level}")), each(k, &quantiles)));
                }
            }
        }
    }
    let numbers = matches!(predictions.predicted, Predicted::Moments { .. });
    if !numbers && (!a.quantiles.is_empty() || a.latent) {
        return Err(ModelError::Usage(
            "--quantiles and --latent are for numbers, this model predicts probabilities".into(),
        ));
    }
    if a.latent && a.quantiles.is_empty() {
        return Err(ModelError::Usage("--latent says which --quantiles to write: give some".into()));
    }
    if a.top.is_some() && !matches!(predictions.predicted, Predicted::Classes(_)) {
        return Err(ModelError::Usage("--top is for classes".into()));
    }
    Ok(out)
}
