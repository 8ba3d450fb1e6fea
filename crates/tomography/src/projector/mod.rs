//! **The forward operator** `T`: line integrals of images, and its exact transpose, by Joseph's method.
//!
//! A ray marches along the axis that it runs along most, a line of pixels at a time, and at each takes the image between two pixels: with the ray at `u` on a
//! line, `j = ⌊u⌋` and `t = u - j`, pixel j has weight `(1 - t) ℓ` and pixel j + 1 weight `t ℓ`, ℓ being the ray's length from line to line; what is outside counts as empty. In a volume
//! the line is a plane and the weights are bilinear. Both directions make their weights in one place, so that one is the other's transpose to rounding.
//!
//! | file | what |
//! |---|---|
//! | `rays` | the rays as lines and numbers, in bundles that march the same way; every weight of a row |
//! | `line` | a place on a line as pixel and remainder, and the innermost loops |
//! | `plane` | one image |
//! | `lanes` | several images, or slices, at once: each pixel a list of numbers |
//! | `cone` | volumes under a cone: a fan in the plane, and along the depth a list that widens |
//! | `frames` | an image with its rows, or its columns, one after the other |
//! | `stored` | [`StoredProjector`]: the weights as compressed rows |
//!
//! Forward is parallel over angles; backward over lines of the image, each owned by one task. Every sum has a fixed order, whatever the number of threads.
//!
//! Milliseconds for 256 x 256 pixels and 180 angles on two shared cores with AVX-512, the fewest of nine (`benches/peers/tomography_projector.py`; scikit-image in f64 and ASTRA 2.5 on the processor in f32, both on one thread):
//!
//! | | forward, 1 and 2 threads | backward | filtered back-projection |
//! |---|---|---|---|
//! | on the fly, f32 | 9.2, 5.5 | 11.0, 6.2 | |
//! | on the fly, f64 | 9.7, 5.9 | 11.5, 7.0 | 13.8, 6.3 |
//! | stored, f32 | 62, 36 | 62, 34 | |
//! | ASTRA, `linear` | 77 | 96 | 70 |
//! | scikit-image | 194 | 107 | 107 |
//!
//! Source: P. M. Joseph, *An improved algorithm for reprojecting rays through pixel images* (1982); spec `tomography`, section 3.2.

mod cone;
mod frames;
mod lanes;
mod line;
mod plane;
mod rays;
mod stored;
#[cfg(test)]
mod tests;

pub(crate) use line::split;
pub use stored::StoredProjector;

use crate::{Geometry, TomographyError};
use faer::{MatMut, MatRef};
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use posterior_linalg::{PerPrecision, Real, compiled_here};
use rays::Rays;

/// The forward operator of a geometry, with weights made on the fly: measurements x pixels.
///
/// Memory: three or five numbers for each detector element of a row and angle, and while it works two copies of the image. Cost of a product: about
/// `2 · measurements · max(h, w)` multiplications.
///
/// ```
/// use faer::Mat;
/// use posterior_linalg::operator::LinearOperator;
/// use posterior_tomography::{ParallelBeam, Projector};
/// let projector = Projector::new(ParallelBeam::usual(4, 4, 2)?)?;
/// let image: Mat<f64> = Mat::full(16, 1, 1.0);
/// let sinogram = projector.multiply(image.as_ref());
/// // The middle ray of the first angle, straight up.
/// assert!((sinogram[(3, 0)] - 4.0).abs() < 1e-12);
/// # Ok::<(), posterior_tomography::TomographyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Projector {
    geometry: Geometry,
    rays: Rays,
}

impl Projector {
    /// The operator of a geometry.
    ///
    /// # Errors
    /// What [`Geometry::check`] refuses.
    pub fn new(geometry: impl Into<Geometry>) -> Result<Self, TomographyError> {
        let geometry = geometry.into();
        geometry.check()?;
        let rays = Rays::of(&geometry);
        Ok(Self { geometry, rays })
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The operator at some of the angles: its rows in the order named.
    ///
    /// # Errors
    /// Those of [`Geometry::at_angles`].
    pub fn at_angles(&self, chosen: &[usize]) -> Result<Self, TomographyError> {
        Self::new(self.geometry.at_angles(chosen)?)
    }

    /// The weights as compressed rows: for what needs its rows ([`StoredProjector::bytes`] says how much memory).
    ///
    /// # Errors
    /// [`TomographyError::TooLarge`] beyond `most_bytes`, before memory is taken.
    pub fn stored<T: Real>(&self, most_bytes: u64) -> Result<StoredProjector<T>, TomographyError> {
        StoredProjector::new(self, most_bytes)
    }

    /// `T x` for one image.
    ///
    /// # Errors
    /// [`TomographyError::ImageShape`].
    pub fn project(&self, image: &[f64]) -> Result<Vec<f64>, TomographyError> {
        self.geometry.check_image(image)?;
        let image = MatRef::from_column_major_slice(image, image.len(), 1);
        Ok(self.multiply(image).col_as_slice(0).to_vec())
    }

    /// `Tᵀ y` for one sinogram: the matched back-projection.
    ///
    /// # Errors
    /// [`TomographyError::SinogramShape`], [`TomographyError::NotFinite`].
    pub fn back_project(&self, sinogram: &[f64]) -> Result<Vec<f64>, TomographyError> {
        self.geometry.check_sinogram(&[sinogram.len()], sinogram)?;
        let sinogram = MatRef::from_column_major_slice(sinogram, sinogram.len(), 1);
        Ok(self.multiply_transpose(sinogram).col_as_slice(0).to_vec())
    }
}

impl<T: Real> LinearOperator<T> for Projector {
    fn shape(&self) -> (usize, usize) {
        (self.geometry.measurements(), self.geometry.pixels())
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(LinearOperator::<T>::shape(self), input, &output);
        compiled_here!(T: Real, PerPrecision; ['a] forward,
            (projector: &'a Projector = self, input: MatRef<'a, T> = input, output: MatMut<'a, T> = output) -> ());
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(LinearOperator::<T>::shape(self), input, &output);
        compiled_here!(T: Real, PerPrecision; ['a] backward,
            (projector: &'a Projector = self, input: MatRef<'a, T> = input, output: MatMut<'a, T> = output) -> ());
    }
}

fn forward<T: Real>(projector: &Projector, input: MatRef<'_, T>, output: MatMut<'_, T>) {
    let rays = &projector.rays;
    match &projector.geometry {
        Geometry::Cone(beam) => cone::forward(rays, beam, input, output),
        _ if rays.depth * input.ncols() == 1 => plane::forward(rays, input, output),
        _ => lanes::forward(rays, input, output),
    }
}

fn backward<T: Real>(projector: &Projector, input: MatRef<'_, T>, output: MatMut<'_, T>) {
    let rays = &projector.rays;
    match &projector.geometry {
        Geometry::Cone(beam) => cone::backward(rays, beam, input, output),
        _ if rays.depth * input.ncols() == 1 => plane::backward(rays, input, output),
        _ => lanes::backward(rays, input, output),
    }
}
