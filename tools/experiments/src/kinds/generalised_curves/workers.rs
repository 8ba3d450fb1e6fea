//! **Many fits at once**: as many threads as are asked for take one task after another, each within a pool of its own of one thread, so that what is parallel inside a fit stays on its thread and no fit waits for another's. A fit is the same on any thread,
//! so that results are for any number of them.
//!
//! Finished fits reach the journal in the order in which they end; a run that is interrupted keeps them, and those under way are given up at their next step.

use crate::kinds::prelude::*;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long the observer may have to wait for an answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// What all tasks have in common.
pub(in crate::kinds) struct Stage<'a> {
    /// Its name in progress and journal.
    pub(in crate::kinds) name: &'a str,
    /// Threads; 0 are as many as the program may use.
    pub(in crate::kinds) workers: usize,
}

/// What became of each task, in their order: from the journal where an earlier run finished it, by `work` otherwise, which gives nothing when it was told to stop. `depends` is everything that a task's result depends on besides seed and version.
///
/// # Errors
/// The first error of `work`; [`ExperimentError::Interrupted`]; a journal that cannot be written.
pub(in crate::kinds) fn each<T: Sync, D: Debug, V: Serialize + DeserializeOwned + Send>(
    stage: &Stage<'_>,
    tasks: &[T],
    context: &mut Context<'_>,
    depends: impl Fn(&T) -> D,
    work: impl Fn(&T, &AtomicBool) -> Result<Option<V>> + Sync,
) -> Result<Vec<V>> {
    let mut found: Vec<Option<V>> = Vec::with_capacity(tasks.len());
    for task in tasks {
        found.push(context.known(stage.name, &depends(task)));
    }
    let open: Vec<usize> = (0..tasks.len()).filter(|&i| found[i].is_none()).collect();
    let asked = if stage.workers == 0 { rayon::current_num_threads() } else { stage.workers };
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let mut done = tasks.len() - open.len();
    context.step(stage.name, done, tasks.len())?;
    thread::scope(|scope| {
        for _ in 0..asked.min(open.len()) {
            let sender = sender.clone();
            let (open, next, stop, work) = (&open, &next, &stop, &work);
            scope.spawn(move || {
                let own = |sender: mpsc::Sender<(usize, Result<Option<V>>)>| {
                    while !stop.load(Ordering::Relaxed) {
                        let Some(&i) = open.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                        if sender.send((i, work(&tasks[i], stop))).is_err() {
                            break;
                        }
                    }
                };
                match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                    Ok(pool) => pool.install(|| own(sender)),
                    // Where no thread can be had there is still this one.
                    Err(_) => own(sender),
                }
            });
        }
        drop(sender);
        let outcome = loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok((i, Ok(Some(value)))) => {
                    if let Err(error) = context.keep(stage.name, &depends(&tasks[i]), &value) {
                        break Err(error);
                    }
                    found[i] = Some(value);
                    done += 1;
                }
                Ok((_, Ok(None))) => {}
                Ok((_, Err(error))) => break Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
            if let Err(error) = context.step(stage.name, done, tasks.len()) {
                break Err(error);
            }
        };
        stop.store(true, Ordering::Relaxed);
        outcome
    })?;
    // Every task that was not interrupted has a result.
    found.into_iter().collect::<Option<Vec<V>>>().ok_or(ExperimentError::Interrupted)
}
