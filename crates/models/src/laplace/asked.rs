//! A network with error bars as a [`Model`].

use super::predict::kind;
use super::{InputKind, LaplaceModel, describe};
use crate::network::Preparation;
use crate::rows::prints_of_examples;
use crate::{
    Family, Files, JointRow, Model, ModelData, ModelError, Portrait, PredictedKind, PredictedSets,
    PredictionPlan, Predictive, Question, TrainedOn,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{ArrayValues, Departure, InputMoments, NumericArray, Schema};
use posterior_likelihoods::OutputLikelihood;
use posterior_metrics::LabelSets;
use posterior_networks::Graph;
use posterior_notes::fixes::{SAMPLES, SAMPLES_OUT};
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

impl Model for LaplaceModel {
    fn as_model(&self) -> &dyn Model {
        self
    }

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

    fn tables(&self) -> Vec<String> {
        describe::tables(self)
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(describe::report(self)?)
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        Ok(Portrait {
            title: "A network with error bars",
            method: match &self.header.summary.learned {
                Some(_) => self.header.options.approximation.name(),
                None => "linearised Laplace",
            },
            evidence: describe::evidence(&self.header),
            ..Portrait::default()
        })
    }

    fn graph(&self) -> Option<&Graph> {
        Some(LaplaceModel::graph(self))
    }

    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        self.header.data.schema_mut().into_iter().collect()
    }

    fn target(&self) -> String {
        self.header.data.target().unwrap_or("y").to_string()
    }

    fn output_names(&self) -> Vec<String> {
        let further = match &self.header.data.inputs {
            InputKind::Prepared { preparation: Preparation::Columns { schema, .. } } => {
                &schema.further_targets[..]
            }
            _ => &[],
        };
        match (self.likelihood().target_width(), further) {
            (1, _) => vec![self.target()],
            (width, []) => (1..=width).map(|k| format!("{}_{k}", self.target())).collect(),
            _ => std::iter::once(self.target()).chain(further.iter().cloned()).collect(),
        }
    }

    fn output_shape(&self) -> Vec<usize> {
        self.predicted_shape()
    }

    fn class_names(&self) -> Vec<String> {
        match self.likelihood() {
            OutputLikelihood::Categorical(c) => self.header.class_names(c.classes()),
            _ => Vec::new(),
        }
    }

    fn sets(&self) -> Option<&LabelSets> {
        self.calibration.sets()
    }

    fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        self.family().without(&[(question.variances.is_some(), "variances")])?;
        if (question.samples > 0) != question.draws_apart {
            let problem = format!(
                "networks write function draws to a file of their own: give {SAMPLES} N and {SAMPLES_OUT}"
            );
            return Err(ModelError::Usage(problem));
        }
        Ok(())
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        self.read_files(files)
    }

    fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        LaplaceModel::check_inputs(self, data, allowed)
    }

    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        // With and without error bars where they are scored; else named columns, what most models have of them.
        let (times, columns) = match scored {
            0 => (
                1,
                self.likelihood().outputs() * 3 + question.quantiles.len() + 2 * question.top.unwrap_or(0),
            ),
            models => (2 * models, 0),
        };
        let plan = self.plan_prediction(data, question.integration, times, (columns, question.into));
        let joint = self.joint_bytes(data.len(), question.samples, question.joint);
        let size = (data.len() as u64, self.likelihood().outputs() as u64);
        let sets = PredictedSets::bytes(size, self.calibration.sets(), (question, scored));
        let mut plan = plan.beside(joint.saturating_add(question.beside).saturating_add(sets));
        plan.samples = question.samples;
        plan.check(question.memory)?;
        Ok(plan)
    }

    fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let truth = match (&data.truth, question.truth) {
            (None, true) => return Err(no_truths(data)),
            (truth, wanted) => truth.clone().filter(|_| wanted),
        };
        let own = self.predict_with_sets(data, question.integration, &question.sets)?;
        Ok(Predictive { truth, ..own })
    }

    /// The network alone: its outputs taken at their word, with the best constant noise on the training data.
    fn baseline(&self, data: &ModelData, _: &Predictive) -> Result<(&'static str, Predictive), ModelError> {
        Ok(("plain network", self.predict_plain(data)?))
    }

    fn target_scale(&self) -> f64 {
        self.header.data.target_scale().1
    }

    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let draws = self.function_samples(data, question.samples, question.seed, question.memory)?;
        let shape = [&[question.samples, data.len()], self.graph().output_shape()].concat();
        Ok(NumericArray::new(shape, ArrayValues::F64(draws))?)
    }

    fn covariance(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let joint = self.joint_covariance(data, question.memory)?;
        let n = joint.nrows();
        let values = (0..n * n).map(|k| joint[(k / n, k % n)]).collect();
        Ok(NumericArray::new(vec![n, n], ArrayValues::F64(values))?)
    }

    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        let (Some(_), Some(truth)) = (self.training.fingerprints(), &data.truth) else { return Ok(None) };
        let own = prints_of_examples(&data.inputs, |i| truth.of(i));
        Ok(self.training.among(own.into_iter().enumerate()))
    }

    fn joint_scores(&self, data: &ModelData, question: &Question) -> Result<Vec<JointRow>, ModelError> {
        super::joint::scores(self, data, question)
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

/// Scores were asked for, and there is nothing to score against.
pub(crate) fn no_truths(data: &ModelData) -> ModelError {
    ModelError::Request(format!("{}: there are no truths to score against", data.name))
}
