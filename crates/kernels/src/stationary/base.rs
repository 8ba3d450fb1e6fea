//! What the stationary kernels share: scaling, distances, and one loop for values and one for pullbacks, in which forms are asked column by column.

use super::distances::{DIRECT, Distances, limit, product_buffer, sum_squares};
use crate::features::{FeatureError, FeatureRecipe, SpectralLaw, Spectrum};
use crate::inputs::{Columns, LANES, add_column, add_lanes, fold, lanes, moment_lanes};
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use crate::{Prepared, PreparedBlock};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};
use std::fmt::Debug;

/// A stationary kernel's formula, in the squared scaled distance.
///
/// The distance is 0 or more and at most 1e37 (f32) or 1e300 (f64), or NaN, which a form must hand on.
pub trait Form: Clone + Debug + Send + Sync + 'static {
    /// `k(q)`; 1 at 0.
    fn value<T: Real>(&self, q2: T) -> T;

    /// The value with its derivatives, which share most of the work.
    fn parts<T: Real>(&self, q2: T) -> Parts<T>;

    /// The law of its frequencies at lengthscale 1.
    fn spectral_law(&self) -> SpectralLaw;

    /// Name and value of a further positive parameter, if the form has one.
    fn shape(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// Replaces that parameter.
    fn set_shape(&mut self, _value: f64) {}
}

/// A form at one distance.
#[derive(Clone, Copy, Debug)]
pub struct Parts<T> {
    /// `k(q)`.
    pub value: T,
    /// `c(q) = -2 dk/d(q²)`.
    pub slope: T,
    /// `∂k/∂shape`; 0 for forms without a further parameter.
    pub shape_slope: T,
}

/// A form at many distances at once. Kernels ask in their loops, which are compiled once for all forms.
pub(crate) trait FormLoops<T>: Sync {
    /// Turns squared distances into values.
    fn values(&self, q2: &mut [T]);

    /// Slope, value and shape's slope at each distance, times `factors`.
    fn parts_times(&self, q2: &[T], factors: &[T], out: [&mut [T]; 3]);
}

impl<T: Real, F: Form> FormLoops<T> for F {
    fn values(&self, q2: &mut [T]) {
        dispatch(
            #[inline(always)]
            || {
                for v in q2 {
                    *v = self.value(*v);
                }
            },
        );
    }

    fn parts_times(&self, q2: &[T], factors: &[T], out: [&mut [T]; 3]) {
        let n = q2.len();
        let [slopes, values, shapes] = out;
        let (factors, slopes, values, shapes) =
            (&factors[..n], &mut slopes[..n], &mut values[..n], &mut shapes[..n]);
        dispatch(
            #[inline(always)]
            || {
                for i in 0..n {
                    let parts = self.parts(q2[i]);
                    slopes[i] = factors[i] * parts.slope;
                    values[i] = factors[i] * parts.value;
                    shapes[i] = factors[i] * parts.shape_slope;
                }
            },
        );
    }
}

/// A stationary kernel with one lengthscale, or one for each column (automatic relevance determination).
#[derive(Clone, Debug)]
pub struct Stationary<F> {
    label: String,
    form: F,
    scales: Scales,
}

/// All of a stationary kernel but its form.
#[derive(Clone, Debug)]
struct Scales {
    columns: Columns,
    lengthscales: Vec<f64>,
}

impl<F: Form> Stationary<F> {
    /// A kernel of the given form on `columns`; `label` names its parameters; one lengthscale each when `ard`.
    pub fn new(label: impl Into<String>, form: F, columns: Columns, ard: bool, lengthscale: f64) -> Self {
        let count = if ard { columns.count() } else { 1 };
        Self { label: label.into(), form, scales: Scales { columns, lengthscales: vec![lengthscale; count] } }
    }
}

impl Scales {
    fn lengthscale(&self, d: usize) -> f64 {
        self.lengthscales[if self.lengthscales.len() == 1 { 0 } else { d }]
    }

