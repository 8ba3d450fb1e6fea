//! `posterior completions`

use crate::args::{Cli, CompletionsArgs};
use crate::output::{Failure, print, print_json};
use clap::CommandFactory;
use posterior::data::json;

pub(crate) fn run(cli: &Cli, arguments: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "posterior", &mut script);
    let script = String::from_utf8_lossy(&script);
    if cli.json {
        return print_json(&json!({ "shell": arguments.shell.to_string(), "script": script }));
    }
    print(script)
}
