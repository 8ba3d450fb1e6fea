//! Every command line that README, the book and the help print, run over small stand-ins for the files that they speak of.

use super::inputs::{self, CLASSES, SIDE};
use posterior_testing::printed::{Page, command_lines, examples, pages, repository};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once};
use std::time::Instant;

/// Rows of tables and examples of images.
const ROWS: usize = 60;

/// Command lines that belong together, in order: a chapter's, or one help text's.
struct Document {
    name: String,
    lines: Vec<String>,
}

/// Fails, as the slow test does, if `fit` loses `--test-fraction`.
#[test]
fn every_command_line_of_the_first_pages_runs() {
    let mut documents = documents();
    documents.retain(|d| ["README.md", "docs/src/first-steps.md"].contains(&d.name.as_str()));
    assert_eq!(documents.len(), 2);
    run_all(documents);
}

#[test]
#[ignore = "slow"]
fn every_command_line_of_the_documentation_runs() {
    run_all(documents());
}

/// The pages that print command lines.
fn documents() -> Vec<Document> {
    let document = |page: Page| Document { lines: command_lines(&page.text), name: page.name };
    let documents: Vec<Document> =
        pages().into_iter().map(document).filter(|d| !d.lines.is_empty()).collect();
    let count: usize = documents.iter().map(|d| d.lines.len()).sum();
    assert!(documents.len() >= 9 && count >= 45, "{count} lines in {} documents", documents.len());
    documents
}

/// Those of `fit`, `predict` and `evaluate` run. Fails, as the slow test does, if `predict` loses `--top`.
#[test]
fn every_command_has_examples_and_the_first_ones_run() {
    let mut documents = helps();
    documents
        .retain(|d| ["posterior fit", "posterior predict", "posterior evaluate"].contains(&d.name.as_str()));
    assert_eq!(documents.len(), 3);
    run_all(documents);
}

#[test]
#[ignore = "slow"]
fn every_command_has_examples_and_they_run() {
    run_all(helps());
}

/// The help of every command with its examples.
fn helps() -> Vec<Document> {
    let mut grammar = posterior_cli::grammar();
    grammar.build();
    let mut documents = Vec::new();
    collect(&grammar, "posterior", &mut documents);
    let bare: Vec<&str> = documents.iter().filter(|d| d.lines.is_empty()).map(|d| d.name.as_str()).collect();
    assert!(bare.is_empty(), "no example in the help of: {}", bare.join(", "));
    documents
}

/// Every command below this one with its examples, groups included.
fn collect(command: &clap::Command, name: &str, out: &mut Vec<Document>) {
    for one in command.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = format!("{name} {}", one.get_name());
        let help = one.get_after_long_help().or(one.get_after_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        out.push(Document { lines: examples(&help, "posterior "), name: name.clone() });
        collect(one, &name, out);
    }
}

/// Runs each document in a folder of its own.
fn run_all(documents: Vec<Document>) {
    let (queue, failures) = (Mutex::new(documents), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(document) = queue.lock().unwrap().pop() else { break };
                    if let Err(failure) = run(&document) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} documents fail:\n{}", failures.len(), failures.join("\n"));
}

fn run(document: &Document) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let at = Folder { path: folder.path().to_path_buf(), document: document.name.clone() };
    for line in &document.lines {
        for part in line.split("; ") {
            let started = Instant::now();
            let done = match part.strip_prefix("cargo run --release -- ") {
                Some(arguments) => at.posterior(&format!("posterior {arguments}")),
                None if part.starts_with("posterior ") => at.posterior(part),
                None => exists(part),
            };
            done.map_err(|why| format!("{}: {part}\n    {why}", document.name))?;
            println!("{:5.1} s  {}: {part}", started.elapsed().as_secs_f64(), document.name);
        }
    }
    Ok(())
}

