//! **Settings of methods**: how each is planned, timed, checked and fitted, implemented for the options of each.
//!
//! [`Method::settings`] is the one place that lists them. Orchestration asks the trait and does not know which method it is; what a method has no answer of its own to stands here.
//!
//! | file | methods |
//! |---|---|
//! | `automatic` | `auto` |
//! | `exact` | `exact` |
//! | `iterative` | `cg`, `sgd`, `sdd`, `sap`, `inducing-sgd` |
//! | `bounds` | `sgpr`, `svgp` |
//! | `trained` | `dbk`, `svdbk`, `dkl`, `svdkl`, `gvi` |

mod automatic;
mod bounds;
mod exact;
mod iterative;
mod trained;

use super::regression::{Draft, Learned, fit_large};
use crate::method::deep::{Scatter, Work};
use crate::method::inference::{Cost, FitMonitor, Inference, Size};
use crate::method::large::{Fitting, Outcome, StepSize, by_solver, not_from_disk};
use crate::options::{AutoOptions, BatchOptions, InferenceName, SgprOptions};
use crate::{FileRows, FitRequest, FitStage, Method, ModelError, Observed, Prepared, ScalablePlan};
use posterior_gp::exact::Plan;
use posterior_gp::inducing::Plan as BoundPlan;
use posterior_optim::Observer;

/// A request, and the method that is asked: the chosen one, of which the request may leave the choice open.
type RequestedMethod<'a> = (&'a FitRequest, &'a Method);

/// What orchestration asks of a method; `own` is the method with these settings.
pub(crate) trait MethodSettings {
    /// Whether the method is ours to choose.
    fn is_automatic(&self) -> bool {
        false
    }

    /// The settings by which other methods are tried beside the chosen one, of which the best is kept.
    fn compared_with(&self, _chosen: &Method) -> Option<&AutoOptions> {
        None
    }

    /// Whether the posterior of all rows is a closed form: each row can be predicted from the others, so that none is held back, and what takes time is the search by exact evidence.
    fn leaves_one_out(&self) -> bool {
        false
    }

    /// Refuses settings that mean nothing for so many rows, before anything is done.
    fn check(&self, _rows: usize) -> Result<(), ModelError> {
        Ok(())
    }

    /// Memory, and the work of an evaluation or of a step.
    fn plan(&self, (request, own): RequestedMethod<'_>, rows: usize, inputs: usize) -> Plan {
        ScalablePlan::new(request, own, rows, inputs).as_exact()
    }

    /// What a bound takes that the method maximises.
    fn bound(&self, _size: &StepSize<'_>) -> Option<BoundPlan> {
        None
    }

    /// Bytes beside the table, and operations of a step: those of a bound, or look-ahead, velocity, average, targets, and the draws they come from.
    fn step(&self, size: &StepSize<'_>) -> (u64, f64) {
        if let Some(plan) = self.bound(size) {
            return (plan.peak_bytes, plan.flops_per_step);
        }
        let (n, s) = (size.rows as u64, size.columns());
        let pairs = size.batch() * size.rows as f64;
        (
            n.saturating_mul(size.number * 6 * s).saturating_add(size.checkpoint(n, 3)),
            size.kernel(pairs) + pairs * (2.0 * s as f64),
        )
    }

    /// The same with the number of steps, where rows stand in a file; None for methods that look at all rows at once.
    fn step_from_disk(&self, size: &StepSize<'_>) -> Option<(u64, f64, usize)> {
        let plan = self.bound(size)?.elsewhere(size.inputs, 1);
        Some((plan.peak_bytes, plan.flops_per_step, size.method.steps(size.rows)))
    }

    /// What training on targets that scatter so takes, of so many rows and inputs; None where nothing is trained.
    fn training(
        &self,
        _asked: RequestedMethod<'_>,
        _scatter: Scatter,
        _size: (usize, usize),
    ) -> Option<Work> {
        None
    }

    /// What a step on so many rows multiplies, by which its time is measured: rows of a batch, entries of the kernel matrix, and columns of a second product with these.
    fn products(&self, own: &Method, rows: usize) -> (usize, f64, Option<usize>) {
        let batch = own.batches().map_or(512, BatchOptions::solver_batch);
        (batch, batch.min(rows) as f64 * rows as f64, None)
    }

    /// Operations of what follows the steps.
    fn closing_flops(&self, _rows: usize, _inputs: usize) -> f64 {
        0.0
    }

    /// Steps of a solver before predictions of the held-back rows are looked at.
    fn first_look(&self, _rows: usize) -> usize {
        100
    }

    /// Whether it solves blocks exactly, so that it diverges by rounding alone.
    fn solves_blocks(&self) -> bool {
        false
    }

    /// Fits rows with Gaussian noise and writes into the draft how it went.
    fn fit(
        &self,
        prepared: Prepared,
        draft: &mut Draft<'_>,
        observer: &mut Observer<'_, FitStage>,
    ) -> Learned {
        fit_large(prepared, draft, observer)
    }

    /// Hyperparameters and posterior of the rows of a large table that are not held back.
    fn solve(&self, fitting: &mut Fitting<'_, '_>, own: &Method) -> Outcome {
        by_solver(fitting, own)
    }

    /// The same of rows that stand in a file.
    fn solve_from_disk(&self, _fitting: &mut Fitting<'_, '_, FileRows>, own: &Method) -> Outcome {
        Err(not_from_disk(own))
    }

    /// The method that an inference under another likelihood is by, where rows are few (`small`) or many; None where this one cannot infer so.
    fn for_labels(&self, own: &Method, inference: InferenceName, _small: bool) -> Option<Method> {
        (inference == InferenceName::Gaussianised).then(|| own.clone())
    }

    /// The collapsed bound by which all functions of a Gaussian label approximation share hyperparameters and points.
    fn shared_bound(&self) -> Option<&SgprOptions> {
        None
    }

    /// What a fit under another likelihood takes, if not by Laplace's approximation or training: by default a solver for each function.
    fn cost_of_labels(&self, asked: RequestedMethod<'_>, size: Size) -> Cost {
        Cost::by_parts(asked, size)
    }

    /// Fits under another likelihood itself, for methods that have a way ([`Self::for_labels`]).
    fn infer(&self, _: &Observed, (_, own): RequestedMethod<'_>, _: FitMonitor<'_, '_>) -> Inference {
        own.requires(None)
    }
}

impl Method {
    /// What is asked of it.
    pub(crate) fn settings(&self) -> &dyn MethodSettings {
        match self {
            Self::Auto(own) => own,
            Self::Exact(own) => own,
            Self::Cg(own) => own,
            Self::Sgd(own) => own,
            Self::Sdd(own) => own,
            Self::Sap(own) => own,
            Self::InducingSgd(own) => own,
            Self::Sgpr(own) => own,
            Self::Svgp(own) => own,
            Self::Dbk(own) | Self::Svdbk(own) => own,
            Self::Dkl(own) | Self::Svdkl(own) => &own.deep,
            Self::Gvi(own) => own,
        }
    }
}
