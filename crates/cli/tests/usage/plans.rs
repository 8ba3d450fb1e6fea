//! What a fit to a table plans is what it takes, whatever the method, and a limit below the plan refuses it.

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that no plan counts: names, headers, what the allocator holds back, stacks of threads.
const UNCOUNTED: i64 = 12 << 20;

/// Every method with as little work as shows its memory.
const METHODS: [(&str, &str); 9] = [
    ("exact", "--method exact --steps 2 --restarts 1"),
    ("auto", "--method auto --time-budget 8"),
    ("sdd", "--method sdd --iterations 20 --samples 64"),
    ("cg", "--method cg --iterations 5 --samples 64"),
    ("cg, Nystrom", "--method cg --iterations 5 --samples 16 --preconditioner nystrom"),
    ("sgd", "--method sgd --iterations 20 --samples 16"),
    ("inducing-sgd", "--method inducing-sgd --iterations 20 --samples 16 --inducing 500"),
    ("sgpr", "--method sgpr --iterations 3 --inducing 300"),
    ("svgp", "--method svgp --iterations 20 --inducing 300"),
];

/// Flags of a short search for hyperparameters, where a method has one.
fn search(method: &str) -> &'static str {
    match method {
        "exact" | "sgpr" | "svgp" => "",
        _ => "--blocks 2 --block-size 400 --refining-rows 800",
    }
}

fn fit(folder: &Path, rows: usize, flags: &str, more: &str) -> Result<Value, String> {
    // A name of its own, so that no checkpoint of another fit is in the way.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let line = format!("fit gp --data {rows}.csv --target y {flags} {more} --out {number}.posterior --json");
    let output = Command::new(env!("CARGO_BIN_EXE_posterior"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

fn bytes(report: &Value, key: &str) -> i64 {
    report[key].as_i64().unwrap_or_else(|| panic!("{key} of {report}"))
}

/// y = sin(3 x1) + x2 + noise, beside further columns that matter little.
fn write_table(folder: &Path, rows: usize, columns: usize) {
    let mut text = (1..=columns).fold(String::new(), |all, i| all + &format!("x{i},"));
    text += "y\n";
    for i in 0..rows {
        let x = |k: usize| ((i as f64 + 0.5) * (k as f64 + 1.7).sqrt()) % 1.0;
        for k in 1..=columns {
            write!(text, "{:.6},", x(k)).unwrap();
        }
        let noise = 0.2 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
        writeln!(text, "{:.6}", (3.0 * x(1)).sin() + x(2) + noise).unwrap();
    }
    std::fs::write(folder.join(format!("{rows}.csv")), text).unwrap();
}

/// Small tables here; `POSTERIOR_PLAN_SIZES=large` goes on to 40,000 rows.
#[test]
fn plans_of_processes_bound_their_peaks() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(at, 20, 6);
    // What the program itself takes: nothing is planned for so few rows.
    let bare = fit(at, 20, "--method exact --steps 2 --restarts 1", "").unwrap();
    if bare["peak_memory_bytes"].is_null() {
        posterior_testing::skip("this system does not tell the peak memory of a process");
        return;
    }
    let program = bytes(&bare, "peak_memory_bytes");
    let large = std::env::var("POSTERIOR_PLAN_SIZES").is_ok_and(|v| v == "large");
    let sizes: &[usize] = if large { &[1_500, 10_000, 40_000] } else { &[1_500] };
    let mut wrong = Vec::new();
    write_table(at, 6_500, 6);
    for &size in sizes {
        write_table(at, size, 6);
        for (what, flags) in METHODS {
            // The default is exact up to 6,000 rows, and what is exact takes long beyond.
            let rows = if what == "auto" { size.max(6_500) } else { size };
            if what == "exact" && rows > 10_000 {
                continue;
            }
            let report = fit(at, rows, flags, search(what)).unwrap_or_else(|e| panic!("{what}: {e}"));
            let planned = bytes(&report, "planned_memory_bytes");
            let peak = bytes(&report, "peak_memory_bytes") - program;
            let megabytes = |bytes: i64| bytes as f64 / 1e6;
            println!(
                "{what}, {rows} rows: peak {:.1} MB, planned {:.1} MB",
                megabytes(peak),
                megabytes(planned)
            );
            if peak > planned + UNCOUNTED || planned > 2 * peak.max(0) + (64 << 20) {
                wrong.push(format!("{what}, {rows} rows: peak {peak}, planned {planned}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A tenth less than what is planned is refused before the work.
    for (what, flags) in METHODS.iter().filter(|m| m.0 != "auto") {
        let planned = bytes(&fit(at, 20, flags, search(what)).unwrap(), "planned_memory_bytes");
        let limited = format!("{} --memory {}", search(what), 0.9e-9 * planned as f64);
        let text = fit(at, 20, flags, &limited).unwrap_err();
        assert!(text.contains("above the limit") && !text.contains("for reading"), "{what}: {text}");
    }
}
