//! Excel workbooks, made part by part: what cells become, and what is refused.

use crate::common::{Sheet, workbook, workbook_parts, zipped};
use posterior_data::{DataError, ReadOptions, Table, Values, parse_table, read_table};
use std::path::Path;

fn read_within(bytes: &[u8], sheet: Option<&str>, limit: u64) -> Result<Table, DataError> {
    parse_table(bytes.to_vec(), Path::new("t.xlsx"), sheet, &ReadOptions::limited(limit))
}

fn read(bytes: &[u8]) -> Result<Table, DataError> {
    read_within(bytes, None, 64 << 20)
}

fn one(rows: &str) -> Vec<u8> {
    workbook(&[Sheet { name: "Data", rows }], &[])
}

fn cells(table: &Table, name: &str) -> Vec<String> {
    let column = table.column(name).unwrap();
    (0..table.rows()).map(|row| column.cell(row)).collect()
}

/// A header from the second row and the third column on, and every kind of cell.
const KINDS: &str = r#"<row r="2"><c r="C2" t="s"><v>0</v></c><c r="D2" t="inlineStr"><is><t>day</t></is></c><c r="E2" t="str"><v>when</v></c><c r="F2" t="str"><v>ok</v></c><c r="G2" t="str"><v>name</v></c><c r="H2" t="str"><v>clock</v></c><c r="I2"><v>2021</v></c></row>
<row r="3"><c r="C3"><v>1.5</v></c><c r="D3" s="1"><v>44259</v></c><c r="E3" s="2"><v>44259.212581018519</v></c><c r="F3" t="b"><v>1</v></c><c r="G3" t="s"><v>1</v></c><c r="H3" s="3"><v>0.25</v></c><c r="I3"><v>7</v></c></row>
<row r="4"><c r="C4" t="e"><v>#N/A</v></c><c r="D4" s="1"><v>60.5</v></c><c r="E4" t="d"><v>2021-03-04</v></c><c r="F4" t="b"><v>0</v></c><c r="G4"><v>3</v></c><c r="H4" s="4"><v>1.5</v></c><c r="I4" t="str"><v>8</v></c></row>
<row r="5"><c r="C5"><v>-2e-3</v></c><c r="D5"/><c r="G5" t="str"><v>NA</v></c></row>
<row r="6"><c r="C6"/></row><row r="9"><c r="C9" t="str"><v>  </v></c></row>"#;

#[test]
fn cells_are_what_people_see() {
    let table = read(&one(KINDS)).unwrap();
    assert_eq!(table.names(), ["size", "day", "when", "ok", "name", "clock", "2021"]);
    assert_eq!(table.rows(), 3);
    assert_eq!(cells(&table, "size"), ["1.5", "", "-0.002"]);
    assert!(matches!(table.columns[0].values, Values::Numeric(_)));
    assert_eq!(cells(&table, "day")[0], "2021-03-04");
    assert_eq!(cells(&table, "when"), ["2021-03-04T05:06:07", "2021-03-04", ""]);
    assert_eq!(cells(&table, "ok"), ["true", "false", ""]);
    assert_eq!(cells(&table, "name"), ["red & blue", "3", ""]);
    assert_eq!(cells(&table, "clock"), ["06:00:00", "36:00:00", ""]);
    // A number that is stored as text is one.
    let column = table.column("2021").unwrap();
    let Values::Numeric(numbers) = &column.values else { panic!("{column:?}") };
    assert_eq!(numbers[..2], [7.0, 8.0]);
    assert!(table.notes.is_empty(), "{:?}", table.notes);
}

