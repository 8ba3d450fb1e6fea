//! The network that makes features of rows.

use super::columns::{Columns, scaling};
use crate::ModelError;
use crate::method::embedding_kernel;
use crate::network::{NetworkFile, Preparation, Strip, open_network, without_link};
use crate::options::{BasisLayer, DbkOptions, DeepKind};
use crate::prepare::candidates;
use faer::MatRef;
use posterior_kernels::inducing::InducingChoice;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_linalg::random::Streams;
use posterior_linear::embedding::Embedding;
use posterior_linear::low_rank::{LearnedFeatures, LowRankRows};
use posterior_networks::architecture::{Inputs, ResidualPerceptron};
use posterior_networks::{Activation, Architecture, Network};
use posterior_notes::fixes::{BASIS, DKL, EXACT, SGPR, SVDKL, SVGP};
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

/// What a user asks for: the options, which features, and how wide the embedding is.
pub(crate) type Wanted<'a> = (&'a DbkOptions, DeepKind, Option<usize>);

/// What features are made of, with where it comes from.
pub(crate) struct Basis {
    /// None where inducing points stand among the rows themselves.
    behind: Option<Behind>,
    /// The same with outputs divided by the root of their number, where it is drawn here.
    small: Option<Behind>,
    /// In words.
    pub(crate) origin: String,
    /// Features; of the process itself, outputs of the network.
    pub(crate) rank: usize,
    kind: DeepKind,
    frozen: bool,
    /// Columns of the inputs.
    names: Vec<String>,
}

/// A network with its architecture, as text.
struct Behind {
    network: Network<f32>,
    architecture: String,
}

impl Behind {
    /// Refuses a network that cannot be written down, which would fail after training otherwise.
    fn new(network: Network<f32>) -> Result<Self, ModelError> {
        let architecture = Architecture::from_graph(network.graph())?;
        let architecture = architecture.to_toml().map_err(|e| ModelError::Request(e.to_string()))?;
        Ok(Self { network, architecture })
    }
}

/// How large everything is, for plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Values of all nodes for one row.
    pub(crate) activations: usize,
    /// Numbers that are learned.
    pub(crate) weights: usize,
    /// What the network makes of a row; without one, columns.
    pub(crate) outputs: usize,
    /// Features; of the process itself none.
    pub(crate) features: usize,
}

/// The sizes of what is named, as far as its file can be read, or of what is taken where nobody names anything.
pub(crate) fn sizes((options, kind, embedding): Wanted<'_>, inputs: usize) -> Sizes {
    let points = options.rank.unwrap_or(RANK);
    if options.without_network() {
        // A copy of each row in doubles; points and about as many hyperparameters as columns.
        let weights = inputs.saturating_mul(points + 1);
        return Sizes { activations: 2 * inputs, weights, outputs: inputs, features: points };
    }
    let named = options.network.basis.as_deref().and_then(|path| opened(path, (options, kind), 0).ok());
    let network = named.map_or_else(
        || drawn((inputs, outputs(options, kind, embedding)), false, 0).ok(),
        |opened| Some(opened.network),
    );
    let (activations, weights, outputs) = match &network {
        Some(network) => {
            let weights = network.parameters().iter().map(posterior_networks::Array::len).sum();
            let graph = network.graph();
            (graph.activations(), weights, graph.output_shape().iter().product())
        }
        None => (0, 0, outputs(options, kind, embedding)),
    };
    let features = match (kind.dense, kind.inducing) {
        (true, _) => 0,
        (false, true) => points,
        (false, false) => outputs,
    };
    Sizes { activations, weights, outputs, features }
}

/// Outputs of the network where nobody names one.
fn outputs(options: &DbkOptions, kind: DeepKind, embedding: Option<usize>) -> usize {
    if kind.inducing { embedding.unwrap_or(EMBEDDING) } else { options.rank.unwrap_or(RANK) }
}

/// The network that is taken where nobody names one. Small outputs are divided by the root of their number, so that features begin with a variance of some hundredths instead of some units.
fn drawn((inputs, outputs): (usize, usize), small: bool, seed: u64) -> Result<Network<f32>, ModelError> {
    let architecture = Architecture::ResidualPerceptron(ResidualPerceptron {
        inputs: Inputs(vec![inputs]),
        width: WIDTH,
        blocks: BLOCKS,
        outputs,
        activation: Activation::Tanh,
        scale_outputs: small,
    });
    Ok(Network::initialised(architecture.graph()?, Streams::new(seed))?)
}

pub(crate) fn refuse<T>(problem: String) -> Result<T, ModelError> {
    Err(ModelError::Request(problem))
}

