//! Priors and inducing points in turns.

use super::super::learning::{Learned, alternate};
use super::super::{
    LearningOptions, RegulariserRisk, Selector, learn_reference, pointwise_predictive_risk, select_rows,
};
use super::{all, kernel, process, se};
use crate::exact::{ExactGp, FitOptions, log_evidence};
use crate::{Observations, Posterior};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::{Adaptive, Optimiser, Parameters, Signal};

fn options(points: usize) -> LearningOptions {
    LearningOptions {
        points,
        selector: Selector::GreedyVariance,
        risk: RegulariserRisk::Evidence,
        turns: 5,
        evidence: FitOptions { restarts: 1, ..FitOptions::default() },
        pointwise: (Optimiser::Adaptive(Adaptive::adam(0.05)), 200),
        least_risk: -10.0,
    }
}

fn wave(n: usize) -> Observations {
    let x = Mat::from_fn(n, 1, |i, _| -2.0 + 4.0 * i as f64 / (n - 1) as f64);
    let y = Mat::from_fn(n, 1, |i, _| (3.0 * x[(i, 0)]).sin() + 0.1 * ((17 * i % 11) as f64 / 11.0 - 0.5));
    Observations::new(x, y, None).unwrap()
}

#[test]
fn the_pointwise_risk_is_that_of_the_processes_own_predictions_and_its_gradient_a_finite_difference() {
    let noisy = all();
    let noise: Vec<f64> = (0..6).map(|i| 0.02 * (i + 1) as f64).collect();
    let known =
        Observations::new(noisy.inputs().to_owned(), noisy.targets().to_owned(), Some(noise)).unwrap();
    for (data, text) in
        [(&noisy, "se(lengthscale=0.8) + linear"), (&known, "matern52"), (&noisy, "nngp(depth=1, erf)")]
    {
        let model = process(kernel(text));
        let (value, gradient) = pointwise_predictive_risk(&model, data).unwrap();
        let found = model.clone().condition(data.clone()).unwrap().predict(data.inputs()).unwrap();
        let expected: f64 = (0..6)
            .map(|i| {
                let (v, r) = (found.latent_variance[i], data.targets()[(i, 0)] - found.mean[(i, 0)]);
                0.5 * ((2.0 * std::f64::consts::PI * v).ln() + r * r / v) / 6.0
            })
            .sum();
        assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        let values = model.values();
        for (i, g) in gradient.iter().enumerate() {
            let at = |shift: f64| {
                let mut moved = model.clone();
                let mut values = values.clone();
                values[i] += shift;
                moved.set_values(&values);
                pointwise_predictive_risk(&moved, data).unwrap().0
            };
            let h = 1e-5 * values[i];
            let expected = (at(h) - at(-h)) / (2.0 * h);
            assert!((g - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{text} {i}: {g} {expected}");
        }
    }
}

#[test]
fn turns_go_on_until_points_repeat_and_keep_the_best() {
    let data = wave(120);
    let found =
        learn_reference(process(se(1.0, 0.5)), &data, &options(12), &mut |_, _| Signal::Continue).unwrap();
    assert!(found.settled || found.turns.len() == 5);
    assert_eq!(found.rows.len(), 12);
    // Targets are those of the points that were kept.
    let own = found.posterior.data();
    for (place, &row) in found.rows.iter().enumerate() {
        assert_eq!(own.inputs()[(place, 0)], data.inputs()[(row, 0)]);
        assert_eq!(own.targets()[(place, 0)], data.targets()[(row, 0)]);
    }
    if found.settled {
        let best = found.turns.iter().map(|turn| turn.risk).fold(f64::INFINITY, f64::min);
        let value = -log_evidence(found.posterior.model(), own, None).unwrap().value / 12.0;
        assert!(value <= found.turns[0].risk + 1e-9 && value >= best - 1e-9);
    }
    // The same seed, the same points.
    let again =
        learn_reference(process(se(1.0, 0.5)), &data, &options(12), &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(again.rows, found.rows);
    assert_eq!(again.posterior.model().values(), found.posterior.model().values());
    // No turns: points for the kernel as it is.
    let still = LearningOptions { turns: 0, ..options(12) };
    let still = learn_reference(process(se(1.0, 0.5)), &data, &still, &mut |_, _| Signal::Continue).unwrap();
    assert_eq!(still.posterior.model().values(), process(se(1.0, 0.5)).values());
    // An observer who has seen enough ends it with what there is.
    let stopped =
        learn_reference(process(se(1.0, 0.5)), &data, &options(12), &mut |_, _| Signal::Stop).unwrap();
    assert!(stopped.interrupted && stopped.turns.len() == 1);
}

#[test]
fn turns_that_come_back_keep_the_one_of_the_cycle_with_the_least_risk() {
    // Three turns lead into a cycle of two: 0, then 1 and 2 for ever. The first has less risk than both, but does not come back.
    let sets = [[0, 1, 2], [1, 2, 3], [4, 3, 2]];
    for (risks, best) in [([-9.0, 0.5, 0.2], 2), ([-9.0, 0.1, 0.2], 1)] {
        let search = |mut model: ExactGp, rows: &[usize], turn: usize| {
            assert_eq!(rows, sets[turn]);
            let mut values = model.values();
            values[0] = 1.0 + turn as f64;
            model.set_values(&values);
            Ok(Learned { model, risk: risks[turn], steps: 1, stopped: false, is_last: false })
        };
        // The order of rows is none of the set's.
        let choose =
            |_: &ExactGp, turn: usize| Ok(if turn == 3 { vec![3, 1, 2] } else { sets[turn].to_vec() });
        let (model, found) = alternate(process(se(1.0, 0.5)), 10, search, choose).unwrap();
        assert!(found.settled && !found.timed_out && !found.interrupted);
        assert_eq!(found.turns.len(), 3);
        assert_eq!(found.rows, sets[best]);
        assert_eq!(model.values()[0], 1.0 + best as f64);
    }
}

#[test]
fn one_limit_of_time_is_that_of_all_turns() {
    for risk in [RegulariserRisk::Evidence, RegulariserRisk::PointwisePredictive] {
        let mut asked = LearningOptions { risk, turns: 50, least_risk: f64::NEG_INFINITY, ..options(12) };
        asked.evidence.steps.time = Some(std::time::Duration::from_micros(1));
        let found =
            learn_reference(process(se(1.0, 0.5)), &wave(120), &asked, &mut |_, _| Signal::Continue).unwrap();
        assert_eq!(found.turns.len(), 1, "{risk:?}");
        assert!(found.timed_out && !found.interrupted && !found.settled);
        assert_eq!(found.rows, found.turns[0].rows);
    }
}

#[test]
fn the_pointwise_risk_ends_at_its_threshold() {
    let asked = LearningOptions {
        risk: RegulariserRisk::PointwisePredictive,
        turns: 1,
        least_risk: 0.5,
        ..options(8)
    };
    let found =
        learn_reference(process(se(1.0, 0.5)), &wave(60), &asked, &mut |_, _| Signal::Continue).unwrap();
    assert!(found.turns[0].risk < 0.9 && found.turns[0].steps < 200, "{:?}", found.turns);
    assert!(!found.interrupted);
}

#[test]
fn selectors_take_different_rows_and_refuse_too_many() {
    let data = wave(50);
    for selector in [Selector::GreedyVariance, Selector::Random, Selector::KMeans] {
        let rows = select_rows(selector, &*se(1.0, 0.3), data.inputs(), 9, Streams::new(4)).unwrap();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((rows.len(), sorted.len()), (9, 9), "{selector:?}");
        let error = select_rows(selector, &*se(1.0, 0.3), data.inputs(), 51, Streams::new(4)).unwrap_err();
        assert!(error.to_string().contains("51 inducing points were asked for among 50 rows"), "{error}");
        assert!(select_rows(selector, &*se(1.0, 0.3), data.inputs(), 0, Streams::new(4)).is_err());
    }
    // A kernel of few features has no more points than these.
    let linear =
        select_rows(Selector::GreedyVariance, &*kernel("linear"), data.inputs(), 9, Streams::new(0)).unwrap();
    assert_eq!(linear.len(), 1);
}
