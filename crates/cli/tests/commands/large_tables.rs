//! `fit` by methods for large tables, and `optimize`, as a user runs them.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn posterior(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posterior"));
    command.current_dir(folder).args(line.split_whitespace());
    command
}

fn run(folder: &Path, line: &str) -> Output {
    posterior(folder, line).output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("--json {line}"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// y = sin(3a) + b² on an even spread of points.
fn write_table(path: &Path, rows: usize) {
    let mut text = String::from("a,b,y\n");
    for i in 0..rows {
        let (a, b) = ((i as f64 * 0.618_034) % 1.0, (i as f64 * 0.754_878) % 1.0);
        let noise = 0.1 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
        text += &format!("{a},{b},{}\n", (3.0 * a).sin() + b * b + noise);
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn every_method_from_fit_to_scores() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 400);
    write_table(&at.join("new.csv"), 50);
    let quick = "--set blocks=1 --set block-size=120 --set refining-rows=0";
    for (method, flags) in [
        (
            "sdd",
            format!("{quick} --set iterations=800 --set batch=64 --set samples=32 --set random-features=500"),
        ),
        (
            "sap",
            format!("{quick} --set samples=32 --set random-features=500 --set block-rows=100 --set rank=30"),
        ),
        (
            "cg",
            format!("{quick} --set samples=32 --set random-features=500 --set precision=f64 --set rank=20"),
        ),
        (
            "sgd",
            format!(
                "{quick} --set fix=noise_variance=0.3 --set iterations=12000 --set batch=64 --set samples=8 --set random-features=200"
            ),
        ),
        (
            "inducing-sgd",
            format!(
                "{quick} --set iterations=800 --set batch=64 --set samples=16 --set random-features=200 --set inducing=60"
            ),
        ),
        ("sgpr", "--set inducing=30 --set iterations=15".into()),
        (
            "svgp",
            "--set inducing=30 --set iterations=150 --set batch=100 --set inducing-choice=greedy".into(),
        ),
    ] {
        let fitted =
            json(at, &format!("fit t.csv --target y --method {method} {flags} -o {method}.posterior"));
        assert_eq!(fitted["method"], method);
        assert!(fitted["large_table"]["steps"].as_u64().unwrap() > 0, "{fitted}");
        assert!(fitted["planned_memory_bytes"].as_u64().unwrap() > 0);
        // Slow is not called converged.
        assert!(method != "sgd" || fitted["check"]["converged"] == false, "{fitted}");
        let scores = json(at, &format!("evaluate {method}.posterior new.csv"));
        let rmse = scores["rmse"].as_f64().unwrap_or(f64::NAN);
        // The noise is within 0.1; the target's deviation is 0.43. Descent on the primal, slow at best, is given noise that it can
        // follow, and is far from done all the same.
        let baseline = scores["baseline"]["rmse"].as_f64().unwrap_or(f64::NAN);
        assert!(rmse < if method.contains("sgd") { 0.85 * baseline } else { 0.12 }, "{method}: {scores}");
        let text = String::from_utf8(run(at, &format!("inspect {method}.posterior")).stdout).unwrap();
        assert!(text.contains("solver"), "{text}");
        assert!(!at.join(format!("{method}.posterior.checkpoint")).exists());
    }
    // The same rows, read part by part: the same model.
    let line = format!("fit t.csv --target y --method cg {quick} --set samples=4 --set precision=f64");
    json(at, &format!("{line} -o whole.posterior"));
    json(at, &format!("{line} --stream -o parts.posterior"));
    let predicted = |model: &str| run(at, &format!("predict {model} new.csv")).stdout;
    assert_eq!(predicted("whole.posterior"), predicted("parts.posterior"));
    // Hyperparameters of another model.
    let given = json(
        at,
        "fit t.csv --target y --method sdd --hyperparameters cg.posterior --set iterations=300 --set samples=4 -o given.posterior",
    );
    assert_eq!(given["large_table"]["hyperparameter_source"], "given");
}

#[test]
fn searches_features_choices_and_exact_variances_are_flags() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 150);
    write_table(&at.join("new.csv"), 20);
    let line = "fit t.csv --target y --set samples=512 --set random-features=2000 --set precision=f64";
    let searched = json(
        at,
        &format!(
            "{line} --method cg --set hyperparameter-search=refined --set blocks=1 --set block-size=60 --set refining-rows=0 --set search-solver=cg --set search-passes=12 --set steps=20 --set probes=32 --set probe-kind=pathwise --set learning-rate=0.05 --set feature-form=phase --set feature-frequencies=orthogonal -o cg.posterior"
        ),
    );
    let fit = &searched["large_table"];
    assert!(fit["search"]["steps"] == 20 && fit["search"]["solver_steps"].as_u64() >= Some(20), "{fit}");
    assert_eq!(fit["settings"]["features"]["form"], "phase");
    assert_eq!(fit["settings"]["features"]["frequencies"], "orthogonal");
    let source = fit["hyperparameter_source"].as_str().unwrap();
    assert!(source.contains("32 probes, from the joint evidence of 2 blocks of 60 rows"), "{source}");
    let text = String::from_utf8(run(at, "inspect cg.posterior").stdout).unwrap();
    assert!(text.contains("20 steps") && text.contains("with phases, orthogonal frequencies"), "{text}");
    // Variances of 512 samples are within 4.5 √(2/512) of the exact ones, and what features leave.
    let predicted = |flags: &str| json(at, &format!("predict cg.posterior new.csv {flags}"));
    let (sampled, exact) = (predicted(""), predicted("--variances exact"));
    // Solves are in the plan: a limit that samples keep refuses them before they begin.
    let planned = |report: &Value| report["planned_memory_bytes"].as_f64().unwrap() / 1e9;
    assert!(planned(&exact) > planned(&sampled) + 1e-4, "{exact}");
    let between = 0.5 * (planned(&sampled) + planned(&exact));
    assert!(predicted(&format!("--memory {between}"))["n"] == 20);
    let text = error(at, &format!("predict cg.posterior new.csv --variances exact --memory {between}"));
    assert!(text.contains("predictions of 20 rows need") && !text.contains("plan:"), "{text}");
    let plan = run(at, "predict cg.posterior new.csv --variances exact");
    assert!(String::from_utf8_lossy(&plan.stderr).contains("on this machine"));
    assert!(sampled.get("variance_solves").is_none());
    assert!(exact["variance_solves"]["residual"].as_f64().unwrap() <= 1e-4, "{exact}");
    for i in 0..20 {
        let of = |p: &Value| p["predictions"]["y_std"][i].as_f64().unwrap();
        assert!((of(&sampled) / of(&exact)).powi(2) < 1.5 && (of(&exact) / of(&sampled)).powi(2) < 1.5);
    }
    // From one basis, which is told how far it is off; the fit has said its log evidence.
    let lanczos = predicted("--variances lanczos --variance-rank 150");
    let told = &lanczos["variance_solves"];
    assert!(told["rank"].as_u64() <= Some(150) && told["probes"] == 16, "{told}");
    assert!(told["largest_excess"].as_f64().unwrap() < 0.01, "{told}");
    assert!(planned(&lanczos) > planned(&exact), "{lanczos}");
    let narrow = predicted("--variances lanczos --variance-rank 2");
    assert!(narrow["variance_solves"]["mean_excess"].as_f64() > told["mean_excess"].as_f64(), "{narrow}");
    let text = run(at, "predict cg.posterior new.csv --variances lanczos");
    assert!(String::from_utf8_lossy(&text.stderr).contains("from a Lanczos basis of rank"));
    assert!(fit["log_evidence"]["standard_error"].as_f64() > Some(0.0), "{fit}");
    let text = error(at, "predict cg.posterior new.csv --variances exact --variance-rank 5");
    assert!(text.contains("--variance-rank is the rank of --variances lanczos"), "{text}");
    let scores = json(at, "evaluate cg.posterior new.csv --variances exact");
    assert!(scores["variance_solves"]["iterations"].as_u64() > Some(0));
    let (r2, explained) = (scores["r2"].as_f64().unwrap(), scores["explained_variance"].as_f64().unwrap());
    assert!(r2 > 0.9 && explained >= r2 && explained <= 1.0, "{scores}");
    let text = error(at, "predict cg.posterior new.csv --variances exact --memory 1e-6");
    assert!(text.contains("the memory limit for reading"), "{text}");
    for (flags, found) in [
        (
            "--set inducing-choice=cover --set cover-radius=0.2 --set variational=adam --set step-size=0.05",
            "adam",
        ),
        ("--set inducing-choice=pruned --set pruning-ratio=2 --set natural-length=0.5", "natural"),
    ] {
        let fitted = json(
            at,
            &format!(
                "fit t.csv --target y --method svgp --set inducing=20 --set iterations=30 {flags} -o svgp.posterior"
            ),
        );
        let fit = &fitted["large_table"];
        assert!(fit["solver"]["stochastic"]["optimizer"].to_string().contains(found), "{fit}");
        assert!(fit["inducing_radius"].as_f64() > Some(0.1) && fit["inducing"].as_u64() <= Some(20), "{fit}");
    }
    // Refused before the numbers of a file that is read part by part.
    let text = error(at, "fit t.csv --target y --method cg --stream --memory 0.001 -o x.posterior");
    assert!(text.contains("above the limit of 1.0 MB") && !text.contains("plan:"), "{text}");
    for (flags, words) in [
        (
            "--method cg --set hyperparameter-search=neighbourhoods --set probes=3",
            "--set probes belongs to --set hyperparameter-search",
        ),
        (
            "--method cg --set refining-rows=50 --set search-passes=2",
            "--set search-passes belongs to steps on all rows",
        ),
        (
            "--method sgpr --set hyperparameter-search=stochastic",
            "--set hyperparameter-search belongs to --method",
        ),
        ("--method sgpr --set natural-length=0.3", "--set natural-length belongs to --method svgp"),
        (
            "--method svgp --set variational=adam --set natural-length=0.3",
            "belongs to --set variational=natural",
        ),
        ("--method svgp --set cover-radius=0.3", "belongs to --set inducing-choice=cover"),
        ("--method svgp --set natural-length=3", "above 0 and at most 1"),
        (
            "--method cg --set hyperparameter-search=stochastic --set neighbourhoods=3",
            "belongs to --set hyperparameter-search=neighbourhoods",
        ),
        ("--method cg --set hyperparameter-search=stochastic --set blocks=3", "blocks or refined"),
        ("--method cg --set hyperparameter-search=stochastic --set fix=length", "there is no such parameter"),
        ("--method cg --set search-passes=3", "blocks of tables with more than 8000 rows"),
        ("--method sap --set rank=5000 --set block-rows=50", "below the rows of a block"),
        ("--method sdd --set hyperparameter-search=stochastic --set rank=3", "--set search-solver=cg"),
        (
            "--method cg --set hyperparameter-search=stochastic --set optimizer=adam",
            "searches by exact evidence",
        ),
        ("--method cg --set hyperparameter-search=stochastic --set probes=0", "a whole number from 1"),
        (
            "--method cg --hyperparameters cg.posterior --set hyperparameter-search=refined",
            "--hyperparameters gives",
        ),
    ] {
        let text = error(at, &format!("fit t.csv --target y {flags} -o x.posterior"));
        assert!(text.contains(words), "{flags}: {text}");
    }
}

