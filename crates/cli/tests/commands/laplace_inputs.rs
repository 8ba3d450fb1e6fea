//! Labels, outputs and inputs that are not what a network or a model learned from, rows that it did learn from, and flags that say nothing.

use super::networks_common::*;
use posterior::data::{ArrayValues, NumericArray, write_npy};
use serde_json::Value;

#[test]
fn names_order_labels_that_are_text() {
    let folder = classifier();
    let at = folder.path();
    let train = "train net.toml train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 60";
    json(at, &format!("{train} --class-names red,green,blue -o ordered.safetensors"));
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
    let fit = "fit train.csv --network plain.safetensors --architecture net.toml --target colour --preprocess standardise --likelihood categorical --method last-layer -o m.posterior";
    json(at, &format!("{fit} --class-names red,green,blue"));
    let accuracy = |scores: &Value| number(&scores["plain"]["accuracy"]);
    let right = accuracy(&json(at, "evaluate m.posterior test.csv"));
    assert!(right > 0.75, "{right}");
    // Without names the order is said, and here it is wrong.
    let done = json(at, fit);
    assert!(done["notes"].to_string().contains("alphabetical order (blue, green, red)"), "{}", done["notes"]);
    assert!(accuracy(&json(at, "evaluate m.posterior test.csv")) < 0.6);
    let text = error(at, &format!("{fit} --class-names low,mid,high"));
    assert!(text.contains("`low`, `mid`, `high`") && text.contains("`blue`, `green`, `red`"), "{text}");
    let text = error(at, &format!("{fit} --class-names red,red,blue"));
    assert!(text.contains("`red` twice"), "{text}");
    // A file that knows its classes is not renamed.
    let known = "fit train.csv --network ordered.safetensors --likelihood categorical --method last-layer -o m.posterior";
    json(at, &format!("{known} --class-names red,green,blue"));
    let text = error(at, &format!("{known} --class-names blue,green,red"));
    assert!(text.contains("`red`, `green`, `blue`, in this order"), "{text}");
    let text = error(at, &format!("{train} --class-names red,green,purple -o never.safetensors"));
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
            "train logits.toml train.csv --target colour --loss cross-entropy {common} -o logits.safetensors"
        ),
    );
    std::fs::write(at.join("events.csv"), {
        let row =
            |i: usize| format!("{},{},{}\n", normal(i, 3.0), normal(i, 4.0), i32::from(normal(i, 3.0) > 0.0));
        "a,b,y\n".to_string() + &(0..200).map(row).collect::<String>()
    })
    .unwrap();
    json(at, &format!("train score.toml events.csv --target y --loss mse {common} -o score.safetensors"));
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
            "fit train.csv --network weights.safetensors --architecture {architecture} --target colour --preprocess standardise --likelihood categorical --method last-layer -o m.posterior {flags}"
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
            "fit events.csv --network events.safetensors --architecture {architecture} --target y --likelihood bernoulli --method last-layer -o m.posterior {flags}"
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
        "fit p.npy --head head.npz --labels l.npy --likelihood categorical --method last-layer -o h.posterior",
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
                "train net.toml {data} --labels y.npy --loss cross-entropy --epochs 5 -o {name}.safetensors"
            ),
        );
        json(
            at,
            &format!(
                "fit {data} --network {name}.safetensors --labels y.npy --likelihood categorical -o {name}.posterior"
            ),
        );
    };
    made("bytes.npy", "bytes");
    made("floats.npy", "floats");
    for (command, flags) in [("predict", "--limit 30"), ("evaluate", "--labels y.npy")] {
        let text = error(at, &format!("{command} bytes.posterior floats.npy {flags}"));
        assert!(
            text.contains("floats.npy holds floating-point numbers, the model was fitted on bytes"),
            "{text}"
        );
        let text = error(at, &format!("{command} floats.posterior bytes.npy {flags}"));
        assert!(text.contains("--allow-other-inputs"), "{text}");
        let done = json(at, &format!("{command} floats.posterior bytes.npy --allow-other-inputs {flags}"));
        assert!(done["notes"].to_string().contains("taken as they are"), "{}", done["notes"]);
        // The same kind on another scale.
        let done = json(at, &format!("{command} floats.posterior large.npy {flags}"));
        let notes = done["notes"].to_string();
        assert!(notes.contains("WARNING") && notes.contains("outside the range"), "{notes}");
        let done = json(at, &format!("{command} floats.posterior floats.npy {flags}"));
        // Nothing but that these are the rows of the fit.
        let notes = done["notes"].as_array().unwrap();
        assert!(notes.iter().all(|n| n.to_string().contains("trained on rows with the same")), "{notes:?}");
    }
    made("large.npy", "large");
    let done = json(at, "evaluate large.posterior floats.npy --labels y.npy");
    assert!(done["notes"].to_string().contains("less than a twentieth"), "{}", done["notes"]);
    // Columns of a table are named.
    let folder = curve();
    let at = folder.path();
    json(
        at,
        "fit train.csv --network net.safetensors --likelihood gaussian --method last-layer -o m.posterior",
    );
    std::fs::write(at.join("far.csv"), "x\n0.5\n300\n").unwrap();
    let done = json(at, "predict m.posterior far.csv");
    let notes = done["notes"].to_string();
    assert!(notes.contains("1 of 2 examples") && notes.contains("`x`"), "{notes}");
}

