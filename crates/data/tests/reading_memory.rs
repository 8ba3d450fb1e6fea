//! Reading keeps to its limit: measured, for tables whose cells take far more than their files.

use posterior_data::{Column, DataError, ReadOptions, Table, Values, parse_table, write_table};
use std::io::Write;
use std::path::Path;

/// What the allocator, the decoders' buffers and the test itself take beside the tables.
const SLACK: u64 = 12 << 20;

fn kilobytes(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let found = status.lines().find(|l| l.starts_with(line))?;
    found.split_whitespace().nth(1)?.parse::<u64>().ok().map(|k| k * 1024)
}

/// Bytes that some work takes at most, and what it returns; None where the system does not tell.
fn measured<T>(work: impl FnOnce() -> T) -> Option<(u64, T)> {
    // The peak begins anew.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = kilobytes("VmRSS:")?;
    let result = work();
    Some((kilobytes("VmHWM:")?.saturating_sub(before), result))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn parquet(table: &Table) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write_table(table, &path).unwrap();
    std::fs::read(path).unwrap()
}

// One test: the peak is the whole process's.
#[test]
fn cells_count_not_bytes_of_files() {
    let numbers = format!("a,b,c,d,e,f\n{}", "1,2,3,4,5,6\n".repeat(400_000));
    let words = format!("a,b,c,d,e,f\n{}", "u,v,w,x,y,z\n".repeat(150_000));
    let long = vec![Some("long ".repeat(200)); 60_000];
    let text = Table::new("t", vec![Column { name: "a".into(), values: Values::Text(long) }]);
    let constant =
        Table::new("t", (0..4).map(|j| Column::numeric(format!("x{j}"), vec![1.5; 1_000_000])).collect());
    let files = [
        ("numbers.csv.gz", gzip(numbers.as_bytes())),
        ("words.csv.gz", gzip(words.as_bytes())),
        ("text.parquet", parquet(&text)),
        ("constant.parquet", parquet(&constant)),
    ];
    drop((numbers, words, text, constant));
    for (name, bytes) in files {
        let size = bytes.len();
        let read = |limit| {
            let bytes = bytes.clone();
            measured(|| parse_table(bytes, Path::new(name), None, &ReadOptions { memory_limit: limit }))
        };
        let limit = 14_000_000;
        let Some((peak, refused)) = read(limit) else {
            println!("skipped: this system does not tell the peak memory of a process");
            return;
        };
        let error = refused.unwrap_err();
        println!("{name}, {size} bytes, limit {limit}: peak {peak}; {error}");
        assert!(peak <= limit + SLACK, "{name}: {peak}");
        assert!(error.to_string().contains("--memory"), "{error}");
        // More and more, until it is read: never more than was given, and not for much less than was asked.
        let mut limit = limit;
        let table = loop {
            limit += limit / 2;
            let (peak, read) = read(limit).unwrap();
            assert!(peak <= limit + SLACK, "{name}: {peak} above {limit}");
            match read {
                Ok(table) => break table,
                Err(DataError::TableTooLarge { bytes, .. }) => assert!(bytes > limit),
                Err(DataError::TooLarge { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            assert!(limit < 1_000_000_000);
        };
        println!("{name}: {} bytes of cells, read within {limit}", table.memory());
        assert!(limit < 3 * table.memory(), "{name}: {limit}");
    }
}
