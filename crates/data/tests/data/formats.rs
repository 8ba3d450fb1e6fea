//! Numbers and dates as people write them: by file, kept for later files.

use posterior_data::stream::{self, StreamOptions};
use posterior_data::{
    Column, DataError, DecimalMark, ReadOptions, Schema, Selection, Table, TextOptions, Values, dates_of,
    parse_table, read_tables, refuse_nearly_numbers,
};
use std::path::Path;

fn read_as(text: &str, trained: Option<DecimalMark>) -> Table {
    let text_options = TextOptions { trained, ..TextOptions::default() };
    let options = ReadOptions { text: text_options, ..ReadOptions::default() };
    parse_table(text.into(), Path::new("t.csv"), None, &options).unwrap()
}

fn read(text: &str) -> Table {
    read_as(text, None)
}

fn selection() -> Selection {
    Selection { target: "y".into(), ..Selection::default() }
}

fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).unwrap().values {
        Values::Numeric(values) => values.clone(),
        Values::Text(texts) => panic!("{texts:?}"),
    }
}

fn learned(table: &Table) -> Result<Schema, DataError> {
    Schema::learn(table, &selection(), &(0..table.rows()).collect::<Vec<_>>())
}

/// A file of 200 rows: 100 of one kind of cells, 100 of another.
fn file(first: &str, second: &str, delimiter: char) -> String {
    let row = |cell: &str| format!("{cell}{delimiter}1\n").repeat(100);
    format!("x{delimiter}y\n{}{}", row(first), row(second))
}

#[test]
fn cells_of_any_column_decide_for_the_file() {
    // `x` is open in each; what decides is in brackets.
    for (text, x, y) in [
        // No mark below 1,000.
        ("x;y\n1.892;5.555\n364;1.111\n", [1892.0, 364.0], [5555.0, 1111.0]),
        ("x,y\n\"1,892\",\"5,555\"\n364,\"1,111\"\n", [1892.0, 364.0], [5555.0, 1111.0]),
        // A decimal comma, a decimal point.
        ("x;y\n1.892;5,5\n3.640;1,1\n", [1892.0, 3640.0], [5.5, 1.1]),
        ("x;y\n1.892;5.5\n3.640;1.1\n", [1.892, 3.64], [5.5, 1.1]),
        ("x,y\n\"1,892\",5.5\n\"3,640\",1.1\n", [1892.0, 3640.0], [5.5, 1.1]),
        // Two marks.
        ("x;y\n1.892;1.234.567\n3.640;1\n", [1892.0, 3640.0], [1_234_567.0, 1.0]),
        // Money has no three decimals.
        ("x;y\n1.892;2.500 €\n3.640;1.500 €\n", [1892.0, 3640.0], [2500.0, 1500.0]),
        // Numbers from 1,000 without a mark, or below 1 with one.
        ("x;y\n1.892;1\n3640;2\n", [1.892, 3640.0], [1.0, 2.0]),
        ("x;y\n0.892;1\n3.640;2\n", [0.892, 3.64], [1.0, 2.0]),
        // Nothing.
        ("x;y\n1.892;5.555\n3.640;1.111\n", [1.892, 3.64], [5.555, 1.111]),
        ("x;y\n1,892;5,555\n3,640;1,111\n", [1.892, 3.64], [5.555, 1.111]),
    ] {
        let table = read(text);
        assert_eq!((numbers(&table, "x"), numbers(&table, "y")), (x.to_vec(), y.to_vec()), "{text}");
    }
    let open = read("x;y\n1.892;5.555\n3.640;1.111\n");
    assert!(
        open.notes[1].contains("`1.892` in column `x` could be read in two ways")
            && open.notes[1].contains("--set text.decimal=,"),
        "{:?}",
        open.notes
    );
}

