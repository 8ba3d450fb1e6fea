//! Several targets in one model: each is what a fit of its own would be, to the last bit; what they share is what it says.

use super::running::{error, json, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// 80 rows of two columns, a fold, a day, two numbers (of which one has gaps), classes and counts.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("x,z,fold,day,y,w,kind,visits\n");
    for i in 0..80 {
        let (x, z) = ((i as f64 * 0.618_034) % 1.0, (i as f64 * 0.414_214) % 1.0);
        let noise = 0.05 * (i as f64 * 12.9898).sin();
        let w = if i % 9 == 4 { String::new() } else { format!("{}", 40.0 - 7.0 * x * z + noise) };
        let kind = if i % 11 == 7 { "" } else { ["red", "green", "blue"][(3.0 * (x + z) / 2.0) as usize] };
        let visits = (12.0 * x + 3.0 * (i as f64 * 78.233).sin().abs()) as usize;
        text += &format!(
            "{x},{z},{},2021-{:02}-{:02},{},{w},{kind},{visits}\n",
            i % 3,
            1 + i / 28,
            1 + i % 28,
            (4.0 * x).sin() + z + noise
        );
    }
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    folder
}

const FIT: &str = "fit t.csv --features x,z --set optimizer=adam --set steps=25 --set restarts=1";

/// Without what differs from run to run, and what is of several targets.
fn comparable(found: &Value) -> Value {
    let mut found = found.clone();
    let own = found.as_object_mut().unwrap();
    let gone = ["model", "seconds", "target", "peak_memory_bytes", "planned_memory_bytes", "report"];
    gone.iter().for_each(|key| drop(own.remove(*key)));
    own.get_mut("models").and_then(Value::as_array_mut).into_iter().flatten().for_each(|model| {
        model["seconds"] = Value::Null;
    });
    // Seconds of what was tried.
    own.remove("tried");
    found
}

