//! **The kernel behind a map**, `k(x, z) = s h(x)·h(z) + c` with `h(x) = tanh(w x + b)` of ten units, whose weights are hyperparameters like the others: a process with it learns them by its evidence, a variational kernel with it
//! by its objective.
//!
//! Its matrices have a rank of at most eleven, so that no more inducing points are told apart.
//!
//! Source: spec `generalised_variational_inference`, sections 6.2 and 6.4: a polynomial of degree one with `s = c = 1e4` behind a layer.

use super::layer::{Layer, sum};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_kernels::{Adjoints, Kernel, Pair, Prepared, PreparedBlock};
use posterior_linalg::random::Streams;
use posterior_linalg::vectorised::{dispatch, dot};
use posterior_optim::{Parameters, Segment, Transform};

/// What `s` and `c` begin with.
const BEGINNING: f64 = 1e4;

/// The kernel. Parameters: `mapping.weight` and `mapping.bias` (u each, any numbers), `mapping.scaling` s and `mapping.constant` c (positive).
///
/// A tile of n x m costs `2 n m u` flops besides the map's `(n + m) u` tangents, the pullback three times that.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    map: Layer,
    scaling: f64,
    constant: f64,
}

impl Mapping {
    /// A map whose weights are drawn.
    pub(crate) fn drawn(units: usize, streams: Streams) -> Self {
        let map = Layer::drawn(units, streams, "experiment/generalised-mapping");
        Self { map, scaling: BEGINNING, constant: BEGINNING }
    }

    fn mapped(&self, x: MatRef<'_, f64>) -> (Vec<f64>, Mat<f64>) {
        let x: Vec<f64> = x.col(0).iter().copied().collect();
        let h = self.map.at(&x);
        (x, h)
    }

    /// `s H_x H_zᵀ + c`.
    fn tile(&self, x: MatRef<'_, f64>, z: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        matmul(out.as_mut(), Accum::Replace, x, z.transpose(), self.scaling, Par::Seq);
        out.col_iter_mut().for_each(|column| column.iter_mut().for_each(|v| *v += self.constant));
    }

    /// `|h|²` of each row.
    fn squares(h: MatRef<'_, f64>) -> Vec<f64> {
        let mut out = vec![0.0; h.nrows()];
        for column in h.col_iter() {
            out.iter_mut().zip(column.iter()).for_each(|(o, v)| *o += v * v);
        }
        out
    }

    /// Through the map: slopes in h (n x u, overwritten by those before the tangents) to its parameters, and to x where that is asked for.
    fn through_map(
        &self,
        (x, h): (&[f64], &Mat<f64>),
        mut slopes: Mat<f64>,
        parameters: &mut [f64],
        of_x: Option<&mut Mat<f64>>,
    ) {
        let u = self.map.units();
        let (mut weight, mut bias) = (vec![0.0; u], vec![0.0; u]);
        for j in 0..u {
            let own = slopes.col_as_slice_mut(j);
            Layer::pull_back_unit(x, h.col_as_slice(j), own, (&mut weight[j], &mut bias[j]));
        }
        let own = weight.iter().chain(&bias);
        parameters.iter_mut().zip(own).for_each(|(p, v)| *p += v);
        if let Some(of_x) = of_x {
            for (j, w) in self.map.weights.iter().enumerate() {
                let column = of_x.col_as_slice_mut(0).iter_mut();
                column.zip(slopes.col_as_slice(j)).for_each(|(o, s)| *o += w * s);
            }
        }
    }
}

impl Parameters for Mapping {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, length, transform| Segment {
            name: format!("mapping.{name}"),
            shape: vec![length],
            transform,
        };
        let u = self.map.units();
        vec![
            segment("weight", u, Transform::Identity),
            segment("bias", u, Transform::Identity),
            segment("scaling", 1, Transform::Log),
            segment("constant", 1, Transform::Log),
        ]
    }

    fn values(&self) -> Vec<f64> {
        [&self.map.weights[..], &self.map.biases, &[self.scaling, self.constant]].concat()
    }

    fn set_values(&mut self, values: &[f64]) {
        let u = self.map.units();
        assert_eq!(values.len(), 2 * u + 2, "two numbers for each unit, a scaling and a constant");
        self.map.weights.copy_from_slice(&values[..u]);
        self.map.biases.copy_from_slice(&values[u..2 * u]);
        (self.scaling, self.constant) = (values[2 * u], values[2 * u + 1]);
    }
}

impl Kernel<f64> for Mapping {
    fn cross_tile(&self, pair: Pair<'_, f64>, out: MatMut<'_, f64>) {
        self.tile(self.mapped(pair.x).1.as_ref(), self.mapped(pair.z).1.as_ref(), out);
    }

