use super::*;
use crate::{
    Column, CsvOptions, DataError, Missing, MissingTarget, ReadOptions, Schema, Selection, StoreError, Table,
    TextOptions, Values, read_table, read_tables, write_parts, write_table,
};
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Texts that are what they look like.
const TEXT: TextOptions = TextOptions { delimiter: None, decimal: None, encoding: None, trained: None };

fn table(rows: usize) -> Table {
    let mut rng = Streams::new(3).stream("test/stream");
    let kinds = ["oak", "ash", "1", "2.0"];
    let mut numbers = |missing: f64| -> Vec<f64> {
        (0..rows)
            .map(|_| if rng.random::<f64>() < missing { f64::NAN } else { rng.random::<f64>() * 7.0 })
            .collect()
    };
    let (a, b, y) = (numbers(0.1), numbers(0.0), numbers(0.0));
    let tree =
        (0..rows).map(|i| Some(kinds[if i < rows / 2 { 2 + i % 2 } else { i % 4 }].to_string())).collect();
    Table::new(
        "made up",
        vec![
            Column::numeric("a", a),
            Column { name: "tree".into(), values: Values::Text(tree) },
            Column::numeric("y", y),
            Column::numeric("b", b),
        ],
    )
}

fn selection(missing: Missing) -> Selection {
    Selection { target: "y".into(), categories: vec!["tree".into()], missing, ..Default::default() }
}

fn one(path: &Path) -> [PathBuf; 1] {
    [path.to_path_buf()]
}

fn gzipped(path: &Path) -> PathBuf {
    let out = path.with_extension("csv.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&out).unwrap(), flate2::Compression::fast());
    encoder.write_all(&std::fs::read(path).unwrap()).unwrap();
    encoder.finish().unwrap();
    out
}

#[test]
fn parts_together_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 1000;
    let (csv, parquet) = (folder.path().join("t.csv"), folder.path().join("t.parquet"));
    write_table(&table(rows), &csv).unwrap();
    write_table(&table(rows), &parquet).unwrap();
    let chosen: Vec<usize> = (0..rows).filter(|r| r % 7 != 3).collect();
    // Some hundred rows each.
    let options = StreamOptions { part_bytes: 16 << 10, ..Default::default() };
    for path in [csv.clone(), gzipped(&csv), parquet] {
        assert!(is_streamable(&path));
        assert_eq!(count_rows(&one(&path), &TEXT).unwrap(), rows);
        assert!(TableParts::open(&one(&path), &options).unwrap().count() > 3, "{path:?}");
        let whole = read_table(&path, &ReadOptions::default()).unwrap();
        for missing in [Missing::Drop, Missing::Mean] {
            let selection = selection(missing);
            let expected = Schema::learn(&whole, &selection, &chosen).unwrap();
            let schema = learn_schema(&one(&path), &selection, &chosen, &options).unwrap();
            assert_eq!(schema, expected);
            let extracted = extract(&one(&path), &expected, &chosen, &options).unwrap();
            assert_eq!(extracted, expected.extract(&whole, &chosen, true).unwrap());
        }
    }
}

#[test]
fn errors_name_the_row_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.csv");
    let options = StreamOptions { part_bytes: 4 << 10, ..Default::default() };
    let write = |bad: &str| {
        let mut text = "a,y\n".to_string();
        (1..=500).for_each(|i| {
            text.push_str(&if i == 300 { format!("{bad}\n") } else { format!("{i},{}\n", i * 2) })
        });
        std::fs::write(&path, text).unwrap();
    };
    let missing_target = MissingTarget::Error;
    let selection = Selection { target: "y".into(), missing_target, ..Default::default() };
    let rows: Vec<usize> = (0..500).collect();
    for (bad, expected) in [
        ("x,1", "row 300, column `a`: `x` is not a number"),
        ("1", "row 300: 1 cells, but the header has 2"),
        (",1", "row 300, column `a`: the cell is missing"),
        ("inf,1", "row 300, column `a`: inf is not a finite number"),
        ("1,", "row 300: the target `y`"),
    ] {
        write(bad);
        let result = learn_schema(&one(&path), &selection, &rows, &options)
            .and_then(|schema| extract(&one(&path), &schema, &rows, &options));
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{bad}: {error}");
    }
    let absent = Selection { target: "z".into(), ..Default::default() };
    assert!(matches!(
        learn_schema(&one(&path), &absent, &rows, &options),
        Err(DataError::NoSuchColumn { .. } | DataError::NotANumber { .. })
    ));
    for (name, content) in
        [("empty.csv", ""), ("header.csv", "a,b\n"), ("cut.parquet", "PAR1"), ("none.csv.gz", "no gzip")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        assert!(count_rows(&one(&path), &TEXT).is_err(), "{name}");
    }
    // A Parquet file whose footer says 1,001 rows while its row group has 1,000: numbers are zigzag varints, the row groups come next.
    let contradiction = folder.path().join("contradiction.parquet");
    write_table(&table(1000), &contradiction).unwrap();
    assert_eq!(count_rows(&one(&contradiction), &TEXT).unwrap(), 1000);
    let mut bytes = std::fs::read(&contradiction).unwrap();
    let place = bytes.windows(5).rposition(|w| w == [0x16, 0xd0, 0x0f, 0x19, 0x1c]).unwrap();
    bytes[place + 1] = 0xd2;
    std::fs::write(&contradiction, bytes).unwrap();
    for error in [
        count_rows(&one(&contradiction), &TEXT).unwrap_err(),
        read_table(&contradiction, &ReadOptions::default()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("declares 1001 rows, its row groups have 1000"), "{error}");
    }
    assert!(matches!(count_rows(&["t.npy".into()], &TEXT), Err(DataError::UnknownFormat { .. })));
    // Nothing left at all.
    write("1,2");
    let schema = learn_schema(&one(&path), &selection, &rows, &options).unwrap();
    assert!(matches!(extract(&one(&path), &schema, &[], &options), Err(DataError::NothingLeft { .. })));
}

