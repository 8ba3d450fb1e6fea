//! **Low rank plus diagonal**: the leading eigenvectors of the curvature by randomised subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4), and what is left of its diagonal.
//!
//! Each iteration is one pass over the data with a block of Gauss-Newton products; nothing of size weights x weights exists.

use super::{Accumulator, FisherEstimate, FitSums, Form};
use crate::features::BatchSource;
use crate::sampled::SampledModel;
use crate::structure::{Block, BlockMatrix, LowRank, Structure};
use crate::{FeatureMap, LinearError};
use faer::{Mat, Scale};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::Real;
use posterior_linalg::dense::{Eigen, eigen, product, qr};
use posterior_linalg::random::Streams;
use posterior_optim::Signal;
use rand_distr::{Distribution, StandardNormal};

/// Columns beyond the rank that is kept.
const OVERSAMPLING: usize = 10;

/// The curvature as `rank` eigenpairs plus the diagonal of the rest, from `1 + iterations` passes with products and one with squares; also the sums that say how well the model fits.
///
/// # Errors
/// As for other curvatures; [`LinearError::Option`] for a rank of 0.
pub fn low_rank<T: Real, F: FeatureMap<T>>(
    features: &F,
    source: &dyn BatchSource<F::Inputs>,
    likelihood: &OutputLikelihood,
    (rank, iterations): (usize, usize),
    seed: u64,
    observer: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<(Structure, FitSums), LinearError> {
    let d = features.dimension();
    if rank == 0 {
        let expected = "a low-rank curvature needs a rank of at least 1";
        return Err(LinearError::Option { name: "rank", value: 0.0, expected });
    }
    let mut diagonal = Accumulator::new(&features.segments(), Form::Diagonal, FisherEstimate::Exact)?;
    diagonal.extend(features, source, likelihood, 0, observer)?;
    let (rank, columns) = (rank.min(d), (rank + OVERSAMPLING).min(d));
    let model = SampledModel::new(features, source, likelihood);
    let mut products =
        |v: &Mat<f64>| model.curvature_product(v.as_ref(), None, &mut vec![0.0; v.ncols()], observer);
    let mut rng = Streams::new(seed).stream("laplace/low-rank");
    let mut q = Mat::from_fn(d, columns, |_, _| StandardNormal.sample(&mut rng));
    for _ in 0..iterations.max(1) {
        (q, _) = qr(products(&q)?.as_ref());
    }
    // Rayleigh and Ritz: the curvature within the subspace.
    let image = products(&q)?;
    let small = product(q.transpose(), image.as_ref());
    let symmetric = (&small + small.transpose()) * Scale(0.5);
    let Eigen { values, vectors } =
        eigen(symmetric.as_ref()).map_err(|_| LinearError::Eigen { dimension: columns })?;
    let u = product(q.as_ref(), vectors.as_ref());
    let factor = Mat::from_fn(d, rank, |i, j| {
        let k = columns - 1 - j;
        u[(i, k)] * values[k].max(0.0).sqrt()
    });
    let own = diagonal.finish()?.diagonal();
    // Rounding and the estimate's own error may leave a little less than nothing.
    let residual =
        own.iter().enumerate().map(|(i, m)| (m - factor.row(i).squared_norm_l2()).max(0.0)).collect();
    let matrix = BlockMatrix::LowRank(LowRank::new(factor, residual));
    let structure = Structure::new(vec![Block { name: "all weights".into(), range: 0..d, matrix }])?;
    Ok((structure, *diagonal.fit()))
}
