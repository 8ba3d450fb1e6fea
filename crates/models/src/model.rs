//! **What every model can be asked**, whatever its family.

use crate::answer::check;
use crate::rows::no_leave_one_out;
use crate::text::table;
use crate::{
    Answer, Comparison, Effects, Evaluation, Family, JointRow, ModelData, ModelError, PredictedKind,
    PredictionPlan, Predictive, Question, SET_LEVELS, TrainedOn,
};
use posterior_data::stream::StreamOptions;
use posterior_data::{Departure, InputMoments, NumericArray, ReadOptions, Schema, TimeForm, read_tables};
use posterior_metrics::LabelSets;
use posterior_networks::Graph;
use posterior_notes::fixes::LOSS_GAUSSIAN;
use posterior_report::{
    Curves, FeatureLengthscale, Hyperparameter, Note, Plane, PosteriorPanel, SummaryRow, Table,
};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Files to ask a model about.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Files of one table; for networks also arrays, images or features, several of which are put together (but one table).
    pub data: &'a [PathBuf],
    /// Which inputs of a network these are, one by one; empty where they are put together.
    pub inputs: &'a [String],
    /// Truths of data that hold none.
    pub labels: &'a [PathBuf],
    /// Whether truths are wanted.
    pub truth: bool,
    /// Bytes that a file may take, and how texts are read.
    pub reading: ReadOptions,
}

/// What a report shows of a model beside its scores; what a family lacks is empty.
#[derive(Clone, Debug, Default)]
pub struct Portrait {
    /// What it is, as the beginning of a title.
    pub title: &'static str,
    /// Its method, in short.
    pub method: &'static str,
    /// What was learned, in units that people use.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The lengthscale of each feature.
    pub lengthscales: Vec<FeatureLengthscale>,
    /// The posterior over a grid, for models of one numeric input.
    pub posterior: Option<PosteriorPanel>,
    /// Maps: of the prior's covariance for one numeric input, of predictions and covariances for two.
    pub maps: Vec<Plane>,
    /// Scores along hyperparameters.
    pub evidence: Vec<Curves>,
    /// What a kernel is made of, as tables.
    pub tables: Vec<Table>,
    /// Curves that columns go through.
    pub warps: Vec<Curves>,
    /// What columns do ([`Model::effects`]); for who has rows to fill in.
    pub effects: Option<Effects>,
}

/// What can be done about errors that grow with the prediction, where the family has no way of its own.
pub(crate) fn network_remedy() -> String {
    format!(
        "a network with a second output for the logarithm of the noise (`{LOSS_GAUSSIAN:#}`) learns how far each place scatters"
    )
}

/// A fitted model of any family. What is required is what only the family knows; refusals ([`Self::check`]), answers ([`Self::predict`]), scores ([`Self::evaluate`]) and descriptions
/// follow from it, the same for all.
pub trait Model: Send + Sync {
    /// Itself, as what any model can be asked: answers are compiled for this once, and not for each family.
    fn as_model(&self) -> &dyn Model;

    /// Its family.
    fn family(&self) -> Family;

    /// What it predicts.
    fn predicts(&self) -> PredictedKind;

    /// Seconds that its fit took.
    fn seconds(&self) -> f64;

    /// Writes its file in one step.
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    fn save(&self, path: &Path) -> Result<(), StoreError>;

    /// The facts about it, in order.
    fn summary(&self) -> Vec<SummaryRow>;

    /// Everything that was added, chosen, dropped or is odd.
    fn notes(&self) -> Vec<Note>;

    /// What was learned and compared, as tables for people.
    fn tables(&self) -> Vec<String>;

