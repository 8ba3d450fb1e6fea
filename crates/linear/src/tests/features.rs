//! Feature maps: transposes, offsets, sources.

use super::{assert_matrix, normal, normals};
use crate::LinearError;
use crate::features::{BatchSource, DenseFeatures, FeatureMap, Numbered};
use faer::Mat;

#[test]
fn products_agree_with_the_matrix() {
    let offset = normals(12, "offset");
    let dense = DenseFeatures::new(normal(12, 5, "phi"), 3).unwrap().with_offset(offset.clone()).unwrap();
    // Neighbours, all, nothing.
    for batch in [1..3, 0..4, 2..2] {
        let rows = batch.start * 3..batch.end * 3;
        let features = dense.at(batch).unwrap();
        assert_eq!(features.outputs(), offset[rows.clone()]);
        let matrix = dense.whole().subrows(rows.start, rows.len());
        let (w, u) = (normal(5, 3, "w"), normal(rows.len(), 2, "u"));
        assert_matrix(features.apply(w.as_ref()).unwrap().as_ref(), (matrix * &w).as_ref(), 1e-12);
        let back = features.apply_transpose(u.as_ref()).unwrap();
        assert_matrix(back.as_ref(), (matrix.transpose() * &u).as_ref(), 1e-12);
        let wrong = normal(rows.len() + 6, 1, "w");
        assert!(matches!(features.apply(wrong.as_ref()), Err(LinearError::Shape { .. })));
        assert!(matches!(features.apply_transpose(wrong.as_ref()), Err(LinearError::Shape { .. })));
    }
    assert!(matches!(dense.at(2..5), Err(LinearError::Shape { expected: 4, found: 5, .. })));
    assert!(DenseFeatures::new(Mat::zeros(4, 1), 2).unwrap().with_offset(vec![0.0; 3]).is_err());
    assert!(DenseFeatures::new(Mat::zeros(4, 1), 2).unwrap().with_offset(vec![f64::NAN; 4]).is_err());
}

#[test]
fn sources_hand_out_what_was_asked_for() {
    let source = Numbered::new(3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!((source.examples(), source.batch(1..3).unwrap()), (3, (1..3, vec![2.0, 3.0, 4.0, 5.0])));
    assert!(matches!(source.batch(2..4), Err(LinearError::Shape { expected: 3, found: 4, .. })));
    assert!(matches!(Numbered::new(3, vec![0.0; 4]), Err(LinearError::Shape { .. })));
    assert_eq!(Numbered::new(2, Vec::new()).unwrap().batch(0..2).unwrap().1, Vec::<f64>::new());
}
