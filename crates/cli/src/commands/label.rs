//! `posterior label`

mod export;
mod shown;
mod tell;

use super::remarks;
use super::state::{begin, refuse_existing, update};
use crate::args::{Cli, LabelAskArgs, LabelCommand, LabelPoolArgs, LabelStartArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, check_outputs, print, print_json, set_threads};
use crate::progress::Bar;
use posterior::data::OutputKind;
use posterior::data::json;
use posterior::decisions::SharedState;
use posterior::decisions::labelling::{LabelSettings, LabelStage, Labelling, Pool, QueryRound, Question};
use posterior::likelihoods::gaussianised::Gaussianised;
use posterior::notes::fixes::LABEL_ASK;

/// Remarks on labels that are named one by one; the others are counted.
const NAMED: usize = 10;

pub(crate) fn run(cli: &Cli, command: &LabelCommand) -> Result<(), Failure> {
    match command {
        LabelCommand::Start(arguments) => start(cli, arguments),
        LabelCommand::Ask(arguments) => ask(cli, arguments),
        LabelCommand::Tell(arguments) => tell::tell(cli, arguments),
        LabelCommand::Status(pool) => status(cli, pool),
        LabelCommand::Export(arguments) => export::export(cli, arguments),
    }
}

/// Says notes, the first few of many.
fn say_all(remarks: Remarks, notes: &[String]) {
    remarks.notes(notes.iter().take(NAMED));
    if notes.len() > NAMED {
        remarks.say(format!("note: {} more of these", notes.len() - NAMED));
    }
}

fn start(cli: &Cli, arguments: &LabelStartArgs) -> Result<(), Failure> {
    refuse_existing(&arguments.state, arguments.force)?;
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
    let remarks = remarks(cli);
    let (pool, source) = Pool::open(&arguments.pool, &arguments.columns, &settings.kernel, arguments.memory)?;
    let table_notes = pool.table.notes.iter().cloned().chain(pool.notes.sentences());
    remarks.notes(table_notes);
    let (labelling, notes) = Labelling::new(&pool, source, settings)?;
    say_all(remarks, &notes);
    let plan = labelling.plan(&pool, 1).check(arguments.memory)?;
    remarks.say(format!("plan: {plan}"));
    begin(cli, (&arguments.state, arguments.force), &arguments.lock, &labelling)?;
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
        "state written to {}: {} rows of {} features, {}; ask for rows with `{LABEL_ASK:#}`",
        arguments.state.display(),
        pool.rows.len(),
        pool.inputs.ncols(),
        shown::labels(&labelling),
    ));
    Ok(())
}

fn ask(cli: &Cli, arguments: &LabelAskArgs) -> Result<(), Failure> {
    set_threads(arguments.pool.threads.count)?;
    let interrupt = Interrupt::listen();
    let own = &arguments.pool;
    let ((asked, pool), labelling) =
        update(cli, &own.state, &arguments.lock, &interrupt, |labelling: &mut Labelling| {
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
) -> Result<QueryRound, Failure> {
    let remarks = remarks(cli);
    remarks.say(format!("plan: {}", labelling.plan(pool, arguments.count)));
    let mut progress = Bar::of_stages(remarks.silent, interrupt);
    let asked = labelling.ask(pool, arguments.count, arguments.pool.memory, &mut |stage, done, total| {
        let name = match stage {
            LabelStage::Evidence => "hyperparameters",
            LabelStage::Rows => "rows",
        };
        progress.stage(name, done, total, None)
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

fn status(cli: &Cli, own: &LabelPoolArgs) -> Result<(), Failure> {
    set_threads(own.threads.count)?;
    let labelling = Labelling::load(&own.state)?;
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
