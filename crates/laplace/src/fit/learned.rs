//! Fits whose posterior is found by a search of its own.

use super::conjugate::mean_displacement;
use super::result::{Posterior, between, displacement};
use super::run::{Fitting, Observer};
use super::{Approximation, FitOptions, FitSummary, Laplace, scaled_noise};
use crate::accumulate::FitSums;
use crate::fixed_mean::FixedMeanKernel;
use crate::keep::Keeper;
use crate::learned::{Learned, LearnedReport};
use crate::mean_field::MeanField;
use crate::sampled::Unseen;
use crate::temperature::Temperature;
use crate::tune::HeldOutReport;
use crate::{LaplaceError, Plan, PriorKind, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::Precision;
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, doubles, ranges};
use std::time::Instant;

/// What a search found.
struct Found<T> {
    posterior: Box<dyn Learned<T>>,
    /// The likelihood before its noise is multiplied by the factor.
    likelihood: OutputLikelihood,
    noise_factor: f64,
    /// Prior precisions; that of the search's first prior variance where it has no other.
    precisions: Vec<f64>,
    /// The optimum of the linearised model, where it was sought.
    mode: Option<Vec<f64>>,
    report: LearnedReport,
    held_out: Option<HeldOutReport>,
    notes: Vec<String>,
}

impl Approximation {
    /// Whether the posterior is found by a search of its own, which chooses everything.
    pub fn is_learned(&self) -> bool {
        matches!(
            self,
            Self::Temperature | Self::MeanField(_) | Self::Sampled(_) | Self::FixedMean(_) | Self::Gwi(_)
        )
    }

    /// Whether it is about the network's weights at all.
    pub(crate) fn has_weights(&self) -> bool {
        match self {
            Self::Temperature | Self::Gwi(_) => false,
            Self::FixedMean(own) => own.kernel == FixedMeanKernel::Tangent,
            _ => true,
        }
    }

    /// Which weights share a precision in such a search.
    pub(super) fn searched_prior(&self) -> PriorKind {
        match self {
            Self::Sampled(own) if own.layerwise => PriorKind::Layerwise,
            _ => PriorKind::Scalar,
        }
    }
}

impl FitOptions {
    /// Refuses what a search of its own decides, where it was asked for beside it.
    pub(super) fn check_search(&self) -> Result<(), LaplaceError> {
        if !self.approximation.is_learned() {
            return Ok(());
        }
        let none = Self::default();
        let beside = [
            (self.prior != none.prior, "a prior"),
            (self.initial_precision != none.initial_precision, "a prior precision"),
            (self.tune != none.tune, "tuning"),
            (self.noise != none.noise, "a noise model"),
            (self.mode != none.mode, "a mode"),
            (self.weights != none.weights && !self.approximation.has_weights(), "a choice of weights"),
        ];
        match beside.iter().find(|b| b.0) {
            None => Ok(()),
            Some((_, what)) => Err(LaplaceError::Request(format!(
                "`{}` has options of its own for what it learns: leave {what} of the fit as it is",
                self.approximation.name()
            ))),
        }
    }
}

