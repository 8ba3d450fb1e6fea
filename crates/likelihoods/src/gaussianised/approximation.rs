//! The Gaussian of each kind of observation under conjugate priors with one pseudo-count.

use super::fit::check_positive;
use super::{Fit, Matching, PseudoObservation, PseudoSlopes, beta, gamma, inverse_gamma};
use crate::LikelihoodError;
use serde::{Deserialize, Serialize};

const OWNER: &str = "gaussianised";

/// Gaussian approximations of likelihoods of classes, events, counts, waiting times and variances.
///
/// The **pseudo-count** (`α_ε` in the literature) is what the conjugate prior of every observation pretends to have seen before it: of each
/// class, of both outcomes of an event, of counts. The smaller, the nearer is the conjugate posterior to the likelihood itself, and the
/// less it resembles a Gaussian; 0.1 to 0.2 are customary. Targets depend on it, so that evidences of pseudo-data with different pseudo-counts
/// are not comparable: choose it by the likelihood of the original labels.
///
/// Written as `{ matching = "variational", pseudo_count = 0.1 }`.
///
/// ```
/// use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
/// let labels = Gaussianised::new(Matching::Laplace, 0.1)?;
/// let (own, other) = (labels.class(true), labels.class(false));
/// assert!((own.target - 1.1f64.ln()).abs() < 1e-15 && (other.target - 0.1f64.ln()).abs() < 1e-15);
/// assert!((labels.confidence_ceiling(10) - 0.55).abs() < 1e-12);
/// # Ok::<(), posterior_likelihoods::LikelihoodError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Gaussianised {
    matching: Matching,
    pseudo_count: f64,
    prior_rate: Option<f64>,
    /// A class that was not observed, and one that was.
    classes: [Fit<2>; 2],
    /// An event that happened, where that has a Gaussian.
    event: Option<Fit<2>>,
}

/// As written, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    matching: Matching,
    pseudo_count: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior_rate: Option<f64>,
}

impl TryFrom<Written> for Gaussianised {
    type Error = LikelihoodError;
    fn try_from(written: Written) -> Result<Self, LikelihoodError> {
        let made = Self::new(written.matching, written.pseudo_count)?;
        written.prior_rate.map_or(Ok(made), |rate| made.with_prior_rate(rate))
    }
}

impl From<Gaussianised> for Written {
    fn from(made: Gaussianised) -> Self {
        Self { matching: made.matching, pseudo_count: made.pseudo_count, prior_rate: made.prior_rate }
    }
}

impl Gaussianised {
    /// With a pseudo-count. The Gaussians of classes and events are found once, here: about 0.3 ms at most.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless the pseudo-count is positive, finite, and large enough for the Gaussians of classes and their
    /// slopes to be numbers of the machine.
    pub fn new(matching: Matching, pseudo_count: f64) -> Result<Self, LikelihoodError> {
        check_positive(OWNER, "pseudo_count", pseudo_count)?;
        let class = |seen: f64| {
            gamma(matching, pseudo_count + seen, 1.0).map_err(|_| LikelihoodError::Parameter {
                owner: OWNER,
                parameter: "pseudo_count".into(),
                value: format!("{pseudo_count:e}"),
                remedy: "its Gaussian is beyond the numbers of the machine; 0.1 is customary",
            })
        };
        let classes = [class(0.0)?, class(1.0)?];
        let event = beta(matching, pseudo_count + 1.0, pseudo_count).ok();
        Ok(Self { matching, pseudo_count, prior_rate: None, classes, event })
    }

    /// With a Gamma prior of this rate for counts, waiting times and variances, instead of one equal to the pseudo-count (for a prior mean
    /// of 1): the exposure, waiting time, or half the sum of squared residuals that the prior pretends to have seen. Its mean rate, or
    /// precision, is `pseudo_count / prior_rate`; in the units of the data, so that it is worth giving where rates are far from 1.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless it is positive and finite.
    pub fn with_prior_rate(self, prior_rate: f64) -> Result<Self, LikelihoodError> {
        check_positive(OWNER, "prior_rate", prior_rate)?;
        Ok(Self { prior_rate: Some(prior_rate), ..self })
    }

