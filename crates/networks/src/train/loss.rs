//! Losses with their derivative in the outputs.

use super::error::TrainError;
use super::examples::Targets;
use super::gaussianised::{GaussianisedLoss, Pull};
use crate::array::{Array, Precision};
use serde::{Deserialize, Serialize};

/// What is minimised, as a mean over examples.
///
/// In files: a name, or for Gaussianised classes `{ gaussianised = { matching = "variational", pseudo_count = 0.1 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Mean squared error; the mean is over examples and outputs.
    Mse,
    /// Gaussian likelihood: negative log density, summed over outputs. A network with as many outputs as targets learns one noise variance for each target
    /// beside its weights; one with twice as many returns means, then log variances.
    Gaussian,
    /// Classes: negative log probability of the class under the softmax of the outputs, or of the second of two classes under the sigmoid of a single one.
    CrossEntropy,
    /// Classes as Gaussian numbers: `Σ_k (f_k - m_k)² / (2 v_k)` with targets and variances that stand for the label. Probabilities are those of
    /// [`Loss::CrossEntropy`].
    Gaussianised(GaussianisedLoss),
    /// Classes as plain numbers: `Σ_k (f_k - c_k)² / 2` with `c` 1 for the class and 0 for the others (with a single output -1 and 1 for the two classes, so that its
    /// sign says which). Outputs are no logits; probabilities are taken as those of [`Loss::CrossEntropy`] all the same, and never exceed `e / (e + K - 1)` of K classes.
    OneHot,
}

/// The names of losses, as a command line has them; [`Loss`] is a name with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LossName {
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
    /// Negative log probability of the class under the softmax of the outputs (the sigmoid of a single one).
    CrossEntropy,
    /// Classes as Gaussian numbers
    ///
    /// Weighted squares about targets that stand for the label (--matching, --pseudo-count). Probabilities are the softmax of the outputs, as after cross-entropy.
    Gaussianised,
    /// Classes as 0 and 1
    ///
    /// Squares about one-hot labels. Ranks classes, but their softmax is far too unsure.
    OneHot,
}

impl LossName {
    /// The loss of this name; `gaussianised` is how labels become numbers, where they do.
    pub fn loss(self, gaussianised: GaussianisedLoss) -> Loss {
        match self {
            Self::Mse => Loss::Mse,
            Self::Gaussian => Loss::Gaussian,
            Self::CrossEntropy => Loss::CrossEntropy,
            Self::Gaussianised => Loss::Gaussianised(gaussianised),
            Self::OneHot => Loss::OneHot,
        }
    }
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
    /// Classes: sum over the examples of the negative log probability of the label.
    pub(super) nll: f64,
}

