//! How a command went that wrote a model.

use posterior_store::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a command knows of a fit that the models themselves do not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Seconds that it took, reading included.
    pub seconds: f64,
    /// Most memory that it took before the file was written, in bytes; none where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
    /// Planned for several targets together, in bytes; none of one target, whose record has its own.
    pub planned_memory_bytes: Option<u64>,
    /// What was read otherwise than it is written, in sentences.
    pub read: Vec<String>,
    /// Scores of test rows beside those of a baseline, for each model; null where no rows were left out, empty of networks.
    pub left_out: Vec<Value>,
    /// Scores of models that did not see a fold, likewise; null without folds.
    pub folds: Vec<Value>,
}

impl RunRecord {
    /// Adds the scores of a model to what programs are told of it.
    pub(crate) fn add_scores(&self, model: usize, report: &mut Value) {
        for (key, scores) in [("left_out", &self.left_out), ("folds", &self.folds)] {
            if let Some(own) = scores.get(model) {
                report[key] = own.clone();
            }
        }
    }

    /// Adds what is of all models to what programs are told of the file.
    pub(crate) fn add(&self, report: &mut Value) {
        report["peak_memory_bytes"] = json!(self.peak_memory_bytes);
        report["read"] = json!(self.read);
        if let Some(bytes) = self.planned_memory_bytes {
            report["planned_memory_bytes"] = json!(bytes);
        }
    }
}
