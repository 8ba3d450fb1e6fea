//! **Embeddings that are learned**: a map of rows to a few numbers, on which a kernel acts.
//!
//! A network is one (in `tangent`); an exact process behind one (in `gp`) knows no more of it than this.

use crate::LinearError;
use faer::{Mat, MatRef};

/// A map of rows (D numbers each) to h numbers, with parameters of its own.
pub trait Embedding: Send + Sync + std::fmt::Debug {
    /// D.
    fn inputs(&self) -> usize;

    /// h.
    fn width(&self) -> usize;

    /// Its parameters, as numbers without constraints; all of them are weights, which weight decay pulls to zero.
    fn unconstrained(&self) -> Vec<f64>;

    /// Takes parameters.
    ///
    /// # Panics
    /// When there are not as many as [`Self::unconstrained`] gives.
    fn set_unconstrained(&mut self, numbers: &[f64]);

    /// Rows that are best worked on at a time.
    fn rows_at_once(&self) -> usize;

    /// Bytes that [`Self::at`] keeps of each row.
    fn bytes_of_row(&self) -> usize;

    /// What becomes of the rows of x (b x D): b x h. Any number of rows, some at a time.
    ///
    /// # Errors
    /// [`LinearError::Shape`] for rows of another width; what the map itself may refuse.
    fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError>;

    /// The same of rows at a time, with what the way back needs.
    ///
    /// # Errors
    /// As [`Self::embedded`].
    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn EmbeddedAt + 'a>, LinearError>;

    /// A copy in a box.
    fn clone_box(&self) -> Box<dyn Embedding>;

    /// Itself, for who knows which map it is and saves it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// What became of some rows, with the way back.
pub trait EmbeddedAt {
    /// b x h.
    fn embedded(&self) -> MatRef<'_, f64>;

    /// Adds to `gradient` (one number for each parameter) what slopes in the embedding (b x h) say.
    ///
    /// # Errors
    /// Whatever the map itself may refuse.
    fn pull_back(&self, slopes: MatRef<'_, f64>, gradient: &mut [f64]) -> Result<(), LinearError>;

    /// What slopes in the embedding (b x h) say of the rows, b x D.
    ///
    /// # Errors
    /// Whatever the map itself may refuse.
    fn pull_back_inputs(&self, slopes: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError>;
}
