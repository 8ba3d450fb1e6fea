//! Adding what one batch's rows contribute to a curvature, form by form.

#[cfg(test)]
mod tests;

use posterior_linear::curvature::{BlockSum, SumMatrix};
use posterior_networks::{
    Array, Curvature, Graph, Matrix, Network, NetworkError, Operation, Outputs, Precision, Selection, Tap,
    Trace, add_gram, product,
};
use std::ops::Range;

/// Kronecker factors of weight matrices, exact blocks of other parameters. A weight that several nodes share (the steps of a recurrent layer) has all its uses as positions of one layer.
pub(crate) fn add_kronecker<T: Precision>(
    trace: &Trace<'_, T>,
    selection: &Selection,
    rows: &Array<T>,
    blocks: &mut [BlockSum],
) -> Result<(), NetworkError> {
    let graph = trace.network().graph();
    // Gradients of other parameters that are used more than once are summed before they are squared.
    let mut vectors: Vec<Option<Array<T>>> = vec![None; blocks.len()];
    trace.visit_taps(selection, rows, &mut |node, parameter, tap| {
        let Some(place) = selection.parts().iter().position(|p| p.parameter == parameter) else { return };
        if bias_of(graph, selection, blocks, node, parameter).is_some() {
            return;
        }
        if let SumMatrix::Kronecker { outputs, inputs, .. } = &mut blocks[place].matrix
            && let Some(outer) = tap.outer()
        {
            add_gram(inputs, outer.inputs.values(), outer.columns());
            let columns = outer.outputs();
            if outer.positions == 1 {
                add_gram(outputs, outer.sensitivities.values(), columns);
            } else {
                let factor = T::from_f64(1.0 / (outer.positions as f64).sqrt());
                let mut scaled = outer.sensitivities.into_owned();
                scaled.values_mut().iter_mut().for_each(|v| *v *= factor);
                add_gram(outputs, scaled.values(), columns);
            }
            return;
        }
        let gradients = tap.gradients();
        match &mut vectors[place] {
            Some(sum) => sum.values_mut().iter_mut().zip(gradients.values()).for_each(|(s, g)| *s += *g),
            empty => *empty = Some(gradients),
        }
    })?;
    for (place, rows) in vectors.into_iter().enumerate() {
        let Some(rows) = rows else { continue };
        match &mut blocks[place].matrix {
            SumMatrix::Diagonal(sum) => {
                for row in rows.values().chunks_exact(sum.len()) {
                    sum.iter_mut().zip(row).for_each(|(s, g)| *s += g.to_f64() * g.to_f64());
                }
            }
            SumMatrix::Dense(sum) => add_gram(sum, rows.values(), rows.row_len()),
            SumMatrix::Kronecker { .. } => {}
        }
    }
    share_with_biases(graph, selection, blocks);
    Ok(())
}

/// The place of the weight whose output factor is, sum for sum, the dense block of this bias: that of the same fully connected layer with one position, where both are used once.
/// Its sum is copied in the end instead of being made twice.
fn bias_of(
    graph: &Graph,
    selection: &Selection,
    blocks: &[BlockSum],
    node: usize,
    parameter: usize,
) -> Option<usize> {
    let node = &graph.nodes()[node];
    let (Operation::Linear(_), &[weight, bias]) = (&node.operation, &node.parameters[..]) else {
        return None;
    };
    let place = |p: usize| selection.parts().iter().position(|part| part.parameter == p);
    let once = |p: usize| graph.nodes().iter().flat_map(|n| &n.parameters).filter(|q| **q == p).count() == 1;
    let (from, to) = (place(weight)?, place(bias)?);
    let fits = bias == parameter
        && node.shape.len() == 1
        && once(weight)
        && once(bias)
        && matches!(blocks[from].matrix, SumMatrix::Kronecker { .. })
        && matches!(blocks[to].matrix, SumMatrix::Dense(_));
    fits.then_some(from)
}

