//! Error bars for networks as their users see them.

use super::networks_common::{error, json, number, posterior};
use posterior::data::{ArrayValues, ImageSet, NumericArray, ReadOptions, read_array, write_npy, write_npz};
use posterior_testing::shared;
use std::path::Path;

/// The command line, split at spaces.
fn run(folder: &Path, line: &str) -> std::process::Output {
    posterior(folder).args(line.split_whitespace()).output().unwrap()
}

/// Two rings with three named classes and a curve, and a network trained on each.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (mut classes, mut curve) = (String::from("a,b,colour\n"), String::from("x,y\n"));
    for i in 0..150 {
        let (angle, kind) = (i as f64 * 0.7, i % 3);
        let radius = 0.4 + kind as f64 + 0.25 * (i as f64 * 12.9).sin();
        classes += &format!(
            "{},{},{}\n",
            radius * angle.cos(),
            radius * angle.sin(),
            ["red", "green", "blue"][kind]
        );
        let x = (i as f64 * 0.37).sin() * 2.0;
        curve += &format!("{x},{}\n", 100.0 + 50.0 * (1.5 * x).sin() + 5.0 * (i as f64 * 7.1).sin());
    }
    std::fs::write(at.join("rings.csv"), classes).unwrap();
    std::fs::write(at.join("curve.csv"), curve).unwrap();
    let net = |inputs: usize, outputs: usize| {
        format!(
            "kind = \"perceptron\"\ninputs = {inputs}\nhidden = [8, 8]\noutputs = {outputs}\nactivation = \"tanh\"\n"
        )
    };
    std::fs::write(at.join("rings.toml"), net(2, 3)).unwrap();
    std::fs::write(at.join("curve.toml"), net(1, 1)).unwrap();
    let common = "--learning-rate 0.02 --batch 16 --epochs 60";
    json(
        at,
        &format!(
            "train rings.toml rings.csv --target colour --loss cross-entropy {common} --weight-decay 1e-3 -o rings.safetensors"
        ),
    );
    json(at, &format!("train curve.toml curve.csv --target y --loss mse {common} -o curve.safetensors"));
    folder
}

const RINGS: &str = "fit rings.csv --network rings.safetensors --likelihood categorical";

#[test]
fn a_classifier_of_a_table_from_fit_to_report() {
    let folder = folder();
    let at = folder.path();
    let fit = json(at, &format!("{RINGS} --method full -o rings.posterior"));
    assert_eq!((fit["weights"].as_u64(), fit["precision"].as_str()), (Some(123), Some("f32")));
    assert!(number(&fit["log_evidence"]) < 0.0 && number(&fit["effective_dimensions"]) > 1.0);
    // The file remembers how the network was trained.
    let notes = fit["notes"].to_string();
    assert!(notes.contains("weight decay") && notes.contains("was trained with 1.00e-3"), "{notes}");
    let hash = fit["header"]["network"]["sha256"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    // Predictions carry the table along and name the classes.
    let done = json(at, "predict rings.posterior rings.csv -o p.csv");
    assert_eq!(done["n"], 150);
    let text = std::fs::read_to_string(at.join("p.csv")).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert_eq!(
        head,
        [
            "a",
            "b",
            "colour",
            "predicted",
            "max_probability",
            "entropy",
            "latent_std",
            "p_blue",
            "p_green",
            "p_red"
        ]
    );
    let right = text.lines().skip(1).filter(|l| l.split(',').nth(2) == l.split(',').nth(3)).count();
    assert!(right > 130, "{right}");
    for line in text.lines().skip(1) {
        let p: f64 = line.split(',').skip(7).map(|v| v.parse::<f64>().unwrap()).sum();
        assert!((p - 1.0).abs() < 1e-9);
    }
    let top = json(at, "predict rings.posterior rings.csv --top 2 --limit 3");
    assert_eq!(top["predictions"]["class_2"].as_array().unwrap().len(), 3);
    assert!(top["predictions"].get("p_red").is_none());
    // Scores beside the plain network's, joint ones, other models, and a report.
    json(at, &format!("{RINGS} --method last-layer --tune mackay -o last.posterior"));
    let scores = json(
        at,
        "evaluate rings.posterior rings.csv --against last.posterior --joint-kappa 1..3 --samples 20 --report r.html",
    );
    assert_eq!(scores["models"].as_array().unwrap().len(), 2);
    assert!(number(&scores["models"][0]["scores"]["accuracy"]) > 0.85);
    assert!(number(&scores["plain"]["nll"]) > 0.0);
    assert_eq!(scores["joint"][2]["model"]["labels"], 20);
    let html = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(html.contains("plain network") && html.contains("blue") && html.contains("Joint log-likelihood"));
    // The same scores in words.
    let output = run(at, "evaluate rings.posterior rings.csv");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("plain network") && text.contains("150 examples"), "{text}");
    let inspected = json(at, "inspect rings.posterior");
    assert_eq!(inspected["header"], fit["header"]);
    let output = run(at, "inspect rings.posterior");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("effective dimensions") && text.contains(hash), "{text}");
    for file in ["rings.posterior", "rings.safetensors", "rings.toml"] {
        let support = json(at, &format!("inspect --support {file}"));
        assert_eq!(support["layers"].as_array().unwrap().len(), 3, "{file}");
    }
    let output = run(at, "inspect rings.safetensors --support");
    assert!(String::from_utf8_lossy(&output.stdout).contains("123 weights"));
    // The same as a page, with every layer in its picture.
    let layers =
        json(at, "inspect rings.safetensors --report layers.html")["layers"].as_array().unwrap().len();
    let page = std::fs::read_to_string(at.join("layers.html")).unwrap();
    assert_eq!(page.matches("class=\"column strong\"").count(), 3);
    assert_eq!(page.matches("class=\"dot\"").count(), layers - 3 + 1);
    assert!(page.contains("factored") && page.contains("safetensors"));
    let wrong = error(at, "inspect rings.safetensors --report rings.csv");
    assert!(wrong.contains("rings.csv"), "{wrong}");
}

