//! Tables.

use super::{READ_LIMIT, judge};
use crate::common::{damage, gzip, iterations};
use posterior_data::{ReadOptions, Schema, Selection, Table, parse_table, synthetic, write_table};
use posterior_linalg::random::Streams;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn run(name: &str, valid: &[u8]) {
    let options = ReadOptions { memory_limit: READ_LIMIT };
    let read = |bytes: Vec<u8>| parse_table(bytes, Path::new(name), None, &options);
    let original = read(valid.to_vec()).unwrap();
    assert!(original.rows() > 0);
    let mut rng = Streams::new(11).stream(name);
    // The message of a panic inside a guarded decoder is noise here.
    std::panic::set_hook(Box::new(|_| {}));
    let (started, count) = (Instant::now(), iterations());
    let (mut accepted, mut slowest) = (0, Duration::ZERO);
    for _ in 0..count {
        let bytes = damage(valid, &mut rng);
        let begun = Instant::now();
        if let Ok(table) = read(bytes) {
            accepted += 1;
            let target = table.columns.last().map(|c| c.name.clone()).unwrap_or_default();
            let rows: Vec<usize> = (0..table.rows()).collect();
            let selection = Selection { target, ..Default::default() };
            if let Ok(schema) = Schema::learn(&table, &selection, &rows) {
                let _ = schema.extract(&table, &rows, true);
            }
        }
        slowest = slowest.max(begun.elapsed());
    }
    let _ = std::panic::take_hook();
    judge(name, count, accepted, started, slowest);
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
    let mut out = Vec::new();
    use npyz::WriterBuilder;
    let options = npyz::WriteOptions::new().default_dtype().shape(&[10, 3]).writer(&mut out);
    let mut writer = options.begin_nd().unwrap();
    writer.extend((0..30).map(f64::from)).unwrap();
    writer.finish().unwrap();
    out
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
