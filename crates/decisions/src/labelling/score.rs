//! **How good the predictions were**: of every row that was asked for, what was believed before its label was told, against that label. No row has to be held back.
//!
//! Rows are asked for because they are hard, so these scores are worse than those of typical rows, except where rows are asked for at random.

use super::Labelling;
use serde::Serialize;

/// Scores of labels that were predicted before they were told.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueryScores {
    /// Labels that were predicted.
    pub labels: usize,
    /// Share of them that the most probable class was right about.
    pub accuracy: f64,
    /// Mean of `-log p(label)`, nats, over labels of classes that were known then.
    pub nll: f64,
    /// The same of a guess that gives all classes that were known the same probability.
    pub uniform_nll: f64,
    /// Labels of classes that were not known then; they count as wrong, and not in the NLL.
    pub unforeseen: usize,
}

impl Labelling {
    /// Scores of all labels that were predicted before they were told; None where there are none.
    pub fn scores(&self) -> Option<QueryScores> {
        let (mut labels, mut right, mut unforeseen) = (0usize, 0usize, 0usize);
        let (mut nll, mut uniform) = (0.0, 0.0);
        for question in &self.questions {
            let (Some(believed), Some(class)) = (&question.believed, self.class_of(question)) else {
                continue;
            };
            labels += 1;
            match believed.get(class) {
                Some(p) => {
                    // A probability that has underflowed is still not 0.
                    nll -= p.max(f64::MIN_POSITIVE).ln();
                    uniform += (believed.len() as f64).ln();
                    right += usize::from(question.best_guess().is_some_and(|(best, _)| best == class));
                }
                None => unforeseen += 1,
            }
        }
        let foreseen = (labels - unforeseen) as f64;
        (labels > 0).then(|| QueryScores {
            labels,
            accuracy: right as f64 / labels as f64,
            nll: nll / foreseen,
            uniform_nll: uniform / foreseen,
            unforeseen,
        })
    }
}
