//! Gradients of the whole objective by finite differences, for every family, regulariser, risk and mean.

use super::super::{
    Coordinates, Family, GeneralisedData, GeneralisedGp, GeneralisedObjective, Mode, Reduction,
    ReferenceProcess, Regulariser, Risk, VariationalMean, generalised_objective,
};
use super::{Bends, X, Y, all, column, process, reference, se};
use crate::{MeanForm, Observations};
use faer::Mat;
use posterior_likelihoods::{Categorical, CloneLikelihood, Gaussian};
use posterior_optim::Parameters;

fn objective(risk: Risk, regulariser: &str) -> GeneralisedObjective {
    GeneralisedObjective {
        risk,
        reduction: Reduction::Mean,
        regulariser: regulariser.parse().unwrap(),
        weight: 0.7,
        rows_together: 4,
    }
}

/// Largest difference between the gradient and central differences in every parameter, relative to the gradient's largest entry.
fn error(model: &GeneralisedGp, objective: &GeneralisedObjective, data: &GeneralisedData<'_>) -> f64 {
    let found = generalised_objective(model, objective, data).unwrap();
    let values = model.values();
    let largest = found.gradient.iter().fold(1e-3, |a: f64, g| a.max(g.abs()));
    let mut worst = 0.0f64;
    for (i, gradient) in found.gradient.iter().enumerate() {
        let h = 1e-5 * values[i].abs().max(1e-2);
        let at = |shift: f64| {
            let mut moved = model.clone();
            let mut values = values.clone();
            values[i] += shift;
            moved.set_values(&values);
            generalised_objective(&moved, objective, data).unwrap().value
        };
        let expected = (at(h) - at(-h)) / (2.0 * h);
        worst = worst.max((gradient - expected).abs() / largest);
    }
    worst
}

fn moved(mut model: GeneralisedGp) -> GeneralisedGp {
    // Off the optimum that training begins at, where slopes would vanish; and away from variances at their floor.
    let theta: Vec<f64> =
        model.unconstrained().iter().enumerate().map(|(i, t)| t + 0.1 * ((i * i + 1) as f64).sin()).collect();
    model.set_unconstrained(&theta);
    model
}

