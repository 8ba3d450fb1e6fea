//! All of it.

use super::filters::{self, FilterReport};
use super::g_prior;
use super::options::{ImagePriorChoice, UncertaintyOptions};
use super::pictures::{Draws, Pictures, deviations, draw};
use crate::linearised::{
    ConvolutionWeights, GPrior, GPriorFit, GPriorSolver, ImageTangent, LeadingDirections, MeasuredTangent,
    PriorRoot, WeightPrior,
};
use crate::measured::ObservedPrior;
use crate::running::{Checkpointer, Watch, meant};
use crate::{Projector, TomographyError};
use faer::Mat;
use posterior_linear::sampled::{ConjugateGradientFacts, SavedEm, SavedSolver, SolverFacts, SolverState};
use posterior_networks::{Array, Network};
use posterior_optim::{Signal, State};
use posterior_store::Tensors;
use serde::{Deserialize, Serialize};

/// What became of the prior.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "prior")]
pub enum PriorReport {
    /// One precision of scaled weights.
    GPrior {
        /// Expectation maximisation.
        #[serde(flatten)]
        fit: GPriorFit,
        /// Weights that move no measurement, whose scales were kept from growing.
        raised: usize,
    },
    /// Variances and lengthscales.
    Filters(FilterReport),
}

impl PriorReport {
    fn noise_variance(&self) -> f64 {
        match self {
            Self::GPrior { fit, .. } => fit.noise_variance,
            Self::Filters(report) => report.noise_variance,
        }
    }
}

/// What happened on the way.
#[derive(Clone, Debug, Serialize)]
pub struct UncertaintyReport {
    /// Weights that are random.
    pub weights: usize,
    /// Measurements.
    pub measurements: usize,
    /// The prior.
    pub prior: PriorReport,
    /// Variance of the measurements' noise.
    pub noise_variance: f64,
    /// Mean square of what the network's picture leaves of the measurements.
    pub residual: f64,
    /// Draws.
    pub samples: usize,
    /// The largest relative residual of a draw's solve.
    pub largest_residual: f64,
    /// Most steps that a solve of draws took.
    pub steps: usize,
    /// Directions of the preconditioner.
    pub rank: usize,
}

/// The posterior over pictures.
#[derive(Clone, Debug)]
pub struct Uncertainty {
    /// The picture of the network, which is the mean (pixels).
    pub picture: Vec<f64>,
    /// Standard deviation of each pixel.
    pub deviations: Vec<f64>,
    /// Draws around the picture, zero in the mean (pixels x samples).
    pub samples: Mat<f64>,
    /// What happened on the way.
    pub report: UncertaintyReport,
}

/// What is kept between runs.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Weights whose scales were raised; None before they are known.
    pub(super) raised: Option<usize>,
    /// Expectation maximisation over the measurements.
    pub(super) turns: Option<SavedEm<ConjugateGradientFacts>>,
    /// The same by descent on the weights.
    pub(super) descent: Option<SavedEm<SolverFacts>>,
    /// The solve of draws by descent.
    pub(super) solving: Option<SolverFacts>,
    /// The search for filters' hyperparameters.
    pub(super) search: Option<State>,
    pub(super) prior: Option<PriorReport>,
    pub(super) done: usize,
    pub(super) residual: f64,
    pub(super) steps: usize,
}

