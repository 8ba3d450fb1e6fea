//! What a model answers: what processes and networks do alike is here, the rest in `process` and `network`.

use super::answer::{Answer, check};
use super::model_report::{ModelReport, network_remedy};
use crate::model::{NetworkSource, Networks, Source};
use crate::rows::no_leave_one_out;
use crate::{
    Comparison, Effects, Evaluation, Facts, Family, Files, JointRow, Model, ModelData, ModelError,
    PredictedKind, PredictionPlan, Predictive, Process, Question, SET_LEVELS, TableSource, TrainedOn,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{
    Departure, InputMoments, NumericArray, ReadOptions, Schema, Table, TimeForm, read_tables,
};
use posterior_metrics::LabelSets;
use posterior_networks::Graph;
use posterior_optim::Reason;
use posterior_report::Note;
use posterior_store::StoreError;
use serde_json::Value;
use std::path::PathBuf;

/// The parts of a model by what it was learned from.
pub(crate) enum Parts<'a> {
    /// A process.
    Table(Process<'a>),
    /// Networks.
    Network(Networks<'a>),
}

impl Model {
    pub(crate) fn view(&self) -> Parts<'_> {
        let Self { source, predictor, calibration, training } = self;
        match source {
            Source::Table(own) => {
                let TableSource { inputs, output, record } = &**own;
                Parts::Table(Process { inputs, predictor, output, calibration, training, record })
            }
            Source::Network(own) => {
                let NetworkSource { inputs, output, record, ensemble } = &**own;
                let ensemble = ensemble.as_ref();
                Parts::Network(Networks {
                    inputs,
                    predictor,
                    output,
                    calibration,
                    training,
                    record,
                    ensemble,
                })
            }
        }
    }

    /// Its parts as a process on a table; None of networks.
    pub fn process(&self) -> Option<Process<'_>> {
        match self.view() {
            Parts::Table(own) => Some(own),
            Parts::Network(_) => None,
        }
    }

    /// Its parts as a network or an ensemble of them; None of processes.
    pub fn networks(&self) -> Option<Networks<'_>> {
        match self.view() {
            Parts::Table(_) => None,
            Parts::Network(own) => Some(own),
        }
    }

    /// Its family.
    pub fn family(&self) -> Family {
        match self.view() {
            Parts::Table(_) => Family::Process,
            Parts::Network(_) => Family::Network,
        }
    }

    /// What it predicts.
    pub fn predicts(&self) -> PredictedKind {
        match self.view() {
            Parts::Table(own) => own.output.predicts(),
            Parts::Network(own) => own.output.kind(),
        }
    }

    /// Seconds that its fit took.
    pub fn seconds(&self) -> f64 {
        match self.view() {
            Parts::Table(own) => own.record.fit.seconds(),
            Parts::Network(own) => own.seconds(),
        }
    }

    /// The facts about it, in order.
    pub fn facts(&self) -> Facts {
        match self.view() {
            Parts::Table(own) => own.facts(),
            Parts::Network(own) => own.facts(),
        }
    }

    /// Everything that was added, chosen, dropped or is odd.
    pub fn notes(&self) -> Vec<Note> {
        match self.view() {
            Parts::Table(own) => own.notes(),
            Parts::Network(own) => own.notes(),
        }
    }

    /// What was learned and compared, as tables for people.
    pub fn tables(&self) -> Vec<String> {
        match self.view() {
            Parts::Table(own) => own.tables(),
            Parts::Network(own) => own.tables(),
        }
    }

    /// Facts, tables and notes for people.
    pub fn described(&self) -> String {
        let notes: Vec<String> = self.notes().into_iter().map(|n| format!("note: {}", n.text())).collect();
        let notes = (!notes.is_empty()).then(|| notes.join("\n"));
        let parts = std::iter::once(self.facts().text()).chain(self.tables()).chain(notes);
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// The same for programs.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    pub fn report(&self) -> Result<Value, StoreError> {
        match self.view() {
            Parts::Table(own) => own.report(),
            Parts::Network(own) => own.report(),
        }
    }

    /// What a report shows of it.
    ///
    /// # Errors
    /// When the posterior over a grid cannot be computed.
    pub fn model_report(&self) -> Result<ModelReport, ModelError> {
        match self.view() {
            Parts::Table(own) => own.model_report(),
            Parts::Network(own) => Ok(own.model_report()),
        }
    }

    /// What its columns do to its predictions: at rows that it was trained on where it keeps them, else at those of the data. None where the family does not say, or there are rows of neither.
    ///
    /// # Errors
    /// When data and model do not fit.
    pub fn effects(&self, data: Option<&ModelData>) -> Result<Option<Effects>, ModelError> {
        match self.view() {
            Parts::Table(own) => own.effects(data),
            Parts::Network(_) => Ok(None),
        }
    }

    /// What [`Self::model_report`] and [`Self::effects`] take beside the model where that is worth saying: maps of a model of two inputs are predictions at places of their own.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    pub fn plan_model_report(&self, question: &Question) -> Result<Option<PredictionPlan>, ModelError> {
        match self.view() {
            Parts::Table(own) => own.plan_model_report(question),
            Parts::Network(_) => Ok(None),
        }
    }

    /// The structure of its network, if it is one.
    pub fn graph(&self) -> Option<&Graph> {
        self.networks()?.graph()
    }

    /// What reads its table, where it reads one: of an ensemble one for all members.
    pub fn schema_mut(&mut self) -> Option<&mut Schema> {
        match &mut self.source {
            Source::Table(own) => Some(&mut own.inputs.schema),
            Source::Network(own) => own.inputs.kind.schema_mut(),
        }
    }

    /// Name of the target.
    pub fn target(&self) -> String {
        match self.view() {
            Parts::Table(own) => own.inputs.schema.target.clone(),
            Parts::Network(own) => own.output.target.clone(),
        }
    }

    /// Names of the numbers that are predicted of a row, in order: one of most models, several of networks with several outputs.
    pub fn output_names(&self) -> Vec<String> {
        match self.view() {
            Parts::Table(own) => vec![own.inputs.schema.target.clone()],
            Parts::Network(own) => own.output.names.clone(),
        }
    }

    /// The shape of these numbers: that of an image, where images are predicted.
    pub fn output_shape(&self) -> Vec<usize> {
        match self.view() {
            Parts::Table(_) => vec![1],
            Parts::Network(own) => own.output.predicted_shape(),
        }
    }

    /// Names of the classes; none where no classes are predicted.
    pub fn class_names(&self) -> Vec<String> {
        match self.view() {
            Parts::Table(own) => own.output.class_names(),
            Parts::Network(own) => own.output.classes.clone(),
        }
    }

    /// What sets of classes go by; None of models without classes, and of those that no rows tell it.
    pub fn sets(&self) -> Option<&LabelSets> {
        self.calibration.sets()
    }

    /// Refuses what its family has no answer to.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`], or [`ModelError::Usage`] with the way out.
    pub(crate) fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        match self.view() {
            Parts::Table(own) => own.check_family(question),
            Parts::Network(own) => own.check_family(question),
        }
    }

    /// Refuses a question that it has no answer to, before anything is read.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`], or [`ModelError::Usage`] with the way out and for what does not go together.
    pub fn check(&self, question: &Question) -> Result<(), ModelError> {
        self.check_family(question)?;
        if question.leave_one_out && self.predictor.leave_one_out().is_none() {
            return Err(no_leave_one_out());
        }
        check(question, (self.predicts(), self.sets().is_some()), self.class_names().len())
    }

    /// Reads files of the kind that it learned from.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit.
    pub fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        match self.view() {
            Parts::Table(own) => {
                self.family().without(&[(!files.labels.is_empty(), "labels")])?;
                let text = own.inputs.schema.reading(files.reading.text);
                ModelData::of_table(read_tables(files.data, &ReadOptions { text, ..files.reading })?)
            }
            Parts::Network(own) => own.read_files(files),
        }
    }

    /// Remarks on data beside those of the fit; refuses numbers of another kind unless these are `allowed`. Where the inputs of a table lie is known once they are extracted ([`Self::departures`]).
    ///
    /// # Errors
    /// [`ModelError::Request`].
    pub fn check_inputs(&self, data: &ModelData, allowed: bool) -> Result<Vec<String>, ModelError> {
        match self.view() {
            Parts::Table(_) => Ok(Vec::new()),
            Parts::Network(own) => own.check_inputs(data, allowed),
        }
    }

    /// What predicting takes, the data included; or, where it is not 0, what scoring `scored` models of this kind takes.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    pub fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        match self.view() {
            Parts::Table(own) => own.plan(data, question, scored),
            Parts::Network(own) => own.plan(data, question, scored),
        }
    }

    /// Predictive distributions of all examples that can be predicted, with truths and their densities where the question wants them.
    ///
    /// # Errors
    /// When data and model do not fit, or there are no truths.
    pub fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        match self.view() {
            Parts::Table(own) => own.predictive(data, question),
            Parts::Network(own) => own.predictive(data, question),
        }
    }

    /// The same by a simple competitor that scores are judged by, with its name; `own` are the model's.
    ///
    /// # Errors
    /// When data and model do not fit.
    pub fn baseline(
        &self,
        data: &ModelData,
        own: &Predictive,
    ) -> Result<(&'static str, Predictive), ModelError> {
        match self.view() {
            Parts::Table(process) => process.baseline(data, own),
            Parts::Network(networks) => networks.baseline(data),
        }
    }

    /// Standard deviation of the target in training.
    pub fn target_scale(&self) -> f64 {
        match self.view() {
            Parts::Table(own) => own.output.target_scale(own.inputs),
            Parts::Network(own) => own.output.units.1,
        }
    }

    /// What can be done about errors that grow with the prediction, or shrink.
    pub fn funnel_remedy(&self, grow: bool) -> String {
        match self.view() {
            Parts::Table(own) => own.funnel_remedy(grow),
            Parts::Network(_) => network_remedy(),
        }
    }

    /// Joint draws of the noiseless function at all examples that have a prediction, `[draws, examples, outputs]`, regression in the target's units; as many as the question's `samples`, by
    /// its seed, in its memory. Of processes of other likelihoods they are of latent functions: numbers in their own units, log-odds, logarithms of rates (for each unit of exposure) and of intensities.
    ///
    /// # Errors
    /// When they need more memory, or data and model do not fit.
    pub fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        match self.view() {
            Parts::Table(own) => own.draws_of(data, question),
            Parts::Network(own) => own.draws(data, question),
        }
    }

    /// The covariance of all outputs of all examples, without noise, in the question's memory; regression in the target's units.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where the model has none; when it needs more memory, or data and model do not fit.
    pub fn covariance(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        match self.view() {
            Parts::Table(own) => own.joint_covariance(data, question),
            Parts::Network(own) => own.covariance(data, question),
        }
    }

    /// Answers.
    ///
    /// # Errors
    /// When data and model do not fit, or the question has no answer.
    pub fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        Answer::of(self, data, question)
    }

    /// Predictive distributions beside those of the competitor.
    ///
    /// # Errors
    /// As [`Self::predictive`].
    pub fn comparison(&self, data: &ModelData, question: &Question) -> Result<Comparison, ModelError> {
        let model = self.predictive(data, question)?;
        let (baseline_name, baseline) = self.baseline(data, &model)?;
        let class_names = self.class_names();
        Ok(Comparison { model, baseline, baseline_name, scale: self.target_scale(), class_names })
    }

    /// Scores on examples with truths, beside those of the competitor; sets of classes too, at the usual levels where the question names none.
    ///
    /// # Errors
    /// As [`Self::comparison`]; also when truths and predictions are of different kinds.
    pub fn evaluate(&self, data: &ModelData, question: &Question) -> Result<Evaluation, ModelError> {
        let mut question = Question { truth: true, ..question.clone() };
        if self.sets().is_some() && question.integration.is_none() && question.sets.is_empty() {
            question.sets = SET_LEVELS.to_vec();
        }
        self.comparison(data, &question)?.scored()
    }

    /// Which examples with truths it has learned from, by their numbers; None where the data hold no truths, or where the model does not say what it learned from.
    ///
    /// # Errors
    /// When data and model do not fit.
    pub fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        match self.view() {
            Parts::Table(own) => own.trained_on(data),
            Parts::Network(own) => Ok(own.trained_on(data)),
        }
    }

    /// The seed by which rows of its table were left out of the fit.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where fits of the family leave out none.
    pub fn split_seed(&self) -> Result<u64, ModelError> {
        match self.view() {
            Parts::Table(own) => Ok(own.record.seed),
            Parts::Network(_) => Err(ModelError::Usage(
                "--folds and --test-fraction are for Gaussian processes: give the rows to score as a file of their own".into(),
            )),
        }
    }

    /// How dates such as 3/4/2021 were meant at the fit, where that was said.
    pub fn date_order(&self) -> Option<TimeForm> {
        self.process()?.inputs.schema.date_order
    }

    /// The stratum of each row of a table, where rows were left out of the fit by strata: each class gives its share.
    ///
    /// # Errors
    /// When the table has no target, or a label that the model does not know.
    pub fn strata(&self, table: &Table) -> Result<Option<Vec<usize>>, ModelError> {
        match self.view() {
            Parts::Table(own) => Ok(own.output.strata(table, &own.inputs.schema.target)?),
            Parts::Network(_) => Ok(None),
        }
    }

    /// Log-likelihoods of sets of the question's `joint_points`, by as many functions drawn from the posterior as its `samples`, beside those of the competitor.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`] where the family has none; when the data hold no truths, draws need more memory, or there are fewer examples than points in a set.
    pub fn joint_scores(&self, data: &ModelData, question: &Question) -> Result<Vec<JointRow>, ModelError> {
        match self.view() {
            Parts::Table(_) => Err(ModelError::NotTaken { flag: "joint-kappa", family: self.family() }),
            Parts::Network(own) => own.joint_scores(data, question),
        }
    }

    /// Inputs that are unlike those of training: in other units, or far outside. None where that is not known or said otherwise ([`Self::check_inputs`]).
    pub fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        Some(self.process()?.inputs.input_ranges.departures(inputs))
    }

    /// How a large table is read part by part for a question.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where predictions need all rows together, [`ModelError::NotTaken`] where the family reads no parts.
    pub fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        match self.view() {
            Parts::Table(own) => own.cut(files, question),
            Parts::Network(_) => Err(ModelError::NotTaken { flag: "stream", family: self.family() }),
        }
    }

    /// Whether a question can be answered part by part.
    pub fn answers_parts(&self, question: &Question) -> bool {
        self.process().is_some_and(|own| own.answers_parts(question))
    }

    /// Whether the search for hyperparameters was ended by its observer.
    pub fn was_interrupted(&self) -> bool {
        let process = self.process();
        let fit = process.as_ref().and_then(|own| own.record.fit.gaussian());
        fit.is_some_and(|fit| fit.reason == Reason::Interrupted)
    }
}
