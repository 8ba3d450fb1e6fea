//! Modules of this crate import downwards only, and the import cycles among its files are small.
//!
//! The test reads the sources: `use` declarations and paths in code, outside of tests. Each name is followed through re-exports to the file that defines it. Calls of methods are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules, lower before upper; `ARCHITECTURE.md` has the same list. A folder in a folder that has a place of its own counts by that.
const ORDER: &[&str] = &[
    "text",
    "facts",
    "memory",
    "speed",
    "family",
    "hyperparameter",
    "network",
    "plan",
    "error",
    "data",
    "units",
    "latent",
    "rows",
    "question",
    "shift",
    "shares",
    "prior",
    "predictor",
    "options",
    "calibration",
    "inputs",
    "output",
    "prepare",
    "record",
    "model",
    "describe",
    "method",
    "method/training",
    "method/deep",
    "method/gvi",
    "method/large",
    "method/noise",
    "method/inference",
    "method/regression",
    "method/settings",
    "fit",
    "targets",
    "laplace",
    "ensemble",
    "evaluation",
    "effects",
    "compress",
    "query",
    "saved",
    "streams",
    "scans",
];

/// Files of the largest import cycle.
const LARGEST_CYCLE: usize = 5;

type Module = Vec<String>;

/// A file of the crate.
#[derive(Default)]
struct Source {
    /// Its path below `src`.
    file: String,
    /// Names that it defines.
    defined: BTreeSet<String>,
    /// Names that it imports, and the paths as they are written, with their lines.
    imported: BTreeMap<String, Vec<(Module, usize)>>,
    /// Paths in its code, with their lines.
    paths: Vec<(Module, usize)>,
    /// Whether it has the settings of a method.
    is_method: bool,
}

/// The files of the crate by their modules.
struct Crate(BTreeMap<Module, Source>);

impl Crate {
    fn read(src: &Path) -> Self {
        let mut out = BTreeMap::new();
        let mut folders = vec![src.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let file = path.strip_prefix(src).unwrap().to_str().unwrap().replace('\\', "/");
                if file.ends_with(".rs") && !file.ends_with("tests.rs") {
                    let text = fs::read_to_string(&path).unwrap();
                    let is_method = text.contains("MethodSettings for ");
                    let source = Source { is_method, ..Source::parse(&file, &text) };
                    out.insert(module_of(&file), source);
                }
            }
        }
        Self(out)
    }

    /// The module that defines what a path names, as it is written in a module; None for what is from outside of the crate.
    fn defining(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let (mut at, mut rest) = match path[0].as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" | "super" => (module.to_vec(), path),
            head => {
                let child = [module, &[head.to_string()]].concat();
                return match self.0.contains_key(&child) {
                    true => self.below(child, &path[1..], depth),
                    false => self.imported(module, path, depth),
                };
            }
        };
        while let Some((head, tail)) =
            rest.split_first().filter(|(head, _)| ["self", "super"].contains(&head.as_str()))
        {
            if head == "super" {
                at.pop();
            }
            rest = tail;
        }
        self.below(at, rest, depth)
    }

    /// The same of a path in a module.
    fn below(&self, mut at: Module, path: &[String], depth: usize) -> Option<Module> {
        for (k, name) in path.iter().enumerate() {
            let known = self.0.get(&at)?;
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            let is_last = k + 1 == path.len();
            if self.0.contains_key(&child) && !(is_last && known.defined.contains(name)) {
                let through = is_last.then(|| self.imported(&at, &path[k..], depth)).flatten();
                if through.is_some() {
                    return through;
                }
                at = child;
            } else if known.imported.contains_key(name) && !known.defined.contains(name) {
                return self.imported(&at, &path[k..], depth);
            } else {
                return Some(at);
            }
        }
        Some(at)
    }

    /// The same of a name that a module imports.
    fn imported(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        assert!(depth < 20, "{path:?} of {module:?} is imported in a circle");
        let found = self.0.get(module)?.imported.get(&path[0])?;
        found.iter().find_map(|(own, _)| {
            if *own == path[..1] {
                return None;
            }
            self.defining(module, &[own.as_slice(), &path[1..]].concat(), depth + 1)
        })
    }

    /// The place of a module in the order; that of a method which is one file is where settings of methods stand.
    fn place(&self, module: &[String]) -> Option<usize> {
        let is_method = self.0.get(module).is_some_and(|source| source.is_method);
        if is_method { place(&["method".into(), "settings".into()]) } else { place(module) }
    }

    /// What each file imports from others of the crate: line, and the module that defines it. The tables of methods name all of them, wherever they stand.
    fn imports(&self) -> Vec<(&Module, usize, Module)> {
        let mut out = Vec::new();
        let tables = ["method".to_string(), "table".to_string()];
        for (module, source) in self.0.iter().filter(|(module, _)| !module.is_empty() && **module != tables) {
            let uses = source.imported.values().flatten();
            for (path, line) in uses.chain(&source.paths) {
                let found = self.defining(module, path, 0);
                out.extend(found.filter(|to| to != module && !to.is_empty()).map(|to| (module, *line, to)));
            }
        }
        out
    }
}

