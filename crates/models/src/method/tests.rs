use crate::options::MethodName;
use std::fs;
use std::path::{Path, PathBuf};

/// Sources, and what of them is a method or leads from flags to one.
const SOURCES: [(&str, &[&str]); 3] =
    [("models/src", &["method/", "options/"]), ("cli/src", &["args.rs", "args/"]), ("posterior/src", &[])];

/// What fits of several methods share: it stands in `method`, and is searched all the same.
const SHARED: [&str; 7] = [
    "method/deep/",
    "method/gvi/",
    "method/inference/",
    "method/large/",
    "method/noise/",
    "method/regression.rs",
    "method/training/",
];

/// Parts of lines that are no question about a method, and the files that they stand in.
const EXCEPTIONS: [(&str, &str); 6] = [
    // The choice among methods.
    ("models/src/method/large/choice.rs", "Method::"),
    // A reconstruction's method is another, and no predictor comes of it.
    ("models/src/scans/picture.rs", "Method::"),
    ("cli/src/commands/tomography.rs", "Method::"),
    // Errors, not predictors.
    ("cli/src/config.rs", "error.kind() =="),
    ("cli/src/output.rs", "&error as &dyn std::any::Any"),
    // How well a curvature suits a layer.
    ("cli/src/commands/support.rs", "\"exact\""),
];

/// Whether a line asks which method it is: a variant, its name, or the type of a predictor.
fn asks(line: &str) -> bool {
    let variant = line.match_indices("Method::").any(|(at, found)| {
        let before = line[..at].chars().next_back();
        let after = line[at + found.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.is_some_and(char::is_uppercase)
    });
    let name = ["== MethodName::", "!= MethodName::", ".kind() ==", "downcast"];
    let arm = line.contains("MethodName::") && line.contains(" =>");
    let quoted = |own: &MethodName| line.contains(&format!("\"{own}\""));
    variant || arm || name.iter().any(|part| line.contains(part)) || MethodName::ALL.iter().any(quoted)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    inside.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn nobody_else_asks_which_method_it_is() {
    for line in
        ["Method::Exact(_) => 1,", "if name == MethodName::Cg {", "\"svgp\" => 2,", "x.downcast_ref()"]
    {
        assert!(asks(line), "{line}");
    }
    assert!(!asks("SolveMethod::Direct") && !asks("Method::from(name)") && !asks("MethodName::Exact,"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for (base, own) in SOURCES {
        let base = crates.join(base);
        for path in files(&base) {
            let inside = path.strip_prefix(&base).unwrap().to_str().unwrap().replace('\\', "/");
            let within = |folders: &[&str]| folders.iter().any(|folder| inside.starts_with(folder));
            if (within(own) && !within(&SHARED)) || inside.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // Unit tests stand at the end.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (i, line) in code.lines().enumerate() {
                let excepted = |(file, part): &(&str, &str)| path.ends_with(file) && line.contains(part);
                if !line.trim().starts_with("//") && asks(line) && !EXCEPTIONS.iter().any(excepted) {
                    found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "ask the traits of `method` instead:\n{}", found.join("\n"));
}
