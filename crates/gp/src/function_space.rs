//! **C functions observed through any likelihood**, near which it is quadratic: the exact posterior covariance without weights, for any [`BlockKernel`].
//!
//! Let R be roots of the observations' precision (`R Rᵀ = B`, one block for each point), `k / a` the prior and s the strength of the data. Then
//!
//! ```text
//! S = I + (s / a) Rᵀ k R             well conditioned even where B is singular (softmax)
//! V(x, z) = k(x, z) / a - T(x)ᵀ S⁻¹ T(z),   T(x) = s^(1/2) Rᵀ k(X, x) / a
//! log det(I + (s / a) M) = log det S        with the eigenvalues of Rᵀ k R, which are those of the curvature
//! ```
//!
//! Cost: one Cholesky factorisation of the observed directions; for each predicted point a row of the kernel and a triangular solve. Source: spec `linearised_laplace`, section 5.11; `valla`, section 4.2.

use faer::{Mat, MatRef};
use posterior_kernels::BlockKernel;
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};

/// Share of a prior variance that rounding may take off a posterior variance of zero.
const ROUNDING: f64 = 1e-8;

/// Numbers of the kernel between observed directions and predicted points that are held at one time.
const CROSS: usize = 1 << 24;

/// The posterior for one prior precision and strength, of a kernel `Rᵀ k R` between observed directions.
#[derive(Clone, Debug)]
pub struct FunctionSpacePosterior {
    factor: Cholesky,
    precision: f64,
    strength: f64,
}

/// Observed points with the directions in which they were observed, points * width x C.
pub type Observed<'a, P> = (&'a P, MatRef<'a, f64>);

impl FunctionSpacePosterior {
    /// Conditions on data of a strength s under a prior `k / a` of precision a.
    ///
    /// # Errors
    /// When the kernel is not finite, or so far from positive semidefinite that jitter does not help.
    pub fn new(kernel: MatRef<'_, f64>, precision: f64, strength: f64) -> Result<Self, CholeskyError> {
        let mut s = kernel * faer::Scale(strength / precision);
        (0..s.nrows()).for_each(|i| s[(i, i)] += 1.0);
        Ok(Self { factor: Cholesky::of(s.as_ref(), JitterPolicy::default())?, precision, strength })
    }

    /// Points that are predicted at one time, for so many observed directions and C outputs.
    pub fn points_at_once(directions: usize, outputs: usize) -> usize {
        (CROSS / (directions * outputs).max(1)).clamp(1, 512)
    }

    /// `S^(-1/2) T` for all outputs of some points, directions x (points * C).
    fn whitened<K: BlockKernel<f64> + ?Sized>(
        &self,
        kernel: &K,
        (x, along): Observed<'_, K::Points>,
        z: &K::Points,
    ) -> Result<Mat<f64>, K::Error> {
        let mut white = kernel.cross((x, Some(along)), (z, None))?;
        white *= faer::Scale(self.strength.sqrt() / self.precision);
        self.factor.solve_factor_in_place(white.as_mut());
        Ok(white)
    }

