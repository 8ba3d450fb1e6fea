//! The network that makes features of rows.

use crate::ModelError;
use crate::network::{Strip, open_network};
use crate::options::{DbkOptions, DeepKind};
use faer::MatRef;
use posterior_kernels::KernelExpression;
use posterior_kernels::inducing::InducingChoice;
use posterior_linalg::random::Streams;
use posterior_linear::embedding::Embedding;
use posterior_linear::low_rank::LearnedFeatures;
use posterior_networks::architecture::{Inputs, ResidualPerceptron};
use posterior_networks::{Activation, Architecture, Network};
use posterior_tangent::{DeepInducing, NetworkEmbedding, NetworkFeatures};
use std::path::Path;

/// Basis functions and inducing points that are taken where nobody says how many.
const RANK: usize = 128;

/// Outputs of a network that inducing points stand behind.
const EMBEDDING: usize = 2;

/// Width of the network that is taken where nobody gives one.
const WIDTH: usize = 128;

/// Its residual blocks. Trained on the bound, rows set aside of `pol`, `protein` and `kin8nm` have an NLL of -1.34, 0.92 and 0.05 with one, -1.62, 0.87 and 0.02 with two, -1.66, 0.82 and 0.01 with three.
const BLOCKS: usize = 3;

/// A network, with where it comes from.
pub(in crate::process) struct Basis {
    network: Network<f32>,
    /// In words.
    pub(super) origin: String,
    /// Features.
    pub(in crate::process) rank: usize,
    kind: DeepKind,
    frozen: bool,
}

/// Values of all nodes for one row, and weights, for plans: of the network that is named (as far as its file can be read), or of the one that is taken where nobody names one.
pub(in crate::process) fn sizes(
    (options, kind, embedding): (&DbkOptions, DeepKind, Option<usize>),
    inputs: usize,
) -> (usize, usize) {
    let named = options.basis.as_deref().and_then(|path| opened(path, false, 0).ok());
    let network =
        named.map_or_else(|| drawn(inputs, outputs(options, kind, embedding), 0), |(network, _)| Ok(network));
    network.map_or((0, 0), |network| {
        let weights = network.parameters().iter().map(posterior_networks::Array::len).sum();
        (network.graph().activations(), weights)
    })
}

/// Features, for plans: as asked, or as many as there are where nobody says.
pub(in crate::process) fn rank(options: &DbkOptions) -> usize {
    options.rank.unwrap_or(RANK)
}

/// Outputs of the network where nobody names one.
fn outputs(options: &DbkOptions, kind: DeepKind, embedding: Option<usize>) -> usize {
    if kind.inducing { embedding.unwrap_or(EMBEDDING) } else { rank(options) }
}

/// The network that is taken where nobody names one.
fn drawn(inputs: usize, outputs: usize, seed: u64) -> Result<Network<f32>, ModelError> {
    let architecture = Architecture::ResidualPerceptron(ResidualPerceptron {
        inputs: Inputs(vec![inputs]),
        width: WIDTH,
        blocks: BLOCKS,
        outputs,
        activation: Activation::Tanh,
        scale_outputs: false,
    });
    Ok(Network::initialised(architecture.graph()?, Streams::new(seed))?)
}

fn refuse<T>(problem: String) -> Result<T, ModelError> {
    Err(ModelError::Request(problem))
}

