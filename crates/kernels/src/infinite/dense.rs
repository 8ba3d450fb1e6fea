//! The kernel of a network of fully connected layers.

use super::Activation;
use super::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use super::inner;
use crate::features::{FeatureError, FeatureRecipe};
use crate::inputs::Columns;
use crate::kernel::{Adjoints, Kernel, Pair, column};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};

/// Runs `$body` with `$map` as the dual map of an activation, each compiled apart.
macro_rules! with_map {
    ($activation:expr, $map:ident => $body:expr) => {
        match $activation {
            Activation::Relu => {
                let $map = Rectifier::new(0.0);
                $body
            }
            Activation::LeakyRelu { slope } => {
                let $map = Rectifier::new(slope);
                $body
            }
            Activation::Erf => {
                let $map = ErrorFunction;
                $body
            }
            Activation::Sine => {
                let $map = SineWave;
                $body
            }
        }
    };
}
pub(super) use with_map;

/// A network of infinitely wide, fully connected layers before training, as a covariance function. The recursion stands in the guide of
/// [`crate::infinite`]; Lee and others, "Deep neural networks as Gaussian processes" (2018); Williams (1997) for one layer.
///
/// Parameters, positive: `LABEL.weight` and `LABEL.bias`, the standard deviations of weights and biases, one of each for every layer from the first to
/// the last, which is the read-out layer unless that is switched off. Only their squares enter. With (leaky) ReLU throughout, a factor moves from the scales of one layer to the
/// next weight's without a change of the kernel, so that data determine only some products of them.
///
/// A tile of n x m costs `nm` times 2D flops and, for each hidden layer, about 60 (ReLU), 40 (erf) or 60 (sine), the pullback some three times that; variances of points
/// through all layers are computed once for a set of points (`prepare`), `n (D + 2 depth + 1)` numbers.
///
/// Precision: values err by some ε of the variances. Inputs of size 1e6 that are close to each other lose digits, because `c` is rounded before `a + b - 2c` or `ab - c²` is
/// small: with the error function about 1e-10 in f64, with the sine as many digits as `a` has before its point. Correlations that rounding puts above 1 count as 1, and
/// an observation with itself has its exact values.
#[derive(Clone, Debug)]
pub struct InfiniteNetwork {
    pub(super) label: String,
    pub(super) columns: Columns,
    pub(super) activations: Vec<Activation>,
    pub(super) weights: Vec<f64>,
    pub(super) biases: Vec<f64>,
}

/// `K <- gain K + offset`: a layer's weights and biases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine<T> {
    pub(super) gain: T,
    pub(super) offset: T,
}

impl InfiniteNetwork {
    /// A network on `columns` with a hidden layer for each activation, first to last, and a read-out layer behind them when `readout`; all layers begin with the same
    /// standard deviations of weights and biases.
    ///
    /// # Panics
    /// When there is no activation, or a deviation is not positive.
    pub fn new(
        label: impl Into<String>,
        columns: Columns,
        activations: Vec<Activation>,
        readout: bool,
        weight: f64,
        bias: f64,
    ) -> Self {
        assert!(!activations.is_empty(), "a network has at least one hidden layer");
        let layers = activations.len() + usize::from(readout);
        let one = Self { label: label.into(), columns, activations, weights: Vec::new(), biases: Vec::new() };
        one.with_scales(vec![weight; layers], vec![bias; layers])
    }

    /// The same network with standard deviations of its own for each layer, first to last. There is a read-out layer where there is one more of them than activations.
    ///
    /// # Panics
    /// When their numbers are not those of the layers, with or without read-out, or one is not positive.
    pub fn with_scales(mut self, weights: Vec<f64>, biases: Vec<f64>) -> Self {
        let hidden = self.activations.len();
        assert!(
            weights.len() == biases.len() && (hidden..=hidden + 1).contains(&weights.len()),
            "one deviation of weights and one of biases for each layer, not {} and {} for {hidden} hidden layers",
            weights.len(),
            biases.len()
        );
        assert!(weights.iter().chain(&biases).all(|v| *v > 0.0), "standard deviations are positive");
        (self.weights, self.biases) = (weights, biases);
        self
    }

    /// Activations of the hidden layers, first to last.
    pub fn activations(&self) -> &[Activation] {
        &self.activations
    }

    /// Whether a layer without activation stands at the end.
    pub fn has_readout(&self) -> bool {
        self.weights.len() > self.activations.len()
    }

    /// One over the number of columns for the first layer, whose sums have it in front; 1 for others.
    pub(super) fn share(&self, layer: usize) -> f64 {
        if layer == 0 { 1.0 / self.columns.count() as f64 } else { 1.0 }
    }

    pub(super) fn affine<T: Real>(&self, layer: usize) -> Affine<T> {
        let (weight, bias) = (self.weights[layer], self.biases[layer]);
        Affine { gain: T::from_f64(weight * weight * self.share(layer)), offset: T::from_f64(bias * bias) }
    }

    /// Columns of prepared points with variances before hidden layer l's activation and their scales.
    pub(super) fn places(&self, layer: usize) -> (usize, usize) {
        let first = self.columns.count() + 2 * layer;
        (first, first + 1)
    }

