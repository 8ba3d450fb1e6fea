//! Fully connected layers behind a first covariance: behind inner products of rows, or behind the mean over positions of images.
//!
//! ```text
//! K <- w_l² K + b_l²,   K <- E[φ_l(u) φ_l(v)]       for each hidden layer l
//! K <- w² K + b²                                    the read-out layer
//! ```
//!
//! A tile has the covariances of its pairs of points, a column at a time; the variances of both points before each activation belong to the points, and stand in
//! columns of what is prepared of them.

use super::Activation;
use super::activation::{DualMap, ErrorFunction, Rectifier, Side, SineWave};
use super::scales::{Affine, Scales};
use crate::PreparedBlock;
use faer::Mat;
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use std::ops::Range;

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

/// Fully connected layers: hidden ones with an activation each, and perhaps a read-out layer.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub(super) activations: Vec<Activation>,
    pub(super) readout: bool,
    /// The number of its first layer among those of the kernel.
    pub(super) first_layer: usize,
    /// What stands in front of the first layer's covariances.
    pub(super) share: f64,
    /// Where its columns of prepared points begin.
    pub(super) first_column: usize,
}

impl Stack {
    /// Hidden layers.
    pub(super) fn depth(&self) -> usize {
        self.activations.len()
    }

    /// Layers, with the read-out layer.
    pub(super) fn layers(&self) -> usize {
        self.depth() + usize::from(self.readout)
    }

    /// Columns of prepared points that it has: for each hidden layer, the variance before its activation and what the dual map makes of that; `k(x, x)`.
    pub(super) fn columns(&self) -> usize {
        2 * self.depth() + 1
    }

    /// What stands in front of a layer's covariances.
    pub(super) fn share(&self, layer: usize) -> f64 {
        if layer == 0 { self.share } else { 1.0 }
    }

    pub(super) fn affine<T: Real>(&self, scales: &Scales, layer: usize) -> Affine<T> {
        scales.affine(self.first_layer + layer, self.share(layer))
    }

    /// Columns of prepared points with variances before hidden layer l's activation and their scales.
    pub(super) fn places(&self, layer: usize) -> (usize, usize) {
        let first = self.first_column + 2 * layer;
        (first, first + 1)
    }

    /// `k(x_i, x_i)` of prepared points.
    pub(super) fn own_values<'a, T: Real>(&self, points: PreparedBlock<'a, T>) -> &'a [T] {
        points.column(self.first_column + 2 * self.depth())
    }

    /// Point j as hidden layer l sees it.
    #[inline(always)]
    pub(super) fn side<T: Real>(&self, points: PreparedBlock<'_, T>, layer: usize, j: usize) -> Side<T> {
        let (variance, scale) = self.places(layer);
        Side { variance: points.column(variance)[j], scale: points.column(scale)[j] }
    }

    /// Some points as hidden layer l sees them: variances, scales.
    #[inline(always)]
    pub(super) fn sides<'a, T: Real>(
        &self,
        points: PreparedBlock<'a, T>,
        layer: usize,
        rows: &Range<usize>,
    ) -> (&'a [T], &'a [T]) {
        let (variance, scale) = self.places(layer);
        (&points.column(variance)[rows.clone()], &points.column(scale)[rows.clone()])
    }

    /// One hidden layer for some rows of a tile's column j, `state <- E[φ(u_i) φ(v)]`.
    #[inline(always)]
    pub(super) fn hidden<T: Real>(
        &self,
        scales: &Scales,
        layer: usize,
        (x, z): (PreparedBlock<'_, T>, PreparedBlock<'_, T>),
        (rows, j): (&Range<usize>, usize),
        state: &mut [T],
    ) {
        let (own, affine, point) =
            (self.sides(x, layer, rows), self.affine(scales, layer), self.side(z, layer, j));
        with_map!(self.activations[layer], map => forward(map, affine, own, point, state));
    }

    /// All layers for some rows of a tile's column j: `state` from the first covariance to the kernel's value.
    #[inline(always)]
    pub(super) fn column<T: Real>(
        &self,
        scales: &Scales,
        (x, z): (PreparedBlock<'_, T>, PreparedBlock<'_, T>),
        (rows, j): (&Range<usize>, usize),
        state: &mut [T],
    ) {
        for layer in 0..self.depth() {
            self.hidden(scales, layer, (x, z), (rows, j), state);
        }
        if self.readout {
            read_out(self.affine(scales, self.depth()), state);
        }
    }

    /// Writes its columns of prepared points, where `state` is the first covariance of each with itself.
    pub(super) fn prepare<T: Real>(&self, scales: &Scales, mut state: Vec<T>, own: &mut Mat<T>) {
        let (n, depth) = (state.len(), self.depth());
        let (mut variances, mut roots) = (vec![T::ZERO; n], vec![T::ZERO; n]);
        for layer in 0..depth {
            dispatch(
                #[inline(always)]
                || {
                    let affine = self.affine(scales, layer);
                    with_map!(self.activations[layer], map => own_forward(map, affine, &mut state, &mut variances, &mut roots));
                },
            );
            let (variance, scale) = self.places(layer);
            own.col_as_slice_mut(variance).copy_from_slice(&variances);
            own.col_as_slice_mut(scale).copy_from_slice(&roots);
        }
        if self.readout {
            dispatch(
                #[inline(always)]
                || read_out(self.affine(scales, depth), &mut state),
            );
        }
        own.col_as_slice_mut(self.first_column + 2 * depth).copy_from_slice(&state);
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
