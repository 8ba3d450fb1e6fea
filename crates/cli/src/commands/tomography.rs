//! `posterior tomography`

use super::remarks;
use crate::args::{
    Cli, TomographyCommand, TomographyDesignArgs, TomographyMethodArg, TomographyProjectArgs,
    TomographyReconstructArgs, TomographyUncertaintyArgs, WeightPriorArg,
};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, check_outputs, number, print, print_json, set_threads, table_under};
use crate::progress::Bar;
use crate::settings::checkpoint_place;
use posterior::data::OutputKind;
use posterior::linear::sampled::{ConjugateOptions, DescentOptions};
use posterior::models::Facts;
use posterior::networks::architecture::Unet;
use posterior::scans::{
    DesignPrior, DesignRequest, ProjectRequest, ReconstructRequest, ScanError, UncertainRequest, design,
    project, reconstruct, uncertainty,
};
use posterior::tomography::image_prior::{DeepImagePriorOptions, PretrainOptions};
use posterior::tomography::linearised::{GPriorOptions, GPriorSolver, weight_descent};
use posterior::tomography::reconstruction::{
    DeepImagePriorRequest, Method, TotalVariationRequest, TotalVariationSolver,
};
use posterior::tomography::running::Watch;
use posterior::tomography::total_variation::{AdamOptions, PrimalDualOptions};
use posterior::tomography::uncertainty::{FilterOptions, ImagePriorChoice, UncertaintyOptions};
use std::path::{Path, PathBuf};

pub(crate) fn run(cli: &Cli, command: &TomographyCommand) -> Result<(), Failure> {
    match command {
        TomographyCommand::Project(arguments) => run_project(cli, arguments),
        TomographyCommand::Reconstruct(arguments) => run_reconstruct(cli, arguments),
        TomographyCommand::Uncertainty(arguments) => run_uncertainty(cli, arguments),
        TomographyCommand::Design(arguments) => run_design(cli, arguments),
    }
}

fn run_project(cli: &Cli, a: &TomographyProjectArgs) -> Result<(), Failure> {
    set_threads(a.limits.threads.count)?;
    let remarks = remarks(cli);
    let own = &a.request;
    let outputs =
        [(Some(own.out.as_path()), OutputKind::Array), (own.image_out.as_deref(), OutputKind::Picture)];
    check_outputs(&outputs, std::iter::once(&own.geometry).chain(&own.image), a.force)?;
    let outcome = project(&ProjectRequest { memory: a.limits.memory, ..own.clone() })?;
    remarks.warnings(&outcome.warnings);
    if cli.json {
        return print_json(&outcome);
    }
    print(format!(
        "sinogram of shape {:?}, noise of standard deviation {}, in {:.2} s",
        outcome.shape,
        number(outcome.noise),
        outcome.seconds
    ))?;
    if outcome.clipped_pixels > 0 {
        remarks
            .say(format!("{} pixels were cut to the range of the picture's format", outcome.clipped_pixels));
    }
    remarks.say(format!("written to {}", own.out.display()));
    Ok(())
}

/// Refuses flags that the method does not have.
fn check_method(cli: &Cli, a: &TomographyReconstructArgs) -> Result<(), Failure> {
    let (filtered, network) =
        (a.method == TomographyMethodArg::Filtered, a.method == TomographyMethodArg::DeepImagePrior);
    let smooth = a.method == TomographyMethodArg::TotalVariation;
    cli.only(&["filter"], filtered, "--method filtered")?;
    cli.only(&["weight", "iterations"], !filtered, "--method total-variation or deep-image-prior")?;
    cli.only(&["adam"], smooth, "--method total-variation")?;
    cli.only(&["learning-rate"], network || a.adam, "--method deep-image-prior or --adam")?;
    let of_network = ["channels", "skips", "no-norm", "pretrain", "start", "network-out"];
    cli.only(&of_network, network, "--method deep-image-prior")
}

