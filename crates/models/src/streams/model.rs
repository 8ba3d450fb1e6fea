//! Start, answers, learning, file.

use super::inducing::additions;
use super::noise::{LearnedNoise, with_noise};
use super::rows::{LabelledRows, Observed, prior_means, sites_of};
use super::score::RunningScore;
use crate::calibration::Calibration;
use crate::model::Source;
use crate::query::columns;
use crate::saved::{self, FileHeader, STREAM};
use crate::{
    Answer, Comparison, FitRecord, LikelihoodOutput, Model, ModelData, ModelError, Output, Process, Question,
    Saved, StreamedRows, TableSource, TrainingRows,
};
use faer::{Mat, MatRef};
use posterior_data::{Table, TextOptions};
use posterior_gp::inducing::{InducingDistribution, InducingPosterior};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::streaming::StreamingModel;
use posterior_notes::fixes::{FIXED_INDUCING, FORWARD, KERNEL_LINEAR_SGPR, SGPR, SVGP, TARGET_SGPR};
use posterior_store::{Container, StoreError, Tensors};
use std::fmt;
use std::sync::Arc;

/// The same batch is looked at so often at most, where what it says depends on where the functions are.
const ROUNDS: usize = 30;

/// The program itself, lines that wait, and what a first fit leaves behind.
const BESIDE: u64 = 32 << 20;

/// It is learned when no mean has moved by more than this share of its standard deviation.
const SETTLED: f64 = 1e-4;

/// A model that answers, and learns what it is told.
#[derive(Clone, Debug)]
pub struct StreamModel {
    /// The process that learns.
    model: Model,
    sums: StreamingModel,
    most_inducing: usize,
    /// Where it is learned.
    pub(crate) noise: Option<LearnedNoise>,
}

/// What going on with a model takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamPlan {
    /// Most bytes at a time, file and batch included.
    pub peak_bytes: u64,
    /// Bytes of the file that is written after each batch.
    pub file_bytes: u64,
    /// Floating-point operations for each row.
    pub flops_per_row: f64,
    /// Most inducing points.
    pub inducing: usize,
    /// Latent functions.
    pub functions: usize,
}

impl fmt::Display for StreamPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peak_bytes, file_bytes, flops_per_row, inducing, functions } = self;
        write!(
            out,
            "{functions} function{} with at most {inducing} inducing points: {:.0} MB of memory whatever the number of rows, {:.2} Mflop a row, a state of {:.1} MB after each batch",
            if *functions == 1 { "" } else { "s" },
            *peak_bytes as f64 / 1e6,
            flops_per_row / 1e6,
            *file_bytes as f64 / 1e6,
        )
    }
}

impl Model {
    /// The same model after more rows, with as many posteriors of inducing points as it has. Which rows these were is not known, so that none can be told apart later.
    fn go_on_with(&mut self, new: Vec<InducingPosterior>, streamed: StreamedRows) {
        let inducing = new.first().map_or(0, |p| p.inducing().nrows());
        let Source::Table(source) = &mut self.source else { return };
        let TableSource { output, record, .. } = &mut **source;
        // Told of the model before these rows.
        match &mut record.fit {
            FitRecord::Gaussian(fit) => {
                fit.scalable.iter_mut().for_each(|own| own.inducing = inducing);
                fit.recalibration = None;
            }
            FitRecord::Likelihood(fit) => {
                fit.bound.iter_mut().for_each(|own| own.inducing = inducing);
                for member in fit.gaussian_labels.iter_mut().flat_map(|own| &mut own.members) {
                    if let FitRecord::Gaussian(fit) = &mut member.record.fit {
                        fit.scalable.iter_mut().for_each(|own| own.inducing = inducing);
                    }
                }
                (fit.recalibration, fit.intervals) = (None, None);
            }
        }
        self.calibration = Calibration::default();
        let noise = new.first().and_then(|own| own.likelihood().shared_noise_variance());
        if let (Output::Gaussian(_), Some(variance)) = (&*output, noise) {
            let noise = record.hyperparameters.iter_mut().filter(|h| h.name.ends_with("noise_variance"));
            noise.for_each(|h| h.values = vec![variance]);
        }
        if let Some(predictor) = self.predictor.with_inducing(new) {
            self.predictor = predictor;
        }
        record.streamed = Some(streamed);
        self.training = TrainingRows::default();
    }
}

