//! From data to weights.

use super::model::{KernelFeatures, PathwiseModel, PathwiseSettings};
use super::posterior::PathwisePosterior;
use crate::data::same_width;
use crate::iterative::inducing::{
    InducingDescentOptions, InducingProblem, StoredTargets, TargetRows, solve_inducing,
};
use crate::iterative::problem::Problem;
use crate::iterative::solver::{Method, Solution, SolveObserver, Start, solve};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::features::PriorDrawGroups;
use posterior_kernels::matrix::KernelMatrix;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::System;
use posterior_linalg::{PerPrecision, Real, compiled_here, parallel};
use rand_distr::{Distribution, StandardNormal};

/// Which points carry the weights, and how the weights are found.
#[derive(Clone, Debug)]
pub enum Support {
    /// All rows.
    Rows(Method),
    /// Inducing inputs (m x D).
    Inducing(Mat<f64>, InducingDescentOptions),
}

impl<T: Real> PathwiseModel<T> {
    /// Conditions on observations.
    ///
    /// Cost: one solve with t + s right-hand sides. Memory on all rows: about `5 n (t + s)` numbers and the cache; on inducing inputs: that with m
    /// for n, and targets that do not fit the cache are computed when needed.
    ///
    /// # Errors
    /// [`GpError::Shape`] when widths differ, [`GpError::Features`] when samples are wanted of a kernel that has no random features, and those of [`solve`].
    pub fn condition(
        self,
        data: Observations,
        support: Support,
        settings: PathwiseSettings,
        start: Start<T>,
        observer: &mut SolveObserver<'_, T>,
    ) -> Result<PathwisePosterior<T>, GpError> {
        data.plain()?;
        let draws = prior_draws(&self, &data, &settings)?;
        let solution = run(&self, &data, &support, &settings, draws.as_ref(), start, observer)?;
        Ok(PathwisePosterior::new(self, data, support, settings, draws, solution))
    }
}

impl<T: Real> PathwisePosterior<T> {
    /// A posterior from weights that were computed before (a model file): prior functions are drawn again from the seed, so predictions are
    /// equal to the last bit.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the weights are not of as many support points, targets and samples.
    pub fn from_parts(
        model: PathwiseModel<T>,
        data: Observations,
        support: Support,
        settings: PathwiseSettings,
        solution: Solution<T>,
    ) -> Result<Self, GpError> {
        let rows = match &support {
            Support::Rows(_) => data.rows(),
            Support::Inducing(z, _) => {
                same_width("columns of the inducing inputs", data.inputs().ncols(), z.ncols())?;
                z.nrows()
            }
        };
        same_width("rows of the weights", rows, solution.weights.nrows())?;
        let columns = data.targets().ncols() + settings.samples;
        same_width("columns of the weights", columns, solution.weights.ncols())?;
        let draws = prior_draws(&model, &data, &settings)?;
        Ok(Self::new(model, data, support, settings, draws, solution))
    }

    /// Conditions on `more` rows as well: the solve begins at the present weights, with zeros for new rows. Prior functions and the noise drawn for
    /// old rows stay what they are.
    ///
    /// # Errors
    /// As [`PathwiseModel::condition`].
    pub fn append(
        self,
        more: &Observations,
        settings: Option<PathwiseSettings>,
        observer: &mut SolveObserver<'_, T>,
    ) -> Result<Self, GpError> {
        let (model, mut data, support, old, draws, solution) = self.into_inner();
        let mut settings = settings.unwrap_or_else(|| old.clone());
        // What the old weights belong to cannot change.
        (settings.samples, settings.features, settings.seed) = (old.samples, old.features, old.seed);
        settings.samples_per_features = old.samples_per_features;
        data.extend(more)?;
        let rows = match &support {
            Support::Rows(_) => data.rows(),
            Support::Inducing(z, _) => z.nrows(),
        };
        let weights = &solution.weights;
        let start =
            Mat::from_fn(
                rows,
                weights.ncols(),
                |i, j| {
                    if i < weights.nrows() { weights[(i, j)] } else { T::ZERO }
                },
            );
        let solution =
            run(&model, &data, &support, &settings, draws.as_ref(), Start::Weights(start), observer)?;
        Ok(Self::new(model, data, support, settings, draws, solution))
    }
}

/// The prior functions that the seed stands for; none when no samples are wanted.
pub(in crate::iterative) fn prior_draws<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    settings: &PathwiseSettings,
) -> Result<Option<PriorDrawGroups<T>>, GpError> {
    compiled_here!(T: Real, PerPrecision; ['a] draw, (
        model: &'a PathwiseModel<T> = model,
        data: &'a Observations = data,
        settings: &'a PathwiseSettings = settings,
    ) -> Result<Option<PriorDrawGroups<T>>, GpError>)
}

fn draw<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    settings: &PathwiseSettings,
) -> Result<Option<PriorDrawGroups<T>>, GpError> {
    same_width("columns of the inputs", model.mean.input_dimension(), data.inputs().ncols())?;
    same_width("columns of the targets", model.mean.target_count(), data.targets().ncols())?;
    if settings.samples == 0 {
        return Ok(None);
    }
    let streams = Streams::new(settings.seed);
    let dimension = data.inputs().ncols();
    let counts = (settings.samples, settings.samples_per_features);
    Ok(Some(PriorDrawGroups::new(&*model.kernel, dimension, settings.features, counts, streams)?))
}

