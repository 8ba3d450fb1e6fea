//! Values: of the specification, of 60 digits, of quadrature, of the recursion pair by pair.

use super::*;
use crate::{Kernel, cross, diagonal, gram};

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn values_are_those_of_the_specification() {
    assert_near(Activation::Relu.covariance(1.3, 0.4, 0.7), 0.2653780915, 6e-11);
    assert_near(Activation::Erf.covariance(1.3, 0.4, 0.7), 0.1754796561, 6e-11);

    let one = network(&[Activation::Erf], &[(1.0, 1.0)], 1);
    let x = Mat::from_fn(5, 1, |i, _| [-2.0, -0.5, 0.0, 1.0, 2.0][i]);
    let k = gram(&one as &dyn Kernel<f64>, x.as_ref());
    let first = [0.7264446963, 0.4460007350, 0.2263836354, -0.1738358067, -0.3672859017];
    let fourth = [-0.1738358067, 0.1536691661, 0.3454547818, 0.5903344706, 0.6000247389];
    for j in 0..5 {
        assert_near(k[(0, j)], first[j], 6e-11);
        assert_near(k[(3, j)], fourth[j], 6e-11);
        for i in 0..5 {
            // The closed form of section 6.3.
            let own = |v: f64| 1.0 + 2.0 * (v * v + 1.0);
            let (u, v) = (x[(i, 0)], x[(j, 0)]);
            let expected = 2.0 / PI * (2.0 * (u * v + 1.0) / (own(u) * own(v)).sqrt()).asin();
            assert_near(k[(i, j)], expected, 1e-15);
        }
    }

    let scales = [(1.5, 0.3), (1.2, 0.1), (0.9, 0.2)];
    let mixed = network(&[Activation::Relu, Activation::Erf], &scales, 3);
    let rows = [[1.0, 2.0, -1.0], [0.5, -0.3, 0.2], [0.0, 1.0, 1.0]];
    let x = Mat::from_fn(3, 3, |i, j| rows[i][j]);
    let k = gram(&mixed as &dyn Kernel<f64>, x.as_ref());
    let expected = [
        [0.5830124151, 0.1191323344, 0.2425485857],
        [0.1191323344, 0.2293349913, 0.1277512512],
        [0.2425485857, 0.1277512512, 0.4382919159],
    ];
    for j in 0..3 {
        for i in 0..3 {
            assert_near(k[(i, j)], expected[i][j], 6e-11);
        }
    }
}

/// `(a, c, b)` and `E[φ(u) φ(v)]` for ReLU, leaky ReLU of slope 0.1, error function and sine, computed with 60 digits (mpmath).
const DIGITS: [(f64, f64, f64, [f64; 4]); 10] = [
    (1.3, 0.4, 0.7, [0.2653780915189423, 0.2549562541303433, 0.1754796560918218, 0.15110733607621]),
    (1.3, -0.4, 0.7, [0.06537809151894233, 0.012956254130343282, -0.1754796560918218, -0.15110733607621]),
    (2.0, 1.999999, 2.0, [0.9999995001061034, 1.0099994950859437, 0.5903340461887402, 0.49084167139805895]),
    (5.0, -4.99, 5.0, [6.711232885889322e-05, -0.4989456390136243, -0.7236793573650842, -0.495001988771263]),
    (
        1e-6,
        5e-7,
        1e-6,
        [3.0449889052211466e-07, 2.966441013229129e-07, 6.366184991306892e-07, 4.999995000002708e-07],
    ),
    (40.0, 12.5, 30.0, [9.00128342780416, 8.541039576521369, 0.23148641168326145, 8.459489612958167e-11]),
    (0.25, 0.0, 3.0, [0.13783222385544802, 0.11164410132291289, 0.0, 0.0]),
    (1e4, 9999.0, 1e4, [4999.501500534697, 5049.496215433104, 0.9889735599191364, 0.18393972058572117]),
    (3.0, 3.0, 3.0, [1.5, 1.515, 0.6555253429569556, 0.4987606239116668]),
    (1e-3, -1e-3, 1e-3, [0.0, -1e-4, -0.001270698992193508, -0.0009990006663334666]),
];

#[test]
fn dual_maps_have_their_digits() {
    let all = [Activation::Relu, Activation::LeakyRelu { slope: 0.1 }, Activation::Erf, Activation::Sine];
    for (a, c, b, expected) in DIGITS {
        for (activation, expected) in all.into_iter().zip(expected) {
            let found = activation.covariance(a, c, b);
            // A rounding or two of what is added up: of √(ab) for ReLU, of the value for the others.
            let size = match activation {
                Activation::Relu | Activation::LeakyRelu { .. } => (a * b).sqrt(),
                Activation::Erf | Activation::Sine => expected.abs(),
            };
            // The arcsine's slope near 1 is √a at most.
            let steep = if activation == Activation::Erf { a.max(1.0).sqrt() } else { 1.0 };
            assert_near(found, expected, 4.0 * f64::EPSILON * size * steep);
        }
    }
}

