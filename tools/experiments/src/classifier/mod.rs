//! A trained classifier of images with its tangent model: curvatures in every form, the mode, precisions by expectation maximisation, samples. What approximations of its posterior are compared by.

mod curvature;
mod predicted;
mod samples;
mod turns;

pub(crate) use curvature::Curvature;
pub(crate) use predicted::Predicted;
pub(crate) use samples::{exact_samples, leading};
pub(crate) use turns::{LearnedPrecisions, Norm, Point, TurnSettings};

use super::context::Context;
use super::error::{ExperimentError, Result};
use super::images::{ImageSettings, Shared};
use super::training::TrainingSettings;
use posterior_laplace::PriorKind;
use posterior_likelihoods::{Categorical, OutputLikelihood};
use posterior_linear::Prior;
use posterior_linear::structure::Structure;
use posterior_networks::train::{Loss, Targets, evaluate};
use posterior_networks::{Array, Network, Selection};
use posterior_report::SummaryRow;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::rc::Rc;
use toml::Table;

/// One `[[network]]` of experiments on classifiers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct NetworkSettings {
    /// Its name in tables.
    pub(crate) name: String,
    /// As architecture files have it.
    pub(crate) architecture: Table,
    /// Patterns of the parameters that are uncertain; none: all.
    #[serde(default)]
    pub(crate) weights: Vec<String>,
}

/// A classifier that is trained when it is first asked for: a run that has all its parts needs none.
pub(crate) struct Untrained<'a> {
    data: &'a ImageSettings,
    training: &'a TrainingSettings,
    network: &'a NetworkSettings,
    trained: Option<Classifier>,
}

impl<'a> Untrained<'a> {
    pub(crate) fn new(
        data: &'a ImageSettings,
        training: &'a TrainingSettings,
        network: &'a NetworkSettings,
    ) -> Self {
        Self { data, training, network, trained: None }
    }

    /// Everything that the trained network depends on.
    pub(crate) fn depends(&self) -> (&'a ImageSettings, &'a TrainingSettings, &'a NetworkSettings) {
        (self.data, self.training, self.network)
    }

    /// The classifier.
    ///
    /// # Errors
    /// Data that are not there, settings that do not fit, training that goes wrong, interruption.
    pub(crate) fn trained(&mut self, context: &mut Context<'_>) -> Result<&mut Classifier> {
        if self.trained.is_none() {
            let (train, test) = self.data.read(context.folder)?;
            let (network, _) = self.training.train(
                &self.network.architecture,
                train.as_ref(),
                Loss::CrossEntropy,
                context,
            )?;
            let patterns: Vec<&str> = self.network.weights.iter().map(String::as_str).collect();
            let selection = match patterns.is_empty() {
                true => Selection::all(network.graph()),
                false => Selection::matching(network.graph(), &patterns)?,
            };
            self.trained = Some(Classifier {
                selection,
                likelihood: OutputLikelihood::Categorical(Categorical::new(self.data.classes)?),
                seed: context.seed,
                name: self.network.name.clone(),
                network,
                train,
                test,
                structures: Vec::new(),
            });
        }
        self.trained.as_mut().ok_or_else(|| ExperimentError::Setting("there is no network".into()))
    }

    /// A line for the report: the network, its weights and how often it is right on test images.
    ///
    /// # Errors
    /// As [`Self::trained`].
    pub(crate) fn fact(&mut self, context: &mut Context<'_>) -> Result<(SummaryRow, Facts)> {
        let name = self.network.name.clone();
        let depends = self.depends();
        let facts: Facts = context
            .once(&format!("{name}: the network"), &depends, |context| self.trained(context)?.facts())?;
        let text = format!("{} weights, {:.2} % right", facts.weights, 100.0 * facts.accuracy);
        Ok((SummaryRow::new(name, text), facts))
    }
}

/// About a network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Weights that are uncertain.
    pub(crate) weights: usize,
    /// The share of test images whose class has the largest output.
    pub(crate) accuracy: f64,
}

/// A trained classifier.
pub(crate) struct Classifier {
    pub(crate) network: Network<f32>,
    pub(crate) selection: Selection,
    pub(crate) likelihood: OutputLikelihood,
    pub(crate) train: Shared,
    test: Shared,
    name: String,
    seed: u64,
    structures: Vec<(Curvature, Rc<Structure>)>,
}

/// Test images that are looked at together.
const AT_ONCE: usize = 256;

/// Sees some test images and their numbers.
type VisitImages<'a> = dyn FnMut(&Array<f32>, Range<usize>) -> Result<()> + 'a;

impl Classifier {
    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.network.graph().output_shape().iter().product()
    }

    fn facts(&self) -> Result<Facts> {
        let found = evaluate(&self.network, self.test.as_ref(), Loss::CrossEntropy, &[])?;
        Ok(Facts { weights: self.selection.len(), accuracy: found.accuracy.unwrap_or(f64::NAN) })
    }

    /// Shows the test images, some at a time, with their numbers.
    fn test_images(&self, visit: &mut VisitImages<'_>) -> Result<()> {
        let count = self.test.len();
        for start in (0..count).step_by(AT_ONCE) {
            let range = start..(start + AT_ONCE).min(count);
            let (x, _) = self.test.batch(&range.clone().collect::<Vec<_>>(), None);
            visit(&x, range)?;
        }
        Ok(())
    }

    /// Classes of the test images.
    pub(crate) fn test_labels(&self) -> Vec<usize> {
        let all: Vec<usize> = (0..self.test.len()).collect();
        match self.test.batch(&all, None).1 {
            Targets::Classes(labels) => labels.into_iter().map(|l| l as usize).collect(),
            Targets::Values(_) => Vec::new(),
        }
    }

    /// A prior over the weights with one precision everywhere.
    ///
    /// # Errors
    /// A precision that is not positive.
    pub(crate) fn prior(&self, kind: &PriorKind, precision: f64) -> Result<Prior> {
        Ok(kind.prior(self.network.graph(), &self.selection, precision)?)
    }
}
