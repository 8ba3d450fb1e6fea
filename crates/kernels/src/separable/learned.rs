//! What adjoints of tiles and blocks contribute to a separable kernel's parameters and points.

use super::{Separable, SeparablePoints};
use crate::{Adjoints, Directed, LearnedBlockKernel, Pair, Request};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use std::convert::Infallible;

impl<T: Real> Separable<T> {
    /// Adds to `parameters` (where not empty) what an adjoint of the matrix between `x` and `z` contributes; the gradient in the points `z` where it is wanted.
    pub(super) fn pull(
        &self,
        x: &SeparablePoints<T>,
        z: &SeparablePoints<T>,
        adjoint: MatRef<'_, T>,
        points: bool,
        parameters: &mut [f64],
    ) -> Option<Mat<T>> {
        let between = product(x.turned.as_ref(), z.turned.transpose());
        let (v, w) = (x.width, z.width);
        let learned = !parameters.is_empty();
        let k = (learned && self.factor.is_some()).then(|| self.values_between(x, z));
        let mut toward_k = Mat::<T>::zeros(x.x.nrows(), z.x.nrows());
        let mut toward_between = Mat::<T>::zeros(between.nrows(), between.ncols());
        for j in 0..adjoint.ncols() {
            let column = z.direction(j);
            for i in 0..adjoint.nrows() {
                let row = x.direction(i);
                toward_k[(i / v, j / w)] += adjoint[(i, j)] * between[(row, column)];
                if let Some(k) = &k {
                    toward_between[(row, column)] += adjoint[(i, j)] * k[(i / v, j / w)];
                }
            }
        }
        let request = Request { parameters: learned, x: false, z: points };
        let count = self.kernel.parameter_count();
        let mut adjoints = Adjoints::zeros(request, count, x.x.nrows(), z.x.nrows(), z.x.ncols());
        if points || (learned && count > 0) {
            let pair = Pair { x: x.x.as_ref(), z: z.x.as_ref(), same: None };
            self.kernel.pullback_tile(pair, toward_k.as_ref(), &mut adjoints);
        }
        if learned {
            parameters.iter_mut().zip(&adjoints.parameters).for_each(|(p, a)| *p += a);
            if k.is_some() {
                let left = product(toward_between.as_ref(), z.turned.as_ref());
                let right = product(toward_between.transpose(), x.turned.as_ref());
                x.add_root(&left, &mut parameters[count..]);
                z.add_root(&right, &mut parameters[count..]);
            }
        }
        adjoints.z
    }
}

impl LearnedBlockKernel for Separable<f64> {
    fn coordinates(&self, points: &Mat<f64>) -> Vec<f64> {
        (0..points.nrows()).flat_map(|i| points.row(i).iter().copied().collect::<Vec<_>>()).collect()
    }

    fn with_coordinates(&self, points: &Mat<f64>, coordinates: &[f64]) -> Mat<f64> {
        MatRef::from_row_major_slice(coordinates, points.nrows(), points.ncols()).to_owned()
    }

    fn pull_tile(
        &self,
        x: &SeparablePoints<f64>,
        _: Directed<'_, Mat<f64>>,
        prepared: &SeparablePoints<f64>,
        adjoint: MatRef<'_, f64>,
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Infallible> {
        Ok(self.pull(x, prepared, adjoint, points, parameters))
    }

    fn pull_diagonal(&self, x: &SeparablePoints<f64>, adjoint: &[f64], parameters: &mut [f64]) {
        if parameters.is_empty() {
            return;
        }
        let (w, count, d) = (x.width, self.kernel.parameter_count(), x.x.ncols());
        let own = self.factor.is_some().then(|| self.values_at(x));
        let mut toward_turned = Mat::zeros(x.turned.nrows(), x.turned.ncols());
        for (i, adjoint) in adjoint.chunks_exact(w * w).enumerate() {
            let mut toward_k = 0.0;
            for (e, a) in adjoint.iter().enumerate() {
                let (left, right) = (x.direction(i * w + e / w), x.direction(i * w + e % w));
                for c in 0..self.outputs {
                    toward_k += a * x.turned[(left, c)] * x.turned[(right, c)];
                    if let Some(own) = &own {
                        toward_turned[(left, c)] += a * own[i] * x.turned[(right, c)];
                        toward_turned[(right, c)] += a * own[i] * x.turned[(left, c)];
                    }
                }
            }
            if count > 0 {
                let point = x.x.as_ref().subrows(i, 1);
                let mut one = Adjoints::zeros(Request::PARAMETERS, count, 1, 1, d);
                let toward_k = MatRef::from_column_major_slice(std::slice::from_ref(&toward_k), 1, 1);
                self.kernel.pullback_tile(Pair { x: point, z: point, same: None }, toward_k, &mut one);
                parameters.iter_mut().zip(one.parameters).for_each(|(p, a)| *p += a);
            }
        }
        if own.is_some() {
            x.add_root(&toward_turned, &mut parameters[count..]);
        }
    }
}
