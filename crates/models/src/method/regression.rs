//! Regression with Gaussian noise by the exact method or one for large tables: from prepared rows to a predictor and what the record says of it.

use crate::calibration::{Calibration, independent_rows};
use crate::describe::funnel_in_words;
use crate::hyperparameter::FunctionUnits;
use crate::method::folds::{self, FoundRows, Newest};
use crate::method::large::{fit_scalable, unused_by_exact};
use crate::method::noise;
use crate::method::training::{ScalableFit, set as set_hyperparameters};
use crate::model::Source;
use crate::options::{CalibrateName, EvidenceOptions, ExactOptions};
use crate::prepare::targets;
use crate::rows::{FOLDED, LeftOut};
use crate::{
    CheckScores, CheckedOn, Chosen, FitCheck, FitRecord, FitRequest, FitStage, FitSummary, GaussianOutput,
    Hyperparameter, Model, ModelError, Output, Predictor, Prepared, ProcessRecord, ScalableSummary,
    TableInputs, TableSource, TrainingRows,
};
use posterior_gp::Observations;
use posterior_gp::exact::{ExactGp, ExactPosterior, fit};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_metrics::{Funnel, Gaussians};
use posterior_optim::{Observer, Parameters, Reason};
use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is known of a model while it is fitted.
pub(crate) struct Draft<'a> {
    pub(crate) request: &'a FitRequest,
    pub(crate) chosen: &'a Chosen,
    pub(crate) inputs: TableInputs,
    pub(crate) output: GaussianOutput,
    pub(crate) method: String,
    pub(crate) rows: usize,
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    pub(crate) noise_floor: f64,
    pub(crate) cholesky: CholeskyInfo,
    pub(crate) fit: FitSummary,
    /// Where the search for hyperparameters begins, if not where the kernel does.
    pub(crate) start: Option<Vec<f64>>,
    /// As [`JudgedNumbers::surprises`], of rows of folds; empty where there are none.
    pub(crate) surprises: Vec<f64>,
}

/// How good predictions of some rows are.
pub(crate) struct JudgedNumbers {
    pub(crate) check: FitCheck,
    /// Residuals in predicted standard deviations.
    pub(crate) residuals: Vec<f64>,
    /// `-log p(y)` of each row in nats, of standardised targets.
    pub(crate) surprises: Vec<f64>,
}

