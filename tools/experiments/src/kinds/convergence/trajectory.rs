//! One solver's way to the solution: weights kept at checkpoints, errors computed afterwards.

use super::largest_step::{closed_form, with_share};
use super::settings::{Entry, Quantity};
use crate::kinds::prelude::*;
use posterior_gp::GpError;
use posterior_gp::iterative::{Budget, Method, Problem, Start, WeightErrors, solve, weight_errors};
use posterior_kernels::matrix::{CrossMatrix, KernelMatrix};
use posterior_linalg::operator::LinearOperator;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One table at one noise level.
pub(super) struct Case<'a> {
    /// K, n x n.
    pub(super) matrix: &'a KernelMatrix<f64>,
    /// From training rows to test points, m x n.
    pub(super) between: &'a CrossMatrix<f64>,
    /// The mean's system, one right-hand side.
    pub(super) problem: &'a Problem<'a, f64>,
    /// Targets of the test points.
    pub(super) truth: &'a [f64],
    /// The noise's variance.
    pub(super) noise: f64,
    pub(super) seed: u64,
}

/// The solution, by a factorisation.
#[derive(Serialize, Deserialize)]
pub(super) struct Exact {
    pub(super) weights: Vec<f64>,
    /// Of the function at the test points.
    variances: Vec<f64>,
    pub(super) seconds: f64,
}

/// What is missing at one step; all but the first three relative to zero weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Errors(BTreeMap<Quantity, f64>);

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) step: usize,
    pub(super) passes: f64,
    pub(super) seconds: f64,
    pub(super) errors: Errors,
}

/// What a method did on one fold.
#[derive(Serialize, Deserialize)]
pub(super) struct Trajectory {
    /// Its checkpoints; those before it diverged if it did.
    pub(super) points: Vec<Point>,
    pub(super) diverged: bool,
    pub(super) seconds: f64,
    pub(super) steps: usize,
    /// βn
    pub(super) step_size: Option<f64>,
    /// The largest stable βn, if it was searched.
    pub(super) largest_step: Option<f64>,
    /// The same in closed form, where there is one.
    pub(super) limit: Option<f64>,
    /// By what factor the test RMSE rose the most above its smallest value so far.
    pub(super) rise: f64,
}

impl Trajectory {
    /// Passes after which the residual was first so small, and whether it ever was: if not, all of them.
    pub(super) fn passes_to(&self, goal: f64) -> (f64, bool) {
        let found = self.points.iter().find(|p| p.errors.of(Quantity::Residual) <= goal);
        (found.or(self.points.last()).map_or(0.0, |p| p.passes), found.is_some())
    }

    /// The same of a negative log density of test targets, from where on it stays so small.
    pub(super) fn passes_to_nll(&self, goal: f64) -> (f64, bool) {
        let late = self
            .points
            .iter()
            .rposition(|p| p.errors.of(Quantity::Nll).is_nan() || p.errors.of(Quantity::Nll) > goal)
            .map_or(0, |last| last + 1);
        let found = self.points.get(late);
        (found.or(self.points.last()).map_or(0.0, |p| p.passes), found.is_some())
    }
}

impl Errors {
    pub(super) fn of(&self, quantity: Quantity) -> f64 {
        self.0.get(&quantity).copied().unwrap_or(f64::NAN)
    }
}

/// At most `count` logarithmically spaced steps from 1 to `last`, both included.
pub(super) fn checkpoints(last: usize, count: usize) -> Vec<usize> {
    let at = |i: usize| (last as f64).powf(i as f64 / (count - 1) as f64).round() as usize;
    let mut steps: Vec<usize> = (0..count).map(at).collect();
    steps.dedup();
    steps
}

/// The largest ratio of a value to one before it, at least 1.
fn largest_rise(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut least, mut rise) = (f64::INFINITY, 1.0f64);
    for value in values {
        least = least.min(value);
        rise = rise.max(value / least);
    }
    rise
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(|v| v * v).sum::<f64>() / count).sqrt()
}

