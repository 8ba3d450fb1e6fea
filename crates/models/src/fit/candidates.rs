//! What a fit tries where nothing else is asked for, on tables of at most [`OriginalRows::MOST`] rows.
//!
//! The default is one stationary function under equal Gaussian noise. Other models are fitted where its result has a sign that it is wrong, and kept where they predict better:
//!
//! | sign | tried | kept by |
//! |---|---|---|
//! | noise at its floor | a lower floor, and smoother kernels with it | the evidence |
//! | an amplitude above [`LARGE`] deviations of the target | a linear function beside the kernel | the evidence, by [`MARGIN`] nats |
//! | outliers among residuals | Student-t noise | NLL of rows predicted from the others, beyond its standard error |
//! | residuals whose size depends on an input or the prediction | heteroscedastic noise | the same, beyond [`SURE`] standard errors |
//!
//! A named method (`--method exact`) is fitted as it is asked for.

use super::signs;
use crate::describe::FUNNEL;
use crate::method::inference::{Judged, with_outliers};
use crate::method::noise;
use crate::method::regression::judge_kept;
use crate::model::Source;
use crate::options::{
    EvidenceOptions, HETEROSCEDASTIC, LikelihoodName, Limits, OutputRequest, PriorSettings,
    TargetTransformName,
};
use crate::prepare::OriginalRows;
use crate::record::OUTLIERS;
use crate::rows::worse_by;
use crate::text::number;
use crate::{
    FitCheck, FitRecord, FitRequest, FitStage, Model, ModelError, Observed, Predicted, Prepared,
    TrainingRows, choose,
};
use faer::Mat;
use posterior_data::{Selection, Standardisation};
use posterior_gp::{Observations, WEAK_AMPLITUDE};
use posterior_kernels::{KernelExpression, is_stationary_variance};
use posterior_notes::fixes::{EXACT, LIKELIHOOD_GAUSSIAN};
use posterior_optim::{Observer, Reason};
use std::f64::consts::PI;
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

/// Standard errors by which heteroscedastic noise has to predict better: it has many more hyperparameters.
const SURE: f64 = 2.0;

/// Rows that heteroscedastic noise learns from where it was not asked for.
const NOISE_ROWS: usize = 300;

/// Outliers that are named one by one.
const NAMED: usize = 5;

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

/// Training rows of a model, each as the others predict it.
struct LeftOutRows {
    means: Vec<f64>,
    /// Residuals in predicted standard deviations.
    residuals: Vec<f64>,
    /// `-log p(y)` in nats, in the target's units.
    surprises: Vec<f64>,
}

