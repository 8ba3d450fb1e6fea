//! **Models**: what is fitted, saved, loaded and asked.
//!
//! ```
//! use posterior_data::{Selection, synthetic};
//! use posterior_linalg::random::Streams;
//! use posterior_models::{FitRequest, Model};
//! use posterior_optim::Signal;
//!
//! let table = synthetic::friedman(60, Streams::new(1));
//! let request = FitRequest { selection: Selection { target: "y".into(), ..Selection::default() }, ..FitRequest::default() };
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
//! | [`TrainingRows`], [`Apart`], [`CheckedOn`] | rows that are set apart (`rows`): which of them a model has learned from, and which a score goes by |
//! | [`options`] | what a fit may be asked for: one struct for each method |
//! | [`laplace`] | a trained network with error bars, and its file |
//! | [`ensemble`] | a folder of networks as one model |
//! | [`targets`] | several targets of one table in one model |
//! | [`network`] | networks and their files: training data, architectures, preparation |
//! | [`scans`] | pictures from sinograms with their error bars, from files to files |
//! | [`Facts`] | what there is to say of a model, as labels, numbers and units; a terminal's text and the rows of a report are made of them |
//! | [`Saved`] | what a model file holds |
//! | [`Model`] | what is fitted, whatever its family: [`Answer`]s to a [`Question`], [`Evaluation`]s beside a baseline |

mod answer;
mod asked;
mod calibration;
mod data;
pub mod ensemble;
mod error;
mod evaluation;
mod facts;
mod family;
mod file;
mod hyperparameter;
mod inputs;
pub mod laplace;
mod latent;
mod mapped;
mod memory;
mod method;
mod model;
pub mod network;
pub mod options;
mod output;
mod plan;
mod portrait;
mod predictive;
mod predictor;
mod prior;
mod process;
mod question;
mod rows;
mod saved;
pub mod scans;
mod shares;
mod shift;
mod speed;
pub mod targets;
pub mod text;

pub use answer::Answer;
pub use calibration::{
    ClassRecalibration, Guarantee, IntervalScores, Intervals, ObservedRecalibration, ObservedTails,
    PredictedSets, Recalibration, SET_LEVELS, Tempering,
};
pub use data::{ModelData, Truth};
pub use error::ModelError;
pub use evaluation::{Comparison, Evaluation, JointRow, OutOfDistribution, Scores};
pub use facts::{Fact, FactValue, Facts};
pub use family::Family;
pub use hyperparameter::Hyperparameter;
pub use inputs::TableInputs;
pub use latent::{Latent, VarianceMethod, VarianceSolves};
pub use mapped::{MappedPredictions, TargetMap};
pub use memory::{peak_memory_bytes, reset_peak_memory};
pub use method::{Chosen, IndependentFunctions, SolverPrecision, choose};
pub use model::Model;
pub use options::{FitRequest, Method};
pub use output::{GaussianOutput, LikelihoodOutput, NoiseSummary, Output, Predictions, Target};
pub use plan::PredictionPlan;
pub use portrait::{Files, Portrait};
pub use posterior_store::{FORMAT_VERSION, StoreError};
pub use predictive::{Predicted, PredictedKind, Predictive};
pub use predictor::{Batch, Compression, Cost, DrawnFunctions, NetworkPosterior, Predictor, Want};
pub use prior::Prior;
pub use process::{
    Averaged, BadRow, BoundSummary, BoundedPseudoCount, CategoryCovariance, CheckScores,
    ChosenLikelihood, CompressionPlan, ContinuationPlan, ContinuedRows, DeepSummary, Dependence,
    EXACT_POSTERIOR_ROWS, EXACT_ROWS, Effects, EvidenceSearchSummary, FeatureSummary, FileRows, FitCheck,
    FitRecord, FitStage, FitSummary, GeneralisedSummary, GviSummary, Importance, InferencePlan,
    KernelNetwork, KernelParts, LabelCheck, LabelScores, LearnedNoise, MeanKind, ModeSummary, NewRows,
    Observed, ParsedRows, Place, PlaceUnit, PlainProcess, PredictOptions, Prepared, PreparedTable,
    PriorSummary, Process, ProcessRecord, RowsOf, RunningScore, ScalablePlan, ScalableSummary, ScoreSums,
    Solver, StandInSummary, StreamCounts, StreamInput, StreamModel, StreamOutput, StreamPlan, StreamState,
    StreamedRows, TableSource, TakenRows, TransformChoice, TriedInference, TriedMethod, TriedPseudoCount,
    TriedSetting, TriedTransform, TriedWay, VariationSummary, WarpCurve, choose_likelihood,
    no_exposure,
};
pub use question::{PredictedInto, Question};
pub use rows::{Apart, CheckedOn, TrainedOn, TrainingRows};
pub use saved::Saved;
pub use shares::{Share, SharePlaces, VarianceShares};
pub use shift::Shift;
