//! **Structured curvatures**: the data's curvature `M` in a form that can be stored, factored and combined with any prior.
//!
//! A [`Structure`] is a list of [`Block`]s along the diagonal of `M`, each in one of four forms; what lies between blocks is taken as zero.
//! All the named approximations are such lists:
//!
//! | approximation | blocks |
//! |---|---|
//! | full, sub-network, last layer | one [`Dense`] |
//! | block-diagonal | a `Dense` for each layer |
//! | diagonal | one [`Diagonal`] |
//! | Kronecker-factored | a [`Kronecker`] for each weight matrix, small dense blocks for the rest |
//! | low rank plus diagonal | one [`LowRank`] |
//!
//! Two questions are asked of a block: its share of `log det(I + A^-1 s M)` and of the effective dimensions ([`Structure::terms`]; cheap
//! to repeat for other priors `A` and strengths `s`, because spectra are kept), and its posterior ([`Structure::condition`]). The strength is
//! `1 / noise variance` when `M` was summed without the noise, and 1 otherwise.
//!
//! **Scaled features** (the diagonal g-prior, thesis section 4.5): [`Structure::normalised`] absorbs `s_i = M_ii^(-1/2)` into every block, so
//! that `M' = S M S` has a unit diagonal and the prior acts on `w' = w / s`. Weights that never moved an output (`M_ii = 0`) get
//! `s_i = 0`: they are dropped, and counted.

mod conditioned;
mod dense;
mod diagonal;
mod error;
mod kronecker;
mod low_rank;
#[cfg(test)]
mod tests;

pub use conditioned::{Conditioned, ConditionedBlock};
pub use dense::{ConditionedDense, Dense};
pub use diagonal::{ConditionedDiagonal, Diagonal};
pub use error::StructureError;
pub use kronecker::{ConditionedKronecker, Kronecker};
pub use low_rank::{ConditionedLowRank, LowRank};

use crate::Prior;
use std::ops::Range;
use std::sync::Arc;

/// One block along the diagonal of `M`.
#[derive(Clone, Debug)]
pub struct Block {
    /// What it covers, for messages: the name of a parameter or layer.
    pub name: String,
    /// The weights it covers.
    pub range: Range<usize>,
    /// Its numbers.
    pub matrix: BlockMatrix,
}

/// The form of a block.
// A handful of blocks stand for millions of numbers: the size of a header does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum BlockMatrix {
    /// All of it.
    Dense(Dense),
    /// Its diagonal.
    Diagonal(Diagonal),
    /// A Kronecker product of two small matrices.
    Kronecker(Kronecker),
    /// A matrix of low rank plus a diagonal.
    LowRank(LowRank),
}

/// `log det(I + A^-1 s M)` and the effective dimension `d_g - a_g Tr[(H^-1)_gg]` of each group of the prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The log determinant ratio.
    pub log_determinant: f64,
    /// One effective dimension for each group.
    pub effective_dimensions: Vec<f64>,
}

/// What one block sees of the prior: stretches of its own weights with their groups and precisions.
pub(crate) struct LocalPrior {
    stretches: Vec<(Range<usize>, usize, f64)>,
}

impl LocalPrior {
    fn new(prior: &Prior, range: &Range<usize>) -> Self {
        let local = |(r, g): (Range<usize>, usize)| {
            (r.start - range.start..r.end - range.start, g, prior.precisions()[g])
        };
        Self { stretches: prior.stretches(range.clone()).map(local).collect() }
    }

    /// Group and precision, if the whole block shares them.
    fn uniform(&self) -> Option<(usize, f64)> {
        let (_, group, precision) = self.stretches.first()?;
        self.stretches.iter().all(|s| s.1 == *group).then_some((*group, *precision))
    }

    /// The precision of each weight.
    fn each(&self) -> Vec<f64> {
        let mut out = Vec::new();
        self.stretches.iter().for_each(|(r, _, p)| out.resize(out.len() + r.len(), *p));
        out
    }

    /// Adds `d_g - a_g sum_i (H^-1)_ii` to each group's effective dimension.
    fn add_effective(&self, inverse_diagonal: &[f64], terms: &mut Terms) {
        for (range, group, precision) in &self.stretches {
            let trace: f64 = inverse_diagonal[range.clone()].iter().sum();
            terms.effective_dimensions[*group] += range.len() as f64 - precision * trace;
        }
    }
}

/// A block-diagonal curvature `M` whose blocks may have different forms.
#[derive(Clone, Debug)]
pub struct Structure {
    blocks: Vec<Block>,
}

