//! The table of a network's layers.

use super::structure::Graph;
use serde::Serialize;
use std::fmt;

/// One layer of a [`LayerTable`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerRow {
    /// Its name.
    pub name: String,
    /// What it computes, as [`Operation::name`](crate::Operation::name).
    pub operation: &'static str,
    /// Shape of its output for one example.
    #[serde(rename = "output")]
    pub output_shape: Vec<usize>,
    /// Trainable values; a shared parameter counts in the first layer that uses it.
    pub parameters: usize,
    /// Values that are not trainable (statistics of batch norm, constants).
    pub constants: usize,
    /// Multiplications and additions for one example.
    pub flops: u64,
}

impl LayerRow {
    /// The shape of its output as text: `64 x 32 x 32`.
    pub fn output_text(&self) -> String {
        shape_text(&self.output_shape)
    }
}

/// The layers of a graph in the order they are computed, with totals. Its `Display` is an aligned table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerTable {
    /// Shape of one example of the input.
    #[serde(rename = "input")]
    pub input_shape: Vec<usize>,
    /// The layers.
    #[serde(rename = "layers")]
    pub rows: Vec<LayerRow>,
    /// All trainable values.
    pub parameters: usize,
    /// All values that are not trainable.
    pub constants: usize,
    /// Multiplications and additions of a forward pass for one example.
    pub flops: u64,
    /// Values of all layers for one example, which a pass kept for derivatives stores.
    pub activations: usize,
}

impl LayerTable {
    /// The shape of the input as text.
    pub fn input_text(&self) -> String {
        shape_text(&self.input_shape)
    }
}

/// The line of each node in [`LayerTable::rows`]: the steps of a recurrent layer share one.
pub fn layer_lines(graph: &Graph) -> Vec<usize> {
    let (mut lines, mut unrolled) = (Vec::with_capacity(graph.nodes().len()), None);
    let mut count = 0;
    for node in graph.nodes() {
        let layer = node.recurrent_layer();
        count += usize::from(layer.is_none() || layer != unrolled);
        unrolled = layer;
        lines.push(count - 1);
    }
    lines
}

/// The table of a graph's layers; the steps of a recurrent layer are one line.
pub fn describe(graph: &Graph) -> LayerTable {
    let mut counted = vec![false; graph.parameters().len()];
    let mut rows: Vec<LayerRow> = Vec::new();
    for (node, line) in graph.nodes().iter().zip(layer_lines(graph)) {
        if line == rows.len() {
            let cell = node.recurrent_layer().map(|(_, cell)| cell);
            rows.push(LayerRow {
                name: node.layer().into(),
                operation: cell.unwrap_or(node.operation.name()),
                output_shape: Vec::new(),
                parameters: 0,
                constants: 0,
                flops: 0,
            });
        }
        let Some(row) = rows.last_mut() else { continue };
        row.output_shape.clone_from(&node.shape);
        row.flops = row.flops.saturating_add(node.flops);
        for &p in &node.parameters {
            let slot = &graph.parameters()[p];
            if !std::mem::replace(&mut counted[p], true) {
                *(if slot.trainable { &mut row.parameters } else { &mut row.constants }) += slot.len();
            }
        }
    }
    LayerTable {
        input_shape: graph.input_shape().to_vec(),
        parameters: rows.iter().map(|row| row.parameters).sum(),
        constants: rows.iter().map(|row| row.constants).sum(),
        flops: graph.flops(),
        activations: graph.activations(),
        rows,
    }
}

/// `64 x 32 x 32`.
fn shape_text(shape: &[usize]) -> String {
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if axes.is_empty() { "scalar".into() } else { axes.join(" x ") }
}

impl fmt::Display for LayerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["layer", "operation", "output", "parameters", "constants", "flops"].map(String::from);
        let input = ["input".into(), String::new(), self.input_text(), "0".into(), "0".into(), "0".into()];
        let row = |r: &LayerRow| {
            let numbers = [r.parameters as u64, r.constants as u64, r.flops].map(|n| n.to_string());
            let [parameters, constants, flops] = numbers;
            [r.name.clone(), r.operation.into(), r.output_text(), parameters, constants, flops]
        };
        let totals = [self.parameters as u64, self.constants as u64, self.flops].map(|n| n.to_string());
        let [parameters, constants, flops] = totals;
        let total = ["total".into(), String::new(), String::new(), parameters, constants, flops];
        let lines: Vec<[String; 6]> =
            [head, input].into_iter().chain(self.rows.iter().map(row)).chain([total]).collect();
        let width: [usize; 6] =
            std::array::from_fn(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0));
        for line in &lines {
            let [name, operation, output, parameters, constants, flops] = line;
            writeln!(
                f,
                "{name:<0$}  {operation:<1$}  {output:<2$}  {parameters:>3$}  {constants:>4$}  {flops:>5$}",
                width[0], width[1], width[2], width[3], width[4], width[5]
            )?;
        }
        Ok(())
    }
}
