//! Texts in every encoding and dialect, at once and part by part; what was guessed is said.

use crate::common::gzip;
use posterior_data::stream::{StreamOptions, TableParts, count_rows, extract, is_streamable, learn_schema};
use posterior_data::{
    DecimalMark, Delimiter, ReadOptions, Schema, Selection, Table, TextEncoding, TextOptions, Unseen, Values,
    read_table, read_tables,
};
use std::path::Path;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Windows-1252 of characters that Latin-1 has, and of the euro.
fn western(text: &str) -> Vec<u8> {
    text.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(u32::from(c)).unwrap() }).collect()
}

fn cells(table: &Table, row: usize) -> Vec<String> {
    table.columns.iter().map(|c| c.cell(row)).collect()
}

/// Reads a file at once and part by part, which must agree.
fn both_ways(path: &Path, text: TextOptions) -> Table {
    let whole = read_table(path, &ReadOptions { text, ..ReadOptions::default() }).unwrap();
    let options = StreamOptions { part_bytes: 4 << 10, text, ..StreamOptions::default() };
    let files = [path.to_path_buf()];
    assert!(is_streamable(path));
    assert_eq!(count_rows(&files, &text).unwrap(), whole.rows());
    let mut row = 0;
    for (i, part) in TableParts::open(&files, &options).unwrap().enumerate() {
        let part = part.unwrap();
        assert_eq!((part.table.names(), &part.table.index), (whole.names(), &whole.index));
        assert_eq!(part.table.notes, if i == 0 { whole.notes.clone() } else { Vec::new() });
        for own in 0..part.table.rows() {
            assert_eq!(cells(&part.table, own), cells(&whole, row), "row {row}");
            row += 1;
        }
    }
    assert_eq!(row, whole.rows());
    whole
}

#[test]
fn every_encoding_is_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut text = "größe,ort,preis €\n".to_string();
    (0..500).for_each(|i| text += &format!("{i}.5,\"Köln, Süd\",{}\n", i * 3));
    let marked = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (bytes, note) in [
        (text.clone().into_bytes(), None),
        (marked(b"\xef\xbb\xbf", text.clone().into_bytes()), None),
        (marked(b"\xff\xfe", utf16(&text)), Some("t.csv is UTF-16LE text")),
        (utf16(&text), Some("t.csv is UTF-16LE text")),
        (marked(b"\xfe\xff", big.clone()), Some("t.csv is UTF-16BE text")),
        (big, Some("t.csv is UTF-16BE text")),
        (western(&text), Some("t.csv is not UTF-8: read as Windows-1252 (--set text.encoding says another)")),
    ] {
        for packed in [false, true] {
            let path = if packed { path.with_extension("csv.gz") } else { path.clone() };
            std::fs::write(&path, if packed { gzip(&bytes) } else { bytes.clone() }).unwrap();
            let table = both_ways(&path, TextOptions::default());
            assert_eq!(table.names(), ["größe", "ort", "preis €"], "{note:?}");
            assert_eq!(cells(&table, 7), ["7.5", "Köln, Süd", "21"]);
            assert_eq!(table.notes.len(), usize::from(note.is_some()));
            let said = |n: &String| n.replace(".gz", "").ends_with(note.unwrap_or("?"));
            assert!(table.notes.iter().all(said), "{:?}", table.notes);
        }
    }
    // What is said is believed, and not said again.
    std::fs::write(&path, b"a,b\n\xcf\xf0,1\n").unwrap();
    let said = TextOptions { encoding: Some(TextEncoding::Windows1251), ..TextOptions::default() };
    let table = both_ways(&path, said);
    assert_eq!((cells(&table, 0), table.notes.len()), (vec!["Пр".to_string(), "1".into()], 0));
}

