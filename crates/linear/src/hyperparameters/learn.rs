//! The loop.

use super::{EvidenceCurvature, EvidenceModel, Hit, Limits, MStep};
use super::{decoupled_elbo, log_precision_gradient, mackay, maximise_bound};
use crate::mode::Predictor;
use crate::structure::Terms;
use crate::{LinearError, Prior, check};
use serde::{Deserialize, Serialize};

/// Whose norm the evidence contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The weights at which the network was linearised (d): the naive evidence, which no linear model is fitted for. It is biased
    /// unless these weights are a mode, which those of a normalised network never are.
    Linearisation(Vec<f64>),
    /// The mode of the linear model itself, with its offset.
    Mode,
    /// The mode of the linear model without offset.
    SimpleMode,
}

/// How precisions are learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnOptions {
    /// The update.
    pub m_step: MStep,
    /// Updates per mode, with effective dimensions renewed in between; for [`MStep::MacKay`] and [`MStep::Gradient`], at least 1.
    pub inner_steps: usize,
    /// Most modes.
    pub steps: usize,
    /// Converged once no logarithm of a precision or of the noise changes by more than this in one step.
    pub tolerance: f64,
    /// Edges.
    pub limits: Limits,
}

impl Default for LearnOptions {
    /// MacKay's update once per mode, 100 steps, 1e-4.
    fn default() -> Self {
        Self { m_step: MStep::MacKay, inner_steps: 1, steps: 100, tolerance: 1e-4, limits: Limits::default() }
    }
}

/// One step: where it stood, and what the update then wanted beyond the limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnStep {
    /// Precision of each group.
    pub precisions: Vec<f64>,
    /// Factor on the noise precision.
    pub noise_factor: f64,
    /// Effective dimension of each group at these precisions.
    pub effective_dimensions: Vec<f64>,
    /// `|u_l|²` of each group.
    pub squared_norms: Vec<f64>,
    /// `G_u`, constants included: the log evidence itself for Gaussian noise and the mode.
    pub evidence: f64,
    /// Edges hit by the update that followed.
    pub hits: Vec<Hit>,
}

/// What was learned. The last step of the trace belongs to the final precisions, and no update followed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The prior with its last precisions.
    pub prior: Prior,
    /// Factor on the noise precision; 1 unless it was learned.
    pub noise_factor: f64,
    /// The vector in the norm term (d): the mode at the final precisions, or the linearisation point.
    pub weights: Vec<f64>,
    /// All steps, for plots.
    pub trace: Vec<LearnStep>,
    /// Whether the tolerance was met before the steps ran out.
    pub converged: bool,
}

/// Alternates modes and updates of the precisions from those of `start`, whose groups are kept (spec `linearised_laplace`, section 4.2; the
/// thesis starts at 1e-4). The weights start at 0 and are then carried along.
///
/// Each step costs one search for the mode and one evaluation of the curvature's terms (more with `inner_steps`).
///
/// # Errors
/// [`LinearError::Option`] for options out of range, [`LinearError::Shape`], [`LinearError::Diverged`] when the evidence is not finite;
/// those of the model.
pub fn learn(
    model: &mut dyn EvidenceModel,
    evidence: &Evidence,
    start: &Prior,
    options: &LearnOptions,
) -> Result<Learned, LinearError> {
    options.check()?;
    let dimension = model.curvature().dimension();
    check::same("weights of the initial prior", dimension, start.dimension())?;
    let predictor = if *evidence == Evidence::SimpleMode { Predictor::Linear } else { Predictor::Affine };
    let mut weights = vec![0.0; dimension];
    if let Evidence::Linearisation(point) = evidence {
        check::same("weights of the linearisation point", dimension, point.len())?;
        check::finite("weight of the linearisation point", point)?;
        weights.copy_from_slice(point);
    }
    let sizes = start.group_sizes();
    let mut prior = start.clone();
    let mut trace: Vec<LearnStep> = Vec::new();
    let mut converged = false;
    loop {
        if !matches!(evidence, Evidence::Linearisation(_)) {
            weights = model.mode(&prior, &weights, predictor)?;
            check::same("weights of the mode", dimension, weights.len())?;
        }
        let factor = model.noise_factor();
        let terms = model.curvature().terms(&prior, factor)?;
        let norms = prior.squared_norms(&weights);
        let penalty: f64 = norms.iter().zip(prior.precisions()).map(|(n, a)| n * a).sum();
        let value = model.log_likelihood(&weights, predictor)? - 0.5 * (penalty + terms.log_determinant);
        if !value.is_finite() {
            return Err(LinearError::Diverged { what: "the evidence", step: trace.len(), value });
        }
        let total: f64 = terms.effective_dimensions.iter().sum();
        let mut step = LearnStep {
            precisions: prior.precisions().to_vec(),
            noise_factor: factor,
            effective_dimensions: terms.effective_dimensions.clone(),
            squared_norms: norms.clone(),
            evidence: value,
            hits: Vec::new(),
        };
        if converged || trace.len() >= options.steps {
            trace.push(step);
            break;
        }
        let update = Update { options, sizes: &sizes, norms: &norms, factor };
        let next = update.prior(&prior, terms, model.curvature(), &mut step.hits)?;
        let mut change = largest_change(&prior, &next);
        if let Some(wanted) = model.best_noise_factor(&weights, total, predictor)? {
            let kept = options.limits.noise(wanted, &mut step.hits);
            change = change.max((kept / factor).ln().abs());
            model.set_noise_factor(kept);
        }
        prior = next;
        converged = change <= options.tolerance;
        trace.push(step);
    }
    Ok(Learned { prior, noise_factor: model.noise_factor(), weights, trace, converged })
}

