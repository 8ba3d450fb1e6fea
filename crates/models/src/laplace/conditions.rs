//! What is asked of a search and only the files decide on: whether it has any effect, and how long it will be.

use super::request::LaplaceRequest;
use crate::ModelError;
use posterior_laplace::fit::LearnedReport;
use posterior_laplace::fixed_mean::{FixedMeanKernel, FixedMeanOptions};
use posterior_laplace::gwi::PriorRows;
use posterior_laplace::{Approximation, FitOptions};
use posterior_networks::Graph;
use posterior_notes::fixes::{FREEZE_OUTPUTS, TRAIN_VALIDATION, TRAJECTORY_EVERY, VALIDATION_DATA};

/// What something that was asked for needs to have an effect, where only network and data tell whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Rows that the network has not seen.
    UnseenRows,
    /// Several outputs, which have a covariance.
    SeveralOutputs,
    /// A prior variance, whose place a learned covariance between several outputs takes.
    PriorVariance,
}

impl Needs {
    /// Why it is not there, and what to do about it.
    fn missing(self, options: &FitOptions, outputs: usize, unseen: bool) -> Option<String> {
        match (self, &options.approximation) {
            (Self::UnseenRows, _) if !unseen => Some(format!(
                "there are no rows to look at that the network has not seen: give {VALIDATION_DATA}, or train with `{TRAIN_VALIDATION:#}`, which records the rows that it sets aside"
            )),
            (Self::SeveralOutputs, _) if outputs == 1 => {
                Some("the network has one output, which no covariance joins with others: leave it out".into())
            }
            (Self::PriorVariance, Approximation::FixedMean(own)) if shares_outputs(own, outputs) => {
                Some(format!(
                    "the covariance between the network's {outputs} outputs, which is learned, carries the scale of all of them: leave it out, or hold that covariance ({FREEZE_OUTPUTS})"
                ))
            }
            _ => None,
        }
    }
}

/// Whether outputs share a learned covariance.
fn shares_outputs(own: &FixedMeanOptions, outputs: usize) -> bool {
    own.output_covariance && outputs > 1 && own.kernel != FixedMeanKernel::Tangent
}

/// Refuses what has no effect on this network with these data.
pub(crate) fn check(request: &LaplaceRequest, outputs: usize, unseen: bool) -> Result<(), ModelError> {
    for (what, needs) in &request.conditions {
        if let Some(why) = needs.missing(&request.options, outputs, unseen) {
            return Err(ModelError::Usage(format!("{what} has no effect: {why}")));
        }
    }
    Ok(())
}

/// The options as a fit follows them, and what it has to say where that is not to the letter: rows that choose when a search ends are scored once at least.
pub(crate) fn settled(options: &FitOptions) -> (FitOptions, Option<String>) {
    let (mut options, mut note) = (options.clone(), None);
    if let Approximation::FixedMean(own) = &mut options.approximation
        && own.steps < own.val_every
        && !own.closed_form
    {
        note = Some(format!(
            "validation rows are scored after all {} steps, which are fewer than the {} between two scores",
            own.steps, own.val_every
        ));
        own.val_every = own.steps.max(1);
    }
    (options, note)
}

/// What unseen rows chose of a fit by these options, which led to this report.
pub(crate) fn chosen_by_rows(options: &FitOptions, learned: Option<&LearnedReport>) -> &'static str {
    let prior = match learned {
        Some(LearnedReport::Gwi(report)) => report.prior.learned_from == PriorRows::Unseen,
        _ => true,
    };
    match &options.approximation {
        Approximation::Temperature => "its only number",
        Approximation::FixedMean(own) if own.closed_form => "its prior variance",
        Approximation::FixedMean(_) => "which of its steps was kept",
        Approximation::Gwi(own) => match (prior, own.tempering) {
            (true, true) => {
                "its prior, which of its steps was kept and what its variances were multiplied by"
            }
            (true, false) => "its prior and which of its steps was kept",
            (false, true) => "which of its steps was kept and what its variances were multiplied by",
            (false, false) => "which of its steps was kept",
        },
        Approximation::Ella(own) if own.val_every.is_some() && !options.tunes_on_unseen() => {
            "how many examples are in its curvature"
        }
        _ => "its hyperparameters",
    }
}

/// Bytes of text that the ways of inducing points may take in a model's header, of which a file holds 100 MB.
const LONGEST_WAY: usize = 50_000_000;

/// Bytes of a number of it.
const DIGITS: usize = 20;

/// Refuses ways of inducing points that no model file could hold.
pub(crate) fn check_trajectory(
    graph: &Graph,
    options: &FitOptions,
    rows: usize,
    outputs: usize,
) -> Result<(), ModelError> {
    let Approximation::FixedMean(own) = &options.approximation else { return Ok(()) };
    let Some(every) = own.trajectory_every else { return Ok(()) };
    let inputs: usize = graph.input_shape().iter().product();
    let before = graph.output().node().map(|node| graph.nodes()[node].inputs[0]);
    let numbers = match own.kernel {
        FixedMeanKernel::Features(_) => before.map_or(inputs, |place| graph.shape(place).iter().product()),
        _ => inputs,
    };
    let (points, records) = (own.inducing(rows, outputs), own.steps / every.max(1));
    let bytes = records.saturating_mul(points).saturating_mul(numbers).saturating_mul(DIGITS);
    if bytes <= LONGEST_WAY {
        return Ok(());
    }
    Err(ModelError::Request(format!(
        "{records} records of {points} inducing points, {numbers} numbers each, would be {} MB of text in the model's file, above {}: record them less often ({TRAJECTORY_EVERY})",
        bytes / 1_000_000,
        LONGEST_WAY / 1_000_000
    )))
}
