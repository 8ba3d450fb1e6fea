//! What stands in the file of a process under any likelihood besides arrays.

use super::target::Target;
use crate::options::InferenceName;
use crate::process::{DeepSummary, GviSummary, Header, StreamedRows};
use crate::rows::CheckedOn;
use crate::{ClassRecalibration, Hyperparameter, ObservedRecalibration};
use posterior_data::{InputRanges, Notes, Schema, Standardisation};
use posterior_gp::exact::Plan;
use posterior_gp::{Hyperprior, MeanForm};
use posterior_kernels::KernelExpression;
use posterior_likelihoods::OutputLikelihood;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_optim::Reason;
use serde::{Deserialize, Serialize};

/// Scores of predictions; lower NLL is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelScores {
    /// Mean of `-log p(y | x)`, nats.
    pub nll: f64,
    /// Share of rows whose most probable class is theirs; none for counts and numbers.
    pub accuracy: Option<f64>,
    /// Expected calibration error of that class's probability; none for counts and numbers.
    pub ece: Option<f64>,
    /// Share of rows inside two standard deviations; none for classes.
    pub within_two_deviations: Option<f64>,
}

/// What is known of a fit's quality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCheck {
    /// Which rows.
    pub on: CheckedOn,
    /// How many.
    pub rows: usize,
    /// Rows that were held back as well and equal rows that are learned from, to which they were given back.
    pub twins: usize,
    /// Copies of these rows that were left out with them.
    pub copies: usize,
    /// Their scores.
    pub scores: LabelScores,
    /// NLL of a model that knows the targets' distribution and no inputs.
    pub baseline_nll: f64,
    /// What a user must know.
    pub warnings: Vec<String>,
}

/// A process without learned features that was fitted to a few of the rows, to compare with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainProcess {
    /// How its posterior is approximated.
    pub inference: InferenceName,
    /// Rows that it learned from.
    pub rows: usize,
    /// Its scores on the rows that were held back.
    pub scores: LabelScores,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What came of features that were learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureSummary {
    /// How they were trained.
    pub learned: DeepSummary,
    /// The constant that is added to every latent value: with weights of zero, predictions ignore the inputs. Log-odds of yes; the logarithm of the mean count for each unit of relative exposure;
    /// the logarithm of an even intensity of events. It is 0 for numbers, and for classes with a function each.
    pub level: f64,
    /// The objective of the way that was chosen, averaged over recent steps, nats for each row.
    pub objective: f64,
    /// Steps that an earlier run had taken.
    pub resumed_from: usize,
    /// Of events: how many the mean intensity has in the whole window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_events: Option<f64>,
    /// A plain process of few rows; none where no rows were held back to compare on, or it could not be had.
    pub plain: Option<PlainProcess>,
}

/// What came of a mean and a covariance that were trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariationSummary {
    /// How they were trained.
    pub learned: GviSummary,
    /// The objective of the way that was chosen, averaged over recent steps, nats for each row.
    pub objective: f64,
    /// Steps that an earlier run had taken.
    pub resumed_from: usize,
    /// A plain process of few rows; none where no rows were held back to compare on, or it could not be had.
    pub plain: Option<PlainProcess>,
}

/// Pseudo-counts that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedPseudoCount {
    /// How the Gaussian was matched.
    pub matching: Matching,
    /// The pseudo-count.
    pub pseudo_count: f64,
    /// Its scores: every row of a part of the table predicted from the others of it, under hyperparameters that its half had no part in.
    pub scores: LabelScores,
    /// Whether yes and no were taken as two classes with a function each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_classes: bool,
}

/// A pseudo-count that was learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundedPseudoCount {
    /// How the Gaussian was matched.
    pub matching: Matching,
    /// The pseudo-count.
    pub pseudo_count: f64,
    /// The bound on the log evidence of the labels, nats.
    pub bound: f64,
}