fn method(a: &TomographyReconstructArgs) -> Method {
    match a.method {
        TomographyMethodArg::Filtered => Method::Filtered(a.filter.unwrap_or_default()),
        TomographyMethodArg::TotalVariation => {
            let solver = if a.adam {
                let usual = AdamOptions::default();
                TotalVariationSolver::Adam(AdamOptions {
                    learning_rate: a.learning_rate.unwrap_or(usual.learning_rate),
                    steps: a.iterations.unwrap_or(usual.steps),
                    ..usual
                })
            } else {
                let usual = PrimalDualOptions::default();
                let steps = a.iterations.unwrap_or(usual.steps);
                TotalVariationSolver::PrimalDual(PrimalDualOptions { steps, ..usual })
            };
            Method::TotalVariation(TotalVariationRequest { weight: a.weight, solver, seed: a.seed })
        }
        TomographyMethodArg::DeepImagePrior => {
            let usual = DeepImagePriorRequest::default();
            let channels = a.channels.clone().unwrap_or(usual.network.channels.clone());
            let skips = a.skips.clone().unwrap_or_else(|| vec![4; channels.len().saturating_sub(1)]);
            let training = DeepImagePriorOptions {
                learning_rate: a.learning_rate.unwrap_or(usual.training.learning_rate),
                iterations: a.iterations.unwrap_or(usual.training.iterations),
                ..usual.training
            };
            let pretraining = a.pretrain.map(|pictures| PretrainOptions {
                pictures,
                validation: (pictures / 10).max(1),
                seed: a.seed,
                ..PretrainOptions::default()
            });
            let network = Unet { channels, skips, norm: !a.no_norm, ..usual.network };
            let own =
                DeepImagePriorRequest { network, weight: a.weight, training, pretraining, seed: a.seed };
            Method::DeepImagePrior(Box::new(own))
        }
    }
}

/// Where the state of a long run is kept: as named, or beside an output. Such a place counts as an output where it was named, or where something stands.
fn checkpoint<'a>(
    named: Option<&Path>,
    beside: &Path,
    (outputs, force): (&[(Option<&Path>, OutputKind)], bool),
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<PathBuf, Failure> {
    let place = checkpoint_place(named, beside);
    let kept = named.or_else(|| place.exists().then_some(&*place));
    check_outputs(&[outputs, &[(kept, OutputKind::Checkpoint)]].concat(), inputs, force)?;
    Ok(place)
}

/// Does something long with its progress on the screen; what was stopped says how it goes on.
fn watched<T>(
    remarks: Remarks,
    checkpoint: &Path,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T, Box<ScanError>>,
) -> Result<T, Failure> {
    let mut progress = Bar::of_stages(remarks.silent, Interrupt::listen());
    let found = work(&mut |stage, done, all, value| progress.stage(&stage.to_string(), done, all, value));
    progress.finish();
    found.map_err(|error| match error.interrupted() {
        true => Failure::new(format!("interrupted; the same command goes on from {}", checkpoint.display())),
        false => Failure::from(*error),
    })
}

/// Says what a long run will take.
fn announce(remarks: Remarks, plan: &str, warnings: &[String]) {
    remarks.warnings(warnings);
    remarks.say(format!("plan: {plan}"));
}

/// Prints what a long run found, and says what is odd and where its picture is.
fn print_found(
    remarks: Remarks,
    facts: &Facts,
    (warnings, clipped): (&[String], usize),
    out: &Path,
) -> Result<(), Failure> {
    print(facts.table())?;
    remarks.warnings(warnings);
    if clipped > 0 {
        remarks.say(format!(
            "{clipped} pixels were cut to the range of the picture's format; .npy and .tiff keep them"
        ));
    }
    remarks.say(format!("written to {}", out.display()));
    Ok(())
}

fn run_reconstruct(cli: &Cli, a: &TomographyReconstructArgs) -> Result<(), Failure> {
    set_threads(a.running.limits.threads.count)?;
    check_method(cli, a)?;
    let remarks = remarks(cli);
    let outputs = [
        (Some(a.out.as_path()), OutputKind::Picture),
        (a.network_out.as_deref(), OutputKind::Network),
        (a.running.report.as_deref(), OutputKind::Report),
    ];
    let inputs = [&a.scan.sinogram, &a.scan.geometry].into_iter().chain(&a.truth).chain(&a.start);
    let checkpoint =
        checkpoint(a.running.checkpoint.as_deref(), &a.out, (&outputs, a.running.force), inputs)?;
    posterior::data::PictureFormat::of(&a.out)?;
    let request = ReconstructRequest {
        scan: a.scan.clone(),
        method: method(a),
        start: a.start.clone(),
        truth: a.truth.clone(),
        out: a.out.clone(),
        network_out: a.network_out.clone(),
        report: a.running.report.clone(),
        checkpoint: checkpoint.clone(),
        memory: a.running.limits.memory,
    };
    let outcome = watched(remarks, &checkpoint, |watch| {
        reconstruct(&request, &mut |plan, notes| announce(remarks, &plan.describe(), notes), watch)
            .map_err(Box::new)
    })?;
    if cli.json {
        return print_json(&outcome);
    }
    let said = (&outcome.warnings[..], outcome.clipped_pixels);
    print_found(remarks, &outcome.facts(), said, &a.out)
}

