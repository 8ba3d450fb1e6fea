//! From a table to a model.

use super::candidates;
use crate::method::deep;
use crate::method::large::{fit_from_disk, in_memory, not_from_disk, whole_posterior};
use crate::method::noise;
use crate::method::regression::{Draft, recorded};
use crate::method::training::begin_anew;
use crate::options::{EvidenceOptions, Limits};
use crate::prepare::{densest_place, saved_plan};
use crate::text::{time, work};
use crate::{
    Chosen, FitRequest, FitStage, FitSummary, GaussianOutput, Method, Model, ModelError, Prepared,
    PreparedTable, ScalablePlan, TableInputs, calibration, choose,
};
use faer::Mat;
use posterior_data::Table;
use posterior_gp::exact::{Criterion, Plan};
use posterior_gp::{GpError, Observations, RowSource};
use posterior_linalg::cholesky::CholeskyInfo;
use posterior_notes::fixes::{EXACT, LIKELIHOOD_STUDENT_T};
use posterior_optim::{Observer, Reason};
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// What a fit is planned to take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitCost {
    /// Training rows.
    pub rows: usize,
    /// Name of the method; for a table, of `auto` the one that it chooses.
    pub method: String,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Predicted run time; none where nothing is known of it.
    pub seconds: Option<f64>,
}

impl Model {
    /// What a fit to `rows` rows with inputs of these names would need, in words and bytes.
    pub fn plan_fit(request: &FitRequest, rows: usize, names: &[String]) -> (String, u64) {
        let (text, bytes) = Self::plan_of_function(request, rows, names);
        if !request.learns_heteroscedastic_noise() {
            return (text, bytes);
        }
        let (noise, beside) = noise::plan_in_words(request, rows, names.len());
        (format!("{text}; {noise}"), bytes.max(beside))
    }

    /// What a fit to `rows` rows is planned to take, by the method that `auto` chooses where that is asked for. Measures this machine for some hundredths of a second.
    pub fn fit_cost(request: &FitRequest, rows: usize, names: &[String]) -> FitCost {
        let method = choose(request, rows, names).method;
        let settings = method.settings();
        let bytes = match settings.leaves_one_out() {
            true => settings.plan((request, &method), rows, names.len()).peak_bytes,
            false => ScalablePlan::new(request, &method, rows, names.len()).peak_bytes,
        };
        let seconds = crate::method::large::expected_seconds(request, &method, rows, names);
        FitCost { rows, method: method.name().to_string(), bytes, seconds }
    }

    /// The same without heteroscedastic noise.
    fn plan_of_function(request: &FitRequest, rows: usize, names: &[String]) -> (String, u64) {
        let features = names.len();
        let chosen = choose(request, rows, names);
        let seconds = crate::method::large::in_words(request, &chosen.method, rows, names);
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
        candidates::fit(prepared, request, observer)
    }

    /// As [`Model::fit`], for rows that are prepared, and as the request says alone: nothing else is tried.
    ///
    /// # Errors
    /// As [`Model::fit`]; [`ModelError::Interrupted`] when hyperparameters of a large table were not found yet.
    pub fn fit_prepared(
        prepared: Prepared,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        Ok(Self::fit_as_asked(prepared, request, (noise::ROWS, None), observer)?.0)
    }

