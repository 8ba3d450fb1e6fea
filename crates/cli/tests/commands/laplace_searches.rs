//! Curvatures of `fit --network` that are found by a search of their own, as their users run them.

use super::networks_common::*;
use serde_json::Value;
use std::path::Path;

pub(super) const CURVE: &str =
    "fit train.csv --network net.safetensors --likelihood gaussian --validation-data test.csv";
pub(super) const RINGS: &str =
    "fit train.csv --network net.safetensors --likelihood categorical --validation-data test.csv";

/// Flags that make a search short.
const SHORT: [&str; 8] = [
    "--method fixed-mean --set inducing-points=12 --set steps=400 --set batch=30 --set validate-every=100 --set learning-rate=0.01",
    "--method gwi --set inducing-points=12 --set steps=200 --set batch=30",
    "--method gwi --set inducing-points=12 --set steps=60 --set kernel-inputs=features --set variational-kernel=kernelised --set regulariser=projected-renyi=0.5 --set regulariser-weight=0.1 --set regulariser-mode=posterior --set update-rule=rmsprop",
    "--method valla --set inducing-points=12 --set steps=60 --set batch=30 --set validate-every=20",
    "--method valla --set inducing-points=12 --set closed-form",
    "--method ella --set landmarks=40 --set rank=12",
    "--method sampled --set samples=16 --set em-samples=4 --set em-steps=2",
    "--method mean-field --set epochs=3 --set batch=30",
];

/// Columns of predictions.
fn column(at: &Path, file: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(at.join(file)).unwrap();
    let mut lines = text.lines();
    let place =
        lines.next().unwrap().split(',').position(|head| head == name).unwrap_or_else(|| panic!("{text}"));
    lines.map(|line| line.split(',').nth(place).unwrap().to_string()).collect()
}

#[test]
fn every_search_predicts_around_the_network() {
    for (folder, start, numbers) in [(curve(), CURVE, true), (classifier(), RINGS, false)] {
        let at = folder.path();
        if !numbers {
            rings(at, "test.csv", 400..700);
        }
        json(at, &format!("{start} --method last-layer -o plain.posterior"));
        json(at, "predict plain.posterior test.csv -o plain.csv");
        for flags in SHORT.iter().filter(|f| numbers || !f.contains("fixed-mean")) {
            let fit = json(at, &format!("{start} {flags} --calibrate none -o m.posterior"));
            let scores = &fit["unseen"];
            let (own, plain) = (number(&scores["nll"]), number(&scores["plain_nll"]));
            assert!(own.is_finite() && plain.is_finite(), "{flags}: {scores}");
            json(at, "predict m.posterior test.csv -o m.csv");
            if numbers {
                let same = column(at, "m.csv", "y_mean") == column(at, "plain.csv", "y_mean");
                assert_eq!(same, !flags.contains("mean-field"), "{flags}");
            }
            // Loaded, it is what it was, and says what it said.
            let scores = json(at, "evaluate m.posterior test.csv");
            let found = &scores["models"][0]["scores"];
            let found = number(if numbers { &found["nll_of_the_likelihood"] } else { &found["nll"] });
            assert!((found - own).abs() < 1e-6 * (1.0 + own.abs()), "{flags}: {found} {own}");
            let again = json(at, "inspect m.posterior");
            assert_eq!(again["header"]["summary"], fit["header"]["summary"], "{flags}");
            let text =
                String::from_utf8(posterior(at).args(["inspect", "m.posterior"]).output().unwrap().stdout)
                    .unwrap();
            assert!(text.contains("search") || flags.contains("ella"), "{flags}: {text}");
        }
    }
}

#[test]
fn error_bars_that_are_learned_cost_nothing_and_cover_on_other_rows() {
    let folder = curve();
    let at = folder.path();
    // Half of the 400 rows choose, the others score.
    let test = std::fs::read_to_string(at.join("test.csv")).unwrap();
    let lines: Vec<&str> = test.lines().collect();
    let part = |rows: &[&str]| format!("x,y\n{}\n", rows.join("\n"));
    std::fs::write(at.join("chooses.csv"), part(&lines[1..201])).unwrap();
    std::fs::write(at.join("scores.csv"), part(&lines[201..])).unwrap();
    for (curvature, cheap) in [
        ("gwi --set inducing-points=20 --set steps=1000", true),
        // Sixty rows are few for a kernel of its own: alone it is too sure (its 95 % intervals cover 80 %), with the companion, which it has by itself, it may be too careful.
        (
            "fixed-mean --set inducing-points=20 --set steps=6000 --set batch=30 --set learning-rate=0.01",
            false,
        ),
        ("valla --set inducing-points=20 --set steps=400 --set batch=30", true),
        ("temperature", true),
    ] {
        let line = format!(
            "fit train.csv --network net.safetensors --likelihood gaussian --validation-data chooses.csv --method {curvature} -o m.posterior"
        );
        let fit = json(at, &line).to_string();
        if curvature.starts_with("fixed-mean") {
            let other = line
                .replace("--set inducing-points", "--set companion=off --set inducing-points")
                .replace("6000", "60");
            assert!(fit.contains("\"companion\":true"), "{fit}");
            assert!(
                json(at, &other.replace("m.posterior", "other.posterior"))
                    .to_string()
                    .contains("\"companion\":false")
            );
        }
        let scores = json(at, "evaluate m.posterior scores.csv");
        let (own, plain) = (&scores["models"][0]["scores"]["scores"], &scores["plain"]["scores"]);
        assert!(!cheap || number(&own["nll"]) < number(&plain["nll"]) + 0.02, "{curvature}: {scores}");
        assert!((0.85..=1.0).contains(&number(&own["coverage_95"])), "{curvature}: {own}");
    }
}

