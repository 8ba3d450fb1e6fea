//! What is printed where: results on standard output, remarks and errors on standard error.

use posterior::data::{Output, OutputKind};
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Something went wrong: status 1.
    pub(crate) fn new(message: String) -> Self {
        Self { message, status: 1 }
    }

    /// The command was not used as it should be: status 2.
    pub(crate) fn usage(message: String) -> Self {
        Self { message, status: 2 }
    }

    pub(crate) fn report(self) -> ExitCode {
        let _ = writeln!(std::io::stderr(), "error: {}", self.message);
        ExitCode::from(self.status)
    }
}

/// An error of the library, in its own words.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// Checks before the work that the outputs of a command can be written and destroy nothing; those that were not asked for are None.
pub(crate) fn check_outputs<'a>(
    outputs: &[(Option<&Path>, OutputKind)],
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    force: bool,
) -> Result<(), Failure> {
    let outputs: Vec<Output<'_>> =
        outputs.iter().filter_map(|(path, kind)| path.map(|path| Output { path, kind: *kind })).collect();
    let inputs: Vec<&Path> = inputs.into_iter().map(PathBuf::as_path).collect();
    Ok(posterior::data::check_outputs(&outputs, &inputs, force)?)
}

/// Remarks for people, unless they asked for silence or for JSON.
#[derive(Clone, Copy)]
pub(crate) struct Remarks {
    pub silent: bool,
}

impl Remarks {
    pub(crate) fn say(self, text: impl Display) {
        if !self.silent {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(serde_json::to_string_pretty(value)?)
}

/// Events of the library go to standard error when `POSTERIOR_LOG` names a level (error, warn, info, debug, trace).
pub(crate) fn init_tracing(quiet: bool) {
    let level = std::env::var("POSTERIOR_LOG").ok().and_then(|v| v.parse::<tracing::Level>().ok());
    if let (Some(level), false) = (level, quiet) {
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).json().init();
    }
}

/// A pool with the given number of threads for everything that follows.
pub(crate) fn set_threads(threads: Option<usize>) -> Result<(), Failure> {
    match threads {
        Some(0) => Err(Failure::usage("--threads must be at least 1".into())),
        Some(count) => rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .build_global()
            .map_err(|e| Failure::new(format!("cannot start {count} threads: {e}"))),
        None => Ok(()),
    }
}

/// Columns of text, the first left-aligned and the others right-aligned.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |j: usize| rows.iter().filter_map(|r| r.get(j)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(j, cell)| {
            let pad = " ".repeat(widths[j] - cell.chars().count());
            if j == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Four significant digits, without exponent where it can be avoided.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - magnitude.log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (value, text) in
            [(0.0, "0"), (1234.5678, "1235"), (0.012345, "0.01235"), (-3.5, "-3.500"), (1e-9, "1.000e-9")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn tables_align() {
        let rows = vec![vec!["a".to_string(), "10".to_string()], vec!["long".to_string(), "2".to_string()]];
        assert_eq!(table(&rows), "a     10\nlong   2");
    }
}