impl Basis {
    /// What features are made of for a table of these columns.
    ///
    /// # Errors
    /// Files that cannot be read, networks of other inputs, columns or outputs than are there, and what means nothing beside the rest.
    pub(crate) fn new(
        (options, kind, embedding): Wanted<'_>,
        columns: Columns<'_>,
        seed: u64,
    ) -> Result<Self, ModelError> {
        let asked = options.rank;
        if asked == Some(0) {
            return Err(ModelError::Setting { what: "the rank", value: 0.0, expected: "at least 1".into() });
        }
        let names = columns.names;
        if options.without_network() {
            check_without((options, kind, embedding))?;
            return Ok(Self {
                behind: None,
                small: None,
                origin: "no network: inducing points among the rows".into(),
                rank: asked.unwrap_or(RANK),
                kind,
                frozen: false,
                names: names.to_vec(),
            });
        }
        let Some(path) = &options.network.basis else {
            if options.network.freeze_basis {
                return refuse(format!(
                    "--set freeze-basis keeps a trained network as it is: name it with {BASIS}"
                ));
            }
            if options.network.basis_layer == BasisLayer::LastHidden {
                return refuse(format!(
                    "--set basis-layer=last-hidden takes the last layer off a network: name it with {BASIS}"
                ));
            }
            let drawn = |small| drawn((names.len(), outputs(options, kind, embedding)), small, seed);
            let origin = format!("a residual perceptron of {BLOCKS} blocks of width {WIDTH}");
            let own = Self::behind(drawn(false)?, origin, (options, kind, embedding), names)?;
            let small = if kind.inducing { None } else { Some(Behind::new(drawn(true)?)?) };
            return Ok(Self { small, ..own });
        };
        let file = path.display().to_string();
        let Opened { mut network, mut origin, preparation } = opened(path, (options, kind), seed)?;
        let scaling = preparation.map(|own| scaling(&file, &own, columns)).transpose()?;
        let graph = network.graph();
        let (inputs, found): (usize, usize) =
            (graph.input_shape().iter().product(), graph.output_shape().iter().product());
        if inputs != names.len() {
            return refuse(format!(
                "{file} takes {inputs} inputs, the table has {} columns of features: {}",
                names.len(),
                names.join(", ")
            ));
        }
        let (what, wanted) =
            if kind.inducing { ("--set embedding", embedding) } else { ("--set rank", asked) };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let of_it = match options.network.basis_layer {
                BasisLayer::Outputs => "outputs",
                BasisLayer::LastHidden => "features before its last layer",
            };
            return refuse(format!(
                "{file} has {found} {of_it}, and {what} asks for {wanted}: leave {what} out or give {found}"
            ));
        }
        if let Some(scaling) = scaling {
            origin = format!("{origin}{}", scaling.in_words());
            network = scaling.before(network)?;
        }
        Self::behind(network, origin, (options, kind, embedding), names)
    }

    /// Features of a network's outputs, or inducing points behind it. A network that cannot be written down is refused here, and not after training.
    fn behind(
        network: Network<f32>,
        origin: String,
        (options, kind, _): Wanted<'_>,
        names: &[String],
    ) -> Result<Self, ModelError> {
        let outputs = network.graph().output_shape().iter().product();
        let rank = if kind.inducing && !kind.dense { options.rank.unwrap_or(RANK) } else { outputs };
        let behind = Some(Behind::new(network)?);
        let (frozen, names) = (options.network.freeze_basis, names.to_vec());
        Ok(Self { behind, small: None, origin, rank, kind, frozen, names })
    }

    /// The network, small or as it is; where it was not drawn here both are one.
    fn network(&self, small: bool) -> Option<&Behind> {
        self.small.as_ref().filter(|_| small).or(self.behind.as_ref())
    }

    /// The architecture, as its text; None without a network.
    pub(crate) fn architecture(&self, small: bool) -> Option<String> {
        self.network(small).map(|behind| behind.architecture.clone())
    }

    /// What is made of it: outputs, or inducing points among what it makes of the rows (or these themselves; of some, drawn at random, where there are very many), under a kernel on its outputs (or on columns by their names). `small` ones begin with variances near nothing.
    pub(crate) fn features(
        &self,
        small: bool,
        kernel: &KernelExpression,
        rows: &dyn LowRankRows,
        seed: u64,
    ) -> Result<Box<dyn LearnedFeatures>, ModelError> {
        let count = rows.row_count();
        if self.rank > count && self.kind.inducing {
            return refuse(format!(
                "{} inducing points (--set rank) are more than the {} rows to learn from",
                self.rank, count
            ));
        }
        let seen = || match candidates(count, seed) {
            Some(drawn) => rows.rows_at(&drawn),
            None => rows.rows_in(0..count),
        };
        let among = |kernel: &dyn Kernel<f64>, rows: MatRef<'_, f64>| {
            InducingChoice::KMeans.points(kernel, rows, self.rank, Streams::new(seed))
        };
        let Some(Behind { network, .. }) = self.network(small) else {
            if let Some(column) = kernel.count_columns(&self.names).first() {
                return refuse(format!(
                    "inducing points move, and the counts of `{}` that --kernel compares do not: with --set basis=none take another kernel, or {SGPR} or {SVGP:-}, which keep points of counts where they are",
                    self.names[*column]
                ));
            }
            let kernel = kernel.build(&self.names)?;
            let points = among(&*kernel, seen()?.data().inputs)?;
            return Ok(Box::new(DeepInducing::<f32>::new(None, kernel, points)?));
        };
        let network = network.clone();
        if !self.kind.inducing {
            return Ok(match self.frozen {
                true => Box::new(NetworkFeatures::frozen(network)),
                false => Box::new(NetworkFeatures::new(network)),
            });
        }
        let embedded = NetworkEmbedding::new(network.clone()).embedded(seen()?.data().inputs)?;
        let kernel = embedding_kernel(kernel, embedded.ncols())?;
        let points = among(&*kernel, embedded.as_ref())?;
        let features = DeepInducing::new(Some(network), kernel, points)?;
        Ok(Box::new(if self.frozen { features.with_frozen_network() } else { features }))
    }

    /// The network as a map that is learned, or kept as it is.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) fn embedding(&self) -> Result<NetworkEmbedding<f32>, ModelError> {
        let Some(Behind { network, .. }) = &self.behind else {
            return refuse(format!("--set dense is a process behind a network: name one with {BASIS}"));
        };
        let network = network.clone();
        Ok(if self.frozen { NetworkEmbedding::frozen(network) } else { NetworkEmbedding::new(network) })
    }
}

