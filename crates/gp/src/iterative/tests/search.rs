//! The search against exact maximisation: what the probes' noise allows, warm starts, repeatability, interruption.

use super::*;
use crate::exact::{ExactGp, FitOptions, fit, log_evidence_and_gradient};
use crate::{GpError, Hyperprior, Mean, MeanForm, Observations};
use posterior_kernels::{Kernel, KernelExpression, gram};
use posterior_likelihoods::Gaussian;
use posterior_linalg::solve::{PreconditionerChoice, System};
use posterior_optim::{Constraint, LoopOptions, Parameters, Progress, Reason, Schedule, Signal};

fn kernel() -> Box<dyn Kernel<f64>> {
    "matern32(ard)".parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

fn model() -> PathwiseModel<f64> {
    PathwiseModel {
        kernel: kernel(),
        mean: Mean::new(MeanForm::Constant, 2, 1),
        noise: Gaussian::new(0.3, 1e-6),
    }
}

fn exact() -> ExactGp {
    ExactGp::new(kernel(), MeanForm::Constant, Gaussian::new(0.3, 1e-6), 2, 1)
}

/// A draw of a process with mean 0.7, noise variance 0.05, and a kernel other than where searches begin.
fn data(n: usize) -> Observations {
    let x = normal(n, 2, "inputs");
    let mut kernel = kernel();
    let theta: Vec<f64> = kernel.unconstrained().iter().zip([0.4, -0.5, 0.3]).map(|(u, d)| u + d).collect();
    kernel.set_unconstrained(&theta);
    let f = root(&gram(&*kernel, x.as_ref())) * normal(n, 1, "function");
    let e = normal(n, 1, "noise");
    let y = Mat::from_fn(n, 1, |i, _| 0.7 + f[(i, 0)] + 0.05f64.sqrt() * e[(i, 0)]);
    Observations::new(x, y, None).unwrap()
}

/// Plain conjugate gradients: what a preconditioner saves would hide what a start saves.
fn conjugate() -> Method {
    Method::ConjugateGradients(ConjugateGradientOptions {
        preconditioner: PreconditionerChoice::None,
        absolute_tolerance: 0.0,
    })
}

fn options(steps: usize, probes: usize) -> SearchOptions {
    SearchOptions {
        steps,
        method: Method::Direct,
        solves: PathwiseSettings { samples: probes, seed: 5, ..SearchOptions::default().solves },
        ..SearchOptions::default()
    }
}

fn search(data: &Observations, options: &SearchOptions) -> EvidenceSearch<f64> {
    search_evidence(model(), data, options, None, &mut |_, _| Signal::Continue).unwrap()
}

/// The gradient of the log evidence in the unconstrained parameters, exactly or with random signs, put together here from its parts.
fn slope(theta: &[f64], data: &Observations, signs: Option<(usize, u64)>) -> Mat<f64> {
    let mut model = exact();
    model.set_unconstrained(theta);
    let natural = match signs {
        None => log_evidence_and_gradient(&model, data, None).unwrap().gradient,
        Some((count, seed)) => {
            let stored = dense(&gram(model.kernel(), data.inputs()));
            let system = System::uniform(&stored, model.noise().noise_variance()).unwrap();
            let y = data.targets() - model.mean().evaluate(data.inputs());
            let probes = Probes::Hutchinson { count, seed };
            let (direct, budget) = (Method::Direct, Budget::steps(1));
            let (kernel, x) = (model.kernel(), data.inputs());
            let found =
                evidence_gradient(kernel, x, &system, y.as_ref(), probes, &direct, Start::Zero, &budget)
                    .unwrap();
            let mean = found.solution.weights.col(0).iter().sum();
            [found.kernel, vec![mean, found.noise]].concat()
        }
    };
    let slope = model.chain(theta, &natural);
    Mat::from_fn(slope.len(), 1, |i, _| slope[i])
}

#[test]
fn a_search_finds_the_exact_maximum_within_the_noise_of_its_probes() {
    let (data, count) = (data(200), 64);
    let steps = LoopOptions { gradient_tolerance: 1e-9, value_tolerance: 0.0, ..FitOptions::default().steps };
    let settings = FitOptions { restarts: 1, steps, ..FitOptions::default() };
    let maximum = fit(exact(), data.clone(), &settings, &mut |_, _| Signal::Continue).unwrap();
    let theta = maximum.posterior.model().unconstrained();
    let free = theta.len();
    assert!(slope(&theta, &data, None).norm_max() < 1e-3);
    // The estimate's root θ' has g(θ') = 0 = g(θ) + H (θ' - θ) + ...: the search ends at θ - H⁻¹ g(θ), H the Hessian of the log evidence, and
    // the covariance of that over seeds is H⁻¹ C H⁻¹ with the covariance C of g(θ).
    let h = 1e-4;
    let mut negative_hessian = Mat::zeros(free, free);
    for j in 0..free {
        let moved = |by: f64| {
            let mut moved = theta.clone();
            moved[j] += by;
            slope(&moved, &data, None)
        };
        let column = (moved(h) - moved(-h)) * faer::Scale(-0.5 / h);
        negative_hessian.col_mut(j).copy_from(column.col(0));
    }
    let hessian = Cholesky::of(negative_hessian.as_ref(), JitterPolicy::NONE).unwrap();
    let shift = |seed| hessian.solve(slope(&theta, &data, Some((count, seed))).as_ref());
    let shifts: Vec<Mat<f64>> = (100..140).map(shift).collect();
    let deviation: Vec<f64> = (0..free)
        .map(|i| (shifts.iter().map(|s| s[(i, 0)].powi(2)).sum::<f64>() / shifts.len() as f64).sqrt())
        .collect();
    let plan = SearchOptions { schedule: Schedule::Cosine, averaged: 0.05, ..options(300, count) };
    let found = search(&data, &plan);
    assert_eq!((found.steps, found.reason, found.trace.len()), (300, Reason::Steps, 300));
    assert_eq!(found.solver_steps, 300);
    let (reached, begun, own) = (found.model.unconstrained(), model().unconstrained(), shift(5));
    for i in 0..free {
        let error = reached[i] - theta[i];
        assert!(error.abs() < 4.0 * deviation[i] + 1e-4, "parameter {i}: {error} with {}", deviation[i]);
        // With the probes known, so is the shift, to first order.
        assert!((error - own[(i, 0)]).abs() < 0.2 * deviation[i] + 1e-4, "parameter {i}: {error} {own:?}");
        // Neither bound is met by standing still.
        assert!((theta[i] - begun[i]).abs() > 4.0 * deviation[i], "parameter {i} says nothing");
    }
    assert!(found.trace[299].gradient_norm < 1e-3 * found.trace[0].gradient_norm);
    // Fresh probes: the mean of 210 iterates has the noise of as many sets of four, in parameters nearer than one set of four would bring.
    let few = SearchOptions { fresh_probes: true, averaged: 0.7, learning_rate: 0.05, ..options(300, 4) };
    let fresh = search(&data, &few).model.unconstrained();
    for i in 0..free {
        let error = fresh[i] - theta[i];
        let of_four = deviation[i] * (count as f64 / 4.0).sqrt();
        assert!(error.abs() < 4.0 * of_four / 210f64.sqrt() + 1e-3, "parameter {i}: {error} with {of_four}");
    }
}

#[test]
fn the_same_seeds_give_the_same_result() {
    let data = data(60);
    for probes in [ProbeKind::Signs, ProbeKind::Pathwise] {
        for fresh_probes in [false, true] {
            let mut plan = SearchOptions { probes, fresh_probes, ..options(6, 8) };
            plan.solves.features.count = 64;
            let (one, two) = (search(&data, &plan), search(&data, &plan));
            assert_eq!(one.model.values(), two.model.values());
            assert_eq!(one.trace, two.trace);
            plan.solves.seed += 1;
            assert_ne!(one.model.values(), search(&data, &plan).model.values());
        }
    }
}

#[test]
fn pathwise_probes_and_iterative_solvers_lead_to_the_same_place() {
    let data = data(60);
    let mut plan = options(40, 256);
    let signs = search(&data, &plan).model.unconstrained();
    let near = |found: &EvidenceSearch<f64>, tolerance: f64| {
        let found = found.model.unconstrained();
        for (a, b) in found.iter().zip(&signs) {
            assert!((a - b).abs() < tolerance, "{found:?} {signs:?}");
        }
    };
    // The same probes: only the residuals of the solves are between them.
    plan.solves.budget = Budget { steps: 3000, time: None, tolerance: 1e-6 };
    let dual = Method::DualDescent(DualDescentOptions { batch: 20, ..DualDescentOptions::default() });
    near(&search(&data, &SearchOptions { method: conjugate(), ..plan.clone() }), 1e-3);
    let few = SearchOptions { steps: 3, ..plan.clone() };
    let expected = search(&data, &few).model.unconstrained();
    for (a, b) in
        search(&data, &SearchOptions { method: dual, ..few }).model.unconstrained().iter().zip(expected)
    {
        assert!((a - b).abs() < 1e-2, "{a} {b}");
    }
    near(&search(&data, &SearchOptions { probes: ProbeKind::Pathwise, ..plan }), 0.2);
}

#[test]
fn warm_starts_save_solver_steps() {
    let data = data(150);
    let mut plan = SearchOptions { method: conjugate(), learning_rate: 0.05, ..options(30, 8) };
    plan.solves.budget = Budget { steps: 2000, time: None, tolerance: 1e-3 };
    let warm = search(&data, &plan);
    let cold = search(&data, &SearchOptions { warm_starts: false, ..plan.clone() });
    assert_eq!(warm.solver_steps, warm.trace.iter().map(|s| s.solver_steps).sum::<usize>());
    assert_eq!(warm.trace[0], cold.trace[0]);
    assert!(warm.trace.iter().all(|s| s.ended == Reason::Tolerance && s.residual.unwrap() <= 1e-3));
    // A step of 0.05 leaves a residual of some hundredths, so part of the orders of magnitude down to 1e-3 is saved.
    assert!((warm.solver_steps as f64) < 0.85 * cold.solver_steps as f64);
    for (a, b) in warm.model.unconstrained().iter().zip(cold.model.unconstrained()) {
        assert!((a - b).abs() < 0.02, "{a} {b}");
    }
}

/// One step of conjugate gradients leaves most of a system: solves go on, five budgets at most, until half of it is gone, and a search that was saved between two of them ends with the same numbers.
#[test]
fn solves_that_leave_more_than_half_go_on() {
    let data = data(150);
    let mut plan = SearchOptions { method: conjugate(), warm_starts: false, ..options(6, 4) };
    plan.solves.budget = Budget { steps: 1, time: None, tolerance: 1e-3 };
    let found = search(&data, &plan);
    for step in &found.trace {
        assert!((2..=5).contains(&step.solver_steps), "{step:?}");
        assert!(step.residual.unwrap() <= 0.5 || step.solver_steps == 5, "{step:?}");
    }
    assert_eq!(found.solver_steps, found.trace.iter().map(|s| s.solver_steps).sum::<usize>());
    let (mut saved, mut calls) = (None, 0);
    search_evidence(model(), &data, &plan, None, &mut |progress, search| {
        // The second solve of the third step is under way.
        calls = if progress.step == 2 && search.solve().is_some() { calls + 1 } else { 0 };
        if calls == 2 {
            saved = Some(search.state(progress));
        }
        Signal::Continue
    })
    .unwrap();
    let saved = saved.expect("a solve that goes on");
    let resumed = search_evidence(model(), &data, &plan, Some(saved), &mut |_, _| Signal::Continue).unwrap();
    assert_eq!((&resumed.trace, resumed.solver_steps), (&found.trace, found.solver_steps));
    assert_eq!(resumed.model.values(), found.model.values());
    // A budget that leaves little is all that is used.
    plan.solves.budget.steps = 40;
    assert!(search(&data, &plan).trace.iter().all(|step| step.solver_steps <= 40));
}

#[test]
fn an_interrupted_search_stops_at_once_and_says_so() {
    let data = data(60);
    let plan = SearchOptions { method: conjugate(), ..options(20, 4) };
    // Within the first solve: nothing was learned.
    let mut calls = 0;
    let mut first = |progress: &Progress, _: &SearchIterate<'_, f64>| {
        calls += 1;
        assert_eq!((progress.step, progress.evaluations, progress.gradient_norm), (0, 1, None));
        Signal::Stop
    };
    let found = search_evidence(model(), &data, &plan, None, &mut first).unwrap();
    assert_eq!((calls, found.steps, found.solver_steps), (1, 0, 1));
    assert_eq!((found.reason, found.trace.len()), (Reason::Interrupted, 0));
    assert_eq!(found.model.values(), model().values());
    assert_eq!(found.solution.unwrap().reason, Reason::Interrupted);
    // Within a direct solve, which cannot be cut short: no step comes of it. After a step: that step counts.
    for (method, within) in [(Method::Direct, true), (Method::Direct, false), (conjugate(), true)] {
        let (mut after, mut stopped) = (0, false);
        let mut third = |progress: &Progress, _: &SearchIterate<'_, f64>| {
            after += usize::from(stopped);
            stopped |= progress.step == 3 && progress.gradient_norm.is_none() == within;
            if stopped { Signal::Stop } else { Signal::Continue }
        };
        let plan = SearchOptions { method, averaged: 0.3, ..plan.clone() };
        let found = search_evidence(model(), &data, &plan, None, &mut third).unwrap();
        assert_eq!((after, found.steps, found.reason), (0, 3, Reason::Interrupted));
        let three = search(&data, &SearchOptions { steps: 3, ..plan });
        assert_eq!(found.model.values(), three.model.values());
        assert_eq!(three.reason, Reason::Steps);
    }
    let plan = SearchOptions { time: Some(std::time::Duration::ZERO), ..plan };
    assert_eq!(search(&data, &plan).reason, Reason::Time);
}

