//! A network with error bars in words; facts, prior, comparison, notes.

use super::network_search;
use crate::calibration::NetworkRecalibration;
use crate::facts::{count, ending, figure, figures, fixed};
use crate::model::Networks;
use crate::record::NetworkHeader;
use crate::text::{number, table_under};
use crate::{Fact, Facts};
use posterior_laplace::auto::Candidate;
use posterior_laplace::fit::ModeSummary;
use posterior_laplace::{Approximation, AutoReport, ComparedBy, Tune, UnseenScores, Weights};
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::{CURVATURE_AUTO, TUNE_VALIDATION};
use posterior_report::{Curves, Line, Note, Severity};
use posterior_store::{StoreError, json};
use serde::Serialize;
use serde_json::Value;

/// Groups of the prior that are listed.
const LISTED: usize = 60;

/// A group of the prior.
#[derive(Clone, Debug, Serialize)]
struct Group {
    /// Its name.
    pub name: String,
    /// Its prior precision.
    pub precision: f64,
    /// Its effective dimensions, where they are known.
    pub effective_dimensions: Option<f64>,
}

/// The prior, group by group.
fn groups(model: &Networks<'_>) -> Vec<Group> {
    let (names, precisions) = model.precisions();
    let effective = model.header().summary.evidence.as_ref().map(|e| &e.effective_dimensions);
    let effective = effective.filter(|e| e.len() == names.len());
    let group = |(i, (name, precision)): (usize, (&String, &f64))| Group {
        name: name.clone(),
        precision: *precision,
        effective_dimensions: effective.map(|e| e[i]),
    };
    names.iter().zip(precisions).enumerate().map(group).collect()
}

/// Effective dimensions of all groups.
fn effective_dimensions(model: &Networks<'_>) -> Option<f64> {
    model.header().summary.evidence.as_ref().map(|e| e.effective_dimensions.iter().sum())
}

/// The noise as standard deviations, in the target's units; nothing for other likelihoods.
fn noise(model: &Networks<'_>) -> Vec<f64> {
    let scale = model.header().data.target_scale().1;
    let deviations = |variances: Vec<f64>| variances.into_iter().map(|v| v.sqrt() * scale).collect();
    match model.likelihood() {
        OutputLikelihood::Gaussian(g) => deviations(g.noise_variances().to_vec()),
        OutputLikelihood::FullGaussian(g) => {
            let n = (g.covariance().len() as f64).sqrt() as usize;
            deviations((0..n).map(|i| g.covariance()[i * n + i]).collect())
        }
        _ => Vec::new(),
    }
}

/// Which weights have a posterior, and in which form.
fn curvature(model: &Networks<'_>) -> String {
    let options = &model.header().options;
    let weights = match &options.weights {
        Weights::All => "all layers".to_string(),
        Weights::LastLayer => "the last layer".to_string(),
        Weights::Matching(patterns) => format!("parameters like {}", patterns.join(", ")),
        Weights::Subnetwork { .. } => "a sub-network".to_string(),
    };
    let form = match &options.approximation {
        Approximation::LowRank { rank, .. } => format!("low-rank ({rank} eigenvectors and a diagonal)"),
        other => other.name().to_string(),
    };
    if let Some(method) = network_search::method(model, &form) {
        return method;
    }
    format!("{form} curvature of {weights}, {} weights", model.weights())
}

/// How it predicts, in short.
pub(crate) fn method(model: &Networks<'_>) -> String {
    if model.header().summary.learned.is_some() {
        return curvature(model);
    }
    format!("linearised Laplace, {}", curvature(model))
}

/// The facts about a model, in order.
pub(crate) fn facts(model: &Networks<'_>) -> Facts {
    let header = model.header();
    let NetworkHeader { summary, network, options, .. } = header;
    let source = if network.file.is_empty() { "in memory" } else { network.file.as_str() };
    let noise = noise(model);
    let found = network_search::facts(model);
    let chosen = found.is_none() || matches!(options.approximation, Approximation::Ella(_));
    let evidence = summary.evidence.as_ref();
    let effective = effective_dimensions(model);
    let predictive = match options.approximation {
        Approximation::MeanField(_) => "averages over draws of the weights".into(),
        _ => options.integration.name().replace('_', "-"),
    };
    let [choose, curvature, mode, tune] = summary.seconds;
    let parts = match options.approximation.is_learned() {
        true => format!("({tune:.2} search)"),
        false => format!("({choose:.2} weights, {curvature:.2} curvature, {mode:.2} mode, {tune:.2} tuning)"),
    };
    Facts::new()
        .headline("method", method(model))
        .headline("network", format!("{source} ({}, {})", network.format, model.precision()))
        .maybe("SHA-256 of the network", network.sha256.as_deref())
        .headline("examples learned from", count(header.data.examples, ""))
        .maybe(
            "points in function space",
            summary.points.map(|(points, of)| count(points, format!("of {of}"))),
        )
        .headline("likelihood", model.likelihood().name())
        .maybe("noise (standard deviation)", (!noise.is_empty()).then(|| figures(&noise, 10)))
        .with(found.into_iter().flatten())
        .with(chosen.then(|| precision(model)).into_iter().flatten())
        .with(model.unseen().into_iter().flat_map(unseen))
        .with(sets(model))
        .maybe("log evidence", evidence.map(|own| fixed(own.log_evidence, 3, "")))
        .maybe("log likelihood at the mode", evidence.map(|own| fixed(own.log_likelihood, 3, "")))
        .maybe("effective dimensions", effective.map(|own| fixed(own, 1, format!("of {}", model.weights()))))
        .maybe("mode", summary.mode.as_ref().map(|mode| optimum(mode, header.data.target_scale().1)))
        .fact("predictive", predictive)
        .fact("planned memory", format!("{} MB", summary.plan.bytes().div_ceil(1 << 20)))
        .with(ending(header.seconds, parts, options.seed))
}

