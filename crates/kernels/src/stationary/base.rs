//! What the stationary kernels share: scaling, distances, and one fused loop for values and one for pullbacks.

use crate::inputs::{Columns, Points, add_column, lane_sum};
use crate::kernel::{Adjoints, Kernel, Pair, column};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};
use std::fmt::Debug;

/// Dimensions up to which squared distances are summed directly. Beyond it they come from a matrix product, which
/// does more flops a cycle but cancels digits for close points.
const DIRECT: usize = 32;

/// A stationary kernel's formula, in the squared scaled distance.
pub trait Form: Clone + Debug + Send + Sync + 'static {
    /// `k(q)`; 1 at 0.
    fn value<T: Real>(&self, q2: T) -> T;

    /// `c(q) = -2 dk/d(q²)`.
    fn slope<T: Real>(&self, q2: T) -> T;

    /// Name and value of a further positive parameter, if the form has one.
    fn shape(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// Replaces that parameter.
    fn set_shape(&mut self, _value: f64) {}

    /// `∂k/∂shape`.
    fn shape_slope<T: Real>(&self, _q2: T) -> T {
        T::ZERO
    }
}

/// A stationary kernel with one lengthscale, or one for each column (automatic relevance determination).
#[derive(Clone, Debug)]
pub struct Stationary<F> {
    label: String,
    form: F,
    columns: Columns,
    lengthscales: Vec<f64>,
}

impl<F: Form> Stationary<F> {
    /// A kernel of the given form on `columns`; `label` names its parameters; one lengthscale each when `ard`.
    pub fn new(label: impl Into<String>, form: F, columns: Columns, ard: bool, lengthscale: f64) -> Self {
        let count = if ard { columns.count() } else { 1 };
        Self { label: label.into(), form, columns, lengthscales: vec![lengthscale; count] }
    }

    fn lengthscale(&self, d: usize) -> f64 {
        self.lengthscales[if self.lengthscales.len() == 1 { 0 } else { d }]
    }

    fn scaled<T: Real>(&self, x: MatRef<'_, T>) -> Points<T> {
        Points::new(x, &self.columns, |d| T::from_f64(1.0 / self.lengthscale(d)))
    }

    /// `out[i, j] = q²`, ready for the profile.
    fn distances_by_product<T: Real>(
        &self,
        x: &Points<T>,
        z: &Points<T>,
        pair: Pair<'_, T>,
        mut out: MatMut<'_, T>,
    ) {
        let squares = |p: &Points<T>, rows: usize| -> Vec<T> {
            (0..rows).map(|i| (0..p.count()).map(|d| p.column(d)[i] * p.column(d)[i]).sum()).collect()
        };
        let (x2, z2) = (squares(x, out.nrows()), squares(z, out.ncols()));
        matmul(out.as_mut(), Accum::Replace, x.matrix(), z.matrix().transpose(), T::from_f64(-2.0), Par::Seq);
        for (j, &b) in z2.iter().enumerate() {
            for (v, &a) in column(&mut out, j).iter_mut().zip(&x2) {
                *v = (*v + (a + b)).max(T::ZERO);
            }
        }
        for (i, j) in pair.identical() {
            out[(i, j)] = T::ZERO;
        }
    }
}

/// `q2[i] = Σ_d (x_d[i] - z_d)²` for one point z: four dimensions a pass, so that partial sums stay in registers.
#[inline(always)]
fn direct_distances<T: Real>(x: &Points<T>, z: &Points<T>, j: usize, q2: &mut [T]) {
    #[inline(always)]
    fn square<T: Real>(a: T, b: T, sum: T) -> T {
        let difference = a - b;
        difference.mul_add(difference, sum)
    }
    q2.fill(T::ZERO);
    let n = q2.len();
    let mut d = 0;
    while d + 4 <= x.count() {
        let (a, b, c, e) =
            (&x.column(d)[..n], &x.column(d + 1)[..n], &x.column(d + 2)[..n], &x.column(d + 3)[..n]);
        let (za, zb, zc, ze) = (z.column(d)[j], z.column(d + 1)[j], z.column(d + 2)[j], z.column(d + 3)[j]);
        for i in 0..n {
            q2[i] = square(e[i], ze, square(c[i], zc, square(b[i], zb, square(a[i], za, q2[i]))));
        }
        d += 4;
    }
    while d < x.count() {
        let (a, za) = (&x.column(d)[..n], z.column(d)[j]);
        for i in 0..n {
            q2[i] = square(a[i], za, q2[i]);
        }
        d += 1;
    }
}

