//! The kernel between observed directions, by products.

use super::model::{SampledModel, add};
use crate::LinearError;
use crate::curvature::OutputCurvature;
use crate::features::FeatureMap;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{
    LinearOperator, RowAccess, check_apply, check_apply_transpose, check_principal,
};
use posterior_linalg::symmetric::mirror_lower;
use posterior_optim::Signal;
use std::sync::Mutex;

/// `R' Phi Phi' R` (scaled features), n S x n S for roots `R_i` of S columns, row `i S + s` belonging to column s at example i: what solvers in function space ask of a kernel matrix, without storing it.
///
/// A product goes through the weights: one pass with products back and one with products forward, whatever the number of weights. Rows cost the first pass over all examples and the second over theirs only. The
/// other way round, a stored matrix has cheap rows. Source: spec `linearised_laplace`, section 5.11.
///
/// Operators cannot fail; what fails in a product is kept for [`Self::failure`], and the product is NaN.
pub struct ObservedKernel<'a, T: Real, F: FeatureMap<T>> {
    model: &'a SampledModel<'a, T, F>,
    diagonal: Vec<f64>,
    failed: Mutex<Option<LinearError>>,
}

impl<'a, T: Real, F: FeatureMap<T>> ObservedKernel<'a, T, F> {
    /// Of a model. Cost: rows of the features along all roots, for the diagonal.
    ///
    /// # Errors
    /// Those of the features and of reading the data.
    pub fn new(model: &'a SampledModel<'a, T, F>) -> Result<Self, LinearError> {
        let (d, width) = (model.dimension(), model.likelihood().root_width());
        let mut diagonal = Vec::with_capacity(model.examples() * width);
        let at_once = model.features().examples_at_once(width);
        model.pass(at_once, None, &mut |_, _| Signal::Continue, &mut |_, features, observed| {
            features.rows(Some(&observed.roots()?), 0..d, &mut |_, rows| {
                for row in rows.row_iter() {
                    let scale = |j: usize| model.scales().map_or(1.0, |s| s[j]);
                    diagonal.push(row.iter().enumerate().map(|(j, v)| (scale(j) * v.to_f64()).powi(2)).sum());
                }
            })
        })?;
        Ok(Self { model, diagonal, failed: Mutex::new(None) })
    }

    /// What failed in a product, once.
    ///
    /// # Errors
    /// That.
    pub fn failure(&self) -> Result<(), LinearError> {
        let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }

    fn width(&self) -> usize {
        self.model.likelihood().root_width()
    }

    /// Writes a product, or NaN.
    fn deliver(&self, product: Result<Mat<f64>, LinearError>, mut output: MatMut<'_, f64>) {
        match product {
            Ok(product) => output.copy_from(product),
            Err(error) => {
                output.fill(f64::NAN);
                let mut failed = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
    }

    /// Rows of the kernel times a block that is zero beyond some rows.
    fn between(
        &self,
        rows: Option<&[usize]>,
        columns: Option<&[usize]>,
        input: MatRef<'_, f64>,
    ) -> Result<Mat<f64>, LinearError> {
        let pulled = match columns {
            None => pull(self.model, None, input)?,
            Some(columns) => {
                let (examples, spread) = self.spread(columns, input);
                pull(self.model, Some(&examples), spread.as_ref())?
            }
        };
        match rows {
            None => push(self.model, None, pulled.as_ref()),
            Some(rows) => {
                let examples = self.examples_of(rows);
                let whole = push(self.model, Some(&examples), pulled.as_ref())?;
                let width = self.width();
                Ok(Mat::from_fn(rows.len(), input.ncols(), |i, j| {
                    let place = examples.partition_point(|e| *e < rows[i] / width);
                    whole[(place * width + rows[i] % width, j)]
                }))
            }
        }
    }

    /// The examples of some rows, ascending.
    fn examples_of(&self, rows: &[usize]) -> Vec<usize> {
        let mut examples: Vec<usize> = rows.iter().map(|r| r / self.width()).collect();
        examples.sort_unstable();
        examples.dedup();
        examples
    }

    /// A block of some rows (which may occur twice) as one of all rows of their examples.
    fn spread(&self, rows: &[usize], input: MatRef<'_, f64>) -> (Vec<usize>, Mat<f64>) {
        let (examples, width) = (self.examples_of(rows), self.width());
        let mut out = Mat::zeros(examples.len() * width, input.ncols());
        for (i, row) in rows.iter().enumerate() {
            let place = examples.partition_point(|e| *e < row / width) * width + row % width;
            (0..input.ncols()).for_each(|j| out[(place, j)] += input[(i, j)]);
        }
        (examples, out)
    }
}

/// Along what outputs are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// The roots `R_i` of the curvature.
    Roots,
    /// Each output.
    Outputs,
}

/// `diag(s) sum_i Phi_i' R_i u_i` (d x k) over all examples or some, `u` of examples S x k.
///
/// # Errors
/// Those of the features and of reading the data.
pub fn pull<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    chosen: Option<&[usize]>,
    u: MatRef<'_, f64>,
) -> Result<Mat<f64>, LinearError> {
    pull_along(model, Along::Roots, chosen, u)
}

