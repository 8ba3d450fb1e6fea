//! From a table to a model.

use super::deep;
use super::maps::densest_place;
use super::prepared::{FitStage, Prepared, saved_plan, targets};
use super::prepared_table::{PreparedTable, in_memory, not_from_disk};
use super::scalable::checkpoint::begin_anew;
use super::scalable::{
    ScalableFit, ScalablePlan, ScalableSummary, fit_from_disk, fit_scalable, set_hyperparameters,
    whole_posterior,
};
use super::{
    CheckScores, FitCheck, FitRecord, FitSummary, Hyperparameter, ModelError, ProcessRecord, TableSource,
};
use crate::calibration::{self, Calibration};
use crate::evaluation::funnel_in_words;
use crate::inputs::TableInputs;
use crate::method::{Chosen, choose, unused_by_exact};
use crate::model::Model;
use crate::options::{CalibrateName, EvidenceOptions, ExactOptions};
use crate::output::{GaussianOutput, Output};
use crate::rows::{CheckedOn, LeftOut, TrainingRows};
use crate::text::{time, work};
use crate::{FitRequest, Method, Predictor};
use faer::Mat;
use posterior_data::Table;
use posterior_gp::exact::{Criterion, ExactPosterior, Plan, fit};
use posterior_gp::{GpError, Observations, RowSource};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_metrics::{Funnel, Gaussians};
use posterior_notes::fixes::{EXACT, LIKELIHOOD_STUDENT_T};
use posterior_optim::{Observer, Reason};
use std::sync::Arc;
use std::time::Instant;

impl Model {
    /// What a fit to `rows` rows with inputs of these names would need, in words and bytes.
    pub fn plan_fit(request: &FitRequest, rows: usize, names: &[String]) -> (String, u64) {
        let (text, bytes) = Self::plan_of_function(request, rows, names);
        if !request.learns_noise_of_places() {
            return (text, bytes);
        }
        let (noise, beside) = super::noise::plan_in_words(request, rows, names.len());
        (format!("{text}; {noise}"), bytes.max(beside))
    }

    /// The same without the noise of places.
    fn plan_of_function(request: &FitRequest, rows: usize, names: &[String]) -> (String, u64) {
        let features = names.len();
        let chosen = choose(request, rows, names);
        let seconds = super::rates::in_words(request, &chosen.method, rows, names);
        let settings = chosen.method.settings();
        if !settings.leaves_one_out() {
            let plan = ScalablePlan::new(request, &chosen.method, rows, features);
            let instead = instead_in_words(request, &chosen.method, names, rows);
            return (format!("{plan} ({}){seconds}{instead}", chosen.why), plan.peak_bytes);
        }
        let plan = settings.plan((request, &chosen.method), rows, features);
        let steps = chosen.method.evidence().map_or(0, EvidenceOptions::most_steps);
        let text = format!(
            "exact Gaussian process, {plan} of memory and {} for each of at most {} evaluations or so{seconds}",
            work(plan.flops_per_evaluation),
            steps.saturating_mul(request.restarts()),
        );
        (text, plan.peak_bytes)
    }

    /// Learns from the given rows of a table: schema, standardisation, hyperparameters, posterior.
    ///
    /// The observer is told each step of everything that happens and may end it; the model is then the best so far, and its summary says `interrupted`.
    ///
    /// # Errors
    /// [`ModelError`]: bad cells, a kernel that does not fit the table, not enough memory, no start that can be evaluated.
    pub fn fit(
        table: &Table,
        rows: &[usize],
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        check_noise(request)?;
        let prepared = Prepared::from_table(table, rows, request)?;
        Self::fit_prepared(prepared, request, observer)
    }