impl Structure {
    /// Blocks that cover the weights one after another.
    ///
    /// # Errors
    /// [`StructureError`] when they leave gaps, overlap, have the wrong size or hold what is not finite.
    pub fn new(blocks: Vec<Block>) -> Result<Self, StructureError> {
        let mut end = 0;
        for block in &blocks {
            if block.range.start != end || block.matrix.dimension() != block.range.len() {
                return Err(StructureError::Shape {
                    block: block.name.clone(),
                    range: block.range.clone(),
                    expected_start: end,
                    size: block.matrix.dimension(),
                });
            }
            if !block.matrix.is_finite() {
                return Err(StructureError::NotFinite { block: block.name.clone() });
            }
            end = block.range.end;
        }
        Ok(Self { blocks })
    }

    /// Number of weights.
    pub fn dimension(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.range.end)
    }

    /// Columns of the factors of low rank: 0 where there are none.
    pub fn directions(&self) -> usize {
        let of = |block: &Block| match &block.matrix {
            BlockMatrix::LowRank(own) => own.factor().ncols(),
            _ => 0,
        };
        self.blocks.iter().map(of).sum()
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The diagonal of `M` (of `S M S` after [`Self::normalised`]).
    pub fn diagonal(&self) -> Vec<f64> {
        self.blocks.iter().flat_map(|b| b.matrix.diagonal()).collect()
    }

    /// The scales `s` that [`Self::normalised`] absorbed; ones without it.
    pub fn scales(&self) -> Vec<f64> {
        self.blocks.iter().flat_map(|b| b.matrix.scales()).collect()
    }

    /// `w / s`, zero where the scale is zero: weights in the coordinates that the prior acts on.
    ///
    /// # Panics
    /// When the vector's length is not [`Self::dimension`].
    pub fn scaled_coordinates(&self, w: &[f64]) -> Vec<f64> {
        assert_eq!(w.len(), self.dimension(), "one value for each weight");
        let divide = |(v, s): (&f64, f64)| if s == 0.0 { 0.0 } else { v / s };
        w.iter().zip(self.scales()).map(divide).collect()
    }

    /// `M v` for the columns of a flat block of `k` vectors, `[k][dimension]` (of `S M S` after [`Self::normalised`]).
    ///
    /// # Panics
    /// When a vector's length is not [`Self::dimension`].
    pub fn apply(&self, v: &[f64]) -> Vec<f64> {
        assert_eq!(v.len(), self.dimension(), "one value for each weight");
        self.blocks.iter().flat_map(|b| b.matrix.apply(&v[b.range.clone()])).collect()
    }

    /// The same curvature for features scaled so that its own diagonal is one.
    ///
    /// # Errors
    /// When it has been scaled before.
    pub fn normalised(self) -> Result<Self, StructureError> {
        let scale = |block: Block| -> Result<Block, StructureError> {
            let matrix = match block.matrix {
                BlockMatrix::Dense(m) => BlockMatrix::Dense(m.normalised()?),
                BlockMatrix::Diagonal(m) => BlockMatrix::Diagonal(m.normalised()?),
                BlockMatrix::Kronecker(m) => BlockMatrix::Kronecker(m.normalised()?),
                BlockMatrix::LowRank(m) => BlockMatrix::LowRank(m.normalised()?),
            };
            Ok(Block { matrix, ..block })
        };
        Ok(Self { blocks: self.blocks.into_iter().map(scale).collect::<Result<_, _>>()? })
    }

    /// `log det(I + A^-1 s M)` and the effective dimensions by group.
    ///
    /// Cost after the first call: linear in the spectrum for blocks whose weights share one precision; one factorisation for each other dense block.
    ///
    /// # Errors
    /// When the prior has another dimension, a Kronecker block has several precisions, or a factorisation fails.
    pub fn terms(&self, prior: &Prior, strength: f64) -> Result<Terms, StructureError> {
        self.check(prior, strength)?;
        let mut terms =
            Terms { log_determinant: 0.0, effective_dimensions: vec![0.0; prior.precisions().len()] };
        for block in &self.blocks {
            let local = LocalPrior::new(prior, &block.range);
            match &block.matrix {
                BlockMatrix::Dense(m) => m.add_terms(&block.name, &local, strength, &mut terms)?,
                BlockMatrix::Diagonal(m) => m.add_terms(&local, strength, &mut terms),
                BlockMatrix::Kronecker(m) => m.add_terms(&block.name, &local, strength, &mut terms)?,
                BlockMatrix::LowRank(m) => m.add_terms(&block.name, &local, strength, &mut terms)?,
            }
        }
        Ok(terms)
    }

    /// The posterior precision `H = s M + A`, factored.
    ///
    /// # Errors
    /// As [`Self::terms`].
    pub fn condition(&self, prior: &Prior, strength: f64) -> Result<Conditioned, StructureError> {
        self.check(prior, strength)?;
        let condition = |block: &Block| -> Result<ConditionedBlock, StructureError> {
            let local = LocalPrior::new(prior, &block.range);
            Ok(match &block.matrix {
                BlockMatrix::Dense(m) => {
                    ConditionedBlock::Dense(Arc::new(m.condition(&block.name, &local, strength)?))
                }
                BlockMatrix::Diagonal(m) => ConditionedBlock::Diagonal(m.condition(&local, strength)),
                BlockMatrix::Kronecker(m) => {
                    ConditionedBlock::Kronecker(Arc::new(m.condition(&block.name, &local, strength)?))
                }
                BlockMatrix::LowRank(m) => {
                    ConditionedBlock::LowRank(Arc::new(m.condition(&block.name, &local, strength)?))
                }
            })
        };
        let blocks = self.blocks.iter().map(|b| Ok((b.range.clone(), condition(b)?)));
        Ok(Conditioned::new(blocks.collect::<Result<_, StructureError>>()?))
    }

    /// What was done to the numbers on the way: negative eigenvalues set to zero, weights dropped.
    pub fn corrections(&self) -> Corrections {
        let mut all = Corrections::default();
        for block in &self.blocks {
            let (clipped, most_negative) = match &block.matrix {
                BlockMatrix::Dense(m) => m.clipped(),
                BlockMatrix::Kronecker(m) => m.clipped(),
                _ => (0, 0.0),
            };
            all.clipped_eigenvalues += clipped;
            all.most_negative = all.most_negative.min(most_negative);
            all.dropped_weights += block.matrix.scales().iter().filter(|s| **s == 0.0).count();
        }
        all
    }

    fn check(&self, prior: &Prior, strength: f64) -> Result<(), StructureError> {
        if prior.dimension() != self.dimension() {
            let (expected, found) = (self.dimension(), prior.dimension());
            return Err(StructureError::Prior { expected, found });
        }
        if !(strength.is_finite() && strength > 0.0) {
            return Err(StructureError::Strength { value: strength });
        }
        Ok(())
    }
}

