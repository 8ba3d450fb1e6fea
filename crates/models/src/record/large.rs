//! What became of a fit to a large table.

use super::deep::DeepSummary;
use super::gvi::GviSummary;
use crate::facts::{STANDARDISED, count, ended, figure, fixed, inducing, nonzero, power, resumed};
use crate::options::KernelPrecision;
use crate::prepare::CANDIDATES;
use crate::{Compression, Fact, Facts, Solver};
use posterior_gp::iterative::{BlockFit, LogEvidence, PathwiseSettings};
use posterior_kernels::features::{FeatureForm, FeatureSettings, FrequencyDraw};
use posterior_optim::Reason;
use serde::{Deserialize, Serialize};

/// What a search by stochastic gradients did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvidenceSearchSummary {
    /// Steps taken.
    pub steps: usize,
    /// Of these by an earlier run, which was interrupted.
    #[serde(default, skip_serializing_if = "crate::text::is_zero")]
    pub resumed_from: usize,
    /// Steps of the solver in all of them.
    pub solver_steps: usize,
    /// Products with the matrix that these make: passes over its rows.
    pub passes: f64,
    /// What the last quarter of the steps gained for each row, in nats, as far as gradients tell.
    pub last_gain: f64,
    /// Norm of the last gradient, for each target value, in the unconstrained parameters.
    pub gradient_norm: Option<f64>,
    /// The largest relative residual of the last solve.
    pub residual: Option<f64>,
    /// Steps whose solve did not reach its tolerance: out of passes, or at the limit of the precision.
    pub unsolved: usize,
    /// Whether the last solutions are those of posterior samples, so that the solve begins with them.
    pub handed_on: bool,
    /// Parameters at a bound that was set for them, with the bound.
    pub at_bounds: Vec<(String, f64)>,
    /// Why it ended: steps or time.
    pub ended: Reason,
}

impl EvidenceSearchSummary {
    fn facts(&self) -> Facts {
        let steps = Facts::new()
            .and(count(self.steps, "steps"))
            .and(fixed(self.passes, 0, "passes of their solves"))
            .maybe("the last residual", self.residual.map(|residual| power(residual, 1, "")))
            .fact("ended by", ended(self.ended));
        let gain = Facts::apart("; ")
            .and(steps)
            .fact("the last quarter gained", power(self.last_gain, 1, "nats a row"))
            .maybe("", self.handed_on.then_some("their solutions begin the solve"));
        Facts::new().and(gain).with(resumed(self.resumed_from))
    }
}

/// How a fit to a large table went; part of the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalableSummary {
    /// What weights were found with.
    pub solver: Solver,
    /// How the posterior was conditioned; absent for bounds.
    pub settings: Option<PathwiseSettings>,
    /// Precision of kernel products and weights.
    pub precision: KernelPrecision,
    /// Where hyperparameters come from, in words.
    pub hyperparameter_source: String,
    /// What each stage of a search on blocks found.
    pub blocks: Vec<BlockFit>,
    /// The noise variance that the evidence wanted, where it was raised to keep the system solvable (see [`Self::hyperparameter_source`]).
    pub noise_raised_from: Option<f64>,
    /// Log evidence of each neighbourhood, in the order they were drawn.
    pub neighbourhood_evidences: Vec<f64>,
    /// What a search on all rows did, where there was one.
    pub search: Option<EvidenceSearchSummary>,
    /// Inducing points that are used.
    pub inducing: usize,
    /// The radius (in lengthscales) of a cover, or the threshold (in standard units) of pruning, that left so many.
    pub inducing_radius: Option<f64>,
    /// Rows, drawn at random, that they were chosen among; none where these were all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inducing_candidates: Option<usize>,
    /// Bytes of the file that rows were read from; none where they were in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_disk: Option<u64>,
    /// Whether a bound moved them. Those among counts stay where they were chosen.
    pub inducing_moved: bool,
    /// How far it is from the model that it was compressed from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<Compression>,
    /// Steps taken.
    pub steps: usize,
    /// Why the solver ended.
    pub ended: String,
    /// The largest relative residual at the end, as far as the method knows it; of inducing-sgd the relative misfit of the targets, which keeps the noise.
    pub residual: Option<f64>,
    /// βn, for methods with a step size.
    pub step_size: Option<f64>,
    /// How often it began anew with a smaller step.
    pub restarts: usize,
    /// The bound on the log evidence, for methods that have one (nats, of standardised targets).
    pub bound: Option<f64>,
    /// Hyperparameters that the search of that bound left where a bound was set for them, with the bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_bounds: Vec<(String, f64)>,
    /// The log evidence of all rows as it was estimated, for fits by conjugate gradients (nats, of standardised targets); none where time had run out, or who watched it stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_evidence: Option<LogEvidence>,
    /// Why it could not be estimated, where it could not: the posterior is what it is without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_failed: Option<String>,
    /// What a user must know of a solve that no held-back rows have judged.
    pub warnings: Vec<String>,
    /// Of the stochastic bound: whether the inducing values are the best that its hyperparameters and inducing points allow, by one pass over all rows after the last step (not where that had no room in a time budget, or its sums no factor); none for other methods, and where it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_form: Option<bool>,
    /// Seconds for hyperparameters and for weights.
    pub seconds: [f64; 2],
    /// Steps that an earlier, interrupted run had taken.
    pub resumed_from: usize,
    /// Learned features, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deep: Option<DeepSummary>,
    /// A mean and a covariance that were trained, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gvi: Option<GviSummary>,
}

