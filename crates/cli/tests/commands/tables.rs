//! What `predict` and `evaluate` say of the rows they are given: rows of the training, columns in other units, more than memory holds.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn run(folder: &Path, line: &str) -> Output {
    Command::new(BINARY).current_dir(folder).args(line.split_whitespace()).output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("{line} --json"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Everything that a command prints, results and remarks.
fn text(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert_eq!(output.status.code(), Some(1), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A table of 100 rows, `a` from 0 to 1 and `b` around 50, in a folder.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), table(0..100, 1.0)).unwrap();
    folder
}

fn table(rows: std::ops::Range<u32>, scale: f64) -> String {
    let row = |i: u32| {
        let (a, b) = (f64::from(i * 37 % 101) / 100.0, 50.0 + 7.0 * (f64::from(i) * 1.7).sin());
        let y = (6.0 * a).sin() + 0.02 * b + 0.05 * (f64::from(i) * 12.9).sin();
        format!("{},{b},{y}\n", scale * a)
    };
    "a,b,y\n".to_string() + &rows.map(row).collect::<String>()
}

const FIT: &str = "fit t.csv --target y --set steps=15";

#[test]
fn rows_of_the_training_are_named() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} --test-fraction 0.3 --seed 1 -o m.posterior"));
    let evaluate = "evaluate m.posterior t.csv";

    // The rows that were left out, and no others.
    let held_out = json(at, &format!("{evaluate} --test-fraction 0.3"));
    assert_eq!(
        (held_out["scored_rows"].as_str(), held_out["rows_trained_on"].as_u64()),
        (Some("held-out"), Some(0))
    );
    assert_eq!((held_out["n"].as_u64(), held_out.get("unseen_rows")), (Some(30), None));

    // All rows, and apart the 30 that are new to the model, scored as before.
    let all = json(at, evaluate);
    assert_eq!((all["n"].as_u64(), all["rows_trained_on"].as_u64()), (Some(100), Some(70)));
    assert_eq!((&all["scored_rows"], &all["unseen_rows"]["n"]), (&"partly-training".into(), &30.into()));
    // The same rows in another order; sums differ by rounding.
    for key in ["rmse", "nll", "crps"] {
        let (one, two) = (all["unseen_rows"][key].as_f64().unwrap(), held_out[key].as_f64().unwrap());
        assert!((one - two).abs() <= 1e-12 * two.abs().max(1.0), "{key}: {one} {two}");
        assert_ne!(all["unseen_rows"][key], all[key]);
    }

    // Another fraction than at the fit takes rows of the training.
    let other = json(at, &format!("{evaluate} --test-fraction 0.6"));
    let count = |value: &Value| value.as_u64().unwrap();
    let (new, seen) = (count(&other["unseen_rows"]["n"]), count(&other["rows_trained_on"]));
    assert!(count(&other["n"]) == 60 && new + seen == 60 && seen >= 30, "{new} {seen}");
    let said = text(at, &format!("{evaluate} --test-fraction 0.6 --report r.html"));
    assert!(said.contains(&format!("{new} rows that the model was not trained on")), "{said}");
    assert!(said.contains("60 rows, on some of which the model was trained"), "{said}");
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(page.contains(&format!("On {new} held-out rows")), "held-out");
    assert!(page.contains("On 60 rows (the model was trained on some of them)"), "trained on");

    // Only rows of the training: no score is called held-out.
    json(at, &format!("{FIT} -o all.posterior"));
    let said = text(at, "evaluate all.posterior t.csv --report all.html");
    assert!(
        said.contains("100 rows that the model was trained on") && said.contains("new rows come out worse"),
        "{said}"
    );
    let page = std::fs::read_to_string(at.join("all.html")).unwrap();
    assert!(
        page.contains("On 100 rows that the model was trained on") && !page.contains("100 held-out rows")
    );
    assert!(!page.contains("Each mark is a held-out row"));
    let scores = json(at, "evaluate all.posterior t.csv");
    assert_eq!(
        (scores["scored_rows"].as_str(), scores["rows_trained_on"].as_u64()),
        (Some("training"), Some(100))
    );

    // Rows are known by their numbers, whatever their order, file and method, and whichever way they were read.
    let mut lines: Vec<String> = table(0..100, 1.0).lines().map(String::from).collect();
    lines[1..].reverse();
    std::fs::write(at.join("reversed.csv"), lines.join("\n")).unwrap();
    text(at, "predict all.posterior reversed.csv -o reversed.parquet");
    for flags in
        ["--stream", "--method sgpr --set inducing=8", "--method cg --set samples=2 --set random-features=50"]
    {
        json(at, &format!("{FIT} {flags} -o other.posterior"));
        let scores = json(at, "evaluate other.posterior reversed.parquet");
        assert_eq!(scores["rows_trained_on"], 100, "{flags}");
        std::fs::write(at.join("new.csv"), table(200..240, 1.0)).unwrap();
        assert_eq!(json(at, "evaluate other.posterior new.csv")["rows_trained_on"], 0, "{flags}");
    }
}

