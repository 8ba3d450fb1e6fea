//! The space in which samples are made, with what it needs beside the noise.

use super::dual::{Dual, Kernel};
use super::options::{DualOptions, Solver, Space};
use super::solve::AnySampler;
use crate::LaplaceError;
use crate::problem::Problem;
use crate::run::{Run, Stage};
use faer::MatRef;
use posterior_linear::sampled::{Noise, Objective, SampledModel, Solve, Span, WeightSpace};
use posterior_linear::structure::Structure;
use posterior_networks::{Precision, release_buffers};
use posterior_optim::Signal;
use posterior_tangent::{Tangent, tangent_gram};

/// A solver and its space.
pub(super) enum SpaceSolver<'a, 'f, T: Precision> {
    Weights(Solve),
    Functions(Solve, Span),
    Dual(&'a DualOptions, Kernel<'a, 'f, T>),
}

impl<'a, 'f, T: Precision> SpaceSolver<'a, 'f, T> {
    /// With the kernel that the space asks for.
    pub(super) fn of(
        problem: &Problem<'_, T>,
        model: &'a SampledModel<'a, T, Tangent<'f, T>>,
        (space, solver): (Space, &'a Solver),
        run: &mut Run<'_>,
    ) -> Result<Self, LaplaceError> {
        let solve = match solver {
            Solver::Descent(options) => Solve::Descent(options.clone()),
            Solver::ConjugateGradients(options) => Solve::ConjugateGradients(options.clone()),
            Solver::DualDescent(options) => {
                return Ok(Self::Dual(options, Kernel::of(problem, model, run)?));
            }
        };
        if space == Space::Weights {
            return Ok(Self::Weights(solve));
        }
        // Told in examples: entries are many.
        let n = problem.examples.len();
        let stage = &mut |done, all: usize| run.tell(Stage::Kernel, done / (all / n.max(1)).max(1), n);
        let kernel = tangent_gram(problem.network, problem.selection, problem.examples, stage)?;
        // Of rows, none of which is needed again.
        release_buffers();
        Ok(Self::Functions(solve, Span::of(model, kernel, &mut run.stage(Stage::Kernel))?))
    }

    /// Coordinates that modes and samples of the turns have.
    pub(super) fn dimension(&self, model: &SampledModel<'_, T, Tangent<'f, T>>) -> usize {
        self.span().map_or(model.dimension(), Span::rank)
    }

    /// The span, in function space.
    pub(super) fn span(&self) -> Option<&Span> {
        match self {
            Self::Functions(_, span) => Some(span),
            Self::Weights(_) | Self::Dual(..) => None,
        }
    }

    /// What conjugate gradients are preconditioned with, in coordinates of the space: leading directions of the curvature, and what they leave of its diagonal, which is given for the weights as they are.
    pub(super) fn curvature(
        &self,
        model: &SampledModel<'_, T, Tangent<'f, T>>,
        diagonal: &[f64],
        directions: usize,
        seed: u64,
        observer: &mut dyn FnMut(usize, usize) -> Signal,
    ) -> Result<Structure, LaplaceError> {
        let Some(span) = self.span() else {
            return Ok(model.leading_curvature(diagonal, directions, seed, observer)?);
        };
        let own = span.model(model.likelihood());
        let (diagonal, _) = own.curvature_diagonal(1, seed, observer)?;
        Ok(own.leading_curvature(&diagonal, directions, seed, observer)?)
    }

    /// What makes samples in the coordinates of the weights.
    pub(super) fn sampler<'s>(
        &'s self,
        model: &'s SampledModel<'s, T, Tangent<'f, T>>,
        noise: &'s Noise,
        curvature: &'s Structure,
        objective: Objective,
    ) -> AnySampler<'s, 'f, T> {
        match self {
            Self::Weights(solve) | Self::Functions(solve, _) => {
                AnySampler::Weights(WeightSpace { model, noise, curvature, solve, objective })
            }
            Self::Dual(options, kernel) => AnySampler::Dual(Dual::new(model, noise, kernel, options)),
        }
    }

    /// Weights in the network's own coordinates, of those that the turns have. Weights that the prior leaves out stay as they are.
    pub(super) fn own_weights(
        &self,
        model: &SampledModel<'_, T, Tangent<'f, T>>,
        weights: Vec<f64>,
    ) -> Result<Vec<f64>, LaplaceError> {
        if let Some(span) = self.span() {
            let lifted = span.lifted(model, MatRef::from_column_major_slice(&weights, weights.len(), 1))?;
            return Ok(lifted.col(0).iter().copied().collect());
        }
        let Some(scales) = model.scales() else { return Ok(weights) };
        let own = weights.iter().zip(scales).zip(model.features().trained());
        Ok(own.map(|((w, s), v)| if *s == 0.0 { *v } else { w * s }).collect())
    }

    pub(super) fn stored_kernel(&self) -> Option<bool> {
        match self {
            Self::Weights(_) | Self::Functions(..) => None,
            Self::Dual(_, kernel) => Some(matches!(kernel, Kernel::Stored(_))),
        }
    }
}