    fn diagonal(&self, x: MatRef<'_, f64>, out: &mut [f64]) {
        let squares = Self::squares(self.mapped(x).1.as_ref());
        out.iter_mut().zip(squares).for_each(|(o, v)| *o = v.mul_add(self.scaling, self.constant));
    }

    fn pullback_tile(
        &self,
        pair: Pair<'_, f64>,
        adjoint: MatRef<'_, f64>,
        adjoints: &mut Adjoints<f64>,
    ) -> f64 {
        let ((x, of_x), (z, of_z)) = (self.mapped(pair.x), self.mapped(pair.z));
        // Without the scaling in front: `G H_z` and `Gᵀ H_x`.
        let (mut toward_x, mut toward_z) = (adjoint * &of_z, adjoint.transpose() * &of_x);
        let u = self.map.units();
        let (mut products, mut total) = (0.0, 0.0);
        dispatch(
            #[inline(always)]
            || {
                for j in 0..u {
                    products += dot(toward_x.col_as_slice(j), of_x.col_as_slice(j));
                }
                for column in adjoint.col_iter() {
                    match column.try_as_col_major() {
                        Some(column) => total += sum(column.as_slice()),
                        None => total += column.iter().sum::<f64>(),
                    }
                }
            },
        );
        let value = products.mul_add(self.scaling, self.constant * total);
        if let [.., scaling, constant] = adjoints.parameters.as_mut_slice() {
            *scaling += products;
            *constant += total;
        } else if adjoints.x.is_none() && adjoints.z.is_none() {
            return value;
        }
        toward_x *= faer::Scale(self.scaling);
        toward_z *= faer::Scale(self.scaling);
        self.through_map((&x, &of_x), toward_x, &mut adjoints.parameters, adjoints.x.as_mut());
        self.through_map((&z, &of_z), toward_z, &mut adjoints.parameters, adjoints.z.as_mut());
        value
    }

    /// What the map makes of the points.
    fn prepare(&self, x: MatRef<'_, f64>) -> Prepared<f64> {
        Prepared::own(self.mapped(x).1)
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, f64>,
        z: PreparedBlock<'_, f64>,
        _: Option<(usize, usize)>,
        out: MatMut<'_, f64>,
    ) {
        self.tile(x.matrix(), z.matrix(), out);
    }

    fn values_at(&self, x: PreparedBlock<'_, f64>, out: &mut [f64]) {
        let squares = Self::squares(x.matrix());
        out.iter_mut().zip(squares).for_each(|(o, v)| *o = v.mul_add(self.scaling, self.constant));
    }

    fn pullback_values_at(&self, x: MatRef<'_, f64>, adjoint: &[f64], parameters: &mut [f64]) {
        let (x, h) = self.mapped(x);
        let squares = Self::squares(h.as_ref());
        if let [.., scaling, constant] = parameters {
            *scaling += dot(adjoint, &squares);
            *constant += sum(adjoint);
        }
        let slopes = Mat::from_fn(h.nrows(), h.ncols(), |i, j| 2.0 * self.scaling * adjoint[i] * h[(i, j)]);
        self.through_map((&x, &h), slopes, parameters, None);
    }

    fn clone_box(&self) -> Box<dyn Kernel<f64>> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posterior_kernels::{Request, cross, diagonal, gram, pullback, pullback_diagonal, pullback_gram};

    fn points(n: usize, shift: f64) -> Mat<f64> {
        Mat::from_fn(n, 1, |i, _| -2.0 + shift + 4.0 * i as f64 / n as f64)
    }

    fn kernel() -> Mapping {
        let mut kernel = Mapping::drawn(10, Streams::new(5));
        let mut values = kernel.values();
        // Biases that are not zero, and a scaling by which finite differences keep their digits.
        values[10..20].iter_mut().enumerate().for_each(|(j, v)| *v = 0.1 * j as f64 - 0.45);
        (values[20], values[21]) = (1.7, 0.6);
        kernel.set_values(&values);
        kernel
    }

