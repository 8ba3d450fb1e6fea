//! The binary as its users see it.

use super::networks_common::posterior;
use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;

fn json(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// A folder with a small table (`t.csv`: a, b, colour, y) and folds.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from("a,b,colour,y\n");
    let mut folds = String::from("fold\n");
    for i in 0..60 {
        let (a, b) = ((i as f64 * 0.37).sin(), (i as f64 * 0.71).cos());
        let y = 3.0 * a + b * b + if i % 2 == 0 { 1.0 } else { 0.0 } + 0.01 * (i as f64 * 12.9).sin();
        table += &format!("{a},{b},{},{y}\n", ["red", "blue"][i % 2]);
        folds += &format!("{}\n", i % 5);
    }
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    std::fs::write(folder.path().join("folds.csv"), folds).unwrap();
    folder
}

const FIT: [&str; 6] = ["fit", "t.csv", "--target", "y", "--output", "m.posterior"];

#[test]
fn fit_predict_evaluate_inspect() {
    let folder = folder();
    let at = folder.path();
    let fit = json(posterior(at).args(FIT).args([
        "--one-hot",
        "colour",
        "--folds",
        "folds.csv",
        "--fold",
        "0",
        "--json",
    ]));
    assert_eq!((fit["method"].as_str(), fit["n"].as_u64()), (Some("exact"), Some(48)));
    for key in [
        "log_evidence",
        "hyperparameters",
        "seconds",
        "peak_memory_bytes",
        "planned_memory_bytes",
        "largest_jitter",
    ] {
        assert!(!fit[key].is_null(), "{key}");
    }
    assert!(fit["peak_memory_bytes"].as_u64().unwrap() < 200_000_000);

    let folds = ["--folds", "folds.csv", "--fold", "0"];
    let args = ["evaluate", "m.posterior", "t.csv", "--report", "r.html", "--json"];
    let scores = json(posterior(at).args(args).args(folds));
    for key in ["n", "rmse", "mae", "nll", "crps", "coverage_95", "cqm", "seconds"] {
        assert!(scores[key].is_number(), "{key}");
    }
    for key in ["rmse", "nll", "crps"] {
        assert!(scores["standardised"][key].is_number(), "{key}");
    }
    assert!(scores["standardised"]["rmse"].as_f64().unwrap() < 0.1, "{scores}");
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("colour"));

    let args = ["predict", "m.posterior", "t.csv", "--quantiles", "0.05,0.95", "--samples", "2"];
    posterior(at).args(args).args(["--output", "p.csv", "--quiet"]).assert().success().stdout("");
    let table = std::fs::read_to_string(at.join("p.csv")).unwrap();
    let header = "a,b,colour,y,y_mean,y_std,y_latent_std,y_q0.05,y_q0.95,y_sample_1,y_sample_2";
    assert_eq!(table.lines().next(), Some(header));
    assert_eq!(table.lines().count(), 61);
    let printed = posterior(at).args(["predict", "m.posterior", "t.csv"]).output().unwrap().stdout;
    assert!(String::from_utf8(printed).unwrap().starts_with("a,b,colour,y,y_mean,y_std,y_latent_std\n"));
    posterior(at).args(["predict", "m.posterior", "t.csv", "--output", "p.parquet"]).assert().success();
    let report = json(posterior(at).args(["inspect", "p.parquet", "--json"]));
    assert_eq!((report["rows"].as_u64(), report["columns"].as_array().unwrap().len()), (Some(60), 7));

    posterior(at)
        .args(["inspect", "m.posterior"])
        .assert()
        .success()
        .stdout(predicate::str::contains("categorical(colour) + categorical(colour)"));
    let header = json(posterior(at).args(["inspect", "m.posterior", "--json"]));
    assert_eq!(header["header"]["schema"]["target"], "y");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = folder();
    let at = folder.path();
    let mut predictions = Vec::new();
    for name in ["one.posterior", "two.posterior"] {
        posterior(at)
            .args([
                "fit",
                "t.csv",
                "--target",
                "y",
                "--features",
                "a,b",
                "--set",
                "restarts=2",
                "--seed",
                "7",
            ])
            .args(["--output", name, "--quiet"])
            .assert()
            .success();
        let output = posterior(at).args(["predict", name, "t.csv", "--samples", "1"]).output().unwrap();
        predictions.push(output.stdout);
    }
    assert!(!predictions[0].is_empty());
    assert_eq!(predictions[0], predictions[1]);
}

