//! `k(x, z) = k₁(w(x), w(z))`: a kernel of warped columns.

use crate::additive::{Anova, Decomposed};
use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::kernel::{Adjoints, Component, Kernel, Pair};
use crate::warp::Warp;
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment};
use std::sync::Arc;

/// A kernel behind a [`Warp`], whose skews and tails come first among the parameters. Beside the kernel's cost some hyperbolic functions for each row and column.
#[derive(Debug)]
pub struct Warped<T: Real> {
    label: String,
    warp: Warp,
    inner: Box<dyn Kernel<T>>,
}

impl<T: Real> Warped<T> {
    /// `inner` of warped columns; the parameters are called `LABEL.skew` and `LABEL.tail`.
    pub fn new(label: impl Into<String>, warp: Warp, inner: Box<dyn Kernel<T>>) -> Self {
        Self { label: label.into(), warp, inner }
    }

    /// The curves.
    pub fn warp(&self) -> &Warp {
        &self.warp
    }

    fn behind(&self, inner: Box<dyn Kernel<T>>) -> Box<dyn Kernel<T>> {
        Box::new(Self { label: self.label.clone(), warp: self.warp.clone(), inner })
    }

    fn component(&self, component: Component<T>) -> Component<T> {
        let Component { kernel, parts, part_of, .. } = component;
        let parts = parts.into_iter().map(|part| self.component(part)).collect();
        let part_of = part_of.map(|inner| -> Arc<dyn Decomposed<T>> {
            Arc::new(WarpedEffects { warp: self.warp.clone(), inner })
        });
        Component { kernel: self.behind(kernel), parts, part_of, ..component }
    }
}

/// Effects of columns, each of which goes through its curve first.
#[derive(Debug)]
struct WarpedEffects<T: Real> {
    warp: Warp,
    inner: Arc<dyn Decomposed<T>>,
}

impl<T: Real> Decomposed<T> for WarpedEffects<T> {
    fn anova(&self, x: MatRef<'_, T>, z: MatRef<'_, T>, weights: &[f64], sets: &[Vec<usize>]) -> Anova {
        let (x, z) = (self.warp.apply(x), self.warp.apply(z));
        self.inner.anova(x.as_ref(), z.as_ref(), weights, sets)
    }
}

impl<T: Real> Parameters for Warped<T> {
    fn segments(&self) -> Vec<Segment> {
        let mut out = self.warp.segments(&self.label);
        out.extend(self.inner.segments());
        out
    }
    fn values(&self) -> Vec<f64> {
        let mut out = self.warp.values();
        out.extend(self.inner.values());
        out
    }
    fn set_values(&mut self, values: &[f64]) {
        let (own, inner) = values.split_at(self.warp.parameter_count());
        self.warp.set_values(own);
        self.inner.set_values(inner);
    }
}

impl<T: Real> Kernel<T> for Warped<T> {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z) = (self.warp.apply(pair.x), self.warp.apply(pair.z));
        self.inner.cross_tile(Pair { x: x.as_ref(), z: z.as_ref(), same: pair.same }, out);
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        self.inner.prepare(self.warp.apply(x).as_ref())
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        self.inner.prepared_tile(x, z, same, out);
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        self.inner.diagonal(self.warp.apply(x).as_ref(), out);
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        self.inner.values_at(x, out);
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let warped = self.warp.apply(x);
        let (own, inner) = parameters.split_at_mut(self.warp.parameter_count().min(parameters.len()));
        self.inner.pullback_values_at(warped.as_ref(), adjoint, inner);
        let mut toward = Mat::zeros(x.nrows(), x.ncols());
        self.inner.pullback_values_to_points(warped.as_ref(), adjoint, &mut toward);
        self.warp.pull(x, &mut toward, own);
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        let mut toward = Mat::zeros(x.nrows(), x.ncols());
        self.inner.pullback_values_to_points(self.warp.apply(x).as_ref(), adjoint, &mut toward);
        self.warp.pull(x, &mut toward, &mut []);
        *out += toward;
    }

    fn is_noisy(&self) -> bool {
        self.inner.is_noisy()
    }

    /// Skews and tails are learned through the points, so adjoints of both are asked for wherever parameters are.
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (self.warp.apply(pair.x), self.warp.apply(pair.z));
        let asked = adjoints.request();
        let request = crate::Request {
            parameters: asked.parameters,
            x: asked.x || asked.parameters,
            z: asked.z || asked.parameters,
        };
        let (n, m, d) = (adjoint.nrows(), adjoint.ncols(), pair.x.ncols());
        let mut inner = Adjoints::zeros(request, self.inner.parameter_count(), n, m, d);
        let warped = Pair { x: x.as_ref(), z: z.as_ref(), same: pair.same };
        let total = self.inner.pullback_tile(warped, adjoint, &mut inner);
        let own = self.warp.parameter_count().min(adjoints.parameters.len());
        let (own, rest) = adjoints.parameters.split_at_mut(own);
        rest.iter_mut().zip(&inner.parameters).for_each(|(t, p)| *t += p);
        for (points, toward, target) in
            [(pair.x, inner.x, &mut adjoints.x), (pair.z, inner.z, &mut adjoints.z)]
        {
            if let Some(mut toward) = toward {
                self.warp.pull(points, &mut toward, own);
                if let Some(target) = target {
                    *target += toward;
                }
            }
        }
        total
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        self.inner.clipped_correlations(self.warp.apply(x).as_ref(), self.warp.apply(z).as_ref())
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Ok(FeatureRecipe::Warped(self.warp.clone(), Box::new(self.inner.features()?)))
    }

    fn components(&self) -> Vec<Component<T>> {
        self.inner.components().into_iter().map(|component| self.component(component)).collect()
    }

    fn tile(&self) -> usize {
        self.inner.tile()
    }

    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        self.inner.begin(self.warp.apply(x).as_ref(), targets);
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        self.behind(self.inner.clone_box())
    }
}
