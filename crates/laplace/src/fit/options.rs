//! What can be asked of a fit.

use crate::accumulate::{FisherEstimate, Form};
use crate::fixed_mean::{FixedMeanKernel, FixedMeanOptions};
use crate::mode::Mode;
use crate::prior::PriorKind;
use crate::{EllaOptions, GwiOptions, LaplaceError, MeanFieldOptions, SampledOptions, Weights};
use posterior_likelihoods::Integration;
use posterior_linear::mode::ModeOptions;
use serde::{Deserialize, Serialize};

/// How the curvature is approximated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approximation {
    /// All entries.
    Full,
    /// A dense block for each layer.
    Block,
    /// The diagonal.
    Diagonal,
    /// Kronecker factors.
    Kronecker(FisherEstimate),
    /// Leading eigenvectors plus a diagonal.
    LowRank {
        /// Eigenvectors.
        rank: usize,
        /// Passes that sharpen them.
        iterations: usize,
    },
    /// The dual form, by the tangent kernel.
    FunctionSpace {
        /// Examples drawn at random; None for all.
        points: Option<usize>,
    },
    /// The leading directions of the tangent at landmarks.
    Ella(EllaOptions),
    /// Samples, and a precision learned from them.
    Sampled(SampledOptions),
    /// A sparse process whose mean is the network; with the tangent kernel, variational linearised Laplace.
    FixedMean(FixedMeanOptions),
    /// A covariance around the network, learned beside a prior by Gaussian Wasserstein inference or under another regulariser.
    Gwi(GwiOptions),
    /// No posterior: one number beside the network, chosen on unseen examples.
    Temperature,
    /// Independent Gaussian weights, fine-tuned.
    MeanField(MeanFieldOptions),
}

impl Approximation {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Block => "block",
            Self::Diagonal => "diagonal",
            Self::Kronecker(_) => "kronecker",
            Self::LowRank { .. } => "low-rank",
            Self::FunctionSpace { .. } => "function-space",
            Self::Ella(_) => "ella",
            Self::Sampled(_) => "sampled",
            Self::FixedMean(own) if own.kernel == FixedMeanKernel::Tangent => "valla",
            Self::FixedMean(_) => "fixed-mean",
            Self::Gwi(_) => "gwi",
            Self::Temperature => "temperature",
            Self::MeanField(_) => "mean-field",
        }
    }

    /// The form of its sums, if it is made of sums.
    pub fn form(&self) -> Option<Form> {
        match self {
            Self::Full => Some(Form::Full),
            Self::Block => Some(Form::Block),
            Self::Diagonal => Some(Form::Diagonal),
            Self::Kronecker(_) => Some(Form::Kronecker),
            _ => None,
        }
    }

    /// How its Fisher matrix is estimated.
    pub fn estimate(&self) -> FisherEstimate {
        if let Self::Kronecker(estimate) = self { *estimate } else { FisherEstimate::Exact }
    }

    /// Whether the posterior is found by a search of its own, which chooses everything.
    pub fn is_learned(&self) -> bool {
        matches!(
            self,
            Self::Temperature | Self::MeanField(_) | Self::Sampled(_) | Self::FixedMean(_) | Self::Gwi(_)
        )
    }

    /// Whether it is about the network's weights at all.
    pub(crate) fn has_weights(&self) -> bool {
        match self {
            Self::Temperature | Self::Gwi(_) => false,
            Self::FixedMean(own) => own.kernel == FixedMeanKernel::Tangent,
            _ => true,
        }
    }

    /// Which weights share a precision in such a search.
    pub(crate) fn searched_prior(&self) -> PriorKind {
        match self {
            Self::Sampled(own) if own.layerwise => PriorKind::Layerwise,
            _ => PriorKind::Scalar,
        }
    }
}

/// How prior precisions and noise are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tune {
    /// By the evidence, with gradients.
    #[default]
    Evidence,
    /// By the evidence, with MacKay's fixed points.
    Mackay,
    /// By held-out examples.
    Validation,
    /// By leaving out one part of the training examples after another.
    CrossValidation {
        /// Parts.
        folds: usize,
    },
    /// Not at all.
    None,
}

