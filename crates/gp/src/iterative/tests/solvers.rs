//! Every method reaches the direct solution, can be stopped and resumed, and survives steps that are too long.

use super::*;
use crate::GpError;
use posterior_linalg::solve::{PreconditionerChoice, System};
use posterior_optim::{Progress, Reason, Signal};

fn methods() -> Vec<(Method, Budget)> {
    let dual = |batch, sampling| {
        Method::DualDescent(DualDescentOptions { batch, sampling, ..DualDescentOptions::default() })
    };
    let sketch = |block, rank, acceleration| {
        let own = SketchAndProjectOptions::default();
        Method::SketchAndProject(SketchAndProjectOptions { block: Some(block), rank, acceleration, ..own })
    };
    vec![
        (Method::Direct, Budget::steps(1)),
        (
            Method::ConjugateGradients(ConjugateGradientOptions {
                preconditioner: PreconditionerChoice::PivotedCholesky { rank: 10, relative_tolerance: 0.0 },
                absolute_tolerance: 0.0,
            }),
            Budget { tolerance: 1e-13, ..Budget::steps(2000) },
        ),
        (dual(1, Sampling::Permutation), Budget::steps(60_000)),
        (dual(7, Sampling::Independent), Budget::steps(20_000)),
        (dual(20, Sampling::Permutation), Budget::steps(10_000)),
        (dual(80, Sampling::Permutation), Budget::steps(4_000)),
        (sketch(20, Some(10), Acceleration::Adaptive), Budget::steps(3_000)),
        (sketch(30, Some(10), Acceleration::Fixed(0.05)), Budget::steps(2_000)),
        (sketch(20, Some(10), Acceleration::None), Budget::steps(4_000)),
        (sketch(20, None, Acceleration::Adaptive), Budget::steps(2_000)),
        (sketch(30, None, Acceleration::None), Budget::steps(3_000)),
    ]
}

#[test]
fn all_solvers_meet_the_direct_solution() {
    let n = 80;
    let matrix = kernel_matrix(n, 0.5, true);
    let noise: Vec<f64> = (0..n).map(|i| 0.1 + 0.01 * (i % 5) as f64).collect();
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let (function, errors) = (normal(n, 3, "function"), normal(n, 3, "errors"));
    let targets = &function + &errors;
    let exact = exact_solution(&matrix, &noise, &targets);
    let problem = Problem::new(&system, function.as_ref(), Some(errors.as_ref())).unwrap();
    for (method, budget) in methods() {
        for start in [Start::Zero, Start::Weights(normal(n, 3, "start"))] {
            let found = solve(&method, &problem, start, &budget, &mut watch).unwrap();
            let error = (&found.weights - &exact).norm_max() / exact.norm_max();
            assert!(error < 1e-11, "{method:?}: {error} after {:?}", found.progress);
            // The residual is K̃ times the error, and no eigenvalue is above n (1 + 0.14).
            let bound = 1e-11 * exact.norm_max() * (n as f64).sqrt() * n as f64 * 1.14;
            for (j, residual) in problem.relative_residuals(found.weights.as_ref()).iter().enumerate() {
                assert!(residual * targets.col(j).norm_l2() < bound, "{method:?}: {residual}");
            }
            assert_eq!(found.progress.restarts, 0, "{method:?}");
        }
    }
}

