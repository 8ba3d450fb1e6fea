//! A process in words: what was fitted, how, how good it is, and what there is to note.

use super::check::CONVERGED;
use super::gvi::{GviSummary, factors};
use super::{
    CheckScores, DeepSummary, FitCheck, FitRecord, FitSummary, Process, ScalableSummary, Solver, generalised,
};
use crate::Compression;
use crate::inputs::TableInputs;
use crate::output::{GaussianOutput, Output};
use crate::rows::equals_in_words;
use crate::text::{number, table, time};
use posterior_data::Feature;
use posterior_gp::MeanForm;
use posterior_gp::generalised::{Mode, Reduction, Risk, Selector};
use posterior_kernels::KernelExpression;
use posterior_kernels::features::{FeatureForm, FeatureSettings, FrequencyDraw};
use posterior_linear::low_rank::Rest;
use posterior_notes::fixes::{
    BOUND, KERNEL, NOISE_FLOOR, NOISE_HETEROSCEDASTIC, STEPS, TRANSFORM, TRANSFORM_LOG, TRANSFORM_YEO_JOHNSON,
};
use posterior_report::{Hyperparameter, Note, Severity, SummaryRow};

mod hyperparameters;

pub(super) use hyperparameters::{hyperparameters, lengthscales};

/// The facts about a model, in order.
pub(super) fn summary(model: &Process<'_>) -> Vec<SummaryRow> {
    match (&model.output, &model.record.fit) {
        (Output::Gaussian(output), FitRecord::Gaussian(fit)) => of_numbers(model, output, fit),
        (Output::Likelihood(output), FitRecord::Likelihood(fit)) => {
            generalised::summary(model.inputs, output, model.record, fit)
        }
        // No file has both ([`Process::load`]).
        _ => Vec::new(),
    }
}

/// The same under Gaussian noise.
fn of_numbers(model: &Process<'_>, output: &GaussianOutput, fit: &FitSummary) -> Vec<SummaryRow> {
    let Process { inputs, record, .. } = model;
    let mut rows = vec![SummaryRow::new("method", &fit.choice)];
    match fit.scalable.as_ref().and_then(|large| large.deep.as_ref()) {
        Some(deep) => rows.extend(features(deep, &record.kernel)),
        None => rows.extend([
            SummaryRow::new("kernel", record.kernel.to_string()),
            SummaryRow::new("mean", mean_form(record.mean)),
            SummaryRow::new("beliefs", beliefs(&fit.hyperpriors)),
        ]),
    }
    if let Some(gvi) = fit.scalable.as_ref().and_then(|large| large.gvi.as_ref()) {
        rows.extend(variation(gvi));
    }
    if let Some(text) = fit.transform.sentence(&inputs.schema.target) {
        rows.push(SummaryRow::new("target", text));
    }
    if let Some(noise) = &output.noise {
        let unit = inputs.standardisation.image_of(&inputs.schema.target);
        rows.push(SummaryRow::new("noise", noise.sentence(inputs.standardisation.target_scale, &unit)));
    }
    rows.push(SummaryRow::new("rows learned from", record.rows.to_string()));
    if let Some(weights) = &fit.weights {
        rows.push(SummaryRow::new("weights", weights));
    }
    rows.extend(record.continued.iter().map(|own| SummaryRow::new("rows added", own.sentence())));
    if let Some(check) = &fit.check {
        let before = compressed(fit).map_or("", |_| " before it was compressed");
        rows.extend(checked(check, before));
    }
    if let Some(own) = &fit.recalibration {
        let text = format!("standard deviations times {:.3}, by {} rows", own.factor, own.rows);
        rows.push(SummaryRow::new("recalibrated", text));
    }
    if let Some(evidence) = fit.log_evidence {
        rows.push(SummaryRow::new("log evidence", format!("{evidence:.3} (of the standardised target)")));
    }
    match (&fit.scalable, &fit.hyperparameter_source) {
        (Some(large), _) => rows.extend(large_table(large)),
        (None, Some(source)) => rows.push(SummaryRow::new("hyperparameters", source)),
        (None, None) => rows.extend([
            SummaryRow::new(
                "search",
                format!(
                    "{} steps, {} evaluations, ended by {}",
                    fit.steps,
                    fit.evaluations,
                    reason(fit.reason)
                ),
            ),
            SummaryRow::new("starts", attempts(fit)),
        ]),
    }
    rows.extend([
        SummaryRow::new("seconds", format!("{:.2}", fit.seconds)),
        SummaryRow::new("seed", record.seed.to_string()),
    ]);
    rows
}

