//! Flags of searches that do not fit each other, the network or the data: refused, or followed as far as they go.

use super::laplace_searches::{CURVE, RINGS};
use super::networks_common::*;
use serde_json::Value;
use std::path::Path;

/// The message of a command line that is wrong usage.
fn usage(at: &Path, line: &str) -> String {
    let (status, text) = failure(at, line);
    assert_eq!(status, Some(2), "{line}: {text}");
    text
}

#[test]
fn what_a_search_does_not_have_is_refused() {
    let folder = curve();
    let at = folder.path();
    let usage = |flags: &str, expected: &str| {
        let (status, text) = failure(at, &format!("{CURVE} {flags} --out m.posterior"));
        assert_eq!(status, Some(2), "{flags}: {text}");
        assert!(text.contains(expected), "{flags}: {text}");
    };
    usage("--curvature valla --companion on", "--companion belongs to --curvature fixed-mean");
    usage("--curvature valla --kernel rbf", "--kernel belongs to --curvature fixed-mean");
    usage("--curvature kronecker --steps 10", "--steps belongs to --curvature fixed-mean, valla");
    usage("--curvature fixed-mean --landmarks 10", "--landmarks belongs to --curvature ella");
    for flag in [
        "regulariser wasserstein",
        "regulariser-weight 2",
        "regulariser-mode posterior",
        "variational-kernel cholesky",
        "update-rule adabelief",
    ] {
        let name = flag.split(' ').next().unwrap();
        for other in ["fixed-mean", "valla", "kronecker", "auto"] {
            usage(&format!("--curvature {other} --{flag}"), &format!("--{name} belongs to --curvature gwi"));
        }
    }
    for flag in
        ["alpha 0.5", "companion on", "freeze noise", "closed-form", "trajectory-every 5", "energy-draws 5"]
    {
        let name = flag.split(' ').next().unwrap();
        usage(&format!("--curvature gwi --{flag}"), &format!("--{name} belongs to --curvature fixed-mean"));
    }
    usage("--curvature gwi --tune evidence", "--tune has no such meaning beside --curvature gwi");
    usage("--curvature gwi --precision 2", "--precision has no such meaning beside --curvature gwi");
    usage("--curvature gwi --without-affine", "--without-affine has no effect");
    usage("--curvature gwi --weights last", "--weights belongs to");
    usage("--curvature gwi --regulariser-weight 0", "regulariser-weight");
    usage("--curvature gwi --regulariser nonsense", "is no regulariser");
    usage("--curvature sampled --batch 10", "--batch belongs to --solver descent");
    usage("--curvature fixed-mean --tune mackay", "--tune has no such meaning beside --curvature fixed-mean");
    usage("--curvature temperature --precision 3", "--precision has no such meaning");
    usage("--curvature ella --prior layerwise", "not to function-space and ella");
    usage("--curvature valla --closed-form --steps 5", "no meaning beside --closed-form");
    for flag in ["alpha 0", "batch 10", "energy-draws 5"] {
        let name = flag.split(' ').next().unwrap();
        usage(
            &format!("--curvature valla --closed-form --{flag}"),
            &format!("--{name} has no meaning beside"),
        );
    }
    usage("--curvature fixed-mean --closed-form --companion on", "--companion has no meaning beside");
    usage("--curvature valla --closed-form --freeze noise", "holds everything else");
    usage("--curvature valla --energy-draws 5", "--energy-draws belongs to --likelihood categorical");
    usage("--curvature valla --closed-form --validate-every 5", "--validate-every has no meaning beside");
    usage("--curvature valla --closed-form --patience 5", "--patience has no meaning beside");
    usage("--curvature sampled --tune cross-validation", "--tune has no such meaning");
    usage("--curvature sampled --tune none --em-steps 2", "--em-steps has no meaning beside --tune none");
    usage("--curvature sampled --tune none --update evidence", "--update has no meaning beside --tune none");
    usage("--curvature sampled --solver descent --space functions", "--space belongs to --solver");
    usage("--curvature temperature --resume", "keeps what it has on the way");
    let says = |flags: &str, expected: &str| {
        let text = error(at, &format!("{CURVE} {flags} --out m.posterior"));
        assert!(text.contains(expected), "{flags}: {text}");
        assert!(!at.join("m.posterior").exists(), "{flags}");
    };
    says(
        "--curvature fixed-mean --inducing-points 61",
        "61 inducing points were asked for, but there are 60 examples",
    );
    says(
        "--curvature ella --landmarks 61 --rank 5",
        "61 landmarks were asked for, but there are 60 examples",
    );
    says("--curvature fixed-mean --steps 3 --kernel nonsense", "nonsense");
    says("--curvature gwi --steps 3 --kernel nonsense", "nonsense");
    says("--curvature gwi --kernel tangent", "the process with the tangent kernel is `valla`");
    says(
        "--curvature gwi --inducing-points 61",
        "61 inducing points were asked for, but there are 60 examples, which they are chosen among",
    );
    says(
        "--curvature gwi --variational-kernel kernelised --regulariser kl",
        "take a cholesky, diagonal or log kernel",
    );
    says("--curvature gwi --regulariser multinomial", "those of the network under either process");
    says("--curvature sampled --samples 100000 --memory 0.05", "fewer samples");
    let alone = "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --curvature temperature --out m.posterior";
    assert!(error(at, alone).contains("--validation-data"), "a temperature needs rows to be chosen on");
    // Rows that the network has seen choose nothing.
    let seen = "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --curvature fixed-mean --validation-data train.csv --out m.posterior";
    assert!(
        error(at, seen).contains("the network was trained on them"),
        "rows of the training choose nothing"
    );
    let rings = classifier();
    let text =
        error(rings.path(), &format!("{RINGS} --curvature valla --inducing-points 2 --out m.posterior"));
    assert!(text.contains("has 3 outputs"), "{text}");
}

