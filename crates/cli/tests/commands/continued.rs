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
    json(at, "fit t.csv --target y --set restarts=1 --set steps=20 -o m.posterior");
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
    let found = json(at, "fit more.csv --continue m.posterior -o n.posterior");
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
    let scored = json(at, "evaluate n.posterior all.csv");
    assert_eq!(scored["scored_rows"].as_str(), Some("training"), "{scored}");

    // Rows that do not fit are warned of, rows that repeat are counted.
    let output = run(at, "fit wild.csv --continue m.posterior -o w.posterior");
    let [text, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(text.contains("30 rows that were added do not fit what was learned before"), "{text}");
    assert!(said.contains("plan: adding 30 rows to 60 needs"), "{said}");
    let again = json(at, "fit t.csv more.csv --continue m.posterior -o w.posterior");
    assert_eq!(again["continued"][0]["repeated"].as_u64(), Some(60));
}

#[test]
fn what_cannot_be_continued_is_refused_with_the_way_out() {
    let folder = folder();
    let at = folder.path();
    let go_on = "fit more.csv --continue m.posterior";
    for (more, flag) in [
        ("--target y", "--target"),
        ("--kernel se", "--kernel"),
        ("--method exact", "--method"),
        ("--set restarts=2", "--set restarts"),
        ("--hyperparameters m.posterior", "--hyperparameters"),
        ("--test-fraction 0.2", "--test-fraction"),
        ("--seed 3", "--seed"),
        ("--stream", "--stream"),
        ("--missing drop", "--missing"),
    ] {
        let said = error(at, &format!("{go_on} {more} -o n.posterior"));
        assert!(
            said.contains(&format!("error: {flag} ")) && said.contains("--continue keeps"),
            "{more}: {said}"
        );
        assert_eq!(run(at, &format!("{go_on} {more} -o n.posterior")).status.code(), Some(2));
    }
    std::fs::write(
        at.join("c.toml"),
        "continue = \"m.posterior\"\ndata = \"more.csv\"\noutput = \"n.posterior\"\n",
    )
    .unwrap();
    assert_eq!(json(at, "fit --config c.toml")["n"].as_u64(), Some(90));
    std::fs::write(at.join("c.toml"), "kernel = \"se\"\n").unwrap();
    assert!(error(at, &format!("{go_on} --config c.toml -o n.posterior")).contains("--kernel"));
    std::fs::write(
        at.join("c.toml"),
        "[[hyperprior]]\nparameter = \"noise_variance\"\ndensity = \"gamma\"\nshape = 3.0\nrate = 1.0\n",
    )
    .unwrap();
    assert!(error(at, &format!("{go_on} --config c.toml -o n.posterior")).contains("[[hyperprior]]"));

    // An output never replaces an input.
    let before = std::fs::read(at.join("m.posterior")).unwrap();
    let said = error(at, &format!("{go_on} -o m.posterior"));
    assert!(said.contains("would destroy it"), "{said}");
    assert_eq!(std::fs::read(at.join("m.posterior")).unwrap(), before);
    let said = error(at, &format!("{go_on} --memory 0.01 -o x.posterior"));
    assert!(said.contains("above the limit") && said.contains("--memory") && said.len() < 300, "{said}");
    assert!(!at.join("x.posterior").exists());
    assert!(error(at, "fit t.csv -o x.posterior").contains("--target"));
    std::fs::write(at.join("blue.csv"), "a,b,colour,y\n1,2,blue,3\n").unwrap();
    assert!(error(at, "fit blue.csv --continue m.posterior -o x.posterior").contains("`blue`"));

    json(at, "fit t.csv --target y --method sgpr --set inducing=10 --set steps=2 -o i.posterior");
    let said = error(at, "fit more.csv --continue i.posterior -o x.posterior");
    assert!(said.contains("posterior stream --model") && said.len() < 300, "{said}");
    json(
        at,
        "fit t.csv --target colour --inference gaussianised --pseudo-count 0.1 --set restarts=1 --set steps=2 -o c.posterior",
    );
    let said = error(at, "fit more.csv --continue c.posterior -o x.posterior");
    assert!(said.contains("classes") && said.contains("fit all rows anew"), "{said}");
    for (model, flag) in [("c", "--joint k.npy"), ("c", "--leave-one-out"), ("i", "--leave-one-out")] {
        let said = error(at, &format!("predict {model}.posterior t.csv {flag} -o p.csv"));
        assert!(said.contains(flag.split(' ').next().unwrap()) && said.len() < 300, "{said}");
    }
}