#[test]
fn primal_descent_meets_the_direct_solution() {
    // A matrix of moderate condition, since the primal's is that of K K̃: near duplicates take for ever otherwise.
    let n = 30;
    let matrix = shifted(&kernel_matrix(n, 0.3, true), &[0.2; 30]);
    let noise = vec![0.5; n];
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let (function, errors) = (normal(n, 2, "function"), normal(n, 2, "errors"));
    let exact = exact_solution(&matrix, &noise, &(&function + &errors));
    let problem = Problem::new(&system, function.as_ref(), Some(errors.as_ref())).unwrap();
    for gradient in [Gradient::PrimalFull, Gradient::DualFull] {
        let options = DescentOptions { gradient, clip: None, ..DescentOptions::default() };
        let budget = Budget::steps(20_000);
        let found = solve(&Method::Descent(options), &problem, Start::Zero, &budget, &mut watch).unwrap();
        let error = (&found.weights - &exact).norm_max() / exact.norm_max();
        assert!(error < 1e-8, "{gradient:?}: {error}");
    }
    // Noisy gradients leave noise in the average: with ten times the steps in it, √10 times less in the norm that the primal minimises.
    let features = RootFeatures(root(&matrix));
    let problem = problem.with_features(&features);
    for noise in [NoisePlacement::Targets, NoisePlacement::Regulariser] {
        let regulariser = Regulariser::Features { count: 20 };
        let options = DescentOptions {
            gradient: Gradient::Primal { noise, regulariser },
            averaging: Averaging::Arithmetic { from: 2_000 },
            // Slices of permutations depend on one another, which biases the mean of the iterates by some two per cent here.
            sampling: Sampling::Independent,
            batch: 10,
            clip: None,
            ..DescentOptions::default()
        };
        let error = |steps| {
            let method = Method::Descent(options.clone());
            let found = solve(&method, &problem, Start::Zero, &Budget::steps(steps), &mut watch).unwrap();
            (&matrix * (&found.weights - &exact)).norm_l2() / (&matrix * &exact).norm_l2()
        };
        let (few, many) = (error(4_000), error(22_000));
        // The norm of some sixty noisy numbers, a few of which dominate: twice the expected third is out of reach.
        assert!(few < 0.5 && many < 0.6 * few, "{noise:?}: {few} {many}");
    }
}

#[test]
fn general_descent_and_dual_descent_are_one_algorithm() {
    let n = 40;
    let matrix = kernel_matrix(n, 0.5, true);
    let k = dense(&matrix);
    let system = System::uniform(&k, 0.1).unwrap();
    let z = normal(n, 2, "targets");
    let problem = Problem::new(&system, z.as_ref(), None).unwrap();
    let budget = Budget::steps(300);
    let step_size = StepSize::TimesRows(3.0);
    let lazy = DualDescentOptions { batch: 8, step_size, seed: 4, ..DualDescentOptions::default() };
    let general = DescentOptions {
        gradient: Gradient::DualCoordinates,
        batch: 8,
        clip: None,
        step_size,
        seed: 4,
        ..DescentOptions::default()
    };
    let a = solve(&Method::DualDescent(lazy), &problem, Start::Zero, &budget, &mut watch).unwrap();
    let b = solve(&Method::Descent(general), &problem, Start::Zero, &budget, &mut watch).unwrap();
    assert!((&a.weights - &b.weights).norm_max() < 1e-11 * b.weights.norm_max());
}

