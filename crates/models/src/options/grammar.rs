//! Methods as one command line: settings stand behind `--set`, what most methods share are flags, and those that the method asked for does not have are
//! refused.
//!
//! `--set NAME=VALUE` is one word of the grammar: a flag called `set NAME`, whose value parser, range and choices are those of the settings struct. So
//! errors and suggestions are clap's.

use super::beside::Beside;
use super::method::{Method, MethodName};
use super::methods::AutoOptions;
use super::search::EvidenceOptions;
use super::{groups, gvi, methods, search};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Id, ValueEnum, value_parser};
use serde::Serialize;
use std::sync::LazyLock;

/// What the names of flags begin with that are settings: `--set inducing=10` is the flag `set inducing`.
pub const SETTING: &str = "set ";

/// What the flag is called that holds settings of candidates of `auto`: `--set candidate=svgp.inducing=10`.
pub const CANDIDATE: &str = "set candidate";

/// What large tables share, whatever the method: these are flags and no settings.
const FLAGS: [&str; 5] = ["checkpoint", "fresh", "checkpoint_every", "held_back", "from_disk"];

/// All that is declared, in the order in which it is checked.
fn beside() -> impl Iterator<Item = &'static Beside> {
    groups::INDUCING_BESIDE
        .iter()
        .chain(methods::SVGP_BESIDE)
        .chain(search::BESIDE)
        .chain(gvi::BESIDE)
        .chain(groups::SYSTEM_BESIDE)
}

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

/// A flag as a setting of a method or, with the name of a method and a dot, of a candidate; what large tables share is left a flag.
fn set(flag: Arg, of: &str) -> Arg {
    let shared = of.is_empty() && FLAGS.contains(&flag.get_id().as_str());
    match flag.get_long().filter(|_| !shared).map(|long| format!("{SETTING}{of}{long}")) {
        // Names live as long as the grammar, which lives as long as the program.
        Some(long) => flag.long(String::leak(long) as &str),
        None => flag,
    }
}

/// A flag or a setting as it is written, by its id.
fn shown(id: &str) -> String {
    let name = id.replace('_', "-");
    let set = !FLAGS.contains(&id) && MethodName::ALL.iter().any(|method| method.has(id));
    if set { format!("--{SETTING}{name}") } else { format!("--{name}") }
}

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

    /// Whether it has a setting, or a flag that large tables share, by its id.
    fn has(self, flag: &str) -> bool {
        NAMES.iter().any(|(name, own)| *name == self && own.iter().any(|id| id == flag))
    }
}

/// A setting as lists of settings show it, made of its struct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingInfo {
    /// Its name behind `--set`.
    pub name: String,
    /// Its values, or what they are called.
    pub values: String,
    /// Its default, where that is one value; others stand in the meaning.
    pub default: Option<String>,
    /// What it sets.
    pub meaning: String,
}

