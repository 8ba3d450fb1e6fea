//! A process in words: what was fitted, how, how good it is, and what there is to note.

use super::likelihood;
use crate::facts::{STANDARDISED, count, ending, fixed, nonzero, search};
use crate::text::{number, table};
use crate::{
    Compression, Fact, Facts, FitRecord, FitRequest, FitSummary, GaussianOutput, GviSummary, Output, Process,
    ProcessRecord, Recalibration, TableInputs,
};
use posterior_gp::{Density, Hyperprior, MeanForm};
use posterior_metrics::Funnel;
use posterior_notes::fixes::{
    BOUND, KERNEL, NOISE_FLOOR, NOISE_HETEROSCEDASTIC, STEPS, TRANSFORM, TRANSFORM_LOG, TRANSFORM_YEO_JOHNSON,
};
use posterior_report::{Hyperparameter, Note, Severity};

impl Process<'_> {
    /// The facts about a model, in order.
    pub(crate) fn facts(&self) -> Facts {
        match (self.output, &self.record.fit) {
            (Output::Gaussian(output), FitRecord::Gaussian(fit)) => of_numbers(self, output, fit),
            (Output::Likelihood(output), FitRecord::Likelihood(fit)) => {
                likelihood::facts(self.inputs, output, self.record, fit)
            }
            // No file has both ([`Process::load`]).
            _ => Facts::new(),
        }
    }

    /// Everything that was added, chosen, dropped or is odd.
    pub(crate) fn notes(&self) -> Vec<Note> {
        match (self.output, &self.record.fit) {
            (Output::Gaussian(output), FitRecord::Gaussian(fit)) => notes_of_numbers(self, output, fit),
            (Output::Likelihood(output), FitRecord::Likelihood(fit)) => {
                likelihood::notes(output, self.record, fit)
            }
            _ => Vec::new(),
        }
    }
}

/// The facts about a model under Gaussian noise.
fn of_numbers(model: &Process<'_>, output: &GaussianOutput, fit: &FitSummary) -> Facts {
    let Process { inputs, record, .. } = model;
    let (standard, target) = (&inputs.standardisation, &inputs.schema.target);
    let deep = fit.scalable.as_ref().and_then(|large| large.deep.as_ref());
    let gvi = fit.scalable.as_ref().and_then(|large| large.gvi.as_ref());
    let noise = output.noise.as_ref();
    let before = compressed(fit).map_or("", |_| " before it was compressed");
    let found = match (&fit.scalable, &fit.hyperparameter_source) {
        (Some(large), _) => large.facts(),
        (None, Some(source)) => Facts::new().fact("hyperparameters", source.as_str()),
        (None, None) => {
            let failed = fit.attempts.iter().filter(|a| a.value.is_none()).count();
            let starts = Facts::new().and(count(fit.attempts.len(), ""));
            let starts = starts.maybe("of which", nonzero(failed, "failed"));
            Facts::new().with([search(fit.steps, fit.evaluations, fit.reason)]).fact("starts", starts)
        }
    };
    Facts::new()
        .headline("method", fit.choice.as_str())
        .with(deep.map_or_else(|| prior(record, &fit.hyperpriors), |deep| deep.facts(&record.kernel)))
        .with(gvi.into_iter().flat_map(GviSummary::facts))
        .with(fit.transform.sentence(target).map(|own| Fact::new("target", own).headline()))
        .maybe("noise", noise.map(|own| own.sentence(standard.target_scale, &standard.image_of(target))))
        .headline("rows learned from", count(record.rows, ""))
        .maybe("weights", fit.weights.as_deref())
        .with(record.continued.iter().map(|own| Fact::new("rows added", own.sentence()).headline()))
        .with(fit.check.iter().flat_map(|check| check.facts(before)))
        .maybe("recalibrated", fit.recalibration.as_ref().map(Recalibration::facts))
        .maybe("log evidence", fit.log_evidence.map(|evidence| fixed(evidence, 3, STANDARDISED)))
        .with(found)
        .with(ending(fit.seconds, "", record.seed))
}

/// Kernel, mean and hyperpriors.
pub(crate) fn prior(record: &ProcessRecord, hyperpriors: &[Hyperprior]) -> Facts {
    let mean = match record.mean {
        MeanForm::Zero => "zero",
        MeanForm::Constant => "constant",
        MeanForm::Linear => "linear",
    };
    let density = |own: &Hyperprior| match own.density {
        Density::LogNormal { location, scale } => {
            format!("{} ~ log-normal({location:.2}, {scale:.2})", own.parameter)
        }
        Density::Gamma { shape, rate } => format!("{} ~ gamma({shape}, {rate})", own.parameter),
    };
    let priors = match hyperpriors {
        [] => Fact::from("none"),
        known => Facts::apart("; ").with(known.iter().map(|own| density(own).into())).into(),
    };
    Facts::new().fact("kernel", record.kernel.to_string()).fact("mean", mean).fact("priors", priors)
}

