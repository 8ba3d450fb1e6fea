//! `fit --from-disk`: the model of memory, bit for bit.

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn posterior(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posterior"));
    command.current_dir(folder).args(line.split_whitespace());
    command
}

fn json(folder: &Path, line: &str) -> Value {
    let output = posterior(folder, &format!("--json {line}")).output().unwrap();
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(folder: &Path, line: &str) -> String {
    let output = posterior(folder, line).output().unwrap();
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// y = sin(3a) + b² with a noise variance for each row, a category, a constant, cells that are missing and rows that repeat.
fn write_table(path: &Path, rows: std::ops::Range<usize>) {
    let mut text = String::from("a,b,kind,same,s,y\n");
    for row in rows {
        let i = if row % 40 == 39 { row - 1 } else { row };
        let (a, b) = ((i as f64 * 0.618_034) % 1.0, (i as f64 * 0.754_878) % 1.0);
        let noise = 0.1 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
        let cell = if i % 50 == 7 { String::new() } else { a.to_string() };
        let (kind, s, y) = (["oak", "ash"][i % 2], 0.001 + 0.01 * b, (3.0 * a).sin() + b * b + noise);
        writeln!(text, "{cell},{b},{kind},7,{s},{y}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

/// The numbers of a model file, which stand behind its header.
fn tensors(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + length..].to_vec()
}

/// What a model says of itself, without what says where its rows were: rows that are read part by part are scored by `evaluate`.
pub(crate) fn described(folder: &Path, model: &str) -> Value {
    let mut found = json(folder, &format!("inspect {model}"));
    // Of the file: how many digits seconds have.
    found["bytes"] = Value::Null;
    found["header"]["fit"]["plan"] = Value::Null;
    let of_run = ["planned_memory_bytes", "peak_memory_bytes", "model", "left_out", "read"];
    of_run.iter().for_each(|own| found[own] = Value::Null);
    without(&mut found, &["seconds", "from_disk"]);
    found
}

/// Takes what has one of these names out of a document, wherever it is.
fn without(document: &mut Value, names: &[&str]) {
    match document {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|field| without(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, names)),
        _ => {}
    }
}

#[test]
fn rows_from_disk_give_the_model_of_rows_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 0..1_200);
    write_table(&at.join("one.csv"), 0..500);
    write_table(&at.join("two.csv"), 500..1_200);
    for (name, flags) in [
        (
            "plain",
            "--method svgp --set inducing=20 --set iterations=40 --set batch=100 --features a,b --missing drop",
        ),
        (
            "noisy",
            "--method svgp --set inducing=20 --set iterations=40 --set batch=100 --noise s --one-hot kind --missing mean --test-fraction 0.1 --set inducing-choice=greedy",
        ),
        (
            "adam",
            "--method svgp --set inducing=20 --set iterations=40 --one-hot kind --features b,kind --kernel matern32(ard)*categorical(kind) --set variational=adam --held-back 0 --set batch=5000",
        ),
        ("sgpr", "--method sgpr --set inducing=20 --set steps=4 --noise s --features a,b --missing mean"),
        (
            "closed",
            "--method sgpr --set inducing=20 --set fixed-inducing --hyperparameters plain-memory.posterior --features a,b --missing drop",
        ),
        ("dbk", "--method dbk --set rank=8 --set iterations=3 --features a,b --missing mean --held-back 0"),
        (
            "svdkl",
            "--method svdkl --set rank=8 --set iterations=2 --set batch=100 --features a,b --missing drop",
        ),
    ] {
        let line = format!("fit --target y {flags}");
        let memory = json(at, &format!("{line} t.csv -o {name}-memory.posterior"));
        let disk = json(at, &format!("{line} t.csv --from-disk -o {name}-disk.posterior"));
        json(at, &format!("{line} one.csv two.csv --from-disk -o {name}-files.posterior"));
        assert_eq!(memory["large_table"]["from_disk"], Value::Null);
        let bytes = disk["large_table"]["from_disk"].as_u64().unwrap();
        assert!(bytes > 8 * 1_000 * 3 && bytes.is_multiple_of(8), "{bytes}");
        assert_eq!(disk["large_table"]["bound"], memory["large_table"]["bound"]);
        assert_eq!(disk["data"], memory["data"]);
        let expected = described(at, &format!("{name}-memory.posterior"));
        for own in ["disk", "files"] {
            let own = format!("{name}-{own}.posterior");
            assert_eq!(described(at, &own), expected, "{own}");
            let same = tensors(&at.join(&own)) == tensors(&at.join(format!("{name}-memory.posterior")));
            assert!(same, "{own}");
        }
    }
    let text = posterior(at, "inspect plain-disk.posterior").output().unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("read from disk") && text.contains("by a pass over all rows"), "{text}");
    // The plan says how large the file will be before it is there, and nothing is left of it.
    let line = "fit t.csv --target y --method svgp --features b --set inducing=5 --set iterations=3";
    let said = posterior(at, &format!("{line} --from-disk -o said.posterior")).output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let (written, planned) = (said.find("prepared rows go to disk: 0.0 MB in ."), said.find("plan: "));
    assert!(written.is_some() && written < planned && said.contains("rows from disk (0.0 MB)"), "{said}");
    let hidden = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().starts_with('.')
    };
    assert!(!std::fs::read_dir(at).unwrap().any(hidden));
}