impl ScalableSummary {
    /// Hyperparameters that the last search left at a bound that was set for them, with the bound.
    pub(crate) fn ended_at_bounds(&self) -> Vec<(String, f64)> {
        let of_search = self.search.as_ref().map(|search| &search.at_bounds);
        let of_blocks = || self.blocks.last().map(|fit| &fit.at_bounds);
        of_search.or_else(of_blocks).unwrap_or(&self.at_bounds).clone()
    }

    /// How hyperparameters and weights were found.
    pub(crate) fn facts(&self) -> Facts {
        let failed = self.evidence_failed.as_ref().map(|why| format!("could not be estimated ({why})"));
        let evidence = self.log_evidence.map(|own| {
            let known = format!(
                "+- {:.3} (of the standardised target; standard error of {} probes, {} iterations, relative residual {:.1e})",
                own.standard_error, own.probes, own.iterations, own.residual
            );
            fixed(own.value, 3, known)
        });
        let values = self.closed_form.map(|closed_form| match closed_form {
            true => "the best for these points, by a pass over all rows",
            false => {
                "as the last batches left them: a pass over all rows had no room in the time budget, or no factor"
            }
        });
        let disk = |bytes: u64| Facts::new().and("read from disk").and(fixed(bytes as f64 / 1e6, 1, "MB"));
        let [search, solve] = self.seconds;
        let seconds = Facts::new().and(fixed(search, 1, "s for hyperparameters"));
        Facts::new()
            .fact("hyperparameters", self.hyperparameter_source.as_str())
            .maybe("search", self.search.as_ref().map(EvidenceSearchSummary::facts))
            .maybe("log evidence", failed)
            .maybe("log evidence", evidence)
            .maybe("bound on the log evidence", self.bound.map(|bound| fixed(bound, 3, STANDARDISED)))
            .with(self.points())
            .maybe("inducing values", values)
            .maybe("rows", self.from_disk.map(disk))
            .maybe("samples", self.settings.as_ref().map(|settings| self.samples(settings)))
            .fact("solver", self.solved())
            .fact("time", seconds.and(fixed(solve, 1, "s for weights")))
    }

    /// What carries its functions, where that is not all rows.
    fn points(&self) -> Option<Fact> {
        if let Some(own) = &self.compressed {
            return Some(Fact::new("compressed", own.to_string()));
        }
        let points = inducing(self.inducing, self.inducing_moved)
            .maybe("radius", self.inducing_radius.map(|radius| fixed(radius, 3, "")))
            .maybe("chosen among", self.inducing_candidates.map(|rows| count(rows, "rows drawn at random")));
        (self.inducing > 0).then(|| Fact::new("inducing points", points))
    }

