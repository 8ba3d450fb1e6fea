//! The largest stable step of a method: by trying, and for full batches in closed form.

use crate::kinds::prelude::*;
use posterior_gp::GpError;
use posterior_gp::iterative::{
    Budget, Curvature, DescentOptions, DescentRule, DualDescentOptions, Gradient, Method, Problem, Start,
    StepSize, solve,
};
use posterior_linalg::solve::largest_eigenvalue;

/// How the largest stable step is searched: from a first guess by doubling or halving, then by bisection of its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepSearch {
    /// The first step size βn that is tried.
    from: f64,
    /// Steps after which a run that has not diverged counts as stable.
    steps: usize,
    /// Bisections: the result is low by at most a factor of `2^(1 / 2^bisections)`.
    bisections: u32,
}

/// Doublings or halvings before the search gives up.
const MOST_DOUBLINGS: usize = 60;

/// Power iterations for the closed form: the largest eigenvalue is a few hundredths low at most.
const ITERATIONS: usize = 100;

/// Dual descent that finds its step size, if that is what a solver is.
pub(super) fn with_automatic_step(solver: &Method) -> Option<&DualDescentOptions> {
    match solver {
        Method::DualDescent(options) if options.step_size == StepSize::Automatic => Some(options),
        _ => None,
    }
}

/// The solver with a share of the step size that it would find; where it diverges it begins anew with a smaller one, as ever.
pub(super) fn with_share(solver: Method, problem: &Problem<'_, f64>, share: f64) -> Result<Method, GpError> {
    let Some(options) = with_automatic_step(&solver) else { return Ok(solver) };
    let curvature = Curvature::of(problem, options.seed)?;
    let found = curvature.rows as f64 * curvature.dual_step(options.batch, options.momentum);
    let step_size = StepSize::TimesRows(share * found);
    Ok(Method::DualDescent(DualDescentOptions { step_size, ..options.clone() }))
}

/// A solver with a step size, which is not searched anew however it does.
fn with_step(solver: &Method, times_rows: f64) -> Option<Method> {
    let size = StepSize::TimesRows(times_rows);
    match solver {
        Method::Descent(options) => {
            Some(Method::Descent(DescentOptions { step_size: size, restarts: 0, ..options.clone() }))
        }
        Method::DualDescent(options) => {
            let mut options = options.clone();
            (options.step_size, options.restarts) = (size, 0);
            Some(Method::DualDescent(options))
        }
        Method::Direct | Method::ConjugateGradients(_) | Method::SketchAndProject(_) => None,
    }
}

