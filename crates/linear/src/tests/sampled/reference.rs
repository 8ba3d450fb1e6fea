//! The reference case of spec `linearised_laplace`, section 14.

use super::*;

#[test]
fn the_hessian_and_the_scales_are_those_of_the_reference_case() {
    let case = Case::reference();
    let model = case.model();
    let none = vec![0.0; 3];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let expected =
        [[0.2937546403, 0.1175018561, 0.8225129927], [0.0, 2.350037122, 0.0], [0.0, 0.0, 2.350037122]];
    for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
        assert_near(m[(i, j)], expected[i][j], 1e-9);
    }
    let (diagonal, _) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let scales: Vec<f64> = diagonal.iter().map(|m| m.powf(-0.5)).collect();
    for (found, expected) in scales.iter().zip([1.8450478434, 0.6523229208, 0.6523229208]) {
        assert_near(*found, expected, 1e-9);
    }
    // With the g-prior the trace is the number of weights, and the effective dimension that of the spec, estimated within five standard deviations.
    let scaled = case.model().scaled(scales).unwrap();
    let m = Hessian::new(&scaled, &none, 1.0, None).to_dense();
    assert_near((0..3).map(|i| m[(i, i)]).sum::<f64>(), 3.0, 1e-9);
    let count = 4000;
    for (model, gamma) in [(&case.model(), 1.6655200757), (&scaled, 1.4666666667)] {
        let m = Hessian::new(model, &none, 1.0, None).to_dense();
        let shares: Vec<f64> = eigenvalues(m.as_ref()).unwrap().iter().map(|l| l / (l + 0.5)).collect();
        assert_near(shares.iter().sum(), gamma, 1e-9);
        let noise = Noise::draw(model, 0..count, 3, &mut go).unwrap();
        let samples = exact(model, &noise, 0.5, 1.0);
        let squares = model.squared_outputs(samples.as_ref(), &mut go).unwrap();
        let spread = (2.0 * shares.iter().map(|t| t * t).sum::<f64>() / count as f64).sqrt();
        assert_near(squares.iter().sum::<f64>() / count as f64, gamma, 5.0 * spread);
    }
}

#[test]
fn one_turn_finds_the_mode_of_the_reference_case() {
    let case = Case::reference();
    // The case's linear model has no offset: h = phi w.
    let (state, _) = turns(&case, &case.model(), 0.5, 4000, |o| o.predictor = Predictor::Linear, 1);
    let turn = &state.turns[0];
    let mode = &state.mode.as_ref().unwrap().weights;
    for (found, expected) in mode.iter().zip([0.2953227226, 0.4158570405, 0.7843710587]) {
        assert_near(*found, expected, 1e-8);
    }
    assert_near(turn.squared_norms[0], 0.8753905462, 1e-8);
    // MacKay's update is 1.9026 by the exact effective dimension; ours by 4,000 samples, whose relative error is at most sqrt(2 / (K gamma)).
    let spread = (2.0f64 / (4000.0 * 1.6655)).sqrt();
    assert_near(state.precisions[0], 1.9026023104, 5.0 * spread * 1.9026);
}