#[test]
fn the_configuration_file_fills_in_and_flags_win() {
    let folder = folder();
    let at = folder.path();
    let config = "data = \"t.csv\"\ntarget = \"y\"\nfeatures = [\"a\", \"b\"]\nkernel = \"se\"\noutput = \"c.posterior\"\nsteps = 5\n\n\
                  [[hyperprior]]\nparameter = \"se.lengthscale\"\ndensity = \"gamma\"\nshape = 2.0\nrate = 1.0\n";
    std::fs::write(at.join("c.toml"), config).unwrap();
    let fit = json(posterior(at).args(["fit", "--config", "c.toml", "--set", "steps=3", "--json"]));
    assert_eq!(fit["kernel"], "se");
    assert!(fit["steps"].as_u64().unwrap() <= 3);
    std::fs::write(at.join("bad.toml"), "kernal = \"se\"\n").unwrap();
    let bad = posterior(at).args(["fit", "--config", "bad.toml"]).assert().code(2);
    bad.stderr(predicate::str::contains("unknown field `kernal`"));
    std::fs::write(at.join("lost.toml"), config.replace("se.lengthscale", "se.lenghtscale")).unwrap();
    let lost = posterior(at).args(["fit", "--config", "lost.toml"]).assert().code(1);
    lost.stderr(predicate::str::contains("this model has: se.variance, se.lengthscale"));
}

#[test]
fn mistakes_get_their_status_and_a_way_out() {
    let folder = folder();
    let at = folder.path();
    let cases: Vec<(Vec<&str>, i32, &str)> = vec![
        (vec![], 2, "Usage"),
        (vec!["fit", "t.csv", "--output", "m.posterior"], 2, "--target <COL>"),
        (vec!["fit", "--target", "y", "--output", "m.posterior"], 2, "<DATA>"),
        ([&FIT[..], &["--kernel", "matrn32"]].concat(), 2, "did you mean `matern32`?"),
        (
            [&FIT[..], &["--features", "a", "--kernel", "se(zz)"]].concat(),
            1,
            "no feature column is called `zz`. There are: a",
        ),
        ([&FIT[..], &["--fold", "1"]].concat(), 2, "--folds <COUNT|COL|FILE>"),
        ([&FIT[..], &["--set", "learning-rate=0.1"]].concat(), 2, "belongs to --set optimizer=adam"),
        ([&FIT[..], &["--exclude", "y"]].concat(), 1, "column `y` is left out"),
        ([&FIT[..], &["--features", "a,b", "--memory", "0.00001"]].concat(), 1, "n = 60 needs"),
        (vec!["fit", "nowhere.csv", "--target", "y", "--output", "m"], 1, "cannot read nowhere.csv"),
        (vec!["predict", "t.csv", "t.csv"], 1, "t.csv is not a posterior model"),
        (vec!["predict", "m", "t.csv", "--quantiles", "1.5"], 2, "it must be a number between 0 and 1"),
        (vec!["inspect", "nowhere.posterior"], 1, "cannot read the model nowhere.posterior"),
    ];
    for (arguments, status, text) in cases {
        posterior(at).args(&arguments).assert().code(status).stderr(predicate::str::contains(text));
    }
    assert!(!at.join("m.posterior").exists());
}

#[test]
fn tables_of_counts_are_compared_as_counts() {
    let folder = folder();
    let at = folder.path();
    let mut table = String::from("c,n,y\n");
    (0..30).for_each(|i| table += &format!("{},{},{}\n", i % 4, i % 7, i % 4 + i % 7));
    std::fs::write(at.join("counts.csv"), &table).unwrap();
    let args = ["fit", "counts.csv", "--target", "y", "--kernel", "tanimoto"];
    posterior(at)
        .args(args)
        .args(["--set", "restarts=1", "--quiet", "--output", "m.posterior"])
        .assert()
        .success();
    let scores = json(posterior(at).args(["evaluate", "m.posterior", "counts.csv", "--json"]));
    assert!(scores["standardised"]["rmse"].as_f64().unwrap() < 0.3, "{scores}");
    // One column of counts, drawn in the report from zero on.
    let one = ["--features", "n", "--set", "restarts=1", "--quiet", "--output", "one.posterior"];
    posterior(at).args(args).args(one).assert().success();
    let report = ["evaluate", "one.posterior", "counts.csv", "--report", "r.html"];
    posterior(at).args(report).assert().success();
    std::fs::write(at.join("bad.csv"), "c,n\n1,2\n3,-1\n").unwrap();
    let predict = ["predict", "m.posterior", "bad.csv"];
    let refused = posterior(at).args(predict).assert().code(1);
    refused.stderr(predicate::str::contains("bad.csv, row 2, column `n`: -1 is negative"));
}

