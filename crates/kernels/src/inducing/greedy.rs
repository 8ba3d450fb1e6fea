//! Rows that are predicted worst, one after another.

use faer::{Accum, Mat};
use posterior_linalg::Real;
use posterior_linalg::dense::multiply_into;
use posterior_linalg::operator::RowAccess;

/// Rows chosen by [`greedy_variance`].
#[derive(Clone, Debug, PartialEq)]
pub struct Greedy {
    /// The rows, in the order in which they were chosen.
    pub rows: Vec<usize>,
    /// `tr(K - Q)` after each of them: what the chosen rows leave unexplained. By it a Nyström approximation's error is at most `residuals[m - 1]`
    /// in every norm between the spectral and the trace norm.
    pub residuals: Vec<f64>,
}

/// Chooses at most `count` rows of a symmetric positive semi-definite matrix, each the one with the largest variance given those before:
/// pivoted Cholesky. It ends early when the largest remaining variance is at most `tolerance` times the largest at first, or not a number.
///
/// Cost: m columns of the matrix, `n m²` flops, `n m` numbers of memory. Equal variances: the first row.
///
/// Source: H. Harbrecht and others, "On the low-rank approximation by the pivoted Cholesky decomposition", Appl. Numer. Math. 62 (2012),
/// algorithm 1.
#[inline(never)]
pub fn greedy_variance<T: Real>(matrix: &dyn RowAccess<T>, count: usize, tolerance: f64) -> Greedy {
    let n = matrix.shape().0;
    let count = count.min(n);
    let mut variances = matrix.diagonal();
    let mut factor = Mat::<T>::zeros(n, count);
    let (mut rows, mut residuals) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut chosen = vec![false; n];
    let largest = |variances: &[T], chosen: &[bool]| {
        let mut best: Option<usize> = None;
        for i in (0..n).filter(|&i| !chosen[i] && variances[i].is_finite()) {
            if best.is_none_or(|b| variances[i] > variances[b]) {
                best = Some(i);
            }
        }
        best
    };
    let threshold = largest(&variances, &chosen).map_or(0.0, |i| variances[i].to_f64()) * tolerance.max(0.0);
    while rows.len() < count {
        let Some(pivot) = largest(&variances, &chosen) else { break };
        let variance = variances[pivot];
        if variance.to_f64() <= threshold.max(0.0) {
            break;
        }
        let m = rows.len();
        let (known, mut fresh) = factor.as_mut().split_at_col_mut(m);
        let known = known.as_ref();
        let mut column = fresh.as_mut().subcols_mut(0, 1);
        matrix.columns_into(&[pivot], column.as_mut());
        let row = known.row(pivot).transpose().to_owned();
        multiply_into(column.as_mut(), Accum::Add, known, row.as_mat(), -T::ONE);
        let scale = T::ONE / Real::sqrt(variance);
        for i in 0..n {
            let value = if chosen[i] { T::ZERO } else { column[(i, 0)] * scale };
            column[(i, 0)] = value;
            variances[i] = Real::max(variances[i] - value * value, T::ZERO);
        }
        column[(pivot, 0)] = Real::sqrt(variance);
        (variances[pivot], chosen[pivot]) = (T::ZERO, true);
        rows.push(pivot);
        residuals.push(variances.iter().map(|v| v.to_f64()).sum());
    }
    Greedy { rows, residuals }
}
