//! Gaussian processes in a few lines.

use crate::control::Control;
use crate::error::Error;
use crate::fitted::Fitted;
use crate::rows::{Rows, targets_of};
use posterior_data::{Column, ReadOptions, Split, Table, TextOptions, Values, read_table};
use posterior_gp::MeanForm;
use posterior_kernels::{KernelExpression, KernelObject, KernelTextError};
use posterior_models::options::{CalibrateName, LikelihoodName};
use posterior_models::{
    FitRequest, FitStage, Method, Model, ModelError, Observed, StoreError, choose_likelihood,
};
use posterior_optim::{CancelToken, Progress, Signal};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The target's name in tables that are made of plain numbers.
const TARGET: &str = "y";

/// Gaussian processes: [`Gp::builder`].
#[derive(Clone, Copy, Debug)]
pub struct Gp;

impl Gp {
    /// A process with the defaults of `posterior fit`: a Matérn 3/2 kernel with a lengthscale for each column, learned by the evidence, and the
    /// method that suits the number of rows.
    pub fn builder() -> GpBuilder {
        GpBuilder {
            kernel: Ok(None),
            request: FitRequest::default(),
            text: TextOptions::default(),
            control: Control::default(),
            save_to: None,
        }
    }
}

/// Is told of every step of a fit.
type OnProgress = dyn Fn(&Progress, &FitStage) -> Signal + Send + Sync;

/// What a process is to be; all but the data has a default.
#[derive(Clone, Debug)]
pub struct GpBuilder {
    /// None for that of the request.
    kernel: Result<Option<KernelExpression>, KernelTextError>,
    request: FitRequest,
    text: TextOptions,
    control: Control<OnProgress>,
    save_to: Option<PathBuf>,
}

impl GpBuilder {
    /// A kernel by its text, such as `matern32(ard) * periodic(x3) + linear`; columns of plain matrices are called `x1`, `x2`, ... A text that is no
    /// kernel is an error of the fit.
    pub fn kernel(mut self, text: &str) -> Self {
        self.kernel = text.parse().map(Some);
        self
    }

    /// A kernel of the caller's own, on standardised columns. Every method takes it; those that draw functions need its [`features`](crate::kernels::Kernel::features).
    ///
    /// Models with it are saved once a reader is [registered](crate::kernels::register) under its name. A name that no kernel can have is an error of the fit.
    pub fn kernel_object(mut self, kernel: Arc<dyn KernelObject>) -> Self {
        self.kernel = KernelExpression::object(kernel).map(Some);
        self
    }

    /// The prior mean.
    pub fn mean(mut self, mean: MeanForm) -> Self {
        self.request.prior.mean = mean;
        self
    }

    /// The method, by its name or with its options.
    pub fn method(mut self, method: impl Into<Method>) -> Self {
        self.request.method = method.into();
        self
    }

    /// The column of tables that is predicted, by name or number (from 1).
    pub fn target(mut self, name: &str) -> Self {
        self.request.columns.target = name.into();
        self
    }

    /// How delimited text is read; as it looks unless set.
    pub fn text(mut self, text: TextOptions) -> Self {
        self.text = text;
        self
    }

    /// The seed of everything random; 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// Most time of the fit.
    pub fn time_budget(mut self, time: Duration) -> Self {
        self.request.limits.time = Some(time.as_secs_f64());
        self
    }

