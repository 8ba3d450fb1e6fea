//! Feature maps: transposes, offsets, sources.

use super::{assert_matrix, normal, normals};
use crate::LinearError;
use crate::curvature::{Accumulator, FisherEstimate, Form, SumMatrix};
use crate::features::{BatchSource, DenseFeatures, FeatureMap, Numbered, OutputsAt};
use faer::Mat;
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_optim::Signal;

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
fn outputs_at_other_weights_are_those_of_the_linear_model() {
    // A curvature of the likelihood that depends on the outputs, around an expansion point that is not zero.
    let (phi, first, second) = (normal(12, 5, "phi"), normals(5, "first"), normals(5, "second"));
    let dense = DenseFeatures::new(phi.clone(), 3).unwrap().with_offset(normals(12, "offset")).unwrap();
    let (a, b) = (OutputsAt::new(&dense, &first).unwrap(), OutputsAt::new(&dense, &second).unwrap());
    let twice = OutputsAt::new(&a, &second).unwrap();
    assert_eq!(twice.expansion_point(), Some(&second[..]));
    let likelihood = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
    let source = Numbered::new(4, vec![0.0, 2.0, 1.0, 1.0]).unwrap();
    let summed = |map: &dyn Fn(&mut Accumulator)| {
        let mut sums = Accumulator::new(&dense.segments(), Form::Full, FisherEstimate::Exact).unwrap();
        map(&mut sums);
        sums
    };
    let go = |_, _| Signal::Continue;
    let once = summed(&|s| s.extend(&b, &source, &likelihood, 0, &mut go.clone()).unwrap());
    let again = summed(&|s| s.extend(&twice, &source, &likelihood, 0, &mut go.clone()).unwrap());
    // By hand: rows at logits g + Phi w.
    let mut expected = Mat::<f64>::zeros(5, 5);
    let outputs = dense.at(0..4).unwrap().outputs();
    for i in 0..4 {
        let rows = phi.subrows(3 * i, 3);
        let logit = |c: usize| outputs[3 * i + c] + (0..5).map(|k| rows[(c, k)] * second[k]).sum::<f64>();
        let logits = [logit(0), logit(1), logit(2)];
        let total: f64 = logits.iter().map(|l| l.exp()).sum();
        let p = logits.map(|l| l.exp() / total);
        let inner = Mat::from_fn(3, 3, |c, d| if c == d { p[c] } else { 0.0 } - p[c] * p[d]);
        expected += rows.transpose() * inner * rows;
    }
    for sums in [&once, &again] {
        let SumMatrix::Dense(found) = &sums.blocks()[0].matrix else { panic!("a full sum") };
        let lower = Mat::from_fn(5, 5, |i, j| found[(i.max(j), i.min(j))]);
        assert_matrix(lower.as_ref(), expected.as_ref(), 1e-12);
    }
    assert!(matches!(OutputsAt::new(&dense, &first[..4]), Err(LinearError::Shape { .. })));
}

#[test]
fn sources_hand_out_what_was_asked_for() {
    let source = Numbered::new(3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!((source.examples(), source.batch(1..3).unwrap()), (3, (1..3, vec![2.0, 3.0, 4.0, 5.0])));
    assert!(matches!(source.batch(2..4), Err(LinearError::Shape { expected: 3, found: 4, .. })));
    assert!(matches!(Numbered::new(3, vec![0.0; 4]), Err(LinearError::Shape { .. })));
    assert_eq!(Numbered::new(2, Vec::new()).unwrap().batch(0..2).unwrap().1, Vec::<f64>::new());
}