impl<T: Precision> Fitting<'_, T> {
    /// The whole fit.
    pub(super) fn learned(
        self,
        likelihood: &OutputLikelihood,
        plan: Plan,
        choosing: f64,
        keeper: &mut Keeper<'_>,
        observer: Observer<'_>,
    ) -> Result<Laplace<T>, LaplaceError> {
        let clock = Instant::now();
        let fit = self.fit_of_the_network(likelihood, observer)?;
        let passing = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let found = self.search(likelihood, keeper, observer)?;
        let Found { posterior, likelihood: base_likelihood, noise_factor, precisions, mode, report, .. } =
            found;
        let seen = self.options.seen_by_network;
        let notes =
            found.notes.into_iter().chain(found.held_out.iter().flat_map(|r| r.notes(seen))).collect();
        let kind = self.options.approximation.searched_prior();
        let prior = kind.prior(self.network.graph(), &self.selection, 1.0)?.with_precisions(&precisions)?;
        let summary = FitSummary {
            plan,
            fit,
            evidence: None,
            maximised: None,
            held_out: found.held_out,
            unseen: None,
            evidence_at_trained: None,
            mode: None,
            corrections: Default::default(),
            scale_invariant: Vec::new(),
            g_prior: false,
            points: None,
            learned: Some(report),
            notes,
            seconds: [choosing, passing, 0.0, clock.elapsed().as_secs_f64()],
        };
        Ok(Laplace {
            displacement: mode
                .as_ref()
                .and_then(|mode| displacement(self.network, &self.selection, mode, summary.displacement())),
            likelihood: scaled_noise(&base_likelihood, noise_factor)?,
            base_likelihood,
            noise_variance: noise_factor,
            prior,
            integration: self.options.integration,
            selection: self.selection,
            curvature: None,
            mode: mode.unwrap_or(self.trained),
            posterior: Posterior::Learned(posterior),
            summary,
        })
    }

    /// How well the network fits what it has learned from.
    fn fit_of_the_network(
        &self,
        likelihood: &OutputLikelihood,
        observer: Observer<'_>,
    ) -> Result<FitSums, LaplaceError> {
        let (mut fit, count) = (FitSums::default(), self.examples.len());
        for range in ranges(0, count, batch_size(self.network, 1)) {
            let end = range.end;
            let batch = Batch::read(self.examples, range, likelihood)?;
            fit.add_batch(likelihood, &batch.targets, &doubles(self.network.forward(&batch.x)?.values()));
            if observer(Stage::Curvature, end, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(fit)
    }

    fn search(
        &self,
        likelihood: &OutputLikelihood,
        keeper: &mut Keeper<'_>,
        observer: Observer<'_>,
    ) -> Result<Found<T>, LaplaceError> {
        let (network, options) = (self.network, self.options);
        let limits = (options.seed, options.memory);
        match &options.approximation {
            Approximation::Temperature => {
                let Some(unseen) = self.validation else {
                    let problem = "a temperature is chosen on examples that the network has not seen: give --validation-data";
                    return Err(LaplaceError::Request(problem.into()));
                };
                let found = Temperature::fit(network, unseen, likelihood, options.memory, observer)?;
                let notes = found.report.at_edge.then(|| {
                    "the temperature stands at the end of what is tried: the unseen examples do not determine it".to_string()
                });
                Ok(Found {
                    likelihood: likelihood.clone(),
                    noise_factor: if found.scales_noise() { found.noise_factor() } else { 1.0 },
                    precisions: vec![1.0],
                    mode: None,
                    report: LearnedReport::Temperature(found.report),
                    held_out: None,
                    notes: notes.into_iter().collect(),
                    posterior: Box::new(found),
                })
            }
            Approximation::MeanField(own) => {
                let found = MeanField::fit(
                    network,
                    &self.selection,
                    self.examples,
                    likelihood,
                    own,
                    limits,
                    keeper,
                    observer,
                )?;
                Ok(Found {
                    likelihood: found.likelihood().clone(),
                    noise_factor: 1.0,
                    precisions: vec![own.weight_decay * self.examples.len() as f64],
                    mode: None,
                    report: LearnedReport::MeanField(found.summary.clone()),
                    held_out: None,
                    notes: vec![format!(
                        "predictions are averages of the network at {} draws of its weights: their mean is not the network's output",
                        own.samples
                    )],
                    posterior: Box::new(found),
                })
            }
            Approximation::Sampled(own) => {
                let unseen = match (self.validation, own.validation_tries) {
                    (_, 0) => None,
                    (None, _) => {
                        let problem = "samples whose precision is tried on unseen examples need some: give --validation-data";
                        return Err(LaplaceError::Request(problem.into()));
                    }
                    (Some(examples), _) => Some(Unseen { examples, integration: options.integration }),
                };
                if let Some(unseen) = unseen.as_ref().filter(|_| !options.seen_by_network) {
                    crate::unseen::check_enough(unseen.examples.len())?;
                }
                let mut found = crate::sampled::fit(
                    network,
                    &self.selection,
                    self.examples,
                    unseen.as_ref(),
                    likelihood,
                    own,
                    options.seed,
                    options.memory,
                    keeper,
                    observer,
                )?;
                if let Some(mode) = found.mode.as_ref().filter(|_| is_gaussian(likelihood)) {
                    let away = between(&self.trained, mode);
                    let distance =
                        mean_displacement(network, &self.selection, self.examples, &away, observer)?;
                    found.report.displacement = Some(distance);
                }
                Ok(Found {
                    likelihood: likelihood.clone(),
                    noise_factor: found.noise_variance,
                    precisions: found.precisions,
                    mode: found.mode,
                    report: LearnedReport::Sampled { report: found.report, header: found.posterior.header() },
                    held_out: found.held_out,
                    notes: found.notes,
                    posterior: Box::new(found.posterior),
                })
            }
            Approximation::FixedMean(own) => {
                let found = crate::fixed_mean::fit(
                    network,
                    &self.selection,
                    self.examples,
                    self.validation,
                    likelihood,
                    own,
                    options.seed,
                    options.memory,
                    keeper,
                    observer,
                )?;
                Ok(Found {
                    likelihood: found.likelihood,
                    noise_factor: 1.0,
                    precisions: vec![1.0 / found.report.amplitude],
                    mode: None,
                    report: LearnedReport::FixedMean(found.report),
                    held_out: None,
                    notes: found.notes,
                    posterior: Box::new(found.posterior),
                })
            }
            Approximation::Gwi(own) => {
                let found = crate::gwi::fit(
                    network,
                    self.examples,
                    self.validation,
                    likelihood,
                    own,
                    options.seed,
                    options.memory,
                    keeper,
                    observer,
                )?;
                Ok(Found {
                    likelihood: found.likelihood,
                    noise_factor: 1.0,
                    precisions: vec![1.0 / found.report.prior.amplitude],
                    mode: None,
                    report: LearnedReport::Gwi(found.report),
                    held_out: None,
                    notes: found.notes,
                    posterior: Box::new(found.posterior),
                })
            }
            _ => Err(LaplaceError::Request("this curvature is summed, not searched for".into())),
        }
    }
}
