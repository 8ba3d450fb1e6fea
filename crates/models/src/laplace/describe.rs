//! A network with error bars in words; facts, prior, comparison, notes.

use super::{NetworkHeader, NetworkRecalibration, Networks, describe_search};
use crate::text::{number, table};
use posterior_laplace::{Approximation, ComparedBy, Tune, Weights};
use posterior_likelihoods::OutputLikelihood;
use posterior_notes::fixes::{CURVATURE_AUTO, TUNE_VALIDATION};
use posterior_report::{Curves, Line, Note, Severity, SummaryRow};
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
    if let Some(method) = describe_search::method(model, &form) {
        return method;
    }
    format!("{form} curvature of {weights}, {} weights", model.weights())
}

/// How it predicts, in short.
pub(super) fn method(model: &Networks<'_>) -> String {
    if model.header().summary.learned.is_some() {
        return curvature(model);
    }
    format!("linearised Laplace, {}", curvature(model))
}

/// The facts about a model, in order.
pub(super) fn summary(model: &Networks<'_>) -> Vec<SummaryRow> {
    let header = model.header();
    let summary = &header.summary;
    let network = &header.network;
    let source = if network.file.is_empty() { "in memory".to_string() } else { network.file.clone() };
    let mut rows = vec![
        SummaryRow::new("method", method(model)),
        SummaryRow::new("network", format!("{source} ({}, {})", network.format, model.precision())),
    ];
    if let Some(hash) = &network.sha256 {
        rows.push(SummaryRow::new("SHA-256 of the network", hash));
    }
    rows.push(SummaryRow::new("examples learned from", header.data.examples.to_string()));
    if let Some((points, of)) = summary.points {
        rows.push(SummaryRow::new("points in function space", format!("{points} of {of}")));
    }
    rows.push(SummaryRow::new("likelihood", model.likelihood().name()));
    let noise = noise(model);
    if !noise.is_empty() {
        let shown: Vec<String> = noise.iter().take(10).map(|v| number(*v)).collect();
        rows.push(SummaryRow::new("noise (standard deviation)", shown.join(", ")));
    }
    let found = describe_search::rows(model);
    let chosen = found.is_none() || matches!(header.options.approximation, Approximation::Ella(_));
    rows.extend(found.into_iter().flatten());
    if chosen {
        let kind = if summary.g_prior { ", of scaled features (g-prior)" } else { "" };
        let (_, precisions) = model.precisions();
        rows.push(match precisions {
            [one] => SummaryRow::new("prior precision", format!("{}{kind}", number(*one))),
            many => SummaryRow::new("prior precisions", format!("{} groups{kind}", many.len())),
        });
        rows.push(SummaryRow::new("chosen by", tuned(model)));
    }
    if let Some(unseen) = model.unseen() {
        let difference =
            format!("{} +- {}", number(unseen.nll - unseen.plain_nll), number(unseen.difference_error));
        rows.push(SummaryRow::new(
            "NLL on unseen rows",
            format!(
                "{} on {} (plain network {}; difference {difference})",
                number(unseen.nll),
                unseen.examples,
                number(unseen.plain_nll)
            ),
        ));
        if let (Some(own), Some(plain)) = (unseen.coverage, unseen.plain_coverage) {
            let percent = |v: f64| format!("{:.1} %", 100.0 * v);
            rows.push(SummaryRow::new(
                "coverage of 95 % intervals on unseen rows",
                format!("{} (plain network {})", percent(own), percent(plain)),
            ));
        }
    }
    if let Some(NetworkRecalibration::Classes(own)) = &header.recalibration {
        rows.push(SummaryRow::new("sets of classes (predict --sets)", own.sets_in_words()));
    }
    if let Some(evidence) = &summary.evidence {
        rows.push(SummaryRow::new("log evidence", format!("{:.3}", evidence.log_evidence)));
        rows.push(SummaryRow::new("log likelihood at the mode", format!("{:.3}", evidence.log_likelihood)));
    }
    if let Some(effective) = effective_dimensions(model) {
        rows.push(SummaryRow::new("effective dimensions", format!("{effective:.1} of {}", model.weights())));
    }
    if let Some(mode) = &summary.mode {
        let scale = model.header().data.target_scale().1;
        let distance = mode.displacement.map_or(String::new(), |d| {
            format!("; {} from the network on average, which counts as variance", number(d * scale))
        });
        let text = format!(
            "optimum of the linearised model, {} rounds, {} Hessian products{distance}",
            mode.alternations, mode.products
        );
        rows.push(SummaryRow::new("mode", text));
    }
    let drawn = matches!(header.options.approximation, Approximation::MeanField(_));
    let predictive = if drawn {
        "averages over draws of the weights".into()
    } else {
        header.options.integration.name().replace('_', "-")
    };
    rows.push(SummaryRow::new("predictive", predictive));
    let megabytes = summary.plan.bytes().div_ceil(1 << 20);
    rows.push(SummaryRow::new("planned memory", format!("{megabytes} MB")));
    let [choose, curvature, mode, tune] = summary.seconds;
    let parts = match header.options.approximation.is_learned() {
        true => format!("{tune:.2} search"),
        false => format!("{choose:.2} weights, {curvature:.2} curvature, {mode:.2} mode, {tune:.2} tuning"),
    };
    rows.push(SummaryRow::new("seconds", format!("{:.2} ({parts})", header.seconds)));
    rows.push(SummaryRow::new("seed", header.options.seed.to_string()));
    rows
}

