//! One image and all that could be measured of it.

use super::settings::ScanSettings;
use crate::kinds::prelude::*;
use posterior_tomography::design::equidistant;
use posterior_tomography::phantom::random_rectangles;
use posterior_tomography::{ParallelBeam, Projector, TomographyError, simulate};

/// An image, scanned once at all candidate angles: whatever is chosen, an angle has the same noise.
pub(super) struct Problem {
    /// The picture (pixels).
    pub(super) truth: Vec<f64>,
    /// All candidate angles.
    pub(super) scanner: Projector,
    /// Their measurements.
    sinogram: Vec<f64>,
    /// Of a measurement; taken as known by every method, since designs depend on its ratio to the prior (fix F10).
    pub(super) noise_variance: f64,
    /// The angles that are measured first.
    pub(super) pilot: Vec<usize>,
    /// Of draws.
    pub(super) seed: u64,
}

/// Some of the angles with what they measured.
pub(super) struct Scan {
    /// Their rows.
    pub(super) projector: Projector,
    /// What they measured.
    pub(super) sinogram: Vec<f64>,
}

impl Problem {
    /// The image of a number under a seed.
    ///
    /// # Errors
    /// Sizes and noise that make no scan.
    pub(super) fn new(settings: &ScanSettings, seed: u64, image: u64) -> Result<Self> {
        let (side, candidates) = (settings.side, settings.candidates);
        let streams = Streams::new(seed);
        let truth = random_rectangles(side, side, streams, image);
        let scanner = Projector::new(ParallelBeam::usual(side, side, candidates)?)?;
        let own = streams.child("experiment/scan", image);
        let scan = simulate(&scanner, &truth, settings.noise, own)?;
        let pilot = equidistant(candidates, settings.pilot, settings.pilot).map_err(TomographyError::from)?;
        let noise_variance = scan.noise * scan.noise;
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(image);
        Ok(Self { truth, scanner, sinogram: scan.sinogram, noise_variance, pilot, seed })
    }

    /// The scan at some of the angles, in the order given.
    ///
    /// # Errors
    /// An angle that there is none of.
    pub(super) fn scan(&self, angles: &[usize]) -> Result<Scan> {
        let projector = self.scanner.at_angles(angles)?;
        let each = self.scanner.geometry().measurements_per_angle();
        let own = |angle: &usize| self.sinogram[angle * each..(angle + 1) * each].iter().copied();
        Ok(Scan { projector, sinogram: angles.iter().flat_map(own).collect() })
    }

    /// The pilot scan.
    ///
    /// # Errors
    /// None that [`Self::new`] would have let through.
    pub(super) fn pilot_scan(&self) -> Result<Scan> {
        self.scan(&self.pilot)
    }
}