#[test]
fn columns_in_other_units_are_named() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} --test-fraction 0.3 -o m.posterior"));
    std::fs::write(at.join("new.csv"), table(100..200, 1.0)).unwrap();
    std::fs::write(at.join("bytes.csv"), table(100..200, 255.0)).unwrap();
    // Ordinary rows are quiet.
    for line in ["predict m.posterior new.csv", "evaluate m.posterior t.csv"] {
        assert_eq!(json(at, line)["inputs_unlike_training"], serde_json::json!([]), "{line}");
        assert!(!text(at, line).contains("warning"));
    }
    for line in [
        "predict m.posterior bytes.csv -o p.csv",
        "predict m.posterior bytes.csv -o p.csv --stream",
        "evaluate m.posterior bytes.csv",
    ] {
        let found = json(at, line)["inputs_unlike_training"].clone();
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        let one = &found[0];
        assert_eq!(
            (one["column"].as_str(), one["sign"].as_str(), one["rows"].as_u64()),
            (Some("a"), Some("far-outside"), Some(100))
        );
        assert!((one["range"][1].as_f64().unwrap() - 255.0).abs() < 3.0, "{one}");
        let said = text(at, line);
        assert!(said.contains("warning: column `a` is") && said.contains("in training"), "{said}");
    }
    text(at, "evaluate m.posterior bytes.csv --report r.html");
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(page.contains("column `a` is") && page.contains("Are the units the same?"));
}

#[test]
fn predictions_keep_to_the_memory_that_was_given() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} -o m.posterior"));
    std::fs::write(at.join("many.csv"), table(0..1500, 1.0)).unwrap();
    // Refused before anything is allocated, with the way out.
    for flags in ["--samples 100000 --memory 0.001", "--samples 2 many.csv --memory 0.02"] {
        let flags = if flags.contains("many.csv") { flags.to_string() } else { format!("{flags} t.csv") };
        let said = error(at, &format!("predict m.posterior {flags}"));
        assert!(said.contains("above the limit") && said.contains("--memory"), "{flags}\n{said}");
    }
    // Beyond what any plan would allow, the flag itself says no.
    for count in ["100000000", "18446744073709551615"] {
        let refused = run(at, &format!("predict m.posterior t.csv --samples {count}"));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains("from 0 to 100000"), "{said}");
    }
    let many =
        (0..4000).map(|k| format!("{:.6}", (f64::from(k) + 0.5) / 4000.0)).collect::<Vec<_>>().join(",");
    let said = error(at, &format!("predict m.posterior many.csv --memory 0.1 --quantiles {many}"));
    assert!(said.contains("above the limit") && said.contains("quantiles"), "{said}");
    // Planned, stated, kept, and not far from what is used; without a plan for anything there is the program itself.
    for flags in
        ["", "--samples 400", "--samples 400 -o p.csv", "--samples 400 -o p.parquet", "--quantiles 0.1,0.9"]
    {
        let report = json(at, &format!("predict m.posterior many.csv {flags}"));
        let planned = report["planned_memory_bytes"].as_u64().unwrap();
        let Some(peak) = report["peak_memory_bytes"].as_u64() else { continue };
        println!("{flags}: planned {:.1} MB, peak {:.1} MB", planned as f64 / 1e6, peak as f64 / 1e6);
        assert!(peak <= planned + (64 << 20), "{flags}: planned {planned}, peak {peak}");
        assert!(planned <= 2 * peak + (64 << 20), "{flags}: planned {planned}, peak {peak}");
    }
    assert!(
        text(at, "predict m.posterior many.csv -o p.csv").contains("plan: predictions of 1500 rows need")
    );
    assert!(json(at, "evaluate m.posterior many.csv")["planned_memory_bytes"].as_u64() > Some(0));
    assert!(error(at, "evaluate m.posterior many.csv --memory 0.0005").contains("above the"));
}

