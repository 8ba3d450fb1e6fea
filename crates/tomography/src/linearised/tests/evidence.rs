use super::filters::dense_covariance;
use super::{MEASUREMENTS, PIXELS, SIDE, Small, wave};
use crate::linearised::*;
use faer::{Mat, MatRef};
use posterior_linalg::dense::eigenvalues;
use posterior_optim::Objective;

fn start(blocks: usize) -> ImageHyperparameters {
    ImageHyperparameters {
        filters: FilterHyperparameters {
            log_variances: (0..blocks).map(|k| 0.3 * wave(k + 2)).collect(),
            log_lengthscales: (0..blocks).map(|k| 0.5 * wave(k + 17)).collect(),
        },
        log_noise_variance: -1.2,
    }
}

/// `log N(t; 0, C)` from eigenvalues and a solve of its own.
fn log_normal(t: &[f64], system: &Mat<f64>) -> f64 {
    use faer::linalg::solvers::Solve;
    let column = MatRef::from_column_major_slice(t, t.len(), 1);
    let solved = system.partial_piv_lu().solve(column);
    let quadratic: f64 = (0..t.len()).map(|i| t[i] * solved[(i, 0)]).sum();
    let log_determinant: f64 = eigenvalues(system.as_ref()).unwrap().iter().map(|e| e.ln()).sum();
    -0.5 * (quadratic + log_determinant + t.len() as f64 * std::f64::consts::TAU.ln())
}

#[test]
fn the_evidence_is_that_of_the_dense_linear_model_and_its_slopes_are_finite_differences() {
    let small = Small::new(false);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let targets = measured.linear_targets(&sinogram).unwrap();
    let residual: Vec<f64> = sinogram.iter().zip(measured.measured_picture()).map(|(y, g)| y - g).collect();
    let jacobian = small.jacobian();
    let grams = DistanceGrams::new(&small.weights, jacobian.as_ref());
    let terms = RoughnessTerms::new(&small.weights, &[SIDE, SIDE], jacobian.as_ref());
    let at = start(small.weights.blocks().len());
    let held = ChargedWeights::held(&small.weights, &tangent.weights());
    for (charged, roughness) in [
        (ChargedWeights::Optimum, None),
        (held.clone(), None),
        (ChargedWeights::Optimum, Some((&terms, 0.7))),
        (held, Some((&terms, 1.0))),
    ] {
        let optimum = matches!(charged, ChargedWeights::Optimum);
        let evidence = StoredEvidence {
            grams: &grams,
            projector: Some(small.projector.matrix()),
            targets: &targets,
            residual: &residual,
            charged,
            roughness,
        };
        let found = evidence.value_and_slopes(&at).unwrap();
        if roughness.is_none() {
            let covariance = dense_covariance(&small.weights, &at.filters);
            let through = small.projector.matrix() * jacobian.transpose();
            let noise = at.log_noise_variance.exp();
            let system = &through * &covariance * through.transpose()
                + faer::Scale(noise) * Mat::<f64>::identity(MEASUREMENTS, MEASUREMENTS);
            let expected = if optimum {
                log_normal(&targets, &system)
            } else {
                use faer::linalg::solvers::Solve;
                let v = tangent.weights();
                let v = MatRef::from_column_major_slice(&v, v.len(), 1);
                let charge = (v.transpose() * covariance.partial_piv_lu().solve(v))[(0, 0)];
                let squares: f64 = residual.iter().map(|r| r * r).sum();
                let zero = vec![0.0; MEASUREMENTS];
                log_normal(&zero, &system) - 0.5 * squares / noise - 0.5 * charge
            };
            assert!((found.value - expected).abs() < 1e-7 * expected.abs(), "{} {expected}", found.value);
        }
        let learned = LearnedHyperparameters::default();
        let mut search = EvidenceSearch { evidence: &evidence, learned, held: &at };
        let theta = learned.pack(&at);
        let mut gradient = vec![0.0; theta.len()];
        search.value_and_gradient(&theta, &mut gradient).unwrap();
        for i in 0..theta.len() {
            let h = 1e-5;
            let mut value = |step: f64| {
                let mut moved = theta.clone();
                moved[i] += step;
                search.value_and_gradient(&moved, &mut vec![0.0; theta.len()]).unwrap()
            };
            let slope = (value(h) - value(-h)) / (2.0 * h);
            assert!((slope - gradient[i]).abs() < 1e-5 * (1.0 + slope.abs()), "{i}: {slope} {}", gradient[i]);
        }
    }
}

