//! One budget of time for everything that a fit does.

use std::time::{Duration, Instant};

/// What a fit may take, searches, solves and fallbacks together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    begun: Instant,
    /// Seconds that earlier, interrupted runs of the same fit took.
    before: f64,
    total: Option<f64>,
}

/// Share of the budget that is kept for what comes last: scoring, predicting once, writing.
const ENDING: f64 = 0.04;

impl Allowance {
    /// A budget that begins now.
    pub(crate) fn new(total: Option<f64>) -> Self {
        Self { begun: Instant::now(), before: 0.0, total }
    }

    /// Counts what earlier runs took.
    pub(crate) fn after(self, seconds: f64) -> Self {
        Self { before: seconds.max(0.0), ..self }
    }

    /// Seconds so far, earlier runs included.
    pub(crate) fn elapsed(&self) -> f64 {
        self.before + self.begun.elapsed().as_secs_f64()
    }

    /// Seconds until a share of the budget is used up; none without a budget. Never negative.
    pub(crate) fn until(&self, share: f64) -> Option<f64> {
        self.total.map(|total| (total * share - self.elapsed()).max(0.0))
    }

    /// Seconds for the last of the stages.
    pub(crate) fn left(&self) -> Option<f64> {
        self.until(1.0 - ENDING)
    }

    /// As solvers take it.
    pub(crate) fn duration(seconds: Option<f64>) -> Option<Duration> {
        seconds.map(|s| Duration::from_secs_f64(s.clamp(0.0, 1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_share_one_budget_and_earlier_runs_count() {
        assert_eq!(Allowance::new(None).left(), None);
        let fresh = Allowance::new(Some(100.0));
        assert!((fresh.until(0.3).unwrap() - 30.0).abs() < 1.0 && (fresh.left().unwrap() - 96.0).abs() < 1.0);
        let later = fresh.after(40.0);
        assert_eq!(later.until(0.3), Some(0.0));
        assert!((later.left().unwrap() - 56.0).abs() < 1.0);
    }
}