#[test]
fn training_rows_are_predicted_from_the_others() {
    let folder = folder();
    let at = folder.path();
    let line = "predict m.posterior t.csv --leave-one-out --quantiles 0.1,0.9";
    let report = json(at, &format!("{line} -o loo.csv"));
    assert_eq!(report["n"].as_u64(), Some(60));
    assert!(report["notes"][0].as_str().unwrap().contains("from all other training rows"), "{report}");
    // What the check of a fit says of these rows whose hyperparameters have seen them.
    json(at, "fit t.csv --target y --hyperparameters m.posterior -o given.posterior");
    let header = json(at, "inspect given.posterior")["header"].clone();
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
    let said = error(at, "predict m.posterior t.csv more.csv --leave-one-out -o loo.csv");
    assert!(said.contains("more.csv, row 1: the model was not trained on this row"), "{said}");
    let said = error(at, &format!("{line} --stream -o loo.csv"));
    assert!(said.contains("--leave-one-out") && said.contains("--stream"), "{said}");
    let said = error(at, &format!("{line} --samples 3 -o loo.csv"));
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
                "fit t.csv --target y --method cg --set samples=8 --set random-features=50 --set blocks=1 --set block-size=20 --set refining-rows=0 --set steps=3 --held-back 0 -o s.posterior",
            );
        }
        let line = format!("predict {model}.posterior more.csv --joint k.npy -o p.csv --force");
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
    let said = error(at, "predict s.posterior more.csv --joint k.npy --variances exact -o p.csv");
    assert!(said.contains("--variances"), "{said}");
    let said = error(at, "predict m.posterior more.csv --joint k.npy --stream -o p.csv");
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
    let said = "--set text.delimiter=; --set text.decimal=, --set text.encoding=windows-1252";
    let net = "kind = \"perceptron\"\ninputs = 2\nhidden = [4]\noutputs = 1\nactivation = \"tanh\"\n";
    std::fs::write(at.join("net.toml"), net).unwrap();
    let columns = |found: &Value| -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap().to_string();
        found["columns"].as_array().unwrap().iter().map(|c| (text(&c["name"]), text(&c["kind"]))).collect()
    };
    let expected = ["größe", "maß", "y"].map(|name| (name.to_string(), "number".to_string()));
    assert_eq!(columns(&json(at, &format!("inspect g.csv {said}"))), expected);
    // Said otherwise, it is otherwise: the flag reaches the reader.
    let points = columns(&json(
        at,
        "inspect g.csv --set text.delimiter=; --set text.decimal=. --set text.encoding=windows-1252",
    ));
    // `1,045` is 1045 then, and `0,123` is no number.
    assert!(points.iter().map(|(_, kind)| &kind[..]).eq(["text", "number", "number"]), "{points:?}");
    assert!(error(at, "inspect net.toml --set text.decimal=,").contains("for tables"));

    let train = "train net.toml g.csv --target y --loss gaussian --epochs 2 -o n.safetensors";
    json(at, &format!("{train} {said}"));
    error(
        at,
        &format!("{train} --set text.delimiter=; --set text.decimal=. --set text.encoding=windows-1252"),
    );
    let fit =
        "fit g.csv --network n.safetensors --target y --likelihood gaussian --method full -o n.posterior";
    json(at, &format!("{fit} {said}"));
    assert!(error(at, &format!("{fit} --set text.encoding=utf-8")).contains("no column `größe`"));
    let go_on = "fit g.csv --continue n.posterior -o n2.posterior";
    json(at, &format!("{go_on} {said}"));
    assert!(error(at, &format!("{go_on} --set text.encoding=utf-8")).contains("no column `größe`"));

    let optimize = "optimize start o.json --candidates g.csv";
    json(at, &format!("{optimize} {said}"));
    let begun = json(at, "optimize status o.json");
    assert_eq!(begun["axes"], serde_json::json!(["größe", "maß", "y"]));
    let points = error(
        at,
        &format!(
            "{optimize} --set text.delimiter=; --set text.decimal=. --set text.encoding=windows-1252 --force"
        ),
    );
    assert!(points.contains("column `größe` is text"), "{points}");
    assert!(error(at, "optimize start p.json --space a:0..1 --set text.decimal=,").contains("--candidates"));

    let start = "label start l.json g.csv";
    let begun = json(at, &format!("{start} {said}"));
    assert_eq!(begun["features"], serde_json::json!(["größe", "maß", "y"]));
    // The pool is read again as it was.
    assert!(json(at, "label ask l.json -n 2")["questions"].is_array());
    let other = json(at, &format!("{start} --set text.encoding=utf-8 --force"));
    assert_ne!(other["features"], begun["features"]);

    let fit = "fit g.csv --target y --set restarts=1 --set steps=5 -o g.posterior";
    json(at, &format!("{fit} {said}"));
    json(at, &format!("fit g.csv --continue g.posterior -o g2.posterior {said}"));
    assert!(
        error(at, "fit g.csv --continue g.posterior -o g2.posterior --set text.encoding=utf-8")
            .contains("no column `größe`")
    );

    let stream = "stream s.stream g.csv -o s.csv";
    let begun = json(at, &format!("{stream} --target y --start-rows 40 --inducing-points 8 {said}"));
    assert_eq!(begun["counts"]["rows"].as_u64(), Some(60), "{begun}");
    // The state knows how its file is read, and another way is refused.
    assert_eq!(json(at, &format!("{stream} {said}"))["counts"]["rows"].as_u64(), Some(60));
    assert!(error(at, &format!("{stream} --set text.decimal=.")).contains("--set text.decimal"));
    assert!(error(at, "stream t.stream g.csv --target y --set text.encoding=utf-16").contains("UTF-16"));
}
