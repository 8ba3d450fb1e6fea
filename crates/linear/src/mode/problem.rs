//! What is minimised.

use crate::dense::{column, to_vec};
use crate::features::{BatchSource, FeatureMap, chunks};
use crate::noise::Noise;
use crate::{LinearError, check};
use posterior_likelihoods::Likelihood;

/// Examples per pass unless told otherwise.
const CHUNK: usize = 1024;

/// Data, features and likelihood of a linear model, `f(x) = f0(x) + phi(x) w`; the prior comes with each call, since it is what changes.
pub struct ModeProblem<'a, F: FeatureMap> {
    features: &'a F,
    source: &'a dyn BatchSource<F::Batch>,
    likelihood: &'a dyn Likelihood,
    targets: &'a [f64],
    offset: Option<&'a [f64]>,
    chunk: usize,
}

// Not derived: a problem holds references only, so that it can be copied whatever the feature map is.
impl<F: FeatureMap> Clone for ModeProblem<'_, F> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, F: FeatureMap> ModeProblem<'a, F> {
    /// A problem with `targets` of [`target_width`](Likelihood::target_width) numbers per example and no offset.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::Empty`] without parameters, [`LinearError::Target`].
    pub fn new(
        features: &'a F,
        source: &'a dyn BatchSource<F::Batch>,
        likelihood: &'a dyn Likelihood,
        targets: &'a [f64],
    ) -> Result<Self, LinearError> {
        if features.dimension() == 0 {
            return Err(LinearError::Empty { what: "parameters" });
        }
        check::same("outputs of the likelihood", features.outputs(), likelihood.outputs())?;
        let width = likelihood.target_width();
        let expected = source.examples().saturating_mul(width);
        check::same("numbers in the targets", expected, targets.len())?;
        for example in 0..source.examples() {
            let y = &targets[example * width..(example + 1) * width];
            likelihood.check_target(y).map_err(|error| LinearError::Target { example, error })?;
        }
        Ok(Self { features, source, likelihood, targets, offset: None, chunk: CHUNK })
    }

