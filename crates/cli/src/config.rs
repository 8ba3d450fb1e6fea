//! The file of `fit gp --config`: its keys are flags, put behind those that were written. Flags win over the file, the file over the defaults.

use crate::args::{Cli, Command as Subcommand, FitModel};
use crate::output::{self, Failure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use posterior::gp::Hyperprior;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys that only the command line has, and the only one that only files have.
const FLAGS_ONLY: [&str; 5] = ["config", "force", "help", "json", "quiet"];
const HYPERPRIORS: &str = "hyperprior";

/// A configuration as flags, and what no flag can say.
#[derive(Default)]
struct Configuration {
    /// Names of flags with their words.
    flags: Vec<(String, Vec<String>)>,
    hyperpriors: Vec<Hyperprior>,
}

/// Reads a command line; mistakes of the command line end the program as clap has it.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Cli, Failure> {
    let mut grammar = Cli::command();
    let written = Cli::command().ignore_errors(true).try_get_matches_from(&words);
    let Some((path, written)) = written.ok().and_then(|m| configured(&m)) else {
        return matched(grammar, words);
    };
    let configuration = read(&path)?;
    let mut words = words;
    for (name, of_file) in configuration.flags {
        if written.contains(&name) {
            continue;
        }
        // A list of a file is a list already: commas in it belong to names.
        grammar = without_delimiter(grammar, &name);
        words.extend(of_file.into_iter().map(OsString::from));
    }
    let mut cli = matched(grammar, words)?;
    if let Subcommand::Fit(FitModel::Gp(arguments)) = &mut cli.command {
        if arguments.continue_from.is_some() && !configuration.hyperpriors.is_empty() {
            return Err(Failure::usage(format!(
                "[[{HYPERPRIORS}]] tables are for a search, and --continue keeps the hyperparameters of its model: leave one of them out"
            )));
        }
        arguments.request.hyperpriors = configuration.hyperpriors;
    }
    Ok(cli)
}

/// `fit gp` with a flag that does not split its values.
fn without_delimiter(grammar: Command, flag: &str) -> Command {
    let id = flag.replace('-', "_");
    grammar.mut_subcommand("fit", |fit| {
        fit.mut_subcommand("gp", |gp| gp.mut_arg(id, |arg| arg.value_delimiter(None)))
    })
}

fn matched(grammar: Command, words: Vec<OsString>) -> Result<Cli, Failure> {
    let mut grammar = grammar;
    let fits_process = words.iter().any(|word| word == "gp");
    let matches = grammar.try_get_matches_from_mut(words);
    if let Some(gp) = matches.as_ref().ok().and_then(fits_process_of) {
        refuse_beside_continue(gp)?;
    }
    let cli = matches.and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut grammar))?;
        Ok(Cli { written: written(&matches), ..cli })
    });
    Ok(cli.unwrap_or_else(|mut error| {
        if error.kind() == ErrorKind::MissingRequiredArgument && fits_process {
            let tip = "they may stand in the file of --config instead".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        output::exit(error)
    }))
}

/// The flags (and groups of flags) of the named command that are written, without their dashes.
fn written(matches: &ArgMatches) -> Vec<String> {
    if let Some((_, own)) = matches.subcommand() {
        return written(own);
    }
    let ids = matches.ids().map(clap::Id::as_str);
    let ids = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    ids.map(|id| id.replace('_', "-")).collect()
}

/// What `fit gp` was asked.
fn fits_process_of(matches: &ArgMatches) -> Option<&ArgMatches> {
    matches.subcommand_matches("fit")?.subcommand_matches("gp")
}

/// What goes beside `fit gp --continue`: all else is the model's own, and was said when it was fitted.
const BESIDE_CONTINUE: [&str; 13] = [
    "continue",
    "data",
    "out",
    "force",
    "config",
    "memory",
    "calibrate",
    "threads",
    "delimiter",
    "decimal",
    "encoding",
    "json",
    "quiet",
];

/// Refuses flags (and keys of a configuration) that would mean nothing beside `fit gp --continue`.
fn refuse_beside_continue(gp: &ArgMatches) -> Result<(), Failure> {
    let written = written(gp);
    if !written.iter().any(|flag| flag == "continue") {
        return Ok(());
    }
    let grammar = Cli::command();
    let flags = fits_process_in(&grammar).into_iter().flat_map(Command::get_arguments);
    // Groups of flags are no flags.
    let flags: Vec<String> = flags.map(|flag| flag.get_id().as_str().replace('_', "-")).collect();
    let goes = |name: &String| BESIDE_CONTINUE.contains(&name.as_str()) || !flags.contains(name);
    match written.iter().find(|name| !goes(name)) {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!(
            "--{flag} goes with a fit of its own, and --continue keeps what its model was fitted with (columns, kernel, method, hyperparameters, units): leave one of them out"
        ))),
    }
}

/// The grammar of `fit gp`.
fn fits_process_in(grammar: &Command) -> Option<&Command> {
    grammar.find_subcommand("fit")?.find_subcommand("gp")
}

/// The configuration that `fit gp` names, and the flags that are written beside it.
fn configured(matches: &ArgMatches) -> Option<(PathBuf, Vec<String>)> {
    let gp = fits_process_of(matches)?;
    let path = gp.try_get_one::<PathBuf>("config").ok()??.clone();
    Some((path, written(gp)))
}

