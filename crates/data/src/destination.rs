//! What a command may write where: the one rule for all outputs, checked before the work.
//!
//! An output is never an input, no two outputs are one file, and a file that is there is replaced only by one of its kind, unless the user insists. That the place
//! can be written to is found out by trying.

use crate::DataError;
use crate::read::split_part_name;
use posterior_notes::fixes::FORCE;
use posterior_store::{Target, directory, temporary};
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Most bytes of a file that are looked at to tell its kind.
const LOOKED_AT: u64 = 64 << 20;

/// The mark of HTML reports, in their head.
pub const REPORT_MARK: &str = "<meta name=\"generator\" content=\"posterior report\"/>";

/// What is written, and so what may be replaced by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// A fitted model.
    Model,
    /// The state of a fit or of a training run.
    Checkpoint,
    /// A trained network with its architecture.
    Network,
    /// A table with predictions (CSV or Parquet), known by their columns.
    Predictions,
    /// An NPY array. The format has no place for a mark: any of them is replaced.
    Array,
    /// A picture: NPY, TIFF or PNG. These formats have no place for a mark either.
    Picture,
    /// An HTML report.
    Report,
    /// The numbers of an experiment, in JSON.
    Results,
    /// The state of a search for the best point, in JSON.
    State,
    /// The state of active learning, in JSON.
    LabelState,
    /// A table that somebody else may have made as well: no file is known to be one, so that none is replaced.
    Table,
    /// The parts of an experiment that are finished, in lines of JSON.
    Journal,
}

impl OutputKind {
    fn name(self) -> &'static str {
        match self {
            Self::Model => "a model of posterior",
            Self::Checkpoint => "a checkpoint of posterior",
            Self::Network => "a network that `posterior train` wrote",
            Self::Predictions => "a table of predictions",
            Self::Array => "an NPY array",
            Self::Picture => "a picture (NPY, TIFF or PNG)",
            Self::Report => "a report of posterior",
            Self::State => "a state of `posterior optimize`",
            Self::LabelState => "a state of `posterior label`",
            Self::Table => "known to be a table that may be replaced",
            Self::Results => "the results of an experiment",
            Self::Journal => "the journal of an experiment",
        }
    }

    /// Whether a file is of this kind. Empty files are of every kind: nothing is lost with them.
    fn is_kind_of(self, path: &Path, found: &Metadata) -> std::io::Result<bool> {
        if found.len() == 0 {
            return Ok(true);
        }
        let begins = |mark: &[u8]| -> std::io::Result<bool> {
            let mut head = Vec::new();
            File::open(path)?.take(mark.len() as u64).read_to_end(&mut head)?;
            Ok(head == mark)
        };
        Ok(match self {
            Self::Array => begins(b"\x93NUMPY")?,
            Self::Picture => {
                let marks: [&[u8]; 4] = [b"\x93NUMPY", b"\x89PNG", b"II*\0", b"MM\0*"];
                marks.iter().map(|mark| begins(mark)).try_fold(false, |any, is| is.map(|is| any || is))?
            }
            Self::Report => {
                let mut head = Vec::new();
                File::open(path)?.take(1 << 12).read_to_end(&mut head)?;
                String::from_utf8_lossy(&head).contains(REPORT_MARK)
            }
            Self::Predictions => column_names(path).iter().any(|name| name.contains("latent_std")),
            Self::Model => {
                let marks = safetensors_metadata(path)?;
                marks.get("posterior").is_some_and(|m| header(m).get("models").is_some())
            }
            Self::Checkpoint => {
                let marks = safetensors_metadata(path)?;
                let is_one =
                    |m: &String| header(m)["method"].as_str().is_some_and(|m| m.ends_with("checkpoint"));
                marks.contains_key("posterior.training") || marks.get("posterior").is_some_and(is_one)
            }
            Self::Network => safetensors_metadata(path)?.contains_key("posterior.architecture"),
            Self::Results => {
                let text = File::open(path)?.take(LOOKED_AT);
                let value = serde_json::from_reader::<_, serde_json::Value>(text).unwrap_or_default();
                ["expectations", "published", "by_seed"].iter().all(|key| value.get(key).is_some())
            }
            Self::State => {
                let text = File::open(path)?.take(LOOKED_AT);
                let value = serde_json::from_reader::<_, serde_json::Value>(text).unwrap_or_default();
                ["format", "space", "settings", "trials"].iter().all(|key| value.get(key).is_some())
            }
            Self::LabelState => {
                let text = File::open(path)?.take(LOOKED_AT);
                let value = serde_json::from_reader::<_, serde_json::Value>(text).unwrap_or_default();
                ["format", "pool", "settings", "questions"].iter().all(|key| value.get(key).is_some())
            }
            Self::Table => false,
            Self::Journal => {
                let mut line = Vec::new();
                BufReader::new(File::open(path)?.take(LOOKED_AT)).read_until(b'\n', &mut line)?;
                let value = serde_json::from_slice::<serde_json::Value>(&line).unwrap_or_default();
                value.get("key").is_some() && value.get("value").is_some()
            }
        })
    }
}

/// One file that a command will write.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// Where.
    pub path: &'a Path,
    /// What.
    pub kind: OutputKind,
}

