//! Every command with every flag that takes a number, at numbers that nobody had in mind: success or an error, soon and within the memory, never a panic.
//!
//! Which flags there are is asked of the grammar, so a new flag is swept from the day it exists; a new command needs a line in [`lines`], and the
//! test says so. CI draws one run for each flag of each command; `POSTERIOR_SWEEP=all` makes them all, `POSTERIOR_SWEEP=SEED` another draw.

use super::inputs;
use clap::Arg;
use clap::builder::ValueParser;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// 0, 1, 2^31, 2^63, 2^64 - 1, and what is no count.
const VALUES: [&str; 8] =
    ["0", "1", "2147483648", "9223372036854775808", "18446744073709551615", "-1", "NaN", "inf"];

/// Numbers that most flags allow, for the whole sweep.
const ORDINARY: [&str; 2] = ["0.5", "7"];

/// Numbers within most bounds, for the whole sweep: such runs may take long and are ended, but must keep to the memory.
const LARGE: [&str; 2] = ["100000", "10000000"];

/// Address space of a run beside what matrix products reserve: the commands get a tenth of that as `--memory` where they have it.
const ADDRESS_SPACE_KB: u64 = 2_000_000;

/// Address space that matrix products reserve, of which they touch what they need: twice the last-level cache each, and two may be under way. Half a gigabyte of cache is not rare on servers.
fn reserved_kb() -> u64 {
    let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").unwrap_or_default();
    4 * size.trim().trim_end_matches('K').parse().unwrap_or(65_536)
}

/// Seconds of a run: of the processor where others use the machine too, on the clock in the whole sweep.
const SECONDS: u64 = 5;

/// Value names of flags that take text.
const TEXT: [&str; 12] = [
    "COL",
    "TEXT",
    "REASON",
    "A,B",
    "A,B,C",
    "GLOB",
    "KIND",
    "AXES",
    "NAME=VALUE,...",
    "COMMAND",
    "SHELL",
    "MODEL|FILE.json",
];

/// A command line on the files of [`folder`]; `demo` and its like are slow and wait for the whole sweep.
struct Line {
    words: &'static str,
    quick: bool,
}

