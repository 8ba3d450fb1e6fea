//! Where predictions go: each batch is added and kept before the state counts its rows.

use crate::args::StreamArgs;
use crate::output::{Failure, write_out};
use posterior::data::{CsvOptions, Table, lines_of, open_regular, resolved};
use posterior::models::{StreamOutput, StreamState};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Whether a file gets objects of JSON in place of CSV.
pub(super) fn takes_objects(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    [".jsonl", ".ndjson"].iter().any(|end| name.ends_with(end))
}

pub(super) enum Destination {
    /// A file, open at the end of what is counted.
    File { file: File, path: PathBuf, objects: bool, csv: CsvOptions },
    /// Standard output, whose header is written first.
    Standard { header: bool, csv: CsvOptions },
}

impl Destination {
    /// Opens it, without what is not counted.
    pub(super) fn open(arguments: &StreamArgs, stream: &mut StreamState) -> Result<Self, Failure> {
        let Some(path) = &arguments.out else {
            stream.output = None;
            return Ok(Self::Standard { header: true, csv: arguments.csv });
        };
        let failed = |e: std::io::Error| Failure::new(format!("cannot write to {}: {e}", path.display()));
        let inputs = [Some(&arguments.state), arguments.data.as_ref(), arguments.model.as_ref()];
        let own = std::fs::canonicalize(path).ok();
        let same = |input: &PathBuf| own.is_some() && std::fs::canonicalize(input).ok() == own;
        if inputs.into_iter().flatten().any(same) {
            return Err(Failure::usage(format!(
                "{} is read by this command, and predictions would destroy it; choose another --output",
                path.display()
            )));
        }
        // What it leads to, and nothing that has come in its place since.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let mut file = resolved(path).and_then(|at| open_regular(&at, &options)).map_err(failed)?;
        let absolute = std::fs::canonicalize(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let known =
            stream.output.as_ref().filter(|output| output.file == absolute).map(|output| output.bytes);
        let bytes = match known {
            Some(bytes) if bytes > length => {
                return Err(Failure::new(format!(
                    "{} has {length} bytes, and {bytes} were written before: what is missing cannot be written again; choose another --output",
                    path.display()
                )));
            }
            Some(bytes) => bytes,
            None if length > 0 => {
                return Err(Failure::new(format!(
                    "{} exists and was not written by this stream; choose another --output, or remove it",
                    path.display()
                )));
            }
            None => 0,
        };
        file.set_len(bytes).map_err(failed)?;
        file.seek(SeekFrom::Start(bytes)).map_err(failed)?;
        let objects = takes_objects(path);
        stream.output = Some(StreamOutput { file: absolute, bytes });
        Ok(Self::File { file, path: path.clone(), objects, csv: arguments.csv })
    }

    /// Adds the predictions of a batch, for good.
    pub(super) fn add(&mut self, rows: Option<&Table>, stream: &mut StreamState) -> Result<(), Failure> {
        let Some(rows) = rows else { return Ok(()) };
        match self {
            Self::File { file, path, objects, csv } => {
                let failed =
                    |e: std::io::Error| Failure::new(format!("cannot write to {}: {e}", path.display()));
                let Some(output) = &mut stream.output else { return Ok(()) };
                let bytes = lines_of(rows, *csv, output.bytes == 0, *objects);
                file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(failed)?;
                output.bytes += bytes.len() as u64;
            }
            Self::Standard { header, csv } => {
                let bytes = lines_of(rows, *csv, std::mem::take(header), false);
                write_out(&bytes).map_err(|e| {
                    Failure::new(format!(
                        "cannot write to standard output: {e}; the rows of this batch are not counted"
                    ))
                })?;
            }
        }
        Ok(())
    }
}
