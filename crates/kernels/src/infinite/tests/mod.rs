//! Against the formulas of the specification as they stand there, quadrature, random networks of finite width, finite differences.

mod gradients;
mod limits;
mod networks;
mod reference;

use super::{Activation, InfiniteNetwork};
use crate::Columns;
use faer::{Mat, MatRef};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

pub(crate) const SLOPE: f64 = 0.2;
pub(crate) const ACTIVATIONS: [Activation; 4] =
    [Activation::Relu, Activation::LeakyRelu { slope: SLOPE }, Activation::Erf, Activation::Sine];

/// φ itself.
pub(crate) fn apply(activation: Activation, u: f64) -> f64 {
    match activation {
        Activation::Relu => u.max(0.0),
        Activation::LeakyRelu { slope } => u.max(0.0) + slope * u.min(0.0),
        Activation::Erf => posterior_linalg::Real::erf(u),
        Activation::Sine => u.sin(),
    }
}

/// The dual maps as the specification writes them.
pub(crate) fn dual(activation: Activation, a: f64, c: f64, b: f64) -> f64 {
    let relu = {
        let root = (a * b - c * c).max(0.0).sqrt();
        (root + (PI - root.atan2(c)) * c) / (2.0 * PI)
    };
    match activation {
        Activation::Relu => relu,
        Activation::LeakyRelu { slope } => slope * c + (1.0 - slope).powi(2) * relu,
        Activation::Erf => {
            let square = (1.0 + 2.0 * a) * (1.0 + 2.0 * b) - 4.0 * c * c;
            2.0 / PI * (2.0 * c).atan2(square.max(1.0 + 2.0 * (a + b)).sqrt())
        }
        Activation::Sine => 0.5 * ((-0.5 * (a + b - 2.0 * c)).exp() - (-0.5 * (a + b + 2.0 * c)).exp()),
    }
}

/// The specification's recursion for one pair of points.
pub(crate) fn recursion(activations: &[Activation], scales: &[(f64, f64)], x: &[f64], z: &[f64]) -> f64 {
    let inner = |x: &[f64], z: &[f64]| x.iter().zip(z).map(|(x, z)| x * z).sum::<f64>() / x.len() as f64;
    let mut all = [inner(x, x), inner(x, z), inner(z, z)];
    for (layer, (w, b)) in scales.iter().enumerate() {
        all = all.map(|k| w * w * k + b * b);
        if let Some(&activation) = activations.get(layer) {
            let [a, c, b] = all;
            all = [dual(activation, a, a, a), dual(activation, a, c, b), dual(activation, b, b, b)];
        }
    }
    all[1]
}

fn network(activations: &[Activation], scales: &[(f64, f64)], dimension: usize) -> InfiniteNetwork {
    InfiniteNetwork::new("nngp", Columns::all(dimension), activations.to_vec(), true, 1.0, 1.0)
        .with_scales(scales.iter().map(|s| s.0).collect(), scales.iter().map(|s| s.1).collect())
}

/// Scales that differ from layer to layer.
pub(crate) fn scales(layers: usize) -> Vec<(f64, f64)> {
    (0..layers).map(|l| (1.4 - 0.2 * l as f64, 0.3 + 0.15 * l as f64)).collect()
}

pub(crate) fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("kernels/infinite");
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
}

pub(crate) fn row(x: MatRef<'_, f64>, i: usize) -> Vec<f64> {
    x.row(i).iter().copied().collect()
}
