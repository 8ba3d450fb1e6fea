//! What predictions take, counted before they are made.

use crate::text::{time, work};
use posterior_notes::fixes::{LIMIT, MEMORY, QUANTILES, SAMPLES, STREAM};
use serde::Serialize;

/// What predicting takes, the data included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictionPlan {
    /// Rows, or examples.
    pub rows: usize,
    /// Joint draws.
    pub samples: usize,
    /// Bytes that are there at most, beside the model.
    pub peak_bytes: u64,
    /// Bytes of them that were there before, in the data.
    pub data_bytes: u64,
    /// Bytes that stay: the data, and what was predicted of them.
    pub kept_bytes: u64,
    /// Floating-point operations, about; at most, where variances are solved for.
    pub flops: f64,
    /// Seconds, about, where they are known; at most, where variances are solved for.
    pub seconds: Option<f64>,
}

impl std::fmt::Display for PredictionPlan {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, samples, peak_bytes, flops, seconds, .. } = self;
        let draws = if *samples > 0 { format!(" and {samples} joint draws") } else { String::new() };
        let (megabytes, work) = (*peak_bytes as f64 / 1e6, work(*flops));
        write!(out, "predictions of {rows} rows{draws} need {megabytes:.1} MB of memory and {work}")?;
        seconds.map_or(Ok(()), |s| write!(out, ", about {} on this machine", time(s)))
    }
}

impl PredictionPlan {
    /// The same beside something else.
    pub fn beside(mut self, bytes: u64) -> Self {
        self.peak_bytes = self.peak_bytes.saturating_add(bytes);
        self
    }

    /// What it takes to predict these data and then others, both of which are there from the beginning to the end.
    pub fn then(&self, others: &Self) -> Self {
        let first = self.peak_bytes.saturating_add(others.data_bytes);
        Self {
            rows: self.rows + others.rows,
            peak_bytes: first.max(self.kept_bytes.saturating_add(others.peak_bytes)),
            data_bytes: self.data_bytes.saturating_add(others.data_bytes),
            kept_bytes: self.kept_bytes.saturating_add(others.kept_bytes),
            flops: self.flops + others.flops,
            seconds: self.seconds.zip(others.seconds).map(|(a, b)| a + b),
            ..self.clone()
        }
    }

    /// One after the other, of plans of which either may be absent.
    pub(crate) fn both(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) => Some(first.then(&second)),
            (first, second) => first.or(second),
        }
    }

    /// Why it is refused, and the way out.
    pub(crate) fn refusal(&self, limit: u64) -> String {
        format!(
            "{self}, above the limit of {:.3} MB: allow more memory ({MEMORY}), or ask for fewer rows ({LIMIT}), draws ({SAMPLES}) or quantiles ({QUANTILES}); `predict {STREAM}` reads, \
             predicts and writes tables of processes part by part",
            limit as f64 / 1e6
        )
    }
}
