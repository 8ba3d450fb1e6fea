//! `fit --network --calibrate` and what comes of it, as users meet it.

use super::networks_common::{classifier, curve, error, json, number, rings};
use serde_json::Value;

const CLASSES: &str = "fit train.csv --network net.safetensors --likelihood categorical --method last-layer --predictive probit";

#[test]
fn classes_of_networks_have_a_temperature_and_sets() {
    let folder = classifier();
    let at = folder.path();
    rings(at, "unseen.csv", 1400..1700);
    rings(at, "more.csv", 1700..1800);
    let unseen = "--validation-data unseen.csv";
    let fit = json(at, &format!("{CLASSES} {unseen} --calibrate conformal -o m.posterior"));
    let own = &fit["header"]["recalibration"]["classes"];
    assert_eq!((&own["guarantee"], &own["rows"]), (&Value::from("holds"), &Value::from(300)), "{fit}");
    assert_eq!(own["tempering"]["applied"], true);
    let notes = fit["notes"].to_string();
    assert!(
        notes.contains("probabilities are recalibrated") && notes.contains("--calibrate none"),
        "{notes}"
    );
    let scores = json(at, "evaluate m.posterior test.csv");
    for own in scores["sets"].as_array().unwrap() {
        // 1,000 rows, and 300 that tell the sets: 3.3 standard errors of both.
        let (level, coverage) = (number(&own["level"]), number(&own["coverage"]));
        let error = (level * (1.0 - level) * (1.0 / 1000.0 + 1.0 / 300.0)).sqrt();
        assert!(coverage > level - 3.3 * error && number(&own["mean_size"]) < 3.0, "{own}");
    }
    let predicted = json(at, "predict m.posterior test.csv --limit 5 --sets 0.9");
    let sets = predicted["predictions"]["set"].as_array().unwrap();
    assert!(sets.len() == 5 && sets.iter().all(|set| !set.as_array().unwrap().is_empty()), "{predicted}");
    let told = error(at, "predict m.posterior test.csv --sets 0.9 --predictive plug-in");
    assert!(told.contains("leave --predictive out"), "{told}");
    // Further data change the model, of which these rows say nothing.
    let continued = json(at, "fit more.csv --continue m.posterior -o c.posterior");
    assert!(continued["notes"].to_string().contains("is dropped"), "{continued}");
    assert!(continued["header"].get("recalibration").is_none());
    let told = error(at, "predict c.posterior test.csv --sets 0.9");
    assert!(told.contains("--validation-data"), "{told}");
    // A comparison chooses by the same rows.
    let line = CLASSES.replace("--method last-layer", "--method auto");
    let chosen = json(at, &format!("{line} {unseen} --set seconds=5 -o a.posterior"));
    assert_eq!(chosen["header"]["recalibration"]["classes"]["guarantee"], "chosen", "{chosen}");
}

#[test]
fn numbers_of_networks_have_a_factor() {
    let folder = curve();
    let at = folder.path();
    let line = "fit train.csv --network net.safetensors --likelihood gaussian --method last-layer";
    // An even share of the fresh rows tells it, the others judge.
    let rows = std::fs::read_to_string(at.join("test.csv")).unwrap();
    let (head, body) = rows.split_once('\n').unwrap();
    let part = |odd: usize| -> String {
        let own = body.lines().enumerate().filter(|(i, _)| i % 2 == odd);
        own.fold(format!("{head}\n"), |all, (_, line)| all + line + "\n")
    };
    std::fs::write(at.join("unseen.csv"), part(0)).unwrap();
    std::fs::write(at.join("judge.csv"), part(1)).unwrap();
    let unseen = "--validation-data unseen.csv";
    let fit = json(at, &format!("{line} {unseen} --calibrate conformal -o m.posterior"));
    let own = &fit["header"]["recalibration"]["numbers"][0];
    assert_eq!((&own["guarantee"], &own["rows"]), (&Value::from("holds"), &Value::from(200)), "{fit}");
    json(at, &format!("{line} {unseen} --calibrate none -o none.posterior"));
    let coverage = |model: &str| {
        let found = json(at, &format!("evaluate {model} judge.csv"));
        number(&found["coverage_95"])
    };
    // 3.3 standard errors of both sets of 200 rows.
    let error_of_both = (2.0f64 * 0.95 * 0.05 / 200.0).sqrt();
    let (before, after) = (coverage("none.posterior"), coverage("m.posterior"));
    assert!((after - 0.95).abs() < 3.3 * error_of_both, "{before} {after}");
    let factor = number(&own["factor"]);
    let deviation = |model: &str| {
        let found = json(at, &format!("predict {model} judge.csv --limit 1"));
        number(&found["predictions"]["y_std"][0])
    };
    assert!((deviation("m.posterior") / deviation("none.posterior") / factor - 1.0).abs() < 1e-9);
    let told = error(at, &format!("{line} --calibrate conformal -o x.posterior"));
    assert!(told.contains("rows that the network has not seen"), "{told}");
    let told = error(at, "fit judge.csv --continue m.posterior --calibrate none -o x.posterior");
    assert!(told.contains("--calibrate is for processes"), "{told}");
    // What rows say of several is theirs alone: of their mixture, none of the members.
    std::fs::create_dir(at.join("nets")).unwrap();
    for name in ["a", "b"] {
        std::fs::copy(at.join("net.safetensors"), at.join(format!("nets/{name}.safetensors"))).unwrap();
    }
    let folder_line = line.replace("net.safetensors", "nets");
    let told = error(at, &format!("{folder_line} --calibrate conformal -o x.posterior"));
    assert!(told.contains("give --validation-data"), "{told}");
    let fit = json(at, &format!("{folder_line} {unseen} --calibrate conformal -o e.posterior"));
    let own = &fit["recalibration"]["numbers"][0];
    assert_eq!((&own["guarantee"], &own["rows"]), (&Value::from("holds"), &Value::from(200)), "{own}");
    assert!((coverage("e.posterior") - 0.95).abs() < 3.3 * error_of_both);
    let line = "predict e.posterior judge.csv --limit 2 --quantiles 0.025,0.975";
    let predicted = json(at, line);
    assert_eq!(predicted["predictions"]["y_q0.025"].as_array().unwrap().len(), 2, "{predicted}");
}
