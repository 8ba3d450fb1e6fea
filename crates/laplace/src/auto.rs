//! **A default that can be trusted**: several posteriors that fit the budget, each tuned on held-out data with the predictive that will be used, and compared with the plain network.
//!
//! Published figures and our own show posteriors over all weights that predict worse than the network itself. So nothing is assumed: the best score on data that the curvature has not seen wins,
//! and where nothing beats the network, class probabilities stay the network's own (the posterior remains for latent variances and samples) and the report says so.

use crate::fit::{Approximation, FitOptions, Laplace, fit};
use crate::{FisherEstimate, LaplaceError, Plan, Stage, Tune, Weights};
use posterior_likelihoods::{Integration, OutputLikelihood, VectorLikelihood};
use posterior_networks::train::Examples;
use posterior_networks::{Network, Precision};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Multiplications and additions a second that a plan counts on; modest, so that a budget is rather kept than used up.
const RATE: f64 = 3e10;

/// What became of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, as `last-layer-kronecker`.
    pub name: String,
    /// What it needs.
    pub plan: Plan,
    /// Why it was not tried; None if it was.
    pub skipped: Option<String>,
    /// Its best score on the held-out examples.
    pub nll: Option<f64>,
    /// Seconds it took.
    pub seconds: f64,
}

/// The choice and its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoReport {
    /// Every candidate, cheapest first.
    pub candidates: Vec<Candidate>,
    /// The one that was chosen.
    pub chosen: String,
    /// Its score.
    pub nll: f64,
    /// The plain network's score on the same examples.
    pub plain_nll: f64,
    /// Whether the choice beats the network.
    pub beats_plain: bool,
}

/// Candidates for a network, cheapest first.
fn candidates<T: Precision>(
    network: &Network<T>,
    outputs: usize,
    examples: usize,
) -> Vec<(&'static str, Weights, Approximation)> {
    let kronecker = Approximation::Kronecker(FisherEstimate::Exact);
    let mut list = vec![("last-layer-kronecker", Weights::LastLayer, kronecker)];
    list.push(("last-layer", Weights::LastLayer, Approximation::Full));
    list.push(("diagonal", Weights::All, Approximation::Diagonal));
    list.push(("kronecker", Weights::All, kronecker));
    // Exact posteriors where they are small: in whichever space is smaller.
    let weights = network.graph().trainable();
    if weights <= 3000 && weights <= examples * outputs {
        list.push(("full", Weights::All, Approximation::Full));
    } else if examples * outputs <= 3000 {
        list.push(("function-space", Weights::All, Approximation::FunctionSpace { points: None }));
    }
    list
}

/// Fits what fits the budget and returns the best, by held-out examples that have no part in any curvature.
///
/// # Errors
/// When not even the cheapest candidate fits, or a fit fails.
pub fn auto<T: Precision>(
    network: &Network<T>,
    examples: &dyn Examples<T>,
    validation: &dyn Examples<T>,
    likelihood: &OutputLikelihood,
    options: &FitOptions,
    time: Option<Duration>,
    observer: &mut dyn FnMut(&str, Stage, usize, usize) -> Signal,
) -> Result<(Laplace<T>, AutoReport), LaplaceError> {
    let started = Instant::now();
    let mut reports = Vec::new();
    let mut best: Option<(Laplace<T>, String, f64, f64)> = None;
    for (name, weights, approximation) in candidates(network, likelihood.outputs(), examples.len()) {
        let own = FitOptions { weights, approximation, tune: Tune::Validation, ..options.clone() };
        let selection = own.weights.select(
            network,
            own.affine,
            examples,
            likelihood,
            own.seed,
            &mut |stage, done, total| observer(name, stage, done, total),
        )?;
        let plan = Plan::new(network, &selection, examples.len(), likelihood, &approximation);
        let expected = plan.flops / RATE;
        let left = time.map(|t| t.as_secs_f64() - started.elapsed().as_secs_f64());
        let skipped = match plan.check(&own) {
            Err(error) => Some(error.to_string()),
            Ok(()) if left.is_some_and(|left| expected > left) => Some(format!(
                "it would take about {expected:.0} s, {:.0} s are left",
                left.unwrap_or(0.0).max(0.0)
            )),
            // A scalar prior is all that function space knows.
            Ok(())
                if matches!(approximation, Approximation::FunctionSpace { .. })
                    && !matches!(own.prior, crate::PriorKind::Auto | crate::PriorKind::Scalar) =>
            {
                Some("function space knows the scalar prior only".into())
            }
            Ok(()) => None,
        };
        let mut report = Candidate { name: name.into(), plan, skipped, nll: None, seconds: 0.0 };
        if report.skipped.is_none() {
            let clock = Instant::now();
            let mut own_observer = |stage, done, total| observer(name, stage, done, total);
            match fit(network, examples, Some(validation), likelihood, &own, &mut None, &mut own_observer) {
                Ok(laplace) => {
                    let held_out = laplace.summary.held_out.as_ref();
                    let (nll, plain) = held_out.map_or((f64::NAN, f64::NAN), |h| (h.best.nll, h.plain_nll));
                    report.nll = Some(nll);
                    if best.as_ref().is_none_or(|b| nll < b.2) {
                        best = Some((laplace, name.to_string(), nll, plain));
                    }
                }
                Err(LaplaceError::Interrupted) => return Err(LaplaceError::Interrupted),
                // One candidate that fails (a curvature that cannot be factored, say) does not end the comparison.
                Err(error) => report.skipped = Some(error.to_string()),
            }
            report.seconds = clock.elapsed().as_secs_f64();
        }
        reports.push(report);
    }
    let Some((mut laplace, chosen, nll, plain_nll)) = best else {
        let reasons: Vec<String> = reports
            .iter()
            .map(|r| format!("{}: {}", r.name, r.skipped.clone().unwrap_or_default()))
            .collect();
        return Err(LaplaceError::Request(format!("no posterior fits the budget ({})", reasons.join("; "))));
    };
    let beats_plain = nll < plain_nll;
    laplace.summary.notes.push(match beats_plain {
        true => format!(
            "`{chosen}` was chosen of {} candidates: NLL {nll:.4} on {} held-out examples, the plain network {plain_nll:.4}",
            reports.iter().filter(|r| r.nll.is_some()).count(),
            validation.len()
        ),
        false => format!(
            "no posterior predicts better than the plain network on {} held-out examples (NLL {plain_nll:.4}; the best, `{chosen}`, {nll:.4}): \
             predictions are the network's own, the posterior gives latent variances and samples",
            validation.len()
        ),
    });
    if !beats_plain {
        laplace.integration = Integration::PlugIn;
    }
    Ok((laplace, AutoReport { candidates: reports, chosen, nll, plain_nll, beats_plain }))
}
