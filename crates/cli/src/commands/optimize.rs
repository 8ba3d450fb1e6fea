//! `posterior optimize`

mod run;
mod template;
mod trial;

use super::state::{begin, refuse_existing, update};
use super::{read, read_files, remarks};
use crate::args::{AskArgs, Cli, OptimizeCommand, StartArgs, TellArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, check_outputs, number, print, print_json, set_threads, table};
use crate::progress::Bar;
use posterior::data::{OutputKind, TextOptions, Values, json};
use posterior::decisions::campaign::{
    Candidates, Direction, Outcome, Proposal, Settings, Stage, TellOutcome, Trial,
};
use posterior::decisions::{Axis, Campaign, Scale, SharedState, Space};
use posterior::notes::fixes::{FEATURES, OPTIMIZE_ASK};
use std::path::Path;

pub(crate) fn run(cli: &Cli, command: &OptimizeCommand) -> Result<(), Failure> {
    match command {
        OptimizeCommand::Start(arguments) => start(cli, arguments),
        OptimizeCommand::Ask(arguments) => ask(cli, arguments),
        OptimizeCommand::Tell(arguments) => tell(cli, arguments),
        OptimizeCommand::Run(arguments) => run::run(cli, arguments),
        OptimizeCommand::Status { state } => status(cli, &Campaign::load(state)?),
    }
}

fn start(cli: &Cli, arguments: &StartArgs) -> Result<(), Failure> {
    refuse_existing(&arguments.state, arguments.force)?;
    if arguments.text != TextOptions::default() && arguments.candidates.is_none() {
        let problem = "--set text.delimiter, --set text.decimal and --set text.encoding are for the table of --candidates";
        return Err(Failure::usage(problem.into()));
    }
    // A state that is replaced was asked for by --force.
    let outputs = [(Some(arguments.state.as_path()), OutputKind::State)];
    check_outputs(&outputs, &arguments.candidates, arguments.force)?;
    let (space, candidates) = match (&arguments.space, &arguments.candidates) {
        (Some(text), _) => (text.parse::<Space>().map_err(|e| Failure::usage(e.to_string()))?, None),
        (None, Some(path)) => {
            let (space, rows) = candidates(cli, arguments, path)?;
            (space, Some(rows))
        }
        (None, None) => return Err(Failure::usage("--space or --candidates is needed".into())),
    };
    let mut settings = Settings::new(space.dimension());
    settings.direction = if arguments.maximize { Direction::Maximise } else { Direction::Minimise };
    settings.strategy = arguments.strategy;
    settings.kernel = arguments.kernel.parse()?;
    settings.initial = arguments.initial.unwrap_or(settings.initial);
    settings.noise_variance = arguments.noise;
    settings.multistart.candidates = arguments.search_candidates;
    settings.multistart.rounds = arguments.search_rounds;
    settings.seed = arguments.seed;
    let mut campaign = Campaign::new(space, settings)?;
    if let Some(rows) = candidates {
        campaign = campaign.among(rows)?;
    }
    begin(cli, (&arguments.state, arguments.force), &arguments.lock, &campaign)?;
    if cli.json {
        return print_json(campaign.settings());
    }
    remarks(cli).say(format!(
        "state written to {}; ask for points with `{OPTIMIZE_ASK:#}`",
        arguments.state.display()
    ));
    Ok(())
}

