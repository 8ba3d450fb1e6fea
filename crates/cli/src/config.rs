//! Reading the command line: its settings, which grammar of `fit` it has, and the file of its `--config`, whose keys are flags and settings, put behind
//! those that were written. Flags win over the file, the file over the defaults.

use crate::args::{Cli, Command as Subcommand, FitArgs, FitForm, is_setting, set_flag, with_headings};
use crate::output::{self, Failure};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use posterior::gp::Hyperprior;
use posterior::options::{CANDIDATE, MethodName, SETTING};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Keys that only the command line has, and the only one that only files have.
const FLAGS_ONLY: [&str; 5] = ["config", "force", "help", "json", "quiet"];
const HYPERPRIORS: &str = "hyperprior";

/// A configuration as flags, and what no flag can say.
#[derive(Default)]
struct Configuration {
    /// Ids of flags and settings with their words.
    flags: Vec<(String, Vec<String>)>,
    hyperpriors: Vec<Hyperprior>,
}

/// Which grammar of `fit` a command line has; none of another command and where help is asked for, which shows all.
fn form_of<W: AsRef<OsStr>>(words: &[W]) -> Option<FitForm> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.as_ref().to_str()).collect();
    let command = words.iter().position(|word| !word.starts_with('-'))?;
    let words = &words[command..];
    if words[0] != "fit" || words.iter().any(|word| ["-h", "--help"].contains(word)) {
        return None;
    }
    let is = |word: &str, name: &str| {
        word.strip_prefix("--").is_some_and(|own| own.split('=').next() == Some(name))
    };
    Some(FitForm::of(|name| words.iter().any(|word| is(word, name))))
}

/// The grammar of a form of `fit` beside all other commands; of none, the one that help shows.
pub(crate) fn grammar(form: Option<FitForm>) -> Command {
    with_settings(match form {
        Some(form) => Cli::command().mut_subcommand("fit", |_| form.command()),
        None => Cli::command(),
    })
}

/// Hides settings, shows the flag that gives them where a command has some, and puts flags under headings.
fn with_settings(command: Command) -> Command {
    let command = command.mut_subcommands(with_settings);
    if !command.get_arguments().any(is_setting) {
        return with_headings(command);
    }
    let name = |own: &Arg| own.get_long()?.strip_prefix(SETTING).map(String::from);
    let of_text = command.get_arguments().filter_map(name).all(|name| name.starts_with("text."));
    let hidden = command.mut_args(|own| if is_setting(&own) { own.hide(true) } else { own });
    // Not under the heading of the flag before it.
    with_headings(hidden.next_help_heading(None).arg(set_flag(of_text)))
}

/// The grammar that a command line is read by, once [its settings are joined](joined).
pub(crate) fn grammar_of<W: AsRef<OsStr>>(words: &[W]) -> Command {
    grammar(form_of(words))
}

/// Joins `--set` and what it sets to one word, `--set NAME=VALUE`, which is a flag called `set NAME` of the grammar. No value is `true`.
pub(crate) fn joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut out, mut words) = (Vec::new(), words.into_iter());
    while let Some(word) = words.next() {
        let set = match word.to_str() {
            Some("--") => {
                out.push(word);
                out.extend(words);
                break;
            }
            Some("--set") => words.next(),
            Some(text) => text.strip_prefix("--set=").map(OsString::from),
            None => None,
        };
        out.push(set.map_or(word, |set| setting(&set)));
    }
    out
}

/// A setting as a word; one of a method by its name is that of a candidate of `auto`.
fn setting(set: &OsStr) -> OsString {
    let text = set.to_string_lossy();
    let name = text.split('=').next().unwrap_or_default();
    let of_method = |(of, _): (&str, &str)| MethodName::ALL.iter().any(|method| method.as_str() == of);
    let mut word = OsString::from(match name.split_once('.').is_some_and(of_method) {
        true => format!("--{CANDIDATE}="),
        false => format!("--{SETTING}"),
    });
    word.push(set);
    if !text.contains('=') {
        word.push("=true");
    }
    word
}