/// The posterior of the picture that a trained network (at its fixed input) makes of a sinogram.
///
/// What is under way is kept by `checkpointer`, and the same request goes on from it with the same numbers. Cost and memory: [`super::plan`].
///
/// Source: Antorán (2024), sections 7.2 to 7.4; spec `tomography`, sections 5 to 8.
///
/// # Errors
/// [`TomographyError`]: what does not fit, solves that fail, [`TomographyError::Interrupted`].
pub fn infer(
    projector: &Projector,
    sinogram: &[f64],
    (network, input): (&Network<f32>, Array<f32>),
    options: &UncertaintyOptions,
    checkpointer: &mut Checkpointer,
    watch: &mut Watch<'_>,
) -> Result<Uncertainty, TomographyError> {
    meant("the number of samples", options.samples)?;
    match &options.prior {
        ImagePriorChoice::GPrior(own) => {
            meant("the number of turns", own.turns)?;
            meant("the number of samples of a turn", own.samples)?;
            if let GPriorSolver::Weights(descent) = &own.solver {
                meant("the number of descent's steps", descent.epochs)?;
            }
        }
        ImagePriorChoice::Filters(own) => {
            meant("the number of steps", own.steps)?;
            if !(own.roughness >= 0.0 && own.roughness.is_finite()) {
                let expected = "it is a finite weight of at least 0";
                return Err(TomographyError::Option { name: "roughness", value: own.roughness, expected });
            }
        }
    }
    let weights = ConvolutionWeights::of(network.graph())?;
    let tangent = ImageTangent::new(network, input, weights.selection())?;
    let measured = MeasuredTangent::new(&tangent, projector)?;
    let (pixels, d) = (projector.geometry().pixels(), weights.len());
    let (mut saved, mut tensors) = checkpointer.earlier::<Saved>()?.unwrap_or_default();
    let mut pictures = Pictures::begin(pixels, options.samples);
    if saved.done > options.samples {
        return Err(tensors.corrupt(format!("it has {} draws of {}", saved.done, options.samples)).into());
    }
    if saved.done > 0 {
        let done = tensors.matrix("pictures", pixels, saved.done)?;
        pictures.images.as_mut().subcols_mut(0, saved.done).copy_from(&done);
        (pictures.done, pictures.residual, pictures.steps) = (saved.done, saved.residual, saved.steps);
    }
    let known_before = saved.prior.is_some();
    let solving = match saved.solving.take() {
        Some(facts) => {
            let mut take = |name: &str| tensors.columns::<f64>(&format!("solving.{name}"), None);
            Some(SolverState::restored(facts, &mut take)?)
        }
        None => None,
    };
    let (weight_prior, report, mut found) = match &options.prior {
        ImagePriorChoice::GPrior(own) => {
            let found =
                g_prior::find(&measured, sinogram, own, options, (saved, &mut tensors), checkpointer, watch)?;
            (WeightPrior::Independent(found.fit.deviations(&found.scales)), found.report(), Some(found))
        }
        ImagePriorChoice::Filters(own) => {
            let (prior, report) =
                filters::find(&measured, &weights, sinogram, own, saved, checkpointer, watch)?;
            (WeightPrior::Filters(prior), PriorReport::Filters(report), None)
        }
    };
    let known = found.as_mut().and_then(|found| found.leading.take());
    let scales = found.as_ref().map(|found| &found.scales);
    let kept = |pictures: &Pictures, solving: Option<&dyn Fn() -> SolverState>| {
        let mut tensors = Tensors::default();
        if let Some(scales) = scales {
            tensors.insert_vector("scales", &scales.values);
        }
        tensors.insert_matrix("pictures", pictures.images.subcols(0, pictures.done));
        let solving = solving.map(|state| {
            let mut put = |name: &str, block: &Mat<f64>| {
                tensors.insert_columns(format!("solving.{name}"), block.as_ref());
            };
            state().facts(&mut put)
        });
        let facts = Saved {
            raised: scales.map(|s| s.raised),
            prior: Some(report.clone()),
            done: pictures.done,
            residual: pictures.residual,
            steps: pictures.steps,
            solving,
            ..Saved::default()
        };
        (facts, tensors)
    };
    if !known_before {
        checkpointer.keep(|| kept(&pictures, None))?;
    }
    let noise_variance = report.noise_variance();
    let root = PriorRoot::new(&tangent, weight_prior)?;
    let observed = ObservedPrior::new(&root, projector, noise_variance)?;
    let by_descent = match (&options.prior, &found) {
        (ImagePriorChoice::GPrior(own), Some(found)) => match &own.solver {
            GPriorSolver::Weights(descent) => {
                Some((GPrior::new(&measured, &found.scales, sinogram, own)?, found.fit.clone(), descent))
            }
            GPriorSolver::Measurements(_) => None,
        },
        _ => None,
    };
    // Directions for a precision of 1 serve every g-prior, by as much less as its precision is larger.
    let (leading, share) = match (&by_descent, &found) {
        (Some(_), _) => (LeadingDirections::new(&observed, 0, options.seed)?, 1.0),
        (None, Some(found)) => {
            let leading = match known {
                Some(leading) => leading,
                None => g_prior::leading(&measured, &found.scales, options, checkpointer, watch)?,
            };
            (leading, found.fit.precision.recip())
        }
        (None, None) => (g_prior::directions(&observed, options, checkpointer, watch)?, 1.0),
    };
    let drawn = leading.preconditioner(share, noise_variance)?;
    let draws = match &by_descent {
        Some((prior, fit, descent)) => Draws::Weights { prior, fit, descent },
        None => Draws::Measurements {
            observed: &observed,
            preconditioner: &*drawn,
            conjugate: &options.conjugate,
            seed: options.seed,
        },
    };
    let mut failed = None;
    let mut keep = |pictures: &Pictures, solving: Option<&dyn Fn() -> SolverState>, signal: Signal| {
        checkpointer.offer_or_keep(signal, || kept(pictures, solving), &mut failed)
    };
    let made = draw(&draws, &mut pictures, solving, &mut keep, watch);
    if let Some(error) = failed {
        return Err(error);
    }
    made?;
    let picture = tangent.picture();
    let each = sinogram.iter().zip(measured.measured_picture());
    let residual = each.map(|(y, g)| (y - g).powi(2)).sum::<f64>() / sinogram.len() as f64;
    Ok(Uncertainty {
        picture,
        deviations: deviations(&pictures.images),
        report: UncertaintyReport {
            weights: d,
            measurements: sinogram.len(),
            prior: report,
            noise_variance,
            residual,
            samples: options.samples,
            largest_residual: pictures.residual,
            steps: pictures.steps,
            rank: leading.eigenvalues().len(),
        },
        samples: pictures.images,
    })
}
