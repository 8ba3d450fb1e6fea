//! One classifier: trained, scored, and what it says of foreign inputs and of the plane.

use super::MethodSettings;
use super::data::{Grid, Problem};
use crate::kinds::prelude::*;
use crate::training::TrainingSettings;
use posterior_likelihoods::{
    Categorical, Covariance, Integration, LatentGaussian, OutputLikelihood, Prediction, PredictiveRule,
};
use posterior_metrics::{
    Classes, Probabilities, UncertaintyScore, out_of_distribution_auc, out_of_distribution_auc_of_logits,
};
use posterior_networks::train::{Examples, Loss, Targets, evaluate};
use posterior_networks::{Array, Network, Precision};
use std::collections::BTreeMap;
use std::time::Instant;
use toml::Table;

/// Test rows that are predicted at a time.
const AT_ONCE: usize = 256;

/// What became of one classifier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    #[serde(flatten)]
    pub(super) scores: Scores,
    /// Each epoch on the test rows.
    pub(super) epochs: Vec<Epoch>,
    /// Class probabilities at each point of the plane, point by point.
    pub(super) map: Option<Vec<f64>>,
}

/// Its numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scores {
    /// On the test rows, after the last epoch.
    pub(super) accuracy: f64,
    /// Nats.
    nll: f64,
    /// 15 bins, mean confidence.
    ece: f64,
    /// Mean of the largest probability.
    confidence: f64,
    /// What it cannot exceed once all targets are met; none for cross-entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling: Option<f64>,
    /// Of the labels of the training rows: what a pseudo-count may be chosen by.
    pub(super) train_nll: f64,
    /// Of training.
    seconds: f64,
    /// How well inputs of other kinds are told apart, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) foreign: BTreeMap<String, Foreign>,
}

/// Scores of the test rows after an epoch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Epoch {
    pub(super) nll: f64,
    pub(super) error: f64,
}

/// How well foreign inputs are told apart: areas under the curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Foreign {
    by_probability: f64,
    by_logit: f64,
}

/// Outputs of some inputs, and the softmax of each row.
#[derive(Default)]
struct Predicted {
    outputs: Vec<f64>,
    probabilities: Vec<f64>,
}

fn predicted<T: Precision>(
    network: &Network<T>,
    x: &Array<T>,
    rule: &PredictiveRule,
    into: &mut Predicted,
) -> Result<()> {
    let classes = rule.likelihood().outputs();
    let zeros = vec![0.0; classes];
    let outputs = network.forward(x)?;
    for row in outputs.values().chunks_exact(classes) {
        let mean: Vec<f64> = row.iter().map(|v| v.to_f64()).collect();
        let latent = LatentGaussian { mean: &mean, covariance: Covariance::Diagonal(&zeros) };
        let Prediction::Classes(own) = rule.predict(latent)? else {
            return refused("the likelihood is not one of classes");
        };
        into.probabilities.extend(own);
        into.outputs.extend(mean);
    }
    Ok(())
}

/// All examples of a set, with their labels.
fn all<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    rule: &PredictiveRule,
) -> Result<(Predicted, Vec<usize>)> {
    let mut out = Predicted::default();
    let mut labels = Vec::new();
    let rows: Vec<usize> = (0..examples.len()).collect();
    for indices in rows.chunks(AT_ONCE) {
        let (x, targets) = examples.batch(indices, None);
        predicted(network, &x, rule, &mut out)?;
        if let Targets::Classes(own) = targets {
            labels.extend(own.into_iter().map(|l| l as usize));
        }
    }
    Ok((out, labels))
}

/// The network on the plane; points of single precision would be as good.
fn map<T: Precision>(network: &Network<T>, grid: &Grid, rule: &PredictiveRule) -> Result<Vec<f64>> {
    let x = grid.inputs();
    let x = Array::new(x.shape().to_vec(), x.values().iter().map(|v| T::from_f64(*v)).collect());
    let mut out = Predicted::default();
    predicted(network, &x, rule, &mut out)?;
    Ok(out.probabilities)
}

/// Trains a network with the method's loss and scores it.
pub(super) fn score<T: Precision>(
    problem: &Problem<T>,
    (description, training): (&Table, &TrainingSettings),
    method: &MethodSettings,
    classes: usize,
    context: &mut Context<'_>,
) -> Result<Found> {
    let rule =
        PredictiveRule::new(OutputLikelihood::Categorical(Categorical::new(classes)?), Integration::PlugIn)?;
    let started = Instant::now();
    let (train, test) = (&*problem.train, &*problem.test);
    let (trained, _) = training.train_watched(description, train, Some(test), method.loss, context)?;
    let seconds = started.elapsed().as_secs_f64();
    let network = &trained.network;
    let (own, labels) = all(network, test, &rule)?;
    let scores = Classes::new(&own.probabilities, classes, &labels)?.scores();
    let mut foreign = BTreeMap::new();
    for (name, inputs) in &problem.foreign {
        let mut other = Predicted::default();
        predicted(network, inputs, &rule, &mut other)?;
        let (inside, outside) = (
            Probabilities::new(&own.probabilities, classes)?,
            Probabilities::new(&other.probabilities, classes)?,
        );
        let told = Foreign {
            by_probability: out_of_distribution_auc(&inside, &outside, UncertaintyScore::MaximumProbability)?,
            by_logit: out_of_distribution_auc_of_logits(&own.outputs, &other.outputs, classes)?,
        };
        foreign.insert(name.clone(), told);
    }
    let epochs = trained.state.history.iter().filter_map(|record| {
        let own = record.validation?;
        Some(Epoch { nll: own.nll?, error: 1.0 - own.accuracy? })
    });
    let scores = Scores {
        accuracy: scores.accuracy,
        nll: scores.nll,
        ece: scores.ece,
        confidence: scores.mean_confidence,
        ceiling: match method.loss {
            Loss::Gaussianised(own) => Some(own.confidence_ceiling(classes)),
            Loss::OneHot => Some(1.0 / (1.0 + (classes - 1) as f64 * (-1f64).exp())),
            _ => None,
        },
        train_nll: evaluate(network, train, Loss::CrossEntropy, &[])?.loss,
        seconds,
        foreign,
    };
    let map = problem.plane.as_ref().map(|grid| map(network, grid, &rule)).transpose()?;
    Ok(Found { scores, epochs: epochs.collect(), map })
}
