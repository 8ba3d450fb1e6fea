//! Matrices of features from every kind of file, alike; and files that hold none.

use crate::common::gzip;
use posterior_data::{
    ArrayValues, Column, DataError, FeatureMatrix, FeatureOptions, NumericArray, ReadOptions, Table,
    read_feature_matrix, write_npy, write_npz, write_table,
};
use std::path::PathBuf;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn npy(&self, name: &str, shape: &[usize], values: ArrayValues) -> PathBuf {
        write_npy(&self.path(name), &NumericArray::new(shape.to_vec(), values).unwrap()).unwrap();
        self.path(name)
    }
}

fn options(label: Option<&str>, columns: Option<&[&str]>) -> FeatureOptions {
    FeatureOptions {
        label_column: label.map(String::from),
        columns: columns.map(|names| names.iter().map(|n| n.to_string()).collect()),
        ..FeatureOptions::default()
    }
}

/// 3 x 3, the last column being classes.
const VALUES: [f64; 9] = [0.5, -1.0, 2.0, 1.5, 1e-300, 0.0, -7.25, 3.0, 1.0];

/// The same numbers in every format.
fn files(folder: &Folder) -> Vec<PathBuf> {
    let array = NumericArray::new(vec![3, 3], ArrayValues::F64(VALUES.to_vec())).unwrap();
    let column = |j: usize| {
        Column::numeric(format!("x{}", j + 1), VALUES.iter().skip(j).step_by(3).copied().collect())
    };
    let table = Table::new("test", (0..3).map(column).collect());
    for name in ["a.csv", "a.parquet"] {
        write_table(&table, &folder.path(name)).unwrap();
    }
    let npy = folder.npy("a.npy", &[3, 3], ArrayValues::F64(VALUES.to_vec()));
    folder.file("a.npy.gz", &gzip(&std::fs::read(&npy).unwrap()));
    let other = NumericArray::new(vec![1], ArrayValues::U8(vec![1])).unwrap();
    write_npz(&folder.path("one.npz"), &[("features", &array)]).unwrap();
    write_npz(&folder.path("two.npz"), &[("features", &array), ("other", &other)]).unwrap();
    ["a.csv", "a.parquet", "a.npy", "a.npy.gz", "one.npz", "two.npz:features"]
        .map(|n| folder.path(n))
        .to_vec()
}