#[test]
fn interrupted_solves_go_on_exactly_through_serde() {
    let n = 50;
    let matrix = kernel_matrix(n, 0.5, true);
    let k = dense(&matrix);
    let system = System::uniform(&k, 0.05).unwrap();
    let z = normal(n, 2, "targets");
    let features = RootFeatures(root(&matrix));
    let problem = Problem::new(&system, z.as_ref(), None).unwrap().with_features(&features);
    let descent = |rule, averaging| {
        Method::Descent(DescentOptions {
            rule,
            averaging,
            batch: 10,
            step_size: StepSize::TimesRows(0.05),
            ..DescentOptions::default()
        })
    };
    // Eleven steps are more than a pass, behind which an acceleration adapts.
    let blocks = |rank, acceleration| {
        Method::SketchAndProject(SketchAndProjectOptions {
            block: Some(8),
            rank,
            acceleration,
            ..SketchAndProjectOptions::default()
        })
    };
    let methods = [
        Method::ConjugateGradients(ConjugateGradientOptions {
            preconditioner: PreconditionerChoice::None,
            absolute_tolerance: 0.0,
        }),
        Method::DualDescent(DualDescentOptions { batch: 8, ..DualDescentOptions::default() }),
        descent(DescentRule::Nesterov { momentum: 0.9 }, Averaging::Geometric),
        descent(DescentRule::Adam, Averaging::Arithmetic { from: 10 }),
        blocks(None, Acceleration::Adaptive),
        blocks(Some(4), Acceleration::Adaptive),
        blocks(Some(4), Acceleration::None),
    ];
    for method in methods {
        let budget = Budget { tolerance: 1e-9, ..Budget::steps(40) };
        let whole = solve(&method, &problem, Start::Zero, &budget, &mut watch).unwrap();
        let mut saved = None;
        let mut stop_at_ten = |progress: &Progress, iterate: &dyn Iterate<f64>| {
            if progress.step == 10 {
                saved = Some(serde_json::to_string(&iterate.state(progress)).unwrap());
                return Signal::Stop;
            }
            Signal::Continue
        };
        let partial = solve(&method, &problem, Start::Zero, &budget, &mut stop_at_ten).unwrap();
        assert_eq!(partial.reason, Reason::Interrupted);
        let state: SolverState<f64> = serde_json::from_str(&saved.unwrap()).unwrap();
        let resumed = solve(&method, &problem, Start::Resume(state.clone()), &budget, &mut watch).unwrap();
        assert_eq!(resumed.weights, whole.weights, "{method:?}");
        assert_eq!(resumed.progress.step, whole.progress.step);
        // Another method, or another problem, refuses it.
        let mut foreign = state.clone();
        foreign.header.method = "other".into();
        let refused = solve(&method, &problem, Start::Resume(foreign), &budget, &mut watch);
        assert!(matches!(refused, Err(GpError::State { .. })));
        let narrow = Problem::new(&system, z.as_ref().get(.., ..1), None).unwrap().with_features(&features);
        assert!(solve(&method, &narrow, Start::Resume(state), &budget, &mut watch).is_err());
    }
}

#[test]
fn the_step_rule_is_stable_and_longer_steps_restart() {
    let n = 100;
    for matern in [false, true] {
        for lengthscale in [0.1, 1.0, 10.0] {
            for noise in [1e-3, 0.1, 1.0] {
                let matrix = kernel_matrix(n, lengthscale, matern);
                let k = dense(&matrix);
                let system = System::uniform(&k, noise).unwrap();
                let z = normal(n, 1, "targets");
                let problem = Problem::new(&system, z.as_ref(), None).unwrap();
                for batch in [1, 10, 100] {
                    let options = DualDescentOptions { batch, ..DualDescentOptions::default() };
                    let method = Method::DualDescent(options.clone());
                    let found =
                        solve(&method, &problem, Start::Zero, &Budget::steps(1500), &mut watch).unwrap();
                    assert_eq!(found.progress.restarts, 0, "{matern} {lengthscale} {noise} {batch}");
                    // ½ αᵀK̃α - αᵀz must have gone down from 0.
                    let alpha = &found.weights;
                    let product = &shifted(&matrix, &vec![noise; n]) * alpha;
                    let dual: f64 = (0..n).map(|i| alpha[(i, 0)] * (0.5 * product[(i, 0)] - z[(i, 0)])).sum();
                    assert!(dual < 0.0, "{dual}");
                }
            }
        }
    }
    // 1.3 times the full-batch limit of Nesterov's method diverges, and is found out and halved until it does not.
    let matrix = kernel_matrix(n, 1.0, true);
    let k = dense(&matrix);
    let system = System::uniform(&k, 0.1).unwrap();
    let z = normal(n, 1, "targets");
    let problem = Problem::new(&system, z.as_ref(), None).unwrap();
    let largest = matrix.self_adjoint_eigenvalues(faer::Side::Lower).unwrap()[n - 1] + 0.1;
    let limit = n as f64 * 2.0 * 1.9 / 2.8 / largest;
    for (factor, restarts) in [(0.98, 0), (1.3, 1)] {
        let options = DualDescentOptions {
            batch: n,
            step_size: StepSize::TimesRows(factor * limit),
            ..DualDescentOptions::default()
        };
        let found = solve(
            &Method::DualDescent(options.clone()),
            &problem,
            Start::Zero,
            &Budget::steps(3000),
            &mut watch,
        )
        .unwrap();
        assert_eq!(found.progress.restarts, restarts, "{factor}");
        let exact = exact_solution(&matrix, &vec![0.1; n], &z);
        assert!((&found.weights - &exact).norm_max() < 1e-6 * exact.norm_max());
        let given_up = DualDescentOptions { restarts: 0, ..options };
        let result =
            solve(&Method::DualDescent(given_up), &problem, Start::Zero, &Budget::steps(3000), &mut watch);
        assert_eq!(matches!(result, Err(GpError::Diverged { .. })), restarts > 0);
    }
}

