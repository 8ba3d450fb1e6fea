//! A fully connected **output layer**: its Jacobian at features `phi` is `I (x) [phi, 1]`, so that `M = sum_n B_n (x) u_n u_n^T` needs features and output
//! curvatures only. Memory and work never see features x classes squared unless all entries are asked for.
//!
//! | form | sums | flops for each example |
//! |---|---|---|
//! | Kronecker | `sum B`, `sum u u^T` | `C^2 + p^2` |
//! | diagonal | `sum B_cc u_j^2` | `C p` |
//! | full | `sum B_cc' u u^T` for `c' <= c` | `C^2 p^2 / 2` |

mod covariances;

use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::{BlockSum, OutputCurvature, SumMatrix};
use posterior_networks::{Array, Graph, Matrix, Operation, Precision, Selection, Trace, add_gram, product};

/// The output layer of a network, all of whose weights (and only they) are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The node whose output the layer reads; None for the network's input.
    pub input: Option<usize>,
    /// Number of features.
    pub features: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// Whether the bias is among the weights.
    pub bias: bool,
}

impl Head {
    /// The head of a graph, if a selection is exactly its weights (with or without the bias).
    pub fn of(graph: &Graph, selection: &Selection) -> Option<Self> {
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

    /// The features with a last column of ones where there is a bias, row by row, and their number.
    pub(super) fn augmented<T: Precision>(&self, u: &Array<T>) -> (Vec<T>, usize) {
        let width = self.features + usize::from(self.bias);
        let mut features = Vec::with_capacity(u.rows() * width);
        for row in u.values().chunks_exact(self.features) {
            features.extend_from_slice(row);
            if self.bias {
                features.push(T::ONE);
            }
        }
        (features, width)
    }

    /// Where feature `j` of output `c` stands in the flat vector: weights first, then biases.
    pub(super) fn place(&self, c: usize, j: usize) -> usize {
        if j < self.features { c * self.features + j } else { self.outputs * self.features + c }
    }

    /// Adds the curvature of a batch.
    pub(super) fn add_curvature<T: Precision>(
        &self,
        trace: &Trace<'_, T>,
        observed: &OutputCurvature<'_>,
        blocks: &mut [BlockSum],
    ) {
        let u = self.values(trace);
        let kronecker = matches!(blocks[0].matrix, SumMatrix::Kronecker { .. });
        if kronecker {
            let mut sum = faer::Mat::zeros(self.outputs, self.outputs);
            add_output_curvature(observed, &mut sum);
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
        let mut curvatures = vec![0.0; u.rows() * count * count];
        for (i, place) in curvatures.chunks_exact_mut(count * count).enumerate() {
            observed.likelihood.curvature(observed.target(i), observed.output(i), place);
        }
        let entry = |i: usize, c: usize, d: usize| curvatures[i * count * count + c * count + d];
        let (features, width) = self.augmented(u);
        let place = |c: usize, j: usize| self.place(c, j);
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
                        let mut sums = vec![T::ZERO; width * width];
                        let (left, right) = (
                            Matrix::new(&weighted, u.rows(), width),
                            Matrix::new(&features, u.rows(), width),
                        );
                        product(&mut sums, false, left.transposed(), right);
                        for (j, k) in (0..width).flat_map(|j| (0..width).map(move |k| (j, k))) {
                            let (row, column) = (place(c, j), place(d, k));
                            if row >= column {
                                sum[(row, column)] += sums[j * width + k].to_f64();
                            } else if c != d {
                                sum[(column, row)] += sums[j * width + k].to_f64();
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
fn add_output_curvature(observed: &OutputCurvature<'_>, sum: &mut faer::Mat<f64>) {
    let count = observed.likelihood.outputs();
    if let OutputLikelihood::Categorical(_) = observed.likelihood {
        let mut p: Vec<f64> = observed.outputs.to_vec();
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
    for i in 0..observed.outputs.len() / count {
        observed.likelihood.curvature(observed.target(i), observed.output(i), &mut own);
        (0..count).for_each(|c| (0..=c).for_each(|d| sum[(c, d)] += own[c * count + d]));
    }
}
