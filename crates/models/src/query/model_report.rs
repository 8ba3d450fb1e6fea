//! Files that a model is asked about, and what a report shows of it.

use crate::Effects;
use posterior_notes::fixes::LOSS_GAUSSIAN;
use posterior_report::{Curves, FeatureLengthscale, Hyperparameter, Plane, PosteriorPanel, Table};

/// What a report shows of a model beside its scores; what a family lacks is empty.
#[derive(Clone, Debug, Default)]
pub struct ModelReport {
    /// What it is, as the beginning of a title.
    pub title: &'static str,
    /// Its method, in short.
    pub method: &'static str,
    /// What was learned, in units that people use.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The lengthscale of each feature.
    pub lengthscales: Vec<FeatureLengthscale>,
    /// The posterior over a grid, for models of one numeric input.
    pub posterior: Option<PosteriorPanel>,
    /// Maps: of the prior's covariance for one numeric input, of predictions and covariances for two.
    pub maps: Vec<Plane>,
    /// Scores along hyperparameters.
    pub evidence: Vec<Curves>,
    /// What a kernel is made of, as tables.
    pub tables: Vec<Table>,
    /// Curves that columns go through.
    pub warps: Vec<Curves>,
    /// What columns do ([`Model::effects`](crate::Model::effects)); for who has rows to fill in.
    pub effects: Option<Effects>,
}

/// What can be done about errors that grow with the prediction, where the family has no way of its own.
pub(crate) fn network_remedy() -> String {
    format!(
        "a network with a second output for the logarithm of the noise (`{LOSS_GAUSSIAN:#}`) learns how far each place scatters"
    )
}
