//! Measurements with noise.

use crate::TomographyError;
use faer::MatRef;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// A sinogram that was made, and the noise in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Measurements (c).
    pub sinogram: Vec<f64>,
    /// Standard deviation of the noise in each.
    pub noise: f64,
}

/// `y = T x + N(0, sigma²)` with sigma a share (0.05, say) of the mean size of `T x`. A measurement's noise depends on the seed and its number only.
///
/// Source: spec `tomography`, section 3.4.
///
/// # Errors
/// [`TomographyError::Shape`] for a picture of other pixels; [`TomographyError::Option`] for a negative share.
pub fn simulate(
    projector: &dyn LinearOperator<f64>,
    picture: &[f64],
    share: f64,
    seed: u64,
) -> Result<Simulated, TomographyError> {
    crate::error::same_count("pixels of the picture", projector.shape().1, picture.len())?;
    if !(share >= 0.0 && share.is_finite()) {
        let expected = "a share of the mean measurement, at least 0";
        return Err(TomographyError::Option { name: "noise", value: share, expected });
    }
    let clean = projector.multiply(MatRef::from_column_major_slice(picture, picture.len(), 1));
    let mut sinogram = clean.col_as_slice(0).to_vec();
    let noise = share * sinogram.iter().map(|y| y.abs()).sum::<f64>() / sinogram.len().max(1) as f64;
    let mut rng = Streams::new(seed).stream("tomography/noise");
    for y in &mut sinogram {
        let e: f64 = StandardNormal.sample(&mut rng);
        *y += noise * e;
    }
    Ok(Simulated { sinogram, noise })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Geometry, ParallelBeam};
    use crate::projector::Projector;

    #[test]
    fn noise_is_the_share_that_was_asked_for() {
        let projector = Projector::new(Geometry::Parallel(ParallelBeam::usual(32, 32, 40))).unwrap();
        let picture = crate::phantom::shepp_logan(32, 32);
        let clean = simulate(&projector, &picture, 0.0, 1).unwrap();
        let noisy = simulate(&projector, &picture, 0.05, 1).unwrap();
        assert_eq!(clean.noise, 0.0);
        let mean = clean.sinogram.iter().map(|y| y.abs()).sum::<f64>() / clean.sinogram.len() as f64;
        assert!((noisy.noise - 0.05 * mean).abs() < 1e-12);
        let squares: f64 = clean.sinogram.iter().zip(&noisy.sinogram).map(|(a, b)| (a - b).powi(2)).sum();
        let n = clean.sinogram.len() as f64;
        // The variance of n normals is off by sqrt(2 / n), relatively; five deviations.
        assert!((squares / n / noisy.noise.powi(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert_eq!(noisy, simulate(&projector, &picture, 0.05, 1).unwrap());
        assert!(simulate(&projector, &picture[1..], 0.05, 1).is_err());
        assert!(simulate(&projector, &picture, -0.1, 1).is_err());
    }
}
