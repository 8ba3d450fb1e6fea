//! **Answers**: how predictive distributions of any family become columns and arrays.

use crate::calibration::too_few_for;
use crate::{
    Model, ModelData, ModelError, Predicted, PredictedInto, PredictedKind, Predictive, Question,
    VarianceSolves,
};
use posterior_data::{ArrayValues, Column, InputMoments, Notes, NumericArray};
use posterior_notes::fixes::{CALIBRATE_AUTO, CALIBRATE_CONFORMAL, HELD_BACK, TOP, VALIDATION_DATA};

/// Classes beyond this are written by --top only, unless the output is an array.
const MOST_CLASS_COLUMNS: usize = 1000;

/// What a model says about some rows.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Rows that have a prediction.
    pub count: usize,
    /// New columns, as long as [`ModelData::length`]; empty cells where a row has no prediction.
    pub columns: Vec<Column>,
    /// The sets of classes behind text columns of these names, where the answer becomes a JSON document: names, most probable first; None where a row has no prediction.
    pub sets: Vec<(String, Vec<Option<Vec<String>>>)>,
    /// What is to be said of them.
    pub notes: Vec<String>,
    /// The predictions as one array where [`PredictedInto::Array`] was asked for.
    pub array: Option<NumericArray>,
    /// Joint draws that are no columns, as [`Model::sample`] gives them.
    pub draws: Option<NumericArray>,
    /// The joint covariance.
    pub covariance: Option<NumericArray>,
    /// Variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
    /// What was left out and filled in of a table's rows.
    pub data: Notes,
    /// How exact variances by solves are, where there were solves.
    pub solves: Option<VarianceSolves>,
    /// Where the inputs lay, for [`Model::departures`].
    pub inputs: InputMoments,
}

impl Answer {
    /// Of any family: its predictive distributions as columns or an array, with draws and covariance where these were asked for.
    pub(crate) fn of(model: &Model, data: &ModelData, question: &Question) -> Result<Self, ModelError> {
        model.check(question)?;
        let predictions = model.predictive(data, question)?;
        let mut answer = Self { count: predictions.len(), clipped: predictions.clipped, ..Self::default() };
        (answer.data, answer.solves) = (predictions.data.clone(), predictions.solves);
        match question.into {
            PredictedInto::Array => answer.array = Some(array(model, &predictions)?),
            _ => answer.columns = columns(model, data, &predictions, question)?,
        }
        if question.leave_one_out {
            let rows = predictions.len();
            answer.notes.push(format!("each of {rows} rows is predicted from all other training rows"));
        }
        answer.add_sets(model, data, &predictions, question);
        answer
            .notes
            .extend(predictions.tails.iter().flat_map(|known| known.too_few_for(&question.quantiles)));
        if question.draws_apart && question.samples > 0 && !predictions.is_empty() {
            answer.draws = Some(model.sample(data, question)?);
        } else if !question.draws_apart && question.samples > 0 {
            // A part of a table of which no row has a prediction has the columns of the others.
            let (mut draws, size) = (Vec::new(), predictions.latent_mean.len());
            if size > 0 {
                draws = model.sample(data, question)?.to_f64();
            }
            let (places, target) = (places(data, &predictions), model.target());
            for k in 0..question.samples {
                let draw = draws[k * size..][..size].iter().copied();
                answer.columns.push(data.numeric(format!("{target}_sample_{}", k + 1), &places, draw));
            }
        }
        if question.joint {
            answer.covariance = Some(model.covariance(data, question)?);
            answer.notes.extend(predictions.mapped.as_ref().map(|_| {
                "--joint is of what the target was mapped to, where the function is Gaussian, in squares of its units".to_string()
            }));
        }
        answer.inputs = predictions.inputs;
        Ok(answer)
    }
}

impl Answer {
    /// Columns of sets of classes: names joined by `|`; a `|` or `\` of a name itself has a `\` before it.
    fn add_sets(&mut self, model: &Model, data: &ModelData, predictions: &Predictive, question: &Question) {
        let (names, places) = (model.class_names(), places(data, predictions));
        let escaped: Vec<String> =
            names.iter().map(|name| name.replace('\\', "\\\\").replace('|', "\\|")).collect();
        for own in &predictions.sets {
            let column = match question.sets.len() {
                1 => "set".to_string(),
                _ => format!("set_{}", own.level),
            };
            let of = |names: &[String], set: &[usize]| -> Vec<String> {
                set.iter().map(|class| names[*class].clone()).collect()
            };
            if question.into == PredictedInto::Json {
                let mut each = vec![None; data.length()];
                places.iter().zip(own.each()).for_each(|(&place, set)| each[place] = Some(of(&names, set)));
                self.sets.push((column.clone(), each));
            }
            let joined: Vec<String> = own.each().map(|set| of(&escaped, set).join("|")).collect();
            self.columns.push(data.text(&column, &places, joined));
        }
        self.notes.extend(model.sets().iter().flat_map(|known| too_few_for(known, &question.sets)));
    }
}

