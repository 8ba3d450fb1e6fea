//! Descent on batches, and what is refused.

use super::*;

#[test]
fn descent_finds_the_samples_and_goes_on_as_if_it_had_not_stopped() {
    let case = Case::softmax(60, 6);
    let model = case.model();
    let noise = Noise::draw(&model, 0..4, 2, &mut go).unwrap();
    let each = vec![2.0; 6];
    let expected = exact(&model, &noise, 2.0, 1.0);
    let options = DescentOptions { epochs: 300, batch: 10, ..DescentOptions::default() };
    let run = |objective, saved, options: &DescentOptions, seen: &mut Vec<DescentState>| {
        let mut own = SampleObjective::new(&model, &noise, &each, 1.0, objective).unwrap();
        let start = noise.prior_draws(&each).unwrap();
        let (found, reason) =
            descend("it", &mut own, start, saved, Averaging::Geometric, options, &mut |p, s| {
                if p.step == 700 {
                    seen.push(s.clone());
                }
                Signal::Continue
            })
            .unwrap();
        assert_eq!(reason, Reason::Steps);
        found
    };
    let error = |found: &Mat<f64>| (found - &expected).norm_l2() / expected.norm_l2();
    let mut of_batches = Vec::new();
    for objective in [Objective::LowVariance, Objective::Standard] {
        // All data in each step: nothing is random, and 600 steps of momentum 0.9 forget the start. What is left is the average's own start, (1 - 1/6)^600.
        let whole = DescentOptions { epochs: 600, batch: 60, ..options.clone() };
        let exactly = error(&run(objective, None, &whole, &mut Vec::new()));
        assert!(exactly < 1e-9, "{objective:?}: {exactly}");
        // Batches leave noise, which a quarter of the step and four times the steps more than halve: iterates scatter by the root of the step, and averages by one over the root of their window.
        let mut states = Vec::new();
        let found = run(objective, None, &options, &mut states);
        let step = states[0].step_size;
        let longer = DescentOptions { epochs: 1200, step_size: Some(0.25 * step), ..options.clone() };
        let (short, long) = (error(&found), error(&run(objective, None, &longer, &mut Vec::new())));
        assert!(long < 0.5 * short && short < 0.2, "{objective:?}: {short} {long}");
        of_batches.push(short);
        let again = run(objective, states.pop(), &options, &mut Vec::new());
        assert_matrix(again.as_ref(), found.as_ref(), 0.0);
    }
    assert!(of_batches[0] < of_batches[1], "the low-variance objective has less noise: {of_batches:?}");
    // Much too long a step is halved until it is none.
    let mut own = SampleObjective::new(&model, &noise, &each, 1.0, Objective::LowVariance).unwrap();
    let wild = DescentOptions { step_size: Some(1e3), ..options.clone() };
    let mut restarts = 0;
    let (found, _) = descend(
        "it",
        &mut own,
        noise.prior_draws(&each).unwrap(),
        None,
        Averaging::Geometric,
        &wild,
        &mut |p, _| {
            restarts = p.restarts;
            Signal::Continue
        },
    )
    .unwrap();
    assert!(restarts > 5 && (&found - &expected).norm_l2() < 0.3 * expected.norm_l2());
    let hopeless = DescentOptions { step_size: Some(1e30), restarts: 3, ..options };
    let message = descend("it", &mut own, expected, None, Averaging::Geometric, &hopeless, &mut |_, _| {
        Signal::Continue
    })
    .unwrap_err()
    .to_string();
    assert!(message.contains("of it") && message.contains("3 restarts"), "{message}");
}

#[test]
fn the_mode_by_descent_is_that_by_newtons_method() {
    let case = Case::softmax(60, 6);
    let expected = case.mode(2.0, 1.0);
    let model = case.model();
    let each = vec![2.0; 6];
    let mut objective =
        ModeObjective { model: &model, precisions: &each, strength: 1.0, predictor: Predictor::Affine };
    let (gradient, loss) = objective.gradient_at(expected.as_ref(), None).unwrap();
    assert!(gradient.norm_max() < 1e-10);
    let moved = |h: f64| {
        let mut w = normal(6, 1, "w");
        w[(3, 0)] += h;
        objective.gradient_at(w.as_ref(), None).unwrap()
    };
    assert_near((moved(1e-5).1 - moved(-1e-5).1) / 2e-5, moved(0.0).0[(3, 0)], 1e-6);
    let mut reached = |options: &DescentOptions| {
        let zero = Mat::zeros(6, 1);
        let (found, _) =
            descend("the mode", &mut objective, zero, None, Averaging::Decay, options, &mut |_, _| {
                Signal::Continue
            })
            .unwrap();
        objective.gradient_at(found.as_ref(), None).unwrap().1 - loss
    };
    // Nothing random: the optimum. Batches: noise of the order of the last steps, which longer runs make shorter.
    let whole = DescentOptions { epochs: 400, batch: 60, ..DescentOptions::default() };
    assert!(reached(&whole).abs() < 1e-9);
    let options = DescentOptions { epochs: 100, batch: 10, ..DescentOptions::default() };
    let (short, long) = (reached(&options), reached(&DescentOptions { epochs: 800, ..options.clone() }));
    assert!(long < 0.5 * short && short < 0.01, "{short} {long}");
    let set = |o: &mut EmOptions| o.mode = ModeSolver::Descent(options.clone());
    let (state, _) = turns(&case, &model, 2.0, 3, set, 1);
    let weights = &state.mode.unwrap().weights;
    assert!((column(weights) - &expected).norm_l2() < 0.02 * expected.norm_l2());
}

#[test]
fn bad_input_is_refused_with_its_name() {
    let case = Case::softmax(4, 3);
    let model = case.model();
    assert!(Noise::draw(&model, 2..2, 0, &mut go).is_err());
    assert!(case.model().scaled(vec![1.0; 2]).is_err());
    assert!(case.model().scaled(vec![1.0, f64::NAN, 1.0]).is_err());
    let noise = Noise::draw(&model, 0..2, 0, &mut go).unwrap();
    let each = vec![1.0; 3];
    let mut own = SampleObjective::new(&model, &noise, &each, 1.0, Objective::LowVariance).unwrap();
    let base = DescentOptions::default();
    for bad in [
        DescentOptions { epochs: 0, ..base.clone() },
        DescentOptions { batch: 0, ..base.clone() },
        DescentOptions { momentum: 1.0, ..base.clone() },
        DescentOptions { step_size: Some(-1.0), ..base },
    ] {
        let start = noise.prior_draws(&each).unwrap();
        let found =
            descend("it", &mut own, start, None, Averaging::Geometric, &bad, &mut |_, _| Signal::Continue);
        assert!(found.unwrap_err().to_string().contains("option"));
    }
    let curvature = model.leading_curvature(&each, 1, 0, &mut go).unwrap();
    let none = ConjugateOptions { tolerance: 0.0, steps: 3 };
    let start = noise.prior_draws(&each).unwrap();
    let to = (&each[..], 1.0);
    assert!(
        solve_exactly(&model, &noise, to, &curvature, start, None, &none, &mut |_, _| Signal::Continue)
            .is_err()
    );
}