#[test]
fn flags_that_would_do_nothing_in_a_search_are_refused() {
    let (folder, rings) = (curve(), classifier());
    let alone = "fit laplace --network net.safetensors --data train.csv --likelihood gaussian";
    let classes = "fit laplace --network net.safetensors --data train.csv --likelihood categorical";
    for (line, expected) in [
        ("--curvature fixed-mean --without-affine", "--without-affine has no effect"),
        ("--curvature temperature --without-affine", "--without-affine has no effect"),
        ("--curvature valla --freeze kernel", "--freeze kernel has no effect with --curvature valla"),
        ("--curvature valla --freeze outputs", "--freeze outputs has no effect with --curvature valla"),
        ("--curvature fixed-mean --kernel-inputs features --freeze outputs", "with a kernel on features"),
        (
            "--curvature fixed-mean --freeze outputs",
            "--freeze outputs has no effect: the network has one output",
        ),
        ("--curvature valla --closed-form --noise scale", "--noise scale has no effect beside --closed-form"),
        (
            "--curvature valla --freeze noise --noise scale",
            "--noise scale has no effect beside --freeze noise",
        ),
        ("--curvature ella --patience 2", "--patience has no effect without --validate-every"),
        (
            "--curvature fixed-mean --closed-form --trajectory-every 2",
            "--trajectory-every has no effect where",
        ),
        (
            "--curvature valla --freeze inducing-points --trajectory-every 2",
            "--trajectory-every has no effect where",
        ),
        (
            "--curvature valla --steps 5 --trajectory-every 6",
            "--trajectory-every 6 records nothing in 5 steps",
        ),
        (
            "--curvature kronecker --trajectory-every 6",
            "--trajectory-every belongs to --curvature fixed-mean, valla",
        ),
    ] {
        let text = usage(folder.path(), &format!("{CURVE} {line} --out never.posterior"));
        assert!(text.contains(expected), "{line}: {text}");
    }
    for flags in [
        "fixed-mean --validate-every 5",
        "fixed-mean --patience 5",
        "valla --validate-every 5",
        "valla --patience 5",
        "gwi --validate-every 5",
        "gwi --patience 5",
        "ella --landmarks 20 --rank 5 --validate-every 5",
    ] {
        let text = usage(folder.path(), &format!("{alone} --curvature {flags} --out never.posterior"));
        assert!(
            text.contains("has no effect: there are no rows to look at that the network has not seen"),
            "{text}"
        );
        assert!(
            text.contains("--validation-data") && text.contains("posterior train --validation-fraction"),
            "{text}"
        );
    }
    for curvature in ["fixed-mean", "valla"] {
        let text = usage(
            rings.path(),
            &format!("{classes} --curvature {curvature} --freeze noise --out never.posterior"),
        );
        assert!(text.contains("--freeze noise has no effect without --likelihood gaussian"), "{text}");
    }
    // Three outputs share a covariance, which has the scale.
    for flags in ["--precision 3", "--freeze prior"] {
        let start = format!("{classes} --curvature fixed-mean {flags}");
        let text = usage(rings.path(), &format!("{start} --out never.posterior"));
        assert!(text.contains(&format!("{flags} has no effect").replace(" 3", "")), "{text}");
        assert!(text.contains("the network's 3 outputs") && text.contains("--freeze outputs"), "{text}");
    }
    let held = format!(
        "{classes} --curvature fixed-mean --precision 4 --freeze outputs,prior --steps 20 --inducing-points 9 --out m.posterior"
    );
    assert_eq!(number(&process(&json(rings.path(), &held))["amplitude"]), 0.25);
}