    /// Facts, tables and notes for people.
    fn described(&self) -> String {
        let facts = self.summary().into_iter().map(|row| vec![format!("{}: {}", row.label, row.value)]);
        let notes: Vec<String> = self.notes().into_iter().map(|n| format!("note: {}", n.text())).collect();
        let notes = (!notes.is_empty()).then(|| notes.join("\n"));
        let parts = std::iter::once(table(&facts.collect::<Vec<_>>())).chain(self.tables()).chain(notes);
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// The same for programs.
    ///
    /// # Errors
    /// When JSON cannot hold it.
    fn report(&self) -> Result<Value, StoreError>;

    /// What a report shows of it.
    ///
    /// # Errors
    /// When the posterior over a grid cannot be computed.
    fn portrait(&self) -> Result<Portrait, ModelError>;

    /// What its columns do to its predictions: at rows that it was trained on where it keeps them, else at those of the data. None where the family does not say, or there are rows of neither.
    ///
    /// # Errors
    /// When data and model do not fit.
    fn effects(&self, _data: Option<&ModelData>) -> Result<Option<Effects>, ModelError> {
        Ok(None)
    }

    /// What [`Self::portrait`] and [`Self::effects`] take beside the model where that is worth saying: maps of a model of two inputs are predictions at places of their own.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    fn plan_portrait(&self, _: &Question) -> Result<Option<PredictionPlan>, ModelError> {
        Ok(None)
    }

    /// The structure of its network, if it is one.
    fn graph(&self) -> Option<&Graph> {
        None
    }

