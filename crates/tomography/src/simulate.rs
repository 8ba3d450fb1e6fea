//! Scans in silico: `y = T x + η` with normal noise whose standard deviation is a share of the mean magnitude of `T x`.

use crate::{Projector, TomographyError};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// Measurements that were made up.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// With noise, flattened.
    pub sinogram: Vec<f64>,
    /// Without.
    pub exact: Vec<f64>,
    /// The noise's standard deviation, σ.
    pub noise: f64,
}

/// Scans `image` with noise of `level` times the mean of `|T x|` (0.05 for "5 % noise").
///
/// For the choice of angles scan all candidates once and take subsets of the values. Source: spec `tomography`, section 3.4.
///
/// # Errors
/// [`TomographyError::ImageShape`]; [`TomographyError::Option`] for a level that is negative or no number.
pub fn simulate(
    projector: &Projector,
    image: &[f64],
    level: f64,
    streams: Streams,
) -> Result<Simulated, TomographyError> {
    if !(level >= 0.0 && level.is_finite()) {
        let expected = "a share of the mean measurement: 0.05 is 5 % noise, 0 none";
        return Err(TomographyError::Option { name: "the noise level", value: level, expected });
    }
    let exact = projector.project(image)?;
    let noise = level * exact.iter().map(|v| v.abs()).sum::<f64>() / exact.len() as f64;
    let mut stream = streams.stream("tomography/noise");
    let noisy = |value: &f64| {
        let normal: f64 = StandardNormal.sample(&mut stream);
        value + noise * normal
    };
    let sinogram = exact.iter().map(noisy).collect();
    Ok(Simulated { sinogram, exact, noise })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ParallelBeam, phantom};

    #[test]
    fn noise_has_the_size_that_is_told_and_is_its_seed() {
        let projector = Projector::new(ParallelBeam::usual(32, 32, 90).unwrap()).unwrap();
        let image = phantom::shepp_logan(32, 32);
        let scan = simulate(&projector, &image, 0.05, Streams::new(1)).unwrap();
        assert_eq!(scan.exact, projector.project(&image).unwrap());
        let mean = scan.exact.iter().sum::<f64>() / scan.exact.len() as f64;
        assert!((scan.noise - 0.05 * mean).abs() < 1e-12 * mean);
        let squares: f64 = scan.sinogram.iter().zip(&scan.exact).map(|(a, b)| (a - b).powi(2)).sum();
        // 4,230 draws: the standard deviation of this ratio is 0.011.
        let ratio = (squares / scan.exact.len() as f64).sqrt() / scan.noise;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        assert_eq!(scan, simulate(&projector, &image, 0.05, Streams::new(1)).unwrap());
        assert_ne!(scan, simulate(&projector, &image, 0.05, Streams::new(2)).unwrap());
        assert_eq!(simulate(&projector, &image, 0.0, Streams::new(1)).unwrap().sinogram, scan.exact);
        assert!(matches!(
            simulate(&projector, &image, -0.1, Streams::new(1)),
            Err(TomographyError::Option { .. })
        ));
    }
}
