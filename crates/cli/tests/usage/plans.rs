//! What a fit to a table plans is what it takes, whatever the method, and a limit below the plan refuses it.

use super::printed::repository;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Bytes that no plan counts: names, headers, what the allocator holds back, stacks of threads.
const UNCOUNTED: i64 = 12 << 20;

/// Every method with as little work as shows its memory.
const METHODS: [(&str, &str); 9] = [
    ("exact", "--method exact --steps 2 --restarts 1"),
    ("auto", "--method auto --time-budget 8 --exact-limit 500"),
    ("sdd", "--method sdd --iterations 20 --samples 64"),
    ("cg", "--method cg --iterations 5 --samples 64"),
    ("cg, Nystrom", "--method cg --iterations 5 --samples 16 --preconditioner nystrom"),
    ("sgd", "--method sgd --iterations 20 --samples 16"),
    ("inducing-sgd", "--method inducing-sgd --iterations 20 --samples 16 --inducing 500"),
    ("sgpr", "--method sgpr --iterations 3 --inducing 300"),
    ("svgp", "--method svgp --iterations 20 --inducing 300"),
];

const SEARCH: &str = "--blocks 2 --block-size 400 --refining-rows 800 --steps 3";

fn run(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_posterior"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

fn fit(folder: &Path, rows: usize, flags: &str, more: &str) -> Result<Value, String> {
    let output = run(
        folder,
        &format!(
            "fit gp --data {rows}.csv --target y {flags} {more} --out m.posterior --force --fresh --json"
        ),
    );
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
    assert!(repository().join("Cargo.toml").exists());
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
    let sizes: &[usize] = if large { &[2_500, 10_000, 40_000] } else { &[2_500] };
    let mut wrong = Vec::new();
    for &rows in sizes {
        write_table(at, rows, 6);
        for (what, flags) in METHODS {
            if what == "exact" && rows > 10_000 {
                continue;
            }
            let search =
                if what.starts_with("sgpr") || what == "svgp" || what == "exact" { "" } else { SEARCH };
            let report = fit(at, rows, flags, search).unwrap_or_else(|e| panic!("{what}: {e}"));
            let planned = bytes(&report, "planned_memory_bytes");
            let peak = bytes(&report, "peak_memory_bytes") - program;
            println!(
                "{what}, {rows} rows: peak {:.1} MB, planned {:.1} MB",
                peak as f64 / 1e6,
                planned as f64 / 1e6
            );
            if peak > planned + UNCOUNTED || planned > 2 * peak.max(0) + (64 << 20) {
                wrong.push(format!("{what}, {rows} rows: peak {peak}, planned {planned}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A tenth less than what is planned is refused before the work, and the refusal names both.
    for (what, flags) in METHODS.iter().filter(|m| m.0 != "auto") {
        let search = if matches!(*what, "sgpr" | "svgp" | "exact") { "" } else { SEARCH };
        let planned = bytes(&fit(at, 20, flags, search).unwrap(), "planned_memory_bytes");
        let text = fit(at, 20, flags, &format!("{search} --memory {}", 0.9e-9 * planned as f64)).unwrap_err();
        assert!(text.contains("memory"), "{what}: {text}");
    }
}