impl StreamModel {
    /// Goes on with a fitted model, whose inducing points may become `most_inducing`, under the noise of its fit ([`Self::learn_noise`] lets go of that).
    ///
    /// # Errors
    /// [`ModelError::Request`] for models that keep no posterior of inducing points, that weigh rows, or whose functions have inducing points of their own, with the way out.
    pub fn start(mut model: Saved, most_inducing: usize) -> Result<Self, ModelError> {
        let model = match (model.models.pop(), model.models.is_empty()) {
            (Some(model), true) => model,
            _ => {
                return Err(ModelError::Request(format!(
                    "this model has several targets, and a stream learns one: fit that one with `{TARGET_SGPR:#}`"
                )));
            }
        };
        let Some(process) = model.process() else {
            return Err(ModelError::Request(format!(
                "this model is a network with error bars: rows of a stream are learned by processes of inducing points; a network's last layer becomes one by its features (`{FORWARD:#}`) and `{KERNEL_LINEAR_SGPR:#}`"
            )));
        };
        let posteriors = process.predictor.inducing();
        let Some(first) = posteriors.first() else {
            return Err(ModelError::Request(format!(
                "this model has no posterior of inducing values, which is what learns rows in bounded memory: fit it with {SGPR} or {SVGP:-}"
            )));
        };
        if !posteriors.iter().all(|p| p.shares_features(first)) {
            return Err(ModelError::Request(format!(
                "the functions of this model have inducing points of their own: fit it with {FIXED_INDUCING}"
            )));
        }
        if process.output.likelihood().is_some() && process.record.fit.weights().is_some() {
            return Err(ModelError::Request(
                "this model weighs its rows, and the rows of a stream have no weights: fit it without --class-weights and --row-weights".into(),
            ));
        }
        if let Some(flag) = process.output.gaussian().and_then(|own| own.not_for_streams(process.inputs)) {
            return Err(ModelError::Request(format!(
                "rows of a stream are learned as they come, under one noise: this model was fitted with {flag}, fit it without"
            )));
        }
        let m = first.inducing().nrows();
        let mut given: Vec<Mat<f64>> = Vec::new();
        let mut shifts: Vec<Mat<f64>> = Vec::new();
        for posterior in &posteriors {
            let (precisions, shift) = posterior.distribution().natural();
            for c in 0..posterior.distribution().latents() {
                let own = &precisions[if precisions.len() == 1 { 0 } else { c }];
                given.push(own - Mat::<f64>::identity(m, m));
                shifts.push(shift.as_ref().subcols(c, 1).to_owned());
            }
        }
        let shifts = Mat::from_fn(m, shifts.len(), |i, c| shifts[c][(i, 0)]);
        let none = Mat::<f64>::zeros(m, shifts.ncols());
        let sums = StreamingModel::new(Mat::identity(m, m).as_ref(), none.as_ref())?;
        let sums = sums.observed(&given, shifts.as_ref())?;
        Ok(Self { model, sums, most_inducing: most_inducing.max(m), noise: None })
    }