/// The numeric columns of a table as axes that just hold them.
fn candidates(cli: &Cli, arguments: &StartArgs, path: &Path) -> Result<(Space, Candidates), Failure> {
    let rows = read_files(&[path.to_path_buf()], arguments.text, arguments.memory, remarks(cli))?;
    let no_index = || rows.names().into_iter().filter(|name| rows.index.as_ref() != Some(name)).collect();
    let names = if arguments.features.is_empty() { no_index() } else { arguments.features.clone() };
    let mut axes = Vec::new();
    let mut columns = Vec::new();
    for name in names {
        let column = rows.column(&name)?;
        let Values::Numeric(values) = &column.values else {
            return Err(Failure::new(format!(
                "{}: column `{name}` is text; leave it out with {FEATURES}",
                path.display()
            )));
        };
        if let Some(i) = values.iter().position(|v| !v.is_finite()) {
            return Err(Failure::new(format!(
                "{}, row {}, column `{name}`: {} is no number",
                path.display(),
                i + 1,
                values[i]
            )));
        }
        let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
        if ends.0 == ends.1 {
            remarks(cli).say(format!("note: column `{name}` is the same for all candidates and is left out"));
            continue;
        }
        axes.push(Axis::new(column.name.clone(), ends.0, ends.1, Scale::Linear)?);
        columns.push(values);
    }
    let space = Space::new(axes)?;
    let rows = (0..rows.rows()).map(|i| columns.iter().map(|c| c[i]).collect()).collect();
    Ok((space, Candidates { source: path.display().to_string(), rows }))
}

fn ask(cli: &Cli, arguments: &AskArgs) -> Result<(), Failure> {
    set_threads(arguments.threads.count)?;
    let interrupt = Interrupt::listen();
    let (proposal, campaign) =
        update(cli, &arguments.state, &arguments.lock, &interrupt, |campaign: &mut Campaign| {
            propose(cli, campaign, arguments.count, interrupt.clone())
        })?;
    let trials: Vec<&Trial> = proposal.ids.iter().filter_map(|id| campaign.trials().get(id - 1)).collect();
    if cli.json {
        return print_json(&json!({ "trials": trials, "proposal": proposal }));
    }
    print(trials_table(&campaign, &trials))
}

/// Asks; the state has to be saved before anyone sees the points.
fn propose(
    cli: &Cli,
    campaign: &mut Campaign,
    count: usize,
    interrupt: Interrupt,
) -> Result<Proposal, Failure> {
    let remarks = remarks(cli);
    let mut progress = Bar::of_stages(remarks.silent, interrupt);
    let proposal = campaign.ask(count, &mut |stage, done, total| {
        let name = match stage {
            Stage::Evidence => "hyperparameters",
            Stage::Draws => "draws",
            Stage::Maxima => "maxima",
        };
        progress.stage(name, done, total, None)
    });
    progress.finish();
    let proposal = proposal?;
    remarks.notes(&proposal.notes);
    Ok(proposal)
}

fn tell(cli: &Cli, arguments: &TellArgs) -> Result<(), Failure> {
    let outcome = match (&arguments.value, &arguments.failed) {
        (Some(value), _) => Some(Outcome::Done { value: *value }),
        (None, Some(reason)) => Some(Outcome::Failed { reason: reason.clone() }),
        (None, None) => None,
    };
    // Read before the lock is taken.
    let results = match &arguments.results {
        Some(path) => results(cli, path, arguments.memory)?,
        None => Vec::new(),
    };
    let (news, campaign) =
        update(cli, &arguments.state, &arguments.lock, &Interrupt::default(), |campaign: &mut Campaign| {
            let mut record = |id, outcome| -> Result<usize, Failure> {
                Ok(usize::from(campaign.tell(id, outcome, arguments.replace)? == TellOutcome::Recorded))
            };
            match (outcome, arguments.id, &arguments.results) {
                (Some(outcome), Some(id), _) => record(id, outcome),
                (Some(outcome), None, _) => {
                    let point = point(campaign, &arguments.point)?;
                    campaign.tell_point(&point, outcome)?;
                    Ok(1)
                }
                (None, _, Some(_)) => {
                    results.into_iter().map(|(id, value)| record(id, Outcome::Done { value })).sum()
                }
                (None, _, None) => Err(Failure::usage("--value, --failed or --results is needed".into())),
            }
        })?;
    if cli.json {
        return status(cli, &campaign);
    }
    let best = campaign
        .best()
        .map_or_else(String::new, |b| format!("; the best is {} (trial {})", number(b.value), b.id));
    remarks(cli).say(format!("{news} new{best}"));
    Ok(())
}