/// The largest difference of the logarithms of precisions.
fn largest_change(old: &Prior, new: &Prior) -> f64 {
    old.precisions().iter().zip(new.precisions()).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max)
}

impl LearnOptions {
    fn check(&self) -> Result<(), LinearError> {
        self.limits.check()?;
        if self.inner_steps == 0 {
            return Err(LinearError::Option { name: "inner_steps", value: 0.0, expected: "at least 1" });
        }
        if self.tolerance.is_nan() || self.tolerance < 0.0 {
            let expected = "not negative";
            return Err(LinearError::Option { name: "tolerance", value: self.tolerance, expected });
        }
        match self.m_step {
            MStep::Gradient { rate } if !(rate > 0.0 && rate.is_finite()) => {
                Err(LinearError::Option { name: "rate", value: rate, expected: "positive and finite" })
            }
            _ => Ok(()),
        }
    }
}

/// What an update of the precisions starts from.
struct Update<'a> {
    options: &'a LearnOptions,
    sizes: &'a [usize],
    norms: &'a [f64],
    factor: f64,
}

impl Update<'_> {
    fn prior(
        &self,
        current: &Prior,
        terms: Terms,
        curvature: &dyn EvidenceCurvature,
        hits: &mut Vec<Hit>,
    ) -> Result<Prior, LinearError> {
        let inner = self.options.inner_steps;
        match self.options.m_step {
            MStep::MacKay => self
                .repeat(current, terms, curvature, hits, inner, |l, _, gamma| mackay(gamma, self.norms[l])),
            MStep::Gradient { rate } => self.repeat(current, terms, curvature, hits, inner, |l, a, gamma| {
                a * (rate * log_precision_gradient(gamma, a, self.norms[l])).exp()
            }),
            MStep::DecoupledElbo => self.repeat(current, terms, curvature, hits, 1, |l, a, gamma| {
                let trace = (self.sizes[l] as f64 - gamma) / a;
                decoupled_elbo(self.sizes[l], self.norms[l], trace)
            }),
            MStep::MaximiseBound => {
                let alone = current.precisions().len() == 1;
                if let Some(eigenvalues) = if alone { curvature.eigenvalues()? } else { None } {
                    let scaled: Vec<f64> = eigenvalues.iter().map(|l| self.factor * l).collect();
                    let (low, high) = self.options.limits.precision;
                    // A little beyond the limits, so that a root outside them is seen and reported.
                    let wanted = maximise_bound(&scaled, self.norms[0], (0.5 * low, 2.0 * high))?;
                    return Ok(current.with_precisions(&[self.options.limits.precision(0, wanted, hits)])?);
                }
                // MacKay's map for fixed weights overshoots; its geometric mean with the present converges to the same point.
                self.repeat(current, terms, curvature, hits, 200, |l, a, gamma| {
                    (a * mackay(gamma, self.norms[l]).clamp(1e-300, 1e300)).sqrt()
                })
            }
        }
    }

    /// Updates with renewed effective dimensions, at most `steps` times; edges are reported for the last.
    fn repeat(
        &self,
        current: &Prior,
        mut terms: Terms,
        curvature: &dyn EvidenceCurvature,
        hits: &mut Vec<Hit>,
        steps: usize,
        update: impl Fn(usize, f64, f64) -> f64,
    ) -> Result<Prior, LinearError> {
        let limits = &self.options.limits;
        let mut prior = current.clone();
        for step in 1..=steps {
            hits.clear();
            let mut next = Vec::with_capacity(self.sizes.len());
            for (l, &a) in prior.precisions().iter().enumerate() {
                if self.sizes[l] == 0 {
                    // A group without weights has no evidence to go by.
                    next.push(a);
                    continue;
                }
                let gamma = limits.dimension(l, self.sizes[l], terms.effective_dimensions[l], hits);
                next.push(limits.precision(l, update(l, a, gamma), hits));
            }
            let next = prior.with_precisions(&next)?;
            let change = largest_change(&prior, &next);
            prior = next;
            if step == steps || change <= 1e-12 {
                break;
            }
            terms = curvature.terms(&prior, self.factor)?;
        }
        Ok(prior)
    }
}
