//! Experiments on deep kernels: tables, numbers of features, a function with jumps, a country.

// Errors of experiments carry paths and causes; tests do not mind their size.
#![allow(clippy::result_large_err)]

use crate::quick_runs::{changed, number, quick, quick_with};
use posterior_experiments::{ExperimentError, Outcome, RunOptions, run};
use posterior_optim::Signal;
use std::path::Path;

fn kept(name: &str, journal: &Path) -> Outcome {
    let options = RunOptions { quick: true, journal: Some(journal.into()), ..RunOptions::default() };
    run(&changed(name, &[]).unwrap(), &options, &mut |_| Signal::Continue).unwrap()
}

#[test]
fn tables_by_every_method_and_what_is_finished_is_kept() {
    let parts = tempfile::tempdir().unwrap();
    let journal = parts.path().join("parts.jsonl");
    let outcome = kept("deep_kernels_tables", &journal);
    let missing: Vec<_> = outcome.published.iter().filter(|p| p.found.is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} {:?}", outcome.tables());
    // Fourteen methods on pol, twelve on protein, where GP and DKL ran out of memory: three scores each.
    assert_eq!(outcome.published.len(), 78);
    for table in ["pol", "protein", "keggdirected"] {
        let methods = outcome.mean["tables"][table].as_object().unwrap();
        assert_eq!(methods.len(), 17);
        for (name, found) in methods {
            let of = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{table}, {name}: {key}"));
            assert_eq!((of("splits_counted"), of("failed")), (1.0, 0.0), "{table}, {name}");
            // A learner of nothing has an RMSE of one target's deviation, give or take a fifth with 24 rows.
            assert!(of("rmse") < 1.5 && of("mae") <= of("rmse") && of("nll").is_finite(), "{table}, {name}");
            assert!(of("coverage_50") <= of("coverage_90") && of("coverage_90") <= of("coverage_95"));
            let rows = if ["GP", "DKL"].contains(&name.as_str()) { 60.0 } else { 96.0 };
            assert_eq!(of("rows"), rows, "{table}, {name}");
            let features = match name.as_str() {
                "GP" | "DKL" => None,
                one if one.ends_with('r') => Some(1.0),
                _ => Some(6.0),
            };
            assert_eq!(found["points"].as_f64(), features, "{table}, {name}");
        }
        assert_eq!(number(&outcome, &["tables", table, "DBK", "set_aside"]), 9.0);
        let chosen = |name: &str| methods[name]["chosen"].as_str().unwrap();
        assert_eq!(chosen("SVDBK"), "the bound on the evidence");
        assert_eq!(chosen("network alone"), "the network alone with a learned noise");
    }
    let again = kept("deep_kernels_tables", &journal);
    // Seventeen methods on three tables, four on two others.
    assert_eq!((outcome.reused, again.reused), (0, 59));
    assert_eq!(outcome.mean, again.mean);
}

#[test]
fn traps_begin_where_they_are_told() {
    let outcome = quick("deep_kernels_traps");
    let nll = |method: &str| number(&outcome, &["tables", "pol", method, "nll"]);
    let methods = outcome.mean["tables"]["pol"].as_object().unwrap();
    assert_eq!(methods.len(), 8);
    assert!(methods.values().all(|found| found["failed"].as_f64() == Some(0.0)), "{methods:?}");
    // Another first noise is another fit, and so is another share of the trace term.
    assert_ne!(nll("noise from 3 in 10"), nll("noise from 1 in 100"));
    assert_ne!(nll("network alone"), nll("network alone, noise from 1 in 100"));
    assert_ne!(nll("the whole trace term"), nll("a tenth of the trace term"));
    // Learning begins there, and only where something is learned.
    let negative = quick_of("deep_kernels_traps", ("initial-noise = 0.3", "initial-noise = -0.3"));
    assert!(negative.contains("`noise from 3 in 10`: `initial-noise` is a variance above 0"), "{negative}");
    let given = quick_of("thesis_uci", ("method = \"cg\"", "method = \"cg\"\ninitial-noise = 0.3"));
    assert!(given.contains("`initial-noise` is where learning begins"), "{given}");
}

/// Why a file with another line is refused.
fn quick_of(name: &str, change: (&str, &str)) -> String {
    let options = RunOptions { quick: true, ..RunOptions::default() };
    let refused = changed(name, &[change]).and_then(|e| run(&e, &options, &mut |_| Signal::Continue));
    refused.expect_err(name).to_string()
}

#[test]
fn scores_by_number_of_features() {
    let parts = tempfile::tempdir().unwrap();
    let outcome = kept("deep_kernels_ranks", &parts.path().join("parts.jsonl"));
    // A method with as many features as it has anyway is the same fit: of two tables and three methods, each once.
    assert_eq!(outcome.reused, 6);
    for table in ["pol", "protein"] {
        for method in ["DBK", "DBK-c", "SVDBK"] {
            for rank in ["1", "8", "128"] {
                let of = |key: &str| number(&outcome, &["ranks", table, method, rank, key]);
                assert_eq!(of("points"), rank.parse::<f64>().unwrap());
                assert!(of("effective_rank") >= 1.0 && of("effective_rank") <= of("points") + 1e-9);
            }
            let same = |key: &str| {
                let alone = number(&outcome, &["tables", table, method, key]);
                assert_eq!(alone, number(&outcome, &["ranks", table, method, "8", key]), "{method}");
            };
            ["nll", "rmse", "seconds"].into_iter().for_each(same);
        }
    }
    // Score by score, a picture for each table.
    let html = outcome.report().to_html();
    for table in ["pol", "protein"] {
        for score in ["NLL", "RMSE", "seconds"] {
            assert!(html.contains(&format!("{table}: {score} by number of features")));
        }
    }
}

