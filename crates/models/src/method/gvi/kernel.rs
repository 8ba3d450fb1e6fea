//! The kernel of the process that regularises: on a table's columns, or on what a network makes of them.

use crate::method::deep::{Basis, Columns, Sizes, sizes};
use crate::method::kernel_behind;
use crate::options::{BasisOptions, DbkOptions, DeepKind};
use crate::{KernelNetwork, ModelError};
use posterior_kernels::{Kernel, KernelExpression};

/// A kernel acts on its outputs, and takes no notice of a constant.
const KIND: DeepKind = DeepKind { inducing: true, exact: false, dense: true };

/// A kernel as learning begins.
pub(crate) struct PriorKernel {
    pub(crate) kernel: Box<dyn Kernel<f64>>,
    /// Columns that it sees.
    pub(crate) columns: usize,
    pub(crate) network: Option<KernelNetwork>,
}

/// What learned features of this kind are told, so that one place reads networks.
fn as_basis(network: &BasisOptions) -> DbkOptions {
    DbkOptions { network: network.clone(), ..DbkOptions::default() }
}

/// The kernel of this text, on a table's columns or behind the network that is named.
///
/// # Errors
/// Networks that cannot be read or do not fit the table; kernels that do not fit what there is.
pub(crate) fn begin(
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
        return Err(ModelError::Request("--set basis names no network".into()));
    };
    // Searches compare values of the evidence that differ by less than single precision keeps.
    let own = basis.embedding()?.network().cast::<f64>()?;
    let kernel = kernel_behind(own, text, network.freeze_basis)?;
    let (outputs, weights) = (basis.rank, kernel.map().unconstrained().len());
    let origin = basis.origin.clone();
    let network = KernelNetwork { origin, architecture, kept: network.freeze_basis, outputs, weights };
    Ok(PriorKernel { kernel: Box::new(kernel), columns: outputs, network: Some(network) })
}

/// How large the network is, for plans; None where there is none.
pub(crate) fn network_sizes(network: &BasisOptions, inputs: usize) -> Option<Sizes> {
    network.basis.as_ref().map(|_| sizes((&as_basis(network), KIND, None), inputs))
}
