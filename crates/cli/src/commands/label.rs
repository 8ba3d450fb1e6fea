//! `posterior label`

mod export;
mod shown;
mod tell;

use super::optimize::with_waiting;
use super::remarks;
use crate::args::{Cli, LabelAskArgs, LabelCommand, LabelStartArgs, LabelStatusArgs, LockArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, check_outputs, print, print_json, set_threads};
use crate::progress::StageProgress;
use posterior::data::OutputKind;
use posterior::data::json;
use posterior::decisions::SharedState;
use posterior::decisions::labelling::{
    Asked, LabelSettings, LabelStage, Labelling, Pool, PoolColumns, Question,
};
use posterior::likelihoods::gaussianised::Gaussianised;
use std::path::Path;

/// Remarks on labels that are named one by one; the others are counted.
const NAMED: usize = 10;

pub(crate) fn run(cli: &Cli, command: &LabelCommand) -> Result<(), Failure> {
    match command {
        LabelCommand::Start(arguments) => start(cli, arguments),
        LabelCommand::Ask(arguments) => ask(cli, arguments),
        LabelCommand::Tell(arguments) => tell::tell(cli, arguments),
        LabelCommand::Status(arguments) => status(cli, arguments),
        LabelCommand::Export(arguments) => export::export(cli, arguments),
    }
}

fn load(path: &Path) -> Result<Labelling, Failure> {
    Ok(Labelling::load(path)?)
}

/// Reads the state, changes and writes it under its lock.
fn update<T>(
    cli: &Cli,
    state: &Path,
    lock: &LockArgs,
    interrupt: &Interrupt,
    change: impl FnOnce(&mut Labelling) -> Result<T, Failure>,
) -> Result<(T, Labelling), Failure> {
    with_waiting(cli, lock, interrupt, |waiting| Labelling::update(state, waiting, change))
}

/// Says notes, the first few of many.
fn say_all(remarks: Remarks, notes: &[String]) {
    notes.iter().take(NAMED).for_each(|note| remarks.say(format!("note: {note}")));
    if notes.len() > NAMED {
        remarks.say(format!("note: {} more of these", notes.len() - NAMED));
    }
}

fn refuse_existing(arguments: &LabelStartArgs) -> Result<(), Failure> {
    if arguments.state.exists() && !arguments.force {
        return Err(Failure::usage(format!(
            "{} exists; go on with `ask` and `tell`, or begin anew with --force",
            arguments.state.display()
        )));
    }
    Ok(())
}

fn start(cli: &Cli, arguments: &LabelStartArgs) -> Result<(), Failure> {
    refuse_existing(arguments)?;
    // A state that is replaced was asked for by --force.
    let outputs = [(Some(arguments.state.as_path()), OutputKind::LabelState)];
    check_outputs(&outputs, [&arguments.pool], arguments.force)?;
    let settings = LabelSettings {
        criterion: arguments.criterion,
        kernel: arguments.kernel.parse()?,
        gaussianised: Gaussianised::new(arguments.matching, arguments.pseudo_count)?,
        initial: arguments.initial,
        classes: arguments.classes.clone(),
        seed: arguments.seed,
    };
    let columns = PoolColumns {
        text: arguments.text,
        features: arguments.features.clone(),
        categories: arguments.categories.clone(),
        missing: arguments.missing,
        labels: arguments.labels.clone(),
        show: arguments.show.clone(),
    };
    let remarks = remarks(cli);
    let (pool, source) = Pool::open(&arguments.pool, &columns, &settings.kernel, arguments.memory)?;
    let table_notes = pool.table.notes.iter().cloned().chain(pool.notes.sentences());
    table_notes.for_each(|note| remarks.say(format!("note: {note}")));
    let (labelling, notes) = Labelling::new(&pool, source, settings)?;
    say_all(remarks, &notes);
    let plan = labelling.plan(&pool, 1).check(arguments.memory)?;
    remarks.say(format!("plan: {plan}"));
    with_waiting(cli, &arguments.lock, &Interrupt::default(), |waiting| {
        let _lock = Labelling::lock(&arguments.state, waiting)?;
        // Another process may have begun meanwhile.
        refuse_existing(arguments)?;
        Ok(labelling.save(&arguments.state)?)
    })?;
    if cli.json {
        return print_json(&json!({
            "rows": pool.rows.len(),
            "features": labelling.pool().schema.feature_names(),
            "classes": labelling.classes(),
            "labels": labelling.questions().len(),
            "settings": labelling.settings(),
            "plan": plan,
            "notes": notes,
        }));
    }
    remarks.say(format!(
        "state written to {}: {} rows of {} features, {}; ask for rows with `posterior label ask`",
        arguments.state.display(),
        pool.rows.len(),
        pool.inputs.ncols(),
        shown::labels(&labelling),
    ));
    Ok(())
}

