//! The one vector that a fit moves: L's triangle by columns (free, its diagonal too), the companion's mean, the logarithm of the amplitude, the kernel's and the likelihood's unconstrained
//! parameters, the inducing points' numbers; what is not learned is left out.

use super::energy::EnergyGradient;
use super::{FixedMeanError, FixedMeanModel};
use posterior_kernels::LearnedBlockKernel;
use posterior_linalg::triangular::{pack_lower, unpack_lower};
use posterior_optim::Parameters;

impl<K: LearnedBlockKernel> FixedMeanModel<K> {
    /// The vector.
    pub fn unconstrained(&self) -> Vec<f64> {
        let mut out = Vec::new();
        pack_lower(self.root.as_ref(), &mut out);
        out.extend(self.companion.iter().flatten());
        if self.learned.amplitude {
            out.push(self.amplitude.ln());
        }
        if self.learned.kernel {
            out.extend(self.kernel.unconstrained());
        }
        if self.learned.likelihood {
            out.extend(self.likelihood.unconstrained());
        }
        if self.learned.inducing {
            out.extend(self.kernel.coordinates(&self.points));
        }
        out
    }

    /// Length of the vector.
    fn parameters(&self) -> usize {
        let m = self.inducing();
        m * (m + 1) / 2
            + self.companion.as_ref().map_or(0, Vec::len)
            + usize::from(self.learned.amplitude)
            + if self.learned.kernel { self.kernel.unconstrained().len() } else { 0 }
            + if self.learned.likelihood { self.likelihood.unconstrained().len() } else { 0 }
            + if self.learned.inducing { self.kernel.coordinates(&self.points).len() } else { 0 }
    }

    /// Moves the model there.
    ///
    /// # Errors
    /// When the vector has another length.
    pub fn set_unconstrained(&mut self, theta: &[f64]) -> Result<(), FixedMeanError> {
        FixedMeanError::same("parameters", self.parameters(), theta.len())?;
        let m = self.inducing();
        let mut rest = theta;
        let mut take = |count: usize| {
            let (own, others) = rest.split_at(count);
            rest = others;
            own
        };
        self.root = unpack_lower(take(m * (m + 1) / 2), m);
        if let Some(mean) = &mut self.companion {
            mean.copy_from_slice(take(m));
        }
        if self.learned.amplitude {
            self.amplitude = take(1)[0].exp();
        }
        if self.learned.kernel {
            let own = take(self.kernel.unconstrained().len());
            self.kernel.set_unconstrained(own);
        }
        if self.learned.likelihood {
            let own = take(self.likelihood.unconstrained().len());
            self.likelihood.set_unconstrained(own);
        }
        if self.learned.inducing {
            self.points = self.kernel.with_coordinates(&self.points, rest);
        }
        Ok(())
    }

    /// A gradient as one vector.
    pub fn chain(&self, gradient: &EnergyGradient) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.parameters());
        pack_lower(gradient.root.as_ref(), &mut out);
        out.extend(&gradient.companion);
        if self.learned.amplitude {
            out.push(gradient.log_amplitude);
        }
        if self.learned.kernel {
            out.extend(self.kernel.chain(&self.kernel.unconstrained(), &gradient.kernel));
        }
        if self.learned.likelihood {
            out.extend(self.likelihood.chain(&self.likelihood.unconstrained(), &gradient.likelihood));
        }
        if self.learned.inducing {
            out.extend(&gradient.points);
        }
        out
    }
}