    /// As [`Model::fit`], for rows that are prepared.
    ///
    /// # Errors
    /// As [`Model::fit`]; [`ModelError::Interrupted`] when hyperparameters of a large table were not found yet.
    pub fn fit_prepared(
        prepared: Prepared,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        let started = Instant::now();
        check_noise(request)?;
        in_memory(&request.method)?;
        begin_anew(request)?;
        check_weights(&prepared.data, request, &prepared.schema.feature_names())?;
        let mut prepared = prepared;
        let mut noise = None;
        let later: FitRequest;
        let mut request = request;
        if request.learns_noise_of_places() {
            let names = prepared.schema.feature_names();
            let (own, summary, data) = super::noise::learn(request, &names, prepared.data, observer)?;
            prepared.data = data;
            noise = Some((Arc::new(own), summary));
            // One budget for all of it.
            let spent = started.elapsed().as_secs_f64();
            let time_budget = request.time_budget.map(|s| (s - spent).max(f64::MIN_POSITIVE));
            later = FitRequest { time_budget, ..request.clone() };
            request = &later;
        }
        let (rows, features) = (prepared.data.rows(), prepared.data.inputs().ncols());
        let chosen = choose(request, rows, &prepared.schema.feature_names());
        let settings = chosen.method.settings();
        let plan = settings.plan((request, &chosen.method), rows, features);
        let mut header = begun(&prepared, rows, (request, &chosen, plan))?;
        header.inputs.densest = densest(&header.inputs, || Ok(prepared.data.inputs().to_owned()))?;
        if let Some((process, summary)) = noise {
            header.output = GaussianOutput { noise: Some(summary), process: Some(process) };
        }
        let training = prepared.training.clone();
        let learned = settings.fit(prepared, &mut header, observer)?;
        header.ended(learned, training, started)
    }

    /// As [`Model::fit_prepared`], for rows in memory or in a file, by methods that look at some rows at a time ([`Method::disk`]) where they are in a file.
    ///
    /// # Errors
    /// As [`Model::fit_prepared`].
    pub fn fit_table(
        prepared: PreparedTable,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        let prepared = match prepared {
            PreparedTable::Memory(prepared) => return Self::fit_prepared(prepared, request, observer),
            PreparedTable::Disk(prepared) => prepared,
        };
        let started = Instant::now();
        check_noise(request)?;
        begin_anew(request)?;
        let (rows, [features, _]) = (prepared.data.rows(), prepared.data.widths());
        let chosen = choose(request, rows, &prepared.schema.feature_names());
        let plan = ScalablePlan::from_disk(request, &chosen.method, rows, features)
            .ok_or_else(|| not_from_disk(&chosen.method))?
            .as_exact();
        let mut header = begun(&prepared, rows, (request, &chosen, plan))?;
        header.inputs.densest = densest(&header.inputs, || prepared.data.inputs())?;
        let training = prepared.training.clone();
        let (fitted, residuals) = fit_from_disk(prepared, request, &chosen.method, observer)?;
        let predictor = recorded(&mut header, fitted);
        header.ended((predictor, residuals), training, started)
    }
}

/// What a fit leaves behind: its predictor, and standardised residuals of the rows that it was judged on.
pub(crate) type Learned = Result<(Arc<dyn Predictor>, Vec<f64>), ModelError>;

/// What is known of a model while it is fitted.
pub(crate) struct Draft<'a> {
    request: &'a FitRequest,
    chosen: &'a Chosen,
    inputs: TableInputs,
    output: GaussianOutput,
    method: String,
    rows: usize,
    hyperparameters: Vec<Hyperparameter>,
    noise_floor: f64,
    cholesky: CholeskyInfo,
    fit: FitSummary,
}

