//! An ensemble in words.

use super::{NetworkRecalibration, Networks};
use crate::text::{number, table};
use posterior_networks::Graph;
use posterior_report::{Note, Severity, SummaryRow};
use posterior_store::StoreError;
use posterior_store::json;
use serde_json::Value;

/// The facts, in order.
pub(super) fn summary(model: &Networks<'_>) -> Vec<SummaryRow> {
    let what = if model.is_plain() { "plain networks" } else { "networks with error bars" };
    let first = model.first();
    let mut rows = vec![
        SummaryRow::new(
            "method",
            format!("ensemble of {} {what}, mixed with equal weights", model.members().len()),
        ),
        SummaryRow::new("networks", model.names().join(", ")),
        SummaryRow::new("likelihood", first.likelihood().name()),
        SummaryRow::new("weights of a network", first.graph().map_or(0, Graph::trainable).to_string()),
        SummaryRow::new("seconds", format!("{:.2}", model.seconds())),
    ];
    if let Some(NetworkRecalibration::Classes(own)) = model.recalibration() {
        rows.push(SummaryRow::new("sets of classes (predict --sets)", own.sets_in_words()));
    }
    rows
}

/// What is odd about members, each with the member's name; what all say is said once.
pub(super) fn notes(model: &Networks<'_>) -> Vec<Note> {
    let notes: Vec<Vec<Note>> = model.members().iter().map(Networks::notes).collect();
    let shared = |note: &Note| notes.iter().all(|n| n.contains(note));
    let information = |note: &Note| Note { severity: Severity::Information, ..note.clone() };
    let mut out: Vec<Note> = notes[0].iter().filter(|note| shared(note)).map(information).collect();
    for (name, own) in model.names().iter().zip(&notes) {
        out.extend(own.iter().filter(|note| !shared(note)).map(|note| note.clone().about(name)));
    }
    let recalibrated = model.recalibration().into_iter().flat_map(|own| own.sentences(&model.output_names()));
    out.extend(recalibrated.map(Note::information));
    out
}

/// One row for each member.
pub(super) fn tables(model: &Networks<'_>) -> Vec<String> {
    let mut rows = vec![
        ["network", "curvature", "NLL on unseen rows", "plain network", "seconds"].map(String::from).to_vec(),
    ];
    for (name, member) in model.names().iter().zip(model.members()) {
        let unseen = member.unseen();
        let score = |of: Option<f64>| of.map_or_else(|| "-".into(), number);
        rows.push(vec![
            name.clone(),
            member.header().options.approximation.name().into(),
            score(unseen.map(|u| u.nll)),
            score(unseen.map(|u| u.plain_nll)),
            format!("{:.2}", member.seconds()),
        ]);
    }
    vec![table(&rows)]
}

/// For programs: the members' own reports by name.
pub(super) fn report(model: &Networks<'_>) -> Result<Value, StoreError> {
    let members = model
        .names()
        .iter()
        .zip(model.members())
        .map(|(name, member)| Ok(json!({ "name": name, "model": member.report()? })))
        .collect::<Result<Vec<Value>, StoreError>>()?;
    Ok(json!({
        "kind": "ensemble",
        "plain": model.is_plain(),
        "seconds": model.seconds(),
        "recalibration": model.recalibration(),
        "members": members,
    }))
}
