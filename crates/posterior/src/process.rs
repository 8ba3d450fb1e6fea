//! Gaussian processes in a few lines.

use crate::rows::{Ragged, Rows};
use faer::{Mat, MatRef};
use posterior_data::{Column, DataError, ReadOptions, Schema, Split, Table, Values, read_table};
use posterior_gp::{GpError, MeanForm};
use posterior_kernels::KernelTextError;
use posterior_linalg::random::Streams;
use posterior_models::{
    DrawnFunctions, FitRequest, Method, Model, ModelError, Predictions, Process, StoreError,
};
use posterior_optim::Signal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The target's name in tables that are made of plain numbers.
const TARGET: &str = "y";

/// Gaussian processes: [`Gp::builder`].
#[derive(Clone, Copy, Debug)]
pub struct Gp;

impl Gp {
    /// A process with the defaults of `posterior fit gp`: a Matérn 3/2 kernel with a lengthscale for each column, learned by the evidence, and the
    /// method that suits the number of rows.
    pub fn builder() -> GpBuilder {
        GpBuilder { kernel: None, request: FitRequest::default() }
    }
}

/// What a process is to be; all but the data has a default.
#[derive(Clone, Debug)]
pub struct GpBuilder {
    kernel: Option<String>,
    request: FitRequest,
}

/// Why a process could not be fitted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// Rows of different lengths.
    #[error(transparent)]
    Ragged(#[from] Ragged),
    /// As many targets as rows are needed.
    #[error("there are {rows} rows of inputs and {targets} targets")]
    Targets {
        /// Rows of inputs.
        rows: usize,
        /// Targets.
        targets: usize,
    },
    /// Inputs of another width.
    #[error("the process was fitted to {expected} columns, these inputs have {found}")]
    Columns {
        /// Columns at the fit.
        expected: usize,
        /// Columns given.
        found: usize,
    },
    /// Draws as functions of a process that has none.
    #[error(
        "draws of a process of generalised variational inference are joint draws at rows that are named together (`predict --samples`, `sample`), not functions"
    )]
    NoFunctions,
    /// A number that is NaN or infinite.
    #[error("row {row}, column {column} of the inputs is {value}: remove or fill in such rows first")]
    NotFinite {
        /// Its row, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// What it is.
        value: f64,
    },
    /// A matrix for a process that was fitted to columns of text.
    #[error("the process was fitted to columns of text ({}), which no matrix has: ask it by a table file", columns.join(", "))]
    ByTable {
        /// The columns of text.
        columns: Vec<String>,
    },
    /// The kernel's text.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The model.
    #[error(transparent)]
    Model(Box<ModelError>),
}

impl From<ModelError> for ProcessError {
    fn from(error: ModelError) -> Self {
        Self::Model(error.into())
    }
}

impl From<DataError> for ProcessError {
    fn from(error: DataError) -> Self {
        ModelError::from(error).into()
    }
}

impl From<GpError> for ProcessError {
    fn from(error: GpError) -> Self {
        ModelError::from(error).into()
    }
}

impl GpBuilder {
    /// A kernel by its text, such as `matern32(ard) * periodic(x3) + linear`; columns of plain matrices are called `x1`, `x2`, ... A text that is no
    /// kernel is an error of the fit.
    pub fn kernel(mut self, text: &str) -> Self {
        self.kernel = Some(text.into());
        self
    }

    /// The prior mean.
    pub fn mean(mut self, mean: MeanForm) -> Self {
        self.request.mean = mean;
        self
    }

    /// The method, by its name or with its options.
    pub fn method(mut self, method: impl Into<Method>) -> Self {
        self.request.method = method.into();
        self
    }

    /// The column of tables that is predicted, by name or number (from 1).
    pub fn target(mut self, name: &str) -> Self {
        self.request.selection.target = name.into();
        self
    }

    /// The seed of everything random; 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// Most time of the fit.
    pub fn time_budget(mut self, time: Duration) -> Self {
        self.request.time_budget = Some(time.as_secs_f64());
        self
    }