/// What can be done about errors that grow with the prediction, or shrink.
pub(super) fn funnel_remedy(
    inputs: &TableInputs,
    output: &GaussianOutput,
    fit: &FitSummary,
    grow: bool,
) -> String {
    if inputs.schema.noise.is_some() {
        return "the known variances (--noise) do not explain it: correct them, or leave them out".into();
    }
    if output.noise.is_some() {
        return format!("the noise of places is learned already: another kernel ({KERNEL}) may fit better");
    }
    let positive = fit.transform.least.is_none_or(|least| least > 0.0);
    let map = match (&inputs.standardisation.transform, grow && positive) {
        (None, true) => TRANSFORM_LOG.to_string(),
        (None, false) => TRANSFORM_YEO_JOHNSON.to_string(),
        (Some(_), _) => format!("another {TRANSFORM}"),
    };
    format!("fit with {map}, or where that is not enough with {NOISE_HETEROSCEDASTIC}")
}

/// The form of a prior mean.
pub(super) fn mean_form(mean: MeanForm) -> &'static str {
    match mean {
        MeanForm::Zero => "zero",
        MeanForm::Constant => "constant",
        MeanForm::Linear => "linear",
    }
}

/// How good a fit is on rows that had no part in it.
fn checked(check: &FitCheck, before: &str) -> Vec<SummaryRow> {
    let label = check.on.in_words("each row from the others");
    let scores = |s: &CheckScores| {
        format!(
            "{:.1} % inside 95 % intervals, RMSE {:.4}, NLL {:.4} (of the standardised target)",
            100.0 * s.coverage_95,
            s.rmse,
            s.nll
        )
    };
    let by_chance = check.by_chance().unwrap_or_default();
    let equals = equals_in_words(check.twins, check.copies);
    let text = format!("{}: {}{by_chance}{equals}", check.rows, scores(&check.scores));
    let mut rows = vec![SummaryRow::new(format!("{label}{before}"), text)];
    if let (Some(converged), Some(drift)) = (check.converged, check.drift) {
        let verdict = if converged { "yes" } else { "NO" };
        // What is left of the system may say more than what no longer moves.
        let residual = check.residual.filter(|_| !converged && drift <= CONVERGED);
        let residual = residual
            .map_or_else(String::new, |left| format!("a relative residual of {} is left; ", number(left)));
        let text = format!(
            "{verdict}: {residual}over the last third of the steps predictions moved by {drift:.3} of their standard deviations"
        );
        rows.push(SummaryRow::new("converged", text));
    }
    if let Some(error) = check.variance_error {
        rows.push(SummaryRow::new(
            "error of variances",
            format!("{:.0} %, of samples and their random features together", 100.0 * error),
        ));
    }
    for tried in &check.tried {
        let scores = tried.scores.as_ref().map_or_else(String::new, |s| format!("; {}", scores(s)));
        let recalibrated =
            tried.recalibrated_nll.map_or_else(String::new, |nll| format!(", recalibrated {nll:.4}"));
        let reached = tried.reached_seconds.map_or_else(String::new, |own| {
            format!(" to a tenth of its deviations, where it was after {}", time(own))
        });
        let foretold = tried.predicted_seconds;
        let foretold =
            foretold.map_or_else(String::new, |seconds| format!(" (foretold: {}{reached})", time(seconds)));
        let text = format!("{}{scores}{recalibrated}; {:.1} s{foretold}", tried.outcome, tried.seconds);
        rows.push(SummaryRow::new(format!("tried {}", tried.method), text));
    }
    rows
}

