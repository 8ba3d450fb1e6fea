//! The numbers of a tensor, in the file or in another.

use super::constant::{Constant, Data, MOST_AXES, Origin};
use super::definitions::{TensorProto, element_type as kind};
use super::dimension::Dimension;
use super::error::{OnnxError, short};
use super::external::{DataFiles, is_external};
use half::{bf16, f16};
use std::cell::RefCell;

/// Decodes a tensor; the declared shape is held against the bytes that are there before anything is made.
pub(super) fn decode(
    tensor: &TensorProto,
    origin: Origin,
    file: &str,
    data: &DataFiles,
) -> Result<Constant, OnnxError> {
    let name = short(&origin.name);
    let (shape, data) = if is_external(tensor) {
        outside(tensor, data).map_err(|problem| OnnxError::ExternalData {
            file: short(file),
            tensor: name,
            problem,
        })?
    } else {
        values(tensor).map_err(|problem| OnnxError::Tensor { file: file.into(), tensor: name, problem })?
    };
    Ok(Constant::new(shape, data, origin))
}

/// The numbers of a tensor that are in another file.
fn outside(tensor: &TensorProto, files: &DataFiles) -> Result<(Vec<usize>, Data), String> {
    let (shape, count) = shape(tensor)?;
    let data_type = tensor.data_type.unwrap_or(0);
    let width = width(data_type)?;
    let bytes = count.checked_mul(width).ok_or_else(|| format!("the shape {shape:?} cannot be counted"))?;
    let data = RefCell::new(Data::Whole(vec![]));
    let start = || {
        let mut data = data.borrow_mut();
        let reserved = match data_type {
            kind::FLOAT | kind::DOUBLE | kind::FLOAT16 | kind::BFLOAT16 => {
                let mut values = Vec::new();
                let reserved = values.try_reserve_exact(count);
                *data = Data::Float(values);
                reserved
            }
            _ => match &mut *data {
                Data::Whole(values) => values.try_reserve_exact(count),
                Data::Float(values) => values.try_reserve_exact(count),
            },
        };
        reserved.map_err(|_| format!("there is no memory for its {count} numbers"))
    };
    files
        .read(tensor, bytes as u64, width, start, |piece| append(data_type, piece, &mut data.borrow_mut()))?;
    Ok((shape, data.into_inner()))
}

/// The declared shape.
fn shape(tensor: &TensorProto) -> Result<(Vec<usize>, usize), String> {
    if tensor.dims.len() > MOST_AXES {
        return Err(format!("it has {} axes, more than {MOST_AXES}", tensor.dims.len()));
    }
    let shape: Option<Vec<usize>> = tensor.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
    let shape = shape.ok_or_else(|| format!("the shape {:?} has a negative length", tensor.dims))?;
    let count = super::constant::count(&shape).filter(|_| super::constant::countable(&shape));
    let count = count.ok_or_else(|| format!("the shape {shape:?} cannot be counted"))?;
    Ok((shape, count))
}

fn values(tensor: &TensorProto) -> Result<(Vec<usize>, Data), String> {
    let (shape, count) = shape(tensor)?;
    let whole = |values: Vec<i64>| Data::Whole(values.into_iter().map(Dimension::from).collect());
    let data_type = tensor.data_type.unwrap_or(0);
    let data = if let Some(raw) = &tensor.raw_data {
        let width = width(data_type)?;
        if count.checked_mul(width) != Some(raw.len()) {
            return Err(format!(
                "the shape {shape:?} needs {count} numbers of {width} bytes, there are {} bytes",
                raw.len()
            ));
        }
        let mut data = match data_type {
            kind::FLOAT | kind::DOUBLE | kind::FLOAT16 | kind::BFLOAT16 => {
                Data::Float(Vec::with_capacity(count))
            }
            _ => Data::Whole(Vec::with_capacity(count)),
        };
        append(data_type, raw, &mut data);
        data
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

/// Bytes of a number of this type.
fn width(data_type: i32) -> Result<usize, String> {
    Ok(match data_type {
        kind::BOOL | kind::INT8 | kind::UINT8 => 1,
        kind::FLOAT16 | kind::BFLOAT16 | kind::INT16 | kind::UINT16 => 2,
        kind::FLOAT | kind::INT32 | kind::UINT32 => 4,
        kind::DOUBLE | kind::INT64 | kind::UINT64 => 8,
        other => return Err(unsupported(other)),
    })
}

/// Numbers in little-endian order, behind those that are there; the type says which of the two kinds `data` is.
fn append(data_type: i32, raw: &[u8], data: &mut Data) {
    match data {
        Data::Float(values) => match data_type {
            kind::DOUBLE => values.extend(chunks(raw, f64::from_le_bytes)),
            kind::FLOAT16 => values.extend(chunks(raw, |b| f16::from_le_bytes(b).to_f64())),
            kind::BFLOAT16 => values.extend(chunks(raw, |b| bf16::from_le_bytes(b).to_f64())),
            _ => values.extend(chunks(raw, |b| f64::from(f32::from_le_bytes(b)))),
        },
        Data::Whole(values) => match data_type {
            kind::INT64 => values.extend(chunks(raw, |b| Dimension::from(i64::from_le_bytes(b)))),
            kind::UINT64 => values
                .extend(chunks(raw, |b| Dimension::from(u64::from_le_bytes(b).min(i64::MAX as u64) as i64))),
            kind::INT32 => values.extend(chunks(raw, |b| Dimension::from(i64::from(i32::from_le_bytes(b))))),
            kind::UINT32 => values.extend(chunks(raw, |b| Dimension::from(i64::from(u32::from_le_bytes(b))))),
            kind::INT16 => values.extend(chunks(raw, |b| Dimension::from(i64::from(i16::from_le_bytes(b))))),
            kind::UINT16 => values.extend(chunks(raw, |b| Dimension::from(i64::from(u16::from_le_bytes(b))))),
            kind::INT8 => values.extend(chunks(raw, |b| Dimension::from(i64::from(i8::from_le_bytes(b))))),
            _ => values.extend(chunks(raw, |[b]: [u8; 1]| Dimension::from(i64::from(b)))),
        },
    }
}

/// The numbers in `raw`, `N` bytes each.
fn chunks<const N: usize, V>(raw: &[u8], value: impl Fn([u8; N]) -> V) -> impl Iterator<Item = V> {
    raw.as_chunks::<N>().0.iter().map(move |chunk| value(*chunk))
}