    /// How Gaussians are chosen.
    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// The pseudo-count.
    pub fn pseudo_count(&self) -> f64 {
        self.pseudo_count
    }

    /// The rate of the Gamma prior of counts, waiting times and variances.
    pub fn prior_rate(&self) -> f64 {
        self.prior_rate.unwrap_or(self.pseudo_count)
    }

    /// The latent value of one class of an observation of classes with a softmax: whether it is the one that was `observed`.
    ///
    /// Class probabilities are `ω_k / Σ ω`, `ω_k ~ Gamma(pseudo_count + observed, 1)`, and the latent value is `log ω_k`; so an
    /// observation of K classes is K independent pseudo-observations, of which one has `observed`.
    pub fn class(&self, observed: bool) -> PseudoObservation {
        self.classes[usize::from(observed)].observation
    }

    /// `1 / v` of [`class`](Self::class): the weight of its squared residual. Under [`Matching::Laplace`] and [`Matching::Variational`] exactly
    /// the pseudo-count, with one more for the class that was observed.
    pub fn class_precision(&self, observed: bool) -> f64 {
        match self.matching {
            Matching::Laplace | Matching::Variational => self.pseudo_count + f64::from(u8::from(observed)),
            Matching::MomentOriginal | Matching::Moment => self.class(observed).precision(),
        }
    }

    /// How [`class`](Self::class) changes with the pseudo-count.
    pub fn class_slopes(&self, observed: bool) -> PseudoSlopes {
        self.classes[usize::from(observed)].slopes[0]
    }

    /// The logit of an event that happened or did not: `Beta(pseudo_count + 1, pseudo_count)`, or its mirror image.
    ///
    /// **The variance is the same for both outcomes**, and the targets differ in their sign only: pseudo-noise of events is homoscedastic,
    /// and one factorisation serves all models of one data set that differ in their labels.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] for [`Matching::MomentOriginal`], which has no Gaussian for events, or for extreme pseudo-counts.
    pub fn event(&self, happened: bool) -> Result<PseudoObservation, LikelihoodError> {
        let PseudoObservation { target, variance } = self.event_fit()?.observation;
        Ok(PseudoObservation { target: if happened { target } else { -target }, variance })
    }