#[test]
fn a_saved_search_goes_on_bit_for_bit() {
    let data = data(50);
    for fresh_probes in [false, true] {
        let plan = SearchOptions { method: conjugate(), fresh_probes, ..options(8, 4) };
        let whole = search(&data, &plan);
        // Within the fourth solve and behind the third step.
        for within in [false, true] {
            let mut state = None;
            let mut stop = |progress: &Progress, search: &SearchIterate<'_, f64>| {
                if progress.step == 3 && progress.gradient_norm.is_none() == within {
                    state = Some(search.state(progress));
                    return Signal::Stop;
                }
                Signal::Continue
            };
            let cut = search_evidence(model(), &data, &plan, None, &mut stop).unwrap();
            assert_eq!(cut.reason, Reason::Interrupted);
            let SearchState { header, weights } = state.unwrap();
            assert_eq!(header.step(), 3);
            let text = serde_json::to_string(&header).unwrap();
            let header: SearchHeader = serde_json::from_str(&text).unwrap();
            let state = Some(SearchState { header: header.clone(), weights: weights.clone() });
            let rest = search_evidence(model(), &data, &plan, state, &mut |_, _| Signal::Continue).unwrap();
            assert_eq!((rest.model.values(), &rest.trace), (whole.model.values(), &whole.trace));
            assert_eq!(rest.solver_steps, whole.solver_steps);
            assert_eq!(rest.solution.unwrap().weights, whole.solution.as_ref().unwrap().weights);
            // States of other searches.
            for (probes, rows) in [(5, 50), (4, 49)] {
                let plan = SearchOptions { method: conjugate(), ..options(8, probes) };
                let state = SearchState { header: header.clone(), weights: weights.clone() };
                let other = super::tests::search::data(rows);
                let error =
                    search_evidence(model(), &other, &plan, Some(state), &mut |_, _| Signal::Continue);
                assert!(matches!(error, Err(GpError::State { .. })));
            }
        }
    }
}