#[test]
fn every_curvature_prior_and_tuning_can_be_asked_for() {
    let folder = folder();
    let at = folder.path();
    let cases = [
        "--method full --set prior=scalar --tune evidence",
        "--method diagonal --set prior=diagonal --tune none --set precision=2",
        "--method kronecker --set prior=layerwise --tune mackay",
        "--method kronecker --set fisher=monte-carlo --set prior=parameter",
        "--method kronecker --set fisher=empirical --float64",
        "--method block --set prior=layerwise --tune validation --validation-fraction 0.2 --allow-seen-rows",
        "--method last-layer --set prior=g-prior",
        "--method last-layer-kronecker --tune cross-validation --set folds=3 --allow-seen-rows",
        "--method last-layer-diagonal --predictive monte-carlo --predictive-samples 64",
        "--method subnetwork --set subnetwork-size=20 --set subnetwork-choice=magnitude",
        "--method low-rank --set rank=5",
        "--method function-space --set points=20",
        "--method full --set weights=layers.0.* --set mode=linearised --predictive bridge",
        "--method auto",
    ];
    let weights = json(at, "inspect rings.safetensors");
    let first = weights["layers"][0]["name"].as_str().unwrap().to_string();
    for case in cases {
        let case = case.replace("layers.0", &first);
        let fit = json(at, &format!("{RINGS} {case} -o m.posterior"));
        assert_eq!(fit["precision"], if case.contains("float64") { "f64" } else { "f32" }, "{case}");
        let scores = json(at, "evaluate m.posterior rings.csv");
        let (own, plain) = (number(&scores["models"][0]["scores"]["nll"]), number(&scores["plain"]["nll"]));
        assert!(own < 1.0 && plain < 0.5, "{case}: {own} {plain}");
    }
    // The compared default says what it compared.
    let fit = json(at, &format!("{RINGS} -o m.posterior"));
    let auto = &fit["header"]["auto"];
    let evidences: Vec<f64> =
        auto["candidates"].as_array().unwrap().iter().filter_map(|c| c["log_evidence"].as_f64()).collect();
    assert_eq!(evidences.len(), 2, "{auto}");
    assert_eq!(evidences.iter().copied().fold(f64::NEG_INFINITY, f64::max), number(&fit["log_evidence"]));
}

