//! What a sinogram must be to belong to a geometry.

use super::Geometry;
use crate::TomographyError;

impl Geometry {
    /// Whether `values`, of the shape that its file says, are measurements of this geometry: its shape, and finite.
    ///
    /// A flat list, shape `[measurements]`, is taken too. Cost: one pass.
    ///
    /// # Errors
    /// [`TomographyError::SinogramShape`], [`TomographyError::NotFinite`].
    pub fn check_sinogram(&self, shape: &[usize], values: &[f64]) -> Result<(), TomographyError> {
        let expected = self.sinogram_shape();
        let flat = shape == [self.measurements()];
        if (shape != expected && !flat) || values.len() != self.measurements() {
            return Err(self.wrong_shape(shape, values.len()));
        }
        match values.iter().position(|v| !v.is_finite()) {
            Some(at) => {
                let (angle, detector) = self.place(at);
                Err(TomographyError::NotFinite { value: values[at], angle, detector })
            }
            None => Ok(()),
        }
    }

    /// [`Self::check_sinogram`] for counts of photons, none of which is negative.
    ///
    /// # Errors
    /// Those, and [`TomographyError::NegativeCount`].
    pub fn check_counts(&self, shape: &[usize], values: &[f64]) -> Result<(), TomographyError> {
        self.check_sinogram(shape, values)?;
        match values.iter().position(|v| *v < 0.0) {
            Some(at) => {
                let (angle, detector) = self.place(at);
                let negative = values.iter().filter(|v| **v < 0.0).count();
                Err(TomographyError::NegativeCount { negative, value: values[at], angle, detector })
            }
            None => Ok(()),
        }
    }

    /// Whether `values` are an image of this geometry.
    ///
    /// # Errors
    /// [`TomographyError::ImageShape`].
    pub fn check_image(&self, values: &[f64]) -> Result<(), TomographyError> {
        if values.len() != self.pixels() {
            let (found, expected) = (vec![values.len()], self.image_shape());
            return Err(TomographyError::ImageShape { found, expected });
        }
        Ok(())
    }

    /// Angle and detector element of a measurement.
    fn place(&self, measurement: usize) -> (usize, usize) {
        let per_angle = self.measurements_per_angle();
        (measurement / per_angle, measurement % per_angle)
    }

    fn wrong_shape(&self, shape: &[usize], values: usize) -> TomographyError {
        let expected = self.sinogram_shape();
        let (axes, names): (_, &[&str]) = match self {
            Self::Parallel(_) | Self::Fan(_) => {
                ("angles, detector elements", &["the numbers of angles", "the numbers of detector elements"])
            }
            Self::Stacked(_) | Self::Cone(_) => (
                "angles, detector rows, detector columns",
                &["the numbers of angles", "the numbers of detector rows", "the numbers of detector columns"],
            ),
        };
        let mut turned = shape.to_vec();
        turned.reverse();
        let axis = if shape.len() != expected.len() {
            "the numbers of axes".into()
        } else if shape == expected {
            format!("the shape and the number of values, {values},")
        } else if turned == expected {
            "the orders of the axes (it is transposed)".into()
        } else {
            let wrong = names.iter().zip(shape.iter().zip(&expected)).filter(|(_, (a, b))| a != b);
            wrong.map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
        };
        TomographyError::SinogramShape { found: shape.to_vec(), expected, axes, axis }
    }
}