    /// The same with so many rows at most that heteroscedastic noise learns from, and where else a search may begin. How surprised it is by each row of its folds comes beside it.
    pub(super) fn fit_as_asked(
        prepared: Prepared,
        request: &FitRequest,
        (noise_rows, start): (usize, Option<Vec<f64>>),
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<(Self, Vec<f64>), ModelError> {
        let started = Instant::now();
        check_noise(request)?;
        in_memory(&request.method)?;
        begin_anew(request)?;
        check_weights(&prepared.data, request, &prepared.schema.feature_names())?;
        let mut prepared = prepared;
        let (mut heteroscedastic, mut start) = (None, start);
        let later: FitRequest;
        let mut request = request;
        if request.learns_heteroscedastic_noise() {
            let names = prepared.schema.feature_names();
            let rows: Vec<usize> = (0..prepared.data.rows()).collect();
            let learned = noise::learn(request, (&names, noise_rows), (&prepared.data, &rows), observer)?;
            prepared.data = learned.data;
            heteroscedastic = Some((Arc::new(learned.process), learned.summary));
            if request.validation.of_candidate {
                start = Some(learned.function);
            }
            // One budget for all of it.
            let spent = started.elapsed().as_secs_f64();
            let time_budget = request.limits.time.map(|s| (s - spent).max(f64::MIN_POSITIVE));
            later = FitRequest { limits: Limits { time: time_budget, ..request.limits }, ..request.clone() };
            request = &later;
        }
        let (rows, features) = (prepared.data.rows(), prepared.data.inputs().ncols());
        let chosen = choose(request, rows, &prepared.schema.feature_names());
        let settings = chosen.method.settings();
        let plan = settings.plan((request, &chosen.method), rows, features);
        let mut draft = begun(&prepared, rows, (request, &chosen, plan))?;
        draft.inputs.densest = densest(&draft.inputs, || Ok(prepared.data.inputs().to_owned()))?;
        draft.start = start;
        if let Some((process, summary)) = heteroscedastic {
            draft.output = GaussianOutput { noise: Some(summary), process: Some(process) };
        }
        let training = prepared.training.clone();
        let learned = settings.fit(prepared, &mut draft, observer)?;
        let surprises = std::mem::take(&mut draft.surprises);
        Ok((draft.ended(learned, training, started)?, surprises))
    }

    /// As [`Model::fit`], for rows that are prepared in memory or in a file, by methods that look at some rows at a time ([`Method::disk`]) where they are in a file.
    ///
    /// # Errors
    /// As [`Model::fit_prepared`].
    pub fn fit_table(
        prepared: PreparedTable,
        request: &FitRequest,
        observer: &mut Observer<'_, FitStage>,
    ) -> Result<Self, ModelError> {
        let prepared = match prepared {
            PreparedTable::Memory(prepared) => return candidates::fit(prepared, request, observer),
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
        let mut draft = begun(&prepared, rows, (request, &chosen, plan))?;
        draft.inputs.densest = densest(&draft.inputs, || prepared.data.inputs())?;
        let training = prepared.training.clone();
        let (fitted, residuals) = fit_from_disk(prepared, request, &chosen.method, observer)?;
        let predictor = recorded(&mut draft, fitted);
        draft.ended((predictor, residuals), training, started)
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
    let draft = Draft {
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
        noise_floor: if chosen.method.sets_aside() {
            deep::floor(request)
        } else {
            request.prior.noise_floor
        },
        cholesky: CholeskyInfo::default(),
        start: None,
        surprises: Vec::new(),
        fit: FitSummary {
            log_evidence: None,
            criterion: evidence.map(EvidenceOptions::criterion).transpose()?.unwrap_or_default(),
            criterion_value: None,
            hyperpriors: request.prior.hyperpriors.clone(),
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
            weights: request.output.row_weights.as_ref().map(|column| format!("rows: `{column}`")),
            check: None,
            recalibration: None,
            hyperparameter_source: None,
            at_bounds: Vec::new(),
            scalable: None,
        },
    };
    let judged = chosen.method.large().map_or(rows, |large| large.held_back_of(rows));
    calibration::check(request.validation.calibrate, judged, chosen.method.settings().leaves_one_out())?;
    Ok(draft)
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
    let seconds = crate::method::large::rate(request, names)
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
    let back = |j: usize| inputs.standardisation.feature_back(j, place[j]);
    Ok(Some([back(0), back(1)]))
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
    let (floor, initial) = (request.prior.noise_floor, request.first_noise());
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
