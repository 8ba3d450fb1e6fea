//! What a terminal is shown: control characters of names, cells and paths as escapes. Files and pipes get data byte for byte.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

/// A name that colours what follows, by ESC, by C1, and that turns the direction of text.
const NAME: &str = "a\u{1b}[31m\u{9b}1m\u{202e}b";
const SHOWN: &str = "a\\u{1b}[31m\\u{9b}1m\\u{202e}b";

/// All of standard error of a command.
fn told(at: &Path, words: &[&str]) -> String {
    let output = Command::new(BINARY).current_dir(at).args(words).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn errors_and_remarks_show_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("t.csv"), "a,b\n1,2\n").unwrap();
    let missing = format!("{NAME}.csv");
    let number = format!("--memory={NAME}");
    let unknown = format!("--{NAME}");
    for words in [
        // An error of ours, three of clap.
        vec!["inspect", &missing],
        vec!["inspect", "t.csv", &number],
        vec!["inspect", "t.csv", &unknown],
        vec![NAME],
    ] {
        let text = told(at, &words);
        assert!(text.starts_with("error: ") && text.contains(SHOWN), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
    }
    // A remark, of the file that is written.
    let out = format!("{NAME}.html");
    std::fs::write(
        at.join("net.toml"),
        "kind = 'perceptron'\ninputs = 2\nhidden = [3]\noutputs = 1\nactivation = 'tanh'",
    )
    .unwrap();
    let text = told(at, &["inspect", "net.toml", "--report", &out]);
    assert!(text.contains(&format!("report written to {SHOWN}.html")), "{text:?}");
}

#[test]
fn tables_go_to_pipes_byte_for_byte_and_to_terminals_with_escapes() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/predictors");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::copy(fixtures.join("exact.posterior"), at.join("m.posterior")).unwrap();
    std::fs::write(at.join("new.csv"), format!("a,b,{NAME}\n0.1,0.2,{NAME}\n")).unwrap();
    let words = ["predict", "m.posterior", "new.csv", "--quiet"];
    let output = Command::new(BINARY).current_dir(at).args(words).output().unwrap();
    let piped = String::from_utf8(output.stdout).unwrap();
    assert_eq!(piped.matches(NAME).count(), 2, "{piped:?}");
    if !cfg!(target_os = "linux") || Command::new("script").arg("--version").output().is_err() {
        return posterior_testing::skip("`script` of util-linux, which makes a terminal, is not there");
    }
    let line = format!("'{BINARY}' {}", words.join(" "));
    let output = Command::new("script")
        .current_dir(at)
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown.matches(SHOWN).count(), 2, "{shown:?}");
    assert_eq!(shown.replace("\r\n", "\n"), piped.replace(NAME, SHOWN));
}

/// What writes to a terminal, with the only file that may. Fails if a command prints without `output`.
const WRITERS: [(&str, &str); 20] = [
    ("print!(", ""),
    ("println!(", ""),
    ("dbg!(", ""),
    ("io::stdout", ""),
    ("io::stderr", ""),
    (".print()", ""),
    (".print_help(", ""),
    (".print_long_help(", ""),
    ("/dev/tty", ""),
    ("with_message(", ""),
    ("abandon_with", ""),
    (".suspend(", ""),
    ("bar.println(", ""),
    ("stdout()", "output/terminal.rs"),
    ("stderr()", "output/terminal.rs"),
    // Help of clap, which repeats no word of the command line.
    (".exit()", "output/terminal.rs"),
    ("set_hook(", "output/terminal.rs"),
    // The bar draws itself.
    ("ProgressBar::new(", "progress.rs"),
    ("set_message(shown_in_line(", "progress.rs"),
    // A program of the user's speaks for itself.
    ("Stdio::inherit()", "commands/optimize/trial.rs"),
];

#[test]
fn one_place_writes_to_the_terminal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(files.len() > 50, "{files:?}");
    let code = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        (path.strip_prefix(&root).unwrap().to_path_buf(), lines.collect::<Vec<_>>().join("\n"))
    };
    let files: Vec<(PathBuf, String)> = files.iter().map(code).collect();
    for (writer, place) in WRITERS {
        let found: Vec<&PathBuf> =
            files.iter().filter(|(_, text)| text.contains(writer)).map(|(path, _)| path).collect();
        let expected = PathBuf::from(place);
        let expected: Vec<&PathBuf> = if place.is_empty() { Vec::new() } else { vec![&expected] };
        assert_eq!(found, expected, "`{writer}`");
    }
    let messages: usize = files.iter().map(|(_, text)| text.matches("set_message(").count()).sum();
    assert_eq!(messages, 1, "all messages of the bar go through one function");
}

/// The Rust files of a folder and of those below.
fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}
