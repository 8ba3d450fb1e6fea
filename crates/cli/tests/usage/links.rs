//! The documentation points at what is there: links, the table of contents, files and flags that it names.

use posterior_testing::printed::{inline_code, pages, repository};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn links_lead_somewhere_and_every_chapter_is_in_the_table_of_contents() {
    let root = repository();
    let mut dead = Vec::new();
    for page in pages() {
        let folder = root.join(&page.name).parent().unwrap().to_path_buf();
        for target in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
            let path = folder.join(file);
            let found = match (anchor, std::fs::read_to_string(&path)) {
                (Some(anchor), Ok(text)) => headings(&text).any(|h| h == anchor),
                _ => path.exists(),
            };
            if !found {
                dead.push(format!("{}: {target}", page.name));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:?}");
    let summary = std::fs::read_to_string(root.join("docs/src/SUMMARY.md")).unwrap();
    for page in pages() {
        let chapter = page.name.strip_prefix("docs/src/").filter(|c| *c != "SUMMARY.md");
        assert!(chapter.is_none_or(|c| summary.contains(&format!("({c})"))), "SUMMARY lacks {}", page.name);
    }
}

/// Headings as links name them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let sign = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => c.to_lowercase().next(),
        _ => None,
    };
    text.lines()
        .filter(|l| l.starts_with('#'))
        .map(move |l| l.trim_start_matches('#').trim().chars().filter_map(sign).collect())
}

#[test]
fn files_and_flags_that_the_documentation_names_exist() {
    let root = repository();
    let folders = ["crates/", "benches/", "docs/", "tools/", ".ci/"];
    let (known, settings) = (flags(), settings());
    assert!(settings.len() > 100, "{settings:?}");
    let mut missing = Vec::new();
    for page in pages() {
        for code in inline_code(&page.text) {
            let set = code.split("--set ").skip(1).filter_map(|own| own.split(['=', ' ', ',']).next());
            // A setting of a candidate stands behind its name; NAME stands for any.
            let is_known = |name: &str| {
                let own = name.split_once('.').map_or(name, |(_, own)| own);
                [name, own].iter().any(|name| settings.contains(*name)) || name == "NAME"
            };
            missing.extend(
                set.filter(|name| !is_known(name)).map(|name| format!("{}: --set {name}", page.name)),
            );
            for word in code.split_whitespace() {
                let word = word.trim_end_matches([',', ';', '.', ':']);
                let pattern = word.contains(['*', '{', '<']);
                if folders.iter().any(|f| word.starts_with(f)) && !pattern && !root.join(word).exists() {
                    missing.push(format!("{}: {word}", page.name));
                }
                let flag = word.split('=').next().unwrap_or_default();
                // The experiments' program has a grammar of its own, which its tests hold against that page.
                let foreign = ["cargo ", "python", ".py"].iter().any(|program| code.contains(program))
                    || page.name == "docs/src/experiments.md";
                if flag.starts_with("--") && flag.len() > 2 && !foreign && !known.contains(flag) {
                    missing.push(format!("{}: {flag}", page.name));
                }
            }
        }
    }
    assert!(missing.is_empty(), "the documentation names what does not exist: {missing:?}");
}

/// Where a manifest says `test = false` of its library, tests in `src` would never run.
#[test]
fn no_test_stands_where_none_is_built() {
    fn has_tests(at: &Path) -> bool {
        let mut entries = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path());
        entries.any(|e| {
            if e.is_dir() { has_tests(&e) } else { std::fs::read_to_string(e).unwrap().contains("#[test]") }
        })
    }
    let packages = |folder| std::fs::read_dir(repository().join(folder)).unwrap();
    for entry in packages("crates").chain(packages("tools")) {
        let at = entry.unwrap().path();
        let manifest = std::fs::read_to_string(at.join("Cargo.toml")).unwrap();
        let bare = manifest.split("\n\n").any(|s| s.starts_with("[lib]") && s.contains("test = false"));
        assert!(!bare || !has_tests(&at.join("src")), "{}: its unit tests are not built", at.display());
    }
}

/// Every setting of `fit`.
fn settings() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for form in ["--target", "--network", "--continue"] {
        let grammar = posterior_cli::grammar_of(&["posterior", "fit", form]);
        let fit = grammar.find_subcommand("fit").unwrap();
        let longs = fit.get_arguments().filter_map(|flag| flag.get_long());
        out.extend(longs.filter_map(|long| long.strip_prefix("set ")).map(String::from));
    }
    out
}

/// Every flag of every command.
fn flags() -> BTreeSet<String> {
    fn walk(command: &clap::Command, out: &mut BTreeSet<String>) {
        for flag in command.get_arguments() {
            let names = flag.get_long_and_visible_aliases().unwrap_or_default();
            out.extend(names.into_iter().map(|n| format!("--{n}")));
        }
        command.get_subcommands().for_each(|c| walk(c, out));
    }
    let mut grammar = posterior_cli::grammar();
    grammar.build();
    let mut out = BTreeSet::new();
    walk(&grammar, &mut out);
    out
}
