//! Separable kernels against their definition, and their gradients against finite differences.

use crate::stationary::median_lengthscale;
use crate::{BlockKernel, KernelExpression, LearnedBlockKernel, Separable, cross};
use faer::Mat;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Transform, check};

fn wave(k: usize) -> f64 {
    (k as f64 * 0.73).sin() * 1.3
}

fn kernel(text: &str) -> Box<dyn crate::Kernel<f64>> {
    text.parse::<KernelExpression>().unwrap().build(&["a".into(), "b".into()]).unwrap()
}

fn cases() -> Vec<Separable<f64>> {
    let mut correlated = Separable::correlated(kernel("rbf(ard)"), 3);
    let mut values = correlated.values();
    let start = values.len() - 6;
    values[start..].copy_from_slice(&[0.9, -0.3, 1.2, 0.4, 0.7, 0.6]);
    correlated.set_values(&values);
    vec![
        Separable::independent(kernel("rbf(ard)"), 1),
        Separable::independent(kernel("rbf * (linear + constant)"), 3),
        correlated,
    ]
}

/// `k(x, z) (u R) (w R)ᵀ` from the definition.
fn dense(kernel: &Separable<f64>, x: &Mat<f64>, u: &Mat<f64>, z: &Mat<f64>, w: &Mat<f64>) -> Mat<f64> {
    let (k, c) = (cross(kernel.kernel(), x.as_ref(), z.as_ref()), kernel.outputs());
    let values = kernel.values();
    let packed = &values[kernel.kernel().parameter_count()..];
    let root = Mat::from_fn(c, c, |i, j| match packed {
        [] => f64::from(u8::from(i == j)),
        _ if j <= i => packed[i * (i + 1) / 2 + j],
        _ => 0.0,
    });
    let between = u * &root * root.transpose() * w.transpose();
    let (v, s) = (u.nrows() / x.nrows(), w.nrows() / z.nrows());
    Mat::from_fn(u.nrows(), w.nrows(), |i, j| k[(i / v, j / s)] * between[(i, j)])
}

fn each_output(points: usize, c: usize) -> Mat<f64> {
    Mat::from_fn(points * c, c, |i, j| f64::from(u8::from(i % c == j)))
}

#[test]
fn tiles_and_blocks_are_the_definition() {
    for kernel in cases() {
        let c = kernel.outputs();
        let x = Mat::from_fn(4, 2, |i, j| wave(2 * i + j + 1));
        let z = Mat::from_fn(3, 2, |i, j| wave(5 * i + j + 30));
        let along = Mat::from_fn(3, c, |i, j| wave(i + 4 * j + 3));
        let every = each_output(4, c);
        let expected = dense(&kernel, &x, &every, &z, &along);
        let Ok(found) = kernel.cross((&x, None), (&z, Some(along.as_ref())));
        assert!((&found - &expected).norm_max() < 1e-13);
        let Ok(turned) = kernel.cross((&z, Some(along.as_ref())), (&x, None));
        assert!((turned.transpose() - &expected).norm_max() < 1e-13);
        let (Ok(blocks), Ok(gram)) = (kernel.blocks(&x, None), kernel.gram(&x, None));
        assert!((&gram - dense(&kernel, &x, &every, &x, &every)).norm_max() < 1e-13);
        for (k, block) in blocks.iter().enumerate() {
            let (n, a, b) = (k / (c * c), k / c % c, k % c);
            assert!((block - gram[(n * c + a, n * c + b)]).abs() < 1e-13);
        }
        let Ok(own) = kernel.blocks(&z, Some(along.as_ref()));
        let Ok(gram) = kernel.gram(&z, Some(along.as_ref()));
        assert!((0..3).all(|i| (own[i] - gram[(i, i)]).abs() < 1e-13));
    }
}