    /// Covariances of a few points' outputs, `[points, C]` variances or `[points, C, C]`; and how many variances rounding had made negative.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn covariances<K: BlockKernel<f64> + ?Sized>(
        &self,
        kernel: &K,
        observed: Observed<'_, K::Points>,
        z: &K::Points,
        full: bool,
    ) -> Result<(Vec<f64>, usize), K::Error> {
        let (c, count) = (kernel.outputs(), kernel.count(z));
        let prior = kernel.blocks(z, None)?;
        let white = self.whitened(kernel, observed, z)?;
        let (mut out, mut clipped) = (Vec::with_capacity(count * if full { c * c } else { c }), 0);
        for (n, prior) in prior.chunks_exact((c * c).max(1)).enumerate() {
            let own = white.as_ref().subcols(n * c, c);
            for o in 0..c {
                for k in if full { 0..c } else { o..o + 1 } {
                    let explained: f64 = (0..own.nrows()).map(|r| own[(r, o)] * own[(r, k)]).sum();
                    let prior = prior[o * c + k] / self.precision;
                    let mut left = prior - explained;
                    // What rounding leaves of two numbers that are equal; more than that is an error that the likelihood finds.
                    if o == k && left < 0.0 && left > -ROUNDING * prior {
                        left = 0.0;
                        clipped += 1;
                    }
                    out.push(left);
                }
            }
        }
        Ok((out, clipped))
    }

    /// Joint covariance of all outputs of all points, (points * C) x (points * C).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn joint<K: BlockKernel<f64> + ?Sized>(
        &self,
        kernel: &K,
        observed: Observed<'_, K::Points>,
        z: &K::Points,
    ) -> Result<Mat<f64>, K::Error> {
        let white = self.whitened(kernel, observed, z)?;
        Ok(kernel.gram(z, None)? * faer::Scale(1.0 / self.precision) - white.transpose() * &white)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ExactGp;
    use crate::{MeanForm, Observations, Posterior};
    use posterior_kernels::{Kernel, KernelExpression};
    use posterior_likelihoods::Gaussian;

    /// Gaussian noise is a likelihood like others: its root is a number for each point.
    #[test]
    fn a_process_of_one_function_has_the_exact_posterior() {
        let wave = |k: usize| (k as f64 * 0.83).sin() * 2.0;
        let x = Mat::from_fn(12, 2, |i, j| wave(2 * i + j + 1));
        let z = Mat::from_fn(5, 2, |i, j| wave(3 * i + j + 40));
        let noise = 0.3f64;
        let expression: KernelExpression = "matern32(ard)".parse().unwrap();
        let kernel: Box<dyn Kernel<f64>> = expression.build(&["a".into(), "b".into()]).unwrap();
        let model = ExactGp::new(kernel.clone_box(), MeanForm::Zero, Gaussian::new(noise, 1e-9), 2, 1);
        let data = Observations::new(x.clone(), Mat::zeros(12, 1), None).unwrap();
        let exact = model.condition(data).unwrap();
        let (marginal, joint) = (exact.predict(z.as_ref()).unwrap(), exact.joint(z.as_ref()).unwrap());
        // The noise in the root, and in the strength.
        for (root, strength) in [(1.0 / noise.sqrt(), 1.0), (1.0, 1.0 / noise)] {
            let along = Mat::from_fn(12, 1, |_, _| root);
            let observed = (&x, along.as_ref());
            let gram = kernel.gram(&x, Some(along.as_ref())).unwrap();
            let posterior = FunctionSpacePosterior::new(gram.as_ref(), 1.0, strength).unwrap();
            let (variances, clipped) = posterior.covariances(&*kernel, observed, &z, false).unwrap();
            assert_eq!(clipped, 0);
            for (found, expected) in variances.iter().zip(&marginal.latent_variance) {
                assert!((found - expected).abs() < 1e-12);
            }
            let difference = posterior.joint(&*kernel, observed, &z).unwrap() - &joint.covariance;
            assert!(difference.norm_max() < 1e-12);
            assert_eq!(posterior.covariances(&*kernel, observed, &z, true).unwrap().0, variances);
        }
        let nan = Mat::from_fn(2, 2, |_, _| f64::NAN);
        assert!(FunctionSpacePosterior::new(nan.as_ref(), 1.0, 1.0).is_err());
    }

    #[test]
    fn pieces_directions_and_gradients_of_a_kernel_of_one_function_are_those_of_its_matrix() {
        let wave = |k: usize| (k as f64 * 0.61).cos();
        let expression: KernelExpression = "squared_exponential".parse().unwrap();
        let kernel: Box<dyn Kernel<f64>> = expression.build(&["a".into()]).unwrap();
        let x = Mat::from_fn(1500, 1, |i, _| wave(i));
        let z = Mat::from_fn(3, 1, |i, _| wave(i + 7));
        let along = Mat::from_fn(1500, 1, |i, _| wave(2 * i));
        let cross = kernel.cross((&x, Some(along.as_ref())), (&z, None)).unwrap();
        let plain = posterior_kernels::cross(&*kernel, x.as_ref(), z.as_ref());
        let gram = kernel.gram(&x, None).unwrap();
        for i in [0, 700, 1200, 1499] {
            assert!((0..3).all(|j| (cross[(i, j)] - along[(i, 0)] * plain[(i, j)]).abs() < 1e-14));
            assert!((0..1500).all(|j| gram[(i, j)] == gram[(j, i)]));
        }
        let few = x.as_ref().subrows(0, 4).to_owned();
        let prepared = BlockKernel::prepare(&*kernel, &few, 0..4, None).unwrap();
        let adjoint = Mat::from_fn(4, 3, |i, j| wave(i + 5 * j));
        let gradient = BlockKernel::pullback(&*kernel, &prepared, &z, None, adjoint.as_ref()).unwrap();
        let loss = |z: &Mat<f64>| {
            let k = kernel.cross((&few, None), (z, None)).unwrap();
            (0..12).map(|k_| adjoint[(k_ / 3, k_ % 3)] * k[(k_ / 3, k_ % 3)]).sum::<f64>()
        };
        for j in 0..3 {
            let step = 1e-6;
            let moved = |h: f64| Mat::from_fn(3, 1, |i, _| z[(i, 0)] + if i == j { h } else { 0.0 });
            let slope = (loss(&moved(step)) - loss(&moved(-step))) / (2.0 * step);
            assert!((slope - gradient[(j, 0)]).abs() < 1e-8, "{slope} {}", gradient[(j, 0)]);
        }
    }
}
