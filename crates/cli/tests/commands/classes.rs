//! Classes and counts on tables, as users meet them.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn run(folder: &Path, line: &str) -> Output {
    Command::new(BINARY).current_dir(folder).args(line.split_whitespace()).output().unwrap()
}

fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("{line} --json"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Everything that a command prints, results and remarks.
fn text(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(!output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// 120 rows of three classes in a plane, one of them rare, and a count that follows the first column.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("a,b,weight,kind,count\n");
    for i in 0..120u32 {
        let wave = |k: f64| (f64::from(i) * k).sin();
        let kind = match i % 12 {
            0 => "rare",
            1..6 => "no",
            _ => "yes",
        };
        let (x, y) = match kind {
            "rare" => (0.0, 3.0),
            "no" => (-1.5, 0.0),
            _ => (1.5, 0.0),
        };
        let (a, b) = (x + 0.9 * wave(12.9), y + 0.9 * wave(78.2));
        let count = ((0.8 * a).exp() * (1.0 + 0.7 * wave(3.3))).round();
        rows += &format!("{a},{b},{},{kind},{count}\n", 1 + i % 2);
    }
    std::fs::write(folder.path().join("t.csv"), rows).unwrap();
    folder
}

const FIT: &str = "fit t.csv --features a,b --set steps=10 --seed 1";

/// Five folds of 120 rows of which every one has its share of each class; what one model leaves out, `evaluate` scores.
#[test]
fn folds_are_drawn_by_class() {
    let folder = folder();
    let at = folder.path();
    let fit = json(
        at,
        &format!(
            "{FIT} --target kind --folds 5 --fold 1 --pseudo-count 0.1 --inference gaussianised -o m.posterior"
        ),
    );
    assert_eq!(fit["n"], 96);
    let scores = json(at, "evaluate m.posterior t.csv --folds 5 --fold 1");
    assert_eq!((scores["n"].as_u64(), scores["scored_rows"].as_str()), (Some(24), Some("held-out")));
    let rows = scores["confusion"]["counts"].as_array().unwrap();
    let tested: Vec<f64> =
        rows.iter().map(|row| row.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).sum()).collect();
    assert_eq!(tested, [10.0, 2.0, 12.0]);
    // All rows of another fold trained.
    let seen = json(at, "evaluate m.posterior t.csv --folds 5 --fold 2");
    assert_ne!(seen["scored_rows"], "held-out");
    assert!(
        error(at, &format!("{FIT} --target kind --folds 5 --fold 5 -o n.posterior"))
            .contains("no fold 5 of 5")
    );
}

/// A pseudo-count that is learned with the hyperparameters, in what is printed, in the file, and from a file of options.
#[test]
fn pseudo_counts_are_learned() {
    let folder = folder();
    let at = folder.path();
    let line = format!("{FIT} --target kind --test-fraction 0.25 --pseudo-count learned -o m.posterior");
    let fit = json(at, &line);
    assert_eq!((&fit["method"], &fit["solver"]), (&"gaussianised".into(), &"exact".into()));
    let found = &fit["gaussian_labels"];
    let bounds = found["bounds"].as_array().unwrap();
    assert_eq!((bounds.len(), found["tried"].as_array().unwrap().len()), (2, 0));
    assert!(bounds.iter().any(|b| b["pseudo_count"] == found["pseudo_count"]), "{found}");
    let scores = json(at, "evaluate m.posterior t.csv --test-fraction 0.25");
    assert!(scores["nll"].as_f64().unwrap() < 0.6 * scores["baseline"]["nll"].as_f64().unwrap(), "{scores}");
    let described = text(at, "inspect m.posterior");
    assert!(described.contains("by the highest bound on the log evidence of the labels"), "{described}");
    assert!(
        error(at, &format!("{FIT} --target kind --pseudo-count many -o n.posterior"))
            .contains("or `learned`")
    );
    let sparse = format!("{FIT} --target kind --pseudo-count learned --method sgpr -o n.posterior");
    assert!(error(at, &sparse).contains("take --method exact"));
}

#[test]
fn labels_in_probabilities_out() {
    let folder = folder();
    let at = folder.path();
    let fit = json(at, &format!("{FIT} --target kind --test-fraction 0.25 -o m.posterior"));
    assert_eq!(fit["method"], "gaussianised");
    assert_eq!(fit["classes"], serde_json::json!(["no", "rare", "yes"]));
    assert!(fit["likelihood_choice"].as_str().unwrap().contains("because the target is text"), "{fit}");
    // Every class gives its share: 10 rare rows of 120, of which a quarter is tested.
    assert_eq!(fit["n"], 90);
    let scores = json(at, "evaluate m.posterior t.csv --test-fraction 0.25");
    assert_eq!((scores["n"].as_u64(), scores["scored_rows"].as_str()), (Some(30), Some("held-out")));
    for key in ["accuracy", "nll", "brier", "ece", "auc", "precision", "recall", "f1"] {
        assert!(scores[key].is_number(), "{key}: {scores}");
    }
    assert!(scores["nll"].as_f64().unwrap() < 0.5 * scores["baseline"]["nll"].as_f64().unwrap(), "{scores}");
    let rows = scores["confusion"]["counts"].as_array().unwrap();
    let tested: Vec<f64> =
        rows.iter().map(|row| row.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).sum()).collect();
    // A quarter of 50, 10 and 60 rows, to whole ones.
    let shares = tested.iter().zip([12.5, 2.5, 15.0]).all(|(tested, share)| (tested - share).abs() < 1.0);
    assert!(shares && tested.iter().sum::<f64>() == 30.0, "{tested:?}");
    let said = text(at, "evaluate m.posterior t.csv --test-fraction 0.25 --report r.html");
    assert!(said.contains("true class \\ predicted") && said.contains("AUC"), "{said}");
    let page = std::fs::read_to_string(at.join("r.html")).unwrap();
    assert!(page.contains("Confusion matrix") && page.contains("Area under the ROC curve"), "words");

    // Probabilities by name, the class, and what more data would remove.
    std::fs::write(at.join("new.csv"), "a,b\n-1.5,0\n1.5,0\n0,3\n40,40\n").unwrap();
    let predicted = json(at, "predict m.posterior new.csv");
    let columns = &predicted["predictions"];
    assert_eq!(columns["predicted"], serde_json::json!(["no", "yes", "rare", columns["predicted"][3]]));
    for i in 0..4 {
        let sum: f64 = ["p_no", "p_rare", "p_yes"].iter().map(|c| columns[*c][i].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let (removable, all) =
            (columns["removable_entropy"][i].as_f64().unwrap(), columns["entropy"][i].as_f64().unwrap());
        assert!((0.0..=all + 0.02).contains(&removable), "{removable} of {all}");
    }
    // Far from all rows nearly everything would be.
    let removable = |i: usize| columns["removable_entropy"][i].as_f64().unwrap();
    assert!(removable(3) > 3.0 * removable(0), "{columns}");
    let described = text(at, "inspect m.posterior");
    for part in ["Gaussian labels", "pseudo-count", "leave-one-out", "log-odds"] {
        assert!(described.contains(part), "{part}: {described}");
    }
    // A model that is compared is scored on the same rows.
    let laplace = "--target kind --test-fraction 0.25 --inference laplace -o l.posterior";
    assert_eq!(json(at, &format!("{FIT} {laplace}"))["method"], "laplace process");
    let both = json(at, "evaluate m.posterior t.csv --test-fraction 0.25 --against l.posterior");
    assert_eq!(both["models"].as_array().unwrap().len(), 2);
}

#[test]
fn weights_counts_and_choices_are_said() {
    let folder = folder();
    let at = folder.path();
    let weighted = text(
        at,
        &format!(
            "{FIT} --target kind --class-weights balanced --row-weights weight --verbose -o w.posterior"
        ),
    );
    assert!(weighted.contains("a population so weighted"), "{weighted}");
    // Rare rows count as much as others: where they meet the others they win more often.
    json(at, &format!("{FIT} --target kind -o plain.posterior"));
    std::fs::write(at.join("far.csv"), "a,b\n0,1.5\n").unwrap();
    let rare = |model: &str| {
        let found = json(at, &format!("predict {model} far.csv"));
        found["predictions"]["p_rare"][0].as_f64().unwrap()
    };
    assert!(
        rare("w.posterior") > rare("plain.posterior") + 0.03,
        "{} {}",
        rare("w.posterior"),
        rare("plain.posterior")
    );

    let counts = json(at, &format!("{FIT} --target count -o c.posterior"));
    assert_eq!(counts["likelihood"]["kind"], "negative_binomial", "{counts}");
    let why = counts["likelihood_choice"].as_str().unwrap();
    assert!(why.contains("--likelihood poisson, gaussian or categorical"), "{why}");
    let poisson = json(
        at,
        &format!("{FIT} --target count --likelihood poisson --inference gaussianised -o p.posterior"),
    );
    assert_eq!(
        (poisson["method"].as_str(), poisson["likelihood"]["kind"].as_str()),
        (Some("gaussianised"), Some("poisson"))
    );
    let scores = json(at, "evaluate c.posterior t.csv --against p.posterior");
    assert!(scores["nll"].as_f64().unwrap() < scores["baseline"]["nll"].as_f64().unwrap() + 2.0, "{scores}");
    let predicted = json(at, "predict c.posterior t.csv --limit 3");
    for column in ["count_mean", "count_std", "count_latent_std"] {
        assert!(predicted["predictions"][column][2].as_f64().unwrap() > 0.0, "{predicted}");
    }
    // Numbers are numbers as before, and say nothing of likelihoods.
    let numbers = text(at, "fit t.csv --features b,weight --target a --set steps=3 --verbose -o n.posterior");
    assert!(!numbers.contains("--likelihood"), "{numbers}");
}

/// One row in ten has the outcome, and where is plain: as one function of log-odds the noise of all labels hides it.
#[test]
fn a_rare_outcome_is_not_taken_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut rows = String::from("a,b,ill\n");
    for i in 0..200u32 {
        let wave = |k: f64| (f64::from(i) * k).sin();
        let (a, b) = (2.0 * wave(12.9), 2.0 * wave(78.2));
        let ill = if a + b + 0.6 * wave(3.3) > 2.1 { "yes" } else { "no" };
        rows += &format!("{a},{b},{ill}\n");
    }
    std::fs::write(at.join("t.csv"), rows).unwrap();
    let fit = "fit t.csv --target ill --inference gaussianised --set steps=15 -o m.posterior --force";
    let found = json(at, fit);
    let tried = found["gaussian_labels"]["tried"].as_array().unwrap();
    assert!(tried.iter().any(|t| t["as_classes"] == true) && tried.iter().any(|t| t["as_classes"].is_null()));
    let (own, without) = (&found["check"]["scores"]["nll"], &found["check"]["baseline_nll"]);
    let (own, without) = (own.as_f64().unwrap(), without.as_f64().unwrap());
    assert!((0.2..0.5).contains(&without) && own < 0.7 * without, "{own} {without}");
    let predicted = json(at, "predict m.posterior t.csv");
    assert_eq!(predicted["predictions"]["p_yes"].as_array().unwrap().len(), 200);
    // Who asks for one function has one.
    let one = json(at, &format!("{fit} --likelihood bernoulli"));
    assert_eq!(one["likelihood"]["kind"], "bernoulli");
    assert!(one["gaussian_labels"]["tried"].as_array().unwrap().iter().all(|t| t["as_classes"].is_null()));
}