/// Command lines that reach the flags of every command.
fn lines() -> Vec<Line> {
    let quick = [
        // Methods that differ in what they allocate.
        "fit t.csv --target y --memory 0.2 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --set optimizer=adam --set steps=5 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --folds folds.csv --fold 1 --set restarts=1 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method sdd --set iterations=20 --set batch=8 --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method sgd --set iterations=20 --set batch=8 --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method sap --set iterations=20 --set block-rows=8 --set rank=4 --set acceleration=none --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method cg --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method cg --set samples=4 --set random-features=20 --set hyperparameter-search=neighbourhoods --set neighbourhoods=2 --set neighbourhood-size=10 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method cg --set samples=4 --set random-features=20 --set hyperparameter-search=stochastic --set steps=3 --set probes=2 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method inducing-sgd --set iterations=20 --set batch=8 --set inducing=10 --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method sgpr --set inducing=10 --set iterations=3 --set inducing-choice=cover -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method svgp --set inducing=10 --set iterations=3 --set inducing-choice=pruned -o o.posterior",
        "fit t.csv --target y --memory 0.2 --method svgp --from-disk --set inducing=10 --set iterations=3 -o o.posterior",
        "predict exact.posterior new.csv --memory 0.2 -o p.csv",
        "predict exact.posterior new.csv --memory 0.2 --joint k.npy -o p.csv",
        "predict exact.posterior t.csv --memory 0.2 --leave-one-out --quantiles 0.5 -o p.csv",
        "fit t.csv --continue exact.posterior --memory 0.2 -o o.posterior",
        "predict samples.posterior new.csv --memory 0.2 --variances exact -o p.csv",
        "predict samples.posterior new.csv --memory 0.2 --variances lanczos --variance-rank 5 -o p.csv",
        "compress samples.posterior --inducing 5 --memory 0.2 -o o.posterior",
        "predict classes.posterior new.csv --memory 0.2 --sets 0.8,0.999 -o p.csv",
        "evaluate classes.posterior classes.csv --memory 0.2",
        "fit classes.csv --target y --memory 0.2 --method sgpr --set inducing=10 --held-back 20 --set steps=2 --calibrate conformal -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method full --validation-data unseen.csv --calibrate conformal --memory 0.2 -o o.posterior",
        "predict images.posterior images.gz --memory 0.2 --predictive monte-carlo --samples 2 --samples-out s.npy -o p.csv",
        "evaluate exact.posterior t.csv --memory 0.2 --folds folds.csv --fold 1",
        "evaluate exact.posterior t.csv --memory 0.2",
        "evaluate images.posterior images.gz --labels labels.gz --memory 0.2 --predictive monte-carlo --predictive-samples 10",
        "evaluate images.posterior images.gz --labels labels.gz --memory 0.2 --joint-kappa 1,2 --samples 4 --rotate 10",
        "train net.toml t.csv --target y --loss gaussian --memory 0.2 --epochs 2 --batch 8 -o o.safetensors",
        "train net.toml t.csv --target y --loss gaussian --memory 0.2 --epochs 2 --batch 8 --optimizer sgd --schedule step --validation-fraction 0.2 -o o.safetensors",
        "train net.toml t.csv --target y --loss gaussian --memory 0.2 --epochs 2 --batch 8 --schedule one-cycle -o o.safetensors",
        "train net.toml t.csv --target y --loss gaussian --memory 0.2 --epochs 8 --batch 8 --laplace --laplace-burn-in 1 --laplace-every 2 --laplace-steps 2 -o o.safetensors",
        "train images.toml images.gz --labels labels.gz --loss cross-entropy --memory 0.2 --epochs 2 --batch 8 --flip --shift 1 -o o.safetensors",
        "train images.toml images.gz --labels labels.gz --loss gaussianised --pseudo-count 0.2 --memory 0.2 --epochs 2 --batch 8 -o o.safetensors",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method full --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method auto --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method low-rank --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method function-space --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method subnetwork --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method diagonal --tune validation --validation-fraction 0.2 --allow-seen-rows --memory 0.2 -o o.posterior",
        "fit t.csv --network net.safetensors --target y --likelihood gaussian --method diagonal --tune cross-validation --allow-seen-rows --memory 0.2 -o o.posterior",
        "fit images.gz --network net.onnx --labels labels.gz --likelihood categorical --method last-layer-kronecker --predictive monte-carlo --memory 0.2 -o o.posterior",
        "forward net.onnx x.npy -o y.npy",
        "inspect exact.posterior",
        "optimize start new.json --space a:0..1,b:1..6:integer",
        "optimize ask s.json",
        "optimize tell s.json --id 1 --value 0.5",
        "optimize run s.json --evaluations 9 -- ./train.sh {a} {b}",
        "optimize status s.json",
        "label start new.json t.csv --features a,b",
        "label ask l.json --memory 0.2",
        "label tell l.json --id 1 --label x",
        "label tell l.json --row 3 --label x",
        "label tell l.json --results answers.csv",
        "label status l.json",
        "label export l.json -o o.csv",
        "stream new.posterior t.csv --target y --start-rows 20 --inducing-points 8 --memory 0.2 -o o.csv",
        "tomography project scan.toml --phantom walnut --memory 0.2 -o o.npy",
        "tomography reconstruct scan.toml sinogram.npy --memory 0.2 -o o.npy",
        "tomography reconstruct scan.toml sinogram.npy --memory 0.2 --weight 0.001 --adam --iterations 9 -o o.npy",
        "tomography reconstruct scan.toml sinogram.npy --memory 0.2 --method deep-image-prior --channels 4,4 --iterations 9 --pretrain 8 -o o.npy",
        "tomography uncertainty scan.toml sinogram.npy --network unet.safetensors --memory 0.9 --samples 4 --samples-em 2 --turns 2 --rank 9 -o o.npy",
        "tomography uncertainty scan.toml sinogram.npy --network unet.safetensors --memory 0.9 --samples 4 --samples-em 2 --turns 2 --descent 5 -o o.npy",
        "tomography uncertainty scan.toml sinogram.npy --network unet.safetensors --memory 0.9 --samples 4 --prior filters --roughness 0 -o o.npy",
        "tomography design scan.toml few.npy --measured 0,2,4,6 --prior isotropic --memory 0.2 --samples 9 --count 1",
        "methods svgp",
        "completions bash",
        "man -o o",
    ];
    let slow = ["demo -o o"];
    let line = |quick| move |words: &&'static str| Line { words, quick };
    quick.iter().map(line(true)).chain(slow.iter().map(line(false))).collect()
}

