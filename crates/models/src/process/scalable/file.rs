//! Weights to tensors and back: nothing is solved again on loading, so predictions are equal to the last bit.

use super::{ScalableSummary, Solver, SolverPrecision};
use crate::options::KernelPrecision;
use crate::process::file::{add_observations, observations};
use crate::process::{Header, Hyperparameter, ProcessPosterior};
use posterior_gp::Mean;
use posterior_gp::inducing::{InducingDistribution, InducingPosterior};
use posterior_gp::iterative::{PathwiseModel, PathwisePosterior, Solution, Support};
use posterior_kernels::Kernel;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::Cholesky;
use posterior_optim::{Parameters, Progress, Reason};
use posterior_store::{StoreError, Tensors};
use std::time::Duration;

/// The arrays of an iterative posterior.
pub(in crate::process) fn pathwise_tensors<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
    tensors: &mut Tensors,
) {
    add_observations(posterior.data(), tensors);
    tensors.insert_columns("weights", posterior.solution().weights.as_ref());
    if let Support::Inducing(z, _) = posterior.support() {
        tensors.insert_matrix("inducing_inputs", z.as_ref());
    }
}

/// The arrays of an inducing-point posterior: nothing of the data.
pub(in crate::process) fn inducing_tensors(posterior: &InducingPosterior, tensors: &mut Tensors) {
    let q = posterior.distribution();
    tensors.insert_matrix("inducing_inputs", posterior.inducing());
    tensors.insert_triangle("factor", posterior.factor().factor());
    tensors.insert_matrix("inducing_means", q.mean());
    for (i, root) in q.roots().iter().enumerate() {
        tensors.insert_triangle(format!("inducing_root_{i}"), root.as_ref());
    }
}

/// The posterior that a header and its arrays describe.
pub(in crate::process) fn read(
    header: &Header,
    summary: &ScalableSummary,
    tensors: &mut Tensors,
) -> Result<ProcessPosterior, StoreError> {
    match (&summary.solver, summary.precision) {
        (Solver::Collapsed | Solver::Stochastic { .. }, _) => read_inducing(header, summary, tensors),
        (Solver::Features, _) => match &summary.deep {
            Some(deep) if deep.dense => {
                Ok(ProcessPosterior::Embedded(crate::process::deep::file::read_dense(header, deep, tensors)?))
            }
            Some(deep) => {
                Ok(ProcessPosterior::LowRank(crate::process::deep::file::read(header, deep, tensors)?))
            }
            None => Err(tensors.corrupt("its features are not described")),
        },
        (Solver::Variation, _) => match &summary.gvi {
            Some(gvi) => {
                let names = header.schema.feature_names();
                let parts = (&header.kernel, header.mean, &names[..]);
                let likelihood = Box::new(Gaussian::new(1.0, 0.0));
                Ok(ProcessPosterior::Generalised(crate::process::gvi::file::read(
                    likelihood, parts, gvi, tensors,
                )?))
            }
            None => Err(tensors.corrupt("its mean and covariance are not described")),
        },
        (_, KernelPrecision::Single) => read_pathwise::<f32>(header, summary, tensors),
        (_, KernelPrecision::Double) => read_pathwise::<f64>(header, summary, tensors),
    }
}

/// Kernel, mean and noise.
type Parts<T> = (Box<dyn Kernel<T>>, Mean, Gaussian);

