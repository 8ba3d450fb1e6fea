//! Features that are learned: the outputs of a network, inducing points, or inducing points behind a network.

use crate::LinearError;
use faer::{Mat, MatRef};

/// Features of rows, and the prior variance of the process that they are of.
#[derive(Clone, Debug)]
pub struct FeatureValues {
    /// m x b.
    pub features: Mat<f64>,
    /// `k(x, x)`, b numbers: `|a(x)|²`, and more where the process knows what its features cannot say.
    pub variances: Vec<f64>,
}

/// A map of rows (D numbers each) to m features with parameters of its own.
pub trait LearnedFeatures: Send + Sync + std::fmt::Debug {
    /// m.
    fn rank(&self) -> usize;

    /// D.
    fn inputs(&self) -> usize;

    /// Its parameters, as numbers without constraints.
    fn unconstrained(&self) -> Vec<f64>;

    /// Takes parameters.
    ///
    /// # Errors
    /// When nothing can be computed at them: a kernel matrix that cannot be factored, say.
    fn set_unconstrained(&mut self, numbers: &[f64]) -> Result<(), LinearError>;

    /// Of each parameter, whether weight decay pulls it to zero: the weights of a network.
    fn decays(&self) -> Vec<bool>;

    /// Rows that are best worked on at a time.
    fn rows_at_once(&self) -> usize;

    /// Bytes that [`Self::at`] keeps of each row.
    fn bytes_of_row(&self) -> usize;

    /// Features and variances of the rows of x (b x D).
    ///
    /// # Errors
    /// For inputs of another width, or that the map refuses.
    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError>;

    /// The same, with what the way back needs.
    ///
    /// # Errors
    /// As [`Self::values`].
    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError>;

    /// A copy in a box.
    fn clone_box(&self) -> Box<dyn LearnedFeatures>;

    /// Itself, for who knows which map it is and saves it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Features of some rows, with the way back.
pub trait FeaturesAt {
    /// Features and variances.
    fn values(&self) -> &FeatureValues;

    /// Adds to `gradient` (one number for each parameter) what slopes in the features (m x b) and in the variances (b) say.
    ///
    /// # Errors
    /// Whatever the map itself may refuse.
    fn pull_back(
        &self,
        features: Mat<f64>,
        variances: &[f64],
        gradient: &mut [f64],
    ) -> Result<(), LinearError>;
}

/// The largest variance of some rows and where it is; None of none.
pub(super) fn largest(variances: &[f64]) -> Option<(usize, f64)> {
    variances.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// How many directions features use, and how far their lengths are apart: what says that a learned basis has collapsed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FeatureDiagnostics {
    /// `exp` of the entropy of the eigenvalues' shares of `Σ a aᵀ`: 1 where all features are multiples of one function, m where all matter alike, 0 where all are zero everywhere.
    pub effective_rank: f64,
    /// Smallest `|a(x)|²`.
    pub smallest_variance: f64,
    /// Largest `|a(x)|²`.
    pub largest_variance: f64,
}

impl FeatureDiagnostics {
    /// From `Σ a aᵀ` (m x m, its lower triangle) and the range of `|a|²`.
    ///
    /// # Errors
    /// When the eigendecomposition does not converge.
    pub fn new(gram: MatRef<'_, f64>, range: (f64, f64)) -> Result<Self, LinearError> {
        let values = posterior_linalg::dense::eigenvalues(gram)
            .map_err(|_| LinearError::Eigen { dimension: gram.nrows() })?;
        let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
        let sum: f64 = values.iter().sum();
        let shares = values.iter().map(|v| v / sum).filter(|p| *p > 0.0);
        // Of a sum of zero there are no shares.
        let effective_rank = if sum == 0.0 { 0.0 } else { shares.map(|p| -p * p.ln()).sum::<f64>().exp() };
        Ok(Self { effective_rank, smallest_variance: range.0, largest_variance: range.1 })
    }
}
