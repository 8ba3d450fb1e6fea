//! What posteriors say about the test images.

use super::{Classifier, Curvature};
use crate::context::Context;
use crate::error::{Result, refused};
use faer::MatRef;
use posterior_laplace::{Latent, Predictor, Wanted};
use posterior_likelihoods::{Integration, OutputLikelihood, Prediction, PredictiveRule};
use posterior_linear::structure::Structure;
use posterior_linear::{LinearError, Prior};
use posterior_metrics::{Classes, ClassificationScores, squared_wasserstein2_gaussians};
use posterior_networks::Array;
use serde::{Deserialize, Serialize};

/// Gaussian outputs of the test images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Predicted {
    classes: usize,
    /// `[images, C]`.
    pub(crate) mean: Vec<f64>,
    /// `[images, C, C]`, or `[images, C]` where only variances are known.
    pub(crate) covariance: Vec<f64>,
}

impl Predicted {
    /// Outputs that are certain.
    pub(crate) fn certain(classes: usize, mean: Vec<f64>) -> Self {
        Self { classes, covariance: vec![0.0; mean.len() * classes], mean }
    }

    /// Probabilities of each image, one after another, by the probit rule.
    ///
    /// # Errors
    /// A likelihood that is not one of classes.
    pub(crate) fn probabilities(&self, likelihood: &OutputLikelihood) -> Result<Vec<f64>> {
        let rule = PredictiveRule::new(likelihood.clone(), Integration::Probit)?;
        let latent = Latent {
            outputs: self.classes,
            mean: self.mean.clone(),
            covariance: self.covariance.clone(),
            wanted: if self.covariance.len() == self.mean.len() { Wanted::Diagonal } else { Wanted::Full },
            clipped: 0,
        };
        let mut all = Vec::with_capacity(latent.mean.len());
        for i in 0..latent.examples() {
            let Prediction::Classes(own) = rule.predict(latent.example(i))? else {
                return refused("the likelihood is not one of classes");
            };
            all.extend(own);
        }
        Ok(all)
    }

    /// Mean over images of the Wasserstein distance (root of the squared one) to Gaussians with the same means.
    ///
    /// # Errors
    /// Covariances that are not finite.
    pub(crate) fn wasserstein2(&self, other: &Self) -> Result<f64> {
        let (c, size) = (self.classes, self.classes * self.classes);
        let mut sum = 0.0;
        for (a, b) in self.covariance.chunks_exact(size).zip(other.covariance.chunks_exact(size)) {
            let of = |values| MatRef::from_row_major_slice(values, c, c);
            sum += squared_wasserstein2_gaussians(of(a), of(b))?.sqrt();
        }
        Ok(sum / (self.covariance.len() / size) as f64)
    }

    /// The variances of all outputs.
    pub(crate) fn variances(&self) -> impl Iterator<Item = f64> {
        let size = self.classes * self.classes;
        self.covariance.chunks_exact(size).flat_map(|v| v.iter().step_by(self.classes + 1)).copied()
    }
}

impl Classifier {
    /// Probit scores on the test images.
    ///
    /// # Errors
    /// As [`Predicted::probabilities`].
    pub(crate) fn scores(&self, predicted: &Predicted) -> Result<ClassificationScores> {
        let probabilities = predicted.probabilities(&self.likelihood)?;
        Ok(Classes::new(&probabilities, self.classes(), &self.test_labels())?.scores())
    }

    /// Outputs at the test images with their full covariances, by what a posterior says about some images at a time.
    ///
    /// # Errors
    /// Those of `latent`; interruption.
    pub(crate) fn predicted(
        &self,
        context: &mut Context<'_>,
        latent: &mut dyn FnMut(&Array<f32>) -> Result<Latent>,
    ) -> Result<Predicted> {
        let mut all = Predicted { classes: self.classes(), mean: Vec::new(), covariance: Vec::new() };
        let (stage, count) = (format!("{}: test images", self.name), self.test.len());
        self.test_images(&mut |x, range| {
            context.step(&stage, range.start, count)?;
            let own = latent(x)?;
            all.mean.extend(own.mean);
            all.covariance.extend(own.covariance);
            Ok(())
        })?;
        Ok(all)
    }

    /// By a form of the curvature under a prior.
    ///
    /// # Errors
    /// Those of the curvature.
    pub(crate) fn by_curvature(
        &mut self,
        curvature: Curvature,
        prior: &Prior,
        context: &mut Context<'_>,
    ) -> Result<Predicted> {
        let structure = self.curvature(curvature, context)?;
        self.by_structure(&structure, prior, context)
    }

    /// By a curvature under a prior.
    ///
    /// # Errors
    /// A curvature that has no factor; interruption.
    pub(crate) fn by_structure(
        &self,
        structure: &Structure,
        prior: &Prior,
        context: &mut Context<'_>,
    ) -> Result<Predicted> {
        let posterior = structure.condition(prior, 1.0).map_err(LinearError::from)?;
        let predictor = Predictor::new(&self.network, &self.selection, vec![posterior])?;
        self.predicted(context, &mut |x| Ok(predictor.latent(&self.network, x, Wanted::Full)?.remove(0)))
    }
}
