//! The steps of a fit, in order.

use super::choices::{Choices, known_mode};
use super::curvature::Curvature;
use super::fitting::Fitting;
use super::held_out::noise_change;
use super::options::{FitOptions, NoiseModel, Tune};
use super::result::{Chosen, Laplace, Origin};
use super::solve::{ended_at, timed};
use super::summary::{FitSummary, LearnedReport};
use crate::LaplaceError;
use crate::mode::Mode;
use crate::normalisation::explain;
use crate::plan::Plan;
use crate::prior::PriorKind;
use crate::problem::Data;
use crate::run::Run;
use crate::saved::kept;
use crate::scores::scaled_noise;
use posterior_likelihoods::OutputLikelihood;
use posterior_linalg::compiled_here;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::EvidenceValue;
use posterior_networks::{PerNetworkPrecision, Precision};
use posterior_notes::fixes::{ALLOW_SEEN_ROWS, TUNE_EVIDENCE, VALIDATION_DATA};
use std::time::Instant;

/// Fits a posterior to a trained network. Validation examples are needed by [`Tune::Validation`], and by some searches.
///
/// # Errors
/// [`LaplaceError`]: bad targets or inputs, a plan that does not fit the memory, what does not fit together, interruption.
pub fn fit<T: Precision>(
    data: &Data<'_, T>,
    options: &FitOptions,
    run: &mut Run<'_>,
) -> Result<Laplace<T>, LaplaceError> {
    compiled_here!(T: Precision, PerNetworkPrecision; ['a, 'r: 'a] steps, (
        data: &'a Data<'a, T> = data,
        options: &'a FitOptions = options,
        run: &'a mut Run<'r> = run,
    ) -> Result<Laplace<T>, LaplaceError>)
}

fn steps<T: Precision>(
    data: &Data<'_, T>,
    options: &FitOptions,
    run: &mut Run<'_>,
) -> Result<Laplace<T>, LaplaceError> {
    let &Data { network, examples, .. } = data;
    data.check()?;
    check(options, data.validation.is_some())?;
    options.check_search()?;
    let started = Instant::now();
    let selection = options.weights.select(data, options.affine, options.seed, run)?;
    let Choices { mode, prior, scale_invariant } = Choices::of(network.graph(), &selection, options);
    let trained: Vec<f64> = selection.flatten(network.parameters()).iter().map(|v| v.to_f64()).collect();
    let mut notes = Vec::new();
    if options.prior == PriorKind::Auto && options.mode == Mode::Auto {
        notes.extend(explain(&scale_invariant));
    }
    let mode = known_mode(mode, &prior, options, (examples.len(), data.likelihood))?;
    let plan = Plan::new(&data.size(&selection), options)?;
    plan.check(options)?;
    let choosing = started.elapsed().as_secs_f64();
    let likelihood = data.likelihood.clone();
    let mut fitting = Fitting { data: *data, options, selection, likelihood, prior, mode, trained };

    if options.approximation.is_learned() {
        return fitting.learned(plan, choosing, run);
    }
    let mut seconds = [choosing, 0.0, 0.0, 0.0];
    let (mut curvature, mut fit) = timed(&mut seconds[1], || fitting.curvature(examples, run))?;
    let mut solved = match fitting.solve(&curvature, &fit, &mut seconds, run) {
        Err(LaplaceError::Interrupted) => {
            // The sums are whole and need not be made again.
            if let Curvature::Structure { sums: Some(sums), .. } = &curvature {
                run.checkpointer.keep(|| kept(sums))?;
            }
            return Err(LaplaceError::Interrupted);
        }
        other => other?,
    };
    if matches!(options.noise, NoiseModel::PerOutput | NoiseModel::Full) && is_gaussian(&fitting.likelihood) {
        let clock = Instant::now();
        for round in 0..20 {
            let next = fitting.noise(&curvature, &solved, run)?;
            let change = noise_change(&scaled_noise(&fitting.likelihood, solved.noise_variance)?, &next);
            fitting.likelihood = next;
            (curvature, fit) = fitting.curvature(examples, &mut run.unkept())?;
            solved = fitting.solve(&curvature, &fit, &mut seconds, run)?;
            if change < 1e-4 {
                break;
            }
            if round == 19 {
                notes
                    .push(format!("the noise was still changing by {:.1} % after 20 rounds", 100.0 * change));
            }
        }
        seconds[1] += clock.elapsed().as_secs_f64();
    }
    let held_out = timed(&mut seconds[3], || fitting.held_out(&curvature, &fit, &mut solved, run))?;
    notes.extend(solved.notes(&held_out, options.seen_by_network));

    let Fitting { selection, likelihood, prior, trained, .. } = fitting;
    let evidence_structure = curvature.evidence_structure()?;
    let hyperparameters = (&solved.prior, solved.noise_variance);
    let at = |mode: &[f64], data_fit| -> Result<_, LaplaceError> {
        Ok(ended_at(&evidence_structure, (mode, data_fit), hyperparameters)?.value)
    };
    let own_fit = solved.data_fit(&likelihood, &fit);
    let evidence = Some(at(&solved.mode, own_fit)?);
    notes.extend(evidence.as_ref().and_then(|e| absurd(e, fit.examples, &likelihood)));
    let evidence_at_trained =
        if solved.summary.is_some() { Some(at(&trained, fit.data_fit(&likelihood))?) } else { None };
    let mut summary = FitSummary {
        plan,
        fit,
        evidence,
        maximised: solved.maximised,
        held_out,
        evidence_at_trained,
        mode: solved.summary,
        scale_invariant,
        g_prior: prior == PriorKind::GPrior,
        notes,
        seconds,
        ..FitSummary::default()
    };
    match &curvature {
        Curvature::Structure { structure, .. } => summary.corrections = structure.corrections(),
        Curvature::FunctionSpace(points) => summary.points = Some(points.points()),
        Curvature::Ella(_, report) => summary.learned = Some(LearnedReport::Ella(report.clone())),
    }
    let chosen = Chosen {
        origin: Origin::Curvature(Box::new(curvature)),
        selection,
        likelihood,
        noise_variance: solved.noise_variance,
        prior: solved.prior,
        mode: solved.mode,
        integration: options.integration,
        summary,
    };
    Laplace::of(network, chosen)
}