#[test]
fn single_precision_solves_and_bad_settings_do_not() {
    let n = 200;
    let matrix = kernel_matrix(n, 0.5, true);
    let k = Dense::new(Mat::<f32>::from_fn(n, n, |i, j| matrix[(i, j)] as f32));
    let system = System::uniform(&k, 0.1f32).unwrap();
    let z = normal(n, 2, "targets");
    let narrow = Mat::<f32>::from_fn(n, 2, |i, j| z[(i, j)] as f32);
    let problem = Problem::new(&system, narrow.as_ref(), None).unwrap();
    let exact = exact_solution(&matrix, &vec![0.1; n], &z);
    for method in [
        Method::Direct,
        Method::ConjugateGradients(ConjugateGradientOptions::default()),
        Method::DualDescent(DualDescentOptions { batch: 32, ..DualDescentOptions::default() }),
        Method::SketchAndProject(SketchAndProjectOptions::default()),
    ] {
        let budget = Budget { tolerance: 1e-5, ..Budget::steps(5000) };
        let found = solve(&method, &problem, Start::Zero, &budget, &mut watch).unwrap();
        let wide = Mat::<f64>::from_fn(n, 2, |i, j| f64::from(found.weights[(i, j)]));
        let error = (&wide - &exact).norm_l2() / exact.norm_l2();
        // A relative residual of 1e-5 bounds the relative error by condition (λ₁ / 0.1, below 600) times it.
        assert!(error < 6e-3, "{method:?} {error}");
    }
    let bad = |options: DualDescentOptions| {
        solve(&Method::DualDescent(options), &problem, Start::Zero, &Budget::steps(5), &mut watch)
            .unwrap_err()
    };
    let default = DualDescentOptions::default;
    assert!(bad(DualDescentOptions { momentum: 1.0, ..default() }).to_string().contains("momentum is 1"));
    assert!(bad(DualDescentOptions { batch: 0, ..default() }).to_string().contains("batch size"));
    let negative = StepSize::TimesRows(-1.0);
    assert!(bad(DualDescentOptions { step_size: negative, ..default() }).to_string().contains("step size"));
    let features = Method::Descent(DescentOptions::default());
    let refused = solve(&features, &problem, Start::Zero, &Budget::steps(5), &mut watch);
    assert!(matches!(refused, Err(GpError::NoFeatures)));
    let short = Start::Weights(Mat::zeros(3, 2));
    assert!(solve(&Method::Direct, &problem, short, &Budget::steps(1), &mut watch).is_err());
}

#[test]
fn budgets_end_solves() {
    let n = 60;
    let k = dense(&kernel_matrix(n, 0.5, true));
    let system = System::uniform(&k, 0.1).unwrap();
    let z = normal(n, 1, "targets");
    let problem = Problem::new(&system, z.as_ref(), None).unwrap();
    let method = Method::DualDescent(DualDescentOptions { batch: 10, ..DualDescentOptions::default() });
    let early = Budget { tolerance: 1e-3, ..Budget::steps(100_000) };
    let found = solve(&method, &problem, Start::Zero, &early, &mut watch).unwrap();
    assert_eq!(found.reason, Reason::Tolerance);
    // The estimate is of the look-ahead point, the average lags a little behind.
    assert!(problem.relative_residuals(found.weights.as_ref())[0] < 0.1);
    let brief = Budget { time: Some(std::time::Duration::ZERO), ..Budget::steps(100_000) };
    assert_eq!(solve(&method, &problem, Start::Zero, &brief, &mut watch).unwrap().reason, Reason::Time);
}
