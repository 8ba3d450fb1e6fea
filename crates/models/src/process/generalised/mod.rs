//! **Processes under any likelihood**: classes, events, counts, numbers with outliers.
//!
//! Three routes behind one flag. *Gaussianised*: every label becomes a number with noise of its own once, and regression does the rest, by any of its methods. *Variational*: the stochastic bound of inducing
//! points under the likelihood itself. *Laplace*: the curvature at the posterior's mode.
//!
//! Sources: spec `likelihood_approximations` (stand-ins); `stochastic_gaussian_processes`, section 11.2 (bound); Rasmussen and Williams (2006), chapter 3 (mode).
//!
//! | file | what |
//! |---|---|
//! | `target` | what a target is: as asked, or as it looks |
//! | `observed` | rows, ready |
//! | `plan`, `cost` | which inference and method, why, and what they take |
//! | `stand_in`, `gaussianised` | labels as numbers with noise, and regression on them |
//! | `learned` | their pseudo-count by a bound on the labels' evidence |
//! | `variational`, `laplace` | the others |
//! | `events` | Cox processes: a window, nodes of its quadrature, and what events that were held back say |
//! | `features` | features that are learned under the likelihood itself |
//! | `variation` | means and covariances that are free of each other, under the likelihood itself |
//! | `searching` | searches for hyperparameters, and what is to be told of them |
//! | `journal` | where an interrupted fit stands |
//! | `fit`, `inferred` | all of it, and what an inference leaves behind |
//! | `observations` | what will be observed, from latent functions |
//! | `check`, `crossed` | how good it is on rows that had no part in it |
//! | `header`, `file` | what stands in a file |
//! | `effective` | what columns do to classes, counts and numbers |
//! | `asked`, `describe` | what any model can be asked; in words |

mod asked;
mod check;
mod cost;
mod crossed;
mod describe;
mod effective;
mod events;
mod features;
mod file;
mod fit;
mod gaussianised;
mod header;
mod inferred;
mod journal;
mod laplace;
mod learned;
mod observations;
mod observed;
mod plan;
mod searching;
mod stand_in;
mod target;
mod variation;
mod variational;

pub use header::{
    BoundSummary, BoundedPseudoCount, FeatureSummary, GeneralisedHeader, GeneralisedSummary, LabelCheck,
    LabelScores, ModeSummary, PlainProcess, StandInSummary, TriedInference, TriedPseudoCount,
    VariationSummary,
};
pub(super) use journal::Journal;
pub use observed::{Observed, no_exposure};
pub use plan::InferencePlan;
pub(super) use stand_in::NO_NOISE;
pub use target::{ChosenLikelihood, Target, choose_likelihood};

use super::streaming::StreamedRows;
use crate::calibration::Calibration;
use crate::{Predictor, TrainingRows};
use posterior_gp::inducing::InducingPosterior;
use std::sync::Arc;

/// A fitted model.
#[derive(Clone, Debug)]
pub struct GeneralisedModel {
    header: GeneralisedHeader,
    predictor: Arc<dyn Predictor>,
    /// Not known once rows of a stream were learned.
    training: TrainingRows,
    /// What rows that it was judged on say of its predictions.
    calibration: Calibration,
}

impl GeneralisedModel {
    /// What it is and how it came about.
    pub fn header(&self) -> &GeneralisedHeader {
        &self.header
    }

    /// The same model after more rows, with as many posteriors of inducing points as it has. Which rows these were is not known, so that none can be told apart later.
    pub(super) fn go_on_with(&mut self, new: Vec<InducingPosterior>, streamed: StreamedRows) {
        let inducing = new.first().map_or(0, |p| p.inducing().nrows());
        let fit = &mut self.header.fit;
        if let Some(bound) = &mut fit.bound {
            bound.inducing = inducing;
        }
        let members = fit.stand_ins.iter_mut().flat_map(|s| &mut s.members);
        members.filter_map(|own| own.fit.scalable.as_mut()).for_each(|own| own.inducing = inducing);
        let Some(predictor) = self.predictor.with_inducing(new) else { return };
        self.predictor = predictor;
        self.header.streamed = Some(streamed);
        // Told of the model before these rows.
        (self.header.fit.recalibration, self.header.fit.intervals) = (None, None);
        self.calibration = Calibration::default();
        self.training = TrainingRows::default();
    }

    /// What predicts the latent functions.
    pub fn predictor(&self) -> &dyn Predictor {
        &*self.predictor
    }
}
