//! `label` from a pool to a fitted model; several processes at once; what is no pool, no label, no state.
#![cfg(unix)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn start(folder: &Path, line: &[&str]) -> Child {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The words of a line; those between two `'` are one.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
        .collect()
}

fn run(folder: &Path, line: &str) -> Output {
    start(folder, &words(line)).wait_with_output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("--json label {line}"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a command that must fail says.
fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, &format!("label {line}"));
    assert!(!output.status.success(), "{line}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const LABELS: [&str; 3] = ["red", "green", "blue"];

/// The class of a row of the pool, from 1.
fn truth(row: usize) -> &'static str {
    LABELS[(row * row + row / 3) % 3]
}

/// Three clusters of the plane with a text beside them.
fn folder(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("note,a,b\n");
    for row in 1..=rows {
        let wave = |k: f64| 0.6 * (row as f64 * k).sin();
        let (x, y) = match truth(row) {
            "red" => (0.0, 0.0),
            "green" => (3.0, 0.0),
            _ => (0.0, 3.0),
        };
        writeln!(text, "picture {row},{},{}", x + wave(1.7), y + wave(2.3)).unwrap();
    }
    std::fs::write(folder.path().join("pool.csv"), text).unwrap();
    folder
}

/// Tells the truth about all questions, in one table.
fn tell_all(folder: &Path, asked: &Value) {
    let mut text = String::from("id,label\n");
    for question in asked["questions"].as_array().unwrap() {
        writeln!(text, "{},{}", question["id"], truth(question["row"].as_u64().unwrap() as usize)).unwrap();
    }
    std::fs::write(folder.join("answers.csv"), text).unwrap();
    json(folder, "tell s.json --results answers.csv");
}

#[test]
fn from_a_pool_to_a_model() {
    let folder = folder(90);
    let at = folder.path();
    let begun = json(at, "start s.json pool.csv --show note --initial 6");
    assert_eq!((begun["rows"].as_u64(), begun["features"].as_array().unwrap().len()), (Some(90), 2));
    for round in 0..4 {
        let asked = json(at, "ask s.json -n 6");
        for question in asked["questions"].as_array().unwrap() {
            assert_eq!(question["shown"]["note"], format!("picture {}", question["row"]));
            assert_eq!(question["reason"], if round == 0 { "spread" } else { "criterion" });
            if round > 0 {
                assert!(question["value"].as_f64().unwrap() >= 0.0 && question["guess"]["label"].is_string());
            }
        }
        tell_all(at, &asked);
    }
    let status = json(at, "status s.json");
    assert_eq!((status["told"].as_u64(), status["pending"].as_array().unwrap().len()), (Some(24), 0));
    assert_eq!(status["scores"]["labels"].as_u64(), Some(18));
    assert!(status["left"]["entropy"].as_f64().unwrap() < 0.5, "{}", status["left"]);
    // For people: what to look at, what is believed, and how it stands.
    let text = String::from_utf8(run(at, "label ask s.json -n 2").stdout).unwrap();
    assert!(text.contains("note") && text.contains("picture ") && text.contains("entropy"), "{text}");
    let text = String::from_utf8(run(at, "label status s.json").stdout).unwrap();
    for word in ["24 labels", "2 pending", "because they are hard", "pending:", "entropy"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    json(at, "tell s.json --id 26 --skip 'out of focus'");
    // One more command leads to a model that knows the rest.
    let exported = json(at, "export s.json -o labelled.csv");
    assert_eq!((exported["rows"].as_u64(), exported["target"].as_str()), (Some(24), Some("label")));
    assert!(error(at, "export s.json -o labelled.csv").contains("--force"));
    let next = exported["next"].as_str().unwrap().strip_prefix("posterior ").unwrap().to_string();
    let fitted = run(at, &next);
    assert!(fitted.status.success(), "{next}\n{}", String::from_utf8_lossy(&fitted.stderr));
    let output = run(at, "predict labelled.posterior pool.csv -o p.csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let predicted = std::fs::read_to_string(at.join("p.csv")).unwrap();
    let right = predicted.lines().skip(1).enumerate().filter(|(i, line)| line.contains(truth(i + 1))).count();
    assert!(right >= 85, "{right} of 90");
}

#[test]
fn labels_that_are_known_and_arrays() {
    let folder = folder(30);
    let at = folder.path();
    // Every third label is known, as a column of the pool.
    let text = std::fs::read_to_string(at.join("pool.csv")).unwrap();
    let lines = text.lines().enumerate().map(|(row, line)| match row {
        0 => format!("{line},colour\n"),
        _ if row % 3 == 0 => format!("{line},{}\n", truth(row)),
        _ => format!("{line},\n"),
    });
    std::fs::write(at.join("some.csv"), lines.collect::<String>()).unwrap();
    let begun = json(at, "start s.json some.csv --features a,b --labels colour");
    assert_eq!(begun["labels"].as_u64(), Some(10));
    let asked = json(at, "ask s.json");
    assert_eq!(asked["questions"][0]["reason"], "criterion");
    assert!(!asked["questions"][0]["row"].as_u64().unwrap().is_multiple_of(3));
    let exported = json(at, "export s.json -o known.csv");
    assert_eq!((exported["target"].as_str(), exported["rows"].as_u64()), (Some("colour"), Some(10)));
    assert!(std::fs::read_to_string(at.join("known.csv")).unwrap().starts_with("a,b,colour\n"));

    // An array has no names; rows that nobody asked for may be told.
    crate::usage::inputs::npy(&at.join("x.npy"), &[20, 3]);
    json(at, "start array.json x.npy --classes no,yes --kernel linear --criterion variance --initial 2");
    for (row, label) in [(1, "no"), (2, "yes")] {
        json(at, &format!("tell array.json --row {row} --label {label}"));
    }
    let asked = json(at, "ask array.json -n 3");
    assert_eq!(asked["questions"][2]["shown"].as_object().unwrap().len(), 3);
    assert!(asked["questions"].as_array().unwrap().iter().all(|q| q["row"].as_u64().unwrap() > 2));
    assert!(asked["hyperparameters"][0][0].as_str().unwrap().starts_with("linear"));
}

#[test]
fn several_processes_ask_and_tell_at_once() {
    let count = std::env::var("POSTERIOR_CONCURRENT").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let folder = folder(4 * count);
    let at = folder.path();
    json(at, "start s.json pool.csv --features a,b --initial 4");
    let asked = json(at, &format!("ask s.json -n {count}"));
    let (mut tells, mut asks) = (Vec::new(), Vec::new());
    for question in asked["questions"].as_array().unwrap() {
        let (id, row) = (question["id"].to_string(), question["row"].as_u64().unwrap() as usize);
        tells.push(start(at, &["label", "tell", "s.json", "--id", &id, "--label", truth(row)]));
        asks.push(start(at, &["--json", "label", "ask", "s.json", "--threads", "1"]));
    }
    for child in tells {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut rows = BTreeSet::new();
    for child in asks {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let asked: Value = serde_json::from_slice(&output.stdout).unwrap();
        rows.insert(asked["questions"][0]["row"].as_u64().unwrap());
    }
    let status = json(at, "status s.json");
    let pending = status["pending"].as_array().unwrap().len();
    assert_eq!((status["told"].as_u64(), rows.len(), pending), (Some(count as u64), count, count));
    let all: BTreeSet<u64> =
        status["questions"].as_array().unwrap().iter().map(|q| q["row"].as_u64().unwrap()).collect();
    assert_eq!(all.len(), 2 * count, "a row was asked for twice");
    for question in status["questions"].as_array().unwrap().iter().take(count) {
        assert_eq!(question["answer"]["label"], truth(question["row"].as_u64().unwrap() as usize));
    }
}

#[test]
fn a_state_is_whole_whenever_its_writer_is_killed() {
    let folder = folder(300);
    let at = folder.path();
    json(at, "start s.json pool.csv --features a,b --initial 300");
    let mut asked = 0;
    for k in 0..10 {
        let mut child = start(at, &["label", "ask", "s.json", "-n", "20"]);
        std::thread::sleep(Duration::from_millis(3 * k));
        let _ = child.kill();
        child.wait().unwrap();
        let now = json(at, "status s.json")["pending"].as_array().unwrap().len();
        assert!(now == asked || now == asked + 20, "{asked} then {now}");
        asked = now;
    }
}

#[test]
fn bad_input_is_explained() {
    let folder = folder(20);
    let at = folder.path();
    let long: Vec<String> = (0..10_000).map(|k| format!("c{k}")).collect();
    std::fs::write(at.join("one.csv"), "a\n1\n").unwrap();
    std::fs::write(at.join("holes.csv"), "a,b\n1,2\n3,\n5,6\n").unwrap();
    for (line, expected) in [
        ("start n.json nowhere.csv", "nowhere.csv"),
        ("start n.json one.csv", "one row: there is nothing to choose among"),
        ("start n.json holes.csv", "row 2, column `b`"),
        ("start n.json pool.csv --features note", "column `note`: 20 different texts"),
        ("start n.json pool.csv --features a,c", "no column `c`"),
        ("start n.json pool.csv --features a,b --classes x", "at least two classes"),
        ("start n.json pool.csv --features a,b --classes x,x", "named twice"),
        ("start n.json pool.csv --features a,b --kernel sea", "sea"),
        ("start pool.csv pool.csv --features a,b --force", "pool.csv"),
        ("start n.json pool.csv --features a,b --pseudo-count 0", "above 0"),
        ("ask n.json", "cannot read the state"),
    ] {
        let text = error(at, line);
        assert!(text.contains(expected), "{line}\n{text}");
        assert!(!at.join("n.json").exists(), "{line}");
    }
    // The memory that it would need, before anything is done.
    let text =
        error(at, &format!("start n.json pool.csv --features a,b --memory 0.1 --classes {}", long.join(",")));
    assert!(text.contains("10000 latent functions") && text.contains("MB of memory"), "{text}");
    assert!(!at.join("n.json").exists());

    json(at, "start s.json pool.csv --features a,b --classes red,green,blue");
    assert!(error(at, "start s.json pool.csv --features a,b").contains("--force"));
    json(at, "ask s.json -n 3");
    std::fs::write(at.join("bad.csv"), "id,label\n1,red\nx,green\n").unwrap();
    std::fs::write(at.join("half.csv"), "id,label\n1,red\n9,green\n").unwrap();
    std::fs::write(at.join("other.csv"), "number,label\n1,red\n").unwrap();
    for (line, expected) in [
        ("tell s.json --id 4 --label red", "no question 4; they are numbered from 1 to 3"),
        ("tell s.json --row 21 --label red", "rows 1 to 20"),
        ("tell s.json --id 1 --label ' Red'", "did you mean `red`?"),
        ("tell s.json --id 1 --label ''", "is empty"),
        ("tell s.json --results bad.csv", "`x` is no number of a question"),
        ("tell s.json --results half.csv", "no question 9"),
        ("tell s.json --results other.csv", "needs a column `id`"),
        ("tell s.json --id 1", "--label"),
        ("ask s.json --memory 0.000001", "--memory"),
        ("export s.json -o o.csv", "no label was told yet"),
        ("export s.json -o s.json --force", "s.json"),
    ] {
        let text = error(at, line);
        assert!(text.contains(expected), "{line}\n{text}");
    }
    // All of a table or nothing.
    assert_eq!(json(at, "status s.json")["told"].as_u64(), Some(0));
    json(at, "tell s.json --id 1 --label red");
    assert!(error(at, "tell s.json --id 1 --label blue").contains("--replace"));
    assert_eq!(json(at, "tell s.json --id 1 --label blue --replace")["labels"]["blue"].as_u64(), Some(1));
    // Labels that grow: what differs in case or spaces only is said.
    json(at, "start grown.json pool.csv --features a,b");
    json(at, "tell grown.json --row 1 --label cat");
    let output = run(at, "label tell grown.json --row 2 --label 'Cat '");
    assert!(String::from_utf8_lossy(&output.stderr).contains("differs from `cat` in case or spaces only"));
    assert_eq!(json(at, "status grown.json")["classes"].as_array().unwrap().len(), 2);

    // A pool that is not what it was; what was told can be had all the same.
    let text = std::fs::read_to_string(at.join("pool.csv")).unwrap();
    std::fs::write(at.join("pool.csv"), format!("{text}picture 21,0,0\n")).unwrap();
    assert!(error(at, "ask s.json").contains("has changed since the start"));
    let status = json(at, "status s.json");
    assert!(status["left"].is_null() && status["told"].as_u64() == Some(1));
    std::fs::write(at.join("moved.csv"), text).unwrap();
    let asked = json(at, "ask s.json --pool moved.csv -n 100");
    assert_eq!(asked["questions"].as_array().unwrap().len(), 17);
    assert!(error(at, "ask s.json --pool moved.csv").contains("nothing is left: all 20 rows"));
    // States of one kind are not those of another.
    let optimize = run(at, "optimize start o.json --space x:0..1");
    assert!(optimize.status.success());
    assert!(error(at, "ask o.json").contains("not a usable state"));
    assert!(error(at, "start pool.csv moved.csv --features a,b").contains("--force"));
}
