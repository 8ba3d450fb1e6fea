//! Against dense algebra, and against updates of mean and covariance row by row.

use super::{StreamPosterior, StreamingModel};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};

const ROWS: usize = 40;
const FEATURES: usize = 5;
const CLASSES: usize = 3;

fn wave(k: f64) -> f64 {
    (k * 12.9898).sin()
}

fn features() -> Mat<f64> {
    Mat::from_fn(ROWS, FEATURES, |i, j| if j == 0 { 1.0 } else { wave((i * FEATURES + j) as f64) })
}

/// Targets and precisions of labels.
fn observed(matching: Matching, pseudo_count: f64) -> (Mat<f64>, Mat<f64>) {
    let sides = Gaussianised::new(matching, pseudo_count).unwrap();
    let of = |i: usize, c: usize| sides.class(i * 7 % 11 % CLASSES == c);
    (
        Mat::from_fn(ROWS, CLASSES, |i, c| of(i, c).target),
        Mat::from_fn(ROWS, CLASSES, |i, c| of(i, c).precision()),
    )
}

fn prior() -> (Mat<f64>, Mat<f64>) {
    let precision = Mat::from_fn(FEATURES, FEATURES, |i, j| if i == j { 0.5 } else { 0.05 });
    (precision, Mat::from_fn(FEATURES, CLASSES, |i, c| 0.1 * wave((i + 3 * c) as f64)))
}

fn inverse(matrix: MatRef<'_, f64>) -> Mat<f64> {
    matrix.llt(Side::Lower).unwrap().solve(Mat::<f64>::identity(matrix.nrows(), matrix.nrows()))
}

/// Mean and covariance of each function from all rows at once.
fn dense(targets: &Mat<f64>, precisions: &Mat<f64>) -> Vec<(Mat<f64>, Mat<f64>)> {
    let (x, (prior, means)) = (features(), prior());
    (0..CLASSES)
        .map(|c| {
            let scaled = Mat::from_fn(ROWS, FEATURES, |i, j| precisions[(i, c)] * x[(i, j)]);
            let covariance = inverse((&prior + x.transpose() * &scaled).as_ref());
            let own = Mat::from_fn(ROWS, 1, |i, _| targets[(i, c)]);
            let mean = &covariance * (&prior * means.subcols(c, 1) + scaled.transpose() * own);
            (mean, covariance)
        })
        .collect()
}

fn learned(order: &[usize], batch: usize, targets: &Mat<f64>, precisions: &Mat<f64>) -> StreamingModel {
    let (x, (prior, means)) = (features(), prior());
    let mut model = StreamingModel::new(prior.as_ref(), means.as_ref()).unwrap();
    for rows in order.chunks(batch) {
        let pick = |of: &Mat<f64>| Mat::from_fn(rows.len(), of.ncols(), |i, j| of[(rows[i], j)]);
        model.learn(pick(&x).as_ref(), pick(targets).as_ref(), pick(precisions).as_ref()).unwrap();
    }
    model
}

fn assert_same(posterior: &StreamPosterior, expected: &[(Mat<f64>, Mat<f64>)], tolerance: f64) {
    let x = features();
    let found = posterior.latents(x.as_ref()).unwrap();
    for (c, (mean, covariance)) in expected.iter().enumerate() {
        let (means, spread) = (&x * mean, &x * covariance * x.transpose());
        for i in 0..ROWS {
            let (m, v) = (found.means[(i, c)], found.variances[(i, c)]);
            assert!(
                (m - means[(i, 0)]).abs() <= tolerance * (1.0 + m.abs()),
                "{c} {i}: {m} {}",
                means[(i, 0)]
            );
            assert!((v - spread[(i, i)]).abs() <= tolerance * v, "{c} {i}: {v} {}", spread[(i, i)]);
        }
    }
}