#[test]
fn predictions_part_by_part_are_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 100);
    // Two parts: 32 MB hold some hundred thousand rows of three numbers.
    let rows = 600_000;
    let mut text = String::from("a,b,note,id\n");
    for i in 0..rows {
        let cell = if i % 1000 == 7 { String::new() } else { format!("{}", (i as f64 * 0.618) % 1.0) };
        // Numbers at first, text later.
        let id = if i < rows / 2 { format!("{i:07}") } else { format!("id{i}") };
        text += &format!("{cell},{},n{},{id}\n", (i as f64 * 0.754) % 1.0, i % 10);
    }
    std::fs::write(at.join("new.csv"), text).unwrap();
    let fit = "fit t.csv --target y --method svgp --set inducing=5 --set iterations=20 --missing drop -o m.posterior";
    json(at, fit);
    let line = "predict m.posterior new.csv";
    let whole = json(at, &format!("{line} -o whole.csv"));
    let parts = json(at, &format!("{line} --stream -o parts.csv"));
    assert_eq!(parts["n"], rows - rows / 1000);
    assert_eq!(whole["rows_without_prediction"], parts["rows_without_prediction"]);
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    let (whole, parts) = (read("whole.csv"), read("parts.csv"));
    let mut lines = whole.lines().zip(parts.lines());
    assert_eq!(lines.next().map(|(a, b)| a == b), Some(true));
    assert_eq!(whole.lines().count(), parts.lines().count());
    for (a, b) in lines {
        let cells = |line: &str| line.split(',').map(String::from).collect::<Vec<String>>();
        let (a, b) = (cells(a), cells(b));
        assert!(a.len() == b.len() && a[2..4] == b[2..4], "{a:?} {b:?}");
        // The last blocks of parts differ in size, and sums in order.
        let near = |(a, b): (&String, &String)| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
            _ => a == b,
        };
        assert!(a.iter().zip(&b).all(near), "{a:?} {b:?}");
    }
    let text = error(at, &format!("{line} --stream --samples 3 -o x.csv"));
    assert!(text.contains("drawn jointly"), "{text}");
    interrupted(at, &format!("{line} --stream -o x.csv"));
    let text = error(at, &format!("{line} --stream"));
    assert!(text.contains("--output"), "{text}");
    assert!(!at.join("x.csv").exists());
}