#[test]
fn parts_are_written_as_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let table = |from: usize, rows: usize| {
        let value = |f: &dyn Fn(usize) -> f64| (from..from + rows).map(f).collect::<Vec<f64>>();
        let a = Column::numeric("a", value(&|i| i as f64 / 3.0));
        let b = Column::numeric("b", value(&|i| if i % 4 == 0 { f64::NAN } else { 1.0 }));
        Table::new("made", vec![a, b])
    };
    for name in ["t.csv", "t.parquet"] {
        let (whole, parts) = (folder.path().join(format!("whole.{name}")), folder.path().join(name));
        write_table(&table(0, 25), &whole).unwrap();
        let mut starts = [(0, 10), (10, 10), (20, 5)].into_iter();
        let next = || Ok(starts.next().map(|(from, rows)| table(from, rows)));
        write_parts::<DataError>(&parts, CsvOptions::default(), next).unwrap();
        let read = |path: &Path| read_table(path, &ReadOptions::default()).unwrap();
        let (one, other) = (read(&whole), read(&parts));
        assert_eq!((one.names(), one.rows()), (other.names(), 25));
        for i in 0..25 {
            assert!((0..2).all(|j| one.columns[j].cell(i) == other.columns[j].cell(i)), "{name}, row {i}");
        }
        // What fails leaves the older file alone: a part that cannot be read, a part of other columns.
        let before = std::fs::read(&parts).unwrap();
        let mut left = 1;
        let failed = write_parts::<DataError>(&parts, CsvOptions::default(), || {
            left -= 1;
            if left < 0 { Err(DataError::NoRows { path: "x".into() }) } else { Ok(Some(table(0, 3))) }
        });
        assert!(matches!(failed, Err(DataError::NoRows { .. })));
        let mut tables = vec![Table::new("made", vec![Column::numeric("c", vec![1.0])]), table(0, 3)];
        let failed = write_parts::<DataError>(&parts, CsvOptions::default(), || Ok(tables.pop()));
        assert!(matches!(failed, Err(DataError::Store(StoreError::Write { .. }))), "{failed:?}");
        assert_eq!(std::fs::read(&parts).unwrap(), before);
    }
    let text = Column { name: "b".into(), values: Values::Text(vec![Some("x".into())]) };
    let mut tables = vec![Table::new("made", vec![Column::numeric("a", vec![1.0]), text]), table(0, 3)];
    let failed =
        write_parts::<DataError>(
            &folder.path().join("u.parquet"),
            CsvOptions::default(),
            || Ok(tables.pop()),
        )
        .unwrap_err();
    let DataError::Store(StoreError::Write { source, .. }) = failed else { panic!("{failed:?}") };
    assert!(source.to_string().contains(".csv can hold"), "{source}");
}

/// Rows of a table as CSV, with the columns in the given order.
fn csv_of(table: &Table, rows: std::ops::Range<usize>, order: &[usize]) -> String {
    let cells = |cell: &dyn Fn(usize) -> String| order.iter().map(|&j| cell(j)).collect::<Vec<_>>().join(",");
    let mut text = cells(&|j| table.columns[j].name.clone()) + "\n";
    rows.for_each(|i| text += &(cells(&|j| table.columns[j].cell(i)) + "\n"));
    text
}

