//! What fits of several targets take together.

use crate::method::large::expected_seconds;
use crate::text::time;
use crate::{FitRequest, Model, ModelError, Observed, PreparedTable, ScalablePlan, choose};
use posterior_gp::GpError;
use posterior_gp::exact::Plan;
use posterior_notes::fixes::MEMORY;
use std::fmt;

/// What the fit of one target takes.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetPlan {
    /// Memory, at most, while it is fitted.
    pub plan: Plan,
    /// Bytes of it that stay until the file is written, that of its arrays there included.
    pub kept_bytes: u64,
    /// Seconds, about, where they are known.
    pub seconds: Option<f64>,
}

impl TargetPlan {
    /// For a numeric target's rows.
    pub fn of_numbers(rows: &PreparedTable, request: &FitRequest) -> Self {
        let (count, names) = (rows.rows(), rows.names());
        let method = choose(request, count, &names).method;
        let from_disk = match rows.on_disk() {
            Some(_) => ScalablePlan::from_disk(request, &method, count, names.len()),
            None => None,
        };
        let peak = from_disk.map_or_else(|| Model::plan_fit(request, count, &names).1, |own| own.peak_bytes);
        let budget = request.limits.time.unwrap_or(f64::INFINITY);
        let seconds = expected_seconds(request, &method, count, &names).map(|s| s.min(budget));
        // The factor is kept, and once more as a packed triangle as the file is written; of others what they learned from, samples, and a matrix of inducing points and its factors.
        let kept = match method.settings().leaves_one_out() {
            true => peak,
            false => {
                let samples = method.iterative().map_or(0, |options| options.sampling.samples) as u64;
                let points = method.inducing().map_or(0, |options| options.points().min(count)) as u64;
                let numbers = (count as u64)
                    .saturating_mul(names.len() as u64 + 3 + samples)
                    .saturating_add(points.saturating_mul(points).saturating_mul(4));
                numbers.saturating_mul(24).min(peak)
            }
        };
        let mut plan = Plan::evidence(count, names.len(), 1);
        plan.peak_bytes = peak;
        Self { plan, kept_bytes: kept, seconds }
    }

    /// For rows of a target under another likelihood.
    ///
    /// # Errors
    /// As [`Model::plan_observed`].
    pub fn of_labels(observed: &Observed, request: &FitRequest) -> Result<Self, ModelError> {
        let found = Model::plan_observed(observed, request)?;
        let budget = request.limits.time.unwrap_or(f64::INFINITY);
        let seconds = found.seconds.map(|s| s.min(budget));
        Ok(Self { plan: found.plan, kept_bytes: found.plan.peak_bytes, seconds })
    }
}

/// What one fit after the other takes, each beside the models that are there already.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetsPlan {
    /// Targets so far.
    pub targets: usize,
    /// Most bytes at any time.
    pub peak_bytes: u64,
    /// Bytes that are there as the next fit begins.
    pub kept_bytes: u64,
    /// Seconds of all, about, where they are known of each.
    pub seconds: Option<f64>,
}

impl TargetsPlan {
    /// Of no target yet, beside so many bytes.
    pub fn beside(bytes: u64) -> Self {
        Self { targets: 0, peak_bytes: bytes, kept_bytes: bytes, seconds: Some(0.0) }
    }

    /// What a fit may take that begins now.
    ///
    /// # Errors
    /// [`ModelError::Request`] where nothing is left.
    pub fn left(&self, memory: u64) -> Result<u64, ModelError> {
        match memory.checked_sub(self.kept_bytes) {
            Some(left) if left > 0 => Ok(left),
            _ => Err(ModelError::Request(format!(
                "the table and the models of {} targets take {:.3} GB of memory already, above the limit of {:.3} GB: allow more ({MEMORY}), or fit the targets apart",
                self.targets,
                self.kept_bytes as f64 / 1e9,
                memory as f64 / 1e9
            ))),
        }
    }

    /// Adds the next fit, which may take so many bytes.
    ///
    /// # Errors
    /// [`GpError::Memory`] where it takes more.
    pub fn then(&mut self, next: &TargetPlan, left: u64) -> Result<(), ModelError> {
        if next.plan.peak_bytes > left {
            return Err(GpError::Memory { plan: next.plan, limit: left }.into());
        }
        self.targets += 1;
        self.peak_bytes = self.peak_bytes.max(self.kept_bytes.saturating_add(next.plan.peak_bytes));
        self.kept_bytes = self.kept_bytes.saturating_add(next.kept_bytes);
        self.seconds = self.seconds.zip(next.seconds).map(|(a, b)| a + b);
        Ok(())
    }
}

impl fmt::Display for TargetsPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.peak_bytes as f64 / 1e6;
        write!(out, "{} targets one after the other, at most {megabytes:.1} MB of memory", self.targets)?;
        self.seconds.map_or(Ok(()), |s| write!(out, " and about {} on this machine", time(s)))
    }
}
