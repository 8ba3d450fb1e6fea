//! What comes through pipes: read once, and taken for what it looks like.

use crate::common::{Sheet, gzip, npy, workbook};
use posterior_data::stream::is_streamable;
use posterior_data::{Column, ReadOptions, Table, read_table, write_table};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where a process that only reads finds what to read.
const TASK: &str = "POSTERIOR_PIPED_TASK";

/// The other process's part; nothing to do without a task.
#[test]
fn reads_what_it_is_given() {
    let Ok(path) = std::env::var(TASK) else { return };
    match read_table(Path::new(&path), &ReadOptions::limited(1 << 20)) {
        Ok(table) => println!("READ {} {}", table.rows(), table.names().join(" ")),
        Err(error) => println!("READ {error}"),
    }
}

/// What another process says that reads the bytes from standard input, which it is told to find at this path.
fn piped(bytes: &[u8], path: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "piped::reads_what_it_is_given", "--nocapture"]).env(TASK, path);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // A reader that has had enough closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let line = text.lines().find(|l| l.contains("READ ")).unwrap_or_else(|| panic!("{text}"));
    line[line.find("READ ").unwrap() + 5..].to_string()
}

#[test]
fn standard_input_is_what_it_looks_like() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("t.parquet");
    write_table(&Table::new("t", vec![Column::numeric("a", vec![1.0])]), &parquet).unwrap();
    let rows = "<row><c t=\"str\"><v>a</v></c></row><row><c><v>1</v></c></row>";
    let array = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", &1f64.to_le_bytes());
    for (bytes, expected) in [
        (b"a\n1\n".to_vec(), "1 a"),
        (b"a;b\n1,5;2\n".to_vec(), "1 a b"),
        (gzip(b"a\n1\n"), "1 a"),
        (b"{\"a\":1}\n".to_vec(), "1 a"),
        (std::fs::read(&parquet).unwrap(), "1 a"),
        (workbook(&[Sheet { name: "s", rows }], &[]), "1 a"),
        (array, "1 x1"),
        (Vec::new(), "standard input has no rows of data"),
    ] {
        assert_eq!(piped(&bytes, "-"), expected);
        if cfg!(unix) {
            assert_eq!(piped(&bytes, "/dev/stdin"), expected);
        }
    }
    let message = piped(&b"1\n".repeat(1 << 20), "-");
    assert!(message.contains("standard input holds more than 1048576 bytes"), "{message}");
    for path in ["-", "/dev/stdin", "/dev/fd/0"] {
        assert!(!is_streamable(Path::new(path)), "{path}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_have_no_length() {
    assert_eq!(piped(b"a,b\n1,2\n", "/dev/fd/0"), "1 a b");
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.csv", "t.dat", "t"] {
        let path = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(!is_streamable(&path));
        let to = path.clone();
        let writer = std::thread::spawn(move || std::fs::write(to, "a;b\n1;2\n").unwrap());
        let table = read_table(&path, &ReadOptions::default()).unwrap();
        writer.join().unwrap();
        assert_eq!((table.rows(), table.names()), (1, vec!["a".to_string(), "b".into()]), "{name}");
    }
    // Endless: as much as is allowed, and no more.
    let message = read_table(Path::new("/dev/zero"), &ReadOptions::limited(1 << 20)).unwrap_err().to_string();
    assert!(message.contains("holds more than 1048576 bytes"), "{message}");
    let message = read_table(folder.path(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.starts_with("cannot read"), "{message}");
}
