//! Rows that are added to a saved process, training rows predicted from the others, covariances: as users run them.

use super::running::{error, json, run};
use posterior::data::{ReadOptions, read_array};
use serde_json::Value;
use std::path::Path;

fn table(rows: std::ops::Range<u32>, error: f64) -> String {
    let row = |i: u32| {
        let (a, b) = (f64::from(i * 37 % 101) / 100.0, 50.0 + 7.0 * (f64::from(i) * 1.7).sin());
        let y = (6.0 * a).sin() + 0.02 * b + error * (f64::from(i) * 12.9).sin();
        format!("{a},{b},{},{y}\n", ["red", "green"][i as usize % 2])
    };
    "a,b,colour,y\n".to_string() + &rows.map(row).collect::<String>()
}

/// A folder with a model of 60 rows.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let write = |name: &str, text: String| std::fs::write(at.join(name), text).unwrap();
    write("t.csv", table(0..60, 0.1));
    write("more.csv", table(60..90, 0.1));
    write("all.csv", table(0..90, 0.1));
    write("wild.csv", table(60..90, 3.0));
    json(at, "fit gp --data t.csv --target y --restarts 1 --steps 20 --out m.posterior");
    folder
}

fn column(folder: &Path, name: &str, column: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let mut lines = text.lines();
    let place = lines.next().unwrap().split(',').position(|c| c == column).unwrap();
    lines.map(|line| line.split(',').nth(place).unwrap().parse().unwrap_or(f64::NAN)).collect()
}

#[test]
fn rows_are_added_to_a_model_and_it_says_so() {
    let folder = folder();
    let at = folder.path();
    let found = json(at, "fit gp --continue m.posterior --data more.csv --out n.posterior");
    assert_eq!((found["n"].as_u64(), found["method"].as_str()), (Some(90), Some("exact")));
    let told = &found["continued"][0];
    assert_eq!((told["rows_before"].as_u64(), told["rows_added"].as_u64()), (Some(60), Some(30)));
    assert_eq!(
        (found["check"]["rows"].as_u64(), found["check"]["on"].as_str()),
        (Some(90), Some("leave-one-out"))
    );
    assert!(found["planned_memory_bytes"].as_u64() > Some(8 * 90 * 90));
    // The same as a fit with these hyperparameters but for its units, which are those of 60 rows.
    let inspected = json(at, "inspect n.posterior");
    assert_eq!(inspected["header"]["continued"], found["continued"]);
    assert_eq!(
        inspected["header"]["standardisation"],
        json(at, "inspect m.posterior")["header"]["standardisation"]
    );
    let output = run(at, "inspect n.posterior");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("rows added: 30 to 60, hyperparameters kept"), "{text}");
    assert!(text.contains("kept from the fit to 60 rows") && !text.contains("do not fit"), "{text}");
    let scored = json(at, "evaluate --model n.posterior --data all.csv");
    assert_eq!(scored["scored_rows"].as_str(), Some("training"), "{scored}");

    // Rows that do not fit are warned of, rows that repeat are counted.
    let output = run(at, "fit gp --continue m.posterior --data wild.csv --out w.posterior");
    let [text, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(text.contains("30 rows that were added do not fit what was learned before"), "{text}");
    assert!(said.contains("plan: adding 30 rows to 60 needs"), "{said}");
    let again = json(at, "fit gp --continue m.posterior --data t.csv more.csv --out w.posterior");
    assert_eq!(again["continued"][0]["repeated"].as_u64(), Some(60));
}

