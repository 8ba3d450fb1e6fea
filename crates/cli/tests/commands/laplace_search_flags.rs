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
        let (status, text) = failure(at, &format!("{CURVE} {flags} -o m.posterior"));
        assert_eq!(status, Some(2), "{flags}: {text}");
        assert!(text.contains(expected), "{flags}: {text}");
    };
    usage("--method valla --set companion=on", "--set companion belongs to --method fixed-mean");
    usage("--method valla --kernel rbf", "--kernel belongs to --method fixed-mean");
    usage("--method kronecker --set steps=10", "--set steps belongs to --method fixed-mean, valla");
    usage("--method fixed-mean --set landmarks=10", "--set landmarks belongs to --method ella");
    for flag in [
        "regulariser=wasserstein",
        "regulariser-weight=2",
        "regulariser-mode=posterior",
        "variational-kernel=cholesky",
        "update-rule=adabelief",
    ] {
        let name = flag.split('=').next().unwrap();
        for other in ["fixed-mean", "valla", "kronecker", "auto"] {
            usage(
                &format!("--method {other} --set {flag}"),
                &format!("--set {name} belongs to --method gwi"),
            );
        }
    }
    for flag in
        ["alpha=0.5", "companion=on", "freeze=noise", "closed-form", "trajectory-every=5", "energy-draws=5"]
    {
        let name = flag.split('=').next().unwrap();
        usage(&format!("--method gwi --set {flag}"), &format!("--set {name} belongs to --method fixed-mean"));
    }
    usage("--method gwi --tune evidence", "--tune has no such meaning beside --method gwi");
    usage("--method gwi --set precision=2", "--set precision has no such meaning beside --method gwi");
    usage("--method gwi --set without-affine", "--set without-affine has no effect");
    usage("--method gwi --set weights=last", "--set weights belongs to");
    usage("--method gwi --set regulariser-weight=0", "regulariser-weight");
    usage("--method gwi --set regulariser=nonsense", "is no regulariser");
    usage("--method sampled --set batch=10", "--set batch belongs to --set solver=descent");
    usage("--method fixed-mean --tune mackay", "--tune has no such meaning beside --method fixed-mean");
    usage("--method temperature --set precision=3", "--set precision has no such meaning");
    usage("--method ella --set prior=layerwise", "not to function-space and ella");
    usage("--method valla --set closed-form --set steps=5", "no meaning beside --set closed-form");
    for flag in ["alpha=0", "batch=10", "energy-draws=5"] {
        let name = flag.split('=').next().unwrap();
        usage(
            &format!("--method valla --set closed-form --set {flag}"),
            &format!("--set {name} has no meaning beside"),
        );
    }
    usage(
        "--method fixed-mean --set closed-form --set companion=on",
        "--set companion has no meaning beside",
    );
    usage("--method valla --set closed-form --set freeze=noise", "holds everything else");
    usage("--method valla --set energy-draws=5", "--set energy-draws belongs to --likelihood categorical");
    usage(
        "--method valla --set closed-form --set validate-every=5",
        "--set validate-every has no meaning beside",
    );
    usage("--method valla --set closed-form --set patience=5", "--set patience has no meaning beside");
    usage("--method sampled --tune cross-validation", "--tune has no such meaning");
    usage(
        "--method sampled --tune none --set em-steps=2",
        "--set em-steps has no meaning beside --tune none",
    );
    usage(
        "--method sampled --tune none --set update=evidence",
        "--set update has no meaning beside --tune none",
    );
    usage(
        "--method sampled --set solver=descent --set space=functions",
        "--set space belongs to --set solver",
    );
    usage("--method temperature --resume", "keeps what it has on the way");
    let says = |flags: &str, expected: &str| {
        let text = error(at, &format!("{CURVE} {flags} -o m.posterior"));
        assert!(text.contains(expected), "{flags}: {text}");
        assert!(!at.join("m.posterior").exists(), "{flags}");
    };
    says(
        "--method fixed-mean --set inducing-points=61",
        "61 inducing points were asked for, but there are 60 examples",
    );
    says(
        "--method ella --set landmarks=61 --set rank=5",
        "61 landmarks were asked for, but there are 60 examples",
    );
    says("--method fixed-mean --set steps=3 --kernel nonsense", "nonsense");
    says("--method gwi --set steps=3 --kernel nonsense", "nonsense");
    says("--method gwi --kernel tangent", "the process with the tangent kernel is `valla`");
    says(
        "--method gwi --set inducing-points=61",
        "61 inducing points were asked for, but there are 60 examples, which they are chosen among",
    );
    says(
        "--method gwi --set variational-kernel=kernelised --set regulariser=kl",
        "take a cholesky, diagonal or log kernel",
    );
    says("--method gwi --set regulariser=multinomial", "those of the network under either process");
    says("--method sampled --set samples=100000 --memory 0.05", "fewer samples");
    let alone =
        "fit train.csv --network net.safetensors --likelihood gaussian --method temperature -o m.posterior";
    assert!(error(at, alone).contains("--validation-data"), "a temperature needs rows to be chosen on");
    // Rows that the network has seen choose nothing.
    let seen = "fit train.csv --network net.safetensors --likelihood gaussian --method fixed-mean --validation-data train.csv -o m.posterior";
    assert!(
        error(at, seen).contains("the network was trained on them"),
        "rows of the training choose nothing"
    );
    let rings = classifier();
    let text = error(rings.path(), &format!("{RINGS} --method valla --set inducing-points=2 -o m.posterior"));
    assert!(text.contains("has 3 outputs"), "{text}");
}

