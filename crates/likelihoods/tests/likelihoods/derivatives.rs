//! Every likelihood against differences, enumeration and simulation.

use posterior_likelihoods::{
    Bernoulli, Categorical, FullGaussian, GaussHermite, Gaussian, HeteroscedasticGaussian, Link,
    NegativeBinomial, OutputLikelihood, Poisson, RobustMax, StudentT,
};
use posterior_linalg::random::Streams;
use posterior_optim::check;
use proptest::prelude::*;

const COVARIANCE: [f64; 9] = [0.9, 0.4, -0.2, 0.4, 0.6, 0.1, -0.2, 0.1, 1.3];

/// A likelihood, two targets, and latent values.
fn cases() -> Vec<(OutputLikelihood, [Vec<f64>; 2], Vec<f64>)> {
    use OutputLikelihood as L;
    let f = vec![0.4, -1.1, 2.3];
    let bernoulli = |link| L::Bernoulli(Bernoulli::new(3, link).unwrap());
    let events = || [vec![1.0, 0.0, 1.0], vec![0.0, 0.0, 0.0]];
    let real = || [vec![0.3, -0.2, 1.9], vec![-4.0, 0.0, 2.0]];
    vec![
        (L::Gaussian(Gaussian::independent(vec![0.4, 1.2, 0.05]).unwrap()), real(), f.clone()),
        (L::FullGaussian(FullGaussian::new(3, COVARIANCE.to_vec()).unwrap()), real(), f.clone()),
        (L::Categorical(Categorical::new(3).unwrap()), [vec![1.0], vec![2.0]], f.clone()),
        (L::Categorical(Categorical::new(2).unwrap()), [vec![0.0], vec![1.0]], vec![0.3, -0.2]),
        (L::RobustMax(RobustMax::new(3, 0.02).unwrap()), [vec![1.0], vec![2.0]], f.clone()),
        (bernoulli(Link::Logit), events(), f.clone()),
        (bernoulli(Link::Probit), events(), f.clone()),
        (L::Poisson(Poisson::new(3).unwrap()), [vec![2.0, 0.0, 11.0], vec![0.0, 1.0, 30.0]], f.clone()),
        (
            L::HeteroscedasticGaussian(HeteroscedasticGaussian::new(2).unwrap()),
            [vec![0.3, -0.7], vec![3.0, 1.0]],
            vec![0.4, -1.1, 0.8, -1.5],
        ),
        (L::StudentT(StudentT::new(0.4, 5.0).unwrap().with_outputs(3)), real(), f),
        (
            L::NegativeBinomial(NegativeBinomial::new(3.0).unwrap().with_outputs(2)),
            [vec![2.0, 0.0], vec![0.0, 7.0]],
            vec![0.4, -1.1],
        ),
    ]
}

fn vector(n: usize, write: impl FnOnce(&mut [f64])) -> Vec<f64> {
    let mut out = vec![f64::NAN; n];
    write(&mut out);
    out
}

/// Gradient, Hessian and curvature.
fn derivatives(l: &OutputLikelihood, y: &[f64], f: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let n = l.outputs();
    (
        vector(n, |out| l.gradient(y, f, out)),
        vector(n * n, |out| l.hessian(y, f, out)),
        vector(n * n, |out| l.curvature(y, f, out)),
    )
}

#[test]
fn derivatives_agree_with_differences() {
    for (l, targets, f) in cases() {
        for y in targets {
            l.check_target(&y).unwrap();
            let (gradient, hessian, _) = derivatives(&l, &y, &f);
            check::assert_close(&gradient, &check::gradient(|f| l.log_density(&y, f), &f), 1e-8, 1e-8);
            for i in 0..f.len() {
                let row = check::gradient(|f| -derivatives(&l, &y, f).0[i], &f);
                check::assert_close(&hessian[i * f.len()..(i + 1) * f.len()], &row, 1e-8, 1e-8);
            }
        }
    }
}

#[test]
fn the_root_squares_to_the_curvature_and_the_products_are_products() {
    for (l, [y, _], f) in cases() {
        let (n, s) = (l.outputs(), l.root_width());
        let (_, hessian, curvature) = derivatives(&l, &y, &f);
        let exact = !matches!(
            l,
            OutputLikelihood::HeteroscedasticGaussian(_)
                | OutputLikelihood::StudentT(_)
                | OutputLikelihood::NegativeBinomial(_)
        );
        assert_eq!(exact, curvature == hessian, "{l:?}");
        let root = vector(n * s, |out| l.root(&y, &f, out));
        let square: Vec<f64> =
            (0..n * n).map(|e| (0..s).map(|k| root[(e / n) * s + k] * root[(e % n) * s + k]).sum()).collect();
        check::assert_close(&square, &curvature, 1e-13, 1e-14);
        let u: Vec<f64> = (0..n).map(|i| 0.7 - 0.9 * i as f64).collect();
        let times = |matrix: &[f64], width: usize, v: &[f64]| -> Vec<f64> {
            matrix.chunks(width).map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
        };
        let product = vector(n, |out| l.curvature_product(&y, &f, &u, out));
        check::assert_close(&product, &times(&curvature, n, &u), 1e-13, 1e-14);
    }
}

