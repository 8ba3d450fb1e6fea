//! Against covariances of all pairs of positions as the specification writes them, random networks of finite width, finite differences.

mod gradients;
mod limits;
mod networks;
mod reference;

use super::{ConvolutionalNetwork, ImageLayer, Padding};
use crate::Columns;
use crate::infinite::Activation;
use crate::infinite::tests::{SLOPE, dual, normal, row, scales};

const RELU: ImageLayer = ImageLayer::Activation(Activation::Relu);
const LEAKY: ImageLayer = ImageLayer::Activation(Activation::LeakyRelu { slope: SLOPE });
const ERF: ImageLayer = ImageLayer::Activation(Activation::Erf);
const SINE: ImageLayer = ImageLayer::Activation(Activation::Sine);
const DENSE: ImageLayer = ImageLayer::Dense;

fn convolution(filter: [usize; 2]) -> ImageLayer {
    ImageLayer::Convolution { filter, stride: [1, 1], padding: Padding::Valid }
}

fn pool(window: [usize; 2], stride: [usize; 2]) -> ImageLayer {
    ImageLayer::AveragePool { window, stride }
}

/// Networks with every kind of neighbourhood of layers, and their images.
fn cases() -> Vec<([usize; 3], Vec<ImageLayer>)> {
    let strided = |padding| ImageLayer::Convolution { filter: [3, 2], stride: [2, 1], padding };
    let same = |filter| ImageLayer::Convolution { filter, stride: [1, 1], padding: Padding::Same };
    vec![
        ([1, 8, 8], vec![convolution([3, 3]), RELU, pool([2, 2], [2, 2]), DENSE, RELU]),
        ([2, 5, 7], vec![convolution([2, 3]), ERF, convolution([3, 2]), SINE]),
        (
            [1, 9, 8],
            vec![
                convolution([3, 3]),
                LEAKY,
                pool([2, 1], [2, 1]),
                convolution([2, 2]),
                RELU,
                pool([2, 3], [1, 2]),
            ],
        ),
        // Windows that overlap, and one that leaves columns out.
        ([3, 6, 6], vec![convolution([2, 2]), RELU, pool([3, 2], [1, 3]), DENSE, ERF, DENSE, SINE]),
        ([1, 7, 6], vec![strided(Padding::Valid), ERF, pool([2, 2], [1, 1])]),
        ([2, 5, 6], vec![strided(Padding::Same), RELU, same([2, 5]), ERF, pool([2, 2], [2, 2])]),
        ([1, 4, 5], vec![same([3, 3]), SINE, pool([2, 2], [1, 2]), same([2, 4]), LEAKY, DENSE, RELU]),
        // Pools before anything else, after one another, and before an activation; filters without an activation between; filters of one position.
        ([2, 6, 5], vec![pool([2, 2], [1, 1]), convolution([2, 2]), RELU]),
        (
            [1, 7, 7],
            vec![convolution([2, 2]), pool([2, 2], [1, 1]), ERF, pool([2, 2], [2, 2]), pool([2, 1], [1, 1])],
        ),
        ([2, 6, 6], vec![convolution([2, 1]), convolution([2, 3]), RELU, pool([2, 2], [2, 2])]),
        ([3, 3, 4], vec![convolution([1, 1]), SINE, pool([3, 2], [1, 1])]),
        // No positions left, and none to begin with.
        ([2, 4, 3], vec![convolution([4, 3]), LEAKY, DENSE, LEAKY]),
        ([2, 3, 2], vec![DENSE, ERF, DENSE, RELU]),
        ([1, 1, 1], vec![convolution([1, 1]), ERF]),
    ]
}

fn parameters(layers: &[ImageLayer], readout: bool) -> usize {
    let own = |layer: &&ImageLayer| matches!(layer, ImageLayer::Convolution { .. } | ImageLayer::Dense);
    layers.iter().filter(own).count() + usize::from(readout)
}

fn network(
    shape: [usize; 3],
    layers: &[ImageLayer],
    readout: bool,
    scales: &[(f64, f64)],
) -> ConvolutionalNetwork {
    let columns = Columns::all(shape.iter().product());
    ConvolutionalNetwork::new("nngp-conv", columns, shape, layers.to_vec(), readout, 1.0, 1.0)
        .unwrap()
        .with_scales(scales.iter().map(|s| s.0).collect(), scales.iter().map(|s| s.1).collect())
}

/// Each case with and without a read-out layer, at scales that differ from layer to layer.
fn networks() -> Vec<(ConvolutionalNetwork, Vec<(f64, f64)>)> {
    let mut out = Vec::new();
    for (shape, layers) in cases() {
        for readout in [true, false] {
            let scales = scales(parameters(&layers, readout));
            out.push((network(shape, &layers, readout, &scales), scales));
        }
    }
    out
}

/// `K[p, q]` of all positions of two images.
#[derive(Clone)]
struct Covariance {
    height: usize,
    width: usize,
    values: Vec<f64>,
}

