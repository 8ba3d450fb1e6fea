//! The fast pool against dense algebra.

use crate::labelling::{ClassGaussianLabels, PoolPosterior};
use faer::Mat;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching, PseudoObservation};

fn wave(i: usize, j: usize) -> f64 {
    2.0 * ((i * 7 + j * 3) as f64 * 0.61).sin()
}

fn kernel(text: &str) -> Box<dyn Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

/// `A⁻¹ b` by elimination with pivots.
fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

/// Mean and variance at row j after noisy observations, with a kernel that is written out.
fn dense(
    value: &dyn Fn(usize, usize) -> f64,
    rows: &[usize],
    observed: &[PseudoObservation],
    j: usize,
) -> (f64, f64) {
    let noisy: Vec<Vec<f64>> = (0..rows.len())
        .map(|a| {
            let noise = |b: usize| if a == b { observed[a].variance } else { 0.0 };
            (0..rows.len()).map(|b| value(rows[a], rows[b]) + noise(b)).collect()
        })
        .collect();
    let across: Vec<f64> = rows.iter().map(|&row| value(row, j)).collect();
    let weights = solved(noisy, across.clone());
    let mean = weights.iter().zip(observed).map(|(w, o)| w * o.target).sum();
    let explained: f64 = weights.iter().zip(&across).map(|(w, c)| w * c).sum();
    (mean, value(j, j) - explained)
}

#[test]
fn label_by_label_is_a_fresh_conditioning() {
    let inputs = || Mat::from_fn(30, 2, wave);
    let square = |i: usize, j: usize| -> f64 {
        let d2: f64 = (0..2).map(|k| (wave(i, k) - wave(j, k)).powi(2)).sum();
        (-0.5 * d2).exp() + 1.0
    };
    // Bayesian linear regression with a bias: the other setting of the source.
    let linear = |i: usize, j: usize| -> f64 { (0..2).map(|k| wave(i, k) * wave(j, k)).sum::<f64>() + 1.0 };
    // A row that is labelled twice, and duplicates of rows.
    let rows = [3usize, 17, 8, 3, 25, 0];
    let classes = [0usize, 1, 2, 0, 1, 1];
    let settings: [(Matching, f64); 4] = [
        (Matching::Variational, 0.1),
        (Matching::Moment, 0.01),
        (Matching::Laplace, 0.3),
        (Matching::MomentOriginal, 0.01),
    ];
    for (matching, pseudo_count) in settings {
        for (text, value) in
            [("se + constant", &square as &dyn Fn(usize, usize) -> f64), ("linear + constant", &linear)]
        {
            let gaussian_labels =
                ClassGaussianLabels::new(3, &Gaussianised::new(matching, pseudo_count).unwrap())
                    .unwrap()
                    .standardised();
            let observed: Vec<Vec<PseudoObservation>> =
                classes.iter().map(|&class| gaussian_labels.of_all(class)).collect();
            let together =
                PoolPosterior::prior(kernel(text), inputs(), 3).conditioned(&rows, &observed).unwrap();
            let mut one_by_one = PoolPosterior::prior(kernel(text), inputs(), 3);
            for (row, observed) in rows.iter().zip(&observed) {
                one_by_one.observe(*row, observed);
            }
            // Some at once, others later.
            let mut mixed = PoolPosterior::prior(kernel(text), inputs(), 3)
                .conditioned(&rows[..4], &observed[..4])
                .unwrap();
            mixed = mixed.conditioned(&rows[4..5], &observed[4..5]).unwrap();
            mixed.observe(rows[5], &observed[5]);
            for c in 0..3 {
                let own: Vec<PseudoObservation> = observed.iter().map(|o| o[c]).collect();
                for j in 0..30 {
                    let (mean, variance) = dense(value, &rows, &own, j);
                    for fast in [&together, &one_by_one, &mixed] {
                        let scale = mean.abs().max(1.0);
                        assert!((fast.mean(j, c) - mean).abs() < 1e-9 * scale, "{text} {matching:?} {j} {c}");
                        assert!((fast.variance(j, c) - variance).abs() < 1e-9, "{text} {matching:?} {j} {c}");
                    }
                }
            }
            assert_eq!((mixed.observations(), mixed.functions(), mixed.len()), (6, 3, 30));
        }
    }
}

#[test]
fn what_is_pretended_shrinks_variances_and_is_forgotten() {
    let gaussian_labels =
        ClassGaussianLabels::new(2, &Gaussianised::new(Matching::Variational, 0.1).unwrap()).unwrap();
    let mut pool = PoolPosterior::prior(kernel("se"), Mat::from_fn(20, 2, wave), 1);
    pool.observe(4, &gaussian_labels.of_all(1));
    let before = pool.clone();
    let mark = pool.mark();
    pool.pretend(9, &[0.5]);
    // As if its mean had been seen with a variance of 2.
    let mut seen = before.clone();
    seen.observe(9, &[PseudoObservation { target: before.mean(9, 0), variance: 2.0 }]);
    for j in 0..20 {
        assert_eq!(pool.mean(j, 0), before.mean(j, 0));
        assert!((pool.variance(j, 0) - seen.variance(j, 0)).abs() < 1e-14);
        assert!((pool.mean(j, 0) - seen.mean(j, 0)).abs() < 1e-14);
        assert!(pool.variance(j, 0) <= mark.variance(j, 0));
    }
    assert!(pool.variance(9, 0) < 0.7 * before.variance(9, 0));
    pool.go_back(&mark);
    for j in 0..20 {
        assert_eq!((pool.mean(j, 0), pool.variance(j, 0)), (before.mean(j, 0), before.variance(j, 0)));
    }
    // And goes on as if nothing had been.
    pool.observe(2, &gaussian_labels.of_all(0));
    let mut straight = before;
    straight.observe(2, &gaussian_labels.of_all(0));
    assert!((0..20).all(|j| pool.mean(j, 0) == straight.mean(j, 0)));
}
