//! From flags to the settings of methods for large tables.

use crate::args::{
    FeatureFormArg, FeatureFrequenciesArg, FitArgs, HyperparameterSearchArg, InducingChoiceArg,
    KernelPrecisionArg, PreconditionerArg, ProbeKindArg, VariationalArg,
};
use crate::output::Failure;
use crate::settings::positive;
use posterior::gp::inducing::stochastic::VariationalOptimizer;
use posterior::gp::iterative::{Blocks, Neighbourhoods, ProbeKind};
use posterior::kernels::features::{FeatureForm, FeatureSettings, FrequencyDraw};
use posterior::kernels::inducing::InducingChoice;
use posterior::linalg::solve::PreconditionerChoice;
use posterior::{
    AnyModel, HyperparameterSearch, KernelPrecision, Method, ScalableSettings, StochasticSearch,
};
use std::path::{Path, PathBuf};

pub(crate) fn resolve(args: &FitArgs, method: Method) -> Result<ScalableSettings, Failure> {
    refuse_strangers(args, method)?;
    refuse_loners(args)?;
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
        features: FeatureSettings {
            count: args.random_features.unwrap_or(default.features.count),
            form: match args.feature_form {
                Some(FeatureFormArg::Phase) => FeatureForm::Phase,
                None | Some(FeatureFormArg::Paired) => FeatureForm::Paired,
            },
            frequencies: match args.feature_frequencies {
                None | Some(FeatureFrequenciesArg::Independent) => FrequencyDraw::Independent,
                Some(FeatureFrequenciesArg::Orthogonal) => FrequencyDraw::Orthogonal,
                Some(FeatureFrequenciesArg::QuasiRandom) => FrequencyDraw::QuasiRandom,
            },
        },
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
            Some(InducingChoiceArg::Cover) => {
                InducingChoice::Cover { radius: positive("cover-radius", args.cover_radius.unwrap_or(0.5))? }
            }
            Some(InducingChoiceArg::Pruned) => {
                let ratio = positive("pruning-ratio", args.pruning_ratio.unwrap_or(1.0))?;
                InducingChoice::Pruned { neighbours: 100, ratio }
            }
        },
        learn_inducing: !args.fixed_inducing.unwrap_or(false),
        variational: match args.variational {
            Some(VariationalArg::Adam) => VariationalOptimizer::Adam,
            None | Some(VariationalArg::Natural) => VariationalOptimizer::NaturalGradient {
                length: args.natural_length.unwrap_or(0.1),
                warm_up: 20,
            },
        },
        samples_per_features: args.samples_per_features.or(default.samples_per_features),
        search: search(args)?,
        blocks: Blocks {
            uniform: args.blocks.unwrap_or(default.blocks.uniform),
            neighbourhoods: args.blocks.unwrap_or(default.blocks.neighbourhoods),
            size: args.block_size.unwrap_or(default.blocks.size),
            seed: args.seed.unwrap_or(0),
        },
        refining_rows: args.refining_rows.unwrap_or(default.refining_rows),
        held_back: args.held_back,
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

/// How hyperparameters of iterative methods are learned.
fn search(args: &FitArgs) -> Result<HyperparameterSearch, Failure> {
    let refined = match args.hyperparameter_search {
        None | Some(HyperparameterSearchArg::Blocks) => return Ok(HyperparameterSearch::Blocks),
        Some(HyperparameterSearchArg::Neighbourhoods) => return Ok(HyperparameterSearch::Neighbourhoods),
        Some(HyperparameterSearchArg::Stochastic) => false,
        Some(HyperparameterSearchArg::Refined) => true,
    };
    let default = StochasticSearch::default();
    Ok(HyperparameterSearch::Stochastic(StochasticSearch {
        steps: args.steps.unwrap_or(default.steps),
        learning_rate: positive("learning-rate", args.learning_rate.unwrap_or(default.learning_rate))?,
        probes: args.probes.unwrap_or(default.probes),
        kind: match args.probe_kind {
            Some(ProbeKindArg::Signs) => ProbeKind::Signs,
            None | Some(ProbeKindArg::Pathwise) => ProbeKind::Pathwise,
        },
        iterations: args.search_iterations.unwrap_or(default.iterations),
        refined,
    }))
}

