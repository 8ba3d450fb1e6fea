//! Files: reading, listing, and the settings of `--quick`.

use super::kinds::{KINDS, Kind};
use super::{Expectation, ExperimentError, Published};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The experiments of the project: names and texts.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// An experiment as its file describes it, checked: keys that all kinds share; the rest are settings of the kind.
#[derive(Clone, Debug, Deserialize)]
pub struct Experiment {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// The file.
    #[serde(skip)]
    pub path: PathBuf,
    /// Heading.
    pub title: String,
    /// What is reproduced.
    pub source: String,
    /// A sentence or two on what is to be seen.
    #[serde(default)]
    pub description: String,
    /// Which code runs it.
    pub kind: String,
    /// Seeds; numbers are averaged over them.
    #[serde(default = "first_seed")]
    pub seeds: Vec<u64>,
    /// What differs from the source.
    #[serde(default)]
    pub reductions: Vec<String>,
    /// Published numbers.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What should come out.
    #[serde(default, rename = "expect")]
    pub expectations: Vec<Expectation>,
    pub(crate) quick: Option<Table>,
    #[serde(flatten)]
    pub(crate) settings: Table,
}

fn first_seed() -> Vec<u64> {
    vec![0]
}

/// A file that was found in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The file's name without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its title; what is wrong with it if it is no experiment.
    pub title: String,
    /// What it reproduces.
    pub source: String,
    /// Its kind; empty if it is no experiment.
    pub kind: String,
    /// Whether it can be run quickly.
    pub quick: bool,
}

impl Experiment {
    /// Reads and checks a file, or the built-in experiment of this name (with or without `.toml`) where there is no such file. Paths in a file are
    /// counted from its folder, those of a built-in experiment from the current one.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`] if it is neither; otherwise as [`Self::read`].
    pub fn open(path: &Path) -> Result<Self, ExperimentError> {
        if path.exists() && !path.is_dir() {
            return Self::read(path);
        }
        let of = |(name, _): &&(&str, &str)| {
            path == Path::new(name) || path == Path::new(name).with_extension("toml")
        };
        match EMBEDDED.iter().find(of) {
            Some((name, text)) => Self::parse(text, &Path::new(name).with_extension("toml")),
            None => Err(ExperimentError::Unknown { path: path.into() }),
        }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, holds unknown keys, or its settings (quick ones included) are not those of its kind.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ExperimentError::Read { path: path.into(), source })?;
        Self::parse(&text, path)
    }

    /// As [`Self::read`] for a text; `path` names it and says from where its own paths are counted.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ExperimentError> {
        let wrong = |problem: String| ExperimentError::File { path: path.into(), problem };
        let mut experiment: Self = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        experiment.name =
            path.file_stem().map_or_else(|| "experiment".into(), |s| s.to_string_lossy().into_owned());
        experiment.path = path.into();
        if experiment.seeds.is_empty() {
            return Err(wrong("`seeds` is empty: give at least one".into()));
        }
        if let Some(problem) = experiment.expectations.iter().find_map(Expectation::problem) {
            return Err(wrong(format!("expectation {problem}")));
        }
        let kind = experiment.code()?;
        (kind.check)(&experiment.settings).map_err(|e| wrong(e.to_string()))?;
        if experiment.quick.is_some() {
            let (settings, _) = experiment.settings(true)?;
            (kind.check)(&settings).map_err(|e| wrong(format!("with [quick]: {e}")))?;
        }
        Ok(experiment)
    }

    /// Whether it can be run so: a file without `[quick]` has no smaller settings.
    ///
    /// # Errors
    /// [`ExperimentError::File`].
    pub fn can_run(&self, quick: bool) -> Result<(), ExperimentError> {
        self.settings(quick).map(|_| ())
    }

    /// The code that runs it.
    pub(crate) fn code(&self) -> Result<&'static Kind, ExperimentError> {
        KINDS.iter().find(|k| k.name == self.kind).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            ExperimentError::File {
                path: self.path.clone(),
                problem: format!("there is no kind `{}`; there are {}", self.kind, known.join(", ")),
            }
        })
    }

    /// The settings, and what `[quick]` changed in them.
    pub(crate) fn settings(&self, quick: bool) -> Result<(Table, Vec<String>), ExperimentError> {
        let mut settings = self.settings.clone();
        let mut changes = Vec::new();
        if quick {
            let Some(over) = &self.quick else {
                return Err(ExperimentError::File {
                    path: self.path.clone(),
                    problem: "it has no [quick] table: run it without --quick".into(),
                });
            };
            lay_over(&mut settings, over, "", &mut changes);
        }
        Ok((settings, changes))
    }
}

/// Replaces what `over` names, table by table; lists are replaced whole.
fn lay_over(settings: &mut Table, over: &Table, prefix: &str, changes: &mut Vec<String>) {
    for (key, value) in over {
        let name = format!("{prefix}{key}");
        match (settings.get_mut(key), value) {
            (Some(Value::Table(own)), Value::Table(over)) => {
                lay_over(own, over, &format!("{name}."), changes);
            }
            (own, value) => {
                let before = own.map_or_else(|| "the default".into(), |v| v.to_string());
                let list = |v: &Value| v.as_array().is_some_and(|a| a.iter().any(Value::is_table));
                changes.push(match list(value) {
                    true => format!("{name} is another list"),
                    false => format!("{name} = {value} instead of {before}"),
                });
                settings.insert(key.clone(), value.clone());
            }
        }
    }
}

impl Listed {
    fn of(path: PathBuf, found: &Result<Experiment, ExperimentError>) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of =
            |text: fn(&Experiment) -> &str| found.as_ref().map_or_else(|_| String::new(), |e| text(e).into());
        Self {
            title: found.as_ref().map_or_else(ToString::to_string, |e| e.title.clone()),
            source: of(|e| &e.source),
            kind: of(|e| &e.kind),
            quick: found.as_ref().is_ok_and(|e| e.quick.is_some()),
            name,
            path,
        }
    }
}

/// The built-in experiments, by name.
pub fn embedded() -> Vec<Listed> {
    let listed = |(name, text): &(&str, &str)| {
        let path = Path::new(name).with_extension("toml");
        let found = Experiment::parse(text, &path);
        Listed::of(path, &found)
    };
    EMBEDDED.iter().map(listed).collect()
}

/// The experiments of a folder, by name; files ending in `.toml` that are none are listed with what is wrong.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Listed>, ExperimentError> {
    let failed = |source| ExperimentError::Read { path: folder.into(), source };
    let mut listed = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            let found = Experiment::read(&path);
            listed.push(Listed::of(path, &found));
        }
    }
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_settings_replace_and_are_named() {
        let mut settings: Table =
            toml::from_str("[training]\nsteps = 100\nbatch = 5\n[network]\nhidden = [50, 50]").unwrap();
        let over: Table = toml::from_str("training.steps = 10\nnetwork.hidden = [4]\nextra = 1").unwrap();
        let mut changes = Vec::new();
        lay_over(&mut settings, &over, "", &mut changes);
        let expected: Table =
            toml::from_str("extra = 1\n[training]\nsteps = 10\nbatch = 5\n[network]\nhidden = [4]").unwrap();
        assert_eq!(settings, expected);
        assert!(changes.contains(&"training.steps = 10 instead of 100".to_string()), "{changes:?}");
        assert_eq!(changes.len(), 3);
    }
}