/// How labels became numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandInSummary {
    /// Which numbers.
    pub gaussianised: Gaussianised,
    /// Pseudo-counts that were compared to choose it; none where it was given.
    pub tried: Vec<TriedPseudoCount>,
    /// Rows that they were compared on.
    pub tried_on: usize,
    /// Pseudo-counts that were learned, of which the one of the highest bound was kept; none where it was chosen otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundedPseudoCount>,
    /// Prior mean of each latent function.
    pub offsets: Vec<f64>,
    /// The standard unit of all.
    pub scale: f64,
    /// How each latent function was fitted: its process's own description.
    pub members: Vec<Header>,
}

/// What came of a stochastic bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundSummary {
    /// The bound averaged over recent steps, nats.
    pub bound: f64,
    /// Inducing points.
    pub inducing: usize,
    /// Whether they moved.
    pub moved: bool,
}

/// What came of a search for the mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeSummary {
    /// Laplace's approximation of the log evidence, nats.
    pub log_evidence: f64,
    /// Newton steps of the last mode.
    pub newton_steps: usize,
}

/// An inference that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedInference {
    /// Which.
    pub inference: InferenceName,
    /// Scores of every row as the others predict it, under hyperparameters that its half had no part in.
    pub scores: Option<LabelScores>,
    /// Seconds it took.
    pub seconds: f64,
}

/// How the fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneralisedSummary {
    /// Why this likelihood.
    pub likelihood_choice: String,
    /// Why this inference and this method.
    pub choice: String,
    /// Inferences that were compared, where it was ours to choose; the better one was kept.
    pub tried: Vec<TriedInference>,
    /// Beliefs about hyperparameters, the weak default ones included.
    pub hyperpriors: Vec<Hyperprior>,
    /// Where hyperparameters come from.
    pub hyperparameter_source: String,
    /// Why the search for them ended.
    pub reason: Reason,
    /// Its steps.
    pub steps: usize,
    /// Its evaluations.
    pub evaluations: usize,
    /// Largest jitter that anything needed, in standard units.
    pub largest_jitter: f64,
    /// Hyperparameters at a bound that was set for them, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// The plan that was stated before.
    pub plan: Plan,
    /// What was found in the data.
    pub data: Notes,
    /// What is odd about the target.
    pub odd: Vec<String>,
    /// What rows count, in words, where not all count the same.
    pub weights: Option<String>,
    /// How good the fit is on rows that had no part in it.
    pub check: Option<LabelCheck>,
    /// What these rows say of class probabilities and sets; None of other targets, and where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<ClassRecalibration>,
    /// What intervals of counts and of numbers with outliers are worth, where such rows tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<ObservedRecalibration>,
    /// Of Gaussianised inference.
    pub stand_ins: Option<StandInSummary>,
    /// Of variational inference.
    pub bound: Option<BoundSummary>,
    /// Of the Laplace approximation.
    pub mode: Option<ModeSummary>,
    /// Of features that were learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureSummary>,
    /// Of a mean and a covariance that were trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<VariationSummary>,
}

/// A model's description: all of it but the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneralisedHeader {
    /// `gaussianised`, `variational` or `laplace process`.
    pub method: String,
    /// How the posterior is computed: `exact`, `sgpr`, ...
    pub solver: String,
    /// Rows trained on.
    pub rows: usize,
    /// Roles of the columns.
    pub schema: Schema,
    /// Means and scales of the features.
    pub standardisation: Standardisation,
    /// Where the inputs lay in training, in their own units.
    pub input_ranges: InputRanges,
    /// What the targets are.
    pub target: Target,
    /// Their likelihood, with what was learned of it.
    pub likelihood: OutputLikelihood,
    /// Share of each class; mean and variance of counts; 0 and 1 for numbers in standard units; 1 and 0 for events, each of which counts one.
    pub marginal: Vec<f64>,
    /// The kernel.
    pub kernel: KernelExpression,
    /// The mean's form.
    pub mean: MeanForm,
    /// Everything learned, in standard units.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The seed.
    pub seed: u64,
    /// How the fit went.
    pub fit: GeneralisedSummary,
    /// What was learned afterwards, row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<StreamedRows>,
}