#[test]
fn bytes_that_are_no_utf8_are_an_error_with_their_row_where_that_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let files = [path.clone()];
    let utf8 = TextOptions { encoding: Some(TextEncoding::Utf8), ..TextOptions::default() };
    std::fs::write(&path, b"a,b\nx,1\ny,2\nK\xf6ln,3\n").unwrap();
    let expected = "row 3, column `a` holds bytes that are not UTF-8";
    let whole = read_table(&path, &ReadOptions { text: utf8, ..ReadOptions::default() }).unwrap_err();
    for error in [whole, count_rows(&files, &utf8).unwrap_err()] {
        let message = error.to_string();
        assert!(
            message.contains(expected) && message.contains("--set text.encoding=windows-1252"),
            "{message}"
        );
    }
    // Beyond what a stream guesses from: an error there, where a reader of all bytes knows better.
    let mut late = "a,b\n".to_string() + &"x,1\n".repeat(20_000);
    late.push('§');
    std::fs::write(&path, western(&(late + ",2\n"))).unwrap();
    let message = count_rows(&files, &TextOptions::default()).unwrap_err().to_string();
    assert!(message.contains("row 20001, column `a` holds bytes that are not UTF-8"), "{message}");
    let table = read_table(&path, &ReadOptions::default()).unwrap();
    assert_eq!(cells(&table, 20_000), ["§", "2"]);
    let western = TextOptions { encoding: Some(TextEncoding::Windows1252), ..TextOptions::default() };
    assert_eq!(cells(&both_ways(&path, western), 20_000), ["§", "2"]);
}

#[test]
fn every_dialect_is_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let none = TextOptions::default();
    let said = |delimiter, decimal| TextOptions { delimiter, decimal, ..none };
    for (name, text, options, expected, note) in [
        (
            "t.csv",
            "a;b;c\n1,5;2;\"x;y\"\n",
            none,
            ["1.5", "2", "x;y"],
            "t.csv: cells are separated by `;`, decimals by a comma",
        ),
        (
            "t.csv",
            "a\tb\tc\r\n1.5\t2\tx y\r\n",
            none,
            ["1.5", "2", "x y"],
            "t.csv: cells are separated by tabulators",
        ),
        ("t.txt", "a|b|c\r1|2|\"x\ry\"\r", none, ["1", "2", "x\ry"], "t.txt: cells are separated by `|`"),
        (
            "t.tsv",
            "a\tb\tc\n1,5\t2\tx\n",
            none,
            ["1.5", "2", "x"],
            "t.tsv: decimals are separated by a comma",
        ),
        (
            "t.csv",
            "a,b,c\n1e308,\"1,234.5\",5 %\n",
            none,
            ["1", "1234.5", "5"],
            "t.csv: read as numbers: c in % (`5 %` is 5)",
        ),
        (
            "t.csv",
            "a,b,c\n\"1,234\",2,x\n",
            none,
            ["1.234", "2", "x"],
            "t.csv: `1,234` in column `a` could be read in two ways, and no cell decides: its `,` is taken as the decimal mark (--set text.decimal=. takes it as a mark between thousands)",
        ),
        (
            "t.csv",
            "a;b;c\n1,234;2;x\n",
            said(None, Some(DecimalMark::Point)),
            ["1234", "2", "x"],
            "t.csv: cells are separated by `;`",
        ),
        (
            "t.csv",
            "a;b;c\n1,234;2;x\n",
            said(None, Some(DecimalMark::Comma)),
            ["1.234", "2", "x"],
            "t.csv: cells are separated by `;`",
        ),
        (
            "t.csv",
            "a;b;c\n1,5;2;x\n",
            said(None, Some(DecimalMark::Point)),
            ["1,5", "2", "x"],
            "t.csv: cells are separated by `;`",
        ),
        ("t.txt", "a b c\n1 2 x;y\n", said(Some(Delimiter::Space), None), ["1", "2", "x;y"], ""),
        ("t.csv", "a,b,c\n\"1,5\",2,x\n", said(None, Some(DecimalMark::Comma)), ["1.5", "2", "x"], ""),
    ] {
        let path = folder.path().join(name);
        let (header, row) = text.split_at(text.find(['\n', '\r']).unwrap() + 1);
        let row = row.strip_prefix('\n').unwrap_or(row);
        std::fs::write(&path, header.to_string() + &row.repeat(300)).unwrap();
        let table = both_ways(&path, options);
        let mut found = cells(&table, 299);
        if found[0].len() > 100 {
            assert_eq!(found[0].parse::<f64>().unwrap(), 1e308);
            found[0].truncate(1);
        }
        assert_eq!(found, expected, "{text:?}");
        assert_eq!(table.names(), ["a", "b", "c"]);
        assert_eq!(table.notes.len(), usize::from(!note.is_empty()), "{:?}", table.notes);
        assert!(table.notes.iter().all(|n| n.ends_with(note)), "{:?}", table.notes);
    }
}

