//! `stream` as a process that may be killed at any time, fed by others that send what they like.
#![cfg(unix)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(line.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command with this on its standard input.
fn fed(folder: &Path, line: &str, input: &str) -> Output {
    let mut child: Child = command(folder, line).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = input.to_string();
    // A command that refuses reads nothing: the pipe may break.
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn good(folder: &Path, line: &str, input: &str) -> (String, String) {
    let output = fed(folder, line, input);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn error(folder: &Path, line: &str, input: &str) -> String {
    let output = fed(folder, line, input);
    assert!(!output.status.success(), "{line}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn status(folder: &Path) -> Value {
    serde_json::from_str(&good(folder, "stream s.posterior --status --json", "").0).unwrap()
}

/// Rows of two numbers, a class and a number.
fn row(i: usize) -> String {
    let wave = |k: f64| (i as f64 * k).sin();
    let (a, b) = (2.0 * wave(12.9), 2.0 * wave(78.2));
    let y = (1.5 * a).sin() + 0.5 * b + 0.2 * wave(3.3);
    let kind = if y > 0.4 {
        "high"
    } else if y > -0.6 {
        "middle"
    } else {
        "low"
    };
    format!("{a},{b},{kind},{y}\n")
}

fn rows(range: std::ops::Range<usize>) -> String {
    range.map(row).collect()
}

const HEADER: &str = "a,b,kind,y\n";

/// A folder with a model of `y` and one of `kind` on 120 rows.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), format!("{HEADER}{}", rows(0..120))).unwrap();
    let fit = "fit t.csv --features a,b --method sgpr --set inducing=20 --set fixed-inducing --set iterations=10 --quiet";
    good(folder.path(), &format!("{fit} --target y -o y.posterior"), "");
    let classes = "--inference gaussianised --pseudo-count 0.1 --target kind -o kind.posterior";
    good(folder.path(), &format!("{fit} {classes}"), "");
    folder
}

/// Rows of a file of predictions, by their number.
fn predicted(at: &Path) -> BTreeMap<u64, Vec<String>> {
    let text = std::fs::read_to_string(at).unwrap();
    let mut lines = text.lines();
    let width = lines.next().unwrap().split(',').count();
    let mut out = BTreeMap::new();
    for line in lines {
        let cells: Vec<String> = line.split(',').map(str::to_string).collect();
        assert_eq!(cells.len(), width, "{line}");
        let number = cells[0].parse().unwrap();
        assert!(out.insert(number, cells).is_none(), "row {number} twice");
    }
    out
}

#[test]
fn rows_are_predicted_then_learned_and_the_state_is_a_model() {
    let folder = folder();
    let at = folder.path();
    let input = format!("{HEADER}{}", rows(120..320));
    let line = "stream s.posterior --model y.posterior --batch 50 -o p.csv";
    let (_, said) = good(at, line, &input);
    assert!(said.contains("MB of memory whatever the number of rows"), "{said}");
    assert!(said.contains("200 rows read: 200 learned") && said.contains("in the 90 % interval"), "{said}");
    assert_eq!(predicted(&at.join("p.csv")).len(), 200);
    let first = status(at);
    assert_eq!(first["counts"]["rows"], 200);
    // What is said of memory holds.
    let (out, said) =
        good(at, &line.replace("s.posterior", "m.posterior").replace("p.csv", "m.csv --json"), &input);
    let peak = serde_json::from_str::<Value>(&out).unwrap()["peak_memory_bytes"].as_u64().unwrap();
    assert!(said.is_empty(), "{said}");
    assert!(peak < 90_000_000, "{peak}");
    let nll = |s: &Value| s["score"]["nll"].as_f64().unwrap();
    assert!(nll(&first) < first["score"]["baseline_nll"].as_f64().unwrap() - 0.5, "{first}");
    // Before a batch is learned it is predicted by what was there: the first is what the model alone says.
    std::fs::write(at.join("first.csv"), format!("{HEADER}{}", rows(120..170))).unwrap();
    good(at, "predict y.posterior first.csv -o q.csv --quiet", "");
    let alone = std::fs::read_to_string(at.join("q.csv")).unwrap();
    let mean = alone.lines().next().unwrap().split(',').position(|n| n == "y_mean").unwrap();
    let own = predicted(&at.join("p.csv"));
    let head = std::fs::read_to_string(at.join("p.csv")).unwrap();
    let place = head.lines().next().unwrap().split(',').position(|n| n == "y_mean").unwrap();
    // The header is a line of the first batch.
    for (i, line) in alone.lines().skip(1).take(49).enumerate() {
        let expected: f64 = line.split(',').nth(mean).unwrap().parse().unwrap();
        let found: f64 = own[&(i as u64 + 1)][place].parse().unwrap();
        assert!((found - expected).abs() < 1e-6, "{i}: {found} {expected}");
    }
    // What was learned is asked like any model, and says so.
    let (text, _) = good(at, "inspect s.posterior", "");
    assert!(text.contains("200 rows were learned after the fit"), "{text}");
    good(at, "predict s.posterior first.csv -o r.csv --quiet", "");
    // Which rows a stream has learned is not kept.
    let (scores, _) = good(at, "evaluate s.posterior first.csv --json", "");
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert!(scores["scored_rows"] == "unknown" && scores["rows_trained_on"].is_null(), "{scores}");
    let refused = error(at, line, &input);
    assert!(refused.contains("exists: leave out --model"), "{refused}");
}

#[test]
fn classes_arrive_as_objects_and_without_labels_they_are_predicted_only() {
    let folder = folder();
    let at = folder.path();
    let object = |i: usize| {
        let text = row(i);
        let cells: Vec<&str> = text.trim().split(',').collect();
        let label = if i.is_multiple_of(5) { String::new() } else { format!(", \"kind\": \"{}\"", cells[2]) };
        format!("{{\"b\": {}, \"a\": {}{label}}}\n", cells[1], cells[0])
    };
    let input: String = (120..220).map(object).collect();
    let line = "stream s.posterior --model kind.posterior --format jsonl -o p.jsonl --batch 30";
    let (_, said) = good(at, line, &input);
    assert!(
        said.contains("100 rows read: 80 learned, 20 predicted only") && said.contains("accuracy"),
        "{said}"
    );
    let text = std::fs::read_to_string(at.join("p.jsonl")).unwrap();
    let objects: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects.len(), 100);
    let total =
        |o: &Value| ["p_high", "p_low", "p_middle"].iter().map(|n| o[n].as_f64().unwrap()).sum::<f64>();
    assert!(objects.iter().all(|o| (total(o) - 1.0).abs() < 1e-9));
    assert!(objects[0]["kind"].is_null() && objects[1]["kind"].is_string() && objects[1]["row"] == 2.0);
    // A label that the fit did not have is a bad row, and is said to be like another.
    let unknown = "{\"a\": 1, \"b\": 1, \"kind\": \"High\"}\n";
    let said = error(at, "stream s.posterior -o p.jsonl", unknown);
    assert!(said.contains("row 101") && said.contains("did you mean `high`"), "{said}");
    let missing = "{\"a\": 1, \"kind\": \"high\"}\n";
    let said = error(at, "stream s.posterior -o p.jsonl", missing);
    assert!(said.contains("it has no `b`"), "{said}");
    assert_eq!(status(at)["counts"]["rows"], 100);
}

#[test]
fn it_begins_without_a_model_and_ends_as_from_all_rows_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("rows.csv"), format!("{HEADER}{}", rows(0..150))).unwrap();
    let line = "stream s.posterior rows.csv --target y --features a,b --start-rows 60 --inducing-points 15 --noise fixed -o p.csv --batch 20";
    let (_, said) = good(at, line, "");
    assert!(said.contains("150 rows read: 90 learned, 60 fitted to first"), "{said}");
    let numbers: Vec<u64> = predicted(&at.join("p.csv")).into_keys().collect();
    assert_eq!(numbers, (61..=150).collect::<Vec<_>>());
    // More has come to the file: only that is read.
    let mut file = std::fs::OpenOptions::new().append(true).open(at.join("rows.csv")).unwrap();
    file.write_all(rows(150..170).as_bytes()).unwrap();
    good(at, "stream s.posterior rows.csv -o p.csv", "");
    assert_eq!(predicted(&at.join("p.csv")).len(), 110);
    assert_eq!(status(at)["counts"]["rows"], 170);
    // The same rows in one go are the same posterior.
    good(
        at,
        &line
            .replace("s.posterior", "once.posterior")
            .replace("p.csv", "once.csv")
            .replace("--batch 20", "--batch 110"),
        "",
    );
    let ask = |model: &str| {
        let (text, _) = good(at, &format!("predict {model} rows.csv --quiet"), "");
        let column = text.lines().next().unwrap().split(',').position(|n| n == "y_mean").unwrap();
        let of = |l: &str| l.split(',').nth(column).unwrap().parse::<f64>().unwrap();
        text.lines().skip(1).map(of).collect::<Vec<_>>()
    };
    for (a, b) in ask("s.posterior").iter().zip(ask("once.posterior")) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn bad_rows_end_it_or_are_passed_over_and_the_rest_is_kept() {
    let folder = folder();
    let at = folder.path();
    let bad =
        ["1,2,high\n", "x,2,high,1\n", ",2,high,1\n", "1,\"2,high,1\n", "inf,1,high,1\n", "1,1,high,much\n"];
    let mut input = format!("{HEADER}{}", rows(120..130));
    for (k, bad) in bad.iter().enumerate() {
        input += bad;
        input += &rows(130 + k..131 + k);
    }
    let line = "stream s.posterior --model y.posterior -o p.csv";
    let said = error(at, line, &input);
    assert!(said.contains("row 11: it has 3 cells, and there are 4 columns"), "{said}");
    assert_eq!(status(at)["counts"]["learned"], 10);
    // Begun anew where it stands, and told that it is the same input.
    let again = "stream s.posterior -o p.csv --bad-rows skip";
    let said = error(at, again, &input);
    assert!(said.contains("--from start passes over"), "{said}");
    let (_, said) = good(at, &format!("{again} --from start"), &input);
    for text in
        ["row 11 is passed over", "row 13", "`x` is not a number", "row 17", "not closed", "row 21", "much"]
    {
        assert!(said.contains(text), "{text}: {said}");
    }
    let counts = status(at)["counts"].clone();
    assert_eq!(
        (counts["rows"].as_u64(), counts["learned"].as_u64(), counts["skipped"].as_u64()),
        (Some(22), Some(16), Some(6))
    );
    let numbers: Vec<u64> = predicted(&at.join("p.csv")).into_keys().collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22]);
    // Other columns, fewer columns, another file in the place of the one that was read, predictions in the place of an input.
    let said = error(at, "stream s.posterior -o p.csv", "a,c,kind,y\n1,2,high,3\n");
    assert!(said.contains('b') && said.contains("a, c, kind, y"), "{said}");
    let (_, said) = good(at, "stream s.posterior -o p.csv", "kind,y,b,a\nhigh,1,0.5,0.25\n");
    assert!(said.contains("17 learned"), "{said}");
    let said = error(at, "stream s.posterior -o t.csv", &input);
    assert!(said.contains("was not written by this stream"), "{said}");
    let said = error(at, "stream s.posterior t.csv -o t.csv", "");
    assert!(said.contains("would destroy it"), "{said}");
    let said = error(at, "stream t.csv -o n.csv", &input);
    assert!(said.contains("t.csv"), "{said}");
    let said = error(at, "stream none.posterior -o n.csv", &input);
    assert!(said.contains("begin it with --model"), "{said}");
    let said = error(at, "stream s.posterior --memory 0.0001 -o p.csv", &input);
    assert!(said.contains("--memory allows"), "{said}");
    let said = error(at, "stream new.posterior --model y.posterior -o m.csv", "1,2,high,3\n");
    assert!(said.contains("--columns"), "{said}");
}

