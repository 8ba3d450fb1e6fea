//! One classifier: trained, scored, and what it says of foreign inputs and of the plane.

use super::MethodSettings;
use super::data::{Grid, Problem};
use crate::context::Context;
use crate::error::{ExperimentError, refused};
use crate::training::TrainingSettings;
use posterior_likelihoods::{
    Categorical, Covariance, Integration, LatentGaussian, OutputLikelihood, Prediction, PredictiveRule,
};
use posterior_metrics::{
    Classes, Probabilities, UncertaintyScore, out_of_distribution_auc, out_of_distribution_auc_of_logits,
};
use posterior_networks::train::{Examples, Loss, Targets, evaluate};
use posterior_networks::{Array, Network, Precision};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Instant;
use toml::Table;

/// Test rows that are predicted at a time.
const AT_ONCE: usize = 256;

/// What became of one classifier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    /// On the test rows, after the last epoch.
    pub(super) accuracy: f64,
    /// Nats.
    pub(super) nll: f64,
    /// 15 bins, mean confidence.
    ece: f64,
    /// Mean of the largest probability.
    confidence: f64,
    /// What it cannot exceed once all targets are met; none for cross-entropy.
    ceiling: Option<f64>,
    /// Of the labels of the training rows: what a pseudo-count may be chosen by.
    pub(super) train_nll: f64,
    /// Of training.
    seconds: f64,
    /// Each epoch on the test rows.
    pub(super) epochs: Vec<Epoch>,
    foreign: Vec<Foreign>,
    /// Class probabilities at each point of the plane, point by point.
    pub(super) map: Option<Vec<f64>>,
}

/// Scores of the test rows after an epoch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Epoch {
    pub(super) nll: f64,
    pub(super) error: f64,
}

/// How well foreign inputs are told apart: areas under the curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Foreign {
    name: String,
    by_probability: f64,
    by_logit: f64,
}

/// Outputs of some inputs, and the softmax of each row.
struct Predicted {
    outputs: Vec<f64>,
    probabilities: Vec<f64>,
}

fn predicted<T: Precision>(
    network: &Network<T>,
    x: &Array<T>,
    rule: &PredictiveRule,
    into: &mut Predicted,
) -> Result<(), ExperimentError> {
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
) -> Result<(Predicted, Vec<usize>), ExperimentError> {
    let mut out = Predicted { outputs: Vec::new(), probabilities: Vec::new() };
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
fn map<T: Precision>(
    network: &Network<T>,
    grid: &Grid,
    rule: &PredictiveRule,
) -> Result<Vec<f64>, ExperimentError> {
    let x = grid.inputs();
    let x = Array::new(x.shape().to_vec(), x.values().iter().map(|v| T::from_f64(*v)).collect());
    let mut out = Predicted { outputs: Vec::new(), probabilities: Vec::new() };
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
) -> Result<Found, ExperimentError> {
    let rule =
        PredictiveRule::new(OutputLikelihood::Categorical(Categorical::new(classes)?), Integration::PlugIn)?;
    let started = Instant::now();
    let (train, test) = (&*problem.train, &*problem.test);
    let (trained, _) = training.train_watched(description, train, Some(test), method.loss, context)?;
    let seconds = started.elapsed().as_secs_f64();
    let network = &trained.network;
    let (own, labels) = all(network, test, &rule)?;
    let scores = Classes::new(&own.probabilities, classes, &labels)?.scores();
    let mut foreign = Vec::new();
    for (name, inputs) in &problem.foreign {
        let mut other = Predicted { outputs: Vec::new(), probabilities: Vec::new() };
        predicted(network, inputs, &rule, &mut other)?;
        let (inside, outside) = (
            Probabilities::new(&own.probabilities, classes)?,
            Probabilities::new(&other.probabilities, classes)?,
        );
        foreign.push(Foreign {
            name: name.clone(),
            by_probability: out_of_distribution_auc(&inside, &outside, UncertaintyScore::MaximumProbability)?,
            by_logit: out_of_distribution_auc_of_logits(&own.outputs, &other.outputs, classes)?,
        });
    }
    let epochs = trained.state.history.iter().filter_map(|record| {
        let own = record.validation?;
        Some(Epoch { nll: own.nll?, error: 1.0 - own.accuracy? })
    });
    Ok(Found {
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
        epochs: epochs.collect(),
        foreign,
        map: problem.plane.as_ref().map(|grid| map(network, grid, &rule)).transpose()?,
    })
}

impl Found {
    /// Its numbers.
    pub(super) fn numbers(&self) -> Value {
        let mut out = json!({
            "accuracy": self.accuracy,
            "nll": self.nll,
            "ece": self.ece,
            "confidence": self.confidence,
            "train_nll": self.train_nll,
            "seconds": self.seconds,
        });
        if let Some(ceiling) = self.ceiling {
            out["ceiling"] = ceiling.into();
        }
        if !self.foreign.is_empty() {
            let each = |f: &Foreign| {
                (f.name.clone(), json!({"by_probability": f.by_probability, "by_logit": f.by_logit}))
            };
            out["foreign"] = Value::Object(self.foreign.iter().map(each).collect::<Map<_, _>>());
        }
        out
    }

    /// Names of the foreign sets.
    pub(super) fn foreign(&self) -> impl Iterator<Item = &str> {
        self.foreign.iter().map(|f| f.name.as_str())
    }
}
