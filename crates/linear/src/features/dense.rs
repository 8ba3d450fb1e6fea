//! A stored feature matrix.

use super::{FeatureMap, Linearised};
use crate::curvature::Roots;
use crate::{LinearError, check};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::dense::product;
use std::ops::Range;

/// The features of `n` examples as one matrix of nC x d, and the model's outputs for zero weights, or at an expansion point. A batch is a range of examples.
#[derive(Clone, Debug)]
pub struct DenseFeatures {
    matrix: Mat<f64>,
    outputs: usize,
    offset: Option<Vec<f64>>,
    expansion_point: Option<Vec<f64>>,
}

impl DenseFeatures {
    /// Features of `matrix.nrows() / outputs` examples; rows are ordered example by example.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without columns or outputs, [`LinearError::Shape`] when the rows are no multiple of `outputs`,
    /// [`LinearError::NotFinite`].
    pub fn new(matrix: Mat<f64>, outputs: usize) -> Result<Self, LinearError> {
        if outputs == 0 {
            return Err(LinearError::Empty { what: "outputs" });
        }
        if matrix.ncols() == 0 {
            return Err(LinearError::Empty { what: "parameters" });
        }
        let whole = matrix.nrows() / outputs * outputs;
        check::same("rows of the feature matrix, a multiple of the outputs", whole, matrix.nrows())?;
        check::finite_matrix("feature", matrix.as_ref())?;
        Ok(Self { matrix, outputs, offset: None, expansion_point: None })
    }

    /// The same model with an offset: one number for each row.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn with_offset(self, offset: Vec<f64>) -> Result<Self, LinearError> {
        check::same("numbers in the offset", self.matrix.nrows(), offset.len())?;
        check::finite("offset", &offset)?;
        Ok(Self { offset: Some(offset), ..self })
    }

    /// The same model around weights `v` (d): the offset is what it says there, `g + Phi (w - v)`.
    ///
    /// # Errors
    /// [`LinearError::Shape`], [`LinearError::NotFinite`].
    pub fn with_expansion_point(self, weights: Vec<f64>) -> Result<Self, LinearError> {
        check::same("weights", self.matrix.ncols(), weights.len())?;
        check::finite("weight of the expansion point", &weights)?;
        Ok(Self { expansion_point: Some(weights), ..self })
    }

    /// The whole matrix, nC x d.
    pub fn whole(&self) -> MatRef<'_, f64> {
        self.matrix.as_ref()
    }

    /// Number of examples stored.
    pub fn stored(&self) -> usize {
        self.matrix.nrows() / self.outputs
    }
}

impl FeatureMap<f64> for DenseFeatures {
    type Inputs = Range<usize>;

    fn dimension(&self) -> usize {
        self.matrix.ncols()
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn expansion_point(&self) -> Option<&[f64]> {
        self.expansion_point.as_deref()
    }

    fn examples_at_once(&self, _vectors: usize) -> usize {
        1024
    }

    fn at<'a>(&'a self, inputs: Range<usize>) -> Result<Box<dyn Linearised<f64> + 'a>, LinearError> {
        if inputs.end > self.stored() {
            let (expected, found) = (self.stored(), inputs.end);
            return Err(LinearError::Shape { what: "examples stored", expected, found });
        }
        let (start, rows) = (inputs.start * self.outputs, inputs.len() * self.outputs);
        let offset = self.offset.as_ref().map(|offset| &offset[start..start + rows]);
        Ok(Box::new(Rows {
            matrix: self.matrix.as_ref().subrows(start, rows),
            outputs: self.outputs,
            offset,
        }))
    }
}

/// The features of neighbouring examples.
struct Rows<'a> {
    matrix: MatRef<'a, f64>,
    outputs: usize,
    offset: Option<&'a [f64]>,
}

impl Linearised<f64> for Rows<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.matrix.nrows() / self.outputs, self.outputs)
    }

    fn outputs(&self) -> Vec<f64> {
        self.offset.map_or_else(|| vec![0.0; self.matrix.nrows()], <[f64]>::to_vec)
    }

    /// Cost `2nCdk` flops.
    fn apply(&self, weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the weights", self.matrix.ncols(), weights.nrows())?;
        Ok(product(self.matrix, weights))
    }

    /// Cost `2nCdk` flops.
    fn apply_transpose(&self, u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the cotangents", self.matrix.nrows(), u.nrows())?;
        Ok(self.matrix.transpose() * u)
    }

    /// Cost `2nCk` flops for each weight and k directions.
    fn rows(
        &self,
        along: Option<&Roots<f64>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, f64>),
    ) -> Result<(), LinearError> {
        check::same("weights, at most", self.matrix.ncols().max(weights.end), self.matrix.ncols())?;
        let own = self.matrix.subcols(weights.start, weights.len());
        let examples = self.shape().0;
        let Some(along) = along else {
            visit(0..examples, own);
            return Ok(());
        };
        let rows = combined(own, self.outputs, along)?;
        visit(0..examples, rows.as_ref());
        Ok(())
    }
}

/// Rows `R' Phi` of stored rows `Phi` (nC x d) for directions R of each example. Cost `2nCd` flops for each direction of an example.
pub(super) fn combined<T: Real>(
    rows: MatRef<'_, T>,
    outputs: usize,
    along: &Roots<T>,
) -> Result<Mat<T>, LinearError> {
    let (examples, width) = (rows.nrows() / outputs, along.width);
    check::same("numbers in the directions", examples * width * outputs, along.values.len())?;
    let mut out = Mat::zeros(examples * width, rows.ncols());
    for (i, root) in along.values.chunks_exact(width * outputs).enumerate() {
        let root = MatRef::from_row_major_slice(root, width, outputs);
        let own = product(root, rows.subrows(i * outputs, outputs));
        out.subrows_mut(i * width, width).copy_from(own);
    }
    Ok(out)
}
