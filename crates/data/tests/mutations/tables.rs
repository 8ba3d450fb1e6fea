//! Tables.

use super::{READ_LIMIT, judge};
use crate::common::{Sheet, damage, gzip, iterations, workbook, workbook_parts, zipped};
use posterior_data::{
    DecimalMark, Delimiter, ReadOptions, Schema, Selection, Table, TextEncoding, TextOptions, parse_table,
    synthetic, write_table,
};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn run(name: &str, valid: &[u8]) {
    run_as(name, (name, TextOptions::default()), valid, damage);
}

/// Reads damaged files under a name and as is said; `kind` is what the case is called.
fn run_as<T: Whole + ?Sized>(
    kind: &str,
    (name, text): (&str, TextOptions),
    valid: &T,
    damaged: impl Fn(&T, &mut ChaCha8Rng) -> Vec<u8>,
) {
    let options = ReadOptions { memory_limit: READ_LIMIT, text };
    let read = |bytes: Vec<u8>| parse_table(bytes, Path::new(name), None, &options);
    let original = read(valid.whole()).unwrap();
    assert!(original.rows() > 0);
    let mut rng = Streams::new(11).stream(kind);
    // The message of a panic inside a guarded decoder is noise here.
    std::panic::set_hook(Box::new(|_| {}));
    let (started, count) = (Instant::now(), iterations());
    let (mut accepted, mut slowest) = (0, Duration::ZERO);
    for _ in 0..count {
        let bytes = damaged(valid, &mut rng);
        let begun = Instant::now();
        match read(bytes) {
            Ok(table) => {
                accepted += 1;
                assert!(table.index.is_none_or(|index| table.columns.iter().any(|c| c.name == index)));
                let table = Table { index: None, ..Table::new(name, table.columns) };
                let target = table.columns.last().map(|c| c.name.clone()).unwrap_or_default();
                let rows: Vec<usize> = (0..table.rows()).collect();
                let selection = Selection { target, ..Default::default() };
                if let Ok(schema) = Schema::learn(&table, &selection, &rows) {
                    let _ = schema.extract(&table, &rows, true);
                }
            }
            Err(error) => assert!(error.to_string().len() < 1000, "{error}"),
        }
        slowest = slowest.max(begun.elapsed());
    }
    let _ = std::panic::take_hook();
    judge(kind, count, accepted, started, slowest);
}

/// What is damaged, as a file.
trait Whole {
    fn whole(&self) -> Vec<u8>;
}

impl Whole for [u8] {
    fn whole(&self) -> Vec<u8> {
        self.to_vec()
    }
}

/// The parts of a workbook: damage to an archive seldom gets past its checksums.
impl Whole for [(String, String)] {
    fn whole(&self) -> Vec<u8> {
        zipped(&self.iter().map(|(name, part)| (name.as_str(), part.as_str())).collect::<Vec<_>>())
    }
}

fn damaged_part(parts: &[(String, String)], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut parts = parts.to_vec();
    let at = rng.random_range(0..parts.len());
    parts[at].1 = String::from_utf8_lossy(&damage(parts[at].1.as_bytes(), rng)).into_owned();
    parts.whole()
}

fn example() -> Table {
    let mut table = synthetic::friedman(12, Streams::new(0));
    let colours = (0..12).map(|i| Some(["red", "green", "blue"][i % 3].to_string())).collect();
    table.columns.insert(
        0,
        posterior_data::Column { name: "colour".into(), values: posterior_data::Values::Text(colours) },
    );
    table
}

fn written(name: &str, table: &Table) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    write_table(table, &path).unwrap();
    std::fs::read(path).unwrap()
}

fn npy() -> Vec<u8> {
    let values: Vec<u8> = (0..30).flat_map(|v| f64::from(v).to_le_bytes()).collect();
    crate::common::npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10, 3), }", &values)
}

#[test]
fn damaged_files_are_errors_or_tables() {
    let csv = written("t.csv", &example());
    run("t.csv", &csv);
    run("t.csv.gz", &gzip(&csv));
    run("t.parquet", &written("t.parquet", &example()));
    run("t.npy", &npy());
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for name in ["x.npy", "z.npy"] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&npy()).unwrap();
    }
    run("t.npz", &archive.finish().unwrap().into_inner());
}