impl Source {
    fn parse(file: &str, text: &str) -> Self {
        let mut out = Self { file: file.into(), ..Self::default() };
        let tokens = tokens(text);
        let word = |k: usize| tokens.get(k).map_or("", |(word, _)| word.as_str());
        let (mut k, mut depth) = (0, 0usize);
        while k < tokens.len() {
            let (token, line) = &tokens[k];
            match token.as_str() {
                // A module of tests.
                "#" if (1..6).map(|i| word(k + i)).eq(["[", "cfg", "(", "test", ")"])
                    && word(k + 7) == "mod" =>
                {
                    k = group_end(&tokens, k + 8);
                    continue;
                }
                "use" => {
                    let end = (k..tokens.len()).find(|&i| word(i) == ";").unwrap_or(tokens.len());
                    for (path, name) in leaves(&tokens[k + 1..end], &[]) {
                        out.imported.entry(name).or_default().push((path, *line));
                    }
                    k = end;
                }
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" if depth == 0 => {
                    out.defined.insert(word(k + 1).to_string());
                }
                // `pub(in path)` is no import.
                "in" if word(k - 1) == "(" => k = (k..tokens.len()).find(|&i| word(i) == ")").unwrap_or(k),
                _ if is_name(token) && word(k + 1) == "::" => {
                    let mut path = vec![token.clone()];
                    while word(k + 1) == "::" && is_name(word(k + 2)) {
                        path.push(word(k + 2).to_string());
                        k += 2;
                    }
                    if path.len() > 1 {
                        out.paths.push((path, *line));
                    } else {
                        k += 1;
                    }
                }
                _ => {}
            }
            k += 1;
        }
        out
    }
}

