//! `k = (x·z + c)^p`: polynomials of degree p in the inputs.

use crate::inputs::{Columns, Points};
use crate::kernel::{Adjoints, Kernel, Pair, column};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment, Transform};

/// The inhomogeneous polynomial kernel with a learned positive `offset`. Rasmussen and Williams (2006), section 4.2.2.
#[derive(Clone, Debug)]
pub struct Polynomial {
    label: String,
    columns: Columns,
    degree: u32,
    offset: f64,
}

impl Polynomial {
    /// A polynomial kernel of the given degree, at least 1.
    ///
    /// # Panics
    /// When the degree is 0.
    pub fn new(label: impl Into<String>, columns: Columns, degree: u32, offset: f64) -> Self {
        assert!(degree >= 1, "a polynomial kernel has degree 1 or more");
        Self { label: label.into(), columns, degree, offset }
    }

    fn points<T: Real>(&self, x: MatRef<'_, T>) -> Points<T> {
        Points::new(x, &self.columns, |_| T::ONE)
    }

    fn power<T: Real>(base: T, exponent: u32) -> T {
        (0..exponent).fold(T::ONE, |product, _| product * base)
    }
}

impl Parameters for Polynomial {
    fn segments(&self) -> Vec<Segment> {
        vec![Segment { name: format!("{}.offset", self.label), shape: vec![1], transform: Transform::Log }]
    }
    fn values(&self) -> Vec<f64> {
        vec![self.offset]
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), 1, "the polynomial kernel has one parameter");
        self.offset = values[0];
    }
}

impl<T: Real> Kernel<T> for Polynomial {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let (x, z) = (self.points(pair.x), self.points(pair.z));
        matmul(out.as_mut(), Accum::Replace, x.matrix(), z.matrix().transpose(), T::ONE, Par::Seq);
        let offset = T::from_f64(self.offset);
        for j in 0..out.ncols() {
            column(&mut out, j).iter_mut().for_each(|v| *v = Self::power(*v + offset, self.degree));
        }
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let points = self.points(x);
        let offset = T::from_f64(self.offset);
        for (i, o) in out.iter_mut().enumerate() {
            let inner: T = (0..points.count()).map(|d| points.column(d)[i] * points.column(d)[i]).sum();
            *o = Self::power(inner + offset, self.degree);
        }
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) {
        let (x, z) = (self.points(pair.x), self.points(pair.z));
        let offset = T::from_f64(self.offset);
        // The inner product's adjoint: p (x·z + c)^(p-1) times that of the value.
        let mut inner = Mat::<T>::zeros(adjoint.nrows(), adjoint.ncols());
        matmul(inner.as_mut(), Accum::Replace, x.matrix(), z.matrix().transpose(), T::ONE, Par::Seq);
        let degree = T::from_f64(f64::from(self.degree));
        let mut total = 0.0;
        for j in 0..inner.ncols() {
            for i in 0..inner.nrows() {
                let w = adjoint[(i, j)] * degree * Self::power(inner[(i, j)] + offset, self.degree - 1);
                inner[(i, j)] = w;
                total += w.to_f64();
            }
        }
        if let Some(p) = adjoints.parameters.first_mut() {
            *p += total;
        }
        let scatter = |matrix: Mat<T>, target: &mut Mat<T>| {
            for (d, &c) in self.columns.indices().iter().enumerate() {
                target.as_mut().col_mut(c).iter_mut().zip(matrix.col(d).iter()).for_each(|(t, &m)| *t += m);
            }
        };
        if let Some(target) = &mut adjoints.x {
            scatter(&inner * z.matrix(), target);
        }
        if let Some(target) = &mut adjoints.z {
            scatter(inner.transpose() * x.matrix(), target);
        }
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