    /// Most bytes that the fit may need; what needs more is refused before the work.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.request.limits.memory = bytes;
        self
    }

    /// Whether rows that the fit is judged by calibrate its predictions; where they say so unless told otherwise.
    pub fn calibrate(mut self, calibrate: CalibrateName) -> Self {
        self.request.validation.calibrate = calibrate;
        self
    }

    /// Is told of every step of the fit. Its [`Signal::Stop`] ends the part of the fit that is under way, and what was found by then is kept.
    pub fn progress(
        mut self,
        observer: impl Fn(&Progress, &FitStage) -> Signal + Send + Sync + 'static,
    ) -> Self {
        self.control.progress = Some(Arc::new(observer));
        self
    }

    /// Ends the fit with [`ModelError::Interrupted`] once the token is cancelled, on any thread.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.control.cancel = token.clone();
        self
    }

    /// Saves the model to a file as soon as it is fitted. A kernel without a reader is refused before the fit begins.
    pub fn save_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.save_to = Some(path.into());
        self
    }

    /// Everything else that a fit can be told.
    pub fn request_mut(&mut self) -> &mut FitRequest {
        &mut self.request
    }

    /// The request that the fit is made of: everything but the data.
    ///
    /// # Errors
    /// [`Error::Kernel`]; [`StoreError::NoReader`] for a kernel that [`GpBuilder::save_to`] cannot save.
    pub fn request(&self) -> Result<FitRequest, Error> {
        let mut request = self.request.clone();
        if let Some(kernel) = self.kernel.clone()? {
            request.prior.kernel = kernel;
        }
        match request.prior.kernel.unregistered().filter(|_| self.save_to.is_some()) {
            Some(kernel) => Err(StoreError::NoReader { kernel: kernel.into() }.into()),
            None => Ok(request),
        }
    }

    /// Fits to n rows of inputs (n x D) and n targets. Memory, method and cost: as [`Model::fit`], whose plan is [`Model::plan_fit`].
    ///
    /// # Errors
    /// Rows that are not of equal length or not as many as targets, numbers that are not finite, and those of [`Model::fit`].
    pub fn fit<R: Rows + ?Sized, Y: Rows + ?Sized>(self, x: &R, y: &Y) -> Result<Fitted, Error> {
        let (targets, values) = targets_of(y)?;
        let (table, request) = self.of_rows(x, targets, values)?;
        self.numbers(&table, &request)
    }

    /// Fits to a table file (CSV, TSV, Parquet, NumPy; compressed or not), whose target [`Self::target`] names.
    ///
    /// # Errors
    /// Those of reading the table and of [`Model::fit`].
    pub fn fit_file(self, path: impl AsRef<Path>) -> Result<Fitted, Error> {
        let (table, request) = self.of_file(path.as_ref())?;
        self.numbers(&table, &request)
    }

    /// Learns classes from n rows of inputs (n x D) and n labels, which are told apart by their texts; [`Fitted::class_names`] has their order. Cost and memory: as [`Model::fit_observed`], whose plan is
    /// [`Model::plan_observed`].
    ///
    /// # Errors
    /// As [`GpBuilder::fit`]; one class only, or as many as rows.
    pub fn classify<R: Rows + ?Sized, L: Display>(self, x: &R, labels: &[L]) -> Result<Fitted, Error> {
        let (table, request) = self.of_rows(x, labels.len(), texts(labels))?;
        self.labels(&table, request, LikelihoodName::Categorical)
    }

    /// Learns counts, whole numbers from 0 that scatter at least as much as a Poisson process, from n rows of inputs (n x D).
    ///
    /// # Errors
    /// As [`GpBuilder::fit`].
    pub fn count<R: Rows + ?Sized>(self, x: &R, counts: &[u32]) -> Result<Fitted, Error> {
        let values = Values::Numeric(counts.iter().map(|&count| f64::from(count)).collect());
        let (table, request) = self.of_rows(x, counts.len(), values)?;
        self.labels(&table, request, LikelihoodName::NegativeBinomial)
    }

    /// Learns classes, counts or outliers from a table file, whose target [`GpBuilder::target`] names: as the request says (`request_mut().output.likelihood`), or as the target looks.
    ///
    /// # Errors
    /// Those of reading the table; a target that is numbers with Gaussian noise, which [`GpBuilder::fit_file`] takes.
    pub fn fit_labels_file(self, path: impl AsRef<Path>) -> Result<Fitted, Error> {
        let (table, request) = self.of_file(path.as_ref())?;
        self.labels(&table, request, LikelihoodName::Auto)
    }

    /// Inputs with their targets as a table, and what is asked of it.
    fn of_rows<R: Rows + ?Sized>(
        &self,
        x: &R,
        targets: usize,
        values: Values,
    ) -> Result<(Table, FitRequest), Error> {
        let (rows, columns) = x.size()?;
        if rows != targets {
            return Err(Error::Targets { rows, targets });
        }
        let column =
            |j: usize| Column::numeric(format!("x{}", j + 1), (0..rows).map(|i| x.number(i, j)).collect());
        let mut table = Table::new("the inputs", (0..columns).map(column).collect());
        table.columns.push(Column { name: TARGET.into(), values });
        let mut request = self.request()?;
        request.columns.target = TARGET.into();
        Ok((table, request))
    }

    /// A table file, and what is asked of it.
    fn of_file(&self, path: &Path) -> Result<(Table, FitRequest), Error> {
        let request = self.request()?;
        let reading = ReadOptions { text: self.text, ..ReadOptions::limited(request.limits.memory) };
        Ok((read_table(path, &reading)?, request))
    }

    /// Fits numbers with Gaussian noise to all rows.
    fn numbers(&self, table: &Table, request: &FitRequest) -> Result<Fitted, Error> {
        let rows = Split::all(table.rows()).train;
        let observer = &mut |progress: &Progress, stage: &FitStage| self.told(progress, stage);
        self.fitted(Model::fit(table, &rows, request, observer))
    }

    /// Fits to all rows; under a likelihood where none is asked for.
    fn labels(&self, table: &Table, mut request: FitRequest, usual: LikelihoodName) -> Result<Fitted, Error> {
        if request.output.likelihood == LikelihoodName::Auto {
            request.output.likelihood = usual;
        }
        let rows = Split::all(table.rows()).train;
        let selection = &request.columns;
        let chosen =
            choose_likelihood(table, &selection.target, &rows, request.output.likelihood, selection)?;
        let observed = Observed::from_table(table, &rows, &request, chosen)?;
        let observer = &mut |progress: &Progress, stage: &FitStage| self.told(progress, stage);
        self.fitted(Model::fit_observed(observed, &request, observer))
    }

    fn told(&self, progress: &Progress, stage: &FitStage) -> Signal {
        self.control.signal(|observer| observer(progress, stage))
    }

    fn fitted(&self, model: Result<Model, ModelError>) -> Result<Fitted, Error> {
        let fitted = Fitted::of(self.control.heed(model)?);
        if let Some(path) = &self.save_to {
            fitted.save(path)?;
        }
        Ok(fitted)
    }
}

/// Labels by their texts.
pub(crate) fn texts<L: Display>(labels: &[L]) -> Values {
    Values::Text(labels.iter().map(|label| Some(label.to_string())).collect())
}
