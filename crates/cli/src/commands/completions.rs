//! `posterior completions`

use crate::args::{Cli, CompletionsArgs};
use crate::output::{Failure, print, print_json};
use clap::CommandFactory;
use serde::Serialize;
use std::borrow::Cow;

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    shell: String,
    script: Cow<'a, str>,
}

pub(crate) fn run(cli: &Cli, arguments: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "posterior", &mut script);
    let script = String::from_utf8_lossy(&script);
    if cli.json {
        return print_json(&Output { shell: arguments.shell.to_string(), script });
    }
    print(script)
}
