//! **Labels as Gaussian observations**: what a label says of each latent function, in units in which all pseudo-targets together have mean 0 and deviation 1.
//!
//! ```text
//! two classes:   one function, the log-odds of the second;  N(f; ±m, v)
//! K classes:     one function each;  N(f_k; m₁, v₁) of the label's own, N(f_k; m₀, v₀) of the others
//! f = offset + scale g,   offset = (m₁ + (K - 1) m₀) / K,   scale = |m₁ - m₀| √(K - 1) / K
//! ```
//!
//! Units follow from the matching and from K alone, not from the labels told so far, so that one more label changes no earlier observation. How common a class is, is for the prior to
//! learn: a constant function of a variance of its own.
//!
//! Source: spec `likelihood_approximations`, sections 4.1, 4.2 and 6.8.

use crate::DecisionError;
use posterior_likelihoods::gaussianised::{Gaussianised, Matching, PseudoObservation};
use posterior_likelihoods::{Bernoulli, Categorical, LikelihoodError, Link, OutputLikelihood};

/// What labels of K classes say of the latent functions.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassGaussianLabels {
    classes: usize,
    functions: usize,
    /// Of one function: another class (or the first of two), its own class (the second of two).
    sides: [PseudoObservation; 2],
    /// Those in the functions' own units.
    own: [PseudoObservation; 2],
    offset: f64,
    scale: f64,
}

impl ClassGaussianLabels {
    /// In the functions' own units: offset 0, scale 1. Two classes are one function, but two with the moments of the positive variable, which an event does not have.
    ///
    /// # Errors
    /// [`DecisionError::Ask`] for fewer than two classes; [`DecisionError::Likelihood`] for a pseudo-count that is too small.
    pub fn new(classes: usize, gaussianised: &Gaussianised) -> Result<Self, DecisionError> {
        if classes < 2 {
            return Err(DecisionError::Ask(format!("{classes} classes are no choice; there must be two")));
        }
        let event = classes == 2 && gaussianised.matching() != Matching::MomentOriginal;
        let sides = match event {
            true => [gaussianised.event(false)?, gaussianised.event(true)?],
            false => [gaussianised.class(false), gaussianised.class(true)],
        };
        let functions = if event { 1 } else { classes };
        Ok(Self { classes, functions, sides, own: sides, offset: 0.0, scale: 1.0 })
    }

    /// The same in standard units.
    pub fn standardised(mut self) -> Self {
        let [other, own] = self.own.map(|o| o.target);
        let k = self.classes as f64;
        (self.offset, self.scale) = match self.functions {
            1 => (0.0, own.abs()),
            _ => ((own + (k - 1.0) * other) / k, (own - other).abs() * (k - 1.0).sqrt() / k),
        };
        self.sides = self.own.map(|o| PseudoObservation {
            target: (o.target - self.offset) / self.scale,
            variance: o.variance / (self.scale * self.scale),
        });
        self
    }

    /// Number of classes, K.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of latent functions: 1 of two classes (most often), K of more.
    pub fn functions(&self) -> usize {
        self.functions
    }

    /// What a label of class `class` says of a function.
    pub fn of(&self, class: usize, function: usize) -> PseudoObservation {
        let own = if self.functions == 1 { class == 1 } else { class == function };
        self.sides[usize::from(own)]
    }

    /// What a label of class `class` says of all of them.
    pub fn of_all(&self, class: usize) -> Vec<PseudoObservation> {
        (0..self.functions).map(|function| self.of(class, function)).collect()
    }

    /// The precision that a label which is not known yet is expected to have for each function: `p_k / v₁ + (1 - p_k) / v₀` under class probabilities p.
    pub fn expected_precisions(&self, probabilities: &[f64]) -> Vec<f64> {
        let [other, own] = self.sides.map(|side| side.precision());
        let of = |k: usize| if self.functions == 1 { own } else { other + probabilities[k] * (own - other) };
        (0..self.functions).map(of).collect()
    }

    /// A latent mean in the functions' own units.
    pub fn mean_back(&self, mean: f64) -> f64 {
        self.offset + self.scale * mean
    }

    /// A latent variance in squared units of the functions.
    pub fn variance_back(&self, variance: f64) -> f64 {
        self.scale * self.scale * variance
    }

    /// The likelihood of the labels themselves.
    ///
    /// # Errors
    /// [`DecisionError::Likelihood`] for more classes than there may be.
    pub fn likelihood(&self) -> Result<OutputLikelihood, LikelihoodError> {
        Ok(match self.functions {
            1 => OutputLikelihood::Bernoulli(Bernoulli::new(1, Link::Logit)?),
            _ => OutputLikelihood::Categorical(Categorical::new(self.classes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(classes: usize, matching: Matching) -> ClassGaussianLabels {
        ClassGaussianLabels::new(classes, &Gaussianised::new(matching, 0.1).unwrap()).unwrap()
    }

    #[test]
    fn units_make_targets_standard_whatever_the_classes() {
        for (classes, matching) in [
            (2, Matching::Variational),
            (2, Matching::MomentOriginal),
            (3, Matching::Laplace),
            (7, Matching::Moment),
        ] {
            let own = of(classes, matching);
            let standard = own.clone().standardised();
            // Each class once: the targets of all functions.
            let targets: Vec<f64> = (0..classes)
                .flat_map(|class| standard.of_all(class))
                .map(|observation| observation.target)
                .collect();
            let n = targets.len() as f64;
            let mean = targets.iter().sum::<f64>() / n;
            let square = targets.iter().map(|t| t * t).sum::<f64>() / n;
            assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12, "{classes}: {mean} {square}");
            let (before, after) = (own.of(1, 0), standard.of(1, 0));
            assert!((standard.mean_back(after.target) - before.target).abs() < 1e-10 * before.target.abs());
            assert!((standard.variance_back(after.variance) / before.variance - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn functions_and_values_are_those_of_the_table() {
        // Spec, sections 4.1 and 4.2, pseudo-count 0.1.
        let two = of(2, Matching::Variational);
        assert_eq!((two.functions(), two.classes()), (1, 2));
        assert!(
            (two.of(1, 0).target - 8.280619).abs() < 1e-6 && (two.of(0, 0).target + 8.280619).abs() < 1e-6
        );
        assert!((two.of(0, 0).variance - 32.592530).abs() < 1e-5);
        let original = of(2, Matching::MomentOriginal);
        assert_eq!(original.functions(), 2);
        assert!(
            (original.of(1, 1).target + 0.228003).abs() < 1e-6
                && (original.of(1, 0).target + 3.501533).abs() < 1e-6
        );
        // Variational precisions are the pseudo-counts: a + 1 of the label's class, a of the others.
        let three = of(3, Matching::Variational);
        let precisions = three.expected_precisions(&[0.5, 0.3, 0.2]);
        assert!(precisions.iter().zip([0.6, 0.4, 0.3]).all(|(a, b)| (a - b).abs() < 1e-12), "{precisions:?}");
        let gaussianised = Gaussianised::new(Matching::Laplace, 0.1).unwrap();
        assert!(ClassGaussianLabels::new(1, &gaussianised).is_err());
    }
}
