//! An ensemble as a [`Model`].

use super::{EnsembleModel, describe};
use crate::laplace::{LaplaceModel, no_truths};
use crate::{
    Family, Files, JointRow, Model, ModelData, ModelError, Portrait, PredictedKind, PredictionPlan,
    Predictive, Question, TrainedOn,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{ArrayValues, Departure, InputMoments, NumericArray, Schema};
use posterior_metrics::LabelSets;
use posterior_networks::Graph;
use posterior_notes::fixes::CALIBRATED_FOLDER;
use posterior_report::{Note, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

impl Model for EnsembleModel {
    fn as_model(&self) -> &dyn Model {
        self
    }

    /// That of its members, which takes the same files and questions.
    fn family(&self) -> Family {
        self.first().family()
    }

    fn predicts(&self) -> PredictedKind {
        self.first().predicts()
    }

    fn seconds(&self) -> f64 {
        self.members.iter().map(Model::seconds).sum()
    }

    fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.write(path)
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
        describe::report(self)
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        let method = if self.plain { "deep ensemble" } else { "ensemble of linearised Laplace" };
        Ok(Portrait { title: "An ensemble of networks", method, ..Portrait::default() })
    }

    fn graph(&self) -> Option<&Graph> {
        Some(LaplaceModel::graph(self.first()))
    }

    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        self.members.iter_mut().flat_map(Model::schemas_mut).collect()
    }

    fn target(&self) -> String {
        self.first().target()
    }

    fn output_names(&self) -> Vec<String> {
        self.first().output_names()
    }

    fn output_shape(&self) -> Vec<usize> {
        self.first().output_shape()
    }

    fn class_names(&self) -> Vec<String> {
        self.first().class_names()
    }

    fn sets(&self) -> Option<&LabelSets> {
        self.calibration.sets()
    }

    fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        if self.plain && question.integration.is_some() {
            let problem =
                "an ensemble of plain networks has no error bars to average over: leave --predictive out";
            return Err(ModelError::Usage(problem.into()));
        }
        if !question.quantiles.is_empty() && !self.calibration.has_intervals() {
            let problem = format!(
                "--quantiles are for Gaussian predictions, and those of an ensemble are mixtures: they have means and standard deviations, and intervals by the rows of a fit with {CALIBRATED_FOLDER}"
            );
            return Err(ModelError::Usage(problem));
        }
        self.first().check_family(question)
    }

    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        Model::read(self.first(), files)
    }

    fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        let mut all: Vec<String> = Vec::new();
        for member in &self.members {
            for note in Model::check_inputs(member, data, allowed)? {
                if !all.contains(&note) {
                    all.push(note);
                }
            }
        }
        Ok(all)
    }

    /// Members predict one after the other; what each predicts is kept until all have.
    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let alone = Question { memory: u64::MAX, ..question.clone() };
        let mut members = self.members.iter().map(|m| m.plan(data, &alone, scored));
        let mut plan = members.next().transpose()?.ok_or_else(|| no_truths(data))?;
        for next in members {
            let next = next?;
            // The data are there once.
            let kept = plan.kept_bytes.saturating_add(next.kept_bytes - next.data_bytes);
            plan.peak_bytes =
                plan.peak_bytes.max(plan.kept_bytes.saturating_add(next.peak_bytes - next.data_bytes));
            plan.kept_bytes = kept;
            plan.flops += next.flops;
            plan.seconds = plan.seconds.zip(next.seconds).map(|(a, b)| a + b);
        }
        if scored > 0 && !self.calibration.factors().is_empty() {
            // Densities are at targets that the means have moved.
            plan.flops *= 2.0;
            plan.seconds = plan.seconds.map(|seconds| 2.0 * seconds);
        }
        plan.check(question.memory)?;
        Ok(plan)
    }

    fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let truth = match (&data.truth, question.truth) {
            (None, true) => return Err(no_truths(data)),
            (truth, wanted) => truth.clone().filter(|_| wanted),
        };
        Ok(Predictive { truth, ..self.as_recalibrated(data, question)? })
    }

    /// The first network alone.
    fn baseline(&self, data: &ModelData, _: &Predictive) -> Result<(&'static str, Predictive), ModelError> {
        Ok(("first plain network", self.first().predict_plain(data)?))
    }

    fn target_scale(&self) -> f64 {
        self.first().target_scale()
    }

    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let draws = self.draws(data, question)?;
        let outputs = draws.len() / (question.samples * data.len()).max(1);
        let shape = vec![question.samples, data.len(), outputs];
        Ok(NumericArray::new(shape, ArrayValues::F64(draws))?)
    }

    fn covariance(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let values = self.joint_covariance(data, question.memory)?;
        let n = values.len().isqrt();
        Ok(NumericArray::new(vec![n, n], ArrayValues::F64(values))?)
    }

    /// Examples that any member has learned from count as seen; nothing is known where one member does not say.
    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        let mut seen = vec![false; data.len()];
        for member in &self.members {
            let Some(own) = member.trained_on(data)? else { return Ok(None) };
            own.seen.iter().for_each(|&i| seen[i] = true);
        }
        Ok(Some(TrainedOn::new(seen.into_iter().enumerate())))
    }

    fn joint_scores(&self, data: &ModelData, question: &Question) -> Result<Vec<JointRow>, ModelError> {
        self.joint(data, question)
    }

    fn departures(&self, _: &InputMoments) -> Option<Vec<Departure>> {
        None
    }

    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        self.first().cut(files, question)
    }

    fn answers_parts(&self, question: &Question) -> bool {
        self.first().answers_parts(question)
    }
}