/// The noise is learned unless it is told to stay, is said with what it was, and is that of later predictions.
#[test]
fn noise_is_learned_on_the_way_and_said() {
    let folder = folder();
    let at = folder.path();
    let input = format!("{HEADER}{}", rows(120..720));
    let (_, said) = good(at, "stream s.posterior --model y.posterior -o p.csv", &input);
    assert!(said.contains("noise learned from 600 rows: standard deviation"), "{said}");
    let learned = status(at)["noise"].clone();
    assert_eq!((learned["rows"].as_u64(), learned["far_rows"].as_u64()), (Some(600), Some(0)));
    let (text, _) = good(at, "inspect s.posterior", "");
    assert!(text.contains("but for the noise, which was learned on the way"), "{text}");
    let (text, _) = good(at, "inspect s.posterior --json", "");
    let header = serde_json::from_str::<Value>(&text).unwrap()["header"].clone();
    let found = header["hyperparameters"].as_array().unwrap();
    let variance =
        found.iter().find(|h| h["name"] == "noise_variance").unwrap()["values"][0].as_f64().unwrap();
    let noise = variance.sqrt() * header["standardisation"]["target_scale"].as_f64().unwrap();
    assert!((noise / learned["deviation"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{noise} {learned}");
    // Told to stay, it stays; told to be learned, it goes on.
    let more = rows(720..760);
    good(at, "stream s.posterior --noise fixed -o p.csv", &more);
    assert!(status(at)["noise"].is_null());
    good(at, "stream s.posterior --noise learned -o p.csv", &rows(760..800));
    let again = status(at)["noise"].clone();
    assert_eq!((again["rows"].as_u64(), &again["fit_deviation"]), (Some(40), &learned["deviation"]));
    let said = error(at, "stream k.posterior --model kind.posterior --noise learned -o k.csv", &input);
    assert!(said.contains("leave out --noise"), "{said}");
}

/// Killed again and again with the same input from its beginning, every row counts once.
#[test]
fn whatever_kills_it_every_row_counts_once() {
    let folder = folder();
    let at = folder.path();
    let total = 3000;
    std::fs::write(at.join("rows.csv"), format!("{HEADER}{}", rows(1000..1000 + total))).unwrap();
    let line = |begin: &str| format!("stream s.posterior rows.csv {begin} --batch 20 -o p.csv --quiet");
    let mut kills = 0;
    for round in 0..200 {
        let begun = at.join("s.posterior").exists();
        let mut child = command(at, &line(if begun { "" } else { "--model y.posterior" })).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 + 17 * (round % 7)));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                // A slow machine may not get to a first state.
                kills += u32::from(begun);
            }
        }
        if kills == 10 {
            good(at, &line(""), "");
            break;
        }
    }
    assert!(kills > 0);
    let state = status(at);
    assert_eq!(state["counts"]["rows"], total);
    assert_eq!(state["counts"]["learned"], total);
    let numbers: Vec<u64> = predicted(&at.join("p.csv")).into_keys().collect();
    assert_eq!(numbers, (1..=total as u64).collect::<Vec<_>>());
    // The scores are those of a run that nobody disturbed.
    good(
        at,
        &line("--model y.posterior").replace("s.posterior", "once.posterior").replace("p.csv", "once.csv"),
        "",
    );
    let (once, _) = good(at, "stream once.posterior --status --json", "");
    let once: Value = serde_json::from_str(&once).unwrap();
    assert_eq!(once["score"], state["score"]);
    assert_eq!(std::fs::read(at.join("once.csv")).unwrap(), std::fs::read(at.join("p.csv")).unwrap());
}