fn read(path: &Path) -> Result<Configuration, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read the configuration {}: {e}", path.display())))?;
    let invalid =
        |why: String| Failure::usage(format!("{} is not a valid configuration: {why}", path.display()));
    let table: Table = text.parse().map_err(|e: toml::de::Error| invalid(e.to_string()))?;
    let grammar = Cli::command();
    let flag = |name: &str| {
        fits_process_in(&grammar).and_then(|gp| gp.get_arguments().find(|a| a.get_long() == Some(name)))
    };
    let mut configuration = Configuration::default();
    for (name, value) in table {
        if name == HYPERPRIORS {
            configuration.hyperpriors = value.try_into().map_err(|e| invalid(e.to_string()))?;
            continue;
        }
        let Some(flag) = flag(&name).filter(|_| !FLAGS_ONLY.contains(&name.as_str())) else {
            return Err(invalid(format!("unknown field `{name}`: the fields are the flags of fit gp")));
        };
        let words = words(flag, &name, value).map_err(invalid)?;
        check(&name, &words).map_err(invalid)?;
        configuration.flags.push((name, words));
    }
    Ok(configuration)
}

/// A key and its value as flags; a list, where the flag takes one, is a flag that is repeated.
fn words(flag: &Arg, name: &str, value: Value) -> Result<Vec<String>, String> {
    let values = match (value, flag.get_action()) {
        (Value::Array(values), ArgAction::Append) if values.is_empty() => {
            return Err(format!("`{name}` is an empty list: leave it out, or name something"));
        }
        (Value::Array(values), ArgAction::Append) => values,
        // Commas belong to names here: those that have some are quoted, as `--target` reads them.
        (Value::Array(values), _) if name == "target" => vec![Value::String(targets(values)?)],
        (Value::Array(_), _) => return Err(format!("`{name}` takes one value, not a list")),
        // One file is the usual table.
        (one, ArgAction::Append) if name == "data" => vec![one],
        (_, ArgAction::Append) => return Err(format!("`{name}` takes a list: write {name} = [\"...\"]")),
        (one, _) => vec![one],
    };
    let word = |value: Value| match value {
        Value::String(text) => Ok(format!("--{name}={text}")),
        Value::Integer(number) => Ok(format!("--{name}={number}")),
        Value::Float(number) => Ok(format!("--{name}={number}")),
        Value::Boolean(truth) => Ok(format!("--{name}={truth}")),
        other => Err(format!("`{name}` cannot be {}", other.type_str())),
    };
    values.into_iter().map(word).collect()
}

/// A list of targets as the text of the flag.
fn targets(values: Vec<Value>) -> Result<String, String> {
    if values.is_empty() {
        return Err("`target` is an empty list: name at least one".into());
    }
    let quoted = |value: Value| match value {
        Value::String(name) if name.contains([',', '"']) => Ok(format!("\"{}\"", name.replace('"', "\"\""))),
        Value::String(name) => Ok(name),
        Value::Integer(number) => Ok(number.to_string()),
        other => Err(format!("`target` cannot be {} in a list: name columns", other.type_str())),
    };
    Ok(values.into_iter().map(quoted).collect::<Result<Vec<_>, _>>()?.join(","))
}

/// Values of a file obey the rules of the flags of their names.
fn check(name: &str, words: &[String]) -> Result<(), String> {
    let line = ["posterior", "fit", "gp"].into_iter().chain(words.iter().map(String::as_str));
    match without_delimiter(Cli::command(), name).try_get_matches_from(line) {
        Err(e) if matches!(e.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
            let text = e.to_string();
            Err(text.lines().next().unwrap_or_default().trim_start_matches("error: ").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_files_may_hold_commas_and_flags_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "data = \"t.csv\"\ntarget = \"y\"\nout = \"m\"\nfeatures = [\"a, b\", \"c\"]\nmethod = \"svgp\"\nbatch = 7\n\
                    step-size = 0.25\nfixed-inducing = true\n";
        std::fs::write(&path, text).unwrap();
        let line = ["posterior", "--quiet", "fit", "gp", "--config", path.to_str().unwrap(), "--batch", "9"];
        let cli = parse(line.into_iter().map(OsString::from).collect()).unwrap();
        let Subcommand::Fit(FitModel::Gp(arguments)) = cli.command else { panic!("another command") };
        let request = &arguments.request;
        assert_eq!(request.selection.features, Some(vec!["a, b".into(), "c".into()]));
        let posterior::Method::Svgp(options) = &request.method else { panic!("another method") };
        assert!(cli.quiet && options.fixed_inducing);
        assert_eq!((options.batches.batch, options.batches.step_size), (Some(9), Some(0.25)));
    }

    #[test]
    fn keys_and_values_are_those_of_flags() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in [
            ("kernal = \"se\"", "unknown field `kernal`"),
            ("force = true", "unknown field `force`"),
            ("samples = 0", "a whole number from 1"),
            ("mean = \"median\"", "invalid value 'median'"),
            ("seed = { a = 1 }", "cannot be table"),
            ("seed = [1, 2]", "`seed` takes one value"),
            ("features = []", "`features` is an empty list"),
            ("features = \"a,b\"", "`features` takes a list"),
            ("data = []", "`data` is an empty list"),
            ("bound = [\"a=1..2,b=3..4\"]", "NAME=LOWER..UPPER"),
        ] {
            let path = folder.path().join("c.toml");
            std::fs::write(&path, text).unwrap();
            let failure = read(&path).err().unwrap();
            assert!(format!("{failure:?}").contains(expected), "{text}: {failure:?}");
        }
    }
}
