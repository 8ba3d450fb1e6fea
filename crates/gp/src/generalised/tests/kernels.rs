//! Variational kernels against the specification's values, and against what they must be.

use super::super::variational::{Coordinates, Family, Known, VariationalKernel};
use super::super::{GeneralisedGp, Mode, ReferenceProcess};
use super::{X, all, close, column, kernel, no_mean, process, reference, se};
use crate::{Observations, Posterior};
use faer::Mat;
use posterior_likelihoods::{CloneLikelihood, Gaussian};

fn variance(of: &VariationalKernel, reference: &ReferenceProcess, coordinates: Coordinates) -> f64 {
    let x = column(&[0.4]);
    let known = Known::of(reference, coordinates, x.as_ref());
    let evaluated = of.at(reference, &known, x.as_ref()).unwrap();
    let joint = evaluated.covariance()[(0, 0)];
    assert!((joint - evaluated.variances[0]).abs() < 1e-12, "the diagonal is that of the matrix");
    evaluated.variances[0]
}

#[test]
fn the_fixtures_variances() {
    let reference = reference(Mode::Prior);
    let x = column(&[0.4]);
    let known = Known::of(&reference, Coordinates::Kernel, x.as_ref());
    close(known.residual[0], 0.2728868588);
    let of = |kernel: VariationalKernel| variance(&kernel, &reference, Coordinates::Kernel);
    close(of(VariationalKernel::with_variances(vec![0.05, 0.1, 0.2])), 0.6120018163);
    let root = Mat::from_fn(3, 3, |i, j| [[0.3, 0.0, 0.0], [0.1, 0.4, 0.0], [-0.2, 0.05, 0.5]][i][j]);
    close(of(VariationalKernel::with_root(root.as_ref())), 0.7811980565);
    close(of(VariationalKernel::kernelised(se(0.9, 1.1))), 1.0828868588);
    close(of(VariationalKernel::conditioned(se(0.9, 1.1), false)), 0.0443340095);
    close(of(VariationalKernel::conditioned(se(0.9, 1.1), true)), 0.3099229591);
    // The root of the log family is any matrix of positive entries.
    let exponents = Mat::from_fn(3, 3, |i, j| 0.1 * i as f64 - 0.2 * j as f64 - 1.0);
    let root = Mat::from_fn(3, 3, |i, j| exponents[(i, j)].exp());
    let covariance = &root * root.transpose();
    let features = known.features.as_ref();
    let expected = known.residual[0] + (features.transpose() * &covariance * features)[(0, 0)];
    close(of(VariationalKernel::with_exponents(exponents)), expected);
}

#[test]
fn titsias_optimum_is_where_training_begins() {
    // Sigma_u* = K Psi^-1 K of the specification, and the variance at 0.4 that it leads to.
    let model = process(se(1.2, 0.8));
    let posterior = model.condition(all().select(&[0, 2, 4]).unwrap()).unwrap();
    let reference = ReferenceProcess::new(posterior, Mode::Prior, false, 0.0).unwrap();
    for coordinates in [Coordinates::Whitened, Coordinates::Kernel] {
        let begun = GeneralisedGp::begin(
            vec![reference.clone()],
            (Family::Cholesky, coordinates),
            no_mean(),
            Gaussian::new(0.1, 0.0).clone_box(),
            column(&X).as_ref(),
        )
        .unwrap();
        let kernel = &begun.kernels()[0];
        assert!((variance(kernel, &reference, coordinates) - 0.3106419363).abs() < 1e-9);
        let z = column(&[X[0], X[2], X[4]]);
        let known = Known::of(&reference, coordinates, z.as_ref());
        let covariance = kernel.at(&reference, &known, z.as_ref()).unwrap().covariance();
        let expected = [
            [0.0772443648, -0.0099101559, 0.0043339176],
            [-0.0099101559, 0.0537765652, -0.0053741452],
            [0.0043339176, -0.0053741452, 0.0596477184],
        ];
        for (i, row) in expected.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                assert!((covariance[(i, j)] - value).abs() < 1e-9, "{coordinates:?} ({i}, {j})");
            }
        }
        // The diagonal family has the diagonal of the same matrix.
        let diagonal = GeneralisedGp::begin(
            vec![reference.clone()],
            (Family::Diagonal, coordinates),
            no_mean(),
            Gaussian::new(0.1, 0.0).clone_box(),
            column(&X).as_ref(),
        )
        .unwrap();
        let root = kernel.weight_root().unwrap();
        let own = diagonal.kernels()[0].weight_root().unwrap();
        for i in 0..3 {
            let expected = root.row(i).squared_norm_l2();
            assert!((own[(i, i)].powi(2) - expected).abs() < 1e-12 * expected);
        }
    }
}