/// A state that has read nothing, as one that is killed before its first batch, begins with the file's header.
#[test]
fn a_state_without_rows_begins_with_the_header() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("rows.csv"), HEADER).unwrap();
    good(at, "stream s.posterior rows.csv --model y.posterior -o p.csv --quiet", "");
    assert_eq!(status(at)["counts"]["rows"], 0);
    std::fs::write(at.join("rows.csv"), format!("{HEADER}{}", rows(120..140))).unwrap();
    good(at, "stream s.posterior rows.csv -o p.csv --quiet", "");
    assert_eq!(status(at)["counts"]["learned"], 20);
}

fn append(path: &Path, text: &str) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// A file may be read while half of its last line is written: that half is no row, to learn or to predict.
#[test]
fn a_half_written_last_line_is_left_for_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = at.join("rows.csv");
    std::fs::write(&file, format!("{HEADER}{}0.5,0.25,high,1", rows(0..60))).unwrap();
    let begin = "--target y --features a,b --start-rows 40 --inducing-points 10";
    let line = |begin: &str| format!("stream s.posterior rows.csv {begin} -o p.csv");
    let (_, said) = good(at, &line(begin), "");
    assert!(said.contains("60 rows read") && said.contains("1 unfinished line left"), "{said}");
    assert!(said.contains("--last-line complete"), "{said}");
    append(&file, ".0034\n0.5,0.25,high,2\r");
    let (out, _) = good(at, &line("--json"), "");
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&out["counts"]["rows"], &out["unfinished_lines"]), (&61.into(), &1.into()));
    assert_eq!(predicted(&at.join("p.csv"))[&61][1], "1.0034");
    assert!(status(at)["unfinished_lines"].is_null());
    // A row to predict; half of it is none either.
    append(&file, "\n0.25,0.5,high,");
    let (_, said) = good(at, &line(""), "");
    assert!(said.contains("62 rows read") && said.contains("1 unfinished line left"), "{said}");
    // What is complete is taken as it is, and what is written later begins behind it.
    let (_, said) = good(at, &line("--last-line complete"), "");
    assert!(said.contains("63 rows read") && said.contains("1 predicted only"), "{said}");
    assert!(!said.contains("unfinished"), "{said}");
    append(&file, "\n0.75,0.5,high,3\n");
    let (out, _) = good(at, &line("--json"), "");
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&out["counts"]["rows"], &out["unfinished_lines"]), (&64.into(), &0.into()));
    let ys: Vec<String> = predicted(&at.join("p.csv")).into_values().skip(20).map(|c| c[1].clone()).collect();
    assert_eq!(ys, ["1.0034", "2", "", "3"]);
    // Nothing comes after the end of standard input.
    let (_, said) = good(at, "stream s.posterior -o p.csv", "0.125,0.5,high,4");
    assert!(said.contains("65 rows read") && !said.contains("unfinished"), "{said}");
}

