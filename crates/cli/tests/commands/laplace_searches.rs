//! Curvatures of `fit laplace` that are found by a search of their own, as their users run them.

use super::networks_common::*;
use serde_json::Value;
use std::path::Path;

pub(super) const CURVE: &str =
    "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --validation-data test.csv";
pub(super) const RINGS: &str = "fit laplace --network net.safetensors --data train.csv --likelihood categorical --validation-data test.csv";

/// Flags that make a search short.
const SHORT: [&str; 8] = [
    "--curvature fixed-mean --inducing-points 12 --steps 400 --batch 30 --validate-every 100 --learning-rate 0.01",
    "--curvature gwi --inducing-points 12 --steps 200 --batch 30",
    "--curvature gwi --inducing-points 12 --steps 60 --kernel-inputs features --variational-kernel kernelised --regulariser projected-renyi=0.5 --regulariser-weight 0.1 --regulariser-mode posterior --update-rule rmsprop",
    "--curvature valla --inducing-points 12 --steps 60 --batch 30 --validate-every 20",
    "--curvature valla --inducing-points 12 --closed-form",
    "--curvature ella --landmarks 40 --rank 12",
    "--curvature sampled --samples 16 --em-samples 4 --em-steps 2",
    "--curvature mean-field --epochs 3 --batch 30",
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
        json(at, &format!("{start} --curvature last-layer --out plain.posterior"));
        json(at, "predict --model plain.posterior --data test.csv --out plain.csv");
        for flags in SHORT.iter().filter(|f| numbers || !f.contains("fixed-mean")) {
            let fit = json(at, &format!("{start} {flags} --calibrate none --out m.posterior"));
            let scores = &fit["unseen"];
            let (own, plain) = (number(&scores["nll"]), number(&scores["plain_nll"]));
            assert!(own.is_finite() && plain.is_finite(), "{flags}: {scores}");
            json(at, "predict --model m.posterior --data test.csv --out m.csv");
            if numbers {
                let same = column(at, "m.csv", "y_mean") == column(at, "plain.csv", "y_mean");
                assert_eq!(same, !flags.contains("mean-field"), "{flags}");
            }
            // Loaded, it is what it was, and says what it said.
            let scores = json(at, "evaluate --model m.posterior --data test.csv");
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
        ("gwi --inducing-points 20 --steps 1000", true),
        // Sixty rows are few for a kernel of its own: alone it is too sure (its 95 % intervals cover 80 %), with the companion, which it has by itself, it may be too careful.
        ("fixed-mean --inducing-points 20 --steps 6000 --batch 30 --learning-rate 0.01", false),
        ("valla --inducing-points 20 --steps 400 --batch 30", true),
        ("temperature", true),
    ] {
        let line = format!(
            "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --validation-data chooses.csv --curvature {curvature} --out m.posterior"
        );
        let fit = json(at, &line).to_string();
        if curvature.starts_with("fixed-mean") {
            let other =
                line.replace("--inducing-points", "--companion off --inducing-points").replace("6000", "60");
            assert!(fit.contains("\"companion\":true"), "{fit}");
            assert!(
                json(at, &other.replace("m.posterior", "other.posterior"))
                    .to_string()
                    .contains("\"companion\":false")
            );
        }
        let scores = json(at, "evaluate --model m.posterior --data scores.csv");
        let (own, plain) = (&scores["models"][0]["scores"]["scores"], &scores["plain"]["scores"]);
        assert!(!cheap || number(&own["nll"]) < number(&plain["nll"]) + 0.02, "{curvature}: {scores}");
        assert!((0.85..=1.0).contains(&number(&own["coverage_95"])), "{curvature}: {own}");
    }
}

#[test]
fn samples_are_kept_and_more_are_added() {
    let folder = curve();
    let at = folder.path();
    let start = format!("{CURVE} --curvature sampled --em-samples 4 --em-steps 2");
    json(at, &format!("{start} --samples 6 --out six.posterior"));
    json(at, &format!("{start} --samples 9 --out nine.posterior"));
    json(at, "fit laplace --continue six.posterior --data train.csv --samples 9 --out more.posterior");
    let draws = |model: &str, count: usize| -> Vec<f64> {
        json(
            at,
            &format!(
                "predict --model {model} --data test.csv --limit 5 --samples {count} --samples-out d.npy --out p.csv --force"
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
    let fewer =
        error(at, "fit laplace --continue six.posterior --data train.csv --samples 6 --out x.posterior");
    assert!(fewer.contains("has 6 samples"), "{fewer}");
    let others =
        error(at, "fit laplace --continue six.posterior --data test.csv --samples 9 --out x.posterior");
    assert!(others.contains("goes on with the data of its fit"), "{others}");
    let too_many = error(
        at,
        "predict --model six.posterior --data test.csv --samples 7 --samples-out e.npy --out q.csv",
    );
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
                "train --architecture net.toml --data train.csv --target y --loss mse --learning-rate 0.01 --batch 16 --epochs 40 --seed {seed} --out nets/n{seed}.safetensors"
            ),
        );
    }
    let start = "fit laplace --network nets --data train.csv --likelihood gaussian";
    json(at, &format!("{start} --out plain.posterior"));
    json(at, "predict --model plain.posterior --data test.csv --out plain.csv");
    let means: Vec<Vec<f64>> = (0..3)
        .map(|seed| {
            json(at, &format!("fit laplace --network nets/n{seed}.safetensors --data train.csv --likelihood gaussian --curvature last-layer --out one.posterior --force"));
            json(at, "predict --model one.posterior --data test.csv --out one.csv --force");
            column(at, "one.csv", "y_mean").iter().map(|v| v.parse().unwrap()).collect()
        })
        .collect();
    for (i, v) in column(at, "plain.csv", "y_mean").iter().enumerate() {
        let mean = means.iter().map(|m| m[i]).sum::<f64>() / 3.0;
        assert!((v.parse::<f64>().unwrap() - mean).abs() < 1e-6, "{v} {mean}");
    }
    // With a curvature, of networks with error bars.
    json(at, &format!("{start} --curvature last-layer --out both.posterior"));
    let scores = json(at, "evaluate --model both.posterior --data test.csv");
    assert!(number(&scores["models"][0]["scores"]["scores"]["nll"]).is_finite());
    std::fs::remove_file(at.join("nets/n1.safetensors")).unwrap();
    std::fs::remove_file(at.join("nets/n2.safetensors")).unwrap();
    assert!(
        error(at, &format!("{start} --out none.posterior")).contains("at least two"),
        "one is no ensemble"
    );
}

#[test]
fn the_default_tries_them_where_there_are_rows_to_choose_on() {
    let folder = curve();
    let fit = json(folder.path(), &format!("{CURVE} --seconds 60 --out m.posterior"));
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
