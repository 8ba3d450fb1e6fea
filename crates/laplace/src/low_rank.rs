//! **Low rank plus diagonal**: the leading eigenvectors of the curvature by randomised subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4), and what is left of its diagonal.
//!
//! Each iteration is one pass over the data with a block of Gauss-Newton products; nothing of size weights x weights exists.

use crate::accumulate::Accumulator;
use crate::roots::{FisherEstimate, cotangents};
use crate::{Form, LaplaceError, Stage};
use faer::Mat;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::dense::{Eigen, eigen, product, qr};
use posterior_linalg::random::Streams;
use posterior_linear::structure::{Block, BlockMatrix, LowRank, Structure};
use posterior_networks::train::Examples;
use posterior_networks::{Array, Curvature, Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, ranges};
use rand_distr::{Distribution, StandardNormal};

/// Columns beyond the rank that is kept.
const OVERSAMPLING: usize = 10;

/// The curvature as `rank` eigenpairs plus the diagonal of the rest, from `1 + iterations` passes with products and one with squares; also the sums that say how well the network fits.
///
/// # Errors
/// As for other curvatures.
pub fn low_rank<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    rank: usize,
    iterations: usize,
    seed: u64,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<(Structure, crate::accumulate::FitSums), LaplaceError> {
    let d = selection.len();
    if rank == 0 {
        return Err(LaplaceError::Request("a low-rank curvature needs a rank of at least 1".into()));
    }
    let mut diagonal = Accumulator::new(network, selection, Form::Diagonal, FisherEstimate::Exact)?;
    diagonal.extend(network, examples, likelihood, 0, observer)?;
    let (rank, columns) = (rank.min(d), (rank + OVERSAMPLING).min(d));
    let mut rng = Streams::new(seed).stream("laplace/low-rank");
    let mut q = Mat::from_fn(d, columns, |_, _| StandardNormal.sample(&mut rng));
    for _ in 0..iterations.max(1) {
        (q, _) = qr(products(network, selection, examples, likelihood, &q, observer)?.as_ref());
    }
    // Rayleigh and Ritz: the curvature within the subspace.
    let image = products(network, selection, examples, likelihood, &q, observer)?;
    let small = q.transpose() * &image;
    let symmetric = Mat::from_fn(columns, columns, |i, j| 0.5 * (small[(i, j)] + small[(j, i)]));
    let Eigen { values, vectors } = eigen(symmetric.as_ref())
        .map_err(|_| LaplaceError::Request("the low-rank curvature could not be decomposed".into()))?;
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

/// `M V` for the columns of `V`.
fn products<T: Precision>(
    network: &Network<T>,
    selection: &Selection,
    examples: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    v: &Mat<f64>,
    observer: &mut dyn FnMut(Stage, usize, usize) -> Signal,
) -> Result<Mat<f64>, LaplaceError> {
    let (d, k) = (v.nrows(), v.ncols());
    let block: Vec<T> = (0..k).flat_map(|j| (0..d).map(move |i| T::from_f64(v[(i, j)]))).collect();
    let block = Array::new(vec![k, d], block);
    let mut sum = Mat::zeros(d, k);
    for range in ranges(0, examples.len(), batch_size(network, k)) {
        let end = range.end;
        let batch = Batch::read(examples, range, likelihood)?;
        let f = network.forward(&batch.x)?;
        let rows = cotangents(FisherEstimate::Exact, likelihood, &batch, &f)?;
        let outputs = f.row_len();
        let width = rows.rows() / batch.range.len();
        let mut roots = Array::zeros(vec![batch.range.len(), outputs, width]);
        for (n, place) in roots.values_mut().chunks_exact_mut(outputs * width).enumerate() {
            for s in 0..width {
                let row = rows.row(n * width + s);
                (0..outputs).for_each(|c| place[c * width + s] = row[c]);
            }
        }
        let own = network.gauss_newton_products(&batch.x, &Curvature::Roots(roots), selection, &block)?;
        for (j, row) in own.values().chunks_exact(d).enumerate() {
            row.iter().enumerate().for_each(|(i, v)| sum[(i, j)] += v.to_f64());
        }
        if observer(Stage::Curvature, end, examples.len()) == Signal::Stop {
            return Err(LaplaceError::Interrupted);
        }
    }
    Ok(sum)
}
