//! What a process answers in its own way: the rest of [`Model`](crate::Model) is the same for all.

use super::joint::no_joint;
use super::model_report::{ModelReport, network_remedy};
use crate::{
    Effects, Family, Latent, LikelihoodOutput, ModelData, ModelError, Output, Predicted, PredictedKind,
    PredictionPlan, Predictions, Predictive, Process, Question, Target, TrainedOn, Truth, Want, describe,
    effects,
};
use faer::{Mat, MatRef};
use posterior_data::stream::StreamOptions;
use posterior_data::{ArrayValues, DataError, Extracted, NumericArray, Table};
use posterior_linalg::random::Streams;
use posterior_notes::fixes::{INSPECT, SAMPLES_OUT};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::PathBuf;

/// The table of data, with the rows that were asked about.
pub(crate) fn table(data: &ModelData) -> Result<(&Table, &[usize]), ModelError> {
    let table = data.table.as_ref().map(|(table, rows)| (&**table, &rows[..]));
    table.ok_or_else(|| ModelError::Request("a Gaussian process is asked about the rows of a table".into()))
}

impl Process<'_> {
    /// The rows of a table as the model takes them; of a part of a large one there may be none, and errors name rows of the file.
    fn asked(&self, data: &ModelData, truth: bool) -> Result<Option<Extracted>, ModelError> {
        let (table, rows) = table(data)?;
        let found = match (data.part, self.extract(table, rows, truth)) {
            (Some(_), Err(ModelError::Data(DataError::NothingLeft { .. }))) => return Ok(None),
            (Some(first), Err(ModelError::Data(error))) => return Err(error.in_part(first).into()),
            (_, other) => other?,
        };
        if let Some(target) = self.output.target() {
            target.check_places(&self.inputs.schema, (table, data.part.unwrap_or(0)), &found)?;
        }
        Ok(Some(found))
    }

    /// What is added to the latent values of rows before the likelihood sees them.
    pub(crate) fn offsets(&self, extracted: &Extracted) -> Option<Vec<f64>> {
        self.output.target()?.offsets(extracted.exposures.as_deref())
    }

    /// `count` joint draws of all functions at standardised inputs: a matrix m x count for each.
    pub(crate) fn drawn(
        &self,
        x: MatRef<'_, f64>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>, ModelError> {
        let streams = Streams::new(seed);
        let stream = |c: usize| match &self.output {
            Output::Gaussian(_) => streams.stream("model/samples"),
            Output::Likelihood(_) => streams.child("model/samples", c as u64).stream("draws"),
        };
        self.predictor.samples(x, count, &stream)
    }

    /// Numbers with Gaussian noise.
    fn predictive_numbers(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        let (table, rows) = table(data)?;
        let found = match question.leave_one_out {
            true => self.leave_one_out(table, rows, question.truth)?,
            false => match self.asked(data, question.truth)? {
                Some(extracted) => self.predictions(&extracted, question.variances.unwrap_or_default())?,
                None => Predictions::default(),
            },
        };
        // Rows are left out, and stay in their order.
        let mut left = found.rows.into_iter().peekable();
        let own = rows.iter().enumerate();
        let examples = own.filter(|(_, row)| left.next_if_eq(*row).is_some()).map(|(example, _)| example);
        let examples = Some(examples.collect());
        let (truth, deviation) = (found.truth, &found.deviation);
        let own = Predictive::gaussian(found.mean, deviation, found.latent_deviation, truth.as_deref());
        let own = match found.mapped {
            Some(mapped) => own.behind(mapped, truth.as_deref()),
            None => own,
        };
        Ok(Predictive {
            examples,
            truth: truth.map(|values| Truth::Values { values, width: 1 }),
            clipped: found.clipped,
            data: found.data,
            solves: found.solves,
            intervals: found.intervals.map(Some).into_iter().collect(),
            inputs: found.inputs,
            ..own
        })
    }

    /// All else.
    fn predictive_observations(
        &self,
        output: &LikelihoodOutput,
        data: &ModelData,
        question: &Question,
    ) -> Result<Predictive, ModelError> {
        if question.truth && matches!(output.target, Target::Events { .. }) {
            return Err(ModelError::Request(format!(
                "a Cox process predicts an intensity, which no row of a table tells: the events that its fit held back (--held-back) say how good it is, see `{INSPECT:#}`"
            )));
        }
        let extracted = self.asked(data, question.truth)?;
        let latents = match &extracted {
            Some(extracted) => {
                let x = self.inputs.standard(extracted);
                let latents = self.predictor.latent(x.as_ref().into(), &Want::default())?;
                latents.with_offsets(self.offsets(extracted).as_deref())
            }
            None => Latent::new(Vec::new(), Vec::new(), output.likelihood.outputs()),
        };
        let truths = extracted.as_ref().and_then(|own| own.y.as_deref());
        let mut own = output.predictive(&latents, truths, question.integration)?;
        if let Some(known) = self.calibration.under(question.integration, None) {
            known.apply(&question.sets, &mut own);
        }
        if let (None, Some(truths), Predicted::Classes(p)) = (&own.log_density, truths, &own.predicted) {
            let density = |(row, label): (&[f64], &f64)| row[*label as usize].ln();
            own.log_density = Some(p.chunks_exact(own.width).zip(truths).map(density).collect());
        }
        let Some(extracted) = extracted else { return Ok(own) };
        let examples = Some(data.examples_of(&extracted.rows));
        let truth = extracted.y.as_deref().map(|targets| output.truth(targets));
        let inputs = self.inputs.input_ranges.moments(extracted.x.as_ref());
        Ok(Predictive { examples, truth, data: extracted.notes, inputs, ..own })
    }
}

