//! The list of bad inputs with the message that each one gets, and the good ones that look bad.

use crate::common::{gzip, npy};
use posterior_data::{
    DataError, Feature, Missing, MissingTarget, ReadOptions, Schema, Selection, Split, Table, Unseen, Values,
    parse_table, read_table, write_table,
};
use std::io::Write;
use std::path::Path;

fn parse(name: &str, bytes: &[u8]) -> Result<Table, DataError> {
    parse_table(bytes.to_vec(), Path::new(name), None, &ReadOptions::limited(1 << 20))
}

fn selection(target: &str) -> Selection {
    Selection { target: target.into(), ..Default::default() }
}

fn use_all(table: &Table, selection: &Selection) -> Result<(Schema, posterior_data::Extracted), DataError> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    let schema = Schema::learn(table, selection, &rows)?;
    let extracted = schema.extract(table, &rows, true)?;
    Ok((schema, extracted))
}

#[test]
fn every_bad_file_gets_its_message() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.csv", b"".to_vec(), "a.csv has no rows of data"),
        ("a.csv", b"a,b\n".to_vec(), "a.csv has no rows of data"),
        ("a.csv", b"a,b\n1,2\n3\n".to_vec(), "a.csv, row 2: 1 cells, but the header has 2"),
        ("a.csv", b"a,a\n1,2\n".to_vec(), "two columns are called `a`"),
        ("a.csv", b"a,\n1,2\n".to_vec(), "column 2 has no name in the header"),
        ("a.csv.gz", b"a,b\n1,2\n".to_vec(), "a.csv.gz is not a valid gzip file"),
        ("a.csv.gz", gzip(&vec![b'1'; 3 << 20]), "holds more than 1048576 bytes of data"),
        ("a.xls", b"PK".to_vec(), "has a format that is not known: use .csv"),
        ("a.xlsx", b"PK".to_vec(), "it does not begin as an archive does"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), "save it as .xlsx without a password"),
        ("a.parquet", b"PAR1".to_vec(), "a.parquet is not a valid Parquet file"),
        ("a.npy", b"\x93NUM".to_vec(), "it does not begin with the NPY mark"),
        ("a.npy", b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), "it is cut off within its header"),
        (
            "a.npy",
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }", &[0; 64]),
            "it declares 1000000000000 x 8 numbers, but has only",
        ),
        (
            "a.npy",
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 2), }", &[0; 64]),
            "3 dimensions is no table",
        ),
        (
            "a.npy",
            npy("{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }", &[0; 32]),
            "are not numbers that are read",
        ),
        ("a.npz", b"PK\x03\x04".to_vec(), "a.npz is not a valid NPZ file"),
    ];
    for (name, bytes, expected) in cases {
        let message = parse(name, &bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{name}: {message}");
    }
    let message = read_table(Path::new("nowhere.csv"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.starts_with("cannot read nowhere.csv"), "{message}");
}

#[test]
fn every_bad_table_gets_its_message() {
    let cases: Vec<(&str, Selection, &str)> = vec![
        ("a,y\n1,2\n", selection("z"), "has no column `z`; its columns are: a, y"),
        (
            "a,y\n1,2\n",
            Selection { features: Some(vec!["b".into(), "c".into()]), ..selection("y") },
            "has no column `b`, `c`; its columns are: a, y",
        ),
        ("y\n1\n2\n", selection("y"), "a model needs at least one feature"),
        (
            "a,y\n1,2\n",
            Selection { features: Some(vec!["y".into()]), ..selection("y") },
            "both a feature and the target",
        ),
        (
            "a,y\n1,2\n",
            Selection { features: Some(vec!["a".into(), "1".into()]), ..selection("y") },
            "named twice",
        ),
        (
            "a,y\n1,2\n2,3\noops,4\n",
            selection("y"),
            "t.csv, row 3, column `a`: `oops` is not a number; correct it, leave the column out (--exclude a), or take it as categories (--categories)",
        ),
        (
            "a,y\n2021-03-04,2\n2021-03-05,3\nlater,4\n",
            selection("y"),
            "row 3, column `a`: `later` is no date, and most of the column are",
        ),
        (
            "a,y\n12 kg,2\n500 g,3\n",
            selection("y"),
            "t.csv, row 2, column `a`: `500 g` is in g, and cells before it are in kg; write all of them in one unit, leave the column out (--exclude a), or take it as categories (--categories)",
        ),
        (
            "a,y\n$1,2\n€1,3\n",
            selection("y"),
            "row 2, column `a`: `€1` is in €, and cells before it are in $",
        ),
        ("a,y\n$1,2\n$2,3\nask,3\n", selection("y"), "row 3, column `a`: `ask` is not a number"),
        ("a,y\n12%,2\n0.5,3\n", selection("y"), "row 1, column `a`: `12%` is not a number"),
        (
            "a,y\n2021-03-04,2\n4.3.2021,3\n2021-03-06,4\n",
            selection("y"),
            "its dates are written in several ways",
        ),
        (
            "a,b,y\n1,1,2\n",
            Selection { exclude: vec!["a".into(), "y".into()], ..selection("y") },
            "column `y` is left out (--exclude, --index, --groups or --folds), and needed",
        ),
        (
            "a,b,y\n1,1,2\n",
            Selection { exclude: vec!["a".into()], features: Some(vec!["a".into()]), ..selection("y") },
            "column `a` is both a feature and left out",
        ),
        (
            "a,b,y\n1,1,2\n",
            Selection { index: Some("c".into()), exclude: vec!["d".into()], ..selection("y") },
            "has no column `d`, `c`",
        ),
        (
            "a,y\n1,2\n",
            Selection { calendar: vec!["a".into()], ..selection("y") },
            "named in --calendar, but holds no dates",
        ),
        (
            "a,y\n1,2\n,3\n",
            selection("y"),
            "row 2, column `a`: the cell is missing; drop such rows (--missing drop)",
        ),
        (
            "a,y\n1,2\n2,NA\n",
            Selection { missing_target: MissingTarget::Error, ..selection("y") },
            "row 2: the target `y` is missing",
        ),
        ("a,y\n1,2\ninf,3\n", selection("y"), "row 2, column `a`: inf is not a finite number"),
        (
            "a,y\n,2\n,3\n",
            Selection { missing: Missing::Drop, ..selection("y") },
            "no rows are left after dropping",
        ),
        (
            "a,v,y\n1,0.1,2\n2,-1,3\n",
            Selection { noise: Some("v".into()), ..selection("y") },
            "-1 is no noise variance",
        ),
        ("a,y\nred,2\n", Selection { categories: vec!["y".into()], ..selection("y") }, "is not a feature"),
    ];
    for (text, selection, expected) in cases {
        let table = parse("t.csv", text.as_bytes()).unwrap();
        let message = use_all(&table, &selection).unwrap_err().to_string();
        assert!(message.contains(expected), "{text:?}: {message}");
    }
}

#[test]
fn a_later_table_must_fit_the_schema() {
    let table = parse("t.csv", b"colour,size,y\nred,1,2\nblue,2,3\n").unwrap();
    let (schema, extracted) =
        use_all(&table, &Selection { categories: vec!["colour".into()], ..selection("y") }).unwrap();
    assert_eq!(schema.feature_names(), ["colour=blue", "colour=red", "size"]);
    assert_eq!(extracted.x[(0, 1)], 1.0);
    assert_eq!(extracted.x[(1, 1)], 0.0);
    let later = parse("u.csv", b"extra,size,colour\n9,5,red\n").unwrap();
    let again = schema.extract(&later, &[0], false).unwrap();
    assert_eq!((again.x[(0, 0)], again.x[(0, 1)], again.x[(0, 2)]), (0.0, 1.0, 5.0));
    let strict = Schema { unseen: Unseen::Error, ..schema };
    let message = |text: &str, target| {
        strict.extract(&parse("u.csv", text.as_bytes()).unwrap(), &[0], target).unwrap_err().to_string()
    };
    assert!(
        message("size,colour\n5,green\n", false)
            .contains("category `green` did not occur in training (--unseen other predicts such rows all the same); known: blue, red")
    );
    assert!(message("weight\n5\n", true).contains("no column `colour`, `size`, `y`"));
}

#[test]
fn missing_cells_are_dropped_or_filled_and_counted() {
    let table = parse("t.csv", b"a,b,y\n1,1,1\n,2,2\n3,3,3\n5,?,4\n").unwrap();
    let (_, dropped) = use_all(&table, &Selection { missing: Missing::Drop, ..selection("y") }).unwrap();
    assert_eq!((dropped.rows.clone(), dropped.notes.dropped_rows), (vec![0, 2], 2));
    let (schema, filled) = use_all(&table, &Selection { missing: Missing::Mean, ..selection("y") }).unwrap();
    assert_eq!((filled.x[(1, 0)], filled.x[(3, 1)], filled.notes.filled_cells), (3.0, 2.0, 2));
    assert!(matches!(&schema.features[0], Feature::Number { mean, .. } if *mean == 3.0));
    // The mean is that of the training rows alone.
    let schema =
        Schema::learn(&table, &Selection { missing: Missing::Mean, ..selection("y") }, &[0, 1]).unwrap();
    assert!(matches!(&schema.features[0], Feature::Number { mean, .. } if *mean == 1.0));
}

#[test]
fn oddities_are_noted() {
    let table = parse("t.csv", b"a,b,c,y\n1,7,0,1\n1,7,0,1\n").unwrap();
    let (_, extracted) = use_all(&table, &selection("y")).unwrap();
    assert_eq!(extracted.notes.constant_features, ["a", "b", "c"]);
    assert_eq!(extracted.notes.duplicate_rows, 1);
    assert!(extracted.notes.constant_target && extracted.notes.fewer_rows_than_features);
    assert_eq!(extracted.notes.sentences().len(), 4);
    assert!(extracted.notes.mostly_duplicates && extracted.notes.sentences()[1].contains("out together"));
    let few = parse("t.csv", b"a,y\n1,1\n1,2\n2,3\n").unwrap();
    let notes = use_all(&few, &selection("y")).unwrap().1.notes;
    assert!(notes.duplicate_rows == 1 && !notes.mostly_duplicates, "{:?}", notes.sentences());
    let bare = parse("t.csv", b"1,2\n3,4\n").unwrap();
    assert_eq!((bare.rows(), bare.names()), (2, vec!["x1".to_string(), "x2".to_string()]));
    assert!(bare.notes[0].contains("no header"));
    let numbered = use_all(&table, &selection("4")).unwrap().0;
    assert_eq!(numbered.target, "y");
    let marked = parse("t.csv", b"\xef\xbb\xbfa,y\r\n1,2\r\n").unwrap();
    assert_eq!(marked.names(), ["a", "y"]);
    let tabs = parse("t.tsv", b"a\ty\n1\t2\n").unwrap();
    assert_eq!(tabs.names(), ["a", "y"]);
}

#[test]
fn arrays_of_every_kind_are_read() {
    let c = npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
        &[1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat(),
    );
    let f = npy(
        "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }",
        &[1i16, 3, 2, 4].map(i16::to_be_bytes).concat(),
    );
    for bytes in [c.clone(), f] {
        let table = parse("a.npy", &bytes).unwrap();
        assert_eq!(table.columns[0].values, Values::Numeric(vec![1.0, 3.0]));
        assert_eq!(table.columns[1].values, Values::Numeric(vec![2.0, 4.0]));
    }
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let vector = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", &[1, 0]);
    for (name, bytes) in [("x.npy", &c), ("y.npy", &vector)] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    let bytes = archive.finish().unwrap().into_inner();
    assert_eq!(parse("a.npz", &bytes).unwrap().names(), ["x1", "x2", "y"]);
    let one = parse_table(bytes.clone(), Path::new("a.npz"), Some("y"), &ReadOptions::default()).unwrap();
    assert_eq!(one.columns[0].values, Values::Numeric(vec![1.0, 0.0]));
    let none = parse_table(bytes, Path::new("a.npz"), Some("z"), &ReadOptions::default()).unwrap_err();
    assert!(none.to_string().contains("has no column `z`; its columns are: x, y"));
}

#[test]
fn written_tables_read_back_to_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = Table::new(
        "t",
        vec![
            posterior_data::Column::numeric(
                "a, \"quoted\"",
                vec![0.1, -0.0, f64::MIN_POSITIVE, 1e300, 1.0 / 3.0],
            ),
            posterior_data::Column::numeric("b", vec![1.0, f64::NAN, 3.0, 4.0, 5.0]),
        ],
    );
    let texts =
        ["red", "line\nbreak", "é", "", "x,y"].map(|t| (!t.is_empty()).then(|| t.to_string())).to_vec();
    table.columns.push(posterior_data::Column { name: "c".into(), values: Values::Text(texts) });
    for name in ["t.csv", "t.parquet"] {
        let path = directory.path().join(name);
        write_table(&table, &path).unwrap();
        let back = read_table(&path, &ReadOptions::default()).unwrap();
        assert_eq!(back.names(), table.names());
        for (a, b) in table.columns.iter().zip(&back.columns) {
            match (&a.values, &b.values) {
                (Values::Numeric(a), Values::Numeric(b)) => {
                    assert!(
                        a.iter()
                            .zip(b)
                            .all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())),
                        "{name}"
                    );
                }
                (a, b) => assert_eq!(a, b, "{name}"),
            }
        }
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
    assert!(
        write_table(&table, Path::new("/nonexistent/t.csv"))
            .unwrap_err()
            .to_string()
            .starts_with("cannot write")
    );
}