#[test]
fn later_files_are_read_as_that_of_training() {
    let training = read("x;y\n1.892;5,5\n364;1,1\n");
    let schema = learned(&training).unwrap();
    assert_eq!(schema.decimal, Some(DecimalMark::Comma));
    // Alone it would be 2.5.
    let new = read_as("x;z\n2.500;1\n", schema.decimal);
    assert_eq!(schema.extract(&new, &[0], false).unwrap().x[(0, 0)], 2500.0);
    // A file of another dialect says so itself.
    let other = read_as("x;z\n2.5;1\n", schema.decimal);
    assert_eq!(schema.extract(&other, &[0], false).unwrap().x[(0, 0)], 2.5);
    // Decimals stay decimals beside a whole number by chance.
    let training = learned(&read("x;y\n0.892;1\n3.640;2\n")).unwrap();
    assert_eq!(numbers(&read_as("x;z\n2.500;1\n3;1\n", training.decimal), "x"), [2.5, 3.0]);
}

#[test]
fn a_decision_behind_the_first_bytes_is_one_for_all_rows_and_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut text = String::from("x;y\n");
    (0..12_000).for_each(|i| text += &format!("{}.{:03};{}\n", 1 + i % 9, i % 1000, i % 7));
    text += "12;1\n";
    std::fs::write(&path, text).unwrap();
    let whole = posterior_data::read_table(&path, &ReadOptions::default()).unwrap();
    let x = numbers(&whole, "x");
    assert_eq!((x[0], x[1], x[12_000]), (1000.0, 2001.0, 12.0));
    let options = StreamOptions { part_bytes: 8 << 10, ..StreamOptions::default() };
    let rows: Vec<usize> = (0..whole.rows()).collect();
    let schema = stream::learn_schema(std::slice::from_ref(&path), &selection(), &rows, &options).unwrap();
    assert_eq!(schema, Schema::learn(&whole, &selection(), &rows).unwrap());
    let parts = stream::extract(&[path], &schema, &rows, &options).unwrap();
    assert_eq!(parts.x, schema.extract(&whole, &rows, true).unwrap().x);
}

#[test]
fn files_of_one_table_follow_the_one_that_decides() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("a.csv", "x;y\n1.892;1\n"), ("b.csv", "x;y\n1.234,5;2\n")].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let table = read_tables(&files, &ReadOptions::default()).unwrap();
    assert_eq!(numbers(&table, "x"), [1892.0, 1234.5]);
    let schema = stream::learn_schema(&files, &selection(), &[0, 1], &StreamOptions::default()).unwrap();
    assert_eq!(schema, Schema::learn(&table, &selection(), &[0, 1]).unwrap());
    for (unit, ok) in [("kg", true), ("g", false)] {
        std::fs::write(&files[0], "x;y\n5 kg;1\n").unwrap();
        std::fs::write(&files[1], format!("x;y\n7 {unit};1\n")).unwrap();
        let table = read_tables(&files, &ReadOptions::default());
        let parts = stream::learn_schema(&files, &selection(), &[0, 1], &StreamOptions::default());
        assert_eq!((table.is_ok(), parts.is_ok()), (ok, ok));
        for message in [table.err(), parts.err()].into_iter().flatten().map(|error| error.to_string()) {
            assert!(message.contains("b.csv, row 1, column `x`: `7 g` is in g"), "{message}");
        }
    }
}

#[test]
fn units_are_read_said_kept_and_not_mixed() {
    let table = read("x,z,y\n12 kg,7.5%,$10\n0.5 kg,30%,$20\n,5%,$30\n");
    assert_eq!(numbers(&table, "x")[..2], [12.0, 0.5]);
    assert!(table.notes[0].contains("x in kg (`12 kg` is 12)"), "{:?}", table.notes);
    let rows = [0, 1];
    let schema = Schema::learn(&table, &selection(), &rows).unwrap();
    assert_eq!(schema.units["z"], "%");
    let extract = |text: &str| schema.extract(&read(text), &[0], false).map(|found| found.x[(0, 0)]);
    assert_eq!(extract("x,z\n3 kg,1%\n").unwrap(), 3.0);
    assert_eq!(extract("x,z\n3,1\n").unwrap(), 3.0);
    let message = extract("x,z\n3 g,1%\n").unwrap_err().to_string();
    assert!(message.contains("row 1, column `x`: `3 g` is not in kg, as in training"), "{message}");
    // Cells stay as they stand for whoever wants them so.
    assert_eq!(table.as_written(&table.columns[0]).cell(1), "0.5 kg");
    assert_eq!(table.select(&[1]).as_written(&table.columns[0]).cell(0), "0.5 kg");
}

