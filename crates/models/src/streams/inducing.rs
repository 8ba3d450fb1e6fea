//! Which rows become inducing points: those whose function values the present points say least about, one after the other, each chosen with the ones before it in place (a pivoted factorisation of what is unexplained).

use crate::ModelError;
use faer::{Mat, MatRef};
use posterior_gp::inducing::InducingPosterior;
use posterior_kernels::{cross, diagonal};

/// A row of which less than this share of the prior variance is unexplained adds nothing worth its cost.
const WORTH: f64 = 0.05;

/// At most so many inputs among the rows (b x D) that should become inducing points. Cost `b m² + most b (m + most)` flops and as many kernel values.
pub(crate) fn additions(
    posterior: &InducingPosterior,
    rows: MatRef<'_, f64>,
    most: usize,
) -> Result<Option<Mat<f64>>, ModelError> {
    if most == 0 {
        return Ok(None);
    }
    let (share, features) = posterior.unexplained(rows)?;
    let prior = diagonal(posterior.kernel(), rows);
    let mut left: Vec<f64> = share.iter().zip(&prior).map(|(s, p)| s * p).collect();
    let mut chosen: Vec<usize> = Vec::new();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while chosen.len() < most {
        let relative = |i: &usize| left[*i] / prior[*i];
        let Some(best) = (0..left.len()).max_by(|a, b| relative(a).total_cmp(&relative(b))) else { break };
        if relative(&best).is_nan() || relative(&best) <= WORTH {
            break;
        }
        let across = cross(posterior.kernel(), rows, rows.subrows(best, 1));
        let explained = features.transpose() * features.as_ref().subcols(best, 1);
        let pivot = left[best].sqrt();
        let column: Vec<f64> = (0..left.len())
            .map(|i| {
                let before: f64 = columns.iter().map(|c| c[i] * c[best]).sum();
                (across[(i, 0)] - explained[(i, 0)] - before) / pivot
            })
            .collect();
        left.iter_mut().zip(&column).for_each(|(v, c)| *v = (*v - c * c).max(0.0));
        left[best] = 0.0;
        chosen.push(best);
        columns.push(column);
    }
    Ok((!chosen.is_empty()).then(|| Mat::from_fn(chosen.len(), rows.ncols(), |i, d| rows[(chosen[i], d)])))
}
