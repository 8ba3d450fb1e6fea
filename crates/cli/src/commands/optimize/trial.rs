//! One trial by somebody's program.

use crate::interrupt::Interrupt;
use posterior::decisions::campaign::{Outcome, Trial};
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Most bytes of output that are kept: the value is in the last line.
const KEPT: usize = 1 << 20;

/// How often a running program is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// Most programs that run at once.
pub(super) const MOST_AT_ONCE: usize = 500;

/// Tries all points at once, one process each; those for which the system has no thread one after the other. Outcomes come in the order of the trials; None for one that an interruption ended.
pub(super) fn try_all(
    command: &[String],
    names: &[String],
    trials: &[Trial],
    timeout: Option<Duration>,
    interrupt: &Interrupt,
) -> Vec<(usize, Option<Outcome>)> {
    std::thread::scope(|scope| {
        let start = |trial| {
            let work = move || try_one(command, names, trial, timeout, interrupt);
            Builder::new().spawn_scoped(scope, work)
        };
        let running: Vec<_> = trials.iter().map(|trial| (trial, start(trial))).collect();
        let failed = || Some(Outcome::Failed { reason: "the trial's thread panicked".into() });
        let end = |(trial, thread): (&Trial, io::Result<ScopedJoinHandle<'_, _>>)| {
            let outcome = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| failed()),
                Err(_) => try_one(command, names, trial, timeout, interrupt),
            };
            (trial.id, outcome)
        };
        running.into_iter().map(end).collect()
    })
}

/// The command with numbers for names.
fn filled(text: &str, names: &[String], trial: &Trial) -> String {
    let mut out = text.replace("{id}", &trial.id.to_string());
    for (name, value) in names.iter().zip(&trial.point) {
        out = out.replace(&format!("{{{name}}}"), &value.to_string());
    }
    out
}

/// The name of an axis as shells allow it.
fn variable(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("POSTERIOR_{}", name.chars().map(sign).collect::<String>())
}

fn try_one(
    command: &[String],
    names: &[String],
    trial: &Trial,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
) -> Option<Outcome> {
    let failed = |reason: String| Some(Outcome::Failed { reason });
    let [program, arguments @ ..] = command else { return failed("no command was given".into()) };
    let mut prepared = Command::new(filled(program, names, trial));
    prepared.args(arguments.iter().map(|a| filled(a, names, trial)));
    // The point in the environment as well, for programs that read it there.
    for (name, value) in names.iter().zip(&trial.point) {
        prepared.env(variable(name), value.to_string());
    }
    let spawned = prepared.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) => return failed(format!("`{program}` cannot be started: {e}")),
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
            return None;
        }
        if timeout.is_some_and(|t| started.elapsed() > t) {
            end(&mut child);
            return failed(format!("no result after {:.1} s", started.elapsed().as_secs_f64()));
        }
        std::thread::sleep(PAUSE);
    };
    // A grandchild may hold the pipe open; what it prints is nobody's result.
    let text = receiver.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
    if !status.success() {
        return failed(format!("the command ended with {status}"));
    }
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default().trim();
    match last.parse::<f64>() {
        Ok(value) if value.is_finite() => Some(Outcome::Done { value }),
        _ => failed(format!(
            "its last line of output is no finite number: `{}`",
            last.chars().take(60).collect::<String>()
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_names_that_shells_allow() {
        assert_eq!(variable("max depth"), "POSTERIOR_MAX_DEPTH");
        assert_eq!(variable("learning-rate.0"), "POSTERIOR_LEARNING_RATE_0");
    }
}