fn columns(found: &Value) -> BTreeMap<String, Value> {
    found["predictions"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[test]
fn two_targets_in_one_file_are_two_fits_of_their_own() {
    let folder = folder();
    let at = folder.path();
    for (targets, split, scored) in [
        (["y", "w"], "--test-fraction 0.25", true),
        (["kind", "w"], "--folds 3", false),
        (["visits", "kind"], "--folds fold --fold 1", true),
    ] {
        let both = json(at, &format!("{FIT} --target {} {split} -o both.posterior", targets.join(",")));
        assert!(both["shared_kernel"].is_null() && both["targets"].as_array().unwrap().len() == 2);
        let predict =
            |name: &str, more: &str| columns(&json(at, &format!("predict {name}.posterior t.csv {more}")));
        let all = predict("both", "");
        let (mut names, split_again) = (Vec::new(), if scored { split } else { "--folds 3 --fold 0" });
        let evaluated = json(at, &format!("evaluate both.posterior t.csv {split_again}"));
        for (k, target) in targets.iter().enumerate() {
            let own = json(at, &format!("{FIT} --target {target} {split} -o own.posterior"));
            let found = &both["targets"][k];
            assert_eq!(found["target"], *target);
            for key in ["hyperparameters", "n", "left_out", "folds", "check", "recalibration", "notes"] {
                assert_eq!(found[key], own[key], "{target}: {key}");
            }
            assert_eq!(own["left_out"].is_object(), scored, "{split}");
            for (name, values) in predict("own", "") {
                let named = if name.starts_with(target) { name } else { format!("{target}_{name}") };
                assert_eq!(all[&named], values, "{named}");
                names.push(named);
            }
            let own = json(at, &format!("evaluate own.posterior t.csv {split_again}"));
            assert_eq!(evaluated["targets"][k]["target"], *target);
            assert_eq!(comparable(&evaluated["targets"][k]), comparable(&own), "{target}");
        }
        names.sort();
        assert_eq!(names, all.keys().cloned().collect::<Vec<_>>());
    }
}

#[test]
fn what_is_asked_of_one_kind_is_answered_for_the_targets_of_that_kind() {
    let folder = folder();
    let at = folder.path();
    json(at, &format!("{FIT} --target y,kind,w -o m.posterior"));
    let line = "predict m.posterior t.csv";
    let found = json(at, &format!("{line} --quantiles 0.1,0.9 --samples 2 --top 1 --sets 0.8"));
    let names = columns(&found);
    for name in ["y_q0.1", "w_q0.9", "y_sample_2", "kind_class_1", "kind_set", "kind_predicted", "w_mean"] {
        assert!(names.contains_key(name), "{name}: {:?}", names.keys());
    }
    assert!(!names.contains_key("kind_p_red") && names["kind_set"][0].is_array());
    let notes = found["notes"].to_string();
    assert!(notes.contains("--quantiles of y, w") && notes.contains("--top of kind"), "{notes}");
    // Draws of different targets are independent of each other.
    let spread = |target: &str| -> Vec<f64> {
        let of =
            |column: String| names[&column].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let (draw, mean): (Vec<f64>, Vec<f64>) =
            (of(format!("{target}_sample_1")), of(format!("{target}_mean")));
        draw.iter().zip(mean).map(|(a, b)| a - b).collect()
    };
    let (a, b) = (spread("y"), spread("w"));
    assert!(a.iter().zip(&b).any(|(a, b)| a.signum() != b.signum()));
    // Part by part, the same columns to the last bit.
    for (name, more) in [("whole.csv", "--stream false"), ("parts.csv", "--stream")] {
        let output = run(at, &format!("{line} --quantiles 0.5 -o {name} {more}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    let whole = read("whole.csv");
    assert!(whole.lines().next().unwrap().ends_with("w_q0.5") && whole.lines().count() == 81);
    let head = |text: &str| text.lines().next().unwrap().to_string();
    assert_eq!(head(&whole), head(&read("parts.csv")));
    for (more, part) in [
        ("-o p.npy", "an array holds the predictions of one target"),
        ("--samples 2 --samples-out p.npy -o p.csv", "--samples-out is an array of one target"),
        ("--joint p.npy", "--joint is the covariance of one target"),
        ("--samples 2 --stream -o p.csv", "drawn jointly"),
    ] {
        let text = error(at, &format!("{line} {more}"));
        assert!(text.contains(part), "{more}: {text}");
    }
    // What only classes have is refused where there are none.
    json(at, &format!("{FIT} --target y,w -o n.posterior"));
    let text = error(at, "predict n.posterior t.csv --top 2");
    assert!(text.contains("target `y`: --top is for classes"), "{text}");
    // Other models of all targets, side by side; a page with a section of each.
    let found = json(at, "evaluate m.posterior t.csv --against m.posterior --report r.html");
    assert_eq!(found["targets"][1]["models"].as_array().unwrap().len(), 2);
    let page = read("r.html");
    assert!(page.contains("target kind") && page.contains("target w"));
    let text = error(at, "evaluate m.posterior t.csv --against n.posterior");
    assert!(text.contains("has no target `kind`"), "{text}");
    let compared = json(at, &format!("{FIT} --target w -o own.posterior"));
    assert_eq!(compared["target"], "w");
    json(at, "evaluate own.posterior t.csv --against m.posterior");
    let described = String::from_utf8(run(at, "inspect m.posterior --report i.html").stdout).unwrap();
    assert!(described.contains("targets: y, kind, w") && described.contains("Target kind"), "{described}");
    assert!(read("i.html").len() > 1000);
    let found = json(at, "inspect m.posterior");
    assert!(found["kind"] == "targets" && found["targets"][2]["header"]["schema"]["target"] == "w");
}

fn shared(at: &Path, more: &str) -> Value {
    json(at, &format!("{FIT} --share-kernel -o m.posterior {more}"))
}

#[test]
fn a_shared_kernel_is_in_every_target_and_its_evidence_is_their_sum() {
    let folder = folder();
    let at = folder.path();
    let text = std::fs::read_to_string(at.join("t.csv")).unwrap();
    // A third number, so that there are gaps in one of two and none in others.
    let more: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            0 => format!("{line},v"),
            _ => {
                let x: f64 = line.split(',').next().unwrap().parse().unwrap();
                format!("{line},{}", 3.0 * (4.0 * x).cos() + 0.1 * (i as f64 * 4.1).sin())
            }
        })
        .collect();
    std::fs::write(at.join("t.csv"), more.join("\n")).unwrap();
    let found = shared(at, "--target y,v,kind");
    let joint = &found["shared_kernel"];
    assert_eq!((&joint["targets"], &joint["rows"]), (&serde_json::json!(["y", "v"]), &80.into()));
    let evidence = |k: usize| found["targets"][k]["log_evidence"].as_f64().unwrap();
    let sum = joint["log_evidence"].as_f64().unwrap();
    assert!((evidence(0) + evidence(1) - sum).abs() < 1e-9 * sum.abs());
    let lengthscale = |k: usize| {
        let own = found["targets"][k]["hyperparameters"].as_array().unwrap().clone();
        own.into_iter().find(|h| h["name"] == "matern32.lengthscale").unwrap()
    };
    assert_eq!(lengthscale(0), lengthscale(1));
    assert_ne!(lengthscale(0), lengthscale(2));
    // Rows without one of the targets are counted, and learned from by the other.
    let found = shared(at, "--target y,w");
    assert_eq!(
        (&found["shared_kernel"]["rows"], &found["shared_kernel"]["rows_left_out"]),
        (&71.into(), &9.into())
    );
    assert_eq!([&found["targets"][0]["n"], &found["targets"][1]["n"]], [80, 71]);
    // The same of rows that are left out, and again by the hyperparameters of the file.
    let found = shared(at, "--target y,v --test-fraction 0.25");
    assert_eq!(found["shared_kernel"]["rows"], 60);
    assert!(found["targets"][1]["left_out"]["nll"].is_number());
    let again = json(
        at,
        "fit t.csv --features x,z --target v,y --test-fraction 0.25 --hyperparameters m.posterior -o again.posterior",
    );
    for (a, b) in [(0, 1), (1, 0)] {
        assert_eq!(found["targets"][a]["left_out"], again["targets"][b]["left_out"]);
    }
    let crossed = shared(at, "--target y,v --folds 3");
    assert_eq!(crossed["targets"][0]["folds"]["scored"], 3);
    let described = String::from_utf8(run(at, "inspect m.posterior").stdout).unwrap();
    assert!(described.contains("y, v share kernel and noise"), "{described}");
    // Large tables search on blocks; every method conditions under what was found.
    let blocks = "--method sgpr --set inducing=20 --set iterations=2";
    let found =
        json(at, &format!("fit t.csv --features x,z --target y,v --share-kernel {blocks} -o s.posterior"));
    assert_eq!(found["shared_kernel"]["blocks"], serde_json::json!([80]));
    for (more, part) in [
        ("--target y", "several targets"),
        ("--target y,kind", "two numeric targets at least"),
        ("--target y,v --hyperparameters m.posterior", "leave one out"),
        ("--target y,v --method dkl", "learns features"),
        ("--target y,v --stream", "tables in memory"),
    ] {
        let text = error(at, &format!("fit t.csv --features x,z --share-kernel -o e.posterior {more}"));
        assert!(text.contains(part) && text.lines().last().unwrap().len() < 300, "{more}: {text}");
    }
}

#[test]
fn targets_stand_in_configurations_and_are_refused_with_the_reason() {
    let folder = folder();
    let at = folder.path();
    let found = json(at, &format!("{FIT} --target y,w -o a.posterior"));
    for list in ["[\"y\", \"w\"]", "\"y, w\"", "[5, \"w\"]"] {
        let text = format!(
            "data = \"t.csv\"\nfeatures = [\"x\", \"z\"]\noptimizer = \"adam\"\nsteps = 25\nrestarts = 1\ntarget = {list}\noutput = \"b.posterior\"\n"
        );
        std::fs::write(at.join("c.toml"), text).unwrap();
        let own = json(at, "fit --config c.toml");
        for k in 0..2 {
            assert_eq!(
                own["targets"][k]["hyperparameters"], found["targets"][k]["hyperparameters"],
                "{list}"
            );
        }
    }
    // Part by part, the same models.
    let parts = json(at, &format!("{FIT} --target y,w --stream -o p.posterior"));
    assert_eq!(parts["targets"][1]["hyperparameters"], found["targets"][1]["hyperparameters"]);
    for (more, part) in [
        ("--target y,nothing", "nothing"),
        ("--target y,w,y", "`y` twice"),
        ("--target y,w --noise day", "--noise is a column of variances of one target"),
        ("--target y,x", "`x` is a target, and no target is a feature"),
        ("--target y,w --stream --folds 3", "name one --fold"),
        ("--target y,w --memory 0.00001", "memory"),
    ] {
        let text = error(at, &format!("{FIT} -o e.posterior {more}"));
        assert!(text.contains(part) && text.lines().last().unwrap().len() < 300, "{more}: {text}");
    }
    assert!(!at.join("e.posterior").exists());
    let text = error(at, "fit t.csv --features z --target x --hyperparameters a.posterior -o e.posterior");
    assert!(text.contains("no target `x`") && text.contains("y, w"), "{text}");
    for (line, part) in [
        ("compress a.posterior -o e.posterior", "no process of numbers"),
        ("stream e.stream t.csv --model a.posterior", "several targets"),
    ] {
        let text = error(at, line);
        assert!(text.contains(part), "{line}: {text}");
    }
    // A budget of time is that of all of them, and their plans are said.
    let output = run(at, &format!("{FIT} --target y,w --time-budget 60 -o t.posterior"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("plan: 2 targets one after the other"), "{said}");
    assert!(said.contains("target y (1 of 2)") && said.contains("target w (2 of 2)"), "{said}");
}

/// Ctrl-C while the second of two targets is fitted: an error, and no file.
#[cfg(unix)]
#[test]
fn an_interrupted_fit_writes_nothing() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut text = String::from("x,z,y,w\n");
    for i in 0..2500 {
        let (x, z) = ((i as f64 * 0.618_034) % 1.0, (i as f64 * 0.414_214) % 1.0);
        text += &format!("{x},{z},{},{}\n", (9.0 * x).sin() * z, (i as f64 * 12.9898).sin());
    }
    std::fs::write(at.join("t.csv"), text).unwrap();
    let line =
        "fit t.csv --target y,w --method sdd --set iterations=100000000 --time-budget 600 -o m.posterior";
    let mut child = Command::new(env!("CARGO_BIN_EXE_posterior"))
        .current_dir(at)
        .args(line.split_whitespace())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(Ok(line)) = said.next() {
        if line.contains("target y (1 of 2)") {
            break;
        }
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let rest: Vec<String> = said.map_while(Result::ok).collect();
    assert!(!child.wait().unwrap().success());
    assert!(
        rest.iter().any(|line| line.contains("interrupted; m.posterior has not been written")),
        "{rest:?}"
    );
    assert!(!at.join("m.posterior").exists());
}