    /// What reads its table, where it reads one: of an ensemble one for each member.
    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        Vec::new()
    }

    /// Name of the target.
    fn target(&self) -> String;

    /// Names of the numbers that are predicted of a row, in order: one of most models, several of networks with several outputs.
    fn output_names(&self) -> Vec<String> {
        vec![self.target()]
    }

    /// The shape of these numbers: that of an image, where images are predicted.
    fn output_shape(&self) -> Vec<usize> {
        vec![self.output_names().len()]
    }

    /// The models of its targets in order, where it has several: what is scored or shown of one of them is asked of that one.
    fn targets(&self) -> Vec<&dyn Model> {
        Vec::new()
    }

    /// Names of the classes; none where no classes are predicted.
    fn class_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// What sets of classes go by; None of models without classes, and of those that no rows tell it.
    fn sets(&self) -> Option<&LabelSets> {
        None
    }

    /// Refuses what its family has no answer to.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`], or [`ModelError::Usage`] with the way out.
    fn check_family(&self, question: &Question) -> Result<(), ModelError>;

    /// Whether rows that it has learned from can each be predicted from the others.
    fn leaves_one_out(&self) -> bool {
        false
    }

    /// Refuses a question that it has no answer to, before anything is read.
    ///
    /// # Errors
    /// As [`Self::check_family`]; [`ModelError::Usage`] for what does not go together.
    fn check(&self, question: &Question) -> Result<(), ModelError> {
        self.check_family(question)?;
        if question.leave_one_out && !self.leaves_one_out() {
            return Err(no_leave_one_out());
        }
        check(question, (self.predicts(), self.sets().is_some()), self.class_names().len())
    }

    /// Reads files of the kind that it learned from: tables by default.
    ///
    /// # Errors
    /// When a file cannot be read or does not fit.
    fn read(&self, files: &Files<'_>) -> Result<ModelData, ModelError> {
        self.family().without(&[(!files.labels.is_empty(), "labels")])?;
        ModelData::of_table(read_tables(files.data, &files.reading)?)
    }

    /// Remarks on data beside those of the fit; refuses numbers of another kind unless these are `allowed`. Where the inputs of a table lie is known once they are extracted ([`Self::departures`]).
    ///
    /// # Errors
    /// [`ModelError::Request`].
    fn check_inputs(&self, _data: &ModelData, _allowed: bool) -> Result<Vec<String>, ModelError> {
        Ok(Vec::new())
    }

    /// What predicting takes, the data included; or, where it is not 0, what scoring `scored` models of this kind takes.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`] for more than is allowed.
    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError>;

    /// Predictive distributions of all examples that can be predicted, with truths and their densities where the question wants them.
    ///
    /// # Errors
    /// When data and model do not fit, or there are no truths.
    fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError>;

    /// The same by a simple competitor that scores are judged by, with its name; `own` are the model's.
    ///
    /// # Errors
    /// When data and model do not fit.
    fn baseline(&self, data: &ModelData, own: &Predictive) -> Result<(&'static str, Predictive), ModelError>;

    /// Standard deviation of the target in training.
    fn target_scale(&self) -> f64;

    /// What can be done about errors that grow with the prediction, or shrink.
    fn funnel_remedy(&self, _grow: bool) -> String {
        network_remedy()
    }

    /// Joint draws of the noiseless function at all examples that have a prediction, `[draws, examples, outputs]`, regression in the target's units; as many as the question's `samples`, by
    /// its seed, in its memory.
    ///
    /// # Errors
    /// When they need more memory, or data and model do not fit.
    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError>;

    /// The covariance of all outputs of all examples, without noise, in the question's memory; regression in the target's units.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`] where the family has none; when it needs more memory, or data and model do not fit.
    fn covariance(&self, _data: &ModelData, _question: &Question) -> Result<NumericArray, ModelError> {
        Err(ModelError::NotTaken { flag: "joint", family: self.family() })
    }

    /// Answers.
    ///
    /// # Errors
    /// When data and model do not fit, or the question has no answer.
    fn predict(&self, data: &ModelData, question: &Question) -> Result<Answer, ModelError> {
        Answer::of(self.as_model(), data, question)
    }

    /// Predictive distributions beside those of the competitor.
    ///
    /// # Errors
    /// As [`Self::predictive`].
    fn comparison(&self, data: &ModelData, question: &Question) -> Result<Comparison, ModelError> {
        let model = self.predictive(data, question)?;
        let (baseline_name, baseline) = self.baseline(data, &model)?;
        let class_names = self.class_names();
        Ok(Comparison { model, baseline, baseline_name, scale: self.target_scale(), class_names })
    }

    /// Scores on examples with truths, beside those of the competitor; sets of classes too, at the usual levels where the question names none.
    ///
    /// # Errors
    /// As [`Self::comparison`]; also when truths and predictions are of different kinds.
    fn evaluate(&self, data: &ModelData, question: &Question) -> Result<Evaluation, ModelError> {
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
    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError>;

    /// The seed by which rows of its table were left out of the fit.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where fits of the family leave out none.
    fn split_seed(&self) -> Result<u64, ModelError> {
        Err(ModelError::Usage(
            "--folds and --test-fraction are for Gaussian processes: give the rows to score as a file of their own".into(),
        ))
    }

    /// How dates such as 3/4/2021 were meant at the fit, where that was said.
    fn date_order(&self) -> Option<TimeForm> {
        None
    }

    /// The stratum of each row of a table, where rows were left out of the fit by strata: each class gives its share.
    ///
    /// # Errors
    /// When the table has no target, or a label that the model does not know.
    fn strata(&self, _table: &posterior_data::Table) -> Result<Option<Vec<usize>>, ModelError> {
        Ok(None)
    }

    /// Log-likelihoods of sets of the question's `joint_points`, by as many functions drawn from the posterior as its `samples`, beside those of the competitor.
    ///
    /// # Errors
    /// [`ModelError::NotTaken`] where the family has none; when the data hold no truths, draws need more memory, or there are fewer examples than points in a set.
    fn joint_scores(&self, _data: &ModelData, _question: &Question) -> Result<Vec<JointRow>, ModelError> {
        Err(ModelError::NotTaken { flag: "joint-kappa", family: self.family() })
    }

    /// Inputs that are unlike those of training: in other units, or far outside. None where that is not known or said otherwise ([`Self::check_inputs`]).
    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>>;

    /// How a large table is read part by part for a question.
    ///
    /// # Errors
    /// [`ModelError::Usage`] where predictions need all rows together, [`ModelError::NotTaken`] where the family reads no parts.
    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError>;

    /// Whether a question can be answered part by part.
    fn answers_parts(&self, question: &Question) -> bool;
}
