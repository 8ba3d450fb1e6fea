//! Weights to tensors and back: nothing is solved again on loading, so predictions are equal to the last bit.

use super::{ScalableSummary, Solver, SolverPrecision};
use crate::model::file::{matrix, matrix_tensor, packed_tensor, unpack};
use crate::model::{Container, Header, ModelFileError, ProcessPosterior, Tensor};
use crate::options::KernelPrecision;
use faer::Mat;
use posterior_gp::inducing::{InducingDistribution, InducingPosterior};
use posterior_gp::iterative::{PathwiseModel, PathwisePosterior, Solution, Support};
use posterior_gp::{Mean, Observations};
use posterior_kernels::Kernel;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};
use posterior_optim::Parameters;
use posterior_optim::{Progress, Reason};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The arrays of an iterative posterior.
pub(in crate::model) fn pathwise_tensors<T: SolverPrecision>(
    posterior: &PathwisePosterior<T>,
) -> BTreeMap<String, Tensor> {
    let data = posterior.data();
    let mut tensors = BTreeMap::from([
        ("inputs".to_string(), matrix_tensor(data.inputs())),
        ("targets".to_string(), matrix_tensor(data.targets())),
        ("weights".to_string(), T::tensor(posterior.solution().weights.as_ref())),
    ]);
    if let Some(noise) = data.noise_variances() {
        tensors.insert("noise_variances".into(), Tensor::new(vec![noise.len()], noise.to_vec()));
    }
    if let Support::Inducing(z, _) = posterior.support() {
        tensors.insert("inducing_inputs".into(), matrix_tensor(z.as_ref()));
    }
    tensors
}

/// The arrays of an inducing-point posterior: nothing of the data.
pub(in crate::model) fn inducing_tensors(posterior: &InducingPosterior) -> BTreeMap<String, Tensor> {
    let q = posterior.distribution();
    let mut tensors = BTreeMap::from([
        ("inducing_inputs".to_string(), matrix_tensor(posterior.inducing())),
        ("factor".to_string(), packed_tensor(posterior.factor().factor())),
        ("inducing_means".to_string(), matrix_tensor(q.mean())),
    ]);
    for (i, root) in q.roots().iter().enumerate() {
        tensors.insert(format!("inducing_root_{i}"), packed_tensor(root.as_ref()));
    }
    tensors
}

/// The posterior that a header and its arrays describe.
pub(in crate::model) fn read(
    header: &Header,
    summary: &ScalableSummary,
    container: &mut Container<Header>,
    path: &Path,
) -> Result<ProcessPosterior, ModelFileError> {
    match (&summary.solver, summary.precision) {
        (Solver::Collapsed | Solver::Stochastic { .. }, _) => read_inducing(header, summary, container, path),
        (_, KernelPrecision::Single) => read_pathwise::<f32>(header, summary, container, path),
        (_, KernelPrecision::Double) => read_pathwise::<f64>(header, summary, container, path),
    }
}

/// Kernel, mean and noise.
type Parts<T> = (Box<dyn Kernel<T>>, Mean, Gaussian);

/// The parts with the values of the header.
fn parts<T: SolverPrecision>(header: &Header) -> Result<Parts<T>, String> {
    let names = header.schema.feature_names();
    let mut kernel = header.kernel.build::<T>(&names).map_err(|e| e.to_string())?;
    let mut mean = Mean::new(header.mean, names.len(), 1);
    let positive = header.hyperparameters.iter().filter(|h| !h.name.starts_with("mean."));
    if positive.flat_map(|h| &h.values).any(|v| !(v.is_finite() && *v > 0.0)) {
        return Err("a hyperparameter is not a positive finite number".into());
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
    container: &mut Container<Header>,
    path: &Path,
) -> Result<ProcessPosterior, ModelFileError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let Some(settings) = summary.settings.clone() else {
        return Err(corrupt("its solver has no settings".into()));
    };
    let (n, d) = (header.rows, header.schema.features.len());
    let inputs = matrix(&container.take("inputs", &[n, d], path)?, n, d);
    let targets = matrix(&container.take("targets", &[n, 1], path)?, n, 1);
    let noise = match container.tensors.contains_key("noise_variances") {
        true => Some(container.take("noise_variances", &[n], path)?),
        false => None,
    };
    let (rows, support) = match &summary.solver {
        Solver::Inducing(options) => {
            let m = summary.inducing;
            let z = matrix(&container.take("inducing_inputs", &[m, d], path)?, m, d);
            (m, Support::Inducing(z, options.clone()))
        }
        Solver::Rows(method) => (n, Support::Rows(method.clone())),
        Solver::Collapsed | Solver::Stochastic { .. } => return Err(corrupt("its solver is none".into())),
    };
    let columns = settings.samples.checked_add(1).ok_or_else(|| corrupt("its size overflows".into()))?;
    // Features are drawn anew: their number is a declared size like any other.
    if settings.features.count > 10_000_000 {
        return Err(corrupt(format!("it claims {} random features", settings.features.count)));
    }
    let weights = T::matrix(container.take_any("weights", &[columns, rows], path)?, rows, columns)
        .ok_or_else(|| corrupt("its weights are in another precision".into()))?;
    let (kernel, mean, noise_model) = parts::<T>(header).map_err(corrupt)?;
    let data = Observations::new(inputs, targets, noise).map_err(|e| corrupt(e.to_string()))?;
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
    let model = PathwiseModel { kernel, mean, noise: noise_model };
    let solution = Solution { weights, reason, progress };
    let posterior = PathwisePosterior::from_parts(model, data, support, settings, solution)
        .map_err(|e| corrupt(e.to_string()))?;
    Ok(T::posterior(posterior))
}

fn read_inducing(
    header: &Header,
    summary: &ScalableSummary,
    container: &mut Container<Header>,
    path: &Path,
) -> Result<ProcessPosterior, ModelFileError> {
    let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
    let (m, d) = (summary.inducing, header.schema.features.len());
    let packed = m.checked_mul(m + 1).map(|p| p / 2).ok_or_else(|| corrupt("its size overflows".into()))?;
    let z = matrix(&container.take("inducing_inputs", &[m, d], path)?, m, d);
    let mut triangle = |name: &str| -> Result<Mat<f64>, ModelFileError> {
        let matrix = unpack(&container.take(name, &[packed], path)?, m);
        if (0..m).any(|i| matrix[(i, i)] <= 0.0) {
            return Err(corrupt(format!("the diagonal of `{name}` is not positive")));
        }
        Ok(matrix)
    };
    let (factor, root) = (triangle("factor")?, triangle("inducing_root_0")?);
    let means = matrix(&container.take("inducing_means", &[m, 1], path)?, m, 1);
    let (kernel, mean, noise) = parts::<f64>(header).map_err(corrupt)?;
    let wrong = |e: posterior_gp::GpError| corrupt(e.to_string());
    let distribution = InducingDistribution::new(means, vec![root]).map_err(wrong)?;
    let info: CholeskyInfo = header.cholesky;
    let posterior = InducingPosterior::from_parts(
        kernel,
        mean,
        Box::new(noise),
        z,
        Cholesky::from_factor(factor, info),
        distribution,
    )
    .map_err(wrong)?;
    Ok(ProcessPosterior::Inducing(posterior))
}
