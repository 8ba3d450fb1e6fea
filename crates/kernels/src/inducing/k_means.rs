//! Centres of clusters.

use super::choice::{InducingError, check};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::parallel;
use posterior_linalg::random::Streams;
use posterior_linalg::tiles::pieces;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Rows that one piece of work assigns.
const ROWS: usize = 128;

/// Pieces of work whose sums are kept apart.
const GROUPS: usize = 16;

/// Rows for each centre among which first centres are drawn.
const SEEDS: usize = 20;

/// When k-means ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KMeansSettings {
    /// Most rounds.
    pub rounds: usize,
    /// It ends when the mean squared distance falls by less than this share in a round (spec, section 11.2: 1e-3).
    pub tolerance: f64,
}

impl Default for KMeansSettings {
    fn default() -> Self {
        Self { rounds: 100, tolerance: 1e-3 }
    }
}

/// Lloyd's algorithm: at most `count` centres of the rows of x, m x D. First centres are drawn by k-means++ (each with a probability in
/// proportion to the squared distance from those before) among 20 rows a centre; centres without rows are dropped. With no more rows than
/// centres, the different rows come back.
///
/// A round costs `2 n m D` flops, the first centres `60 m² D`. The result does not depend on the number of threads.
///
/// Sources: S. Lloyd (1982); D. Arthur, S. Vassilvitskii, "k-means++", SODA 2007.
///
/// # Errors
/// [`InducingError`] for no rows, no centres, and numbers that are not finite.
#[inline(never)]
pub fn k_means<T: Real>(
    x: MatRef<'_, T>,
    count: usize,
    settings: KMeansSettings,
    streams: Streams,
) -> Result<Mat<T>, InducingError> {
    check(x, count)?;
    let mut centres = first_centres(x, count, streams);
    let mut before = f64::INFINITY;
    for _ in 0..settings.rounds {
        let (sums, counts, distance) = assign(x, centres.as_ref());
        let kept: Vec<usize> = (0..centres.nrows()).filter(|&k| counts[k] > 0).collect();
        centres = Mat::from_fn(kept.len(), x.ncols(), |k, d| {
            T::from_f64(sums[kept[k] * x.ncols() + d] / counts[kept[k]] as f64)
        });
        // Written so that a distance of 0 ends it.
        if distance >= before * (1.0 - settings.tolerance) || distance == 0.0 {
            break;
        }
        before = distance;
    }
    Ok(centres)
}

/// k-means++ among some of the rows.
fn first_centres<T: Real>(x: MatRef<'_, T>, count: usize, streams: Streams) -> Mat<T> {
    let candidates =
        super::random_rows(x.nrows(), count.saturating_mul(SEEDS), streams.child("kernels/k-means-seeds", 0));
    let mut rng = streams.stream("kernels/k-means");
    let distance = |i: usize, j: usize| -> f64 {
        (0..x.ncols()).map(|d| (x[(candidates[i], d)] - x[(candidates[j], d)]).to_f64().powi(2)).sum()
    };
    let mut chosen = vec![rng.random_range(0..candidates.len())];
    let mut nearest: Vec<f64> = (0..candidates.len()).map(|i| distance(i, chosen[0])).collect();
    while chosen.len() < count {
        let total: f64 = nearest.iter().sum();
        // Whether all rows are centres already (or too far apart to tell).
        if !(total > 0.0 && total.is_finite()) {
            break;
        }
        let mut target = rng.random::<f64>() * total;
        let mut next = None;
        for (i, &weight) in nearest.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            next = Some(i);
            target -= weight;
            if target < 0.0 {
                break;
            }
        }
        let Some(next) = next else { break };
        chosen.push(next);
        nearest.iter_mut().enumerate().for_each(|(i, d)| *d = d.min(distance(i, next)));
    }
    Mat::from_fn(chosen.len(), x.ncols(), |k, d| x[(candidates[chosen[k]], d)])
}

/// Sums and numbers of the rows that are nearest to each centre, and the mean squared distance. Of equally near ones the first.
fn assign<T: Real>(x: MatRef<'_, T>, centres: MatRef<'_, T>) -> (Vec<f64>, Vec<usize>, f64) {
    let (n, m, dimension) = (x.nrows(), centres.nrows(), x.ncols());
    let squares: Vec<T> = (0..m).map(|k| centres.row(k).iter().map(|&v| v * v).sum()).collect();
    let groups: Vec<_> = pieces(n, n.div_ceil(GROUPS).max(ROWS)).collect();
    let parts: Vec<_> = parallel::map(groups.len(), 1, |group| {
        let group = &groups[group];
        let (mut sums, mut counts, mut total) = (vec![0.0; m * dimension], vec![0usize; m], 0.0);
        let mut products = Mat::<T>::zeros(m, ROWS.min(group.len()));
        for rows in pieces(group.len(), ROWS) {
            let rows = group.start + rows.start..group.start + rows.end;
            let block = x.subrows(rows.start, rows.len());
            let minus_two = T::from_f64(-2.0);
            let target = products.as_mut().subcols_mut(0, rows.len());
            matmul(target, Accum::Replace, centres, block.transpose(), minus_two, Par::Seq);
            for (i, row) in rows.enumerate() {
                let products = products.col_as_slice(i);
                let mut best = 0;
                for k in 1..m {
                    if products[k] + squares[k] < products[best] + squares[best] {
                        best = k;
                    }
                }
                counts[best] += 1;
                for d in 0..dimension {
                    sums[best * dimension + d] += x[(row, d)].to_f64();
                    total += (x[(row, d)] - centres[(best, d)]).to_f64().powi(2);
                }
            }
        }
        (sums, counts, total)
    });
    let (mut sums, mut counts, mut total) = (vec![0.0; m * dimension], vec![0; m], 0.0);
    for (s, c, t) in parts {
        sums.iter_mut().zip(s).for_each(|(a, b)| *a += b);
        counts.iter_mut().zip(c).for_each(|(a, b)| *a += b);
        total += t;
    }
    (sums, counts, total / n as f64)
}
