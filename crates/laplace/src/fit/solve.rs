//! Mode and hyperparameters by the evidence, in turns where each depends on the other.

use super::by_kernel::ByKernel;
use super::conjugate::{Dual, mean_displacement, square, without_prior};
use super::curvature::Curvature;
use super::fitting::{Fitting, Solved};
use super::options::{AT_REST, FitOptions, NoiseModel, Tune};
use super::summary::ModeSummary;
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::function_space::FunctionSpace;
use crate::mode::Mode;
use crate::predict::between;
use crate::run::{Run, Stage};
use crate::scores::strength;
use crate::weights::Weights;
use posterior_linear::Prior;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::evidence::{
    DataFit, EvidenceOptions, EvidenceStep, LaplaceEvidence, MOST_FITTED, MaximisedEvidence, Maximiser,
};
use posterior_linear::mode::{self, ModeProblem, Predictor};
use posterior_linear::structure::Structure;
use posterior_networks::Precision;
use posterior_tangent::Tangent;
use std::time::Instant;

/// Share of the observed numbers that effective dimensions may take where the largest evidence would take nearly all. Chosen on networks that know their data by heart (tables of seeds 0 to 6 of
/// `benches/peers/networks_small.py`); of its seeds 20 to 39 nine networks are such: coverage of 95 % intervals 0.87 to 1.00, and NLL below that of the evidence at the trained weights on each.
pub(super) const KEPT_FREE: f64 = 0.5;

/// What is said of a linear model that leaves no residuals, and of that way out where it was taken.
pub(super) fn almost_exactly(fitted: f64, values: usize, kept_free: bool) -> String {
    let rest = match kept_free {
        true => {
            "prior and noise are those of the largest evidence that leaves half of the numbers to the noise; take the intervals with care, or train the network with less freedom"
        }
        false => "the noise that is left says little about the noise of new data",
    };
    format!(
        "the linearised network can fit what it learned from almost exactly ({fitted:.0} effective dimensions for {values} numbers observed), which leaves nothing to tell the noise by: {rest}"
    )
}

/// Effective dimensions of all weights at the end of a search.
pub(super) fn effective_dimensions(found: &MaximisedEvidence) -> f64 {
    found.value.effective_dimensions.iter().sum()
}

/// What `work` returns; its seconds are added to others.
pub(super) fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let clock = Instant::now();
    let out = work();
    *seconds += clock.elapsed().as_secs_f64();
    out
}

/// What an optimum is sought of.
struct LinearModel<'a, T> {
    mode: Mode,
    structure: &'a Structure,
    /// Where it has a closed form in function space.
    dual: Option<(&'a FunctionSpace<T>, Dual)>,
    /// Where it is found by kernels between few examples.
    by_kernel: Option<ByKernel>,
    fit: &'a FitSums,
}