#[test]
fn rows_in_batches_of_any_order_are_all_rows_at_once() {
    let forward: Vec<usize> = (0..ROWS).collect();
    let shuffled: Vec<usize> = (0..ROWS).map(|i| i * 17 % ROWS).collect();
    // The last has variances of ten thousand beside some of one.
    for (matching, pseudo_count) in
        [(Matching::Variational, 0.1), (Matching::MomentOriginal, 0.01), (Matching::Moment, 0.01)]
    {
        let (targets, precisions) = observed(matching, pseudo_count);
        let expected = dense(&targets, &precisions);
        for (order, batch) in [(&forward, ROWS), (&forward, 7), (&shuffled, 1)] {
            let model = learned(order, batch, &targets, &precisions);
            assert_eq!((model.rows(), model.functions(), model.features()), (ROWS as u64, CLASSES, FEATURES));
            assert_same(&model.condition().unwrap(), &expected, 1e-10);
        }
    }
}

/// Noises that differ by row and function, some of them infinite.
#[test]
fn precisions_may_differ_everywhere() {
    let (targets, _) = observed(Matching::Laplace, 0.5);
    let precisions =
        Mat::from_fn(
            ROWS,
            CLASSES,
            |i, c| if (i + c) % 5 == 0 { 0.0 } else { 1.5 + wave((3 * i + c) as f64) },
        );
    let order: Vec<usize> = (0..ROWS).collect();
    let model = learned(&order, 9, &targets, &precisions);
    assert_same(&model.condition().unwrap(), &dense(&targets, &precisions), 1e-11);
}

/// `g = S phi, v = phi^T g + 1/b, m += g (t - phi^T m) / v, S -= g g^T / v` for each row: the update of the spec.
#[test]
fn sums_equal_updates_of_mean_and_covariance() {
    let (targets, precisions) = observed(Matching::Variational, 0.1);
    let (x, (prior, means)) = (features(), prior());
    let order: Vec<usize> = (0..ROWS).collect();
    let expected: Vec<(Mat<f64>, Mat<f64>)> = (0..CLASSES)
        .map(|c| {
            let (mut mean, mut covariance) = (means.subcols(c, 1).to_owned(), inverse(prior.as_ref()));
            for i in 0..ROWS {
                let phi = x.row(i).transpose().to_owned();
                let g = &covariance * &phi;
                let v = phi.transpose() * &g + 1.0 / precisions[(i, c)];
                let surprise = targets[(i, c)] - phi.transpose() * mean.col(0);
                for a in 0..FEATURES {
                    mean[(a, 0)] += g[a] * surprise / v;
                    for b in 0..FEATURES {
                        covariance[(a, b)] -= g[a] * g[b] / v;
                    }
                }
            }
            (mean, covariance)
        })
        .collect();
    assert_same(&learned(&order, 8, &targets, &precisions).condition().unwrap(), &expected, 1e-10);
}

#[test]
fn before_any_row_it_is_the_prior() {
    let (precision, means) = prior();
    let posterior = StreamingModel::new(precision.as_ref(), means.as_ref()).unwrap().condition().unwrap();
    let expected: Vec<_> =
        (0..CLASSES).map(|c| (means.subcols(c, 1).to_owned(), inverse(precision.as_ref()))).collect();
    assert_same(&posterior, &expected, 1e-12);
}

