//! What a design must know of a scanner.

use super::DesignError;
use crate::Projector;
use faer::Mat;
use posterior_linalg::operator::{Dense, LinearOperator};

/// The projector T of all angles that could be measured; rows are angle-major: `angle * per_angle + detector`.
pub trait Scanner: Sync {
    /// Columns of T, p.
    fn pixels(&self) -> usize;

    /// Angles that could be measured.
    fn angles(&self) -> usize;

    /// Rows of an angle.
    fn per_angle(&self) -> usize;

    /// T of some angles, in the order given: `(angles.len() * per_angle) x pixels`.
    ///
    /// # Panics
    /// When there is no such angle.
    fn at<'a>(&'a self, angles: &[usize]) -> Box<dyn LinearOperator<f64> + 'a>;
}

/// A stored projector, for small images.
#[derive(Clone, Debug)]
pub struct DenseScanner {
    matrix: Mat<f64>,
    angles: usize,
}

impl DenseScanner {
    /// Of all rows, angle-major.
    ///
    /// # Errors
    /// [`DesignError::Shape`] when the rows are not as many for each of the angles.
    pub fn new(matrix: Mat<f64>, angles: usize) -> Result<Self, DesignError> {
        let rows = matrix.nrows();
        if angles == 0 || !rows.is_multiple_of(angles) {
            let expected = rows.div_ceil(angles.max(1)) * angles;
            return Err(DesignError::Shape { what: "rows of all angles", expected, actual: rows });
        }
        Ok(Self { matrix, angles })
    }
}

impl Scanner for DenseScanner {
    fn pixels(&self) -> usize {
        self.matrix.ncols()
    }

    fn angles(&self) -> usize {
        self.angles
    }

    fn per_angle(&self) -> usize {
        self.matrix.nrows() / self.angles
    }

    fn at<'a>(&'a self, angles: &[usize]) -> Box<dyn LinearOperator<f64> + 'a> {
        let per_angle = self.per_angle();
        let row = |i: usize| angles[i / per_angle] * per_angle + i % per_angle;
        let rows = Mat::from_fn(angles.len() * per_angle, self.pixels(), |i, j| self.matrix[(row(i), j)]);
        Box::new(Dense::new(rows))
    }
}

impl Scanner for Projector {
    fn pixels(&self) -> usize {
        self.geometry().pixels()
    }

    fn angles(&self) -> usize {
        self.geometry().angles().len()
    }

    fn per_angle(&self) -> usize {
        self.geometry().measurements_per_angle()
    }

    fn at<'a>(&'a self, angles: &[usize]) -> Box<dyn LinearOperator<f64> + 'a> {
        match self.at_angles(angles) {
            Ok(some) => Box::new(some),
            Err(error) => panic!("angles of a scanner are among its own: {error}"),
        }
    }
}
