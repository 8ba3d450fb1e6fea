//! Which format a file has: by its name or, where the name does not say, by its content.

use super::dialect::Delimiter;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text with these marks between cells, unless it says otherwise.
    Delimited(Delimiter),
    JsonLines,
    Parquet,
    Excel,
    Npy,
    Npz,
}

/// What a name says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Its format, and whether it is gzipped.
    As(Format, bool),
    /// Nothing: it has no ending.
    Nothing,
    /// An ending that is not known.
    Unknown,
}

impl Format {
    /// By the name.
    pub(crate) fn named(path: &Path) -> Named {
        let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let (stem, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |stem| (stem, true));
        let Some(extension) = Path::new(stem).extension() else { return Named::Nothing };
        let format = match extension.to_str().unwrap_or_default() {
            "csv" | "txt" => Self::Delimited(Delimiter::Comma),
            "tsv" => Self::Delimited(Delimiter::Tab),
            "jsonl" | "ndjson" => Self::JsonLines,
            "parquet" | "pq" => Self::Parquet,
            "xlsx" | "xlsm" => Self::Excel,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            _ => return Named::Unknown,
        };
        Named::As(format, gzip)
    }

    /// By the first bytes of a content that is not gzipped; of an archive, by its members. What is nothing else is text.
    pub(crate) fn of_content(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"PAR1") {
            return Self::Parquet;
        }
        if bytes.starts_with(b"\x93NUMPY") {
            return Self::Npy;
        }
        if bytes.starts_with(b"PK\x03\x04") {
            let archive = zip::ZipArchive::new(Cursor::new(bytes));
            let workbook = archive.is_ok_and(|a| a.index_for_name("xl/workbook.xml").is_some());
            return if workbook { Self::Excel } else { Self::Npz };
        }
        // Marks and high bytes of other encodings are passed over: what follows is found in all of them.
        let mut visible = bytes
            .iter()
            .filter(|b| !b.is_ascii_whitespace() && !matches!(b, 0 | 0xef | 0xbb | 0xbf | 0xff | 0xfe));
        match (visible.next(), visible.next()) {
            (Some(b'{'), _) | (Some(b'['), Some(b'{')) => Self::JsonLines,
            _ => Self::Delimited(Delimiter::Comma),
        }
    }
}

/// Whether a content is gzipped.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x1f\x8b")
}

/// Whether a path stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdin")
}

/// `FILE.npz:NAME -> (FILE.npz, NAME)`
pub(crate) fn split_array_name(path: &Path) -> (PathBuf, Option<String>) {
    split_at(path, &[".npz:"])
}

/// Whether the name is that of a table: one with an ending that [`crate::read_table`] knows, also of a part (`FILE.xlsx:SHEET`), or standard input (`-`). Nothing is opened.
pub fn is_table_name(path: &Path) -> bool {
    is_standard_input(path) || matches!(Format::named(&split_part_name(path).0), Named::As(..))
}

/// A file and the part of it that is named after a colon: `FILE.npz:NAME -> (FILE.npz, NAME)`, `FILE.xlsx:SHEET -> (FILE.xlsx, SHEET)`; the whole path, and nothing, for others.
pub fn split_part_name(path: &Path) -> (PathBuf, Option<String>) {
    split_at(path, &[".npz:", ".xlsx:", ".xlsm:"])
}

fn split_at(path: &Path, endings: &[&str]) -> (PathBuf, Option<String>) {
    let text = path.to_string_lossy();
    // Lower case of ASCII has the same places.
    let lower = text.to_ascii_lowercase();
    let found = endings.iter().filter_map(|e| lower.rfind(e).map(|at| at + e.len() - 1)).max();
    match found {
        Some(colon) => (PathBuf::from(&text[..colon]), Some(text[colon + 1..].to_string())),
        None => (path.to_path_buf(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_formats_and_parts() {
        let named = |name: &str| Format::named(Path::new(name));
        assert_eq!(named("a/b.CSV.gz"), Named::As(Format::Delimited(Delimiter::Comma), true));
        assert_eq!(named("b.ndjson"), Named::As(Format::JsonLines, false));
        assert_eq!(named("b.xlsm"), Named::As(Format::Excel, false));
        assert_eq!(named("b.xls"), Named::Unknown);
        for bare in ["table", "table.gz", "/dev/fd/63"] {
            assert_eq!(named(bare), Named::Nothing, "{bare}");
        }
        let split = |name: &str| split_part_name(Path::new(name));
        assert_eq!(split("a.xlsx:Sheet 2"), ("a.xlsx".into(), Some("Sheet 2".into())));
        assert_eq!(split("A.XLSX:a.xlsx"), ("A.XLSX".into(), Some("a.xlsx".into())));
        assert_eq!(split("a.npz:x"), ("a.npz".into(), Some("x".into())));
        assert_eq!(split("a:b.csv"), ("a:b.csv".into(), None));
        assert_eq!(split_array_name(Path::new("a.xlsx:x")).1, None);
        for (name, is) in [
            ("a.xlsx:x", true),
            ("-", true),
            ("a.NPZ:x", true),
            ("a.jsonl.gz", true),
            ("a", false),
            ("a.safetensors", false),
        ] {
            assert_eq!(is_table_name(Path::new(name)), is, "{name}");
        }
    }

    #[test]
    fn contents_say_formats() {
        let of = |bytes: &[u8]| Format::of_content(bytes);
        assert_eq!(of(b"PAR1..."), Format::Parquet);
        assert_eq!(of(b"\x93NUMPY"), Format::Npy);
        assert_eq!(of(b"PK\x03\x04"), Format::Npz);
        assert_eq!(of(b"{\"a\":1}\n"), Format::JsonLines);
        assert_eq!(of(b"\xff\xfe{\0\"\0"), Format::JsonLines);
        assert_eq!(of(b"\xef\xbb\xbf [ {"), Format::JsonLines);
        for text in [&b"a,b\n1,2\n"[..], b"[x],y\n", b""] {
            assert_eq!(of(text), Format::Delimited(Delimiter::Comma));
        }
    }
}
