//! Predictions: covariances of any points from what the inducing points have learned. The mean is whatever was given.

use super::covariance::factored;
use super::{FixedMeanError, FixedMeanModel};
use faer::{Mat, MatRef};
use posterior_kernels::{BlockKernel, LearnedBlockKernel};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use posterior_linalg::tiles::pieces;
use posterior_linalg::vectorised::{dispatch, dot};

/// Numbers of the kernel between inducing points and predicted ones that are held at one time.
const CROSS: usize = 1 << 20;

/// `a k(x, x') - a² k(x, Z) Wᵀ W k(Z, x')`, in either precision.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseCovariance<T: Real> {
    /// W, M x M.
    whitener: Mat<T>,
    amplitude: f64,
}

/// What rows are known by.
type Rows<'a, P> = (&'a P, std::ops::Range<usize>);

impl<T: Real> SparseCovariance<T> {
    /// From W (`S = Wᵀ W`) and the prior variance in front of the kernel.
    ///
    /// # Errors
    /// When W is not square or a number is not finite.
    pub fn from_parts(whitener: Mat<T>, amplitude: f64) -> Result<Self, FixedMeanError> {
        FixedMeanError::same("columns of the root of S", whitener.nrows(), whitener.ncols())?;
        for j in 0..whitener.ncols() {
            if let Some(row) = whitener.col(j).iter().position(|v| !v.is_finite()) {
                return Err(FixedMeanError::NotFinite { what: "the root of S", row });
            }
        }
        if !(amplitude > 0.0 && amplitude.is_finite()) {
            return Err(FixedMeanError::Option {
                option: "the prior variance",
                value: amplitude.to_string(),
                remedy: "give a positive number",
            });
        }
        Ok(Self { whitener, amplitude })
    }

    /// W, M x M.
    pub fn whitener(&self) -> MatRef<'_, T> {
        self.whitener.as_ref()
    }

    /// The prior variance in front of the kernel.
    pub fn amplitude(&self) -> f64 {
        self.amplitude
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> SparseCovariance<U> {
        let (m, w) = (self.whitener.nrows(), &self.whitener);
        let whitener = Mat::from_fn(m, m, |i, j| U::from_f64(w[(i, j)].to_f64()));
        SparseCovariance { whitener, amplitude: self.amplitude }
    }

    /// Covariances of the outputs of a range of points, `[points, C]` variances or `[points, C, C]`; and how many variances rounding had made negative, which become zero. `inducing`
    /// are the inducing points, prepared along their outputs. Cost for each point: C rows of the kernel, `2 C M²` flops and `2 C² M`; memory a few points' share of the kernel.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn covariances<K: BlockKernel<T> + ?Sized>(
        &self,
        kernel: &K,
        inducing: &K::Prepared,
        (x, range): Rows<'_, K::Points>,
        full: bool,
    ) -> Result<(Vec<f64>, usize), K::Error> {
        let (mut out, mut clipped) = (Vec::new(), 0);
        for part in pieces(range.len(), self.points_at_once(kernel)) {
            let part = range.start + part.start..range.start + part.end;
            clipped += self.add(&PointCovariances::new(kernel, inducing, (x, part))?, full, &mut out);
        }
        Ok((out, clipped))
    }

    /// Points that are best looked at together.
    pub fn points_at_once<K: BlockKernel<T> + ?Sized>(&self, kernel: &K) -> usize {
        let (c, m) = (kernel.outputs(), self.whitener.nrows());
        // A tile turns its points: they are held twice.
        kernel.points_at_once(2 * c).min((CROSS / (c * m).max(1)).max(1))
    }

    /// The same from what the kernel says about the points. Cost for each: `2 C M²` flops and `2 C² M`.
    pub fn covariances_of(&self, seen: &PointCovariances<T>, full: bool) -> (Vec<f64>, usize) {
        let mut out = Vec::new();
        let clipped = self.add(seen, full, &mut out);
        (out, clipped)
    }

    fn add(&self, seen: &PointCovariances<T>, full: bool, out: &mut Vec<f64>) -> usize {
        let (a, squared) = (T::from_f64(self.amplitude), T::from_f64(self.amplitude * self.amplitude));
        let (c, mut clipped) = (seen.outputs, 0);
        let white = product(self.whitener.as_ref(), seen.cross.as_ref());
        for (n, prior) in seen.prior.chunks_exact((c * c).max(1)).enumerate() {
            for i in 0..c {
                for j in if full { 0..c } else { i..i + 1 } {
                    if j < i {
                        // The block is symmetric, and this entry stands there already.
                        out.push(out[out.len() - (i - j) * (c - 1)]);
                        continue;
                    }
                    let (own, other) = (white.col_as_slice(n * c + i), white.col_as_slice(n * c + j));
                    let explained = dispatch(
                        #[inline(always)]
                        || dot(own, other),
                    );
                    let mut left = (a * prior[i * c + j] - squared * explained).to_f64();
                    // NaN stays.
                    if i == j && left < 0.0 {
                        left = 0.0;
                        clipped += 1;
                    }
                    out.push(left);
                }
            }
        }
        clipped
    }

    /// Joint covariance of all outputs of all points, (points * C) x (points * C).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn joint<K: BlockKernel<T> + ?Sized>(
        &self,
        kernel: &K,
        inducing: &K::Prepared,
        x: &K::Points,
    ) -> Result<Mat<f64>, K::Error> {
        let (c, count) = (kernel.outputs(), kernel.count(x));
        let mut white = Mat::<T>::zeros(self.whitener.nrows(), count * c);
        for part in pieces(count, kernel.points_at_once(c)) {
            let prepared = kernel.prepare(x, part.clone(), None)?;
            let tile = product(self.whitener.as_ref(), kernel.tile(inducing, &prepared).as_ref());
            white.as_mut().subcols_mut(part.start * c, part.len() * c).copy_from(tile);
        }
        let a = T::from_f64(self.amplitude);
        let explained = product(white.transpose(), white.as_ref());
        let prior = kernel.gram(x, None)?;
        Ok(Mat::from_fn(count * c, count * c, |i, j| {
            (a * prior[(i, j)] - a * a * explained[(i, j)]).to_f64()
        }))
    }
}

