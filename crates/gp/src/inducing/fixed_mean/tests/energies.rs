use super::*;
use crate::inducing::DEFAULT_JITTER;
use crate::inducing::fixed_mean::{Draws, energy};
use posterior_kernels::BlockKernel;
use posterior_likelihoods::Slopes;
use posterior_linalg::random::Streams;
use posterior_optim::check;

/// The covariance of the process between two sets from its definition, `k - k_z (A⁻¹ + K_z)⁻¹ k_z`.
fn dense_blocks(case: &Case) -> (Mat<f64>, Mat<f64>, Mat<f64>, Mat<f64>) {
    let model = &case.model;
    let (a, along) = (model.amplitude(), Some(model.directions()));
    let Ok(kz) = model.kernel().gram(model.points(), along);
    let Ok(kx) = model.kernel().cross((&case.x, None), (model.points(), along));
    let Ok(kxx) = model.kernel().gram(&case.x, None);
    let (kz, kx, kxx) = (kz * faer::Scale(a), kx * faer::Scale(a), kxx * faer::Scale(a));
    let outer = model.root() * model.root().transpose();
    let s = inverse(&(inverse(&outer) + &kz));
    let v = &kxx - &kx * &s * kx.transpose();
    (kz, kx, s, v)
}

fn energies(case: &Case, alpha: f64, means: &[f64], v: &Mat<f64>) -> f64 {
    let (c, likelihood) = (case.model.outputs(), case.model.likelihood());
    let width = likelihood.target_width();
    let own = likelihood.values().len();
    (0..case.x.nrows())
        .map(|n| {
            let variances: Vec<f64> = (0..c).map(|o| v[(n * c + o, n * c + o)]).collect();
            let (mut a, mut b, mut p) = (vec![0.0; c], vec![0.0; c], vec![0.0; own]);
            let slopes = Slopes { means: &mut a, variances: &mut b, parameters: &mut p };
            let y = &case.targets[n * width..(n + 1) * width];
            likelihood.alpha_energy(alpha, y, &means[n * c..(n + 1) * c], &variances, slopes)
        })
        .sum()
}

#[test]
fn losses_are_those_of_dense_formulas() {
    for case in cases() {
        let (kz, kx, s, v) = dense_blocks(&case);
        let outer = case.model.root() * case.model.root().transpose();
        let m = kz.nrows();
        // log det(I + K A) by a symmetric form.
        let root = case.model.root();
        let h = Mat::<f64>::identity(m, m) + root.transpose() * &kz * root;
        let trace: f64 = (0..m).map(|i| (&kz * &s)[(i, i)]).sum();
        let divergence = 0.5 * (log_determinant(&h) - trace);
        assert!(divergence > 0.0 && outer.norm_max() > 0.0);
        let scale = 50.0 / 4.0;
        for alpha in [0.0, 0.5, 1.0] {
            let found = energy(&case.model, case.batch(), alpha, None).unwrap();
            let expected = scale * energies(&case, alpha, &case.means, &v) + divergence;
            let close = |a: f64, b: f64| (a - b).abs() < 1e-10 * (1.0 + b.abs());
            assert!(close(found.divergence, divergence), "{}", case.name);
            assert!(close(found.main, expected), "{} {alpha}: {} {expected}", case.name, found.main);
            let expected = case.model.companion().map_or(0.0, |mean| {
                let ridge = DEFAULT_JITTER * (0..m).map(|i| kz[(i, i)]).sum::<f64>() / m as f64;
                let raised = &kz + Mat::<f64>::identity(m, m) * faer::Scale(ridge);
                let mean = Mat::from_fn(m, 1, |i, _| mean[i]);
                let weights = inverse(&raised) * &mean;
                let q = &kx * &weights;
                scale * energies(&case, alpha, q.col_as_slice(0), &v)
                    + 0.5 * (mean.transpose() * &weights)[(0, 0)]
                    + divergence
            });
            assert!(
                close(found.companion, expected),
                "{} {alpha}: {} {expected}",
                case.name,
                found.companion
            );
            assert_eq!((found.clipped, found.jitter), (0, 0.0));
        }
    }
}

#[test]
fn every_gradient_equals_finite_differences() {
    for case in cases() {
        for alpha in [0.0, 0.5, 1.0] {
            let at = |theta: &[f64]| {
                let mut moved = case.model.clone();
                moved.set_unconstrained(theta).unwrap();
                let found = energy(&moved, case.batch(), alpha, None).unwrap();
                found.main + found.companion
            };
            let theta = case.model.unconstrained();
            let found = energy(&case.model, case.batch(), alpha, None).unwrap();
            let gradient = case.model.chain(&found.gradient);
            let numeric = check::gradient(at, &theta);
            let scale = numeric.iter().map(|g| g.abs()).fold(0.0, f64::max);
            check::assert_close(&gradient, &numeric, 1e-6, 1e-8 * scale);
        }
    }
}

#[test]
fn what_is_frozen_is_left_out_and_changes_nothing_else() {
    let case = &cases()[2];
    let whole = energy(&case.model, case.batch(), 1.0, None).unwrap().gradient;
    let mut frozen = case.model.clone();
    frozen.learned = Learned::NONE;
    let m = frozen.inducing();
    assert_eq!(frozen.unconstrained().len(), m * (m + 1) / 2 + m);
    let part = energy(&frozen, case.batch(), 1.0, None).unwrap().gradient;
    assert_eq!((&part.root, &part.companion), (&whole.root, &whole.companion));
    assert!(part.kernel.is_empty() && part.likelihood.is_empty() && part.points.is_empty());
}

