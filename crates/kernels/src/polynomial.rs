//! `k = (x·z + c)^p`: polynomials of degree p in the inputs.

use crate::inputs::{Columns, Points, lane_sum};
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment, Transform};

/// The inhomogeneous polynomial kernel with a learned positive `offset`. Rasmussen and Williams (2006), section 4.2.2; spec `generalised_variational_inference`, section 6.2.
///
/// A scale inside is an amplitude outside: `(s x·z + c)^p = s^p (x·z + c/s)^p`.
///
/// The degree is any positive number. Where it is no whole number, `x·z + c` has to be positive for all points (otherwise the value is NaN), and even then matrices of more than p + 2 points need not be
/// positive semi-definite (FitzGerald and Horn 1977): use such degrees for inputs that are positive, with jitter. An entry costs p flops, for fractions about 50, and loses `p |ln(x·z + c)|` roundings with these.
#[derive(Clone, Debug)]
pub struct Polynomial {
    label: String,
    columns: Columns,
    degree: f64,
    offset: f64,
}

impl Polynomial {
    /// A polynomial kernel of the given degree.
    ///
    /// # Panics
    /// When the degree is not positive and finite.
    pub fn new(label: impl Into<String>, columns: Columns, degree: f64, offset: f64) -> Self {
        assert!(degree > 0.0 && degree.is_finite(), "a polynomial kernel has a positive degree");
        Self { label: label.into(), columns, degree, offset }
    }

    fn points<T: Real>(&self, x: MatRef<'_, T>) -> Points<T> {
        Points::new(x, &self.columns, |_| T::ONE)
    }
}

/// Entries that are raised together: they stay in the first cache.
const PIECE: usize = 128;

/// Largest degree that is reached by multiplications.
const MULTIPLIED: f64 = 64.0;

