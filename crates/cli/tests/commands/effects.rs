//! What columns do to predictions, in JSON and on pages.

use super::running::{error, json, run};
use serde_json::Value;
use std::path::Path;

/// Size, district, day and price of flats: the district is worth most, the day nothing.
fn write(path: &Path, rows: std::ops::Range<usize>) {
    let row = |i: usize| {
        let at = |k: f64| (i as f64 * k) % 1.0;
        let size = 20.0 + 90.0 * at(0.618_034);
        let district = (i * i + i / 3) % 3;
        let price = size + 200.0 * district as f64 + (i as f64 * 12.9898).sin();
        let day = (27.0 * at(0.754_878)) as usize + 1;
        format!(
            "{size:.2},{},2021-{:02}-{day:02},{price:.2}\n",
            ["Hafen", "Nord", "Süd"][district],
            i % 12 + 1
        )
    };
    std::fs::write(path, format!("size,district,day,price\n{}", rows.map(row).collect::<String>())).unwrap();
}

fn columns(effects: &Value) -> Vec<&str> {
    let importance = effects["importance"].as_array().unwrap();
    importance.iter().map(|one| one["column"].as_str().unwrap()).collect()
}

const FIT: &str = "fit t.csv --target price --calendar day --set steps=60";

#[test]
fn importance_and_curves_are_in_json_and_on_pages() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("t.csv"), 0..80);
    write(&at.join("u.csv"), 80..110);
    json(at, &format!("{FIT} -o m.posterior"));
    let found = json(at, "inspect m.posterior --report r.html")["effects"].take();
    assert_eq!(columns(&found)[..2], ["district", "size"]);
    assert_eq!((found["rows_of"].as_str(), found["rows"].as_u64()), (Some("training"), Some(80)));
    let share = |k: usize| found["importance"][k]["share"].as_f64().unwrap();
    // Prices have the variance 200² · 2/3 of districts and 90²/12 of sizes.
    assert!(share(0) > 0.85 && share(1) < 0.15 && share(2) < 0.05, "{found}");
    assert!(found["importance"][0]["standard_error"].as_f64().unwrap() < 0.1, "{found}");
    let district = &found["dependence"][0];
    assert_eq!(district["column"], "district");
    let places: Vec<&str> = district["at"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    let mean = |name: &str| {
        let place = places.iter().position(|p| *p == name).unwrap();
        let of = |what: &str| district["outputs"][0][what][place].as_f64().unwrap();
        assert!(of("lower") < of("mean") && of("mean") < of("upper"));
        of("mean")
    };
    for (a, b) in [("Hafen", "Nord"), ("Nord", "Süd")] {
        assert!((mean(b) - mean(a) - 200.0).abs() < 20.0, "{district}");
    }
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    for text in [
        "Which columns matter",
        "What district does to price",
        "What size does to price",
        "day (years after 2000)",
        "Total effects",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // One bar for each category stands nowhere.
    assert!(!page.contains("Which features matter"));
    let evaluated = json(at, "evaluate m.posterior u.csv --report e.html");
    assert_eq!(evaluated["effects"], found);
    let page = std::fs::read_to_string(at.join("e.html")).unwrap();
    assert!(page.contains("Which columns matter") && page.contains("What district does to price"));
    // Scores alone need none of it.
    assert_eq!(json(at, "evaluate m.posterior u.csv")["effects"], Value::Null);
    assert_eq!(json(at, "inspect m.posterior")["effects"], found);
    let said = error(at, "--json inspect m.posterior --memory 0.000001");
    assert!(said.contains("--memory"), "{said}");
    assert!(run(at, "inspect m.posterior").status.success());
}

#[test]
fn models_that_keep_no_rows_are_asked_at_those_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("t.csv"), 0..80);
    write(&at.join("u.csv"), 80..110);
    json(at, &format!("{FIT} --method sgpr --set inducing=30 -o m.posterior"));
    assert_eq!(json(at, "inspect m.posterior")["effects"], Value::Null);
    let found = json(at, "evaluate m.posterior u.csv --report e.html")["effects"].take();
    assert_eq!((found["rows_of"].as_str(), found["rows"].as_u64()), (Some("given"), Some(30)));
    assert_eq!(columns(&found)[0], "district");
    // Without rows the picture of lengthscales is all that there is.
    assert!(run(at, "inspect m.posterior --report r.html").status.success());
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(page.contains("Which features matter") && !page.contains("Which columns matter"));
}

#[test]
fn classes_have_curves_of_their_probabilities() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("t.csv"), 0..90);
    json(at, "fit t.csv --target district --exclude day --set steps=20 -o m.posterior");
    let found = json(at, "evaluate m.posterior t.csv --report e.html")["effects"].take();
    assert_eq!(columns(&found)[0], "price");
    let outputs = found["dependence"][0]["outputs"].as_array().unwrap();
    let names: Vec<&str> = outputs.iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["probability of Hafen", "probability of Nord", "probability of Süd"]);
    for k in 0..25 {
        let sum: f64 = outputs.iter().map(|o| o["mean"][k].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{found}");
    }
    let page = std::fs::read_to_string(at.join("e.html")).unwrap();
    assert!(page.contains("Which columns matter") && page.contains("probability of Nord"));
}
