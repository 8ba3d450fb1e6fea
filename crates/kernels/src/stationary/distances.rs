//! Squared distances `q²_ij = Σ_d (x_id - z_jd)² / ℓ_d²` of one tile, a column at a time.
//!
//! Points are divided by the lengthscales first, `O((n + m) D)`. Then there are two ways:
//!
//! 1. Up to [`DIRECT`] dimensions: sums of squared differences, two operations a term, along the rows, which are
//!    contiguous. Relative error about `(D + 4) ε` for points near 0, and an entry's bits do not depend on its tile.
//! 2. Beyond: `|x|² + |z|² - 2 x·z` by a matrix product, which does more flops a cycle and cancels digits between close points:
//!    absolute error about `ε (|x|² + |z|²)`. The tile's points are centred before they are scaled, so that what
//!    cancels is of the size of the tile and not of its distance from the origin; the centre is a median, lest one point that is far
//!    away (a column that was constant in training and now is not) takes the digits of all others. Entries of far points that lost more than half of their
//!    digits are summed anew by way 1, which also stands in where squares would overflow.
//!
//! Either way an observation's distance from itself is exactly 0, NaN stays NaN, and distances are capped well below
//! the largest number (at [`limit`]), so that no form meets `∞ · 0`.

use crate::inputs::{Columns, Points, sum_dimensions};
use crate::kernel::{Pair, column};
use faer::linalg::matmul::matmul;
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use posterior_linalg::Real;

/// Dimensions up to which squared distances are summed directly.
pub(super) const DIRECT: usize = 32;

/// The largest squared distance: 1e37 for f32, 1e300 for f64.
pub(super) fn limit<T: Real>() -> T {
    T::from_f64(if size_of::<T>() == 4 { 1e37 } else { 1e300 })
}

/// One tile's points, divided by lengthscales.
pub(super) struct Distances<'a, T: Real> {
    pub(super) x: Points<T>,
    pub(super) z: Points<T>,
    /// `|x_i|²` and `|z_j|²`, for distances by product.
    squares: Option<(Vec<T>, Vec<T>)>,
    pair: Pair<'a, T>,
    limit: T,
}

impl<'a, T: Real> Distances<'a, T> {
    /// `factor(d)` is one over the lengthscale of chosen column d.
    pub(super) fn new(pair: Pair<'a, T>, columns: &Columns, factor: impl Fn(usize) -> T) -> Self {
        let factors: Vec<T> = (0..columns.count()).map(factor).collect();
        let points = |p: MatRef<'_, T>, centre: Option<&[T]>| match centre {
            Some(centre) => Points::map(p, columns, |d, v| (v - centre[d]) * factors[d]),
            None => Points::map(p, columns, |d, v| v * factors[d]),
        };
        let centre = (columns.count() > DIRECT).then(|| centre(pair.z, columns));
        let (x, z) = (points(pair.x, centre.as_deref()), points(pair.z, centre.as_deref()));
        let limit = limit::<T>();
        let squares =
            centre.map(|_| (squares(&x, pair.x.nrows()), squares(&z, pair.z.nrows()))).filter(|(x2, z2)| {
                // Sums of four such terms stay finite; otherwise, and for NaN, differences do without them.
                x2.iter().chain(z2).all(|&v| v < limit)
            });
        Self { x, z, squares, pair, limit }
    }

    /// Whether [`Self::fill_by_product`] has to come before the columns are read.
    pub(super) fn by_product(&self) -> bool {
        self.squares.is_some()
    }

    /// All of the tile's squared distances, not yet capped.
    pub(super) fn fill_by_product(&self, mut out: MatMut<'_, T>) {
        let Some((x2, z2)) = &self.squares else { return };
        let minus_two = T::from_f64(-2.0);
        let (x, z) = (self.x.matrix(), self.z.matrix().transpose());
        matmul(out.as_mut(), Accum::Replace, x, z, minus_two, Par::Seq);
        for (j, &b) in z2.iter().enumerate() {
            for (v, &a) in column(&mut out, j).iter_mut().zip(x2) {
                *v = (*v + (a + b)).max(T::ZERO);
            }
        }
        self.mend(x2, z2, out.rb_mut());
        for (i, j) in self.pair.identical() {
            out[(i, j)] = T::ZERO;
        }
    }

    /// Sums anew what far points that are close to each other lost.
    fn mend(&self, x2: &[T], z2: &[T], mut out: MatMut<'_, T>) {
        let (far, share) = (far::<T>(), T::EPSILON.sqrt());
        let most = |squares: &[T]| squares.iter().fold(T::ZERO, |m, &v| m.max(v));
        if most(x2) + most(z2) <= far {
            return;
        }
        for (j, &b) in z2.iter().enumerate() {
            for (i, (v, &a)) in column(&mut out, j).iter_mut().zip(x2).enumerate() {
                if a + b > far && *v < share * (a + b) {
                    *v = (0..self.x.count()).fold(T::ZERO, |sum, d| {
                        let difference = self.x.column(d)[i] - self.z.column(d)[j];
                        difference.mul_add(difference, sum)
                    });
                }
            }
        }
    }

    /// Turns `q2` into the capped squared distances from point j: computes them, unless they came from a product.
    #[inline(always)]
    pub(super) fn finish_column(&self, j: usize, q2: &mut [T], by_product: bool) {
        if !by_product {
            self.sum_directly(j, q2);
        }
        let limit = self.limit;
        for v in q2 {
            // In this order NaN stays.
            *v = if limit < *v { limit } else { *v };
        }
    }

    #[inline(always)]
    fn sum_directly(&self, j: usize, q2: &mut [T]) {
        sum_squares(
            self.x.count(),
            q2,
            #[inline(always)]
            |d| (self.x.column(d), self.z.column(d)[j]),
        );
    }
}

