//! Feature maps: transposes, matrices, spectra.

use super::{assert_matrix, assert_near, normal, reference};
use crate::features::{
    BatchSource, DenseFeatures, FeatureMap, Indices, RandomFourier, Rows, ScaledFeatures, Spectrum,
    curvature_diagonal, unit_curvature_scaling,
};
use crate::{LinearError, Noise};
use faer::{Mat, MatRef};
use posterior_kernels::{Kernel, KernelExpression, cross};
use posterior_linalg::random::Streams;

/// Hides the matrix of a map, so that matrix-free code has to work for its result.
pub(super) struct Opaque<F>(pub F);

impl<F: FeatureMap> FeatureMap for Opaque<F> {
    type Batch = F::Batch;
    fn dimension(&self) -> usize {
        self.0.dimension()
    }
    fn outputs(&self) -> usize {
        self.0.outputs()
    }
    fn examples(&self, batch: &Self::Batch) -> usize {
        self.0.examples(batch)
    }
    fn apply(&self, batch: &Self::Batch, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.0.apply(batch, weights)
    }
    fn apply_transpose(&self, batch: &Self::Batch, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        self.0.apply_transpose(batch, u)
    }
}

/// Both products agree with the matrix.
fn assert_products<F: FeatureMap>(map: &F, batch: &F::Batch) {
    let matrix = map.matrix(batch).unwrap().unwrap();
    let rows = map.examples(batch) * map.outputs();
    assert_eq!((matrix.nrows(), matrix.ncols()), (rows, map.dimension()));
    let (w, u) = (normal(map.dimension(), 3, "w"), normal(rows, 2, "u"));
    assert_matrix(map.apply(batch, w.as_ref()).unwrap().as_ref(), (&matrix * &w).as_ref(), 1e-12);
    let back = map.apply_transpose(batch, u.as_ref()).unwrap();
    assert_matrix(back.as_ref(), (matrix.transpose() * &u).as_ref(), 1e-12);
    let wrong = normal(rows + map.dimension() + 1, 1, "w");
    assert!(matches!(map.apply(batch, wrong.as_ref()), Err(LinearError::Shape { .. })));
    assert!(matches!(map.apply_transpose(batch, wrong.as_ref()), Err(LinearError::Shape { .. })));
}

#[test]
fn products_agree_with_the_matrix() {
    let dense = DenseFeatures::new(normal(12, 5, "phi"), 3).unwrap();
    // Neighbours, a permutation with a repeat, nothing.
    for batch in [&[1, 2, 3][..], &[3, 0, 3, 1], &[]] {
        assert_products(&dense, batch);
        assert_products(&ScaledFeatures::new(&dense, vec![1.0, 0.0, -2.0, 0.5, 3.0]).unwrap(), batch);
    }
    let gathered = dense.matrix(&[3, 0]).unwrap().unwrap();
    assert_eq!(gathered.row(1), dense.whole().row(10));
    assert_eq!(gathered.row(5), dense.whole().row(2));
    let fourier =
        RandomFourier::draw(Spectrum::SquaredExponential, &[1.0, 0.5], 2.0, 7, Streams::new(1)).unwrap();
    assert_products(&fourier, &normal(9, 2, "x"));
    // More rows than one block of the product.
    assert_products(&fourier, &normal(2_100, 2, "x"));
}

#[test]
fn sources_hand_out_what_was_asked_for() {
    let x = normal(4, 2, "x");
    let mut seen = Mat::zeros(0, 0);
    Rows(x.as_ref())
        .with_batch(&[2, 0], &mut |batch| {
            seen = batch.clone();
            Ok(())
        })
        .unwrap();
    assert_eq!((seen.row(0), seen.row(1)), (x.row(2), x.row(0)));
    assert!(matches!(
        Rows(x.as_ref()).with_batch(&[4], &mut |_| Ok(())),
        Err(LinearError::Shape { expected: 4, found: 5, .. })
    ));
    let dense = DenseFeatures::new(x, 1).unwrap();
    assert!(dense.apply(&[4], Mat::zeros(2, 1).as_ref()).is_err());
}

#[test]
fn the_curvature_diagonal_needs_no_matrix() {
    let (phi, noise) = reference();
    let dense = DenseFeatures::new(phi, 2).unwrap();
    for noise in [noise, Noise::uniform(3.0, 2).unwrap()] {
        let expected = curvature_diagonal(&dense, &Indices(2), &noise, 2).unwrap();
        for chunk in [0, 1, 5] {
            let found = curvature_diagonal(&Opaque(&dense), &Indices(2), &noise, chunk).unwrap();
            (0..3).for_each(|i| assert_near(found[i], expected[i], 1e-14));
        }
    }
    assert_eq!(unit_curvature_scaling(&[4.0, 0.0]).unwrap(), [0.5, 0.0]);
    assert!(unit_curvature_scaling(&[-1.0]).is_err());
    assert!(unit_curvature_scaling(&[f64::NAN]).is_err());
}

/// A kernel of unit variance on two inputs, with this lengthscale.
pub(super) fn kernel(text: &str, lengthscale: f64) -> Box<dyn Kernel<f64>> {
    let expression = text.parse::<KernelExpression>().unwrap();
    let mut kernel = expression.build(&["x0".to_string(), "x1".to_string()]).unwrap();
    let segments = kernel.segments();
    assert!(segments.iter().all(|s| s.shape.iter().product::<usize>() == 1), "{segments:?}");
    let value = |name: &str| if name.ends_with("lengthscale") { lengthscale } else { 1.0 };
    let values: Vec<f64> = segments.iter().map(|s| value(&s.name)).collect();
    assert!(values.contains(&lengthscale), "{segments:?}");
    kernel.set_values(&values);
    kernel
}

#[test]
fn fourier_features_estimate_their_kernels_at_the_rate_of_monte_carlo() {
    let x = normal(12, 2, "x");
    let twice = &x * faer::Scale(2.0);
    let spectra = [
        ("se", Spectrum::SquaredExponential),
        ("matern12", Spectrum::Matern { smoothness: 0.5 }),
        ("matern32", Spectrum::Matern { smoothness: 1.5 }),
        ("matern52", Spectrum::Matern { smoothness: 2.5 }),
    ];
    for (name, spectrum) in spectra {
        let k = cross(&*kernel(name, 0.8), x.as_ref(), x.as_ref());
        let k2 = cross(&*kernel(name, 0.8), twice.as_ref(), twice.as_ref());
        for count in [100, 10_000] {
            let map = RandomFourier::draw(spectrum, &[0.8; 2], 1.7, count, Streams::new(4)).unwrap();
            assert_near(map.variance(), 1.7, 1e-12);
            let phi = map.matrix(&x).unwrap().unwrap();
            let estimate = &phi * phi.transpose();
            for (i, j) in (0..12).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                // The standard deviation stated in the documentation; 312 numbers stay within 4.5 of theirs.
                let variance = 0.5 * (1.0 + k2[(i, j)]) - k[(i, j)].powi(2);
                let deviation = 1.7 * (variance.max(0.0) / count as f64).sqrt();
                assert_near(estimate[(i, j)], 1.7 * k[(i, j)], 4.5 * deviation + 1e-12);
            }
        }
    }
}

#[test]
fn draws_repeat_and_depend_on_the_seed() {
    let draw = |seed| {
        RandomFourier::draw(Spectrum::Matern { smoothness: 1.5 }, &[1.0], 1.0, 5, Streams::new(seed))
            .unwrap()
            .frequencies()
            .to_owned()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