/// The trapezoidal rule in u and v, whose error for smooth functions under a normal density is below rounding at this spacing; ReLUs have corners, and
/// are integrated over the angle between (Simpson's rule between corners; the radius' share `∫ r³ exp(-r²/2) dr` is 2).
fn by_quadrature(activation: Activation, a: f64, c: f64, b: f64) -> f64 {
    let phi = |u: f64| apply(activation, u);
    let (sa, sb, cosine) = (a.sqrt(), b.sqrt(), c / (a * b).sqrt());
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    if matches!(activation, Activation::Relu | Activation::LeakyRelu { .. }) {
        let angle = sine.atan2(cosine);
        let at = |t: f64| phi(sa * t.cos()) * phi(sb * (t - angle).cos());
        let mut corners = [-0.5 * PI, 0.5 * PI, 1.5 * PI, angle - 0.5 * PI, angle + 0.5 * PI];
        corners.sort_by(f64::total_cmp);
        let arc = |from: f64, to: f64| {
            let (panels, h) = (400, (to - from) / 800.0);
            let inside = |k: usize| at(from + h * (2 * k) as f64);
            // One rounding inside of the arc, where φ has no corner.
            let ends = at(from + 1e-13) + at(to - 1e-13);
            let even: f64 = (1..panels).map(inside).sum();
            let odd: f64 = (0..panels).map(|k| at(from + h * (2 * k + 1) as f64)).sum();
            h / 3.0 * (ends + 2.0 * even + 4.0 * odd)
        };
        return corners.windows(2).map(|w| arc(w[0], w[1])).sum::<f64>() * 2.0 / (2.0 * PI);
    }
    let h = 0.1;
    let nodes: Vec<(f64, f64)> = (-90..=90)
        .map(|k| f64::from(k) * h)
        .map(|t| (t, h * (-0.5 * t * t).exp() / (2.0 * PI).sqrt()))
        .collect();
    let inner = |t: f64| nodes.iter().map(|(s, w)| w * phi(sb * (cosine * t + sine * s))).sum::<f64>();
    nodes.iter().map(|(t, w)| w * phi(sa * t) * inner(*t)).sum()
}

#[test]
fn dual_maps_are_expectations() {
    for activation in ACTIVATIONS {
        for (a, b) in [(1.0, 1.0), (0.3, 2.5), (4.0, 0.05), (7.0, 6.0), (1e-3, 1e-2)] {
            for cosine in [-1.0, -0.999, -0.7, -0.2, 0.0, 0.01, 0.5, 0.9, 0.99999, 1.0] {
                let c = cosine * f64::sqrt(a * b);
                let (found, expected) = (activation.covariance(a, c, b), by_quadrature(activation, a, c, b));
                assert!(
                    (found - expected).abs() <= 1e-12 * (1.0 + f64::sqrt(a * b)),
                    "{activation:?} {a} {c} {b}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn tiles_are_the_recursion_pair_by_pair() {
    use Activation::{Erf, LeakyRelu, Relu, Sine};
    let mixed = [Sine, Relu, Erf, LeakyRelu { slope: 0.5 }];
    let mut cases: Vec<(Vec<Activation>, usize)> = vec![(mixed.to_vec(), 1), (mixed.to_vec(), 0)];
    for activation in ACTIVATIONS {
        cases.extend((1..=3).flat_map(|depth| (0..2).map(move |readout| (vec![activation; depth], readout))));
    }
    for dimension in [1, 3, 11, 40] {
        let (x, z) = (normal(9, dimension, 1), normal(6, dimension, 2));
        for (activations, readout) in &cases {
            let scales = scales(activations.len() + readout);
            let kernel = network(activations, &scales, dimension);
            let kernel: &dyn Kernel<f64> = &kernel;
            let (k, square, own) = (
                cross(kernel, x.as_ref(), z.as_ref()),
                gram(kernel, x.as_ref()),
                diagonal(kernel, x.as_ref()),
            );
            for i in 0..9 {
                let first = row(x.as_ref(), i);
                for j in 0..6 {
                    let expected = recursion(activations, &scales, &first, &row(z.as_ref(), j));
                    assert_near(k[(i, j)], expected, 1e-13);
                }
                for j in 0..9 {
                    let expected = recursion(activations, &scales, &first, &row(x.as_ref(), j));
                    assert_near(square[(i, j)], expected, 1e-13);
                }
                assert_eq!(square[(i, i)].to_bits(), own[i].to_bits());
            }
        }
    }
}

#[test]
fn a_network_looks_at_its_columns_alone() {
    let x = normal(7, 5, 3);
    let some = Mat::from_fn(7, 2, |i, j| x[(i, [3, 1][j])]);
    let (all, part) = (Columns::all(2), Columns::some(vec![3, 1]));
    let of = |columns| InfiniteNetwork::new("nngp", columns, vec![Activation::Erf; 2], true, 1.3, 0.2);
    let (expected, found) = (gram::<f64>(&of(all), some.as_ref()), gram::<f64>(&of(part), x.as_ref()));
    assert_eq!(found, expected);
}
