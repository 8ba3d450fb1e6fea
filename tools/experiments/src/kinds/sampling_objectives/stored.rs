//! The features of a classifier's images, stored: descents of many steps look at every image many times.

use crate::classifier::Classifier;
use crate::kinds::prelude::*;
use posterior_linalg::dense::product;
use posterior_linear::curvature::Roots;
use posterior_linear::features::{BatchSource, VisitPiece};
use posterior_linear::{FeatureMap, LinearError, Linearised};
use posterior_networks::train::Targets;
use posterior_tangent::Tangent;
use std::ops::Range;

/// Images whose rows are made or multiplied at once.
const AT_ONCE: usize = 128;

/// Rows of a network's Jacobian at all training images in the network's own precision, image by image, with its outputs there and the labels. A batch is a list of numbers, so that images that lie apart go through one product.
pub(super) struct Stored {
    dimension: usize,
    outputs: usize,
    /// nC x d, row by row.
    rows: Vec<f32>,
    /// nC.
    at: Vec<f64>,
    /// n.
    labels: Vec<f64>,
}

impl Stored {
    /// Of all training images. Cost: a row of the Jacobian for each output of each, and their memory.
    pub(super) fn of(classifier: &Classifier, context: &mut Context<'_>) -> Result<Self> {
        let tangent = Tangent::new(&classifier.network, &classifier.selection);
        let (n, d, c) = (classifier.train.len(), tangent.dimension(), classifier.classes());
        let mut out = Self {
            dimension: d,
            outputs: c,
            rows: Vec::with_capacity(n * c * d),
            at: Vec::with_capacity(n * c),
            labels: Vec::with_capacity(n),
        };
        for start in (0..n).step_by(AT_ONCE) {
            context.step("rows of the Jacobian", start, n)?;
            let numbers: Vec<usize> = (start..(start + AT_ONCE).min(n)).collect();
            let (images, labels) = classifier.train.batch(&numbers, None);
            let features = tangent.at(images)?;
            features.rows(None, 0..d, &mut |_, rows| {
                rows.row_iter().for_each(|row| out.rows.extend(row.iter()));
            })?;
            out.at.extend(features.outputs());
            if let Targets::Classes(labels) = labels {
                out.labels.extend(labels.into_iter().map(f64::from));
            }
        }
        Ok(out)
    }

    fn gathered<V: Copy>(values: &[V], numbers: &[usize], width: usize) -> Vec<V> {
        numbers.iter().flat_map(|&i| &values[i * width..(i + 1) * width]).copied().collect()
    }
}

impl BatchSource<Vec<usize>> for Stored {
    fn examples(&self) -> usize {
        self.labels.len()
    }

    fn batch(&self, range: Range<usize>) -> Result<(Vec<usize>, Vec<f64>), LinearError> {
        Ok((range.clone().collect(), self.labels[range].to_vec()))
    }

    fn picked(
        &self,
        examples: &[usize],
        at_once: usize,
        visit: &mut VisitPiece<'_, Vec<usize>>,
    ) -> Result<(), LinearError> {
        examples
            .chunks(at_once.max(1))
            .try_for_each(|piece| visit(piece, piece.to_vec(), &Self::gathered(&self.labels, piece, 1)))
    }
}

impl FeatureMap<f32> for Stored {
    type Inputs = Vec<usize>;

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn examples_at_once(&self, _vectors: usize) -> usize {
        AT_ONCE
    }

    fn at<'a>(&'a self, numbers: Vec<usize>) -> Result<Box<dyn Linearised<f32> + 'a>, LinearError> {
        Ok(Box::new(Gathered {
            dimension: self.dimension,
            outputs: self.outputs,
            rows: Self::gathered(&self.rows, &numbers, self.outputs * self.dimension),
            at: Self::gathered(&self.at, &numbers, self.outputs),
        }))
    }
}

/// The rows of some images.
struct Gathered {
    dimension: usize,
    outputs: usize,
    rows: Vec<f32>,
    at: Vec<f64>,
}

impl Gathered {
    fn matrix(&self) -> MatRef<'_, f32> {
        MatRef::from_row_major_slice(&self.rows, self.at.len(), self.dimension)
    }
}

/// Refuses a block of another height.
fn same(what: &'static str, expected: usize, found: usize) -> Result<(), LinearError> {
    if expected == found { Ok(()) } else { Err(LinearError::Shape { what, expected, found }) }
}

impl Linearised<f32> for Gathered {
    fn shape(&self) -> (usize, usize) {
        (self.at.len() / self.outputs, self.outputs)
    }

    fn outputs(&self) -> Vec<f64> {
        self.at.clone()
    }

    fn apply(&self, weights: MatRef<'_, f32>) -> Result<Mat<f32>, LinearError> {
        same("rows of the weights", self.dimension, weights.nrows())?;
        Ok(product(self.matrix(), weights))
    }

    fn apply_transpose(&self, u: MatRef<'_, f32>) -> Result<Mat<f32>, LinearError> {
        same("rows of the cotangents", self.at.len(), u.nrows())?;
        Ok(product(self.matrix().transpose(), u))
    }

    fn rows(
        &self,
        along: Option<&Roots<f32>>,
        weights: Range<usize>,
        visit: &mut dyn FnMut(Range<usize>, MatRef<'_, f32>),
    ) -> Result<(), LinearError> {
        let own = self.matrix().subcols(weights.start, weights.len());
        let (examples, c) = self.shape();
        let Some(along) = along else {
            visit(0..examples, own);
            return Ok(());
        };
        same("numbers in the directions", examples * along.width * c, along.values.len())?;
        for (i, root) in along.values.chunks_exact(along.width * c).enumerate() {
            let root = MatRef::from_row_major_slice(root, along.width, c);
            visit(i..i + 1, product(root, own.subrows(i * c, c)).as_ref());
        }
        Ok(())
    }
}
