//! A posterior made ready for many inputs, in the precision of the network.

use crate::accumulate::Head;
use crate::accumulate::rows::block_selection;
use crate::{LaplaceError, accumulate::weight_matrix};
use faer::{Mat, MatRef};
use posterior_linear::structure::{Conditioned, ConditionedBlock};
use posterior_networks::{Network, Precision, Selection};
use std::ops::Range;

/// Posteriors of one network that share everything but prior and noise.
pub struct Predictor<T> {
    selection: Selection,
    tapped: Selection,
    head: Option<Head>,
    blocks: Vec<PreparedBlock<T>>,
    conditioned: Vec<(Range<usize>, Vec<ConditionedBlock>)>,
    count: usize,
}

/// How one parameter (or one block of several) is predicted with.
pub(super) enum PreparedBlock<T> {
    /// A weight matrix: bases of its rows and columns (row-major, None for the identity) and variances `[rows, columns]` by posterior.
    Matrix {
        parameter: usize,
        rows: usize,
        columns: usize,
        row_basis: Option<Vec<T>>,
        column_basis: Option<Vec<T>>,
        variances: Vec<Vec<T>>,
    },
    /// Another parameter with a block of its own.
    Vector { parameter: usize, posteriors: Vec<ConditionedBlock> },
    /// Several parameters at once: rows of the Jacobian.
    Rows { selection: Selection, posteriors: Vec<ConditionedBlock> },
}

/// Entries row by row, rounded to the network's precision.
pub(super) fn row_major<T: Precision>(m: MatRef<'_, f64>) -> Vec<T> {
    (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| T::from_f64(m[(i, j)]))).collect()
}

impl<T: Precision> Predictor<T> {
    /// Prepares posteriors that were conditioned from one structure.
    ///
    /// # Errors
    /// When they are not of the selected weights.
    pub fn new(
        network: &Network<T>,
        selection: &Selection,
        posteriors: Vec<Conditioned>,
    ) -> Result<Self, LaplaceError> {
        let graph = network.graph();
        if posteriors.is_empty() || posteriors.iter().any(|p| p.dimension() != selection.len()) {
            return Err(LaplaceError::Request("the posterior is not one of the selected weights".into()));
        }
        let count = posteriors.len();
        let mut conditioned: Vec<(Range<usize>, Vec<ConditionedBlock>)> =
            posteriors[0].blocks().iter().map(|(range, _)| (range.clone(), Vec::new())).collect();
        for posterior in posteriors {
            for (place, (_, block)) in conditioned.iter_mut().zip(posterior.into_blocks()) {
                place.1.push(block);
            }
        }
        let mut blocks = Vec::new();
        for (range, own) in &conditioned {
            let parts: Vec<_> = selection
                .parts()
                .iter()
                .filter(|p| p.offset >= range.start && p.offset + p.length <= range.end)
                .collect();
            let whole = parts.iter().all(|p| p.indices.is_none());
            match (&own[0], &parts[..]) {
                (ConditionedBlock::Diagonal(_), parts) if whole => {
                    for part in parts {
                        let local = part.offset - range.start..part.offset - range.start + part.length;
                        let cut = |block: &ConditionedBlock| match block {
                            ConditionedBlock::Diagonal(d) => d.variances[local.clone()].to_vec(),
                            _ => Vec::new(),
                        };
                        blocks.push(match weight_matrix(graph, part.parameter) {
                            Some((outputs, inputs, transposed)) => PreparedBlock::Matrix {
                                parameter: part.parameter,
                                rows: if transposed { inputs } else { outputs },
                                columns: if transposed { outputs } else { inputs },
                                row_basis: None,
                                column_basis: None,
                                variances: own
                                    .iter()
                                    .map(|b| cut(b).into_iter().map(T::from_f64).collect())
                                    .collect(),
                            },
                            None => PreparedBlock::Vector {
                                parameter: part.parameter,
                                posteriors: own.iter().map(|b| ConditionedBlock::diagonal(cut(b))).collect(),
                            },
                        });
                    }
                }
                (ConditionedBlock::Kronecker(first), [part]) => {
                    let variances = own.iter().filter_map(|b| match b {
                        ConditionedBlock::Kronecker(k) => Some(row_major(k.variances.as_ref())),
                        _ => None,
                    });
                    blocks.push(PreparedBlock::Matrix {
                        parameter: part.parameter,
                        rows: first.variances.nrows(),
                        columns: first.variances.ncols(),
                        row_basis: Some(row_major(first.row_basis.as_ref())),
                        column_basis: Some(row_major(first.column_basis.as_ref())),
                        variances: variances.collect(),
                    });
                }
                (ConditionedBlock::Dense(_), [part])
                    if whole && weight_matrix(graph, part.parameter).is_none() =>
                {
                    blocks.push(PreparedBlock::Vector { parameter: part.parameter, posteriors: own.clone() });
                }
                _ => blocks.push(PreparedBlock::Rows {
                    selection: block_selection(network, selection, range.clone()),
                    posteriors: own.clone(),
                }),
            }
        }
        let tapped = |parameter: usize| {
            blocks.iter().any(|b| match b {
                PreparedBlock::Matrix { parameter: p, .. } | PreparedBlock::Vector { parameter: p, .. } => {
                    *p == parameter
                }
                PreparedBlock::Rows { .. } => false,
            })
        };
        let mask: Vec<bool> = selection
            .parts()
            .iter()
            .flat_map(|p| std::iter::repeat_n(tapped(p.parameter), p.length))
            .collect();
        let tapped = if mask.iter().all(|m| *m) { selection.clone() } else { selection.masked(graph, &mask) };
        let head = Head::of(graph, selection).filter(|head| head.predicts(&conditioned));
        Ok(Self { selection: selection.clone(), tapped, head, blocks, conditioned, count })
    }

