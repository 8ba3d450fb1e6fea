//! A network with its posterior.

use super::LaplaceHeader;
use crate::calibration::Calibration;
use crate::rows::TrainingRows;
use posterior_laplace::{Laplace, UnseenScores};
use posterior_networks::{Network, Precision};

/// A network and the posterior over its weights, in one precision.
pub struct Fitted<T> {
    /// The network.
    pub network: Network<T>,
    /// The posterior.
    pub laplace: Laplace<T>,
}

/// In either precision.
pub enum Numbers {
    /// Single.
    Single(Fitted<f32>),
    /// Double.
    Double(Fitted<f64>),
}

/// Runs the same expression in whichever precision.
macro_rules! in_precision {
    ($numbers:expr, $fitted:ident => $result:expr) => {
        match $numbers {
            $crate::laplace::Numbers::Single($fitted) => $result,
            $crate::laplace::Numbers::Double($fitted) => $result,
        }
    };
}
pub(super) use in_precision;

/// A precision that model files know.
pub trait SavedPrecision: Precision {
    /// A fit in this precision.
    fn either(fitted: Fitted<Self>) -> Numbers;
    /// The fit, where it is in this precision.
    fn fitted(numbers: &Numbers) -> Option<&Fitted<Self>>;
}

macro_rules! saved {
    ($type:ident, $variant:ident) => {
        impl SavedPrecision for $type {
            fn either(fitted: Fitted<Self>) -> Numbers {
                Numbers::$variant(fitted)
            }
            fn fitted(numbers: &Numbers) -> Option<&Fitted<Self>> {
                if let Numbers::$variant(fitted) = numbers { Some(fitted) } else { None }
            }
        }
    };
}

saved!(f32, Single);
saved!(f64, Double);

/// A trained network with error bars, and all that is needed to use it.
pub struct LaplaceModel {
    pub(super) header: LaplaceHeader,
    pub(super) numbers: Numbers,
    /// Not known of fits in memory.
    pub(super) training: TrainingRows,
    /// What is kept of the rows that recalibrate it.
    pub(super) calibration: Calibration,
}

impl LaplaceModel {
    /// What it is and how it came about.
    pub fn header(&self) -> &LaplaceHeader {
        &self.header
    }

    /// Network and posterior.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Network and posterior, where they are in the precision asked for.
    pub fn fitted<T: SavedPrecision>(&self) -> Option<&Fitted<T>> {
        T::fitted(&self.numbers)
    }

    /// `f32` or `f64`.
    pub fn precision(&self) -> &'static str {
        if matches!(self.numbers, Numbers::Single(_)) { "f32" } else { "f64" }
    }

    /// Prior precisions with the names of their groups.
    pub fn precisions(&self) -> (&[String], &[f64]) {
        in_precision!(&self.numbers, fitted => {
            let prior = fitted.laplace.prior();
            (prior.names(), prior.precisions())
        })
    }

    /// The structure of its network.
    pub fn graph(&self) -> &posterior_networks::Graph {
        in_precision!(&self.numbers, fitted => fitted.network.graph())
    }

    /// The likelihood, with learned noise.
    pub fn likelihood(&self) -> &posterior_likelihoods::OutputLikelihood {
        in_precision!(&self.numbers, fitted => fitted.laplace.likelihood())
    }

    /// What negative log densities in the network's units lack of those in the target's.
    pub fn unit_shift(&self) -> f64 {
        super::predict::jacobian(self.likelihood(), self.header.data.target_scale().1)
    }

    /// Scores on rows that the network had not seen at the fit, if there were some, in the target's units.
    pub fn unseen(&self) -> Option<UnseenScores> {
        let (scores, shift) = (self.header.summary.unseen?, self.unit_shift());
        Some(UnseenScores { nll: scores.nll + shift, plain_nll: scores.plain_nll + shift, ..scores })
    }

    /// Number of weights with a posterior.
    pub fn weights(&self) -> usize {
        in_precision!(&self.numbers, fitted => fitted.laplace.selection().len())
    }
}
