use super::{ArrivingLines, Line, RowFormat, RowKind, SourceEnd};
use crate::{DecimalMark, Delimiter, TextEncoding, TextOptions, Values};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::time::Duration;

fn lines(bytes: &[u8]) -> Vec<Line> {
    ended(ArrivingLines::of(Cursor::new(bytes.to_vec()), "test".into(), 0, SourceEnd::Complete)).0
}

/// All lines, and whether the last was left.
fn ended(mut lines: ArrivingLines) -> (Vec<Line>, bool) {
    let mut out = Vec::new();
    while !lines.ended() {
        out.extend(lines.next_batch(3, Duration::from_secs(5), &|| false).unwrap());
    }
    (out, lines.unfinished())
}

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|l| String::from_utf8_lossy(&l.text).into_owned()).collect()
}

#[test]
fn lines_say_where_they_end() {
    let found = lines(b"a,b\r\n1,2\n\n  \n3,4");
    assert_eq!(texts(&found), ["a,b", "1,2", "3,4"]);
    assert_eq!(found.iter().map(|l| l.end).collect::<Vec<_>>(), [5, 9, 16]);
    assert!(lines(b"").is_empty() && lines(b"\n\n").is_empty());
}

#[test]
fn a_line_without_an_end_takes_no_more_than_its_share_and_the_next_is_whole() {
    let mut bytes = vec![b'x'; 3 << 20];
    bytes.extend(b"\n5,6\n");
    let found = lines(&bytes);
    assert_eq!(found.len(), 2);
    assert!(found[0].cut && found[0].text.len() == 1 << 20 && found[0].end == (3 << 20) + 1);
    assert!(!found[1].cut && found[1].text == b"5,6");
}

/// A source that gives a line and then nothing for a long time.
struct Slow(Vec<&'static [u8]>);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.0.pop() {
            Some(bytes) => {
                out[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
            None => {
                std::thread::sleep(Duration::from_secs(30));
                Ok(0)
            }
        }
    }
}

#[test]
fn a_batch_that_is_not_full_is_handed_on_and_waiting_can_be_ended() {
    let mut lines = ArrivingLines::of(Slow(vec![b"1\n2\n"]), "test".into(), 0, SourceEnd::Complete);
    let found = lines.next_batch(100, Duration::from_millis(50), &|| false).unwrap();
    assert_eq!(texts(&found), ["1", "2"]);
    assert!(!lines.ended());
    let calls = std::cell::Cell::new(0);
    let none = lines.next_batch(100, Duration::from_millis(50), &|| {
        calls.set(calls.get() + 1);
        calls.get() > 2
    });
    assert!(none.unwrap().is_empty() && !lines.ended());
}

#[test]
fn a_file_is_followed_from_where_it_was_read_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, "a,b\n1,2\n3,").unwrap();
    let mut found = ArrivingLines::of_file(&path, 4, SourceEnd::Follow).unwrap();
    let mut take = || found.next_batch(1, Duration::from_millis(10), &|| false).unwrap();
    let first = take();
    assert_eq!((texts(&first), first[0].end), (vec!["1,2".to_string()], 8));
    // Half a line is none before its end has come.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"4\n").unwrap();
    let second = take();
    assert_eq!((texts(&second), second[0].end), (vec!["3,4".to_string()], 12));
    std::fs::write(&path, "a\n").unwrap();
    let error = found.next_batch(1, Duration::from_millis(10), &|| false).unwrap_err().to_string();
    assert!(error.contains("not the file that this stream began with"), "{error}");
    assert!(ArrivingLines::of_file(&path, 5, SourceEnd::Wait).is_err());
    assert!(ArrivingLines::of_file(&folder.path().join("none.csv"), 0, SourceEnd::Wait).is_err());
}