/// Numerical corrections inside a [`Structure`].
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Corrections {
    /// Eigenvalues that rounding made negative and that were set to zero.
    pub clipped_eigenvalues: usize,
    /// The most negative of them, relative to the largest eigenvalue of its matrix.
    pub most_negative: f64,
    /// Weights without any influence on the training outputs, dropped by the g-prior.
    pub dropped_weights: usize,
}

impl BlockMatrix {
    /// Number of weights.
    pub fn dimension(&self) -> usize {
        match self {
            Self::Dense(m) => m.dimension(),
            Self::Diagonal(m) => m.dimension(),
            Self::Kronecker(m) => m.dimension(),
            Self::LowRank(m) => m.dimension(),
        }
    }

    fn is_finite(&self) -> bool {
        match self {
            Self::Dense(m) => m.is_finite(),
            Self::Diagonal(m) => m.is_finite(),
            Self::Kronecker(m) => m.is_finite(),
            Self::LowRank(m) => m.is_finite(),
        }
    }

    fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Dense(m) => m.diagonal(),
            Self::Diagonal(m) => m.values().to_vec(),
            Self::Kronecker(m) => m.diagonal(),
            Self::LowRank(m) => m.diagonal(),
        }
    }

    fn scales(&self) -> Vec<f64> {
        match self {
            Self::Dense(m) => m.scales().map_or_else(|| vec![1.0; m.dimension()], <[f64]>::to_vec),
            Self::Diagonal(m) => m.scales().map_or_else(|| vec![1.0; m.dimension()], <[f64]>::to_vec),
            Self::Kronecker(m) => m.scales(),
            Self::LowRank(m) => m.scales().map_or_else(|| vec![1.0; m.dimension()], <[f64]>::to_vec),
        }
    }

    fn apply(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(m) => m.apply(v),
            Self::Diagonal(m) => m.values().iter().zip(v).map(|(m, v)| m * v).collect(),
            Self::Kronecker(m) => m.apply(v),
            Self::LowRank(m) => m.apply(v),
        }
    }
}

/// `M_ii^(-1/2)`, zero where the weight has no influence.
pub(crate) fn scales_of(diagonal: &[f64]) -> Vec<f64> {
    diagonal.iter().map(|&m| if m > 0.0 { 1.0 / m.sqrt() } else { 0.0 }).collect()
}