impl Draft<'_> {
    /// The model, with the predictor that came of it and the residuals that it was judged by.
    fn ended(
        mut self,
        (predictor, residuals): (Arc<dyn Predictor>, Vec<f64>),
        training: TrainingRows,
        started: Instant,
    ) -> Result<Model, ModelError> {
        let request = self.request;
        let calibration = recalibrate(request, &mut self.fit, residuals)?;
        self.fit.seconds = started.elapsed().as_secs_f64();
        let Self { inputs, output, .. } = self;
        let record = ProcessRecord {
            method: self.method,
            solver: None,
            rows: self.rows,
            kernel: request.kernel.clone(),
            mean: request.mean,
            hyperparameters: self.hyperparameters,
            noise_floor: Some(self.noise_floor),
            cholesky: Some(self.cholesky),
            seed: request.seed,
            fit: FitRecord::Gaussian(Box::new(self.fit)),
            streamed: None,
            continued: Vec::new(),
        };
        let output = Output::Gaussian(output);
        Ok(Model::of_table(TableSource { inputs, output, record }, predictor, calibration, training))
    }
}

/// What is known of a fit before it begins; refuses a recalibration that its rows do not allow.
fn begun<'a, D>(
    prepared: &Prepared<D>,
    rows: usize,
    (request, chosen, plan): (&'a FitRequest, &'a Chosen, Plan),
) -> Result<Draft<'a>, ModelError> {
    let name = chosen.method.name();
    let choice = format!("{name}, {}", chosen.why);
    let evidence = chosen.method.evidence();
    let header = Draft {
        request,
        chosen,
        inputs: TableInputs {
            schema: prepared.schema.clone(),
            standardisation: prepared.standardisation.clone(),
            input_ranges: prepared.input_ranges.clone(),
            densest: None,
        },
        output: GaussianOutput::default(),
        method: name.as_str().into(),
        rows,
        hyperparameters: Vec::new(),
        noise_floor: if chosen.method.sets_aside() { deep::floor(request) } else { request.noise_floor },
        cholesky: CholeskyInfo::default(),
        fit: FitSummary {
            log_evidence: None,
            criterion: evidence.map(EvidenceOptions::criterion).transpose()?.unwrap_or_default(),
            criterion_value: None,
            hyperpriors: request.hyperpriors.clone(),
            optimizer: evidence.map(EvidenceOptions::optimizer).unwrap_or_default(),
            reason: Reason::Steps,
            steps: 0,
            evaluations: 0,
            attempts: Vec::new(),
            largest_jitter: 0.0,
            seconds: 0.0,
            plan,
            choice,
            data: prepared.notes.clone(),
            transform: prepared.transform.clone(),
            weights: request.labels.row_weights.as_ref().map(|column| format!("rows: `{column}`")),
            check: None,
            recalibration: None,
            hyperparameter_source: None,
            at_bounds: Vec::new(),
            scalable: None,
        },
    };
    let judged = chosen.method.large().map_or(rows, |large| large.held_back_of(rows));
    calibration::check(request.calibrate, judged, chosen.method.settings().leaves_one_out())?;
    Ok(header)
}

/// Fits by a method for large tables.
pub(crate) fn fit_large(
    prepared: Prepared,
    header: &mut Draft<'_>,
    observer: &mut Observer<'_, FitStage>,
) -> Learned {
    let (fitted, residuals) = fit_scalable(prepared, header.request, &header.chosen.method, observer)?;
    Ok((recorded(header, fitted), residuals))
}

/// Writes into the header what became of a fit to a large table, and leaves its predictor.
fn recorded(header: &mut Draft<'_>, fitted: ScalableFit) -> Arc<dyn Predictor> {
    let Draft { request, chosen, rows, .. } = *header;
    if fitted.method != chosen.method.name() {
        let name = fitted.method;
        header.fit.choice = match fitted.rows() {
            // The exact posterior has nothing else to be told.
            kept if fitted.summary.is_none() => {
                let unused = unused_by_exact(request);
                format!("{name} on {kept} of {rows} rows, the best of what was tried {}{unused}", chosen.why)
            }
            _ => format!("{name}, the best of what was tried {}", chosen.why),
        };
        header.method = name.as_str().into();
    }
    // The factor of few rows, and tensors of as many.
    header.rows = match fitted.rows() {
        0 => rows - fitted.check.as_ref().map_or(0, |c| c.rows),
        kept => kept,
    };
    header.hyperparameters = fitted.hyperparameters;
    header.fit.hyperpriors = fitted.hyperpriors;
    header.fit.steps = fitted.summary.as_ref().map_or(0, |s| s.steps);
    header.fit.reason = fitted.reason;
    header.fit.largest_jitter = fitted.largest_jitter;
    header.fit.check = fitted.check;
    header.fit.hyperparameter_source = fitted.source;
    if let Some(info) = fitted.predictor.factored() {
        header.cholesky = info;
    }
    header.fit.log_evidence = fitted.log_evidence;
    header.fit.at_bounds = fitted.summary.as_ref().map_or(Vec::new(), ScalableSummary::ended_at_bounds);
    header.fit.scalable = fitted.summary;
    fitted.predictor
}