/// The facts about learned features.
pub(super) fn features(deep: &DeepSummary, kernel: &KernelExpression) -> Vec<SummaryRow> {
    let what = match deep.inducing {
        _ if deep.dense => {
            format!("an exact process under {} on {} outputs of {}", kernel, deep.rank, deep.origin)
        }
        true if deep.architecture.is_none() => format!("{}, {} under {}", deep.origin, deep.rank, kernel),
        true => format!("{} inducing points under {} behind {}", deep.rank, kernel, deep.origin),
        false => format!("{} outputs of {}", deep.rank, deep.origin),
    };
    let many = (1..deep.rank).contains(&deep.trained_rows) && !deep.dense;
    let what = match many {
        true => format!(
            "{what}; more than the {} rows that they are trained on: rows say nothing of some directions, where the prior stays",
            deep.trained_rows
        ),
        false => what,
    };
    let d = deep.diagnostics;
    let rest = match deep.rest {
        Rest::None => "of the features alone".to_string(),
        Rest::Uniform { largest } => format!("everywhere {largest:.3}, the largest in training"),
        Rest::Own => "of the kernel".to_string(),
    };
    let correlated = deep.smallest_correlation.map_or_else(String::new, |least| {
        format!(", prior correlations of rows with the first from {least:.3}")
    });
    let own = if deep.dense { "in training" } else { "the features' own" };
    let range = format!(
        "{rest}; {own} from {:.3} to {:.3}, effective rank {:.2}{correlated}",
        d.smallest_variance, d.largest_variance, d.effective_rank
    );
    let closed = deep.tried.iter().any(|tried| tried.noise.is_some());
    let refitted = match (deep.refitted, closed) {
        (false, _) => "",
        (true, true) => ", then the exact posterior of the weights",
        (true, false) => ", then the weights that the bound of all rows prefers",
    };
    let weights = if closed { "exact weights" } else { "weights by the bound of all rows" };
    let mut rows = vec![
        SummaryRow::new("features", what),
        SummaryRow::new("prior variance", range),
        SummaryRow::new("trained by", format!("{}{refitted}", deep.chosen)),
        SummaryRow::new(
            "rows set aside",
            format!("{} to stop and to choose by{}", deep.validation_rows, equals_in_words(deep.twins, 0)),
        ),
    ];
    for tried in &deep.tried {
        let score = |nll: f64| if nll < f64::MAX { format!("NLL {nll:.4}") } else { "no result".into() };
        let again = tried.refitted_nll.map_or_else(String::new, |nll| format!(" ({nll:.4} with {weights})"));
        let noise = tried.noise.map_or_else(String::new, |noise| format!(" noise {:.4},", noise.sqrt()));
        let triangles = match tried.triangular_solves {
            0 => String::new(),
            count => format!(", {count} solved by triangles, where squares of features lose too many digits"),
        };
        let text = format!(
            "{}{again};{noise} {} steps (best after {}), ended by {}, {:.1} s{triangles}",
            score(tried.nll),
            tried.steps[0],
            tried.steps[1],
            tried.ended,
            tried.seconds
        );
        rows.push(SummaryRow::new(format!("tried {}", tried.name), text));
    }
    rows
}

/// The facts about a mean and a covariance that were trained.
pub(super) fn variation(gvi: &GviSummary) -> Vec<SummaryRow> {
    let prior = &gvi.prior;
    let jitter = match prior.relative_jitter > 1e-9 {
        true => format!("; {:.1e} of its diagonal's mean was added to their matrix", prior.relative_jitter),
        false => String::new(),
    };
    let mode = match gvi.mode {
        Mode::Prior => "the prior",
        Mode::Posterior => "its posterior given the inducing points",
    };
    let reduction = match gvi.objective.reduction {
        Reduction::Mean => "the mean over rows",
        Reduction::Sum => "the sum over rows",
    };
    let risk = match gvi.objective.risk {
        Risk::Expected => "expected negative log-likelihood",
        Risk::Predictive => "negative log predictive density",
    };
    let mut rows = vec![
        SummaryRow::new(
            "inducing points",
            format!("{} rows, by {}{jitter}", prior.inducing, selector(prior.selector)),
        ),
        SummaryRow::new(
            "regularised by",
            format!("{} times {} of {mode}", gvi.objective.weight, gvi.objective.regulariser),
        ),
        SummaryRow::new("risk", format!("{risk}, {reduction}")),
        SummaryRow::new("variational mean", &gvi.mean),
        SummaryRow::new("variational kernel", format!("{}: {}", gvi.family, gvi.family.description())),
        SummaryRow::new("trained by", &gvi.chosen),
        SummaryRow::new(
            "rows set aside",
            format!(
                "{} to stop, to choose and to temper by{}",
                gvi.validation_rows,
                equals_in_words(gvi.twins, 0)
            ),
        ),
    ];
    if let Some(network) = &prior.network {
        let what = match network.kept {
            true => "kept as it is".into(),
            false => format!("its {} weights among the hyperparameters", network.weights),
        };
        rows.push(SummaryRow::new(
            "kernel behind",
            format!("{}, {} outputs, {what}", network.origin, network.outputs),
        ));
    }
    if !prior.turns.is_empty() {
        let settled = match (prior.settled, prior.timed_out) {
            (true, _) => "points came back to an earlier set",
            (false, true) => "ended by time",
            (false, false) => "not settled",
        };
        rows.push(SummaryRow::new("prior learned in", format!("{} turns, {settled}", prior.turns.len())));
    }
    if let Some(tempered) = &gvi.tempering {
        rows.push(SummaryRow::new(
            "tempering",
            format!(
                "variances times {}: NLL of the rows set aside {:.4} -> {:.4}",
                factors(&tempered.factors),
                tempered.before,
                tempered.after
            ),
        ));
    }
    for tried in &gvi.tried {
        let score = |nll: f64| if nll < f64::MAX { format!("NLL {nll:.4}") } else { "no result".into() };
        let again = tried.tempered_nll.map_or_else(String::new, |nll| format!(" ({nll:.4} tempered)"));
        let text = format!(
            "{}{again}; {} steps (best after {}), ended by {}, {:.1} s",
            score(tried.nll),
            tried.steps[0],
            tried.steps[1],
            match tried.ended.parse() {
                Ok(known) => reason(known),
                // What went wrong, as it was said.
                Err(_) => &tried.ended,
            },
            tried.seconds
        );
        rows.push(SummaryRow::new(format!("tried {}", tried.name), text));
    }
    rows
}