/// Ctrl-C as soon as there is something: an error, and neither the file nor a part of it.
#[cfg(unix)]
fn interrupted(at: &Path, line: &str) {
    let files = || std::fs::read_dir(at).unwrap().count();
    let before = files();
    let mut child = posterior(at, line).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while files() == before && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!(files(), before);
}

#[cfg(not(unix))]
fn interrupted(_: &Path, _: &str) {}

#[test]
fn a_fit_that_is_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 1500);
    let line = "fit t.csv --target y --method sdd --set blocks=1 --set block-size=60 --set refining-rows=0 --set iterations=3000 --set batch=128 --set samples=8 --set random-features=100 --checkpoint-every 0.05 --threads 1";
    // As soon as there is a state of the solver.
    let resumed = killed_and_resumed(at, line, 100_000);
    assert!(resumed["large_table"]["resumed_from"].as_u64().unwrap() > 0, "{resumed}");
}

/// Steps of a stochastic search, each of which begins at the last one's solutions.
#[test]
fn a_fit_that_is_killed_in_its_search_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 1500);
    let line = "fit t.csv --target y --method cg --set hyperparameter-search=stochastic --set steps=60 --set probes=6 --set samples=6 --set iterations=3 --set random-features=100 --checkpoint-every 0.02 --threads 1";
    // With the solutions of a step: before the first there are none.
    let resumed = killed_and_resumed(at, line, 30_000);
    // What was killed was the search: it ran for most of the time, and the solver has nothing to go on from.
    assert_eq!(resumed["large_table"]["resumed_from"], 0, "{resumed}");
    let search = &resumed["large_table"]["search"];
    assert_eq!(search["steps"], 60, "{resumed}");
    assert!((1..60).contains(&search["resumed_from"].as_u64().unwrap()), "{resumed}");
}