/// What sets of classes are worth, where they are known.
pub(crate) fn sets(model: &Networks<'_>) -> Option<Fact> {
    match model.recalibration()? {
        NetworkRecalibration::Classes(own) => Some(own.of_sets()),
        NetworkRecalibration::Numbers(_) => None,
    }
}

/// The prior, and what chose it.
fn precision(model: &Networks<'_>) -> Facts {
    let kind = if model.header().summary.g_prior { "of scaled features (g-prior)" } else { "" };
    let (label, precision) = match model.precisions().1 {
        [one] => ("prior precision", figure(*one, "")),
        many => ("prior precisions", count(many.len(), "groups")),
    };
    Facts::new().fact(label, Facts::new().and(precision).and(kind)).fact("chosen by", tuned(model))
}

/// Scores on rows that the network has not seen.
fn unseen(own: UnseenScores) -> Facts {
    let difference = format!("{} +- {}", number(own.nll - own.plain_nll), number(own.difference_error));
    let beside =
        format!("on {} (plain network {}; difference {difference})", own.examples, number(own.plain_nll));
    let percent =
        |(own, plain): (f64, f64)| fixed(100.0 * own, 1, format!("% (plain network {:.1} %)", 100.0 * plain));
    let coverage = own.coverage.zip(own.plain_coverage).map(percent);
    Facts::new()
        .fact("NLL on unseen rows", figure(own.nll, beside))
        .maybe("coverage of 95 % intervals on unseen rows", coverage)
}

/// How the mode was found, in a target of this scale.
fn optimum(mode: &ModeSummary, scale: f64) -> Facts {
    let far = "from the network on average, which counts as variance";
    let found = Facts::new()
        .and("optimum of the linearised model")
        .and(count(mode.alternations, "rounds"))
        .and(count(mode.products, "Hessian products"));
    Facts::apart("; ").and(found).maybe("", mode.displacement.map(|own| figure(own * scale, far)))
}

/// What chose the prior.
fn tuned(model: &Networks<'_>) -> Facts {
    let NetworkHeader { summary, options, .. } = model.header();
    let searched = |by: &str| {
        let own = summary.maximised.as_ref();
        let open = own.filter(|own| !own.converged).map(|_| "not converged");
        let evaluations = own.map(|own| count(own.steps.len(), "evaluations"));
        Facts::new().and(by).maybe("", evaluations).maybe("", open)
    };
    match options.tune {
        Tune::None => Facts::new().and("no one: as given"),
        Tune::Evidence => searched("the evidence"),
        Tune::Mackay => searched("MacKay's updates"),
        Tune::Validation | Tune::CrossValidation { .. } => {
            let Some(report) = &summary.held_out else { return Facts::new().and("held-out examples") };
            let rows = match options.seen_by_network {
                true => "held-out rows that the network was trained on (worthless)",
                false => "held-out examples",
            };
            let plain = format!("(plain network {})", number(report.plain_nll));
            let nll = Fact::new("NLL", figure(report.best.nll, plain));
            Facts::apart(": ").and(count(report.examples, rows)).and(nll)
        }
    }
}

/// Everything that was chosen, corrected or is odd.
pub(crate) fn notes(model: &Networks<'_>) -> Vec<Note> {
    let header = model.header();
    let all = header.network.notes.iter().chain(&header.data.notes).chain(&header.notes);
    let mut out: Vec<Note> = all.map(|text| Note::information(text.clone())).collect();
    let found = header.summary.learned.iter().flat_map(network_search::remarks);
    out.extend(found.map(|fact| Note::information(fact.to_string())));
    let corrections = &header.summary.corrections;
    if corrections.clipped_eigenvalues > 0 {
        let note = Note::new(
            "clipped-eigenvalues",
            Severity::Information,
            "{count} eigenvalues that rounding had made negative were set to 0 (the most negative: {most} of the largest)",
        );
        let note = note.value("count", corrections.clipped_eigenvalues);
        out.push(note.value("most", format!("{:.1e}", corrections.most_negative)));
    }
    if corrections.dropped_weights > 0 {
        let text = "{count} weights without influence on the training outputs stay certain under the g-prior";
        let note = Note::new("dropped-weights", Severity::Information, text);
        out.push(note.value("count", corrections.dropped_weights));
    }
    let names = model.output_names();
    let recalibrated = header.recalibration.iter().flat_map(|own| own.sentences(&names));
    out.extend(recalibrated.map(Note::information));
    out.extend(worse_than_the_network(model));
    out
}