/// What a fit says about its process.
pub(super) fn process(fit: &Value) -> &Value {
    let found = &fit["header"]["summary"]["learned"]["fixed_mean"];
    assert!(found.is_object(), "{}", fit["header"]["summary"]["learned"]);
    found
}

#[test]
fn rows_that_choose_and_score_are_said_to_do_both() {
    let folder = curve();
    let at = folder.path();
    let told = |flags: &str| {
        let fit = json(at, &format!("{CURVE} {flags} --out m.posterior"));
        (fit["notes"].to_string(), fit)
    };
    for (flags, chosen) in [
        ("--curvature temperature", "its only number"),
        (
            "--curvature fixed-mean --inducing-points 9 --steps 40 --validate-every 20",
            "which of its steps was kept",
        ),
        ("--curvature valla --inducing-points 9 --steps 6 --validate-every 3", "which of its steps was kept"),
        ("--curvature valla --inducing-points 9 --closed-form", "its prior variance"),
        (
            "--curvature gwi --inducing-points 9 --steps 20",
            "its prior, which of its steps was kept and what its variances were multiplied by",
        ),
        (
            "--curvature ella --landmarks 20 --rank 5 --validate-every 30",
            "how many examples are in its curvature",
        ),
    ] {
        let (notes, _) = told(flags);
        assert!(
            notes.contains(&format!("also chose {chosen}, which flatters the score")),
            "{flags}: {notes}"
        );
    }
    for flags in [
        "--curvature valla --inducing-points 9 --closed-form --freeze prior",
        "--curvature ella --landmarks 20 --rank 5",
        "--curvature mean-field --epochs 1",
    ] {
        let (notes, _) = told(flags);
        assert!(!notes.contains("also chose"), "{flags}: {notes}");
    }
    // A comparison of so many rows scores on those that have not chosen.
    let (notes, fit) = told("--tune validation --seconds 2");
    assert!(!notes.contains("also chose") && fit["unseen"]["examples"] == 200, "{notes}");
    // Scores that are to be further apart than there are steps.
    let (notes, fit) = told("--curvature fixed-mean --inducing-points 9 --steps 30");
    assert!(notes.contains("validation rows are scored after all 30 steps"), "{notes}");
    assert_eq!(process(&fit)["scores"][0][0], 30);
    let alone = "fit laplace --network net.safetensors --data train.csv --likelihood gaussian --curvature fixed-mean --inducing-points 9 --steps 30 --out m.posterior";
    assert!(!json(at, alone)["notes"].to_string().contains("scored after"), "there are none");
}

#[test]
fn a_comparison_tries_searches_whatever_curvatures_are_told() {
    let folder = curve();
    let at = folder.path();
    for (flags, held) in [
        ("--tune none --precision 2 --prior layerwise --mode trained", false),
        ("--noise fixed --initial-noise 0.3", true),
    ] {
        // Long searches have no time, and say so.
        let fit = json(at, &format!("{CURVE} --seconds 2 {flags} --out m.posterior"));
        let candidates = fit["header"]["auto"]["candidates"].as_array().unwrap();
        let of = |name: &str| candidates.iter().find(|c| c["name"] == name).unwrap();
        for name in ["fixed-mean", "sampled", "valla"] {
            let skipped = of(name)["skipped"].to_string();
            assert!(
                of(name)["nll"].is_number() || skipped.contains("s are left"),
                "{flags}: {name} {skipped}"
            );
        }
        assert!(of("sampled")["nll"].is_number(), "{flags}");
        let temperature = of("temperature");
        assert_eq!(temperature["nll"].is_number(), !held, "{flags}: {temperature}");
        assert!(!held || temperature["skipped"].to_string().contains("is to stay as it is"), "{temperature}");
    }
}

#[test]
fn a_plain_ensemble_has_no_flags_of_error_bars() {
    let folder = curve();
    let at = folder.path();
    std::fs::create_dir(at.join("nets")).unwrap();
    for name in ["a", "b"] {
        std::fs::copy(at.join("net.safetensors"), at.join(format!("nets/{name}.safetensors"))).unwrap();
    }
    let start = "fit laplace --network nets --data train.csv --likelihood gaussian --out never.posterior";
    for flags in [
        "--seconds 5",
        "--tune mackay",
        "--prior layerwise",
        "--precision 3",
        "--mode trained",
        "--without-affine",
        "--predictive probit",
        "--noise scale",
        "--initial-noise 0.3",
    ] {
        let text = usage(at, &format!("{start} {flags}"));
        let flag = flags.split(' ').next().unwrap();
        assert!(text.contains(&format!("{flag} has no effect on a folder of networks")), "{flags}: {text}");
    }
    json(at, &format!("{start} --noise fixed --initial-noise 0.3"));
}

