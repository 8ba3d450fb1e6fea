//! The way back through fully connected layers: from adjoints of a tile to parameters and points.
//!
//! For one column of a tile the covariances between its layers are kept, `(depth + 1) n` numbers. On the way back each layer leaves what its adjoint
//! `g` says about its own gain `w²` and offset `b²` (`Σ g K` and `Σ g`), and about the variances of both points, which are summed over the tile; these then go
//! back through the variances' own recursion, once for each point. What arrives at the first covariance is, for inner products, `G`, so that x gets `G Z` and z gets `Gᵀ X`.

use super::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use super::scales::{Affine, LayerAdjoints, Scales};
use super::stack::{Stack, with_map};
use super::{Activation, InfiniteNetwork, inner};
use crate::inputs::lane_sum;
use crate::kernel::{Adjoints, Kernel, Pair, entries};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use std::ops::Range;

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

/// One tile on its way back through a stack: room for a piece of a column, and what is summed over the tile.
pub(super) struct StackPullback<'a, T: Real> {
    stack: &'a Stack,
    scales: &'a Scales,
    x: PreparedBlock<'a, T>,
    z: PreparedBlock<'a, T>,
    /// Covariances between the layers.
    states: Vec<Vec<T>>,
    g: Vec<T>,
    pulls: Vec<T>,
    /// Adjoints of the variances before each activation.
    toward_x: Vec<Vec<T>>,
    toward_z: Vec<Vec<T>>,
    pub(super) layers: LayerAdjoints,
    /// `Σ_ij adjoint_ij k(x_i, z_j)`.
    pub(super) total: f64,
}

impl<'a, T: Real> StackPullback<'a, T> {
    /// For columns that come in pieces of at most `length`.
    pub(super) fn new(
        (stack, scales): (&'a Stack, &'a Scales),
        (x, z): (PreparedBlock<'a, T>, PreparedBlock<'a, T>),
        length: usize,
    ) -> Self {
        let room = |count: usize, length: usize| vec![vec![T::ZERO; length]; count];
        Self {
            stack,
            scales,
            x,
            z,
            states: room(stack.depth() + 1, length),
            g: vec![T::ZERO; length],
            pulls: vec![T::ZERO; length],
            toward_x: room(stack.depth(), x.rows()),
            toward_z: room(stack.depth(), z.rows()),
            layers: LayerAdjoints::new(scales.layers()),
            total: 0.0,
        }
    }

    /// Some rows of column j: `inner`, their first covariances, become the adjoints of these.
    #[inline(always)]
    pub(super) fn column(&mut self, rows: &Range<usize>, j: usize, adjoint: &[T], inner: &mut [T]) {
        let (stack, scales, x, z) = (self.stack, self.scales, self.x, self.z);
        let (n, depth) = (inner.len(), stack.depth());
        self.states[0][..n].copy_from_slice(inner);
        for layer in 0..depth {
            let (before, after) = self.states.split_at_mut(layer + 1);
            after[0][..n].copy_from_slice(&before[layer][..n]);
            stack.hidden(scales, layer, (x, z), (rows, j), &mut after[0][..n]);
        }
        let (g, pulls, layers) = (&mut self.g[..n], &mut self.pulls[..n], &mut self.layers);
        g.copy_from_slice(&adjoint[..n]);
        let last = &self.states[depth][..n];
        let readout = stack.readout.then(|| stack.affine::<T>(scales, depth));
        let Affine { gain, offset } = readout.unwrap_or(Affine::NONE);
        self.total += lane_sum(
            n,
            #[inline(always)]
            |i| g[i] * last[i].mul_add(gain, offset),
        );
        if let Some(affine) = readout {
            layers.back(stack.first_layer + depth, affine, last, g);
        }
        for layer in (0..depth).rev() {
            let own = stack.sides(x, layer, rows);
            let (affine, point) = (stack.affine(scales, layer), stack.side(z, layer, j));
            let (inputs, toward) = (&self.states[layer][..n], &mut self.toward_x[layer][rows.clone()]);
            with_map!(stack.activations[layer], map =>
                backward(map, affine, own, point, inputs, g, toward, pulls));
            let pull = lane_sum(
                n,
                #[inline(always)]
                |i| pulls[i],
            );
            self.toward_z[layer][j] += T::from_f64(pull);
            layers.back(stack.first_layer + layer, affine, inputs, g);
        }
        inner.copy_from_slice(g);
    }