/// Of other programs: that what they are to run is there.
fn exists(line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let behind = |name: &str| words.iter().position(|w| *w == name).and_then(|i| words.get(i + 1).copied());
    let root = repository();
    let inside = |package: &str, rest: String| {
        let folder = package.strip_prefix("posterior-").unwrap_or(package);
        root.join("crates").join(folder).join(rest)
    };
    let wanted: PathBuf = match (words.first().copied(), words.get(1).copied()) {
        // Its own tests read what is printed of it.
        _ if words.contains(&"posterior-experiments") => root.join("tools/experiments/Cargo.toml"),
        (Some("python3"), Some(script)) => root.join(script),
        (Some("cargo"), Some("install")) => root.join(behind("--path").unwrap_or("?")).join("Cargo.toml"),
        (Some("cargo"), Some("test" | "doc" | "fmt" | "clippy")) => root.join("Cargo.toml"),
        (Some("cargo"), Some("bench")) => {
            let package = behind("-p").unwrap_or("?");
            inside(package, behind("--bench").map_or("benches".into(), |b| format!("benches/{b}.rs")))
        }
        (Some("cargo"), Some("run")) => {
            inside(behind("-p").unwrap_or("?"), format!("examples/{}.rs", behind("--example").unwrap_or("?")))
        }
        (Some(".ci/run"), _) => root.join(".ci/run"),
        _ => return Err("no test knows this program".into()),
    };
    if wanted.exists() { Ok(()) } else { Err(format!("{} is not there", wanted.display())) }
}

/// Where a document's lines run.
struct Folder {
    path: PathBuf,
    document: String,
}