/// What a fit says that was killed as soon as its checkpoint had so many bytes, and went on: predictions are those of one that was not, bit for bit.
fn killed_and_resumed(at: &Path, line: &str, bytes: u64) -> serde_json::Value {
    let straight = json(at, &format!("{line} -o straight.posterior"));
    let mut child = posterior(at, &format!("{line} -o killed.posterior"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (state, started) = (at.join("killed.posterior.checkpoint"), Instant::now());
    while !std::fs::metadata(&state).is_ok_and(|m| m.len() >= bytes)
        && started.elapsed() < Duration::from_secs(60)
    {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(state.exists() && !at.join("killed.posterior").exists(), "it was killed too late");
    let resumed = json(at, &format!("{line} -o killed.posterior"));
    assert_eq!(resumed["hyperparameters"], straight["hyperparameters"]);
    let predicted = |model: &str| run(at, &format!("predict {model} t.csv")).stdout;
    assert_eq!(predicted("killed.posterior"), predicted("straight.posterior"));
    resumed
}

#[test]
fn few_kept_samples_are_enough_for_a_report_and_cost_little() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 60);
    let flags = "--set samples=2 --set random-features=50 --set blocks=1 --set block-size=30 --set refining-rows=0 --set steps=3";
    json(at, &format!("fit t.csv --target y --features a --method cg {flags} -o m.posterior"));
    json(at, "evaluate m.posterior t.csv --report r.html");
    assert!(at.join("r.html").exists());
    // 2 samples of each row, kept in the model: a few bytes, where a joint covariance of 60 rows would take 115,200.
    let planned = |flags: &str| {
        let report = json(at, &format!("predict m.posterior t.csv {flags}"));
        report["planned_memory_bytes"].as_u64().unwrap()
    };
    let drawn = json(at, "predict m.posterior t.csv --samples 2 --memory 0.05");
    assert!(drawn["predictions"]["y_sample_2"][59].is_number(), "{drawn}");
    assert!(planned("--samples 2") < planned("") + 20_000);
    let text = error(at, "predict m.posterior t.csv --samples 2 --memory 0.03");
    assert!(
        text.contains("and 2 joint draws need") && text.contains("above the limit of 30.000 MB"),
        "{text}"
    );
}

#[test]
fn hyperparameters_can_be_given_held_and_bounded_in_exact_fits() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 60);
    let line = "fit t.csv --target y";
    let first = json(at, &format!("{line} -o first.posterior"));
    assert_eq!(first["check"]["on"], "folds");
    assert_eq!(first["check"]["rows"], 60);
    let given =
        json(at, &format!("{line} --method exact --hyperparameters first.posterior -o given.posterior"));
    assert_eq!((&given["method"], &given["evaluations"]), (&"exact".into(), &0.into()));
    assert_eq!(given["hyperparameters"], first["hyperparameters"]);
    let predicted = |model: &str| run(at, &format!("predict {model} t.csv")).stdout;
    assert_eq!(predicted("given.posterior"), predicted("first.posterior"));
    let held = json(
        at,
        &format!(
            "{line} --set fix=noise_variance=0.05,matern32.lengthscale[1]=2 --set bound=matern32.variance=0.5..0.6 -o held.posterior"
        ),
    );
    let value = |name: &str| {
        let found = held["hyperparameters"].as_array().unwrap().iter().find(|h| h["name"] == name).unwrap();
        found["values"].clone()
    };
    assert_eq!(value("noise_variance")[0], 0.05);
    assert_eq!(value("matern32.lengthscale")[1], 2.0);
    assert!((0.5..=0.6).contains(&value("matern32.variance")[0].as_f64().unwrap()));
    for (flags, words) in [
        ("--set fix=noise_varianze", "there is no such parameter; there are: matern32.variance"),
        ("--set fix=noise_variance=x", "`x` is not a number"),
        ("--set fix=noise_variance=-1", "cannot be -1"),
        ("--set bound=noise_variance=2..1", "no bounds"),
        ("--set bound=noise_variance=2", "NAME=LOWER..UPPER"),
        ("--hyperparameters first.posterior --set fix=noise_variance", "--hyperparameters gives"),
        ("--hyperparameters first.posterior --set restarts=2", "--hyperparameters gives"),
    ] {
        let text = error(at, &format!("{line} --method exact {flags} -o never.posterior"));
        assert!(text.contains(words), "{flags}: {text}");
    }
}

