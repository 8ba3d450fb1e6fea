//! What became of training, as a header keeps it.

use crate::facts::{count, ended, power, training, way};
use crate::rows::rows_set_aside;
use crate::{Fact, Facts};
use posterior_gp::generalised::{
    Alternation, Breakdown, Coordinates, Family, GeneralisedObjective, Irregularities, Mode, Reduction,
    RegulariserRisk, Risk, Selector, Tempered,
};
use posterior_kernels::infinite::ClippedCorrelations;
use posterior_linear::training::ValidationScore;
use posterior_notes::fixes::{INDUCING, ITERATIONS, PRIOR_ROWS, TIME_BUDGET};
use serde::{Deserialize, Serialize};

/// A network behind which a kernel acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNetwork {
    /// Where it comes from, in words.
    pub origin: String,
    /// As TOML.
    pub architecture: String,
    /// Whether its weights stayed as they were.
    pub kept: bool,
    /// Its outputs, on which the kernel acts.
    pub outputs: usize,
    /// Weights that are hyperparameters, or would be.
    pub weights: usize,
}

/// The process that regularises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorSummary {
    /// Inducing points.
    pub inducing: usize,
    /// How they were chosen.
    pub selector: Selector,
    /// Rows that hyperparameters were learned from; 0 where they were given, or learned on the inducing points in turns.
    pub rows: usize,
    /// What was minimised in them.
    pub risk: RegulariserRisk,
    /// Turns of learning on inducing points and choosing these again; none where there were no turns.
    pub turns: Vec<Alternation>,
    /// Whether points came back to an earlier set.
    pub settled: bool,
    /// Whether time ended the learning of hyperparameters: they are as far as it came.
    pub timed_out: bool,
    /// Hyperparameters that ended at a bound that was asked for, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Its noise variance, of standardised targets or of the numbers that stand for labels.
    pub noise: f64,
    /// What was added to the diagonal of the matrix of inducing points, relative to its mean.
    pub relative_jitter: f64,
    /// The network before its kernel; None where that acts on columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<KernelNetwork>,
    /// Correlations between inducing points that rounding puts above 1 inside of an infinite network; they count as 1.
    pub clipped_correlations: ClippedCorrelations,
    /// Inducing points that were asked for; there are fewer where further rows are predicted by those to rounding.
    pub asked: usize,
}

/// One way to train, and what the rows that were set aside say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedCandidate {
    /// In words.
    pub name: String,
    /// Mean of `-log p(y)` of the rows set aside, nats, at its best look; infinite where it led nowhere.
    pub nll: f64,
    /// The same once variances are tempered, which is optimistic by as much as a factor can be.
    pub tempered_nll: Option<f64>,
    /// Steps taken, and before the best look.
    pub steps: [usize; 2],
    /// Looks, each with its step.
    pub validation_scores: Vec<ValidationScore>,
    /// What the objective was made of at looks.
    pub history: Vec<Breakdown>,
    /// Floors, jitter and what else is no part of the formulas.
    #[serde(flatten)]
    pub irregularities: Irregularities,
    /// Why it ended, or what went wrong.
    pub ended: String,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl TriedCandidate {
    fn fact(&self) -> Fact {
        let ended = match self.ended.parse() {
            Ok(known) => ended(known),
            // What went wrong, as it was said.
            Err(_) => &self.ended,
        };
        let tempered = self.tempered_nll.map(|nll| (nll, "tempered"));
        way(&self.name, self.nll, tempered, training(self.steps, ended, self.seconds))
    }
}

impl PriorSummary {
    /// What its inducing points are, and how they were chosen.
    fn points(&self) -> Facts {
        let selector = match self.selector {
            Selector::GreedyVariance => "greedy variance",
            Selector::Random => "chance",
            Selector::KMeans => "k-means",
        };
        let added = (self.relative_jitter > 1e-9)
            .then(|| power(self.relative_jitter, 1, "of its diagonal's mean was added to their matrix"));
        Facts::apart("; ").and(count(self.inducing, format!("rows, by {selector}"))).maybe("", added)
    }

    /// How often points and hyperparameters took turns, where they did.
    fn turns(&self) -> Option<Facts> {
        let settled = match (self.settled, self.timed_out) {
            (true, _) => "points came back to an earlier set",
            (false, true) => "ended by time",
            (false, false) => "not settled",
        };
        let turns = self.turns.len();
        (turns > 0).then(|| Facts::new().and(count(turns, "alternations")).and(settled))
    }
}

impl KernelNetwork {
    fn facts(&self) -> Facts {
        let weights = match self.kept {
            true => "kept as it is".into(),
            false => format!("its {} weights among the hyperparameters", self.weights),
        };
        Facts::new().and(self.origin.as_str()).and(count(self.outputs, "outputs")).and(weights)
    }
}

