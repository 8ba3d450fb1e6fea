//! Predictives that need no tangent: dropped channels, independent pixels, total variation.

use super::predictive::{Predictive, Spread};
use super::problem::Subject;
use super::trained::Learner;
use super::uncertainty::UncertaintySettings;
use crate::kinds::prelude::*;
use posterior_linalg::cholesky::JitterPolicy;
use posterior_linalg::dense::eigen;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::tiles::pieces;
use posterior_optim::{Lbfgs, LoopOptions, Objective, ObjectiveError, Optimiser, Reason, minimise};
use posterior_tomography::image_prior::ChannelDropout;
use posterior_tomography::measured::{ObservedPrior, SampleSolver};
use posterior_tomography::priors::Isotropic;
use posterior_tomography::reconstruction::{Method, TotalVariationRequest, reconstruct};
use posterior_tomography::running::Checkpointer;
use posterior_tomography::{Projector, TomographyError};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::time::Instant;

/// Pictures of a network whose channels are dropped at random, and which was trained so: their mean, and their covariance about it.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn dropout(
    rate: f64,
    settings: &UncertaintySettings,
    learner: &Learner<'_>,
    subject: &Subject,
    context: &mut Context<'_>,
) -> Result<Predictive> {
    let trained = learner.picture(subject, Some(rate), context)?;
    let network = learner.network(&trained)?;
    let input = learner.input(subject)?;
    let begun = Instant::now();
    let masks = ChannelDropout::new(network.graph(), rate);
    // Not the masks of the training, which have its own seed.
    let seed = Streams::new(context.seed).child("experiment/tomography dropout", 0).seed();
    let (pixels, samples) = (subject.truth.len(), settings.samples);
    let mut draws = Mat::<f64>::zeros(pixels, samples);
    let stage = format!("{}: dropped channels", subject.name);
    for j in 0..samples {
        context.step(&stage, j, samples)?;
        let mut drawn = network.clone();
        masks.mask(drawn.parameters_mut(), seed, j as u64);
        let picture = drawn.forward(&input)?;
        let column = draws.col_as_slice_mut(j);
        column.iter_mut().zip(picture.values()).for_each(|(d, v)| *d = f64::from(*v));
    }
    let mean: Vec<f64> = draws.row_iter().map(|row| row.iter().sum::<f64>() / samples as f64).collect();
    // About their own mean draws are too close together by one of so many.
    let scale = (samples as f64 / (samples.max(2) - 1) as f64).sqrt();
    for j in 0..samples {
        draws.col_as_slice_mut(j).iter_mut().zip(&mean).for_each(|(d, m)| *d = scale * (*d - m));
    }
    Ok(Predictive {
        deviations: root_mean_squares(&draws),
        mean,
        spread: Spread::Draws(draws),
        hyperparameter_seconds: 0.0,
        prediction_seconds: begun.elapsed().as_secs_f64(),
        facts: BTreeMap::new(),
    })
}

/// The evidence of `N(y; 0, variance T Tᵀ + noise I)` along the eigenvectors of `T Tᵀ`: a sum over measurements.
struct SpectralEvidence {
    /// Eigenvalues, 0 or more.
    eigenvalues: Vec<f64>,
    /// Squares of the measurements along their eigenvectors.
    squares: Vec<f64>,
}

impl Objective for SpectralEvidence {
    fn dimension(&self) -> usize {
        2
    }

    fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64, ObjectiveError> {
        let (variance, noise) = (at[0].exp(), at[1].exp());
        let mut value = 0.0;
        gradient.fill(0.0);
        for (eigenvalue, square) in self.eigenvalues.iter().zip(&self.squares) {
            let all = variance * eigenvalue + noise;
            value += 0.5 * (square / all + (TAU * all).ln());
            let slope = 0.5 * (1.0 - square / all) / all;
            gradient[0] += slope * variance * eigenvalue;
            gradient[1] += slope * noise;
        }
        Ok(value)
    }
}

/// Independent pixels about zero; their variance and that of the noise by the evidence, then the exact mean and draws.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn isotropic(
    steps: usize,
    settings: &UncertaintySettings,
    learner: &Learner<'_>,
    subject: &Subject,
    context: &mut Context<'_>,
) -> Result<Predictive> {
    let projector = &learner.problem.projector;
    let sinogram = learner.problem.measure(subject)?;
    let stage = format!("{}: independent pixels", subject.name);
    context.step(&stage, 0, 2)?;
    let begun = Instant::now();
    let found = fit_isotropic(projector, &sinogram, steps)?;
    let known = Instant::now();
    context.step(&stage, 1, 2)?;
    let drawn = |[variance, noise]: [f64; 2]| -> Result<_, TomographyError> {
        let root = Isotropic::new(subject.truth.len(), variance)?;
        let observed = ObservedPrior::new(&root, projector, noise)?;
        let factor = observed.factor(JitterPolicy::default())?;
        let mean = observed.posterior_mean(&factor, &sinogram)?;
        let streams = Streams::new(context.seed).child("experiment/tomography draws", 0);
        let solver = SampleSolver::Factor(&factor);
        Ok((mean, observed.posterior_samples(0..settings.samples, streams, solver)?.images))
    };
    let (mean, draws) = drawn(found)?;
    Ok(Predictive {
        mean,
        deviations: root_mean_squares(&draws),
        spread: Spread::Draws(draws),
        hyperparameter_seconds: (known - begun).as_secs_f64(),
        prediction_seconds: known.elapsed().as_secs_f64(),
        facts: BTreeMap::from([
            ("pixel_variance".to_string(), found[0]),
            ("noise_variance".to_string(), found[1]),
        ]),
    })
}

