//! `--csv-safe`: a spreadsheet takes no text of a written table for a formula.

use super::running::{error, run};
use std::path::Path;

fn stdout(at: &Path, line: &str) -> String {
    let output = run(at, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The columns and cells that were in the file that is predicted.
fn kept(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split(',').take(4).collect::<Vec<_>>().join(",")).collect()
}

#[test]
fn predictions_hold_no_formulas() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/predictors");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::copy(fixtures.join("exact.posterior"), at.join("m.posterior")).unwrap();
    std::fs::write(at.join("new.csv"), "a,b,@kind,n\n0.5,0.25,=SUM(A1),-2\n0.5,0.25,-2,-3\n").unwrap();
    let safe = ["a,b,'@kind,n", "0.5,0.25,'=SUM(A1),-2", "0.5,0.25,-2,-3"];
    let plain = safe.map(|line| line.replace('\'', ""));
    let predict = "predict m.posterior new.csv";
    assert_eq!(kept(&stdout(at, predict)), plain);
    assert_eq!(kept(&stdout(at, &format!("{predict} --csv-safe"))), safe);
    for (flags, name) in [("", "whole.csv"), ("--stream", "parts.csv")] {
        stdout(at, &format!("{predict} --csv-safe {flags} -o {name}"));
        assert_eq!(kept(&std::fs::read_to_string(at.join(name)).unwrap()), safe);
    }
    for line in ["-o p.npy", "-o p.parquet", "--json"] {
        assert!(error(at, &format!("{predict} --csv-safe {line}")).contains("--csv-safe is for"), "{line}");
    }
}

#[test]
fn labels_and_streams_hold_no_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows: String =
        (0..40).map(|i| format!("{},{}\n", f64::from(i) - 20.5, 0.7 * f64::from(i % 7) + 0.1)).collect();
    std::fs::write(at.join("pool.csv"), format!("+a,=y\n{rows}")).unwrap();
    stdout(at, "label start s.json pool.csv --features +a --initial 2");
    stdout(at, "label tell s.json --row 1 --label =no");
    stdout(at, "label tell s.json --row 2 --label=-1");
    let told = run(at, "label export s.json --csv-safe -o safe.csv");
    assert!(told.status.success(), "{told:?}");
    assert_eq!(std::fs::read_to_string(at.join("safe.csv")).unwrap(), "'+a,label\n-20.5,'=no\n-19.5,-1\n");
    let stream = "stream s.posterior pool.csv --target =y --start-rows 20 --inducing-points 4 --quiet";
    let text = stdout(at, &format!("{stream} --csv-safe"));
    assert!(text.starts_with("row,'=y,'=y_mean,"), "{text}");
    let problem = error(at, &format!("{stream} --csv-safe -o p.jsonl"));
    assert!(problem.contains("--csv-safe is for"), "{problem}");
}
