//! What `fit laplace` does when little or something strange is asked of it: defaults, held-out rows, labels, outputs and inputs of another kind.

use assert_cmd::Command;
use posterior::data::{ArrayValues, NumericArray, write_npy};
use serde_json::Value;
use std::path::Path;

fn posterior(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("posterior").unwrap();
    command.current_dir(folder);
    command
}

fn json(folder: &Path, line: &str) -> Value {
    let output = posterior(folder).args(line.split_whitespace()).arg("--json").output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Status and message of a command that must fail.
fn failure(folder: &Path, line: &str) -> (Option<i32>, String) {
    let output = posterior(folder).args(line.split_whitespace()).output().unwrap();
    assert!(!output.status.success(), "{line} succeeded");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn error(folder: &Path, line: &str) -> String {
    failure(folder, line).1
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn network(at: &Path, name: &str, inputs: usize, outputs: usize) {
    let text = format!(
        "kind = \"perceptron\"\ninputs = {inputs}\nhidden = [20, 20]\noutputs = {outputs}\nactivation = \"tanh\"\n"
    );
    std::fs::write(at.join(name), text).unwrap();
}

/// Uniform numbers in [0, 1) that look random.
fn uniform(i: usize, salt: f64) -> f64 {
    ((i as f64 + 1.0) * 12.9898 + salt).sin().mul_add(43_758.545_3, 0.0).rem_euclid(1.0)
}

/// Standard normals.
fn normal(i: usize, salt: f64) -> f64 {
    let (u, v) = (uniform(2 * i, salt).max(1e-12), uniform(2 * i + 1, salt + 7.7));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// 60 points of a curve with noise of deviation 0.2, 400 more to score on, and a network that fits them closely.
fn curve() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let row = |i: usize| {
        let x = 4.0 * uniform(i, 0.3) - 2.0;
        format!("{x},{}\n", (2.5 * x).sin() + 0.2 * normal(i, 1.1))
    };
    let rows = |range: std::ops::Range<usize>| "x,y\n".to_string() + &range.map(row).collect::<String>();
    std::fs::write(at.join("train.csv"), rows(0..60)).unwrap();
    std::fs::write(at.join("test.csv"), rows(60..460)).unwrap();
    network(at, "net.toml", 1, 1);
    json(
        at,
        "train --architecture net.toml --data train.csv --target y --loss mse --learning-rate 0.01 --batch 16 --epochs 300 --out net.safetensors",
    );
    folder
}

/// Three rings that overlap, labelled in words whose alphabetical order is not that of the radii.
fn rings(at: &Path, name: &str, range: std::ops::Range<usize>) {
    let mut text = String::from("a,b,colour\n");
    for i in range {
        let (kind, angle) = ((3.0 * uniform(i, 5.0)) as usize, std::f64::consts::TAU * uniform(i, 9.0));
        let radius = 0.4 + kind as f64 + 0.35 * normal(i, 2.0);
        text += &format!(
            "{},{},{}\n",
            radius * angle.cos(),
            radius * angle.sin(),
            ["red", "green", "blue"][kind]
        );
    }
    std::fs::write(at.join(name), text).unwrap();
}

fn classifier() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    rings(at, "train.csv", 0..400);
    rings(at, "test.csv", 400..1400);
    network(at, "net.toml", 2, 3);
    json(
        at,
        "train --architecture net.toml --data train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 100 --out net.safetensors",
    );
    folder
}

#[test]
fn the_default_of_a_regression_has_the_coverage_it_claims() {
    let folder = curve();
    let at = folder.path();
    let fit = json(
        at,
        "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --out m.posterior",
    );
    let auto = &fit["header"]["auto"];
    assert_eq!(auto["compared_by"], "evidence", "{auto}");
    assert_eq!(
        fit["header"]["data"]["examples"], 60,
        "nothing is set aside of rows that the network has seen"
    );
    // Without unseen rows neither a win nor a loss is claimed.
    assert!(auto["beats_plain"].is_null() && auto["nll"].is_null() && fit["unseen"].is_null(), "{auto}");
    let notes = fit["notes"].to_string();
    assert!(notes.contains("not compared on unseen data"), "{notes}");
    // The evidence ranks structures of the same weights: the exact one is the best.
    let evidence = |i: usize| number(&auto["candidates"][i]["log_evidence"]);
    assert_eq!(auto["chosen"], auto["candidates"][1]["name"]);
    assert!(evidence(1) > evidence(0), "{auto}");
    let scores = json(at, "evaluate --model m.posterior --data test.csv");
    let (own, plain) = (&scores["models"][0]["scores"]["scores"], &scores["plain"]["scores"]);
    let coverage = number(&own["coverage_95"]);
    // 400 rows: a share of 0.95 is known to 0.011.
    assert!((0.90..=0.99).contains(&coverage), "{coverage}");
    assert!(number(&own["nll"]) < number(&plain["nll"]) + 0.02, "{scores}");
}

#[test]
fn the_default_of_a_classifier_is_no_worse_than_its_network() {
    let folder = classifier();
    let at = folder.path();
    let fit = json(
        at,
        "fit laplace --network net.safetensors --data train.csv --likelihood categorical --out m.posterior",
    );
    assert_eq!(fit["header"]["auto"]["chosen"], "last-layer");
    assert_eq!(fit["header"]["options"]["integration"]["kind"], "monte_carlo");
    assert!(
        number(&fit["effective_dimensions"]) > 1.0,
        "a posterior, and not the plain network under another name"
    );
    let scores = json(at, "evaluate --model m.posterior --data test.csv");
    let (own, plain) = (number(&scores["models"][0]["scores"]["nll"]), number(&scores["plain"]["nll"]));
    assert!(own < plain + 0.02, "{own} {plain}");
}

#[test]
fn rows_that_training_set_aside_are_unseen() {
    let folder = classifier();
    let at = folder.path();
    json(
        at,
        "train --architecture net.toml --data train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 60 --validation-fraction 0.25 --seed 5 --out aside.safetensors",
    );
    let start =
        "fit laplace --network aside.safetensors --data train.csv --likelihood categorical --out m.posterior";
    // By default they compare curvatures with each other and with the network.
    let fit = json(at, start);
    assert_eq!((&fit["unseen"]["examples"], &fit["header"]["data"]["examples"]), (&100.into(), &300.into()));
    let auto = &fit["header"]["auto"];
    assert_eq!(auto["compared_by"], "unseen_examples");
    assert!(auto["candidates"].as_array().unwrap().len() >= 5, "{auto}");
    let best = auto["candidates"].as_array().unwrap().iter().filter_map(|c| c["nll"].as_f64());
    assert_eq!(best.fold(f64::INFINITY, f64::min), number(&auto["nll"]));
    assert_eq!(auto["beats_plain"], number(&auto["nll"]) < number(&auto["plain_nll"]));
    assert!(fit["notes"].to_string().contains("`posterior train` set aside"));
    // A named curvature is scored on them, and may be tuned on them.
    let fit = json(at, &format!("{start} --curvature last-layer"));
    assert_eq!(fit["unseen"]["examples"], 100);
    let fit = json(at, &format!("{start} --curvature last-layer --tune validation"));
    assert_eq!(fit["header"]["summary"]["held_out"]["examples"], 100);
    assert!(fit["notes"].to_string().contains("also chose its hyperparameters"));
    let output = posterior(at).args(["inspect", "m.posterior"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("NLL on unseen rows"), "{text}");
    // Of other data nothing is known.
    let fit = json(at, &start.replace("train.csv", "test.csv"));
    assert!(fit["unseen"].is_null() && fit["header"]["data"]["examples"] == 1000);
    // Too few to score anything: they are learned from, and that is said.
    json(
        at,
        "train --architecture net.toml --data train.csv --target colour --loss cross-entropy --epochs 2 --validation-fraction 0.1 --out few.safetensors",
    );
    let fit = json(at, &start.replace("aside", "few"));
    assert!(fit["unseen"].is_null() && fit["header"]["data"]["examples"] == 400);
    assert!(
        fit["notes"].to_string().contains("40 rows, which `posterior train` set aside, are too few"),
        "{fit}"
    );
}

#[test]
fn rows_that_the_network_has_seen_are_refused_or_called_worthless() {
    let folder = classifier();
    let at = folder.path();
    let start =
        "fit laplace --network net.safetensors --data train.csv --likelihood categorical --out m.posterior";
    for flags in ["", "--curvature full", "--curvature full --tune validation"] {
        let text = error(at, &format!("{start} {flags} --validation-fraction 0.2"));
        assert!(
            text.contains("the network was trained") && text.contains("--validation-data"),
            "{flags}: {text}"
        );
    }
    let text = error(at, &format!("{start} --curvature full --tune cross-validation"));
    assert!(text.contains("the network was trained on") && text.contains("--allow-seen-rows"), "{text}");
    let text = error(at, &format!("{start} --curvature full --tune validation"));
    assert!(text.contains("rows that the network has not seen"), "{text}");
    // The same rows in another file are found; few rows say how many are needed.
    std::fs::copy(at.join("train.csv"), at.join("copy.csv")).unwrap();
    let text = error(at, &format!("{start} --validation-data copy.csv"));
    assert!(text.contains("400 of 400 rows") && text.contains("worthless"), "{text}");
    rings(at, "few.csv", 400..401);
    let text = error(at, &format!("{start} --validation-data few.csv"));
    assert!(text.contains("1 held-out examples are too few") && text.contains("at least 50"), "{text}");
    assert!(!at.join("m.posterior").exists());
    // Insisted upon, the result says what it is worth.
    for flags in ["--tune validation --validation-fraction 0.2", "--tune cross-validation --folds 3"] {
        let fit = json(at, &format!("{start} --curvature last-layer {flags} --allow-seen-rows"));
        assert!(
            fit["notes"].to_string().contains("WARNING: hyperparameters were chosen on rows"),
            "{}",
            fit["notes"]
        );
        assert!(fit["unseen"].is_null());
    }
    let text = error(at, &format!("{start} --allow-seen-rows"));
    assert!(text.contains("--allow-seen-rows belongs to --tune"), "{text}");
    // Rows of their own, also by the flag's old name.
    for flag in ["--validation-data", "--validation"] {
        let fit = json(at, &format!("{start} {flag} test.csv"));
        assert_eq!(fit["unseen"]["examples"], 1000);
    }
}

#[test]
fn names_order_labels_that_are_text() {
    let folder = classifier();
    let at = folder.path();
    let train = "train --architecture net.toml --data train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 60";
    json(at, &format!("{train} --class-names red,green,blue --out ordered.safetensors"));
    // The same weights without what the file knows: outputs are red, green, blue.
    let bytes = std::fs::read(at.join("ordered.safetensors")).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let map = header.as_object_mut().unwrap();
    let preparation: Value =
        serde_json::from_str(map["__metadata__"]["posterior.preparation"].as_str().unwrap()).unwrap();
    assert_eq!(preparation["classes"], serde_json::json!(["red", "green", "blue"]));
    map.remove("__metadata__");
    let head = serde_json::to_vec(&header).unwrap();
    let mut plain = (head.len() as u64).to_le_bytes().to_vec();
    plain.extend(head);
    plain.extend(&bytes[8 + length..]);
    std::fs::write(at.join("plain.safetensors"), plain).unwrap();
    let fit = "fit laplace --network plain.safetensors --architecture net.toml --data train.csv --target colour --preprocess standardise --likelihood categorical --curvature last-layer --out m.posterior";
    json(at, &format!("{fit} --class-names red,green,blue"));
    let accuracy = |scores: &Value| number(&scores["plain"]["accuracy"]);
    let right = accuracy(&json(at, "evaluate --model m.posterior --data test.csv"));
    assert!(right > 0.75, "{right}");
    // Without names the order is said, and here it is wrong.
    let done = json(at, fit);
    assert!(done["notes"].to_string().contains("alphabetical order (blue, green, red)"), "{}", done["notes"]);
    assert!(accuracy(&json(at, "evaluate --model m.posterior --data test.csv")) < 0.6);
    let text = error(at, &format!("{fit} --class-names low,mid,high"));
    assert!(text.contains("`low`, `mid`, `high`") && text.contains("`blue`, `green`, `red`"), "{text}");
    let text = error(at, &format!("{fit} --class-names red,red,blue"));
    assert!(text.contains("`red` twice"), "{text}");
    // A file that knows its classes is not renamed.
    let known = "fit laplace --network ordered.safetensors --data train.csv --likelihood categorical --curvature last-layer --out m.posterior";
    json(at, &format!("{known} --class-names red,green,blue"));
    let text = error(at, &format!("{known} --class-names blue,green,red"));
    assert!(text.contains("`red`, `green`, `blue`, in this order"), "{text}");
    let text = error(at, &format!("{train} --class-names red,green,purple --out never.safetensors"));
    assert!(text.contains("`blue` is not among the names"), "{text}");
}

#[test]
fn a_final_softmax_or_sigmoid_is_taken_off() {
    let folder = classifier();
    let at = folder.path();
    let layers = |end: &str, outputs: usize| {
        format!(
            "kind = \"layers\"\ninput = [2]\n[[layer]]\nname = \"a\"\noperation = \"linear\"\noutputs = 8\n[[layer]]\nname = \"t\"\noperation = \"tanh\"\n[[layer]]\nname = \"b\"\noperation = \"linear\"\noutputs = {outputs}\n{end}"
        )
    };
    let end = |operation: &str| format!("[[layer]]\nname = \"end\"\noperation = \"{operation}\"\n");
    std::fs::write(at.join("logits.toml"), layers("", 3)).unwrap();
    std::fs::write(at.join("softmax.toml"), layers(&end("softmax"), 3)).unwrap();
    std::fs::write(at.join("sigmoid.toml"), layers(&end("sigmoid"), 1)).unwrap();
    std::fs::write(at.join("score.toml"), layers("", 1)).unwrap();
    let common = "--learning-rate 0.02 --batch 32 --epochs 20 --precision f64";
    json(
        at,
        &format!(
            "train --architecture logits.toml --data train.csv --target colour --loss cross-entropy {common} --out logits.safetensors"
        ),
    );
    std::fs::write(at.join("events.csv"), {
        let row =
            |i: usize| format!("{},{},{}\n", normal(i, 3.0), normal(i, 4.0), i32::from(normal(i, 3.0) > 0.0));
        "a,b,y\n".to_string() + &(0..200).map(row).collect::<String>()
    })
    .unwrap();
    json(
        at,
        &format!(
            "train --architecture score.toml --data events.csv --target y --loss mse {common} --out score.safetensors"
        ),
    );
    // The same weights with another end: the architecture is given beside the tensors.
    let bare = |name: &str, out: &str| {
        let bytes = std::fs::read(at.join(name)).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        header.as_object_mut().unwrap().remove("__metadata__");
        let head = serde_json::to_vec(&header).unwrap();
        let mut plain = (head.len() as u64).to_le_bytes().to_vec();
        plain.extend(head);
        plain.extend(&bytes[8 + length..]);
        std::fs::write(at.join(out), plain).unwrap();
    };
    bare("logits.safetensors", "weights.safetensors");
    bare("score.safetensors", "events.safetensors");
    let fit = |architecture: &str, flags: &str| {
        format!(
            "fit laplace --network weights.safetensors --architecture {architecture} --data train.csv --target colour --preprocess standardise --likelihood categorical --curvature last-layer --out m.posterior {flags}"
        )
    };
    let logits = json(at, &fit("logits.toml", ""));
    let softmax = json(at, &fit("softmax.toml", ""));
    assert!(softmax["notes"].to_string().contains("the final softmax was dropped"), "{}", softmax["notes"]);
    assert_eq!(softmax["log_evidence"], logits["log_evidence"]);
    assert_eq!(json(at, &fit("softmax.toml", "--strip-softmax"))["log_evidence"], logits["log_evidence"]);
    let text = error(at, &fit("logits.toml", "--strip-softmax"));
    assert!(text.contains("does not end in a softmax"), "{text}");
    let events = |architecture: &str, flags: &str| {
        format!(
            "fit laplace --network events.safetensors --architecture {architecture} --data events.csv --target y --likelihood bernoulli --curvature last-layer --out m.posterior {flags}"
        )
    };
    let score = json(at, &events("score.toml", ""));
    let sigmoid = json(at, &events("sigmoid.toml", ""));
    assert!(sigmoid["notes"].to_string().contains("the final sigmoid was dropped"), "{}", sigmoid["notes"]);
    assert_eq!(sigmoid["log_evidence"], score["log_evidence"]);
    let text = error(at, &events("sigmoid.toml", "--link probit"));
    assert!(text.contains("leave --link probit out"), "{text}");
    // Probabilities that no operation shows: a head whose outputs sum to one on these features.
    let x: Vec<f64> = (0..120)
        .flat_map(|i| {
            let p = uniform(i, 1.0);
            [p, 1.0 - p]
        })
        .collect();
    let array = |shape: Vec<usize>, values| NumericArray::new(shape, ArrayValues::F64(values)).unwrap();
    write_npy(&at.join("p.npy"), &array(vec![120, 2], x)).unwrap();
    let labels = (0..120).map(|i| i64::from(uniform(i, 1.0) < 0.5)).collect();
    write_npy(&at.join("l.npy"), &NumericArray::new(vec![120], ArrayValues::I64(labels)).unwrap()).unwrap();
    let (w, b) = (array(vec![2, 2], vec![1.0, 0.0, 0.0, 1.0]), array(vec![2], vec![0.0, 0.0]));
    posterior::data::write_npz(&at.join("head.npz"), &[("weight", &w), ("bias", &b)]).unwrap();
    let head = json(
        at,
        "fit laplace --head head.npz --data p.npy --labels l.npy --likelihood categorical --curvature last-layer --out h.posterior",
    );
    assert!(head["notes"].to_string().contains("look like probabilities"), "{}", head["notes"]);
}

#[test]
fn inputs_of_another_kind_or_scale_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Images of two kinds as bytes and as floats of 0 to 1.
    let byte = |i: usize, p: usize| {
        ((255.0 * uniform(i * 16 + p, 0.0)) as u8) / if i.is_multiple_of(2) { 1 } else { 3 }
    };
    let bytes: Vec<u8> = (0..120).flat_map(|i| (0..16).map(move |p| byte(i, p))).collect();
    let write = |name: &str, values| {
        write_npy(&at.join(name), &NumericArray::new(vec![120, 1, 4, 4], values).unwrap()).unwrap();
    };
    write("bytes.npy", ArrayValues::U8(bytes.clone()));
    write("floats.npy", ArrayValues::F32(bytes.iter().map(|b| f32::from(*b) / 255.0).collect()));
    write("large.npy", ArrayValues::F32(bytes.iter().map(|b| f32::from(*b)).collect()));
    let labels = (0..120).map(|i| i64::from(i % 2 == 1)).collect();
    write_npy(&at.join("y.npy"), &NumericArray::new(vec![120], ArrayValues::I64(labels)).unwrap()).unwrap();
    network(at, "net.toml", 16, 2);
    let made = |data: &str, name: &str| {
        json(
            at,
            &format!(
                "train --architecture net.toml --data {data} --labels y.npy --loss cross-entropy --epochs 5 --out {name}.safetensors"
            ),
        );
        json(
            at,
            &format!(
                "fit laplace --network {name}.safetensors --data {data} --labels y.npy --likelihood categorical --out {name}.posterior"
            ),
        );
    };
    made("bytes.npy", "bytes");
    made("floats.npy", "floats");
    for command in ["predict --limit 30", "evaluate --labels y.npy"] {
        let text = error(at, &format!("{command} --model bytes.posterior --data floats.npy"));
        assert!(
            text.contains("floats.npy holds floating-point numbers, the model was fitted on bytes"),
            "{text}"
        );
        let text = error(at, &format!("{command} --model floats.posterior --data bytes.npy"));
        assert!(text.contains("--allow-other-inputs"), "{text}");
        let done =
            json(at, &format!("{command} --model floats.posterior --data bytes.npy --allow-other-inputs"));
        assert!(done["notes"].to_string().contains("taken as they are"), "{}", done["notes"]);
        // The same kind on another scale.
        let done = json(at, &format!("{command} --model floats.posterior --data large.npy"));
        let notes = done["notes"].to_string();
        assert!(notes.contains("WARNING") && notes.contains("outside the range"), "{notes}");
        let done = json(at, &format!("{command} --model floats.posterior --data floats.npy"));
        assert_eq!(done["notes"], serde_json::json!([]));
    }
    made("large.npy", "large");
    let done = json(at, "evaluate --model large.posterior --data floats.npy --labels y.npy");
    assert!(done["notes"].to_string().contains("less than a twentieth"), "{}", done["notes"]);
    // Columns of a table are named.
    let folder = curve();
    let at = folder.path();
    json(
        at,
        "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --curvature last-layer --out m.posterior",
    );
    std::fs::write(at.join("far.csv"), "x\n0.5\n300\n").unwrap();
    let done = json(at, "predict --model m.posterior --data far.csv");
    let notes = done["notes"].to_string();
    assert!(notes.contains("1 of 2 examples") && notes.contains("`x`"), "{notes}");
}

#[test]
fn fixed_points_do_not_run_away_and_fits_that_are_written_predict() {
    let folder = curve();
    let at = folder.path();
    let fit = |flags: &str| {
        json(
            at,
            &format!(
                "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --out m.posterior {flags}"
            ),
        )
    };
    for curvature in ["diagonal", "kronecker", "last-layer"] {
        let best = number(&fit(&format!("--curvature {curvature} --tune evidence"))["log_evidence"]);
        let found = number(&fit(&format!("--curvature {curvature} --tune mackay"))["log_evidence"]);
        assert!((best - found).abs() < 1e-3 * best.abs().max(1.0), "{curvature}: {best} {found}");
    }
    // Single precision, noise as small as it gets: variances in the tangent kernel are differences of large numbers.
    for noise in ["1e-6", "1e-9"] {
        let done = fit(&format!(
            "--curvature function-space --float32 --noise fixed --initial-noise {noise} --tune none --precision 1e-3"
        ));
        assert_eq!(done["precision"], "f32");
        json(at, "predict --model m.posterior --data train.csv");
        json(at, "evaluate --model m.posterior --data test.csv");
    }
}

#[test]
fn flags_without_effect_are_refused() {
    let folder = classifier();
    let at = folder.path();
    json(
        at,
        "fit laplace --network net.safetensors --data train.csv --likelihood categorical --out m.posterior",
    );
    let train = "train --architecture net.toml --data train.csv --target colour --loss cross-entropy --out never.safetensors";
    let fit = "fit laplace --network net.safetensors --data train.csv --likelihood categorical --out never.posterior";
    let gaussian =
        "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --out never.posterior";
    let evaluate = "evaluate --model m.posterior --data test.csv";
    // Command, flags, what the message names.
    let cases = [
        (train, "--momentum 0.5", "--optimizer sgd"),
        (train, "--warm-up 0.2", "--schedule one-cycle"),
        (train, "--drop-every 10", "--schedule step"),
        (train, "--schedule cosine --drop-factor 0.5", "--schedule step"),
        (train, "--flip", "images"),
        (train, "--shift 2", "images"),
        (train, "--mean 0.5", "images"),
        (train, "--std 0.5", "images"),
        (train, "--validation-labels absent.npy", "--validation-data"),
        (train, "--patience 3", "--validation-fraction"),
        (train, "--laplace --laplace-curvature diagonal --laplace-fisher empirical", "kronecker"),
        (train, "--laplace --laplace-select validation", "--validation-fraction"),
        (fit, "--mean 0.5", "a table"),
        (fit, "--std 0.5", "a table"),
        (fit, "--strip-softmax", "does not end in a softmax"),
        (fit, "--curvature function-space --mode linearised", "function-space"),
        (fit, "--curvature function-space --prior layerwise", "function-space"),
        (fit, "--curvature kronecker --prior diagonal", "Kronecker"),
        (fit, "--curvature last-layer --without-affine", "all weights"),
        (fit, "--predictive-samples 10", "--predictive monte-carlo"),
        (fit, "--resume", "made of sums"),
        (fit, "--validation-labels test.csv", "--validation-data"),
        (gaussian, "--class-names a,b,c", "--likelihood categorical"),
        (gaussian, "--predictive bridge", "--likelihood categorical"),
        (gaussian, "--predictive monte-carlo", "probit is exact"),
        (gaussian, "--strip-softmax", "--likelihood categorical"),
        (evaluate, "--samples 50", "--joint-kappa"),
        (evaluate, "--predictive-samples 50", "--predictive monte-carlo"),
        (
            "predict --model m.posterior --data test.csv",
            "--predictive-samples 50",
            "--predictive monte-carlo",
        ),
        (
            "forward --network net.safetensors --data test.csv --out o.npy",
            "--strip-softmax",
            "does not end in a softmax",
        ),
    ];
    for (command, flags, expected) in cases {
        let (status, text) = failure(at, &format!("{command} {flags}"));
        assert!(text.contains(expected), "{command} {flags}: {text}");
        assert!(matches!(status, Some(1 | 2)), "{flags}: {status:?}");
        assert!(!at.join("never.safetensors").exists() && !at.join("never.posterior").exists(), "{flags}");
    }
}

#[test]
fn shared_parameters_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "kind = \"layers\"\ninput = [2]\n[[layer]]\nname = \"a\"\noperation = \"linear\"\noutputs = 2\n[[layer]]\nname = \"t\"\noperation = \"tanh\"\n[[layer]]\nname = \"b\"\noperation = \"linear\"\noutputs = 2\nparameters = [\"a.weight\", \"a.bias\"]\n";
    std::fs::write(folder.path().join("tied.toml"), text).unwrap();
    let support = json(folder.path(), "inspect --support tied.toml");
    assert_eq!((support["layers"].as_array().unwrap().len(), &support["weights"]), (2, &6.into()));
    let output = posterior(folder.path()).args(["inspect", "--support", "tied.toml"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\n6 weights"), "{text}");
}
