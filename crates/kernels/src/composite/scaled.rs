//! `k = v · k₁`: a variance in front.

use crate::features::{FeatureError, FeatureRecipe};
use crate::infinite::ClippedCorrelations;
use crate::kernel::{Adjoints, Kernel, Pair, column};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};

/// A kernel times a positive `variance`, which comes first among the parameters.
#[derive(Debug)]
pub struct Scaled<T: Real> {
    label: String,
    variance: f64,
    inner: Box<dyn Kernel<T>>,
}

impl<T: Real> Scaled<T> {
    /// `variance · inner`; the parameter is called `LABEL.variance`.
    pub fn new(label: impl Into<String>, variance: f64, inner: Box<dyn Kernel<T>>) -> Self {
        Self { label: label.into(), variance, inner }
    }

    fn scaled(&self, adjoint: &[T]) -> Vec<T> {
        let variance = T::from_f64(self.variance);
        adjoint.iter().map(|a| variance * *a).collect()
    }

    fn multiply(&self, mut out: MatMut<'_, T>) {
        let variance = T::from_f64(self.variance);
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    for v in column(&mut out, j) {
                        *v *= variance;
                    }
                }
            },
        );
    }
}

impl<T: Real> Parameters for Scaled<T> {
    fn segments(&self) -> Vec<Segment> {
        let mut out = vec![Segment {
            name: format!("{}.variance", self.label),
            shape: vec![1],
            transform: Transform::Log,
        }];
        out.extend(self.inner.segments());
        out
    }
    fn values(&self) -> Vec<f64> {
        let mut out = vec![self.variance];
        out.extend(self.inner.values());
        out
    }
    fn set_values(&mut self, values: &[f64]) {
        let (variance, inner) = values.split_first().expect("a scaled kernel has a variance");
        self.variance = *variance;
        self.inner.set_values(inner);
    }
}

impl<T: Real> Kernel<T> for Scaled<T> {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        self.inner.cross_tile(pair, out.as_mut());
        self.multiply(out);
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        self.inner.prepare(x)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        mut out: MatMut<'_, T>,
    ) {
        self.inner.prepared_tile(x, z, same, out.as_mut());
        self.multiply(out);
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        self.inner.diagonal(x, out);
        let variance = T::from_f64(self.variance);
        out.iter_mut().for_each(|v| *v *= variance);
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        self.inner.values_at(x, out);
        let variance = T::from_f64(self.variance);
        out.iter_mut().for_each(|v| *v *= variance);
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let Some((mine, rest)) = parameters.split_first_mut() else { return };
        let mut own = vec![T::ZERO; adjoint.len()];
        self.inner.values_at(self.inner.prepare(x).block(0..adjoint.len()), &mut own);
        *mine += own.iter().zip(adjoint).map(|(v, a)| (*v * *a).to_f64()).sum::<f64>();
        self.inner.pullback_values_at(x, &self.scaled(adjoint), rest);
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        self.inner.pullback_values_to_points(x, &self.scaled(adjoint), out);
    }

    fn is_noisy(&self) -> bool {
        self.inner.is_noisy()
    }

    /// The inner kernel sees the adjoint as it is; what it adds is multiplied by the variance afterwards.
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (n, m) = (adjoint.nrows(), adjoint.ncols());
        let mut inner =
            Adjoints::zeros(adjoints.request(), self.inner.parameter_count(), n, m, pair.x.ncols());
        let total = self.inner.pullback_tile(pair, adjoint, &mut inner);
        if let Some((mine, rest)) = adjoints.parameters.split_first_mut() {
            *mine += total;
            rest.iter_mut().zip(&inner.parameters).for_each(|(t, p)| *t += self.variance * p);
        }
        let variance = T::from_f64(self.variance);
        for (target, part) in [(&mut adjoints.x, &inner.x), (&mut adjoints.z, &inner.z)] {
            if let (Some(target), Some(part)) = (target, part) {
                for d in 0..part.ncols() {
                    let target = target.col_as_slice_mut(d).iter_mut();
                    target.zip(part.col_as_slice(d)).for_each(|(t, &p)| *t += variance * p);
                }
            }
        }
        self.variance * total
    }

    fn clipped_correlations(&self, x: MatRef<'_, T>, z: MatRef<'_, T>) -> ClippedCorrelations {
        self.inner.clipped_correlations(x, z)
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Ok(FeatureRecipe::Scaled(self.variance, Box::new(self.inner.features()?)))
    }

    fn tile(&self) -> usize {
        self.inner.tile()
    }

    fn begin(&mut self, x: MatRef<'_, T>, targets: &[f64]) {
        self.inner.begin(x, targets);
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(Self { label: self.label.clone(), variance: self.variance, inner: self.inner.clone_box() })
    }
}
