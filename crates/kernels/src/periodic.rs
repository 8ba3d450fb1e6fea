//! `k = exp(-2 Σ_d sin²(π (x_d - z_d) / p) / ℓ_d²)`: exactly repeating functions.

use crate::PreparedBlock;
use crate::inputs::{Columns, Points, add_column, lane_sum};
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};
use std::f64::consts::PI;

/// The periodic kernel (MacKay 1998; Rasmussen and Williams 2006, eq. 4.31) with one `period` and one lengthscale, or one for
/// each column. Sines of differences come from sines and cosines of the points, so there are `O(n + m)` of them.
#[derive(Clone, Debug)]
pub struct Periodic {
    label: String,
    columns: Columns,
    lengthscales: Vec<f64>,
    period: f64,
}

/// Sines and cosines of `π x / p`, and x itself.
struct Angles<T> {
    sine: Vec<T>,
    cosine: Vec<T>,
    points: Points<T>,
    rows: usize,
}

impl<T: Real> Angles<T> {
    fn sine(&self, d: usize) -> &[T] {
        &self.sine[d * self.rows..(d + 1) * self.rows]
    }
    fn cosine(&self, d: usize) -> &[T] {
        &self.cosine[d * self.rows..(d + 1) * self.rows]
    }
}

impl Periodic {
    /// A periodic kernel on `columns`; one lengthscale each when `ard`.
    pub fn new(label: impl Into<String>, columns: Columns, ard: bool, lengthscale: f64, period: f64) -> Self {
        let count = if ard { columns.count() } else { 1 };
        Self { label: label.into(), columns, lengthscales: vec![lengthscale; count], period }
    }

    fn angles<T: Real>(&self, x: MatRef<'_, T>) -> Angles<T> {
        let points = Points::new(x, &self.columns, |_| T::ONE);
        let (mut sine, mut cosine) = (Vec::new(), Vec::new());
        for d in 0..self.columns.count() {
            for i in 0..x.nrows() {
                let (s, c) = (PI * points.column(d)[i].to_f64() / self.period).sin_cos();
                sine.push(T::from_f64(s));
                cosine.push(T::from_f64(c));
            }
        }
        Angles { sine, cosine, points, rows: x.nrows() }
    }

    /// `2/ℓ_d²`
    fn sharpness(&self, d: usize) -> f64 {
        2.0 / self.lengthscales[if self.lengthscales.len() == 1 { 0 } else { d }].powi(2)
    }

    /// `exp(-Σ_d sharpness_d sin²)` for one point z.
    #[inline(always)]
    fn values<T: Real>(&self, x: &Angles<T>, z: &Angles<T>, j: usize, out: &mut [T]) {
        out.fill(T::ZERO);
        for d in 0..self.columns.count() {
            let (sx, cx) = (&x.sine(d)[..out.len()], &x.cosine(d)[..out.len()]);
            let (sz, cz) = (z.sine(d)[j], z.cosine(d)[j]);
            let weight = T::from_f64(-self.sharpness(d));
            for i in 0..out.len() {
                let s = sx[i] * cz - cx[i] * sz;
                out[i] += weight * s * s;
            }
        }
        out.iter_mut().for_each(
            #[inline(always)]
            |v| *v = v.exp(),
        );
    }
}

impl Parameters for Periodic {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, shape| Segment {
            name: format!("{}.{name}", self.label),
            shape,
            transform: Transform::Log,
        };
        vec![segment("lengthscale", vec![self.lengthscales.len()]), segment("period", vec![1])]
    }
    fn values(&self) -> Vec<f64> {
        let mut out = self.lengthscales.clone();
        out.push(self.period);
        out
    }
    fn set_values(&mut self, values: &[f64]) {
        let (period, lengthscales) = values.split_last().expect("a periodic kernel has parameters");
        self.lengthscales.copy_from_slice(lengthscales);
        self.period = *period;
    }
}

impl<T: Real> Kernel<T> for Periodic {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let (x, z) = (self.angles(pair.x), self.angles(pair.z));
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    self.values(&x, &z, j, column(&mut out, j));
                }
            },
        );
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
        let request = adjoints.request();
        let (x, z) = (self.angles(pair.x), self.angles(pair.z));
        let (n, m) = (adjoint.nrows(), adjoint.ncols());
        let mut buffers = (vec![T::ZERO; n], vec![T::ZERO; n]);
        let (mut total, mut toward_period) = (0.0, 0.0);
        let mut stretch = vec![0.0; self.columns.count()];
        dispatch(
            #[inline(always)]
            || {
                let (w, slope) = (&mut buffers.0[..n], &mut buffers.1[..n]);
                for j in 0..m {
                    self.values(&x, &z, j, w);
                    let g = &entries(adjoint, j)[..n];
                    for i in 0..n {
                        w[i] *= g[i];
                    }
                    total += lane_sum(
                        n,
                        #[inline(always)]
                        |i| w[i],
                    );
                    for (d, &c) in self.columns.indices().iter().enumerate() {
                        let (sx, cx) = (&x.sine(d)[..n], &x.cosine(d)[..n]);
                        let (sz, cz) = (z.sine(d)[j], z.cosine(d)[j]);
                        // ∂k/∂x_d = -k sharpness (π/p) sin 2θ, with sin 2θ = 2 sin θ cos θ
                        let factor = T::from_f64(-2.0 * self.sharpness(d) * PI / self.period);
                        for i in 0..n {
                            let sine = sx[i] * cz - cx[i] * sz;
                            slope[i] = w[i] * factor * sine * (cx[i] * cz + sx[i] * sz);
                        }
                        if request.parameters {
                            stretch[d] += lane_sum(
                                n,
                                #[inline(always)]
                                |i| {
                                    let sine = sx[i] * cz - cx[i] * sz;
                                    w[i] * sine * sine
                                },
                            );
                            let (xd, zd) = (&x.points.column(d)[..n], z.points.column(d)[j]);
                            let pull = lane_sum(
                                n,
                                #[inline(always)]
                                |i| slope[i] * (xd[i] - zd),
                            );
                            toward_period -= pull / self.period;
                        }
                        if let Some(target) = &mut adjoints.x {
                            add_column(target, c, slope);
                        }
                        if let Some(target) = &mut adjoints.z {
                            let sum = lane_sum(
                                n,
                                #[inline(always)]
                                |i| slope[i],
                            );
                            target[(j, c)] -= T::from_f64(sum);
                        }
                    }
                }
            },
        );
        if request.parameters {
            // ∂k/∂ℓ = k · 2 sharpness sin² / ℓ
            for (d, sum) in stretch.iter().enumerate() {
                let index = if self.lengthscales.len() == 1 { 0 } else { d };
                adjoints.parameters[index] += 2.0 * self.sharpness(d) * sum / self.lengthscales[index];
            }
            adjoints.parameters[self.lengthscales.len()] += toward_period;
        }
        total
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
