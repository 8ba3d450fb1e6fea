//! Random features of a kernel: maps, products in blocks, gradients.

use super::FeatureSettings;
use super::recipe::{FeatureError, FeatureRecipe, PlainTerm};
use super::term::Term;
use crate::Kernel;
use crate::matrix::row_blocks;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use std::ops::Range;

/// Bytes of features that are kept at a time by one thread.
const BLOCK_BYTES: usize = 512 << 10;

/// The most features of one term.
pub(super) const MOST: usize = 1 << 24;

/// A random feature map φ from D to d numbers with `E[φ(x)·φ(z)] = k(x, z)`.
///
/// Everything is computed in blocks of points: no n x d matrix is stored but by [`Self::evaluate`]. A point costs `2 d D` flops and d
/// sines. Frequencies are drawn at lengthscale 1 and scaled, so that the same streams give the same draws for other parameters.
#[derive(Clone, Debug)]
pub struct RandomFeatures<T> {
    dimension: usize,
    terms: Vec<Term<T>>,
}

impl<T: Real> RandomFeatures<T> {
    /// Draws features of `kernel` for points of `dimension` columns. Terms of a sum come one after another; every random term has
    /// `settings.count` features (with categories one more of each kind of wave where that is less), exact terms (linear, constant, categories) have their own. Streams: `kernels/features#i` for term i.
    ///
    /// # Errors
    /// [`FeatureError`] for kernels without features, for columns that the points lack, and for counts of 0 or beyond 2²⁴.
    pub fn new(
        kernel: &dyn Kernel<T>,
        dimension: usize,
        settings: FeatureSettings,
        streams: Streams,
    ) -> Result<Self, FeatureError> {
        Self::of_recipe(&kernel.features()?, dimension, settings, streams)
    }

    /// The same, of a recipe.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_recipe(
        recipe: &FeatureRecipe,
        dimension: usize,
        settings: FeatureSettings,
        streams: Streams,
    ) -> Result<Self, FeatureError> {
        if settings.count == 0 || settings.count > MOST {
            return Err(FeatureError::Count { count: settings.count, most: MOST });
        }
        if let Some(column) = recipe.columns().into_iter().find(|&c| c >= dimension) {
            return Err(FeatureError::Column { column, dimension });
        }
        let terms = recipe
            .terms()
            .into_iter()
            .enumerate()
            .map(|(i, PlainTerm { variance, warps, recipe })| {
                Term::new(
                    (variance.sqrt(), warps),
                    recipe,
                    &settings,
                    streams.child("kernels/features", i as u64),
                )
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { dimension, terms })
    }

    /// d: how many features.
    pub fn count(&self) -> usize {
        self.terms.iter().map(Term::count).sum()
    }

    /// D: how many columns points have.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Whether the features have derivatives in the points.
    pub fn is_differentiable(&self) -> bool {
        self.terms.iter().all(Term::is_differentiable)
    }

    /// `φ(x)`, n x d.
    pub fn evaluate(&self, x: MatRef<'_, T>) -> Mat<T> {
        let mut out = Mat::zeros(x.nrows(), self.count());
        let blocks = row_blocks(out.as_mut(), self.block_rows());
        parallel::consume(blocks, |(rows, out)| self.fill(self.points(x, &rows), out));
        out
    }

    /// `φ(x) w`, n x s, for weights w of d x s: s functions at n points.
    ///
    /// # Panics
    /// As all products here, when shapes do not fit.
    pub fn multiply(&self, x: MatRef<'_, T>, w: MatRef<'_, T>) -> Mat<T> {
        self.check(x, w.nrows());
        let mut out = Mat::zeros(x.nrows(), w.ncols());
        let blocks = row_blocks(out.as_mut(), self.block_rows());
        parallel::consume(blocks, |(rows, out)| {
            let mut features = Mat::zeros(rows.len(), self.count());
            self.fill(self.points(x, &rows), features.as_mut());
            matmul(out, Accum::Replace, &features, w, T::ONE, Par::Seq);
        });
        out
    }

    /// The gradient of `Σ_il slopes_il φ_l(x_i)` in x, where `slopes(rows, block)` writes some rows of the n x d matrix.
    pub(super) fn pull(
        &self,
        x: MatRef<'_, T>,
        slopes: impl Fn(Range<usize>, MatMut<'_, T>) + Sync,
    ) -> Result<Mat<T>, FeatureError> {
        if !self.is_differentiable() {
            return Err(FeatureError::NotDifferentiable);
        }
        let mut out = Mat::zeros(x.nrows(), self.dimension);
        let blocks = row_blocks(out.as_mut(), self.block_rows());
        parallel::consume(blocks, |(rows, mut out)| {
            let mut block = Mat::zeros(rows.len(), self.count());
            slopes(rows.clone(), block.as_mut());
            let mut first = 0;
            for term in &self.terms {
                term.pullback(self.points(x, &rows), block.subcols(first, term.count()), out.as_mut());
                first += term.count();
            }
        });
        Ok(out)
    }

    /// `Σ_l φ_l(x_i) slopes_il`, where `slopes(i, row)` gives the weights of point i.
    pub(super) fn dot_rows<'w>(&self, x: MatRef<'_, T>, weights: impl Fn(usize) -> &'w [T] + Sync) -> Vec<T> {
        self.check(x, self.count());
        let blocks: Vec<Range<usize>> = pieces(x.nrows(), self.block_rows()).collect();
        let parts: Vec<Vec<T>> = parallel::map(blocks.len(), 1, |block| {
            let rows = &blocks[block];
            let mut features = Mat::zeros(rows.len(), self.count());
            self.fill(self.points(x, rows), features.as_mut());
            let mut sums = vec![T::ZERO; rows.len()];
            for l in 0..features.ncols() {
                for (i, &v) in features.col_as_slice(l).iter().enumerate() {
                    sums[i] += v * weights(rows.start + i)[l];
                }
            }
            sums
        });
        parts.concat()
    }

    fn fill(&self, x: MatRef<'_, T>, out: MatMut<'_, T>) {
        let mut rest = out;
        for term in &self.terms {
            let (mine, others) = rest.split_at_col_mut(term.count());
            term.evaluate(x, mine);
            rest = others;
        }
    }

    fn points<'a>(&self, x: MatRef<'a, T>, rows: &Range<usize>) -> MatRef<'a, T> {
        x.subrows(rows.start, rows.len())
    }

    /// Points of one block.
    fn block_rows(&self) -> usize {
        (BLOCK_BYTES / size_of::<T>() / self.count().max(1)).clamp(16, 512)
    }

    fn check(&self, x: MatRef<'_, T>, weights: usize) {
        assert_eq!(x.ncols(), self.dimension, "points have the columns that the features were made for");
        assert_eq!(weights, self.count(), "one row of weights for each feature");
    }
}
