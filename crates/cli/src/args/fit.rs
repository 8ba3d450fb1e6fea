//! The grammar of `fit`: of a table, around a trained network, of rows that are added to a model.
//!
//! Each of these is a grammar of its own, since flags of one name have other values in another. The flags of a command line tell which it has
//! ([`FitForm::of`]). Help shows the flags of all.

use super::help::rank;
use super::{FitRunArgs, InputArgs, LaplaceArgs, PredictiveArg, TableArgs, TuneArg};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use posterior::data::TextOptions;
use posterior::options::{CalibrateName, SETTING, numbers};
use std::path::PathBuf;

/// What is asked.
#[derive(Debug)]
pub(crate) enum FitArgs {
    /// A process on a table.
    Table(Box<TableArgs>),
    /// Error bars for a network.
    Network(Box<LaplaceArgs>),
    /// More rows of a model.
    Continue(Box<ContinueArgs>),
}

/// Which grammar a command line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FitForm {
    Table,
    Network,
    Continue,
}

/// How it is used.
const USAGE: &str = "posterior fit DATA... --target COL -o MODEL [OPTIONS]\n       \
                     posterior fit DATA... --network FILE --likelihood NAME -o MODEL [OPTIONS]\n       \
                     posterior fit DATA... --continue MODEL -o MODEL [OPTIONS]";

impl FitForm {
    /// The grammar in which these flags are given.
    pub(crate) fn of(given: impl Fn(&str) -> bool) -> Self {
        match () {
            () if given("continue") => Self::Continue,
            () if given("network") || given("head") => Self::Network,
            () => Self::Table,
        }
    }

    fn augment(self, command: Command) -> Command {
        match self {
            Self::Table => TableArgs::augment_args(command),
            Self::Network => LaplaceArgs::augment_args(command),
            Self::Continue => ContinueArgs::augment_args(command),
        }
    }

    /// The grammar as a command.
    pub(crate) fn command(self) -> Command {
        self.augment(Command::new("fit")).override_usage(USAGE)
    }

    /// Its settings.
    pub(crate) fn settings(self) -> Vec<Arg> {
        self.command().get_arguments().filter(|flag| is_setting(flag)).cloned().collect()
    }

    /// Its flag or setting of this name; settings of a group have a name with a dot.
    pub(crate) fn flag(self, name: &str) -> Option<Arg> {
        self.command().get_arguments().find(|flag| named(flag, name)).cloned()
    }

    /// Why a flag is wrong here that is a setting, or that only another grammar has.
    pub(crate) fn stranger(self, flag: &str) -> Option<String> {
        let id = flag.trim_start_matches(SETTING).replace('-', "_");
        if let Some(own) = self.command().get_arguments().find(|own| own.get_id() == id.as_str()) {
            let long = own.get_long().filter(|long| *long != flag)?;
            let value = if own.get_action().takes_values() { "=VALUE" } else { "" };
            let kind = if long.starts_with(SETTING) { "a setting" } else { "a flag" };
            return Some(format!("--{flag} is {kind}: write --{long}{value}"));
        }
        let of = |form: Self| form.command().get_arguments().any(|own| own.get_id() == id.as_str());
        match self {
            Self::Table if of(Self::Network) => {
                Some(format!("--{flag} is for networks: name one with --network, or leave --{flag} out"))
            }
            Self::Network if of(Self::Table) => Some(format!(
                "--{flag} is for tables without a network: leave it out, or leave --network out"
            )),
            Self::Continue if of(Self::Table) || of(Self::Network) => Some(format!(
                "--{flag} goes with a fit of its own, and --continue keeps what its model was fitted with (columns, kernel, method, hyperparameters, units): leave one of them out"
            )),
            _ => None,
        }
    }

    /// Why a method is wrong that another grammar has.
    pub(crate) fn other_method(self, name: &str) -> Option<String> {
        let has = |form: Self| {
            let command = form.command();
            let method = command.get_arguments().find(|own| own.get_long() == Some("method"));
            method.is_some_and(|own| own.get_possible_values().iter().any(|known| known.matches(name, false)))
        };
        match self {
            Self::Table if has(Self::Network) => {
                Some(format!("--method {name} is for networks: name one with --network"))
            }
            Self::Network if has(Self::Table) => {
                Some(format!("--method {name} is for tables without a network: leave --network out"))
            }
            _ => None,
        }
    }