impl<T: Precision> Fitting<'_, T> {
    /// Mode and hyperparameters by the evidence (or as given).
    pub(super) fn solve(
        &self,
        curvature: &Curvature<T>,
        fit: &FitSums,
        seconds: &mut [f64; 4],
        run: &mut Run<'_>,
    ) -> Result<Solved, LaplaceError> {
        let (options, gaussian) = (self.options, is_gaussian(&self.likelihood));
        let conjugate = self.is_conjugate(curvature);
        // Of some weights only, the optimum has learned all that they can say of the data by heart, and its noise is too small (the book has the numbers).
        let all = options.weights == Weights::All;
        let chosen = conjugate && all && options.mode == Mode::Auto && self.mode == Mode::Trained;
        if self.mode == Mode::Trained && !chosen {
            let (structure, mut solved) = (curvature.evidence_structure()?, self.start()?);
            timed(&mut seconds[3], || self.maximise(&structure, fit, &mut solved))?;
            return Ok(solved);
        }
        let mode = if chosen { Mode::Linearised } else { self.mode };
        let dual = match curvature {
            Curvature::FunctionSpace(points) => {
                Some((points, timed(&mut seconds[2], || self.dual(points, run))?))
            }
            Curvature::Structure { .. } | Curvature::Ella(..) => None,
        };
        let structure = curvature.evidence_structure()?;
        let mut solved = self.start()?;
        let mut spectral = None;
        if conjugate && mode == Mode::Linearised {
            let dual = dual.as_ref().map(|d| &d.1);
            spectral = timed(&mut seconds[2], || self.spectral(curvature, dual, fit, run))?;
            let found = spectral.as_ref().and_then(|s| s.largest(&EvidenceOptions::default(), f64::INFINITY));
            solved.take_hyperparameters(found)?;
        }
        let by_kernel = match &dual {
            None if structure.scales().iter().all(|s| *s == 1.0) => {
                timed(&mut seconds[2], || self.by_kernel(&solved, run))?
            }
            _ => None,
        };
        let model = LinearModel { mode, structure: &structure, dual, by_kernel, fit };
        self.in_turns(&model, &mut solved, seconds, run)?;
        if conjugate && mode == Mode::Linearised {
            // Of the hyperparameters as they came out: these are quoted together.
            let rested = solved.summary.as_ref().is_some_and(|m| m.converged);
            self.optimum(&model, &mut solved, seconds, run)?;
            if let Some(summary) = &mut solved.summary {
                summary.converged &= rested;
            }
        }
        if let Some(summary) = &mut solved.summary {
            summary.at_hyperparameters = conjugate || options.tune == Tune::None;
        }
        let values = fit.examples * self.likelihood.outputs();
        let fitted = solved.maximised.as_ref().map_or(0.0, effective_dimensions);
        if mode == Mode::Linearised && gaussian && fitted > MOST_FITTED * values as f64 {
            let within = spectral.filter(|_| chosen);
            let most = KEPT_FREE * values as f64;
            let within = within.and_then(|s| s.largest(&EvidenceOptions::default(), most));
            solved.remarks.push(almost_exactly(fitted, values, within.is_some()));
            if within.is_some() {
                solved.take_hyperparameters(within)?;
                self.optimum(&model, &mut solved, seconds, run)?;
                let at = (&solved.mode[..], solved.data_fit(&self.likelihood, fit));
                let found = ended_at(&structure, at, (&solved.prior, solved.noise_variance))?;
                solved.maximised = Some(found);
            }
        }
        if gaussian && mode == Mode::Linearised {
            let (direction, data) = (between(&self.trained, &solved.mode), &self.data);
            let distance =
                timed(&mut seconds[2], || mean_displacement(data, &self.selection, &direction, run))?;
            if let Some(summary) = &mut solved.summary {
                summary.displacement = Some(distance);
            }
        }
        Ok(solved)
    }

    /// Where the search begins: at the trained weights.
    fn start(&self) -> Result<Solved, LaplaceError> {
        let precision = self.options.initial_precision;
        let prior = self.prior.prior(self.data.network.graph(), &self.selection, precision)?;
        Ok(Solved::at(self.trained.clone(), self.in_units_of_the_weights(prior)?, 1.0))
    }

    /// The linear model's optimum for given hyperparameters, and hyperparameters for a given optimum, until both have come to rest.
    fn in_turns(
        &self,
        model: &LinearModel<'_, T>,
        solved: &mut Solved,
        seconds: &mut [f64; 4],
        run: &mut Run<'_>,
    ) -> Result<(), LaplaceError> {
        let squared_norms = (0.0, square(&self.trained));
        solved.summary = Some(ModeSummary { squared_norms, ..ModeSummary::default() });
        let (mut last_change, mut converged) = (f64::INFINITY, false);
        for _ in 0..self.options.alternations.max(1) {
            self.optimum(model, solved, seconds, run)?;
            let before = (solved.prior.clone(), solved.noise_variance);
            timed(&mut seconds[3], || self.maximise(model.structure, model.fit, solved))?;
            let pairs = before.0.precisions().iter().zip(solved.prior.precisions());
            let change = pairs
                .map(|(a, b)| (b / a).ln().abs())
                .chain([(solved.noise_variance / before.1).ln().abs()])
                .fold(0.0, f64::max);
            // Rounds contract linearly, so what remains is the rest of a geometric series and may exceed the last change.
            let ratio = (change / last_change).clamp(0.0, 0.99);
            last_change = change;
            converged = change * (ratio / (1.0 - ratio)).max(1.0) < AT_REST;
            if converged {
                break;
            }
        }
        if let Some(summary) = &mut solved.summary {
            summary.converged &= converged;
        }
        Ok(())
    }

    /// Moves to the linear model's optimum for the present hyperparameters.
    fn optimum(
        &self,
        model: &LinearModel<'_, T>,
        solved: &mut Solved,
        seconds: &mut [f64; 4],
        run: &mut Run<'_>,
    ) -> Result<(), LaplaceError> {
        let found = timed(&mut seconds[2], || match (&model.dual, &model.by_kernel) {
            (Some((points, dual)), _) => self.dual_mode(points, dual, solved, model.fit),
            (None, Some(by)) => self.mode_by_kernel(by, model.mode, solved),
            (None, None) => self.linear_mode(model.mode, model.structure, solved, run),
        })?;
        if let Some(summary) = &mut solved.summary {
            summary.alternations += 1;
            summary.newton_steps += found.newton_steps;
            summary.products += found.products;
            summary.squared_norms.0 = square(&found.weights);
            summary.offset = found.offset;
            summary.log_likelihood = found.log_likelihood;
            summary.converged = found.converged;
        }
        solved.mode = found.weights.clone();
        solved.found = Some(found);
        Ok(())
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
        mode: Mode,
        structure: &Structure,
        solved: &Solved,
        run: &mut Run<'_>,
    ) -> Result<mode::Mode, LaplaceError> {
        let scales = structure.scales();
        let each = solved.prior.precision_of_each(0..self.selection.len());
        let precisions = each
            .iter()
            .zip(&scales)
            .map(|(a, s)| if *s > 0.0 { a / (s * s) } else { f64::INFINITY })
            .collect();
        let strength = strength(&self.likelihood, solved.noise_variance);
        let own = self.problem();
        let (tangent, observed) = (Tangent::new(own.network, &self.selection), own.observed());
        let simple = mode == Mode::LinearisedSimple;
        let predictor = if simple { Predictor::Linear } else { Predictor::Affine };
        let problem = ModeProblem { precisions, strength, predictor, ..without_prior(&tangent, &observed) };
        let preconditioner = structure.condition(&solved.prior, strength)?;
        let (options, mut stage) = (&self.options.mode_options, run.stage(Stage::Mode));
        Ok(problem.solve(&solved.mode, &preconditioner, options, &mut stage)?)
    }

    /// The evidence's hyperparameters for the current mode.
    fn maximise(
        &self,
        structure: &Structure,
        fit: &FitSums,
        solved: &mut Solved,
    ) -> Result<(), LaplaceError> {
        let at = (&solved.mode[..], solved.data_fit(&self.likelihood, fit));
        let found = largest_evidence(structure, at, (&solved.prior, solved.noise_variance), self.options)?;
        if let Some(found) = found {
            solved.prior = found.prior.clone();
            solved.noise_variance = found.noise_variance;
            solved.maximised = Some(found);
        }
        Ok(())
    }
}

