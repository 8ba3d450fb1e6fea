//! Learned features: what deep kernels are told.

use super::groups::{BatchOptions, DiskOptions, LargeTableOptions};
#[cfg(feature = "clap")]
use super::numbers::MOST_KEPT;
use super::search::{ConstraintOptions, ObjectiveName};
use crate::ModelError;
#[cfg(feature = "clap")]
use crate::options::numbers;
use posterior_linear::low_rank::{Correction, LowRankOptions, Training};
use posterior_notes::fixes::{CORRECTION_FULL, CORRECTION_TRAINING, DBK, DKL, DKL_DENSE, OBJECTIVE_EVIDENCE};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a process knows beyond its learned features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CorrectionName {
    /// Nothing: variance is that of the features (SoR)
    None,
    /// A penalty for what features leave out, in training only
    Training,
    /// What features leave out is added to predicted variances only (DTC)
    Prediction,
    /// Both (of inducing points VFE)
    Full,
    /// What features leave out counts as noise of its rows, in training and prediction (FITC)
    Noise,
}

/// What of the network of `basis` is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum BasisLayer {
    /// What it returns
    #[default]
    Outputs,
    /// What its last fully connected layer reads: the network without that layer (of dbk and svdbk with a constant 1 for the layer's bias)
    LastHidden,
}

/// A network that features are made of, or that a kernel acts behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct BasisOptions {
    /// The network whose outputs are the features, and of gvi what the kernel acts on: an architecture (TOML), or a trained network (ONNX, safetensors) to begin from; `none` for inducing points among the rows themselves (dkl, svdkl) [default: a residual perceptron of three blocks of width 128; of gvi none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub basis: Option<PathBuf>,
    /// What of the network of `basis` is taken
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub basis_layer: BasisLayer,
    /// Keep the network of `basis` as it is: Bayesian regression on its outputs, or on what its last layer reads (`basis-layer`); of gvi a kernel on these
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub freeze_basis: bool,
}

/// Learned features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DbkOptions {
    /// Steps, rows to judge by, checkpoints.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub large: LargeTableOptions,
    /// Where prepared rows are kept.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub disk: DiskOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// What to maximise [default: evidence; deep kernels and gvi choose by rows that are set aside]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub objective: Option<ObjectiveName>,
    /// What is held or bounded: the noise variance.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub constraints: ConstraintOptions,
    /// The network.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub network: BasisOptions,
    /// Rank of the preconditioner [default: 100]; of sap of the sketch of a block, which is factored whole without it, as is better; basis functions of dbk and svdbk, inducing points of dkl and svdkl [default: 128, or the outputs of `basis`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_KEPT)))]
    pub rank: Option<usize>,
    /// What a process knows beyond its features [default: none of dbk, full of dkl]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub correction: Option<CorrectionName>,
    /// The share of the correction's penalty that training is told of [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::from_none_to_all))]
    pub trace_weight: Option<f64>,
    /// Weight of the divergence from the prior in predictive training [default: chosen by rows that are set aside]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::not_negative))]
    pub divergence_weight: Option<f64>,
    /// Weight decay of the network
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::not_negative, default_value_t = Self::default().weight_decay))]
    pub weight_decay: f64,
    /// Passes over the rows (steps on all rows: 25 for each) without a better score on the rows that are set aside, after which the step size falls, and at the third time training ends [default: 40, and of few rows as many as make 2000 steps or a sixth of `iterations`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=100_000)))]
    pub patience: Option<usize>,
}

impl Default for DbkOptions {
    fn default() -> Self {
        Self {
            large: LargeTableOptions::default(),
            disk: DiskOptions::default(),
            batches: BatchOptions::default(),
            objective: None,
            constraints: ConstraintOptions::default(),
            network: BasisOptions::default(),
            rank: None,
            correction: None,
            trace_weight: None,
            divergence_weight: None,
            weight_decay: 1e-5,
            patience: None,
        }
    }
}

/// Inducing points, or the process itself, behind a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct DklOptions {
    /// Learned features.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub deep: DbkOptions,
    /// Outputs of the network, on which the kernel acts [default: 2, or the outputs of `basis`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=1024)))]
    pub embedding: Option<usize>,
    /// The exact process behind the network instead of inducing points: a Cholesky factor of all rows at every step (dkl)
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub dense: bool,
}

/// One way to train, with its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    /// In words.
    pub(crate) name: String,
    /// Where noise begins.
    pub(crate) noise: f64,
    /// Whether that is below where it usually begins.
    pub(crate) from_below: bool,
    pub(crate) options: LowRankOptions,
    /// Steps in one pass over the rows.
    pub(crate) per_pass: usize,
    /// The way at whose end it begins, by its place among all.
    pub(crate) after: Option<usize>,
    /// Whether features that are drawn begin with small variances: the trace term, which is quadratic in them, would first shrink them for thousands of steps.
    pub(crate) small: bool,
}