#[test]
fn samples_are_kept_and_more_are_added() {
    let folder = curve();
    let at = folder.path();
    let start = format!("{CURVE} --method sampled --set em-samples=4 --set em-steps=2");
    json(at, &format!("{start} --set samples=6 -o six.posterior"));
    json(at, &format!("{start} --set samples=9 -o nine.posterior"));
    json(at, "fit train.csv --continue six.posterior --set samples=9 -o more.posterior");
    let draws = |model: &str, count: usize| -> Vec<f64> {
        json(
            at,
            &format!(
                "predict {model} test.csv --limit 5 --samples {count} --samples-out d.npy -o p.csv --force"
            ),
        );
        let bytes = std::fs::read(at.join("d.npy")).unwrap();
        let numbers = &bytes[bytes.len() - count * 5 * 8..];
        numbers.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let (six, more, nine) =
        (draws("six.posterior", 6), draws("more.posterior", 9), draws("nine.posterior", 9));
    assert_eq!(six[..], more[..30], "those that there were stay");
    let close = more.iter().zip(&nine).all(|(a, b)| (a - b).abs() < 0.05 * (1.0 + b.abs()));
    assert!(close, "further ones are those of a fit for all, within the solver's tolerance");
    let fewer = error(at, "fit train.csv --continue six.posterior --set samples=6 -o x.posterior");
    assert!(fewer.contains("has 6 samples"), "{fewer}");
    let others = error(at, "fit test.csv --continue six.posterior --set samples=9 -o x.posterior");
    assert!(others.contains("goes on with the data of its fit"), "{others}");
    let too_many = error(at, "predict six.posterior test.csv --samples 7 --samples-out e.npy -o q.csv");
    assert!(too_many.contains("6") && too_many.contains("extend"), "{too_many}");
}

#[test]
fn a_folder_of_networks_is_one_model() {
    let folder = curve();
    let at = folder.path();
    std::fs::create_dir(at.join("nets")).unwrap();
    for seed in 0..3 {
        json(
            at,
            &format!(
                "train net.toml train.csv --target y --loss mse --learning-rate 0.01 --batch 16 --epochs 40 --seed {seed} -o nets/n{seed}.safetensors"
            ),
        );
    }
    let start = "fit train.csv --network nets --likelihood gaussian";
    json(at, &format!("{start} -o plain.posterior"));
    json(at, "predict plain.posterior test.csv -o plain.csv");
    let means: Vec<Vec<f64>> = (0..3)
        .map(|seed| {
            json(at, &format!("fit train.csv --network nets/n{seed}.safetensors --likelihood gaussian --method last-layer -o one.posterior --force"));
            json(at, "predict one.posterior test.csv -o one.csv --force");
            column(at, "one.csv", "y_mean").iter().map(|v| v.parse().unwrap()).collect()
        })
        .collect();
    for (i, v) in column(at, "plain.csv", "y_mean").iter().enumerate() {
        let mean = means.iter().map(|m| m[i]).sum::<f64>() / 3.0;
        assert!((v.parse::<f64>().unwrap() - mean).abs() < 1e-6, "{v} {mean}");
    }
    // With a curvature, of networks with error bars.
    json(at, &format!("{start} --method last-layer -o both.posterior"));
    let scores = json(at, "evaluate both.posterior test.csv");
    assert!(number(&scores["models"][0]["scores"]["scores"]["nll"]).is_finite());
    std::fs::remove_file(at.join("nets/n1.safetensors")).unwrap();
    std::fs::remove_file(at.join("nets/n2.safetensors")).unwrap();
    assert!(error(at, &format!("{start} -o none.posterior")).contains("at least two"), "one is no ensemble");
}

#[test]
fn the_default_tries_them_where_there_are_rows_to_choose_on() {
    let folder = curve();
    let fit = json(folder.path(), &format!("{CURVE} --set seconds=60 -o m.posterior"));
    let auto = &fit["header"]["auto"];
    let names: Vec<&str> =
        auto["candidates"].as_array().unwrap().iter().filter_map(|c: &Value| c["name"].as_str()).collect();
    for name in ["temperature", "fixed-mean", "ella", "sampled", "valla"] {
        assert!(names.contains(&name), "{names:?}");
    }
    // One half of the 400 chooses, the other compares.
    assert_eq!(fit["unseen"]["examples"], 200);
    let tried = auto["candidates"].as_array().unwrap().iter().filter_map(|c| c["nll"].as_f64());
    // Whatever is best beats this network, which knows its data by heart.
    assert_eq!(tried.fold(f64::INFINITY, f64::min), number(&auto["nll"]));
    assert_eq!(auto["beats_plain"], true, "{auto}");
}