/// What of the Gaussian noise is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum NoiseModel {
    /// As `initial-noise` says
    ///
    /// Nothing: the given variances are final.
    Fixed,
    /// One factor, learned with the prior
    ///
    /// It multiplies the given variances.
    #[default]
    Scale,
    /// One variance for each output
    ///
    /// By expectation maximisation.
    PerOutput,
    /// A covariance between outputs
    ///
    /// By expectation maximisation.
    Full,
}

/// What to fit, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitOptions {
    /// Which weights are uncertain.
    pub weights: Weights,
    /// Whether gains and offsets of normalisation layers are among them.
    pub affine: bool,
    /// The curvature.
    pub approximation: Approximation,
    /// The prior.
    pub prior: PriorKind,
    /// Its precision at the start (or for good, without tuning). Several groups that are learned at the linear model's optimum begin at this times `d_l / |v_l|²`.
    pub initial_precision: f64,
    /// How precisions and noise are chosen.
    pub tune: Tune,
    /// What is learned of Gaussian noise.
    pub noise: NoiseModel,
    /// Whose norm the evidence charges for.
    pub mode: Mode,
    /// How far the linearised model's optimum is pursued.
    pub mode_options: ModeOptions,
    /// Rounds of mode and hyperparameters at most, where the mode depends on them.
    pub alternations: usize,
    /// The predictive that will be used; tuning by held-out data uses it too.
    pub integration: Integration,
    /// The held-out examples, if some are used, are ones that the network was trained on: then their scores are worthless, as notes say, and [`Tune::CrossValidation`] is refused without it.
    pub seen_by_network: bool,
    /// Memory that the fit may take, bytes.
    pub memory: u64,
    /// Seed of every random choice.
    pub seed: u64,
}

impl FitOptions {
    /// Whether held-out examples, where there are some, choose anything of the fit, be it hyperparameters or when a search ends: their scores flatter it then.
    pub fn chooses_on_unseen(&self) -> bool {
        match &self.approximation {
            // A covariance around the network has its prior, its steps and its tempering from them.
            Approximation::Temperature | Approximation::Gwi(_) => true,
            // Steps end by their scores; a closed form has them for its prior variance.
            Approximation::FixedMean(own) => !own.closed_form || own.learn_amplitude,
            Approximation::Ella(own) => own.val_every.is_some() || self.tunes_on_unseen(),
            _ => self.tunes_on_unseen(),
        }
    }

    /// Whether held-out examples choose hyperparameters because that was asked for, so that there must be some.
    pub fn tunes_on_unseen(&self) -> bool {
        match &self.approximation {
            Approximation::Sampled(own) => own.validation_tries > 0,
            _ => self.tune == Tune::Validation,
        }
    }

    /// Refuses what a search of its own decides, where it was asked for beside it.
    pub(super) fn check_search(&self) -> Result<(), LaplaceError> {
        if !self.approximation.is_learned() {
            return Ok(());
        }
        let none = Self::default();
        let beside = [
            (self.prior != none.prior, "a prior"),
            (self.initial_precision != none.initial_precision, "a prior precision"),
            (self.tune != none.tune, "tuning"),
            (self.noise != none.noise, "a noise model"),
            (self.mode != none.mode, "a mode"),
            (self.weights != none.weights && !self.approximation.has_weights(), "a choice of weights"),
        ];
        match beside.iter().find(|b| b.0) {
            None => Ok(()),
            Some((_, what)) => Err(LaplaceError::Request(format!(
                "`{}` has options of its own for what it learns: leave {what} of the fit as it is",
                self.approximation.name()
            ))),
        }
    }
}

/// Change of the logarithms of hyperparameters that ends the rounds: half a per cent of a precision changes no prediction that anyone could measure.
pub(super) const AT_REST: f64 = 5e-3;

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            weights: Weights::All,
            affine: true,
            approximation: Approximation::Kronecker(FisherEstimate::Exact),
            prior: PriorKind::Auto,
            initial_precision: 1.0,
            tune: Tune::Evidence,
            noise: NoiseModel::Scale,
            mode: Mode::Auto,
            mode_options: ModeOptions { norm_tolerance: AT_REST, ..ModeOptions::default() },
            alternations: 10,
            integration: Integration::Probit,
            seen_by_network: false,
            memory: 8 << 30,
            seed: 0,
        }
    }
}
