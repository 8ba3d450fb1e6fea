//! What a fit prints, on one screen, and for programs what `inspect` says again.

use super::running::{json, run};
use std::fmt::Write as _;
use std::path::Path;

/// Lines of a terminal.
const LINES: usize = 24;

/// Fits of each kind, with what stands in their short form.
const FITS: [(&str, &str); 6] = [
    ("regression", "--target y --features a,b"),
    ("classes", "--target colour --features a,b"),
    ("counts", "--target count --features a,b --likelihood poisson --inference laplace"),
    ("several", "--target y,colour --features a,b"),
    ("network", "--network nets/1.safetensors --target y --likelihood gaussian --method last-layer"),
    ("ensemble", "--network nets --target y --likelihood gaussian --method last-layer"),
];

/// Two tables of 60 rows, and two trained networks.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, start) in [("t.csv", 0), ("unseen.csv", 500)] {
        let mut text = "a,b,y,colour,count\n".to_string();
        for i in start..start + 60u32 {
            let wave = |k: f64| 0.5 + 0.5 * (f64::from(i) * k).sin();
            let (a, b) = (wave(1.7), wave(3.1));
            let y = (4.0 * a).sin() + b + 0.1 * wave(12.9);
            let (colour, count) = (["red", "blue"][usize::from(a + b > 1.0)], (3.0 * y.abs()).round());
            writeln!(text, "{a:.4},{b:.4},{y:.4},{colour},{count}").unwrap();
        }
        std::fs::write(at.join(name), text).unwrap();
    }
    std::fs::create_dir(at.join("nets")).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/predictors/nets");
    for name in ["1.safetensors", "2.safetensors"] {
        std::fs::copy(fixtures.join(name), at.join("nets").join(name)).unwrap();
    }
    folder
}

/// The command line of a fit.
fn line(name: &str, flags: &str) -> String {
    let more = match flags.contains("--network") {
        true => "--validation-data unseen.csv",
        false => "--method exact --set steps=3 --set restarts=1 --test-fraction 0.2",
    };
    format!("fit t.csv {flags} {more} -o {name}.posterior")
}

/// What a command prints.
fn printed(at: &Path, line: &str) -> String {
    let output = run(at, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_fit_prints_one_screen() {
    let folder = folder();
    let at = folder.path();
    for (name, flags) in FITS {
        let text = printed(at, &line(name, flags));
        assert!(text.lines().count() <= LINES, "{name}\n{text}");
        for part in ["NLL", "baseline", "seconds", &format!("model written to {name}.posterior")] {
            assert!(text.contains(part), "{name}, {part}\n{text}");
        }
        assert!(text.matches("note: ").count() <= 3, "{name}\n{text}");
        if name != "several" {
            continue;
        }
        let long = printed(at, &format!("{} --verbose", line(name, flags)));
        let described = printed(at, &format!("inspect {name}.posterior"));
        assert!(described.lines().count() > text.lines().count(), "{name}\n{described}");
        // Both are of the same file, which the second fit has written.
        assert!(long.contains(described.trim_end()), "{name}\n{long}\n{described}");
    }
}

#[test]
fn a_fit_and_its_file_say_the_same_to_programs() {
    let folder = folder();
    let at = folder.path();
    for (name, flags) in FITS {
        let fitted = json(at, &line(name, flags));
        let inspected = json(at, &format!("inspect {name}.posterior"));
        let keys = |of: &serde_json::Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&fitted), keys(&inspected), "{name}");
        for (key, value) in fitted.as_object().unwrap() {
            assert_eq!(*value, inspected[key], "{name}, {key}");
        }
    }
}

/// Values that change their sign from row to row are predicted from their neighbours: wrongly.
#[test]
fn a_fit_that_is_worse_than_its_baseline_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let row = |i: u32| format!("{i},{}\n", f64::from(100 + i) * [1.0, -1.0][i as usize % 2]);
    std::fs::write(at.join("t.csv"), format!("x,y\n{}", (0..40).map(row).collect::<String>())).unwrap();
    let text = printed(
        at,
        "fit t.csv --target y --features x --likelihood gaussian --target-transform none --method exact --set fix=noise_variance=0.01 --set steps=1 --set restarts=1 -o m.posterior",
    );
    assert!(text.lines().count() <= LINES, "{text}");
    assert!(text.contains("no better than the baseline: RMSE "), "{text}");
    assert!(text.contains("not converged: the search ended by the limit of steps"), "{text}");
}

/// The probabilities of the saved model have a temperature, and so has the score; a column that became categories is named once.
#[test]
fn a_score_is_that_of_the_recalibrated_model() {
    let folder = folder();
    let at = folder.path();
    let fit = |flags: &str| {
        printed(
            at,
            &format!(
                "fit t.csv {flags} --method exact --set steps=3 --set restarts=1 --force -o m.posterior"
            ),
        )
    };
    let text = fit("--target colour --features a,b --calibrate conformal");
    let tempering = &json(at, "inspect m.posterior")["recalibration"]["tempering"];
    let [before, after] = ["nll_before", "nll_after"].map(|key| tempering[key].as_f64().unwrap());
    assert_ne!(before, after);
    let score = format!("NLL after recalibration {after:.4} ({before:.4} before, ");
    assert!(text.contains(&score), "{score}\n{text}");
    assert!(fit("--target colour --features a,b --calibrate none").contains(": NLL "), "{text}");
    let text = fit("--target y --features a,colour");
    assert_eq!(text.matches("categories").count(), 1, "{text}");
}
