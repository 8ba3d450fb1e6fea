//! What a fit tries where nothing else is asked for, on tables of at most [`OriginalRows::MOST`] rows.
//!
//! The default is one stationary function under equal Gaussian noise. Other models are fitted where its result has a sign that it is wrong, and kept where they predict better:
//!
//! | sign | tried | kept by |
//! |---|---|---|
//! | noise at its floor | a lower floor, and smoother kernels with it | the evidence |
//! | an amplitude above [`LARGE`] deviations of the target | a linear function beside the kernel | the evidence, by [`MARGIN`] nats |
//! | outliers among residuals | Student-t noise | NLL of rows predicted from the others, beyond its standard error |
//! | residuals whose size depends on an input or the prediction | heteroscedastic noise | the same, beyond two standard errors |
//!
//! A named method (`--method exact`) is fitted as it is asked for.

mod noise;

use crate::describe::FUNNEL;
use crate::method::regression::judge_kept;
use crate::model::Source;
use crate::options::{EvidenceOptions, Limits, PriorSettings};
use crate::prepare::OriginalRows;
use crate::{FitCheck, FitRecord, FitRequest, FitStage, Model, ModelError, Prepared, choose};
use posterior_gp::WEAK_AMPLITUDE;
use posterior_kernels::{KernelExpression, is_stationary_variance};
use posterior_notes::fixes::EXACT;
use posterior_optim::{Observer, Reason};
use std::sync::Arc;
use std::time::Instant;

/// Fewer rows cannot tell models apart.
const FEWEST: usize = 20;

/// The floor of noise that the data want lower than that of a fit, and where its search begins, as shares of the target's variance.
const LOW_FLOOR: f64 = 1e-8;
const LOW_START: f64 = 1e-3;

/// Kernels of functions without noise, by smoothness.
const SMOOTH: [&str; 3] = ["matern52(ard)", "rbf(ard)", "matern32(ard)"];

/// Amplitudes from which a stationary function may stand for a trend, standard deviations of the target.
const LARGE: f64 = 0.5 * WEAK_AMPLITUDE;

/// How much likelier rows have to be with a trend, and how much less likely without that of one column, nats.
const MARGIN: f64 = 2.0;
const DOUBT: f64 = 10.0;

/// Variances of slopes, in standard units, below which a column has no trend; and columns of which that is tested one by one.
const FLAT: f64 = 1e-3;
const TESTED: usize = 3;

/// Rows up to which trends are tested so: a fit of more takes too long to be repeated that often.
const TESTED_ROWS: usize = 700;

/// Rows that heteroscedastic noise learns from where it was not asked for.
const NOISE_ROWS: usize = 300;

