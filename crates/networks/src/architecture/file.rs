//! Architecture files: TOML with errors that point at line and column.

use super::Architecture;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Bytes of an architecture file at most.
const LONGEST: u64 = 1 << 24;

/// An architecture file that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchitectureError {
    /// The file cannot be read.
    #[error("cannot read the architecture {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is far too long.
    #[error("{} is longer than {LONGEST} bytes: that is no architecture file", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The text is not an architecture.
    #[error("{}line {line}, column {column}: {problem}", place(origin.as_deref()))]
    Text {
        /// The file, where the text comes from one.
        origin: Option<PathBuf>,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A number that TOML cannot hold.
    #[error("the architecture cannot be written as TOML: {problem}")]
    Unwritable {
        /// What is wrong.
        problem: String,
    },
}

fn place(origin: Option<&Path>) -> String {
    origin.map_or_else(|| "architecture: ".into(), |path| format!("{}: ", path.display()))
}

/// Line and column, from 1, of a byte of a text.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (line, before[start..].chars().count() + 1)
}

impl Architecture {
    /// Reads an architecture from a TOML text. Only the text is checked: [`Self::graph`] says whether the layers fit.
    ///
    /// # Errors
    /// [`ArchitectureError::Text`] with line and column.
    pub fn from_toml(text: &str) -> Result<Self, ArchitectureError> {
        let at = |byte: usize, problem: String| {
            let (line, column) = position(text, byte);
            ArchitectureError::Text { origin: None, line, column, problem }
        };
        let wrong = |e: toml::de::Error| at(e.span().map_or(0, |span| span.start), e.message().to_string());
        let mut table = toml::de::DeTable::parse(text).map_err(wrong)?;
        let mut expected = String::from("expected one of");
        for kind in Self::KINDS {
            let _ = write!(expected, " \"{kind}\",");
        }
        expected.pop();
        let kind =
            table.get_mut().remove("kind").ok_or_else(|| at(0, format!("`kind` is missing; {expected}")))?;
        let start = kind.span().start;
        let kind =
            kind.get_ref().as_str().ok_or_else(|| at(start, format!("`kind` is not a text; {expected}")))?;
        Self::from_settings(kind, toml::Deserializer::from(table))
            .ok_or_else(|| at(start, format!("there is no kind \"{kind}\"; {expected}")))?
            .map_err(wrong)
    }

    /// Reads an architecture file.
    ///
    /// # Errors
    /// [`ArchitectureError`] with the file, line and column.
    pub fn read(path: &Path) -> Result<Self, ArchitectureError> {
        let failed = |source| ArchitectureError::Read { path: path.into(), source };
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
            .map_err(failed)?;
        if text.len() as u64 > LONGEST {
            return Err(ArchitectureError::TooLong { path: path.into() });
        }
        Self::from_toml(&text).map_err(|error| match error {
            ArchitectureError::Text { line, column, problem, .. } => {
                ArchitectureError::Text { origin: Some(path.into()), line, column, problem }
            }
            other => other,
        })
    }

    /// As TOML, which reads back to the same architecture.
    ///
    /// # Errors
    /// [`ArchitectureError::Unwritable`] for numbers beyond TOML's 64-bit integers.
    pub fn to_toml(&self) -> Result<String, ArchitectureError> {
        toml::to_string(self).map_err(|e| ArchitectureError::Unwritable { problem: e.to_string() })
    }
}
