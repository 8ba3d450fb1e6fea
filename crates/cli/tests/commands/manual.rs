//! `man`: a page for each command.

use super::running::{json, run};
use std::collections::BTreeSet;

/// Names of the pages of a command and of those below it.
fn collect(command: &clap::Command, name: &str, out: &mut BTreeSet<String>) {
    out.insert(format!("{name}.1"));
    for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
        collect(below, &format!("{name}-{}", below.get_name()), out);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut expected = BTreeSet::new();
    collect(&posterior_cli::grammar(), "posterior", &mut expected);
    assert!(expected.contains("posterior-fit.1"));
    let written = json(at, "man -o man/man1");
    let pages = at.join("man/man1");
    let files = std::fs::read_dir(&pages).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files, expected);
    assert_eq!(written["files"].as_array().unwrap().len(), expected.len());
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    // Roff has a backslash before a hyphen that is one.
    assert!(page("posterior-predict.1").replace('\\', "").contains("--quantiles"));
    assert!(page("posterior.1").contains(".SH NAME"));
    // Pages are replaced, and the main one is printed where no folder is given.
    assert!(run(at, "man -o man/man1").status.success());
    assert_eq!(String::from_utf8(run(at, "man").stdout).unwrap(), page("posterior.1"));
    assert_eq!(json(at, "man")["page"].as_str().unwrap(), page("posterior.1"));
}
