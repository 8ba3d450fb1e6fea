//! The command line: arguments, progress, output, exit codes.

use super::args::{Cli, Command, RunArgs};
use super::{Experiment, Outcome, RunOptions, Written, embedded, list};
use clap::{CommandFactory, Parser};
use posterior_cli::interrupt::Interrupt;
use posterior_cli::output::{
    Failure, Remarks, check_outputs, init_tracing, print, print_json, set_threads, table,
};
use posterior_cli::progress::Bar;
use posterior_data::OutputKind;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Every command with its flags, as clap knows them.
pub fn grammar() -> clap::Command {
    Cli::command()
}

/// Reads the command line, runs the command, and returns the exit status: 0 success, 1 failure, 2 wrong usage.
pub fn main() -> ExitCode {
    posterior_linalg::freed::keep_freed_memory();
    let cli = Cli::parse();
    init_tracing(cli.quiet);
    let done = match &cli.command {
        Command::Run(arguments) => run_all(&cli, arguments),
        Command::List { folder } => list_all(&cli, folder.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// An experiment that was read and checked, with the folder of its results.
struct Ready {
    experiment: Experiment,
    out: PathBuf,
}

impl Ready {
    /// Reads the files and finds out whether all can be run as asked for and written, before the first is run.
    fn all(arguments: &RunArgs) -> Result<Vec<Self>, Failure> {
        let several = arguments.files.len() > 1;
        let mut all: Vec<Self> = Vec::new();
        for file in &arguments.files {
            let experiment = Experiment::open(file)?;
            experiment.can_run(arguments.quick)?;
            let name = &experiment.name;
            let out = match &arguments.output {
                Some(folder) if several => folder.join(name),
                Some(folder) => folder.clone(),
                None => Path::new("experiment-results").join(name),
            };
            if let Some(other) = all.iter().find(|other| other.out == out) {
                return Err(Failure::usage(format!(
                    "{} and {} would both write to {}: give each file once, and files of one name in runs of their own",
                    other.experiment.path.display(),
                    file.display(),
                    out.display()
                )));
            }
            all.push(Self { experiment, out });
        }
        for one in &all {
            one.check_outputs(arguments)?;
        }
        Ok(all)
    }

    fn journal(&self) -> PathBuf {
        self.out.join("finished.jsonl")
    }

    fn check_outputs(&self, arguments: &RunArgs) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.out)
            .map_err(|e| Failure::new(format!("the folder {} cannot be made: {e}", self.out.display())))?;
        let files = [
            (self.out.join("report.html"), OutputKind::Report),
            (self.out.join("results.json"), OutputKind::Results),
            (self.journal(), OutputKind::Journal),
        ];
        let outputs = files.each_ref().map(|(path, kind)| (Some(path.as_path()), *kind));
        check_outputs(&outputs, &arguments.files, arguments.force)
    }
}

/// What `--json` prints of one experiment: the results without the curves, which are in the file.
fn output((outcome, files): &(Outcome, Written)) -> Value {
    json!({
        "name": outcome.name,
        "title": outcome.title,
        "quick": outcome.quick,
        "seeds": outcome.seeds,
        "seconds": outcome.seconds,
        "reused": outcome.reused,
        "holds": outcome.holds(),
        "reductions": outcome.reductions,
        "expectations": outcome.expectations,
        "published": outcome.published,
        "mean": outcome.mean,
        "standard_error": outcome.standard_error,
        "report": files.report,
        "results": files.results,
    })
}

/// Runs them one after the other. The first that fails ends the run: what finished before is written, and the same command finds it there.
fn run_all(cli: &Cli, arguments: &RunArgs) -> Result<(), Failure> {
    set_threads(arguments.threads)?;
    let all = Ready::all(arguments)?;
    let remarks = Remarks { silent: cli.quiet || cli.json };
    let interrupt = Interrupt::listen();
    let several = all.len() > 1;
    let mut done = Vec::new();
    for (number, Ready { experiment, out }) in all.iter().enumerate() {
        remarks.say(format!("{}: after {}", experiment.title, experiment.source));
        let mut bar = Bar::of_stages(remarks.silent, interrupt.clone());
        let options = RunOptions {
            seed: arguments.seed,
            quick: arguments.quick,
            journal: Some(all[number].journal()),
            fresh: arguments.fresh,
        };
        let outcome = super::run(experiment, &options, &mut |event| {
            bar.stage(&format!("seed {}, {}", event.seed, event.stage), event.done, event.total, None)
        });
        bar.finish();
        let outcome = outcome?;
        let files = outcome.write(out)?;
        if !cli.json {
            if several {
                let space = if number > 0 { "\n" } else { "" };
                print(format!("{space}{}\n", outcome.title))?;
            }
            print(summary(&outcome))?;
            remarks.say(format!("report: {}\nnumbers: {}", files.report.display(), files.results.display()));
        }
        done.push((outcome, files));
    }
    match done.as_slice() {
        _ if !cli.json => Ok(()),
        [one] => print_json(&output(one)),
        all => print_json(&all.iter().map(output).collect::<Vec<_>>()),
    }
}

fn summary(outcome: &Outcome) -> String {
    let mut parts = vec![];
    if outcome.quick {
        parts.push("A quick run with smaller settings: its numbers are not those of the experiment.".into());
    }
    for one in outcome.tables() {
        let rows: Vec<Vec<String>> = std::iter::once(one.head).chain(one.rows).collect();
        parts.push(format!("{}\n\n{}", one.title, table(&rows)));
    }
    if !outcome.reductions.is_empty() {
        parts.push(format!("Differs from the source:\n  {}", outcome.reductions.join("\n  ")));
    }
    parts.push(match outcome.reused {
        0 => format!("{:.1} s", outcome.seconds),
        count => format!(
            "{:.1} s; {count} results are those of an earlier run, kept beside the report (--fresh computes them again)",
            outcome.seconds
        ),
    });
    parts.join("\n\n")
}

fn list_all(cli: &Cli, folder: Option<&Path>) -> Result<(), Failure> {
    let found = folder.map_or_else(|| Ok(embedded()), list)?;
    if cli.json {
        return print_json(&found);
    }
    if let (true, Some(folder)) = (found.is_empty(), folder) {
        return print(format!("{} holds no experiments (files ending in .toml)", folder.display()));
    }
    let first = if folder.is_some() { "file" } else { "name" };
    let mut rows = vec![[first, "kind", "what"].map(String::from).to_vec()];
    rows.extend(found.into_iter().map(|one| {
        let kind = if one.kind.is_empty() { "not valid".into() } else { one.kind };
        let first = if folder.is_some() { one.path.display().to_string() } else { one.name };
        vec![first, kind, one.title]
    }));
    // The last column is prose: aligned to the left.
    let width = |j: usize| rows.iter().map(|r| r[j].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let lines: Vec<String> =
        rows.iter().map(|r| format!("{:first$}  {:second$}  {}", r[0], r[1], r[2])).collect();
    print(lines.join("\n"))
}