fn ask(cli: &Cli, arguments: &LabelAskArgs) -> Result<(), Failure> {
    set_threads(arguments.pool.threads)?;
    let interrupt = Interrupt::listen();
    let own = &arguments.pool;
    let ((asked, pool), labelling) = update(cli, &own.state, &arguments.lock, &interrupt, |labelling| {
        let pool = Pool::read(labelling.pool(), own.pool.as_deref(), own.memory)?;
        let asked = propose(cli, labelling, &pool, arguments, interrupt.clone())?;
        Ok((asked, pool))
    })?;
    let questions: Vec<&Question> =
        asked.ids.iter().filter_map(|id| labelling.questions().get(id - 1)).collect();
    if cli.json {
        let each: Vec<_> =
            questions.iter().map(|q| shown::question_json(&labelling, Some(&pool), q)).collect();
        return print_json(&json!({
            "questions": each,
            "criterion": labelling.settings().criterion,
            "classes": labelling.classes(),
            "hyperparameters": asked.hyperparameters,
            "learned_now": asked.learned_now,
            "notes": asked.notes,
        }));
    }
    print(shown::questions(&labelling, Some(&pool), &questions))
}

/// Asks; the state has to be saved before anyone sees the rows.
fn propose(
    cli: &Cli,
    labelling: &mut Labelling,
    pool: &Pool,
    arguments: &LabelAskArgs,
    interrupt: Interrupt,
) -> Result<Asked, Failure> {
    let remarks = remarks(cli);
    remarks.say(format!("plan: {}", labelling.plan(pool, arguments.count)));
    let mut progress = StageProgress::new(remarks.silent, interrupt);
    let asked = labelling.ask(pool, arguments.count, arguments.pool.memory, &mut |stage, done, total| {
        let name = match stage {
            LabelStage::Evidence => "hyperparameters",
            LabelStage::Rows => "rows",
        };
        progress.observe_named(name, done, total)
    });
    progress.finish();
    let asked = asked?;
    say_all(remarks, &asked.notes);
    if asked.learned_now {
        let values = asked.hyperparameters.iter().map(|(name, values)| {
            let values: Vec<String> = values.iter().map(|v| crate::output::number(*v)).collect();
            format!("{name} {}", values.join(", "))
        });
        remarks.say(format!("hyperparameters learned anew: {}", values.collect::<Vec<_>>().join("; ")));
    }
    Ok(asked)
}

fn status(cli: &Cli, arguments: &LabelStatusArgs) -> Result<(), Failure> {
    set_threads(arguments.pool.threads)?;
    let own = &arguments.pool;
    let labelling = load(&own.state)?;
    // What was told can be had without the pool, which may have been put away.
    let pool = Pool::read(labelling.pool(), own.pool.as_deref(), own.memory);
    let doubt = match &pool {
        Ok(pool) => labelling.doubt(pool, own.memory)?,
        Err(error) => {
            remarks(cli).say(format!("note: without the pool: {error}"));
            None
        }
    };
    if cli.json {
        return print_json(&shown::status_json(&labelling, pool.as_ref().ok(), doubt));
    }
    print(shown::status(&labelling, doubt))?;
    let pending: Vec<&Question> = labelling.questions().iter().filter(|q| q.is_pending()).collect();
    if pending.is_empty() {
        return Ok(());
    }
    print("pending:")?;
    print(shown::questions(&labelling, pool.as_ref().ok(), &pending))
}
