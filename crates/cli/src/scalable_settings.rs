//! From flags to the settings of methods for large tables.

use crate::args::{FitArgs, InducingChoiceArg, KernelPrecisionArg, PreconditionerArg};
use crate::output::Failure;
use crate::settings::positive;
use posterior::gp::iterative::Neighbourhoods;
use posterior::kernels::inducing::InducingChoice;
use posterior::linalg::solve::PreconditionerChoice;
use posterior::{AnyModel, KernelPrecision, Method, ScalableSettings};
use std::path::{Path, PathBuf};

pub(crate) fn resolve(args: &FitArgs, method: Method) -> Result<ScalableSettings, Failure> {
    refuse_strangers(args, method)?;
    let default = ScalableSettings::default();
    let gigabytes = |value: f64| -> Result<usize, Failure> {
        match value {
            v if v.is_finite() && v >= 0.0 => Ok((v * 1e9) as usize),
            _ => Err(Failure::usage("--cache must be a number of gigabytes".into())),
        }
    };
    let rank = args.rank.unwrap_or(100);
    Ok(ScalableSettings {
        samples: args.samples.unwrap_or(default.samples),
        features: args.random_features.unwrap_or(default.features),
        precision: match args.precision {
            Some(KernelPrecisionArg::F64) => KernelPrecision::Double,
            _ => KernelPrecision::Single,
        },
        steps: args.iterations,
        seconds: args.time_budget.as_deref().map(seconds).transpose()?,
        batch: args.batch,
        step_size: args.step_size.map(|v| positive("step-size", v)).transpose()?,
        momentum: args.momentum,
        tolerance: args.tolerance.map(|v| positive("tolerance", v)).transpose()?,
        preconditioner: match args.preconditioner {
            Some(PreconditionerArg::None) => PreconditionerChoice::None,
            Some(PreconditionerArg::Nystrom) => {
                PreconditionerChoice::Nystrom { rank, seed: args.seed.unwrap_or(0) }
            }
            _ => PreconditionerChoice::PivotedCholesky { rank, relative_tolerance: 1e-3 },
        },
        inducing: args.inducing.unwrap_or(default.inducing),
        choice: match args.inducing_choice {
            None | Some(InducingChoiceArg::KMeans) => InducingChoice::KMeans,
            Some(InducingChoiceArg::Greedy) => InducingChoice::GreedyVariance,
            Some(InducingChoiceArg::Random) => InducingChoice::Random,
            Some(InducingChoiceArg::Cover) => InducingChoice::Cover { radius: 0.5 },
        },
        learn_inducing: !args.fixed_inducing.unwrap_or(false),
        neighbourhoods: Neighbourhoods {
            count: args.neighbourhoods.unwrap_or(default.neighbourhoods.count),
            size: args.neighbourhood_size.unwrap_or(default.neighbourhoods.size),
            seed: args.seed.unwrap_or(0),
        },
        hyperparameters: args.hyperparameters.as_deref().map(given).transpose()?,
        cache_bytes: args.cache.map(gigabytes).transpose()?.unwrap_or(0),
        checkpoint: args.checkpoint.clone().or_else(|| args.out.as_deref().map(beside)),
        checkpoint_seconds: args
            .checkpoint_every
            .map(|v| positive("checkpoint-every", v))
            .transpose()?
            .unwrap_or(default.checkpoint_seconds),
    })
}

/// `MODEL.checkpoint`
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_os_string();
    name.push(".checkpoint");
    out.with_file_name(name)
}

