//! A network as a page to look at: its layers, what reads what, and what can be had for their weights.

use super::support;
use posterior::networks::{Graph, Value, describe, layer_lines};
use posterior::report::{FiguresReport, Item, LayerBox, LayerGraph, Note, Report, SummaryRow};
use std::collections::BTreeSet;
use std::path::Path;

/// The page of `posterior inspect NETWORK --report`.
pub(super) fn network_page(path: &Path, format: &str, graph: &Graph, notes: &[String]) -> Report {
    let table = describe(graph);
    let support = support::of(graph);
    // What each line reads: the input, 0, or other lines from 1 on.
    let lines = layer_lines(graph);
    let mut read = vec![BTreeSet::new(); table.rows.len()];
    for (node, &line) in graph.nodes().iter().zip(&lines) {
        let place = |value: &Value| value.node().map_or(0, |node| lines[node] + 1);
        read[line].extend(node.inputs.iter().map(place).filter(|place| *place != line + 1));
    }
    let layers = table.rows.iter().zip(read).map(|(row, read)| {
        // What is said of the weights of a layer: Kronecker factors are what not every layer has.
        let own = support.iter().find(|own| own.layer == row.name);
        let note = own.map(|own| match own.note {
            "" => own.kronecker.to_string(),
            note => format!("{}; {note}", own.kronecker),
        });
        LayerBox {
            name: row.name.clone(),
            operation: row.operation.into(),
            shape: row.output_text(),
            weights: if row.parameters > 0 { row.parameters.to_string() } else { String::new() },
            note: note.unwrap_or_default(),
            inputs: read.into_iter().collect(),
        }
    });
    let drawn = LayerGraph {
        title: "The layers, and what reads what".into(),
        input: table.input_text(),
        layers: layers.collect(),
        caption: "Squares have weights; lines on the left pass the layers beside them. Beside the weights: what --method kronecker has for them; \
                  full, diagonal and low-rank curvatures are exact for every layer."
            .into(),
    };
    let fact = |label: &str, value: String| SummaryRow { label: label.into(), value };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let section = FiguresReport {
        title: name,
        summary: vec![
            fact("format", format.into()),
            fact("layers", table.rows.len().to_string()),
            fact("weights", table.parameters.to_string()),
            fact("constants", table.constants.to_string()),
            fact("multiplications and additions for one example", table.flops.to_string()),
            fact("values of all layers for one example", table.activations.to_string()),
        ],
        items: vec![Item::Layers(drawn)],
        notes: notes.iter().map(Note::information).collect(),
        ..FiguresReport::default()
    };
    Report::new("A network", "What it computes, layer by layer.", vec![section.into()])
}
