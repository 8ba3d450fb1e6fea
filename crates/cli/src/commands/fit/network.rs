//! `posterior fit --network`: error bars for a trained network.

use super::super::remarks;
use super::{show, write};
use crate::args::{Cli, LaplaceArgs};
use crate::interrupt::Interrupt;
use crate::laplace_effects::check_plain_ensemble;
use crate::laplace_settings::{checkpoint, request};
use crate::output::{Failure, check_outputs, set_threads};
use crate::progress::Bar;
use posterior::data::OutputKind;
use posterior::laplace::{CurvatureChoice, LaplaceRequest};
use posterior::linearised::{Approximation, Stage, Weights};
use posterior::models::RunRecord;
use posterior::notes::fixes::RESUME;
use posterior::{Model, Saved, ensemble};
use std::path::Path;
use std::time::Instant;

/// A request for networks alone: with the posterior that costs least, which nothing is made of.
fn members_alone(mut request: LaplaceRequest) -> LaplaceRequest {
    request.curvature = CurvatureChoice::Options;
    request.options.weights = Weights::LastLayer;
    request.options.approximation = Approximation::Diagonal;
    request
}

pub(super) fn run(cli: &Cli, arguments: &LaplaceArgs) -> Result<(), Failure> {
    let started = Instant::now();
    set_threads(arguments.run.threads.count)?;
    let remarks = remarks(cli);
    let place = checkpoint(arguments);
    let kept = (arguments.checkpoint.is_some() || place.exists()).then_some(place.as_path());
    let outputs = [(Some(arguments.run.out.as_path()), OutputKind::Model), (kept, OutputKind::Checkpoint)];
    let single = [&arguments.run.config, &arguments.network, &arguments.architecture, &arguments.head];
    let (_, data_files) = arguments.inputs.files(&arguments.data);
    let several = [&data_files, &arguments.labels, &arguments.validation_data, &arguments.validation_labels];
    let inputs = single.into_iter().flatten().chain(several.into_iter().flatten());
    check_outputs(&outputs, inputs, arguments.run.force)?;
    let mut announce = |line: &str| remarks.say(line);
    let mut progress = Bar::of_stages(remarks.silent, Interrupt::listen());
    let mut watch = |stage: Stage, done, total| progress.stage(stage.describe(), done, total, None);
    let request = request(cli, arguments)?;
    let model = if ensemble::is_asked(&request) {
        // Nobody asked for error bars of the members.
        let plain = arguments.curvature.is_none();
        if plain {
            check_plain_ensemble(arguments)?;
        }
        let request = if plain { members_alone(request) } else { request };
        ensemble::fit(&request, plain, &mut announce, &mut watch)
    } else {
        Model::fit_laplace(&request, &mut announce, &mut watch)
    };
    progress.finish();
    let model = model.map_err(|error| {
        if !error.is_interruption() {
            return Failure::from(error);
        }
        // Each network of a folder has a file of its own beside the place of all.
        let several =
            arguments.network.as_ref().is_some_and(|folder| ensemble::has_checkpoint(folder, &place));
        let rest = if place.exists() || several {
            let all = if several { ".*" } else { "" };
            format!("; what there is so far is in {}{all}: go on with {RESUME}", place.display())
        } else {
            String::new()
        };
        Failure::new(format!("interrupted; {} has not been written{rest}", arguments.run.out.display()))
    })?;
    finish(cli, model, (arguments.run.out.as_path(), arguments.run.verbose), started)
}

/// Writes a model of networks, and says what it is.
pub(super) fn finish(
    cli: &Cli,
    model: Model,
    (out, verbose): (&Path, bool),
    started: Instant,
) -> Result<(), Failure> {
    let mut model = Saved::from(model);
    write(&mut model, &RunRecord::default(), out, started)?;
    // What columns do is not asked of networks, and takes no memory.
    show(cli, &model, out, (u64::MAX, verbose))
}
