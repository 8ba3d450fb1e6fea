//! Mode and hyperparameters by the evidence, in turns where each depends on the other.

use super::result::Curvature;
use super::run::{Fitting, Observer};
use super::{ModeSummary, NoiseModel};
use crate::accumulate::{FitSums, is_gaussian};
use crate::mode::{FoundMode, Mode, ModeProblem};
use crate::tune::HeldOutReport;
use crate::{LaplaceError, Tune};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
use posterior_linear::evidence::{EvidenceOptions, LaplaceEvidence, MaximisedEvidence, Maximiser};
use posterior_linear::structure::Structure;
use posterior_networks::Precision;
use std::time::Instant;

/// Hyperparameters and mode at some point of the fit.
pub(super) struct Solved {
    pub(super) prior: Prior,
    pub(super) noise_variance: f64,
    pub(super) mode: Vec<f64>,
    pub(super) found: Option<FoundMode>,
    pub(super) summary: Option<ModeSummary>,
    pub(super) maximised: Option<MaximisedEvidence>,
}

impl Solved {
    /// The fit of the mode to the data.
    pub(super) fn data_fit(
        &self,
        likelihood: &OutputLikelihood,
        fit: &FitSums,
    ) -> posterior_linear::evidence::DataFit {
        match &self.found {
            None => fit.data_fit(likelihood),
            Some(found) => FitSums { log_likelihood: found.log_likelihood, ..*fit }.data_fit(likelihood),
        }
    }

    pub(super) fn notes(&self, held_out: &Option<HeldOutReport>, seen: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(m) = &self.maximised {
            if !m.converged {
                notes.push("the search for the largest evidence used up its steps".into());
            }
            if !m.at_bounds.is_empty() {
                notes.push(format!(
                    "hyperparameters at the edge of what is allowed: {} (weights that the data do not need go to infinite precision)",
                    m.at_bounds.join(", ")
                ));
            }
        }
        if let Some(report) = held_out {
            if report.at_edge {
                notes.push("the best hyperparameters on held-out data lie at the edge of the grid".into());
            }
            if report.not_finite > 0 {
                notes.push(format!("{} points of the grid had no finite score", report.not_finite));
            }
            if seen {
                notes.push(
                    "WARNING: hyperparameters were chosen on rows that the network was trained on. It fits them better than any new row, so that their score favours no error bars at all: \
                     neither it nor the choice says anything about new data"
                        .into(),
                );
            } else if report.best.nll >= report.plain_nll {
                notes.push(format!(
                    "on {} held-out examples nothing beats the plain network: NLL {:.4} against {:.4}",
                    report.examples, report.best.nll, report.plain_nll
                ));
            }
        }
        if let Some(mode) = &self.summary
            && !mode.converged
        {
            notes.push("mode and hyperparameters of the linearised model had not come to rest".into());
        }
        notes
    }
}

