//! The network that makes features of rows.

use crate::ModelError;
use crate::network::{Strip, open_network};
use crate::options::{DbkOptions, DeepKind};
use faer::MatRef;
use posterior_kernels::KernelExpression;
use posterior_kernels::inducing::InducingChoice;
use posterior_linalg::random::Streams;
use posterior_linear::low_rank::LearnedFeatures;
use posterior_networks::architecture::{Inputs, ResidualPerceptron};
use posterior_networks::{Activation, Architecture, Network};
use posterior_tangent::{DeepInducing, NetworkFeatures};
use std::path::Path;

/// Basis functions and inducing points that are taken where nobody says how many.
const RANK: usize = 128;

/// Width of the network that is taken where nobody gives one.
const WIDTH: usize = 128;

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

/// Activations of one row, for plans: of the network that nobody gave, or where one is given of that.
pub(in crate::process) fn activations(
    options: &DbkOptions,
    kind: DeepKind,
    embedding: usize,
) -> (usize, usize) {
    let outputs = if kind.inducing { embedding } else { options.rank.unwrap_or(RANK) };
    (4 * WIDTH + outputs, WIDTH * (WIDTH + outputs))
}

fn refuse<T>(problem: String) -> Result<T, ModelError> {
    Err(ModelError::Request(problem))
}

impl Basis {
    /// The network for so many inputs, named as columns are.
    pub(in crate::process) fn new(
        (options, kind, embedding): (&DbkOptions, DeepKind, usize),
        names: &[String],
        seed: u64,
    ) -> Result<Self, ModelError> {
        let asked = options.rank;
        if asked == Some(0) {
            return Err(ModelError::Setting { what: "the rank", value: 0.0, expected: "at least 1" });
        }
        let wanted = if kind.inducing { embedding } else { asked.unwrap_or(RANK) };
        let (network, origin) = match &options.basis {
            None if options.freeze_basis => {
                return refuse(
                    "--freeze-basis keeps a trained network as it is: name it with --basis".into(),
                );
            }
            None => {
                let architecture = Architecture::ResidualPerceptron(ResidualPerceptron {
                    inputs: Inputs(vec![names.len()]),
                    width: WIDTH,
                    blocks: 1,
                    outputs: wanted,
                    activation: Activation::Tanh,
                    scale_outputs: false,
                });
                let network = Network::initialised(architecture.graph()?, Streams::new(seed))?;
                (network, format!("a residual perceptron of width {WIDTH}"))
            }
            Some(path) => opened(path, options.freeze_basis, seed)?,
        };
        let graph = network.graph();
        let (inputs, outputs): (usize, usize) =
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
        let fits =
            if kind.inducing { outputs == embedding } else { asked.is_none_or(|rank| rank == outputs) };
        if !fits {
            let what = if kind.inducing { "--embedding" } else { "--rank" };
            return refuse(format!(
                "{} has {outputs} outputs, and {what} asks for {wanted}: leave {what} out or give {outputs}",
                file()
            ));
        }
        let rank = if kind.inducing { asked.unwrap_or(RANK) } else { outputs };
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
        let embedded = DeepInducing::embedded(&network, x)?;
        let kernel = embedding_kernel(kernel, embedded.ncols())?;
        let points = InducingChoice::KMeans
            .points(&*kernel, embedded.as_ref(), self.rank, Streams::new(seed))
            .map_err(|e| ModelError::Inducing(e.to_string()))?;
        Ok(Box::new(DeepInducing::new(Some(network), kernel, points)?))
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