#[test]
fn a_fit_from_disk_that_is_killed_goes_on_wherever_its_rows_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 0..1_200);
    let line = "fit t.csv --target y --features b,same --method svgp --set inducing=40 --set iterations=1500 --set batch=200 --checkpoint-every 0.05 --threads 1";
    json(at, &format!("{line} -o straight.posterior"));
    for (name, then) in [("same", "--from-disk"), ("memory", "")] {
        let mut child = posterior(at, &format!("{line} --from-disk -o {name}.posterior"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (state, started) = (at.join(format!("{name}.posterior.checkpoint")), Instant::now());
        while !state.exists() && started.elapsed() < Duration::from_secs(120) {
            if child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(state.exists() && !at.join(format!("{name}.posterior")).exists(), "it was killed too late");
        let resumed = json(at, &format!("{line} {then} -o {name}.posterior"));
        assert!(resumed["large_table"]["resumed_from"].as_u64().unwrap() > 0, "{resumed}");
        assert!(tensors(&at.join(format!("{name}.posterior"))) == tensors(&at.join("straight.posterior")));
    }
    // Other rows are told.
    write_table(&at.join("u.csv"), 1..1_201);
    let mut child = posterior(at, &format!("{line} --from-disk -o other.posterior"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (state, started) = (at.join("other.posterior.checkpoint"), Instant::now());
    while !state.exists() && started.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(state.exists(), "it was killed too late");
    let text = error(at, &format!("{} --from-disk -o other.posterior", line.replace("t.csv", "u.csv")));
    assert!(text.contains("other.posterior.checkpoint") && text.contains("--fresh"), "{text}");
}

#[test]
fn what_has_no_rows_on_disk_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 0..100);
    for (flags, words) in [
        ("--method sdd --from-disk", "--from-disk belongs to --method sgpr"),
        (
            "--method dkl --set dense --from-disk --features b --one-hot b",
            "--set dense factors a matrix of all rows",
        ),
        ("--method svgp --from-disk --stream false", "--from-disk reads a table of numbers part by part"),
        (
            "--method svgp --from-disk --likelihood student-t",
            "--from-disk is for targets with Gaussian noise",
        ),
        ("--method svgp --from-disk --memory 0.0001", "above the limit"),
        ("--method svgp --from-disk --missing error", "row 8, column `a`: the cell is missing"),
        ("--method svgp --from-disk --features b,y", "both a feature and the target"),
    ] {
        let line = format!("fit t.csv --target y --one-hot kind {flags} -o m.posterior");
        let line = if flags.contains("--features") { line.replace("--one-hot kind ", "") } else { line };
        let text = error(at, &line);
        assert!(text.contains(words), "{flags}: {text}");
    }
    assert!(!at.join("m.posterior").exists());
}