#[test]
fn one_fit_that_is_refused_takes_no_other_with_it() {
    // 1 MB is less than what is reserved for work alone.
    let changes = [("memory = 16.0", "memory = 0.001"), ("splits = 1\nseconds", "splits = 2\nseconds")];
    let outcome = quick_with("deep_kernels_tables", &changes);
    let of = |name: &str, key: &str| outcome.mean["tables"]["pol"][name][key].as_f64();
    assert_eq!((of("SVDBK", "failed"), of("SVDBK", "nll")), (Some(2.0), None));
    assert_eq!((of("GP", "failed"), of("GP", "splits_counted")), (Some(0.0), Some(2.0)));
    let html = outcome.report().to_html();
    assert!(html.contains("pol, split 1, SVDBK: no result"), "the reason is told");
}

#[test]
fn a_function_with_jumps_by_every_method() {
    let outcome = quick("deep_kernels_step");
    let of = |method: &str, key: &str| number(&outcome, &["methods", method, key]);
    let methods = outcome.mean["methods"].as_object().unwrap();
    assert_eq!(methods.len(), 6);
    for name in methods.keys() {
        for key in ["function_coverage", "coverage_50", "coverage_95"] {
            assert!((0.0..=1.0).contains(&of(name, key)), "{name}: {key}");
        }
        for key in ["correlation_on_plateaus", "correlation_across_jumps"] {
            assert!(of(name, key).abs() <= 1.0 + 1e-9, "{name}: {key}");
        }
        // All levels lie between -0.6 and 0.9: even a constant is nearer than this.
        assert!(of(name, "rmse") < 0.8 && of(name, "rmse_at_jumps") < 0.8, "{name}");
    }
    // A stationary kernel has one variance, and one correlation for each distance.
    assert!((of("exact", "least_over_largest_variance") - 1.0).abs() < 1e-9);
    // The correction lifts every variance to the largest one in training.
    let (with, without) = ("dbk corrected", "dbk uncorrected");
    assert!(of(with, "least_over_largest_variance") > of(without, "least_over_largest_variance"));
    assert!(of(with, "least_over_largest_variance") > 0.5);
    let chosen = methods[without]["chosen"].as_str().unwrap();
    assert!(["the bound on the evidence", "the evidence of all rows"].contains(&chosen), "{chosen}");
    let html = outcome.report().to_html();
    // Covariances and correlations of six methods, each with its bar.
    assert_eq!(html.matches("class=\"map\"").count(), 12);
    assert_eq!(html.matches("class=\"map shades\"").count(), 12);
    assert!(html.len() < 500_000, "{}", html.len());
}