impl Loss {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mse => "mse",
            Self::Gaussian => "gaussian",
            Self::CrossEntropy => "cross-entropy",
            Self::Gaussianised(_) => "gaussianised",
            Self::OneHot => "one-hot",
        }
    }

    /// Whether its targets are classes; they are numbers otherwise.
    pub fn takes_classes(self) -> bool {
        matches!(self, Self::CrossEntropy | Self::Gaussianised(_) | Self::OneHot)
    }

    /// What the outputs of a network that was trained with it mean, where nobody would guess it.
    pub fn meaning(self, outputs: usize) -> Option<String> {
        let link = if outputs == 1 { "the sigmoid of the output" } else { "the softmax of the outputs" };
        match self {
            Self::Gaussianised(own) => Some(format!(
                "trained on classes as Gaussian numbers ({} matching, pseudo-count {}): probabilities are {link}",
                own.matching().name(),
                own.pseudo_count()
            )),
            Self::OneHot => Some(format!(
                "trained by least squares on one-hot labels: outputs are no logits; {link} ranks classes and is far too unsure of them"
            )),
            _ => None,
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
            (loss, Targets::Classes(classes)) if loss.takes_classes() => {
                // One output tells two classes apart.
                let known = if count == 1 { 2 } else { count };
                if let Some((example, class)) =
                    classes.iter().enumerate().find(|&(_, &c)| c as usize >= known)
                {
                    return error(format!(
                        "example {example} has class {class}, but the network has {count} outputs (classes 0 to {})",
                        known.saturating_sub(1)
                    ));
                }
                match loss {
                    Self::Gaussianised(own) => own.problem(count).map_or(Ok(0), error),
                    _ => Ok(0),
                }
            }
            (Self::Mse, Targets::Values(values)) if values.row_len() == count => Ok(0),
            (Self::Gaussian, Targets::Values(values)) if values.row_len() == count => Ok(count),
            (Self::Gaussian, Targets::Values(values)) if 2 * values.row_len() == count => Ok(0),
            (loss, Targets::Values(_)) if loss.takes_classes() => {
                error("needs classes as targets: use mse or gaussian for numbers".into())
            }
            (_, Targets::Classes(_)) => {
                error("needs numbers as targets: use cross-entropy or gaussianised for classes".into())
            }
            (_, Targets::Values(values)) => {
                error(format!("the network has {count} outputs and there are {} targets", values.row_len()))
            }
        }
    }

    /// Quadratics of an output whose class was not observed, and was; none for the losses that have no such form.
    fn pulls(self, outputs: usize) -> Option<[Pull; 2]> {
        match self {
            Self::Gaussianised(own) => own.pulls(outputs),
            Self::OneHot if outputs == 1 => Some([Pull::new(-1.0, 1.0), Pull::new(1.0, 1.0)]),
            Self::OneHot => Some([Pull::new(0.0, 1.0), Pull::new(1.0, 1.0)]),
            _ => None,
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
        let (mut sum, mut correct, mut nll) = (0.0, 0, 0.0);
        let each = 1.0 / rows.max(1) as f64;
        let pulls = self.pulls(count);
        for n in 0..rows {
            let output = outputs.row(n);
            let gradient = &mut cotangent.values_mut()[n * count..(n + 1) * count];
            match targets {
                Targets::Classes(classes) => {
                    let class = classes[n] as usize;
                    let label = Label::new(output, class);
                    nll += label.nll;
                    correct += usize::from(label.correct);
                    match pulls {
                        None => sum += label.nll,
                        Some(pulls) => {
                            for (k, v) in output.iter().enumerate() {
                                sum += pulls[label.observed(k)].at(v.to_f64()).0;
                            }
                        }
                    }
                    for (k, (g, v)) in gradient.iter_mut().zip(output).enumerate() {
                        let observed = label.observed(k);
                        let slope = match pulls {
                            None => label.probability(v.to_f64()) - observed as f64,
                            Some(pulls) => pulls[observed].at(v.to_f64()).1,
                        };
                        *g = T::from_f64(slope * each);
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
        Evaluated { sum, cotangent, noise_gradient, correct, nll }
    }
}

/// What outputs say about the class of an example: softmax of several, sigmoid of one.
struct Label {
    class: usize,
    single: bool,
    /// `-log p(class)`.
    nll: f64,
    /// Whether no other class is more probable.
    correct: bool,
    /// `log Σ exp f`, of a single output with a second one at 0.
    log_total: f64,
}

impl Label {
    fn new<T: Precision>(output: &[T], class: usize) -> Self {
        let single = output.len() == 1;
        let largest =
            output.iter().fold(if single { 0.0 } else { f64::NEG_INFINITY }, |m, v| m.max(v.to_f64()));
        let mut total: f64 = output.iter().map(|v| (v.to_f64() - largest).exp()).sum();
        if single {
            total += (-largest).exp();
        }
        let log_total = total.ln() + largest;
        let own = if !single {
            output[class].to_f64()
        } else if class == 1 {
            output[0].to_f64()
        } else {
            0.0
        };
        let other = if single && class == 1 { 0.0 } else { f64::NEG_INFINITY };
        let correct = own >= other && output.iter().all(|v| v.to_f64() <= own);
        Self { class, single, nll: log_total - own, correct, log_total }
    }

    /// Whether the class of this output was observed, 0 or 1.
    fn observed(&self, output: usize) -> usize {
        if self.single { self.class } else { usize::from(output == self.class) }
    }

    /// The probability of the class of an output.
    fn probability(&self, output: f64) -> f64 {
        (output - self.log_total).exp()
    }
}
