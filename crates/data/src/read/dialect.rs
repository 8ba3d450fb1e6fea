//! How the cells of a text are told apart and how its numbers are written, said or guessed from its first lines.

use super::csv::is_missing;
use super::encoding::{HEAD, TextEncoding};
use super::marks::{Evidence, Marks, NumberMark};
use super::quantity::Quantity;
use crate::DataError;
use csv::{ByteRecord, Reader, ReaderBuilder};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;

/// What separates cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Delimiter {
    /// A comma
    #[serde(rename = ",", alias = "comma")]
    #[cfg_attr(feature = "clap", value(name = ",", alias = "comma"))]
    Comma,
    /// A semicolon
    #[serde(rename = ";", alias = "semicolon")]
    #[cfg_attr(feature = "clap", value(name = ";", alias = "semicolon"))]
    Semicolon,
    /// A tabulator
    #[serde(alias = "\t")]
    #[cfg_attr(feature = "clap", value(aliases = ["\t", "\\t"]))]
    Tab,
    /// A vertical bar
    #[serde(rename = "|", alias = "pipe")]
    #[cfg_attr(feature = "clap", value(name = "|", alias = "pipe"))]
    Pipe,
    /// One space: two of them have an empty cell between them
    #[serde(alias = " ")]
    #[cfg_attr(feature = "clap", value(alias = " "))]
    Space,
}

impl Delimiter {
    /// Those that are guessed.
    const GUESSED: [Self; 4] = [Self::Comma, Self::Semicolon, Self::Tab, Self::Pipe];

    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
            Self::Space => b' ',
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Comma => "`,`",
            Self::Semicolon => "`;`",
            Self::Tab => "tabulators",
            Self::Pipe => "`|`",
            Self::Space => "spaces",
        }
    }
}

/// What stands between the whole and the fraction of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum DecimalMark {
    /// A point; commas stand between thousands
    #[serde(rename = ".", alias = "point")]
    #[cfg_attr(feature = "clap", value(name = ".", alias = "point"))]
    Point,
    /// A comma; points stand between thousands
    #[serde(rename = ",", alias = "comma")]
    #[cfg_attr(feature = "clap", value(name = ",", alias = "comma"))]
    Comma,
}

/// How delimited text is read. What is not said is guessed from the first 64 KiB, and the guess stands in the table's notes.
///
/// Of the dot and the comma one is the decimal mark of a file and the other stands between thousands (`1,234.5`, `1.234,5`): any cell that can be read in one way only decides for all columns. So does a
/// column whose numbers below 1,000 have no mark while all others have one before three digits. Where nothing decides, the mark is a decimal mark, and a note names a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
pub struct TextOptions {
    /// Field delimiter [default: detected]
    #[cfg_attr(feature = "clap", arg(long = "set text.delimiter", value_enum, value_name = "MARK"))]
    pub delimiter: Option<Delimiter>,
    /// Decimal mark [default: detected]
    #[cfg_attr(feature = "clap", arg(long = "set text.decimal", value_enum, value_name = "MARK"))]
    pub decimal: Option<DecimalMark>,
    /// Text encoding [default: detected]
    #[cfg_attr(feature = "clap", arg(long = "set text.encoding", value_enum, value_name = "NAME"))]
    pub encoding: Option<TextEncoding>,
    /// The decimal mark of a model's training, where it is not said and no cell of the file is certain.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trained: Option<DecimalMark>,
}

impl TextOptions {
    /// What is said here and, where nothing is, what was said before.
    pub fn or(self, before: Self) -> Self {
        Self {
            delimiter: self.delimiter.or(before.delimiter),
            decimal: self.decimal.or(before.decimal),
            encoding: self.encoding.or(before.encoding),
            trained: self.trained.or(before.trained),
        }
    }

    /// The decimal mark that is not to be looked for.
    pub(crate) fn mark(&self) -> Option<NumberMark> {
        self.decimal.map(|decimal| NumberMark { decimal, decided: true })
    }
}

/// How cells are told apart and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    delimiter: Delimiter,
    decimal_comma: bool,
}

impl Dialect {
    /// Numbers with a point.
    pub(crate) const fn of(delimiter: Delimiter) -> Self {
        Self { delimiter, decimal_comma: false }
    }

    /// What is said of a text, or was of the training of a model; the delimiter `usual` and a point where nothing is.
    pub(crate) fn said(said: &TextOptions, usual: Delimiter) -> Self {
        let decimal_comma = said.decimal.or(said.trained) == Some(DecimalMark::Comma);
        Self { delimiter: said.delimiter.unwrap_or(usual), decimal_comma }
    }