#[test]
fn missing_cells_keep_their_rows() {
    let folder = folder();
    let at = folder.path();
    posterior(at).args(FIT).args(["--features", "a,b", "--missing", "drop", "--quiet"]).assert().success();
    std::fs::write(at.join("holes.csv"), "a,b\n0.1,0.2\n,0.3\n").unwrap();
    let args = ["predict", "m.posterior", "holes.csv"];
    let output = posterior(at).args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().nth(2), Some(",0.3,,,"));
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("1 rows with missing cells have no prediction")
    );
    let report = json(posterior(at).args(args).arg("--json"));
    assert_eq!(report["rows_without_prediction"], 1);
    assert!(report["predictions"]["y_mean"][1].is_null());
}

#[test]
fn a_killed_fit_leaves_no_model() {
    let folder = folder();
    let at = folder.path();
    // Large enough to be still fitting when the signal comes.
    let mut rows = String::from("a,y\n");
    for i in 0..1500 {
        rows += &format!("{},{}\n", i as f64 * 0.01, (i as f64 * 0.05).sin());
    }
    std::fs::write(at.join("long.csv"), rows).unwrap();
    for signal in ["-9", "-2"] {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("posterior"))
            .args([
                "fit",
                "long.csv",
                "--target",
                "y",
                "--set",
                "restarts=50",
                "--output",
                "long.posterior",
                "--quiet",
            ])
            .current_dir(at)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert!(
            std::process::Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        assert!(!status.success());
        let left: Vec<_> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("osterior")), "{left:?}");
    }
}

#[test]
fn completions_and_version() {
    let folder = folder();
    posterior(folder.path())
        .args(["completions", "bash"])
        .assert()
        .success()
        .stdout(predicate::str::contains("posterior"));
    posterior(folder.path())
        .arg("--version")
        .assert()
        .success()
        .stdout(predicate::str::starts_with("posterior 0."));
    posterior(folder.path())
        .args(["fit", "--help"])
        .assert()
        .success()
        .stdout(predicate::str::contains("Examples:"));
}

#[test]
fn the_demo_runs_and_its_scores_are_good() {
    let folder = folder();
    let demo = json(posterior(folder.path()).args(["demo", "--output", "d", "--json"]));
    // The noise is 0.1 and 1: typical errors are just above it.
    assert!(demo["curve"]["rmse"].as_f64().unwrap() < 0.13, "{demo}");
    assert!(demo["table"]["rmse"].as_f64().unwrap() < 1.25, "{demo}");
    // Error bars help, beyond what chance explains.
    let difference = &demo["moons_nll_difference"];
    let of = |key: &str| difference[key].as_f64().unwrap();
    assert!(of("mean") + 1.96 * of("standard_error") < 0.0, "{demo}");
    assert!(demo["network"]["rmse"].as_f64().unwrap() < 0.25, "{demo}");
    for file in ["report.html", "curve.csv", "curve.posterior", "table.csv", "table.posterior"] {
        assert!(folder.path().join("d").join(file).exists(), "{file}");
    }
}

