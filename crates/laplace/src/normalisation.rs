//! **Scale invariance**: weights that feed a normalisation layer can be multiplied by any positive number without changing the network (thesis definition 3).
//!
//! Their norm then says nothing about fit, so that the usual evidence, which charges for it, is wrong, and one prior precision for all weights makes predictions depend on an
//! arbitrary scale (propositions 4 and 5). The repair is the evidence at the optimum of the linearised model with a precision for each layer, or the g-prior.

use posterior_networks::{Graph, Operation, Value};
use serde::{Deserialize, Serialize};

/// A node with weights whose scale the next normalisation removes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleInvariant {
    /// The layer whose weights are normalised.
    pub layer: String,
    /// The normalisation that removes their scale.
    pub normalisation: String,
    /// Their parameters, as positions in [`Graph::parameters`].
    pub parameters: Vec<usize>,
    /// Batch norm in evaluation mode keeps its stored statistics: the invariance holds only if they are scaled with the weights (spec `linearised_laplace`, section 4.3).
    pub stored_statistics: bool,
}

/// Every layer whose weights' scale is removed by a normalisation that alone reads its output.
pub fn scale_invariant_layers(graph: &Graph) -> Vec<ScaleInvariant> {
    let readers = |value: Value| {
        graph.nodes().iter().flat_map(|n| &n.inputs).filter(|v| **v == value).count()
            + usize::from(graph.output() == value)
    };
    let users = |parameter: usize| {
        graph.nodes().iter().flat_map(|n| &n.parameters).filter(|p| **p == parameter).count()
    };
    let mut found = Vec::new();
    for node in graph.nodes() {
        let stored_statistics = match node.operation {
            Operation::BatchNorm(_) => true,
            Operation::Normalise(_) => false,
            _ => continue,
        };
        // Back through what keeps proportions, to the layer that made them. Parameters met on the way (a bias) scale with it.
        let (mut value, mut parameters) = (node.inputs[0], Vec::new());
        while let Some(position) = value.node().filter(|_| readers(value) == 1) {
            let before = &graph.nodes()[position];
            match before.operation {
                Operation::Linear(_) | Operation::Convolution(_) => {
                    parameters.extend(before.parameters.iter().copied());
                    if parameters.iter().all(|p| users(*p) == 1) {
                        parameters.sort_unstable();
                        found.push(ScaleInvariant {
                            layer: before.name.clone(),
                            normalisation: node.name.clone(),
                            parameters,
                            stored_statistics,
                        });
                    }
                    break;
                }
                Operation::Bias(_) => parameters.extend(before.parameters.iter().copied()),
                Operation::Reshape(_)
                | Operation::Transpose(_)
                | Operation::Slice(_)
                | Operation::Pad(_)
                | Operation::Mean(_)
                | Operation::AveragePool(_)
                | Operation::MaxPool(_)
                | Operation::Resize(_)
                | Operation::Scale(_) => {}
                _ => break,
            }
            value = before.inputs[0];
        }
    }
    found
}

/// A sentence for people, or None when nothing is invariant.
pub fn explain(layers: &[ScaleInvariant]) -> Option<String> {
    let first = layers.first()?;
    let others = if layers.len() > 1 { format!(" and {} more", layers.len() - 1) } else { String::new() };
    Some(format!(
        "the scale of `{}`{others} is removed by normalisation (`{}`), so the norm of the trained weights says nothing about the prior: \
         the evidence is taken at the optimum of the linearised model, with a prior precision for each layer",
        first.layer, first.normalisation
    ))
}
