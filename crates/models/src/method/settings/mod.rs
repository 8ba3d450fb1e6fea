//! **Settings of methods**: how each is planned, timed, checked and fitted, implemented for the options of each.
//!
//! Orchestration asks the trait, or [`Method`], and does not know which method it is; what a method has no answer of its own to stands here.
//!
//! | file | what, or methods |
//! |---|---|
//! | `method` | the same asked of a [`Method`] |
//! | `automatic` | `auto` |
//! | `exact` | `exact` |
//! | `iterative` | `cg`, `sgd`, `sdd`, `sap`, `inducing-sgd` |
//! | `bounds` | `sgpr`, `svgp` |
//! | `trained` | `dbk`, `svdbk`, `dkl`, `svdkl`, `gvi` |

mod automatic;
mod bounds;
mod exact;
mod iterative;
mod method;
mod trained;

use super::regression::{Draft, Learned, fit_large};
use crate::method::deep::{Scatter, Work};
use crate::method::inference::{Cost, FitMonitor, Inference, Size};
use crate::method::large::{Fitting, Outcome, StepSize, by_solver, not_from_disk};
use crate::options::{
    AutoOptions, BatchOptions, DbkOptions, DeepKind, DiskOptions, EvidenceOptions, GviOptions,
    InducingOptions, InferenceName, IterativeOptions, KernelPrecision, LargeTableOptions, MethodName,
    SgprOptions,
};
use crate::{FileRows, FitRequest, FitStage, Method, ModelError, Observed, Prepared, ScalablePlan, Solver};
use posterior_gp::exact::{FitOptions, Plan};
use posterior_gp::inducing::Plan as BoundPlan;
use posterior_optim::Observer;

/// A request, and the method that is asked: the chosen one, of which the request may leave the choice open.
pub(crate) type RequestedMethod<'a> = (&'a FitRequest, &'a Method);

/// Answers that are fields: shares of the settings, some of which are also asked for to be changed.
macro_rules! shares {
    ($($name:ident $(, $name_mut:ident)?: $kind:ident = |$own:ident| $place:expr;)+) => {
        $(
            fn $name(&self) -> Option<&$kind> {
                let $own = self;
                Some(&$place)
            }

            $(fn $name_mut(&mut self) -> Option<&mut $kind> {
                let $own = self;
                Some(&mut $place)
            })?
        )+
    };
}
use shares;

/// Deep settings: which features, and how wide the embedding is.
pub(crate) type Deep<'a> = (&'a DbkOptions, DeepKind, Option<usize>);

/// What orchestration asks of a method; `own` is the method with these settings.
pub(crate) trait MethodSettings {
    /// Takes on what it has otherwise than the methods that it shares a group of options with, where nothing is said of it.
    fn settle(&mut self) {}

    /// The search for hyperparameters by exact evidence, of methods that have one; bounds learn theirs.
    fn evidence(&self) -> Option<&EvidenceOptions> {
        self.iterative().map(|own| &own.evidence)
    }

    /// Starts of a search by exact evidence.
    fn restarts(&self) -> usize {
        FitOptions::default().restarts
    }

    /// One start of that search, where starts are a setting.
    fn start_once(&mut self) {}

    /// What iterative solvers are told.
    fn iterative(&self) -> Option<&IterativeOptions> {
        None
    }

    /// The same, to be changed.
    fn iterative_mut(&mut self) -> Option<&mut IterativeOptions> {
        None
    }

    /// Steps, rows to judge by and checkpoints of methods for large tables.
    fn large(&self) -> Option<&LargeTableOptions> {
        self.iterative().map(|own| &own.large)
    }

    /// The same, to be changed.
    fn large_mut(&mut self) -> Option<&mut LargeTableOptions> {
        self.iterative_mut().map(|own| &mut own.large)
    }

    /// Where prepared rows are kept, of methods that look at some of them at a time.
    fn disk(&self) -> Option<&DiskOptions> {
        None
    }

    /// What methods with learned features are told, by their names.
    fn deep(&self, _name: MethodName) -> Option<Deep<'_>> {
        None
    }

    /// What generalised variational inference is told.
    fn gvi(&self) -> Option<&GviOptions> {
        None
    }

    /// Inducing points of methods that have some.
    fn inducing(&self) -> Option<&InducingOptions> {
        None
    }

    /// Batches of methods that step on some.
    fn batches(&self) -> Option<&BatchOptions> {
        None
    }

    /// What finds the weights of an iterative method on so many rows, as it is kept in the model's file.
    fn solver(&self, _rows: usize, _seed: u64) -> Option<Solver> {
        None
    }

    /// The relative residual at which a solver was asked to stop.
    fn tolerance(&self) -> Option<f64> {
        None
    }

    /// Whether its solver goes on to a tolerance that nobody chose; others end where predictions do.
    fn ends_by_tolerance(&self) -> bool {
        false
    }

    /// Steps of the solver on so many rows that nobody limits.
    fn usual_steps(&self, _rows: usize) -> usize {
        10_000
    }

    /// Steps of the solver or bound on so many rows.
    fn steps(&self, rows: usize) -> usize {
        self.large().and_then(|own| own.iterations).unwrap_or_else(|| self.usual_steps(rows))
    }

    /// The precision of kernel products that is still to be decided by the system, of methods that leave it open.
    fn open_precision(&mut self) -> Option<&mut Option<KernelPrecision>> {
        None
    }

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

    /// The inference under another likelihood that it has.
    fn infers(&self) -> InferenceName {
        InferenceName::Gaussianised
    }

    /// The method that an inference under another likelihood is by, where rows are few (`small`) or many; None where this one cannot infer so.
    fn for_labels(&self, own: &Method, inference: InferenceName, _small: bool) -> Option<Method> {
        (inference == self.infers()).then(|| own.clone())
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
