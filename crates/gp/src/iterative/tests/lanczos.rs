//! Variances by the Lanczos process and the log evidence by quadrature, against dense factors.

use super::*;
use crate::exact::{ExactGp, log_evidence as exact_log_evidence};
use crate::{MeanForm, Observations, Posterior};
use posterior_kernels::{Kernel, KernelExpression, diagonal, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::solve::{PreconditionerChoice, System};

fn kernel(text: &str, columns: usize) -> Box<dyn Kernel<f64>> {
    let names: Vec<String> = (0..columns).map(|i| format!("x{i}")).collect();
    text.parse::<KernelExpression>().unwrap().build(&names).unwrap()
}

const NOISE: f64 = 0.05;

fn posterior(text: &str, x: &Mat<f64>) -> (PathwisePosterior<f64>, crate::exact::ExactPosterior) {
    let n = x.nrows();
    let known = (0..n).map(|i| 0.01 + 0.001 * (i % 5) as f64).collect();
    let data = Observations::new(x.clone(), normal(n, 1, "targets"), Some(known)).unwrap();
    let (kernel, noise) = (kernel(text, x.ncols()), Gaussian::new(NOISE, 0.0));
    let mean = crate::Mean::new(MeanForm::Zero, x.ncols(), 1);
    let exact = ExactGp::new(kernel.clone_box(), MeanForm::Zero, noise.clone(), x.ncols(), 1);
    let settings = PathwiseSettings {
        budget: Budget { tolerance: 1e-10, ..Budget::steps(500) },
        samples: 0,
        ..PathwiseSettings::default()
    };
    let method = Method::ConjugateGradients(ConjugateGradientOptions::default());
    let model = PathwiseModel { kernel, mean, noise };
    let found =
        model.condition(data.clone(), Support::Rows(method), settings, Start::Zero, &mut watch).unwrap();
    (found, exact.condition(data).unwrap())
}

#[test]
fn variances_fall_with_the_rank_to_the_exact_ones_and_never_below() {
    for text in ["matern32(lengthscale=0.7)", "se(lengthscale=1.5)"] {
        let x = normal(90, 2, "rows");
        let (found, exact) = posterior(text, &x);
        let new = normal(25, 2, "new");
        let expected = exact.predict(new.as_ref()).unwrap().latent_variance;
        let mut before = diagonal(found.kernel(), new.as_ref());
        let mut excess = f64::INFINITY;
        for rank in [1, 2, 5, 10, 20, 40, 90, 200] {
            let LanczosVariances { latent_variance, clipped, basis } =
                found.lanczos_variance(new.as_ref(), rank).unwrap();
            for ((own, earlier), exact) in latent_variance.iter().zip(&before).zip(&expected) {
                assert!(*own <= earlier + 1e-12 && *own >= exact - 1e-9, "{rank}: {own} {earlier} {exact}");
            }
            assert!(basis.rank <= rank.min(90) && clipped == 0);
            // What is said of its error is that of the probes.
            let ratios: Vec<f64> = (0..16)
                .map(|i| (latent_variance[i * 25 / 16] / expected[i * 25 / 16]).sqrt() - 1.0)
                .collect();
            let mean = ratios.iter().sum::<f64>() / 16.0;
            // Solved for to a residual of 1e-4, a variance is off by at most its square times |k|² / noise: 1e-8 times some hundreds.
            assert!((basis.mean_excess - mean).abs() < 2e-5 * (1.0 + mean), "{} {mean}", basis.mean_excess);
            let largest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!((basis.largest_excess - largest).abs() < 2e-5 * (1.0 + largest));
            assert!(basis.mean_excess <= excess + 1e-4 && basis.probes == 16);
            (before, excess) = (latent_variance, basis.mean_excess);
        }
        for (own, exact) in before.iter().zip(&expected) {
            assert!((own - exact).abs() < 1e-9, "{text}: {own} {exact}");
        }
    }
}

#[test]
fn rows_that_the_mean_column_does_not_tell_apart_are_no_trap() {
    // Symmetric rows: the mean column is an even function, which never hears of odd ones. Rows far apart: all columns are alike, and one vector is an invariant subspace.
    let symmetric = Mat::from_fn(31, 1, |i, _| (i as f64 - 15.0) / 4.0);
    let apart = Mat::from_fn(31, 1, |i, _| 1e4 * i as f64);
    for (x, new, begins_anew) in [
        (symmetric, Mat::from_fn(3, 1, |i, _| [-2.9, 0.4, 2.0][i]), false),
        (apart, Mat::from_fn(3, 1, |i, _| [0.2, 1e5 - 0.3, 2e4][i]), true),
    ] {
        let data = Observations::new(x.clone(), normal(31, 1, "targets"), None).unwrap();
        let exact = ExactGp::new(kernel("matern12", 1), MeanForm::Zero, Gaussian::new(NOISE, 0.0), 1, 1);
        let exact = exact.condition(data.clone()).unwrap();
        let expected = exact.predict(new.as_ref()).unwrap().latent_variance;
        let model = PathwiseModel {
            kernel: kernel("matern12", 1),
            mean: crate::Mean::new(MeanForm::Zero, 1, 1),
            noise: Gaussian::new(NOISE, 0.0),
        };
        let settings = PathwiseSettings { samples: 0, ..PathwiseSettings::default() };
        let support = Support::Rows(Method::Direct);
        let found = model.condition(data, support, settings, Start::Zero, &mut watch).unwrap();
        let variances = found.lanczos_variance(new.as_ref(), 512).unwrap();
        let basis = variances.basis;
        assert!(basis.complete && (basis.restarts > 0) == begins_anew, "{basis:?}");
        for (own, exact) in variances.latent_variance.iter().zip(&expected) {
            assert!((own - exact).abs() < 1e-9, "{own} {exact}");
        }
    }
}

#[test]
fn single_precision_ends_where_rounding_begins_and_bad_questions_are_refused() {
    let x = normal(60, 2, "rows");
    let data = Observations::new(x, normal(60, 1, "targets"), None).unwrap();
    let text = "se(lengthscale=2)".parse::<KernelExpression>().unwrap();
    let model = PathwiseModel::<f32> {
        kernel: text.build(&["a".into(), "b".into()]).unwrap(),
        mean: crate::Mean::new(MeanForm::Zero, 2, 1),
        noise: Gaussian::new(1e-3, 0.0),
    };
    let settings = PathwiseSettings { samples: 0, ..PathwiseSettings::default() };
    let method = Method::ConjugateGradients(ConjugateGradientOptions::default());
    let found = model
        .condition(data.clone(), Support::Rows(method), settings, Start::Zero, &mut |_, _| Signal::Continue)
        .unwrap();
    let exact = ExactGp::new(kernel("se(lengthscale=2)", 2), MeanForm::Zero, Gaussian::new(1e-3, 0.0), 2, 1);
    let new = normal(10, 2, "new");
    let expected = exact.condition(data).unwrap().predict(new.as_ref()).unwrap().latent_variance;
    let variances = found.lanczos_variance(new.as_ref(), 512).unwrap();
    // Products of entries up to 1 over the noise: some hundred units of single precision.
    let unit = f64::from(f32::EPSILON) / 1e-3;
    for (own, exact) in variances.latent_variance.iter().zip(&expected) {
        assert!((own - exact).abs() < 10.0 * unit, "{own} {exact}");
    }
    assert!(found.lanczos_variance(new.as_ref(), 0).unwrap_err().to_string().contains("Lanczos basis"));
    assert!(found.lanczos_variance(normal(2, 3, "wide").as_ref(), 5).is_err());
    let none = found.lanczos_variance(Mat::zeros(0, 2).as_ref(), 512).unwrap();
    assert!(none.latent_variance.is_empty());
    assert!(found.lanczos_variance_bytes(512) > found.exact_variance_bytes());
}

fn estimated(
    system: &System<'_, f64>,
    y: &Mat<f64>,
    choice: PreconditionerChoice,
    probes: (usize, u64),
    budget: &Budget,
) -> LogEvidence {
    log_evidence(system, y.as_ref(), choice, probes, budget, &mut |_| Signal::Continue).unwrap().unwrap()
}

#[test]
fn log_evidences_are_within_three_of_their_standard_errors_of_the_exact_one() {
    let x = normal(120, 2, "rows");
    for (text, noise) in [("matern32(lengthscale=0.8)", 0.05), ("se(lengthscale=1.2)", 0.01)] {
        let kernel = kernel(text, 2);
        let y = normal(120, 2, "targets");
        let data = Observations::new(x.clone(), y.clone(), None).unwrap();
        let model = ExactGp::new(kernel.clone_box(), MeanForm::Zero, Gaussian::new(noise, 0.0), 2, 2);
        let exact = exact_log_evidence(&model, &data, None).unwrap().value;
        let stored = dense(&gram(&*kernel, x.as_ref()));
        let system = System::uniform(&stored, noise).unwrap();
        let budget = Budget { tolerance: 1e-8, ..Budget::steps(2000) };
        let mut errors = Vec::new();
        for choice in [
            PreconditionerChoice::None,
            PreconditionerChoice::PivotedCholesky { rank: 15, relative_tolerance: 0.0 },
            PreconditionerChoice::PivotedCholesky { rank: 60, relative_tolerance: 0.0 },
            PreconditionerChoice::Nystrom { rank: 30, seed: 1 },
        ] {
            let found = estimated(&system, &y, choice, (40, 3), &budget);
            let difference = (found.value - exact).abs();
            assert!(difference < 3.0 * found.standard_error, "{choice:?}: {found:?} {exact}");
            assert!(found.residual <= 1e-8 && found.probes == 40 && found.iterations > 0);
            errors.push(found.standard_error);
        }
        // The better the preconditioner, the less is left to chance.
        assert!(errors[2] < 0.5 * errors[1] && errors[1] < errors[0], "{errors:?}");
        // Standard errors are those of the spread between seeds, of which 30 tell a deviation to an eighth.
        let choice = PreconditionerChoice::PivotedCholesky { rank: 15, relative_tolerance: 0.0 };
        let of = |seed| estimated(&system, &y, choice, (40, seed), &budget);
        let all: Vec<LogEvidence> = (10..40).map(of).collect();
        let spread = (all.iter().map(|e| (e.value - exact).powi(2)).sum::<f64>() / 30.0).sqrt();
        let stated = (all.iter().map(|e| e.standard_error.powi(2)).sum::<f64>() / 30.0).sqrt();
        assert!((spread / stated - 1.0).abs() < 0.4, "{spread} {stated}");
        let refused = |y: &Mat<f64>, probes| {
            log_evidence(&system, y.as_ref(), choice, (probes, 0), &budget, &mut |_| Signal::Continue)
        };
        assert!(refused(&y, 1).unwrap_err().to_string().contains("probes of a log-determinant"));
        assert!(refused(&normal(5, 1, "few"), 4).is_err());
        // Stopped, there is none.
        let mut steps = 0;
        let stopped = log_evidence(&system, y.as_ref(), choice, (4, 0), &budget, &mut |progress| {
            steps = progress.step;
            if steps == 3 { Signal::Stop } else { Signal::Continue }
        });
        assert!(stopped.unwrap().is_none() && steps == 3);
    }
}

#[test]
fn a_posterior_knows_the_log_evidence_of_its_data() {
    let x = normal(70, 2, "rows");
    let (found, exact) = posterior("matern52", &x);
    let evidence = exact_log_evidence(exact.model(), exact.data(), None).unwrap().value;
    let budget = Budget { tolerance: 1e-6, ..Budget::steps(500) };
    // All of the matrix is in the preconditioner: nothing is left to chance.
    let whole = PreconditionerChoice::PivotedCholesky { rank: 70, relative_tolerance: 0.0 };
    let estimate = found.log_evidence(whole, (4, 1), &budget, &mut |_| Signal::Continue).unwrap().unwrap();
    assert!(
        (estimate.value - evidence).abs() < 1e-6 && estimate.standard_error < 1e-6,
        "{estimate:?} {evidence}"
    );
    let estimate = found
        .log_evidence(PreconditionerChoice::default(), (30, 1), &budget, &mut |_| Signal::Continue)
        .unwrap()
        .unwrap();
    assert!(
        (estimate.value - evidence).abs() < 3.0 * estimate.standard_error + 1e-6,
        "{estimate:?} {evidence}"
    );
}
