//! Bytes as text: which encoding a file has, said or guessed, and its content as UTF-8, at once or as a stream.

use super::{ReadOptions, read_limited};
use crate::DataError;
use encoding_rs::Encoding;
use encoding_rs_io::DecodeReaderBytesBuilder;
use posterior_notes::fixes::{ENCODING, ENCODING_WINDOWS};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::path::Path;

/// Bytes at the beginning that a guess is made from.
pub(crate) const HEAD: usize = 64 << 10;

/// What the bytes of a text stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum TextEncoding {
    /// UTF-8, with a mark at its beginning or without
    #[serde(rename = "utf-8", alias = "utf8")]
    #[cfg_attr(feature = "clap", value(name = "utf-8", alias = "utf8"))]
    Utf8,
    /// UTF-16, low bytes first ("Unicode" of Windows)
    #[serde(rename = "utf-16le", alias = "utf-16")]
    #[cfg_attr(feature = "clap", value(name = "utf-16le", alias = "utf-16"))]
    Utf16Le,
    /// UTF-16, high bytes first
    #[serde(rename = "utf-16be")]
    #[cfg_attr(feature = "clap", value(name = "utf-16be"))]
    Utf16Be,
    /// Western European, also Latin-1
    #[serde(rename = "windows-1252", alias = "latin-1", alias = "iso-8859-1")]
    #[cfg_attr(feature = "clap", value(name = "windows-1252", aliases = ["latin-1", "latin1", "iso-8859-1"]))]
    Windows1252,
    /// Central European
    #[serde(rename = "windows-1250")]
    #[cfg_attr(feature = "clap", value(name = "windows-1250"))]
    Windows1250,
    /// Cyrillic
    #[serde(rename = "windows-1251")]
    #[cfg_attr(feature = "clap", value(name = "windows-1251"))]
    Windows1251,
    /// Japanese
    ShiftJis,
    /// Chinese, also GBK and GB2312
    #[serde(alias = "gbk")]
    #[cfg_attr(feature = "clap", value(alias = "gbk"))]
    Gb18030,
}

impl TextEncoding {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Windows1252 => "Windows-1252",
            Self::Windows1250 => "Windows-1250",
            Self::Windows1251 => "Windows-1251",
            Self::ShiftJis => "Shift_JIS",
            Self::Gb18030 => "GB18030",
        }
    }

    /// A line of such a text, of encodings in which no other character has the byte that ends a line (all but UTF-16).
    ///
    /// # Errors
    /// In words, for bytes that stand for nothing.
    pub(crate) fn decoded_line(self, line: &[u8]) -> Result<Cow<'_, str>, String> {
        let decoded = self.decoder().decode_without_bom_handling_and_without_replacement(line);
        decoded.ok_or_else(|| format!("it is no {} text", self.name()))
    }

    fn decoder(self) -> &'static Encoding {
        match self {
            Self::Utf8 => encoding_rs::UTF_8,
            Self::Utf16Le => encoding_rs::UTF_16LE,
            Self::Utf16Be => encoding_rs::UTF_16BE,
            Self::Windows1252 => encoding_rs::WINDOWS_1252,
            Self::Windows1250 => encoding_rs::WINDOWS_1250,
            Self::Windows1251 => encoding_rs::WINDOWS_1251,
            Self::ShiftJis => encoding_rs::SHIFT_JIS,
            Self::Gb18030 => encoding_rs::GB18030,
        }
    }

    /// The mark that a text may begin with.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            _ => b"",
        }
    }
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Guess {
    encoding: TextEncoding,
    /// Whether it was said, or the text begins with a mark: what contradicts it is an error.
    certain: bool,
    note: bool,
}

impl Guess {
    /// From the first bytes, all of them where `complete`.
    fn of(head: &[u8], complete: bool, said: Option<TextEncoding>) -> Self {
        use TextEncoding as T;
        if let Some(encoding) = said {
            return Self { encoding, certain: true, note: false };
        }
        if let Some(encoding) =
            [T::Utf8, T::Utf16Le, T::Utf16Be].into_iter().find(|e| head.starts_with(e.mark()))
        {
            return Self { encoding, certain: true, note: encoding != T::Utf8 };
        }
        if let Some(encoding) = zeros(head) {
            return Self { encoding, certain: false, note: true };
        }
        let encoding = match std::str::from_utf8(head) {
            // A head may end within a character.
            Err(error) if complete || error.error_len().is_some() => T::Windows1252,
            _ => T::Utf8,
        };
        Self { encoding, certain: false, note: encoding != T::Utf8 }
    }

