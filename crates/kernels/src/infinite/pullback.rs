//! The way back through the layers: from adjoints of a tile to parameters and points.
//!
//! For one column of a tile the covariances between its layers are kept, `(depth + 1) n` numbers. On the way back each layer leaves what its adjoint
//! `g` says about its own gain `w²` and offset `b²` (`Σ g K` and `Σ g`), and about the variances of both points, which are summed over the tile; these then go
//! back through the variances' own recursion, once for each point. What arrives at the inner products is `G`, so that x gets `G Z` and z gets `Gᵀ X`.

use super::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use super::dense::{Affine, with_map};
use super::{Activation, InfiniteNetwork, inner};
use crate::inputs::lane_sum;
use crate::kernel::{Adjoints, Kernel, Pair, entries};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;

/// Adjoints of the layers' gains and offsets.
struct Layers {
    gains: Vec<f64>,
    offsets: Vec<f64>,
}

impl Layers {
    fn new(count: usize) -> Self {
        Self { gains: vec![0.0; count], offsets: vec![0.0; count] }
    }

    /// What adjoints `g` of a layer's results contribute, where `inputs` went into it; then `g` becomes that of the inputs.
    #[inline(always)]
    fn back<T: Real>(&mut self, layer: usize, affine: Affine<T>, inputs: &[T], g: &mut [T]) {
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

    /// From squares to standard deviations.
    fn add_to(&self, network: &InfiniteNetwork, parameters: &mut [f64]) {
        let count = self.gains.len();
        for layer in 0..count {
            parameters[layer] += 2.0 * network.weights[layer] * network.share(layer) * self.gains[layer];
            parameters[count + layer] += 2.0 * network.biases[layer] * self.offsets[layer];
        }
    }
}

/// One hidden layer back for one column: `g` becomes the adjoint of its sums' covariances, `toward_x` and `toward_z` get those of their variances.
#[inline(always)]
fn backward<T: Real>(
    map: impl DualMap<T>,
    affine: Affine<T>,
    (variances, scales): (&[T], &[T]),
    point: Side<T>,
    inputs: &[T],
    g: &mut [T],
    toward_x: &mut [T],
    toward_z: &mut [T],
) {
    let n = g.len();
    let (variances, scales, inputs) = (&variances[..n], &scales[..n], &inputs[..n]);
    let (toward_x, toward_z) = (&mut toward_x[..n], &mut toward_z[..n]);
    for i in 0..n {
        let c = inputs[i].mul_add(affine.gain, affine.offset);
        let slopes = map.slopes(Side { variance: variances[i], scale: scales[i] }, c, point);
        toward_x[i] = g[i].mul_add(slopes.first, toward_x[i]);
        toward_z[i] = g[i] * slopes.second;
        g[i] *= slopes.covariance;
    }
}

/// `carry`, the adjoint of what a hidden layer makes of its points' variances, becomes the adjoint of the variances.
#[inline(always)]
fn own_backward<T: Real>(map: impl DualMap<T>, variances: &[T], toward: &[T], carry: &mut [T]) {
    let n = carry.len();
    let (variances, toward) = (&variances[..n], &toward[..n]);
    for i in 0..n {
        carry[i] = carry[i].mul_add(map.own_slope(variances[i]), toward[i]);
    }
}

/// What a hidden layer makes of its points' variances.
#[inline(always)]
fn own_values<T: Real>(map: impl DualMap<T>, (variances, scales): (&[T], &[T]), out: &mut [T]) {
    let n = out.len();
    let (variances, scales) = (&variances[..n], &scales[..n]);
    for i in 0..n {
        let side = Side { variance: variances[i], scale: scales[i] };
        out[i] = map.value(side, variances[i], side);
    }
}

impl InfiniteNetwork {
    /// [`Kernel::pullback_tile`].
    pub(super) fn pull_tile<T: Real>(
        &self,
        pair: Pair<'_, T>,
        adjoint: MatRef<'_, T>,
        adjoints: &mut Adjoints<T>,
    ) -> f64 {
        let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(pair.x), self.prepare(pair.z));
        let (x, z) = (x.block(0..x.rows()), z.block(0..z.rows()));
        let (n, m, depth, count) = (x.rows(), z.rows(), self.activations.len(), self.columns.count());
        // Inner products; column by column their adjoints take their place.
        let mut inner = Mat::<T>::zeros(n, m);
        inner::fill(count, x, z, pair.identical(), inner.as_mut());
        let mut layers = Layers::new(self.weights.len());
        let mut states = vec![vec![T::ZERO; n]; depth + 1];
        let (mut toward_x, mut toward_z) = (vec![vec![T::ZERO; n]; depth], vec![vec![T::ZERO; m]; depth]);
        let (mut g, mut pulls) = (vec![T::ZERO; n], vec![T::ZERO; n]);
        let mut total = 0.0;
        dispatch(
            #[inline(always)]
            || {
                for j in 0..m {
                    states[0].copy_from_slice(inner.col_as_slice(j));
                    for layer in 0..depth {
                        let (before, after) = states.split_at_mut(layer + 1);
                        after[0].copy_from_slice(&before[layer]);
                        self.hidden(layer, (x, z), j, &mut after[0]);
                    }
                    g.copy_from_slice(entries(adjoint, j));
                    let last = &states[depth];
                    let readout = self.has_readout().then(|| self.affine::<T>(depth));
                    let Affine { gain, offset } = readout.unwrap_or(Affine { gain: T::ONE, offset: T::ZERO });
                    total += lane_sum(
                        n,
                        #[inline(always)]
                        |i| g[i] * last[i].mul_add(gain, offset),
                    );
                    if let Some(affine) = readout {
                        layers.back(depth, affine, last, &mut g);
                    }
                    for layer in (0..depth).rev() {
                        let (variance, scale) = self.places(layer);
                        let own = (x.column(variance), x.column(scale));
                        let (affine, point) = (self.affine(layer), self.side(z, layer, j));
                        let (inputs, toward) = (&states[layer], &mut toward_x[layer]);
                        with_map!(self.activations[layer], map =>
                            backward(map, affine, own, point, inputs, &mut g, toward, &mut pulls));
                        let pull = lane_sum(
                            n,
                            #[inline(always)]
                            |i| pulls[i],
                        );
                        toward_z[layer][j] = T::from_f64(pull);
                        layers.back(layer, affine, inputs, &mut g);
                    }
                    inner.col_as_slice_mut(j).copy_from_slice(&g);
                }
            },
        );
        let first = self.pull_points(x, vec![T::ZERO; n], &toward_x, &mut layers);
        let second = self.pull_points(z, vec![T::ZERO; m], &toward_z, &mut layers);
        if !adjoints.parameters.is_empty() {
            layers.add_to(self, &mut adjoints.parameters);
        }
        if let Some(target) = &mut adjoints.x {
            self.scatter(x, &first, &inner * z.matrix().subcols(0, count), target);
        }
        if let Some(target) = &mut adjoints.z {
            self.scatter(z, &second, inner.transpose() * x.matrix().subcols(0, count), target);
        }
        total
    }

