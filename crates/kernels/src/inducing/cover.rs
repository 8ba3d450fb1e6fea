//! Rows thinned out by their distances.

use super::NeighbourTree;
use super::choice::{InducingError, check};
use faer::MatRef;
use posterior_linalg::Real;

/// Keeps a row and drops all within `radius` of it, from the first row on, until `most` are kept: kept rows are farther apart than the
/// radius, and (unless `most` ended it) every row is within the radius of a kept one.
///
/// # Errors
/// [`InducingError`] for no rows, `most` of 0, numbers that are not finite, and a radius that is not positive.
pub fn cover<T: Real>(x: MatRef<'_, T>, radius: f64, most: usize) -> Result<Vec<usize>, InducingError> {
    check(x, most)?;
    let radius = positive(radius)?;
    let tree = NeighbourTree::new(x);
    let mut covered = vec![false; x.nrows()];
    let mut kept = Vec::new();
    for i in 0..x.nrows() {
        if covered[i] {
            continue;
        }
        if kept.len() == most {
            break;
        }
        kept.push(i);
        for (_, j) in tree.within(i, radius, usize::MAX) {
            covered[j] = true;
        }
    }
    Ok(kept)
}

/// Thins out rows that have others within `threshold`, looking at the `neighbours` nearest of each, and returns those that are left, ascending.
/// Every dropped row has a kept one within the threshold.
///
/// From the first row on, unless it is dropped: a row without close neighbours is kept. Otherwise it is dropped, unless it was kept
/// before, and its neighbours that are not dropped are kept one after another, nearest first, each dropping the row's neighbours that are close to
/// both. A row all of whose neighbours are dropped is kept. (The thesis' code drops it, too, and leaves a hole.)
///
/// Source: spec, section 17 (100 neighbours, [`pruning_threshold`]).
///
/// # Errors
/// [`InducingError`] for no rows, no neighbours, numbers that are not finite, and a threshold that is not positive.
pub fn prune_neighbours<T: Real>(
    x: MatRef<'_, T>,
    threshold: f64,
    neighbours: usize,
) -> Result<Vec<usize>, InducingError> {
    check(x, neighbours)?;
    let threshold = positive(threshold)?;
    let tree = NeighbourTree::new(x);
    let (mut kept, mut dropped) = (vec![false; x.nrows()], vec![false; x.nrows()]);
    for i in 0..x.nrows() {
        if dropped[i] {
            continue;
        }
        let close: Vec<usize> = tree
            .within(i, threshold, neighbours)
            .into_iter()
            .map(|(_, j)| j)
            .filter(|&j| !dropped[j])
            .collect();
        if close.is_empty() {
            kept[i] = true;
            continue;
        }
        dropped[i] = !kept[i];
        for &j in &close {
            if dropped[j] {
                continue;
            }
            kept[j] = true;
            for &other in close.iter().filter(|&&other| other != j) {
                if !kept[other] && tree.squared_distance(other, j) <= threshold * threshold {
                    dropped[other] = true;
                }
            }
        }
    }
    Ok((0..x.nrows()).filter(|&i| !dropped[i]).collect())
}

/// The threshold of the thesis' code: the 20th percentile of the squared lengthscales over `ratio` (0.5, 1, 2 or 4; the larger the more
/// rows are kept). It compares with distances of points that are not divided by lengthscales. NaN without lengthscales.
pub fn pruning_threshold(lengthscales: &[f64], ratio: f64) -> f64 {
    let mut squares: Vec<f64> = lengthscales.iter().map(|l| l * l).collect();
    squares.sort_by(f64::total_cmp);
    let Some(last) = squares.len().checked_sub(1) else { return f64::NAN };
    let position = 0.2 * last as f64;
    let (low, share) = (position.floor() as usize, position.fract());
    (squares[low] + share * (squares[(low + 1).min(last)] - squares[low])) / ratio
}

fn positive(radius: f64) -> Result<f64, InducingError> {
    if radius > 0.0 && radius.is_finite() { Ok(radius) } else { Err(InducingError::Radius { radius }) }
}
