//! IDX, the format of MNIST: two zero bytes, a byte for the element type, a byte for the rank, each dimension as a big-endian
//! 32-bit number, then the values, big-endian and row-major.
//!
//! Source: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits", section "File formats".

use super::array::NumericArray;
use super::element::Element;
use super::source::Source;
use crate::{DataError, ReadOptions};
use std::path::Path;

const FORMAT: &str = "IDX";

/// Reads an IDX file, gzipped or not: every element type (unsigned and signed bytes, 16- and 32-bit integers, single and double
/// precision) and any rank. Dimensions of 0 are refused: such a file holds nothing to learn from.
///
/// # Errors
/// [`DataError::Read`]; [`DataError::Malformed`] for a wrong magic number or a length that is not the declared one;
/// [`DataError::DeclaredTooLarge`] beyond the limit (8 GiB in [`ReadOptions::for_arrays`]).
pub fn read_idx(path: &Path, options: &ReadOptions) -> Result<NumericArray, DataError> {
    read(&mut Source::open(path, options)?)
}

/// Whether the first bytes are an IDX magic number.
pub(super) fn looks_like_idx(head: &[u8]) -> bool {
    matches!(head, [0, 0, kind, rank, ..] if *rank > 0 && element(*kind).is_some())
}

pub(super) fn read(source: &mut Source<'_>) -> Result<NumericArray, DataError> {
    let magic = source.header_bytes(4)?;
    let [0, 0, kind, rank] = magic[..] else {
        let reason = format!(
            "it begins with the bytes {magic:02x?}, not with the magic number of IDX, 00 00 TYPE RANK"
        );
        return Err(source.malformed(FORMAT, reason));
    };
    let element = element(kind).ok_or_else(|| {
        let reason =
            format!("its magic number names the element type {kind:#04x}; known are 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e");
        source.malformed(FORMAT, reason)
    })?;
    if rank == 0 {
        return Err(source.malformed(FORMAT, "its magic number declares no dimensions"));
    }
    let dimensions = source.header_bytes(4 * usize::from(rank))?;
    let (dimensions, cut) = dimensions.as_chunks::<4>();
    if dimensions.len() < usize::from(rank) || !cut.is_empty() {
        let reason = format!("it is cut off within the {rank} dimensions that its magic number declares");
        return Err(source.malformed(FORMAT, reason));
    }
    let shape: Vec<usize> = dimensions.iter().map(|bytes| u32::from_be_bytes(*bytes) as usize).collect();
    if let Some(at) = shape.iter().position(|d| *d == 0) {
        return Err(
            source.malformed(FORMAT, format!("dimension {} of {rank} is 0, so it holds nothing", at + 1))
        );
    }
    let values = source.values(FORMAT, element, true, &shape)?;
    NumericArray::new(shape, values)
}

fn element(kind: u8) -> Option<Element> {
    Some(match kind {
        0x08 => Element::U8,
        0x09 => Element::I8,
        0x0b => Element::I16,
        0x0c => Element::I32,
        0x0d => Element::F32,
        0x0e => Element::F64,
        _ => return None,
    })
}