#[test]
fn names_with_numbers_stay_texts() {
    for (first, second) in [("12A", "14B"), ("1st", "2nd"), ("3 rooms", "studio"), ("4x", "4x"), ("A1", "A2")]
    {
        let table = read(&file(first, second, ','));
        assert!(matches!(table.columns[0].values, Values::Text(_)), "{first}");
        assert_eq!(learned(&table).unwrap().features.len(), if first == second { 1 } else { 2 }, "{first}");
    }
    // One word behind all numbers is a unit, and the word of a category in a later file.
    let schema = learned(&read(&file("3 rooms", "studio", ','))).unwrap();
    let new = read("x,z\n3 rooms,1\n4 rooms,1\n");
    assert_eq!(numbers(&new, "x"), [3.0, 4.0]);
    assert_eq!(schema.extract(&new, &[0], false).unwrap().x.row(0).iter().sum::<f64>(), 1.0);
}

#[test]
fn marks_for_missing_cells_are_missing_among_numbers_and_dates_only() {
    for mark in ["-", ".", "#N/A", "n/a", "None", "—"] {
        let table = read(&format!("x,d,c,y\n1,2021-03-04,a,1\n{mark},{mark},{mark},2\n3,2021-03-06,b,3\n"));
        assert!(numbers(&table, "x")[1].is_nan(), "{mark}");
        assert!(table.notes[0].contains("taken as missing") && table.notes[0].contains(mark), "{mark}");
        let asked = Selection { missing: posterior_data::Missing::Mean, ..selection() };
        let schema = Schema::learn(&table, &asked, &[0, 1, 2]).unwrap();
        let found = schema.extract(&table, &[0, 1, 2], true).unwrap();
        assert_eq!((found.x[(1, 0)], found.notes.filled_cells), (2.0, 2), "{mark}");
        assert_eq!(schema.features.len(), 5, "{mark}");
    }
}

#[test]
fn nearly_numbers_are_no_classes() {
    let refused = |cells: &[String]| {
        let cells = cells.iter().cloned().map(Some).collect();
        let table = Table::new("t", vec![Column { name: "y".into(), values: Values::Text(cells) }]);
        let rows: Vec<usize> = (0..table.rows()).collect();
        refuse_nearly_numbers(&table, "y", &rows).map_err(|error| error.to_string())
    };
    let mut cells: Vec<String> = (0..100).map(|i| format!("{}", i % 5)).collect();
    cells[70] = "ask".into();
    assert!(refused(&cells).unwrap_err().contains("row 71, column `y`: `ask` is not a number"));
    let money: Vec<String> = (0..20).map(|i| format!("{}{i}", if i < 15 { "$" } else { "€" })).collect();
    assert!(refused(&money).unwrap_err().contains("row 16, column `y`: `€15` is in €"));
    (0..10).for_each(|i| cells[i] = "3+".into());
    assert_eq!(refused(&cells), Ok(()));
    assert_eq!(refused(&["12A", "13B", "12A"].map(String::from)), Ok(()));
}