    /// Most bytes that the fit may need; what needs more is refused before the work.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.request.memory = bytes;
        self
    }

    /// Everything else that a fit can be told.
    pub fn request_mut(&mut self) -> &mut FitRequest {
        &mut self.request
    }

    fn request(self) -> Result<FitRequest, ProcessError> {
        let mut request = self.request;
        if let Some(text) = self.kernel {
            request.kernel = text.parse()?;
        }
        Ok(request)
    }

    /// Inputs with their targets as a table, and what is asked of it.
    pub(crate) fn of_rows<R: Rows + ?Sized>(
        self,
        x: &R,
        targets: usize,
        values: Values,
    ) -> Result<(Table, FitRequest), ProcessError> {
        let x = x.to_matrix()?;
        if x.nrows() != targets {
            return Err(ProcessError::Targets { rows: x.nrows(), targets });
        }
        let mut table = inputs(&x);
        table.columns.push(Column { name: TARGET.into(), values });
        let mut request = self.request()?;
        request.selection.target = TARGET.into();
        Ok((table, request))
    }

    /// A table file, and what is asked of it.
    pub(crate) fn of_file(self, path: &Path) -> Result<(Table, FitRequest), ProcessError> {
        let request = self.request()?;
        let reading = ReadOptions { text: request.text, ..ReadOptions::limited(request.memory) };
        Ok((read_table(path, &reading)?, request))
    }

    /// Fits to n rows of inputs (n x D) and n targets. Memory, method and cost: as [`Model::fit`], whose plan is [`Model::plan_fit`].
    ///
    /// # Errors
    /// Rows that are not of equal length or not as many as targets, numbers that are not finite, and those of [`Model::fit`].
    pub fn fit<R: Rows + ?Sized>(self, x: &R, y: &[f64]) -> Result<FittedGp, ProcessError> {
        let (table, request) = self.of_rows(x, y.len(), Values::Numeric(y.to_vec()))?;
        fitted(&table, &request)
    }

    /// Fits to a table file (CSV, TSV, Parquet, NumPy; compressed or not), whose target [`Self::target`] names.
    ///
    /// # Errors
    /// Those of reading the table and of [`Model::fit`].
    pub fn fit_file(self, path: impl AsRef<Path>) -> Result<FittedGp, ProcessError> {
        let (table, request) = self.of_file(path.as_ref())?;
        fitted(&table, &request)
    }
}

fn fitted(table: &Table, request: &FitRequest) -> Result<FittedGp, ProcessError> {
    let rows = Split::all(table.rows()).train;
    let model = Model::fit(table, &rows, request, &mut |_, _| Signal::Continue)?;
    Ok(FittedGp { model })
}

/// Inputs as a table with columns `x1`, `x2`, ...
fn inputs(x: &Mat<f64>) -> Table {
    let column = |j: usize| Column::numeric(format!("x{}", j + 1), x.col(j).iter().copied().collect());
    Table::new("the inputs", (0..x.ncols()).map(column).collect())
}

/// What a file of networks is not.
pub(crate) fn no_process() -> ModelError {
    ModelError::Request("the model is a network, and no Gaussian process".into())
}

/// Rows of inputs as a table with the columns of a fit.
pub(crate) fn table_of(schema: &Schema, x: &Mat<f64>) -> Result<Table, ProcessError> {
    let (names, columns) = (schema.feature_names(), schema.text_columns());
    if !columns.is_empty() {
        return Err(ProcessError::ByTable { columns });
    }
    if x.ncols() != names.len() {
        return Err(ProcessError::Columns { expected: names.len(), found: x.ncols() });
    }
    let mut places = (0..x.nrows()).flat_map(|row| (0..x.ncols()).map(move |column| (row, column)));
    if let Some((row, column)) = places.find(|&place| !x[place].is_finite()) {
        return Err(ProcessError::NotFinite { row, column, value: x[(row, column)] });
    }
    let columns = names.into_iter().enumerate();
    let column = |(j, name): (usize, String)| Column::numeric(name, x.col(j).iter().copied().collect());
    Ok(Table::new("the inputs", columns.map(column).collect()))
}

