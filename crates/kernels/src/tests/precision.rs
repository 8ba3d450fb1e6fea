//! Rounding, near-duplicates, numbers out of range.

use super::*;

fn single(m: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32)
}

fn double(m: &Mat<f32>) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| f64::from(m[(i, j)]))
}

fn build_wide<T: posterior_linalg::Real>(text: &str, d: usize) -> Box<dyn Kernel<T>> {
    let features: Vec<String> = (0..d).map(|i| format!("f{i}")).collect();
    text.parse::<KernelExpression>().unwrap().build(&features).unwrap()
}

#[test]
fn single_precision_agrees_to_its_rounding() {
    let (x, z) = (points(40, 9), points(30, 10));
    for text in TEXTS {
        let exact = cross(&*build::<f64>(text), x.as_ref(), z.as_ref());
        let rounded = cross(&*build::<f32>(text), single(&x).as_ref(), single(&z).as_ref());
        let scale = exact.norm_max().max(1.0);
        for j in 0..30 {
            for i in 0..40 {
                // With u = ε/2: a scaled coordinate is off by 3u|x|/ℓ (input, 1/ℓ, their product), so q by at most
                // √D · 6u max|x|/ℓ, with |x| < 4 and ℓ >= 0.7 by 60 u; |dk/dq| <= 1; the formula adds some 10 u.
                let error = (exact[(i, j)] - f64::from(rounded[(i, j)])).abs();
                assert!(error < 40.0 * f64::from(f32::EPSILON) * scale, "{text}: {error}");
            }
        }
    }
}

#[test]
fn near_duplicates_keep_their_digits_in_single_precision() {
    // Neighbours differ by a few units in the last place of a coordinate near 1.
    let x = Mat::<f32>::from_fn(40, D, |i, j| 1.0 + (i * (j + 1)) as f32 * f32::EPSILON);
    for name in ["se", "matern12", "matern32", "matern52", "rq"] {
        let text = format!("{name}(lengthscale=0.001)");
        let exact = gram(&*build::<f64>(&text), double(&x).as_ref());
        let rounded = gram(&*build::<f32>(&text), x.as_ref());
        for j in 0..40 {
            assert_eq!(rounded[(j, j)], 1.0);
            for i in 0..40 {
                assert!(rounded[(i, j)] <= 1.0);
                // Scaled coordinates are 1000, off by u · 1000 each after the common factor: √D · 1000 ε = 2.1e-4 in q.
                let error = (exact[(i, j)] - f64::from(rounded[(i, j)])).abs();
                assert!(error < 2.2e-4, "{name} {i} {j}: {error:e}");
            }
        }
    }
}

#[test]
fn products_are_centred_and_keep_the_diagonal_exact() {
    const WIDE: usize = 40;
    let mut rng = Streams::new(21).stream("far");
    let near = Mat::<f64>::from_fn(30, WIDE, |_, _| StandardNormal.sample(&mut rng));
    let far = Mat::<f32>::from_fn(30, WIDE, |i, j| (near[(i, j)] + 1000.0) as f32);
    for name in ["se", "matern32", "matern52", "rq"] {
        let text = format!("{name}(lengthscale=6)");
        let exact = gram(&*build_wide::<f64>(&text, WIDE), double(&far).as_ref());
        let rounded = gram(&*build_wide::<f32>(&text, WIDE), far.as_ref());
        for j in 0..30 {
            assert_eq!(rounded[(j, j)], 1.0);
            for i in 0..30 {
                // Without centring |x|² would be 1e6 here, and q² off by ε |x|² = 0.13. With it |x|² is below 3, off by
                // some √40 roundings, while |dk/d(q²)| <= 3/2.
                let error = (exact[(i, j)] - f64::from(rounded[(i, j)])).abs();
                assert!(error < 1e-5, "{name}: {error:e}");
            }
        }
    }
}

