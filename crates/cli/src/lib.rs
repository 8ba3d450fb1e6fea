//! The `posterior` binary: arguments, progress, output, exit codes; nothing is computed here.
//!
//! It is a library for two reasons: tests read its [`grammar`], and the experiments' program shares [`output`], [`progress`] and
//! [`interrupt`]. `main.rs` only calls [`main`].

mod args;
mod commands;
mod config;
mod held_out;
pub mod interrupt;
mod laplace_effects;
mod laplace_searches;
mod laplace_settings;
pub mod output;
pub mod progress;
mod settings;

use args::Command;
use output::Failure;
use std::process::ExitCode;

/// Every command with its flags, as clap knows them.
pub fn grammar() -> clap::Command {
    config::grammar(None)
}

/// The grammar of a command line, of which `fit` has several: that which its flags ask for. Settings are flags called `set NAME` in it.
pub fn grammar_of<W: AsRef<std::ffi::OsStr>>(words: &[W]) -> clap::Command {
    config::grammar_of(words)
}

/// A command line by its grammar.
///
/// # Errors
/// What is wrong with it.
pub fn matches_of(words: &[&str]) -> Result<clap::ArgMatches, clap::Error> {
    let words = config::joined(words.iter().map(std::ffi::OsString::from));
    grammar_of(&words).try_get_matches_from(words)
}

/// Reads the command line, runs the command, and returns the exit status: 0 success, 1 failure, 2 wrong usage.
pub fn main() -> ExitCode {
    output::tell_panics();
    posterior::linalg::freed::keep_freed_memory();
    run().map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

fn run() -> Result<(), Failure> {
    let cli = &config::parse(std::env::args_os().collect())?;
    output::init_tracing(cli.quiet);
    match &cli.command {
        Command::Demo(arguments) => commands::demo::run(cli, arguments),
        Command::Fit(arguments) => commands::fit::run(cli, arguments),
        Command::Predict(arguments) => commands::predict::run(cli, arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(cli, arguments),
        Command::Compress(arguments) => commands::compress::run(cli, arguments),
        Command::Train(arguments) => commands::train::run(cli, arguments),
        Command::Forward(arguments) => commands::forward::run(cli, arguments),
        Command::Inspect(arguments) => commands::inspect::run(cli, arguments),
        Command::Optimize(command) => commands::optimize::run(cli, command),
        Command::Label(command) => commands::label::run(cli, command),
        Command::Stream(arguments) => commands::stream::run(cli, arguments),
        Command::Tomography(command) => commands::tomography::run(cli, command),
        Command::Methods(arguments) => commands::methods::run(cli, arguments),
        Command::Completions(arguments) => commands::completions::run(cli, arguments),
        Command::Man(arguments) => commands::man::run(cli, arguments),
    }
}
