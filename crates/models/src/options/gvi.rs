//! Generalised variational inference: what it is told.

#[cfg(feature = "clap")]
use super::beside::Beside;
use super::deep::{BasisLayer, BasisOptions};
use super::groups::{BatchOptions, InducingOptions, LargeTableOptions};
#[cfg(feature = "clap")]
use super::numbers::MOST_KEPT;
use super::search::{ConstraintOptions, ObjectiveName};
use crate::ModelError;
#[cfg(feature = "clap")]
use crate::options::numbers;
use posterior_gp::generalised::divergence::{Direction, Divergence, FidelityForm};
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedObjective, Mode, Reduction, Regulariser, RegulariserRisk, Risk,
};
use posterior_notes::fixes::{
    BASIS, MEAN_NETWORK, OBJECTIVE_GWI, OBJECTIVE_PGVI, PGVI_KL, VARIATIONAL_CHOLESKY, VARIATIONAL_DIAGONAL,
    VARIATIONAL_LOG, VARIATIONAL_MEAN_INDUCING,
};
use posterior_optim::UpdateRule;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The variational mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum VariationalMeanName {
    /// A network with an output for each function
    Network,
    /// Weights of inducing points
    Inducing,
    /// A number for each function
    Constant,
    /// That of the prior
    Prior,
}

/// How variances are made to suit rows that were not trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TemperingName {
    /// By the factor that is best on the rows set aside: in closed form under Gaussian noise, by L-BFGS else
    #[default]
    Best,
    /// By 5000 steps of AdaBelief on its logarithm, as published
    Gradient,
    /// Not at all
    None,
}

/// Generalised variational inference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct GviOptions {
    /// Steps, rows to judge by, checkpoints.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub large: LargeTableOptions,
    /// Steps on batches.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub batches: BatchOptions,
    /// Inducing points.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub inducing: InducingOptions,
    /// A network behind which the prior's kernel acts.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub kernel_network: BasisOptions,
    /// What to maximise [default: evidence; deep kernels and gvi choose by rows that are set aside]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub objective: Option<ObjectiveName>,
    /// What is held or bounded: hyperparameters of the prior, and the noise variance of both.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(flatten)]
    pub constraints: ConstraintOptions,
    /// What keeps the process near its prior: kl, renyi=0.5, hellinger, bhattacharyya of inducing values; projected-kl, projected-renyi=0.5, projected-wasserstein, ... of marginals; wasserstein, wasserstein-partial, squared-difference, multinomial=2 [default: kl of elbo, wasserstein of gwi, projected-renyi=0.5 of pgvi]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub regulariser: Option<Regulariser>,
    /// What the regulariser is multiplied by [default: 1; where no objective is named several are tried]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = numbers::positive))]
    pub regulariser_weight: Option<f64>,
    /// The process that regularises
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub regulariser_mode: Mode,
    /// What is minimised in hyperparameters of the prior
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub regulariser_risk: RegulariserRisk,
    /// Rows that hyperparameters of the prior are learned from; 0 for the inducing points themselves, in turns with their choice (`alternations`)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(0..=MOST_KEPT), default_value_t = Self::default().prior_rows))]
    pub prior_rows: usize,
    /// Turns of learning the prior on the inducing points and choosing these again, at most
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=1000), default_value_t = Self::default().alternations))]
    pub alternations: usize,
    /// What is asked of the data [default: expected of elbo, predictive of gwi and pgvi]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub risk: Option<Risk>,
    /// How rows are put together, beside which the regulariser stands [default: sum of elbo, mean of gwi and pgvi]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub risk_reduction: Option<Reduction>,
    /// Family of the variational covariance [default: cholesky of elbo, diagonal of gwi and pgvi; where nothing is named several are tried]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub variational_kernel: Option<Family>,
    /// Variational mean [default: inducing of elbo, network of gwi and pgvi]
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub variational_mean: Option<VariationalMeanName>,
    /// The network of `variational-mean` network: an architecture (TOML), or a trained network (ONNX, safetensors) to begin from [default: a residual perceptron of three blocks of width 128]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub mean_network: Option<PathBuf>,
    /// Keep the network of `mean-network` as it is: error bars for a trained network
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set))]
    pub freeze_mean: bool,
    /// Coordinates of the weights of inducing points
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub weight_coordinates: Coordinates,
    /// Tempering of variances on the rows set aside; none where `fix` or `bound` hold the noise, which it would change
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub tempering: TemperingName,
    /// What a step computes from gradients
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub update_rule: UpdateRule,
    /// Rows whose covariances wasserstein and squared-difference look at together: a step costs their number cubed
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(2..=MOST_KEPT), default_value_t = Self::default().rows_together))]
    pub rows_together: usize,
    /// Passes over the rows (steps on all rows: 25 for each) without a better score on the rows that are set aside, after which the step size falls, and at the third time training ends [default: 40, and of few rows as many as make 2000 steps or a sixth of `iterations`]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = numbers::whole(1..=100_000)))]
    pub patience: Option<usize>,
}

