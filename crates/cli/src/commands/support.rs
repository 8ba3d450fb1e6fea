//! `posterior inspect --support`: which curvatures and priors which layer of a network has.

use crate::args::Cli;
use crate::output::{Failure, print, print_json, table_under};
use posterior::networks::{Graph, Operation};
use serde::Serialize;

/// What can be had for one layer.
#[derive(Serialize)]
pub(super) struct LayerSupport {
    pub(super) layer: String,
    operation: &'static str,
    weights: usize,
    full: &'static str,
    diagonal: &'static str,
    pub(super) kronecker: &'static str,
    prior_group: bool,
    pub(super) note: &'static str,
}

/// How many layers read a parameter.
fn users(graph: &Graph, parameter: usize) -> usize {
    graph.nodes().iter().filter(|n| n.parameters.contains(&parameter)).count()
}

/// The layers with weights. Exact: no approximation but the one named; factored: Kronecker factors; shared: exact after the uses of a parameter are summed.
pub(super) fn of(graph: &Graph) -> Vec<LayerSupport> {
    let mut rows: Vec<LayerSupport> = Vec::new();
    let mut counted = vec![false; graph.parameters().len()];
    for node in graph.nodes() {
        let own: Vec<usize> =
            node.parameters.iter().copied().filter(|p| graph.parameters()[*p].trainable).collect();
        if own.is_empty() {
            continue;
        }
        let recurrent = node.recurrent_layer();
        let new = own.iter().filter(|p| recurrent.is_none() || !counted[**p]);
        let weights: usize = new.map(|p| graph.parameters()[*p].len()).sum();
        own.iter().for_each(|p| counted[*p] = true);
        // The steps of a recurrent layer are one line.
        if let Some(last) = rows.last_mut().filter(|row| recurrent.is_some() && row.layer == node.layer()) {
            last.weights += weights;
            continue;
        }
        let shared = own.iter().any(|p| users(graph, *p) > 1);
        let (kronecker, note) = match &node.operation {
            _ if recurrent.is_some() => ("factored", "steps are taken as independent"),
            Operation::Linear(_) => {
                ("factored", if shared { "shared: its uses are taken as independent" } else { "" })
            }
            Operation::Convolution(c) if c.groups == 1 => ("factored", "positions are taken as independent"),
            Operation::Convolution(_) => ("dense or diagonal", "grouped: no Kronecker factors"),
            Operation::BatchNorm(_) => ("dense block", "gain and offset only; statistics are constants"),
            _ => ("dense block", ""),
        };
        rows.push(LayerSupport {
            layer: node.layer().to_string(),
            operation: recurrent.map_or(node.operation.name(), |(_, cell)| cell),
            weights,
            full: "exact",
            diagonal: "exact",
            kronecker,
            prior_group: true,
            note,
        });
    }
    rows
}

/// Prints them.
pub(crate) fn run(cli: &Cli, graph: &Graph) -> Result<(), Failure> {
    let rows = of(graph);
    // Parameters that several layers share are weights only once.
    let total: usize = (0..graph.parameters().len())
        .filter(|&p| graph.parameters()[p].trainable && users(graph, p) > 0)
        .map(|p| graph.parameters()[p].len())
        .sum();
    let invariant = posterior::linearised::normalisation::scale_invariant_layers(graph);
    if cli.json {
        return print_json(
            &posterior::data::json!({ "kind": "support", "layers": rows, "weights": total, "scale_invariant": invariant }),
        );
    }
    let head = [
        "layer",
        "operation",
        "weights",
        "full, block, sub-network",
        "diagonal, low rank",
        "kronecker",
        "note",
    ];
    let out = rows.into_iter().map(|row| {
        let cells = [row.full, row.diagonal, row.kronecker, row.note].map(String::from);
        [row.layer, row.operation.into(), row.weights.to_string()]
            .into_iter()
            .chain(cells)
            .collect::<Vec<_>>()
    });
    let mut lines = vec![table_under(head, out), String::new(), format!("{total} weights")];
    lines.push(
        "kronecker: vectors of up to 1,024 entries (biases, gains) get a dense block, longer ones a diagonal"
            .into(),
    );
    lines.push("function space: every layer, one prior precision for all".into());
    if let Some(text) = posterior::linearised::normalisation::explain(&invariant) {
        lines.push(format!("note: {text}"));
    }
    print(lines.join("\n"))
}
