//! Gauss-Newton matrices `sum_n J_n^T L_n J_n`: products and diagonal.

use super::Curvature;
use super::products::uses;
use super::shared::SharedUses;
use crate::PerNetworkPrecision;
use crate::array::{Array, Matrix, Precision, Sets, add_to, fold_rows, multiply, product};
use crate::graph::trace::Reach;
use crate::graph::{Network, NetworkError, Selection, Trace};
use crate::operation::Factors;
use posterior_linalg::compiled_here;
use posterior_linalg::tiles::pieces;

/// Values of gradients by example that are held at one time, where they cannot be avoided.
pub const GRADIENTS: usize = 1 << 25;

impl<T: Precision> Network<T> {
    /// Examples for which `width` rows of every activation, and of the largest parameter's gradients, stay within bounds.
    pub(super) fn examples_for(&self, width: usize, selection: &Selection) -> usize {
        let largest =
            selection.parts().iter().map(|part| part.shape.iter().product::<usize>()).max().unwrap_or(1);
        let by_gradient = GRADIENTS / (largest * width).max(1);
        (self.examples_at_once() / width.max(1)).min(by_gradient).max(1)
    }

    /// `sum_n J_n^T L_n J_n v_k` for `k` vectors: `[k, selection] -> [k, selection]`.
    ///
    /// Cost and memory: those of [`Self::products_through`].
    ///
    /// # Errors
    /// When vectors or curvature do not fit, the inputs are not finite, or the network is in training mode.
    pub fn gauss_newton_products(
        &self,
        x: &Array<T>,
        curvature: &Curvature<T>,
        selection: &Selection,
        vectors: &Array<T>,
    ) -> Result<Array<T>, NetworkError> {
        self.require_evaluation("Gauss-Newton products")?;
        curvature.check(x.rows(), self.graph().output_shape().iter().product())?;
        self.products_through(x, selection, vectors, &mut |outputs, range, moved| {
            curvature.apply(outputs, range, moved)
        })
    }

    /// The diagonal of `sum_n J_n^T L_n J_n`, exactly: `[selection]`.
    ///
    /// Fully connected layers need a product of squares, `sum_n (sum_s delta_s^2) a^2^T`; other parameters the gradients of a few examples at a time.
    ///
    /// # Errors
    /// As [`Self::gauss_newton_products`].
    #[inline(never)]
    pub fn gauss_newton_diagonal(
        &self,
        x: &Array<T>,
        curvature: &Curvature<T>,
        selection: &Selection,
    ) -> Result<Vec<T>, NetworkError> {
        compiled_here!(T: Precision, PerNetworkPrecision; ['a] Network::diagonal_here, (
            network: &'a Network<T> = self,
            x: &'a Array<T> = x,
            curvature: &'a Curvature<T> = curvature,
            selection: &'a Selection = selection,
        ) -> Result<Vec<T>, NetworkError>)
    }

    fn diagonal_here(
        &self,
        x: &Array<T>,
        curvature: &Curvature<T>,
        selection: &Selection,
    ) -> Result<Vec<T>, NetworkError> {
        self.require_evaluation("the Gauss-Newton diagonal")?;
        let outputs: usize = self.graph().output_shape().iter().product();
        curvature.check(x.rows(), outputs)?;
        let width = curvature.columns(outputs);
        let mut diagonal = vec![T::ZERO; selection.len()];
        for range in pieces(x.rows(), self.examples_for(width, selection)) {
            let trace = self.trace(x.slice_rows(range.clone()))?;
            let cotangents = curvature.roots(trace.output(), range);
            trace.add_squares(selection, cotangents, &mut diagonal);
        }
        Ok(diagonal)
    }
}

impl<T: Precision> Trace<'_, T> {
    /// Adds the sum over rows of the squared gradient entries to `out`.
    #[inline(never)]
    fn add_squares(&self, selection: &Selection, cotangents: Array<T>, out: &mut [T]) {
        let graph = self.network().graph();
        let (reach, uses) = (Reach::new(graph, Some(selection), false), uses(graph));
        let width = cotangents.rows() / self.rows().max(1);
        // Gradients of shared parameters are summed over their uses before they are squared.
        let mut shared: Vec<Option<Vec<T>>> = vec![None; selection.parts().len()];
        let mut joining = SharedUses::of(graph);
        self.pull(cotangents, &reach, &mut |node, cotangent| {
            for (slot, &parameter) in graph.nodes()[node].parameters.iter().enumerate() {
                let Some(part) = selection.part(parameter) else { continue };
                let length = graph.parameters()[parameter].len();
                let place = &mut out[part.offset..part.offset + part.length];
                let layer = self.network().layer(node);
                if self.at(node, |at| joining.keep((node, parameter, slot), layer, at, cotangent)) {
                    continue;
                }
                let outer = uses[parameter] == 1
                    && part.indices.is_none()
                    && self.at(node, |at| {
                        let Some(Factors::Outer { inputs, sensitivities, positions: 1, transposed: false }) =
                            layer.factors(at, slot, cotangent)
                        else {
                            return false;
                        };
                        let squares = fold_rows(&multiply(sensitivities.into_owned(), cotangent), width);
                        let inputs = multiply(inputs.clone().into_owned(), &inputs);
                        let (rows, columns, outputs) = (inputs.rows(), inputs.row_len(), squares.row_len());
                        let left = Matrix::new(squares.values(), rows, outputs).transposed();
                        product(place, true, left, Matrix::new(inputs.values(), rows, columns));
                        true
                    });
                if outer {
                    continue;
                }
                let mut rows = vec![T::ZERO; cotangent.rows() * length];
                self.at(node, |at| layer.vjp_parameter(at, slot, cotangent, Sets::Rows, length, &mut rows));
                if uses[parameter] == 1 {
                    squares(&rows, length, part.indices.as_deref(), place);
                    continue;
                }
                let position = selection.parts().iter().position(|p| p.parameter == parameter).unwrap_or(0);
                match &mut shared[position] {
                    Some(sum) => add_to(sum, &rows),
                    empty => *empty = Some(rows),
                }
            }
        });
        for joined in joining.joined() {
            let Some(part) = selection.part(joined.parameter) else { continue };
            let (rows, place) = (joined.gradients(), &mut out[part.offset..part.offset + part.length]);
            squares(rows.values(), rows.row_len(), part.indices.as_deref(), place);
        }
        for (part, rows) in selection.parts().iter().zip(shared) {
            if let Some(rows) = rows {
                let length = graph.parameters()[part.parameter].len();
                squares(
                    &rows,
                    length,
                    part.indices.as_deref(),
                    &mut out[part.offset..part.offset + part.length],
                );
            }
        }
    }
}

/// Adds the sum over rows of squared entries.
#[inline(never)]
fn squares<T: Precision>(rows: &[T], length: usize, indices: Option<&[usize]>, out: &mut [T]) {
    for row in rows.chunks_exact(length) {
        match indices {
            None => out.iter_mut().zip(row).for_each(|(o, &v)| *o += v * v),
            Some(indices) => out.iter_mut().zip(indices).for_each(|(o, &i)| *o += row[i] * row[i]),
        }
    }
}
