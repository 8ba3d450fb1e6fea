//! Features of categories: exact ones, and factors that random waves are multiplied by.

use super::FeatureError;
use super::map::MOST;
use crate::categorical::{CategoryFactors, extended};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use rand::RngExt;

/// The covariance of one column's categories as `L L' + diag s`.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryFeatures {
    /// The columns of 0 and 1 of its C categories, counted from 0.
    pub columns: Vec<usize>,
    /// Of these and the unknown category, C + 1 rows.
    pub factors: CategoryFactors,
}

impl CategoryFeatures {
    /// `[L, diag √s]`, (C + 1) x (rank + C + 1).
    fn root<T: Real>(&self) -> Mat<T> {
        let CategoryFactors { shared, own } = &self.factors;
        Mat::from_fn(own.len(), shared.len() + own.len(), |i, k| {
            T::from_f64(match shared.get(k) {
                Some(column) => column[i],
                None if k - shared.len() == i => own[i].sqrt(),
                None => 0.0,
            })
        })
    }

    /// How many kinds of waves it makes: one for each shared column, and one for what categories have alone.
    pub(super) fn kinds(&self) -> usize {
        self.factors.shared.len() + 1
    }
}

/// The outer products of exact features of several columns: `k = Π_c u_c' B_c u_c`.
#[derive(Clone, Debug)]
pub(super) struct Outer<T> {
    amplitude: T,
    factors: Vec<(Vec<usize>, Mat<T>)>,
}

impl<T: Real> Outer<T> {
    pub(super) fn new(root: f64, parts: &[CategoryFeatures]) -> Result<Self, FeatureError> {
        let factors: Vec<(Vec<usize>, Mat<T>)> =
            parts.iter().map(|part| (part.columns.clone(), part.root())).collect();
        let counts = factors.iter().map(|(_, root)| root.ncols());
        let count = counts.fold(1usize, usize::saturating_mul);
        if count > MOST {
            return Err(FeatureError::Count { count, most: MOST });
        }
        Ok(Self { amplitude: T::from_f64(root), factors })
    }

    pub(super) fn count(&self) -> usize {
        self.factors.iter().map(|(_, root)| root.ncols()).product()
    }

    /// Which feature of factor k belongs to feature l of the product.
    fn digit(&self, k: usize, l: usize) -> usize {
        let before: usize = self.factors[..k].iter().map(|(_, root)| root.ncols()).product();
        l / before % self.factors[k].1.ncols()
    }

    fn parts(&self, x: MatRef<'_, T>) -> Vec<Mat<T>> {
        self.factors.iter().map(|(columns, root)| extended(x, columns) * root).collect()
    }

    pub(super) fn evaluate(&self, x: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        out.fill(self.amplitude);
        for (k, part) in self.parts(x).iter().enumerate() {
            for l in 0..out.ncols() {
                let values = part.col_as_slice(self.digit(k, l));
                out.as_mut().col_mut(l).iter_mut().zip(values).for_each(|(o, &v)| *o *= v);
            }
        }
    }

    pub(super) fn pullback(&self, x: MatRef<'_, T>, slopes: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        let parts = self.parts(x);
        for (k, (columns, root)) in self.factors.iter().enumerate() {
            let mut toward = Mat::<T>::zeros(x.nrows(), root.ncols());
            for l in 0..slopes.ncols() {
                for i in 0..x.nrows() {
                    let others = (0..parts.len()).filter(|other| *other != k);
                    let product =
                        others.fold(self.amplitude, |p, other| p * parts[other][(i, self.digit(other, l))]);
                    toward[(i, self.digit(k, l))] += slopes[(i, l)] * product;
                }
            }
            to_columns((toward * root.transpose()).as_ref(), columns, out.as_mut());
        }
    }
}

/// Adds what adjoints of `u(x)` contribute to the columns.
fn to_columns<T: Real>(toward: MatRef<'_, T>, columns: &[usize], mut out: MatMut<'_, T>) {
    for (d, &c) in columns.iter().enumerate() {
        let pairs = toward.col(d).iter().zip(toward.col(columns.len()).iter());
        out.as_mut().col_mut(c).iter_mut().zip(pairs).for_each(|(o, (&own, &rest))| *o += own - rest);
    }
}

/// What each of L waves is multiplied by in each category, so that products have `B` times the waves' covariance on average.
///
/// Waves come in kinds. One of a shared column has its loadings as amplitudes; of the last kind, categories have `±√s` with signs of their own, so that
/// the waves of two categories have nothing in common on average, though each category sees all of them. With pairs of waves (cosine and sine) a category's variance is exact.
#[derive(Clone, Debug)]
pub(super) struct Modulation<T> {
    columns: Vec<usize>,
    /// (C + 1) x L.
    amplitudes: Mat<T>,
}

/// How many waves there are at least: one of each kind.
pub(super) fn least_waves(parts: &[CategoryFeatures]) -> usize {
    parts.iter().map(CategoryFeatures::kinds).fold(1, usize::saturating_mul)
}

impl<T: Real> Modulation<T> {
    /// One for each column of categories. Signs: stream `kernels/categories#k` of column k, whatever the parameters.
    pub(super) fn all(parts: &[CategoryFeatures], waves: usize, streams: Streams) -> Vec<Self> {
        let mut before = 1;
        let kinds = least_waves(parts);
        // Wave l is of the kind l mod kinds, and there are as many or one more of each.
        let alike = |l: usize| (waves / kinds + usize::from(l % kinds < waves % kinds)) as f64;
        parts
            .iter()
            .enumerate()
            .map(|(index, part)| {
                let mut rng = streams.stream(&format!("kernels/categories#{index}"));
                let CategoryFactors { shared, own } = &part.factors;
                let mut amplitudes = Mat::zeros(own.len(), waves);
                for l in 0..waves {
                    // The weight of its kind is counted once, by the first column.
                    let weight = if index == 0 { (waves as f64 / alike(l)).sqrt() } else { 1.0 };
                    let kind = l / before % part.kinds();
                    for c in 0..own.len() {
                        let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
                        let value = shared.get(kind).map_or(sign * own[c].sqrt(), |column| column[c]);
                        amplitudes[(c, l)] = T::from_f64(weight * value);
                    }
                }
                before *= part.kinds();
                Self { columns: part.columns.clone(), amplitudes }
            })
            .collect()
    }

    /// The factors at some points, n x L.
    pub(super) fn values(&self, x: MatRef<'_, T>) -> Mat<T> {
        let u = extended(x, &self.columns);
        let mut out = Mat::zeros(x.nrows(), self.amplitudes.ncols());
        matmul(out.as_mut(), Accum::Replace, &u, &self.amplitudes, T::ONE, Par::Seq);
        out
    }

    /// Adds what an adjoint of [`Self::values`] contributes to the columns.
    pub(super) fn pullback(&self, adjoint: MatRef<'_, T>, out: MatMut<'_, T>) {
        let mut toward = Mat::zeros(adjoint.nrows(), self.amplitudes.nrows());
        matmul(toward.as_mut(), Accum::Replace, adjoint, self.amplitudes.transpose(), T::ONE, Par::Seq);
        to_columns(toward.as_ref(), &self.columns, out);
    }
}