impl SettingInfo {
    /// Of a flag of a grammar or of a settings struct.
    pub fn of(flag: &Arg) -> Self {
        let long = flag.get_long().unwrap_or_else(|| flag.get_id().as_str());
        let choices: Vec<String> =
            flag.get_possible_values().iter().map(|choice| choice.get_name().into()).collect();
        let names = flag.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        let defaults = flag.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let default = defaults.collect::<Vec<_>>().join(",");
        Self {
            name: long.strip_prefix(SETTING).unwrap_or(long).into(),
            values: if choices.is_empty() { names.collect::<Vec<_>>().join(" ") } else { choices.join("|") },
            default: (!default.is_empty()).then_some(default),
            meaning: flag.get_help().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

impl MethodName {
    /// Its settings, without the flags that large tables share.
    pub fn settings(self) -> Vec<SettingInfo> {
        let own = self.flags();
        own.iter().filter(|flag| !FLAGS.contains(&flag.get_id().as_str())).map(SettingInfo::of).collect()
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
            .help("How to compute the posterior: `posterior methods` lists the methods")
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
        for flag in MethodName::ALL.iter().flat_map(|name| name.flags()) {
            let id = flag.get_id().clone();
            if !command.get_arguments().any(|known| *known.get_id() == id) {
                command = command.arg(set(flag, ""));
            }
        }
        let candidates = Arg::new("candidate").long(CANDIDATE).action(ArgAction::Append);
        command.arg(candidates.value_name("METHOD.NAME=VALUE"))
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
        let conflict = |why: String| Error::raw(ErrorKind::ArgumentConflict, why);
        refuse(name, matches).map_err(conflict)?;
        let candidates: Vec<String> = matches.remove_many("candidate").into_iter().flatten().collect();
        let mut method = name.parse(matches)?;
        for text in candidates {
            let Method::Auto(auto) = &mut method else {
                let own = text.split_once('.').map_or(text.as_str(), |(_, own)| own);
                return Err(conflict(format!(
                    "--set {text} is for a candidate of --method auto: with --method {name} write --set {own}"
                )));
            };
            let (candidate, settings) = candidate(&text)?;
            auto.candidates.push((candidate, settings));
        }
        Ok(method)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What `METHOD.NAME=VALUE` sets of a candidate of `auto`, as its settings are written in files.
fn candidate(text: &str) -> Result<(MethodName, serde_json::Map<String, serde_json::Value>), Error> {
    let conflict = |why: String| Error::raw(ErrorKind::ArgumentConflict, why);
    let (method, setting) = text.split_once('.').unwrap_or(("", text));
    let name = MethodName::from_str(method, false).ok();
    let Some(name) = name.filter(|name| AutoOptions::CANDIDATES.contains(name)) else {
        let names: Vec<&str> = AutoOptions::CANDIDATES.iter().map(|name| name.as_str()).collect();
        return Err(conflict(format!(
            "--set {text}: the candidates with settings of their own are {}; sdd has those of auto",
            names.join(", ")
        )));
    };
    let of = format!("{method}.");
    let grammar = name.augment(Command::new("fit").no_binary_name(true)).mut_args(|flag| set(flag, &of));
    let mut matches = grammar.try_get_matches_from([format!("--{SETTING}{method}.{setting}")])?;
    let given: Vec<String> = given(&matches).map(|id| id.replace('_', "-")).collect();
    let own = name.parse(&mut matches)?;
    let own = serde_json::to_value(own).map_err(|e| conflict(e.to_string()))?;
    let own = own.as_object().cloned().unwrap_or_default();
    Ok((name, own.into_iter().filter(|(key, _)| given.contains(key)).collect()))
}

/// The ids of what was written.
fn given(matches: &ArgMatches) -> impl Iterator<Item = &str> {
    let ids = matches.ids().map(Id::as_str);
    ids.filter(move |id| matches.value_source(id) == Some(ValueSource::CommandLine))
}

/// Options that the method does not have are mistakes, not decoration; so are those that mean nothing beside the others.
fn refuse(name: MethodName, matches: &ArgMatches) -> Result<(), String> {
    let given: Vec<&str> = given(matches).collect();
    let has = |flag: &str| name.has(flag);
    let evidence = flags(EvidenceOptions::augment_args);
    // Bounds that move inducing points search all the same, but for what is given.
    let of_search = |id: &str| SEARCH.contains(&id) || evidence.iter().any(|arg| arg.get_id() == id);
    let idle = |id: &str| ["fix", "bound"].contains(&id) || (has("objective") && of_search(id));
    if let (true, Some(flag)) =
        (given.contains(&"hyperparameters"), given.iter().find(|id| has(id) && idle(id)))
    {
        return Err(format!(
            "{} belongs to the search for hyperparameters, which --hyperparameters gives; the solver's steps are --set iterations",
            shown(flag)
        ));
    }
    let stranger =
        given.iter().map(|id| (id, owners(id))).find(|(id, owners)| !owners.is_empty() && !has(id));
    if let Some((flag, owners)) = stranger {
        return Err(format!(
            "{} belongs to --method {owners}; {name} has none: `posterior methods {name}` lists its settings",
            shown(flag)
        ));
    }
    let value = |id: &str| -> Option<String> {
        if id == "method" {
            return Some(name.as_str().into());
        }
        has(id).then(|| matches.get_raw(id)?.next()?.to_str().map(Into::into)).flatten()
    };
    for (flags, needed, what) in beside() {
        let met = |(id, values): &(&str, &[&str])| value(id).is_some_and(|v| values.contains(&v.as_str()));
        if let Some(flag) = flags.iter().find(|flag| given.contains(flag))
            && !needed.iter().any(met)
        {
            return Err(format!("{} belongs to {what}", shown(flag)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::FitRequest;
    use crate::options::beside::Needed;

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
                let id = flag.get_id().as_str();
                let long = format!("{}={}", shown(id), allowed(flag));
                // What it means something beside, where the method leaves a choice.
                let needed = beside().find(|b| b.0.contains(&id)).map(|b| b.1);
                let contexts = needed.into_iter().flatten().filter(|(other, _)| name.has(other));
                let mut lines = vec![vec![format!("--method={name}"), long.clone()]];
                let chosen = |(other, values): &Needed| format!("{}={}", shown(other), values[0]);
                lines.extend(contexts.map(|needed| {
                    // What stands beside it may itself mean something only beside another.
                    let further = beside().find(|b| b.0.contains(&needed.0)).map(|b| b.1);
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
    fn settings_of_a_candidate_are_its_own() {
        let words = ["--set candidate=svgp.inducing=10", "--set iterations=7"];
        let Method::Auto(auto) = parse(&words).unwrap().method else { panic!("another method") };
        let (svgp, sgpr) = (auto.stochastic_bound(), auto.collapsed_bound());
        assert_eq!((svgp.inducing.inducing, svgp.large.iterations), (Some(10), Some(7)));
        assert_eq!((sgpr.inducing.inducing, sgpr.large.iterations), (None, Some(7)));
        for (words, expected) in [
            (&["--set candidate=svgp.inducing=0"][..], "'--set svgp.inducing <M>'"),
            (&["--set candidate=dbk.rank=3"][..], "are exact, cg, sap, sgpr, svgp"),
            (&["--method=svgp", "--set candidate=svgp.inducing=3"][..], "write --set inducing=3"),
        ] {
            let text = parse(words).unwrap_err();
            assert!(text.contains(expected), "{words:?}: {text}");
        }
    }

    #[test]
    fn no_flags_are_the_defaults_of_every_method() {
        for name in MethodName::ALL {
            let mut expected = FitRequest { method: Method::from(*name), ..FitRequest::default() };
            expected.columns.target = "y".into();
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
