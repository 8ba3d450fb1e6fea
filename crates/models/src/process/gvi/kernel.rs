//! The kernel of the process that regularises: on a table's columns, or on what a network makes of them.

use crate::ModelError;
use crate::network::{add_network_as, take_network_as};
use crate::options::{BasisOptions, DbkOptions, DeepKind};
use crate::process::deep::{Basis, Columns, Sizes, embedding_kernel, sizes};
use posterior_kernels::{Kernel, KernelExpression};
use posterior_networks::{Architecture, Network};
use posterior_store::{StoreError, Tensors};
use posterior_tangent::{MappedKernel, NetworkEmbedding};
use serde::{Deserialize, Serialize};
use std::any::Any;

/// A kernel acts on its outputs, and takes no notice of a constant.
const KIND: DeepKind = DeepKind { inducing: true, exact: false, dense: true };

/// Prefix of its network's tensors.
const NETWORK: &str = "kernel_network.";

/// A network behind which a kernel acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNetwork {
    /// Where it comes from, in words.
    pub origin: String,
    /// As TOML.
    pub architecture: String,
    /// Whether its weights stayed as they were.
    pub kept: bool,
    /// Its outputs, on which the kernel acts.
    pub outputs: usize,
    /// Weights that are hyperparameters, or would be.
    pub weights: usize,
}

/// A kernel as learning begins.
pub(super) struct PriorKernel {
    pub(super) kernel: Box<dyn Kernel<f64>>,
    /// Columns that it sees.
    pub(super) columns: usize,
    pub(super) network: Option<KernelNetwork>,
}

/// What learned features of this kind are told, so that one place reads networks.
fn as_basis(network: &BasisOptions) -> DbkOptions {
    DbkOptions { network: network.clone(), ..DbkOptions::default() }
}

/// The kernel of this text, on a table's columns or behind the network that is named.
///
/// # Errors
/// Networks that cannot be read or do not fit the table; kernels that do not fit what there is.
pub(super) fn begin(
    network: &BasisOptions,
    text: &KernelExpression,
    columns: Columns<'_>,
    seed: u64,
) -> Result<PriorKernel, ModelError> {
    if network.basis.is_none() {
        let kernel = text.build(columns.names)?;
        return Ok(PriorKernel { kernel, columns: columns.names.len(), network: None });
    }
    let basis = Basis::new((&as_basis(network), KIND, None), columns, seed)?;
    let Some(architecture) = basis.architecture(false) else {
        return Err(ModelError::Request("--basis names no network".into()));
    };
    // Searches compare values of the evidence that differ by less than single precision keeps.
    let own = basis.embedding()?.network().cast::<f64>()?;
    let kernel = behind(own, text, network.freeze_basis)?;
    let (outputs, weights) = (basis.rank, kernel.map().unconstrained().len());
    let origin = basis.origin.clone();
    let network = KernelNetwork { origin, architecture, kept: network.freeze_basis, outputs, weights };
    Ok(PriorKernel { kernel: Box::new(kernel), columns: outputs, network: Some(network) })
}

/// The kernel of this text behind a network.
fn behind(network: Network<f64>, text: &KernelExpression, kept: bool) -> Result<MappedKernel, ModelError> {
    let outputs = network.graph().output_shape().iter().product();
    let kernel =
        MappedKernel::new(embedding_kernel(text, outputs)?, Box::new(NetworkEmbedding::new(network)));
    Ok(if kept { kernel.with_map_kept() } else { kernel })
}

/// Adds its network's arrays, if it has one: weights stand among hyperparameters as well, whatever else a network knows only here.
pub(crate) fn write(kernel: &dyn Kernel<f64>, tensors: &mut Tensors) {
    let kernel: &dyn Any = kernel;
    let map = kernel.downcast_ref::<MappedKernel>().map(|kernel| kernel.map().as_any());
    if let Some(embedding) = map.and_then(|map| map.downcast_ref::<NetworkEmbedding<f64>>()) {
        add_network_as(NETWORK, embedding.network(), tensors);
    }
}

/// The kernel of a file, with the network that it has.
pub(crate) fn read(
    summary: Option<&KernelNetwork>,
    (text, names): (&KernelExpression, &[String]),
    tensors: &mut Tensors,
) -> Result<Box<dyn Kernel<f64>>, StoreError> {
    let Some(own) = summary else { return text.build(names).map_err(|e| tensors.corrupt(e)) };
    let architecture = Architecture::from_toml(&own.architecture).map_err(|e| tensors.corrupt(e))?;
    let graph = architecture.graph().map_err(|e| tensors.corrupt(e))?;
    let inputs: usize = graph.input_shape().iter().product();
    if inputs != names.len() {
        return Err(tensors.corrupt("the network before its kernel takes other inputs than the table has"));
    }
    let network = take_network_as::<f64>(NETWORK, graph, tensors)?;
    let kernel = behind(network, text, own.kept).map_err(|e| tensors.corrupt(e))?;
    Ok(Box::new(kernel))
}

/// How large the network is, for plans; None where there is none.
pub(super) fn network_sizes(network: &BasisOptions, inputs: usize) -> Option<Sizes> {
    network.basis.as_ref().map(|_| sizes((&as_basis(network), KIND, None), inputs))
}
