//! A network from a file, whatever its format.

use super::{NetworkFileError, Preparation};
use posterior_laplace::OnlineReport;
use posterior_networks::formats::onnx::{OnnxOptions, read_onnx_with};
use posterior_networks::formats::safetensors::read_network;
use posterior_networks::train::Loss;
use posterior_networks::{Architecture, Network, Precision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A network with what its file says about it.
#[derive(Clone, Debug)]
pub struct Opened<T> {
    /// The network, in evaluation mode.
    pub network: Network<T>,
    /// `safetensors` or `onnx`.
    pub format: &'static str,
    /// How data are prepared for it, where the file says so.
    pub preparation: Preparation,
    /// How it was trained, where the file says so.
    pub training: Option<TrainingRecord>,
    /// What was chosen, folded, widened or left out.
    pub notes: Vec<String>,
}

/// How a network was trained, as its file's metadata say it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// What was minimised.
    pub loss: Loss,
    /// The weight decay of the rule.
    pub weight_decay: f64,
    /// Whether the decay shrank the weights instead of joining the gradient: then it is no exact penalty.
    pub decoupled: bool,
    /// Examples.
    pub examples: usize,
    /// Noise variances of the Gaussian loss, on the scale of the standardised targets.
    pub noise_variance: Vec<f64>,
    /// Prior precisions and noise that were learned beside the weights, with their history: the weight decay above is then only where they began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineReport>,
}

impl TrainingRecord {
    /// Where a file keeps it.
    pub(super) const KEY: &str = "posterior.training";

    fn from_metadata(
        metadata: &BTreeMap<String, String>,
        path: &Path,
    ) -> Result<Option<Self>, NetworkFileError> {
        let Some(text) = metadata.get(Self::KEY) else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|e| {
            NetworkFileError::Request(format!(
                "{}: the metadata `{}` is damaged: {e}",
                path.display(),
                Self::KEY
            ))
        })
    }
}

/// Reads a network: ONNX where the name ends in `.onnx`, else safetensors with its architecture from `architecture` or from its metadata. With
/// `strip_softmax` a final softmax is dropped, so that outputs are logits.
///
/// # Errors
/// When a file is damaged, tensors do not fit, or an operator is not supported; the message says which.
pub fn open_network<T: Precision>(
    path: &Path,
    architecture: Option<&Path>,
    strip_softmax: bool,
) -> Result<Opened<T>, NetworkFileError> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        if architecture.is_some() {
            let problem = "an ONNX file holds its architecture: leave --architecture out";
            return Err(NetworkFileError::Request(problem.into()));
        }
        let options = OnnxOptions { strip_final_softmax: strip_softmax, ..OnnxOptions::default() };
        let imported = read_onnx_with(path, &options)?;
        let mut notes = imported.notes.clone();
        notes.insert(0, format!("opset {}, written by {}", imported.opset, imported.producer));
        return Ok(Opened {
            network: imported.network()?,
            format: "onnx",
            preparation: Preparation::None,
            training: None,
            notes,
        });
    }
    let architecture = architecture.map(Architecture::read).transpose()?;
    let read = read_network::<T>(path, architecture.as_ref())?;
    let preparation = Preparation::from_metadata(&read.metadata, path)?;
    let training = TrainingRecord::from_metadata(&read.metadata, path)?;
    let (mut network, mut notes) = (read.network, read.notes);
    if strip_softmax {
        match network.graph().without_final_softmax() {
            Some(graph) => {
                let kept = graph.parameters().iter().filter_map(|slot| {
                    let at = network.graph().parameters().iter().position(|p| p.name == slot.name)?;
                    Some(network.parameters()[at].clone())
                });
                network = Network::new(graph.clone(), kept.collect())?;
                notes.push("the final softmax was dropped: outputs are logits".into());
            }
            None => notes.push("there is no final softmax to drop".into()),
        }
    }
    Ok(Opened { network, format: "safetensors", preparation, training, notes })
}
