//! A small U-Net behind a small projector, against dense linear algebra.

mod evidence;
mod expectation;
mod filters;
mod roughness;

use super::{ConvolutionWeights, ImageTangent};
use faer::Mat;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::random::Streams;
use posterior_networks::architecture::Unet;
use posterior_networks::{Architecture, Array, Network};

pub(super) const SIDE: usize = 8;
pub(super) const PIXELS: usize = SIDE * SIDE;
pub(super) const MEASUREMENTS: usize = 15;

/// Repeatable numbers without a pattern.
pub(super) fn wave(k: usize) -> f64 {
    ((k * k) as f64 * 0.7391 + k as f64 * 0.317).sin()
}

/// Network, input and projector.
pub(super) struct Small {
    pub(super) network: Network<f64>,
    pub(super) input: Array<f64>,
    pub(super) weights: ConvolutionWeights,
    pub(super) projector: Dense<f64>,
}

impl Small {
    pub(super) fn new(norm: bool) -> Self {
        let unet = Unet {
            input: vec![1, SIDE, SIDE],
            channels: vec![4, 4],
            skips: vec![2],
            sigmoid: false,
            ..Unet::small(norm)
        };
        let graph = Architecture::Unet(unet).graph().unwrap();
        let network = Network::initialised(graph, Streams::new(5)).unwrap();
        let input = Array::new(vec![1, 1, SIDE, SIDE], (0..PIXELS).map(wave).collect());
        let weights = ConvolutionWeights::of(network.graph()).unwrap();
        let projector =
            Dense::new(Mat::from_fn(MEASUREMENTS, PIXELS, |i, j| wave(31 * i + 7 * j + 3).max(0.0)));
        Self { network, input, weights, projector }
    }

    pub(super) fn tangent(&self) -> ImageTangent<'_, f64> {
        ImageTangent::new(&self.network, self.input.clone(), self.weights.selection()).unwrap()
    }

    /// phi' (d x pixels).
    pub(super) fn jacobian(&self) -> Mat<f64> {
        self.tangent().rows(Mat::identity(PIXELS, PIXELS).as_ref())
    }

    pub(super) fn sinogram(&self) -> Vec<f64> {
        let picture = self.tangent().picture();
        let clean = self.projector.multiply(faer::MatRef::from_column_major_slice(&picture, PIXELS, 1));
        (0..MEASUREMENTS).map(|i| clean[(i, 0)] + 0.3 * wave(1000 + i)).collect()
    }
}
