//! `log E[softmax(f)_y]` for independent `f_c ~ N(m_c, v_c)`: the evidence of one observed class.
//!
//! With independent standard Gumbel variables g_c the softmax is the probability that `f_y + g_y` is the largest, so that with the distribution functions `F_c` of `f_c + g_c`
//!
//! ```text
//! Z = E[softmax(f)_y] = ∫ F_y'(s) Π_(c ≠ y) F_c(s) ds
//! ∂Z/∂m_k = -∫ F_y' F_k' Π_(c ≠ y, k) F_c ds            k ≠ y; slopes in all means sum to zero
//! ∂Z/∂v_k =  ∫ F_y' B_k  Π_(c ≠ y, k) F_c ds            B_k = ∂F_k/∂v_k
//! ∂Z/∂v_y = -∫ B_y (Π_(c ≠ y) F_c)' ds                  by parts
//! ```
//!
//! Nothing of this cancels but `B`, whatever the variances; tables and nodes are those of `log_sum_exp`.

use super::log_sum_exp::Tables;

/// The logarithm of the expectation; writes its slopes in means and variances. NaN when an argument is not finite.
pub(crate) fn softmax_evidence(
    class: usize,
    (mean, variance): (&[f64], &[f64]),
    (means, variances): (&mut [f64], &mut [f64]),
) -> f64 {
    let classes = mean.len();
    let Some(tables) = Tables::new(mean, variance, true) else {
        means.iter_mut().chain(variances).for_each(|s| *s = f64::NAN);
        return f64::NAN;
    };
    let count = tables.count;
    let row = |c: usize| c * count..(c + 1) * count;
    let others: Vec<usize> = (0..classes).filter(|c| *c != class).collect();
    // Products of the other classes before each of them, and at the end of all of them.
    let mut before = vec![1.0; (others.len() + 1) * count];
    for (i, &c) in others.iter().enumerate() {
        let own = &tables.distribution[row(c)];
        for j in 0..count {
            before[(i + 1) * count + j] = before[i * count + j] * own[j];
        }
    }
    let density = &tables.density[row(class)];
    let bend = &tables.bend[row(class)];
    let all = &before[others.len() * count..];
    let evidence: f64 = density.iter().zip(all).map(|(d, p)| d * p).sum();
    let mut behind = vec![1.0; count];
    let (mut own_mean, mut own_variance) = (0.0, 0.0);
    for (i, &k) in others.iter().enumerate().rev() {
        let (their_density, their_bend) = (&tables.density[row(k)], &tables.bend[row(k)]);
        let distribution = &tables.distribution[row(k)];
        let (mut toward_mean, mut toward_variance, mut across) = (0.0, 0.0, 0.0);
        for j in 0..count {
            let rest = before[i * count + j] * behind[j];
            toward_mean -= density[j] * their_density[j] * rest;
            toward_variance += density[j] * their_bend[j] * rest;
            across -= bend[j] * their_density[j] * rest;
            behind[j] *= distribution[j];
        }
        (means[k], variances[k]) = (toward_mean / evidence, toward_variance / evidence);
        own_mean -= toward_mean;
        own_variance += across;
    }
    (means[class], variances[class]) = (own_mean / evidence, own_variance / evidence);
    (tables.step * evidence).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::nodes;
    use posterior_optim::check;

    fn found(class: usize, mean: &[f64], variance: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let (mut m, mut v) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
        let value = softmax_evidence(class, (mean, variance), (&mut m, &mut v));
        (value, m, v)
    }

    #[test]
    fn a_product_rule_agrees_for_three_classes() {
        let (mean, variance) = ([0.5, -0.3, 1.1], [0.8, 2.0, 0.1]);
        let mut expected = [0.0; 3];
        for (a, wa) in nodes(mean[0], variance[0], 0.3) {
            for (b, wb) in nodes(mean[1], variance[1], 0.3) {
                for (c, wc) in nodes(mean[2], variance[2], 0.3) {
                    let e = [a.exp(), b.exp(), c.exp()];
                    let total: f64 = e.iter().sum();
                    (0..3).for_each(|k| expected[k] += wa * wb * wc * e[k] / total);
                }
            }
        }
        for (class, expected) in expected.iter().enumerate() {
            assert!((found(class, &mean, &variance).0 - expected.ln()).abs() < 1e-9);
        }
    }

    /// Also where classes spread widely, and where one that is next to impossible was seen.
    #[test]
    fn slopes_equal_finite_differences() {
        for arguments in [
            [0.5, -0.3, 1.1, -2.0, 0.8, 2.0, 0.1, 9.0],
            [5.0, -3.0, 11.0, -20.0, 80.0, 20.0, 10.0, 90.0],
            [5.0, -3.0, 2.0, -20.0, 80.0, 20.0, 0.1, 900.0],
            [8.0, -8.0, 0.0, 0.0, 0.5, 0.5, 1.0, 0.1],
        ] {
            for class in 0..4 {
                let (_, m, v) = found(class, &arguments[..4], &arguments[4..]);
                let numeric = check::gradient(|a| found(class, &a[..4], &a[4..]).0, &arguments);
                check::assert_close(&[m, v].concat(), &numeric, 1e-6, 1e-7);
            }
        }
    }

    #[test]
    fn without_variance_it_is_the_softmax_and_what_is_not_finite_is_nan() {
        let mean = [0.3, -1.2, 2.0];
        let total: f64 = mean.iter().map(|m: &f64| m.exp()).sum();
        let (value, slopes, _) = found(1, &mean, &[0.0; 3]);
        assert!((value - (-1.2 - total.ln())).abs() < 1e-9);
        for (k, slope) in slopes.iter().enumerate() {
            let expected = f64::from(u8::from(k == 1)) - mean[k].exp() / total;
            assert!((slope - expected).abs() < 1e-9, "{k}: {slope} {expected}");
        }
        let (value, slopes, _) = found(0, &[f64::NAN, 0.0], &[1.0, 1.0]);
        assert!(value.is_nan() && slopes[1].is_nan());
    }
}
