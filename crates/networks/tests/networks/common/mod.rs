//! Numbers that do not depend on any generator, so that another program can make the same ones.

use posterior_networks::{Array, Graph, Network, NetworkError};

/// Weights by formula: `sin(0.37 i + phase(name))`, scaled so that activations keep their size.
pub(crate) fn formula_network(graph: Graph) -> Result<Network<f64>, NetworkError> {
    let parameters = graph
        .parameters()
        .iter()
        .map(|slot| {
            let phase = slot.name.bytes().map(usize::from).sum::<usize>() % 97;
            let fan = slot.len() / slot.shape.first().copied().unwrap_or(1).max(1);
            let value = |i: usize| {
                let s = (0.37 * i as f64 + phase as f64).sin();
                let flat = slot.shape.len() <= 1;
                if slot.name.ends_with("running_var") {
                    1.0 + 0.5 * s
                } else if flat && (slot.name.ends_with(".weight") || slot.name.ends_with("scale")) {
                    1.0 + 0.3 * s
                } else if flat {
                    0.2 * s
                } else {
                    s * (3.0 / fan as f64).sqrt()
                }
            };
            Array::new(slot.shape.clone(), (0..slot.len()).map(value).collect())
        })
        .collect();
    Network::new(graph, parameters)
}

/// Two examples: `sin(0.11 i + 0.5)`.
pub(crate) fn formula_input(shape: &[usize]) -> Array<f64> {
    let shape: Vec<usize> = [2].into_iter().chain(shape.iter().copied()).collect();
    let length = shape.iter().product::<usize>();
    Array::new(shape, (0..length).map(|i| (0.11 * i as f64 + 0.5).sin()).collect())
}