    /// [`Kernel::pullback_values_at`].
    pub(super) fn pull_own<T: Real>(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let points: Prepared<T> = self.prepare(x);
        let points = points.block(0..points.rows());
        let depth = self.activations.len();
        let mut layers = Layers::new(self.weights.len());
        let mut carry = adjoint.to_vec();
        if self.has_readout() {
            layers.back(depth, self.affine(depth), &self.own_state(points, depth), &mut carry);
        }
        let nothing = vec![vec![T::ZERO; carry.len()]; depth];
        self.pull_points(points, carry, &nothing, &mut layers);
        layers.add_to(self, parameters);
    }

    /// Takes adjoints of variances back through their own recursion: `carry` of those behind the last hidden layer, `toward` of those before each activation.
    /// Returns those of `|x|²`.
    fn pull_points<T: Real>(
        &self,
        points: PreparedBlock<'_, T>,
        mut carry: Vec<T>,
        toward: &[Vec<T>],
        layers: &mut Layers,
    ) -> Vec<T> {
        for layer in (0..self.activations.len()).rev() {
            let inputs = self.own_state(points, layer);
            let variances = points.column(self.places(layer).0);
            dispatch(
                #[inline(always)]
                || {
                    with_map!(self.activations[layer], map =>
                        own_backward(map, variances, &toward[layer], &mut carry));
                    layers.back(layer, self.affine(layer), &inputs, &mut carry);
                },
            );
        }
        carry
    }

    /// What goes into layer `layer` for points with themselves.
    fn own_state<T: Real>(&self, points: PreparedBlock<'_, T>, layer: usize) -> Vec<T> {
        let n = points.rows();
        let Some(before) = layer.checked_sub(1) else {
            return inner::squares(n, self.columns.count(), |d| points.column(d));
        };
        let mut out = vec![T::ZERO; n];
        let (variance, scale) = self.places(before);
        let own = (points.column(variance), points.column(scale));
        dispatch(
            #[inline(always)]
            || with_map!(self.activations[before], map => own_values(map, own, &mut out)),
        );
        out
    }

    /// Adds to the chosen columns of `target` what comes from inner products, and `2 g_i x_i` from squares.
    fn scatter<T: Real>(
        &self,
        points: PreparedBlock<'_, T>,
        squares: &[T],
        products: Mat<T>,
        target: &mut Mat<T>,
    ) {
        let two = T::from_f64(2.0);
        for (d, &c) in self.columns.indices().iter().enumerate() {
            let (x, product) = (points.column(d), products.col_as_slice(d));
            let target = target.col_as_slice_mut(c);
            for i in 0..target.len() {
                target[i] += product[i] + two * squares[i] * x[i];
            }
        }
    }
}
