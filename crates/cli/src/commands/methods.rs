//! `posterior methods`: the methods with what they cost, and the settings of one, made of their structs.

use crate::args::{Cli, CurvatureArg, FitForm, MethodsArgs, SETTINGS};
use crate::output::{Failure, print, print_json, table_under};
use clap::{Arg, ValueEnum};
use posterior::data::json;
use posterior::models::FitCost;
use posterior::options::{MethodName, SETTING, SettingInfo};
use posterior::{FitRequest, Method, Model};

/// Rows that costs are computed for.
const ROWS: [usize; 2] = [1_000, 100_000];

/// Columns of these rows.
const COLUMNS: usize = 8;

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

/// A cost in a few words.
fn in_words(cost: &FitCost) -> String {
    let time: String = match cost.seconds {
        None => "?".into(),
        Some(seconds) if seconds < 1.0 => "under 1 s".into(),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.0} s"),
        Some(seconds) if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        Some(seconds) => format!("{:.0} h", seconds / 3600.0),
    };
    let limit = FitRequest::default().memory;
    let over = if cost.bytes > limit { ", above the usual limit" } else { "" };
    format!("{time}, {:.2} GB{over}", cost.bytes as f64 / 1e9)
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let tables: Vec<(MethodName, Vec<FitCost>)> =
        MethodName::ALL.iter().map(|name| (*name, costs(*name))).collect();
    let networks = CurvatureArg::value_variants();
    if cli.json {
        let tables = tables.iter().map(|(name, costs)| {
            json!({ "name": name.as_str(), "for": "tables", "about": about(name), "costs": costs })
        });
        let networks = networks
            .iter()
            .map(|name| json!({ "name": name.to_string(), "for": "networks", "about": about(name) }));
        return print_json(
            &json!({ "columns": COLUMNS, "methods": tables.chain(networks).collect::<Vec<_>>() }),
        );
    }
    let rows = tables.iter().map(|(name, costs)| {
        let chosen = costs.iter().map(|cost| match cost.method == *name {
            true => in_words(cost),
            false => format!("{}: {}", cost.method, in_words(cost)),
        });
        std::iter::once(name.to_string()).chain(chosen).collect::<Vec<_>>()
    });
    let head = ["for tables", "1,000 rows", "100,000 rows"];
    let costs = table_under(head, rows);
    let what =
        std::iter::once("what it is, and what for".into()).chain(tables.iter().map(|own| about(&own.0)));
    let mut lines: Vec<String> =
        costs.lines().zip(what).map(|(line, what)| format!("{line}  {what}")).collect();
    lines.push("\nfor networks (--network)".into());
    lines.extend(networks.iter().map(|name| format!("{name}: {}", about(name))));
    lines.push(format!(
        "\nCosts are those planned for {COLUMNS} columns on this machine. `posterior methods NAME` lists settings; `prior` and `text` are groups of others."
    ));
    print(lines.join("\n"))
}

fn describe(cli: &Cli, name: &str) -> Result<(), Failure> {
    let table = MethodName::from_str(name, false).ok();
    let network = CurvatureArg::from_str(name, false).ok();
    let group = GROUPS.iter().find(|(group, _)| *group == name);
    // `auto` is a method for both.
    let mut parts = Vec::new();
    if let Some(own) = table {
        parts.push(("tables", about(&own), costs(own), own.settings()));
    }
    if let Some(own) = network {
        let settings = FitForm::Network.settings();
        let settings = settings.iter().filter(|flag| has(own, flag)).map(SettingInfo::of).collect();
        parts.push(("networks", about(&own), Vec::new(), settings));
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
        let groups = GROUPS.iter().map(|(group, _)| group.to_string());
        let all: Vec<String> = tables.chain(networks).chain(groups).collect();
        return Err(Failure::usage(format!("there is no method `{name}`: there are {}", all.join(", "))));
    }
    if cli.json {
        let each = parts.iter().map(|(of, about, costs, settings)| {
            json!({ "name": name, "for": of, "about": about, "costs": costs, "settings": settings })
        });
        return print_json(&json!({ "columns": COLUMNS, "methods": each.collect::<Vec<_>>() }));
    }
    let each = parts.iter().map(|(of, about, costs, settings)| {
        let mut lines = vec![format!("{name}, for {of}: {about}")];
        for cost in costs {
            let chosen = if cost.method.as_str() == name { String::new() } else { format!("{}, ", cost.method) };
            lines.push(format!("{} rows of {COLUMNS} columns: {chosen}{}", cost.rows, in_words(cost)));
        }
        for own in settings {
            let default = own.default.as_ref().map_or_else(String::new, |own| format!(" [default: {own}]"));
            lines.push(format!("\n  --set {}={}{default}\n      {}", own.name, own.values, own.meaning));
        }
        if table == Some(MethodName::Auto) && *of == "tables" {
            lines.push(
                "\nSettings of a candidate have its name before theirs: --set svgp.inducing=1024 (exact, cg, sap, sgpr, svgp)"
                    .into(),
            );
        }
        lines.join("\n")
    });
    print(each.collect::<Vec<_>>().join("\n\n"))
}

/// Whether a method for networks has a setting.
fn has(method: CurvatureArg, setting: &Arg) -> bool {
    let id = setting.get_id().as_str().replace('_', "-");
    let owners = SETTINGS.iter().find(|(names, _)| names.contains(&id.as_str()));
    owners.is_none_or(|(_, owners)| owners.contains(&method))
}