/// Reads a command line; mistakes of the command line end the program as clap has it.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Cli, Failure> {
    let words = joined(words);
    // Only a fit may name a configuration.
    let Some(form) = form_of(&words) else { return matched(grammar(None), None, words) };
    let found = grammar(Some(form)).ignore_errors(true).try_get_matches_from(&words);
    let Some((path, written)) = found.ok().and_then(|matches| configured(&matches)) else {
        return matched(grammar(Some(form)), Some(form), words);
    };
    let table = table(&path)?;
    let form = FitForm::of(|name| table.contains_key(name) || written.iter().any(|own| own == name));
    let configuration = read(&path, table, form)?;
    let (mut grammar, mut words) = (grammar(Some(form)), words);
    for (id, of_file) in configuration.flags {
        if written.contains(&id.replace('_', "-")) {
            continue;
        }
        // A list of a file is a list already: commas in it belong to names.
        grammar = without_delimiter(grammar, &id);
        // Files stand behind the command, where no flag can take one for its value.
        let files = of_file.first().is_some_and(|word| !word.starts_with("--"));
        let command = words.iter().position(|word| word == "fit").filter(|_| files);
        let place = command.map_or(words.len(), |at| at + 1);
        words.splice(place..place, of_file.into_iter().map(OsString::from));
    }
    let mut cli = matched(grammar, Some(form), words)?;
    match &mut cli.command {
        Subcommand::Fit(FitArgs::Table(arguments)) => {
            arguments.request.prior.hyperpriors = configuration.hyperpriors;
        }
        _ if configuration.hyperpriors.is_empty() => {}
        Subcommand::Fit(FitArgs::Continue(_)) => {
            return Err(Failure::usage(format!(
                "[[{HYPERPRIORS}]] tables are for a search, and --continue keeps the hyperparameters of its model: leave one of them out"
            )));
        }
        _ => {
            let problem = format!("[[{HYPERPRIORS}]] tables are for processes: leave them or --network out");
            return Err(Failure::usage(problem));
        }
    }
    Ok(cli)
}

/// `fit` with a flag, by its id, that does not split its values.
fn without_delimiter(grammar: Command, id: &str) -> Command {
    grammar.mut_subcommand("fit", |fit| fit.mut_arg(id, |arg| arg.value_delimiter(None)))
}

fn matched(mut grammar: Command, form: Option<FitForm>, words: Vec<OsString>) -> Result<Cli, Failure> {
    let set = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--")?.strip_prefix(SETTING));
    let set: Vec<String> = set.filter_map(|word| word.split('=').next()).map(String::from).collect();
    let matches = grammar.try_get_matches_from_mut(words);
    let cli = matches.and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(Cli { written: written(&matches), set, ..cli })
    });
    cli.or_else(|mut error| {
        if let Some(why) = incomplete(&error) {
            return Err(Failure::usage(why));
        }
        if let Some(why) = form.and_then(|form| stranger(form, &error)) {
            return Err(Failure::usage(why));
        }
        if let (ErrorKind::MissingRequiredArgument, Some(form)) = (error.kind(), form) {
            let mut tips = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(flags)) => form.choices(flags),
                _ => Vec::new(),
            };
            tips.push("a --config file can hold them as well".into());
            let tips = tips.into_iter().map(Into::into).collect();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
        // No file begins with two dashes.
        if error.kind() == ErrorKind::UnknownArgument {
            error.remove(ContextKind::Suggested);
        }
        output::exit(error)
    })
}

/// What an error is about.
fn about(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Why a setting is wrong that is given without its name or its value.
fn incomplete(error: &clap::Error) -> Option<String> {
    let setting = about(error, ContextKind::InvalidArg)?.strip_prefix("--")?.strip_prefix(SETTING)?;
    let name = setting.split(' ').next()?;
    match error.kind() {
        ErrorKind::UnknownArgument if name.is_empty() || name.starts_with('-') => {
            Some("--set needs NAME=VALUE; `posterior methods NAME` lists the settings of a method".into())
        }
        // What a switch is set to where nothing is said.
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
            if about(error, ContextKind::InvalidValue)? == "true" =>
        {
            Some(format!("--set {name} needs a value other than true: write --set {name}=VALUE"))
        }
        _ => None,
    }
}

/// Why a flag or a method is wrong that another grammar of `fit` has.
fn stranger(form: FitForm, error: &clap::Error) -> Option<String> {
    let flag = about(error, ContextKind::InvalidArg)?.strip_prefix("--")?;
    match error.kind() {
        ErrorKind::UnknownArgument => form.stranger(flag),
        ErrorKind::InvalidValue if flag.starts_with("method ") => {
            form.other_method(about(error, ContextKind::InvalidValue)?)
        }
        _ => None,
    }
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

/// The configuration that `fit` names, and the flags that are written beside it.
fn configured(matches: &ArgMatches) -> Option<(PathBuf, Vec<String>)> {
    let fit = matches.subcommand_matches("fit")?;
    let path = fit.try_get_one::<PathBuf>("config").ok()??.clone();
    Some((path, written(fit)))
}

/// Why a file is no configuration.
fn invalid(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} is not a valid configuration: {why}", path.display()))
}

/// What a file holds.
fn table(path: &Path) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read the configuration {}: {e}", path.display())))?;
    text.parse().map_err(|e: toml::de::Error| invalid(path, &e.to_string()))
}

fn read(path: &Path, table: Table, form: FitForm) -> Result<Configuration, Failure> {
    let invalid = |why: String| invalid(path, &why);
    let mut configuration = Configuration::default();
    for (name, value) in table {
        if name == HYPERPRIORS {
            configuration.hyperpriors = value.try_into().map_err(|e| invalid(e.to_string()))?;
            continue;
        }
        // A table holds the settings of a group, or of a candidate of `auto`.
        let each = match value {
            Value::Table(own) => {
                own.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect()
            }
            value => vec![(name, value)],
        };
        for (name, value) in each {
            configuration.flags.push(flag_of(form, &name, value).map_err(|why| match why {
                Unfit::Invalid(why) => invalid(why),
                Unfit::Stranger(why) => Failure::usage(why),
            })?);
        }
    }
    Ok(configuration)
}

