//! **Answers of models**: predictions, draws, covariances and scores, what they take, and what reports show.
//!
//! | file | what |
//! |---|---|
//! | `answer` | columns or an array of predictions |
//! | `model` | what all models answer |
//! | `network` | what networks answer |
//! | `network_joint` | scores of several labels together |
//! | `network_predict` | predictions of a network and, for comparison, of the network without error bars |
//! | `network_plan` | memory and seconds of predictions of networks |
//! | `network_samples` | functions and joint covariances of networks |
//! | `model_report` | what a report shows of a model |
//! | `process` | what processes answer |
//! | `calibrate` | calibration after a fit, by validation rows |
//! | `effects` | effects of columns |
//! | `joint` | the covariance of the function at several rows |
//! | `leave_one_out` | a table's training rows, each predicted from all others |
//! | `predict` | predictions and scores of processes |
//! | `plan` | memory and seconds of predictions of processes |

mod answer;
mod calibrate;
mod effects;
mod joint;
mod leave_one_out;
mod model;
mod model_report;
mod network;
mod network_joint;
mod network_plan;
mod network_predict;
mod network_samples;
mod plan;
mod predict;
mod process;

pub use answer::Answer;
pub(crate) use answer::columns;
pub use model_report::ModelReport;
pub use predict::PredictOptions;