/// Which features, and whether all rows are looked at in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeepKind {
    /// Inducing points behind the network.
    pub(crate) inducing: bool,
    /// The exact evidence where evidence is asked for.
    pub(crate) exact: bool,
    /// The process itself instead of inducing points.
    pub(crate) dense: bool,
}

/// Where noise begins: a tenth and more of the target's variance lets networks find the smooth part first.
const FIRST_NOISE: f64 = 0.3;

/// Where it begins in one of the ways that are tried.
pub(crate) const LOW_NOISE: f64 = 0.03;

/// The smaller weight of the divergence that is tried.
const LEAST_BETA: f64 = 0.05;

/// Passes over the rows at most.
const PASSES: usize = 1000;

/// Passes that training waits for something better, and after which ways are compared.
pub(crate) const FIRST_PASSES: usize = 40;

/// How many ways go on after the first round.
pub(crate) const GO_ON: usize = 2;

/// The step size on batches. Bounds of `protein` after 8,000 steps on rows set aside: 0.94 with the published 0.001 (10,000 steps), 0.88 with 0.003, 0.86 with 0.006; predictive training 0.81, 0.78, 0.82; `pol` -1.37, -1.51, -1.41.
const STEP: f64 = 3e-3;

/// The step size on all rows, where batches have led near the end.
const STEP_ON_ALL: f64 = 1e-3;

/// Steps on batches that training waits for something better, and after which ways are compared, where passes are short.
const WAIT: usize = 2000;

/// Steps on all rows at most where nothing comes before them (published: 10,000), and between two looks.
const FULL_STEPS: (usize, usize) = (3000, 50);

impl Setting {
    /// Steps of the first round at most.
    pub(crate) fn first_steps(&self) -> usize {
        let steps = self.options.steps;
        steps.min(usize::max(FIRST_PASSES * self.per_pass, WAIT.min(steps / 6)))
    }
}

impl DbkOptions {
    /// Whether `basis=none` asks for inducing points among the rows themselves. A file of that name is `./none`.
    pub(crate) fn without_network(&self) -> bool {
        self.network.basis.as_deref().is_some_and(|path| path.as_os_str() == "none")
    }

    fn corrected(&self, kind: DeepKind) -> (CorrectionName, f64) {
        let usual = if kind.inducing { CorrectionName::Full } else { CorrectionName::None };
        (self.correction.unwrap_or(usual), self.trace_weight.unwrap_or(1.0))
    }

    /// Whether everything that was said has a meaning beside the rest.
    ///
    /// # Errors
    /// [`ModelError::Request`] with what to do.
    pub(crate) fn check(&self, kind: DeepKind) -> Result<(), ModelError> {
        if kind.dense {
            return self.check_dense(kind);
        }
        let (correction, _) = self.corrected(kind);
        let penalised = matches!(correction, CorrectionName::Training | CorrectionName::Full);
        let tried = self.objective.is_none() && self.correction.is_none();
        let exact = kind.exact && self.objective == Some(ObjectiveName::Evidence);
        ModelError::refuse_first(&[
            (
                self.objective == Some(ObjectiveName::LeaveOneOut),
                &"--set objective=leave-one-out belongs to exact processes; deep kernels take evidence, predictive or point",
            ),
            (
                matches!(
                    self.objective,
                    Some(ObjectiveName::Elbo | ObjectiveName::Gwi | ObjectiveName::Pgvi)
                ),
                &"--set objective=elbo, gwi and pgvi belong to --method gvi; deep kernels take evidence, predictive or point",
            ),
            (
                self.trace_weight.is_some() && !penalised && !tried,
                &format_args!(
                    "--set trace-weight is the share of a correction's penalty: ask for one with {CORRECTION_FULL} or {CORRECTION_TRAINING:-}"
                ),
            ),
            (
                self.divergence_weight.is_some()
                    && !matches!(self.objective, None | Some(ObjectiveName::Predictive)),
                &"--set divergence-weight belongs to --set objective=predictive: of a bound it is 1",
            ),
            (
                correction == CorrectionName::Noise && !exact,
                &format_args!(
                    "--set correction=noise changes the noise of every row in the exact evidence: take {OBJECTIVE_EVIDENCE} with {DBK} or {DKL:-}"
                ),
            ),
        ])
    }

    /// The same of the process itself, which approximates nothing.
    fn check_dense(&self, kind: DeepKind) -> Result<(), ModelError> {
        ModelError::refuse_first(&[
            (
                !kind.exact,
                &format_args!("svdkl steps on batches; the exact evidence of all rows is {DKL_DENSE}"),
            ),
            (
                !matches!(self.objective, None | Some(ObjectiveName::Evidence)),
                &"--set objective takes evidence only beside --set dense, where weights have no distribution of their own",
            ),
            (
                self.rank.is_some(),
                &"--set rank is a number of inducing points, of which --set dense has none",
            ),
            (
                self.correction.is_some(),
                &"--set correction is for what inducing points leave out: --set dense leaves out nothing",
            ),
            (
                self.trace_weight.is_some(),
                &"--set trace-weight is for what inducing points leave out: --set dense leaves out nothing",
            ),
            (
                self.divergence_weight.is_some(),
                &"--set divergence-weight belongs to --set objective=predictive, which --set dense has not",
            ),
            (
                self.batches.batch.is_some(),
                &"--set batch says nothing beside --set dense, which looks at all rows",
            ),
        ])
    }