/// What a setting of generalised variational inference needs beside it.
#[cfg(feature = "clap")]
pub(super) const BESIDE: &[Beside] = &[
    (
        &["alternations"],
        &[("prior_rows", &["0"])],
        "--set prior-rows=0, which learns the prior on its inducing points in turns",
    ),
    (
        &["rows_together"],
        &[
            (
                "regulariser",
                &[
                    "wasserstein",
                    "wasserstein-symmetric-roots",
                    "wasserstein-two-batches",
                    "squared-difference",
                ],
            ),
            ("objective", &["gwi"]),
        ],
        "regularisers of matrices: --set objective=gwi, --set regulariser=wasserstein or squared-difference",
    ),
];

impl Default for GviOptions {
    fn default() -> Self {
        Self {
            large: LargeTableOptions::default(),
            batches: BatchOptions::default(),
            inducing: InducingOptions::default(),
            kernel_network: BasisOptions::default(),
            objective: None,
            constraints: ConstraintOptions::default(),
            regulariser: None,
            regulariser_weight: None,
            regulariser_mode: Mode::default(),
            regulariser_risk: RegulariserRisk::default(),
            prior_rows: 1000,
            alternations: 5,
            risk: None,
            risk_reduction: None,
            variational_kernel: None,
            variational_mean: None,
            mean_network: None,
            freeze_mean: false,
            weight_coordinates: Coordinates::default(),
            tempering: TemperingName::default(),
            update_rule: UpdateRule::default(),
            rows_together: 128,
            patience: None,
        }
    }
}

/// One way to train, with its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GviCandidate {
    /// In words.
    pub(crate) name: String,
    pub(crate) objective: GeneralisedObjective,
    pub(crate) family: Family,
    pub(crate) mean: VariationalMeanName,
}

/// The step size where nobody names one, of weights and networks alike.
const STEP: f64 = 3e-3;

/// The weight of a regulariser that leaves means to the rows: of `concrete`, `energy` and `airfoil` RMSE 0.32, 0.04 and 0.20 where weight 1 has 0.33, 0.07 and 0.25 (kernelised).
const LIGHT: f64 = 0.01;

/// Steps that are taken at most, and that training waits for something better.
const STEPS: (usize, usize) = (12_000, 2000);

/// The regulariser of the bound on the evidence.
const EVIDENCE: Regulariser =
    Regulariser::Inducing(Divergence::KullbackLeibler { direction: Direction::PosteriorToPrior });

/// Whether it is that of Gaussian Wasserstein inference, in any of its forms.
fn is_wasserstein(regulariser: Regulariser) -> bool {
    matches!(
        regulariser,
        Regulariser::Wasserstein(_) | Regulariser::WassersteinOfTwo | Regulariser::PartialWasserstein
    )
}

impl GviOptions {
    /// Inducing points.
    pub(crate) fn points(&self) -> usize {
        self.inducing.inducing.unwrap_or(256)
    }

    /// Rows of a batch.
    pub(crate) fn batch(&self, rows: usize) -> usize {
        self.batches.batch.unwrap_or(256).min(rows).max(1)
    }

