//! The network of a request: from a file, or as a head on features.

use super::memory::InMemory;
use super::request::{LaplaceRequest, LikelihoodKind, NetworkSource};
use crate::ModelError;
use crate::network::{
    NetworkFile, NetworkFileError, Opened, Preparation, Strip, digest, file_name, open_network, without_link,
};
use crate::record::NetworkRecord;
use posterior_data::{NumericArray, ReadOptions, read_arrays};
use posterior_likelihoods::Link;
use posterior_networks::operation::Linear;
use posterior_networks::safetensors::{SafetensorsError, load_safetensors};
use posterior_networks::{Architecture, Array, Graph, GraphBuilder, Network, Operation, OutputLink};
use posterior_store::TensorFile;
use std::path::Path;

/// An opened network.
pub(crate) struct Source {
    /// In double precision, which holds the numbers of every file.
    pub(crate) network: Network<f64>,
    /// How data are prepared for it, where the file says so.
    pub(crate) preparation: Preparation,
    /// Whether it reads features.
    pub(crate) head: bool,
    pub(crate) record: NetworkRecord,
}

impl Source {
    /// The network of a request. What turns its outputs into probabilities is taken off, since likelihoods take logits.
    pub(crate) fn open(request: &LaplaceRequest, memory: &InMemory) -> Result<Self, ModelError> {
        let (mut opened, path) = match (&memory.network, &request.network) {
            (Some(network), _) => (without_link(network.clone(), strip(request, false)?)?, None),
            (None, NetworkSource::File { path, architecture, output, strip_softmax }) => {
                let strip = strip(request, *strip_softmax)?;
                let (architecture, output) = (architecture.as_deref(), output.as_deref());
                (open_network::<f64>(&NetworkFile { path, architecture, output, strip })?, Some(path))
            }
            (None, NetworkSource::Head { path }) => {
                (Opened { format: "head", ..without_link(head(path)?, Strip::Nothing)? }, Some(path))
            }
        };
        let left = opened.network.graph().without_output_link().map(|found| found.1);
        opened.notes.extend(misunderstood(request, left)?);
        let Opened { network, inputs, format, preparation, training, notes, .. } = opened;
        let record = NetworkRecord {
            architecture: architecture(network.graph())?,
            file: path.map_or_else(String::new, |path| file_name(path)),
            format: format.into(),
            inputs,
            sha256: path.map(|path| sha256(path)).transpose()?,
            training,
            notes,
        };
        Ok(Self { network, preparation, head: format == "head", record })
    }

    /// Whether every weight is a number of single precision.
    pub(crate) fn is_single(&self) -> bool {
        self.network.parameters().iter().flat_map(Array::values).all(|v| f64::from(*v as f32) == *v)
    }
}

/// What is taken off the end of a network for a likelihood.
fn strip(request: &LaplaceRequest, asked: bool) -> Result<Strip, ModelError> {
    Ok(match request.likelihood {
        LikelihoodKind::Categorical if asked => Strip::Softmax,
        _ if asked => {
            let problem = "--strip-softmax belongs to --likelihood categorical";
            return Err(ModelError::Request(problem.into()));
        }
        LikelihoodKind::Categorical => Strip::SoftmaxIfThere,
        LikelihoodKind::Bernoulli if request.link == Link::Logit => Strip::SigmoidIfThere,
        _ => Strip::Nothing,
    })
}

/// A warning about an operation at the end that does not belong to the likelihood.
fn misunderstood(request: &LaplaceRequest, link: Option<OutputLink>) -> Result<Option<String>, ModelError> {
    let (kind, suited) = match (request.likelihood, link) {
        (LikelihoodKind::Bernoulli, Some(OutputLink::Sigmoid)) => {
            let problem =
                "the network ends in a sigmoid, which belongs to --link logit: leave --link probit out";
            return Err(ModelError::Request(problem.into()));
        }
        (LikelihoodKind::Categorical, Some(OutputLink::Sigmoid)) => ("categorical", "bernoulli"),
        (LikelihoodKind::Bernoulli, Some(OutputLink::Softmax)) => ("bernoulli", "categorical"),
        _ => return Ok(None),
    };
    let name = link.map(OutputLink::name).unwrap_or_default();
    Ok(Some(format!(
        "WARNING: the network ends in a {name}, but --likelihood {kind} takes its outputs for logits, which flattens everything twice: is --likelihood {suited} what it was trained for?"
    )))
}

