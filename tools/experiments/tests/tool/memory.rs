//! The memory of a process that does nothing but solve grows no faster than its rows.

use serde_json::Value;
use std::process::Command;

#[test]
fn memory_of_large_tables_grows_no_faster_than_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/files/scaling.toml");
    let mut text = std::fs::read_to_string(source).unwrap();
    for (long, short) in [
        ("rows = [10000, 31623, 100000, 316228, 1000000]", "rows = [10000, 40000]"),
        ("iterations = 2000", "iterations = 10"),
        ("every = 10\n", "every = 5\n"),
    ] {
        assert!(text.contains(long), "{long}");
        text = text.replace(long, short);
    }
    let path = folder.path().join("scaling.toml");
    std::fs::write(&path, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_posterior-experiments"))
        .current_dir(&folder)
        .args(["run", "scaling.toml", "--output", "results", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mean = &found["mean"];
    let Some(growth) = mean["memory_growth"].as_f64() else {
        posterior_testing::skip("this system does not tell the peak memory of a process");
        return;
    };
    // A matrix of the rows would grow sixteenfold where the rows grow fourfold.
    assert!(growth < 1.2, "{mean}");
    for n in ["n 10000", "n 40000"] {
        let of = |key: &str| mean["sizes"][n][key].as_f64().unwrap();
        // The measurement sees what is kept; beside it are tiles, prior functions and what the allocator holds back.
        assert!(of("peak_megabytes") > of("parts_megabytes"), "{n}: {mean}");
        assert!(of("peak_megabytes") < 3.0 * of("parts_megabytes") + 40.0, "{n}: {mean}");
    }
}