#[test]
fn the_curvature_needs_a_target_only_for_the_probit_link() {
    for (l, [y, other], f) in cases() {
        let differs = derivatives(&l, &y, &f).2 != derivatives(&l, &other, &f).2;
        assert_eq!(differs, l.curvature_needs_target(), "{l:?}");
        if !differs {
            let missing = vec![f64::NAN; l.target_width()];
            assert_eq!(derivatives(&l, &y, &f).2, derivatives(&l, &missing, &f).2, "{l:?}");
        }
    }
}

/// All targets that matter with their probabilities.
fn enumerate(l: &OutputLikelihood, f: &[f64]) -> Vec<(Vec<f64>, f64)> {
    let weigh = |y: Vec<f64>| {
        let p = l.log_density(&y, f).exp();
        (y, p)
    };
    match l {
        OutputLikelihood::Categorical(_) | OutputLikelihood::RobustMax(_) => {
            (0..l.outputs()).map(|k| weigh(vec![k as f64])).collect()
        }
        OutputLikelihood::Bernoulli(_) => {
            (0..8).map(|k| weigh((0..3).map(|i| f64::from(k >> i & 1)).collect())).collect()
        }
        // The rates are 1.5, 0.33 and 10: what is left out has a probability below 1e-20 each.
        OutputLikelihood::Poisson(_) => {
            let grid = |a: u32, b: u32, c: u32| weigh(vec![a.into(), b.into(), c.into()]);
            (0..30)
                .flat_map(|a| (0..20).flat_map(move |b| (0..70).map(move |c| (a, b, c))))
                .map(|(a, b, c)| grid(a, b, c))
                .collect()
        }
        // Means of 1.5 and 0.33 with a dispersion of 3: probabilities fall at least by a factor of 3 from one count to the next.
        OutputLikelihood::NegativeBinomial(_) => (0..60u32)
            .flat_map(|a| (0..40u32).map(move |b| (a, b)))
            .map(|(a, b)| weigh(vec![a.into(), b.into()]))
            .collect(),
        // Scores are polynomials of degree 2 in y, so quadrature is exact.
        OutputLikelihood::HeteroscedasticGaussian(_) => {
            let rule = GaussHermite::new(8);
            rule.nodes(f[0], f[2].exp())
                .flat_map(|(a, p)| {
                    rule.nodes(f[1], f[3].exp()).map(move |(b, q)| (vec![a, b], p * q)).collect::<Vec<_>>()
                })
                .collect()
        }
        OutputLikelihood::Gaussian(_) | OutputLikelihood::FullGaussian(_) | OutputLikelihood::StudentT(_) => {
            Vec::new()
        }
    }
}

#[test]
fn probabilities_sum_to_one_and_the_curvature_is_the_fisher_matrix() {
    let mut checked = 0;
    for (l, _, f) in cases() {
        let targets = enumerate(&l, &f);
        if targets.is_empty() {
            continue;
        }
        checked += 1;
        let n = f.len();
        let (mut total, mut score, mut fisher, mut curvature) =
            (0.0, vec![0.0; n], vec![0.0; n * n], vec![0.0; n * n]);
        for (y, p) in targets {
            let (g, _, b) = derivatives(&l, &y, &f);
            total += p;
            for i in 0..n {
                score[i] += p * g[i];
                for j in 0..n {
                    fisher[i * n + j] += p * g[i] * g[j];
                    curvature[i * n + j] += p * b[i * n + j];
                }
            }
        }
        check::assert_close(&[total], &[1.0], 1e-12, 0.0);
        check::assert_close(&score, &vec![0.0; n], 0.0, 1e-12);
        check::assert_close(&fisher, &curvature, 1e-12, 1e-12);
    }
    assert_eq!(checked, 8);
}