/// Counts whose rate follows a column, in exposures that differ a hundredfold and tell nothing of it.
#[test]
fn rates_are_learned_from_counts_in_exposures() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rate = |a: f64| 3.0 * (0.8 * a).exp();
    let mut rows = String::from("a,years,claims\n");
    for i in 0..150u32 {
        let wave = |k: f64| (f64::from(i) * k).sin();
        let (a, years) = (2.0 * wave(12.9), 10f64.powf(1.0 + wave(78.2)));
        let mean = rate(a) * years;
        rows += &format!("{a},{years},{}\n", (mean + 1.2 * mean.sqrt() * wave(3.3)).max(0.0).round());
    }
    std::fs::write(at.join("t.csv"), rows).unwrap();
    std::fs::write(at.join("new.csv"), "a,years\n-1,1\n-1,10\n1,1\n1,0.5\n").unwrap();
    let fit = "fit t.csv --target claims --exposure years --set steps=15 --seed 1 -o m.posterior --force";
    for route in [
        "--likelihood poisson --inference gaussianised --pseudo-count 0.1",
        "--likelihood poisson --inference gaussianised --pseudo-count 0.1 --method sgpr --set inducing=40",
        "--likelihood negative-binomial",
        "--likelihood poisson --inference laplace",
        "--likelihood poisson --inference variational --method svgp --set inducing=15 --set iterations=400",
    ] {
        // The bound has steps of its own.
        let bound = route.contains("svgp");
        let fit = if bound { fit.replace("--set steps=15 ", "") } else { fit.to_string() };
        let route = format!("{fit} {route}");
        let found = json(at, &route);
        assert_eq!(found["features"], serde_json::json!(["a"]), "{route}");
        // The distribution without inputs knows exposures as well, and is much worse.
        let scores = &found["check"]["scores"]["nll"];
        assert!(
            scores.as_f64().unwrap() < found["check"]["baseline_nll"].as_f64().unwrap() - 0.5,
            "{route}: {found}"
        );
        let predicted = json(at, "predict m.posterior new.csv");
        let mean = |i: usize| predicted["predictions"]["claims_mean"][i].as_f64().unwrap();
        let near = |i: usize, expected: f64| (mean(i) / expected - 1.0).abs() < 0.2;
        assert!(near(0, rate(-1.0)) && near(2, rate(1.0)), "{route}: {predicted}");
        assert!((mean(1) - 10.0 * mean(0)).abs() < 1e-9 * mean(1), "{route}: {predicted}");
        assert!((mean(3) - 0.5 * mean(2)).abs() < 1e-9 * mean(2), "{route}: {predicted}");
        json(at, "evaluate m.posterior t.csv");
    }
    assert!(text(at, "inspect m.posterior").contains("counts for each unit of it on average"));
    std::fs::write(at.join("without.csv"), "a\n1\n").unwrap();
    assert!(error(at, "predict m.posterior without.csv").contains("years"));
    std::fs::write(at.join("none.csv"), "a,years\n1,0\n").unwrap();
    let said = error(at, "predict m.posterior none.csv");
    assert!(said.contains("0 is no exposure; exposures are positive"), "{said}");
    let said = error(at, &format!("{fit} --likelihood gaussian"));
    assert!(said.contains("--exposure is for counts"), "{said}");
}

