//! A fitted model, asked by arrays and files.

use crate::arrays::{Inputs, Labels};
use crate::error::Error;
use crate::predictions::Predictions;
use crate::process::texts;
use crate::rows::{Rows, targets_of};
use faer::{Mat, MatRef};
use posterior_data::{Column, NumericArray, ReadOptions, Schema, Table, Values};
use posterior_linalg::random::Streams;
use posterior_models::options::CalibrateName;
use posterior_models::{
    DrawnFunctions, Evaluation, Files, Model, ModelData, ModelError, PredictedKind, Process, Question, Truth,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that joint draws may take.
const MEMORY: u64 = 8 << 30;

/// A fitted model: a process of numbers, counts or classes, or a network with error bars.
///
/// ```
/// use posterior::Gp;
///
/// // Two kinds that meet where the sum of both inputs is zero.
/// let x: Vec<[f64; 2]> = (0..60).map(|i| [(i % 9) as f64 / 4.0 - 1.0, (i * 7 % 60) as f64 / 30.0 - 1.0]).collect();
/// let labels: Vec<&str> = x.iter().map(|[a, b]| if a + b > 0.0 { "above" } else { "below" }).collect();
///
/// let fitted = Gp::builder().classify(&x, &labels)?;
/// assert_eq!(fitted.class_names(), ["above", "below"]);
/// let predicted = fitted.predict(&[[0.8, 0.8], [0.0, 0.0]])?;
/// let probabilities = predicted.probabilities()?;
/// // Sure far from the other kind, and not between the two.
/// assert!(probabilities[0] > 0.9 && probabilities[2] < 0.8);
/// # Ok::<(), posterior::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fitted {
    model: Arc<Model>,
}

impl Fitted {
    pub(crate) fn of(model: Model) -> Self {
        Self { model: Arc::new(model) }
    }