/// A mean and a covariance that were trained; part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GviSummary {
    /// The process that regularises.
    pub prior: PriorSummary,
    /// The way that was chosen.
    pub chosen: String,
    /// What it minimised.
    pub objective: GeneralisedObjective,
    /// Family of its covariance.
    pub family: Family,
    /// Coordinates of the weights of inducing points.
    pub coordinates: Coordinates,
    /// Whether the prior regularised, or its posterior given the inducing points.
    pub mode: Mode,
    /// Its mean, in words.
    pub mean: String,
    /// The network of its mean, as TOML; None of other means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Weights of its mean that are constants: none, one for each function, or M of them; see the arrays.
    pub mean_form: MeanKind,
    /// Tempering of the one that was chosen.
    pub tempering: Option<Tempered>,
    /// All that were tried.
    pub tried: Vec<TriedCandidate>,
    /// Functions.
    pub functions: usize,
    /// Rows that were trained on.
    pub trained_rows: usize,
    /// Rows that were set aside to stop, to choose and to temper.
    pub validation_rows: usize,
    /// Rows that were drawn for that as well and equal rows that are learned from, to which they were given back.
    pub training_duplicates: usize,
}

/// What a mean is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeanKind {
    /// That of the prior.
    Prior,
    /// A number for each function.
    Constant,
    /// Weights of inducing points.
    Inducing,
    /// A network.
    Network,
}

impl GviSummary {
    /// The summary of the way that was chosen.
    pub fn best(&self) -> Option<&TriedCandidate> {
        self.tried.iter().find(|way| way.name == self.chosen)
    }

    /// What was trained, towards what and how.
    pub(crate) fn facts(&self) -> Facts {
        let GeneralisedObjective { risk, reduction, regulariser, weight, .. } = &self.objective;
        let mode = match self.mode {
            Mode::Prior => "the prior",
            Mode::Posterior => "its posterior given the inducing points",
        };
        let reduction = match reduction {
            Reduction::Mean => "the mean over rows",
            Reduction::Sum => "the sum over rows",
        };
        let risk = match risk {
            Risk::Expected => "expected negative log-likelihood",
            Risk::Predictive => "negative log predictive density",
        };
        let tempering = self.tempering.as_ref().map(|own| {
            let factors = factors(&own.factors);
            format!(
                "variances times {factors}: NLL of the rows set aside {:.4} -> {:.4}",
                own.before, own.after
            )
        });
        let aside = "to stop, to choose and to temper by";
        Facts::new()
            .fact("inducing points", self.prior.points())
            .fact("regularised by", format!("{weight} times {regulariser} of {mode}"))
            .fact("risk", Facts::new().and(risk).and(reduction))
            .fact("variational mean", self.mean.as_str())
            .fact("variational kernel", format!("{}: {}", self.family, self.family.description()))
            .fact("trained by", self.chosen.as_str())
            .with([rows_set_aside(self.validation_rows, aside, self.training_duplicates)])
            .maybe("kernel behind", self.prior.network.as_ref().map(KernelNetwork::facts))
            .maybe("prior learned in", self.prior.turns())
            .maybe("tempering", tempering)
            .with(self.tried.iter().map(TriedCandidate::fact))
    }

    /// What a user must know.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = self.best().map_or_else(Vec::new, |best| best.irregularities.sentences(best.steps[0]));
        if let Some(tempered) = &self.tempering {
            let far = tempered.factors.iter().filter(|factor| !(0.2..=5.0).contains(*factor)).count();
            if far > 0 {
                out.push(format!(
                    "tempering multiplied variances by {}: the covariance that was trained is far from what rows set aside say, and away from data it may be as wrong in either direction",
                    factors(&tempered.factors)
                ));
            }
        }
        let prior = &self.prior;
        if prior.inducing < prior.asked {
            out.push(format!(
                "{} inducing points of {} that were asked for: to rounding these predict all other rows under the prior",
                prior.inducing, prior.asked
            ));
        }
        if prior.timed_out {
            let way_out = match prior.rows {
                0 => format!("fewer points ({INDUCING})"),
                _ => format!("fewer rows ({PRIOR_ROWS})"),
            };
            out.push(format!(
                "the time for learning the prior was used up: its hyperparameters are as far as that came; give more {TIME_BUDGET}, or learn from {way_out}"
            ));
        }
        let clipped = prior.clipped_correlations;
        if clipped.count > 0 {
            out.push(format!(
                "rounding put {} of {} correlations between inducing points up to {:.1e} above 1 inside of the kernel, where they count as 1: inputs are large beside their differences, standardise them",
                clipped.count, clipped.of, clipped.largest
            ));
        }
        if self.best().is_some_and(|best| best.steps[0] < 100) {
            out.push(format!("training took fewer than 100 steps: give it more time or {ITERATIONS}"));
        }
        out
    }
}

/// Factors in words.
fn factors(factors: &[f64]) -> String {
    let all: Vec<String> = factors.iter().take(5).map(|factor| format!("{factor:.3}")).collect();
    let more = if factors.len() > 5 { ", ..." } else { "" };
    format!("{}{more}", all.join(", "))
}
