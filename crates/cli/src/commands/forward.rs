//! `posterior forward`

use super::remarks;
use crate::args::{Cli, ForwardArgs, PrecisionArg};
use crate::output::{Failure, check_outputs, print_json, set_threads};
use posterior::data::{OutputKind, ReadOptions, read_images, write_npy};
use posterior::network::{Strip, forward, open_network};
use posterior::networks::Precision;
use serde::Serialize;
use std::time::Instant;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    format: &'static str,
    shape: Vec<usize>,
    precision: &'static str,
    seconds: f64,
    out: String,
    notes: Vec<String>,
}

pub(crate) fn run(cli: &Cli, arguments: &ForwardArgs) -> Result<(), Failure> {
    set_threads(arguments.threads)?;
    let inputs = [&arguments.network, &arguments.data].into_iter().chain(&arguments.architecture);
    check_outputs(&[(Some(arguments.out.as_path()), OutputKind::Array)], inputs, arguments.force)?;
    match arguments.precision {
        PrecisionArg::F32 => run_in::<f32>(cli, arguments, "f32"),
        PrecisionArg::F64 => run_in::<f64>(cli, arguments, "f64"),
    }
}

fn run_in<T: Precision>(cli: &Cli, arguments: &ForwardArgs, precision: &'static str) -> Result<(), Failure> {
    let started = Instant::now();
    let remarks = remarks(cli);
    let strip = if arguments.strip_softmax { Strip::Softmax } else { Strip::Nothing };
    let opened = open_network::<T>(&arguments.network, arguments.architecture.as_deref(), strip)?;
    let reading = ReadOptions { memory_limit: arguments.memory };
    let data = read_images(&arguments.data, &reading)?;
    let forwarded = forward(&opened, &data)?;
    write_npy(&arguments.out, &forwarded.outputs)?;
    let notes: Vec<String> = opened.notes.into_iter().chain(forwarded.notes).collect();
    let report = Report {
        format: opened.format,
        shape: forwarded.outputs.shape().to_vec(),
        precision,
        seconds: started.elapsed().as_secs_f64(),
        out: arguments.out.display().to_string(),
        notes,
    };
    report.notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
    remarks.say(format!("outputs of shape {:?} written to {}", report.shape, report.out));
    if cli.json { print_json(&report) } else { Ok(()) }
}