    /// Opens a saved model.
    ///
    /// # Errors
    /// A [`StoreError`](crate::StoreError) that says what is wrong with the file, in [`ModelError::Store`]. Files of several targets are read by [`Saved`](crate::Saved).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::of(Model::load(path.as_ref())?))
    }

    /// Writes the model to a file in one step.
    ///
    /// # Errors
    /// A [`StoreError`](crate::StoreError): where the file cannot be written (an older one stays), or where the kernel has no [registered](crate::kernels::register) reader.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(self.model.save(path.as_ref())?)
    }

    /// The model: what was found and chosen, its file, scores of validation rows.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Names of the classes, in the order of the probabilities; none of counts and numbers.
    pub fn class_names(&self) -> Vec<String> {
        self.model.class_names()
    }

    /// Predicts m inputs: rows (m x D) for a process, examples of the network's shape for a network.
    ///
    /// # Errors
    /// Inputs of another width, shape or kind of numbers than those of the fit, numbers that are not finite.
    pub fn predict<X: Inputs + ?Sized>(&self, x: &X) -> Result<Predictions, Error> {
        self.predicted(&self.data(x.to_array()?, None)?)
    }

    /// The same for the rows of a table file with the columns of the fit.
    ///
    /// # Errors
    /// Those of reading the table, missing columns, bad cells.
    pub fn predict_file(&self, path: impl AsRef<Path>) -> Result<Predictions, Error> {
        self.predict_files([path.as_ref()])
    }

    /// The same for files of the kind that the model was fitted to: one table, or several files of arrays or images for a network. The dialect of text is found out.
    ///
    /// # Errors
    /// Those of reading the files, and of [`Self::predict`].
    pub fn predict_files<P: Into<PathBuf>>(
        &self,
        data: impl IntoIterator<Item = P>,
    ) -> Result<Predictions, Error> {
        let reading = match self.model.process() {
            Some(_) => ReadOptions::default(),
            None => ReadOptions::for_arrays(),
        };
        self.predict_files_as(data, reading)
    }

    /// The same for files that are read as is told: text of a dialect of its own, such as the fit had in [`GpBuilder::text`](crate::GpBuilder::text).
    ///
    /// # Errors
    /// As [`Self::predict_files`].
    pub fn predict_files_as<P: Into<PathBuf>>(
        &self,
        data: impl IntoIterator<Item = P>,
        reading: ReadOptions,
    ) -> Result<Predictions, Error> {
        let data: Vec<PathBuf> = data.into_iter().map(Into::into).collect();
        let files = Files { data: &data, inputs: &[], labels: &[], truth: false, reading };
        self.predicted(&self.model.read(&files)?)
    }

    /// Joint draws of the noiseless function at m inputs, `[count, m, outputs]`: regression in the target's units, classes and counts as latent values. The same for the same seed.
    ///
    /// # Errors
    /// As [`Self::predict`]; [`ModelError::TooManySampleRows`] for more than 8 GiB, [`ModelError::TooManySamples`] where fewer are kept.
    pub fn sample<X: Inputs + ?Sized>(&self, x: &X, count: usize, seed: u64) -> Result<NumericArray, Error> {
        let data = self.data(x.to_array()?, None)?;
        let question =
            Question { samples: count, draws_apart: true, seed, memory: MEMORY, ..Question::default() };
        Ok(self.model.sample(&data, &question)?)
    }

    /// Scores on m inputs with m targets (numbers, counts, or classes as whole numbers), beside those of a simple competitor.
    ///
    /// # Errors
    /// As [`Self::predict`]; targets of another number or kind.
    pub fn evaluate<X: Inputs + ?Sized, Y: Labels + ?Sized>(
        &self,
        x: &X,
        y: &Y,
    ) -> Result<Evaluation, Error> {
        Ok(self.model.evaluate(&self.judged(x.to_array()?, y.to_numbers()?)?, &Question::default())?)
    }

    /// As [`Self::evaluate`], for labels that a process tells apart by their texts ([`GpBuilder::classify`](crate::GpBuilder::classify)).
    ///
    /// # Errors
    /// As [`Self::evaluate`]; labels that the model does not know.
    pub fn evaluate_labels<X: Inputs + ?Sized, L: Display>(
        &self,
        x: &X,
        labels: &[L],
    ) -> Result<Evaluation, Error> {
        Ok(self.model.evaluate(&self.labelled(x.to_array()?, labels)?, &Question::default())?)
    }

    /// The same model with predictions that are calibrated by m validation rows, as [`Model::calibrate`]: targets as for [`Self::evaluate`].
    ///
    /// # Errors
    /// As [`Self::evaluate`]; for fewer than 19 rows.
    pub fn calibrate<X: Inputs + ?Sized, Y: Labels + ?Sized>(&self, x: &X, y: &Y) -> Result<Self, Error> {
        Ok(Self::of(self.model.calibrate(&self.judged(x.to_array()?, y.to_numbers()?)?)?))
    }

    /// As [`Self::calibrate`], for labels as for [`Self::evaluate_labels`].
    ///
    /// # Errors
    /// As [`Self::calibrate`].
    pub fn calibrate_labels<X: Inputs + ?Sized, L: Display>(
        &self,
        x: &X,
        labels: &[L],
    ) -> Result<Self, Error> {
        Ok(Self::of(self.model.calibrate(&self.labelled(x.to_array()?, labels)?)?))
    }

    /// The same model with k further rows of inputs and targets: exact processes only, whose hyperparameters stay. Cost: as [`Model::continued`].
    ///
    /// # Errors
    /// [`ModelError::Usage`] for other models; as [`GpBuilder::fit`](crate::GpBuilder::fit).
    pub fn update<R: Rows + ?Sized, Y: Rows + ?Sized>(&self, x: &R, y: &Y) -> Result<Self, Error> {
        let process = self.process()?;
        process.check_continued()?;
        let table = self.table(x.to_array()?, Some(targets_of(y)?))?;
        let new = process.new_rows(&table, &(0..table.rows()).collect::<Vec<_>>())?;
        Ok(Self::of(Model::clone(&self.model).continued(new, CalibrateName::default())?))
    }

    /// Samples from the posterior of a process that are functions: they can be evaluated anywhere, again and again, and agree with each other. Without noise, in the
    /// target's units.
    ///
    /// Methods that keep samples give the first `count` of theirs; exact posteriors solve for them (`n³/3` flops and `16 n²` bytes, at most 8 GiB), inducing points draw
    /// them (`2m²` flops each).
    ///
    /// # Errors
    /// [`ModelError::TooManySamples`] where fewer are kept; [`ModelError::TooManySampleRows`] before an exact posterior of too many rows is solved again;
    /// [`GpError::Features`](crate::gp::GpError::Features) for kernels without random features; [`Error::NoFunctions`].
    pub fn functions(&self, count: usize, seed: u64) -> Result<Functions, Error> {
        let predictor = self.process()?.predictor();
        if let Some(kept) = predictor.stored_samples().filter(|kept| count > *kept) {
            return Err(ModelError::TooManySamples { wanted: count, kept }.into());
        }
        let streams = Streams::new(seed).child("posterior/functions", 0);
        let drawn = match count {
            0 => None,
            _ => {
                let drawn = Model::clone(&self.model).into_predictor().functions(count, streams);
                Some(drawn.ok_or(Error::NoFunctions)??)
            }
        };
        Ok(Functions { fitted: self.clone(), count, drawn })
    }

    fn process(&self) -> Result<Process<'_>, Error> {
        let none = || ModelError::Usage("the model is a network, and this is for Gaussian processes".into());
        Ok(self.model.process().ok_or_else(none)?)
    }

    /// Inputs as the model is asked about them; a process also with targets, of which there are so many.
    fn data(&self, x: NumericArray, targets: Option<(usize, Values)>) -> Result<ModelData, Error> {
        match self.model.process() {
            Some(_) => Ok(ModelData::of_table(self.table(x, targets)?)?),
            None => Ok(ModelData::new("the inputs", x, None)),
        }
    }

    /// Rows of inputs as a table with the columns of the fit.
    fn table(&self, x: NumericArray, targets: Option<(usize, Values)>) -> Result<Table, Error> {
        let process = self.process()?;
        let schema = &process.inputs().schema;
        let mut table = table_of(schema, &x)?;
        if let Some((targets, values)) = targets {
            if targets != x.examples() {
                return Err(Error::Targets { rows: x.examples(), targets });
            }
            table.columns.push(Column { name: schema.target.clone(), values });
        }
        Ok(table)
    }

    /// Inputs of a process with labels by their texts.
    fn labelled<L: Display>(&self, x: NumericArray, labels: &[L]) -> Result<ModelData, Error> {
        self.process()?;
        self.data(x, Some((labels.len(), texts(labels))))
    }

    /// Inputs with targets.
    fn judged(&self, x: NumericArray, y: NumericArray) -> Result<ModelData, Error> {
        let (rows, targets, values) = (x.examples(), y.examples(), y.to_f64());
        let width = y.example_shape().iter().product::<usize>();
        if rows != targets {
            return Err(Error::Targets { rows, targets });
        }
        match self.model.process() {
            Some(_) if width != 1 => Err(Error::TargetColumns { found: width }),
            Some(_) => self.data(x, Some((targets, Values::Numeric(values)))),
            None => {
                let truth = match self.model.predicts() {
                    PredictedKind::Classes => {
                        Truth::Classes(classes(&values, self.model.class_names().len())?)
                    }
                    PredictedKind::Events | PredictedKind::Values => Truth::Values { values, width },
                };
                Ok(ModelData::new("the inputs", x, Some(truth)))
            }
        }
    }

    /// Refuses numbers of another kind, as `posterior predict` does; [`Self::model`] predicts them all the same.
    fn predicted(&self, data: &ModelData) -> Result<Predictions, Error> {
        self.model.check_inputs(data, false)?;
        let found = self.model.predictive(data, &Question::default())?;
        Ok(Predictions::new(self.model.clone(), found, data.length()))
    }
}