#[test]
fn one_column_stays_one_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for text in ["a\n1\n2\n", "a\r1\r2\r", "a\r\n1\r\n2", "\u{feff}a\n1\n2\n"] {
        std::fs::write(&path, text).unwrap();
        let table = both_ways(&path, TextOptions::default());
        assert_eq!(table.names(), ["a"], "{text:?}");
        assert_eq!(table.columns[0].values, Values::Numeric(vec![1.0, 2.0]));
        assert!(table.notes.is_empty());
    }
}

#[test]
fn decimal_commas_are_the_numbers_that_points_are() {
    // The same numbers in both ways, also as categories and beside words.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let number = |i: usize| format!("{}.{}", i % 17, i % 4 * 25);
    let rows = |write: &dyn Fn(String) -> String, mark: &str| {
        let row = |i: usize| {
            let word = if i == 480 { "no".to_string() } else { write(number(i)) };
            [write(number(i)), write(number(i % 3)), word, i.to_string()].join(mark) + "\n"
        };
        ["a", "kind", "mixed", "y"].join(mark) + "\n" + &(0..500).map(row).collect::<String>()
    };
    std::fs::write(at("point.csv"), rows(&|n| n, ",")).unwrap();
    std::fs::write(at("comma.csv"), rows(&|n| n.replace('.', ","), ";")).unwrap();
    let [point, comma] =
        ["point.csv", "comma.csv"].map(|name| read_table(&at(name), &ReadOptions::default()).unwrap());
    assert_eq!(point.columns, comma.columns);
    let selection = Selection {
        target: "y".into(),
        features: Some(vec!["a".into(), "kind".into(), "mixed".into()]),
        categories: vec!["kind".into(), "mixed".into()],
        ..Selection::default()
    };
    let chosen: Vec<usize> = (0..500).collect();
    let options = StreamOptions { part_bytes: 4 << 10, ..StreamOptions::default() };
    let expected = Schema::learn(&point, &selection, &chosen).unwrap();
    let numbers = expected.extract(&point, &chosen, true).unwrap();
    for name in ["point.csv", "comma.csv"] {
        let files = [at(name)];
        let learned = learn_schema(&files, &selection, &chosen, &options).unwrap();
        // What differs is kept for later files.
        let mark = if name == "comma.csv" { DecimalMark::Comma } else { DecimalMark::Point };
        assert_eq!(learned.decimal, Some(mark));
        assert_eq!(Schema { decimal: expected.decimal, ..learned }, expected, "{name}");
        assert_eq!(extract(&files, &expected, &chosen, &options).unwrap(), numbers, "{name}");
    }
    // Files of both kinds are one table.
    let together = read_tables(&[at("point.csv"), at("comma.csv")], &ReadOptions::default()).unwrap();
    assert_eq!(together.rows(), 1000);
    assert_eq!(cells(&together, 3), cells(&together, 503));
    assert!(together.notes.iter().any(|n| n.contains("comma.csv: cells are separated by `;`")));
}

