//! A network as a page to look at: its layers, what reads what, and what can be had for their weights.

use super::support;
use posterior::networks::{Graph, Value, describe};
use posterior::report::{FiguresReport, Item, LayerBox, LayerGraph, Note, Report, SummaryRow};
use std::path::Path;

/// The page of `posterior inspect NETWORK --report`.
pub(super) fn network_page(path: &Path, format: &str, graph: &Graph, notes: &[String]) -> Report {
    let table = describe(graph);
    let support = support::of(graph);
    let layers = table.rows.iter().zip(graph.nodes()).map(|(row, node)| {
        // What is said of the weights of a layer: Kronecker factors are what not every layer has.
        let own = support.iter().find(|own| own.layer == row.name);
        let note = own.map(|own| match own.note {
            "" => own.kronecker.to_string(),
            note => format!("{}; {note}", own.kronecker),
        });
        let place = |value: &Value| value.node().map_or(0, |node| node + 1);
        LayerBox {
            name: row.name.clone(),
            operation: row.operation.into(),
            shape: row.output_text(),
            weights: if row.parameters > 0 { row.parameters.to_string() } else { String::new() },
            note: note.unwrap_or_default(),
            inputs: node.inputs.iter().map(place).collect(),
        }
    });
    let drawn = LayerGraph {
        title: "The layers, and what reads what".into(),
        input: table.input_text(),
        layers: layers.collect(),
        caption: "Squares have weights; lines on the left pass the layers beside them. Beside the weights: what --curvature kronecker has for them; \
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