/// Checks all outputs of a command before its work. Inputs may be named as `FILE.npz:NAME` or `FILE.xlsx:SHEET`; those that do not exist are left to their readers. `force` allows to replace files of other
/// kinds and write-protected ones, but never an input.
///
/// Cost: a hidden file is made and removed in each folder; of files that are there the head is read.
///
/// # Errors
/// [`DataError::Destination`]: an output that is an input or another output, also through links; a file of another kind; a folder in a file's place; a folder that is missing
/// or cannot be written to.
pub fn check_outputs(outputs: &[Output<'_>], inputs: &[&Path], force: bool) -> Result<(), DataError> {
    for (i, output) in outputs.iter().enumerate() {
        let refused = |reason: String| DataError::Destination { path: output.path.into(), reason };
        if let Some(other) = outputs[..i].iter().find(|o| same_file(o.path, output.path)) {
            return Err(refused(format!(
                "{} goes there too; give each output a file of its own",
                other.path.display()
            )));
        }
        if let Some(input) = inputs.iter().find(|i| same_file(&split_part_name(i).0, output.path)) {
            return Err(refused(format!(
                "this command reads that file ({}), and would destroy it; choose another name",
                input.display()
            )));
        }
        check_place(*output, force).map_err(refused)?;
    }
    Ok(())
}

/// Whether the place of an output can be written to and holds nothing else.
fn check_place(output: Output<'_>, force: bool) -> Result<(), String> {
    let at = match Target::of(output.path).map_err(|e| e.to_string())? {
        Target::File(at) => at,
        // Nothing is replaced; opening a pipe would wait for its reader.
        Target::Stream(_) => return Ok(()),
    };
    if let Ok(found) = std::fs::metadata(&at) {
        if found.is_dir() {
            return Err("it is a folder; name a file in it".into());
        }
        let kind = output.kind;
        if !force && !kind.is_kind_of(&at, &found).map_err(|e| e.to_string())? {
            return Err(format!(
                "it exists and is not {}; choose another name, or replace it by {FORCE}",
                kind.name()
            ));
        }
        if !force && found.permissions().readonly() {
            return Err(format!("it is write-protected; choose another name, or replace it by {FORCE}"));
        }
    }
    let folder = directory(&at);
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => return Err(format!("{} is no folder", folder.display())),
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("there is no folder {}; make it first", folder.display()));
        }
        Err(e) => return Err(e.to_string()),
    }
    temporary(folder).map(drop).map_err(|e| {
        let e = e.to_string();
        // Without the made-up name.
        let why = e.split(" at path ").next().unwrap_or(&e);
        format!("no file can be made in {}: {why}", folder.display())
    })
}

/// Whether two paths lead to one file, through whatever links.
fn same_file(a: &Path, b: &Path) -> bool {
    if let (Ok(Target::Stream(_)), _) | (_, Ok(Target::Stream(_))) = (Target::of(a), Target::of(b)) {
        // Several outputs may go to one pipe or to /dev/null.
        return false;
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (std::fs::metadata(a), std::fs::metadata(b)) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    real(a) == real(b)
}

/// The path without links, also of a file that does not exist yet in a folder that does.
fn real(path: &Path) -> PathBuf {
    if let Ok(whole) = std::fs::canonicalize(path) {
        return whole;
    }
    let at = posterior_store::resolved(path).unwrap_or_else(|_| path.into());
    match (std::fs::canonicalize(directory(&at)), at.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => at,
    }
}

/// The names of a table's columns; none where the file is no table.
fn column_names(path: &Path) -> Vec<String> {
    let mut head = [0; 4];
    let is_parquet = File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok() && head == *b"PAR1";
    if is_parquet {
        return crate::stream::column_names(path).unwrap_or_default();
    }
    let mut line = Vec::new();
    let read = File::open(path).map(|f| BufReader::new(f.take(LOOKED_AT)).read_until(b'\n', &mut line));
    if !matches!(read, Ok(Ok(_))) {
        return Vec::new();
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&line[..]);
    let first = reader.records().next().and_then(Result::ok).unwrap_or_default();
    first.iter().map(|name| name.trim().to_string()).collect()
}

/// The metadata of a safetensors file; empty for other files.
fn safetensors_metadata(path: &Path) -> std::io::Result<std::collections::HashMap<String, String>> {
    #[derive(Default, serde::Deserialize)]
    struct Header {
        #[serde(default, rename = "__metadata__")]
        metadata: std::collections::HashMap<String, String>,
    }
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    if file.read_exact(&mut length).is_err() {
        return Ok(Default::default());
    }
    let length = u64::from_le_bytes(length);
    if length > LOOKED_AT {
        return Ok(Default::default());
    }
    let text = BufReader::new(file.take(length));
    Ok(serde_json::from_reader::<_, Header>(text).unwrap_or_default().metadata)
}

/// The header of a model or checkpoint; null where there is none.
fn header(envelope: &str) -> serde_json::Value {
    let mut whole = serde_json::from_str::<serde_json::Value>(envelope).unwrap_or_default();
    whole.get_mut("header").map(serde_json::Value::take).unwrap_or_default()
}
