//! Skewed targets, heteroscedastic noise and weights of rows, as users of the command line have them.

use super::running::{error, json, run};
use std::fmt::Write as _;
use std::path::Path;

/// 150 prices that scatter by a share of themselves (`p.csv`), with a weight, and a column of classes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "size,kind,weight,price\n".to_string();
    for i in 0..150u32 {
        let x = 4.0 * (f64::from(i * 37 % 150) + 0.5) / 150.0;
        // Sums of three waves of incommensurable frequencies are about normal.
        let wave = |k: f64| (f64::from(i) * k).sin();
        let noise = 0.8 * (wave(12.9) + wave(78.2) + wave(37.7));
        let price = (3.0 + (1.5 * x).sin() + 0.3 * noise).exp();
        writeln!(text, "{x},{},{},{price}", ["a", "b"][i as usize % 2], 1 + i % 3).unwrap();
    }
    std::fs::write(folder.path().join("p.csv"), text).unwrap();
    folder
}

const FIT: &str = "fit p.csv --target price --features size --set steps=20";

fn said(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{line}\n{}", text(&output.stderr));
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_skewed_target_is_mapped_by_itself_and_said() {
    let folder = folder();
    let at = folder.path();
    let fitted = json(at, &format!("{FIT} -o m.posterior"));
    assert_eq!(fitted["target_transform"]["chosen"]["kind"], "log", "{}", fitted["target_transform"]);
    assert!(fitted["target_transform"]["tried"].as_array().unwrap().len() >= 5);
    let text = said(at, &format!("{FIT} --verbose -o m.posterior --force"));
    assert!(text.contains("log price, by the evidence of 150 rows (nats a row: as it is"), "{text}");
    assert!(text.contains("of `log price`"), "{text}");

    said(at, "predict m.posterior p.csv --quantiles 0.025,0.975 --samples 2 -o q.csv");
    let table = std::fs::read_to_string(at.join("q.csv")).unwrap();
    let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let mut inside = 0;
    for row in table.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let of = |name: &str| cells[place(name)].parse::<f64>().unwrap();
        assert!(of("price_q0.025") > 0.0 && of("price_sample_1") > 0.0);
        // The interval is no sum and difference: its upper side is longer.
        assert!(of("price_q0.975") - of("price_mean") > of("price_mean") - of("price_q0.025"));
        inside += usize::from((of("price_q0.025")..of("price_q0.975")).contains(&of("price")));
    }
    assert!(inside >= 138, "{inside}");
    let scores = json(at, "evaluate m.posterior p.csv --report r.html");
    let coverage = scores["coverage_95"].as_f64().unwrap();
    assert!((coverage - inside as f64 / 150.0).abs() < 1e-9, "{coverage} {inside}");
    assert!(scores["funnel"]["rank_correlation"].as_f64().unwrap().abs() < 0.3);
    // One numeric input: the posterior is drawn where it is Gaussian.
    assert!(std::fs::read_to_string(at.join("r.html")).unwrap().contains("log price"));

    // As it is, there is a funnel, and what to do.
    let plain = said(at, &format!("{FIT} --target-transform none --verbose -o plain.posterior"));
    assert!(plain.contains("a funnel: errors grow with the prediction"), "{plain}");
    assert!(plain.contains("--target-transform log") && plain.contains("--noise heteroscedastic"), "{plain}");
    let other = json(at, "evaluate plain.posterior p.csv");
    assert!(other["nll"].as_f64().unwrap() > scores["nll"].as_f64().unwrap() + 0.05);
    assert!(other["notes"].to_string().contains("a funnel"), "{}", other["notes"]);

    // Hyperparameters are of what the target was mapped to, and take the map along.
    let given = FIT.replace(" --set steps=20", " --hyperparameters m.posterior -o given.posterior");
    let given = json(at, &given);
    assert_eq!(given["target_transform"]["chosen"]["kind"], "log");
    assert_eq!(given["log_evidence"], fitted["log_evidence"]);
}

#[test]
fn what_no_map_has_is_refused_with_a_way_out() {
    let folder = folder();
    let at = folder.path();
    let zero = std::fs::read_to_string(at.join("p.csv")).unwrap() + "1.5,a,1,0\n";
    std::fs::write(at.join("zero.csv"), zero).unwrap();
    let text =
        error(at, &format!("{} --target-transform log -o m.posterior", FIT.replace("p.csv", "zero.csv")));
    assert!(text.contains("row 151, column `price`: 0 has no log") && text.contains("yeo-johnson"), "{text}");
    let text = error(at, "fit p.csv --target kind --target-transform log -o m.posterior");
    assert!(text.contains("--target-transform log is for numbers with Gaussian noise"), "{text}");
    let text = error(at, &format!("{FIT} --target-transform log --noise weight -o m.posterior"));
    assert!(text.contains("--noise"), "{text}");
    said(at, &format!("{FIT} --method sgpr --set inducing=10 -o m.posterior"));
    let text = error(at, "stream s.stream p.csv --model m.posterior -o o.csv");
    assert!(text.contains("--target-transform") && text.contains("fit it without"), "{text}");
    assert!(!at.join("s.stream").exists());
}

#[test]
fn heteroscedastic_noise_and_weights_of_rows_are_in_what_is_said() {
    let folder = folder();
    let at = folder.path();
    let line = format!("{FIT} --target-transform none --noise heteroscedastic -o m.posterior");
    let fitted = json(at, &line);
    let noise = &fitted["heteroscedastic_noise"];
    assert_eq!(noise["rows"], 150);
    assert!(noise["nll_after"].as_f64().unwrap() < noise["nll_before"].as_f64().unwrap(), "{noise}");
    let text = said(at, &format!("{line} --verbose --force"));
    assert!(
        text.contains("heteroscedastic noise before that")
            && text.contains("heteroscedastic: standard deviations of"),
        "{text}"
    );
    let text = said(at, "inspect m.posterior");
    assert!(text.contains("heteroscedastic: standard deviations of"), "{text}");
    let widths = json(at, "predict m.posterior p.csv");
    let of: Vec<f64> =
        widths["predictions"]["price_std"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    let [least, most] = [f64::min, f64::max].map(|pick| of.iter().copied().reduce(pick).unwrap());
    assert!(most > 2.0 * least, "{least} {most}");

    let weighed = json(at, &format!("{FIT} --row-weights weight -o w.posterior"));
    let plain = json(at, &format!("{FIT} -o plain.posterior"));
    assert_eq!(weighed["weights"], "rows: `weight`");
    assert!(weighed["log_evidence"] != plain["log_evidence"] && plain["weights"].is_null());
    let text = error(at, &format!("{FIT} --row-weights weight --method sgpr -o b.posterior"));
    assert!(text.contains("--method exact"), "{text}");
}
