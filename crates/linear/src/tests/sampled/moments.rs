//! Moments of samples and of estimates made of them.

use super::*;

#[test]
fn moments_of_exact_samples_are_those_of_the_posterior() {
    let case = Case::softmax(10, 6);
    let (model, a, count) = (case.model(), 0.8, 6000);
    let noise = Noise::draw(&model, 0..count, 7, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let covariance = inverse(&(case.curvature() + identity(6, a)));
    let found = &samples * samples.transpose() * Scale(1.0 / count as f64);
    for i in 0..6 {
        for j in 0..6 {
            let spread =
                (covariance[(i, i)] * covariance[(j, j)] + covariance[(i, j)].powi(2)) / count as f64;
            assert_near(found[(i, j)], covariance[(i, j)], 5.0 * spread.sqrt());
        }
    }
    // Samples are known by their numbers: others later are those of a longer run, and start anywhere.
    let later = Noise::draw(&model, 5..8, 7, &mut go).unwrap();
    assert_matrix(later.white.as_ref(), noise.white.subcols(5, 3), 0.0);
    assert_matrix(later.pulled.as_ref(), noise.pulled.subcols(5, 3), 1e-12);
}

/// The variances of both estimators of the effective dimension (spec, section 5.3).
#[test]
fn estimators_of_the_effective_dimension_have_their_variances() {
    let case = Case::softmax(10, 6);
    let (model, a, count) = (case.model(), 0.8, 6000);
    let noise = Noise::draw(&model, 0..count, 9, &mut go).unwrap();
    let samples = exact(&model, &noise, a, 1.0);
    let shares: Vec<f64> =
        eigenvalues(case.curvature().as_ref()).unwrap().iter().map(|l| l / (l + a)).collect();
    let by_prediction = model.squared_outputs(samples.as_ref(), &mut go).unwrap();
    let by_weight: Vec<f64> = (0..count).map(|j| 6.0 - a * samples.col(j).squared_norm_l2()).collect();
    for (values, terms) in
        [(by_prediction, shares.clone()), (by_weight, shares.iter().map(|t| 1.0 - t).collect::<Vec<f64>>())]
    {
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        let expected = 2.0 * terms.iter().map(|t| t * t).sum::<f64>();
        // A weighted sum of squared normals has the fourth cumulant 48 sum t^4; that is what the variance of a sample variance is made of.
        let fourth = 48.0 * terms.iter().map(|t| t.powi(4)).sum::<f64>();
        let spread = ((fourth + 2.0 * expected * expected) / count as f64).sqrt();
        assert_near(variance, expected, 5.0 * spread);
        assert_near(mean, shares.iter().sum(), 5.0 * (expected / count as f64).sqrt());
    }
}

#[test]
fn the_g_prior_is_estimated_without_bias() {
    let case = Case::softmax(40, 6);
    let model = case.model();
    let (exact_diagonal, fit) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let m = case.curvature();
    (0..6).for_each(|i| assert_near(exact_diagonal[i], m[(i, i)], 1e-10));
    assert_eq!(fit.examples, 40);
    // More root columns than are sent back: twelve classes.
    let rows = 12 * 40;
    let features = DenseFeatures::new(normal(rows, 6, "many"), 12).unwrap();
    let likelihood = OutputLikelihood::Categorical(Categorical::new(12).unwrap());
    let source = Numbered::new(40, vec![1.0; 40]).unwrap();
    let model = SampledModel::new(&features, &source, &likelihood);
    let none = vec![0.0; 6];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let samples = 2000;
    let (found, _) = model.curvature_diagonal(samples, 8, &mut go).unwrap();
    for i in 0..6 {
        // Of each example a square of a normal with variance m_i: the sum of 2 m_i² is below 2 M².
        assert_near(found[i] / m[(i, i)], 1.0, 5.0 * (2.0 / samples as f64).sqrt());
    }
}

/// The kernel between observed directions by products, against its dense form, and its determinant against that of the curvature.
#[test]
fn function_space_is_weight_space() {
    let case = Case::softmax(9, 6);
    let model = case.model().scaled((0..6).map(|i| 0.5 + 0.2 * i as f64).collect()).unwrap();
    let kernel = ObservedKernel::new(&model).unwrap();
    let none = vec![0.0; 6];
    let m = Hessian::new(&model, &none, 1.0, None).to_dense();
    let dense = kernel.to_dense();
    // Roots of three classes have two columns.
    assert_eq!(dense.nrows(), 18);
    let log_determinant = |m: &Mat<f64>| -> f64 {
        eigenvalues(m.as_ref()).unwrap().iter().map(|l| (l.max(0.0) / 0.3).ln_1p()).sum()
    };
    assert_near(log_determinant(&dense), log_determinant(&m), 1e-9);
    let diagonal = RowAccess::diagonal(&kernel);
    (0..18).for_each(|i| assert_near(diagonal[i], dense[(i, i)], 1e-12));
    let (rows, v) = ([3, 17, 3, 0], normal(18, 2, "v"));
    let chosen = Mat::from_fn(4, 18, |i, j| dense[(rows[i], j)]);
    let mut out = Mat::zeros(4, 2);
    kernel.apply_rows(&rows, v.as_ref(), out.as_mut());
    assert_matrix(out.as_ref(), (&chosen * &v).as_ref(), 1e-11);
    let few = normal(4, 2, "few");
    let mut out = Mat::zeros(18, 2);
    kernel.apply_columns(&rows, few.as_ref(), out.as_mut());
    assert_matrix(out.as_ref(), (chosen.transpose() * &few).as_ref(), 1e-11);
    let mut out = Mat::zeros(18, 4);
    kernel.columns_into(&rows, out.as_mut());
    assert_matrix(out.as_ref(), chosen.transpose(), 1e-11);
    // Both columns of one example, and one of another.
    let some = [7, 16, 6];
    let mut out = Mat::zeros(3, 3);
    kernel.principal_into(&some, out.as_mut());
    assert_matrix(out.as_ref(), Mat::from_fn(3, 3, |i, j| dense[(some[i], some[j])]).as_ref(), 1e-11);
    kernel.failure().unwrap();
}
