//! **Categories**: `k = u(x)' B u(z)`, with B the covariance of the categories of one column of text.
//!
//! The column has been turned into C columns of 0 and 1, one for each category ([`Columns`]); `u(x)` are these and, behind them, `1 - Σ_c x_c`: a row that has none of the
//! categories (an empty cell) is of a category of its own, which training need not have seen. Between rows of one category each, k is an entry of B.
//!
//! | form | B | parameters |
//! |---|---|---|
//! | exchangeable | 1 for equal categories, `ρ = exp(-1/ℓ)` in (0, 1) for others | `lengthscale` ℓ > 0 |
//! | low rank | `(A A' + diag κ) / t`, `t = tr(A A' + diag κ)/C` | `loading` A (C x rank), `specific` κ (C) > 0 |
//!
//! **Amplitude.** Dividing by t makes the mean of the known categories' variances 1, so that the variance in front is that mean and counts once; B still gives each category a
//! variance of its own. Scaling A by s and κ by s² changes nothing, and neither does turning the columns of A: a search has flat directions there, and B is what can be read.
//!
//! **The unknown category** has variance 1, the mean of the others. In the exchangeable form its correlation with each is ρ; in the low-rank form its row of A is the mean `ā` of the
//! others', so that its covariance with category i is `a_i·ā / t`: what a category has in expectation whose row is drawn from the known ones. The whole is positive definite, since
//! `|ā|²` is at most the mean of `|a_i|²`.
//!
//! A kernel of numbers times this one is the intrinsic coregionalisation model for several targets in long form (E. Bonilla, K. Chai, C. Williams, "Multi-task Gaussian process prediction",
//! NIPS 2007, eq. 1). Exchangeable categories: P. Z. G. Qian, H. Wu, C. F. J. Wu, "Gaussian process models for computer experiments with qualitative and quantitative factors", Technometrics
//! 2008, section 3.1.

mod covariance;

pub use covariance::CategoryFactors;

use crate::features::{CategoryFeatures, FeatureError, FeatureRecipe};
use crate::inputs::Columns;
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use crate::{Prepared, PreparedBlock};
use covariance::Form;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;
use posterior_optim::{Parameters, Segment, Transform};

/// The kernel of one column's categories. A tile of n x m rows takes n m look-ups where all rows have one category each, and `2 n m (C + 1)` flops otherwise.
#[derive(Clone, Debug)]
pub struct Categorical {
    label: String,
    columns: Columns,
    form: Form,
    /// B, of the parameters of the moment.
    covariance: Mat<f64>,
}

impl Categorical {
    /// All pairs of categories alike; `columns` has one for each category.
    pub fn exchangeable(label: impl Into<String>, columns: Columns, lengthscale: f64) -> Self {
        Self::of(label.into(), columns, Form::Exchangeable { lengthscale })
    }

    /// Low rank plus a diagonal.
    ///
    /// # Panics
    /// When `rank` is 0 or above the number of categories.
    pub fn low_rank(label: impl Into<String>, columns: Columns, rank: usize) -> Self {
        assert!((1..=columns.count()).contains(&rank), "a rank is between 1 and the number of categories");
        let form = Form::low_rank(columns.count(), rank);
        Self::of(label.into(), columns, form)
    }

    fn of(label: String, columns: Columns, form: Form) -> Self {
        let covariance = form.factors(columns.count()).matrix();
        Self { label, columns, form, covariance }
    }

