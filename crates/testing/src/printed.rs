//! What the documentation prints: its pages, their command lines, the examples of the help.

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A page of Markdown.
pub struct Page {
    /// Relative to the repository.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// README and its kind, then the chapters of the book.
pub fn pages() -> Vec<Page> {
    let root = repository();
    let mut names: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "benches/peers/README.md"]
            .map(String::from)
            .to_vec();
    let mut chapters: Vec<String> = std::fs::read_dir(root.join("docs/src"))
        .unwrap()
        .map(|entry| format!("docs/src/{}", entry.unwrap().file_name().to_string_lossy()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    chapters.sort();
    names.extend(chapters);
    let read = |name: String| Page { text: std::fs::read_to_string(root.join(&name)).unwrap(), name };
    names.into_iter().map(read).collect()
}

/// The command lines of all `console` blocks: those behind `$ `, or every line of a block without one.
pub fn command_lines(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("\n```").next().unwrap_or_default();
        let marked = block.lines().any(|l| l.starts_with("$ "));
        let mut open: Option<String> = None;
        for line in block.lines() {
            let begun = match (open.take(), line.strip_prefix("$ ")) {
                (Some(begun), _) => format!("{begun} {}", line.trim()),
                (None, Some(command)) => command.into(),
                (None, None) if !marked => line.into(),
                (None, None) => continue,
            };
            match begun.strip_suffix('\\') {
                Some(more) => open = Some(more.trim().into()),
                None => out.push(without_remark(&begun)),
            }
        }
        assert!(open.is_none(), "a command line ends in \\: {open:?}");
    }
    out
}

/// The examples of a command's help: the lines that begin with the name of the program.
pub fn examples(help: &str, program: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for line in help.lines().map(str::trim) {
        let (text, goes_on) = line.strip_suffix('\\').map_or((line, false), |t| (t.trim(), true));
        match out.last_mut() {
            Some(last) if open => *last = format!("{last} {text}"),
            _ if text.starts_with(program) => out.push(text.into()),
            _ => continue,
        }
        open = goes_on;
    }
    out
}

/// A line without what stands behind `  #`.
fn without_remark(line: &str) -> String {
    line.split("  #").next().unwrap_or_default().trim().into()
}

/// What stands between single backquotes outside of blocks.
pub fn inline_code(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let outside = text.split("```").step_by(2);
    for line in outside.flat_map(str::lines) {
        out.extend(line.split('`').skip(1).step_by(2).map(String::from));
    }
    out
}

#[test]
fn blocks_and_examples_are_taken_apart() {
    let text = "a `b c`\n```console\n$ x --a \\\n    --b  # why\nout\n$ y\n```\n`d`\n```console\nz\n```\n";
    assert_eq!(command_lines(text), ["x --a --b", "y", "z"]);
    assert_eq!(inline_code(text), ["b c", "d"]);
    let help = "Examples:\n  posterior a b \\\n      --c\n  posterior d\n\nWords.";
    assert_eq!(examples(help, "posterior "), ["posterior a b --c", "posterior d"]);
}
