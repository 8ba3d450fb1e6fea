//! **What more data would remove**: the mutual information between a label and the latent values behind it.
//!
//! ```text
//! I(y; f) = H(E[p(y | f)]) - E[H(p(y | f))]
//! ```
//!
//! in nats: the entropy of the prediction less what would remain of it if the function were known. Large where little was observed, zero where the classes themselves overlap.
//! Both terms are taken from the same nodes or draws, so the difference is never negative.
//!
//! Source: Houlsby, Huszár, Ghahramani and Lengyel (2011), *Bayesian active learning for classification and preference learning*.

use super::draws::{CommonDraws, DrawsWorkspace};
use super::{Covariance, LatentGaussian};
use crate::expectation::nodes;
use crate::special::softmax::{largest, log_softmax, softmax, softplus};
use crate::{Bernoulli, LikelihoodError, Link, OutputLikelihood, RobustMax};

/// The step of the rule in units of an event's latent value: the logistic function is analytic for `|Im f| < π`.
const STEP: f64 = 0.5;

/// Mutual information of labels, for one likelihood and many inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelInformation {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Classes(CommonDraws),
    Ranked(RobustMax, CommonDraws),
    Events(Bernoulli),
    None,
}

impl LabelInformation {
    /// For classes by `samples` draws that all inputs share (`4 samples C` bytes), of standard error `√(2/samples)` of the entropy's own spread; for events, and for robust-max classes with independent latent values, by quadrature, to rounding.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] for an unusable number of samples.
    pub fn new(likelihood: &OutputLikelihood, samples: usize, seed: u64) -> Result<Self, LikelihoodError> {
        let kind = match likelihood {
            OutputLikelihood::Categorical(c) => Kind::Classes(CommonDraws::new(samples, c.classes(), seed)?),
            OutputLikelihood::RobustMax(r) => Kind::Ranked(*r, CommonDraws::new(samples, r.classes(), seed)?),
            OutputLikelihood::Bernoulli(bernoulli) => Kind::Events(*bernoulli),
            _ => Kind::None,
        };
        Ok(Self { kind })
    }

    /// `I(y; f)` at one input, nats, summed over events; None for numbers and counts, whose latent variance says it. Cost `O(samples C)`, with a full covariance `O(samples C² + C³)`.
    ///
    /// # Errors
    /// When the latent Gaussian has the wrong size, is not finite, or its covariance is clearly not positive semi-definite.
    pub fn at(&self, latent: LatentGaussian<'_>) -> Result<Option<f64>, LikelihoodError> {
        match &self.kind {
            Kind::Classes(draws) => classes(draws, latent).map(Some),
            Kind::Ranked(robust, draws) => ranked(robust, draws, latent).map(Some),
            Kind::Events(bernoulli) => {
                let n = latent.mean.len();
                latent.check(n)?;
                let of = |i: usize| event(bernoulli.link(), latent.mean[i], latent.covariance.variance(i, n));
                Ok(Some((0..n).map(of).sum()))
            }
            Kind::None => Ok(None),
        }
    }
}

/// `-p log p`, 0 at 0.
fn surprise(p: f64) -> f64 {
    if p > 0.0 { -p * p.ln() } else { 0.0 }
}

fn classes(draws: &CommonDraws, latent: LatentGaussian<'_>) -> Result<f64, LikelihoodError> {
    let n = latent.mean.len();
    latent.check(n)?;
    if let Covariance::Diagonal(variances) = latent.covariance
        && variances.iter().all(|v| *v <= 0.0)
    {
        return Ok(0.0);
    }
    let (mut mean, mut own, mut within) = (vec![0.0; n], vec![0.0; n], 0.0);
    draws.visit(latent, &mut DrawsWorkspace::default(), |functions| {
        for f in functions.chunks(n) {
            softmax(f, &mut own);
            for (class, p) in own.iter().enumerate() {
                mean[class] += p;
                if *p > 0.0 {
                    within -= p * log_softmax(f, class);
                }
            }
        }
    })?;
    let count = draws.samples() as f64;
    Ok((mean.iter().map(|p| surprise(p / count)).sum::<f64>() - within / count).max(0.0))
}

