//! **Functional ANOVA** of a function under an additive kernel: what columns do alone, what pairs of them add to that, and so on.
//!
//! Functions of an additive prior are not the parts that their names promise: a function of two columns with a long lengthscale in one of them is a function of the other alone, and the evidence does not care which of the two
//! it is. So `f(x) = Σ_j w_j k(x, z_j)` is decomposed anew. With `E_d` the mean over the values that column d takes at the given places (columns as if they were independent), the effect of a set S of columns is
//! `Π_{d in S} (1 - E_d) Π_{d not in S} E_d f`: a function of these columns that has a mean of 0 along each of them, orthogonal to those of all other sets. For products of one-dimensional kernels, with `μ_d(z) = E_d k_d(., z)`,
//!
//! ```text
//! f_S(x) = Σ_j w_j c_S(z_j) Π_{d in S} (k_d(x, z_j) - μ_d(z_j)),    c_S(z) = Σ_p v_p / C(D, p) e_{p-|S|}(μ_{-S}(z)),
//! ```
//!
//! and the prior variance of the effect, as a mean over the places, is the same of `1 - ν_d` and `ν_d = E_d E_d k_d`. All effects of one order together are read from one polynomial in two variables.
//!
//! Source: I. M. Sobol, "Sensitivity estimates for nonlinear mathematical models", 1993; X. Lu, A. Boukouvalas, J. Hensman, "Additive Gaussian processes revisited", ICML 2022, which has the same effects as a prior.

use super::Additive;
use crate::stationary::Form;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::parallel;

/// An effect at some places.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Its values there; their mean over all combinations of the columns' values is 0.
    pub values: Vec<f64>,
    /// Its prior variance, as a mean over these combinations.
    pub prior_variance: f64,
}

/// The decomposition of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Anova {
    /// All effects of one column each, of two, ...: from 1 up to the kernel's order. With a constant they add up to the function.
    pub orders: Vec<Effect>,
    /// Those of the sets that were asked for, in their order.
    pub sets: Vec<Effect>,
}

/// Points that are worked on together.
const BLOCK: usize = 32;

/// Places at most whose means `ν_d` are taken over.
const MOST_PAIRED: usize = 500;

impl<F: Form> Additive<F> {
    /// The decomposition of `Σ_j w_j k(x, z_j)` at the rows of x; `sets` are columns of the inputs, each set one that this kernel looks at.
    ///
    /// Cost: D values of one-dimensional kernels for each pair of place and point, and some `D Q²` operations beside `|S|` for each set.
    pub(super) fn decomposed<T: Real>(
        &self,
        x: MatRef<'_, T>,
        z: MatRef<'_, T>,
        weights: &[f64],
        sets: &[Vec<usize>],
    ) -> Anova {
        let (dimension, orders) = (self.scales.columns.count(), self.scales.order());
        let each: Vec<f64> = self.scales.weights();
        // Places of the sets' columns among those of this kernel.
        let place = |c: &usize| self.scales.columns.indices().iter().position(|own| own == c).unwrap_or(0);
        let sets: Vec<Vec<usize>> = sets.iter().map(|set| set.iter().map(place).collect()).collect();
        let value = |d: usize, a: T, b: T| {
            let difference = (a.to_f64() - b.to_f64()) / self.scales.lengthscale(d);
            self.form.value((difference * difference).min(1e300))
        };
        let column = |m: MatRef<'_, T>, d: usize| -> Vec<T> {
            let c = self.scales.columns.indices()[d];
            (0..m.nrows()).map(|i| m[(i, c)]).collect()
        };
        let own: Vec<Vec<T>> = (0..dimension).map(|d| column(x, d)).collect();
        let others: Vec<Vec<T>> = (0..dimension).map(|d| column(z, d)).collect();
        let n = x.nrows();
        let width = orders + 1;
        let of_block = |first: usize| -> (Vec<f64>, Vec<f64>) {
            let points = first..(first + BLOCK).min(z.nrows());
            let mut by_order = vec![0.0; orders * n];
            let mut by_set = vec![0.0; sets.len() * n];
            let mut values = Mat::<f64>::zeros(n, dimension);
            let mut means = vec![0.0; dimension];
            let mut polynomial = vec![0.0; width * width];
            for j in points {
                for d in 0..dimension {
                    let k = values.col_as_slice_mut(d);
                    k.iter_mut().zip(&own[d]).for_each(|(k, a)| *k = value(d, *a, others[d][j]));
                    means[d] = k.iter().sum::<f64>() / n as f64;
                    k.iter_mut().for_each(|k| *k -= means[d]);
                }
                for (set, out) in sets.iter().zip(by_set.chunks_exact_mut(n.max(1))) {
                    let factor = weights[j] * coefficient(&each, &means, set);
                    for (i, out) in out.iter_mut().enumerate() {
                        *out += factor * set.iter().map(|&d| values[(i, d)]).product::<f64>();
                    }
                }
                for i in 0..n {
                    two_variables(|d| (values[(i, d)], means[d]), dimension, orders, &mut polynomial);
                    for q in 1..=orders {
                        let sum: f64 = (q..=orders).map(|p| each[p - 1] * polynomial[q * width + p]).sum();
                        by_order[(q - 1) * n + i] += weights[j] * sum;
                    }
                }
            }
            (by_order, by_set)
        };
        let added = |mut a: (Vec<f64>, Vec<f64>), b: (Vec<f64>, Vec<f64>)| {
            a.0.iter_mut().zip(b.0).for_each(|(a, b)| *a += b);
            a.1.iter_mut().zip(b.1).for_each(|(a, b)| *a += b);
            a
        };
        let blocks: Vec<usize> = (0..z.nrows()).step_by(BLOCK).collect();
        // Whatever threads there are, sums are in the order of the blocks.
        let parts: Vec<(Vec<f64>, Vec<f64>)> = parallel::map(blocks.len(), 1, |i| of_block(blocks[i]));
        let zeros = (vec![0.0; orders * n], vec![0.0; sets.len() * n]);
        let (by_order, by_set) = parts.into_iter().fold(zeros, added);

