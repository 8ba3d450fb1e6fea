//! From flags and the configuration file to a request: flags win over the file, the file over the defaults.

use crate::args::{
    Cli, FitArgs, LengthscalePriorArg, MeanArg, MethodArg, MissingArg, ObjectiveArg, OptimizerArg,
};
use crate::output::{Failure, check_outputs};
use crate::scalable_settings;
use clap::CommandFactory;
use clap::error::ErrorKind;
use posterior::data::{Missing, OutputKind, Selection, Split};
use posterior::gp::MeanForm;
use posterior::gp::exact::{Criterion, Optimizer};
use posterior::linalg::random::Streams;
use posterior::optim::Constraint;
use posterior::{FitRequest, HyperparameterSearch, Method};
use std::path::{Path, PathBuf};

/// A fit, fully decided.
pub(crate) struct FitSettings {
    pub data: PathBuf,
    pub out: PathBuf,
    pub request: FitRequest,
    pub held_out: HeldOut,
    pub threads: Option<usize>,
    /// Whether the table is read part by part, where the user says so.
    pub stream: Option<bool>,
    /// Files that are read, and whether files of other kinds may be replaced.
    inputs: Vec<PathBuf>,
    force: bool,
    /// Whether a checkpoint that is there is not gone on from.
    pub fresh: bool,
}

/// Which rows do not train.
pub(crate) enum HeldOut {
    Nothing,
    Fold { file: PathBuf, fold: i64 },
    Fraction(f64),
}

impl HeldOut {
    /// For a table of so many rows.
    pub(crate) fn split(&self, rows: usize, seed: u64) -> Result<Split, Failure> {
        Ok(match self {
            Self::Nothing => Split::all(rows),
            Self::Fold { file, fold } => Split::from_folds(file, *fold, rows).map_err(Failure::from_error)?,
            Self::Fraction(f) => Split::random(rows, *f, Streams::new(seed)),
        })
    }
}