#[test]
fn every_family_and_every_regulariser_under_gaussian_noise() {
    // At inducing points a conditioned kernel has no variance but its jitter, of which differences see nothing.
    let beside: Vec<f64> = X.iter().map(|x| x + 0.17).collect();
    let data = Observations::new(column(&beside), column(&Y), None).unwrap();
    let data = GeneralisedData { observations: &data, given: None };
    let regularisers = [
        "projected-kl",
        "projected-renyi=0.5",
        "projected-renyi=1.3",
        "projected-kl-pq",
        "projected-symmetric-kullback-leibler",
        "projected-bhattacharyya",
        "projected-hellinger",
        "projected-wasserstein",
        "projected-squared-difference",
        "wasserstein-partial",
        "wasserstein",
        "wasserstein-symmetric-roots",
        "wasserstein-two-batches",
        "squared-difference",
    ];
    for family in Family::ALL {
        for coordinates in [Coordinates::Whitened, Coordinates::Kernel] {
            for mode in [Mode::Prior, Mode::Posterior] {
                // Below the noise of the reference's own, the fixed family is no covariance at all.
                let model = GeneralisedGp::begin(
                    vec![reference(mode)],
                    (family, coordinates),
                    VariationalMean::Embedding(Box::new(Bends(vec![[0.4, 1.3, 0.2, -0.1]]))),
                    Gaussian::new(0.3, 0.0).clone_box(),
                    column(&X).as_ref(),
                )
                .unwrap();
                let model = moved(model);
                let fixed = |name: &&str| family == Family::FixedSparsePosterior && *name == "wasserstein";
                for regulariser in regularisers.into_iter().filter(|name| !fixed(name)) {
                    for risk in [Risk::Expected, Risk::Predictive] {
                        let worst = error(&model, &objective(risk, regulariser), &data);
                        assert!(
                            worst < 2e-6,
                            "{family:?} {coordinates:?} {mode:?} {regulariser} {risk:?}: {worst:.1e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn divergences_of_inducing_values() {
    let data = all();
    let data = GeneralisedData { observations: &data, given: None };
    for family in [Family::Cholesky, Family::Diagonal, Family::Log] {
        for coordinates in [Coordinates::Whitened, Coordinates::Kernel] {
            for mean in [VariationalMean::Prior, VariationalMean::Inducing(column(&[0.1, -0.3, 0.2]))] {
                let model = GeneralisedGp::begin(
                    vec![reference(Mode::Prior)],
                    (family, coordinates),
                    mean,
                    Gaussian::new(0.3, 0.0).clone_box(),
                    column(&X).as_ref(),
                )
                .unwrap();
                let model = moved(model);
                let all = [
                    "kl",
                    "kl-pq",
                    "symmetric-kullback-leibler",
                    "renyi=0.5",
                    "renyi=1.2",
                    "hellinger",
                    "bhattacharyya",
                ];
                for regulariser in all {
                    let objective = GeneralisedObjective {
                        reduction: Reduction::Sum,
                        ..objective(Risk::Expected, regulariser)
                    };
                    let worst = error(&model, &objective, &data);
                    assert!(worst < 2e-6, "{family:?} {coordinates:?} {regulariser}: {worst:.1e}");
                }
            }
        }
    }
}

#[test]
fn the_bound_on_the_evidence_is_one_of_these_objectives() {
    // At the optimum of Titsias the sum of expected negative log-likelihoods and the divergence is minus the collapsed bound.
    let reference = reference(Mode::Prior);
    let mu = column(&[0.1633338450, -0.6057129553, 0.1009620665]);
    // beta = L^-1 mu in whitened coordinates, K^-1 mu in those of the kernel.
    let mut weights = mu.clone();
    reference.whitening().cholesky.solve_factor_in_place(weights.as_mut());
    for coordinates in [Coordinates::Whitened, Coordinates::Kernel] {
        let found = GeneralisedGp::least_squares_mean(&reference, coordinates, &all()).unwrap();
        let difference = match coordinates {
            Coordinates::Whitened => &found - &weights,
            Coordinates::Kernel => &found - reference.whitening().cholesky.solve(mu.as_ref()),
        };
        assert!(difference.norm_max() < 1e-8);
    }
    let model = GeneralisedGp::begin(
        vec![reference],
        (Family::Cholesky, Coordinates::Whitened),
        VariationalMean::Inducing(weights),
        Gaussian::new(0.1, 0.0).clone_box(),
        column(&X).as_ref(),
    )
    .unwrap();
    let observations = all();
    let data = GeneralisedData { observations: &observations, given: None };
    let bound =
        GeneralisedObjective { reduction: Reduction::Sum, weight: 1.0, ..objective(Risk::Expected, "kl") };
    let found = generalised_objective(&model, &bound, &data).unwrap();
    assert!((6.0 * found.value - 20.670617681669).abs() < 1e-8, "{}", 6.0 * found.value);
    assert!((found.regularisation - 3.422785045732).abs() < 1e-8, "{}", found.regularisation);
    // It is the optimum: no slope but that of the noise.
    let (noise, rest) = found.gradient.split_last().unwrap();
    assert!(rest.iter().all(|g| g.abs() < 1e-8) && noise.abs() > 1e-3, "{:?}", found.gradient);
    let at = column(&[0.4]);
    let latent = model.latent(at.as_ref(), None).unwrap();
    assert!((latent.mean[(0, 0)] + 0.1648352919).abs() < 1e-9);
}

/// By the formula of two normals at each row and function.
fn the_regulariser_is_the_average_over_rows_and_functions(model: &GeneralisedGp, data: &GeneralisedData<'_>) {
    let x = data.observations.inputs();
    // Functions are what is left around means that are given.
    let own = model.latent(x, None).unwrap();
    let several = model.references().len() > 1;
    let divergence = |i: usize, c: usize| {
        let prior = model.reference(c).marginals(x).unwrap();
        let (m, v) = (own.mean[(i, c)], own.variance[(i, c)]);
        let (p, k) = (prior.means[(i, if several { 0 } else { c })], prior.variances[i]);
        0.5 * (v / k + (m - p) * (m - p) / k - 1.0 + (k / v).ln())
    };
    let all: Vec<f64> =
        (0..x.nrows()).flat_map(|i| (0..3).map(move |c| (i, c))).map(|(i, c)| divergence(i, c)).collect();
    let expected = all.iter().sum::<f64>() / all.len() as f64;
    let found = generalised_objective(model, &objective(Risk::Expected, "projected-kl"), data).unwrap();
    assert!((found.regularisation - expected).abs() < 1e-9 * expected, "{} {expected}", found.regularisation);
    assert!((found.value - found.risk - 0.7 * expected).abs() < 1e-9 * expected);
}

#[test]
fn classes_with_a_process_each_and_means_that_are_given() {
    let targets = Mat::from_fn(6, 1, |i, _| (i % 3) as f64);
    let observations = Observations::new(column(&X), targets, None).unwrap();
    let one_hot = Mat::from_fn(3, 3, |i, c| f64::from(u8::from(i % 3 == c)) - 1.0 / 3.0);
    let shared = crate::exact::ExactGp::new(se(1.2, 0.8), MeanForm::Zero, Gaussian::new(0.1, 0.0), 1, 3);
    let z = Observations::new(column(&[X[0], X[2], X[4]]), one_hot.clone(), None).unwrap();
    let shared = shared.condition(z).unwrap();
    let own = |c: usize| {
        let z =
            Observations::new(column(&[X[c], X[c + 1], X[5 - c]]), one_hot.col(c).as_mat().to_owned(), None);
        let posterior = process(se(1.0 + 0.1 * c as f64, 0.8)).condition(z.unwrap()).unwrap();
        ReferenceProcess::new(posterior, Mode::Posterior, false, 0.0).unwrap()
    };
    let references = [
        vec![ReferenceProcess::new(shared, Mode::Posterior, true, 0.0).unwrap()],
        vec![own(0), own(1), own(2)],
    ];
    let given = Mat::from_fn(6, 3, |i, c| 0.3 * ((i + 2 * c) as f64).sin());
    let data = GeneralisedData { observations: &observations, given: Some(given.as_ref()) };
    for references in references {
        for mean in [
            VariationalMean::Constant(vec![0.1, 0.2, -0.4]),
            VariationalMean::Embedding(Box::new(Bends(vec![
                [0.4, 1.3, 0.2, -0.1],
                [1.0, -0.4, 0.0, 0.2],
                [-0.7, 0.8, 0.3, 0.0],
            ]))),
        ] {
            let model = GeneralisedGp::begin(
                references.clone(),
                (Family::Diagonal, Coordinates::Whitened),
                mean,
                Categorical::new(3).unwrap().clone_box(),
                column(&X).as_ref(),
            )
            .unwrap();
            let model = moved(model);
            the_regulariser_is_the_average_over_rows_and_functions(&model, &data);
            for regulariser in ["projected-kl", "wasserstein", "multinomial=2", "multinomial=1.5"] {
                let worst = error(&model, &objective(Risk::Expected, regulariser), &data);
                assert!(worst < 2e-6, "{regulariser}: {worst:.1e}");
            }
        }
    }
}

#[test]
fn a_row_without_prior_variance_is_raised_and_counted_and_divergences_stay_finite() {
    // A linear kernel knows the origin for sure.
    let z = Observations::new(column(&[0.8]), column(&[0.5]), None).unwrap();
    let inputs = [-2.0, -1.2, -0.5, 0.0, 0.9, 1.7];
    let rows = Observations::new(column(&inputs), column(&Y), None).unwrap();
    let data = GeneralisedData { observations: &rows, given: None };
    for mode in [Mode::Prior, Mode::Posterior] {
        let posterior = process(super::kernel("linear(variance=2)")).condition(z.clone()).unwrap();
        let own = ReferenceProcess::new(posterior, mode, false, 0.0).unwrap();
        assert!((own.least_variance() / 1.28e-10 - 1.0).abs() < 1e-9, "{}", own.least_variance());
        let marginals = own.marginals(column(&inputs).as_ref()).unwrap();
        assert_eq!(marginals.raised, [false, false, false, true, false, false]);
        assert_eq!(marginals.variances[3], own.least_variance());
        let model = GeneralisedGp::begin(
            vec![own],
            (Family::Cholesky, Coordinates::Whitened),
            VariationalMean::Prior,
            Gaussian::new(0.3, 0.0).clone_box(),
            column(&inputs).as_ref(),
        )
        .unwrap();
        for regulariser in
            ["projected-kl", "projected-kl-pq", "projected-renyi=0.5", "projected-bhattacharyya"]
        {
            let found =
                generalised_objective(&model, &objective(Risk::Expected, regulariser), &data).unwrap();
            assert!(found.value.is_finite(), "{mode:?} {regulariser}");
            assert_eq!((found.reference_floored, found.floored), (1, 1));
            // Both processes are sure of the same there: that row says nothing, so that five say all.
            let others = rows.select(&[0, 1, 2, 4, 5]).unwrap();
            let others = GeneralisedData { observations: &others, given: None };
            let rest =
                generalised_objective(&model, &objective(Risk::Expected, regulariser), &others).unwrap();
            assert!((6.0 * found.regularisation - 5.0 * rest.regularisation).abs() < 1e-9);
            assert_eq!(rest.reference_floored, 0);
        }
    }
}

#[test]
fn jitter_and_unresolved_roots_of_matrices_are_told() {
    let begin = |rows: &Observations| {
        let mean = VariationalMean::Prior;
        let noise = Gaussian::new(0.3, 0.0).clone_box();
        let parts = (Family::SparsePosterior, Coordinates::Whitened);
        GeneralisedGp::begin(vec![reference(Mode::Prior)], parts, mean, noise, rows.inputs()).unwrap()
    };
    let told = |rows: &Observations, regulariser: &str| {
        let data = GeneralisedData { observations: rows, given: None };
        let asked = GeneralisedObjective { rows_together: 6, ..objective(Risk::Expected, regulariser) };
        generalised_objective(&begin(rows), &asked, &data).unwrap()
    };
    let beside: Vec<f64> = X.iter().map(|x| x + 0.17).collect();
    let usual = Observations::new(column(&beside), column(&Y), None).unwrap();
    let found = told(&usual, "wasserstein");
    assert!((found.regulariser_jitter / 1e-8 - 1.0).abs() < 1e-6, "{found:?}");
    assert_eq!(told(&usual, "squared-difference").regulariser_jitter, 0.0);
    assert_eq!(told(&usual, "projected-kl").regulariser_jitter, 0.0);
    assert_eq!(found.unresolved, 0);
    // Both processes of a linear kernel have one direction, and jitter in all others, whose roots are beside what rounding leaves.
    let z = Observations::new(column(&[0.8]), column(&[0.5]), None).unwrap();
    let posterior = process(super::kernel("linear(variance=2)")).condition(z).unwrap();
    let own = ReferenceProcess::new(posterior, Mode::Prior, false, 0.0).unwrap();
    let model = GeneralisedGp::begin(
        vec![own],
        (Family::Cholesky, Coordinates::Whitened),
        VariationalMean::Prior,
        Gaussian::new(0.3, 0.0).clone_box(),
        usual.inputs(),
    )
    .unwrap();
    let data = GeneralisedData { observations: &usual, given: None };
    let asked =
        GeneralisedObjective { rows_together: 6, ..objective(Risk::Expected, "wasserstein-symmetric-roots") };
    let found = generalised_objective(&model, &asked, &data).unwrap();
    assert!(found.unresolved + found.clipped >= 3, "{found:?}");
}

#[test]
fn what_does_not_go_together_is_refused_with_what_does() {
    let begin = |family, mean, mode| {
        GeneralisedGp::begin(
            vec![reference(mode)],
            (family, Coordinates::Whitened),
            mean,
            Gaussian::new(0.1, 0.0).clone_box(),
            column(&X).as_ref(),
        )
        .unwrap()
    };
    let bends = || VariationalMean::Embedding(Box::new(Bends(vec![[0.4, 1.3, 0.2, -0.1]])));
    let refused = |model: &GeneralisedGp, regulariser: &str, words: &str| {
        let message = objective(Risk::Expected, regulariser).check(model).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    refused(
        &begin(Family::Kernelised, VariationalMean::Prior, Mode::Prior),
        "kl",
        "cholesky, diagonal or log",
    );
    refused(
        &begin(Family::FixedSparsePosterior, VariationalMean::Prior, Mode::Prior),
        "wasserstein",
        "wasserstein-symmetric-roots",
    );
    refused(&begin(Family::Cholesky, bends(), Mode::Prior), "kl", "mean of inducing points");
    refused(&begin(Family::Cholesky, VariationalMean::Prior, Mode::Posterior), "kl", "prior as reference");
    refused(&begin(Family::Cholesky, VariationalMean::Prior, Mode::Prior), "multinomial", "no classes");
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let objective = GeneralisedObjective { weight, ..objective(Risk::Expected, "projected-kl") };
        let model = begin(Family::Cholesky, VariationalMean::Prior, Mode::Prior);
        assert!(objective.check(&model).unwrap_err().to_string().contains("positive finite"));
    }
    assert!(
        "projected-nothing".parse::<Regulariser>().unwrap_err().to_string().contains("projected-renyi=0.5")
    );
    for (text, instead) in [("projected-renyi=1", "at 1 it is projected-kl"), ("renyi=1", "at 1 it is kl")] {
        let error = text.parse::<Regulariser>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}`")) && error.ends_with(instead), "{error}");
        assert!(error.contains("that is not 1"), "{error}");
    }
    let error = "projected-renyi=-2".parse::<Regulariser>().unwrap_err().to_string();
    assert!(error.contains("is -2: give a positive number"), "{error}");
    for text in [
        "kl",
        "renyi=0.3",
        "projected-renyi=1.4",
        "wasserstein-two-batches",
        "multinomial=3",
        "projected-kl-pq",
    ] {
        assert_eq!(text.parse::<Regulariser>().unwrap().to_string(), text);
    }
}