#[test]
fn a_covariance_of_inverse_k_is_the_prior_and_all_rows_are_the_exact_process() {
    let reference = reference(Mode::Prior);
    let identity = Mat::<f64>::identity(3, 3);
    let prior = VariationalKernel::with_root(identity.as_ref());
    assert!((variance(&prior, &reference, Coordinates::Whitened) - 1.44).abs() < 1e-12);
    // Z = X: the kernel that training begins with is the exact posterior's.
    let exact = process(se(1.2, 0.8)).condition(all()).unwrap();
    let whole = ReferenceProcess::new(exact.clone(), Mode::Prior, false, 0.0).unwrap();
    let begun = GeneralisedGp::begin(
        vec![whole],
        (Family::Cholesky, Coordinates::Whitened),
        no_mean(),
        Gaussian::new(0.1, 0.0).clone_box(),
        column(&X).as_ref(),
    )
    .unwrap();
    let at = column(&[-1.7, 0.4, 2.5]);
    let (found, expected) = (begun.predict(at.as_ref()).unwrap(), exact.predict(at.as_ref()).unwrap());
    for i in 0..3 {
        assert!((found.latent_variance[i] - expected.latent_variance[i]).abs() < 1e-10);
    }
    close(expected.latent_variance[1], 0.0853666348);
    close(expected.mean[(1, 0)], 0.5059686809);
    assert!((exact.log_evidence() + 7.211012437633).abs() < 1e-11);
}

#[test]
fn what_is_no_covariance_is_refused_together_and_predicted_apart() {
    let begin = |kernel| {
        let mut model = GeneralisedGp::begin(
            vec![reference(Mode::Prior)],
            (Family::FixedSparsePosterior, Coordinates::Whitened),
            no_mean(),
            Gaussian::new(0.1, 0.0).clone_box(),
            column(&X).as_ref(),
        )
        .unwrap();
        model.kernels = vec![VariationalKernel::conditioned(kernel, true)];
        model
    };
    let rng = || posterior_linalg::random::Streams::new(1).stream("test");
    let (z, beside) = (column(&[X[0], X[2], X[4]]), column(&[-1.7, 0.4, 2.5]));
    // Where it begins it is a covariance, of no variance at inducing points.
    for x in [&z, &beside] {
        assert!(begin(se(1.2, 0.8)).joint(x.as_ref()).is_ok());
        assert!(begin(se(1.2, 0.8)).sample(x.as_ref(), 0, 2, &mut rng()).is_ok());
    }
    // r_0 = 1.5 k is none at them, one by one or together.
    let grown = begin(kernel("se(variance=2.16, lengthscale=0.8)"));
    for x in [&z, &column(&[X[2]])] {
        assert!(grown.latent(x.as_ref(), None).is_ok());
        for error in [
            grown.joint(x.as_ref()).map(|_| ()).unwrap_err(),
            grown.sample(x.as_ref(), 0, 2, &mut rng()).map(|_| ()).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains("no covariance at these") && error.contains("without draws"), "{error}");
        }
    }
}