/// Bounds, solvers (whose systems would rather have more noise) and other likelihoods hold what they are told.
#[test]
fn every_method_holds_and_bounds_what_it_learns() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 150);
    std::fs::write(
        at.join("counts.csv"),
        (0..80).fold("a,y\n".to_string(), |text, i| text + &format!("{},{}\n", f64::from(i) * 0.05, i % 4)),
    )
    .unwrap();
    let value = |told: &serde_json::Value, name: &str| -> Vec<f64> {
        let all = told["hyperparameters"].as_array().unwrap_or_else(|| panic!("{told}"));
        let found = all.iter().find(|h| h["name"] == name).unwrap_or_else(|| panic!("{name}: {told}"));
        found["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let quick = "--set blocks=1 --set block-size=60 --set refining-rows=0 --set steps=6 --set samples=2 --set random-features=20 --set iterations=5";
    for method in [
        "exact --set steps=6".to_string(),
        "sgpr --set inducing=10 --set steps=6".into(),
        "svgp --set inducing=10 --set iterations=20".into(),
        format!("sdd {quick}"),
        format!("sap {quick}"),
        "cg --set hyperparameter-search=stochastic --set steps=4 --set probes=3 --set samples=2 --set iterations=5".into(),
    ] {
        let held = "--set fix=noise_variance=0.0002,variance=100 --set bound=lengthscale=0.3..0.4";
        let told = json(at, &format!("fit t.csv --target y --method {method} {held} -o m.posterior --force"));
        assert_eq!(value(&told, "noise_variance"), [0.0002], "{method}");
        assert_eq!(value(&told, "matern32.variance"), [100.0], "{method}");
        let lengthscales = value(&told, "matern32.lengthscale");
        assert!(lengthscales.iter().all(|l| (0.3..=0.4).contains(l)), "{method}: {lengthscales:?}");
        assert!(told["at_bounds"].is_array(), "{method}: {told}");
    }
    // Learned features have a noise variance; what acts behind them has no unit. The prior of gvi has all that other processes have.
    for (method, of_kernel) in [
        ("dbk --set rank=4 --set iterations=4 --set patience=1", ""),
        ("svdkl --set rank=6 --set iterations=4 --set patience=1", ""),
        ("dkl --set dense --set iterations=3", ""),
        (
            "gvi --set objective=elbo --set inducing=8 --set iterations=10",
            ",variance=100 --set bound=lengthscale=0.3..0.4",
        ),
    ] {
        let line = format!("fit t.csv --target y --method {method} -o m.posterior --force");
        let told = json(at, &format!("{line} --set fix=noise_variance=0.0002{of_kernel}"));
        assert_eq!(value(&told, "noise_variance"), [0.0002], "{method}");
        if !of_kernel.is_empty() {
            assert_eq!(value(&told, "matern32.variance"), [100.0], "{method}");
            let lengthscales = value(&told, "matern32.lengthscale");
            assert!(lengthscales.iter().all(|l| (0.3..=0.4).contains(l)), "{lengthscales:?}");
        }
        let told = json(at, &format!("{line} --set bound=noise_variance=0.8..0.9"));
        assert!((0.8..=0.9).contains(&value(&told, "noise_variance")[0]), "{method}: {told}");
        let text = error(at, &format!("{line} --set fix=noise_varianze"));
        assert!(text.contains("there is no such parameter; there are: ") && text.len() < 1000, "{text}");
    }
    json(at, "fit t.csv --target y --method exact --set steps=2 -o given.posterior");
    for method in ["sgpr --set inducing=50", "svgp --set iterations=3"] {
        let line = format!("fit t.csv --target y --method {method} -o never.posterior");
        let text =
            error(at, &format!("{line} --hyperparameters given.posterior --set fix=noise_variance=0.3"));
        assert!(text.contains("--hyperparameters gives"), "{text}");
        let text = error(at, &format!("{line} --set fix=noise_varianze"));
        assert!(text.contains("inducing_inputs") && text.len() < 1000, "{text}");
    }
    let text = error(
        at,
        "fit counts.csv --target y --likelihood poisson --method svdbk --set fix=noise_variance -o p.posterior",
    );
    assert!(text.contains("labels, counts and events have not"), "{text}");
    for inference in ["variational", "laplace", "gaussianised"] {
        let line = format!("fit counts.csv --target y --likelihood poisson --inference {inference}");
        let told = json(at, &format!("{line} --set fix=matern32.variance=2 -o p.posterior --force"));
        assert_eq!(value(&told, "matern32.variance"), [2.0], "{inference}");
    }
}

#[test]
fn a_checkpoint_of_another_fit_is_no_dead_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 60);
    let line = "fit t.csv --target y --method cg --set samples=2 --set random-features=20 --set blocks=1 --set block-size=20 --set refining-rows=0 --set steps=2 -o m.posterior";
    // A checkpoint that another fit left: as after a kill.
    let state = at.join("m.posterior.checkpoint");
    std::fs::write(&state, b"not even one").unwrap();
    let text = error(at, line);
    assert!(text.contains("m.posterior.checkpoint"), "{text}");
    let fitted = json(at, &format!("{line} --fresh"));
    assert_eq!(fitted["large_table"]["resumed_from"], 0);
    assert!(!state.exists() && at.join("m.posterior").exists());
}