#[test]
fn regression_in_the_targets_units() {
    let folder = folder();
    let at = folder.path();
    let fit = "fit curve.csv --network curve.safetensors --likelihood gaussian --method full";
    let done = json(at, &format!("{fit} -o curve.posterior"));
    // The noise is 5 sin of something: deviation 5 / sqrt 2.
    let noise = number(&done["noise_deviations"][0]);
    assert!(noise > 2.0 && noise < 6.0, "{noise}");
    std::fs::write(at.join("new.csv"), "x\n0\n9\n").unwrap();
    let p = json(
        at,
        "predict curve.posterior new.csv --quantiles 0.025,0.975 --samples 3 --samples-out f.npy --joint j.npy",
    );
    let p = &p["predictions"];
    let at_zero = number(&p["y_mean"][0]);
    assert!((at_zero - 100.0).abs() < 15.0, "{at_zero}");
    assert!(number(&p["y_latent_std"][1]) > 5.0 * number(&p["y_latent_std"][0]));
    let width = number(&p["y_q0.975"][0]) - number(&p["y_q0.025"][0]);
    assert!((width / (2.0 * 1.959964 * number(&p["y_std"][0])) - 1.0).abs() < 1e-6);
    let latent = json(at, "predict curve.posterior new.csv --quantiles 0.975 --latent");
    let reach = number(&latent["predictions"]["y_q0.975"][0]) - number(&latent["predictions"]["y_mean"][0]);
    assert!((reach / (1.959964 * number(&p["y_latent_std"][0])) - 1.0).abs() < 1e-6);
    let (draws, joint) = (read(at, "f.npy"), read(at, "j.npy"));
    assert_eq!((draws.shape(), joint.shape()), (&[3, 2, 1][..], &[2, 2][..]));
    assert!((joint.to_f64()[3].sqrt() / number(&p["y_latent_std"][1]) - 1.0).abs() < 1e-4);
    assert!((draws.to_f64()[0] - 100.0).abs() < 50.0);
    let scores = json(at, "evaluate curve.posterior curve.csv --report r.html");
    assert!(number(&scores["models"][0]["scores"]["scores"]["rmse"]) < 8.0, "{scores}");
    assert!(at.join("r.html").exists());
    json(at, "predict curve.posterior new.csv -o p.npy");
    assert_eq!(read(at, "p.npy").shape(), [2, 3, 1]);
    // Noise as given, by the weights as they are.
    let fixed = json(at, &format!("{fit} --set noise=fixed --set initial-noise=0.04 -o m.posterior"));
    assert_eq!(fixed["header"]["noise_variance"], 1.0);
    for noise in ["per-output", "full"] {
        json(at, &format!("{fit} --set noise={noise} -o m.posterior"));
    }
}

fn read(folder: &Path, name: &str) -> NumericArray {
    read_array(&folder.join(name), &ReadOptions::for_arrays()).unwrap()
}

/// Features of many classes with a linear head, as a large network would leave them.
fn features(at: &Path, classes: usize, width: usize, rows: usize) {
    // Scattered over [-1, 1]: rows of a plain sine would all lie in one plane, and neighbours be the same.
    let value = |i: usize| 2.0 * ((i as f64 * 12.9898 + 1.0).sin() * 43_758.545_3).rem_euclid(1.0) - 1.0;
    let weight: Vec<f64> = (0..classes * width).map(value).collect();
    let mut x = Vec::new();
    let mut labels = Vec::new();
    for row in 0..rows {
        let class = row % classes;
        labels.push(class as i64);
        // Near the class's own row of weights, so that the head is right.
        x.extend((0..width).map(|j| (weight[class * width + j] + 0.3 * value(row * 31 + j)) as f32));
    }
    let array = |shape: Vec<usize>, values| NumericArray::new(shape, values).unwrap();
    write_npy(&at.join("x.npy"), &array(vec![rows, width], ArrayValues::F32(x))).unwrap();
    write_npy(&at.join("y.npy"), &array(vec![rows], ArrayValues::I64(labels))).unwrap();
    let (w, b) = (
        array(vec![classes, width], ArrayValues::F64(weight)),
        array(vec![classes], ArrayValues::F64(vec![0.0; classes])),
    );
    write_npz(&at.join("head.npz"), &[("weight", &w), ("bias", &b)]).unwrap();
}