#[test]
fn the_order_of_day_and_month_is_that_of_the_file() {
    let order = |text: &str| {
        let schema = learned(&read(text)).unwrap();
        let notes = schema.open_questions().count();
        (schema.date_order.map(|form| form.name()), notes)
    };
    let (day, month) = (Some("day.month.year"), Some("month/day/year"));
    assert_eq!(order("d,e,y\n01/05/23,13/02/2023,1\n02/05/23,01/02/2023,2\n"), (day, 0));
    assert_eq!(order("d,e,y\n01/05/23,02/13/2023,1\n02/05/23,01/02/2023,2\n"), (month, 0));
    // Nothing decides, or columns contradict each other.
    assert_eq!(order("d,y\n01/05/23,1\n02/05/23,2\n"), (month, 1));
    assert_eq!(order("d,y\n01-05-2023,1\n02-05-2023,2\n"), (day, 1));
    let open = learned(&read("d,y\n01/05/23,1\n02/05/23,2\n")).unwrap();
    assert!(
        open.notes.iter().any(|n| n.contains("`01/05/23` in column `d` as month/day/year")
            && n.contains("--date-order day-first")),
        "{:?}",
        open.notes
    );
    // A row that does not train decides as well; a model keeps what was decided.
    let table = read("d,y\n01/05/23,1\n02/05/23,2\n25/05/23,3\n");
    let schema = Schema::learn(&table, &selection(), &[0, 1]).unwrap();
    assert_eq!(schema.date_order.map(|form| form.name()), day);
    // 1 April 2023 is day 19,448.
    assert_eq!(schema.extract(&read("d\n01/04/23\n"), &[0], false).unwrap().x[(0, 0)], 19_448.0);
}

#[test]
fn months_and_quarters_are_dates_with_seasons() {
    let rows = |cell: &dyn Fn(usize) -> String, count: usize| {
        let rows = (0..count).map(|i| format!("{},{i}\n", cell(i)));
        format!("d,y\n{}", rows.collect::<String>())
    };
    let month = |i: usize| format!("{}-{:02}", 2017 + i / 12, 1 + i % 12);
    let quarter = |i: usize| format!("{}Q{}", 2017 + i / 4, 1 + i % 4);
    for (text, from, to) in
        [(rows(&month, 36), "2017-01-01", "2019-12-01"), (rows(&quarter, 12), "2017-01-01", "2019-10-01")]
    {
        let table = read(&text);
        let names = learned(&table).unwrap().feature_names();
        assert_eq!(names, ["d", "d.year.sine", "d.year.cosine"]);
        let dates = dates_of(&table, &table.columns[0]).unwrap();
        assert_eq!((dates.kind, dates.range), ("date", [from.to_string(), to.to_string()]));
    }
    // Of one year no season comes back.
    assert_eq!(learned(&read(&rows(&month, 12))).unwrap().feature_names(), ["d"]);
}

#[test]
fn columns_of_dates_have_a_range() {
    for (cells, kind, from, to) in [
        (["12:00 AM", "11:13 PM"], "time", "00:00:00", "23:13:00"),
        (["01 Jan 2023", "24 Dec 2023"], "date", "2023-01-01", "2023-12-24"),
        (
            ["01/01/2023 12:00 AM", "12/24/2023 01:07 PM"],
            "date-time",
            "2023-01-01T00:00:00",
            "2023-12-24T13:07:00",
        ),
        (["Jan 2023", "May 2024"], "date", "2023-01-01", "2024-05-01"),
    ] {
        let [first, last] = cells;
        let table = read(&format!("d,y\n{first},1\n{last},2\n"));
        let dates = dates_of(&table, &table.columns[0]).unwrap();
        assert_eq!((dates.kind, dates.range), (kind, [from.to_string(), to.to_string()]), "{first}");
    }
    let table = read("d,y\nred,1\nblue,2\n");
    assert_eq!(dates_of(&table, &table.columns[0]), None);
}

#[test]
fn texts_of_other_formats_are_read_alike() {
    let text = "{\"x\": \"$1,200\", \"y\": 1}\n{\"x\": \"$900\", \"y\": 2}\n";
    let table = parse_table(text.into(), Path::new("t.jsonl"), None, &ReadOptions::default()).unwrap();
    assert_eq!(numbers(&table, "x"), [1200.0, 900.0]);
}
