//! Values of hyperparameters by their names.

use crate::{Hyperparameter, ModelError};
use posterior_gp::exact::ExactGp;
use posterior_optim::Parameters;

/// Gives a model values by their names.
pub(crate) fn set(model: &mut ExactGp, given: &[Hyperparameter]) -> Result<(), ModelError> {
    let segments = model.segments();
    let listed = || segments.iter().map(|s| format!("{} ({})", s.name, s.len())).collect::<Vec<String>>();
    if let Some(other) = given.iter().find(|h| !segments.iter().any(|s| s.name == h.name)) {
        return Err(ModelError::UnknownHyperparameter { name: other.name.clone(), known: listed() });
    }
    let mut values = Vec::new();
    for segment in &segments {
        let found = given.iter().find(|h| h.name == segment.name && h.values.len() == segment.len());
        let Some(found) = found else {
            return Err(ModelError::Hyperparameters {
                missing: segment.name.clone(),
                length: segment.len(),
                known: listed(),
            });
        };
        if let Some((value, expected)) = found.out_of_range(segment) {
            let what = "a given hyperparameter";
            return Err(ModelError::Setting { what, value, expected: expected.into() });
        }
        values.extend_from_slice(&found.values);
    }
    model.set_values(&values);
    let (noise, floor) = (model.noise().noise_variance(), model.noise().floor());
    if noise <= floor {
        return Err(ModelError::GivenNoise { noise, floor });
    }
    Ok(())
}
