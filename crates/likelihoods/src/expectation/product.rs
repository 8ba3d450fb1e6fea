//! Expectations of any likelihood by a product of Gauss-Hermite rules, one for each latent value: `20^C` nodes.

use super::{GaussHermite, Slopes, negative_expectation};
use crate::Likelihood;
use crate::special::softmax::log_sum_exp;

/// Calls `visit` with the values and the weight of each node.
fn visit_nodes(mean: &[f64], variance: &[f64], mut visit: impl FnMut(&[f64], f64)) {
    assert_eq!(mean.len(), variance.len(), "one variance for each latent value");
    let rule = GaussHermite::standard();
    let axes: Vec<Vec<(f64, f64)>> =
        mean.iter().zip(variance).map(|(&m, &v)| rule.nodes(m, v).collect()).collect();
    let mut place = vec![0; axes.len()];
    let mut f = vec![0.0; axes.len()];
    loop {
        let mut weight = 1.0;
        for (c, axis) in axes.iter().enumerate() {
            f[c] = axis[place[c]].0;
            weight *= axis[place[c]].1;
        }
        visit(&f, weight);
        // The next number whose digits are places on the axes.
        let Some(c) = (0..axes.len()).find(|&c| place[c] + 1 < axes[c].len()) else { return };
        place[c] += 1;
        place[..c].fill(0);
    }
}

/// [`Likelihood::expected_log_density`] by quadrature.
pub(crate) fn expected_log_density<L: Likelihood + ?Sized>(
    likelihood: &L,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
    slopes: Slopes<'_>,
) -> f64 {
    assert!(
        slopes.parameters.is_empty() && likelihood.values().is_empty(),
        "a likelihood with parameters must say how they matter"
    );
    let n = likelihood.outputs();
    let (mut gradient, mut hessian) = (vec![0.0; n], vec![0.0; n * n]);
    slopes.means.fill(0.0);
    slopes.variances.fill(0.0);
    let mut value = 0.0;
    visit_nodes(mean, variance, |f, weight| {
        likelihood.gradient(y, f, &mut gradient);
        likelihood.hessian(y, f, &mut hessian);
        value += weight * likelihood.log_density(y, f);
        for c in 0..n {
            slopes.means[c] += weight * gradient[c];
            slopes.variances[c] -= 0.5 * weight * hessian[c * n + c];
        }
    });
    value
}

/// [`Likelihood::alpha_energy`] by quadrature, with slopes by expectations under the density that is tilted by `p^α`.
pub(crate) fn alpha_energy<L: Likelihood + ?Sized>(
    likelihood: &L,
    alpha: f64,
    y: &[f64],
    (mean, variance): (&[f64], &[f64]),
    slopes: Slopes<'_>,
) -> f64 {
    if alpha == 0.0 {
        return negative_expectation(likelihood, y, (mean, variance), slopes);
    }
    assert!(
        slopes.parameters.is_empty() && likelihood.values().is_empty(),
        "a likelihood with parameters must say how they matter"
    );
    let n = likelihood.outputs();
    let mut terms = Vec::new();
    visit_nodes(mean, variance, |f, weight| terms.push(weight.ln() + alpha * likelihood.log_density(y, f)));
    let log_expectation = log_sum_exp(&terms);
    let (mut gradient, mut hessian) = (vec![0.0; n], vec![0.0; n * n]);
    slopes.means.fill(0.0);
    slopes.variances.fill(0.0);
    let mut node = 0;
    visit_nodes(mean, variance, |f, _| {
        let weight = (terms[node] - log_expectation).exp();
        node += 1;
        likelihood.gradient(y, f, &mut gradient);
        likelihood.hessian(y, f, &mut hessian);
        for c in 0..n {
            slopes.means[c] -= weight * gradient[c];
            slopes.variances[c] += 0.5 * weight * (hessian[c * n + c] - alpha * gradient[c] * gradient[c]);
        }
    });
    -log_expectation / alpha
}

/// [`Likelihood::predictive_moments`] by quadrature: the law of total variance.
pub(crate) fn predictive_moments<L: Likelihood + ?Sized>(
    likelihood: &L,
    mean: &[f64],
    variance: &[f64],
    out: (&mut [f64], &mut [f64]),
) {
    let (means, variances) = out;
    let (mut m, mut v) = (vec![0.0; means.len()], vec![0.0; means.len()]);
    means.fill(0.0);
    variances.fill(0.0);
    visit_nodes(mean, variance, |f, weight| {
        likelihood.moments(f, &mut m, &mut v);
        means.iter_mut().zip(&m).for_each(|(mean, m)| *mean += weight * m);
    });
    // About the mean, so that nothing cancels.
    visit_nodes(mean, variance, |f, weight| {
        likelihood.moments(f, &mut m, &mut v);
        for (i, out) in variances.iter_mut().enumerate() {
            *out += weight * (v[i] + (m[i] - means[i]) * (m[i] - means[i]));
        }
    });
}

/// [`Likelihood::log_predictive_density`] by quadrature, in log space.
pub(crate) fn log_predictive_density<L: Likelihood + ?Sized>(
    likelihood: &L,
    y: &[f64],
    mean: &[f64],
    variance: &[f64],
) -> f64 {
    let mut terms = Vec::new();
    visit_nodes(mean, variance, |f, weight| terms.push(weight.ln() + likelihood.log_density(y, f)));
    log_sum_exp(&terms)
}
