//! Activations: formulas from the standard library, tables of many digits, large arguments.

use super::activation_table::TABLE;
use super::case::{Case, Fill};
use super::check::check;
use crate::array::{Array, activate, activate_second, activate_tangent};
use crate::operation::{Activation, Operation};

/// With the functions of the standard library and libm.
fn formula(kind: Activation, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match kind {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::LeakyRelu { slope } => x.max(0.0) + slope * x.min(0.0),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => sigmoid(x),
        Activation::Gelu => 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }
        Activation::Silu => x * sigmoid(x),
        Activation::Softplus => x.exp().ln_1p(),
        Activation::Elu { alpha } => x.max(0.0) + alpha * x.min(0.0).exp_m1(),
        Activation::Erf => libm::erf(x),
        Activation::Sin => x.sin(),
        Activation::Cos => x.cos(),
        Activation::Exp => x.exp(),
        Activation::Log => x.ln(),
        Activation::Sqrt => x.sqrt(),
        Activation::Reciprocal => 1.0 / x,
        Activation::Power { exponent } => x.powf(exponent),
        Activation::Abs => x.abs(),
        Activation::Sign => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        Activation::Floor => x.floor(),
        Activation::Round => x.round_ties_even(),
        Activation::Clip { low, high } => x.max(low).min(high),
        Activation::HardSigmoid { alpha, beta } => (alpha * x + beta).clamp(0.0, 1.0),
        Activation::HardSwish => x * ((x + 3.0).clamp(0.0, 6.0) / 6.0),
        Activation::Mish => x * x.exp().ln_1p().tanh(),
        Activation::Softsign => x / (1.0 + x.abs()),
        Activation::Celu { alpha } => x.max(0.0) + (alpha * (x / alpha).exp_m1()).min(0.0),
        Activation::ThresholdedRelu { threshold } => {
            if x > threshold {
                x
            } else {
                0.0
            }
        }
        Activation::Shrink { threshold, bias } => {
            if x < -threshold {
                x + bias
            } else if x > threshold {
                x - bias
            } else {
                0.0
            }
        }
    }
}

/// Of any number.
const ALL: [Activation; 30] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.01 },
    Activation::LeakyRelu { slope: -0.3 },
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
    Activation::Softplus,
    Activation::Elu { alpha: 1.0 },
    Activation::Elu { alpha: 0.3 },
    Activation::Erf,
    Activation::Sin,
    Activation::Cos,
    Activation::Abs,
    Activation::Sign,
    Activation::Floor,
    Activation::Round,
    Activation::Clip { low: -0.45, high: 0.62 },
    Activation::Clip { low: -0.45, high: f64::MAX },
    Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
    Activation::HardSigmoid { alpha: 1.3, beta: 0.4 },
    Activation::HardSwish,
    Activation::Mish,
    Activation::Softsign,
    Activation::Celu { alpha: 0.7 },
    Activation::ThresholdedRelu { threshold: 0.05 },
    Activation::Shrink { threshold: 0.05, bias: 0.0 },
    Activation::Shrink { threshold: 0.02, bias: 0.2 },
];

/// Of positive numbers, or not finite everywhere.
const PARTIAL: [Activation; 9] = [
    Activation::Exp,
    Activation::Log,
    Activation::Sqrt,
    Activation::Reciprocal,
    Activation::Power { exponent: 0.5 },
    Activation::Power { exponent: 1.7 },
    Activation::Power { exponent: -1.0 },
    Activation::Power { exponent: 0.0 },
    Activation::Power { exponent: 3.0 },
];

#[test]
fn every_activation_as_a_layer() {
    for kind in ALL {
        for shape in [vec![7], vec![2, 3, 2], vec![]] {
            let case = Case::new(Operation::Activation(kind), &[&shape], move |x, _| {
                let values = x[0].values().iter().map(|&v| formula(kind, v)).collect();
                Array::new(x[0].shape().to_vec(), values)
            });
            check(&case.filled(Fill::Nonzero));
        }
    }
}

#[test]
fn activations_of_positive_numbers() {
    for kind in PARTIAL {
        let case = Case::new(Operation::Activation(kind), &[&[2, 5]], move |x, _| {
            let values = x[0].values().iter().map(|&v| formula(kind, v)).collect();
            Array::new(x[0].shape().to_vec(), values)
        });
        check(&case.filled(Fill::Positive));
    }
    // Whole exponents and reciprocals take negative numbers, and the hard swish has three pieces.
    let whole = [2.0, 3.0, -2.0].map(|exponent| Activation::Power { exponent });
    for kind in [whole[0], whole[1], whole[2], Activation::Reciprocal] {
        for x in [-2.5, -0.4, 0.7, 3.0] {
            let expected = formula(kind, x);
            assert!((three(kind, x)[0] / expected - 1.0).abs() < 1e-14, "{kind:?} at {x}");
            let h = 1e-5;
            let slope = (formula(kind, x + h) - formula(kind, x - h)) / (2.0 * h);
            assert!((three(kind, x)[1] / slope - 1.0).abs() < 1e-7, "{kind:?} at {x}");
        }
    }
    for (x, expected) in
        [(-3.5, [0.0, 0.0, 0.0]), (1.0, [2.0 / 3.0, 5.0 / 6.0, 1.0 / 3.0]), (3.5, [3.5, 1.0, 0.0])]
    {
        let found = three(Activation::HardSwish, x);
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{x}: {found:?}");
    }
}

