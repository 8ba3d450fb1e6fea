//! Learned features of classes, counts and events, as users meet them.

use super::networks_common::{posterior, uniform};
use serde_json::Value;
use std::path::Path;

fn run(at: &Path, line: &str) -> (bool, String, String) {
    let output = posterior(at).args(line.split_whitespace()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn done(at: &Path, line: &str) -> String {
    let (success, out, err) = run(at, line);
    assert!(success, "{line}\n{err}");
    format!("{out}{err}")
}

fn refused(at: &Path, line: &str) -> String {
    let (success, out, err) = run(at, line);
    assert!(!success, "{line}\n{out}");
    err
}

/// 240 rows of two columns, a class and a count that depend on them, and as many events between 0 and 1, most of them early.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (mut rows, mut events) = (String::from("a,b,kind,count,hours\n"), String::from("when,note\n"));
    for i in 0..240 {
        let [a, b] = [0.1, 0.2].map(|salt| 2.0 * uniform(i, salt) - 1.0);
        let kind = ["no", "yes"][usize::from(a * b > 0.0)];
        let hours = 1.0 + (i % 3) as f64;
        let count = (hours * if a > 0.0 { 6.0 } else { 1.0 } + uniform(i, 0.3)).floor();
        rows += &format!("{a},{b},{kind},{count},{hours}\n");
        events += &format!("{},x\n", uniform(i, 0.4).powi(2));
    }
    std::fs::write(folder.path().join("t.csv"), rows).unwrap();
    std::fs::write(folder.path().join("events.csv"), events).unwrap();
    folder
}

#[test]
fn classes_and_counts_go_from_fit_to_report() {
    let folder = folder();
    let at = folder.path();
    let quick = "--seed 2 --set rank=16 --set iterations=200 --set step-size=0.01 --set batch=64";
    let line = format!(
        "fit t.csv --features a,b --target kind --method svdbk {quick} --test-fraction 0.2 --verbose -o k.posterior"
    );
    let said = done(at, &line);
    for words in [
        "deep kernels for 1 latent function",
        "trained by",
        "tried the network alone",
        "a plain process of",
        "effective rank",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let fitted: Value = serde_json::from_str(&run(at, &format!("{line} --json --force")).1).unwrap();
    assert_eq!((fitted["method"].as_str(), fitted["solver"].as_str()), (Some("variational"), Some("svdbk")));
    assert_eq!(fitted["learned_features"]["learned"]["rank"], 16);
    assert!(
        fitted["check"]["scores"]["ece"].is_number()
            && fitted["learned_features"]["plain"]["scores"]["nll"].is_number()
    );
    done(at, "predict k.posterior t.csv -o p.csv --force");
    let header = std::fs::read_to_string(at.join("p.csv")).unwrap();
    assert!(
        header.starts_with("a,b,kind,count,hours,predicted,max_probability") || header.contains("p_yes"),
        "{}",
        &header[..90]
    );
    let scored: Value = serde_json::from_str(&run(at, "evaluate k.posterior t.csv --json").1).unwrap();
    assert!(scored.is_object(), "{scored}");
    done(at, "evaluate k.posterior t.csv --report r.html");
    done(at, "predict k.posterior t.csv -o q.csv --samples 3 --samples-out d.npy");
    assert!(done(at, "inspect k.posterior").contains("trained by"));

    let counts = format!(
        "fit t.csv --features a,b --target count --exposure hours --likelihood poisson --method svdkl --set objective=evidence {quick} --verbose -o c.posterior"
    );
    assert!(done(at, &counts).contains("exposure"));
    done(at, "predict c.posterior t.csv -o c.csv");
    for (flags, words) in [
        ("--inference gaussianised", "leave --inference out"),
        ("--set prior.initial-noise=0.3", "--set prior.initial-noise"),
        ("--kernel se", "--kernel says nothing to svdbk"),
        ("--window a=-1:1", "--window is for events"),
        ("--matching moment", "--matching"),
    ] {
        let line = format!(
            "fit t.csv --features a,b --target kind --likelihood bernoulli --method svdbk {flags} -o n.posterior"
        );
        let said = refused(at, &line);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn events_have_a_window_in_place_of_a_target() {
    let folder = folder();
    let at = folder.path();
    let fit = "fit events.csv --window when=0:1 --method svdbk --set objective=evidence --set rank=16 --set iterations=2000 --set step-size=0.01 --seed 2 --verbose -o e.posterior";
    let said = done(at, fit);
    for words in
        ["240 events in the window when=0:1", "events expected in the window", "more than an even intensity"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    std::fs::write(at.join("places.csv"), "when\n0.02\n0.5\n0.95\n").unwrap();
    done(at, "predict e.posterior places.csv --quantiles 0.05,0.95 -o p.csv");
    let text = std::fs::read_to_string(at.join("p.csv")).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place =
        |name: &str| columns.iter().position(|c| *c == name).unwrap_or_else(|| panic!("{name}: {columns:?}"));
    let rows: Vec<Vec<f64>> = lines.map(|l| l.split(',').map(|c| c.parse().unwrap()).collect()).collect();
    let [mean, low, high] = ["intensity_mean", "intensity_q0.05", "intensity_q0.95"].map(place);
    assert!(rows.iter().all(|r| 0.0 < r[low] && r[low] < r[mean] && r[mean] < r[high]), "{text}");
    // The density of a square is 1 / (2 √t).
    assert!(rows[0][mean] > 1.5 * rows[1][mean] && rows[1][mean] > rows[2][mean], "{text}");
    assert!(done(at, "inspect e.posterior --report e.html").contains("report written to e.html"));
    let page = std::fs::read_to_string(at.join("e.html")).unwrap();
    assert!(page.contains("A Cox process") && page.contains("<svg") && page.contains("window"));
    assert!(
        refused(at, "inspect events.csv --report n.html").contains("--report is for models and networks")
    );
    assert!(refused(at, "inspect e.posterior --report events.csv").contains("events.csv"));
    std::fs::write(at.join("outside.csv"), "when\n0.5\n1.5\n").unwrap();
    let said = refused(at, "predict e.posterior outside.csv -o o.csv");
    assert!(said.contains("row 2, column `when`: 1.5 lies outside of the window 0 to 1"), "{said}");
    for (line, words) in [
        ("fit events.csv --likelihood cox --method svdbk -o n.posterior", "--target"),
        ("fit events.csv --likelihood cox --target when --method svdbk -o n.posterior", "--window"),
        ("fit events.csv --window when=0:1 -o n.posterior", "--method svdbk"),
        ("fit events.csv --window when=0:0.5 --method svdbk -o n.posterior", "lies outside of the window"),
        ("fit events.csv --window when=1 --method svdbk -o n.posterior", "COLUMN=LOW:HIGH"),
        ("fit events.csv --window other=0:1 --method svdbk -o n.posterior", "no column"),
        ("fit events.csv --window note=0:1 --method svdbk -o n.posterior", "note"),
        ("fit events.csv --window when=0:1 --target when --method svdbk -o n.posterior", "--target"),
        ("evaluate e.posterior events.csv", "no row of a table tells"),
    ] {
        let said = refused(at, line);
        assert!(said.contains(words), "{line}: {said}");
    }
}
