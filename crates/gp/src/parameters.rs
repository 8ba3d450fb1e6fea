//! A model's parts (kernel, mean, noise) as one vector of parameters, laid end to end.

use posterior_optim::{Parameters, Segment};

pub(crate) fn segments(parts: [&dyn Parameters; 3]) -> Vec<Segment> {
    parts.iter().flat_map(|part| part.segments()).collect()
}

pub(crate) fn values(parts: [&dyn Parameters; 3]) -> Vec<f64> {
    parts.iter().flat_map(|part| part.values()).collect()
}

/// Gives each part its share of `values`.
pub(crate) fn set_values(parts: [&mut dyn Parameters; 3], values: &[f64]) {
    let mut rest = values;
    for part in parts {
        let (own, others) = rest.split_at(part.values().len());
        part.set_values(own);
        rest = others;
    }
    assert!(rest.is_empty(), "more numbers than parameters");
}