#[test]
fn a_last_line_without_its_newline_is_left_and_read_whole_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    // Half a number, half a quoted cell, half a letter of UTF-8, half an end of line, half an object, half a header.
    for (before, half, rest) in [
        (&b"a,b\n1,2\n"[..], &b"3,4"[..], &b".5\n"[..]),
        (b"a,b\n", b"3,\"4,", b"5\"\n"),
        (b"a,b\r\n1,2\r\n", b"3,gr\xc3", b"\xb6n\r\n"),
        (b"a,b\r\n1,2\r\n", b"3,4\r", b"\n"),
        (b"", b"{\"a\": 1, \"b\": 2", b"5}\n"),
        (b"", b"a,b", b"c\n"),
    ] {
        std::fs::write(&path, [before, half].concat()).unwrap();
        let (first, left) = ended(ArrivingLines::of_file(&path, 0, SourceEnd::Wait).unwrap());
        assert_eq!(first.len(), before.iter().filter(|byte| **byte == b'\n').count(), "{half:?}");
        assert!(left, "{half:?}");
        // As it stands, where that is asked for.
        let (all, left) = ended(ArrivingLines::of_file(&path, 0, SourceEnd::Complete).unwrap());
        assert_eq!((all.len(), left), (first.len() + 1, false));
        assert_eq!(all.last().unwrap().end, (before.len() + half.len()) as u64);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(rest).unwrap();
        let from = first.last().map_or(0, |line| line.end);
        assert_eq!(from, before.len() as u64);
        let (next, left) = ended(ArrivingLines::of_file(&path, from, SourceEnd::Wait).unwrap());
        let whole = [half, rest].concat();
        assert_eq!((next.len(), left), (1, false));
        assert_eq!(next[0].text, whole.trim_ascii_end());
    }
    // What is blank is no line that is left.
    for blank in ["", "  ", "\r"] {
        std::fs::write(&path, format!("1,2\n{blank}")).unwrap();
        let (lines, left) = ended(ArrivingLines::of_file(&path, 0, SourceEnd::Wait).unwrap());
        assert_eq!((lines.len(), left), (1, false), "{blank:?}");
    }
}

