//! The tangent of a trained network on a problem in one dimension, as a linear model with explicit features: small enough here for every quantity to be exact.

use super::context::Context;
use super::error::Result;
use super::toy::{Toy, ToySettings, column};
use super::training::TrainingSettings;
use faer::{Mat, MatRef, Scale};
use posterior_linear::evidence::{DualModel, SpectralEvidence};
use posterior_linear::structure::{Block, BlockMatrix, Conditioned, Dense, LowRank, Structure};
use posterior_linear::{LinearError, Prior};
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
    /// The variance of the noise.
    pub(crate) noise_variance: f64,
}

impl TrainedToy {
    pub(crate) fn new(
        data: &ToySettings,
        network: &Table,
        training: &TrainingSettings,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let toy = data.make(context.seed)?;
        let (network, facts) = training.train(network, &toy.examples(), Loss::Mse, context)?;
        let selection = Selection::all(network.graph());
        Ok(Self { toy, network, selection, facts })
    }

    /// The tangent of a network with the weights of `network` (the trained one, or one that was rescaled).
    pub(crate) fn tangent(&self, network: &Network<f64>) -> Result<Tangent> {
        let rows = |values: &[f64]| -> Result<Mat<f64>> {
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
            noise_variance: self.toy.noise * self.toy.noise,
            trained,
            features,
        })
    }
}

/// `A v`.
pub(crate) fn product(a: MatRef<'_, f64>, v: &[f64]) -> Vec<f64> {
    (a * faer::ColRef::from_slice(v)).iter().copied().collect()
}

/// The curvature `Phi' Phi / s` of features (n x d) under noise of variance `s`: one block, of low rank where there are fewer rows than weights.
pub(crate) fn curvature(features: MatRef<'_, f64>, noise_variance: f64) -> Result<Structure, LinearError> {
    let dimension = features.ncols();
    let root = Scale(noise_variance.sqrt().recip()) * features;
    let matrix = if features.nrows() < dimension {
        BlockMatrix::LowRank(LowRank::new(root.transpose().to_owned(), vec![0.0; dimension]))
    } else {
        BlockMatrix::Dense(Dense::new(root.transpose() * &root))
    };
    Ok(Structure::new(vec![Block { name: "features".into(), range: 0..dimension, matrix }])?)
}

/// Posterior variances of the functions with given features (m x d).
pub(crate) fn variances(posterior: &Conditioned, features: MatRef<'_, f64>) -> Vec<f64> {
    let mut sums = vec![0.0; features.nrows()];
    for (range, block) in posterior.blocks() {
        let white = block.whiten(features.subcols(range.start, range.len()));
        sums.iter_mut().enumerate().for_each(|(i, s)| *s += white.row(i).squared_norm_l2());
    }
    sums
}

impl Tangent {
    /// Number of weights.
    pub(crate) fn dimension(&self) -> usize {
        self.features.ncols()
    }

    /// The curvature of the data, noise included.
    pub(crate) fn curvature(&self) -> Result<Structure> {
        Ok(curvature(self.features.as_ref(), self.noise_variance)?)
    }

    /// The optimum of the weights under a conditioned curvature.
    pub(crate) fn mode(&self, posterior: &Conditioned) -> Vec<f64> {
        let white: Vec<f64> = self.targets.iter().map(|t| t / self.noise_variance).collect();
        posterior.solve(&product(self.features.transpose(), &white))
    }

    /// Kernel and targets, both in units of the noise, by the eigenvectors of the kernel.
    pub(crate) fn spectrum(&self) -> Result<SpectralEvidence> {
        let kernel = &self.features * self.features.transpose() * Scale(self.noise_variance.recip());
        let targets: Vec<f64> = self.targets.iter().map(|t| t / self.noise_variance.sqrt()).collect();
        let model = DualModel::new(kernel.as_ref(), &targets, "the tangent kernel");
        Ok(model.map_err(LinearError::from)?.evidence())
    }

    /// Standard deviations of the function on the grid under a prior.
    pub(crate) fn deviations(&self, curvature: &Structure, prior: &Prior) -> Result<Vec<f64>> {
        let posterior = curvature.condition(prior, 1.0).map_err(LinearError::from)?;
        Ok(variances(&posterior, self.grid.as_ref()).into_iter().map(f64::sqrt).collect())
    }
}