impl Case<'_> {
    /// The exact weights, and the variances of the function at the test points: from kernel values between training rows and these (n x m), and its variances before.
    pub(super) fn solve_directly(
        &self,
        (across, prior): (&Mat<f64>, &[f64]),
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Exact> {
        let started = Instant::now();
        context.step(stage, 0, 1)?;
        let budget = Budget::steps(1);
        let (n, m) = across.shape();
        let y = self.problem.targets();
        let sides = Mat::from_fn(n, 1 + m, |i, j| if j == 0 { y[(i, 0)] } else { across[(i, j - 1)] });
        let all = Problem::new(self.problem.system(), sides.as_ref(), None)?;
        let solution =
            solve(&Method::Direct, &all, Start::Zero, &budget, &mut |_, _| context.tell(stage, 1, 1))?;
        let seconds = started.elapsed().as_secs_f64();
        let explained = |j: usize| {
            let pairs = across.col_as_slice(j).iter().zip(solution.weights.col_as_slice(1 + j));
            pairs.map(|(k, w)| k * w).sum::<f64>()
        };
        let variances = (0..m).map(|j| (prior[j] - explained(j)).max(0.0)).collect();
        Ok(Exact { weights: solution.weights.col(0).iter().copied().collect(), variances, seconds })
    }

    /// Errors of every column of `weights` (n x s), for two products with K.
    pub(super) fn errors(&self, weights: &Mat<f64>, exact: &Exact) -> Result<Vec<Errors>, GpError> {
        let (n, s) = weights.shape();
        let repeated = |columns| Mat::from_fn(n, columns, |i, _| exact.weights[i]);
        let base = weight_errors(self.matrix, Mat::zeros(n, 1).as_ref(), repeated(1).as_ref())?[0];
        let missing = weight_errors(self.matrix, weights.as_ref(), repeated(s).as_ref())?;
        let means = self.between.multiply(weights.as_ref());
        let wanted = self.between.multiply(repeated(1).as_ref());
        let m = means.nrows();
        let norm = root_mean_square(self.problem.targets().col(0).iter().copied());
        let apart = Mat::from_fn(n, s, |i, j| weights[(i, j)] - exact.weights[i]);
        let left = self.problem.system().multiply(apart.as_ref());
        let surprise = |i: usize, mean: f64| {
            let variance = exact.variances[i] + self.noise;
            0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + (self.truth[i] - mean).powi(2) / variance)
        };
        let of = |(j, found): (usize, &WeightErrors)| {
            Errors(BTreeMap::from([
                (Quantity::Rmse, root_mean_square((0..m).map(|i| means[(i, j)] - self.truth[i]))),
                (Quantity::Nll, (0..m).map(|i| surprise(i, means[(i, j)])).sum::<f64>() / m as f64),
                (Quantity::FromExact, root_mean_square((0..m).map(|i| means[(i, j)] - wanted[(i, 0)]))),
                (Quantity::Euclidean, found.euclidean / base.euclidean),
                (Quantity::Function, found.function / base.function),
                (Quantity::Predictions, found.predictions / base.predictions),
                (Quantity::Residual, root_mean_square(left.col_as_slice(j).iter().copied()) / norm),
            ]))
        };
        Ok(missing.iter().enumerate().map(of).collect())
    }

    /// Solves as `entry` says. The clock stands still while weights are kept for later and while the context listens.
    pub(super) fn follow(
        &self,
        entry: &Entry,
        count: usize,
        exact: &Exact,
        stage: &str,
        context: &mut Context<'_>,
    ) -> Result<Trajectory> {
        let (mut solver, budget) = entry.method.rows_solver(self.problem.shape().0, self.seed)?;
        if let Some(share) = entry.step_share {
            solver = with_share(solver, self.problem, share)?;
        }
        let at = checkpoints(budget.steps, count);
        let n = self.problem.shape().0;
        let passes = |step: usize| step as f64 * solver.rows_of_a_step(n, 1) as f64 / n as f64;
        let mut seen: Vec<(usize, f64, Mat<f64>)> = Vec::new();
        let (mut steps, mut step_size, mut restarts) = (0, None, 0);
        let (started, mut watched) = (Instant::now(), Duration::ZERO);
        let solution = solve(&solver, self.problem, Start::Zero, &budget, &mut |progress, iterate| {
            let clock = Instant::now();
            (steps, step_size) = (progress.step, progress.step_size);
            if progress.restarts != restarts {
                restarts = progress.restarts;
                seen.clear();
            }
            if at.binary_search(&steps).is_ok() {
                let spent = (clock - started).saturating_sub(watched).as_secs_f64();
                seen.push((steps, spent, iterate.weights()));
            }
            let signal = context.tell(stage, steps, progress.steps_planned);
            watched += clock.elapsed();
            signal
        });
        let seconds = started.elapsed().saturating_sub(watched).as_secs_f64();
        if context.stopped() {
            return Err(ExperimentError::Interrupted);
        }
        let diverged = match solution {
            Ok(solution) => {
                if seen.last().is_none_or(|s| s.0 != solution.progress.step) {
                    seen.push((solution.progress.step, seconds, solution.weights));
                }
                false
            }
            Err(GpError::Diverged { step_size: last, .. }) => {
                step_size = Some(last);
                true
            }
            Err(error) => return Err(error.into()),
        };
        let zero = self.errors(&Mat::zeros(self.matrix.shape().0, 1), exact)?.swap_remove(0);
        let kept = Mat::from_fn(self.matrix.shape().0, seen.len(), |i, j| seen[j].2[(i, 0)]);
        let errors = self.errors(&kept, exact)?;
        let points: Vec<Point> = seen
            .iter()
            .zip(errors)
            .map(|((step, seconds, _), errors)| Point {
                step: *step,
                passes: passes(*step),
                seconds: *seconds,
                errors,
            })
            // What is about to diverge may be beyond all numbers, which results cannot hold.
            .filter(|p| Quantity::ALL.iter().all(|q| p.errors.of(q.0).is_finite()))
            .collect();
        let rise = largest_rise(
            std::iter::once(&zero).chain(points.iter().map(|p| &p.errors)).map(|e| e.of(Quantity::Rmse)),
        );
        let (mut largest_step, mut limit) = (None, None);
        if let Some(search) = &entry.largest_step {
            largest_step =
                Some(search.run(&solver, self.problem, &format!("{stage}, largest step"), context)?);
            limit = closed_form(&solver, self.problem, self.seed)?;
        }
        Ok(Trajectory { points, diverged, seconds, steps, step_size, largest_step, limit, rise })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Event;
    use crate::journal::Journal;
    use posterior_kernels::KernelExpression;
    use posterior_linalg::solve::System;
    use posterior_optim::Signal;
    use std::path::Path;

    #[test]
    fn checkpoints_are_logarithmic_and_distinct() {
        assert_eq!(checkpoints(1000, 4), [1, 10, 100, 1000]);
        assert_eq!(checkpoints(4, 100), [1, 2, 3, 4]);
        assert_eq!(checkpoints(1, 5), [1]);
    }

    #[test]
    fn goals_are_reached_where_they_are_kept() {
        let point = |passes: f64, nll: f64| {
            let known = [(Quantity::Nll, nll), (Quantity::Residual, 1.0 / passes)];
            let errors = Errors(BTreeMap::from(known));
            Point { step: 1, passes, seconds: 0.0, errors }
        };
        let points =
            vec![point(1.0, 3.0), point(2.0, 0.5), point(4.0, 2.0), point(8.0, 0.6), point(16.0, 0.4)];
        let course = Trajectory {
            points,
            diverged: false,
            seconds: 0.0,
            steps: 1,
            step_size: None,
            largest_step: None,
            limit: None,
            rise: 1.0,
        };
        assert_eq!(course.passes_to(0.3), (4.0, true));
        // What is lost again was not reached.
        assert_eq!(course.passes_to_nll(1.0), (8.0, true));
        assert_eq!(course.passes_to_nll(0.1), (16.0, false));
    }

    #[test]
    fn rises_are_counted_from_the_smallest_value_before() {
        assert_eq!(largest_rise([4.0, 2.0, 3.0, 1.0, 1.25]), 1.5);
        assert_eq!(largest_rise([3.0, 2.0]), 1.0);
    }

    /// Half of the exact weights: every relative error is a half, and the distance is half of the exact mean.
    #[test]
    fn errors_are_relative_to_zero_weights() {
        let expression: KernelExpression = "se(lengthscale=0.4)".parse().unwrap();
        let kernel = expression.build::<f64>(&["x".into()]).unwrap();
        let x = Mat::from_fn(20, 1, |i, _| i as f64 * 0.3);
        let y = Mat::from_fn(20, 1, |i, _| (i as f64).cos());
        let matrix = KernelMatrix::with_budget(&*kernel, x.as_ref(), 1 << 20);
        let system = System::uniform(&matrix, 0.1).unwrap();
        let problem = Problem::new(&system, y.as_ref(), None).unwrap();
        let test = Mat::from_fn(3, 1, |i, _| i as f64);
        let between = matrix.cross(test.as_ref());
        let truth = &[0.0, 0.0, 0.0];
        let case = Case { matrix: &matrix, between: &between, problem: &problem, truth, noise: 0.1, seed: 0 };
        let (mut journal, mut watch) = (Journal::default(), |_: &Event<'_>| Signal::Continue);
        let mut context = Context::new(0, Path::new("."), &mut watch, &mut journal);
        let across = posterior_kernels::cross(&*kernel, x.as_ref(), test.as_ref());
        let exact = case.solve_directly((&across, &[1.0; 3]), "exact", &mut context).unwrap();
        // The exact process's own predictions.
        let noise = posterior_likelihoods::Gaussian::new(0.1, 0.0);
        let process =
            posterior_gp::exact::ExactGp::new(kernel.clone_box(), posterior_gp::MeanForm::Zero, noise, 1, 1);
        let process = process.condition(posterior_gp::Observations::new(x.clone(), y.clone(), None).unwrap());
        let expected = posterior_gp::Posterior::predict(&process.unwrap(), test.as_ref()).unwrap();
        for (own, expected) in exact.variances.iter().zip(&expected.latent_variance) {
            assert!((own - expected).abs() < 1e-9, "{own} {expected}");
        }
        let nll = (0..3).map(|i| {
            let variance = expected.latent_variance[i] + 0.1;
            0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + expected.mean[(i, 0)].powi(2) / variance)
        });
        let nll = nll.sum::<f64>() / 3.0;
        let weights = Mat::from_fn(20, 2, |i, j| (1.0 - 0.5 * j as f64) * exact.weights[i]);
        let errors = case.errors(&weights, &exact).unwrap();
        for (quantity, key, _) in Quantity::ALL {
            let [none, half] = [errors[0].of(quantity), errors[1].of(quantity)];
            match quantity {
                // Targets of zero: what is there is the mean itself.
                Quantity::Rmse => assert!((half / none - 0.5).abs() < 1e-12, "{key}"),
                Quantity::Nll => assert!((none - nll).abs() < 1e-9 && half < none, "{none} {nll} {half}"),
                Quantity::FromExact => {
                    assert!(none < 1e-15 && (half / errors[1].of(Quantity::Rmse) - 1.0).abs() < 1e-12)
                }
                _ => assert!(none < 1e-15 && (half - 0.5).abs() < 1e-12, "{key}: {none} {half}"),
            }
        }
        assert!(case.problem.relative_residuals(weights.get(.., ..1))[0] < 1e-12);
    }
}