    /// Takes what all columns left at the points' variances to their first covariances with themselves, given as `first`: adjoints of those of x and of z.
    pub(super) fn points(&mut self, first: [&[T]; 2]) -> [Vec<T>; 2] {
        let (stack, scales, layers) = (self.stack, self.scales, &mut self.layers);
        let mut back = |points: PreparedBlock<'_, T>, first: &[T], toward: &[Vec<T>]| {
            pull_points((stack, scales), points, (first, vec![T::ZERO; first.len()]), toward, layers)
        };
        [back(self.x, first[0], &self.toward_x), back(self.z, first[1], &self.toward_z)]
    }
}

/// Takes adjoints of variances back through their own recursion: `carry` of those behind the last hidden layer, `toward` of those before each activation.
/// Returns those of the first covariance of each point with itself, which is `first`.
fn pull_points<T: Real>(
    (stack, scales): (&Stack, &Scales),
    points: PreparedBlock<'_, T>,
    (first, mut carry): (&[T], Vec<T>),
    toward: &[Vec<T>],
    layers: &mut LayerAdjoints,
) -> Vec<T> {
    for layer in (0..stack.depth()).rev() {
        let inputs = own_state(stack, points, first, layer);
        let variances = points.column(stack.places(layer).0);
        dispatch(
            #[inline(always)]
            || {
                with_map!(stack.activations[layer], map =>
                    own_backward(map, variances, &toward[layer], &mut carry));
                layers.back(stack.first_layer + layer, stack.affine(scales, layer), &inputs, &mut carry);
            },
        );
    }
    carry
}

/// What goes into layer `layer` for points with themselves.
fn own_state<T: Real>(stack: &Stack, points: PreparedBlock<'_, T>, first: &[T], layer: usize) -> Vec<T> {
    let Some(before) = layer.checked_sub(1) else { return first.to_vec() };
    let mut out = vec![T::ZERO; points.rows()];
    let own = stack.sides(points, before, &(0..points.rows()));
    dispatch(
        #[inline(always)]
        || with_map!(stack.activations[before], map => own_values(map, own, &mut out)),
    );
    out
}

/// Adjoints of the first covariance of each point with itself, which is `first`, from those of `k(x, x)`.
pub(super) fn pull_values<T: Real>(
    (stack, scales): (&Stack, &Scales),
    points: PreparedBlock<'_, T>,
    first: &[T],
    adjoint: &[T],
    layers: &mut LayerAdjoints,
) -> Vec<T> {
    let (depth, mut carry) = (stack.depth(), adjoint.to_vec());
    if stack.readout {
        let (affine, inputs) = (stack.affine(scales, depth), own_state(stack, points, first, depth));
        layers.back(stack.first_layer + depth, affine, &inputs, &mut carry);
    }
    let nothing = vec![vec![T::ZERO; carry.len()]; depth];
    pull_points((stack, scales), points, (first, carry), &nothing, layers)
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
        let (rows, m, count) = (0..x.rows(), z.rows(), self.columns.count());
        // Inner products; column by column their adjoints take their place.
        let mut inner = Mat::<T>::zeros(rows.len(), m);
        inner::fill(count, x, z, pair.identical(), inner.as_mut());
        let mut back = StackPullback::new((&self.stack, &self.scales), (x, z), rows.len());
        dispatch(
            #[inline(always)]
            || {
                for j in 0..m {
                    back.column(&rows, j, entries(adjoint, j), inner.col_as_slice_mut(j));
                }
            },
        );
        let [first, second] = back.points([&self.squares(x), &self.squares(z)]);
        if !adjoints.parameters.is_empty() {
            self.add_layers(&back.layers, &mut adjoints.parameters);
        }
        if let Some(target) = &mut adjoints.x {
            self.scatter(x, &first, &inner * z.matrix().subcols(0, count), target);
        }
        if let Some(target) = &mut adjoints.z {
            self.scatter(z, &second, inner.transpose() * x.matrix().subcols(0, count), target);
        }
        back.total
    }

    /// [`Kernel::pullback_values_at`].
    pub(super) fn pull_own<T: Real>(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let points: Prepared<T> = self.prepare(x);
        let points = points.block(0..points.rows());
        let mut layers = LayerAdjoints::new(self.scales.layers());
        pull_values((&self.stack, &self.scales), points, &self.squares(points), adjoint, &mut layers);
        self.add_layers(&layers, parameters);
    }

    fn add_layers(&self, layers: &LayerAdjoints, parameters: &mut [f64]) {
        layers.add_to(&self.scales, |layer| self.stack.share(layer), parameters);
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
