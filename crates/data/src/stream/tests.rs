use super::*;
use crate::{
    Column, DataError, Missing, ReadOptions, Schema, Selection, StoreError, Table, Values, read_table,
    write_parts, write_table,
};
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    Selection { target: "y".into(), one_hot: vec!["tree".into()], missing, ..Default::default() }
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
        assert_eq!(count_rows(&path).unwrap(), rows);
        assert!(TableParts::open(&path, &options).unwrap().count() > 3, "{path:?}");
        let whole = read_table(&path, &ReadOptions::default()).unwrap();
        for missing in [Missing::Drop, Missing::Mean] {
            let selection = selection(missing);
            let expected = Schema::learn(&whole, &selection, &chosen).unwrap();
            let schema = learn_schema(&path, &selection, &chosen, &options).unwrap();
            assert_eq!(schema.feature_names(), expected.feature_names());
            for (a, b) in schema.features.iter().zip(&expected.features) {
                match (a, b) {
                    (crate::Feature::Number { mean: a, .. }, crate::Feature::Number { mean: b, .. }) => {
                        assert!((a - b).abs() < 1e-12 * b.abs());
                    }
                    (a, b) => assert_eq!(a, b),
                }
            }
            let extracted = extract(&path, &expected, &chosen, &options).unwrap();
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
    let selection = Selection { target: "y".into(), ..Default::default() };
    let rows: Vec<usize> = (0..500).collect();
    for (bad, expected) in [
        ("x,1", "row 300, column `a`: `x` is not a number"),
        ("1", "row 300: 1 cells, but the header has 2"),
        (",1", "row 300, column `a`: the cell is missing"),
        ("inf,1", "row 300, column `a`: inf is not a finite number"),
        ("1,", "row 300, column `y`"),
    ] {
        write(bad);
        let result = learn_schema(&path, &selection, &rows, &options)
            .and_then(|schema| extract(&path, &schema, &rows, &options));
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{bad}: {error}");
    }
    let absent = Selection { target: "z".into(), ..Default::default() };
    assert!(matches!(
        learn_schema(&path, &absent, &rows, &options),
        Err(DataError::NoSuchColumn { .. } | DataError::NotANumber { .. })
    ));
    for (name, content) in
        [("empty.csv", ""), ("header.csv", "a,b\n"), ("cut.parquet", "PAR1"), ("none.csv.gz", "no gzip")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        assert!(count_rows(&path).is_err(), "{name}");
    }
    // A Parquet file whose footer says 1,001 rows while its row group has 1,000: numbers are zigzag varints, the row groups come next.
    let contradiction = folder.path().join("contradiction.parquet");
    write_table(&table(1000), &contradiction).unwrap();
    assert_eq!(count_rows(&contradiction).unwrap(), 1000);
    let mut bytes = std::fs::read(&contradiction).unwrap();
    let place = bytes.windows(5).rposition(|w| w == [0x16, 0xd0, 0x0f, 0x19, 0x1c]).unwrap();
    bytes[place + 1] = 0xd2;
    std::fs::write(&contradiction, bytes).unwrap();
    for error in [
        count_rows(&contradiction).unwrap_err(),
        read_table(&contradiction, &ReadOptions::default()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("declares 1001 rows, its row groups have 1000"), "{error}");
    }
    assert!(matches!(count_rows(Path::new("t.npy")), Err(DataError::UnknownFormat { .. })));
    // Nothing left at all.
    write("1,2");
    let schema = learn_schema(&path, &selection, &rows, &options).unwrap();
    assert!(matches!(extract(&path, &schema, &[], &options), Err(DataError::NothingLeft { .. })));
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
        write_parts::<DataError>(&parts, next).unwrap();
        let read = |path: &Path| read_table(path, &ReadOptions::default()).unwrap();
        let (one, other) = (read(&whole), read(&parts));
        assert_eq!((one.names(), one.rows()), (other.names(), 25));
        for i in 0..25 {
            assert!((0..2).all(|j| one.columns[j].cell(i) == other.columns[j].cell(i)), "{name}, row {i}");
        }
        // What fails leaves the older file alone: a part that cannot be read, a part of other columns.
        let before = std::fs::read(&parts).unwrap();
        let mut left = 1;
        let failed = write_parts::<DataError>(&parts, || {
            left -= 1;
            if left < 0 { Err(DataError::NoRows { path: "x".into() }) } else { Ok(Some(table(0, 3))) }
        });
        assert!(matches!(failed, Err(DataError::NoRows { .. })));
        let mut tables = vec![Table::new("made", vec![Column::numeric("c", vec![1.0])]), table(0, 3)];
        let failed = write_parts::<DataError>(&parts, || Ok(tables.pop()));
        assert!(matches!(failed, Err(DataError::Store(StoreError::Write { .. }))), "{failed:?}");
        assert_eq!(std::fs::read(&parts).unwrap(), before);
    }
    let text = Column { name: "b".into(), values: Values::Text(vec![Some("x".into())]) };
    let mut tables = vec![Table::new("made", vec![Column::numeric("a", vec![1.0]), text]), table(0, 3)];
    let failed = write_parts::<DataError>(&folder.path().join("u.parquet"), || Ok(tables.pop())).unwrap_err();
    let DataError::Store(StoreError::Write { source, .. }) = failed else { panic!("{failed:?}") };
    assert!(source.to_string().contains(".csv can hold"), "{source}");
}
