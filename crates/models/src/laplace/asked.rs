//! A network with error bars as a [`Model`].

use super::predict::{is_gaussian, kind};
use super::seen::{fingerprints, with_truths};
use super::{LaplaceModel, describe};
use crate::{
    Answer, Comparison, Family, Files, JointRow, Model, ModelData, ModelError, Portrait, Predicted,
    PredictedInto, PredictedKind, PredictionPlan, Predictive, Question, TrainedOn,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{ArrayValues, Column, Departure, InputMoments, NumericArray, ReadOptions};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Graph;
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Classes beyond this are written by --top only, unless the output is an array.
const MOST_CLASS_COLUMNS: usize = 1000;

impl Model for LaplaceModel {
    fn family(&self) -> Family {
        Family::Network
    }

    fn predicts(&self) -> PredictedKind {
        kind(self.likelihood())
    }

    fn seconds(&self) -> f64 {
        self.header.seconds
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

    fn portrait(&self) -> Result<Portrait, ModelError> {
        let classes = match self.likelihood() {
            OutputLikelihood::Categorical(c) => c.classes(),
            _ => 0,
        };
        Ok(Portrait {
            title: "A network with error bars",
            method: "linearised Laplace",
            target: self.target(),
            class_names: self.header.class_names(classes),
            evidence: describe::evidence(&self.header),
            ..Portrait::default()
        })
    }

    fn graph(&self) -> Option<&Graph> {
        Some(LaplaceModel::graph(self))
    }

    fn check(&self, question: &Question) -> Result<(), ModelError> {
        self.family().without(&[(question.variances.is_some(), "variances")])?;
        let Question { top, latent, .. } = *question;
        let (quantiles, predicts) = (!question.quantiles.is_empty(), self.predicts());
        let values = predicts == PredictedKind::Values;
        let classes = match self.likelihood() {
            OutputLikelihood::Categorical(c) => c.classes(),
            _ => 0,
        };
        let array = question.into == PredictedInto::Array;
        let refuse = |problem: String| Err(ModelError::Usage(problem));
        if (question.samples > 0) != question.draws_apart {
            return refuse("networks write function draws to a file of their own: give --samples N and --samples-out FILE.npy".into());
        }
        if array && (quantiles || top.is_some() || latent) {
            return refuse(
                "--quantiles, --top and --latent need named columns: write .csv or .parquet".into(),
            );
        }
        if top == Some(0) {
            return refuse("--top must be at least 1".into());
        }
        if top.is_some() && classes == 0 {
            return refuse("--top is for classes".into());
        }
        if !values && (quantiles || latent) {
            return refuse(
                "--quantiles and --latent are for numbers, this model predicts probabilities".into(),
            );
        }
        if latent && !quantiles {
            return refuse("--latent says which --quantiles to write: give some".into());
        }
        if quantiles && !is_gaussian(self.likelihood()) {
            return refuse("--quantiles are for Gaussian noise; the other predictions have means and standard deviations".into());
        }
        if !array && top.is_none() && classes > MOST_CLASS_COLUMNS {
            return refuse(format!("{classes} classes make too many columns: choose --top K, or write .npy"));
        }
        Ok(())
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
        self.check(question)?;
        let array = question.into == PredictedInto::Array;
        let predictions = LaplaceModel::predict(self, data, question.integration)?;
        let mut answer = Answer { count: data.len(), clipped: predictions.clipped, ..Answer::default() };
        if question.samples > 0 {
            answer.draws = Some(self.sample(data, question)?);
        }
        if question.joint {
            let joint = self.joint_covariance(data, question.memory)?;
            let n = joint.nrows();
            let values = (0..n * n).map(|k| joint[(k / n, k % n)]).collect();
            answer.covariance = Some(NumericArray::new(vec![n, n], ArrayValues::F64(values))?);
        }
        match array {
            true => answer.array = Some(self::array(&predictions, data.len())?),
            false => answer.columns = columns(self, data, &predictions, question),
        }
        Ok(answer)
    }

    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let draws = self.function_samples(data, question.samples, question.seed, question.memory)?;
        let outputs = draws.len() / (question.samples * data.len()).max(1);
        let shape = vec![question.samples, data.len(), outputs];
        Ok(NumericArray::new(shape, ArrayValues::F64(draws))?)
    }

    /// The competitor is the network alone: its outputs taken at their word, with the best constant noise on the training data.
    fn comparison(&self, data: &ModelData, question: &Question) -> Result<Comparison, ModelError> {
        if question.truth && data.truth.is_none() {
            return Err(no_truths(data));
        }
        Ok(Comparison {
            model: LaplaceModel::predict(self, data, question.integration)?,
            baseline: self.predict_plain(data)?,
            baseline_name: "plain network",
            truth: data.truth.clone().filter(|_| question.truth),
            scale: self.header.data.target_scale().1,
            solves: None,
            inputs: InputMoments::default(),
        })
    }

    fn plan_scores(
        &self,
        data: &ModelData,
        models: usize,
        question: &Question,
    ) -> Result<PredictionPlan, ModelError> {
        let nothing = (0, PredictedInto::Columns);
        let plan = self.plan_prediction(data, question.integration, 2 * models, nothing);
        plan.check(question.memory)?;
        Ok(plan)
    }

    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        let (Some(known), Some(truth)) = (&self.fingerprints, &data.truth) else { return Ok(None) };
        let own = with_truths(fingerprints(&data.inputs), |i| truth.of(i));
        Ok(Some(TrainedOn::new(own.into_iter().map(|f| known.contains(f)).enumerate())))
    }

    fn joint_scores(
        &self,
        data: &ModelData,
        points: &[usize],
        question: &Question,
    ) -> Result<Vec<JointRow>, ModelError> {
        super::joint::scores(self, data, points, question)
    }

    fn departures(&self, _: &InputMoments) -> Option<Vec<Departure>> {
        None
    }

    fn cut(&self, _: &[PathBuf], _: &Question) -> Result<StreamOptions, ModelError> {
        Err(ModelError::NotTaken { flag: "stream", family: self.family() })
    }

    fn answers_parts(&self, _: &Question) -> bool {
        false
    }
}

/// Probabilities `[examples, classes]`, or `[examples, 3, width]` of mean, standard deviation and latent standard deviation.
fn array(predictions: &Predictive, count: usize) -> Result<NumericArray, ModelError> {
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
fn columns(model: &LaplaceModel, data: &ModelData, predictions: &Predictive, a: &Question) -> Vec<Column> {
    let whole: Vec<usize> = (0..data.len()).collect();
    let places = match &data.table {
        Some((_, rows)) if !data.picked => rows,
        _ => &whole,
    };
    let numeric = |name: String, values: Vec<f64>| data.numeric(name, places, values);
    let text = |name: &str, values: Vec<String>| data.text(name, places, values);
    let width = predictions.width;
    let target = model.target();
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
                    let quantiles = predictions.quantiles(level, !a.latent).unwrap_or_default();
                    out.push(numeric(name(&format!("q{level}")), each(k, &quantiles)));
                }
            }
        }
    }
    out
}

/// Scores were asked for, and there is nothing to score against.
pub(super) fn no_truths(data: &ModelData) -> ModelError {
    ModelError::Request(format!("{}: there are no truths to score against", data.name))
}