/// The same along roots or outputs.
pub(super) fn pull_along<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    along: Along,
    chosen: Option<&[usize]>,
    u: MatRef<'_, f64>,
) -> Result<Mat<f64>, LinearError> {
    let (k, width, c) = (u.ncols(), along.width(model), model.likelihood().outputs());
    let (mut sum, mut start) = (Mat::zeros(model.dimension(), k), 0);
    let at_once = model.features().examples_at_once(k);
    model.pass(at_once, chosen, &mut |_, _| Signal::Continue, &mut |numbers, features, observed| {
        let mut cotangents = Mat::<T>::zeros(numbers.len() * c, k);
        along.each(observed, numbers.len(), |i, root| {
            for j in 0..k {
                for o in 0..c {
                    let own = root[o * width..(o + 1) * width].iter().enumerate();
                    let value = own.map(|(s, r)| r * u[((start + i) * width + s, j)]).sum::<f64>();
                    cotangents[(i * c + o, j)] = T::from_f64(value);
                }
            }
        });
        add(&mut sum, &features.apply_transpose(cotangents.as_ref())?);
        start += numbers.len();
        Ok(())
    })?;
    model.scale(&mut sum);
    Ok(sum)
}

/// `R_i' Phi_i diag(s) z` (examples S x k) over all examples or some.
///
/// # Errors
/// Those of the features and of reading the data.
pub fn push<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    chosen: Option<&[usize]>,
    z: MatRef<'_, f64>,
) -> Result<Mat<f64>, LinearError> {
    push_along(model, Along::Roots, chosen, z)
}

/// The same along roots or outputs.
pub(super) fn push_along<T: Real, F: FeatureMap<T>>(
    model: &SampledModel<'_, T, F>,
    along: Along,
    chosen: Option<&[usize]>,
    z: MatRef<'_, f64>,
) -> Result<Mat<f64>, LinearError> {
    let (k, width, c) = (z.ncols(), along.width(model), model.likelihood().outputs());
    let count = chosen.map_or(model.examples(), <[usize]>::len);
    let (z, mut out, mut start) = (model.rounded(z), Mat::zeros(count * width, k), 0);
    let at_once = model.features().examples_at_once(k);
    model.pass(at_once, chosen, &mut |_, _| Signal::Continue, &mut |numbers, features, observed| {
        let tangents = features.apply(z.as_ref())?;
        along.each(observed, numbers.len(), |i, root| {
            for j in 0..k {
                for s in 0..width {
                    let value = (0..c).map(|o| root[o * width + s] * tangents[(i * c + o, j)].to_f64());
                    out[((start + i) * width + s, j)] = value.sum();
                }
            }
        });
        start += numbers.len();
        Ok(())
    })?;
    Ok(out)
}

impl Along {
    fn width<T: Real, F: FeatureMap<T>>(self, model: &SampledModel<'_, T, F>) -> usize {
        match self {
            Self::Roots => model.likelihood().root_width(),
            Self::Outputs => model.likelihood().outputs(),
        }
    }

    /// Calls `visit(i, R_i)` with the root (C x S, row by row), or the identity, of each example.
    fn each(self, observed: &OutputCurvature<'_>, examples: usize, mut visit: impl FnMut(usize, &[f64])) {
        let likelihood = observed.likelihood;
        let c = likelihood.outputs();
        if self == Self::Outputs {
            let identity: Vec<f64> = (0..c * c).map(|k| f64::from(k % (c + 1) == 0)).collect();
            return (0..examples).for_each(|i| visit(i, &identity));
        }
        let mut root = vec![0.0; c * likelihood.root_width()];
        for i in 0..examples {
            likelihood.root(observed.target(i), observed.output(i), &mut root);
            visit(i, &root);
        }
    }
}

impl<T: Real, F: FeatureMap<T>> LinearOperator<f64> for ObservedKernel<'_, T, F> {
    fn shape(&self) -> (usize, usize) {
        (self.diagonal.len(), self.diagonal.len())
    }

    fn apply(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply(self.shape(), input, &output);
        self.deliver(self.between(None, None, input), output);
    }

    fn apply_transpose(&self, input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        self.apply(input, output);
    }
}

impl<T: Real, F: FeatureMap<T>> RowAccess<f64> for ObservedKernel<'_, T, F> {
    fn diagonal(&self) -> Vec<f64> {
        self.diagonal.clone()
    }

    fn apply_rows(&self, rows: &[usize], input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply((rows.len(), self.shape().0), input, &output);
        self.deliver(self.between(Some(rows), None, input), output);
    }

    fn apply_columns(&self, columns: &[usize], input: MatRef<'_, f64>, output: MatMut<'_, f64>) {
        check_apply_transpose((columns.len(), self.shape().0), input, &output);
        self.deliver(self.between(None, Some(columns), input), output);
    }

    fn columns_into(&self, columns: &[usize], output: MatMut<'_, f64>) {
        let own = Mat::<f64>::identity(columns.len(), columns.len());
        self.apply_columns(columns, own.as_ref(), output);
    }

    fn principal_into(&self, rows: &[usize], mut output: MatMut<'_, f64>) {
        check_principal(self.shape().0, rows, &output);
        let own = Mat::<f64>::identity(rows.len(), rows.len());
        self.deliver(self.between(Some(rows), Some(rows), own.as_ref()), output.as_mut());
        mirror_lower(output);
    }
}
