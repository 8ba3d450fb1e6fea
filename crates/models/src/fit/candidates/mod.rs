//! What a fit tries where nothing else is asked for, on tables of at most [`OriginalRows::MOST`] rows.
//!
//! The default is one stationary function under equal Gaussian noise. Other models are fitted where its result has a sign that it is wrong, and kept where they predict better:
//!
//! | sign | tried | kept by |
//! |---|---|---|
//! | noise at its floor | a lower floor, and smoother kernels with it | the evidence |
//! | an amplitude above [`LARGE`] deviations of the target | a linear function beside the kernel | the evidence, by [`MARGIN`] nats |
//! | skewed features | their logarithms, or normal scores of their ranks | NLL of rows of folds |
//! | the training mean predicts rows of folds better | a constant | NLL of rows of folds |
//! | none: always | a linear function beside the kernel, and beside one with a lengthscale for all columns together | NLL of rows of folds |
//! | outliers among residuals | Student-t noise | NLL of rows predicted from the others, beyond its standard error |
//! | residuals whose size depends on an input or the prediction | heteroscedastic noise | the same, and NLL of rows of folds beyond its standard error |
//!
//! A named method (`--method exact`) is fitted as it is asked for.

mod noise;
mod observed;

use crate::describe::FUNNEL;
use crate::method::noise::{FOLD_ROWS, ROWS};
use crate::method::regression::judge_by_folds;
use crate::model::Source;
use crate::options::{EvidenceOptions, Limits, PriorSettings};
use crate::prepare::{FeatureMaps, OriginalRows, maps_in_words, maps_of, some_of};
use crate::rows::mean_and_error;
use crate::{FitCheck, FitRecord, FitRequest, FitStage, Model, ModelError, Prepared, choose};
use posterior_data::{Feature, Reading};
use posterior_gp::WEAK_AMPLITUDE;
use posterior_kernels::{KernelExpression, is_stationary_variance};
use posterior_linalg::random::Streams;
use posterior_notes::fixes::EXACT;
use posterior_optim::{Observer, Parameters, Reason};
use std::f64::consts::TAU;
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

/// By how much less rows of folds have to surprise a model that is kept, nats.
const FEW_NATS: f64 = 1.0;

/// Rows on which candidates are compared by folds, at most.
const RACED: usize = 400;

/// By how much better than the mean rows of folds are predicted by a function without noise, at least: nats a row.
const WELL: f64 = 0.5;

/// The surprise of a row that counts, nats: five deviations beyond a normal distribution's middle.
const MOST_SURPRISE: f64 = 14.0;

/// Variances of slopes, in standard units, below which a column has no trend; and columns of which that is tested one by one.
const FLAT: f64 = 1e-3;
const TESTED: usize = 3;

/// Rows up to which trends are tested so: a fit of more takes too long to be repeated that often.
const TESTED_ROWS: usize = 700;

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
    let (mut prepared, mut chosen, mut words, mut start) = (prepared, request.clone(), None, None);
    if prepared.data.rows() > RACED && request.prior.kernel == FitRequest::default().prior.kernel {
        let won = raced(&prepared, &originals, (request, started), observer)?;
        if let Some(won) = won {
            chosen.prior.kernel = won.kernel;
            prepared = prepared.mapped(won.maps, originals.x.as_ref())?;
            (words, start) = (Some(won.words), won.start);
        }
    }
    chosen.limits.time = request.limits.time.map(|budget| budget - started.elapsed().as_secs_f64());
    let (best, surprises) = Model::fit_as_asked(prepared.clone(), &chosen, (ROWS, start), observer)?;
    if best.was_interrupted() {
        return Ok(best);
    }
    let has_raced = words.is_some();
    let [mapped, why] = words.unwrap_or_default();
    let mut own = Candidates {
        prepared,
        originals,
        asked: request,
        best,
        request: chosen,
        surprises,
        has_raced,
        gain: 0.0,
        mapped,
        why,
        started,
        observer,
    };
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

/// What won on some of the rows: kernel and maps of features, why each, and where the search ended.
struct Won {
    kernel: KernelExpression,
    maps: FeatureMaps,
    words: [String; 2],
    start: Option<Vec<f64>>,
}

