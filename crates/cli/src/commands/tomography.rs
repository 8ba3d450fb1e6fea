//! `posterior tomography`

use super::remarks;
use crate::args::{
    Cli, CriterionArg, FilterArg, TomographyCommand, TomographyDesignArgs, TomographyMethodArg,
    TomographyProjectArgs, TomographyReconstructArgs, TomographyUncertaintyArgs, WeightPriorArg,
};
use crate::interrupt::Interrupt;
use crate::laplace_settings::only;
use crate::output::{Failure, check_outputs, number, print, print_json, set_threads, table};
use crate::progress::ScanProgress;
use crate::settings::checkpoint_place;
use posterior::data::OutputKind;
use posterior::linear::sampled::{ConjugateOptions, DescentOptions};
use posterior::networks::architecture::Unet;
use posterior::optim::Signal;
use posterior::scans::{
    DesignPrior, DesignRequest, PlannedWork, ProjectRequest, ReconstructRequest, ScanError, UncertainRequest,
    design, project, reconstruct, uncertainty,
};
use posterior::tomography::Filter;
use posterior::tomography::design::Acquisition;
use posterior::tomography::image_prior::{DeepImagePriorOptions, PretrainOptions};
use posterior::tomography::linearised::{GPriorOptions, GPriorSolver, weight_descent};
use posterior::tomography::reconstruction::{
    DeepImagePriorRequest, Method, TotalVariationRequest, TotalVariationSolver,
};
use posterior::tomography::running::Stage;
use posterior::tomography::total_variation::{AdamOptions, PrimalDualOptions};
use posterior::tomography::uncertainty::{FilterOptions, ImagePriorChoice, PriorReport, UncertaintyOptions};
use std::cell::RefCell;
use std::path::Path;

pub(crate) fn run(cli: &Cli, command: &TomographyCommand) -> Result<(), Failure> {
    match command {
        TomographyCommand::Project(arguments) => run_project(cli, arguments),
        TomographyCommand::Reconstruct(arguments) => run_reconstruct(cli, arguments),
        TomographyCommand::Uncertainty(arguments) => run_uncertainty(cli, arguments),
        TomographyCommand::Design(arguments) => run_design(cli, arguments),
    }
}

fn run_project(cli: &Cli, a: &TomographyProjectArgs) -> Result<(), Failure> {
    set_threads(a.limits.threads)?;
    let remarks = remarks(cli);
    let outputs = [(Some(a.out.as_path()), OutputKind::Array), (a.image_out.as_deref(), OutputKind::Picture)];
    check_outputs(&outputs, std::iter::once(&a.geometry).chain(&a.image), a.force)?;
    let outcome = project(&ProjectRequest {
        geometry: a.geometry.clone(),
        image: a.image.clone(),
        phantom: a.phantom,
        noise: a.noise,
        seed: a.seed,
        out: a.out.clone(),
        image_out: a.image_out.clone(),
        memory: a.limits.memory,
    })?;
    outcome.warnings.iter().for_each(|w| remarks.say(format!("warning: {w}")));
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
    remarks.say(format!("written to {}", a.out.display()));
    Ok(())
}

/// Refuses flags that the method does not have.
fn check_method(a: &TomographyReconstructArgs) -> Result<(), Failure> {
    let (filtered, network) =
        (a.method == TomographyMethodArg::Filtered, a.method == TomographyMethodArg::DeepImagePrior);
    let smooth = a.method == TomographyMethodArg::TotalVariation;
    only(a.filter.is_some(), "filter", filtered, "--method filtered")?;
    only(a.weight.is_some(), "weight", !filtered, "--method total-variation or deep-image-prior")?;
    only(a.iterations.is_some(), "iterations", !filtered, "--method total-variation or deep-image-prior")?;
    only(a.adam, "adam", smooth, "--method total-variation")?;
    only(
        a.learning_rate.is_some(),
        "learning-rate",
        network || a.adam,
        "--method deep-image-prior or --adam",
    )?;
    for (given, name) in [
        (a.channels.is_some(), "channels"),
        (a.skips.is_some(), "skips"),
        (a.no_norm, "no-norm"),
        (a.pretrain.is_some(), "pretrain"),
        (a.start.is_some(), "start"),
        (a.network_out.is_some(), "network-out"),
    ] {
        only(given, name, network, "--method deep-image-prior")?;
    }
    Ok(())
}

