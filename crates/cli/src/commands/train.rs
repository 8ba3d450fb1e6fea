//! `posterior train`

use super::remarks;
use super::train_online;
use crate::args::only;
use crate::args::{Cli, OnlineCurvatureArg, PrecisionArg, RuleArg, ScheduleArg, TrainArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, check_outputs, number, print, print_json, set_threads, table};
use crate::progress::Bar;
use crate::settings::checkpoint_place;
use posterior::data::{OutputKind, Selection};
use posterior::linearised::online::Select;
use posterior::network::{CheckpointRequest, DataRequest, TrainReport, TrainRequest, train_network};
use posterior::networks::train::{Augmentation, Evaluation, GaussianisedLoss, LossName, TrainOptions};
use posterior::networks::{Architecture, Precision};
use posterior::notes::fixes::RESUME;
use posterior::optim::{Reason, Rule, Schedule};
use std::cell::RefCell;

pub(crate) fn run(cli: &Cli, arguments: &TrainArgs) -> Result<(), Failure> {
    set_threads(arguments.threads.count)?;
    let request = request(cli, arguments)?;
    let kept = request.checkpoint.as_ref().map(|c| c.path.as_path());
    let kept = kept.filter(|p| arguments.checkpoint.is_some() || p.exists());
    let outputs = [(Some(arguments.out.as_path()), OutputKind::Network), (kept, OutputKind::Checkpoint)];
    let files =
        [&arguments.data, &arguments.labels, &arguments.validation_data, &arguments.validation_labels];
    let inputs = std::iter::once(&arguments.architecture).chain(files.into_iter().flatten());
    check_outputs(&outputs, inputs, arguments.force)?;
    match arguments.precision {
        PrecisionArg::F32 => run_in::<f32>(cli, &request),
        PrecisionArg::F64 => run_in::<f64>(cli, &request),
    }
}

/// Refuses flags that would do nothing.
fn check_flags(cli: &Cli, a: &TrainArgs) -> Result<(), Failure> {
    let stands_in = a.loss == LossName::Gaussianised;
    cli.only(&["matching", "pseudo-count"], stands_in, "--loss gaussianised")?;
    cli.only(&["momentum"], matches!(a.optimizer, RuleArg::Sgd), "--optimizer sgd")?;
    cli.only(&["warm-up"], matches!(a.schedule, ScheduleArg::OneCycle), "--schedule one-cycle")?;
    let step = matches!(a.schedule, ScheduleArg::Step);
    cli.only(&["drop-every", "drop-factor"], step, "--schedule step")?;
    let validated = a.validation_fraction.is_some_and(|f| f > 0.0) || !a.validation_data.is_empty();
    only(a.patience.is_some(), "patience", validated, "--validation-fraction or --validation-data")?;
    let o = &a.online;
    let kronecker = o.laplace_curvature == OnlineCurvatureArg::Kronecker;
    only(o.laplace_fisher.is_some(), "laplace-fisher", kronecker, "--laplace-curvature kronecker")?;
    let judged = o.laplace_select == Select::Validation;
    only(judged, "laplace-select validation", validated, "--validation-fraction or --validation-data")
}

fn request(cli: &Cli, a: &TrainArgs) -> Result<TrainRequest, Failure> {
    check_flags(cli, a)?;
    let checkpoint = checkpoint_place(a.checkpoint.as_deref(), &a.out);
    let pseudo_count = a.pseudo_count.unwrap_or(GaussianisedLoss::PSEUDO_COUNT);
    let labels = GaussianisedLoss::new(a.matching.unwrap_or_default(), pseudo_count)
        .map_err(|e| Failure::usage(e.to_string()))?;
    let architecture = Architecture::read(&a.architecture)?;
    // Sizes that fit no network are a mistake in this file, so say which.
    architecture.graph().map_err(|e| Failure::new(format!("{}: {e}", a.architecture.display())))?;
    Ok(TrainRequest {
        architecture,
        data: DataRequest {
            data: a.data.clone(),
            labels: a.labels.clone(),
            text: a.text,
            selection: Selection {
                target: a.target.clone().unwrap_or_default(),
                features: a.features.clone(),
                ..Selection::default()
            },
            validation: a.validation_data.clone(),
            validation_labels: a.validation_labels.clone(),
            validation_fraction: a.validation_fraction.unwrap_or(0.0),
            class_names: a.class_names.clone(),
            mean: a.mean.clone(),
            deviation: a.std.clone(),
            augmentation: Augmentation { flip: a.flip, shift: a.shift },
        },
        options: TrainOptions {
            loss: a.loss.loss(labels),
            epochs: a.epochs,
            batch: a.batch,
            rule: match a.optimizer {
                RuleArg::Adam => Rule::adam().with_weight_decay(a.weight_decay),
                RuleArg::Adamw => Rule::adamw(a.weight_decay),
                RuleArg::Sgd => Rule::nesterov(a.momentum.unwrap_or(0.9), a.weight_decay),
            },
            learning_rate: a.learning_rate,
            schedule: match a.schedule {
                ScheduleArg::Constant => Schedule::Constant,
                ScheduleArg::Cosine => Schedule::Cosine,
                ScheduleArg::OneCycle => Schedule::OneCycle { warm_up: a.warm_up.unwrap_or(0.3) },
                ScheduleArg::Step => Schedule::Step {
                    every: a.drop_every.unwrap_or(1000),
                    factor: a.drop_factor.unwrap_or(0.1),
                },
            },
            clip: a.clip,
            patience: a.patience,
            seed: a.seed,
        },
        online: train_online::options(&a.online, a.memory, a.seed),
        out: a.out.clone(),
        checkpoint: Some(CheckpointRequest { path: checkpoint, every: a.checkpoint_every, resume: a.resume }),
        memory: a.memory,
    })
}

