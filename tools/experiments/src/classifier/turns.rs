//! The linear model's mode, and precisions by turns of mode and update.

use super::{Classifier, Curvature};
use crate::context::Context;
use crate::error::{Result, refused};
use posterior_laplace::{ModeOptions, PriorKind};
use posterior_linear::evidence::{EvidenceOptions, precision_update};
use posterior_linear::mode::{Mode, ModeProblem, Predictor};
use posterior_linear::{LinearError, Prior};
use posterior_tangent::{Observed, Tangent};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Whose squared norm an update of the precisions divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Norm {
    /// The linear model's mode.
    Mode,
    /// The trained weights, as if they were it.
    Trained,
}

/// Where the likelihood's curvature is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// At the network's outputs.
    Trained,
    /// At those of the linear model's mode.
    Mode,
}

/// How precisions are learned, as experiments' files have it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct TurnSettings {
    /// Precision at the start, of every layer.
    pub(crate) initial_precision: f64,
    /// Turns at most.
    pub(crate) steps: usize,
    /// They end when no logarithm of a precision moves by more.
    #[serde(default)]
    pub(crate) tolerance: f64,
    /// The mode is found when a Newton step promises less, nats.
    pub(crate) mode_tolerance: f64,
}

impl TurnSettings {
    /// Refuses numbers that make no sense.
    ///
    /// # Errors
    /// [`crate::ExperimentError::Setting`].
    pub(crate) fn check(&self) -> Result<()> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if self.steps == 0 || !positive(self.initial_precision) || !positive(self.mode_tolerance) {
            return refused(
                "[turns]: `steps` is at least 1, `initial_precision` and `mode_tolerance` are positive",
            );
        }
        Ok(())
    }

    /// How far modes are pursued.
    pub(crate) fn mode(&self) -> ModeOptions {
        ModeOptions { tolerance: self.mode_tolerance, ..ModeOptions::default() }
    }
}

/// The way of the precisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LearnedPrecisions {
    /// Names of the groups.
    pub(crate) groups: Vec<String>,
    /// Precisions of each group, turn by turn: the start first, the result last.
    pub(crate) precisions: Vec<Vec<f64>>,
    /// Effective dimensions that each turn found, one fewer.
    pub(crate) effective_dimensions: Vec<Vec<f64>>,
    /// The mode at the last precisions but one (d); empty where only samples know it.
    pub(crate) mode: Vec<f64>,
}

impl LearnedPrecisions {
    /// Where they ended.
    pub(crate) fn last(&self) -> &[f64] {
        self.precisions.last().map_or(&[], Vec::as_slice)
    }
}

impl Classifier {
    /// The optimum of the linearised model under a prior, from other weights or the trained ones. It does not depend on the curvature, which says only how many products conjugate gradients take.
    ///
    /// # Errors
    /// Bad images, interruption.
    pub(crate) fn mode(
        &mut self,
        curvature: Curvature,
        prior: &Prior,
        start: Option<&[f64]>,
        options: &ModeOptions,
        context: &mut Context<'_>,
    ) -> Result<Mode> {
        let curvature = self.curvature(curvature, context)?;
        let preconditioner = curvature.condition(prior, 1.0).map_err(LinearError::from)?;
        let tangent = Tangent::new(&self.network, &self.selection);
        let observed = Observed { examples: self.train.as_ref(), likelihood: &self.likelihood };
        let problem = ModeProblem {
            features: &tangent,
            source: &observed,
            likelihood: &*self.likelihood,
            quadratic: false,
            precisions: prior.precision_of_each(0..prior.dimension()),
            strength: 1.0,
            predictor: Predictor::Affine,
        };
        let start = match start {
            Some(start) => start.to_vec(),
            None => self.selection.flatten(self.network.parameters()).into_iter().map(f64::from).collect(),
        };
        let stage = format!("{}: the mode", self.name);
        let mut tell = |done, all| context.tell(&stage, done, all);
        Ok(problem.solve(&start, &preconditioner, options, &mut tell)?)
    }

    /// Expectation maximisation under a curvature: the mode for the precisions, MacKay's update of the precisions for the mode (spec `linearised_laplace`, section 5).
    ///
    /// # Errors
    /// Bad images, interruption, precisions that leave every bound.
    pub(crate) fn learn(
        &mut self,
        curvature: Curvature,
        kind: &PriorKind,
        turns: &TurnSettings,
        context: &mut Context<'_>,
    ) -> Result<LearnedPrecisions> {
        // Whatever curvature the precisions are learned by: with the exact one conjugate gradients have little to do.
        self.learn_by((curvature, Curvature::Full), (Norm::Mode, Point::Trained), kind, turns, context)
    }

    /// The same by the first of two curvatures, the mode with the help of the second, charged with either norm, and with the likelihood's curvature at either point.
    ///
    /// # Errors
    /// As [`Self::learn`].
    pub(crate) fn learn_by(
        &mut self,
        (curvature, preconditioner): (Curvature, Curvature),
        (norm, point): (Norm, Point),
        kind: &PriorKind,
        turns: &TurnSettings,
        context: &mut Context<'_>,
    ) -> Result<LearnedPrecisions> {
        let mut structure = self.curvature(curvature, context)?;
        let trained: Vec<f64> =
            self.selection.flatten(self.network.parameters()).into_iter().map(f64::from).collect();
        let mut prior = self.prior(kind, turns.initial_precision)?;
        let (low, high) = EvidenceOptions::default().precisions;
        let mut learned = LearnedPrecisions {
            groups: prior.names().to_vec(),
            precisions: vec![prior.precisions().to_vec()],
            effective_dimensions: Vec::new(),
            mode: Vec::new(),
        };
        for turn in 0..turns.steps {
            context.step(
                &format!("{}: precisions by {} curvature", self.name, curvature.name()),
                turn,
                turns.steps,
            )?;
            if (norm, point) != (Norm::Trained, Point::Trained) {
                let start = (turn > 0).then_some(learned.mode.as_slice());
                learned.mode = self.mode(preconditioner, &prior, start, &turns.mode(), context)?.weights;
            }
            if point == Point::Mode {
                structure = Rc::new(self.curvature_at(curvature, &learned.mode, context)?);
            }
            let terms = structure.terms(&prior, 1.0).map_err(LinearError::from)?;
            let norms = prior.squared_norms(match norm {
                Norm::Mode => &learned.mode,
                Norm::Trained => &trained,
            });
            let next: Vec<f64> = terms
                .effective_dimensions
                .iter()
                .zip(&norms)
                .map(|(gamma, norm)| precision_update(*gamma, *norm).clamp(low, high))
                .collect();
            let moved = prior.precisions().iter().zip(&next).map(|(a, b)| (b / a).ln().abs());
            let rest = moved.fold(0.0, f64::max) <= turns.tolerance;
            prior = prior.with_precisions(&next)?;
            learned.effective_dimensions.push(terms.effective_dimensions);
            learned.precisions.push(next);
            if rest {
                break;
            }
        }
        Ok(learned)
    }
}