#[test]
fn flags_without_effect_are_refused() {
    let folder = classifier();
    let at = folder.path();
    json(at, "fit train.csv --network net.safetensors --likelihood categorical -o m.posterior");
    let train = "train net.toml train.csv --target colour --loss cross-entropy -o never.safetensors";
    let fit = "fit train.csv --network net.safetensors --likelihood categorical -o never.posterior";
    let gaussian = "fit train.csv --network net.safetensors --likelihood gaussian -o never.posterior";
    let evaluate = "evaluate m.posterior test.csv";
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
        (fit, "--method function-space --set mode=linearised", "in function space"),
        (fit, "--method function-space --set mode=linearised-simple", "function-space"),
        (fit, "--method function-space --set prior=layerwise", "function-space"),
        (fit, "--method kronecker --set prior=diagonal", "Kronecker"),
        (fit, "--method last-layer --set without-affine", "all weights"),
        (fit, "--predictive-samples 10", "--predictive monte-carlo"),
        (fit, "--resume", "keeps what it has on the way"),
        (fit, "--validation-labels test.csv", "--validation-data"),
        (gaussian, "--class-names a,b,c", "--likelihood categorical"),
        (gaussian, "--predictive bridge", "--likelihood categorical"),
        (gaussian, "--predictive monte-carlo", "probit is exact"),
        (gaussian, "--strip-softmax", "--likelihood categorical"),
        (evaluate, "--samples 50", "--joint-kappa"),
        (evaluate, "--predictive-samples 50", "--predictive monte-carlo"),
        ("predict m.posterior test.csv", "--predictive-samples 50", "--predictive monte-carlo"),
        ("forward net.safetensors test.csv -o o.npy", "--strip-softmax", "does not end in a softmax"),
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

#[test]
fn rows_that_the_fit_has_seen_are_named() {
    let folder = curve();
    let at = folder.path();
    let training = std::fs::read_to_string(at.join("train.csv")).unwrap();
    let test = std::fs::read_to_string(at.join("test.csv")).unwrap();
    json(at, "fit train.csv --network net.safetensors --likelihood gaussian --method full -o m.posterior");
    let held_out = json(at, "evaluate m.posterior test.csv");
    assert_eq!((&held_out["scored_rows"], &held_out["rows_trained_on"]), (&"held-out".into(), &0.into()));
    assert!(held_out["unseen_rows"].is_null());
    // All rows are of the training: scored, and called so.
    let seen = json(at, "evaluate m.posterior train.csv");
    assert_eq!((&seen["scored_rows"], &seen["rows_trained_on"]), (&"training".into(), &60.into()));
    assert!(seen["notes"].to_string().contains("trained on rows with the same numbers as 60"), "{seen}");
    // Both in one table, in another order: all are scored, and apart those that it has not seen.
    let mut rows: Vec<&str> = test.lines().skip(1).chain(training.lines().skip(1)).collect();
    rows.rotate_left(17);
    std::fs::write(at.join("both.csv"), format!("x,y\n{}\n", rows.join("\n"))).unwrap();
    let both = json(at, "evaluate m.posterior both.csv --report r.html");
    assert_eq!((&both["n"], &both["rows_trained_on"]), (&460.into(), &60.into()));
    let nll = |report: &Value| number(&report["models"][0]["scores"]["nll_of_the_likelihood"]);
    let all = (400.0 * nll(&held_out) + 60.0 * nll(&seen)) / 460.0;
    assert!((nll(&both) - all).abs() < 1e-9, "{both}");
    let apart = number(&both["unseen_rows"]["scores"]["nll_of_the_likelihood"]);
    assert!((apart - nll(&held_out)).abs() < 1e-9 && nll(&seen) < apart - 0.05, "{both}");
    let report = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(report.contains("trained on rows with the same numbers as 60"));
    // A model of another family beside it, on the same rows.
    json(at, "fit train.csv --target y --set steps=5 -o gp.posterior");
    let compared = json(at, "evaluate m.posterior both.csv --against gp.posterior");
    let process = json(at, "evaluate gp.posterior both.csv");
    assert_eq!(
        (&compared["models"][0]["scores"], &compared["n"]),
        (&both["models"][0]["scores"], &both["n"])
    );
    let rmse = number(&compared["models"][1]["scores"]["scores"]["rmse"]);
    assert!((rmse - number(&process["rmse"])).abs() < 1e-9, "{compared}");
    let output = posterior(at).args(["evaluate", "m.posterior", "both.csv"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("460 rows, on some of which the model was trained")
    );
    // Memory is stated before the work, and a limit binds it; reading has its own.
    for command in ["predict", "evaluate"] {
        let line = format!("{command} m.posterior test.csv");
        let planned = number(&json(at, &line)["planned_memory_bytes"]);
        assert!(planned > 0.0);
        let text = error(at, &format!("{line} --memory {}", 0.9e-9 * planned));
        assert!(text.contains("predictions of 400 rows need") && !text.contains("plan:"), "{text}");
        assert!(error(at, &format!("{line} --memory 1e-6")).contains("the memory limit for reading"));
    }
    // What was added later is seen too.
    std::fs::write(
        at.join("more.csv"),
        format!("x,y\n{}\n", test.lines().skip(1).take(50).collect::<Vec<_>>().join("\n")),
    )
    .unwrap();
    json(at, "fit more.csv --continue m.posterior -o c.posterior");
    assert_eq!(json(at, "evaluate c.posterior both.csv")["rows_trained_on"], 110);
}

#[test]
fn examples_of_arrays_are_known_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    network(at, "net.toml", 3, 2);
    let rows = 120;
    let class = |i: usize| i64::from(uniform(3 * i, 0.5) > 0.5);
    for (name, range) in [("a", 0..rows), ("b", rows - 20..rows + 60)] {
        let x = range.clone().flat_map(|i| (0..3).map(move |k| uniform(3 * i + k, 0.5) as f32)).collect();
        let x = NumericArray::new(vec![range.len(), 3], ArrayValues::F32(x)).unwrap();
        let y = NumericArray::new(vec![range.len()], ArrayValues::I64(range.map(class).collect())).unwrap();
        write_npy(&at.join(format!("{name}.npy")), &x).unwrap();
        write_npy(&at.join(format!("{name}y.npy")), &y).unwrap();
    }
    json(at, "train net.toml a.npy --labels ay.npy --loss cross-entropy --epochs 5 -o net.safetensors");
    json(
        at,
        "fit a.npy --network net.safetensors --labels ay.npy --likelihood categorical --method last-layer -o m.posterior",
    );
    let scores = json(at, "evaluate m.posterior b.npy --labels by.npy");
    assert_eq!((&scores["n"], &scores["rows_trained_on"]), (&80.into(), &20.into()), "{scores}");
    assert_eq!(scores["unseen_rows"]["n"], 60);
}