/// `q2[i] <- Σ_d (x_id - z_d)²` for `count` dimensions, each given as its coordinates and the point's.
#[inline(always)]
pub(super) fn sum_squares<'a, T: Real>(
    count: usize,
    q2: &mut [T],
    dimension: impl Fn(usize) -> (&'a [T], T),
) {
    sum_dimensions(
        count,
        q2,
        dimension,
        #[inline(always)]
        |x, z, sum| {
            let difference = x - z;
            difference.mul_add(difference, sum)
        },
    );
}

/// `Σ_d x_id²` of each point.
fn squares<T: Real>(points: &Points<T>, rows: usize) -> Vec<T> {
    let mut sums = vec![T::ZERO; rows];
    for d in 0..points.count() {
        sums.iter_mut().zip(points.column(d)).for_each(|(s, &v)| *s += v * v);
    }
    sums
}

/// Squared distances from the centre from which on the rounding of products shows in a kernel: it is 1e-9 there in f64, 1e-4 in f32.
fn far<T: Real>() -> T {
    let shows = if size_of::<T>() == 4 { 1e-4 } else { 1e-9 };
    T::from_f64(shows / T::EPSILON.to_f64())
}

/// Points that the centre is the median of: enough that some of them may be anywhere, few enough to cost nothing beside a tile.
const CENTRAL: usize = 9;

/// The median of each chosen column among some of the points; 0 where that is not finite.
fn centre<T: Real>(z: MatRef<'_, T>, columns: &Columns) -> Vec<T> {
    let count = z.nrows().min(CENTRAL);
    let rows: Vec<usize> = (0..count).map(|i| i * z.nrows() / count).collect();
    let mut some = vec![0.0; count];
    let median = |&c: &usize| {
        some.iter_mut().zip(&rows).for_each(|(s, &i)| *s = z[(i, c)].to_f64());
        some.sort_by(f64::total_cmp);
        let median = some.get(count / 2).map_or(T::ZERO, |&v| T::from_f64(v));
        if median.is_finite() { median } else { T::ZERO }
    };
    columns.indices().iter().map(median).collect()
}

/// Room for the squared distances of a tile, when they come from a product.
pub(super) fn product_buffer<T: Real>(distances: &Distances<'_, T>, n: usize, m: usize) -> Option<Mat<T>> {
    distances.by_product().then(|| {
        let mut buffer = Mat::zeros(n, m);
        distances.fill_by_product(buffer.as_mut());
        buffer
    })
}