/// What can be done about errors that grow with the prediction, or shrink.
pub(crate) fn funnel_remedy(
    inputs: &TableInputs,
    output: &GaussianOutput,
    fit: &FitSummary,
    grow: bool,
) -> String {
    if inputs.schema.noise.is_some() {
        return "the known variances (--noise) do not explain it: correct them, or leave them out".into();
    }
    if output.noise.is_some() {
        return format!("heteroscedastic noise is learned already: another kernel ({KERNEL}) may fit better");
    }
    let positive = fit.transform.least.is_none_or(|least| least > 0.0);
    let map = match (&inputs.standardisation.transform, grow && positive) {
        (None, true) => TRANSFORM_LOG.to_string(),
        (None, false) => TRANSFORM_YEO_JOHNSON.to_string(),
        (Some(_), _) => format!("another {TRANSFORM}"),
    };
    format!("fit with {map}, or where that is not enough with {NOISE_HETEROSCEDASTIC}")
}

/// How far a model is from the one that it was compressed from, if it was.
fn compressed(fit: &FitSummary) -> Option<&Compression> {
    fit.scalable.as_ref()?.compressed.as_ref()
}

/// The notes on a model under Gaussian noise.
fn notes_of_numbers(model: &Process<'_>, output: &GaussianOutput, fit: &FitSummary) -> Vec<Note> {
    use posterior_optim::Reason;
    let record = model.record;
    let mut out: Vec<Note> = fit.data.sentences().into_iter().map(Note::information).collect();
    out.extend(record.continued.iter().filter_map(|own| own.warning()).map(Note::warning));
    out.extend(record.streamed.iter().map(|streamed| Note::information(streamed.sentence())));
    out.extend(fit.transform.warning().map(Note::warning));
    out.extend(fit.transform.mass_on_bounds(&model.inputs.schema.target).map(Note::warning));
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
        // Where it was lowered already, nothing is left to do.
        let lowest = record.noise_floor.unwrap_or(0.0) < FitRequest::default().prior.noise_floor;
        out.push(match learned {
            false if lowest => Note::new(
                "noiseless",
                Severity::Information,
                "the data look noiseless: the noise is at its floor of {floor} of the target's variance",
            )
            .value("floor", format!("{:.0e}", record.noise_floor.unwrap_or(0.0))),
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
    if fit.check.as_ref().is_some_and(|check| 10 * check.duplicates >= check.rows) {
        out.push(Note::new(
            "duplicate-rows",
            Severity::Warning,
            "the table holds duplicate rows, which count as observations of their own: their agreement looks like little noise, and the function follows single rows too closely. Drop them",
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
    out
}

/// The note on a search that could have gone on.
pub(crate) const FEW_STEPS: &str = "few-steps";

/// A search that could have gone on.
pub(crate) fn few_steps() -> Note {
    let text = "the search ended at its limit of steps: more ({0}) may improve the model";
    Note::new(FEW_STEPS, Severity::Warning, text).fix(STEPS)
}

/// Hyperparameters at bounds that were set for them.
pub(crate) fn bounds_reached(at_bounds: &[(String, f64)]) -> impl Iterator<Item = Note> {
    at_bounds.iter().map(|(name, bound)| {
        let text = "{name} ended at its bound of {bound} (in standard units; {0} sets another)";
        let note = Note::new("at-bound", Severity::Warning, text).fix(BOUND);
        note.value("name", name).value("bound", bound)
    })
}

/// What was learned, as a table.
pub(crate) fn table_of(hyperparameters: Vec<Hyperparameter>) -> String {
    let row = |h: Hyperparameter| vec![h.name, number(h.value), h.unit];
    table(&hyperparameters.into_iter().map(row).collect::<Vec<_>>())
}

/// How the warning of a funnel begins.
pub(crate) const FUNNEL: &str = "a funnel";

/// What a funnel is, and what to do.
pub(crate) fn funnel_in_words(funnel: Funnel, rows: usize, remedy: &str) -> String {
    let (grow, narrow, wide) = match funnel.rank_correlation > 0.0 {
        true => ("grow", "large", "small"),
        false => ("shrink", "small", "large"),
    };
    format!(
        "{FUNNEL}: errors {grow} with the prediction (rank correlation {:.2}, {rows} rows); intervals are too narrow where it is {narrow}, too wide where it is {wide}: {remedy}",
        funnel.rank_correlation
    )
}