fn method(a: &TomographyReconstructArgs) -> Method {
    match a.method {
        TomographyMethodArg::Filtered => Method::Filtered(match a.filter {
            Some(FilterArg::Hann) => Filter::Hann,
            Some(FilterArg::RamLak) | None => Filter::RamLak,
        }),
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

/// A checkpoint counts as an output where it was named, or where one stands.
fn kept<'a>(named: Option<&'a Path>, place: &'a Path) -> Option<&'a Path> {
    named.or_else(|| place.exists().then_some(place))
}

/// What was stopped says how it goes on.
fn failed(error: ScanError, checkpoint: &Path) -> Failure {
    if error.interrupted() {
        let place = checkpoint.display();
        return Failure::new(format!("interrupted; the same command goes on from {place}"));
    }
    error.into()
}

fn run_reconstruct(cli: &Cli, a: &TomographyReconstructArgs) -> Result<(), Failure> {
    set_threads(a.running.limits.threads)?;
    check_method(a)?;
    let remarks = remarks(cli);
    let checkpoint = checkpoint_place(a.running.checkpoint.as_deref(), &a.out);
    let outputs = [
        (Some(a.out.as_path()), OutputKind::Picture),
        (a.network_out.as_deref(), OutputKind::Network),
        (a.running.report.as_deref(), OutputKind::Report),
        (kept(a.running.checkpoint.as_deref(), &checkpoint), OutputKind::Checkpoint),
    ];
    let inputs = [&a.scan.sinogram, &a.scan.geometry].into_iter().chain(&a.truth).chain(&a.start);
    check_outputs(&outputs, inputs, a.running.force)?;
    posterior::data::PictureFormat::of(&a.out)?;
    let request = ReconstructRequest {
        geometry: a.scan.geometry.clone(),
        sinogram: a.scan.sinogram.clone(),
        counts: a.scan.counts,
        method: method(a),
        start: a.start.clone(),
        truth: a.truth.clone(),
        out: a.out.clone(),
        network_out: a.network_out.clone(),
        report: a.running.report.clone(),
        checkpoint: checkpoint.clone(),
        memory: a.running.limits.memory,
    };
    let progress = RefCell::new(ScanProgress::new(remarks.silent, Interrupt::listen()));
    let found = reconstruct(
        &request,
        &mut |plan, warnings| announce(remarks, plan, warnings),
        &mut |stage, done, all, value| progress.borrow_mut().observe(stage, done, all, value),
    );
    progress.borrow().finish();
    let outcome = found.map_err(|e| failed(e, &checkpoint))?;
    if cli.json {
        return print_json(&outcome);
    }
    let report = &outcome.report;
    let mut rows = vec![row("mean squared residual", number(outcome.residual))];
    let facts = [
        ("PSNR, dB", outcome.psnr.map(number)),
        ("weight of total variation", report.weight.map(|v| format!("{v:e}"))),
        ("loss", report.loss.map(number)),
        ("relative gap to the minimum, at most", report.gap.map(|v| format!("{v:.1e}"))),
        ("steps", (report.steps > 0).then(|| report.steps.to_string())),
        ("ended", report.reason.map(|r| r.to_string())),
        ("weights of the network", report.weights.map(|v| v.to_string())),
        ("best PSNR on the way (known only with the truth), dB", report.best_quality.map(|q| number(q.0))),
        ("seconds", Some(format!("{:.1}", outcome.seconds))),
    ];
    rows.extend(facts.into_iter().filter_map(|(label, value)| value.map(|v| row(label, v))));
    print(table(&rows))?;
    outcome.warnings.iter().for_each(|w| remarks.say(format!("warning: {w}")));
    clipped(remarks, outcome.clipped_pixels);
    remarks.say(format!("written to {}", a.out.display()));
    Ok(())
}

fn row(label: &str, value: String) -> Vec<String> {
    vec![label.to_owned(), value]
}

fn clipped(remarks: crate::output::Remarks, pixels: usize) {
    if pixels > 0 {
        remarks.say(format!(
            "{pixels} pixels were cut to the range of the picture's format; .npy and .tiff keep them"
        ));
    }
}

fn announce(remarks: crate::output::Remarks, plan: &PlannedWork, warnings: &[String]) {
    warnings.iter().for_each(|w| remarks.say(format!("warning: {w}")));
    remarks.say(format!("plan: {}", plan.describe()));
}

fn run_uncertainty(cli: &Cli, a: &TomographyUncertaintyArgs) -> Result<(), Failure> {
    set_threads(a.running.limits.threads)?;
    let g_prior = a.prior == WeightPriorArg::GPrior;
    only(a.samples_em.is_some(), "samples-em", g_prior, "--prior g-prior")?;
    only(a.turns.is_some(), "turns", g_prior, "--prior g-prior")?;
    only(a.descent.is_some(), "descent", g_prior, "--prior g-prior")?;
    only(a.noise_variance.is_some(), "noise-variance", g_prior, "--prior g-prior")?;
    only(a.roughness.is_some(), "roughness", !g_prior, "--prior filters")?;
    let solves = "conjugate gradients, without --descent";
    only(a.rank.is_some(), "rank", a.descent.is_none(), solves)?;
    only(a.tolerance.is_some(), "tolerance", a.descent.is_none(), solves)?;
    let usual = UncertaintyOptions::default();
    let (rank, tolerance) = (a.rank, a.tolerance.unwrap_or(usual.conjugate.tolerance));
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return Err(Failure::usage("--tolerance must lie between 0 and 1".into()));
    }
    let remarks = remarks(cli);
    let checkpoint = checkpoint_place(a.running.checkpoint.as_deref(), &a.out);
    let outputs = [
        (Some(a.out.as_path()), OutputKind::Picture),
        (a.picture_out.as_deref(), OutputKind::Picture),
        (a.samples_out.as_deref(), OutputKind::Array),
        (a.running.report.as_deref(), OutputKind::Report),
        (kept(a.running.checkpoint.as_deref(), &checkpoint), OutputKind::Checkpoint),
    ];
    let inputs = [&a.scan.sinogram, &a.scan.geometry, &a.network].into_iter().chain(&a.truth);
    check_outputs(&outputs, inputs, a.running.force)?;
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
        geometry: a.scan.geometry.clone(),
        sinogram: a.scan.sinogram.clone(),
        counts: a.scan.counts,
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
    let progress = RefCell::new(ScanProgress::new(remarks.silent, Interrupt::listen()));
    let found = uncertainty(
        &request,
        &mut |plan, warnings| announce(remarks, plan, warnings),
        &mut |stage, done, all, value| progress.borrow_mut().observe(stage, done, all, value),
    );
    progress.borrow().finish();
    let outcome = found.map_err(|e| failed(e, &checkpoint))?;
    if cli.json {
        return print_json(&outcome);
    }
    let report = &outcome.report;
    let mut rows = vec![
        row("random weights", report.weights.to_string()),
        row("measurements", report.measurements.to_string()),
    ];
    match &report.prior {
        PriorReport::GPrior { fit, raised } => {
            rows.push(row("precision", number(fit.precision)));
            rows.push(row("turns", format!("{} ({})", fit.turns.len(), fit.reason)));
            if let Some(gamma) = fit.turns.last().and_then(|t| t.by_prediction) {
                rows.push(row("effective dimension", number(gamma)));
            }
            if *raised > 0 {
                rows.push(row("weights that move no measurement", raised.to_string()));
            }
        }
        PriorReport::Filters(found) => {
            rows.push(row("evidence, nats", number(found.evidence)));
            rows.push(row("steps", format!("{} ({})", found.steps, found.reason)));
            for (k, name) in found.blocks.iter().enumerate() {
                let (variance, lengthscale) =
                    (found.filters.log_variances[k].exp(), found.filters.log_lengthscales[k].exp());
                let text = format!("variance {}, lengthscale {}", number(variance), number(lengthscale));
                rows.push(row(&format!("block {name}"), text));
            }
        }
    }
    rows.extend([
        row("noise variance (network's units)", number(report.noise_variance)),
        row("mean squared residual (network's units)", number(report.residual)),
        row("draws", report.samples.to_string()),
        row("steps of their solves", report.steps.to_string()),
        row("largest relative residual", format!("{:.1e}", report.largest_residual)),
        row("median standard deviation", number(outcome.median_deviation)),
        row("largest standard deviation", number(outcome.largest_deviation)),
    ]);
    if let Some(score) = &outcome.score {
        rows.push(row("PSNR, dB", number(score.psnr)));
        for (side, density) in &score.patches {
            rows.push(row(&format!("log density, {side} x {side}, nats a pixel"), number(*density)));
        }
        if let Some((_, found)) = score.coverage.iter().find(|(p, _)| (p - 0.9).abs() < 1e-6) {
            rows.push(row("pixels within 90 % intervals", format!("{:.1} %", 100.0 * found)));
        }
    }
    rows.push(row("seconds", format!("{:.1}", outcome.seconds)));
    print(table(&rows))?;
    outcome.warnings.iter().for_each(|w| remarks.say(format!("warning: {w}")));
    clipped(remarks, outcome.clipped_pixels);
    remarks.say(format!("written to {}", a.out.display()));
    Ok(())
}

fn run_design(cli: &Cli, a: &TomographyDesignArgs) -> Result<(), Failure> {
    set_threads(a.limits.threads)?;
    if a.count == 0 {
        return Err(Failure::usage("--count must be at least 1".into()));
    }
    only(a.network.is_some(), "network", a.prior == DesignPrior::GPrior, "--prior g-prior")?;
    let remarks = remarks(cli);
    let checkpoint = checkpoint_place(a.checkpoint.as_deref(), &a.sinogram);
    let outputs = [(kept(a.checkpoint.as_deref(), &checkpoint), OutputKind::Checkpoint)];
    check_outputs(&outputs, [&a.sinogram, &a.geometry].into_iter().chain(&a.network), false)?;
    let request = DesignRequest {
        geometry: a.geometry.clone(),
        measured: a.measured.clone(),
        sinogram: a.sinogram.clone(),
        counts: a.counts,
        prior: a.prior,
        network: a.network.clone(),
        acquisition: match a.criterion {
            CriterionArg::Variance => Acquisition::Variance,
            CriterionArg::Information => Acquisition::Information,
            CriterionArg::DiagonalInformation => Acquisition::DiagonalInformation,
        },
        count: a.count,
        samples: (a.samples > 0).then_some(a.samples),
        seed: a.seed,
        checkpoint: checkpoint.clone(),
        memory: a.limits.memory,
    };
    let progress = RefCell::new(ScanProgress::new(remarks.silent, Interrupt::listen()));
    let found = design(
        &request,
        &mut |plan, warnings| {
            warnings.iter().for_each(|w| remarks.say(format!("warning: {w}")));
            remarks.say(format!("plan: {plan}"));
        },
        &mut |stage: Stage, done, all, value| -> Signal {
            progress.borrow_mut().observe(stage, done, all, value)
        },
    );
    progress.borrow().finish();
    let outcome = found.map_err(|e| failed(e, &checkpoint))?;
    if cli.json {
        return print_json(&outcome);
    }
    let mut rows = vec![vec!["angle".to_string(), "degrees".into(), "score".into()]];
    for next in &outcome.angles {
        rows.push(vec![next.angle.to_string(), format!("{:.2}", next.degrees), number(next.score)]);
    }
    print(table(&rows))?;
    remarks.say(format!("in {:.1} s", outcome.seconds));
    Ok(())
}