    /// The step size at the beginning.
    pub(crate) fn step_size(&self) -> f64 {
        self.batches.step_size.unwrap_or(STEP)
    }

    /// Steps of each way at most.
    pub(crate) fn steps(&self) -> usize {
        self.large.iterations.unwrap_or(STEPS.0)
    }

    /// Steps between looks, and without a better one, on so many rows.
    pub(crate) fn waiting(&self, rows: usize) -> (usize, usize) {
        let per_pass = rows.div_ceil(self.batch(rows)).max(1);
        let a_pass = if per_pass == 1 { 25 } else { per_pass };
        let usual = usize::max(40 * a_pass, STEPS.1.min(self.steps() / 6));
        let patience = self.patience.map_or(usual, |passes| passes.saturating_mul(a_pass));
        // Of many looks at few rows the best flatters.
        (per_pass.clamp(50, 200), patience.max(1))
    }

    /// Refuses what means nothing beside the rest.
    ///
    /// # Errors
    /// [`ModelError::Request`] with what to do.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let candidates = self.candidates();
        let network = candidates.iter().any(|way| way.mean == VariationalMeanName::Network);
        let weighed = candidates
            .iter()
            .any(|way| way.family.is_of_weights() || way.mean == VariationalMeanName::Inducing);
        let drawn = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
        let basis = &self.kernel_network.basis;
        let [elbo, gwi] = [ObjectiveName::Elbo, ObjectiveName::Gwi].map(|own| self.objective == Some(own));
        ModelError::refuse_first(&[
            (
                self.objective.is_some_and(|own| !(elbo || gwi || own == ObjectiveName::Pgvi)),
                &"--method gvi takes --set objective=elbo, gwi or pgvi",
            ),
            (
                self.regulariser_weight.is_some_and(|weight| !(weight > 0.0 && weight.is_finite())),
                &"--set regulariser-weight is a positive finite number",
            ),
            (
                self.mean_network.is_some() && !network,
                &"--set mean-network is the network of --set variational-mean network, which this fit does not have: leave one of them out",
            ),
            (
                self.freeze_mean && self.mean_network.is_none(),
                &format_args!(
                    "--set freeze-mean keeps a trained network as it is: name it with {MEAN_NETWORK}"
                ),
            ),
            (
                self.weight_coordinates != Coordinates::default() && !weighed,
                &format_args!(
                    "--set weight-coordinates is about weights of inducing points, and nothing here has any: leave it out, or take {VARIATIONAL_CHOLESKY}, {VARIATIONAL_DIAGONAL:-} or {VARIATIONAL_LOG:-}, or {VARIATIONAL_MEAN_INDUCING}"
                ),
            ),
            (
                self.freeze_mean && self.mean_network.as_ref().is_some_and(drawn),
                &"--set freeze-mean keeps a trained network as it is, and --set mean-network names an architecture, which has no weights: name an ONNX or safetensors file",
            ),
            (
                basis.is_none() && self.kernel_network.freeze_basis,
                &format_args!("--set freeze-basis keeps a trained network as it is: name it with {BASIS}"),
            ),
            (
                basis.is_none() && self.kernel_network.basis_layer == BasisLayer::LastHidden,
                &format_args!(
                    "--set basis-layer=last-hidden takes the last layer off a network: name it with {BASIS}"
                ),
            ),
            (
                basis.as_ref().is_some_and(|path| path.as_os_str() == "none"),
                &"--method gvi has no network before its kernel unless one is named: leave --set basis=none out",
            ),
            (
                elbo && (self.risk == Some(Risk::Predictive) || self.risk_reduction == Some(Reduction::Mean)),
                &format_args!(
                    "--set objective=elbo is the bound on the evidence, whose risk is the expected one, summed over rows: with another one it is {PGVI_KL}"
                ),
            ),
            (
                elbo && self.regulariser.is_some_and(|own| own != EVIDENCE),
                &format_args!(
                    "--set objective=elbo is the bound on the evidence, whose regulariser is kl: with another one it is {OBJECTIVE_PGVI} or {OBJECTIVE_GWI:-}"
                ),
            ),
            (
                gwi && self.regulariser.is_some_and(|own| !is_wasserstein(own)),
                &format_args!(
                    "--set objective=gwi is Gaussian Wasserstein inference, whose regulariser is wasserstein, wasserstein-symmetric-roots, wasserstein-two-batches or wasserstein-partial: with another one it is {OBJECTIVE_PGVI}"
                ),
            ),
        ])
    }

    /// The way of an objective, with what was said beside it.
    fn way(&self, objective: ObjectiveName) -> GviCandidate {
        let elbo = objective == ObjectiveName::Elbo;
        let regulariser = self.regulariser.unwrap_or(match objective {
            ObjectiveName::Elbo => EVIDENCE,
            ObjectiveName::Gwi => Regulariser::Wasserstein(FidelityForm::NuclearNorm),
            _ => Regulariser::default(),
        });
        let risk = self.risk.unwrap_or(if elbo { Risk::Expected } else { Risk::Predictive });
        let reduction = self.risk_reduction.unwrap_or(if elbo { Reduction::Sum } else { Reduction::Mean });
        let usual = if elbo { VariationalMeanName::Inducing } else { VariationalMeanName::Network };
        let mean = self.variational_mean.unwrap_or(usual);
        let usual = if elbo { Family::Cholesky } else { Family::Diagonal };
        let family = self.variational_kernel.unwrap_or(usual);
        let of_mean = match mean {
            VariationalMeanName::Network => "a network",
            VariationalMeanName::Inducing => "inducing points",
            VariationalMeanName::Constant => "a constant",
            VariationalMeanName::Prior => "the prior",
        };
        let name = format!(
            "{}, {regulariser}, mean of {of_mean}",
            match objective {
                ObjectiveName::Elbo => "elbo",
                ObjectiveName::Gwi => "gwi",
                _ => "pgvi",
            }
        );
        // One that is weighed is no bound any more.
        let name = match self.regulariser_weight {
            Some(weight) if elbo && weight != 1.0 => format!("{name}, weight {weight}"),
            _ => name,
        };
        let objective = GeneralisedObjective {
            risk,
            reduction,
            regulariser,
            weight: self.regulariser_weight.unwrap_or(1.0),
            rows_together: self.rows_together,
        };
        GviCandidate { name, objective, family, mean }
    }

    /// All ways that are tried: one where the objective or its regulariser is given, else those that a user would compare.
    pub(crate) fn candidates(&self) -> Vec<GviCandidate> {
        if let Some(objective) = self.objective {
            return vec![self.way(objective)];
        }
        if let Some(regulariser) = self.regulariser {
            let wasserstein = is_wasserstein(regulariser);
            return vec![self.way(if wasserstein { ObjectiveName::Gwi } else { ObjectiveName::Pgvi })];
        }
        let named = |family: Family, weight: f64| {
            let mut way = self.way(ObjectiveName::Pgvi);
            way.family = self.variational_kernel.unwrap_or(family);
            way.objective.weight = self.regulariser_weight.unwrap_or(weight);
            way.name = format!("{}, {} covariance, weight {}", way.name, way.family, way.objective.weight);
            way
        };
        // Beside a mean over rows a regulariser of weight 1 counts as much as they do: it draws means to the prior's, but no covariance is as careful. A light one leaves both to the rows.
        let mut all = vec![named(Family::Diagonal, 1.0), named(Family::Kernelised, LIGHT)];
        // A network beside which nothing else may be the mean is no bound on the evidence.
        if !matches!(
            self.variational_mean,
            Some(VariationalMeanName::Network | VariationalMeanName::Constant)
        ) && self.variational_kernel.is_none_or(Family::is_of_weights)
            && self.regulariser_mode == Mode::Prior
            && self.mean_network.is_none()
        {
            all.push(self.way(ObjectiveName::Elbo));
        }
        all.dedup_by(|a, b| a.name == b.name);
        all
    }
}
