//! What all steps of a fit share: what is asked, the curvature, and where hyperparameters and mode are.

use super::curvature::Curvature;
use super::options::{Approximation, FitOptions};
use super::summary::ModeSummary;
use crate::LaplaceError;
use crate::accumulate::{Accumulator, FitSums};
use crate::ella::Ella;
use crate::function_space::FunctionSpace;
use crate::mode::Mode;
use crate::prior::PriorKind;
use crate::problem::{Data, Problem};
use crate::run::{Run, Stage};
use crate::saved::{kept, resumed};
use crate::scores::HeldOutReport;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::Prior;
use posterior_linear::curvature::low_rank;
use posterior_linear::evidence::{DataFit, MaximisedEvidence};
use posterior_linear::mode;
use posterior_networks::train::Examples;
use posterior_networks::{Precision, Selection};
use posterior_tangent::Tangent;

/// What all steps share.
pub(super) struct Fitting<'a, T> {
    pub(super) data: Data<'a, T>,
    pub(super) options: &'a FitOptions,
    pub(super) selection: Selection,
    /// With the noise that was learned so far, but for a factor.
    pub(super) likelihood: OutputLikelihood,
    pub(super) prior: PriorKind,
    pub(super) mode: Mode,
    pub(super) trained: Vec<f64>,
}

impl<T: Precision> Fitting<'_, T> {
    /// The same for a search.
    pub(super) fn problem(&self) -> Problem<'_, T> {
        let FitOptions { seed, memory, .. } = *self.options;
        let data = Data { likelihood: &self.likelihood, ..self.data };
        Problem { data, selection: &self.selection, seed, memory }
    }

    /// The curvature of some examples.
    pub(super) fn curvature(
        &self,
        examples: &dyn Examples<T>,
        run: &mut Run<'_>,
    ) -> Result<(Curvature<T>, FitSums), LaplaceError> {
        let (problem, options) = (self.problem(), self.options);
        let problem = Problem { data: Data { examples, ..problem.data }, ..problem };
        let Problem { data, selection, .. } = problem;
        if let Some(form) = options.approximation.form() {
            let estimate = options.approximation.estimate();
            let mut sums = match run.checkpointer.earlier() {
                Some(state) => resumed(state, data.network, selection, (form, estimate))?,
                None => Accumulator::new(data.network, selection, form, estimate)?,
            };
            let from = sums.fit().examples;
            if let Err(error) = sums.extend(&data, from, run) {
                if let LaplaceError::Interrupted = error {
                    run.checkpointer.keep(|| kept(&sums))?;
                }
                return Err(error);
            }
            let fit = *sums.fit();
            let structure = self.prior.scaled(sums.finish()?)?;
            return Ok((Curvature::Structure { structure, sums: Some(sums) }, fit));
        }
        match &options.approximation {
            &Approximation::LowRank { rank, iterations } => {
                let (tangent, observed) = (Tangent::new(data.network, selection), data.observed());
                let (size, mut stage) = ((rank, iterations), run.stage(Stage::Curvature));
                let (structure, fit) =
                    low_rank(&tangent, &observed, data.likelihood, size, options.seed, &mut stage)?;
                Ok((Curvature::Structure { structure: self.prior.scaled(structure)?, sums: None }, fit))
            }
            &Approximation::FunctionSpace { points } => {
                let (points, fit) = FunctionSpace::new(&problem, points, run)?;
                Ok((Curvature::FunctionSpace(points), fit))
            }
            Approximation::Ella(own) => {
                let (ella, fit, report) = Ella::fit(&problem, own, run)?;
                Ok((Curvature::Ella(ella, report), fit))
            }
            _ => Err(LaplaceError::Request("this curvature is not made of sums".into())),
        }
    }
}

/// Hyperparameters and mode at some point of the fit.
pub(super) struct Solved {
    pub(super) prior: Prior,
    pub(super) noise_variance: f64,
    pub(super) mode: Vec<f64>,
    pub(super) found: Option<mode::Mode>,
    pub(super) summary: Option<ModeSummary>,
    pub(super) maximised: Option<MaximisedEvidence>,
    /// What was found out on the way.
    pub(super) remarks: Vec<String>,
}

impl Solved {
    /// Hyperparameters and a mode without a word about how they were found.
    pub(super) fn at(mode: Vec<f64>, prior: Prior, noise_variance: f64) -> Self {
        let (maximised, remarks) = (None, Vec::new());
        Self { prior, noise_variance, mode, found: None, summary: None, maximised, remarks }
    }

    /// How far the optimum is from the network, where that counts.
    pub(super) fn displacement(&self) -> Option<f64> {
        self.summary.as_ref().and_then(|mode| mode.displacement)
    }

    /// One precision and a noise variance, where they were found.
    pub(super) fn take_hyperparameters(&mut self, found: Option<(f64, f64)>) -> Result<(), LaplaceError> {
        if let Some((precision, noise)) = found {
            self.prior = self.prior.with_precisions(&[precision])?;
            self.noise_variance = noise;
        }
        Ok(())
    }

    /// The fit of the mode to the data.
    pub(super) fn data_fit(&self, likelihood: &OutputLikelihood, fit: &FitSums) -> DataFit {
        match &self.found {
            None => fit.data_fit(likelihood),
            Some(found) => FitSums { log_likelihood: found.log_likelihood, ..*fit }.data_fit(likelihood),
        }
    }

    pub(super) fn notes(&self, held_out: &Option<HeldOutReport>, seen: bool) -> Vec<String> {
        let mut notes = self.remarks.clone();
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
        notes.extend(held_out.iter().flat_map(|report| report.notes(seen)));
        if let Some(mode) = &self.summary
            && !mode.converged
        {
            notes.push("mode and hyperparameters of the linearised model had not come to rest".into());
        }
        notes
    }
}
