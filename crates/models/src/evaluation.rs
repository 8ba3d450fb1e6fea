//! **Scores of a model beside those of a simple competitor** on the same examples.
//!
//! A family says what it and its baseline predict ([`Model::predictive`], [`Model::baseline`]); everything here follows from that, for every family.

use crate::describe::funnel_in_words;
use crate::facts::{figure, fixed};
use crate::{Fact, Facts, IntervalScores, Model, ModelError, Predicted, Predictive, Truth};
use posterior_metrics::{
    Average, BinaryEvents, BinaryScores, Classes, ClassificationScores, Funnel, Gaussians,
    JointLogLikelihood, Probabilities, RegressionScores, SetScores, UncertaintyScore,
    out_of_distribution_auc,
};
use serde::{Deserialize, Serialize};

/// Predictions of a model and of a simple competitor, its baseline, for the same examples.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The model's.
    pub model: Predictive,
    /// The competitor's.
    pub baseline: Predictive,
    /// What that is, such as "plain network".
    pub baseline_name: &'static str,
    /// Standard deviation of the target in training.
    pub scale: f64,
    /// Names of the classes; none where no classes are predicted.
    pub class_names: Vec<String>,
}

/// Scores of predictions, by what is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Scores {
    /// Of class probabilities.
    Classes(ClassificationScores),
    /// Of probabilities of events.
    Events(BinaryScores),
    /// Of means and variances of numbers.
    Values {
        /// Those of Gaussians with these moments, also where counts are predicted; of a target that was mapped those of its own distribution.
        scores: RegressionScores,
        /// Mean negative log density of an example under the model's own likelihood.
        #[serde(rename = "nll_of_the_likelihood")]
        nll: f64,
    },
}

impl Scores {
    fn of(predictive: &Predictive, truth: &Truth, scale: f64) -> Result<Self, ModelError> {
        Ok(match (&predictive.predicted, truth) {
            (Predicted::Classes(p), Truth::Classes(labels)) => {
                Self::Classes(Classes::new(p, predictive.width, labels)?.scores())
            }
            (Predicted::Events(p), Truth::Values { .. }) => {
                Self::Events(BinaryEvents::new(p, predictive.width, &truth.events())?.scores())
            }
            (Predicted::Moments { mean, variance, .. }, Truth::Values { values, .. }) => {
                let densities = predictive.log_density.as_deref().unwrap_or_default();
                let nll = -densities.iter().sum::<f64>() / densities.len().max(1) as f64;
                let scores = match &predictive.mapped {
                    Some(mapped) => mapped.scores(mean, values, scale)?,
                    None => Gaussians::new(mean, variance, values)?.scores(scale)?,
                };
                Self::Values { scores, nll }
            }
            _ => {
                let problem = "the truths are not of the kind that the model predicts";
                return Err(ModelError::Request(problem.into()));
            }
        })
    }
}

/// What a model is worth on data whose truth is known.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// What it and its baseline predict.
    pub compared: Comparison,
    /// What came true.
    pub truth: Truth,
    /// The model's scores.
    pub scores: Scores,
    /// The baseline's.
    pub baseline: Scores,
    /// NLL of the model minus that of the baseline, example by example; none for events.
    pub nll_difference: Option<Average>,
    /// What the model's sets of classes are worth; none where it has none.
    pub sets: Vec<SetScores>,
    /// What its intervals of counts or of numbers with outliers are worth; none where no rows tell them.
    pub intervals: Vec<IntervalScores>,
    /// Whether errors grow with the prediction; none of classes, events, counts and several numbers.
    pub funnel: Option<Funnel>,
}

impl Comparison {
    /// Scores both against what came true.
    ///
    /// # Errors
    /// When there are no truths, or they are of another kind than the predictions.
    pub fn scored(mut self) -> Result<Evaluation, ModelError> {
        let Some(truth) = self.model.truth.take() else {
            return Err(ModelError::Request("there are no truths to score against".into()));
        };
        let scores = Scores::of(&self.model, &truth, self.scale)?;
        let baseline = Scores::of(&self.baseline, &truth, self.scale)?;
        let surprise = |predictive: &Predictive| -> Result<Option<Vec<f64>>, ModelError> {
            let log_likelihoods = match (&predictive.predicted, &truth) {
                (Predicted::Classes(p), Truth::Classes(labels)) => {
                    Some(Classes::new(p, predictive.width, labels)?.log_likelihoods())
                }
                (Predicted::Moments { .. }, _) => predictive.log_density.clone(),
                _ => None,
            };
            Ok(log_likelihoods.map(|all| all.into_iter().map(|l| -l).collect()))
        };
        let nll_difference = match (surprise(&self.model)?, surprise(&self.baseline)?) {
            (Some(own), Some(other)) => Some(Average::of_differences(&own, &other)?),
            _ => None,
        };
        let sets = match &truth {
            Truth::Classes(labels) => self.model.sets.iter().map(|own| own.scored(labels)).collect(),
            Truth::Values { .. } => Vec::new(),
        };
        let intervals = match (&self.model.tails, &self.model.predicted, &truth) {
            (
                Some(tails),
                Predicted::Moments { mean, variance, latent_variance },
                Truth::Values { values, .. },
            ) => IntervalScores::of(tails, (mean, variance, latent_variance), values),
            _ => Vec::new(),
        };
        let funnel = match (&self.model.predicted, &truth) {
            (Predicted::Moments { mean, .. }, Truth::Values { values, width: 1 })
                if !self.model.is_approximated() =>
            {
                self.model.residuals(values).and_then(|z| Funnel::of(mean, &z))
            }
            _ => None,
        };
        Ok(Evaluation { compared: self, truth, scores, baseline, nll_difference, sets, intervals, funnel })
    }
}

impl Evaluation {
    /// That errors grow with the prediction, where they do by more than chance, and what a user can do about it.
    pub fn funnel_note(&self, model: &Model) -> Option<String> {
        let sure = self.funnel.filter(|own| own.is_sure())?;
        Some(funnel_in_words(sure, self.len(), &model.funnel_remedy(sure.rank_correlation > 0.0)))
    }

    /// What its sets and intervals are worth, level by level.
    pub fn facts(&self) -> Facts {
        let of = |what: &str, level: f64, held: Fact, size: Fact| {
            Fact::new(format!("{what} of level {level} on these rows"), Facts::new().and(held).and(size))
        };
        let sets = self.sets.iter().map(|own| {
            let held = fixed(100.0 * own.coverage, 1, "% hold the true class");
            of("sets", own.level, held, figure(own.mean_size, "classes on average"))
        });
        let intervals = self.intervals.iter().map(|own| {
            let held = fixed(100.0 * own.coverage, 1, "% hold the truth");
            of("intervals", own.level, held, figure(own.mean_width, "wide on average"))
        });
        Facts::new().with(sets).with(intervals)
    }

    /// The name of a class; its number where it has none.
    pub fn class_name(&self, class: usize) -> String {
        self.compared.class_names.get(class).cloned().unwrap_or_else(|| class.to_string())
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.compared.model.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Joint scores for one number of points in a set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointRow {
    /// Points in a set, kappa.
    pub points: usize,
    /// The model.
    pub model: JointLogLikelihood,
    /// Its baseline.
    pub plain: JointLogLikelihood,
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
    pub fn of(inside: &Predictive, outside: &Predictive) -> Result<Self, ModelError> {
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