/// Variances of a pixel and of the noise.
pub(crate) fn fit_isotropic(
    projector: &Projector,
    sinogram: &[f64],
    steps: usize,
) -> Result<[f64; 2], TomographyError> {
    let root = Isotropic::new(projector.geometry().pixels(), 1.0)?;
    let found = eigen(ObservedPrior::new(&root, projector, 1.0)?.signal_matrix().as_ref());
    let found =
        found.map_err(|_| TomographyError::Diverged { what: "the eigenvalues of the scan", step: 0 })?;
    let c = sinogram.len();
    let along = |j: usize| (0..c).map(|i| found.vectors[(i, j)] * sinogram[i]).sum::<f64>();
    let mut evidence = SpectralEvidence {
        squares: (0..c).map(|j| along(j).powi(2)).collect(),
        eigenvalues: found.values.iter().map(|v| v.max(0.0)).collect(),
    };
    let total: f64 = evidence.squares.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let trace: f64 = evidence.eigenvalues.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    // All of the measurements from pixels, and noise of a hundredth of them.
    let start = [(total / trace).ln(), (0.01 * total / c as f64).ln()];
    let loops = LoopOptions { steps, ..LoopOptions::default() };
    let optimiser = Optimiser::Lbfgs(Lbfgs::default());
    let outcome =
        minimise(&mut evidence, &start, optimiser, &loops, &mut |_, _| posterior_optim::Signal::Continue)?;
    match outcome.reason {
        Reason::Diverged => {
            Err(TomographyError::Diverged { what: "the evidence of pixels", step: outcome.steps })
        }
        _ => Ok([outcome.theta[0].exp(), outcome.theta[1].exp()]),
    }
}

/// The smoothest picture, with independent errors of one variance: as if they made all that the picture misses of measurements that were held back, `mean (y - T x)² / mean ‖T_i‖²`. That counts the noise of those measurements as an error of the picture, and knows nothing of where the picture is wrong.
///
/// # Errors
/// What fails or is interrupted.
pub(crate) fn total_variation(
    request: &TotalVariationRequest,
    learner: &Learner<'_>,
    subject: &Subject,
    context: &mut Context<'_>,
) -> Result<Predictive> {
    let projector = &learner.problem.projector;
    let sinogram = learner.problem.measure(subject)?;
    let begun = Instant::now();
    let name = format!("{}: total variation", subject.name);
    let method = Method::TotalVariation(request.clone());
    let mut watch = |stage, done, all, _| context.tell(&format!("{name}: {stage}"), done, all);
    let found =
        reconstruct(projector, &sinogram, &method, None, None, &mut Checkpointer::none(), &mut watch)?;
    let report = found.report;
    let Some(held_back) = report.held_back else {
        return refused(
            "the total variation of this study has no `weight`: measurements that are held back choose it, and say how large errors are",
        );
    };
    let chosen = held_back.trials.iter().find(|t| t.weight == held_back.weight);
    let error = chosen.map_or(f64::NAN, |t| t.error) * report.unit * report.unit;
    let deviation = (error / mean_squared_row(projector)).sqrt();
    Ok(Predictive {
        deviations: vec![deviation; found.picture.len()],
        mean: found.picture,
        spread: Spread::Independent,
        hyperparameter_seconds: 0.0,
        prediction_seconds: begun.elapsed().as_secs_f64(),
        facts: BTreeMap::from([
            ("weight".to_string(), held_back.weight),
            ("held_back_error".to_string(), error),
        ]),
    })
}

/// Mean of `‖T_i‖²` over measurements.
fn mean_squared_row(projector: &Projector) -> f64 {
    let geometry = projector.geometry();
    let (c, pixels) = (geometry.measurements(), geometry.pixels());
    let mut sum = 0.0;
    for columns in pieces(pixels, 128) {
        let unit = Mat::from_fn(pixels, columns.len(), |i, j| f64::from(u8::from(i == columns.start + j)));
        sum += projector.multiply(unit.as_ref()).squared_norm_l2();
    }
    sum / c as f64
}