#[test]
fn covariances_are_positive_semidefinite_but_for_the_fixed_one_which_is_raised_and_counted() {
    let reference = reference(Mode::Prior);
    let x = Mat::from_fn(40, 1, |i, _| -2.5 + 0.13 * i as f64);
    let families = [
        VariationalKernel::with_variances(vec![0.05, 0.1, 0.2]),
        VariationalKernel::with_root(Mat::<f64>::identity(3, 3).as_ref()),
        VariationalKernel::with_exponents(Mat::from_fn(3, 3, |i, j| -0.3 * (i + 2 * j) as f64)),
        VariationalKernel::kernelised(se(0.9, 1.1)),
        VariationalKernel::conditioned(se(0.9, 1.1), false),
        VariationalKernel::conditioned(kernel("matern32(lengthscale=0.7) + linear"), false),
    ];
    for of in families {
        let known = Known::of(&reference, Coordinates::Kernel, x.as_ref());
        let evaluated = of.at(&reference, &known, x.as_ref()).unwrap();
        let eigenvalues = posterior_linalg::dense::eigenvalues(evaluated.covariance().as_ref()).unwrap();
        assert!(eigenvalues.iter().all(|v| *v > -1e-10), "{:?}: {eigenvalues:?}", of.family());
        assert!(evaluated.variances.iter().all(|v| *v > 0.0));
    }
    // r_0 = 1.5 k: the variance at Z is 1.5 (1 - 1.5) k(z, z).
    let grown = VariationalKernel::conditioned(kernel("se(variance=2.16, lengthscale=0.8)"), true);
    let z = column(&[X[0], X[2], X[4]]);
    let known = Known::of(&reference, Coordinates::Kernel, z.as_ref());
    let evaluated = grown.at(&reference, &known, z.as_ref()).unwrap();
    assert_eq!(evaluated.floored(), 3);
    assert!((evaluated.covariance()[(1, 1)] + 1.08).abs() < 1e-9);
    assert!(evaluated.variances.iter().all(|v| (*v - 2.16e-10).abs() < 1e-20));
    let mut gradient = vec![0.0; 2];
    evaluated.pull_back(&[1.0, 1.0, 1.0], &mut gradient);
    assert_eq!(gradient, [0.0, 0.0]);
}

#[test]
fn references_are_the_prior_or_its_posterior_with_or_without_noise() {
    let x = column(&[-1.4, 0.3, 2.2]);
    let exact = || process(se(1.2, 0.8)).condition(all().select(&[0, 2, 4]).unwrap()).unwrap();
    let known = exact().joint(x.as_ref()).unwrap();
    let of = |mode, noise| {
        let own = ReferenceProcess::new(exact(), mode, noise, 0.0).unwrap();
        (own.marginals(x.as_ref()).unwrap(), own.covariance(x.as_ref()).unwrap())
    };
    for noise in [false, true] {
        let added = if noise { 0.1 } else { 0.0 };
        let ((prior, k), (posterior, conditioned)) = (of(Mode::Prior, noise), of(Mode::Posterior, noise));
        for i in 0..3 {
            assert_eq!(prior.means[(i, 0)], 0.0);
            close(posterior.means[(i, 0)], known.mean[(i, 0)]);
            for j in 0..3 {
                let own = if i == j { added } else { 0.0 };
                let distance = (x[(i, 0)] - x[(j, 0)]) / 0.8;
                close(k[(i, j)], 1.44 * (-0.5 * distance * distance).exp() + own);
                close(conditioned[(i, j)], known.covariance[(i, j)] + own);
            }
            close(prior.variances[i], k[(i, i)]);
            close(posterior.variances[i], conditioned[(i, i)]);
        }
    }
}

/// A constant prior of variance 2 knows everything from one point, so that only what is trained is left.
#[test]
fn under_constant_kernels_variances_are_known_by_hand() {
    let z = Observations::new(column(&[0.3]), column(&[0.5]), None).unwrap();
    let posterior = process(kernel("constant(variance=2)")).condition(z).unwrap();
    let reference = ReferenceProcess::new(posterior, Mode::Prior, false, 0.0).unwrap();
    let one = |v: f64| Mat::from_fn(1, 1, |_, _| v);
    let own = || kernel("constant(variance=3)");
    for (trained, expected) in [
        // k(x, Z) v k(Z, x) = 4 v in the kernel's coordinates.
        (VariationalKernel::with_variances(vec![0.7]), 4.0 * 0.7),
        (VariationalKernel::with_root(one(0.7).as_ref()), 4.0 * 0.49),
        (VariationalKernel::with_exponents(one(0.7_f64.ln())), 4.0 * 0.49),
        (VariationalKernel::kernelised(own()), 3.0),
        // 3 - 3 · 3 / 3, and 3 - 3 · 3 / 2.
        (VariationalKernel::conditioned(own(), false), 0.0),
        (VariationalKernel::conditioned(own(), true), -1.5),
    ] {
        let x = column(&[-4.0]);
        let known = Known::of(&reference, Coordinates::Kernel, x.as_ref());
        let found = trained.at(&reference, &known, x.as_ref()).unwrap().covariance()[(0, 0)];
        assert!((found - expected).abs() < 1e-9, "{:?}: {found} {expected}", trained.family());
    }
}