#[test]
fn every_method_of_regression_learns_classes() {
    let folder = folder();
    let at = folder.path();
    let nll = |method: &str| {
        let fit =
            format!("{FIT} --target kind --test-fraction 0.25 --pseudo-count 0.1 --held-back 10 {method}");
        let found = json(at, &format!("{fit} -o m.posterior --force"));
        assert_eq!(
            (found["method"].as_str(), found["check"]["on"].as_str()),
            (Some("gaussianised"), Some("held-back"))
        );
        json(at, "evaluate m.posterior t.csv --test-fraction 0.25")["nll"].as_f64().unwrap()
    };
    let blocks = "--set blocks=1 --set block-size=80";
    // The same posterior three times: by conjugate gradients, dual descent, and inducing points at most rows.
    let cg = nll(&format!("--method cg {blocks}"));
    let sdd = nll(&format!("--method sdd {blocks} --set iterations=4000 --set batch=32"));
    let sgpr = nll("--method sgpr --set inducing=70");
    assert!(cg < 0.6 && (sdd - cg).abs() < 0.05 && (sgpr - cg).abs() < 0.1, "{cg} {sdd} {sgpr}");
}

#[test]
fn bad_targets_and_flags_are_refused_with_the_way_out() {
    let folder = folder();
    let at = folder.path();
    let message = |line: &str| error(at, &format!("{FIT} {line} -o m.posterior"));
    let said = message("--target a --inference laplace");
    assert!(said.contains("--inference is for classes, counts and student-t"), "{said}");
    assert!(message("--target kind --likelihood bernoulli").contains("3 different labels"));
    assert!(message("--target a --likelihood poisson").contains("is no count"));
    assert!(
        message("--target kind --inference laplace --method sdd")
            .contains("--inference laplace factors whole")
    );
    assert!(message("--target kind --set prior.mean=linear").contains("+ linear"));
    // What means something for Gaussian noise only is refused, not passed over.
    assert!(
        message("--target kind --set prior.initial-noise=0.5")
            .contains("--set prior.initial-noise is for numbers")
    );
    assert!(
        message("--target kind --method exact --set objective=leave-one-out").contains("have the evidence")
    );
    assert!(
        message("--target kind --method cg --set refining-rows=50")
            .contains("--set blocks and --set block-size")
    );
    assert!(message("--target kind --class-weights other=2").contains("which is no class"));
    assert!(message("--target kind --row-weights a").contains("weights are positive"));
    assert!(message("--target kind --class-weights 2").contains("LABEL=WEIGHT"));
    std::fs::write(at.join("one.csv"), "a,kind\n1,x\n2,x\n3,x\n").unwrap();
    let said = error(at, "fit one.csv --target kind -o m.posterior");
    assert!(said.contains("only one class"), "{said}");
    std::fs::write(at.join("p.csv"), "a,y\n1,0.1\n2,0.7\n3,0.4\n").unwrap();
    let said = error(at, "fit p.csv --target y --likelihood bernoulli -o m.posterior");
    assert!(said.contains("look like probabilities"), "{said}");
    assert!(!at.join("m.posterior").exists());

    // A single row of a class, and labels that look alike: said, and taken as they are.
    let mut odd = std::fs::read_to_string(at.join("t.csv")).unwrap();
    odd += "0.1,0.2,1,Yes,1\n";
    std::fs::write(at.join("odd.csv"), odd).unwrap();
    let said = text(at, "fit odd.csv --features a,b --target kind --set steps=3 --verbose -o odd.posterior");
    assert!(
        said.contains("differ in case or spaces only") && said.contains("occur in one row only"),
        "{said}"
    );
    // A label that training did not have is an error where it is scored, and none where it is predicted.
    json(at, &format!("{FIT} --target kind -o m.posterior"));
    let said = error(at, "evaluate m.posterior odd.csv");
    assert!(said.contains("row 121") && said.contains("did you mean `yes`"), "{said}");
    assert_eq!(json(at, "predict m.posterior odd.csv")["n"], 121);
}