/// What `auto` may do instead of descent.
fn instead_in_words(request: &FitRequest, method: &Method, names: &[String], rows: usize) -> String {
    let Some(auto) = request.method.settings().compared_with(method) else { return String::new() };
    if method.large().is_none_or(|large| large.held_back_of(rows) == 0) {
        return String::new();
    }
    let others: Vec<String> =
        auto.instead_of_descent().iter().map(|other| other.name().to_string()).collect();
    let first = match others.is_empty() {
        true => String::new(),
        false => {
            format!("; {} instead, where trials on few rows promise an earlier end", others.join(" or "))
        }
    };
    if whole_posterior(request, rows, names.len()).is_none() {
        return first;
    }
    let flops = saved_plan(rows, names.len()).flops_per_evaluation / 3.0;
    let seconds = super::rates::rate(request, names)
        .map_or_else(String::new, |rate| format!(", about {} for its factor", time(flops / rate)));
    format!(
        "{first}; where two thirds of the time that is left have room for it, the exact posterior of all rows instead{seconds}"
    )
}

/// The densest place of the rows of two numeric inputs, in their own units.
fn densest(
    inputs: &TableInputs,
    x: impl FnOnce() -> Result<Mat<f64>, GpError>,
) -> Result<Option<[f64; 2]>, ModelError> {
    if inputs.numeric::<2>().is_none() {
        return Ok(None);
    }
    let Some(place) = densest_place(x()?.as_ref()) else { return Ok(None) };
    let standard = &inputs.standardisation;
    let back = |j: usize| standard.feature_means[j] + standard.feature_scales[j] * place[j];
    Ok(Some([back(0), back(1)]))
}

/// Fits exactly.
pub(crate) fn fit_exact(
    prepared: Prepared,
    asked: &ExactOptions,
    header: &mut Draft<'_>,
    observer: &mut Observer<'_, FitStage>,
) -> Learned {
    let request = header.request;
    let mut kernel = request.kernel.build(&prepared.schema.feature_names())?;
    kernel.begin(prepared.data.inputs(), &targets(&prepared.data));
    let features = prepared.data.inputs().ncols();
    let mut model = request.process(kernel, features, 1);
    if let Some(given) = &request.hyperparameters {
        set_hyperparameters(&mut model, given)?;
    }
    let options = request.search(&asked.evidence, &model, features);
    let fitted =
        fit(model, prepared.data, &options, &mut |progress, _| observer(progress, &FitStage::Search))?;
    header.hyperparameters = Hyperparameter::of(fitted.posterior.model());
    header.cholesky = fitted.posterior.info();
    let summary = &mut header.fit;
    summary.log_evidence = Some(fitted.log_evidence);
    summary.criterion_value = Some(fitted.criterion);
    summary.hyperpriors = options.hyperpriors;
    summary.reason = fitted.reason;
    summary.steps = fitted.steps;
    summary.evaluations = fitted.evaluations;
    summary.attempts = fitted.attempts;
    summary.largest_jitter = fitted.largest_jitter;
    summary.at_bounds = fitted.at_bounds;
    let mut residuals = Vec::new();
    // One row cannot be predicted from the others.
    if header.rows > 1 && fitted.reason != Reason::Interrupted {
        let (check, own) =
            each_from_the_others(&fitted.posterior, (&header.inputs, &header.output, &header.fit))?.unzip();
        (header.fit.check, residuals) = (check, own.unwrap_or_default());
    }
    Ok((Arc::new(fitted.posterior), residuals))
}

