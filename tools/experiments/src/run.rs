//! The runner.

use super::context::{Context, Event};
use super::journal::Journal;
use super::measured::Measured;
use super::numbers::averages;
use super::{Experiment, ExperimentError, Outcome, SeedNumbers};
use posterior_optim::Signal;
use posterior_report::Note;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How an experiment is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// One seed instead of the file's.
    pub seed: Option<u64>,
    /// The smaller settings of the file's `[quick]`.
    pub quick: bool,
    /// A file that keeps the parts of long experiments as they finish. A later run with the same settings, seeds and version takes them from there instead of
    /// computing them; the report tells how many.
    pub journal: Option<PathBuf>,
    /// Whether to empty that file first and compute everything.
    pub fresh: bool,
}

/// Runs an experiment with every seed. Pictures are those of the first.
///
/// The observer hears of every step and may stop the run between two of them.
///
/// # Errors
/// [`ExperimentError`]: missing data, settings that do not fit, what goes wrong in training and inference, interruption.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    observer: &mut dyn FnMut(&Event<'_>) -> Signal,
) -> Result<Outcome, ExperimentError> {
    let clock = Instant::now();
    let kind = experiment.code()?;
    let (settings, changes) = experiment.settings(options.quick)?;
    let seeds = options.seed.map_or_else(|| experiment.seeds.clone(), |s| vec![s]);
    let folder = experiment.path.parent().unwrap_or(Path::new("."));
    let mut journal = match &options.journal {
        Some(path) => Journal::open(path, options.fresh)?,
        None => Journal::default(),
    };
    let mut by_seed = Vec::new();
    let mut first = None;
    for &seed in &seeds {
        let own = Instant::now();
        let mut context = Context::new(seed, folder, observer, &mut journal);
        let measured = (kind.run)(&settings, &mut context);
        if context.stopped() {
            return Err(ExperimentError::Interrupted);
        }
        let mut measured = measured?;
        measured.notes.append(&mut context.notes);
        let seconds = own.elapsed().as_secs_f64();
        let (numbers, series) = (measured.numbers.take(), measured.series.take());
        by_seed.push(SeedNumbers { seed, seconds, numbers, series });
        first.get_or_insert(measured);
    }
    let mut measured: Measured = first.unwrap_or_default();
    if let (reused @ 1.., Some(path)) = (journal.reused, &options.journal) {
        let parts = if reused == 1 { "1 part was" } else { &format!("{reused} parts were") };
        let text = format!("{parts} finished by an earlier run and taken from {}", path.display());
        measured.notes.push(Note::information(text));
    }
    let numbers: Vec<_> = by_seed.iter().map(|s| s.numbers.clone()).collect();
    let (mean, standard_error) = averages(&numbers);
    let mut reductions = experiment.reductions.clone();
    if options.quick {
        reductions.push(format!("a quick run: {}", changes.join("; ")));
    }
    Ok(Outcome {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        description: experiment.description.clone(),
        kind: experiment.kind.clone(),
        quick: options.quick,
        seeds,
        seconds: clock.elapsed().as_secs_f64(),
        reductions,
        settings: serde_json::to_value(&settings).unwrap_or_default(),
        published: experiment.published.iter().map(|p| p.beside(&mean)).collect(),
        expectations: experiment.expectations.iter().map(|e| e.judge(&mean)).collect(),
        mean,
        standard_error,
        by_seed,
        reused: journal.reused,
        measured,
    })
}