/// Sets of classes from the fit to the file, and what says why there are none.
#[test]
fn sets_of_classes_are_columns_scores_and_facts() {
    let folder = folder();
    let at = folder.path();
    let quick = format!("{FIT} --target kind --inference gaussianised --pseudo-count 0.1 --set restarts=1");
    let fit = json(at, &format!("{quick} --folds 5 --fold 1 -o m.posterior"));
    let own = &fit["recalibration"];
    assert_eq!((&own["guarantee"], &own["rows"]), (&Value::from("left-out"), &Value::from(96)), "{own}");
    assert_eq!(own["sets"].as_array().unwrap().len(), 3);
    assert!(own["tempering"]["temperature"].as_f64().unwrap() > 0.0);
    let told = text(at, "inspect m.posterior");
    assert!(
        told.contains("sets of classes (predict --sets)") && told.contains("no guarantee is exact"),
        "{told}"
    );
    // 96 rows guarantee nothing above 96/97: all classes, and a note.
    let predicted = json(at, "predict m.posterior t.csv --sets 0.8,0.995");
    let columns = &predicted["predictions"];
    for (name, least) in [("set_0.8", 1), ("set_0.995", 3)] {
        let sets = columns[name].as_array().unwrap();
        assert_eq!(sets.len(), 120);
        for set in sets {
            let set = set.as_array().unwrap();
            assert!(
                set.len() >= least
                    && set.iter().all(|class| ["no", "rare", "yes"].contains(&class.as_str().unwrap()))
            );
        }
    }
    let notes = predicted["notes"].to_string();
    assert!(notes.contains("sets of level 0.995 are of all classes") && !notes.contains("0.8 "), "{notes}");
    text(at, "predict m.posterior t.csv --sets 0.9 -o p.csv");
    let written = std::fs::read_to_string(at.join("p.csv")).unwrap();
    assert!(written.lines().next().unwrap().ends_with(",set"), "{written}");
    // Part by part it is the same.
    text(at, "predict m.posterior t.csv --sets 0.9 --stream -o parts.csv");
    assert_eq!(std::fs::read_to_string(at.join("parts.csv")).unwrap(), written);
    let scores = json(at, "evaluate m.posterior t.csv --folds 5 --fold 1 --report r.html");
    let sets = scores["sets"].as_array().unwrap();
    assert_eq!(sets.iter().map(|s| s["level"].as_f64().unwrap()).collect::<Vec<_>>(), [0.8, 0.9, 0.95]);
    assert!(
        sets.iter().all(|s| s["coverage"].as_f64().unwrap() > 0.5 && s["mean_size"].as_f64().unwrap() >= 1.0)
    );
    assert!(std::fs::read_to_string(at.join("r.html")).unwrap().contains("sets of level 0.9"));
    let told = text(at, "evaluate m.posterior t.csv --folds 5 --fold 1");
    assert!(told.contains("sets of classes") && told.contains("hold the true one"), "{told}");
    text(at, &format!("{quick} --calibrate none -o none.posterior"));
    let told = error(at, "predict none.posterior t.csv --sets 0.9");
    assert!(told.contains("--calibrate") && told.contains("--held-back"), "{told}");
    let told = error(at, "predict m.posterior t.csv --sets 0.9 -o p.npy");
    assert!(told.contains("named columns"), "{told}");
    let told = error(at, "predict m.posterior t.csv --sets 1.5");
    assert!(told.contains("between 0 and 1"), "{told}");
}

