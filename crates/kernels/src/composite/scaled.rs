//! `k = v · k₁`: a variance in front.

use crate::inputs::lane_sum;
use crate::kernel::{Adjoints, Kernel, Pair, column};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
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
        let variance = T::from_f64(self.variance);
        for j in 0..out.ncols() {
            column(&mut out, j).iter_mut().for_each(|v| *v *= variance);
        }
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        self.inner.diagonal(x, out);
        let variance = T::from_f64(self.variance);
        out.iter_mut().for_each(|v| *v *= variance);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) {
        let (n, m) = (adjoint.nrows(), adjoint.ncols());
        if !adjoints.parameters.is_empty() {
            let mut values = Mat::<T>::zeros(n, m);
            self.inner.cross_tile(pair, values.as_mut());
            let total: f64 = (0..m)
                .map(|j| {
                    let (v, g) = (values.col(j), adjoint.col(j));
                    lane_sum(n, |i| v[i] * g[i])
                })
                .sum();
            adjoints.parameters[0] += total;
        }
        let variance = T::from_f64(self.variance);
        let mut scaled = adjoint.to_owned();
        for j in 0..m {
            scaled.as_mut().col_mut(j).iter_mut().for_each(|v| *v *= variance);
        }
        let range = 1..1 + self.inner.parameter_count();
        adjoints.with_parameters(range, |a| {
            // A parameterless kernel must not read an empty list as "parameters not wanted".
            if !(a.parameters.is_empty() && a.x.is_none() && a.z.is_none()) {
                self.inner.pullback_tile(pair, scaled.as_ref(), a);
            }
        });
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(Self { label: self.label.clone(), variance: self.variance, inner: self.inner.clone_box() })
    }
}