        let count = n.min(MOST_PAIRED);
        let some: Vec<usize> = (0..count).map(|i| i * n / count).collect();
        let means: Vec<f64> = (0..dimension)
            .map(|d| {
                let of_row = |i: &usize| some.iter().map(|j| value(d, own[d][*i], own[d][*j])).sum::<f64>();
                some.iter().map(of_row).sum::<f64>() / (some.len() * some.len()).max(1) as f64
            })
            .collect();
        let mut polynomial = vec![0.0; width * width];
        two_variables(|d| (1.0 - means[d], means[d]), dimension, orders, &mut polynomial);
        let prior_of_order =
            |q: usize| (q..=orders).map(|p| each[p - 1] * polynomial[q * width + p]).sum::<f64>();
        let prior_of_set = |set: &[usize]| {
            coefficient(&each, &means, set) * set.iter().map(|&d| 1.0 - means[d]).product::<f64>()
        };
        let rows = |all: &[f64], k: usize| all[k * n..(k + 1) * n].to_vec();
        Anova {
            orders: (0..orders)
                .map(|q| Effect { values: rows(&by_order, q), prior_variance: prior_of_order(q + 1) })
                .collect(),
            sets: sets
                .iter()
                .enumerate()
                .map(|(k, set)| Effect { values: rows(&by_set, k), prior_variance: prior_of_set(set) })
                .collect(),
        }
    }
}

/// `c_S`: the weights of orders times the polynomials of all columns but those of the set.
fn coefficient(each: &[f64], means: &[f64], set: &[usize]) -> f64 {
    let most = each.len().saturating_sub(set.len());
    let mut sums = vec![0.0; most + 1];
    sums[0] = 1.0;
    for mean in means.iter().enumerate().filter(|(d, _)| !set.contains(d)).map(|(_, mean)| mean) {
        for r in (1..=most).rev() {
            sums[r] += mean * sums[r - 1];
        }
    }
    sums.iter().enumerate().map(|(r, sum)| sum * each.get(set.len() + r - 1).copied().unwrap_or(0.0)).sum()
}

/// Coefficients of `s^q t^p` in `Π_d (1 + t (s a_d + b_d))`, at `[q (orders + 1) + p]`, for p up to the orders.
fn two_variables(factor: impl Fn(usize) -> (f64, f64), dimension: usize, orders: usize, out: &mut [f64]) {
    let width = orders + 1;
    out.fill(0.0);
    out[0] = 1.0;
    for d in 0..dimension {
        let (a, b) = factor(d);
        for p in (1..=orders.min(d + 1)).rev() {
            for q in (0..=p).rev() {
                let through = if q > 0 { a * out[(q - 1) * width + p - 1] } else { 0.0 };
                out[q * width + p] += through + b * out[q * width + p - 1];
            }
        }
    }
}

/// What a kernel that is a sum over sets of columns tells of functions under it.
pub trait Decomposed<T: Real>: std::fmt::Debug + Send + Sync {
    /// The decomposition of `Σ_j w_j k(x, z_j)` at the rows of x, with the effects of these sets of columns.
    fn anova(&self, x: MatRef<'_, T>, z: MatRef<'_, T>, weights: &[f64], sets: &[Vec<usize>]) -> Anova;
}