/// Says so where the network alone scores better on rows that it has not seen, by more than twice the standard error and a thousandth of a nat. Processes with the network as their mean say it themselves, on the rows that they were chosen by.
fn worse_than_the_network(model: &Networks<'_>) -> Option<Note> {
    let unseen = model.unseen()?;
    let less = unseen.nll - unseen.plain_nll;
    let told =
        matches!(model.header().options.approximation, Approximation::FixedMean(_) | Approximation::Gwi(_));
    (!told && less > 2.0 * unseen.difference_error && less > 1e-3).then(|| {
        let note = Note::new(
            "worse-than-the-network",
            Severity::Warning,
            "on the unseen rows the network alone is better, by {less} nats a row: these error bars cost more than they tell; take another curvature ({0} compares them) or choose its precisions on such rows ({1})",
        );
        note.value("less", number(less)).fix(CURVATURE_AUTO).fix(TUNE_VALIDATION)
    })
}

/// The search for hyperparameters: held-out scores along the grid.
pub(crate) fn evidence(header: &NetworkHeader) -> Vec<Curves> {
    let found = header.summary.learned.as_ref().and_then(network_search::curves);
    let Some(report) = &header.summary.held_out else { return found.into_iter().collect() };
    let mut points: Vec<(f64, f64)> = report
        .grid
        .iter()
        .filter(|p| p.noise_variance == report.grid[0].noise_variance)
        .map(|p| (p.precision_factor, p.nll))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (x, y) = points.into_iter().unzip();
    let line = Line { optimum: Some(report.best.precision_factor), ..Line::new("held-out NLL", x, y) };
    let (title, x) = ("Held-out score along the prior precision", "factor on the starting precisions");
    vec![Curves::new(title, x, "NLL (nats)", vec![line]).logarithmic(true, false)]
}

/// The prior, and the curvatures that were compared.
pub(crate) fn tables(model: &Networks<'_>) -> Vec<String> {
    let mut parts = network_search::tables(model);
    let groups = groups(model);
    if groups.len() > 1 {
        let row = |group: &Group| {
            let effective = group.effective_dimensions.map(|e| format!("{e:.1}")).unwrap_or_default();
            [group.name.clone(), number(group.precision), effective]
        };
        let head = ["group", "prior precision", "effective dimensions"];
        let more = groups.len().saturating_sub(LISTED);
        let more = (more > 0).then(|| format!("\n... and {more} more groups (--json lists them)"));
        parts.push(table_under(head, groups.iter().take(LISTED).map(row)) + &more.unwrap_or_default());
    }
    parts.extend(model.header().auto.as_ref().map(|report| compared(model, report)));
    parts
}

/// The curvatures that were compared.
fn compared(model: &Networks<'_>, report: &AutoReport) -> String {
    let by = match report.compared_by {
        ComparedBy::UnseenExamples => "NLL on unseen rows",
        ComparedBy::Evidence => "log evidence",
    };
    let nll = |value: f64| number(value + model.unit_shift());
    let row = |own: &Candidate| {
        let score = match report.compared_by {
            ComparedBy::UnseenExamples => own.nll.map(nll),
            ComparedBy::Evidence => own.log_evidence.map(|value| format!("{value:.1}")),
        };
        let chosen = if own.name == report.chosen { "chosen" } else { "" };
        let (score, seconds) = (score.unwrap_or_else(|| "-".into()), format!("{:.2}", own.seconds));
        [own.name.clone(), score, seconds, own.skipped.as_deref().unwrap_or(chosen).into()]
    };
    let plain = report.plain_nll.map(|own| ["plain network".into(), nll(own), String::new(), String::new()]);
    table_under(["candidate", by, "seconds", ""], report.candidates.iter().map(row).chain(plain))
}

/// A model for programs; scores on rows that the network has not seen are in the target's units.
pub(crate) fn report(model: &Networks<'_>) -> Result<Value, StoreError> {
    let header = model.header();
    Ok(json!({
        "kind": "model",
        "curvature": curvature(model),
        "weights": model.weights(),
        "precision": model.precision(),
        "groups": groups(model),
        "log_evidence": header.summary.evidence.as_ref().map(|e| e.log_evidence),
        "effective_dimensions": effective_dimensions(model),
        "noise_deviations": noise(model),
        "unseen": model.unseen(),
        "notes": notes(model).into_iter().map(|n| n.text()).collect::<Vec<_>>(),
        "header": header,
    }))
}