/// Ctrl-C in the second start of an exact fit: no model, an error, whatever the first start had found.
#[test]
#[cfg(unix)]
fn an_interrupted_exact_fit_writes_nothing() {
    use std::io::Read;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 700);
    // Steps are told as they are taken: the second start begins where counting begins anew.
    let mut child = posterior(at, "fit t.csv --target y --set restarts=40 --threads 1 -o m.posterior")
        .env("POSTERIOR_LOG", "debug")
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = child.stderr.take().unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    let starts = |text: &str| text.matches("\"step\":1,").count() + text.matches("\"step\":1}").count();
    while starts(&text) < 2 {
        let read = told.read(&mut buffer).unwrap();
        assert!(read > 0, "it ended before a second start:\n{text}");
        text += &String::from_utf8_lossy(&buffer[..read]);
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    told.read_to_string(&mut text).unwrap();
    assert!(!child.wait().unwrap().success(), "{text}");
    assert!(text.contains("interrupted; m.posterior has not been written"), "{text}");
    assert!(!at.join("m.posterior").exists());
}

#[test]
fn options_of_other_methods_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 30);
    for (flags, expected) in [
        (
            "--method exact --set samples=3",
            "--set samples belongs to --method cg, sgd, sdd, sap, inducing-sgd",
        ),
        (
            "--method sdd --hyperparameters h.json --set steps=3",
            "--set steps belongs to the search for hyperparameters, which --hyperparameters gives",
        ),
        ("--method sdd --set restarts=3", "--set restarts belongs to --method exact"),
        ("--method svgp --set optimizer=adam", "--set optimizer belongs to"),
        ("--method svgp --set steps=5", "--set steps belongs to"),
        ("--method exact --checkpoint-every 3", "--checkpoint-every belongs to"),
        ("--method svgp --set rank=3", "--set rank belongs to --method cg"),
        ("--method sap --set batch=3", "--set batch belongs to"),
        ("--method sdd --set inducing=3", "--set inducing belongs to"),
        (
            "--method inducing-sgd --set tolerance=0.1",
            "--set tolerance belongs to --method cg, sgd, sdd, sap; inducing-sgd has none",
        ),
        ("--method sdd --time-budget soon", "is no time"),
        ("--method sdd --set samples=0", "a whole number from 1"),
        ("--method sdd --set step-size=0", "--set step-size <X>': it must be a finite number above 0"),
        ("--method sdd --hyperparameters t.csv", "t.csv"),
        ("--method sdd --memory 1e-5", "above the limit"),
        ("--method sap --memory 0.04", "or take --method svgp, which needs"),
        ("--method sdd --kernel periodic", "random features"),
    ] {
        let text = error(at, &format!("fit t.csv --target y {flags} -o never.posterior"));
        assert!(text.contains(expected), "{flags}\n{text}");
        assert!(!at.join("never.posterior").exists());
    }
}