#[test]
fn a_head_on_features_with_a_thousand_classes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    features(at, 1000, 24, 2000);
    let fit = json(
        at,
        "fit x.npy --head head.npz --labels y.npy --likelihood categorical --method last-layer-kronecker -o h.posterior",
    );
    assert_eq!(fit["weights"], 25_000);
    let top = json(at, "predict h.posterior x.npy --top 5 --limit 20");
    let best = top["predictions"]["class_1"].as_array().unwrap();
    let right = best.iter().enumerate().filter(|(i, c)| c.as_str() == Some(&i.to_string())).count();
    assert!(right > 15, "{right}");
    // Far too many columns are refused, an array is not.
    assert!(error(at, "predict h.posterior x.npy --limit 5 --latent").contains("--latent"));
    let scores = json(at, "evaluate h.posterior x.npy --labels y.npy --limit 200");
    assert!(number(&scores["models"][0]["scores"]["accuracy"]) > 0.5, "{scores}");
    assert!(
        error(
            at,
            "fit x.npy --head head.npz --labels y.npy --likelihood categorical --method full -o f.posterior"
        )
        .contains("above the limit")
    );
    assert!(!at.join("f.posterior").exists());
}

#[test]
fn continued_fits_equal_fits_of_everything() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    features(at, 5, 4, 60);
    let common = "--likelihood categorical --method last-layer --float64";
    json(at, &format!("fit x.npy x.npy --head head.npz --labels y.npy y.npy {common} -o both.posterior"));
    json(at, &format!("fit x.npy --head head.npz --labels y.npy {common} -o one.posterior"));
    let done = json(at, "fit x.npy --continue one.posterior --labels y.npy -o two.posterior");
    assert_eq!(done["header"]["data"]["examples"], 120);
    let p = |m: &str| json(at, &format!("predict {m} x.npy --limit 7"))["predictions"]["entropy"].clone();
    let (a, b) = (p("both.posterior"), p("two.posterior"));
    for i in 0..7 {
        assert!((number(&a[i]) / number(&b[i]) - 1.0).abs() < 1e-6, "{a} {b}");
    }
    let text = error(at, "fit x.npy --continue one.posterior --labels y.npy --set rank=3 -o n.posterior");
    assert!(text.contains("--set rank goes with a fit of its own, and --continue keeps"), "{text}");
}

#[test]
fn mistakes_are_explained_and_nothing_is_written() {
    let folder = folder();
    let at = folder.path();
    let cases = [
        (format!("{RINGS} --method full --set rank=3"), "--set rank belongs to --method low-rank"),
        (format!("{RINGS} --method full --set noise=fixed"), "--set noise belongs to --likelihood gaussian"),
        (format!("{RINGS} --tune cross-validation"), "name one"),
        (format!("{RINGS} --method full --tune validation"), "rows that the network has not seen"),
        (format!("{RINGS} --method full --validation-fraction 0.2"), "their score is worthless"),
        (
            format!("{RINGS} --method full --precision 1"),
            "--precision is a setting: write --set precision=VALUE",
        ),
        (format!("{RINGS} --method full --set precision=-1"), "a finite number above 0"),
        (format!("{RINGS} --method full --memory 1e-9"), "the memory limit for reading"),
        (format!("{RINGS} --method full --memory 0.0002"), "above the limit"),
        (format!("{RINGS} --method full --preprocess raw"), "leave --features, --preprocess"),
        (
            format!("{RINGS} --method subnetwork --set subnetwork-size=100000"),
            "a sub-network of 100000 weights",
        ),
        (format!("{RINGS} --method kronecker --set weights=nothing*"), "nothing*"),
        (
            "fit curve.csv --network curve.safetensors --likelihood categorical --method full".into(),
            "numeric target",
        ),
        ("fit curve.csv --network rings.safetensors --likelihood categorical --method full".into(), "colour"),
        ("fit rings.csv --network absent.onnx --likelihood categorical".into(), "absent.onnx"),
        ("fit rings.csv --likelihood categorical".into(), "--network"),
    ];
    for (line, expected) in cases {
        let text = error(at, &format!("{line} -o never.posterior"));
        assert!(text.contains(expected), "{line}\n{text}");
        assert!(!at.join("never.posterior").exists(), "{line}");
    }
    json(at, &format!("{RINGS} --method last-layer -o m.posterior"));
    let table = "a,b\n1,NaN\n2,oops\n";
    std::fs::write(at.join("bad.csv"), table).unwrap();
    let cases = [
        ("predict m.posterior bad.csv", "oops"),
        ("predict m.posterior curve.csv", "`a`"),
        ("predict m.posterior rings.csv --quantiles 0.5", "are for numbers"),
        ("predict m.posterior rings.csv --samples 3", "--samples-out"),
        ("predict m.posterior rings.csv --joint j.npy --memory 0.002", "above the limit"),
        ("evaluate m.posterior rings.csv --rotate 10", "images have three dimensions"),
        ("evaluate m.posterior rings.csv --corrupt rust", "the kinds are"),
        ("evaluate m.posterior rings.csv --joint-kappa 0", "a list of whole numbers"),
        ("evaluate m.posterior rings.csv --folds f.csv --fold 0", "Gaussian processes"),
        ("predict rings.safetensors rings.csv", "holds no posterior model"),
    ];
    for (line, expected) in cases {
        let text = error(at, line);
        assert!(text.contains(expected), "{line}\n{text}");
    }
    assert!(!at.join("j.npy").exists());
}

