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
    }
}

const ALL: [Activation; 13] = [
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
    for kind in ALL {
        let named = Activation::named(kind.name()).unwrap();
        assert_eq!(std::mem::discriminant(&named), std::mem::discriminant(&kind));
    }
    assert_eq!(Activation::named("elu"), Some(Activation::Elu { alpha: 1.0 }));
    assert_eq!(Activation::named("Relu"), None);
}