    /// B: the covariance of the C categories and, behind them, of the unknown one.
    pub fn covariance(&self) -> MatRef<'_, f64> {
        self.covariance.as_ref()
    }

    /// `u(x)`, n x (C + 1).
    fn extended<T: Real>(&self, x: MatRef<'_, T>) -> Mat<T> {
        extended(x, self.columns.indices())
    }

    fn covariance_in<T: Real>(&self) -> Mat<T> {
        let b = &self.covariance;
        Mat::from_fn(b.nrows(), b.ncols(), |i, j| T::from_f64(b[(i, j)]))
    }

    fn tile<T: Real>(&self, x: MatRef<'_, T>, z: MatRef<'_, T>, mut out: MatMut<'_, T>) {
        let b: Mat<T> = self.covariance_in();
        if let (Some(of_x), Some(of_z)) = (single(x), single(z)) {
            for (j, &c) in of_z.iter().enumerate() {
                let values = b.col_as_slice(c);
                column(&mut out, j).iter_mut().zip(&of_x).for_each(|(o, &a)| *o = values[a]);
            }
            return;
        }
        let left = x * &b;
        matmul(out, Accum::Replace, left.as_ref(), z.transpose(), T::ONE, Par::Seq);
    }

    /// `Σ_ij adjoint_ij u(x_i) u(z_j)'`: the adjoint of B.
    fn toward_covariance<T: Real>(
        &self,
        x: MatRef<'_, T>,
        z: MatRef<'_, T>,
        adjoint: MatRef<'_, T>,
    ) -> Mat<f64> {
        let count = self.covariance.nrows();
        if let (Some(of_x), Some(of_z)) = (single(x), single(z)) {
            let mut out = Mat::zeros(count, count);
            if let Form::Exchangeable { .. } = self.form {
                // All entries on the diagonal are one number, and all beside it another.
                for (j, &c) in of_z.iter().enumerate() {
                    let [equal, other] = sums(&of_x, entries(adjoint, j), c);
                    out[(c, c)] += equal;
                    out[(c, usize::from(c == 0))] += other;
                }
                return out;
            }
            for (j, &c) in of_z.iter().enumerate() {
                let sums = out.col_as_slice_mut(c);
                of_x.iter().zip(entries(adjoint, j)).for_each(|(&a, g)| sums[a] += g.to_f64());
            }
            return out;
        }
        let product = x.transpose() * (adjoint * z);
        Mat::from_fn(count, count, |i, j| product[(i, j)].to_f64())
    }

    /// Adds what adjoints of `u(x)` contribute to x.
    fn to_points<T: Real>(&self, toward: MatRef<'_, T>, target: &mut Mat<T>) {
        let rest = toward.col(self.columns.count());
        for (d, &c) in self.columns.indices().iter().enumerate() {
            let toward = toward.col(d).iter().zip(rest.iter());
            target.as_mut().col_mut(c).iter_mut().zip(toward).for_each(|(t, (&own, &rest))| *t += own - rest);
        }
    }
}

/// Some columns and, behind them, 1 minus their sum.
pub(crate) fn extended<T: Real>(x: MatRef<'_, T>, columns: &[usize]) -> Mat<T> {
    let count = columns.len();
    let mut out = Mat::zeros(x.nrows(), count + 1);
    let mut rest = vec![T::ONE; x.nrows()];
    for (d, &c) in columns.iter().enumerate() {
        let own = out.col_as_slice_mut(d).iter_mut().zip(x.col(c).iter());
        own.zip(&mut rest).for_each(|((o, &v), rest)| {
            *o = v;
            *rest -= v;
        });
    }
    out.col_as_slice_mut(count).copy_from_slice(&rest);
    out
}

/// Sums of the entries whose row has this category, and of all others; in lanes, which take several entries at a time.
fn sums<T: Real>(categories: &[usize], entries: &[T], category: usize) -> [f64; 2] {
    const LANES: usize = 8;
    let (mut equal, mut other) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, own: usize, value: T| {
        let value = value.to_f64();
        equal[lane] += if own == category { value } else { 0.0 };
        other[lane] += if own == category { 0.0 } else { value };
    };
    let (whole, rest) = categories.as_chunks::<LANES>();
    let (whole_entries, rest_entries) = entries.as_chunks::<LANES>();
    for (own, values) in whole.iter().zip(whole_entries) {
        (0..LANES).for_each(|lane| add(lane, own[lane], values[lane]));
    }
    rest.iter().zip(rest_entries).for_each(|(own, value)| add(0, *own, *value));
    [equal.iter().sum(), other.iter().sum()]
}

/// The only category of each row, if every row has exactly one.
fn single<T: Real>(u: MatRef<'_, T>) -> Option<Vec<usize>> {
    let mut found = vec![usize::MAX; u.nrows()];
    for c in 0..u.ncols() {
        for (category, &v) in found.iter_mut().zip(u.col(c).iter()) {
            if v == T::ONE && *category == usize::MAX {
                *category = c;
            } else if v != T::ZERO {
                return None;
            }
        }
    }
    found.iter().all(|c| *c != usize::MAX).then_some(found)
}