/// The evidence's hyperparameters for a mode and its fit, from a prior and a noise variance on; None where it does not choose.
pub(super) fn largest_evidence(
    structure: &Structure,
    (mode, data_fit): (&[f64], DataFit),
    (prior, noise_variance): (&Prior, f64),
    options: &FitOptions,
) -> Result<Option<MaximisedEvidence>, LaplaceError> {
    let maximiser = match options.tune {
        Tune::None => return Ok(None),
        Tune::Mackay => Maximiser::Mackay,
        _ => Maximiser::Gradient,
    };
    let evidence = LaplaceEvidence::new(structure, prior.clone(), mode, data_fit)?;
    let learn_noise = options.noise == NoiseModel::Scale;
    let bounds = EvidenceOptions::default();
    Ok(Some(evidence.maximise(noise_variance, learn_noise, maximiser, &bounds)?))
}

/// The evidence at hyperparameters, as a search that needs no steps: it ends where it is told to.
pub(super) fn ended_at(
    structure: &Structure,
    (mode, data_fit): (&[f64], DataFit),
    (prior, noise_variance): (&Prior, f64),
) -> Result<MaximisedEvidence, LaplaceError> {
    let evidence = LaplaceEvidence::new(structure, prior.clone(), mode, data_fit)?;
    let value = evidence.at(prior.precisions(), noise_variance)?;
    let (precisions, log_evidence) = (prior.precisions().to_vec(), value.log_evidence);
    let steps = vec![EvidenceStep { precisions, noise_variance, log_evidence }];
    let prior = prior.clone();
    Ok(MaximisedEvidence { prior, noise_variance, value, steps, converged: true, at_bounds: Vec::new() })
}
