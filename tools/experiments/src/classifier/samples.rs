//! Samples of a classifier's exact posterior.

use super::Classifier;
use crate::context::Context;
use crate::error::{ExperimentError, Result, refused};
use faer::{Mat, MatRef};
use posterior_laplace::{Latent, Wanted};
use posterior_linear::latent::add_inner_products;
use posterior_linear::sampled::{ConjugateOptions, Noise, SampledModel, solve_exactly};
use posterior_linear::structure::Structure;
use posterior_linear::{FeatureMap, LinearError, Prior};
use posterior_networks::Array;
use posterior_optim::{Reason, Signal};
use posterior_tangent::{Observed, Tangent, batch_size};

impl Classifier {
    /// Samples of the exact posterior under a prior (d x K), solved to a relative residual.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn samples(
        &self,
        prior: &Prior,
        count: usize,
        tolerance: f64,
        context: &mut Context<'_>,
    ) -> Result<Mat<f64>> {
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let model = SampledModel::new(&tangent, &observed, &self.likelihood);
        let stage = format!("{}: samples", self.name);
        let mut tell = |done, all| context.tell(&stage, done, all);
        let curvature = leading(&model, count, self.seed, &mut tell)?;
        let noise = Noise::draw(&model, 0..count, self.seed, &mut tell)?;
        exact_samples(
            &model,
            &noise,
            &prior.precision_of_each(0..prior.dimension()),
            &curvature,
            tolerance,
            &mut tell,
        )
    }

    /// The network's outputs about which samples of the weights (d x K) scatter: covariances are their second moments, the mean being known.
    ///
    /// # Errors
    /// Images that do not fit.
    pub(crate) fn sampled_latent(&self, x: &Array<f32>, samples: MatRef<'_, f64>) -> Result<Latent> {
        let tangent = Tangent::new(&self.network, &self.selection);
        let (c, k) = (self.classes(), samples.ncols());
        let rounded = Mat::from_fn(samples.nrows(), k, |i, j| samples[(i, j)] as f32);
        let mut latent =
            Latent { outputs: c, mean: Vec::new(), covariance: Vec::new(), wanted: Wanted::Full, clipped: 0 };
        let root = (k as f64).sqrt();
        for start in (0..x.rows()).step_by(batch_size(&self.network, k)) {
            let rows = start..(start + batch_size(&self.network, k)).min(x.rows());
            let features = tangent.at(x.slice_rows(rows.clone()))?;
            latent.mean.extend(features.outputs());
            let moved = features.apply(rounded.as_ref())?;
            let wide = Mat::from_fn(moved.nrows(), k, |i, j| f64::from(moved[(i, j)]) / root);
            let mut own = vec![0.0; rows.len() * c * c];
            add_inner_products(wide.as_ref(), c, Wanted::Full, &mut own);
            latent.covariance.extend(own);
        }
        Ok(latent)
    }
}

/// Products that a solve may take.
const PRODUCTS: usize = 5000;

/// Leading directions of a model's curvature that its conjugate gradients are preconditioned with.
const DIRECTIONS: usize = 200;

/// What conjugate gradients are preconditioned with.
///
/// # Errors
/// Those of the features, interruption.
pub(crate) fn leading<F: FeatureMap<f32>>(
    model: &SampledModel<'_, f32, F>,
    samples: usize,
    seed: u64,
    tell: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Structure, LinearError> {
    let (diagonal, _) = model.curvature_diagonal(samples, seed, &mut *tell)?;
    model.leading_curvature(&diagonal, DIRECTIONS, seed, tell)
}

/// Samples for precisions of each weight by conjugate gradients, from draws of the prior.
///
/// # Errors
/// Those of the features, interruption, and [`ExperimentError::Setting`] where the residual stays larger than asked for.
pub(crate) fn exact_samples<F: FeatureMap<f32>>(
    model: &SampledModel<'_, f32, F>,
    noise: &Noise,
    precisions: &[f64],
    curvature: &Structure,
    tolerance: f64,
    tell: &mut dyn FnMut(usize, usize) -> Signal,
) -> Result<Mat<f64>> {
    let options = ConjugateOptions { tolerance, steps: PRODUCTS };
    let start = noise.prior_draws(precisions)?;
    let (samples, reason) = solve_exactly(
        model,
        noise,
        (precisions, 1.0),
        curvature,
        start,
        None,
        &options,
        &mut |progress, _| tell(progress.step, 0),
    )?;
    match reason {
        Reason::Interrupted => Err(ExperimentError::Interrupted),
        Reason::Steps => refused(format!(
            "samples have not reached a relative residual of {tolerance:e} after {PRODUCTS} products: allow a larger one"
        )),
        _ => Ok(samples),
    }
}