#[test]
fn averages_are_of_the_last_iterates_without_constraints() {
    let data = data(40);
    let plan = SearchOptions { averaged: 0.5, ..options(5, 4) };
    let mut seen = Vec::new();
    let mut watch = |progress: &Progress, search: &SearchIterate<'_, f64>| {
        if progress.gradient_norm.is_some() {
            seen.push(search.model().unconstrained());
        }
        Signal::Continue
    };
    let found = search_evidence(model(), &data, &plan, None, &mut watch).unwrap().model.unconstrained();
    assert_eq!(seen.len(), 5);
    for (i, found) in found.iter().enumerate() {
        let mean = (seen[2][i] + seen[3][i] + seen[4][i]) / 3.0;
        assert!((found - mean).abs() < 1e-10, "{found} {mean}");
    }
}

#[test]
fn unusable_settings_are_named() {
    let data = data(20);
    let says = |options: SearchOptions, words: &str| {
        let error =
            search_evidence(model(), &data, &options, None, &mut |_, _| Signal::Continue).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        error
    };
    let good = || options(3, 4);
    says(SearchOptions { learning_rate: f64::NAN, ..good() }, "the learning rate");
    says(SearchOptions { averaged: 0.0, ..good() }, "the averaged share");
    says(options(3, 0), "the number of probes");
    says(options(usize::MAX, 4), "the number of steps");
    let error = says(SearchOptions { memory_limit: 1000, ..good() }, "above the limit of 1.0 kB");
    assert!(matches!(error, GpError::Memory { plan, .. } if plan == good().plan::<f64>(20, 2, 1)));
    let unknown = vec![Hyperprior::weak_lengthscale("nothing", 2)];
    says(SearchOptions { hyperpriors: unknown, ..good() }, "`nothing`");
    // A step so long that nothing is finite after it.
    says(SearchOptions { learning_rate: 1e6, ..good() }, "step 2 failed");
}

