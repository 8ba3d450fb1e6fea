//! What was done and chosen.

use crate::accumulate::FitSums;
use crate::ella::EllaReport;
use crate::fixed_mean::FixedMeanReport;
use crate::gwi::GwiReport;
use crate::mean_field::MeanFieldSummary;
use crate::normalisation::ScaleInvariant;
use crate::plan::Plan;
use crate::sampled::SampledReport;
use crate::scores::{HeldOutReport, UnseenScores};
use crate::temperature::TemperatureReport;
use posterior_linear::evidence::{EvidenceValue, MaximisedEvidence};
use posterior_linear::structure::Corrections;
use serde::{Deserialize, Serialize};

/// How the optimum of the linearised model was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModeSummary {
    /// Rounds of mode and hyperparameters.
    pub alternations: usize,
    /// Newton steps in all.
    pub newton_steps: usize,
    /// Passes with Hessian products in all.
    pub products: usize,
    /// Whether both hyperparameters and mode came to rest.
    pub converged: bool,
    /// `|w*|^2` and the trained weights' norm.
    pub squared_norms: (f64, f64),
    /// `max |f0| / max |g|`.
    pub offset: f64,
    /// `log p(Y | w*)` of the linearised model.
    pub log_likelihood: f64,
    /// Under Gaussian noise: root mean square of `J (w* - v)` over the training data (the further data, after [`Laplace::extended`](super::Laplace::extended)), by which the network's outputs differ from the linear model's. Predictions stay the network's own, and
    /// `(J (w* - v))²` counts as variance of each, so that it is the mean square of the linear model's posterior about them. None where nothing is added.
    pub displacement: Option<f64>,
    /// Whether the optimum is that of the hyperparameters that were found, rather than of those a round before: then further data can go on from it.
    pub at_hyperparameters: bool,
}

/// Everything that was done and chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FitSummary {
    /// What was planned.
    pub plan: Plan,
    /// Fit of the network to the training data.
    pub fit: FitSums,
    /// The evidence at the end.
    pub evidence: Option<EvidenceValue>,
    /// The search for its maximum, if that chose the hyperparameters.
    pub maximised: Option<MaximisedEvidence>,
    /// What held-out data said, if they chose.
    pub held_out: Option<HeldOutReport>,
    /// Scores on examples that neither network nor posterior has learned from, where there are some.
    pub unseen: Option<UnseenScores>,
    /// The evidence with the same precisions and the trained weights' norm, where the mode is another.
    pub evidence_at_trained: Option<EvidenceValue>,
    /// How the mode was found, if it is not the trained weights.
    pub mode: Option<ModeSummary>,
    /// Numerical corrections.
    pub corrections: Corrections,
    /// Layers whose scale a normalisation removes.
    pub scale_invariant: Vec<ScaleInvariant>,
    /// Whether features were scaled by the g-prior.
    pub g_prior: bool,
    /// Training points in function space, of all examples.
    pub points: Option<(usize, usize)>,
    /// How the posterior was found, where no curvature has made it.
    pub learned: Option<LearnedReport>,
    /// Things to know, in sentences.
    pub notes: Vec<String>,
    /// Seconds for choosing weights, curvature, mode and hyperparameters.
    pub seconds: [f64; 4],
}

/// How a posterior was found that no curvature has made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedReport {
    /// By temperature scaling.
    Temperature(TemperatureReport),
    /// By mean-field fine-tuning.
    MeanField(MeanFieldSummary),
    /// As samples.
    Sampled {
        /// How they were found.
        report: SampledReport,
        /// What is needed beside their arrays ([`Sampled::header`](crate::Sampled::header)).
        header: serde_json::Value,
    },
    /// As a sparse process.
    FixedMean(FixedMeanReport),
    /// As a covariance around the network.
    Gwi(GwiReport),
    /// Along directions of the tangent at landmarks.
    Ella(EllaReport),
}

impl FitSummary {
    /// How far the linear model's optimum is from the network, where that counts as variance of predictions.
    pub fn displacement(&self) -> Option<f64> {
        match &self.learned {
            Some(LearnedReport::Sampled { report, .. }) => report.displacement,
            _ => self.mode.as_ref().and_then(|mode| mode.displacement),
        }
    }
}
