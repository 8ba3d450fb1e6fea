//! **The linear model's optimum from few observations**, through the tangent kernel between them, whatever the number of weights.
//!
//! By weights each optimum takes some hundred products with Jacobians, since the curvature that preconditions them was taken where a network is certain of its examples, which is nearly none. From few
//! examples it costs less to make the kernel once for each group of weights with a precision of its own: then every optimum is Newton's method on small matrices ([`posterior_gp::latent_mode`]).

use super::choices::kernels;
use super::fitting::{Fitting, Solved};
use crate::LaplaceError;
use crate::mode::Mode;
use crate::run::{Run, Stage};
use faer::Mat;
use posterior_gp::latent_mode::{LatentModeOptions, LatentModeProblem};
use posterior_kernels::BlockKernel;
use posterior_linear::mode;
use posterior_linear::structure::StructureError;
use posterior_networks::{Array, Graph, Network, Precision, Selection};
use posterior_tangent::{Batch, TangentKernel, batch_size, ranges};

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
        run: &mut Run<'_>,
    ) -> Result<AtExamples, LaplaceError> {
        let examples = self.data.examples;
        let count = examples.len();
        let trained = Array::new(vec![1, self.trained.len()], self.trained.clone());
        let mut at = AtExamples { targets: Vec::new(), outputs: Vec::new(), through: Vec::new() };
        for range in ranges(0, count, batch_size(network, 2)) {
            let batch = Batch::read(examples, range, &self.likelihood)?;
            let trace = network.trace(batch.x.cast())?;
            at.through.extend(trace.jvp(&self.selection, &trained)?.values());
            at.outputs.extend(trace.output().values());
            at.targets.extend(&batch.targets);
            run.step(Stage::Mode, batch.range.end, count)?;
        }
        Ok(at)
    }

    /// `sum_n J_n^T u_n` over all examples, `u` example by example.
    pub(super) fn pulled_back(&self, network: &Network<f64>, u: &[f64]) -> Result<Vec<f64>, LaplaceError> {
        let (count, mut weights) = (self.data.examples.len(), vec![0.0; self.selection.len()]);
        let each = u.len() / count.max(1);
        for range in ranges(0, count, batch_size(network, 2)) {
            let (x, _) = self.data.examples.batch(&range.clone().collect::<Vec<_>>(), None);
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
        start: &Solved,
        run: &mut Run<'_>,
    ) -> Result<Option<ByKernel>, LaplaceError> {
        let (count, choices) = (self.data.examples.len(), (self.mode, &self.prior));
        let (graph, observed) = (self.data.network.graph(), (count, &self.likelihood));
        let own = kernels(graph, &self.selection, choices, observed, self.options);
        let Some(groups) = own else { return Ok(None) };
        let network = self.data.network.cast::<f64>()?;
        let at = self.at_examples(&network, run)?;
        let mut of_each = vec![0; self.selection.len()];
        for (range, group) in start.prior.stretches(0..self.selection.len()) {
            of_each[range].fill(group);
        }
        let (x, _) = self.data.examples.batch(&(0..count).collect::<Vec<_>>(), None);
        let x = x.cast::<f64>();
        let mut kernels = Vec::with_capacity(groups);
        for group in 0..groups {
            let own = of_group(network.graph(), &self.selection, &of_each, group);
            kernels.push(TangentKernel::new(&network, &own).gram(&x, None)?);
            run.step(Stage::Mode, (group + 1) * count / groups, count)?;
        }
        Ok(Some(ByKernel { kernels, at, network }))
    }

    /// The optimum for the current precisions.
    pub(super) fn mode_by_kernel(
        &self,
        by: &ByKernel,
        mode: Mode,
        solved: &Solved,
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
            likelihood: &*self.likelihood,
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
