//! Expectation maximisation against dense algebra.

use super::*;

/// Expectation maximisation with dense matrices on the same noise.
fn dense_turns(
    case: &Case,
    mut a: f64,
    samples: usize,
    update: Update,
    learn_noise: bool,
    count: usize,
) -> (f64, f64) {
    let (m, d) = (case.curvature(), case.features.whole().ncols());
    let noise = Noise::draw(&case.model(), 0..samples, 3, &mut go).unwrap();
    // The same random probes: that they are near the trace is tested beside.
    let spectrum = curvature_spectrum(&case.model(), (d, 40), 1).unwrap();
    let mut variance = 1.0;
    for _ in 0..count {
        let s: f64 = 1.0 / variance;
        let w = case.mode(a, s);
        let right = &noise.pulled * Scale(s.sqrt()) + &noise.white * Scale(a.sqrt());
        let z = inverse(&(&m * Scale(s) + identity(d, a))) * right;
        let k = samples as f64;
        let square = |m: &Mat<f64>| (0..m.ncols()).map(|j| m.col(j).squared_norm_l2()).sum::<f64>();
        let weighted = z.transpose() * &m * &z;
        let gamma = s * (0..samples).map(|j| weighted[(j, j)]).sum::<f64>() / k;
        a = match update {
            Update::Mackay => gamma.clamp(1.0, d as f64 - 1.0) / square(&w),
            Update::DecoupledElbo => d as f64 / (square(&w) + square(&z) / k),
            Update::Evidence => {
                // By Newton's method on the logarithm instead of bisection.
                let norm = square(&w);
                let mut t = a.ln();
                for _ in 0..200 {
                    let e = t.exp();
                    let sum = spectrum.trace(|l| s * l.max(0.0) / (s * l.max(0.0) + e)).mean;
                    let slope = spectrum.trace(|l| -s * l.max(0.0) * e / (s * l.max(0.0) + e).powi(2)).mean;
                    t -= (e * norm - sum) / (e * norm - slope);
                }
                t.exp()
            }
        };
        if learn_noise {
            let f = case.features.whole() * &w;
            let relative = [0.5, 1.0, 2.0];
            let residual: f64 = (0..f.nrows())
                .map(|i| (case.targets[i] - case.offset[i] - f[(i, 0)]).powi(2) / relative[i % 3])
                .sum();
            variance = residual / (f.nrows() as f64 - gamma);
        }
    }
    (a, variance)
}

#[test]
fn turns_by_conjugate_gradients_are_dense_ones_on_the_same_noise() {
    let softmax = Case::softmax(14, 6);
    let gaussian = Case::gaussian(14, 6);
    for (case, learn_noise) in [(&softmax, false), (&gaussian, false), (&gaussian, true)] {
        for update in [Update::Mackay, Update::DecoupledElbo] {
            let (a, variance) = dense_turns(case, 3.0, 5, update, learn_noise, 4);
            let set = |o: &mut EmOptions| (o.update, o.learn_noise) = (update, learn_noise);
            let (state, _) = turns(case, &case.model(), 3.0, 5, set, 4);
            assert_near(state.precisions[0] / a, 1.0, 1e-7);
            assert_near(state.noise_variance / variance, 1.0, 1e-7);
        }
    }
    // The bound's maximum needs the spectrum: by random probes, that of the trace within their error.
    let measure = curvature_spectrum(&softmax.model(), (400, 40), 5).unwrap();
    let expected = eigenvalues(softmax.curvature().as_ref()).unwrap();
    for a in [0.1, 2.0, 30.0] {
        let sum: f64 = expected.iter().map(|l| l / (l + a)).sum();
        let found = measure.trace(|l| l / (l + a));
        assert!((found.mean - sum).abs() < 5.0 * found.standard_error, "{found:?} {sum}");
    }
    let (a, _) = dense_turns(&softmax, 3.0, 5, Update::Evidence, false, 4);
    let (state, _) = turns(&softmax, &softmax.model(), 3.0, 5, |o| o.update = Update::Evidence, 4);
    assert_near(state.precisions[0] / a, 1.0, 1e-7);
}

#[test]
fn turns_end_where_the_update_rests_and_the_weight_estimate_agrees() {
    let case = Case::softmax(14, 6);
    let (state, _) = turns(&case, &case.model(), 3.0, 2000, |o| o.tolerance = 1e-6, 60);
    let turn = state.turns.last().unwrap();
    // MacKay's fixed point.
    assert_near(turn.precisions[0] * turn.squared_norms[0] / turn.effective_dimensions[0], 1.0, 2e-6);
    assert!(state.turns.len() < 60);
    // zeta' H zeta = d in the mean, and both estimators of the same.
    let near = 5.0 * (2.0f64 / (6.0 * 2000.0)).sqrt();
    assert_near(turn.convergence.unwrap(), 1.0, near);
    assert_near(turn.by_weight, turn.by_prediction.unwrap(), 6.0 * near);
    let (by_weight, _) = turns(&case, &case.model(), 3.0, 2000, |o| o.estimator = Estimator::Weight, 1);
    assert_eq!(by_weight.turns[0].by_prediction, None);
    assert_eq!(by_weight.turns[0].effective_dimensions[0], by_weight.turns[0].by_weight);
}

