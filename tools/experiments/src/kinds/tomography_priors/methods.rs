//! Ways to a predictive, and those of them that the network's tangent gives.

use super::baselines;
use super::predictive::{Predictive, Spread};
use super::problem::Subject;
use super::trained::{Learner, Trained};
use super::uncertainty::UncertaintySettings;
use crate::kinds::prelude::*;
use posterior_tomography::linearised::GPriorOptions;
use posterior_tomography::reconstruction::TotalVariationRequest;
use posterior_tomography::running::{Checkpointer, Stage};
use posterior_tomography::uncertainty::{
    FilterOptions, ImagePriorChoice, PriorReport, UncertaintyOptions, infer,
};
use std::collections::BTreeMap;
use std::time::Instant;

/// One `[[uncertainty.method]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct MethodSettings {
    pub(crate) name: String,
    pub(crate) way: Way,
}

/// How a method comes to its Gaussian over images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// A network of its own whose channels are dropped, in training and in prediction.
    Dropout(DropoutSettings),
    /// The tangent, with a variance and a lengthscale for each block, by the evidence with or without the prior that expects smooth pictures.
    Filters(FilterOptions),
    /// The tangent, with one precision for scaled weights, by expectation maximisation with samples.
    GPrior(GPriorOptions),
    /// Independent pixels of one variance, by the evidence.
    Isotropic(IsotropicSettings),
    /// The smoothest picture; its error is a guess.
    TotalVariation(TotalVariationRequest),
}

/// Of dropped channels.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct DropoutSettings {
    pub(crate) rate: f64,
}

/// Of independent pixels.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct IsotropicSettings {
    /// Steps of L-BFGS at most.
    pub(crate) steps: usize,
}

impl MethodSettings {
    pub(crate) fn check(&self) -> Result<()> {
        match &self.way {
            Way::Dropout(own) if !(own.rate > 0.0 && own.rate < 1.0) => {
                refused(format!("method `{}`: `rate` is between 0 and 1", self.name))
            }
            Way::Isotropic(own) if own.steps == 0 => {
                refused(format!("method `{}`: `steps` are at least 1", self.name))
            }
            _ => Ok(()),
        }
    }

    /// What it says of an image.
    ///
    /// # Errors
    /// What fails or is interrupted.
    pub(crate) fn predict(
        &self,
        settings: &UncertaintySettings,
        learner: &Learner<'_>,
        (subject, trained): (&Subject, &Trained),
        context: &mut Context<'_>,
    ) -> Result<Predictive> {
        let tangent = |prior: ImagePriorChoice, context: &mut Context<'_>| {
            linearised(&self.name, prior, settings, learner, (subject, trained), context)
        };
        match &self.way {
            Way::Dropout(own) => baselines::dropout(own.rate, settings, learner, subject, context),
            Way::Filters(own) => tangent(ImagePriorChoice::Filters(own.clone()), context),
            Way::GPrior(own) => tangent(ImagePriorChoice::GPrior(own.clone()), context),
            Way::Isotropic(own) => baselines::isotropic(own.steps, settings, learner, subject, context),
            Way::TotalVariation(own) => baselines::total_variation(own, learner, subject, context),
        }
    }
}

/// The posterior around the network's picture.
fn linearised(
    name: &str,
    prior: ImagePriorChoice,
    settings: &UncertaintySettings,
    learner: &Learner<'_>,
    (subject, trained): (&Subject, &Trained),
    context: &mut Context<'_>,
) -> Result<Predictive> {
    let network = learner.network(trained)?;
    let sinogram = learner.problem.measure(subject)?;
    let seed = Streams::new(context.seed).child("experiment/tomography draws", 0).seed();
    let (samples, rank, conjugate) = (settings.samples, Some(settings.rank), settings.conjugate.clone());
    let options = UncertaintyOptions { prior, samples, conjugate, rank, seed };
    let input = learner.input(subject)?;
    let begun = Instant::now();
    // What comes before the draws is the search.
    let mut known = begun;
    let found = infer(
        &learner.problem.projector,
        &sinogram,
        (&network, input),
        &options,
        &mut Checkpointer::none(),
        &mut |stage, done, all, _| {
            if stage != Stage::Pictures {
                known = Instant::now();
            }
            context.tell(&format!("{}: {name}: {stage}", subject.name), done, all)
        },
    )?;
    let mut facts = BTreeMap::from([
        ("noise_variance".to_string(), found.report.noise_variance),
        ("residual".to_string(), found.report.residual),
        ("largest_residual".to_string(), found.report.largest_residual),
    ]);
    match &found.report.prior {
        PriorReport::GPrior { fit, raised } => {
            facts.insert("precision".into(), fit.precision);
            facts.insert("turns".into(), fit.turns.len() as f64);
            facts.insert("raised_scales".into(), *raised as f64);
        }
        PriorReport::Filters(report) => {
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
            facts.insert("mean_log_variance".into(), mean(&report.filters.log_variances));
            facts.insert("mean_log_lengthscale".into(), mean(&report.filters.log_lengthscales));
            facts.insert("least_variances".into(), report.filters.blocks_at_bound() as f64);
            facts.insert("steps".into(), report.steps as f64);
        }
    }
    Ok(Predictive {
        mean: found.picture,
        deviations: found.deviations,
        spread: Spread::Draws(found.samples),
        hyperparameter_seconds: (known - begun).as_secs_f64(),
        prediction_seconds: known.elapsed().as_secs_f64(),
        facts,
    })
}