fn selector(selector: Selector) -> &'static str {
    match selector {
        Selector::GreedyVariance => "greedy variance",
        Selector::Random => "chance",
        Selector::KMeans => "k-means",
    }
}

/// The facts about a fit to a large table.
fn large_table(fit: &ScalableSummary) -> Vec<SummaryRow> {
    let mut rows = vec![SummaryRow::new("hyperparameters", &fit.hyperparameter_source)];
    if let Some(search) = &fit.search {
        let residual = search.residual.map_or(String::new(), |r| format!(", the last residual {r:.1e}"));
        let handed_on = if search.handed_on { "; their solutions begin the solve" } else { "" };
        let resumed = match search.resumed_from {
            0 => String::new(),
            step => format!(", resumed at step {step}"),
        };
        rows.push(SummaryRow::new(
            "search",
            format!(
                "{} steps, {:.0} passes of their solves{residual}, ended by {}; the last quarter gained {:.1e} nats a row{handed_on}{resumed}",
                search.steps,
                search.passes,
                reason(search.ended),
                search.last_gain,
            ),
        ));
    }
    if let Some(why) = &fit.evidence_failed {
        rows.push(SummaryRow::new("log evidence", format!("could not be estimated ({why})")));
    }
    if let Some(evidence) = &fit.log_evidence {
        rows.push(SummaryRow::new(
            "log evidence",
            format!(
                "{:.3} +- {:.3} (of the standardised target; standard error of {} probes, {} iterations, relative residual {:.1e})",
                evidence.value,
                evidence.standard_error,
                evidence.probes,
                evidence.iterations,
                evidence.residual
            ),
        ));
    }
    if let Some(bound) = fit.bound {
        rows.push(SummaryRow::new(
            "bound on the log evidence",
            format!("{bound:.3} (of the standardised target)"),
        ));
    }
    if let Some(own) = &fit.compressed {
        rows.push(SummaryRow::new("compressed", own.to_string()));
    } else if fit.inducing > 0 {
        let moved = if fit.inducing_moved { ", moved by the bound" } else { ", where they were chosen" };
        let radius = fit.inducing_radius.map_or_else(String::new, |r| format!(", radius {r:.3}"));
        let among = fit
            .inducing_candidates
            .map_or_else(String::new, |rows| format!(", chosen among {rows} rows drawn at random"));
        rows.push(SummaryRow::new("inducing points", format!("{}{moved}{radius}{among}", fit.inducing)));
    }
    if let Some(closed_form) = fit.closed_form {
        let text = match closed_form {
            true => "the best for these points, by a pass over all rows",
            false => {
                "as the last batches left them: a pass over all rows had no room in the time budget, or no factor"
            }
        };
        rows.push(SummaryRow::new("inducing values", text));
    }
    if let Some(bytes) = fit.from_disk {
        rows.push(SummaryRow::new("rows", format!("read from disk, {:.1} MB", bytes as f64 / 1e6)));
    }
    if let Some(settings) = &fit.settings {
        let precision = match fit.precision {
            crate::options::KernelPrecision::Single => "single",
            crate::options::KernelPrecision::Double => "double",
        };
        let FeatureSettings { count, form, frequencies } = settings.features;
        let form = if form == FeatureForm::Phase { " with phases" } else { "" };
        let frequencies = match frequencies {
            FrequencyDraw::Independent => "",
            FrequencyDraw::Orthogonal => ", orthogonal frequencies",
            FrequencyDraw::QuasiRandom => ", quasi-random frequencies",
            FrequencyDraw::Widened => ", half of them from wider laws",
        };
        let samples = settings.samples;
        let groups = settings
            .samples_per_features
            .map_or_else(|| " that all share".into(), |each| format!(" for every {each}"));
        rows.push(SummaryRow::new(
            "samples",
            format!("{samples} of {count} random features{groups}{form}{frequencies}, {precision} precision"),
        ));
    }
    let mut solver = format!("{} steps, ended by {}", fit.steps, fit.ended);
    if let Some(residual) = fit.residual {
        let what = match fit.solver {
            // The noise of the targets stays in it.
            Solver::Inducing(_) if fit.compressed.is_none() => "relative misfit of the targets",
            _ => "relative residual",
        };
        solver += &format!(", {what} {residual:.1e}");
    }
    if let Some(step) = fit.step_size {
        solver += &format!(", step size times rows {}", number(step));
    }
    if fit.restarts > 0 {
        solver += &format!(", {} restarts with a smaller step", fit.restarts);
    }
    if fit.resumed_from > 0 {
        solver += &format!(", resumed at step {}", fit.resumed_from);
    }
    rows.push(SummaryRow::new("solver", solver));
    rows.push(SummaryRow::new(
        "time",
        format!("{:.1} s for hyperparameters, {:.1} s for weights", fit.seconds[0], fit.seconds[1]),
    ));
    rows
}

