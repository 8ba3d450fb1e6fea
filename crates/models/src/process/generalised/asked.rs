//! A process under any likelihood as a [`Model`].

use super::events;
use super::header::baseline;
use super::observations::Observing;
use super::observed::Rows;
use super::target::strata;
use super::{GeneralisedModel, Target, describe};
use crate::latent::Latent;
use crate::predictor::{Cost, bytes_of};
use crate::process::Effects;
use crate::process::asked::{cut_of, described, table};
use crate::process::describe::table_of;
use crate::process::joint::NO_JOINT;
use crate::{
    Family, Model, ModelData, ModelError, Portrait, Predicted, PredictedKind, PredictedSets, PredictionPlan,
    Predictive, Question, TrainedOn, Truth, VarianceMethod,
};
use faer::{Mat, MatRef};
use posterior_data::stream::StreamOptions;
use posterior_data::{
    ArrayValues, Column, DataError, Departure, Extracted, InputMoments, NumericArray, Schema, Table, TimeForm,
};
use posterior_linalg::random::Streams;
use posterior_metrics::LabelSets;
use posterior_report::{Note, PosteriorPanel, SummaryRow};
use posterior_store::StoreError;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Points of the grid of an intensity that is drawn, and functions beside its mean.
const GRID: usize = 300;
const SAMPLES: usize = 6;

/// Rows that are predicted, with what came true where that was wanted.
struct Asked {
    extracted: Extracted,
    truths: Option<Vec<f64>>,
    /// Of exposures ([`Target::offsets`]).
    offsets: Option<Vec<f64>>,
}

impl GeneralisedModel {
    /// The rows of a table as the model takes them; of a part of a large one there may be none.
    fn asked(&self, data: &ModelData, truth: bool) -> Result<Option<Asked>, ModelError> {
        let (table, rows) = table(data)?;
        let found = self.extracted(table, rows, truth);
        let found = match (data.part, found) {
            (Some(_), Err(DataError::NothingLeft { .. })) => return Ok(None),
            (Some(first), Err(error)) => return Err(error.in_part(first).into()),
            (_, other) => other?,
        };
        if let Target::Events { window, .. } = &self.header.target {
            let place = (table, data.part.unwrap_or(0));
            let Extracted { x, rows, .. } = &found.extracted;
            events::inside(&self.header.schema, window, place, (x.as_ref(), rows))?;
        }
        Ok(Some(found))
    }

    fn extracted(&self, table: &Table, rows: &[usize], truth: bool) -> Result<Asked, DataError> {
        self.extracted_rows(table, rows, truth).map_err(|error| error.in_table(table))
    }

    fn extracted_rows(&self, table: &Table, rows: &[usize], truth: bool) -> Result<Asked, DataError> {
        let schema = &self.header.schema;
        let (extracted, truths) = if truth {
            let Rows { extracted, targets } = Rows::of(schema, &self.header.target, table, rows)?;
            (extracted, Some(targets))
        } else {
            (schema.extract(table, rows, false)?, None)
        };
        let counts = self.header.kernel.count_columns(&schema.feature_names());
        schema.check_counts(&table.source, &counts, extracted.x.as_ref(), &extracted.rows)?;
        let offsets = self.header.target.offsets(extracted.exposures.as_deref());
        Ok(Asked { extracted, truths, offsets })
    }

    /// Inputs and targets, as the likelihood takes them, of rows that have both.
    pub(in crate::process) fn labelled(
        &self,
        table: &Table,
        rows: &[usize],
    ) -> Result<(Extracted, Vec<f64>), DataError> {
        let Asked { extracted, truths, .. } = self.extracted(table, rows, true)?;
        Ok((extracted, truths.unwrap_or_default()))
    }

    /// How many of these rows have inputs that can be predicted from.
    pub(in crate::process) fn unlabelled(&self, table: &Table, rows: &[usize]) -> Result<usize, DataError> {
        Ok(self.extracted(table, rows, false)?.extracted.rows.len())
    }

    /// Bytes that `count` joint draws at so many rows take, with what becomes of them.
    pub(super) fn draw_bytes(&self, rows: usize, count: usize) -> u64 {
        let c = self.header.likelihood.outputs() as u64;
        match count {
            0 => 0,
            _ => bytes_of(&[rows as u64, count as u64, c])
                .saturating_add(self.predictor.sample_cost(rows, count).bytes),
        }
    }

    /// `count` joint draws of all functions at standardised inputs: a matrix m x count for each.
    pub(super) fn drawn(
        &self,
        x: MatRef<'_, f64>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>, ModelError> {
        let streams = Streams::new(seed);
        let stream = |c: usize| streams.child("model/samples", c as u64).stream("draws");
        self.predictor.samples(x, count, &stream)
    }