/// Refuses what is said of a network where there is none.
fn check_without((options, kind, embedding): Wanted<'_>) -> Result<(), ModelError> {
    ModelError::refuse_first(&[
        (
            !kind.inducing,
            &format_args!(
                "--set basis=none leaves dbk and svdbk without features, which are a network's outputs: inducing points among the rows are {DKL} or {SVDKL:-}"
            ),
        ),
        (
            kind.dense,
            &format_args!(
                "--set dense beside --set basis=none is a process of all rows without a network: that is {EXACT}"
            ),
        ),
        (
            embedding.is_some(),
            &"--set embedding counts a network's outputs, and --set basis=none has no network: leave one of them out",
        ),
        (
            options.network.freeze_basis,
            &"--set freeze-basis keeps a network as it is, and --set basis=none has no network: leave one of them out",
        ),
        (
            options.network.basis_layer == BasisLayer::LastHidden,
            &"--set basis-layer takes the last layer off a network, and --set basis=none has no network: leave one of them out",
        ),
    ])
}

/// A network from a file, as much of it as is asked for.
struct Opened {
    network: Network<f32>,
    /// In words.
    origin: String,
    /// What its file says of its inputs; None of one that is drawn here.
    preparation: Option<Preparation>,
}

/// A network from a file: TOML describes one that is drawn here, anything else has its weights.
fn opened(path: &Path, (options, kind): (&DbkOptions, DeepKind), seed: u64) -> Result<Opened, ModelError> {
    let name = path.display();
    let hidden = options.network.basis_layer == BasisLayer::LastHidden;
    let mut found = if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        if options.network.freeze_basis {
            return refuse(format!(
                "{name} has no weights that --set freeze-basis could keep: name a trained network"
            ));
        }
        let architecture = Architecture::read(path).map_err(|e| ModelError::Request(e.to_string()))?;
        let network = Network::initialised(architecture.graph()?, Streams::new(seed))?;
        Opened { network, origin: format!("the architecture {name}"), preparation: None }
    } else {
        // Probabilities are made behind the last layer.
        let strip = if hidden { Strip::SoftmaxIfThere } else { Strip::Nothing };
        let opened = open_network::<f32>(&NetworkFile { strip, ..NetworkFile::new(path) })?;
        let origin = format!("the trained network {name}");
        Opened { network: opened.network, origin, preparation: Some(opened.preparation) }
    };
    if hidden {
        for link in [Strip::SoftmaxIfThere, Strip::SigmoidIfThere] {
            found.network = without_link(found.network, link)?.network;
        }
        // A kernel takes no notice of a constant.
        let one = !kind.inducing && found.network.graph().last_layer().is_ok_and(|last| last.bias);
        found.network = found.network.without_last_layer(one).map_err(|e| {
            ModelError::Request(format!(
                "{name}: {e}: --set basis-layer=last-hidden takes a fully connected layer off a network's end, leave it out for the network's outputs"
            ))
        })?;
        let one = if one { ", with a constant 1 for its bias" } else { "" };
        found.origin = format!("what the last layer of {} reads{one}", found.origin);
    }
    Ok(found)
}