/// `(v + offset)^exponent` in place. The loop over a whole exponent is outside of that over entries, which the compiler can then vectorise.
#[inline(always)]
fn raise<T: Real>(values: &mut [T], offset: T, exponent: f64) {
    if exponent.fract() != 0.0 || !(0.0..=MULTIPLIED).contains(&exponent) {
        let exponent = T::from_f64(exponent);
        for value in values {
            *value = (exponent * (*value + offset).ln()).exp();
        }
        return;
    }
    let exponent = exponent as u32;
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
        dispatch(
            #[inline(always)]
            || raise(out, offset, self.degree),
        );
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (self.points(pair.x), self.points(pair.z));
        let offset = T::from_f64(self.offset);
        // The inner product's adjoint: p (x·z + c)^(p-1) times that of the value.
        let mut inner = Mat::<T>::zeros(adjoint.nrows(), adjoint.ncols());
        matmul(inner.as_mut(), Accum::Replace, x.matrix(), z.matrix().transpose(), T::ONE, Par::Seq);
        let degree = T::from_f64(self.degree);
        let (mut total, mut toward_offset) = (0.0, 0.0);
        let mut values = vec![T::ZERO; adjoint.nrows()];
        dispatch(
            #[inline(always)]
            || {
                for j in 0..adjoint.ncols() {
                    let inner = inner.col_as_slice_mut(j);
                    let g = &entries(adjoint, j)[..values.len()];
                    values.copy_from_slice(inner);
                    raise(&mut values, offset, self.degree - 1.0);
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

#[cfg(test)]
mod tests {
    use crate::tests::{build, points};
    use crate::{Request, cross, diagonal, gram, pullback};
    use faer::Mat;
    use posterior_optim::check;

    /// `(s x·z + c)^p` of the specification, in the words that there are.
    #[test]
    fn scales_inside_are_amplitudes_outside() {
        let (s, c) = (0.7f64, 1.9f64);
        let x = points(9, 81);
        let dot = |i: usize, j: usize| (0..3).map(|d| x[(i, d)] * x[(j, d)]).sum::<f64>();
        let words = |p: i32| format!("polynomial(degree={p}, offset={}, variance={})", c / s, s.powi(p));
        let mut cases: Vec<(String, i32, f64)> = (1..=5).map(|p| (words(p), p, c)).collect();
        cases.push((format!("linear(variance={s}) + constant(variance={c})"), 1, c));
        cases.push((format!("linear(variance={s})"), 1, 0.0));
        for (text, p, c) in cases {
            let kernel = build::<f64>(&text);
            let k = gram(&*kernel, x.as_ref());
            for j in 0..9 {
                for i in 0..9 {
                    let expected = (s * dot(i, j) + c).powi(p);
                    assert!(
                        (k[(i, j)] - expected).abs() < 1e-12 * (1.0 + k[(i, i)].max(k[(j, j)])),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn degrees_may_be_fractions_where_inner_products_are_positive() {
        let positive = |n: usize, seed: u64| {
            let x = points(n, seed);
            Mat::from_fn(n, 3, |i, d| x[(i, d)].abs())
        };
        let (x, z) = (positive(7, 82), positive(5, 83));
        let weights = Mat::from_fn(7, 5, |i, j| ((3 * i + 5 * j) as f64).sin());
        for degree in [0.4, 1.5, 2.0, 2.75, 7.1] {
            let text = format!("polynomial(degree={degree}, offset=0.3)");
            let kernel = build::<f64>(&text);
            let k = cross(&*kernel, x.as_ref(), z.as_ref());
            let own = diagonal(&*kernel, x.as_ref());
            for i in 0..7 {
                let value = |z: &Mat<f64>, j: usize| {
                    ((0..3).map(|d| x[(i, d)] * z[(j, d)]).sum::<f64>() + 0.3).powf(degree)
                };
                assert!((own[i] - value(&x, i)).abs() < 1e-14 * own[i] * degree.max(1.0) * 10.0, "{text}");
                for j in 0..5 {
                    assert!(
                        (k[(i, j)] - value(&z, j)).abs() < 1e-14 * k[(i, j)] * degree.max(1.0) * 10.0,
                        "{text}"
                    );
                }
            }
            let pairing = |kernel: &dyn crate::Kernel<f64>, x: &Mat<f64>| {
                let k = cross(kernel, x.as_ref(), z.as_ref());
                (0..5).map(|j| (0..7).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
            };
            // Differences over half a ten-thousandth lose what powers round: some p of their terms' roundings.
            let size: f64 =
                (0..5).map(|j| (0..7).map(|i| (k[(i, j)] * weights[(i, j)]).abs()).sum::<f64>()).sum();
            let rounding = 4.0 * f64::EPSILON * degree.max(1.0) * size / 5e-5;
            let found = pullback(&*kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
            let numeric = check::gradient(
                |values| {
                    let mut moved = kernel.clone_box();
                    moved.set_values(values);
                    pairing(&*moved, &x)
                },
                &kernel.values(),
            );
            check::assert_close(&found.parameters, &numeric, 1e-8, 1e-8 + rounding);
            let flat: Vec<f64> = (0..3).flat_map(|d| x.col_as_slice(d).to_vec()).collect();
            let at = |v: &[f64]| Mat::from_fn(7, 3, |i, d| v[d * 7 + i]);
            let numeric = check::gradient(|v| pairing(&*kernel, &at(v)), &flat);
            let found = found.x.unwrap();
            let found: Vec<f64> = (0..3).flat_map(|d| found.col_as_slice(d).to_vec()).collect();
            check::assert_close(&found, &numeric, 1e-8, 1e-8 + rounding);
        }
        // A negative base has no such power, and says so.
        let apart = Mat::from_fn(2, 3, |i, _| if i == 0 { 1.0 } else { -1.0 });
        let k = gram(&*build::<f64>("polynomial(degree=2.5, offset=0.3)"), apart.as_ref());
        assert!(k[(1, 0)].is_nan() && k[(0, 0)].is_finite());
    }
}
