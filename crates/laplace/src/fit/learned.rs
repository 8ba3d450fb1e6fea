//! Fits whose posterior is found by a search of its own.

use super::conjugate::mean_displacement;
use super::fitting::Fitting;
use super::options::Approximation;
use super::result::{Chosen, Laplace, Origin};
use super::solve::timed;
use super::summary::{FitSummary, LearnedReport};
use crate::LaplaceError;
use crate::learned::{Found, Learned};
use crate::mean_field::MeanField;
use crate::plan::Plan;
use crate::predict::between;
use crate::run::{Run, Stage};
use crate::scores::{check_enough, fit_of_the_network};
use crate::temperature::Temperature;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::Precision;
use posterior_notes::fixes::VALIDATION_DATA;

/// What any search found.
type AnyFound<T> = Found<Box<dyn Learned<T>>, LearnedReport>;

impl<T: Precision> Fitting<'_, T> {
    /// The whole fit.
    pub(super) fn learned(
        self,
        plan: Plan,
        choosing: f64,
        run: &mut Run<'_>,
    ) -> Result<Laplace<T>, LaplaceError> {
        let (mut seconds, examples) = ([choosing, 0.0, 0.0, 0.0], self.data.examples.len());
        let mut done = |done| run.step(Stage::Curvature, done, examples);
        let fit = timed(&mut seconds[1], || fit_of_the_network(&self.problem(), &mut done))?;
        let found = timed(&mut seconds[3], || self.search(run))?;
        let seen = self.options.seen_by_network;
        let notes =
            found.notes.into_iter().chain(found.held_out.iter().flat_map(|r| r.notes(seen))).collect();
        let kind = self.options.approximation.searched_prior();
        let prior = kind.prior(self.data.network.graph(), &self.selection, 1.0)?;
        let summary = FitSummary {
            plan,
            fit,
            held_out: found.held_out,
            learned: Some(found.report),
            notes,
            seconds,
            ..FitSummary::default()
        };
        let chosen = Chosen {
            origin: Origin::Search(found.posterior),
            selection: self.selection,
            likelihood: found.likelihood,
            noise_variance: found.noise_variance,
            prior: prior.with_precisions(&found.precisions)?,
            mode: found.mode.unwrap_or(self.trained),
            integration: self.options.integration,
            summary,
        };
        Laplace::of(self.data.network, chosen)
    }

    fn search(&self, run: &mut Run<'_>) -> Result<AnyFound<T>, LaplaceError> {
        let (problem, options, likelihood) = (self.problem(), self.options, &self.likelihood);
        match &options.approximation {
            Approximation::Temperature => {
                let found = Temperature::fit(&problem, run)?;
                let notes = found.report.at_edge.then(|| {
                    "the temperature stands at the end of what is tried: the unseen examples do not determine it".to_string()
                });
                let (report, notes) = (found.report, notes.into_iter().collect());
                let noise_variance = if found.scales_noise() { found.noise_factor() } else { 1.0 };
                let found = Found::new(found, likelihood.clone(), 1.0, report, notes);
                Ok(Found { noise_variance, ..found }.boxed(LearnedReport::Temperature))
            }
            Approximation::MeanField(own) => {
                let found = MeanField::fit(&problem, own, run)?;
                let (likelihood, report) = (found.likelihood().clone(), found.summary.clone());
                let precision = own.weight_decay * problem.examples.len() as f64;
                let notes = vec![format!(
                    "predictions are averages of the network at {} draws of its weights: their mean is not the network's output",
                    own.samples
                )];
                Ok(Found::new(found, likelihood, precision, report, notes).boxed(LearnedReport::MeanField))
            }
            Approximation::Sampled(own) => {
                match (problem.validation, own.validation_tries) {
                    (None, 1..) => {
                        let problem = format!(
                            "samples whose precision is tried on unseen examples need some: give {VALIDATION_DATA}"
                        );
                        return Err(LaplaceError::Request(problem));
                    }
                    (Some(unseen), 1..) if !options.seen_by_network => check_enough(unseen.len())?,
                    _ => {}
                }
                let mut found = crate::sampled::fit(&problem, own, options.integration, run)?;
                if let Some(mode) = found.mode.as_ref().filter(|_| is_gaussian(likelihood)) {
                    let away = between(&self.trained, mode);
                    let distance = mean_displacement(&problem, &self.selection, &away, run)?;
                    found.report.displacement = Some(distance);
                }
                let header = found.posterior.header();
                Ok(found.boxed(|report| LearnedReport::Sampled { report, header }))
            }
            Approximation::FixedMean(own) => {
                Ok(crate::fixed_mean::fit(&problem, own, run)?.boxed(LearnedReport::FixedMean))
            }
            Approximation::Gwi(own) => Ok(crate::gwi::fit(&problem, own, run)?.boxed(LearnedReport::Gwi)),
            _ => Err(LaplaceError::Request("this curvature is summed, not searched for".into())),
        }
    }
}