    /// Posterior samples, and the features of their priors.
    fn samples(&self, settings: &PathwiseSettings) -> Facts {
        let FeatureSettings { count: features, form, frequencies } = settings.features;
        let groups = match settings.samples_per_features {
            Some(each) => format!(" for every {each}"),
            None => " that all share".into(),
        };
        let form = if form == FeatureForm::Phase { " with phases" } else { "" };
        let frequencies = match frequencies {
            FrequencyDraw::Independent => "",
            FrequencyDraw::Orthogonal => "orthogonal frequencies",
            FrequencyDraw::QuasiRandom => "quasi-random frequencies",
            FrequencyDraw::Widened => "half of them from wider laws",
        };
        let precision = match self.precision {
            KernelPrecision::Single => "single precision",
            KernelPrecision::Double => "double precision",
        };
        let drawn = count(settings.samples, format!("of {features} random features{groups}{form}"));
        Facts::new().and(drawn).and(frequencies).and(precision)
    }

    /// How its solver went.
    fn solved(&self) -> Facts {
        let left = match self.solver {
            // The noise of the targets stays in it.
            Solver::Inducing(_) if self.compressed.is_none() => "relative misfit of the targets",
            _ => "relative residual",
        };
        Facts::new()
            .and(count(self.steps, "steps"))
            .fact("ended by", self.ended.as_str())
            .maybe(left, self.residual.map(|residual| power(residual, 1, "")))
            .maybe("step size times rows", self.step_size.map(|step| figure(step, "")))
            .maybe("", nonzero(self.restarts, "restarts with a smaller step"))
            .with(resumed(self.resumed_from))
    }

    /// With a solver, a precision and the source of hyperparameters in words. All other fields are empty.
    pub(crate) fn new(solver: Solver, precision: KernelPrecision, hyperparameter_source: String) -> Self {
        Self {
            solver,
            settings: None,
            precision,
            hyperparameter_source,
            blocks: Vec::new(),
            noise_raised_from: None,
            neighbourhood_evidences: Vec::new(),
            search: None,
            inducing: 0,
            inducing_radius: None,
            inducing_candidates: None,
            from_disk: None,
            compressed: None,
            inducing_moved: false,
            steps: 0,
            ended: String::new(),
            residual: None,
            step_size: None,
            restarts: 0,
            bound: None,
            at_bounds: Vec::new(),
            closed_form: None,
            log_evidence: None,
            evidence_failed: None,
            warnings: Vec::new(),
            seconds: [0.0; 2],
            resumed_from: 0,
            deep: None,
            gvi: None,
        }
    }

    /// Of features that were learned, or of the process itself behind a network: what came of them, and of training.
    pub(crate) fn of_features(deep: DeepSummary, training: TrainingSummary) -> Self {
        let precision = match deep.dense || deep.architecture.is_none() {
            true => KernelPrecision::Double,
            // Networks are.
            false => KernelPrecision::Single,
        };
        let among = deep.inducing && !deep.dense && deep.trained_rows > CANDIDATES;
        Self {
            inducing: if deep.inducing { deep.rank } else { 0 },
            inducing_candidates: among.then_some(CANDIDATES),
            inducing_moved: deep.inducing,
            deep: Some(deep),
            ..Self::of(Solver::Features, precision, training)
        }
    }

    /// Of a mean and a covariance that were trained: what came of them, and of training.
    pub(crate) fn of_gvi(gvi: GviSummary, training: TrainingSummary) -> Self {
        let inducing = gvi.prior.inducing;
        Self { inducing, gvi: Some(gvi), ..Self::of(Solver::Variation, KernelPrecision::Double, training) }
    }

    fn of(solver: Solver, precision: KernelPrecision, training: TrainingSummary) -> Self {
        let TrainingSummary { source, steps, resumed_from, ended, seconds } = training;
        Self {
            steps,
            ended: ended.to_string(),
            seconds: [0.0, seconds],
            resumed_from,
            ..Self::new(solver, precision, source)
        }
    }
}

/// How training went, whatever was trained.
pub(crate) struct TrainingSummary {
    /// Where hyperparameters come from, in words.
    pub(crate) source: String,
    /// Steps of this and of earlier runs.
    pub(crate) steps: usize,
    /// Of these by earlier runs.
    pub(crate) resumed_from: usize,
    pub(crate) ended: Reason,
    pub(crate) seconds: f64,
}
