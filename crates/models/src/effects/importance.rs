//! Total effects of groups of inputs, with their standard errors.
//!
//! ```text
//! h_ik = ½ ‖f(x_i) - f(x_i with group j of x_{i+k})‖²,   k = 1..K,  rows in random order, after the last the first
//! T_j = mean h / V,    V = mean v,    v_i = ‖f(x_i) - f̄‖² N/(N-1)
//! ```
//!
//! Terms share rows, so their standard error is not that of independent ones. With the residuals `e_ik = h_ik - T v_i` and `S_i` the sum of all residuals that row i has a part in, `Var(mean h - T V) ≈ (Σ_i S_i² - Σ e²) / (N K)²`:
//! pairs of terms that share a row, each once (the dyadic estimator of Fafchamps and Gubert (2007)), and so, by the delta method, T's variance is that over V².

use crate::ModelError;
use faer::{Mat, MatRef};
use std::ops::Range;

/// Means of the functions (m x C) at standardised rows (m x D).
type Means<'a> = dyn FnMut(MatRef<'_, f64>) -> Result<Mat<f64>, ModelError> + 'a;

/// Rows below which nothing is said.
pub(crate) const LEAST_ROWS: usize = 10;

/// A variance below this, of functions in standard units, is rounding.
const NOTHING: f64 = 1e-18;

