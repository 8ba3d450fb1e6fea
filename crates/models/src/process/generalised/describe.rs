//! A model in words.

use super::gaussianised::PSEUDO_COUNTS;
use super::{FeatureSummary, GeneralisedSummary, LabelCheck, LabelScores, PlainProcess};
use crate::ClassRecalibration;
use crate::inputs::TableInputs;
use crate::output::{LikelihoodOutput, Target};
use crate::process::ProcessRecord;
use crate::process::describe::{self, reason};
use crate::rows::equals_in_words;
use crate::text::number;
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::{INFERENCE_LAPLACE, INFERENCE_VARIATIONAL, PSEUDO_COUNT, QUANTILES};
use posterior_report::{Note, Severity, SummaryRow};

/// The facts about a model, in order.
pub(in crate::process) fn summary(
    inputs: &TableInputs,
    output: &LikelihoodOutput,
    record: &ProcessRecord,
    fit: &GeneralisedSummary,
) -> Vec<SummaryRow> {
    let mut rows = vec![
        SummaryRow::new("target", format!("`{}`: {}", inputs.schema.target, fit.likelihood_choice)),
        SummaryRow::new("inference", &fit.choice),
    ];
    match &fit.features {
        Some(features) => rows.extend(learned(features, output, record)),
        None => rows.extend([
            SummaryRow::new("kernel", record.kernel.to_string()),
            SummaryRow::new("mean", describe::mean_form(record.mean)),
            SummaryRow::new("beliefs", describe::beliefs(&fit.hyperpriors)),
        ]),
    }
    if let Some(variation) = &fit.variation {
        rows.extend(describe::variation(&variation.learned));
        rows.push(SummaryRow::new(
            "objective",
            format!("{:.4} for each row, of recent steps", variation.objective),
        ));
        if let Some(plain) = &variation.plain {
            rows.push(plain_row(plain));
        }
    }
    rows.push(SummaryRow::new("rows learned from", record.rows.to_string()));
    if let Target::Classes { names } = &output.target {
        let share = |(name, share): (&String, &f64)| format!("{name} {:.1} %", 100.0 * share);
        let shown: Vec<String> = names.names().iter().zip(&output.marginal).take(12).map(share).collect();
        let more = if names.count() > 12 { ", ..." } else { "" };
        rows.push(SummaryRow::new("classes", format!("{}{more}", shown.join(", "))));
    }
    if let Some(column) = &inputs.schema.exposure {
        let relative = if let Target::Counts { rate } = output.target { rate } else { 1.0 };
        let rate = number(relative * output.marginal[0]);
        let text = format!(
            "`{column}`; {rate} counts for each unit of it on average, and predictions are for the exposure of their row"
        );
        rows.push(SummaryRow::new("exposure", text));
    }
    if let Some(weights) = &fit.weights {
        rows.push(SummaryRow::new("weights", weights));
    }
    if let Some(own) = &fit.recalibration {
        rows.push(SummaryRow::new("sets of classes (predict --sets)", own.sets_in_words()));
    }
    if let Some(own) = &fit.intervals {
        rows.push(SummaryRow::new("intervals (predict --quantiles)", own.in_words()));
    }
    if let Some(check) = &fit.check {
        rows.push(checked(check, &output.target));
    }
    for tried in &fit.tried {
        let nll =
            tried.scores.map_or_else(|| "no score".into(), |s| format!("NLL {:.4} of rows left out", s.nll));
        rows.push(SummaryRow::new(
            format!("tried {}", tried.inference.as_str()),
            format!("{nll}; {:.1} s", tried.seconds),
        ));
    }
    if let Some(stand_ins) = &fit.stand_ins {
        let g = &stand_ins.gaussianised;
        let mut text = {
            let count = g.pseudo_count();
            let count = if stand_ins.bounds.is_empty() { count.to_string() } else { number(count) };
            let classes = stand_ins.tried.iter().any(|t| t.as_classes) && stand_ins.offsets.len() == 2;
            let taken = if classes { "two classes with a function each, " } else { "" };
            format!("{taken}{} matching, pseudo-count {count}", g.matching().name())
        };
        if !stand_ins.tried.is_empty() {
            let mut matching = None;
            let tried = stand_ins.tried.iter().map(|t| {
                let own = Some((t.matching, t.as_classes));
                let named = std::mem::replace(&mut matching, own) != own;
                let classes = if t.as_classes { "two classes, " } else { "" };
                let name = if named { format!("{classes}{} ", t.matching.name()) } else { String::new() };
                format!("{name}{}: {:.4}", t.pseudo_count, t.scores.nll)
            });
            text += &format!(
                ", the best of those that were tried on {} rows, each predicted from the others under what the other half chose (NLL of their labels, {})",
                stand_ins.tried_on,
                tried.collect::<Vec<_>>().join(", ")
            );
        }
        if !stand_ins.bounds.is_empty() {
            let bounds = stand_ins.bounds.iter();
            let bounds = bounds
                .map(|b| format!("{} {}: {:.3}", b.matching.name(), number(b.pseudo_count), b.bound))
                .collect::<Vec<_>>();
            text += &format!(
                ", learned with the hyperparameters by the highest bound on the log evidence of the labels ({} nats)",
                bounds.join(", ")
            );
        }
        rows.push(SummaryRow::new("labels as numbers", text));
    }
    if let Some(bound) = &fit.bound {
        rows.push(SummaryRow::new("bound on the log evidence", format!("{:.3}", bound.bound)));
        let moved = if bound.moved { "moved by the bound" } else { "where they were chosen" };
        rows.push(SummaryRow::new("inducing points", format!("{}, {moved}", bound.inducing)));
    }
    if let Some(mode) = &fit.mode {
        rows.push(SummaryRow::new(
            "log evidence",
            format!("{:.3} (Laplace's approximation)", mode.log_evidence),
        ));
    }
    rows.extend([
        SummaryRow::new("hyperparameters", &fit.hyperparameter_source),
        SummaryRow::new(
            "search",
            format!("{} steps, {} evaluations, ended by {}", fit.steps, fit.evaluations, reason(fit.reason)),
        ),
        SummaryRow::new("seconds", format!("{:.2}", fit.seconds)),
        SummaryRow::new("seed", record.seed.to_string()),
    ]);
    rows
}

