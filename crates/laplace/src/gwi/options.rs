//! What a fit is asked for.

use crate::LaplaceError;
use crate::fixed_mean::FixedMeanKernel;
use faer::Mat;
use posterior_gp::exact::ExactGp;
use posterior_gp::generalised::divergence::FidelityForm;
use posterior_gp::generalised::{
    Coordinates, Family, GeneralisedGp, GeneralisedObjective, GeneralisedOptions, JITTER, Mode, Reduction,
    ReferenceProcess, Regulariser, Risk, VariationalKernel, VariationalMean,
};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::{Constant, Kernel};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linear::training::Patience;
use posterior_optim::UpdateRule;
use serde::{Deserialize, Serialize};

/// Where the noise of Gaussian outputs comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GwiNoise {
    /// It stays as it is given.
    Given,
    /// One factor on what is given, from the evidence of the rows that the prior is learned from. Steps do not move it: rows that the network has learned from have residuals that are too small.
    #[default]
    Prior,
    /// It begins there, and steps move it.
    Trained,
}

/// How a covariance around a trained network is learned by Gaussian Wasserstein inference, or under another regulariser. By default [`Self::table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GwiOptions {
    /// The prior covariance k, and what it looks at; the tangent kernel is refused (`valla` has it).
    pub kernel: FixedMeanKernel,
    /// M, which all functions share; None: 100, but no more than rows.
    pub inducing_points: Option<usize>,
    /// Family of the variational covariance r.
    pub family: Family,
    /// Risk, regulariser and its weight λ. A Wasserstein distance has the squared unit of the outputs, so that λ weighs more where these are large.
    pub objective: GeneralisedObjective,
    /// Whether the prior regularises, or its posterior given the pseudo-targets at the inducing points.
    pub mode: Mode,
    /// Rows that hyperparameters of the prior are learned from at most; 0 holds the kernel as its text says.
    pub prior_rows: usize,
    /// Where the noise of Gaussian outputs comes from.
    pub noise: GwiNoise,
    /// Steps at most.
    pub steps: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// What a step computes from gradients.
    pub rule: UpdateRule,
    /// Its step size at the beginning; it falls to nothing over the last third of the steps.
    pub learning_rate: f64,
    /// Steps between two looks at rows that the network has not seen.
    pub val_every: usize,
    /// Looks without a better one after which it goes on from the best with a fifth of the step size, and ends the second time.
    pub patience: usize,
    /// Whether variances are multiplied by what rows that the network has not seen say, where there are some.
    pub tempering: bool,
}

/// Inducing points where no number is given.
const INDUCING: usize = 100;

/// How often the step size falls before a run ends.
const DROPS: usize = 1;

/// Bytes of features of rows that are kept between steps; where they are more, each batch computes its own.
pub(super) const KEPT: u64 = 256 << 20;

impl Default for GwiOptions {
    fn default() -> Self {
        Self::table()
    }
}

impl GwiOptions {
    /// For tables: a squared exponential on the inputs with a lengthscale for each.
    pub fn table() -> Self {
        Self {
            kernel: FixedMeanKernel::Inputs("rbf(ard)".into()),
            inducing_points: None,
            family: Family::Diagonal,
            objective: GeneralisedObjective {
                risk: Risk::Predictive,
                reduction: Reduction::Mean,
                regulariser: Regulariser::Wasserstein(FidelityForm::NuclearNorm),
                weight: 1.0,
                rows_together: 32,
            },
            mode: Mode::Prior,
            prior_rows: 1000,
            noise: GwiNoise::Prior,
            steps: 3000,
            batch: 128,
            rule: UpdateRule::Adam,
            learning_rate: 1e-2,
            val_every: 100,
            patience: 10,
            tempering: true,
        }
    }

    /// For images: a squared exponential on the features before the last layer.
    pub fn images() -> Self {
        Self { kernel: FixedMeanKernel::Features("rbf".into()), ..Self::table() }
    }

    /// How many inducing points there are for so many rows.
    pub fn inducing(&self, rows: usize) -> usize {
        self.inducing_points.unwrap_or_else(|| INDUCING.min(rows))
    }

    /// What the steps are told.
    pub(super) fn steps(&self, seed: u64) -> GeneralisedOptions {
        GeneralisedOptions {
            objective: self.objective.clone(),
            steps: self.steps,
            batch: self.batch,
            patience: Patience {
                rule: self.rule.rule(),
                learning_rate: self.learning_rate,
                check_every: self.val_every,
                patience: self.val_every.saturating_mul(self.patience),
                rate_drops: DROPS,
                settles: true,
            },
            time: None,
            seed,
            kept_bytes: KEPT,
        }
    }

    /// Refuses what has no meaning around a network, for so many rows under a likelihood.
    ///
    /// # Errors
    /// The tangent kernel, no rows, more inducing points than rows, a regulariser of what the network predicts; what [`GeneralisedObjective::check`] refuses.
    pub(super) fn check(&self, rows: usize, likelihood: &OutputLikelihood) -> Result<(), LaplaceError> {
        let m = self.inducing(rows);
        let problem = if self.kernel == FixedMeanKernel::Tangent {
            "gwi has a kernel on the inputs or on the features before the last layer: the process with the tangent kernel is `valla`".into()
        } else if rows == 0 {
            "there are no examples to learn from".into()
        } else if m > rows {
            format!(
                "{m} inducing points were asked for, but there are {rows} examples, which they are chosen among: ask for no more than that"
            )
        } else if m == 0 {
            "0 inducing points were asked for: ask for at least one".into()
        } else if let Regulariser::Multinomial { .. } = self.objective.regulariser {
            "the regulariser multinomial compares class probabilities, which around a network are those of the network under either process: take wasserstein or a projected regulariser".into()
        } else {
            return Ok(self.objective.check(&self.smallest(likelihood)?)?);
        };
        Err(LaplaceError::Request(problem))
    }

    /// A process of one inducing point with everything that decides whether a regulariser is admitted, so that it can be refused before anything is learned.
    fn smallest(&self, likelihood: &OutputLikelihood) -> Result<GeneralisedGp, LaplaceError> {
        let functions = likelihood.outputs();
        let kernel: Box<dyn Kernel<f64>> = Box::new(Constant);
        let point = Observations::new(Mat::zeros(1, 1), Mat::zeros(1, functions), None)?;
        let exact = ExactGp::new(kernel, MeanForm::Zero, Gaussian::new(1.0, 0.0), 1, functions);
        let reference = ReferenceProcess::new(exact.condition(point)?, self.mode, false, JITTER)?;
        let kernels = vec![VariationalKernel::blank(self.family, &reference); functions];
        let mean = VariationalMean::Prior;
        Ok(GeneralisedGp::from_parts(
            vec![reference],
            kernels,
            Coordinates::Whitened,
            mean,
            likelihood.clone_box(),
        )?)
    }
}
