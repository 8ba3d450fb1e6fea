//! A fully connected **output layer**: its Jacobian at features `phi` is `I (x) [phi, 1]`, so that `M = sum_n B_n (x) u_n u_n^T` needs features and output
//! curvatures only. Memory and work never see features x classes squared unless all entries are asked for.
//!
//! | form | sums | flops for each example |
//! |---|---|---|
//! | Kronecker | `sum B`, `sum u u^T` | `C^2 + p^2` |
//! | diagonal | `sum B_cc u_j^2` | `C p` |
//! | full | `sum B_cc' u u^T` for `c' <= c` | `C^2 p^2 / 2` |

use super::{BlockSum, SumMatrix};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::{Array, Graph, Operation, Precision, Selection, Trace, add_gram};
use posterior_tangent::{Batch, doubles};

/// The output layer of a network, all of whose weights (and only they) are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The node whose output the layer reads; None for the network's input.
    pub(crate) input: Option<usize>,
    /// Number of features.
    pub(crate) features: usize,
    /// Number of outputs.
    pub(crate) outputs: usize,
    /// Whether the bias is among the weights.
    pub(crate) bias: bool,
}

impl Head {
    /// The head of a graph, if a selection is exactly its weights (with or without the bias).
    pub(crate) fn of(graph: &Graph, selection: &Selection) -> Option<Self> {
        let node = &graph.nodes()[graph.output().node()?];
        let input_shape = graph.shape(node.inputs[0]);
        if !matches!(node.operation, Operation::Linear(_)) || input_shape.len() != 1 {
            return None;
        }
        let once =
            |p: usize| graph.nodes().iter().flat_map(|n| &n.parameters).filter(|q| **q == p).count() == 1;
        let parts = selection.parts();
        let weights: Vec<usize> = parts.iter().map(|p| p.parameter).collect();
        let fits = weights == node.parameters || weights == node.parameters[..1];
        if !fits || parts.iter().any(|p| p.indices.is_some() || !once(p.parameter)) {
            return None;
        }
        Some(Self {
            input: node.inputs[0].node(),
            features: input_shape[0],
            outputs: node.shape[0],
            bias: weights.len() == 2,
        })
    }

    /// The features of a batch, `[examples, features]`.
    pub(crate) fn values<'a, T: Precision>(&self, trace: &'a Trace<'_, T>) -> &'a Array<T> {
        self.input.map_or(trace.input(), |node| trace.value(node))
    }

    /// Adds a batch.
    pub(super) fn add<T: Precision>(
        &self,
        trace: &Trace<'_, T>,
        batch: &Batch<T>,
        likelihood: &OutputLikelihood,
        blocks: &mut [BlockSum],
    ) {
        let (u, f) = (self.values(trace), trace.output());
        let kronecker = matches!(blocks[0].matrix, SumMatrix::Kronecker { .. });
        if kronecker {
            let mut sum = faer::Mat::zeros(self.outputs, self.outputs);
            add_output_curvature(likelihood, batch, f, &mut sum);
            for block in blocks {
                match &mut block.matrix {
                    SumMatrix::Kronecker { outputs, inputs, .. } => {
                        *outputs += &sum;
                        add_gram(inputs, u.values(), self.features);
                    }
                    SumMatrix::Dense(bias) => *bias += &sum,
                    SumMatrix::Diagonal(bias) => {
                        bias.iter_mut().enumerate().for_each(|(c, b)| *b += sum[(c, c)]);
                    }
                }
            }
            return;
        }
        let count = self.outputs;
        let mut curvatures = vec![0.0; batch.range.len() * count * count];
        for (i, place) in curvatures.chunks_exact_mut(count * count).enumerate() {
            likelihood.curvature(batch.target(i), &doubles(f.row(i)), place);
        }
        let entry = |i: usize, c: usize, d: usize| curvatures[i * count * count + c * count + d];
        // With the bias the features have a last column of ones.
        let mut features = Vec::with_capacity(u.len() + u.rows());
        for row in u.values().chunks_exact(self.features) {
            features.extend_from_slice(row);
            if self.bias {
                features.push(T::ONE);
            }
        }
        let width = self.features + usize::from(self.bias);
        // Where feature j of output c stands in the flat vector: weights first, then biases.
        let place = |c: usize, j: usize| {
            if j < self.features { c * self.features + j } else { count * self.features + c }
        };
        for block in blocks {
            match &mut block.matrix {
                SumMatrix::Diagonal(sum) => {
                    for (i, row) in features.chunks_exact(width).enumerate() {
                        for c in 0..count {
                            let b = entry(i, c, c);
                            row.iter()
                                .enumerate()
                                .for_each(|(j, u)| sum[place(c, j)] += b * u.to_f64() * u.to_f64());
                        }
                    }
                }
                SumMatrix::Dense(sum) => {
                    let mut weighted = vec![T::ZERO; features.len()];
                    for (c, d) in (0..count).flat_map(|c| (0..=c).map(move |d| (c, d))) {
                        for (i, (to, from)) in
                            weighted.chunks_exact_mut(width).zip(features.chunks_exact(width)).enumerate()
                        {
                            let b = T::from_f64(entry(i, c, d));
                            to.iter_mut().zip(from).for_each(|(t, u)| *t = b * *u);
                        }
                        let rows = batch.range.len();
                        let mut product = vec![T::ZERO; width * width];
                        let (left, right) = (
                            posterior_networks::Matrix::new(&weighted, rows, width),
                            posterior_networks::Matrix::new(&features, rows, width),
                        );
                        posterior_networks::product(&mut product, false, left.transposed(), right);
                        for (j, k) in (0..width).flat_map(|j| (0..width).map(move |k| (j, k))) {
                            let (row, column) = (place(c, j), place(d, k));
                            if row >= column {
                                sum[(row, column)] += product[j * width + k].to_f64();
                            } else if c != d {
                                sum[(column, row)] += product[j * width + k].to_f64();
                            }
                        }
                    }
                }
                SumMatrix::Kronecker { .. } => {}
            }
        }
    }
}

/// Adds `sum_n B_n` to the lower triangle. For softmax `diag(sum p) - P^T P`: one product, and no matrix for each example.
fn add_output_curvature<T: Precision>(
    likelihood: &OutputLikelihood,
    batch: &Batch<T>,
    f: &Array<T>,
    sum: &mut faer::Mat<f64>,
) {
    let count = likelihood.outputs();
    if let OutputLikelihood::Categorical(_) = likelihood {
        let mut p: Vec<f64> = doubles(f.values());
        for row in p.chunks_exact_mut(count) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|v| *v = (*v - largest).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|v| *v /= total);
            (0..count).for_each(|c| sum[(c, c)] += row[c]);
        }
        let mut gram = faer::Mat::zeros(count, count);
        add_gram(&mut gram, &p, count);
        *sum -= gram;
        return;
    }
    let mut own = vec![0.0; count * count];
    for i in 0..batch.range.len() {
        likelihood.curvature(batch.target(i), &doubles(f.row(i)), &mut own);
        (0..count).for_each(|c| (0..=c).for_each(|d| sum[(c, d)] += own[c * count + d]));
    }
}