/// A fitted process.
#[derive(Clone, Debug)]
pub struct FittedGp {
    model: Model,
}

impl FittedGp {
    /// Opens a saved process.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with the file; models of classes, counts and outliers are [`FittedLabels`](crate::FittedLabels).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let model = Model::load(path)?;
        match model.process().and_then(|own| own.output().gaussian()) {
            Some(_) => Ok(Self { model }),
            None => Err(StoreError::Corrupt {
                path: path.into(),
                reason: "its target is not numbers with Gaussian noise".into(),
            }),
        }
    }

    /// The model: what was found and chosen, its file, scores.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Means and standard deviations at m rows of inputs (m x D), in the target's units.
    ///
    /// # Errors
    /// Rows of another width, numbers that are not finite.
    pub fn predict<R: Rows + ?Sized>(&self, x: &R) -> Result<Predictions, ProcessError> {
        Ok(self.process()?.predict(&self.table(&x.to_matrix()?)?, None)?)
    }

    /// The same for the rows of a table file with the columns of the fit.
    ///
    /// # Errors
    /// Those of reading the table, missing columns, bad cells.
    pub fn predict_file(&self, path: impl AsRef<Path>) -> Result<Predictions, ProcessError> {
        let table = read_table(path.as_ref(), &ReadOptions::default())?;
        Ok(self.process()?.predict(&table, None)?)
    }

    fn process(&self) -> Result<Process<'_>, ProcessError> {
        Ok(self.model.process().ok_or_else(no_process)?)
    }

    fn table(&self, x: &Mat<f64>) -> Result<Table, ProcessError> {
        table_of(&self.process()?.inputs().schema, x)
    }

    /// Samples from the posterior that are functions: they can be evaluated anywhere, again and again, and agree with each other. Without noise, in the
    /// target's units.
    ///
    /// Methods that keep samples give the first `count` of theirs; exact posteriors solve for them (`n³/3` flops and `16 n²` bytes, at most 8 GiB), inducing points draw
    /// them (`2m²` flops each).
    ///
    /// # Errors
    /// [`ModelError::TooManySamples`] where fewer are kept; [`ModelError::TooManySampleRows`] before an exact posterior of too many rows is solved again;
    /// [`GpError::Features`] for kernels without random features.
    pub fn functions(&self, count: usize, seed: u64) -> Result<Functions, ProcessError> {
        let predictor = self.process()?.predictor();
        if let Some(kept) = predictor.stored_samples().filter(|kept| count > *kept) {
            return Err(ModelError::TooManySamples { wanted: count, kept }.into());
        }
        let streams = Streams::new(seed).child("posterior/functions", 0);
        let drawn = match count {
            0 => None,
            _ => {
                let drawn = self.model.clone().into_predictor().functions(count, streams);
                Some(drawn.ok_or(ProcessError::NoFunctions)??)
            }
        };
        Ok(Functions { process: self.clone(), count, drawn })
    }
}

/// Samples from a posterior, as functions.
#[derive(Debug)]
pub struct Functions {
    process: FittedGp,
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
    pub fn values<R: Rows + ?Sized>(&self, x: &R) -> Result<Mat<f64>, ProcessError> {
        let process = self.process.process()?;
        let standard = &process.inputs().standardisation;
        let table = self.process.table(&x.to_matrix()?)?;
        let x = process.standard_inputs(&table)?;
        let values = match &self.drawn {
            Some(drawn) => drawn.values(x.as_ref())?,
            None => Mat::zeros(x.nrows(), 0),
        };
        let back =
            |m: MatRef<'_, f64>| Mat::from_fn(m.nrows(), self.count, |i, j| standard.target_back(m[(i, j)]));
        Ok(back(values.as_ref()))
    }
}
