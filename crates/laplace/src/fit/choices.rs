//! What is chosen before anything is summed: the mode, the prior, and whether the optimum is found by kernels.

use super::options::{Approximation, FitOptions};
use crate::LaplaceError;
use crate::mode::Mode;
use crate::normalisation::{ScaleInvariant, scale_invariant_layers};
use crate::prior::PriorKind;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::is_gaussian;
use posterior_networks::{Graph, Selection};

/// Weights, or numbers observed, up to which the eigendecomposition is made.
pub(crate) const LARGEST: usize = 3000;

/// Whose norm the evidence charges for and which weights share a precision, where that is left to us.
pub(crate) struct Choices {
    pub(crate) mode: Mode,
    pub(crate) prior: PriorKind,
    /// Layers with uncertain weights whose scale no output depends on.
    pub(crate) scale_invariant: Vec<ScaleInvariant>,
}

impl Choices {
    pub(crate) fn of(graph: &Graph, selection: &Selection, options: &FitOptions) -> Self {
        let mut scale_invariant = scale_invariant_layers(graph);
        let is_uncertain = |parameter| selection.parts().iter().any(|p| p.parameter == parameter);
        scale_invariant.retain(|layer| layer.parameters.iter().any(|p| is_uncertain(*p)));
        let normalised = !scale_invariant.is_empty();
        let mode = match options.mode {
            Mode::Auto if normalised => Mode::Linearised,
            Mode::Auto => Mode::Trained,
            other => other,
        };
        Self { mode, prior: options.prior.resolved(normalised), scale_invariant }
    }
}

/// The mode, where prior and mode are ones that the curvature knows: the default becomes the trained weights where it does not know the other.
pub(super) fn known_mode(
    mode: Mode,
    prior: &PriorKind,
    options: &FitOptions,
    (examples, likelihood): (usize, &OutputLikelihood),
) -> Result<Mode, LaplaceError> {
    let approximation = &options.approximation;
    if matches!(approximation, Approximation::FunctionSpace { .. } | Approximation::Ella(_))
        && *prior != PriorKind::Scalar
    {
        return Err(LaplaceError::Request(format!(
            "{} knows one prior precision: use the scalar prior, or another curvature",
            approximation.name()
        )));
    }
    let rows = examples * likelihood.outputs();
    let problem = match (mode, approximation) {
        (Mode::Linearised | Mode::LinearisedSimple, Approximation::Ella(_)) => {
            "ella knows no optimum of the linearised model: use the mode `trained`, or another curvature".into()
        }
        (Mode::Linearised, Approximation::FunctionSpace { points })
            if points.is_none_or(|p| p >= examples) && is_gaussian(likelihood) =>
        {
            if rows <= LARGEST {
                return Ok(mode);
            }
            format!(
                "function space finds the optimum of the linearised model from at most {LARGEST} observed numbers, not {rows}: use the mode `trained`, or a curvature of weights"
            )
        }
        (Mode::Linearised | Mode::LinearisedSimple, Approximation::FunctionSpace { .. }) => {
            "function space knows the optimum of the linearised model (with its offset) under Gaussian noise and from all examples only: use the mode `trained`, or a curvature of weights".into()
        }
        _ => return Ok(mode),
    };
    // The default is what there is.
    if options.mode == Mode::Auto { Ok(Mode::Trained) } else { Err(LaplaceError::Request(problem)) }
}

/// Entries of kernels that are held at most: a quarter of a gigabyte.
const HELD: usize = 1 << 25;

/// Matrices of that size beside the groups' own: their sum, what is factored, its factor, a copy of either.
const WORKSPACE: usize = 4;

/// How many groups of weights have kernels of their own, where the optimum is found by these: the network's linear model under a likelihood that is not quadratic, few numbers observed, few groups.
pub(crate) fn kernels(
    graph: &Graph,
    selection: &Selection,
    (mode, prior): (Mode, &PriorKind),
    (examples, likelihood): (usize, &OutputLikelihood),
    options: &FitOptions,
) -> Option<usize> {
    let sought = matches!(mode, Mode::Linearised | Mode::LinearisedSimple) && !is_gaussian(likelihood);
    let numbers = examples.saturating_mul(likelihood.outputs());
    let approximation = &options.approximation;
    let weights = approximation.form().is_some() || matches!(approximation, Approximation::LowRank { .. });
    if !sought || !weights || numbers > LARGEST || *prior == PriorKind::GPrior {
        return None;
    }
    let groups = match prior {
        PriorKind::Diagonal => return None,
        other => other.prior(graph, selection, 1.0).ok()?.names().len(),
    };
    ((groups + WORKSPACE) * numbers * numbers <= HELD).then_some(groups)
}

/// Bytes of the kernels of so many groups between so many numbers, and what Newton's method needs beside them.
pub(crate) fn kernel_bytes(groups: usize, numbers: usize) -> u64 {
    ((groups + WORKSPACE) * numbers * numbers * 8) as u64
}