#[test]
fn flags_that_would_do_nothing_in_a_search_are_refused() {
    let (folder, rings) = (curve(), classifier());
    let alone = "fit train.csv --network net.safetensors --likelihood gaussian";
    let classes = "fit train.csv --network net.safetensors --likelihood categorical";
    for (line, expected) in [
        ("--method fixed-mean --set without-affine", "--set without-affine has no effect"),
        ("--method temperature --set without-affine", "--set without-affine has no effect"),
        ("--method valla --set freeze=kernel", "--set freeze=kernel has no effect with --method valla"),
        ("--method valla --set freeze=outputs", "--set freeze=outputs has no effect with --method valla"),
        (
            "--method fixed-mean --set kernel-inputs=features --set freeze=outputs",
            "with a kernel on features",
        ),
        (
            "--method fixed-mean --set freeze=outputs",
            "--set freeze=outputs has no effect: the network has one output",
        ),
        (
            "--method valla --set closed-form --set noise=scale",
            "--set noise=scale has no effect beside --set closed-form",
        ),
        (
            "--method valla --set freeze=noise --set noise=scale",
            "--set noise=scale has no effect beside --set freeze=noise",
        ),
        ("--method ella --set patience=2", "--set patience has no effect without --set validate-every"),
        (
            "--method fixed-mean --set closed-form --set trajectory-every=2",
            "--set trajectory-every has no effect where",
        ),
        (
            "--method valla --set freeze=inducing-points --set trajectory-every=2",
            "--set trajectory-every has no effect where",
        ),
        (
            "--method valla --set steps=5 --set trajectory-every=6",
            "--set trajectory-every=6 records nothing in 5 steps",
        ),
        (
            "--method kronecker --set trajectory-every=6",
            "--set trajectory-every belongs to --method fixed-mean, valla",
        ),
    ] {
        let text = usage(folder.path(), &format!("{CURVE} {line} -o never.posterior"));
        assert!(text.contains(expected), "{line}: {text}");
    }
    for flags in [
        "fixed-mean --set validate-every=5",
        "fixed-mean --set patience=5",
        "valla --set validate-every=5",
        "valla --set patience=5",
        "gwi --set validate-every=5",
        "gwi --set patience=5",
        "ella --set landmarks=20 --set rank=5 --set validate-every=5",
    ] {
        let text = usage(folder.path(), &format!("{alone} --method {flags} -o never.posterior"));
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
            &format!("{classes} --method {curvature} --set freeze=noise -o never.posterior"),
        );
        assert!(text.contains("--set freeze=noise has no effect without --likelihood gaussian"), "{text}");
    }
    // Three outputs share a covariance, which has the scale.
    for flags in ["--set precision=3", "--set freeze=prior"] {
        let start = format!("{classes} --method fixed-mean {flags}");
        let text = usage(rings.path(), &format!("{start} -o never.posterior"));
        assert!(text.contains(&format!("{flags} has no effect").replace("=3", "")), "{text}");
        assert!(text.contains("the network's 3 outputs") && text.contains("--set freeze=outputs"), "{text}");
    }
    let held = format!(
        "{classes} --method fixed-mean --set precision=4 --set freeze=outputs,prior --set steps=20 --set inducing-points=9 -o m.posterior"
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
        let fit = json(at, &format!("{CURVE} {flags} -o m.posterior"));
        (fit["notes"].to_string(), fit)
    };
    for (flags, chosen) in [
        ("--method temperature", "its only number"),
        (
            "--method fixed-mean --set inducing-points=9 --set steps=40 --set validate-every=20",
            "which of its steps was kept",
        ),
        (
            "--method valla --set inducing-points=9 --set steps=6 --set validate-every=3",
            "which of its steps was kept",
        ),
        ("--method valla --set inducing-points=9 --set closed-form", "its prior variance"),
        (
            "--method gwi --set inducing-points=9 --set steps=20",
            "its prior, which of its steps was kept and what its variances were multiplied by",
        ),
        (
            "--method ella --set landmarks=20 --set rank=5 --set validate-every=30",
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
        "--method valla --set inducing-points=9 --set closed-form --set freeze=prior",
        "--method ella --set landmarks=20 --set rank=5",
        "--method mean-field --set epochs=1",
    ] {
        let (notes, _) = told(flags);
        assert!(!notes.contains("also chose"), "{flags}: {notes}");
    }
    // A comparison of so many rows scores on those that have not chosen.
    let (notes, fit) = told("--tune validation --set seconds=2");
    assert!(!notes.contains("also chose") && fit["unseen"]["examples"] == 200, "{notes}");
    // Scores that are to be further apart than there are steps.
    let (notes, fit) = told("--method fixed-mean --set inducing-points=9 --set steps=30");
    assert!(notes.contains("validation rows are scored after all 30 steps"), "{notes}");
    assert_eq!(process(&fit)["scores"][0][0], 30);
    let alone = "fit train.csv --network net.safetensors --likelihood gaussian --method fixed-mean --set inducing-points=9 --set steps=30 -o m.posterior";
    assert!(!json(at, alone)["notes"].to_string().contains("scored after"), "there are none");
}

