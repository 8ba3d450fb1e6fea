//! A model in words.

use super::process;
use crate::facts::{count, ending, fixed, inducing, search};
use crate::record::PSEUDO_COUNTS;
use crate::rows::{equals, scored};
use crate::text::number;
use crate::{
    ClassRecalibration, Fact, Facts, FeatureSummary, GaussianLabelSummary, GeneralisedSummary, LabelCheck,
    LabelScores, LikelihoodOutput, PlainProcess, ProcessRecord, TableInputs, Target, Tempering,
    VariationSummary,
};
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::{INFERENCE_LAPLACE, INFERENCE_VARIATIONAL, PSEUDO_COUNT, QUANTILES};
use posterior_report::{Note, Severity};

/// Classes whose shares are shown.
const SHOWN: usize = 12;

/// The facts about a model, in order.
pub(crate) fn facts(
    inputs: &TableInputs,
    output: &LikelihoodOutput,
    record: &ProcessRecord,
    fit: &GeneralisedSummary,
) -> Facts {
    let bound = fit.bound.as_ref();
    let evidence = |value: f64| fixed(value, 3, "(Laplace's approximation)");
    let tried = fit.tried.iter().map(|tried| {
        let score = match tried.scores {
            Some(scores) => Fact::new("NLL", fixed(scores.nll, 4, "of rows left out")),
            None => "no score".into(),
        };
        let facts = Facts::apart("; ").and(score).and(fixed(tried.seconds, 1, "s"));
        Fact::new(format!("tried {}", tried.inference.as_str()), facts)
    });
    Facts::new()
        .headline("target", format!("`{}`: {}", inputs.schema.target, fit.likelihood_choice))
        .headline("inference", fit.choice.as_str())
        .with(match &fit.features {
            Some(features) => learned(features, output, record),
            None => process::prior(record, &fit.hyperpriors),
        })
        .with(fit.variation.iter().flat_map(varied))
        .headline("rows learned from", count(record.rows, ""))
        .maybe("classes", shares(output))
        .maybe("exposure", inputs.schema.exposure.as_ref().map(|column| exposed(column, output)))
        .maybe("weights", fit.weights.as_deref())
        .with(fit.recalibration.as_ref().map(ClassRecalibration::of_sets))
        .maybe("intervals (predict --quantiles)", fit.intervals.as_ref().map(|own| own.in_words()))
        .with(fit.check.as_ref().map(|check| checked(check, &output.target, tempered(fit))))
        .with(tried)
        .maybe("Gaussian labels", fit.gaussian_labels.as_ref().map(gaussian_labels))
        .maybe("bound on the log evidence", bound.map(|own| fixed(own.bound, 3, "")))
        .maybe("inducing points", bound.map(|own| inducing(own.inducing, own.moved)))
        .maybe("log evidence", fit.mode.as_ref().map(|mode| evidence(mode.log_evidence)))
        .fact("hyperparameters", fit.hyperparameter_source.as_str())
        .with([search(fit.steps, fit.evaluations, fit.reason)])
        .with(ending(fit.seconds, "", record.seed))
}

/// Shares of the first classes; None of other targets.
fn shares(output: &LikelihoodOutput) -> Option<Facts> {
    let Target::Classes { names } = &output.target else { return None };
    let named = names.names().iter().zip(&output.marginal).take(SHOWN);
    let shares = Facts::new().with(named.map(|(name, share)| Fact::new(name, fixed(100.0 * share, 1, "%"))));
    Some(shares.maybe("", (names.count() > SHOWN).then_some("...")))
}

/// Rates for each unit of exposure.
fn exposed(column: &str, output: &LikelihoodOutput) -> String {
    let relative = if let Target::Counts { rate } = output.target { rate } else { 1.0 };
    let rate = number(relative * output.marginal[0]);
    format!(
        "`{column}`; {rate} counts for each unit of it on average, and predictions are for the exposure of their row"
    )
}

/// What training minimised.
fn objective(value: f64) -> Fact {
    Fact::new("objective", fixed(value, 4, "for each row, of recent steps"))
}

/// The facts about a mean and a covariance that were trained.
fn varied(own: &VariationSummary) -> Facts {
    own.learned.facts().with([objective(own.objective)]).with(own.plain.as_ref().map(beside))
}

/// The facts about learned features.
fn learned(features: &FeatureSummary, output: &LikelihoodOutput, record: &ProcessRecord) -> Facts {
    let functions = output.likelihood.outputs();
    let covariances = match features.learned.roots {
        1 => "of the same features, one covariance of their weights for all",
        _ => "of the same features, a covariance of the weights of each",
    };
    let level = (functions == 1 && features.level != 0.0)
        .then(|| fixed(features.level, 4, "(latent), where inputs say nothing"));
    let seen = if let Target::Events { events, .. } = output.target { events } else { 0 };
    let seen = |expected| Facts::apart("; ").and(fixed(expected, 1, "")).and(count(seen, "were seen"));
    let resumed = (features.resumed_from > 0).then(|| format!("step {}", features.resumed_from));
    let facts = features.learned.facts(&record.kernel);
    facts
        .maybe("functions", (functions > 1).then(|| count(functions, covariances)))
        .maybe("level", level)
        .with([objective(features.objective)])
        .maybe("events expected in the window", features.expected_events.map(seen))
        .maybe("went on from", resumed)
        .with(features.plain.as_ref().map(beside))
}

/// A plain process beside.
fn beside(plain: &PlainProcess) -> Fact {
    let scores = Facts::apart(": ").and(plain.inference.as_str()).and(scores(&plain.scores, None, None));
    let facts = Facts::apart("; ").and(scores).and(fixed(plain.seconds, 1, "s"));
    Fact::new(format!("a plain process of {} rows", plain.rows), facts)
}

