//! `optimize` as several processes use it at once: nothing told is lost, nothing is asked for twice, and no point is burnt by a command that cannot work.
#![cfg(unix)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn start(folder: &Path, line: &str) -> Child {
    let words = line.split_whitespace();
    let mut command = Command::new(BINARY);
    command.current_dir(folder).arg("optimize").args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(folder: &Path, line: &str) -> Output {
    start(folder, line).wait_with_output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("--json {line}"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a command that must fail says, and its exit status.
fn error(folder: &Path, line: &str) -> (String, i32) {
    let output = run(folder, line);
    assert!(!output.status.success(), "{line}");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code().unwrap())
}

/// A folder with a state of one axis `x`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    json(folder.path(), "start s.json --space x:0..1 --strategy random --initial 3");
    folder
}

/// An executable script in the folder.
fn script(folder: &Path, text: &str) {
    let path = folder.join("try.sh");
    std::fs::write(&path, format!("#!/bin/sh\nposterior={BINARY}\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn concurrent_tell_and_ask_lose_nothing() {
    let count = std::env::var("POSTERIOR_CONCURRENT").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let folder = folder();
    let at = folder.path();
    json(at, &format!("ask s.json -n {count}"));
    let (mut tells, mut asks) = (Vec::new(), Vec::new());
    for id in 1..=count {
        tells.push(start(at, &format!("tell s.json --id {id} --value {id}")));
        asks.push(start(at, "--json ask s.json"));
    }
    for child in tells {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let mut ids = BTreeSet::new();
    for child in asks {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let asked: Value = serde_json::from_slice(&output.stdout).unwrap();
        ids.insert(asked["trials"][0]["id"].as_u64().unwrap());
    }
    let status = json(at, "status s.json");
    let (told, pending) = (status["told"].as_u64().unwrap(), status["pending"].as_array().unwrap().len());
    println!(
        "{count} tell and {count} ask at once: {told} told, {} distinct ids, {pending} pending",
        ids.len()
    );
    assert_eq!((told, ids.len(), pending), (count, count as usize, count as usize));
    for trial in status["trials"].as_array().unwrap().iter().take(count as usize) {
        assert_eq!(trial["outcome"]["value"].as_f64(), trial["id"].as_f64());
    }
}

#[test]
fn what_is_told_while_a_trial_runs_is_kept() {
    let folder = folder();
    let at = folder.path();
    // The program tells a point of its own while the run waits for it: the state cannot be locked then.
    script(at, "$posterior optimize tell s.json --point x=0.25 --value 7 || exit 1\necho $1");
    let status = json(at, "run s.json --evaluations 5 -- ./try.sh {x}");
    // Each trial came with a point that was told: 2, 4, 6.
    assert_eq!((status["told"].as_u64(), status["failed"].as_u64()), (Some(6), Some(0)));
    let given = status["trials"].as_array().unwrap().iter().filter(|t| t["origin"] == "given").count();
    assert_eq!(given, 3, "{status}");

    // An outcome that somebody tells of the very point that is tried stays.
    script(at, "$posterior optimize tell s.json --id $2 --value 99 || exit 1\necho $1");
    let output = run(at, "run s.json --evaluations 7 -- ./try.sh {x} {id}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("trial 7") && text.contains("meanwhile"), "{text}");
    assert_eq!(json(at, "status s.json")["trials"][6]["outcome"]["value"], 99.0);
}

#[test]
fn a_lock_names_its_holder_and_dies_with_it() {
    let folder = folder();
    let at = folder.path();
    json(at, "ask s.json -n 3");
    let place = at.join(".s.json.lock");
    // What a process that was killed left behind.
    let left = |command: &str| {
        let holder = format!("posterior lock\n{{\"process\":4242,\"command\":\"{command}\",\"since\":0}}");
        std::fs::write(&place, holder).unwrap();
    };
    left("posterior optimize ask");
    json(at, "tell s.json --id 1 --value 1");
    left("posterior optimize ask -n 9");
    let held = std::fs::File::open(&place).unwrap();
    held.lock().unwrap();
    let (text, status) = error(at, "tell s.json --id 2 --value 1 --lock-timeout 0.2");
    assert!(
        text.contains("process 4242 (`posterior optimize ask -n 9`)") && text.contains("s.json"),
        "{text}"
    );
    assert_eq!(status, 1);
    // Looking needs no lock.
    json(at, "status s.json");
    drop(held);
    json(at, "tell s.json --id 2 --value 1");
    assert!(error(at, "ask s.json --lock-timeout nan").0.contains("--lock-timeout"));

    // One run at a time, named by the other.
    script(at, "sleep 20; echo 1");
    let mut first = start(at, "run s.json --evaluations 9 -- ./try.sh {x}");
    let started = Instant::now();
    while !at.join(".s.json.run").exists() || std::fs::read(at.join(".s.json.run")).unwrap().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    let (text, _) = error(at, "run s.json --evaluations 9 -- ./try.sh {x}");
    assert!(text.contains(&format!("process {}", first.id())) && text.contains("--batch"), "{text}");
    first.kill().unwrap();
    first.wait().unwrap();
    script(at, "echo 1");
    json(at, "run s.json --evaluations 4 -- ./try.sh {x}");
}

#[test]
fn a_state_is_whole_whenever_its_writer_is_killed() {
    let folder = folder();
    let at = folder.path();
    let mut asked = 0;
    for k in 0..15 {
        let mut child = start(at, "ask s.json -n 200");
        std::thread::sleep(Duration::from_millis(2 * k));
        let _ = child.kill();
        child.wait().unwrap();
        let now = json(at, "status s.json")["trials"].as_array().unwrap().len();
        assert!(now == asked || now == asked + 200, "{asked} then {now}");
        asked = now;
    }
}

#[test]
fn commands_that_cannot_work_burn_no_trial() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    json(at, "start s.json --space rate:0..1,layers:1..4:integer --strategy random");
    std::fs::write(at.join("plain.sh"), "echo 1").unwrap();
    std::fs::write(at.join("bad"), "neither a script nor a program").unwrap();
    std::fs::set_permissions(at.join("bad"), PermissionsExt::from_mode(0o755)).unwrap();
    for (command, expected, status) in [
        ("sh t.sh {rat} {layers}", "{rat}, which is no axis: the axes are {rate}, {layers}", 2),
        ("sh t.sh {rate}", "leaves the axis {layers} out", 2),
        ("no-such-program {rate} {layers}", "`no-such-program` cannot be started", 1),
        ("./no-such-program {rate} {layers}", "there is no such file", 1),
        ("./plain.sh {rate} {layers}", "not executable", 1),
        // Found out when it is started.
        ("./missing-{layers} {rate}", "cannot be started", 1),
        ("./bad {rate} {layers}", "`./bad` cannot be started", 1),
        ("env no-such-program {rate} {layers}", "status 127", 1),
        ("env ./plain.sh {rate} {layers}", "status 126", 1),
    ] {
        let (text, code) = error(at, &format!("run s.json --evaluations 4 -- {command}"));
        assert!(text.contains(expected) && code == status, "{command}: {code}\n{text}");
    }
    let status = json(at, "status s.json");
    assert_eq!((status["told"].as_u64(), status["failed"].as_u64()), (Some(0), Some(0)));
    // The points that were asked for wait for a command that works.
    let waiting = status["pending"].as_array().unwrap().len();
    assert_eq!(waiting, 1);
    script(at, "echo $1");
    let status = json(at, "run s.json --evaluations 1 -- ./try.sh {rate} {layers}");
    assert_eq!((status["told"].as_u64(), status["trials"].as_array().unwrap().len()), (Some(1), 1));
}

#[test]
fn completions_keep_to_json() {
    let output = Command::new(BINARY).args(["completions", "bash", "--json"]).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["shell"] == "bash" && value["script"].as_str().unwrap().contains("posterior"));
    let plain = Command::new(BINARY).args(["completions", "bash"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8(plain).unwrap().trim_end(), value["script"].as_str().unwrap().trim_end());
}

/// A file in the place of a lock that is no lock is an error, and keeps its content.
#[test]
fn a_lock_writes_to_no_other_file() {
    let folder = folder();
    let at = folder.path();
    let (precious, place) = (at.join("precious.txt"), at.join(".s.json.lock"));
    std::fs::write(&precious, "precious").unwrap();
    let link = || std::os::unix::fs::symlink("precious.txt", &place).unwrap();
    let name = || std::fs::hard_link(&precious, &place).unwrap();
    let copy = || assert_eq!(std::fs::copy(&precious, &place).unwrap(), 8);
    let pipe = || assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
    let plants: [(&str, &dyn Fn()); 4] =
        [("a symbolic link", &link), ("2 names", &name), ("no lock of posterior", &copy), ("a pipe", &pipe)];
    for (what, plant) in plants {
        let _ = std::fs::remove_file(&place);
        plant();
        let (text, status) = error(at, "ask s.json --lock-timeout 0.2");
        assert!(text.contains(what) && text.contains(".s.json.lock") && status == 1, "{what}: {text}");
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious", "{what}");
    }
    std::fs::remove_file(&place).unwrap();
    json(at, "ask s.json");
    // The lock of the shared example.
    let shared =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/reliability/lock_symlink/s.json");
    if !shared.exists() {
        posterior_testing::skip("no shared example of a lock that is a link");
        return;
    }
    std::fs::copy(&shared, at.join("s.json")).unwrap();
    std::fs::remove_file(&place).unwrap();
    link();
    assert!(error(at, "ask s.json").0.contains("a symbolic link"));
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
}
