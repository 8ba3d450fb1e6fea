//! One trial by somebody's program.

use super::template::{Template, cannot_start};
use crate::interrupt::Interrupt;
use crate::output::Failure;
use posterior::decisions::campaign::{Outcome, Trial};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Most bytes of output that are kept: the value is in the last line.
const KEPT: usize = 1 << 20;

/// How often a running program is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// What became of an attempt.
pub(super) enum Attempt {
    /// The program ran: this is to be told.
    Tried(Outcome),
    /// An interruption ended it: nothing is known.
    Interrupted,
    /// The program did not start.
    NotStarted(Failure),
}

/// Tries all points at once, one process each; those for which the system has no thread one after the other. `done` hears of each as soon as it has ended.
pub(super) fn try_all(
    template: &Template<'_>,
    trials: &[Trial],
    timeout: Option<Duration>,
    interrupt: &Interrupt,
    mut done: impl FnMut(&Trial, Attempt),
) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut left = Vec::new();
        for trial in trials {
            let sender = sender.clone();
            let work = move || {
                let _ = sender.send((trial, try_one(template, trial, timeout, interrupt)));
            };
            if Builder::new().spawn_scoped(scope, work).is_err() {
                left.push(trial);
            }
        }
        drop(sender);
        for (trial, attempt) in receiver {
            done(trial, attempt);
        }
        for trial in left {
            done(trial, try_one(template, trial, timeout, interrupt));
        }
    });
}

fn try_one(
    template: &Template<'_>,
    trial: &Trial,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
) -> Attempt {
    let failed = |reason: String| Attempt::Tried(Outcome::Failed { reason });
    let command = template.filled(trial);
    let [program, arguments @ ..] = &command[..] else {
        return Attempt::NotStarted(cannot_start("", "no command was given"));
    };
    let mut prepared = Command::new(program);
    prepared.args(arguments);
    // The point in the environment as well, for programs that read it there.
    prepared.envs(template.variables(trial));
    let spawned = prepared.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) => return Attempt::NotStarted(cannot_start(program, e)),
    };
    let Some(output) = child.stdout.take() else { return failed("its output cannot be read".into()) };
    let (sender, receiver) = mpsc::channel();
    let reader = Builder::new().spawn(move || {
        let _ = sender.send(tail(output));
    });
    if let Err(e) = reader {
        end(&mut child);
        return failed(format!("its output cannot be read: {e}"));
    }
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(e) => return failed(e.to_string()),
        }
        if interrupt.requested() {
            end(&mut child);
            return Attempt::Interrupted;
        }
        if timeout.is_some_and(|t| started.elapsed() > t) {
            end(&mut child);
            return failed(format!("no result after {:.1} s", started.elapsed().as_secs_f64()));
        }
        std::thread::sleep(PAUSE);
    };
    // A grandchild may hold the pipe open; what it prints is nobody's result.
    let text = receiver.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
    if let Some(why) = not_started(status) {
        return Attempt::NotStarted(cannot_start(program, why));
    }
    if !status.success() {
        return failed(format!("the command ended with {status}"));
    }
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    match last.parse::<f64>() {
        Ok(value) if value.is_finite() => Attempt::Tried(Outcome::Done { value }),
        _ => failed(format!(
            "its last line of output is no finite number: `{}`",
            last.chars().take(60).collect::<String>()
        )),
    }
}

/// The two statuses by which shells and their like (sh, env, nice, timeout) say that the program they were given did not start.
fn not_started(status: ExitStatus) -> Option<&'static str> {
    match status.code() {
        Some(126) => Some("it ended with status 126, by which shells say that a program is not executable"),
        Some(127) => Some("it ended with status 127, by which shells say that a program was not found"),
        _ => None,
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The end of what a program prints, however much that is.
fn tail(mut output: impl Read) -> String {
    let mut kept = Vec::new();
    let mut block = [0u8; 1 << 14];
    while let Ok(count) = output.read(&mut block) {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&block[..count]);
        if kept.len() > 2 * KEPT {
            kept.drain(..kept.len() - KEPT);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
