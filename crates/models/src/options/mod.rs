//! **What a user asks of a fit**: one struct for each method, defined once with its defaults, its help text, its form in files and (feature `clap`) its
//! flags. The library, the command line and experiments use the same values, so an option that a method does not have cannot be written down.
//!
//! ```
//! use posterior_models::options::{FitRequest, Method, SddOptions};
//!
//! let mut descent = SddOptions { momentum: 0.8, ..SddOptions::default() };
//! descent.iterative.sampling.samples = 16;
//! let request = FitRequest { method: Method::Sdd(descent), seed: 7, ..FitRequest::default() };
//! assert_eq!(request.method.name().as_str(), "sdd");
//! ```
//!
//! | file | what |
//! |---|---|
//! | `request` | everything that determines a fit, in groups |
//! | `method` | the sum: a method, or its name |
//! | `methods` | what each method is told |
//! | `deep` | what methods with learned features are told, and the ways to train that follow |
//! | `gvi` | what generalised variational inference is told |
//! | `groups`, `search` | what several methods share: solvers, samples, inducing points; the search for hyperparameters |
//! | `likelihood` | what the target is, and how it is inferred from |
//! | `target` | what it goes through before it is learned |
//! | `beside` | what a setting needs of others (feature `clap`) |
//! | `grammar` | methods as one command line (feature `clap`): settings that a method does not have are refused |
//! | `numbers` | what numbers may be |
//! | `solver` | what weights were found with |

#[cfg(feature = "clap")]
mod beside;
mod deep;
#[cfg(feature = "clap")]
mod grammar;
pub(crate) mod groups;
mod gvi;
mod likelihood;
mod method;
mod methods;
pub mod numbers;
mod request;
mod search;
mod solver;
mod target;

pub(crate) use deep::{DeepKind, FIRST_PASSES, GO_ON, LOW_NOISE, Setting};
pub(crate) use gvi::GviCandidate;
pub use solver::Solver;

pub use deep::{BasisLayer, BasisOptions, CorrectionName, DbkOptions, DklOptions};
#[cfg(feature = "clap")]
pub use grammar::{CANDIDATE, SETTING, SettingInfo};
pub use groups::{
    BatchOptions, DiskOptions, InducingChoiceName, InducingOptions, IterativeOptions, KernelPrecision,
    LargeTableOptions, PreconditionerName, SamplingOptions, SystemOptions,
};
pub use gvi::{GviOptions, TemperingName, VariationalMeanName};
pub use likelihood::{
    ClassWeights, InferenceName, LikelihoodName, OutputRequest, PseudoCount, Window, WindowSide,
};
pub use method::{Method, MethodName};
pub use methods::{
    AccelerationName, AutoOptions, CgOptions, ExactOptions, InducingSgdOptions, SapOptions, SddOptions,
    SgdOptions, SgprOptions, SvgpOptions, VariationalName,
};
pub use request::{CalibrateName, FitRequest, LengthscalePrior, Limits, PriorSettings, Start, Validation};
pub use search::{
    ConstraintOptions, EvidenceOptions, HyperparameterOptions, HyperparameterSearch, ObjectiveName,
    OptimizerName,
};

pub(crate) use target::HETEROSCEDASTIC;
pub use target::TargetTransformName;
