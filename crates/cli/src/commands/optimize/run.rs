//! `posterior optimize run`: asks, tries by a command, tells.

use super::template::Template;
use super::trial::{self, Attempt};
use super::{names, propose, status};
use crate::args::{Cli, RunArgs};
use crate::commands::remarks;
use crate::commands::state::update;
use crate::interrupt::Interrupt;
use crate::output::{Failure, number, set_threads};
use posterior::decisions::campaign::{Outcome, Trial};
use posterior::decisions::{Campaign, SharedState};
use std::time::Duration;

pub(super) fn run(cli: &Cli, arguments: &RunArgs) -> Result<(), Failure> {
    set_threads(arguments.threads.count)?;
    let timeout = arguments.timeout.map(Duration::from_secs_f64);
    let remarks = remarks(cli);
    let names = names(&Campaign::load(&arguments.state)?);
    let template = Template::check(&arguments.command, &names, |note| remarks.say(format!("note: {note}")))?;
    let _trials = Campaign::lock_trials(&arguments.state).map_err(|e| {
        Failure::new(format!(
            "{e}. One `optimize run` at a time tries the points of a state; --batch tries several at once"
        ))
    })?;
    let interrupt = Interrupt::listen();
    while !interrupt.requested() {
        // The lock is held to look and to ask, never while a program runs: others may tell and ask meanwhile.
        let (trials, _) =
            update(cli, &arguments.state, &arguments.lock, &interrupt, |campaign: &mut Campaign| {
                let told = campaign.trials().iter().filter(|t| !t.is_pending()).count();
                let count = arguments.batch.min(arguments.evaluations.saturating_sub(told));
                // Asked for before, by a run that was ended perhaps.
                let waiting: Vec<usize> = campaign.pending().map(|t| t.id).take(count).collect();
                let ids = match waiting.is_empty() && count > 0 {
                    true => propose(cli, campaign, count, interrupt.clone())?.ids,
                    false => waiting,
                };
                Ok(ids.iter().filter_map(|id| campaign.trials().get(id - 1)).cloned().collect::<Vec<Trial>>())
            })?;
        if trials.is_empty() {
            break;
        }
        let mut failure = None;
        trial::try_all(&template, &trials, timeout, &interrupt, |trial, attempt| match attempt {
            Attempt::Tried(outcome) => {
                if let Err(error) = record(cli, arguments, trial, outcome) {
                    failure.get_or_insert(error);
                }
            }
            Attempt::Interrupted => {}
            Attempt::NotStarted(error) => {
                failure.get_or_insert(error);
            }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    if interrupt.requested() {
        return Err(Failure::new(format!(
            "interrupted; everything told is in {}, the same command goes on",
            arguments.state.display()
        )));
    }
    status(cli, &Campaign::load(&arguments.state)?)
}

/// Tells what came out, unless somebody else told something of the point while it was tried.
fn record(cli: &Cli, arguments: &RunArgs, trial: &Trial, outcome: Outcome) -> Result<(), Failure> {
    let said = match &outcome {
        Outcome::Done { value } => number(*value),
        Outcome::Failed { reason } => format!("failed: {reason}"),
        Outcome::Pending => String::new(),
    };
    let id = trial.id;
    let (kept, campaign) =
        update(cli, &arguments.state, &arguments.lock, &Interrupt::default(), |campaign: &mut Campaign| {
            let open = campaign.trials().get(id - 1).is_some_and(Trial::is_pending);
            if open {
                campaign.tell(id, outcome, false)?;
            }
            Ok(open)
        })?;
    let best = campaign.best().map_or_else(|| "-".into(), |b| number(b.value));
    let remarks = remarks(cli);
    match kept {
        true => remarks.say(format!("trial {id}: {said} (best {best})")),
        false => remarks.say(format!(
            "note: trial {id} came out as {said}, but something was told of it meanwhile, which stays (best {best})"
        )),
    }
    Ok(())
}