impl Folder {
    fn posterior(&self, line: &str) -> Result<(), String> {
        static DEMO: Once = Once::new();
        if line == "posterior demo" {
            // It reads nothing, and three pages print it.
            let mut first = false;
            DEMO.call_once(|| first = true);
            if !first {
                return Ok(());
            }
        }
        // Where a shell looks for completions is not for a test to write to.
        let line = line.replace("/etc/bash_completion.d/", "./completion-of-");
        let mut before = "";
        for word in line.split([' ', ',', '=']) {
            let written = matches!(
                before,
                "-o" | "--report" | "--samples-out" | "--joint" | "--network-out" | "--image-out" | ">"
            );
            let begun = ["s.json", "labels.json", "arrays.json"].contains(&word)
                && ["posterior optimize start", "posterior label start"].iter().any(|c| line.starts_with(c));
            if !written && !begun {
                self.stand_in(word.split(':').next().unwrap_or_default());
            }
            before = word;
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_posterior")).parent().unwrap();
        let path = std::env::join_paths(
            std::iter::once(binaries.to_path_buf())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let output = Command::new("bash")
            .args(["-c", &line])
            .current_dir(&self.path)
            .env("PATH", path.unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("{}: {said}", output.status));
        }
        let light = "--initial 46 --search-candidates 50 --search-rounds 1 --force";
        if line.starts_with("posterior optimize start") && !line.ends_with(light) {
            // The state is data: one whose searches are short stands in for it.
            return self.posterior(&format!("{line} {light}"));
        }
        Ok(())
    }

    /// Makes the file of that name, unless it is there or is none.
    fn stand_in(&self, name: &str) {
        let path = self.path.join(name);
        if name.is_empty() || path.exists() {
            return;
        }
        let house = ["area", "rooms", "age"];
        let make = |line: &str| self.posterior(line).unwrap();
        match name {
            "house.csv" | "sold.csv" => inputs::table(&path, &house, Some("price"), ROWS),
            "tasks.csv" => inputs::tasks(&path, ROWS / 2),
            "iris.csv" => inputs::labelled(&path, &["length", "width"], "label", ROWS),
            "new.csv" | "new.parquet" => inputs::table(&path, &house, None, 10),
            "folds.csv" | "airfoil.fold.csv.gz" => inputs::folds(&path, ROWS),
            "flights.parquet" | "flights-2024.parquet" | "flights-2025.parquet" => {
                inputs::table(&path, &["distance", "hour"], Some("delay"), ROWS / 2);
            }
            "airfoil.csv.gz" => {
                let plain = self.path.join("airfoil.csv");
                inputs::table(&plain, &["frequency", "angle"], Some("y"), ROWS);
                inputs::bytes(&path, &std::fs::read(plain).unwrap());
            }
            "pool.csv" => inputs::table(&path, &["length", "width"], None, ROWS),
            // What is asked for first is told of.
            "answers.csv" => std::fs::write(&path, "id,label\n1,cat\n2,dog\n4,dog\n5,cat\n").unwrap(),
            "labels.json" => {
                make("posterior label start labels.json pool.csv");
                // The examples answer questions that are open.
                make("posterior label ask labels.json -n 5");
                for row in 30..42 {
                    let label = ["cat", "dog"][row % 2];
                    make(&format!("posterior label tell labels.json --row {row} --label {label}"));
                }
            }
            "x.npy" => inputs::npy(&path, &[12, SIDE, SIDE]),
            // Models of images in bytes take bytes.
            "other.npy" | "new-images.npy" => inputs::byte_images(&path, 12),
            "table.csv" => inputs::table(&path, &["a", "b", "c"], None, ROWS),
            "batch.npz" => inputs::npz(&path, &[("images", &[5, house.len()])]),
            "head.npz" => inputs::npz(&path, &[("weight", &[4, 5]), ("bias", &[4])]),
            "features.npy" => inputs::npy(&path, &[ROWS, 5]),
            "classes.npy" => inputs::classes(&path, ROWS, 4),
            "net.onnx" | "mlp.onnx" => inputs::onnx(&path),
            "mlp.toml" if self.document != "README.md" => inputs::perceptron(&path, SIDE * SIDE, CLASSES),
            "net.toml" | "mlp.toml" => inputs::perceptron(&path, house.len(), 1),
            "resnet20.toml" => inputs::convolutional(&path),
            "data_batch_1.bin.gz" | "test_batch.bin.gz" => inputs::cifar(&path, ROWS),
            "./train.sh" => inputs::script(&path),
            "scan.toml" => inputs::scan(&path, "{ count = 8 }"),
            "scanner.toml" => inputs::scan(&path, "{ count = 200 }"),
            "pilot.toml" => inputs::scan(&path, "{ list = [0, 36, 72, 108, 144], unit = \"degrees\" }"),
            "sinogram.npy" | "pilot.npy" => {
                let scan = if name == "pilot.npy" { "pilot.toml" } else { "scan.toml" };
                make(&format!("posterior tomography project {scan} --phantom rectangles -o {name}"));
            }
            "truth.png" => make(
                "posterior tomography project scan.toml --phantom rectangles -o unread.npy --image-out truth.png",
            ),
            "pilot.safetensors" | "net.safetensors"
                if name.starts_with("pilot") || self.document.contains("tomography") =>
            {
                let (scan, sinogram) = match name {
                    "pilot.safetensors" => ("pilot.toml", "pilot.npy"),
                    _ => ("scan.toml", "sinogram.npy"),
                };
                make(&format!(
                    "posterior tomography reconstruct {scan} {sinogram} --method deep-image-prior --channels 4,4 --weight 1e-4 --iterations 50 --network-out {name} -o unread.tiff"
                ));
            }
            "net.safetensors" | "house.safetensors" => {
                let train = "posterior train net.toml house.csv --target price --loss gaussian --epochs 5";
                make(&format!("{train} -o {name}"));
            }
            "house.posterior" => make(
                "posterior fit house.csv --target price --set restarts=1 --set steps=10 -o house.posterior",
            ),
            "large.posterior" => {
                inputs::table(&self.path.join("large.csv"), &["distance", "hour"], Some("delay"), 600);
                make(
                    "posterior fit large.csv --target delay --method sap --set samples=4 --set blocks=1 --set block-size=40 --set refining-rows=0 --set steps=3 -o large.posterior",
                );
            }
            "net.posterior" => make(
                "posterior fit train-images.gz --network net.onnx --labels train-labels.gz --likelihood categorical --method last-layer-kronecker -o net.posterior",
            ),
            "s.json" => {
                make("posterior optimize start s.json --space rate:1e-5..0.1:log,layers:1..6:integer");
                make("posterior optimize ask s.json -n 2");
            }
            _ if name.ends_with(".gz") && name.contains("labels") => inputs::labels(&path, ROWS),
            _ if name.ends_with(".gz") => inputs::images(&path, ROWS),
            _ => {}
        }
    }
}
