//! Arrays in, outputs out.

use super::{NetworkFileError, Opened};
use posterior_data::{ArrayValues, NumericArray};
use posterior_networks::Precision;

/// Outputs of a network.
#[derive(Clone, Debug)]
pub struct Forwarded {
    /// `[examples, outputs...]`, in the network's precision.
    pub outputs: NumericArray,
    /// What was done to inputs and outputs.
    pub notes: Vec<String>,
}

/// The outputs of an opened network on an array whose first axis counts examples, prepared as in training where the network's file says how.
///
/// # Errors
/// When shapes do not fit or numbers are not finite.
pub fn forward<T: Precision>(opened: &Opened<T>, data: &NumericArray) -> Result<Forwarded, NetworkFileError> {
    let (x, before) = opened.preparation.inputs::<T>(data, opened.network.graph().input_shape())?;
    let outputs = opened.network.forward(&x)?;
    let (outputs, after) = opened.preparation.outputs(outputs);
    let shape = outputs.shape().to_vec();
    let values = if size_of::<T>() == 4 {
        ArrayValues::F32(outputs.values().iter().map(|v| v.to_f64() as f32).collect())
    } else {
        ArrayValues::F64(outputs.values().iter().map(|v| v.to_f64()).collect())
    };
    Ok(Forwarded {
        outputs: NumericArray::new(shape, values)?,
        notes: before.into_iter().chain(after).collect(),
    })
}
