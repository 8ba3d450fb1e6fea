//! Files of several formats as one table, and Parquet part by part.

use crate::common::{Sheet, workbook};
use posterior_data::stream::{StreamOptions, TableParts, count_rows, is_streamable};
use posterior_data::{Column, ReadOptions, Table, TextOptions, Values, read_table, read_tables, write_table};
use std::path::PathBuf;

fn cells(table: &Table, row: usize) -> Vec<String> {
    table.columns.iter().map(|c| c.cell(row)).collect()
}

#[test]
fn files_of_any_format_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let rows = r#"<row><c t="str"><v>b</v></c><c t="str"><v>a</v></c></row><row><c><v>3</v></c><c t="str"><v>007</v></c></row>"#;
    let files = [
        at("a.csv", b"a;b\n1,5;2\n"),
        at("b.jsonl", b"{\"b\": 4, \"a\": \"x\"}\n{\"a\": 7}\n"),
        at("c.xlsx", &workbook(&[Sheet { name: "s", rows }], &[])),
    ];
    let table = read_tables(&files, &ReadOptions::default()).unwrap();
    assert_eq!((table.names(), table.rows()), (vec!["a".to_string(), "b".into()], 4));
    let found: Vec<Vec<String>> = (0..4).map(|row| cells(&table, row)).collect();
    // Text in one file is text in all of them, as it stands there.
    assert_eq!(found, [["1.5", "2"], ["x", "4"], ["7", ""], ["007", "3"]]);
    assert!(matches!(table.columns[0].values, Values::Text(_)));
    assert!(matches!(table.columns[1].values, Values::Numeric(_)));
    assert_eq!(table.place(3), (&*files[2], 0));
    assert_eq!(files.each_ref().map(|file| is_streamable(file)), [true, false, false]);
    // The options of all hold for each.
    let text = TextOptions { decimal: Some(posterior_data::DecimalMark::Point), ..TextOptions::default() };
    let table = read_tables(&files, &ReadOptions { text, ..ReadOptions::default() }).unwrap();
    assert_eq!(cells(&table, 0), ["1,5", "2"]);
}

#[test]
fn the_index_of_parquet_is_known_at_once_and_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let numbers = |factor: usize| (0..500).map(|i| (i * factor % 500) as f64).collect();
    let columns = vec![Column::numeric("a", numbers(3)), Column::numeric("__index_level_0__", numbers(7))];
    write_table(&Table::new("t", columns), &path).unwrap();
    let whole = read_table(&path, &ReadOptions::default()).unwrap();
    assert_eq!(whole.index.as_deref(), Some("__index_level_0__"));
    assert!(whole.notes[0].contains("`__index_level_0__` is taken for an index"), "{:?}", whole.notes);
    let files = [path];
    assert_eq!(count_rows(&files, &TextOptions::default()).unwrap(), 500);
    let options = StreamOptions { part_bytes: 4 << 10, ..StreamOptions::default() };
    let mut rows = 0;
    for (i, part) in TableParts::open(&files, &options).unwrap().enumerate() {
        let part = part.unwrap();
        assert_eq!(part.table.index, whole.index);
        assert_eq!(part.table.notes, if i == 0 { whole.notes.clone() } else { Vec::new() });
        assert!((0..part.table.rows()).all(|row| cells(&part.table, row) == cells(&whole, rows + row)));
        rows += part.table.rows();
    }
    assert_eq!(rows, 500);
}