/// Nats for each observed number beyond which what the evidence charges for weights says more about the approximation than about the model.
const ABSURD: f64 = 20.0;

/// A remark on an evidence that no model of these data could deserve.
fn absurd(value: &EvidenceValue, examples: usize, likelihood: &OutputLikelihood) -> Option<String> {
    let numbers = (examples * likelihood.target_width()) as f64;
    let charged = value.log_likelihood - value.log_evidence;
    let fine = value.log_evidence.is_finite() && charged <= ABSURD * numbers;
    (!fine).then(|| {
        format!(
            "WARNING: the log evidence {:.3e} charges {:.1e} nats for each observed number, more than any model of these data is worth: the prior precision does not fit the weights, or the curvature is \
             too crude for them; do not compare it, and tune by {TUNE_EVIDENCE} or choose a more exact curvature",
            value.log_evidence,
            charged / numbers.max(1.0)
        )
    })
}

fn check(options: &FitOptions, validation: bool) -> Result<(), LaplaceError> {
    let precision = options.initial_precision;
    let problem = match options.tune {
        _ if !(precision.is_finite() && precision > 0.0) => {
            format!("the prior precision is {precision}; it must be positive and finite")
        }
        Tune::Validation if !validation => {
            "tuning by held-out data needs validation examples: give some".into()
        }
        Tune::CrossValidation { folds } if folds < 2 => "cross-validation needs at least two folds".into(),
        Tune::CrossValidation { .. } if !options.seen_by_network => {
            format!(
                "cross-validation scores rows that the network was trained on, whichever part is left out of the curvature, and so favours no error bars at all: let the evidence choose ({TUNE_EVIDENCE}), \
                 give {VALIDATION_DATA} that the network has not seen, or insist with {ALLOW_SEEN_ROWS}"
            )
        }
        Tune::CrossValidation { .. } if options.approximation.form().is_none() => {
            "cross-validation needs a curvature made of sums: full, block, diagonal or kronecker".into()
        }
        _ => return Ok(()),
    };
    Err(LaplaceError::Request(problem))
}