#[test]
fn samples_have_a_score_of_mean_zero_and_the_right_second_moments() {
    // Bartlett's identities: E[g] = 0 and E[g gᵀ - H] = 0 under y ~ p(. | f), for the exact Hessian H.
    let count = 40_000;
    for (case, (l, _, f)) in cases().into_iter().enumerate() {
        let mut rng = Streams::new(3).child("case", case as u64).stream("samples");
        let n = f.len();
        let mut y = vec![0.0; l.target_width()];
        let (mut sum, mut squares) = (vec![0.0; n + n * n], vec![0.0; n + n * n]);
        for _ in 0..count {
            l.sample(&f, &mut rng, &mut y);
            l.check_target(&y).unwrap();
            let (g, h, _) = derivatives(&l, &y, &f);
            let second = (0..n * n).map(|e| g[e / n] * g[e % n] - h[e]);
            for (k, value) in g.iter().copied().chain(second).enumerate() {
                sum[k] += value;
                squares[k] += value * value;
            }
        }
        for k in 0..sum.len() {
            let mean = sum[k] / f64::from(count);
            // Five standard errors, estimated from the draws themselves.
            let error = ((squares[k] / f64::from(count) - mean * mean).max(0.0) / f64::from(count)).sqrt();
            assert!(mean.abs() <= 5.0 * error + 1e-12, "{l:?}, moment {k}: {mean} with error {error}");
        }
    }
}

#[test]
fn classes_keep_relative_accuracy_when_one_is_certain() {
    let l = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let f = [50.0, 0.0, -3.0];
    // p₀ rounds to one; the others are exp(-50) and exp(-53) to 1e-21.
    let (a, b) = ((-50f64).exp(), (-53f64).exp());
    check::assert_close(&[l.log_density(&[0.0], &f)], &[-(a + b)], 1e-14, 0.0);
    let (g, _, curvature) = derivatives(&l, &[0.0], &f);
    check::assert_close(&g, &[a + b, -a, -b], 1e-14, 0.0);
    check::assert_close(&curvature[..3], &[a + b, -a, -b], 1e-14, 0.0);
    let product = vector(3, |out| l.curvature_product(&[0.0], &f, &[5.0, 4.0, 2.0], out));
    check::assert_close(&product, &[a + 3.0 * b, -a, -3.0 * b], 1e-14, 0.0);
    // The triangular factor: its first column is that of B over the root of its first entry.
    let root = vector(6, |out| l.root(&[0.0], &f, out));
    let first = (a + b).sqrt();
    check::assert_close(&[root[0], root[2], root[4]], &[first, -a / first, -b / first], 1e-14, 0.0);
}

#[test]
fn extreme_latent_values_are_finite() {
    for (l, targets, f) in cases() {
        if matches!(l, OutputLikelihood::Poisson(_) | OutputLikelihood::HeteroscedasticGaussian(_)) {
            continue; // exp(±10⁴) is not a number of the machine
        }
        for sign in [1.0, -1.0] {
            let f: Vec<f64> = (0..f.len()).map(|i| sign * 1e4 * (1.0 - i as f64)).collect();
            for y in &targets {
                let (g, h, b) = derivatives(&l, y, &f);
                let root = vector(f.len() * l.root_width(), |out| l.root(y, &f, out));
                let all = [vec![l.log_density(y, &f)], g, h, b, root].concat();
                assert!(all.iter().all(|v| v.is_finite()), "{l:?} {all:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_softmax_curvature_is_positive_semidefinite_for_any_logits(
        f in prop::collection::vec(-1e4..1e4f64, 2..12), seed in 0u64..1000,
    ) {
        let n = f.len();
        let l = OutputLikelihood::Categorical(Categorical::new(n).unwrap());
        let u: Vec<f64> = (0..n).map(|i| ((seed + 7 * i as u64) % 13) as f64 - 6.0).collect();
        let (_, _, b) = derivatives(&l, &[0.0], &f);
        let product = vector(n, |out| l.curvature_product(&[0.0], &f, &u, out));
        let root = vector(n * (n - 1), |out| l.root(&[0.0], &f, out));
        let transposed: Vec<f64> =
            (0..n - 1).map(|k| (0..n).map(|i| root[i * (n - 1) + k] * u[i]).sum()).collect();
        let quadratic: f64 = u.iter().zip(&product).map(|(a, b)| a * b).sum();
        let norm: f64 = transposed.iter().map(|r| r * r).sum();
        prop_assert!((quadratic - norm).abs() <= 1e-13);
        for i in 0..n {
            prop_assert!(b[i * n..(i + 1) * n].iter().sum::<f64>().abs() <= 1e-15);
            prop_assert!((product[i] - (0..n).map(|j| b[i * n + j] * u[j]).sum::<f64>()).abs() <= 1e-14);
        }
    }
}
