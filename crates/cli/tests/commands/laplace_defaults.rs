//! What `fit --network` does when little is asked of it: defaults, held-out rows, results that could not be used.

use super::networks_common::*;

#[test]
fn the_default_of_a_regression_has_the_coverage_it_claims() {
    let folder = curve();
    let at = folder.path();
    let fit = json(at, "fit train.csv --network net.safetensors --likelihood gaussian -o m.posterior");
    let auto = &fit["header"]["auto"];
    assert_eq!(auto["compared_by"], "evidence", "{auto}");
    assert_eq!(
        fit["header"]["data"]["examples"], 60,
        "nothing is set aside of rows that the network has seen"
    );
    // Without unseen rows neither a win nor a loss is claimed.
    assert!(auto["beats_plain"].is_null() && auto["nll"].is_null() && fit["unseen"].is_null(), "{auto}");
    let notes = fit["notes"].to_string();
    assert!(notes.contains("not compared on unseen data"), "{notes}");
    // The evidence ranks structures of the same weights: the exact one is the best.
    let evidence = |i: usize| number(&auto["candidates"][i]["log_evidence"]);
    assert_eq!(auto["chosen"], auto["candidates"][1]["name"]);
    assert!(evidence(1) > evidence(0), "{auto}");
    let scores = json(at, "evaluate m.posterior test.csv");
    let (own, plain) = (&scores["models"][0]["scores"]["scores"], &scores["plain"]["scores"]);
    let coverage = number(&own["coverage_95"]);
    // 400 rows: a share of 0.95 is known to 0.011.
    assert!((0.90..=0.99).contains(&coverage), "{coverage}");
    assert!(number(&own["nll"]) < number(&plain["nll"]) + 0.02, "{scores}");
}

#[test]
fn the_default_of_a_classifier_is_no_worse_than_its_network() {
    let folder = classifier();
    let at = folder.path();
    let fit = json(at, "fit train.csv --network net.safetensors --likelihood categorical -o m.posterior");
    assert_eq!(fit["header"]["auto"]["chosen"], "last-layer");
    assert_eq!(fit["header"]["options"]["integration"]["kind"], "monte_carlo");
    assert!(
        number(&fit["effective_dimensions"]) > 1.0,
        "a posterior, and not the plain network under another name"
    );
    let scores = json(at, "evaluate m.posterior test.csv");
    let (own, plain) = (number(&scores["models"][0]["scores"]["nll"]), number(&scores["plain"]["nll"]));
    assert!(own < plain + 0.02, "{own} {plain}");
}