#[test]
fn a_country_by_every_method_and_a_table_of_ones_own() {
    let outcome = quick("deep_kernels_spatial");
    let of = |method: &str, key: &str| number(&outcome, &["methods", method, key]);
    assert!(outcome.published.len() == 9 && outcome.published.iter().all(|p| p.found.is_some()));
    assert!(outcome.published.iter().all(|p| p.published.note.contains("not comparable")));
    // A kernel without a network is the same everywhere, those with one are not.
    assert!(of("SVGP", "difference_of_places") < 1e-6);
    for method in ["SVDKL", "SVDBK", "default"] {
        assert!(of(method, "difference_of_places") > 1e-4, "{method}");
    }
    let html = outcome.report().to_html();
    // Mean, deviation and two places of four methods, and the truth.
    assert_eq!(html.matches("class=\"map\"").count(), 17);
    assert!(html.len() < 500_000, "{}", html.len());

    let own = tempfile::tempdir().unwrap();
    let table = own.path().join("places.csv");
    let rows = |columns: usize, sign: f64| {
        let names = (0..columns).map(|j| format!("c{j}")).collect::<Vec<_>>().join(",");
        let row = |i: usize| {
            let cells = (0..columns).map(|j| ((i * (j + 3)) % (17 + j)) as f64 + 1.0);
            cells.map(|c| (sign * c).to_string()).collect::<Vec<_>>().join(",")
        };
        (0..60).fold(names, |text, i| text + "\n" + &row(i)) + "\n"
    };
    let named = format!("file = {:?}\nrows = 300", table.display().to_string());
    let tried = || {
        let experiment = changed("deep_kernels_spatial", &[("rows = 300", &named)]).unwrap();
        let options = RunOptions { quick: true, ..RunOptions::default() };
        run(&experiment, &options, &mut |_| Signal::Continue)
    };
    std::fs::write(&table, rows(3, 1.0)).unwrap();
    let html = tried().unwrap().report().to_html();
    assert!(html.contains(">48 and 12<"), "a fifth of 60 rows are tested on");
    assert_eq!(html.matches("class=\"map\"").count(), 16, "nobody knows the truth of a table");
    for (columns, sign, word) in [(4, 1.0, "two coordinates"), (3, -1.0, "positive")] {
        std::fs::write(&table, rows(columns, sign)).unwrap();
        let error = tried().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (name, from, to, word) in [
        ("tables", "splits = 5", "splits = 0", "splits"),
        ("tables", "seconds = 600.0", "seconds = -1.0", "seconds"),
        ("tables", "memory = 16.0", "memory = nan", "memory"),
        ("tables", "rows_of = { GP = 3000, DKL = 2000 }", "rows_of = { PG = 3000 }", "`PG`"),
        ("tables", "rows_of = { GP = 3000, DKL = 2000 }", "rows_of = { GP = 3 }", "rows_of"),
        ("tables", "inputs = \"deviation\"", "inputs = \"inches\"", "inches"),
        ("tables", "splits = 5", "splits = 5\ntest = 1.0", "share"),
        ("tables", "kernel = \"se(ard)\"", "kernel = \"sea\"", "sea"),
        ("tables", "name = \"protein\"", "name = \"pol\"", "`pol`"),
        ("tables", "name = \"protein\"", "name = \"protein\"\nmethods = [\"none\"]", "`none`"),
        ("tables", "name = \"protein\"", "name = \"protein\"\nmethods = []", "at least one"),
        ("tables", "name = \"sDKL\"", "name = \"sDKL\"\ncheckpoint = \"x\"", "checkpoint"),
        ("tables", "name = \"sDKL\"", "name = \"sDKL\"\nranks = 3", "ranks"),
        ("step", "rows = 300", "rows = 3", "rows"),
        ("step", "noise_variance = 0.01", "noise_variance = -0.01", "noise_variance"),
        ("step", "kernel_grid = 120", "kernel_grid = 5000", "kernel_grid"),
        ("step", "grid = 401", "grid = 1", "grid"),
        ("spatial", "test = 0.2", "test = 0.0", "share"),
        ("spatial", "grid = 60", "grid = 2", "grid"),
        ("spatial", "rows = 19535", "rows = 5", "rows"),
        ("spatial", "seconds = 600.0", "seconds = 0.0", "seconds"),
        ("ranks", "values = [1, 4,", "values = [4, 1,", "ascending"),
        ("ranks", "values = [1, 4,", "values = [0, 4,", "from 1"),
        ("ranks", "methods = [\"DBK\", \"DBK-c\", \"SVDBK\", \"SVDBK-c\"", "methods = [\"none\"", "`none`"),
        (
            "ranks",
            "method = \"dkl\"\nrank = 128\nobjective = \"evidence\"",
            "method = \"exact\"",
            "no features",
        ),
    ] {
        let error = changed(&format!("deep_kernels_{name}"), &[(from, to)]).unwrap_err().to_string();
        assert!(error.contains(word), "{from} -> {to}: {error}");
    }
    let missing = changed("deep_kernels_tables", &[("../shared/data/uci", "nowhere")]).unwrap();
    let error = run(&missing, &RunOptions::default(), &mut |_| Signal::Continue).unwrap_err();
    assert!(matches!(error, ExperimentError::MissingData { .. }), "{error}");
}

/// The benchmarks that the report on generalised inference announced: standard folds, and a kernel that rows set aside choose.
#[test]
fn tables_in_standard_folds_by_generalised_inference() {
    let outcome = quick("generalised_tables");
    for table in ["airfoil", "bike"] {
        let methods = outcome.mean["tables"][table].as_object().unwrap();
        assert_eq!(methods.contains_key("exact"), table == "airfoil");
        for (name, found) in methods {
            let of = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{table}, {name}: {key}"));
            assert_eq!((of("splits_counted"), of("failed")), (2.0, 0.0), "{table}, {name}");
            // The targets' deviation is 1; ten steps on 72 rows lead nowhere far from it.
            assert!(of("rmse") < 2.0 && of("nll").is_finite(), "{table}, {name}");
        }
        // What is chosen is one of both on each fold.
        let nll = |name: &str, fold: usize| methods[name]["each"][fold]["nll"].as_f64().unwrap();
        for fold in 0..2 {
            let (a, b) = (nll("gvi, SE", fold), nll("gvi, NNGP", fold));
            let chosen = nll("gvi, kernel by validation", fold);
            assert!(chosen == a || chosen == b, "{table}, fold {fold}: {a} {b} {chosen}");
        }
    }
    let unknown = [
        ("seconds = 30.0", "secondz = 30.0"),
        ("[[choice]]\nname", "[[choice]]\nnames"),
        ("[[table]]\nname = \"wine\"", "[[table]]\nname = \"wine\"\nfold = 3"),
    ];
    let error = changed("generalised_tables", &unknown).unwrap_err().to_string();
    for key in ["`secondz`", "`choice.names`", "`table.fold`"] {
        assert!(error.contains(key), "{key}: {error}");
    }
}