fn tuned(model: &Networks<'_>) -> String {
    let summary = &model.header().summary;
    let searched = |m: &posterior_linear::evidence::MaximisedEvidence| {
        format!(", {} evaluations{}", m.steps.len(), if m.converged { "" } else { ", not converged" })
    };
    match model.header().options.tune {
        Tune::None => "no one: as given".into(),
        Tune::Evidence => {
            format!("the evidence{}", summary.maximised.as_ref().map(searched).unwrap_or_default())
        }
        Tune::Mackay => {
            format!("MacKay's updates{}", summary.maximised.as_ref().map(searched).unwrap_or_default())
        }
        Tune::Validation | Tune::CrossValidation { .. } => match &summary.held_out {
            Some(r) => format!(
                "{} held-out {}: NLL {} (plain network {})",
                r.examples,
                if model.header().options.seen_by_network {
                    "rows that the network was trained on (worthless)"
                } else {
                    "examples"
                },
                number(r.best.nll),
                number(r.plain_nll)
            ),
            None => "held-out examples".into(),
        },
    }
}

/// Everything that was chosen, corrected or is odd.
pub(super) fn notes(model: &Networks<'_>) -> Vec<Note> {
    let header = model.header();
    let all = header.network.notes.iter().chain(&header.data.notes).chain(&header.notes);
    let mut out: Vec<Note> = all.map(|text| Note::information(text.clone())).collect();
    let found = header.summary.learned.iter().flat_map(describe_search::remarks);
    out.extend(found.map(Note::information));
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
pub(super) fn evidence(header: &NetworkHeader) -> Vec<Curves> {
    let found = header.summary.learned.as_ref().and_then(describe_search::curves);
    let Some(report) = &header.summary.held_out else { return found.into_iter().collect() };
    let mut points: Vec<(f64, f64)> = report
        .grid
        .iter()
        .filter(|p| p.noise_variance == report.grid[0].noise_variance)
        .map(|p| (p.precision_factor, p.nll))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line = Line {
        name: "held-out NLL".into(),
        x: points.iter().map(|p| p.0).collect(),
        y: points.iter().map(|p| p.1).collect(),
        optimum: Some(report.best.precision_factor),
        ..Line::default()
    };
    vec![Curves {
        title: "Held-out score along the prior precision".into(),
        x: "factor on the starting precisions".into(),
        y: "NLL (nats)".into(),
        x_logarithmic: true,
        lines: vec![line],
        ..Curves::default()
    }]
}

/// The prior, and the curvatures that were compared.
pub(super) fn tables(model: &Networks<'_>) -> Vec<String> {
    let mut parts = describe_search::tables(model);
    let groups = groups(model);
    if groups.len() > 1 {
        let mut rows = vec![["group", "prior precision", "effective dimensions"].map(String::from).to_vec()];
        for group in groups.iter().take(LISTED) {
            let effective = group.effective_dimensions.map(|e| format!("{e:.1}")).unwrap_or_default();
            rows.push(vec![group.name.clone(), number(group.precision), effective]);
        }
        let more = groups.len().saturating_sub(LISTED);
        let more = (more > 0).then(|| format!("\n... and {more} more groups (--json lists them)"));
        parts.push(table(&rows) + &more.unwrap_or_default());
    }
    if let Some(report) = &model.header().auto {
        let by = match report.compared_by {
            ComparedBy::UnseenExamples => "NLL on unseen rows",
            ComparedBy::Evidence => "log evidence",
        };
        let mut rows = vec![["candidate", by, "seconds", ""].map(String::from).to_vec()];
        for c in &report.candidates {
            let score = match report.compared_by {
                ComparedBy::UnseenExamples => c.nll.map(|v| number(v + model.unit_shift())),
                ComparedBy::Evidence => c.log_evidence.map(|v| format!("{v:.1}")),
            };
            let chosen = if c.name == report.chosen { "chosen".into() } else { String::new() };
            rows.push(vec![
                c.name.clone(),
                score.unwrap_or_else(|| "-".into()),
                format!("{:.2}", c.seconds),
                c.skipped.clone().unwrap_or(chosen),
            ]);
        }
        if let Some(plain) = report.plain_nll {
            let plain = number(plain + model.unit_shift());
            rows.push(vec!["plain network".into(), plain, String::new(), String::new()]);
        }
        parts.push(table(&rows));
    }
    parts
}

/// A model for programs; scores on rows that the network has not seen are in the target's units.
pub(super) fn report(model: &Networks<'_>) -> Result<Value, StoreError> {
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