impl Draft<'_> {
    /// The model, with the predictor that came of it and the residuals that it was judged by.
    pub(crate) fn ended(
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
            kernel: request.prior.kernel.of_table(&inputs.schema.feature_names()).into_owned(),
            mean: request.prior.mean,
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

/// What a fit leaves behind: its predictor, and standardised residuals of the rows that it was judged on.
pub(crate) type Learned = Result<(Arc<dyn Predictor>, Vec<f64>), ModelError>;

/// Writes into the draft what became of a fit to a large table, and leaves its predictor.
pub(crate) fn recorded(draft: &mut Draft<'_>, fitted: ScalableFit) -> Arc<dyn Predictor> {
    let Draft { request, chosen, rows, .. } = *draft;
    if fitted.method != chosen.method.name() {
        let name = fitted.method;
        draft.fit.choice = match fitted.rows() {
            // The exact posterior has nothing else to be told.
            kept if fitted.summary.is_none() => {
                let unused = unused_by_exact(request);
                format!("{name} on {kept} of {rows} rows, the best of what was tried {}{unused}", chosen.why)
            }
            _ => format!("{name}, the best of what was tried {}", chosen.why),
        };
        draft.method = name.as_str().into();
    }
    // The factor of few rows, and tensors of as many.
    draft.rows = match fitted.rows() {
        0 => rows - fitted.check.as_ref().map_or(0, |c| c.rows),
        kept => kept,
    };
    draft.hyperparameters = fitted.hyperparameters;
    draft.fit.hyperpriors = fitted.hyperpriors;
    draft.fit.steps = fitted.summary.as_ref().map_or(0, |s| s.steps);
    draft.fit.reason = fitted.reason;
    draft.fit.largest_jitter = fitted.largest_jitter;
    draft.fit.check = fitted.check;
    draft.fit.hyperparameter_source = fitted.source;
    if let Some(info) = fitted.predictor.factored() {
        draft.cholesky = info;
    }
    draft.fit.log_evidence = fitted.log_evidence;
    draft.fit.at_bounds = fitted.summary.as_ref().map_or(Vec::new(), ScalableSummary::ended_at_bounds);
    draft.fit.scalable = fitted.summary;
    fitted.predictor
}

/// Fits by a method for large tables.
pub(crate) fn fit_large(
    prepared: Prepared,
    draft: &mut Draft<'_>,
    observer: &mut Observer<'_, FitStage>,
) -> Learned {
    let (fitted, residuals) = fit_scalable(prepared, draft.request, &draft.chosen.method, observer)?;
    Ok((recorded(draft, fitted), residuals))
}

/// Fits exactly. Where hyperparameters are learned, each fold is predicted under those that were learned without it. Of large tables the one split comes first, and the search on all rows begins where that on its rows ended.
pub(crate) fn fit_exact(
    prepared: Prepared,
    asked: &ExactOptions,
    draft: &mut Draft<'_>,
    observer: &mut Observer<'_, FitStage>,
) -> Learned {
    let (request, started) = (draft.request, Instant::now());
    let names = prepared.schema.feature_names();
    let mut model = begin(&names, &prepared.data, request)?;
    let mut options = request.search(&asked.evidence, &model, (names.len(), FunctionUnits::Target));
    let all = options.steps.time;
    let left = || all.map(|time| time.saturating_sub(started.elapsed()));
    let half = || left().map(|time| time / 2);
    let judges = request.start.hyperparameters().is_none() && !request.validation.of_candidate;
    let start = draft.start.take();
    let begun = start.clone();
    let rows_of = |time, observer: &mut Observer<'_, FitStage>| match judges {
        true => {
            by_folds((&names, &prepared.data), (request, begun.as_deref()), (&asked.evidence, time), observer)
        }
        false => Ok(None),
    };
    let split_first = prepared.data.rows() > FOLDED;
    let found = if split_first { rows_of(half(), observer)? } else { None };
    let (mut unseen, start) = found.map_or((None, start), |own| (own.rows, Some(own.values)));
    if let Some(start) = start {
        options.restarts = 1;
        model.set_values(&start);
    }
    options.steps.time = if judges && !split_first { half() } else { left() };
    let data = prepared.data.clone();
    let mut fitted = fit(model, data, &options, &mut |progress, _| observer(progress, &FitStage::Search))?;
    let interrupted = fitted.reason == Reason::Interrupted;
    let mut newest = None;
    if judges && !interrupted {
        // One factor at a time is in memory.
        let model = fitted.posterior.model().clone();
        drop(fitted.posterior);
        if !split_first {
            unseen = rows_of(left(), observer)?.and_then(|found| found.rows);
        }
        newest = Newest::of(&prepared.data, &prepared.schema, &model)?;
        fitted.posterior = model.condition(prepared.data)?;
    }
    draft.hyperparameters = Hyperparameter::of(fitted.posterior.model());
    draft.cholesky = fitted.posterior.info();
    let summary = &mut draft.fit;
    summary.log_evidence = Some(fitted.log_evidence);
    summary.criterion_value = Some(fitted.criterion);
    summary.hyperpriors = options.hyperpriors;
    summary.reason = fitted.reason;
    summary.steps = fitted.steps;
    summary.evaluations = fitted.evaluations;
    summary.attempts = fitted.attempts;
    summary.largest_jitter = fitted.largest_jitter;
    summary.at_bounds = fitted.at_bounds;
    let learned = (&draft.inputs, &draft.output, &draft.fit);
    let judged = match unseen {
        Some(rows) => Some(judged(rows, CheckedOn::Folds, learned)?),
        // One row cannot be predicted from the others.
        None if draft.rows > 1 && !interrupted => each_from_the_others(&fitted.posterior, learned)?,
        None => None,
    };
    let mut residuals = Vec::new();
    if let Some(mut own) = judged {
        own.check.warnings.extend(newest.and_then(|newest| newest.in_words(&fitted.posterior)));
        if own.check.on == CheckedOn::Folds {
            draft.surprises = own.surprises;
        }
        (draft.fit.check, residuals) = (Some(own.check), own.residuals);
    }
    Ok((Arc::new(fitted.posterior), residuals))
}

/// The process of some rows before anything is learned of it.
fn begin(names: &[String], data: &Observations, request: &FitRequest) -> Result<ExactGp, ModelError> {
    let mut kernel = request.prior.kernel.build(names)?;
    kernel.begin(data.inputs(), &targets(data));
    let mut model = request.process(kernel, names.len(), 1);
    if let Some(given) = request.start.hyperparameters() {
        set_hyperparameters(&mut model, given)?;
    }
    Ok(model)
}

/// The rows of an exact process, each under hyperparameters that were learned without its fold, within the time that is left; None where there are no folds. Searches may begin where another ended.
fn by_folds(
    (names, data): (&[String], &Observations),
    (request, start): (&FitRequest, Option<&[f64]>),
    (evidence, left): (&EvidenceOptions, Option<Duration>),
    observer: &mut Observer<'_, FitStage>,
) -> Result<Option<FoundRows>, ModelError> {
    let begin = |data: &Observations| {
        let mut model = begin(names, data, request)?;
        if let Some(start) = start {
            model.set_values(start);
        }
        Ok(model)
    };
    let mut options = request.search(evidence, &begin(data)?, (names.len(), FunctionUnits::Target));
    if start.is_some() {
        options.restarts = 1;
    }
    options.steps.time = left;
    if !request.learns_heteroscedastic_noise() {
        return folds::left_out(data, (&begin, &|_, _| Ok(None)), &options, observer);
    }
    let mut plain = Observations::new(data.inputs().to_owned(), data.targets().to_owned(), None)?;
    if let Some(parting) = data.parting() {
        plain = plain.with_parting(parting.clone())?;
    }
    let taught = |rows: &[usize], observer: &mut Observer<'_, FitStage>| {
        let own = noise::learn(request, (names, noise::FOLD_ROWS), (&plain, rows), observer)?;
        Ok(Some((own.data, own.function)))
    };
    folds::left_out(data, (&begin, &taught), &options, observer)
}

