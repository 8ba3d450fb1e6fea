//! `posterior methods`: the methods with what they cost, and the settings of one, made of their structs.

use super::demo_networks::perceptron;
use crate::args::{Cli, Command, CurvatureArg, FitArgs, FitForm, MethodsArgs, SETTINGS};
use crate::output::{Failure, print, print_json, table_under};
use crate::{config, laplace_settings};
use clap::{Arg, ValueEnum};
use posterior::data::json;
use posterior::likelihoods::{Gaussian, OutputLikelihood};
use posterior::linalg::random::Streams;
use posterior::models::FitCost;
use posterior::networks::Network;
use posterior::options::{MethodName, SETTING, SettingInfo};
use posterior::{FitRequest, Method, Model};
use serde::Serialize;

/// Rows that costs are computed for.
const ROWS: [usize; 2] = [1_000, 100_000];

/// Columns of these rows.
const COLUMNS: usize = 8;

/// Units of the two hidden layers of the network that costs are computed for; it has one output.
const UNITS: usize = 64;

/// How many rows there are for each validation row of that network.
const ROWS_FOR_EACH_UNSEEN: usize = 10;

/// What methods are for.
const TABLES: &str = "tables";
const NETWORKS: &str = "networks";

/// Groups of settings that all methods for tables share, and files.
const GROUPS: [(&str, &str); 2] = [
    ("prior", "The prior of processes, whatever the method"),
    ("text", "How delimited text is read, by every command that reads tables"),
];

pub(crate) fn run(cli: &Cli, arguments: &MethodsArgs) -> Result<(), Failure> {
    match &arguments.name {
        None => list(cli),
        Some(name) => describe(cli, name),
    }
}

/// What a choice is.
fn about<V: ValueEnum>(choice: &V) -> String {
    let help = choice.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
    help.unwrap_or_default()
}

/// What a default fit by a method is planned to take.
fn costs(name: MethodName) -> Vec<FitCost> {
    let request = FitRequest { method: Method::from(name), ..FitRequest::default() };
    let names: Vec<String> = (1..=COLUMNS).map(|column| format!("x{column}")).collect();
    ROWS.iter().map(|rows| Model::fit_cost(&request, *rows, &names)).collect()
}

/// The network that costs are computed for, and its likelihood.
fn reference() -> Result<(Network<f32>, OutputLikelihood), Failure> {
    let network = Network::initialised(perceptron(&[COLUMNS, UNITS, UNITS, 1])?, Streams::new(0))?;
    Ok((network, OutputLikelihood::Gaussian(Gaussian::independent(vec![1.0])?)))
}

/// What a default fit around that network is planned to take.
fn network_costs(
    (network, likelihood): &(Network<f32>, OutputLikelihood),
    name: CurvatureArg,
) -> Result<Vec<FitCost>, Failure> {
    let line =
        format!("posterior fit x.npy --network n.onnx --likelihood gaussian --method {name} -o n.posterior");
    let cli = config::parse(line.split(' ').map(Into::into).collect())?;
    let Command::Fit(FitArgs::Network(arguments)) = &cli.command else { return Ok(Vec::new()) };
    let request = laplace_settings::request(&cli, arguments)?;
    let cost = |rows: &usize| {
        let counts = (*rows, rows / ROWS_FOR_EACH_UNSEEN);
        Ok(Model::network_fit_cost(network, likelihood, &request, counts)?)
    };
    ROWS.iter().map(cost).collect()
}

/// A cost in a few words.
fn in_words(cost: &FitCost) -> String {
    let time: String = match cost.seconds {
        None => "?".into(),
        Some(seconds) if seconds < 1.0 => "under 1 s".into(),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.0} s"),
        Some(seconds) if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        Some(seconds) => format!("{:.0} h", seconds / 3600.0),
    };
    let limit = FitRequest::default().limits.memory;
    let over = if cost.bytes > limit { "*" } else { "" };
    let memory = match cost.bytes as f64 / 1e9 {
        gigabytes if gigabytes >= 10.0 => format!("{gigabytes:.0} GB"),
        gigabytes if gigabytes >= 0.01 => format!("{gigabytes:.2} GB"),
        gigabytes => format!("{:.1} MB", gigabytes * 1e3),
    };
    format!("{time}, {memory}{over}")
}

/// What costs of networks are computed for.
fn reference_in_words() -> String {
    format!(
        "a network of {COLUMNS} inputs, two hidden layers of {UNITS} units and one output, with one validation row for each {ROWS_FOR_EACH_UNSEEN} training rows"
    )
}

/// A method with what it is and what it costs.
#[derive(Serialize)]
struct Listed {
    name: String,
    #[serde(rename = "for")]
    of: &'static str,
    about: String,
    costs: Vec<FitCost>,
}

