//! Which weights are random.

use crate::TomographyError;
use posterior_networks::{Graph, Operation, Selection};
use std::ops::Range;

/// The filters of one tensor: `count` of `kernel` positions each, one after the other from `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filters {
    /// Where the tensor begins among the weights.
    pub start: usize,
    /// Filters: pairs of output and input channel.
    pub count: usize,
}

/// One block of the network with hyperparameters of its own: `in`, `down0`, `skip1`, `up0`, ..., `out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightBlock {
    /// Its name.
    pub name: String,
    /// Shape of its filters, as `[3, 3]`.
    pub kernel: Vec<usize>,
    /// Its tensors.
    pub filters: Vec<Filters>,
}

impl WeightBlock {
    /// Positions of a filter.
    pub fn positions(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Ranges of its weights.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let positions = self.positions();
        self.filters.iter().map(move |f| f.start..f.start + f.count * positions)
    }

    /// Its weights.
    pub fn weights(&self) -> usize {
        self.ranges().map(|r| r.len()).sum()
    }
}

/// The weights of all convolutions (no biases, no norms: spec `tomography`, section 4.1), by block.
#[derive(Clone, Debug)]
pub struct ConvolutionWeights {
    selection: Selection,
    blocks: Vec<WeightBlock>,
}

impl ConvolutionWeights {
    /// Of a network. A block is what stands before the first point of a layer's name; convolutions of a block whose kernels differ are blocks of their own.
    ///
    /// # Errors
    /// [`TomographyError::NoConvolutions`].
    pub fn of(graph: &Graph) -> Result<Self, TomographyError> {
        let nodes = graph.nodes().iter().filter(|n| matches!(n.operation, Operation::Convolution(_)));
        let names: Vec<String> =
            nodes.filter_map(|n| n.parameters.first()).map(|p| graph.parameters()[*p].name.clone()).collect();
        let patterns: Vec<&str> = names.iter().map(String::as_str).collect();
        if patterns.is_empty() {
            return Err(TomographyError::NoConvolutions);
        }
        let selection = Selection::matching(graph, &patterns)?;
        let mut blocks: Vec<WeightBlock> = Vec::new();
        for part in selection.parts() {
            let block = part.name.split('.').next().unwrap_or(&part.name);
            let kernel = part.shape[2..].to_vec();
            let positions: usize = kernel.iter().product();
            let own = Filters { start: part.offset, count: part.length / positions.max(1) };
            match blocks.iter_mut().find(|b| b.name == block && b.kernel == kernel) {
                Some(known) => known.filters.push(own),
                None => blocks.push(WeightBlock { name: block.into(), kernel, filters: vec![own] }),
            }
        }
        Ok(Self { selection, blocks })
    }

    /// The weights as a selection of the network's parameters.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The blocks.
    pub fn blocks(&self) -> &[WeightBlock] {
        &self.blocks
    }

    /// Weights, d.
    pub fn len(&self) -> usize {
        self.selection.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.selection.is_empty()
    }
}