#[test]
fn categories_sums_and_warps_from_a_table() {
    let folder = folder();
    let at = folder.path();
    let fit = |kernel: &str, more: &[&str]| {
        let args = [
            &FIT[..],
            &["--kernel", kernel, "--set", "restarts=1", "--set", "steps=15", "--quiet", "--force"],
        ]
        .concat();
        posterior(at).args(args).args(more).assert().success();
        json(posterior(at).args(["inspect", "m.posterior", "--json"]))
    };
    let one_hot = ["--one-hot", "colour", "--missing", "mean"];
    let found = fit("matern32(ard) * categorical(colour, rank=1)", &one_hot);
    let of = &found["parts"]["categories"][0];
    assert_eq!((of["column"].as_str(), of["categories"][1].as_str()), (Some("colour"), Some("red")));
    assert_eq!(of["covariance"].as_array().unwrap().len(), 3);
    let lengthscales = found["header"]["hyperparameters"].as_array().unwrap();
    let own = lengthscales.iter().find(|h| h["name"] == "matern32.lengthscale").unwrap();
    assert_eq!(own["values"].as_array().unwrap().len(), 2, "a and b, and no category");
    // An empty cell is a category of its own, predicted with more doubt, and so is one that nobody knows.
    std::fs::write(at.join("new.csv"), "a,b,colour\n0.1,0.2,red\n0.1,0.2,\n").unwrap();
    let predict = ["predict", "m.posterior", "new.csv", "--json"];
    let told = json(posterior(at).args(predict));
    let deviation = |i: usize| told["predictions"]["y_std"][i].as_f64().unwrap();
    assert!(deviation(1) > deviation(0), "{told}");
    std::fs::write(at.join("new.csv"), "a,b,colour\n0.1,0.2,green\n").unwrap();
    let told = json(posterior(at).args(predict));
    let unknown = told["predictions"]["y_std"][0].as_f64().unwrap();
    assert!((unknown - deviation(1)).abs() < 1e-9, "{told}");
    let refused = posterior(at).args(predict).args(["--unseen", "error"]).assert().code(1);
    refused.stderr(predicate::str::contains("the category `green` did not occur in training"));
    let text = posterior(at).args(["inspect", "m.posterior"]).assert().success();
    text.stdout(predicate::str::contains("Correlations of the functions of `colour`"));
    let report = ["inspect", "m.posterior", "--report", "r.html"];
    posterior(at).args(report).assert().success();
    assert!(std::fs::read_to_string(at.join("r.html")).unwrap().contains("(none of these)"));

    let features = ["--features", "a,b"];
    let found = fit("additive(matern32, ard, order=2)", &features);
    let shares = found["parts"]["shares"]["components"].as_array().unwrap();
    let sum: f64 = shares.iter().map(|s| s["share"].as_f64().unwrap()).sum();
    assert!(shares.len() == 2 && (sum - 1.0).abs() < 1e-9, "{found}");
    let text = posterior(at).args(["inspect", "m.posterior"]).assert().success();
    text.stdout(predicate::str::contains("additive, a alone"));

    let found = fit("warp(matern32(ard))", &features);
    assert_eq!(found["parts"]["warps"][1]["feature"], "b");
    let report = ["evaluate", "m.posterior", "t.csv", "--report", "w.html"];
    posterior(at).args(report).assert().success();
    assert!(std::fs::read_to_string(at.join("w.html")).unwrap().contains("What the kernel sees of b"));

    fit("spectral_mixture(a, components=3) + linear(b)", &features);
    let predict = ["predict", "m.posterior", "t.csv", "--json"];
    assert!(json(posterior(at).args(predict))["predictions"]["y_mean"][0].is_number());
    let text = posterior(at).args(["inspect", "m.posterior"]).assert().success();
    text.stdout(predicate::str::contains("spectral_mixture: period [a, 2]"));

    // Labels under another likelihood take categories as well.
    let classes: String = std::fs::read_to_string(at.join("t.csv")).unwrap();
    let labelled: String = classes
        .lines()
        .enumerate()
        .map(|(i, line)| {
            let label = if i == 0 { "label" } else { ["yes", "no"][i % 3 / 2] };
            format!("{line},{label}\n")
        })
        .collect();
    std::fs::write(at.join("labelled.csv"), labelled).unwrap();
    let args =
        ["fit", "labelled.csv", "--target", "label", "--features", "a,b,colour", "--one-hot", "colour"];
    let kernel =
        ["--kernel", "se(ard) * categorical(colour)", "--quiet", "--force", "--output", "m.posterior"];
    posterior(at).args(args).args(kernel).assert().success();
    let found = json(posterior(at).args(["inspect", "m.posterior", "--json"]));
    assert_eq!(found["parts"]["categories"][0]["kernel"], "categorical");
}