#[test]
fn reading_keeps_to_the_memory_that_was_given() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} -o m.posterior"));
    // 2.4 MB of text, 9.6 MB of cells.
    let rows: String = "1,2,3\n".repeat(400_000);
    std::fs::write(at.join("cells.csv"), format!("a,b,y\n{rows}")).unwrap();
    for line in [
        "fit cells.csv --target y -o n.posterior",
        "predict m.posterior cells.csv",
        "evaluate m.posterior cells.csv",
        "inspect cells.csv",
        "optimize start s.json --candidates cells.csv",
    ] {
        let said = error(at, &format!("{line} --memory 0.01"));
        assert!(said.contains("400000 rows of 3 columns") && said.contains("--memory"), "{line}\n{said}");
    }
    json(at, "inspect cells.csv --memory 0.03");
    // Arrays declare what they take.
    let mut npy: Vec<u8> = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(
        format!("{:<117}\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (200000, 1), }").bytes(),
    );
    npy.resize(npy.len() + 200_000, 7);
    std::fs::write(at.join("x.npy"), npy).unwrap();
    std::fs::write(at.join("net.toml"), "kind = \"perceptron\"\ninputs = 2\nhidden = [4]\noutputs = 1\n")
        .unwrap();
    json(at, "train net.toml t.csv --target y --loss mse --epochs 1 -o n.safetensors");
    for line in ["forward n.safetensors x.npy -o y.npy", "inspect x.npy"] {
        let said = error(at, &format!("{line} --memory 0.0001"));
        assert!(said.contains("memory limit"), "{line}\n{said}");
    }
}

/// Rows of three columns that take few values: rows to come equal training rows by chance.
fn survey(rows: std::ops::Range<usize>) -> String {
    let row = |i: usize| {
        let (a, b) = (i * 7919 % 3, i * 104_729 / 13 % 4);
        format!("{a},{b},{}\n", a + b + usize::from(i * 31 % 7 < 3))
    };
    "a,b,y\n".to_string() + &rows.map(row).collect::<String>()
}

/// All rows are scored, and by scores that a hand computes, where a half of them equal training rows.
#[test]
fn rows_that_equal_training_rows_by_chance_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("t.csv"), survey(0..60)).unwrap();
    std::fs::write(at.join("new.csv"), survey(60..120)).unwrap();
    json(at, "fit t.csv --target y --likelihood gaussian --set steps=5 -o m.posterior");
    let scores = json(at, "evaluate m.posterior new.csv");
    assert_eq!((&scores["n"], &scores["scored_rows"]), (&60.into(), &"held-out".into()), "{scores}");
    assert_eq!(scores["rows_trained_on"], 0);
    assert!(scores["rows_equal_to_training_rows"].as_u64() > Some(30), "{scores}");
    assert!(!scores["notes"].to_string().contains("trained on"), "{scores}");
    let found = json(at, "predict m.posterior new.csv");
    let mean = found["predictions"]["y_mean"].as_array().unwrap();
    let table = survey(60..120);
    let truths = table.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap());
    let squares = truths.zip(mean).map(|(y, mean)| (y - mean.as_f64().unwrap()).powi(2)).sum::<f64>();
    assert!((scores["rmse"].as_f64().unwrap() - (squares / 60.0).sqrt()).abs() < 1e-6);
    // The table of the training itself is known, in any order, and so are ten of its rows among fresh ones of many values.
    let mut lines: Vec<String> = survey(0..60).lines().map(String::from).collect();
    lines[1..].reverse();
    std::fs::write(at.join("back.csv"), lines.join("\n")).unwrap();
    assert_eq!(json(at, "evaluate m.posterior back.csv")["scored_rows"], "training");
    // The split of a fit is held out for evaluation as well.
    json(
        at,
        "fit t.csv --target y --likelihood gaussian --set steps=5 --test-fraction 0.3 --seed 1 -o p.posterior",
    );
    let line = "evaluate p.posterior t.csv --test-fraction 0.3";
    assert_eq!(json(at, line)["scored_rows"], "held-out");
    let said = text(at, &format!("{line} --report r.html"));
    assert!(said.contains("18 rows that the model was not trained on"), "{said}");
    assert!(std::fs::read_to_string(at.join("r.html")).unwrap().contains("On 18 held-out rows"));
}