pub(super) fn reason(reason: posterior_optim::Reason) -> &'static str {
    use posterior_optim::Reason;
    match reason {
        Reason::Gradient => "a vanishing gradient",
        Reason::Value => "no further improvement",
        Reason::Steps => "the limit of steps",
        Reason::Time => "the limit of time",
        Reason::Tolerance => "the tolerance",
        Reason::Precision => "the limit of precision",
        Reason::Patience => "the end of patience",
        Reason::Diverged => "numbers that were not finite",
        Reason::Interrupted => "an interruption",
    }
}

/// The hyperpriors that took part in the search.
pub(super) fn beliefs(hyperpriors: &[posterior_gp::Hyperprior]) -> String {
    use posterior_gp::Density;
    let one = |h: &posterior_gp::Hyperprior| match h.density {
        Density::LogNormal { location, scale } => {
            format!("{} ~ log-normal({location:.2}, {scale:.2})", h.parameter)
        }
        Density::Gamma { shape, rate } => format!("{} ~ gamma({shape}, {rate})", h.parameter),
    };
    let all: Vec<String> = hyperpriors.iter().map(one).collect();
    if all.is_empty() { "none".into() } else { all.join("; ") }
}

fn attempts(fit: &FitSummary) -> String {
    let failed = fit.attempts.iter().filter(|a| a.value.is_none()).count();
    let count = fit.attempts.len();
    if failed == 0 { count.to_string() } else { format!("{count}, of which {failed} failed") }
}

/// How far a model is from the one that it was compressed from, if it was.
fn compressed(fit: &FitSummary) -> Option<&Compression> {
    fit.scalable.as_ref()?.compressed.as_ref()
}

/// Everything that was added, chosen, dropped or is odd.
pub(super) fn notes(model: &Process<'_>) -> Vec<Note> {
    match (&model.output, &model.record.fit) {
        (Output::Gaussian(output), FitRecord::Gaussian(fit)) => notes_of_numbers(model, output, fit),
        (Output::Likelihood(output), FitRecord::Likelihood(fit)) => {
            generalised::notes(output, model.record, fit)
        }
        _ => Vec::new(),
    }
}