impl Covariance {
    fn from_fn(height: usize, width: usize, value: impl Fn([usize; 2], [usize; 2]) -> f64) -> Self {
        let positions: Vec<[usize; 2]> = (0..height).flat_map(|i| (0..width).map(move |j| [i, j])).collect();
        let values =
            positions.iter().flat_map(|&p| positions.iter().map(move |&q| (p, q))).map(|(p, q)| value(p, q));
        Self { height, width, values: values.collect() }
    }

    fn at(&self, p: [usize; 2], q: [usize; 2]) -> f64 {
        let place = |p: [usize; 2]| p[0] * self.width + p[1];
        self.values[place(p) * self.height * self.width + place(q)]
    }

    /// `Σ K[s p + d - padding, s q + e - padding]` over d and e, or (together) over d = e; nothing stands outside.
    fn windows(
        &self,
        size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        out: [usize; 2],
        together: bool,
    ) -> Self {
        let place = |p: [usize; 2], d: [usize; 2]| -> Option<[usize; 2]> {
            let at = [0, 1].map(|a| (p[a] * stride[a] + d[a]).checked_sub(padding[a]));
            let [Some(i), Some(j)] = at else { return None };
            (i < self.height && j < self.width).then_some([i, j])
        };
        let offsets: Vec<[usize; 2]> = (0..size[0]).flat_map(|i| (0..size[1]).map(move |j| [i, j])).collect();
        Self::from_fn(out[0], out[1], |p, q| {
            let mut sum = 0.0;
            for &d in &offsets {
                for &e in &offsets {
                    if let (true, Some(p), Some(q)) = (!together || d == e, place(p, d), place(q, e)) {
                        sum += self.at(p, q);
                    }
                }
            }
            sum
        })
    }
}

/// The specification's recursion for one pair of images, with the covariances of all pairs of positions.
pub(crate) fn recursion(
    [channels, height, width]: [usize; 3],
    layers: &[ImageLayer],
    scales: &[(f64, f64)],
    x: &[f64],
    z: &[f64],
) -> f64 {
    let pixel = |x: &[f64], c: usize, p: [usize; 2]| x[(c * height + p[0]) * width + p[1]];
    let start = |x: &[f64], z: &[f64]| {
        Covariance::from_fn(height, width, |p, q| {
            (0..channels).map(|c| pixel(x, c, p) * pixel(z, c, q)).sum::<f64>() / channels as f64
        })
    };
    let mut all = [start(x, x), start(x, z), start(z, z)];
    let mut scales = scales.iter();
    for layer in layers {
        let [h, w] = [all[0].height, all[0].width];
        all = match *layer {
            ImageLayer::Convolution { filter, stride, padding } => {
                let (weight, bias) = scales.next().unwrap();
                let (mut out, mut before) = ([0; 2], [0; 2]);
                for (axis, size) in [h, w].into_iter().enumerate() {
                    out[axis] = match padding {
                        Padding::Valid => (size - filter[axis]) / stride[axis] + 1,
                        Padding::Same => size.div_ceil(stride[axis]),
                    };
                    let spread = (out[axis] - 1) * stride[axis] + filter[axis];
                    before[axis] = if padding == Padding::Same { spread.saturating_sub(size) / 2 } else { 0 };
                }
                let size = (filter[0] * filter[1]) as f64;
                all.map(|k| {
                    let mut k = k.windows(filter, stride, before, out, true);
                    k.values.iter_mut().for_each(|v| *v = weight * weight / size * *v + bias * bias);
                    k
                })
            }
            ImageLayer::AveragePool { window, stride } => {
                let out = [(h - window[0]) / stride[0] + 1, (w - window[1]) / stride[1] + 1];
                let size = (window[0] * window[1]) as f64;
                all.map(|k| {
                    let mut k = k.windows(window, stride, [0, 0], out, false);
                    k.values.iter_mut().for_each(|v| *v /= size * size);
                    k
                })
            }
            ImageLayer::Activation(activation) => {
                let map = |a: &Covariance, c: &Covariance, b: &Covariance| {
                    Covariance::from_fn(h, w, |p, q| dual(activation, a.at(p, p), c.at(p, q), b.at(q, q)))
                };
                let [a, c, b] = &all;
                [map(a, a, a), map(a, c, b), map(b, b, b)]
            }
            ImageLayer::Dense => {
                let (weight, bias) = scales.next().unwrap();
                all.map(|k| Covariance {
                    height: 1,
                    width: 1,
                    values: vec![weight * weight * mean(&k) + bias * bias],
                })
            }
        };
    }
    let (weight, bias) = scales.next().copied().unwrap_or((1.0, 0.0));
    assert!(scales.next().is_none());
    weight * weight * mean(&all[1]) + bias * bias
}

/// Over `K[p, p]`.
fn mean(k: &Covariance) -> f64 {
    let positions = k.height * k.width;
    (0..positions).map(|p| k.values[p * positions + p]).sum::<f64>() / positions as f64
}
