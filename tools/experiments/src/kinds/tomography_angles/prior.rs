//! What is believed of a picture before all but the pilot's angles: roots of covariances, in the units of the sinogram.

use super::network::View;
use super::problem::Scan;
use crate::kinds::prelude::*;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::operator::{Dense, LinearOperator};
use posterior_linalg::symmetric::mirror_lower;
use posterior_optim::{LoopOptions, Progress, Signal, State};
use posterior_tomography::TomographyError;
use posterior_tomography::linearised::{
    ChargedWeights, DistanceGrams, FilterHyperparameters, FilterPrior, ImageTangent, LearnedHyperparameters,
    MeasuredTangent, PriorRoot, ScaleEstimate, StoredEvidence, WeightPrior, scales,
};
use posterior_tomography::priors::{Isotropic, Matern, NoiseModel, PilotEvidence};

/// Columns of a covariance that are made at a time.
const BLOCK: usize = 256;

/// Rounding of products in single precision leaves covariances of pictures with small negative eigenvalues.
const ROUNDING: JitterPolicy = JitterPolicy { initial: 1e-8, growth: 10.0, largest: 1e-3 };

/// Independent pixels with which measurements are as large as they are.
///
/// # Errors
/// Measurements of nothing.
pub(super) fn isotropic(scan: &Scan, noise_variance: f64) -> Result<Isotropic> {
    Ok(Isotropic::of_measurements(&scan.projector, &scan.sinogram, noise_variance)?)
}

/// The Matérn-1/2 prior that the pilot scan chooses, its noise given.
///
/// # Errors
/// A search that cannot begin.
pub(super) fn matern(scan: &Scan, noise_variance: f64) -> Result<Matern> {
    let shape = scan.projector.geometry().image_shape();
    let (height, width) = (shape[0], shape[1]);
    let noise = NoiseModel::Given(noise_variance);
    let evidence = PilotEvidence::new(&scan.projector, &scan.sinogram, (height, width), noise)
        .map_err(TomographyError::from)?;
    let (lengthscale, variance, _) = evidence.usual_start(1.0);
    let start = (lengthscale, variance, noise_variance);
    let fit = evidence
        .fit(start, &LoopOptions::default(), &mut |_| Signal::Continue)
        .map_err(TomographyError::from)?;
    Ok(fit.prior)
}

/// The linearised network whose weights have the scales of a g-prior, estimated from a scan, times what makes the prior's measurements as large as the scan's: `tr (T K T') = sum (y² - sigma²)`.
///
/// Source: Antorán (2024), equation 6.12; the level is that of the authors' code (spec `tomography`, section 9.3).
///
/// # Errors
/// A network that moves no measurement, interruption.
pub(super) fn g_prior<'a>(
    tangent: &'a ImageTangent<'a, f32>,
    scan: &Scan,
    noise_variance: f64,
    (draws, seed): (usize, u64),
    stage: &str,
    context: &mut Context<'_>,
) -> Result<PriorRoot<'a, f32>> {
    let measured = MeasuredTangent::new(tangent, &scan.projector)?;
    let estimate = ScaleEstimate::Sampled { draws, seed };
    let found = scales(&measured, estimate, &mut |done, all| context.tell(stage, done, all))?;
    let signal: f64 = scan.sinogram.iter().map(|y| y * y - noise_variance).sum();
    // Each column of T phi diag(s) has length one, but for those whose scales were kept from growing.
    let columns = (found.values.len() - found.raised).max(1) as f64;
    let level = (signal.max(noise_variance) / columns).sqrt();
    let deviations = found.values.iter().map(|scale| level * scale).collect();
    Ok(PriorRoot::new(tangent, WeightPrior::Independent(deviations))?)
}

