//! Scores of rows that a fit left out, by folds, groups and time: those of a command are those of a loop by hand.

use super::running::{error, json, run};

/// 90 rows with a person each of 15, a day, a fold, and a label.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("a,person,day,part,label,y\n");
    for i in 0..90 {
        let (a, person) = ((i as f64 * 0.618_034) % 1.0, i * 7 % 15);
        let day = (i * 37) % 90 / 2;
        let y = (3.0 * a).sin() + 0.1 * f64::from(person as u8) + 0.01 * (i as f64 * 12.9898).sin();
        let label = ["no", "yes"][usize::from(a > 0.4)];
        text +=
            &format!("{a},p{person},2021-{:02}-{:02},{},{label},{y}\n", 1 + day / 28, 1 + day % 28, i % 3);
    }
    std::fs::write(folder.path().join("t.csv"), text).unwrap();
    folder
}

const FIT: &str = "fit t.csv --set optimizer=adam --set steps=30";

#[test]
fn folds_in_turn_are_those_of_a_loop() {
    let folder = folder();
    let at = folder.path();
    for (target, split, folds, excluded) in [
        ("--target y --exclude person,label", "--folds 3", 3, "none"),
        ("--target y --exclude label", "--folds 3 --groups person", 3, "label"),
        ("--target y --exclude person,label", "--folds 3 --time day", 3, "none"),
        ("--target y --exclude person,label", "--folds part", 3, "part"),
        ("--target label --exclude person,y --inference laplace", "--folds 3", 3, "none"),
    ] {
        let found = json(at, &format!("{FIT} {target} {split} -o all.posterior"));
        assert_eq!(found["n"], 90, "{split}");
        let named = found["features"].to_string();
        assert!(!named.contains(excluded), "{named}");
        let each = found["folds"]["each"].as_array().unwrap();
        assert_eq!(each.len(), folds);
        let mut scores = Vec::new();
        for (k, own) in each.iter().enumerate() {
            // By hand: a fit without the fold, and its scores.
            let fitted = json(at, &format!("{FIT} {target} {split} --fold {k} -o one.posterior"));
            let by_hand = json(at, &format!("evaluate one.posterior t.csv {split} --fold {k}"));
            assert_eq!(by_hand["scored_rows"], "held-out", "{split}");
            assert_eq!(own["fold"], k);
            for key in ["n", "nll", "rmse", "coverage_95", "accuracy", "ece"] {
                assert_eq!(own[key], by_hand[key], "{split}, {k}, {key}");
                assert_eq!(own[key], fitted["left_out"][key], "{split}, {k}, {key}");
            }
            scores.push(own["nll"].as_f64().unwrap());
        }
        let mean = scores.iter().sum::<f64>() / folds as f64;
        let squares: f64 = scores.iter().map(|s| (s - mean).powi(2)).sum();
        let expected = (squares / (folds - 1) as f64 / folds as f64).sqrt();
        assert!((found["folds"]["mean"]["nll"].as_f64().unwrap() - mean).abs() < 1e-12);
        assert!((found["folds"]["standard_error"]["nll"].as_f64().unwrap() - expected).abs() < 1e-12);
    }
    let output =
        run(at, &format!("{FIT} --target y --exclude person,label --folds 3 --verbose -o all.posterior"));
    let printed = String::from_utf8(output.stdout).unwrap();
    for word in ["Scores of each fold", "standard error", "inside the 95 % interval"] {
        assert!(printed.contains(word), "{printed}");
    }
}

