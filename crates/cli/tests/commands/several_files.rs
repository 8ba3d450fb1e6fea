//! Tables of several files, from fit to scores.

use super::from_disk::described;
use super::running::{error, json};
use serde_json::Value;
use std::path::Path;

/// Row `i` of y = sin(3a) + b², with a column of categories and cells that are missing.
fn row(i: usize) -> [String; 4] {
    let (a, b) = ((i as f64 * 0.618_034) % 1.0, (i as f64 * 0.754_878) % 1.0);
    let noise = 0.1 * ((i as f64 * 12.9898).sin() * 43_758.547).fract();
    let missing = i % 50 == 7;
    [
        if missing { String::new() } else { a.to_string() },
        b.to_string(),
        // Numbers in the first files, text in the last.
        if i < 200 { (i % 2).to_string() } else { "x".into() },
        ((3.0 * a).sin() + b * b + noise).to_string(),
    ]
}

fn write(path: &Path, rows: std::ops::Range<usize>, order: [usize; 4]) {
    let names = ["a", "b", "kind", "y"];
    let mut text = order.map(|j| names[j]).join(",") + "\n";
    rows.for_each(|i| text += &(order.map(|j| row(i)[j].clone()).join(",") + "\n"));
    std::fs::write(path, text).unwrap();
}

#[test]
fn several_files_give_the_model_and_the_predictions_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("all.csv"), 0..300, [0, 1, 2, 3]);
    write(&at.join("one.csv"), 0..90, [0, 1, 2, 3]);
    write(&at.join("two.csv"), 90..100, [3, 2, 1, 0]);
    write(&at.join("three.csv"), 100..300, [1, 3, 0, 2]);
    let fit = "fit --target y --one-hot kind --missing mean --method svgp --set inducing=20 --set iterations=30 --test-fraction 0.1";
    for (name, files) in [
        ("all", "all.csv"),
        ("streamed", "all.csv --stream"),
        ("several", "one.csv two.csv three.csv"),
        ("repeated", "one.csv two.csv three.csv --stream"),
        ("listed", "one.csv,two.csv,three.csv"),
    ] {
        json(at, &format!("{fit} {files} -o {name}.posterior"));
    }
    std::fs::write(at.join("c.toml"), "data = [\"one.csv\", \"two.csv\", \"three.csv\"]\n").unwrap();
    json(at, &format!("{fit} --config c.toml -o configured.posterior"));
    let (expected, tensors) =
        (described(at, "all.posterior"), std::fs::read(at.join("all.posterior")).unwrap());
    // Tensors follow the header, whose length is said first.
    let tail = |bytes: &[u8]| {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        bytes[8 + length..].to_vec()
    };
    for name in ["streamed", "several", "repeated", "listed", "configured"] {
        assert_eq!(described(at, &format!("{name}.posterior")), expected, "{name}");
        let own = std::fs::read(at.join(format!("{name}.posterior"))).unwrap();
        assert!(tail(&own) == tail(&tensors), "{name}");
    }
    // Predictions are those of one table, in its order; whole, and part by part.
    let predict = "predict all.posterior -o";
    json(at, &format!("{predict} p.csv all.csv"));
    let whole = std::fs::read_to_string(at.join("p.csv")).unwrap();
    for flags in ["", "--stream"] {
        json(at, &format!("{predict} q.csv one.csv two.csv three.csv {flags}"));
        assert_eq!(std::fs::read_to_string(at.join("q.csv")).unwrap(), whole, "{flags}");
    }
    let scores = |files: &str| {
        let mut found = json(at, &format!("evaluate all.posterior {files} --test-fraction 0.1"));
        ["seconds", "peak_memory_bytes", "planned_memory_bytes", "data"]
            .iter()
            .for_each(|key| found[key] = Value::Null);
        found
    };
    assert_eq!(scores("one.csv two.csv three.csv"), scores("all.csv"));
}

#[test]
fn what_does_not_fit_together_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("one.csv"), 0..60, [0, 1, 2, 3]);
    write(&at.join("two.csv"), 60..120, [3, 2, 1, 0]);
    std::fs::write(at.join("other.csv"), "a,b,kind,z\n1,2,0,3\n").unwrap();
    std::fs::write(at.join("wide.csv"), "a,b,kind,y,z\n1,2,0,3,4\n").unwrap();
    std::fs::write(at.join("text.csv"), "y,kind,b,a\n1,0,2,3\n1,0,what,3\n").unwrap();
    for stream in ["", "--stream"] {
        let line = format!("fit one.csv {stream} --target y --features a,b -o m.posterior --missing drop");
        for (files, words) in [
            ("other.csv", "other.csv: it has no column y, and z is not in one.csv"),
            ("wide.csv", "wide.csv: z is not in one.csv; files of one table have the same columns"),
            ("two.csv text.csv", "text.csv, row 2, column `b`: `what` is not a number"),
            ("nowhere.csv", "cannot read nowhere.csv"),
        ] {
            let text = error(at, &format!("{line} {files}"));
            assert!(text.contains(words), "{stream} {files}: {text}");
        }
        // A cell that is missing, by its file and row: row 67 of all is row 8 of the second.
        let line = format!("fit {stream} --target y --features a,b -o m.posterior");
        std::fs::write(at.join("full.csv"), "a,b,kind,y\n1,2,0,3\n2,3,1,4\n").unwrap();
        let text = error(at, &format!("{line} full.csv two.csv"));
        assert!(text.contains("two.csv, row 48, column `a`: the cell is missing"), "{text}");
    }
    // An output is none of the inputs.
    let text = error(at, "fit one.csv two.csv --target y --features b -o two.csv");
    assert!(text.contains("two.csv"), "{text}");
    assert!(!at.join("m.posterior").exists());
}
