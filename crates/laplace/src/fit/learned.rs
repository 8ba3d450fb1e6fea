//! Fits whose posterior is found by a search of its own.

use super::result::Posterior;
use super::run::{Fitting, Observer};
use super::{Approximation, FitSummary, Laplace, scaled_noise};
use crate::accumulate::FitSums;
use crate::keep::Keeper;
use crate::learned::{Learned, LearnedReport};
use crate::mean_field::MeanField;
use crate::temperature::Temperature;
use crate::{LaplaceError, Plan, PriorKind, Stage};
use posterior_likelihoods::OutputLikelihood;
use posterior_networks::Precision;
use posterior_networks::train::Examples;
use posterior_optim::Signal;
use posterior_tangent::{Batch, batch_size, doubles, ranges};
use std::time::Instant;

/// What a search found.
struct Found<T> {
    posterior: Box<dyn Learned<T>>,
    /// The likelihood before its noise is multiplied by the factor.
    likelihood: OutputLikelihood,
    noise_factor: f64,
    report: LearnedReport,
    notes: Vec<String>,
}

impl Approximation {
    /// Whether the posterior is found by a search of its own, which chooses everything.
    pub fn is_learned(&self) -> bool {
        matches!(self, Self::Temperature | Self::MeanField(_))
    }

    /// Whether it cannot do without examples that the network has not seen.
    pub fn needs_unseen(&self) -> bool {
        matches!(self, Self::Temperature)
    }
}

impl<T: Precision> Fitting<'_, T> {
    /// The whole fit.
    pub(super) fn learned(
        self,
        validation: Option<&dyn Examples<T>>,
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
        let Found { posterior, likelihood: base_likelihood, noise_factor, report, notes } =
            self.search(validation, likelihood, keeper, observer)?;
        let prior =
            PriorKind::Scalar.prior(self.network.graph(), &self.selection, self.options.initial_precision)?;
        let summary = FitSummary {
            plan,
            fit,
            evidence: None,
            maximised: None,
            held_out: None,
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
            displacement: None,
            likelihood: scaled_noise(&base_likelihood, noise_factor)?,
            base_likelihood,
            noise_variance: noise_factor,
            prior,
            integration: self.options.integration,
            selection: self.selection,
            curvature: None,
            mode: self.trained,
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
        validation: Option<&dyn Examples<T>>,
        likelihood: &OutputLikelihood,
        keeper: &mut Keeper<'_>,
        observer: Observer<'_>,
    ) -> Result<Found<T>, LaplaceError> {
        let (network, options) = (self.network, self.options);
        let limits = (options.seed, options.memory);
        match &options.approximation {
            Approximation::Temperature => {
                let Some(unseen) = validation else {
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
                    report: LearnedReport::Temperature(found.report),
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
                    report: LearnedReport::MeanField(found.summary.clone()),
                    notes: vec![format!(
                        "predictions are averages of the network at {} draws of its weights: their mean is not the network's output",
                        own.samples
                    )],
                    posterior: Box::new(found),
                })
            }
            _ => Err(LaplaceError::Request("this curvature is summed, not searched for".into())),
        }
    }
}