impl Process<'_> {
    pub(crate) fn tables(&self) -> Vec<String> {
        let learned = describe::table_of(describe::hyperparameters(self));
        std::iter::once(learned).chain(self.parts().tables()).collect()
    }

    pub(crate) fn report(&self) -> Result<Value, StoreError> {
        describe::report(self)
    }

    pub(crate) fn model_report(&self) -> Result<ModelReport, ModelError> {
        let posterior = effects::one_dimensional(self)?;
        let parts = self.parts();
        Ok(ModelReport {
            tables: parts.report_tables(),
            warps: parts.curves(),
            maps: self.maps(posterior.as_ref())?,
            title: self.output.title(),
            method: "Gaussian process",
            hyperparameters: describe::hyperparameters(self),
            lengthscales: describe::lengthscales(self),
            posterior,
            ..ModelReport::default()
        })
    }

    pub(crate) fn plan_model_report(
        &self,
        question: &Question,
    ) -> Result<Option<PredictionPlan>, ModelError> {
        let plain = Question { samples: 0, ..question.clone() };
        let maps = self.map_places().map(|places| self.plan_of((places, 0), &plain, 0)).transpose()?;
        Ok(PredictionPlan::both(maps, Effects::plan(self, question)?))
    }

    pub(crate) fn effects(&self, data: Option<&ModelData>) -> Result<Option<Effects>, ModelError> {
        let given = match (self.predictor.training_inputs(), data) {
            (None, Some(data)) => self.asked(data, false)?.map(|found| self.inputs.standard(&found)),
            _ => None,
        };
        Effects::of(self, given.as_ref().map(Mat::as_ref))
    }

    pub(crate) fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        let gaussian = self.output.gaussian().is_some();
        if question.joint && !gaussian {
            return Err(no_joint());
        }
        Family::Process.without(&[
            (gaussian && question.integration.is_some(), "predictive"),
            (!gaussian && question.variances.is_some(), "variances"),
            (!question.joint_points.is_empty(), "joint-kappa"),
        ])?;
        let classes = self.output.predicts() == PredictedKind::Classes;
        if classes && question.samples > 0 && !question.draws_apart {
            let problem = format!("draws of latent functions of classes are an array: give {SAMPLES_OUT}");
            return Err(ModelError::Usage(problem));
        }
        self.check_joint(question)
    }

    pub(crate) fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        self.plan_of((data.len(), table(data)?.0.memory()), question, scored)
    }

    pub(crate) fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        match &self.output {
            Output::Gaussian(_) => self.predictive_numbers(data, question),
            Output::Likelihood(output) => self.predictive_observations(output, data, question),
        }
    }

    /// Always the distribution of the training targets: under Gaussian noise their mean and deviation.
    pub(crate) fn baseline(
        &self,
        data: &ModelData,
        own: &Predictive,
    ) -> Result<(&'static str, Predictive), ModelError> {
        match &self.output {
            Output::Gaussian(output) => Ok(("always the training mean", output.baseline(self.inputs, own))),
            Output::Likelihood(output) => {
                let truth = own.truth.is_some();
                let found = match truth || self.inputs.schema.exposure.is_some() {
                    true => self.asked(data, truth)?,
                    false => None,
                };
                let offsets = found.as_ref().and_then(|found| self.offsets(found));
                let truths = found.as_ref().and_then(|found| found.y.as_deref());
                Ok(output.baseline(own.len(), truths, offsets.as_deref()))
            }
        }
    }

    pub(crate) fn funnel_remedy(&self, grow: bool) -> String {
        match (&self.output, self.record.fit.gaussian()) {
            (Output::Gaussian(own), Some(fit)) => describe::funnel_remedy(self.inputs, own, fit, grow),
            _ => network_remedy(),
        }
    }

    /// Of latent functions: numbers in their own units, log-odds, logarithms of rates (for each unit of exposure) and of intensities.
    pub(crate) fn draws_of(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let (count, outputs) = (question.samples, self.output.functions());
        self.check_stored(count)?;
        let found = self.asked(data, false)?;
        let draws = match &found {
            Some(extracted) => self.drawn_in_units(extracted, (count, question.seed), question.memory)?,
            None => Vec::new(),
        };
        let rows = found.map_or(0, |extracted| extracted.rows.len());
        let mut values = vec![0.0; count * rows * outputs];
        for (c, draws) in draws.iter().enumerate() {
            for s in 0..count {
                for i in 0..rows {
                    values[(s * rows + i) * outputs + c] = draws[(i, s)];
                }
            }
        }
        Ok(NumericArray::new(vec![count, rows, outputs], ArrayValues::F64(values))?)
    }

    pub(crate) fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        if self.training.fingerprints().is_none() {
            return Ok(None);
        }
        Ok(match self.asked(data, true)? {
            Some(extracted) => self.training.among_rows(data, (&extracted, extracted.y.as_deref())),
            None => Some(TrainedOn::default()),
        })
    }

    pub(crate) fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        let gaussian = self.output.gaussian().is_some();
        if !self.answers_parts(question) {
            let problem = if !gaussian {
                "--samples are drawn jointly for all rows, which --stream never has; leave one out"
            } else if question.joint {
                "--joint is the covariance of all rows, which --stream never has; leave one out"
            } else if question.leave_one_out {
                "--leave-one-out looks at all training rows at once, which --stream never has; leave one out"
            } else {
                "--samples of this model, and --samples-out of any, are drawn jointly for all rows, which --stream never has; leave one out"
            };
            return Err(ModelError::Usage(problem.into()));
        }
        let kept = self.predictor.stored_samples().filter(|_| question.samples > 0);
        let numbers = 3 * self.inputs.schema.features.len() + 2 * kept.unwrap_or(0);
        self.inputs.cut(files, question, numbers)
    }

    /// Not where rows are asked about together, all of which must be there, or draws are one array.
    pub(crate) fn answers_parts(&self, question: &Question) -> bool {
        let together = question.joint || question.leave_one_out;
        let kept = self.output.gaussian().is_some() && self.predictor.stored_samples().is_some();
        !together && (question.samples == 0 || (kept && !question.draws_apart))
    }
}