/// The files that the lines speak of.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    inputs::table(&at.join("t.csv"), &["a", "b"], Some("y"), 40);
    inputs::table(&at.join("new.csv"), &["a", "b"], None, 20);
    let (mut classes, mut unseen) = ("a,b,y\n".to_string(), "a,b,y\n".to_string());
    for i in 0..60 {
        let [a, b] = [12.9, 78.2].map(|k: f64| (f64::from(i) * k).sin());
        classes += &format!("{a},{b},{}\n", if a + 0.5 * b > 0.0 { "up" } else { "down" });
        unseen += &format!("{a},{b},{}\n", a * b);
    }
    std::fs::write(at.join("classes.csv"), classes).unwrap();
    std::fs::write(at.join("unseen.csv"), unseen).unwrap();
    std::fs::write(at.join("answers.csv"), "row,label\n5,x\n6,y\n").unwrap();
    inputs::folds(&at.join("folds.csv"), 40);
    inputs::images(&at.join("images.gz"), 40);
    inputs::labels(&at.join("labels.gz"), 40);
    inputs::npy(&at.join("x.npy"), &[3, inputs::SIDE, inputs::SIDE]);
    inputs::perceptron(&at.join("net.toml"), 2, 1);
    inputs::perceptron(&at.join("images.toml"), inputs::SIDE * inputs::SIDE, inputs::CLASSES);
    inputs::onnx(&at.join("net.onnx"));
    inputs::script(&at.join("train.sh"));
    inputs::scan(&at.join("scan.toml"), "{ count = 8 }");
    inputs::scan(&at.join("few.toml"), "{ list = [0, 45, 90, 135], unit = \"degrees\" }");
    for line in [
        "fit t.csv --target y --set restarts=1 --set steps=5 -o exact.posterior",
        "fit t.csv --target y --method cg --set samples=4 --set random-features=20 --set blocks=2 --set block-size=10 --set refining-rows=0 --set steps=3 -o samples.posterior",
        "fit classes.csv --target y --inference gaussianised --pseudo-count 0.1 --set restarts=1 --set steps=2 -o classes.posterior",
        "train net.toml t.csv --target y --loss gaussian --epochs 5 -o net.safetensors",
        "fit images.gz --network net.onnx --labels labels.gz --likelihood categorical --method last-layer-kronecker -o images.posterior",
        "optimize start s.json --space a:0..1,b:1..6:integer --initial 9 --search-candidates 50 --search-rounds 1",
        "optimize ask s.json -n 3",
        "optimize tell s.json --id 2 --value 0.25",
        "tomography project scan.toml --phantom rectangles -o sinogram.npy",
        "tomography project few.toml --phantom rectangles -o few.npy",
        "tomography reconstruct scan.toml sinogram.npy --method deep-image-prior --channels 4,4 --weight 0.001 --iterations 9 --network-out unet.safetensors -o unread.npy",
        "label start l.json t.csv --features a,b --initial 2",
        "label tell l.json --row 30 --label x",
        "label tell l.json --row 31 --label y",
        "label ask l.json -n 2",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_posterior"))
            .current_dir(at)
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    folder
}

/// Whether a flag takes numbers: not a choice, not a path, not what is known to be text.
fn takes_numbers(flag: &Arg) -> bool {
    let is = |type_id: TypeId| ValueParser::type_id(flag.get_value_parser()) == type_id;
    let named = |name: &str| flag.get_value_names().is_some_and(|names| names.iter().any(|n| n == name));
    flag.get_long().is_some()
        && flag.get_action().takes_values()
        && flag.get_possible_values().is_empty()
        && !is(TypeId::of::<PathBuf>())
        && !(is(TypeId::of::<String>()) && TEXT.iter().any(|name| named(name)))
}