#[test]
fn grams_of_measurements_give_what_grams_of_pixels_do() {
    let small = Small::new(true);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let targets = measured.linear_targets(&sinogram).unwrap();
    let pixels = DistanceGrams::new(&small.weights, small.jacobian().as_ref());
    let rows = tangent.rows(small.projector.matrix().transpose().to_owned().as_ref());
    let measurements = DistanceGrams::new(&small.weights, rows.as_ref());
    assert_eq!((pixels.rows(), measurements.rows()), (PIXELS, MEASUREMENTS));
    let at = start(small.weights.blocks().len());
    let of = |grams: &DistanceGrams, through: bool| {
        let evidence = StoredEvidence {
            grams,
            projector: through.then(|| small.projector.matrix()),
            targets: &targets,
            residual: &targets,
            charged: ChargedWeights::Optimum,
            roughness: None,
        };
        evidence.value_and_slopes(&at).unwrap()
    };
    let (a, b) = (of(&pixels, true), of(&measurements, false));
    assert!((a.value - b.value).abs() < 1e-8 * a.value.abs());
    for i in 0..2 {
        for (x, y) in a.filters[i].iter().zip(&b.filters[i]) {
            assert!((x - y).abs() < 1e-7 * (1.0 + x.abs()));
        }
    }
}

#[test]
fn tied_variances_and_held_lengthscales_stay_so() {
    let at = start(3);
    let learned = LearnedHyperparameters { tied: true, correlated: false, noise: true };
    let theta = learned.pack(&at);
    assert_eq!(theta.len(), 2);
    let back = learned.unpack(&[0.25, -3.0], &at);
    assert_eq!(back.filters.log_variances, [0.25; 3]);
    assert_eq!(back.filters.log_lengthscales, at.filters.log_lengthscales);
    assert_eq!(back.log_noise_variance, -3.0);
}

/// Measurements that are all zero want no prior at all: every variance becomes as small as it may.
#[test]
fn variances_that_nothing_asks_for_end_at_their_bound() {
    let small = Small::new(false);
    let grams = DistanceGrams::new(&small.weights, small.jacobian().as_ref());
    let zero = vec![0.0; MEASUREMENTS];
    let evidence = StoredEvidence {
        grams: &grams,
        projector: Some(small.projector.matrix()),
        targets: &zero,
        residual: &zero,
        charged: ChargedWeights::Optimum,
        roughness: None,
    };
    let filters = FilterHyperparameters::start(small.weights.blocks().len());
    assert_eq!(filters.blocks_at_bound(), 0);
    let start = ImageHyperparameters { filters, log_noise_variance: -20.0 };
    let learned = LearnedHyperparameters { noise: false, ..LearnedHyperparameters::default() };
    let mut watch =
        |_: &posterior_optim::Progress, _: &posterior_optim::State| posterior_optim::Signal::Continue;
    let found = evidence.search(learned, &start, 500, None, &mut watch).unwrap().hyperparameters.filters;
    assert_eq!(found.blocks_at_bound(), small.weights.blocks().len());
    assert!(found.log_variances.iter().all(|v| *v == LEAST_LOG_VARIANCE));
}

