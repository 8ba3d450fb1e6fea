//! Images, and the scan that all of them go through.

use super::Settings;
use crate::images::idx_files;
use crate::kinds::prelude::*;
use crate::pictures::Pictures;
use posterior_tomography::phantom::{random_digit, random_ellipses, walnut_slice};
use posterior_tomography::{ParallelBeam, Projector, TomographyError, simulate};
use std::path::{Path, PathBuf};

/// Diameter of the disk in which ellipses have their centres, as a share of the image's side.
const DIAMETER: f64 = 0.4745;

/// The table `[scan]`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct ScanSettings {
    /// Side of the images, in pixels.
    pub(crate) side: usize,
    /// Angles over half a turn.
    pub(crate) angles: usize,
    /// Noise, as a share of the mean size of a measurement.
    pub(crate) noise: f64,
}

impl ScanSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(8..=512).contains(&self.side) || !(1..=1000).contains(&self.angles) {
            return refused("[scan]: `side` is from 8 to 512 pixels, `angles` are from 1 to 1000");
        }
        if !positive(self.noise) {
            return refused("[scan]: `noise` is positive: 0.05 is 5 % of the mean measurement");
        }
        Ok(())
    }
}

/// Where images come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// Handwritten digits from IDX files, the first of the test images.
    Digits,
    /// Random ellipses, as networks are pretrained on.
    Ellipses,
    /// Slices through walnut-like bodies.
    Walnut,
}

/// One `[[image]]`: as many images of one source.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ImageSettings {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) count: usize,
    /// Folder with the IDX files of digits, counted from the experiment's file; empty: they are made up.
    #[serde(default)]
    pub(crate) folder: PathBuf,
}

impl ImageSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=100).contains(&self.count) {
            return refused(format!("[[image]] `{}`: `count` is from 1 to 100", self.name));
        }
        if self.name == "mean" {
            return refused("[[image]]: `mean` is what the average of all images is called");
        }
        if self.source != Source::Digits && !self.folder.as_os_str().is_empty() {
            return refused(format!("[[image]] `{}`: only digits come from a `folder`", self.name));
        }
        Ok(())
    }

    fn read(&self, side: usize, base: &Path, seed: u64) -> Result<Vec<Subject>> {
        let streams = Streams::new(seed).child("experiment/tomography images", 0);
        let named = |i: usize, truth: Vec<f64>| {
            let name = if self.count == 1 { self.name.clone() } else { format!("{} {}", self.name, i + 1) };
            let number = i as u64;
            Subject { streams: streams.child(&self.name, number), name, truth }
        };
        Ok(match self.source {
            Source::Ellipses => (0..self.count)
                .map(|i| named(i, random_ellipses(side, side, DIAMETER, streams, i as u64)))
                .collect(),
            Source::Walnut => (0..self.count)
                .map(|i| named(i, walnut_slice(side, side, streams.child("walnut", i as u64))))
                .collect(),
            Source::Digits if self.folder.as_os_str().is_empty() => {
                (0..self.count).map(|i| named(i, random_digit(side, side, streams, i as u64))).collect()
            }
            Source::Digits => {
                let [images, labels] = idx_files(&base.join(&self.folder), "t10k")?;
                let read = Pictures::read(Path::new(""), &[images], &[labels], Some(self.count))?;
                let pictures = read.like([1, side, side]);
                let found = pictures.labels.len();
                if found < self.count {
                    return refused(format!("[[image]] `{}`: the files hold {found} images", self.name));
                }
                let bright = |bytes: &[u8]| bytes.iter().map(|b| f64::from(*b) / 255.0).collect();
                let each = pictures.bytes.chunks_exact(side * side).take(self.count);
                each.enumerate().map(|(i, bytes)| named(i, bright(bytes))).collect()
            }
        })
    }
}

/// One image with its truth.
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Pixels, about 0 to 1.
    pub(crate) truth: Vec<f64>,
    /// Of everything random that belongs to it.
    streams: Streams,
}

/// All images behind one scan.
pub(crate) struct Problem {
    pub(crate) scan: ScanSettings,
    pub(crate) projector: Projector,
    pub(crate) subjects: Vec<Subject>,
    /// Everything that a part of the run depends on: images by name and source.
    pub(crate) depends: String,
}

impl Problem {
    /// Of the settings.
    ///
    /// # Errors
    /// Files that are not there or hold something else.
    pub(crate) fn new(settings: &Settings, context: &Context<'_>) -> Result<Self> {
        let scan = settings.scan;
        let beam = ParallelBeam::usual(scan.side, scan.side, scan.angles)?;
        let mut subjects = Vec::new();
        for image in &settings.images {
            subjects.extend(image.read(scan.side, context.folder, context.seed)?);
        }
        let depends = format!("{scan:?} {:?}", settings.images);
        Ok(Self { scan, projector: Projector::new(beam)?, subjects, depends })
    }

    /// Height and width.
    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.scan.side; 2]
    }

    /// Measurements of an image: the same whenever they are asked for.
    ///
    /// # Errors
    /// [`TomographyError`].
    pub(crate) fn measure(&self, subject: &Subject) -> Result<Vec<f64>, TomographyError> {
        Ok(simulate(&self.projector, &subject.truth, self.scan.noise, subject.streams)?.sinogram)
    }
}