#[test]
fn folds_must_fit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("folds.csv");
    let table = parse("t.csv", b"a,y\n1,2\n2,3\n3,4\n").unwrap();
    let split = |text: &str, fold| {
        std::fs::write(&path, text).unwrap();
        Split::from_folds(&path, fold, table.rows())
    };
    assert_eq!(split("fold\n0\n1\n0\n", 1).unwrap(), Split { train: vec![0, 2], test: vec![1] });
    assert!(split("fold\n0\n1\n", 1).unwrap_err().to_string().contains("2 folds for a table of 3 rows"));
    assert!(split("fold\n0\n1\n0\n", 7).unwrap_err().to_string().contains("the folds are [0, 1]"));
    assert!(
        split("fold\n0\n1.5\n0\n", 1).unwrap_err().to_string().contains("row 2: a fold is a whole number")
    );
    assert!(split("fold\na\nb\nc\n", 1).unwrap_err().to_string().contains("not numbers"));
}

#[test]
fn the_shared_tables_have_their_documented_sizes() {
    let Some(folder) = posterior_testing::shared("data/uci") else { return };
    for (name, rows, inputs) in
        [("airfoil", 1_503, 5), ("concrete", 1_030, 8), ("energy", 768, 8), ("yacht", 308, 6)]
    {
        let table = read_table(&folder.join(format!("{name}.csv.gz")), &ReadOptions::default()).unwrap();
        assert_eq!((table.rows(), table.columns.len()), (rows, inputs + 1), "{name}");
        let split = Split::from_folds(&folder.join(format!("{name}.fold.csv.gz")), 0, table.rows()).unwrap();
        assert_eq!(split.train.len() + split.test.len(), rows);
    }
}