#[test]
fn a_minimum_by_asking_and_telling() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    json(
        at,
        "optimize start s.json --space x:-1..2,k:1..4:integer --initial 4 --search-candidates 200 --search-rounds 3",
    );
    let text = error(at, "optimize start s.json --space x:0..1");
    assert!(text.contains("exists"), "{text}");
    let value = |point: &Value| {
        let (x, k) = (point[0].as_f64().unwrap(), point[1].as_f64().unwrap());
        (x - 0.5).powi(2) + (k - 2.0).powi(2)
    };
    for _ in 0..6 {
        let asked = json(at, "optimize ask s.json -n 2");
        for trial in asked["trials"].as_array().unwrap() {
            json(
                at,
                &format!("optimize tell s.json --id {} --value {}", trial["id"], value(&trial["point"])),
            );
        }
    }
    let status = json(at, "optimize status s.json");
    assert_eq!(status["told"], 12);
    assert!(status["best"]["value"].as_f64().unwrap() < 0.05, "{status}");
    json(at, "optimize tell s.json --point x=0.5,k=2 --value 0");
    assert_eq!(json(at, "optimize status s.json")["best"]["value"], 0.0);
    for (line, expected) in [
        ("tell s.json --id 1 --value 5", "has an outcome already"),
        ("tell s.json --id 1 --value nan", "it must be a finite number"),
        ("tell s.json --point x=0.5 --value 5", "`k` is missing"),
        ("tell s.json --point x=0.5,z=2 --value 5", "no axis `z`"),
        ("ask absent.json", "absent.json"),
        ("start t.json --space x:1..0", "smaller number first"),
        ("start t.json --space x:0..1 --initial 1000000000", "from 0 to 10000"),
        ("ask s.json -n 1000000", "from 1 to 2000"),
        ("run s.json --evaluations 9 --batch 100000 -- true", "from 1 to 500"),
    ] {
        let text = error(at, &format!("optimize {line}"));
        assert!(text.contains(expected), "{line}\n{text}");
    }
}

