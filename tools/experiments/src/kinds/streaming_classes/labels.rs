//! Classes as numbers: what rows of labels are as observations of one function for each class.

use faer::Mat;
use posterior_likelihoods::gaussianised::Gaussianised;
use posterior_linear::LinearError;

/// Where targets and precisions of labels come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LabelTargets {
    /// Gaussian label approximation of the softmax: two targets with noises of their own.
    Gaussianised(Gaussianised),
    /// Regression on indicators: 1 for the row's class and 0 for others, with one noise variance for all. Probabilities are the softmax of what is regressed, which is never sure (0.232 at most for ten classes).
    Indicators {
        /// Variance of the noise.
        variance: f64,
    },
}

impl LabelTargets {
    /// Targets and precisions (rows x K each) of labels from 0 to K - 1.
    ///
    /// # Errors
    /// [`LinearError::Empty`] for fewer than two classes, [`LinearError::Option`] for a label that is no class or a variance that is not positive.
    pub(super) fn observations(
        &self,
        labels: &[usize],
        classes: usize,
    ) -> Result<(Mat<f64>, Mat<f64>), LinearError> {
        check_labels(labels, classes)?;
        let sides = match *self {
            Self::Gaussianised(gaussian_labels) => [false, true].map(|own| {
                let observation = gaussian_labels.class(own);
                (observation.target, observation.precision())
            }),
            Self::Indicators { variance } if variance > 0.0 && variance.is_finite() => {
                [(0.0, 1.0 / variance), (1.0, 1.0 / variance)]
            }
            Self::Indicators { variance: value } => {
                let expected = "the variance of noise is positive and finite";
                return Err(LinearError::Option { name: "variance", value, expected });
            }
        };
        let side = |i: usize, c: usize| sides[usize::from(labels[i] == c)];
        let rows = labels.len();
        Ok((
            Mat::from_fn(rows, classes, |i, c| side(i, c).0),
            Mat::from_fn(rows, classes, |i, c| side(i, c).1),
        ))
    }
}

/// Whether labels name classes.
pub(super) fn check_labels(labels: &[usize], classes: usize) -> Result<(), LinearError> {
    if classes < 2 {
        return Err(LinearError::Empty { what: "two classes to tell apart" });
    }
    match labels.iter().find(|label| **label >= classes) {
        Some(label) => Err(LinearError::Option {
            name: "label",
            value: *label as f64,
            expected: "labels count the classes from 0, and are below their number",
        }),
        None => Ok(()),
    }
}