#[test]
fn a_sheet_is_chosen_by_name() {
    let (first, second) =
        (r#"<row r="1"><c r="A1" t="str"><v>a</v></c></row><row r="2"><c r="A2"><v>1</v></c></row>"#, KINDS);
    let bytes = workbook(&[Sheet { name: "One", rows: first }, Sheet { name: "Två: 2", rows: second }], &[]);
    let table = read(&bytes).unwrap();
    assert_eq!(table.names(), ["a"]);
    assert!(table.notes[0].contains("sheet `One` is read, the first of 2 (t.xlsx:SHEET is another)"));
    assert_eq!(read_within(&bytes, Some("Två: 2"), 64 << 20).unwrap().columns.len(), 7);
    let message = read_within(&bytes, Some("Three"), 64 << 20).unwrap_err().to_string();
    assert!(message.contains("has no sheet `Three`; its sheets are: One, Två: 2"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.xlsx");
    std::fs::write(&path, &bytes).unwrap();
    let named = format!("{}:Två: 2", path.display());
    assert_eq!(read_table(Path::new(&named), &ReadOptions::default()).unwrap().columns.len(), 7);
    // A name without an ending leaves it to the content.
    let bare = folder.path().join("t");
    std::fs::write(&bare, &bytes).unwrap();
    assert_eq!(read_table(&bare, &ReadOptions::default()).unwrap().names(), ["a"]);
}

#[test]
fn an_index_of_pandas_and_rows_without_a_header_are_known() {
    let rows = r#"<row r="1"><c r="B1" t="str"><v>a</v></c></row><row r="2"><c r="A2"><v>4</v></c><c r="B2"><v>1</v></c></row>"#;
    let table = read(&one(rows)).unwrap();
    assert_eq!(
        (table.index.as_deref(), table.names()),
        (Some("index"), vec!["index".to_string(), "a".into()])
    );
    let rows = r#"<row><c><v>1</v></c><c><v>2</v></c></row><row><c><v>3</v></c><c><v>4</v></c></row>"#;
    let table = read(&one(rows)).unwrap();
    assert_eq!((table.names(), table.rows()), (vec!["x1".to_string(), "x2".into()], 2));
    assert!(table.notes[0].contains("no header"));
}

#[test]
fn what_is_no_table_is_an_error_that_names_the_cell() {
    let header = r#"<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>"#;
    for (rows, expected) in [
        (
            r#"<row r="7"><c r="B7" t="e"><v>#DIV/0!</v></c></row>"#,
            "cell B7 of sheet `Data` holds the error #DIV/0!",
        ),
        (r#"<row r="2"><c r="AB2"><v>1</v></c></row>"#, "column 3 has no name in the header"),
        (r#"<row r="2"><c r="XFE2"><v>1</v></c></row>"#, "where no sheet has cells"),
        (r#"<row r="2"><c r="A2" s="1"><v>-5</v></c></row>"#, "cell A2 of sheet `Data` holds a date outside"),
        (r#"<row r="2"><c r="A2" t="s"><v>99</v></c></row>"#, "is not a valid Excel file"),
        ("", "has no rows of data"),
    ] {
        let message = read(&one(&format!("{header}{rows}"))).unwrap_err().to_string();
        assert!(message.contains(expected) && message.len() < 300, "{rows}: {message}");
    }
    assert!(matches!(read(&one("")), Err(DataError::NoRows { .. })));
    assert!(read(&zipped(&[("a.txt", "x")])).unwrap_err().to_string().contains("not a valid Excel file"));
}

#[test]
fn sizes_that_are_declared_take_no_memory() {
    // Cells in two corners of the largest sheet there is.
    let corners = r#"<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>"#;
    assert!(matches!(
        read(&one(corners)),
        Err(DataError::Malformed { .. } | DataError::TableTooLarge { .. })
    ));
    let deep = r#"<row r="1"><c r="A1" t="str"><v>a</v></c></row><row r="1048576"><c r="A1048576"><v>1</v></c></row>"#;
    assert_eq!(read(&one(deep)).unwrap().rows(), 1_048_575);
    assert!(matches!(read_within(&one(deep), None, 4 << 20), Err(DataError::TableTooLarge { .. })));
    // A bomb: a hundred megabytes of blanks in a hundred kilobytes.
    let blanks = " ".repeat(100 << 20);
    let bomb = one(&blanks);
    assert!(bomb.len() < 1 << 20);
    assert!(matches!(read_within(&bomb, None, 50 << 20), Err(DataError::TooLarge { .. })));
    // One that lies about what it unpacks to: in the directory, which comes last.
    let (size, lie) = ((blanks.len() + one("").len()) as u32, 1000_u32.to_le_bytes());
    let mut liar = bomb.clone();
    let places: Vec<usize> = (0..liar.len() - 4)
        .filter(|i| {
            let value = u32::from_le_bytes(liar[*i..*i + 4].try_into().unwrap());
            value > 100 << 20 && value < size + (1 << 20)
        })
        .collect();
    assert!(!places.is_empty());
    places.iter().for_each(|i| liar[*i..*i + 4].copy_from_slice(&lie));
    let message = read_within(&liar, None, 50 << 20).unwrap_err().to_string();
    assert!(message.contains("is not a valid Excel file"), "{message}");
    // A count of shared texts that a reader would reserve.
    let mut parts = workbook_parts(&[Sheet { name: "Data", rows: KINDS }]);
    for count in ["99999999999", "18446744073709551615", "184467440737095516150"] {
        for part in &mut parts {
            if part.0 == "xl/sharedStrings.xml" {
                part.1 = format!(r#"<sst uniqueCount="{count}"><si><t>size</t></si><si><t>x</t></si></sst>"#);
            }
        }
        let parts: Vec<(&str, &str)> = parts.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        let message = read(&zipped(&parts)).unwrap_err().to_string();
        assert!(message.contains("shared texts and has fewer"), "{message}");
    }
    // Formats that each repeat a long name of a font.
    let fonts = format!(r#"<font><name val="{}"/></font>"#, "x".repeat(100_000));
    let formats = "<xf/>".repeat(100_000);
    let styles = format!("<styleSheet><fonts>{fonts}</fonts><cellXfs>{formats}</cellXfs></styleSheet>");
    let heavy = workbook(&[Sheet { name: "Data", rows: KINDS }], &[("xl/styles.xml", &styles)]);
    assert!(matches!(read(&heavy), Err(DataError::TooLarge { .. })));
    // Parts in another encoding, in which nothing could be counted.
    let wide: String = "<styleSheet/>".chars().flat_map(|c| [c, '\0']).collect();
    let message =
        read(&workbook(&[Sheet { name: "Data", rows: KINDS }], &[("xl/styles.xml", &wide)])).unwrap_err();
    assert!(message.to_string().contains("another encoding than UTF-8"), "{message}");
}