#[test]
fn the_index_that_pandas_writes_is_none_of_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let rows: String = (0..500).map(|i| format!("{i},{}\n", i * 2)).collect();
    let shuffled: String = (0..500).map(|i| format!("{},{i}\n", i * 7 % 500)).collect();
    for (text, index) in [
        (format!(",a\n{rows}"), Some("index")),
        (format!("\"\",a\n{shuffled}"), Some("index")),
        (format!("Unnamed: 0,a\n{rows}"), Some("Unnamed: 0")),
        (format!("Unnamed: 0,a\n{shuffled}"), None),
        (format!("id,a\n{rows}"), None),
        (",a\nred,1\nblue,2\n".into(), Some("index")),
        (",index\n1,2\n".into(), Some("index_1")),
    ] {
        std::fs::write(&path, &text).unwrap();
        let table = both_ways(&path, TextOptions::default());
        assert_eq!(table.index.as_deref(), index, "{:?}", &text[..20.min(text.len())]);
        assert_eq!(table.index.is_some(), table.notes.iter().any(|n| n.contains("taken for an index")));
        assert!(index.is_none_or(|name| table.names()[0] == name));
        assert_eq!(table.select(&[0]).index, table.index);
    }
    std::fs::write(&path, "a,,b\n1,2,3\n").unwrap();
    let message = read_table(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("column 2 has no name in the header; give it one"), "{message}");
}

#[test]
fn messages_are_to_be_read() {
    let parse = |text: String| {
        posterior_data::parse_table(text.into_bytes(), Path::new("t.csv"), None, &ReadOptions::default())
    };
    let selection = Selection { target: "y".into(), ..Selection::default() };
    let learn = |table: &Table| Schema::learn(table, &selection, &(0..table.rows()).collect::<Vec<_>>());
    let mut messages = Vec::new();
    // A cell of 5 MB, a name of 5 MB, numbers of three hundred digits, lists of ten thousand.
    let long = "é".repeat(5 << 19);
    messages.push(learn(&parse(format!("a,y\n1,1\n2,2\n{long},3\n")).unwrap()).unwrap_err());
    messages.push(learn(&parse(format!("{long},y\n1,1\nx,2\n")).unwrap()).unwrap_err());
    messages.push(parse(format!("{long},{long}\nx,2\n")).unwrap_err());
    let wide: Vec<String> = (0..10_000).map(|i| format!("a column with a long name, {i}")).collect();
    let quoted = |names: &[String]| names.iter().map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(",");
    let table = parse(format!("{}\n{}\n", quoted(&wide), vec!["1"; 10_000].join(","))).unwrap();
    messages.push(learn(&table).unwrap_err());
    let absent = Selection {
        features: Some((0..500).map(|i| format!("{}{i}", &long[..100])).collect()),
        ..selection.clone()
    };
    messages.push(Schema::learn(&table, &absent, &[0]).unwrap_err());
    let classes: String = (0..10_000).map(|i| format!("category {i},1\n")).collect();
    let table = parse(format!("a,y\n{classes}")).unwrap();
    let unseen = Unseen::Error;
    let categories = Selection { categories: vec!["a".into()], unseen, ..selection.clone() };
    let schema = Schema::learn(&table, &categories, &(0..10_000).collect::<Vec<_>>()).unwrap();
    let other = parse(format!("a,y\n{long},1\n")).unwrap();
    messages.push(schema.extract(&other, &[0], true).unwrap_err());
    let noise = Selection { noise: Some("v".into()), ..selection.clone() };
    let table = parse("a,v,y\n1,-1e308,1\n".into()).unwrap();
    messages.push(Schema::learn(&table, &noise, &[0]).unwrap().extract(&table, &[0], true).unwrap_err());
    for error in messages {
        let message = error.to_string();
        assert!(message.chars().count() < 300, "{message}");
    }
    // Such cells are numbers as any others.
    let table = parse("a,y\n1e308,-1e308\n".into()).unwrap();
    assert_eq!(table.columns[0].values, Values::Numeric(vec![1e308]));
}
