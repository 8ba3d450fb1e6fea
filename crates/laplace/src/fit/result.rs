//! What a fit returns: a posterior that predicts, and everything that was chosen on the way.

use super::curvature::Curvature;
use super::summary::FitSummary;
use crate::LaplaceError;
use crate::accumulate::Accumulator;
use crate::ella::Ella;
use crate::function_space::FunctionSpace;
use crate::learned::{Learned, SampledPredictions};
use crate::predict::{Latent, Wanted, displaced, displacement};
use crate::scores::{scaled_noise, wanted};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule, PredictiveWorkspace};
use posterior_linear::Prior;
use posterior_linear::structure::Structure;
use posterior_networks::train::Examples;
use posterior_networks::{Array, Network, Precision, Selection};
use posterior_notes::fixes::FLOAT64;
use posterior_store::Tensors;

/// A posterior over a network's weights, ready to predict.
pub struct Laplace<T> {
    pub(crate) selection: Selection,
    pub(crate) likelihood: OutputLikelihood,
    pub(crate) base_likelihood: OutputLikelihood,
    pub(crate) noise_variance: f64,
    pub(crate) prior: Prior,
    pub(crate) integration: Integration,
    /// None where the posterior was found otherwise.
    pub(crate) curvature: Option<Curvature<T>>,
    pub(crate) mode: Vec<f64>,
    pub(crate) posterior: Box<dyn Learned<T>>,
    /// The mode minus the trained weights, where predictions count it.
    pub(crate) displacement: Option<Vec<T>>,
    /// What was done and chosen.
    pub summary: FitSummary,
}

/// Where a posterior comes from.
pub(super) enum Origin<T> {
    /// It is conditioned on a curvature.
    Curvature(Box<Curvature<T>>),
    /// It was found otherwise.
    Search(Box<dyn Learned<T>>),
}

/// What was chosen for a posterior: everything else follows.
pub(super) struct Chosen<T> {
    pub(super) origin: Origin<T>,
    pub(super) selection: Selection,
    /// Before its noise is multiplied.
    pub(super) likelihood: OutputLikelihood,
    pub(super) noise_variance: f64,
    pub(super) prior: Prior,
    pub(super) mode: Vec<f64>,
    pub(super) integration: Integration,
    pub(super) summary: FitSummary,
}

/// The fit went through, but what came of it is of no use.
fn cannot_predict(example: usize, why: &str) -> LaplaceError {
    LaplaceError::Request(format!(
        "the fit cannot predict example {example} of its own training data ({why}): nothing is written; try {FLOAT64} or another curvature"
    ))
}

impl<T: Precision> Laplace<T> {
    /// The posterior that was chosen.
    ///
    /// # Errors
    /// When the factorisation fails, or noise is not positive.
    pub(super) fn of(network: &Network<T>, chosen: Chosen<T>) -> Result<Self, LaplaceError> {
        let Chosen { origin, selection, likelihood, noise_variance, prior, mode, integration, summary } =
            chosen;
        let (curvature, posterior) = match origin {
            Origin::Search(posterior) => (None, posterior),
            Origin::Curvature(curvature) => {
                let setting = [(prior.clone(), noise_variance)];
                let posterior = curvature.conditioned((network, &selection), &likelihood, &setting)?;
                (Some(*curvature), posterior)
            }
        };
        Ok(Self {
            displacement: displacement(network, &selection, &mode, summary.displacement()),
            likelihood: scaled_noise(&likelihood, noise_variance)?,
            base_likelihood: likelihood,
            noise_variance,
            prior,
            integration,
            selection,
            curvature,
            mode,
            posterior,
            summary,
        })
    }

    /// The uncertain weights.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The likelihood, with learned noise.
    pub fn likelihood(&self) -> &OutputLikelihood {
        &self.likelihood
    }

    /// The prior, with its precisions.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The noise variance relative to the likelihood that the curvature was summed with.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// The likelihood that the curvature was summed with.
    pub fn base_likelihood(&self) -> &OutputLikelihood {
        &self.base_likelihood
    }

    /// The predictive that was asked for.
    pub fn integration(&self) -> Integration {
        self.integration
    }

    /// The weights whose norm the evidence charges for: trained ones or the linearised model's optimum.
    pub fn mode(&self) -> &[f64] {
        &self.mode
    }

    /// The sums that the curvature was made of, where it is one of sums: to be saved and continued.
    pub fn sums(&self) -> Option<&Accumulator> {
        if let Some(Curvature::Structure { sums, .. }) = &self.curvature { sums.as_ref() } else { None }
    }

    /// The curvature in blocks; None in function space.
    pub fn structure(&self) -> Option<&Structure> {
        if let Some(Curvature::Structure { structure, .. }) = &self.curvature {
            Some(structure)
        } else {
            None
        }
    }

    /// The training points of a posterior in function space.
    pub fn function_space(&self) -> Option<&FunctionSpace<T>> {
        if let Some(Curvature::FunctionSpace(points)) = &self.curvature { Some(points) } else { None }
    }

