//! What training is told of the targets: Gaussian noise, under which weights have an exact posterior, or any other likelihood, under which they have not.

use crate::options::{CorrectionName, DbkOptions, DeepKind, FIRST_PASSES, LOW_NOISE, ObjectiveName, Setting};
use crate::{FitRequest, ModelError};
use posterior_gp::GpError;
use posterior_likelihoods::{Gaussian, Likelihood};
use posterior_linear::low_rank::{CoxRows, Training};
use posterior_optim::Parameters as _;

/// The least noise variance: without one the likelihood of a network is unbounded.
pub(crate) const FLOOR: f64 = 1e-6;

/// Numbers that covariances of the weights of all functions may have together before the functions share one: 31 functions of 128 features.
const OWN_ROOTS: usize = 1 << 18;

/// Standard deviation of weights that training on events begins with: as wide as their prior, they would expect `exp(½ k(x, x))` times as many events.
const DEVIATION_OF_EVENTS: f64 = 0.1;

/// The step size on events where nobody names one.
const STEP_OF_EVENTS: f64 = 3e-3;

/// What the targets are.
pub(crate) enum Targets<'a> {
    /// Numbers with Gaussian noise of a variance that is learned.
    Numbers,
    /// Labels, counts, numbers with outliers: their likelihood, to begin with.
    Labels(&'a dyn Likelihood),
    /// Events and nodes of a quadrature ([`CoxRows`]).
    Events,
}

/// How targets scatter around functions, as far as it decides which ways of training there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scatter {
    /// Gaussian noise: the evidence and the posterior of the weights have closed forms.
    Gaussian,
    /// Another likelihood of so many functions: the bound on batches stands for the evidence.
    Labels {
        /// C.
        functions: usize,
    },
    /// None: no row tells an intensity. So rows that are set aside judge its mean alone, and only a bound on the evidence says how uncertain it is.
    Events,
}

impl Scatter {
    /// Latent functions.
    pub(crate) fn functions(self) -> usize {
        if let Self::Labels { functions } = self { functions } else { 1 }
    }
}

/// The least noise variance that a request allows.
pub(crate) fn floor(request: &FitRequest) -> f64 {
    request.prior.noise_floor.max(FLOOR)
}

/// The noise where it begins, above its floor, wherever that is; held or bounded as was asked for.
///
/// # Errors
/// For constraints that it cannot have.
pub(crate) fn noise(
    first: f64,
    (request, options): (&FitRequest, &DbkOptions),
) -> Result<Gaussian, ModelError> {
    let floor = floor(request);
    let first = request.prior.initial_noise.unwrap_or(first).max(2.0 * floor);
    Ok(Gaussian::new(first, floor).constrained(&options.constraints.all()).map_err(GpError::from)?)
}

/// Whether a learned noise variance ended at a bound that was asked for.
pub(crate) fn ended_at_bounds(
    variance: f64,
    asked: (&FitRequest, &DbkOptions),
) -> Result<Vec<(String, f64)>, ModelError> {
    let mut noise = noise(variance, asked)?;
    noise.set_values(&[variance]);
    Ok(noise.at_bounds())
}

/// All ways that are tried, of features of this rank.
pub(crate) fn settings(
    (options, kind): (&DbkOptions, DeepKind),
    scatter: Scatter,
    (rows, rank): (usize, usize),
    request: &FitRequest,
) -> Vec<Setting> {
    let gaussian = scatter == Scatter::Gaussian;
    let mut asked = options.clone();
    if scatter == Scatter::Events {
        asked.batches.step_size = asked.batches.step_size.or(Some(STEP_OF_EVENTS));
        // However few events there are, their passes have thousands of nodes.
        asked.patience = asked.patience.or(Some(FIRST_PASSES));
        if asked.objective.is_none() {
            asked.objective = Some(ObjectiveName::Evidence);
            // Without it learned features are far too sure of an intensity, and no row would say so.
            let usual = (!kind.inducing).then_some(CorrectionName::Full);
            asked.correction = asked.correction.or(usual);
        }
    }
    let kind = DeepKind { exact: kind.exact && gaussian, ..kind };
    let mut all = asked.settings(kind, rows, request.seed);
    // Where noise begins is no choice where there is none, a user said it or what it may be, or its floor is no lower.
    let told = request.prior.initial_noise.is_some()
        || !options.constraints.all().is_empty()
        || 2.0 * floor(request) >= LOW_NOISE;
    if !gaussian || told {
        all.retain(|setting| !setting.from_below);
    }
    if gaussian {
        return all;
    }
    let roots = scatter.functions().saturating_mul(rank * (rank + 1) / 2);
    for Setting { name, options, small, .. } in &mut all {
        options.shared_root = roots > OWN_ROOTS;
        if scatter == Scatter::Events {
            options.first_deviation = DEVIATION_OF_EVENTS;
            // The bound alone says how uncertain an intensity is: it begins where intensities vary.
            *small = false;
        }
        if matches!(options.training, Training::Point { .. }) {
            *name =
                if asked.without_network() { "one value of the weights" } else { "the network alone" }.into();
        }
    }
    all
}

impl Targets<'_> {
    pub(crate) fn scatter(&self) -> Scatter {
        match self {
            Self::Numbers => Scatter::Gaussian,
            Self::Labels(likelihood) => Scatter::Labels { functions: likelihood.outputs() },
            Self::Events => Scatter::Events,
        }
    }

    /// Where the likelihood begins.
    ///
    /// # Errors
    /// For constraints that noise cannot have.
    pub(crate) fn likelihood(
        &self,
        setting: &Setting,
        asked: (&FitRequest, &DbkOptions),
    ) -> Result<Box<dyn Likelihood>, ModelError> {
        Ok(match self {
            Self::Numbers => Box::new(noise(setting.noise, asked)?),
            Self::Labels(likelihood) => likelihood.clone_box(),
            Self::Events => Box::new(CoxRows),
        })
    }
}