impl Parameters for Categorical {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, shape, transform| Segment {
            name: format!("{}.{name}", self.label),
            shape,
            transform,
        };
        match &self.form {
            Form::Exchangeable { .. } => vec![segment("lengthscale", vec![1], Transform::Log)],
            Form::LowRank { loadings, specific } => {
                let (c, rank) = (specific.len(), loadings.len() / specific.len());
                vec![
                    segment("loading", vec![c, rank], Transform::Identity),
                    segment("specific", vec![c], Transform::Log),
                ]
            }
        }
    }
    fn values(&self) -> Vec<f64> {
        self.form.values()
    }
    fn set_values(&mut self, values: &[f64]) {
        self.form.set_values(values);
        self.covariance = self.form.factors(self.columns.count()).matrix();
    }
}

impl<T: Real> Kernel<T> for Categorical {
    fn cross_tile(&self, pair: Pair<'_, T>, out: MatMut<'_, T>) {
        self.tile(self.extended(pair.x).as_ref(), self.extended(pair.z).as_ref(), out);
    }

    fn prepare(&self, x: MatRef<'_, T>) -> Prepared<T> {
        Prepared::own(self.extended(x))
    }

    fn prepared_tile(
        &self,
        x: PreparedBlock<'_, T>,
        z: PreparedBlock<'_, T>,
        _same: Option<(usize, usize)>,
        out: MatMut<'_, T>,
    ) {
        self.tile(x.matrix(), z.matrix(), out);
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let prepared: Prepared<T> = self.prepare(x);
        self.values_at(prepared.block(0..x.nrows()), out);
    }

    fn values_at(&self, x: PreparedBlock<'_, T>, out: &mut [T]) {
        let b: Mat<T> = self.covariance_in();
        let u = x.matrix();
        if let Some(of_x) = single(u) {
            out.iter_mut().zip(of_x).for_each(|(o, c)| *o = b[(c, c)]);
            return;
        }
        let toward = u * &b;
        out.fill(T::ZERO);
        for c in 0..u.ncols() {
            let terms = u.col(c).iter().zip(toward.col_as_slice(c));
            out.iter_mut().zip(terms).for_each(|(o, (&u, &t))| *o += u * t);
        }
    }

    fn pullback_values_at(&self, x: MatRef<'_, T>, adjoint: &[T], parameters: &mut [f64]) {
        let u = self.extended(x);
        let weighted = Mat::from_fn(u.nrows(), u.ncols(), |i, c| adjoint[i] * u[(i, c)]);
        let product = u.transpose() * &weighted;
        let toward = Mat::from_fn(u.ncols(), u.ncols(), |i, j| product[(i, j)].to_f64());
        self.form.pull(&toward, parameters);
    }

    fn pullback_values_to_points(&self, x: MatRef<'_, T>, adjoint: &[T], out: &mut Mat<T>) {
        let toward = self.extended(x) * self.covariance_in::<T>();
        let two = T::ONE + T::ONE;
        let toward = Mat::from_fn(toward.nrows(), toward.ncols(), |i, c| two * adjoint[i] * toward[(i, c)]);
        self.to_points(toward.as_ref(), out);
    }

    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let (x, z) = (self.extended(pair.x), self.extended(pair.z));
        let toward = self.toward_covariance(x.as_ref(), z.as_ref(), adjoint);
        if !adjoints.parameters.is_empty() {
            self.form.pull(&toward, &mut adjoints.parameters);
        }
        if let Some(target) = &mut adjoints.x {
            self.to_points((adjoint * (&z * self.covariance_in::<T>())).as_ref(), target);
        }
        if let Some(target) = &mut adjoints.z {
            self.to_points((adjoint.transpose() * (&x * self.covariance_in::<T>())).as_ref(), target);
        }
        let count = toward.ncols();
        (0..count).map(|j| (0..count).map(|i| toward[(i, j)] * self.covariance[(i, j)]).sum::<f64>()).sum()
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        let columns = self.columns.indices().to_vec();
        let factors = self.form.factors(columns.len());
        Ok(FeatureRecipe::Categories(vec![CategoryFeatures { columns, factors }]))
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
