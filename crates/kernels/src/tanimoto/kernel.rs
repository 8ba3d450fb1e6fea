//! The Tanimoto kernel on dense vectors of counts.

use crate::features::{FeatureError, FeatureRecipe};
use crate::inputs::{Columns, Points};
use crate::kernel::{Adjoints, Kernel, Pair, column, entries};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::vectorised::dispatch;
use posterior_optim::{Parameters, Segment};

/// `k = Σ_d min(x_d, z_d) / Σ_d max(x_d, z_d)` on columns of non-negative numbers (counts of a fingerprint, say): the share of what two
/// vectors have in common. It has no parameters; two vectors of zeros are alike (1). A negative number is no count and gives NaN.
///
/// Positive definite: it is the probability that two weighted samples agree. A tile costs 3 flops a dimension and entry. For vectors
/// of mostly zeros see [`super::SparseCounts`].
///
/// Sources: P. Jaccard (1912); L. Ralaivola and others, "Graph kernels for chemical informatics", Neural Networks 18 (2005), section 4.2.
#[derive(Clone, Debug)]
pub struct Tanimoto {
    columns: Columns,
}

impl Tanimoto {
    /// The kernel on some columns.
    pub fn new(columns: Columns) -> Self {
        Self { columns }
    }

    /// The chosen columns, and their sums over each row.
    fn points<T: Real>(&self, x: MatRef<'_, T>) -> (Points<T>, Vec<T>) {
        let nan = T::from_f64(f64::NAN);
        let points = Points::map(x, &self.columns, |_, v| if v < T::ZERO { nan } else { v });
        let mut sums = vec![T::ZERO; x.nrows()];
        for d in 0..points.count() {
            sums.iter_mut().zip(points.column(d)).for_each(|(s, &v)| *s += v);
        }
        (points, sums)
    }
}

/// `Σ_d min(x_id, z_jd)` for all i. NaN would be lost in a minimum; it is found again in the sums.
#[inline(always)]
fn shared<T: Real>(x: &Points<T>, z: &Points<T>, j: usize, out: &mut [T]) {
    out.fill(T::ZERO);
    for d in 0..x.count() {
        let (xd, zd) = (&x.column(d)[..out.len()], z.column(d)[j]);
        for i in 0..out.len() {
            out[i] += if xd[i] < zd { xd[i] } else { zd };
        }
    }
}

/// The kernel's value for what is shared and the sums of both.
#[inline(always)]
pub(super) fn value<T: Real>(shared: T, both: T) -> T {
    let ratio = shared / (both - shared);
    if both == T::ZERO { T::ONE } else { ratio }
}

impl Parameters for Tanimoto {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the Tanimoto kernel has no parameters");
    }
}

impl<T: Real> Kernel<T> for Tanimoto {
    fn cross_tile(&self, pair: Pair<'_, T>, mut out: MatMut<'_, T>) {
        let ((x, a), (z, b)) = (self.points(pair.x), self.points(pair.z));
        dispatch(
            #[inline(always)]
            || {
                for j in 0..out.ncols() {
                    let out = column(&mut out, j);
                    shared(&x, &z, j, out);
                    let a = &a[..out.len()];
                    for i in 0..out.len() {
                        out[i] = value(out[i], a[i] + b[j]);
                    }
                }
            },
        );
    }

    fn diagonal(&self, x: MatRef<'_, T>, out: &mut [T]) {
        let (_, sums) = self.points(x);
        let zero = T::ZERO;
        // One for whatever is a count, NaN for what is not.
        out.iter_mut().zip(sums).for_each(|(o, s)| *o = s * zero + T::ONE);
    }

    /// With `S = Σ min` and `A = Σ x + Σ z`: `k = S/(A - S)`, `∂k/∂S = A/(A - S)²`, `∂k/∂A = -S/(A - S)²`. A coordinate equal in both has half
    /// the derivative of a minimum for either.
    fn pullback_tile(&self, pair: Pair<'_, T>, adjoint: MatRef<'_, T>, adjoints: &mut Adjoints<T>) -> f64 {
        let ((x, a), (z, b)) = (self.points(pair.x), self.points(pair.z));
        let n = adjoint.nrows();
        let half = T::from_f64(0.5);
        let mut total = 0.0;
        let (mut sum, mut toward_shared, mut toward_both) =
            (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
        for j in 0..adjoint.ncols() {
            shared(&x, &z, j, &mut sum);
            let g = entries(adjoint, j);
            for i in 0..n {
                let both = a[i] + b[j];
                let union = both - sum[i];
                total += (g[i] * value(sum[i], both)).to_f64();
                let weight = if both == T::ZERO { T::ZERO } else { g[i] / (union * union) };
                (toward_shared[i], toward_both[i]) = (weight * both, -(weight * sum[i]));
            }
            for (d, &c) in self.columns.indices().iter().enumerate() {
                let zd = z.column(d)[j];
                for i in 0..n {
                    let xd = x.column(d)[i];
                    let mine = if xd < zd {
                        T::ONE
                    } else if xd > zd {
                        T::ZERO
                    } else {
                        half
                    };
                    if let Some(target) = &mut adjoints.x {
                        target[(i, c)] += toward_both[i] + toward_shared[i] * mine;
                    }
                    if let Some(target) = &mut adjoints.z {
                        target[(j, c)] += toward_both[i] + toward_shared[i] * (T::ONE - mine);
                    }
                }
            }
        }
        total
    }

    fn features(&self) -> Result<FeatureRecipe, FeatureError> {
        Ok(FeatureRecipe::Hashes { columns: self.columns.indices().to_vec() })
    }

    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}