/// Fills in the blocks of biases that were left out.
fn share_with_biases(graph: &Graph, selection: &Selection, blocks: &mut [BlockSum]) {
    for (i, node) in graph.nodes().iter().enumerate() {
        let Some(&bias) = node.parameters.get(1) else { continue };
        if let Some(from) = bias_of(graph, selection, blocks, i, bias)
            && let Some(to) = selection.parts().iter().position(|part| part.parameter == bias)
            && let SumMatrix::Kronecker { outputs, .. } = &blocks[from].matrix
        {
            blocks[to].matrix = SumMatrix::Dense(outputs.clone());
        }
    }
}

/// The gradients `[rows, entries]` that a tap stands for.
pub(crate) fn gradients<T: Precision>(tap: Tap<T>) -> Array<T> {
    match tap {
        Tap::Vector(rows) => rows,
        Tap::Outer { inputs, sensitivities, transposed } => {
            let (examples, positions, q) = (inputs.shape()[0], inputs.shape()[1], inputs.shape()[2]);
            let (rows, c) = (sensitivities.shape()[0], sensitivities.shape()[2]);
            let width = rows / examples.max(1);
            let mut out = Array::zeros(vec![rows, c * q]);
            for r in 0..rows {
                let a = &inputs.values()[r / width * positions * q..][..positions * q];
                let d = &sensitivities.values()[r * positions * c..][..positions * c];
                let place = &mut out.values_mut()[r * c * q..(r + 1) * c * q];
                let (a, d) = (Matrix::new(a, positions, q), Matrix::new(d, positions, c));
                match transposed {
                    false => product(place, false, d.transposed(), a),
                    true => product(place, false, a.transposed(), d),
                }
            }
            out
        }
    }
}

/// The exact diagonal.
pub(crate) fn add_diagonal<T: Precision>(
    network: &Network<T>,
    x: &Array<T>,
    selection: &Selection,
    rows: &Array<T>,
    blocks: &mut [BlockSum],
) -> Result<(), NetworkError> {
    let (examples, outputs) = (x.rows(), network.graph().output_shape().iter().product::<usize>());
    let width = rows.rows() / examples.max(1);
    // Roots are stored output by output, the rows of a batch root by root.
    let mut roots = Array::zeros(vec![examples, outputs, width]);
    for (n, place) in roots.values_mut().chunks_exact_mut(outputs * width).enumerate() {
        for s in 0..width {
            let row = rows.row(n * width + s);
            (0..outputs).for_each(|c| place[c * width + s] = row[c]);
        }
    }
    let diagonal = network.gauss_newton_diagonal(x, &Curvature::Roots(roots), selection)?;
    for block in blocks {
        if let SumMatrix::Diagonal(sum) = &mut block.matrix {
            let own = &diagonal[block.range.clone()];
            sum.iter_mut().zip(own).for_each(|(s, d)| *s += d.to_f64());
        }
    }
    Ok(())
}

/// Every entry within a block: rows of the Jacobian, a few examples at a time.
pub(crate) fn add_dense<T: Precision>(
    network: &Network<T>,
    x: &Array<T>,
    selection: &Selection,
    rows: Array<T>,
    blocks: &mut [BlockSum],
) -> Result<(), NetworkError> {
    let outputs = Outputs::Combinations(rows);
    for block in blocks {
        let SumMatrix::Dense(sum) = &mut block.matrix else { continue };
        let own = block_selection(network, selection, block.range.clone());
        let mut add = |_: Range<usize>, piece: &Array<T>| add_gram(sum, piece.values(), piece.row_len());
        network.jacobian_pieces(x, &own, &outputs, &mut add)?;
    }
    Ok(())
}

/// The part of a selection that lies in a range of its flat vector.
pub(crate) fn block_selection<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    range: Range<usize>,
) -> Selection {
    if range.len() == selection.len() {
        return selection.clone();
    }
    let mask: Vec<bool> = (0..selection.len()).map(|i| range.contains(&i)).collect();
    selection.masked(network.graph(), &mask)
}
