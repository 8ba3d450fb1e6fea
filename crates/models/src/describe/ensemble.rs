//! An ensemble in words.

use super::network::sets;
use crate::Facts;
use crate::facts::{count, fixed};
use crate::model::Networks;
use crate::text::{number, table_under};
use posterior_networks::Graph;
use posterior_report::{Note, Severity};
use posterior_store::{StoreError, json};
use serde_json::Value;

/// The facts, in order.
pub(crate) fn facts(model: &Networks<'_>) -> Facts {
    let what = if model.is_plain() { "plain networks" } else { "networks with error bars" };
    let (first, members) = (model.first(), model.members().len());
    Facts::new()
        .headline("method", format!("ensemble of {members} {what}, mixed with equal weights"))
        .headline("networks", model.names().join(", "))
        .headline("likelihood", first.likelihood().name())
        .fact("weights of a network", count(first.graph().map_or(0, Graph::trainable), ""))
        .headline("seconds", fixed(model.seconds(), 2, ""))
        .with(sets(model))
}

/// What is odd about members, each with the member's name; what all say is said once.
pub(crate) fn notes(model: &Networks<'_>) -> Vec<Note> {
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
pub(crate) fn tables(model: &Networks<'_>) -> Vec<String> {
    let score = |of: Option<f64>| of.map_or_else(|| "-".into(), number);
    let rows = model.names().iter().zip(model.members()).map(|(name, member)| {
        let unseen = member.unseen();
        let (own, plain) = (score(unseen.map(|u| u.nll)), score(unseen.map(|u| u.plain_nll)));
        let curvature = member.header().options.approximation.name().into();
        [name.clone(), curvature, own, plain, format!("{:.2}", member.seconds())]
    });
    let head = ["network", "curvature", "NLL on unseen rows", "plain network", "seconds"];
    vec![table_under(head, rows)]
}

/// For programs: the members' own reports by name.
pub(crate) fn report(model: &Networks<'_>) -> Result<Value, StoreError> {
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