/// The facts about learned features.
fn learned(features: &FeatureSummary, output: &LikelihoodOutput, record: &ProcessRecord) -> Vec<SummaryRow> {
    let mut rows = describe::features(&features.learned, &record.kernel);
    let functions = output.likelihood.outputs();
    if functions > 1 {
        let covariances = match features.learned.roots {
            1 => "one covariance of their weights for all",
            _ => "a covariance of the weights of each",
        };
        rows.push(SummaryRow::new("functions", format!("{functions} of the same features, {covariances}")));
    } else if features.level != 0.0 {
        rows.push(SummaryRow::new(
            "level",
            format!("{:.4} (latent), where inputs say nothing", features.level),
        ));
    }
    rows.push(SummaryRow::new(
        "objective",
        format!("{:.4} for each row, of recent steps", features.objective),
    ));
    if let Some(expected) = features.expected_events {
        let seen = if let Target::Events { events, .. } = output.target { events } else { 0 };
        rows.push(SummaryRow::new(
            "events expected in the window",
            format!("{expected:.1}; {seen} were seen"),
        ));
    }
    if features.resumed_from > 0 {
        rows.push(SummaryRow::new("went on from", format!("step {}", features.resumed_from)));
    }
    rows.extend(features.plain.iter().map(plain_row));
    rows
}

/// A plain process beside.
fn plain_row(plain: &PlainProcess) -> SummaryRow {
    let label = format!("a plain process of {} rows", plain.rows);
    let text =
        format!("{}: {}; {:.1} s", plain.inference.as_str(), scores(&plain.scores, None), plain.seconds);
    SummaryRow::new(label, text)
}

/// Scores of rows, beside the NLL of a model without inputs.
fn scores(s: &LabelScores, baseline: Option<f64>) -> String {
    let beside = baseline.map_or_else(String::new, |nll| format!(" ({nll:.4} without inputs)"));
    let mut parts = vec![format!("NLL {:.4}{beside}", s.nll)];
    if let Some(accuracy) = s.accuracy {
        parts.push(format!("accuracy {:.2} %", 100.0 * accuracy));
    }
    if let Some(ece) = s.ece {
        parts.push(format!("ECE {ece:.4}"));
    }
    if let Some(share) = s.within_two_deviations {
        parts.push(format!("{:.1} % within two standard deviations", 100.0 * share));
    }
    parts.join(", ")
}

