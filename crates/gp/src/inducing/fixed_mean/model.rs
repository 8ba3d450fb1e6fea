//! What is fitted.

use super::FixedMeanError;
use faer::{Mat, MatRef};
use posterior_kernels::LearnedBlockKernel;
use posterior_likelihoods::Likelihood;
use serde::{Deserialize, Serialize};

/// Which parameters a fit moves besides L and the companion's mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The inducing points.
    pub inducing: bool,
    /// The prior variance in front of the kernel.
    pub amplitude: bool,
    /// The likelihood's own parameters (noise).
    pub likelihood: bool,
    /// The kernel's parameters.
    pub kernel: bool,
}

impl Learned {
    /// Everything.
    pub const ALL: Self = Self { inducing: true, amplitude: true, likelihood: true, kernel: true };
    /// Only L and the companion's mean.
    pub const NONE: Self = Self { inducing: false, amplitude: false, likelihood: false, kernel: false };
}

/// A sparse process with C outputs whose posterior mean is given: everything but that mean.
pub struct FixedMeanModel<K: LearnedBlockKernel> {
    pub(super) kernel: K,
    pub(super) likelihood: Box<dyn Likelihood>,
    pub(super) points: K::Points,
    pub(super) labels: Vec<usize>,
    /// The labels as directions, M x C.
    pub(super) along: Mat<f64>,
    pub(super) root: Mat<f64>,
    pub(super) amplitude: f64,
    pub(super) companion: Option<Vec<f64>>,
    /// Which parameters a fit moves.
    pub learned: Learned,
}

impl<K: LearnedBlockKernel> std::fmt::Debug for FixedMeanModel<K> {
    /// Without points, which need no form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FixedMeanModel")
            .field("likelihood", &self.likelihood)
            .field("labels", &self.labels)
            .field("amplitude", &self.amplitude)
            .field("learned", &self.learned)
            .finish_non_exhaustive()
    }
}

impl<K: LearnedBlockKernel + Clone> Clone for FixedMeanModel<K> {
    fn clone(&self) -> Self {
        Self {
            kernel: self.kernel.clone(),
            likelihood: self.likelihood.clone(),
            points: self.points.clone(),
            labels: self.labels.clone(),
            along: self.along.clone(),
            root: self.root.clone(),
            companion: self.companion.clone(),
            ..*self
        }
    }
}

impl<K: LearnedBlockKernel> FixedMeanModel<K> {
    /// A model with `L = I`. `points` are the M inducing points, `labels` the output that each looks at; `amplitude` is the prior variance, a factor in front of the kernel;
    /// `companion` says whether the second process (spec `fixed_mean_gp`, section 2) takes part, whose mean starts at zero.
    ///
    /// # Errors
    /// Sizes that do not fit each other, a label that is no output, an amplitude that is no positive number.
    pub fn new(
        kernel: K,
        likelihood: Box<dyn Likelihood>,
        points: K::Points,
        labels: Vec<usize>,
        amplitude: f64,
        companion: bool,
    ) -> Result<Self, FixedMeanError> {
        let (m, c) = (kernel.count(&points), kernel.outputs());
        FixedMeanError::same("outputs of the kernel and of the likelihood", likelihood.outputs(), c)?;
        FixedMeanError::same("labels of inducing points", m, labels.len())?;
        let error = |option, value: String, remedy| Err(FixedMeanError::Option { option, value, remedy });
        if m == 0 {
            return error("inducing_points", "0".into(), "give at least one");
        }
        if let Some(label) = labels.iter().find(|label| **label >= c) {
            return error("the label of an inducing point", label.to_string(), "outputs count from 0");
        }
        let along = Mat::from_fn(m, c, |i, j| f64::from(u8::from(labels[i] == j)));
        let (root, companion) = (Mat::identity(m, m), companion.then(|| vec![0.0; m]));
        let learned = Learned::ALL;
        let mut out =
            Self { kernel, likelihood, points, labels, along, root, amplitude: 1.0, companion, learned };
        out.set_amplitude(amplitude)?;
        Ok(out)
    }

    /// The kernel, without the amplitude.
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    /// How observations scatter.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// The inducing points.
    pub fn points(&self) -> &K::Points {
        &self.points
    }

    /// The output that each inducing point looks at.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// L, M x M, zero above its diagonal.
    pub fn root(&self) -> MatRef<'_, f64> {
        self.root.as_ref()
    }

    /// Replaces L; what stands above its diagonal is left out.
    ///
    /// # Errors
    /// When it is not M x M.
    pub fn set_root(&mut self, root: MatRef<'_, f64>) -> Result<(), FixedMeanError> {
        FixedMeanError::same("rows of L", self.labels.len(), root.nrows())?;
        FixedMeanError::same("columns of L", self.labels.len(), root.ncols())?;
        self.root = Mat::from_fn(root.nrows(), root.ncols(), |i, j| if j <= i { root[(i, j)] } else { 0.0 });
        Ok(())
    }

    /// The prior variance, a factor in front of the kernel.
    pub fn amplitude(&self) -> f64 {
        self.amplitude
    }

    /// Replaces it.
    ///
    /// # Errors
    /// When it is no positive number.
    pub fn set_amplitude(&mut self, amplitude: f64) -> Result<(), FixedMeanError> {
        if !(amplitude > 0.0 && amplitude.is_finite()) {
            let (option, remedy) = ("the prior variance", "give a positive number, such as 1");
            return Err(FixedMeanError::Option { option, value: amplitude.to_string(), remedy });
        }
        self.amplitude = amplitude;
        Ok(())
    }

    /// The companion's mean at the inducing points, where it takes part.
    pub fn companion(&self) -> Option<&[f64]> {
        self.companion.as_deref()
    }

    /// M, the number of inducing points.
    pub fn inducing(&self) -> usize {
        self.labels.len()
    }

    /// C, the number of outputs.
    pub fn outputs(&self) -> usize {
        self.along.ncols()
    }

    /// The inducing points as the kernel wants them.
    pub(super) fn prepare(&self) -> Result<K::Prepared, FixedMeanError> {
        let (m, along) = (self.inducing(), Some(self.along.as_ref()));
        self.kernel.prepare(&self.points, 0..m, along).map_err(FixedMeanError::kernel)
    }

    /// The prior covariance of the inducing values, exactly symmetric.
    pub(super) fn gram(&self, prepared: &K::Prepared) -> Mat<f64> {
        let mut gram = self.kernel.tile(prepared, prepared);
        gram *= faer::Scale(self.amplitude);
        posterior_linalg::symmetric::mirror_lower(gram.as_mut());
        gram
    }
}
