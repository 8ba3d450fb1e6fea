//! Posterior samples by descent on two objectives with one minimum: how far the weights are from the exact samples, by step and by size of the batches.
//!
//! One objective has the noise of the data in its targets, the other in its regulariser, where batches add no noise of their own. Serves figure 4.2 of the thesis, left.
//!
//! | file | what |
//! |---|---|
//! | `stored` | the features of all images, stored |
//! | `descents` | exact samples, descents with step sizes that the loss chooses, variances of gradients |
//! | `report` | numbers, tables, curves |

mod descents;
mod report;
mod stored;

use crate::classifier::{NetworkSettings, Untrained};
use crate::images::ImageSettings;
use crate::kinds::prelude::*;
use crate::training::TrainingSettings;
use descents::{Errors, Problem, Variances};
use posterior_linear::sampled::Objective;
use report::Found;

/// Settings of the kind.
#[derive(Deserialize)]
pub(crate) struct Settings {
    data: ImageSettings,
    training: TrainingSettings,
    network: NetworkSettings,
    descent: Descents,
    /// Sizes of batches, ascending.
    batches: Vec<usize>,
    /// Single examples by whose gradients variances are estimated: the first so many.
    examples: usize,
}

/// The table `[descent]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Descents {
    /// The prior precision.
    precision: f64,
    samples: usize,
    /// Steps of every descent, rounded up to whole passes over the images.
    steps: usize,
    /// Steps between two looks at the error.
    every: usize,
    momentum: f64,
    /// Step sizes that are tried for each objective and size of batches, as shares of the inverse of the largest curvature of all images, ascending.
    shares: Vec<f64>,
    /// Descents with the best of them, each with batches of its own.
    repeats: usize,
    /// Relative residual of the exact samples.
    tolerance: f64,
}

impl Checked for Settings {
    fn check(&self) -> Result<()> {
        let own = &self.descent;
        if self.batches.is_empty() || self.batches[0] == 0 || !self.batches.is_sorted_by(|a, b| a < b) {
            return refused("`batches` are sizes of batches, ascending, at least one");
        }
        if self.batches.last().is_some_and(|b| *b > self.data.train) {
            return refused(format!("`batches`: there are {} training images", self.data.train));
        }
        if own.shares.is_empty()
            || !own.shares.is_sorted_by(|a, b| a < b)
            || !own.shares.iter().all(|s| positive(*s))
        {
            return refused("`shares` are positive, ascending, at least one");
        }
        if [own.samples, own.steps, own.every, own.repeats, self.examples].contains(&0) {
            return refused("`samples`, `steps`, `every`, `repeats` and `examples` are at least 1");
        }
        if !(positive(own.precision) && positive(own.tolerance) && own.tolerance < 1.0) {
            return refused("`precision` is positive, `tolerance` lies between 0 and 1");
        }
        Ok(())
    }
}

/// Both objectives, as they are called in the results.
const OBJECTIVES: [(&str, Objective); 2] =
    [("low-variance", Objective::LowVariance), ("standard", Objective::Standard)];

/// Trains the network, solves for samples exactly, and descends.
pub(crate) fn run(settings: &Settings, context: &mut Context<'_>) -> Result<Measured> {
    let own = &settings.descent;
    let mut untrained = Untrained::new(&settings.data, &settings.training, &settings.network);
    let (fact, _) = untrained.fact(context)?;
    let depends = (untrained.depends(), own);
    let mut problem = None;
    let mut found: Vec<Found> = Vec::new();
    for one in OBJECTIVES {
        for &batch in &settings.batches {
            let stage = format!("{}, batches of {batch}", one.0);
            let errors: Errors = context.once(&stage, &depends, |context| {
                made(&mut problem, || Problem::new(own, untrained.trained(context)?, context))?
                    .errors(own, one, batch, context)
            })?;
            if errors.errors.is_empty() {
                return refused(format!("{stage}: every step size diverges: add smaller `shares`"));
            }
            found.push((one.0, batch, errors));
        }
    }
    let variances: Variances =
        context.once("gradient variances", &(depends, settings.examples), |context| {
            let objectives = OBJECTIVES.map(|o| o.1);
            let problem = made(&mut problem, || Problem::new(own, untrained.trained(context)?, context))?;
            problem.variances(own, settings.examples, objectives, context)
        })?;
    Ok(report::measured(settings, fact, &found, &variances))
}
