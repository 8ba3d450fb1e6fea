use super::*;
use crate::exact::ExactGp;
use crate::function_space::FunctionSpacePosterior;
use crate::inducing::fixed_mean::{FixedMeanData, ProjectedCurvature, energy};
use crate::{MeanForm, Observations, Posterior};
use posterior_kernels::BlockKernel;
use posterior_optim::Signal;

fn at<'a>(x: &'a Mat<f64>) -> impl Fn(&[usize]) -> Mat<f64> + 'a {
    |rows| Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)])
}

#[test]
fn at_all_rows_the_closed_form_is_the_exact_process() {
    let x = matrix(14, 2, 4);
    let noise = 0.2;
    let mut model = plain(x.clone(), noise, "matern32(ard)", 1.0);
    let (points, numbers) = (at(&x), Mat::from_fn(14, 1, |i, _| wave(i)));
    let data = FixedMeanData { points: &points, means: numbers.as_ref(), targets: numbers.as_ref() };
    // Pieces that do not divide the rows.
    let found = optimum(&mut model, data, 5);
    let exact = ExactGp::new(kernel("matern32(ard)"), MeanForm::Zero, Gaussian::new(noise, 1e-9), 2, 1);
    let exact = exact.condition(Observations::new(x.clone(), numbers.clone(), None).unwrap()).unwrap();
    let there = matrix(6, 2, 20);
    let expected = exact.predict(there.as_ref()).unwrap().latent_variance;
    let inducing = model.prepared_points().unwrap();
    for covariance in [&found.covariance, &model.covariance().unwrap()] {
        let Ok((variances, clipped)) =
            covariance.covariances(model.kernel(), &inducing, (&there, 0..6), false);
        assert_eq!(clipped, 0);
        for (found, expected) in variances.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
    // A joint covariance has the same blocks.
    let Ok(joint) = found.covariance.joint(model.kernel(), &inducing, &there);
    let Ok((variances, _)) = found.covariance.covariances(model.kernel(), &inducing, (&there, 0..6), false);
    assert!((0..6).all(|i| (joint[(i, i)] - variances[i]).abs() < 1e-13));
    assert!((model.divergence().unwrap() - found.divergence).abs() < 1e-6 * found.divergence);
    // A pass that stops, and one that goes on from there.
    let mut left = None;
    let stopped = ProjectedCurvature::new(&model, data, 5, None, &mut |so_far, _| {
        left = Some(so_far.clone());
        if so_far.rows > 5 { Signal::Stop } else { Signal::Continue }
    });
    assert!(stopped.unwrap().is_none());
    assert!(left.as_ref().is_some_and(|left| left.rows > 5 && left.rows < data.rows()));
    let further = ProjectedCurvature::new(&model, data, 5, left, &mut |_, _| Signal::Continue);
    further.unwrap().unwrap().condition(&mut model).unwrap();
    let mut whole = model.clone();
    optimum(&mut whole, data, 5);
    assert_eq!(model.root(), whole.root());
}

/// All outputs of all rows as inducing points: the exact posterior of classes near which the likelihood is quadratic.
#[test]
fn at_all_outputs_the_closed_form_is_function_space() {
    let (n, c) = (6, 3);
    let x = matrix(n, 2, 4);
    let logits = matrix(n, c, 8);
    let z = Mat::from_fn(n * c, 2, |i, j| x[(i / c, j)]);
    let kernel = Separable::correlated(kernel("rbf(ard)"), c);
    let likelihood = Box::new(Categorical::new(c).unwrap());
    let labels = (0..n * c).map(|k| k % c).collect();
    // More inducing points than rows is refused where rows are drawn, so all rows stand three times, each with a third of the curvature.
    let mut model =
        FixedMeanModel::new(kernel.clone(), likelihood.clone(), z.clone(), labels, 1.3, false).unwrap();
    let rows = Mat::from_fn(n * c, 2, |i, j| x[(i % n, j)]);
    let means = Mat::from_fn(n * c, c, |i, j| logits[(i % n, j)]);
    let classes = Mat::from_fn(n * c, 1, |i, _| (i % c) as f64);
    let points = at(&rows);
    let data = FixedMeanData { points: &points, means: means.as_ref(), targets: classes.as_ref() };
    let found = optimum(&mut model, data, 4);
    let width = c - 1;
    let mut directions = Mat::<f64>::zeros(n * c * width, c);
    let mut root = vec![0.0; c * width];
    for i in 0..n * c {
        let f: Vec<f64> = (0..c).map(|j| means[(i, j)]).collect();
        likelihood.root(&[0.0], &f, &mut root);
        (0..c * width).for_each(|k| directions[(i * width + k % width, k / width)] = root[k]);
    }
    let Ok(gram) = kernel.gram(&rows, Some(directions.as_ref()));
    let exact = FunctionSpacePosterior::new(gram.as_ref(), 1.0 / 1.3, 1.0).unwrap();
    let there = matrix(5, 2, 30);
    let Ok((expected, _)) = exact.covariances(&kernel, (&rows, directions.as_ref()), &there, true);
    let inducing = model.prepared_points().unwrap();
    let Ok((covariances, _)) = found.covariance.covariances(&kernel, &inducing, (&there, 0..5), true);
    for (found, expected) in covariances.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

/// At its own optimum no root is better, and the gradient of the lower bound vanishes.
#[test]
fn the_closed_form_is_the_optimum_of_the_lower_bound() {
    let x = matrix(20, 2, 4);
    let means = Mat::from_fn(20, 1, |i, _| wave(i));
    let mut model = plain(matrix(5, 2, 9), 0.3, "rbf(lengthscale=0.8)", 1.4);
    let points = at(&x);
    let data = FixedMeanData { points: &points, means: means.as_ref(), targets: means.as_ref() };
    optimum(&mut model, data, 7);
    let all: Vec<usize> = (0..20).collect();
    let (points, flat, targets) = data.gather(&all);
    let batch = Batch { points: &points, means: &flat, targets: &targets, rows: 20 };
    let best = energy(&model, batch, 0.0, None).unwrap();
    let slope = best.gradient.root.norm_max() * model.root().norm_max();
    assert!(slope < 1e-5 * best.main.abs(), "{slope}");
    for seed in 0..20 {
        let mut other = model.clone();
        let theta: Vec<f64> = model
            .unconstrained()
            .iter()
            .enumerate()
            .map(|(k, t)| t * (1.0 + 0.3 * wave(k + 15 * seed)) + 0.05 * wave(3 * k + seed))
            .collect();
        other.set_unconstrained(&theta).unwrap();
        assert!(energy(&other, batch, 0.0, None).unwrap().main > best.main);
    }
}

#[test]
fn single_precision_predicts_the_same() {
    let mut model = plain(matrix(5, 2, 9), 0.3, "rbf(ard)", 1.4);
    let theta: Vec<f64> = (0..15).map(|k| 1.0 + wave(k)).collect();
    model.set_unconstrained(&theta).unwrap();
    let covariance = model.covariance().unwrap();
    let there = matrix(7, 2, 30);
    let inducing = model.prepared_points().unwrap();
    let Ok((expected, _)) = covariance.covariances(model.kernel(), &inducing, (&there, 0..7), false);
    let narrow = Separable::independent(
        "rbf(ard)".parse::<KernelExpression>().unwrap().build::<f32>(&["a".into(), "b".into()]).unwrap(),
        1,
    );
    let single = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32);
    let ones = Mat::<f32>::from_fn(5, 1, |_, _| 1.0);
    let Ok(inducing) = BlockKernel::prepare(&narrow, &single(model.points()), 0..5, Some(ones.as_ref()));
    let Ok((found, _)) =
        covariance.cast::<f32>().covariances(&narrow, &inducing, (&single(&there), 2..7), false);
    assert!(found.iter().zip(&expected[2..]).all(|(f, e)| (f - e).abs() < 1e-5));
}