#[test]
fn slopes_by_probes_are_those_of_the_stored_kernel_on_average() {
    let small = Small::new(false);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let targets = measured.linear_targets(&sinogram).unwrap();
    let residual: Vec<f64> = sinogram.iter().zip(measured.measured_picture()).map(|(y, g)| y - g).collect();
    let grams = DistanceGrams::new(&small.weights, small.jacobian().as_ref());
    let at = start(small.weights.blocks().len());
    let charged = ChargedWeights::held(&small.weights, &tangent.weights());
    let ChargedWeights::Held(held) = charged.clone() else { unreachable!() };
    let evidence = StoredEvidence {
        grams: &grams,
        projector: Some(small.projector.matrix()),
        targets: &targets,
        residual: &residual,
        charged,
        roughness: None,
    };
    let exact = evidence.value_and_slopes(&at).unwrap();
    let exact: Vec<f64> =
        exact.filters[0].iter().chain(&exact.filters[1]).chain([&exact.noise]).copied().collect();
    for kind in [Probes::Signs, Probes::Preconditioned] {
        let options = StochasticEvidenceOptions {
            probes: 40,
            kind,
            conjugate: posterior_linear::sampled::ConjugateOptions { tolerance: 1e-10, steps: 100 },
            rank: 5,
            ..StochasticEvidenceOptions::default()
        };
        let search =
            StochasticEvidence::new(&measured, &small.weights, &sinogram, &held, None, &options, &at, None)
                .unwrap();
        let prior = WeightPrior::Filters(FilterPrior::new(&small.weights, at.filters.clone()).unwrap());
        let root = PriorRoot::new(&tangent, prior).unwrap();
        let observed = crate::measured::ObservedPrior::new(&root, &small.projector, 1.0).unwrap();
        let leading = LeadingDirections::new(&observed, 5, 0).unwrap();
        let rounds = 50;
        let drawn: Vec<Vec<f64>> = (0..rounds)
            .map(|step| {
                let own = search.slopes(&at, &leading, step).unwrap();
                own.filters[0].iter().chain(&own.filters[1]).chain([&own.noise]).copied().collect()
            })
            .collect();
        for (i, exact) in exact.iter().enumerate() {
            let mean = drawn.iter().map(|d| d[i]).sum::<f64>() / rounds as f64;
            let scatter = drawn.iter().map(|d| (d[i] - mean).powi(2)).sum::<f64>() / (rounds - 1) as f64;
            // Five standard errors, measured; eleven numbers.
            let tolerance = 5.0 * (scatter / rounds as f64).sqrt() + 1e-7 * (1.0 + exact.abs());
            assert!((mean - exact).abs() < tolerance, "{kind:?} {i}: {mean} {exact} {tolerance}");
        }
    }
}

#[test]
fn the_search_by_products_ends_where_the_stored_one_does() {
    use posterior_optim::{Clock, Lbfgs, Limits, LoopOptions, Optimiser, Signal, drive, minimise};
    let small = Small::new(false);
    let tangent = small.tangent();
    let measured = MeasuredTangent::new(&tangent, &small.projector).unwrap();
    let sinogram = small.sinogram();
    let targets = measured.linear_targets(&sinogram).unwrap();
    let residual: Vec<f64> = sinogram.iter().zip(measured.measured_picture()).map(|(y, g)| y - g).collect();
    let grams = DistanceGrams::new(&small.weights, small.jacobian().as_ref());
    let at = start(small.weights.blocks().len());
    let charged = ChargedWeights::held(&small.weights, &tangent.weights());
    let ChargedWeights::Held(held) = charged.clone() else { unreachable!() };
    let evidence = StoredEvidence {
        grams: &grams,
        projector: Some(small.projector.matrix()),
        targets: &targets,
        residual: &residual,
        charged,
        roughness: None,
    };
    let learned = LearnedHyperparameters { tied: true, correlated: false, noise: true };
    let mut search = EvidenceSearch { evidence: &evidence, learned, held: &at };
    let optimiser = Optimiser::Lbfgs(Lbfgs::default());
    let found = minimise(&mut search, &learned.pack(&at), optimiser, &LoopOptions::default(), &mut |_, _| {
        Signal::Continue
    })
    .unwrap();
    let options = StochasticEvidenceOptions {
        steps: 300,
        learning_rate: 0.05,
        halve_every: Some(60),
        conjugate: posterior_linear::sampled::ConjugateOptions { tolerance: 1e-6, steps: 100 },
        rank: 5,
        learned,
        ..StochasticEvidenceOptions::default()
    };
    let run = |saved, steps: usize| {
        let mut search =
            StochasticEvidence::new(&measured, &small.weights, &sinogram, &held, None, &options, &at, saved)
                .unwrap();
        let mut left = steps;
        let limits = Limits { steps: 300, time: None };
        drive(&mut search, limits, Clock::start(), &mut |_, _| {
            left -= 1;
            if left == 0 { Signal::Stop } else { Signal::Continue }
        })
        .unwrap();
        search.state().clone()
    };
    let whole = run(None, usize::MAX);
    for (a, b) in learned.pack(&whole.hyperparameters).iter().zip(&found.theta) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
    let resumed = run(Some(run(None, 150)), usize::MAX);
    assert_eq!(resumed.hyperparameters, whole.hyperparameters);
}
