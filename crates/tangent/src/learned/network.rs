//! A network's outputs as features.

use super::embedding::{self, NetworkEmbedding};
use faer::{Mat, MatRef};
use posterior_linear::LinearError;
use posterior_linear::low_rank::{FeatureValues, FeaturesAt, LearnedFeatures};
use posterior_networks::{Network, Precision};

/// Outputs of a network as features, in the network's precision; everything beyond is in doubles. Rows are the network's inputs in their order, whatever their shape.
#[derive(Clone, Debug)]
pub struct NetworkFeatures<T: Precision> {
    embedding: NetworkEmbedding<T>,
}

impl<T: Precision> NetworkFeatures<T> {
    /// All trainable weights are learned.
    pub fn new(network: Network<T>) -> Self {
        Self { embedding: NetworkEmbedding::new(network) }
    }

    /// The network stays as it is: Bayesian regression on its outputs, which are what a last layer read where that was taken off.
    pub fn frozen(network: Network<T>) -> Self {
        Self { embedding: NetworkEmbedding::frozen(network) }
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        self.embedding.network()
    }

    fn of(features: Mat<f64>) -> FeatureValues {
        let variances = (0..features.ncols()).map(|i| features.col(i).squared_norm_l2()).collect();
        FeatureValues { features, variances }
    }
}

impl<T: Precision> LearnedFeatures for NetworkFeatures<T> {
    fn rank(&self) -> usize {
        self.embedding.outputs()
    }

    fn inputs(&self) -> usize {
        self.embedding.row_inputs()
    }

    fn unconstrained(&self) -> Vec<f64> {
        self.embedding.weights()
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) -> Result<(), LinearError> {
        self.embedding.set_weights(numbers);
        Ok(())
    }

    fn decays(&self) -> Vec<bool> {
        vec![true; self.embedding.learned()]
    }

    fn rows_at_once(&self) -> usize {
        self.embedding.some_rows()
    }

    fn bytes_of_row(&self) -> usize {
        self.embedding.activation_bytes() + 8 * self.rank()
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError> {
        Ok(Self::of(self.embedding.columns(x)?))
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError> {
        let traced = self.embedding.trace(x)?;
        let values = Self::of(traced.columns());
        Ok(Box::new(Traced { traced, values }))
    }

    fn clone_box(&self) -> Box<dyn LearnedFeatures> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

struct Traced<'a, T: Precision> {
    traced: embedding::Traced<'a, T>,
    values: FeatureValues,
}

impl<T: Precision> FeaturesAt for Traced<'_, T> {
    fn values(&self) -> &FeatureValues {
        &self.values
    }

    /// About two forward passes.
    fn pull_back(
        &self,
        mut features: Mat<f64>,
        variances: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), LinearError> {
        for (i, slope) in variances.iter().enumerate().filter(|(_, slope)| **slope != 0.0) {
            let own = self.values.features.col_as_slice(i);
            features.col_as_slice_mut(i).iter_mut().zip(own).for_each(|(a, f)| *a += 2.0 * slope * f);
        }
        self.traced.add_gradient(features.as_ref(), gradient)
    }
}
