//! What texts recommend: every command line is one that its command takes.

use posterior::notes::Fix;
use posterior::notes::fixes::*;
use std::process::Command;

/// What is recommended where no flag does it, to be repaired with what the commands read tables by.
const GAPS: [(Fix, &[&str]); 14] = [
    (EXCLUDE, NO_EXCLUDE),
    (EXCLUDE_COLUMN, NO_EXCLUDE),
    (CATEGORIES, NO_CATEGORIES),
    (CATEGORIES_COLUMN, NO_CATEGORIES),
    (DAY_FIRST, NO_DATES),
    (MONTH_FIRST, NO_DATES),
    (MISSING_DROP, NO_MISSING),
    (MISSING_MEAN, NO_MISSING),
    (MISSING_INDICATOR, NO_MISSING),
    (UNSEEN_OTHER, &["stream"]),
    (DECIMAL_COMMA, &["forward"]),
    (DECIMAL_POINT, &["forward"]),
    (ENCODING, &["forward"]),
    (ENCODING_WINDOWS, &["forward"]),
];
const NO_EXCLUDE: &[&str] = &[
    "fit --network NET",
    "train",
    "forward",
    "predict",
    "evaluate",
    "stream",
    "label start",
    "optimize start",
];
const NO_CATEGORIES: &[&str] =
    &["fit --network NET", "train", "forward", "predict", "evaluate", "optimize start"];
const NO_DATES: &[&str] = &["evaluate", "stream", "label start"];
const NO_MISSING: &[&str] = &["predict", "evaluate"];

/// A command line with the recommended flags: arguments, then pairs of flags and values, of which those are left out that are recommended.
fn line<'a>(command: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let given = |flag: &str| flags.contains(&flag);
    let (arguments, pairs) = match command {
        "fit" => ("d.csv", "--target y --output o.posterior"),
        "fit --network NET" => ("d.csv", "--network net.onnx --likelihood gaussian --output o.posterior"),
        "predict" => ("m.posterior d.csv", "--output p.csv"),
        "evaluate" => ("m.posterior d.csv", "--report r.html"),
        "compress" => ("m.posterior", "--output o.posterior"),
        "train" => ("net.toml d.csv", "--loss mse --epochs 2 --output o.safetensors"),
        "forward" => ("net.onnx d.csv", "--output y.npy"),
        "inspect" => ("m.posterior", "--report r.html"),
        "stream" if given("--model") => ("s.stream d.csv", ""),
        "stream" => ("s.stream d.csv", "--target y"),
        "label start" => ("l.json d.csv", ""),
        "label ask" => ("l.json", ""),
        "label tell" => ("l.json", "--id 1 --label x"),
        "label export" => ("l.json", "--output o.csv"),
        "optimize start" => ("s.json", "--candidates d.csv"),
        "optimize ask" => ("s.json", ""),
        "tomography project" => ("g.toml", "--phantom walnut --output s.npy"),
        "tomography reconstruct" => ("g.toml s.npy", "--output p.npy"),
        "tomography uncertainty" => ("g.toml s.npy", "--network net.safetensors --output p.npy"),
        "tomography design" => ("g.toml s.npy", "--measured 0,40"),
        other => panic!("`{other}` is recommended: it needs a line here"),
    };
    let mut out: Vec<&str> = command.split(" --").next().unwrap_or_default().split(' ').collect();
    out.extend(arguments.split(' '));
    let pairs: Vec<&str> = pairs.split_whitespace().collect();
    out.extend(pairs.chunks(2).filter(|pair| !given(pair[0])).flatten());
    out.extend(flags);
    out
}

#[test]
fn commands_take_what_is_recommended() {
    for fix in ALL {
        for (command, flags) in fix.examples() {
            let words: Vec<&str> = std::iter::once("posterior").chain(line(command, &flags)).collect();
            let taken = posterior_cli::matches_of(&words);
            let gap = GAPS.iter().any(|(own, commands)| own == fix && commands.contains(&command));
            match (taken, gap) {
                (Ok(_), true) => panic!("{} is taken: it is no gap any more", words.join(" ")),
                (Err(error), false) => panic!("{fix:#}: {}: {error}", words.join(" ")),
                _ => {}
            }
        }
    }
}

/// Fits and predictions of a few rows, by what needs nothing beside it.
#[test]
fn what_is_recommended_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows = (0..40).map(|i| {
        let (a, b) = (f64::from(i) / 40.0, f64::from(i * 7 % 11) / 11.0);
        format!("{a},{b},{}\n", (a + b * b).exp() + 0.1 * f64::from(i * 13 % 7))
    });
    std::fs::write(at.join("d.csv"), format!("a,b,y\n{}", rows.collect::<String>())).unwrap();
    let run = |words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_posterior"));
        let output = program.current_dir(at).args(words).arg("--quiet").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {told}", words.join(" "));
    };
    run(&"fit d.csv --target y -o m.posterior".split(' ').collect::<Vec<_>>());
    let quick = [
        EXCLUDE,
        MISSING_DROP,
        STREAM_FALSE,
        TEST_FRACTION_FIFTH,
        CALIBRATE_NONE,
        TRANSFORM_LOG,
        TRANSFORM_NONE,
        NOISE_FLOOR,
        KERNEL,
        STEPS,
        LIMIT,
        MEDIAN,
        SAMPLES_TO_FILE,
    ];
    for fix in quick {
        let (command, flags) = fix.examples().next().unwrap();
        run(&line(command, &flags));
    }
}