/// The parts with the values of the header.
fn parts<T: SolverPrecision>(header: &Header) -> Result<Parts<T>, String> {
    let names = header.schema.feature_names();
    let mut kernel = header.kernel.build::<T>(&names).map_err(|e| e.to_string())?;
    let mut mean = Mean::new(header.mean, names.len(), 1);
    let segments = kernel.segments();
    let bad = |h: &&Hyperparameter| match segments.iter().find(|s| s.name == h.name) {
        Some(segment) => h.out_of_range(segment).is_some(),
        None => h.values.iter().any(|v| !(v.is_finite() && *v > 0.0)),
    };
    if header.hyperparameters.iter().filter(|h| !h.name.starts_with("mean.")).any(|h| bad(&h)) {
        return Err("a hyperparameter is out of its range".into());
    }
    let values = |of: &dyn Parameters| -> Result<Vec<f64>, String> {
        let mut out = Vec::new();
        for segment in of.segments() {
            match header.hyperparameter(&segment.name) {
                Some(v) if v.len() == segment.len() => out.extend_from_slice(v),
                _ => {
                    return Err(format!(
                        "it has no hyperparameter `{}` of {} values",
                        segment.name,
                        segment.len()
                    ));
                }
            }
        }
        Ok(out)
    };
    let kernel_values = values(&*kernel)?;
    kernel.set_values(&kernel_values);
    let mean_values = values(&mean)?;
    if mean_values.iter().any(|v| !v.is_finite()) {
        return Err("its prior mean is not finite".into());
    }
    mean.set_values(&mean_values);
    let noise = header
        .hyperparameters
        .iter()
        .find(|h| h.name.ends_with("noise_variance"))
        .and_then(|h| h.values.first().copied())
        .ok_or("it has no noise variance")?;
    if !(header.noise_floor >= 0.0 && noise > header.noise_floor) {
        return Err(format!("its noise variance {noise} is not above its floor {}", header.noise_floor));
    }
    Ok((kernel, mean, Gaussian::new(noise, header.noise_floor)))
}

fn read_pathwise<T: SolverPrecision>(
    header: &Header,
    summary: &ScalableSummary,
    tensors: &mut Tensors,
) -> Result<ProcessPosterior, StoreError> {
    let Some(settings) = summary.settings.clone() else {
        return Err(tensors.corrupt("its solver has no settings"));
    };
    let data = observations(header, tensors)?;
    let (rows, support) = match &summary.solver {
        Solver::Inducing(options) => {
            let m = summary.inducing;
            let z = tensors.matrix("inducing_inputs", m, header.schema.features.len())?;
            (m, Support::Inducing(z, options.clone()))
        }
        Solver::Rows(method) => (header.rows, Support::Rows(method.clone())),
        Solver::Collapsed | Solver::Stochastic { .. } | Solver::Features | Solver::Variation => {
            return Err(tensors.corrupt("its solver is none"));
        }
    };
    let columns = settings.samples.checked_add(1).ok_or_else(|| tensors.corrupt("its size overflows"))?;
    // Features are drawn anew: their number is a declared size like any other.
    if settings.features.count > 10_000_000 {
        return Err(tensors.corrupt(format!("it claims {} random features", settings.features.count)));
    }
    let weights = tensors.columns("weights", Some((rows, columns)))?;
    let (kernel, mean, noise) = parts::<T>(header).map_err(|e| tensors.corrupt(e))?;
    let progress = Progress {
        step: summary.steps,
        steps_planned: settings.budget.steps,
        elapsed: Duration::from_secs_f64(summary.seconds[1].clamp(0.0, 1e9)),
        residual: summary.residual,
        step_size: summary.step_size,
        restarts: summary.restarts,
        ..Progress::default()
    };
    let reason = summary.ended.parse().unwrap_or(Reason::Steps);
    let model = PathwiseModel { kernel, mean, noise };
    let solution = Solution { weights, reason, progress };
    let posterior = PathwisePosterior::from_parts(model, data, support, settings, solution);
    Ok(T::posterior(posterior.map_err(|e| tensors.corrupt(e))?))
}

fn read_inducing(
    header: &Header,
    summary: &ScalableSummary,
    tensors: &mut Tensors,
) -> Result<ProcessPosterior, StoreError> {
    let m = summary.inducing;
    let z = tensors.matrix("inducing_inputs", m, header.schema.features.len())?;
    let factor = Cholesky::from_factor(tensors.factor("factor", m)?, header.cholesky);
    let root = tensors.factor("inducing_root_0", m)?;
    let means = tensors.matrix("inducing_means", m, 1)?;
    let (kernel, mean, noise) = parts::<f64>(header).map_err(|e| tensors.corrupt(e))?;
    let distribution = InducingDistribution::new(means, vec![root]).map_err(|e| tensors.corrupt(e))?;
    let posterior = InducingPosterior::from_parts(kernel, mean, Box::new(noise), z, factor, distribution);
    Ok(ProcessPosterior::Inducing(posterior.map_err(|e| tensors.corrupt(e))?))
}