/// Sums that are taken out and put back, or given instead of rows, are those of the rows; features that come later were nought before.
#[test]
fn sums_go_on_and_features_may_be_added() {
    let (targets, precisions) = observed(Matching::Variational, 0.1);
    let (prior, means) = prior();
    let order: Vec<usize> = (0..ROWS).collect();
    let whole = learned(&order, 10, &targets, &precisions);
    let half = learned(&order[..20], 10, &targets, &precisions);
    let (shared, own) = half.sums();
    let sums = (shared.to_owned(), own.to_vec());
    let mut again = StreamingModel::resumed(
        (prior.as_ref(), means.as_ref()),
        sums,
        half.shifts().to_owned(),
        half.rows(),
    )
    .unwrap();
    assert_eq!(again, half);
    let x = features();
    let rest = |of: &Mat<f64>| of.subrows(20, 20).to_owned();
    again.learn(rest(&x).as_ref(), rest(&targets).as_ref(), rest(&precisions).as_ref()).unwrap();
    assert_same(&again.condition().unwrap(), &dense(&targets, &precisions), 1e-10);

    let given: Vec<Mat<f64>> = (0..CLASSES).map(|c| whole.precision(c) - &prior).collect();
    let none = Mat::<f64>::zeros(FEATURES, CLASSES);
    let told = StreamingModel::new(prior.as_ref(), none.as_ref()).unwrap();
    let told = told.observed(&given, whole.shifts()).unwrap();
    assert_same(&told.condition().unwrap(), &dense(&targets, &precisions), 1e-10);

    // A sixth feature that is 0 in the first half of the rows, added after these.
    let identity = Mat::<f64>::identity(FEATURES + 1, FEATURES + 1);
    let sixth = |i: usize| if i < 20 { 0.0 } else { wave(i as f64 + 0.3) };
    let wide = Mat::from_fn(ROWS, FEATURES + 1, |i, j| if j < FEATURES { x[(i, j)] } else { sixth(i) });
    let none = Mat::<f64>::zeros(FEATURES + 1, CLASSES);
    let mut expected = StreamingModel::new(identity.as_ref(), none.as_ref()).unwrap();
    expected.learn(wide.as_ref(), targets.as_ref(), precisions.as_ref()).unwrap();
    let mut found =
        StreamingModel::new(identity.submatrix(0, 0, 5, 5), none.submatrix(0, 0, 5, CLASSES)).unwrap();
    let first = |of: &Mat<f64>| of.subrows(0, 20).to_owned();
    found.learn(first(&x).as_ref(), first(&targets).as_ref(), first(&precisions).as_ref()).unwrap();
    let mut found = found.widened(1);
    found.learn(rest(&wide).as_ref(), rest(&targets).as_ref(), rest(&precisions).as_ref()).unwrap();
    for c in 0..CLASSES {
        assert!((found.precision(c) - expected.precision(c)).norm_max() < 1e-11);
    }
    assert!((found.shifts() - expected.shifts()).norm_max() < 1e-11);
}

/// Under noise of another variance the rows so far are what they would have been under it, and the prior stays.
#[test]
fn rows_may_be_weighed_anew() {
    let (targets, precisions) = observed(Matching::Variational, 0.1);
    let order: Vec<usize> = (0..ROWS).collect();
    let mut model = learned(&order, 11, &targets, &precisions);
    model.reweigh(2.5).unwrap();
    let more = 2.5 * &precisions;
    assert_same(&model.condition().unwrap(), &dense(&targets, &more), 1e-10);
    let before = model.clone();
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(model.reweigh(factor).unwrap_err().to_string().contains("factor"));
    }
    assert_eq!(model, before);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_learned() {
    let (targets, precisions) = observed(Matching::Variational, 0.1);
    let x = features();
    let order: Vec<usize> = (0..ROWS).collect();
    let mut model = learned(&order, 10, &targets, &precisions);
    let before = model.clone();
    let mut error = |x: &Mat<f64>, t: &Mat<f64>, b: &Mat<f64>| {
        model.learn(x.as_ref(), t.as_ref(), b.as_ref()).unwrap_err().to_string()
    };
    let with = |of: &Mat<f64>, value: f64| {
        Mat::from_fn(of.nrows(), of.ncols(), |i, j| if (i, j) == (2, 1) { value } else { of[(i, j)] })
    };
    assert!(error(&with(&x, f64::NAN), &targets, &precisions).contains("feature 11 is NaN"));
    assert!(error(&x, &with(&targets, f64::INFINITY), &precisions).contains("target 7 is inf"));
    assert!(error(&x, &targets, &with(&precisions, -1.0)).contains("precision is -1"));
    let narrow = x.subcols(0, 4).to_owned();
    assert!(error(&narrow, &targets, &precisions).contains("expected 5, found 4"));
    assert!(error(&x, &targets.subrows(0, 3).to_owned(), &precisions).contains("expected 40, found 3"));
    assert_eq!(model, before);
    let (precision, means) = prior();
    let wrong = StreamingModel::new(precision.as_ref(), means.subrows(0, 4)).unwrap_err().to_string();
    assert!(wrong.contains("expected 4, found 5"), "{wrong}");
    let not_positive = Mat::from_fn(FEATURES, FEATURES, |i, j| if i == j { -1.0 } else { 0.0 });
    assert!(StreamingModel::new(not_positive.as_ref(), means.as_ref()).unwrap().condition().is_err());
}
