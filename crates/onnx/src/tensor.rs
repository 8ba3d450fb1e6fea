//! The numbers of a tensor of the file.

use super::constant::{Constant, Data, MOST_AXES, Origin};
use super::definitions::{TensorProto, element_type as kind};
use super::dimension::Dimension;
use super::error::{OnnxError, short};
use half::{bf16, f16};

/// Decodes a tensor whose numbers are in the file; the declared shape is held against them before anything is made.
pub(super) fn decode(tensor: &TensorProto, origin: Origin, file: &str) -> Result<Constant, OnnxError> {
    if tensor.data_location == Some(1) || !tensor.external_data.is_empty() {
        return Err(OnnxError::ExternalData { file: file.into(), tensor: short(&origin.name) });
    }
    let name = short(&origin.name);
    let error = |problem: String| OnnxError::Tensor { file: file.into(), tensor: name.clone(), problem };
    let (shape, data) = values(tensor).map_err(error)?;
    Ok(Constant::new(shape, data, origin))
}

/// The declared shape.
fn shape(tensor: &TensorProto) -> Result<(Vec<usize>, usize), String> {
    if tensor.dims.len() > MOST_AXES {
        return Err(format!("it has {} axes, more than {MOST_AXES}", tensor.dims.len()));
    }
    let shape: Option<Vec<usize>> = tensor.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
    let shape = shape.ok_or_else(|| format!("the shape {:?} has a negative length", tensor.dims))?;
    let count =
        super::constant::count(&shape).ok_or_else(|| format!("the shape {shape:?} cannot be counted"))?;
    Ok((shape, count))
}

fn values(tensor: &TensorProto) -> Result<(Vec<usize>, Data), String> {
    let (shape, count) = shape(tensor)?;
    let whole = |values: Vec<i64>| Data::Whole(values.into_iter().map(Dimension::from).collect());
    let data_type = tensor.data_type.unwrap_or(0);
    let data = if let Some(raw) = &tensor.raw_data {
        let width = match data_type {
            kind::BOOL | kind::INT8 | kind::UINT8 => 1,
            kind::FLOAT16 | kind::BFLOAT16 | kind::INT16 | kind::UINT16 => 2,
            kind::FLOAT | kind::INT32 | kind::UINT32 => 4,
            kind::DOUBLE | kind::INT64 | kind::UINT64 => 8,
            other => return Err(unsupported(other)),
        };
        if count.checked_mul(width) != Some(raw.len()) {
            return Err(format!(
                "the shape {shape:?} needs {count} numbers of {width} bytes, there are {} bytes",
                raw.len()
            ));
        }
        match data_type {
            kind::FLOAT => Data::Float(chunks(raw, |b| f64::from(f32::from_le_bytes(b)))),
            kind::DOUBLE => Data::Float(chunks(raw, f64::from_le_bytes)),
            kind::FLOAT16 => Data::Float(chunks(raw, |b| f16::from_le_bytes(b).to_f64())),
            kind::BFLOAT16 => Data::Float(chunks(raw, |b| bf16::from_le_bytes(b).to_f64())),
            kind::INT64 => whole(chunks(raw, i64::from_le_bytes)),
            kind::UINT64 => whole(chunks(raw, |b| u64::from_le_bytes(b).min(i64::MAX as u64) as i64)),
            kind::INT32 => whole(chunks(raw, |b| i32::from_le_bytes(b).into())),
            kind::UINT32 => whole(chunks(raw, |b| u32::from_le_bytes(b).into())),
            kind::INT16 => whole(chunks(raw, |b| i16::from_le_bytes(b).into())),
            kind::UINT16 => whole(chunks(raw, |b| u16::from_le_bytes(b).into())),
            kind::INT8 => whole(chunks(raw, |b| i8::from_le_bytes(b).into())),
            _ => whole(chunks(raw, |[b]: [u8; 1]| b.into())),
        }
    } else {
        let found = match data_type {
            kind::FLOAT => tensor.float_data.len(),
            kind::DOUBLE => tensor.double_data.len(),
            kind::INT64 => tensor.int64_data.len(),
            kind::BOOL
            | kind::INT8
            | kind::UINT8
            | kind::INT16
            | kind::UINT16
            | kind::INT32
            | kind::FLOAT16
            | kind::BFLOAT16 => tensor.int32_data.len(),
            other => return Err(unsupported(other)),
        };
        if found != count {
            return Err(format!("the shape {shape:?} needs {count} numbers, there are {found}"));
        }
        let halves = |value: fn(u16) -> f64| tensor.int32_data.iter().map(|&i| value(i as u16)).collect();
        match data_type {
            kind::FLOAT => Data::Float(tensor.float_data.iter().map(|&v| v.into()).collect()),
            kind::DOUBLE => Data::Float(tensor.double_data.clone()),
            kind::FLOAT16 => Data::Float(halves(|bits| f16::from_bits(bits).to_f64())),
            kind::BFLOAT16 => Data::Float(halves(|bits| bf16::from_bits(bits).to_f64())),
            kind::INT64 => whole(tensor.int64_data.clone()),
            _ => whole(tensor.int32_data.iter().map(|&i| i.into()).collect()),
        }
    };
    Ok((shape, data))
}

fn unsupported(data_type: i32) -> String {
    format!(
        "element type {data_type} is not supported (float, double, float16, bfloat16 and whole numbers are); quantised models must be \
         exported in floating point"
    )
}

fn chunks<const N: usize, V>(raw: &[u8], value: impl Fn([u8; N]) -> V) -> Vec<V> {
    raw.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
}
