//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::scalable::file::{inducing_tensors, pathwise_tensors};
use super::{Container, Header, Model, ModelFileError, ProcessPosterior, Tensor};
use faer::{Mat, MatRef};
use posterior_data::RowFingerprints;
use posterior_gp::Observations;
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::Cholesky;
use posterior_optim::Parameters;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Model {
    /// Writes the file in one atomic step. Its size is about `4n² + 8n(D + 4)` bytes for the exact method: the packed factor, inputs, targets, weights, fingerprints;
    /// `8n(D + 1)` and the weights of mean and samples for iterative ones; `8m²` for bounds; each with `8n` for the fingerprints of the rows.
    ///
    /// # Errors
    /// [`ModelFileError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), ModelFileError> {
        let mut tensors = match &*self.posterior {
            ProcessPosterior::Exact(posterior) => exact_tensors(posterior),
            ProcessPosterior::Single(posterior) => pathwise_tensors(posterior),
            ProcessPosterior::Double(posterior) => pathwise_tensors(posterior),
            ProcessPosterior::Inducing(posterior) => inducing_tensors(posterior),
        };
        add_fingerprints(self.fingerprints.as_deref(), &mut tensors);
        Container { header: self.header.clone(), tensors }.write(path)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`ModelFileError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, ModelFileError> {
        Self::from_container(Container::<Header>::read(path)?, path)
    }

    /// As [`Model::load`] for bytes in memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ModelFileError> {
        Self::from_container(Container::<Header>::parse(bytes, path)?, path)
    }

    pub(crate) fn from_container(
        mut container: Container<Header>,
        path: &Path,
    ) -> Result<Self, ModelFileError> {
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        let header = container.header.clone();
        let (n, d) = (header.rows, header.schema.features.len());
        let standard = &header.standardisation;
        let fingerprints = fingerprints(&mut container, path)?;
        if header.input_ranges.iter().flat_map(|r| &r.0).any(|range| range.input >= d) {
            return Err(corrupt("its ranges do not fit its features".into()));
        }
        let positive = standard.feature_scales.iter().chain([&standard.target_scale]).all(|s| *s > 0.0);
        if standard.feature_means.len() != d || standard.feature_scales.len() != d || !positive {
            return Err(corrupt("its standardisation does not fit its features".into()));
        }
        if header.method != "exact" {
            let Some(summary) = header.fit.scalable.clone() else {
                return Err(corrupt(format!("its method `{}` is not known", header.method)));
            };
            let posterior = super::scalable::file::read(&header, &summary, &mut container, path)?;
            return Ok(Self { header, posterior: Arc::new(posterior), fingerprints });
        }
        let packed =
            n.checked_mul(n + 1).map(|m| m / 2).ok_or_else(|| corrupt("its size overflows".into()))?;
        let inputs = matrix(&container.take("inputs", &[n, d], path)?, n, d);
        let targets = matrix(&container.take("targets", &[n, 1], path)?, n, 1);
        let weights = matrix(&container.take("weights", &[n, 1], path)?, n, 1);
        let factor = unpack(&container.take("factor", &[packed], path)?, n);
        let noise = match container.tensors.contains_key("noise_variances") {
            true => Some(container.take("noise_variances", &[n], path)?),
            false => None,
        };
        if (0..n).any(|i| factor[(i, i)] <= 0.0) {
            return Err(corrupt("the diagonal of its factor is not positive".into()));
        }
        let model = model(&header).map_err(corrupt)?;
        let data = Observations::new(inputs, targets, noise).map_err(|e| corrupt(e.to_string()))?;
        let cholesky = Cholesky::from_factor(factor, header.cholesky);
        let posterior =
            ExactPosterior::from_parts(model, data, cholesky, weights).map_err(|e| corrupt(e.to_string()))?;
        Ok(Self { header, posterior: Arc::new(ProcessPosterior::Exact(posterior)), fingerprints })
    }
}

/// The tensor of the fingerprints of training rows.
const FINGERPRINTS: &str = "row_fingerprints";

/// Adds the fingerprints of training rows, where they are known.
pub(crate) fn add_fingerprints(
    fingerprints: Option<&RowFingerprints>,
    tensors: &mut BTreeMap<String, Tensor>,
) {
    if let Some(fingerprints) = fingerprints {
        let numbers = fingerprints.to_numbers();
        tensors.insert(FINGERPRINTS.into(), Tensor::new(vec![numbers.len()], numbers));
    }
}

/// The fingerprints of the training rows, where the file has them.
pub(crate) fn fingerprints<H>(
    container: &mut Container<H>,
    path: &Path,
) -> Result<Option<Arc<RowFingerprints>>, ModelFileError> {
    let Some(shape) = container.tensors.get(FINGERPRINTS).map(|t| t.shape.clone()) else { return Ok(None) };
    let numbers = container.take(FINGERPRINTS, &shape, path)?;
    let found = RowFingerprints::from_numbers(&numbers).ok_or_else(|| ModelFileError::Corrupt {
        path: path.into(),
        reason: "its fingerprints of training rows are none".into(),
    })?;
    Ok(Some(Arc::new(found)))
}

/// The arrays of an exact posterior.
fn exact_tensors(posterior: &ExactPosterior) -> BTreeMap<String, Tensor> {
    let data = posterior.data();
    let mut tensors = BTreeMap::from([
        ("inputs".to_string(), matrix_tensor(data.inputs())),
        ("targets".to_string(), matrix_tensor(data.targets())),
        ("weights".to_string(), matrix_tensor(posterior.weights())),
        ("factor".to_string(), packed_tensor(posterior.cholesky().factor())),
    ]);
    if let Some(noise) = data.noise_variances() {
        tensors.insert("noise_variances".into(), Tensor::new(vec![noise.len()], noise.to_vec()));
    }
    tensors
}

/// The process that the header describes, with its hyperparameters.
fn model(header: &Header) -> Result<ExactGp, String> {
    let names = header.schema.feature_names();
    let kernel = header.kernel.build(&names).map_err(|e| e.to_string())?;
    let noise = header.hyperparameter("noise_variance").and_then(|v| v.first().copied()).unwrap_or_default();
    let floor = header.noise_floor;
    if !(floor >= 0.0 && noise > floor && noise.is_finite()) {
        return Err(format!("its noise variance {noise} is not above its floor {floor}"));
    }
    let mut model = ExactGp::new(kernel, header.mean, Gaussian::new(noise, floor), names.len(), 1);
    let segments = model.segments();
    let expected: Vec<(&str, usize)> = segments.iter().map(|s| (s.name.as_str(), s.len())).collect();
    let found: Vec<(&str, usize)> =
        header.hyperparameters.iter().map(|h| (h.name.as_str(), h.values.len())).collect();
    if expected != found {
        return Err(format!("its hyperparameters {found:?} are not those of its kernel, {expected:?}"));
    }
    let values: Vec<f64> = header.hyperparameters.iter().flat_map(|h| h.values.iter().copied()).collect();
    let positive = |name: &str| !name.starts_with("mean.");
    if header
        .hyperparameters
        .iter()
        .any(|h| h.values.iter().any(|v| !v.is_finite() || (positive(&h.name) && *v <= 0.0)))
    {
        return Err("a hyperparameter is not a positive finite number".into());
    }
    model.set_values(&values);
    Ok(model)
}

pub(crate) fn matrix_tensor(m: MatRef<'_, f64>) -> Tensor {
    let values: Vec<f64> =
        (0..m.nrows()).flat_map(|i| m.row(i).iter().copied().collect::<Vec<_>>()).collect();
    Tensor::new(vec![m.nrows(), m.ncols()], values)
}

pub(crate) fn matrix(values: &[f64], rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| values[i * columns + j])
}

/// The lower triangle, column after column.
pub(crate) fn packed_tensor(factor: MatRef<'_, f64>) -> Tensor {
    let n = factor.nrows();
    let mut values = Vec::with_capacity(n * (n + 1) / 2);
    (0..n).for_each(|j| values.extend(factor.col(j).subrows(j, n - j).iter().copied()));
    Tensor::new(vec![values.len()], values)
}

pub(crate) fn unpack(values: &[f64], n: usize) -> Mat<f64> {
    let mut out = Mat::zeros(n, n);
    let mut rest = values;
    for j in 0..n {
        let (column, others) = rest.split_at(n - j);
        for (i, &v) in column.iter().enumerate() {
            out[(j + i, j)] = v;
        }
        rest = others;
    }
    out
}