/// One pass of factored blocks a step, from the solutions of the step before, leads where direct solves lead: hyperparameters move more slowly than solutions are reached.
#[test]
fn one_pass_a_step_is_enough() {
    let data = data(240);
    for probes in [ProbeKind::Signs, ProbeKind::Pathwise] {
        let base = SearchOptions { probes, ..options(60, 32) };
        let direct = search(&data, &base);
        let block = SketchAndProjectOptions {
            block: Some(40),
            acceleration: Acceleration::None,
            ..SketchAndProjectOptions::default()
        };
        let mut passes = SearchOptions { method: Method::SketchAndProject(block), ..base.clone() };
        passes.solves.budget = Budget { tolerance: 1e-8, ..Budget::steps(6) };
        let found = search(&data, &passes);
        // The first solves, which begin far from their end, may take a second pass.
        let more = found.trace.iter().filter(|step| step.solver_steps > 6).count();
        assert!(more <= 3 && found.trace[3..].iter().all(|step| step.solver_steps == 6), "{:?}", found.trace);
        let value = |model: &PathwiseModel<f64>| {
            let mut at = exact();
            at.set_values(&model.values());
            log_evidence_and_gradient(&at, &data, None).unwrap().value
        };
        let (begun, wanted, reached) = (value(&self::model()), value(&direct.model), value(&found.model));
        assert!(
            wanted - reached < 0.02 * (wanted - begun) && wanted > begun + 20.0,
            "{probes:?}: {begun} {wanted} {reached}"
        );
        // What gradients promised is what was gained, to first order in steps that shorten.
        let promised: f64 = found.trace.iter().map(|step| step.gain).sum::<f64>() * 240.0;
        let gained = reached - begun;
        assert!((promised - gained).abs() < 0.3 * gained, "{probes:?}: {promised} {gained}");
        let late: f64 = found.trace[45..].iter().map(|step| step.gain).sum();
        assert!(late.abs() < 0.1 * promised / 240.0, "{late} {promised}");
    }
}