/// Commands without sub-commands, by their words, with the flags that take numbers.
fn flags() -> BTreeMap<String, Vec<String>> {
    fn walk(command: &clap::Command, words: &str, out: &mut BTreeMap<String, Vec<String>>) {
        let below: Vec<&clap::Command> =
            command.get_subcommands().filter(|c| c.get_name() != "help").collect();
        for one in &below {
            walk(one, format!("{words} {}", one.get_name()).trim(), out);
        }
        if below.is_empty() {
            let numbers = command.get_arguments().filter(|a| takes_numbers(a));
            out.insert(words.into(), numbers.filter_map(|a| Some(a.get_long()?.to_string())).collect());
        }
    }
    let mut grammar = posterior_cli::grammar();
    grammar.build();
    let mut out = BTreeMap::new();
    walk(&grammar, "", &mut out);
    // Help shows no settings, and each form of `fit` has some.
    for words in [&["posterior", "fit"][..], &["posterior", "fit", "--network", "net.onnx"][..]] {
        let mut own = BTreeMap::new();
        walk(posterior_cli::grammar_of(words).find_subcommand("fit").unwrap(), "fit", &mut own);
        let known = out.entry("fit".into()).or_default();
        let new: Vec<String> = own.remove("fit").unwrap_or_default();
        known.extend(new.into_iter().filter(|flag| !known.contains(flag)).collect::<Vec<_>>());
    }
    out
}

/// One command line to be run.
#[derive(Clone)]
struct Run {
    flag: String,
    value: &'static str,
    words: Vec<String>,
}

/// The line with the flag at the value, in place of the value that the line has.
fn with_flag(line: &str, flag: &str, value: &str) -> Vec<String> {
    let (ours, theirs) = line.split_once(" -- ").map_or((line, None), |(a, b)| (a, Some(b)));
    let mut words: Vec<String> = ours.split_whitespace().map(String::from).collect();
    let name = format!("--{flag}");
    // A setting stands behind `--set`, with its value.
    let setting = flag.strip_prefix("set ").map(|own| format!("{own}="));
    let set = |w: &[String]| setting.as_ref().is_some_and(|own| w[0] == "--set" && w[1].starts_with(own));
    if let Some(at) = words.windows(2).position(|w| w[0] == name || set(w)) {
        words.drain(at..at + 2);
    }
    words.push(format!("{name}={value}"));
    words.extend(
        theirs.into_iter().flat_map(|t| std::iter::once("--").chain(t.split_whitespace())).map(String::from),
    );
    words
}

/// How a run ended.
struct End {
    status: Option<ExitStatus>,
    stderr: String,
    seconds: f64,
}