impl Basis {
    /// The network for so many inputs, named as columns are.
    pub(in crate::process) fn new(
        (options, kind, embedding): (&DbkOptions, DeepKind, Option<usize>),
        names: &[String],
        seed: u64,
    ) -> Result<Self, ModelError> {
        let asked = options.rank;
        if asked == Some(0) {
            return Err(ModelError::Setting { what: "the rank", value: 0.0, expected: "at least 1" });
        }
        let (network, origin) = match &options.basis {
            None if options.freeze_basis => {
                return refuse(
                    "--freeze-basis keeps a trained network as it is: name it with --basis".into(),
                );
            }
            None => {
                let network = drawn(names.len(), outputs(options, kind, embedding), seed)?;
                (network, format!("a residual perceptron of {BLOCKS} blocks of width {WIDTH}"))
            }
            Some(path) => opened(path, options.freeze_basis, seed)?,
        };
        let graph = network.graph();
        let (inputs, found): (usize, usize) =
            (graph.input_shape().iter().product(), graph.output_shape().iter().product());
        let file = || options.basis.as_deref().unwrap_or(Path::new("")).display().to_string();
        if inputs != names.len() {
            return refuse(format!(
                "{} takes {inputs} inputs, the table has {} columns of features: {}",
                file(),
                names.len(),
                names.join(", ")
            ));
        }
        let (what, wanted) = if kind.inducing { ("--embedding", embedding) } else { ("--rank", asked) };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return refuse(format!(
                "{} has {found} outputs, and {what} asks for {wanted}: leave {what} out or give {found}",
                file()
            ));
        }
        let rank = if kind.inducing && !kind.dense { asked.unwrap_or(RANK) } else { found };
        Ok(Self { network, origin, rank, kind, frozen: options.freeze_basis })
    }

    /// The architecture, as its text.
    pub(super) fn architecture(&self) -> Result<String, ModelError> {
        let architecture = Architecture::from_graph(self.network.graph())?;
        architecture.to_toml().map_err(|e| ModelError::Request(e.to_string()))
    }

    /// What is made of it: outputs, or inducing points among what it makes of the rows of x, under a kernel on its outputs.
    pub(super) fn features(
        &self,
        kernel: &KernelExpression,
        x: MatRef<'_, f64>,
        seed: u64,
    ) -> Result<Box<dyn LearnedFeatures>, ModelError> {
        if self.rank > x.nrows() && self.kind.inducing {
            return refuse(format!(
                "{} inducing points (--rank) are more than the {} rows to learn from",
                self.rank,
                x.nrows()
            ));
        }
        let network = self.network.clone();
        if !self.kind.inducing {
            return Ok(match self.frozen {
                true => Box::new(NetworkFeatures::frozen(network)),
                false => Box::new(NetworkFeatures::new(network)),
            });
        }
        let embedded = NetworkEmbedding::new(network.clone()).embedded(x)?;
        let kernel = embedding_kernel(kernel, embedded.ncols())?;
        let points = InducingChoice::KMeans
            .points(&*kernel, embedded.as_ref(), self.rank, Streams::new(seed))
            .map_err(|e| ModelError::Inducing(e.to_string()))?;
        let features = DeepInducing::new(Some(network), kernel, points)?;
        Ok(Box::new(if self.frozen { features.with_frozen_network() } else { features }))
    }
}

impl Basis {
    /// The network as a map that is learned, or kept as it is.
    pub(super) fn embedding(&self) -> NetworkEmbedding<f32> {
        let network = self.network.clone();
        if self.frozen { NetworkEmbedding::frozen(network) } else { NetworkEmbedding::new(network) }
    }
}

/// A kernel on the outputs of a network.
pub(super) fn embedding_kernel(
    kernel: &KernelExpression,
    outputs: usize,
) -> Result<Box<dyn posterior_kernels::Kernel<f64>>, ModelError> {
    let names: Vec<String> = (1..=outputs).map(|i| format!("embedding{i}")).collect();
    Ok(kernel.build(&names)?)
}

/// A network from a file: TOML describes one that is drawn here, anything else has its weights.
fn opened(path: &Path, frozen: bool, seed: u64) -> Result<(Network<f32>, String), ModelError> {
    let name = path.display();
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        if frozen {
            return refuse(format!(
                "{name} has no weights that --freeze-basis could keep: name a trained network"
            ));
        }
        let architecture = Architecture::read(path).map_err(|e| ModelError::Request(e.to_string()))?;
        let network = Network::initialised(architecture.graph()?, Streams::new(seed))?;
        return Ok((network, format!("the architecture {name}")));
    }
    let opened = open_network::<f32>(path, None, Strip::Nothing)?;
    Ok((opened.network, format!("the trained network {name}")))
}