    /// Records of a text, blank lines left out, each of as many cells as it has.
    pub(crate) fn reader<R: Read>(self, text: R) -> Reader<R> {
        self.builder().from_reader(text)
    }

    /// What makes such a reader, for a size of its own.
    pub(crate) fn builder(self) -> ReaderBuilder {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(self.delimiter.byte());
        builder
    }

    /// A number, NaN for a missing cell, `None` for anything else.
    pub(crate) fn number(self, cell: &[u8]) -> Option<f64> {
        let text = std::str::from_utf8(cell).ok()?.trim();
        if self.decimal_comma && text.contains(['.', ',']) {
            return with_point(text)?.parse().ok();
        }
        text.parse().ok().or_else(|| is_missing(text).then_some(f64::NAN))
    }

    /// Whether a name in a first row is a number.
    pub(crate) fn is_number(self, name: &str) -> bool {
        let decimal = if self.decimal_comma { DecimalMark::Comma } else { DecimalMark::Point };
        let marked = || Quantity::read(name, decimal).is_some_and(|found| found.unit.is_empty());
        let plain = self.number(name.as_bytes()).is_some();
        plain && !(is_missing(name) && name.parse::<f64>().is_err()) || marked()
    }

    /// A cell of a column of text, as it stands; None where it is missing.
    pub(crate) fn text(cell: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(cell);
        let text = text.trim();
        (!is_missing(text)).then(|| text.to_string())
    }

    /// What is said of a text or, failing that, fits its first bytes, which are all of it where there are fewer than [`HEAD`]; `usual` is the delimiter that its name promises. `whole` is the text once more, for
    /// marks about which the first bytes are not certain.
    ///
    /// # Errors
    /// Those of `whole`.
    pub(crate) fn guess<R: Read>(
        head: &[u8],
        usual: Delimiter,
        said: &TextOptions,
        path: &Path,
        whole: impl FnOnce() -> Result<R, DataError>,
    ) -> Result<GuessedDialect, DataError> {
        let delimiter = said.delimiter.unwrap_or_else(|| guessed_delimiter(head, usual));
        let records = first_records(head, delimiter);
        let rows = if records.len() > 1 { &records[1..] } else { &records[..] };
        let (mut mark, mut note) = (said.mark(), None);
        if mark.is_none() {
            let mut marks = Marks::default();
            rows.iter().for_each(|row| marks.see_all(row));
            let open = matches!(marks.evidence(), Evidence::Likely(_) | Evidence::None(_));
            if open && head.len() >= HEAD {
                let rows =
                    Self::of(delimiter).reader(whole()?).into_byte_records().skip(1).map_while(Result::ok);
                marks = Marks::default();
                rows.for_each(|row| marks.see_all(&row));
            }
            let names = records.first().into_iter().flatten();
            let names: Vec<String> =
                names.map(|name| String::from_utf8_lossy(name).trim().to_string()).collect();
            (mark, note) = marks.decide(said.trained, &names, path);
        }
        let decimal_comma = mark.is_some_and(|mark| mark.decimal == DecimalMark::Comma);
        let mut words = Vec::new();
        if said.delimiter.is_none() && delimiter != usual {
            words.push(format!("cells are separated by {}", delimiter.in_words()));
        }
        if said.decimal.is_none() && decimal_comma && mark.is_some_and(|mark| mark.decided) {
            let begin = if words.is_empty() { "decimals are separated" } else { "decimals" };
            words.push(format!("{begin} by a comma"));
        }
        let words = (!words.is_empty()).then(|| format!("{}: {}", path.display(), words.join(", ")));
        let notes = words.into_iter().chain(note).collect();
        Ok(GuessedDialect { dialect: Self { delimiter, decimal_comma }, mark, notes })
    }

    /// The records that a decision from the first bytes looks at, the header among them.
    pub(crate) fn first_records(self, head: &[u8]) -> Vec<ByteRecord> {
        first_records(head, self.delimiter)
    }
}

/// A dialect, with what was decided without having been said, in words.
pub(crate) struct GuessedDialect {
    pub(crate) dialect: Dialect,
    pub(crate) mark: Option<NumberMark>,
    pub(crate) notes: Vec<String>,
}

/// The number with its comma as a point; None where it has a point, or commas in other numbers than one.
pub(super) fn with_point(text: &str) -> Option<String> {
    let one = text.matches(',').count() == 1 && !text.contains('.');
    one.then(|| text.replacen(',', ".", 1))
}

/// Whole records only: the last of more text is cut.
fn first_records(head: &[u8], delimiter: Delimiter) -> Vec<ByteRecord> {
    let records = Dialect::of(delimiter).reader(head).into_byte_records();
    let mut records: Vec<ByteRecord> = records.map_while(Result::ok).collect();
    if head.len() >= HEAD && records.len() > 1 {
        records.pop();
    }
    records
}

