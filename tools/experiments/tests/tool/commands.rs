//! Several experiments by one command: each in a folder of its own, in order, checked before the first is run, and resumed as each is.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A made-up table, a small network, two methods: two parts beside the training.
const FILE: &str = r#"
title = "Experiment TITLE"
source = "nowhere"
kind = "error-bars"

[[method]]
name = "network"
baseline = "network"
options = { approximation = "temperature" }

[[method]]
name = "last layer"
options = { approximation = "full", weights = "last_layer" }

[[task]]
name = "bike"
[task.table]
folder = ""
columns = 2
rows = 300
fold = 0
validation = 0.2
members = 1
network = { kind = "perceptron", hidden = [5], activation = "tanh" }
training = { learning_rate = 1e-2, steps = STEPS, batch = 50 }
"#;

/// Parts of [`FILE`] that a finished run asks the journal for: those of its methods.
const PARTS: u64 = 2;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, steps) in [("first", "20"), ("second", "30")] {
        let text = FILE.replace("TITLE", name).replace("STEPS", steps);
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    folder
}

fn run(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posterior-experiments"));
    command.current_dir(folder).arg("run").args(line.split_whitespace());
    command.output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Exit status and what was said.
fn refusal(folder: &Path, line: &str) -> (Option<i32>, String) {
    let output = run(folder, line);
    assert!(output.stdout.is_empty(), "{line}");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn several_files_go_on_where_each_of_them_was() {
    let folder = folder();
    let at = folder.path();
    // One file: one object, and the folder that was named.
    let alone = json(at, "first.toml -o all/first --json");
    assert_eq!((&alone["name"], alone["reused"].as_u64()), (&Value::from("first"), Some(0)));
    // Both: what is there of the first is taken from there.
    let both = json(at, "first.toml second.toml -o all --json");
    let both = both.as_array().unwrap();
    let told: Vec<_> = both.iter().map(|o| (o["name"].as_str().unwrap(), o["reused"].as_u64())).collect();
    assert_eq!(told, [("first", Some(PARTS)), ("second", Some(0))]);
    assert_eq!(both[0]["mean"]["tasks"], alone["mean"]["tasks"]);
    assert_ne!(both[1]["mean"]["tasks"], alone["mean"]["tasks"], "other networks");
    for (one, name) in both.iter().zip(["first", "second"]) {
        let results = at.join("all").join(name).join("results.json");
        assert_eq!(one["results"].as_str().map(|p| at.join(p)), Some(results.clone()));
        let written: Value = serde_json::from_slice(&std::fs::read(results).unwrap()).unwrap();
        assert_eq!((&written["mean"], &written["title"]), (&one["mean"], &one["title"]));
    }
    // Again, as people see it and in the order that was asked for.
    let output = run(at, "second.toml first.toml -o all --quiet");
    let text = String::from_utf8(output.stdout).unwrap();
    let place = |name: &str| text.find(&format!("Experiment {name}")).unwrap();
    assert!(output.status.success() && place("second") < place("first"), "{text}");
    assert_eq!(text.matches(&format!("{PARTS} results are those of an earlier run")).count(), 2, "{text}");
}

#[test]
fn each_has_a_folder_of_its_own_unless_told() {
    let folder = folder();
    json(folder.path(), "first.toml second.toml --json");
    for name in ["first", "second"] {
        assert!(folder.path().join("experiment-results").join(name).join("report.html").exists(), "{name}");
    }
}

#[test]
fn all_files_are_checked_before_the_first_is_run() {
    let folder = folder();
    let at = folder.path();
    let text = std::fs::read_to_string(at.join("second.toml")).unwrap();
    std::fs::write(at.join("wrong.toml"), text.replace("rows = 300", "rows = 2")).unwrap();
    std::fs::create_dir(at.join("other")).unwrap();
    std::fs::write(at.join("other/first.toml"), &text).unwrap();
    // A folder that another program's file stands in.
    std::fs::create_dir_all(at.join("taken/second")).unwrap();
    std::fs::write(at.join("taken/second/results.json"), "[1, 2]").unwrap();
    for (line, status, why) in [
        ("first.toml wrong.toml -o o", 1, "a table that is made up needs `rows`"),
        ("first.toml missing.toml -o o", 1, "no built-in experiment of that name"),
        ("first.toml second.toml --quick -o o", 1, "it has no [quick] table"),
        ("first.toml first.toml -o o", 2, "would both write to o/first"),
        ("first.toml other/first.toml -o o", 2, "would both write to o/first"),
        ("first.toml second.toml -o taken", 1, "results.json"),
        ("-o o", 2, "<FILE>"),
        ("toy_regression --threads 0 -o o", 2, "--threads"),
        ("toy_regression --seed=-1 -o o", 2, "--seed"),
    ] {
        let (found, said) = refusal(at, line);
        assert_eq!(found, Some(status), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
    for name in ["o/first/results.json", "o/first/finished.jsonl", "taken/first/finished.jsonl"] {
        assert!(!at.join(name).exists(), "{name}");
    }
}

#[test]
fn a_file_that_fails_leaves_what_finished_before() {
    let folder = folder();
    let at = folder.path();
    let text = std::fs::read_to_string(at.join("second.toml")).unwrap();
    std::fs::write(at.join("absent.toml"), text.replace("folder = \"\"", "folder = \"nowhere\"")).unwrap();
    let (status, said) = refusal(at, "first.toml absent.toml -o o --json");
    assert!(status == Some(1) && said.contains("nowhere"), "{said}");
    let again = json(at, "first.toml second.toml -o o --json");
    assert_eq!(again[0]["reused"].as_u64(), Some(PARTS));
}

#[test]
fn built_in_experiments_need_no_checkout() {
    let folder = tempfile::tempdir().unwrap();
    // What is beside the folder of temporary files is not beside this one.
    let at = &folder.path().join("here");
    std::fs::create_dir(at).unwrap();
    let found = json(at, "gaussianised_densities --quick -o o --json");
    assert_eq!(found["name"], "gaussianised_densities");
    assert!(at.join("o/results.json").exists(), "{found}");
    // Data are looked for from the current folder.
    let (status, said) = refusal(at, "thesis_uci -o p");
    assert!(status == Some(1) && said.contains("not there: ../shared/data/uci"), "{said}");
    // A file goes before a built-in experiment of its name; a folder is no file.
    std::fs::write(at.join("gaussianised_densities.toml"), "title = 3").unwrap();
    std::fs::create_dir(at.join("thesis_uci")).unwrap();
    for (name, why) in
        [("gaussianised_densities.toml", "is not a valid experiment"), ("thesis_uci", "not there")]
    {
        let (status, said) = refusal(at, &format!("{name} -o p"));
        assert!(status == Some(1) && said.contains(why), "{name}: {said}");
    }
}

#[test]
fn built_in_experiments_are_listed_and_those_of_a_folder() {
    let folder = folder();
    let listed = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_posterior-experiments"));
        let output = command.current_dir(&folder).arg("list").args(line.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (names, text) = (posterior_experiments::embedded(), listed(""));
    assert_eq!(text.lines().count(), names.len() + 1);
    assert!(names.iter().zip(text.lines().skip(1)).all(|(one, line)| line.starts_with(&one.name)), "{text}");
    let found: Vec<Value> = serde_json::from_str(&listed(". --json")).unwrap();
    let titles: Vec<_> = found.iter().filter_map(|one| one["title"].as_str()).collect();
    assert_eq!(titles, ["Experiment first", "Experiment second"]);
}
