//! **Classes as Gaussian numbers**: weighted least squares whose targets and weights stand for the likelihood of a label.
//!
//! A label becomes one pseudo-target `m` with the variance `v` of a pseudo-noise for every output (`likelihoods::gaussianised`), and a network is trained on
//!
//! `Σ_k (f_k - m_k)² / (2 v_k)`,
//!
//! where `(m_k, v_k)` is one of two pairs: that of the class that was observed, or that of the others. No exponential is taken, the curvature in the outputs is
//! constant, and the last layer of the network is a linear regression. Probabilities are the softmax of the outputs: targets are logarithms of
//! Gamma variables, of which class probabilities are the shares. A network with one output has a logit for its target, and its probability is the sigmoid.
//!
//! A network that meets its targets is no surer than [`GaussianisedLoss::confidence_ceiling`]; where that is low, probabilities are underconfident however long it is
//! trained.
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*; spec `likelihood_approximations`, sections 4 and 6.1.

use posterior_likelihoods::LikelihoodError;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use serde::{Deserialize, Serialize};

/// Below this pseudo-count, targets by [`Matching::Moment`] are farther than 20 nats from the others' and weigh less than 1/400 of them.
const FAR: f64 = 0.05;

/// A confidence ceiling below this is worth a word.
const LOW_CEILING: f64 = 0.9;

/// A quadratic `weight (f - target)² / 2` of one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pull {
    target: f64,
    weight: f64,
    /// `weight · target`, so that a gradient is no product with a distance that is huge where the weight is tiny.
    force: f64,
}

impl Pull {
    pub(super) fn new(target: f64, weight: f64) -> Self {
        Self { target, weight, force: weight * target }
    }

    /// `weight (f - target)² / 2` and its slope `weight f - weight target`.
    pub(super) fn at(&self, output: f64) -> (f64, f64) {
        let slope = self.weight * output - self.force;
        (0.5 * (output - self.target) * slope, slope)
    }
}

/// How labels become Gaussian numbers: a matching and a pseudo-count, checked when they are put together.
///
/// Written as `{ matching = "variational", pseudo_count = 0.1 }`.
///
/// ```
/// use posterior_likelihoods::gaussianised::Matching;
/// use posterior_networks::train::{GaussianisedLoss, Loss};
/// let labels = GaussianisedLoss::new(Matching::Laplace, 0.1)?;
/// assert!((labels.confidence_ceiling(10) - 0.55).abs() < 1e-12);
/// let loss = Loss::Gaussianised(labels);
/// assert!(loss.takes_classes());
/// # Ok::<(), posterior_likelihoods::LikelihoodError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct GaussianisedLoss {
    matching: Matching,
    pseudo_count: f64,
    /// An output whose class was not observed, and one whose class was.
    classes: [Pull; 2],
    /// One output alone, when the second class was observed; the first is its mirror image. None where the matching has no Gaussian for events.
    event: Option<Pull>,
}

/// As written, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    matching: Matching,
    pseudo_count: f64,
}

impl TryFrom<Written> for GaussianisedLoss {
    type Error = LikelihoodError;
    fn try_from(written: Written) -> Result<Self, LikelihoodError> {
        Self::new(written.matching, written.pseudo_count)
    }
}

impl From<GaussianisedLoss> for Written {
    fn from(made: GaussianisedLoss) -> Self {
        Self { matching: made.matching(), pseudo_count: made.pseudo_count() }
    }
}

impl GaussianisedLoss {
    /// The pseudo-count that suits variational matching and, as far as any does, the others.
    pub const PSEUDO_COUNT: f64 = 0.1;

    /// With a pseudo-count. Targets and weights are found once, here: about 0.3 ms at most.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless the pseudo-count is positive, finite, and large enough for the Gaussians to be numbers of the machine.
    pub fn new(matching: Matching, pseudo_count: f64) -> Result<Self, LikelihoodError> {
        let labels = Gaussianised::new(matching, pseudo_count)?;
        let class = |observed| Pull::new(labels.class(observed).target, labels.class_precision(observed));
        let event = labels.event(true).ok().map(|own| Pull::new(own.target, own.precision()));
        Ok(Self { matching, pseudo_count, classes: [class(false), class(true)], event })
    }

    /// How Gaussians are chosen.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// The pseudo-count.
    pub fn pseudo_count(&self) -> f64 {
        self.pseudo_count
    }

    /// The largest probability that a network gives a class once it meets all targets, by the number of its outputs: one output is a logit. NaN where the matching has no Gaussian
    /// for a single output.
    pub fn confidence_ceiling(&self, outputs: usize) -> f64 {
        let Some([other, own]) = self.pulls(outputs) else { return f64::NAN };
        // One logit stands for two outputs of which the other is zero.
        let (gap, others) = match outputs {
            1 => (own.target, 1),
            _ => (own.target - other.target, outputs.saturating_sub(1)),
        };
        1.0 / (1.0 + others as f64 * (-gap).exp())
    }

    /// Quadratics of an output: not observed, observed.
    pub(super) fn pulls(&self, outputs: usize) -> Option<[Pull; 2]> {
        match outputs {
            1 => self.event.map(|own| [Pull::new(-own.target, own.weight), own]),
            _ => Some(self.classes),
        }
    }

    /// Why it is not for a network of so many outputs, if it is not.
    pub(super) fn problem(&self, outputs: usize) -> Option<String> {
        self.pulls(outputs).is_none().then(|| {
            format!(
                "{} matching has no Gaussian for the logit of a single output: choose variational, moment or laplace, or a network with two outputs",
                self.matching().name()
            )
        })
    }

    /// What to know before a network of so many outputs is trained like this, in single precision or not.
    pub fn remarks(&self, outputs: usize, single: bool) -> Vec<String> {
        let mut remarks = Vec::new();
        let (count, ceiling) = (self.pseudo_count(), self.confidence_ceiling(outputs));
        if ceiling < LOW_CEILING {
            remarks.push(format!(
                "a network that meets the targets of {} matching with pseudo-count {count} gives its class a probability of {ceiling:.3}, never more: a smaller pseudo-count or another matching allows more",
                self.matching().name()
            ));
        }
        if self.matching() == Matching::Moment && count < FAR {
            let precision = if single { "; in single precision it may not learn at all" } else { "" };
            remarks.push(format!(
                "moment matching with pseudo-count {count} has targets {:.0} nats apart, of which the far ones hardly weigh anything: training is slow and rough{precision}; use {FAR} or more, or another matching",
                1.0 / count
            ));
        }
        remarks
    }
}
