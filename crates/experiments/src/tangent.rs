//! The tangent of a trained network on a problem in one dimension, as a linear model with explicit features: small enough here for every quantity to be exact.

use super::ExperimentError;
use super::context::Context;
use super::toy::{Toy, ToySettings, column};
use super::training::TrainingSettings;
use faer::{Mat, MatRef};
use posterior_linear::hyperparameters::{Evidence, GaussianModel, LearnOptions, Learned, MStep, learn};
use posterior_linear::{ExactPosterior, Noise, Prior, exact::ExactOptions};
use posterior_networks::train::Loss;
use posterior_networks::{Network, Outputs, Selection};
use posterior_report::SummaryRow;
use toml::Table;

/// Bytes that a Jacobian may take.
const MEMORY: u64 = 2 << 30;

/// A trained network on its problem.
pub(crate) struct TrainedToy {
    /// The problem.
    pub(crate) toy: Toy,
    /// The network.
    pub(crate) network: Network<f64>,
    /// All its weights.
    pub(crate) selection: Selection,
    /// For the report.
    pub(crate) facts: Vec<SummaryRow>,
}

/// `h(w, x) = f0(x) + J(x) w` at the training inputs, with features for the grid.
pub(crate) struct Tangent {
    /// Rows of the Jacobian at the training inputs, n x d.
    pub(crate) features: Mat<f64>,
    /// The same on the grid.
    pub(crate) grid: Mat<f64>,
    /// `y - f0` (n): what the linear model is asked to fit.
    pub(crate) targets: Vec<f64>,
    /// The network on the grid.
    pub(crate) network_mean: Vec<f64>,
    /// The weights at which the network was linearised.
    pub(crate) trained: Vec<f64>,
    /// `max |f0| / max |g|`.
    pub(crate) offset: f64,
    /// The noise.
    pub(crate) noise: Noise,
}

impl TrainedToy {
    pub(crate) fn new(
        data: &ToySettings,
        network: &Table,
        training: &TrainingSettings,
        context: &mut Context<'_>,
    ) -> Result<Self, ExperimentError> {
        let toy = data.make(context.seed)?;
        let (network, facts) = training.train(network, &toy.examples(), Loss::Mse, context)?;
        let selection = Selection::all(network.graph());
        Ok(Self { toy, network, selection, facts })
    }

    /// The tangent of a network with the weights of `network` (the trained one, or one that was rescaled).
    pub(crate) fn tangent(&self, network: &Network<f64>) -> Result<Tangent, ExperimentError> {
        let rows = |values: &[f64]| -> Result<Mat<f64>, ExperimentError> {
            let rows = network.jacobian(&column(values), &self.selection, &Outputs::All, MEMORY)?;
            let width = self.selection.len();
            Ok(Mat::from_fn(rows.rows(), width, |i, j| rows.values()[i * width + j]))
        };
        let trained = self.selection.flatten(network.parameters());
        let features = rows(&self.toy.x)?;
        let outputs = network.forward(&column(&self.toy.x))?.into_values();
        let through = product(features.as_ref(), &trained);
        let f0: Vec<f64> = outputs.iter().zip(&through).map(|(g, t)| g - t).collect();
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        Ok(Tangent {
            targets: self.toy.y.iter().zip(&f0).map(|(y, f)| y - f).collect(),
            offset: largest(&f0) / largest(&outputs),
            grid: rows(&self.toy.grid)?,
            network_mean: network.forward(&column(&self.toy.grid))?.into_values(),
            noise: Noise::uniform(1.0 / (self.toy.noise * self.toy.noise), 1)?,
            trained,
            features,
        })
    }
}

/// `A v`.
pub(crate) fn product(a: MatRef<'_, f64>, v: &[f64]) -> Vec<f64> {
    (a * faer::ColRef::from_slice(v)).iter().copied().collect()
}

impl Tangent {
    /// Number of weights.
    pub(crate) fn dimension(&self) -> usize {
        self.features.ncols()
    }

    /// The conjugate model of the data.
    pub(crate) fn model(&self) -> Result<GaussianModel<'_>, ExperimentError> {
        Ok(GaussianModel::new(self.features.as_ref(), &self.targets, None, &self.noise)?)
    }

    /// Prior precisions by the evidence, charged with the mode's norm or another vector's.
    pub(crate) fn learn(
        &self,
        start: &Prior,
        evidence: &Evidence,
        m_step: MStep,
        steps: usize,
    ) -> Result<Learned, ExperimentError> {
        let options = LearnOptions { m_step, steps, tolerance: 1e-6, ..LearnOptions::default() };
        Ok(learn(&mut self.model()?, evidence, start, &options)?)
    }

    /// The posterior under given precisions of the weights.
    pub(crate) fn posterior(&self, precisions: &[f64]) -> Result<ExactPosterior, ExperimentError> {
        let (features, targets) = (self.features.as_ref(), &self.targets);
        Ok(ExactPosterior::new(features, targets, &self.noise, precisions, ExactOptions::default())?)
    }

    /// Standard deviations of the function on the grid under given precisions of the weights.
    pub(crate) fn deviations(&self, precisions: &[f64]) -> Result<Vec<f64>, ExperimentError> {
        let predicted = self.posterior(precisions)?.predict(self.grid.as_ref())?;
        Ok(predicted.variance().into_iter().map(|v| v.max(0.0).sqrt()).collect())
    }

    /// `s_i = M_ii^(-1/2)` with the whole curvature `M`, zero for weights without influence: the diagonal g-prior as a scaling of features.
    pub(crate) fn scales(&self) -> Vec<f64> {
        let indices: Vec<usize> = (0..self.features.nrows()).collect();
        let whitened = self.noise.whiten(&indices, self.features.as_ref());
        let scale = |j: usize| match whitened.col(j).squared_norm_l2() {
            0.0 => 0.0,
            m => m.sqrt().recip(),
        };
        (0..self.dimension()).map(scale).collect()
    }

    /// The same model with its features multiplied column by column.
    pub(crate) fn scaled(&self, scales: &[f64]) -> Self {
        let scale = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * scales[j]);
        let undo = |(v, s): (&f64, &f64)| if *s == 0.0 { 0.0 } else { v / s };
        Self {
            features: scale(&self.features),
            grid: scale(&self.grid),
            targets: self.targets.clone(),
            network_mean: self.network_mean.clone(),
            trained: self.trained.iter().zip(scales).map(undo).collect(),
            offset: self.offset,
            noise: self.noise.clone(),
        }
    }
}