#[test]
fn what_cannot_be_continued_is_refused_with_the_way_out() {
    let folder = folder();
    let at = folder.path();
    let go_on = "fit gp --continue m.posterior --data more.csv";
    for (more, flag) in [
        ("--target y", "--target"),
        ("--kernel se", "--kernel"),
        ("--method exact", "--method"),
        ("--restarts 2", "--restarts"),
        ("--hyperparameters m.posterior", "--hyperparameters"),
        ("--test-fraction 0.2", "--test-fraction"),
        ("--seed 3", "--seed"),
        ("--stream", "--stream"),
        ("--missing drop", "--missing"),
    ] {
        let said = error(at, &format!("{go_on} {more} --out n.posterior"));
        assert!(
            said.contains(&format!("error: {flag} ")) && said.contains("--continue keeps"),
            "{more}: {said}"
        );
        assert_eq!(run(at, &format!("{go_on} {more} --out n.posterior")).status.code(), Some(2));
    }
    std::fs::write(
        at.join("c.toml"),
        "continue = \"m.posterior\"\ndata = \"more.csv\"\nout = \"n.posterior\"\n",
    )
    .unwrap();
    assert_eq!(json(at, "fit gp --config c.toml")["n"].as_u64(), Some(90));
    std::fs::write(at.join("c.toml"), "kernel = \"se\"\n").unwrap();
    assert!(error(at, &format!("{go_on} --config c.toml --out n.posterior")).contains("--kernel"));
    std::fs::write(
        at.join("c.toml"),
        "[[hyperprior]]\nparameter = \"noise_variance\"\ndensity = \"gamma\"\nshape = 3.0\nrate = 1.0\n",
    )
    .unwrap();
    assert!(error(at, &format!("{go_on} --config c.toml --out n.posterior")).contains("[[hyperprior]]"));

    // An output never replaces an input.
    let before = std::fs::read(at.join("m.posterior")).unwrap();
    let said = error(at, &format!("{go_on} --out m.posterior"));
    assert!(said.contains("would destroy it"), "{said}");
    assert_eq!(std::fs::read(at.join("m.posterior")).unwrap(), before);
    let said = error(at, &format!("{go_on} --memory 0.01 --out x.posterior"));
    assert!(said.contains("above the limit") && said.contains("--memory") && said.len() < 300, "{said}");
    assert!(!at.join("x.posterior").exists());
    assert!(error(at, "fit gp --data t.csv --out x.posterior").contains("--target"));
    std::fs::write(at.join("blue.csv"), "a,b,colour,y\n1,2,blue,3\n").unwrap();
    assert!(error(at, "fit gp --continue m.posterior --data blue.csv --out x.posterior").contains("`blue`"));

    json(at, "fit gp --data t.csv --target y --method sgpr --inducing 10 --steps 2 --out i.posterior");
    let said = error(at, "fit gp --continue i.posterior --data more.csv --out x.posterior");
    assert!(said.contains("posterior stream --model") && said.len() < 300, "{said}");
    json(
        at,
        "fit gp --data t.csv --target colour --inference gaussianised --pseudo-count 0.1 --restarts 1 --steps 2 --out c.posterior",
    );
    let said = error(at, "fit gp --continue c.posterior --data more.csv --out x.posterior");
    assert!(said.contains("classes") && said.contains("fit all rows anew"), "{said}");
    for (model, flag) in [("c", "--joint k.npy"), ("c", "--leave-one-out"), ("i", "--leave-one-out")] {
        let said = error(at, &format!("predict --model {model}.posterior --data t.csv {flag} --out p.csv"));
        assert!(said.contains(flag.split(' ').next().unwrap()) && said.len() < 300, "{said}");
    }
}

#[test]
fn training_rows_are_predicted_from_the_others() {
    let folder = folder();
    let at = folder.path();
    let line = "predict --model m.posterior --data t.csv --leave-one-out --quantiles 0.1,0.9";
    let report = json(at, &format!("{line} --out loo.csv"));
    assert_eq!(report["n"].as_u64(), Some(60));
    assert!(report["notes"][0].as_str().unwrap().contains("from all other training rows"), "{report}");
    // What the check of the fit says of these rows.
    let header = json(at, "inspect m.posterior")["header"].clone();
    let scale = header["standardisation"]["target_scale"].as_f64().unwrap();
    let [mean, truth] = ["y_mean", "y"].map(|name| column(at, "loo.csv", name));
    let square = mean.iter().zip(&truth).map(|(m, y)| ((m - y) / scale).powi(2)).sum::<f64>() / 60.0;
    let rmse = header["fit"]["check"]["scores"]["rmse"].as_f64().unwrap();
    assert!((square.sqrt() - rmse).abs() < 1e-9, "{square} {rmse}");
    for name in ["y_std", "y_latent_std", "y_q0.1", "y_q0.9"] {
        assert!(column(at, "loo.csv", name).iter().all(|v| v.is_finite()), "{name}");
    }
    // Printed, and the first rows of it.
    let few = json(at, &format!("{line} --limit 5"));
    assert_eq!(few["predictions"]["y_mean"].as_array().map(Vec::len), Some(5));
    assert!((few["predictions"]["y_mean"][4].as_f64().unwrap() - mean[4]).abs() < 1e-9);
    let said = error(at, "predict --model m.posterior --data t.csv more.csv --leave-one-out --out loo.csv");
    assert!(said.contains("more.csv, row 1: the model was not trained on this row"), "{said}");
    let said = error(at, &format!("{line} --stream --out loo.csv"));
    assert!(said.contains("--leave-one-out") && said.contains("--stream"), "{said}");
    let said = error(at, &format!("{line} --samples 3 --out loo.csv"));
    assert!(said.contains("leave one out"), "{said}");
}

#[test]
fn covariances_of_rows_are_written() {
    let folder = folder();
    let at = folder.path();
    for model in ["m", "s"] {
        if model == "s" {
            json(
                at,
                "fit gp --data t.csv --target y --method cg --samples 8 --random-features 50 --blocks 1 --block-size 20 --refining-rows 0 --steps 3 --held-back 0 --out s.posterior",
            );
        }
        let line =
            format!("predict --model {model}.posterior --data more.csv --joint k.npy --out p.csv --force");
        let report = json(at, &line);
        assert_eq!(report["joint"].as_str(), Some("k.npy"));
        let covariance = read_array(&at.join("k.npy"), &ReadOptions::default()).unwrap();
        assert_eq!(covariance.shape(), [30, 30]);
        let (values, deviations) = (covariance.to_f64(), column(at, "p.csv", "y_latent_std"));
        for (i, deviation) in deviations.iter().enumerate() {
            assert!(
                (values[31 * i].sqrt() - deviation).abs() < 1e-6,
                "{model}: {} {deviation}",
                values[31 * i]
            );
        }
        let planned = report["planned_memory_bytes"].as_f64().unwrap();
        let said = error(at, &format!("{line} --memory {}", 0.9e-9 * planned));
        assert!(said.contains("above the limit") && said.contains("--memory"), "{said}");
    }
    let said =
        error(at, "predict --model s.posterior --data more.csv --joint k.npy --variances exact --out p.csv");
    assert!(said.contains("--variances"), "{said}");
    let said = error(at, "predict --model m.posterior --data more.csv --joint k.npy --stream --out p.csv");
    assert!(said.contains("--joint") && said.contains("--stream"), "{said}");
}