    /// Number of posteriors.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The weights.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The weights whose gradients are tapped on the way back.
    pub(super) fn tapped(&self) -> &Selection {
        &self.tapped
    }

    /// Weights of the largest block that is predicted with rows of the Jacobian; 0 without any.
    pub(crate) fn largest_rows(&self) -> usize {
        let rows = |block: &PreparedBlock<T>| match block {
            PreparedBlock::Rows { selection, .. } => selection.len(),
            _ => 0,
        };
        self.blocks.iter().map(rows).max().unwrap_or(0)
    }

    /// Multiplications and additions of whitening one row over each block that is predicted with rows of the Jacobian.
    pub(crate) fn whitening_flops(&self) -> f64 {
        let each = |block: &PreparedBlock<T>| match block {
            PreparedBlock::Rows { selection, posteriors } => {
                let n = selection.len() as f64;
                match &posteriors[0] {
                    ConditionedBlock::LowRank(low_rank) => n * (2 * low_rank.rank() + 2) as f64,
                    ConditionedBlock::Diagonal(_) => n,
                    _ => n * n,
                }
            }
            _ => 0.0,
        };
        self.blocks.iter().map(each).sum()
    }

    /// Weights of the largest block whose covariance is a dense matrix; 0 without any.
    pub(crate) fn largest_dense(&self) -> usize {
        let dense = |(range, blocks): &(Range<usize>, Vec<ConditionedBlock>)| match &blocks[0] {
            ConditionedBlock::Dense(_) => range.len(),
            _ => 0,
        };
        self.conditioned.iter().map(dense).max().unwrap_or(0)
    }

    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    pub(super) fn blocks(&self) -> &[PreparedBlock<T>] {
        &self.blocks
    }

    /// The blocks of every posterior with the weights they cover.
    pub(crate) fn conditioned(&self) -> impl Iterator<Item = (Range<usize>, &[ConditionedBlock])> {
        self.conditioned.iter().map(|(range, blocks)| (range.clone(), &blocks[..]))
    }

    /// Adds the contribution of a parameter's gradient rows `[examples * C, entries]`.
    pub(super) fn add_vector(
        &self,
        parameter: usize,
        rows: MatRef<'_, f64>,
        outputs: usize,
        wanted: super::Wanted,
        covariances: &mut [Vec<f64>],
    ) {
        for block in &self.blocks {
            match block {
                PreparedBlock::Vector { parameter: p, posteriors } if *p == parameter => {
                    for (posterior, out) in posteriors.iter().zip(covariances.iter_mut()) {
                        let white = posterior.whiten(rows);
                        super::add_inner_products(white.as_ref(), outputs, wanted, out);
                    }
                }
                PreparedBlock::Matrix {
                    parameter: p,
                    rows: m,
                    columns: n,
                    row_basis,
                    column_basis,
                    variances,
                } if *p == parameter => {
                    // A weight that is used more than once: its gradients are rotated as matrices.
                    let basis = |b: &Option<Vec<T>>, size: usize| {
                        b.as_ref().map_or_else(
                            || Mat::identity(size, size),
                            |b| Mat::from_fn(size, size, |i, j| b[i * size + j].to_f64()),
                        )
                    };
                    let (left, right) = (basis(row_basis, *m), basis(column_basis, *n));
                    for (own, out) in variances.iter().zip(covariances.iter_mut()) {
                        let mut white = Mat::zeros(rows.nrows(), rows.ncols());
                        for r in 0..rows.nrows() {
                            let gradient = Mat::from_fn(*m, *n, |i, j| rows[(r, i * n + j)]);
                            let rotated = left.transpose() * gradient * &right;
                            for k in 0..m * n {
                                white[(r, k)] = rotated[(k / n, k % n)] * own[k].to_f64().sqrt();
                            }
                        }
                        super::add_inner_products(white.as_ref(), outputs, wanted, out);
                    }
                }
                _ => {}
            }
        }
    }
}