    /// The intensity along the window, for one column of it.
    fn intensity_panel(&self) -> Result<Option<PosteriorPanel>, ModelError> {
        let Target::Events { window, .. } = &self.header.target else { return Ok(None) };
        let ([[low, high]], [column]) = (&window[..], &self.header.schema.feature_names()[..]) else {
            return Ok(None);
        };
        let at = |k: usize| (low + (high - low) * k as f64 / (GRID - 1) as f64).clamp(*low, *high);
        let grid: Vec<f64> = (0..GRID).map(at).collect();
        let table = Table::new("grid", vec![Column::numeric(column.clone(), grid.clone())]);
        let data = ModelData::of_table(table)?;
        let found = self.predictive(&data, &Question::default())?;
        let asked =
            Question { samples: SAMPLES, memory: u64::MAX, seed: self.header.seed, ..Question::default() };
        let samples = self.sample(&data, &asked)?.to_f64();
        Ok(Some(PosteriorPanel {
            input: column.clone(),
            grid,
            mean: found.latent_mean,
            latent_standard_deviation: found.latent_deviation.clone(),
            observed_standard_deviation: found.latent_deviation,
            samples: samples.chunks(GRID).map(|draw| draw.iter().map(|f| f.exp()).collect()).collect(),
            ..PosteriorPanel::default()
        }))
    }

    /// Changes predictions as the rows say that the fit was judged on.
    fn recalibrate(&self, question: &Question, own: &mut Predictive) {
        if let Some(known) = self.calibration.under(question.integration, None) {
            known.apply(&question.sets, own);
        }
    }

    /// Truths in the target's own units.
    fn truth(&self, targets: &[f64]) -> Truth {
        match &self.header.target {
            Target::Classes { .. } => Truth::Classes(targets.iter().map(|y| *y as usize).collect()),
            Target::Counts { .. } | Target::Events { .. } => {
                Truth::Values { values: targets.to_vec(), width: 1 }
            }
            Target::Numbers { mean, scale } => {
                Truth::Values { values: targets.iter().map(|y| mean + scale * y).collect(), width: 1 }
            }
        }
    }
}

impl Model for GeneralisedModel {
    fn as_model(&self) -> &dyn Model {
        self
    }

    fn family(&self) -> Family {
        Family::Process
    }

    fn predicts(&self) -> PredictedKind {
        match self.header.target {
            Target::Classes { .. } => PredictedKind::Classes,
            Target::Counts { .. } | Target::Numbers { .. } | Target::Events { .. } => PredictedKind::Values,
        }
    }

    fn seconds(&self) -> f64 {
        self.header.fit.seconds
    }

    fn save(&self, path: &Path) -> Result<(), StoreError> {
        GeneralisedModel::save(self, path)
    }

    fn summary(&self) -> Vec<SummaryRow> {
        describe::summary(&self.header)
    }

    fn notes(&self) -> Vec<Note> {
        describe::notes(&self.header)
    }

    fn tables(&self) -> Vec<String> {
        let learned = table_of(describe::hyperparameters(&self.header));
        std::iter::once(learned).chain(self.parts().tables()).collect()
    }

    fn report(&self) -> Result<Value, StoreError> {
        Ok(described(
            posterior_store::to_shown_value(&self.header)?,
            posterior_store::to_shown_value(&self.parts())?,
        ))
    }

    fn portrait(&self) -> Result<Portrait, ModelError> {
        let parts = self.parts();
        Ok(Portrait {
            tables: parts.report_tables(),
            warps: parts.curves(),
            title: match self.header.target {
                Target::Classes { .. } => "Classes by a Gaussian process",
                Target::Counts { .. } => "Counts by a Gaussian process",
                Target::Numbers { .. } => "A Gaussian process with outliers",
                Target::Events { .. } => "A Cox process",
            },
            method: "Gaussian process",
            hyperparameters: describe::hyperparameters(&self.header),
            lengthscales: describe::lengthscales(&self.header),
            posterior: self.intensity_panel()?,
            ..Portrait::default()
        })
    }

    fn plan_portrait(&self, question: &Question) -> Result<Option<PredictionPlan>, ModelError> {
        Effects::plan(self, question)
    }

    fn effects(&self, data: Option<&ModelData>) -> Result<Option<Effects>, ModelError> {
        let given = match (self.predictor.training_inputs(), data) {
            (None, Some(data)) => self.asked(data, false)?.map(|asked| asked.extracted.x),
            _ => None,
        };
        let given = given.map(|x| self.header.standardisation.features(x.as_ref()));
        Effects::of(self, given.as_ref().map(Mat::as_ref))
    }