impl<T: Real, F: Form> Decomposed<T> for Additive<F> {
    fn anova(&self, x: MatRef<'_, T>, z: MatRef<'_, T>, weights: &[f64], sets: &[Vec<usize>]) -> Anova {
        self.decomposed(x, z, weights, sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Columns;
    use crate::stationary::Matern32;
    use crate::{Kernel, cross};

    /// Three columns of five values each: every combination is looked at, operators are means over it.
    #[test]
    fn effects_are_those_of_brute_force() {
        let wave = |i: usize, d: usize| ((i * 7 + d * 3) as f64 * 0.61).sin() * 1.3;
        let x = Mat::from_fn(5, 4, wave);
        let z = Mat::from_fn(6, 4, |i, d| wave(i + 9, d));
        let w: Vec<f64> = (0..6).map(|j| (j as f64 * 1.1).cos()).collect();
        // Of four columns the kernel looks at three.
        let columns = [0usize, 2, 3];
        let mut kernel =
            Additive::new("additive", Matern32, Columns::some(columns.to_vec()), true, 0.8, (3, 1.0));
        posterior_optim::Parameters::set_values(&mut kernel, &[0.4, 1.1, 0.7, 0.6, 1.4, 0.9]);
        let all: Vec<[usize; 3]> = (0..125).map(|k| [k / 25, k / 5 % 5, k % 5]).collect();
        let grid = Mat::from_fn(125, 4, |k, c| {
            columns.iter().position(|own| *own == c).map_or(0.0, |d| x[(all[k][d], c)])
        });
        let k = cross(&kernel as &dyn Kernel<f64>, grid.as_ref(), z.as_ref());
        let f: Vec<f64> = (0..125).map(|i| (0..6).map(|j| k[(i, j)] * w[j]).sum()).collect();
        // (1 - E_d) or E_d along each column, of a function on the grid.
        let projected = |f: &[f64], set: &[usize]| -> Vec<f64> {
            let mut f = f.to_vec();
            for d in 0..3 {
                let mean: Vec<f64> = (0..125)
                    .map(|k| {
                        let same = (0..125).filter(|l| (0..3).all(|e| e == d || all[*l][e] == all[k][e]));
                        same.map(|l| f[l]).sum::<f64>() / 5.0
                    })
                    .collect();
                f = if set.contains(&d) { f.iter().zip(&mean).map(|(f, m)| f - m).collect() } else { mean };
            }
            f
        };
        // What the rows of x are on the grid.
        let at: Vec<usize> = (0..5).map(|i| i * 31).collect();
        let subsets: Vec<Vec<usize>> =
            (1..8usize).map(|bits| (0..3).filter(|d| bits >> d & 1 == 1).collect()).collect();
        let asked: Vec<Vec<usize>> =
            subsets.iter().map(|set| set.iter().map(|d| columns[*d]).collect()).collect();
        let found = kernel.decomposed(x.as_ref(), z.as_ref(), &w, &asked);
        let covariance = cross(&kernel as &dyn Kernel<f64>, grid.as_ref(), grid.as_ref());
        let mut by_order = vec![(vec![0.0; 5], 0.0); 3];
        for (set, own) in subsets.iter().zip(&found.sets) {
            let expected = projected(&f, set);
            // P K Pᵀ, of which the mean of the diagonal is the variance.
            let rows: Vec<Vec<f64>> = (0..125).map(|j| projected(covariance.col_as_slice(j), set)).collect();
            let prior: f64 = (0..125)
                .map(|i| {
                    let across: Vec<f64> = rows.iter().map(|row| row[i]).collect();
                    projected(&across, set)[i]
                })
                .sum::<f64>()
                / 125.0;
            assert!((own.prior_variance - prior).abs() < 1e-12, "{set:?}: {} {prior}", own.prior_variance);
            let order = &mut by_order[set.len() - 1];
            order.1 += prior;
            for (i, place) in at.iter().enumerate() {
                assert!((own.values[i] - expected[*place]).abs() < 1e-12, "{set:?}, {i}");
                order.0[i] += expected[*place];
            }
        }
        let constant = f.iter().sum::<f64>() / 125.0;
        for (q, own) in found.orders.iter().enumerate() {
            assert!((own.prior_variance - by_order[q].1).abs() < 1e-12);
            own.values.iter().zip(&by_order[q].0).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
        }
        for (i, place) in at.iter().enumerate() {
            let sum: f64 = found.orders.iter().map(|own| own.values[i]).sum();
            assert!((constant + sum - f[*place]).abs() < 1e-12);
        }
    }

    /// A function of one column that a kernel holds for one of two, because the other's lengthscale is long.
    #[test]
    fn long_lengthscales_make_no_pairs() {
        let x =
            Mat::from_fn(40, 2, |i, d| if d == 0 { i as f64 * 0.1 } else { ((i * 13) % 40) as f64 * 0.1 });
        let mut kernel = Additive::new("additive", Matern32, Columns::all(2), true, 1.0, (2, 1.0));
        posterior_optim::Parameters::set_values(&mut kernel, &[1e-8, 1.0, 0.5, 1e5]);
        let w: Vec<f64> = (0..40).map(|j| (j as f64 * 0.7).sin()).collect();
        let found = kernel.decomposed(x.as_ref(), x.as_ref(), &w, &[vec![0], vec![1], vec![0, 1]]);
        let variance = |own: &Effect| own.values.iter().map(|v| v * v).sum::<f64>();
        let all: f64 = found.sets.iter().map(variance).sum();
        assert!(variance(&found.sets[0]) > 0.999 * all);
        assert!(
            found.sets[0].prior_variance > 0.999 * found.orders.iter().map(|o| o.prior_variance).sum::<f64>()
        );
    }
}
