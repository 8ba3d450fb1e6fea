//! Fits whose posterior is found by a search of its own.

use super::conjugate::mean_displacement;
use super::curvature::Posterior;
use super::fitting::Fitting;
use super::options::Approximation;
use super::result::Laplace;
use super::summary::{FitSummary, LearnedReport};
use crate::LaplaceError;
use crate::accumulate::FitSums;
use crate::learned::Learned;
use crate::mean_field::MeanField;
use crate::plan::Plan;
use crate::predict::{between, displacement};
use crate::run::{Run, Stage};
use crate::scores::{HeldOutReport, check_enough, scaled_noise};
use crate::temperature::Temperature;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::Precision;
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

impl<T: Precision> Fitting<'_, T> {
    /// The whole fit.
    pub(super) fn learned(
        self,
        plan: Plan,
        choosing: f64,
        run: &mut Run<'_>,
    ) -> Result<Laplace<T>, LaplaceError> {
        let clock = Instant::now();
        let fit = self.fit_of_the_network(run)?;
        let passing = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        let found = self.search(run)?;
        let Found { posterior, likelihood: base_likelihood, noise_factor, precisions, mode, report, .. } =
            found;
        let seen = self.options.seen_by_network;
        let notes =
            found.notes.into_iter().chain(found.held_out.iter().flat_map(|r| r.notes(seen))).collect();
        let kind = self.options.approximation.searched_prior();
        let prior =
            kind.prior(self.data.network.graph(), &self.selection, 1.0)?.with_precisions(&precisions)?;
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
            displacement: mode.as_ref().and_then(|mode| {
                displacement(self.data.network, &self.selection, mode, summary.displacement())
            }),
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
    fn fit_of_the_network(&self, run: &mut Run<'_>) -> Result<FitSums, LaplaceError> {
        let (network, examples, likelihood) = (self.data.network, self.data.examples, &self.likelihood);
        let (mut fit, count) = (FitSums::default(), examples.len());
        for range in ranges(0, count, batch_size(network, 1)) {
            let end = range.end;
            let batch = Batch::read(examples, range, likelihood)?;
            fit.add_batch(likelihood, &batch.targets, &doubles(network.forward(&batch.x)?.values()));
            run.step(Stage::Curvature, end, count)?;
        }
        Ok(fit)
    }

    fn search(&self, run: &mut Run<'_>) -> Result<Found<T>, LaplaceError> {
        let (problem, options, likelihood) = (self.problem(), self.options, &self.likelihood);
        match &options.approximation {
            Approximation::Temperature => {
                let found = Temperature::fit(&problem, run)?;
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
                let found = MeanField::fit(&problem, own, run)?;
                Ok(Found {
                    likelihood: found.likelihood().clone(),
                    noise_factor: 1.0,
                    precisions: vec![own.weight_decay * problem.examples.len() as f64],
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
                match (problem.validation, own.validation_tries) {
                    (None, 1..) => {
                        let problem = "samples whose precision is tried on unseen examples need some: give --validation-data";
                        return Err(LaplaceError::Request(problem.into()));
                    }
                    (Some(unseen), 1..) if !options.seen_by_network => check_enough(unseen.len())?,
                    _ => {}
                }
                let mut found = crate::sampled::fit(&problem, own, options.integration, run)?;
                if let Some(mode) = found.mode.as_ref().filter(|_| is_gaussian(likelihood)) {
                    let away = between(&self.trained, mode);
                    let distance =
                        mean_displacement(problem.network, &self.selection, problem.examples, &away, run)?;
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
                let found = crate::fixed_mean::fit(&problem, own, run)?;
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
                let found = crate::gwi::fit(&problem, own, run)?;
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