impl FitSettings {
    pub(crate) fn resolve(flags: &FitArgs) -> Result<Self, Failure> {
        let args = match &flags.config {
            Some(path) => merged(flags, read_config(path)?),
            None => flags.clone(),
        };
        let inputs = [&args.data, &flags.config, &args.folds, &args.hyperparameters];
        let inputs = inputs.into_iter().flatten().cloned().collect();
        let checkpoint = args.checkpoint.clone();
        let required = |value: Option<PathBuf>, name: &str| {
            value.ok_or_else(|| {
                Failure::usage(format!("--{name} is needed (as a flag or in the file of --config)"))
            })
        };
        let method = match args.method.unwrap_or(MethodArg::Auto) {
            MethodArg::Auto => Method::Auto,
            MethodArg::Exact => Method::Exact,
            MethodArg::Cg => Method::Cg,
            MethodArg::Sgd => Method::Sgd,
            MethodArg::Sdd => Method::Sdd,
            MethodArg::InducingSgd => Method::InducingSgd,
            MethodArg::Sgpr => Method::Sgpr,
            MethodArg::Svgp => Method::Svgp,
        };
        let scalable = scalable_settings::resolve(&args, method)?;
        let selection = Selection {
            target: args.target.ok_or_else(|| {
                Failure::usage("--target is needed: which column should be predicted?".into())
            })?,
            features: args.features,
            noise: args.noise,
            one_hot: args.one_hot.unwrap_or_default(),
            missing: match args.missing.unwrap_or(MissingArg::Error) {
                MissingArg::Error => Missing::Error,
                MissingArg::Drop => Missing::Drop,
                MissingArg::Mean => Missing::Mean,
            },
        };
        let mut request = FitRequest { selection, ..Default::default() };
        if let Some(text) = &args.kernel {
            request.kernel = text.parse().map_err(|e| Failure::usage(format!("--kernel: {e}")))?;
        }
        request.mean = match args.mean.unwrap_or(MeanArg::Constant) {
            MeanArg::Zero => MeanForm::Zero,
            MeanArg::Constant => MeanForm::Constant,
            MeanArg::Linear => MeanForm::Linear,
        };
        request.method = method;
        request.scalable = scalable;
        request.initial_noise = args.initial_noise.unwrap_or(request.initial_noise);
        request.noise_floor = args.noise_floor.unwrap_or(request.noise_floor);
        request.weak_lengthscale_prior =
            matches!(args.lengthscale_prior, None | Some(LengthscalePriorArg::Weak));
        let options = &mut request.options;
        options.criterion = match args.objective.unwrap_or(ObjectiveArg::Evidence) {
            ObjectiveArg::Evidence => Criterion::Evidence,
            ObjectiveArg::LeaveOneOut => Criterion::LeaveOneOut,
        };
        options.optimizer = match (args.optimizer.unwrap_or(OptimizerArg::Lbfgs), args.learning_rate) {
            (OptimizerArg::Lbfgs, None) => Optimizer::Lbfgs,
            // A stochastic search has taken it.
            (OptimizerArg::Lbfgs, Some(_))
                if matches!(request.scalable.search, HyperparameterSearch::Stochastic(_)) =>
            {
                Optimizer::Lbfgs
            }
            (OptimizerArg::Lbfgs, Some(_)) => {
                return Err(Failure::usage(
                    "--learning-rate belongs to --optimizer adam; lbfgs finds its own steps".into(),
                ));
            }
            (OptimizerArg::Adam, rate) => {
                Optimizer::Adam { learning_rate: positive("learning-rate", rate.unwrap_or(0.1))? }
            }
        };
        options.steps.steps = args.steps.unwrap_or(options.steps.steps);
        options.restarts = args.restarts.unwrap_or(options.restarts);
        if options.restarts == 0 {
            return Err(Failure::usage("--restarts must be at least 1".into()));
        }
        options.seed = args.seed.unwrap_or(0);
        options.hyperpriors = args.hyperpriors;
        options.constraints = constraints(args.fix.as_deref(), args.bound.as_deref())?;
        if let Some(gigabytes) = args.memory {
            options.memory_limit = (positive("memory", gigabytes)? * 1e9) as u64;
        }
        let held_out = match (args.folds, args.fold, args.test_fraction) {
            (None, None, None) => HeldOut::Nothing,
            (Some(file), Some(fold), None) => HeldOut::Fold { file, fold },
            (None, None, Some(f)) if f > 0.0 && f < 1.0 => HeldOut::Fraction(f),
            (None, None, Some(_)) => {
                return Err(Failure::usage("--test-fraction must be between 0 and 1".into()));
            }
            (_, _, Some(_)) => {
                return Err(Failure::usage("--test-fraction and --folds exclude each other".into()));
            }
            _ => return Err(Failure::usage("--folds and --fold belong together".into())),
        };
        let settings = Self {
            data: required(args.data, "data")?,
            out: required(args.out, "out")?,
            request,
            held_out,
            threads: args.threads,
            stream: args.stream,
            inputs,
            force: args.force,
            fresh: args.fresh.unwrap_or(false),
        };
        settings.check_outputs(checkpoint.as_deref())?;
        Ok(settings)
    }

    /// That the model, and its checkpoint where it has a place of its own, can be written.
    fn check_outputs(&self, checkpoint: Option<&Path>) -> Result<(), Failure> {
        // What stands in the ordinary place is forgotten by --fresh, whatever it is.
        let beside = self.request.scalable.checkpoint.as_deref().filter(|p| p.exists() && !self.fresh);
        let outputs =
            [(Some(self.out.as_path()), OutputKind::Model), (checkpoint.or(beside), OutputKind::Checkpoint)];
        check_outputs(&outputs, &self.inputs, self.force)
    }
}

