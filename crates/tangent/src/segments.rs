//! Which weights of a network belong together.

use posterior_linear::curvature::{MatrixShape, Segment};
use posterior_networks::{Graph, Operation, Selection};

/// The selected weights, parameter by parameter; a layer is a node, or the recurrent layer that it is a step of.
pub fn segments(graph: &Graph, selection: &Selection) -> Vec<Segment> {
    let layer = |parameter: usize| graph.nodes().iter().find(|n| n.parameters.contains(&parameter));
    let segments = selection.parts().iter().map(|part| Segment {
        name: part.name.clone(),
        layer: layer(part.parameter).map_or_else(String::new, |n| n.layer().to_string()),
        range: part.offset..part.offset + part.length,
        whole: part.indices.is_none(),
        matrix: weight_matrix(graph, part.parameter),
    });
    segments.collect()
}

/// What a parameter's nodes make of it, if it is a weight matrix to all of them.
pub fn weight_matrix(graph: &Graph, parameter: usize) -> Option<MatrixShape> {
    let shape = &graph.parameters()[parameter].shape;
    let users: Vec<_> = graph.nodes().iter().filter(|n| n.parameters.first() == Some(&parameter)).collect();
    let rest = || shape[1..].iter().product::<usize>();
    if users.is_empty() || graph.nodes().iter().any(|n| n.parameters.iter().skip(1).any(|p| *p == parameter))
    {
        return None;
    }
    if users.iter().all(|n| matches!(n.operation, Operation::Linear(_))) {
        return Some(MatrixShape { outputs: shape[0], inputs: rest(), transposed: false });
    }
    if users.iter().all(|n| matches!(&n.operation, Operation::Convolution(c) if c.groups == 1)) {
        let transposed =
            users.iter().any(|n| matches!(&n.operation, Operation::Convolution(c) if c.transposed));
        let (outputs, inputs) = if transposed { (rest(), shape[0]) } else { (shape[0], rest()) };
        return Some(MatrixShape { outputs, inputs, transposed });
    }
    None
}
