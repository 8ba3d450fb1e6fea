//! **A fitted model**, whatever it was learned from. What it answers is in `query`.
//!
//! | file | what |
//! |---|---|
//! | `network_inputs` | inputs (and truths) to ask the model about |
//! | `networks` | a network with its posterior, or several of them |
//! | `network_output` | from latent values to predictions; mixtures |
//! | `process` | a process on a table, as the parts of its `Model` |

mod network_inputs;
mod network_output;
mod networks;
mod process;

pub(crate) use network_output::NetworkOutput;
pub use networks::Networks;
pub use process::Process;

use crate::calibration::Calibration;
use crate::record::NetworkHeader;
use crate::{Predictor, TableSource, TrainingRows};
use network_inputs::NetworkInputs;
use std::sync::Arc;

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it was learned from, and what is known of that alone.
    pub(crate) source: Source,
    /// What predicts the latent functions, in standard units.
    pub(crate) predictor: Arc<dyn Predictor>,
    /// What rows that it was judged on say of its predictions.
    pub(crate) calibration: Calibration,
    /// The rows learned from; not known once rows of a stream were learned, of networks fitted in memory, nor of ensembles, whose members have them.
    pub(crate) training: TrainingRows,
}

/// Inputs, what is observed of the functions, and the record of the fit, which belong together: a table has no record of a network.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The rows of a table.
    Table(Box<TableSource>),
    /// A trained network and its examples.
    Network(Box<NetworkSource>),
}

/// What is known of networks.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSource {
    /// What a network reads.
    pub(crate) inputs: NetworkInputs,
    /// What is observed of its outputs.
    pub(crate) output: NetworkOutput,
    /// What it is and how it came about; of an ensemble its first member, with the ensemble's recalibration.
    pub(crate) record: NetworkHeader,
    /// The members of an ensemble.
    pub(crate) ensemble: Option<Ensemble>,
}

/// The networks of an ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// Each as a model of its own.
    pub(crate) members: Vec<Model>,
    /// Whether their error bars are left out.
    pub(crate) plain: bool,
}

impl Model {
    pub(crate) fn of_table(
        source: TableSource,
        predictor: Arc<dyn Predictor>,
        calibration: Calibration,
        training: TrainingRows,
    ) -> Self {
        Self { source: Source::Table(Box::new(source)), predictor, calibration, training }
    }

    /// What predicts its functions, without what is known of columns and units.
    pub fn into_predictor(self) -> Arc<dyn Predictor> {
        self.predictor
    }
}
