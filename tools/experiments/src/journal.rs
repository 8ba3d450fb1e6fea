//! Finished parts of a run on disk, so that hours of work survive an interruption.

use super::error::{ExperimentError, Result};
use posterior_data::{DataError, open_regular, replace_atomically, to_shown_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One finished part.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// Everything that its result depends on.
    key: String,
    value: Value,
}

/// Results of finished parts by what they depend on; one line of JSON each.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    path: Option<PathBuf>,
    known: HashMap<String, Value>,
    /// Parts that were found and not computed.
    pub(crate) reused: usize,
}

impl Journal {
    /// The journal of a file, which need not exist yet. Lines that cannot be read (a process was killed while it wrote one) are forgotten and their
    /// parts computed again. `fresh` forgets everything.
    pub(crate) fn open(path: &Path, fresh: bool) -> Result<Self> {
        let mut known = HashMap::new();
        if path.exists() && !fresh {
            let text =
                std::fs::read(path).map_err(|source| ExperimentError::Read { path: path.into(), source })?;
            let lines = text.split(|byte| *byte == b'\n');
            known.extend(
                lines
                    .filter_map(|line| serde_json::from_slice::<Entry>(line).ok())
                    .map(|entry| (entry.key, entry.value)),
            );
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| ExperimentError::Create { path: folder.into(), source })?;
        }
        let journal = Self { path: Some(path.into()), known, reused: 0 };
        journal.rewrite(path)?;
        Ok(journal)
    }

    /// Leaves whole lines only, so that the next one has a line of its own.
    fn rewrite(&self, path: &Path) -> Result<()> {
        replace_atomically(path, |file| {
            for (key, value) in &self.known {
                serde_json::to_writer(&mut *file, &Entry { key: key.clone(), value: value.clone() })?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })
        .map_err(DataError::from)?;
        Ok(())
    }

    /// What was found under this key, if it has the right form.
    pub(crate) fn find<V: DeserializeOwned>(&mut self, key: &str) -> Option<V> {
        let value = serde_json::from_value(self.known.get(key)?.clone()).ok()?;
        self.reused += 1;
        Some(value)
    }

    /// How many parts have keys that begin so.
    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.known.keys().filter(|key| key.starts_with(prefix)).count()
    }

    /// Keeps a result, on disk at once where there is a file.
    pub(crate) fn keep<V: Serialize>(&mut self, key: String, value: &V) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        // A number that is not finite stays one: read as a number again it is no result, and the part is computed again.
        let value = to_shown_value(value).unwrap_or_default();
        let entry = Entry { key, value };
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        line.push(b'\n');
        let append = || {
            let mut file = open_regular(path, std::fs::OpenOptions::new().append(true).create(true))?;
            file.write_all(&line)?;
            file.sync_data()
        };
        append().map_err(|source| ExperimentError::Create { path: path.clone(), source })?;
        self.known.insert(entry.key, entry.value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_survive_and_torn_lines_do_not_hurt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper").join("finished.jsonl");
        let mut journal = Journal::open(&path, false).unwrap();
        assert_eq!(journal.find::<Vec<f64>>("a"), None);
        journal.keep("a".into(), &vec![1.5, 2.0]).unwrap();
        journal.keep("b".into(), &"text").unwrap();
        // A process is killed in the middle of a line.
        let mut text = std::fs::read(&path).unwrap();
        text.extend(br#"{"key":"c","val"#);
        std::fs::write(&path, &text).unwrap();
        let mut journal = Journal::open(&path, false).unwrap();
        assert_eq!(journal.find::<Vec<f64>>("a"), Some(vec![1.5, 2.0]));
        assert_eq!(journal.find::<Vec<f64>>("b"), None, "another form is no result");
        assert_eq!((journal.find::<f64>("c"), journal.reused), (None, 1));
        journal.keep("c".into(), &3.0).unwrap();
        let mut journal = Journal::open(&path, false).unwrap();
        assert_eq!(journal.find::<f64>("c"), Some(3.0));
        assert_eq!(Journal::open(&path, true).unwrap().find::<f64>("c"), None);
    }
}
