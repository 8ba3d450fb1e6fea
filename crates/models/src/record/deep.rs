//! What became of training, as a header keeps it.

use crate::facts::{count, fixed, nonzero, training, way};
use crate::rows::rows_set_aside;
use crate::{Fact, Facts};
use posterior_kernels::KernelExpression;
use posterior_linear::low_rank::{FeatureDiagnostics, ResidualVariance, ValidationScore};
use posterior_notes::fixes::CORRECTION_FULL;
use serde::{Deserialize, Serialize};

/// One way to train, and what the rows that were set aside say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedSetting {
    /// In words.
    pub name: String,
    /// Mean of `-log p(y)` of the rows set aside, nats, of the standardised target or of labels and counts, at its best look.
    pub nll: f64,
    /// The same with the exact posterior of the weights for the features and noise then, or the best Gaussian of them where it has no closed form.
    pub refitted_nll: Option<f64>,
    /// The better of both after the first round, by which it was kept or left.
    pub first_nll: f64,
    /// Why the first round ended.
    pub first_ended: String,
    /// Noise variance, in standard units; None of targets that have no Gaussian noise.
    pub noise: Option<f64>,
    /// Steps taken, and before the best look.
    pub steps: [usize; 2],
    /// Steps and looks whose sums were taken by triangles, because squares of features had lost too many digits.
    #[serde(default, skip_serializing_if = "crate::text::is_zero")]
    pub triangular_solves: usize,
    /// Looks, each with its step.
    pub validation_scores: Vec<ValidationScore>,
    /// Why it ended, or what went wrong.
    pub ended: String,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl TriedSetting {
    /// One that ended so, seconds after it began; nothing else is said of it.
    pub(crate) fn ended(name: &str, ended: String, seconds: f64) -> Self {
        Self {
            name: name.into(),
            nll: f64::MAX,
            refitted_nll: None,
            first_nll: f64::MAX,
            first_ended: ended.clone(),
            noise: None,
            steps: [0, 0],
            triangular_solves: 0,
            validation_scores: Vec::new(),
            ended,
            seconds,
        }
    }

    /// What it did; of targets without noise of their own, weights have no closed form.
    fn fact(&self, closed: bool) -> Fact {
        let weights = if closed { "with exact weights" } else { "with weights by the bound of all rows" };
        let triangles = "solved by triangles, where squares of features lose too many digits";
        let run = Facts::new()
            .maybe("noise", self.noise.map(|noise| fixed(noise.sqrt(), 4, "")))
            .with(training(self.steps, &self.ended, self.seconds))
            .maybe("", nonzero(self.triangular_solves, triangles));
        way(&self.name, self.nll, self.refitted_nll.map(|nll| (nll, weights)), run)
    }
}

/// Learned features; part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeepSummary {
    /// Where the network comes from.
    pub origin: String,
    /// The network, as TOML; None where inducing points stand among the rows themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Whether features are inducing points, behind the network or among the rows; else they are the network's outputs.
    pub inducing: bool,
    /// Whether the process itself stands behind the network, with its kernel on the network's outputs; there are no features then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dense: bool,
    /// Features; of the process itself, outputs of the network.
    pub rank: usize,
    /// What is added to the features' variance.
    pub residual_variance: ResidualVariance,
    /// Covariances of weights: one for each latent function, or one that all share.
    pub roots: usize,
    /// The way that was chosen.
    pub chosen: String,
    /// Whether the weights are those of [`TriedSetting::refitted_nll`], rather than those of training.
    pub refitted: bool,
    /// All that were tried.
    pub tried: Vec<TriedSetting>,
    /// Rows that features were trained on.
    pub trained_rows: usize,
    /// Rows that were set aside to stop and to choose.
    pub validation_rows: usize,
    /// Rows that were drawn for that as well and equal rows that are learned from, to which they were given back.
    pub training_duplicates: usize,
    /// Effective rank and range of variances; of the process itself, of the outputs about their means and of the kernel.
    pub diagnostics: FeatureDiagnostics,
    /// Of the process itself, the least prior correlation of a row with the first: near 1 where it is a constant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_correlation: Option<f64>,
}

/// Features that use fewer directions than this have collapsed.
const COLLAPSED: f64 = 1.5;

/// Rows that are so correlated are one to the process.
const CONSTANT: f64 = 0.99;

impl DeepSummary {
    /// What was learned, with this kernel on it or behind it.
    pub(crate) fn facts(&self, kernel: &KernelExpression) -> Facts {
        let Self { rank, origin, .. } = self;
        let what = match self.inducing {
            _ if self.dense => format!("an exact process under {kernel} on {rank} outputs of {origin}"),
            true if self.architecture.is_none() => format!("{origin}, {rank} under {kernel}"),
            true => format!("{rank} inducing points under {kernel} behind {origin}"),
            false => format!("{rank} outputs of {origin}"),
        };
        let many = (1..self.rank).contains(&self.trained_rows) && !self.dense;
        let unsaid =
            "rows that they are trained on: rows say nothing of some directions, where the prior stays";
        let many = many.then(|| count(self.trained_rows, unsaid));
        let residual_variance = match self.residual_variance {
            ResidualVariance::None => "of the features alone".to_string(),
            ResidualVariance::Uniform { largest } => {
                format!("everywhere {largest:.3}, the largest in training")
            }
            ResidualVariance::Own => "of the kernel".to_string(),
        };
        let FeatureDiagnostics { effective_rank, smallest_variance, largest_variance } = self.diagnostics;
        let least = self.smallest_correlation.map(|least| fixed(least, 3, ""));
        let range = Facts::new()
            .fact(
                if self.dense { "in training from" } else { "the features' own from" },
                fixed(smallest_variance, 3, format!("to {largest_variance:.3}")),
            )
            .fact("effective rank", fixed(effective_rank, 2, ""))
            .maybe("prior correlations of rows with the first from", least);
        let closed = self.tried.iter().any(|tried| tried.noise.is_some());
        let refitted = match (self.refitted, closed) {
            (false, _) => "",
            (true, true) => "then the exact posterior of the weights",
            (true, false) => "then the weights that the bound of all rows prefers",
        };
        Facts::new()
            .fact("features", Facts::apart("; ").and(what).maybe("more than the", many))
            .fact("prior variance", Facts::apart("; ").and(residual_variance).and(range))
            .fact("trained by", Facts::new().and(self.chosen.as_str()).and(refitted))
            .with([rows_set_aside(
                self.validation_rows,
                "to stop and to choose by",
                self.training_duplicates,
            )])
            .with(self.tried.iter().map(|tried| tried.fact(closed)))
    }

    /// What a user must know.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.dense {
            let constant = self.smallest_correlation.filter(|least| *least > CONSTANT);
            out.extend(constant.map(|least| {
                format!(
                    "the network makes nearly the same of all rows (prior correlations are at least {least:.4}): the process behind it is a constant"
                )
            }));
            return out;
        }
        let FeatureDiagnostics { effective_rank, smallest_variance, largest_variance } = self.diagnostics;
        if self.rank > 1 && effective_rank < COLLAPSED {
            out.push(format!(
                "the {} features have collapsed to nearly one direction (effective rank {effective_rank:.2}): the variance of predictions knows of little else, see whether intervals fit",
                self.rank
            ));
        }
        if !self.inducing
            && self.residual_variance == ResidualVariance::None
            && largest_variance > 100.0 * smallest_variance
        {
            out.push(format!(
                "prior variances range from {smallest_variance:.2e} to {largest_variance:.2e} in training: where they are small, predictions are sure of themselves whatever the data ({CORRECTION_FULL})"
            ));
        }
        out
    }
}
