//! Element types of files, decoded block by block as they stream in.

use super::array::ArrayValues;
use std::io::Read;

/// How a number stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

/// Why the values could not be decoded.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// The source failed.
    Io(std::io::Error),
    /// It ended after this many bytes.
    CutOff(u64),
    /// The value with this index (from 0) cannot be kept exactly.
    NotRepresentable(usize),
    /// The system refused this many bytes.
    OutOfMemory(u64),
}

impl Element {
    /// Bytes in the file.
    pub(super) fn file_size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Bytes in memory.
    pub(super) fn memory_size(self) -> usize {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::F16 | Self::F32 => 4,
            _ => 8,
        }
    }

    /// What is wrong with a value that is not representable.
    pub(super) fn refusal(self) -> &'static str {
        match self {
            Self::Bool => "a truth value that is neither 0 nor 1",
            _ => "a whole number beyond 2^63 - 1, the largest that can be kept exactly",
        }
    }

    /// Reads `count` values. Memory grows with what has arrived, never beyond what the values need; `all_there` says that the
    /// source is known to hold them all, so that it is taken at once.
    pub(super) fn decode(
        self,
        reader: &mut dyn Read,
        count: usize,
        big_endian: bool,
        all_there: bool,
    ) -> Result<ArrayValues, DecodeError> {
        macro_rules! decoded {
            ($type:ty, $variant:ident, $convert:expr) => {
                ArrayValues::$variant(collect(reader, count, all_there, |bytes| {
                    let value = if big_endian {
                        <$type>::from_be_bytes(bytes)
                    } else {
                        <$type>::from_le_bytes(bytes)
                    };
                    $convert(value)
                })?)
            };
        }
        Ok(match self {
            Self::Bool => decoded!(u8, U8, |v| (v <= 1).then_some(v)),
            Self::U8 => decoded!(u8, U8, Some),
            Self::I8 => decoded!(i8, I64, |v| Some(i64::from(v))),
            Self::U16 => decoded!(u16, I64, |v| Some(i64::from(v))),
            Self::I16 => decoded!(i16, I64, |v| Some(i64::from(v))),
            Self::U32 => decoded!(u32, I64, |v| Some(i64::from(v))),
            Self::I32 => decoded!(i32, I64, |v| Some(i64::from(v))),
            Self::U64 => decoded!(u64, I64, |v| i64::try_from(v).ok()),
            Self::I64 => decoded!(i64, I64, Some),
            Self::F16 => decoded!(half::f16, F32, |v: half::f16| Some(v.to_f32())),
            Self::F32 => decoded!(f32, F32, Some),
            Self::F64 => decoded!(f64, F64, Some),
        })
    }
}

/// Bytes decoded at a time: a multiple of every element size.
const BLOCK: usize = 1 << 16;

fn collect<T, const SIZE: usize>(
    reader: &mut dyn Read,
    count: usize,
    all_there: bool,
    convert: impl Fn([u8; SIZE]) -> Option<T>,
) -> Result<Vec<T>, DecodeError> {
    let mut out = Vec::new();
    if all_there {
        reserve(&mut out, count)?;
    }
    let mut block = vec![0; BLOCK];
    while out.len() < count {
        let wanted = (count - out.len()).min(BLOCK / SIZE);
        let filled = fill(reader, &mut block[..wanted * SIZE]).map_err(DecodeError::Io)?;
        if filled < wanted * SIZE {
            return Err(DecodeError::CutOff((out.len() * SIZE + filled) as u64));
        }
        if out.capacity() - out.len() < wanted {
            let growth = out.len().max(wanted).min(count - out.len());
            reserve(&mut out, growth)?;
        }
        let (values, _) = block[..filled].as_chunks::<SIZE>();
        for bytes in values {
            out.push(convert(*bytes).ok_or(DecodeError::NotRepresentable(out.len()))?);
        }
    }
    Ok(out)
}

fn reserve<T>(out: &mut Vec<T>, more: usize) -> Result<(), DecodeError> {
    out.try_reserve_exact(more).map_err(|_| DecodeError::OutOfMemory((more * size_of::<T>()) as u64))
}

/// Reads until the block is full or the source ends; how many bytes came.
pub(super) fn fill(reader: &mut dyn Read, block: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match reader.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Element; 12] = [
        Element::Bool,
        Element::U8,
        Element::I8,
        Element::U16,
        Element::I16,
        Element::U32,
        Element::I32,
        Element::U64,
        Element::I64,
        Element::F16,
        Element::F32,
        Element::F64,
    ];

    #[test]
    fn sizes_are_those_of_what_is_read_and_kept() {
        for element in ALL {
            // Enough values for several blocks and a part of one.
            let count = 3 * BLOCK / element.file_size() + 5;
            let bytes = vec![0; count * element.file_size()];
            for all_there in [false, true] {
                let values = element.decode(&mut &bytes[..], count, true, all_there).unwrap();
                let (len, capacity, size) = match &values {
                    ArrayValues::F32(v) => (v.len(), v.capacity(), 4),
                    ArrayValues::F64(v) => (v.len(), v.capacity(), 8),
                    ArrayValues::I64(v) => (v.len(), v.capacity(), 8),
                    ArrayValues::U8(v) => (v.len(), v.capacity(), 1),
                };
                assert_eq!((len, capacity, size), (count, count, element.memory_size()), "{element:?}");
            }
        }
    }

    #[test]
    fn a_source_that_ends_early_is_seen_however_much_is_declared() {
        for element in ALL {
            let bytes = vec![0; 100 * element.file_size() + element.file_size() / 2];
            let error = element.decode(&mut &bytes[..], usize::MAX / 8, false, false).unwrap_err();
            assert!(
                matches!(error, DecodeError::CutOff(n) if n == bytes.len() as u64),
                "{element:?}: {error:?}"
            );
        }
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let error = Element::F64.decode(&mut &[][..], usize::MAX / 8, false, true).unwrap_err();
        assert!(matches!(error, DecodeError::OutOfMemory(_)), "{error:?}");
    }
}
