//! How many rows effects are worth, and what they take.

use super::MOST_CURVES;
use super::dependence::SETTINGS;
use super::importance::LEAST_ROWS;
use super::sources::Source;
use crate::{PredictionPlan, Process, text};

/// Rows among which cells are exchanged, and pairs of rows for each column.
pub(crate) const MOST_ROWS: usize = 1024;
const FEW_ROWS: usize = 128;

/// Rows over which a curve is an average.
const BACKGROUND: usize = 64;
const SMALL_BACKGROUND: usize = 8;

/// Operations that importance may cost, and curves: a few seconds each. They are made with fewer rows where that is not enough, and left out where it is not enough by far.
const WORK: f64 = 5e10;
const TOO_MUCH: f64 = 1e12;

/// How much is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) rows: usize,
    /// Other rows that each row exchanges cells with.
    pub(crate) shifts: usize,
    pub(crate) background: usize,
}

/// Curves that these columns may have at most: those with most parts.
fn curves(sources: &[Source<'_>]) -> usize {
    let mut parts: Vec<usize> = sources.iter().map(|source| source.parts.len()).collect();
    parts.sort_unstable_by(|a, b| b.cmp(a));
    parts.iter().take(MOST_CURVES).sum()
}

impl Sizes {
    /// For `n` rows that there are; else why there is nothing to ask.
    pub(crate) fn of(model: &Process<'_>, sources: &[Source<'_>], n: usize) -> Result<Self, String> {
        if n < LEAST_ROWS {
            return Err(format!("of {n} rows the variance is not known: {LEAST_ROWS} at least are wanted"));
        }
        let [mean, average] = model.work_of_effects();
        let predictions = |rows: usize| (rows * (1 + sources.len())) as f64;
        let affordable = |work: f64, each: f64, (least, most): (usize, usize)| -> usize {
            // A float-to-integer cast saturates.
            ((work / each.max(1.0)) as usize).clamp(least, most)
        };
        let rows = affordable(WORK, mean * predictions(1), (FEW_ROWS, MOST_ROWS)).min(n);
        let curves = curves(sources);
        // A model of one column is a function of that alone.
        let most = if sources.len() == 1 { 1 } else { BACKGROUND };
        let along = average * (curves * SETTINGS) as f64;
        let background = affordable(WORK, along, (SMALL_BACKGROUND.min(most), most)).min(rows);
        let work = mean * predictions(rows) + along * background as f64;
        if work > TOO_MUCH {
            return Err(format!("{} columns of this model would take {}", sources.len(), text::work(work)));
        }
        // Few rows meet several others each, fewer than half of them, so that no pair meets twice.
        let wanted = MOST_ROWS.div_ceil(rows).min(affordable(WORK, mean * predictions(rows), (1, MOST_ROWS)));
        let shifts = wanted.clamp(1, (rows - 1) / 2);
        Ok(Self { rows, shifts, background })
    }

    /// What that takes beside the model.
    pub(crate) fn plan(self, model: &Process<'_>, sources: &[Source<'_>]) -> PredictionPlan {
        let Self { rows, shifts, background } = self;
        let [mean, average] = model.work_of_effects();
        let columns = model.inputs.schema.features.len() as u64;
        let exchanged = rows * (1 + sources.len() * shifts);
        let along = curves(sources) * SETTINGS * background;
        // The rows, with cells exchanged, with what becomes of them; and those of a curve.
        let inputs = 8 * columns * (3 * rows as u64 + 2 * (SETTINGS * background) as u64);
        let pairs = 8 * (rows * (shifts + 4)) as u64;
        let bytes =
            model.bytes_of_effects(rows, 0).max(model.bytes_of_effects(SETTINGS * background, SETTINGS));
        PredictionPlan {
            rows: exchanged + along,
            samples: 0,
            peak_bytes: inputs.saturating_add(pairs).saturating_add(bytes),
            data_bytes: 0,
            kept_bytes: 0,
            flops: mean * exchanged as f64 + average * along as f64,
            seconds: None,
        }
    }
}
