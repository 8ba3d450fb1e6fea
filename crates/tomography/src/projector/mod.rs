//! **Projectors**: line integrals along the rays of a scan, and their exact transpose.
//!
//! Joseph's method: a ray is followed line by line (plane by plane in space) along its main axis, and what lies between two pixels is interpolated. One generator of weights serves both directions: what back-projection scatters is what projection gathered, so that
//! `<T x, y> = <x, T' y>` to rounding, on which conjugate gradients and every covariance rest. Sums have an order of their own that threads do not change.
//!
//! | file | what |
//! |---|---|
//! | `plane`, `space` | the two directions in the plane and in space |
//! | `stored` | [`StoredProjector`]: the same weights as sparse rows of T and of T' |
//!
//! Source: Joseph (1982); spec `tomography`, section 3.2.

mod plane;
mod space;
mod stored;

pub use stored::StoredProjector;

use crate::geometry::Geometry;
use crate::{Scanner, TomographyError};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use rayon::prelude::*;

/// T of a scan, computed as it is needed.
///
/// Cost of a product with one picture: about 2 ns for each ray and line that it crosses (four for each plane in space), shared out among threads by angles on the way there and by lines of the picture on the way back. Memory: the picture once for each main axis.
#[derive(Clone, Debug)]
pub struct Projector {
    geometry: Geometry,
}

impl Projector {
    /// Of a scan.
    ///
    /// # Errors
    /// [`TomographyError::Geometry`].
    pub fn new(geometry: Geometry) -> Result<Self, TomographyError> {
        geometry.check()?;
        Ok(Self { geometry })
    }

    /// The scan.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The same at some angles, in the order given.
    pub fn at_angles(&self, chosen: &[usize]) -> Self {
        Self { geometry: self.geometry.at_angles(chosen) }
    }

    /// Weights of all rays together, at most: two for each line, four for each plane.
    pub fn weights(&self) -> u64 {
        let shape = self.geometry.image_shape();
        let (longest, each) = match &self.geometry {
            Geometry::Cone(_) => (shape.iter().max().copied().unwrap_or(0), 4),
            _ => (shape[shape.len() - 2].max(shape[shape.len() - 1]), 2),
        };
        (self.geometry.measurements() as u64).saturating_mul(longest as u64).saturating_mul(each)
    }

    /// Every weight of one ray: `visit(pixel, weight)`, each pixel once.
    pub(crate) fn visit_ray(&self, angle: usize, element: usize, visit: &mut dyn FnMut(usize, f64)) {
        match &self.geometry {
            Geometry::Cone(cone) => space::visit(cone, angle, element, visit),
            geometry => plane::visit(geometry, angle, element, visit),
        }
    }
}

impl<T: Real> LinearOperator<T> for Projector {
    fn shape(&self) -> (usize, usize) {
        (self.geometry.measurements(), self.geometry.pixels())
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply(LinearOperator::<T>::shape(self), input, &output);
        let columns: Vec<Vec<T>> = (0..input.ncols())
            .into_par_iter()
            .map(|j| {
                let picture: Vec<T> = input.col(j).iter().copied().collect();
                match &self.geometry {
                    Geometry::Cone(cone) => space::project(cone, &picture),
                    geometry => plane::project(geometry, &picture),
                }
            })
            .collect();
        fill(&mut output, &columns);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply_transpose(LinearOperator::<T>::shape(self), input, &output);
        let columns: Vec<Vec<T>> = (0..input.ncols())
            .into_par_iter()
            .map(|j| {
                let sinogram: Vec<T> = input.col(j).iter().copied().collect();
                match &self.geometry {
                    Geometry::Cone(cone) => space::back_project(cone, &sinogram),
                    geometry => plane::back_project(geometry, &sinogram),
                }
            })
            .collect();
        fill(&mut output, &columns);
    }
}

/// Writes columns.
pub(super) fn fill<T: Real>(output: &mut MatMut<'_, T>, columns: &[Vec<T>]) {
    for (j, column) in columns.iter().enumerate() {
        output.as_mut().col_mut(j).iter_mut().zip(column).for_each(|(o, v)| *o = *v);
    }
}

impl Scanner for Projector {
    fn pixels(&self) -> usize {
        self.geometry.pixels()
    }

    fn angles(&self) -> usize {
        self.geometry.angles().len()
    }

    fn per_angle(&self) -> usize {
        self.geometry.measurements_per_angle()
    }

    fn at<'a>(&'a self, angles: &[usize]) -> Box<dyn LinearOperator<f64> + 'a> {
        Box::new(self.at_angles(angles))
    }
}

#[cfg(test)]
mod tests;