impl LeftOutRows {
    fn of(model: &Model, y: &[f64]) -> Option<Self> {
        let process = model.process()?;
        let known = process.predictor.training()?;
        let found = process.predictor.leave_one_out()?();
        let standard = &process.inputs.standardisation;
        let means: Vec<f64> = found.mean.col(0).iter().copied().collect();
        let truths = known.targets().col(0);
        let residuals: Vec<f64> =
            (0..means.len()).map(|i| (truths[i] - means[i]) / found.variance[i].sqrt()).collect();
        let surprise = |i: usize| {
            0.5 * ((2.0 * PI * found.variance[i]).ln() + residuals[i] * residuals[i])
                - standard.log_slope(y[i])
        };
        let surprises = (0..means.len()).map(surprise).collect();
        Some(Self { means, residuals, surprises })
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
                let asked = (&self.request, &EvidenceOptions::default());
                judge_kept(&mut self.best, &self.prepared, asked, self.observer)?;
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
        match Model::fit_as_asked(self.prepared.clone(), (request, NOISE_ROWS), self.observer) {
            Ok(model) if model.was_interrupted() => Err(ModelError::Interrupted),
            Ok(model) => Ok(Some(model)),
            Err(ModelError::Interrupted) => Err(ModelError::Interrupted),
            Err(_) => Ok(None),
        }
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
            "; the kernel {kernel}{floor}, under which the rows are {:.1} nats likelier than under {} ({EXACT} keeps that)",
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

    /// Another noise, where residuals ask for one: residuals whose size depends on an input have outliers as well, and outliers draw predictions near to them, so that sizes seem to depend on inputs. Whatever predicts best is kept.
    fn noise_of_residuals(&mut self) -> Result<(), ModelError> {
        let Some(own) = LeftOutRows::of(&self.best, &self.originals.y) else { return Ok(()) };
        let plain = (self.request.clone(), self.choice());
        let surprises = self.student_t(&own)?.unwrap_or_else(|| own.surprises.clone());
        let x = self.prepared.data.inputs();
        let seen = Mat::from_fn(x.nrows(), x.ncols() + 1, |i, j| match j < x.ncols() {
            true => x[(i, j)],
            false => own.means[i],
        });
        if signs::noise_depends_on(&own.residuals, seen.as_ref()) {
            self.heteroscedastic(plain, &surprises)?;
        }
        if let Some(own) = LeftOutRows::of(&self.best, &self.originals.y)
            && let Some(text) = self.outliers(&own.residuals)
            && let Some(check) = self.check()
        {
            check.warnings.push(text);
        }
        Ok(())
    }

    /// Heteroscedastic noise beside the plain request (with why its method was chosen), kept where it predicts better than the best model, which is so surprised.
    fn heteroscedastic(
        &mut self,
        (plain, choice): (FitRequest, String),
        surprises: &[f64],
    ) -> Result<(), ModelError> {
        if self.prepared.data.rows() < noise::LEAST_ROWS {
            return Ok(());
        }
        let selection = Selection { noise: Some(HETEROSCEDASTIC.into()), ..plain.columns.clone() };
        let Some(request) = self.changed(|own| *own = FitRequest { columns: selection, ..plain }) else {
            return Ok(());
        };
        let Some(mut model) = self.fitted(&request)? else { return Ok(()) };
        let Some(other) = LeftOutRows::of(&model, &self.originals.y) else { return Ok(()) };
        let better = worse_by(surprises, &other.surprises).filter(|(gain, error)| *gain > SURE * error);
        if let Some((gain, error)) = better {
            if let Some(FitRecord::Gaussian(fit)) = record(&mut model) {
                fit.choice = format!(
                    "{choice}; heteroscedastic noise, because it predicts rows from the others better than equal noise, by {gain:.3} +- {error:.3} nats a row ({EXACT} keeps that)"
                );
            }
            (self.best, self.request) = (model, request);
        }
        Ok(())
    }

    /// Student-t noise where there are outliers among residuals: where it predicts better it is kept, and how surprised it is comes back.
    fn student_t(&mut self, own: &LeftOutRows) -> Result<Option<Vec<f64>>, ModelError> {
        let asked = self.asked;
        let open = asked.output == OutputRequest::default()
            && asked.output.target_transform == TargetTransformName::Auto
            && asked.columns.exposure.is_none()
            && self.prepared.transform.support.is_everywhere();
        // A map may have been chosen for the sake of outliers, which it hides.
        let hidden =
            self.prepared.transform.chosen.is_some() && !signs::outliers(&self.originals.y).is_empty();
        if !open || !hidden && !signs::has_heavy_tails(&own.residuals) {
            return Ok(None);
        }
        let changed = self.changed(|own| {
            (own.prior.noise_floor, own.prior.initial_noise) =
                (asked.prior.noise_floor, asked.prior.initial_noise);
            own.output.likelihood = LikelihoodName::StudentT;
        });
        let Some(request) = changed else { return Ok(None) };
        let (mut model, judged) = match Model::fit_judged(self.observed()?, &request, self.observer) {
            Ok((model, Some(judged))) => (model, judged),
            Err(ModelError::Interrupted) => return Err(ModelError::Interrupted),
            _ => return Ok(None),
        };
        let Some((gain, error)) = worse_by(&own.surprises, &judged.surprises) else {
            self.drop_warning(OUTLIERS);
            return Ok(None);
        };
        let outliers = self.outliers(&residuals_of(&judged));
        if let Some(FitRecord::Likelihood(fit)) = record(&mut model) {
            fit.likelihood_choice = format!(
                "student-t, because it predicts rows from the others better than Gaussian noise, by {gain:.3} +- {error:.3} nats a row ({LIKELIHOOD_GAUSSIAN} takes that)"
            );
            fit.odd.extend(outliers);
        }
        (self.best, self.request) = (model, request);
        Ok(Some(judged.surprises))
    }

    /// The rows in units that outliers do not decide, and under Student-t noise.
    fn observed(&self) -> Result<Observed, ModelError> {
        let OriginalRows { x, y, .. } = &*self.originals;
        let (mean, scale) = self.prepared.standardisation.target_in_units();
        let (likelihood, target) = with_outliers(y, [mean, scale * scale])?;
        let (shift, scale) = target.units();
        let y: Vec<f64> = y.iter().map(|y| (y - shift) / scale).collect();
        let column = Mat::from_fn(y.len(), 1, |i, _| y[i]);
        Ok(Observed {
            schema: self.prepared.schema.clone(),
            standardisation: Standardisation {
                target_mean: 0.0,
                target_scale: 1.0,
                transform: None,
                ..self.prepared.standardisation.clone()
            },
            data: Observations::new(self.prepared.data.inputs().to_owned(), column, None)?,
            target,
            likelihood,
            why: String::new(),
            notes: self.prepared.notes.clone(),
            odd: Vec::new(),
            training: TrainingRows::of_table(x.as_ref(), &y),
            input_ranges: self.prepared.input_ranges.clone(),
        })
    }

    /// Names the rows whose residuals are outliers; none where there are none.
    fn outliers(&self, residuals: &[f64]) -> Option<String> {
        let far = signs::outliers(residuals);
        let OriginalRows { numbers, y, .. } = &*self.originals;
        let name = |&i: &usize| format!("row {} ({})", numbers[i] + 1, number(y[i]));
        let named: Vec<String> = far.iter().take(NAMED).map(name).collect();
        let more = match far.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "`{}` is far from what the other rows predict, beyond any normal noise, in {}{more}: check them",
                self.prepared.schema.target,
                named.join(", ")
            )
        })
    }
}

/// Residuals of judged numbers, in the target's units.
fn residuals_of(judged: &Judged) -> Vec<f64> {
    let Some(rows) = &judged.rows else { return Vec::new() };
    match &rows.predicted {
        Predicted::Moments { mean, .. } => rows.truths.iter().zip(mean).map(|(y, m)| y - m).collect(),
        Predicted::Classes(_) | Predicted::Events(_) => Vec::new(),
    }
}