#[test]
fn shares_by_group_and_time_are_scored_right_after_the_fit() {
    let folder = folder();
    let at = folder.path();
    for split in
        ["--test-fraction 0.2", "--test-fraction 0.2 --groups person", "--test-fraction 0.2 --time day"]
    {
        let fit = format!("{FIT} --target y --exclude person,label {split} -o m.posterior");
        let fit = if split.contains("groups") { fit.replace("person,label", "label") } else { fit };
        let found = json(at, &fit);
        let scores = json(at, &format!("evaluate m.posterior t.csv {split}"));
        assert_eq!(scores["scored_rows"], "held-out");
        for key in ["n", "rmse", "nll", "crps"] {
            assert_eq!(found["left_out"][key], scores[key], "{split}, {key}");
        }
    }
    // A category that training had not is no reason to lose a model.
    let lost = json(
        at,
        &format!(
            "{FIT} --target y --exclude label,day --categories person --features a,person --test-fraction 0.9 --seed 2 --unseen error -o m.posterior"
        ),
    );
    assert!(lost["left_out"]["failed"].as_str().unwrap().contains("did not occur in training"), "{lost}");
    assert!(at.join("m.posterior").exists());
}

#[test]
fn what_cannot_be_parted_is_said() {
    let folder = folder();
    let at = folder.path();
    let own = "--target y --exclude label -o m.posterior";
    for (flags, expected) in [
        ("--folds part --groups person", "are for folds that are drawn"),
        ("--folds nowhere", "no file that is there, and no column of t.csv"),
        ("--folds 3 --fold 0 --groups nobody", "has no column `nobody`"),
        ("--folds 40 --groups person", "15 groups cannot be parted into 40 folds"),
        ("--folds 3 --time person", "is not a number"),
        ("--folds 3 --stream", "name one --fold"),
        ("--folds 3 --fold 0 --groups person --stream", "--stream false"),
    ] {
        let message = error(at, &format!("{FIT} {own} {flags}"));
        assert!(message.contains(expected), "{flags}: {message}");
    }
    json(at, &format!("{FIT} {own} --folds 3 --fold 0 --groups person"));
    assert!(error(at, "evaluate m.posterior t.csv --folds 3").contains("wants the --fold"));
}

#[test]
fn rows_that_have_no_score_are_named_as_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Days that only the user can tell, and a category that comes last.
    let mut text = String::from("day,kind,y\n");
    for i in 0..60 {
        let kind = if i == 55 { "late" } else { ["red", "blue"][i % 2] };
        text += &format!("{}/{}/2021,{kind},{}.5\n", 1 + i % 12, 1 + i / 12, (i * 7) % 13);
    }
    std::fs::write(at.join("t.csv"), text).unwrap();
    let own = "--target y --date-order month-first --time day --test-fraction 0.3 -o m.posterior";
    let found = json(at, &format!("{FIT} {own} --unseen other"));
    let scores = json(at, "evaluate m.posterior t.csv --time day --test-fraction 0.3");
    assert_eq!(found["left_out"]["nll"], scores["nll"]);
    for key in ["rows_left_out", "unseen_categories"] {
        assert_eq!(found["left_out"][key], scores[key]);
    }
    // Nothing decides what dates begin with, which is reported.
    let open = own.replace("--date-order month-first ", "");
    let told = run(at, &format!("{FIT} {open} --unseen other")).stderr;
    assert!(String::from_utf8_lossy(&told).contains("`1/1/2021` in column `day` as month/day/year"));
    let split = "--folds part --fold 1";
    let mut text = String::from("kind,part,y\n");
    (0..60).for_each(|i| text += &format!("{},{},{}.5\n", if i == 25 { "late" } else { "red" }, i / 20, i));
    std::fs::write(at.join("t.csv"), text).unwrap();
    let strict = "--categories kind --unseen error";
    let lost = json(at, &format!("{FIT} --target y {split} {strict} -o m.posterior"));
    let why = lost["left_out"]["failed"].as_str().unwrap();
    assert!(why.contains("row 26, column `kind`"), "{why}");
    let turns = json(at, &format!("{FIT} --target y --folds part {strict} -o m.posterior"));
    assert_eq!((&turns["folds"]["scored"], &turns["folds"]["failed"]), (&2.into(), &1.into()));
    let output = run(at, &format!("{FIT} --target y --folds part {strict} --verbose -o m.posterior"));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("fold 1 has no score") && printed.contains("row 26"), "{printed}");
}
