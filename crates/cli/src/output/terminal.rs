//! The one place that writes to standard output and standard error.
//!
//! Column names, cells, classes and paths can hold characters that act on a terminal: they move its cursor, hide text or change its title. A terminal is
//! shown escapes in their place. Files and pipes get standard output byte for byte. Standard error is for people, and always escaped.

use clap::Command;
use clap::builder::{StyledStr, Styles};
use clap::error::{ContextValue, ErrorKind};
use posterior::notes::shown;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, Write, stderr, stdout};

/// Writes to standard output.
pub(crate) fn write_out(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = stdout().lock();
    if out.is_terminal() {
        out.write_all(shown(&String::from_utf8_lossy(bytes)).as_bytes())?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

/// Writes to standard error; where it is closed, nobody can be told.
pub(super) fn write_err(text: &str) {
    let _ = stderr().write_all(shown(text).as_bytes());
}

/// Standard error for a writer of whole lines.
pub(super) struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        write_err(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Prints what clap has to say, and ends the program. Help has clap's colours and no words of the command line. Errors repeat such words, and are plain text.
pub(crate) fn exit(error: clap::Error) -> ! {
    let helps = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if helps.contains(&error.kind()) {
        error.exit();
    }
    let status = error.exit_code();
    // Errors of our own end without a line break.
    write_err(&format!("{}\n", without_colours(error).trim_end()));
    std::process::exit(status)
}

/// The text of an error. All escapes in it come from the command line.
fn without_colours(error: clap::Error) -> String {
    let mut error = error.with_cmd(&Command::new("posterior").styles(Styles::plain()));
    // Some parts were coloured when the error was made.
    let plain = |text: &StyledStr| StyledStr::from(text.to_string());
    let coloured: Vec<_> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::StyledStr(text) => Some((kind, ContextValue::StyledStr(plain(text)))),
            ContextValue::StyledStrs(texts) => {
                Some((kind, ContextValue::StyledStrs(texts.iter().map(plain).collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in coloured {
        error.insert(kind, value);
    }
    error.render().ansi().to_string()
}

/// From here on, panics are told through [`write_err`]: their messages can hold names of a file.
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let trace = Backtrace::capture();
        let told = match trace.status() {
            BacktraceStatus::Captured => format!("stack backtrace:\n{trace}"),
            _ => "note: run with `RUST_BACKTRACE=1` in the environment to see where".into(),
        };
        write_err(&format!("\nthread '{name}' {panic}\n{told}\n"));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, value_parser};

    #[test]
    fn errors_of_the_command_line_have_no_colours_of_ours() {
        let grammar = || {
            let count = Arg::new("count").long("count").value_parser(value_parser!(u8));
            Command::new("posterior").arg(count).arg(Arg::new("kind").long("kind").value_parser(["a", "b"]))
        };
        for words in [["--count", "\u{1b}[31m"], ["--kind", "\u{1b}[31m"], ["--\u{1b}[31m", "x"]] {
            let error =
                grammar().try_get_matches_from(std::iter::once("posterior").chain(words)).unwrap_err();
            let text = without_colours(error);
            assert!(text.starts_with("error: ") && text.contains("\u{1b}[31m"), "{text:?}");
            assert!(!text.replace("\u{1b}[31m", "").contains('\u{1b}'), "{text:?}");
        }
    }
}
