//! **Kernels of several functions that are learned**: what a fit needs beyond [`BlockKernel`].

use crate::BlockKernel;
use faer::{Mat, MatRef, Scale};
use posterior_optim::Parameters;

/// A set of points with the directions in which its outputs are looked at (points * width x C; None each output).
pub type Directed<'a, P> = (&'a P, Option<MatRef<'a, f64>>);

/// Points x, and the gradients of a loss in the matrix between them and others z (rows of x, rows of z) and in the blocks of each with itself (`[points, width, width]`).
pub struct SetAdjoints<'a, P> {
    /// The points, prepared.
    pub x: P,
    /// In the matrix.
    pub cross: MatRef<'a, f64>,
    /// In the blocks.
    pub own: &'a [f64],
}

/// A kernel of several functions whose parameters (maybe none) and points can be moved by gradients.
pub trait LearnedBlockKernel:
    BlockKernel<f64, Points: Clone, Error: std::error::Error + Send + Sync + 'static> + Parameters
{
    /// The numbers of a set of points, one point after the other.
    fn coordinates(&self, points: &Self::Points) -> Vec<f64>;

    /// As many points of the same shape with other numbers, which are as many as those of [`Self::coordinates`].
    fn with_coordinates(&self, points: &Self::Points, coordinates: &[f64]) -> Self::Points;

    /// What an `adjoint` of the matrix between `x` and `z` contributes: adds to `parameters` (the gradient in the natural values, in their order; empty where it is not
    /// wanted) and returns the gradient in the points `z` as [`BlockKernel::pullback`] does, where it is wanted. `prepared` is `z` prepared along its directions.
    ///
    /// For the matrix of a set with itself give it twice with a symmetric adjoint: parameters get the whole, points the half that comes through the second argument.
    ///
    /// # Errors
    /// As [`BlockKernel::prepare`].
    fn pull_tile(
        &self,
        x: &Self::Prepared,
        z: Directed<'_, Self::Points>,
        prepared: &Self::Prepared,
        adjoint: MatRef<'_, f64>,
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Self::Error>;

    /// Points whose adjoints are best pulled back at one time with `width` rows each: all, where what is prepared is as small as the points are.
    fn pulled_at_once(&self, width: usize) -> usize {
        let _ = width;
        usize::MAX
    }

    /// What a loss in the matrices between `z` and several sets of points, in the blocks of these with themselves, and in the matrix of `z` with itself (`gram`, symmetric) contributes:
    /// adds to `parameters` and returns the gradient in the points `z`, where it is wanted. Sets come one after the other and are dropped when they have been seen.
    ///
    /// # Errors
    /// As [`BlockKernel::prepare`], and those of the sets.
    fn pull_sets<'a>(
        &self,
        sets: &mut dyn Iterator<Item = Result<SetAdjoints<'a, Self::Prepared>, Self::Error>>,
        (z, prepared): (Directed<'_, Self::Points>, &Self::Prepared),
        gram: MatRef<'_, f64>,
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Self::Error> {
        let half = self.pull_tile(prepared, z, prepared, gram, points, parameters)?;
        let mut sum = half.map(|half| half * Scale(2.0));
        for set in sets {
            let set = set?;
            let own = self.pull_tile(&set.x, z, prepared, set.cross, points, parameters)?;
            self.pull_diagonal(&set.x, set.own, parameters);
            sum = sum.zip(own).map(|(sum, own)| sum + own);
        }
        Ok(sum)
    }

    /// Adds to `parameters` what adjoints of the blocks of each point with itself contribute, `[points, width, width]` as in [`BlockKernel::diagonal`].
    fn pull_diagonal(&self, x: &Self::Prepared, adjoint: &[f64], parameters: &mut [f64]);
}
