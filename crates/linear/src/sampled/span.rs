//! The model in the span of what its examples move.

use super::descent::SampledError;
use super::kernel::{Along, pull_along, push_along};
use super::model::{Observer, SampledModel, column};
use super::noise::{Noise, weight_normals};
use super::objective::Objective;
use super::sampler::{Drawn, Sampler, Solve, SolverState, WatchSolver, WeightSpace};
use crate::features::{DenseFeatures, FeatureMap, Numbered};
use crate::structure::Structure;
use crate::{LinearError, check};
use faer::{Mat, MatRef, Scale};
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::Real;
use posterior_linalg::dense::{Eigen, eigen, product};
use posterior_linalg::parallel;
use posterior_optim::Signal;
use std::ops::Range;

/// The same linear model in function space, exactly: with the kernel `Phi Phi' = U D U'` between all outputs of all examples, the columns of `Q = Phi' U D^(-1/2)` are an orthonormal basis of all directions of the weights that
/// move an output of an example. In the coordinates `u = Q' w` the features are `U D^(1/2)`, stored, and the prior of one precision is what it was. Across the span the posterior is the prior.
///
/// So mode, samples and turns cost products with a matrix of rows x rows numbers and not with a network; weights are met twice for each sample, on the way in and out. Under Gaussian noise whose variances are equal the posterior
/// precision is diagonal in `u`.
///
/// Source: spec `linearised_laplace`, section 5.11, with the kernel's eigenvectors in place of its dual variables.
#[derive(Debug)]
pub struct Span {
    /// `U D^(1/2)` (nC x r), with outputs and expansion point of the model.
    features: DenseFeatures,
    source: Numbered,
    /// `D` (r), ascending.
    eigenvalues: Vec<f64>,
    beyond: usize,
}

impl Span {
    /// Of a model whose features are not scaled, and its kernel (nC x nC, row `i C + c`).
    ///
    /// Eigenvalues that rounding of the kernel cannot tell from zero are left out: their directions move nothing. Cost: `9 (nC)³` flops and a pass with one vector, another where there is an expansion point; memory five times the kernel with what finds eigenvectors.
    ///
    /// # Errors
    /// [`LinearError::Shape`]; [`LinearError::Option`] for scaled features; [`LinearError::Empty`] where nothing moves an output; [`LinearError::Eigen`]; those of the features and of reading the data; [`LinearError::Interrupted`].
    pub fn of<T: Real, F: FeatureMap<T>>(
        model: &SampledModel<'_, T, F>,
        kernel: Mat<f64>,
        observer: Observer<'_>,
    ) -> Result<Self, LinearError> {
        if model.scales().is_some() {
            let expected = "function space knows features as they are, not scaled";
            return Err(LinearError::Option { name: "scales", value: f64::NAN, expected });
        }
        let (n, c) = (model.examples(), model.likelihood().outputs());
        check::same("rows of the kernel", n * c, kernel.nrows())?;
        check::same("columns of the kernel", n * c, kernel.ncols())?;
        let failed = || LinearError::Eigen { dimension: n * c };
        if !kernel.is_all_finite() {
            return Err(failed());
        }
        // Eigenvectors are found in one go, without a look at who waits: asked before and after.
        let mut go_on = |done| match observer(done, n) {
            Signal::Continue => Ok(()),
            Signal::Stop => Err(LinearError::Interrupted),
        };
        go_on(0)?;
        let Eigen { values, vectors } = eigen(kernel.as_ref()).map_err(|_| failed())?;
        drop(kernel);
        go_on(0)?;
        let largest = values.last().copied().unwrap_or(0.0).max(0.0);
        let least = largest * values.len() as f64 * f64::EPSILON;
        // No more directions than weights.
        let left_out =
            values.partition_point(|v| *v <= least).max(values.len().saturating_sub(model.dimension()));
        let eigenvalues = values[left_out..].to_vec();
        if eigenvalues.is_empty() {
            return Err(LinearError::Empty { what: "weights that move an output of an example" });
        }
        let mut factor = vectors.subcols(left_out, eigenvalues.len()).to_owned();
        drop(vectors);
        parallel::columns(factor.as_mut(), 1, |j, column| {
            column.iter_mut().for_each(|v| *v *= eigenvalues[j].sqrt());
        });
        let (mut outputs, mut targets) = (Vec::with_capacity(n * c), Vec::new());
        let at_once = model.features().examples_at_once(1);
        model.pass(at_once, None, observer, &mut |_, features, observed| {
            outputs.extend(features.outputs());
            targets.extend_from_slice(observed.targets);
            Ok(())
        })?;
        let beyond = model.dimension() - eigenvalues.len();
        let features = DenseFeatures::new(factor, c)?.with_offset(outputs)?;
        let source = Numbered::new(n, targets)?;
        let mut span = Self { features, source, eigenvalues, beyond };
        if let Some(v) = model.features().expansion_point() {
            let own = span.coordinates(model, column(v))?.col(0).iter().copied().collect();
            span.features = span.features.with_expansion_point(own)?;
        }
        Ok(span)
    }