impl<F: Form> Parameters for Stationary<F> {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, shape| Segment {
            name: format!("{}.{name}", self.label),
            shape,
            transform: Transform::Log,
        };
        let mut out = vec![segment("lengthscale", vec![self.lengthscales.len()])];
        out.extend(self.form.shape().map(|(name, _)| segment(name, vec![1])));
        out
    }

    fn values(&self) -> Vec<f64> {
        let mut out = self.lengthscales.clone();
        out.extend(self.form.shape().map(|(_, value)| value));
        out
    }

    fn set_values(&mut self, values: &[f64]) {
        let (lengthscales, shape) = values.split_at(self.lengthscales.len());
        self.lengthscales.copy_from_slice(lengthscales);
        assert_eq!(shape.len(), usize::from(self.form.shape().is_some()), "one number for each parameter");
        if let [value] = shape {
            self.form.set_shape(*value);
        }
    }
}

impl<T: Real, F: Form> Kernel<T> for Stationary<F> {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let (x, z) = (self.scaled(pair.x), self.scaled(pair.z));
        let by_product = x.count() > DIRECT;
        if by_product {
            self.distances_by_product(&x, &z, pair, out.as_mut());
        }
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    let q2 = column(&mut out, j);
                    if !by_product {
                        direct_distances(&x, &z, j, q2);
                    }
                    q2.iter_mut().for_each(
                        #[inline(always)]
                        |v| *v = self.form.value(*v),
                    );
                }
            },
        );
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) {
        let request = adjoints.request();
        let (x, z) = (self.scaled(pair.x), self.scaled(pair.z));
        let (n, m, dimension) = (adjoint.nrows(), adjoint.ncols(), x.count());
        let isotropic = self.lengthscales.len() == 1;
        // Σ_ij w_ij (x_d - z_d)² in scaled units, for each d or (isotropic) all together; w = adjoint · c.
        let mut stretch = vec![0.0; self.lengthscales.len()];
        let mut shape = 0.0;
        let has_shape = self.form.shape().is_some();
        let mut toward_x = vec![T::ZERO; if request.x { n * dimension } else { 0 }];
        let mut toward_z = vec![T::ZERO; if request.z { m * dimension } else { 0 }];
        let mut buffers = (vec![T::ZERO; n], vec![T::ZERO; n]);
        let mut by_product = (dimension > DIRECT).then(|| faer::Mat::zeros(n, m));
        if let Some(distances) = &mut by_product {
            self.distances_by_product(&x, &z, pair, distances.as_mut());
        }
        dispatch(
            #[inline(always)]
            || {
                let (q2, w) = (&mut buffers.0[..n], &mut buffers.1[..n]);
                for j in 0..m {
                    match &mut by_product {
                        Some(distances) => q2.copy_from_slice(column(&mut distances.as_mut(), j)),
                        None => direct_distances(&x, &z, j, q2),
                    }
                    let g = adjoint.col(j);
                    for i in 0..n {
                        w[i] = g[i];
                    }
                    if has_shape && request.parameters {
                        shape += lane_sum(
                            n,
                            #[inline(always)]
                            |i| w[i] * self.form.shape_slope(q2[i]),
                        );
                    }
                    for i in 0..n {
                        w[i] *= self.form.slope(q2[i]);
                    }
                    if request.parameters && isotropic {
                        stretch[0] += lane_sum(
                            n,
                            #[inline(always)]
                            |i| w[i] * q2[i],
                        );
                    }
                    let per_dimension = request.x || request.z || (request.parameters && !isotropic);
                    for d in 0..if per_dimension { dimension } else { 0 } {
                        let (xd, zd) = (&x.column(d)[..n], z.column(d)[j]);
                        if request.parameters && !isotropic {
                            stretch[d] += lane_sum(
                                n,
                                #[inline(always)]
                                |i| {
                                    let difference = xd[i] - zd;
                                    w[i] * difference * difference
                                },
                            );
                        }
                        if request.x {
                            let target = &mut toward_x[d * n..(d + 1) * n];
                            for i in 0..n {
                                target[i] -= w[i] * (xd[i] - zd);
                            }
                        }
                        if request.z {
                            toward_z[d * m + j] = T::from_f64(lane_sum(
                                n,
                                #[inline(always)]
                                |i| w[i] * (xd[i] - zd),
                            ));
                        }
                    }
                }
            },
        );
        if request.parameters {
            for (d, sum) in stretch.iter().enumerate() {
                adjoints.parameters[d] += sum / self.lengthscales[d];
            }
            if has_shape {
                adjoints.parameters[stretch.len()] += shape;
            }
        }
        for (target, values, rows) in
            [(&mut adjoints.x, &mut toward_x, n), (&mut adjoints.z, &mut toward_z, m)]
        {
            if let Some(target) = target {
                for (d, &c) in self.columns.indices().iter().enumerate() {
                    let scale = T::from_f64(1.0 / self.lengthscale(d));
                    let values = &mut values[d * rows..(d + 1) * rows];
                    values.iter_mut().for_each(|v| *v *= scale);
                    add_column(target, c, values);
                }
            }
        }
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