/// Numbers of trials and what came out, from a table.
fn results(cli: &Cli, path: &Path, limit: u64) -> Result<Vec<(usize, f64)>, Failure> {
    let rows = read(path, limit, remarks(cli))?;
    let column = |name: &str| match rows.column(name).map(|c| &c.values) {
        Ok(Values::Numeric(values)) => Ok(values.clone()),
        _ => Err(Failure::new(format!("{} needs numeric columns `id` and `value`", path.display()))),
    };
    let pair = |(i, (id, value)): (usize, (f64, f64))| {
        if id >= 1.0 && id.fract() == 0.0 {
            return Ok((id as usize, value));
        }
        Err(Failure::new(format!("{}, row {}: {id} is no trial's number", path.display(), i + 1)))
    };
    column("id")?.into_iter().zip(column("value")?).enumerate().map(pair).collect()
}

/// `NAME=VALUE` for every axis, in any order.
fn point(campaign: &Campaign, parts: &[String]) -> Result<Vec<f64>, Failure> {
    let mut given = std::collections::HashMap::new();
    for part in parts {
        let (name, value) = part
            .split_once('=')
            .and_then(|(n, v)| Some((n.trim(), v.trim().parse::<f64>().ok()?)))
            .ok_or_else(|| Failure::usage(format!("`{part}` is not NAME=VALUE")))?;
        if !campaign.space().axes.iter().any(|a| a.name == name) {
            return Err(Failure::usage(format!(
                "there is no axis `{name}`; the axes are {}",
                names(campaign).join(", ")
            )));
        }
        if given.insert(name, value).is_some() {
            return Err(Failure::usage(format!("`{name}` is given twice")));
        }
    }
    let axes = campaign.space().axes.iter();
    axes.map(|a| {
        given.get(a.name.as_str()).copied().ok_or_else(|| Failure::usage(format!("`{}` is missing", a.name)))
    })
    .collect()
}

fn names(campaign: &Campaign) -> Vec<String> {
    campaign.space().axes.iter().map(|a| a.name.clone()).collect()
}

fn status(cli: &Cli, campaign: &Campaign) -> Result<(), Failure> {
    let trials = campaign.trials();
    let failed = trials.iter().filter(|t| matches!(t.outcome, Outcome::Failed { .. })).count();
    let told = trials.iter().filter(|t| t.value().is_some()).count();
    let pending: Vec<&Trial> = campaign.pending().collect();
    if cli.json {
        return print_json(&json!({
            "axes": names(campaign),
            "direction": campaign.settings().direction,
            "rounds": campaign.rounds(),
            "told": told,
            "failed": failed,
            "pending": pending,
            "best": campaign.best(),
            "trials": trials,
        }));
    }
    print(format!("{told} told, {failed} failed, {} pending, {} rounds", pending.len(), campaign.rounds()))?;
    if let Some(best) = campaign.best() {
        let point: Vec<String> =
            names(campaign).iter().zip(&best.point).map(|(n, v)| format!("{n} = {}", number(*v))).collect();
        print(format!("best: {} (trial {}) at {}", number(best.value), best.id, point.join(", ")))?;
    }
    if !pending.is_empty() {
        print(trials_table(campaign, &pending))?;
    }
    Ok(())
}

fn trials_table(campaign: &Campaign, trials: &[&Trial]) -> String {
    let rows = trials.iter().any(|t| t.row.is_some());
    let mut head = vec!["id".to_string()];
    head.extend(rows.then(|| "row".to_string()));
    head.extend(names(campaign));
    let mut lines = vec![head];
    lines.extend(trials.iter().map(|t| {
        let mut line = vec![t.id.to_string()];
        if rows {
            line.push(t.row.map_or_else(String::new, |r| r.to_string()));
        }
        // All digits: the point that is tried must be the one that is told.
        line.extend(t.point.iter().map(|v| v.to_string()));
        line
    }));
    table(&lines)
}