/// Parameters that are held stay, and bounds are kept, though the evidence wants more; what ends at a bound is said.
#[test]
fn constraints_hold() {
    let data = data(120);
    let free = search(&data, &options(40, 32)).model;
    let noise = free.noise.noise_variance();
    let constraints = vec![
        Constraint::Fixed { parameter: "matern32.lengthscale[1]".into(), value: Some(0.77) },
        Constraint::Between { parameter: "noise_variance".into(), lower: 2.0 * noise, upper: 6.0 * noise },
    ];
    let held = search(&data, &SearchOptions { constraints, ..options(800, 32) });
    let values = held.model.values();
    let segments = held.model.segments();
    let own = segments.iter().position(|s| s.name == "matern32.lengthscale").unwrap();
    let before: usize = segments[..own].iter().map(|s| s.len()).sum();
    assert_eq!(values[before + 1], 0.77);
    assert!((1.9 * noise..2.2 * noise).contains(&held.model.noise.noise_variance()), "{values:?} {noise}");
    let reached = held.model.noise.noise_variance() / (2.0 * noise);
    assert_eq!(held.at_bounds, [("noise_variance".to_string(), 2.0 * noise)], "{reached}");
    let unknown = vec![Constraint::Fixed { parameter: "scale".into(), value: None }];
    let plan = SearchOptions { constraints: unknown, ..options(1, 2) };
    let error = search_evidence(model(), &data, &plan, None, &mut |_, _| Signal::Continue).unwrap_err();
    assert!(matches!(error, GpError::Optim(_)), "{error}");
}
