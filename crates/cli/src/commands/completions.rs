//! `posterior completions`

use crate::args::{Cli, CompletionsArgs};
use crate::output::Failure;
use clap::CommandFactory;

pub(crate) fn run(arguments: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "posterior", &mut script);
    crate::output::print(String::from_utf8_lossy(&script))
}
