//! The linear model of a trained picture with everything stored: the projector, the Jacobian over pixels, and its grams.

use super::problem::Subject;
use super::trained::Learner;
use crate::kinds::prelude::*;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;
use posterior_linalg::operator::LinearOperator;
use posterior_networks::Network;
use posterior_tomography::TomographyError;
use posterior_tomography::linearised::{
    ChargedWeights, ConvolutionWeights, DistanceGrams, FilterHyperparameters, ImageHyperparameters,
    ImageTangent, MeasuredTangent, RoughnessTerms, StoredEvidence,
};

/// A lengthscale so short that positions of a filter are not correlated at all.
const UNCORRELATED: f64 = 1e-3;

/// Whether the numbers of a filter know of one another where a search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Correlation {
    None,
    /// A lengthscale of 0.1, as the reference begins.
    Matern,
}

/// What stays of a picture's linear model when the network is put away. Memory: the grams, and `4 d p` bytes of the Jacobian (p pixels).
pub(crate) struct StoredModel {
    pub(crate) weights: ConvolutionWeights,
    pub(crate) grams: DistanceGrams,
    /// The transposed Jacobian (d x p).
    pub(crate) jacobian: Mat<f32>,
    /// T (c x p).
    projector: Mat<f64>,
    /// `g(v)` (p).
    pub(crate) picture: Vec<f64>,
    /// v (d).
    trained: Vec<f64>,
    targets: Vec<f64>,
    residual: Vec<f64>,
}

impl StoredModel {
    /// Of a trained network at its input. Cost: p products back and `2 p² d` flops for each distance in a filter.
    ///
    /// # Errors
    /// [`TomographyError`].
    pub(crate) fn new(
        network: &Network<f32>,
        learner: &Learner<'_>,
        subject: &Subject,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        context.step("Jacobian", 0, 1)?;
        let (projector, sinogram) = (&learner.problem.projector, learner.problem.measure(subject)?);
        let weights = ConvolutionWeights::of(network.graph())?;
        let tangent = ImageTangent::new(network, learner.input(subject)?, weights.selection())?;
        let measured = MeasuredTangent::new(&tangent, projector)?;
        let pixels = projector.geometry().pixels();
        let identity = Mat::<f64>::identity(pixels, pixels);
        let jacobian = tangent.rows(identity.as_ref());
        let each = sinogram.iter().zip(measured.measured_picture());
        Ok(Self {
            grams: DistanceGrams::new(&weights, jacobian.as_ref()),
            projector: projector.multiply(identity.as_ref()),
            picture: tangent.picture(),
            trained: tangent.weights(),
            targets: measured.linear_targets(&sinogram)?,
            residual: each.map(|(y, g)| y - g).collect(),
            jacobian,
            weights,
        })
    }

    /// The evidence, charged for some weights.
    pub(crate) fn evidence<'a>(
        &'a self,
        charged: ChargedWeights,
        roughness: Option<(&'a RoughnessTerms, f64)>,
    ) -> StoredEvidence<'a> {
        StoredEvidence {
            grams: &self.grams,
            projector: Some(self.projector.as_ref()),
            targets: &self.targets,
            residual: &self.residual,
            charged,
            roughness,
        }
    }

    /// The network's own weights, as what the evidence charges for.
    pub(crate) fn held(&self) -> ChargedWeights {
        ChargedWeights::held(&self.weights, &self.trained)
    }

    /// `Tᵀ T` (p x p).
    pub(crate) fn normal(&self) -> Mat<f64> {
        product(self.projector.transpose(), self.projector.as_ref())
    }

    /// Where searches begin: noise as large as what the network leaves of the measurements, variances such that the prior's measurements are as large as the targets.
    pub(crate) fn start(&self, correlation: Correlation) -> ImageHyperparameters {
        let mut filters = FilterHyperparameters::start(self.weights.blocks().len());
        if correlation == Correlation::None {
            filters.log_lengthscales.iter_mut().for_each(|l| *l = UNCORRELATED.ln());
        }
        self.evidence(ChargedWeights::Optimum, None).start(filters, None)
    }

    /// The exact covariance `K - K Tᵀ C⁻¹ T K` of the picture (p x p; equation 7.6). Cost: `c³/3 + 2 c p² + 2 c² p` flops.
    ///
    /// # Errors
    /// [`TomographyError::Cholesky`].
    pub(crate) fn covariance(&self, at: &ImageHyperparameters) -> Result<Mat<f64>, TomographyError> {
        let system = self.evidence(ChargedWeights::Optimum, None).system(at);
        let factor = Cholesky::of(system.as_ref(), JitterPolicy::default())?;
        let kernel = self.grams.kernel(&at.filters);
        let mut white = product(self.projector.as_ref(), kernel.as_ref());
        factor.solve_factor_in_place(white.as_mut());
        Ok(kernel - product(white.transpose(), white.as_ref()))
    }
}
