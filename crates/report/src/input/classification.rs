//! A classification model on one dataset, beside its competitors.

use super::{Curves, Distribution, ImagePrediction, Item, Note, Plane, Reliability, SummaryRow};
use posterior_metrics::{Average, ClassificationScores, ConfusionMatrix, JointLogLikelihood};
use serde::{Deserialize, Serialize};

/// A classification model on one dataset. Start from `ClassificationReport::default()` and fill in what is known: an absent
/// part leaves its figures and tables out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassificationReport {
    /// Name of the dataset; heading of the section.
    pub dataset: String,
    /// A sentence on what the problem is; may be empty.
    pub description: String,
    /// Name of the model.
    pub model: String,
    /// Names of the classes; missing ones are numbered.
    pub class_names: Vec<String>,
    /// Facts about the model and its fit, in order (network, method, rows, seconds, ...).
    pub summary: Vec<SummaryRow>,
    /// Scores on held-out rows.
    pub scores: Option<ClassificationScores>,
    /// Scores of the plain network on the same rows, by which the model is judged.
    pub plain: Option<ClassificationBaseline>,
    /// The model's NLL minus the plain network's, row by row (`Average::of_differences`): the verdict says whether the difference
    /// could be chance.
    pub nll_difference: Option<Average>,
    /// All methods side by side. If empty, the model and the plain network are listed.
    pub methods: Vec<MethodRow>,
    /// Reliability of the model and of others.
    pub reliability: Option<Reliability>,
    /// Largest probability of each row, one distribution per method.
    pub confidences: Vec<Distribution>,
    /// Which classes are taken for which.
    pub confusion: Option<ConfusionMatrix>,
    /// Held-out pictures with the most certain predictions.
    pub most_certain: Vec<ImagePrediction>,
    /// Held-out pictures with the least certain predictions.
    pub least_certain: Vec<ImagePrediction>,
    /// Scores as the inputs are changed more and more.
    pub shifts: Vec<ShiftCurves>,
    /// Predictions on inputs of another kind.
    pub out_of_distribution: Option<OutOfDistribution>,
    /// Joint log-likelihoods, one column per method.
    pub joint: Vec<JointScores>,
    /// Predictions over the plane, for problems with two inputs.
    pub plane: Option<Plane>,
    /// Evidence along hyperparameters, and other curves.
    pub evidence: Vec<Curves>,
    /// Anything else, after the other figures.
    pub more: Vec<Item>,
    /// What happened on the way.
    pub notes: Vec<Note>,
}

/// A competitor by which the scores are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassificationBaseline {
    /// What it is, as in "plain network".
    pub name: String,
    /// Its scores on the same rows.
    pub scores: ClassificationScores,
}

/// One method in the table of methods; what is unknown is a dash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MethodRow {
    /// Its name.
    pub name: String,
    /// Share of rows predicted correctly.
    pub accuracy: Option<f64>,
    /// Mean negative log-likelihood, in nats.
    pub nll: Option<f64>,
    /// Expected calibration error.
    pub ece: Option<f64>,
    /// Brier score, not halved.
    pub brier: Option<f64>,
    /// Area under the curve of telling inputs of another kind by entropy.
    pub out_of_distribution_auc: Option<f64>,
    /// Time to fit, in seconds.
    pub seconds: Option<f64>,
    /// Largest memory in use, in mebibytes.
    pub peak_memory: Option<f64>,
}

impl MethodRow {
    /// A row with the scores of a method; the rest is to be filled in.
    pub fn new(name: impl Into<String>, scores: &ClassificationScores) -> Self {
        Self {
            name: name.into(),
            accuracy: Some(scores.accuracy),
            nll: Some(scores.nll),
            ece: Some(scores.ece),
            brier: Some(scores.brier),
            ..Self::default()
        }
    }
}

/// Scores along a shift of the inputs: angle of a rotation, severity of a corruption. One picture per score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftCurves {
    /// What is shifted, with its unit, as in "rotation (degrees)".
    pub parameter: String,
    /// One curve per method.
    pub methods: Vec<ShiftCurve>,
    /// Values from elsewhere, shown as rings in the colour of the method of the same name.
    pub references: Vec<ShiftCurve>,
}

/// Scores of one method along a shift. Empty scores are not drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftCurve {
    /// Name of the method.
    pub method: String,
    /// Values of the parameter.
    pub at: Vec<f64>,
    /// Mean negative log-likelihood at each.
    pub nll: Vec<f64>,
    /// Expected calibration error at each.
    pub ece: Vec<f64>,
    /// Accuracy at each.
    pub accuracy: Vec<f64>,
    /// Mean entropy at each.
    pub entropy: Vec<f64>,
}

/// Entropies of predictions on inputs of the kind of the training data, and of another kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutOfDistribution {
    /// Name of the familiar data.
    pub inside: String,
    /// Name of the strange data.
    pub outside: String,
    /// One picture per method.
    pub methods: Vec<OutOfDistributionMethod>,
}

/// Entropies by one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutOfDistributionMethod {
    /// Name of the method.
    pub name: String,
    /// Entropies of its predictions on familiar inputs, in nats.
    pub inside: Vec<f64>,
    /// Entropies of its predictions on strange inputs, in nats.
    pub outside: Vec<f64>,
    /// Area under the curve of telling them apart (`posterior_metrics::out_of_distribution_auc`).
    pub auc: Option<f64>,
}

/// Joint log-likelihoods of one method, over several sizes of sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JointScores {
    /// Name of the method.
    pub method: String,
    /// Its scores, one per number of points in a set.
    pub scores: Vec<JointLogLikelihood>,
}