impl StepSearch {
    /// What is wrong with it for a solver.
    pub(super) fn problem(&self, solver: &Method) -> Option<&'static str> {
        if let Method::Descent(options) = solver {
            let normalised =
                matches!(options.rule, DescentRule::AdaGrad | DescentRule::RmsProp | DescentRule::Adam);
            if normalised || options.clip.is_some_and(f64::is_finite) {
                return Some(
                    "`largest_step` is for rules that neither normalise nor clip the gradient (`clip = inf`)",
                );
            }
        }
        let fine = self.from > 0.0 && self.from.is_finite() && self.steps > 1 && self.bisections <= 20;
        match with_step(solver, 1.0) {
            None => Some("`largest_step` needs a solver with a step size"),
            Some(_) if !fine => {
                Some("`largest_step`: `from` must be positive, `steps` at least 2, `bisections` at most 20")
            }
            Some(_) => None,
        }
    }

    /// The largest βn that was found to be stable.
    pub(super) fn run(
        &self,
        solver: &Method,
        problem: &Problem<'_, f64>,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<f64> {
        let mut tried = 0;
        let mut stable = |size: f64| -> Result<bool> {
            tried += 1;
            context.step(stage, tried, 0)?;
            let Some(solver) = with_step(solver, size) else { return Ok(false) };
            let budget = Budget::steps(self.steps);
            let solution =
                solve(&solver, problem, Start::Zero, &budget, &mut |_, _| context.tell(stage, tried, 0));
            match solution {
                Ok(_) if context.stopped() => Err(ExperimentError::Interrupted),
                Ok(_) => Ok(true),
                Err(GpError::Diverged { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            }
        };
        let (mut low, mut high) = (self.from, self.from);
        let up = stable(self.from)?;
        for doubling in 0.. {
            if doubling == MOST_DOUBLINGS {
                let problem = format!("{stage}: every step size is alike from {low:e} to {high:e}");
                return refused(problem);
            }
            if up {
                high *= 2.0;
                if !stable(high)? {
                    break;
                }
                low = high;
            } else {
                low *= 0.5;
                if stable(low)? {
                    break;
                }
                high = low;
            }
        }
        for _ in 0..self.bisections {
            let middle = (low * high).sqrt();
            *if stable(middle)? { &mut low } else { &mut high } = middle;
        }
        Ok(low)
    }
}

/// The step size βn beyond which descent along the whole gradient diverges: `n c / h` with the largest curvature h, which is `λ₁ + σ²` in the dual and
/// `λ₁ (λ₁ + σ²)` in the primal, and c = 2 without momentum, `2 (1 + ρ)` for heavy balls, `2 (1 + ρ) / (1 + 2ρ)` for Nesterov's. None for gradients that
/// are estimated and rules that normalise them.
pub(super) fn closed_form(solver: &Method, problem: &Problem<'_, f64>, seed: u64) -> Result<Option<f64>> {
    let Method::Descent(DescentOptions { gradient, rule, .. }) = solver else { return Ok(None) };
    let factor = match *rule {
        DescentRule::Plain => 2.0,
        DescentRule::HeavyBall { momentum } => 2.0 * (1.0 + momentum),
        DescentRule::Nesterov { momentum } => 2.0 * (1.0 + momentum) / (1.0 + 2.0 * momentum),
        DescentRule::AdaGrad | DescentRule::RmsProp | DescentRule::Adam => return Ok(None),
    };
    if !matches!(gradient, Gradient::DualFull | Gradient::PrimalFull) {
        return Ok(None);
    }
    let system = problem.system();
    let largest = largest_eigenvalue(system.matrix(), ITERATIONS, seed).map_err(GpError::from)?;
    let dual = largest + system.largest_noise();
    let curvature = if gradient.is_dual() { dual } else { largest * dual };
    Ok(Some(system.rows() as f64 * factor / curvature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Event;
    use crate::journal::Journal;
    use faer::Mat;
    use posterior_kernels::KernelExpression;
    use posterior_kernels::matrix::KernelMatrix;
    use posterior_linalg::solve::System;
    use posterior_optim::Signal;
    use std::path::Path;

    /// What is found by trying is the closed form, for both objectives and all rules that have one.
    #[test]
    fn trying_finds_the_closed_form() {
        let expression: KernelExpression = "se(lengthscale=0.4)".parse().unwrap();
        let kernel = expression.build::<f64>(&["x".into()]).unwrap();
        let x = Mat::from_fn(40, 1, |i, _| (i as f64 * 0.7).sin() * 2.0);
        let y = Mat::from_fn(40, 1, |i, _| (i as f64 * 1.3).cos());
        let matrix = KernelMatrix::with_budget(&*kernel, x.as_ref(), 1 << 20);
        let system = System::uniform(&matrix, 0.1).unwrap();
        let problem = Problem::new(&system, y.as_ref(), None).unwrap();
        let (mut journal, mut watch) = (Journal::default(), |_: &Event<'_>| Signal::Continue);
        let mut context = Context::new(0, Path::new("."), &mut watch, &mut journal);
        let search = StepSearch { from: 1.0, steps: 300, bisections: 5 };
        for gradient in [Gradient::DualFull, Gradient::PrimalFull] {
            for rule in [
                DescentRule::Plain,
                DescentRule::HeavyBall { momentum: 0.5 },
                DescentRule::Nesterov { momentum: 0.9 },
            ] {
                let clip = Some(f64::INFINITY);
                let solver =
                    Method::Descent(DescentOptions { gradient, rule, clip, ..DescentOptions::default() });
                assert_eq!(search.problem(&solver), None);
                let found = search.run(&solver, &problem, "test", &mut context).unwrap();
                let limit = closed_form(&solver, &problem, 0).unwrap().unwrap();
                assert!((found / limit - 1.0).abs() < 0.05, "{gradient:?} {rule:?}: {found} {limit}");
            }
        }
        assert!(search.problem(&Method::Direct).is_some());
        let estimated = DescentOptions { gradient: Gradient::DualCoordinates, ..DescentOptions::default() };
        assert!(closed_form(&Method::Descent(estimated), &problem, 0).unwrap().is_none());
    }
}
