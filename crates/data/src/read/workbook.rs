//! The archive of a workbook, before anything in it is believed: what it unpacks to, and what a reader would make of that in memory.
//!
//! Lists of a workbook are held in memory beside its cells: shared texts, sheets, formats. A hostile file makes few bytes large (a format repeats the name of its font, a count is
//! reserved before it is reached), so that what they may take at most is counted here.

use super::ReadOptions;
use crate::DataError;
use std::io::{Cursor, Read, Write};
use std::path::Path;

/// Elements that a reader keeps, each with what it refers to.
const KEPT: [&[u8]; 8] =
    [b"xf", b"font", b"fill", b"border", b"numFmt", b"sheet", b"Relationship", b"definedName"];

/// Bytes that one of them takes beside the longest text in the file.
const KEPT_BYTES: u64 = 1024;

/// Bytes of a shared text for each `<` of its part: the string, and a list that grows by doubling.
const SHARED_BYTES: u64 = 64;

/// Longest text or element that is read.
const LONGEST: usize = 64 << 20;

/// Checks sizes of all parts, declared and real; the bytes that a reader holds beside the cells.
///
/// Cost: everything is unpacked once, and not kept.
///
/// # Errors
/// [`DataError::Malformed`]; [`DataError::TooLarge`] for more than the limit before it is unpacked.
pub(super) fn checked(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<u64, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "Excel", reason };
    let too_large = || DataError::TooLarge { path: path.into(), limit: options.memory_limit };
    if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        let reason =
            "it is protected by a password or of the older kind .xls; save it as .xlsx without a password";
        return Err(malformed(reason.into()));
    }
    if !bytes.starts_with(b"PK\x03\x04") {
        return Err(malformed("it does not begin as an archive does".into()));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| malformed(e.to_string()))?;
    let mut declared = bytes.len() as u64;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(|e| malformed(e.to_string()))?;
        declared = declared.saturating_add(entry.size());
    }
    if declared > options.memory_limit {
        return Err(too_large());
    }
    let (mut kept, mut shared, mut longest) = (0u64, 0u64, 0usize);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| malformed(e.to_string()))?;
        let (name, size) = (entry.name().map(|n| n.to_ascii_lowercase()).unwrap_or_default(), entry.size());
        let mut part = Part::new(name.ends_with(".xml") || name.ends_with(".rels"));
        let mut content = entry.take(size.saturating_add(1));
        let unpacked = std::io::copy(&mut content, &mut part).map_err(|e| malformed(e.to_string()))?;
        if unpacked != size {
            return Err(malformed(format!("a part declares {size} bytes and has others")));
        }
        part.element_ends().map_err(|e| malformed(e.into()))?;
        kept = kept.saturating_add(part.kept);
        longest = longest.max(part.longest);
        if name.ends_with("sharedstrings.xml") {
            if part.count > part.marks {
                return Err(malformed(format!("it declares {} shared texts and has fewer", part.count)));
            }
            shared = shared.saturating_add(size).saturating_add(SHARED_BYTES.saturating_mul(part.marks));
        }
    }
    // A text is there in the buffer that it is read in, and as it stands.
    let each = KEPT_BYTES.saturating_add(longest as u64);
    let held = kept.saturating_mul(each).saturating_add(shared).saturating_add(2 * longest as u64);
    if held.saturating_add(bytes.len() as u64) > options.memory_limit {
        return Err(too_large());
    }
    Ok(held)
}

/// What is seen of a part as it passes by.
struct Part {
    /// Whether it is text by its name.
    is_text: bool,
    /// Elements of the [`KEPT`] kinds.
    kept: u64,
    /// Signs `<`.
    marks: u64,
    /// Bytes from one of them to the next, at most.
    longest: usize,
    /// The largest number of items that it says it has.
    count: u64,
    since: usize,
    /// The beginning of an element, up to [`BEGINNING`] bytes.
    element: Vec<u8>,
}

/// Enough for a name, or for the declaration of an encoding.
const BEGINNING: usize = 2048;

impl Part {
    fn new(is_text: bool) -> Self {
        Self { is_text, kept: 0, marks: 0, longest: 0, count: 0, since: 0, element: Vec::new() }
    }

    fn element_ends(&mut self) -> Result<(), &'static str> {
        let name =
            self.element.split(|b| b.is_ascii_whitespace() || b"/>".contains(b)).next().unwrap_or_default();
        let local = name.rsplit(|b| *b == b':').next().unwrap_or_default();
        self.kept += u64::from(KEPT.contains(&local));
        if name == b"?xml" && !declares_utf8(&self.element) {
            return Err("a part is in another encoding than UTF-8");
        }
        if local == b"sst" {
            if self.element.len() >= BEGINNING {
                return Err("its list of shared texts begins with a long element");
            }
            let text = String::from_utf8_lossy(&self.element);
            for value in text.split("uniqueCount").skip(1) {
                let digits = value.trim_start_matches(|c: char| c.is_whitespace() || "='\"".contains(c));
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                if end > 0 {
                    self.count = self.count.max(digits[..end].parse().unwrap_or(u64::MAX));
                }
            }
        }
        self.element.clear();
        Ok(())
    }
}

/// Whether an XML declaration names no encoding, or one whose letters are those of ASCII.
fn declares_utf8(declaration: &[u8]) -> bool {
    let text = String::from_utf8_lossy(declaration).to_ascii_lowercase();
    let Some((_, value)) = text.split_once("encoding") else { return declaration.len() < BEGINNING };
    let value = value.trim_start_matches(|c: char| c.is_whitespace() || "='\"".contains(c));
    ["utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"].iter().any(|known| value.starts_with(known))
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let failed = |reason: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        if !self.is_text {
            return Ok(bytes.len());
        }
        for byte in bytes {
            match *byte {
                0 => return Err(failed("a part is in another encoding than UTF-8")),
                b'<' => {
                    self.element_ends().map_err(failed)?;
                    self.marks += 1;
                    self.since = 0;
                }
                other if self.marks > 0 && self.element.len() < BEGINNING => self.element.push(other),
                _ => {}
            }
            self.since += 1;
            self.longest = self.longest.max(self.since);
        }
        if self.longest > LONGEST {
            return Err(failed("a text in it is longer than any cell"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