#[test]
fn several_files_are_one_table_whatever_the_order_of_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The first half of the trees looks like numbers, one of them written as no number is: `2.0`.
    let (table, rows) = (table(1000), 1000);
    std::fs::write(at("whole.csv"), csv_of(&table, 0..rows, &[0, 1, 2, 3])).unwrap();
    std::fs::write(at("a.csv"), csv_of(&table, 0..400, &[0, 1, 2, 3])).unwrap();
    std::fs::write(at("b.csv"), csv_of(&table, 400..450, &[3, 0, 2, 1])).unwrap();
    std::fs::write(at("c.csv"), csv_of(&table, 450..rows, &[2, 1, 3, 0])).unwrap();
    let third = Table::new("c", [2, 1, 3, 0].map(|j| table.columns[j].clone()).to_vec());
    write_table(&third.select(&(450..rows).collect::<Vec<_>>()), &at("c.parquet")).unwrap();
    let whole = read_table(&at("whole.csv"), &ReadOptions::default()).unwrap();
    let chosen: Vec<usize> = (0..rows).filter(|r| r % 7 != 3).collect();
    let options = StreamOptions { part_bytes: 16 << 10, ..Default::default() };
    for last in ["c.csv", "c.parquet"] {
        let files = [at("a.csv"), at("b.csv"), at(last)];
        let together = read_tables(&files, &ReadOptions::default()).unwrap();
        // Numbers that are missing are not equal to themselves.
        let cells = |t: &Table, i: usize| t.columns.iter().map(|c| c.cell(i)).collect::<Vec<_>>();
        assert_eq!((together.rows(), together.names()), (rows, whole.names()));
        assert!((0..rows).all(|i| cells(&together, i) == cells(&whole, i)), "{last}");
        assert_eq!(together.place(0), (&*files[0], 0));
        assert_eq!(together.place(399), (&*files[0], 399));
        assert_eq!(together.place(400), (&*files[1], 0));
        assert_eq!(together.place(999), (&*files[2], 549));
        assert_eq!(count_rows(&files, &TEXT).unwrap(), rows);
        let parts: Vec<Part> = TableParts::open(&files, &options).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(parts.iter().all(|p| p.table.names() == whole.names()));
        assert_eq!(parts.last().map(|p| p.first_row - p.row_in_file), Some(450));
        for missing in [Missing::Drop, Missing::Mean] {
            let selection = selection(missing);
            let expected = Schema::learn(&whole, &selection, &chosen).unwrap();
            assert_eq!(Schema::learn(&together, &selection, &chosen).unwrap(), expected);
            assert_eq!(learn_schema(&files, &selection, &chosen, &options).unwrap(), expected);
            let numbers = expected.extract(&whole, &chosen, true).unwrap();
            assert_eq!(expected.extract(&together, &chosen, true).unwrap(), numbers);
            assert_eq!(extract(&files, &expected, &chosen, &options).unwrap(), numbers);
        }
    }
}

#[test]
fn errors_name_the_file_of_several_and_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let good = at("good.csv", "a,y\n1,2\n3,4\n5,6\n");
    let missing_target = MissingTarget::Error;
    let selection = Selection { target: "y".into(), missing_target, ..Selection::default() };
    let rows: Vec<usize> = (0..6).collect();
    let options = StreamOptions::default();
    let cases = [
        ("y,a\n1,2\n3,x\n5,6\n", "bad.csv, row 2, column `a`: `x` is not a number"),
        ("y,a\n1,2\n3,4\n5,\n", "bad.csv, row 3, column `a`: the cell is missing"),
        ("y,a\n,2\n3,4\n5,6\n", "bad.csv, row 1: the target `y`"),
        ("y,a\n1,2\n3\n5,6\n", "bad.csv, row 2: 1 cells, but the header has 2"),
        ("y,b\n1,2\n3,4\n5,6\n", "bad.csv: it has no column a, and b is not in "),
        ("y\n1\n3\n5\n", "bad.csv: it has no column a; files of one table"),
        ("y,a,b\n1,2,3\n3,4,5\n5,6,7\n", "bad.csv: b is not in "),
        ("y,a\n", "bad.csv has no rows"),
    ];
    for (text, expected) in cases {
        let files = [good.clone(), at("bad.csv", text)];
        let whole = read_tables(&files, &ReadOptions::default()).and_then(|table| {
            let schema = Schema::learn(&table, &selection, &rows).map_err(|e| e.in_table(&table))?;
            schema.extract(&table, &rows, true).map_err(|e| e.in_table(&table))
        });
        let parts = count_rows(&files, &TEXT)
            .and_then(|_| learn_schema(&files, &selection, &rows, &options))
            .and_then(|schema| extract(&files, &schema, &rows, &options));
        for found in [whole.unwrap_err().to_string(), parts.unwrap_err().to_string()] {
            assert!(found.contains(expected) && found.len() < 300 + 3 * good.as_os_str().len(), "{found}");
        }
    }
    // An error about a row counted through is told by its file.
    let counted = DataError::MissingTarget {
        path: source_of(&[good.clone(), good.clone()]),
        row: 5,
        column: "y".into(),
    };
    let DataError::MissingTarget { path, row, .. } = locate(&[good.clone(), good.clone()], &TEXT, counted)
    else {
        panic!()
    };
    assert_eq!((path, row), (good.clone(), 2));
    // Two files that fit one by one, and not together.
    let large = at("large.csv", &("a,y\n".to_string() + &"1,2\n".repeat(3000)));
    let files = [large.clone(), large.clone()];
    let one = read_table(&large, &ReadOptions::default()).unwrap().memory();
    let failed = read_tables(&files, &ReadOptions::limited(2 * one + 600)).unwrap_err().to_string();
    assert!(failed.contains("large.csv and 1 more"), "{failed}");
    assert!(matches!(read_tables(&[], &ReadOptions::default()), Err(DataError::Argument { .. })));
    assert!(matches!(TableParts::open(&[], &options), Err(DataError::Argument { .. })));
}