/// Judges a model again that is one of several candidates, by folds whose searches begin where its own ended, and recalibrates it by them. How surprised it is by each row comes back, nothing where there are no folds.
pub(crate) fn judge_by_folds(
    model: &mut Model,
    (request, evidence): (&FitRequest, &EvidenceOptions),
    observer: &mut Observer<'_, FitStage>,
) -> Result<Vec<f64>, ModelError> {
    let Source::Table(source) = &mut model.source else { return Ok(Vec::new()) };
    let (Output::Gaussian(output), FitRecord::Gaussian(fit)) = (&source.output, &mut source.record.fit)
    else {
        return Ok(Vec::new());
    };
    let Some(posterior) = model.predictor.exact() else { return Ok(Vec::new()) };
    let (schema, data) = (&source.inputs.schema, posterior.data());
    let left = request.limits.time.map(|seconds| Duration::from_secs_f64((seconds - fit.seconds).max(0.0)));
    let names = schema.feature_names();
    let values = posterior.model().values();
    let found = by_folds((&names, data), (request, Some(&values)), (evidence, left), observer)?;
    let Some(rows) = found.and_then(|found| found.rows) else { return Ok(Vec::new()) };
    let learned = (&source.inputs, output, &**fit);
    let JudgedNumbers { mut check, residuals, surprises } = judged(rows, CheckedOn::Folds, learned)?;
    if let Some(newest) = Newest::of(data, schema, posterior.model())? {
        check.warnings.extend(newest.in_words(posterior));
    }
    fit.check = Some(check);
    model.calibration = recalibrate(request, fit, residuals)?;
    Ok(surprises)
}

/// How good a posterior is on its own rows, each predicted from all others that are no duplicates of it, with residuals; what can be done about errors that grow with the prediction is told by inputs, output and fit. Cost `n³/3` flops.
pub(crate) fn each_from_the_others(
    posterior: &ExactPosterior,
    learned: (&TableInputs, &GaussianOutput, &FitSummary),
) -> Result<Option<JudgedNumbers>, ModelError> {
    LeftOut::of(posterior)?.map(|rows| judged(rows, CheckedOn::LeaveOneOut, learned)).transpose()
}

/// How good predictions of some rows are.
fn judged(
    rows: LeftOut,
    on: CheckedOn,
    (inputs, output, fit): (&TableInputs, &GaussianOutput, &FitSummary),
) -> Result<JudgedNumbers, ModelError> {
    let LeftOut { mean, variance, truths, groups, duplicates } = rows;
    let scores = CheckScores::of(&mean, &variance, &truths)?;
    let residuals = Gaussians::new(&mean, &variance, &truths)?.standardised_residuals();
    let surprise = |(z, v): (&f64, &f64)| 0.5 * ((TAU * v).ln() + z * z);
    let surprises = residuals.iter().zip(&variance).map(surprise).collect();
    let independent = groups.map_or(truths.len(), |groups| independent_rows(&groups, &residuals));
    let check = FitCheck::of(on, (truths.len(), independent), scores, None);
    let mut check = FitCheck { duplicates, ..check.with_outliers(&residuals) };
    if let Some(funnel) = Funnel::of(&mean, &residuals).filter(|own| own.is_sure()) {
        let remedy = crate::describe::funnel_remedy(inputs, output, fit, funnel.rank_correlation > 0.0);
        check.warnings.push(funnel_in_words(funnel, truths.len(), &remedy));
    }
    Ok(JudgedNumbers { check, residuals, surprises })
}

/// Makes intervals hold what they say on the rows that a fit was judged on, where that is asked for or needed.
pub(crate) fn recalibrate(
    request: &FitRequest,
    fit: &mut FitSummary,
    residuals: Vec<f64>,
) -> Result<Calibration, ModelError> {
    // An interrupted fit is judged when it has gone on to its end.
    let Some(check) = &mut fit.check else { return Ok(Calibration::default()) };
    let rows = (check.before(), residuals);
    let learned = Calibration::learn_numbers(check.asked(request), [rows])?;
    if learned.numbers.is_empty() && request.validation.calibrate == CalibrateName::Conformal {
        check.warnings.push(
            "intervals could not be recalibrated (--calibrate conformal): too few rows to judge by were left, or the model is certain of them"
                .into(),
        );
    }
    fit.recalibration = learned.numbers.into_iter().next().flatten();
    Ok(learned.calibration)
}
