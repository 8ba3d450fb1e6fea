//! `posterior completions`

use crate::args::{Cli, CompletionsArgs};
use crate::grammar;
use crate::output::{Failure, print, print_json};
use clap::Command;
use posterior::data::json;

pub(crate) fn run(cli: &Cli, arguments: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(&grammar()), "posterior", &mut script);
    let script = String::from_utf8_lossy(&script);
    if cli.json {
        return print_json(&json!({ "shell": arguments.shell.to_string(), "script": script }));
    }
    print(script)
}

/// A command with what help shows of it: shells would take the names of settings for words of their own.
fn shown(command: &Command) -> Command {
    // Names live as long as the grammar, which lives as long as the program.
    let kept = |text: &str| -> &'static str { String::leak(text.into()) };
    let mut own = Command::new(kept(command.get_name()))
        .args(command.get_arguments().filter(|flag| !flag.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().map(shown));
    if let Some(about) = command.get_about() {
        own = own.about(about.clone());
    }
    match command.get_version() {
        Some(version) => own.version(kept(version)),
        None => own,
    }
}