/// Whole numbers below the number of classes.
fn classes(values: &[f64], count: usize) -> Result<Vec<usize>, ModelError> {
    let class = |&value: &f64| {
        let whole = value >= 0.0 && value.fract() == 0.0 && value < count as f64;
        let problem = || ModelError::Request(format!("{value} is no class from 0 to {}", count.max(1) - 1));
        whole.then_some(value as usize).ok_or_else(problem)
    };
    values.iter().map(class).collect()
}

/// Rows of inputs as a table with the columns of a fit.
fn table_of(schema: &Schema, x: &NumericArray) -> Result<Table, Error> {
    let (names, columns) = (schema.feature_names(), schema.text_columns());
    if !columns.is_empty() {
        return Err(Error::ByTable { columns });
    }
    let (width, values) = (x.example_shape().iter().product::<usize>(), x.to_f64());
    if width != names.len() {
        return Err(Error::Columns { expected: names.len(), found: width });
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::NotFinite { row: place / width, column: place % width, value: values[place] });
    }
    let names = names.into_iter().enumerate();
    let cells = |j: usize| values.iter().skip(j).step_by(width).copied().collect();
    Ok(Table::new("the inputs", names.map(|(j, name)| Column::numeric(name, cells(j))).collect()))
}

/// Samples from a posterior, as functions.
#[derive(Debug)]
pub struct Functions {
    fitted: Fitted,
    count: usize,
    /// None where there are none.
    drawn: Option<Arc<dyn DrawnFunctions>>,
}

impl Functions {
    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All functions at m rows of inputs (m x D): m x count, in the target's units. Equal inputs give equal values, whenever they are asked for.
    ///
    /// # Errors
    /// Rows of another width, numbers that are not finite.
    pub fn values<R: Rows + ?Sized>(&self, x: &R) -> Result<Mat<f64>, Error> {
        let process = self.fitted.process()?;
        let standard = &process.inputs().standardisation;
        let x = process.standard_inputs(&self.fitted.table(x.to_array()?, None)?)?;
        let values = match &self.drawn {
            Some(drawn) => drawn.values(x.as_ref())?,
            None => Mat::zeros(x.nrows(), 0),
        };
        let back =
            |m: MatRef<'_, f64>| Mat::from_fn(m.nrows(), self.count, |i, j| standard.target_back(m[(i, j)]));
        Ok(back(values.as_ref()))
    }
}