/// The same of a file that is followed, of objects, and of a header alone.
#[test]
fn half_lines_are_waited_for_in_files_that_are_followed_and_of_every_kind() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("rows.jsonl"), "{\"a\": 1, \"b\": 0.5}\n{\"a\": 1, \"b\": 0.").unwrap();
    let line = "stream s.posterior rows.jsonl --model y.posterior -o p.csv";
    let (_, said) = good(at, line, "");
    assert!(said.contains("1 rows read") && said.contains("1 unfinished line left"), "{said}");
    let mut child = command(at, "stream s.posterior rows.jsonl --follow -o p.csv").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status(at)["counts"]["rows"], 1);
    append(&at.join("rows.jsonl"), "25}\n");
    for _ in 0..100 {
        if status(at)["counts"]["rows"] == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let counts = status(at)["counts"].clone();
    assert_eq!((&counts["rows"], &counts["unlabelled"]), (&2.into(), &2.into()));
    // Half a header names no columns, and is not taken for one by the call that finds all of it.
    std::fs::write(at.join("head.csv"), "a,b,kind").unwrap();
    let line = "stream h.posterior head.csv --target y --features a,b --start-rows 10 -o h.csv";
    let said = error(at, line, "");
    assert!(said.contains("head.csv has no rows: its last line has no newline yet"), "{said}");
    append(&at.join("head.csv"), &format!(",y\n{}", rows(0..12)));
    let (_, said) = good(at, line, "");
    assert!(said.contains("12 rows read: 2 learned"), "{said}");
    let said = error(at, &format!("{line} --follow --last-line complete"), "");
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn a_file_that_was_replaced_or_shortened_is_not_gone_on_with() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("rows.csv"), format!("{HEADER}{}", rows(120..140))).unwrap();
    good(at, "stream s.posterior rows.csv --model y.posterior -o p.csv --quiet", "");
    std::fs::write(at.join("rows.csv"), format!("{HEADER}{}", rows(500..530))).unwrap();
    let said = error(at, "stream s.posterior rows.csv -o p.csv", "");
    assert!(said.contains("it was replaced"), "{said}");
    good(at, "stream s.posterior rows.csv --from next -o p.csv --quiet", "");
    assert_eq!(status(at)["counts"]["rows"], 50);
    // Predictions of rows that are counted cannot be made again.
    std::fs::write(at.join("p.csv"), "row,y\n").unwrap();
    let said = error(at, "stream s.posterior rows.csv -o p.csv", "");
    assert!(said.contains("what is missing cannot be written again"), "{said}");
}

