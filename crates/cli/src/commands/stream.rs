//! `posterior stream`

mod begin;
mod destination;
mod source;
mod status;

use super::remarks;
use super::state::with_waiting;
use crate::args::{BadRowsArg, Cli, NoiseArg, StreamArgs};
use crate::interrupt::Interrupt;
use crate::output::{Failure, Remarks, set_threads};
use destination::{Destination, takes_objects};
use posterior::data::FileLock;
use posterior::models::{BadRow, StreamState};
use posterior::notes::fixes::{BAD_ROWS_SKIP, BATCH, INDUCING_POINTS, STREAM_MODEL, STREAM_TARGET};
use source::Source;
use std::time::{Duration, Instant};

/// Bad rows that are named one by one; the others are counted.
const NAMED: usize = 20;

/// How often a person is told how it goes.
const TELL: Duration = Duration::from_secs(5);

pub(crate) fn run(cli: &Cli, arguments: &StreamArgs) -> Result<(), Failure> {
    let exists = arguments.state.exists();
    if arguments.status {
        return status::print_status(cli, &load(arguments)?, None);
    }
    if cli.json && arguments.out.is_none() {
        let problem = "--json prints what became of the stream: give the predictions a file with --output";
        return Err(Failure::usage(problem.into()));
    }
    let objects = arguments.out.as_deref().is_some_and(takes_objects);
    cli.refuse(&["csv-safe"], objects, "is for predictions in CSV")?;
    let begins = arguments.model.is_some() || arguments.target.is_some();
    let state = arguments.state.display();
    if exists && begins {
        return Err(Failure::usage(format!(
            "{state} exists: leave out --model and --target to go on with it, or name another state"
        )));
    }
    if !exists && !begins {
        return Err(Failure::usage(format!(
            "{state} does not exist: begin it with {STREAM_MODEL}, or with {STREAM_TARGET}"
        )));
    }
    set_threads(arguments.threads.count)?;
    let interrupt = Interrupt::listen();
    let remarks = remarks(cli);
    with_waiting(cli, &arguments.lock, &interrupt, |waiting| {
        let _lock = FileLock::acquire(&arguments.state, "lock", waiting.limit, waiting.observer)?;
        // Another process may have begun meanwhile.
        if exists != arguments.state.exists() {
            return Err(Failure::new(format!("{state} was begun by another process: run the command again")));
        }
        let mut source = Source::open(arguments, exists.then(|| load(arguments)).transpose()?)?;
        let mut stream = match source.state.take() {
            Some(state) => state,
            None => match begin::begin(arguments, &mut source, remarks, &interrupt)? {
                Some(state) => state,
                None => return Err(Failure::new(format!("interrupted; {state} has not been written"))),
            },
        };
        match arguments.noise {
            Some(noise) => stream.model.learn_noise(noise == NoiseArg::Learned)?,
            None if !exists && stream.model.has_noise_to_learn() => stream.model.learn_noise(true)?,
            None => {}
        }
        let plan = stream.model.plan(arguments.batch);
        remarks.say(format!("plan: {plan}"));
        if plan.peak_bytes > arguments.memory {
            return Err(Failure::new(format!(
                "{plan}; --memory allows {:.0} MB: raise it, or take fewer {INDUCING_POINTS} or a smaller {BATCH}",
                arguments.memory as f64 / 1e6
            )));
        }
        let mut destination = Destination::open(arguments, &mut stream)?;
        stream.save(&arguments.state)?;
        let ended = learn(arguments, &mut source, &mut stream, &mut destination, remarks, &interrupt);
        if cli.json {
            status::print_status(cli, &stream, Some(source.unfinished()))?;
        } else {
            remarks.say(status::text(&stream) + &status::left(source.unfinished()));
        }
        ended
    })
}

fn load(arguments: &StreamArgs) -> Result<StreamState, Failure> {
    Ok(StreamState::load(&arguments.state)?)
}

/// Batch after batch, until the input ends, a row is bad or an interruption is asked for.
fn learn(
    arguments: &StreamArgs,
    source: &mut Source,
    stream: &mut StreamState,
    destination: &mut Destination,
    remarks: Remarks,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let skip = arguments.bad_rows == BadRowsArg::Skip;
    let (started, mut told, mut named) = (Instant::now(), Instant::now(), 0);
    let before = stream.counts.rows;
    while let Some(lines) = source.next(stream, arguments, interrupt)? {
        let taken = stream.take(&lines, skip, source.path())?;
        // Predictions first: what is written of rows that are not counted is written again.
        destination.add(taken.predictions.as_ref(), stream)?;
        stream.save(&arguments.state)?;
        for BadRow { row, reason } in taken.bad.iter().filter(|_| skip) {
            named += 1;
            if named <= NAMED {
                remarks.say(format!("row {row} is passed over: {reason}"));
            }
            if named == NAMED {
                remarks.say("further bad rows are counted, not named");
            }
        }
        if let (true, Some(BadRow { row, reason })) = (taken.stopped, taken.bad.first()) {
            return Err(Failure::new(format!(
                "row {row}: {reason}. The rows before it are learned; mend it and go on, or pass such rows over with {BAD_ROWS_SKIP}"
            )));
        }
        if told.elapsed() > TELL {
            told = Instant::now();
            let rate = (stream.counts.rows - before) as f64 / started.elapsed().as_secs_f64();
            remarks.say(format!("{rate:.0} rows a second; {}", status::text(stream)));
        }
    }
    Ok(())
}
