//! Scores of a model beside those of its plain network on the same examples.

use super::{LaplaceModel, LaplacePredictions, ModelData, Predicted, Truth};
use crate::ModelError;
use posterior_laplace::UnseenScores;
use posterior_likelihoods::Integration;
use posterior_metrics::{
    Average, BinaryEvents, BinaryScores, Classes, ClassificationScores, Gaussians, Probabilities,
    RegressionScores, UncertaintyScore, out_of_distribution_auc,
};
use serde::{Deserialize, Serialize};

/// What a model is worth on data whose truth is known.
#[derive(Clone, Debug)]
pub enum Evaluation {
    /// Classes.
    Classes(Box<ClassEvaluation>),
    /// Events.
    Events(Box<EventEvaluation>),
    /// Numbers and counts.
    Values(Box<ValueEvaluation>),
}

/// Classes.
#[derive(Clone, Debug)]
pub struct ClassEvaluation {
    /// The model's predictions.
    pub predictions: LaplacePredictions,
    /// The plain network's.
    pub plain: LaplacePredictions,
    /// The true classes.
    pub labels: Vec<usize>,
    /// The model's scores.
    pub scores: ClassificationScores,
    /// The plain network's.
    pub plain_scores: ClassificationScores,
    /// NLL of the model minus that of the plain network, example by example.
    pub nll_difference: Average,
}

/// Events.
#[derive(Clone, Debug)]
pub struct EventEvaluation {
    /// The model's predictions.
    pub predictions: LaplacePredictions,
    /// The plain network's.
    pub plain: LaplacePredictions,
    /// What happened, as probabilities are ordered.
    pub truths: Vec<bool>,
    /// The model's scores.
    pub scores: BinaryScores,
    /// The plain network's.
    pub plain_scores: BinaryScores,
}

/// Numbers and counts.
#[derive(Clone, Debug)]
pub struct ValueEvaluation {
    /// The model's predictions.
    pub predictions: LaplacePredictions,
    /// The plain network's.
    pub plain: LaplacePredictions,
    /// The truths in their own units, row by row.
    pub truths: Vec<f64>,
    /// The model's scores, from means and variances: of numbers of counts they are those of a Gaussian with the same moments.
    pub scores: RegressionScores,
    /// The plain network's.
    pub plain_scores: RegressionScores,
    /// Mean negative log density of an example under the model's own likelihood.
    pub nll: f64,
    /// The same of the plain network.
    pub plain_nll: f64,
    /// NLL of the model minus that of the plain network, example by example.
    pub nll_difference: Average,
}

/// How well inputs of another kind are told from familiar ones: areas under the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutOfDistribution {
    /// By the entropy of the prediction.
    pub entropy: f64,
    /// By its largest probability.
    pub maximum_probability: f64,
}

impl OutOfDistribution {
    /// Of class predictions on familiar and on other inputs.
    ///
    /// # Errors
    /// When these are no class probabilities, or numbers of classes differ.
    pub fn of(inside: &LaplacePredictions, outside: &LaplacePredictions) -> Result<Self, ModelError> {
        let (Predicted::Classes(a), Predicted::Classes(b)) = (&inside.predicted, &outside.predicted) else {
            let problem = "inputs of another kind are told from familiar ones by class probabilities: this model predicts none";
            return Err(ModelError::Request(problem.into()));
        };
        let (a, b) = (Probabilities::new(a, inside.width)?, Probabilities::new(b, outside.width)?);
        Ok(Self {
            entropy: out_of_distribution_auc(&a, &b, UncertaintyScore::Entropy)?,
            maximum_probability: out_of_distribution_auc(&a, &b, UncertaintyScore::MaximumProbability)?,
        })
    }
}

impl Evaluation {
    /// Number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(e) => e.predictions.len(),
            Self::Events(e) => e.predictions.len(),
            Self::Values(e) => e.predictions.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl LaplaceModel {
    /// What negative log densities in the network's units lack of those in the target's.
    pub fn unit_shift(&self) -> f64 {
        super::predict::jacobian(self.likelihood(), self.header.data.target_scale().1)
    }

    /// Scores on rows that the network had not seen at the fit, if there were some, in the target's units.
    pub fn unseen(&self) -> Option<UnseenScores> {
        let (scores, shift) = (self.header.summary.unseen?, self.unit_shift());
        Some(UnseenScores { nll: scores.nll + shift, plain_nll: scores.plain_nll + shift, ..scores })
    }

    /// Scores the model and its plain network on examples with truths.
    ///
    /// # Errors
    /// When the data hold no truths or do not fit.
    pub fn evaluate(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<Evaluation, ModelError> {
        let Some(truth) = &data.truth else {
            return Err(ModelError::Request(format!("{}: there are no truths to score against", data.name)));
        };
        let (predictions, plain) = (self.predict(data, integration)?, self.predict_plain(data)?);
        let mean = |p: &LaplacePredictions| {
            let densities = p.log_density.as_deref().unwrap_or_default();
            -densities.iter().sum::<f64>() / densities.len().max(1) as f64
        };
        let negative =
            |p: &LaplacePredictions| -> Vec<f64> { p.log_density.iter().flatten().map(|d| -d).collect() };
        match (truth, &predictions.predicted, &plain.predicted) {
            (Truth::Classes(labels), Predicted::Classes(p), Predicted::Classes(q)) => {
                let (own, other) =
                    (Classes::new(p, predictions.width, labels)?, Classes::new(q, plain.width, labels)?);
                let (scores, plain_scores) = (own.scores(), other.scores());
                let nll = |c: &Classes<'_>| -> Vec<f64> { c.log_likelihoods().iter().map(|l| -l).collect() };
                let nll_difference = Average::of_differences(&nll(&own), &nll(&other))?;
                let labels = labels.clone();
                let evaluation =
                    ClassEvaluation { labels, scores, plain_scores, nll_difference, predictions, plain };
                Ok(Evaluation::Classes(Box::new(evaluation)))
            }
            (Truth::Values { values, .. }, Predicted::Events(p), Predicted::Events(q)) => {
                let truths: Vec<bool> = values.iter().map(|v| *v > 0.5).collect();
                let scores = BinaryEvents::new(p, predictions.width, &truths)?.scores();
                let plain_scores = BinaryEvents::new(q, plain.width, &truths)?.scores();
                Ok(Evaluation::Events(Box::new(EventEvaluation {
                    truths,
                    scores,
                    plain_scores,
                    predictions,
                    plain,
                })))
            }
            (
                Truth::Values { values, .. },
                Predicted::Moments { mean: m, variance: v, .. },
                Predicted::Moments { mean: k, variance: w, .. },
            ) => {
                let scale = self.header.data.target_scale().1;
                let scores = Gaussians::new(m, v, values)?.scores(scale)?;
                let plain_scores = Gaussians::new(k, w, values)?.scores(scale)?;
                let (nll, plain_nll) = (mean(&predictions), mean(&plain));
                let nll_difference = Average::of_differences(&negative(&predictions), &negative(&plain))?;
                let truths = values.clone();
                let evaluation = ValueEvaluation {
                    truths,
                    scores,
                    plain_scores,
                    nll,
                    plain_nll,
                    nll_difference,
                    predictions,
                    plain,
                };
                Ok(Evaluation::Values(Box::new(evaluation)))
            }
            _ => Err(ModelError::Request("the truths are not of the kind that the model predicts".into())),
        }
    }
}