/// What splitting at a delimiter makes of the first lines.
struct Split {
    delimiter: Delimiter,
    /// Cells of the first record.
    width: usize,
    /// Share of the records that have as many.
    alike: f64,
    /// Share of the cells, those of the first record left out, that are numbers in either way of writing.
    numbers: f64,
}

impl Split {
    fn of(head: &[u8], delimiter: Delimiter) -> Self {
        let records = first_records(head, delimiter);
        let width = records.first().map_or(0, ByteRecord::len);
        let alike = records.iter().filter(|r| r.len() == width).count();
        let comma = Dialect { delimiter, decimal_comma: true };
        let is_number = |cell: &[u8]| {
            Dialect::of(delimiter).number(cell).is_some()
                || delimiter != Delimiter::Comma && comma.number(cell).is_some()
        };
        let later = || records.iter().skip(usize::from(records.len() > 1)).flatten();
        let numbers = later().filter(|cell| is_number(cell)).count();
        let share = |count: usize, all: usize| count as f64 / all.max(1) as f64;
        Self {
            delimiter,
            width,
            alike: share(alike, records.len()),
            numbers: share(numbers, later().count()),
        }
    }

    fn fits(&self) -> bool {
        self.width > 1 && self.alike == 1.0
    }
}

/// The delimiter that makes rows of one width. That of the name stays unless another makes better sense of the lines: a file of one column has none.
fn guessed_delimiter(head: &[u8], usual: Delimiter) -> Delimiter {
    let own = Split::of(head, usual);
    let others = Delimiter::GUESSED.into_iter().filter(|d| *d != usual).map(|d| Split::of(head, d));
    let better = |other: &Split| {
        if own.fits() {
            // Both make rows: `1,5;2,5` is two cells of three.
            other.fits() && other.numbers > own.numbers
        } else {
            // A row of another width is reported as one, with the delimiter that nearly all lines have.
            other.fits() || own.width < 2 && other.width > 1 && other.alike > 0.5
        }
    };
    let rank = |split: &Split| (split.alike, split.numbers, split.width as f64);
    let best = others.filter(better).reduce(|a, b| if rank(&b) > rank(&a) { b } else { a });
    best.map_or(usual, |split| split.delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(text: &str, usual: Delimiter) -> (Delimiter, bool) {
        let head = text.as_bytes();
        let found = Dialect::guess(head, usual, &TextOptions::default(), Path::new("t"), || Ok(head))
            .unwrap()
            .dialect;
        (found.delimiter, found.decimal_comma)
    }

    #[test]
    fn delimiters_are_those_that_people_see() {
        use Delimiter::{Comma, Pipe, Semicolon, Tab};
        for (text, expected) in [
            ("a,b\n1,2\n", (Comma, false)),
            ("a;b\n1;2\n", (Semicolon, false)),
            ("a\tb\n1\t2\n", (Tab, false)),
            ("a|b\n1|2\n", (Pipe, false)),
            ("a;b\n1,5;2\n", (Semicolon, true)),
            ("1,5;2,5;3,5\n4,5;5,5;6,5\n", (Semicolon, true)),
            ("a;b\r1,5;2\r", (Semicolon, true)),
            // One column, whatever its cells hold.
            ("a\n1\n2\n", (Comma, false)),
            ("a\nred; round\nblue; flat; new\n", (Comma, false)),
            // Marks in quotation, or in cells.
            ("a,b\n\"x;y\",1\n\"u;v\",2\n", (Comma, false)),
            ("a;b\n\"x,y\";1\n\"u,v\";2\n", (Semicolon, false)),
            ("id,tags\n1,a;b\n2,c;d\n", (Comma, false)),
            ("1,a;b\n2,c;d\n", (Comma, false)),
            ("name;place\nx;a, b\ny;c, d\n", (Semicolon, false)),
            // Rows of a wrong width are errors, not another dialect.
            ("a,b\n1,2\n3\n", (Comma, false)),
            ("a;b\n1;2\n3;4\n5;6\n7\n", (Semicolon, false)),
            ("", (Comma, false)),
        ] {
            assert_eq!(guess(text, Comma), expected, "{text:?}");
        }
        assert_eq!(guess("a\tb\n1\t2\n", Tab), (Tab, false));
        assert_eq!(guess("a,b\n1,2\n", Tab), (Comma, false));
        assert_eq!(guess("a\tb\n1,5\t2,5\n", Tab), (Tab, true));
        assert_eq!(guess("a\tb\n1,5\t2.5\n", Tab), (Tab, false));
    }

    #[test]
    fn commas_are_decimal_where_no_cell_says_otherwise() {
        use Delimiter::Comma;
        for (cells, expected) in [
            (["3,14", "2,71"], true),
            (["1,234", "5,678"], true),
            (["1,234", "678"], false),
            (["1,234", "$678"], false),
            (["$1,234", "$5,678"], false),
            (["1.234", "678"], true),
            (["1.234", "5678"], false),
            (["1,234", "0,678"], true),
            (["1,234", "5,67"], true),
            (["1,234,567", "5,67"], false),
            (["1.234,5", "5,67"], true),
            (["3.14", "2,71"], false),
            (["-1,5e-3", "+2,5"], true),
            (["red, blue", "2,5"], false),
            (["12", "13"], false),
            (["", "2,5"], true),
        ] {
            let text = format!("a;b\n{};x\n{};y\n", cells[0], cells[1]);
            assert_eq!(guess(&text, Comma).1, expected, "{cells:?}");
        }
    }

    #[test]
    fn numbers_with_a_comma_are_what_they_say() {
        let comma = Dialect { delimiter: Delimiter::Semicolon, decimal_comma: true };
        for (cell, value) in [
            ("3,25", Some(3.25)),
            (" -0,5e2 ", Some(-50.0)),
            ("1e308", Some(1e308)),
            ("7", Some(7.0)),
            ("inf", Some(f64::INFINITY)),
            ("3.14", None),
            ("1.234,5", None),
            ("1,234,5", None),
            ("5 %", None),
            (",", None),
        ] {
            assert_eq!(comma.number(cell.as_bytes()), value, "{cell}");
        }
        assert!(comma.number(b"NA").is_some_and(f64::is_nan));
        assert_eq!(Dialect::text(b" 3,14 ").as_deref(), Some("3,14"));
        assert_eq!(Dialect::text(b" NA "), None);
        let point = Dialect::of(Delimiter::Comma);
        assert_eq!(point.number(b"3,14"), None);
        for cell in ["1,234.5", "5 %"] {
            assert_eq!(point.number(cell.as_bytes()), None, "{cell}");
        }
        assert_eq!(point.number(b"1e308"), Some(1e308));
    }

    #[test]
    fn options_are_written_as_they_are_said() {
        let said = TextOptions {
            delimiter: Some(Delimiter::Semicolon),
            decimal: Some(DecimalMark::Comma),
            encoding: Some(TextEncoding::Utf16Le),
            trained: None,
        };
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(text, r#"{"delimiter":";","decimal":",","encoding":"utf-16le"}"#);
        assert_eq!(serde_json::from_str::<TextOptions>(&text).unwrap(), said);
        let others: TextOptions = serde_json::from_str(r#"{"delimiter":"\t","encoding":"latin-1"}"#).unwrap();
        assert_eq!(others.delimiter, Some(Delimiter::Tab));
        assert_eq!(others.encoding, Some(TextEncoding::Windows1252));
        assert_eq!(serde_json::from_str::<TextOptions>("{}").unwrap(), TextOptions::default());
    }

    #[cfg(feature = "clap")]
    #[test]
    fn flags_say_the_same() {
        use clap::{Args, FromArgMatches};
        let command = TextOptions::augment_args(clap::Command::new("read"));
        // `--set` and what it sets are one word here, into which the program joins them.
        let parse = |flags: &str| {
            let words = std::iter::once("read").chain(Some(flags).filter(|word| !word.is_empty()));
            command.clone().try_get_matches_from(words).map(|m| TextOptions::from_arg_matches(&m).unwrap())
        };
        assert_eq!(parse("").unwrap(), TextOptions::default());
        for (flags, delimiter) in [
            ("--set text.delimiter=;", Delimiter::Semicolon),
            ("--set text.delimiter=tab", Delimiter::Tab),
            ("--set text.delimiter=space", Delimiter::Space),
            ("--set text.delimiter=|", Delimiter::Pipe),
            ("--set text.delimiter=,", Delimiter::Comma),
        ] {
            assert_eq!(parse(flags).unwrap().delimiter, Some(delimiter), "{flags}");
        }
        assert_eq!(parse("--set text.decimal=,").unwrap().decimal, Some(DecimalMark::Comma));
        for (flags, encoding) in [
            ("--set text.encoding=utf-8", TextEncoding::Utf8),
            ("--set text.encoding=utf-16be", TextEncoding::Utf16Be),
            ("--set text.encoding=latin-1", TextEncoding::Windows1252),
            ("--set text.encoding=shift-jis", TextEncoding::ShiftJis),
            ("--set text.encoding=gbk", TextEncoding::Gb18030),
        ] {
            assert_eq!(parse(flags).unwrap().encoding, Some(encoding), "{flags}");
        }
        assert!(parse("--set text.delimiter=x").is_err());
    }
}
