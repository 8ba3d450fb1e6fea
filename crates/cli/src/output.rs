//! What is printed where: results on standard output, remarks and errors on standard error.

mod terminal;

use posterior::data::{Output, OutputKind};
pub use posterior::text::table;
pub(crate) use posterior::text::{number, table_under};
use serde::Serialize;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use terminal::{Lines, write_err};
pub(crate) use terminal::{exit, tell_panics, write_out};

/// Why a command did not succeed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Something went wrong: status 1.
    pub fn new(message: String) -> Self {
        Self { message, status: 1 }
    }

    /// The command was not used as it should be: status 2.
    pub fn usage(message: String) -> Self {
        Self { message, status: 2 }
    }

    /// Prints it, and returns its exit status.
    pub fn report(self) -> ExitCode {
        write_err(&format!("error: {}\n", self.message));
        ExitCode::from(self.status)
    }
}

/// An error of the library, in its own words; a question that makes no sense is wrong usage.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error_of_model = (&error as &dyn std::any::Any).downcast_ref();
        let usage = error_of_model.is_some_and(posterior::ModelError::is_usage);
        Self { message: error.to_string(), status: if usage { 2 } else { 1 } }
    }
}

/// Checks before the work that the outputs of a command can be written and destroy nothing; those that were not asked for are None.
pub fn check_outputs<'a>(
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
pub struct Remarks {
    /// Whether to print none.
    pub silent: bool,
}

impl Remarks {
    /// Prints a remark on standard error.
    pub fn say(self, text: impl Display) {
        if !self.silent {
            write_err(&format!("{text}\n"));
        }
    }

    /// Prints each as a note.
    pub fn notes<N: Display>(self, notes: impl IntoIterator<Item = N>) {
        notes.into_iter().for_each(|note| self.say(format!("note: {note}")));
    }

    /// Prints each as a warning.
    pub fn warnings<N: Display>(self, warnings: impl IntoIterator<Item = N>) {
        warnings.into_iter().for_each(|warning| self.say(format!("warning: {warning}")));
    }
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
pub fn print(text: impl Display) -> Result<(), Failure> {
    print_bytes(format!("{text}\n").as_bytes())
}

/// [`print()`] of lines that are bytes already.
pub(crate) fn print_bytes(lines: &[u8]) -> Result<(), Failure> {
    match write_out(lines) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document, in which numbers that are not finite are texts.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(&posterior::data::to_shown_value(value)?)?;
    text.push('\n');
    print_bytes(text.as_bytes())
}

/// Events of the library go to standard error when `POSTERIOR_LOG` names a level (error, warn, info, debug, trace).
pub fn init_tracing(quiet: bool) {
    let level = std::env::var("POSTERIOR_LOG").ok().and_then(|v| v.parse::<tracing::Level>().ok());
    if let (Some(level), false) = (level, quiet) {
        tracing_subscriber::fmt().with_max_level(level).with_writer(|| Lines).json().init();
    }
}

/// A pool with the given number of threads (all of the machine's without one) for everything that follows. This thread is one of them: handing work over and waiting for it would take longer than many a step.
pub fn set_threads(threads: Option<usize>) -> Result<(), Failure> {
    // 0 is the builder's word for all.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).use_current_thread();
    pool.build_global()
        .map_err(|e| Failure::new(format!("cannot start the threads: {e}; --threads asks for fewer")))
}