/// Runs the binary in a copy of the folder, with limits on address space and processor time.
fn end(template: &Path, run: &Run, clock: Option<Duration>) -> End {
    let folder = tempfile::tempdir().unwrap();
    copy(template, folder.path());
    let stderr = folder.path().join("stderr");
    let started = Instant::now();
    // A limit on the processor's time also ends what spins; the clock ends what waits.
    let space = ADDRESS_SPACE_KB + reserved_kb();
    let limits = format!("ulimit -v {space}; ulimit -t {}; exec \"$0\" \"$@\"", 2 * SECONDS);
    let mut child = Command::new("bash")
        .args(["-c", &limits, env!("CARGO_BIN_EXE_posterior")])
        .args(&run.words)
        .current_dir(folder.path())
        // Arenas reserve address space by the thread.
        .env("MALLOC_ARENA_MAX", "2")
        .env("RAYON_NUM_THREADS", "2")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let most = clock.unwrap_or(Duration::from_secs(60));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > most {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let seconds = started.elapsed().as_secs_f64();
    End { status, stderr: String::from_utf8_lossy(&std::fs::read(&stderr).unwrap()).into_owned(), seconds }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What is wrong with how a run ended.
fn finding(run: &Run, end: &End) -> Option<String> {
    let large = LARGE.contains(&run.value);
    let first = end.stderr.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
    let why = match end.status {
        None if large => return None,
        None => format!("did not end in {:.0} s", end.seconds),
        Some(status) => match (status.code(), status.signal()) {
            _ if end.stderr.contains("panicked at") => "panicked".into(),
            (Some(0..=2), _) => return None,
            // SIGXCPU or SIGKILL by the limit on the processor's time.
            (_, Some(24 | 9)) if large => return None,
            (Some(code), _) => format!("exit status {code}"),
            (_, signal) => format!("signal {signal:?}"),
        },
    };
    Some(format!("{why} after {:.1} s: posterior {}\n    {first}", end.seconds, run.words.join(" ")))
}

/// A draw from `0..count` that depends on the arguments alone.
fn draw(seed: u64, what: &str, count: usize) -> usize {
    // Fowler, Noll and Vo's hash.
    let hash = what
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    ((hash ^ (hash >> 32)) % count as u64) as usize
}

#[test]
fn no_number_makes_a_command_panic_hang_or_take_all_memory() {
    let asked = std::env::var("POSTERIOR_SWEEP").unwrap_or_default();
    let all = asked == "all";
    let seed: u64 = asked.parse().unwrap_or(0);
    let (flags, lines) = (flags(), lines());
    assert!(flags.values().map(Vec::len).sum::<usize>() > 80, "{flags:?}");
    let mut runs = Vec::new();
    for (command, names) in &flags {
        let own: Vec<&Line> = lines.iter().filter(|l| l.words.starts_with(&format!("{command} "))).collect();
        assert!(!own.is_empty(), "`posterior {command}` is not swept: add a line for it");
        for flag in names {
            let made = |line: &Line, value: &'static str| Run {
                flag: format!("{command} --{flag}"),
                value,
                words: with_flag(line.words, flag, value),
            };
            if all {
                let values = || VALUES.iter().chain(&ORDINARY).chain(&LARGE);
                runs.extend(own.iter().flat_map(|line| values().map(|value| made(line, value))));
            } else if own[0].quick {
                // Both draws depend on the flag's name, so that a new flag changes no other's.
                let what = format!("{command} {flag}");
                let line = own[draw(seed, &format!("{what} line"), own.len())];
                runs.push(made(line, VALUES[draw(seed, &format!("{what} value"), VALUES.len())]));
            }
        }
    }
    // What was found by hand once.
    for line in [
        "predict exact.posterior new.csv --samples 100000000 -o p.csv",
        "predict exact.posterior new.csv --samples 3000000 --memory 0.001 -o p.csv",
        "fit t.csv --target y --set samples=18446744073709551615 -o o.posterior",
        "fit t.csv --target y --set restarts=99999999999 -o o.posterior",
        "fit t.csv --target y --set restarts=100000000 -o o.posterior",
        "fit t.csv --target y --threads 100000 -o o.posterior",
    ] {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        runs.push(Run { flag: "by hand".into(), value: "by hand", words });
    }
    let template = folder();
    let clock = all.then(|| Duration::from_secs(SECONDS));
    let (count, queue) = (runs.len(), Mutex::new(runs.clone()));
    let findings = Mutex::new(Vec::new());
    let accepted = Mutex::new(BTreeMap::<String, usize>::new());
    let slowest = Mutex::new((0.0, String::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(run) = queue.lock().unwrap().pop() else { break };
                    let slow = run.words.first().is_some_and(|w| w == "demo");
                    let end = end(template.path(), &run, if slow { None } else { clock });
                    let success = usize::from(end.status.is_some_and(|s| s.success()));
                    *accepted.lock().unwrap().entry(run.flag.clone()).or_default() += success;
                    let mut slowest = slowest.lock().unwrap();
                    if end.seconds > slowest.0 && end.status.is_some() {
                        *slowest = (end.seconds, run.words.join(" "));
                    }
                    findings.lock().unwrap().extend(finding(&run, &end));
                }
            });
        }
    });
    let (findings, slowest) = (findings.into_inner().unwrap(), slowest.into_inner().unwrap());
    println!(
        "{} commands, {} flags with numbers, {count} runs, {} findings; the slowest took {:.1} s: posterior {}",
        flags.len(),
        flags.values().map(Vec::len).sum::<usize>(),
        findings.len(),
        slowest.0,
        slowest.1
    );
    if all {
        // A flag that no line can use is not swept, only refused.
        let never: Vec<String> =
            accepted.into_inner().unwrap().into_iter().filter(|a| a.1 == 0).map(|a| a.0).collect();
        println!("never accepted at any of the values: {}", never.join(", "));
    }
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}