    fn distances<'a, T: Real>(&self, pair: Pair<'a, T>) -> Distances<'a, T> {
        Distances::new(pair, &self.columns, |d| T::from_f64(1.0 / self.lengthscale(d)))
    }

    fn cross_tile<T: Real>(&self, form: &dyn FormLoops<T>, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let distances = self.distances(pair);
        let by_product = distances.by_product();
        if by_product {
            distances.fill_by_product(out.as_mut());
        }
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    let q2 = column(&mut out, j);
                    distances.finish_column(j, q2, by_product);
                    form.values(q2);
                }
            },
        );
    }

    fn prepare<T: Real>(&self, x: MatRef<'_, T>) -> Prepared<T> {
        if self.columns.count() > DIRECT {
            return Prepared::plain(x);
        }
        let mut scaled = Mat::zeros(x.nrows(), self.columns.count());
        for (d, &c) in self.columns.indices().iter().enumerate() {
            let factor = T::from_f64(1.0 / self.lengthscale(d));
            scaled.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter()).for_each(|(s, &v)| *s = v * factor);
        }
        Prepared::own(scaled)
    }

    fn pullback_tile<T: Real>(
        &self,
        (form, has_shape): (&dyn FormLoops<T>, bool),
        pair: Pair<'_, T>,
        adjoint: MatRef<'_, T>,
        adjoints: &mut Adjoints<T>,
    ) -> f64 {
        let request = adjoints.request();
        let distances = self.distances(pair);
        let (x, z) = (&distances.x, &distances.z);
        let (n, m, dimension) = (adjoint.nrows(), adjoint.ncols(), x.count());
        let isotropic = self.lengthscales.len() == 1;
        // Sums over the whole tile are kept in lanes until its end: of adjoint times value, of adjoint times the shape's slope, and (in scaled units, with w the adjoint times c) of w_ij (x_d - z_d)², for each d
        // or (isotropic) all together.
        let (mut total, mut shape) = ([0.0; LANES], [0.0; LANES]);
        let mut stretch = vec![[0.0; LANES]; self.lengthscales.len()];
        let by_dimension = request.parameters && !isotropic;
        // Summed up after all dimensions of a point: beside their loop, the compiler cuts that into the short vectors of the sum.
        let mut pulls = vec![[T::ZERO; LANES]; dimension];
        let mut toward_x = vec![T::ZERO; if request.x { n * dimension } else { 0 }];
        let mut toward_z = vec![T::ZERO; if request.z { m * dimension } else { 0 }];
        let mut buffers = [vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]];
        let products = product_buffer(&distances, n, m);
        dispatch(
            #[inline(always)]
            || {
                let [q2, w, values, shapes] = &mut buffers;
                let (q2, w, values, shapes) = (&mut q2[..n], &mut w[..n], &mut values[..n], &mut shapes[..n]);
                for j in 0..m {
                    if let Some(products) = &products {
                        q2.copy_from_slice(products.col_as_slice(j));
                    }
                    distances.finish_column(j, q2, products.is_some());
                    let g = &entries(adjoint, j)[..n];
                    form.parts_times(q2, g, [&mut *w, &mut *values, &mut *shapes]);
                    add_to(
                        &mut total,
                        n,
                        #[inline(always)]
                        |i| values[i],
                    );
                    if has_shape && request.parameters {
                        add_to(
                            &mut shape,
                            n,
                            #[inline(always)]
                            |i| shapes[i],
                        );
                    }
                    if request.parameters && isotropic {
                        add_to(
                            &mut stretch[0],
                            n,
                            #[inline(always)]
                            |i| w[i] * q2[i],
                        );
                    }
                    for d in 0..if request.x || request.z || by_dimension { dimension } else { 0 } {
                        let (xd, zd) = (&x.column(d)[..n], z.column(d)[j]);
                        if request.z || by_dimension {
                            let [pulled, stretched] = moment_lanes(xd, zd, w);
                            pulls[d] = pulled;
                            if by_dimension {
                                add_lanes(&mut stretch[d], &stretched);
                            }
                        }
                        if request.x {
                            let target = &mut toward_x[d * n..(d + 1) * n];
                            for i in 0..n {
                                target[i] -= w[i] * (xd[i] - zd);
                            }
                        }
                    }
                    if request.z {
                        for (d, pulled) in pulls.iter().enumerate() {
                            toward_z[d * m + j] = T::from_f64(fold(pulled));
                        }
                    }
                }
            },
        );
        if request.parameters {
            for (d, lanes) in stretch.iter().enumerate() {
                adjoints.parameters[d] += fold(lanes) / self.lengthscales[d];
            }
            if has_shape {
                adjoints.parameters[stretch.len()] += fold(&shape);
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
        fold(&total)
    }
}