/// A row whose prediction or target is beyond the range of numbers leaves a state that can be read, scores that are numbers, and finite predictions of later rows.
#[test]
fn one_far_row_spoils_neither_state_nor_scores() {
    let counts = |i: usize, far: usize| {
        let (a, b) = ((i as f64 * 12.9).sin(), (i as f64 * 78.2).sin());
        let count = (1.0 + a + 0.3 * b).exp().round();
        format!("{},{b},{count}\n", if i == far { 1e6 } else { a })
    };
    let numbers = |i: usize, far: usize| {
        let (a, b) = ((i as f64 * 12.9).sin(), (i as f64 * 78.2).sin());
        format!("{a},{b},{}\n", if i == far { 1e300 } else { a + 0.5 * b + 0.1 * (i as f64 * 3.3).sin() })
    };
    type Row<'a> = &'a dyn Fn(usize, usize) -> String;
    let cases: [(Row<'_>, &str); 2] =
        [(&counts, "--likelihood poisson --kernel linear"), (&numbers, "--inducing-points 10")];
    for (row, flags) in cases {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let write = |rows: usize| {
            let text: String = (0..rows).map(|i| row(i, 75)).collect();
            std::fs::write(at.join("t.csv"), format!("a,b,y\n{text}")).unwrap();
        };
        write(120);
        let go_on = "stream s.posterior t.csv -o p.csv --batch 20";
        good(at, &format!("{go_on} --target y --start-rows 60 {flags}"), "");
        let check = |rows: u64| {
            let found = status(at);
            assert_eq!(found["counts"]["rows"], rows);
            for of in ["score", "latest"] {
                let scores = found[of].as_object().unwrap();
                assert!(scores.values().all(Value::is_f64), "{flags}: {found}");
            }
            let text = std::fs::read_to_string(at.join("p.csv")).unwrap();
            for line in text.lines().skip(1) {
                let finite = |cell: &str| cell.parse::<f64>().is_ok_and(f64::is_finite);
                assert!(line.split(',').all(finite), "{flags}: {line}");
            }
        };
        check(120);
        write(160);
        good(at, go_on, "");
        check(160);
    }
}
