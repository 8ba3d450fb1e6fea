//! `posterior man`: manual pages, made of the grammar.

use super::remarks;
use crate::args::{Cli, ManArgs};
use crate::grammar;
use crate::output::{Failure, print_bytes, print_json};
use clap::Command;
use clap_mangen::Man;
use posterior::data::{create_atomically, json};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(cli: &Cli, arguments: &ManArgs) -> Result<(), Failure> {
    let mut grammar = grammar().disable_help_subcommand(true);
    grammar.build();
    let Some(folder) = &arguments.out else {
        let page = page(&grammar)?;
        if cli.json {
            return print_json(&json!({ "page": String::from_utf8_lossy(&page) }));
        }
        return print_bytes(&page);
    };
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::new(format!("cannot create the folder {}: {e}", folder.display())))?;
    let mut files = Vec::new();
    write(&grammar, folder, &mut files)?;
    if cli.json {
        return print_json(&json!({ "out": folder, "files": files }));
    }
    remarks(cli).say(format!("{} manual pages written to {}", files.len(), folder.display()));
    Ok(())
}

/// The page of a command, in roff.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Writes the page of a command, and those of the commands below it.
fn write(command: &Command, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let page = page(command)?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    create_atomically(&path, |out| out.write_all(&page))?;
    files.push(path);
    command.get_subcommands().try_for_each(|below| write(below, folder, files))
}