#[test]
fn what_is_frozen_stays_and_the_rest_moves() {
    let folder = curve();
    let at = folder.path();
    let fit = |steps: usize, freeze: &str| {
        let freeze = if freeze.is_empty() { String::new() } else { format!("--freeze {freeze}") };
        let line = format!(
            "{CURVE} --curvature fixed-mean --inducing-points 9 --batch 30 --learning-rate 0.01 --initial-noise 0.2 --precision 2 --steps {steps} {freeze} --out m.posterior"
        );
        let fit = json(at, &line);
        let found = process(&fit);
        let of = |list: &Value, k: usize| number(&list[k][1]);
        let points = tensor(&at.join("m.posterior"), "fixed_mean.points");
        (points, number(&found["amplitude"]), of(&found["noise"], 0), of(&found["kernel"], 1))
    };
    let begun = fit(1, "inducing-points,prior,noise,kernel");
    assert_eq!((begun.1, begun.2), (0.5, 0.2));
    let free = fit(40, "");
    assert!(
        free.0 != begun.0 && free.1 != begun.1 && free.2 != begun.2 && free.3 != begun.3,
        "{free:?} {begun:?}"
    );
    for (k, what) in ["inducing-points", "prior", "noise", "kernel"].into_iter().enumerate() {
        let held = fit(40, what);
        let same = [held.0 == begun.0, held.1 == begun.1, held.2 == begun.2, held.3 == begun.3];
        for (j, same) in same.into_iter().enumerate() {
            assert_eq!(same, j == k, "--freeze {what}, part {j}: {held:?} {begun:?}");
        }
    }
}

/// Numbers of a tensor of a model file, whatever stands before its name there.
fn tensor(path: &Path, name: &str) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let (_, found) = header.as_object().unwrap().iter().find(|(own, _)| own.ends_with(name)).unwrap();
    let place = |k: usize| found["data_offsets"][k].as_u64().unwrap() as usize + 8 + length;
    let number = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
    bytes[place(0)..place(1)].chunks_exact(8).map(number).collect()
}

#[test]
fn the_way_of_the_inducing_points_is_recorded() {
    let folder = curve();
    let at = folder.path();
    for curvature in ["fixed-mean", "valla"] {
        let line = format!(
            "{CURVE} --curvature {curvature} --inducing-points 5 --batch 30 --steps 12 --trajectory-every 4 --validate-every 12 --out m.posterior"
        );
        let fit = json(at, &line);
        let way = process(&fit)["trajectory"].as_array().unwrap().clone();
        let steps: Vec<&Value> = way.iter().map(|record| &record[0]).collect();
        assert_eq!(steps, [0, 4, 8, 12], "{way:?}");
        assert!(way.iter().all(|record| record[1].as_array().unwrap().len() == 5), "{way:?}");
        assert_ne!(way[0][1], way[3][1], "they move");
        let last: Vec<f64> = way[3][1].as_array().unwrap().iter().map(number).collect();
        assert_eq!(last, tensor(&at.join("m.posterior"), "fixed_mean.points"), "{curvature}");
        assert_eq!(json(at, "inspect m.posterior")["header"]["summary"], fit["header"]["summary"]);
    }
    let long = format!(
        "{CURVE} --curvature fixed-mean --inducing-points 50 --steps 100000000 --trajectory-every 1 --out m.posterior"
    );
    let text = error(at, &long);
    assert!(text.contains("record them less often (--trajectory-every N)"), "{text}");
}

#[test]
fn files_that_the_network_was_trained_on_choose_nothing() {
    let folder = curve();
    let at = folder.path();
    // Other rows to fit, so that none stands on both sides.
    let start = "fit laplace --network net.safetensors --data test.csv --likelihood gaussian --curvature";
    std::fs::copy(at.join("train.csv"), at.join("renamed.csv")).unwrap();
    for flags in ["last-layer", "fixed-mean --steps 5 --inducing-points 5", "auto --seconds 2"] {
        let text = error(at, &format!("{start} {flags} --validation-data renamed.csv --out m.posterior"));
        assert!(text.contains("renamed.csv is one of the files that the network was trained on"), "{text}");
    }
    let insisted = format!(
        "{start} last-layer --validation-data renamed.csv --tune validation --allow-seen-rows --out m.posterior"
    );
    let notes = json(at, &insisted)["notes"].to_string();
    assert!(notes.contains("chosen on rows that the network was trained on"), "{notes}");
    // Of rows that are written otherwise nothing is known.
    let text = std::fs::read_to_string(at.join("train.csv")).unwrap();
    std::fs::write(at.join("other.csv"), text + "0.5,0.9\n").unwrap();
    json(at, &format!("{start} last-layer --validation-data other.csv --out m.posterior"));
}