#[test]
fn damaged_texts_are_errors_or_tables() {
    let text = String::from_utf8(written("t.csv", &example())).unwrap();
    let comma = text.replace(',', ";").replace('.', ",");
    let usual = TextOptions::default();
    let utf16 = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    let western: Vec<u8> = text.replace("red", "r\u{f6}t").chars().map(|c| c as u8).collect();
    for (kind, options, bytes) in [
        ("UTF-16LE", usual, [&b"\xff\xfe"[..], &utf16(u16::to_le_bytes)].concat()),
        ("UTF-16BE without a mark", usual, utf16(u16::to_be_bytes)),
        ("Windows-1252", usual, western),
        ("decimal commas", usual, comma.clone().into_bytes()),
        ("an index", usual, format!(",a;b\n0,1\n1,2\n2,\"x\"\n{}", "3,4\n".repeat(9)).into_bytes()),
        (
            "all is said",
            TextOptions {
                delimiter: Some(Delimiter::Semicolon),
                decimal: Some(DecimalMark::Comma),
                encoding: Some(TextEncoding::Utf8),
                trained: None,
            },
            comma.into_bytes(),
        ),
    ] {
        run_as(kind, ("t.csv", options), &bytes[..], damage);
    }
}

#[test]
fn damaged_json_lines_are_errors_or_tables() {
    let line = |i: usize| format!("{{\"a\": {i}.5, \"b\": \"wo\\u0072d\", \"c\": null, \"d\": true}}\n");
    run("t.jsonl", (0..12).map(line).collect::<String>().as_bytes());
}

#[test]
fn damaged_workbooks_are_errors_or_tables() {
    let row = |i: usize| {
        format!(
            r#"<row r="{}"><c r="A{}"><v>{i}.5</v></c><c r="B{}" s="2"><v>44259.{i}</v></c><c r="C{}" t="s"><v>1</v></c><c r="D{}" t="b"><v>1</v></c></row>"#,
            i + 2,
            i + 2,
            i + 2,
            i + 2,
            i + 2
        )
    };
    let header = r#"<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>when</t></is></c><c r="C1" t="str"><v>c</v></c><c r="D1" t="str"><v>d</v></c></row>"#;
    let rows = header.to_string() + &(0..10).map(row).collect::<String>();
    let sheets = [Sheet { name: "Data", rows: &rows }];
    run("t.xlsx", &workbook(&sheets, &[]));
    let usual = TextOptions::default();
    run_as("parts of a workbook", ("t.xlsx", usual), &workbook_parts(&sheets)[..], damaged_part);
}

#[test]
fn damaged_dates_are_errors_or_tables() {
    use parquet::data_type::{Int32Type, Int64Type, Int96, Int96Type};
    let schema = "message m { required int32 day (DATE); optional int64 at (TIMESTAMP(MICROS,true)); required int96 old; required int32 clock (TIME_MILLIS); }";
    let schema = parquet::schema::parser::parse_message_type(schema).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        parquet::file::writer::SerializedFileWriter::new(&mut bytes, schema.into(), Default::default())
            .unwrap();
    let mut group = writer.next_row_group().unwrap();
    let many = 0..20_i64;
    let narrow: Vec<i32> = many.clone().map(|i| i as i32 * 1000).collect();
    let mut columns = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match columns {
            1 => {
                let levels: Vec<i16> = many.clone().map(|i| i16::from(i % 2 == 0)).collect();
                let values: Vec<i64> = many.clone().step_by(2).map(|i| i * 1_614_834_367).collect();
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap();
            }
            2 => {
                let old = |i: i64| {
                    let mut old = Int96::new();
                    old.set_data(i as u32 * 1_000_000, 7, 2_440_588 + i as u32);
                    old
                };
                let values: Vec<Int96> = many.clone().map(old).collect();
                column.typed::<Int96Type>().write_batch(&values, None, None).unwrap();
            }
            _ => {
                column.typed::<Int32Type>().write_batch(&narrow, None, None).unwrap();
            }
        }
        column.close().unwrap();
        columns += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    run("dates.parquet", &bytes);
}
