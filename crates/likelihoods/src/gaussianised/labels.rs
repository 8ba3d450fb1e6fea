//! What a target says of each latent value of its likelihood, as if that had been seen through Gaussian noise.
//!
//! | likelihood | latent value k of a target y |
//! |---|---|
//! | categorical | [`class`](Gaussianised::class), observed where y is k |
//! | Bernoulli | [`event`](Gaussianised::event), happened where y_k is 1 |
//! | Poisson | [`count`](Gaussianised::count) y_k in the exposure of its row |

use super::{Gaussianised, PseudoObservation, PseudoSlopes};
use crate::{LikelihoodError, OutputLikelihood};

/// The pseudo-targets of one likelihood. What repeats from row to row is found once.
#[derive(Clone, Debug)]
pub struct LabelApproximation {
    gaussianised: Gaussianised,
    outputs: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// It did not happen, it did.
    Event([(PseudoObservation, PseudoSlopes); 2]),
    /// Another class, this class.
    Class([(PseudoObservation, PseudoSlopes); 2]),
    Count,
}

impl LabelApproximation {
    /// Of the targets of a likelihood.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] for likelihoods other than of classes, events and Poisson counts, and for a matching that has no Gaussian for events.
    pub fn new(likelihood: &OutputLikelihood, gaussianised: &Gaussianised) -> Result<Self, LikelihoodError> {
        let event = |side| -> Result<_, LikelihoodError> {
            Ok((gaussianised.event(side)?, gaussianised.event_slopes(side)?))
        };
        let class = |side| (gaussianised.class(side), gaussianised.class_slopes(side));
        let kind = match likelihood {
            OutputLikelihood::Bernoulli(_) => Kind::Event([event(false)?, event(true)?]),
            OutputLikelihood::Categorical(_) => Kind::Class([class(false), class(true)]),
            OutputLikelihood::Poisson(_) => Kind::Count,
            other => {
                return Err(LikelihoodError::Parameter {
                    owner: "gaussianised",
                    parameter: "the likelihood".into(),
                    value: other.name().into(),
                    remedy: "which has no Gaussian label approximation: infer by Laplace's approximation or by a stochastic bound",
                });
            }
        };
        Ok(Self { gaussianised: *gaussianised, outputs: likelihood.outputs(), kind })
    }

    /// Number of latent values.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What a target as the likelihood takes it says of latent value k. Counts have an exposure, 1 where rows are alike.
    ///
    /// # Errors
    /// As [`Gaussianised::count`] for what is no count.
    ///
    /// # Panics
    /// When the target is shorter than the likelihood's.
    pub fn observation(
        &self,
        y: &[f64],
        k: usize,
        exposure: f64,
    ) -> Result<PseudoObservation, LikelihoodError> {
        match &self.kind {
            Kind::Event(sides) => Ok(sides[usize::from(y[k] > 0.5)].0),
            Kind::Class(sides) => Ok(sides[usize::from(y[0] == k as f64)].0),
            Kind::Count => self.gaussianised.count(y[k], exposure),
        }
    }

    /// How that changes with the pseudo-count.
    ///
    /// # Errors
    /// As [`observation`](Self::observation).
    ///
    /// # Panics
    /// As [`observation`](Self::observation).
    pub fn slopes(&self, y: &[f64], k: usize, exposure: f64) -> Result<PseudoSlopes, LikelihoodError> {
        match &self.kind {
            Kind::Event(sides) => Ok(sides[usize::from(y[k] > 0.5)].1),
            Kind::Class(sides) => Ok(sides[usize::from(y[0] == k as f64)].1),
            Kind::Count => self.gaussianised.count_slopes(y[k], exposure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matching;
    use super::*;
    use crate::{Bernoulli, Categorical, Gaussian, Link, Poisson};

    /// Every kind of target, with what it says of each latent value by hand, and slopes against differences.
    #[test]
    fn targets_say_what_their_likelihood_means() {
        let classes = OutputLikelihood::Categorical(Categorical::new(3).unwrap());
        let events = OutputLikelihood::Bernoulli(Bernoulli::new(2, Link::Logit).unwrap());
        let counts = OutputLikelihood::Poisson(Poisson::new(2).unwrap());
        for matching in [Matching::Moment, Matching::Laplace, Matching::Variational] {
            let at = |a: f64| Gaussianised::new(matching, a).unwrap();
            let g = at(0.3);
            let cases: [(&OutputLikelihood, Vec<f64>, Vec<PseudoObservation>); 3] = [
                (&classes, vec![2.0], vec![g.class(false), g.class(false), g.class(true)]),
                (&events, vec![1.0, 0.0], vec![g.event(true).unwrap(), g.event(false).unwrap()]),
                (&counts, vec![0.0, 7.0], vec![g.count(0.0, 2.5).unwrap(), g.count(7.0, 2.5).unwrap()]),
            ];
            for (likelihood, y, expected) in cases {
                let labels = LabelApproximation::new(likelihood, &g).unwrap();
                assert_eq!(labels.outputs(), expected.len());
                for (k, expected) in expected.iter().enumerate() {
                    assert_eq!(labels.observation(&y, k, 2.5).unwrap(), *expected);
                    let moved = |by: f64| {
                        let labels = LabelApproximation::new(likelihood, &at(0.3 + by)).unwrap();
                        labels.observation(&y, k, 2.5).unwrap()
                    };
                    let (up, down) = (moved(1e-5), moved(-1e-5));
                    let slopes = labels.slopes(&y, k, 2.5).unwrap();
                    let numeric = [(up.target - down.target) / 2e-5, (up.variance - down.variance) / 2e-5];
                    for (own, other) in [slopes.target, slopes.variance].into_iter().zip(numeric) {
                        assert!((own - other).abs() < 1e-6 * (1.0 + own.abs()), "{matching:?} {own} {other}");
                    }
                }
            }
        }
        let g = Gaussianised::new(Matching::Laplace, 0.3).unwrap();
        // A rate of the prior that is given stays: log(0.3 + 2) - log(5 + 1), with a slope in the shape only.
        let given = g.with_prior_rate(5.0).unwrap().count_slopes(2.0, 1.0).unwrap();
        assert!(
            (given.target - 1.0 / 2.3).abs() < 1e-15
                && g.count_slopes(2.0, 1.0).unwrap().target < given.target
        );
        assert!(LabelApproximation::new(&counts, &g).unwrap().observation(&[0.5, 1.0], 0, 1.0).is_err());
        let noise = OutputLikelihood::Gaussian(Gaussian::new(1.0, 0.0));
        assert!(
            LabelApproximation::new(&noise, &g)
                .unwrap_err()
                .to_string()
                .contains("no Gaussian label approximation")
        );
        let original = Gaussianised::new(Matching::MomentOriginal, 0.3).unwrap();
        assert!(LabelApproximation::new(&events, &original).is_err());
    }
}
