//! NPY: one array of any rank, in C or Fortran order.

use super::array::{ArrayValues, NumericArray, each_type};
use super::element::Element;
use super::source::Source;
use crate::DataError;
pub(super) use crate::read::npy_header::MARK;
use crate::read::npy_header::{LONGEST_HEADER, NpyHeader, header_extent, truncated};

/// Reads the array that the source holds, which must be all that it holds.
pub(super) fn read(source: &mut Source<'_>) -> Result<NumericArray, DataError> {
    let header = header(source)?;
    let element = element(header.code()).ok_or_else(|| {
        let reason = format!(
            "elements of type {} are not read; convert the array to float32, float64, an integer type or bool",
            header.element()
        );
        source.malformed("NPY", reason)
    })?;
    let shape = header.shape.clone();
    let values = source.values("NPY", element, header.is_big_endian(), &shape)?;
    let values = if header.fortran_order { row_major(values, &shape) } else { values };
    NumericArray::new(shape, values)
}

/// The header, of which no more is read than is parsed.
fn header(source: &mut Source<'_>) -> Result<NpyHeader, DataError> {
    let mut bytes = source.header_bytes(10)?;
    if bytes.len() == 10 && matches!(bytes[6], 2 | 3) {
        bytes.extend(source.header_bytes(2)?);
    }
    let (_, length) = header_extent(&bytes).map_err(|e| source.malformed("NPY", e))?;
    // One byte more than is parsed is enough to refuse it.
    let wanted = length.min(LONGEST_HEADER + 1);
    let text = source.header_bytes(wanted)?;
    let parsed = if text.len() < wanted { Err(truncated()) } else { NpyHeader::parse(&text) };
    parsed.map_err(|e| source.malformed("NPY", e))
}

fn element(code: &str) -> Option<Element> {
    Some(match code {
        "b1" => Element::Bool,
        "u1" => Element::U8,
        "u2" => Element::U16,
        "u4" => Element::U32,
        "u8" => Element::U64,
        "i1" => Element::I8,
        "i2" => Element::I16,
        "i4" => Element::I32,
        "i8" => Element::I64,
        "f2" => Element::F16,
        "f4" => Element::F32,
        "f8" => Element::F64,
        _ => return None,
    })
}

/// Values in column-major order (the first index running fastest) brought into row-major order. Takes their memory once more.
fn row_major(values: ArrayValues, shape: &[usize]) -> ArrayValues {
    match values {
        ArrayValues::F32(v) => ArrayValues::F32(transposed(v, shape)),
        ArrayValues::F64(v) => ArrayValues::F64(transposed(v, shape)),
        ArrayValues::I64(v) => ArrayValues::I64(transposed(v, shape)),
        ArrayValues::U8(v) => ArrayValues::U8(transposed(v, shape)),
    }
}

fn transposed<T: Copy>(values: Vec<T>, shape: &[usize]) -> Vec<T> {
    // Dimensions of 1 change nothing, and a header may have thousands.
    let shape: Vec<usize> = shape.iter().copied().filter(|d| *d != 1).collect();
    if shape.len() < 2 || values.is_empty() {
        return values;
    }
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, d| {
            let this = *stride;
            *stride *= d;
            Some(this)
        })
        .collect();
    let mut out = Vec::with_capacity(values.len());
    let mut position = vec![0; shape.len()];
    let mut from = 0;
    for _ in 0..values.len() {
        out.push(values[from]);
        for k in (0..shape.len()).rev() {
            position[k] += 1;
            from += strides[k];
            if position[k] < shape[k] {
                break;
            }
            from -= strides[k] * shape[k];
            position[k] = 0;
        }
    }
    out
}

/// Writes header and values, row-major and little-endian.
pub(super) fn write(array: &NumericArray, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let kind = match array.values() {
        ArrayValues::F32(_) => "<f4",
        ArrayValues::F64(_) => "<f8",
        ArrayValues::I64(_) => "<i8",
        ArrayValues::U8(_) => "|u1",
    };
    out.write_all(&header_bytes(kind, array.shape())?)?;
    each_type!(array.values(), values => values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())))
}

/// The header as `numpy.save` writes it: room for the first dimension to grow to 21 digits, then spaces, at least one, up to a
/// multiple of 64. Version 1 holds thousands of dimensions; more are refused, as they are in reading.
///
/// Source: NumPy's `numpy.lib.format` documentation, "Format Version 1.0".
fn header_bytes(kind: &str, shape: &[usize]) -> std::io::Result<Vec<u8>> {
    const GROWTH_DIGITS: usize = 21;
    const ALIGNMENT: usize = 64;
    let dimensions = match shape {
        [one] => format!("{one},"),
        several => several.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    if let Some(first) = shape.first() {
        let digits = first.checked_ilog10().unwrap_or(0) as usize + 1;
        text.push_str(&" ".repeat(GROWTH_DIGITS.saturating_sub(digits)));
    }
    // Mark, version, length field and final line break.
    let unpadded = 10 + text.len() + 1;
    let length = text.len() + 1 + ALIGNMENT - unpadded % ALIGNMENT;
    let length = u16::try_from(length).map_err(|_| {
        let reason = format!("an array of {} dimensions has no place in an NPY header", shape.len());
        std::io::Error::new(std::io::ErrorKind::InvalidInput, reason)
    })?;
    let mut out = [MARK, &[1, 0], &length.to_le_bytes()].concat();
    let end = out.len() + usize::from(length) - 1;
    out.extend_from_slice(text.as_bytes());
    out.resize(end, b' ');
    out.push(b'\n');
    Ok(out)
}