#[test]
fn rows_that_training_set_aside_are_unseen() {
    let folder = classifier();
    let at = folder.path();
    json(
        at,
        "train net.toml train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 60 --validation-fraction 0.25 --seed 5 -o aside.safetensors",
    );
    let start = "fit train.csv --network aside.safetensors --likelihood categorical -o m.posterior";
    // By default they compare curvatures with each other and with the network.
    let fit = json(at, start);
    assert_eq!((&fit["unseen"]["examples"], &fit["header"]["data"]["examples"]), (&100.into(), &300.into()));
    let auto = &fit["header"]["auto"];
    assert_eq!(auto["compared_by"], "unseen_examples");
    assert!(auto["candidates"].as_array().unwrap().len() >= 5, "{auto}");
    let best = auto["candidates"].as_array().unwrap().iter().filter_map(|c| c["nll"].as_f64());
    assert_eq!(best.fold(f64::INFINITY, f64::min), number(&auto["nll"]));
    let margin = number(&fit["unseen"]["difference_error"]);
    assert_eq!(auto["beats_plain"], number(&auto["nll"]) + margin < number(&auto["plain_nll"]));
    assert!(fit["notes"].to_string().contains("`posterior train` set aside"));
    // A named curvature is scored on them, and may be tuned on them.
    let fit = json(at, &format!("{start} --method last-layer"));
    assert_eq!(fit["unseen"]["examples"], 100);
    let fit = json(at, &format!("{start} --method last-layer --tune validation"));
    assert_eq!(fit["header"]["summary"]["held_out"]["examples"], 100);
    assert!(fit["notes"].to_string().contains("also chose its hyperparameters"));
    let inspected = || {
        let output = posterior(at).args(["inspect", "m.posterior"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(inspected().contains("NLL on unseen rows"), "{}", inspected());
    let samples = "--method sampled --set samples=16 --set em-samples=4 --set em-steps=3";
    let turns = number(&json(at, &format!("{start} {samples}"))["unseen"]["nll"]);
    let fit = json(at, &format!("{start} {samples} --tune validation"));
    let (chosen, told) = (number(&fit["unseen"]["nll"]), &fit["header"]["summary"]["held_out"]);
    assert!(
        chosen <= turns && (number(&told["best"]["nll"]) - chosen).abs() < 1e-6,
        "{chosen} {turns} {told}"
    );
    assert!((number(&told["grid"][0]["nll"]) - turns).abs() < 1e-6, "{turns} {told}");
    assert!(fit["notes"].to_string().contains("also chose its hyperparameters"));
    assert!(inspected().contains("settings on 100 held-out examples"), "{}", inspected());
    // Error bars that are worse than none are not passed over in silence.
    let warned = |flags: &str| {
        let fit = json(at, &format!("{start} --method {flags}"));
        let (own, plain) = (number(&fit["unseen"]["nll"]), number(&fit["unseen"]["plain_nll"]));
        (own > plain + 1e-3, fit["notes"].to_string().contains("the network alone is better, by"))
    };
    assert_eq!(warned("diagonal --tune none --set precision=1e-4"), (true, true));
    assert_eq!(warned("last-layer --tune none --set precision=1e4"), (false, false));
    // Of other data nothing is known.
    let fit = json(at, &start.replace("train.csv", "test.csv"));
    assert!(fit["unseen"].is_null() && fit["header"]["data"]["examples"] == 1000);
    // Too few to score anything: they are learned from, and that is said.
    json(
        at,
        "train net.toml train.csv --target colour --loss cross-entropy --epochs 2 --validation-fraction 0.1 -o few.safetensors",
    );
    let fit = json(at, &start.replace("aside", "few"));
    assert!(fit["unseen"].is_null() && fit["header"]["data"]["examples"] == 400);
    assert!(
        fit["notes"].to_string().contains("40 rows, which `posterior train` set aside, are too few"),
        "{fit}"
    );
}

#[test]
fn rows_that_the_network_has_seen_are_refused_or_called_worthless() {
    let folder = classifier();
    let at = folder.path();
    let start = "fit train.csv --network net.safetensors --likelihood categorical -o m.posterior";
    for flags in ["", "--method full", "--method full --tune validation"] {
        let text = error(at, &format!("{start} {flags} --validation-fraction 0.2"));
        assert!(
            text.contains("the network was trained") && text.contains("--validation-data"),
            "{flags}: {text}"
        );
    }
    let text = error(at, &format!("{start} --method full --tune cross-validation"));
    assert!(text.contains("the network was trained on") && text.contains("--allow-seen-rows"), "{text}");
    let text = error(at, &format!("{start} --method full --tune validation"));
    assert!(text.contains("rows that the network has not seen"), "{text}");
    // The same rows in another file are found; few rows say how many are needed.
    std::fs::copy(at.join("train.csv"), at.join("copy.csv")).unwrap();
    let text = error(at, &format!("{start} --validation-data copy.csv"));
    assert!(text.contains("400 of 400 rows") && text.contains("worthless"), "{text}");
    rings(at, "few.csv", 400..401);
    let text = error(at, &format!("{start} --validation-data few.csv"));
    assert!(text.contains("1 held-out examples are too few") && text.contains("at least 50"), "{text}");
    assert!(!at.join("m.posterior").exists());
    // Insisted upon, the result says what it is worth.
    for flags in ["--tune validation --validation-fraction 0.2", "--tune cross-validation --set folds=3"] {
        let fit = json(at, &format!("{start} --method last-layer {flags} --allow-seen-rows"));
        assert!(
            fit["notes"].to_string().contains("WARNING: hyperparameters were chosen on rows"),
            "{}",
            fit["notes"]
        );
        assert!(fit["unseen"].is_null());
    }
    let text = error(at, &format!("{start} --allow-seen-rows"));
    assert!(text.contains("--allow-seen-rows belongs to --tune"), "{text}");
    // Rows of their own: one half of them chooses, the other scores.
    rings(at, "own.csv", 400..700);
    let fit = json(at, &format!("{start} --validation-data own.csv"));
    assert_eq!(fit["unseen"]["examples"], 150);
    // Where nothing is chosen, all of them score.
    let fit = json(at, &format!("{start} --method last-layer --validation-data test.csv"));
    assert_eq!(fit["unseen"]["examples"], 1000);
}

#[test]
fn fixed_points_do_not_run_away_and_fits_that_are_written_predict() {
    let folder = curve();
    let at = folder.path();
    let fit = |flags: &str| {
        json(
            at,
            &format!("fit train.csv --network net.safetensors --likelihood gaussian -o m.posterior {flags}"),
        )
    };
    for curvature in ["diagonal", "kronecker", "last-layer"] {
        let best = number(&fit(&format!("--method {curvature} --tune evidence"))["log_evidence"]);
        let found = number(&fit(&format!("--method {curvature} --tune mackay"))["log_evidence"]);
        assert!((best - found).abs() < 1e-3 * best.abs().max(1.0), "{curvature}: {best} {found}");
    }
    // Single precision, noise as small as it gets: variances in the tangent kernel are differences of large numbers.
    for noise in ["1e-6", "1e-9"] {
        let done = fit(&format!(
            "--method function-space --float32 --set noise=fixed --set initial-noise={noise} --tune none --set precision=1e-3"
        ));
        assert_eq!(done["precision"], "f32");
        json(at, "predict m.posterior train.csv");
        json(at, "evaluate m.posterior test.csv");
    }
}