/// The same under Gaussian noise.
fn notes_of_numbers(model: &Process<'_>, output: &GaussianOutput, fit: &FitSummary) -> Vec<Note> {
    use posterior_optim::Reason;
    let Process { inputs, record, .. } = model;
    let mut out: Vec<Note> = fit.data.sentences().into_iter().map(Note::information).collect();
    out.extend(record.continued.iter().filter_map(|own| own.warning()).map(Note::warning));
    out.extend(record.streamed.iter().map(|streamed| Note::information(streamed.sentence())));
    out.extend(fit.transform.warning().map(Note::warning));
    if fit.largest_jitter > 0.0 {
        let note = Note::new(
            "jitter-of-search",
            Severity::Warning,
            "up to {largest} (in standard units) was added to the kernel matrix's diagonal during the search, {final} in the final model",
        );
        let note = note.value("largest", format!("{:.1e}", fit.largest_jitter));
        out.push(note.value("final", format!("{:.1e}", record.cholesky.unwrap_or_default().jitter)));
    }
    let noise =
        record.hyperparameter("noise_variance").and_then(|v| v.first()).copied().unwrap_or(f64::INFINITY);
    let learned = fit.scalable.as_ref().is_some_and(|large| large.deep.is_some());
    // That of the places is all of it, where it is learned.
    if output.noise.is_none() && noise <= record.noise_floor.unwrap_or(0.0) * 1.01 {
        out.push(match learned {
            true => Note::new(
                "shared-noise-floor",
                Severity::Information,
                "the noise that all rows share is at its floor: how sure a prediction is comes from its features alone",
            ),
            false => Note::new(
                "noise-floor",
                Severity::Warning,
                "the noise is at its floor ({0}): the data look noiseless to this kernel",
            )
            .fix(NOISE_FLOOR),
        });
    }
    if fit.reason == Reason::Steps && fit.scalable.is_none() {
        out.push(few_steps());
    }
    if let Some(check) = &fit.check {
        out.extend(check.warnings(fit.recalibration.is_some()).map(Note::warning));
    }
    out.extend(fit.scalable.iter().flat_map(|large| &large.warnings).map(Note::warning));
    if fit.check.as_ref().is_some_and(|check| 10 * check.copies >= check.rows) {
        out.push(Note::new(
            "copied-rows",
            Severity::Warning,
            "the table holds copies of its rows, which count as observations of their own: their agreement looks like little noise, and the function follows single rows too closely. Drop them",
        ));
    }
    if let Some(own) = &fit.recalibration {
        out.push(Note::information(own.sentence()));
    }
    // Learned features use few directions nearly always, and facts say how many; where intervals do not fit, that is why. A process that is a constant is another matter.
    let narrow = fit.check.as_ref().is_none_or(|check| check.scores.coverage_95 < check.chance[0]);
    if let Some(deep) =
        fit.scalable.as_ref().and_then(|large| large.deep.as_ref()).filter(|deep| narrow || deep.dense)
    {
        out.extend(deep.warnings().iter().map(Note::warning));
    }
    out.extend(compressed(fit).filter(|own| own.is_coarse()).map(|own| Note::warning(own.warning())));
    if let Some(gvi) = fit.scalable.as_ref().and_then(|large| large.gvi.as_ref()) {
        out.extend(gvi.warnings().iter().map(Note::warning));
    }
    out.extend(bounds_reached(&fit.at_bounds));
    for attempt in fit.attempts.iter().filter(|a| a.value.is_none()) {
        let note = Note::new("failed-start", Severity::Warning, "a start failed: {why}");
        out.push(note.value("why", &attempt.ended));
    }
    let categories = inputs.schema.features.iter().filter(|f| matches!(f, Feature::Category { .. })).count();
    if categories > 0 {
        let text = "{count} features are 0/1 columns made from categories";
        out.push(Note::new("category-columns", Severity::Information, text).value("count", categories));
    }
    out
}

/// A search that could have gone on.
pub(super) fn few_steps() -> Note {
    let text = "the search ended at its limit of steps: more ({0}) may improve the model";
    Note::new("few-steps", Severity::Warning, text).fix(STEPS)
}

/// Hyperparameters at bounds that were set for them.
pub(super) fn bounds_reached(at_bounds: &[(String, f64)]) -> impl Iterator<Item = Note> {
    at_bounds.iter().map(|(name, bound)| {
        let text = "{name} ended at the bound {bound} (in standard units) that was set for it ({0})";
        let note = Note::new("at-bound", Severity::Warning, text).fix(BOUND);
        note.value("name", name).value("bound", bound)
    })
}

/// What was learned, as a table.
pub(super) fn table_of(hyperparameters: Vec<Hyperparameter>) -> String {
    let row = |h: Hyperparameter| vec![h.name, number(h.value), h.unit];
    table(&hyperparameters.into_iter().map(row).collect::<Vec<_>>())
}