    fn schemas_mut(&mut self) -> Vec<&mut Schema> {
        vec![&mut self.header.schema]
    }

    fn target(&self) -> String {
        self.header.schema.target.clone()
    }

    fn class_names(&self) -> Vec<String> {
        match &self.header.target {
            Target::Classes { names } => names.names().to_vec(),
            _ => Vec::new(),
        }
    }

    fn sets(&self) -> Option<&LabelSets> {
        self.calibration.sets()
    }

    fn check_family(&self, question: &Question) -> Result<(), ModelError> {
        if question.joint {
            return Err(ModelError::Usage(NO_JOINT.into()));
        }
        self.family().without(&[
            (question.variances.is_some(), "variances"),
            (!question.joint_points.is_empty(), "joint-kappa"),
        ])?;
        let classes = matches!(self.header.target, Target::Classes { .. });
        if classes && question.samples > 0 && !question.draws_apart {
            let problem = "draws of latent functions of classes are an array: give --samples-out FILE.npy";
            return Err(ModelError::Usage(problem.into()));
        }
        Ok(())
    }

    fn plan(
        &self,
        data: &ModelData,
        question: &Question,
        scored: usize,
    ) -> Result<PredictionPlan, ModelError> {
        let bytes = table(data)?.0.memory();
        let (m, d) = (data.len() as u64, self.header.schema.features.len() as u64);
        let c = self.header.likelihood.outputs() as u64;
        let width = c.max(2);
        let covariance = if self.predictor.is_coupled() { c * c } else { c };
        let sets = PredictedSets::bytes((m, width), self.calibration.sets(), (question, scored));
        let outputs = bytes_of(&[m, (6 + 4 * scored as u64) * width + covariance + 20]);
        let columns = (5 + width).saturating_add(question.samples as u64);
        let leaving = (8 + question.into.bytes()).saturating_mul(m).saturating_mul(columns);
        let drawn = self.draw_bytes(data.len(), question.samples);
        let Cost { bytes: block, flops } = self.predictor.cost(data.len());
        let parts = [bytes_of(&[3, m, d]), outputs, sets, block, leaving, drawn, bytes, question.beside];
        let plan = PredictionPlan {
            rows: data.len(),
            samples: question.samples,
            peak_bytes: parts.into_iter().fold(32 << 20, u64::saturating_add),
            data_bytes: bytes,
            kept_bytes: bytes,
            flops,
            seconds: None,
        };
        plan.check(question.memory)?;
        Ok(plan)
    }

    fn predictive(&self, data: &ModelData, question: &Question) -> Result<Predictive, ModelError> {
        if question.truth && matches!(self.header.target, Target::Events { .. }) {
            return Err(ModelError::Request(
                "a Cox process predicts an intensity, which no row of a table tells: the events that its fit held back (--held-back) say how good it is, see `posterior inspect`".into(),
            ));
        }
        let observing = Observing::new(&self.header.likelihood, &self.header.target, question.integration)?;
        let Some(Asked { extracted, truths, offsets }) = self.asked(data, question.truth)? else {
            let none = Latent::new(Vec::new(), Vec::new(), self.header.likelihood.outputs());
            let mut own = observing.predictive(&none, None)?;
            self.recalibrate(question, &mut own);
            return Ok(own);
        };
        let inputs = self.header.input_ranges.moments(extracted.x.as_ref());
        let x = self.header.standardisation.features(extracted.x.as_ref());
        let latents = self.predictor.latent(x.as_ref(), VarianceMethod::default())?;
        let latents = latents.with_offsets(offsets.as_deref());
        let mut own = observing.predictive(&latents, truths.as_deref())?;
        self.recalibrate(question, &mut own);
        let examples = Some(data.examples_of(&extracted.rows));
        let truth = truths.map(|targets| self.truth(&targets));
        Ok(Predictive { examples, truth, data: extracted.notes, inputs, ..own })
    }

