//! Any likelihood, by its mode and its curvature at the linearisation point.

use super::{EvidenceCurvature, EvidenceModel, Predictor};
use crate::features::FeatureMap;
use crate::mode::{DescentOptions, ModeProblem, NewtonCgOptions, NewtonOptions, descend, newton, newton_cg};
use crate::{LinearError, Prior, check};
use posterior_optim::Signal;
use serde::{Deserialize, Serialize};

/// How the mode is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeMethod {
    /// [`newton`], for feature matrices that fit in memory.
    Newton(NewtonOptions),
    /// [`newton_cg`], matrix-free over whole passes.
    NewtonCg(NewtonCgOptions),
    /// [`descend`], matrix-free over mini-batches.
    Descent(DescentOptions),
}

/// A linear model whose posterior is approximated around its mode, with the curvature fixed where the network was linearised.
///
/// It is no bound on the true evidence any more; the loop converges on the evidence of the Laplace surrogate.
///
/// Source: Antorán (2024), sections 5.2 and 6.3; spec `linearised_laplace`, sections 4.1 and 5.2.
pub struct LaplaceModel<'a, F: FeatureMap> {
    problem: ModeProblem<'a, F>,
    curvature: &'a dyn EvidenceCurvature,
    method: ModeMethod,
    unconverged: usize,
}

impl<'a, F: FeatureMap> LaplaceModel<'a, F> {
    /// A model of the problem's data. `curvature` is that of the likelihood at the linearisation point, exact or approximate.
    ///
    /// # Errors
    /// [`LinearError::Shape`] when the curvature is for another number of weights.
    pub fn new(
        problem: ModeProblem<'a, F>,
        curvature: &'a dyn EvidenceCurvature,
        method: ModeMethod,
    ) -> Result<Self, LinearError> {
        check::same("weights of the curvature", problem.dimension(), curvature.dimension())?;
        Ok(Self { problem, curvature, method, unconverged: 0 })
    }

    /// How many searches for a mode ended before they met their tolerance.
    pub fn unconverged(&self) -> usize {
        self.unconverged
    }

    fn problem(&self, predictor: Predictor) -> ModeProblem<'a, F> {
        match predictor {
            Predictor::Affine => self.problem.clone(),
            Predictor::Linear => self.problem.clone().without_offset(),
        }
    }
}

impl<F: FeatureMap> EvidenceModel for LaplaceModel<'_, F> {
    fn curvature(&self) -> &dyn EvidenceCurvature {
        self.curvature
    }

    fn mode(&mut self, prior: &Prior, start: &[f64], predictor: Predictor) -> Result<Vec<f64>, LinearError> {
        let problem = self.problem(predictor);
        check::same("weights of the prior", problem.dimension(), prior.dimension())?;
        let each = prior.precision_of_each(0..prior.dimension());
        let mode = match &self.method {
            ModeMethod::Newton(options) => newton(&problem, &each, start, *options)?,
            ModeMethod::NewtonCg(options) => newton_cg(&problem, &each, start, *options)?,
            ModeMethod::Descent(options) => {
                descend(&problem, &each, start, options, &mut |_, _| Signal::Continue)?
            }
        };
        self.unconverged += usize::from(!mode.converged);
        Ok(mode.weights)
    }

    fn log_likelihood(&self, weights: &[f64], predictor: Predictor) -> Result<f64, LinearError> {
        self.problem(predictor).log_likelihood(weights)
    }
}
