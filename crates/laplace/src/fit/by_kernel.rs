//! **The linear model's optimum from few observations**, through the tangent kernel between them, whatever the number of weights.
//!
//! By weights each optimum takes some hundred products with Jacobians, since the curvature that preconditions them was taken where a network is certain of its examples, which is nearly none. From few
//! examples it costs less to make the kernel once for each group of weights with a precision of its own: then every optimum is Newton's method on small matrices ([`posterior_gp::latent_mode`]).

use super::conjugate::LARGEST;
use super::run::{Fitting, Observer};
use super::solve::Solved;
use super::{Approximation, FitOptions};
use crate::mode::Mode;
use crate::{LaplaceError, PriorKind, Stage};
use faer::Mat;
use posterior_gp::latent_mode::{LatentModeOptions, LatentModeProblem};
use posterior_kernels::BlockKernel;
use posterior_likelihoods::OutputLikelihood;
use posterior_linear::curvature::is_gaussian;
use posterior_linear::mode;
use posterior_linear::structure::StructureError;
use posterior_networks::{Array, Graph, Network, Precision, Selection};
use posterior_optim::Signal;
use posterior_tangent::{Batch, TangentKernel, batch_size, ranges};

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

/// The network at its trained weights, at all examples.
pub(super) struct AtExamples {
    /// Targets, example by example.
    pub(super) targets: Vec<f64>,
    /// `g`.
    pub(super) outputs: Vec<f64>,
    /// `J v`.
    pub(super) through: Vec<f64>,
}

impl AtExamples {
    /// `g - J v`: what the linear model predicts without weights.
    pub(super) fn offsets(&self) -> Vec<f64> {
        self.outputs.iter().zip(&self.through).map(|(g, t)| g - t).collect()
    }

    /// `max |g - J v| / max |g|`.
    pub(super) fn offset(&self) -> f64 {
        let largest = |v: &[f64]| v.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let largest_output = largest(&self.outputs);
        if largest_output > 0.0 { largest(&self.offsets()) / largest_output } else { 0.0 }
    }
}

/// Kernels between all latent values, one for each group of weights, and the network there.
pub(super) struct ByKernel {
    kernels: Vec<Mat<f64>>,
    at: AtExamples,
    /// The network in double precision: kernels are differences of large numbers.
    network: Network<f64>,
}

/// Weights of one group.
fn of_group(graph: &Graph, selection: &Selection, of_each: &[usize], group: usize) -> Selection {
    let mask: Vec<bool> = of_each.iter().map(|g| *g == group).collect();
    selection.masked(graph, &mask)
}

impl<T: Precision> Fitting<'_, T> {
    /// The network at all examples, in double precision: offsets are differences of large numbers.
    pub(super) fn at_examples(
        &self,
        network: &Network<f64>,
        likelihood: &OutputLikelihood,
        observer: Observer<'_>,
    ) -> Result<AtExamples, LaplaceError> {
        let count = self.examples.len();
        let trained = Array::new(vec![1, self.trained.len()], self.trained.clone());
        let mut at = AtExamples { targets: Vec::new(), outputs: Vec::new(), through: Vec::new() };
        for range in ranges(0, count, batch_size(network, 2)) {
            let batch = Batch::read(self.examples, range, likelihood)?;
            let trace = network.trace(batch.x.cast())?;
            at.through.extend(trace.jvp(&self.selection, &trained)?.values());
            at.outputs.extend(trace.output().values());
            at.targets.extend(&batch.targets);
            if observer(Stage::Mode, batch.range.end, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(at)
    }

    /// `sum_n J_n^T u_n` over all examples, `u` example by example.
    pub(super) fn pulled_back(&self, network: &Network<f64>, u: &[f64]) -> Result<Vec<f64>, LaplaceError> {
        let (count, mut weights) = (self.examples.len(), vec![0.0; self.selection.len()]);
        let each = u.len() / count.max(1);
        for range in ranges(0, count, batch_size(network, 2)) {
            let (x, _) = self.examples.batch(&range.clone().collect::<Vec<_>>(), None);
            let trace = network.trace(x.cast())?;
            let mut shape = trace.output().shape().to_vec();
            shape[0] = range.len();
            let own = Array::new(shape, u[range.start * each..range.end * each].to_vec());
            let back = trace.vjp(&self.selection, &own)?;
            weights.iter_mut().zip(back.values()).for_each(|(w, v)| *w += v);
        }
        Ok(weights)
    }

    /// The kernels, where the optimum is found by them.
    pub(super) fn by_kernel(
        &self,
        likelihood: &OutputLikelihood,
        start: &Solved,
        observer: Observer<'_>,
    ) -> Result<Option<ByKernel>, LaplaceError> {
        let (count, choices) = (self.examples.len(), (self.mode, &self.prior));
        let own = kernels(self.network.graph(), &self.selection, choices, (count, likelihood), self.options);
        let Some(groups) = own else { return Ok(None) };
        let network = self.network.cast::<f64>()?;
        let at = self.at_examples(&network, likelihood, observer)?;
        let mut of_each = vec![0; self.selection.len()];
        for (range, group) in start.prior.stretches(0..self.selection.len()) {
            of_each[range].fill(group);
        }
        let (x, _) = self.examples.batch(&(0..count).collect::<Vec<_>>(), None);
        let x = x.cast::<f64>();
        let mut kernels = Vec::with_capacity(groups);
        for group in 0..groups {
            let own = of_group(network.graph(), &self.selection, &of_each, group);
            kernels.push(TangentKernel::new(&network, &own).gram(&x, None)?);
            if observer(Stage::Mode, (group + 1) * count / groups, count) == Signal::Stop {
                return Err(LaplaceError::Interrupted);
            }
        }
        Ok(Some(ByKernel { kernels, at, network }))
    }

    /// The optimum for the current precisions.
    pub(super) fn mode_by_kernel(
        &self,
        by: &ByKernel,
        mode: Mode,
        solved: &Solved,
        likelihood: &OutputLikelihood,
    ) -> Result<mode::Mode, LaplaceError> {
        let precisions = solved.prior.precisions();
        let mut kernel = Mat::<f64>::zeros(by.at.outputs.len(), by.at.outputs.len());
        for (own, precision) in by.kernels.iter().zip(precisions) {
            kernel += own * faer::Scale(1.0 / precision);
        }
        let mean = match mode {
            Mode::LinearisedSimple => vec![0.0; by.at.outputs.len()],
            _ => by.at.offsets(),
        };
        let problem = LatentModeProblem {
            kernel: kernel.as_ref(),
            mean: &mean,
            likelihood: &**likelihood,
            targets: &by.at.targets,
            strength: 1.0,
        };
        let options = &self.options.mode_options;
        let own = LatentModeOptions { newton_steps: options.newton_steps, tolerance: options.tolerance };
        let found = problem
            .solve(&own)
            .map_err(|source| StructureError::Factor { block: "the tangent kernel".into(), source })?;
        let mut weights = self.pulled_back(&by.network, &found.coefficients)?;
        let each = solved.prior.precision_of_each(0..weights.len());
        weights.iter_mut().zip(each).for_each(|(w, a)| *w /= a);
        Ok(mode::Mode {
            weights,
            log_likelihood: found.log_likelihood,
            loss: found.loss,
            newton_steps: found.newton_steps,
            products: 0,
            remaining: found.remaining,
            converged: found.converged,
            offset: by.at.offset(),
        })
    }
}
