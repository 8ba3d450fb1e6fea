//! Networks trained on classes as Gaussian numbers, from their rows to error bars.

use super::networks_common::{error, failure, json, network, normal, number, posterior, rings, uniform};
use serde_json::Value;
use std::path::Path;

/// What a network's file says about its training: the record in its header.
fn training(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    serde_json::from_str(header["__metadata__"]["posterior.training"].as_str().unwrap()).unwrap()
}

fn said(folder: &Path, line: &str) -> String {
    let output = posterior(folder).args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn from_training_to_error_bars_that_help() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    rings(at, "train.csv", 0..120);
    rings(at, "test.csv", 400..1400);
    network(at, "net.toml", 2, 3);
    let train = "train net.toml train.csv --target colour --loss gaussianised --learning-rate 0.01 --batch 16 --epochs 200";
    let short = train.replace("--epochs 200", "--epochs 3");
    let report = json(at, &format!("{short} --validation-data test.csv -o short.safetensors"));
    // What stands for a label is one thing, what becomes of the label another.
    let validation = &report["history"][2]["validation"];
    assert!(number(&validation["nll"]) > 0.0 && validation["nll"] != validation["loss"]);
    json(at, &format!("{train} -o net.safetensors"));
    let record = training(&at.join("net.safetensors"));
    assert_eq!(
        record["loss"],
        serde_json::json!({"gaussianised": {"matching": "variational", "pseudo_count": 0.1}})
    );
    let meaning = "trained on classes as Gaussian numbers (variational matching, pseudo-count 0.1): probabilities are the softmax of the outputs";
    assert!(said(at, "inspect net.safetensors").contains(meaning));
    for (curvature, out) in [("last-layer", "last"), ("kronecker", "kron")] {
        let fit = format!(
            "fit train.csv --network net.safetensors --likelihood categorical --method {curvature} --verbose -o {out}.posterior"
        );
        assert!(said(at, &fit).contains(meaning));
        assert!(said(at, &format!("inspect {out}.posterior")).contains(meaning));
        let scores = json(at, &format!("evaluate {out}.posterior test.csv"));
        let (own, plain) = (&scores["models"][0]["scores"], &scores["plain"]);
        assert!(
            number(&own["nll"]) < number(&plain["nll"]) - 0.01,
            "{curvature}: {} {}",
            own["nll"],
            plain["nll"]
        );
        assert!(number(&own["accuracy"]) > 0.6);
        let done = json(at, &format!("predict {out}.posterior test.csv --limit 3"));
        let p: f64 =
            ["blue", "green", "red"].iter().map(|c| number(&done["predictions"][format!("p_{c}")][0])).sum();
        assert!((p - 1.0).abs() < 1e-6, "{p}");
    }
}

#[test]
fn yes_and_no_by_one_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows: String = (0..300)
        .map(|i| {
            let x = 4.0 * uniform(i, 1.0) - 2.0;
            let label = if x + 0.5 * normal(i, 4.0) > 0.0 { "yes" } else { "no" };
            format!("{x},{},{label}\n", normal(i, 8.0))
        })
        .collect();
    std::fs::write(at.join("t.csv"), "x,other,answer\n".to_string() + &rows).unwrap();
    network(at, "net.toml", 2, 1);
    for loss in ["gaussianised --matching laplace --pseudo-count 0.05", "cross-entropy", "one-hot"] {
        let report = json(
            at,
            &format!(
                "train net.toml t.csv --target answer --loss {loss} --learning-rate 0.01 --batch 32 --epochs 20 --validation-fraction 0.3 -o net.safetensors --force"
            ),
        );
        let last = report["history"].as_array().unwrap().last().unwrap()["validation"].clone();
        assert!(number(&last["accuracy"]) > 0.8 && number(&last["nll"]) < 0.6, "{loss}: {last}");
        let fit = "fit t.csv --network net.safetensors --likelihood bernoulli --method full --verbose -o net.posterior --force";
        let words = said(at, fit);
        assert_eq!(words.contains("the sigmoid of the output"), loss != "cross-entropy", "{words}");
        let scores = json(at, "evaluate net.posterior t.csv");
        assert!(number(&scores["models"][0]["scores"]["accuracy"]) > 0.8, "{loss}: {scores}");
    }
}

#[test]
fn what_means_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    rings(at, "t.csv", 0..60);
    network(at, "net.toml", 2, 3);
    network(at, "one.toml", 2, 1);
    std::fs::write(at.join("two.csv"), "a,b,colour\n1,2,red\n2,1,blue\n3,1,red\n0,1,blue\n").unwrap();
    let train = "train net.toml t.csv --target colour --epochs 1 -o o.safetensors";
    for (flags, words) in [
        ("--loss cross-entropy --matching laplace", "--matching belongs to --loss gaussianised"),
        ("--loss mse --pseudo-count 0.1", "--pseudo-count belongs to --loss gaussianised"),
        ("--loss gaussianised --pseudo-count 0", "--pseudo-count"),
        ("--loss gaussianised --pseudo-count 1e-300", "0.1 is customary"),
        ("--loss gaussianised --matching middle", "moment-original"),
    ] {
        let (status, message) = failure(at, &format!("{train} {flags}"));
        assert!(status == Some(2) && message.contains(words), "{flags}: {message}");
    }
    for (line, words) in [
        (
            train.replace("--epochs 1", "--epochs 3")
                + " --loss gaussianised --laplace --laplace-burn-in 1 --laplace-every 1",
            "use cross-entropy",
        ),
        (
            train.replace("net.toml", "one.toml").replace("t.csv", "two.csv")
                + " --loss gaussianised --matching moment-original",
            "single output",
        ),
        (train.replace("net.toml", "one.toml") + " --loss gaussianised", "classes 0 to 1"),
    ] {
        let message = error(at, &line);
        assert!(message.contains(words), "{line}: {message}");
    }
    // What is allowed and odd is said.
    let words = said(at, &format!("{train} --loss gaussianised --matching laplace"));
    assert!(words.contains("a probability of 0.846"), "{words}");
    let words =
        said(at, &format!("{train} --loss gaussianised --matching moment --pseudo-count 0.01 --force"));
    assert!(words.contains("100 nats apart") && words.contains("single precision"), "{words}");
}