/// Fits as [`Model::fit_prepared`], and what else the rows ask for.
///
/// # Errors
/// As [`Model::fit_prepared`].
pub(super) fn fit(
    prepared: Prepared,
    request: &FitRequest,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Model, ModelError> {
    let Some(originals) = prepared.originals.clone().filter(|_| is_open(&prepared, request)) else {
        return Model::fit_prepared(prepared, request, observer);
    };
    let started = Instant::now();
    let best = Model::fit_prepared(prepared.clone(), request, observer)?;
    if best.was_interrupted() {
        return Ok(best);
    }
    let (request, asked) = (request.clone(), request);
    let mut own = Candidates { prepared, originals, asked, best, request, gain: 0.0, started, observer };
    let ended = own.tried();
    let mut best = own.best;
    match ended {
        Ok(()) => {}
        // The best so far, as of a search that is ended.
        Err(ModelError::Interrupted) => {
            if let Some(FitRecord::Gaussian(fit)) = record(&mut best) {
                fit.reason = Reason::Interrupted;
            }
        }
        Err(error) => return Err(error),
    }
    let seconds = started.elapsed().as_secs_f64();
    match record(&mut best) {
        Some(FitRecord::Gaussian(fit)) => fit.seconds = seconds,
        Some(FitRecord::Likelihood(fit)) => fit.seconds = seconds,
        None => {}
    }
    Ok(best)
}

/// Whether nothing is said that decides what a candidate would.
fn is_open(prepared: &Prepared, request: &FitRequest) -> bool {
    let (data, names) = (&prepared.data, prepared.schema.feature_names());
    data.rows() >= FEWEST
        && request.method.settings().is_automatic()
        && choose(request, data.rows(), &names).method.settings().leaves_one_out()
        && request.method.evidence() == Some(&EvidenceOptions::default())
        && request.start.hyperparameters().is_none()
        && request.prior.hyperpriors.is_empty()
        && data.weights().is_none()
        && request.columns.noise.is_none()
}

fn record(model: &mut Model) -> Option<&mut FitRecord> {
    match &mut model.source {
        Source::Table(own) => Some(&mut own.record.fit),
        Source::Network(_) => None,
    }
}

/// The best model so far, and what came of others.
struct Candidates<'a, 'o> {
    prepared: Prepared,
    originals: Arc<OriginalRows>,
    asked: &'a FitRequest,
    best: Model,
    /// What the best model was fitted by.
    request: FitRequest,
    /// What its evidence gained, nats.
    gain: f64,
    started: Instant,
    observer: &'a mut Observer<'o, FitStage>,
}

impl Candidates<'_, '_> {
    fn tried(&mut self) -> Result<(), ModelError> {
        if self.asked.prior.kernel == FitRequest::default().prior.kernel {
            self.smoothness()?;
            self.trend()?;
            self.name_kernel();
            // Errors of functions without noise are those of rounding, which folds of fewer rows tell worse.
            if self.request.validation.of_candidate && !self.is_noiseless() {
                self.judge_kept()?;
            }
        }
        if !self.is_noiseless() {
            // Rows that belong together are not predicted from each other.
            if self.prepared.data.parting().is_some() {
                return Ok(());
            }
            return self.noise_of_residuals();
        }
        // What differs in size is rounding.
        self.drop_warning(FUNNEL);
        Ok(())
    }

    /// Judges the best model, which was a candidate, as others are.
    fn judge_kept(&mut self) -> Result<(), ModelError> {
        judge_kept(&mut self.best, (&self.request, &EvidenceOptions::default()), self.observer)
    }

    /// What the best model was asked for with some of it changed and one start; none where half of a budget is used up.
    fn changed(&self, change: impl FnOnce(&mut FitRequest)) -> Option<FitRequest> {
        let spent = self.started.elapsed().as_secs_f64();
        let time_budget = self.asked.limits.time.map(|budget| budget - spent);
        if time_budget.is_some_and(|left| left < spent) {
            return None;
        }
        let mut own = FitRequest {
            limits: Limits { time: time_budget, ..self.request.limits },
            ..self.request.clone()
        };
        own.method.start_once();
        // What is tried is not gone on with.
        if let Some(large) = own.method.large_mut() {
            large.checkpoint = None;
        }
        own.validation.of_candidate = true;
        change(&mut own);
        Some(own)
    }

    /// A further model; none where it cannot be had.
    fn fitted(&mut self, request: &FitRequest) -> Result<Option<Model>, ModelError> {
        let prepared = self.prepared.clone();
        found(
            Model::fit_as_asked(prepared, (request, NOISE_ROWS), self.observer).and_then(|model| {
                if model.was_interrupted() { Err(ModelError::Interrupted) } else { Ok(model) }
            }),
        )
    }

    /// Keeps what makes the rows likelier than the best model does, by a margin in nats.
    fn keep_likelier(&mut self, request: FitRequest, margin: f64) -> Result<bool, ModelError> {
        let evidence = |model: &Model| model.process()?.record().fit.gaussian()?.log_evidence;
        let Some(model) = self.fitted(&request)? else { return Ok(false) };
        let (Some(own), Some(other)) = (evidence(&self.best), evidence(&model)) else { return Ok(false) };
        let better = other - own > margin;
        if better {
            self.gain += other - own;
            (self.best, self.request) = (model, request);
        }
        Ok(better)
    }

    fn hyperparameter(&self, is_wanted: impl Fn(&str) -> bool) -> f64 {
        let process = self.best.process();
        let all = process.iter().flat_map(|own| &own.record().hyperparameters);
        all.filter(|own| is_wanted(&own.name)).flat_map(|own| own.values.iter().copied()).fold(0.0, f64::max)
    }

    /// The kernel of the best model, for these columns.
    fn kernel(&self) -> String {
        self.request.prior.kernel.of_table(&self.prepared.schema.feature_names()).to_string()
    }

    /// Whether the noise is at its floor.
    fn is_noiseless(&self) -> bool {
        self.hyperparameter(|name| name == "noise_variance") <= 2.0 * self.request.prior.noise_floor
    }

    /// A lower floor of the noise, where the rows look noiseless: how rough a function may be between them is then all that intervals come from.
    fn smoothness(&mut self) -> Result<(), ModelError> {
        if !self.is_noiseless() || self.asked.prior.noise_floor != FitRequest::default().prior.noise_floor {
            return Ok(());
        }
        let own = self.kernel();
        for kernel in SMOOTH {
            let Ok(kernel) = own.replace(SMOOTH[2], kernel).parse::<KernelExpression>() else { continue };
            let changed = self.changed(|own| {
                (own.prior.kernel, own.prior.noise_floor, own.prior.initial_noise) =
                    (kernel, LOW_FLOOR, Some(LOW_START));
            });
            if let Some(request) = changed {
                self.keep_likelier(request, 0.0)?;
            }
        }
        Ok(())
    }

    /// A linear function beside the kernel, where that needs a large amplitude: a trend looks to it like a small part of a large function, which is as uncertain as it is large beyond the rows. A trend goes on
    /// there for ever, so that columns have one only where the rows leave no doubt of it.
    fn trend(&mut self) -> Result<(), ModelError> {
        if self.hyperparameter(is_stationary_variance) <= LARGE * LARGE {
            return Ok(());
        }
        let (kernel, names) = (self.kernel(), self.prepared.schema.feature_names());
        let apart = self.request.prior.kernel.unscaled_columns(&names);
        let numbers = (0..names.len()).filter(|column| !apart.contains(column));
        let mut columns: Vec<String> = numbers.map(|column| names[column].clone()).collect();
        if columns.is_empty() || !self.keep_trend(&kernel, &columns, MARGIN)? {
            return Ok(());
        }
        let variances = self.slopes();
        let mut slopes: Vec<(f64, String)> = variances.into_iter().zip(columns.iter().cloned()).collect();
        slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let flat = slopes.iter().take_while(|own| own.0 < FLAT).count().min(columns.len() - 1);
        columns.retain(|name| slopes[flat..].iter().any(|own| own.1 == *name));
        if flat > 0 && !self.keep_trend(&kernel, &columns, -DOUBT)? {
            return Ok(());
        }
        let tested = if self.prepared.data.rows() <= TESTED_ROWS { TESTED } else { 0 };
        for (_, name) in slopes[flat..].iter().take(tested) {
            let fewer: Vec<String> = columns.iter().filter(|own| *own != name).cloned().collect();
            if !fewer.is_empty() && self.keep_trend(&kernel, &fewer, -DOUBT)? {
                columns = fewer;
            }
        }
        Ok(())
    }

    /// Keeps a kernel with a linear function of some columns beside it, where that makes the rows likelier by a margin.
    fn keep_trend(&mut self, kernel: &str, columns: &[String], margin: f64) -> Result<bool, ModelError> {
        let names: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
        let text = format!("{kernel} + linear(ard, {})", names.join(", "));
        let Ok(kernel) = text.parse::<KernelExpression>() else { return Ok(false) };
        match self.changed(|own| own.prior.kernel = kernel) {
            Some(request) => self.keep_likelier(request, margin),
            None => Ok(false),
        }
    }

    /// Variances of the slopes of a linear function.
    fn slopes(&self) -> Vec<f64> {
        let process = self.best.process();
        let own = process.and_then(|own| own.record().hyperparameter("linear.variance").map(<[f64]>::to_vec));
        own.unwrap_or_default()
    }

    /// Says which kernel was kept, and why.
    fn name_kernel(&mut self) {
        let PriorSettings { kernel, noise_floor, .. } = &self.request.prior;
        if !self.request.validation.of_candidate {
            return;
        }
        let names = self.prepared.schema.feature_names();
        let floor = match *noise_floor == self.asked.prior.noise_floor {
            true => String::new(),
            false => format!(" with a noise floor of {noise_floor:.0e}"),
        };
        let text = format!(
            "; the kernel {kernel}{floor}, whose log evidence is {:.1} above that of {} ({EXACT} keeps the latter)",
            self.gain,
            self.asked.prior.kernel.of_table(&names)
        );
        self.say(&text);
    }

    /// Why its method was chosen.
    fn choice(&self) -> String {
        let process = self.best.process();
        let fit = process.as_ref().and_then(|own| own.record().fit.gaussian());
        fit.map_or_else(String::new, |fit| fit.choice.clone())
    }

    /// How good it is, of Gaussian noise.
    fn check(&mut self) -> Option<&mut FitCheck> {
        match record(&mut self.best) {
            Some(FitRecord::Gaussian(fit)) => fit.check.as_mut(),
            _ => None,
        }
    }

    /// Drops a warning whose advice is of no use.
    fn drop_warning(&mut self, beginning: &str) {
        if let Some(check) = self.check() {
            check.drop_warning(beginning);
        }
    }

    /// Adds to the reason for the method.
    fn say(&mut self, text: &str) {
        if let Some(FitRecord::Gaussian(fit)) = record(&mut self.best) {
            fit.choice.push_str(text);
        }
    }
}

/// What a fit returns; none where it failed.
///
/// # Errors
/// [`ModelError::Interrupted`].
fn found<T>(fit: Result<T, ModelError>) -> Result<Option<T>, ModelError> {
    match fit {
        Err(ModelError::Interrupted) => Err(ModelError::Interrupted),
        found => Ok(found.ok()),
    }
}