/// What a kernel says about some points, whatever L and the amplitude are: `k(Z, x)` and `k(x, x)`.
#[derive(Clone, Debug)]
pub struct PointCovariances<T: Real> {
    /// M x (points * C).
    cross: Mat<T>,
    /// `[points, C, C]`.
    prior: Vec<T>,
    outputs: usize,
}

impl<T: Real> PointCovariances<T> {
    /// A range of a set, no more than [`SparseCovariance::points_at_once`] unless memory is plenty.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn new<K: BlockKernel<T> + ?Sized>(
        kernel: &K,
        inducing: &K::Prepared,
        (x, range): Rows<'_, K::Points>,
    ) -> Result<Self, K::Error> {
        let x = kernel.prepare(x, range, None)?;
        Ok(Self { cross: kernel.tile(inducing, &x), prior: kernel.diagonal(&x), outputs: kernel.outputs() })
    }
}

impl<K: LearnedBlockKernel> FixedMeanModel<K> {
    /// The posterior covariance. Cost about `5 M³` flops.
    ///
    /// # Errors
    /// When the kernel refuses the inducing points or a number is not finite.
    pub fn covariance(&self) -> Result<SparseCovariance<f64>, FixedMeanError> {
        let gram = self.gram(&self.prepare()?);
        SparseCovariance::from_parts(factored(&gram, &self.root)?.whitener, self.amplitude)
    }

    /// The inducing points as predictions want them.
    ///
    /// # Errors
    /// When the kernel refuses them.
    pub fn prepared_points(&self) -> Result<K::Prepared, FixedMeanError> {
        self.prepare()
    }

    /// The directions in which inducing points are looked at, M x C.
    pub fn directions(&self) -> MatRef<'_, f64> {
        self.along.as_ref()
    }

    /// The divergence of the posterior from the prior, in nats.
    ///
    /// # Errors
    /// As [`Self::covariance`].
    pub fn divergence(&self) -> Result<f64, FixedMeanError> {
        let gram = self.gram(&self.prepare()?);
        Ok(factored(&gram, &self.root)?.divergence)
    }
}
