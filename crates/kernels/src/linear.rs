//! `k = Σ_d v_d x_d z_d`: Bayesian linear regression.

use crate::PreparedBlock;
use crate::features::{FeatureError, FeatureRecipe};
use crate::inputs::{Columns, Points, lane_sum};
use crate::kernel::{Adjoints, Kernel, Pair};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment, Transform};

/// The linear kernel through the origin. Plain it has no parameters (all `v_d = 1`); with `ard` a prior variance
/// `variance` for the slope of each column. Rasmussen and Williams (2006), section 4.2.2.
#[derive(Clone, Debug)]
pub struct Linear {
    label: String,
    columns: Columns,
    variances: Option<Vec<f64>>,
}

impl Linear {
    /// A linear kernel on `columns`; with variances for each column when `ard`.
    pub fn new(label: impl Into<String>, columns: Columns, ard: bool, variance: f64) -> Self {
        let variances = ard.then(|| vec![variance; columns.count()]);
        Self { label: label.into(), columns, variances }
    }

    fn variance(&self, d: usize) -> f64 {
        self.variances.as_ref().map_or(1.0, |v| v[d])
    }

    fn points<T: Real>(&self, x: MatRef<'_, T>, weighted: bool) -> Points<T> {
        Points::new(x, &self.columns, |d| T::from_f64(if weighted { self.variance(d) } else { 1.0 }))
    }
}

impl Parameters for Linear {
    fn segments(&self) -> Vec<Segment> {
        let segment = |v: &Vec<f64>| Segment {
            name: format!("{}.variance", self.label),
            shape: vec![v.len()],
            transform: Transform::Log,
        };
        self.variances.iter().map(segment).collect()
    }
    fn values(&self) -> Vec<f64> {
        self.variances.clone().unwrap_or_default()
    }
    fn set_values(&mut self, values: &[f64]) {
        match &mut self.variances {
            Some(variances) => variances.copy_from_slice(values),
            None => assert!(values.is_empty(), "the plain linear kernel has no parameters"),
        }
    }
}

impl<T: Real> Kernel<T> for Linear {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        let (x, z) = (self.points(pair.x, true), self.points(pair.z, false));
        matmul(out, Accum::Replace, x.matrix(), z.matrix().transpose(), T::ONE, Par::Seq);
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let points = self.points(x, false);
        out.fill(T::ZERO);
        for d in 0..points.count() {
            let v = T::from_f64(self.variance(d));
            out.iter_mut().zip(points.column(d)).for_each(|(o, &p)| *o += v * p * p);
        }
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        self.diagonal(x.matrix(), out);
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let points: Points<T> = self.points(x, false);
        // None without variances.
        for (d, mine) in parameters.iter_mut().enumerate() {
            let column = points.column(d);
            *mine += lane_sum(adjoint.len(), |i| adjoint[i] * column[i] * column[i]);
        }
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        for (d, &c) in self.columns.indices().iter().enumerate() {
            let twice = T::from_f64(2.0 * self.variance(d));
            let points = x.col(c).iter().zip(adjoint);
            out.col_as_slice_mut(c).iter_mut().zip(points).for_each(|(o, (&x, &a))| *o += twice * a * x);
        }
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (self.points(pair.x, false), self.points(pair.z, false));
        // G Z (n x d) and Gᵀ X (m x d)
        let toward_x: Mat<T> = adjoint * z.matrix();
        let mut total = 0.0;
        for d in 0..x.count() {
            let toward = toward_x.col_as_slice(d);
            let sum = lane_sum(x.column(d).len(), |i| x.column(d)[i] * toward[i]);
            total += self.variance(d) * sum;
            if let Some(mine) = adjoints.parameters.get_mut(d) {
                *mine += sum;
            }
        }
        let weighted = |matrix: Mat<T>, target: &mut Mat<T>| {
            for (d, &c) in self.columns.indices().iter().enumerate() {
                let v = T::from_f64(self.variance(d));
                target
                    .as_mut()
                    .col_mut(c)
                    .iter_mut()
                    .zip(matrix.col(d).iter())
                    .for_each(|(t, &m)| *t += v * m);
            }
        };
        if let Some(target) = &mut adjoints.z {
            weighted(adjoint.transpose() * x.matrix(), target);
        }
        if let Some(target) = &mut adjoints.x {
            weighted(toward_x, target);
        }
        total
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        let variances = (0..self.columns.count()).map(|d| self.variance(d)).collect();
        Ok(FeatureRecipe::Linear { columns: self.columns.indices().to_vec(), variances })
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