    fn sentence(self, path: &Path) -> Option<String> {
        let (path, name) = (path.display(), self.encoding.name());
        self.note.then(|| match self.encoding {
            TextEncoding::Windows1252 => {
                format!("{path} is not UTF-8: read as {name} ({ENCODING} says another)")
            }
            _ => format!("{path} is {name} text"),
        })
    }

    fn mark(self, head: &[u8]) -> usize {
        let mark = self.encoding.mark();
        if head.starts_with(mark) { mark.len() } else { 0 }
    }
}

/// UTF-16 without a mark: the high bytes of digits, letters and delimiters are 0, and nothing else is.
fn zeros(head: &[u8]) -> Option<TextEncoding> {
    let count = |from: usize| head.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
    let (first, second, pairs) = (count(0), count(1), head.len() / 2);
    let most = |zeros: usize, other: usize| pairs > 0 && zeros * 5 >= pairs * 2 && other * 5 <= zeros;
    if most(second, first) {
        Some(TextEncoding::Utf16Le)
    } else if most(first, second) {
        Some(TextEncoding::Utf16Be)
    } else {
        None
    }
}

/// A text as UTF-8.
pub(crate) struct Decoded<T> {
    /// Its bytes; UTF-8 but where that was said of others.
    pub(crate) text: T,
    /// What was guessed, for people.
    pub(crate) note: Option<String>,
    /// Whether bytes may yet turn out to be no UTF-8: rows must be looked at with [`not_utf8`].
    pub(crate) unsure: bool,
}

/// The content of a file as text. What is neither UTF-8 nor UTF-16 is Windows-1252, in which all bytes are characters.
///
/// Memory: the content and, where it is not UTF-8, the text, both within the limit.
pub(crate) fn decoded(
    bytes: Vec<u8>,
    path: &Path,
    options: &ReadOptions,
) -> Result<Decoded<Vec<u8>>, DataError> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let mut guess = Guess::of(head, head.len() == bytes.len(), options.text.encoding);
    let mut unsure = false;
    if guess.encoding == TextEncoding::Utf8 && std::str::from_utf8(&bytes).is_err() {
        if guess.certain {
            unsure = true;
        } else {
            guess = Guess { encoding: TextEncoding::Windows1252, certain: false, note: true };
        }
    }
    let note = guess.sentence(path);
    let mark = guess.mark(head);
    if guess.encoding == TextEncoding::Utf8 {
        let mut text = bytes;
        text.drain(..mark);
        return Ok(Decoded { text, note, unsure });
    }
    let left = options.memory_limit.saturating_sub(bytes.len() as u64);
    let decoder = decoding(guess.encoding, &bytes[mark..]);
    let text = read_limited(decoder, path, guess.encoding.name(), &ReadOptions::limited(left));
    let text = text.map_err(|error| match error {
        DataError::TooLarge { path, .. } => DataError::TooLarge { path, limit: options.memory_limit },
        other => other,
    })?;
    Ok(Decoded { text, note, unsure: false })
}

/// As [`decoded`] for a text that is not read at once: the guess is that of its first [`HEAD`] bytes.
pub(crate) fn decoded_stream(
    mut source: Box<dyn Read>,
    path: &Path,
    said: Option<TextEncoding>,
) -> std::io::Result<Decoded<Box<dyn Read>>> {
    let mut head = Vec::new();
    source.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let guess = Guess::of(&head, head.len() < HEAD, said);
    let note = guess.sentence(path);
    head.drain(..guess.mark(&head));
    let raw = Cursor::new(head).chain(source);
    let utf8 = guess.encoding == TextEncoding::Utf8;
    let text: Box<dyn Read> = if utf8 { Box::new(raw) } else { Box::new(decoding(guess.encoding, raw)) };
    Ok(Decoded { text, note, unsure: utf8 })
}

