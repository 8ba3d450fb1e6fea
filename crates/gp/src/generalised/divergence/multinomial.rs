//! **The distance of class probabilities**: of two processes for J classes, through the probabilities p and q that each predicts,
//!
//! ```text
//! D = (1/n) Σ_i (Σ_j |p_ij - q_ij|^a)^(1/a)
//! ```
//!
//! for an order a from 1; 2 is usual. Source: spec `generalised_variational_inference`, section 11, the "multinomial Wasserstein" of the published code.

use super::DivergenceError;

/// The average distance of n rows of J probabilities each, row after row (n J numbers), and its slopes in `posterior`, which are written. Where a row agrees entirely, or a probability does at order 1, slopes are the subgradient 0. Differences are measured by the largest of a row first, so that no power under- or overflows.
///
/// Cost some ten flops a number at order 2, two powers a number at others; no allocation.
///
/// # Errors
/// An order below 1 or not finite, no classes, sizes that differ or are no multiple of the classes, no rows, numbers that are not finite.
pub fn multinomial(
    order: f64,
    classes: usize,
    prior: &[f64],
    posterior: &[f64],
    slopes: &mut [f64],
) -> Result<f64, DivergenceError> {
    if !(order >= 1.0 && order.is_finite()) {
        let remedy = "give a finite number from 1, such as 2";
        return Err(DivergenceError::Order { what: "the distance of probabilities", value: order, remedy });
    }
    if classes == 0 || posterior.is_empty() {
        return Err(DivergenceError::Empty { what: "the table of probabilities" });
    }
    DivergenceError::same("probabilities of the prior", posterior.len(), prior.len())?;
    DivergenceError::same("slopes", posterior.len(), slopes.len())?;
    let rows = posterior.len() / classes;
    DivergenceError::same("probabilities of all rows", rows * classes, posterior.len())?;
    let count = rows as f64;
    let mut total = 0.0;
    for (row, slopes) in slopes.chunks_exact_mut(classes).enumerate() {
        let of = row * classes..(row + 1) * classes;
        let mut largest = 0.0f64;
        for (column, (slope, (q, p))) in
            slopes.iter_mut().zip(posterior[of.clone()].iter().zip(&prior[of])).enumerate()
        {
            *slope = q - p;
            if !slope.is_finite() {
                let what = "the difference of the probabilities in";
                return Err(DivergenceError::NotFinite { what, row, column, value: *slope });
            }
            largest = largest.max(slope.abs());
        }
        if largest > 0.0 {
            total += largest * in_units(order, largest, count, slopes);
        }
    }
    Ok(total / count)
}

/// The norm of a row of differences in units of the largest of them, and their slopes over `count` instead of them.
fn in_units(order: f64, largest: f64, count: f64, row: &mut [f64]) -> f64 {
    row.iter_mut().for_each(|d| *d /= largest);
    if order == 2.0 {
        let norm = row.iter().map(|d| d * d).sum::<f64>().sqrt();
        row.iter_mut().for_each(|d| *d /= norm * count);
        return norm;
    }
    let sum: f64 = row.iter().map(|d| d.abs().powf(order)).sum();
    let norm = sum.powf(1.0 / order);
    let scale = norm / sum / count;
    for d in row {
        *d = if *d == 0.0 { 0.0 } else { scale * d.abs().powf(order - 1.0).copysign(*d) };
    }
    norm
}