impl<F: Form> Parameters for Stationary<F> {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, shape| Segment {
            name: format!("{}.{name}", self.label),
            shape,
            transform: Transform::Log,
        };
        let mut out = vec![segment("lengthscale", vec![self.scales.lengthscales.len()])];
        out.extend(self.form.shape().map(|(name, _)| segment(name, vec![1])));
        out
    }

    fn values(&self) -> Vec<f64> {
        let mut out = self.scales.lengthscales.clone();
        out.extend(self.form.shape().map(|(_, value)| value));
        out
    }

    fn set_values(&mut self, values: &[f64]) {
        let (lengthscales, shape) = values.split_at(self.scales.lengthscales.len());
        self.scales.lengthscales.copy_from_slice(lengthscales);
        assert_eq!(shape.len(), usize::from(self.form.shape().is_some()), "one number for each parameter");
        if let [value] = shape {
            self.form.set_shape(*value);
        }
    }
}

impl<T: Real, F: Form> Kernel<T> for Stationary<F> {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        if self.scales.columns.count() <= DIRECT {
            let (x, z): (Prepared<T>, Prepared<T>) = (self.prepare(pair.x), self.prepare(pair.z));
            return prepared_tile(&self.form, x.block(0..x.rows()), z.block(0..z.rows()), out);
        }
        self.scales.cross_tile(&self.form, pair, out);
    }

    /// Up to `DIRECT` dimensions: chosen columns over their lengthscales. Beyond, tiles are centred before they are scaled, so the
    /// points stay as they are.
    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        self.scales.prepare(x)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        if self.scales.columns.count() > DIRECT {
            return self.cross_tile(Pair { x: x.matrix(), z: z.matrix(), same }, out);
        }
        prepared_tile(&self.form, x, z, out);
    }

    fn diagonal(&self, _x: MatRef<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    fn values_at(&self, _x: PreparedBlock<'_, T>, out: &mut [T]) {
        out.fill(T::ONE);
    }

    /// Nothing: it is 1 whatever the parameters.
    fn pullback_values_at(&self, _x: MatRef<'_, T>, _adjoint: &[T], _parameters: &mut [f64]) {}

    /// Nothing, as well.
    fn pullback_values_to_points(&self, _x: MatRef<'_, T>, _adjoint: &[T], _out: &mut Mat<T>) {}

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let form = (&self.form as &dyn FormLoops<T>, self.form.shape().is_some());
        self.scales.pullback_tile(form, pair, adjoint, adjoints)
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        let lengthscales = (0..self.scales.columns.count()).map(|d| self.scales.lengthscale(d)).collect();
        let spectrum =
            Spectrum::new(self.scales.columns.indices().to_vec(), lengthscales, self.form.spectral_law());
        Ok(FeatureRecipe::Waves { spectra: vec![spectrum], categories: Vec::new() })
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

/// A tile of points that were divided by their lengthscales.
fn prepared_tile<T: Real>(
    form: &dyn FormLoops<T>,
    x: PreparedBlock<'_, T>,
    z: PreparedBlock<'_, T>,
    mut out: MatMut<'_, T>,
) {
    let limit = limit::<T>();
    let dimensions: Vec<(&[T], &[T])> = (0..x.columns()).map(|d| (x.column(d), z.column(d))).collect();
    dispatch(
        #[inline(always)]
        || {
            for j in 0..out.ncols() {
                let q2 = column(&mut out, j);
                sum_squares(
                    dimensions.len(),
                    q2,
                    #[inline(always)]
                    |d| (dimensions[d].0, dimensions[d].1[j]),
                );
                for v in q2.iter_mut() {
                    // In this order NaN stays.
                    *v = if limit < *v { limit } else { *v };
                }
                form.values(q2);
            }
        },
    );
}

/// Adds `Σ_i term(i)` over `0..count` to partial sums.
#[inline(always)]
fn add_to<T: Real>(totals: &mut [f64; LANES], count: usize, term: impl Fn(usize) -> T) {
    add_lanes(totals, &lanes(count, term));
}