/// Refuses what does not go together, for a model that predicts this, with what sets go by or without, of so many classes.
pub(crate) fn check(
    question: &Question,
    (predicts, sets): (PredictedKind, bool),
    classes: usize,
) -> Result<(), ModelError> {
    let Question { top, latent, .. } = *question;
    let quantiles = !question.quantiles.is_empty();
    let draws = question.samples > 0 && !question.draws_apart;
    let array = question.into == PredictedInto::Array;
    let asked = !question.sets.is_empty();
    let problem = if array && (quantiles || top.is_some() || latent || draws || asked) {
        "--quantiles, --top, --sets, --latent and --samples without --samples-out need named columns: write .csv or .parquet"
    } else if asked && classes == 0 {
        "--sets is for classes"
    } else if asked && !sets {
        return Err(ModelError::Usage(format!(
            "no rows tell what sets of classes this model needs: fit it with {CALIBRATE_AUTO} or {CALIBRATE_CONFORMAL:-} and rows to judge by ({HELD_BACK} of a process, {VALIDATION_DATA} of a network; a stream and --continue forget them)"
        )));
    } else if question.sets.iter().enumerate().any(|(i, level)| question.sets[..i].contains(level)) {
        "--sets names a level twice"
    } else if asked && question.integration.is_some() {
        "--sets are told of predictions as they were fitted: leave --predictive out"
    } else if question.leave_one_out && (question.samples > 0 || question.joint) {
        "--leave-one-out predicts each row by a posterior of its own, and --samples and --joint are of one posterior: leave one out"
    } else if top == Some(0) {
        "--top must be at least 1"
    } else if top.is_some() && classes == 0 {
        "--top is for classes"
    } else if predicts != PredictedKind::Values && (quantiles || latent) {
        "--quantiles and --latent are for numbers, this model predicts probabilities"
    } else if latent && !quantiles {
        "--latent says which --quantiles to write: give some"
    } else if !array && top.is_none() && classes > MOST_CLASS_COLUMNS {
        return Err(ModelError::Usage(format!(
            "{classes} classes make too many columns: choose {TOP}, or write .npy"
        )));
    } else {
        return Ok(());
    };
    Err(ModelError::Usage(problem.into()))
}

impl Model {
    /// Predictive distributions of such data as the columns that [`Model::predict`] writes.
    ///
    /// # Errors
    /// [`ModelError::Usage`] for too many classes.
    pub fn columns(&self, data: &ModelData, predictions: &Predictive) -> Result<Vec<Column>, ModelError> {
        let question = Question::default();
        check(&question, (self.predicts(), self.sets().is_some()), self.class_names().len())?;
        columns(self, data, predictions, &question)
    }
}

/// Where predictions stand in new columns.
fn places(data: &ModelData, predictions: &Predictive) -> Vec<usize> {
    match &predictions.examples {
        Some(examples) => examples.iter().map(|&example| data.place(example)).collect(),
        None => (0..predictions.len()).map(|example| data.place(example)).collect(),
    }
}

/// Probabilities `[examples, classes]`; or mean, standard deviation and latent standard deviation, `[examples, 3]` and what is predicted of an example.
fn array(model: &Model, predictions: &Predictive) -> Result<NumericArray, ModelError> {
    let (count, width) = (predictions.len(), predictions.width);
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
            ([&[count, 3], &model.output_shape()[..]].concat(), values)
        }
    };
    Ok(NumericArray::new(shape, ArrayValues::F64(values))?)
}

/// The new columns, as long as the table; empty cells where a row has no prediction.
pub(crate) fn columns(
    model: &Model,
    data: &ModelData,
    predictions: &Predictive,
    question: &Question,
) -> Result<Vec<Column>, ModelError> {
    let places = &places(data, predictions);
    let numeric = |name: String, values: Vec<f64>| data.numeric(name, places, values);
    let text = |name: &str, values: Vec<String>| data.text(name, places, values);
    let width = predictions.width;
    let each = |k: usize, values: &[f64]| values.iter().skip(k).step_by(width).copied().collect::<Vec<_>>();
    let mut out = Vec::new();
    match &predictions.predicted {
        Predicted::Classes(p) => {
            let names = model.class_names();
            let best = predictions.top(1);
            out.push(text("predicted", best.iter().map(|top| names[top[0].0].clone()).collect()));
            out.push(numeric("max_probability".into(), best.iter().map(|top| top[0].1).collect()));
            out.push(numeric("entropy".into(), predictions.entropies()));
            if let Some(removable) = &predictions.removable_entropy {
                out.push(numeric("removable_entropy".into(), removable.clone()));
            }
            let deviation =
                |(i, top): (usize, &Vec<(usize, f64)>)| predictions.latent_deviation[i * width + top[0].0];
            out.push(numeric("latent_std".into(), best.iter().enumerate().map(deviation).collect()));
            match question.top {
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
            let (names, first) = (model.output_names(), format!("{}_", model.target()));
            for (k, name) in names.iter().enumerate() {
                let own = name.strip_prefix(&first).unwrap_or(name);
                let suffix = if width > 1 { format!("_{own}") } else { String::new() };
                out.push(numeric(format!("probability{suffix}"), each(k, p)));
                out.push(numeric(format!("latent_std{suffix}"), each(k, &predictions.latent_deviation)));
            }
            out.push(numeric("entropy".into(), predictions.entropies()));
        }
        Predicted::Moments { mean, variance, latent_variance } => {
            for (k, own) in model.output_names().iter().enumerate() {
                let name = |what: &str| format!("{own}_{what}");
                let root = |v: &[f64]| each(k, v).into_iter().map(f64::sqrt).collect::<Vec<_>>();
                out.push(numeric(name("mean"), each(k, mean)));
                out.push(numeric(name("std"), root(variance)));
                out.push(numeric(name("latent_std"), root(latent_variance)));
                for &level in &question.quantiles {
                    let Some(quantiles) = predictions.quantiles(level, !question.latent) else {
                        return Err(ModelError::Usage(format!(
                            "--quantiles of other than Gaussian predictions go by rows that the fit was judged on: fit it with {CALIBRATE_AUTO} or {CALIBRATE_CONFORMAL:-} and rows to judge by ({HELD_BACK}); a stream forgets them, and with --latent or --predictive there are none"
                        )));
                    };
                    out.push(numeric(name(&format!("q{level}")), each(k, &quantiles)));
                }
            }
        }
    }
    Ok(out)
}