/// Targets of data and samples, computed from the draws when asked for.
pub(in crate::iterative) struct GeneratedTargets<'a, T: Real> {
    pub(in crate::iterative) model: &'a PathwiseModel<T>,
    pub(in crate::iterative) data: &'a Observations,
    /// Inputs in precision T, n x D.
    pub(in crate::iterative) x: MatRef<'a, T>,
    /// Noise variances of the rows (n).
    pub(in crate::iterative) variances: &'a [f64],
    pub(in crate::iterative) draws: Option<&'a PriorDrawGroups<T>>,
    /// Where the noise is drawn from.
    pub(in crate::iterative) streams: Streams,
}

impl<T: Real> TargetRows<T> for GeneratedTargets<'_, T> {
    fn columns(&self) -> usize {
        self.data.targets().ncols() + self.draws.map_or(0, PriorDrawGroups::count)
    }

    fn rows(&self, rows: &[usize]) -> (Mat<T>, Mat<T>) {
        let t = self.data.targets().ncols();
        let pick = |m: MatRef<'_, f64>| Mat::from_fn(rows.len(), m.ncols(), |a, j| m[(rows[a], j)]);
        let mean = self.model.mean.evaluate(pick(self.data.inputs()).as_ref());
        let x = Mat::from_fn(rows.len(), self.x.ncols(), |a, d| self.x[(rows[a], d)]);
        let prior = self.draws.map(|draws| draws.values(x.as_ref()));
        let function = Mat::from_fn(rows.len(), self.columns(), |a, j| match &prior {
            _ if j < t => T::from_f64(self.data.targets()[(rows[a], j)] - mean[(a, j)]),
            Some(prior) => prior[(a, j - t)],
            None => T::ZERO,
        });
        let count = self.columns() - t;
        // One stream for each row, so that a row's noise does not depend on which others there are.
        let drawn: Vec<Vec<f64>> = parallel::map(rows.len(), 64, |a| {
            let i = rows[a];
            let mut rng = self.streams.child("gp/noise", i as u64).stream("gp/noise/row");
            let deviation = self.variances[i].sqrt();
            (0..count)
                .map(|_| {
                    let white: f64 = StandardNormal.sample(&mut rng);
                    deviation * white
                })
                .collect()
        });
        let noise = Mat::from_fn(rows.len(), self.columns(), |a, j| {
            if j < t { T::ZERO } else { T::from_f64(drawn[a][j - t]) }
        });
        (function, noise)
    }
}

fn run<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    support: &Support,
    settings: &PathwiseSettings,
    draws: Option<&PriorDrawGroups<T>>,
    start: Start<T>,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    compiled_here!(T: Real, PerPrecision; ['a, 'b: 'a] weigh, (
        model: &'a PathwiseModel<T> = model,
        data: &'a Observations = data,
        support: &'a Support = support,
        settings: &'a PathwiseSettings = settings,
        draws: Option<&'a PriorDrawGroups<T>> = draws,
        start: Start<T> = start,
        observer: &'a mut SolveObserver<'b, T> = observer,
    ) -> Result<Solution<T>, GpError>)
}

fn weigh<T: Real>(
    model: &PathwiseModel<T>,
    data: &Observations,
    support: &Support,
    settings: &PathwiseSettings,
    draws: Option<&PriorDrawGroups<T>>,
    start: Start<T>,
    observer: &mut SolveObserver<'_, T>,
) -> Result<Solution<T>, GpError> {
    let n = data.rows();
    let x = narrow::<T>(data.inputs());
    let variances = model.noise_variances(data);
    let noise: Vec<T> = variances.iter().map(|&v| T::from_f64(v)).collect();
    let generated = GeneratedTargets {
        model,
        data,
        x: x.as_ref(),
        variances: &variances,
        draws,
        streams: Streams::new(settings.seed),
    };
    let everything = || generated.rows(&(0..n).collect::<Vec<_>>());
    match support {
        Support::Rows(method) => {
            let matrix = KernelMatrix::with_budget(&*model.kernel, x.as_ref(), settings.cache_bytes);
            let system = System::new(&matrix, noise)?;
            let (function, errors) = everything();
            let features =
                KernelFeatures { kernel: &*model.kernel, points: x.as_ref(), settings: settings.features };
            let problem =
                Problem::new(&system, function.as_ref(), Some(errors.as_ref()))?.with_features(&features);
            solve(method, &problem, start, &settings.budget, observer)
        }
        Support::Inducing(z, options) => {
            let z = narrow::<T>(z.as_ref());
            let features =
                KernelFeatures { kernel: &*model.kernel, points: z.as_ref(), settings: settings.features };
            let needed = 2usize.saturating_mul(n).saturating_mul(generated.columns() * size_of::<T>());
            let stored = (needed <= settings.cache_bytes).then(everything);
            let stored = match &stored {
                Some((function, errors)) => {
                    Some(StoredTargets::new(function.as_ref(), Some(errors.as_ref()))?)
                }
                None => None,
            };
            let targets: &dyn TargetRows<T> = match &stored {
                Some(stored) => stored,
                None => &generated,
            };
            let problem = InducingProblem::new(
                &*model.kernel,
                x.as_ref(),
                z.as_ref(),
                &noise,
                targets,
                Some(&features),
            )?;
            solve_inducing(options, &problem, start, &settings.budget, observer)
        }
    }
}

/// A copy in precision T.
pub(in crate::iterative) fn narrow<T: Real>(matrix: MatRef<'_, f64>) -> Mat<T> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| T::from_f64(matrix[(i, j)]))
}
