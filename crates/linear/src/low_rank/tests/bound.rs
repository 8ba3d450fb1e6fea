//! The bound of batches: its optimum is the exact posterior, and its slopes are finite differences.

use super::*;
use posterior_likelihoods::{
    Bernoulli, Categorical, Gaussian, Likelihood, Link, NegativeBinomial, Poisson, StudentT,
};
use posterior_optim::check;

#[test]
fn one_natural_step_on_all_rows_is_the_posterior_where_the_bound_is_the_evidence() {
    let (phi, y) = (normal(4, 9, "phi"), normal(9, 1, "y"));
    let k = squares(&phi);
    let likelihood = Gaussian::new(NOISE, 0.0);
    let rows = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
    let mut q = WeightDistribution::prior(4, 1, true);
    let mut buffers = DataTermBuffers::default();
    let slopes = {
        let term = DataTerm::new(&q, &likelihood, 0.0);
        term.slopes(phi.as_ref(), Mat::zeros(9, 1), &k, &rows, 1.0, &mut buffers)
    };
    natural_step(&mut q, &slopes.of_q, 1.0).unwrap();
    let evidence = solved(&ScaledRows::new(phi.clone(), y.clone(), vec![NOISE; 9], k.clone()), 0.0);
    let posterior = evidence.posterior().unwrap();
    assert!((q.mean() - posterior.mean()).norm_max() < 1e-11);
    assert!((&q.roots()[0] - &posterior.roots()[0]).norm_max() < 1e-11);
    let term = DataTerm::new(&q, &likelihood, 0.0);
    let bound = term.value(phi.as_ref(), Mat::zeros(9, 1), &k, &rows, &mut buffers) - q.divergence();
    assert_near(bound, evidence.value, 1e-10);
    // The average over all batches of two rows is the whole.
    let mut sum = 0.0;
    for i in 0..9 {
        for j in 0..i {
            let phi = Mat::from_fn(4, 2, |a, b| phi[(a, [i, j][b])]);
            let y = Mat::from_fn(2, 1, |b, _| y[([i, j][b], 0)]);
            let rows = ObservedRows { targets: y.as_ref(), ..rows };
            let k = [k[i], k[j]];
            sum += term.slopes(phi.as_ref(), Mat::zeros(2, 1), &k, &rows, 4.5, &mut buffers).value / 36.0;
        }
    }
    assert_near(sum - q.divergence(), bound, 1e-10);
}

/// A likelihood, and targets of it made of normal numbers.
type Case = (Box<dyn Likelihood>, fn(f64) -> f64);

#[test]
fn slopes_of_every_power_and_likelihood_are_finite_differences() {
    let (n, m) = (5, 3);
    let (phi, z) = (normal(m, n, "phi"), normal(n, 1, "y"));
    let classes = || Box::new(Categorical::new(3).unwrap());
    let class = |z: f64| (z.abs() * 2.0).floor().min(2.0);
    // Whether functions share one covariance of their weights.
    let cases: [(Case, bool); 7] = [
        ((Box::new(Gaussian::new(0.3, 0.0)), |z| z), true),
        ((Box::new(Bernoulli::new(1, Link::Logit).unwrap()), |z| f64::from(u8::from(z > 0.0))), true),
        ((Box::new(Poisson::new(1).unwrap()), |z| (z.abs() * 3.0).floor()), true),
        ((Box::new(NegativeBinomial::new(1.7).unwrap()), |z| (z.abs() * 3.0).floor()), true),
        ((Box::new(StudentT::new(0.4, 4.0).unwrap()), |z| z), true),
        ((classes(), class), true),
        ((classes(), class), false),
    ];
    for ((likelihood, of), shared) in cases {
        let latents = likelihood.outputs();
        let y = Mat::from_fn(n, 1, |i, _| of(z[(i, 0)]));
        let rows = ObservedRows { targets: y.as_ref(), noise: None, weights: None, offsets: None };
        for power in [0.0, 0.5, 1.0] {
            let mut q = WeightDistribution::prior(m, latents, shared);
            let start: Vec<f64> = (0..q.unconstrained_len()).map(|i| 0.3 - 0.11 * (i % 9) as f64).collect();
            let own = likelihood.unconstrained().len();
            let point: Vec<f64> = [
                start,
                (0..n).flat_map(|i| phi.col_as_slice(i).to_vec()).collect(),
                likelihood.unconstrained(),
            ]
            .concat();
            let length = q.unconstrained_len();
            let mut value = |point: &[f64]| {
                let mut q = WeightDistribution::prior(m, latents, shared);
                let mut likelihood = likelihood.clone_box();
                q.set_unconstrained(&point[..length]);
                likelihood.set_unconstrained(&point[length + m * n..]);
                let phi = Mat::from_fn(m, n, |j, i| point[length + i * m + j]);
                let term = DataTerm::new(&q, &*likelihood, power);
                let k = squares(&phi);
                let mut buffers = DataTermBuffers::default();
                1.5 * term.value(phi.as_ref(), Mat::zeros(n, latents), &k, &rows, &mut buffers)
                    - 0.7 * q.divergence()
            };
            let numeric = check::gradient(&mut value, &point);
            q.set_unconstrained(&point[..length]);
            let term = DataTerm::new(&q, &*likelihood, power);
            let mut buffers = DataTermBuffers::default();
            let slopes =
                term.slopes(phi.as_ref(), Mat::zeros(n, latents), &squares(&phi), &rows, 1.5, &mut buffers);
            let mut exact = Vec::new();
            slopes.of_q.unconstrained_into(&q, 0.7, 1.0, &mut exact);
            let h = slopes.of_prior_variances();
            let adjoint = term.features_adjoint(&slopes, &mut buffers);
            for i in 0..n {
                exact.extend((0..m).map(|j| adjoint[(j, i)] + 2.0 * h[i] * phi[(j, i)]));
            }
            exact.extend(likelihood.chain(&likelihood.unconstrained(), &slopes.parameters));
            assert_eq!(exact.len(), length + m * n + own);
            check::assert_close(&exact, &numeric, 2e-5, 2e-5);
        }
    }
}