    /// The same with an offset `f0` of one number per example and output (nC), as a network's linearisation has: `g - J v`.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn with_offset(self, offset: &'a [f64]) -> Result<Self, LinearError> {
        check::same("numbers in the offset", self.rows(), offset.len())?;
        check::finite("offset", offset)?;
        Ok(Self { offset: Some(offset), ..self })
    }

    /// The same with `f0 = 0`: the simplified model of normalised networks (spec `linearised_laplace`, section 4.5).
    pub fn without_offset(self) -> Self {
        Self { offset: None, ..self }
    }

    /// The same with `chunk` examples at a time in passes over all data; 0 counts as 1.
    pub fn with_chunk(self, chunk: usize) -> Self {
        Self { chunk: chunk.max(1), ..self }
    }

    /// The features.
    pub fn features(&self) -> &'a F {
        self.features
    }

    /// The examples.
    pub fn source(&self) -> &'a dyn BatchSource<F::Batch> {
        self.source
    }

    /// Examples at a time.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Parameters, d.
    pub fn dimension(&self) -> usize {
        self.features.dimension()
    }

    /// Examples times outputs, nC.
    pub fn rows(&self) -> usize {
        self.source.examples().saturating_mul(self.features.outputs())
    }

    pub(super) fn check(&self, precisions: &[f64], weights: &[f64]) -> Result<(), LinearError> {
        check::same("prior precisions", self.dimension(), precisions.len())?;
        check::positive("prior precision", precisions)?;
        check::same("weights", self.dimension(), weights.len())?;
        check::finite("weight", weights)
    }

    /// The outputs `f0 + Phi w` of all examples (nC).
    ///
    /// # Errors
    /// [`LinearError::Shape`]; those of the feature map and of reading the data.
    pub fn outputs(&self, weights: &[f64]) -> Result<Vec<f64>, LinearError> {
        let mut out = Vec::with_capacity(self.rows());
        for indices in chunks(self.source.examples(), self.chunk) {
            self.source.with_batch(&indices, &mut |batch| {
                let f = self.features.apply(batch, column(weights))?;
                check::same("rows of the outputs", indices.len() * self.features.outputs(), f.nrows())?;
                out.extend(f.col(0).iter());
                Ok(())
            })?;
        }
        if let Some(offset) = self.offset {
            out.iter_mut().zip(offset).for_each(|(f, f0)| *f += f0);
        }
        Ok(out)
    }

    /// `log p(y | f0 + Phi w)` over all examples.
    ///
    /// # Errors
    /// As [`ModeProblem::outputs`].
    pub fn log_likelihood(&self, weights: &[f64]) -> Result<f64, LinearError> {
        let (c, width) = (self.features.outputs(), self.likelihood.target_width());
        let outputs = self.outputs(weights)?;
        let each = outputs.chunks_exact(c).enumerate();
        Ok(each.map(|(i, f)| self.likelihood.log_density(&self.targets[i * width..(i + 1) * width], f)).sum())
    }

    /// The curvature `B_i` of the likelihood at the outputs of `weights`.
    ///
    /// # Errors
    /// As [`ModeProblem::outputs`]; [`LinearError::NotFinite`] when the likelihood gives a root that is not finite.
    pub fn curvature(&self, weights: &[f64]) -> Result<Noise, LinearError> {
        curvature_at(self.likelihood, self.targets, &self.outputs(weights)?)
    }

    /// The objective and its gradient, over all data.
    ///
    /// # Errors
    /// As [`ModeProblem::outputs`].
    pub fn objective(
        &self,
        weights: &[f64],
        precisions: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, LinearError> {
        gradient.fill(0.0);
        let mut value = 0.0;
        for indices in chunks(self.source.examples(), self.chunk) {
            value += self.add_batch(weights, &indices, 1.0, gradient)?;
        }
        Ok(value + add_prior(weights, precisions, gradient))
    }

    /// `scale` times the loss of the listed examples; adds its gradient in the weights.
    pub(super) fn add_batch(
        &self,
        weights: &[f64],
        indices: &[usize],
        scale: f64,
        gradient: &mut [f64],
    ) -> Result<f64, LinearError> {
        let (c, width) = (self.features.outputs(), self.likelihood.target_width());
        let mut value = 0.0;
        self.source.with_batch(indices, &mut |batch| {
            let mut f = to_vec(&self.features.apply(batch, column(weights))?);
            check::same("rows of the outputs", indices.len() * c, f.len())?;
            let mut slope = vec![0.0; f.len()];
            for (k, &i) in indices.iter().enumerate() {
                let f = &mut f[k * c..(k + 1) * c];
                if let Some(offset) = self.offset {
                    f.iter_mut().zip(&offset[i * c..]).for_each(|(f, f0)| *f += f0);
                }
                let y = &self.targets[i * width..(i + 1) * width];
                value -= scale * self.likelihood.log_density(y, f);
                self.likelihood.gradient(y, f, &mut slope[k * c..(k + 1) * c]);
            }
            let back = self.features.apply_transpose(batch, column(&slope))?;
            gradient.iter_mut().enumerate().for_each(|(j, g)| *g -= scale * back[(j, 0)]);
            Ok(())
        })?;
        Ok(value)
    }
}

/// `1/2 |w|²_A`; adds its gradient.
pub(super) fn add_prior(weights: &[f64], precisions: &[f64], gradient: &mut [f64]) -> f64 {
    let mut value = 0.0;
    for ((g, w), a) in gradient.iter_mut().zip(weights).zip(precisions) {
        *g += a * w;
        value += 0.5 * a * w * w;
    }
    value
}

/// The curvature `B_i` of a likelihood at given outputs (nC), as a noise precision. `targets` has `target_width` numbers per example.
///
/// # Errors
/// [`LinearError::Shape`]; [`LinearError::NotFinite`] when a curvature is not finite; [`LinearError::TooLarge`].
pub fn curvature_at(
    likelihood: &dyn Likelihood,
    targets: &[f64],
    outputs: &[f64],
) -> Result<Noise, LinearError> {
    let (c, width) = (likelihood.outputs(), likelihood.target_width());
    if c == 0 {
        return Err(LinearError::Empty { what: "outputs" });
    }
    let examples = outputs.len() / c;
    check::same("outputs, a multiple of those of one example", examples * c, outputs.len())?;
    check::same("numbers in the targets", examples.saturating_mul(width), targets.len())?;
    check::size("the curvature blocks", outputs.len(), c, check::BUFFER_LIMIT)?;
    check::finite("output", outputs)?;
    let mut blocks = vec![0.0; outputs.len() * c];
    // Roots of fewer columns than C are completed by columns of zeros.
    let columns = likelihood.root_width();
    let mut root = vec![0.0; c * columns];
    for (i, block) in blocks.chunks_exact_mut(c * c).enumerate() {
        likelihood.root(&targets[i * width..(i + 1) * width], &outputs[i * c..(i + 1) * c], &mut root);
        for (to, from) in block.chunks_exact_mut(c).zip(root.chunks_exact(columns)) {
            to[..columns].copy_from_slice(from);
        }
    }
    Noise::from_roots(c, blocks)
}
