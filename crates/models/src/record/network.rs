//! What stands in a model file besides arrays.

use super::inputs::InputRecord;
use crate::calibration::NetworkRecalibration;
use crate::network::{InputRecord as NetworkInputRecord, Preparation, Preprocess, TrainingRecord};
use posterior_data::Schema;
use posterior_laplace::saved::{SelectedRecord, selected};
use posterior_laplace::{AutoReport, FitOptions, FitSummary, Laplace};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Precision;
use serde::{Deserialize, Serialize};

/// Groups of the prior that are listed one by one in the header; more than these are only counted.
const LISTED_GROUPS: usize = 1000;

/// The network of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Its structure, layer by layer, as an architecture file has it.
    pub architecture: String,
    /// Name of the file it came from; empty for a network in memory.
    pub file: String,
    /// `onnx`, `safetensors`, `pytorch`, `head` or `memory`.
    pub format: String,
    /// Its inputs, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<NetworkInputRecord>,
    /// SHA-256 of that file, in hexadecimal.
    pub sha256: Option<String>,
    /// How it was trained, where that is known.
    pub training: Option<TrainingRecord>,
    /// What was chosen, folded, widened or left out when it was read.
    pub notes: Vec<String>,
}

/// Where inputs stand in files, and what is done to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum InputKind {
    /// A table, array or images.
    Prepared {
        /// What is done to them.
        preparation: Preparation,
    },
    /// Features of a linear head.
    Features {
        /// Names of the columns that are features, for tables.
        columns: Vec<String>,
        /// The column of labels.
        label: Option<String>,
    },
}

impl InputKind {
    /// What is done to them before the network sees them: nothing to features.
    pub(crate) fn preparation(&self) -> &Preparation {
        match self {
            Self::Prepared { preparation } => preparation,
            Self::Features { .. } => &Preparation::None,
        }
    }

    /// What reads the table, where it is one.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        match self.preparation() {
            Preparation::Columns { schema, .. } => Some(schema),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn schema_mut(&mut self) -> Option<&mut Schema> {
        match self {
            Self::Prepared { preparation: Preparation::Columns { schema, .. } } => Some(schema),
            _ => None,
        }
    }

    /// Names of columns or features, where they have some.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Features { columns, .. } => columns.clone(),
            Self::Prepared { .. } => self.schema().map(Schema::feature_names).unwrap_or_default(),
        }
    }
}

/// Examples that are no part of a curvature, and that score it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOutRecord {
    /// Names of their files; empty where they are some of the data's own examples.
    pub files: Vec<String>,
    /// SHA-256 of these and of those of labels, in hexadecimal.
    pub sha256: Vec<String>,
    /// How many there are.
    pub examples: usize,
    /// How many of them stand among the rows learned from.
    pub repeated: usize,
}

/// The data that a model learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Names of the files.
    pub files: Vec<String>,
    /// SHA-256 of these and of those of labels, in hexadecimal; empty for arrays in memory.
    pub sha256: Vec<String>,
    /// Examples that the curvature was summed over.
    pub examples: usize,
    /// Those that it was not, and that score the fit; None where there are none.
    pub held_out: Option<HeldOutRecord>,
    /// Inputs.
    pub inputs: InputKind,
    /// Their kind and range, before anything is done to them; None for networks in memory.
    pub record: Option<InputRecord>,
    /// What was asked to be done to them.
    pub preprocess: Preprocess,
    /// Names of the classes; empty where they are only numbered.
    pub class_names: Vec<String>,
    /// What was dropped or filled.
    pub notes: Vec<String>,
}

impl DataRecord {
    /// The schema's target column, for tables.
    pub fn target(&self) -> Option<&str> {
        match &self.inputs {
            InputKind::Features { label, .. } => label.as_deref(),
            prepared => prepared.schema().map(|schema| schema.target.as_str()),
        }
    }

    /// Mean and scale that take a regression output to the target's units.
    pub(crate) fn target_scale(&self) -> (f64, f64) {
        self.inputs.preparation().target_units()
    }

    /// Names of so many classes, numbered where they have none.
    pub(crate) fn numbered_classes(&self, classes: usize) -> Vec<String> {
        (0..classes).map(|c| self.class_names.get(c).cloned().unwrap_or_else(|| c.to_string())).collect()
    }
}

/// A model's description: all of it but the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkHeader {
    /// `laplace`.
    pub method: String,
    /// The network.
    pub network: NetworkRecord,
    /// The data.
    pub data: DataRecord,
    /// The likelihood that the curvature was summed with.
    pub base_likelihood: OutputLikelihood,
    /// The noise variance relative to it.
    pub noise_variance: f64,
    /// The likelihood of the plain network: under Gaussian noise with its best variances on the training data.
    pub plain_likelihood: OutputLikelihood,
    /// What was asked.
    pub options: FitOptions,
    /// The uncertain weights.
    pub selected: Vec<SelectedRecord>,
    /// Names of the groups of the prior, where there are not too many.
    pub prior_groups: Vec<String>,
    /// Number of groups of the prior.
    pub group_count: usize,
    /// The curvatures that were compared, where the best was asked for.
    pub auto: Option<AutoReport>,
    /// What was done and chosen.
    pub summary: FitSummary,
    /// What rows that the network has not seen say of its predictions; None where nothing is changed by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalibration: Option<NetworkRecalibration>,
    /// Things to know, in sentences.
    pub notes: Vec<String>,
    /// Wall time of the fit.
    pub seconds: f64,
}

impl NetworkHeader {
    /// What `method` says.
    pub const METHOD: &str = "laplace";

    /// Of a fit of this network with these data; `plain` is the likelihood of the network alone.
    pub(crate) fn new<T: Precision>(
        (network, data): (NetworkRecord, DataRecord),
        options: FitOptions,
        plain: OutputLikelihood,
        laplace: &Laplace<T>,
    ) -> Self {
        let groups = laplace.prior().names();
        Self {
            method: Self::METHOD.into(),
            network,
            data,
            base_likelihood: laplace.base_likelihood().clone(),
            noise_variance: laplace.noise_variance(),
            plain_likelihood: plain,
            options,
            selected: selected(laplace.selection()).0,
            prior_groups: if groups.len() > LISTED_GROUPS { Vec::new() } else { groups.to_vec() },
            group_count: groups.len(),
            auto: None,
            summary: for_header(laplace.summary.clone(), groups.len()),
            recalibration: None,
            notes: Vec::new(),
            seconds: 0.0,
        }
    }
}

/// The summary without what JSON cannot hold and without a number for every weight.
fn for_header(mut summary: FitSummary, groups: usize) -> FitSummary {
    if groups > LISTED_GROUPS {
        summary.maximised = None;
        for value in [&mut summary.evidence, &mut summary.evidence_at_trained].into_iter().flatten() {
            value.effective_dimensions = vec![value.effective_dimensions.iter().sum()];
            value.slopes.clear();
        }
    }
    if let Some(report) = &mut summary.held_out {
        report.grid.retain(|point| point.nll.is_finite());
    }
    if let Some(mode) = summary.mode.as_mut().filter(|m| !m.offset.is_finite()) {
        mode.offset = f64::MAX;
    }
    summary
}
