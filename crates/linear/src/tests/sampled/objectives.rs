//! Two objectives, one minimum, two variances.

use super::*;

#[test]
fn both_objectives_have_one_gradient_and_one_minimum() {
    let case = Case::softmax(10, 6);
    let model = case.model().scaled((0..6).map(|i| 0.5 + 0.2 * i as f64).collect()).unwrap();
    let noise = Noise::draw(&model, 0..3, 1, &mut go).unwrap();
    let each: Vec<f64> = (0..6).map(|i| 0.4 + 0.3 * i as f64).collect();
    let strength = 1.7;
    let h = Hessian::new(&model, &each, strength, None).to_dense();
    let solution = inverse(&h) * noise.right_hand_sides(&each, strength).unwrap();
    let z = normal(6, 3, "z");
    let expected = &h * (&z - &solution);
    let mut values = Vec::new();
    for objective in [Objective::LowVariance, Objective::Standard] {
        let own = SampleObjective::new(&model, &noise, &each, strength, objective).unwrap();
        let (gradient, value) = own.gradient_at(z.as_ref(), None).unwrap();
        assert_matrix(gradient.as_ref(), expected.as_ref(), 1e-11);
        let (at_rest, least) = own.gradient_at(solution.as_ref(), None).unwrap();
        assert!(at_rest.norm_max() < 1e-11 && least < value);
        values.push((value, least));
        // The value is that whose gradient it is; by differences, of the mean over three samples.
        let (i, j, step) = (2, 1, 1e-5);
        let at = |h: f64| {
            let mut moved = z.clone();
            moved[(i, j)] += h;
            own.gradient_at(moved.as_ref(), None).unwrap().1
        };
        assert_near((at(step) - at(-step)) / (2.0 * step), gradient[(i, j)] / 3.0, 1e-7);
        // Batches of one epoch have the whole gradient as their mean.
        let parts = [[0, 3, 4, 7, 9], [1, 2, 5, 6, 8]];
        let mut mean = Mat::<f64>::zeros(6, 3);
        parts.iter().for_each(|p| mean += own.gradient_at(z.as_ref(), Some(p)).unwrap().0 * Scale(0.5));
        assert_matrix(mean.as_ref(), gradient.as_ref(), 1e-11);
    }
    assert_near(values[0].0 - values[0].1, values[1].0 - values[1].1, 1e-10);
}

/// The exact difference of single-example variances (spec, section 5.6), against the gradients themselves and against dense algebra.
#[test]
fn the_low_variance_objective_is_as_much_better_as_the_formula_says() {
    let case = Case::softmax(12, 5);
    let (model, a, count) = (case.model(), 0.9, 3000);
    let noise = Noise::draw(&model, 0..count, 4, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let (m, phi) = (case.curvature(), case.features.whole());
    let covariance = inverse(&(&m + identity(5, a)));
    let b = case.output_curvature(&case.offset);
    let trace = |m: &Mat<f64>| (0..m.nrows()).map(|i| m[(i, i)]).sum::<f64>();
    let mut single = 0.0;
    for i in 0..12 {
        let own = phi.subrows(3 * i, 3);
        let own = own.transpose() * b.submatrix(3 * i, 3 * i, 3, 3) * own;
        single += trace(&(&own * &covariance * &own));
    }
    let expected = 12.0 * (trace(&m) - 2.0 * single) - (trace(&m) - 2.0 * trace(&(&m * &covariance * &m)));
    let each = vec![a; 5];
    let objectives = [Objective::Standard, Objective::LowVariance]
        .map(|o| SampleObjective::new(&model, &noise, &each, 1.0, o).unwrap());
    let mut differences = vec![0.0; count];
    for i in 0..12 {
        for (objective, sign) in objectives.iter().zip([1.0, -1.0]) {
            let gradient = objective.gradient_at(samples.as_ref(), Some(&[i])).unwrap().0;
            (0..count).for_each(|j| differences[j] += sign * gradient.col(j).squared_norm_l2() / 12.0);
        }
    }
    let mean = differences.iter().sum::<f64>() / count as f64;
    let spread = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>().sqrt() / count as f64;
    assert_near(mean, expected, 5.0 * spread);
    let all: Vec<usize> = (0..12).collect();
    let found = gradient_variances(&model, &noise, samples.as_ref(), (a, 1.0), &all, &mut go).unwrap();
    // Sums of squares of normals: relative errors of a few times sqrt(2 / K), of each of its four terms.
    let scale = 12.0 * trace(&m) + 24.0 * single + 2.0 * trace(&(&m * &covariance * &m));
    assert_near(found.difference, expected, 5.0 * (2.0 / count as f64).sqrt() * scale);
    assert_near(found.trace, trace(&m), 5.0 * (2.0 / count as f64).sqrt() * trace(&m));
    let gamma = trace(&(&covariance * &m));
    assert_near(
        found.published,
        2.0 * a * gamma,
        5.0 * (2.0 / (count as f64 * gamma)).sqrt() * 2.0 * a * gamma,
    );
    assert!(gradient_variances(&model, &noise, samples.as_ref(), (a, 1.0), &[], &mut go).is_err());
}