/// Of a label that the largest latent value names: what is left when that is known is the entropy of its errors. By quadrature for independent latent values.
fn ranked(
    robust: &RobustMax,
    draws: &CommonDraws,
    latent: LatentGaussian<'_>,
) -> Result<f64, LikelihoodError> {
    let n = robust.classes();
    latent.check(n)?;
    let mut p = vec![0.0; n];
    match latent.covariance {
        Covariance::Diagonal(variances) => robust.probabilities(latent.mean, variances, &mut p),
        Covariance::Full(_) => {
            draws.visit(latent, &mut DrawsWorkspace::default(), |functions| {
                functions.chunks(n).for_each(|f| p[largest(f)] += 1.0);
            })?;
            robust.with_errors(&mut p);
        }
    }
    Ok((p.into_iter().map(surprise).sum::<f64>() - robust.noise_entropy()).max(0.0))
}

fn event(link: Link, mean: f64, variance: f64) -> f64 {
    let (mut p, mut within) = (0.0, 0.0);
    for (f, weight) in nodes(mean, variance, STEP) {
        let own = link.probability(f);
        p += weight * own;
        within += weight
            * match link {
                // -log p and -log (1 - p) without cancellation.
                Link::Logit => own * softplus(-f) + (1.0 - own) * softplus(f),
                Link::Probit => surprise(own) + surprise(1.0 - own),
            };
    }
    (surprise(p) + surprise(1.0 - p) - within).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Categorical;

    fn information(likelihood: OutputLikelihood, mean: &[f64], covariance: Covariance<'_>) -> f64 {
        let rule = LabelInformation::new(&likelihood, 20_000, 3).unwrap();
        rule.at(LatentGaussian { mean, covariance }).unwrap().unwrap()
    }

    #[test]
    fn a_known_function_tells_nothing_and_a_wild_one_everything() {
        let events = || OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit).unwrap());
        assert!(information(events(), &[0.3], Covariance::Diagonal(&[0.0])) < 1e-14);
        // A latent value far from zero on either side: a coin that has been thrown, log 2.
        let wild = information(events(), &[0.0], Covariance::Diagonal(&[1e6]));
        assert!((wild - std::f64::consts::LN_2).abs() < 5e-3, "{wild}");
        let classes = |n| OutputLikelihood::Categorical(Categorical::new(n).unwrap());
        assert!(information(classes(3), &[0.0; 3], Covariance::Diagonal(&[0.0; 3])) == 0.0);
        let wild = information(classes(3), &[0.0; 3], Covariance::Diagonal(&[1e6; 3]));
        assert!((wild - 3f64.ln()).abs() < 5e-3, "{wild}");
        // Of robust classes the entropy less that of their errors, of which half are right in a wild pair.
        let robust = |error_rate| RobustMax::new(2, error_rate).unwrap();
        let known = |error_rate: f64| surprise(error_rate) + surprise(1.0 - error_rate);
        for covariance in [Covariance::Diagonal(&[0.7; 2]), Covariance::Full(&[0.7, 0.2, 0.2, 0.7])] {
            let found = information(OutputLikelihood::RobustMax(robust(0.1)), &[0.3; 2], covariance);
            // Half of 20,000 draws are independent; entropy is flat at one half.
            assert!((found - std::f64::consts::LN_2 + known(0.1)).abs() < 1e-3, "{found}");
            let certain = information(OutputLikelihood::RobustMax(robust(0.1)), &[30.0, 0.0], covariance);
            assert!(certain < 1e-12, "{certain}");
        }
        // The same noise on all classes changes nothing.
        let shared = information(classes(3), &[0.5, 0.0, 0.1], Covariance::Full(&[2.0; 9]));
        assert!(shared < 1e-6, "{shared}");
    }

    #[test]
    fn two_classes_are_an_event_of_their_difference() {
        for (mean, variance) in [(0.4, 0.8), (-2.0, 3.0)] {
            let event = information(
                OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit).unwrap()),
                &[mean],
                Covariance::Diagonal(&[variance]),
            );
            let classes = information(
                OutputLikelihood::Categorical(Categorical::new(2).unwrap()),
                &[-0.5 * mean, 0.5 * mean],
                Covariance::Diagonal(&[0.5 * variance; 2]),
            );
            // 10,000 independent pairs of a quantity below log 2.
            assert!((event - classes).abs() < 5.0 * 0.7 / 100.0, "{event} {classes}");
        }
        let numbers = OutputLikelihood::Poisson(crate::Poisson::new(1).unwrap());
        let none = LabelInformation::new(&numbers, 10, 0).unwrap();
        let latent = LatentGaussian { mean: &[0.0], covariance: Covariance::Diagonal(&[1.0]) };
        assert_eq!(none.at(latent).unwrap(), None);
    }
}
