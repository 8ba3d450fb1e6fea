//! **Weights of rows**: a row of weight w counts as w rows that are equal to it.
//!
//! As a function of f the density of w equal observations is that of one with less noise, and a factor without f,
//!
//! ```text
//! N(y; f, v)^w = N(y; f, v/w) · (2πv)^{(1-w)/2} w^{-1/2}
//! ```
//!
//! so that the posterior is that of noise variances divided by the weights, and the evidence gains the logarithms of the factors, which tell the noise variance from what many rows say together.

use super::model::ExactGp;
use crate::Observations;
use std::f64::consts::PI;

/// What weights add to the log evidence of one target, and to its slope in the noise variance.
pub(super) fn gained(model: &ExactGp, data: &Observations) -> (f64, f64) {
    let Some(weights) = data.weights() else { return (0.0, 0.0) };
    let (mut value, mut slope) = (0.0, 0.0);
    for (i, w) in weights.iter().enumerate() {
        let noise = model.noise_variance_of_observation(data, i);
        value += 0.5 * ((1.0 - w) * (2.0 * PI * noise).ln() - w.ln());
        slope += 0.5 * (1.0 - w) / noise;
    }
    (value, slope)
}

#[cfg(test)]
mod tests {
    use crate::exact::{ExactGp, log_evidence, log_evidence_and_gradient};
    use crate::{MeanForm, Observations, Posterior};
    use faer::Mat;
    use posterior_kernels::KernelExpression;
    use posterior_likelihoods::Gaussian;
    use posterior_optim::{Parameters, check};

    fn model() -> ExactGp {
        let kernel = "matern32(ard)".parse::<KernelExpression>().unwrap();
        let kernel = kernel.build(&["a".into(), "b".into()]).unwrap();
        ExactGp::new(kernel, MeanForm::Constant, Gaussian::new(0.2, 1e-6), 2, 2)
    }

    /// Rows and how often each stands there; with known noise of their own.
    fn rows(counts: &[usize], noise: bool) -> (Observations, Observations) {
        let wave = |i: usize, j: usize| ((i * 5 + j * 3) as f64 * 0.7).sin();
        let of = |rows: &[usize]| {
            let noise = noise.then(|| rows.iter().map(|&i| 0.1 + 0.05 * i as f64).collect());
            let inputs = Mat::from_fn(rows.len(), 2, |i, j| wave(rows[i], j));
            let targets = Mat::from_fn(rows.len(), 2, |i, t| wave(rows[i], t + 7));
            Observations::new(inputs, targets, noise).unwrap()
        };
        let once: Vec<usize> = (0..counts.len()).collect();
        let repeated: Vec<usize> = once.iter().flat_map(|&i| vec![i; counts[i]]).collect();
        let weights = counts.iter().map(|c| *c as f64).collect();
        (of(&once).with_weights(weights).unwrap(), of(&repeated))
    }

    #[test]
    fn a_weight_is_a_row_that_is_repeated() {
        for noise in [false, true] {
            let (weighted, repeated) = rows(&[1, 3, 2, 1, 4, 1], noise);
            let [own, other] =
                [&weighted, &repeated].map(|data| log_evidence_and_gradient(&model(), data, None).unwrap());
            assert!((own.value - other.value).abs() < 1e-10, "{} {}", own.value, other.value);
            for (a, b) in own.gradient.iter().zip(&other.gradient) {
                assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
            }
            let x = Mat::from_fn(3, 2, |i, j| 0.4 * i as f64 - 0.3 * j as f64);
            let [own, other] = [weighted, repeated]
                .map(|data| model().condition(data).unwrap())
                .map(|own| (own.predict(x.as_ref()).unwrap(), own.log_evidence()));
            assert!((own.0.mean - &other.0.mean).norm_max() < 1e-10 && (own.1 - other.1).abs() < 1e-10);
            for (a, b) in own.0.latent_variance.iter().zip(&other.0.latent_variance) {
                assert!((a - b).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn weights_that_are_no_counts_have_a_gradient_too() {
        let (data, _) = rows(&[1; 6], true);
        let data = data.with_weights(vec![0.3, 1.0, 2.5, 0.01, 7.0, 1.2]).unwrap();
        let mut own = model();
        let found = log_evidence_and_gradient(&own, &data, None).unwrap().gradient;
        let values = own.values();
        let value = |at: &[f64]| {
            own.set_values(at);
            log_evidence(&own, &data, None).unwrap().value
        };
        check::assert_close(&found, &check::gradient(value, &values), 1e-6, 1e-7);
    }

    #[test]
    fn a_row_left_out_is_an_observation_of_weight_one() {
        let (weighted, _) = rows(&[1, 3, 2, 1, 4, 1], true);
        let left_out = model().condition(weighted.clone()).unwrap().leave_one_out();
        for i in 0..6 {
            let rest: Vec<usize> = (0..6).filter(|j| *j != i).collect();
            let posterior = model().condition(weighted.select(&rest).unwrap()).unwrap();
            let found = posterior.predict(weighted.inputs().subrows(i, 1)).unwrap();
            let noise = 0.2 + weighted.noise_variances().unwrap()[i];
            assert!((left_out.variance[i] - found.latent_variance[0] - noise).abs() < 1e-10);
            assert!((left_out.mean[(i, 1)] - found.mean[(0, 1)]).abs() < 1e-10);
        }
    }
}
