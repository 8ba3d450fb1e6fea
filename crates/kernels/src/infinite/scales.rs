//! Standard deviations of weights and biases of all layers, as a kernel's parameters; only their squares enter: `K <- w² K + b²`.

use crate::inputs::lane_sum;
use posterior_linalg::Real;
use posterior_optim::{Segment, Transform};

/// `K <- gain K + offset`: a layer's weights and biases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine<T> {
    pub(super) gain: T,
    pub(super) offset: T,
}

impl<T: Real> Affine<T> {
    /// No layer at all.
    pub(super) const NONE: Self = Self { gain: T::ONE, offset: T::ZERO };
}

/// One pair of deviations for each layer, first to last.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    label: String,
    weights: Vec<f64>,
    biases: Vec<f64>,
}

impl Scales {
    /// The deviations; `label` names them.
    ///
    /// # Panics
    /// When there are not as many of one as of the other, or one is not positive.
    pub(super) fn new(label: impl Into<String>, weights: Vec<f64>, biases: Vec<f64>) -> Self {
        assert_eq!(weights.len(), biases.len(), "one deviation of weights and one of biases for each layer");
        assert!(weights.iter().chain(&biases).all(|v| *v > 0.0), "standard deviations are positive");
        Self { label: label.into(), weights, biases }
    }

    /// The same label with other deviations.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub(super) fn replaced(&self, weights: Vec<f64>, biases: Vec<f64>) -> Self {
        Self::new(self.label.clone(), weights, biases)
    }

    /// How many layers.
    pub(super) fn layers(&self) -> usize {
        self.weights.len()
    }

    /// What a layer does, where `share` stands in front of the covariances that go into it.
    pub(super) fn affine<T: Real>(&self, layer: usize, share: f64) -> Affine<T> {
        let (weight, bias) = (self.weights[layer], self.biases[layer]);
        Affine { gain: T::from_f64(weight * weight * share), offset: T::from_f64(bias * bias) }
    }

    pub(super) fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str| Segment {
            name: format!("{}.{name}", self.label),
            shape: vec![self.layers()],
            transform: Transform::Log,
        };
        vec![segment("weight"), segment("bias")]
    }

    pub(super) fn values(&self) -> Vec<f64> {
        [&self.weights[..], &self.biases[..]].concat()
    }

    pub(super) fn set_values(&mut self, values: &[f64]) {
        let (weights, biases) = values.split_at(self.layers());
        self.weights.copy_from_slice(weights);
        self.biases.copy_from_slice(biases);
    }
}

/// Adjoints of the layers' gains and offsets.
#[derive(Clone, Debug)]
pub(super) struct LayerAdjoints {
    pub(super) gains: Vec<f64>,
    pub(super) offsets: Vec<f64>,
}

impl LayerAdjoints {
    pub(super) fn new(layers: usize) -> Self {
        Self { gains: vec![0.0; layers], offsets: vec![0.0; layers] }
    }

    /// What adjoints `g` of a layer's results contribute, where `inputs` went into it; then `g` becomes that of the inputs.
    #[inline(always)]
    pub(super) fn back<T: Real>(&mut self, layer: usize, affine: Affine<T>, inputs: &[T], g: &mut [T]) {
        let n = g.len();
        let inputs = &inputs[..n];
        self.gains[layer] += lane_sum(
            n,
            #[inline(always)]
            |i| g[i] * inputs[i],
        );
        self.offsets[layer] += lane_sum(
            n,
            #[inline(always)]
            |i| g[i],
        );
        for value in g {
            *value *= affine.gain;
        }
    }

    /// Adds those of another part of the layers.
    pub(super) fn add(&mut self, other: &Self) {
        self.gains.iter_mut().zip(&other.gains).for_each(|(mine, other)| *mine += other);
        self.offsets.iter_mut().zip(&other.offsets).for_each(|(mine, other)| *mine += other);
    }

    /// From gains and offsets to standard deviations; `share` stands in front of a layer's covariances.
    pub(super) fn add_to(&self, scales: &Scales, share: impl Fn(usize) -> f64, parameters: &mut [f64]) {
        let count = self.gains.len();
        for layer in 0..count {
            parameters[layer] += 2.0 * scales.weights[layer] * share(layer) * self.gains[layer];
            parameters[count + layer] += 2.0 * scales.biases[layer] * self.offsets[layer];
        }
    }
}