/// Intervals of counts from the fit to the file, and what says why there are none.
#[test]
fn intervals_of_counts_are_columns_scores_and_facts() {
    let folder = folder();
    let at = folder.path();
    let quick = format!(
        "{FIT} --target count --likelihood poisson --inference gaussianised --pseudo-count 0.1 --set restarts=1"
    );
    let fit = json(at, &format!("{quick} --calibrate conformal --folds 5 --fold 1 -o c.posterior"));
    let own = &fit["intervals"];
    assert_eq!((&own["guarantee"], &own["rows"]), (&Value::from("left-out"), &Value::from(96)), "{own}");
    assert!(own["coverage"].as_f64().unwrap() > 0.8, "{own}");
    let told = text(at, "inspect c.posterior");
    assert!(told.contains("intervals (predict --quantiles): by 96 rows"), "{told}");
    // 96 rows guarantee nothing above 96/97: continued, and a note.
    let predicted = json(at, "predict c.posterior t.csv --quantiles 0.05,0.95,0.995");
    let column = |name: &str| -> Vec<f64> {
        let own = predicted["predictions"][name].as_array().unwrap();
        own.iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let ends = ["count_q0.05", "count_q0.95", "count_q0.995"].map(column);
    for i in 0..120 {
        let row = [ends[0][i], ends[1][i], ends[2][i]];
        assert!(row.is_sorted() && row.iter().all(|q| q.fract() == 0.0 && *q >= 0.0), "{row:?}");
    }
    let notes = predicted["notes"].to_string();
    assert!(notes.contains("0.995") && !notes.contains("0.95 "), "{notes}");
    // Part by part it is the same.
    text(at, "predict c.posterior t.csv --quantiles 0.1,0.9 -o p.csv");
    let written = std::fs::read_to_string(at.join("p.csv")).unwrap();
    text(at, "predict c.posterior t.csv --quantiles 0.1,0.9 --stream -o parts.csv");
    assert_eq!(std::fs::read_to_string(at.join("parts.csv")).unwrap(), written);
    let scores = json(at, "evaluate c.posterior t.csv --folds 5 --fold 1 --report r.html");
    let levels = scores["intervals"].as_array().unwrap();
    assert_eq!(levels.iter().map(|s| s["level"].as_f64().unwrap()).collect::<Vec<_>>(), [0.8, 0.9, 0.95]);
    assert!(levels.iter().all(|s| s["coverage"].as_f64().unwrap() > 0.5), "{levels:?}");
    assert!(std::fs::read_to_string(at.join("r.html")).unwrap().contains("intervals of level 0.9"));
    let told = text(at, "evaluate c.posterior t.csv --folds 5 --fold 1");
    assert!(told.contains("hold the truth") && told.contains("NLL of the likelihood itself"), "{told}");
    text(at, &format!("{quick} --calibrate none -o none.posterior"));
    // Without rows that tell, quantiles are those of the model's own distribution.
    let predicted = json(at, "predict none.posterior t.csv --quantiles 0.9");
    let ends = predicted["predictions"]["count_q0.9"].as_array().unwrap();
    assert!(ends.iter().all(|q| q.as_f64().unwrap().fract() == 0.0), "{ends:?}");
    let told = error(at, "predict c.posterior t.csv --quantiles 0.9 --latent");
    assert!(
        told.contains("--latent") && told.contains("--calibrate auto") && told.contains("--held-back"),
        "{told}"
    );
}
