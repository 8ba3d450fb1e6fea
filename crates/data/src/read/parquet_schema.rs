//! How deep the schema of a Parquet file is nested, found before it is decoded: the decoder calls itself for every level, and a file of a few
//! kilobytes may have thousands.
//!
//! Only the elements of the schema are read, in Thrift's compact protocol. The decoder reads each known field as the type that the format gives it,
//! whatever the file says. A file that says otherwise is refused here, so that both see the same schema.

use parquet::file::metadata::FooterTail;
use parquet::file::reader::ChunkReader;

/// Levels of groups below the root at most. A table has none, nested records a few.
const DEEPEST: usize = 64;

/// Levels at most of a field that is not known and skipped.
const DEEPEST_SKIPPED: usize = 16;

/// A type of Thrift, as far as schemas need them.
enum Type {
    Bool,
    Byte,
    I32,
    Binary,
    Struct(Fields),
}

/// The fields of a struct by their numbers.
type Fields = &'static [(i16, Type)];

const EMPTY: Type = Type::Struct(&[]);
const UNIT: Type = Type::Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const TIME: Type = Type::Struct(&[(1, Type::Bool), (2, UNIT)]);

/// `LogicalType` of the format: a union with a struct for each type.
const LOGICAL: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Type::Struct(&[(1, Type::I32), (2, Type::I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Type::Struct(&[(1, Type::Byte), (2, Type::Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Type::Struct(&[(1, Type::Byte)])),
    (17, Type::Struct(&[(1, Type::Binary)])),
    (18, Type::Struct(&[(1, Type::Binary), (2, Type::I32)])),
];

/// The number of children of a `SchemaElement`.
const CHILDREN: i16 = 5;

/// `SchemaElement` of the format.
const ELEMENT: Fields = &[
    (1, Type::I32),
    (2, Type::I32),
    (3, Type::I32),
    (4, Type::Binary),
    (CHILDREN, Type::I32),
    (6, Type::I32),
    (7, Type::I32),
    (8, Type::I32),
    (9, Type::I32),
    (10, Type::Struct(LOGICAL)),
];

/// Refuses the schema of a file of so many bytes if it is nested too deep, or not as the format has it. What is no Parquet file at all is left to
/// the decoder.
pub(super) fn check_schema(source: &impl ChunkReader, length: u64) -> Result<(), String> {
    const TAIL: usize = 8;
    let bytes = |start: u64, count: usize| source.get_bytes(start, count).ok();
    let footer = || {
        let tail = length.checked_sub(TAIL as u64)?;
        let tail_bytes = bytes(tail, TAIL)?;
        let found =
            FooterTail::try_new(tail_bytes.first_chunk()?).ok().filter(|f| !f.is_encrypted_footer())?;
        bytes(tail.checked_sub(found.metadata_length() as u64)?, found.metadata_length())
    };
    let Some(footer) = footer() else { return Ok(()) };
    match deepest(&footer) {
        Some(depth) if depth <= DEEPEST => Ok(()),
        Some(depth) => Err(format!(
            "its schema nests groups {depth} levels deep, and at most {DEEPEST} are allowed: write a table of flat columns"
        )),
        None => Err("its schema contradicts the format; write the file again".into()),
    }
}

/// Levels of groups below the root in the metadata of a file; none where they are not as the format has it.
fn deepest(metadata: &[u8]) -> Option<usize> {
    let mut reader = Reader(metadata);
    let mut last = 0;
    loop {
        // Without a schema the decoder refuses the file.
        let Some((kind, id)) = reader.field(last)? else { return Some(0) };
        match (id, kind) {
            // The version and the number of rows.
            (1, kind::I32) | (3, kind::I64) => _ = reader.varint()?,
            (2, kind::LIST) => break,
            _ => return None,
        }
        last = id;
    }
    let (kind, elements) = reader.list()?;
    if elements > 0 && kind != kind::STRUCT {
        return None;
    }
    // Children to come of each group that is open.
    let (mut open, mut deepest) = (Vec::<usize>::new(), 0);
    for i in 0..elements {
        let mut children = 0;
        reader.structure(ELEMENT, &mut |id, value| {
            if id == CHILDREN {
                children = value;
            }
        })?;
        let children = usize::try_from(children).ok().filter(|&c| c < elements - i)?;
        if children > 0 {
            deepest = deepest.max(open.len());
            open.push(children);
            continue;
        }
        while let Some(left) = open.last_mut() {
            *left -= 1;
            if *left > 0 {
                break;
            }
            open.pop();
        }
    }
    Some(deepest)
}

/// Types in the compact protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

/// What is left of a message; every function is none where it ends too early or is malformed.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        // The tenth byte has room for one bit.
        let last = self.byte().filter(|&b| b <= 1)?;
        Some(value | u64::from(last) << 63)
    }

    fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn binary(&mut self) -> Option<()> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok()?)
    }

    /// Type and number of the next field of a struct; none inside at its end.
    fn field(&mut self, last: i16) -> Option<Option<(u8, i16)>> {
        let header = self.byte()?;
        match (header & 0x0f, i16::from(header >> 4)) {
            (0, _) => Some(None),
            (kind, 0) => Some(Some((kind, i16::try_from(self.number()?).ok()?))),
            (kind, more) => Some(Some((kind, last.checked_add(more)?))),
        }
    }

    /// Type and number of the elements of a list.
    fn list(&mut self) -> Option<(u8, usize)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => usize::try_from(i32::try_from(self.varint()?).ok()?).ok()?,
            few => usize::from(few),
        };
        Some((header & 0x0f, count))
    }

    /// A struct with these fields and others; `each` sees its whole numbers.
    fn structure(&mut self, fields: Fields, each: &mut dyn FnMut(i16, i32)) -> Option<()> {
        let mut last = 0;
        while let Some((kind, id)) = self.field(last)? {
            last = id;
            match (fields.iter().find(|field| field.0 == id).map(|field| &field.1), kind) {
                (None, _) => self.skip(kind, DEEPEST_SKIPPED)?,
                (Some(Type::Bool), kind::TRUE | kind::FALSE) => {}
                (Some(Type::Byte), kind::BYTE) => self.take(1)?,
                (Some(Type::I32), kind::I32) => each(id, i32::try_from(self.number()?).ok()?),
                (Some(Type::Binary), kind::BINARY) => self.binary()?,
                (Some(Type::Struct(inner)), kind::STRUCT) => self.structure(inner, &mut |_, _| {})?,
                (Some(_), _) => return None,
            }
        }
        Some(())
    }

    /// Whatever has this type, with so many levels.
    fn skip(&mut self, kind: u8, levels: usize) -> Option<()> {
        let inside = levels.checked_sub(1)?;
        // Programs differ in whether a truth value in a list has a byte.
        let plain = |kind: u8| (kind != kind::TRUE && kind != kind::FALSE).then_some(kind);
        match kind {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.take(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(|_| ()),
            kind::DOUBLE => self.take(8),
            kind::BINARY => self.binary(),
            kind::UUID => self.take(16),
            kind::LIST | kind::SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(plain(kind)?, inside))
            }
            kind::MAP => {
                let count = i32::try_from(self.varint()?).ok()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.skip(plain(kinds >> 4)?, inside)?;
                    self.skip(plain(kinds & 0x0f)?, inside)
                })
            }
            kind::STRUCT => {
                while let Some((kind, _)) = self.field(0)? {
                    self.skip(kind, inside)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut out = vec![];
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    }

    /// A required group (or an integer) called `g` with so many children.
    fn element(children: i64) -> Vec<u8> {
        let zigzag = ((children << 1) ^ (children >> 63)) as u64;
        match children {
            0 => b"\x15\x02\x25\x00\x18\x01g\x00".to_vec(),
            _ => [b"\x35\x00\x18\x01g\x15", &varint(zigzag)[..], b"\x00"].concat(),
        }
    }

    /// A file whose schema has these elements, without rows.
    fn file(elements: &[Vec<u8>]) -> Vec<u8> {
        let schema =
            [b"\x15\x02\x19\xfc", &varint(elements.len() as u64)[..], &elements.concat()[..]].concat();
        let metadata = [&schema[..], b"\x16\x00\x19\x0c\x00"].concat();
        let length = (metadata.len() as u32).to_le_bytes();
        [b"PAR1", &metadata[..], &length, b"PAR1"].concat()
    }

    fn nested(levels: usize) -> Vec<u8> {
        file(&[vec![element(1); levels + 1], vec![element(0)]].concat())
    }

    fn parse(bytes: Vec<u8>) -> String {
        let options = crate::ReadOptions::limited(1 << 20);
        let error = crate::parse_table(bytes, std::path::Path::new("a.parquet"), None, &options).unwrap_err();
        error.to_string()
    }

    #[test]
    fn nested_schemas_are_refused_before_they_are_decoded() {
        let deep = |levels: usize| {
            format!(
                "a.parquet is not a valid Parquet file: its schema nests groups {levels} levels deep, and at most 64 are allowed"
            )
        };
        for levels in [65, 20_000, 1_000_000] {
            let found = parse(nested(levels));
            assert!(found.starts_with(&deep(levels)), "{found}");
        }
        let found = parse(nested(64));
        assert!(found.contains("column `g` has type list or group of columns"), "{found}");
        // Beside a flat column, and with more than one group on a level.
        let beside = [vec![element(2), element(0)], vec![element(1); 70], vec![element(0)]].concat();
        assert!(parse(file(&beside)).starts_with(&deep(70)));
        let wide: Vec<Vec<u8>> =
            (0..100).flat_map(|_| [vec![element(2), element(0)], vec![element(0)]].concat()).collect();
        let wide = file(&[vec![element(100)], wide].concat());
        assert_eq!(check_schema(&Bytes::from(wide.clone()), wide.len() as u64), Ok(()));
        assert!(parse(wide).contains("group of columns"));
        // A list of numbers, as other programs write it, over and over.
        let lists = |n: usize| [vec![element(1)], vec![element(1); 2 * n], vec![element(0)]].concat();
        assert!(parse(file(&lists(40))).starts_with(&deep(80)));
    }

    #[test]
    fn numbers_of_children_that_are_not_there() {
        let contradicts = "its schema contradicts the format";
        for children in [-1, i64::from(i32::MIN), 2, i64::from(i32::MAX), 1 << 32] {
            let found = parse(file(&[element(children), element(0)]));
            assert!(found.contains(contradicts), "{children}: {found}");
        }
        // More elements than there are, elements that are no structs, and a field of another type.
        for (at, byte) in [(8, 0x7f), (7, 0xfe)] {
            let mut changed = file(&[element(1), element(0)]);
            changed[at] = byte;
            assert!(parse(changed).contains(contradicts), "{at}");
        }
        let other = file(&[b"\x48\x01g\x18\x02\x02\x02\x00".to_vec(), element(0)]);
        assert!(parse(other).contains(contradicts));
        let nothing = file(&[]);
        assert!(!parse(nothing).contains(contradicts));
    }

    /// Every type that the format has passes, beside fields that are not known.
    #[test]
    fn all_fields_are_read_or_skipped() {
        let logical: [&[u8]; 5] = [
            b"\x1c\x00\x00",                      // text
            b"\x5c\x15\x04\x15\x12\x00\x00",      // decimal
            b"\x8c\x11\x1c\x2c\x00\x00\x00\x00",  // time, in microseconds
            b"\xac\x13\x08\x12\x00\x00",          // whole number without sign
            b"\x0c\x24\x18\x01c\x15\x00\x00\x00", // geography
        ];
        let unknown: [&[u8]; 6] = [
            b"\x11",
            b"\x17\x00\x00\x00\x00\x00\x00\x00\x00",
            b"\x19\x2c\x15\x02\x00\x18\x01x\x00",
            b"\x1b\x01\x85\x01x\x02",
            b"\x1b\x00",
            b"\x1d\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ];
        for of in logical {
            for more in unknown {
                let full = [b"\x15\x02\x25\x00\x18\x01g\x6c", of, more, b"\x00"].concat();
                let metadata = file(&[element(1), full]);
                assert_eq!(deepest(&metadata[4..metadata.len() - 8]), Some(0), "{of:?} {more:?}");
            }
        }
        // Of a list of truth values.
        let truths = b"\x15\x02\x25\x00\x18\x01g\x89\x21\x01\x01\x00".to_vec();
        let metadata = file(&[element(1), truths]);
        assert_eq!(deepest(&metadata[4..metadata.len() - 8]), None);
    }
}
