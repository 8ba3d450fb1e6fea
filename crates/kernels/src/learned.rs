//! **Kernels of several functions that are learned**: what a fit needs beyond [`BlockKernel`].

use crate::BlockKernel;
use faer::{Mat, MatRef, Scale};
use posterior_optim::Parameters;

/// A set of points with the directions in which its outputs are looked at (points * width x C; None each output).
pub type Directed<'a, P> = (&'a P, Option<MatRef<'a, f64>>);

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

    /// [`Self::pull_tile`] of the matrix between `x` and `z` and of that of `z` with itself (whose adjoint is symmetric) together: parameters and points get the whole of both.
    ///
    /// # Errors
    /// As [`BlockKernel::prepare`].
    fn pull_tile_and_gram(
        &self,
        x: &Self::Prepared,
        z: Directed<'_, Self::Points>,
        prepared: &Self::Prepared,
        (cross, gram): (MatRef<'_, f64>, MatRef<'_, f64>),
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Self::Error> {
        let whole = self.pull_tile(x, z, prepared, cross, points, parameters)?;
        let half = self.pull_tile(prepared, z, prepared, gram, points, parameters)?;
        Ok(whole.zip(half).map(|(whole, half)| whole + half * Scale(2.0)))
    }

    /// Adds to `parameters` what adjoints of the blocks of each point with itself contribute, `[points, width, width]` as in [`BlockKernel::diagonal`].
    fn pull_diagonal(&self, x: &Self::Prepared, adjoint: &[f64], parameters: &mut [f64]);
}
