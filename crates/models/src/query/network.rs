//! What networks answer in their own way: the rest of [`Model`](crate::Model) is the same for all.

use super::model_report::ModelReport;
use super::network_joint::{no_truths, scores};
use crate::describe::{self, ensemble, network};
use crate::model::Networks;
use crate::rows::prints_of_examples;
use crate::{
    Facts, Family, JointRow, ModelData, ModelError, PredictionPlan, Predictive, Question, TrainedOn,
};
use posterior_data::{ArrayValues, NumericArray};
use posterior_notes::fixes::{CALIBRATED_FOLDER, SAMPLES, SAMPLES_OUT};
use posterior_report::Note;
use posterior_store::StoreError;
use serde_json::Value;

impl Networks<'_> {
    pub(crate) fn seconds(&self) -> f64 {
        self.members().iter().map(|member| member.record.seconds).sum()
    }

    pub(crate) fn facts(&self) -> Facts {
        if self.is_ensemble() { ensemble::facts(self) } else { network::facts(self) }
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        if self.is_ensemble() { ensemble::notes(self) } else { network::notes(self) }
    }

    pub(crate) fn tables(&self) -> Vec<String> {
        if self.is_ensemble() { ensemble::tables(self) } else { network::tables(self) }
    }

    pub(crate) fn report(&self) -> Result<Value, StoreError> {
        if self.is_ensemble() { ensemble::report(self) } else { network::report(self) }
    }

    pub(crate) fn model_report(&self) -> ModelReport {
        if self.is_ensemble() {
            let method = if self.is_plain() { "deep ensemble" } else { "ensemble of linearised Laplace" };
            return ModelReport { title: "An ensemble of networks", method, ..ModelReport::default() };
        }
        ModelReport {
            title: "A network with error bars",
            method: match &self.record.summary.learned {
                Some(_) => self.record.options.approximation.name(),
                None => "linearised Laplace",
            },
            evidence: describe::evidence(self.record),
            ..ModelReport::default()
        }
    }

    pub(crate) fn output_names(&self) -> Vec<String> {
        self.output.names.clone()
    }

    pub(crate) fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        let refuse = |problem: &str| Err(ModelError::Usage(problem.into()));
        if self.is_plain() && question.integration.is_some() {
            return refuse(
                "an ensemble of plain networks has no error bars to average over: leave --predictive out",
            );
        }
        if self.is_ensemble() && !question.quantiles.is_empty() && !self.calibration.has_intervals() {
            let problem = format!(
                "--quantiles are for Gaussian predictions, and those of an ensemble are mixtures: they have means and standard deviations, and intervals by the rows of a fit with {CALIBRATED_FOLDER}"
            );
            return refuse(&problem);
        }
        Family::Network.without(&[(question.variances.is_some(), "variances")])?;
        if (question.samples > 0) != question.draws_apart {
            let problem = format!(
                "networks write function draws to a file of their own: give {SAMPLES} N and {SAMPLES_OUT}"
            );
            return refuse(&problem);
        }
        Ok(())
    }

    /// Members of an ensemble predict one after the other; what each predicts is kept until all have.
    pub(crate) fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let members = self.members();
        let plans = members.iter().map(|member| member.plan_alone(data, question, scored));
        let together = plans.reduce(|plan, next| PredictionPlan {
            // The data are there once.
            peak_bytes: plan
                .peak_bytes
                .max(plan.kept_bytes.saturating_add(next.peak_bytes - next.data_bytes)),
            kept_bytes: plan.kept_bytes.saturating_add(next.kept_bytes - next.data_bytes),
            flops: plan.flops + next.flops,
            seconds: plan.seconds.zip(next.seconds).map(|(a, b)| a + b),
            ..plan
        });
        let mut plan = together.ok_or_else(|| no_truths(data))?;
        if scored > 0 && self.is_ensemble() && !self.calibration.factors().is_empty() {
            // Densities are at targets that the means have moved.
            plan.flops *= 2.0;
            plan.seconds = plan.seconds.map(|seconds| 2.0 * seconds);
        }
        plan.check(question.memory)?;
        Ok(plan)
    }

    pub(crate) fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let truth = match (&data.truth, question.truth) {
            (None, true) => return Err(no_truths(data)),
            (truth, wanted) => truth.clone().filter(|_| wanted),
        };
        let own = self.predict_with_sets(data, question.integration, &question.sets)?;
        Ok(Predictive { truth, ..own })
    }

    /// The (first) network alone: its outputs taken at their word, with the best constant noise on the training data.
    pub(crate) fn baseline(&self, data: &ModelData) -> Result<(&'static str, Predictive), ModelError> {
        let name = if self.is_ensemble() { "first plain network" } else { "plain network" };
        Ok((name, self.first().predict_plain(data)?))
    }

    pub(crate) fn draws(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let draws = self.function_samples(data, question.samples, question.seed, question.memory)?;
        let outputs = match self.is_ensemble() {
            true => vec![self.output.outputs()],
            false => self.output.shape.clone(),
        };
        let shape = [vec![question.samples, data.len()], outputs].concat();
        Ok(NumericArray::new(shape, ArrayValues::F64(draws))?)
    }

    pub(crate) fn covariance(
        &self,
        data: &ModelData,
        question: &Question,
    ) -> Result<NumericArray, ModelError> {
        let joint = self.joint_covariance(data, question.memory)?;
        let n = joint.nrows();
        let values = (0..n * n).map(|k| joint[(k / n, k % n)]).collect();
        Ok(NumericArray::new(vec![n, n], ArrayValues::F64(values))?)
    }

    /// Examples that any network of an ensemble has learned from count as seen; nothing is known where one does not say.
    pub(crate) fn trained_on(&self, data: &ModelData) -> Option<TrainedOn> {
        let members = self.members();
        let known = members.iter().map(|member| member.training.fingerprints());
        let (Some(known), Some(truth)) = (known.collect::<Option<Vec<_>>>(), &data.truth) else {
            return None;
        };
        let own = prints_of_examples(&data.inputs, |i| truth.of(i));
        Some(TrainedOn::of(&known, own.into_iter().enumerate()))
    }

    pub(crate) fn joint_scores(
        &self,
        data: &ModelData,
        question: &Question,
    ) -> Result<Vec<JointRow>, ModelError> {
        scores(self, data, question)
    }
}
