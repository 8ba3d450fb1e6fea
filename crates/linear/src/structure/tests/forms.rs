use super::*;
use posterior_optim::check::assert_close;

fn compare(structure: &Structure, full: &Mat<f64>, prior: &Prior, strength: f64) {
    let n = full.nrows();
    // In scaled coordinates the same prior acts on w / s.
    let scales = structure.scales();
    let scaled = Mat::from_fn(n, n, |i, j| scales[i] * full[(i, j)] * scales[j]);
    let (inverse, log_determinant) = brute_force(&scaled, prior, strength);
    let covariance = Mat::from_fn(n, n, |i, j| scales[i] * inverse[(i, j)] * scales[j]);
    let terms = structure.terms(prior, strength).unwrap();
    assert_close(&[terms.log_determinant], &[log_determinant], 1e-11, 1e-11);
    let mut effective = vec![0.0; prior.precisions().len()];
    for (range, group) in prior.stretches(0..n) {
        range.for_each(|i| effective[group] += 1.0 - prior.precisions()[group] * inverse[(i, i)]);
    }
    assert_close(&terms.effective_dimensions, &effective, 1e-11, 1e-11);

    let posterior = structure.condition(prior, strength).unwrap();
    let diagonal: Vec<f64> = (0..n).map(|i| covariance[(i, i)]).collect();
    assert_close(&posterior.variances(), &diagonal, 1e-11, 1e-11);
    let v: Vec<f64> = normal(n, 1, 9).col_as_slice(0).to_vec();
    let product = &covariance * Mat::from_fn(n, 1, |i, _| v[i]);
    assert_close(&posterior.solve(&v), product.col_as_slice(0), 1e-10, 1e-11);
    assert_close(
        &structure.apply(&v),
        (&scaled * Mat::from_fn(n, 1, |i, _| v[i])).col_as_slice(0),
        1e-11,
        1e-11,
    );

    // The root that colours normals, column by column, squares to the covariance.
    let mut root = Mat::zeros(n, n);
    for j in 0..n {
        let mut unit = vec![0.0; n];
        unit[j] = 1.0;
        posterior.colour(&unit).into_iter().enumerate().for_each(|(i, r)| root[(i, j)] = r);
    }
    let squared = &root * root.transpose();
    // Whitened rows have the covariance as their inner products.
    let rows = normal(4, n, 11);
    let mut inner = Mat::<f64>::zeros(4, 4);
    for (range, block) in posterior.blocks() {
        let white = block.whiten(rows.subcols(range.start, range.len()));
        inner += &white * white.transpose();
    }
    let expected = &rows * &covariance * rows.transpose();
    for j in 0..n {
        assert_close(squared.col_as_slice(j), covariance.col_as_slice(j), 1e-10, 1e-11);
    }
    for j in 0..4 {
        assert_close(inner.col_as_slice(j), expected.col_as_slice(j), 1e-10, 1e-11);
    }
}

#[test]
fn every_form_is_the_matrix_it_stands_for() {
    let (structure, full) = mixed();
    assert_close(&structure.diagonal(), &(0..27).map(|i| full[(i, i)]).collect::<Vec<_>>(), 1e-13, 1e-13);
    compare(&structure, &full, &grouped_prior(), 1.0);
    compare(&structure, &full, &grouped_prior(), 7.3);
    compare(&structure, &full, &Prior::scalar(27, 0.05).unwrap(), 1.0);
}

#[test]
fn scaled_features_have_a_unit_diagonal_and_a_prior_that_ignores_units() {
    let (structure, full) = mixed();
    let scaled = structure.normalised().unwrap();
    // One weight of the diagonal block has no influence and is dropped.
    assert_eq!(scaled.corrections().dropped_weights, 1);
    assert!(
        scaled.diagonal().iter().enumerate().all(|(i, m)| (m - if i == 6 { 0.0 } else { 1.0 }).abs() < 1e-12)
    );
    compare(&scaled, &full, &grouped_prior(), 2.0);
    compare(&scaled, &full, &Prior::scalar(27, 0.5).unwrap(), 1.0);
    assert!(matches!(scaled.normalised(), Err(StructureError::ScaledTwice)));

    // Measuring features in other units changes nothing: diag(c) M diag(c) gives covariances diag(c)^-1 C diag(c)^-1.
    let units: Vec<f64> = (0..5).map(|i| 10f64.powi(i - 2)).collect();
    let m = semidefinite(5, 5, 20);
    let other = Mat::from_fn(5, 5, |i, j| units[i] * m[(i, j)] * units[j]);
    let prior = Prior::scalar(5, 0.8).unwrap();
    let variances = |m: Mat<f64>| {
        let matrix = BlockMatrix::Dense(Dense::new(m));
        let block = Block { name: "all".into(), range: 0..5, matrix };
        Structure::new(vec![block]).unwrap().normalised().unwrap().condition(&prior, 1.0).unwrap().variances()
    };
    let expected: Vec<f64> = variances(m).iter().zip(&units).map(|(v, c)| v / (c * c)).collect();
    assert_close(&variances(other), &expected, 1e-11, 1e-12);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let (structure, _) = mixed();
    let message = |e: StructureError| e.to_string();
    assert!(
        message(structure.terms(&Prior::scalar(3, 1.0).unwrap(), 1.0).unwrap_err()).contains("3 weights")
    );
    for strength in [0.0, -1.0, f64::NAN] {
        assert!(structure.condition(&grouped_prior(), strength).is_err());
    }
    let each = Prior::each(vec![1.0; 27]).unwrap();
    let text = message(structure.condition(&each, 1.0).unwrap_err());
    assert!(text.contains("`kronecker`") && text.contains("12 groups"), "{text}");
    let bad = Block {
        name: "bad".into(),
        range: 0..1,
        matrix: BlockMatrix::Diagonal(Diagonal::new(vec![f64::NAN])),
    };
    assert!(matches!(Structure::new(vec![bad]), Err(StructureError::NotFinite { .. })));
    let gap =
        Block { name: "gap".into(), range: 1..2, matrix: BlockMatrix::Diagonal(Diagonal::new(vec![1.0])) };
    assert!(matches!(Structure::new(vec![gap]), Err(StructureError::Shape { .. })));
}

#[test]
fn rounding_below_zero_is_counted() {
    let mut m = semidefinite(4, 4, 5);
    m[(0, 0)] -= 1e3;
    let block = Block { name: "all".into(), range: 0..4, matrix: BlockMatrix::Dense(Dense::new(m)) };
    let structure = Structure::new(vec![block]).unwrap();
    structure.terms(&Prior::scalar(4, 1.0).unwrap(), 1.0).unwrap();
    let corrections = structure.corrections();
    assert!(corrections.clipped_eigenvalues == 1 && corrections.most_negative < -1.0, "{corrections:?}");
}
