//! What angles see.

use posterior_linalg::operator::LinearOperator;

/// A scanner that can look at its angles one by one: T in blocks of rows.
pub trait Scanner: Send + Sync {
    /// Pixels of a picture.
    fn pixels(&self) -> usize;

    /// Angles.
    fn angles(&self) -> usize;

    /// Measurements of one angle.
    fn per_angle(&self) -> usize;

    /// T of some angles, in the order given: row `i per_angle + l` belongs to detector element l at the i-th of them.
    ///
    /// # Panics
    /// When there is no such angle.
    fn at<'a>(&'a self, angles: &[usize]) -> Box<dyn LinearOperator<f64> + 'a>;
}
