//! A network from a file, whatever its format.

use super::inputs::InputRecord;
use super::preparation::Preparation;
use super::{NetworkFileError, metadata, refuse};
use posterior_laplace::OnlineReport;
use posterior_networks::safetensors::read_network;
use posterior_networks::train::Loss;
use posterior_networks::{Architecture, Network, OutputLink, Precision};
use posterior_onnx::{OnnxOptions, read_onnx_with};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A network with what its file says about it.
#[derive(Clone, Debug)]
pub struct Opened<T> {
    /// The network, in evaluation mode.
    pub network: Network<T>,
    /// Its inputs, where it has several: parts of one row of numbers.
    pub inputs: Vec<InputRecord>,
    /// `safetensors`, `pytorch`, `onnx` or `memory`.
    pub format: &'static str,
    /// How data are prepared for it, where the file says so.
    pub preparation: Preparation,
    /// How it was trained, where the file says so.
    pub training: Option<TrainingRecord>,
    /// What was taken off its end ([`Strip`]).
    pub stripped: Option<OutputLink>,
    /// What was chosen, folded, widened or left out.
    pub notes: Vec<String>,
}

/// What is taken off the end of a network that returns probabilities, so that its outputs are logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strip {
    /// Nothing.
    #[default]
    Nothing,
    /// A softmax or log-softmax, which must be there.
    Softmax,
    /// A softmax or log-softmax, if there is one.
    SoftmaxIfThere,
    /// A sigmoid, if there is one.
    SigmoidIfThere,
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
    /// SHA-256 of the files of data, then of labels, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// Rows of these files that were set aside for validation, where some were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<SetAside>,
    /// Noise variances of the Gaussian loss, on the scale of the standardised targets.
    pub noise_variance: Vec<f64>,
    /// Prior precisions and noise that were learned beside the weights, with their history: the weight decay above is then only where they began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineReport>,
}

/// Examples that a network did not learn from: a share of its data that was set aside at random. They are found again by the same split
/// ([`posterior_data::Split::random`]) of the same files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetAside {
    /// The share.
    pub fraction: f64,
    /// The seed of the split.
    pub seed: u64,
    /// Examples in the files.
    pub of: usize,
    /// Examples that were set aside.
    pub examples: usize,
}

impl TrainingRecord {
    /// Where a file keeps it.
    pub(super) const KEY: &str = "posterior.training";
}

/// Which file a network is read from, and how.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// The architecture of files that hold tensors alone.
    pub architecture: Option<&'a Path>,
    /// Which output of an ONNX file that has several.
    pub output: Option<&'a str>,
    /// What is taken off its end, so that outputs are logits.
    pub strip: Strip,
}

impl<'a> NetworkFile<'a> {
    /// A file that says everything itself, taken whole.
    pub fn new(path: &'a Path) -> Self {
        Self { path, architecture: None, output: None, strip: Strip::Nothing }
    }
}

/// Reads a network: ONNX where the name ends in `.onnx`, else safetensors or a state dictionary of PyTorch (`.pt`, `.pth`), with its architecture
/// from a file of its own or from the metadata.
///
/// # Errors
/// When a file is damaged, tensors do not fit, or an operator is not supported; the message says which.
pub fn open_network<T: Precision>(file: &NetworkFile<'_>) -> Result<Opened<T>, NetworkFileError> {
    let &NetworkFile { path, architecture, output, strip } = file;
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        if architecture.is_some() {
            return refuse("an ONNX file holds its architecture: leave --architecture out");
        }
        let softmax = matches!(strip, Strip::Softmax | Strip::SoftmaxIfThere);
        let options = OnnxOptions { strip_final_softmax: softmax, output: output.map(String::from) };
        let imported = read_onnx_with(path, &options)?;
        let mut notes = imported.notes.clone();
        notes.insert(0, format!("opset {}, written by {}", imported.opset, imported.producer));
        let network = imported.network()?;
        let inputs = InputRecord::of(imported.inputs);
        notes.extend(InputRecord::sentence(&inputs));
        let opened = Opened {
            network,
            inputs,
            format: "onnx",
            preparation: Preparation::None,
            training: None,
            stripped: imported.dropped,
            notes,
        };
        return stripped(opened, strip, path);
    }
    if output.is_some() {
        return refuse(
            "--onnx-output names one of several outputs of an ONNX file: other networks have one, leave it out",
        );
    }
    let architecture = architecture.map(Architecture::read).transpose()?;
    let read = read_network::<T>(path, architecture.as_ref())?;
    let preparation = metadata::read(&read.metadata, Preparation::KEY, path)?.unwrap_or_default();
    let training: Option<TrainingRecord> = metadata::read(&read.metadata, TrainingRecord::KEY, path)?;
    let outputs = read.network.graph().output_shape().iter().product();
    let mut notes = read.notes;
    notes.extend(training.as_ref().and_then(|t| t.loss.meaning(outputs)));
    let (network, format) = (read.network, read.format);
    let inputs = Vec::new();
    let opened = Opened { network, inputs, format, preparation, training, stripped: None, notes };
    stripped(opened, strip, path)
}

/// A network in memory without what `strip` takes off its end.
///
/// # Errors
/// When `strip` wants what is not there.
pub(crate) fn without_link<T: Precision>(
    network: Network<T>,
    strip: Strip,
) -> Result<Opened<T>, NetworkFileError> {
    let (preparation, notes, inputs) = (Preparation::None, Vec::new(), Vec::new());
    let opened =
        Opened { network, inputs, format: "memory", preparation, training: None, stripped: None, notes };
    stripped(opened, strip, Path::new("the network"))
}

/// The network without what `strip` takes off its end.
fn stripped<T: Precision>(
    mut opened: Opened<T>,
    strip: Strip,
    path: &Path,
) -> Result<Opened<T>, NetworkFileError> {
    if strip == Strip::Nothing || opened.stripped.is_some() {
        return Ok(opened);
    }
    let wanted = if strip == Strip::SigmoidIfThere { OutputLink::Sigmoid } else { OutputLink::Softmax };
    match opened.network.graph().without_output_link().filter(|found| found.1 == wanted) {
        Some((graph, link)) => {
            let before = opened.network.graph();
            let kept = graph.parameters().iter().filter_map(|slot| {
                let at = before.parameters().iter().position(|p| p.name == slot.name)?;
                Some(opened.network.parameters()[at].clone())
            });
            opened.network = Network::new(graph.clone(), kept.collect())?;
            opened.stripped = Some(link);
            opened.notes.push(format!("the final {} was dropped: the outputs are logits", link.name()));
        }
        None if strip == Strip::Softmax => {
            return refuse(format!(
                "{} does not end in a softmax: there is nothing to strip (leave --strip-softmax out)",
                path.display()
            ));
        }
        None => {}
    }
    Ok(opened)
}
