//! **Low rank**: Gaussian inference in m features at a cost that is linear in the rows, whoever supplies them.
//!
//! Weights have the prior `N(0, I)`; what features are scaled by is part of them. Inducing points are this model with the whitened features `L⁻¹ k(Z, x)` and a rest `k(x, x) - |a(x)|²`
//! that they cannot say; a network whose outputs are the features is this model without a rest (deep basis kernels); a last layer is this model with features that stay as they are.
//! So there is one evidence, one bound for mini-batches, one prediction.
//!
//! | file | what |
//! |---|---|
//! | `evidence` | [`EvidenceSums`]: the exact evidence in one pass, with its gradient in features and noise in a second |
//! | `triangles` | [`TriangularSums`]: the same by QR, where squares lose too many digits |
//! | `data_term` | [`DataTerm`]: a batch's expected (or predictive) log density under any likelihood, with its slopes in weights and features |
//! | `row_terms` | [`RowTerms`]: the same of rows whose latent means and variances are known, whoever supplies them |
//! | `cox` | [`CoxRows`]: events whose intensity is learned, as rows with a likelihood |
//! | `distribution` | [`WeightDistribution`]: the Gaussian over weights |
//! | `natural` | [`natural_step`]: a step along its natural parameters |
//! | `learned_features` | [`LearnedFeatures`]: features with parameters and a way back to them; their [`FeatureDiagnostics`] |
//! | `fit` | [`fit_low_rank`]: features, noise and weights trained together, judged by rows held back |
//! | `posterior` | [`LowRankPosterior`]: predictions, joint covariances, functions |
//!
//! ```
//! use faer::Mat;
//! use posterior_linalg::cholesky::JitterPolicy;
//! use posterior_linear::low_rank::{EvidenceSums, ScaledRows};
//!
//! // A line through four points: two features of each row, noise variance 0.01.
//! let features = Mat::from_fn(2, 4, |j, i| if j == 0 { 1.0 } else { i as f64 });
//! let targets = Mat::from_fn(4, 1, |i, _| [0.1, 0.9, 2.1, 2.9][i]);
//! let mut sums = EvidenceSums::new(2, 1);
//! sums.add(&ScaledRows::new(features, targets, vec![0.01; 4], vec![0.0; 4]));
//! let posterior = sums.solve(0.0, JitterPolicy::NONE)?.posterior()?;
//! assert!((posterior.mean()[(1, 0)] - 0.96).abs() < 0.02);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cox;
mod data_term;
mod distribution;
mod evidence;
mod fit;
mod learned_features;
mod natural;
mod posterior;
mod row_terms;
mod triangles;

pub use cox::CoxRows;
pub use data_term::{DataSlopes, DataTerm, DataTermBuffers, ObservedRows};
pub use distribution::WeightDistribution;
pub use evidence::{BlockGradient, EvidenceGradient, EvidenceSums, ScaledRows, SolvedEvidence};
pub use fit::{
    Correction, LowRankData, LowRankFit, LowRankOptions, LowRankRows, LowRankState, LowRankTraining,
    OnBatches, OwnedRows, RowBlock, Training, ValidationScore, fit_low_rank, objective, refit,
};
pub use learned_features::{FeatureDiagnostics, FeatureValues, FeaturesAt, LearnedFeatures};
pub use natural::{DataGradient, natural_step};
pub use posterior::{LowRankFunctions, LowRankPosterior, ResidualVariance, WeightMarginals};
pub use row_terms::RowTerms;
pub use triangles::TriangularSums;

#[cfg(test)]
mod tests;