    /// The model as it is now: to be asked, or saved as a file of its own.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Its parts.
    ///
    /// # Errors
    /// [`ModelError::Request`], which [`Self::start`] has seen to.
    pub(crate) fn process(&self) -> Result<Process<'_>, ModelError> {
        self.model.process().ok_or_else(|| ModelError::Request("a stream is learned by a process".into()))
    }

    /// How many inducing points it may have.
    pub fn most_inducing(&self) -> usize {
        self.most_inducing
    }

    /// Whether rows of a table, all of which have a target where there is `truth`, can be learned (or, without, predicted). Nothing is changed by it. Cost: one more reading of the cells.
    ///
    /// # Errors
    /// [`ModelError`] naming the first cell that is in the way; [`ModelError::Request`] for a row with a missing cell, by a model that drops such rows.
    pub fn check(&self, table: &Table, rows: &[usize], truth: bool) -> Result<(), ModelError> {
        if rows.is_empty() {
            return Ok(());
        }
        let usable = match truth {
            true => LabelledRows::of(&self.process()?, table, rows)?.inputs.nrows(),
            false => self.process()?.extract(table, rows, false)?.rows.len(),
        };
        match usable == rows.len() {
            true => Ok(()),
            false => Err(ModelError::Request(
                "a cell is missing, and the model drops such rows (--missing drop)".into(),
            )),
        }
    }

    /// What it has learned after its fit.
    pub fn streamed(&self) -> StreamedRows {
        self.model.process().and_then(|own| own.record.streamed).unwrap_or_default()
    }

    /// How texts of rows are read: as is said, or as those of the model's training.
    pub fn reading(&self, said: TextOptions) -> TextOptions {
        self.model.process().map_or(said, |process| process.inputs.schema.reading(said))
    }

    /// Columns that a row needs: those of the features, the target, and the noise where it is known.
    pub fn columns(&self) -> (Vec<String>, String) {
        let Some(process) = self.model.process() else { return Default::default() };
        let schema = &process.inputs.schema;
        let mut names: Vec<String> = Vec::new();
        for feature in &schema.features {
            if !names.iter().any(|n| n == feature.column()) {
                names.push(feature.column().into());
            }
        }
        names.extend(schema.noise.clone());
        (names, schema.target.clone())
    }

    /// Columns that are text whatever their cells look like: categories and labels that are no numbers.
    pub fn text_columns(&self) -> Vec<String> {
        let model = &self.model;
        let mut out = model.process().map_or_else(Vec::new, |own| own.inputs.schema.text_columns());
        if model.class_names().iter().any(|name| name.parse::<f64>().is_err()) {
            out.push(model.target());
        }
        out
    }

    /// What going on takes, with batches of `batch` rows.
    pub fn plan(&self, batch: usize) -> StreamPlan {
        let posteriors = self.model.predictor.inducing();
        let d = posteriors.first().map_or(0, |p| p.inducing().ncols());
        let (m, c) = (self.most_inducing as u64, self.sums.functions() as u64);
        let (b, d) = (batch as u64, d as u64);
        let square = 8 * m * m;
        // Roots and sums before and after a batch, and what a factorisation has beside; features twice and what comes of them; cells as text and numbers.
        let held = square * (4 * c + 10) + 8 * b * (4 * m + 12 * c + 40 * (d + 2));
        let file = square / 2 * (2 * c + 2) + 16 * m * (c + d);
        let (m, c, b) = (m as f64, c as f64, b.max(1) as f64);
        let flops = 4.0 * m * m * (2.0 + c) + 2.0 * c * m * m * m / b;
        StreamPlan {
            // The file is put together in memory.
            peak_bytes: BESIDE + held + 2 * file,
            file_bytes: file,
            flops_per_row: flops,
            inducing: self.most_inducing,
            functions: self.sums.functions(),
        }
    }

    /// Predicts rows of a table; all of which have a target where there is `truth`: these are scored.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming the cell.
    pub fn answer(
        &self,
        table: &Arc<Table>,
        rows: &[usize],
        truth: bool,
        score: &mut RunningScore,
    ) -> Result<Answer, ModelError> {
        let mut data = ModelData::of_table(Table::new("", Vec::new()))?;
        data.table = Some((table.clone(), (0..table.rows()).collect()));
        data.inputs = posterior_data::NumericArray::new(
            vec![table.rows(), 0],
            posterior_data::ArrayValues::U8(Vec::new()),
        )?;
        let mut data = data.selected(rows)?;
        data.part = Some(0);
        let question = Question { truth, ..Question::default() };
        let model = self.model();
        let predictions = if truth {
            let compared: Comparison = model.comparison(&data, &question)?;
            score.add(&compared)?;
            compared.model
        } else {
            model.predictive(&data, &question)?
        };
        let (count, clipped, found) = (predictions.len(), predictions.clipped, predictions.data.clone());
        let columns = columns(model, &data, &predictions, &question)?;
        Ok(Answer { count, clipped, data: found, columns, ..Answer::default() })
    }

    /// Learns rows of a table, all of which have a target. Nothing is learned where something is wrong. Cost: `2 b m²` flops for the features of b rows and as much for each function's sums, and `2m³` for each function's posterior; `3 b m²` more where the noise is learned.
    ///
    /// # Errors
    /// [`ModelError::Data`] naming the cell; [`ModelError::Gp`] where a posterior cannot be factored.
    pub fn learn(&mut self, table: &Table, rows: &[usize]) -> Result<(), ModelError> {
        let LabelledRows { inputs, observed } = LabelledRows::of(&self.process()?, table, rows)?;
        let (x, mut streamed) = (inputs.as_ref(), self.streamed());
        let mut sums = self.sums.clone();
        let mut grown: Option<Vec<InducingPosterior>> = None;
        {
            let posteriors = self.model.predictor.inducing();
            let m = sums.features();
            if let Some(more) = additions(posteriors[0], x, self.most_inducing.saturating_sub(m))? {
                // Close to one another they may not be factored: the points that there are do without them.
                let wider: Result<Vec<_>, _> =
                    posteriors.iter().map(|p| p.with_more_inducing(more.as_ref())).collect();
                if let Ok(wider) = wider {
                    sums = sums.widened(more.nrows());
                    streamed.added_inducing += more.nrows();
                    grown = Some(wider);
                }
            }
        }
        let base: Vec<&InducingPosterior> = match &grown {
            Some(grown) => grown.iter().collect(),
            None => self.model.predictor.inducing(),
        };
        let means = prior_means(&base, x);
        let features = base[0].whitened_features(x)?;
        let mut noise = None;
        let new = match observed {
            Observed::Gaussian { targets, mut precisions } => {
                noise = self.noise_after(self.model.predictor.inducing()[0], x, &targets)?;
                if let Some((_, factor)) = &noise {
                    sums.reweigh(*factor)?;
                    precisions *= *factor;
                }
                sums.learn(features.transpose(), (targets - means).as_ref(), precisions.as_ref())?;
                let new = conditioned(&base, &sums)?;
                match (&noise, self.process()?.record.noise_floor) {
                    (Some((noise, _)), Some(floor)) => new
                        .iter()
                        .map(|p| with_noise(p, noise.variance(), floor))
                        .collect::<Result<_, _>>()?,
                    _ => new,
                }
            }
            Observed::Labels { targets, offsets } => {
                let Some(LikelihoodOutput { likelihood, .. }) = self.process()?.output.likelihood() else {
                    return Err(ModelError::Request("numbers are learned under Gaussian noise".into()));
                };
                let settled = settle(&sums, &base, likelihood, (&targets, &offsets), (x, &features, &means))?;
                streamed.clipped += settled.clipped;
                sums = settled.sums;
                settled.posteriors
            }
        };
        streamed.rows += rows.len() as u64;
        if let Some((noise, _)) = noise {
            streamed.learned_noise = true;
            self.noise = Some(noise);
        }
        self.sums = sums;
        self.model.go_on_with(new, streamed);
        Ok(())
    }

    /// The file of the model as it is now, with the sums.
    pub(crate) fn container(&self) -> Result<Container<FileHeader>, StoreError> {
        let mut tensors = Tensors::default();
        let (shared, own) = self.sums.sums();
        tensors.insert_triangle(SHARED, shared);
        own.iter().enumerate().for_each(|(c, own)| tensors.insert_triangle(own_sum(c), own.as_ref()));
        tensors.insert_matrix(SHIFTS, self.sums.shifts());
        if let Some(noise) = &self.noise {
            noise.add_to(&mut tensors);
        }
        tensors.insert_vector(COUNTS, &[self.sums.functions() as f64, self.sums.features() as f64]);
        let mut container = saved::container(std::slice::from_ref(&self.model), None, None)?;
        container.tensors.extend_under(STREAM, tensors);
        Ok(container)
    }

    /// From what [`Self::container`] gave, to the same bits.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(crate) fn restored(
        mut container: Container<FileHeader>,
        most_inducing: usize,
    ) -> Result<Self, StoreError> {
        let mut tensors = container.tensors.take_under(STREAM);
        let counts = tensors.vector(COUNTS, 2)?;
        let noise = LearnedNoise::taken_from(&mut tensors)?;
        let model = saved::only(container)?;
        let Some(process) = model.process() else {
            return Err(tensors.corrupt("its model is no process"));
        };
        let posteriors = process.predictor.inducing();
        let m = posteriors.first().map_or(0, |p| p.inducing().nrows());
        let functions: usize = posteriors.iter().map(|p| p.distribution().latents()).sum();
        if m == 0 || counts != [functions as f64, m as f64] {
            return Err(tensors.corrupt("its sums are not those of its model"));
        }
        let mut whole = |name: &str| -> Result<Mat<f64>, StoreError> {
            let lower = tensors.triangle(name, m)?;
            Ok(Mat::from_fn(m, m, |i, j| lower[(i.max(j), i.min(j))]))
        };
        let shared = whole(SHARED)?;
        let sums = (0..functions).map(|c| whole(&own_sum(c))).collect::<Result<Vec<_>, _>>()?;
        let shifts = tensors.matrix(SHIFTS, m, functions)?;
        let rows = process.record.streamed.unwrap_or_default().rows;
        let (identity, none) = (Mat::identity(m, m), Mat::zeros(m, functions));
        let prior = (identity.as_ref(), none.as_ref());
        let sums =
            StreamingModel::resumed(prior, (shared, sums), shifts, rows).map_err(|e| tensors.corrupt(e))?;
        Ok(Self { model, sums, most_inducing: most_inducing.max(m), noise })
    }
}