/// Why a key cannot be used.
enum Unfit {
    Invalid(String),
    Stranger(String),
}

/// The id of what a key stands for, and its words.
fn flag_of(form: FitForm, name: &str, value: Value) -> Result<(String, Vec<String>), Unfit> {
    let method = name.split_once('.').filter(|(of, _)| MethodName::ALL.iter().any(|own| own.as_str() == *of));
    let flag = form.flag(if method.is_some() { CANDIDATE } else { name });
    let Some(flag) = flag.filter(|_| !FLAGS_ONLY.contains(&name)) else {
        let known = form.flag(name).is_some();
        let why = form.stranger(name).filter(|_| !known).map(Unfit::Stranger);
        let unknown = format!("unknown field `{name}`: the fields are the flags and settings of fit");
        return Err(why.unwrap_or(Unfit::Invalid(unknown)));
    };
    let words = words(&flag, name, value).map_err(Unfit::Invalid)?;
    let id = flag.get_id().to_string();
    check(form, &id, &words).map_err(Unfit::Invalid)?;
    Ok((id, words))
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
        (one, ArgAction::Append) if name == "data" || flag.get_long() == Some(CANDIDATE) => vec![one],
        (_, ArgAction::Append) => return Err(format!("`{name}` takes a list: write {name} = [\"...\"]")),
        (Value::Boolean(truth), ArgAction::SetTrue) => {
            let long = flag.get_long().unwrap_or(name);
            return Ok(if truth { vec![format!("--{long}")] } else { Vec::new() });
        }
        (one, _) => vec![one],
    };
    let begin = match flag.get_long() {
        None => String::new(),
        Some(CANDIDATE) => format!("--{CANDIDATE}={name}="),
        Some(long) => format!("--{long}="),
    };
    let word = |value: Value| match value {
        Value::String(text) => Ok(format!("{begin}{text}")),
        Value::Integer(number) => Ok(format!("{begin}{number}")),
        Value::Float(number) => Ok(format!("{begin}{number}")),
        Value::Boolean(truth) => Ok(format!("{begin}{truth}")),
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
fn check(form: FitForm, id: &str, words: &[String]) -> Result<(), String> {
    let line = ["posterior", "fit"].into_iter().chain(words.iter().map(String::as_str));
    match without_delimiter(grammar(Some(form)), id).try_get_matches_from(line) {
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
    fn settings_are_joined_to_their_flag() {
        let line = "fit --set a=1 --set=b.c=d=e --set dense --set svgp.batch=3 --sets 0.9 -- --set x";
        let words = joined(line.split(' ').map(OsString::from));
        let expected = [
            "fit",
            "--set a=1",
            "--set b.c=d=e",
            "--set dense=true",
            "--set candidate=svgp.batch=3",
            "--sets",
            "0.9",
            "--",
            "--set",
            "x",
        ];
        assert_eq!(words, expected.map(OsString::from));
    }

    #[test]
    fn lists_of_files_may_hold_commas_and_flags_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "data = \"t.csv\"\ntarget = \"y\"\noutput = \"m\"\nfeatures = [\"a, b\", \"c\"]\nmethod = \"svgp\"\nbatch = 7\n\
                    step-size = 0.25\nfixed-inducing = true\n";
        std::fs::write(&path, text).unwrap();
        let config = path.to_str().unwrap();
        let line = ["posterior", "--quiet", "fit", "--config", config, "--set", "batch=9"];
        let cli = parse(line.into_iter().map(OsString::from).collect()).unwrap();
        let Subcommand::Fit(FitArgs::Table(arguments)) = cli.command else { panic!("another command") };
        let request = &arguments.request;
        assert_eq!(request.columns.features, Some(vec!["a, b".into(), "c".into()]));
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
            ("tune = \"evidence\"", "--tune is for networks"),
            ("samples = 0", "a whole number from 1"),
            ("[prior]\nmean = \"median\"", "invalid value 'median'"),
            ("mean = \"zero\"", "write --set prior.mean=VALUE"),
            ("seed = { a = 1 }", "unknown field `seed.a`"),
            ("[svgp]\nbatch = { a = 1 }", "cannot be table"),
            ("seed = [1, 2]", "`seed` takes one value"),
            ("features = []", "`features` is an empty list"),
            ("features = \"a,b\"", "`features` takes a list"),
            ("data = []", "`data` is an empty list"),
            ("bound = [\"a=1..2,b=3..4\"]", "NAME=LOWER..UPPER"),
        ] {
            let path = folder.path().join("c.toml");
            std::fs::write(&path, text).unwrap();
            let failure = read(&path, table(&path).unwrap(), FitForm::Table).err().unwrap();
            assert!(format!("{failure:?}").contains(expected), "{text}: {failure:?}");
        }
    }
}
