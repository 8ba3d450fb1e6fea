//! `posterior train`

use super::remarks;
use super::train_online;
use crate::args::{Cli, LossArg, PrecisionArg, RuleArg, ScheduleArg, TrainArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, check_outputs, number, print, print_json, set_threads, table};
use crate::progress::TrainProgress;
use posterior::data::{OutputKind, Selection};
use posterior::linearised::online::Select;
use posterior::network::{CheckpointRequest, DataRequest, TrainReport, TrainRequest, train_network};
use posterior::networks::train::{Augmentation, Loss, Rule, TrainOptions};
use posterior::networks::{Architecture, Precision};
use posterior::optim::Schedule;
use std::cell::RefCell;
use std::path::PathBuf;

pub(crate) fn run(cli: &Cli, arguments: &TrainArgs) -> Result<(), Failure> {
    set_threads(arguments.threads)?;
    let request = request(arguments)?;
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

fn request(a: &TrainArgs) -> Result<TrainRequest, Failure> {
    if !(a.warm_up > 0.0 && a.warm_up < 1.0) {
        return Err(Failure::usage("--warm-up must lie between 0 and 1".into()));
    }
    let checkpoint = a.checkpoint.clone().unwrap_or_else(|| {
        let mut name = a.out.clone().into_os_string();
        name.push(".checkpoint");
        PathBuf::from(name)
    });
    let architecture = Architecture::read(&a.architecture).map_err(Failure::from_display)?;
    // Sizes that fit no network are a mistake in this file, so say which.
    architecture.graph().map_err(|e| Failure::new(format!("{}: {e}", a.architecture.display())))?;
    Ok(TrainRequest {
        architecture,
        data: DataRequest {
            data: a.data.clone(),
            labels: a.labels.clone(),
            selection: Selection {
                target: a.target.clone().unwrap_or_default(),
                features: a.features.clone(),
                ..Selection::default()
            },
            validation: a.validation_data.clone(),
            validation_labels: a.validation_labels.clone(),
            validation_fraction: a.validation,
            mean: a.mean.clone(),
            deviation: a.std.clone(),
            augmentation: Augmentation { flip: a.flip, shift: a.shift },
        },
        options: TrainOptions {
            loss: match a.loss {
                LossArg::Mse => Loss::Mse,
                LossArg::Gaussian => Loss::Gaussian,
                LossArg::CrossEntropy => Loss::CrossEntropy,
            },
            epochs: a.epochs,
            batch: a.batch,
            rule: match a.optimizer {
                RuleArg::Adam => Rule::Adam {
                    beta1: 0.9,
                    beta2: 0.999,
                    epsilon: 1e-8,
                    weight_decay: a.weight_decay,
                    decoupled: false,
                },
                RuleArg::Adamw => Rule::adamw(a.weight_decay),
                RuleArg::Sgd => Rule::nesterov(a.momentum, a.weight_decay),
            },
            learning_rate: a.learning_rate,
            schedule: match a.schedule {
                ScheduleArg::Constant => Schedule::Constant,
                ScheduleArg::Cosine => Schedule::Cosine,
                ScheduleArg::OneCycle => Schedule::OneCycle { warm_up: a.warm_up },
                ScheduleArg::Step => Schedule::Step { every: a.drop_every, factor: a.drop_factor },
            },
            clip: a.clip,
            patience: a.patience,
            seed: a.seed,
        },
        online: train_online::options(&a.online, (a.memory.max(0.0) * 1e9) as u64, a.seed),
        out: a.out.clone(),
        checkpoint: Some(CheckpointRequest { path: checkpoint, every: a.checkpoint_every, resume: a.resume }),
        memory: (a.memory.max(0.0) * 1e9) as u64,
    })
}

fn run_in<T: Precision>(cli: &Cli, request: &TrainRequest) -> Result<(), Failure> {
    let remarks = remarks(cli);
    let progress = RefCell::new(TrainProgress::new(remarks.silent, Interrupt::listen()));
    let mut announce = |plan: &posterior::network::TrainPlan, notes: &[String]| {
        notes.iter().for_each(|note| remarks.say(format!("note: {note}")));
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
        &mut |event| progress.borrow_mut().observe(event),
        &mut |stage, done, total| progress.borrow_mut().observe_stage(stage, done, total),
    );
    progress.borrow().finish();
    let report = report.map_err(Failure::from_display)?;
    let checkpoint = request.checkpoint.as_ref().map(|c| c.path.display().to_string()).unwrap_or_default();
    if report.stopped {
        return Err(Failure::new(format!(
            "interrupted after step {}; {} has not been written; go on with --resume ({checkpoint})",
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
    let mut rows =
        vec![["epoch", "loss", "validation loss", "accuracy", "learning rate"].map(String::from).to_vec()];
    for record in &report.history {
        rows.push(vec![
            record.epoch.to_string(),
            number(record.train_loss),
            record.validation.map_or_else(String::new, |v| number(v.loss)),
            record
                .validation
                .and_then(|v| v.accuracy)
                .map_or_else(String::new, |a| format!("{:.2} %", 100.0 * a)),
            number(record.learning_rate),
        ]);
    }
    let mut lines = vec![table(&rows), String::new()];
    if let Some(epoch) = report.best_epoch {
        let why = if report.early { ", after which patience ran out" } else { "" };
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
