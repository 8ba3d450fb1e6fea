//! **Models**: what is fitted, saved, loaded and asked.
//!
//! ```
//! use posterior_data::{Selection, synthetic};
//! use posterior_linalg::random::Streams;
//! use posterior_models::{FitRequest, Model};
//! use posterior_optim::Signal;
//!
//! let table = synthetic::friedman(60, Streams::new(1));
//! let request = FitRequest { columns: Selection { target: "y".into(), ..Selection::default() }, ..FitRequest::default() };
//! let rows: Vec<usize> = (0..50).collect();
//! let model = Model::fit(&table, &rows, &request, &mut |_, _| Signal::Continue)?;
//! // What was chosen, added or is odd is said by every model, whatever its family.
//! assert!(model.facts().rows().iter().any(|fact| fact.label == "kernel"));
//! # Ok::<(), posterior_models::ModelError>(())
//! ```
//!
//! Each method has a [`Predictor`], whatever the likelihood. A [`Model`] is asked [`Question`]s; a file holds one, or several of the targets of one table ([`Saved`]): the command line, reports and files know no more than that.
//!
//! | module | what |
//! |---|---|
//! | [`Process`] | the parts of a model that is a Gaussian process on a table, whatever is observed: [`TableInputs`], a [`Predictor`], an [`Output`], a [`ProcessRecord`], file |
//! | [`StreamModel`], [`StreamState`] | a process that goes on learning from rows as they arrive |
//! | [`Predictor`], [`Latent`] | latent functions, by one of the methods (`method`), and Gaussians over their values at a [`Batch`] |
//! | [`TrainingRows`], [`TrainedOn`], [`CheckedOn`] | rows that are set apart (`rows`): which of them a model has learned from, and which a score goes by |
//! | [`options`] | what a fit may be asked for: one struct for each method |
//! | [`laplace`] | a trained network with error bars, and its file |
//! | [`ensemble`] | a folder of networks as one model |
//! | [`targets`] | several targets of one table in one model |
//! | [`network`] | networks and their files: training data, architectures, preparation |
//! | [`scans`] | pictures from sinograms with their error bars, from files to files |
//! | [`Facts`] | what there is to say of a model, as labels, numbers and units; a terminal's text and the rows of a report are made of them |
//! | [`Saved`] | what a model file holds |
//! | [`Model`] | what is fitted, whatever its family: [`Answer`]s to a [`Question`], [`Evaluation`]s beside a baseline |

#[macro_use]
mod method;

mod calibration;
mod compress;
mod data;
mod describe;
mod effects;
pub mod ensemble;
mod error;
mod evaluation;
mod facts;
mod family;
mod fit;
mod hyperparameter;
mod inputs;
pub mod laplace;
mod latent;
mod memory;
mod model;
pub mod network;
pub mod options;
mod output;
mod plan;
mod predictor;
mod prepare;
mod prior;
mod query;
mod question;
mod record;
mod rows;
mod saved;
pub mod scans;
mod shares;
mod shift;
mod speed;
mod streams;
pub mod targets;
pub mod text;
mod units;

pub use calibration::{
    ClassRecalibration, Guarantee, IntervalScores, Intervals, ObservedRecalibration, ObservedTails,
    Predicted, PredictedKind, PredictedSets, Predictive, Recalibration, SET_LEVELS, SharesMixture, Tempering,
};
pub use compress::CompressionPlan;
pub use data::{Files, ModelData, Truth};
pub use effects::{
    Averaged, CategoryCovariance, Dependence, Effects, Importance, KernelParts, Place, PlaceUnit, RowsOf,
    WarpCurve,
};
pub use error::ModelError;
pub use evaluation::{Comparison, Evaluation, JointRow, OutOfDistribution, Scores};
pub use facts::{Fact, FactLevel, FactValue, Facts};
pub use family::Family;
pub use fit::{ContinuationPlan, FitCost, NewRows};
pub use hyperparameter::Hyperparameter;
pub use inputs::TableInputs;
pub use latent::{Latent, VarianceMethod, VarianceSolves};
pub use memory::{peak_memory_bytes, reset_peak_memory};
pub use method::inference::{ChosenLikelihood, InferencePlan, Observed, choose_likelihood, no_exposure};
pub use method::large::{Chosen, PreparedTable, ScalablePlan, choose};
pub use method::training::{EXACT_POSTERIOR_ROWS, EXACT_ROWS};
pub use method::{IndependentFunctions, SolverPrecision};
pub use model::{Model, Process};
pub use options::{FitRequest, Method, Solver};
pub use output::{GaussianOutput, LikelihoodOutput, NoiseSummary, Output, Predictions, Target};
pub use plan::PredictionPlan;
pub use posterior_store::{FORMAT_VERSION, StoreError};
pub use predictor::{Batch, Compression, Cost, DrawnFunctions, NetworkPosterior, Predictor, Want};
pub use prepare::{FileRows, FitStage, Prepared, TransformChoice, TriedTransform};
pub use prior::Prior;
pub use query::{Answer, ModelReport, PredictOptions};
pub use question::{PredictedInto, Question};
pub use record::{
    BoundSummary, BoundedPseudoCount, CheckScores, ContinuedRows, DeepSummary, EvidenceSearchSummary,
    FeatureSummary, FitCheck, FitRecord, FitSummary, GaussianLabelSummary, GeneralisedSummary, GviSummary,
    KernelNetwork, LabelCheck, LabelScores, MeanKind, ModeSummary, PlainProcess, PriorSummary, ProcessRecord,
    ScalableSummary, StreamedRows, TableSource, TriedCandidate, TriedInference, TriedMethod,
    TriedPseudoCount, TriedSetting, VariationSummary,
};
pub use rows::{CheckedOn, TrainedOn, TrainingRows};
pub use saved::{RunRecord, Saved};
pub use shares::{Share, SharePlaces, VarianceShares};
pub use shift::Shift;
pub use streams::{
    BadRow, LearnedNoise, ParsedRows, RunningScore, ScoreSums, StreamCounts, StreamInput, StreamModel,
    StreamOutput, StreamPlan, StreamState, TakenRows,
};
pub use units::{MappedPredictions, TargetMap};