/// Scores of rows, beside the NLL of a model without inputs, and their NLL after the recalibration.
fn scores(s: &LabelScores, baseline: Option<f64>, after: Option<&Tempering>) -> Facts {
    let without = baseline.map(|nll| format!("{nll:.4} without inputs"));
    let (nll, before) = match after {
        Some(own) => (own.nll_after, Some(format!("{:.4} before", own.nll_before))),
        None => (s.nll, None),
    };
    let beside: Vec<String> = before.into_iter().chain(without).collect();
    let beside = if beside.is_empty() { String::new() } else { format!("({})", beside.join(", ")) };
    let within = "% within two standard deviations";
    let [nll_label, ece_label] = match after {
        Some(_) => ["NLL after recalibration", "ECE before"],
        None => ["NLL", "ECE"],
    };
    Facts::new()
        .fact(nll_label, fixed(nll, 4, beside))
        .maybe("accuracy", s.accuracy.map(|accuracy| fixed(100.0 * accuracy, 2, "%")))
        .maybe(ece_label, s.ece.map(|ece| fixed(ece, 4, "")))
        .maybe("", s.within_two_deviations.map(|share| fixed(100.0 * share, 1, within)))
}

/// The temperature that the model's probabilities have, where they have one.
pub(super) fn tempered(fit: &GeneralisedSummary) -> Option<&Tempering> {
    fit.recalibration.as_ref().map(|own| &own.tempering).filter(|own| own.applied)
}

/// How good the fit is on rows that had no part in it: with a temperature, each tenth of them under what the others choose.
pub(super) fn checked(check: &LabelCheck, target: &Target, after: Option<&Tempering>) -> Fact {
    let label = check.on.in_words("leave-one-out, under hyperparameters of the other half");
    if let Target::Events { .. } = target {
        let gain = fixed(-check.scores.nll, 4, "nats for each more than an even intensity");
        return Fact::new(label, Facts::apart(": ").and(count(check.rows, "events")).and(gain));
    }
    let scores = scored(check.rows, scores(&check.scores, Some(check.baseline_nll), after));
    Fact::new(label, scores.and(equals(check.training_duplicates, check.duplicates)))
}

/// How labels became numbers: which, and what that was chosen by.
fn gaussian_labels(own: &GaussianLabelSummary) -> Facts {
    let chosen = &own.gaussianised;
    let pseudo_count = chosen.pseudo_count();
    let pseudo_count = if own.bounds.is_empty() { pseudo_count.to_string() } else { number(pseudo_count) };
    let classes = own.tried.iter().any(|t| t.as_classes) && own.offsets.len() == 2;
    let mut matching = None;
    let tried = own.tried.iter().map(|t| {
        let way = Some((t.matching, t.as_classes));
        let named = std::mem::replace(&mut matching, way) != way;
        let classes = if t.as_classes { "two classes, " } else { "" };
        let name = if named { format!("{classes}{} ", t.matching.name()) } else { String::new() };
        Fact::new(format!("{name}{}:", t.pseudo_count), fixed(t.scores.nll, 4, ""))
    });
    let tried = Facts::new().with(tried);
    let tried = (!own.tried.is_empty()).then(|| {
        let rows = own.tried_on;
        format!(
            "the best of those that were tried on {rows} rows, leave-one-out under hyperparameters of the other half (NLL of their labels, {tried})"
        )
    });
    let bounds = own.bounds.iter().map(|b| {
        let label = format!("{} {}:", b.matching.name(), number(b.pseudo_count));
        Fact::new(label, fixed(b.bound, 3, ""))
    });
    let bounds = Facts::new().with(bounds);
    let learned = (!own.bounds.is_empty()).then(|| {
        format!(
            "learned with the hyperparameters by the highest bound on the log evidence of the labels ({bounds} nats)"
        )
    });
    Facts::new()
        .maybe("", classes.then_some("two classes with a function each"))
        .and(format!("{} matching", chosen.matching().name()))
        .fact("pseudo-count", pseudo_count)
        .maybe("", tried)
        .maybe("", learned)
}

/// Degrees of freedom below which the variance of Student's t is more than twenty times the square of its scale.
const FEW_DEGREES: f64 = 2.1;

/// Everything that was added, chosen, dropped or is odd.
pub(crate) fn notes(
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
        out.push(process::few_steps());
    }
    out.extend(fit.check.iter().flat_map(|check| &check.warnings).map(Note::warning));
    out.extend(fit.recalibration.iter().filter_map(ClassRecalibration::sentence).map(Note::information));
    out.extend(
        fit.recalibration.iter().filter_map(ClassRecalibration::sentence_of_shares).map(Note::information),
    );
    // Learned features use few directions nearly always, and facts say how many; where predictions do not fit, that is why.
    let doubtful = fit.check.as_ref().is_none_or(|check| !check.warnings.is_empty());
    if let Some(features) = fit.features.as_ref().filter(|_| doubtful) {
        out.extend(features.learned.warnings().iter().map(Note::warning));
    }
    if let Some(variation) = &fit.variation {
        out.extend(variation.learned.warnings().iter().map(Note::warning));
    }
    out.extend(process::bounds_reached(&fit.at_bounds));
    if let Some(gaussian_labels) = &fit.gaussian_labels {
        let matching = gaussian_labels.gaussianised.matching();
        let tried = gaussian_labels.tried.iter().filter(|t| t.matching == matching);
        let counts: Vec<f64> = tried.map(|t| t.pseudo_count).collect();
        let own = gaussian_labels.gaussianised.pseudo_count();
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