/// What predicts rows of folds best, of [`RACED`] of the rows, within a quarter of a budget; none where a search there failed, or nothing is to be compared.
fn raced(
    prepared: &Prepared,
    originals: &OriginalRows,
    (request, started): (&FitRequest, Instant),
    observer: &mut Observer<'_, FitStage>,
) -> Result<Option<Won>, ModelError> {
    let streams = Streams::new(request.seed).child("model/raced", 0);
    let rows = some_of(prepared.data.rows(), RACED, streams);
    let few = Arc::new(originals.select(&rows));
    let mut asked = request.clone();
    asked.limits.time = request.limits.time.map(|budget| 0.25 * budget);
    asked.validation.of_candidate = true;
    let some =
        Prepared { data: prepared.data.select(&rows)?, originals: Some(few.clone()), ..prepared.clone() };
    let first = Model::fit_as_asked(some.clone(), &asked, (ROWS, None), observer);
    let Some((mut best, _)) = found(first)? else { return Ok(None) };
    if best.was_interrupted() {
        return Ok(None);
    }
    let surprises = by_folds(&mut best, &asked, observer)?;
    let mut own = Candidates {
        prepared: some,
        originals: few,
        asked: &asked,
        best,
        request: asked.clone(),
        surprises,
        has_raced: false,
        gain: 0.0,
        mapped: String::new(),
        why: String::new(),
        started,
        observer,
    };
    if own.is_noiseless() || own.has_large_amplitude() {
        return Ok(None);
    }
    match own.by_folds() {
        // A stop is heard again by what comes next.
        Ok(()) | Err(ModelError::Interrupted) => {}
        Err(error) => return Err(error),
    }
    let known = &own.prepared.standardisation.feature_maps;
    let alike =
        |maps: &FeatureMaps| maps.first().map(|own| own.1.name()) == known.first().map(|own| own.1.name());
    // Learned anew, from all rows.
    let maps = maps_of(&prepared.schema, request, originals.x.as_ref()).into_iter().find(alike);
    let on = |text: String| text.replace("NLL is", &format!("NLL on {RACED} rows is"));
    Ok(Some(Won {
        kernel: own.request.prior.kernel.clone(),
        maps: maps.unwrap_or_default(),
        words: [own.mapped, own.why].map(on),
        start: own.best.predictor.exact().map(|own| own.model().values()),
    }))
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
    /// How surprised it is by each row of its folds; empty where there are none.
    surprises: Vec<f64>,
    /// Whether kernel and maps were chosen on some of the rows.
    has_raced: bool,
    /// What its evidence gained, nats.
    gain: f64,
    /// Which maps its features have, and why.
    mapped: String,
    /// Why its kernel is another than was asked for.
    why: String,
    started: Instant,
    observer: &'a mut Observer<'o, FitStage>,
}