    /// Point j as hidden layer l sees it.
    #[inline(always)]
    pub(super) fn side<T: Real>(&self, points: PreparedBlock<'_, T>, layer: usize, j: usize) -> Side<T> {
        let (variance, scale) = self.places(layer);
        Side { variance: points.column(variance)[j], scale: points.column(scale)[j] }
    }

    /// `state <- k` from inner products with point j of z, column of a tile.
    #[inline(always)]
    pub(super) fn hidden<T: Real>(
        &self,
        layer: usize,
        (x, z): (PreparedBlock<'_, T>, PreparedBlock<'_, T>),
        j: usize,
        state: &mut [T],
    ) {
        let (variance, scale) = self.places(layer);
        let (own, affine, point) =
            ((x.column(variance), x.column(scale)), self.affine(layer), self.side(z, layer, j));
        with_map!(self.activations[layer], map => forward(map, affine, own, point, state));
    }
}

/// One hidden layer for one column of a tile: `state <- E[φ(u_i) φ(v)]`.
#[inline(always)]
fn forward<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    (variances, scales): (&[T], &[T]),
    point: Side<T>,
    state: &mut [T],
) {
    let n = state.len();
    let (variances, scales) = (&variances[..n], &scales[..n]);
    for i in 0..n {
        let c = state[i].mul_add(affine.gain, affine.offset);
        state[i] = map.value(Side { variance: variances[i], scale: scales[i] }, c, point);
    }
}

/// One hidden layer for points with themselves: with the bits that [`forward`] gives two equal points.
#[inline(always)]
fn own_forward<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    state: &mut [T],
    variances: &mut [T],
    scales: &mut [T],
) {
    let n = state.len();
    let (variances, scales) = (&mut variances[..n], &mut scales[..n]);
    for i in 0..n {
        let variance = state[i].mul_add(affine.gain, affine.offset);
        let side = Side { variance, scale: map.scale(variance) };
        (variances[i], scales[i]) = (side.variance, side.scale);
        state[i] = map.value(side, variance, side);
    }
}

#[inline(always)]
fn read_out<T: Real>(affine: Affine<T>, state: &mut [T]) {
    for value in state {
        *value = value.mul_add(affine.gain, affine.offset);
    }
}

impl Parameters for InfiniteNetwork {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str| Segment {
            name: format!("{}.{name}", self.label),
            shape: vec![self.weights.len()],
            transform: Transform::Log,
        };
        vec![segment("weight"), segment("bias")]
    }

    fn values(&self) -> Vec<f64> {
        [&self.weights[..], &self.biases[..]].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let (weights, biases) = values.split_at(self.weights.len());
        self.weights.copy_from_slice(weights);
        self.biases.copy_from_slice(biases);
    }
}

impl<T: Real> Kernel<T> for InfiniteNetwork {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(pair.x), self.prepare(pair.z));
        self.prepared_tile(x.block(0..x.rows()), z.block(0..z.rows()), pair.same, out);
    }

    /// Chosen columns; for each hidden layer, the variance before its activation and what the dual map makes of that; `k(x, x)`.
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        let (n, count, depth) = (x.nrows(), self.columns.count(), self.activations.len());
        let mut own = Mat::zeros(n, count + 2 * depth + 1);
        for (d, &c) in self.columns.indices().iter().enumerate() {
            own.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter()).for_each(|(o, &v)| *o = v);
        }
        let mut state = inner::squares(n, count, |d| own.col_as_slice(d));
        let (mut variances, mut scales) = (vec![T::ZERO; n], vec![T::ZERO; n]);
        for layer in 0..depth {
            dispatch(
                #[inline(always)]
                || {
                    let affine = self.affine(layer);
                    with_map!(self.activations[layer], map => own_forward(map, affine, &mut state, &mut variances, &mut scales));
                },
            );
            let (variance, scale) = self.places(layer);
            own.col_as_slice_mut(variance).copy_from_slice(&variances);
            own.col_as_slice_mut(scale).copy_from_slice(&scales);
        }
        if self.has_readout() {
            dispatch(
                #[inline(always)]
                || read_out(self.affine(depth), &mut state),
            );
        }
        own.col_as_slice_mut(count + 2 * depth).copy_from_slice(&state);
        Prepared::own(own)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        let depth = self.activations.len();
        let identical = Pair { x: x.matrix(), z: z.matrix(), same }.identical();
        inner::fill(self.columns.count(), x, z, identical, out.as_mut());
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    let state = column(&mut out, j);
                    for layer in 0..depth {
                        self.hidden(layer, (x, z), j, state);
                    }
                    if self.has_readout() {
                        read_out(self.affine(depth), state);
                    }
                }
            },
        );
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let points: Prepared<T> = self.prepare(x);
        self.values_at(points.block(0..points.rows()), out);
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.copy_from_slice(x.column(x.columns() - 1));
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        self.pull_own(x, adjoint, parameters);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        self.pull_tile(pair, adjoint, adjoints)
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Err(FeatureError::NoFeatures { kernel: "nngp".into() })
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
