//! Random networks of a finite number of channels: their second moments tend to the kernel.

use super::*;
use crate::infinite::tests::apply;
use faer::Mat;
use posterior_linalg::random::Streams;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

const SHAPE: [usize; 3] = [2, 4, 4];
const SCALES: [(f64, f64); 4] = [(1.4, 0.5), (1.3, 0.3), (1.2, 0.4), (0.8, 0.2)];

/// Convolutions that overlap behind a pool, and a fully connected layer.
fn layers(activation: Activation) -> [ImageLayer; 7] {
    let activation = ImageLayer::Activation(activation);
    let pool = pool([2, 2], [1, 1]);
    [convolution([2, 2]), activation, pool, convolution([1, 2]), activation, DENSE, activation]
}

/// Channels of images: `[channel][row][column]` in one list.
struct Maps {
    shape: [usize; 3],
    values: Vec<f64>,
}

impl Maps {
    fn at(&self, c: usize, i: usize, j: usize) -> f64 {
        self.values[(c * self.shape[1] + i) * self.shape[2] + j]
    }

    fn from_fn(shape: [usize; 3], mut value: impl FnMut(usize, usize, usize) -> f64) -> Self {
        let mut values = Vec::new();
        for c in 0..shape[0] {
            for i in 0..shape[1] {
                (0..shape[2]).for_each(|j| values.push(value(c, i, j)));
            }
        }
        Self { shape, values }
    }
}

/// `(1/N) Σ φ(u_k) φ(v_k)` over the last hidden layer of one network of N channels, for the pairs (x, x), (x, z), (z, z), through the read-out layer, over whose weights the mean is
/// taken exactly.
fn moments(activation: Activation, channels: usize, images: [&[f64]; 2], rng: &mut impl Rng) -> [f64; 3] {
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    let mut scales = SCALES.iter();
    let mut state = images.map(|image| Maps { shape: SHAPE, values: image.to_vec() });
    for layer in layers(activation) {
        let shape = state[0].shape;
        state = match layer {
            ImageLayer::Convolution { filter, .. } => {
                let (weight, bias) = scales.next().unwrap();
                let taps = shape[0] * filter[0] * filter[1];
                let scale = weight / (taps as f64).sqrt();
                let filters: Vec<Vec<f64>> =
                    (0..channels).map(|_| (0..taps).map(|_| scale * normal()).collect()).collect();
                let offsets: Vec<f64> = (0..channels).map(|_| bias * normal()).collect();
                state.map(|maps| {
                    let out = [channels, shape[1] - filter[0] + 1, shape[2] - filter[1] + 1];
                    Maps::from_fn(out, |k, i, j| {
                        let mut sum = offsets[k];
                        for c in 0..shape[0] {
                            for d in 0..filter[0] {
                                for e in 0..filter[1] {
                                    sum += filters[k][(c * filter[0] + d) * filter[1] + e]
                                        * maps.at(c, i + d, j + e);
                                }
                            }
                        }
                        sum
                    })
                })
            }
            ImageLayer::AveragePool { .. } => state.map(|maps| {
                Maps::from_fn([shape[0], shape[1] - 1, shape[2] - 1], |c, i, j| {
                    0.25 * (maps.at(c, i, j)
                        + maps.at(c, i + 1, j)
                        + maps.at(c, i, j + 1)
                        + maps.at(c, i + 1, j + 1))
                })
            }),
            ImageLayer::Activation(activation) => state.map(|mut maps| {
                maps.values.iter_mut().for_each(|v| *v = apply(activation, *v));
                maps
            }),
            ImageLayer::Dense => {
                // The kernel's mean over positions is that of weights which are the same for all positions but independent, `~ N(0, w²/(C P))`.
                let (weight, bias) = scales.next().unwrap();
                let scale = weight / (state[0].values.len() as f64).sqrt();
                let mut out = [Vec::new(), Vec::new()];
                for _ in 0..channels {
                    let mut sums = [bias * normal(); 2];
                    for k in 0..state[0].values.len() {
                        let w = scale * normal();
                        (0..2).for_each(|side| sums[side] += w * state[side].values[k]);
                    }
                    (0..2).for_each(|side| out[side].push(sums[side]));
                }
                out.map(|values| Maps { shape: [channels, 1, 1], values })
            }
        };
    }
    let (weight, bias) = scales.next().unwrap();
    [(0, 0), (0, 1), (1, 1)].map(|(i, j)| {
        let sum: f64 = state[i].values.iter().zip(&state[j].values).map(|(u, v)| u * v).sum();
        weight * weight * sum / state[i].values.len() as f64 + bias * bias
    })
}

/// Means over networks with their standard errors.
fn estimate(activation: Activation, channels: usize, draws: usize, images: [&[f64]; 2]) -> [(f64, f64); 3] {
    let mut rng = Streams::new(channels as u64).stream(activation.name());
    let all: Vec<[f64; 3]> = (0..draws).map(|_| moments(activation, channels, images, &mut rng)).collect();
    [0, 1, 2].map(|pair| {
        let n = draws as f64;
        let mean = all.iter().map(|m| m[pair]).sum::<f64>() / n;
        let variance = all.iter().map(|m| (m[pair] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    })
}

/// Means at N channels are off by `c/N + O(1/N²)`: `2 m(2N) - m(N)` is free of the first term, and its standard error is `√(4 s(2N)² + s(N)²)`. Five of them are left room for, and for
/// the second term ten times `size/N²`, as for networks of rows.
#[test]
fn wide_random_networks_have_these_covariances() {
    const CHANNELS: usize = 24;
    const DRAWS: usize = 6_000;
    let x = normal(2, 32, 31);
    let images = [row(x.as_ref(), 0), row(x.as_ref(), 1)];
    let pair = [&images[0][..], &images[1][..]];
    for activation in crate::infinite::tests::ACTIVATIONS {
        let narrow = estimate(activation, CHANNELS, DRAWS, pair);
        let wide = estimate(activation, 2 * CHANNELS, DRAWS, pair);
        let kernel = network(SHAPE, &layers(activation), true, &SCALES);
        let k: Mat<f64> = crate::gram(&kernel, x.as_ref());
        for (at, (i, j)) in [(0, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            let (expected, size) = (k[(i, j)], (k[(i, i)] * k[(j, j)]).sqrt());
            let found = 2.0 * wide[at].0 - narrow[at].0;
            let error = (4.0 * wide[at].1.powi(2) + narrow[at].1.powi(2)).sqrt();
            let room = 5.0 * error + 10.0 * size / (CHANNELS * CHANNELS) as f64;
            assert!((found - expected).abs() < room, "{activation:?} {at}: {found} {expected} {room}");
            // The check says something.
            assert!(room < 0.1 * size, "{activation:?} {at}: {room}");
        }
    }
}