fn run_uncertainty(cli: &Cli, a: &TomographyUncertaintyArgs) -> Result<(), Failure> {
    set_threads(a.running.limits.threads.count)?;
    let g_prior = a.prior == WeightPriorArg::GPrior;
    let of_g_prior = ["samples-em", "turns", "descent", "noise-variance"];
    cli.only(&of_g_prior, g_prior, "--prior g-prior")?;
    cli.only(&["roughness"], !g_prior, "--prior filters")?;
    cli.only(&["rank", "tolerance"], a.descent.is_none(), "conjugate gradients, without --descent")?;
    let usual = UncertaintyOptions::default();
    let (rank, tolerance) = (a.rank, a.tolerance.unwrap_or(usual.conjugate.tolerance));
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return Err(Failure::usage("--tolerance must lie between 0 and 1".into()));
    }
    let remarks = remarks(cli);
    let outputs = [
        (Some(a.out.as_path()), OutputKind::Picture),
        (a.picture_out.as_deref(), OutputKind::Picture),
        (a.samples_out.as_deref(), OutputKind::Array),
        (a.running.report.as_deref(), OutputKind::Report),
    ];
    let inputs = [&a.scan.sinogram, &a.scan.geometry, &a.network].into_iter().chain(&a.truth);
    let checkpoint =
        checkpoint(a.running.checkpoint.as_deref(), &a.out, (&outputs, a.running.force), inputs)?;
    for path in [Some(&a.out), a.picture_out.as_ref()].into_iter().flatten() {
        posterior::data::PictureFormat::of(path)?;
    }
    let conjugate = ConjugateOptions { tolerance, ..usual.conjugate };
    let prior = if g_prior {
        let usual = GPriorOptions::default();
        let solver = match a.descent {
            Some(epochs) => GPriorSolver::Weights(DescentOptions { epochs, ..weight_descent() }),
            None => GPriorSolver::Measurements(conjugate.clone()),
        };
        ImagePriorChoice::GPrior(GPriorOptions {
            samples: a.samples_em.unwrap_or(usual.samples),
            turns: a.turns.unwrap_or(usual.turns),
            solver,
            noise_variance: a.noise_variance,
            seed: a.seed,
            ..usual
        })
    } else {
        let usual = FilterOptions::default();
        ImagePriorChoice::Filters(FilterOptions {
            roughness: a.roughness.unwrap_or(usual.roughness),
            ..usual
        })
    };
    let options = UncertaintyOptions { prior, samples: a.samples, conjugate, rank, seed: a.seed };
    let request = UncertainRequest {
        scan: a.scan.clone(),
        network: a.network.clone(),
        options,
        truth: a.truth.clone(),
        out: a.out.clone(),
        picture_out: a.picture_out.clone(),
        samples_out: a.samples_out.clone(),
        report: a.running.report.clone(),
        checkpoint: checkpoint.clone(),
        memory: a.running.limits.memory,
    };
    let outcome = watched(remarks, &checkpoint, |watch| {
        uncertainty(&request, &mut |plan, notes| announce(remarks, &plan.describe(), notes), watch)
            .map_err(Box::new)
    })?;
    if cli.json {
        return print_json(&outcome);
    }
    let said = (&outcome.warnings[..], outcome.clipped_pixels);
    print_found(remarks, &outcome.facts(), said, &a.out)
}

fn run_design(cli: &Cli, a: &TomographyDesignArgs) -> Result<(), Failure> {
    set_threads(a.limits.threads.count)?;
    let own = &a.request;
    if own.count == 0 {
        return Err(Failure::usage("--count must be at least 1".into()));
    }
    cli.only(&["network"], own.prior == DesignPrior::GPrior, "--prior g-prior")?;
    let remarks = remarks(cli);
    let inputs = [&own.sinogram, &own.geometry].into_iter().chain(&own.network);
    let checkpoint = checkpoint(a.checkpoint.as_deref(), &own.sinogram, (&[], false), inputs)?;
    let request = DesignRequest { checkpoint: checkpoint.clone(), memory: a.limits.memory, ..own.clone() };
    let outcome = watched(remarks, &checkpoint, |watch| {
        design(&request, &mut |plan, warnings| announce(remarks, plan, warnings), watch).map_err(Box::new)
    })?;
    if cli.json {
        return print_json(&outcome);
    }
    let rows = outcome
        .angles
        .iter()
        .map(|next| [next.angle.to_string(), format!("{:.2}", next.degrees), number(next.score)]);
    print(table_under(["angle", "degrees", "score"], rows))?;
    remarks.say(format!("in {:.1} s", outcome.seconds));
    Ok(())
}