/// Outside of its domain a function is not finite, which passes refuse; a power of 0 has the derivatives that exist.
#[test]
fn outside_of_the_domain() {
    assert!(three(Activation::Log, -1.0)[0].is_nan() && three(Activation::Log, 0.0)[0] == f64::NEG_INFINITY);
    assert!(three(Activation::Sqrt, -1.0)[0].is_nan() && three(Activation::Sqrt, 0.0)[0] == 0.0);
    assert!(three(Activation::Reciprocal, 0.0)[0].is_infinite());
    assert!(three(Activation::Power { exponent: 0.5 }, -1.0)[0].is_nan());
    assert_eq!(three(Activation::Power { exponent: 2.0 }, 0.0), [0.0, 0.0, 2.0]);
    assert_eq!(three(Activation::Power { exponent: 1.0 }, 0.0), [0.0, 1.0, 0.0]);
    assert_eq!(three(Activation::Power { exponent: 0.0 }, 0.0), [1.0, 0.0, 0.0]);
    for (x, relu, shrunk) in
        [(0.9, [0.0, 0.0], [0.6, 1.0]), (1.1, [1.1, 1.0], [0.8, 1.0]), (-0.4, [0.0; 2], [0.0; 2])]
    {
        let close = |found: [f64; 3], expected: [f64; 2]| {
            (found[0] - expected[0]).abs() < 1e-15 && found[1..] == [expected[1], 0.0]
        };
        assert!(close(three(Activation::ThresholdedRelu { threshold: 1.0 }, x), relu), "{x}");
        assert!(close(three(Activation::Shrink { threshold: 0.5, bias: 0.3 }, x), shrunk), "{x}");
    }
    assert_eq!(three(Activation::Round, 2.5)[0], 2.0);
    assert_eq!(three(Activation::Sign, -0.0)[0], 0.0);
}

fn three(kind: Activation, x: f64) -> [f64; 3] {
    let (x, one) = (Array::new(vec![1], vec![x]), Array::new(vec![1], vec![1.0]));
    let value = activate(kind, &x).values()[0];
    let first = activate_tangent(kind, one.clone(), &x).values()[0];
    [value, first, activate_second(kind, one, &x).values()[0]]
}

#[test]
fn tables_of_many_digits() {
    for &(kind, rows) in TABLE {
        for &(x, value, first, second) in rows {
            for (i, (found, expected)) in three(kind, x).into_iter().zip([value, first, second]).enumerate() {
                let scale = expected.abs().max(1.0) * x.abs().clamp(1.0, 10.0);
                assert!(
                    (found - expected).abs() <= 1e-15 * scale,
                    "{kind:?} at {x}, derivative {i}: {found} instead of {expected}"
                );
            }
        }
    }
}

/// Where the exact value is small, it is right in its own digits: saturated units keep a slope, in both precisions.
#[test]
fn small_values_keep_their_digits() {
    for (kind, keeps) in [
        (Activation::Sigmoid, [true, true, false]),
        (Activation::Softplus, [true, true, true]),
        (Activation::Silu, [true, false, false]),
    ] {
        let rows = TABLE.iter().find(|(other, _)| *other == kind).unwrap().1;
        for &(x, value, first, second) in rows.iter().filter(|row| row.0.abs() < 60.0) {
            let (wide, narrow) = (Array::new(vec![1], vec![x]), Array::new(vec![1], vec![x as f32]));
            let found = three(kind, wide.values()[0]);
            let single = [
                activate(kind, &narrow).values()[0],
                activate_tangent(kind, Array::new(vec![1], vec![1.0]), &narrow).values()[0],
                activate_second(kind, Array::new(vec![1], vec![1.0]), &narrow).values()[0],
            ];
            for i in (0..3).filter(|&i| keeps[i]) {
                let expected = [value, first, second][i];
                assert!(
                    (found[i] / expected - 1.0).abs() < 4e-15,
                    "{kind:?} at {x}, derivative {i}: {}",
                    found[i]
                );
                let single = f64::from(single[i]);
                assert!((single / expected - 1.0).abs() < 2e-6, "{kind:?} at {x}, derivative {i}: {single}");
            }
        }
    }
}

/// No overflow on the way at any magnitude that a network meets, in both precisions; NaN comes out as NaN.
#[test]
fn finite_at_every_size() {
    for kind in ALL {
        for size in [0.0, 1e-300, 1e-30, 50.0, 88.5, 104.0, 709.5, 746.0, 1e3, 1e6, 1e12] {
            for x in [size, -size] {
                assert!(
                    three(kind, x).iter().all(|v| v.is_finite()),
                    "{kind:?} at {x}: {:?}",
                    three(kind, x)
                );
                let (x, one) = (Array::new(vec![1], vec![x as f32]), Array::new(vec![1], vec![1.0f32]));
                for v in [
                    activate(kind, &x),
                    activate_tangent(kind, one.clone(), &x),
                    activate_second(kind, one.clone(), &x),
                ] {
                    assert!(v.values()[0].is_finite(), "{kind:?} at {:?} in single precision", x.values());
                }
            }
        }
        assert!(three(kind, f64::NAN)[0].is_nan(), "{kind:?}");
    }
}

#[test]
fn names() {
    for kind in ALL.into_iter().chain(PARTIAL) {
        let named = Activation::named(kind.name()).unwrap();
        assert_eq!(std::mem::discriminant(&named), std::mem::discriminant(&kind));
    }
    assert_eq!(Activation::named("elu"), Some(Activation::Elu { alpha: 1.0 }));
    assert_eq!(Activation::named("Relu"), None);
}
