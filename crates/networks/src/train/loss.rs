//! Losses with their derivative in the outputs.

use super::error::TrainError;
use super::examples::Targets;
use crate::array::{Array, Precision};
use serde::{Deserialize, Serialize};

/// What is minimised, as a mean over examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Loss {
    /// Mean squared error
    ///
    /// The mean is over examples and outputs.
    Mse,
    /// Gaussian likelihood with learned noise (or learned by a second output)
    ///
    /// Negative log density, summed over outputs. A network with as many outputs as targets learns one noise variance for each target
    /// beside its weights; one with twice as many returns means, then log variances.
    Gaussian,
    /// Classes
    ///
    /// Negative log probability of the class under the softmax of the outputs.
    CrossEntropy,
}

/// A loss with what follows from it.
pub(super) struct Evaluated<T> {
    /// Sum over the examples.
    pub(super) sum: f64,
    /// Derivative of the mean in the outputs.
    pub(super) cotangent: Array<T>,
    /// Derivative of the mean in the log noise variances.
    pub(super) noise_gradient: Vec<T>,
    /// Examples whose largest output is their class.
    pub(super) correct: usize,
}

impl Loss {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mse => "mse",
            Self::Gaussian => "gaussian",
            Self::CrossEntropy => "cross-entropy",
        }
    }

    /// Whether outputs and targets fit; returns how many noise variances are learned beside the weights.
    pub(super) fn check<T: Precision>(
        self,
        outputs: &[usize],
        targets: &Targets<T>,
    ) -> Result<usize, TrainError> {
        let error = |problem: String| Err(TrainError::Loss { loss: self.name(), problem });
        let count: usize = outputs.iter().product();
        match (self, targets) {
            (Self::CrossEntropy, Targets::Classes(classes)) => {
                match classes.iter().enumerate().find(|&(_, &c)| c as usize >= count) {
                    Some((example, class)) => error(format!(
                        "example {example} has class {class}, but the network has {count} outputs (classes 0 to {})",
                        count.saturating_sub(1)
                    )),
                    None => Ok(0),
                }
            }
            (Self::Mse, Targets::Values(values)) if values.row_len() == count => Ok(0),
            (Self::Gaussian, Targets::Values(values)) if values.row_len() == count => Ok(count),
            (Self::Gaussian, Targets::Values(values)) if 2 * values.row_len() == count => Ok(0),
            (Self::CrossEntropy, _) => {
                error("needs classes as targets: use mse or gaussian for numbers".into())
            }
            (_, Targets::Classes(_)) => {
                error("needs numbers as targets: use cross-entropy for classes".into())
            }
            (_, Targets::Values(values)) => {
                error(format!("the network has {count} outputs and there are {} targets", values.row_len()))
            }
        }
    }

    /// Sum of the loss and its derivatives; shapes were checked before.
    pub(super) fn evaluate<T: Precision>(
        self,
        outputs: &Array<T>,
        targets: &Targets<T>,
        log_variance: &[T],
    ) -> Evaluated<T> {
        let (rows, count) = (outputs.rows(), outputs.row_len());
        let mut cotangent = Array::zeros(outputs.shape().to_vec());
        let mut noise_gradient = vec![T::ZERO; log_variance.len()];
        let (mut sum, mut correct) = (0.0, 0);
        let each = 1.0 / rows.max(1) as f64;
        for n in 0..rows {
            let output = outputs.row(n);
            let gradient = &mut cotangent.values_mut()[n * count..(n + 1) * count];
            match targets {
                Targets::Classes(classes) => {
                    let class = classes[n] as usize;
                    let largest = output.iter().fold(f64::NEG_INFINITY, |m, v| m.max(v.to_f64()));
                    let total: f64 = output.iter().map(|v| (v.to_f64() - largest).exp()).sum();
                    let log_total = total.ln() + largest;
                    sum += log_total - output[class].to_f64();
                    correct += usize::from(output.iter().all(|v| *v <= output[class]));
                    for (c, (g, v)) in gradient.iter_mut().zip(output).enumerate() {
                        let p = (v.to_f64() - log_total).exp();
                        *g = T::from_f64((p - f64::from(u8::from(c == class))) * each);
                    }
                }
                Targets::Values(values) if self == Self::Mse => {
                    let part = each / count as f64;
                    for ((g, &v), &t) in gradient.iter_mut().zip(output).zip(values.row(n)) {
                        let error = (v - t).to_f64();
                        sum += error * error / count as f64;
                        *g = T::from_f64(2.0 * error * part);
                    }
                }
                Targets::Values(values) => {
                    let targets = values.row(n);
                    let own = log_variance.is_empty();
                    for (d, &t) in targets.iter().enumerate() {
                        let log = if own { output[targets.len() + d] } else { log_variance[d] };
                        let error = (output[d] - t).to_f64();
                        let precision = (-log.to_f64()).exp();
                        sum += 0.5
                            * (log.to_f64() + error * error * precision + (2.0 * std::f64::consts::PI).ln());
                        gradient[d] = T::from_f64(error * precision * each);
                        let slope = T::from_f64(0.5 * (1.0 - error * error * precision) * each);
                        if own { gradient[targets.len() + d] = slope } else { noise_gradient[d] += slope }
                    }
                }
            }
        }
        Evaluated { sum, cotangent, noise_gradient, correct }
    }
}
