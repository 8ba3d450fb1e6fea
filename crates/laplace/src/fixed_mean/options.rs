//! What a fit is asked for.

use crate::LaplaceError;
use posterior_gp::inducing::fixed_mean::FixedMeanFitOptions;
use serde::{Deserialize, Serialize};

/// The prior covariance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixedMeanKernel {
    /// `J(x) J(z)^T` over the selected weights: variational linearised Laplace.
    Tangent,
    /// A kernel on the network's inputs, as text; its columns are `x0`, `x1`, ...
    Inputs(String),
    /// A kernel on the features before the last layer, as text; its columns are `x0`, `x1`, ...
    Features(String),
}

impl FixedMeanKernel {
    /// The text of a kernel of rows; None for the tangent.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Tangent => None,
            Self::Inputs(text) | Self::Features(text) => Some(text),
        }
    }
}

/// How a sparse process whose mean is the network is fitted. By default [`Self::fixed_mean_table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedMeanOptions {
    /// The prior covariance.
    pub kernel: FixedMeanKernel,
    /// M, each of which looks at one output; None: 100 (20 with a kernel on features), or two for each output where these are more, but no more than rows.
    pub inducing_points: Option<usize>,
    /// Rows of a batch.
    pub batch: usize,
    /// Steps at most.
    pub steps: usize,
    /// Adam's step size.
    pub learning_rate: f64,
    /// What it is multiplied by after each pass.
    pub decay: f64,
    /// Order of the energy, 0 (lower bound) to 1 (predictive densities).
    pub alpha: f64,
    /// Whether a second process with a mean of its own keeps the kernel from fitting residuals only; None: for fewer than [`FEW_ROWS`] rows.
    pub companion: Option<bool>,
    /// Whether inducing points move.
    pub learn_inducing: bool,
    /// Whether the prior variance is learned; not with a learned covariance of outputs, which has it.
    pub learn_amplitude: bool,
    /// Whether the noise is learned.
    pub learn_noise: bool,
    /// Whether the kernel's parameters are learned.
    pub learn_kernel: bool,
    /// Whether outputs have a covariance `R R^T` that is learned with the kernel's parameters, where there are several and the kernel is not the tangent's.
    pub output_covariance: bool,
    /// The first noise variance of Gaussian outputs; None: the likelihood's own, which a fit has from the network's residuals.
    pub initial_noise: Option<f64>,
    /// The first prior variance.
    pub initial_amplitude: f64,
    /// Steps between two scores on validation rows.
    pub val_every: usize,
    /// Scores without a new best one after which the fit ends.
    pub patience: usize,
    /// Whether the best root is computed in one pass, with the inducing points where k-means puts them and the kernel as it begins; the prior variance is then chosen on validation
    /// rows, where there are some and it is to be learned.
    pub closed_form: bool,
    /// Whether the steps begin at the closed form of some of the rows (with the prior variance that validation rows choose from a grid, where there are some) instead of at `L = I`, from which it is a long way.
    pub closed_form_start: bool,
    /// Pairs of draws for each row where energies of classes are estimated over the whole covariance of its outputs.
    pub monte_carlo: Option<usize>,
    /// Steps between two records of where the inducing points are.
    pub trajectory_every: Option<usize>,
}

/// Rows below which a companion takes part where options do not say. After 20,000 steps test densities of four tables were better with it in 9 of 10 cases with 100 to 3,000 rows (intervals far less overconfident), equal in the other; with 10,000 rows one of three tables was
/// better without, one with it; with 13,500 and more two of three without (the book, "Error bars from function space").
pub const FEW_ROWS: usize = 5000;

/// Inducing points where no number is given, and with a kernel on features (spec `fixed_mean_gp`, section 4).
const INDUCING: (usize, usize) = (100, 20);

impl Default for FixedMeanOptions {
    fn default() -> Self {
        Self::fixed_mean_table()
    }
}

impl FixedMeanOptions {
    /// The published settings for tables, with the companion where rows are few ([`FEW_ROWS`]), and from the noise that the network's residuals have: the published first one is for targets of variance one.
    pub fn fixed_mean_table() -> Self {
        Self { companion: None, initial_noise: None, ..Self::fixed_mean_table_published() }
    }

    /// The published settings for tables (spec `fixed_mean_gp`, section 4): squared exponential on the inputs, 100 inducing points, 70,000 steps.
    pub fn fixed_mean_table_published() -> Self {
        Self {
            kernel: FixedMeanKernel::Inputs("rbf(ard)".into()),
            inducing_points: None,
            batch: 100,
            steps: 70_000,
            learning_rate: 1e-3,
            decay: 1.0,
            alpha: 1.0,
            companion: Some(true),
            learn_inducing: true,
            learn_amplitude: true,
            learn_noise: true,
            learn_kernel: true,
            output_covariance: true,
            initial_noise: Some((-5f64).exp()),
            initial_amplitude: 1.0,
            val_every: 1000,
            patience: 10,
            closed_form: false,
            closed_form_start: false,
            monte_carlo: None,
            trajectory_every: None,
        }
    }

