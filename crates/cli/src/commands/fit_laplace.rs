//! `posterior fit laplace`

use super::remarks;
use crate::args::{Cli, LaplaceArgs};
use crate::describe_laplace::{self, Group};
use crate::interrupt::Interrupt;
use crate::laplace_settings::{checkpoint, continued, data, request};
use crate::output::{Failure, check_outputs, print, print_json, set_threads};
use crate::progress::StageProgress;
use posterior::data::OutputKind;
use posterior::laplace::{LaplaceHeader, LaplaceModel};
use posterior::peak_memory_bytes;
use serde::Serialize;
use std::time::Instant;

/// What `--json` prints, here and for `inspect`.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    pub kind: &'static str,
    pub curvature: String,
    pub weights: usize,
    pub precision: &'static str,
    pub groups: Vec<Group>,
    pub log_evidence: Option<f64>,
    pub effective_dimensions: Option<f64>,
    pub noise_deviations: Vec<f64>,
    /// Scores on rows that the network has not seen, in the target's units.
    pub unseen: Option<posterior::linearised::UnseenScores>,
    pub notes: Vec<String>,
    pub header: &'a LaplaceHeader,
}

#[derive(Serialize)]
struct FitReport<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    model: String,
}

pub(crate) fn report(model: &LaplaceModel) -> Report<'_> {
    let header = model.header();
    Report {
        kind: "model",
        curvature: describe_laplace::curvature(model),
        weights: model.weights(),
        precision: model.precision(),
        groups: describe_laplace::groups(model),
        log_evidence: header.summary.evidence.as_ref().map(|e| e.log_evidence),
        effective_dimensions: describe_laplace::effective_dimensions(model),
        noise_deviations: describe_laplace::noise(model),
        unseen: model.unseen(),
        notes: describe_laplace::notes(model).into_iter().map(|n| n.text).collect(),
        header,
    }
}

pub(crate) fn run(cli: &Cli, arguments: &LaplaceArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let place = checkpoint(arguments);
    let kept = (arguments.checkpoint.is_some() || place.exists()).then_some(place.as_path());
    let outputs = [(Some(arguments.out.as_path()), OutputKind::Model), (kept, OutputKind::Checkpoint)];
    let single = [&arguments.network, &arguments.architecture, &arguments.head, &arguments.continue_from];
    let several =
        [&arguments.data, &arguments.labels, &arguments.validation_data, &arguments.validation_labels];
    let inputs = single.into_iter().flatten().chain(several.into_iter().flatten());
    check_outputs(&outputs, inputs, arguments.force)?;
    let mut announce = |line: &str| remarks.say(line);
    let model = match &arguments.continue_from {
        Some(path) => {
            let before = LaplaceModel::load(path)?;
            let options = continued(arguments, &before.header().options)?;
            let mut progress = StageProgress::new(remarks.silent, Interrupt::listen());
            let model = before.continued(&data(arguments), &options, &mut announce, &mut |s, d, n| {
                progress.observe(s, d, n)
            });
            progress.finish();
            model
        }
        None => {
            let request = request(arguments)?;
            let mut progress = StageProgress::new(remarks.silent, Interrupt::listen());
            let model = LaplaceModel::fit(&request, &mut announce, &mut |s, d, n| progress.observe(s, d, n));
            progress.finish();
            model
        }
    };
    let model = model.map_err(|error| {
        if !error.is_interruption() {
            return Failure::from(error);
        }
        let place = checkpoint(arguments);
        let rest = if arguments.continue_from.is_none() && place.exists() {
            format!("; the sums so far are in {}: go on with --resume", place.display())
        } else {
            String::new()
        };
        Failure::new(format!("interrupted; {} has not been written{rest}", arguments.out.display()))
    })?;
    model.save(&arguments.out)?;
    if cli.json {
        return print_json(&FitReport {
            report: report(&model),
            peak_memory_bytes: peak_memory_bytes(),
            seconds: started.elapsed().as_secs_f64(),
            model: arguments.out.display().to_string(),
        });
    }
    if !cli.quiet {
        print(describe_laplace::described(&model))?;
        print(format!("\nmodel written to {}", arguments.out.display()))?;
    }
    Ok(())
}
