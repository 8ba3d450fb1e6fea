//! Posteriors made ready for many inputs, in the precision of the features.

use super::{Latent, Wanted};
use crate::curvature::{Segment, by_rows::wide};
use crate::structure::{Conditioned, ConditionedBlock};
use crate::{LinearError, Linearised};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use std::ops::Range;

/// Posteriors of one model that share everything but prior and noise.
#[derive(Clone, Debug)]
pub struct Posteriors<T> {
    blocks: Vec<PreparedBlock<T>>,
    conditioned: Vec<(Range<usize>, Vec<ConditionedBlock>)>,
    count: usize,
}

/// How one tensor (or one block of several) is predicted with.
#[derive(Clone, Debug)]
pub enum PreparedBlock<T> {
    /// A weight matrix: bases of its rows and columns (row by row, None for the identity) and variances `[rows, columns]` by posterior.
    Matrix {
        /// Number of its segment.
        segment: usize,
        /// Rows, as it is stored.
        rows: usize,
        /// Columns.
        columns: usize,
        /// `[rows, rows]`.
        row_basis: Option<Vec<T>>,
        /// `[columns, columns]`.
        column_basis: Option<Vec<T>>,
        /// One table for each posterior.
        variances: Vec<Vec<T>>,
    },
    /// Another tensor with a block of its own.
    Vector {
        /// Number of its segment.
        segment: usize,
        /// By posterior.
        posteriors: Vec<ConditionedBlock>,
    },
    /// Several tensors at once: rows of the features.
    Rows {
        /// The weights.
        range: Range<usize>,
        /// By posterior.
        posteriors: Vec<ConditionedBlock>,
    },
}

/// Whether some weights are all in a range.
fn within(own: &Range<usize>, range: &Range<usize>) -> bool {
    own.start >= range.start && own.end <= range.end
}

/// Entries row by row, rounded to the features' precision.
pub fn row_major<T: Real>(m: MatRef<'_, f64>) -> Vec<T> {
    (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| T::from_f64(m[(i, j)]))).collect()
}

impl<T: Real> Posteriors<T> {
    /// Prepares posteriors that were conditioned from one structure, of weights in segments.
    ///
    /// # Errors
    /// [`LinearError::Foreign`] when they are not of these weights.
    pub fn new(segments: &[Segment], posteriors: Vec<Conditioned>) -> Result<Self, LinearError> {
        let weights = segments.last().map_or(0, |s| s.range.end);
        let count = posteriors.len();
        if count == 0 || posteriors.iter().any(|p| p.dimension() != weights) {
            return Err(LinearError::Foreign { what: "posterior" });
        }
        let mut conditioned: Vec<(Range<usize>, Vec<ConditionedBlock>)> =
            posteriors[0].blocks().iter().map(|(range, _)| (range.clone(), Vec::new())).collect();
        for posterior in posteriors {
            for (place, (_, block)) in conditioned.iter_mut().zip(posterior.into_blocks()) {
                place.1.push(block);
            }
        }
        let mut blocks = Vec::new();
        for (range, own) in &conditioned {
            let parts: Vec<(usize, &Segment)> =
                segments.iter().enumerate().filter(|(_, s)| within(&s.range, range)).collect();
            let whole = parts.iter().all(|(_, s)| s.whole);
            match (&own[0], &parts[..]) {
                (ConditionedBlock::Diagonal(_), parts) if whole => {
                    for &(segment, part) in parts {
                        let local = part.range.start - range.start..part.range.end - range.start;
                        let cut = |block: &ConditionedBlock| match block {
                            ConditionedBlock::Diagonal(d) => d.variances[local.clone()].to_vec(),
                            _ => Vec::new(),
                        };
                        blocks.push(match part.matrix {
                            Some(shape) => PreparedBlock::Matrix {
                                segment,
                                rows: shape.stored().0,
                                columns: shape.stored().1,
                                row_basis: None,
                                column_basis: None,
                                variances: own
                                    .iter()
                                    .map(|b| cut(b).into_iter().map(T::from_f64).collect())
                                    .collect(),
                            },
                            None => PreparedBlock::Vector {
                                segment,
                                posteriors: own.iter().map(|b| ConditionedBlock::diagonal(cut(b))).collect(),
                            },
                        });
                    }
                }
                (ConditionedBlock::Kronecker(first), &[(segment, _)]) => {
                    let variances = own.iter().filter_map(|b| match b {
                        ConditionedBlock::Kronecker(k) => Some(row_major(k.variances.as_ref())),
                        _ => None,
                    });
                    blocks.push(PreparedBlock::Matrix {
                        segment,
                        rows: first.variances.nrows(),
                        columns: first.variances.ncols(),
                        row_basis: Some(row_major(first.row_basis.as_ref())),
                        column_basis: Some(row_major(first.column_basis.as_ref())),
                        variances: variances.collect(),
                    });
                }
                (ConditionedBlock::Dense(_), &[(segment, part)]) if whole && part.matrix.is_none() => {
                    blocks.push(PreparedBlock::Vector { segment, posteriors: own.clone() });
                }
                _ => blocks.push(PreparedBlock::Rows { range: range.clone(), posteriors: own.clone() }),
            }
        }
        Ok(Self { blocks, conditioned, count })
    }