#[test]
#[cfg(unix)]
fn a_minimum_by_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(
        at.join("try.sh"),
        "#!/bin/sh\necho about to try $1\nif [ $2 -eq 3 ]; then exit 4; fi\necho $1 | awk '{print ($1-0.3)*($1-0.3)}'\n",
    )
    .unwrap();
    json(
        at,
        "optimize start s.json --space x:0..1,fails:1..3:integer --initial 4 --search-candidates 100 --search-rounds 2 --seed 1",
    );
    let first = json(at, "optimize run s.json --evaluations 5 --batch 2 -- sh try.sh {x} {fails}");
    assert_eq!(first["trials"].as_array().unwrap().len(), 5);
    // Another run with more evaluations goes on.
    let more = json(at, "optimize run s.json --evaluations 14 --batch 3 -- sh try.sh {x} {fails}");
    assert_eq!(more["told"].as_u64().unwrap() + more["failed"].as_u64().unwrap(), 14);
    assert!(more["best"]["value"].as_f64().unwrap() < 0.01, "{more}");
    for trial in more["trials"].as_array().unwrap() {
        let failed = trial["point"][1] == 3.0;
        assert_eq!(trial["outcome"]["state"], if failed { "failed" } else { "done" }, "{trial}");
    }
}

#[test]
fn a_compressed_model_is_asked_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_table(&at.join("t.csv"), 400);
    write_table(&at.join("new.csv"), 50);
    let quick = "--set blocks=1 --set block-size=120 --set refining-rows=0 --set samples=32 --set random-features=500";
    json(at, &format!("fit t.csv --target y --method sap {quick} -o large.posterior"));
    let told = json(at, "compress large.posterior --inducing 100 -o small.posterior");
    assert_eq!((&told["rows"], &told["points"]), (&360.into(), &100.into()));
    // A smooth function of two columns.
    assert!(
        told["mean_error"].as_f64().unwrap() < 0.1 && told["notes"].as_array().unwrap().is_empty(),
        "{told}"
    );
    assert!(told["plan"]["peak_bytes"].as_u64().unwrap() > 0);
    let score = |model: &str| {
        let found = json(at, &format!("evaluate {model} new.csv"));
        found["model"]["rmse"].as_f64().or(found["rmse"].as_f64())
    };
    let (large, small) = (score("large.posterior").unwrap(), score("small.posterior").unwrap());
    assert!((small / large - 1.0).abs() < 0.1, "{small} {large}");
    let text = String::from_utf8(run(at, "inspect small.posterior").stdout).unwrap();
    assert!(text.contains("100 points carry what 360 rows carried"), "{text}");
    // Its predictions are planned with as many kernel values as there are points.
    write_table(&at.join("many.csv"), 20_000);
    let planned = |model: &str| {
        let said = run(at, &format!("predict {model} many.csv -o p.csv --force")).stderr;
        let said = String::from_utf8(said).unwrap();
        let words: Vec<&str> = said.split("flop").next().unwrap().split_whitespace().collect();
        let [.., flops, unit] = words[..] else { panic!("{said}") };
        let unit = ["M", "G", "T"].iter().position(|u| *u == unit).unwrap();
        flops.parse::<f64>().unwrap() * 1000f64.powi(unit as i32)
    };
    let (many, few) = (planned("large.posterior"), planned("small.posterior"));
    assert!((few / many * 3.6 - 1.0).abs() < 0.3, "{few} {many}");
    // What is there is not replaced by accident, and what cannot be compressed says why.
    assert!(error(at, "compress large.posterior -o large.posterior").contains("large.posterior"));
    std::fs::write(at.join("notes.txt"), "mine").unwrap();
    assert!(error(at, "compress large.posterior --inducing 50 -o notes.txt").contains("--force"));
    json(at, "fit new.csv --target y --method exact --set steps=3 --set restarts=1 -o exact.posterior");
    assert!(error(at, "compress exact.posterior --inducing 10 -o o.posterior").contains("--method sap"));
    assert!(error(at, "compress small.posterior --inducing 10 -o o.posterior").contains("already"));
    assert!(
        error(at, "compress large.posterior --inducing 100 --memory 0.00001 -o o.posterior")
            .contains("--memory")
    );
    assert!(!at.join("o.posterior").exists());
}