/// Total effect and standard error of each group of columns of x (N x D, rows in random order), by `shifts` exchanges for each row, of which there are fewer than N/2. None where the means do not vary.
///
/// Cost: means at `N (1 + groups · shifts)` rows, N at a time.
///
/// # Errors
/// Those of the means.
pub(crate) fn total_effects(
    x: MatRef<'_, f64>,
    groups: &[Range<usize>],
    shifts: usize,
    means: &mut Means<'_>,
) -> Result<Option<Vec<[f64; 2]>>, ModelError> {
    let n = x.nrows();
    let own = means(x)?;
    let functions = own.ncols();
    let centre: Vec<f64> = (0..functions).map(|c| own.col(c).iter().sum::<f64>() / n as f64).collect();
    let square = |i: usize, of: &dyn Fn(usize) -> f64| -> f64 {
        (0..functions).map(|c| (own[(i, c)] - of(c)).powi(2)).sum()
    };
    let unbiased = n as f64 / (n as f64 - 1.0);
    let spread: Vec<f64> = (0..n).map(|i| unbiased * square(i, &|c| centre[c])).collect();
    let variance = spread.iter().sum::<f64>() / n as f64;
    // Also where it is no number.
    if variance.partial_cmp(&NOTHING) != Some(std::cmp::Ordering::Greater) || !variance.is_finite() {
        return Ok(None);
    }
    let mut exchanged = x.to_owned();
    let mut out = Vec::with_capacity(groups.len());
    for group in groups {
        let mut halves = vec![0.0; n * shifts];
        for k in 0..shifts {
            for j in group.clone() {
                (0..n).for_each(|i| exchanged[(i, j)] = x[((i + k + 1) % n, j)]);
            }
            let found = means(exchanged.as_ref())?;
            for i in 0..n {
                halves[i * shifts + k] = 0.5 * square(i, &|c| found[(i, c)]);
            }
        }
        for j in group.clone() {
            (0..n).for_each(|i| exchanged[(i, j)] = x[(i, j)]);
        }
        let terms = (n * shifts) as f64;
        let share = halves.iter().sum::<f64>() / terms / variance;
        let (mut sums, mut squares) = (vec![0.0; n], 0.0);
        for i in 0..n {
            for k in 0..shifts {
                let residual = halves[i * shifts + k] - share * spread[i];
                sums[i] += residual;
                sums[(i + k + 1) % n] += residual;
                squares += residual * residual;
            }
        }
        let shared = sums.iter().map(|s| s * s).sum::<f64>() - squares;
        // Of very few rows chance may make it negative: then that of the terms alone.
        let error = if shared > 0.0 { shared } else { squares }.sqrt() / terms / variance;
        out.push([share, error]);
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_linalg::random::Streams;
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    const REPEATS: u64 = 300;

    /// Effects of a function of independent standard normal inputs, repeated: the mean of the shares of each group, their standard deviation, and the root of the mean square of standard errors.
    fn repeated(
        (n, shifts): (usize, usize),
        groups: &[Range<usize>],
        f: fn(&[f64]) -> f64,
    ) -> Vec<(f64, f64, f64)> {
        let d = groups.last().unwrap().end;
        let mut all: Vec<Vec<[f64; 2]>> = vec![Vec::new(); groups.len()];
        for seed in 0..REPEATS {
            let mut rng = Streams::new(seed).stream("x");
            let x = Mat::from_fn(n, d, |_, _| StandardNormal.sample(&mut rng));
            let found = total_effects(x.as_ref(), groups, shifts, &mut |x| {
                let row = |i: usize| (0..d).map(|j| x[(i, j)]).collect::<Vec<f64>>();
                Ok(Mat::from_fn(x.nrows(), 1, |i, _| f(&row(i))))
            });
            all.iter_mut().zip(found.unwrap().unwrap()).for_each(|(all, one)| all.push(one));
        }
        let count = REPEATS as f64;
        all.iter()
            .map(|each| {
                let mean = each.iter().map(|e| e[0]).sum::<f64>() / count;
                let variance = each.iter().map(|e| (e[0] - mean).powi(2)).sum::<f64>() / (count - 1.0);
                let error = each.iter().map(|e| e[1] * e[1]).sum::<f64>() / count;
                (mean, variance.sqrt(), error.sqrt())
            })
            .collect()
    }

    /// The mean of 300 repetitions is within five of its own standard errors of the truth, but for the bias of a ratio of order 1/N; standard errors are those that repetitions have, to the 20 % that the standard deviation of 300 heavy-tailed numbers is known to.
    fn check(n: usize, found: &[(f64, f64, f64)], expected: &[f64]) {
        for ((mean, deviation, error), expected) in found.iter().zip(expected) {
            let tolerance = 5.0 * deviation / (REPEATS as f64).sqrt() + 4.0 / n as f64;
            assert!((mean - expected).abs() < tolerance, "{mean} {expected} {tolerance}");
            assert!((error / deviation - 1.0).abs() < 0.2, "{error} {deviation}");
        }
    }

    #[test]
    fn of_a_linear_function_shares_are_its_parts_of_the_variance() {
        // Var f = 4 + 1 + 4 = 9; the last two inputs are one column.
        for size in [(400, 1), (60, 8)] {
            let found = repeated(size, &[0..1, 1..2, 2..4], |x| 2.0 * x[0] + x[1] + 2.0 * x[2] + 0.0 * x[3]);
            check(size.0, &found, &[4.0 / 9.0, 1.0 / 9.0, 4.0 / 9.0]);
        }
    }

    #[test]
    fn interactions_count_for_all_that_take_part() {
        // Var f = 1 + 1: of x0 x1 + x0 all needs the first, half the second, nothing the third.
        let found = repeated((400, 1), &[0..1, 1..2, 2..3], |x| x[0] * x[1] + x[0]);
        check(400, &found[..2], &[1.0, 0.5]);
        assert_eq!(found[2], (0.0, 0.0, 0.0));
    }

    #[test]
    fn columns_of_0_and_1_move_together() {
        // One of three categories, each a third of the rows, with values -1, 0 and 1, and a number: Var f = 2/3 + 1. Column by column there would be rows of no category, or of two.
        let n = 1000;
        let mut rng = Streams::new(3).stream("x");
        let number: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        let category: Vec<usize> = (0..n).map(|_| rng.random_range(0..3)).collect();
        let x =
            Mat::from_fn(n, 4, |i, j| if j == 3 { number[i] } else { f64::from(u8::from(category[i] == j)) });
        let found = total_effects(x.as_ref(), &[0..3, 3..4], 1, &mut |x| {
            assert!((0..n).all(|i| x[(i, 0)] + x[(i, 1)] + x[(i, 2)] == 1.0));
            Ok(Mat::from_fn(n, 1, |i, _| x[(i, 2)] - x[(i, 0)] + x[(i, 3)]))
        });
        for (found, expected) in found.unwrap().unwrap().iter().zip([0.4, 0.6]) {
            assert!((found[0] - expected).abs() < 5.0 * found[1] && found[1] < 0.05, "{found:?} {expected}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_constant() {
        let x = Mat::from_fn(20, 1, |i, _| i as f64);
        let constant = |value: f64| {
            let mut means = |x: MatRef<'_, f64>| Ok(Mat::from_fn(x.nrows(), 1, |_, _| value));
            total_effects(x.as_ref(), std::slice::from_ref(&(0..1)), 1, &mut means).unwrap()
        };
        assert_eq!((constant(3.0), constant(f64::NAN)), (None, None));
    }
}
