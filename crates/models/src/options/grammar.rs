//! Methods as one command line: all flags are listed, each below the methods that have it, and those that the method asked for does not have are refused.

use super::method::{Method, MethodName};
use super::search::EvidenceOptions;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Id, value_parser};
use std::sync::LazyLock;

/// A flag and its values.
type Needed = (&'static str, &'static [&'static str]);

const STOCHASTIC: Needed = ("hyperparameter_search", &["stochastic", "refined"]);

/// Flags that mean something only beside certain values of others, one of which is needed; in words.
const BESIDE: &[(&[&str], &[Needed], &str)] = &[
    (&["cover_radius"], &[("inducing_choice", &["cover"])], "--inducing-choice cover"),
    (&["pruning_ratio"], &[("inducing_choice", &["pruned"])], "--inducing-choice pruned"),
    (&["natural_length"], &[("variational", &["natural"])], "--variational natural"),
    // Steps on all rows follow blocks by themselves, unless told of larger blocks.
    (
        &["probes", "probe_kind", "search_solver", "search_passes"],
        &[("hyperparameter_search", &["blocks", "stochastic", "refined"])],
        "--hyperparameter-search blocks, stochastic or refined",
    ),
    (
        &["probes", "probe_kind", "search_solver", "search_passes"],
        &[STOCHASTIC, ("refining_rows", &["4000"])],
        "steps on all rows, which follow blocks where --refining-rows is not given: leave that out, or take --hyperparameter-search refined",
    ),
    (
        &["neighbourhoods", "neighbourhood_size"],
        &[("hyperparameter_search", &["neighbourhoods"])],
        "--hyperparameter-search neighbourhoods",
    ),
    (
        &["blocks", "block_size", "refining_rows"],
        &[("hyperparameter_search", &["blocks", "refined"])],
        "--hyperparameter-search blocks or refined",
    ),
    (
        &["objective", "optimizer"],
        &[
            ("hyperparameter_search", &["blocks", "neighbourhoods", "refined"]),
            ("method", &["exact", "dbk", "svdbk", "dkl", "svdkl", "gvi"]),
        ],
        "searches by exact evidence, not to --hyperparameter-search stochastic, which is Adam on the evidence",
    ),
    (
        &["learning_rate"],
        &[("optimizer", &["adam"]), STOCHASTIC],
        "--optimizer adam; lbfgs finds its own steps",
    ),
    (
        &["alternations"],
        &[("prior_rows", &["0"])],
        "--prior-rows 0, which learns the prior on its inducing points in turns",
    ),
    (
        &["rows_together"],
        &[
            (
                "regulariser",
                &[
                    "wasserstein",
                    "wasserstein-symmetric-roots",
                    "wasserstein-two-batches",
                    "squared-difference",
                ],
            ),
            ("objective", &["gwi"]),
        ],
        "regularisers of matrices: --objective gwi, --regulariser wasserstein or squared-difference",
    ),
    (
        &["preconditioner"],
        &[("method", &["cg", "dbk", "svdbk", "dkl", "svdkl"]), ("search_solver", &["cg"])],
        "--method cg, or to --search-solver cg",
    ),
    (
        &["rank"],
        &[("method", &["cg", "sap", "dbk", "svdbk", "dkl", "svdkl"]), ("search_solver", &["cg"])],
        "--method cg, sap, or to --search-solver cg",
    ),
    (
        &["cache"],
        &[("method", &["auto", "cg", "sgd", "sdd", "sap"]), STOCHASTIC],
        "--method cg, sgd, sdd, sap, or to --hyperparameter-search stochastic or refined",
    ),
];

/// Flags of searches for hyperparameters beside those of [`EvidenceOptions`]: nothing is searched for where hyperparameters are given.
const SEARCH: [&str; 14] = [
    "restarts",
    "prior_rows",
    "alternations",
    "regulariser_risk",
    "hyperparameter_search",
    "blocks",
    "block_size",
    "refining_rows",
    "neighbourhoods",
    "neighbourhood_size",
    "probes",
    "probe_kind",
    "search_solver",
    "search_passes",
];

fn flags(augment: impl Fn(Command) -> Command) -> Vec<Arg> {
    augment(Command::new("")).get_arguments().cloned().collect()
}

/// The names of the flags of each method. The command line asks for them thousands of times while it is built: making them each time took most of a short command.
static NAMES: LazyLock<Vec<(MethodName, Vec<Id>)>> = LazyLock::new(|| {
    let names = |name: &MethodName| name.flags().iter().map(|flag| flag.get_id().clone()).collect();
    MethodName::ALL.iter().map(|name| (*name, names(name))).collect()
});

impl MethodName {
    /// Flags of this method.
    fn flags(self) -> Vec<Arg> {
        flags(|command| self.augment(command))
    }

    fn has(self, flag: &str) -> bool {
        NAMES.iter().any(|(name, own)| *name == self && own.iter().any(|id| id == flag))
    }
}

/// The methods that have a flag, but for `auto`, which has what those have that it chooses from.
fn owners(flag: &str) -> String {
    let all = MethodName::ALL.iter().filter(|name| **name != MethodName::Auto && name.has(flag));
    all.map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Args for Method {
    fn augment_args(command: Command) -> Command {
        let method = Arg::new("method")
            .long("method")
            .value_name("METHOD")
            .help("How to compute the posterior; flags of methods are listed below")
            .value_parser(value_parser!(MethodName))
            .default_value(MethodName::Auto.as_str());
        let mut command = command.arg(method);
        // Events have no target: what stands in for it is their window.
        let known = |name: &str| command.get_arguments().any(|own| own.get_id() == name);
        if known("target") && known("window") {
            command = command.mut_arg("target", |target| {
                target
                    .required(false)
                    .default_value("")
                    .hide_default_value(true)
                    .required_unless_present("window")
            });
        }
        for (order, flag) in MethodName::ALL.iter().flat_map(|name| name.flags()).enumerate() {
            let id = flag.get_id().clone();
            if !command.get_arguments().any(|known| *known.get_id() == id) {
                let heading = format!("With --method {}", owners(id.as_str()));
                // Headings live as long as the grammar, which lives as long as the program.
                command = command.arg(flag.help_heading(String::leak(heading) as &str).display_order(order));
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Method {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let name = matches.remove_one("method").unwrap_or(MethodName::Auto);
        refuse(name, matches).map_err(|why| Error::raw(ErrorKind::ArgumentConflict, why))?;
        name.parse(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options that the method does not have are mistakes, not decoration; so are those that mean nothing beside the others.
fn refuse(name: MethodName, matches: &ArgMatches) -> Result<(), String> {
    let given: Vec<&str> = matches
        .ids()
        .map(clap::Id::as_str)
        .filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine))
        .collect();
    let long = |id: &str| format!("--{}", id.replace('_', "-"));
    let has = |flag: &str| name.has(flag);
    let evidence = flags(EvidenceOptions::augment_args);
    // Bounds that move inducing points search all the same, but for what is given.
    let of_search = |id: &str| SEARCH.contains(&id) || evidence.iter().any(|arg| arg.get_id() == id);
    let idle = |id: &str| ["fix", "bound"].contains(&id) || (has("objective") && of_search(id));
    if let (true, Some(flag)) =
        (given.contains(&"hyperparameters"), given.iter().find(|id| has(id) && idle(id)))
    {
        return Err(format!(
            "{} belongs to the search for hyperparameters, which --hyperparameters gives; the solver's steps are --iterations",
            long(flag)
        ));
    }
    let stranger =
        given.iter().map(|id| (id, owners(id))).find(|(id, owners)| !owners.is_empty() && !has(id));
    if let Some((flag, owners)) = stranger {
        return Err(format!("{} belongs to --method {owners}; {name} has none", long(flag)));
    }
    let value = |id: &str| -> Option<String> {
        if id == "method" {
            return Some(name.as_str().into());
        }
        has(id).then(|| matches.get_raw(id)?.next()?.to_str().map(Into::into)).flatten()
    };
    for (flags, needed, what) in BESIDE {
        let met = |(id, values): &(&str, &[&str])| value(id).is_some_and(|v| values.contains(&v.as_str()));
        if let Some(flag) = flags.iter().find(|flag| given.contains(flag))
            && !needed.iter().any(met)
        {
            return Err(format!("{} belongs to {what}", long(flag)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::FitRequest;

    fn parse(words: &[&str]) -> Result<FitRequest, String> {
        let line = ["fit", "--target", "y"].iter().chain(words);
        let matches = FitRequest::augment_args(Command::new("fit")).try_get_matches_from(line);
        matches.and_then(|m| FitRequest::from_arg_matches(&m)).map_err(|e| e.to_string())
    }

    /// A value that the flag takes.
    fn allowed(flag: &Arg) -> String {
        let choices = flag.get_possible_values();
        match (choices.first(), flag.get_id().as_str()) {
            (Some(choice), _) => choice.get_name().into(),
            (None, "bound") => "noise_variance=1..2".into(),
            (None, "momentum" | "natural_length") => "0.5".into(),
            (None, "regulariser") => "projected-kl".into(),
            (None, "rows_together") => "16".into(),
            _ => "1".into(),
        }
    }

    #[test]
    fn each_method_accepts_its_own_flags_and_refuses_those_of_others() {
        let mut all: Vec<Arg> = Vec::new();
        for flag in MethodName::ALL.iter().flat_map(|name| name.flags()) {
            if !all.iter().any(|known| known.get_id() == flag.get_id()) {
                all.push(flag);
            }
        }
        assert!(all.len() >= 40, "{}", all.len());
        for name in MethodName::ALL {
            for flag in &all {
                let long = format!("--{}={}", flag.get_long().unwrap(), allowed(flag));
                let id = flag.get_id().as_str();
                // What it means something beside, where the method leaves a choice.
                let beside = BESIDE.iter().find(|b| b.0.contains(&id)).map(|b| b.1);
                let contexts = beside.into_iter().flatten().filter(|(other, _)| name.has(other));
                let mut lines = vec![vec![format!("--method={name}"), long.clone()]];
                let chosen =
                    |(other, values): &Needed| format!("--{}={}", other.replace('_', "-"), values[0]);
                lines.extend(contexts.map(|needed| {
                    // What stands beside it may itself mean something only beside another.
                    let further = BESIDE.iter().find(|b| b.0.contains(&needed.0)).map(|b| b.1);
                    let further = further.into_iter().flatten().find(|(other, _)| name.has(other));
                    let mut line = vec![format!("--method={name}"), chosen(needed), long.clone()];
                    line.extend(further.map(chosen));
                    line
                }));
                let results: Vec<Result<FitRequest, String>> =
                    lines.iter().map(|l| parse(&l.iter().map(String::as_str).collect::<Vec<_>>())).collect();
                if name.has(id) {
                    assert!(results.iter().any(Result::is_ok), "{name} {long}: {results:?}");
                } else {
                    let text = results[0].clone().unwrap_err();
                    let expected = format!("belongs to --method {}; {name} has none", owners(id));
                    assert!(text.contains(&expected), "{name} {long}: {text}");
                }
            }
        }
    }

    #[test]
    fn no_flags_are_the_defaults_of_every_method() {
        for name in MethodName::ALL {
            let mut expected = FitRequest { method: Method::from(*name), ..FitRequest::default() };
            expected.selection.target = "y".into();
            assert_eq!(parse(&["--method", name.as_str()]), Ok(expected));
        }
    }

    #[test]
    fn tables_hold_what_flags_do_and_nothing_else() {
        for name in MethodName::ALL {
            let method = Method::from(*name);
            let table = serde_json::to_value(&method).unwrap();
            let mut keys: Vec<String> = table.as_object().unwrap().keys().cloned().collect();
            let mut longs: Vec<String> =
                name.flags().iter().filter_map(|f| f.get_long().map(String::from)).collect();
            longs.push("method".into());
            keys.sort();
            longs.sort();
            assert_eq!(keys, longs);
            assert_eq!(serde_json::from_value::<Method>(table).unwrap(), method);
        }
        let read = |text: &str| toml::from_str::<Method>(text);
        let Method::Sdd(options) = read("method = \"sdd\"\niterations = 7\nmomentum = 0.5").unwrap() else {
            panic!("another method")
        };
        assert_eq!((options.iterative.large.iterations, options.momentum), (Some(7), 0.5));
        let text = read("method = \"exact\"\niterations = 7").unwrap_err().to_string();
        assert!(text.contains("exact has no option `iterations`"), "{text}");
    }
}
