//! `T phi` as a feature map.

use super::tangent::ImageTangent;
use crate::TomographyError;
use faer::{Mat, MatRef};
use posterior_linalg::operator::LinearOperator;
use posterior_linear::curvature::Roots;
use posterior_linear::{FeatureMap, LinearError, Linearised};
use posterior_networks::Precision;
use std::ops::Range;

/// The linear model of the measurements, `T g(v) + T phi (w - v)`: each measurement is an example with one output, known by its number.
///
/// All measurements at once cost what one does, but for the projection: products go through the whole picture. So batches are whole.
pub struct MeasuredTangent<'a, T: Precision> {
    tangent: &'a ImageTangent<'a, T>,
    projector: &'a dyn LinearOperator<f64>,
    outputs: Vec<f64>,
    trained: Vec<f64>,
}

impl<'a, T: Precision> MeasuredTangent<'a, T> {
    /// Of a picture's tangent behind a projector (c x pixels).
    ///
    /// # Errors
    /// [`TomographyError::Shape`] when the picture is not the projector's.
    pub fn new(
        tangent: &'a ImageTangent<'a, T>,
        projector: &'a dyn LinearOperator<f64>,
    ) -> Result<Self, TomographyError> {
        let picture = tangent.picture();
        crate::error::same_count("pixels of the picture", projector.shape().1, picture.len())?;
        let outputs = projector.multiply(MatRef::from_column_major_slice(&picture, picture.len(), 1));
        Ok(Self { tangent, projector, outputs: outputs.col_as_slice(0).to_vec(), trained: tangent.weights() })
    }

    /// Measurements, c.
    pub fn measurements(&self) -> usize {
        self.outputs.len()
    }

    /// `T g(v)` (c).
    pub fn measured_picture(&self) -> &[f64] {
        &self.outputs
    }

    /// The tangent of the picture.
    pub fn tangent(&self) -> &'a ImageTangent<'a, T> {
        self.tangent
    }

    /// T.
    pub fn projector(&self) -> &'a dyn LinearOperator<f64> {
        self.projector
    }

    /// `y~ = y + T (phi v - g(v))` (c) for measurements y: what the linear model without offset explains. Cost: a product forward.
    ///
    /// # Errors
    /// [`TomographyError::Shape`] for another number of measurements.
    pub fn linear_targets(&self, sinogram: &[f64]) -> Result<Vec<f64>, TomographyError> {
        crate::error::same_count("measurements", self.measurements(), sinogram.len())?;
        let trained = MatRef::from_column_major_slice(&self.trained, self.trained.len(), 1);
        let moved = self.projector.multiply(self.tangent.multiply(trained).as_ref());
        let each = sinogram.iter().zip(moved.col_as_slice(0)).zip(&self.outputs);
        Ok(each.map(|((y, phi), g)| y + phi - g).collect())
    }
}

impl<T: Precision> FeatureMap<T> for MeasuredTangent<'_, T> {
    /// Numbers of measurements.
    type Inputs = Range<usize>;

    fn dimension(&self) -> usize {
        self.trained.len()
    }

    fn outputs(&self) -> usize {
        1
    }

    fn expansion_point(&self) -> Option<&[f64]> {
        Some(&self.trained)
    }

    fn examples_at_once(&self, _vectors: usize) -> usize {
        self.measurements()
    }

    fn at<'a>(&'a self, inputs: Range<usize>) -> Result<Box<dyn Linearised<T> + 'a>, LinearError> {
        if inputs.end > self.measurements() {
            let (expected, found) = (self.measurements(), inputs.end);
            return Err(LinearError::Shape { what: "measurements", expected, found });
        }
        Ok(Box::new(Rows { map: self, range: inputs }))
    }
}

/// Some measurements.
struct Rows<'a, T: Precision> {
    map: &'a MeasuredTangent<'a, T>,
    range: Range<usize>,
}

impl<T: Precision> Rows<'_, T> {
    /// Back-projections (pixels x k) of directions in the range.
    fn spread(&self, k: usize, entry: impl Fn(usize, usize) -> f64) -> Mat<f64> {
        let mut directions = Mat::zeros(self.map.measurements(), k);
        for j in 0..k {
            (0..self.range.len()).for_each(|i| directions[(self.range.start + i, j)] = entry(i, j));
        }
        self.map.projector.multiply_transpose(directions.as_ref())
    }
}

impl<T: Precision> Linearised<T> for Rows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.range.len(), 1)
    }

    fn outputs(&self) -> Vec<f64> {
        self.map.outputs[self.range.clone()].to_vec()
    }

    fn apply(&self, weights: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        let (d, k) = (self.map.dimension(), weights.ncols());
        if weights.nrows() != d {
            let (expected, found) = (d, weights.nrows());
            return Err(LinearError::Shape { what: "rows of the weights", expected, found });
        }
        let mut pictures = Mat::zeros(self.map.projector.shape().1, k);
        self.map.tangent.push(
            k,
            |i, j| weights[(i, j)],
            |j, own| {
                let place = pictures.col_as_slice_mut(j);
                place.iter_mut().zip(own).for_each(|(p, v)| *p = v.to_f64());
            },
        );
        let measured = self.map.projector.multiply(pictures.as_ref());
        let start = self.range.start;
        Ok(Mat::from_fn(self.range.len(), k, |i, j| T::from_f64(measured[(start + i, j)])))
    }

    fn apply_transpose(&self, u: MatRef<'_, T>) -> Result<Mat<T>, LinearError> {
        if u.nrows() != self.range.len() {
            let (expected, found) = (self.range.len(), u.nrows());
            return Err(LinearError::Shape { what: "rows of the cotangents", expected, found });
        }
        let pictures = self.spread(u.ncols(), |i, j| u[(i, j)].to_f64());
        Ok(self.map.tangent.rows(pictures.as_ref()))
    }

    /// A few at a time: one product back for each.
    fn rows(
        &self,
        along: Option<&Roots<T>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, T>),
    ) -> Result<(), LinearError> {
        let width = along.map_or(1, |roots| roots.width);
        let at_once = (self.map.tangent.at_once() / width.max(1)).max(1);
        for start in (0..self.range.len()).step_by(at_once) {
            let count = at_once.min(self.range.len() - start);
            let entry = |i: usize, j: usize| match along {
                _ if i != start + j / width => 0.0,
                Some(roots) => roots.values[start * width + j].to_f64(),
                None => 1.0,
            };
            let pictures = self.spread(count * width, entry);
            let rows = self.map.tangent.rows(pictures.as_ref());
            visit(start..start + count, rows.subrows(weights.start, weights.len()).transpose());
        }
        Ok(())
    }
}