#[test]
fn draws_estimate_the_loss_over_whole_covariances() {
    let case = &cases()[4];
    let draws = |pairs| Some(Draws { pairs, streams: Streams::new(5) });
    let again = energy(&case.model, case.batch(), 0.5, draws(8)).unwrap();
    assert_eq!(energy(&case.model, case.batch(), 0.5, draws(8)).unwrap().main, again.main);
    let found = energy(&case.model, case.batch(), 0.5, draws(30_000)).unwrap();
    let gradient = case.model.chain(&found.gradient);
    let numeric = check::gradient(
        |theta| {
            let mut moved = case.model.clone();
            moved.set_unconstrained(theta).unwrap();
            energy(&moved, case.batch(), 0.5, draws(30_000)).unwrap().main
        },
        &case.model.unconstrained(),
    );
    // Both are means of 60,000 draws; a term of a slope is some ten times the slope at most.
    let scale = numeric.iter().map(|g| g.abs()).fold(0.0, f64::max);
    check::assert_close(&gradient, &numeric, 0.0, 10.0 * scale / 60_000f64.sqrt());
}

#[test]
fn the_mean_over_a_pass_is_the_loss_of_all_rows() {
    let x = matrix(12, 2, 3);
    let (means, targets): (Vec<f64>, Vec<f64>) = (0..12).map(|k| (wave(k), wave(k + 5))).unzip();
    let mut model = plain(matrix(4, 2, 9), 0.2, "rbf", 1.3);
    let theta: Vec<f64> = (0..10).map(|k| 0.5 * wave(k) + 1.0).collect();
    model.set_unconstrained(&theta).unwrap();
    let at = |range: std::ops::Range<usize>| {
        let points = x.as_ref().subrows(range.start, range.len()).to_owned();
        let batch =
            Batch { points: &points, means: &means[range.clone()], targets: &targets[range], rows: 12 };
        let found = energy(&model, batch, 1.0, None).unwrap();
        (found.main, model.chain(&found.gradient))
    };
    let whole = at(0..12);
    let parts: Vec<_> = (0..4).map(|k| at(3 * k..3 * k + 3)).collect();
    let mean = parts.iter().map(|p| p.0).sum::<f64>() / 4.0;
    assert!((mean - whole.0).abs() < 1e-10 * whole.0.abs());
    let gradient: Vec<f64> = (0..10).map(|k| parts.iter().map(|p| p.1[k]).sum::<f64>() / 4.0).collect();
    check::assert_close(&gradient, &whole.1, 1e-10, 1e-10);
}

#[test]
fn without_a_root_it_is_the_prior_and_with_a_large_one_nothing_is_left_at_the_points() {
    let case = &cases()[2];
    let mut model = case.model.clone();
    let m = model.inducing();
    model.set_root(Mat::<f64>::zeros(m, m).as_ref()).unwrap();
    assert_eq!(model.divergence().unwrap(), 0.0);
    let inducing = model.prepared_points().unwrap();
    let Ok((found, _)) =
        model.covariance().unwrap().covariances(model.kernel(), &inducing, (&case.x, 0..4), true);
    let Ok(prior) = model.kernel().blocks(&case.x, None);
    assert!(found.iter().zip(&prior).all(|(f, p)| (f - model.amplitude() * p).abs() < 1e-13));
    model.set_root((Mat::<f64>::identity(m, m) * faer::Scale(1e5)).as_ref()).unwrap();
    let covariance = model.covariance().unwrap();
    let Ok((at_points, _)) = covariance.covariances(model.kernel(), &inducing, (model.points(), 0..m), false);
    for (i, label) in model.labels().iter().enumerate() {
        assert!(at_points[2 * i + label] < 1e-8, "{}", at_points[2 * i + label]);
    }
    let Ok(gram) = model.kernel().gram(model.points(), Some(model.directions()));
    let s = covariance.whitener().transpose() * covariance.whitener();
    let unit = s * gram * faer::Scale(model.amplitude()) - Mat::<f64>::identity(m, m);
    assert!(unit.norm_max() < 1e-6);
}

/// `½ (tr Σ - D - log det Σ)` with `Σ = (I + Φᵀ A Φ)⁻¹` over the weights of a linear model.
#[test]
fn the_divergence_is_that_of_weights() {
    let z = matrix(4, 2, 2);
    let mut model = plain(z.clone(), 0.3, "linear", 1.0);
    let theta: Vec<f64> = (0..10).map(|k| wave(k + 2)).collect();
    model.set_unconstrained(&theta).unwrap();
    let outer = model.root() * model.root().transpose();
    let precision = Mat::<f64>::identity(2, 2) + z.transpose() * outer * &z;
    let covariance = inverse(&precision);
    let expected = 0.5 * (covariance[(0, 0)] + covariance[(1, 1)] - 2.0 + log_determinant(&precision));
    assert!((model.divergence().unwrap() - expected).abs() < 1e-12 * expected);
}