#[test]
fn turns_go_on_as_if_they_had_not_stopped() {
    let case = Case::softmax(20, 6);
    let model = case.model().scaled((0..6).map(|i| if i == 2 { 0.0 } else { 0.5 }).collect()).unwrap();
    let descent = DescentOptions { epochs: 4, batch: 6, ..DescentOptions::default() };
    for solve in [Solve::ConjugateGradients(tight()), Solve::Descent(descent)] {
        let begin = EmState::begin(&Prior::scalar(6, 3.0).unwrap(), 1.0);
        let mut seen = Vec::new();
        let whole = resumed(&case, &model, (begin, &solve), 3, |_| {}, 3, &mut |progress, state| {
            if progress.is_some_and(|p| p.step == 3) {
                seen.push(state());
            }
            Signal::Continue
        });
        assert_eq!(seen.len(), 3);
        for state in seen {
            let again = resumed(&case, &model, (state, &solve), 3, |_| {}, 3, &mut |_, _| Signal::Continue);
            assert_eq!((&again.precisions, &again.mode), (&whole.precisions, &whole.mode));
            assert_matrix(again.samples.unwrap().as_ref(), whole.samples.as_ref().unwrap().as_ref(), 0.0);
        }
        // A weight without influence keeps its prior, and stays at zero in the mode.
        assert_eq!(whole.mode.as_ref().unwrap().weights[2], 0.0);
    }
}

/// Spec `linearised_laplace`, sections 5.1 and 14, test 5: the decoupled bound is below that of the mode, which is below the evidence; all touch where the samples were drawn.
#[test]
fn bounds_lie_below_the_evidence_and_touch_it() {
    let case = Case::gaussian(8, 5);
    let (m, phi, drawn_at) = (case.curvature(), case.features.whole(), 0.9);
    let b = case.output_curvature(&case.offset);
    let residual = Mat::from_fn(24, 1, |i, _| case.targets[i] - case.offset[i]);
    let square = |m: &Mat<f64>, v: &Mat<f64>| (v.transpose() * m * v)[(0, 0)];
    let log_determinant = |m: &Mat<f64>| eigenvalues(m.as_ref()).unwrap().iter().map(|l| l.ln()).sum::<f64>();
    let constant = 24.0 * (2.0 * std::f64::consts::PI).ln();
    // From the definition: targets are normal with the prior's kernel and the noise.
    let evidence = |a: f64| {
        let covariance = phi * phi.transpose() * Scale(1.0 / a) + inverse(&b);
        -0.5 * (square(&inverse(&covariance), &residual) + log_determinant(&covariance) + constant)
    };
    let h = &m + identity(5, drawn_at);
    let w = inverse(&h) * phi.transpose() * &b * &residual;
    let left = &residual - phi * &w;
    let fit = -0.5 * (square(&b, &left) - log_determinant(&b) + constant);
    let norm = w.col(0).squared_norm_l2();
    let of_mode =
        |a: f64| fit - 0.5 * (a * norm + log_determinant(&(&m * Scale(1.0 / a) + identity(5, 1.0))));
    let covariance = inverse(&h);
    let trace: f64 = (0..5).map(|i| covariance[(i, i)]).sum();
    let decoupled = |a: f64| {
        let own = |a: f64| sampled_bound(&[5], &[a], &[norm], &[trace]);
        of_mode(drawn_at) + own(a) - own(drawn_at)
    };
    assert_near(of_mode(drawn_at), evidence(drawn_at), 1e-9);
    for a in [0.1, 0.5, 0.8, 1.0, 1.5, 4.0, 30.0] {
        assert!(decoupled(a) < of_mode(a) && of_mode(a) < evidence(a) + 1e-12, "{a}");
    }
    // One slope where they touch.
    let slope = |f: &dyn Fn(f64) -> f64| (f(drawn_at + 1e-5) - f(drawn_at - 1e-5)) / 2e-5;
    assert_near(slope(&of_mode), slope(&evidence), 1e-7);
    assert_near(slope(&decoupled), slope(&of_mode), 1e-7);
    // Updates are where the bounds are flat: the classical one of the decoupled bound.
    let best = 5.0 / (norm + trace);
    assert!(decoupled(best) > decoupled(1.01 * best) && decoupled(best) > decoupled(0.99 * best));
}