#[test]
fn processes_are_asked_what_networks_are() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} --test-fraction 0.3 -o m.posterior"));
    json(at, &format!("{FIT} --test-fraction 0.3 --kernel linear -o other.posterior"));
    // Side by side, on the same rows: those that were left out, whatever else is in the table.
    for (flags, rows) in [("--test-fraction 0.3", 30), ("", 100)] {
        let scores = json(at, &format!("evaluate m.posterior t.csv --against other.posterior {flags}"));
        let [own, other] = [0, 1].map(|k| scores["models"][k]["scores"]["scores"].clone());
        assert_eq!((&scores["kind"], &own["n"], &other["n"]), (&"values".into(), &rows.into(), &rows.into()));
        assert_eq!((&own["rmse"], &scores["plain"]["scores"]), (&scores["rmse"], &scores["baseline"]));
        assert!(
            other["rmse"].as_f64() > own["rmse"].as_f64()
                && scores["nll_difference"]["mean"].as_f64() < Some(0.0)
        );
    }
    let scores = json(at, "evaluate m.posterior t.csv --limit 40");
    assert_eq!(scores["n"], 40);
    // The first rows, quantiles of the function, arrays.
    let first = json(at, "predict m.posterior t.csv --limit 7 --quantiles 0.975 --latent");
    let column = |name: &str| first["predictions"][name].as_array().unwrap().clone();
    assert_eq!((first["n"].as_u64(), column("y_mean").len()), (Some(7), 7));
    for row in 0..7 {
        let [mean, deviation, quantile] =
            ["y_mean", "y_latent_std", "y_q0.975"].map(|name| column(name)[row].as_f64().unwrap());
        assert!(((quantile - mean) / deviation - 1.959964).abs() < 1e-6, "{row}");
    }
    let whole = json(at, "predict m.posterior t.csv");
    assert_eq!(whole["predictions"]["y_mean"].as_array().unwrap()[..7], column("y_mean"));
    json(at, "predict m.posterior t.csv --samples 3 --samples-out f.npy -o p.npy");
    let shape = |name: &str| {
        let bytes = std::fs::read(at.join(name)).unwrap();
        String::from_utf8_lossy(&bytes[..128]).split_once("'shape': ").unwrap().1[..11].to_string()
    };
    assert_eq!([shape("f.npy"), shape("p.npy")], ["(3, 100, 1)", "(100, 3, 1)"]);
    // What it has no answer to is wrong usage, found out before anything is read.
    for (flags, expected) in [
        ("predict --top 2", "--top is for classes"),
        ("predict --joint j.npy --stream -o p.csv", "the covariance of all rows"),
        ("predict --predictive probit", "a Gaussian process, which takes no --predictive"),
        ("predict --samples 2 -o p.npy --force", "need named columns"),
        ("predict --limit 3 --stream -o p.csv", "cannot be used with"),
        ("predict --samples 2 --samples-out g.npy --stream -o p.csv", "drawn jointly"),
        ("evaluate --joint-kappa 2", "takes no --joint-kappa"),
        ("evaluate --rotate 10", "classifiers of images"),
        ("evaluate --ood t.csv", "classifiers"),
        ("evaluate --labels t.csv", "takes no --labels"),
    ] {
        let (command, flags) = flags.split_once(' ').unwrap();
        let output = run(at, &format!("{command} m.posterior t.csv {flags}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(expected), "{flags}\n{said}");
        assert!(!said.contains("plan:"), "{said}");
    }
}

#[test]
fn rows_without_a_prediction_are_counted_for_each_model() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} --missing drop -o both.posterior"));
    json(at, &format!("{FIT} --missing drop --features a -o one.posterior"));
    // Five of the rows lack what only the first model looks at.
    let mut lines: Vec<String> = table(0..100, 1.0).lines().map(String::from).collect();
    for line in &mut lines[1..=5] {
        let cells: Vec<&str> = line.split(',').collect();
        *line = format!("{},,{}", cells[0], cells[2]);
    }
    std::fs::write(at.join("gaps.csv"), lines.join("\n")).unwrap();
    let said = text(at, "evaluate both.posterior gaps.csv");
    assert!(said.contains("same numbers as 95 of these") && said.contains("95 rows that"), "{said}");
    let scores = json(at, "evaluate one.posterior gaps.csv --against both.posterior");
    let n: Vec<u64> =
        [0, 1].iter().map(|&k| scores["models"][k]["scores"]["scores"]["n"].as_u64().unwrap()).collect();
    assert_eq!(n, [100, 95]);
    let notes = scores["notes"].to_string();
    assert!(notes.contains("scored on 95 rows, the first model on 100"), "{notes}");
    // Draws at rows without a prediction are not made.
    let predicted = json(at, "predict both.posterior gaps.csv --samples 2");
    let draws = predicted["predictions"]["y_sample_2"].as_array().unwrap();
    assert_eq!((draws.len(), draws.iter().filter(|v| v.is_number()).count()), (100, 95));
}