fn decoding<R: Read>(encoding: TextEncoding, source: R) -> impl Read {
    DecodeReaderBytesBuilder::new().encoding(Some(encoding.decoder())).build(source)
}

/// The first cell, from 0, that is no UTF-8.
pub(crate) fn not_utf8(record: &csv::ByteRecord) -> Option<usize> {
    if record.as_slice().is_ascii() {
        return None;
    }
    record.iter().position(|cell| std::str::from_utf8(cell).is_err())
}

/// The error about a cell that is no UTF-8 in a text that is UTF-8 up to there.
pub(crate) fn other_bytes(path: &Path, row: usize, column: &str) -> DataError {
    let reason = format!(
        "row {row}, column `{}` holds bytes that are not UTF-8, as which the file is read; say what it is ({ENCODING_WINDOWS}, for one)",
        crate::error::short(column)
    );
    DataError::Malformed { path: path.into(), format: "UTF-8", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, big: bool) -> Vec<u8> {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn guesses_are_those_of_a_reader() {
        let of = |bytes: &[u8]| Guess::of(bytes, true, None).encoding;
        use TextEncoding as T;
        assert_eq!(of(b"a,b\n1,2\n"), T::Utf8);
        assert_eq!(of("größe,b\n1,2\n".as_bytes()), T::Utf8);
        assert_eq!(of(b"gr\xf6\xdfe,b\n1,2\n"), T::Windows1252);
        assert_eq!(of(&utf16("größe,b\n1,2\n", false)), T::Utf16Le);
        assert_eq!(of(&utf16("größe,b\n1,2\n", true)), T::Utf16Be);
        // Names in Greek, cells in digits.
        assert_eq!(of(&utf16("μέγεθος,τιμή\n1.25,2.5\n3.75,4.5\n", false)), T::Utf16Le);
        assert_eq!(of(b"\xff\xfe"), T::Utf16Le);
        assert_eq!(of(b""), T::Utf8);
        // A head that ends within a character is none that ends wrongly.
        let cut = &"aé".as_bytes()[..2];
        assert_eq!(Guess::of(cut, false, None).encoding, T::Utf8);
        assert_eq!(Guess::of(cut, true, None).encoding, T::Windows1252);
    }

    #[test]
    fn whole_and_stream_are_one_text() {
        let text = "näme,wert €\n😀,1\n".repeat(9_000);
        let latin: Vec<u8> = "näme,wert\nü,1\n".repeat(9_000).chars().map(|c| c as u8).collect();
        let mut odd = utf16(&text, false);
        odd.push(b'x');
        let lone =
            [b"\xfe\xff".to_vec(), utf16("a,b\n", true), vec![0xd8, 0x00], utf16(",1\n", true)].concat();
        let cases = [
            ([&b"\xef\xbb\xbf"[..], text.as_bytes()].concat(), text.clone()),
            ([&b"\xff\xfe"[..], &utf16(&text, false)].concat(), text.clone()),
            ([&b"\xfe\xff"[..], &utf16(&text, true)].concat(), text.clone()),
            (utf16(&text, true), text.clone()),
            (latin, "näme,wert\nü,1\n".repeat(9_000)),
            (odd, format!("{text}\u{fffd}")),
            (lone, "a,b\n\u{fffd},1\n".into()),
        ];
        let path = Path::new("t.csv");
        for (bytes, expected) in cases {
            let whole = decoded(bytes.clone(), path, &ReadOptions::default()).unwrap();
            assert!(whole.text == expected.as_bytes(), "{:?}", whole.note);
            let mut stream = decoded_stream(Box::new(Cursor::new(bytes)), path, None).unwrap();
            let mut read = Vec::new();
            stream.text.read_to_end(&mut read).unwrap();
            assert!(read == whole.text && stream.note == whole.note);
        }
    }

    #[test]
    fn decoded_text_counts() {
        let bytes = vec![0x80; 1000];
        let text = |limit| decoded(bytes.clone(), Path::new("t.csv"), &ReadOptions::limited(limit));
        // Three bytes for each sign of the euro, and the one that it was.
        assert_eq!(text(4000).unwrap().text.len(), 3000);
        assert!(matches!(text(3999), Err(DataError::TooLarge { limit: 3999, .. })));
    }
}
