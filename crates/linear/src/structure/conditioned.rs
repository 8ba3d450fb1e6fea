//! The posterior precision `H = s M + A` of a [`Structure`](super::Structure), factored block by block.

use super::{ConditionedDense, ConditionedDiagonal, ConditionedKronecker, ConditionedLowRank};
use faer::{Mat, MatRef};
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;
use std::sync::Arc;

/// The posterior `N(mode, H^-1)` around its mode. Everything is in the units of the unscaled weights.
#[derive(Clone, Debug)]
pub struct Conditioned {
    blocks: Vec<(Range<usize>, ConditionedBlock)>,
}

/// One block of the posterior. Matrices are shared between copies.
#[derive(Clone, Debug)]
pub enum ConditionedBlock {
    /// A Cholesky factor.
    Dense(Arc<ConditionedDense>),
    /// A variance for each weight.
    Diagonal(ConditionedDiagonal),
    /// Two bases and a table of variances.
    Kronecker(Arc<ConditionedKronecker>),
    /// Woodbury's form.
    LowRank(Arc<ConditionedLowRank>),
}

impl Conditioned {
    pub(crate) fn new(blocks: Vec<(Range<usize>, ConditionedBlock)>) -> Self {
        Self { blocks }
    }

    /// Number of weights.
    pub fn dimension(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.0.end)
    }

    /// The blocks with the weights they cover.
    pub fn blocks(&self) -> &[(Range<usize>, ConditionedBlock)] {
        &self.blocks
    }

    /// The blocks, taken out.
    pub fn into_blocks(self) -> Vec<(Range<usize>, ConditionedBlock)> {
        self.blocks
    }

    /// `diag(H^-1)`: the posterior variance of each weight.
    pub fn variances(&self) -> Vec<f64> {
        self.blocks.iter().flat_map(|(_, block)| block.variances()).collect()
    }

    /// `H^-1 v`.
    ///
    /// # Panics
    /// When the vector's length is not [`Self::dimension`].
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        assert_eq!(v.len(), self.dimension(), "one value for each weight");
        self.blocks.iter().flat_map(|(range, block)| block.solve(&v[range.clone()])).collect()
    }

    /// `H^-1` times the columns of `v`, d x k.
    ///
    /// # Panics
    /// When the number of rows is not [`Self::dimension`].
    pub fn solve_columns(&self, v: MatRef<'_, f64>) -> Mat<f64> {
        assert_eq!(v.nrows(), self.dimension(), "one row for each weight");
        let mut out = Mat::zeros(v.nrows(), v.ncols());
        for (range, block) in &self.blocks {
            let own = block.solve_columns(v.subrows(range.start, range.len()));
            out.subrows_mut(range.start, range.len()).copy_from(&own);
        }
        out
    }

    /// A draw from `N(0, H^-1)`: the deviation of weights from their mode. The same streams give the same draw for equal structures.
    pub fn sample(&self, streams: Streams) -> Vec<f64> {
        let mut rng = streams.stream("linear/posterior");
        let normals: Vec<f64> = (0..self.dimension()).map(|_| StandardNormal.sample(&mut rng)).collect();
        self.colour(&normals)
    }

    /// `H^(-1/2)` times given standard normals.
    ///
    /// # Panics
    /// When their number is not [`Self::dimension`].
    pub fn colour(&self, normals: &[f64]) -> Vec<f64> {
        assert_eq!(normals.len(), self.dimension(), "one normal for each weight");
        self.blocks.iter().flat_map(|(range, block)| block.colour(&normals[range.clone()])).collect()
    }
}

impl ConditionedBlock {
    /// Independent weights with the given posterior variances.
    pub fn diagonal(variances: Vec<f64>) -> Self {
        Self::Diagonal(ConditionedDiagonal { variances })
    }

    /// `diag(H^-1)` of this block.
    pub fn variances(&self) -> Vec<f64> {
        match self {
            Self::Dense(p) => {
                let mut variances = p.cholesky.inverse_diagonal();
                if let Some(scales) = &p.scales {
                    variances.iter_mut().zip(scales).for_each(|(v, s)| *v *= s * s);
                }
                variances
            }
            Self::Diagonal(p) => p.variances.clone(),
            Self::Kronecker(p) => p.variances(),
            Self::LowRank(p) => p.variances(),
        }
    }

