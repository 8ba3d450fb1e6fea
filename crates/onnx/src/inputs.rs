//! What a model is fed: one input or several, each with a batch axis.

use super::definitions::{TensorProto, ValueInfoProto, element_type};
use super::error::{OnnxError, short};
use std::collections::HashMap;

/// Inputs that a model may have.
const MOST_INPUTS: usize = 1000;

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fed {
    pub(super) name: String,
    /// The shape of one example.
    pub(super) shape: Vec<usize>,
    /// Whether it holds whole numbers.
    pub(super) whole: bool,
}

/// The inputs that no initialiser is, in their order, and the length of their batch axis, if it is fixed.
pub(super) fn fed(
    inputs: &[ValueInfoProto],
    initialisers: &HashMap<&str, &TensorProto>,
    file: &str,
) -> Result<(Vec<Fed>, Option<usize>), OnnxError> {
    let error = |problem: String| OnnxError::Interface { file: file.into(), problem };
    let own = |v: &&ValueInfoProto| !initialisers.contains_key(v.name.as_deref().unwrap_or_default());
    let own: Vec<&ValueInfoProto> = inputs.iter().filter(own).collect();
    if own.is_empty() || own.len() > MOST_INPUTS {
        return Err(error(format!("the model has {} inputs; networks have 1 to {MOST_INPUTS}", own.len())));
    }
    let mut out: Vec<Fed> = Vec::with_capacity(own.len());
    let mut batch = None;
    for input in own {
        let (fed, examples) = one(input, file)?;
        if out.iter().any(|other| other.name == fed.name) {
            return Err(error(format!("two inputs are called `{}`", short(&fed.name))));
        }
        if *batch.get_or_insert(examples) != examples {
            return Err(error(format!(
                "the batch axes of the inputs `{}` and `{}` differ: export all with the same or with a dynamic one",
                short(&out[0].name),
                short(&fed.name)
            )));
        }
        out.push(fed);
    }
    Ok((out, batch.flatten()))
}

fn one(input: &ValueInfoProto, file: &str) -> Result<(Fed, Option<usize>), OnnxError> {
    let error = |problem: String| OnnxError::Interface { file: file.into(), problem };
    let name = input.name.clone().unwrap_or_default();
    let shown = short(&name);
    let tensor = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let tensor = tensor.ok_or_else(|| error(format!("the input `{shown}` is not a tensor")))?;
    let whole = match tensor.elem_type.unwrap_or(0) {
        element_type::FLOAT | element_type::DOUBLE | element_type::FLOAT16 | element_type::BFLOAT16 => false,
        element_type::INT32 | element_type::INT64 => true,
        other => {
            return Err(error(format!(
                "the input `{shown}` has element type {other}; it must hold floats or whole numbers"
            )));
        }
    };
    let axes = tensor.shape.as_ref().map(|s| s.dim.as_slice()).unwrap_or_default();
    let Some((batch, rest)) =
        axes.split_first().filter(|(_, rest)| (1..super::constant::MOST_AXES).contains(&rest.len()))
    else {
        return Err(error(format!(
            "the input `{shown}` has {} axes: there must be one for the batch and at least one more",
            axes.len()
        )));
    };
    let examples =
        match batch.dim_value {
            None | Some(0) => None,
            Some(length) => Some(usize::try_from(length).map_err(|_| {
                error(format!("the batch axis of the input `{shown}` has the length {length}"))
            })?),
        };
    let length = |(i, dim): (usize, &super::definitions::DimensionProto)| {
        let length = dim.dim_value.and_then(|v| usize::try_from(v).ok()).filter(|&v| v > 0);
        length.ok_or_else(|| {
            error(format!(
                "axis {} of the input `{shown}` has no fixed positive length: only the batch axis may be dynamic",
                i + 1
            ))
        })
    };
    let shape = rest.iter().enumerate().map(length).collect::<Result<Vec<usize>, _>>()?;
    Ok((Fed { name, shape, whole }, examples))
}