fn checked(check: &LabelCheck, target: &Target) -> SummaryRow {
    let label = check.on.in_words("each row from the others, under what the other half chose");
    let text = match target {
        Target::Events { .. } => {
            format!(
                "{} events: {:.4} nats for each more than an even intensity",
                check.rows, -check.scores.nll
            )
        }
        _ => {
            let equals = equals_in_words(check.twins, check.copies);
            format!("{}: {}{equals}", check.rows, scores(&check.scores, Some(check.baseline_nll)))
        }
    };
    SummaryRow::new(label, text)
}

/// Degrees of freedom below which the variance of Student's t is more than twenty times the square of its scale.
const FEW_DEGREES: f64 = 2.1;

/// Everything that was added, chosen, dropped or is odd.
pub(in crate::process) fn notes(
    output: &LikelihoodOutput,
    record: &ProcessRecord,
    fit: &GeneralisedSummary,
) -> Vec<Note> {
    let mut out: Vec<Note> = fit.data.sentences().into_iter().map(Note::information).collect();
    out.extend(record.streamed.iter().map(|streamed| Note::information(streamed.sentence())));
    out.extend(fit.odd.iter().map(Note::warning));
    if let OutputLikelihood::StudentT(own) = &output.likelihood
        && own.degrees_of_freedom() < FEW_DEGREES
    {
        let note = Note::new(
            "few-degrees-of-freedom",
            Severity::Information,
            "the noise has {degrees} degrees of freedom and a variance almost without bound (it has none at 2): standard deviations of observations say next to nothing, quantiles (predict {0}) go by rows",
        );
        out.push(note.value("degrees", format!("{:.6}", own.degrees_of_freedom())).fix(QUANTILES));
    }
    if fit.largest_jitter > 0.0 {
        let text = "up to {largest} (in standard units) was added to the kernel matrix's diagonal";
        let note = Note::new("jitter", Severity::Warning, text);
        out.push(note.value("largest", format!("{:.1e}", fit.largest_jitter)));
    }
    if fit.reason == posterior_optim::Reason::Steps
        && fit.bound.is_none()
        && fit.features.is_none()
        && fit.variation.is_none()
    {
        out.push(describe::few_steps());
    }
    out.extend(fit.check.iter().flat_map(|check| &check.warnings).map(Note::warning));
    out.extend(fit.recalibration.iter().filter_map(ClassRecalibration::sentence).map(Note::information));
    // Learned features use few directions nearly always, and facts say how many; where predictions do not fit, that is why.
    let doubtful = fit.check.as_ref().is_none_or(|check| !check.warnings.is_empty());
    if let Some(features) = fit.features.as_ref().filter(|_| doubtful) {
        out.extend(features.learned.warnings().iter().map(Note::warning));
    }
    if let Some(variation) = &fit.variation {
        out.extend(variation.learned.warnings().iter().map(Note::warning));
    }
    out.extend(describe::bounds_reached(&fit.at_bounds));
    if let Some(stand_ins) = &fit.stand_ins {
        let matching = stand_ins.gaussianised.matching();
        let tried = stand_ins.tried.iter().filter(|t| t.matching == matching);
        let counts: Vec<f64> = tried.map(|t| t.pseudo_count).collect();
        let own = stand_ins.gaussianised.pseudo_count();
        let edge = counts.iter().all(|c| *c >= own) || counts.iter().all(|c| *c <= own);
        let ends = [PSEUDO_COUNTS[0], PSEUDO_COUNTS[PSEUDO_COUNTS.len() - 1]];
        if counts.len() > 1 && edge && ends.contains(&own) {
            let note = Note::new(
                "last-pseudo-count",
                Severity::Warning,
                "the pseudo-count {count} is the last that was tried: {0} can go further, {1} or {2:-} needs none",
            );
            let note = note.value("count", own).fix(PSEUDO_COUNT);
            out.push(note.fix(INFERENCE_VARIATIONAL).fix(INFERENCE_LAPLACE));
        }
    }
    out
}