impl Candidates<'_, '_> {
    fn tried(&mut self) -> Result<(), ModelError> {
        if self.asked.prior.kernel == FitRequest::default().prior.kernel {
            self.smoothness()?;
            if self.why.is_empty() {
                self.trend()?;
            }
            // Errors of functions without noise are those of rounding, which folds of fewer rows tell worse.
            if !self.is_noiseless() {
                if self.request.validation.of_candidate {
                    self.surprises = by_folds(&mut self.best, &self.request, self.observer)?;
                }
                if !self.has_raced {
                    self.by_folds()?;
                }
            }
            self.name_kernel();
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

    /// What is kept by how it predicts rows of folds.
    fn by_folds(&mut self) -> Result<(), ModelError> {
        self.maps()?;
        self.simpler()?;
        self.constant()
    }

    /// Whether a stationary function may stand for a trend.
    fn has_large_amplitude(&self) -> bool {
        self.hyperparameter(is_stationary_variance) > LARGE * LARGE
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
        self.fitted_to(self.prepared.clone(), request, None)
    }

    /// The same of rows that are prepared in another way, from where another search ended.
    fn fitted_to(
        &mut self,
        prepared: Prepared,
        request: &FitRequest,
        start: Option<Vec<f64>>,
    ) -> Result<Option<Model>, ModelError> {
        found(Model::fit_as_asked(prepared, request, (FOLD_ROWS, start), self.observer).and_then(
            |(model, _)| {
                if model.was_interrupted() { Err(ModelError::Interrupted) } else { Ok(model) }
            },
        ))
    }

    /// Keeps what makes the rows likelier than the best model does, by a margin in nats.
    fn keep_likelier(&mut self, request: FitRequest, margin: f64) -> Result<bool, ModelError> {
        let Some(model) = self.fitted(&request)? else { return Ok(false) };
        let Some(gain) = self.likelier(&model).filter(|gain| *gain > margin) else { return Ok(false) };
        self.gain += gain;
        (self.best, self.request) = (model, request);
        Ok(true)
    }

    /// By how much another model makes the rows likelier than the best one does, nats.
    fn likelier(&self, model: &Model) -> Option<f64> {
        let evidence = |model: &Model| model.process()?.record().fit.gaussian()?.log_evidence;
        Some(evidence(model)? - evidence(&self.best)?)
    }

    /// Keeps what predicts rows of folds better than the best model does, where the evidence does not speak against it; by how much, with the standard error.
    fn keep_better(
        &mut self,
        prepared: Prepared,
        (request, start): (FitRequest, Option<Vec<f64>>),
    ) -> Result<Option<[f64; 2]>, ModelError> {
        let Some(mut model) = self.fitted_to(prepared.clone(), &request, start)? else { return Ok(None) };
        // What is worse than the mean has no say.
        if !self.is_poor() && self.likelier(&model).is_none_or(|gain| gain < -DOUBT) {
            return Ok(None);
        }
        let surprises = by_folds(&mut model, &request, self.observer)?;
        let Some([gain, error]) = sure_gain(&self.surprises, &surprises) else { return Ok(None) };
        (self.best, self.prepared, self.request, self.surprises) = (model, prepared, request, surprises);
        Ok(Some([gain, error]))
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

    /// Whether the noise is at its floor, and rows of folds are predicted well: functions follow few noisy rows exactly as well, and predict no others.
    fn is_noiseless(&self) -> bool {
        let predicts = self.surprises.is_empty() || self.lost_to_mean() < -WELL;
        predicts
            && self.hyperparameter(|name| name == "noise_variance") <= 2.0 * self.request.prior.noise_floor
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
        if !self.has_large_amplitude() {
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

    /// Maps of skewed features.
    fn maps(&mut self) -> Result<(), ModelError> {
        if self.surprises.is_empty() {
            return Ok(());
        }
        let originals = self.originals.clone();
        for maps in maps_of(&self.prepared.schema, &self.request, originals.x.as_ref()) {
            let words = maps_in_words(&maps, &self.prepared.schema);
            let mapped = self.prepared.mapped(maps, originals.x.as_ref())?;
            let start = self.best.predictor.exact().map(|own| own.model().values());
            if let Some(request) = self.changed(|_| {})
                && let Some([gain, error]) = self.keep_better(mapped, (request, start))?
            {
                self.mapped = format!(
                    "; {words}, whose cross-validated NLL is {gain:.3} +- {error:.3} below that of what came before ({EXACT} takes columns as they are)"
                );
            }
        }
        Ok(())
    }

    /// Whether a column is a time, or counts the rows as they stand. New rows may be later than all others, and rows in between do not tell whether a trend goes on.
    fn orders_rows(&self, column: usize) -> bool {
        let feature = &self.prepared.schema.features[column];
        let x = self.originals.x.col(column);
        let (mut up, mut down) = (true, true);
        for (a, b) in x.iter().zip(x.iter().skip(1)) {
            (up, down) = (up && a < b, down && a > b);
        }
        matches!(feature, Feature::Number { reading: Reading::Time { .. }, .. }) || up || down
    }

    /// A linear function beside the kernel, and the same where all columns have one lengthscale together: with few rows a lengthscale for each follows chance.
    fn simpler(&mut self) -> Result<(), ModelError> {
        if self.surprises.is_empty() {
            return Ok(());
        }
        let names = self.prepared.schema.feature_names();
        let asked = &self.asked.prior.kernel;
        let apart = asked.unscaled_columns(&names);
        let numbers = (0..names.len()).filter(|column| !apart.contains(column) && !self.orders_rows(*column));
        let columns: Vec<String> = numbers.map(|column| format!("`{}`", names[column])).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let (own, linear) = (asked.of_table(&names).to_string(), format!("linear({})", columns.join(", ")));
        let shared = own.replace("(ard)", "").replace("(ard, ", "(");
        // Of one column both are the same.
        for kernel in [shared, own].into_iter().skip(usize::from(names.len() == 1)) {
            let Ok(kernel) = format!("{kernel} + {linear}").parse::<KernelExpression>() else { continue };
            if let Some(request) = self.changed(|own| own.prior.kernel = kernel)
                && let Some([gain, error]) = self.keep_better(self.prepared.clone(), (request, None))?
            {
                self.why = format!("whose cross-validated NLL is {gain:.3} +- {error:.3} below that");
            }
        }
        Ok(())
    }

    /// Whether rows of folds would surprise the mean and deviation of the training rows less.
    fn is_poor(&self) -> bool {
        !self.surprises.is_empty() && self.lost_to_mean() > 0.0
    }

    /// By how much more rows of folds surprise the best model than the mean and deviation of the training rows, in nats a row.
    fn lost_to_mean(&self) -> f64 {
        let count = self.surprises.len();
        let targets = self.prepared.data.targets();
        let square = targets.col(0).iter().map(|y| y * y).sum::<f64>() / targets.nrows().max(1) as f64;
        let own = self.surprises.iter().map(|own| own.min(MOST_SURPRISE)).sum::<f64>() / count.max(1) as f64;
        own - 0.5 * (TAU.ln() + square)
    }

    /// Nothing but a level, where all else is worse than that. Of groups that are left out whole nothing else may be known, and of those that are there much is.
    fn constant(&mut self) -> Result<(), ModelError> {
        if !self.is_poor() || self.prepared.data.parting().is_some() {
            return Ok(());
        }
        let Ok(kernel) = "constant".parse::<KernelExpression>() else { return Ok(()) };
        if let Some(request) = self.changed(|own| own.prior.kernel = kernel)
            && let Some([gain, error]) = self.keep_better(self.prepared.clone(), (request, None))?
        {
            self.why = format!("whose cross-validated NLL is {gain:.3} +- {error:.3} below that");
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
        let mapped = std::mem::take(&mut self.mapped);
        self.say(&mapped);
        let PriorSettings { kernel, noise_floor, .. } = &self.request.prior;
        if *kernel == self.asked.prior.kernel && *noise_floor == self.asked.prior.noise_floor {
            return;
        }
        let names = self.prepared.schema.feature_names();
        let floor = match *noise_floor == self.asked.prior.noise_floor {
            true => String::new(),
            false => format!(" with a noise floor of {noise_floor:.0e}"),
        };
        let why = match self.why.is_empty() {
            true => format!("whose log evidence is {:.1} above that", self.gain),
            false => std::mem::take(&mut self.why),
        };
        let asked = self.asked.prior.kernel.of_table(&names);
        let text = format!("; the kernel {kernel}{floor}, {why} of {asked} ({EXACT} keeps the latter)");
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

/// By how much less rows surprise one model than another, in nats a row, and the standard error of that. One row that is wrong does not decide.
fn gain(own: &[f64], other: &[f64]) -> Option<[f64; 2]> {
    let pairs = own.iter().zip(other);
    let differences: Vec<f64> =
        pairs.map(|(own, other)| own.min(MOST_SURPRISE) - other.min(MOST_SURPRISE)).collect();
    (!differences.is_empty()).then(|| mean_and_error(&differences))
}

/// The same where it is worth a change.
fn sure_gain(own: &[f64], other: &[f64]) -> Option<[f64; 2]> {
    gain(own, other).filter(|[gain, _]| gain * own.len() as f64 > FEW_NATS)
}

/// Judges a candidate as others are.
fn by_folds(
    model: &mut Model,
    request: &FitRequest,
    observer: &mut Observer<'_, FitStage>,
) -> Result<Vec<f64>, ModelError> {
    judge_by_folds(model, (request, &EvidenceOptions::default()), observer)
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
