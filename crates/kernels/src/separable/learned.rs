//! What adjoints of tiles and blocks contribute to a separable kernel's parameters and points.

use super::{Separable, SeparablePoints};
use crate::kernel::entries;
use crate::{Adjoints, Directed, LearnedBlockKernel, Pair, Request, SetAdjoints};
use faer::{Mat, MatRef, Scale};
use posterior_linalg::Real;
use posterior_linalg::dense::{beside, product};
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
        let size = if k.is_some() { between.shape() } else { (0, 0) };
        let mut toward_between = Mat::<T>::zeros(size.0, size.1);
        let by_columns = adjoint.row_stride() == 1;
        let copy = if by_columns { Mat::new() } else { adjoint.to_owned() };
        let adjoint = if by_columns { adjoint } else { copy.as_ref() };
        for j in 0..adjoint.ncols() {
            let adjoint = entries(adjoint, j);
            let between = between.col_as_slice(z.direction(j));
            fold(adjoint, between, x, toward_k.col_as_slice_mut(j / w));
            if let Some(k) = &k {
                let target = toward_between.col_as_slice_mut(z.direction(j));
                for (i, (adjoint, k)) in adjoint.chunks_exact(v).zip(k.col_as_slice(j / w)).enumerate() {
                    let target = target[x.directions(i)].iter_mut();
                    target.zip(adjoint).for_each(|(t, a)| *t += *a * *k);
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

    /// The first set and the matrix of `z` with itself side by side.
    fn pull_sets<'a>(
        &self,
        sets: &mut dyn Iterator<Item = Result<SetAdjoints<'a, SeparablePoints<f64>>, Infallible>>,
        (_, prepared): (Directed<'_, Mat<f64>>, &SeparablePoints<f64>),
        gram: MatRef<'_, f64>,
        points: bool,
        parameters: &mut [f64],
    ) -> Result<Option<Mat<f64>>, Infallible> {
        let mut of_sets = vec![0.0; parameters.len()];
        let mut whole = |set: SetAdjoints<'a, SeparablePoints<f64>>| {
            self.pull_diagonal(&set.x, set.own, &mut of_sets);
            self.pull(&set.x, prepared, set.cross, points, &mut of_sets)
        };
        let mut half = || self.pull(prepared, prepared, gram, points, parameters);
        let (mut sum, half) = match sets.next() {
            None => (None, half()),
            Some(Ok(first)) => beside(first.cross.nrows().min(gram.nrows()), || whole(first), half),
        };
        for set in sets {
            let Ok(set) = set;
            let own = whole(set);
            sum = sum.zip(own).map(|(sum, own)| sum + own);
        }
        parameters.iter_mut().zip(&of_sets).for_each(|(p, c)| *p += c);
        let half = half.map(|half| half * Scale(2.0));
        Ok(match (sum, half) {
            (Some(sum), Some(half)) => Some(sum + half),
            (_, half) => half,
        })
    }

    fn pull_diagonal(&self, x: &SeparablePoints<f64>, adjoint: &[f64], parameters: &mut [f64]) {
        if parameters.is_empty() {
            return;
        }
        let (w, count) = (x.width, self.kernel.parameter_count());
        let own = self.factor.is_some().then(|| self.values_at(x));
        let mut toward_turned = Mat::zeros(x.turned.nrows(), x.turned.ncols());
        let mut toward_k = vec![0.0; x.x.nrows()];
        for (i, (adjoint, toward_k)) in adjoint.chunks_exact(w * w).zip(&mut toward_k).enumerate() {
            for (e, a) in adjoint.iter().enumerate() {
                let (left, right) = (x.direction(i * w + e / w), x.direction(i * w + e % w));
                for c in 0..self.outputs {
                    *toward_k += a * x.turned[(left, c)] * x.turned[(right, c)];
                    if let Some(own) = &own {
                        toward_turned[(left, c)] += a * own[i] * x.turned[(right, c)];
                        toward_turned[(right, c)] += a * own[i] * x.turned[(left, c)];
                    }
                }
            }
        }
        self.kernel.pullback_values_at(x.x.as_ref(), &toward_k, &mut parameters[..count]);
        if own.is_some() {
            x.add_root(&toward_turned, &mut parameters[count..]);
        }
    }
}

/// Adds to the column `toward_k` (one entry a point) the products of a column of the adjoint with one of what stands between directions.
fn fold<T: Real>(adjoint: &[T], between: &[T], x: &SeparablePoints<T>, toward_k: &mut [T]) {
    match (x.width, x.along.is_some()) {
        (1, true) => toward_k.iter_mut().zip(adjoint).zip(between).for_each(|((t, a), b)| *t += *a * *b),
        (1, false) => toward_k.iter_mut().zip(adjoint).for_each(|(t, a)| *t += *a * between[0]),
        (width, _) => {
            for (i, (target, adjoint)) in toward_k.iter_mut().zip(adjoint.chunks_exact(width)).enumerate() {
                let between = &between[x.directions(i)];
                *target += adjoint.iter().zip(between).map(|(a, b)| *a * *b).sum::<T>();
            }
        }
    }
}