#[test]
fn gradients_in_parameters_and_points_equal_finite_differences() {
    for kernel in cases() {
        let c = kernel.outputs();
        let x = Mat::from_fn(4, 2, |i, j| wave(2 * i + j + 1));
        let z = Mat::from_fn(3, 2, |i, j| wave(5 * i + j + 30));
        let along = Mat::from_fn(3, c, |i, j| wave(i + 4 * j + 3));
        let adjoint = Mat::from_fn(4 * c, 3, |i, j| wave(i + 7 * j));
        let gram = Mat::from_fn(3, 3, |i, j| wave(i * j + i + j));
        let blocks: Vec<f64> = (0..4 * c * c).map(|k| wave(k + 90)).collect();
        let loss = |kernel: &Separable<f64>, z: &Mat<f64>| {
            let Ok(k) = kernel.cross((&x, None), (z, Some(along.as_ref())));
            let Ok(own) = kernel.gram(z, Some(along.as_ref()));
            let Ok(diagonal) = kernel.blocks(&x, None);
            let first: f64 =
                (0..3).map(|j| (0..4 * c).map(|i| adjoint[(i, j)] * k[(i, j)]).sum::<f64>()).sum();
            let second: f64 = (0..9).map(|e| gram[(e / 3, e % 3)] * own[(e / 3, e % 3)]).sum();
            first + second + diagonal.iter().zip(&blocks).map(|(d, b)| d * b).sum::<f64>()
        };
        let mut parameters = vec![0.0; kernel.values().len()];
        let Ok(of_x) = kernel.prepare(&x, 0..4, None);
        let Ok(of_z) = kernel.prepare(&z, 0..3, Some(along.as_ref()));
        let set = || (&z, Some(along.as_ref()));
        let Ok(cross) = kernel.pull_tile(&of_x, set(), &of_z, adjoint.as_ref(), true, &mut parameters);
        let Ok(own) = kernel.pull_tile(&of_z, set(), &of_z, gram.as_ref(), true, &mut parameters);
        kernel.pull_diagonal(&of_x, &blocks, &mut parameters);
        let numeric = check::gradient(
            |values| {
                let mut moved = kernel.clone();
                moved.set_values(values);
                loss(&moved, &z)
            },
            &kernel.values(),
        );
        check::assert_close(&parameters, &numeric, 1e-8, 1e-8);
        let points = kernel.coordinates(&(cross.unwrap() + own.unwrap() * faer::Scale(2.0)));
        let at = |p: &[f64]| loss(&kernel, &kernel.with_coordinates(&z, p));
        let numeric = check::gradient(at, &kernel.coordinates(&z));
        check::assert_close(&points, &numeric, 1e-8, 1e-8);
        let Ok(alone) = BlockKernel::pullback(&kernel, &of_x, &z, Some(along.as_ref()), adjoint.as_ref());
        let Ok(again) = kernel.pull_tile(&of_x, set(), &of_z, adjoint.as_ref(), true, &mut []);
        assert_eq!(alone, again.unwrap());
    }
}

#[test]
fn the_amplitude_is_held_and_lengthscales_begin_together() {
    let fixed = |text: &str| {
        let segments = Separable::independent(kernel(text), 2).segments();
        let held: Vec<String> =
            segments.into_iter().filter(|s| s.transform == Transform::Fixed).map(|s| s.name).collect();
        held
    };
    assert_eq!(fixed("rbf(ard)"), ["squared_exponential.variance"].map(|_| fixed("rbf")[0].clone()));
    assert_eq!(fixed("rbf * (linear + constant)").len(), 1);
    let mut kernel = Separable::correlated(kernel("rbf(ard)"), 2);
    let root = kernel.values()[kernel.kernel().parameter_count()..].to_vec();
    assert_eq!(root, [1.0, (-1f64).exp(), 1.0]);
    kernel.set_lengthscales(2.5);
    assert_eq!(kernel.values().iter().filter(|v| **v == 2.5).count(), 2);
}

#[test]
fn the_first_lengthscale_is_that_of_the_median_pair() {
    // Two points: every pair is at distance 3.
    let x = Mat::from_fn(2, 1, |i, _| 3.0 * i as f64);
    let found = median_lengthscale(x.as_ref(), Streams::new(1)).unwrap();
    assert!((found - 4.5f64.sqrt()).abs() < 1e-15);
    assert!(median_lengthscale(Mat::<f64>::zeros(5, 2).as_ref(), Streams::new(1)).is_none());
    assert!(median_lengthscale(Mat::<f64>::zeros(1, 2).as_ref(), Streams::new(1)).is_none());
}
