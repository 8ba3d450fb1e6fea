//! Reading keeps to its limit: measured, for tables whose cells take far more than their files.

use posterior_data::{Column, DataError, ReadOptions, Table, Values, read_table, write_table};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// What the allocator, the decoders' buffers and the test itself take beside the tables.
const SLACK: u64 = 12 << 20;

fn kilobytes(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let found = status.lines().find(|l| l.starts_with(line))?;
    found.split_whitespace().nth(1)?.parse::<u64>().ok().map(|k| k * 1024)
}

/// Where a process that only reads finds what to read: a file and a limit.
const TASK: &str = "POSTERIOR_READING_TASK";

/// What became of reading a file within a limit in a process of its own.
struct Reading {
    /// Bytes that it took at most.
    peak: u64,
    /// Bytes of the table's cells, or the error and what it asks for.
    result: Result<u64, (String, u64)>,
}

/// None where the system does not tell the peak memory of a process.
fn read(path: &Path, limit: u64) -> Option<Reading> {
    kilobytes("VmHWM:")?;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "reading_memory::reads_what_it_is_told", "--nocapture"]);
    let output = command.env(TASK, format!("{limit} {}", path.display())).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|l| l.contains("READ")).unwrap_or_else(|| panic!("{text}"));
    let words: Vec<&str> = line[line.find("READ").unwrap()..].splitn(4, ' ').collect();
    let (peak, number) = (words[1].parse().unwrap(), words[2].parse().unwrap());
    let result = if words[3] == "ok" { Ok(number) } else { Err((words[3].to_string(), number)) };
    Some(Reading { peak, result })
}

/// The other process's part; nothing to do without a task.
#[test]
fn reads_what_it_is_told() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (limit, path) = task.split_once(' ').unwrap();
    let before = kilobytes("VmRSS:").unwrap();
    let read = read_table(Path::new(path), &ReadOptions::limited(limit.parse().unwrap()));
    let peak = kilobytes("VmHWM:").unwrap().saturating_sub(before);
    match read {
        Ok(table) => println!("READ {peak} {} ok", table.memory()),
        Err(error) => {
            let asked = if let DataError::TableTooLarge { bytes, .. } = &error { *bytes } else { 0 };
            println!("READ {peak} {asked} {error}");
        }
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn cells_count_not_bytes_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let numbers = format!("a,b,c,d,e,f\n{}", "1,2,3,4,5,6\n".repeat(400_000));
    std::fs::write(at("numbers.csv.gz"), gzip(numbers.as_bytes())).unwrap();
    let words = format!("a,b,c,d,e,f\n{}", "u,v,w,x,y,z\n".repeat(150_000));
    std::fs::write(at("words.csv.gz"), gzip(words.as_bytes())).unwrap();
    let long = vec![Some("long ".repeat(200)); 60_000];
    let text = Table::new("t", vec![Column { name: "a".into(), values: Values::Text(long) }]);
    write_table(&text, &at("text.parquet")).unwrap();
    let columns = (0..4).map(|j| Column::numeric(format!("x{j}"), vec![1.5; 1_000_000]));
    write_table(&Table::new("t", columns.collect()), &at("constant.parquet")).unwrap();
    for name in ["numbers.csv.gz", "words.csv.gz", "text.parquet", "constant.parquet"] {
        let size = std::fs::metadata(at(name)).unwrap().len();
        let limit = 14_000_000;
        let Some(Reading { peak, result }) = read(&at(name), limit) else {
            println!("skipped: this system does not tell the peak memory of a process");
            return;
        };
        println!("{name}, {size} bytes, limit {limit}: peak {peak}, {result:?}");
        let (error, _) = result.unwrap_err();
        assert!(peak <= limit + SLACK, "{name}: {peak}");
        assert!(error.contains("--memory"), "{error}");
        // More and more, until it is read: never more than was given, and not much less than was needed.
        let mut limit = limit;
        let cells = loop {
            limit += limit / 2;
            let Reading { peak, result } = read(&at(name), limit).unwrap();
            assert!(peak <= limit + SLACK, "{name}: {peak} above {limit}");
            match result {
                Ok(cells) => {
                    println!("{name}: {cells} bytes of cells, read within {limit}, peak {peak}");
                    assert!(peak + SLACK > cells, "the measurement must see the cells: {peak}");
                    break cells;
                }
                Err((_, asked)) => assert!(asked == 0 || asked > limit),
            }
            assert!(limit < 1_000_000_000);
        };
        assert!(limit < 3 * cells, "{name}: {limit}");
    }
}
