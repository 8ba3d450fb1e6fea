//! Which classes are taken for which.

use super::Classes;
use crate::MetricsError;
use serde::{Deserialize, Serialize};

/// More classes than this are refused: the table grows with their square.
pub const MOST_CONFUSION_CLASSES: usize = 2_000;

/// How often each class was predicted for each true class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfusionMatrix {
    /// Number of classes.
    pub classes: usize,
    /// Counts, row-major: row = true class, column = predicted class.
    pub counts: Vec<usize>,
}

impl Classes<'_> {
    /// The confusion matrix of the most probable classes.
    ///
    /// # Errors
    /// [`MetricsError::Setting`] for more than [`MOST_CONFUSION_CLASSES`] classes.
    pub fn confusion(&self) -> Result<ConfusionMatrix, MetricsError> {
        let classes = self.probabilities().classes();
        if classes > MOST_CONFUSION_CLASSES {
            return Err(MetricsError::Setting {
                what: "the number of classes of a confusion matrix",
                value: classes,
                least: 1,
                most: MOST_CONFUSION_CLASSES,
            });
        }
        let mut counts = vec![0; classes * classes];
        for (prediction, label) in self.probabilities().predictions().into_iter().zip(self.labels()) {
            counts[label * classes + prediction] += 1;
        }
        Ok(ConfusionMatrix { classes, counts })
    }
}