    /// Always the distribution of the training targets.
    fn baseline(&self, data: &ModelData, own: &Predictive) -> Result<(&'static str, Predictive), ModelError> {
        let (n, marginal) = (own.len(), &self.header.marginal);
        let truth = own.truth.is_some();
        let (truths, offsets) = match truth || self.header.schema.exposure.is_some() {
            true => self.asked(data, truth)?.map_or((None, None), |asked| (asked.truths, asked.offsets)),
            false => (None, None),
        };
        let offsets = offsets.as_deref();
        let log_density = truths.map(|truths| baseline(&self.header.target, marginal, &truths, offsets));
        let exposure = |i: usize| offsets.map_or(1.0, |offsets| offsets[i].exp());
        let (name, mut out) = match &self.header.target {
            Target::Classes { .. } => {
                let all = (0..n).flat_map(|_| marginal.iter().copied()).collect();
                let width = marginal.len();
                ("shares of the classes", Predictive::empty(Predicted::Classes(all), false, width, width))
            }
            target => {
                let (mean, variance) = match target {
                    Target::Numbers { mean, scale } => (*mean, scale * scale),
                    _ => (marginal[0], marginal[1]),
                };
                // Of counts in an exposure the scatter of the rate grows with its square, that of the count itself with the exposure.
                let of_row = |i: usize| exposure(i) * (mean + exposure(i) * (variance - mean));
                let variance = |i: usize| match target {
                    Target::Counts { .. } => of_row(i),
                    _ => variance,
                };
                let predicted = Predicted::Moments {
                    mean: (0..n).map(|i| mean * exposure(i)).collect(),
                    variance: (0..n).map(|i| variance(i).max(f64::MIN_POSITIVE)).collect(),
                    latent_variance: vec![0.0; n],
                };
                ("always the training mean", Predictive::empty(predicted, false, 1, 1))
            }
        };
        out.latent_mean = vec![0.0; n * out.outputs];
        out.latent_deviation = vec![0.0; n * out.outputs];
        out.log_density = log_density;
        Ok((name, out))
    }

    fn target_scale(&self) -> f64 {
        match &self.header.target {
            Target::Classes { .. } => 1.0,
            Target::Counts { .. } => self.header.marginal[1].sqrt(),
            Target::Events { .. } => 1.0,
            Target::Numbers { scale, .. } => *scale,
        }
    }

    /// Of latent functions: log-odds, logarithms of rates (for each unit of exposure) and of intensities; numbers in their own units.
    fn sample(&self, data: &ModelData, question: &Question) -> Result<NumericArray, ModelError> {
        let (count, outputs) = (question.samples, self.header.likelihood.outputs());
        let Some(Asked { extracted, .. }) = self.asked(data, false)? else {
            return Ok(NumericArray::new(vec![count, 0, outputs], ArrayValues::F64(Vec::new()))?);
        };
        let x = self.header.standardisation.features(extracted.x.as_ref());
        let needed = self.draw_bytes(x.nrows(), count);
        if needed > question.memory {
            let (rows, limit) = (x.nrows(), question.memory);
            return Err(ModelError::TooManySampleRows { rows, needed, limit });
        }
        let mut values = vec![0.0; count * x.nrows() * outputs];
        let drawn = self.drawn(x.as_ref(), count, question.seed)?;
        for (c, draws) in drawn.iter().enumerate() {
            for s in 0..count {
                for i in 0..x.nrows() {
                    values[(s * x.nrows() + i) * outputs + c] = match &self.header.target {
                        Target::Numbers { mean, scale } => mean + scale * draws[(i, s)],
                        Target::Counts { rate } => rate.ln() + draws[(i, s)],
                        _ => draws[(i, s)],
                    };
                }
            }
        }
        Ok(NumericArray::new(vec![count, x.nrows(), outputs], ArrayValues::F64(values))?)
    }

    fn trained_on(&self, data: &ModelData) -> Result<Option<TrainedOn>, ModelError> {
        if self.training.fingerprints().is_none() {
            return Ok(None);
        }
        Ok(match self.asked(data, true)? {
            Some(Asked { extracted, truths, .. }) => {
                self.training.among_rows(data, (&extracted, truths.as_deref()))
            }
            None => Some(TrainedOn::default()),
        })
    }

    fn date_order(&self) -> Option<TimeForm> {
        self.header.schema.date_order
    }

    fn split_seed(&self) -> Result<u64, ModelError> {
        Ok(self.header.seed)
    }

    fn strata(&self, table: &Table) -> Result<Option<Vec<usize>>, ModelError> {
        let Target::Classes { names } = &self.header.target else { return Ok(None) };
        let found = strata(names, table, &self.header.schema.target);
        Ok(Some(found.map_err(|error| error.in_table(table))?))
    }

    fn departures(&self, inputs: &InputMoments) -> Option<Vec<Departure>> {
        Some(self.header.input_ranges.departures(inputs))
    }

    fn cut(&self, files: &[PathBuf], question: &Question) -> Result<StreamOptions, ModelError> {
        if !self.answers_parts(question) {
            let problem = "--samples are drawn jointly for all rows, which --stream never has; leave one out";
            return Err(ModelError::Usage(problem.into()));
        }
        cut_of(&self.header.schema, files, question, 3 * self.header.schema.features.len())
    }

    fn answers_parts(&self, question: &Question) -> bool {
        question.samples == 0
    }
}