    /// The values of those of these flags, as an error writes them, that have a choice of some.
    pub(crate) fn choices(self, flags: &[String]) -> Vec<String> {
        let command = self.command();
        let choice = |flag: &String| {
            let long = flag.strip_prefix("--")?.split(' ').next()?;
            let known = command.get_arguments().find(|own| own.get_long() == Some(long))?;
            let values: Vec<String> =
                known.get_possible_values().iter().map(|own| own.get_name().to_string()).collect();
            (!values.is_empty()).then(|| format!("--{long} is one of {}", values.join(", ")))
        };
        flags.iter().filter_map(choice).collect()
    }
}

/// Whether an argument is called so.
fn named(flag: &Arg, name: &str) -> bool {
    let longs = flag.get_long_and_visible_aliases().unwrap_or_default();
    let setting = flag.get_long().and_then(|long| long.strip_prefix(SETTING));
    longs.contains(&name) || setting == Some(name) || (flag.is_positional() && flag.get_id() == name)
}

/// Whether an argument is a setting.
pub(crate) fn is_setting(flag: &Arg) -> bool {
    flag.get_long().is_some_and(|long| long.starts_with(SETTING))
}

/// The flag that gives settings, `of_text` alone or of methods. What it gives is joined to it before a command line is read, so that it never has a value itself.
pub(crate) fn set_flag(of_text: bool) -> Arg {
    let help = match of_text {
        true => "Set how delimited text is read; `posterior methods text` lists the settings",
        false => {
            "Set an option of the method, listed by `posterior methods NAME`, or of the groups `prior` and `text`"
        }
    };
    Arg::new("set").long("set").value_name("NAME=VALUE").action(ArgAction::Append).help(help)
}

/// The flags of all grammars, as help shows them, without settings; a command line is read by the grammar of [its form](FitForm::command).
impl Args for FitArgs {
    fn augment_args(command: Command) -> Command {
        let mut flags = vec![set_flag(false)];
        for form in [FitForm::Table, FitForm::Network, FitForm::Continue] {
            for flag in form.command().get_arguments().filter(|flag| !is_setting(flag)) {
                if !flags.iter().any(|known| known.get_id() == flag.get_id()) {
                    // `posterior methods` has the methods.
                    flags.push(flag.clone().hide_possible_values(flag.get_id() == "method"));
                }
            }
        }
        // Headings stand in the order of their first flags.
        flags.sort_by_key(|flag| rank(flag.get_id().as_str()));
        command.override_usage(USAGE).args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FitArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let form = FitForm::of(|name| matches.ids().any(|id| id == name));
        Ok(match form {
            FitForm::Table => Self::Table(Box::new(TableArgs::from_arg_matches_mut(matches)?)),
            FitForm::Network => Self::Network(Box::new(LaplaceArgs::from_arg_matches_mut(matches)?)),
            FitForm::Continue => Self::Continue(Box::new(ContinueArgs::from_arg_matches_mut(matches)?)),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags of rows that are added to a model.
#[derive(Debug, Args)]
pub(crate) struct ContinueArgs {
    /// Rows to add, in files of the kind that the model was fitted to
    #[arg(value_name = "DATA", required_unless_present = "input", num_args = 1.., value_delimiter = ',')]
    pub data: Vec<PathBuf>,

    /// Add the rows of DATA to this model: a process by --method exact, or a network with error bars
    #[arg(long = "continue", id = "continue", value_name = "MODEL")]
    pub model: PathBuf,

    #[command(flatten)]
    pub inputs: InputArgs,

    #[command(flatten)]
    pub text: TextOptions,

    /// Networks: labels or targets of data that hold none
    #[arg(long, value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    pub labels: Vec<PathBuf>,

    /// Networks: how precisions and noise are chosen [default: as before]
    #[arg(long, value_enum)]
    pub tune: Option<TuneArg>,

    /// Networks: how uncertainty becomes a prediction [default: as before]
    #[arg(long, value_enum)]
    pub predictive: Option<PredictiveArg>,

    /// Networks: draws of --predictive monte-carlo [default: 1000]
    #[arg(long, value_name = "N", value_parser = numbers::whole(1..=numbers::MOST_KEPT))]
    pub predictive_samples: Option<usize>,

    /// Draws of the weights of a sampled posterior, in all
    #[arg(long = "set samples", value_name = "N", value_parser = numbers::whole(2..=numbers::MOST_KEPT))]
    pub samples: Option<usize>,

    /// Processes: whether intervals are made to hold what they say
    #[arg(long, value_enum, default_value_t)]
    pub calibrate: CalibrateName,

    /// Most memory that the fit may need, in gigabytes [default: 8]
    #[arg(long, value_name = "GB", value_parser = numbers::bytes)]
    pub memory: Option<u64>,

    /// Networks: seed of --predictive monte-carlo
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    #[command(flatten)]
    pub run: FitRunArgs,
}