const SHARED: &str = "shared_sum";
const SHIFTS: &str = "shifts";
const COUNTS: &str = "counts";

fn own_sum(function: usize) -> String {
    format!("sum.{function}")
}

/// What a batch leaves behind.
struct Settled {
    sums: StreamingModel,
    posteriors: Vec<InducingPosterior>,
    /// Observations without precision.
    clipped: u64,
}

/// Learns a batch whose rows say as much as the likelihood makes of them where the functions are: the fixed point is the maximum of the batch's bound, with the posterior before it as prior.
fn settle(
    before: &StreamingModel,
    base: &[&InducingPosterior],
    likelihood: &OutputLikelihood,
    (y, offsets): (&[f64], &[f64]),
    (x, features, means): (MatRef<'_, f64>, &Mat<f64>, &Mat<f64>),
) -> Result<Settled, ModelError> {
    // The likelihood sees latent values with their row's offset.
    let shifted = |of: &Mat<f64>| Mat::from_fn(of.nrows(), of.ncols(), |i, k| of[(i, k)] + offsets[i]);
    let known = shifted(means);
    let mut at = base[0].latent(x)?;
    let mut round = 0;
    loop {
        let found = sites_of(likelihood, y, (shifted(&at.mean).as_ref(), at.variance.as_ref()))?;
        let mut sums = before.clone();
        sums.learn(features.transpose(), (found.targets - &known).as_ref(), found.precisions.as_ref())?;
        let posteriors = conditioned(base, &sums)?;
        let now = posteriors[0].latent(x)?;
        let (rows, functions) = now.mean.shape();
        let stays = (0..rows * functions).all(|k| {
            let cell = (k / functions, k % functions);
            let scale = now.variance[cell].sqrt().max(1e-12);
            (at.mean[cell] - now.mean[cell]).abs() <= SETTLED * scale
        });
        if stays || round == ROUNDS {
            return Ok(Settled { sums, posteriors, clipped: found.clipped as u64 });
        }
        // Half way between where they were and are: two sides of a steep likelihood may take turns otherwise.
        at.mean = 0.5 * (at.mean + now.mean);
        at.variance = 0.5 * (at.variance + now.variance);
        round += 1;
    }
}

/// The posteriors that sums make.
fn conditioned(
    base: &[&InducingPosterior],
    sums: &StreamingModel,
) -> Result<Vec<InducingPosterior>, ModelError> {
    let mut first = 0;
    let mut out = Vec::with_capacity(base.len());
    for posterior in base {
        let (roots, latents) = (posterior.distribution().roots().len(), posterior.distribution().latents());
        // Functions that share a covariance are told the same precisions.
        let precisions: Vec<Mat<f64>> = (first..first + roots).map(|c| sums.precision(c)).collect();
        let shifts = sums.shifts().subcols(first, latents);
        out.push(posterior.with_distribution(InducingDistribution::from_natural(&precisions, shifts)?)?);
        first += latents;
    }
    Ok(out)
}