/// Methods of one kind as a table.
fn table_of(methods: &[Listed], of: &str) -> String {
    let own: Vec<&Listed> = methods.iter().filter(|own| own.of == of).collect();
    let rows = own.iter().map(|own| {
        let costs = own.costs.iter().map(|cost| {
            let chosen = if cost.method == own.name || of == NETWORKS {
                String::new()
            } else {
                format!("{}: ", cost.method)
            };
            format!("{chosen}{}", in_words(cost))
        });
        std::iter::once(own.name.clone()).chain(costs).collect::<Vec<_>>()
    });
    let costs = table_under([&format!("for {of}"), "1,000 rows", "100,000 rows"], rows);
    let what = std::iter::once("what it is, and what for").chain(own.iter().map(|own| &own.about[..]));
    let lines: Vec<String> = costs.lines().zip(what).map(|(line, what)| format!("{line}  {what}")).collect();
    lines.join("\n")
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let reference = reference()?;
    let tables = MethodName::ALL.iter().map(|name| {
        Ok(Listed { name: name.to_string(), of: TABLES, about: about(name), costs: costs(*name) })
    });
    let networks = CurvatureArg::value_variants().iter().map(|name| {
        let costs = network_costs(&reference, *name)?;
        Ok(Listed { name: name.to_string(), of: NETWORKS, about: about(name), costs })
    });
    let methods = tables.chain(networks).collect::<Result<Vec<_>, Failure>>()?;
    if cli.json {
        let network = reference_in_words();
        return print_json(&json!({ "columns": COLUMNS, "network": network, "methods": methods }));
    }
    print(format!(
        "{}\n\n{}\n\nPlanned costs: for tables, {COLUMNS} columns on this machine; for networks, {}.\n`*` marks more memory than --memory allows by default. `posterior methods NAME` lists settings; `prior` and `text` are groups of others.",
        table_of(&methods, TABLES),
        table_of(&methods, NETWORKS),
        reference_in_words(),
    ))
}

fn describe(cli: &Cli, name: &str) -> Result<(), Failure> {
    let table = MethodName::from_str(name, false).ok();
    let network = CurvatureArg::from_str(name, false).ok();
    let group = GROUPS.iter().find(|(group, _)| *group == name);
    // `auto` is a method for both.
    let mut parts = Vec::new();
    if let Some(own) = table {
        parts.push((TABLES, about(&own), costs(own), own.settings()));
    }
    if let Some(own) = network {
        let settings = FitForm::Network.settings();
        let settings = settings.iter().filter(|flag| has(own, flag)).map(SettingInfo::of).collect();
        parts.push((NETWORKS, about(&own), network_costs(&reference()?, own)?, settings));
    }
    if let Some((group, about)) = group {
        let of = |flag: &&Arg| {
            let long = flag.get_long().and_then(|long| long.strip_prefix(SETTING));
            long.and_then(|long| long.split_once('.')).is_some_and(|(own, _)| own == *group)
        };
        let settings = FitForm::Table.settings().iter().filter(of).map(SettingInfo::of).collect();
        parts.push(("all methods", about.to_string(), Vec::new(), settings));
    }
    if parts.is_empty() {
        let tables = MethodName::ALL.iter().map(ToString::to_string);
        let networks = CurvatureArg::value_variants().iter().map(ToString::to_string);
        let networks = networks.filter(|name| MethodName::from_str(name, false).is_err());
        let groups = GROUPS.iter().map(|(group, _)| group.to_string());
        let all: Vec<String> = tables.chain(networks).chain(groups).collect();
        return Err(Failure::usage(format!("there is no method `{name}`: there are {}", all.join(", "))));
    }
    if cli.json {
        let each = parts.iter().map(|(of, about, costs, settings)| {
            json!({ "name": name, "for": of, "about": about, "costs": costs, "settings": settings })
        });
        let (network, methods) = (reference_in_words(), each.collect::<Vec<_>>());
        return print_json(&json!({ "columns": COLUMNS, "network": network, "methods": methods }));
    }
    let each = parts.iter().map(|(of, about, costs, settings)| {
        let mut lines = vec![format!("{name}, for {of}: {about}")];
        let columns = if *of == TABLES { format!(" of {COLUMNS} columns") } else { String::new() };
        for cost in costs {
            let chosen = if cost.method == name || *of == NETWORKS { String::new() } else { format!("{}, ", cost.method) };
            lines.push(format!("{} rows{columns}: {chosen}{}", cost.rows, in_words(cost)));
        }
        if *of == NETWORKS {
            lines.push(format!("(planned for {})", reference_in_words()));
        }
        for own in settings {
            let default = own.default.as_ref().map_or_else(String::new, |own| format!(" [default: {own}]"));
            lines.push(format!("\n  --set {}={}{default}\n      {}", own.name, own.values, own.meaning));
        }
        if table == Some(MethodName::Auto) && *of == TABLES {
            lines.push(
                "\nSettings of a candidate have its name before theirs: --set svgp.inducing=1024 (exact, cg, sap, sgpr, svgp)"
                    .into(),
            );
        }
        lines.join("\n")
    });
    print(each.collect::<Vec<_>>().join("\n\n"))
}

/// Whether a method for networks has a setting, which is of no group.
fn has(method: CurvatureArg, setting: &Arg) -> bool {
    if setting.get_long().is_some_and(|long| long.contains('.')) {
        return false;
    }
    let id = setting.get_id().as_str().replace('_', "-");
    let owners = SETTINGS.iter().find(|(names, _)| names.contains(&id.as_str()));
    owners.is_none_or(|(_, owners)| owners.contains(&method))
}
