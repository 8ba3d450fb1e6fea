//! Central differences against forward mode, with the errors that the step promises.

use super::networks::{cases, numbers};
use crate::{Activation, Array, GraphBuilder, Mode, Network, Precision, Selection};
use posterior_linalg::random::Streams;

fn network<T: Precision>() -> Network<T> {
    let mut b = GraphBuilder::new(&[6]).unwrap();
    let mut x = b.input();
    for layer in 0..2 {
        x = b.linear(&format!("{layer}"), 20, x).unwrap();
        x = b.activation(&format!("{layer}.tanh"), Activation::Tanh, x).unwrap();
    }
    let x = b.linear("out", 3, x).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(2)).unwrap()
}

fn rounded<T: Precision>(a: &Array<f64>) -> Array<T> {
    Array::new(a.shape().to_vec(), a.values().iter().map(|v| T::from_f64(*v)).collect())
}

/// The largest error over inputs and tangents, relative to the largest entry.
fn error<T: Precision>() -> f64 {
    let network = network::<T>();
    let all = Selection::all(network.graph());
    let x = rounded::<T>(&numbers(&[7, 6], 1));
    let tangents = rounded::<T>(&numbers(&[4, all.len()], 2));
    let found = network.finite_difference_jvp(&x, &all, &tangents).unwrap();
    let exact = network.trace(x).unwrap().jvp(&all, &tangents).unwrap();
    assert_eq!(found.shape(), exact.shape());
    let scale = exact.values().iter().fold(0.0f64, |m, v| m.max(v.to_f64().abs()));
    let difference = |(a, b): (&T, &T)| (a.to_f64() - b.to_f64()).abs();
    found.values().iter().zip(exact.values()).map(difference).fold(0.0, f64::max) / scale
}

/// Measured in the specification on a small tanh network: 1.3e-4 in single precision, 5e-9 in double. Truncation is of the order of `h^2 = eps`, rounding of `eps / h = sqrt(eps)`.
#[test]
fn errors_are_of_the_order_of_the_root_of_the_machine_epsilon() {
    let (single, double) = (error::<f32>(), error::<f64>());
    assert!(single < f64::from(f32::EPSILON).sqrt() && single > 1e-7, "{single:e}");
    assert!(double < f64::EPSILON.sqrt() && double > 1e-12, "{double:e}");
}

#[test]
fn every_network_and_part_of_the_weights() {
    for case in cases() {
        let network = &case.network;
        let all = Selection::all(network.graph());
        let mask: Vec<bool> = (0..all.len()).map(|i| i % 3 == 0).collect();
        for selection in [all.clone(), all.masked(network.graph(), &mask)] {
            let tangents = numbers(&[2, selection.len()], 3);
            let found = network.finite_difference_jvp(&case.x, &selection, &tangents).unwrap();
            let exact = network.trace(case.x.clone()).unwrap().jvp(&selection, &tangents).unwrap();
            // Kinks that a step passes by chance would show; these inputs have none near.
            super::close(case.name, found.values(), exact.values(), 1e-6);
        }
    }
}

#[test]
fn nothing_moves_along_a_tangent_of_zeros_and_bad_ones_are_refused() {
    let mut network = network::<f64>();
    let all = Selection::all(network.graph());
    let x = numbers(&[3, 6], 1);
    let zero = network.finite_difference_jvp(&x, &all, &Array::zeros(vec![2, all.len()])).unwrap();
    assert!(zero.shape() == [6, 3] && zero.values().iter().all(|v| *v == 0.0));
    assert!(network.finite_difference_jvp(&x, &all, &Array::zeros(vec![1, 5])).is_err());
    let mut bad = Array::zeros(vec![1, all.len()]);
    bad.values_mut()[4] = f64::NAN;
    assert!(network.finite_difference_jvp(&x, &all, &bad).is_err());
    network.set_mode(Mode::Training);
    assert!(network.finite_difference_jvp(&x, &all, &Array::zeros(vec![1, all.len()])).is_err());
}