    /// The directions and the curvature along them, where there are only a few.
    pub fn ella(&self) -> Option<&Ella<T>> {
        if let Some(Curvature::Ella(ella, _)) = &self.curvature { Some(ella) } else { None }
    }

    /// The arrays of a posterior that no curvature has made; whether it is one.
    pub fn add_learned(&self, tensors: &mut Tensors) -> bool {
        self.posterior.write(tensors);
        self.curvature.is_none()
    }

    /// Whether functions are drawn once, to be followed from input to input; else values are drawn together for all inputs of a question.
    pub fn draws_functions(&self) -> bool {
        self.posterior.draws_functions()
    }

    /// Predicts a few examples as a user would, so that a fit that cannot predict is an error and not a file. Says how many variances rounding had made negative.
    ///
    /// # Errors
    /// What a prediction would fail with, or one that is not finite.
    pub fn check_predictions(
        &self,
        network: &Network<T>,
        examples: &dyn Examples<T>,
    ) -> Result<Option<String>, LaplaceError> {
        let count = examples.len().min(64);
        let (x, _) = examples.batch(&(0..count).collect::<Vec<_>>(), None);
        let latent = self.latent(network, &x, wanted(self.integration, &self.likelihood))?;
        let rule = self.rule(self.integration)?;
        let (mut workspace, mut prediction) = (PredictiveWorkspace::default(), rule.empty_prediction());
        let mut clipped = latent.clipped;
        for i in 0..count {
            let found = rule.predict_into(latent.example(i), &mut workspace, &mut prediction);
            clipped += found.map_err(|e| cannot_predict(i, &e.to_string()))?.count;
            let finite = match &prediction {
                Prediction::Classes(p) | Prediction::Events(p) => p.iter().all(|p| p.is_finite()),
                Prediction::Moments { mean, variance, .. } => {
                    mean.iter().chain(variance).all(|v| v.is_finite())
                }
            };
            if !finite {
                return Err(cannot_predict(i, "the prediction is not finite"));
            }
        }
        Ok((clipped > 0).then(|| {
            format!("{clipped} latent variances of the first {count} examples were rounded up to 0")
        }))
    }

    /// The rule that turns latent predictions into predictions of observations.
    ///
    /// # Errors
    /// When the integration does not suit the likelihood.
    pub fn rule(&self, integration: Integration) -> Result<PredictiveRule, LaplaceError> {
        Ok(PredictiveRule::new(self.likelihood.clone(), integration)?)
    }

    /// Latent means and covariances of inputs, one by one. Means are the network's; covariances are mean squares about them, the [displacement](super::ModeSummary::displacement) of the linear model's
    /// optimum included.
    ///
    /// # Errors
    /// When inputs do not fit the network.
    #[inline(never)]
    pub fn latent(&self, network: &Network<T>, x: &Array<T>, wanted: Wanted) -> Result<Latent, LaplaceError> {
        let mut latent = self.tangent_latent(network, x, wanted)?;
        if let Some(displacement) = &self.displacement {
            let moved = displaced(network, &self.selection, x, displacement)?;
            latent.add_squares(&moved);
        }
        Ok(latent)
    }

    /// The same without the displacement, `N(g(x), J(x) H^-1 J(x)^T)` (thesis eq. 3.39): the covariance of the linear model about its own mean, which need not be the network.
    ///
    /// # Errors
    /// As [`Self::latent`].
    pub fn tangent_latent(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        wanted: Wanted,
    ) -> Result<Latent, LaplaceError> {
        self.posterior.latent(network, x, wanted)
    }

    /// Predictive distributions that no Gaussian of [`Self::latent`] gives, and their log densities at `targets` `[examples, width]`; None for posteriors whose latent Gaussian says it all.
    ///
    /// # Errors
    /// When inputs do not fit, or a target cannot be.
    pub fn own_predictive(
        &self,
        network: &Network<T>,
        x: &Array<T>,
        targets: Option<&[f64]>,
    ) -> Option<Result<SampledPredictions, LaplaceError>> {
        self.posterior.predictive(network, x, targets)
    }

    /// The joint covariance of all outputs of all inputs, `[examples * C, examples * C]`; on request only, since it grows with the square of the inputs.
    ///
    /// # Errors
    /// When it would pass `memory` bytes or inputs do not fit.
    pub fn joint(&self, network: &Network<T>, x: &Array<T>, memory: u64) -> Result<Mat<f64>, LaplaceError> {
        let mut joint = self.posterior.joint(network, x, memory)?;
        if let Some(displacement) = &self.displacement {
            let moved = displaced(network, &self.selection, x, displacement)?;
            let column = MatRef::from_column_major_slice(&moved, moved.len(), 1);
            matmul(joint.as_mut(), Accum::Add, column, column.transpose(), 1.0, Par::Seq);
        }
        Ok(joint)
    }
}