#[test]
fn digits_with_a_network_from_elsewhere() {
    let (Some(network), Some(images), Some(labels)) = (
        shared("networks/mlp_mnist.onnx"),
        shared("data/mnist/t10k-images-idx3-ubyte.gz"),
        shared("data/mnist/t10k-labels-idx1-ubyte.gz"),
    ) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let set = ImageSet::read(&[images], &[labels], &ReadOptions::for_arrays()).unwrap();
    let (ArrayValues::U8(pixels), Some(classes)) = (set.images.values(), set.labels) else {
        panic!("bytes with labels")
    };
    let part = |name: &str, range: std::ops::Range<usize>| {
        let own = pixels[range.start * 784..range.end * 784].to_vec();
        let array = NumericArray::new(vec![range.len(), 28, 28], ArrayValues::U8(own)).unwrap();
        write_npy(&at.join(format!("{name}.npy")), &array).unwrap();
        let own = classes[range.clone()].iter().map(|&c| i64::from(c)).collect();
        let array = NumericArray::new(vec![range.len()], ArrayValues::I64(own)).unwrap();
        write_npy(&at.join(format!("{name}_labels.npy")), &array).unwrap();
    };
    part("train", 0..400);
    part("test", 400..600);
    let network = network.display();
    let fit = json(
        at,
        &format!(
            "fit train.npy --network {network} --labels train_labels.npy --likelihood categorical --method last-layer -o m.posterior"
        ),
    );
    assert_eq!((fit["precision"].as_str(), fit["weights"].as_u64()), (Some("f32"), Some(2010)));
    // Inputs of another kind: the same digits upside down and negative.
    let strange = pixels[..100 * 784].iter().rev().map(|v| 255 - v).collect();
    write_npy(
        &at.join("strange.npy"),
        &NumericArray::new(vec![100, 28, 28], ArrayValues::U8(strange)).unwrap(),
    )
    .unwrap();
    let scores = json(
        at,
        "evaluate m.posterior test.npy --labels test_labels.npy --ood strange.npy --rotate 0,60 --corrupt gaussian-noise --joint-kappa 2 --samples 10 --report r.html",
    );
    let accuracy = number(&scores["models"][0]["scores"]["accuracy"]);
    assert!(accuracy > 0.94, "{scores}");
    assert!(number(&scores["out_of_distribution"]["model"]["entropy"]) > 0.8, "{scores}");
    let rotation = &scores["shifts"][0]["methods"];
    assert!(number(&rotation[0]["accuracy"][0]) > number(&rotation[0]["accuracy"][1]) + 0.2);
    // Under shift the model is better calibrated than its network.
    assert!(number(&rotation[0]["nll"][1]) < number(&rotation[1]["nll"][1]));
    assert_eq!(scores["shifts"][1]["methods"][0]["at"].as_array().unwrap().len(), 6);
    let html = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(html.contains("strange.npy") && html.contains("rotation"));
}