    #[test]
    fn it_is_its_formula() {
        let (kernel, x, z) = (kernel(), points(23, 0.0), points(7, 0.03));
        let theta = kernel.values();
        let entry = |a: f64, b: f64| {
            let h = |x: f64, j: usize| (theta[j] * x + theta[10 + j]).tanh();
            theta[20] * (0..10).map(|j| h(a, j) * h(b, j)).sum::<f64>() + theta[21]
        };
        let (k, own) = (cross(&kernel, x.as_ref(), z.as_ref()), diagonal(&kernel, x.as_ref()));
        for i in 0..23 {
            for j in 0..7 {
                assert!((k[(i, j)] - entry(x[(i, 0)], z[(j, 0)])).abs() < 1e-13);
            }
            assert!((own[i] - entry(x[(i, 0)], x[(i, 0)])).abs() < 1e-13);
        }
        let prepared = kernel.prepare(x.as_ref());
        let mut values = vec![0.0; 23];
        kernel.values_at(prepared.block(0..23), &mut values);
        assert_eq!(values, own);
        assert_eq!(Mapping::drawn(10, Streams::new(5)).values()[20..], [1e4, 1e4]);
    }

    #[test]
    fn its_pullbacks_are_finite_differences() {
        let (kernel, x, z) = (kernel(), points(23, 0.0), points(7, 0.03));
        let theta = kernel.values();
        let weight = |i: usize, j: usize| ((i * 7 + j * 3) % 17) as f64 / 8.0 - 1.0;
        let adjoint = Mat::from_fn(23, 7, weight);
        let symmetric = Mat::from_fn(23, 23, |i, j| weight(i.max(j), i.min(j)));
        let of_rows: Vec<f64> = (0..23).map(|i| weight(i, 2)).collect();
        let with = |theta: &[f64]| {
            let mut moved = kernel.clone();
            moved.set_values(theta);
            moved
        };
        let summed = |a: &Mat<f64>, b: &Mat<f64>| -> f64 {
            (0..a.nrows()).map(|i| (0..a.ncols()).map(|j| a[(i, j)] * b[(i, j)]).sum::<f64>()).sum()
        };
        let of_cross = |kernel: &Mapping, x: &Mat<f64>, z: &Mat<f64>| {
            summed(&adjoint, &cross(kernel, x.as_ref(), z.as_ref()))
        };
        let of_gram = |kernel: &Mapping| summed(&symmetric, &gram(kernel, x.as_ref()));
        let of_diagonal = |kernel: &Mapping| -> f64 {
            diagonal(kernel, x.as_ref()).iter().zip(&of_rows).map(|(v, w)| v * w).sum()
        };
        let fill =
            |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, mut tile: MatMut<'_, f64>| {
                tile.copy_from(symmetric.submatrix(rows.start, columns.start, rows.len(), columns.len()));
            };
        let crossed = pullback(&kernel, x.as_ref(), z.as_ref(), adjoint.as_ref(), Request::ALL);
        let grammed = pullback_gram(&kernel, x.as_ref(), &fill, Request::PARAMETERS).parameters;
        let own = pullback_diagonal(&kernel, x.as_ref(), &of_rows, Request::PARAMETERS).parameters;
        let mut at = vec![0.0; 22];
        kernel.pullback_values_at(x.as_ref(), &of_rows, &mut at);
        let close = |found: f64, expected: f64, what: &str| {
            assert!((found - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{what}: {found} {expected}");
        };
        for k in 0..22 {
            let difference = |f: &dyn Fn(&Mapping) -> f64| {
                let moved = |by: f64| {
                    let mut theta = theta.clone();
                    theta[k] += by;
                    f(&with(&theta))
                };
                (moved(1e-6) - moved(-1e-6)) / 2e-6
            };
            close(crossed.parameters[k], difference(&|m| of_cross(m, &x, &z)), "cross");
            close(grammed[k], difference(&of_gram), "gram");
            close(own[k], difference(&of_diagonal), "diagonal");
            close(at[k], own[k], "values");
        }
        let (of_x, of_z) = (crossed.x.unwrap(), crossed.z.unwrap());
        for i in 0..23 {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[(i, 0)] += by;
                of_cross(&kernel, &x, &z)
            };
            close(of_x[(i, 0)], (moved(1e-6) - moved(-1e-6)) / 2e-6, "x");
        }
        for j in 0..7 {
            let moved = |by: f64| {
                let mut z = z.clone();
                z[(j, 0)] += by;
                of_cross(&kernel, &x, &z)
            };
            close(of_z[(j, 0)], (moved(1e-6) - moved(-1e-6)) / 2e-6, "z");
        }
        // The value that falls out on the way.
        let pair = Pair { x: x.as_ref(), z: z.as_ref(), same: None };
        let mut nothing = Adjoints::zeros(Request { parameters: false, x: false, z: false }, 22, 23, 7, 1);
        let value = kernel.pullback_tile(pair, adjoint.as_ref(), &mut nothing);
        close(value, of_cross(&kernel, &x, &z), "value");
    }
}
