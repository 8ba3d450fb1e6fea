//! A kernel of its own, conditioned on the inducing points: `r₀ - φ₀ᵀ φ₀` with features `φ₀ = L₀⁻¹ r₀(Z, x)`, `L₀` the factor of `r₀(Z, Z)` or, where that is fixed, of the prior's `K_ZZ`.

use super::super::reference::{JITTER, ReferenceProcess};
use crate::GpError;
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_kernels::inducing::Whitening;
use posterior_linalg::cholesky::JitterPolicy;
use std::borrow::Cow;

/// `φ₀` of some rows and its factor.
#[derive(Debug)]
pub(super) struct Conditioned<'a> {
    whitening: Cow<'a, Whitening>,
    /// M x b.
    pub(super) features: Mat<f64>,
    fixed: bool,
}

/// What may be added beyond [`JITTER`].
const MORE: JitterPolicy = JitterPolicy { initial: 1e-9, growth: 10.0, largest: 1e-4 };

impl<'a> Conditioned<'a> {
    pub(super) fn new(
        kernel: &dyn Kernel<f64>,
        fixed: bool,
        reference: &'a ReferenceProcess,
        x: MatRef<'_, f64>,
    ) -> Result<Self, GpError> {
        let z = reference.inducing();
        let whitening = match fixed {
            true => Cow::Borrowed(reference.whitening()),
            false => Cow::Owned(Whitening::new(kernel, z, JITTER, MORE)?),
        };
        let features = whitening.features(kernel, z, x);
        Ok(Self { whitening, features, fixed })
    }

    /// Adds what an adjoint of the features (M x b, overwritten) says of the kernel's parameters.
    pub(super) fn pull_back(
        &self,
        kernel: &dyn Kernel<f64>,
        z: MatRef<'_, f64>,
        x: MatRef<'_, f64>,
        mut adjoint: Mat<f64>,
        gradient: &mut [f64],
    ) {
        let mut add = |parameters: Vec<f64>| gradient.iter_mut().zip(parameters).for_each(|(g, p)| *g += p);
        if !self.fixed {
            let outer = &adjoint * self.features.transpose();
            add(self.whitening.pull_back_factor(kernel, z, outer, false).parameters);
        }
        add(self.whitening.pull_back_features(kernel, z, x, &mut adjoint, false).parameters);
    }

    /// What was added to the diagonal of its matrix, relative to its mean.
    pub(super) fn relative_jitter(&self) -> f64 {
        self.whitening.relative_jitter
    }
}
