//! A network with its posterior, or several of them.

use super::network_inputs::NetworkInputs;
use super::network_output::NetworkOutput;
use super::{Ensemble, Model, NetworkSource, Source};
use crate::calibration::{Calibration, NetworkRecalibration};
use crate::record::NetworkHeader;
use crate::{Predictor, TrainingRows};
use posterior_laplace::UnseenScores;
use posterior_likelihoods::{Integration, OutputLikelihood};
use posterior_networks::Graph;
use std::sync::Arc;

/// A trained network with error bars, or an ensemble of them, as the parts of its [`Model`].
#[derive(Clone, Copy, Debug)]
pub struct Networks<'a> {
    pub(crate) inputs: &'a NetworkInputs,
    /// A network with its posterior; of an ensemble, all of them.
    pub(crate) predictor: &'a Arc<dyn Predictor>,
    pub(crate) output: &'a NetworkOutput,
    pub(crate) calibration: &'a Calibration,
    pub(crate) training: &'a TrainingRows,
    pub(crate) record: &'a NetworkHeader,
    pub(crate) ensemble: Option<&'a Ensemble>,
}

impl Model {
    /// One network, as a fit or a file has it.
    pub(crate) fn of_network(
        record: NetworkHeader,
        predictor: Arc<dyn Predictor>,
        training: TrainingRows,
        calibration: Calibration,
    ) -> Self {
        let shapes = |graph: &Graph| (graph.input_shape().to_vec(), graph.output_shape().to_vec());
        let network = predictor.network();
        let (input, outputs) = network.map(|own| shapes(own.graph())).unwrap_or_default();
        let (likelihood, integration) = match network {
            Some(own) => own.observed(),
            None => (record.base_likelihood.clone(), Integration::default()),
        };
        let inputs = NetworkInputs::new(&record, input);
        let likelihoods = (likelihood, record.plain_likelihood.clone());
        let output = NetworkOutput::new(&record.data, likelihoods, integration, outputs);
        let source = Source::Network(Box::new(NetworkSource { inputs, output, record, ensemble: None }));
        Self { source, predictor, calibration, training }
    }
}

impl<'a> Networks<'a> {
    /// What it is and how it came about; of an ensemble that of its first network.
    pub fn header(&self) -> &'a NetworkHeader {
        self.record
    }

    /// Its networks, in order: itself, where it is no ensemble.
    pub fn members(&self) -> Vec<Self> {
        self.ensemble
            .map_or_else(|| vec![*self], |own| own.members.iter().filter_map(Model::networks).collect())
    }

    /// Names of the networks of an ensemble.
    pub fn names(&self) -> &'a [String] {
        self.ensemble.map_or(&[][..], |own| &own.names[..])
    }

    /// Whether it is several networks.
    pub fn is_ensemble(&self) -> bool {
        self.ensemble.is_some()
    }

    /// Whether it is an ensemble without the error bars of its members.
    pub fn is_plain(&self) -> bool {
        self.ensemble.is_some_and(|own| own.plain)
    }

    /// The network whose names and units the answers have.
    pub(crate) fn first(&self) -> Self {
        let first = self.ensemble.and_then(|own| own.members.first());
        first.and_then(Model::networks).unwrap_or(*self)
    }

    /// How predictions were recalibrated; None where they are as the networks have them.
    pub fn recalibration(&self) -> Option<&'a NetworkRecalibration> {
        self.record.recalibration.as_ref()
    }

    /// `f32` or `f64`.
    pub fn precision(&self) -> &'static str {
        self.predictor.network().map_or("", |own| own.precision())
    }

    /// Prior precisions with the names of their groups.
    pub fn precisions(&self) -> (&'a [String], &'a [f64]) {
        self.predictor.network().map_or((&[][..], &[][..]), |own| own.precisions())
    }

    /// The structure of its network.
    pub fn graph(&self) -> Option<&'a Graph> {
        self.predictor.network().map(|own| own.graph())
    }

    /// The likelihood, with learned noise.
    pub fn likelihood(&self) -> &'a OutputLikelihood {
        &self.output.likelihood
    }

    /// What negative log densities in the network's units lack of those in the target's.
    pub fn unit_shift(&self) -> f64 {
        self.output.jacobian()
    }

    /// Scores on rows that the network had not seen at the fit, if there were some, in the target's units.
    pub fn unseen(&self) -> Option<UnseenScores> {
        let (scores, shift) = (self.record.summary.unseen?, self.unit_shift());
        Some(UnseenScores { nll: scores.nll + shift, plain_nll: scores.plain_nll + shift, ..scores })
    }

    /// Number of weights with a posterior.
    pub fn weights(&self) -> usize {
        self.predictor.network().map_or(0, |own| own.weights())
    }
}