/// Options that the method does not have are mistakes, not decoration.
fn refuse_strangers(args: &FitArgs, method: Method) -> Result<(), Failure> {
    use Method::{Auto, Cg, Exact, InducingSgd, Sdd, Sgd, Sgpr, Svgp};
    let pathwise: &[Method] = &[Auto, Cg, Sgd, Sdd, InducingSgd];
    let stochastic: &[Method] = &[Auto, Sgd, Sdd, InducingSgd, Svgp];
    let inducing: &[Method] = &[InducingSgd, Sgpr, Svgp];
    let large: &[Method] = &[Auto, Cg, Sgd, Sdd, InducingSgd, Sgpr, Svgp];
    // Bounds have one search of their own, iterative methods one for each neighbourhood.
    let searched: &[Method] = &[Auto, Exact, Cg, Sgd, Sdd, InducingSgd];
    let table: [(&str, bool, &[Method]); 24] = [
        ("--restarts", args.restarts.is_some(), &[Auto, Exact]),
        ("--objective", args.objective.is_some(), searched),
        ("--optimizer", args.optimizer.is_some(), searched),
        ("--learning-rate", args.learning_rate.is_some(), searched),
        ("--steps", args.steps.is_some(), &[Auto, Exact, Cg, Sgd, Sdd, InducingSgd, Sgpr]),
        ("--checkpoint", args.checkpoint.is_some(), large),
        ("--checkpoint-every", args.checkpoint_every.is_some(), large),
        ("--samples", args.samples.is_some(), pathwise),
        ("--random-features", args.random_features.is_some(), pathwise),
        ("--time-budget", args.time_budget.is_some(), large),
        ("--iterations", args.iterations.is_some(), large),
        ("--batch", args.batch.is_some(), stochastic),
        ("--step-size", args.step_size.is_some(), stochastic),
        ("--momentum", args.momentum.is_some(), &[Auto, Sdd]),
        ("--tolerance", args.tolerance.is_some(), &[Auto, Cg, Sgd, Sdd]),
        ("--preconditioner", args.preconditioner.is_some(), &[Cg]),
        ("--rank", args.rank.is_some(), &[Cg]),
        ("--precision", args.precision.is_some(), pathwise),
        ("--cache", args.cache.is_some(), &[Auto, Cg, Sgd, Sdd]),
        ("--inducing", args.inducing.is_some(), inducing),
        ("--inducing-choice", args.inducing_choice.is_some(), inducing),
        ("--fixed-inducing", args.fixed_inducing.is_some(), &[Sgpr, Svgp]),
        ("--neighbourhoods", args.neighbourhoods.is_some() || args.neighbourhood_size.is_some(), pathwise),
        ("--hyperparameters", args.hyperparameters.is_some(), large),
    ];
    let search = [
        ("--steps", args.steps.is_some()),
        ("--objective", args.objective.is_some()),
        ("--optimizer", args.optimizer.is_some()),
        ("--learning-rate", args.learning_rate.is_some()),
        ("--neighbourhoods", args.neighbourhoods.is_some()),
        ("--neighbourhood-size", args.neighbourhood_size.is_some()),
    ];
    if args.hyperparameters.is_some()
        && pathwise.contains(&method)
        && let Some((flag, _)) = search.iter().find(|(_, given)| *given)
    {
        return Err(Failure::usage(format!(
            "{flag} belongs to the search for hyperparameters, which --hyperparameters gives; the solver's steps are --iterations"
        )));
    }
    for (flag, given, methods) in table {
        if given && !methods.contains(&method) {
            let names: Vec<&str> = methods.iter().filter(|m| **m != Auto).map(|m| m.name()).collect();
            let problem = format!("{flag} belongs to --method {}", names.join(", "));
            return Err(Failure::usage(if method == Exact {
                problem
            } else {
                format!("{problem}; {} has none", method.name())
            }));
        }
    }
    Ok(())
}

/// `90`, `90s`, `5m`, `2h`.
fn seconds(text: &str) -> Result<f64, Failure> {
    let text = text.trim();
    let (number, unit) = match text.char_indices().last() {
        Some((i, 's')) => (&text[..i], 1.0),
        Some((i, 'm')) => (&text[..i], 60.0),
        Some((i, 'h')) => (&text[..i], 3600.0),
        _ => (text, 1.0),
    };
    number
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|v| v.is_finite() && *v > 0.0)
        .map(|v| v * unit)
        .ok_or_else(|| Failure::usage(format!("--time-budget {text} is no time; write 90s, 5m or 2h")))
}

/// The hyperparameters of a model file, or of a JSON object of names and numbers (or lists of them), in standard units.
fn given(path: &Path) -> Result<Vec<posterior::Hyperparameter>, Failure> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot read hyperparameters from {}: {e}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Values {
            One(f64),
            Many(Vec<f64>),
        }
        let map: std::collections::BTreeMap<String, Values> =
            serde_json::from_str(&text).map_err(|e| failed(&e))?;
        let named = |(name, values)| match values {
            Values::One(v) => posterior::Hyperparameter { name, values: vec![v] },
            Values::Many(values) => posterior::Hyperparameter { name, values },
        };
        return Ok(map.into_iter().map(named).collect());
    }
    match AnyModel::load(path).map_err(Failure::from_display)? {
        AnyModel::Process(model) => Ok(model.header().hyperparameters.clone()),
        AnyModel::Laplace(_) => {
            Err(Failure::usage(format!("{} is no Gaussian process: it has no kernel", path.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)] {
            assert_eq!(seconds(text).unwrap(), expected);
        }
        for text in ["", "m", "-3s", "NaN", "5 minutes"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(beside(Path::new("a/b.posterior")), Path::new("a/b.posterior.checkpoint"));
    }
}