    /// How [`event`](Self::event) changes with the pseudo-count.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn event_slopes(&self, happened: bool) -> Result<PseudoSlopes, LikelihoodError> {
        let [first, second] = self.event_fit()?.slopes;
        let target = first.target + second.target;
        let variance = first.variance + second.variance;
        Ok(PseudoSlopes { target: if happened { target } else { -target }, variance })
    }

    fn event_fit(&self) -> Result<Fit<2>, LikelihoodError> {
        // Where there is none, once more for its error.
        self.event.map_or_else(|| beta(self.matching, self.pseudo_count + 1.0, self.pseudo_count), Ok)
    }

    /// The logit of the probability with which `successes` of `trials` happened, whole numbers:
    /// `Beta(pseudo_count + successes, pseudo_count + trials - successes)`.
    ///
    /// Cost as [`beta`]: for many rows, ask once for each pair of numbers.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] when they are not whole numbers with `0 <= successes <= trials` and `trials >= 1`, or as
    /// [`event`](Self::event).
    pub fn binomial(&self, successes: f64, trials: f64) -> Result<PseudoObservation, LikelihoodError> {
        check_whole("trials", trials)?;
        check_whole("successes", successes)?;
        if trials < 1.0 {
            return error("trials", trials, "drop rows in which nothing was tried");
        }
        if successes > trials {
            return error("successes", successes, "there are at most as many as trials; check the columns");
        }
        let (first, second) = (self.pseudo_count + successes, self.pseudo_count + (trials - successes));
        Ok(beta(self.matching, first, second)?.observation)
    }

    /// The log rate of a Poisson `count` in an `exposure` (time, area, population; 1 where rows are alike):
    /// `Gamma(pseudo_count + count, prior_rate + exposure)`.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless the count is a whole number from 0 and the exposure positive and finite.
    pub fn count(&self, count: f64, exposure: f64) -> Result<PseudoObservation, LikelihoodError> {
        check_whole("count", count)?;
        check_positive(OWNER, "exposure", exposure)?;
        let (shape, rate) = (self.pseudo_count + count, self.prior_rate() + exposure);
        Ok(gamma(self.matching, shape, rate)?.observation)
    }

    /// How [`count`](Self::count) changes with the pseudo-count: the rate of the prior moves with it unless it was [given](Self::with_prior_rate).
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn count_slopes(&self, count: f64, exposure: f64) -> Result<PseudoSlopes, LikelihoodError> {
        check_whole("count", count)?;
        check_positive(OWNER, "exposure", exposure)?;
        let (shape, rate) = (self.pseudo_count + count, self.prior_rate() + exposure);
        let [of_shape, of_rate] = gamma(self.matching, shape, rate)?.slopes;
        let moved = f64::from(u8::from(self.prior_rate.is_none()));
        Ok(PseudoSlopes {
            target: of_shape.target + moved * of_rate.target,
            variance: of_shape.variance + moved * of_rate.variance,
        })
    }

    /// The log rate of an exponential waiting time: `Gamma(pseudo_count + 1, prior_rate + waiting_time)`.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] when it is negative or not finite.
    pub fn waiting_time(&self, waiting_time: f64) -> Result<PseudoObservation, LikelihoodError> {
        if !(waiting_time >= 0.0 && waiting_time.is_finite()) {
            return error("waiting_time", waiting_time, "give a finite number that is not negative");
        }
        Ok(gamma(self.matching, self.pseudo_count + 1.0, self.prior_rate() + waiting_time)?.observation)
    }

    /// The log variance of a Gaussian of which one `residual` was seen:
    /// inverse Gamma with shape `pseudo_count + 1/2` and scale `prior_rate + residual² / 2`.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] when the residual or its square is not finite, or for [`Matching::MomentOriginal`].
    pub fn residual_variance(&self, residual: f64) -> Result<PseudoObservation, LikelihoodError> {
        let half_square = 0.5 * residual * residual;
        if !half_square.is_finite() {
            return error("residual", residual, "give a finite number below 1e154; standardise the targets");
        }
        let (shape, scale) = (self.pseudo_count + 0.5, self.prior_rate() + half_square);
        Ok(inverse_gamma(self.matching, shape, scale)?.observation)
    }

    /// The largest class probability of a model that meets all pseudo-targets of so many classes: `1 / (1 + (K - 1) exp(m₀ - m₁))`, with
    /// `m₁` the target of the class that was observed. 1 for a single class.
    ///
    /// Labels that are certain are never met by more than this; where it is low, probabilities are underconfident.
    pub fn confidence_ceiling(&self, classes: usize) -> f64 {
        let others = classes.saturating_sub(1) as f64;
        1.0 / (1.0 + others * (self.class(false).target - self.class(true).target).exp())
    }
}

fn check_whole(parameter: &str, value: f64) -> Result<(), LikelihoodError> {
    if value >= 0.0 && value.is_finite() && value.fract() == 0.0 {
        return Ok(());
    }
    error(parameter, value, "counts are whole numbers from 0; do not standardise them")
}

fn error<T>(parameter: &str, value: f64, remedy: &'static str) -> Result<T, LikelihoodError> {
    let (parameter, value) = (parameter.into(), value.to_string());
    Err(LikelihoodError::Parameter { owner: OWNER, parameter, value, remedy })
}
