//! What training did to numbers that is no part of its formulas: floors, clipped eigenvalues, jitter, terms that were left out. Nothing of it is silent.

use super::objective::GeneralisedEvaluation;
use serde::{Deserialize, Serialize};

/// Jitter relative to a diagonal that a distance of Wasserstein always has, and rounding.
const USUAL_JITTER: f64 = 2e-8;

/// The worst of all steps of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Irregularities {
    /// Largest share of a batch's variances that were raised to their floor.
    pub floored: f64,
    /// Largest share of the reference's variances at a batch that were raised to theirs.
    pub reference_floored: f64,
    /// Most eigenvalues that a regulariser of matrices clipped in one step.
    pub clipped: usize,
    /// Most roots in a regulariser of matrices that drowned in rounding in one step.
    pub unresolved: usize,
    /// Largest jitter of a covariance in a regulariser of matrices, relative to the mean of its diagonal.
    pub regulariser_jitter: f64,
    /// Steps that went without a regulariser, because their batch was too small for it.
    pub left_out: usize,
    /// The step, from 1, at which the run ended because its objective was not finite even after smaller steps: what there is are parameters from before.
    pub diverged: Option<usize>,
}

impl Irregularities {
    /// Adds those of a step on so many rows.
    pub(super) fn add(
        &mut self,
        step: &GeneralisedEvaluation,
        rows: usize,
        functions: usize,
        references: usize,
    ) {
        let share = |count: usize, of: usize| count as f64 / (rows * of) as f64;
        self.floored = self.floored.max(share(step.floored, functions));
        self.reference_floored = self.reference_floored.max(share(step.reference_floored, references));
        self.clipped = self.clipped.max(step.clipped);
        self.unresolved = self.unresolved.max(step.unresolved);
        self.regulariser_jitter = self.regulariser_jitter.max(step.regulariser_jitter);
        self.left_out += usize::from(step.left_out);
    }

    /// A sentence about each that occurred, and what to do, after so many steps.
    pub fn sentences(&self, steps: usize) -> Vec<String> {
        let mut out = Vec::new();
        if self.floored > 0.0 {
            out.push(format!(
                "up to {:.1} % of a batch's variances were below their floor in training and raised to it: this covariance is sure of itself at inducing points, or is none (fixed-sparse-posterior)",
                100.0 * self.floored
            ));
        }
        if self.reference_floored > 0.0 {
            out.push(format!(
                "up to {:.1} % of a batch's rows have no variance under the process that regularises, and it was raised to a floor: it is sure of itself there, as a linear kernel is at the origin",
                100.0 * self.reference_floored
            ));
        }
        if self.clipped > 0 {
            out.push(format!(
                "the regulariser clipped up to {} eigenvalues in one step: its distance is too large by what they were",
                self.clipped
            ));
        }
        if self.unresolved > 0 {
            out.push(format!(
                "up to {} roots of the regulariser's matrices drowned in rounding in one step, and their slopes are not theirs: take fewer rows together",
                self.unresolved
            ));
        }
        if self.regulariser_jitter > USUAL_JITTER {
            out.push(format!(
                "the regulariser's matrices needed a jitter of up to {:.0e} times their diagonal, and its distance is that of matrices which have it: take fewer rows together",
                self.regulariser_jitter
            ));
        }
        if self.left_out > 0 {
            out.push(format!(
                "{} of {steps} steps went without the regulariser, because their batch was one row: take another size of batches",
                self.left_out
            ));
        }
        if let Some(step) = self.diverged {
            out.push(format!(
                "the objective was not finite at step {step}, even after smaller steps: what was found before it is kept; take a smaller step size"
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_sentence() {
        assert!(Irregularities::default().sentences(10).is_empty());
        let usual = Irregularities { regulariser_jitter: 1e-8, ..Irregularities::default() };
        assert!(usual.sentences(10).is_empty());
        let all = Irregularities {
            floored: 0.25,
            reference_floored: 0.5,
            clipped: 3,
            unresolved: 4,
            regulariser_jitter: 1e-5,
            left_out: 2,
            diverged: Some(7),
        };
        let told = all.sentences(10).join("\n");
        for words in
            ["25.0 %", "50.0 %", "3 eigenvalues", "4 roots", "1e-5 times", "2 of 10 steps", "at step 7"]
        {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(all.sentences(10).len(), 7);
    }
}