    /// All ways that are tried on `rows` rows: one where the objective is given (and β, if it is predictive), else those that a user would compare.
    pub(crate) fn settings(&self, kind: DeepKind, rows: usize, seed: u64) -> Vec<Setting> {
        let size = self.batches.batch.unwrap_or(256).min(rows).max(1);
        let (correction, trace_weight) = self.corrected(kind);
        let rest = if kind.inducing { Correction::Own } else { Correction::Uniform };
        let of = |name: String, training: Training| {
            let full = matches!(training, Training::Evidence);
            let per_pass = if full { 1 } else { rows.div_ceil(size) };
            let (most, every) =
                if full { FULL_STEPS } else { (usize::max(PASSES * per_pass, 6 * WAIT), per_pass) };
            let steps = self.large.iterations.unwrap_or(most);
            // Plateaus are as long in steps, however few of them make a pass; and a plan of few steps has to come to smaller ones.
            let wait = if full { 0 } else { WAIT.min(steps / 6) };
            let a_pass = if full { 25 } else { per_pass };
            let patience =
                self.patience.map_or_else(|| wait.max(FIRST_PASSES * a_pass), |passes| passes * a_pass);
            let (told, seen) = match correction {
                CorrectionName::None => (0.0, false),
                CorrectionName::Training => (trace_weight, false),
                CorrectionName::Prediction => (0.0, true),
                CorrectionName::Full | CorrectionName::Noise => (trace_weight, true),
            };
            let options = LowRankOptions {
                training,
                correction: if correction == CorrectionName::None { Correction::None } else { rest },
                trace_weight: told,
                rest_as_noise: correction == CorrectionName::Noise,
                corrected: seen,
                learning_rate: self.batches.step_size.unwrap_or(if full { STEP_ON_ALL } else { STEP }),
                weight_decay: self.weight_decay,
                steps,
                check_every: every.max(1),
                patience,
                time: None,
                seed,
                ..LowRankOptions::default()
            };
            let small = rest == Correction::Uniform && told > 0.0;
            Setting { name, noise: FIRST_NOISE, from_below: false, options, per_pass, after: None, small }
        };
        let batches = |power, divergence_weight| Training::Batches { size, power, divergence_weight };
        let bound = || of("the bound on the evidence".into(), batches(0.0, 1.0));
        let evidence = || match kind.exact {
            true => of("the evidence of all rows".into(), Training::Evidence),
            false => bound(),
        };
        let predictive = |beta: f64| of(format!("predictive, divergence weight {beta}"), batches(1.0, beta));
        let betas = match self.divergence_weight {
            Some(beta) => vec![beta],
            None => vec![1.0, LEAST_BETA],
        };
        // Where there is little noise, it is found sooner from below; elsewhere rows are remembered before it is found.
        let from_below = || {
            let mut way = predictive(self.divergence_weight.unwrap_or(LEAST_BETA));
            (way.noise, way.from_below) = (LOW_NOISE, true);
            way.name = format!("{}, first noise {LOW_NOISE}", way.name);
            way
        };
        if kind.dense {
            return vec![evidence()];
        }
        let alone = if self.without_network() { "one value of the weights" } else { "the network alone" };
        let point = || of(format!("{alone} with a learned noise"), Training::Point { size });
        match self.objective {
            Some(ObjectiveName::Point) => vec![point()],
            Some(ObjectiveName::Predictive) => {
                betas.into_iter().map(predictive).chain([from_below()]).collect()
            }
            // What all rows would be looked at for in hundreds of steps, batches have found in the time of a few; noise of rows is not in their bound, and a network that stays has nothing to find.
            Some(_) if kind.exact && !self.network.freeze_basis && correction != CorrectionName::Noise => {
                let (first, mut on_all) = (bound(), evidence());
                // As many passes over the rows as batches may make.
                on_all.options.steps = first.options.steps.div_ceil(first.per_pass).max(1);
                on_all.after = Some(0);
                vec![first, on_all]
            }
            Some(_) => vec![evidence()],
            None => {
                let mut all = vec![point()];
                all.extend(betas.into_iter().map(predictive));
                all.push(from_below());
                // Batches lead where all rows at a time lead, in a tenth of the time; weights are exact in the end.
                all.push(bound());
                if !kind.inducing && self.correction.is_none() {
                    let told = self.trace_weight.unwrap_or(1.0);
                    let least = self.divergence_weight.unwrap_or(LEAST_BETA);
                    for mut way in [predictive(least), bound()] {
                        way.name = format!("{}, variance corrected", way.name);
                        if told < 1.0 {
                            way.name = format!("{}, trace weight {told}", way.name);
                        }
                        let options = &mut way.options;
                        (options.correction, options.trace_weight, options.corrected) = (rest, told, true);
                        way.small = told > 0.0;
                        all.push(way);
                    }
                }
                all
            }
        }
    }
}