#[test]
fn the_first_line_names_the_columns() {
    let at = Path::new("test");
    let of = |kind, line: &[u8]| RowFormat::of_first(kind, TextOptions::default(), line, at);
    let (format, is_row) = of(RowKind::Csv, b"\xef\xbb\xbfa, b,\"c,d\"").unwrap();
    assert!(format.columns == ["a", "b", "c,d"] && !is_row);
    let (format, is_row) = of(RowKind::Csv, b"1,2").unwrap();
    assert!(format.columns == ["x1", "x2"] && is_row);
    let (format, is_row) = of(RowKind::Jsonl, br#"{"b": 1, "a": "x"}"#).unwrap();
    assert!(format.columns.len() == 2 && is_row);
    let (format, _) = of(RowKind::Tsv, b"a\tb,c").unwrap();
    assert_eq!(format.columns, ["a", "b,c"]);
    for (kind, line) in [
        (RowKind::Csv, &b"a,a"[..]),
        (RowKind::Csv, b"a,"),
        (RowKind::Csv, b"a,\"b"),
        (RowKind::Jsonl, b"[1]"),
    ] {
        assert!(of(kind, line).is_err(), "{line:?}");
    }
}

#[test]
fn a_header_may_come_again_and_other_columns_are_said() {
    let at = Path::new("test");
    let format = RowFormat {
        columns: vec!["a".into(), "b".into(), "y".into()],
        ..RowFormat::of(RowKind::Csv, TextOptions::default())
    };
    let needed = ["a".to_string(), "y".to_string()];
    let header = |line: &[u8]| format.header(line, &needed, at);
    assert_eq!(header(b"y,b,a").unwrap().unwrap().columns, ["y", "b", "a"]);
    assert!(header(b"1,2,3").unwrap().is_none());
    assert!(header(b"1,b,x").unwrap().is_none());
    assert!(header(b"red,blue,y").unwrap().is_none());
    let error = header(b"a,b,z").unwrap_err().to_string();
    assert!(error.contains('y') && error.contains("a, b, z"), "{error}");
}

#[test]
fn rows_become_tables_and_damage_stays_in_its_row() {
    let at = Path::new("test");
    let format = RowFormat {
        columns: vec!["a".into(), "b".into()],
        ..RowFormat::of(RowKind::Csv, TextOptions::default())
    };
    let cells = |line: &[u8]| format.cells(line, &[]);
    assert!(cells(b"1").unwrap_err().contains("it has 1 cells, and there are 2 columns"));
    assert!(cells(b"1,\"2").unwrap_err().contains("not closed"));
    let rows = [cells(b"1, x").unwrap(), cells(b"NA,\"q,\"\"r\"").unwrap()];
    let table = format.table(&rows, None, &[], at);
    assert!(matches!(&table.columns[0].values, Values::Numeric(v) if v[0] == 1.0 && v[1].is_nan()));
    assert_eq!(table.columns[1].values, Values::Text(vec![Some("x".into()), Some("q,\"r".into())]));
    let text = format.table(&rows, Some(&["a".to_string()]), &["a".to_string()], at);
    assert_eq!(text.columns.len(), 1);
    assert_eq!(text.columns[0].values, Values::Text(vec![Some("1".into()), None]));

    let format = RowFormat {
        columns: vec!["a".into(), "y".into()],
        ..RowFormat::of(RowKind::Jsonl, TextOptions::default())
    };
    let optional = ["y".to_string()];
    let cells = |line: &[u8]| format.cells(line, &optional);
    let rows = [
        cells(br#"{"y": true, "a": 0.1, "more": []}"#).unwrap(),
        cells(br#"{"a": null, "y": "no"}"#).unwrap(),
        cells(br#"{"a": 3e2}"#).unwrap(),
    ];
    let table = format.table(&rows, None, &[], at);
    assert!(
        matches!(&table.columns[0].values, Values::Numeric(v) if v[0] == 0.1 && v[1].is_nan() && v[2] == 300.0)
    );
    assert_eq!(table.columns[1].values, Values::Text(vec![Some("true".into()), Some("no".into()), None]));
    assert!(cells(br#"{"y": 1}"#).unwrap_err().contains("no `a`"));
    assert!(cells(br#"{"a": [1]}"#).unwrap_err().contains("no number or text"));
    assert!(cells(br#"{"a": 1"#).unwrap_err().contains("no JSON object"));
}

#[test]
fn lines_are_read_as_it_is_said() {
    let at = Path::new("test");
    let text = TextOptions {
        delimiter: Some(Delimiter::Semicolon),
        decimal: Some(DecimalMark::Comma),
        encoding: Some(TextEncoding::Windows1252),
        trained: None,
    };
    let (format, is_row) = RowFormat::of_first(RowKind::Csv, text, b"gr\xf6\xdfe;y", at).unwrap();
    assert_eq!((&format.columns[..], is_row), (&["größe".to_string(), "y".into()][..], false));
    // A row of numbers is no header, in either way of writing.
    assert!(RowFormat::of_first(RowKind::Csv, text, b"1,5;2,5", at).unwrap().1);
    assert!(format.header(b"gr\xf6\xdfe;1,5", &["y".to_string()], at).unwrap().is_none());
    let rows = [b"1,5;s\xfcd".as_slice(), b"-2;NA"].map(|line| format.cells(line, &[]).unwrap());
    let table = format.table(&rows, None, &[], at);
    assert_eq!(table.columns[0].values, Values::Numeric(vec![1.5, -2.0]));
    assert_eq!(table.columns[1].values, Values::Text(vec![Some("süd".into()), None]));
    // What was said goes with the state.
    let kept: RowFormat = serde_json::from_str(&serde_json::to_string(&format).unwrap()).unwrap();
    assert_eq!(kept, format);
    let of = |kind, text| RowFormat::of(kind, text);
    let only = |encoding| TextOptions { encoding: Some(encoding), ..TextOptions::default() };
    let strict = RowFormat { columns: vec!["a".into()], ..of(RowKind::Csv, only(TextEncoding::Utf8)) };
    assert!(strict.cells(b"\xfc", &[]).unwrap_err().contains("no UTF-8 text"));
    assert!(of(RowKind::Csv, only(TextEncoding::Utf16Le)).check().unwrap_err().contains("UTF-16"));
    assert!(of(RowKind::Jsonl, text).check().unwrap_err().contains("JSON"));
    assert!(of(RowKind::Jsonl, only(TextEncoding::ShiftJis)).check().is_ok() && format.check().is_ok());
}