/// Variances and lengthscales of the blocks of filters by the exact evidence of a scan, its noise given; in the units of the sinogram.
///
/// # Errors
/// A search that fails, interruption.
pub(super) fn filters(
    view: &View,
    scan: &Scan,
    noise_variance: f64,
    steps: usize,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<FilterHyperparameters> {
    let tangent = view.tangent()?;
    let measured = MeasuredTangent::new(&tangent, &scan.projector)?;
    let c = measured.measurements();
    let back = scan.projector.multiply_transpose(Mat::<f64>::identity(c, c).as_ref());
    let grams = DistanceGrams::new(&view.weights, tangent.rows(back.as_ref()).as_ref());
    let scaled: Vec<f64> = scan.sinogram.iter().map(|y| y / view.unit).collect();
    let targets = measured.linear_targets(&scaled)?;
    let residual: Vec<f64> = scaled.iter().zip(measured.measured_picture()).map(|(y, g)| y - g).collect();
    let evidence = StoredEvidence {
        grams: &grams,
        projector: None,
        targets: &targets,
        residual: &residual,
        charged: ChargedWeights::Optimum,
        roughness: None,
    };
    let learned = LearnedHyperparameters { noise: false, ..LearnedHyperparameters::default() };
    let start = evidence.start(
        FilterHyperparameters::start(view.weights.blocks().len()),
        Some((noise_variance / view.unit.powi(2)).ln()),
    );
    let mut tell = |progress: &Progress, _: &State| context.tell(stage, progress.step, steps);
    let mut found = evidence.search(learned, &start, steps, None, &mut tell)?.hyperparameters.filters;
    found.log_variances.iter_mut().for_each(|v| *v += 2.0 * view.unit.ln());
    Ok(found)
}

/// The root of the prior that these are hyperparameters of.
///
/// # Errors
/// Those of another network.
pub(super) fn filter_root<'a>(
    tangent: &'a ImageTangent<'a, f32>,
    view: &View,
    hyperparameters: &FilterHyperparameters,
) -> Result<PriorRoot<'a, f32>> {
    let prior = FilterPrior::new(&view.weights, hyperparameters.clone())?;
    Ok(PriorRoot::new(tangent, WeightPrior::Filters(prior))?)
}

/// A root as many columns wide as there are pixels, of the same covariance `phi A^-1 phi'`, from `phi'` (weights x pixels).
///
/// Cost: `p² d` flops in single precision, where products with each pixel would be sweeps of the network, whatever prior: a design asks for many priors of one network.
///
/// # Errors
/// A covariance that is not finite, interruption.
pub(super) fn stored(
    jacobian: MatRef<'_, f32>,
    prior: &WeightPrior,
    stage: &str,
    context: &mut Context<'_>,
) -> Result<Dense<f64>> {
    let (d, pixels) = jacobian.shape();
    let mut covariance = Mat::zeros(pixels, pixels);
    for start in (0..pixels).step_by(BLOCK) {
        let width = BLOCK.min(pixels - start);
        let own = jacobian.subcols(start, width);
        let mut weighed = Mat::from_fn(d, width, |i, j| f64::from(own[(i, j)]));
        prior.apply_root_transpose(weighed.as_mut());
        prior.apply_root(weighed.as_mut());
        let weighed = Mat::from_fn(d, width, |i, j| weighed[(i, j)] as f32);
        // The lower triangle alone, by blocks of columns.
        let below = product(jacobian.subcols(start, pixels - start).transpose(), weighed.as_ref());
        for j in 0..width {
            (j..pixels - start).for_each(|i| covariance[(start + i, start + j)] = f64::from(below[(i, j)]));
        }
        context.step(stage, start + width, pixels)?;
    }
    mirror_lower(covariance.as_mut());
    let factor = Cholesky::of(covariance.as_ref(), ROUNDING).map_err(TomographyError::from)?.into_buffer();
    Ok(Dense::new(Mat::from_fn(pixels, pixels, |i, j| if i >= j { factor[(i, j)] } else { 0.0 })))
}