fn run_in<T: Precision>(cli: &Cli, request: &TrainRequest) -> Result<(), Failure> {
    let remarks = remarks(cli);
    let progress = RefCell::new(Bar::of_training(remarks.silent, Interrupt::listen()));
    let mut announce = |plan: &posterior::network::TrainPlan, notes: &[String]| {
        remarks.notes(notes);
        remarks.say(format!(
            "plan: {} examples ({} to validate), {} parameters, {} steps of {:.2} GFLOP, {:.2} GB beside the data",
            plan.examples,
            plan.validation,
            plan.parameters,
            plan.steps,
            plan.flops_per_step as f64 / 1e9,
            plan.memory as f64 / 1e9
        ));
    };
    let report = train_network::<T>(
        request,
        &mut announce,
        &mut |step, state| progress.borrow_mut().step(step, state.history.len() > step.part),
        &mut |stage, done, total| progress.borrow_mut().between_epochs(stage, done, total),
    );
    progress.borrow().finish();
    let report = report?;
    let checkpoint = request.checkpoint.as_ref().map(|c| c.path.display().to_string()).unwrap_or_default();
    if report.ended == Reason::Interrupted {
        return Err(Failure::new(format!(
            "interrupted after step {}; {} has not been written; go on with {RESUME} ({checkpoint})",
            report.steps,
            request.out.display()
        )));
    }
    if cli.json {
        return print_json(&report);
    }
    print(summary(&report))?;
    remarks.say(format!("network written to {}", request.out.display()));
    Ok(())
}

/// The epochs and what became of them.
fn summary(report: &TrainReport) -> String {
    // Where the loss is the labels' NLL, once is enough.
    let stands_in = |v: &Evaluation| v.nll.is_some_and(|nll| nll != v.loss);
    let with_nll = report.history.iter().filter_map(|r| r.validation.as_ref()).any(stands_in);
    let mut head = vec!["epoch", "loss", "validation loss"];
    head.extend(with_nll.then_some("validation NLL"));
    head.extend(["accuracy", "learning rate"]);
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(String::from).collect()];
    for record in &report.history {
        let shown = |of: &dyn Fn(&Evaluation) -> Option<String>| {
            record.validation.as_ref().and_then(of).unwrap_or_default()
        };
        let mut row =
            vec![record.epoch.to_string(), number(record.train_loss), shown(&|v| Some(number(v.loss)))];
        row.extend(with_nll.then(|| shown(&|v| v.nll.map(number))));
        row.push(shown(&|v| v.accuracy.map(|a| format!("{:.2} %", 100.0 * a))));
        row.push(number(record.learning_rate));
        rows.push(row);
    }
    let mut lines = vec![table(&rows), String::new()];
    if let Some(epoch) = report.best_epoch {
        let why = if report.ended == Reason::Patience { ", after which patience ran out" } else { "" };
        let judge = match &report.online {
            Some(online) if online.select == Select::Evidence => "by the evidence",
            _ => "on the validation examples",
        };
        lines.push(format!("weights of epoch {epoch}, the best {judge}{why}"));
    }
    if let Some(online) = &report.online {
        lines.extend(train_online::summary(online));
    }
    if !report.noise_variance.is_empty() {
        let noise: Vec<String> = report.noise_variance.iter().map(|v| number(v.sqrt())).collect();
        lines.push(format!(
            "learned noise, as a standard deviation of the standardised target: {}",
            noise.join(", ")
        ));
    }
    if report.clipped > 0 {
        lines.push(format!("{} of {} gradients were shortened", report.clipped, report.steps));
    }
    lines.push(format!(
        "{} steps in {:.1} s{}",
        report.steps - report.resumed_from,
        report.seconds,
        if report.resumed_from > 0 {
            format!(", resumed after step {}", report.resumed_from)
        } else {
            String::new()
        }
    ));
    lines.join("\n")
}