impl GeneralisedHeader {
    /// What `method` says of a way to infer.
    pub(crate) fn method_of(inference: InferenceName) -> &'static str {
        match inference {
            InferenceName::Gaussianised | InferenceName::Auto => "gaussianised",
            InferenceName::Variational => "variational",
            // Networks' models are called `laplace`.
            InferenceName::Laplace => "laplace process",
        }
    }

    /// Whether a file's `method` is one of these.
    pub(crate) fn is_method(method: &str) -> bool {
        [InferenceName::Gaussianised, InferenceName::Variational, InferenceName::Laplace]
            .into_iter()
            .any(|inference| Self::method_of(inference) == method)
    }
}

/// The distribution of training targets: shares of classes, mean and variance otherwise, of counts in an exposure of 1. With exposures E, counts of rate r are taken to have the variance `r E + s (r E)²`; r is all counts over all
/// exposures, and s makes the squared residuals right on average.
pub(super) fn marginal(target: &Target, truths: &[f64], offsets: Option<&[f64]>) -> Vec<f64> {
    let n = truths.len() as f64;
    match (target, offsets) {
        (Target::Counts { .. }, Some(offsets)) => {
            let exposures: f64 = offsets.iter().map(|o| o.exp()).sum();
            let rate = truths.iter().sum::<f64>() / exposures;
            let expected = || offsets.iter().map(|o| rate * o.exp());
            let excess: f64 = truths.iter().zip(expected()).map(|(y, m)| (y - m).powi(2) - m).sum();
            let squares: f64 = expected().map(|m| m * m).sum();
            vec![rate, if squares > 0.0 { rate + rate * rate * excess / squares } else { 0.0 }]
        }
        _ => without_exposures(target, truths, n),
    }
}

fn without_exposures(target: &Target, truths: &[f64], n: f64) -> Vec<f64> {
    match target {
        Target::Classes { names } => {
            let mut shares = vec![0.0; names.count()];
            truths.iter().for_each(|y| shares[*y as usize] += 1.0 / n);
            shares
        }
        // The volume of a window is known to its level only.
        Target::Counts { .. } | Target::Numbers { .. } | Target::Events { .. } => {
            let mean = truths.iter().sum::<f64>() / n;
            vec![mean, truths.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n]
        }
    }
}

/// Log densities under it: counts as negative binomial of that mean and variance (Poisson where they scatter less), numbers as Gaussian, in the units of the likelihood.
pub(super) fn baseline(
    target: &Target,
    marginal: &[f64],
    truths: &[f64],
    offsets: Option<&[f64]>,
) -> Vec<f64> {
    use posterior_likelihoods::{Likelihood, NegativeBinomial, Poisson};
    match target {
        // A class that had no row has the share that half a row would have had.
        Target::Classes { .. } => truths.iter().map(|y| marginal[*y as usize].max(1e-12).ln()).collect(),
        Target::Counts { .. } => {
            let [mean, variance] = [marginal[0].max(1e-9), marginal[1]];
            let latent = mean.ln();
            let likelihood: Option<Box<dyn Likelihood>> = if variance > mean {
                let dispersion = mean * mean / (variance - mean);
                NegativeBinomial::new(dispersion).ok().map(|l| Box::new(l) as _)
            } else {
                Poisson::new(1).ok().map(|l| Box::new(l) as _)
            };
            let density = |(i, y): (usize, &f64)| {
                let latent = [latent + offsets.map_or(0.0, |offsets| offsets[i])];
                likelihood.as_ref().map_or(f64::NAN, |l| l.log_density(&[*y], &latent))
            };
            truths.iter().enumerate().map(density).collect()
        }
        // Densities of events are told beside those of an even intensity.
        Target::Events { .. } => vec![0.0; truths.len()],
        Target::Numbers { scale, .. } => {
            let [mean, variance] = [marginal[0], marginal[1].max(1e-300)];
            let density = |y: &f64| {
                -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + (y - mean).powi(2) / variance)
                    - scale.ln()
            };
            truths.iter().map(density).collect()
        }
    }
}
