//! Elementary symmetric polynomials, and the way back through the recursion that makes them.
//!
//! `e_q(k_1 .. k_D) = Σ k_{d1} ... k_{dq}` over all sets of q columns. With one column after the other, `e_q <- e_q + k_d e_{q-1}`: sums of products of what is not negative, so that no digits are
//! lost, where Newton's identities subtract sums of powers. Memory of the way back: `(D + 1)(Q + 1)` numbers for each entry, those before each column.

use posterior_linalg::Real;

/// Entries that are worked on together: a vector's length and more.
pub(super) const LANE: usize = 16;

/// Numbers of one block of entries.
pub(super) type Lane<T> = [T; LANE];

/// Room for D columns and orders up to Q.
pub(super) struct Room<T> {
    orders: usize,
    /// `e_0 .. e_Q` before each column, and after the last.
    prefixes: Vec<Lane<T>>,
    adjoint: Vec<Lane<T>>,
}

impl<T: Real> Room<T> {
    pub(super) fn new(columns: usize, orders: usize) -> Self {
        Self {
            orders,
            prefixes: vec![[T::ZERO; LANE]; (columns + 1) * (orders + 1)],
            adjoint: vec![[T::ZERO; LANE]; orders + 1],
        }
    }

    /// `e_0 .. e_Q` of the factors, one for each column.
    #[inline(always)]
    pub(super) fn forward(&mut self, factors: &[Lane<T>]) -> &[Lane<T>] {
        let width = self.orders + 1;
        self.prefixes[..width].fill([T::ZERO; LANE]);
        self.prefixes[0] = [T::ONE; LANE];
        for (d, factor) in factors.iter().enumerate() {
            let (before, after) = self.prefixes.split_at_mut((d + 1) * width);
            let (before, after) = (&before[d * width..], &mut after[..width]);
            after[0] = before[0];
            for q in 1..width {
                for i in 0..LANE {
                    after[q][i] = factor[i].mul_add(before[q - 1][i], before[q][i]);
                }
            }
        }
        &self.prefixes[factors.len() * width..]
    }

    /// What adjoints of `e_1 .. e_Q` contribute to the factors of the last [`Self::forward`]: into `out`, one for each column.
    #[inline(always)]
    pub(super) fn backward(
        &mut self,
        factors: &[Lane<T>],
        adjoint: impl Fn(usize) -> Lane<T>,
        out: &mut [Lane<T>],
    ) {
        let width = self.orders + 1;
        self.adjoint[0] = [T::ZERO; LANE];
        for q in 1..width {
            self.adjoint[q] = adjoint(q);
        }
        for d in (0..factors.len()).rev() {
            let before = &self.prefixes[d * width..(d + 1) * width];
            let mut sum = [T::ZERO; LANE];
            for q in 1..width {
                for i in 0..LANE {
                    sum[i] = self.adjoint[q][i].mul_add(before[q - 1][i], sum[i]);
                }
            }
            out[d] = sum;
            // Lowest order first: an order's adjoint is read before that of the next is added to it.
            for q in 1..width {
                for i in 0..LANE {
                    self.adjoint[q - 1][i] =
                        factors[d][i].mul_add(self.adjoint[q][i], self.adjoint[q - 1][i]);
                }
            }
        }
    }
}

/// Number of sets of q among D columns, as a number (exact up to 2⁵³, and to rounding beyond).
pub(super) fn sets(columns: usize, q: usize) -> f64 {
    (0..q).fold(1.0, |product, k| product * (columns - k) as f64 / (k + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All subsets, one by one, and finite differences.
    #[test]
    fn polynomials_are_sums_over_all_sets() {
        let columns = 6;
        let factors: Vec<Lane<f64>> =
            (0..columns).map(|d| std::array::from_fn(|i| 0.5 + 0.5 * ((d * 3 + i) as f64).sin())).collect();
        let naive = |values: &[f64], q: usize| -> f64 {
            let sets = (0u32..1 << columns).filter(|s| s.count_ones() as usize == q);
            sets.map(|s| (0..columns).filter(|d| s >> d & 1 == 1).map(|d| values[d]).product::<f64>()).sum()
        };
        for orders in 1..=columns {
            let mut room = Room::new(columns, orders);
            let found = room.forward(&factors).to_vec();
            let weight = |q: usize| (q as f64).cos();
            let mut slopes = vec![[0.0; LANE]; columns];
            room.backward(&factors, |q| [weight(q); LANE], &mut slopes);
            for i in 0..LANE {
                let values: Vec<f64> = factors.iter().map(|f| f[i]).collect();
                for q in 0..=orders {
                    assert!((found[q][i] - naive(&values, q)).abs() < 1e-13);
                }
                let whole = |v: &[f64]| (1..=orders).map(|q| weight(q) * naive(v, q)).sum();
                let numeric = posterior_optim::check::gradient(whole, &values);
                let exact: Vec<f64> = slopes.iter().map(|s| s[i]).collect();
                posterior_optim::check::assert_close(&exact, &numeric, 1e-9, 1e-9);
            }
        }
        assert_eq!(
            (sets(6, 0), sets(6, 2), sets(6, 6), sets(60, 30)),
            (1.0, 15.0, 1.0, 118264581564861424.0)
        );
    }
}