impl<T: Precision> Fitting<'_, T> {
    /// Mode and hyperparameters by the evidence (or as given).
    pub(super) fn solve(
        &self,
        curvature: &Curvature<T>,
        likelihood: &OutputLikelihood,
        fit: &FitSums,
        seconds: &mut [f64; 4],
        observer: Observer<'_>,
    ) -> Result<Solved, LaplaceError> {
        let options = self.options;
        let structure = self.evidence_structure(curvature)?;
        let prior = self.prior.prior(self.network.graph(), &self.selection, options.initial_precision)?;
        let prior = self.in_units_of_the_weights(prior)?;
        let mut solved = Solved {
            prior,
            noise_variance: 1.0,
            mode: self.trained.clone(),
            found: None,
            summary: None,
            maximised: None,
        };
        if self.mode == Mode::Trained || matches!(curvature, Curvature::FunctionSpace(_)) {
            let clock = Instant::now();
            self.maximise(&structure, likelihood, fit, &mut solved)?;
            seconds[3] += clock.elapsed().as_secs_f64();
            return Ok(solved);
        }
        let mut summary = ModeSummary {
            alternations: 0,
            newton_steps: 0,
            products: 0,
            converged: false,
            squared_norms: (0.0, square(&self.trained)),
            offset: 0.0,
            log_likelihood: 0.0,
        };
        let mut last_change = f64::INFINITY;
        for round in 0..options.alternations.max(1) {
            let clock = Instant::now();
            let strength = if is_gaussian(likelihood) { 1.0 / solved.noise_variance } else { 1.0 };
            let found = self.linear_mode(&structure, likelihood, &solved, strength, observer)?;
            seconds[2] += clock.elapsed().as_secs_f64();
            summary.alternations = round + 1;
            summary.newton_steps += found.newton_steps;
            summary.products += found.products;
            summary.squared_norms.0 = square(&found.weights);
            summary.offset = found.offset;
            summary.log_likelihood = found.log_likelihood;
            summary.converged = found.converged;
            solved.mode = found.weights.clone();
            solved.found = Some(found);
            let before = (solved.prior.clone(), solved.noise_variance);
            let clock = Instant::now();
            self.maximise(&structure, likelihood, fit, &mut solved)?;
            seconds[3] += clock.elapsed().as_secs_f64();
            let pairs = before.0.precisions().iter().zip(solved.prior.precisions());
            let change = pairs
                .map(|(a, b)| (b / a).ln().abs())
                .chain([(solved.noise_variance / before.1).ln().abs()])
                .fold(0.0, f64::max);
            // Rounds contract linearly, so what remains is the rest of a geometric series and may exceed the last change.
            let ratio = (change / last_change).clamp(0.0, 0.99);
            last_change = change;
            // Half a per cent of a precision changes no prediction that anyone could measure.
            if change * (ratio / (1.0 - ratio)).max(1.0) < 5e-3 {
                break;
            }
            summary.converged = false;
        }
        solved.summary = Some(summary);
        Ok(solved)
    }

    /// Several groups whose precisions are learned at the linear model's optimum begin in units of their trained weights, `d_l / |v_l|²`: a start in other units would make results depend on
    /// the scale of normalised weights, which no output depends on, by the maximum that is climbed to.
    fn in_units_of_the_weights(&self, prior: Prior) -> Result<Prior, LaplaceError> {
        let learned = matches!(self.options.tune, Tune::Evidence | Tune::Mackay);
        if prior.names().len() < 2 || !learned || self.mode == Mode::Trained {
            return Ok(prior);
        }
        let norms = prior.squared_norms(&self.trained);
        let start: Vec<f64> = prior
            .precisions()
            .iter()
            .zip(prior.group_sizes().iter().zip(norms))
            .map(|(a, (&size, norm))| if norm > 0.0 { (a * size as f64 / norm).clamp(1e-8, 1e8) } else { *a })
            .collect();
        Ok(prior.with_precisions(&start)?)
    }

    fn linear_mode(
        &self,
        structure: &Structure,
        likelihood: &OutputLikelihood,
        solved: &Solved,
        strength: f64,
        observer: Observer<'_>,
    ) -> Result<FoundMode, LaplaceError> {
        let scales = structure.scales();
        let each = solved.prior.precision_of_each(0..self.selection.len());
        let precisions = each
            .iter()
            .zip(&scales)
            .map(|(a, s)| if *s > 0.0 { a / (s * s) } else { f64::INFINITY })
            .collect();
        let problem = ModeProblem {
            network: self.network,
            selection: &self.selection,
            examples: self.examples,
            likelihood,
            precisions,
            trained: self.trained.clone(),
            strength,
            simple: self.mode == Mode::LinearisedSimple,
        };
        let preconditioner = structure.condition(&solved.prior, strength)?;
        problem.solve(&solved.mode, &preconditioner, &self.options.mode_options, observer)
    }

    /// The evidence's hyperparameters for the current mode.
    fn maximise(
        &self,
        structure: &Structure,
        likelihood: &OutputLikelihood,
        fit: &FitSums,
        solved: &mut Solved,
    ) -> Result<(), LaplaceError> {
        let maximiser = match self.options.tune {
            Tune::None => return Ok(()),
            Tune::Mackay => Maximiser::Mackay,
            _ => Maximiser::Gradient,
        };
        let data_fit = solved.data_fit(likelihood, fit);
        let evidence = LaplaceEvidence::new(structure, solved.prior.clone(), &solved.mode, data_fit)?;
        let learn_noise = self.options.noise == NoiseModel::Scale;
        let found =
            evidence.maximise(solved.noise_variance, learn_noise, maximiser, &EvidenceOptions::default())?;
        solved.prior = found.prior.clone();
        solved.noise_variance = found.noise_variance;
        solved.maximised = Some(found);
        Ok(())
    }
}

fn square(w: &[f64]) -> f64 {
    w.iter().map(|w| w * w).sum()
}