    /// Number of posteriors.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Tensor by tensor, where their posteriors allow.
    pub fn blocks(&self) -> &[PreparedBlock<T>] {
        &self.blocks
    }

    /// The blocks of every posterior with the weights they cover.
    pub fn conditioned(&self) -> impl Iterator<Item = (Range<usize>, &[ConditionedBlock])> {
        self.conditioned.iter().map(|(range, blocks)| (range.clone(), &blocks[..]))
    }

    /// Covariances of a batch, one list for each posterior: `[examples, C]` or `[examples, C, C]`.
    ///
    /// # Errors
    /// Those of the features.
    pub fn covariances(
        &self,
        features: &dyn Linearised<T>,
        wanted: Wanted,
    ) -> Result<Vec<Vec<f64>>, LinearError> {
        let (examples, outputs) = features.shape();
        let mut out = vec![vec![0.0; examples * Latent::size(outputs, wanted)]; self.count];
        features.add_covariances(self, wanted, &mut out)?;
        Ok(out)
    }

    /// Joint covariance `[examples * C, examples * C]` of a batch under each posterior. Memory: rows of the features over the largest block, twice.
    ///
    /// # Errors
    /// Those of the features.
    pub fn joint(&self, features: &dyn Linearised<T>) -> Result<Vec<Mat<f64>>, LinearError> {
        let (examples, outputs) = features.shape();
        let mut sums = vec![Mat::zeros(examples * outputs, examples * outputs); self.count];
        for (range, posteriors) in self.conditioned() {
            let mut all = Mat::zeros(examples * outputs, range.len());
            features.rows(None, range, &mut |examples, rows| {
                all.subrows_mut(examples.start * outputs, rows.nrows()).copy_from(wide(rows));
            })?;
            for (block, sum) in posteriors.iter().zip(&mut sums) {
                let white = block.whiten(all.as_ref());
                *sum += product(white.as_ref(), white.transpose());
            }
        }
        Ok(sums)
    }

    /// Weights of the largest block that is predicted with rows of the features; 0 without any.
    pub fn largest_rows(&self) -> usize {
        let rows = |block: &PreparedBlock<T>| match block {
            PreparedBlock::Rows { range, .. } => range.len(),
            _ => 0,
        };
        self.blocks.iter().map(rows).max().unwrap_or(0)
    }

    /// Multiplications and additions of whitening one row over each block that is predicted with rows of the features.
    pub fn whitening_flops(&self) -> f64 {
        let each = |block: &PreparedBlock<T>| match block {
            PreparedBlock::Rows { range, posteriors } => {
                let n = range.len() as f64;
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
    pub fn largest_dense(&self) -> usize {
        let dense = |(range, blocks): &(Range<usize>, Vec<ConditionedBlock>)| match &blocks[0] {
            ConditionedBlock::Dense(_) => range.len(),
            _ => 0,
        };
        self.conditioned.iter().map(dense).max().unwrap_or(0)
    }
}