    /// Directions of the span, r.
    pub fn rank(&self) -> usize {
        self.eigenvalues.len()
    }

    /// Directions of the weights across it, `d - r`: what [`super::ExpectationMaximisation::beyond`] wants to know.
    pub fn beyond(&self) -> usize {
        self.beyond
    }

    /// The model in coordinates of the span.
    pub fn model<'a>(&'a self, likelihood: &'a OutputLikelihood) -> SampledModel<'a, f64, DenseFeatures> {
        SampledModel::new(&self.features, &self.source, likelihood)
    }

    /// `Q' z` (r x k) of weights `z` (d x k). Cost: a pass with products forward.
    ///
    /// # Errors
    /// Those of the features and of reading the data.
    pub fn coordinates<T: Real, F: FeatureMap<T>>(
        &self,
        model: &SampledModel<'_, T, F>,
        z: MatRef<'_, f64>,
    ) -> Result<Mat<f64>, LinearError> {
        let moved = push_along(model, Along::Outputs, None, z)?;
        let mut own = product(self.features.whole().transpose(), moved.as_ref());
        self.divide(&mut own);
        Ok(own)
    }

    /// `Q u` (d x k) of coordinates `u` (r x k). Cost: a pass with products back.
    ///
    /// # Errors
    /// Those of the features and of reading the data.
    pub fn lifted<T: Real, F: FeatureMap<T>>(
        &self,
        model: &SampledModel<'_, T, F>,
        u: MatRef<'_, f64>,
    ) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the coordinates", self.rank(), u.nrows())?;
        let mut own = u.to_owned();
        self.divide(&mut own);
        pull_along(model, Along::Outputs, None, product(self.features.whole(), own.as_ref()).as_ref())
    }

    /// `D^-1 u`.
    fn divide(&self, u: &mut Mat<f64>) {
        parallel::columns(u.as_mut(), 1, |_, column| {
            column.iter_mut().zip(&self.eigenvalues).for_each(|(v, d)| *v /= d);
        });
    }

    /// The noise of the same samples as [`Noise::draw`]'s of the model. Cost: its weights' normals, and a pass with products forward.
    ///
    /// # Errors
    /// As [`Noise::draw`].
    pub fn noise<T: Real, F: FeatureMap<T>>(
        &self,
        model: &SampledModel<'_, T, F>,
        samples: Range<usize>,
        seed: u64,
        observer: Observer<'_>,
    ) -> Result<SpanNoise, LinearError> {
        let across = weight_normals(model.dimension(), &samples, seed);
        let within = Noise::draw(&self.model(model.likelihood()), samples, seed, observer)?;
        let white = self.coordinates(model, across.as_ref())?;
        Ok(SpanNoise { within: Noise { white, ..within }, across })
    }
}

/// What is random about samples, in the span and across it.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanNoise {
    /// In coordinates of the span (r x K).
    pub within: Noise,
    /// Standard normals of all weights, d x K.
    pub across: Mat<f64>,
}

/// Samples of all weights by a solve in the span: `zeta = a^(-1/2) w + Q (u - a^(-1/2) Q' w)` with `u` the sample in the span; those of [`WeightSpace`] on the same noise.
pub struct FunctionSpace<'a, T: Real, F: FeatureMap<T>> {
    /// The model.
    pub model: &'a SampledModel<'a, T, F>,
    /// The span of its examples.
    pub span: &'a Span,
    /// The model there.
    pub own: &'a SampledModel<'a, f64, DenseFeatures>,
    /// The noise.
    pub noise: &'a SpanNoise,
    /// An approximate curvature of the model there.
    pub curvature: &'a Structure,
    /// How.
    pub solve: &'a Solve,
}

impl<T: Real, F: FeatureMap<T>> Sampler for FunctionSpace<'_, T, F> {
    type State = SolverState;

    fn samples(
        &mut self,
        precisions: &[f64],
        strength: f64,
        start: Option<&Mat<f64>>,
        saved: Option<SolverState>,
        watch: &mut WatchSolver<'_, SolverState>,
    ) -> Result<Drawn, SampledError> {
        let Some(&a) = precisions.first().filter(|a| precisions.iter().all(|p| p == *a)) else {
            let expected = "function space knows one prior precision";
            let value = precisions.last().copied().unwrap_or(f64::NAN);
            return Err(LinearError::Option { name: "prior precision", value, expected }.into());
        };
        let start = start.map(|z| self.span.coordinates(self.model, z.as_ref())).transpose()?;
        let each = vec![a; self.span.rank()];
        let mut within = WeightSpace {
            model: self.own,
            noise: &self.noise.within,
            curvature: self.curvature,
            solve: self.solve,
            objective: Objective::LowVariance,
        };
        let drawn = within.samples(&each, strength, start.as_ref(), saved, watch)?;
        let root = Scale(a.sqrt().recip());
        let moved = &drawn.samples - &self.noise.within.white * root;
        let samples = &self.noise.across * root + self.span.lifted(self.model, moved.as_ref())?;
        Ok(Drawn { samples, ..drawn })
    }
}
