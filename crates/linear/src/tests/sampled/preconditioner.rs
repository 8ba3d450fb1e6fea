//! What conjugate gradients are preconditioned with, against dense matrices.

use super::*;
use crate::sampled::preconditioner::Factored;
use posterior_linalg::solve::Preconditioner;

fn applied(factored: &Factored<'_>, v: &Mat<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(v.nrows(), v.ncols());
    factored.apply(v.as_ref(), out.as_mut());
    out
}

#[test]
fn with_all_directions_it_is_the_posterior_itself() {
    let case = Case::softmax(10, 6);
    let (model, m, v) = (case.model(), case.curvature(), normal(6, 3, "v"));
    let (diagonal, _) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let whole = model.leading_curvature(&diagonal, 6, 0, &mut go).unwrap();
    let (each, strength) = ([0.5, 0.5, 0.5, 2.0, 2.0, 0.1], 0.7);
    let precision =
        |m: &Mat<f64>| Mat::from_fn(6, 6, |i, j| strength * m[(i, j)] + if i == j { each[i] } else { 0.0 });
    let found = applied(&Factored::new(&whole, None, &each, strength).unwrap(), &v);
    assert_matrix((inverse(&precision(&m)) * &v).as_ref(), found.as_ref(), 1e-10);
    // Scaled features, without one that moves nothing.
    let scales = [1.0, 0.5, 0.0, 3.0, 0.1, 1.5];
    let moved = |i: usize, j: usize| if i == 2 || j == 2 { 0.0 } else { m[(i, j)] };
    let matrix = BlockMatrix::Dense(Dense::new(Mat::from_fn(6, 6, moved)));
    let dense = Structure::new(vec![Block { name: "all".into(), range: 0..6, matrix }]).unwrap();
    let scaled = Mat::from_fn(6, 6, |i, j| scales[i] * m[(i, j)] * scales[j]);
    let found = applied(&Factored::new(&dense, Some(&scales), &each, strength).unwrap(), &v);
    assert_matrix((inverse(&precision(&scaled)) * &v).as_ref(), found.as_ref(), 1e-10);
}

#[test]
fn directions_leave_the_diagonal_as_it_is() {
    let case = Case::gaussian(12, 7);
    let model = case.model();
    let (diagonal, _) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    for rank in [0, 1, 3, 7, 20] {
        let found = model.leading_curvature(&diagonal, rank, 5, &mut go).unwrap();
        found.diagonal().iter().zip(&diagonal).for_each(|(f, m)| assert_near(*f, *m, 1e-9 * m));
    }
    assert!(model.leading_curvature(&diagonal[1..], 2, 0, &mut go).is_err());
    let stop = &mut |_, _| Signal::Stop;
    assert!(matches!(model.leading_curvature(&diagonal, 2, 0, stop), Err(LinearError::Interrupted)));
    assert!(
        Factored::new(&model.leading_curvature(&diagonal, 2, 0, &mut go).unwrap(), None, &[-1.0; 7], 1.0)
            .is_err()
    );
}

/// A saturated model moves nothing: then the prior is the posterior, and there is nothing to look for.
#[test]
fn without_curvature_the_diagonal_does() {
    let mut case = Case::gaussian(5, 4);
    case.features = DenseFeatures::new(Mat::zeros(15, 4), 3).unwrap();
    let found = case.model().leading_curvature(&[0.0; 4], 3, 0, &mut go).unwrap();
    let v = normal(4, 2, "v");
    let own = applied(&Factored::new(&found, None, &[2.0; 4], 1.0).unwrap(), &v);
    assert_matrix((v * Scale(0.5)).as_ref(), own.as_ref(), 1e-15);
    assert!(case.model().leading_curvature(&[f64::NAN; 4], 3, 0, &mut go).is_err());
}

/// Conjugate gradients need a step for each eigenvalue that stands out, unless these are known.
#[test]
fn directions_that_stand_out_cost_no_steps() {
    let (weights, leading) = (60, 8);
    let mut case = Case::gaussian(40, weights);
    let outstanding = normal(120, leading, "left") * normal(leading, weights, "right");
    let slopes = Mat::from_fn(leading, 1, |k, _| 10f64.powi(k as i32 / 2));
    let strong = Mat::from_fn(120, leading, |i, k| normal(120, leading, "left")[(i, k)] * slopes[(k, 0)])
        * normal(leading, weights, "right");
    let phi = strong + outstanding + normal(120, weights, "phi") * Scale(0.01);
    case.features = DenseFeatures::new(phi, 3).unwrap();
    let model = case.model();
    let (diagonal, _) = model.curvature_diagonal(1, 0, &mut go).unwrap();
    let noise = Noise::draw(&model, 0..4, 0, &mut go).unwrap();
    let each = vec![0.1; weights];
    let steps = |rank: usize| {
        let curvature = model.leading_curvature(&diagonal, rank, 0, &mut go).unwrap();
        let start = noise.prior_draws(&each).unwrap();
        let options = ConjugateOptions { tolerance: 1e-6, steps: 400 };
        let mut steps = 0;
        let watch = &mut |progress: &Progress, _: &_| {
            steps = progress.step;
            Signal::Continue
        };
        let found = solve_exactly(&model, &noise, (&each, 1.0), &curvature, start, None, &options, watch);
        assert_eq!(found.unwrap().1, Reason::Tolerance);
        steps
    };
    let (without, with) = (steps(0), steps(2 * leading));
    // What the directions leave has eigenvalues between 0.1 and about 0.17, for which so many steps are enough: 1/2 sqrt(1.7) ln(2e6 1.7).
    assert!(with <= 10 && without >= 2 * leading, "{with} steps with directions, {without} without");
}