#[test]
fn a_comparison_tries_searches_whatever_curvatures_are_told() {
    let folder = curve();
    let at = folder.path();
    for (flags, held) in [
        ("--tune none --set precision=2 --set prior=layerwise --set mode=trained", false),
        ("--set noise=fixed --set initial-noise=0.3", true),
    ] {
        // Long searches have no time, and say so.
        let fit = json(at, &format!("{CURVE} --set seconds=2 {flags} -o m.posterior"));
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
    let start = "fit train.csv --network nets --likelihood gaussian -o never.posterior";
    for flags in [
        "--set seconds=5",
        "--tune mackay",
        "--set prior=layerwise",
        "--set precision=3",
        "--set mode=trained",
        "--set without-affine",
        "--predictive probit",
        "--set noise=scale",
        "--set initial-noise=0.3",
    ] {
        let text = usage(at, &format!("{start} {flags}"));
        let flag = match flags.strip_prefix("--set ") {
            Some(setting) => format!("--set {}", setting.split('=').next().unwrap()),
            None => flags.split(' ').next().unwrap().into(),
        };
        assert!(text.contains(&format!("{flag} has no effect on a folder of networks")), "{flags}: {text}");
    }
    json(at, &format!("{start} --set noise=fixed --set initial-noise=0.3"));
}

#[test]
fn what_is_frozen_stays_and_the_rest_moves() {
    let folder = curve();
    let at = folder.path();
    let fit = |steps: usize, freeze: &str| {
        let freeze = if freeze.is_empty() { String::new() } else { format!("--set freeze={freeze}") };
        let line = format!(
            "{CURVE} --method fixed-mean --set inducing-points=9 --set batch=30 --set learning-rate=0.01 --set initial-noise=0.2 --set precision=2 --set steps={steps} {freeze} -o m.posterior"
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
            assert_eq!(same, j == k, "--set freeze={what}, part {j}: {held:?} {begun:?}");
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
            "{CURVE} --method {curvature} --set inducing-points=5 --set batch=30 --set steps=12 --set trajectory-every=4 --set validate-every=12 -o m.posterior"
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
        "{CURVE} --method fixed-mean --set inducing-points=50 --set steps=100000000 --set trajectory-every=1 -o m.posterior"
    );
    let text = error(at, &long);
    assert!(text.contains("record them less often (--set trajectory-every=N)"), "{text}");
}

#[test]
fn files_that_the_network_was_trained_on_choose_nothing() {
    let folder = curve();
    let at = folder.path();
    // Other rows to fit, so that none stands on both sides.
    let start = "fit test.csv --network net.safetensors --likelihood gaussian --method";
    std::fs::copy(at.join("train.csv"), at.join("renamed.csv")).unwrap();
    for flags in ["last-layer", "fixed-mean --set steps=5 --set inducing-points=5", "auto --set seconds=2"] {
        let text = error(at, &format!("{start} {flags} --validation-data renamed.csv -o m.posterior"));
        assert!(text.contains("renamed.csv is one of the files that the network was trained on"), "{text}");
    }
    let insisted = format!(
        "{start} last-layer --validation-data renamed.csv --tune validation --allow-seen-rows -o m.posterior"
    );
    let notes = json(at, &insisted)["notes"].to_string();
    assert!(notes.contains("chosen on rows that the network was trained on"), "{notes}");
    // Of rows that are written otherwise nothing is known.
    let text = std::fs::read_to_string(at.join("train.csv")).unwrap();
    std::fs::write(at.join("other.csv"), text + "0.5,0.9\n").unwrap();
    json(at, &format!("{start} last-layer --validation-data other.csv -o m.posterior"));
}