/// What `--fix` and `--bound` say.
fn constraints(fix: Option<&[String]>, bound: Option<&[String]>) -> Result<Vec<Constraint>, Failure> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let held = |text: &String| {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => match number(value) {
                Some(value) => (name, Some(value)),
                None => return Err(Failure::usage(format!("--fix {text}: `{value}` is not a number"))),
            },
            None => (text.as_str(), None),
        };
        Ok(Constraint::Fixed { parameter: name.trim().into(), value })
    };
    let bounded = |text: &String| {
        let parts = text.split_once('=').and_then(|(name, range)| Some((name, range.split_once("..")?)));
        let found = parts.and_then(|(name, (lower, upper))| Some((name, number(lower)?, number(upper)?)));
        let Some((name, lower, upper)) = found else {
            return Err(Failure::usage(format!(
                "--bound {text}: write NAME=LOWER..UPPER, such as noise_variance=1e-3..0.1"
            )));
        };
        Ok(Constraint::Between { parameter: name.trim().into(), lower, upper })
    };
    let held = fix.unwrap_or_default().iter().map(held);
    held.chain(bound.unwrap_or_default().iter().map(bounded)).collect()
}

pub(crate) fn positive(name: &str, value: f64) -> Result<f64, Failure> {
    let fine = value.is_finite() && value > 0.0;
    if fine { Ok(value) } else { Err(Failure::usage(format!("--{name} must be a positive number"))) }
}

fn read_config(path: &Path) -> Result<FitArgs, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read the configuration {}: {e}", path.display())))?;
    let invalid =
        |why: String| Failure::usage(format!("{} is not a valid configuration: {why}", path.display()));
    let arguments = toml::from_str(&text).map_err(|e| invalid(e.to_string()))?;
    refuse_numbers(&text).map_err(invalid)?;
    Ok(arguments)
}

/// Numbers of a configuration obey the rules of the flags of their names.
fn refuse_numbers(text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let flags = table.iter().filter_map(|(name, value)| match value {
        toml::Value::Integer(number) => Some(format!("--{name}={number}")),
        toml::Value::Float(number) => Some(format!("--{name}={number}")),
        _ => None,
    });
    let line = ["posterior", "fit", "gp"].map(String::from).into_iter().chain(flags);
    match Cli::command().try_get_matches_from(line) {
        Err(e) if e.kind() == ErrorKind::ValueValidation => {
            let text = e.to_string();
            let line = text.lines().next().unwrap_or_default();
            Err(line.trim_start_matches("error: ").into())
        }
        _ => Ok(()),
    }
}

/// Each flag, or the file's value where the flag is absent.
fn merged(flags: &FitArgs, file: FitArgs) -> FitArgs {
    macro_rules! first {
        ($($field:ident),*) => {
            FitArgs {
                $($field: flags.$field.clone().or(file.$field),)*
                config: None,
                force: flags.force,
                hyperpriors: file.hyperpriors,
            }
        };
    }
    first!(
        data,
        target,
        features,
        noise,
        one_hot,
        missing,
        kernel,
        mean,
        method,
        objective,
        optimizer,
        learning_rate,
        steps,
        restarts,
        initial_noise,
        noise_floor,
        lengthscale_prior,
        samples,
        random_features,
        feature_form,
        feature_frequencies,
        time_budget,
        iterations,
        batch,
        step_size,
        momentum,
        tolerance,
        preconditioner,
        rank,
        precision,
        cache,
        inducing,
        inducing_choice,
        cover_radius,
        pruning_ratio,
        fixed_inducing,
        variational,
        natural_length,
        hyperparameter_search,
        search_iterations,
        blocks,
        block_size,
        refining_rows,
        held_back,
        samples_per_features,
        fix,
        bound,
        fresh,
        probes,
        probe_kind,
        neighbourhoods,
        neighbourhood_size,
        hyperparameters,
        checkpoint,
        checkpoint_every,
        stream,
        memory,
        folds,
        fold,
        test_fraction,
        seed,
        threads,
        out
    )
}