/// Options that mean something only beside another one.
fn refuse_loners(args: &FitArgs) -> Result<(), Failure> {
    let choice = |wanted: fn(&InducingChoiceArg) -> bool| args.inducing_choice.as_ref().is_some_and(wanted);
    let searches = |search: HyperparameterSearchArg| args.hyperparameter_search == Some(search);
    let stochastic =
        searches(HyperparameterSearchArg::Stochastic) || searches(HyperparameterSearchArg::Refined);
    let adam = matches!(args.variational, Some(VariationalArg::Adam));
    let rules = [
        (
            args.cover_radius.is_some(),
            "--cover-radius",
            choice(|c| matches!(c, InducingChoiceArg::Cover)),
            "--inducing-choice cover",
        ),
        (
            args.pruning_ratio.is_some(),
            "--pruning-ratio",
            choice(|c| matches!(c, InducingChoiceArg::Pruned)),
            "--inducing-choice pruned",
        ),
        (args.natural_length.is_some(), "--natural-length", !adam, "--variational natural"),
        (args.probes.is_some(), "--probes", stochastic, "--hyperparameter-search stochastic or refined"),
        (
            args.probe_kind.is_some(),
            "--probe-kind",
            stochastic,
            "--hyperparameter-search stochastic or refined",
        ),
        (
            args.search_iterations.is_some(),
            "--search-iterations",
            stochastic,
            "--hyperparameter-search stochastic or refined",
        ),
        (
            args.neighbourhoods.is_some() || args.neighbourhood_size.is_some(),
            "--neighbourhoods and --neighbourhood-size",
            searches(HyperparameterSearchArg::Neighbourhoods),
            "--hyperparameter-search neighbourhoods",
        ),
        (
            args.blocks.is_some() || args.block_size.is_some() || args.refining_rows.is_some(),
            "--blocks, --block-size and --refining-rows",
            !searches(HyperparameterSearchArg::Neighbourhoods)
                && !searches(HyperparameterSearchArg::Stochastic),
            "--hyperparameter-search blocks or refined",
        ),
        (
            args.fix.is_some() || args.bound.is_some(),
            "--fix and --bound",
            !stochastic,
            "searches by exact evidence, not to stochastic ones",
        ),
        (
            args.objective.is_some() || args.optimizer.is_some(),
            "--objective and --optimizer",
            !searches(HyperparameterSearchArg::Stochastic),
            "searches by exact evidence, not to --hyperparameter-search stochastic, which is Adam on the evidence",
        ),
    ];
    match rules.iter().find(|(given, _, together, _)| *given && !together) {
        Some((_, flag, _, other)) => Err(Failure::usage(format!("{flag} belongs to {other}"))),
        None => Ok(()),
    }
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
    // Stochastic searches solve by conjugate gradients, whatever solves for the posterior.
    let stochastic_search = args
        .hyperparameter_search
        .is_some_and(|s| matches!(s, HyperparameterSearchArg::Stochastic | HyperparameterSearchArg::Refined));
    let conjugate: &[Method] = if stochastic_search { pathwise } else { &[Cg] };
    let cached: &[Method] = if stochastic_search { pathwise } else { &[Auto, Cg, Sgd, Sdd] };
    let table: [(&str, bool, &[Method]); 35] = [
        ("--restarts", args.restarts.is_some(), &[Auto, Exact]),
        ("--objective", args.objective.is_some(), searched),
        ("--optimizer", args.optimizer.is_some(), searched),
        ("--learning-rate", args.learning_rate.is_some(), searched),
        ("--steps", args.steps.is_some(), &[Auto, Exact, Cg, Sgd, Sdd, InducingSgd, Sgpr]),
        ("--checkpoint", args.checkpoint.is_some(), large),
        ("--checkpoint-every", args.checkpoint_every.is_some(), large),
        ("--samples", args.samples.is_some(), pathwise),
        ("--random-features", args.random_features.is_some(), pathwise),
        ("--samples-per-features", args.samples_per_features.is_some(), pathwise),
        ("--held-back", args.held_back.is_some(), large),
        ("--fresh", args.fresh.is_some(), large),
        ("--fix and --bound", args.fix.is_some() || args.bound.is_some(), searched),
        (
            "--blocks, --block-size and --refining-rows",
            args.blocks.is_some() || args.block_size.is_some() || args.refining_rows.is_some(),
            pathwise,
        ),
        ("--iterations", args.iterations.is_some(), large),
        ("--batch", args.batch.is_some(), stochastic),
        ("--step-size", args.step_size.is_some(), stochastic),
        ("--momentum", args.momentum.is_some(), &[Auto, Sdd]),
        ("--tolerance", args.tolerance.is_some(), &[Auto, Cg, Sgd, Sdd]),
        ("--preconditioner", args.preconditioner.is_some(), conjugate),
        ("--rank", args.rank.is_some(), conjugate),
        ("--precision", args.precision.is_some(), pathwise),
        ("--cache", args.cache.is_some(), cached),
        ("--inducing", args.inducing.is_some(), inducing),
        ("--inducing-choice", args.inducing_choice.is_some(), inducing),
        ("--fixed-inducing", args.fixed_inducing.is_some(), &[Sgpr, Svgp]),
        ("--neighbourhoods", args.neighbourhoods.is_some() || args.neighbourhood_size.is_some(), pathwise),
        ("--feature-form", args.feature_form.is_some(), pathwise),
        ("--feature-frequencies", args.feature_frequencies.is_some(), pathwise),
        ("--cover-radius", args.cover_radius.is_some(), inducing),
        ("--pruning-ratio", args.pruning_ratio.is_some(), inducing),
        ("--variational", args.variational.is_some(), &[Svgp]),
        ("--natural-length", args.natural_length.is_some(), &[Svgp]),
        ("--hyperparameter-search", args.hyperparameter_search.is_some(), pathwise),
        ("--probes and --probe-kind", args.probes.is_some() || args.probe_kind.is_some(), pathwise),
    ];
    let search = [
        ("--hyperparameter-search", args.hyperparameter_search.is_some()),
        ("--steps", args.steps.is_some()),
        ("--objective", args.objective.is_some()),
        ("--optimizer", args.optimizer.is_some()),
        ("--learning-rate", args.learning_rate.is_some()),
        ("--neighbourhoods", args.neighbourhoods.is_some()),
        ("--neighbourhood-size", args.neighbourhood_size.is_some()),
        ("--blocks", args.blocks.is_some()),
        ("--block-size", args.block_size.is_some()),
        ("--refining-rows", args.refining_rows.is_some()),
        ("--restarts", args.restarts.is_some()),
        ("--fix", args.fix.is_some()),
        ("--bound", args.bound.is_some()),
    ];
    if args.hyperparameters.is_some()
        && searched.contains(&method)
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