#[test]
fn rows_in_a_file_are_those_of_memory_with_all_that_is_known_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut table = table(1000);
    // A constant column, and rows that repeat.
    table.columns.push(Column::numeric("same", vec![0.1; 1000]));
    for column in &mut table.columns {
        match &mut column.values {
            Values::Numeric(v) => v.copy_within(0..5, 500),
            Values::Text(v) => (0..5).for_each(|i| v[500 + i] = v[i].clone()),
        }
    }
    write_table(&table, &path).unwrap();
    let options = StreamOptions { part_bytes: 16 << 10, ..Default::default() };
    let rows: Vec<usize> = (0..1000).filter(|r| r % 7 != 3).collect();
    for (missing, noise) in [(Missing::Drop, None), (Missing::Mean, Some("b".to_string()))] {
        let selection = Selection { noise: noise.clone(), ..selection(missing) };
        let schema = learn_schema(&one(&path), &selection, &rows, &options).unwrap();
        let memory = extract(&one(&path), &schema, &rows, &options).unwrap();
        let (file, notes) =
            extract_to_file(&one(&path), (&schema, &[]), &rows, &options, folder.path()).unwrap();
        assert_eq!(notes, memory.notes);
        assert!(notes.constant_features.contains(&"same".to_string()), "{notes:?}");
        assert_eq!(file.rows(), memory.x.nrows());
        let (inputs, y) = (memory.x.ncols(), memory.y.unwrap());
        assert_eq!(file.width(), inputs + 1 + usize::from(noise.is_some()));
        file.each(|i, row| {
            assert!((0..inputs).all(|j| row[j] == memory.x[(i, j)]) && row[inputs] == y[i]);
            assert_eq!(row.get(inputs + 1).copied(), memory.noise.as_ref().map(|v| v[i]));
        })
        .unwrap();
        let standard = crate::Standardisation::learn(memory.x.as_ref(), &y);
        assert_eq!(crate::Standardisation::learn_rows(&file, inputs).unwrap(), standard);
        let by = crate::TargetTransform::YeoJohnson { exponent: 0.4, unit: 2.0 };
        assert_eq!(
            standard.clone().transforming_rows(by, &file).unwrap().unwrap(),
            standard.clone().transforming(by, &y).unwrap()
        );
        assert_eq!(
            standard.clone().transforming_rows(crate::TargetTransform::Log, &file).unwrap().is_err(),
            y.iter().any(|y| *y <= 0.0)
        );
        let ranges = crate::InputRanges::learn(&schema, memory.x.as_ref());
        assert_eq!(crate::InputRanges::learn_rows(&schema, &file).unwrap(), ranges);
    }
    let schema = learn_schema(&one(&path), &selection(Missing::Mean), &rows, &options).unwrap();
    let none = extract_to_file(&one(&path), (&schema, &[]), &[], &options, folder.path());
    assert!(matches!(none, Err(DataError::NothingLeft { .. })));
    let absent = folder.path().join("absent");
    let failed = extract_to_file(&one(&path), (&schema, &[]), &rows, &options, &absent);
    assert!(matches!(failed, Err(DataError::Scratch { .. })));
}