#[test]
fn every_format_gives_the_same_matrix() {
    let folder = Folder::new();
    for path in files(&folder) {
        let read = |options| read_feature_matrix(&path, &options).unwrap();
        let matrix = |columns: &[usize]| {
            let values = (0..3).flat_map(|i| columns.iter().map(move |j| VALUES[3 * i + j])).collect();
            NumericArray::new(vec![3, columns.len()], ArrayValues::F64(values)).unwrap()
        };
        let names = |columns: &[usize]| columns.iter().map(|j| format!("x{}", j + 1)).collect::<Vec<_>>();
        let all = read(FeatureOptions::default());
        let expected = |columns: &[usize], labels: Option<Vec<f64>>| FeatureMatrix {
            source: all.source.clone(),
            values: matrix(columns),
            column_names: names(columns),
            labels,
        };
        let classes = || Some(vec![2.0, 0.0, 1.0]);
        assert_eq!(all, expected(&[0, 1, 2], None), "{}", path.display());
        assert_eq!(all.classes().unwrap(), None);
        let labelled = read(options(Some("x3"), None));
        assert_eq!(labelled, expected(&[0, 1], classes()));
        assert_eq!(labelled.classes().unwrap(), Some(vec![2, 0, 1]));
        // By number, and in another order.
        assert_eq!(read(options(Some("3"), Some(&["x2", "1"]))), expected(&[1, 0], classes()));
        let targets = read(options(Some("x1"), Some(&["x3"])));
        assert_eq!(targets, expected(&[2], Some(vec![0.5, 1.5, -7.25])));
        let error = targets.classes().unwrap_err().to_string();
        assert!(error.contains("record 1: the label is 0.5; classes are whole numbers"), "{error}");

        for (options, part) in [
            (
                options(Some("nothing"), Some(&["4", "0"])),
                "has no column `4`, `0`, `nothing`; its columns are: x1",
            ),
            (options(Some("x1"), Some(&["x1"])), "column `x1` is used twice"),
            (options(None, Some(&["x2", "2"])), "column `x2` is used twice"),
            (options(Some("x1"), Some(&[])), "at least one column of features"),
        ] {
            let error = read_feature_matrix(&path, &options).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn arrays_keep_their_element_type() {
    let folder = Folder::new();
    for values in [
        ArrayValues::F32(vec![1.0, 2.0, 3.0, 4.0]),
        ArrayValues::I64(vec![1, 2, 3, 4]),
        ArrayValues::U8(vec![1, 2, 3, 4]),
    ] {
        let path = folder.npy("a.npy", &[2, 2], values.clone());
        let all = read_feature_matrix(&path, &FeatureOptions::default()).unwrap();
        assert_eq!(all.values.values(), &values);
        let part = read_feature_matrix(&path, &options(Some("1"), None)).unwrap();
        assert_eq!(part.values.values().type_name(), values.type_name());
        assert_eq!((part.values.to_f64(), part.labels), (vec![2.0, 4.0], Some(vec![1.0, 3.0])));
    }
    let vector = folder.npy("v.npy", &[4], ArrayValues::F32(vec![1.0, 2.0, 3.0, 4.0]));
    let column = read_feature_matrix(&vector, &FeatureOptions::default()).unwrap();
    assert_eq!((column.values.shape(), column.column_names), (&[4, 1][..], vec!["x1".to_string()]));
}

#[test]
fn classes_are_whole_numbers_in_range() {
    let matrix = |label: f64| FeatureMatrix {
        source: "f".into(),
        values: NumericArray::new(vec![1, 1], ArrayValues::U8(vec![0])).unwrap(),
        column_names: vec!["x1".into()],
        labels: Some(vec![label]),
    };
    assert_eq!(matrix(4294967295.0).classes().unwrap(), Some(vec![u32::MAX]));
    for label in [-1.0, 0.5, 4294967296.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(matrix(label).classes(), Err(DataError::Label { record: 1, .. })));
    }
}

#[test]
fn bad_files_are_named_with_the_place() {
    let folder = Folder::new();
    let nan = ArrayValues::F32(vec![1.0, 2.0, 3.0, f32::NAN]);
    let plain =
        |path: PathBuf| read_feature_matrix(&path, &FeatureOptions::default()).unwrap_err().to_string();
    let many: Vec<u8> = vec![0; 2_000];
    let two = NumericArray::new(vec![1], ArrayValues::U8(vec![1])).unwrap();
    write_npz(&folder.path("two.npz"), &[("a", &two), ("b", &two)]).unwrap();
    let npz = |name: &str| folder.path("two.npz").with_file_name(format!("two.npz:{name}"));
    for (message, part) in [
        (
            plain(folder.npy("a.npy", &[2, 2], nan.clone())),
            "the value at position [1, 1], counted from 0, is NaN",
        ),
        (
            plain(folder.file("a.csv", b"a,b\n1,2\n3,\n")),
            "the value at position [1, 1], counted from 0, is NaN",
        ),
        (
            plain(folder.file("b.csv", b"a,b\ninf,2\n")),
            "the value at position [0, 0], counted from 0, is inf",
        ),
        (plain(folder.file("c.csv", b"a,b\n1,2\n3,cat\n")), "row 2, column `b`: `cat` is not a number"),
        (plain(folder.file("d.csv", b"a,b\n1,2\n3\n")), "row 2: 1 cells, but the header has 2"),
        (plain(folder.file("e.csv", b"a,b\n")), "has no rows of data"),
        (plain(folder.file("f.csv", b"")), "has no rows of data"),
        (plain(folder.file("g.txt2", b"1 2")), "format that is not known"),
        (plain(folder.file("h.npy", b"1 2")), "NPY"),
        (plain(folder.path("absent.npy")), "cannot read"),
        (plain(folder.npy("i.npy", &[0, 3], ArrayValues::U8(vec![]))), "has no rows of data"),
        (plain(folder.npy("j.npy", &[3, 0], ArrayValues::U8(vec![]))), "an array without columns"),
        (plain(folder.npy("k.npy", &[2, 1, 2], nan)), "its shape is [2, 1, 2], but features are a matrix"),
        (plain(folder.npy("l.npy", &[], ArrayValues::U8(vec![1]))), "features are a matrix"),
        (plain(folder.path("two.npz")), "holds 2 arrays; name one"),
        (plain(npz("c")), "has no array `c`"),
    ] {
        assert!(message.contains(part), "{message}");
    }
    // A missing cell matters only in a column that is used; its position is that in the file.
    let path =
        folder.npy("m.npy", &[2, 3], ArrayValues::F64(vec![1.0, f64::NAN, 3.0, 4.0, 5.0, f64::INFINITY]));
    let error = read_feature_matrix(&path, &options(Some("x1"), Some(&["x3"]))).unwrap_err();
    assert!(matches!(error, DataError::NotFinite { position, .. } if position == [1, 2]));
    assert_eq!(
        read_feature_matrix(&path, &options(None, Some(&["x1"]))).unwrap().values.to_f64(),
        [1.0, 4.0]
    );
    // Of many columns the first are listed.
    let wide = folder.npy("n.npy", &[1, 2_000], ArrayValues::U8(many));
    let error = read_feature_matrix(&wide, &options(Some("label"), None)).unwrap_err().to_string();
    assert!(error.contains("x20 and 1980 more") && !error.contains("x21"), "{error}");
    // The limit holds.
    let read = ReadOptions::limited(100);
    let error =
        read_feature_matrix(&wide, &FeatureOptions { read, ..FeatureOptions::default() }).unwrap_err();
    assert!(matches!(error, DataError::DeclaredTooLarge { .. }), "{error}");
}
