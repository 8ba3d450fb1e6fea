//! `k = (x·z + c)^p`: polynomials of degree p in the inputs.

use crate::inputs::{Columns, Points, lane_sum};
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
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
}

/// Entries that are raised together: they stay in the first cache.
const PIECE: usize = 128;

/// `(v + offset)^exponent` in place. The loop over the exponent is outside of that over entries, which the compiler can then vectorise.
#[inline(always)]
fn raise<T: Real>(values: &mut [T], offset: T, exponent: u32) {
    let mut base = [T::ZERO; PIECE];
    for piece in values.chunks_mut(PIECE) {
        let base = &mut base[..piece.len()];
        for i in 0..piece.len() {
            base[i] = piece[i] + offset;
            piece[i] = if exponent == 0 { T::ONE } else { base[i] };
        }
        for _ in 1..exponent {
            for i in 0..piece.len() {
                piece[i] *= base[i];
            }
        }
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
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    raise(column(&mut out, j), offset, self.degree);
                }
            },
        );
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let points = self.points(x);
        let offset = T::from_f64(self.offset);
        for (i, o) in out.iter_mut().enumerate() {
            let inner: T = (0..points.count()).map(|d| points.column(d)[i] * points.column(d)[i]).sum();
            *o = inner;
        }
        raise(out, offset, self.degree);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (self.points(pair.x), self.points(pair.z));
        let offset = T::from_f64(self.offset);
        // The inner product's adjoint: p (x·z + c)^(p-1) times that of the value.
        let mut inner = Mat::<T>::zeros(adjoint.nrows(), adjoint.ncols());
        matmul(inner.as_mut(), Accum::Replace, x.matrix(), z.matrix().transpose(), T::ONE, Par::Seq);
        let degree = T::from_f64(f64::from(self.degree));
        let (mut total, mut toward_offset) = (0.0, 0.0);
        let mut values = vec![T::ZERO; adjoint.nrows()];
        dispatch(
            #[inline(always)]
            || {
                for j in 0..adjoint.ncols() {
                    let inner = inner.col_as_slice_mut(j);
                    let g = &entries(adjoint, j)[..values.len()];
                    values.copy_from_slice(inner);
                    raise(&mut values, offset, self.degree - 1);
                    for i in 0..values.len() {
                        let lower = g[i] * values[i];
                        values[i] = lower * (inner[i] + offset);
                        inner[i] = lower * degree;
                    }
                    total += lane_sum(
                        values.len(),
                        #[inline(always)]
                        |i| values[i],
                    );
                    toward_offset += lane_sum(
                        values.len(),
                        #[inline(always)]
                        |i| inner[i],
                    );
                }
            },
        );
        if let Some(p) = adjoints.parameters.first_mut() {
            *p += toward_offset;
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
        total
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