    /// As published for images, but from the closed form on and from the residuals' noise, with as many inducing points as outputs want, and with fewer steps: with a rate that decays, steps alone cannot reach a prior variance that is far from the first one, and do not for every network.
    pub fn fixed_mean_images() -> Self {
        Self {
            closed_form_start: true,
            initial_noise: None,
            inducing_points: None,
            steps: 10_000,
            ..Self::fixed_mean_images_published()
        }
    }

    /// The published settings for images (there): squared exponential times last layer on the features, 20 inducing points, 50,000 steps with a rate that decays.
    pub fn fixed_mean_images_published() -> Self {
        Self {
            kernel: FixedMeanKernel::Features("rbf * (linear + constant)".into()),
            inducing_points: Some(20),
            batch: 50,
            steps: 50_000,
            learning_rate: 1e-4,
            decay: 0.85,
            output_covariance: false,
            ..Self::fixed_mean_table_published()
        }
    }

    /// The published settings of variational linearised Laplace (spec `valla`, sections 6.1, 6.5 and 9): 100 inducing points, 40,000 steps, the first score that is no better ends the fit.
    pub fn valla_published() -> Self {
        Self {
            kernel: FixedMeanKernel::Tangent,
            steps: 40_000,
            companion: Some(false),
            output_covariance: false,
            val_every: 100,
            patience: 1,
            ..Self::fixed_mean_table_published()
        }
    }

    /// Variational linearised Laplace as it gets there soonest: from the closed form with the likelihood's own noise, until ten scores in a row are no better.
    pub fn valla() -> Self {
        Self { closed_form_start: true, initial_noise: None, patience: 10, ..Self::valla_published() }
    }

    /// The closed form alone, with the tangent kernel: for networks whose tangents are dear.
    pub fn valla_in_closed_form() -> Self {
        Self { closed_form: true, closed_form_start: false, ..Self::valla() }
    }

    /// How many inducing points there are for so many rows and outputs.
    pub fn inducing(&self, rows: usize, outputs: usize) -> usize {
        let features = matches!(self.kernel, FixedMeanKernel::Features(_));
        let few = if features { INDUCING.1 } else { INDUCING.0 };
        self.inducing_points.unwrap_or_else(|| (2 * outputs).max(few).min(rows))
    }

    /// Whether a companion takes part with so many rows.
    pub fn with_companion(&self, rows: usize) -> bool {
        self.companion.unwrap_or(rows < FEW_ROWS)
    }

    /// What the steps are told.
    pub(super) fn steps(&self, seed: u64) -> FixedMeanFitOptions {
        FixedMeanFitOptions {
            steps: self.steps,
            batch: self.batch,
            learning_rate: self.learning_rate,
            decay: self.decay,
            alpha: self.alpha,
            monte_carlo: self.monte_carlo,
            val_every: self.val_every,
            patience: self.patience,
            restore_best: true,
            trajectory_every: self.trajectory_every,
            seed,
            time: None,
        }
    }

    /// Whether prior variances are tried in closed form on so many unseen rows.
    pub(super) fn tries_amplitudes(&self, outputs: usize, unseen: usize) -> bool {
        let closed = self.closed_form || self.closed_form_start;
        closed && self.learn_amplitude && !self.correlated(outputs) && unseen > 0
    }

    /// Whether outputs share a learned covariance.
    pub(super) fn correlated(&self, outputs: usize) -> bool {
        self.output_covariance && outputs > 1 && self.kernel != FixedMeanKernel::Tangent
    }

    /// Whether so many inducing points can stand for so many rows and outputs.
    ///
    /// # Errors
    /// More than rows, fewer than outputs.
    pub(super) fn check(&self, rows: usize, outputs: usize) -> Result<(), LaplaceError> {
        let m = self.inducing(rows, outputs);
        let problem = if rows == 0 {
            "there are no examples to learn from".into()
        } else if m > rows {
            format!(
                "{m} inducing points were asked for, but there are {rows} examples: ask for no more than that"
            )
        } else if m < outputs {
            format!(
                "{m} inducing points were asked for, but the network has {outputs} outputs and each inducing point looks at one: ask for at least as many"
            )
        } else if self.trajectory_every.is_some() && self.closed_form {
            "inducing points stay where they are in closed form: leave trajectory_every out".into()
        } else {
            return Ok(());
        };
        Err(LaplaceError::Request(problem))
    }
}