/// Names, `::` and single characters of Rust code with their lines, without comments, literals and lifetimes.
fn tokens(text: &str) -> Vec<(String, usize)> {
    let bytes = text.as_bytes();
    let (mut out, mut k, mut line) = (Vec::new(), 0, 1);
    let at = |k: usize| bytes.get(k).copied().unwrap_or(b' ');
    while k < bytes.len() {
        let start = k;
        match bytes[k] {
            b'/' if at(k + 1) == b'/' => k = text[k..].find('\n').map_or(bytes.len(), |n| k + n),
            b'/' if at(k + 1) == b'*' => k = text[k..].find("*/").map_or(bytes.len(), |n| k + n + 2),
            b'r' if at(k + 1) == b'"' || (at(k + 1) == b'#' && [b'"', b'#'].contains(&at(k + 2))) => {
                let hashes = text[k + 1..].bytes().take_while(|b| *b == b'#').count();
                let close = format!("\"{}", "#".repeat(hashes));
                let inside = k + hashes + 2;
                k = text[inside..].find(&close).map_or(bytes.len(), |n| inside + n + close.len());
            }
            b'"' => {
                k += 1;
                while k < bytes.len() && bytes[k] != b'"' {
                    k += if bytes[k] == b'\\' { 2 } else { 1 };
                }
                k += 1;
            }
            b'\'' => {
                // A character, or else a lifetime.
                let long = at(k + 1) == b'\\';
                let end = text[k + 1..].char_indices().nth(1).map(|(n, _)| k + 1 + n);
                k = match (long, end) {
                    (true, _) => text[k + 3..].find('\'').map_or(bytes.len(), |n| k + 4 + n),
                    (false, Some(end)) if at(end) == b'\'' => end + 1,
                    _ => k + 1 + text[k + 1..].bytes().take_while(|b| is_part(*b)).count(),
                };
            }
            b if is_part(b) => {
                k += text[k..].bytes().take_while(|b| is_part(*b)).count();
                out.push((text[start..k].to_string(), line));
            }
            b':' if at(k + 1) == b':' => {
                k += 2;
                out.push(("::".to_string(), line));
            }
            b => {
                k += 1;
                if b.is_ascii_punctuation() {
                    out.push((char::from(b).to_string(), line));
                }
            }
        }
        line += text.as_bytes()[start..k.min(bytes.len())].iter().filter(|b| **b == b'\n').count();
    }
    out
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_name(word: &str) -> bool {
    word.bytes().all(is_part) && !word.is_empty() && !word.as_bytes()[0].is_ascii_digit()
}

/// The place behind the group that opens at `k` or later.
fn group_end(tokens: &[(String, usize)], k: usize) -> usize {
    let mut depth = 0usize;
    for (i, (token, _)) in tokens.iter().enumerate().skip(k) {
        match token.as_str() {
            ";" if depth == 0 => return i + 1,
            "{" => depth += 1,
            "}" if depth == 1 => return i + 1,
            "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Paths that a use declaration names, each with the name that it has here; a glob stands for the module.
fn leaves(tokens: &[(String, usize)], prefix: &[String]) -> Vec<(Module, String)> {
    let mut path = prefix.to_vec();
    let mut k = 0;
    while k < tokens.len() {
        match tokens[k].0.as_str() {
            "{" => {
                let (mut out, mut depth, mut begin) = (Vec::new(), 0, k + 1);
                for i in k + 1..tokens.len() {
                    let token = tokens[i].0.as_str();
                    if depth == 0 && (token == "," || token == "}") {
                        out.extend(leaves(&tokens[begin..i], &path));
                        begin = i + 1;
                    }
                    depth += i32::from(token == "{") - i32::from(token == "}");
                }
                return out;
            }
            "as" => return vec![(path, tokens[k + 1].0.clone())],
            "*" => return vec![(path, "*".into())],
            "self" if !path.is_empty() => {}
            "::" => {}
            name => path.push(name.into()),
        }
        k += 1;
    }
    match path.last().cloned() {
        Some(name) if path.len() > prefix.len() || tokens.first().is_some_and(|(t, _)| t == "self") => {
            vec![(path, name)]
        }
        _ => Vec::new(),
    }
}

fn module_of(file: &str) -> Module {
    let parts = file.trim_end_matches(".rs").split('/').map(String::from);
    let parts: Module = parts.collect();
    match parts.last().map(String::as_str) {
        Some("mod" | "lib") => parts[..parts.len() - 1].to_vec(),
        _ => parts,
    }
}

/// The place of a module in the order.
fn place(module: &[String]) -> Option<usize> {
    let path = module.join("/");
    let within = |own: &str| path == own || path.strip_prefix(own).is_some_and(|rest| rest.starts_with('/'));
    let places = ORDER.iter().enumerate().filter(|(_, own)| within(own));
    places.max_by_key(|(_, own)| own.len()).map(|(place, _)| place)
}

fn sources() -> Crate {
    Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn modules_import_downwards_only() {
    let sources = sources();
    let mut found = Vec::new();
    for (module, source) in sources.0.iter().filter(|(module, _)| !module.is_empty()) {
        if place(module).is_none() {
            found.push(format!("{}: it is in no module of the order: add it to the list", source.file));
        }
    }
    for (module, line, to) in sources.imports() {
        if let (Some(own), Some(other)) = (sources.place(module), sources.place(&to))
            && other > own
        {
            let file = &sources.0[module].file;
            found.push(format!(
                "{file}:{line}: `{}` imports from `{}`, which is above it",
                ORDER[own], ORDER[other]
            ));
        }
    }
    assert!(sources.0.len() > 100 && sources.imports().len() > 1000, "the sources are not read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A guide may name the files of its folder.
#[test]
fn import_cycles_are_small() {
    let sources = sources();
    let mut below: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, _, to) in sources.imports() {
        if !to.starts_with(module) {
            below.entry(module).or_default().insert(to);
        }
    }
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            open.extend(
                below.get(&next).into_iter().flatten().filter(|to| seen.insert((*to).clone())).cloned(),
            );
        }
        seen
    };
    let all: BTreeMap<&Module, BTreeSet<Module>> =
        sources.0.keys().map(|module| (module, reached(module))).collect();
    for (module, seen) in &all {
        let cycle: Vec<String> =
            seen.iter().filter(|to| all[to].contains(*module)).map(|to| to.join("/")).collect();
        assert!(cycle.len() <= LARGEST_CYCLE, "files that import each other: {}", cycle.join(", "));
    }
}

#[test]
fn architecture_has_the_same_order() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md")).unwrap();
    let listed: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("Modules of `models`"))
        .skip(1)
        .skip_while(|line| line.is_empty())
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(listed, ORDER);
}

#[test]
fn names_are_followed_to_the_file_that_defines_them() {
    let text = "use crate::a::{self, b::{C, D as E}};\nuse super::f;\nfn g<'a>(x: &'a str) -> char {\n    // h::i\n    a::j(\"k::l\", 'm');\n    E::n()\n}\n#[cfg(test)]\nmod tests {\n    use crate::o::P;\n}\n";
    let files = [
        ("q/r.rs", text),
        ("a/mod.rs", "pub(crate) use b::C;\npub(crate) use crate::s::j;\n"),
        ("a/b.rs", "pub(crate) struct C;\npub(crate) use crate::s::D;\n"),
        ("s.rs", "pub(crate) fn j() {}\npub(crate) enum D {}\n"),
        ("q/f.rs", ""),
        ("q/mod.rs", "mod f;\nmod r;\n"),
        ("lib.rs", "mod a;\nmod o;\nmod q;\nmod s;\n"),
        ("o.rs", "pub(crate) struct P;\n"),
    ];
    let read = Crate(files.iter().map(|(file, text)| (module_of(file), Source::parse(file, text))).collect());
    let of_r = read.imports().into_iter().filter(|(module, _, _)| module.join("/") == "q/r");
    let mut found: Vec<(usize, String)> = of_r.map(|(_, line, to)| (line, to.join("/"))).collect();
    found.sort();
    let expected = [(1, "a"), (1, "a/b"), (1, "s"), (2, "q/f"), (5, "s"), (6, "s")];
    assert_eq!(found, expected.map(|(line, to)| (line, to.to_string())));
}