/// A graph as the text of an architecture file.
pub(crate) fn architecture(graph: &Graph) -> Result<String, ModelError> {
    let text = Architecture::from_graph(graph)?.to_toml();
    Ok(text.map_err(NetworkFileError::from)?)
}

/// SHA-256 of a file.
fn sha256(path: &Path) -> Result<String, ModelError> {
    digest(path).map_err(|e| ModelError::Request(format!("cannot read {}: {e}", path.display())))
}

/// A linear layer from `weight` `[C, P]` and, if there is one, `bias` `[C]`.
fn head(path: &Path) -> Result<Network<f64>, ModelError> {
    let wrong = |problem: String| {
        ModelError::Request(format!(
            "{}: {problem}; a head holds `weight` of shape [classes, features] and, if it has one, `bias` of shape [classes]",
            path.display()
        ))
    };
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz")) {
        let arrays = read_arrays(path, &ReadOptions::for_arrays())?;
        let find = |name: &str| arrays.iter().find(|(n, _)| n == name).map(|(_, array)| array);
        let weight = find("weight").ok_or_else(|| wrong("there is no `weight`".into()))?;
        let bias = find("bias");
        if let Some((other, _)) = arrays.iter().find(|(n, _)| n != "weight" && n != "bias") {
            return Err(wrong(format!("`{other}` is not expected")));
        }
        let [outputs, inputs] = *weight.shape() else {
            return Err(wrong(format!("`weight` has shape {:?}", weight.shape())));
        };
        if let Some(bias) = bias.filter(|b| b.shape() != [outputs]) {
            return Err(wrong(format!("`bias` has shape {:?}", bias.shape())));
        }
        let graph = head_graph(inputs, outputs, bias.is_some())?;
        let array = |a: &NumericArray| Array::new(a.shape().to_vec(), a.to_f64());
        return Ok(Network::new(graph, std::iter::once(weight).chain(bias).map(array).collect())?);
    }
    // Shapes first: they say what to ask for.
    let file = TensorFile::open(path).map_err(SafetensorsError::from).map_err(NetworkFileError::from)?;
    let mut names = file.names();
    names.sort();
    let named = |name: &str| names.iter().find(|n| n.rsplit('.').next() == Some(name));
    let Some(name) = named("weight") else { return Err(wrong("there is no `weight`".into())) };
    let found = file.info(name).map(|info| info.shape.clone()).unwrap_or_default();
    let [outputs, inputs] = found[..] else { return Err(wrong(format!("`{name}` has shape {found:?}"))) };
    let bias = named("bias").map(String::as_str);
    let mut builder = GraphBuilder::new(&[inputs])?;
    let names: Vec<&str> = std::iter::once(name.as_str()).chain(bias).collect();
    let operation = Operation::Linear(Linear { outputs, bias: bias.is_some() });
    let y = builder.add_named("head", operation, &[builder.input()], &names)?;
    let graph = builder.finish(y)?;
    let loaded = load_safetensors::<f64>(path, &graph).map_err(NetworkFileError::from)?;
    Ok(Network::new(graph, loaded.parameters)?)
}

fn head_graph(inputs: usize, outputs: usize, bias: bool) -> Result<Graph, ModelError> {
    let mut builder = GraphBuilder::new(&[inputs])?;
    let y = builder.add("head", Operation::Linear(Linear { outputs, bias }), &[builder.input()])?;
    Ok(builder.finish(y)?)
}
