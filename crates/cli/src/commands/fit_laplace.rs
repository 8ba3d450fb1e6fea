//! `posterior fit laplace`

use super::remarks;
use crate::args::{Cli, LaplaceArgs};
use crate::interrupt::Interrupt;
use crate::laplace_effects::check_plain_ensemble;
use crate::laplace_settings::{checkpoint, continued, data, request};
use crate::output::{Failure, check_outputs, print, print_json, set_threads};
use crate::progress::StageProgress;
use posterior::data::OutputKind;
use posterior::ensemble::EnsembleModel;
use posterior::laplace::{CurvatureChoice, LaplaceModel, LaplaceRequest};
use posterior::linearised::{Approximation, Weights};
use posterior::{Model, ModelError, peak_memory_bytes};
use serde::Serialize;
use std::time::Instant;

/// What `--json` prints beside the model.
#[derive(Serialize)]
struct FitReport {
    #[serde(flatten)]
    report: serde_json::Value,
    peak_memory_bytes: Option<u64>,
    seconds: f64,
    model: String,
}

/// A request for networks alone: with the posterior that costs least, which nothing is made of.
fn members_alone(mut request: LaplaceRequest) -> LaplaceRequest {
    request.curvature = CurvatureChoice::Options;
    request.options.weights = Weights::LastLayer;
    request.options.approximation = Approximation::Diagonal;
    request
}

pub(crate) fn run(cli: &Cli, arguments: &LaplaceArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.threads)?;
    let remarks = remarks(cli);
    let place = checkpoint(arguments);
    let kept = (arguments.checkpoint.is_some() || place.exists()).then_some(place.as_path());
    let outputs = [(Some(arguments.out.as_path()), OutputKind::Model), (kept, OutputKind::Checkpoint)];
    let single = [&arguments.network, &arguments.architecture, &arguments.head, &arguments.continue_from];
    let (_, data_files) = arguments.inputs.files(&arguments.data);
    let several = [&data_files, &arguments.labels, &arguments.validation_data, &arguments.validation_labels];
    let inputs = single.into_iter().flatten().chain(several.into_iter().flatten());
    check_outputs(&outputs, inputs, arguments.force)?;
    let mut announce = |line: &str| remarks.say(line);
    let model: Result<Box<dyn Model>, ModelError> = match &arguments.continue_from {
        Some(path) => {
            let before = LaplaceModel::load(path)?;
            let options = continued(arguments, &before.header().options)?;
            let mut progress = StageProgress::new(remarks.silent, Interrupt::listen());
            let model = before.continued(&data(arguments), &options, &mut announce, &mut |s, d, n| {
                progress.observe(s, d, n)
            });
            progress.finish();
            model.map(|model| Box::new(model) as _)
        }
        None => {
            let request = request(arguments)?;
            let mut progress = StageProgress::new(remarks.silent, Interrupt::listen());
            let mut watch = |s, d, n| progress.observe(s, d, n);
            let model: Result<Box<dyn Model>, ModelError> = if EnsembleModel::is_asked(&request) {
                // Nobody asked for error bars of the members.
                let plain = arguments.curvature.is_none();
                if plain {
                    check_plain_ensemble(arguments)?;
                }
                let request = if plain { members_alone(request) } else { request };
                EnsembleModel::fit(&request, plain, &mut announce, &mut watch).map(|m| Box::new(m) as _)
            } else {
                LaplaceModel::fit(&request, &mut announce, &mut watch).map(|m| Box::new(m) as _)
            };
            progress.finish();
            model
        }
    };
    let model = model.map_err(|error| {
        if !error.is_interruption() {
            return Failure::from(error);
        }
        let place = checkpoint(arguments);
        // Each network of a folder has a file of its own beside the place of all.
        let several =
            arguments.network.as_ref().is_some_and(|folder| EnsembleModel::is_begun(folder, &place));
        let rest = if arguments.continue_from.is_none() && (place.exists() || several) {
            let all = if several { ".*" } else { "" };
            format!("; what there is so far is in {}{all}: go on with --resume", place.display())
        } else {
            String::new()
        };
        Failure::new(format!("interrupted; {} has not been written{rest}", arguments.out.display()))
    })?;
    model.save(&arguments.out)?;
    if cli.json {
        return print_json(&FitReport {
            report: model.report()?,
            peak_memory_bytes: peak_memory_bytes(),
            seconds: started.elapsed().as_secs_f64(),
            model: arguments.out.display().to_string(),
        });
    }
    if !cli.quiet {
        print(model.described())?;
        print(format!("\nmodel written to {}", arguments.out.display()))?;
    }
    Ok(())
}
