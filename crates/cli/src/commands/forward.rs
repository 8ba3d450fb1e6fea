//! `posterior forward`

use super::remarks;
use crate::args::{Cli, ForwardArgs, PrecisionArg};
use crate::output::{Failure, check_outputs, print_json, set_threads};
use posterior::data::{
    Column, ImageSet, NumericArray, OutputKind, ReadOptions, Table, json, write_npy, write_table,
};
use posterior::network::{NetworkFile, Strip, features, forward, is_table, open_network, read_examples};
use posterior::networks::Precision;
use posterior::notes::fixes::FORWARD_TABLE;
use std::time::Instant;

pub(crate) fn run(cli: &Cli, arguments: &ForwardArgs) -> Result<(), Failure> {
    set_threads(arguments.threads.count)?;
    let (_, data) = arguments.inputs.files(arguments.data.as_slice());
    let inputs = [&arguments.network].into_iter().chain(&data).chain(&arguments.architecture);
    let inputs = inputs.chain(&arguments.labels);
    let kind = if is_table(&arguments.out) { OutputKind::Table } else { OutputKind::Array };
    check_outputs(&[(Some(arguments.out.as_path()), kind)], inputs, arguments.force)?;
    if arguments.labels.is_some() && kind == OutputKind::Array {
        let problem = format!("--labels are a column of a table: give {FORWARD_TABLE}, .tsv or .parquet");
        return Err(Failure::usage(problem));
    }
    match arguments.precision {
        PrecisionArg::F32 => run_in::<f32>(cli, arguments, "f32"),
        PrecisionArg::F64 => run_in::<f64>(cli, arguments, "f64"),
    }
}

fn run_in<T: Precision>(cli: &Cli, arguments: &ForwardArgs, precision: &'static str) -> Result<(), Failure> {
    let started = Instant::now();
    let remarks = remarks(cli);
    let strip = if arguments.strip_softmax { Strip::Softmax } else { Strip::Nothing };
    let file = NetworkFile {
        path: &arguments.network,
        architecture: arguments.architecture.as_deref(),
        output: arguments.onnx_output.as_deref(),
        strip,
    };
    let opened = open_network::<T>(&file)?;
    let reading = ReadOptions::limited(arguments.memory);
    let (names, data) = arguments.inputs.files(arguments.data.as_slice());
    let ImageSet { images, labels } =
        read_examples(&opened.inputs, (&names, &data), arguments.labels.as_slice(), &reading)?;
    let (name, forwarded) = match arguments.features {
        true => ("feature", features(&opened, &images)?),
        false => ("output", forward(&opened, &images)?),
    };
    if is_table(&arguments.out) {
        write_table(&table(arguments, name, &forwarded.outputs, labels), &arguments.out)?;
    } else {
        write_npy(&arguments.out, &forwarded.outputs)?;
    }
    let notes: Vec<String> = opened.notes.iter().chain(&forwarded.notes).cloned().collect();
    remarks.notes(&notes);
    let (shape, out) = (forwarded.outputs.shape(), arguments.out.display().to_string());
    remarks.say(format!("{name}s of shape {shape:?} written to {out}"));
    if !cli.json {
        return Ok(());
    }
    print_json(&json!({
        "format": opened.format,
        "shape": shape,
        "precision": precision,
        "seconds": started.elapsed().as_secs_f64(),
        "out": out,
        "notes": notes,
    }))
}

/// A row for each example: its numbers and, where it has one, its label.
fn table(arguments: &ForwardArgs, names: &str, values: &NumericArray, labels: Option<Vec<u32>>) -> Table {
    let (rows, width) = (values.examples(), values.example_shape().iter().product::<usize>());
    let numbers = values.to_f64();
    let column = |j: usize| {
        let own = (0..rows).map(|i| numbers[i * width + j]).collect();
        Column::numeric(format!("{names}_{}", j + 1), own)
    };
    let labels = labels.map(|labels| Column::numeric("label", labels.into_iter().map(f64::from).collect()));
    Table::new(arguments.network.clone(), (0..width).map(column).chain(labels).collect())
}