#[test]
fn points_far_away_take_no_digits_from_others() {
    const WIDE: usize = 40;
    let mut rng = Streams::new(22).stream("far");
    let mut x = Mat::<f64>::from_fn(30, WIDE, |_, _| StandardNormal.sample(&mut rng));
    let near = x.clone();
    // Wherever they stand, two of them close to each other.
    for i in [0, 7, 14, 29] {
        x[(i, 3)] = 1e12;
    }
    let (twin, of) = (14, 29);
    for d in 0..WIDE {
        x[(twin, d)] = x[(of, d)] + if d == 5 { 0.5 } else { 0.0 };
    }
    for name in ["se", "matern32", "matern52", "rq"] {
        let kernel = build_wide::<f64>(&format!("{name}(lengthscale=6)"), WIDE);
        let (found, expected) = (gram(&*kernel, x.as_ref()), gram(&*kernel, near.as_ref()));
        let sides = cross(&*kernel, near.as_ref(), x.as_ref());
        for j in 0..30 {
            for i in 0..30 {
                if [i, j].iter().all(|k| near.row(*k) == x.row(*k)) {
                    // |x|² is some 4, the kernel's slope at most 1.5.
                    let error = (found[(i, j)] - expected[(i, j)]).abs();
                    assert!(error < 1e-14, "{name} {i} {j}: {error:e}");
                    assert!((sides[(i, j)] - expected[(i, j)]).abs() < 1e-14);
                }
            }
        }
        // q = 0.5 / 6 apart, as two points near the centre would be.
        let mut pair = Mat::<f64>::zeros(2, WIDE);
        pair[(1, 5)] = 0.5;
        let close = gram(&*kernel, pair.as_ref())[(1, 0)];
        assert!((found[(twin, of)] - close).abs() < 1e-12, "{name}: {} {close}", found[(twin, of)]);
        if name != "rq" {
            assert!(found[(0, 1)] < 1e-300, "{name}");
        }
    }
}

#[test]
fn not_a_number_stays_visible() {
    for (d, name) in
        [(3, "se"), (3, "matern12"), (3, "matern32"), (3, "matern52"), (3, "rq"), (40, "matern32")]
    {
        let mut x = Mat::<f64>::from_fn(4, d, |i, j| (i * j) as f64 * 0.1);
        x[(2, 1)] = f64::NAN;
        let k = cross(&*build_wide::<f64>(name, d), x.as_ref(), x.subrows(0, 2));
        assert!(k[(2, 0)].is_nan() && k[(2, 1)].is_nan(), "{name} {d}");
        assert!(k[(0, 1)].is_finite() && k[(3, 0)].is_finite(), "{name} {d}");
    }
}

#[test]
fn enormous_distances_are_far_and_not_nan() {
    fn check<T: posterior_linalg::Real>(text: &str, d: usize, huge: f64) {
        let kernel = build_wide::<T>(text, d);
        let x = Mat::<T>::from_fn(3, d, |i, _| T::from_f64(if i == 1 { huge } else { 0.0 }));
        let k = gram(&*kernel, x.as_ref());
        assert!(k[(1, 0)].to_f64().abs() < 1e-9 && k[(1, 1)].to_f64() == 1.0, "{text}: {}", k[(1, 0)]);
        assert_eq!(k[(2, 0)].to_f64(), 1.0);
        let ones = Mat::from_fn(3, 3, |_, _| T::ONE);
        let adjoints = pullback(&*kernel, x.as_ref(), x.as_ref(), ones.as_ref(), Request::ALL);
        assert!(adjoints.parameters.iter().all(|p| p.is_finite()), "{text}: {:?}", adjoints.parameters);
        let finite = |m: &Mat<T>| (0..d).all(|j| (0..3).all(|i| m[(i, j)].is_finite()));
        assert!(finite(&adjoints.x.unwrap()) && finite(&adjoints.z.unwrap()), "{text}");
    }
    for name in ["se", "matern12", "matern32", "matern52", "rq"] {
        for text in [name.to_string(), format!("{name}(ard)")] {
            for d in [2, 40] {
                check::<f64>(&text, d, 1e200);
                check::<f32>(&text, d, 1e25);
            }
        }
    }
}

#[test]
fn equal_points_have_finite_gradients() {
    let x = Mat::<f64>::from_fn(5, D, |_, j| j as f64);
    let ones = Mat::<f64>::from_fn(5, 5, |_, _| 1.0);
    for text in TEXTS {
        let adjoints = pullback(&*build::<f64>(text), x.as_ref(), x.as_ref(), ones.as_ref(), Request::ALL);
        assert!(adjoints.parameters.iter().all(|p| p.is_finite()), "{text}");
        assert!(
            adjoints.x.unwrap().norm_l2().is_finite() && adjoints.z.unwrap().norm_l2().is_finite(),
            "{text}"
        );
    }
}