    /// `H^-1 v` of this block.
    pub fn solve(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(p) => {
                let mut x = Mat::from_fn(v.len(), 1, |i, _| v[i] * p.scale(i));
                p.cholesky.solve_in_place(x.as_mut());
                (0..v.len()).map(|i| x[(i, 0)] * p.scale(i)).collect()
            }
            Self::Diagonal(p) => p.variances.iter().zip(v).map(|(s, v)| s * v).collect(),
            Self::Kronecker(p) => p.solve(v),
            Self::LowRank(p) => {
                p.solve(MatRef::from_column_major_slice(v, v.len(), 1)).col_as_slice(0).to_vec()
            }
        }
    }

    /// `H^-1` of this block times the columns of `v`: at once where that is quicker than one by one.
    pub fn solve_columns(&self, v: MatRef<'_, f64>) -> Mat<f64> {
        if let Self::LowRank(p) = self {
            return p.solve(v);
        }
        let mut out = Mat::zeros(v.nrows(), v.ncols());
        parallel::columns(out.as_mut(), 1, |j, to| {
            let from: Vec<f64> = v.col(j).iter().copied().collect();
            to.iter_mut().zip(self.solve(&from)).for_each(|(to, value)| *to = value);
        });
        out
    }

    /// A root of this block's covariance times standard normals.
    pub fn colour(&self, normals: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(p) => {
                let mut x = Mat::from_fn(normals.len(), 1, |i, _| normals[i]);
                p.cholesky.solve_factor_transpose_in_place(x.as_mut());
                (0..normals.len()).map(|i| x[(i, 0)] * p.scale(i)).collect()
            }
            Self::Diagonal(p) => p.variances.iter().zip(normals).map(|(s, z)| s.sqrt() * z).collect(),
            Self::Kronecker(p) => p.colour(normals),
            Self::LowRank(p) => p.colour(normals),
        }
    }

    /// Rows `z` with `z z^T = J H^-1 J^T` for rows `J` (`rows x weights`): inner products of such rows are posterior covariances of linear functions of the weights.
    /// Cost for each row: quadratic in the weights for dense blocks, `d (rows + columns)` of the weight matrix for Kronecker blocks, linear for diagonal ones.
    pub fn whiten(&self, rows: MatRef<'_, f64>) -> Mat<f64> {
        match self {
            Self::Dense(p) => {
                let mut out = Mat::from_fn(rows.ncols(), rows.nrows(), |i, r| rows[(r, i)] * p.scale(i));
                p.cholesky.solve_factor_in_place(out.as_mut());
                out.transpose().to_owned()
            }
            Self::Diagonal(p) => {
                Mat::from_fn(rows.nrows(), rows.ncols(), |r, i| rows[(r, i)] * p.variances[i].sqrt())
            }
            Self::Kronecker(p) => {
                let (m, n) = (p.variances.nrows(), p.variances.ncols());
                let mut out = Mat::zeros(rows.nrows(), rows.ncols());
                for r in 0..rows.nrows() {
                    let gradient = Mat::from_fn(m, n, |i, j| rows[(r, i * n + j)]);
                    let rotated = p.row_basis.transpose() * gradient * &p.column_basis;
                    for i in 0..m {
                        for j in 0..n {
                            out[(r, i * n + j)] = rotated[(i, j)] * p.variances[(i, j)].sqrt();
                        }
                    }
                }
                out
            }
            Self::LowRank(p) => p.whiten(rows),
        }
    }
}

impl ConditionedDense {
    fn scale(&self, i: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |s| s[i])
    }

    /// The covariance matrix itself, in the units of the unscaled weights. Cost: two thirds of a product of such matrices.
    pub fn covariance(&self) -> Mat<f64> {
        let inverse = self.cholesky.clone().into_inverse();
        let n = inverse.nrows();
        Mat::from_fn(n, n, |i, j| inverse[(i.max(j), i.min(j))] * self.scale(i) * self.scale(j))
    }
}