/// How good a posterior is on its own rows, each predicted from all others that are no copies of it, and their standardised residuals; what can be done about errors that grow with the prediction is told by inputs, output and fit. Cost `n³/3` flops.
pub(super) fn each_from_the_others(
    posterior: &ExactPosterior,
    (inputs, output, fit): (&TableInputs, &GaussianOutput, &FitSummary),
) -> Result<Option<(FitCheck, Vec<f64>)>, ModelError> {
    let Some(LeftOut { mean, variance, truths, copies }) = LeftOut::of(posterior)? else { return Ok(None) };
    let scores = CheckScores::of(&mean, &variance, &truths)?;
    let residuals = Gaussians::new(&mean, &variance, &truths)?.standardised_residuals();
    let check = FitCheck::new(CheckedOn::LeaveOneOut, truths.len(), scores, None);
    let mut check = FitCheck { copies, ..check.with_outliers(&residuals) };
    if let Some(funnel) = Funnel::of(&mean, &residuals).filter(|own| own.is_sure()) {
        let remedy = super::describe::funnel_remedy(inputs, output, fit, funnel.rank_correlation > 0.0);
        check.warnings.push(funnel_in_words(funnel, truths.len(), &remedy));
    }
    Ok(Some((check, residuals)))
}

/// Makes intervals hold what they say on the rows that a fit was judged on, where that is asked for or needed.
pub(super) fn recalibrate(
    request: &FitRequest,
    fit: &mut FitSummary,
    residuals: Vec<f64>,
) -> Result<Calibration, ModelError> {
    // An interrupted fit is judged when it has gone on to its end.
    let Some(check) = &mut fit.check else { return Ok(Calibration::default()) };
    let rows = (check.before(), residuals);
    let learned = Calibration::learn_numbers(check.asked(request), [rows])?;
    if learned.numbers.is_empty() && request.calibrate == CalibrateName::Conformal {
        check.warnings.push(
            "intervals could not be recalibrated (--calibrate conformal): too few rows to judge by were left, or the model is certain of them"
                .into(),
        );
    }
    fit.recalibration = learned.numbers.into_iter().next().flatten();
    Ok(learned.calibration)
}

/// Rows are weighed by exact processes.
fn check_weights(data: &Observations, request: &FitRequest, names: &[String]) -> Result<(), ModelError> {
    if data.weights().is_none() {
        return Ok(());
    }
    let method = choose(request, data.rows(), names).method;
    let exact = match method.evidence().filter(|_| method.settings().leaves_one_out()) {
        Some(evidence) => evidence.criterion()? == Criterion::Evidence,
        None => false,
    };
    match exact {
        true => Ok(()),
        false => Err(ModelError::Request(format!(
            "--row-weights of numbers are for exact processes by the evidence, and {} rows are fitted otherwise: take {EXACT} (with the --memory and the time that it plans), or {LIKELIHOOD_STUDENT_T}",
            data.rows()
        ))),
    }
}

fn check_noise(request: &FitRequest) -> Result<(), ModelError> {
    let (floor, initial) = (request.noise_floor, request.first_noise());
    let refuse =
        |what, value, expected: &str| Err(ModelError::Setting { what, value, expected: expected.into() });
    if !(floor.is_finite() && floor >= 0.0) {
        return refuse("the noise floor", floor, "finite and not negative");
    }
    if !(initial.is_finite() && initial > floor) {
        return refuse("the initial noise", initial, "finite and above the noise floor");
    }
    Ok(())
}
