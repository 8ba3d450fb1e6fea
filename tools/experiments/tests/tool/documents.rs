//! What the documentation and the help print of this program can be run: its flags exist, and the experiments that it names are built in.

use posterior_experiments::{embedded, grammar};
use posterior_testing::printed::{command_lines, examples, inline_code, pages};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A command line of this program in words, however it is called.
fn called(line: &str) -> Option<Vec<String>> {
    let arguments = ["cargo run -p posterior-experiments --release -- ", "posterior-experiments "]
        .iter()
        .find_map(|begin| line.strip_prefix(begin))?;
    let words = std::iter::once("posterior-experiments").chain(arguments.split_whitespace());
    Some(words.map(String::from).collect())
}

/// Reads a command line as the program does, and looks for what it is to run.
fn check(line: &str, words: Vec<String>) {
    let matches = grammar().try_get_matches_from(words).unwrap_or_else(|e| panic!("{line}: {e}"));
    let Some(run) = matches.subcommand_matches("run") else { return };
    let names: BTreeSet<String> = embedded().into_iter().map(|one| one.name).collect();
    for file in run.get_many::<PathBuf>("files").into_iter().flatten() {
        assert!(names.contains(&*file.to_string_lossy()), "{line}: {} is not built in", file.display());
    }
}

#[test]
fn every_command_line_of_the_documentation_and_of_the_help_is_one() {
    let mut count = 0;
    for page in pages() {
        // Blocks of a command alone, and commands within sentences.
        let blocks = page.text.split("\n```text\n").skip(1).filter_map(|rest| rest.lines().next());
        let blocks: Vec<String> = blocks.map(String::from).collect();
        for line in [command_lines(&page.text), inline_code(&page.text), blocks].concat() {
            let Some(words) = called(&line) else { continue };
            check(&format!("{}: {line}", page.name), words);
            count += 1;
        }
    }
    assert!(count >= 15, "{count} command lines");
    for command in grammar().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = examples(&help, "posterior-experiments ");
        assert!(!lines.is_empty(), "no example in the help of {}", command.get_name());
        lines.iter().for_each(|line| check(line, called(line).unwrap()));
    }
}

#[test]
fn the_page_of_experiments_names_all_of_them_and_flags_that_exist() {
    let page = pages().into_iter().find(|page| page.name == "docs/src/experiments.md").unwrap();
    let missing: Vec<String> = embedded()
        .into_iter()
        .map(|one| one.name)
        .filter(|name| !page.text.contains(&format!("| `{name}` |")))
        .collect();
    assert!(missing.is_empty(), "the table of experiments lacks {missing:?}");
    fn walk(command: &clap::Command, out: &mut BTreeSet<String>) {
        out.extend(command.get_arguments().filter_map(|a| Some(format!("--{}", a.get_long()?))));
        command.get_subcommands().for_each(|c| walk(c, out));
    }
    // The page speaks of fits as well.
    let mut known = BTreeSet::new();
    [grammar(), posterior_cli::grammar()].iter().for_each(|command| walk(command, &mut known));
    for code in inline_code(&page.text).into_iter().filter(|code| !code.contains("cargo ")) {
        for word in code.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2) {
            let flag = word.trim_end_matches([',', ';', '.', ':']).split('=').next().unwrap_or_default();
            assert!(known.contains(flag), "there is no flag {flag}");
        }
    }
}
