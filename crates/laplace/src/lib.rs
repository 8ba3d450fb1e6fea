//! **Linearised Laplace**: error bars for trained networks, without retraining them.
//!
//! A network is replaced by its tangent at the trained weights, `h(w, x) = g(x) + J(x) (w - v)`: a linear model with the Jacobian as features, whose posterior is Gaussian
//! with precision `H = M + A`, `M = sum_n J_n^T B_n J_n`. Predictions keep the network as their mean and get the covariance `J H^-1 J^T` (thesis section 3.3).
//!
//! ```
//! use posterior_laplace::{Data, FitOptions, Run, Wanted, fit};
//! use posterior_likelihoods::{Gaussian, OutputLikelihood};
//! use posterior_linalg::random::Streams;
//! use posterior_networks::train::{Tabular, Targets};
//! use posterior_networks::{Architecture, Array, Network};
//!
//! let text = "kind = 'perceptron'\ninputs = 1\nhidden = [10]\noutputs = 1\nactivation = 'tanh'";
//! let network = Network::<f64>::initialised(Architecture::from_toml(text)?.graph()?, Streams::new(0))?;
//! let x = Array::new(vec![20, 1], (0..20).map(|i| i as f64 / 10.0).collect());
//! let examples = Tabular::new(x.clone(), Targets::Values(network.forward(&x)?));
//! let likelihood = OutputLikelihood::Gaussian(Gaussian::new(0.01, 0.0));
//! let data = Data::new(&network, &examples, &likelihood);
//! let laplace = fit(&data, &FitOptions::default(), &mut Run::default())?;
//!
//! let near_and_far = Array::new(vec![2, 1], vec![1.0, 10.0]);
//! let latent = laplace.latent(&network, &near_and_far, Wanted::Diagonal)?;
//! assert!(latent.covariance[1] > latent.covariance[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Users who want the structure chosen for them, or have files, start at `posterior::Laplace`.
//!
//! | module | what |
//! |---|---|
//! | `problem`, `run` | what a posterior is fitted to ([`Data`], [`Problem`]); observer and checkpoint ([`Run`]) |
//! | [`mod@fit`] | the whole: choose weights, sum the curvature, find mode and hyperparameters |
//! | [`accumulate`] | [sums](posterior_linear::curvature) of the curvature in each form |
//! | [`predict`] | [latent](posterior_linear::latent) means and covariances |
//! | `weights`, `prior`, [`normalisation`] | which weights, which prior, what normalisation does to both |
//! | `mode` | which weights the evidence charges for: trained, or the optimum of the linear model ([`posterior_linear::mode`]) |
//! | [`auto`](mod@auto) | the default: structures compared by the evidence, or on unseen examples |
//! | [`temperature`] | the network with one number chosen on unseen examples, which others must beat |
//! | [`mean_field`] | weights with independent Gaussian noise, fine-tuned |
//! | [`scores`] | scores on held-out examples, and notes on them |
//! | `rows`, `kernel_inputs` | what processes around a network are fitted to, and what their kernels see |
//! | [`unseen`] | predictions and scores of examples that neither network nor posterior has learned from |
//! | [`online`] | hyperparameters while the network is trained |
//! | [`function_space`] | the dual form for small data |
//! | [`fixed_mean`] | a sparse process whose mean is the network, learned: variational linearised Laplace, fixed-mean processes |
//! | [`gwi`] | a covariance around the network, learned beside a prior by Gaussian Wasserstein inference |
//! | [`ella`] | a few directions of the weights that matter most at landmarks |
//! | [`sampled`] | the posterior as samples, for networks whose curvature cannot be stored, and precisions learned from them |
//! | [`checkpointer`] | what a long fit keeps on the way, to go on from |
//! | [`saved`] | sums and selections of weights as named tensors |
//! | [`learned`] | what every posterior predicts, and what a search for one returns |
//! | [`plan`] | memory and work, before anything is done |

pub mod accumulate;
pub mod auto;
pub mod checkpointer;
pub mod ella;
mod error;
pub mod fit;
pub mod fixed_mean;
pub mod function_space;
pub mod gwi;
mod kernel_inputs;
pub mod learned;
pub mod mean_field;
mod mode;
pub mod normalisation;
pub mod online;
pub mod plan;
pub mod predict;
mod prior;
mod problem;
mod rows;
mod run;
pub mod sampled;
pub mod saved;
pub mod scores;
pub mod temperature;
pub mod unseen;
mod weights;

pub use accumulate::{Accumulator, FisherEstimate, Form};
pub use auto::{AutoReport, ComparedBy, auto};
pub use checkpointer::{Checkpointer, SavedState};
pub use ella::{Ella, EllaOptions};
pub use error::LaplaceError;
pub use fit::{
    Approximation, FitOptions, FitSummary, Laplace, NoiseModel, RestoredCurvature, SavedPosterior, Tune, fit,
};
pub use gwi::{Gwi, GwiOptions};
pub use learned::Learned;
pub use mean_field::{MeanField, MeanFieldOptions};
pub use mode::Mode;
pub use online::{OnlineOptions, OnlineReport, train_online};
pub use plan::{Needs, Plan};
pub use posterior_linear::mode::ModeOptions;
pub use predict::{Latent, Predictor, Wanted};
pub use prior::PriorKind;
pub use problem::{Data, Problem, Size};
pub use run::{Observer, Run, Stage};
pub use sampled::{Sampled, SampledOptions};
pub use scores::{LEAST_HELD_OUT, UnseenScores};
pub use temperature::Temperature;
pub use unseen::{UnseenPredictions, unseen_predictions, unseen_scores};
pub use weights::{Choice, Weights};
