//! Targets of which no error bar can be learned: too few of them, all equal, or infinite.

use super::networks_common::{curve, network};
use super::running::{error, json, run};
use std::path::Path;

const FIT: &str = "fit t.csv --target y -o m.posterior";

/// Rows of `x` with these targets.
fn write(at: &Path, name: &str, targets: &[&str]) {
    let row = |(i, y): (usize, &&str)| format!("{},{y}\n", (i as f64 * 0.618_034) % 1.0);
    let rows: String = targets.iter().enumerate().map(row).collect();
    std::fs::write(at.join(name), format!("x,y\n{rows}")).unwrap();
}

fn refused(at: &Path, targets: &[&str], flags: &str, expected: &str) {
    write(at, "t.csv", targets);
    let message = error(at, &format!("{FIT} {flags}"));
    assert!(message.contains("t.csv") && message.contains(expected), "{targets:?} {flags}: {message}");
    assert!(!at.join("m.posterior").exists());
}

#[test]
fn fewer_than_three_rows_with_a_target_are_refused_by_every_method() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let one = "`y` is there in 1 of the rows to learn from, and a fit needs 3";
    let two = "`y` is there in 2 of the rows to learn from, and a fit needs 3";
    for targets in [&["0.83"][..], &["7"], &["yes"], &["", "0.5", "NaN"]] {
        refused(at, targets, "", one);
    }
    for targets in [&["0.34", "6.01"][..], &["3.25", "3.25"], &["yes", "no"], &["0", "4"], &["NA", "1", "2"]]
    {
        refused(at, targets, "", two);
    }
    for flags in [
        "--method exact",
        "--method sgpr",
        "--method sgpr --from-disk --likelihood gaussian",
        "--method svgp",
        "--method sdd",
        "--method dkl",
        "--likelihood student-t",
        "--likelihood poisson",
        "--likelihood negative-binomial",
        "--likelihood bernoulli",
        "--stream true --likelihood gaussian",
    ] {
        refused(at, &["1", "4"], flags, two);
    }
    refused(at, &["", ""], "", "`y` is there in 0 of the rows");
    refused(at, &["1.5", "2.5", "0.5", "4.5"], "--test-fraction 0.5", two);
    // A stream begins with a fit.
    write(at, "t.csv", &["1.5", "2.5"]);
    let message = error(at, "stream s.posterior t.csv --target y --start-rows 10 -o p.csv");
    assert!(message.contains(two) && !at.join("s.posterior").exists(), "{message}");
    // Three are enough.
    write(at, "t.csv", &["1.5", "2.5", "0.5"]);
    assert_eq!(json(at, FIT)["n"], 3);
}

#[test]
fn targets_that_are_all_equal_are_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let all = "all 3 targets `y` are";
    refused(at, &["3.25"; 3], "", "all 3 targets `y` are 3.25");
    refused(at, &["0"; 3], "", "all 3 targets `y` are 0");
    refused(at, &["1.0", "1.0000000001", "1.0"], "", all);
    for flags in ["--likelihood student-t", "--method svgp", "--stream true", "--method sgpr --from-disk"] {
        refused(at, &["-2.5"; 3], flags, all);
    }
    refused(at, &["yes"; 3], "", "is `yes` in every row: with only one class");
    refused(at, &["2.0", "2.0", "2.0", "inf"], "--missing drop", all);
    // Counts have a scale of their own.
    write(at, "t.csv", &["0"; 12]);
    json(at, &format!("{FIT} --likelihood poisson"));
    // Of several targets the one that it is.
    std::fs::write(at.join("t.csv"), "x,a,b\n1,1.5,4\n2,2.5,4\n3,0.5,4\n").unwrap();
    let message = error(at, "fit t.csv --target a,b -o both.posterior");
    assert!(message.contains("all 3 targets `b` are 4"), "{message}");
    // What is left of a table without a fold is not the table.
    let mut targets = vec!["1.5"; 12];
    targets[5] = "2.5";
    write(at, "t.csv", &targets);
    let folds = json(at, &format!("{FIT} --likelihood gaussian --folds 4"));
    assert_eq!(folds["folds"]["each"].as_array().unwrap().len(), 4);
}

#[test]
fn infinite_targets_are_neither_classes_nor_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut constant = vec!["2.0"; 21];
    for (spelled, shown) in [("inf", "inf"), ("-Infinity", "-inf"), ("1e999", "inf"), ("∞", "inf")] {
        constant[20] = spelled;
        let expected = format!("row 21, column `y`: {shown} is not a finite number");
        for flags in ["", "--likelihood categorical", "--likelihood gaussian", "--missing-target error"] {
            refused(at, &constant, flags, &expected);
        }
    }
    let flags = ["0", "1", "0", "1", "inf", "1", "0", "0"];
    refused(at, &flags, "", "row 5, column `y`: inf is not a finite number");
    refused(at, &flags, "--likelihood negative-binomial", "row 5, column `y`: inf");
    // As rows with infinite features are.
    write(at, "t.csv", &flags);
    let fit = json(at, &format!("{FIT} --missing drop --inference gaussianised"));
    assert_eq!((&fit["n"], &fit["classes"]), (&7.into(), &serde_json::json!(["0", "1"])));
    // Among words it is one.
    write(at, "t.csv", &["ant", "inf", "lat", "inf", "ant", "lat", "ant", "inf"]);
    let output = run(at, &format!("{FIT} --inference gaussianised"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn networks_are_asked_for_the_same() {
    let folder = curve();
    let at = folder.path();
    let fit = "fit --network net.safetensors --likelihood gaussian --method last-layer -o l.posterior";
    for (targets, expected) in [
        (&["0.5", "1.5"][..], "`y` is there in 2 of the rows to learn from, and a fit needs 3"),
        (&["0.5", "-inf", "1.5", "0.25"], "row 2, column `y`: -inf is not a finite number"),
        (&["2.5", "2.5", "2.5", "2.5"], "all 4 targets `y` are 2.5"),
    ] {
        write(at, "few.csv", targets);
        let message = error(at, &format!("{fit} few.csv"));
        assert!(message.contains("few.csv") && message.contains(expected), "{message}");
    }
    network(at, "classes.toml", 1, 2);
    write(at, "labels.csv", &["0", "1", "inf", "1"]);
    let train = "train classes.toml labels.csv --target y --loss cross-entropy -o c.safetensors";
    let message = error(at, train);
    assert!(message.contains("row 3, column `y`: inf is not a finite number"), "{message}");
}