/// With `;` between cells, decimal commas and letters of Windows-1252, the first rows of which look otherwise.
fn german(rows: u32) -> Vec<u8> {
    let mut out = b"gr\xf6\xdfe;ma\xdf;y\n".to_vec();
    for i in 0..rows {
        let (a, b) = (i * 37 % 101, i * 53 % 97);
        out.extend(format!("0,{a:03};1,{b:03};2,{:03}\n", (a + b) % 500).bytes());
    }
    out
}

#[test]
fn every_command_reads_texts_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("g.csv"), german(60)).unwrap();
    let said = "--delimiter ; --decimal , --encoding windows-1252";
    let net = "kind = \"perceptron\"\ninputs = 2\nhidden = [4]\noutputs = 1\nactivation = \"tanh\"\n";
    std::fs::write(at.join("net.toml"), net).unwrap();
    let columns = |found: &Value| -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap().to_string();
        found["columns"].as_array().unwrap().iter().map(|c| (text(&c["name"]), text(&c["kind"]))).collect()
    };
    let expected = ["größe", "maß", "y"].map(|name| (name.to_string(), "number".to_string()));
    assert_eq!(columns(&json(at, &format!("inspect g.csv {said}"))), expected);
    // Said otherwise, it is otherwise: the flag reaches the reader.
    let points = columns(&json(at, "inspect g.csv --delimiter ; --decimal . --encoding windows-1252"));
    assert!(points.iter().all(|(_, kind)| kind == "text"), "{points:?}");
    assert!(error(at, "inspect net.toml --decimal ,").contains("for tables"));

    let train = "train --architecture net.toml --data g.csv --target y --loss gaussian --epochs 2 --out n.safetensors";
    json(at, &format!("{train} {said}"));
    error(at, &format!("{train} --delimiter ; --decimal . --encoding windows-1252"));
    let fit = "fit laplace --network n.safetensors --data g.csv --target y --likelihood gaussian --curvature full --out n.posterior";
    json(at, &format!("{fit} {said}"));
    assert!(error(at, &format!("{fit} --encoding utf-8")).contains("no column `größe`"));
    let go_on = "fit laplace --continue n.posterior --data g.csv --out n2.posterior";
    json(at, &format!("{go_on} {said}"));
    assert!(error(at, &format!("{go_on} --encoding utf-8")).contains("no column `größe`"));

    let optimize = "optimize start --state o.json --candidates g.csv";
    json(at, &format!("{optimize} {said}"));
    let begun = json(at, "optimize status --state o.json");
    assert_eq!(begun["axes"], serde_json::json!(["größe", "maß", "y"]));
    let points = error(at, &format!("{optimize} --delimiter ; --decimal . --encoding windows-1252 --force"));
    assert!(points.contains("column `größe` is text"), "{points}");
    assert!(error(at, "optimize start --state p.json --space a:0..1 --decimal ,").contains("--candidates"));

    let start = "label start --state l.json --pool g.csv";
    let begun = json(at, &format!("{start} {said}"));
    assert_eq!(begun["features"], serde_json::json!(["größe", "maß", "y"]));
    // The pool is read again as it was.
    assert!(json(at, "label ask --state l.json -n 2")["questions"].is_array());
    let other = json(at, &format!("{start} --encoding utf-8 --force"));
    assert_ne!(other["features"], begun["features"]);

    let fit = "fit gp --data g.csv --target y --restarts 1 --steps 5 --out g.posterior";
    json(at, &format!("{fit} {said}"));
    json(at, &format!("fit gp --continue g.posterior --data g.csv --out g2.posterior {said}"));
    assert!(
        error(at, "fit gp --continue g.posterior --data g.csv --out g2.posterior --encoding utf-8")
            .contains("no column `größe`")
    );

    let stream = "stream --state s.stream --data g.csv --out s.csv";
    let begun = json(at, &format!("{stream} --target y --start-rows 40 --inducing-points 8 {said}"));
    assert_eq!(begun["counts"]["rows"].as_u64(), Some(60), "{begun}");
    // The state knows how its file is read, and another way is refused.
    assert_eq!(json(at, &format!("{stream} {said}"))["counts"]["rows"].as_u64(), Some(60));
    assert!(error(at, &format!("{stream} --decimal .")).contains("--decimal"));
    assert!(
        error(at, "stream --state t.stream --target y --data g.csv --encoding utf-16").contains("UTF-16")
    );
}
