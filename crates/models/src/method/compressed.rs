//! Functions of many rows, carried by fewer points.

use super::precision::SolverPrecision;
use crate::Compression;
use crate::options::InducingOptions;
use crate::predictor::Compressed;
use crate::prepare::CANDIDATES;
use faer::Mat;
use posterior_gp::Posterior;
use posterior_gp::iterative::{CompressedPosterior, PathwisePosterior};
use posterior_kernels::inducing::{ChosenPoints, random_rows};
use posterior_linalg::random::Streams;

/// Training rows on which a compressed model is compared with the one it came from.
pub(crate) const COMPARED: usize = 1000;

/// The functions of a posterior, carried by so many points.
pub(crate) fn compress<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
    points: usize,
    seed: u64,
) -> Compressed {
    let inputs = posterior.data().inputs();
    let (streams, rows) = (Streams::new(seed), posterior.points());
    let drawn = random_rows(rows.nrows(), CANDIDATES.min(rows.nrows()), streams.child("model/candidates", 0));
    let among = Mat::from_fn(drawn.len(), rows.ncols(), |i, j| rows[(drawn[i], j)]);
    let choice = InducingOptions::default().choice();
    let ChosenPoints { points, .. } = choice.choose(posterior.kernel(), among.as_ref(), points, streams)?;
    let wide = Mat::from_fn(points.nrows(), points.ncols(), |i, j| points[(i, j)].to_f64());
    let CompressedPosterior { posterior: own, jitter } = posterior.compressed(wide)?;
    let count = COMPARED.min(inputs.nrows());
    let drawn = random_rows(inputs.nrows(), count, streams.child("model/compared", 0));
    let x = Mat::from_fn(drawn.len(), inputs.ncols(), |i, j| inputs[(drawn[i], j)]);
    let [before, now] = [posterior, &own].map(|p| p.predict(x.as_ref()));
    let (before, now) = (before?, now?);
    let known = posterior.data().noise_variances();
    let deviation =
        |v: f64, i: usize| (v + before.noise_variance + known.map_or(0.0, |own| own[drawn[i]])).sqrt();
    let (mut squares, mut largest, mut widths) = (0.0, 0.0f64, 0.0);
    for i in 0..drawn.len() {
        let s = deviation(before.latent_variance[i], i);
        let moved = (now.mean[(i, 0)] - before.mean[(i, 0)]).abs() / s;
        squares += moved * moved;
        largest = largest.max(moved);
        widths += (deviation(now.latent_variance[i], i) / s - 1.0).powi(2);
    }
    let count = drawn.len() as f64;
    let compression = Compression {
        rows: inputs.nrows(),
        points: points.nrows(),
        compared: drawn.len(),
        mean_error: (squares / count).sqrt(),
        largest_mean_error: largest,
        deviation_error: (widths / count).sqrt(),
        jitter,
    };
    Ok((T::predictor(own), compression))
}
